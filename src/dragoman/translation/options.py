"""How to translate: each option once, with its name, type, default, check and help.

The command line, the Python functions, the JSON schema and the reference page are made from ``TranslateOptions``; what
uses an option is the only other place that knows it. Nothing here imports torch, nor anything that does.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema, field_validator, model_validator
from pydantic.dataclasses import dataclass

from dragoman.errors import ConfigError
from dragoman.toolkits import NAMES
from dragoman.translation.notes import Events

Precision = Literal["fp32", "bf16", "int8"]
PRECISIONS = get_args(Precision)
F = TypeVar("F", bound=Callable[..., Any])


def option(group: str, help: str, *, flag: str | None = None, metavar: str | None = None, **limits: Any) -> Any:
    """Declare an option: the group it is shown in, its help text, and its limits, such as ``ge=1``.

    Args:
        flag: What it is called on the command line, where that is not its name.
        metavar: What its value is called there, where that is not its type.
    """
    shown: dict[str, Any] = {"group": group, "flag": flag, "metavar": metavar}
    return Field(
        description=help, json_schema_extra={name: one for name, one in shown.items() if one is not None}, **limits
    )


def list_of_settings(overrides: Any) -> tuple[Any, ...]:
    """The value of an option ``overrides``; a check of pydantic's, before its own."""
    if isinstance(overrides, str):
        raise ValueError(f"overrides takes a list of settings: write overrides=[{overrides!r}]")
    return tuple(overrides)


def one_or_several(paths: Any) -> tuple[Any, ...]:
    """The value of an option that takes a path or several; likewise."""
    return (paths,) if isinstance(paths, str | Path) else tuple(paths)


def flags(*names: str) -> str:
    """Options as they are written on the command line: ``--valid-src and --valid-tgt``."""
    return " and ".join(f"--{name.replace('_', '-')}" for name in names)


class Options:
    """Base of declared options: they are changed and refused by name."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The options, in the order in which they are declared."""
        return tuple(each.name for each in dataclasses.fields(cls))  # type: ignore[arg-type]

    @classmethod
    def of(cls, options: Self | None, changes: Mapping[str, Any]) -> Self:
        """``options``, or the defaults, with ``changes``.

        Raises:
            ConfigError: A name is unknown (the nearest is named), or a value impossible.
        """
        known = cls.names()
        for name in changes:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
                if name in Events.__dataclass_fields__:
                    hint = f"pass it as events=Events({name}=...)"
                raise ConfigError(f"unknown option {name}: {hint}")
        if options is not None and not isinstance(options, cls):
            raise ConfigError(f"options = {options!r}: give {cls.__name__}(...), or the options by name")
        try:
            return cls(**changes) if options is None else dataclasses.replace(options, **changes)  # type: ignore[type-var]
        except ValidationError as error:
            raise ConfigError("; ".join(_readable(problem) for problem in error.errors(include_url=False))) from None

    def has_both_sides(self, text: str, src: str, tgt: str) -> bool:
        """Whether the options ``src`` and ``tgt``, the two files of a parallel text, are given.

        Raises:
            ConfigError: One is, and the other is not.
        """
        given = [getattr(self, name) is not None for name in (src, tgt)]
        if given[0] != given[1]:
            raise ConfigError(f"give both sides of {text}: {flags(src, tgt)}")
        return given[0]


_LIMITS = {"ge": "{:g} or more", "gt": "above {:g}", "le": "at most {:g}", "lt": "below {:g}"}


def _readable(problem: Any) -> str:
    """One short line for a problem, in our words instead of pydantic's."""
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    name = problem["loc"][0] if problem["loc"] else ""
    if problem["type"] == "literal_error":
        return f"{name} = {problem['input']!r} is unknown: use {problem['ctx']['expected'].replace(chr(39), '')}"
    value = f"{name} = {problem['input']!r}"
    for limit, words in _LIMITS.items():
        if limit in problem.get("ctx", {}):
            return f"{value} must be {words.format(problem['ctx'][limit])}"
    return f"{value}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def takes(*declared: type[Any]) -> Callable[[F], F]:
    """Give a function whose last parameter is ``**changes`` the options of each of ``declared`` in its signature.

    Completion and ``help()`` show them; the function itself still gets a mapping of those that were given.
    """

    def decorate(function: F) -> F:
        own = inspect.signature(function, eval_str=True)  # types, as those of the options are, and not their names
        kept = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        shown = [each for one in declared for each in _parameters(one)]
        function.__signature__ = own.replace(parameters=[*kept, *shown])  # type: ignore[attr-defined]
        return function

    return decorate


def _parameters(declared: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(declared)
    return [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=default_of(each), annotation=hints[each.name]
        )
        for each in dataclasses.fields(declared)
    ]


def default_of(field: dataclasses.Field[Any]) -> Any:
    """The default of a declared option, whether or not pydantic has wrapped it."""
    return getattr(field.default, "default", field.default)


def json_schema(declared: type[Any]) -> dict[str, Any]:
    """The JSON schema of declared options."""
    return TypeAdapter(declared).json_schema()


BeamSize = Annotated[int | None, option("Search", "Beam size; 1 is greedy search (default: the run's).", ge=1, le=1000)]
Sample = Annotated[bool, option("Sampling", "Sample from the model's distribution instead of searching.")]
Temperature = Annotated[
    float | None,
    option("Sampling", "Sampling temperature; below 1 sharpens the distribution (default: 1).", ge=0.01, le=100),
]
TopK = Annotated[
    int | None, option("Sampling", "Top-k sampling: sample from the k most probable tokens (default: 0, all).", ge=0)
]
TopP = Annotated[
    float | None,
    option(
        "Sampling", "Nucleus sampling: sample from the smallest set of tokens with this total probability.", gt=0, le=1
    ),
]
Seed = Annotated[int | None, option("Sampling", "Random seed for sampling (default: 0).")]
"""Options that making text by translation has too."""


def check_sampling(options: Any, of_search: Mapping[str, Any]) -> None:
    """Refuse options of sampling without it, and those of searching with it.

    Args:
        of_search: Options that sampling leaves without an effect; None where one was not given.

    Raises:
        ValueError: Such an option was given.
    """
    given = [name for name in ("temperature", "top_k", "top_p", "seed") if getattr(options, name) is not None]
    if given and not options.sample:
        raise ValueError(f"{', '.join(given)}: only for sampling; give sample too")
    for name, value in of_search.items():
        if options.sample and value is not None:
            raise ValueError(f"sample draws instead of searching, so {name} has no effect: leave out one of them")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(arbitrary_types_allowed=True))
class TranslateOptions(Options):
    """All options of translating; None means the run's own setting."""

    beam_size: BeamSize = None
    length_penalty: Annotated[
        float | None, option("Search", "Length penalty alpha, as in GNMT (default: the run's).", ge=0, le=10)
    ] = None
    length_penalty_form: Annotated[
        Literal["gnmt", "power"] | None,
        option(
            "Search",
            "gnmt: ((5 + n) / 6) ** alpha; power: n ** alpha, as elsewhere (default: the run's).",
            metavar="FORM",
        ),
    ] = None
    patience: Annotated[
        float | None,
        option(
            "Search",
            "Patience factor: stop after patience x beam size finished hypotheses; 1 is the usual rule "
            "(default: the run's; if unset, search until no better hypothesis is possible).",
            gt=0, le=1000,
        ),
    ] = None  # fmt: skip
    allow_unk: Annotated[
        bool, option("Search", "Allow the unknown subword in translations, as Marian's --allow-unk; its text is ⁇.")
    ] = False
    to: Annotated[str | None, option("Output", "Target language, of a model with several, such as fr.")] = None
    from_lang: Annotated[
        str | None,
        option(
            "Output",
            "Source language, of a model with several; a pair it was never trained on is warned of.",
            flag="--from",
        ),
    ] = None
    n_best: Annotated[int, option("Output", "Number of translations per line.", ge=1)] = 1
    sentence_split: Annotated[
        bool,
        option("Output", "Split lines into sentences, which are translated one by one and joined again."),
    ] = True
    alignments: Annotated[bool, option("Output", "Return word alignments, read off attention weights.")] = False
    prefix: Annotated[
        str | tuple[str, ...],
        option("Words", "Target prefix: every translation starts with it."),
    ] = ""
    include: Annotated[
        tuple[str, ...], option("Words", "Positive constraint: word or phrase that every translation must contain.")
    ] = ()
    exclude: Annotated[
        tuple[str, ...], option("Words", "Negative constraint: word or phrase that no translation may contain.")
    ] = ()
    glossary: Annotated[
        Any,
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
        option("Words", "Glossary file: lines of 'source TAB target', or a source term alone to copy it."),
    ] = None
    no_repeat_ngram: Annotated[
        int, option("Words", "Forbid repeated n-grams of this many subwords; 0 allows them.", ge=0)
    ] = 0
    sample: Sample = False
    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = None
    guard: Annotated[
        bool,
        option(
            "Checks",
            "Detect and re-decode degenerate translations (loops, copies, empty, far too long, a part left out).",
        ),
    ] = True
    protect: Annotated[
        bool,
        option(
            "Checks", "Carry over numbers, addresses, placeholders, markup and emoji unchanged; name what is missing."
        ),
    ] = True
    engine: Annotated[str, option("Speed", f"Decoding engine: {', '.join(NAMES)} or auto.")] = "torch"
    precision: Annotated[
        Precision, option("Speed", f"Precision: {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}.")
    ] = "fp32"
    batch_tokens: Annotated[
        int | None, option("Speed", "Batch size in tokens, padding included (default: the run's).", ge=1)
    ] = None
    workers: Annotated[
        int | None,
        option("Speed", "Number of batches decoded in parallel, one CPU core each (default: one for each core).", ge=1),
    ] = None
    fast: Annotated[
        bool,
        option(
            "Speed",
            "Use the fastest engine, precision and stopping rule of this machine, the run's shortlist, and the beam "
            "that its distillation chose; some translations differ.",
        ),
    ] = False
    shortlist: Annotated[
        bool,
        option(
            "Speed",
            "Restrict each sentence to its lexical shortlist of target subwords, if the run has one; some translations "
            "differ.",
        ),
    ] = False
    deterministic: Annotated[
        bool, option("Speed", "Decode one sentence at a time, so that results are bit-identical in any batch.")
    ] = False

    @field_validator("include", "exclude", mode="before")
    @classmethod
    def _a_list_of_words(cls, words: Any, info: Any) -> Any:
        if isinstance(words, str):
            raise ValueError(f"{info.field_name} takes a list of words: write {info.field_name}=[{words!r}]")
        if not all(isinstance(word, str) and word.strip() for word in words):
            raise ValueError(f"{info.field_name} holds a blank word: leave it out")
        return tuple(words)

    @field_validator("prefix", mode="before")
    @classmethod
    def _a_prefix_or_one_for_each(cls, prefix: Any) -> Any:
        return prefix if isinstance(prefix, str) else tuple(prefix)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for word in (*self.prefixes, *self.include, *self.exclude):
            if any("\ud800" <= character <= "\udfff" for character in word):  # a byte of argv that is not UTF-8
                raise ValueError(
                    f"{word!r} contains an unpaired surrogate, which is not a character: give text in UTF-8"
                )
        if any("\n" in prefix for prefix in self.prefixes):
            raise ValueError("the prefix contains a line break, but a translation is a single line")
        if self.deterministic and self.batch_tokens is not None:
            raise ValueError("deterministic decodes each sentence alone: leave it out, or batch_tokens")
        if self.fast and (self.engine != "torch" or self.precision != "fp32" or self.patience is not None):
            raise ValueError("fast chooses engine, precision and patience: leave it out, or those")
        check_sampling(self, {"beam_size": self.beam_size, "patience": self.patience})
        if self.sample and self.shortlist:
            raise ValueError("sample draws from the whole vocabulary: leave out one of sample and shortlist")
        if self.sample and (self.include or self.glossary):
            raise ValueError("sampling cannot place words that must appear (include, glossary): leave out one of them")
        return self

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefix, or the prefixes of each text."""
        return (self.prefix,) if isinstance(self.prefix, str) else self.prefix

    @property
    def constrains(self) -> bool:
        """Whether decoding is constrained (prefix, words, n-grams); a glossary's terms are placed after it."""
        return bool(any(self.prefixes) or self.include or self.exclude or self.no_repeat_ngram)

    def refuse_others(self, used: Collection[str], what: str) -> None:
        """Refuse options that were given and have no effect.

        Raises:
            ConfigError: One that is not among those ``used`` is not its default.
        """
        for each in dataclasses.fields(self):
            if each.name not in used and getattr(self, each.name) != default_of(each):
                raise ConfigError(f"{each.name} has no effect on {what}: leave it out (used are {', '.join(used)})")


SCORING = (
    "length_penalty",
    "length_penalty_form",
    "batch_tokens",
    "precision",
    "alignments",
    "sentence_split",
    "to",
    "from_lang",
)
"""The options that scoring given translations has."""
