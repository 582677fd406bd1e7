"""Filters of an augmentation: the lines to translate and the translations to keep; all others are counted by reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.data.corpus import Cleaner, Digests, count_lines, lines_of
from dragoman.distillation.direction import REPORT, Direction
from dragoman.distillation.options import AugmentOptions
from dragoman.distillation.text import MEMORY, chunks, first_translations, is_damaged, sample_of
from dragoman.errors import DataError
from dragoman.files import explained, whole_file, whole_files, write_text
from dragoman.languages.scripts import is_blank
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
    """Counts of one direction: each line and each translation is counted once."""

    lines: dict[str, int]  # read, translated, and left out by reason
    translations: dict[str, int]  # made, kept, and left out by reason

    def __str__(self) -> str:
        return (
            f"{_summary(self.lines, 'read', 'translated', 'lines')}\n"
            f"{_summary(self.translations, 'made', 'kept', 'translations')}"
        )


def _summary(counts: dict[str, int], all_: str, used: str, what: str) -> str:
    """Return counts as text, such as "9 lines, 7 translated; left out: 2 blank"."""
    left_out = ", ".join(f"{n:,} {why}" for why, n in counts.items() if why not in (all_, used) and n)
    return f"{counts[all_]:,} {what}, {counts[used]:,} {used}" + (f"; left out: {left_out}" if left_out else "")


def take_lines(direction: Direction, held_out: Sequence[Path], any_language: bool, ticker: Ticker) -> None:
    """Write the lines to translate: each once, in the source language, none that is held out; count the others.

    Raises:
        DataError: No line is left.
    """
    counts: Counter[str] = Counter()
    seen, unwanted = Digests(), Digests()
    for path in held_out:
        for chunk in chunks(lines_of(path)):
            unwanted.add(chunk)
    sample = [line for path in direction.texts for line in sample_of(path)]
    language = Language(direction.plan.src_lang, [] if any_language else sample)
    total = count_lines(*direction.texts)
    path = direction.work(".lines")
    with explained(path), whole_file(path) as file:
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
    ordered = {"read": counts.pop("read"), "translated": counts.pop("translated"), **counts}
    write_text(direction.work(".json"), json.dumps(ordered) + "\n")


def _left_out(chunk: Sequence[str], plan: Plan, language: Language, seen: Digests, unwanted: Digests) -> list[str]:
    """Return the reason why each line is not translated; "" if it is."""
    ids = plan.src_tokenizer.encode(chunk)
    reasons = {
        BLANK: [is_blank(line) or not tokens for line, tokens in zip(chunk, ids, strict=True)],
        DAMAGED: [is_damaged(line) for line in chunk],
        HELD_OUT: unwanted.known(chunk).tolist(),
        REPEATED: seen.add(chunk).tolist(),
        TOO_LONG: [len(tokens) > plan.facts.max_tokens for tokens in ids],
        UNKNOWN: unreadable(ids, plan.src_tokenizer),
        OTHER_LANGUAGE: language.others(chunk),
    }
    return [next((why for why, applies in reasons.items() if applies[i]), "") for i in range(len(chunk))]


def choose_pairs(direction: Direction, n_lines: int, options: AugmentOptions, ticker: Ticker) -> dict[str, int]:
    """Write the pairs that are fit to learn from, a file for each side; ``n_lines`` is shown in progress reports.

    The report of an earlier call is removed: its counts are not those of these files.

    Raises:
        DataError: No pair is fit.
    """
    lines, translations = direction.work(".lines"), direction.work(".jsonl")
    every = (made for n_best in _translations(lines, translations) for made in n_best)
    least = least_score(every, options.drop_worst)
    sample = [] if options.any_language else first_translations([translations])
    language = Language(direction.plan.tgt_lang, sample)
    data = direction.translator.config.data
    cleaner = Cleaner(data.model_copy(update={"max_ratio": options.max_ratio, "drop_duplicates": True}))
    counts: Counter[str] = Counter()
    report_path = direction.folder / REPORT
    with explained(report_path), whole_files(direction.sides, report_path) as outs:
        done = 0
        for chunk in chunks(_translations(lines, translations)):
            made = [translation for n_best in chunk for translation in n_best]
            lost = chunk.count([])
            counts.update({"made": len(made) + lost, MEMORY: lost})
            reasons = unfit(made, direction.plan, language, least)
            counts.update(why for why in reasons if why)
            fit = [translation for translation, why in zip(made, reasons, strict=True) if not why]
            for pair in _cleaned(fit, direction, cleaner):
                for file, side in zip(outs, pair if direction.name == "forward" else pair[::-1], strict=True):
                    file.write(f"{side}\n".encode())
            done += len(chunk)
            ticker(done, n_lines, f"translations {direction.name} filtered")
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
            summary = _summary(counts, "made", "kept", "translations")
            why = f"no translation is fit to learn from: {summary}"
            raise DataError(f"{direction.runs[0]}: {why}; is it the right model?")
    return {"made": counts.pop("made"), "kept": counts.pop("kept"), **{why: n for why, n in counts.items() if n}}


def _translations(lines: Path, translations: Path) -> Iterator[list[Made]]:
    """Yield the n best translations of each line; none of one that ran out of memory."""
    for src, n_best in zip(lines_of(lines), lines_of(translations), strict=True):
        yield read_rendered(src, n_best)


def _cleaned(made: Sequence[Made], direction: Direction, cleaner: Cleaner) -> Iterator[tuple[str, str]]:
    """Yield the pairs (text, translation) that training would also keep, each once."""
    pairs = [(translation.src, translation.text) for translation in made]
    lengths = [
        np.array([len(ids) for ids in tokenizer.encode([pair[side] for pair in pairs])], np.int64)
        for side, tokenizer in enumerate((direction.plan.src_tokenizer, direction.plan.tgt_tokenizer))
    ]
    for pair, keep in zip(pairs, cleaner.keep(pairs, *lengths), strict=True):
        if keep:
            yield pair
