"""Learn a confidence from text whose translation is known: the validation set at the end of training, or your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.errors import DataError
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.translation.confidence import MIN_SENTENCES, Confidence, fit, with_shortfall
from dragoman.translation.translator import Translator

MOST = 1000
"""More sentences cost time and change little."""


def learn_confidence(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> Confidence:
    """Translate with the run's own search, and fit what is known of each translation to its sentence chrF.

    The same pairs, two on a line and searched as one, then tell what a translation lacks that is too short.

    Args:
        translator: Its ``confidence`` may be set to the result.
        sources: Text that the model was not trained on; of more than ``MOST`` lines, evenly drawn ones are used.
        references: Their translations.

    Raises:
        DataError: The counts differ, or there are fewer than ``MIN_SENTENCES`` pairs.
    """
    if len(sources) != len(references):
        raise DataError(f"{len(sources):,} sources but {len(references):,} references: they must be parallel")
    pairs = [(src, ref) for src, ref in zip(sources, references, strict=True) if src.strip() and ref.strip()]
    step = max(1, len(pairs) / MOST)
    pairs = [pairs[int(i * step)] for i in range(min(len(pairs), MOST))]
    if len(pairs) < MIN_SENTENCES:
        raise DataError(f"a confidence is learned from {MIN_SENTENCES} pairs or more, and here are {len(pairs)}")
    rows, chrf = _measured(translator, pairs)
    twos = [(f"{a} {b}", f"{c} {d}") for (a, c), (b, d) in zip(pairs[::2], pairs[1::2], strict=False)]
    return with_shortfall(fit(rows, chrf), rows, *_measured(translator, twos, sentence_split=False))


def _measured(
    translator: Translator, pairs: Sequence[tuple[str, str]], **changes: Any
) -> tuple[list[list[float]], list[float]]:
    """The features of the translations of some lines, and their sentence chrF."""
    texts = [src for src, _ in pairs]
    found = translator.translate(texts, guard=False, **changes)
    chrf = sentence_chrf([translation.text for translation in found], [ref for _, ref in pairs])
    return translator.confidence_features(texts, found), chrf
