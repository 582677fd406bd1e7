"""Reads lines in CAPITALS or Title Case a second time in usual case, and takes the likelier translation.

    search_both(segments, plan, search)    # the segments as they were read, and their translations
    in_source_case(results, segments, plan)    # CAPITALS in, CAPITALS out

A model splits a line in capitals into letters, as it hardly ever saw one, and translates it into nonsense. The second
reading is written as the training text probably has it (truecasing): of a word's forms ("PARIS", "Paris", "paris") the
one that the source vocabulary spells with the fewest subwords. Both readings are searched for in the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dragoman.data.tokenizer import Tokenizer
from dragoman.languages.casing import Case, Span, capitalised, capitals, case_of, free_words, is_capital, lower, words
from dragoman.languages.codes import primary
from dragoman.languages.sentences import sentences
from dragoman.languages.words import places_of
from dragoman.translation.keeping.protected import Span as ProtectedSpan
from dragoman.translation.keeping.protected import find
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment

Search = Callable[[Sequence[TextSegment]], list[SegmentResult]]


def search_both(
    segments: Sequence[TextSegment], plan: Plan, search: Search
) -> tuple[list[TextSegment], list[SegmentResult]]:
    """Translate segments, those in CAPITALS or Title Case in usual case too.

    Returns:
        The segments as they were read for the likelier translation, and the results.
    """
    second = {i: reading for i, segment in enumerate(segments) if (reading := _second_reading(segment, plan))}
    results = search([*segments, *second.values()])
    chosen, chosen_results = list(segments), results[: len(segments)]
    for (i, reading), result in zip(second.items(), results[len(segments) :], strict=True):
        if result.hypotheses and not _is_likelier(chosen_results[i], result):
            chosen[i], chosen_results[i] = reading, result
    return chosen, chosen_results


def _is_likelier(result: SegmentResult, other: SegmentResult) -> bool:
    """True if the best translation of ``result`` is likelier than that of ``other``, in total and per token.

    A loop is likely per token, and a translation that leaves something out is likely in total.
    """
    if not result.hypotheses:
        return False
    first, second = result.hypotheses[0], other.hypotheses[0]
    per_token = [hypothesis.log_prob / (len(hypothesis.ids) + 1) for hypothesis in (first, second)]
    return first.log_prob > second.log_prob and per_token[0] > per_token[1]


def _second_reading(segment: TextSegment, plan: Plan) -> TextSegment | None:
    """Return a segment in usual case; None if it is so already, or if its reading would be the same."""
    fixed = _ends(segment.spans)
    case = case_of(segment.text, fixed)
    if case is None:
        return None
    text = usual_case(segment.text, case, plan.src_lang, plan.src_tokenizer, fixed)
    if text == segment.text:
        return None
    return replace(segment, text=text, search=replace(segment.search, ids=plan.src_tokenizer.encode([text])[0]))


def _ends(spans: Sequence[ProtectedSpan]) -> list[Span]:
    """Return start and end of spans that keep their case, such as addresses and placeholders."""
    return [(span.start, span.end) for span in spans]


def usual_case(text: str, case: Case, lang: str | None, tokenizer: Tokenizer, fixed: Sequence[Span] = ()) -> str:
    """Return a line in CAPITALS or Title Case as it is usually written, as long as it was.

    Args:
        case: Case of the line.
        tokenizer: Source tokenizer, whose vocabulary knows how words are usually written.
        fixed: Spans that keep their case.
    """
    starts = _sentence_starts(text, lang)
    spans = free_words(text, fixed)
    forms_of = [_forms(text[start:end], case, lang, start in starts) for start, end in spans]
    every = list(dict.fromkeys(form for forms in forms_of for form in forms))
    costs = {form: _cost(ids, tokenizer) for form, ids in zip(every, tokenizer.encode(every), strict=True)}
    written, end = [], 0
    for (start, stop), forms in zip(spans, forms_of, strict=True):
        written += [text[end:start], min(forms, key=costs.__getitem__)]
        end = stop
    return "".join([*written, text[end:]])


def _sentence_starts(text: str, lang: str | None) -> set[int]:
    """Return where the first word of each sentence starts."""
    starts, begin = set(), 0
    first_words = {end: start for start, end in reversed(list(words(text)))}
    ordered = sorted(first_words.values())
    for sentence in sentences(text, lang):
        starts.update([start for start in ordered if start >= begin][:1])
        begin += len(sentence)
    return starts


def _forms(word: str, case: Case, lang: str | None, is_first: bool) -> list[str]:
    """Return the forms that a word may have in usual case, the usual one first: of equal forms it is taken."""
    if case == "title" and (not is_capital(word[0]) or any(map(is_capital, word[1:]))):
        return [word]
    if primary(lang) == "en" and capitalised(word, lang).replace("\u2019", "'").split("'")[0] == "I":
        return [capitalised(word, lang)]
    small, large = lower(word, lang), capitalised(word, lang)
    return [large, small, word] if is_first else [small, large, word]


def _cost(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[int, int]:
    """Return how unusual a word is: its number of rare subwords, and of all."""
    return sum(i in tokenizer.rare_ids for i in ids), len(ids)


def in_source_case(
    results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan
) -> list[SegmentResult]:
    """Return the translations of lines in capitals in capitals; what must arrive unchanged keeps its case.

    Args:
        segments: The segments as they were before ``search_both``.
    """
    cased = list(results)
    for i, (result, segment) in enumerate(zip(results, segments, strict=True)):
        if result.texts and case_of(segment.text, _ends(segment.spans)) == "capitals":
            cased[i] = replace(result, texts=tuple(_in_capitals(text, segment, plan) for text in result.texts))
    return cased


def _in_capitals(text: str, segment: TextSegment, plan: Plan) -> str:
    fixed, constraints = _ends(find(text)), segment.constraints
    if constraints is not None:
        fixed += [(0, len(constraints.prefix))] if text.startswith(constraints.prefix) else []
        required = [word for word, _ in constraints.placed]
        fixed += [(start, start + len(word)) for word in required for start in places_of(text, word)]
    written, end = [], 0
    for start, stop in sorted(fixed):
        if stop > end:
            written += [capitals(text[end : max(start, end)], plan.tgt_lang), text[max(start, end) : stop]]
            end = stop
    in_capitals = "".join([*written, capitals(text[end:], plan.tgt_lang)])
    broken = constraints is not None and constraints.violations(in_capitals) != constraints.violations(text)
    return text if broken else in_capitals
