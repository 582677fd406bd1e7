"""All checks of one corpus, in three passes over its text.

    examination = examine(PairOfFiles(src="train.en", tgt="train.de"), Ticker(quiet=True))

The first pass looks at each side by itself: its encoding, its characters, and how each line is written. What is wrong
there is mended from then on when the text is read, so that later checks see what the mended text would show. The second
checks each pair, stores 64-bit digests and lengths of its sides, and draws a sample. Word translations are learned from
the sample. The third uses them to find pairs, and runs of lines, that do not belong together. Where lines stand beside
the wrong line, both are repeated with the lines put right. In memory are about 120 bytes per pair, one chunk of text,
the sample, and what was learned from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import PairOfFiles, TextFiles
from dragoman.data.corpus import conversion, encoding_of
from dragoman.data.texts import files_of
from dragoman.doctor import realignment
from dragoman.doctor.alignment import Shift
from dragoman.doctor.findings import N_EXAMPLES, Finding, Place, Tally, findings_of
from dragoman.doctor.first_pass import FirstPass
from dragoman.doctor.kinds import KINDS
from dragoman.doctor.line_pass import LinePass
from dragoman.doctor.paired_lines import Pairs, Reading, chunks
from dragoman.doctor.repeats import Digests, count_repeats
from dragoman.doctor.second_pass import Knowledge, learn_from_sample, second_pass
from dragoman.doctor.shifts import Segment, with_runs
from dragoman.doctor.stretches import MARKS
from dragoman.doctor.truncation import count_truncated
from dragoman.errors import DataError
from dragoman.progress import Ticker

REFUSED = ("not-utf8", "nul", "too-long-line")
"""Kinds of lines that training refuses."""

UNMARKED = 0.8
"""Share of the lines without a mark at the end from which a side is written without such marks."""


class Examination(NamedTuple):
    """Findings about a corpus, and the numbers that figures show."""

    findings: list[Finding]
    characters: NDArray[np.uint32]  # (pairs, 2): source, target
    words: NDArray[np.uint32]  # (pairs, 2)
    scores: NDArray[np.float32]  # (pairs,): nats; empty where the sample was too small to learn from
    digests: Digests  # (pairs, 4)
    reading: Reading = Reading()  # how the text is read so that it is as right as it can be

    @property
    def pairs(self) -> int:
        """Number of pairs that were examined."""
        return len(self.digests)


class _Passes(NamedTuple):
    """Results of the passes over pairs with one reading."""

    first: FirstPass
    tallies: dict[str, Tally]
    known: Knowledge
    scores: NDArray[np.float32]
    shifts: list[Shift]


def examine(corpus: TextFiles, ticker: Ticker) -> Examination:
    """Run every check of a corpus that needs no model.

    Raises:
        DataError: A file cannot be read, or is empty.
    """
    with ticker.task("reading every line"):
        lines = _read_lines(corpus)
    for n_lines, path in zip(lines.n_lines, files_of(corpus), strict=False):
        if not n_lines:
            raise DataError(f"{path}: the file is empty; training needs one sentence in each line, or row")
    reading = _mended(lines)
    found = realignment.by_surface(*lines.surfaces())
    if found:
        reading = replace(reading, segments=found)
    passes = _passes(corpus, reading, ticker)
    for _ in range(realignment.ROUNDS):
        if passes.known.lexicon is None:
            break
        with ticker.task("looking for lines that are missing"):
            segments = realignment.by_words(corpus, reading, passes.known.lexicon, passes.scores, lines.n_lines)
        if segments == reading.segments:
            break
        reading = replace(reading, segments=segments)
        passes = _passes(corpus, reading, ticker)
    return _examination(corpus, lines, reading, passes)


def examine_set(corpus: TextFiles, name: str) -> tuple[Reading, list[Finding]]:
    """Look at the bytes of a validation or test set, which are refused as those of training text are.

    Args:
        corpus: The set.
        name: Name of the set in findings, "valid" or "test".

    Returns:
        How to read it so that all faults of single lines are mended, as they are in ``Examination.digests``; and
        the findings.

    Raises:
        DataError: A file cannot be read.
    """
    lines = _read_lines(corpus)
    refused = {kind: lines.tallies[kind] for kind in REFUSED if kind in lines.tallies}
    findings = [
        *_encoding_findings(corpus, lines.reading, lines.n_lines),
        *_with_encodings(corpus, findings_of(refused, KINDS, sum(lines.n_lines), names_of(corpus))),
    ]
    of_set = [
        finding._replace(name=f"{name}-{finding.name}", what=f"of the {name} set {finding.what}")
        for finding in findings
    ]
    if name == "test":  # training never reads it
        of_set = [f._replace(advice=f.advice.replace("training refuses", "evaluation refuses")) for f in of_set]
    return _mended(lines), of_set


def _mended(lines: LinePass) -> Reading:
    return replace(lines.reading, repairs=lines.repairs(of_notes=True))


def _read_lines(corpus: TextFiles) -> LinePass:
    """Return the pass over all lines; a file in another encoding is read once more, in that encoding.

    Raises:
        DataError: A file cannot be read.
    """
    lines = LinePass(corpus, Reading())
    lines.run()
    codecs = lines.codecs()
    if any(codecs):
        of_bytes = {name: lines.tallies[name] for name in ("byte-order-mark",) if name in lines.tallies}
        lines = LinePass(corpus, Reading(codecs))
        lines.tallies |= of_bytes
        lines.run()
    return lines


def _passes(corpus: TextFiles, reading: Reading, ticker: Ticker) -> _Passes:
    """Run both passes over the pairs of a corpus."""
    first = FirstPass(corpus, reading)
    with ticker.task("reading every pair"):
        for src_lines, tgt_lines in chunks(Pairs(corpus, reading=reading)):
            first.add(src_lines, tgt_lines)
    with ticker.task("learning word translations"):
        known = learn_from_sample(first)
    tallies = dict(first.tallies)
    with ticker.task("comparing the sides of every pair"):
        scores, shifts, marks = second_pass(corpus, known, tallies, first)
    explained = marks == MARKS.index("swapped-sides")
    explained[first.explained] = True
    first.count_scripts(tallies, explained)
    return _Passes(first, tallies, known, scores, shifts)


def _examination(corpus: TextFiles, lines: LinePass, reading: Reading, passes: _Passes) -> Examination:
    """Return the findings of all passes."""
    digests, lengths = passes.first.digests(), passes.first.lengths()
    tallies = {**lines.tallies, **passes.tallies}
    count_repeats(digests, tallies, reading, lengths[:, :2], passes.first.has_blank())
    count_length_ratios(lengths[:, :2], tallies, reading)
    count_truncated(lengths, passes.first.open_ends(), tallies, reading)
    files = names_of(corpus)
    counted = _counted_findings(tallies, sum(lines.n_lines), len(digests), files)
    runs = [(shift.first - 1, shift.last - 1, shift.offset) for shift in passes.shifts]
    whole = reading.segments or (Segment(0, 0, len(digests)),)
    segments = tuple(with_runs(whole, runs)) if runs else reading.segments
    findings = [
        *_language_findings(corpus, passes.known.other_languages),
        *_encoding_findings(corpus, reading, lines.n_lines),
        *_with_encodings(corpus, _without_marks(passes.first.open_ends(), counted)),
        *_shift_findings(corpus, lines.n_lines, segments),
    ]
    mended = replace(reading, segments=segments, repairs=lines.repairs(of_notes=False))
    return Examination(findings, lengths[:, :2], lengths[:, 2:], passes.scores, digests, mended)


def names_of(corpus: TextFiles) -> tuple[str, str]:
    """Return the names of source and target in places."""
    if isinstance(corpus, PairOfFiles):
        return str(corpus.src), str(corpus.tgt)
    return f"{corpus.file} (source)", f"{corpus.file} (target)"


def _encoding_findings(corpus: TextFiles, reading: Reading, n_lines: tuple[int, int]) -> Iterator[Finding]:
    """Yield an error about each file in another encoding than UTF-8."""
    for path, codec, n in zip(files_of(corpus), reading.codecs, n_lines, strict=False):
        if codec is not None and (encoding := encoding_of(path)) is not None:
            kind = KINDS["encoding"]
            yield Finding(
                "error", "encoding", f"of {path} are in {encoding.name}, not in UTF-8",
                f"training refuses {path}: {conversion(encoding, path)}", n, n, kind.unit,
                places=(Place(str(path), 1, n),), harm=kind.harm,
            )  # fmt: skip


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


def _counted_findings(
    tallies: dict[str, Tally], n_lines: int, n_pairs: int, files: tuple[str, str]
) -> Iterator[Finding]:
    """Yield the findings of all tallies: kinds of lines out of ``n_lines``, kinds of pairs out of ``n_pairs``."""
    for unit, total in (("lines", n_lines), ("pairs", n_pairs)):
        in_unit = {name: tally for name, tally in tallies.items() if KINDS[name].unit == unit}
        yield from findings_of(in_unit, KINDS, total, files)


def _without_marks(open_ends: NDArray[np.bool_], findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings; marks that one side lacks as a whole are how it is written, as Thai and Lao are.

    Args:
        open_ends: True for each side of the pairs that ends without a mark, ``(pairs, 2)``.
        findings: The findings about lines and pairs.
    """
    is_written_so = len(open_ends) > 0 and open_ends.mean(0).max() >= UNMARKED
    for finding in findings:
        if finding.name == "final-mark" and is_written_so:
            advice = "nothing to do: one side is written without such marks"
            finding = finding._replace(level="note", advice=advice)
        yield finding


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


def _shift_findings(corpus: TextFiles, n_lines: tuple[int, int], segments: tuple[Segment, ...]) -> Iterator[Finding]:
    """Yield errors about two files of different length, and about lines that stand beside the wrong line.

    Args:
        corpus: The text.
        n_lines: Lines of source and target.
        segments: All segments; none where every line is in place.
    """
    n_src, n_tgt = n_lines
    gaps = realignment.gaps(segments, n_lines)
    if isinstance(corpus, PairOfFiles) and n_src != n_tgt:
        near = f"; they diverge near line {min(gap.first for gap in gaps):,}" if gaps else ""
        yield Finding(
            "error", "line-counts", f"{corpus.src} has {n_src:,} lines but {corpus.tgt} has {n_tgt:,}{near}",
            "training refuses them, because line i of one file must translate line i of the other; see where lines "
            "stand beside the wrong one" if gaps else
            "training refuses them, because line i of one file must translate line i of the other; find the line that "
            "is missing or split, and fix it",
        )  # fmt: skip
    n = sum(segment.n for segment in segments if segment.offset)
    if n:
        files, kind = names_of(corpus), KINDS["shifted"]
        shown = [segment for segment in segments if segment.offset][:N_EXAMPLES]
        places = tuple(Place(files[gap.side], gap.first, gap.last, realignment.in_words(gap, files)) for gap in gaps)
        yield Finding(
            "error" if n >= kind.error * n_src else "warning", "shifted", kind.what,
            "lines were lost or added there: mend the file, or let --write put the lines side by side",
            n, n_src, lines=tuple(s.src + 1 for s in shown), harm=kind.harm, places=places,
            examples=tuple(f"from here to line {s.src + s.n:,}, targets are {_lines(s.offset)}" for s in shown),
        )  # fmt: skip


def _lines(offset: int) -> str:
    """Return an offset in words, such as "2 lines further down"."""
    plural = "s" * (abs(offset) > 1)
    return f"{abs(offset):,} line{plural} {'further down' if offset > 0 else 'further up'}"


def count_length_ratios(characters: NDArray[np.uint32], tallies: dict[str, Tally], reading: Reading) -> None:
    """Count pairs whose length ratio is unusual for the corpus: six standard deviations off, and a factor of 2.5.

    Args:
        characters: Lengths of source and target, ``(pairs, 2)``.
        tallies: Counts by kind; "length-ratio" is added.
        reading: How the text was read.
    """
    if len(characters) < 20:
        return
    ratio = log_ratio(characters)
    # Quantiles instead of mean and deviation: the unusual pairs themselves must not widen the limit.
    low, centre, high = np.quantile(ratio, (0.16, 0.5, 0.84))
    limit = max(np.log(2.5), 3 * (high - low))
    for i in np.flatnonzero((np.abs(ratio - centre) > limit) & (characters.min(1) > 0)).tolist():
        example = f"{characters[i, 0]:,} and {characters[i, 1]:,} characters"
        tallies.setdefault("length-ratio", Tally()).add(reading.line(i), example)


def log_ratio(characters: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the log of target over source length, ``(pairs,)``; 5 is added to both, which evens out short lines."""
    return np.asarray(np.log((characters[:, 1] + 5.0) / (characters[:, 0] + 5.0)))
