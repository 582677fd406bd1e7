"""Constituency trees: read from Penn-style files, written as sequences of symbols, and made of any sequence again.

    (TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .)))      a tree; line breaks inside it do not matter
    The dog barks .                                              its sentence, as the model reads it
    (S (NP DT NN )NP (VP VBZ )VP . )S                            its symbols, as the model writes them

Symbols are delexicalised: each word is its tag, as in the authors' own program
(https://github.com/tensorflow/tensor2tensor, data_generators/wsj_parsing.py), after the linearisation of
https://arxiv.org/abs/1412.7449. Whatever is decoded, ``from_symbols`` makes a tree of it over exactly the words that
were given.
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
"""Labels of an outermost bracket that says nothing; it is written as ``ROOT``."""
TRACE = "-NONE-"
UNTAGGED = "XX"
"""The tag of a word for which none was decoded."""
UNKNOWN = "\u2047"
"""As SentencePiece decodes what it does not know."""

_TOKENS = re.compile(r"[()]|[^\s()]+")
_NAME = re.compile(r"[^\s()]+")


class Bracket(NamedTuple):
    """A constituent over the words ``start`` to ``end - 1``, of which there is at least one."""

    label: str
    start: int
    end: int


class Tree(NamedTuple):
    """A sentence, the tag of each word, and its constituents in the order in which they open, without the root."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    brackets: tuple[Bracket, ...]


class Rebuilt(NamedTuple):
    """A tree made of symbols, and what had to be done to them; nothing if they were a tree."""

    tree: Tree
    repairs: tuple[str, ...]


def words_of(text: str) -> tuple[str, ...]:
    """The words of a sentence: what stands between spaces, round brackets as they are."""
    return tuple(map(_bare, text.split()))


def sentence_of(words: Sequence[str]) -> str:
    """A sentence as the model reads it: its words with single spaces between them."""
    return " ".join(words)


def to_symbols(tree: Tree) -> list[str]:
    """The symbols of a tree: brackets with their label, and for each word its tag."""
    return [symbol for symbol, _ in _walk(tree)]


def from_symbols(symbols: Sequence[str], words: Sequence[str]) -> Rebuilt:
    """A tree over exactly ``words``, whatever ``symbols`` are.

    Tags are those of the words, in order; those that are too many are left out. A bracket closes the innermost open one
    of its label, and all inside that; one that closes nothing is left out. At the end all is closed; words that are
    left then stand last in the innermost constituent that was still open, or under the root. A constituent without
    words is left out.

    Args:
        symbols: As the model wrote them, without eos.
        words: Of the sentence, as from ``words_of``; at least one.
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
            repairs["no symbol of a tree"] = None
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
    """The tree in which each word is bracketed with all that follow it: the baseline for English.

    Args:
        label: Of each bracket, but that of the whole sentence, which is S. VP is right more often than any other.
    """
    n = len(words)
    brackets = (Bracket(label if start else "S", start, n) for start in range(max(1, n - 1)))
    return Tree(tuple(words), tuple(tags or [UNTAGGED] * n), tuple(brackets))


def write_tree(tree: Tree) -> str:
    """A tree on one line, as in ``(TOP (NP (DT the) (NN dog)))``; ``()`` in a word become -LRB- and -RRB-."""
    parts = [f"({ROOT}"]
    for token, word in _walk(tree):
        if word is not None:
            parts.append(f" ({token} {tree.words[word].replace('(', '-LRB-').replace(')', '-RRB-')})")
        else:
            parts.append(f" {token}" if token[0] == "(" else ")")
    return "".join(parts) + ")"


def read_trees(path: Path | str) -> Iterator[Tree]:
    """Yield the trees of a file, plain, ``.gz`` or ``.zst``; a tree may take several lines.

    An outermost bracket with a label of ``ROOTS`` is the root and no constituent. Traces (-NONE-) are left out, with
    the constituents that hold nothing else, and so are functions: NP-SBJ is NP.

    Raises:
        DataError: As ``read_lines``; or what is no tree, with file and line: brackets that do not match, one that holds
            no word, a leaf of two words, text outside of brackets.
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
    """The one tree in ``text``, as ``write_tree`` wrote it.

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
    """Yield for each tree of a file its sentence and its symbols, each as a line of text.

    Raises:
        DataError: As ``read_trees``.
    """
    for tree in read_trees(path):
        yield sentence_of(tree.words), " ".join(to_symbols(tree))


def _walk(tree: Tree) -> Iterator[tuple[str, int | None]]:
    """What a tree is made of, in order: ``(label`` or ``)label`` with None, or a tag with the number of its word."""
    opening = iter(tree.brackets)
    coming = next(opening, None)
    stack: list[Bracket] = []
    for i, tag in enumerate(tree.tags):
        while coming is not None and coming.start == i:
            yield f"({coming.label}", None
            stack.append(coming)
            coming = next(opening, None)
        yield tag, i
        while stack and stack[-1].end == i + 1:
            yield f"){stack.pop().label}", None


class _Building:
    """A tree while it comes into being, from left to right."""

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
    """An open bracket of a file."""

    def __init__(self) -> None:
        self.label = ""
        self.word = ""
        self.has_nodes = False
        self.is_opened = False  # in the tree that is built


class _Reader:
    """Reads one tree, token by token."""

    def __init__(self) -> None:
        self.first_line = 0
        self.nodes: list[_Node] = []
        self.whole: Tree | None = None
        self._words: list[str] = []
        self._building = _Building()

    def take(self, token: str, line: int) -> str:
        """Take a bracket, a label or a word; returns what is wrong, nothing if all is well."""
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
        """Of a bracket that holds brackets: it is a constituent, unless it is the root."""
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
    """A word with its round brackets as they are."""
    return word.replace("-LRB-", "(").replace("-RRB-", ")") if "-" in word else word


def _plain_label(label: str) -> str:
    """A label without function and number: NP-SBJ-1 and NP=2 are NP."""
    return re.split("[-=]", label, maxsplit=1)[0] or label
