"""Constituency trees: read from Penn-style files, written as symbols, and rebuilt from any sequence of symbols.

    (TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .)))      a tree; line breaks inside it do not matter
    The dog barks .                                              its sentence, as the model reads it
    (S (NP DT NN )NP (VP VBZ )VP . )S                            its symbols, as the model writes them

Symbols are delexicalised: each word is replaced by its tag, as in the authors' own program
(https://github.com/tensorflow/tensor2tensor, data_generators/wsj_parsing.py), after the linearisation of
https://arxiv.org/abs/1412.7449. From any decoded sequence ``from_symbols`` makes a tree over exactly the given words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.data.corpus import read_lines
from dragoman.errors import DataError

ROOT = "TOP"
ROOTS = ("", "TOP", "S1", "ROOT")
"""Labels of an outermost bracket that is not a constituent; it is written as ``ROOT``."""
TRACE = "-NONE-"
UNTAGGED = "XX"
"""Tag of a word for which the model decoded none."""
UNKNOWN = "\u2047"
"""SentencePiece decodes the unknown token as this."""

_TOKENS = re.compile(r"[()]|[^\s()]+")
_NAME = re.compile(r"[^\s()]+")


class Bracket(NamedTuple):
    """A constituent over the words ``start`` to ``end - 1``; it has at least one word."""

    label: str
    start: int
    end: int


class Tree(NamedTuple):
    """A sentence, the tag of each word, and its constituents without the root, in the order in which they open."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    brackets: tuple[Bracket, ...]


class Rebuilt(NamedTuple):
    """A tree rebuilt from symbols, and the repairs that it needed; none if the symbols were a valid tree."""

    tree: Tree
    repairs: tuple[str, ...]


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a sentence, which are separated by spaces; -LRB- and -RRB- become round brackets."""
    return tuple(map(_bare, text.split()))


def sentence_of(words: Sequence[str]) -> str:
    """Join words by single spaces: the sentence as the model reads it."""
    return " ".join(words)


def to_symbols(tree: Tree) -> list[str]:
    """Return the symbols of a tree: its labelled brackets, and for each word its tag."""
    return [symbol for symbol, _ in _walk(tree)]


def from_symbols(symbols: Sequence[str], words: Sequence[str]) -> Rebuilt:
    """Rebuild a tree over exactly ``words`` from any sequence of symbols.

    Tags are assigned to the words in order; surplus tags are dropped. A closing bracket closes the innermost open
    bracket of its label, and all inside that; if there is none, it is dropped. At the end every open bracket is
    closed. Words that are left over become the last words of the innermost bracket that was still open, or of the
    root. Constituents without words are dropped.

    Args:
        symbols: The symbols that the model wrote, without eos.
        words: The words of the sentence, as from ``words_of``; at least one.
    """
    building = _Building()
    repairs: dict[str, None] = {}  # an ordered set
    for symbol in symbols:
        kind, name = symbol[:1], symbol[1:]
        if kind == "(" and _NAME.fullmatch(name) and name == _plain_label(name):
            building.open(name)
        elif kind == ")" and name in (label for label, _ in building.stack):
            while building.close() != name:
                repairs["a bracket that is not closed"] = None
        elif kind == ")":
            repairs["a bracket that closes nothing"] = None
        elif not _NAME.fullmatch(symbol) or symbol in (TRACE, UNKNOWN):
            repairs["not a symbol of a tree"] = None
        elif len(building.tags) == len(words):
            repairs["a word too many"] = None
        else:
            building.tags.append(symbol)
    if building.stack:
        repairs["a bracket that is not closed"] = None
    if len(building.tags) < len(words):
        repairs["a word missing"] = None
        building.tags += [UNTAGGED] * (len(words) - len(building.tags))
    while building.stack:
        building.close()
    if building.n_empty:
        repairs["a constituent without words"] = None
    return Rebuilt(building.tree(words), tuple(repairs))


def right_branching(words: Sequence[str], tags: Sequence[str] | None = None, label: str = "VP") -> Tree:
    """Return the tree in which each word is bracketed with all that follow it: the baseline for English.

    Args:
        label: Label of every bracket but the outermost, which is S. VP is correct more often than any other label.
    """
    n = len(words)
    brackets = (Bracket(label if start else "S", start, n) for start in range(max(1, n - 1)))
    return Tree(tuple(words), tuple(tags or [UNTAGGED] * n), tuple(brackets))


def write_tree(tree: Tree) -> str:
    """Write a tree on one line, as in ``(TOP (NP (DT the) (NN dog)))``; ``()`` in a word become -LRB- and -RRB-."""
    parts = [f"({ROOT}"]
    for token, word in _walk(tree):
        if word is not None:
            parts.append(f" ({token} {tree.words[word].replace('(', '-LRB-').replace(')', '-RRB-')})")
        else:
            parts.append(f" {token}" if token[0] == "(" else ")")
    return "".join(parts) + ")"


def read_trees(path: Path | str) -> Iterator[Tree]:
    """Yield the trees of a file, plain, ``.gz`` or ``.zst``; a tree may take several lines.

    An outermost bracket with a label of ``ROOTS`` is the root and not a constituent. Traces (-NONE-) are left out,
    with the constituents that hold nothing else. Function tags are left out, too: NP-SBJ becomes NP.

    Raises:
        DataError: The file cannot be read, or it is not a file of trees; with file and line. Brackets do not match, a
            bracket holds no word, a leaf has two words, or there is text outside of brackets.
    """
    reader = _Reader()
    for number, line in enumerate(read_lines(path), 1):
        for token in _TOKENS.findall(line):
            problem = reader.take(token, number)
            if problem:
                raise DataError(f"{path}:{number}: {problem}")
            if reader.whole is not None:
                yield reader.whole
                reader = _Reader()
    if reader.nodes:
        raise DataError(
            f"{path}:{reader.first_line}: the tree that begins here never ends: {len(reader.nodes)} of its brackets "
            "are not closed. Close them, or remove the tree"
        )


def tree_of(text: str) -> Tree:
    """Return the one tree in ``text``, as ``write_tree`` wrote it.

    Raises:
        DataError: There is no tree in it, or more than one.
    """
    reader = _Reader()
    for token in _TOKENS.findall(text):
        problem = "more than one tree" if reader.whole is not None else reader.take(token, 1)
        if problem:
            raise DataError(problem)
    if reader.whole is None:
        raise DataError("the tree never ends: close its brackets")
    return reader.whole


def tree_pairs(path: Path | str) -> Iterator[tuple[str, str]]:
    """Yield the sentence and the symbols of each tree of a file, each as a line of text.

    Raises:
        DataError: As ``read_trees``.
    """
    for tree in read_trees(path):
        yield sentence_of(tree.words), " ".join(to_symbols(tree))


def _walk(tree: Tree) -> Iterator[tuple[str, int | None]]:
    """Yield the symbols of a tree in order, each tag with the index of its word, each bracket with None."""
    opening = iter(tree.brackets)
    upcoming = next(opening, None)
    stack: list[Bracket] = []
    for i, tag in enumerate(tree.tags):
        while upcoming is not None and upcoming.start == i:
            yield f"({upcoming.label}", None
            stack.append(upcoming)
            upcoming = next(opening, None)
        yield tag, i
        while stack and stack[-1].end == i + 1:
            yield f"){stack.pop().label}", None


class _Building:
    """A tree under construction, from left to right."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.stack: list[tuple[str, int]] = []  # open brackets: label, and place in ``_brackets``
        self.n_empty = 0
        self._brackets: list[Bracket] = []

    def open(self, label: str) -> None:
        self.stack.append((label, len(self._brackets)))
        self._brackets.append(Bracket(label, len(self.tags), len(self.tags)))

    def close(self) -> str:
        label, place = self.stack.pop()
        self._brackets[place] = self._brackets[place]._replace(end=len(self.tags))
        self.n_empty += self._brackets[place].start == len(self.tags)
        return label

    def tree(self, words: Iterable[str]) -> Tree:
        return Tree(tuple(words), tuple(self.tags), tuple(b for b in self._brackets if b.start < b.end))


class _Node:
    """A bracket of a file that is still open."""

    def __init__(self) -> None:
        self.label = ""
        self.word = ""
        self.has_nodes = False
        self.is_opened = False  # True if the tree under construction has this bracket


class _Reader:
    """Reads one tree, token by token."""

    def __init__(self) -> None:
        self.first_line = 0
        self.nodes: list[_Node] = []
        self.whole: Tree | None = None
        self._words: list[str] = []
        self._building = _Building()

    def take(self, token: str, line: int) -> str:
        """Read a bracket, a label or a word; return the problem with it, or "" if there is none."""
        if not self.nodes and token != "(":
            what = "')' closes nothing" if token == ")" else f"{token[:40]!r} stands outside of brackets"
            return f"{what}: a tree looks like (TOP (NP (DT the) (NN dog))); remove it, or put a '(' before it"
        if token == "(":
            return self._open(line)
        node = self.nodes[-1]
        if token == ")":
            return self._close(node)
        if node.has_nodes:
            return f"the word {token[:40]!r} has no tag of its own: write (TAG {token[:40]})"
        if not node.label:
            node.label = token
        elif node.word:
            return f"a leaf of two words, ({node.label} {node.word[:40]} {token[:40]}): give each its own tag"
        else:
            node.word = _bare(token)
        return ""

    def _open(self, line: int) -> str:
        self.first_line = self.first_line or line
        if self.nodes:
            node = self.nodes[-1]
            if node.word:
                return f"({node.label} {node.word[:40]} holds a word and a bracket: give the word its own tag"
            if not node.label and len(self.nodes) > 1:
                return "a bracket without a label: only the outermost may have none"
            self._enter(node)
        self.nodes.append(_Node())
        return ""

    def _enter(self, node: _Node) -> None:
        """Note that a bracket holds brackets: it is a constituent, unless it is the root."""
        if not node.has_nodes:
            node.has_nodes = True
            node.is_opened = len(self.nodes) > 1 or node.label not in ROOTS
            if node.is_opened:
                self._building.open(_plain_label(node.label))

    def _close(self, node: _Node) -> str:
        if not node.has_nodes and not node.word:
            return f"({node.label}) holds no word: remove it, or write a leaf as (TAG word)"
        if node.is_opened:
            self._building.close()
        elif node.word and node.label != TRACE:
            self._words.append(node.word)
            self._building.tags.append(node.label)
        self.nodes.pop()
        if not self.nodes:
            if not self._words:
                return "an empty tree: it holds nothing but traces; remove it"
            self.whole = self._building.tree(self._words)
        return ""


def _bare(word: str) -> str:
    """Return a word with -LRB- and -RRB- replaced by round brackets."""
    return word.replace("-LRB-", "(").replace("-RRB-", ")") if "-" in word else word


def _plain_label(label: str) -> str:
    """Return a label without function tags and numbers: NP for NP-SBJ-1 and NP=2."""
    return re.split("[-=]", label, maxsplit=1)[0] or label
