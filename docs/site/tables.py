"""Parts of reference pages that the code decides, in Markdown; ``reference`` writes them into the pages.

A page asks for a part by a line such as ``<!-- made: settings -->``; ``PARTS`` says which there are. What has no
description stops the build.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo

import dragoman
from docs.site.docstrings import described
from docs.site.markdown import escaped, linked, table
from docs.site.numbers import written
from docs.site.problems import BrokenDocsError
from dragoman import errors, reference
from dragoman.cli.commands import COMMANDS, load, value_name
from dragoman.cli.habits import RENAMED
from dragoman.config import PRESETS, Config, ModelConfig, fields_of, section_in
from dragoman.decoding.ensemble import Ensemble
from dragoman.model.build import build as build_model
from dragoman.options import Options, declaration_of, default_of
from dragoman.serving.app import build as build_app
from dragoman.serving.options import ServeOptions
from dragoman.toolkits import engine_names
from dragoman.toolkits.choice import engine_class
from dragoman.toolkits.engine import Needs
from dragoman.toolkits.table import table as variants
from dragoman.training.folder import RESUMABLE

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "recorded"


# --- settings ---------------------------------------------------------------------------------------------------------


def each_setting(section: type[Any] = Config, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting below a section by its full name, in the order of the code."""
    for name, field in fields_of(section).items():
        below = section_in(field.annotation)
        if below is not None:
            yield from each_setting(below, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def values(field: FieldInfo) -> str:
    """What a setting may be: its values, or type and range."""
    kinds = get_args(field.annotation) if get_origin(field.annotation) in (Union, types.UnionType) else ()
    kind = next((kind for kind in kinds if kind is not types.NoneType), field.annotation)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if kind is bool:
        return "`true`, `false`"
    names: dict[Any, str] = {int: "whole number", float: "number", str: "text", tuple[float, float]: "two numbers"}
    limits = {
        name: getattr(each, name) for each in field.metadata for name in ("ge", "gt", "le", "lt") if hasattr(each, name)
    }
    words = {"ge": "{} or more", "gt": "above {}", "le": "at most {}", "lt": "below {}"}
    shown = [words[name].format(f"{limit:,}" if limit < 2**40 else "2^63") for name, limit in limits.items()]
    return ", ".join([names.get(kind, "file names"), *shown])


def default(field: FieldInfo) -> str:
    """A default as YAML would write it."""
    if field.is_required():
        return "required"
    given = field.default
    return yaml.safe_dump(list(given) if isinstance(given, tuple) else given, default_flow_style=True).split("\n")[0]


def settings() -> str:
    """Each setting, a table for each section, presets before those of the model."""
    missing = [
        f"src/dragoman/config.py: {name} has no description" for name, field in each_setting() if not field.description
    ]
    if missing:
        raise BrokenDocsError(missing)
    found: dict[str, list[tuple[object, ...]]] = {"": [], "model": [], "data": [], "train": [], "decode": []}
    for name, field in each_setting():
        section, _, own = name.rpartition(".")
        changes = section == "decode" or (section == "train" and own in RESUMABLE)
        row = (
            f"`{name}`",
            f"`{default(field)}`",
            values(field),
            linked(field.description or ""),
            "yes" if changes else "no",
        )
        found[name.split(".")[0] if section else ""].append(row)
    head = "setting|default|values|meaning|may change on resume"
    parts = [table(head, found.pop(""))]
    for section, rows in found.items():
        parts.append(f"## {section}")
        if section == "model":
            parts.append(_presets())
        parts.append(table(head, rows))
    return "\n\n".join(parts)


def _presets() -> str:
    rows: list[tuple[object, ...]] = []
    for name, sizes in PRESETS.items():
        config = ModelConfig(preset=name, src_vocab_size=37_000, tgt_vocab_size=37_000)
        shapes = reference.parameter_shapes(config.model_dump()).values()
        n_parameters = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes)
        layers = f"{config.n_encoder_layers} + {config.n_decoder_layers}"
        rows.append(
            (
                f"`{name}`",
                sizes["d_model"],
                sizes["d_ff"],
                sizes["n_heads"],
                layers,
                config.dropout,
                f"{n_parameters:,}",
            )
        )
    text = "A `preset` sets the sizes; fields beside it win. `--set model.preset=base` replaces the sizes of the file."
    head = "preset|d_model|d_ff|n_heads|layers|dropout|parameters, joint vocabulary of 37,000"
    return f"{text}\n\n{table(head, rows)}"


# --- commands ---------------------------------------------------------------------------------------------------------


def each_command() -> dict[str, Any]:
    """The commands by name, as click has them."""
    return {name: load(name) for name in COMMANDS}


def commands() -> str:
    """Each command: what it does, its options in their groups, a recorded example, and more examples."""
    parts, problems = [], []
    for name, command in each_command().items():
        texts = [re.sub(r"\s+", " ", text) for text in (command.help or "").split("\n\n") if text.strip()]
        recorded = RECORDED / f"{name}.txt"
        if not texts:
            problems.append(f"src/dragoman/cli: {name} has no help")
        if not recorded.is_file():
            problems.append(f"{recorded.relative_to(ROOT)}: missing; write it with python -m docs.site record RUN")
            continue
        parts.append(f"## {name}\n\n" + "\n\n".join(escaped(text) for text in texts))
        parts.append(f"```console\n{recorded.read_text(encoding='utf-8').rstrip()}\n```")
        groups: dict[str, list[tuple[object, ...]]] = {}
        for each in command.params:
            if each.name == "help":
                continue
            if not each.help:
                problems.append(f"src/dragoman/cli: {name}: {each.name} has no help")
                continue
            is_argument = each.param_type_name == "argument"
            flags = f"`{each.metavar}`" if is_argument else _flags(each)
            group = "Arguments" if is_argument else getattr(each, "rich_help_panel", None) or "Options"
            groups.setdefault(group, []).append((flags, escaped(_with_default(each))))
        parts += [
            f"{group}\n\n{table('option|meaning', rows)}".replace(group, f"**{group}**", 1)
            for group, rows in groups.items()
        ]
        if name in RENAMED:
            names = ", ".join(f"`{former}` (now `{present}`)" for former, present in RENAMED[name].items())
            parts.append(f"Former names, which still work with a warning: {names}.")
        parts.append("More examples:\n\n```text\n" + "\n".join(COMMANDS[name].examples) + "\n```")
    if problems:
        raise BrokenDocsError(problems)
    return "\n\n".join(parts)


def _with_default(parameter: Any) -> str:
    """The help of an option with its default, which a terminal shows too, unless the text names one."""
    default, text = parameter.default, parameter.help
    if default in (None, False, (), [], "") or "(default" in text:
        return str(text)
    shown = f"{int(default):,}" if str(default).isdecimal() and int(default) > 9999 else default
    return f"{text.removesuffix('.')} (default: {shown})."


def _flags(option: Any) -> str:
    """How an option is written, with what it takes."""
    return ", ".join(f"`{name} {value_name(option)}`".replace(" `", "`") for name in option.opts)


# --- Python -----------------------------------------------------------------------------------------------------------


def python() -> str:
    """Each public name: its signature, its docstring, and its example."""
    parts, problems = [], []
    for name in sorted(dragoman.__all__, key=lambda name: (inspect.isclass(getattr(dragoman, name)), name.lower())):
        what = getattr(dragoman, name)
        example = ROOT / f"docs/reference/examples/{name}.py"
        if not (what.__doc__ or "").strip():
            problems.append(f"dragoman.{name} has no docstring")
        if not example.is_file():
            problems.append(f"{example.relative_to(ROOT)}: missing: each public name has an example")
            continue
        parts.append(f"## {name}\n\n{described(name, what)}")
        if inspect.isclass(what) and issubclass(what, Options):
            parts.append(declared(what))
        parts.append(f"```python\n{example.read_text(encoding='utf-8').rstrip()}\n```")
    if problems:
        raise BrokenDocsError(problems)
    return "\n\n".join(parts)


def declared(options: type[Options]) -> str:
    """The options that a class declares, with defaults, in their groups."""
    rows: list[tuple[object, ...]] = []
    for each in dataclasses.fields(options):
        about: Any = declaration_of(options, each.name)
        if not about.description:
            raise BrokenDocsError([f"{options.__name__}.{each.name} has no help"])
        rows.append(
            (f"`{each.name}`", f"`{default_of(each)!r}`", about.json_schema_extra["group"], escaped(about.description))
        )
    return table("option|default|group|meaning", rows)


# --- HTTP -------------------------------------------------------------------------------------------------------------


def http() -> str:
    """The routes of the server, from its OpenAPI document: what each takes, and what it answers."""
    spec = openapi()
    found: dict[str, list[str]] = {}
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["page"])[0]
            if not operation.get("summary"):
                raise BrokenDocsError([f"src/dragoman/serving: {method.upper()} {path} has no summary"])
            found.setdefault(tag, []).append(_operation(method, path, operation, spec))
    return "\n\n".join(f"## {tag}\n\n" + "\n\n".join(parts) for tag, parts in found.items())


def openapi() -> dict[str, Any]:
    """The OpenAPI document of a server with one pair of languages, of which nothing is loaded."""
    translator = SimpleNamespace(device=SimpleNamespace(type="cpu"))
    pairs = _NoPairs([SimpleNamespace(translator=translator, src="en", tgt="de")])
    app, _ = build_app(pairs, ServeOptions())  # type: ignore[arg-type]
    while not hasattr(app, "openapi"):  # what stands around the routes
        app = app.app
    return app.openapi()  # type: ignore[no-any-return]


class _NoPairs(list[Any]):
    sources = ("en",)
    targets = ("de",)


def _operation(method: str, path: str, operation: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    parts = [f"### {method.upper()} {path}", escaped(f"{operation['summary']}.".replace("..", "."))]
    rows: list[tuple[object, ...]] = [
        (f"`{each['name']}`", each["in"], _kind(each["schema"], spec), escaped(each.get("description", "")))
        for each in operation.get("parameters", ())
    ]
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(body["schema"], spec)
        required = schema.get("required", ())
        rows += [
            (f"`{name}`" + (", required" if name in required else ""), media.split("/")[-1], _kind(each, spec),
             escaped(_resolved(each, spec).get("description", each.get("description", ""))))
            for name, each in schema.get("properties", {}).items()
        ]  # fmt: skip
        break  # the other kinds of body hold the same
    if rows:
        parts.append(table("name|in|type|meaning", rows))
    return "\n\n".join(parts)


def _resolved(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        found: Any = spec
        for key in schema["$ref"].removeprefix("#/").split("/"):
            found = found[key]
        schema = found
    return schema


def _kind(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    schema = _resolved(schema, spec)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each, spec) for each in schema["anyOf"] if each.get("type") != "null"))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}), spec)}"
    return str(schema.get("type", "any"))


# --- the rest ---------------------------------------------------------------------------------------------------------


def error_tree() -> str:
    """The exceptions, each with what it means."""
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.DragomanError)]
    rows: list[tuple[object, ...]] = []
    for kind in sorted(kinds, key=lambda kind: (len(kind.__mro__), kind.__name__)):
        above = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
        rows.append((f"`{kind.__name__}`", above, (inspect.getdoc(kind) or "").replace("\n", " ")))
    return table("exception|is a|raised where", rows)


REACHED = {
    "multi30k": ("BLEU", "multi30k.json", "figures/scores/BLEU/mean", ".1f"),
    "multi30k-20min": ("BLEU", "minutes.json", "figures/runs/1/scores/BLEU", ".1f"),
    "multi30k-diverse": ("BLEU, mean of two seeds", "multi30k_diverse.json", "figures/scores/BLEU/mean", ".1f"),
}  # fmt: skip
"""What the configurations reached that were run here: the metric, and where its number is."""


def configurations() -> str:
    """Each file of configs/, whose comment says what it is for, with what it reached."""
    parts = []
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if not text.startswith("# "):
            raise BrokenDocsError([f"configs/{path.name}:1: no comment says what it is for"])
        reached = ""
        if path.stem in REACHED:
            metric, name, where, form = REACHED[path.stem]
            try:
                number = written(f"{name}:{where} as {form}")
            except (KeyError, IndexError, OSError) as error:
                raise BrokenDocsError(
                    [f"benchmarks/results/{name}: {where}, for configs/{path.name}: {error}"]
                ) from None
            reached = f"Reached: {metric} {number} ([{name}](../../benchmarks/results/{name})).\n\n"
        parts.append(f"## {path.name}\n\n{reached}```yaml\n{text.rstrip()}\n```")
    return "\n\n".join(parts)


def demo() -> str:
    """What the demo printed; of its test sentences the first."""
    printed = (RECORDED / "demo.txt").read_text(encoding="utf-8").rstrip()
    shown = re.sub(r"(^  [✓✗] .*\n)(?:  .*\n)+(?=\n)", r"\1...\n", printed, count=1, flags=re.MULTILINE)
    return f"```text\n{shown}\n```"


def formats() -> str:
    """Which variant of the model goes where."""
    return variants().replace("|  |", "| model |", 1)


def engines() -> str:
    """What each engine can do, asked of the code that decides it."""
    config = ModelConfig(src_vocab_size=8000, tgt_vocab_size=8000)
    model = build_model(config)
    bundle = SimpleNamespace(model=model, sizes=config)
    questions = {"beam and greedy search, n best": Needs()}
    questions |= {f"`--precision {name}`": Needs(precision=name) for name in ("fp32", "bf16", "int8")}
    questions |= {
        "`--sample`": Needs(sampling=True), "`--alignments`": Needs(alignments=True),
        "parsing": Needs(trees=True), "prefix, words, n-grams": Needs(constraints=True),
    }  # fmt: skip
    classes, models = [engine_class(name) for name in engine_names()], SimpleNamespace(bundles=(bundle,), model=model)
    several = SimpleNamespace(bundles=(bundle, bundle), model=Ensemble([model, model]))
    asked: list[tuple[str, Any, Needs]] = [(what, models, needs) for what, needs in questions.items()]
    asked.append(("`--ensemble`", several, Needs()))
    rows = [(what, *("no" if one.obstacle(of, needs) else "yes" for one in classes)) for what, of, needs in asked]
    return table("|".join(["what", *engine_names()]), rows)


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings, "commands": commands, "python": python, "http": http, "errors": error_tree,
    "configurations": configurations, "formats": formats, "engines": engines,
    "demo": demo,
}  # fmt: skip
