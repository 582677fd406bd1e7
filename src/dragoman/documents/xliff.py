"""XLIFF 1.0 to 1.2 and 2.0 to 2.2: segments without a target get one, the others keep theirs.

A target is replaced only if it is empty, or a copy of its source, with its codes or with none, in a state that says
that it is not translated yet. A new target gets the state of a translation that nobody has reviewed.
https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, https://docs.oasis-open.org/xliff/xliff-core/v2.2/
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dragoman.documents.document import Document, DocumentInfo, Text, Untranslated
from dragoman.documents.gettext.placeholders import USUAL, WHY_REJECTED, effective, ordered
from dragoman.documents.units import Part, Translations, Unit, units_of
from dragoman.documents.xliff_content import ContentReader, Settings, is_one_piece
from dragoman.documents.xml import (
    Token,
    check,
    closing_tags,
    opening_tag,
    root_namespace,
    root_of,
    tokens,
    with_attribute,
)
from dragoman.errors import DataError
from dragoman.languages.codes import standard
from dragoman.translation.keeping.protected import has_letters

SUFFIXES = (".xliff", ".xlf")
COMPARED = ("markup",)  # a segment with a translation is read as done

_NOT_YET = frozenset(["new", "needs-translation", "initial"])
"""States that mark a target as not translated yet."""

_FINISHED = frozenset(["final", "signed-off", "reviewed"])
"""States after which nobody is to change a target, even one without words."""

_STATE = re.compile(r"(?<!\s)\s++(?:state|state-qualifier|subState)=(?:\"[^\"]*\"|'[^']*')")
_PREFIX = re.compile(r"<([\w.-]+:)?")
_CODE = re.compile("\0[^\0]*+\0")
"""The sign for a code in ``_File.content_in``."""
_UNTRANSLATED = "\0"
"""Source of a probe, which no XML can contain."""


@dataclass(frozen=True)
class _Segment:
    """A segment that gets a target: the source around the target, and the content of the target."""

    original: str  # the segment as it is in the file
    before: str
    tag: str  # the tag that holds the state: that of the target, or of the segment in XLIFF 2
    between: str  # source between this tag and the content
    content: list[Part]
    after: str
    states: tuple[dict[str, str], dict[str, str]]  # attributes of a whole translation, and of one with a text missing
    left: Sequence[Untranslated] = ()  # what of its source stays

    def written(self, render: Callable[[Sequence[Part]], str]) -> str:
        """Return the segment with its target; as it is in the file if none of its texts has a translation."""
        texts = [unit.text for unit in units_of(self.content) if has_letters(unit.plain)]
        missing = sum(render([Unit(text, raw=[_UNTRANSLATED])]) == _UNTRANSLATED for text in texts)
        if texts and missing == len(texts):
            return self.original
        tag = _STATE.sub("", self.tag)
        for name, value in self.states[missing > 0].items():
            tag = with_attribute(tag, name, value)
        return "".join([self.before, tag, self.between, render(self.content), self.after])


_OLD_STATES = (
    {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}, {"state": "needs-translation"},
)  # fmt: skip
_NEW_STATES = {"state": "translated"}, {"state": "initial"}


@dataclass
class _Result:
    """Source and segments in the order of the file, and the segments that stay as they are."""

    pieces: list[str | _Segment] = field(default_factory=list)
    left: list[Untranslated] = field(default_factory=list)


@dataclass(frozen=True)
class _Scope:
    """Settings that an element passes on to those inside it."""

    translates: bool = True
    keeps_space: bool = False
    why_not: str = ""  # why the languages of this part of the file are not those of the model


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut an XLIFF file into the segments that have no target yet; see ``document.Format``."""
    text = check(data, info)
    file = _File(tokens(text.text, {root_namespace(text.text): ""}))
    root = root_of(file.tokens, info)
    version = root.get("version") or ""
    if root.name != "xliff" or not version.startswith(("1.", "2.")):
        raise DataError(f"{info.name}: its root is {root.name} {version}, not that of XLIFF 1.2 or 2.0")
    file.version = version
    result = _read_all(file, info)
    return _document(result, text)


def _document(result: _Result, text: Text) -> Document:
    """Return the document of the pieces that were read."""
    parts: list[Part] = []
    for piece in result.pieces:
        parts += [piece] if isinstance(piece, str) else piece.content

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        return text.encode(
            "".join(piece if isinstance(piece, str) else piece.written(render) for piece in result.pieces)
        )

    def reject(translations: Translations) -> set[str]:
        return {
            unit.plain
            for unit in units_of(parts)
            if unit.plain in translations.by_text
            and _placeholders(unit.plain) != _placeholders(translations.by_text[unit.plain].text)
        }

    return Document(parts, save, tuple(result.left), reject, text.read_as, WHY_REJECTED)


def _placeholders(text: str) -> tuple[list[str], list[str]]:
    """Return what a translation must have too: all placeholders such as ``%1``, and the order of those without number.

    Those in braces are kept by other means, or quoted where a translation makes them up.
    """
    return [one for one in effective(text, USUAL) if one.startswith("%")], ordered(text)


def _read_all(file: _File, info: DocumentInfo) -> _Result:
    """Read every segment of a file.

    Raises:
        DataError: No part of the file is in the languages of the model.
    """
    language_tag, segment_name = ("xliff", "segment") if file.is_new else ("file", "trans-unit")
    result = _Result()
    scopes = [_Scope()]
    reasons: list[str] = []  # for each part with languages of its own
    at = 0
    while at < len(file.tokens):
        token = file.tokens[at]
        scope = _inside(token, scopes[-1])
        if token.kind in ("open", "empty") and token.name == language_tag:
            scope = _Scope(scope.translates, scope.keeps_space, _why_not(token, file.is_new, info))
            reasons.append(scope.why_not)
            result.pieces.append(token.source if scope.why_not else _with_language(token, file.is_new, info))
        elif token.kind == "open" and token.name == segment_name:
            _read_segment(file, at, (scope, info.tgt_lang), result)
            at = file.closing[at] + 1
            continue
        elif token.kind == "open" and token.name == "ignorable":
            if has_letters(words := file.source_text(at)):
                result.left.append(Untranslated(words, "not part of a segment"))
            result.pieces.append(token.source)
        else:
            result.pieces.append(token.source)
        if token.kind == "open":
            scopes.append(scope)
        elif token.kind == "close":
            scopes.pop()
        at += 1
    if reasons and all(reasons):
        raise DataError(f"{info.name}: {reasons[0]}")
    return result


def _inside(token: Token, scope: _Scope) -> _Scope:
    """Return what an element passes on: its attributes ``translate`` and ``xml:space``, else those of its parent."""
    if token.kind not in ("open", "empty"):
        return scope
    translates = {"yes": True, "no": False}.get(token.get("translate") or "", scope.translates)
    space = {"preserve": True, "default": False}.get(token.get("xml:space") or "", scope.keeps_space)
    return _Scope(translates, space, scope.why_not)


def _why_not(token: Token, is_new: bool, info: DocumentInfo) -> str:
    """Return why the languages that a tag declares are not those of the model; "" if they are, or it declares none."""
    names = ("srcLang", "trgLang") if is_new else ("source-language", "target-language")
    return info.why_not(*map(token.get, names))


def _with_language(token: Token, is_new: bool, info: DocumentInfo) -> str:
    """Return the tag that declares the target language, with the language added if it has none."""
    name = "trgLang" if is_new else "target-language"
    if token.get(name) or info.tgt_lang is None:
        return token.source
    return with_attribute(token.source, name, standard(info.tgt_lang))


def _read_segment(file: _File, at: int, about: tuple[_Scope, str | None], result: _Result) -> None:
    """Read the segment that opens at ``at``: one to translate, or source that stays and is named."""
    scope, tgt_lang = about
    after = file.closing[at] + 1
    if scope.why_not:
        segment: _Segment | str = scope.why_not
    elif not scope.translates:
        segment = "marked as not to be translated"
    else:
        segment = file.segment(at, scope, tgt_lang)
    if isinstance(segment, _Segment):
        result.pieces.append(segment)
        result.left += segment.left
        return
    result.pieces.append(file.source(at, after))
    if (source := file.source_text(at)).strip():
        result.left.append(Untranslated(source, segment))


class _File:
    """The tokens of an XLIFF file, names without prefixes, and where each element closes."""

    def __init__(self, file_tokens: list[Token]) -> None:
        self.tokens = file_tokens
        self.closing = closing_tags(file_tokens)
        self.reader = ContentReader(file_tokens, self.closing)
        self.source = self.reader.source
        self.version = ""

    @property
    def is_new(self) -> bool:
        """True for XLIFF 2."""
        return self.version.startswith("2")

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

    def segments_in(self, start: int, end: int) -> dict[tuple[str, int], int]:
        """Return the opening tags of ``<mrk mtype="seg">`` in order, by ``mid`` and the number of those before with it.

        Those in a code or in what is protected are part of it.
        """
        segments: dict[tuple[str, int], int] = {}
        n_same = Counter[str]()
        at = start
        while at < end:
            token = self.tokens[at]
            if _is_segment(token):
                mid = token.get("mid") or str(at)
                segments[mid, n_same[mid]] = at
                n_same[mid] += 1
            is_whole = token.kind == "open" and (_is_segment(token) or is_one_piece(token))
            at = self.closing[at] + 1 if is_whole else at + 1
        return segments

    def state(self, start: int, target: tuple[int, int] | None) -> str:
        """Return the state of a segment, "" if it has none."""
        tag = self.tokens[start] if self.is_new or target is None else self.tokens[target[0]]
        return tag.get("state") or ""

    def is_finished(self, start: int, target: tuple[int, int] | None) -> bool:
        """True if a person said that nothing about the target is to change."""
        return self.state(start, target) in _FINISHED or self.tokens[start].get("approved") == "yes"

    def content_in(self, start: int, end: int) -> str:
        """Return the text of these tokens with a sign for each code; an ``mrk`` around something has none."""
        shown = []
        for token in self.tokens[start:end]:
            if token.kind == "text":
                shown.append(token.text)
            elif token.kind != "other" and (token.name != "mrk" or (token.kind == "empty" and not _is_segment(token))):
                shown.append(f"\0{token.kind} {token.name} {token.get('id') or token.get('startRef')}\0")
        return " ".join("".join(shown).split())

    def why_kept(self, start: int, source: tuple[int, int], target: tuple[int, int] | None) -> str:
        """Return why a segment keeps its target; "" if it gets a new one."""
        state = self.state(start, target)
        content = self.content_in(target[0] + 1, target[1] - 1) if target is not None else ""
        if self.is_finished(start, target):
            return "translated already" if content else f"has no translation, but its state is {state or 'approved'}"
        if not content:
            return ""
        of_source = self.content_in(source[0] + 1, source[1] - 1)
        words = " ".join(_CODE.sub("", of_source).split())
        is_copy = content in (of_source, words)
        if state not in _NOT_YET:
            return "its target repeats the source, in no state that says so" if is_copy else "translated already"
        if is_copy:
            return ""
        own_words = " ".join(_CODE.sub("", content).split())
        if not own_words:
            return "its target has codes, but no words"
        if own_words == words:
            return "its target has other codes than the source"
        return f"has a translation, although its state is {state}"

    def segment(self, start: int, scope: _Scope, tgt_lang: str | None) -> _Segment | str:
        """Return the segment that opens at ``start`` with a new target, or why it is not translated."""
        source, target = self.child(start, "source"), self.child(start, "target")
        if source is None or self.tokens[source[0]].kind == "empty":
            return "empty"
        cut = self.child(start, "seg-source")
        if cut is not None and not self.segments_in(cut[0] + 1, cut[1] - 1):
            cut = None
        scope = _inside(self.tokens[source[0]], scope)
        settings = Settings(tgt_lang, not self.is_new, scope.keeps_space)
        why_kept = self.why_kept(start, source, target)
        content: list[Part] | None
        if why_kept and target is not None and cut is not None and not self.is_finished(start, target):
            content = self.filled(cut, target, settings)
        elif why_kept:
            content = None
        else:
            content = self.content(cut or source, settings)
            why_kept = "a message in it cannot be parsed"
        if content is None:
            return why_kept
        return replace(self._with_target(start, (source, target), content), left=settings.left)

    def content(self, place: tuple[int, int], settings: Settings) -> list[Part] | None:
        """Return the content of a source, or of each segment of a ``<seg-source>``, as parts."""
        between, end = place[0] + 1, place[1] - 1
        segments = self.segments_in(between, end)
        if not segments:
            return self.reader.parts(between, end, settings)
        parts: list[Part] = []
        for at in segments.values():
            close = self.closing.get(at, at)
            before = self.reader.parts(between, at, settings)
            inside = self.reader.parts(at + 1, close, settings) if at < close else []
            if before is None or inside is None:
                return None
            parts += [*before, self.tokens[at].source, *inside, self.source(max(at + 1, close), close + 1)]
            between = close + 1
        last = self.reader.parts(between, end, settings)
        return None if last is None else [*parts, *last]

    def filled(self, cut: tuple[int, int], target: tuple[int, int], settings: Settings) -> list[Part] | None:
        """Return the content of a target with its empty segments translated; None if it has no such segment."""
        sources = self.segments_in(cut[0] + 1, cut[1] - 1)
        parts: list[Part] = []
        between = target[0] + 1
        for mid, place in self.segments_in(target[0] + 1, target[1] - 1).items():
            is_empty = self.tokens[place].kind == "empty"
            close = place if is_empty else self.closing[place]
            if self.content_in(place + 1, close) or mid not in sources or self.tokens[sources[mid]].kind == "empty":
                continue
            content = self.reader.parts(sources[mid] + 1, self.closing[sources[mid]], settings)
            if content is None or not any(has_letters(unit.plain) for unit in units_of(content)):
                continue
            opening = opening_tag(self.tokens[place])
            prefix = (_PREFIX.match(opening) or [""])[1] or ""
            closing = f"</{prefix}mrk>" if is_empty else self.tokens[close].source
            parts += [self.source(between, place), opening, *content, closing]
            between = close + 1
        return [*parts, self.source(between, target[1] - 1)] if parts else None

    def _with_target(
        self, start: int, places: tuple[tuple[int, int], tuple[int, int] | None], content: list[Part]
    ) -> _Segment:  # fmt: skip
        """Return the segment with a target of this content, in the place of the old one or after its source."""
        source, target = places
        prefix = (_PREFIX.match(self.tokens[source[0]].source) or [""])[1] or ""
        space = ""
        if target is not None:
            opening = opening_tag(self.tokens[target[0]])
            start_of_target, end_of_target = target
        else:
            preserves = self.tokens[source[0]].get("xml:space")
            opening = with_attribute(f"<{prefix}target>", "xml:space", preserves) if preserves else f"<{prefix}target>"
            start_of_target = end_of_target = (self.child(start, "seg-source") or source)[1]
            before = self.tokens[source[0] - 1]
            space = before.source if before.kind == "text" else ""  # indents the target as the source
        end = self.closing[start] + 1
        around = self.source(start + 1, start_of_target) + space
        after = f"</{prefix}target>" + self.source(end_of_target, end)
        states = _NEW_STATES if self.is_new else _OLD_STATES
        if self.version == "1.0":  # which has no qualifiers
            states = tuple({"state": state["state"]} for state in states)  # type: ignore[assignment]
        first = self.tokens[start].source
        before_tag, tag, between = ("", first, around + opening) if self.is_new else (first + around, opening, "")
        return _Segment(self.source(start, end), before_tag, tag, between, content, after, states)


def _is_segment(token: Token) -> bool:
    """True if a token opens a segment of a ``<seg-source>`` or of a target."""
    return token.name == "mrk" and token.kind in ("open", "empty") and token.get("mtype") == "seg"
