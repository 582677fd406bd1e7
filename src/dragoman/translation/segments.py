"""Texts cut into what is searched for, and what was found put together again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.alignment import Links, word_numbers
from dragoman.decoding.batches import NO_MEMORY
from dragoman.decoding.search import Hypothesis, length_penalty
from dragoman.translation.faults import without_runs
from dragoman.translation.glossary import Match
from dragoman.translation.guard import Guarded
from dragoman.translation.scoring import Pairs, TextPart
from dragoman.translation.splitting import split_text
from dragoman.translation.word_constraints import Demand


class Translation(NamedTuple):
    """One translated line."""

    text: str
    score: float  # log-probability (nats, eos included) over the length penalty; 0 for a blank line
    n_parts: int = 1  # more than 1 where the line was too long and was split; 0 for a blank line
    log_prob: float = 0.0  # nats, the eos of each part included
    n_tokens: int = 0  # target subwords, the eos of each part counted
    alternatives: tuple[Translation, ...] = ()  # the rest of the n best, best first
    alignment: Links | None = None  # (source word, target word), from 0; None: not asked for
    notes: tuple[str, ...] = ()  # what the reader should know, one plain sentence each
    confidence: float | None = None  # the sentence chrF to expect, over 100; 0: a fault is left; None: not known


class Part(NamedTuple):
    """A text, or a part of one that was too long."""

    owner: int  # which text
    start: int  # where in it, in characters that are no spaces: a text that is split loses none of these
    text: str
    ids: list[int]
    demand: Demand | None = None  # what its translation must say


def cut(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    max_tokens: int,
    bearable: int,
    warn: Callable[[str], None] | None,
    label: Callable[[int], str],
) -> list[Part]:
    """What to search for: each text that is not blank, split where it has more than ``max_tokens``.

    A single sentence stays whole up to ``bearable`` tokens.
    """
    parts = []
    for number, ids in enumerate(tokenizer.encode(list(texts))):
        text = texts[number]
        if not text.strip():
            continue
        pieces = [(text, ids)]
        if len(ids) > max_tokens:
            split = split_text(text, max_tokens, lambda some: [len(each) for each in tokenizer.encode(some)], bearable)
            if len(split) > 1:
                pieces = [pair for pair in zip(split, tokenizer.encode(split), strict=True) if pair[1]]
        if len(pieces) > 1 and warn is not None:
            warn(f"{label(number)}: {len(ids):,} tokens are more than {max_tokens:,}; split into {len(pieces)}")
        start = 0
        for piece, piece_ids in pieces:
            parts.append(Part(number, start, piece, piece_ids))
            start += sum(not character.isspace() for character in piece)
    return parts


def join(
    texts: Sequence[str],
    parts: Sequence[Part],
    found: Sequence[Sequence[Hypothesis]],
    looked: Mapping[int, Guarded],
    alpha: float,
    tokenizer: Tokenizer,
    between: str,
) -> list[Translation]:
    """The parts of each text, and of each of its n best, put together.

    Args:
        found: The hypotheses of each part, best first; none where there was no memory.
        looked: What the guard did to some parts; of these its texts are taken.
        alpha: Length penalty.
        tokenizer: The target's.
        between: What is put between two parts.
    """
    decoded = iter(tokenizer.decode([h.ids for hypotheses in found for h in hypotheses]))
    said = [[one_line(next(decoded)) for _ in hypotheses] for hypotheses in found]
    for i, one in looked.items():
        said[i][0] = one.text

    def of_rank(group: Sequence[int], rank: int) -> Translation:
        log_prob = sum(found[i][rank].log_prob for i in group)
        n = sum(len(found[i][rank].ids) + 1 for i in group)
        score = log_prob / length_penalty(n, alpha) if group else 0.0
        return Translation(between.join(said[i][rank] for i in group), score, len(group), log_prob, n)

    result = []
    for group in _groups(len(texts), parts):
        if not all(found[i] for i in group):
            result.append(Translation("", 0.0, len(group), notes=(NO_MEMORY,)))
            continue
        best, *others = (of_rank(group, rank) for rank in range(min((len(found[i]) for i in group), default=1)))
        demands = ((parts[i].demand, said[i][0]) for i in group)
        notes = tuple(note for demand, text in demands if demand is not None for note in demand.unmet(text))
        seen = [(k, looked[i].note) for k, i in enumerate(group, 1) if i in looked]
        where = [f" (part {k} of {len(group)})" * (len(group) > 1) for k, _ in seen]
        notes += tuple(note + place for (_, note), place in zip(seen, where, strict=True))
        result.append(best._replace(alternatives=tuple(others), notes=notes))
    return result


def align(
    texts: Sequence[str],
    parts: Sequence[Part],
    found: Sequence[Sequence[Hypothesis]],
    looked: Mapping[int, Guarded],
    pairs: Pairs,
    batch_tokens: int,
) -> list[Links]:
    """The links of each text with the best translation of its parts; arguments as for ``join``."""
    groups: list[list[TextPart]] = []
    for number, group in enumerate(_groups(len(texts), parts)):
        solid: Iterator[int] = (n for n in word_numbers(texts[number], pairs.src_unspaced) if n >= 0)
        groups.append([])
        for i in group if all(found[i] for i in group) else ():  # a text of which a part is lost is blank
            numbers = [-1 if character.isspace() else next(solid) for character in parts[i].text]
            if i in looked:  # its text may be another than its hypothesis's
                ids = pairs.tgt_tokenizer.encode([looked[i].text])[0]
            else:
                ids = found[i][0].ids
            groups[-1].append(TextPart(parts[i].text, numbers, parts[i].ids, ids))
    return pairs.align(groups, batch_tokens)


def by_part(texts: Sequence[str], parts: Sequence[Part], found: Sequence[Sequence[Match]]) -> list[list[Match]]:
    """Of the terms that were ``found`` in each text those that begin in each part: a text may be split within one."""
    dealt: list[list[Match]] = [[] for _ in parts]
    for text, group, matches in zip(texts, _groups(len(texts), parts), found, strict=True):
        if not matches:
            continue
        solid = list(accumulate((not character.isspace() for character in text), initial=0))  # characters before each
        starts = [parts[i].start for i in group]
        for match in matches:
            dealt[group[bisect_right(starts, solid[match.start]) - 1]].append(match)
    return dealt


def _groups(n_texts: int, parts: Sequence[Part]) -> list[list[int]]:
    """For each text the indices of its parts."""
    groups: list[list[int]] = [[] for _ in range(n_texts)]
    for i, part in enumerate(parts):
        groups[part.owner].append(i)
    return groups


def one_line(text: str) -> str:
    """A translation on one line: a model can make an LF out of bytes, and would add a line that never came in."""
    return " ".join(text.split("\n"))


def seamless(src: str, one: Translation) -> Translation:
    """Say once what a translation repeats where two of its parts meet, each of which is sound; and note it."""
    text = one.text if one.n_parts < 2 else without_runs(src, one.text)
    note = "loop: where its parts meet; what was repeated stands here once"
    return one if text == one.text else one._replace(text=text, notes=(*one.notes, note))


NOT_ALIGNED = "no alignment: the search's words and those that are left are not the same"
"""The note of a translation that ``seamless`` made shorter, where alignments were asked for."""


def with_links(one: Translation, whole: Translation, links: Links) -> Translation:
    """``one`` with the alignment of ``whole``, which is what it was before ``seamless``; where they differ, without."""
    if one.text != whole.text:
        return one._replace(alignment=(), notes=(*one.notes, NOT_ALIGNED))
    return one._replace(alignment=links)
