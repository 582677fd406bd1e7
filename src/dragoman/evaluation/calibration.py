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


def learn_confidence(
    translator: Translator, sources: Sequence[str], references: Sequence[str], to: Sequence[str | None] | None = None
) -> Confidence:
    """Translate with the run's own search, and fit what is known of each translation to its sentence chrF.

    The same pairs, two on a line and searched as one, then tell what a translation lacks that is too short.

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
    rows: list[list[float]] = []
    chrf: list[float] = []
    rows_of_twos: list[list[float]] = []
    chrf_of_twos: list[float] = []
    for lang in dict.fromkeys(lang for _, _, lang in pairs):
        own = [(src, ref) for src, ref, each in pairs if each == lang]
        twos = [(f"{a} {b}", f"{c} {d}") for (a, c), (b, d) in zip(own[::2], own[1::2], strict=False)]
        for lines, some_rows, some_chrf, changes in (
            (own, rows, chrf, {}), (twos, rows_of_twos, chrf_of_twos, {"sentence_split": False}),
        ):  # fmt: skip
            found_rows, found_chrf = _measured(translator, lines, lang, **changes)
            some_rows += found_rows
            some_chrf += found_chrf
    return with_shortfall(fit(rows, chrf), rows, rows_of_twos, chrf_of_twos)


def _measured(
    translator: Translator, pairs: Sequence[tuple[str, str]], to: str | None, **changes: Any
) -> tuple[list[list[float]], list[float]]:
    """The features of the translations of some lines, and their sentence chrF."""
    texts = [src for src, _ in pairs]
    found = translator.translate(texts, guard=False, to=to, **changes)
    chrf = sentence_chrf([translation.text for translation in found], [ref for _, ref in pairs])
    return translator.confidence_features(texts, found, to), chrf
