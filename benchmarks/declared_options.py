"""Give every declared option of commands, Python, the configuration and HTTP a value that it cannot have.

    python -m benchmarks.declared_options

Each must be refused with one sentence, "NAME must be ..., got ...": by a command with exit status 2, in Python by
``ConfigError``, over HTTP by a status of 4xx. Nothing is loaded: options are checked before anything heavy.
``tests/test_declared_options.py`` wants no failure. ``before`` in the record is the code without that sentence.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import importlib
import io
import json
import logging
import re
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from benchmarks.record import RESULTS, save
from dragoman.cli import run as run_command
from dragoman.cli.commands import COMMANDS, load
from dragoman.config import Config, all_settings, fields_of, with_overrides
from dragoman.errors import ConfigError
from dragoman.options import Options, declaration_of
from dragoman.serving.app import build
from dragoman.serving.options import ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.translation.language_pairs import LanguagePairs

MODULES = (
    "bulk.options", "cli.doctor", "cli.evaluate", "cli.explain", "cli.export", "cli.lab", "cli.score", "cli.translate",
    "distillation.options", "doctor.options", "documents.options", "serving.options", "training.options",
    "translation.options",
)  # fmt: skip
"""The modules that declare options."""

WORD = "no-such-word"
NO_BOOLEAN = "perhaps"
TRACEBACK = "traceback:"
WORDS = {
    "engine", "device", "precision", "show", ("export", "form"), ("export", "quantization"), ("lab", "name"),
    ("demo", "tgt_lang"),
}  # fmt: skip
"""Options of commands that are text to the command line, and take certain words only."""


class Case(NamedTuple):
    """One option with one impossible value."""

    door: str  # command, python, configuration or http
    option: str  # with the command, class or route that has it
    name: str  # as the sentence calls it
    value: Any
    ask: Callable[[], str]  # returns the sentence that refuses the value; "" if it was accepted


def fault(case: Case) -> str:
    """Return what is wrong with how an impossible value is refused; "" if nothing is."""
    try:
        sentence = case.ask()
    except Exception as error:
        return f"{TRACEBACK} {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    grammar = rf"(?:^|[\s.]){re.escape(case.name)} must (?:be|have|hold) [^\n]+, got [^\n]+$"
    return "" if re.search(grammar, sentence) else sentence or "accepted"


# --- impossible values ------------------------------------------------------------------------------------------------


def impossible(annotation: Any, *, as_text: bool = False) -> list[Any]:
    """Values just past the limits of a type, and one of another type; of text those that a command line can give."""
    limits, kinds = _parts(annotation)
    values: list[Any] = []
    numeric = {int, float} & set(kinds)
    for limit, bound in limits.items():
        if numeric:
            step = 1 if int in numeric else max(abs(bound), 1) / 100
            values += [bound + {"ge": -step, "gt": 0, "le": step, "lt": 0}[limit]]
        elif limit == "min_length" and bound == 1:
            values += [""]
    if numeric and str not in kinds:
        values += ["many"]
    if float in numeric and not as_text:
        values += [float("nan")]
    if any(get_origin(kind) is Literal for kind in kinds):
        values += [WORD]
    if bool in kinds:
        values += [NO_BOOLEAN]
    if not as_text and not values and Any not in kinds:
        values += [object()] if int in kinds else [7]
    return values


def _parts(annotation: Any) -> tuple[dict[str, float], list[Any]]:
    """The limits in an annotation, and its types without None."""
    limits: dict[str, float] = {}
    if isinstance(annotation, FieldInfo):
        limits, kinds = _parts(annotation.annotation)
        return limits | _limits(annotation), kinds
    if get_origin(annotation) is Annotated:
        kind, *about = get_args(annotation)
        limits, kinds = _parts(kind)
        for each in about:
            limits |= _limits(each)
        return limits, kinds
    if get_origin(annotation) in (Union, types.UnionType):
        found = [_parts(kind) for kind in get_args(annotation) if kind is not types.NoneType]
        return {k: v for some, _ in found for k, v in some.items()}, [kind for _, own in found for kind in own]
    return limits, [annotation]


def _limits(about: Any) -> dict[str, float]:
    names = ("ge", "gt", "le", "lt", "min_length")
    return {
        name: getattr(each, name)
        for each in (about, *getattr(about, "metadata", ()))
        for name in names
        if getattr(each, name, None) is not None
    }


# --- the doors --------------------------------------------------------------------------------------------------------


def option_classes() -> list[type[Any]]:
    """Every class that declares options."""
    for module in MODULES:
        importlib.import_module(f"dragoman.{module}")
    classes: list[type[Any]] = []
    unread: list[type[Any]] = [Options]
    while unread:
        declared = unread.pop()
        unread += declared.__subclasses__()
        classes += [declared] if dataclasses.is_dataclass(declared) else []
    return list(dict.fromkeys(classes))


def python_cases() -> Iterator[Case]:
    """Each option of each class, to the constructor and to ``dataclasses.replace``."""
    for declared in option_classes():
        for name in declared.names():
            for value in impossible(declaration_of(declared, name)):
                for ask in (_construct, _replace):
                    yield Case(
                        "python", f"{declared.__name__}.{name}", name, value,
                        lambda ask=ask, declared=declared, name=name, value=value: ask(declared, name, value),
                    )  # fmt: skip


def _construct(declared: type[Any], name: str, value: Any) -> str:
    try:
        declared(**{name: value})
    except ConfigError as error:
        return str(error)
    return ""


def _replace(declared: type[Any], name: str, value: Any) -> str:
    try:
        dataclasses.replace(declared(), **{name: value})
    except ConfigError as error:
        return str(error)
    return ""


FILES = {"data": {"train": {"src": "a.en", "tgt": "a.de"}}}


def configuration_cases() -> Iterator[Case]:
    """Each setting of the configuration, by ``--set``."""
    for setting in all_settings(Config):
        for value in impossible(_annotation(setting)):
            if not isinstance(value, str | int | float):
                continue
            yield Case(
                "configuration", setting, setting, value,
                lambda setting=setting, value=value: _set(setting, value),
            )  # fmt: skip


def _annotation(setting: str) -> Any:
    if setting == "model.preset":  # not a field: it becomes sizes
        return Literal["tiny"]
    section: Any = Config
    for part in setting.split("."):
        field = fields_of(section)[part]
        section = field.annotation
    return field


def _set(setting: str, value: Any) -> str:
    text = ".nan" if value != value else json.dumps(value)
    try:
        Config.from_mapping(with_overrides(FILES, [f"{setting}={text}"]))
    except ConfigError as error:
        return str(error)
    return ""


def command_cases() -> Iterator[Case]:
    """Each option of each command that takes a value which a command line can get wrong."""
    declared: dict[str, list[Any]] = {}
    for each in option_classes():
        for name in each.names():
            declared.setdefault(name, []).append(declaration_of(each, name))
    for command in COMMANDS:
        parameters = load(command).params
        for parameter in parameters:
            if parameter.name == "help" or getattr(parameter, "is_flag", False):
                continue
            annotations = [getattr(parameter.type_descriptor, "annotation", str), *declared.get(parameter.name, ())]
            values = [value for each in annotations for value in impossible(each, as_text=True)]
            if {parameter.name, (command, parameter.name)} & WORDS:
                values += [WORD]
            name = parameter.opts[0].removeprefix("--") if (command, parameter.name) in WORDS else parameter.name
            for value in dict.fromkeys(str(value) for value in values if value != NO_BOOLEAN):
                yield Case(
                    "command", f"{command} {parameter.opts[0]}", name, value,
                    lambda command=command, parameters=parameters, own=parameter, value=value: _call(
                        command, parameters, own, value
                    ),
                )  # fmt: skip


def _call(command: str, parameters: list[Any], own: Any, value: str) -> str:
    """Call a command in an empty folder, with something for all that it must be given."""
    words = [command]
    for each in parameters:
        is_argument = each.param_type_name == "argument"
        if each is own:
            words += [value] if is_argument else [f"{each.opts[-1]}={value}"]
        elif each.required:
            given = "page" if each.name == "form" else "nowhere"
            words += [given] if is_argument else [f"{each.opts[-1]}={given}"]
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stderr(said):
        status = run_command(words)
    lines = [line for line in said.getvalue().splitlines() if line]
    if status != 2 or len(lines) != 1:
        return f"exit {status}: {said.getvalue()}"
    return re.sub(r" \(see dragoman .*\)$", "", lines[0])


GOOD: dict[str, Any] = {
    "text": "the dog", "q": "the dog", "source": "en", "target": "de", "target_lang": "DE", "source_lang": "EN",
    "name": "mine", "entries": "dog\tHund", "document_key": "a", "texts": ["the dog"],
}  # fmt: skip
"""Values for the other fields of a request."""


def http_cases() -> Iterator[Case]:
    """Each field of each request that is JSON, as the server's OpenAPI document declares it."""
    translator = SimpleNamespace(
        is_parser=False, languages=LanguagePairs("en", "de", (), ()), device=SimpleNamespace(type="cpu")
    )
    with tempfile.TemporaryDirectory() as folder:
        app, state = build(Pairs([translator]), ServeOptions(glossaries=Path(folder)))
        state.service.unready = None
        spec_app: Any = app
        while not hasattr(spec_app, "openapi"):
            spec_app = spec_app.app
        spec = spec_app.openapi()
        for path, operations in spec["paths"].items():
            for method, operation in operations.items():
                body = operation.get("requestBody", {}).get("content", {}).get("application/json")
                if body is None:
                    continue
                schema = _resolved(body["schema"], spec)
                good = {name: GOOD[name] for name in schema.get("required", ()) if name in GOOD}
                for name, field in schema["properties"].items():
                    for value in _impossible_json(field, spec):
                        yield Case(
                            "http", f"{method.upper()} {path} {name}", name, value,
                            lambda method=method, path=path, sent={**good, name: value}: _sentence(
                                *asyncio.run(_request(app, method, re.sub("{.*}", "a", path), sent))
                            ),
                        )  # fmt: skip


def _resolved(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        part: Any = spec
        for key in schema["$ref"].removeprefix("#/").split("/"):
            part = part[key]
        schema = part
    return schema


def _impossible_json(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> list[Any]:
    kinds = [_resolved(kind, spec) for kind in _resolved(schema, spec).get("anyOf", [schema])]
    if any("enum" in kind for kind in kinds):
        return [WORD]
    values: list[Any] = []
    names = {kind.get("type") for kind in kinds}
    for kind in kinds:
        step = 1 if kind.get("type") == "integer" else 0.5
        values += [
            kind[limit] + (step if limit == "maximum" else -step) for limit in ("minimum", "maximum") if limit in kind
        ]
        values += [kind[limit] for limit in ("exclusiveMinimum", "exclusiveMaximum") if limit in kind]
        values += [""] if kind.get("minLength") else []
    if names & {"integer", "number"} and "string" not in names:
        values += ["many"]
    if "boolean" in names:
        values += [NO_BOOLEAN]
    # A field without a type is one that changes nothing: it takes every value.
    if names != {None} and not names & {"integer", "number", "boolean"}:
        values += [7]
    return values


async def _request(app: Any, method: str, path: str, sent: Any) -> tuple[int, bytes]:
    """Ask an ASGI application without a socket."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method.upper(), "path": path,
        "raw_path": path.encode(), "query_string": b"", "scheme": "http", "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "server": ("localhost", 80), "client": ("localhost", 1),
    }  # fmt: skip
    bodies = iter([{"type": "http.request", "body": json.dumps(sent).encode(), "more_body": False}])
    answer: list[Mapping[str, Any]] = []

    async def receive() -> Any:
        message = next(bodies, None)
        if message is None:
            await asyncio.sleep(3600)
        return message

    async def send(message: Mapping[str, Any]) -> None:
        answer.append(message)

    await app(scope, receive, send)
    return answer[0]["status"], b"".join(message.get("body", b"") for message in answer[1:])


def _sentence(status: int, body: bytes) -> str:
    if not 400 <= status < 500:
        return f"status {status}: {body.decode()}"
    answer = json.loads(body)
    error = answer.get("error", answer)
    return str(error.get("message", error) if isinstance(error, dict) else error)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from python_cases()
    yield from configuration_cases()
    yield from command_cases()
    yield from http_cases()


def main() -> None:
    """Record how many options are refused as they should be, and how the others are."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    logging.getLogger("dragoman.serving").setLevel(logging.CRITICAL)
    tried: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    tracebacks: Counter[str] = Counter()
    options: dict[str, set[str]] = {}
    for case in cases():
        tried[case.door] += 1
        if said := fault(case):
            wrong[case.door] += 1
            tracebacks[case.door] += said.startswith(TRACEBACK)
            options.setdefault(case.door, set()).add(case.option)
            print(f"{case.door}: {case.option} = {case.value!r}: {said}")
    counts = {
        door: {
            "values": n,
            "not_refused_so": wrong[door],
            "of_these_tracebacks": tracebacks[door],
            "options": len(options.get(door, ())),
        }
        for door, n in tried.items()
    }
    print(json.dumps(counts, indent=2))
    path = RESULTS / "options.json"
    recorded = json.loads(path.read_text(encoding="utf-8"))["figures"] if path.is_file() else {}
    save("options", recorded | {"now": counts}, "python -m benchmarks.declared_options")


if __name__ == "__main__":
    main()
