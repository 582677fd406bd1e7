"""Greedy and beam search for anything that offers ``start``, ``step`` and ``select`` (see ``Transformer``).

    batch = SearchBatch(src=src, max_lens=[60, 55])            # src: (2, S)
    settings = SearchSettings(decode=DecodeConfig(beam_size=4), n_best=4)
    best, *others = beam_search(model, batch, settings)[0]

A beam search keeps ``beam_size`` unfinished hypotheses of each sentence. At each step each of them is extended by
every token. Of the ``2 * beam_size`` best extensions those that end in eos are finished if they are among the best
``beam_size``; the best ``beam_size`` of the others continue. A finished hypothesis of ``n`` tokens, eos counted, has
the score ``log P / ((5 + n) / 6) ** alpha`` (GNMT, https://arxiv.org/abs/1609.08144, Eq. 14). A sentence is done when
no unfinished hypothesis can reach a better score any more, whatever it still adds. With ``patience`` it is done sooner,
with ``patience * beam_size`` finished hypotheses (https://arxiv.org/abs/2204.05424). At its limit only eos is allowed.
pad, bos and unk are never chosen; unk only if ``allow_unk``. The probabilities of the other tokens stay the model's.

Constraints (``constraints``) exclude tokens before the best are chosen; where words are prescribed, ``beam_allocation``
chooses.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decoding.beam_allocation import share_out
from dragoman.decoding.constraints import Rules, restrict
from dragoman.decoding.request import NOT_FINITE, Hypothesis, SearchBatch, SearchSettings, scored
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


ROOM = 128
"""Initial capacity of greedy search in tokens; it doubles when full."""

Choose = Callable[[Tensor, list[int], int], Tensor]
"""Given log-probabilities ``(R, V)``, which row of the sources each is, and the step (from 1): ``(R,)`` tokens."""


@torch.inference_mode()
def greedy_search(
    model: Model, batch: SearchBatch, settings: SearchSettings, choose: Choose | None = None
) -> list[Hypothesis]:
    """Take the most probable token at each step, or the one that ``choose`` chooses.

    Args:
        model: On the device of the batch.
        batch: Words that must appear in a translation need a beam.
        settings: The length penalty changes the scores, not which tokens are taken.

    Returns:
        One hypothesis for each row; that of a cancelled row means nothing.

    Raises:
        DecodeError: The model's scores are not finite.
    """
    rules, max_lens, special = batch.rules, batch.max_lens, settings.special
    n_rows, device = batch.src.size(0), batch.src.device
    one_by_one = rules is not None or choose is not None  # these look at every row, so none may be done already
    most = max(max_lens, default=0)
    # Grows: a limit may be far beyond what is needed. The last column stays eos: a cancelled row may end without one.
    ids = np.full((n_rows, min(most, ROOM) + 1), special.eos)
    log_probs = np.zeros(n_rows)
    limits, rows = np.array(max_lens, np.int64), np.arange(n_rows)  # rows: which sentence each row of the state is
    is_open = np.ones(n_rows, np.bool_)  # of these rows
    state, last = model.start(batch.src), np.full(n_rows, special.bos)
    n = 0
    while len(rows):
        batch.pause()
        n += 1
        if n >= ids.shape[1]:
            ids = np.pad(ids, ((0, 0), (0, min(n, most - n + 1))), constant_values=special.eos)
        logits, state = model.step(state, on_device(last, device))
        if one_by_one or n in max_lens:
            rooms = limits[rows] - n + 1
            log_p = next_log_probs(logits, on_device(rooms == 1, device), settings)
            if rules is not None:
                own_rules = [rules[row] for row in rows.tolist()]
                restrict(log_p, ids[rows, : n - 1].tolist(), own_rules, rooms.tolist(), special.eos)
            chosen = log_p.argmax(dim=-1) if choose is None else choose(log_p, rows.tolist(), n)
            scores = log_p.gather(1, chosen[:, None])[:, 0]
        else:
            best, where = _best(logits, logits.new_zeros(len(rows), 1, dtype=torch.float32), 1, settings)
            scores, chosen = best[:, 0], where[:, 0]
        last = chosen.numpy(force=True)
        log_probs[rows] += np.where(is_open, scores.numpy(force=True), 0.0)
        ids[rows, n - 1] = np.where(is_open, last, special.eos)
        is_open = is_open & (last != special.eos) & batch.is_wanted(rows)
        kept = _kept(is_open, one_by_one)
        if kept is not None:
            rows, last, is_open = rows[kept], last[kept], is_open[kept]
            state = state.select(on_device(kept, device))
    penalty = settings.penalty
    return [
        scored(row[: row.index(special.eos)], log_prob, penalty)
        for row, log_prob in zip(ids.tolist(), log_probs.tolist(), strict=True)
    ]


@torch.inference_mode()
def beam_search(model: Model, batch: SearchBatch, settings: SearchSettings) -> list[list[Hypothesis]]:
    """Search with a beam for each row of the batch, as the module's head describes.

    Args:
        model: On the device of the batch.
        settings: With a beam of 1 take ``greedy_search``; ``sampling`` is not looked at.

    Returns:
        For each row its ``n_best`` hypotheses, best first, then the spare ones if wanted; those of a cancelled row mean
        nothing.

    Raises:
        DecodeError: ``n_best`` is larger than the beam, or the model's scores are not finite.
    """
    rules, max_lens, special, penalty = batch.rules, batch.max_lens, settings.special, settings.penalty
    k, n_best, patience = settings.decode.beam_size, settings.n_best, settings.decode.patience
    if rules is not None and all(rule is None or rule.are_none for rule in rules):
        rules = None
    settings.check_beam()
    device, n_rows = batch.src.device, batch.src.size(0)
    finished = _Finished(n_rows, k, n_best)
    enough = math.inf if patience is None else max(n_best, math.ceil(patience * k))
    furthest = np.array([penalty(most) for most in max_lens])
    limits, sentences = np.array(max_lens, np.int64), np.arange(n_rows)  # which each K rows are; some may be done
    # each sentence begins with one hypothesis; or with K copies, among which words to place are shared out
    width = 1 if rules is None else k
    state = model.start(batch.src).select(on_device(sentences.repeat(width), device))
    last, history = np.full(n_rows * width, special.bos), np.empty((n_rows, width, 0), np.int64)
    scores = np.full((n_rows, width), -np.inf, np.float32)  # of a sentence that is done: all -inf
    scores[:, 0] = 0.0  # of copies only the first may be extended
    n = 0
    while len(sentences):
        batch.pause()
        n += 1
        logits, state = model.step(state, on_device(last, device))  # (B * width, V)
        n_vocab, before = logits.size(1), on_device(scores, device)
        if rules is None and n not in max_lens:
            extensions = _best(logits, before, min(2 * k, width * n_vocab), settings)
        else:
            open_rules = None if rules is None else [rules[s] for s in sentences.tolist()]
            open_ = _Open(history, limits[sentences] - n + 1, open_rules)
            extensions = _constrained_best(logits, before, 2 * k, settings, open_)
        # (B, 2K): NumPy is faster than tensors for so few numbers
        best, where = (tensor.numpy(force=True) for tensor in extensions)
        if best.shape[1] < 2 * k:  # a small vocabulary: filled up with extensions that never count
            missing = ((0, 0), (0, 2 * k - best.shape[1]))
            best, where = np.pad(best, missing, constant_values=-np.inf), np.pad(where, missing)
        beams, tokens = np.divmod(where, n_vocab)
        ends = tokens == special.eos
        for row, rank in np.argwhere((ends & np.isfinite(best))[:, :k]):
            finished.add(
                sentences[row],
                history[row, beams[row, rank]].tolist(),
                float(best[row, rank]),
                penalty(n),
            )
        # the best K that continue: a stable sort puts endings last and keeps the order of the others
        going, row = ends.argsort(axis=1, kind="stable")[:, :k], np.arange(len(sentences))[:, None]
        scores, beams, tokens = np.where(ends, -np.inf, best)[row, going], beams[row, going], tokens[row, going]
        history = np.concatenate((history[row, beams], tokens[:, :, None]), 2)
        best_open = scores.max(axis=1)
        is_open = np.isfinite(best_open) & (best_open / furthest[sentences] > finished.to_beat[sentences])
        is_open &= (finished.counts[sentences] < enough) & batch.is_wanted(sentences)
        scores[~is_open] = -np.inf
        rows = _kept(is_open, rules is not None)
        if rows is None:
            rows = np.arange(len(sentences))
        else:
            sentences, beams, tokens = sentences[rows], beams[rows], tokens[rows]
            scores, history = scores[rows], history[rows]
        state = state.select(on_device((rows[:, None] * width + beams).ravel(), device))
        last, width = tokens.ravel(), k
    return [hypotheses[: k if settings.with_spare else n_best] for hypotheses in finished.hypotheses]


class _Finished:
    """The K best finished hypotheses of each sentence."""

    def __init__(self, n_sentences: int, k: int, n_best: int) -> None:
        self._k, self._n_best = k, n_best
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]  # best first
        self.counts = np.zeros(n_sentences, np.int64)  # all that have finished, dropped ones too
        self.to_beat = np.full(n_sentences, -np.inf)  # the score of the n_best-th

    def add(self, sentence: int, ids: list[int], log_prob: float, penalty: float) -> None:
        """Put a hypothesis in its place; between equal scores the one that finished earlier comes first."""
        own = self.hypotheses[sentence]
        bisect.insort(own, Hypothesis(ids, log_prob / penalty, log_prob), key=lambda hypothesis: -hypothesis.score)
        del own[self._k :]
        self.counts[sentence] += 1
        if len(own) >= self._n_best:
            self.to_beat[sentence] = own[self._n_best - 1].score


@dataclass(frozen=True)
class _Open:
    """The sentences that are not done, where constraints or a limit bind."""

    history: NDArray[np.int64]  # (B, K, n): the ids of their hypotheses
    left: NDArray[np.int64]  # (B,): how many tokens each may still get, this one and eos counted
    rules: Sequence[Rules | None] | None


def _constrained_best(
    logits: Tensor, scores: Tensor, n: int, settings: SearchSettings, sentences: _Open
) -> tuple[Tensor, Tensor]:
    """Do what ``_best`` does for sentences with constraints or at their limit, the plain way."""
    k, n_vocab = scores.size(1), logits.size(1)
    left, eos = sentences.left.repeat(k), settings.special.eos
    log_p = next_log_probs(logits, on_device(left == 1, logits.device), settings)
    if sentences.rules is not None:
        repeated = [rule for rule in sentences.rules for _ in range(k)]
        restrict(log_p, sentences.history.reshape(len(left), -1).tolist(), repeated, left.tolist(), eos)
    totals = scores[:, :, None] + log_p.view(-1, k, n_vocab)
    best, where = totals.flatten(1).topk(min(n, k * n_vocab))
    for row, rule in enumerate(sentences.rules or ()):
        if rule is not None and rule.include:
            chosen = share_out(totals[row], sentences.history[row].tolist(), rule.include, eos)[: best.size(1)]
            chosen += [(-math.inf, 0)] * (best.size(1) - len(chosen))
            best[row] = torch.tensor([total for total, _ in chosen], dtype=best.dtype)
            where[row] = torch.tensor([place for _, place in chosen])
    return best, where


def _best(logits: Tensor, scores: Tensor, n: int, settings: SearchSettings) -> tuple[Tensor, Tensor]:
    """Return the ``n`` best extensions and their places, as ``best_extensions`` does.

    Raises:
        DecodeError: A logit is NaN or plus infinity.
    """
    best, where, log_sum = best_extensions(logits, scores, n, settings.never)
    if not math.isfinite(float(log_sum.sum())):
        raise DecodeError(NOT_FINITE)
    return best, where


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on a device, without waiting for a GPU."""
    return torch.from_numpy(array).to(device, non_blocking=True)


def fitting(n: int) -> int:
    """Return the least of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is ``n`` or more."""
    power = 1 << (n - 1).bit_length()
    return power * 3 // 4 if n <= power * 3 // 4 else power


def _kept(is_open: NDArray[np.bool_], at_once: bool) -> NDArray[np.int64] | None:
    """Return the sentences that stay in the batch, in their order; None: all.

    Sentences that are done leave when the others fit a smaller batch. There are few sizes of batches, and sentences
    that are done may fill one up: each change costs a copy of the state, and each new size a newly compiled product.

    Args:
        is_open: ``(B,)``, True for sentences that are not done.
        at_once: Drop all sentences that are done.
    """
    n_open, n = int(is_open.sum()), len(is_open)
    size = n_open if at_once or not n_open else fitting(n_open)
    if size >= n:
        return None
    return np.sort((~is_open).argsort(kind="stable")[:size])


def next_log_probs(logits: Tensor, at_limit: Tensor, settings: SearchSettings) -> Tensor:
    """Return log-probabilities of the next token, ``(B, V)``, float32 or better; -inf for tokens that may not follow.

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
    for token in settings.never:
        log_p[:, token] = -torch.inf
    if bool(at_limit.any()):
        eos = log_p[:, settings.special.eos].clone()
        log_p = log_p.masked_fill(at_limit[:, None], -torch.inf)
        log_p[:, settings.special.eos] = eos
    return log_p
