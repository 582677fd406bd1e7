"""The document of a film: a unit a sentence, whose translation is divided among its captions and broken into lines.

A sentence that ends within a line is a unit too, so no word crosses its end, whatever the model makes of it.

A caption that had words is never empty: where a translation has fewer words than captions, its words stay on the screen
for the next one too. What comes back as it was keeps its bytes, with its line breaks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from dragoman.documents.document import Document, DocumentInfo, Text, Untranslated
from dragoman.documents.subtitles.cues import Cue, Film, Piece
from dragoman.documents.subtitles.lines import MOST_LINES, break_places, broken, width
from dragoman.documents.subtitles.sentences import sentences_of
from dragoman.documents.subtitles.tokens import Token, has_text, pairs, source_of, split, text_of
from dragoman.documents.units import Part, Tag, Translations, Unit
from dragoman.languages.known import is_unspaced
from dragoman.languages.sentence_ends import ENDS
from dragoman.languages.sentences import sentences as split_sentences
from dragoman.languages.words import clusters
from dragoman.translation.keeping.protected import has_letters

CUT = "\0"
"""Stands between two captions in a translated sentence; no file has this character."""

WHY_REJECTED = "its translation has no words, or would be read as a tag"

Render = Callable[[Sequence[Part]], str]


@dataclass(frozen=True)
class _Sentence:
    """A sentence, and the pieces that it stands in: all of the first and the last, or a part."""

    pieces: list[Piece]
    parts: list[list[Token]]  # its tokens in each piece
    unit: Unit


@dataclass(frozen=True)
class _Writer:
    """All that is needed to write a film."""

    film: Film
    info: DocumentInfo
    skeleton: list[str | Piece]
    sentences: list[_Sentence]

    def written(self, render: Render) -> tuple[str, dict[Piece, str]]:
        """Return the translated file and its pieces."""
        words: dict[Piece, list[Token]] = {}
        translated: set[Piece] = set()  # of the others the source stays
        for sentence in self.sentences:
            divided = self._divided(sentence, render)
            for i, piece in enumerate(sentence.pieces):
                own = divided[i]
                translated |= set() if own is None else {piece}
                tokens = _in_one_line(sentence.parts[i]) if own is None else own
                words[piece] = self._joined(words[piece], tokens) if piece in words else tokens
        written = {
            piece: self._piece(piece, words[root] if (root := piece.copy_of or piece) in translated else None)
            for piece in self.skeleton
            if isinstance(piece, Piece)
        }
        text = "".join(part if isinstance(part, str) else written[part] for part in self.skeleton)
        return text, written

    def _joined(self, first: list[Token], second: list[Token]) -> list[Token]:
        """Return the words of two sentences of a piece."""
        lead, tokens, _ = _outer_space(first)
        space = "" if is_unspaced(self.info.tgt_lang) else " "
        return [Token(lead, text=lead), *tokens, Token(space, text=space), *_outer_space(second)[1]]

    def _divided(self, sentence: _Sentence, render: Render) -> list[list[Token] | None]:
        """Return the translated words of each piece; None where the source stays."""
        pieces, tokenize = sentence.pieces, self.film.tokenize
        text = text_of(tokenize(render([replace(sentence.unit, tags=[], raw=[CUT])]))).strip()
        if not text or text == CUT or text.split() == sentence.unit.plain.split():
            return [None] * len(pieces)
        words = _words(text, is_unspaced(self.info.tgt_lang))
        if not words:
            return [None] * len(pieces)
        if len(words) < len(pieces):  # each caption shows one word, and some the same as the caption before
            shown = [words[i * len(words) // len(pieces)] for i in range(len(pieces))]
            return [[Token(self.film.escape(word), text=word)] for word in shown]
        parts = [tokenize(part) for part in render([sentence.unit]).split(CUT)]
        return list(parts) if len(parts) == len(pieces) and all(map(has_text, parts)) else [None] * len(pieces)

    def _piece(self, piece: Piece, words: list[Token] | None) -> str:
        """Return a piece with its words translated."""
        (before, inner, after), around_line = piece.shell
        if words is None or _plain(words) == _plain(inner):
            return piece.source
        if any(token.kind == "time" for token in inner):
            return _sung(inner, words, self.film.escape)
        if piece.copy_of is not None:
            text = text_of(words).strip()
            words = [Token(self.film.escape(text), text=text)]
        if _n_tags(words) < _n_tags(inner):
            return before + _sung(inner, words, self.film.escape) + after
        line_break = piece.breaks[0].source if piece.breaks else self.film.line_break
        return before + self._lines(words, len(piece.lines), around_line, line_break) + after

    def _lines(self, words: list[Token], n_lines: int, around: tuple[str, str], line_break: str) -> str:
        """Return words broken into lines."""
        lead, text, trail = _outer_space(words)
        limit = self.info.options.line_length
        lines = _split_at(text, broken(text_of(text), n_lines, limit))
        between = f"{around[1]}{line_break}{around[0]}"
        return lead + between.join(source_of(line) for line in lines) + trail

    def concerns(self, render: Render) -> tuple[Untranslated, ...]:
        """Return the captions that break the limits of ``DocumentOptions``."""
        options, concerns = self.info.options, []
        if options.line_length is None and options.reading_speed is None:
            return ()
        written = self.written(render)[1]
        for cue, pieces in groupby(written, key=lambda piece: piece.cue):
            tokens = [
                token for piece in pieces for token in [*self.film.tokenize(written[piece]), Token("\n", "break")]
            ]
            lines = "".join("\n" if token.kind == "break" else token.text for token in tokens).split("\n")
            lines = [line.strip() for line in lines if line.strip()]
            reasons = _too_much(cue, lines, options.line_length, options.reading_speed)
            if reasons:
                concerns.append(Untranslated(f"line {cue.line}: {' '.join(lines)}", "; ".join(reasons)))
        return tuple(concerns)


def _too_much(cue: Cue, lines: Sequence[str], length: int | None, speed: float | None) -> list[str]:
    """Return why a caption is too long or too fast to be read; times are never changed."""
    reasons = []
    longest = max(map(width, lines), default=0)
    if length is not None and longest > length:
        reasons.append(f"a line has more than {length} columns")
    if length is not None and len(lines) > MOST_LINES:
        reasons.append(f"the caption has more than {MOST_LINES} lines")
    is_timed = cue.start_s is not None and cue.end_s is not None
    shown_s = max(0.0, (cue.end_s or 0.0) - (cue.start_s or 0.0))
    if speed is not None and is_timed and sum(map(len, lines)) > speed * shown_s:
        reasons.append(f"more than {speed:g} characters per second: it may be too fast to read")
    return reasons


def film_document(film: Film, text: Text, info: DocumentInfo) -> Document:
    """Return the document of a film."""
    cut = sentences_of(film, info.src_lang)
    sentences = [
        _Sentence(
            [piece for piece, _ in parts], [tokens for _, tokens in parts], _unit([own for _, own in parts], film)
        )
        for pieces in cut.together
        for parts in _parted(pieces, info.src_lang)
    ]
    writer = _Writer(film, info, cut.skeleton, sentences)

    def reject(translations: Translations) -> set[str]:
        """Return the texts whose translations would be read as tags, or have no words."""
        rejected = set()
        for sentence in sentences:
            plain = sentence.unit.plain
            if plain in translations.by_text:
                translation = translations.by_text[plain].text
                tokens = film.tokenize(sentence.unit.escape(translation))
                is_tag = CUT in translation or any(token.kind != "text" for token in tokens)
                if is_tag or (has_letters(plain) and not _words(translation, is_unspaced(info.tgt_lang))):
                    rejected.add(plain)
        return rejected

    return Document(
        [sentence.unit for sentence in sentences], lambda render: text.encode(writer.written(render)[0]),
        tuple(film.left), reject, text.read_as, WHY_REJECTED, writer.concerns,
    )  # fmt: skip


_ENDS = frozenset(ENDS)
_Parts = list[tuple[Piece, list[Token]]]
"""The tokens of a sentence in each piece that it stands in."""


def _parted(pieces: Sequence[Piece], lang: str | None) -> list[_Parts]:
    """Return the sentences of pieces that belong together; none ends within an element or a song."""
    words = [piece.shell[0][1] for piece in pieces]
    texts = [text_of(tokens) for tokens in words]
    whole = [(piece, tokens) for piece, tokens in zip(pieces, words, strict=True)]
    text = " ".join(texts)
    is_sung = any(token.kind == "time" for tokens in words for token in tokens)
    if is_sung or _ENDS.isdisjoint(text.rstrip()[:-1]):
        return [whole]
    ends = list(accumulate(map(len, _with_letters(split_sentences(text, lang)))))[:-1]
    parted: list[_Parts] = [[]]
    at = 0  # place of a piece in the text of all
    for piece, tokens, text in zip(pieces, words, texts, strict=True):
        own = [end - at for end in ends if at < end < at + len(text)]
        for i, run in enumerate(_runs(tokens, own)):
            if i or at in ends:
                parted.append([])
            parted[-1].append((piece, run))
        at += len(text) + 1
    return parted if all(has_letters(text_of(run)) for parts in parted for _, run in parts) else [whole]


def _with_letters(parts: Sequence[str]) -> list[str]:
    """Return sentences, one without letters joined to the one before it."""
    joined: list[list[str]] = []
    for part in parts:
        if joined and not (has_letters(part) and has_letters(joined[-1][0])):
            joined[-1].append(part)
        else:
            joined.append([part])
    return ["".join(own) for own in joined]


def _runs(tokens: Sequence[Token], ends: Sequence[int]) -> list[list[Token]]:
    """Cut the tokens of a piece at places where no element is open; a line break counts as a character."""
    as_text = [replace(token, text=" ") if token.kind == "break" else token for token in tokens]
    partner = pairs(as_text)
    depth, at = 0, 0
    places: list[int] = []
    for i, token in enumerate(as_text):
        depth += (token.kind == "open" and i in partner) - (token.kind == "close" and i in partner)
        after = at + len(token.text)
        if not depth:
            inside = ends[bisect_right(ends, at) : bisect_right(ends, after)]
            places += [end for end in inside if token.source == token.text or end == after]
        at = after
    runs = split(as_text, places) if places else [as_text]
    return [[replace(token, text="") if token.kind == "break" else token for token in run] for run in runs]


def _in_one_line(tokens: Sequence[Token]) -> list[Token]:
    return [Token(" ", text=" ") if token.kind == "break" else token for token in tokens]


def _unit(words: Sequence[list[Token]], film: Film) -> Unit:
    """Return a sentence as one unit; a cut stands between the words of two pieces."""
    unit = Unit(escape=film.escape)
    lengths = [max(1, len(text_of(tokens).strip())) for tokens in words]
    before = [0, *accumulate(lengths)]
    for i, tokens in enumerate(words):
        if i:
            unit.tags.append(Tag(len(unit.text), (CUT,), share=before[i] / before[-1], by_words=True))
            unit.raw.append(CUT)
            unit.text += " "
        is_sung = any(token.kind == "time" for token in tokens)
        partner = pairs(tokens)
        for place, token in enumerate(tokens):
            unit.raw.append(token.source)
            if token.kind == "break":
                unit.text += " "
            elif token.kind == "text":
                unit.text += token.text
            elif token.implied and place not in partner:
                continue
            elif not is_sung:  # each word of a song has its own tags, which are set when it is written
                kind = token.kind if token.kind in ("open", "close") and place in partner else "point"
                unit.tags.append(Tag(len(unit.text), (token.source or token.implied,), kind, token.name))
    return unit


def _words(text: str, unspaced: bool) -> list[str]:
    """Return the parts of a translation of which each caption must have one."""
    if unspaced:
        return [text[start:end] for start, end in clusters(text) if any(map(str.isalnum, text[start:end]))]
    return [word for word in text.split() if any(map(str.isalnum, word))]


def _n_tags(tokens: Sequence[Token]) -> int:
    return sum(token.kind in ("open", "close", "point") for token in tokens)


def _plain(tokens: Sequence[Token]) -> list[str]:
    """Return tags and words, for a comparison that ignores white space and how characters are escaped."""
    plain, run = [], ""
    for token in tokens:
        if token.kind in ("text", "break"):
            run += " " if token.kind == "break" else token.text
        elif token.kind != "time":
            plain += [*run.split(), token.source]
            run = ""
    return [*plain, *run.split()]


def _outer_space(tokens: list[Token]) -> tuple[str, list[Token], str]:
    """Return white space before and after the words apart from them."""
    tokens = list(tokens)
    lead = trail = ""
    if tokens and tokens[0].kind == "text" and tokens[0].source == tokens[0].text:
        text = tokens[0].text
        lead = text[: len(text) - len(text.lstrip())]
        tokens[0] = Token(text.lstrip(), text=text.lstrip())
    if tokens and tokens[-1].kind == "text" and tokens[-1].source == tokens[-1].text:
        text = tokens[-1].text
        trail = text[len(text.rstrip()) :]
        tokens[-1] = Token(text.rstrip(), text=text.rstrip())
    return lead, tokens, trail


def _split_at(tokens: Sequence[Token], places: Sequence[int]) -> list[list[Token]]:
    """Cut tokens into lines at places of their text; the space before a break is dropped."""
    lines: list[list[Token]] = [[]]
    wanted = [*places, -1]
    at = number = 0
    for token in tokens:
        behind = token
        if token.kind == "open" and at == wanted[number]:  # it stays with the words inside it
            _drop_space(lines[-1])
            lines.append([])
            number += 1
        while behind.kind == "text" and at <= wanted[number] < at + len(behind.text) and wanted[number] >= 0:
            n = wanted[number] - at
            if n > 0 and behind.source != behind.text:
                break
            left = behind.text[:n].rstrip()
            lines[-1] += [Token(left, text=left)] if left else []
            _drop_space(lines[-1])
            lines.append([])
            behind = Token(behind.text[n:], text=behind.text[n:]) if n else behind
            at, number = wanted[number], number + 1
        lines[-1].append(behind)
        at += len(behind.text)
    return lines


def _drop_space(line: list[Token]) -> None:
    """Remove white space from the end of a line, in place."""
    for i in range(len(line) - 1, -1, -1):
        token = line[i]
        if token.text and token.source == token.text:
            line[i] = Token(token.text.rstrip(), text=token.text.rstrip())
        if line[i].text:
            return


def _sung(inner: Sequence[Token], words: Sequence[Token], escaped: Callable[[str], str]) -> str:
    """Return words divided among the moments at which the words of the source are sung.

    The moments keep their order; each gets its share of the words.
    """
    text = text_of(words).strip()
    places = [*break_places(text), len(text)]
    runs = [list(run) for _, run in groupby(inner, key=_Moments())]
    lengths = [sum(len(token.text.strip()) for token in run if token.kind == "text") for run in runs]
    total, at, done = max(1, sum(lengths)), 0, 0
    written: list[str] = []
    last = " "  # character that is shown before the next word
    for run, length in zip(runs, lengths, strict=True):
        done += length
        end = at
        if length:
            n = max(bisect_right(places, at), round(done / total * len(places)) - 1)
            end = places[-1] if done == total else places[min(n, len(places) - 1)]
        words_of_run, end = text[at:end], max(at, end)
        for token in run:
            if token.kind != "text" or not token.text.strip():
                written.append(token.source)
                last = token.text[-1:] or last
            elif words_of_run:
                words_of_run = _spaced(words_of_run.strip(), token.text, text[at - 1 : at + 1], last)
                written.append(escaped(words_of_run))
                last, words_of_run = words_of_run[-1:], ""
        at = end
    return "".join(written)


def _spaced(words: str, source: str, around: str, last: str) -> str:
    """Return words with the white space of their source; a space is added where only the translation has one."""
    before = source[: len(source) - len(source.lstrip())]
    after = source[len(source.rstrip()) :]
    needs_space = any(map(str.isspace, around)) and not before and not last.isspace()
    return before + (" " if needs_space else "") + words + after


class _Moments:
    """Counts the moments of a song and its elements: tokens up to the next one have the same number."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, token: Token) -> int:
        self.number += token.kind in ("time", "open")
        return self.number
