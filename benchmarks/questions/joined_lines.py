"""Several sentences on a line: is each of them translated, what does the guard say, and does the confidence know?"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.reliability import calibration_error, reliability
from benchmarks.record import save
from dragoman.bundle import facts_of_text
from dragoman.data.corpus import read_pairs
from dragoman.data.store import Store
from dragoman.evaluation.metrics import bleu, sentence_chrf
from dragoman.translation.translator import Translation, Translator

LINES = 2000
ENDS = ".!?\"'"
LOST = 0.7
"""A line has lost something where its translation has less than this of its reference's subwords."""


def joined(pairs: Sequence[tuple[str, str]], k: int) -> list[tuple[str, str]]:
    """Pairs of ``k`` sentences on a line, of all of them."""
    groups = [pairs[i : i + k] for i in range(0, len(pairs) - k + 1, k)]
    return [(" ".join(src for src, _ in group), " ".join(ref for _, ref in group)) for group in groups]


def measured(translator: Translator, pairs: Sequence[tuple[str, str]], found: Sequence[Translation]) -> dict[str, Any]:
    """BLEU, notes, what is shorter than it should be, and what the confidence is worth."""
    refs = [ref for _, ref in pairs]
    lengths = [len(ids) + 1 for ids in translator.tgt_tokenizer.encode(refs)]
    cut = [one.n_tokens < LOST * n for one, n in zip(found, lengths, strict=True)]
    noted = [any(note.kind == "short" for note in one.notes) for one in found]
    figures = {
        "lines": len(found),
        "bleu": round(bleu([one.text for one in found], refs, translator.config.data.tgt_lang).value, 2),
        "notes": dict(Counter(note.kind for one in found for note in one.notes)),
        "lines_with_a_note": sum(bool(one.notes) for one in found),
        "shorter_than_70_percent_of_the_reference": sum(cut),
        "of_these_noted_as_short": sum(a and b for a, b in zip(cut, noted, strict=True)),
    }
    said = [one.confidence for one in found if one.confidence is not None]
    if len(said) == len(found):
        chrf = sentence_chrf([one.text for one in found], refs)
        figures["calibration_error_chrf"] = round(100 * calibration_error(reliability(said, chrf)), 2)
        figures["mean_confidence"] = round(100 * sum(said) / len(said), 2)
        figures["mean_chrf"] = round(sum(chrf) / len(chrf), 2)
    return figures


def lost_sentences(
    translator: Translator, pairs: Sequence[tuple[str, str]], alone: Sequence[Translation], **options: Any
) -> dict[str, int]:
    """Lines of two to four sentences, drawn by chance: is each there as it is alone?"""
    chance = random.Random(0)
    drawn = [chance.choices(range(len(pairs)), k=chance.randint(2, 4)) for _ in range(LINES)]
    found = translator.translate([" ".join(pairs[i][0] for i in line) for line in drawn], **options)
    same = [one.text == " ".join(alone[i].text for i in line) for one, line in zip(found, drawn, strict=True)]
    return {
        "lines": LINES,
        "sentences": sum(map(len, drawn)),
        "lines_whose_sentences_are_all_there": sum(same),
        "lost_without_a_note": sum(not (whole or one.notes) for whole, one in zip(same, found, strict=True)),
    }


def figures_of(run: Path, src: Path, ref: Path, beam_size: int) -> dict[str, Any]:
    """All of one run and one test set of one sentence a line."""
    translator = Translator.load(run, "cpu")
    facts = facts_of_text(Store.open(run / "store/train")).as_manifest()  # an older bundle does not have all of them
    translator.manifest.update({name: fact for name, fact in facts.items() if name not in translator.manifest})
    every = list(read_pairs(src, ref))
    pairs = [pair for pair in every if pair[0].rstrip()[-1:] in ENDS]  # without a mark nobody sees where it ends
    sources = [src for src, _ in pairs]
    started = time.perf_counter()
    alone = translator.translate(sources, beam_size=beam_size)
    figures: dict[str, Any] = {
        "text": src.name,
        "beam_size": beam_size,
        **facts,
        "one": measured(translator, pairs, alone),
    }
    for name, options in (("one, left whole", {"sentence_split": False}), ("one, without the guard", {"guard": False})):
        found = translator.translate(sources, beam_size=beam_size, **options)
        figures[name] = measured(translator, pairs, found)
    for k, name in ((2, "two"), (4, "four")):
        lines = joined(pairs, k)
        found = translator.translate([src for src, _ in lines], beam_size=beam_size)
        by_hand = [" ".join(one.text for one in alone[i : i + k]) for i in range(0, len(pairs) - k + 1, k)]
        score = bleu(by_hand, [ref for _, ref in lines], translator.config.data.tgt_lang).value
        figures[name] = measured(translator, lines, found) | {"bleu_cut_by_hand": round(score, 2)}
        whole = translator.translate([src for src, _ in lines], beam_size=beam_size, sentence_split=False)
        figures[f"{name}, left whole"] = measured(translator, lines, whole)
    figures["lost"] = lost_sentences(translator, pairs, alone, beam_size=beam_size)
    return figures | {"seconds": round(time.perf_counter() - started, 1)}


def parser_of_tests(description: str | None) -> argparse.ArgumentParser:
    """With the option that names trained runs and their test sets."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--test", type=Path, nargs=3, action="append", required=True, metavar=("RUN", "SRC", "REF"),
        help="a trained run folder, and a test set of one sentence a line; may be repeated",
    )  # fmt: skip
    return parser


def main() -> None:
    """Translate test sets line by line, and two and four of their lines on one."""
    parser = parser_of_tests(__doc__)
    parser.add_argument("--beam-size", type=int, default=1)
    args = parser.parse_args()
    figures = {src.name: figures_of(run, src, ref, args.beam_size) for run, src, ref in args.test}
    command = "python -m benchmarks.questions.joined_lines --test RUN SRC REF [--test ...] [--beam-size K]"
    save("joined-lines", figures, command, ("torch", "sentencepiece", "sentencex"))


if __name__ == "__main__":
    main()
