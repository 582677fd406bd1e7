"""How many things a function is told at once: counts that may only fall.

A list of more than five parameters is read twice and called wrong once: a frozen dataclass with good names takes its
place. Whoever makes one shorter lowers the number here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from benchmarks.words import MANY, long_lists
from dragoman.decoding.request import SearchBatch, SearchSettings
from dragoman.translation.plan import Plan

SRC = Path(__file__).resolve().parent.parent / "src/dragoman"
FUNCTIONS_WITH_MORE = 54
LONGEST = 8
FIELDS_OF_PLAN = 10


def all_long_lists() -> Iterator[tuple[int, str]]:
    """Yield the number of parameters and the place of each function that has more than ``MANY``."""
    for path in sorted(SRC.rglob("*.py")):
        for count, where in long_lists(ast.parse(path.read_text(encoding="utf-8"))):
            yield count, f"{path.relative_to(SRC)}:{where}"


def test_long_lists_of_parameters_become_fewer_and_shorter() -> None:
    lists = sorted(all_long_lists(), reverse=True)
    shown = "\n".join(f"{count} {where}" for count, where in lists)
    assert len(lists) <= FUNCTIONS_WITH_MORE, f"a new function has more than {MANY} parameters:\n{shown}"
    assert lists[0][0] <= LONGEST, f"the longest list has grown:\n{shown}"


def test_what_travels_through_translation_and_search_stays_small() -> None:
    assert len(fields(Plan)) <= FIELDS_OF_PLAN
    assert len(fields(SearchSettings)) <= FIELDS_OF_PLAN
    assert len(fields(SearchBatch)) <= MANY
