"""What an option is, and the groups of options that commands, functions and the configuration share.

    @option_group
    class SearchOptions(Options):
        beam_size: int | None = option(None, "Search", "Beam size.", ge=1, le=1000)

    SearchOptions(beam_size=5000)  # ConfigError: beam_size must be at most 1000, got 5000

An option is declared once: name, type, default, limits and help. The command line, the signatures of Python functions,
the configuration, HTTP requests, JSON schemas and the reference pages are made from the declaration. Every door words a
refusal with ``refusals``. Nothing here imports torch, nor anything that does.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, dataclass_transform, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from dragoman.arguments import checked, is_listable
from dragoman.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Precision = Literal["fp32", "bf16", "int8"]
PRECISIONS = get_args(Precision)
"""Precisions that translating has; training has no int8."""


# --- declaring --------------------------------------------------------------------------------------------------------


def option(
    default: Any, group: str, help: str, *, flag: str | None = None, metavar: str | None = None, **limits: Any
) -> Any:
    """Declare an option: its default, the group that shows it, its help text, and its limits, such as ``ge=1``.

    Args:
        flag: Its name on the command line, where that is another one; or several, with spaces between them.
        metavar: The name of its value there, where that is not its type.
    """
    shown = {"group": group, "flag": flag, "metavar": metavar}
    extra: dict[str, Any] = {name: text for name, text in shown.items() if text is not None}
    return Field(default, description=help, json_schema_extra=extra, **limits)


_CHECKED = ConfigDict(arbitrary_types_allowed=True, extra="forbid", allow_inf_nan=False)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def option_group(declared: type[T]) -> type[T]:
    """Make a class of declared options a frozen dataclass; its constructor refuses values with ``ConfigError``.

    An inherited option may get another default, or a type that leaves out None: limits and help stay as declared.
    """
    hints = get_type_hints(declared, include_extras=True)
    for name in inspect.get_annotations(declared):
        for base in declared.__mro__[1:]:
            inherited = getattr(base, "__pydantic_fields__", {}).get(name)
            if inherited is not None and not hasattr(hints[name], "__metadata__"):
                declared.__annotations__[name] = Annotated[hints[name], _without_default(inherited)]
                break
    made: Any = dataclass(frozen=True, kw_only=True, config=_CHECKED)(declared)
    check = made.__init__

    @functools.wraps(check)
    def construct(self: Any, **values: Any) -> None:
        try:
            check(self, **values)
        except ValidationError as error:
            raise ConfigError(refusals(error.errors(include_url=False), made.unknown_name)) from None
        except UnicodeEncodeError as error:  # pydantic reads text as UTF-8, which has no half of a surrogate pair
            texts = {name: value for name, value in values.items() if isinstance(value, str)}
            name = next((name for name, text in texts.items() if text in str(error.object)), "an option")
            got = texts.get(name, error.object)
            raise ConfigError(f"{name} must be text of whole characters, got {got!r}") from None

    made.__init__ = construct
    made.__doc__ = f"{without_options(inspect.cleandoc(made.__doc__ or ''))}\n\n{options_in_words(made)}"
    return made


def _without_default(declared: FieldInfo) -> Any:
    """Return the declaration of an option for a group with another default, which the help does not name."""
    help = (declared.description or "").partition(" (default: ")[0].rstrip(".") + "."
    limits = {name: getattr(about, name) for about in declared.metadata for name in _LIMITS if hasattr(about, name)}
    return Field(description=help, json_schema_extra=declared.json_schema_extra, **limits)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all groups of options."""

    hints: ClassVar[Mapping[str, str]] = {}
    """Advice for names that are no options, but that people try."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the options, in the order of their declaration."""
        return tuple(field.name for field in dataclasses.fields(cls))

    @classmethod
    def of(cls, options: Self | None, changes: Mapping[str, Any]) -> Self:
        """Return ``options``, or the defaults, with ``changes``.

        Raises:
            ConfigError: A name is unknown (the nearest is named), or a value impossible.
        """
        if options is not None and not isinstance(options, cls):
            raise ConfigError(f"options must be {cls.__name__}(...), got {options!r}: or give the options by name")
        return cls(**changes) if options is None else dataclasses.replace(options, **changes)

    @classmethod
    def taken_from(cls, changes: dict[str, Any]) -> Self:
        """Take the options of this group out of ``changes``, and return them.

        Raises:
            ConfigError: A value is impossible.
        """
        return cls(**{name: changes.pop(name) for name in cls.names() if name in changes})

    def refuse_given(self, names: Collection[str]) -> None:
        """Refuse options that a user gave though they have no effect here, also where their values are the defaults.

        Args:
            names: Names of the options that were given.

        Raises:
            ConfigError: One of them has no effect; a group that has such options says so.
        """

    def of_group(self, group: type[Options]) -> dict[str, Any]:
        """Return the values of the options that ``group`` has, by name."""
        return {name: getattr(self, name) for name in group.names()}

    @classmethod
    def unknown_name(cls, path: Sequence[str]) -> str:
        """Return the refusal of a name that is no option."""
        return f"unknown option {path[-1]}: {cls.hints.get(path[-1]) or nearest(path[-1], cls.names())}"

    def has_both_sides(self, text: str, src: str, tgt: str) -> bool:
        """Return True if the options ``src`` and ``tgt``, the two files of a parallel text, are given.

        Raises:
            ConfigError: Only one of them is given.
        """
        is_given = [getattr(self, name) is not None for name in (src, tgt)]
        if is_given[0] != is_given[1]:
            raise ConfigError(f"give both sides of {text}: {flags(src, tgt)}")
        return is_given[0]

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: Any, info: Any) -> Any:
        return no_switch_for_a_number(value, cls.__pydantic_fields__[info.field_name].annotation)  # type: ignore[attr-defined]


def no_switch_for_a_number(value: Any, annotation: Any) -> Any:
    """Return ``value``, or the name of a boolean where a number is wanted: to Python ``True`` is the number 1."""
    kinds = {annotation, *get_args(annotation)}
    return str(value).lower() if isinstance(value, bool) and kinds & {int, float} and not kinds & {bool, str} else value


def list_of_settings(overrides: Any) -> Any:
    """Return the value of an option ``overrides`` as a tuple; refuse a single text."""
    if isinstance(overrides, str):
        raise must(f"be a list of settings, such as [{overrides!r}]")
    return _as_tuple(overrides)


def one_or_several(paths: Any) -> Any:
    """Return the value of an option that takes a path or several as a tuple."""
    return (paths,) if isinstance(paths, str | Path) else _as_tuple(paths)


def _as_tuple(values: Any) -> Any:
    return tuple(values) if is_listable(values) else values


def flags(*names: str) -> str:
    """Return options as the command line writes them: ``--valid-src and --valid-tgt``."""
    return " and ".join(f"--{name.replace('_', '-')}" for name in names)


# --- refusing ---------------------------------------------------------------------------------------------------------


def must(rule: str) -> PydanticCustomError:
    """Return the error that a check of one option raises: "NAME must RULE, got VALUE"."""
    return PydanticCustomError("rule", "must {rule}", {"rule": rule})


def not_among(name: str, value: object, words: Iterable[object]) -> ConfigError:
    """Return the error for a word that an option does not take."""
    return ConfigError(f"{name} must be {either(words)}, got {value!r}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question for the known name that is most like ``name``, or shares a word with it; else all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75 if len(name) > 4 else 0.6)  # 0.6: one of 3 letters
    if not close:
        akin = [each for each in known if _share_a_word(name, each) or _share_a_word(each, name)]
        close = difflib.get_close_matches(name, akin, n=1, cutoff=0.4)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def _share_a_word(name: str, other: str) -> bool:
    """Return True if a word of ``name`` stands in ``other``."""
    return any(len(word) > 3 and word in other for word in re.split(r"[^a-z\d]+", name.lower()))


_LIMITS = {"ge": "be {} or more", "gt": "be above {}", "le": "be at most {}", "lt": "be below {}"}
_KINDS = {
    "int_type": "a whole number", "int_parsing": "a whole number", "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of fewer digits", "float_type": "a number", "float_parsing": "a number",
    "finite_number": "a finite number", "bool_type": "true or false", "bool_parsing": "true or false",
    "string_type": "a text", "path_type": "a path", "tuple_type": "a list", "list_type": "a list",
    "dict_type": "a mapping", "invalid_key": "a name", "model_attributes_type": "a JSON object",
}  # fmt: skip
"""Kind of value that each of pydantic's problems asks for."""

_SECTIONS = ("model_type", "dataclass_type")
"""Problems of pydantic with a value that must hold further names."""

SECTION = "a section (a mapping of settings to values)"
"""Words for such a value in a configuration."""


def refusals(
    problems: Iterable[Mapping[str, Any]], unknown_name: Callable[[Sequence[str]], str], section: str = SECTION
) -> str:
    """Return one sentence for all that pydantic found wrong: "NAME must be ..., got VALUE", parts joined by "; ".

    Args:
        problems: As ``ValidationError.errors()`` gives them.
        unknown_name: Returns the refusal of a name that is not known, given its path.
        section: Words for a value that holds further names.
    """
    rules: dict[str, list[str]] = {}
    values: dict[str, str] = {}
    sentences: dict[str, None] = {}
    for problem in problems:
        if problem["type"] == "value_error":  # a check of ours wrote the whole sentence
            sentences[str(problem["ctx"]["error"])] = None
            continue
        if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            sentences[unknown_name([*_path(problem["loc"][:-1]), printable(problem["loc"][-1])])] = None
            continue
        name = ".".join(_path(problem["loc"])) or "the value"
        if problem["type"] == "too_short" and len(problem["input"]) >= problem["ctx"]["min_length"]:
            continue  # its entries are wrong, which is said already
        if problem["type"] == "missing":
            sentences[f"{name} is missing"] = None
            continue
        rules.setdefault(name, []).append(_rule(problem, section))
        values[name] = _value(problem)
        sentences[name] = None
    return "; ".join(
        f"{each} must {_joined(rules[each])}, got {values[each]}" if each in rules else each for each in sentences
    )


def _joined(rules: Sequence[str]) -> str:
    """Join what the branches of a union want: "be a path or a text"."""
    return either([rules[0], *dict.fromkeys(rule.removeprefix("be ") for rule in rules[1:])])


def _rule(problem: Mapping[str, Any], section: str) -> str:
    """Return what a value must be."""
    context = problem.get("ctx", {})
    for limit, words in _LIMITS.items():
        if limit in context:
            return words.format(f"{context[limit]:.15g}")
    if problem["type"] == "rule":
        return str(context["rule"])
    if problem["type"] == "literal_error":
        return f"be {context['expected'].replace(repr(''), 'empty').replace(chr(39), '')}"
    if "min_length" in context or "max_length" in context:
        bound = f"{context['min_length']} or more" if "min_length" in context else f"at most {context['max_length']}"
        return f"have {bound} {'characters' if isinstance(problem['input'], str) else 'entries'}"
    kind = section if problem["type"] in _SECTIONS else _KINDS.get(problem["type"])
    return f"be {kind}" if kind else f"be valid ({problem['msg']})"


def _value(problem: Mapping[str, Any]) -> str:
    """Return a refused value as the option's type has it: of a number 11.0, whether it came as 11 or as "11"."""
    value, context = problem["input"], problem.get("ctx", {})
    limit = next((context[name] for name in _LIMITS if name in context), None)
    shown = repr(value if limit is None else _as_number(value, type(limit)))
    return shown if len(shown) <= 200 else f"{shown[:200]} ..."


def _as_number(value: Any, kind: type[Any]) -> Any:
    """Return a value as a number of a kind, of which it was read; as it came if Python does not read it."""
    if kind is int and isinstance(value, str):
        value = value.partition(".")[0]  # pydantic reads "5.0" as 5, and Python's int does not
    try:
        return kind(value)
    except (ArithmeticError, TypeError, ValueError):
        return value


_BRANCHES = {"str", "int", "float", "bool", "path", "none", "any"}


def _path(location: Sequence[str | int]) -> list[str]:
    """Return the names on the way to a value, without pydantic's labels for the branches of a union."""
    return [
        printable(part) for i, part in enumerate(location)
        if isinstance(part, int) or not i or (re.fullmatch(r"\w+", part) and part not in _BRANCHES)
    ]  # fmt: skip


def printable(part: str | int) -> str:
    """Return a name as a message shows it."""
    return str(part) if str(part).isprintable() else repr(part)


def either(words: Iterable[object]) -> str:
    """Return words as a choice: "a, b or c"."""
    *first, last = map(str, words)
    return f"{', '.join(first)} or {last}" if first else last


# --- using ------------------------------------------------------------------------------------------------------------


_SECTION = "Options:"
"""Heading of the section of a docstring that explains the options."""


class _OptionParameter(inspect.Parameter):
    """Parameter that a group of options declares."""


class ShortSignature(inspect.Signature):
    """Signature that has every option, for completion, and is printed without them, for ``help()``."""

    def __str__(self) -> str:
        """Return the function's own parameters without their types; ``**changes`` stands for all options."""
        return self.format()

    def format(self, **_: Any) -> str:
        """Return what ``str`` returns, whatever width is wanted."""
        texts = []
        for parameter in self.parameters.values():
            if isinstance(parameter, _OptionParameter):
                continue
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in texts:
                texts.append("*")
            star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
            has_default = parameter.default is not inspect.Parameter.empty
            texts.append(f"{star}{parameter.name}" + (f"={parameter.default!r}" if has_default else ""))
        return f"({', '.join([*texts, '**changes'])})"


def takes(*declared: type[Any]) -> Callable[[F], F]:
    """Give a function whose last parameter is ``**changes`` the options of each of ``declared``.

    Completion shows them as parameters, and ``help()`` explains each at the end of the docstring. The function itself
    still gets a mapping of those that were given. Its own arguments are checked: see ``arguments.checked``.
    """

    def decorate(function: F) -> F:
        own = inspect.signature(function, eval_str=True)  # types, as those of the options are, and not their names
        named = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {parameter.name for parameter in named}
        shown = [parameter for group in declared for parameter in _parameters(group) if parameter.name not in names]
        call = checked(function)
        call.__signature__ = ShortSignature([*named, *shown], return_annotation=own.return_annotation)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{options_in_words(*declared, but=names)}"
        return call

    return decorate


def without_options(text: str) -> str:
    """Return a docstring without the section that explains the options."""
    return text.partition(f"\n\n{_SECTION}\n")[0]


def options_in_words(*declared: type[Any], but: Collection[str] = ()) -> str:
    """Return a section of a docstring that explains each option: its name, its default and its help.

    Args:
        but: Names of options that are left out.
    """
    lines = [_SECTION]
    for group in declared:
        for field in dataclasses.fields(group):
            if field.name in but:
                continue
            help, default = declaration_of(group, field.name).description or "", default_of(field)
            shown = "" if default is None or "(default" in help else f" (default: {default!r})"
            lines += textwrap.wrap(
                f"{field.name}: {help.rstrip('.')}{shown}.", 100, initial_indent="    ", subsequent_indent="        "
            )
    return "\n".join(lines)


def _parameters(declared: type[Any]) -> list[_OptionParameter]:
    hints = get_type_hints(declared)
    return [
        _OptionParameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default_of(field), annotation=hints[field.name]
        )
        for field in dataclasses.fields(declared)
    ]


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a declared option, whether or not pydantic has wrapped it."""
    return getattr(field.default, "default", field.default)


def declaration_of(declared: type[Any], name: str) -> FieldInfo:
    """Return help, limits and display of an option."""
    return declared.__pydantic_fields__[name]


def json_schema(declared: type[Any]) -> dict[str, Any]:
    """Return the JSON schema of declared options."""
    schema = TypeAdapter(declared).json_schema()
    schema["description"] = without_options(schema.get("description", ""))
    return schema


MOST_BEAM = 1000
"""Widest beam."""


# --- groups that several share ----------------------------------------------------------------------------------------


@option_group
class SearchOptions(Options):
    """Settings of a search; None means the run's own, which its section ``decode`` has."""

    beam_size: int | None = option(
        None, "Search", "Beam size; 1 is greedy search (default: the run's).", ge=1, le=MOST_BEAM
    )
    length_penalty: float | None = option(
        None, "Search", "Length penalty alpha, as in GNMT (default: the run's).", ge=0, le=10
    )
    length_penalty_form: Literal["gnmt", "power"] | None = option(
        None,
        "Search",
        "gnmt: ((5 + n) / 6) ** alpha; power: n ** alpha, as elsewhere (default: the run's).",
        metavar="FORM",
    )
    patience: float | None = option(
        None,
        "Search",
        "Patience factor: stop after patience x beam size finished hypotheses; 1 is the usual rule; without it "
        "search until no better hypothesis is possible (default: the run's).",
        gt=0,
        le=1000,
    )
    batch_tokens: int | None = option(
        None,
        "Speed",
        "Batch size in tokens, padding included (default: the run's; a search on a CPU takes less).",
        ge=1,
    )


@option_group
class SamplingOptions(Options):
    """Number of translations of a line, and settings of sampling instead of searching."""

    n_best: int = option(1, "Search", "Number of translations per line.", ge=1, le=1000)
    sample: bool = option(False, "Sampling", "Sample from the model's distribution instead of searching.")
    temperature: float | None = option(
        None, "Sampling", "Sampling temperature; below 1 sharpens the distribution (default: 1).", ge=0.01, le=100
    )
    top_k: int | None = option(
        None, "Sampling", "Top-k sampling: sample from the k most probable tokens (default: 0, all).", ge=0
    )
    top_p: float | None = option(
        None,
        "Sampling",
        "Nucleus sampling: sample from the smallest set of tokens with this total probability.",
        gt=0,
        le=1,
    )
    seed: int | None = option(None, "Sampling", "Random seed for sampling (default: 0).")

    @model_validator(mode="after")
    def _check_sampling(self) -> Self:
        given = [name for name in ("temperature", "top_k", "top_p", "seed") if getattr(self, name) is not None]
        if given and not self.sample:
            raise ValueError(f"{', '.join(given)}: only for sampling; give sample too")
        for name in ("beam_size", "patience"):
            if self.sample and getattr(self, name, None) is not None:
                raise ValueError(f"sample draws instead of searching, so {name} has no effect: leave out one of them")
        return self


@option_group
class LanguageOptions(Options):
    """Languages to translate between, of a model with several."""

    to: str | None = option(None, "Languages", "Target language, of a model with several, such as fr.")
    from_lang: str | None = option(
        None,
        "Languages",
        "Source language, of a model with several; a pair it was never trained on is warned of.",
        flag="--from",
    )


@option_group
class DeviceOptions(Options):
    """Device to compute on."""

    device: Literal["auto", "cpu", "cuda"] = option("auto", "Speed", "Device: auto, cpu or cuda.")


@option_group
class MachineOptions(DeviceOptions):
    """Device and threads to compute with."""

    threads: int | None = option(None, "Speed", "Threads on a CPU (default: one for each core).", ge=1)


@option_group
class QuietOptions(Options):
    """Amount of progress that a command reports."""

    quiet: bool = option(False, "Output", "Nothing on stderr but errors.")
