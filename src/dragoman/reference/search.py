"""From probabilities to one sentence: greedy and beam search (section 6.1), the plain way.

Both ask ``next_log_probs(ids)`` for the log-probabilities ``(V)`` of the token after ``ids`` (without bos) and count in
``n`` the tokens of a hypothesis, eos among them. Padding, bos and unk are never emitted: they are passed over after the
log-softmax, so the other probabilities stay what they are; unk may be if ``unk_id`` is None. A hypothesis that reaches
``max_len`` tokens must end there.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from .arrays import Array, Config, Params
from .loss import log_softmax
from .masks import source_mask
from .transformer import decode, encode

NextLogProbs: TypeAlias = Callable[[list[int]], Array]


class Hypothesis(NamedTuple):
    """A finished translation."""

    ids: list[int]  # without bos and eos
    score: float  # its log-probability, that of eos included, over the length penalty


class _Alive(NamedTuple):
    log_prob: float
    ids: list[int]


class _Candidate(NamedTuple):
    log_prob: float
    ids: list[int]
    token: int


def length_penalty(n: int, alpha: float) -> float:
    """``((5 + n) / 6)^alpha``, Eq. (14) of GNMT (https://arxiv.org/abs/1609.08144)."""
    return float(((5 + n) / 6) ** alpha)


def greedy_search(
    next_log_probs: NextLogProbs,
    *,
    pad_id: int,
    bos_id: int,
    eos_id: int,
    max_len: int,
    unk_id: int | None = None,
    alpha: float = 0.6,
) -> Hypothesis:
    """Take the likeliest token, the one of lower id between equals, until it is eos."""
    ids: list[int] = []
    total = 0.0
    for n in range(1, max_len + 1):
        log_probs = next_log_probs(ids)  # (V)
        allowed = [eos_id] if n == max_len else _without(len(log_probs), pad_id, bos_id, unk_id)
        token = max(allowed, key=lambda token: (log_probs[token], -token))
        total += float(log_probs[token])
        if token == eos_id:
            break
        ids.append(token)
    return Hypothesis(ids, total / length_penalty(n, alpha))


def beam_search(
    next_log_probs: NextLogProbs,
    *,
    pad_id: int,
    bos_id: int,
    eos_id: int,
    max_len: int,
    unk_id: int | None = None,
    beam_size: int = 4,
    alpha: float = 0.6,
    n_best: int = 1,
    patience: float | None = None,
) -> list[Hypothesis]:
    """Keep the ``beam_size`` best unfinished hypotheses of each length; return the ``n_best`` finished, best first.

    Between equal scores the earlier hypothesis stands first, then the token of lower id. The search stops once no
    unfinished hypothesis can still come among the best ``n_best``: a log-probability only falls, so what the best of
    them has now, over the largest penalty it may come to, bounds what all of them may reach. With ``patience`` it stops
    as soon as ``patience * beam_size`` have finished, and ``n_best`` at least (https://arxiv.org/abs/2204.05424).
    """
    alive = [_Alive(0.0, [])]
    finished: list[Hypothesis] = []
    n_finished = 0
    enough = math.inf if patience is None else max(n_best, math.ceil(patience * beam_size))
    for n in range(1, max_len + 1):
        candidates = []
        for hypothesis in alive:
            log_probs = next_log_probs(hypothesis.ids)  # (V)
            for token in [eos_id] if n == max_len else _without(len(log_probs), pad_id, bos_id, unk_id):
                log_prob = hypothesis.log_prob + float(log_probs[token])
                candidates.append(_Candidate(log_prob, hypothesis.ids, token))
        candidates.sort(key=lambda c: -c.log_prob)  # stable: equals stay in the order of hypothesis and id
        best = candidates[: 2 * beam_size]  # at most half of them end, so enough go on
        ended = [c for c in best[:beam_size] if c.token == eos_id]
        finished += [Hypothesis(c.ids, c.log_prob / length_penalty(n, alpha)) for c in ended]
        n_finished += len(ended)
        finished = sorted(finished, key=lambda h: -h.score)[:beam_size]
        alive = [_Alive(c.log_prob, [*c.ids, c.token]) for c in best if c.token != eos_id][:beam_size]
        if not alive or n_finished >= enough:
            break
        bound = alive[0].log_prob / (length_penalty(max_len, alpha) if alpha > 0 else 1)
        if len(finished) >= n_best and bound <= finished[n_best - 1].score:
            break
    return finished[:n_best]


def _without(vocab_size: int, *never: int | None) -> list[int]:
    """All tokens but those that are never emitted, in the order of their ids."""
    return [token for token in range(vocab_size) if token not in never]


def translate(
    params: Params,
    config: Config,
    src_ids: Sequence[int],
    *,
    bos_id: int,
    eos_id: int,
    unk_id: int | None = None,
    beam_size: int = 4,
    alpha: float = 0.6,
    n_best: int = 1,
    patience: float | None = None,
    max_len: int | None = None,
) -> list[Hypothesis]:
    """Translate one sentence with the complete model.

    Args:
        params: Under the state dict's names.
        config: Sizes and variants.
        src_ids: The source without eos.
        bos_id: Begins the target.
        eos_id: Ends source and target.
        unk_id: Never emitted; None: it may be.
        beam_size: 1 is greedy.
        alpha: Of the length penalty.
        n_best: How many to return; greedy has one.
        patience: As in ``beam_search``.
        max_len: Maximum number of tokens, eos counted; None: 50 more than ``src_ids`` has (section 6.1).

    Returns:
        The best translations, best first.
    """
    pad_id = config["pad_id"]
    src = np.array([[*src_ids, eos_id]])  # (1, S)
    memory, _ = encode(params, config, src)
    src_mask = source_mask(src, config)

    def next_log_probs(ids: list[int]) -> Array:
        logits, _ = decode(params, config, np.array([[bos_id, *ids]]), memory, src_mask)  # (1, T, V)
        return log_softmax(logits[0, -1])

    if max_len is None:
        max_len = len(src_ids) + 50
    if beam_size == 1:
        return [
            greedy_search(
                next_log_probs,
                pad_id=pad_id,
                bos_id=bos_id,
                eos_id=eos_id,
                unk_id=unk_id,
                max_len=max_len,
                alpha=alpha,
            )
        ]
    return beam_search(
        next_log_probs,
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
        unk_id=unk_id,
        max_len=max_len,
        beam_size=beam_size,
        alpha=alpha,
        n_best=n_best,
        patience=patience,
    )
