"""What a reader of the code meets: lines of code, docstrings and comments; words that say nothing; named toolkits.

    python -m benchmarks.words                    # of this checkout
    python -m benchmarks.words --root ../old      # of another one

Counts of text, none of time. A docstring counts as opening badly if it begins with a question word or a bare genitive.
A name counts as saying nothing if it is one of ``EMPTY`` and lives for more than three lines (CONTRIBUTING.md).
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
OPENERS = re.compile(r"(What|Whether|Which|Where|How|Who|Of|By which|That|As)\b")
EMPTY = {"found", "one", "each", "said", "asked", "told", "given", "kept", "ours", "rest"}
STAYS = 3
"""Lines that a name may live without saying what it is."""
MANY = 5
"""Most parameters that need no excuse."""
TOOLKITS = re.compile(r"ctranslate2|hugging ?face|transformers\b|onnx|argos|marian", re.IGNORECASE)
APART = re.compile(r"lab/|formats/|engines/|toolkits/\w+/")
"""Where toolkits may be named: the laboratory, and their own folders of then and now."""


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines of all strings that stand alone."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def names_that_stay(tree: ast.AST, names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each of ``names`` that is used more than ``STAYS`` lines below where it is bound."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        bound: dict[str, int] = {}
        last: dict[str, int] = {}
        for node in ast.walk(scope):
            if isinstance(node, ast.arg) and node.arg in names:
                bound.setdefault(node.arg, node.lineno)
            if isinstance(node, ast.Name) and node.id in names:
                if isinstance(node.ctx, ast.Store):
                    bound.setdefault(node.id, node.lineno)
                last[node.id] = max(last.get(node.id, 0), node.lineno)
        yield from ((line, name) for name, line in bound.items() if last.get(name, line) - line > STAYS)


def long_lists(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield number of parameters and ``LINE NAME`` of each function that has more than ``MANY``.

    Overloads, self and cls do not count.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list):
            continue
        arguments = node.args
        names = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        names += [arg.arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
        count = len([name for name in names if name not in ("self", "cls")])
        if count > MANY:
            yield count, f"{node.lineno} {node.name}"


def figures(root: Path) -> dict[str, Any]:
    """Return the counts of a checkout."""
    package = root / "src/dragoman"
    counts = dict.fromkeys(("lines", "code_lines", "docstring_lines", "comment_lines", "files"), 0)
    openings = names = 0
    lists: list[int] = []
    toolkits: list[str] = []
    for path in sorted(package.rglob("*.py")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(package).as_posix()
        tree, lines = ast.parse(text), text.splitlines()
        strings = docstring_lines(tree)
        comments = [n for n, line in enumerate(lines, 1) if line.strip().startswith("#") and n not in strings]
        blank = [n for n, line in enumerate(lines, 1) if not line.strip() and n not in strings]
        counts["files"] += 1
        counts["lines"] += len(lines)
        counts["docstring_lines"] += len(strings)
        counts["comment_lines"] += len(comments)
        counts["code_lines"] += len(lines) - len(strings) - len(comments) - len(blank)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                openings += bool(OPENERS.match(ast.get_docstring(node) or ""))
        names += len(list(names_that_stay(tree, EMPTY)))
        lists += [count for count, _ in long_lists(tree)]
        if not APART.match(name):
            code = ((n, line.split("  #")[0]) for n, line in enumerate(lines, 1) if n not in {*strings, *comments})
            toolkits += [f"{name}:{n}" for n, line in code if TOOLKITS.search(line)]
    return {
        **counts,
        "docstrings_that_open_with_a_question_or_a_bare_genitive": openings,
        "names_that_say_nothing": names,
        "functions_with_more_than_5_parameters": len(lists),
        "longest_list_of_parameters": max(lists),
        "lines_of_code_that_name_a_toolkit_outside_its_folder": toolkits,
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=HERE, help="the checkout to look at")
    parser.add_argument("--data", type=Path, help="not used: all measurements take it")
    print(json.dumps(figures(parser.parse_args().root.resolve()), indent=2))


if __name__ == "__main__":
    main()
