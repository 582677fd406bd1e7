"""From probabilities to a sentence: greedy and beam search (section 6.1), written plainly.

    best, *others = translate(params, config, src_ids, SearchSettings(pad_id=0, bos_id=2, eos_id=3, unk_id=1, n_best=4))

Both call ``next_log_probs(ids)`` for the log-probabilities ``(V)`` of the token after ``ids`` (without bos). ``n`` is
the number of tokens of a hypothesis, eos included. Padding, bos and unk are never emitted (unk only
if ``unk_id`` is None): they are skipped after the log-softmax, which leaves the other probabilities unchanged. A
hypothesis of ``max_len`` tokens must end.
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
    score: float  # log-probability, eos included, divided by the length penalty


class SearchSettings(NamedTuple):
    """Settings of a search."""

    pad_id: int
    bos_id: int  # begins the target
    eos_id: int  # ends the target
    unk_id: int | None  # never emitted; None: it may be
    beam_size: int = 4
    alpha: float = 0.6  # exponent of the length penalty
    n_best: int = 1  # number of hypotheses that beam search returns
    patience: float | None = None  # beam search ends after patience * beam_size finished hypotheses; None: when exact


class _Alive(NamedTuple):
    log_prob: float
    ids: list[int]


class _Candidate(NamedTuple):
    log_prob: float
    ids: list[int]
    token: int


def length_penalty(n: int, alpha: float) -> float:
    """Return ``((5 + n) / 6)^alpha``, Eq. (14) of GNMT (https://arxiv.org/abs/1609.08144)."""
    return float(((5 + n) / 6) ** alpha)


def greedy_search(next_log_probs: NextLogProbs, max_len: int, settings: SearchSettings) -> Hypothesis:
    """Choose the most likely token again and again until it is eos; of equals the one with the lower id."""
    ids: list[int] = []
    total = 0.0
    for n in range(1, max_len + 1):
        log_probs = next_log_probs(ids)  # (V)
        allowed = _allowed(len(log_probs), settings, must_end=n == max_len)
        token = max(allowed, key=lambda token: (log_probs[token], -token))
        total += float(log_probs[token])
        if token == settings.eos_id:
            break
        ids.append(token)
    return Hypothesis(ids, total / length_penalty(n, settings.alpha))


def beam_search(next_log_probs: NextLogProbs, max_len: int, settings: SearchSettings) -> list[Hypothesis]:
    """Keep the ``beam_size`` best unfinished hypotheses of each length; return the ``n_best`` finished, best first.

    Of equal scores the earlier hypothesis comes first, then the token with the lower id. The search stops when no
    unfinished hypothesis can still enter the best ``n_best``. A log-probability only falls, so the best unfinished one
    over the largest possible penalty is a bound for all of them.

    With ``patience`` the search stops after ``patience * beam_size`` finished hypotheses, but not before ``n_best``
    (https://arxiv.org/abs/2204.05424).
    """
    eos_id, beam_size, n_best = settings.eos_id, settings.beam_size, settings.n_best
    alpha, patience = settings.alpha, settings.patience
    alive = [_Alive(0.0, [])]
    finished: list[Hypothesis] = []
    n_finished = 0
    enough = math.inf if patience is None else max(n_best, math.ceil(patience * beam_size))
    for n in range(1, max_len + 1):
        candidates = []
        for hypothesis in alive:
            log_probs = next_log_probs(hypothesis.ids)  # (V)
            for token in _allowed(len(log_probs), settings, must_end=n == max_len):
                log_prob = hypothesis.log_prob + float(log_probs[token])
                candidates.append(_Candidate(log_prob, hypothesis.ids, token))
        candidates.sort(key=lambda c: -c.log_prob)  # stable: equals stay in the order of hypothesis and id
        best = candidates[: 2 * beam_size]  # at most half of them end, so that beam_size hypotheses continue
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


def _allowed(vocab_size: int, settings: SearchSettings, must_end: bool) -> list[int]:
    """Return the tokens that may come next, in the order of their ids."""
    if must_end:
        return [settings.eos_id]
    return [token for token in range(vocab_size) if token not in (settings.pad_id, settings.bos_id, settings.unk_id)]


def translate(
    params: Params, config: Config, src_ids: Sequence[int], settings: SearchSettings, max_len: int | None = None
) -> list[Hypothesis]:
    """Translate one sentence with the complete model.

    Args:
        params: By their names in the state dict.
        config: Sizes and variants.
        src_ids: The source without eos.
        settings: Special tokens and search; ``beam_size=1`` is greedy search.
        max_len: Largest number of tokens, eos included; None: 50 more than ``src_ids`` has (section 6.1).

    Returns:
        The best translations, best first; greedy search returns one.
    """
    src = np.array([[*src_ids, settings.eos_id]])  # (1, S)
    memory, _ = encode(params, config, src)
    src_mask = source_mask(src, config)

    def next_log_probs(ids: list[int]) -> Array:
        logits, _ = decode(params, config, np.array([[settings.bos_id, *ids]]), memory, src_mask)  # (1, T, V)
        return log_softmax(logits[0, -1])

    if max_len is None:
        max_len = len(src_ids) + 50
    if settings.beam_size == 1:
        return [greedy_search(next_log_probs, max_len, settings)]
    return beam_search(next_log_probs, max_len, settings)
