"""All checks of one corpus, in two passes over its text.

    examination = examine(PairOfFiles(src="train.en", tgt="train.de"), Ticker(quiet=True))

The first pass checks each pair by itself, stores 64-bit digests and lengths of its sides, and draws a sample. Word
translations are learned from the sample. The second pass uses them to find pairs, and runs of lines, that do not belong
together. In memory are about 60 bytes per pair, one chunk of text, the sample, and what was learned from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import PairOfFiles, TextFiles
from dragoman.data.corpus import conversion, encoding_of
from dragoman.data.texts import files_of
from dragoman.doctor.alignment import Shift
from dragoman.doctor.findings import N_EXAMPLES, Finding, Tally, findings_of
from dragoman.doctor.first_pass import FirstPass
from dragoman.doctor.kinds import KINDS
from dragoman.doctor.paired_lines import Pairs, chunks
from dragoman.doctor.repeats import Digests, count_repeats
from dragoman.doctor.second_pass import learn_from_sample, second_pass
from dragoman.errors import DataError
from dragoman.progress import Ticker


class Examination(NamedTuple):
    """Findings about a corpus, and the numbers that figures show."""

    findings: list[Finding]
    characters: NDArray[np.uint32]  # (pairs, 2): source, target
    words: NDArray[np.uint32]  # (pairs, 2)
    scores: NDArray[np.float32]  # (pairs,): nats; empty where the sample was too small to learn from
    digests: Digests  # (pairs, 4)

    @property
    def pairs(self) -> int:
        """Number of pairs that were examined."""
        return len(self.digests)


def examine(corpus: TextFiles, ticker: Ticker) -> Examination:
    """Run every check of a corpus that needs no model.

    Raises:
        DataError: A file cannot be read, or is empty.
    """
    first = FirstPass(corpus)
    with ticker.task("reading every pair"):
        pairs = Pairs(corpus, first.tallies)
        for src_lines, tgt_lines in chunks(pairs):
            first.add(src_lines, tgt_lines)
    for n_lines, path in zip(pairs.n_lines, files_of(corpus), strict=False):
        if not n_lines:
            raise DataError(f"{path}: the file is empty; training needs one sentence in each line, or row")
    with ticker.task("learning word translations"):
        known = learn_from_sample(first.sample, corpus)
    with ticker.task("comparing the sides of every pair"):
        scores, shifts = second_pass(corpus, known, first.tallies)
    digests, lengths = first.digests(), first.lengths()
    count_repeats(digests, first.tallies)
    count_length_ratios(lengths[:, :2], first.tallies)
    findings = [
        *_language_findings(corpus, known.other_languages),
        *_with_encodings(corpus, _counted_findings(first.tallies, sum(pairs.n_lines), first.n)),
        *_shift_findings(pairs, shifts, first.n),
    ]
    return Examination(findings, lengths[:, :2], lengths[:, 2:], scores, digests)


def _language_findings(corpus: TextFiles, others: tuple[str | None, str | None]) -> Iterator[Finding]:
    """Yield an error for each side of the corpus that is as a whole in another language, named in ``others``."""
    for name, path, lang, other in (
        ("source", files_of(corpus)[0], corpus.src_lang, others[0]),
        ("target", files_of(corpus)[-1], corpus.tgt_lang, others[1]),
    ):  # fmt: skip
        if other is not None:
            yield Finding(
                "error", f"{name}-is-{other}", f"{path}, the {name}, is not in {lang} but seems to be in {other}",
                "check that source and target files are not exchanged; else set data.src_lang and data.tgt_lang",
            )  # fmt: skip


def _counted_findings(tallies: dict[str, Tally], n_lines: int, n_pairs: int) -> Iterator[Finding]:
    """Yield the findings of all tallies: kinds of lines out of ``n_lines``, kinds of pairs out of ``n_pairs``."""
    for unit, total in (("lines", n_lines), ("pairs", n_pairs)):
        in_unit = {name: tally for name, tally in tallies.items() if KINDS[name].unit == unit}
        yield from findings_of(in_unit, KINDS, total)


def _with_encodings(corpus: TextFiles, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings; those of bytes that are not UTF-8 name each file whose encoding is recognised."""
    for finding in findings:
        if finding.name in ("not-utf8", "nul"):
            advice = [
                f"training refuses {path}: {conversion(encoding, path)}"
                for path in files_of(corpus)
                if (encoding := encoding_of(path, finding.lines[0])) is not None
            ]
            finding = finding._replace(advice="; ".join(advice) or finding.advice)
        yield finding


def _shift_findings(pairs: Pairs, shifts: list[Shift], n_pairs: int) -> Iterator[Finding]:
    """Yield errors about two files of different length, and about runs of lines that are shifted against each other."""
    text, (n_src, n_tgt) = pairs.text, pairs.n_lines
    if isinstance(text, PairOfFiles) and n_src != n_tgt:
        last = shifts[-1] if shifts else None
        near = f"; they diverge near line {last.first:,}" if last and last.last > n_pairs - 100 else ""
        yield Finding(
            "error", "line-counts", f"{text.src} has {n_src:,} lines but {text.tgt} has {n_tgt:,}{near}",
            "training refuses them, because line i of one file must translate line i of the other; find the line that "
            "is missing or split, and fix it",
        )  # fmt: skip
    if shifts:
        n = sum(shift.last - shift.first + 1 for shift in shifts)
        shown = shifts[:N_EXAMPLES]
        yield Finding(
            "error" if n >= 0.02 * n_pairs else "warning", "shifted",
            f"are misaligned, in {len(shifts):,} run{'s' * (len(shifts) > 1)}",
            "a line was lost or added before each run: fix the file there, or drop these pairs",
            n, n_pairs, lines=tuple(shift.first for shift in shown),
            examples=tuple(f"to line {s.last:,}: the matching target is {_lines(s.offset)}" for s in shown),
        )  # fmt: skip


def _lines(offset: int) -> str:
    """Return an offset in words, such as "2 lines further down"."""
    plural = "s" * (abs(offset) > 1)
    return f"{abs(offset)} line{plural} {'further down' if offset > 0 else 'further up'}"


def count_length_ratios(characters: NDArray[np.uint32], tallies: dict[str, Tally]) -> None:
    """Count pairs whose length ratio is unusual for the corpus: six standard deviations off, and a factor of 2.5.

    Args:
        characters: Lengths of source and target, ``(pairs, 2)``.
        tallies: Counts by kind; "length-ratio" is added.
    """
    if len(characters) < 20:
        return
    ratio = log_ratio(characters)
    # Quantiles instead of mean and deviation: the unusual pairs themselves must not widen the limit.
    low, centre, high = np.quantile(ratio, (0.16, 0.5, 0.84))
    limit = max(np.log(2.5), 3 * (high - low))
    for i in np.flatnonzero((np.abs(ratio - centre) > limit) & (characters.min(1) > 0)).tolist():
        example = f"{characters[i, 0]:,} and {characters[i, 1]:,} characters"
        tallies.setdefault("length-ratio", Tally()).add(i + 1, example)


def log_ratio(characters: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the log of target over source length, ``(pairs,)``; 5 is added to both, which evens out short lines."""
    return np.asarray(np.log((characters[:, 1] + 5.0) / (characters[:, 0] + 5.0)))
