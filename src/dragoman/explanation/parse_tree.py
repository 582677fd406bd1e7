"""Figures of constituency trees: words on one line, tags and constituents above them; wrong brackets are marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from dragoman.explanation.style import BLUE, INK, ORANGE, PAPER, QUIET, drawing, fit, new_figure
from dragoman.parsing.trees import ROOT, Bracket, Tree

LETTER, LEVEL = 0.088, 0.36
"""Width of a letter, and height from one level of a tree to the next, in inches."""

BELOW = 1.2
"""Height of the line of words below the tags, in levels."""


class Layout(NamedTuple):
    """Places of the parts of a tree: x in letters, height in levels; the tags of words stand on level 0."""

    width: float
    leaves: list[float]  # x of each word
    nodes: list[tuple[float, int]]  # x and height of each bracket
    parents: list[int | None]  # index of the bracket around each bracket, then around each word


def parse_trees(predicted: Tree, gold: Tree) -> Any:
    """Draw a parser's tree with its wrong brackets marked, and below it the gold tree if the two differ.

    Returns:
        The matplotlib Figure.

    Raises:
        ConfigError: matplotlib or a font is missing.
    """
    predicted, gold = rooted(predicted), rooted(gold)
    wrong, missed = _not_in(predicted, gold), _not_in(gold, predicted)
    panels = [("the parser's tree", predicted, wrong)]
    if wrong or missed:
        panels.append(("the gold tree", gold, missed))
    layouts = [layout(tree) for _, tree, _ in panels]
    top = max(height for places in layouts for _, height in places.nodes)
    with drawing(gold.words):
        figure, axes = new_figure(len(panels), 1)
        for spot, (title, tree, marked), places in zip(axes[:, 0], panels, layouts, strict=True):
            _draw(spot, tree, marked, places)
            head = max(height for _, height in places.nodes) + BELOW + 0.6  # a lower tree has its title right above it
            marks = f"{title}; marked: brackets that the other lacks" if marked else title
            spot.set_title(marks, y=head / (top + BELOW + 0.5), pad=4)
            spot.set_xlim(0, places.width)
            spot.set_ylim(-BELOW, top + 0.5)
            spot.axis("off")
        fit(figure, axes, LETTER * layouts[0].width, LEVEL * (top + BELOW + 0.5))
    return figure


def rooted(tree: Tree) -> Tree:
    """Return the tree with a bracket around all of it, which is added if it is missing."""
    n = len(tree.words)
    if tree.brackets and (tree.brackets[0].start, tree.brackets[0].end) == (0, n):
        return tree
    return tree._replace(brackets=(Bracket(ROOT, 0, n), *tree.brackets))


def layout(tree: Tree) -> Layout:
    """Place each bracket above the middle of its children; ``tree`` must have a bracket around all of it."""
    widths = [max(len(word), len(tag), 2) + 1.5 for word, tag in zip(tree.words, tree.tags, strict=True)]
    leaves = [sum(widths[:i]) + widths[i] / 2 for i in range(len(widths))]
    spans = [(bracket.start, bracket.end) for bracket in tree.brackets]
    parents = [_innermost(spans[:k], *span) for k, span in enumerate(spans)]
    parents += [_innermost(spans, i, i + 1) for i in range(len(leaves))]
    nodes = [(0.0, 0)] * len(spans)
    for k in reversed(range(len(spans))):  # children come after their parents
        below = [nodes[child] for child in range(k + 1, len(spans)) if parents[child] == k]
        below += [(leaves[i], 0) for i in range(len(leaves)) if parents[len(spans) + i] == k]
        across = [x for x, _ in below]
        nodes[k] = ((min(across) + max(across)) / 2, 1 + max(height for _, height in below))
    return Layout(sum(widths), leaves, nodes, parents)


def _innermost(spans: Sequence[tuple[int, int]], start: int, end: int) -> int | None:
    """Return the index of the innermost span around ``start`` to ``end``: the last one in ``spans``; None if none."""
    return next((k for k in reversed(range(len(spans))) if spans[k][0] <= start and end <= spans[k][1]), None)


def _not_in(tree: Tree, other: Tree) -> frozenset[int]:
    """Return the indices of the brackets that the other tree lacks; of equal brackets the inner ones are lacking."""
    unmatched = Counter(other.brackets)
    wrong = []
    for place, bracket in enumerate(tree.brackets):
        if not unmatched[bracket] and bracket.label != ROOT:
            wrong.append(place)
        unmatched[bracket] -= unmatched[bracket] > 0
    return frozenset(wrong)


def _draw(axes: Any, tree: Tree, marked: frozenset[int], places: Layout) -> None:
    """Draw a tree with its ``marked`` brackets in orange."""
    spots = [*places.nodes, *((x, 0) for x in places.leaves)]
    for child, parent in enumerate(places.parents):
        if parent is not None:
            (x, y), (above_x, above_y) = spots[child], places.nodes[parent]
            colour, bar = ORANGE if child in marked else QUIET, above_y - 0.48
            axes.plot([x, x, above_x, above_x], [y + 0.24, bar, bar, above_y - 0.24], color=colour, linewidth=0.9)
    box = dict(facecolor=PAPER, edgecolor="none", pad=0.6)
    for k, (x, y) in enumerate(places.nodes):
        colour, weight = (ORANGE, "bold") if k in marked else (BLUE, "normal")
        axes.text(x, y, tree.brackets[k].label, ha="center", va="center", fontsize=9, bbox=box,
                  color=colour, fontweight=weight)  # fmt: skip
    for x, word, tag in zip(places.leaves, tree.words, tree.tags, strict=True):
        axes.text(x, 0, tag, ha="center", va="center", fontsize=8, color=QUIET)
        axes.text(x, -0.75, word, ha="center", va="center", fontsize=9.5, color=INK)
