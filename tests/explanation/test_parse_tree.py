"""Drawn trees: where things stand, and which brackets are marked."""

from __future__ import annotations

from dragoman.explanation.parse_tree import layout, parse_trees, rooted
from dragoman.explanation.style import ORANGE, drawn
from dragoman.parsing.trees import Bracket, right_branching, tree_of

GOLD = tree_of("(TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .)))")


def marked(figure: object) -> list[list[str]]:
    return [[t.get_text() for t in axes.texts if t.get_color() == ORANGE] for axes in figure.axes]  # type: ignore[attr-defined]


def test_parents_stand_above_and_between_their_children() -> None:
    where = layout(GOLD)
    assert where.parents == [None, 0, 0, 1, 1, 2, 0]
    assert [height for _, height in where.nodes] == [2, 1, 1]
    assert where.leaves == sorted(where.leaves)
    assert where.nodes[1][0] == (where.leaves[0] + where.leaves[1]) / 2
    assert where.nodes[2][0] == where.leaves[2]
    assert 0 < where.leaves[0] < where.leaves[-1] < where.width


def test_a_tree_without_a_bracket_around_it_gets_the_root() -> None:
    bare = GOLD._replace(brackets=GOLD.brackets[1:])
    assert rooted(bare).brackets == (Bracket("TOP", 0, 4), *GOLD.brackets[1:])
    assert rooted(GOLD) == GOLD


def test_the_right_tree_is_drawn_once_and_a_wrong_one_beside_the_gold_tree() -> None:
    assert marked(parse_trees(GOLD, GOLD)) == [[]]
    figure = parse_trees(right_branching(GOLD.words), GOLD)
    assert marked(figure) == [["VP", "VP"], ["NP", "VP"]]
    assert drawn(figure, ".svg").startswith(b"<svg")
    assert drawn(parse_trees(GOLD._replace(brackets=()), GOLD), ".png")[1:4] == b"PNG"
    assert marked(parse_trees(GOLD._replace(brackets=()), GOLD)) == [[], ["S", "NP", "VP"]]
