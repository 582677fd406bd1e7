"""Timed text (.ttml, .dfxp): the paragraphs of its body. The XML is checked by lxml; metadata keep their bytes.

The standard: https://www.w3.org/TR/ttml2/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from dragoman.documents import xml
from dragoman.documents.document import DocumentInfo, Untranslated
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
_READINGS = frozenset(["text", "textContainer", "delimiter"])
"""Values of ``tts:ruby`` of an element that shows how a word is read, or the brackets around that."""

Styles = Mapping[str, str]
"""Value of ``tts:ruby`` of each style that has one."""


def tokenize(source: str, styles: Styles) -> list[Token]:
    """Cut the content of a paragraph into tokens."""
    return list(_content(xml.tokens(source, {}), styles))


def _entity(match: re.Match[str]) -> Token:
    return Token(match[0], text=xml.Token(match[0], "text").text)


def _local(token: xml.Token) -> str:
    return token.name.rpartition(":")[2]


def _ruby_styles(tokens: Sequence[xml.Token]) -> Styles:
    """Return the styles of a file that have ``tts:ruby``, also those that take it from a style before them."""
    styles: dict[str, str] = {}
    for token in tokens:
        if _local(token) == "style" and token.kind in ("open", "empty"):
            ruby = _ruby(token, styles)
            name = token.get("xml:id")
            if ruby and name:
                styles[name] = ruby
    return styles


def _ruby(token: xml.Token, styles: Styles) -> str:
    """Return the part that an element plays in a ruby, "" if it plays none."""
    named = (styles.get(name, "") for name in reversed((token.get("style") or "").split()))
    return token.get("tts:ruby") or next(filter(None, named), "")


def _content(tokens: Sequence[xml.Token], styles: Styles) -> Iterator[Token]:
    """Yield the tokens of a paragraph."""
    opaque: list[str] = []  # source of an element that is no text
    depth = 0
    open_kinds: list[str] = []
    for token in tokens:
        name = _local(token)
        is_start = token.kind in ("open", "empty")
        if depth or (is_start and (name in _OPAQUE or _ruby(token, styles) in _READINGS)):
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
    root = xml.root_of(tokens, info)
    if _local(root) != "tt":
        raise DataError(f"{info.name}: its root must be tt, got {_local(root)}, so it is no timed text")
    rates = {name: int(value) for name, value in _RATE.findall(root.source)}
    styles = _ruby_styles(tokens)
    skeleton: list[str | Cue] = []
    left: list[Untranslated] = []
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
            content = tokens[paragraph[1] : i]
            left += _readings(content, styles, paragraph[2])
            shown = tuple(_content(content, styles))
            skeleton.append(_cue(paragraph[0], shown, (paragraph[2], n_divisions), rates))
            at, paragraph = i, None
        elif name == "p" and token.kind == "open" and depth_of_body > 0 and paragraph is None:
            paragraph = token, i + 1, line
        line += token.source.count("\n")
    skeleton.append("".join(token.source for token in tokens[at:]))
    line_break = next((token.source for token in tokens if _local(token) == "br"), "")
    prefix = root.name.rpartition(":")[0]
    line_break = line_break or (f"<{prefix}:br/>" if prefix else "<br/>")
    return Film(skeleton, partial(tokenize, styles=styles), line_break, is_escaped=True, left=left)


def _readings(content: Sequence[xml.Token], styles: Styles, line: int) -> Iterator[Untranslated]:
    """Yield the readings of words in a paragraph that begins in a line of the file."""
    closing = xml.closing_tags(list(content))
    at = 0
    while at < len(content):
        end = closing.get(at, at)
        if content[at].kind != "open" or _ruby(content[at], styles) not in _READINGS:
            end = at
        shown = "".join(token.text for token in content[at:end] if token.kind == "text")
        if any(map(str.isalpha, shown)):
            why = f"line {line}: the reading of a word stays as it is"
            yield Untranslated(" ".join(shown.split()), why)
        at = end + 1


def _cue(tag: xml.Token, content: tuple[Token, ...], where: tuple[int, int], rates: dict[str, int]) -> Cue:
    """Return a paragraph as a cue."""
    line, division = where
    start_s = _seconds(tag.get("begin"), rates)
    end_s = _seconds(tag.get("end"), rates)
    duration_s = _seconds(tag.get("dur"), rates)
    if end_s is None and start_s is not None and duration_s is not None:
        end_s = start_s + duration_s
    return Cue(content, line, start_s, end_s, f"{division} {_TIMED.sub('', tag.source)}")


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
