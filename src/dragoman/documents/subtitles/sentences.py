"""Sentences over several captions: which lines and cues a sentence joins, so that the model reads it whole.

A full stop, another voice, place or style, a sound, a song, a long pause, and the beginning of a new sentence are its
ends. Where it is not sure, a caption stays by itself: then no word can move to another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dragoman.documents.subtitles.cues import CLOSING, ENDINGS, Cue, Film, Piece, Segment, segments_of
from dragoman.documents.subtitles.tokens import Token, label_end, text_of
from dragoman.languages.casing import is_capital, is_cased
from dragoman.languages.known import known
from dragoman.languages.sentence_ends import ENDS

LONGEST_PAUSE_S = 1.5
"""Longest pause between two cues of one sentence, in seconds."""

LONGEST_OVERLAP_S = 0.5
"""Longest time in which two cues of one sentence are shown together, in seconds."""

MOST_PIECES = 8
"""Largest number of cues that one sentence may span."""

PUNCTUATED = 0.2
"""Share of cues that end with the end of a sentence, in subtitles that are written with punctuation."""

LOWER = 0.05
"""Share of cues that begin with a small letter; below, every caption of a film without punctuation is a label."""

_SOFT_ENDS = (",", ";", "，", "、", "；", "،", "؛", "‚")
_OPENING = "\"'“‘«„「『¿¡‹»-–—…. \t"


_ALWAYS_CAPITAL = {
    "en": "i i'm i'll i've i'd i’m i’ll i’ve i’d", "de": "sie ihr ihnen ihre ihren ihrem ihrer", "lb": "dir iech",
}  # fmt: skip
_UNFINISHED = {
    "en": "the a an of to and or but in on at with for from by my your his our their as than if because into mr mrs",
    "de": "der die das den dem des ein eine einen einem einer und oder aber in im am an auf mit von zu für bei dass",
    "fr": "le la les l' un une des du de à et ou mais dans sur avec pour par mon ma mes son sa ses que qui",
    "es": "el la los las un una de del a al y o pero en con por para mi su sus que",
    "it": "il lo la i gli le un una di del della a al e o ma in con per da che",
    "pt": "o a os as um uma de do da dos das e ou mas em no na com por para que",
    "nl": "de het een van en of maar in op met voor naar bij mijn zijn haar als",
    "sv": "en ett och eller men i på med för av till att som", "da": "en et og eller men i på med for af til at som",
    "nb": "en et og eller men i på med for av til å som", "pl": "i a o w z na do od dla że oraz lub przez",
    "cs": "a i o v z na do od pro že nebo přes s k", "ru": "и а в на с к по от до для из о об что или но за у",
}  # fmt: skip
"""Words with which a caption is not complete: the next one continues it, although it may begin with a name."""


@dataclass(frozen=True)
class Habits:
    """Habits of the writer of a film's captions."""

    is_punctuated: bool
    has_labels: bool  # no caption begins with a small letter, and few end with a full stop
    is_all_capitals: bool
    stop_words: frozenset[str] = frozenset()
    capitals: frozenset[str] = frozenset()  # words of the language that are always written with a capital
    unfinished: frozenset[str] = frozenset()  # words of the language that end no sentence
    has_capital_nouns: bool = False


def habits_of(texts: Sequence[str], lang: str | None) -> Habits:
    """Return how captions with these texts are written."""
    texts = [text for text in texts if any(map(str.isalpha, text))]
    n = max(1, len(texts))
    n_ended = sum(text.rstrip().rstrip(CLOSING).endswith(tuple(ENDS)) for text in texts)
    n_lower = sum(bool(first := _first_letter(text)) and is_cased(first) and not is_capital(first) for text in texts)
    is_punctuated = n_ended >= PUNCTUATED * n
    language = known(lang)
    words = frozenset(language.stop_words.split()) | frozenset(language.articles.split())
    n_capitals = sum(text == text.upper() != text.lower() for text in texts)
    capitals, unfinished = (
        frozenset(table.get(language.code, "").split()) for table in (_ALWAYS_CAPITAL, _UNFINISHED)
    )  # fmt: skip
    has_labels = not is_punctuated and n_lower < LOWER * n
    has_capital_nouns = language.code in ("de", "lb")
    return Habits(is_punctuated, has_labels, n_capitals > n / 2, words, capitals, unfinished, has_capital_nouns)


@dataclass
class _Shown:
    """A cue with its pieces, as later cues see it."""

    cue: Cue
    by_text: dict[str, Piece] = field(default_factory=dict)  # pieces of one line each
    text: str = ""


@dataclass(frozen=True)
class Sentences:
    """The pieces of a film in the order of its source, and those that are translated together."""

    skeleton: list[str | Piece]
    together: list[list[Piece]]


def sentences_of(film: Film, lang: str | None) -> Sentences:
    """Return the sentences of a film, and all its source."""
    cues = [part for part in film.skeleton if isinstance(part, Cue)]
    cut = [segments_of(cue) for cue in cues]
    habits = habits_of([" ".join(segment.text for segment in segments) for segments, _ in cut], lang)
    skeleton: list[str | Piece] = []
    together: list[list[Piece]] = []
    previous: _Shown | None = None
    number = 0
    for part in film.skeleton:
        if isinstance(part, str):
            skeleton.append(part)
            continue
        segments, tail = cut[number]
        number += 1
        shown = _Shown(part, text="\n".join(segment.text for segment in segments))
        for before, piece in _pieces(part, segments, _repeated(segments, shown, previous), habits):
            skeleton += [before, piece]
            shown.by_text.setdefault(_line(piece), piece)
            if piece.copy_of is not None:
                continue
            last = together[-1][-1] if together and together[-1] else None
            grows = previous is not None and last is not None and last.cue is previous.cue and bool(previous.text) and (
                shown.text.startswith(previous.text) and not previous.by_text.keys() & shown.by_text.keys()
            )  # fmt: skip
            if (
                not together
                or last is None
                or grows
                or len(together[-1]) >= MOST_PIECES
                or not _continues(last, piece, habits)
            ):
                together.append([])
            together[-1].append(piece)
        skeleton.append(tail)
        if segments:
            previous = shown
        elif together and together[-1]:
            together.append([])  # no sentence continues after a caption that is empty
    return Sentences(skeleton, [pieces for pieces in together if pieces])


def _line(piece: Piece) -> str:
    """Return the text of a piece of one line; "" for more lines."""
    return text_of(piece.lines[0]).strip() if len(piece.lines) == 1 else ""


def _repeated(segments: Sequence[Segment], shown: _Shown, previous: _Shown | None) -> dict[int, Piece]:
    """Return for the numbers of segments that repeat a line of the cue before the piece with that line.

    Captions that roll up repeat their last line above the next one.
    """
    if previous is None or (len(segments) > 1 and shown.text == previous.text) or not _follows(previous.cue, shown.cue):
        return {}
    # A copy of a copy is one of the first piece: a line may be repeated in thousands of captions.
    return {
        i: previous.by_text[segment.text].copy_of or previous.by_text[segment.text]
        for i, segment in enumerate(segments)
        if segment.text in previous.by_text and not any(token.kind == "time" for token in segment.tokens)
    }


def _follows(first: Cue, second: Cue) -> bool:
    """True if a cue is shown where and when the one before it ends."""
    if first.settings != second.settings:
        return False
    if first.end_s is None or second.start_s is None:
        return True
    return -LONGEST_OVERLAP_S <= second.start_s - first.end_s <= LONGEST_OVERLAP_S


def _pieces(
    cue: Cue, segments: Sequence[Segment], repeated: dict[int, Piece], habits: Habits
) -> list[tuple[str, Piece]]:
    """Return the pieces of a cue, each with the source before it; lines of one sentence form a piece."""
    pieces: list[tuple[str, Piece]] = []
    for i, segment in enumerate(segments):
        piece = Piece(cue, [segment.tokens], segment.voice, segment.begins, copy_of=repeated.get(i))
        last = pieces[-1][1] if pieces else None
        joins = last is not None and segment.is_next_line and piece.copy_of is None and last.copy_of is None
        if joins and last is not None and _continues(last, piece, habits) and not _has_times(last, piece):
            line_break = Token(segment.before, "break")
            last.lines.append(segment.tokens)
            last.breaks.append(line_break)
        else:
            pieces.append((segment.before, piece))
    return pieces


def _has_times(*pieces: Piece) -> bool:
    return any(token.kind == "time" for piece in pieces for token in piece.lines[-1])


def _continues(last: Piece, piece: Piece, habits: Habits) -> bool:
    """True if a piece continues the sentence of the one before it."""
    if piece.begins or piece.voice != last.voice:
        return False
    before, text = text_of(last.lines[-1]).strip(), text_of(piece.lines[0]).strip()
    if not before or not text or has_ended(before) or _begins_anew(text):
        return False
    is_same_cue = last.cue is piece.cue
    if not is_same_cue and not _may_follow(last.cue, piece.cue):
        return False
    is_lower = _is_lower(text)
    if _covering(last.lines[-1]) != _covering(piece.lines[0]) and not (is_same_cue and is_lower):
        return False
    return not begins_sentence(before, text, habits, is_same_cue)


def _may_follow(first: Cue, second: Cue) -> bool:
    """True if neither the times nor the place of two cues part their sentences."""
    if first.settings != second.settings:
        return False
    if first.start_s is None or first.end_s is None or second.start_s is None or second.end_s is None:
        return True
    if first.end_s < first.start_s or second.end_s < second.start_s:
        return False
    return -LONGEST_OVERLAP_S <= second.start_s - first.end_s <= LONGEST_PAUSE_S


def has_ended(text: str) -> bool:
    """True if a line ends with the end of a sentence, a song or a sound."""
    line = text.rstrip()
    inner = line.rstrip(CLOSING)
    return inner.endswith(ENDINGS) or any(mark in ")]）】" for mark in line[len(inner) :])


def _begins_anew(text: str) -> bool:
    """True if a line begins with a dash, a note, a bracket or a label: another voice or a sound."""
    if text[0] in "♪♫♬[(（【［¿¡" or text.startswith((">>", "# ")):
        return True
    if text[0] in "-–—‐−" and text[1:].strip() and not text[1:].lstrip()[0].isdigit():
        return True
    return bool(label_end(text))


def _first_letter(text: str) -> str:
    """Return the first letter or digit of a text; "" if it has none."""
    return next((character for character in text if character.isalnum()), "")


def _is_lower(text: str) -> bool:
    first = _first_letter(text)
    return is_cased(first) and not is_capital(first) if first else False


def begins_sentence(before: str, text: str, habits: Habits, is_same_cue: bool) -> bool:
    """True if a line without a full stop before it begins a sentence of its own.

    Args:
        before: The line before, which does not end with the end of a sentence.
        text: The line.
        habits: How the captions are written.
        is_same_cue: True if both lines are shown together.
    """
    first = _first_letter(text)
    if not first or not _first_letter(before):
        return True
    if before.endswith(_SOFT_ENDS):
        return False
    if not first.isalpha():
        return habits.has_labels
    if before.endswith(("-", "–", "—")) and not _is_lower(text):
        return True  # interrupted, or the dash of the next speaker
    capitals, are_capitals = (line == line.upper() != line.lower() for line in (before, text))
    if (capitals or are_capitals) and not habits.is_all_capitals:
        return len(text) > 2 or not is_same_cue  # a sign, such as POLICE
    if not is_cased(first) or are_capitals:
        return not habits.is_punctuated
    if not is_capital(first):
        return False
    if habits.has_labels:
        return True
    word = text.lstrip(_OPENING).split()[0].rstrip(",.:;!?").lower()
    if word in habits.capitals or before.split()[-1].lower().rstrip(".") in habits.unfinished:
        return False
    if word in habits.stop_words or word in habits.unfinished or not habits.is_punctuated:
        return True
    return not (is_same_cue or habits.has_capital_nouns)  # else a name, or a noun of German


def _covering(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the opening tags that are around every word of a line, outermost first."""
    around: list[Token] = []
    covering: list[Token] | None = None
    for token in tokens:
        if token.kind == "open":
            around.append(token)
        elif token.kind == "close":
            i = next((i for i in range(len(around) - 1, -1, -1) if around[i].name == token.name), None)
            around = around if i is None else around[:i] + around[i + 1 :]
        elif token.text.strip():
            covering = (
                list(around) if covering is None else [tag for tag in covering if any(tag is own for own in around)]
            )
    return tuple(tag.source for tag in covering or ())
