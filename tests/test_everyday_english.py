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
SHORT = 5
"""Words of a label, such as *What it costs.* before a paragraph; a statement has more."""
INVERTED = re.compile(
    r"(What|Whether|Which|Where|Who|How|Of)\b(?![^.]{0,40}: )|"
    r"That (they|it|he|she|a|an|the|this|these|there|all|no|each|every|some|most|two)\b"
)
"""Openings of a statement that puts a clause, or whose it is, before its subject; before a colon it is a label."""
BLOCKED = {
    r"says so": "name who says what",
    r"(is|are|was|were) said": "name who says it",
    r"of itself": "by itself, by default",
    r"rightly": "correctly",
    r"as ever": "as before",
    r"goes on": "continues",
    r"company": "other sentences of the batch",
    r"(speak|speaks|spoke) against": "limits",
    r"wants an?": "needs",
    r"hands? on": "passes on",
    r"besides?": "next to",
    r"made (text|data|sentences|translations|pairs)": "synthetic data",
    r"sense takes": "makes sense",
}
"""Words of the pages that a reader stumbles over, and what to say."""

DOCSTRINGS_LEFT = 0
NAMES_LEFT = 0
MEANINGLESS_LEFT = 4
LONG_SENTENCES_LEFT = 25
INVERTED_LEFT = 4
BLOCKED_LEFT = 0
FINISHED = ("docs/how-to/", "docs/start/", "docs/recipes/")
"""Folders in which none of these is left."""
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
    prose = re.sub(r"```.*?```|<!--.*?-->|^\|[^\n]*$", "", without_parts(text), flags=re.DOTALL | re.MULTILINE)
    sentences = re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose)
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
    assert not [place for place in places if place.startswith(FINISHED)]


def pages_for_users() -> Iterator[tuple[str, str]]:
    """Yield name and text of the pages that are not the project's own; decisions keep the words of their day."""
    for path in sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]):
        name = path.relative_to(ROOT).as_posix()
        if is_english_prose(path) and not name.startswith(("docs/project/", "docs/decisions/")):
            yield name, path.read_text(encoding="utf-8")


def statements(text: str) -> Iterator[str]:
    """Yield the sentences of a Markdown page that end with a full stop or a colon; labels, code and tables are out."""
    marked = r"```.*?```|^---$.*?^---$|<!--.*?-->|^\|[^\n]*$|^\$\$.*?^\$\$"
    prose = re.sub(marked, "", without_parts(text), flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=(?:[-*#]+|\d+\.) )", prose):
        plain = re.sub(r"^(?:[-*#]+|\d+\.) ", "", " ".join(block.split())).replace("*", "")
        for sentence in re.split(r"(?<=[.!?]) (?=[A-Z`\[(\"])", plain):
            if sentence.rstrip(')"').endswith((".", ":")) and len(sentence.split()) > SHORT:
                yield sentence


def test_statements_of_the_pages_begin_with_their_subject() -> None:
    places = [
        f"{name}: {sentence[:100]}"
        for name, text in pages_for_users() for sentence in statements(text) if INVERTED.match(sentence)
    ]  # fmt: skip
    assert len(places) <= INVERTED_LEFT, "\n".join(places)
    assert not [place for place in places if place.startswith(FINISHED)]


def test_words_that_a_reader_stumbles_over_become_fewer() -> None:
    places = [
        f"{name}: {word[0]!r}: write {instead!r}"
        for name, text in pages_for_users() for sentence in statements(text)
        for pattern, instead in BLOCKED.items() for word in re.finditer(rf"\b{pattern}\b", sentence, re.IGNORECASE)
    ]  # fmt: skip
    assert len(places) <= BLOCKED_LEFT, "\n".join(places)
    assert not [place for place in places if place.startswith(FINISHED)]


def test_inverted_statements_are_told_from_questions_and_labels() -> None:
    text = "# What is it?\n\nWhat it is, hardly anybody knows. Why? Where it is now, **that** is known.\n\n"
    text += "- Of these only one is *right*.\n- What to read there: [this](a.md).\n- **What it costs.** That is it.\n"
    text += "- That they\n  are there is clear.\n\n| What it is not is in a table. |\n|---|\n"
    assert [sentence for sentence in statements(text) if INVERTED.match(sentence)] == [
        "What it is, hardly anybody knows.", "Where it is now, that is known.", "Of these only one is right.",
        "That they are there is clear.",
    ]  # fmt: skip


def is_english_prose(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return not {"zh", "_build", "CHANGELOG.md"} & set(parts) and not path.name.endswith("zh-CN.md")


def test_blocks_have_comments() -> None:
    lines = [line for path in SRC.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    comments = [line for line in lines if re.match(r"\s*# (?!(fmt|type|noqa|---))", line)]
    assert len(comments) >= LEAST_COMMENTS
