"""Figures with Chinese labels, made from the English figures and the words of ``docs/zh/figures.yaml``.

A page in docs/zh shows the English figure, which a code host displays. The site shows in its place a twin whose labels
are Chinese, and whose title and description are those of the page. Only README.zh-CN.md, which is read on a code host,
shows a twin that is kept in the repository: ``python -m docs.site figures`` writes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from docs.site.problems import BrokenDocsError
from dragoman.lab.chinese import LABELS, Words, entries, texts, translated

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/zh"
WORDS = PAGES / "figures.yaml"
README = ROOT / "README.zh-CN.md"
ENDING = ".zh-CN.svg"
WORD = re.compile(r"[A-Za-z]{4,}")
FIGURE = re.compile(r"!\[([^]]*)\]\(([^)\s]+\.svg)\)(?:\n\n\*([^*]+)\*)?")


class Figure(NamedTuple):
    """A figure that a Chinese page shows: the English file, its description there, and the caption below it."""

    english: Path
    description: str
    caption: str


def figures_of(page: Path) -> Iterator[Figure]:
    """Yield the figures that a Chinese page shows."""
    for description, link, caption in FIGURE.findall(page.read_text(encoding="utf-8")):
        path = Path(os.path.normpath(page.parent / link.replace(ENDING, ".svg")))
        yield Figure(path, description, caption)


def shown() -> list[Figure]:
    """Return the figures that pages in docs/zh show; one that several show has the words of the first page."""
    figures: dict[Path, Figure] = {}
    for page in sorted(PAGES.rglob("*.md")):
        for figure in figures_of(page):
            figures.setdefault(figure.english, figure)
    return list(figures.values())


def in_chinese(figure: Figure, words: Words) -> str:
    """Return the figure with its labels in Chinese; the page gives its title and description."""
    text = figure.english.read_text(encoding="utf-8")
    text = re.sub(r"\n <desc>.*?</desc>", "", text, flags=re.DOTALL)
    text = re.sub(r"(?s)<title>.*?</title>", "<title></title>", text)
    head = f"<title>{escape(figure.description, quote=False)}</title>"
    if figure.caption and figure.caption != figure.description:
        head += f"\n <desc>{escape(figure.caption, quote=False)}</desc>"
    return translated(text, words).replace("<title></title>", head)


def missing(path: Path, words: Words, labels: Mapping[str, str]) -> set[str]:
    """Return the labels of an English figure without Chinese, or whose Chinese has a word that no entry writes so."""
    english = path.read_text(encoding="utf-8")
    latin = {word for chinese in labels.values() for word in WORD.findall(chinese)}
    shown_there = set(texts(english)) - {unescape(head) for head in re.findall(r"<(?:title|desc)>([^<]*)<", english)}
    words.missing.clear()
    half = {label for label in shown_there if set(WORD.findall(words(label))) - latin}
    return half | words.missing


def made() -> dict[Path, str]:
    """Return the Chinese twin of each figure that a page in docs/zh shows, by the English file.

    Raises:
        BrokenDocsError: A label has no Chinese.
    """
    labels = dictionary()
    words = Words(labels)
    figures = [figure for figure in shown() if figure.english.is_file()]
    lacking = {figure.english.relative_to(ROOT): missing(figure.english, words, labels) for figure in figures}
    problems = [
        f"{WORDS} has no Chinese for labels of {name}: {', '.join(sorted(labels))}"
        for name, labels in lacking.items()
        if labels
    ]
    if problems:
        raise BrokenDocsError(problems)
    return {figure.english: in_chinese(figure, words) for figure in figures}


def dictionary() -> dict[str, str]:
    """Return the Chinese of every label: those of the laboratory, then all others."""
    return entries(LABELS) | entries(WORDS)


def of_the_readme() -> dict[Path, str]:
    """Return the twins that README.zh-CN.md shows, by the file that keeps each."""
    words = Words(dictionary())
    return {
        figure.english.with_name(figure.english.stem + ENDING): in_chinese(figure, words)
        for figure in figures_of(README)
    }


def write() -> None:
    """Write the twins that README.zh-CN.md shows."""
    for path, text in of_the_readme().items():
        path.write_text(text, encoding="utf-8")
