"""Calls of every public function and method with one impossible argument: how many end in an error of Python.

    python -m benchmarks.bad_arguments before RUN    ``after`` for the state after a change; RUN is any trained run

The calls are made from the signatures of all public names, so that a new function or parameter is tried at once. Only
the values that make a call possible are written down here. A call must be refused with one sentence, or succeed.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dragoman
from benchmarks.scripts_record import record
from dragoman.evaluation import metrics
from dragoman.options import Options
from dragoman.translation.translator import Translator


class NeitherTextNorNumber:
    """A value of a type that no function knows."""

    def __init__(self, *_: object) -> None:
        """Take anything, as a callback must."""

    def __repr__(self) -> str:
        return "<neither text nor number>"


LONGEST_MESSAGE = 400
"""Most characters of a refusal, in one line."""

BAD: dict[str, Callable[[], object]] = {
    "None": lambda: None,
    "whole number": lambda: 3,
    "negative number": lambda: -1,
    "fraction": lambda: 2.5,
    "NaN": lambda: float("nan"),
    "switch": lambda: True,
    "bytes": lambda: b"A dog runs.",
    "mapping": lambda: {"A dog runs.": "x"},
    "number as key": lambda: {3: 4},
    "set": lambda: {"A dog runs."},
    "generator": lambda: (text for text in ["A dog runs."]),
    "generator of numbers": lambda: (number for number in [3]),
    "object": NeitherTextNorNumber,
    "function": lambda: NeitherTextNorNumber,
    "list with None": lambda: ["A dog runs.", None],
    "list with NaN": lambda: ["A dog runs.", float("nan")],
    "list of bytes": lambda: [b"A dog runs."],
    "list of lists": lambda: [["A dog runs."]],
    "array of text": lambda: np.array(["A dog runs."]),
    "array of objects": lambda: np.array(["A dog runs.", None], dtype=object),
    "array of numbers": lambda: np.array([1.5, 2.5]),
    "array without axes": lambda: np.array("A dog runs."),
    "text with half a character": lambda: "A dog\udc80",
    "text with a zero byte": lambda: "A dog\0",
}
"""Values that hardly any parameter takes, each made anew for a call."""


@dataclass(frozen=True)
class Public:
    """One public function or method, with arguments that it accepts."""

    name: str
    call: Callable[..., object]
    good: dict[str, object]

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Its own parameters, without the options that ``options.takes`` adds: see ``option_groups``."""
        own = inspect.unwrap(getattr(self.call, "__func__", self.call))
        code = getattr(own, "__code__", None)
        parameters = inspect.signature(self.call).parameters.values()
        if code is None:
            return list(parameters)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return [parameter for parameter in parameters if parameter.name in names]


NOT_CALLED = {"Config", "ModelConfig", "TrainOptions", "TranslateOptions", "Transformer"}
"""Classes whose values pydantic checks (``test_declared_options`` tries them), and the model, which takes tensors."""

RECORDS = {"Events", "Note", "Scored", "Translation"}
"""Records that dragoman makes; ``Events`` is tried as a whole."""


def public_calls(run: Path, folder: Path) -> Iterator[Public]:
    """Yield every public function, and every public method of ``Translator`` and ``Glossary``.

    Args:
        run: A trained run.
        folder: Empty folder for the files of the calls.
    """
    lines = folder / "lines.txt"
    lines.write_text("\n", encoding="utf-8")  # blank, so that accepted calls cost no search
    translator = Translator.load(run, "cpu")
    good: dict[str, object] = {
        "run": run, "a": run, "b": run, "forward": run, "teachers": run, "source": folder / "none", "path": run,
        "src": lines, "ref": lines, "tgt": lines, "text": "A dog runs.", "texts": [""], "to": None,
        "sources": [""], "targets": [""], "translator": translator, "folder": folder / "none",
        "plan": translator.plan(), "translations": [dragoman.Translation("x", 0.0, n_tokens=0)], "name": "stdin",
        "hyps": ["x"], "refs": ["x"], "tgt_lang": "de", "metrics": metrics.select_metrics(), "quiet": True,
        "n_samples": 10, "engine": translator.plan().engine, "stream": io.BytesIO(), "terms": [("dog", "Hund")],
    }  # fmt: skip
    for name in dragoman.__all__:
        public = getattr(dragoman, name)
        if inspect.isfunction(public):
            yield Public(name, public, good)
        elif not (name in NOT_CALLED or name in RECORDS or issubclass(public, Exception)):
            yield from _of_class(name, public, translator, good)
    for function in (metrics.bleu, metrics.chrf, metrics.ter, metrics.scores, metrics.sentence_chrf):
        yield Public(f"metrics.{function.__name__}", function, good)


def _of_class(name: str, public: type, translator: Translator, good: dict[str, object]) -> Iterator[Public]:
    own = translator if public is Translator else dragoman.Glossary([("dog", "Hund")])
    if public is dragoman.Glossary:
        yield Public(name, public, good)
    for method, _ in inspect.getmembers(public, callable):
        if not method.startswith("_"):
            glossary = {"path": good["src"], "source": {"dog": "Hund"}} if public is dragoman.Glossary else {}
            yield Public(f"{name}.{method}", getattr(own, method), good | glossary)


def tried(run: Path, folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield function, parameter, name of the value and what is wrong ("": nothing) of every call."""
    for public in public_calls(run, folder):
        for parameter in public.parameters:
            for number, (name, make) in enumerate(BAD.items()):
                out = folder / f"{public.name}-{parameter.name}-{number}"
                yield public.name, parameter.name, name, outcome(public, parameter, make(), out)
    for group in dict.fromkeys(option_groups(Options)):
        for option in group.names():
            for name, make in BAD.items():
                yield group.__name__, option, name, refusal(lambda g=group, o=option, m=make: g(**{o: m()}))  # type: ignore[misc]


def option_groups(base: type[Options]) -> Iterator[type[Options]]:
    """Yield every group of options of the package."""
    for group in base.__subclasses__():
        if group.__module__.startswith("dragoman."):
            yield group
            yield from option_groups(group)


def outcome(public: Public, parameter: inspect.Parameter, value: object, out: Path) -> str:
    """Call a function with one impossible argument; return what is wrong with the outcome, or ""."""
    needed = {
        other.name: out if other.name == "out" else public.good[other.name]
        for other in public.parameters
        if other.name in public.good or other.name == "out" or other.default is inspect.Parameter.empty
    }

    def call() -> None:
        result = public.call(**needed | {parameter.name: value})
        if inspect.isgenerator(result):
            next(result, None)

    return refusal(call)


def refusal(call: Callable[[], object]) -> str:
    """Return what is wrong with how a call ends, or ""."""
    try:
        call()
    except dragoman.DragomanError as error:
        message = str(error)
        if "\n" in message or len(message) > LONGEST_MESSAGE or not message.strip():
            return f"{type(error).__name__} of {len(message)} characters: {message[:120]!r}"
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]
    return ""


def main() -> None:
    """Record how many calls end in an error of Python, by function, with an example each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("when", choices=["before", "after"])
    parser.add_argument("run", type=Path, help="any trained run")
    arguments = parser.parse_args()
    run = arguments.run.resolve()
    counts: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    examples: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for function, parameter, value, problem in tried(run, Path(folder)):
            counts[function] += 1
            if problem:
                wrong[function] += 1
                examples.setdefault(function, f"{parameter} = {value}: {problem}")
    figures = {
        "calls": sum(counts.values()),
        "that_end_in_an_error_of_python": sum(wrong.values()),
        "by_function": {name: f"{wrong[name]} of {n}" for name, n in counts.items()},
        "examples": examples,
    }
    inputs = {"rule": "every own parameter of every public function, and every option, with every value of BAD in turn"}
    record("bad_arguments", arguments.when, figures, inputs)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
