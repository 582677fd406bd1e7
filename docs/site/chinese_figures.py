"""Figures in Chinese: each ``NAME.zh-CN.svg`` that a page in docs/zh shows is made from ``NAME.svg`` and its words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from html import escape, unescape
from pathlib import Path

import yaml

from benchmarks.harness.environments import ROOT
from benchmarks.harness.figure_words import Words, texts, translated

PAGES = ROOT / "docs/zh"
WORDS = PAGES / "figures.yaml"
ENDING = ".zh-CN.svg"
WORD = re.compile(r"[A-Za-z]{4,}")
FIGURE = re.compile(r"!\[([^]]*)\]\(([^)]+)\)(?:\n\n\*([^*]+)\*)?")


def shown() -> Iterator[tuple[Path, str, str]]:
    """Every figure in Chinese that a page shows, with its description and its caption there, the first page's."""
    seen = set()
    for page in sorted(PAGES.rglob("*.md")):
        for description, link, caption in FIGURE.findall(page.read_text(encoding="utf-8")):
            path = Path(os.path.normpath(page.parent / link))
            if link.endswith(ENDING) and path not in seen:
                seen.add(path)
                yield path, description, caption


def in_chinese(path: Path, description: str, caption: str, words: Words) -> str:
    """The figure ``path`` with the words of its English twin in Chinese; the page says what its title and text are."""
    text = path.with_name(path.name.removesuffix(ENDING) + ".svg").read_text(encoding="utf-8")
    text = re.sub(r"\n <desc>.*?</desc>", "", text, flags=re.DOTALL)
    text = re.sub(r"(?s)<title>.*?</title>", "<title></title>", text)
    head = f"<title>{escape(description, quote=False)}</title>"
    if caption and caption != description:
        head += f"\n <desc>{escape(caption, quote=False)}</desc>"
    return translated(text, words).replace("<title></title>", head)


def missing(path: Path, words: Words, entries: Mapping[str, str]) -> set[str]:
    """Labels of the English figure that have no Chinese, or in Chinese still a word that no entry writes so."""
    english = path.with_name(path.name.removesuffix(ENDING) + ".svg").read_text(encoding="utf-8")
    kept = {word for chinese in entries.values() for word in WORD.findall(chinese)}
    labels = set(texts(english)) - {unescape(head) for head in re.findall(r"<(?:title|desc)>([^<]*)<", english)}
    words.missing.clear()
    half = {label for label in labels if set(WORD.findall(words(label))) - kept}
    return half | words.missing


def main() -> None:
    """Write them all; a label without Chinese is an error that names it."""
    entries = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    words = Words(entries)
    for path, description, caption in shown():
        if lacking := missing(path, words, entries):
            raise SystemExit(f"{WORDS} has no Chinese for labels of {path.name}: {', '.join(sorted(lacking))}")
        path.write_text(in_chinese(path, description, caption, words), encoding="utf-8")


if __name__ == "__main__":
    main()
