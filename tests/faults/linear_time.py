"""Measures every pattern and every parser on its adversarial texts: the largest exponent, and the text that has it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import patterns
from hostile_strings import recipes
from parsers import PARSERS, texts_for

from growth import MOST, exponent, is_suspect

REPEATED = {"sub": "finditer", "subn": "finditer", "split": "finditer", "findall": "finditer"}
"""Operations that search a whole text: they take the time of ``finditer``."""


@dataclass(frozen=True)
class Case:
    """A pattern with an operation, or a parser: a function, and the texts that it is measured on."""

    where: str
    call: Callable[[Any], Any]
    texts: Sequence[Callable[[int], Any]]
    names: Sequence[str]
    largest: int


@dataclass(frozen=True)
class Measured:
    """Largest exponent of a case (1.0 if no text was suspicious), and the text that it was measured on."""

    where: str
    exponent: float = 1.0
    text: str = ""


def sampled(texts: Sequence[Any], n: int) -> list[Any]:
    """Return about ``n`` texts: the first third of them, then others at equal distances."""
    first, others = list(texts[: n // 3]), texts[n // 3 :]
    return first + list(others[:: max(1, -(-len(others) // max(1, n - len(first))))])


def pattern_cases(n: int) -> Iterator[Case]:
    """Yield a case for each pattern and operation, with at most ``n`` texts."""
    seen = set()
    for entry in patterns.registered():
        is_bytes = isinstance(entry.pattern, bytes)
        made = sampled(recipes(entry.pattern, entry.flags), n)
        texts = [_as_bytes(recipe.text) if is_bytes else recipe.text for recipe in made]
        for operation in sorted({REPEATED.get(name, name) for name in entry.operations}):
            if (entry.pattern, entry.flags, operation) in seen:
                continue
            seen.add((entry.pattern, entry.flags, operation))
            where = f"{entry.where} {operation}"
            call = _call(entry.pattern, entry.flags, operation)
            yield Case(where, call, texts, [repr(recipe) for recipe in made], patterns.at_most(entry))


def _as_bytes(text: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda size: text(size).encode("latin-1", "replace")


def _call(pattern: str | bytes, flags: int, operation: str) -> Callable[[Any], Any]:
    compiled = re.compile(pattern, flags)
    if operation == "finditer":
        return lambda text: deque(compiled.finditer(text), 0)
    return getattr(compiled, operation)


def parser_cases(n: int) -> Iterator[Case]:
    """Yield a case for each parser, with at most ``n`` texts."""
    for parser in PARSERS:
        made = sampled(texts_for(parser), n)
        yield Case(parser.name, parser.call, [m.text for m in made], [repr(m) for m in made], parser.largest)


def measure(case: Case, size: int, most_suspects: int = 8) -> Measured:
    """Return the largest exponent of a case; only texts that grow too fast up to ``size`` are measured closely."""
    worst = Measured(case.where)
    for made, name in zip(case.texts, case.names, strict=True):
        if is_suspect(case.call, made, min(size, case.largest)):
            most_suspects -= 1
            value = exponent(case.call, made, case.largest)
            worst = max(worst, Measured(case.where, value, name), key=lambda measured: measured.exponent)
            if worst.exponent > MOST or not most_suspects:
                break
    return worst
