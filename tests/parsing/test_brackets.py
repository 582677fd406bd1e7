"""Labelled brackets against cases counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dragoman.errors import DataError
from dragoman.evaluation.bracket_f1 import bracket_scores
from dragoman.parsing.brackets import Counts, by_label, count, count_all, score
from dragoman.parsing.trees import Tree, read_trees

GOLD = "(TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .)))"


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[str], Tree]:
    def read(text: str) -> Tree:
        (tmp_path / "one.trees").write_text(text, encoding="utf-8")
        return next(read_trees(tmp_path / "one.trees"))

    return read


@pytest.mark.parametrize(
    ("gold", "found", "counts"),
    [
        (GOLD, GOLD, (3, 3, 3)),
        # a label, a span
        (GOLD, GOLD.replace("NP", "QP"), (2, 3, 3)),
        (GOLD, "(TOP (S (NP (DT The) (NN dog) (VP (VBZ barks))) (. .)))", (2, 3, 3)),  # NP is too long
        (GOLD, "(TOP (DT The) (NN dog) (VBZ barks) (. .))", (0, 3, 0)),
        (GOLD, "(TOP (S (NP (NP (DT The)) (NN dog)) (VP (VBZ barks)) (. .)))", (3, 3, 4)),
        # punctuation is no word: it may stand inside or outside
        (GOLD, "(TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks) (. .))))", (3, 3, 3)),
        (GOLD, "(TOP (S (S (NP (DT The) (NN dog)) (VP (VBZ barks))) (. .)))", (3, 3, 4)),  # both S span three words
        ("(TOP (NP (`` `) (NN a) (: -) (NN b) ('' ') (, ,)))", "(TOP (`` `) (NP (NN a) (: -) (NN b)) ('' ') (, ,))",
         (1, 1, 1)),
        # a constituent of nothing but punctuation is none
        ("(TOP (S (NN a) (PRN (: -) (, ,))))", "(TOP (S (NN a) (: -) (, ,)))", (1, 1, 1)),
        # other marks are words: brackets, hyphens, ? and ! with tags of their own
        ("(TOP (S (NP (NN a)) (-RRB- -RRB-)))", "(TOP (S (NP (NN a) (-RRB- -RRB-))))", (1, 2, 2)),
        ("(TOP (S (NP (NN a)) (HYPH -)))", "(TOP (S (NP (NN a) (HYPH -))))", (1, 2, 2)),
        # the gold tags say what is punctuation, whatever the parser calls it
        (GOLD, GOLD.replace("(. .)", "(NN .)"), (3, 3, 3)),
        (GOLD, GOLD.replace("(DT The)", "(, The)"), (3, 3, 3)),
        # labels: TOP and S1 are none, ADVP is PRT, functions are left out
        ("(TOP (S1 (NP (NN a))))", "(TOP (NP (NN a)))", (1, 1, 1)),
        ("(TOP (TOP (NP (NN a))))", "(TOP (NP (NN a)))", (1, 1, 1)),
        ("(TOP (VP (VB set) (PRT (RP up))))", "(TOP (VP (VB set) (ADVP (RP up))))", (2, 2, 2)),
        ("(TOP (NP-SBJ (NN a)))", "(TOP (NP (NN a)))", (1, 1, 1)),
        # the same label twice over the same words: the smaller number is right
        ("(TOP (NP (NP (NP (NN a)))))", "(TOP (NP (NP (NN a))))", (2, 3, 2)),
        ("(TOP (NP (NN a)))", "(TOP (NP (NP (NN a))))", (1, 1, 2)),
        # chains: their order is not looked at
        ("(TOP (S (VP (VB go))))", "(TOP (VP (S (VB go))))", (2, 2, 2)),
    ],
)  # fmt: skip
def test_counted_by_hand(tree: Callable[[str], Tree], gold: str, found: str, counts: tuple[int, int, int]) -> None:
    assert count(tree(gold), tree(found)) == Counts(*counts)


def test_a_test_set_is_counted_as_a_whole(tree: Callable[[str], Tree]) -> None:
    read = tree
    golds = [read(text) for text in (GOLD, "(TOP (NP (NN a)))", "(TOP (. .))")]
    founds = [read(text) for text in (GOLD.replace("NP", "QP"), "(TOP (NP (NN a)))", "(TOP (NP (. .)))")]
    counts = count_all(golds, founds)
    assert counts.tolist() == [[2, 3, 3], [1, 1, 1]]  # the third is skipped
    assert score(counts) == pytest.approx((75.0, 75.0, 75.0, 50.0))
    counts = np.array([[1, 2, 4]])
    assert score(counts) == pytest.approx((25.0, 50.0, 100 / 3, 0.0))
    assert score(np.array([[0, 0, 0]])) == (0, 0, 0, 100)  # nothing to find and nothing found: EVALB's complete match


def test_brackets_are_counted_by_label(tree: Callable[[str], Tree]) -> None:
    golds = [tree(GOLD), tree("(TOP (NP (NP (NN a)) (PRT (RP up))))"), tree("(TOP (X (. .)))")]
    founds = [tree(GOLD.replace("NP", "QP")), golds[1], golds[2]]
    found = by_label(golds, founds)
    assert list(found.items()) == [
        ("NP", Counts(2, 3, 2)), ("ADVP", Counts(1, 1, 1)), ("S", Counts(1, 1, 1)), ("VP", Counts(1, 1, 1)),
        ("QP", Counts(0, 0, 1)),
    ]  # fmt: skip
    assert [round(counts.f1, 1) for counts in found.values()] == [80, 100, 100, 100, 0]
    assert np.array(list(found.values())).sum(0).tolist() == count_all(golds, founds).sum(0).tolist()


def test_the_interval_holds_the_value_and_shrinks(tree: Callable[[str], Tree]) -> None:
    right, wrong = tree(GOLD), tree(GOLD.replace("NP", "QP"))
    widths = []
    for n in (10, 1000):
        f1, *others = bracket_scores([right] * 2 * n, [right, wrong] * n)
        assert f1.value == pytest.approx(500 / 6)
        assert f1.low is not None
        assert f1.high is not None
        assert f1.low < f1.value < f1.high
        widths.append(f1.high - f1.low)
        assert [one.name for one in others] == ["precision", "recall", "exact match"]
        assert others[2].value == 50
    assert widths[1] < widths[0] / 5


def test_trees_of_other_sentences_are_refused(tree: Callable[[str], Tree]) -> None:
    gold = tree(GOLD)
    with pytest.raises(DataError, match=r"tree 2: .*word 2 is 'cat', not 'dog'"):
        count_all([gold, gold], [gold, tree(GOLD.replace("dog", "cat"))])
    with pytest.raises(DataError, match="one is longer"):
        count(gold, gold._replace(words=gold.words[:2], tags=gold.tags[:2], brackets=()))
    with pytest.raises(DataError, match="1 trees, but 2 gold trees"):
        count_all([gold, gold], [gold])
    with pytest.raises(DataError, match="nothing to compare"):
        count_all([tree("(TOP (. .))")] * 2, [tree("(TOP (. .))")] * 2)
