"""The parts of a tag: its source, with a unit for each attribute that a reader sees, and its language set."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from dragoman.documents.document import Untranslated
from dragoman.documents.html.elements import is_shown
from dragoman.documents.html.sentences import Sentence
from dragoman.documents.html.spelling import Spelling
from dragoman.documents.html.templates import Templates
from dragoman.documents.html.tokens import Attribute, Token
from dragoman.documents.shortcodes import words_in
from dragoman.documents.units import Part, Unit
from dragoman.languages.codes import primary

ODD = re.compile("[\ud800-\udfff]")
"""A character that stands for a byte that is not in the encoding of a page."""
_END_OF_LINE = re.compile(r"(?:[\r\n]|&(?:#(?:0{0,4}1[03]|[xX]0{0,4}[aAdD])|NewLine);)+")
ODD_TEXT = "has bytes that are not in the encoding of the page"


@dataclass
class TagReader:
    """Cuts the tags of a page into parts."""

    source: str
    shown: bool = True  # translate the attributes that a reader sees
    languages: tuple[str | None, str] | None = None  # of the page and of its translation, to be set; None to keep all
    left: list[Untranslated] = field(default_factory=list)

    def values(self, token: Token) -> dict[str, str]:
        """Return the attributes of a tag; of two with the same name the first counts."""
        found: dict[str, str] = {}
        for attribute in token.attributes:
            found.setdefault(attribute.name, html.unescape(self.source[attribute.start : attribute.end]))
        return found

    def parts(self, token: Token, values: dict[str, str], is_translated: bool) -> list[Part]:
        """Return the parts of a tag.

        Args:
            token: The tag.
            values: Its attributes.
            is_translated: False where the page says that nothing is translated.
        """
        parts: list[Part] = []
        at = token.start
        written = set()
        for attribute in token.attributes:
            new: list[Part] = []
            if attribute.name not in written and is_translated:
                new = self._attribute(token, attribute, values)
            written.add(attribute.name)
            if new:
                parts += [self.source[at : attribute.start], *new]
                at = attribute.end
        if token.name == "html" and self.languages and is_translated and not {"lang", "xml:lang"} & written:
            name_end = token.start + 1 + len(token.name)
            return [
                f'{self.source[token.start : name_end]} lang="{self.languages[1]}"',
                self.source[name_end : token.end],
            ]
        return [*parts, self.source[at : token.end]]

    def _attribute(self, token: Token, attribute: Attribute, values: dict[str, str]) -> list[Part]:
        """Return the parts of a value; empty if it stays as it is."""
        value = values[attribute.name]
        if not value.strip():
            return []
        if self.languages and self._is_language(token, attribute, values):
            return [self.languages[1]]
        if self.shown and attribute.name == "srcdoc" and any(map(str.isalpha, value)):
            self.left.append(Untranslated(value, "a page in the attribute srcdoc"))
        if not self.shown or not is_shown(token.name, attribute.name, values):
            return []
        raw = self.source[attribute.start : attribute.end]
        if ODD.search(raw):
            self.left.append(Untranslated(ODD.sub("\ufffd", raw), ODD_TEXT))
            return []
        if attribute.quote:
            self.left += words_in(raw)
            has_lines = attribute.name == "title" or (token.name, attribute.name) == ("textarea", "placeholder")
            return quoted(raw, attribute.quote, has_lines=has_lines)
        spelled = Spelling.of(raw, is_attribute=True, quote='"')
        if "{" in raw or "<" in raw or not any(map(str.isalpha, spelled.text)):
            return []
        return [Unit(spelled.text, raw=[raw], escape=spelled, styles=(('"', '"'),))]

    def _is_language(self, token: Token, attribute: Attribute, values: dict[str, str]) -> bool:
        """True if an attribute names the language of text that is translated."""
        if attribute.name == "content" and token.name == "meta":
            return values.get("http-equiv", "").lower() == "content-language"
        if attribute.name not in ("lang", "xml:lang") or "{" in values[attribute.name] or "<" in values[attribute.name]:
            return False
        src_lang = self.languages[0] if self.languages else None
        return token.name == "html" or (
            src_lang is not None and primary(values[attribute.name].strip()) == primary(src_lang)
        )


def quoted(raw: str, quote: str, *, has_lines: bool = False) -> list[Part]:
    """Return the units of a value in quotes, and the code of templates and the ends of lines between them.

    Args:
        raw: The value.
        quote: The quotes.
        has_lines: Browsers show a line as one, even where its end is no reference.
    """
    templates, sentence = Templates(raw), Sentence(quote=quote)
    line_ends = {match.start(): match.end() for match in _END_OF_LINE.finditer(raw) if has_lines or "&" in match[0]}
    parts: list[Part] = []
    at = start = 0
    while at < len(raw):
        code = templates.at(at, in_text=False)
        if code is None and at not in line_ends:
            at += 1
            continue
        if start < at:
            sentence.text(raw[start:at])
        if code is None:
            start = line_ends[at]
            parts += [*sentence.end(), raw[at:start]]
            at = start
            continue
        if code.is_value:
            sentence.tag(code.half or "edge", code.name, [raw[at : code.end]])
        else:
            parts += [*sentence.end(), raw[at : code.end]]
        start = at = code.end
    if start < len(raw):
        sentence.text(raw[start:])
    return [*parts, *sentence.end()]
