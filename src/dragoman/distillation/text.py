"""What a student learns from: the teacher's translations of a text, chosen and filtered.

Sequence-level knowledge distillation (Kim and Rush 2016, https://aclanthology.org/D16-1139): the student is trained on
what the teacher's beam search finds. With references the one of the N best that comes nearest to its reference may be
taken instead (sequence-level interpolation there). A translation that is empty, loops, copies its source or is far too
long teaches nothing good and is dropped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.data.corpus import open_corpus, read_lines_leniently
from dragoman.errors import DataError
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.files import whole_file, write_text
from dragoman.progress import Ticker
from dragoman.translation.faults import faults
from dragoman.translation.notes import Events
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translation, Translator

CHUNK = 2000
"""Lines that are chosen from at a time."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text that the teacher translates."""

    src: Path
    ref: Path | None = None  # line by line
    held_out: int | None = None  # one line in N is for validation, and not learned from
    n_lines: int = 0


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text as translation reads them: what is no text is repaired."""
    with open_corpus(path) as stream:
        for line in read_lines_leniently(stream, str(path)):
            yield line.text


def is_held_out(number: int, text: Text) -> bool:
    """Whether a line, counted from 1, is for validation."""
    return text.held_out is not None and number % text.held_out == 0


def translate_texts(teacher: Translator, plan: Plan, texts: Sequence[Text], folder: Path, ticker: Ticker) -> list[Path]:
    """Have the teacher translate each text into a file of JSON lines; what an earlier process did is not done again."""
    found = []
    before, total = 0, sum(text.n_lines for text in texts)
    for i, text in enumerate(texts):
        out = folder / f"translations-{i}.jsonl"
        if not out.exists():

            def progress(done: int, _: int, __: str, before: int = before) -> None:
                ticker(before + done, total, "lines translated by the teacher")

            teacher.translate_file(
                text.src, out, plan, render=_rendered, form="distill", events=Events(progress=progress)
            )
        before += text.n_lines
        found.append(out)
    return found


def _rendered(_: int, found: Translation) -> str:
    """The best translations of a line, and the score of the first."""
    return json.dumps([found.score, found.text, *(one.text for one in found.alternatives)], ensure_ascii=False)


def choose(
    texts: Sequence[Text], translations: Sequence[Path], plan: Plan, sides: tuple[Path, Path], drop_worst: float,
    ticker: Ticker,
) -> dict[str, int]:  # fmt: skip
    """Write the pairs that the student learns from, a file for each side.

    Returns:
        How many lines there were, how many pairs are ``kept``, and how many were dropped by each reason.

    Raises:
        DataError: None is kept.
    """
    least = _least_score(translations, drop_worst)
    counts: Counter[str] = Counter()
    total = sum(text.n_lines for text in texts)
    with ExitStack() as open_files:
        outs = [open_files.enter_context(whole_file(side)) for side in sides]
        for text, path in zip(texts, translations, strict=True):
            for chunk in _chunks(text, path):
                for src, tgt in _chosen(chunk, plan, least, counts):
                    for out, line in zip(outs, (src, tgt), strict=True):
                        out.write(f"{line}\n".encode())
                counts["lines"] += len(chunk)
                ticker(counts["lines"], total, "translations looked at")
        if not counts["kept"]:
            raise DataError(
                f"{texts[0].src}: no translation is fit to learn from ({dict(counts)}); is it the right text?"
            )
    return dict(counts)


def _least_score(translations: Sequence[Path], drop_worst: float) -> float:
    """The score below which the asked-for share of all translations lies."""
    if not drop_worst:
        return -np.inf
    scores = [json.loads(line)[0] for path in translations for line in lines_of(path)]
    return float(np.quantile([score for score in scores if np.isfinite(score)], drop_worst))


_Line = tuple[str, str | None, list[str | float], bool]
"""A source, its reference, what ``_rendered`` made of it, and whether it is held out."""


def _chunks(text: Text, translations: Path) -> Iterator[list[_Line]]:
    refs: Iterator[str | None] = iter(lambda: None, 0) if text.ref is None else iter(lines_of(text.ref))
    chunk: list[_Line] = []
    for number, (src, found) in enumerate(zip(lines_of(text.src), lines_of(translations), strict=True), 1):
        chunk.append((src, next(refs, None), json.loads(found), is_held_out(number, text)))
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _chosen(chunk: Sequence[_Line], plan: Plan, least: float, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """The pairs to learn from; what is dropped is counted by its reason."""
    kept: list[tuple[str, str]] = []
    for src, ref, (score, *found), held_out in chunk:
        best = _nearest(list(map(str, found)), ref)
        if held_out or not src.strip():
            counts["held out" if held_out else "blank"] += 1
        elif float(score) < least:
            counts["low score"] += 1
        else:
            kept.append((src, best))
    lengths = [
        [len(ids) for ids in tokenizer.encode([pair[side] for pair in kept])] if kept else []
        for side, tokenizer in enumerate((plan.src_tokenizer, plan.tgt_tokenizer))
    ]
    for (src, tgt), n_src, n_tgt in zip(kept, *lengths, strict=True):
        wrong = faults(src, tgt, n_src=n_src, n_tgt=n_tgt, src_lang=plan.src_lang, tgt_lang=plan.tgt_lang)
        counts[wrong[0] if wrong else "kept"] += 1
        if not wrong:
            yield src, tgt


def _nearest(found: Sequence[str], ref: str | None) -> str:
    """Of several translations the one with the highest chrF to the reference; of equals, or without one, the first."""
    if ref is None or len(found) < 2:
        return found[0]
    scores = sentence_chrf(found, [ref] * len(found))
    return found[max(range(len(found)), key=lambda i: (scores[i], -i))]


def hold_out(text: Text, src: Path, ref: Path, inverted: bool = False) -> None:
    """Write the pairs that are held out, a file for each side; ``inverted``: those that are not."""
    assert text.ref is not None
    pairs = zip(lines_of(text.src), lines_of(text.ref), strict=True)
    kept = [pair for number, pair in enumerate(pairs, 1) if is_held_out(number, text) != inverted]
    for path, side in ((src, 0), (ref, 1)):
        write_text(path, "".join(f"{pair[side]}\n" for pair in kept))
