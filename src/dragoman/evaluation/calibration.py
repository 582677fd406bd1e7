"""Learn a confidence from parallel text: the validation set at the end of training, or your own.

translator.confidence = learn_confidence(translator, sources, references)
calibrate("runs/imported", "lines.en", "lines.de")    # the same, and kept in the run
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from dragoman.bundle import amend_bundle, is_unfinished
from dragoman.errors import ConfigError, DataError, as_command
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.evaluation.test_set import Lines, References, is_file, pinned_side, read, references_of
from dragoman.files import pinned
from dragoman.languages.scripts import is_blank
from dragoman.locks import locked, refuse_if_locked
from dragoman.progress import say
from dragoman.ready import refuse_to_change
from dragoman.translation.confidence import MIN_SENTENCES, Confidence, fit, with_shortfall
from dragoman.translation.language_pairs import RENAME, check_sides
from dragoman.translation.notes import Events
from dragoman.translation.translator import Translator

MOST = 1000
"""Largest number of pairs that are used; more cost time and change little."""


def learn_confidence(
    translator: Translator, sources: Sequence[str], references: Sequence[str], to: Sequence[str | None] | None = None
) -> Confidence:
    """Translate with the run's own search, and fit the features of each translation to its sentence chrF.

    Then pairs of sentences are joined and translated as one, which teaches the cost of translations that are too short.

    Args:
        sources: Text that the model was not trained on; of more than ``MOST`` lines, evenly spaced ones are used.
        references: Their translations.
        to: Target language of each source, for a model with several.

    Raises:
        DataError: The counts differ, or there are fewer than ``MIN_SENTENCES`` pairs.
    """
    if len(sources) != len(references):
        raise DataError(f"{len(sources):,} sources but {len(references):,} references: they must be parallel")
    langs = [None] * len(sources) if to is None else to
    all_pairs = zip(sources, references, langs, strict=True)
    pairs = [pair for pair in all_pairs if not is_blank(pair[0]) and not is_blank(pair[1])]
    step = max(1, len(pairs) / MOST)
    pairs = [pairs[int(i * step)] for i in range(min(len(pairs), MOST))]
    if len(pairs) < MIN_SENTENCES:
        raise DataError(f"a confidence needs {MIN_SENTENCES} pairs or more, got {len(pairs)}")
    rows: list[list[float]] = []
    chrf: list[float] = []
    rows_of_twos: list[list[float]] = []
    chrf_of_twos: list[float] = []
    for lang in dict.fromkeys(lang for _, _, lang in pairs):
        own = [(src, ref) for src, ref, pair_lang in pairs if pair_lang == lang]
        twos = [(f"{a} {b}", f"{c} {d}") for (a, c), (b, d) in zip(own[::2], own[1::2], strict=False)]
        for lines, some_rows, some_chrf, changes in (
            (own, rows, chrf, {}), (twos, rows_of_twos, chrf_of_twos, {"sentence_split": False}),
        ):  # fmt: skip
            more_rows, more_chrf = _measured(translator, lines, lang, **changes)
            some_rows += more_rows
            some_chrf += more_chrf
    return with_shortfall(fit(rows, chrf), rows, rows_of_twos, chrf_of_twos)


def calibrate(
    run: Path | str, src: Lines, ref: References, device: str = "auto", *, to: str | None = None
) -> Confidence:
    """Learn a confidence from parallel text that the model was not trained on, and keep it in the bundle of the run.

    An imported model has none, and that of a trained one is of its validation text. About 500 lines are enough.

    Args:
        run: A run folder or a bundle.
        src: Sources: a text file, or a list of texts.
        ref: Their translations, line by line; of several references the first.
        to: Target language, for a run of several.

    Raises:
        BundleError, DataError: As ``Translator.load`` and ``learn_confidence``.
        ConfigError: The run is a ready bundle, its training has not ended or goes on, or the name of a file tells
            another language than the run's.
        DragomanError: The bundle cannot be written, or has been replaced meanwhile.
    """
    refuse_to_change(run)
    run, src = pinned(run), pinned_side(src)
    if is_unfinished(run):
        resume = as_command("dragoman", "train", "--out", run, "--resume")
        raise ConfigError(f"{run}: its training has not ended, and only a finished run keeps a confidence ({resume})")
    refuse_if_locked(run)
    refs = references_of(ref, not is_file(src))
    translator = Translator.load(run, device)
    if isinstance(src, Path | str) and isinstance(refs[0], Path | str):
        plan = translator.plan(to=to)
        for warning in check_sides(run, (plan.src_lang, plan.tgt_lang), RENAME, src, refs[0]):
            say(f"warning: {warning}")
    if to is not None and translator.languages.targets:
        say(
            f"note: a run has one confidence: it is learned from {to} alone now, and holds for all its target languages"
        )
    lines, references = read(src, refs)
    learned = learn_confidence(translator, lines, references[0], None if to is None else [to] * len(lines))
    is_run = (run / "bundle").exists()
    with locked(run) if is_run else nullcontext():  # a training may have begun meanwhile
        amend_bundle(run, of=translator.bundle.facts.sha256, confidence=learned.model_dump(mode="json"))
    return learned


def guide(learned: Confidence) -> str:
    """Return how good a guide to quality a confidence is, by its rank correlation: a good, fair or poor."""
    words = ((0.6, "a good"), (0.3, "a fair"), (-1.0, "a poor"))
    return next(word for least, word in words if learned.rank_correlation >= least)


def _measured(
    translator: Translator, pairs: Sequence[tuple[str, str]], to: str | None, **changes: Any
) -> tuple[list[list[float]], list[float]]:
    """Translate the sources of some pairs; return the features of the translations, and their sentence chrF."""
    texts = [src for src, _ in pairs]
    events = Events(failed=lambda note: None)  # what runs out of memory has no translation, and is left out
    made = zip(pairs, translator.translate(texts, events=events, guard=False, to=to, **changes), strict=True)
    translated = [(src, ref, translation) for (src, ref), translation in made if translation.n_tokens]
    if not translated:  # such as the pairs of sentences of a language that has one sentence
        return [], []
    translations = [translation for _, _, translation in translated]
    chrf = sentence_chrf([translation.text for translation in translations], [ref for _, ref, _ in translated])
    return translator.confidence_features([src for src, _, _ in translated], translations, to), chrf
