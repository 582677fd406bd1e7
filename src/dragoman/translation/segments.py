"""Texts cut into segments, which an engine translates, and the result for each segment."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.request import Hypothesis, Segment
from dragoman.errors import ConfigError
from dragoman.languages.sentences import sentences
from dragoman.translation.keeping.glossary import Match
from dragoman.translation.notes import Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.word_constraints import WordConstraints


@dataclass(frozen=True, kw_only=True)
class TextSegment:
    """A text, or a part of one: some of its sentences, or a piece of one that was too long."""

    owner: int  # number of the text
    start: int  # its first character in the text; spaces are not counted, as only they are lost where a text is split
    gap: str = ""  # the spaces between it and the part before
    cut: bool = False  # a piece of a sentence that was too long
    text: str
    search: Segment
    constraints: WordConstraints | None = None


@dataclass(frozen=True)
class SegmentResult:
    """The translations of a segment, and what is to be known of them."""

    hypotheses: tuple[Hypothesis, ...] = ()  # best first; none: see the note
    texts: tuple[str, ...] = ()  # of each hypothesis, on one line
    note: Note | None = None  # what the guard saw and did; or why there is no hypothesis
    sound: bool = True  # no fault is left
    lost: Note | None = None  # names what should have arrived unchanged, and did not
    unknown: Note | None = None  # names what the model could not read in the source


def segment(texts: Sequence[str], plan: Plan, events: Events, first_number: int = 0) -> list[TextSegment]:
    """Cut each text that is not blank into the sentences to search for (``options.sentence_split``).

    As many sentences stay together as the training text has on a line (``facts.usual_sentences``). A text that is
    longer than a usual training line is split further, with a warning; a single sentence stays whole up to
    ``facts.longest_sentence`` tokens. If a text has several parts, the first has the prefix and the words to include,
    and each the glossary's terms that begin in it.

    Args:
        first_number: The number of the first text, from which sampling derives its random numbers.

    Raises:
        ConfigError: There are not as many prefixes as texts.
    """
    options = plan.options
    prefixes = [options.prefix] * len(texts) if isinstance(options.prefix, str) else list(options.prefix)
    if len(prefixes) != len(texts):
        raise ConfigError(f"{len(prefixes):,} prefixes for {len(texts):,} texts: give one for all or one for each")
    segments = []
    for number, (text, parts) in enumerate(zip(texts, _parts(texts, plan, events), strict=True)):
        starts = [0, *accumulate(sum(not character.isspace() for character in part.text) for part in parts[:-1])]
        terms = _terms_by_part(text, starts, plan.glossary.find(text) if plan.glossary else [])
        for part, start, found in zip(parts, starts, terms, strict=False):  # a blank text has no part
            constraints = (
                plan.encoder.encode(options, prefixes[number], found, start == 0)
                if options.constrains or plan.glossary
                else None
            )
            rules = None if constraints is None or constraints.rules.are_none else constraints.rules
            search = Segment(
                ids=part.ids, key=(first_number + number, start), rules=rules, cancellation=events.cancellation
            )
            segments.append(
                TextSegment(
                    owner=number, start=start, gap=part.gap, cut=part.cut, text=part.text, search=search,
                    constraints=constraints,
                )
            )  # fmt: skip
    return segments


class _Part(NamedTuple):
    """A part of a text, before its constraints are known."""

    text: str
    ids: list[int]
    gap: str  # the spaces before it
    cut: bool  # a piece of a sentence


def _parts(texts: Sequence[str], plan: Plan, events: Events) -> list[list[_Part]]:
    """Return the parts of each text; none of a blank one."""
    tokenizer = plan.src_tokenizer
    lines = [_groups(text, plan) for text in texts]
    encoded = iter(tokenizer.encode([group for line in lines for group in line]))
    result = []
    for number, (text, line) in enumerate(zip(texts, lines, strict=True)):
        pieces: list[tuple[str, list[int], bool]] = []
        for group, ids in zip(line, encoded, strict=False):
            split = [group] if len(ids) <= plan.facts.usual_tokens else split_text(
                group, plan.facts.usual_tokens, lambda some: [len(each) for each in tokenizer.encode(some)],
                plan.facts.longest_sentence,
            )  # fmt: skip
            if len(split) == 1:
                pieces.append((group, ids, False))
                continue
            pieces += [(piece, own, True) for piece, own in zip(split, tokenizer.encode(split), strict=True) if own]
            if events.warn is not None:
                message = f"{len(ids):,} tokens are more than {plan.facts.usual_tokens:,}; split into {len(split)}"
                events.warn(Note("split", message, events.label(number + 1)))
        result.append(_with_gaps(text, pieces))
    return result


def _groups(text: str, plan: Plan) -> list[str]:
    """Return groups of sentences that are translated together: as many as a training line has, and no longer."""
    if not text.strip():
        return []
    split = sentences(text, plan.src_lang) if plan.options.sentence_split else [text]
    if len(split) <= 1:
        return [text]
    sizes = [len(ids) for ids in plan.src_tokenizer.encode([sentence.strip() for sentence in split])]
    groups: list[list[str]] = []
    size = 0  # of the last one
    for sentence, more in zip(split, sizes, strict=True):
        if groups and len(groups[-1]) < plan.facts.usual_sentences and size + more < plan.facts.usual_tokens:
            groups[-1].append(sentence)
            size += more + 1  # and one for what is between
        else:
            groups.append([sentence])
            size = more
    joined = ["".join(group) for group in groups]
    first, last = joined[0], joined[-1]  # their outer spaces are the line's, and stay as in one that is whole
    if len(joined) == 1:
        return [text]
    return [first.rstrip(), *(each.strip() for each in joined[1:-1]), last.lstrip()]


def _with_gaps(text: str, pieces: Sequence[tuple[str, list[int], bool]]) -> list[_Part]:
    """Return each piece of ``text`` with the spaces before it; none before the first."""
    parts: list[_Part] = []
    end = 0
    for piece, ids, cut in pieces:
        start = text.index(piece, end)
        gap = text[end:start]
        parts.append(_Part(piece, ids, gap[len(gap.rstrip()) :] if parts else "", cut))
        end = start + len(piece)
    return parts


def _terms_by_part(text: str, starts: Sequence[int], matches: Sequence[Match]) -> list[list[Match]]:
    """Return for each part of a text the terms that begin in it; a text may be split within a term."""
    terms: list[list[Match]] = [[] for _ in starts]
    if matches:
        solid = list(accumulate((not character.isspace() for character in text), initial=0))  # characters before each
        for match in matches:
            terms[bisect_right(starts, solid[match.start]) - 1].append(match)
    return terms


def texts_of(hypotheses: Sequence[Hypothesis], tokenizer: Tokenizer) -> list[str]:
    """Return hypotheses as text, each on one line: a model can make an LF out of bytes, which would add a line."""
    return [one_line(text) for text in tokenizer.decode([hypothesis.ids for hypothesis in hypotheses])]


def one_line(text: str) -> str:
    """Return a text with spaces for its line ends."""
    return text.replace("\n", " ")


def by_text(n_texts: int, segments: Sequence[TextSegment]) -> list[list[int]]:
    """Return for each text the indices of its segments."""
    groups: list[list[int]] = [[] for _ in range(n_texts)]
    for i, segment in enumerate(segments):
        groups[segment.owner].append(i)
    return groups


_SENTENCE_END = re.compile(r"(?<=[.!?;:…])\s+|(?<=[。！？；])")
_SPACE = re.compile(r"\s+")


def split_text(
    text: str, max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]], longest_sentence: int = 0
) -> list[str]:
    """Cut ``text`` into parts of at most ``max_tokens``: at sentence ends, else at spaces, else anywhere.

    Neighbouring pieces are packed together as long as they fit. ``n_tokens`` counts the tokens of each of some texts.
    A single sentence of up to ``longest_sentence`` tokens stays whole.
    """
    text = text.strip()
    size = n_tokens([text])[0]
    if size <= max_tokens or len(text) < 2:
        return [text]
    for boundary in (_SENTENCE_END, _SPACE):
        if boundary is _SPACE and size <= longest_sentence:
            return [text]
        edges = [0, *(edge for match in boundary.finditer(text) for edge in match.span()), len(text)]
        pieces = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]
        if len(pieces) > 1:
            packed = pack(text, pieces, max_tokens, n_tokens)
            if packed == [text]:  # its parts fit, and yet the whole does not: cut elsewhere
                continue
            return [part for piece in packed for part in split_text(piece, max_tokens, n_tokens, longest_sentence)]
    middle = len(text) // 2
    halves = text[:middle], text[middle:]
    return [part for half in halves for part in split_text(half, max_tokens, n_tokens, longest_sentence)]


def pack(
    text: str, pieces: Sequence[tuple[int, int]], max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]]
) -> list[str]:
    """Join neighbouring pieces of ``text`` to parts of at most ``max_tokens``; a gap counts as one token.

    Args:
        pieces: First character of each piece, and the one after its last, in their order.
    """
    packed: list[tuple[int, int]] = []
    size = 0
    for (start, end), n in zip(pieces, n_tokens([text[start:end] for start, end in pieces]), strict=True):
        more = n + 1
        if packed and size + more <= max_tokens:
            packed[-1] = packed[-1][0], end
            size += more
        else:
            packed.append((start, end))
            size = more
    return [text[start:end] for start, end in packed]
