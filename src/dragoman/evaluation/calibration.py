"""Learn a confidence from text whose translation is known: the validation set at the end of training, or your own."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import DataError
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.translation.confidence import MIN_SENTENCES, Confidence, fit
from dragoman.translation.translator import Translator

MOST = 1000
"""More sentences cost time and change little."""


def learn_confidence(
    translator: Translator, sources: Sequence[str], references: Sequence[str], to: Sequence[str | None] | None = None
) -> Confidence:
    """Translate with the run's own search, and fit what is known of each translation to its sentence chrF.

    Args:
        translator: Its ``confidence`` may be set to the result.
        sources: Text that the model was not trained on; of more than ``MOST`` lines, evenly drawn ones are used.
        references: Their translations.
        to: The target language of each, of a model with several.

    Raises:
        DataError: The counts differ, or there are fewer than ``MIN_SENTENCES`` pairs.
    """
    if len(sources) != len(references):
        raise DataError(f"{len(sources):,} sources but {len(references):,} references: they must be parallel")
    langs = [None] * len(sources) if to is None else to
    pairs = [each for each in zip(sources, references, langs, strict=True) if each[0].strip() and each[1].strip()]
    step = max(1, len(pairs) / MOST)
    pairs = [pairs[int(i * step)] for i in range(min(len(pairs), MOST))]
    if len(pairs) < MIN_SENTENCES:
        raise DataError(f"a confidence is learned from {MIN_SENTENCES} pairs or more, and here are {len(pairs)}")
    features: list[list[float]] = []
    chrf: list[float] = []
    for lang in dict.fromkeys(lang for _, _, lang in pairs):
        own = [(src, ref) for src, ref, each in pairs if each == lang]
        texts = [src for src, _ in own]
        found = translator.translate(texts, guard=False, to=lang)
        features += translator.confidence_features(texts, found, lang)
        chrf += sentence_chrf([translation.text for translation in found], [ref for _, ref in own])
    return fit(features, chrf)
