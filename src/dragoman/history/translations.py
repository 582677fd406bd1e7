"""Translations of several systems side by side: scores, significance, and the sentences that differ most.

compared = compare_outputs([("runs/a", a), ("runs/b", b)], refs, srcs, "de")
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.evaluation.metrics import Score, scores, select_metrics, sentence_chrf
from dragoman.evaluation.significance import Comparison, compare

MOST_SHOWN = 50
"""Largest number of sentences on a page; the CSV file has all."""

SENTENCE_COLUMNS = ("line", "source", "reference")
"""Names of the first columns of the table of sentences; the others are two for each system."""

N_SAMPLES = 2000
"""Number of samples of each significance test."""


@dataclass(frozen=True)
class Sentence:
    """One line of a test set.

    Attributes:
        line: Number of the line, from 1.
        texts: Translation by each system.
        chrf: chrF2 of each translation, in per cent.
    """

    line: int
    src: str
    ref: str
    texts: Sequence[str]
    chrf: Sequence[float]

    @property
    def spread(self) -> float:
        """Difference of the best and the worst chrF2."""
        return max(self.chrf) - min(self.chrf)

    def marked(self) -> list[list[tuple[str, bool]]]:
        """Return each translation as pieces, and whether a piece differs from the first system's translation."""
        first = _pieces(self.texts[0])
        marked = [[(self.texts[0], False)]]
        for text in self.texts[1:]:
            words = _pieces(text)
            blocks = difflib.SequenceMatcher(None, first, words, autojunk=False).get_opcodes()
            marked.append([("".join(words[j1:j2]), tag != "equal") for tag, _, _, j1, j2 in blocks if j2 > j1])
        return marked


@dataclass(frozen=True)
class Outputs:
    """Scores and sentences of several systems on one test set."""

    names: Sequence[str]
    scores: Sequence[Sequence[Score]]  # of each system
    comparisons: Sequence[tuple[str, Sequence[Comparison]]]  # of each later system with the first
    sentences: Sequence[Sentence]  # in the order of the test set

    def most_different(self) -> list[Sentence]:
        """Return the sentences whose scores differ most; of one system those with the worst scores."""
        if len(self.names) == 1:
            return sorted(self.sentences, key=lambda sentence: sentence.chrf[0])[:MOST_SHOWN]
        different = [sentence for sentence in self.sentences if len(set(sentence.texts)) > 1]
        return sorted(different, key=lambda sentence: -sentence.spread)[:MOST_SHOWN]

    @property
    def n_same(self) -> int:
        """Number of lines that all systems translate alike."""
        return sum(len(set(sentence.texts)) == 1 for sentence in self.sentences)

    def csv_rows(self) -> list[tuple[str, ...]]:
        """Return all sentences as rows of a table, its head first."""
        head = [column for name in self.names for column in (name, f"chrF2 of {name}")]
        rows: list[tuple[str, ...]] = [(*SENTENCE_COLUMNS, *head)]
        for sentence in self.sentences:
            cells = [
                cell for text, chrf in zip(sentence.texts, sentence.chrf, strict=True) for cell in (text, f"{chrf:.2f}")
            ]
            rows.append((str(sentence.line), sentence.src, sentence.ref, *cells))
        return rows


def _pieces(text: str) -> list[str]:
    """Return words and the spaces between them; of text without spaces its characters."""
    pieces = re.findall(r"\s+|\S+", text)
    return pieces if len(pieces) > 1 else list(text)


def compare_outputs(
    outputs: Sequence[tuple[str, Sequence[str]]], refs: Sequence[str], srcs: Sequence[str], tgt_lang: str | None
) -> Outputs:
    """Score translations of the same lines by several systems, and compare each with the first.

    Raises:
        DataError: The numbers of lines differ.
    """
    metrics = select_metrics()
    scored = [scores(texts, refs, tgt_lang, metrics) for _, texts in outputs]
    (_, first), *others = outputs
    comparisons = [(name, compare(first, texts, refs, tgt_lang, metrics, N_SAMPLES)) for name, texts in others]
    chrf = [sentence_chrf(texts, refs) for _, texts in outputs]
    by_line = zip(zip(*(texts for _, texts in outputs), strict=True), zip(*chrf, strict=True), strict=True)
    sentences = [
        Sentence(number, srcs[number - 1] if srcs else "", refs[number - 1], texts, of_line)
        for number, (texts, of_line) in enumerate(by_line, 1)
    ]
    return Outputs([name for name, _ in outputs], scored, comparisons, sentences)
