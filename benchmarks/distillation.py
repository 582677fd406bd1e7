"""Students beside their teacher on a test set that nothing was chosen on: BLEU, speed in turns, and a Pareto plot.

The teacher is decoded by CTranslate2 in int8 with its own beam, and greedy. Each student is decoded by CTranslate2 in
int8, greedy, with a beam of 2 and with the teacher's, and greedy by our own search in float32, each with its shortlist
and without.
``*`` marks what `dragoman distill` chose for ``--fast`` on validation text. The size of batches is the best of a few
for each system, also found on validation text. Guard, confidence and what must arrive unchanged are left out
everywhere. Systems take turns in one process, and a ratio is the median of the ratios of the same round.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness.rounds import say
from benchmarks.record import RESULTS, save, spread
from dragoman.data.corpus import read_lines
from dragoman.evaluation.metrics import bleu, chrf, old_style_bleu
from dragoman.evaluation.significance import compare
from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.figures import save as save_figure
from dragoman.explanation.style import QUIET
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

FIGURES = Path(__file__).parent.parent / "docs/images"
BATCH_TOKENS = (512, 1024, 2048, 4096)


@dataclass(frozen=True)
class System:
    """One way to translate, ready."""

    name: str
    translator: Translator
    plan: Plan
    of_teacher: bool

    def seconds(self, texts: Sequence[str]) -> tuple[float, list[str]]:
        begun = time.perf_counter()
        found = self.translator.translate_planned(texts, self.plan)
        return time.perf_counter() - begun, [one.text for one in found]


def system(name: str, translator: Translator, tune: Sequence[str], of_teacher: bool, **options: Any) -> System:
    """A way with the best of ``BATCH_TOKENS`` for it."""
    tried = []
    for batch_tokens in BATCH_TOKENS:
        plan = translator.plan(guard=False, protect=False, batch_tokens=batch_tokens, **options)
        one = System(name, translator, replace(plan, confidence=None), of_teacher)
        one.seconds(tune[:64])
        tried.append((one.seconds(tune)[0], one))
    best = min(tried, key=lambda each: each[0])[1]
    say(f"{name}: batches of {best.plan.options.batch_tokens} tokens")
    return best


def systems(teacher: Path, students: Sequence[Path], tune: Sequence[str]) -> list[System]:
    """All ways, the teacher's first; the first of all is the base of ratios."""
    loaded = Translator.load(teacher, "cpu")
    beam = loaded.config.decode.beam_size
    int8: dict[str, Any] = {"engine": "ctranslate2", "precision": "int8", "patience": 1.0}
    ours: dict[str, Any] = {**int8, "engine": "torch", "precision": "fp32"}
    found = [
        system(f"teacher, CTranslate2 int8, beam {beam}", loaded, tune, True, beam_size=beam, **int8),
        system("teacher, CTranslate2 int8, beam 1", loaded, tune, True, beam_size=1, **int8),
        system(f"teacher, dragoman fp32, beam {beam}", loaded, tune, True, beam_size=beam, **ours),
    ]
    for path in students:
        student = Translator.load(path, "cpu")
        fast = student.manifest.get("fast", {})
        for engine, how in (("CTranslate2 int8", int8), ("dragoman fp32", ours)):
            for size in (1, 2, beam) if engine.startswith("C") else (1,):
                for on in (True, False) if student.bundles[0].shortlist is not None else (False,):
                    chosen = how is int8 and fast == {"beam_size": size, "shortlist": on}
                    name = f"{path.name}, {engine}, beam {size}{', shortlist' * on}{' *' * chosen}"
                    found.append(system(name, student, tune, False, beam_size=size, shortlist=on, **how))
    return found


def measured(
    all_of: Sequence[System], texts: Sequence[str], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[str]]]:
    """Seconds of each in each round, the order turned by one from round to round; and the translations."""
    seconds: dict[str, list[float]] = {one.name: [] for one in all_of}
    found: dict[str, list[str]] = {}
    for one in all_of:
        one.seconds(texts[:64])
    for number in range(rounds):
        start = number % len(all_of)
        for one in [*all_of[start:], *all_of[:start]]:
            took, found[one.name] = one.seconds(texts)
            seconds[one.name].append(took)
        say(f"round {number + 1} of {rounds}")
    return seconds, found


def figures(
    all_of: Sequence[System], seconds: Mapping[str, Sequence[float]], found: Mapping[str, list[str]],
    refs: Sequence[str], rounds: int,
) -> dict[str, Any]:  # fmt: skip
    """BLEU, speed, ratio to the first, and what is to be thought of the difference in BLEU."""
    base, lang = all_of[0], all_of[0].translator.config.data.tgt_lang
    rows = {}
    for one in all_of:
        texts = found[one.name]
        difference = compare(found[base.name], texts, refs, lang, n_samples=2000)[0]
        twin = one.name.replace(" *", "").replace(", shortlist", "")
        plain = next((name for name in found if name.replace(" *", "") == twin), None)
        ratios = [a / b for a, b in zip(seconds[base.name], seconds[one.name], strict=True)]
        rows[one.name] = {
            "bleu": round(bleu(texts, refs, lang).value, 2),
            "bleu_lowercased_tokenised": _old_style(texts, refs, lang or "en"),
            "chrf": round(chrf(texts, refs).value, 2),
            "minus_teacher": round(difference.difference, 2),
            "minus_teacher_95": [round(difference.low, 2), round(difference.high, 2)],
            "p": round(difference.p_randomisation, 4),
            "sentences_per_s": spread([len(refs) / took for took in seconds[one.name]]),
            "times_teacher": spread(ratios),
            "batch_tokens": one.plan.options.batch_tokens,
            "as_without_shortlist": None if plain in (None, one.name) else sum(
                a == b for a, b in zip(texts, found[str(plain)], strict=True)
            ),
        }  # fmt: skip
    return {"sentences": len(refs), "threads": torch.get_num_threads(), "rounds": rounds, "systems": rows}


def _old_style(texts: list[str], refs: Sequence[str], lang: str) -> float:
    return round(old_style_bleu(texts, refs, lang).value, 2)


GOAL = 6.0, 0.3
"""How many times the teacher's speed is aimed at, and how far below it at most."""


def draw(found: Mapping[str, Any], path: Path) -> None:
    """BLEU against sentences a second: a line for each model in int8, students with their shortlist; and the goal."""
    lines = _lines(found)
    series = [
        Curve(
            model,
            [x for x, _ in points],
            [y for _, y in points],
            colour=QUIET if model == TEACHER else None,
            points=True,
        )
        for model, points in lines.items()
    ]
    base = next(iter(found["systems"].values()))
    fast, good = GOAL[0] * base["sentences_per_s"]["median"], base["bleu"] - GOAL[1]
    fastest, best = (max(point[i] for points in lines.values() for point in points) for i in (0, 1))
    lowest = min(score for points in lines.values() for _, score in points)
    right, bottom, top = 1.1 * max(fast, fastest), math.floor(2 * lowest - 0.2) / 2, math.ceil(2 * best + 0.2) / 2
    series.append(Curve("the goal", [fast, fast, right], [top, good, good], colour=QUIET, dashed=True))
    chart = Chart(series, "sentences a second", "BLEU", x_log=10, y_range=(bottom, top))
    save_figure(curves([chart], width=5.2, height=3.6), path, title="Students beside their teacher", description=SEEN)


TEACHER = "teacher"
SEEN = (
    "BLEU against sentences a second. On the line of each model the fastest point is greedy search, the slowest the "
    "teacher's beam; a dashed corner is the goal."
)


def _lines(found: Mapping[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Of each model the speed and BLEU of its searches, the slowest first."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, row in found["systems"].items():
        model, engine, _, *rest = name.removesuffix(" *").split(", ")
        if engine == "CTranslate2 int8" and (rest == ["shortlist"] or model == TEACHER):
            lines.setdefault(model, []).append((row["sentences_per_s"]["median"], row["bleu"]))
    return {model: sorted(points) for model, points in lines.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--student", type=Path, action="append", help="may be repeated")
    parser.add_argument("--redraw", action="store_true", help="draw the figure from the record, without a run")
    for name, what in (
        ("src", "test sources"),
        ("ref", "their references"),
        ("valid-src", "text to choose batches on"),
    ):
        parser.add_argument(f"--{name}", type=Path, help=what)
    parser.add_argument("--lines", type=int, default=None, help="take so many of the test set (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--name", default="distillation", help="of the result and its plot")
    args = parser.parse_args()
    if args.redraw:
        draw(
            json.loads((RESULTS / f"{args.name}.json").read_text(encoding="utf-8"))["figures"],
            FIGURES / f"{args.name}.svg",
        )
        return
    if None in (args.teacher, args.student, args.src, args.ref, args.valid_src):
        parser.error("give --teacher, --student, --src, --ref and --valid-src, or --redraw")
    texts, refs = ([*read_lines(path)][: args.lines] for path in (args.src, args.ref))
    all_of = systems(args.teacher, args.student, [*read_lines(args.valid_src)][:400])
    seconds, found = measured(all_of, texts, args.rounds)
    result = figures(all_of, seconds, found, refs, args.rounds)
    command = "python -m benchmarks.distillation --teacher RUN --student RUN ... --src SRC --ref REF --valid-src SRC"
    save(args.name, result, command, ("torch", "numpy", "ctranslate2", "sacrebleu"))
    draw(result, FIGURES / f"{args.name}.svg")


if __name__ == "__main__":
    main()
