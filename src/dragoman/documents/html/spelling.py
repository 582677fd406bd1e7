"""How a page writes its characters: entities and soft hyphens, and writing a translation the same way.

spelled = Spelling.of("10&nbsp;km &mdash; tea&shy;cher")
spelled.text                 # "10\\xa0km — teacher", as the model reads it
spelled("10\\xa0km — here")   # "10&nbsp;km &mdash; here"
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{0,40});?")
_SOFT_HYPHEN = "\u00ad"
_UNSAFE = re.compile(r"[A-Za-z/!?%{#@]|\Z")
"""What ``<`` may not stand before as itself."""
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True)
class Spelling:
    """A text, and how the source writes the characters of it."""

    text: str  # without entities and soft hyphens
    entities: Mapping[str, str] = field(default_factory=dict)  # for a character: the entity that always stands for it
    bare: frozenset[str] = frozenset()  # of "&", "<" and ">": those that the source writes as themselves
    hyphenated: Mapping[str, str] = field(default_factory=dict)  # for a word: the same with soft hyphens
    quote: str = ""  # around an attribute

    @classmethod
    def of(cls, raw: str, *, is_attribute: bool = False, quote: str = "") -> Spelling:
        """Return the text that a source writes, and the way it does.

        Args:
            raw: Text between tags, or the value of an attribute.
            is_attribute: True for the value of an attribute.
            quote: The quotes around the attribute.
        """
        if "&" not in raw and _SOFT_HYPHEN not in raw:
            return cls(raw, bare=frozenset(_ESCAPED).intersection(raw), quote=quote)
        entities: dict[str, str] = {}
        pieces, at = [], 0
        for match in _REFERENCE.finditer(raw):
            text = html.unescape(match[0])
            is_cut = not match[0].endswith(";") and (len(text) > 1 or raw[match.end() : match.end() + 1] == "=")
            if text == match[0] or (is_attribute and is_cut):
                continue
            pieces += [raw[at : match.start()], text]
            at = match.end()
            if len(text) == 1:
                entities.setdefault(text, match[0])
        between = "".join([*pieces[::2], raw[at:]])  # what is no entity
        text = "".join([*pieces, raw[at:]])
        used = {char: entity for char, entity in entities.items() if char not in between or char in "&<>\xa0"}
        hyphenated: dict[str, str] = {}
        if _SOFT_HYPHEN in text:
            for word in text.split():
                if _SOFT_HYPHEN in word:
                    hyphenated.setdefault(word.replace(_SOFT_HYPHEN, ""), word)
            text = text.replace(_SOFT_HYPHEN, "")
        bare = frozenset(char for char in _ESCAPED if char in between and char not in entities)
        return cls(text, used, bare, hyphenated, quote)

    def __call__(self, text: str) -> str:
        """Return a translation as source."""
        if self.hyphenated:
            text = "".join(self.hyphenated.get(word, word) for word in re.split(r"(\s)", text))
        written = []
        for i, char in enumerate(text):
            if char in _ESCAPED or char == self.quote:
                written.append(self._escaped(char, text, i))
            else:
                written.append(self.entities.get(char, char))
        return "".join(written)

    def _escaped(self, char: str, text: str, at: int) -> str:
        if char == self.quote:
            return self.entities.get(char, "&quot;" if char == '"' else "&#39;")
        if char in self.bare:
            reference = _REFERENCE.match(text, at)
            is_entity = reference is not None and html.unescape(reference[0]) != reference[0]
            is_tag = char == "<" and not self.quote and _UNSAFE.match(text, at + 1)
            if not is_entity and not is_tag:
                return char
        return self.entities.get(char, _ESCAPED[char])
