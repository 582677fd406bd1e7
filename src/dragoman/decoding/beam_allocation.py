"""Positive lexical constraints: phrases that a translation must contain, by dynamic beam allocation.

A phrase is a run of ids. Hypotheses that have placed equally many of the ids form a "bank", and the beam is shared out
between the banks. So hypotheses that have begun to place phrases are not driven out by more probable ones that put it
off (Post and Vilar, 2018, https://arxiv.org/abs/1804.06609). eos is not allowed before all phrases are placed. When
only just enough tokens are left for them, nothing else is allowed: so the result contains them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

Phrase = tuple[int, ...]


class Progress(NamedTuple):
    """The phrases of one hypothesis: those to place, and the one that it is placing."""

    left: tuple[Phrase, ...]  # not placed yet, in their order
    begun: Phrase = ()  # the last ids, which begin one of these phrases (or several)
    closed: Phrase = ()  # the phrase that the last id completed

    @property
    def needed(self) -> int:
        """Number of ids that must still be placed."""
        return sum(map(len, self.left)) - len(self.begun)

    @property
    def next(self) -> list[int]:
        """Ids that would continue a phrase, or start one."""
        n = len(self.begun)
        return sorted({phrase[n] for phrase in self.left if phrase[:n] == self.begun})


def advance(progress: Progress, token: int) -> Progress:
    """Append one id. A phrase that is broken off must be begun again."""
    left = progress.left
    beginnings = _beginnings(left)
    place = beginnings.after(beginnings.place(progress.begun), token)
    n = beginnings.lengths[place]
    run = (*progress.begun, token)[len(progress.begun) + 1 - n :]
    if n and place in beginnings.whole:
        first = left.index(run)
        return Progress((*left[:first], *left[first + 1 :]), closed=run)
    return Progress(left, run)


class _Beginnings:
    """The beginnings of some phrases as a tree, each with the next shorter one that it ends in.

    This is the automaton of Aho and Corasick (1975, https://doi.org/10.1145/360825.360855). Without it, each id would
    be compared with every beginning of every phrase, which took a minute for words of 200 ids.
    """

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self.children: list[dict[int, int]] = [{}]  # of each beginning, by the id that comes next; 0 is the empty one
        self.lengths = [0]
        self.whole: set[int] = set()  # beginnings that are a phrase
        for phrase in phrases:
            place = 0
            for token in phrase:
                place = self.children[place].get(token) or self._add(place, token)
            self.whole.add(place)
        self.shorter = [0] * len(self.children)  # the longest other beginning that each ends in
        places = [0]
        for place in places:  # shorter ones first
            for token, child in self.children[place].items():
                if place:
                    self.shorter[child] = self.after(self.shorter[place], token)
                places.append(child)

    def _add(self, place: int, token: int) -> int:
        self.children[place][token] = new = len(self.children)
        self.children.append({})
        self.lengths.append(self.lengths[place] + 1)
        return new

    def after(self, place: int, token: int) -> int:
        """Return the longest beginning in which a run ends that ends in the beginning ``place``, and then ``token``."""
        while place and token not in self.children[place]:
            place = self.shorter[place]
        return self.children[place].get(token, 0)

    def place(self, run: Phrase) -> int:
        """Return the longest beginning in which a run ends."""
        place = 0
        for token in run:
            place = self.after(place, token)
        return place

    def leading_to(self, run: Phrase, n: int) -> list[int]:
        """Return the ids after which a run would end in a beginning of at least ``n`` ids; ``n`` is at least 1."""
        place, tokens = self.place(run), set[int]()
        while self.lengths[place] + 1 >= n:
            tokens.update(self.children[place])
            if not place:
                break
            place = self.shorter[place]
        return sorted(tokens)


_beginnings = lru_cache(maxsize=2**8)(_Beginnings)


def only_next(progress: Progress, room: int) -> list[int]:
    """Return the only ids that may come next if all phrases are still to fit; none where any id may.

    Args:
        room: Number of tokens that may still come, eos counted.
    """
    spare = room - 2 - sum(map(len, progress.left))
    if not progress.left or spare >= 0:
        return []
    return _beginnings(progress.left).leading_to(progress.begun, -spare) or progress.next


def progress_of(ids: Sequence[int], phrases: Sequence[Phrase]) -> Progress:
    """Return which ``phrases`` some ``ids`` have placed; a phrase that is named twice must be placed twice."""
    if not phrases:
        return Progress(())
    # as bytes, a tenth of the memory of a tuple and its numbers
    run, wanted = array(_ID, ids).tobytes(), tuple(phrases)
    # each call recurs by one id: a long run is worked off in parts, so that none recurs deeply
    for n in range(100 * _ID_BYTES, len(run), 100 * _ID_BYTES):
        _progress(run[:n], wanted)
    return _progress(run, wanted)


_ID = "i"
"""Type of an id in ``array``."""

_ID_BYTES = array(_ID).itemsize


@lru_cache(maxsize=2**14)
def _progress(run: bytes, phrases: tuple[Phrase, ...]) -> Progress:
    """Return what ``progress_of`` returns; answers are kept, as a search asks for each hypothesis with one id more."""
    if not run:
        return Progress(phrases)
    return advance(_progress(run[:-_ID_BYTES], phrases), array(_ID, run[-_ID_BYTES:])[0])


def share_out(
    totals: Tensor, histories: Sequence[Sequence[int]], phrases: Sequence[Phrase], eos_id: int
) -> list[tuple[float, int]]:
    """Choose which extensions of one sentence's hypotheses end and which continue.

    Candidates are the ``2K`` best of all, each hypothesis's best, and each that places another of the ids. Every bank
    gets its K / (number of banks) best; the other places of the beam go to the best of the others.

    Args:
        totals: ``(K, V)`` log-probabilities of the extended hypotheses, -inf for tokens that may not follow.
        histories: The K hypotheses so far.

    Returns:
        Up to K that end, then up to K that continue, as (log-probability, ``beam * V + token``), each best first.
    """
    k, n_vocab = totals.shape
    states = [progress_of(ids, phrases) for ids in histories]
    flat = totals.flatten()
    places = set(flat.topk(min(2 * k, k * n_vocab)).indices.tolist())
    places.update(beam * n_vocab + token for beam, token in enumerate(totals.argmax(dim=1).tolist()))
    places.update(beam * n_vocab + token for beam, state in enumerate(states) for token in state.next)
    scored = zip(flat[list(places)].tolist(), places, strict=True)
    candidates = sorted((pair for pair in scored if pair[0] > float("-inf")), key=lambda pair: (-pair[0], pair[1]))
    ends = [pair for pair in candidates if pair[1] % n_vocab == eos_id]
    banks: dict[int, list[tuple[float, int]]] = {}
    for total, place in candidates:
        beam, token = divmod(place, n_vocab)
        if token != eos_id:
            banks.setdefault(advance(states[beam], token).needed, []).append((total, place))
    share = k // (1 + sum(map(len, phrases)))
    chosen = [pair for bank in banks.values() for pair in bank[:share]]
    others = sorted((pair for bank in banks.values() for pair in bank[share:]), key=lambda pair: (-pair[0], pair[1]))
    return ends[:k] + sorted(chosen + others[: k - len(chosen)], key=lambda pair: (-pair[0], pair[1]))
