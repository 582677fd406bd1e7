"""What a confidence is worth for a sentence alone, and for two and four on a line, cut into sentences or left whole.

It is learned anew from the run's validation set, and set beside the same without what joined lines taught it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.reliability import calibration_error, reliability
from benchmarks.questions.joined_lines import ENDS, joined, parser_of_tests
from benchmarks.record import save
from dragoman.data.corpus import read_pairs
from dragoman.data.store import Store
from dragoman.evaluation.calibration import learn_confidence
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.translation.confidence import spearman
from dragoman.translation.translator import Translator


def worth(translator: Translator, pairs: Sequence[tuple[str, str]], **options: Any) -> dict[str, Any]:
    """What the confidence says of some lines, and what was found."""
    found = translator.translate([src for src, _ in pairs], guard=False, **options)
    chrf = sentence_chrf([one.text for one in found], [ref for _, ref in pairs])
    said = [one.confidence or 0.0 for one in found]
    return {
        "lines": len(found),
        "calibration_error_chrf": round(100 * calibration_error(reliability(said, chrf)), 2),
        "spearman": round(spearman(said, chrf), 3),
        "mean_confidence": round(100 * sum(said) / len(said), 1),
        "mean_chrf": round(sum(chrf) / len(chrf), 1),
    }


def figures_of(run: Path, src: Path, ref: Path, lines: int) -> dict[str, Any]:
    """All of one run and one test set of one sentence a line."""
    translator = Translator.load(run, "cpu")
    store = Store.open(run / "store/valid")
    learned = learn_confidence(translator, *store.texts(range(len(store))))
    pairs = [pair for pair in read_pairs(src, ref) if pair[0].rstrip()[-1:] in ENDS][:lines]
    figures: dict[str, Any] = {"run": run.name, "shortfall": round(learned.shortfall, 3)}
    for name, confidence in (
        ("single sentences alone", learned.model_copy(update={"shortfall": 0.0})),
        ("joined lines too", learned),
    ):
        translator.confidence = confidence
        figures[f"learned from {name}"] = {
            "one": worth(translator, pairs),
            "two, cut": worth(translator, joined(pairs, 2)),
            "two, left whole": worth(translator, joined(pairs, 2), sentence_split=False),
            "four, cut": worth(translator, joined(pairs, 4)),
            "four, left whole": worth(translator, joined(pairs, 4), sentence_split=False),
        }
    return figures


def main() -> None:
    """Learn, translate, compare."""
    parser = parser_of_tests(__doc__)
    parser.add_argument("--lines", type=int, default=1000, help="of each test set at most")
    args = parser.parse_args()
    figures = {src.name: figures_of(run, src, ref, args.lines) for run, src, ref in args.test}
    command = "python -m benchmarks.questions.confidence_lines --test RUN SRC REF [--test ...] [--lines N]"
    save("confidence-lines", figures, command, ("torch", "sentencepiece", "sacrebleu", "sentencex"))


if __name__ == "__main__":
    main()
