"""Splits texts into segments for the engine, and holds the result of each."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from dragoman.arguments import refuse_entries
from dragoman.data.tokenizer import Tokenizer, not_utf8
from dragoman.decoding.request import Hypothesis, Segment
from dragoman.errors import ConfigError, DataError
from dragoman.languages.scripts import is_blank
from dragoman.languages.sentence_ends import ENDS_CLASS, UNSPACED_ENDS
from dragoman.languages.sentences import sentences
from dragoman.languages.words import cluster_end, cluster_start
from dragoman.translation.keeping.glossary import Match
from dragoman.translation.keeping.protected import Span, find, has_letters, without_spans
from dragoman.translation.notes import Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.word_constraints import Target, WordConstraints


@dataclass(frozen=True, kw_only=True)
class TextSegment:
    """A text or a part of it: some of its sentences, or a piece of a long sentence."""

    owner: int  # number of the text
    start: int  # position in the text, without counting spaces, which may get lost where a text is split
    gap: str = ""  # spaces between it and the part before
    cut: bool = False  # True for a piece of a sentence
    text: str
    search: Segment
    constraints: WordConstraints | None = None

    @cached_property
    def spans(self) -> list[Span]:
        """Spans of the text that must arrive unchanged, in order."""
        return find(self.text)


@dataclass(frozen=True)
class SegmentResult:
    """Translations of a segment, with notes."""

    hypotheses: tuple[Hypothesis, ...] = ()  # best first; none: see the note
    texts: tuple[str, ...] = ()  # of each hypothesis, on one line
    note: Note | None = None  # of the guard; or the reason why there is no hypothesis
    sound: bool = True  # False if a fault is left
    is_copy: bool = False  # True for a source without words, which is its own translation
    lost: Note | None = None  # names missing spans that should have arrived unchanged
    unknown: Note | None = None  # names unknown characters of the source
    script: Note | None = None  # names letters of the source that the model never saw
    read: TextSegment | None = None  # what the model read, if the line was written in another case
    spare: tuple[Hypothesis, ...] = ()  # what else the search found, best first, for the guard


def as_texts(texts: Iterable[str], what: str = "texts") -> list[str]:
    """Return texts as a list.

    Raises:
        DataError: ``texts``, which ``what`` names, is not a list, or an entry is not a text.
    """
    if isinstance(texts, bytes | bytearray) or not isinstance(texts, Iterable):
        raise DataError(f"{what} must be a text or a list of texts, got {type(texts).__name__}")
    listed = list(texts)
    refuse_entries(what, listed)
    if (problem := not_utf8(listed, what.removesuffix("s"))) is not None:
        raise problem
    return listed


def segment(texts: Sequence[str], plan: Plan, events: Events, first_number: int = 0) -> list[TextSegment]:
    """Split each text into segments; a blank text has none.

    A segment has as many sentences as a training line (``facts.usual_sentences``), if ``options.sentence_split``. A
    text longer than a usual training line is split further, with a warning; a single sentence is not split up to
    ``facts.longest_sentence`` tokens. No span that must arrive unchanged is split. The first segment of a text has the
    prefix and the words to include, and each has the glossary terms that begin in it.

    Args:
        first_number: The number of the first text, from which sampling derives its random numbers.

    Raises:
        ConfigError: The numbers of prefixes and texts differ.
    """
    options = plan.options
    prefixes = [options.prefix] * len(texts) if isinstance(options.prefix, str) else list(options.prefix)
    if len(prefixes) != len(texts):
        raise ConfigError(f"{len(prefixes):,} prefixes for {len(texts):,} texts: give one for all or one for each")
    segments, targets = [], dict[tuple[str, str], Target]()
    has_words = [bool(prefix or options.include) for prefix in prefixes]
    for number, (text, parts) in enumerate(zip(texts, _parts(texts, has_words, plan, events), strict=True)):
        starts = [0, *accumulate(sum(not character.isspace() for character in part.text) for part in parts[:-1])]
        terms = _terms_by_part(text, starts, plan.glossary.find(text) if plan.glossary else [])
        for part, start, terms_of_part in zip(parts, starts, terms, strict=False):  # a blank text has no part
            constraints = (
                plan.encoder.encode(options, prefixes[number], terms_of_part, start == 0, targets)
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
    cut: bool  # True for a piece of a sentence


def _parts(texts: Sequence[str], has_words: Sequence[bool], plan: Plan, events: Events) -> list[list[_Part]]:
    """Return the parts of each text; a blank text has none.

    Args:
        has_words: For each text True if words were asked for, which its first group gets and is not copied then.
    """
    tokenizer = plan.src_tokenizer
    lines = [_groups(text, plan) for text in texts]
    encoded = iter(tokenizer.encode([group for line in lines for group in line]))
    result = []
    for number, (text, line) in enumerate(zip(texts, lines, strict=True)):
        pieces: list[tuple[str, list[int], bool]] = []
        for place, (group, ids) in enumerate(zip(line, encoded, strict=False)):
            split = _split(group, len(ids), has_words[number] and place == 0, plan)
            if len(split) == 1:
                # Thousands of spaces at an end would be read token by token, in the square of their number.
                if len(ids) > max(plan.facts.usual_tokens, plan.facts.longest_sentence) and split[0] != group:
                    group, ids = split[0], tokenizer.encode(split)[0]
                pieces += [(group, ids, False)] if ids else []  # none: it holds only invisible characters
                continue
            pieces += [(piece, own, True) for piece, own in zip(split, tokenizer.encode(split), strict=True) if own]
            if events.warn is not None:
                message = f"{len(ids):,} tokens are more than {plan.facts.usual_tokens:,}; split into {len(split)}"
                events.warn(Note("split", message, events.label(number + 1)))
        result.append(_with_gaps(text, pieces))
    return result


def _split(text: str, size: int, has_words: bool, plan: Plan) -> list[str]:
    """Return a text of ``size`` tokens in pieces as long as a usual training line; what is copied may be longer.

    Args:
        has_words: True if words were asked for in this text, which its first piece gets and is not copied then.
    """
    most, longest = plan.facts.usual_tokens, plan.facts.longest_sentence

    def count(texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in plan.src_tokenizer.encode(texts)]

    if size <= most or _is_copied(text, has_words, plan):
        return [text]
    if not plan.options.protect:
        return split_text(text, most, count, longest)
    pieces = split_text(text, most, lambda texts: _n_without_spans(texts, plan), longest, protect=True)
    result = []
    for place, piece in enumerate(pieces):
        # The model reads a piece that words were asked for, even if it is a single span: it must fit.
        is_read = is_wordless(piece, plan) and not _is_copied(piece, has_words and place == 0, plan)
        result += split_text(piece, most, count, longest) if is_read else [piece]
    return result


def _is_copied(text: str, has_words: bool, plan: Plan) -> bool:
    """True if a text has no words, and none is asked for: neither by the request (``has_words``) nor by a glossary."""
    return is_wordless(text, plan) and not has_words and not (plan.glossary is not None and plan.glossary.find(text))


def _n_without_spans(texts: Sequence[str], plan: Plan) -> list[int]:
    """Return the number of tokens of each text, of which a span that must arrive unchanged counts as one.

    The model translates a text without the spans that it loses (``carrying``). But it first reads it with them, so a
    text of more tokens than a model reads in one piece counts as it is. Numbers do so, too: a model translates them.
    """
    sizes = [len(ids) for ids in plan.src_tokenizer.encode(texts)]
    too_long = [i for i, size in enumerate(sizes) if plan.facts.usual_tokens < size <= plan.facts.max_tokens]
    spans = {i: [span for span in find(texts[i]) if span.kind != "number"] for i in too_long}
    bare = plan.src_tokenizer.encode([without_spans(texts[i], own) for i, own in spans.items()])
    for (i, own), ids in zip(spans.items(), bare, strict=True):
        sizes[i] = min(sizes[i], len(ids) + len(own))
    return sizes


def _groups(text: str, plan: Plan) -> list[str]:
    """Return the groups of sentences to translate together, as many and as long as a usual training line."""
    if is_blank(text):
        return []
    split = sentences(text, plan.src_lang) if plan.options.sentence_split and not is_wordless(text, plan) else [text]
    if len(split) <= 1:
        return [text]
    sizes = [len(ids) for ids in plan.src_tokenizer.encode([sentence.strip() for sentence in split])]
    groups: list[list[str]] = []
    size = 0  # of the last one
    for sentence, more in zip(split, sizes, strict=True):
        if groups and len(groups[-1]) < plan.facts.usual_sentences and size + more < plan.facts.usual_tokens:
            groups[-1].append(sentence)
            size += more + 1  # one more for the text between
        else:
            groups.append([sentence])
            size = more
    joined = ["".join(group) for group in groups]
    if len(joined) == 1:
        return [text]
    # spaces at the ends of the line stay, as in a line that is not split
    return [joined[0].rstrip(), *(group.strip() for group in joined[1:-1]), joined[-1].lstrip()]


def is_wordless(text: str, plan: Plan) -> bool:
    """True if a text has no letters, of which those in protected spans do not count: its translation is a copy."""
    return not (has_letters(text) if plan.options.protect else any(map(str.isalpha, text)))


def _with_gaps(text: str, pieces: Sequence[tuple[str, list[int], bool]]) -> list[_Part]:
    """Return each piece of ``text`` with the spaces before it; the first without."""
    parts: list[_Part] = []
    end = 0
    for piece, ids, cut in pieces:
        start = text.index(piece, end)
        gap = text[end:start]
        parts.append(_Part(piece, ids, gap[len(gap.rstrip()) :] if parts else "", cut))
        end = start + len(piece)
    return parts


def _terms_by_part(text: str, starts: Sequence[int], matches: Sequence[Match]) -> list[list[Match]]:
    """Return the glossary terms that begin in each part of a text."""
    terms: list[list[Match]] = [[] for _ in starts]
    if matches:
        solid = list(accumulate((not character.isspace() for character in text), initial=0))  # characters before each
        for match in matches:
            terms[bisect_right(starts, solid[match.start]) - 1].append(match)
    return terms


def texts_of(hypotheses: Sequence[Hypothesis], tokenizer: Tokenizer) -> list[str]:
    """Return hypotheses as text, each on one line: byte subwords can spell an LF, which would add a line."""
    return [one_line(text) for text in tokenizer.decode([hypothesis.ids for hypothesis in hypotheses])]


def one_line(text: str) -> str:
    """Return a text with each LF replaced by a space."""
    return text.replace("\n", " ")


def by_text(n_texts: int, segments: Sequence[TextSegment]) -> list[list[int]]:
    """Return for each text the indices of its segments."""
    groups: list[list[int]] = [[] for _ in range(n_texts)]
    for i, segment in enumerate(segments):
        groups[segment.owner].append(i)
    return groups


_CLOSING = "”’」』）》»"
_ENDS = re.escape(UNSPACED_ENDS) + "；"
_SENTENCE_END = re.compile(
    rf"(?<=[{_ENDS}.!?;:…])\s+|(?<=[{_ENDS}][{_CLOSING}])\s*|(?<=[{_ENDS}])(?![\s\d{_CLOSING}]|{ENDS_CLASS})"
)
_SPACE = re.compile(r"\s+")


def split_text(
    text: str, max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]], longest_sentence: int = 0,
    protect: bool = False,
) -> list[str]:  # fmt: skip
    """Split ``text`` into parts of at most ``max_tokens``: at sentence ends, else at spaces, else anywhere.

    Neighbouring pieces are joined as long as they fit. ``n_tokens`` returns the number of tokens of each text. A single
    sentence of up to ``longest_sentence`` tokens is not split.

    Args:
        protect: True if no span that must arrive unchanged is split; a part without other letters may be longer then.
    """
    text = text.strip()
    size = n_tokens([text])[0]
    if size <= max_tokens or len(text) < 2 or (protect and not has_letters(text)):
        return [text]
    spans = find(text) if protect else []
    for boundary in (_SENTENCE_END, _SPACE):
        if boundary is _SPACE and size <= longest_sentence:
            return [text]
        gaps = _outside([match.span() for match in boundary.finditer(text)], spans)
        edges = [0, *(edge for gap in gaps for edge in gap), len(text)]
        pieces = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]
        if len(pieces) > 1:
            packed = pack(text, pieces, max_tokens, n_tokens)
            if packed == [text]:  # the sum of the pieces fits, although the text itself does not
                edge = min((end for _, end in pieces[:-1]), key=lambda end: abs(2 * end - len(text)))
                packed = [text[:edge], text[edge:]]
            return [
                part for piece in packed for part in split_text(piece, max_tokens, n_tokens, longest_sentence, protect)
            ]
    longest = max(max_tokens, longest_sentence)
    return [part for half in _halves(text, spans) for part in _halved(half, longest, n_tokens, protect)]


def _outside(gaps: Sequence[tuple[int, int]], spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Return the gaps between pieces of a text that do not lie in one of its spans."""
    starts = [span.start for span in spans]
    last = [bisect_left(starts, end) - 1 for _, end in gaps]  # the last span that begins before the end of each gap
    return [gap for gap, i in zip(gaps, last, strict=True) if i < 0 or spans[i].end <= gap[0]]


def _halved(text: str, max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]], protect: bool) -> list[str]:
    """Split a text without spaces and sentence ends into halves, until each part has at most ``max_tokens``."""
    if len(text) < 2 or n_tokens([text])[0] <= max_tokens or (protect and not has_letters(text)):
        return [text]
    halves = _halves(text, find(text) if protect else [])
    return [part for half in halves for part in _halved(half, max_tokens, n_tokens, protect)]


def _halves(text: str, spans: Sequence[Span]) -> tuple[str, str]:
    """Return both halves of a text, cut between two characters as a reader counts them, if it has two.

    The cut is not inside one of ``spans``, none of which is the whole text.
    """
    middle = len(text) // 2
    edge = cluster_start(text, middle) or cluster_end(text, middle)
    middle = edge if edge < len(text) else middle
    for span in spans:
        if span.start < middle < span.end:
            ends = [end for end in (span.start, span.end) if 0 < end < len(text)]
            middle = min(ends, key=lambda end: abs(end - middle), default=middle)
            break
    return text[:middle], text[middle:]


def pack(
    text: str, pieces: Sequence[tuple[int, int]], max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]]
) -> list[str]:
    """Join neighbouring pieces of ``text`` to parts of at most ``max_tokens``; a gap counts as one token.

    Args:
        pieces: Start and end of each piece, in order.
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
