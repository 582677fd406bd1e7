"""Options of a command made from a declaration: name, type, default and help are written once, where it stands."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from dragoman.cli.completion import settings
from dragoman.translation.options import Options, default_of

F = TypeVar("F", bound=Callable[..., None])


def with_options(
    declared: type[Options], *names: str, without: Sequence[str] = (), into: str = "options"
) -> Callable[[F], F]:
    """Give a command the declared options ``names``; it gets what was given of them as its argument ``into``.

    Without any names it gets all but those of ``without``. Of several declarations the lowest comes first in its help.

    A bool that is true by default becomes ``--no-NAME``; a list may be repeated. A value is checked by the declaration.
    """

    taken = names or tuple(name for name in declared.names() if name not in without)
    negated = [name for name in taken if default_of(_field(declared, name)) is True]

    def decorate(command: F) -> F:
        hints = get_type_hints(command, include_extras=True)
        own = [each for each in inspect.signature(command).parameters.values() if each.name != into]
        parameters = [each.replace(annotation=hints[each.name]) for each in own]
        parameters += [_parameter(declared, name) for name in taken]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            options = {name: given.pop(name) for name in taken}
            options |= {name: not options[name] for name in negated}
            changes = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in options.items()
                if value is not None and value != default_of(_field(declared, name))
            }
            command(**given, **{into: declared.of(None, changes)})

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        del run.__wrapped__  # whose signature would be taken
        return run  # type: ignore[return-value]

    return decorate


def _field(declared: type[Options], name: str) -> dataclasses.Field[Any]:
    return next(each for each in dataclasses.fields(declared) if each.name == name)  # type: ignore[arg-type]


def _parameter(declared: type[Options], name: str) -> inspect.Parameter:
    kind, *about = get_args(get_type_hints(declared, include_extras=True)[name])
    told = next(each for each in about if hasattr(each, "json_schema_extra"))
    default = default_of(_field(declared, name))
    flag = told.json_schema_extra.get("flag", "--" + name.replace("_", "-"))
    if kind is bool:
        flag = f"--no-{flag[2:]}" if default else flag
        text = told.description if not default else f"Do not {told.description[0].lower()}{told.description[1:]}"
        shown = typer.Option(flag, help=text, rich_help_panel=told.json_schema_extra["group"])
        annotation: Any = Annotated[bool, shown]
        default = False
    else:
        completes = settings if flag == "--set" else None
        shown = typer.Option(
            flag, help=told.description, metavar=told.json_schema_extra.get("metavar"), autocompletion=completes,
            rich_help_panel=told.json_schema_extra["group"],
        )  # fmt: skip
        default = None if default in ((), "") else default
        annotation = Annotated[_typed(kind), shown]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _typed(kind: Any) -> Any:
    """What a command line takes for a declared type."""
    if kind is Any:
        return Path | None
    if get_origin(kind) is Literal:
        return str
    choices: Sequence[Any] = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if get_origin(choices[0]) is tuple and get_args(choices[0])[-1] is Ellipsis:
        return list[str] | None
    return choices[0] | None if len(choices) > 1 or choices[0] is str else choices[0]
