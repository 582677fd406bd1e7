"""Makes the options of a command from a declared group, so that name, type, default and help are written once."""

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
from dragoman.options import Options, declaration_of, default_of

F = TypeVar("F", bound=Callable[..., int | None])


def with_options(
    declared: type[Options], *names: str, without: Sequence[str] = (), into: str = "options"
) -> Callable[[F], F]:
    """Give a command the options ``names`` of a declared group; it receives the group as its argument ``into``.

    Without names it gets all options but those in ``without``. The help shows the lowest decorator's options first.
    A bool that is true by default becomes ``--no-NAME``; a list may be repeated. The group checks the values.
    """

    names = names or tuple(name for name in declared.names() if name not in without)
    defaults = {field.name: default_of(field) for field in dataclasses.fields(declared)}
    negated = [name for name in names if defaults[name] is True]

    def decorate(command: F) -> F:
        hints = get_type_hints(command, include_extras=True)
        own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != into]
        parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in own if parameter != CONTEXT]
        parameters += [_parameter(declared, name, defaults[name]) for name in names]
        parameters.append(CONTEXT)

        @functools.wraps(command)
        def run(context: typer.Context, **values: Any) -> int | None:
            options = {name: values.pop(name) for name in names}
            options |= {name: not options[name] for name in negated}
            changes = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in options.items()
                if value is not None and value != defaults[name]
            }
            group: Any = declared(**changes)
            group.refuse_given([name for name in names if not _is_default(context, name)])
            if CONTEXT in own:  # a group of another decorator
                values["context"] = context
            return command(**values, **{into: group})

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del run.__wrapped__  # typer would read the signature of the wrapped function
        return run  # type: ignore[return-value]

    return decorate


def if_default(check: Callable[[Any], None]) -> Callable[[typer.Context, typer.CallbackParam, Any], Any]:
    """Return a callback of an option that checks its value if the option was not given."""

    def callback(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
        if _is_default(context, parameter.name or "") and not context.resilient_parsing:
            check(value)
        return value

    return callback


def _is_default(context: typer.Context, name: str) -> bool:
    """True if an option was not given."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "DEFAULT"


CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
"""Parameter in which typer gives a command what was typed."""


def _parameter(declared: type[Options], name: str, default: Any) -> inspect.Parameter:
    """Return a declared option as a parameter of a typer command."""
    annotation = get_type_hints(declared)[name]
    kind = _kind(annotation)
    about: Any = declaration_of(declared, name)
    flag = about.json_schema_extra.get("flag", "--" + name.replace("_", "-"))
    if kind is bool:
        flag = f"--no-{flag[2:]}" if default else flag
        text = about.description if not default else f"Do not {about.description[0].lower()}{about.description[1:]}"
        shown = typer.Option(*flag.split(), help=text, rich_help_panel=about.json_schema_extra["group"])
        of_command: Any = Annotated[bool, shown]
        default = False
    else:
        completes = settings if flag == "--set" else None
        value_name = "PATH" if _holds_paths(annotation) else METAVARS.get(kind)
        shown = typer.Option(
            *flag.split(), help=about.description, metavar=about.json_schema_extra.get("metavar", value_name),
            autocompletion=completes, rich_help_panel=about.json_schema_extra["group"],
        )  # fmt: skip
        typed = str if kind in METAVARS or get_origin(kind) is Literal else kind
        of_command = Annotated[typed | None, shown]
        default = None if default in ((), "", None) else str(default) if typed is str else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=of_command)


METAVARS = {int: "N", float: "NUM"}
"""Placeholders of numbers. The command line passes them as text; the declared group converts and checks them."""


def _holds_paths(annotation: Any) -> bool:
    """True if a value of this type is a path, or has some."""
    return annotation is Path or any(map(_holds_paths, get_args(annotation)))


def _kind(annotation: Any) -> Any:
    """Return the type of an option's value on the command line, without None."""
    if annotation is Any:  # a file or a text
        return str
    is_union = get_origin(annotation) in (Union, types.UnionType)
    kind = get_args(annotation)[0] if is_union else annotation
    return list[str] if get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis else kind
