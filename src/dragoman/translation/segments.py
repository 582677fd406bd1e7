"""Texts cut into segments, which are what an engine searches for, and what is found for each."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.search import Hypothesis
from dragoman.engines.engine import Segment
from dragoman.errors import ConfigError
from dragoman.translation.glossary import Match
from dragoman.translation.notes import Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.word_constraints import WordConstraints


@dataclass(frozen=True, kw_only=True)
class TextSegment:
    """A text, or a part of one that was too long."""

    owner: int  # which text
    start: int  # where in it, in characters that are no spaces: a text that is split loses none of these
    text: str
    search: Segment
    constraints: WordConstraints | None = None


@dataclass(frozen=True)
class SegmentResult:
    """What became of a segment."""

    hypotheses: tuple[Hypothesis, ...] = ()  # best first; none: see the note
    texts: tuple[str, ...] = ()  # of each hypothesis, on one line
    note: Note | None = None  # what the guard saw and did; or why there is nothing
    sound: bool = True  # no fault is left
    lost: Note | None = None  # what must have arrived unchanged, and did not


def segment(texts: Sequence[str], plan: Plan, events: Events, first_number: int = 0) -> list[TextSegment]:
    """What to search for: each text that is not blank, split where it is longer than a usual training sentence.

    A single sentence stays whole up to ``plan.longest_sentence`` tokens. Of a text that is split the first part has the
    prefix and the words to include, and each the glossary's terms that begin in it.

    Args:
        first_number: The number of the first text, from which sampling derives its random numbers.

    Raises:
        ConfigError: There are not as many prefixes as texts.
    """
    options, pieces = plan.options, _pieces(texts, plan, events)
    prefixes = [options.prefix] * len(texts) if isinstance(options.prefix, str) else list(options.prefix)
    if len(prefixes) != len(texts):
        raise ConfigError(f"{len(prefixes):,} prefixes for {len(texts):,} texts: give one for all or one for each")
    segments = []
    for number, (text, parts) in enumerate(zip(texts, pieces, strict=True)):
        starts = [0, *accumulate(sum(not character.isspace() for character in part) for part, _ in parts)]
        terms = _terms_by_part(text, starts[:-1], plan.glossary.find(text) if plan.glossary else [])
        for (part, ids), start, found in zip(parts, starts, terms, strict=False):
            constraints = (
                plan.encoder.encode(options, prefixes[number], found, start == 0) if options.constrains else None
            )
            rules = None if constraints is None else constraints.rules
            search = Segment(ids=ids, key=(first_number + number, start), rules=rules)
            segments.append(TextSegment(owner=number, start=start, text=part, search=search, constraints=constraints))
    return segments


def _pieces(texts: Sequence[str], plan: Plan, events: Events) -> list[list[tuple[str, list[int]]]]:
    """The parts of each text with their ids; none of a blank one."""
    tokenizer, pieces = plan.src_tokenizer, []
    for number, (text, ids) in enumerate(zip(texts, tokenizer.encode(list(texts)), strict=True)):
        parts = [(text, ids)] if text.strip() else []
        if parts and len(ids) > plan.usual_tokens:
            split = split_text(
                text, plan.usual_tokens, lambda some: [len(each) for each in tokenizer.encode(some)],
                plan.longest_sentence,
            )  # fmt: skip
            if len(split) > 1:
                parts = [pair for pair in zip(split, tokenizer.encode(split), strict=True) if pair[1]]
        if len(parts) > 1 and events.warn is not None:
            said = f"{len(ids):,} tokens are more than {plan.usual_tokens:,}; split into {len(parts)}"
            events.warn(Note("split", said, events.label(number + 1)))
        pieces.append(parts)
    return pieces


def _terms_by_part(text: str, starts: Sequence[int], found: Sequence[Match]) -> list[list[Match]]:
    """Of the terms ``found`` in a text those that begin in each part: it may be split within one."""
    dealt: list[list[Match]] = [[] for _ in starts]
    if found:
        solid = list(accumulate((not character.isspace() for character in text), initial=0))  # characters before each
        for match in found:
            dealt[bisect_right(starts, solid[match.start]) - 1].append(match)
    return dealt


def texts_of(hypotheses: Sequence[Hypothesis], tokenizer: Tokenizer) -> list[str]:
    """Hypotheses as text, each on one line: a model can make an LF out of bytes, which would add a line."""
    return [one_line(text) for text in tokenizer.decode([hypothesis.ids for hypothesis in hypotheses])]


def one_line(text: str) -> str:
    """A text with spaces for its line ends."""
    return text.replace("\n", " ")


def by_text(n_texts: int, segments: Sequence[TextSegment]) -> list[list[int]]:
    """For each text the indices of its segments."""
    groups: list[list[int]] = [[] for _ in range(n_texts)]
    for i, each in enumerate(segments):
        groups[each.owner].append(i)
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
    """Parts of ``text`` from one piece to another, whose tokens (and one for what is between) stay in ``max_tokens``.

    Args:
        pieces: Where each begins and ends, in their order.
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
