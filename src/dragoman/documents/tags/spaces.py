"""Spaces that are no plain spaces, such as the no-break space of "10 km", and their places in a translation."""

from __future__ import annotations

import re

from dragoman.decoding.words import Links, word_spans
from dragoman.documents.tags.pieces import Side

SPECIAL = re.compile(r"[^\S \t\n\r\f\v\x1c-\x1f\x85\u2028\u2029]")
"""A white space character that is neither a plain space nor the end of a line."""


def with_spaces(src: Side, tgt: Side, alignment: Links) -> Side:
    """Return a translation with the special spaces of its source between words that stand side by side in both.

    Args:
        src, tgt: The source and its translation, of which no character moves.
        alignment: Which of their words translate each other.
    """
    src_words, tgt_words = word_spans(src.text, src.unspaced), word_spans(tgt.text, tgt.unspaced)
    written = list(tgt.text)
    ends = {end: i for i, (_, end) in enumerate(src_words)}
    links = set(alignment)
    targets: dict[int, list[int]] = {}
    for number, target in alignment:
        targets.setdefault(number, []).append(target)
    for match in SPECIAL.finditer(src.text):
        before = ends.get(match.start())
        if before is None or before + 1 >= len(src_words) or src_words[before + 1][0] != match.end():
            continue
        for target in targets.get(before, ()):
            is_known = target + 1 < len(tgt_words) and (before + 1, target + 1) in links
            if is_known and tgt.text[tgt_words[target][1] : tgt_words[target + 1][0]] == " ":
                written[tgt_words[target][1]] = match[0]
    return Side("".join(written), tgt.unspaced)
