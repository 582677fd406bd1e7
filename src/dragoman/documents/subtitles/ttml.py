"""Timed text (.ttml, .dfxp): the paragraphs of its body in the language of the model. Its XML is checked by lxml.

The standard: https://www.w3.org/TR/ttml2/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from dragoman.documents import xml
from dragoman.documents.document import DocumentInfo, Untranslated, known_language
from dragoman.documents.subtitles.cues import Cue, Film
from dragoman.documents.subtitles.tokens import Token, tokenized
from dragoman.errors import DataError
from dragoman.languages.codes import variety

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


@dataclass(frozen=True)
class Rules:
    """Facts about a file that say which elements of its paragraphs stay as they are."""

    styles: Styles
    info: DocumentInfo | None  # has the language of the model; None: there are no paragraphs in others

    def why_kept(self, token: xml.Token) -> str:
        """Return why an element stays as it is; "" if its words are translated."""
        if _ruby(token, self.styles) in _READINGS:
            return "the reading of a word stays as it is"
        return "" if self.info is None else self.info.why_not(src=token.get("xml:lang"))


def tokenize(source: str, rules: Rules) -> list[Token]:
    """Cut the content of a paragraph into tokens."""
    return list(_content(xml.tokens(source, {}), rules))


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


def _content(tokens: Sequence[xml.Token], rules: Rules) -> Iterator[Token]:
    """Yield the tokens of a paragraph."""
    opaque: list[str] = []  # source of an element that is no text
    depth = 0
    open_kinds: list[str] = []
    for token in tokens:
        name = _local(token)
        is_start = token.kind in ("open", "empty")
        if depth or (is_start and (name in _OPAQUE or rules.why_kept(token))):
            opaque.append(token.source)
            depth += (token.kind == "open") - (token.kind == "close")
            if not depth:
                yield Token("".join(opaque), "point")
                opaque = []
        elif token.kind == "text" and token.source.startswith("<!"):
            yield Token(token.source, text=token.text)
        elif token.kind == "text":
            yield from tokenized(token.source, _ENTITY, _entity)
        elif token.kind == "empty" and (name == "br" or token.source.endswith("/>")):
            yield Token(token.source, "break" if name == "br" else "point")
        elif token.kind == "empty":  # two tags, which a translation may part
            opening, mark, closing = token.source.partition("</")
            yield from (Token(opening, "open", name=name), Token(mark + closing, "close", name=name))
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


class _Paragraph(NamedTuple):
    """A paragraph of the body."""

    start: int  # index of the tag that opens it
    end: int  # index of the tag that closes it
    line: int
    division: int  # number of divisions that begin or end before it


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
    paragraphs = list(_paragraphs(tokens))
    langs = _languages(tokens, paragraphs, info)
    rules = Rules(_ruby_styles(tokens), info if any(langs) else None)
    skeleton: list[str | Cue] = []
    left: list[Untranslated] = []
    at = 0
    for paragraph in paragraphs:
        tag, content = tokens[paragraph.start], tokens[paragraph.start + 1 : paragraph.end]
        why = info.why_not(src=langs[paragraph.start])
        if why and any(_has_words(own) for own, lang in zip(content, _inherited(content), strict=True) if not lang):
            left.append(_untranslated(content, paragraph.line, why))
            continue
        left += _kept(content, rules, paragraph.line)
        skeleton.append("".join(token.source for token in tokens[at : paragraph.start + 1]))
        skeleton.append(_cue(tag, tuple(_content(content, rules)), (paragraph.line, paragraph.division), rates))
        at = paragraph.end
    skeleton.append("".join(token.source for token in tokens[at:]))
    line_break = next((token.source for token in tokens if _local(token) == "br"), "")
    prefix = root.name.rpartition(":")[0]
    line_break = line_break or (f"<{prefix}:br/>" if prefix else "<br/>")
    return Film(skeleton, partial(tokenize, rules=rules), line_break, is_escaped=True, left=left)


def _paragraphs(tokens: Sequence[xml.Token]) -> Iterator[_Paragraph]:
    """Yield the paragraphs of the body; those without content are left out."""
    depth_of_body, n_divisions, line = 0, 0, 1
    opened: tuple[int, int] | None = None  # index and line of the tag of a paragraph
    for i, token in enumerate(tokens):
        name = _local(token)
        if name == "body" and token.kind != "empty":
            depth_of_body += 1 if token.kind == "open" else -1
        n_divisions += name == "div"
        if name == "p" and token.kind == "close" and opened is not None:
            yield _Paragraph(opened[0], i, opened[1], n_divisions)
            opened = None
        elif name == "p" and token.kind == "open" and depth_of_body > 0 and opened is None:
            opened = i, line
        line += token.source.count("\n")


def _languages(tokens: Sequence[xml.Token], paragraphs: Sequence[_Paragraph], info: DocumentInfo) -> list[str]:
    """Return the language of each token where paragraphs are declared to be in several, else "" for each.

    That of the root is often wrong: it counts only if some words are declared to be in the language of the model.
    """
    for counts_root in (True, False):
        langs = _inherited(tokens, counts_root)
        spoken = {
            langs[i]
            for start, end, _, _ in paragraphs
            for i, token in enumerate(tokens[start:end], start)
            if _has_words(token)
        }
        varieties = {variety(lang) for lang in spoken}
        if len(varieties) < 2:
            break
        if variety(info.src_lang) in varieties or not counts_root:
            return langs
    return [""] * len(tokens)


def _inherited(tokens: Sequence[xml.Token], counts_root: bool = True) -> list[str]:
    """Return the language that each token is declared to be in, by itself or around it; "" if none is known."""
    langs: list[str] = []
    around = [""]
    for token in tokens:
        own = token.get("xml:lang") if token.kind in ("open", "empty") else None
        is_declared = own is not None and (counts_root or _local(token) != "tt")
        langs.append(known_language(own or "") if is_declared else around[-1])
        if token.kind == "open":
            around.append(langs[-1])
        elif token.kind == "close":
            around.pop()
    return langs


def _has_words(token: xml.Token) -> bool:
    return token.kind == "text" and any(map(str.isalpha, token.text))


def _untranslated(content: Sequence[xml.Token], line: int, why: str) -> Untranslated:
    """Return the text of tokens in a line of the file as one that stays."""
    shown = "".join(token.text for token in content if token.kind == "text")
    return Untranslated(" ".join(shown.split()), f"line {line}: {why}")


def _kept(content: Sequence[xml.Token], rules: Rules, line: int) -> Iterator[Untranslated]:
    """Yield what stays of a paragraph that begins in a line of the file."""
    closing = xml.closing_tags(list(content))
    at = 0
    while at < len(content):
        end = at
        if content[at].kind == "open" and (why := rules.why_kept(content[at])):
            end = closing.get(at, at)
            if any(map(_has_words, content[at:end])):
                yield _untranslated(content[at:end], line, why)
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
