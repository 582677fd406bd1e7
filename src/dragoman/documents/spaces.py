"""Spaces that are no plain spaces, such as the no-break space of "10 km", and their places in a translation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SPECIAL = re.compile(r"[^\S \t\n\r\f\v\x1c-\x1f\x85\u2028\u2029]")
"""A white space character that is neither a plain space nor the end of a line."""

Spans = Sequence[tuple[int, int]]


def with_spaces(
    source: str, text: str, src_words: Spans, tgt_words: Spans, targets: Mapping[int, Sequence[int]]
) -> str:
    """Return a translation with the special spaces of its source between words that stand side by side in both.

    Args:
        source, text: The source and its translation, of which no character moves.
        src_words, tgt_words: Their words.
        targets: For the number of a source word: numbers of the words that translate it.
    """
    written = list(text)
    ends = {end: i for i, (_, end) in enumerate(src_words)}
    for match in SPECIAL.finditer(source):
        before = ends.get(match.start())
        if before is None or before + 1 >= len(src_words) or src_words[before + 1][0] != match.end():
            continue
        after = set(targets.get(before + 1, ()))
        for target in targets.get(before, ()):
            if target + 1 in after and text[tgt_words[target][1] : tgt_words[target + 1][0]] == " ":
                written[tgt_words[target][1]] = match[0]
    return "".join(written)
