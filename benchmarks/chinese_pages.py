"""Pages in Chinese of the English pages that programs make: words from ``docs/zh/pages.yaml`` and of ``dragoman.lab``.

An entry of the dictionary is a heading, a cell, an item of a list, a paragraph or a sentence of one, as it stands on
one line; ``{}`` in it is whatever changes with the results; ``# `` begins the title of a page, also of one that is
linked. Code stays. Links lead to the Chinese page where there is one. Figures are the English ones, whose Chinese twins
the site makes. A page made anew is followed by running this; what it then says and the dictionary does not have is
named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.environments import ROOT
from docs.site.gather import DOCS, FENCE, fingerprint, front_matter, places, sources
from dragoman.lab.chinese import REPORTS, Words, entries

PAGES = DOCS / "zh"
WORDS = PAGES / "pages.yaml"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FIGURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def made() -> dict[str, Path]:
    """The English pages that are made, by their place on the site: those of the laboratory, of speed and of costs."""
    return {
        where: path
        for where, path in sources().items()
        if where.startswith(("lab/", "results/")) and where != "results/index.md"
    }


def in_chinese(where: str, english: Path, words: Words) -> str:
    """The Chinese twin of a page.

    Args:
        where: The page's place on the site.
        english: The page.
        words: The dictionary; what it lacks is in its ``missing`` afterwards.
    """
    page = PAGES / where

    def turned(found: re.Match[str]) -> str:
        return f"]({turned_link(found[1], english, page)})"

    text = english.read_text(encoding="utf-8")
    parts = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)
    parts[::2] = (LINK.sub(turned, prose(part, words)) for part in parts[::2])
    title, rest = "".join(parts).split("\n", 1)
    twin = f"[English]({os.path.relpath(english, page.parent)})"
    return f"---\nenglish: {fingerprint(english)}\n---\n\n{title}\n\n{twin}\n{rest}"


def english_in(page: str) -> list[str]:
    """What is left in English of a Chinese page: two words in a row, but for code, names and where links lead."""
    _, text = front_matter(page)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", FENCE.sub("", text))
    return re.findall(r"\b(?!et al|dragoman train)[a-z]{2,} [a-z]{2,}\b", text)


def prose(text: str, words: Words) -> str:
    return re.sub(r"(?:^.+\n?)+", lambda block: _block(block[0].rstrip("\n"), words) + "\n", text, flags=re.MULTILINE)


def _block(block: str, words: Words) -> str:
    """Lines without an empty one between them: a heading, a table, a list, a figure, its caption or a paragraph."""
    if block.startswith("|"):
        return "\n".join(_row(line, words) for line in block.split("\n"))
    if block.startswith("- "):
        return "\n".join(f"- {_said(item[2:], words)}" for item in re.split(r"\n(?=- )", block))
    if block.startswith("# "):
        return words(block)
    if heading := re.fullmatch(r"(#+) (.+)", block):
        return f"{heading[1]} {_said(heading[2], words)}"
    if figure := FIGURE.fullmatch(block):
        return f"![{_said(figure[1], words)}]({figure[2]})"
    if caption := re.fullmatch(r"\*([^*]+)\*", block):
        return f"*{_said(caption[1], words)}*"
    return _said(block, words)


def _row(line: str, words: Words) -> str:
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    said = [_said(cell, words) if cell.startswith("[") else words.cell(cell) for cell in cells]
    return f"| {' | '.join(said)} |"


def _said(text: str, words: Words) -> str:
    """A text in Chinese; it may be a link or a verdict."""
    text = " ".join(line.strip() for line in text.split("\n"))
    if link := re.fullmatch(r"\[([^]]+)\](\(\S+\))", text):
        return f"[{words(f'# {link[1]}').removeprefix('# ')}]{link[2]}"
    if verdict := re.fullmatch(r"\*([^*]+)\*: (.+)", text):
        return f"*{words(verdict[1])}*：{_said(verdict[2], words)}"
    return words.paragraph(text)


def turned_link(target: str, english: Path, page: Path) -> str:
    """A link of the English page as its Chinese twin has it."""
    if "://" in target:
        return target
    path, _, anchor = target.partition("#")
    full = Path(os.path.normpath(english.parent / path))
    where = places().get(full.relative_to(ROOT).as_posix(), "")
    if where in made() or (PAGES / where).is_file():
        full = PAGES / where
    return os.path.relpath(full, page.parent) + (f"#{anchor}" if anchor else "")


def pages() -> Iterator[tuple[Path, str, set[str]]]:
    """Each page in Chinese: where it lies, its text, and what has no Chinese."""
    words = Words(entries(REPORTS) | entries(WORDS))
    for where, english in made().items():
        words.missing.clear()
        text = in_chinese(where, english, words)
        yield PAGES / where, text, words.missing | set(english_in(text))


def main() -> None:
    """Write them all; a sentence without Chinese is an error that names it."""
    for path, text, missing in pages():
        if missing:
            lacking = "\n".join(sorted(missing))
            page = path.relative_to(PAGES)
            raise SystemExit(f"{WORDS} and {REPORTS.name} have no Chinese for what {page} says:\n{lacking}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
