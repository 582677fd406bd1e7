"""XLIFF 1.2 and 2.0: segments without a target get one; what has one already keeps it."""

from __future__ import annotations

import re

from dragoman.documents.document import Asked, Document, Left, of_text
from dragoman.documents.units import Part, Tag, Unit
from dragoman.documents.xml import Token, check, ends, tokens
from dragoman.errors import DataError
from dragoman.languages.codes import primary

SUFFIXES = (".xliff", ".xlf")

_FLOWS_THROUGH = frozenset(["g", "mrk", "pc", "sm", "em"])
"""Inline elements with text in them; the content of others is code."""

_NOT_YET = frozenset(["new", "needs-translation", "initial"])
"""States of a target that is no translation."""


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    text = check(data, asked)
    found = [Token(token.source, token.kind, token.name.rpartition(":")[2]) for token in tokens(text.text, {})]
    closing = ends(found)
    root = next(i for i, token in enumerate(found) if token.kind in ("open", "empty"))
    version = found[root].get("version") or ""
    if found[root].name != "xliff" or not version.startswith(("1.", "2.")):
        raise DataError(f"{asked.name}: its root is {found[root].name} {version}, not that of XLIFF 1.2 or 2.0")
    segment = "segment" if version.startswith("2") else "trans-unit"
    language = ("xliff", "trgLang") if version.startswith("2") else ("file", "target-language")
    parts: list[Part] = []
    left: list[Left] = []
    translates = [True]  # of each open element
    at = 0
    while at < len(found):
        token = found[at]
        if token.kind in ("open", "empty") and token.name == language[0]:
            parts.append(_with_language(token.source, token.get(language[1]), language[1], asked))
        elif token.kind == "open" and token.name == segment:
            wanted = _yes(token, translates[-1])
            made, why = _segment(found, closing, at, closing[at], asked)
            if wanted and isinstance(made, list):
                parts += made
            else:
                parts.append("".join(each.source for each in found[at : closing[at]]))
                source = _source_text(found, closing, at, closing[at])
                if source.strip():
                    left.append(Left(source, why if wanted else "marked as not to be translated"))
            at = closing[at]
            continue
        else:
            parts.append(token.source)
        if token.kind == "open":
            translates.append(_yes(token, translates[-1]))
        elif token.kind == "close" and token.name != segment:
            translates.pop()
        at += 1
    return of_text(parts, text, left)


def _yes(token: Token, inherited: bool) -> bool:
    return {"yes": True, "no": False}.get(token.get("translate") or "", inherited)


def _with_language(source: str, given: str | None, attribute: str, asked: Asked) -> str:
    """The tag that names the target language.

    Raises:
        DataError: It names another one.
    """
    if given is None:
        if asked.tgt_lang is None:
            return source
        end = -2 if source.endswith("/>") else -1
        return f'{source[:end].rstrip()} {attribute}="{asked.tgt_lang}"{source[end:]}'
    if asked.tgt_lang is not None and primary(given) != primary(asked.tgt_lang):
        raise DataError(f"{asked.name}: is to be translated to {given}, but this model translates to {asked.tgt_lang}")
    return source


def _child(found: list[Token], closing: dict[int, int], start: int, end: int, name: str) -> tuple[int, int] | None:
    """Where a child element begins and ends, its tags included; those of other children are not looked into."""
    at = start + 1
    while at < end:
        after = closing[at] + 1 if found[at].kind == "open" else at + 1
        if found[at].name == name and found[at].kind in ("open", "empty"):
            return at, after
        at = after
    return None


def _source_text(found: list[Token], closing: dict[int, int], start: int, end: int) -> str:
    place = _child(found, closing, start, end, "source")
    return "" if place is None else "".join(token.text for token in found[slice(*place)] if token.kind == "text")


def _segment(
    found: list[Token], closing: dict[int, int], start: int, end: int, asked: Asked
) -> tuple[list[Part] | None, str]:
    """A segment with its target, or why it gets none."""
    source = _child(found, closing, start, end, "source")
    if source is None or found[source[0]].kind == "empty":
        return None, "empty"
    target = _child(found, closing, start, end, "target")
    after = target
    if target is not None:
        token = found[target[0]]
        said = "".join(each.text for each in found[slice(*target)] if each.kind == "text")
        state = token.get("state") or found[start].get("state") or ""
        if said.strip() and state not in _NOT_YET:
            return None, "translated already"
    else:
        before = _child(found, closing, start, end, "seg-source") or source
        after = before[1], before[1]
    unit = _unit(found, closing, source[0] + 1, source[1] - 1)
    prefix = (re.match(r"<([\w.-]+:)?", found[source[0]].source) or [""])[1] or ""
    opening = f"<{prefix}target>"
    if target is not None:
        opening = re.sub(r"\s*/>$", ">", re.sub(r"\s+state(?:-qualifier)?=([\"']).*?\1", "", found[target[0]].source))
    space = found[source[0] - 1].source if found[source[0] - 1].kind == "text" and target is None else ""
    assert after is not None
    return [
        "".join(token.source for token in found[start : after[0]]), space, opening, unit, f"</{prefix}target>",
        "".join(token.source for token in found[after[1] : end]),
    ], ""  # fmt: skip


def _unit(found: list[Token], closing: dict[int, int], at: int, end: int) -> Unit:
    """What a source says, with its codes."""
    unit = Unit()
    while at < end:
        token = found[at]
        if token.kind == "text":
            unit.text += token.text
            unit.raw.append(token.source)
        elif token.kind == "open" and token.name not in _FLOWS_THROUGH:
            code = "".join(each.source for each in found[at : closing[at] + 1])
            unit.tags.append(Tag(len(unit.text), (code,)))
            unit.raw.append(code)
            at = closing[at]
        else:
            role = token.kind if token.kind in ("open", "close") else "point"
            unit.tags.append(Tag(len(unit.text), (token.source,), role, token.name))
            unit.raw.append(token.source)
        at += 1
    return unit
