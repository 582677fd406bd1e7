"""The questions and the errata: each answer has its parts, both languages say the same, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.lab import EXPERIMENTS

DOCS = Path(__file__).resolve().parent.parent / "docs"
QUESTIONS = sorted(path for path in (DOCS / "understand/questions").glob("*.md") if path.name != "index.md")
PARTS = ["What was measured", "What the literature says", "Limits"]


def both() -> tuple[str, str]:
    """The errata in English and in Chinese; the Chinese one's links as if it lay beside the English one."""
    one, other = (
        (DOCS / folder / "errata.md").read_text(encoding="utf-8") for folder in ("understand", "zh/understand")
    )
    return one, re.sub(r"^---\n.*?\n---\n", "", other, flags=re.DOTALL).replace("](../../", "](../")


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_each_question_has_an_answer_a_measurement_the_literature_and_limits(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.match(r"# .+\?\n\n\*\*Answer\.\*\*", text)
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == PARTS
    assert all(part.strip() for part in re.split(r"^## .+$", text, flags=re.MULTILINE))


def test_the_index_lists_every_question_by_its_title() -> None:
    index = (DOCS / "understand/questions/index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(.+)\]\((\S+)\)$", index, flags=re.MULTILINE)
    assert sorted(name for _, name in listed) == [path.name for path in QUESTIONS]
    for title, name in listed:
        assert (DOCS / "understand/questions" / name).read_text(encoding="utf-8").startswith(f"# {title}\n")


def test_both_languages_of_the_errata_have_the_same_rows_links_and_numbers() -> None:
    one, other = both()
    for pattern in (r"^## ", r"^\|", r"`dragoman [a-z ]+`", r"https?://[^\s)）]+", r"\d[\d.,]*\d"):
        found = [sorted(re.findall(pattern, text, flags=re.MULTILINE)) for text in (one, other)]
        assert found[0] == found[1], pattern


def test_every_experiment_that_is_named_exists() -> None:
    texts = [*both(), *(path.read_text(encoding="utf-8") for path in QUESTIONS)]
    named = {name for text in texts for name in re.findall(r"`dragoman lab ([a-z]+)", text)}
    figures = {name for text in texts for name in re.findall(r"lab/([\w-]+)/[\w-]+\.svg", text)}
    assert len(named) > 10
    assert named <= EXPERIMENTS.keys()
    assert all((DOCS / "lab" / name / "numbers.json").is_file() for name in figures)


def test_each_row_of_the_errata_names_its_document() -> None:
    for text in both():
        rows = [line for line in text.split("\n") if line.startswith("| ") and not line.startswith("| |")]
        assert len(rows) > 40
        assert all(re.match(r"\| [A-F]([,、] ?[A-F])* \| ", row) for row in rows)
