"""No circle stands between files: imports inside functions and for type checkers alone count too.

The root of the package is left out: it names everything that is public, and all ask it for the version.
"""

from __future__ import annotations

import ast
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"


def module_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports() -> dict[str, set[str]]:
    """For each module of the package the modules of the package that it imports, anywhere in its file."""
    modules = {module_of(path): path for path in SRC.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                targets |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                # what is imported from a package may be one of its modules
                below = {f"{node.module}.{name.name}" for name in node.names}
                targets |= below & modules.keys() or {node.module}
        graph[module] = (targets & modules.keys()) - {module}
    return {module: targets - {"dragoman"} for module, targets in graph.items() if module != "dragoman"}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that can be reached from each other (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            at = stack.index(module)
            groups.append(stack[at:])
            del stack[at:]

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return [sorted(group) for group in groups if len(group) > 1]


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_no_circle_stands_between_files() -> None:
    assert circles(imports()) == []
