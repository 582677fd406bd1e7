"""Translate and score test sets, compare two systems, measure robustness.

    dragoman.evaluate("runs/x", src="test.en", ref="test.de")    # or lists of texts
    dragoman.compare("runs/x", "runs/y", src="test.en", ref="test.de")
    dragoman.stress("runs/x", src="test.en", ref="test.de")

A system is a run, or translations from elsewhere: a text file, or a list of texts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

from dragoman.arguments import at_least_1
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import open_corpus, read_lines_leniently
from dragoman.data.sides import Side, refuse_by_name, warnings_about
from dragoman.errors import ConfigError, DataError
from dragoman.evaluation.bracket_f1 import PAPER_F1, bracket_scores
from dragoman.evaluation.ledger import TestSet, enter
from dragoman.evaluation.metrics import Metric, Score, scores, select_metrics
from dragoman.evaluation.options import ScoreOptions
from dragoman.evaluation.significance import N_SAMPLES, SEED, Comparison, compare_segments
from dragoman.evaluation.significance import compare as compare_texts
from dragoman.evaluation.stress import SEED as STRESS_SEED
from dragoman.evaluation.stress import Stressed, measure, variants
from dragoman.evaluation.test_set import (
    Lines,
    References,
    is_file,
    language_of_references,
    language_of_side,
    language_of_translations,
    named,
    pinned_side,
    read,
    references_of,
)
from dragoman.evaluation.writing import Writing, writing_of
from dragoman.files import as_path, pinned
from dragoman.languages.codes import variety
from dragoman.options import DeviceOptions, QuietOptions, takes
from dragoman.pages.render import render
from dragoman.parsing.trees import read_trees, right_branching, to_symbols, tree_of
from dragoman.progress import Ticker
from dragoman.translation.assemble import Translation
from dragoman.translation.keeping.glossary import glossary_file
from dragoman.translation.language_pairs import check_sides, name_from
from dragoman.translation.note_report import NoteReport, WarningOptions, check_list
from dragoman.translation.notes import Events
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

System = Path | str | Translator | Sequence[str]
"""Run folder, bundle, loaded translator, or translations: a text file or a list of texts."""
SURELY_COPIED = 20
"""Number of lines from which translations that all equal their references are suspicious."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scores of a system on a test set, and its translations."""

    scores: list[Score]
    translations: list[Translation]  # read from a file: the score is nan
    seconds: float  # time of translating

    def __repr__(self) -> str:
        """Return one line; signatures and intervals are in ``scores``."""
        scores = ", ".join(f"{score.name} {score.value:.2f}" for score in self.scores)
        return f"<Evaluation of {len(self.translations):,} lines: {scores}>"

    def _repr_html_(self) -> str:
        """Return a table for a notebook, with a row for each metric."""
        text = f"{len(self.translations):,} lines" + (f" in {self.seconds:.1f} s" if self.seconds else "")
        columns = ["metric", "score", "95% interval", "signature"]
        rows = [(score.name, f"{score.value:.2f}", score.interval(), score.signature) for score in self.scores]
        return render("table.html", text=text, columns=columns, rows=rows)


@dataclass(frozen=True)
class Compared:
    """Scores of two systems on one test set, and the significance of their difference by each metric."""

    a: Evaluation
    b: Evaluation
    comparisons: list[Comparison]

    def _repr_html_(self) -> str:
        """Return a table for a notebook, with a row for each metric."""
        columns = ["metric", "A", "B", "verdict"]
        rows = [(one.metric, f"{one.a:.2f}", f"{one.b:.2f}", one.verdict()) for one in self.comparisons]
        return render("table.html", text=f"{len(self.a.translations):,} lines", columns=columns, rows=rows)


@dataclass(frozen=True)
class _Test:
    """Loaded system and its test set."""

    translator: Translator | None  # None: a file of translations
    plan: Plan | None
    lines: list[str]  # sources, or the translations of a file
    references: list[list[str]]  # lists with one for each line
    src: Lines | None
    warnings: tuple[str, ...] = ()  # about its files
    named_lang: str | None = None  # language of translations that were made already, by options or by names of files

    @property
    def tgt_lang(self) -> str | None:
        """Target language of a run; None for a file of translations."""
        return None if self.plan is None else self.plan.tgt_lang


@takes(ScoreOptions, QuietOptions, WarningOptions, TranslateOptions)
def evaluate(
    run: System,
    src: Lines | None = None,
    ref: References | None = None,
    *,
    options: TranslateOptions | None = None,
    **changes: Any,
) -> Evaluation:
    """Translate a test set and score it, or score translations.

    Args:
        run: A run folder, a bundle, a loaded translator, or translations: a text file, or a list of texts.
        src: Sources: a text file with one in each line, or a list of texts, such as a column of a table. Translations
            need none.
        ref: References, a file or a list of texts, or several of these; for a parser a file of gold trees, of which it
            sees only the words.
        options: How to translate. ``changes`` are options by name, such as ``beam_size=5``; also ``metrics``, keys of
            ``dragoman.evaluation.metrics.METRICS`` such as ``["bleu", "chrf++"]`` (none: BLEU, chrF and TER),
            ``old_style``, the BLEU of older papers (needs ``dragoman[moses]``), ``device``, ``quiet``; and ``verbose``
            or ``warnings="FILE"``, which list each warning instead of only their number.

    Returns:
        ``scores``: name, value in per cent, signature and 95% bootstrap interval of each metric; the ``translations``;
        and the ``seconds`` of translating. A parser is scored by labelled brackets.

    Raises:
        ConfigError: There is nothing to translate, or an extra is missing.
        DataError: The files cannot be used, or their counts differ.
    """
    how, ticker = _scoring(changes)
    warned = _warned(changes)
    metrics = check_metrics(how)
    run, src = pinned_side(run), pinned_side(src)
    refs = references_of(ref, _are_texts(run) or (src is not None and not is_file(src)))
    options = TranslateOptions.of(options, changes)
    _refuse_idle([run], how, warned)
    check_list(warned, *_paths(run, src, *refs), glossary_file(options.glossary))
    if not _are_translations(run):
        run = _loaded(run, how.device)
        if run.is_parser:
            if src is not None or how.metrics or how.old_style or len(refs) > 1:
                raise ConfigError(
                    "a parser takes its sentences from the gold trees: give one --ref, and no --src and --metric"
                )
            if not isinstance(refs[0], Path | str):
                raise ConfigError("a parser is scored by a file of gold trees: give its path as ref")
            return _evaluate_parser(run, refs[0], options, ticker, warned)
    test = _read_test(run, src, refs, options, how.device)
    _refuse_unused(options, src, [test])
    translations, seconds = _translated(test, ticker, NoteReport(warned, say=ticker.say, begins_list=True))
    lang = test.tgt_lang or test.named_lang or language_of_side(refs[0])
    _say_writing(lang, test, metrics, ticker)
    result = Evaluation(scores(_texts(translations), test.references, lang, metrics), translations, seconds)
    _enter(test, refs, result, ticker)
    return result


def _evaluate_parser(
    parser: Translator, ref: Path | str, options: TranslateOptions, ticker: Ticker, warned: WarningOptions
) -> Evaluation:
    """Score the trees of a parser by brackets; add the scores of right-branching trees and the paper's F1."""
    plan = parser.plan(options)
    golds = list(read_trees(ref))
    started = time.perf_counter()
    with NoteReport(warned, say=ticker.say, unit="trees", begins_list=True) as report:
        events = Events(progress=ticker, warn=report.add, label=_label_of(ref))
        parses = parser.translate_planned([" ".join(tree.words) for tree in golds], plan, events)
        report.n_lines = len(golds)
    seconds = time.perf_counter() - started
    kinds = [note.kind for parse in parses for note in parse.notes]
    repaired, too_long = kinds.count("repaired"), kinds.count("too_long")
    ticker.say(
        f"{len(parses):,} trees; {repaired:,} had to be repaired to be well-formed"
        + (f"; {too_long:,} sentences were too long to parse and got right-branching trees" if too_long else "")
    )
    scores = bracket_scores(golds, [tree_of(parse.text) for parse in parses])
    if note := enter(parser, TestSet([f"{ref}"], [[" ".join(to_symbols(tree)) for tree in golds]]), scores):
        ticker.say(f"note: {note}")
    baseline, *_ = bracket_scores(golds, [right_branching(tree.words) for tree in golds])
    paper = Score("the paper's bracket F1", PAPER_F1, "Wall Street Journal, section 23: another corpus, Table 4")
    return Evaluation([*scores, baseline._replace(name="right-branching bracket F1"), paper], parses, seconds)


@takes(ScoreOptions, QuietOptions, WarningOptions, TranslateOptions)
def compare(
    a: System,
    b: System,
    src: Lines | None = None,
    ref: References | None = None,
    *,
    options: TranslateOptions | None = None,
    n_samples: int = N_SAMPLES,
    **changes: Any,
) -> Compared:
    """Evaluate two systems on one test set and test whether their difference is significant.

    Args:
        a, b: See ``run`` of ``evaluate``, which has the other arguments too.
        n_samples: Number of samples of paired bootstrap resampling, and of approximate randomisation.

    Returns:
        ``a`` and ``b``, the results of ``evaluate``, and ``comparisons``: for each metric the difference b - a in per
        cent, its 95% bootstrap interval, p-values, and a ``verdict()``.

    Raises:
        ConfigError: See ``evaluate``; or the systems translate into different languages.
        DataError: See ``evaluate``; or a file is a pipe, which cannot be read twice.
    """
    at_least_1("n_samples", n_samples)
    how, ticker = _scoring(changes)
    warned = _warned(changes)
    metrics = check_metrics(how)
    a, b, src = map(pinned_side, (a, b, src))
    texts = [system for system in (a, b) if _are_texts(system)]
    refs = references_of(ref, bool(texts) or (src is not None and not is_file(src)))
    options = TranslateOptions.of(options, changes)
    _refuse_idle([a, b], how, warned)
    check_list(warned, *_paths(a, b, src, *refs), glossary_file(options.glossary))
    for path in (src, *refs):
        if isinstance(path, Path | str):
            refuse_a_pipe(path)
    tests = [_read_test(system, src, refs, options, how.device) for system in (a, b)]
    _refuse_unused(options, src, tests)
    langs = [test.tgt_lang for test in tests if test.tgt_lang]
    if len({variety(lang) for lang in langs}) > 1:
        raise ConfigError(f"{a} translates into {langs[0]} and {b} into {langs[1]}: compare systems of one language")
    if options.to is None:
        _refuse_names_of_two_languages((a, b), tests, refs)
    langs += [lang for test in tests if (lang := test.named_lang or language_of_side(refs[0]))]
    lang, references = next(iter(langs), None), tests[0].references
    names = [f"{system}" if is_file(system) else letter for letter, system in (("A", a), ("B", b))]
    first = next((test for test in tests if test.translator is not None), None)
    reports = [
        NoteReport(warned, name=name, say=ticker.say, begins_list=test is first)
        for name, test in zip(names, tests, strict=True)
    ]
    results = [_translated(test, ticker, report) for test, report in zip(tests, reports, strict=True)]
    _say_writing(lang, tests[0], metrics, ticker)
    with ticker.task("resampling"):
        texts_a, texts_b = (_texts(translations) for translations, _ in results)
        comparisons = compare_texts(texts_a, texts_b, references, lang, metrics, n_samples, SEED)
    evaluation_a, evaluation_b = (
        Evaluation(scores(_texts(translations), references, lang, metrics), translations, seconds)
        for translations, seconds in results
    )
    for test, evaluation in zip(tests, (evaluation_a, evaluation_b), strict=True):
        _enter(test, refs, evaluation, ticker)
    return Compared(evaluation_a, evaluation_b, comparisons)


def compare_segment_scores(a: Path | str, b: Path | str, *, n_samples: int = N_SAMPLES) -> Comparison:
    """Compare two systems by scores of their sentences, such as COMET's; higher must be better.

    Args:
        a, b: Text files with one number a line, for the same sentences.

    Raises:
        DataError: A line is no number, or the counts differ.
    """
    return compare_segments(_numbers(Path(a)), _numbers(Path(b)), n_samples)


def _numbers(path: Path) -> list[float]:
    """Return the numbers of a file, one a line."""
    values = []
    with open_corpus(path) as stream:
        for number, line in enumerate(read_lines_leniently(stream, f"{path}"), 1):
            try:
                value = float(line.text)
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                raise DataError(f"{path}:{number}: a line of scores must be a number, got {line.text[:40]!r}")
            values.append(value)
    return values


@takes(DeviceOptions, QuietOptions, TranslateOptions)
def stress(
    run: System,
    src: Lines,
    ref: Lines,
    *,
    options: TranslateOptions | None = None,
    noise_seed: int = STRESS_SEED,
    **changes: Any,
) -> list[Stressed]:
    """Translate a test set as it is and in perturbed variants; see ``dragoman.evaluation.stress``.

    Args:
        run: A run folder, a bundle or a loaded translator.
        src, ref: Sources and references: text files, line by line, or lists of texts.
        options: See ``evaluate``.
        noise_seed: Seed of the typing errors and of all other random changes.

    Returns:
        A result for each variant; the first is the unchanged test set.

    Raises:
        ConfigError: ``run`` is a file of translations.
        DataError: The files cannot be used, or their counts differ.
    """
    if _are_translations(run):
        raise ConfigError("--stress needs a run, not translations")
    run, src, ref = map(pinned_side, (run, src, ref))
    ticker = Ticker(QuietOptions.taken_from(changes).quiet)
    device = DeviceOptions.taken_from(changes).device
    translator = _loaded(run, device)
    if translator.is_parser:
        raise ConfigError("--stress is for translation runs, and this run is a parser")
    name = translator.run if isinstance(run, Translator) else run
    test = _test_of(translator, name, src, [ref], TranslateOptions.of(options, changes))
    plan, sources, (references,) = test.plan, test.lines, test.references
    assert plan is not None
    for warning in test.warnings:
        ticker.say(f"warning: {warning}")
    langs = plan.src_lang, plan.tgt_lang or language_of_side(ref)
    if note := writing_of(langs[1], test.references).note:
        ticker.say(f"note: {note}")
    results: list[Stressed] = []
    for variant in variants(sources, references, *langs, noise_seed):
        events = Events(progress=ticker.named(f"sentences translated: {variant.name}"))
        translations = translator.translate_planned(variant.sources, plan, events)
        n_src = [len(ids) for ids in translator.src_tokenizer.encode(variant.sources)]
        results.append(measure(variant, translations, n_src, langs, clean=results[0] if results else None))
    clean = results[0]
    found = [
        Score(name, value, "") for name, value in (("BLEU", clean.bleu), ("chrF2", clean.chrf)) if value is not None
    ]
    _enter_scores(test, [ref], found, ticker)
    return results


def _scoring(changes: dict[str, Any]) -> tuple[ScoreOptions, Ticker]:
    """Take the options of scoring out of ``changes``; return them and a ticker for progress."""
    return ScoreOptions.taken_from(changes), Ticker(QuietOptions.taken_from(changes).quiet)


def _warned(changes: dict[str, Any]) -> WarningOptions:
    """Take the options of warnings out of ``changes``; the list gets an absolute path, as it is opened later."""
    warned = WarningOptions.taken_from(changes)
    return replace(warned, warnings=None if warned.warnings is None else pinned(warned.warnings))


def check_metrics(how: ScoreOptions) -> list[Metric]:
    """Return the chosen metrics; check that their packages are installed, before anything is translated.

    Raises:
        ConfigError: There is no such metric, or a package is missing.
    """
    metrics = select_metrics(how.metrics)
    if how.old_style and "old-style-bleu" not in how.metrics:
        metrics += select_metrics(["old-style-bleu"])
    for metric in metrics:
        metric.scorer(Writing(None))
    return metrics


def _texts(translations: Sequence[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def _say_writing(lang: str | None, test: _Test, metrics: Sequence[Metric], ticker: Ticker) -> None:
    """Say what decides what a word is where the language of the references is not known."""
    if note := writing_of(lang, test.references).note:
        ticker.say(f"note: {note}")
    if lang is None and any(metric.key == "old-style-bleu" for metric in metrics):
        ticker.say("note: the target language is not known: old-style BLEU takes Moses' rules for English (--to LANG)")


def _enter(test: _Test, refs: Sequence[Lines], evaluation: Evaluation, ticker: Ticker) -> None:
    """Enter an evaluation in the ledger of its run; print whether its scores can be trusted."""
    texts = _texts(evaluation.translations)
    if test.translator is not None:
        if len(texts) >= SURELY_COPIED and texts == test.references[0]:
            ref = named(refs[0], "ref")
            ticker.say(f"warning: {ref}: the same text as the translations; is it a file of references?")
        _enter_scores(test, refs, evaluation.scores, ticker)


def _enter_scores(test: _Test, refs: Sequence[Lines], of_run: Sequence[Score], ticker: Ticker) -> None:
    """Enter scores of a run in its ledger; print how often it was scored on this test set."""
    assert test.translator is not None
    files = [named(test.src or "", "texts in memory"), *(named(ref, "texts in memory") for ref in refs)]
    if note := enter(test.translator, TestSet(files, [test.lines, *test.references]), of_run):
        ticker.say(f"note: {note}")


def _read_test(
    system: System, src: Lines | None, refs: Sequence[Lines], options: TranslateOptions, device: str
) -> _Test:
    """Load a system and read its test set; whatever is impossible is refused here, before anything is translated."""
    if not isinstance(system, Translator) and _are_translations(system):
        own_lang = language_of_translations(system, refs)
        lang = options.to or language_of_references(refs, own_lang)
        expected_by = "--to says" if options.to else f"{named(system, 'the list of translations')} is in"
        sides = [Side(path, options.to or own_lang or lang, expected_by) for path in _paths(*refs)]
        refuse_by_name(sides, "" if options.to else "name the language with --to if a name misleads")
        translated = [Side(path, lang, "the translations should be in") for path in _paths(system)]
        warnings = warnings_about([*translated, *sides])
        lines, references = read(system, refs, "the list of translations")
        return _Test(None, None, lines, references, None, tuple(warnings), lang)
    translator = _loaded(system, device)
    if translator.is_parser:
        raise ConfigError("parsers are evaluated one at a time, each with --ref GOLD_TREES alone")
    if src is None:
        raise ConfigError(
            "nothing to translate: give the source side of the test set with --src, besides --ref "
            f"{named(refs[0], 'TEXTS')}"
        )
    return _test_of(translator, translator.run if isinstance(system, Translator) else system, src, refs, options)


def _test_of(
    translator: Translator, name: object, src: Lines, refs: Sequence[Lines], options: TranslateOptions
) -> _Test:
    """Read the test set of a translator; whatever is impossible is refused here.

    Args:
        name: Name of the translator in messages.
    """
    plan = translator.plan(options)
    langs = plan.src_lang, plan.tgt_lang
    warnings = []
    if isinstance(src, Path | str):
        warnings = check_sides(name or "the model", langs, name_from(langs, options.from_lang), src, *_paths(*refs))
    lines, references = read(src, refs)
    if len(lines) >= SURELY_COPIED:
        same = [ref for ref, own in zip(refs, references, strict=True) if own == lines]
        warnings += [f"{named(ref, 'ref')}: the same text as the source; is it a file of references?" for ref in same]
    return _Test(translator, plan, lines, references, src, tuple(warnings))


def _refuse_names_of_two_languages(
    systems: Sequence[System], tests: Sequence[_Test], refs: Sequence[Lines]
) -> None:  # fmt: skip
    """Check that a file of translations is by its name in the language of the system that it is compared with.

    Raises:
        ConfigError: The name of a file tells another language.
    """
    for (system, other), (test, of_other) in zip(permutations(systems), permutations(tests), strict=True):
        # a name that is a code as a whole tells nothing: "in" and "in.txt" are no Indonesian
        names = [path for path in _paths(other) if path.name.partition(".")[0] != language_of_side(path)]
        lang = of_other.tgt_lang or next((language_of_translations(path, refs) for path in names), None)
        if test.translator is None and lang is not None:
            name = other if isinstance(other, Path | str) else "the other system"
            expected_by = f"{name} {'is in' if of_other.translator is None else 'translates into'}"
            sides = [Side(path, lang, expected_by) for path in _paths(system) if language_of_translations(path, refs)]
            refuse_by_name(sides, "name the language with --to if a name misleads")


def _refuse_unused(options: TranslateOptions, src: Lines | None, tests: Sequence[_Test]) -> None:
    """Refuse sources and options where nothing is translated; ``to`` is the language of the texts then.

    Raises:
        ConfigError: An option has no effect.
    """
    if all(test.translator is None for test in tests):
        options.refuse_others(("to",), "texts that are translated already")
        if src is not None:
            raise ConfigError("src has no effect on texts that are translated already: leave it out")


def _refuse_idle(systems: Sequence[System], how: ScoreOptions, warned: WarningOptions) -> None:
    """Refuse a device and a list of warnings where nothing is translated.

    Raises:
        ConfigError: Such an option has no effect.
    """
    idle = how.device != ScoreOptions().device or warned != WarningOptions()
    if idle and all(not isinstance(system, Translator) and _are_translations(system) for system in systems):
        raise ConfigError(
            "device, verbose and warnings have no effect on texts that are translated already: leave them out"
        )


def _translated(test: _Test, ticker: Ticker, report: NoteReport) -> tuple[list[Translation], float]:
    """Return the translations of a test set, made now or read from a file, and the seconds of translating."""
    for warning in test.warnings:
        ticker.say(f"warning: {warning}")
    if test.translator is None or test.plan is None:
        return [Translation(line, math.nan) for line in test.lines], 0.0
    events = Events(progress=ticker.without_end(), warn=report.add, label=_label_of(test.src))
    started = time.perf_counter()
    ticker(0, len(test.lines), "sentences translated")
    with report:
        translations = test.translator.translate_planned(test.lines, test.plan, events)
        report.n_lines = len(test.lines)
    return translations, time.perf_counter() - started


def _label_of(src: Lines | None) -> Callable[[int], str]:
    """Return a function that names a line of the sources in messages."""
    return lambda number: f"{src}:{number}" if isinstance(src, Path | str) else f"src {number}"


def _paths(*systems: System | None) -> list[Path]:
    """Return those that are names of files."""
    return [as_path(system) for system in systems if isinstance(system, Path | str)]


def _are_texts(system: System) -> bool:
    """True if a system is a list of translations."""
    return not isinstance(system, Translator | Path | str)


def _are_translations(system: System) -> bool:
    """True if a system is a list of translations, a file of them, or a pipe."""
    is_path = isinstance(system, Path | str)
    return _are_texts(system) or (is_path and Path(str(system)).exists() and not Path(str(system)).is_dir())


def _loaded(system: System, device: str) -> Translator:
    """Return a run as a translator."""
    if isinstance(system, Translator):
        return system
    return Translator.load(system if isinstance(system, Path | str) else str(system), device)
