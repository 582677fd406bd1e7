"""Greedy and beam search for anything that offers ``start``, ``step`` and ``select`` (see ``Transformer``).

A beam search keeps ``beam_size`` unfinished hypotheses of each sentence. At each step each of them is extended by
every token. Of the ``2 * beam_size`` best extensions those that end in eos are finished if they are among the best
``beam_size``; the best ``beam_size`` of the others go on. A finished hypothesis of ``n`` tokens, eos counted, has the
score ``log P / ((5 + n) / 6) ** alpha`` (GNMT, https://arxiv.org/abs/1609.08144, Eq. 14). A sentence is done when
nothing unfinished can come to a better score any more, whatever it still adds; at ``max_len`` only eos may follow.
pad and bos are never chosen.

Rules (``rules``) take away tokens before the best are chosen; where words are prescribed, ``constraints`` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.decoding.constraints import share_out
from dragoman.decoding.rules import Rules, restrict
from dragoman.errors import DecodeError


class Model(Protocol):
    """All that search knows of a model."""

    def start(self, src: Tensor) -> Any:
        """Read the sources ``(B, S)``; returns a state of B rows, whose ``select(rows)`` keeps or repeats some."""
        ...

    def step(self, state: Any, last_ids: Tensor) -> tuple[Tensor, Any]:
        """Append a token to each row: logits ``(B, V)`` and the next state."""
        ...


class Specials(NamedTuple):
    """The ids that search must know."""

    pad_id: int = PAD_ID
    bos_id: int = BOS_ID
    eos_id: int = EOS_ID


DEFAULT = Specials()


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
    n_rows, limits = src.size(0), torch.tensor(max_lens, device=src.device)
    rows = torch.arange(n_rows, device=src.device)  # which sentence each open row is
    state, last = model.start(src), torch.full((n_rows,), specials.bos_id, device=src.device)
    ids: list[list[int]] = [[] for _ in range(n_rows)]
    log_probs = [0.0] * n_rows
    n = 0
    while len(rows):
        n += 1
        logits, state = model.step(state, last)
        log_p = next_log_probs(logits, limits[rows] == n, specials)
        open_rows = rows.tolist()
        if rules is not None:
            histories, rooms = [ids[row] for row in open_rows], [max_lens[row] - n + 1 for row in open_rows]
            restrict(log_p, histories, [rules[row] for row in open_rows], rooms, specials.eos_id)
        if choose is None:
            scores, last = log_p.max(dim=-1)
        else:
            last = choose(log_p, open_rows, n)
            scores = log_p.gather(1, last[:, None])[:, 0]
        for row, token, log_prob in zip(open_rows, last.tolist(), scores.tolist(), strict=True):
            log_probs[row] += log_prob
            if token != specials.eos_id:
                ids[row].append(token)
        going = (last != specials.eos_id).nonzero()[:, 0]
        if len(going) < len(rows):
            rows, last, state = rows[going], last[going], state.select(going)
    return [
        Hypothesis(i, log_p / length_penalty(len(i) + 1, alpha), log_p) for i, log_p in zip(ids, log_probs, strict=True)
    ]


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

    Returns:
        For each row its hypotheses, best first.

    Raises:
        DecodeError: ``n_best`` is larger than the beam, or the model's scores are not finite.
    """
    if not 1 <= n_best <= beam_size:
        raise DecodeError(f"n_best = {n_best} must lie between 1 and beam_size = {beam_size}")
    device, k = src.device, beam_size
    sentences = list(range(src.size(0)))  # which sentence each open block of K rows is
    finished: list[list[Hypothesis]] = [[] for _ in sentences]
    state = model.start(src).select(torch.arange(src.size(0), device=device).repeat_interleave(k))
    last = torch.full((src.size(0) * k,), specials.bos_id, device=device)
    history = torch.empty(src.size(0), k, 0, dtype=torch.int64, device=device)
    scores = torch.full((src.size(0), k), -torch.inf, device=device)
    scores[:, 0] = 0.0  # K copies of one hypothesis: only the first may be extended
    n = 0
    while sentences:
        n += 1
        logits, state = model.step(state, last)  # (B * K, V)
        at_limit = torch.tensor([max_lens[s] == n for s in sentences], device=device).repeat_interleave(k)
        log_p = next_log_probs(logits, at_limit, specials).view(len(sentences), k, -1)
        n_vocab = log_p.size(-1)
        open_rules = None if rules is None else [rules[s] for s in sentences]
        if open_rules is not None:
            past = history.flatten(0, 1).tolist()
            rooms = [max_lens[s] - n + 1 for s in sentences for _ in range(k)]
            each = [rule for rule in open_rules for _ in range(k)]
            restrict(log_p.view(-1, n_vocab), past, each, rooms, specials.eos_id)
        totals = scores[:, :, None] + log_p  # (B, K, V)
        best, where = totals.flatten(1).topk(min(2 * k, k * n_vocab))  # (B, 2K)
        if open_rules is not None:
            share_out_rows(best, where, totals, history, open_rules, specials.eos_id)
        beams, tokens = where // n_vocab, where % n_vocab
        ends = tokens == specials.eos_id
        for row, rank in (ends & best.isfinite())[:, :k].nonzero().tolist():
            log_prob = best[row, rank].item()
            ids = history[row, beams[row, rank]].tolist()
            finished[sentences[row]].append(Hypothesis(ids, log_prob / length_penalty(n, alpha), log_prob))
        # the best K that go on: a stable sort puts endings last and keeps the order of the others
        going = ends.to(torch.int8).sort(dim=-1, stable=True).indices[:, :k]
        scores, beams, tokens = (x.gather(1, going) for x in (best.masked_fill(ends, -torch.inf), beams, tokens))
        history = torch.cat((history.gather(1, beams[:, :, None].expand(-1, -1, n - 1)), tokens[:, :, None]), dim=-1)
        is_open = []
        for row, (sentence, best_open) in enumerate(zip(sentences, scores.amax(1).tolist(), strict=True)):
            done = finished[sentence]
            done.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the one found earlier
            del done[k:]
            reachable = best_open / (length_penalty(max_lens[sentence], alpha))
            if best_open > -torch.inf and not (len(done) >= n_best and done[n_best - 1].score >= reachable):
                is_open.append(row)
        rows = torch.tensor(is_open, dtype=torch.int64, device=device)
        state = state.select((rows[:, None] * k + beams[rows]).flatten())
        last, scores, history = tokens[rows].flatten(), scores[rows], history[rows]
        sentences = [sentences[row] for row in is_open]
    return [hypotheses[:n_best] for hypotheses in finished]


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
    log_p = logits.float().log_softmax(dim=-1) if logits.dtype.itemsize < 4 else logits.log_softmax(dim=-1)
    if not bool(log_p.isfinite().all()):
        raise DecodeError("the model's scores are not finite (NaN or infinite): its weights are damaged or diverged")
    log_p[:, [specials.pad_id, specials.bos_id]] = -torch.inf
    if bool(at_limit.any()):
        eos = log_p[:, specials.eos_id].clone()
        log_p = log_p.masked_fill(at_limit[:, None], -torch.inf)
        log_p[:, specials.eos_id] = eos
    return log_p
