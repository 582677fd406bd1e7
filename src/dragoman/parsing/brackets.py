"""Labelled brackets: precision, recall, F1 and exact match, counted as EVALB does with the settings of COLLINS.prm.

    scores = score(count_all(gold_trees, parsed_trees))

The rules (https://nlp.cs.nyu.edu/evalb/, sections 6 and 7 of its README):

- A bracket is correct if the other tree has one with the same label over the same words. If one tree has n such
  brackets and the other m, the smaller number is correct.
- Punctuation does not count as words: words with a tag of ``PUNCTUATION`` are removed before spans are compared.
  Brackets that hold nothing else are removed, too.
- TOP is not counted as a bracket (nor S1, which other parsers write for it). ADVP and PRT are one label, and NP-SBJ
  is NP.
- Numbers are totals over the test set, not means over sentences. A sentence of nothing but punctuation is skipped.

EVALB uses each tree's own tags. If these disagree on what is punctuation, it counts an error sentence and leaves it out
of the totals; later versions first try to repair quotation marks. Here the gold tags decide for both trees, and no
sentence is left out. If the tags are the same in both trees, so are the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.parsing.trees import Bracket, Tree, from_symbols

PUNCTUATION = frozenset([",", ":", "``", "''", "."])
NOT_COUNTED = frozenset(["TOP", "S1"])
SAME = {"PRT": "ADVP"}


class Counts(NamedTuple):
    """Numbers of brackets: correct, in the gold tree, and in the parsed tree."""

    correct: int
    gold: int
    parsed: int

    @property
    def f1(self) -> float:
        """F1 in per cent; 0 if there are no brackets."""
        return _per_cent(2 * self.correct, self.gold + self.parsed)


def _per_cent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


class BracketScores(NamedTuple):
    """Scores of a test set, in per cent."""

    precision: float
    recall: float
    f1: float
    exact: float


def count(gold: Tree, parsed: Tree) -> Counts | None:
    """Count the brackets of two trees over the same words; None if all words are punctuation.

    Raises:
        DataError: The words differ.
    """
    pair = _brackets(gold, parsed)
    return None if pair is None else Counts((pair[0] & pair[1]).total(), pair[0].total(), pair[1].total())


def by_label(gold_trees: Sequence[Tree], parsed_trees: Sequence[Tree]) -> dict[str, Counts]:
    """Count the brackets of each label in a test set, the most frequent label first.

    Raises:
        DataError: The words of a tree differ.
    """
    correct, gold, parsed = Counter[str](), Counter[str](), Counter[str]()
    for trees in zip(gold_trees, parsed_trees, strict=True):
        if (pair := _brackets(*trees)) is not None:
            for counter, brackets in ((correct, pair[0] & pair[1]), (gold, pair[0]), (parsed, pair[1])):
                counter.update(bracket.label for bracket in brackets.elements())
    labels = sorted(gold | parsed, key=lambda label: (-gold[label], label))
    return {label: Counts(correct[label], gold[label], parsed[label]) for label in labels}


def _brackets(gold: Tree, parsed: Tree) -> tuple[Counter[Bracket], Counter[Bracket]] | None:
    """Return the brackets of both trees that count; None if all words are punctuation."""
    if gold.words != parsed.words:
        place = next(
            (i for i, pair in enumerate(zip(gold.words, parsed.words, strict=False)) if pair[0] != pair[1]), -1
        )
        what = (
            f"word {place + 1} is {parsed.words[place]!r}, not {gold.words[place]!r}" if place >= 0 else "one is longer"
        )
        raise DataError(f"these are not trees of one sentence: {what}")
    words_before = [0, *accumulate(tag not in PUNCTUATION for tag in gold.tags)]
    if not words_before[-1]:
        return None
    return _counted(gold.brackets, words_before), _counted(parsed.brackets, words_before)


def _counted(brackets: Sequence[Bracket], words_before: Sequence[int]) -> Counter[Bracket]:
    """Return the brackets that count, with spans over words without punctuation."""
    counter: Counter[Bracket] = Counter()
    for label, start, end in brackets:
        bracket = Bracket(SAME.get(label, label), words_before[start], words_before[end])
        if label not in NOT_COUNTED and bracket.start < bracket.end:
            counter[bracket] += 1
    return counter


def count_all(gold_trees: Sequence[Tree], parsed_trees: Sequence[Tree]) -> NDArray[np.int64]:
    """Return correct, gold and parsed brackets of each sentence that is not all punctuation, ``(sentences, 3)``.

    Raises:
        DataError: The numbers of trees, or the words of a tree, differ; or there is nothing to count.
    """
    if len(gold_trees) != len(parsed_trees):
        raise DataError(
            f"{len(parsed_trees):,} trees, but {len(gold_trees):,} gold trees: tree i of one must be of sentence i"
        )
    rows = []
    for number, (gold, parsed) in enumerate(zip(gold_trees, parsed_trees, strict=True), 1):
        try:
            counts = count(gold, parsed)
        except DataError as error:
            raise DataError(f"tree {number:,}: {error}; tree i of one must be of sentence i of the other") from None
        if counts is not None:
            rows.append(counts)
    if not rows:
        raise DataError("there is nothing to compare: no tree with a word that is no punctuation")
    return np.array(rows, np.int64)


def score(counts: NDArray[np.int64]) -> BracketScores:
    """Return the scores of ``counts`` from ``count_all``; a ratio without any brackets is 0."""
    correct, gold, parsed = (int(n) for n in counts.sum(0))
    exact = (counts[:, :1] == counts).all(1).mean()
    return BracketScores(
        _per_cent(correct, parsed), _per_cent(correct, gold), Counts(correct, gold, parsed).f1, 100 * float(exact)
    )


def symbols_f1(sentences: Sequence[str], gold_trees: Sequence[str], parsed_trees: Sequence[str]) -> float:
    """Return the F1 of trees written as symbols: lines of sentences and symbols as ``trees.tree_pairs`` yields them.

    Raises:
        DataError: As ``count_all``.
    """
    trees = [
        [
            from_symbols(line.split(" "), sentence.split(" ")).tree
            for line, sentence in zip(lines, sentences, strict=True)
        ]
        for lines in (gold_trees, parsed_trees)
    ]
    return score(count_all(*trees)).f1
