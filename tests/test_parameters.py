"""How many things a function is told at once: counts that may only fall.

A list of more than five parameters is read twice and called wrong once: a frozen dataclass with good names takes its
place. Whoever makes one shorter lowers the number here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from dragoman.decoding.request import SearchBatch, SearchSettings
from dragoman.translation.plan import Plan

SRC = Path(__file__).resolve().parent.parent / "src/dragoman"
MANY = 5
"""Most parameters that need no excuse; self, cls and overloads are not counted."""

FUNCTIONS_WITH_MORE = 59
LONGEST = 8
FIELDS_OF_PLAN = 10


def long_lists() -> Iterator[tuple[int, str]]:
    """Yield the number of parameters and the name of each function that has more than ``MANY``."""
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_overload(node):
                continue
            arguments = node.args
            names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            names += [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
            count = len([name for name in names if name not in ("self", "cls")])
            if count > MANY:
                yield count, f"{path.relative_to(SRC)}:{node.lineno} {node.name}"


def is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list)


def test_long_lists_of_parameters_become_fewer_and_shorter() -> None:
    lists = sorted(long_lists(), reverse=True)
    shown = "\n".join(f"{count} {where}" for count, where in lists)
    assert len(lists) <= FUNCTIONS_WITH_MORE, f"a new function has more than {MANY} parameters:\n{shown}"
    assert lists[0][0] <= LONGEST, f"the longest list has grown:\n{shown}"


def test_what_travels_through_translation_and_search_stays_small() -> None:
    assert len(fields(Plan)) <= FIELDS_OF_PLAN
    assert len(fields(SearchSettings)) <= FIELDS_OF_PLAN
    assert len(fields(SearchBatch)) <= MANY
