"""The trees of the embedded corpus: over the very words of its sentences, and as the Penn Treebank would have them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from dragoman.data import phrasebook
from dragoman.data.phrasebook.derivation import SPLITS
from dragoman.errors import ConfigError
from dragoman.parsing.trees import from_symbols, read_trees, to_symbols, tree_of, write_tree


@pytest.mark.parametrize("split", SPLITS)
def test_a_trees_words_are_those_of_the_sentence(split: str) -> None:
    n = 1500
    labels: Counter[str] = Counter()
    for index, line in enumerate(phrasebook.trees(n, seed=5, split=split)):
        tree = tree_of(line)
        sentence, _ = phrasebook.pair(index, seed=5, split=split)
        assert list(tree.words) == re.findall(r"[\w-]+|[.,?]", sentence)
        assert write_tree(tree) == line
        assert from_symbols(to_symbols(tree), tree.words) == (tree, ())
        assert tree.brackets[0].label in ("S", "SQ", "SBARQ")
        assert (tree.brackets[0].start, tree.brackets[0].end) == (0, len(tree.words))
        labels.update(bracket.label for bracket in tree.brackets)
    expected = {"S", "NP", "VP", "PP", "SBAR", "WHNP", "ADJP", "ADVP", "PRT"} | (
        set() if split == "deeper" else {"SQ", "SBARQ", "WHADVP"}
    )
    assert set(labels) == expected


@pytest.mark.parametrize(
    ("start", "tree"),
    [
        ("This child sends", "(TOP (S (NP (DT This) (NN child)) (VP (VBZ sends) (NP (PRP$ our) (NN singer)) "
         "(NP (DT a) (JJ blue) (NN umbrella))) (. .)))"),
        ("If the bicycle", "(TOP (S (SBAR (IN If) (S (NP (DT the) (NN bicycle)) (VP (VBZ is) (ADJP (JJ green))))) "
         "(, ,) (NP (PRP$ her) (JJ clever) (NN neighbour)) (VP (MD must) (VP (VB go) (PP (TO to) "
         "(NP (DT the) (NN park))))) (. .)))"),
        ("Why do we", "(TOP (SBARQ (WHADVP (WRB Why)) (SQ (VBP do) (NP (PRP we)) (VP (VB go) (PP (IN into) "
         "(NP (DT the) (NN kitchen))))) (. ?)))"),
        ("They want to work", "(TOP (S (NP (PRP They)) (VP (VBP want) (S (VP (TO to) (VP (VB work))))) (. .)))"),
        ("She did not call", "(TOP (S (NP (PRP She)) (VP (VBD did) (RB not) (VP (VB call) (NP (DT a) (NN neighbour)) "
         "(PP (IN in) (NP (DT the) (NN forest)))) (SBAR (IN because) (S (NP (DT the) (NN bird)) (VP (VBD did) (RB not) "
         "(VP (VB play)))))) (. .)))"),
        ("The boys who slept", "(TOP (S (NP (NP (DT The) (NNS boys)) (SBAR (WHNP (WP who)) (S (VP (VBD slept))))) "
         "(VP (VBD helped) (NP (DT a) (JJ thin) (NN girl))) (. .)))"),
        ("This farmer knows", "(TOP (S (NP (DT This) (NN farmer)) (VP (VBZ knows) (SBAR (IN that) (S (NP (DT the) "
         "(NNS children)) (VP (VBD brought) (PRT (RP along)) (NP (DT the) (NN cake)))))) (. .)))"),
    ],
)  # fmt: skip
def test_trees_as_a_linguist_draws_them(start: str, tree: str) -> None:
    number = next(i for i in range(100) if phrasebook.pair(i)[0].startswith(start))
    assert list(phrasebook.trees(1, start=number)) == [tree]


def test_a_file_of_trees(tmp_path: Path) -> None:
    phrasebook.write_trees(20, tmp_path / "some.trees", seed=2, split="held_out")
    lines = (tmp_path / "some.trees").read_bytes().decode().split("\n")
    assert lines == [*phrasebook.trees(20, seed=2, split="held_out"), ""]
    assert [write_tree(tree) for tree in read_trees(tmp_path / "some.trees")] == lines[:-1]
    with pytest.raises(ConfigError, match="split"):
        phrasebook.write_trees(1, tmp_path / "none", split="dev")
