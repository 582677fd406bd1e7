"""Copies protected spans (see ``protected``) into translations that lack them.

A translation with all spans stays. Otherwise the source is translated again without the missing spans, and each is put
back by word alignment (``cutting``): the model does not read text that it cannot know. A model that has learned masks
(``data.noise.inserts``; see its manifest) also translates the line with a mask for each span. That translation is taken
if it has each mask once and is more probable per token: "Press [1] to [2]." is a sentence, "Press to." is not. A line
of spans alone is copied. A note names the spans that are still missing.

A number that the model garbled is replaced by the right one (``wrong_numbers``), and so is a number of its own that
stands where one is put back. If one stays beside a number that was put back, the note names it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import NamedTuple, cast

from dragoman.data.noise import N_MASKS
from dragoman.decoding.request import Hypothesis
from dragoman.decoding.words import Links, word_numbers
from dragoman.languages.numbers import has_words
from dragoman.languages.words import has_word, is_word_character
from dragoman.translation.faults import is_loop
from dragoman.translation.keeping.cutting import Cut, put_back, without
from dragoman.translation.keeping.places import in_subwords
from dragoman.translation.keeping.placing import occurrences
from dragoman.translation.keeping.protected import Sides, Span, is_reckoned, missing, unmatched
from dragoman.translation.keeping.wrong_numbers import beside, in_date, in_digits_of, in_place
from dragoman.translation.notes import Kind, Note
from dragoman.translation.plan import Plan
from dragoman.translation.scoring import TextPart
from dragoman.translation.segments import SegmentResult, TextSegment, one_line

ROUNDS = 2
"""Number of new searches: a translation without some spans may lose others."""


class Without(NamedTuple):
    """A segment without some of its spans, which are cut out or masked."""

    segment: TextSegment
    out: list[Span]  # cut out or masked, in the order of the text
    cuts: list[Cut]  # empty if they are masked
    masks: dict[str, str]  # each mask and the text that it replaces


Search = Callable[[Sequence[TextSegment]], list[SegmentResult]]


def search_without(
    results: list[SegmentResult], segments: Sequence[TextSegment], plan: Plan, search: Search
) -> dict[int, Without]:
    """Translate each segment whose best translation lacks spans again, without these spans.

    Args:
        results: Result of each segment; new results replace the old ones in it.

    Returns:
        The segments that were translated without spans, by index.
    """
    for i, (segment, result) in enumerate(zip(segments, results, strict=True)):
        results[i] = _with_right_numbers(result, segment, plan)
    masked = _search_with_masks(results, segments, plan, search) if plan.facts.masks else {}
    changed: dict[int, Without] = {}
    indices = [i for i, result in enumerate(results) if result.hypotheses]
    for _ in range(ROUNDS):
        again: dict[int, Without] = {}
        for i in indices:
            out = changed[i].out if i in changed else []
            if lost := _to_cut(segments[i], results[i], plan, out):
                again[i] = _without(segments[i], sorted([*out, *lost], key=lambda span: span.start), plan)
        changed.update(again)
        indices = [i for i, bare in again.items() if any(character.isalpha() for character in bare.segment.text)]
        # a segment without any other letters is copied, or follows the words that the request asks for
        for i in again.keys() - set(indices):
            if asks_for_words(segments[i]):
                changed[i] = Without(segments[i], again[i].out, [], {})
            else:
                results[i], changed[i] = copied(segments[i], plan), Without(segments[i], [], [], {})
        for i, result in zip(indices, search([again[i].segment for i in indices]), strict=True):
            results[i] = result
        indices = [i for i in indices if results[i].hypotheses]
    # a sentence without a part that it needs is improbable, so the translation with more probability per token is taken
    for i, (with_masks, result) in masked.items():
        n_masks = sum(map(len, plan.tgt_tokenizer.encode(list(with_masks.masks))))
        if not results[i].hypotheses or _mean_log_prob(result, n_masks) > _mean_log_prob(results[i]):
            results[i], changed[i] = result, with_masks
    return changed


def _with_right_numbers(result: SegmentResult, segment: TextSegment, plan: Plan) -> SegmentResult:
    """Return a result with the right numbers in place of garbled ones, if its best translation then lacks no span.

    Of the others, those that lack one are left out, but a sample stays as it was drawn.
    """
    right = [_with_right(text, segment, plan) for text in result.texts]
    if not right or right[0] is None or right == list(result.texts):
        return result
    texts = [text or drawn for text, drawn in zip(right, result.texts, strict=True)] if plan.options.sample else right
    kept = [(found, text) for found, text in zip(result.hypotheses, texts, strict=True) if text is not None]
    hypotheses, whole = zip(*kept, strict=True)
    return _with_texts(replace(result, hypotheses=hypotheses), whole, plan)


def _with_right(text: str, segment: TextSegment, plan: Plan) -> str | None:
    """Return a translation with the right numbers in place of garbled ones; None if a span is missing even so."""
    spans = _spans(segment, plan)
    lost = missing(spans, text, segment.text, plan.tgt_lang, plan.src_lang)
    if not lost:
        return text
    if any(span.kind != "number" for span in lost):
        return None
    new = _checked(in_place(text, lost, _wrong(text, segment, plan), alike=True), text, segment, plan)
    if new is None or is_loop(segment.text, new):  # the guard would search again, and lose the number again
        return None
    return None if any(not in_date(new, span) for span in _wrong(new, segment, plan)) else new


def _wrong(text: str, segment: TextSegment, plan: Plan) -> list[Span]:
    """Return the numbers of a translation, after its prefix, that its source has in no form."""
    first = len(segment.constraints.prefix) if segment.constraints is not None else 0
    return [span for span in unmatched(Sides(segment.text, text, plan.src_lang, plan.tgt_lang)) if span.start >= first]


def _checked(new: str | None, text: str, segment: TextSegment, plan: Plan) -> str | None:
    """Return a new text if it lacks no span, nor a word that the request wants and the old text has; else None."""
    if new is None or missing(_spans(segment, plan), new, segment.text, plan.tgt_lang, plan.src_lang):
        return None
    constraints = segment.constraints
    is_worse = constraints is not None and len(constraints.unplaced(new)) > len(constraints.unplaced(text))
    return None if is_worse else new


def _with_texts(result: SegmentResult, texts: Sequence[str], plan: Plan) -> SegmentResult:
    """Return a result with other texts, and their ids."""
    pairs = zip(result.hypotheses, plan.tgt_tokenizer.encode(list(texts)), strict=True)
    return replace(
        result, hypotheses=tuple(hypothesis._replace(ids=ids) for hypothesis, ids in pairs), texts=tuple(texts)
    )


def _search_with_masks(
    results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan, search: Search
) -> dict[int, tuple[Without, SegmentResult]]:
    """Translate with masks for missing spans; return the results with each mask once and no other span missing."""
    tried: dict[int, Without] = {}
    for i, (segment, result) in enumerate(zip(segments, results, strict=True)):
        lost = _to_cut(segment, result, plan, []) if result.hypotheses else []
        if lost and (masked := _masked(segment, lost, plan)) is not None:
            tried[i] = masked
    with_masks = zip(tried.items(), search([masked.segment for masked in tried.values()]), strict=True)
    return {
        i: (masked, result)
        for (i, masked), result in with_masks
        if result.hypotheses
        and _has_each_once(result.texts[0], masked.masks)
        and not _to_cut(segments[i], result, plan, masked.out)
    }


def _lost(segment: TextSegment, result: SegmentResult, plan: Plan, out: Sequence[Span]) -> list[Span]:
    """Return the spans that the best translation lacks, except those in ``out``."""
    without = set(out)
    spans = [span for span in _spans(segment, plan) if span not in without]
    return missing(spans, result.texts[0], segment.text, plan.tgt_lang, plan.src_lang)


def _to_cut(segment: TextSegment, result: SegmentResult, plan: Plan, out: Sequence[Span]) -> list[Span]:
    """Return the spans that the best translation lacks and can do without: "halb" without its 4 is no time.

    A note names the others, and the translation stays.
    """
    return [span for span in _lost(segment, result, plan, out) if not is_reckoned(span, segment.text)]


def asks_for_words(segment: TextSegment) -> bool:
    """True if the request asks for a prefix or for words in the translation of a segment."""
    constraints = segment.constraints
    return constraints is not None and bool(constraints.prefix or constraints.placed)


def _behind_words(segment: TextSegment) -> str:
    """Return a text without other letters behind the prefix and the words that the request asks for."""
    constraints = segment.constraints
    prefix = constraints.prefix.rstrip() if constraints is not None else ""
    words = [word for word, _ in (constraints.placed if constraints is not None else ()) if not has_word(prefix, word)]
    return " ".join([*([prefix] if prefix else []), *words, one_line(segment.text.strip())])


def _mean_log_prob(result: SegmentResult, n_masks: int = 0) -> float:
    """Return the mean log-probability of a token, in nats; tokens of masks are nearly certain and do not count."""
    best = result.hypotheses[0]
    return best.log_prob / max(1, len(best.ids) + 1 - n_masks)


def _has_each_once(text: str, masks: Iterable[str]) -> bool:
    return all(text.count(mask) == 1 for mask in masks)


def _spans(segment: TextSegment, plan: Plan) -> list[Span]:
    """Return the spans that must arrive unchanged; the glossary decides on spans inside its terms."""
    spans = segment.spans
    terms = plan.glossary.find(segment.text) if spans and plan.glossary is not None else []
    ends = [(match.start, match.start + len(match.source)) for match in terms]
    return [span for span in spans if not any(start < span.end and span.start < end for start, end in ends)]


def _without(segment: TextSegment, out: list[Span], plan: Plan) -> Without:
    text, cuts = without(segment.text, [_with_its_word(span, segment.text, plan) for span in out])
    return Without(_with_text(segment, text, plan), out, cuts, {})


def _with_its_word(span: Span, text: str, plan: Plan) -> Span:
    """Return a number together with the word that it ends, as in "python3", if the model never saw this word."""
    start = len(text[: span.start].rstrip(ascii_letters))
    word, seen = text[start : span.start], plan.facts.seen_words
    if span.kind != "number" or not word or seen is None or not seen.unseen(word):
        return span
    return Span("identifier", text[start : span.end], start)


def _masked(segment: TextSegment, out: list[Span], plan: Plan) -> Without | None:
    """Return the segment with masks for some spans; None if there are not enough masks, or a span touches a word."""
    masks = ((plan.facts.masks or "").replace("{}", str(n)) for n in range(1, N_MASKS + 1))
    free = [mask for mask in masks if mask not in segment.text]
    if len(out) > len(free) or any(_touches_word(segment.text, span) for span in out):
        return None
    text, pairs = segment.text, list(zip(free, out, strict=False))
    for mask, span in reversed(pairs):
        text = text[: span.start] + mask + text[span.end :]
    if not any(character.isalpha() for character in text):
        return None
    return Without(_with_text(segment, text, plan), out, [], {mask: span.text for mask, span in pairs})


def _with_text(segment: TextSegment, text: str, plan: Plan) -> TextSegment:
    search = replace(segment.search, ids=plan.src_tokenizer.encode([text])[0])
    return replace(segment, text=text, search=search)


def _touches_word(text: str, span: Span) -> bool:
    """True if a word continues at either end of a span, as in "<b>big</b>": a mask would become a part of it."""
    before, after = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    return is_word_character(before) or is_word_character(after)


def copied(segment: TextSegment, plan: Plan) -> SegmentResult:
    """Return the segment's own text as its translation; where samples are drawn, each sample is this text."""
    text = one_line(segment.text.strip())
    n = plan.search.n_best if plan.options.sample else 1
    return SegmentResult((Hypothesis(plan.tgt_tokenizer.encode([text])[0], 0.0, 0.0),) * n, (text,) * n, is_copy=True)


def put_in(
    results: Sequence[SegmentResult], segments: Sequence[TextSegment], changed: Mapping[int, Without], plan: Plan
) -> list[SegmentResult]:
    """Put the spans of each segment back into all of its translations; notes name those that are still missing."""
    whole = list(results)
    texts = {i: [_unmasked(text, bare.masks) for text in results[i].texts] for i, bare in changed.items() if bare.out}
    for i in [i for i in texts if not (changed[i].cuts or changed[i].masks)]:
        texts[i] = [_behind_words(segments[i])] * len(texts[i])
    to_place = []
    for i in [i for i, bare in changed.items() if bare.cuts]:
        for k in range(len(results[i].hypotheses)):
            if (right := _in_their_places(texts[i][k], segments[i], changed[i], plan)) is not None:
                texts[i][k] = right
            else:
                to_place.append((i, k))
    unspaced = plan.direction.src_unspaced, plan.direction.tgt_unspaced
    aligned = _aligned([(changed[i].segment, results[i].texts[k]) for i, k in to_place], plan) if to_place else []
    for (i, k), links in zip(to_place, aligned, strict=True):
        constraints, text, bare = segments[i].constraints, texts[i][k], changed[i]
        first = len(constraints.prefix) if constraints is not None else 0
        cuts = [_in_digits(cut, bare.out, text) for cut in bare.cuts]
        text = put_back(bare.segment.text, cuts, text, links, unspaced, first, _closed(text, segments[i], plan))
        right = beside(text, [cut.text for cut in cuts], _wrong(text, segments[i], plan))
        texts[i][k] = _checked(right, text, segments[i], plan) or text
    for i, n_best in texts.items():
        whole[i] = _with_texts(results[i], n_best, plan)
    for i in range(len(whole)):  # a search of the guard may garble numbers again
        whole[i] = whole[i] if i in texts else _with_right_numbers(whole[i], segments[i], plan)
    return [_with_note(*each, changed.get(i), plan) for i, each in enumerate(zip(whole, segments, strict=True))]


def _aligned(pairs: Sequence[tuple[TextSegment, str]], plan: Plan) -> list[Links]:
    """Return the links between the words of each segment and those of its translation."""
    parts = []
    for segment, target in pairs:
        ids = plan.tgt_tokenizer.encode([target])[0]
        numbers = word_numbers(segment.text, plan.direction.src_unspaced)
        parts.append([TextPart(segment.text, numbers, segment.search.ids, ids, target)])
    return plan.aligner.align(parts, plan.search.decode.batch_tokens)


def _closed(text: str, segment: TextSegment, plan: Plan) -> set[int]:
    """Return the places inside terms of the glossary, and inside subwords where the language has no spaces."""
    terms = {match.target for match in (plan.glossary.find(segment.text) if plan.glossary is not None else ())}
    held = [span for term in terms for span in occurrences(text, term)]
    closed = {place for start, end in held for place in range(start + 1, end)}
    return closed | in_subwords(text, plan.tgt_tokenizer.encode([text])[0], plan.tgt_tokenizer)


def _in_their_places(text: str, segment: TextSegment, bare: Without, plan: Plan) -> str | None:
    """Return a translation made without numbers, with each in the place of one that the model wrote for it, or None.

    If the number words of the source are not known, a number that is not alike may be one of them.
    """
    if not _are_numbers(bare):
        return None
    alike = not has_words(plan.src_lang)
    return _checked(in_place(text, bare.out, _wrong(text, segment, plan), alike), text, segment, plan)


def _are_numbers(bare: Without) -> bool:
    """True if numbers and the marks around them, but no words, were cut out."""
    only_numbers = all(span.kind == "number" for span in bare.out)
    return only_numbers and not any(character.isalpha() for cut in bare.cuts for character in cut.text)


def _in_digits(cut: Cut, out: Sequence[Span], text: str) -> Cut:
    """Return a part with its numbers in the digits of the translation, if nothing else is in it."""
    is_number = not any(map(str.isalpha, cut.text)) and all(span.kind == "number" for span in out)
    return replace(cut, text=in_digits_of(cut.text, text)) if is_number else cut


def _unmasked(text: str, masks: Mapping[str, str]) -> str:
    for mask, span in masks.items():
        text = text.replace(mask, span)
    return text


def _with_note(result: SegmentResult, segment: TextSegment, bare: Without | None, plan: Plan) -> SegmentResult:
    """Add a note on the spans that the best translation lacks, and on wrong numbers beside one put back."""
    lost = _lost(segment, result, plan, []) if result.texts else []
    wrong: list[Span] = []
    if bare is not None and result.texts and any(span.kind == "number" for span in bare.out):
        text = result.texts[0]
        wrong = [span for span in _wrong(text, segment, plan) if not in_date(text, span)]
    if not lost and not wrong:
        return result
    about = {"missing in the translation": lost, "not in the source": wrong}
    message = "; ".join(
        f"{what}: {', '.join(f'the {span.kind} {span.text!r}' for span in spans)}"
        for what, spans in about.items()
        if spans
    )
    return replace(result, lost=Note(cast(Kind, [*lost, *wrong][0].note), message, left=True))
