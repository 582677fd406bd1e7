"""What a search receives and what it returns: segments and settings in, hypotheses out.

settings = SearchSettings(decode=DecodeConfig(beam_size=5), n_best=3)
result = search_all(model, [Segment(ids=[17, 4, 9])], settings, device)
print(result.hypotheses[0][0].score)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.config import SPECIAL_IDS, DecodeConfig, LengthPenalty, SpecialIds
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.constraints import Rules
from dragoman.errors import ConfigError, DecodeError
from dragoman.options import SamplingOptions

if TYPE_CHECKING:
    from torch import Tensor

NOT_FINITE = "the model's scores are not finite (NaN or infinite): its weights are damaged or diverged"

OUT_OF_MEMORY = "out of memory, even alone in a batch: use a smaller beam or shorten the sentence"

Progress = Callable[[int, int, str], object]
"""Called with how many are done, of how many, and of what."""


def out_of_memory(what: str, i: int) -> DecodeError:
    """Return the error of a sentence or pair, number ``i`` from 0, that does not even fit alone."""
    return DecodeError(f"{what} {i + 1}: {OUT_OF_MEMORY}")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A source that is translated in one piece."""

    ids: Sequence[int]  # source subwords without eos; at least one
    key: Hashable = None  # names it in the random numbers of sampling; None: its index
    rules: Rules | None = None  # constraints on its translation
    cancellation: Cancellation | None = None  # None: nobody can cancel it
    between_steps: Callable[[], object] | None = None
    """Called between two steps of its search, which goes on when it returns; not by every engine."""

    @property
    def is_free(self) -> bool:
        """True if nothing constrains its translation."""
        return self.rules is None or self.rules.are_none

    @property
    def is_cancelled(self) -> bool:
        """True if its translation is no longer needed."""
        return self.cancellation is not None and self.cancellation.cancelled


class Sampling(NamedTuple):
    """Settings of sampling. With all three limits, temperature comes first, then ``top_k``, then ``top_p``."""

    temperature: float = 1.0  # above 1 flatter, below 1 sharper
    top_k: int = 0  # draw only from this many of the most probable tokens; 0: from all
    top_p: float = (
        1.0  # draw only from the fewest tokens with this total probability (https://arxiv.org/abs/1904.09751)
    )
    seed: int = 0

    def checked(self) -> Sampling:
        """Return these settings.

        Raises:
            ConfigError: A value is impossible.
        """
        SamplingOptions(sample=True, **self._asdict())
        return self


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Settings of a search."""

    decode: DecodeConfig  # beam, length penalty, patience, extra tokens, size of a batch
    n_best: int = 1  # hypotheses of each segment
    with_spare: bool = False  # return other finished hypotheses of the beam after these, if the engine has them
    sampling: Sampling | None = None  # None: search instead of drawing
    allow_unk: bool = False  # the unknown subword may be chosen
    longest: int | None = None  # most tokens that the model has positions for, eos counted; None: any number
    shortlist: bool = False  # search the bundle's shortlist for each segment without constraints
    # how fast, not what is found
    workers: int = 1  # batches searched at a time
    balance: bool = False  # take smaller batches than ``decode`` says, where that is faster
    special: SpecialIds = SPECIAL_IDS

    @property
    def never(self) -> tuple[int, ...]:
        """Ids that no search chooses; the probabilities of the others stay the model's."""
        special = self.special
        return (special.pad, special.bos) if self.allow_unk else (special.pad, special.unk, special.bos)

    @property
    def penalty(self) -> LengthPenalty:
        """The length penalty of scores."""
        return self.decode.penalty

    def with_decode(self, **changes: Any) -> Self:
        """Return these settings with another beam or batch size."""
        return replace(self, decode=replace(self.decode, **changes))

    def check(self, segments: Sequence[Segment]) -> None:
        """Check that the segments can be searched for.

        Raises:
            ConfigError: ``sampling`` is impossible.
            DecodeError: ``n_best`` is more than the beam, or sampling has words to place.
        """
        if self.sampling is None:
            self.check_beam()
            return
        self.sampling.checked()
        if self.n_best < 1:
            raise DecodeError(f"n_best must be 1 or more, got {self.n_best}")
        if any(segment.rules is not None and segment.rules.include for segment in segments):
            raise DecodeError("sampling cannot place words that must appear: leave out one of them")

    def check_beam(self) -> None:
        """Check that the beam holds the hypotheses to return.

        Raises:
            DecodeError: It does not.
        """
        if not 1 <= self.n_best <= self.decode.beam_size:
            raise DecodeError(f"n_best must be from 1 to beam_size = {self.decode.beam_size}, got {self.n_best}")


def checked_workers(workers: int) -> int:
    """Return the number of batches searched at a time.

    Raises:
        ConfigError: It is less than 1.
    """
    if workers < 1:
        raise ConfigError(f"workers must be 1 or more, got {workers}")
    return workers


class Hypothesis(NamedTuple):
    """A finished translation; ``score`` is its log-probability (nats, eos included) over the length penalty."""

    ids: list[int]  # without bos and eos
    score: float
    log_prob: float


def scored(ids: Sequence[int], log_prob: float, penalty: LengthPenalty) -> Hypothesis:
    """Return a finished translation with its score: its log-probability (nats) over the length penalty."""
    return Hypothesis(list(ids), penalised(log_prob, len(ids) + 1, penalty), log_prob)


def penalised(log_prob: float, n: int, penalty: LengthPenalty) -> float:
    """Return the score of ``n`` tokens, eos counted: their log-probability over the length penalty."""
    return log_prob / penalty(n)


@dataclass(frozen=True)
class SearchResult:
    """The hypotheses of some segments."""

    hypotheses: list[list[Hypothesis]]  # of each segment, best first; none if it is among the next, or was cancelled
    out_of_memory: list[int] = field(default_factory=list)  # indices of segments that did not even fit alone

    def complete(self) -> list[list[Hypothesis]]:
        """Return the hypotheses.

        Raises:
            DecodeError: A segment ran out of memory.
        """
        if self.out_of_memory:
            raise out_of_memory("sentence", min(self.out_of_memory))
        return self.hypotheses


@dataclass(frozen=True, kw_only=True)
class SearchBatch:
    """Sentences that are searched together; each list has one entry for each row of ``src``."""

    src: Tensor  # (B, S) int64 on the model's device; each row ends in eos and is padded
    max_lens: Sequence[int]  # most tokens of each translation, eos counted; the last one is then eos
    rules: Sequence[Rules | None] | None = None  # constraints; None: no row has any
    cancellations: Sequence[Cancellation | None] | None = None  # None: no row can be cancelled
    between_steps: Sequence[Callable[[], object]] = ()  # called between two steps

    def pause(self) -> None:
        """Let others do what they have to do between two steps."""
        for call in self.between_steps:
            call()

    def is_wanted(self, rows: NDArray[np.int64]) -> NDArray[np.bool_] | bool:
        """Return for each of some rows whether it is still to be searched; True if no row can be cancelled."""
        if self.cancellations is None:
            return True
        tokens = (self.cancellations[row] for row in rows.tolist())
        return np.array([token is None or not token.cancelled for token in tokens], np.bool_)

    def repeated(self, n: int) -> SearchBatch:
        """Return the batch with each row ``n`` times, one copy after the other."""
        if n == 1:
            return self
        rows = [row for row in range(len(self.max_lens)) for _ in range(n)]
        rules, cancellations = self.rules, self.cancellations
        return SearchBatch(
            src=self.src.repeat_interleave(n, dim=0),
            max_lens=[self.max_lens[row] for row in rows],
            rules=None if rules is None else [rules[row] for row in rows],
            cancellations=None if cancellations is None else [cancellations[row] for row in rows],
            between_steps=self.between_steps,
        )
