"""Attention weights and candidates of one translation, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.data.tokenizer import EOS_ID
from dragoman.errors import ConfigError, DecodeError
from dragoman.explanation.words import START, Span, between_words

KINDS = ("cross", "encoder", "decoder")
"""Kinds of attention: target to source, source to itself, target to itself."""


class Step(NamedTuple):
    """One step of the decoder: the subword it took, and the likeliest subwords."""

    chosen: str  # spaces written as ``·``
    probability: float
    rank: int  # 1: the likeliest; beam search looks ahead and may take another
    best: tuple[tuple[str, float], ...]  # the likeliest subwords with their probabilities, in order
    id: int = EOS_ID  # id of ``chosen``
    best_ids: tuple[int, ...] = ()  # ids of ``best``; ``explain`` takes them in its prefix


class Side(NamedTuple):
    """The source or the target text as tokens and as words."""

    lang: str | None
    tokens: tuple[str, ...]  # subwords with spaces as ``·`` and the end of the sentence; or words
    spans: tuple[Span, ...]  # the tokens of each word
    words: tuple[str, ...]

    def by_words(self) -> Self:
        """Return the same text with words as its tokens."""
        return self._replace(tokens=self.words, spans=tuple((i, i + 1) for i in range(len(self.words))))


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """One translation with every attention weight and the candidates of each step.

    Its source has S tokens and its translation T; row i of an attention of the target is the step that chose token i.
    """

    source: str
    translation: str
    src: Side
    tgt: Side
    weights: dict[str, NDArray[np.float32]]  # module path: (H, Q, K)
    steps: tuple[Step, ...]  # one for each subword, also if tokens are words
    model: Mapping[str, Any] = field(default_factory=dict)  # number of parameters, step, validation BLEU
    n_forced: int = 0  # number of tokens given as prefix instead of chosen

    def __repr__(self) -> str:
        heads = sum(len(weights) for weights in self.weights.values())
        return f"<Trace: {self.source!r} to {self.translation!r}, {heads} heads in {len(self.weights)} attentions>"

    def layers(self, kind: str) -> list[NDArray[np.float32]]:
        """Return the attention weights ``(H, Q, K)`` of each layer, first to last; empty if the model has none.

        Args:
            kind: One of ``KINDS``.

        Raises:
            ConfigError: The kind is unknown.
        """
        if kind not in KINDS:
            raise ConfigError(f"attention of kind {kind!r} is unknown: choose {', '.join(KINDS)}")
        start, end = {"cross": ("decoder.", "cross_attn")}.get(kind, (f"{kind}.", "self_attn"))
        return [weights for name, weights in self.weights.items() if name.startswith(start) and name.endswith(end)]

    def tokens(self, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the rows (queries) and of the columns (keys) of one kind of attention."""
        if kind == "encoder":
            return self.src.tokens, self.src.tokens
        return self.tgt.tokens, self.src.tokens if kind == "cross" else (START, *self.tgt.tokens[:-1])

    def alignment(self) -> NDArray[np.float32]:
        """Return how much each target token attends to each source token: ``(T, S)``, each row summing to 1.

        This is the cross-attention of the last layer but one, averaged over its heads. That layer follows the source
        most closely (Garg et al., 2019, https://arxiv.org/abs/1909.02074); a decoder of one layer has only that one.

        Raises:
            DecodeError: The model has no cross-attention.
        """
        layers = self.layers("cross")
        if not layers:
            raise DecodeError("this model has no cross-attention, so there is no alignment to show")
        mean: NDArray[np.float32] = (layers[-2] if len(layers) > 1 else layers[0]).mean(axis=0)
        return mean

    def by_words(self) -> Self:
        """Return the same trace with words as tokens; steps stay those of subwords."""
        # Keys of the decoder's self-attention: the start token, then the target without its last word.
        so_far = ((0, 1), *((start + 1, stop + 1) for start, stop in self.tgt.spans[:-1]))
        merged = {}
        for name, weights in self.weights.items():
            queries = self.src.spans if name.startswith("encoder.") else self.tgt.spans
            keys = so_far if name.startswith("decoder.") and name.endswith("self_attn") else self.src.spans
            merged[name] = between_words(weights, queries, keys)
        return replace(self, src=self.src.by_words(), tgt=self.tgt.by_words(), weights=merged)
