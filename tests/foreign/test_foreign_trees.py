"""EVALB's brackets, of its own sample and of damaged trees, and tensor2tensor's linearisation of trees.

``recorded/trees.json`` holds 60 trees of the phrasebook, each with a damaged one, what EVALB's C program counted
(right, gold and found brackets, with COLLINS.prm), and what tensor2tensor's function wrote.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError
from dragoman.parsing import brackets, trees
from peers import DATA

Suite = Callable[[str, int], Any]

RECORDED = json.loads((Path(__file__).parent / "recorded/trees.json").read_text(encoding="utf-8"))
GOLD = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
CLAUSE = " (A (P this)) (B (Q is) (A (R a) (T test)))"
ERROR = None
"""EVALB counts an error, or skips an empty line; we refuse the pair."""

SAMPLE = [  # what is scored, EVALB's right, gold and found brackets, and the gold tree if it is another
    (GOLD, (4, 4, 4), GOLD),
    ("(S (A (P this)) (B (Q is) (C (R a) (T test))))", (3, 4, 4), GOLD),
    ("(S (A (P this)) (B (Q is) (A (R a) (U test))))", (4, 4, 4), GOLD),
    ("(S (C (P this)) (B (Q is) (A (R a) (U test))))", (3, 4, 4), GOLD),
    ("(S (A (P this)) (B (Q is) (R a) (A (T test))))", (3, 4, 4), GOLD),
    ("(S (A (P this) (Q is)) (A (R a) (T test)))", (2, 4, 3), GOLD),
    ("(S (P this) (Q is) (R a) (T test))", (1, 4, 1), GOLD),
    ("(P this) (Q is) (R a) (T test)", (0, 4, 0), GOLD),
    ("(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", (4, 4, 5), GOLD),
    ("(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))", (4, 4, 8), GOLD),
    ("", ERROR, GOLD),
    ("(S (A (P this)) (B (Q was) (A (A (R a) (T test)))))", ERROR, GOLD),
    ("(S (A (P this)) (B (Q is) (U not) (A (A (R a) (T test)))))", ERROR, GOLD),
    ("", ERROR, GOLD),
    (f"(TOP {GOLD})", (4, 4, 4), GOLD),
    ("(S (A (P this)) (NONE *) (B (Q is) (A (R a) (T test))))", ERROR, GOLD),
    ("(S (A (P this)) (S (NONE abc) (A (NONE *))) (B (Q is) (A (R a) (T test))))", ERROR, GOLD),
    ("(S (A (P this)) (B (Q is) (A (R a) (TT test))))", (4, 4, 4), GOLD),
    ("(S (A (P This)) (B (Q is) (A (R a) (T test))))", (4, 4, 4), GOLD),
    ("(S (A (P That)) (B (Q is) (A (R a) (T test))))", ERROR, GOLD),
    (GOLD, (4, 4, 4), GOLD.replace("(A (P this))", "(A-SBJ-1 (P this))").replace("(B ", "(B-WHATEVER ")),
    (f"(S{CLAUSE * 11})", (34, 34, 34), f"(S{CLAUSE * 11})"),
    (f"(S{CLAUSE} (-NONE- *))", (4, 4, 4), f"(S{CLAUSE} (-NONE- *))"),
    (f"(S{CLAUSE} (: *))", (4, 4, 4), f"(S{CLAUSE} (: *))"),
]
EXCEPTIONS = {
    8: "the line holds four trees and not one; EVALB takes it for a tree without brackets, and we refuse it",
    19: "sample.prm lets EVALB take This for this (EQ_WORD), which COLLINS.prm does not; we count as with COLLINS.prm",
}


def counted(gold: str, found: str) -> tuple[int, ...] | None:
    """Right, gold and found brackets; None if the pair is refused."""
    try:
        counts = brackets.count(trees.tree_of(gold), trees.tree_of(found))
    except DataError:
        return ERROR
    assert counts is not None
    return tuple(counts)


def test_the_sample_of_evalb(suite: Suite) -> None:
    values = suite("evalb-sample", 24)
    for row, (found, expected, gold) in enumerate(SAMPLE, 1):
        if row in EXCEPTIONS:
            values.differs(f"row {row}", counted(gold, found), expected, EXCEPTIONS[row])
        else:
            values.equal(f"row {row}", counted(gold, found), expected)


def test_damaged_trees_as_evalb_counts_them(suite: Suite) -> None:
    values = suite("evalb-damaged", len(RECORDED))
    for row in RECORDED:
        values.equal(row["damaged"], counted(row["gold"], row["damaged"]), tuple(row["evalb"]))


def in_their_symbols(tree: trees.Tree) -> str:
    """Our symbols as tensor2tensor writes them: ``(NP`` is NP, ``)NP`` is /NP."""
    return " ".join(
        re.sub(r"^\((?=.)|^\)(?=.)", lambda m: "" if m[0] == "(" else "/", s) for s in trees.to_symbols(tree)
    )


def test_trees_as_tensor2tensor_writes_them(suite: Suite) -> None:
    values = suite("t2t-trees", len(RECORDED))
    for row in RECORDED:
        values.equal(row["gold"], in_their_symbols(trees.tree_of(row["gold"])), row["t2t"])


@pytest.mark.foreign
def test_evalbs_program_on_a_treebank(suite: Suite, tmp_path: Path) -> None:
    """Each tree of a treebank against a damaged one, with the same tags in both."""
    program = os.environ.get("EVALB")
    if program is None or DATA is None or not (DATA / "craft/dev.clean.trees").is_file():
        suite("evalb-program", 1).not_tried(
            "needs EVALB's program and a treebank: EVALB=path DATA=folder with craft/dev.clean.trees"
        )
    chance, golds = random.Random(3), list(trees.read_trees(DATA / "craft/dev.clean.trees"))
    damaged = [damage(tree, chance) for tree in golds]
    for name, listed in (("gold", golds), ("damaged", damaged)):
        (tmp_path / name).write_text("".join(f"{trees.write_tree(tree)}\n" for tree in listed), encoding="utf-8")
    settings = Path(program).with_name("COLLINS.prm")
    report = subprocess.run(
        [program, "-p", settings, "gold", "damaged"], cwd=tmp_path, capture_output=True, text=True, errors="replace"
    ).stdout.split("=== Summary")[0]
    rows = [line.split() for line in report.split("\n") if re.match(r"\s*\d+\s+\d+\s+0\s", line)]
    values = suite("evalb-program", len(rows))
    for row in rows:
        number, expected = int(row[0]) - 1, tuple(map(int, row[5:8]))
        counts = brackets.count(golds[number], damaged[number])
        values.equal(f"tree {number + 1}", tuple(counts or (0, 0, 0)), expected)


def damage(tree: trees.Tree, chance: random.Random) -> trees.Tree:
    """A tree with brackets taken out and put in; words and tags stay."""
    symbols = list(trees.to_symbols(tree))
    for _ in range(max(1, len(symbols) // 8)):
        place = chance.randrange(len(symbols))
        if symbols[place][0] in "()" and chance.random() < 0.5:
            del symbols[place]
        else:
            symbols.insert(place, chance.choice("()") + chance.choice(["NP", "VP", "PP", "S", "ADVP", "PRT", "X"]))
    return trees.from_symbols(symbols, tree.words).tree
