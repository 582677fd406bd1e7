"""Constrained decoding: target prefix, positive and negative word constraints, no repeated n-grams.

Constraints only exclude next tokens; the probabilities of the others, and so the scores, stay the
model's. Texts are compared byte by byte with what each id spells, so a rule holds for every way of cutting a text into
subwords:

- **ids**: the translation begins with exactly these tokens; they come before a prefix.
- **prefix**: a token may come if it spells more of the prefix, or its last part and anything after. "Ha" may become
  "Haus" or "Hand", however these are cut; "Ha " (with a space) is a word of its own.
- **exclude**: a token is banned if the text would end in the word, or contain it, as a whole word.
  "Hund" is banned and "Hunde" is not, where that is one piece.
- **include**: see ``beam_allocation``. After such a phrase its last word ends.

Where constraints conflict, the prefix wins, then the words that must appear, then the end at the length limit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, NamedTuple

from dragoman.decoding.beam_allocation import Phrase, only_next, progress_of
from dragoman.languages.words import LETTER, ending, joins

if TYPE_CHECKING:
    from torch import Tensor

MOST_ANSWERS = 4_000_000
"""Largest size of the answers that a ``Spelling`` keeps: bytes of the texts, and ids."""

LEAST_ANSWER = 100
"""Size of an answer without its text and its ids."""

NO_TEXT = b"\xff"
"""A byte that UTF-8 has nowhere."""


class Spelling:
    """The bytes that each id of a vocabulary spells, and which ids continue or complete a text; answers are kept."""

    def __init__(self, spelled: Sequence[bytes], shadowed: Collection[int] = ()) -> None:
        """Take the properties of the same names of a ``Tokenizer``.

        Args:
            spelled: UTF-8, perhaps a part of a character; nothing for ids that are no text.
            shadowed: Ids that no prefix is spelled with, because the model has never seen them in a text.
        """
        self.spelled, self._shadowed = tuple(spelled), frozenset(shadowed)
        self.answers: dict[tuple[str, bytes], list[int]] = {}
        """Answers so far, by question and text."""
        self._size = 0

    def text(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of some ids, one after the other."""
        return b"".join(self.spelled[i] for i in ids)

    def along(self, text: bytes) -> list[int]:
        """Return ids that spell the beginning of ``text``, or all of it and more."""

        def found() -> list[int]:
            parts = (self._ids_of(text[:n]) for n in range(1, min(len(text), self._longest + 1)))
            return sorted({*self._beginning_with(text), *chain(*parts)})

        return [i for i in self._answer("along", text, found) if i not in self._shadowed]

    def closing(self, word: bytes, n: int) -> list[int]:
        """Return ids that spell a word after its first ``n`` bytes and stop there, or go on outside of it."""
        end, text = word[n:], _end(word)

        def found() -> list[int]:
            return [i for i in self._beginning_with(end) if not joins(text, _start(self.spelled[i][len(end) :]))]

        return self._answer("closing", b"%d " % n + word, found)

    def holding(self, word: bytes) -> list[int]:
        """Return ids that have ``word`` inside, as a word of its own, after other text."""
        first, last = _start(word), _end(word)

        def holds(piece: bytes) -> bool:
            start = piece.find(word, 1)
            if start < 1:
                return False
            before, after = _end(piece[:start]), _start(piece[start + len(word) :])
            return not joins(before, first) and not joins(last, after)

        return self._answer("holding", word, lambda: [i for i in self._containing(word) if holds(self.spelled[i])])

    def gluing(self, text: bytes) -> list[int]:
        """Return ids that would continue the word in which a text ends, or that begin with a part of a character."""
        end = ending(_end(text))
        is_inside = joins(end, LETTER)

        def glues(piece: bytes) -> bool:
            return joins(end, _start(piece)) or (is_inside and piece[0] > 127 and not _start(piece))

        # The ends are few, so every piece is asked.
        return self._answer(
            "gluing", end.encode(), lambda: [i for i, piece in enumerate(self.spelled) if piece and glues(piece)]
        )

    @cached_property
    def _sorted(self) -> tuple[list[bytes], list[int]]:
        """The pieces in order, and their ids."""
        pairs = sorted((piece, i) for i, piece in enumerate(self.spelled) if piece)
        return [piece for piece, _ in pairs], [i for _, i in pairs]

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.spelled), default=0)

    @cached_property
    def _joined(self) -> tuple[bytes, list[int]]:
        """All pieces, divided by a byte that no text has, and where each begins."""
        return NO_TEXT.join(self.spelled), [0, *accumulate(len(piece) + 1 for piece in self.spelled)]

    def _ids_of(self, text: bytes) -> list[int]:
        """Return the ids that spell exactly ``text``."""
        pieces, ids = self._sorted
        return ids[bisect_left(pieces, text) : bisect_right(pieces, text)]

    def _beginning_with(self, text: bytes) -> list[int]:
        """Return the ids whose pieces begin with ``text``."""
        pieces, ids = self._sorted
        first = last = bisect_left(pieces, text)
        while last < len(pieces) and pieces[last].startswith(text):
            last += 1
        return sorted(ids[first:last])

    def _containing(self, text: bytes) -> Iterator[int]:
        """Yield the ids whose pieces have ``text`` in them."""
        if len(text) > self._longest:
            return
        pieces, starts = self._joined
        at = pieces.find(text)
        while at >= 0:
            i = bisect_right(starts, at) - 1
            yield i
            at = pieces.find(text, starts[i + 1])

    def _answer(self, question: str, about: bytes, found: Callable[[], list[int]]) -> list[int]:
        ids = self.answers.get((question, about))
        if ids is None:
            ids = found()
            # Texts of clients are without number: a server would keep the answers about all of them.
            if self._size > MOST_ANSWERS:
                self.answers, self._size = {}, 0
            self.answers[question, about] = ids
            self._size += len(about) + len(ids) + LEAST_ANSWER
        return ids


_REACH = 64
"""Number of bytes of a text that tell if a word continues at its end or beginning."""


def _start(text: bytes) -> str:
    """Return the first characters; nothing for an empty text and for a part of a character."""
    return text[:_REACH].decode("utf-8", "ignore") if text[:1].isascii() or text[0] >= 0xC0 else ""


def _end(text: bytes) -> str:
    """Return the last whole characters; nothing if there are none."""
    return text[-_REACH:].decode("utf-8", "ignore")


class Rules(NamedTuple):
    """The constraints on the translation of one sentence."""

    spelling: Spelling
    prefix: bytes = b""  # it begins with these; as all texts do, with a space
    include: tuple[Phrase, ...] = ()  # each appears in it, as often as it is listed
    exclude: tuple[bytes, ...] = ()  # words that do not appear in it
    no_repeat_ngram: int = 0  # no n-gram of this many ids is repeated; 0: they may be
    min_tokens: int = 0  # eos does not come before this many tokens
    ids: tuple[int, ...] = ()  # the translation begins with these tokens, cut as they are

    @property
    def are_none(self) -> bool:
        """True if decoding is unconstrained."""
        return not (self.prefix or self.include or self.exclude or self.no_repeat_ngram or self.min_tokens
                    or self.ids)  # fmt: skip

    @property
    def room(self) -> int:
        """Most tokens that the prefix and the words may need."""
        return len(self.ids) + len(self.prefix) + sum(map(len, self.include))


def restrict(
    log_p: Tensor, histories: Sequence[Sequence[int]], rules: Sequence[Rules | None], rooms: Sequence[int], eos_id: int
) -> None:
    """Put -inf, in place, where a rule forbids a token.

    Args:
        log_p: ``(R, V)`` log-probabilities of the next token of R hypotheses.
        histories: Their ids so far, without bos.
        rules: Constraints of their sentences.
        rooms: Number of tokens that each may still get, this one and eos counted; at 1 only eos may come, and does.
    """
    import torch  # not above: who only makes rules needs none

    for row, (ids, rule, room) in enumerate(zip(histories, rules, rooms, strict=True)):
        if room <= 1 or rule is None or rule.are_none:
            continue
        only, never = following(ids, rule, room, eos_id)
        if only:
            index = torch.tensor(only, device=log_p.device)
            allowed = log_p[row, index]
            log_p[row] = -torch.inf
            log_p[row, index] = allowed
        elif never:
            log_p[row, torch.tensor(never, device=log_p.device)] = -torch.inf


def following(ids: Sequence[int], rules: Rules, room: int, eos_id: int) -> tuple[list[int], list[int]]:
    """Return the only ids that may follow (none: any may), and ids that may not."""
    if len(ids) < len(rules.ids):
        return [rules.ids[len(ids)]], []
    text = rules.spelling.text(ids)
    # A prefix that no subwords spell is given up where it cannot go on: later bytes of it would be in the wrong place.
    in_prefix = len(text) < len(rules.prefix) and rules.prefix.startswith(text)
    banned = {i for word in rules.exclude for i in completing(text, word, rules.spelling)}
    if in_prefix:
        # the prefix is kept even if it has an excluded word; a piece that goes beyond it must not complete one
        missing = rules.prefix[len(text) :]
        along = rules.spelling.along(missing)
        free = [i for i in along if i not in banned or len(rules.spelling.spelled[i]) <= len(missing)]
        return free or along, []
    phrases = progress_of(ids, rules.include)
    if only := only_next(phrases, room):
        return only, []
    wanted = phrases.next
    never = banned.union(repeating(ids, rules.no_repeat_ngram))
    if phrases.closed:
        never.update(rules.spelling.gluing(text))
    never.difference_update(wanted)
    if phrases.left or len(ids) < rules.min_tokens:
        never.add(eos_id)
    return [], sorted(never)


def repeating(ids: Sequence[int], n: int) -> list[int]:
    """Return ids that would repeat an n-gram of ``ids`` (https://arxiv.org/abs/1705.04304)."""
    if n < 1 or len(ids) < n:
        return []
    last = tuple(ids[len(ids) - n + 1 :])
    return [ids[i + n - 1] for i in range(len(ids) - n + 1) if tuple(ids[i : i + n - 1]) == last]


def completing(text: bytes, word: bytes, spelling: Spelling) -> list[int]:
    """Return ids that would complete ``word`` after ``text``, as a word of its own."""
    ids = list(spelling.holding(word))
    first = len(text)  # where the word begins, if the text ends in a part of it
    while word and first >= 0:
        n = len(text) - first
        closing = spelling.closing(word, n) if word.startswith(text[first:]) else []
        if closing and not joins(_end(text[:first]), _start(word)):
            ids += closing
        first = text.rfind(word[:1], max(0, len(text) - len(word) + 1), first)
    return ids
