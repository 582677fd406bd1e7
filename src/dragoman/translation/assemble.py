"""Joins the results of each text's segments to its translation, with notes, confidence and alignment."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.words import Links, word_numbers
from dragoman.translation.confidence import confidence_features
from dragoman.translation.faults import without_runs
from dragoman.translation.keeping.protected import not_text
from dragoman.translation.notes import Note
from dragoman.translation.plan import Plan
from dragoman.translation.quality import Quality, lowered, n_words_of, of_text, quality_of
from dragoman.translation.scoring import TextPart
from dragoman.translation.segments import SegmentResult, TextSegment, by_text, one_line
from dragoman.translation.unseen_words import TermWords, may_have_unseen, note_on_words, unseen_words


@dataclass(frozen=True, repr=False)
class Translation:
    """One translated line.

    Attributes:
        text: The translation.
        score: Its log-probability (nats, eos included) over the length penalty, summed over parts; 0 for a blank line.
        n_parts: Number of parts: several if the line has several sentences or was too long; 0 for a blank line.
        log_prob: Nats, the eos of each part included.
        n_tokens: Target subwords, the eos of each part counted.
        alternatives: The other n best, best first.
        alignment: Pairs (source word, target word), counted from 0; None: not requested.
        notes: Messages for the reader.
        confidence: Expected sentence chrF, over 100; 0 for a part that still has a fault; None: unknown.
        terms: Source terms of the glossary that the source contains.
        quality: Good, doubtful or poor, from confidence and length of its parts; see ``quality``. None: unknown, or
            nothing in it to translate.
    """

    text: str
    score: float
    n_parts: int = 1
    log_prob: float = 0.0
    n_tokens: int = 0
    alternatives: tuple[Translation, ...] = ()
    alignment: Links | None = None
    notes: tuple[Note, ...] = ()
    confidence: float | None = None
    terms: tuple[str, ...] = ()
    quality: Quality | None = None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """Return text, score, confidence, quality and kinds of notes on one line."""
        known = "" if self.confidence is None else f", confidence={self.confidence:.2f}"
        known += f", quality={self.quality!r}" if self.quality else ""
        notes = f", notes={[note.kind for note in self.notes]}" if self.notes else ""
        return f"Translation({self.text!r}, score={self.score:.3f}{known}{notes})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: text, confidence, score, notes and alternatives."""
        from dragoman.pages.render import render  # not needed to translate

        rows = [] if self.confidence is None else [("confidence", f"{self.confidence:.2f} ({self.quality})")]
        rows += [("score", f"{self.score:.3f}"), *(("note", note.text) for note in self.notes)]
        rows += [(f"alternative, {other.score:.3f}", other.text) for other in self.alternatives]
        return render("table.html", text=self.text, columns=[], rows=rows)


@dataclass(frozen=True)
class LineFormat:
    """Output format of a translation as a line; a file begun in one format is not resumed in another."""

    name: str
    line: Callable[[int, Translation], str]  # called with the number of the line, from 1


TEXT = LineFormat("text", lambda number, translation: translation.text)


def assemble(
    texts: Sequence[str], segments: Sequence[TextSegment], results: Sequence[SegmentResult], plan: Plan,
    cancellation: Cancellation | None = None,
) -> list[Translation]:  # fmt: skip
    """Return one translation for each text.

    Args:
        texts: The texts that ``segments`` are parts of.
        results: One for each segment.
        cancellation: Once cancelled, nobody needs what is left to do, and alignments are left out.
    """
    groups, parts = by_text(len(texts), segments), list(zip(segments, results, strict=True))
    joined = [_join([parts[i] for i in group], plan) for group in groups]
    translations = joined
    if plan.options.guard:
        cut = {segment.owner for segment in segments if segment.cut}
        translations = [without_seam(texts[i], whole) if i in cut else whole for i, whole in enumerate(joined)]
    translations = [_with_warning(*pair) for pair in zip(texts, translations, strict=True)]
    if plan.glossary is not None:
        found = [plan.glossary.terms_in(text) for text in texts]
        translations = [replace(line, terms=terms) for line, terms in zip(translations, found, strict=True)]
    suspects = may_have_unseen([*texts, *(segment.text for segment in segments)], plan)
    translations = _with_confidence(translations, groups, parts, suspects, plan)
    translations = [
        _with_unseen(text, translation, plan) if text in suspects else translation
        for text, translation in zip(texts, translations, strict=True)
    ]
    if plan.direction.zero_shot is not None:
        note = Note("zero_shot", plan.direction.zero_shot)
        translations = [replace(line, notes=(*line.notes, note)) if line.n_tokens else line for line in translations]
    if plan.options.alignments:
        parts_of_texts = _parts_to_align(texts, groups, segments, results, plan)
        links = plan.aligner.align(parts_of_texts, plan.search.decode.batch_tokens, cancellation)
        translations = [_with_links(*line) for line in zip(translations, joined, links, strict=True)]
    if plan.src_tokenizer.composes:  # the model does not see outer spaces
        first = [segments[group[0]].constraints if group else None for group in groups]
        prefixed = [constraints is not None and bool(constraints.given_prefix) for constraints in first]
        translations = [_with_outer_space(*line) for line in zip(texts, translations, prefixed, strict=True)]
    return translations


def _join(parts: Sequence[tuple[TextSegment, SegmentResult]], plan: Plan) -> Translation:
    """Join the parts of a text, for each of its n best."""
    missing = next((result.note for _, result in parts if not result.hypotheses), None)
    if missing is not None:
        return Translation("", 0.0, len(parts), notes=(missing,))
    ranked = [_of_ranks(parts, ranks, plan) for ranks in _ranks([result for _, result in parts], plan)]
    if not plan.options.sample:  # numbers and terms that were put in place may make two of one text
        first = dict[str, Translation]()
        for translation in ranked:
            first.setdefault(translation.text, translation)
        ranked = list(first.values())
    best, *others = ranked
    notes = [
        Note("constraint", violation)
        for segment, result in parts
        if segment.constraints is not None
        for violation in segment.constraints.violations(result.texts[0])
    ]
    for number, (_, result) in enumerate(parts, 1):
        where = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
        known = (result.note, result.lost, result.unknown, result.script)
        notes += [replace(note, text=note.text + where) for note in known if note is not None]
    return replace(best, alternatives=tuple(others), notes=tuple(notes)) if others or notes else best


def _ranks(results: Sequence[SegmentResult], plan: Plan) -> list[tuple[int, ...]]:
    """Return the rank of the hypothesis of each part, for the translation and then for each alternative."""
    if plan.options.n_best == 1:
        return [(0,) * len(results)]
    scores = [[hypothesis.score for hypothesis in result.hypotheses] for result in results]
    return (paired_by_chance if plan.options.sample else best_sums)(scores, plan.options.n_best)


def paired_by_chance(scores: Sequence[Sequence[float]], most: int) -> list[tuple[int, ...]]:
    """Return combinations of one sample of each list, as ranks, best sum first: as many as the shortest list has.

    No sample is taken twice. They come best first: those of one rank together would be better or worse than any sample
    of the whole text. The combination of all first ones leads, as the guard has looked at them alone.
    """
    others = [list(range(1, min(most, *map(len, scores)))) for _ in scores] if scores else []
    for number, ranks in enumerate(others[1:], 1):
        random.Random(number).shuffle(ranks)
    combined = list(zip(*others, strict=True))
    combined.sort(key=lambda ranks: -sum(own[rank] for own, rank in zip(scores, ranks, strict=True)))
    return [(0,) * len(scores), *combined]


def best_sums(scores: Sequence[Sequence[float]], most: int) -> list[tuple[int, ...]]:
    """Return the ``most`` combinations of one score of each list with the greatest sums, as ranks, best first.

    The combination of all first scores always leads: the guard may have chosen them.
    """
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for own in scores:
        order = sorted(range(len(own)), key=lambda rank: -own[rank])
        # the i-th best so far with the j-th best of this list (from 1) is number i * j at best
        extended = [
            (total + own[rank], (*ranks, rank))
            for i, (total, ranks) in enumerate(best, 1)
            for rank in order[: most // i]
        ]
        best = nlargest(most, extended, key=lambda pair: pair[0])
    leading = (0,) * len(scores)
    return [leading, *(ranks for _, ranks in best if ranks != leading)][:most]


def _of_ranks(parts: Sequence[tuple[TextSegment, SegmentResult]], ranks: Sequence[int], plan: Plan) -> Translation:
    chosen = [result.hypotheses[rank] for (_, result), rank in zip(parts, ranks, strict=True)]
    texts = [
        _space(segment, plan) * (i > 0)
        + (result.texts[rank] if segment.constraints is None else segment.constraints.as_given(result.texts[rank]))
        for i, ((segment, result), rank) in enumerate(zip(parts, ranks, strict=True))
    ]
    score = sum((hypothesis.score for hypothesis in chosen), 0.0)
    log_prob = sum((hypothesis.log_prob for hypothesis in chosen), 0.0)
    n_tokens = sum(len(hypothesis.ids) + 1 for hypothesis in chosen)
    return Translation("".join(texts), score, len(parts), log_prob, n_tokens)


def _with_outer_space(source: str, translation: Translation, has_prefix: bool) -> Translation:
    """Put white space around a translation, and around its alternatives, as it stands around the source.

    A prefix is the very beginning, so no space comes before it.
    """
    bare = source.strip()
    if len(bare) == len(source) or not translation.n_parts:
        return translation
    start = source.index(bare)
    before, after = source[:start].replace("\n", ""), source[start + len(bare) :].replace("\n", "")

    def around(other: Translation) -> Translation:
        text = other.text.rstrip() if has_prefix else before + other.text.strip()
        return replace(other, text=text + after) if other.text else other

    return replace(around(translation), alternatives=tuple(map(around, translation.alternatives)))


def _space(segment: TextSegment, plan: Plan) -> str:
    """Return the text before a part's translation: the source's gap, or nothing in unspaced languages."""
    if plan.encoder.unspaced:
        return "".join(character for character in segment.gap if character not in " \u00a0\n")
    return one_line(segment.gap) or " "


def _with_warning(src: str, translation: Translation) -> Translation:
    """Add a note if the source is clearly no text."""
    what = not_text(src)
    return replace(translation, notes=(*translation.notes, Note("not_text", what))) if what else translation


def _with_unseen(src: str, translation: Translation, plan: Plan) -> Translation:
    """Add a note if the source has words that the model never saw, unless it cannot read the source at all."""
    if not translation.n_tokens or any(note.kind == "script" and note.left for note in translation.notes):
        return translation
    words = unseen_words(src, plan, TermWords.of(translation.terms))
    return replace(translation, notes=(*translation.notes, note_on_words(words))) if words else translation


def without_seam(src: str, translation: Translation) -> Translation:
    """Remove, with a note, text that is repeated where the pieces of a long sentence meet."""
    text = without_runs(src, translation.text)
    if text == translation.text:
        return translation
    note = Note("loop", "text was repeated where two parts of the sentence meet; the repetition is removed")
    return replace(translation, text=text, notes=(*translation.notes, note))


NOT_ALIGNED = Note("alignment", "no alignment: the repetition that was removed changed the words")
"""Note instead of an alignment for a translation that ``without_seam`` made shorter."""


def _with_links(translation: Translation, whole: Translation, links: Links) -> Translation:
    """Add the alignment of ``whole``, the translation with its seam; none if the seam was removed."""
    if translation.text != whole.text:
        return replace(translation, alignment=(), notes=(*translation.notes, NOT_ALIGNED))
    return replace(translation, alignment=links)


def _parts_to_align(
    texts: Sequence[str], groups: Sequence[Sequence[int]], segments: Sequence[TextSegment],
    results: Sequence[SegmentResult], plan: Plan,
) -> list[list[TextPart]]:  # fmt: skip
    """Return the parts of each text with their best translations."""
    parts: list[list[TextPart]] = []
    for text, group in zip(texts, groups, strict=True):
        solid: Iterator[int] = (n for n in word_numbers(text, plan.direction.src_unspaced) if n >= 0)
        parts.append([])
        # if one part has no translation, the whole text is blank
        for i in group if all(results[i].hypotheses for i in group) else ():
            segment = results[i].read or segments[i]
            numbers = [-1 if character.isspace() else next(solid) for character in segment.text]
            ids: Sequence[int] = results[i].hypotheses[0].ids
            # the guard may have changed the text after the search
            if results[i].note is not None:
                ids = plan.tgt_tokenizer.encode([results[i].texts[0]])[0]
            target, is_copy = results[i].texts[0], results[i].is_copy
            parts[-1].append(TextPart(segment.text, numbers, segment.search.ids, ids, target, is_copy))
    return parts


def _with_confidence(
    translations: list[Translation], groups: Sequence[Sequence[int]],
    parts: Sequence[tuple[TextSegment, SegmentResult]], suspects: Container[str], plan: Plan,
) -> list[Translation]:  # fmt: skip
    """Add confidence and quality, if the plan has a confidence.

    The confidence is the mean over the parts, weighted by length; the quality is that of a text with these parts for
    lines, as a mean hides a bad sentence.

    Args:
        suspects: Texts that may have words which the model never saw.
    """
    if plan.confidence is None:
        return translations
    rare = plan.src_tokenizer.rare_ids
    best = {i: result.hypotheses[0] for i, (_, result) in enumerate(parts) if result.hypotheses}
    rows = [
        confidence_features(hypothesis.log_prob, len(hypothesis.ids) + 1, len(ids), sum(token in rare for token in ids))
        for hypothesis, ids in ((best[i], (parts[i][1].read or parts[i][0]).search.ids) for i in best)
    ]
    known = {i: value if parts[i][1].sound else 0.0 for i, value in zip(best, plan.confidence.of(rows), strict=True)}
    confident = []
    for translation, group in zip(translations, groups, strict=True):
        value = quality = None
        if translation.n_tokens:
            value = sum(known[i] * (len(best[i].ids) + 1) for i in group) / translation.n_tokens
            terms = TermWords.of(translation.terms)
            of_parts = [(i, _quality(parts[i][1], known[i], plan)) for i in group if not parts[i][1].is_copy]
            quality = of_text(
                lowered(own) if text in suspects and unseen_words(text, plan, terms) else own
                for text, own in ((parts[i][0].text, own) for i, own in of_parts)
            )
        confident.append(replace(translation, confidence=value, quality=quality))
    return confident


def _quality(result: SegmentResult, confidence: float, plan: Plan) -> Quality:
    """Return the quality of a part of a text, as if the model had seen all of its words."""
    return quality_of(confidence, n_words_of(result.texts[0], plan.encoder.unspaced), plan.encoder.unspaced)


def features_of(texts: Sequence[str], translations: Sequence[Translation], plan: Plan) -> list[list[float]]:
    """Return the features of translations for ``Confidence.of``; blank lines are left out."""
    rare, rows = plan.src_tokenizer.rare_ids, []
    for ids, translation in zip(plan.src_tokenizer.encode(list(texts)), translations, strict=True):
        if translation.n_tokens:
            n_rare = sum(i in rare for i in ids)
            rows.append(confidence_features(translation.log_prob, translation.n_tokens, len(ids), n_rare))
    return rows
