"""Timed text (.ttml, .dfxp): the paragraphs of its body. The XML is checked by lxml; metadata keep their bytes.

The standard: https://www.w3.org/TR/ttml2/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dragoman.documents import xml
from dragoman.documents.document import DocumentInfo
from dragoman.documents.subtitles.cues import Cue, Film
from dragoman.documents.subtitles.tokens import Token, tokenized
from dragoman.errors import DataError

_ENTITY = re.compile(r"&[^;&<>\s]{1,40};")
_CLOCK = re.compile(r"(\d{1,9}):(\d{2}):(\d{2})(?:\.(\d+)|:(\d{1,9})(?:\.\d+)?)?\Z")
_OFFSET = re.compile(r"(\d+(?:\.\d+)?)(h|m|s|ms|f|t)\Z")
_RATE = re.compile(r"\s[\w.-]+:(frameRate|tickRate)\s*=\s*[\"'](\d{1,9})[\"']")
_TIMED = re.compile(r"\s(begin|end|dur)\s*=\s*(?:\"[^\"]*\"|'[^']*')|\sxml:id\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_OPAQUE = frozenset(["metadata", "set", "desc", "title", "agent", "actor", "audio"])


def tokenize(source: str) -> list[Token]:
    """Cut the content of a paragraph into tokens."""
    return list(_content(xml.tokens(source, {})))


def _entity(match: re.Match[str]) -> Token:
    return Token(match[0], text=xml.Token(match[0], "text").text)


def _local(token: xml.Token) -> str:
    return token.name.rpartition(":")[2]


def _content(tokens: Sequence[xml.Token]) -> Iterator[Token]:
    """Yield the tokens of a paragraph."""
    opaque: list[str] = []  # source of an element that is no text
    depth = 0
    open_kinds: list[str] = []
    for token in tokens:
        name = _local(token)
        if depth or (token.kind in ("open", "empty") and name in _OPAQUE):
            opaque.append(token.source)
            depth += (token.kind == "open") - (token.kind == "close")
            if not depth:
                yield Token("".join(opaque), "point")
                opaque = []
        elif token.kind == "text" and token.source.startswith("<!"):
            yield Token(token.source, text=token.text)
        elif token.kind == "text":
            yield from tokenized(token.source, _ENTITY, _entity)
        elif token.kind == "empty":
            yield Token(token.source, "break" if name == "br" else "point")
        elif token.kind == "open":
            kind = "turn" if token.get("ttm:agent") else "time" if token.get("begin") else "open"
            open_kinds.append(kind)
            yield Token(token.source, kind, name=token.source if kind == "turn" else name)  # type: ignore[arg-type]
        elif token.kind == "close":
            opened = open_kinds.pop() if open_kinds else "open"
            kind = {"turn": "turn", "time": "point"}.get(opened, "close")
            yield Token(token.source, kind, name="" if kind == "turn" else name)  # type: ignore[arg-type]
        else:
            yield Token(token.source, "point")
    if opaque:
        yield Token("".join(opaque), "point")


def read_paragraphs(text: str, info: DocumentInfo) -> Film:
    """Cut checked XML into its paragraphs.

    Raises:
        DataError: The root is not ``tt``.
    """
    tokens = xml.tokens(text, {})
    root = next((token for token in tokens if token.kind in ("open", "empty")), None)
    if root is None or _local(root) != "tt":
        raise DataError(
            f"{info.name}: its root must be tt, got {_local(root) if root else 'nothing'}, so it is no timed text"
        )
    rates = {name: int(value) for name, value in _RATE.findall(root.source)}
    skeleton: list[str | Cue] = []
    depth_of_body, n_divisions, line = 0, 0, 1
    paragraph: tuple[xml.Token, int, int] | None = None  # its tag, the place of its content, and its line
    at = 0
    for i, token in enumerate(tokens):
        name = _local(token)
        if name == "body" and token.kind != "empty":
            depth_of_body += 1 if token.kind == "open" else -1
        n_divisions += name == "div"
        if name == "p" and token.kind == "close" and paragraph is not None:
            skeleton.append("".join(token.source for token in tokens[at : paragraph[1]]))
            skeleton.append(_cue(paragraph[0], tokens[paragraph[1] : i], (paragraph[2], n_divisions), rates))
            at, paragraph = i, None
        elif name == "p" and token.kind == "open" and depth_of_body > 0 and paragraph is None:
            paragraph = token, i + 1, line
        line += token.source.count("\n")
    skeleton.append("".join(token.source for token in tokens[at:]))
    line_break = next((token.source for token in tokens if _local(token) == "br"), "")
    prefix = root.name.rpartition(":")[0]
    return Film(skeleton, tokenize, line_break or (f"<{prefix}:br/>" if prefix else "<br/>"), is_escaped=True)


def _cue(tag: xml.Token, content: Sequence[xml.Token], where: tuple[int, int], rates: dict[str, int]) -> Cue:
    """Return a paragraph as a cue."""
    line, division = where
    start_s = _seconds(tag.get("begin"), rates)
    end_s = _seconds(tag.get("end"), rates)
    duration_s = _seconds(tag.get("dur"), rates)
    if end_s is None and start_s is not None and duration_s is not None:
        end_s = start_s + duration_s
    return Cue(tuple(_content(content)), line, start_s, end_s, f"{division} {_TIMED.sub('', tag.source)}")


def _seconds(time: str | None, rates: dict[str, int]) -> float | None:
    """Return a time such as ``00:00:01.500``, ``00:00:01:12`` (frames), ``1.5s`` or ``40t`` in seconds."""
    frames, ticks = rates.get("frameRate") or 30, rates.get("tickRate") or rates.get("frameRate") or 1
    clock = _CLOCK.match((time or "").strip())
    if clock is not None:
        hours, minutes, seconds, part, frame = clock.groups()
        fraction = float(f"0.{part}") if part else int(frame or 0) / frames
        return 3600 * int(hours) + 60 * int(minutes) + int(seconds) + fraction
    offset = _OFFSET.match((time or "").strip())
    if offset is None:
        return None
    return float(offset[1]) * (_UNITS.get(offset[2]) or 1 / (frames if offset[2] == "f" else ticks))
