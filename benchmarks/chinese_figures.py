"""Figures in Chinese: each ``NAME.zh-CN.svg`` that a page in docs/zh shows is made from ``NAME.svg`` and its words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import yaml

from benchmarks.harness.environments import ROOT
from dragoman.explanation.svg import Words, texts, translated

PAGES = ROOT / "docs/zh"
WORDS = PAGES / "figures.yaml"
ENDING = ".zh-CN.svg"


def shown() -> Iterator[tuple[Path, str]]:
    """Every figure in Chinese that a page shows, and its description there."""
    for page in sorted(PAGES.rglob("*.md")):
        for description, link in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            if link.endswith(ENDING):
                yield Path(os.path.normpath(page.parent / link)), description


def in_chinese(path: Path, description: str, words: Words) -> str:
    """The figure ``path`` with the words of its English twin in Chinese and the page's description as its title."""
    text = path.with_name(path.name.removesuffix(ENDING) + ".svg").read_text(encoding="utf-8")
    text = re.sub(r"\n <desc>.*?</desc>", "", text, flags=re.DOTALL)
    text = re.sub(r"(?s)<title>.*?</title>", "<title></title>", text)
    text = translated(text, words)
    return text.replace("<title></title>", f"<title>{escape(description, quote=False)}</title>")


def missing(path: Path, words: Words) -> set[str]:
    """Labels of the English figure that have no Chinese."""
    words.missing.clear()
    english = path.with_name(path.name.removesuffix(ENDING) + ".svg").read_text(encoding="utf-8")
    for text in list(texts(english)):
        words(text)
    heads = set(re.findall(r"<(?:title|desc)>([^<]*)<", english))
    return {text for text in words.missing if escape(text, quote=False) not in heads}


def main() -> None:
    """Write them all; a label without Chinese is an error that names it."""
    words = Words(yaml.safe_load(WORDS.read_text(encoding="utf-8")))
    for path, description in shown():
        if lacking := missing(path, words):
            raise SystemExit(f"{WORDS} has no Chinese for labels of {path.name}: {', '.join(sorted(lacking))}")
        path.write_text(in_chinese(path, description, words), encoding="utf-8")


if __name__ == "__main__":
    main()
