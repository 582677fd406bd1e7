"""XLIFF 1.2 and 2.0: segments without a target get one, the others keep theirs."""

from __future__ import annotations

import re

from dragoman.documents.document import Document, DocumentInfo, Untranslated, text_document
from dragoman.documents.units import Part, Tag, Unit
from dragoman.documents.xml import Token, check, closing_tags, tokens
from dragoman.errors import DataError
from dragoman.languages.codes import variety

SUFFIXES = (".xliff", ".xlf")
COMPARED = ("markup",)  # a segment with a translation is read as done

_FLOWS_THROUGH = frozenset(["g", "mrk", "pc", "sm", "em"])
"""Inline elements whose content is text; the content of all others is code."""

_NOT_YET = frozenset(["new", "needs-translation", "initial"])
"""States that mark a target as not translated yet."""


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut an XLIFF file into the segments that have no target yet; see ``document.Format``."""
    text = check(data, info)
    file = _File([Token(token.source, token.kind, token.name.rpartition(":")[2]) for token in tokens(text.text, {})])
    root = next(token for token in file.tokens if token.kind in ("open", "empty"))
    version = root.get("version") or ""
    if root.name != "xliff" or not version.startswith(("1.", "2.")):
        raise DataError(f"{info.name}: its root is {root.name} {version}, not that of XLIFF 1.2 or 2.0")
    segment_name = "segment" if version.startswith("2") else "trans-unit"
    language = ("xliff", "trgLang") if version.startswith("2") else ("file", "target-language")
    parts: list[Part] = []
    left: list[Untranslated] = []
    translates = [True]  # for each open element: whether its segments are to be translated
    at = 0
    while at < len(file.tokens):
        token = file.tokens[at]
        if token.kind in ("open", "empty") and token.name == language[0]:
            parts.append(_with_language(token, language[1], info))
        elif token.kind == "open" and token.name == segment_name:
            wanted = _is_translated(token, translates[-1])
            segment = file.segment(at)
            if wanted and isinstance(segment, list):
                parts += segment
            else:
                parts.append(file.source(at, file.closing[at]))
                if (source := file.source_text(at)).strip():
                    why = segment if wanted and isinstance(segment, str) else "marked as not to be translated"
                    left.append(Untranslated(source, why))
            at = file.closing[at]
            continue
        else:
            parts.append(token.source)
        if token.kind == "open":
            translates.append(_is_translated(token, translates[-1]))
        elif token.kind == "close" and token.name != segment_name:
            translates.pop()
        at += 1
    return text_document(parts, text, left)


def _is_translated(token: Token, inherited: bool) -> bool:
    """Return the element's attribute ``translate``; an element without it inherits that of its parent."""
    return {"yes": True, "no": False}.get(token.get("translate") or "", inherited)


def _with_language(token: Token, attribute: str, info: DocumentInfo) -> str:
    """Return the tag that declares the target language, with the language added if it has none."""
    source, declared = token.source, token.get(attribute)
    if declared is None:
        if info.tgt_lang is None:
            return source
        end = -2 if source.endswith("/>") else -1
        return f'{source[:end].rstrip()} {attribute}="{info.tgt_lang}"{source[end:]}'
    if info.tgt_lang is not None and variety(declared) != variety(info.tgt_lang):
        raise DataError(f"{info.name}: is to be translated to {declared}, but this model translates to {info.tgt_lang}")
    return source


class _File:
    """The tokens of an XLIFF file, names without prefixes, and where each element closes."""

    def __init__(self, file_tokens: list[Token]) -> None:
        self.tokens = file_tokens
        self.closing = closing_tags(file_tokens)

    def source(self, start: int, end: int) -> str:
        """Return the source of the tokens ``start`` to ``end - 1``."""
        return "".join(token.source for token in self.tokens[start:end])

    def text(self, start: int, end: int) -> str:
        """Return the text of these tokens, without tags."""
        return "".join(token.text for token in self.tokens[start:end] if token.kind == "text")

    def child(self, parent: int, name: str) -> tuple[int, int] | None:
        """Return the first token of a direct child element and the one after its last; None without such a child."""
        at = parent + 1
        while at < self.closing[parent]:
            token = self.tokens[at]
            after = self.closing[at] + 1 if token.kind == "open" else at + 1
            if token.name == name and token.kind in ("open", "empty"):
                return at, after
            at = after
        return None

    def source_text(self, segment: int) -> str:
        """Return the text of a segment's ``<source>``, "" if it has none."""
        place = self.child(segment, "source")
        return "" if place is None else self.text(*place)

    def segment(self, start: int) -> list[Part] | str:
        """Return the segment that opens at ``start`` with a unit in its ``<target>``, or why it is not translated."""
        source, target = self.child(start, "source"), self.child(start, "target")
        if source is None or self.tokens[source[0]].kind == "empty":
            return "empty"
        if target is not None:
            state = self.tokens[target[0]].get("state") or self.tokens[start].get("state") or ""
            if self.text(*target).strip() and state not in _NOT_YET:
                return "translated already"
            # The new target replaces the empty or outdated one; its state no longer holds.
            old = re.sub(r"(?<!\s)\s++state(?:-qualifier)?=(?:\"[^\"]*\"|'[^']*')", "", self.tokens[target[0]].source)
            opening, space, (start_of_target, end_of_target) = (
                f"{old[:-2].rstrip()}>" if old.endswith("/>") else old,
                "",
                target,
            )
        else:
            start_of_target = end_of_target = (self.child(start, "seg-source") or source)[1]
            opening = ""
            before = self.tokens[source[0] - 1]
            space = before.source if before.kind == "text" else ""  # indents the target as the source
        prefix = (re.match(r"<([\w.-]+:)?", self.tokens[source[0]].source) or [""])[1] or ""
        return [
            self.source(start, start_of_target), space, opening or f"<{prefix}target>",
            self.unit(source[0] + 1, source[1] - 1), f"</{prefix}target>",
            self.source(end_of_target, self.closing[start]),
        ]  # fmt: skip

    def unit(self, at: int, end: int) -> Unit:
        """Return the content of a ``<source>`` as a unit, its inline codes as tags."""
        unit = Unit()
        while at < end:
            token = self.tokens[at]
            if token.kind == "text":
                unit.text += token.text
                unit.raw.append(token.source)
            elif token.kind == "open" and token.name not in _FLOWS_THROUGH:
                code = self.source(at, self.closing[at] + 1)
                unit.tags.append(Tag(len(unit.text), (code,)))
                unit.raw.append(code)
                at = self.closing[at]
            else:
                role = token.kind if token.kind in ("open", "close") else "point"
                unit.tags.append(Tag(len(unit.text), (token.source,), role, token.name))
                unit.raw.append(token.source)
            at += 1
        return unit
