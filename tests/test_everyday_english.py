"""Everyday English (CONTRIBUTING.md): what is left of names, docstrings and sentences of the former style may only become
less."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.words import EMPTY, OPENERS, names_that_stay

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src/dragoman"

MEANINGLESS = {"res", "tmp", "val", "obj", "item", "thing", "stuff", "foo", "data2", "result2"}
LONG = 30
"""Words of a sentence in the documentation."""
INVERTED = re.compile(r"[*(\"“]*(What|Which|Whose|Of|Where|That(?! (?:is|was|means)\b))\s")
"""Openings that put an object or a clause before the subject; questions may begin so."""
BLOCKED = re.compile(
    r"\b(says? so|said so|(?:is|are) said|of itself|rightly|as ever|(?:goes|go|went) on|sp(?:ea|o)ks? against|company"
    r"|wants? (?:a|an|the)|made text|stands? for|besides?)\b",
    re.IGNORECASE,
)
"""Words that no manual has: "report", "correctly", "continues", "needs", "synthetic", "next to" and the like say more."""
FINISHED = ("docs/how-to/", "docs/start/", "docs/recipes/")
"""Folders in which nothing of the former style is left."""

DOCSTRINGS_LEFT = 0
NAMES_LEFT = 0
MEANINGLESS_LEFT = 4
LONG_SENTENCES_LEFT = 29
INVERTED_LEFT = 73
BLOCKED_LEFT = 33
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


def sentences(text: str) -> list[str]:
    """Return the sentences of a Markdown page, each in one line; code, comments, tables and headings are left out."""
    prose = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^(\||#).*$", "", prose, flags=re.MULTILINE)
    prose = re.sub(r"^\s*([-*]|\d+\.)\s+", "\n\n", prose, flags=re.MULTILINE)  # points of a list
    return [" ".join(each.split()) for each in re.split(r"(?<=[.!?:;])[)\]*_]*\s+|\n\s*\n", prose) if each.strip()]


def long_sentences(text: str) -> list[str]:
    """Return the sentences of a page that have more than ``LONG`` words."""
    return [each for each in sentences(text) if len(each.split()) > LONG and re.search("[a-z]{3}", each)]


def inverted_sentences(text: str) -> list[str]:
    """Return the sentences of a page that begin with an object or a clause."""
    return [each for each in sentences(text) if INVERTED.match(each) and not each.endswith("?")]


def blocked_words(text: str) -> list[str]:
    """Return the words of a page that no manual has, each with what is around it."""
    prose = re.sub(r"^```.*?^```|`[^`]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(prose[max(0, hit.start() - 40) : hit.end() + 30].split()) for hit in BLOCKED.finditer(prose)]


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
    places = list(problems(long_sentences, "docs", "", "benchmarks/records"))
    assert len(places) <= LONG_SENTENCES_LEFT, "\n".join(places)
    assert not [place for place in places if place.startswith(FINISHED)]


@pytest.mark.parametrize(("look", "left"), [(inverted_sentences, INVERTED_LEFT), (blocked_words, BLOCKED_LEFT)])
def test_pages_for_users_lose_what_no_manual_has(look: Callable[[str], list[str]], left: int) -> None:
    places = [place for place in problems(look, "docs", "") if not place.startswith(("docs/decisions", "docs/project"))]
    assert len(places) <= left, "\n".join(places)
    assert not [place for place in places if place.startswith(FINISHED)]


def test_sentences_are_read_behind_tables_and_in_lists() -> None:
    text = "# Of a\n\n| a |\n|---|\n| b |\n\nWhere it is, goes on\nso.\n\n- What is it?\n- **Of it** is said: no.\n\n```\nOf b\n```\n"
    assert inverted_sentences(text) == ["Where it is, goes on so.", "**Of it** is said:"]
    assert len(blocked_words(text)) == 2
    assert long_sentences(f"| a |\n\n{'word ' * 31}\n") == [" ".join(["word"] * 31)]


def problems(look: Callable[[str], list[str]], *folders: str) -> Iterator[str]:
    """Yield FILE: TEXT of what is found in the English pages of folders, "" being those at the top."""
    for folder in folders:
        for path in sorted((ROOT / folder).glob("**/*.md" if folder else "*.md")):
            if is_english_prose(path):
                name = path.relative_to(ROOT).as_posix()
                yield from (f"{name}: {each[:100]}" for each in look(path.read_text(encoding="utf-8")))


def is_english_prose(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return not {"zh", "_build", "CHANGELOG.md"} & set(parts) and not path.name.endswith("zh-CN.md")


def test_blocks_have_comments() -> None:
    lines = [line for path in SRC.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    comments = [line for line in lines if re.match(r"\s*# (?!(fmt|type|noqa|---))", line)]
    assert len(comments) >= LEAST_COMMENTS
