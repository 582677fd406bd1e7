"""Trees read, written, turned into symbols and made of symbols again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.parsing.trees import (
    UNTAGGED,
    Bracket,
    Tree,
    from_symbols,
    read_trees,
    right_branching,
    sentence_of,
    to_symbols,
    tree_pairs,
    words_of,
    write_tree,
)

DOG = "(TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .)))"
SYMBOLS = "(S (NP DT NN )NP (VP VBZ )VP . )S"
TREE = Tree(
    ("The", "dog", "barks", "."), ("DT", "NN", "VBZ", "."),
    (Bracket("S", 0, 4), Bracket("NP", 0, 2), Bracket("VP", 2, 3)),
)  # fmt: skip


def trees_in(folder: Path, text: str) -> list[Tree]:
    path = folder / "some.trees"
    path.write_bytes(text.encode())
    return list(read_trees(path))


def is_well_formed(tree: Tree) -> bool:
    """Every bracket holds a word, and two either nest or share none; opened in order, outermost first."""
    spans = [(bracket.start, -bracket.end) for bracket in tree.brackets]
    nested = all(
        a.end <= b.start or b.end <= a.end for i, a in enumerate(tree.brackets) for b in tree.brackets[i + 1 :]
    )
    inside = all(0 <= bracket.start < bracket.end <= len(tree.words) for bracket in tree.brackets)
    return nested and inside and spans == sorted(spans) and len(tree.tags) == len(tree.words)


def test_a_tree_is_read_and_written(tmp_path: Path) -> None:
    assert trees_in(tmp_path, DOG) == [TREE]
    assert write_tree(TREE) == DOG


def test_a_tree_may_take_several_lines_and_a_line_hold_several_trees(tmp_path: Path) -> None:
    spread = "\n\n" + DOG.replace(" (", "\n  (").replace("NN dog", "NN\r\n\tdog") + DOG + " " + DOG
    assert trees_in(tmp_path, spread) == [TREE] * 3


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.trees.gz"
    path.write_bytes(gzip.compress(DOG.encode()))
    assert list(read_trees(path)) == [TREE]


@pytest.mark.parametrize("root", ["", "S1", "ROOT"])
def test_a_root_of_another_name_is_the_root_too(tmp_path: Path, root: str) -> None:
    assert trees_in(tmp_path, DOG.replace("TOP", root)) == [TREE]


def test_a_tree_without_a_root_gets_one(tmp_path: Path) -> None:
    assert trees_in(tmp_path, DOG.removeprefix("(TOP ")[:-1]) == [TREE]
    assert trees_in(tmp_path, "(NN dog)") == [Tree(("dog",), ("NN",), ())]


def test_only_the_outermost_root_is_left_out(tmp_path: Path) -> None:
    (tree,) = trees_in(tmp_path, "(TOP (TOP (NN dog)))")
    assert tree.brackets == (Bracket("TOP", 0, 1),)


def test_traces_and_functions_are_left_out(tmp_path: Path) -> None:
    text = "( (S (NP-SBJ-1 (PRP I)) (VP (VBD said) (SBAR (-NONE- 0) (S=2 (-NONE- *T*-1))))))"
    assert [write_tree(tree) for tree in trees_in(tmp_path, text)] == ["(TOP (S (NP (PRP I)) (VP (VBD said))))"]


def test_round_brackets_are_escaped_in_files_alone(tmp_path: Path) -> None:
    text = "(TOP (NP (-LRB- -LRB-) (NN a-LRB-1-RRB-) (-RRB- -RRB-)))"
    (tree,) = trees_in(tmp_path, text)
    assert tree.words == ("(", "a(1)", ")") == words_of("( a-LRB-1-RRB-   ) ")
    assert write_tree(tree) == text


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f"{DOG}\n(TOP (NP (NN dog))\n", 2, "never ends: 1 of its brackets"),
        (f"{DOG}\n(TOP\n(NP (NN dog\n", 2, "never ends: 3 of its brackets"),
        (f"{DOG}\n{DOG})\n", 2, "')' closes nothing"),
        (f"{DOG}\n\ndog\n", 3, "'dog' stands outside of brackets"),
        ("()\n", 1, "() holds no word"),
        (f"{DOG}\n(TOP)\n", 2, "(TOP) holds no word"),
        ("(TOP (S (NP (DT the)\n(NN))))", 2, "(NN) holds no word"),
        ("(TOP (-NONE- *))", 1, "nothing but traces"),
        ("(TOP (NP (NN two\nwords)))", 2, "a leaf of two words, (NN two words)"),
        ("(TOP (NP (NN dog) barks))", 1, "'barks' has no tag"),
        ("(TOP (NP dog (NN cat)))", 1, "a word and a bracket"),
        ("(TOP (NP ((NN cat))))", 1, "without a label"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(DataError) as caught:
        trees_in(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'some.trees'}:{line}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_endless_nest_is_read(tmp_path: Path) -> None:
    text = "(TOP " + "(S " * 2_000 + "(NN dog)" + ")" * 2_001
    (tree,) = trees_in(tmp_path, text)
    assert len(tree.brackets) == 2_000
    assert write_tree(tree) == text
    assert from_symbols(to_symbols(tree), tree.words) == (tree, ())


def test_a_tree_and_its_sentence_become_lines(tmp_path: Path) -> None:
    trees_in(tmp_path, DOG)
    assert list(tree_pairs(tmp_path / "some.trees")) == [("The dog barks .", SYMBOLS)]


@pytest.mark.parametrize(
    ("symbols", "tree", "repairs"),
    [
        (SYMBOLS, DOG, ()),
        ("(S (NP DT NN (VP VBZ )VP . )S", "(TOP (S (NP (DT The) (NN dog) (VP (VBZ barks)) (. .))))",
         ("a bracket that is not closed",)),
        ("(S (NP DT NN )NP )NP (VP VBZ )VP . )S )S", DOG, ("a bracket that closes nothing",)),
        ("(S (NP DT NN )NP (PP )PP (VP VBZ )VP . )S", DOG, ("a constituent without words",)),
        ("(S (NP DT NN )NP (VP VBZ )VP )S", "(TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks))) (XX .))",
         ("a word missing",)),
        ("(S (NP DT NN )NP (VP VBZ )VP . . )S NN", DOG, ("a word too many",)),
        ("(S (NP DT NN )NP (VP VBZ", "(TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks) (XX .))))",
         ("a bracket that is not closed", "a word missing")),
        ("(NP DT NN )NP", "(TOP (NP (DT The) (NN dog)) (XX barks) (XX .))", ("a word missing",)),
        ("( ) (( (NP-SBJ -NONE- N(N XX\n0 \u2047 (S (NP DT NN )NP (VP VBZ )VP . )S", DOG,
         ("not a symbol of a tree", "a bracket that closes nothing")),
        ("", "(TOP (XX The) (XX dog) (XX barks) (XX .))", ("a word missing",)),
    ],
)  # fmt: skip
def test_any_symbols_become_a_tree(symbols: str, tree: str, repairs: tuple[str, ...]) -> None:
    rebuilt = from_symbols(symbols.split(" "), TREE.words)
    assert write_tree(rebuilt.tree) == tree
    assert set(rebuilt.repairs) == set(repairs) | ({"not a symbol of a tree"} if not symbols else set())


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
SENTENCES = st.lists(WORDS, max_size=25).map(" ".join).map(words_of).filter(len)
NAMES = st.sampled_from(["S", "NP", "VP", "X", "-LRB-", "TOP", "NP-SBJ", "-NONE-", "("])
SOME_SYMBOLS = st.lists(NAMES.map("({}".format) | NAMES.map("){}".format) | NAMES | st.text(max_size=4), max_size=60)


@given(SOME_SYMBOLS, SENTENCES)
def test_whatever_is_decoded_a_tree_over_exactly_the_words_is_made(
    tmp_path_factory: pytest.TempPathFactory, symbols: list[str], words: tuple[str, ...]
) -> None:
    tree, repairs = from_symbols(symbols, words)
    assert tree.words == words
    assert is_well_formed(tree)
    assert (not repairs) == (to_symbols(tree) == symbols)
    line = write_tree(tree)
    assert "\n" not in line
    path = tmp_path_factory.getbasetemp() / "property.trees"
    path.write_bytes(line.encode() + b"\n")
    assert list(read_trees(path)) == [tree]  # an independent judge: what is written can be read


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    words = draw(SENTENCES)
    symbols = draw(st.lists(st.sampled_from(["(S", "(NP", ")S", ")NP", "NN", "UH", "-LRB-"]), max_size=80))
    return from_symbols(symbols, words).tree


@given(trees())
def test_a_tree_comes_back_from_its_symbols_untouched(tree: Tree) -> None:
    assert from_symbols(to_symbols(tree), tree.words) == (tree, ())
    assert words_of(sentence_of(tree.words)) == tree.words


def test_right_branching() -> None:
    assert write_tree(right_branching(("a", "b", "c"))) == f"(TOP (S ({UNTAGGED} a) (VP (XX b) (XX c))))"
    assert right_branching(("a",), ("NN",)).brackets == (Bracket("S", 0, 1),)
    assert right_branching(("a", "b"), label="X").brackets == (Bracket("S", 0, 2),)
