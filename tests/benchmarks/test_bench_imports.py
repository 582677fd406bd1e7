"""No benchmark imports what has moved, from dragoman or from another benchmark: few of them run in the tests."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

from benchmarks.harness.environments import ROOT

MODULES = sorted((ROOT / "benchmarks").rglob("*.py"))


def imports_of(path: Path) -> list[tuple[str, str]]:
    """Return (module, name) of every ``from module import name`` in a file."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    return [(str(node.module), alias.name) for node in nodes for alias in node.names]


def names_of(path: Path) -> set[str]:
    """Return the names that a file defines at its top level, without importing the packages that it needs."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    for module, name in imports_of(path):
        where = ROOT / module.replace(".", "/")
        if module.startswith("dragoman"):
            there = hasattr(importlib.import_module(module), name) or importlib.util.find_spec(f"{module}.{name}")
            assert there, (module, name)
        elif module.startswith("benchmarks") and where.is_dir():
            assert (where / f"{name}.py").is_file() or name in names_of(where / "__init__.py"), (module, name)
        elif module.startswith("benchmarks"):
            assert name in names_of(where.with_suffix(".py")) | {
                bound for _, bound in imports_of(where.with_suffix(".py"))
            }
