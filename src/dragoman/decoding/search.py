"""Greedy and beam search for anything that offers ``start``, ``step`` and ``select`` (see ``Transformer``).

A beam search keeps ``beam_size`` unfinished hypotheses of each sentence. At each step each of them is extended by
every token. Of the ``2 * beam_size`` best extensions those that end in eos are finished if they are among the best
``beam_size``; the best ``beam_size`` of the others go on. A finished hypothesis of ``n`` tokens, eos counted, has the
score ``log P / ((5 + n) / 6) ** alpha`` (GNMT, https://arxiv.org/abs/1609.08144, Eq. 14). A sentence is done when
nothing unfinished can come to a better score any more, whatever it still adds; or sooner, if asked, with ``patience``
times ``beam_size`` finished hypotheses (https://arxiv.org/abs/2204.05424). At ``max_len`` only eos may follow. pad and
bos are never chosen.

Rules (``rules``) take away tokens before the best are chosen; where words are prescribed, ``constraints`` chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.decoding.constraints import share_out
from dragoman.decoding.rules import Rules, restrict
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


DEFAULT = Specials()

NOT_FINITE = "the model's scores are not finite (NaN or infinite): its weights are damaged or diverged"


class Hypothesis(NamedTuple):
    """A finished translation; ``score`` is its log-probability (nats, eos included) over the length penalty."""

    ids: list[int]  # without bos and eos
    score: float
    log_prob: float


def length_penalty(n: int, alpha: float) -> float:
    """``((5 + n) / 6) ** alpha``; ``n`` counts eos."""
    return float(((5 + n) / 6) ** alpha)


Choose = Callable[[Tensor, list[int], int], Tensor]
"""Given log-probabilities ``(R, V)``, which row of the sources each is, and the step (from 1): ``(R,)`` tokens."""


@torch.inference_mode()
def greedy_search(
    model: Model,
    src: Tensor,
    max_lens: Sequence[int],
    alpha: float = 0.0,
    specials: Specials = DEFAULT,
    rules: Sequence[Rules] | None = None,
    choose: Choose | None = None,
) -> list[Hypothesis]:
    """Take the likeliest token at each step, or the one that ``choose`` chooses.

    Args:
        model: On the device of ``src``.
        src: ``(B, S)`` int64, each row ended by eos and padded.
        max_lens: For each row the most tokens it may have, eos counted; the last one is then eos.
        alpha: Length penalty of the score (it does not change which tokens are taken).
        rules: For each row what its translation must and must not be; words that must stand in it need a beam.

    Returns:
        One hypothesis for each row.
    """
    n_rows, device = src.size(0), src.device
    one_by_one = rules is not None or choose is not None  # these look at every row, so none may be done already
    ids = torch.full((n_rows, max(max_lens, default=0)), specials.eos_id, device=device)
    log_probs = torch.zeros(n_rows, dtype=torch.float64, device=device)
    rows = torch.arange(n_rows, device=device)  # which sentence each row of the state is
    is_open = torch.ones(n_rows, dtype=torch.bool, device=device)  # of these rows
    limits = torch.tensor(max_lens, device=device)
    state, last = model.start(src), torch.full((n_rows,), specials.bos_id, device=device)
    n = 0
    while len(rows):
        n += 1
        logits, state = model.step(state, last)
        if one_by_one or n in max_lens:
            log_p = next_log_probs(logits, limits[rows] == n, specials)
            if rules is not None:
                histories, rooms = ids[rows, : n - 1].tolist(), (limits[rows] - n + 1).tolist()
                restrict(log_p, histories, [rules[row] for row in rows.tolist()], rooms, specials.eos_id)
            last = log_p.argmax(dim=-1) if choose is None else choose(log_p, rows.tolist(), n)
            scores = log_p.gather(1, last[:, None])[:, 0]
        else:
            best, where = _best(logits, torch.zeros_like(last, dtype=torch.float32)[:, None], 1, specials)
            scores, last = best[:, 0], where[:, 0]
        log_probs[rows] += scores.double().masked_fill_(~is_open, 0.0)
        ids[rows, n - 1] = last.masked_fill(~is_open, specials.eos_id)
        is_open &= last != specials.eos_id
        kept = _kept(is_open, one_by_one)
        if kept is not None:
            rows, last, is_open, state = rows[kept], last[kept], is_open[kept], state.select(kept)
    found = []
    for row, log_prob in zip(ids.tolist(), log_probs.tolist(), strict=True):
        row = row[: row.index(specials.eos_id)]
        found.append(Hypothesis(row, log_prob / length_penalty(len(row) + 1, alpha), log_prob))
    return found


@torch.inference_mode()
def beam_search(
    model: Model,
    src: Tensor,
    max_lens: Sequence[int],
    beam_size: int = 4,
    alpha: float = 0.6,
    n_best: int = 1,
    specials: Specials = DEFAULT,
    rules: Sequence[Rules] | None = None,
    patience: float | None = None,
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
        patience: A row is done with so many times ``beam_size`` finished hypotheses, or ``n_best``; None: when none can
            become better.

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
    enough = math.inf if patience is None else max(n_best, math.ceil(patience * k))
    n_finished = torch.zeros(n_rows, dtype=torch.int64, device=device)
    finished: list[list[Hypothesis]] = [[] for _ in range(n_rows)]
    furthest = torch.tensor([length_penalty(most, alpha) for most in max_lens], dtype=torch.float64, device=device)
    to_beat = torch.full_like(furthest, -torch.inf)  # of each sentence the score of its n_best-th finished hypothesis
    limits = torch.tensor(max_lens, device=device)
    sentences = torch.arange(n_rows, device=device)  # which one each block of K rows is; some may be done already
    width = (
        1 if rules is None else k
    )  # hypotheses of each: one to begin with; among copies words to place are shared out
    state = model.start(src).select(sentences.repeat_interleave(width))
    last = torch.full((n_rows * width,), specials.bos_id, device=device)
    history = torch.empty(n_rows, width, 0, dtype=torch.int64, device=device)
    scores = torch.full((n_rows, width), -torch.inf, device=device)  # of a sentence that is done: all -inf
    scores[:, 0] = 0.0  # of copies only the first may be extended
    n = 0
    while len(sentences):
        n += 1
        logits, state = model.step(state, last)  # (B * width, V)
        n_vocab = logits.size(1)
        n_wanted = min(2 * k, width * n_vocab)
        if rules is None and n not in max_lens:
            best, where = _best(logits, scores, n_wanted, specials)  # (B, 2K)
        else:
            at_limit = (limits[sentences] == n).repeat_interleave(width)
            log_p = next_log_probs(logits, at_limit, specials)
            open_rules = None if rules is None else [rules[s] for s in sentences.tolist()]
            if open_rules is not None:
                rooms = (limits[sentences] - n + 1).repeat_interleave(width).tolist()
                each = [rule for rule in open_rules for _ in range(width)]
                restrict(log_p, history.flatten(0, 1).tolist(), each, rooms, specials.eos_id)
            totals = scores[:, :, None] + log_p.view(-1, width, n_vocab)
            best, where = totals.flatten(1).topk(n_wanted)
            if open_rules is not None:
                share_out_rows(best, where, totals, history, open_rules, specials.eos_id)
        if n_wanted < 2 * k:  # a small vocabulary; what fills up never counts
            best, where = F.pad(best, (0, 2 * k - n_wanted), value=-torch.inf), F.pad(where, (0, 2 * k - n_wanted))
        beams, tokens = where // n_vocab, where % n_vocab
        ends = tokens == specials.eos_id
        row, rank = (ends & best.isfinite())[:, :k].nonzero().T
        if len(row):
            ended = sentences[row].tolist()
            texts, log_probs = history[row, beams[row, rank]].tolist(), best[row, rank].tolist()
            _finish(finished, ended, texts, log_probs, length_penalty(n, alpha), k)
            bars = [finished[s][n_best - 1].score if len(finished[s]) >= n_best else -math.inf for s in ended]
            to_beat[ended] = torch.tensor(bars, dtype=torch.float64, device=device)
            n_finished.index_add_(0, sentences[row], torch.ones_like(row))
        # the best K that go on: a stable sort puts endings last and keeps the order of the others
        going = ends.to(torch.int8).sort(dim=-1, stable=True).indices[:, :k]
        scores, beams, tokens = (x.gather(1, going) for x in (best.masked_fill(ends, -torch.inf), beams, tokens))
        history = torch.cat((history.gather(1, beams[:, :, None].expand(-1, -1, n - 1)), tokens[:, :, None]), dim=-1)
        best_open = scores.amax(dim=1)
        is_open = (best_open > -torch.inf) & (best_open.double() / furthest[sentences] > to_beat[sentences])
        is_open &= n_finished[sentences] < enough
        scores = scores.masked_fill(~is_open[:, None], -torch.inf)
        rows = _kept(is_open, rules is not None)
        if rows is None:
            rows = torch.arange(len(sentences), device=device)
        else:
            sentences, beams, tokens = sentences[rows], beams[rows], tokens[rows]
            scores, history = scores[rows], history[rows]
        state, last, width = state.select((rows[:, None] * width + beams).flatten()), tokens.flatten(), k
    return [hypotheses[:n_best] for hypotheses in finished]


def _finish(
    finished: Sequence[list[Hypothesis]], ended: Sequence[int], texts: Sequence[list[int]], log_probs: Sequence[float],
    penalty: float, k: int,
) -> None:  # fmt: skip
    """Put hypotheses of the sentences ``ended`` among those finished before; each sentence keeps its K best."""
    for sentence, ids, log_prob in zip(ended, texts, log_probs, strict=True):
        finished[sentence].append(Hypothesis(ids, log_prob / penalty, log_prob))
    for sentence in set(ended):
        finished[sentence].sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the one found earlier
        del finished[sentence][k:]


def _best(logits: Tensor, scores: Tensor, n: int, specials: Specials) -> tuple[Tensor, Tensor]:
    """As ``best_extensions``, which see; pad and bos are not chosen.

    Raises:
        DecodeError: A logit is NaN or infinite.
    """
    best, where, log_sum = best_extensions(logits, scores, n, (specials.pad_id, specials.bos_id))
    if not bool(log_sum.isfinite().all()):
        raise DecodeError(NOT_FINITE)
    return best, where


def fitting(n: int) -> int:
    """The least of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is ``n`` or more."""
    power = 1 << (n - 1).bit_length()
    return power * 3 // 4 if n <= power * 3 // 4 else power


def _kept(is_open: Tensor, at_once: bool) -> Tensor | None:
    """Which sentences stay in the batch, in their order; None: all.

    Those that are done go when the others fit a smaller one of few sizes, of which they may fill the rest: each time
    costs a copy of the state, and each size that has not been before a product compiled anew.

    Args:
        is_open: ``(B,)`` bool: which are not done.
        at_once: Drop all that are done now.
    """
    n_open, n = int(is_open.sum()), len(is_open)
    size = n_open if at_once or not n_open else fitting(n_open)
    if size >= n:
        return None
    return is_open.to(torch.int8).sort(descending=True, stable=True).indices[:size].sort().values


def share_out_rows(
    best: Tensor, where: Tensor, totals: Tensor, history: Tensor, rules: Sequence[Rules], eos_id: int
) -> None:
    """Where a sentence has words to place, put the choice of ``share_out`` in its row of ``best`` and ``where``."""
    for row, rule in enumerate(rules):
        if rule.include:
            chosen = share_out(totals[row], history[row].tolist(), rule.include, eos_id)[: best.size(1)]
            chosen += [(-torch.inf, 0)] * (best.size(1) - len(chosen))
            best[row] = torch.tensor([total for total, _ in chosen], dtype=best.dtype)
            where[row] = torch.tensor([place for _, place in chosen])


def next_log_probs(logits: Tensor, at_limit: Tensor, specials: Specials) -> Tensor:
    """Log-probabilities of the next token, ``(B, V)``, float32 or better; -inf for what may not follow.

    Args:
        logits: ``(B, V)``.
        at_limit: ``(B,)`` bool; these rows may only end.

    Raises:
        DecodeError: A logit is NaN or infinite.
    """
    precise = logits.float() if logits.dtype.itemsize < 4 else logits
    _, log_sum = maxima_and_log_sum(precise)
    log_p = precise - log_sum[:, None]  # to the last bit what the fast path finds
    if not bool(log_p.isfinite().all()):
        raise DecodeError(NOT_FINITE)
    log_p[:, [specials.pad_id, specials.bos_id]] = -torch.inf
    if bool(at_limit.any()):
        eos = log_p[:, specials.eos_id].clone()
        log_p = log_p.masked_fill(at_limit[:, None], -torch.inf)
        log_p[:, specials.eos_id] = eos
    return log_p
