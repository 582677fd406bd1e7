"""All examinations of parallel text, in two passes over it.

The first pass looks at each pair by itself, notes 64-bit digests and lengths of its sides, and draws a sample. From the
sample is learned which words belong together; the second pass finds the pairs, and runs of lines, that do not. What is
held in memory: about 60 bytes a pair, one chunk of text, the sample and what was learned from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import PairOfFiles, TextFiles
from dragoman.data.texts import files_of
from dragoman.doctor.alignment import Shift
from dragoman.doctor.findings import N_EXAMPLES, Finding, Tally, findings_of
from dragoman.doctor.first_pass import FirstPass
from dragoman.doctor.kinds import KINDS
from dragoman.doctor.paired_lines import Pairs, chunks
from dragoman.doctor.repeats import Digests, count_repeats
from dragoman.doctor.second_pass import learn, second_pass
from dragoman.errors import DataError
from dragoman.progress import Ticker


class Examination(NamedTuple):
    """What was found in a corpus, and the numbers for figures."""

    findings: list[Finding]
    characters: NDArray[np.uint32]  # (pairs, 2): source, target
    words: NDArray[np.uint32]  # (pairs, 2)
    scores: NDArray[np.float32]  # (pairs,): nats; empty where nothing could be learned
    digests: Digests  # (pairs, 4)

    @property
    def pairs(self) -> int:
        """How many were examined."""
        return len(self.digests)


def examine(corpus: TextFiles, ticker: Ticker) -> Examination:
    """Look at all that can be looked at without a model.

    Raises:
        DataError: A file cannot be read, or holds no line.
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
        known = learn(first.sample, corpus)
    with ticker.task("comparing the sides of every pair"):
        scores, shifted = second_pass(corpus, known, first.tallies)
    digests, lengths = first.digests(), first.lengths()
    count_repeats(digests, first.tallies)
    count_ratios(lengths[:, :2], first.tallies)
    findings = [
        *_languages(corpus, known.other_languages),
        *_counted(first.tallies, sum(pairs.n_lines), first.n),
        *_placed(pairs, shifted, first.n),
    ]
    return Examination(findings, lengths[:, :2], lengths[:, 2:], scores, digests)


def _languages(corpus: TextFiles, others: tuple[str | None, str | None]) -> Iterator[Finding]:
    """A whole file in another language than was said."""
    for name, path, lang, other in (
        ("source", files_of(corpus)[0], corpus.src_lang, others[0]),
        ("target", files_of(corpus)[-1], corpus.tgt_lang, others[1]),
    ):  # fmt: skip
        if other is not None:
            yield Finding(
                "error", f"{name}-is-{other}", f"{path}, the {name}, is not in {lang} but seems to be in {other}",
                "are the files given the wrong way round? Else name the language: data.src_lang, data.tgt_lang",
            )  # fmt: skip


def _counted(tallies: dict[str, Tally], n_lines: int, n_pairs: int) -> Iterator[Finding]:
    of_lines = {name: tally for name, tally in tallies.items() if KINDS[name].unit == "lines"}
    of_pairs = {name: tally for name, tally in tallies.items() if KINDS[name].unit == "pairs"}
    yield from findings_of(of_lines, KINDS, n_lines)
    yield from findings_of(of_pairs, KINDS, n_pairs)


def _placed(pairs: Pairs, shifted: list[Shift], n_pairs: int) -> Iterator[Finding]:
    """Files of different length, and runs of lines that stand beside the wrong line."""
    text, (n_src, n_tgt) = pairs.text, pairs.n_lines
    if isinstance(text, PairOfFiles) and n_src != n_tgt:
        last = shifted[-1] if shifted else None
        at = f"; they diverge near line {last.first:,}" if last and last.last > n_pairs - 100 else ""
        yield Finding(
            "error", "line-counts", f"{text.src} has {n_src:,} lines but {text.tgt} has {n_tgt:,}{at}",
            "training refuses them: line i of one file must translate line i of the other; mend the line that is "
            "missing or broken in two",
        )  # fmt: skip
    if shifted:
        n = sum(shift.last - shift.first + 1 for shift in shifted)
        some = shifted[:N_EXAMPLES]
        yield Finding(
            "error" if n >= 0.02 * n_pairs else "warning", "shifted",
            f"are misaligned, in {len(shifted):,} run{'s' * (len(shifted) > 1)}",
            "a line is missing, or one too many, before each run: mend it there, or drop these pairs",
            n, n_pairs, lines=tuple(shift.first for shift in some),
            examples=tuple(f"to {s.last:,}: the source belongs to the target {_lines(s.offset)}" for s in some),
        )  # fmt: skip


def _lines(offset: int) -> str:
    plural = "s" * (abs(offset) > 1)
    return f"{abs(offset)} line{plural} {'further down' if offset > 0 else 'further up'}"


def count_ratios(characters: NDArray[np.uint32], tallies: dict[str, Tally]) -> None:
    """Pairs whose length ratio is far from the corpus' own: by six spreads, and by a factor of 2.5 at least.

    Args:
        characters: ``(pairs, 2)``.
    """
    if len(characters) < 20:
        return
    ratio = log_ratio(characters)
    low, centre, high = np.quantile(ratio, (0.16, 0.5, 0.84))
    limit = max(np.log(2.5), 3 * (high - low))
    for i in np.flatnonzero((np.abs(ratio - centre) > limit) & (characters.min(1) > 0)).tolist():
        text = f"{characters[i, 0]:,} and {characters[i, 1]:,} characters"
        tallies.setdefault("length-ratio", Tally()).add(i + 1, text)


def log_ratio(characters: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Log of target over source length, 5 added to both: of short lines little is known, ``(pairs,)``."""
    return np.asarray(np.log((characters[:, 1] + 5.0) / (characters[:, 0] + 5.0)))


def summary(found: Examination) -> dict[str, Any]:
    """Counts and lengths of a corpus."""
    facts: dict[str, Any] = {"pairs": found.pairs}
    for unit, lengths in (("characters", found.characters), ("words", found.words)):
        for side, name in enumerate(("source", "target")):
            column = lengths[:, side]
            facts[f"{name}_{unit}"] = quantiles(column)
    return facts


def quantiles(lengths: NDArray[np.integer[Any]]) -> dict[str, int]:
    """The sum of some lengths, and how they are spread."""
    median, p95, p99 = (int(q) for q in np.quantile(lengths, (0.5, 0.95, 0.99)))
    return {"all": int(lengths.sum()), "median": median, "p95": p95, "p99": p99, "longest": int(lengths.max())}
