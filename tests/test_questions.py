"""The questions and the errata: both languages say the same, and what they point to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.lab import EXPERIMENTS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ("questions", "errata")


def both(name: str) -> tuple[str, str]:
    """The page in English and in Chinese; the Chinese one's links as if it lay beside the English one."""
    one, other = (
        (DOCS / folder / f"{name}.md").read_text(encoding="utf-8") for folder in ("understand", "zh/understand")
    )
    return one, re.sub(r"^---\n.*?\n---\n", "", other, flags=re.DOTALL).replace("](../../", "](../")


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_sections_rows_links_and_numbers(name: str) -> None:
    one, other = both(name)
    assert len(re.findall(r"^## ", one, flags=re.MULTILINE)) == len(re.findall(r"^## ", other, flags=re.MULTILINE))
    for pattern in (
        r"^\|", r"`dragoman [a-z ]+`", r"<!-- figure: \S+ -->", r"!\[[^]]*\]\((\S+?)\)", r"https?://[^\s)）]+",
        r"\d[\d.,]*\d",
    ):  # fmt: skip
        found = [sorted(re.findall(pattern, text, flags=re.MULTILINE)) for text in (one, other)]
        assert found[0] == found[1], pattern


@pytest.mark.parametrize("name", PAGES)
def test_every_experiment_that_is_named_exists(name: str) -> None:
    for text in both(name):
        named = set(re.findall(r"`dragoman lab ([a-z]+)`", text))
        assert named
        assert named <= EXPERIMENTS.keys()
        figures = re.findall(r"lab/(\w+)/[\w-]+\.svg", text)
        assert set(figures) <= EXPERIMENTS.keys()


def test_each_row_of_the_errata_names_its_document() -> None:
    for text in both("errata"):
        rows = [line for line in text.split("\n") if line.startswith("| ") and not line.startswith("| |")]
        assert len(rows) > 40
        assert all(re.match(r"\| [A-E]([,、] ?[A-E])* \| ", row) for row in rows)
