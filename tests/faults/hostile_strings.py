"""Adversarial texts for a regular expression, made from its own parse tree.

Each repeat of the pattern is reached by a sample of all that stands before it, and pumped with samples of its body and
with every kind of character that the body accepts. Whole samples, literals, single characters and pairs are pumped too.
Then comes an ending that lets the rest of the pattern fail. A text is ``head + pump * k + tail``.
"""

from __future__ import annotations

import re._constants as sre
import re._parser as parser
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

LONG = 8
"""Smallest limit of a repeat that is pumped; what repeats less often cannot take long."""

REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
USUAL = "aA0_ \n\t.,:;-<>/\"'()[]{}=&!\u00e9\u4e2d"
ENDINGS = ("", "\x00", "\n", "a", " ", ">", "x!")


class Recipe(NamedTuple):
    """A text of any length: ``head``, then ``pump`` again and again, then ``tail``."""

    head: str
    pump: str
    tail: str

    def text(self, size: int) -> str:
        """Return a text of about ``size`` characters."""
        return self.head + self.pump * max(1, (size - len(self.head) - len(self.tail)) // len(self.pump)) + self.tail


def recipes(pattern: str | bytes, flags: int) -> list[Recipe]:
    """Return all recipes for a pattern, those of its repeats first, each once."""
    tree = parser.parse(pattern, flags)
    letters = _kinds_of_characters(tree)
    result: dict[Recipe, None] = {}
    for recipe in (*_of_repeats(tree, letters), *_of_wholes(tree, letters)):
        if recipe.pump and len(recipe.head) + len(recipe.pump) + len(recipe.tail) < 200:
            result.setdefault(recipe)
    return list(result)


def _accepts(node: tuple[Any, Any], character: str) -> bool:
    """True if a node that takes one character takes this one."""
    kind, value = node
    code = ord(character)
    if kind is sre.LITERAL:
        return code == value
    if kind is sre.NOT_LITERAL:
        return code != value
    if kind is sre.ANY:
        return character != "\n"
    if kind is sre.RANGE:
        return value[0] <= code <= value[1]
    if kind is sre.CATEGORY:
        is_member = {"DIGIT": character.isdecimal(), "SPACE": character.isspace()}
        name = str(value).removeprefix("CATEGORY_")
        of_word = character.isalnum() or character == "_"
        return is_member.get(name.removeprefix("NOT_"), of_word) != name.startswith("NOT_")
    if kind is sre.IN:
        negated = value[0][0] is sre.NEGATE
        return any(_accepts(part, character) for part in value[negated:]) != negated
    return False


def _takes_one(node: tuple[Any, Any]) -> bool:
    return node[0] in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all nodes of a parse tree."""
    for node in tree:
        yield node
        for branch in _children(node):
            yield from _nodes(branch)


def _children(node: tuple[Any, Any]) -> list[Any]:
    """Return the parse trees inside a node: the alternatives of a branch, the content of a group."""
    kind, value = node
    if kind is sre.BRANCH:
        return list(value[1])
    if kind is sre.SUBPATTERN:
        return [value[3]]
    if kind in REPEATS:
        return [value[2]]
    if kind is sre.ATOMIC_GROUP:
        return [value]
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if kind is sre.GROUPREF_EXISTS:
        return [part for part in value[1:] if part]
    return []


def _kinds_of_characters(tree: Any) -> list[str]:
    """Return one character of each kind that the pattern tells apart."""
    single = [node for node in _nodes(tree) if _takes_one(node)]
    candidates = list(USUAL)
    for kind, value in single:
        if kind in (sre.LITERAL, sre.NOT_LITERAL):
            candidates.insert(0, chr(value))
        elif kind is sre.IN:
            for part, inner in value:
                if part is sre.LITERAL:
                    candidates.append(chr(inner))
                elif part is sre.RANGE:
                    candidates.append(chr(inner[0]))
    kinds: dict[tuple[bool, ...], str] = {}
    for character in candidates:
        kinds.setdefault(tuple(_accepts(node, character) for node in single), character)
    return list(kinds.values())


def _samples(tree: Any, letters: list[str], full: bool) -> list[str]:
    """Return some texts that a tree matches; ``full`` takes optional parts and repeats once more."""
    results = [""]
    groups: dict[int, str] = {}
    for node in tree:
        parts = _of_node(node, letters, full, groups)[:4]
        results = [left + right for left, right in product(results, parts)][:6] if parts else results
        if node[0] is sre.SUBPATTERN and node[1][0] is not None:
            groups[node[1][0]] = parts[0] if parts else ""
    return results


def _of_node(node: tuple[Any, Any], letters: list[str], full: bool, groups: dict[int, str]) -> list[str]:
    kind, value = node
    if _takes_one(node):
        fitting = [character for character in letters if _accepts(node, character)]
        return fitting[:1] + fitting[-1:] if len(fitting) > 1 else fitting
    if kind is sre.BRANCH:
        return [text for branch in value[1] for text in _samples(branch, letters, full)[:1]]
    if kind in REPEATS:
        least, most, body = value
        times = max(least, 1 if full and most else 0)
        return [text * times for text in _samples(body, letters, full)]
    if kind is sre.GROUPREF:
        return [groups.get(value, "")]
    if kind is sre.SUBPATTERN:
        return _samples(value[3], letters, full)
    if kind is sre.ATOMIC_GROUP:
        return _samples(value, letters, full)
    if kind is sre.ASSERT and value[0] < 0:  # a look-behind: its text stands before
        return _samples(value[1], letters, full)[:1]
    return [""]


def _paths(tree: Any, letters: list[str], heads: list[str], after: list[Any]) -> Iterator[Any]:
    """Yield each long repeat with texts that lead to it, and the trees that follow it."""
    heads = list(heads)
    for i, node in enumerate(tree):
        following = [tree[i + 1 :], *after]
        if node[0] in REPEATS and node[1][1] >= LONG:
            yield heads, node, following
        inside = [[node], *following] if node[0] in REPEATS else following
        for branch in _children(node):
            yield from _paths(branch, letters, heads, inside)
        bare, full = (_samples([node], letters, more) for more in (False, True))
        heads = list(dict.fromkeys(head + part for head in heads for part in (*bare[:1], *full[:2])))[:6]


def _of_repeats(tree: Any, letters: list[str]) -> Iterator[Recipe]:
    """Yield the recipes that pump each repeat."""
    for heads, (_, (_, _, body)), following in _paths(tree, letters, [""], []):
        pumps = _samples(body, letters, False)[:3] + _samples(body, letters, True)[:4]
        if len(body) == 1 and _takes_one(body[0]):
            pumps += [character for character in letters if _accepts(body[0], character)][:8]
        after = [text for rest in following[:2] if len(rest) for text in _samples(rest, letters, True)[:2]]
        endings = dict.fromkeys((*ENDINGS[:3], *(text[:-1] for text in after if text), *ENDINGS[3:]))
        pumps = [*dict.fromkeys(filter(None, pumps))]
        for pump, ending in product(pumps, endings):
            for head in heads[-3:]:
                yield Recipe(head, pump, ending)
        for head, pump in product(heads[-3:], pumps):
            for again in (head + pump, head + pump * 2, pump + "".join(after[:1]), head):
                yield Recipe("", again, "")
                yield Recipe(head, again, "\x00")


def _of_wholes(tree: Any, letters: list[str]) -> Iterator[Recipe]:
    """Yield recipes that pump whole samples, all but the end of one, single characters and pairs."""
    make = partial(_samples, tree, letters)
    for whole in dict.fromkeys((*make(False), *make(True))):
        for pump in (whole, whole[:-1], whole[: len(whole) // 2], whole + " ", whole + "\n", whole[:-1] + " "):
            for ending in ENDINGS[:2]:
                yield Recipe("", pump, ending)
    for character in letters:
        yield from (Recipe("", character, ending) for ending in ENDINGS)
    for pair in product(letters[:16], repeat=2):
        yield Recipe("", "".join(pair), "\x00")
