"""A student beside its teacher on validation text: quality, speed and size, by our engine and by others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dragoman.evaluation.metrics import scores, select_metrics
from dragoman.evaluation.significance import Comparison, compare
from dragoman.model.weights import n_bytes, untied
from dragoman.progress import Ticker
from dragoman.toolkits import OURS, engine_toolkits
from dragoman.toolkits.export import export_folder
from dragoman.translation.notes import Events
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator

TOLERANCE = 0.3
"""How much BLEU on the validation text the fastest way to decode may cost against the best one."""

WARM_UP = 32
"""Lines that are translated before the clock begins."""


class Row(NamedTuple):
    """One way to translate the validation text. No row has the guard, confidence, or what must arrive unchanged."""

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
        """BLEU, by which the way to decode is chosen."""
        return self.scores["BLEU"]

    @property
    def how(self) -> str:
        """Engine, precision, beam and shortlist in words."""
        return f"{self.engine} {self.precision}, beam {self.beam_size}{', shortlist' * self.shortlist}"


class Certificate(NamedTuple):
    """What a distillation has come to."""

    teachers: tuple[str, ...]
    n_lines: int  # of the validation text
    rows: tuple[Row, ...]  # the teacher's first; the first of them is what the student is compared with
    chosen: int  # the row of ``--fast``
    comparisons: tuple[Comparison, ...]  # of the first row (A) and the chosen one (B)
    identical: tuple[int, int]  # lines that the chosen engine and beam translate alike with and without shortlist; of
    text: dict[str, int]  # what the student has learned from
    hashes: dict[str, str]  # SHA-256 of the manifests

    def __str__(self) -> str:
        teacher, chosen = self.rows[0], self.rows[self.chosen]
        names = "".join(f"{name:>7}" for name in teacher.scores)
        head = f"{'':2}{'':8}{'':40}{names}{'sentences/s':>13}{'times':>7}{'MB':>8}"
        differences = ", ".join(f"{name} {chosen.scores[name] - one:+.2f}" for name, one in teacher.scores.items())
        base = next((row for row in self.rows if row.who == "teacher" and row.engine != OURS.engine), teacher)
        lines = [
            f"{'* ' if i == self.chosen else '  '}{row.who:8}{row.how:40}"
            + "".join(f"{value:7.2f}" for value in row.scores.values())
            + f"{row.sentences_per_s:13.1f}{row.sentences_per_s / base.sentences_per_s:7.1f}{row.megabytes:8.1f}"
            for i, row in enumerate(self.rows)
        ]
        verdicts = [one.verdict("the teacher", "the student") for one in self.comparisons]
        return "\n".join(
            [
                head, *lines, "",
                f"* is what --fast takes: chosen on these {self.n_lines:,} lines of validation text; times: against "
                f"the teacher by {base.how}",
                f"the student, {chosen.how}, against the teacher, {teacher.how}: {differences}",
                *verdicts,
                f"the shortlist leaves {self.identical[0]:,} of {self.n_lines:,} translations as they are",
            ]
        )  # fmt: skip

    def to_json(self) -> str:
        """All of it as one JSON object."""
        comparisons = [{**one._asdict(), "verdict": one.verdict()} for one in self.comparisons]
        rows = [row._asdict() for row in self.rows]
        return json.dumps({**self._asdict(), "rows": rows, "comparisons": comparisons}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what ``to_json`` wrote.

        Raises:
            ValueError, TypeError, KeyError: It is something else.
        """
        said: dict[str, Any] = json.loads(text)
        comparisons = ({k: v for k, v in one.items() if k != "verdict"} for one in said["comparisons"])
        return cls(**{
            **said, "teachers": tuple(said["teachers"]), "rows": tuple(Row(**_as_now(row)) for row in said["rows"]),
            "comparisons": tuple(Comparison(**one) for one in comparisons), "identical": tuple(said["identical"]),
        })  # fmt: skip


def _as_now(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its scores in one place; earlier ones had a field for each of two."""
    names = {"bleu": "BLEU", "chrf": "chrF2"}
    scores = {name: row[key] for key, name in names.items() if key in row}
    return {**{key: value for key, value in row.items() if key not in names}, "scores": row.get("scores", scores)}


class Measured(NamedTuple):
    """A row and its translations."""

    row: Row
    texts: list[str]


class Measuring:
    """Translates one text in many ways."""

    def __init__(self, sources: Sequence[str], references: Sequence[str], tgt_lang: str | None, ticker: Ticker) -> None:
        self.sources, self.references, self.tgt_lang, self._ticker = sources, references, tgt_lang, ticker

    def __call__(self, who: str, translator: Translator, **how: Any) -> Measured:
        """Translate the text with options of ``TranslateOptions``, and score it."""
        plan = replace(translator.plan(TranslateOptions(guard=False, protect=False, **how)), confidence=None)
        decode, options = plan.search.decode, plan.options
        translator.translate_planned(self.sources[:WARM_UP], plan)
        events = Events(progress=self._ticker.named(f"sentences translated by the {who} ({plan.engine.name})"))
        begun = time.perf_counter()
        texts = [one.text for one in translator.translate_planned(self.sources, plan, events)]
        seconds = time.perf_counter() - begun
        found = scores(texts, self.references, self.tgt_lang, select_metrics(), interval=False)
        row = Row(
            who, plan.engine.name, options.precision, decode.beam_size, options.shortlist,
            {one.name: round(one.value, 3) for one in found},
            round(len(texts) / seconds, 2), round(_megabytes(translator, plan.engine.name, options.precision), 3),
        )  # fmt: skip
        return Measured(row, texts)


QUANTIZATIONS = {"fp32": "float32", "bf16": "bfloat16"}
"""Quantization of an export that computes in a precision, where it has another name."""


def certify(
    teacher: Translator, direction: Mapping[str, Any], teachers: Sequence[str], student: Translator,
    measure: Measuring, text: dict[str, int], ticker: Ticker,
) -> Certificate:  # fmt: skip
    """Measure teacher and student, and choose how ``--fast`` decodes with the student.

    Args:
        direction: The options by which a teacher of several languages is told which ones.
    """
    of_teacher = [measure("teacher", teacher, **direction), *_by_another_engine(teacher, direction, measure)]
    engine, precision = _fastest(student, {})
    most = student.config.decode.beam_size
    beams = sorted({1, min(2, most), most})
    ways = [
        measure("student", student, engine=engine, precision=precision, patience=1.0, beam_size=beam, shortlist=on)
        for beam in beams
        for on in (True, False)
    ]
    chosen = choose(ways)
    twin = next(
        one for one in ways
        if one.row.beam_size == chosen.row.beam_size and one.row.shortlist != chosen.row.shortlist
    )  # fmt: skip
    ours = [] if engine == "torch" else [
        measure("student", student, beam_size=chosen.row.beam_size, shortlist=on) for on in (True, False)
    ]  # fmt: skip
    with ticker.task("resampling"):
        compared = compare(of_teacher[0].texts, chosen.texts, measure.references, measure.tgt_lang)
    rows = [one.row for one in (*of_teacher, *ways, *ours)]
    return Certificate(
        tuple(teachers), len(measure.sources), tuple(rows), rows.index(chosen.row),
        tuple(compared),
        (sum(a == b for a, b in zip(chosen.texts, twin.texts, strict=True)), len(chosen.texts)), text,
        {"teacher": str(teacher.bundle.facts.sha256), "student": str(student.bundle.facts.sha256)},
    )  # fmt: skip


def choose(ways: Sequence[Measured]) -> Measured:
    """The fastest way whose BLEU is at most ``TOLERANCE`` below the best one's."""
    best = max(one.row.bleu for one in ways)
    return max((one for one in ways if one.row.bleu >= best - TOLERANCE), key=lambda one: one.row.sentences_per_s)


def _by_another_engine(teacher: Translator, direction: Mapping[str, Any], measure: Measuring) -> Iterator[Measured]:
    """Yield the teacher's rows with the engine of another toolkit, with its beam and greedy, where that is fastest."""
    engine, precision = _fastest(teacher, direction)
    how = {"engine": engine, "precision": precision}
    if engine != OURS.engine:
        for beam_size in dict.fromkeys((teacher.config.decode.beam_size, 1)):
            yield measure("teacher", teacher, **how, **direction, beam_size=beam_size)


def _fastest(translator: Translator, direction: Mapping[str, Any]) -> tuple[str, str]:
    """Engine and precision of ``--fast``."""
    options = translator.plan(TranslateOptions(fast=True, **direction)).options
    return options.engine, options.precision


def _megabytes(translator: Translator, engine: str, precision: str) -> float:
    """Return the size of the weights, or of the export that another toolkit's engine loads."""
    if engine == OURS.engine or translator.run is None:
        return sum(n_bytes(untied(bundle.model)) for bundle in translator.bundles) / 1e6
    toolkit = next(toolkit for toolkit in engine_toolkits() if toolkit.engine == engine)
    folder = export_folder(translator.run, toolkit.name, QUANTIZATIONS.get(precision, precision))
    return max(path.stat().st_size for path in folder.iterdir()) / 1e6  # the weights are the largest file
