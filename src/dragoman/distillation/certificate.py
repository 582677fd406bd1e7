"""Comparison of a student with its teacher on validation text: quality, speed and size, for each engine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dragoman.evaluation.metrics import scores, select_metrics
from dragoman.evaluation.significance import Comparison, compare
from dragoman.progress import Ticker
from dragoman.toolkits import OURS
from dragoman.toolkits.engine import Searcher
from dragoman.toolkits.export import KeptExport
from dragoman.translation.notes import Events
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator

TOLERANCE = 0.3
"""Largest loss in BLEU, on the validation text, of the fastest way to decode against the best."""

WARM_UP = 32
"""Lines translated before time is measured."""


class Row(NamedTuple):
    """Measurements of one way to translate the validation text, without guard, confidence and protected spans."""

    who: str  # teacher or student
    engine: str
    precision: str
    beam_size: int
    shortlist: bool
    scores: dict[str, float]  # of the usual metrics, by their names, in per cent
    sentences_per_s: float
    megabytes: float  # of the weights, as the engine reads them

    @property
    def bleu(self) -> float:
        """BLEU in per cent; the choice of a way to decode depends on it."""
        return self.scores["BLEU"]

    @property
    def how(self) -> str:
        """Description: engine, precision, beam and shortlist."""
        return f"{self.engine} {self.precision}, beam {self.beam_size}{', shortlist' * self.shortlist}"


class Certificate(NamedTuple):
    """Results of a distillation."""

    teachers: tuple[str, ...]
    n_lines: int  # of the validation text
    rows: tuple[Row, ...]  # the teacher's first; row 0 is the baseline
    chosen: int  # the row of ``--fast``
    comparisons: tuple[Comparison, ...]  # of the first row (A) and the chosen one (B)
    identical: tuple[int, int]  # number of lines translated alike with and without shortlist, and number of lines
    text: dict[str, int]  # counts of the text that the student was trained on
    hashes: dict[str, str]  # SHA-256 of the manifests

    def __str__(self) -> str:
        teacher, chosen = self.rows[0], self.rows[self.chosen]
        names = "".join(f"{name:>7}" for name in teacher.scores)
        head = f"{'':2}{'':8}{'':40}{names}{'sentences/s':>13}{'times':>7}{'MB':>8}"
        differences = ", ".join(f"{name} {chosen.scores[name] - score:+.2f}" for name, score in teacher.scores.items())
        base = next((row for row in self.rows if row.who == "teacher" and row.engine != OURS.engine), teacher)
        lines = [
            f"{'* ' if i == self.chosen else '  '}{row.who:8}{row.how:40}"
            + "".join(f"{value:7.2f}" for value in row.scores.values())
            + f"{row.sentences_per_s:13.1f}{row.sentences_per_s / base.sentences_per_s:7.1f}{row.megabytes:8.1f}"
            for i, row in enumerate(self.rows)
        ]
        verdicts = [comparison.verdict("the teacher", "the student") for comparison in self.comparisons]
        return "\n".join(
            [
                head, *lines, "",
                f"* is used by --fast: chosen on these {self.n_lines:,} lines of validation text; times: against "
                f"the teacher by {base.how}",
                f"the student, {chosen.how}, against the teacher, {teacher.how}: {differences}",
                *verdicts,
                *([
                    f"the shortlist leaves {self.identical[0]:,} of {self.n_lines:,} translations as they are"
                ] if any(row.shortlist for row in self.rows) else []),
            ]
        )  # fmt: skip

    def to_json(self) -> str:
        """Return the certificate as one JSON object."""
        comparisons = [{**test._asdict(), "verdict": test.verdict()} for test in self.comparisons]
        rows = [row._asdict() for row in self.rows]
        return json.dumps({**self._asdict(), "rows": rows, "comparisons": comparisons}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read the output of ``to_json``.

        Raises:
            ValueError, TypeError, KeyError: The text is no certificate.
        """
        data: dict[str, Any] = json.loads(text)
        comparisons = ({k: v for k, v in test.items() if k != "verdict"} for test in data["comparisons"])
        return cls(**{
            **data, "teachers": tuple(data["teachers"]), "rows": tuple(Row(**row) for row in data["rows"]),
            "comparisons": tuple(Comparison(**test) for test in comparisons), "identical": tuple(data["identical"]),
        })  # fmt: skip


class Measured(NamedTuple):
    """Measurements and the translations they are of."""

    row: Row
    texts: list[str]


class Measuring:
    """Translates the same text in different ways and measures each."""

    def __init__(self, sources: Sequence[str], references: Sequence[str], tgt_lang: str | None, ticker: Ticker) -> None:
        self.sources, self.references, self.tgt_lang, self.ticker = sources, references, tgt_lang, ticker

    def __call__(self, who: str, translator: Translator, **how: Any) -> Measured:
        """Translate the text with some ``TranslateOptions``, and score it."""
        plan = replace(translator.plan(TranslateOptions(guard=False, protect=False, **how)), confidence=None)
        decode, options = plan.search.decode, plan.options
        translator.translate_planned(self.sources[:WARM_UP], plan)
        events = Events(progress=self.ticker.named(f"sentences translated by the {who} ({plan.engine.name})"))
        begun = time.perf_counter()
        texts = [translation.text for translation in translator.translate_planned(self.sources, plan, events)]
        seconds = time.perf_counter() - begun
        metrics = scores(texts, self.references, self.tgt_lang, select_metrics(), interval=False)
        row = Row(
            who, plan.engine.name, options.precision, decode.beam_size, options.shortlist,
            {metric.name: round(metric.value, 3) for metric in metrics},
            round(len(texts) / seconds, 2), round(_megabytes(translator, plan.engine), 3),
        )  # fmt: skip
        return Measured(row, texts)


def certify(teacher: Translator, direction: Mapping[str, Any], student: Translator, measure: Measuring) -> Certificate:
    """Measure teacher and student, and choose how ``--fast`` decodes with the student; the caller adds names and text.

    Args:
        direction: Options ``to`` and ``from_lang`` of the teacher.
    """
    of_teacher = [measure("teacher", teacher, **direction), *_by_another_engine(teacher, direction, measure)]
    engine, precision = _fastest(student, {})
    usual = student.config.decode.beam_size
    beams = sorted({1, min(2, usual), usual})
    shortlists = (False,) if student.bundle.shortlist is None else (True, False)
    ways = [
        measure("student", student, engine=engine, precision=precision, patience=1.0, beam_size=beam, shortlist=on)
        for beam in beams
        for on in shortlists
    ]
    chosen = choose(ways)
    # the same way, but with or without the shortlist, if there is one: how many translations does it change?
    twin = next((
        way for way in ways
        if way.row.beam_size == chosen.row.beam_size and way.row.shortlist != chosen.row.shortlist
    ), chosen)  # fmt: skip
    by_torch = [] if engine == "torch" else [
        measure("student", student, beam_size=chosen.row.beam_size, shortlist=on) for on in shortlists
    ]  # fmt: skip
    with measure.ticker.task("resampling"):
        compared = compare(of_teacher[0].texts, chosen.texts, measure.references, measure.tgt_lang)
    rows = [measured.row for measured in (*of_teacher, *ways, *by_torch)]
    return Certificate(
        teachers=(), n_lines=len(measure.sources), rows=tuple(rows), chosen=rows.index(chosen.row),
        comparisons=tuple(compared),
        identical=(sum(a == b for a, b in zip(chosen.texts, twin.texts, strict=True)), len(chosen.texts)), text={},
        hashes={"teacher": str(teacher.bundle.facts.sha256), "student": str(student.bundle.facts.sha256)},
    )  # fmt: skip


def choose(ways: Sequence[Measured]) -> Measured:
    """Return the fastest way whose BLEU is at most ``TOLERANCE`` below the best."""
    best = max(way.row.bleu for way in ways)
    return max((way for way in ways if way.row.bleu >= best - TOLERANCE), key=lambda way: way.row.sentences_per_s)


def _by_another_engine(teacher: Translator, direction: Mapping[str, Any], measure: Measuring) -> Iterator[Measured]:
    """Yield the teacher's measurements by another toolkit's engine, with its beam and greedy, if it is fastest."""
    engine, precision = _fastest(teacher, direction)
    how = {"engine": engine, "precision": precision}
    if engine != OURS.engine:
        for beam_size in dict.fromkeys((teacher.config.decode.beam_size, 1)):
            yield measure("teacher", teacher, **how, **direction, beam_size=beam_size)


def _fastest(translator: Translator, direction: Mapping[str, Any]) -> tuple[str, str]:
    """Return the engine and precision of ``--fast``."""
    options = translator.plan(TranslateOptions(fast=True, **direction)).options
    return options.chosen_engine, options.precision


def _megabytes(translator: Translator, engine: Searcher) -> float:
    """Return the size of the weights, or of the export that another toolkit's engine has loaded."""
    export: KeptExport | None = getattr(engine, "export", None)
    if export is None:
        return sum(bundle.n_bytes for bundle in translator.bundles) / 1e6
    return max(path.stat().st_size for path in export.folder.iterdir()) / 1e6  # the weights are the largest file
