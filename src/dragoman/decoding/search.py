"""Greedy and beam search for anything that offers ``start``, ``step`` and ``select`` (see ``Transformer``).

A beam search keeps ``beam_size`` unfinished hypotheses of each sentence. At each step each of them is extended by
every token. Of the ``2 * beam_size`` best extensions those that end in eos are finished if they are among the best
``beam_size``; the best ``beam_size`` of the others continue. A finished hypothesis of ``n`` tokens, eos counted, has
the score ``log P / ((5 + n) / 6) ** alpha`` (GNMT, https://arxiv.org/abs/1609.08144, Eq. 14). A sentence is done when
nothing unfinished can come to a better score any more, whatever it still adds; or sooner, if asked, with ``patience``
times ``beam_size`` finished hypotheses (https://arxiv.org/abs/2204.05424). At ``max_len`` only eos is allowed. pad, bos
and unk are never chosen; unk only if ``Specials`` allows it. The probabilities of the other tokens stay the model's.

Constraints (``constraints``) take away tokens before the best are chosen; where words are prescribed,
``beam_allocation`` chooses.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.config import LengthPenalty
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.decoding.beam_allocation import share_out
from dragoman.decoding.constraints import Rules, restrict
from dragoman.errors import DecodeError
from dragoman.fast.top_k import best_extensions, maxima_and_log_sum


class Model(Protocol):
    """All that search knows of a model."""

    def start(self, src: Tensor) -> Any:
        """Read the sources ``(B, S)``; returns a state of B rows, whose ``select(rows)`` keeps or repeats some."""
        ...

    def step(self, state: Any, last_ids: Tensor) -> tuple[Tensor, Any]:
        """Append a token to each row: logits ``(B, V)``, which the search may overwrite, and the next state."""
        ...


class Specials(NamedTuple):
    """The ids that search must know."""

    pad_id: int = PAD_ID
    bos_id: int = BOS_ID
    eos_id: int = EOS_ID
    unk_id: int | None = UNK_ID  # None: unk may be chosen

    @property
    def never(self) -> tuple[int, ...]:
        """Tokens that no search chooses."""
        return (self.pad_id, self.bos_id) if self.unk_id is None else (self.pad_id, self.unk_id, self.bos_id)


DEFAULT = Specials()
WITH_UNK = Specials(unk_id=None)

ROOM = 128
"""Initial capacity of greedy search in tokens; it doubles when full."""

NOT_FINITE = "the model's scores are not finite (NaN or infinite): its weights are damaged or diverged"


class Hypothesis(NamedTuple):
    """A finished translation; ``score`` is its log-probability (nats, eos included) over the length penalty."""

    ids: list[int]  # without bos and eos
    score: float
    log_prob: float


def penalised(log_prob: float, n: int, alpha: float | LengthPenalty) -> float:
    """The score of ``n`` tokens, eos counted: their log-probability over the length penalty."""
    return log_prob / length_penalty(n, alpha)


def length_penalty(n: int, alpha: float | LengthPenalty) -> float:
    """``((5 + n) / 6) ** alpha``, or the form that comes with alpha; ``n`` counts eos."""
    return alpha(n) if isinstance(alpha, LengthPenalty) else LengthPenalty(alpha)(n)


Choose = Callable[[Tensor, list[int], int], Tensor]
"""Given log-probabilities ``(R, V)``, which row of the sources each is, and the step (from 1): ``(R,)`` tokens."""

Alive = Callable[[int], bool]
"""Asked with a row of the sources at each step: is its translation still wanted?"""


@torch.inference_mode()
def greedy_search(
    model: Model,
    src: Tensor,
    max_lens: Sequence[int],
    alpha: float | LengthPenalty = 0.0,
    specials: Specials = DEFAULT,
    rules: Sequence[Rules] | None = None,
    choose: Choose | None = None,
    alive: Alive | None = None,
) -> list[Hypothesis]:
    """Take the likeliest token at each step, or the one that ``choose`` chooses.

    Args:
        model: On the device of ``src``.
        src: ``(B, S)`` int64, each row ended by eos and padded.
        max_lens: For each row the most tokens it may have, eos counted; the last one is then eos.
        alpha: Length penalty of the score (it does not change which tokens are taken).
        rules: For each row what its translation must and must not be; words that must stand in it need a beam.
        alive: Which rows are still wanted; what is returned for another one means nothing.

    Returns:
        One hypothesis for each row.
    """
    n_rows, device = src.size(0), src.device
    one_by_one = rules is not None or choose is not None  # these look at every row, so none may be done already
    most = max(max_lens, default=0)
    ids = np.full((n_rows, min(most, ROOM)), specials.eos_id)  # grows: a limit may be far beyond what is needed
    log_probs = np.zeros(n_rows)
    limits, rows = np.array(max_lens, np.int64), np.arange(n_rows)  # rows: which sentence each row of the state is
    is_open = np.ones(n_rows, np.bool_)  # of these rows
    state, last = model.start(src), np.full(n_rows, specials.bos_id)
    n = 0
    while len(rows):
        n += 1
        if n > ids.shape[1]:
            ids = np.pad(ids, ((0, 0), (0, min(n, most - n + 1))), constant_values=specials.eos_id)
        logits, state = model.step(state, on_device(last, device))
        if one_by_one or n in max_lens:
            rooms = limits[rows] - n + 1
            log_p = next_log_probs(logits, on_device(rooms == 1, device), specials)
            if rules is not None:
                of_rows = [rules[row] for row in rows.tolist()]
                restrict(log_p, ids[rows, : n - 1].tolist(), of_rows, rooms.tolist(), specials.eos_id)
            chosen = log_p.argmax(dim=-1) if choose is None else choose(log_p, rows.tolist(), n)
            scores = log_p.gather(1, chosen[:, None])[:, 0]
        else:
            best, where = _best(logits, logits.new_zeros(len(rows), 1, dtype=torch.float32), 1, specials)
            scores, chosen = best[:, 0], where[:, 0]
        last = chosen.numpy(force=True)
        log_probs[rows] += np.where(is_open, scores.numpy(force=True), 0.0)
        ids[rows, n - 1] = np.where(is_open, last, specials.eos_id)
        is_open = is_open & (last != specials.eos_id) & _wanted(rows, alive)
        kept = _kept(is_open, one_by_one)
        if kept is not None:
            rows, last, is_open = rows[kept], last[kept], is_open[kept]
            state = state.select(on_device(kept, device))
    return [_hypothesis(*found, alpha, specials) for found in zip(ids.tolist(), log_probs.tolist(), strict=True)]


def _hypothesis(ids: list[int], log_prob: float, alpha: float | LengthPenalty, specials: Specials) -> Hypothesis:
    """A row of ids up to its eos, with the score that its log-probability makes."""
    row = ids[: ids.index(specials.eos_id)]
    return Hypothesis(row, penalised(log_prob, len(row) + 1, alpha), log_prob)


@torch.inference_mode()
def beam_search(
    model: Model,
    src: Tensor,
    max_lens: Sequence[int],
    beam_size: int = 4,
    alpha: float | LengthPenalty = 0.6,
    n_best: int = 1,
    specials: Specials = DEFAULT,
    rules: Sequence[Rules] | None = None,
    patience: float | None = None,
    alive: Alive | None = None,
) -> list[list[Hypothesis]]:
    """Search with ``beam_size`` hypotheses for each row of ``src``, as the module's head describes.

    Args:
        model: On the device of ``src``.
        src: ``(B, S)`` int64, each row ended by eos and padded.
        max_lens: For each row the most tokens it may have, eos counted.
        beam_size: K; with 1 take ``greedy_search``.
        alpha: Length penalty.
        n_best: How many hypotheses to return for each row, at most ``beam_size``.
        rules: For each row what its translation must and must not be.
        patience: Patience factor: a row is done with patience x ``beam_size`` finished hypotheses, ``n_best`` at least;
            None: when no better one is possible.
        alive: Which rows are still wanted; what is returned for another one means nothing.

    Returns:
        For each row its hypotheses, best first.

    Raises:
        DecodeError: ``n_best`` is larger than the beam, or the model's scores are not finite.
    """
    if rules is not None and all(rule.are_none for rule in rules):
        rules = None
    if not 1 <= n_best <= beam_size:
        raise DecodeError(f"n_best = {n_best} must lie between 1 and beam_size = {beam_size}")
    device, k, n_rows = src.device, beam_size, src.size(0)
    finished = _Finished(n_rows, k, n_best)
    enough = math.inf if patience is None else max(n_best, math.ceil(patience * k))
    furthest = np.array([length_penalty(most, alpha) for most in max_lens])
    limits, sentences = np.array(max_lens, np.int64), np.arange(n_rows)  # which each K rows are; some may be done
    # hypotheses of each: one to begin with; but among copies words to place are shared out
    width = 1 if rules is None else k
    state = model.start(src).select(on_device(sentences.repeat(width), device))
    last, history = np.full(n_rows * width, specials.bos_id), np.empty((n_rows, width, 0), np.int64)
    scores = np.full((n_rows, width), -np.inf, np.float32)  # of a sentence that is done: all -inf
    scores[:, 0] = 0.0  # of copies only the first may be extended
    n = 0
    while len(sentences):
        n += 1
        logits, state = model.step(state, on_device(last, device))  # (B * width, V)
        n_vocab, before = logits.size(1), on_device(scores, device)
        if rules is None and n not in max_lens:
            found = _best(logits, before, min(2 * k, width * n_vocab), specials)
        else:
            open_rules = None if rules is None else [rules[s] for s in sentences.tolist()]
            found = _ruled(logits, before, 2 * k, specials, history, limits[sentences] - n + 1, open_rules)
        best, where = (each.numpy(force=True) for each in found)  # (B, 2K); so few numbers are no work for tensors
        if best.shape[1] < 2 * k:  # a small vocabulary; what fills up never counts
            room = ((0, 0), (0, 2 * k - best.shape[1]))
            best, where = np.pad(best, room, constant_values=-np.inf), np.pad(where, room)
        beams, tokens = np.divmod(where, n_vocab)
        ends = tokens == specials.eos_id
        for row, rank in np.argwhere((ends & np.isfinite(best))[:, :k]):
            finished.add(
                sentences[row],
                history[row, beams[row, rank]].tolist(),
                float(best[row, rank]),
                length_penalty(n, alpha),
            )
        # the best K that continue: a stable sort puts endings last and keeps the order of the others
        going, each = ends.argsort(axis=1, kind="stable")[:, :k], np.arange(len(sentences))[:, None]
        scores, beams, tokens = np.where(ends, -np.inf, best)[each, going], beams[each, going], tokens[each, going]
        history = np.concatenate((history[each, beams], tokens[:, :, None]), 2)
        best_open = scores.max(axis=1)
        is_open = np.isfinite(best_open) & (best_open / furthest[sentences] > finished.to_beat[sentences])
        is_open &= (finished.counts[sentences] < enough) & _wanted(sentences, alive)
        scores[~is_open] = -np.inf
        rows = _kept(is_open, rules is not None)
        if rows is None:
            rows = np.arange(len(sentences))
        else:
            sentences, beams, tokens = sentences[rows], beams[rows], tokens[rows]
            scores, history = scores[rows], history[rows]
        state = state.select(on_device((rows[:, None] * width + beams).ravel(), device))
        last, width = tokens.ravel(), k
    return [hypotheses[:n_best] for hypotheses in finished.of]


def _wanted(rows: NDArray[np.int64], alive: Alive | None) -> NDArray[np.bool_] | bool:
    """Which of some rows of the sources are still wanted."""
    return True if alive is None else np.array([alive(row) for row in rows.tolist()], np.bool_)


class _Finished:
    """The finished hypotheses of each sentence, of which it keeps its K best."""

    def __init__(self, n_sentences: int, k: int, n_best: int) -> None:
        self._k, self._n_best = k, n_best
        self.of: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]  # best first
        self.counts = np.zeros(n_sentences, np.int64)  # with those that were not kept
        self.to_beat = np.full(n_sentences, -np.inf)  # the score of the n_best-th

    def add(self, sentence: int, ids: list[int], log_prob: float, penalty: float) -> None:
        """Put a hypothesis in its place; of equals the one that was found earlier comes first."""
        own = self.of[sentence]
        bisect.insort(own, Hypothesis(ids, log_prob / penalty, log_prob), key=lambda hypothesis: -hypothesis.score)
        del own[self._k :]
        self.counts[sentence] += 1
        if len(own) >= self._n_best:
            self.to_beat[sentence] = own[self._n_best - 1].score


def _ruled(
    logits: Tensor, scores: Tensor, n: int, specials: Specials, history: NDArray[np.int64], rooms: NDArray[np.int64],
    rules: Sequence[Rules] | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The reference implementation of ``_best``, for sentences with constraints or at their limit.

    Args:
        history: ``(B, K, n)``.
        rooms: ``(B,)``: how many tokens each sentence may still get, this one and eos counted.
        rules: Of each sentence.
    """
    k, n_vocab = scores.size(1), logits.size(1)
    rooms = rooms.repeat(k)
    log_p = next_log_probs(logits, on_device(rooms == 1, logits.device), specials)
    if rules is not None:
        each = [rule for rule in rules for _ in range(k)]
        restrict(log_p, history.reshape(len(rooms), -1).tolist(), each, rooms.tolist(), specials.eos_id)
    totals = scores[:, :, None] + log_p.view(-1, k, n_vocab)
    best, where = totals.flatten(1).topk(min(n, k * n_vocab))
    for row, rule in enumerate(rules or ()):
        if rule.include:
            chosen = share_out(totals[row], history[row].tolist(), rule.include, specials.eos_id)[: best.size(1)]
            chosen += [(-math.inf, 0)] * (best.size(1) - len(chosen))
            best[row] = torch.tensor([total for total, _ in chosen], dtype=best.dtype)
            where[row] = torch.tensor([place for _, place in chosen])
    return best, where


def _best(logits: Tensor, scores: Tensor, n: int, specials: Specials) -> tuple[Tensor, Tensor]:
    """As ``best_extensions``, which see; ``specials.never`` are not chosen.

    Raises:
        DecodeError: A logit is NaN or plus infinity.
    """
    best, where, log_sum = best_extensions(logits, scores, n, specials.never)
    if not math.isfinite(float(log_sum.sum())):
        raise DecodeError(NOT_FINITE)
    return best, where


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array where the model is; a GPU is given it in passing, and is not waited for."""
    return torch.from_numpy(array).to(device, non_blocking=True)


def fitting(n: int) -> int:
    """The least of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is ``n`` or more."""
    power = 1 << (n - 1).bit_length()
    return power * 3 // 4 if n <= power * 3 // 4 else power


def _kept(is_open: NDArray[np.bool_], at_once: bool) -> NDArray[np.int64] | None:
    """Which sentences stay in the batch, in their order; None: all.

    Those that are done go when the others fit a smaller one of few sizes, of which they may fill the rest: each time
    costs a copy of the state, and each size that has not been before a newly compiled product.

    Args:
        is_open: ``(B,)``: which are not done.
        at_once: Drop all that are done now.
    """
    n_open, n = int(is_open.sum()), len(is_open)
    size = n_open if at_once or not n_open else fitting(n_open)
    if size >= n:
        return None
    return np.sort((~is_open).argsort(kind="stable")[:size])


def next_log_probs(logits: Tensor, at_limit: Tensor, specials: Specials) -> Tensor:
    """Log-probabilities of the next token, ``(B, V)``, float32 or better; -inf for what may not follow.

    Args:
        logits: ``(B, V)``.
        at_limit: ``(B,)`` bool; these rows may only end.

    Raises:
        DecodeError: A logit is NaN or plus infinity; minus infinity is a token that may not come.
    """
    precise = logits.float() if logits.dtype.itemsize < 4 else logits
    _, log_sum = maxima_and_log_sum(precise)
    if not bool(log_sum.isfinite().all()):
        raise DecodeError(NOT_FINITE)
    log_p = precise - log_sum[:, None]  # to the last bit what the fast path finds
    for token in specials.never:
        log_p[:, token] = -torch.inf
    if bool(at_limit.any()):
        eos = log_p[:, specials.eos_id].clone()
        log_p = log_p.masked_fill(at_limit[:, None], -torch.inf)
        log_p[:, specials.eos_id] = eos
    return log_p
