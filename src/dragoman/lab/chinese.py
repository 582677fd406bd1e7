"""The laboratory's reports in Chinese: a dictionary, the records and figures with their words replaced by its.

    in_chinese(record)                        # of a numbers.json, as read_record returns it
    figure_in_chinese(svg)                    # its labels, title and description

What has no entry stays in English, and ``missing`` of the dictionary names it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any

REPORTS = Path(__file__).with_name("chinese_reports.yaml")
LABELS = Path(__file__).with_name("chinese_labels.yaml")
_TEXT = re.compile(r"(<text\b[^<>]*>)([^<]*)(</text>)")
_HEAD = re.compile(r"<(title|desc)>([^<]*)</(?:title|desc)>")
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`[])")
_RANGE = re.compile(r"(?<![\d.,])([\d.,]+) to ([\d.,]+)")
_SPOKEN = re.compile(r"(?<![\w_])[A-Za-z]?[a-z]{2,}(?![\w_])|[`\[]")
"""What makes a cell more than a number, a name or a formula."""


class Words:
    """A dictionary. In an entry ``{}`` matches whatever changes with the results, such as a number or a name."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._exact = {text: other for text, other in entries.items() if "{}" not in text}
        patterns = sorted((text for text in entries if "{}" in text), key=len, reverse=True)  # the most specific first
        self._patterns = [(text.split("{}"), entries[text]) for text in patterns]
        self.missing: set[str] = set()
        """Texts with letters that were looked up and have no entry."""

    def __call__(self, text: str) -> str:
        """Return ``text`` in the other language; without an entry it is returned as it is and added to ``missing``."""
        translation = self.find(text)
        if translation is None and re.search(r"[A-Za-z]{2}", text):
            self.missing.add(text)
        return text if translation is None else translation

    def find(self, text: str) -> str | None:
        """Return ``text`` in the other language; None if there is no entry."""
        if text in self._exact:
            return self._exact[text]
        for pieces, other in self._patterns:
            if gaps := _gaps(pieces, text):
                return other.format(*(self._captured(gap, is_code) for gap, is_code in gaps))
        return None

    def paragraph(self, text: str) -> str:
        """Return a paragraph in the other language, sentence by sentence if each has an entry, else as a whole."""
        if re.fullmatch(r"`[^`]*`", text):
            return self.find(text) or text
        if limits := _RANGE.fullmatch(text):
            return f"{limits[1]} {self('to')} {limits[2]}"
        sentences = [self.find(sentence) for sentence in _SENTENCE.split(text)]
        if None not in sentences:
            return "".join(filter(None, sentences))
        if text.endswith(".") and (claim := self.find(text[:-1])) is not None:
            return f"{claim}。"
        return self(text)

    def cell(self, text: str) -> str:
        """Return a cell of a table in the other language; a number, a name or a formula stays."""
        return self.paragraph(text) if _SPOKEN.search(text) else text

    def _captured(self, gap: str, is_code: bool) -> str:
        """Return what stands in a gap of an entry, or its items, in the other language; code in backticks stays."""
        if is_code:
            return gap
        if whole := self.find(gap):
            return whole
        items = [self.find(item) for item in gap.split(", ")]
        return gap if None in items else "、".join(filter(None, items))


def _gaps(pieces: Sequence[str], text: str) -> list[tuple[str, bool]]:
    """Return what stands in a text between the pieces of an entry, and if it is in backticks; [] if it is another text.

    Each gap is as short as it can be, and not empty.
    """
    first, *middle, last = pieces
    end = len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last)) or "\n" in text:
        return []
    gaps, start = [], len(first)
    for piece in middle:
        stop = text.find(piece, start + 1, end)
        if stop < 0:
            return []
        gaps.append((start, stop))
        start = stop + len(piece)
    if start >= end:
        return []
    return [(text[i:j], text.count("`", 0, i) % 2 == 1) for i, j in [*gaps, (start, end)]]


def entries(path: Path) -> dict[str, str]:
    """Return the entries of a dictionary, a YAML file."""
    from dragoman.config import parse_yaml  # the list of experiments in English needs no YAML

    return dict(parse_yaml(path.read_text(encoding="utf-8"), path.name))


@functools.cache
def report_words() -> Words:
    """Return the dictionary for reports."""
    return Words(entries(REPORTS))


@functools.cache
def label_words() -> Words:
    """Return the dictionary for the labels of figures."""
    return Words(entries(LABELS))


def said(text: str, language: str) -> str:
    """Return a text of the laboratory in a language, "en" or "zh"; what has no Chinese stays English."""
    return text if language == "en" else report_words().paragraph(text)


def untranslated() -> set[str]:
    """Return the texts that were looked up so far and have no Chinese; single words of figures may be of the text."""
    return report_words().missing | {label for label in label_words().missing if " " in label}


def in_chinese(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of an experiment with claim, verdict and sections in Chinese; its numbers are left as they are.

    A claim and what was measured are one text of the dictionary, so the whole stands in ``text`` and ``figures`` is "".
    """
    words = report_words()
    return {
        **record,
        "claim": words(record["claim"]),
        "verdict": [
            {**claim, "text": words.paragraph(f"{claim['text']}: {claim['figures']}"), "figures": ""}
            for claim in record["verdict"]
        ],
        "sections": [_section(section, words) for section in record["sections"]],
    }


def _section(section: Mapping[str, Any], words: Words) -> dict[str, Any]:
    """Return a section of a record in Chinese."""
    table = section["table"]
    if table is not None:
        table = {
            **table,
            "columns": [words.cell(name) for name in table["columns"]],
            "rows": [[words.cell(cell) for cell in row] for row in table["rows"]],
        }
    return {
        **section,
        "heading": words.paragraph(section["heading"]) if section["heading"] else section["heading"],
        "texts": [words.paragraph(text) for text in section["texts"]],
        "caption": words.paragraph(section["caption"]) if section["caption"] else section["caption"],
        "table": table,
    }


def figure_in_chinese(svg: str) -> str:
    """Return a figure of the laboratory with labels, title and description in Chinese."""
    labels, words = label_words(), report_words()

    def head(text: str) -> str:
        return labels.find(text) or words.paragraph(text)

    return translated(svg, labels, head)


def translated(svg: str, words: Callable[[str], str], head: Callable[[str], str] | None = None) -> str:
    """Return a figure with its texts replaced by those of ``words``, and title and description by those of ``head``."""
    head = head or words
    svg = _TEXT.sub(lambda match: match[1] + escape(words(unescape(match[2])), quote=False) + match[3], svg)
    return _HEAD.sub(lambda match: f"<{match[1]}>{escape(head(unescape(match[2])), quote=False)}</{match[1]}>", svg)


def texts(svg: str) -> Iterator[str]:
    """Yield the texts of a figure, then its title and description."""
    yield from (unescape(match[2]) for match in _TEXT.finditer(svg))
    yield from (unescape(match[2]) for match in _HEAD.finditer(svg))
