"""Which lines are translated for an augmentation and which translations are kept; what is left out is counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.data.corpus import Cleaner, Digests, count_lines, lines_of
from dragoman.distillation.direction import Direction
from dragoman.distillation.options import AugmentOptions
from dragoman.distillation.text import chunks, first_translations, sample_of
from dragoman.errors import DataError
from dragoman.files import whole_file, write_text
from dragoman.progress import Ticker
from dragoman.translation.filters import (
    BLANK,
    DAMAGED,
    OTHER_LANGUAGE,
    UNKNOWN,
    Language,
    Made,
    least_score,
    read_rendered,
    unfit,
    unreadable,
)
from dragoman.translation.plan import Plan

HELD_OUT, REPEATED, TOO_LONG, RATIO = "held out", "repeated", "too long", "of unlike lengths"


class Counts(NamedTuple):
    """What became of the text of one direction: each line, and each translation, is counted once."""

    lines: dict[str, int]  # read, translated, and those that were left out, by reason
    translations: dict[str, int]  # made, kept, and those that were left out, by reason

    def __str__(self) -> str:
        return (
            f"{_told(self.lines, 'read', 'translated', 'lines')}\n"
            f"{_told(self.translations, 'made', 'kept', 'translations')}"
        )


def _told(counts: dict[str, int], of: str, kept: str, what: str) -> str:
    rest = ", ".join(f"{n:,} {why}" for why, n in counts.items() if why not in (of, kept) and n)
    return f"{counts[of]:,} {what}, {counts[kept]:,} {kept}" + (f"; left out: {rest}" if rest else "")


def take_lines(direction: Direction, held_out: Sequence[Path], any_language: bool, ticker: Ticker) -> None:
    """Write the lines that are worth translating: each once, in its language, none that is held out; count the others.

    Raises:
        DataError: There are none.
    """
    counts: Counter[str] = Counter()
    seen, unwanted = Digests(), Digests()
    for path in held_out:
        for chunk in chunks(lines_of(path)):
            unwanted.add(chunk)
    sample = [line for path in direction.texts for line in sample_of(path)]
    language = Language(direction.plan.src_lang, [] if any_language else sample)
    total = count_lines(*direction.texts)
    with whole_file(direction.work(".lines")) as file:
        for chunk in chunks(chain.from_iterable(map(lines_of, direction.texts))):
            for line, why in zip(chunk, _left_out(chunk, direction.plan, language, seen, unwanted), strict=True):
                counts[why or "translated"] += 1
                if not why:
                    file.write(f"{line}\n".encode())
            counts["read"] += len(chunk)
            ticker(counts["read"], total, f"lines read to translate {direction.name}")
        if not counts["translated"]:
            left = ", ".join(f"{n:,} {why}" for why, n in counts.items() if n and why != "read")
            raise DataError(f"{direction.texts[0]}: no line is left to translate ({left}); is it the right text?")
    found = {"read": counts.pop("read"), "translated": counts.pop("translated"), **counts}
    write_text(direction.work(".json"), json.dumps(found) + "\n")


def _left_out(chunk: Sequence[str], plan: Plan, language: Language, seen: Digests, unwanted: Digests) -> list[str]:
    """Why each line is not translated; nothing where it is."""
    ids = plan.src_tokenizer.encode(chunk)
    reasons = {
        BLANK: [not line.strip() for line in chunk],
        DAMAGED: ["\ufffd" in line for line in chunk],  # bytes that were no text
        HELD_OUT: unwanted.known(chunk).tolist(),
        REPEATED: seen.add(chunk).tolist(),
        TOO_LONG: [len(one) > plan.facts.max_tokens for one in ids],
        UNKNOWN: unreadable(ids, plan.src_tokenizer),
        OTHER_LANGUAGE: language.others(chunk),
    }
    return [next((why for why, found in reasons.items() if found[i]), "") for i in range(len(chunk))]


def choose_pairs(
    direction: Direction, lines: Path, n_lines: int, translations: Path, options: AugmentOptions, ticker: Ticker
) -> dict[str, int]:
    """Write the pairs that are fit to learn from, a file for each side; ``n_lines`` have been translated.

    Raises:
        DataError: None is.
    """
    least = least_score((one for found in _found(lines, translations) for one in found), options.drop_worst)
    sample = [] if options.any_language else first_translations([translations])
    language = Language(direction.plan.tgt_lang, sample)
    data = direction.translator.config.data
    cleaner = Cleaner(data.model_copy(update={"max_ratio": options.max_ratio, "drop_duplicates": True}))
    counts: Counter[str] = Counter()
    with ExitStack() as open_files:
        outs = [open_files.enter_context(whole_file(side)) for side in direction.sides]
        done = 0
        for chunk in chunks(_found(lines, translations)):
            made = [one for found in chunk for one in found]
            counts["made"] += len(made)
            reasons = unfit(made, direction.plan, language, least)
            counts.update(why for why in reasons if why)
            for pair in _cleaned([one for one, why in zip(made, reasons, strict=True) if not why], direction, cleaner):
                for file, side in zip(outs, pair if direction.name == "forward" else pair[::-1], strict=True):
                    file.write(f"{side}\n".encode())
            done += len(chunk)
            ticker(done, n_lines, f"translations {direction.name} looked at")
        report = cleaner.report
        counts.update(
            {
                "kept": report.kept,
                TOO_LONG: report.too_long,
                RATIO: report.ratio,
                REPEATED: report.duplicates,
                "empty": report.empty,
                "with a line break": report.line_break,
            }
        )
        if not report.kept:
            told = _told(counts, "made", "kept", "translations")
            raise DataError(f"{direction.runs[0]}: no translation is fit to learn from: {told}; is it the right model?")
    return {"made": counts.pop("made"), "kept": counts.pop("kept"), **{why: n for why, n in counts.items() if n}}


def _found(lines: Path, translations: Path) -> Iterator[list[Made]]:
    """The translations of each line."""
    for src, found in zip(lines_of(lines), lines_of(translations), strict=True):
        yield read_rendered(src, found)


def _cleaned(made: Sequence[Made], direction: Direction, cleaner: Cleaner) -> Iterator[tuple[str, str]]:
    """The pairs, in the direction of the model, that training would keep too, and each once."""
    pairs = [(one.src, one.text) for one in made]
    lengths = [
        np.array([len(ids) for ids in tokenizer.encode([pair[side] for pair in pairs])], np.int64)
        for side, tokenizer in enumerate((direction.plan.src_tokenizer, direction.plan.tgt_tokenizer))
    ]
    for pair, keep in zip(pairs, cleaner.keep(pairs, *lengths), strict=True):
        if keep:
            yield pair
