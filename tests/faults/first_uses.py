"""Places of the code that make something at its first use: two threads may come there together.

The rule: a place is lazy if it sets an attribute, a global or an entry after it saw that there is none. It must hold a
lock, or stand in ``HARMLESS`` with the reason why making it twice changes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import dragoman

ROOMS = ("serving", "translation", "toolkits", "decoding", "languages", "fast", "budget.py", "bundle.py", "progress.py")
"""Parts of the package that several threads of a server use."""

LOCKS = ("lock", "making", "changing", "sharing", "planning", "changed", "counting", "alone", "one_at_a_time")
"""Words in the names of locks."""

ALONE = "one thread alone has the object"
PURE = "two threads make equal values, and one of them stays"
HARMLESS = {
    ("decoding/constraints.py", "_find", "self._answers"): PURE,
    ("languages/numbers.py", "take", "self._counts"): ALONE,
    ("serving/app.py", "described", "app.openapi_schema"): PURE,
    ("serving/jobs.py", "seconds", "self._seen"): PURE,
    ("serving/storage.py", "get", "self._values"): PURE,
    ("serving/watchdog.py", "_fail", "self.failure"): ALONE,
    ("toolkits/onnx/graph.py", "_rounded_product", "self._inputs"): ALONE,
    ("translation/keeping/cutting.py", "gap", "self._gaps"): ALONE,
    ("translation/note_report.py", "add", "self._remark_places"): ALONE,
}
"""File, function and name of each lazy place without a lock, with its reason."""


def lazy_places() -> Iterator[tuple[str, str, str]]:
    """Yield (file, function, name) of each lazy place without a lock."""
    root = Path(dragoman.__file__).parent
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")) if (root / room).is_dir() else [root / room]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                    for name in places_in(node):
                        yield str(path.relative_to(root)), node.name, name


def places_in(function: ast.FunctionDef) -> Iterator[str]:
    outer = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    assigned = [
        (ast.unparse(node.targets[0]), ast.unparse(node.value))
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
    ]
    for test, body in _unlocked_tests(function):
        for node in (own for statement in body for own in ast.walk(statement)):
            if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                place = target.value if isinstance(target, ast.Subscript) else target
                name = ast.unparse(place)
                # ``if self._x is None``, ``if key not in self._x``, and a local name that was read from it before.
                seen = {name, *(local for local, value in assigned if name in value and name != local)}
                is_shared = "." in name or name in outer
                if is_shared and any(isinstance(own, ast.expr) and ast.unparse(own) in seen for own in ast.walk(test)):
                    yield name


def _unlocked_tests(node: ast.AST, is_locked: bool = False) -> Iterator[tuple[ast.expr, list[ast.stmt]]]:
    """Yield the condition and the body of each ``if`` and ``while`` that tests for absence outside of a lock."""
    for child in ast.iter_child_nodes(node):
        locked = is_locked
        if isinstance(child, ast.With | ast.AsyncWith):
            held = " ".join(ast.unparse(item.context_expr).lower() for item in child.items)
            locked = is_locked or any(word in held for word in LOCKS)
        if isinstance(child, ast.If | ast.While) and not locked and _tests_absence(child.test):
            yield child.test, child.body
        yield from _unlocked_tests(child, locked)


def _tests_absence(test: ast.expr) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.NotIn):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return True
    return False
