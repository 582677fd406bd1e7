"""Pairs of tags: which closing tag ends which element.

pairs_of(tags)    # of <b> <i> </b>: [(0, 2)]; <i>, which nothing closes, has no partner
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol


class Named(Protocol):
    """A tag, or what stands for one."""

    @property
    def kind(self) -> str:
        """``open`` or ``close``; anything else is no tag of an element."""
        ...

    @property
    def name(self) -> str:
        """Name that both tags of an element have."""
        ...


def pairs_of(tags: Sequence[Named]) -> list[tuple[int, int]]:
    """Return the numbers of the opening and the closing tag of each element, in the order of the closing tags.

    A closing tag ends the innermost open element of its name; elements inside that are still open stay without partner.
    """
    pairs: list[tuple[int, int]] = []
    open_tags: list[int] = []
    n_open = Counter[str]()
    for i, tag in enumerate(tags):
        if tag.kind == "open":
            open_tags.append(i)
            n_open[tag.name] += 1
        elif tag.kind == "close" and n_open[tag.name]:
            while True:
                first = open_tags.pop()
                n_open[tags[first].name] -= 1
                if tags[first].name == tag.name:
                    break
            pairs.append((first, i))
    return pairs
