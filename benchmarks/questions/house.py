"""How the code is laid out: files, levels, climbs back up, lengths, parameters. Figures of structure, none of time.

    python -m benchmarks.questions.house                     # of this checkout
    python -m benchmarks.questions.house --root ../old       # of another one, whose src is then imported

A line of text climbs back up whenever it returns to ``translator.py`` to be handed on. Counted are the functions of
other files that ``translator.py`` calls while it translates one line, less one; ``Translator.plan`` and what it calls
are left out, for no text has been touched by then (the first version had no plan: it decided on the way). The bundle
is a small one, written by the first version.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).parents[2]
BUNDLE = HERE / "tests/golden/bundle-v1"
LONG = 60
APART = ("lab", "reference", "phrasebook")
"""Left out of the number of lines, as no translation or training needs them."""


def levels(root: Path) -> list[list[str]]:
    """The packages and modules of each level, the lowest first."""
    tools = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(one["layers"] for one in tools["importlinter"]["contracts"] if one["type"] == "layers")
    return [re.findall(r"dragoman\.(\w+)", layer) for layer in reversed(layers)]


def functions(root: Path) -> Iterator[tuple[str, int, int]]:
    """Each function's name, its lines, and its parameters (without self and cls)."""
    for path in sorted((root / "src/dragoman").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                n = sum(arg.arg not in ("self", "cls") for arg in args)
                n += (node.args.vararg is not None) + (node.args.kwarg is not None)
                where = path.relative_to(root / "src/dragoman")
                yield f"{where}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1, n


def climbs(root: Path, text: str = "the dog sees a cat") -> list[str]:
    """To whom ``translator.py`` of the ``dragoman`` below ``root`` hands a text on, each once; see the head."""
    sys.path.insert(0, str(root / "src"))
    from dragoman import Translator

    package = str(root / "src/dragoman") + "/"
    found: dict[str, None] = {}

    def ours(frame: FrameType | None) -> str:
        return "" if frame is None else frame.f_code.co_filename.removeprefix(package)

    def look(frame: FrameType, event: str, arg: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(package):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(package):
            caller = caller.f_back
        deciding, above = False, caller
        while above is not None:
            deciding, above = deciding or above.f_code.co_name == "plan", above.f_back
        if not deciding and ours(caller).endswith("translator.py") and ours(frame) != ours(caller):
            found[f"{ours(frame)}:{frame.f_code.co_name}"] = None

    translator = Translator.load(BUNDLE, "cpu")
    translator.translate([text])  # what is loaded at first use is no part of the way
    sys.setprofile(look)
    try:
        translator.translate([text])
    finally:
        sys.setprofile(None)
    return list(found)


def figures(root: Path) -> dict[str, Any]:
    """All of it."""
    package = root / "src/dragoman"
    all_functions = list(functions(root))
    lines = sum(
        len(path.read_text(encoding="utf-8").split("\n")) - 1
        for path in package.rglob("*.py")
        if not set(path.parts) & set(APART)
    )
    long = sorted((f"{name} ({n})" for name, n, _ in all_functions if n > LONG))
    most = max(all_functions, key=lambda one: one[2])
    of_translate = next(n for name, _, n in all_functions if name.endswith("translator.py:translate"))
    return {
        "files_at_the_root": len(list(package.glob("*.py"))),
        "levels": len(levels(root)),
        "packages": len([path for path in package.rglob("__init__.py") if path.parent != package]),
        "lines_without_lab_reference_phrasebook": lines,
        "functions_over_60_lines": long,
        "parameters_of_translate": of_translate,
        "most_parameters": {"function": most[0], "parameters": most[2]},
        "climbs_of_one_line": len(handed_on := climbs(root)) - 1,
        "handed_on_to": handed_on,
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=HERE, help="the checkout to look at")
    parser.add_argument("--data", type=Path, help="not used: all measurements take it")
    root = parser.parse_args().root.resolve()
    print(json.dumps(figures(root), indent=2))


if __name__ == "__main__":
    main()
