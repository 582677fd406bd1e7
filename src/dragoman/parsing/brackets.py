"""Labelled brackets: precision, recall, F1 and exact match, counted as EVALB does with the settings of COLLINS.prm.

What is counted (https://nlp.cs.nyu.edu/evalb/, sections 6 and 7 of its README):

- a bracket is right if the other tree has one of the same label over the same words; of n alike in one tree and m in
  the other, the smaller number is right;
- punctuation is no word: words tagged as one of ``PUNCTUATION`` are taken out before spans are compared, and so is a
  bracket that holds nothing else;
- TOP is no bracket (nor S1, which other parsers write for it), ADVP and PRT are one label, and NP-SBJ is NP;
- numbers are of the whole test set, not means over sentences; a sentence of nothing but punctuation is skipped.

EVALB goes by each tree's own tags; where these disagree on what is punctuation it counts an error sentence, or (later
versions) mends quotes first, and error sentences are left out of its totals. Here the gold tags decide for both trees
and no sentence is left out; with the same tags in both the result is the same.
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
    """Brackets of one sentence."""

    right: int
    gold: int
    found: int

    @property
    def f1(self) -> float:
        """In per cent; 0 where there is no bracket."""
        return _per_cent(2 * self.right, self.gold + self.found)


def _per_cent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


class BracketScores(NamedTuple):
    """Of a test set, in per cent."""

    precision: float
    recall: float
    f1: float
    exact: float


def count(gold: Tree, found: Tree) -> Counts | None:
    """Compare two trees over the same words; None if these are all punctuation.

    Raises:
        DataError: The words differ.
    """
    pair = _brackets(gold, found)
    return None if pair is None else Counts((pair[0] & pair[1]).total(), pair[0].total(), pair[1].total())


def by_label(golds: Sequence[Tree], founds: Sequence[Tree]) -> dict[str, Counts]:
    """Brackets of each label in a test set, the commonest first.

    Raises:
        DataError: The words of a tree differ.
    """
    right, gold, said = Counter[str](), Counter[str](), Counter[str]()
    for trees in zip(golds, founds, strict=True):
        if (pair := _brackets(*trees)) is not None:
            for counter, brackets in ((right, pair[0] & pair[1]), (gold, pair[0]), (said, pair[1])):
                counter.update(bracket.label for bracket in brackets.elements())
    labels = sorted(gold | said, key=lambda label: (-gold[label], label))
    return {label: Counts(right[label], gold[label], said[label]) for label in labels}


def _brackets(gold: Tree, found: Tree) -> tuple[Counter[Bracket], Counter[Bracket]] | None:
    """The brackets of both that count; None if the words are all punctuation."""
    if gold.words != found.words:
        place = next((i for i, pair in enumerate(zip(gold.words, found.words, strict=False)) if pair[0] != pair[1]), -1)
        what = (
            f"word {place + 1} is {found.words[place]!r}, not {gold.words[place]!r}" if place >= 0 else "one is longer"
        )
        raise DataError(f"these are not trees of one sentence: {what}")
    words_before = [0, *accumulate(tag not in PUNCTUATION for tag in gold.tags)]
    if not words_before[-1]:
        return None
    return _counted(gold.brackets, words_before), _counted(found.brackets, words_before)


def _counted(brackets: Sequence[Bracket], words_before: Sequence[int]) -> Counter[Bracket]:
    """The brackets that count, over words without punctuation."""
    kept: Counter[Bracket] = Counter()
    for label, start, end in brackets:
        bracket = Bracket(SAME.get(label, label), words_before[start], words_before[end])
        if label not in NOT_COUNTED and bracket.start < bracket.end:
            kept[bracket] += 1
    return kept


def count_all(golds: Sequence[Tree], founds: Sequence[Tree]) -> NDArray[np.int64]:
    """Right, gold and found brackets of each sentence that is not all punctuation, ``(sentences, 3)``.

    Raises:
        DataError: The numbers of trees, or the words of a tree, differ; or there is nothing to count.
    """
    if len(golds) != len(founds):
        raise DataError(f"{len(founds):,} trees, but {len(golds):,} gold trees: tree i of one must be of sentence i")
    rows = []
    for number, (gold, found) in enumerate(zip(golds, founds, strict=True), 1):
        try:
            counts = count(gold, found)
        except DataError as error:
            raise DataError(f"tree {number:,}: {error}; tree i of one must be of sentence i of the other") from None
        if counts is not None:
            rows.append(counts)
    if not rows:
        raise DataError("there is nothing to compare: no tree with a word that is no punctuation")
    return np.array(rows, np.int64)


def score(counts: NDArray[np.int64]) -> BracketScores:
    """Scores of ``count_all``; without any bracket to be right about, a number is 0."""
    right, gold, found = (int(n) for n in counts.sum(0))
    exact = (counts[:, :1] == counts).all(1).mean()
    return BracketScores(
        _per_cent(right, found), _per_cent(right, gold), Counts(right, gold, found).f1, 100 * float(exact)
    )


def symbols_f1(sentences: Sequence[str], golds: Sequence[str], founds: Sequence[str]) -> float:
    """F1 of trees that are given as ``trees.tree_pairs`` gives them: sentences, and symbols of each tree.

    Raises:
        DataError: As ``count_all``.
    """
    trees = [
        [
            from_symbols(line.split(" "), sentence.split(" ")).tree
            for line, sentence in zip(lines, sentences, strict=True)
        ]
        for lines in (golds, founds)
    ]
    return score(count_all(*trees)).f1
