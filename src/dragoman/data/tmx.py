"""Parallel text of a translation memory, ``.tmx`` (plain, ``.gz`` or ``.zst``), read as a stream.

A unit (``tu``) has variants (``tuv``) in several languages, each with a segment (``seg``). The text of a segment is
kept; inline tags and the foreign code in them are left out and counted, and white space that wraps lines becomes one
space. Declared entities and a document type of its own are refused, because they could attack the reader. No other file
is ever opened.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from dragoman.data.compression import broken_off, codec_of, open_corpus
from dragoman.data.corpus import MAX_LINE_BYTES
from dragoman.data.encodings import check_known
from dragoman.errors import DataError
from dragoman.languages.codes import tag_of, variety
from dragoman.languages.known import is_unspaced

logger = logging.getLogger(__name__)

BLOCK_BYTES = 2**16
BUILT_IN = ("utf-8", "utf-16", "iso-8859-1", "us-ascii")
"""Encodings that the parser itself knows; of others it reads those with one byte for each character."""
ALL_BYTES = bytes(range(256))
KEPT_INSIDE = ("seg", "hi")
"""Elements whose text belongs to the segment; bpt, ept, it, ph, ut and sub hold code of other formats."""
_PLACE = "\0"
"""Place of a ``ph``, such as a line break or a picture. XML has no such character."""
_BETWEEN_WORDS = re.compile(rf"(?<=\w){_PLACE}+(?=\w)")

Languages = tuple[str, str]
Unit = list[tuple[str, str]]
"""Language and text of each variant of a unit."""


def read_tmx(path: Path, languages: Languages) -> Iterator[tuple[str, str]]:
    """Yield source and target of each unit that has both; the number of other units is logged.

    Of several texts in one language a unit gives the first; the number of further ones is logged.

    Args:
        languages: Source and target. "en" also matches en-US; "en-GB" also matches plain en, but no other region.

    Raises:
        DataError: The file cannot be read, is not TMX, declares entities, or no unit has both languages.
    """
    memory = _Memory(path)
    pairs = left_out = further = 0
    seen: Counter[str] = Counter()
    for unit in memory.units():
        seen.update(variety(lang) for lang, _ in unit)
        sources, targets = (_variants(unit, lang) for lang in languages)
        if not sources or not targets:
            left_out += 1
            continue
        pairs += 1
        further += len(sources) - 1 + len(targets) - 1
        yield sources[0], targets[0]
    if not pairs:
        available = ", ".join(sorted(seen)[:20]) or "no unit at all"
        raise DataError(f"{path}: no unit has both {languages[0]} and {languages[1]}; there is: {available}")
    if left_out:
        total = f"{pairs + left_out:,}"
        logger.info("%s: %s of %s units left out: they lack %s or %s", f"{path}", f"{left_out:,}", total, *languages)
    if further:
        logger.info("%s: left out further texts of a unit in %s or %s: %s", f"{path}", *languages, f"{further:,}")
    if memory.tags:
        logger.info("%s: %s inline tags left out of the text", f"{path}", f"{memory.tags:,}")


def tmx_languages(path: Path) -> Languages:
    """Return source and target of a memory of two languages; the header's source language comes first.

    Without it the order is that of the first unit.

    Raises:
        DataError: As ``read_tmx``; or the memory has more or fewer than two languages.
    """
    memory = _Memory(path)
    languages: dict[str, str] = {}
    tags: list[str] = []
    for unit in memory.units():
        for lang, _ in unit:
            if lang:
                languages.setdefault(variety(lang), lang)
                tags += [lang] * (lang not in tags)
        if len(languages) >= 2:
            break
    if len(languages) == 1:
        two = f"choose source and target: --columns {','.join(tags[:2])}" if len(tags) > 1 else "a pair needs two"
        raise DataError(f"{path}: one language alone ({', '.join(tags)}); {two}")
    if len(languages) != 2:
        names, example = (f" ({', '.join(tags)})", ",".join(tags[:2])) if tags else ("", "en,de")
        raise DataError(
            f"{path}: {len(languages)} languages{names}; choose source and target, for example --columns {example}"
        )
    first, second = languages.values()
    return (second, first) if variety(memory.source) == variety(second) else (first, second)


def tmx_varieties(path: Path) -> Languages:
    """Return the languages of a memory of two without their regions: ``read_tmx`` then takes every region.

    Raises:
        DataError: As ``tmx_languages``.
    """
    src, tgt = tmx_languages(path)
    return variety(src), variety(tgt)


def _variants(unit: Unit, wanted: str) -> list[str]:
    """Return the texts of a language, each once: those with its very name, then those without another region."""
    named, alike = [], []
    for lang, text in unit:
        if lang.replace("_", "-").lower() == wanted.replace("_", "-").lower():
            named.append(text)
        elif variety(lang) == variety(wanted) and len({tag_of(tag).region for tag in (lang, wanted)} - {""}) < 2:
            alike.append(text)
    return list(dict.fromkeys([*named, *alike]))


class _Memory:
    """One pass over a file, with the source language of its header and the number of inline tags so far."""

    def __init__(self, path: Path) -> None:
        self.path, self.source, self.tags = path, "", 0
        self._units: deque[Unit] = deque()
        self._unit: Unit = []
        self._lang = ""
        self._inside: list[str] = []  # open elements of the current segment
        self._dropped = 0  # number of them whose text is left out
        self._text: list[str] = []
        self._size = 0
        self._is_tmx = False

    def units(self) -> Iterator[Unit]:
        """Yield each unit as soon as its end has been read."""
        with open_corpus(self.path) as stream:
            # a text that was converted comes as UTF-8, whatever it declares
            parser = self._parser = expat.ParserCreate(codec_of(stream) and "utf-8")
            parser.buffer_text = True
            parser.StartElementHandler = self._start
            parser.EndElementHandler = self._end
            parser.CharacterDataHandler = self._characters
            parser.XmlDeclHandler = self._declaration
            parser.StartDoctypeDeclHandler = self._doctype
            parser.EntityDeclHandler = lambda *_: self._refuse("it declares entities")
            parser.SkippedEntityHandler = lambda name, _: self._refuse(f"&{name}; is not declared")
            while True:
                try:
                    block = stream.read(BLOCK_BYTES)
                except (EOFError, OSError, zlib.error) as error:
                    raise broken_off(f"{self.path}", error) from None
                try:
                    parser.Parse(block, not block)
                except expat.ExpatError as error:
                    where = f"{self.path}:{error.lineno}:{error.offset + 1}"
                    what = expat.errors.messages.get(error.code, str(error))
                    raise DataError(f"{where}: not well-formed XML ({what}); is it a whole TMX?") from None
                yield from self._units
                self._units.clear()
                if not block:
                    return

    def _refuse(self, reason: str) -> Any:
        """Raise DataError for a part of the file at the parser's place."""
        where = f"{self.path}:{self._parser.CurrentLineNumber}"
        raise DataError(f"{where}: {reason}; a translation memory does not need this: remove it, or export it again")

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        """Handle the XML declaration: an encoding that the parser cannot read is refused."""
        try:
            check_known(encoding or "utf-8")
            known = (
                encoding is None or encoding.lower() in BUILT_IN or len(ALL_BYTES.decode(encoding, "replace")) == 256
            )
        except (LookupError, ValueError):
            known = False
        if not known:
            self._refuse(f"it declares the encoding {str(encoding)[:40]!r}, which is not read here")

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_internal_subset: int) -> None:
        """Handle a document type: only one without declarations of its own is accepted."""
        if has_internal_subset:
            self._refuse("it declares a document type of its own")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle an opening tag."""
        if not self._is_tmx:
            if name != "tmx":
                self._refuse(f"it begins with <{name}>, not with <tmx>")
            self._is_tmx = True
        if self._inside:
            self._inside.append(name)
            self._dropped += name not in KEPT_INSIDE
            self.tags += 1
            if name == "ph" and self._dropped == 1:
                self._text.append(_PLACE)
        elif name == "seg":
            self._inside, self._text, self._size = ["seg"], [], 0
        elif name == "tuv":
            self._lang = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "tu":
            self._unit = []
        elif name == "header":
            self.source = attributes.get("srclang", "")

    def _end(self, name: str) -> None:
        """Handle a closing tag: the end of a segment or a unit."""
        if self._inside:
            self._dropped -= self._inside.pop() not in KEPT_INSIDE
            if not self._inside:
                text = "".join(self._text)
                if _PLACE in text:
                    between = "" if is_unspaced(self._lang) else " "
                    text = _BETWEEN_WORDS.sub(between, text).replace(_PLACE, "")
                self._unit.append((self._lang, re.sub("[ \t\r\n]+", " ", text).strip(" ")))
        elif name == "tu":
            self._units.append(self._unit)
            self._unit = []

    def _characters(self, text: str) -> None:
        """Handle text: keep it if it belongs to a segment."""
        if self._inside and not self._dropped:
            self._text.append(text)
            self._size += len(text)
            if self._size > MAX_LINE_BYTES:
                self._refuse(f"a segment is longer than {MAX_LINE_BYTES:,} characters")
