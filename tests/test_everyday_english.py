"""Everyday English (CONTRIBUTING.md): what is left of docstrings and names that say nothing may only become less."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.words import EMPTY, OPENERS, names_that_stay
from docs.site.reference import without_parts

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src/dragoman"

MEANINGLESS = {"res", "tmp", "val", "obj", "item", "thing", "stuff", "foo", "data2", "result2"}
LONG = 30
"""Words of a sentence in the documentation."""

DOCSTRINGS_LEFT = 0
NAMES_LEFT = 0
MEANINGLESS_LEFT = 4
LONG_SENTENCES_LEFT = 20
LEAST_COMMENTS = 150
"""Whole-line comments: there are to be more, not fewer."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        yield path.relative_to(SRC).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of the docstrings of functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, ast.get_docstring(node) or ""


def long_sentences(text: str) -> list[str]:
    """Return the sentences of a Markdown page that have more than ``LONG`` words; code and tables are left out."""
    prose = re.sub(r"```.*?```|<!--.*?-->|^\|.*$", "", without_parts(text), flags=re.DOTALL | re.MULTILINE)
    sentences = re.split(r"(?<=[.!?:;])\s+|\n\s*\n", prose)
    return [
        " ".join(words.split()) for words in sentences if len(words.split()) > LONG and re.search("[a-z]{3}", words)
    ]


def test_docstrings_that_open_with_a_question_or_a_bare_genitive_become_fewer() -> None:
    openings = [
        f"{name}:{line} {text.splitlines()[0]}"
        for name, tree in trees() for line, text in docstrings(tree) if OPENERS.match(text)
    ]  # fmt: skip
    assert len(openings) <= DOCSTRINGS_LEFT, "\n".join(openings)


def test_names_that_say_nothing_become_fewer() -> None:
    for names, left in ((EMPTY, NAMES_LEFT), (MEANINGLESS, MEANINGLESS_LEFT)):
        places = [f"{name}:{line} {word}" for name, tree in trees() for line, word in names_that_stay(tree, names)]
        assert len(places) <= left, "\n".join(places)


def test_sentences_of_the_documentation_become_shorter() -> None:
    files = (*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("benchmarks/records/*.md"))
    pages = [path for path in files if is_english_prose(path)]
    places = [
        f"{path.relative_to(ROOT)}: {sentence[:100]}"
        for path in sorted(pages) for sentence in long_sentences(path.read_text(encoding="utf-8"))
    ]  # fmt: skip
    assert len(places) <= LONG_SENTENCES_LEFT, "\n".join(places)


def is_english_prose(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return not {"zh", "_build", "CHANGELOG.md"} & set(parts) and not path.name.endswith("zh-CN.md")


def test_blocks_have_comments() -> None:
    lines = [line for path in SRC.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    comments = [line for line in lines if re.match(r"\s*# (?!(fmt|type|noqa|---))", line)]
    assert len(comments) >= LEAST_COMMENTS
