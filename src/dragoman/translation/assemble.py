"""What was found for the segments of each text, put together: its translation, with notes, confidence, alignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.decoding.alignment import Links, word_numbers
from dragoman.decoding.search import penalised
from dragoman.translation.confidence import confidence_features
from dragoman.translation.faults import without_runs
from dragoman.translation.notes import Note
from dragoman.translation.plan import Plan
from dragoman.translation.scoring import TextPart
from dragoman.translation.segments import SegmentResult, TextSegment, by_text


@dataclass(frozen=True, repr=False)
class Translation:
    """One translated line."""

    text: str
    score: float  # log-probability (nats, eos included) over the length penalty; 0 for a blank line
    n_parts: int = 1  # more than 1 where the line was too long and was split; 0 for a blank line
    log_prob: float = 0.0  # nats, the eos of each part included
    n_tokens: int = 0  # target subwords, the eos of each part counted
    alternatives: tuple[Translation, ...] = ()  # the rest of the n best, best first
    alignment: Links | None = None  # (source word, target word), from 0; None: not asked for
    notes: tuple[Note, ...] = ()  # what the reader should know
    confidence: float | None = None  # the sentence chrF to expect, over 100; 0: a fault is left; None: not known

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """One line; the rest is in the attributes."""
        known = "" if self.confidence is None else f", confidence={self.confidence:.2f}"
        notes = f", notes={[note.kind for note in self.notes]}" if self.notes else ""
        return f"Translation({self.text!r}, score={self.score:.3f}{known}{notes})"

    def _repr_html_(self) -> str:
        """For a notebook: the text, how good it is likely to be, what the reader should know."""
        from dragoman.pages.render import render  # not needed to translate

        rows = [] if self.confidence is None else [("confidence", f"{self.confidence:.2f}")]
        rows += [("score", f"{self.score:.3f}"), *(("note", note.text) for note in self.notes)]
        rows += [(f"alternative, {other.score:.3f}", other.text) for other in self.alternatives]
        return render("table.html", text=self.text, columns=[], rows=rows)


def assemble(
    texts: Sequence[str], segments: Sequence[TextSegment], results: Sequence[SegmentResult], plan: Plan
) -> list[Translation]:
    """One translation for each text.

    Args:
        texts: As they were cut into ``segments``.
        results: Of each segment.
    """
    groups = by_text(len(texts), segments)
    joined = [_join([(segments[i], results[i]) for i in group], plan) for group in groups]
    translations = joined
    if plan.options.guard:
        translations = [_without_seam(text, one) for text, one in zip(texts, joined, strict=True)]
    translations = _with_confidence(texts, translations, segments, results, plan)
    if plan.options.alignments:
        links = _align(texts, groups, segments, results, plan)
        translations = [_with_links(*each) for each in zip(translations, joined, links, strict=True)]
    return translations


def _join(parts: Sequence[tuple[TextSegment, SegmentResult]], plan: Plan) -> Translation:
    """The parts of a text, and of each of its n best, put together."""
    missing = next((result.note for _, result in parts if not result.hypotheses), None)
    if missing is not None:
        return Translation("", 0.0, len(parts), notes=(missing,))
    n_ranks = min((len(result.hypotheses) for _, result in parts), default=1)
    best, *others = (_of_rank([result for _, result in parts], rank, plan) for rank in range(n_ranks))
    notes = [
        Note("constraint", violation)
        for segment, result in parts
        if segment.constraints is not None
        for violation in segment.constraints.violations(result.texts[0])
    ]
    for number, (_, result) in enumerate(parts, 1):
        where = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
        notes += [replace(note, text=note.text + where) for note in (result.note, result.lost) if note is not None]
    return replace(best, alternatives=tuple(others), notes=tuple(notes))


def _of_rank(results: Sequence[SegmentResult], rank: int, plan: Plan) -> Translation:
    log_prob = sum(result.hypotheses[rank].log_prob for result in results)
    n = sum(len(result.hypotheses[rank].ids) + 1 for result in results)
    score = penalised(log_prob, n, plan.search.decode.length_penalty) if results else 0.0
    return Translation(plan.between.join(result.texts[rank] for result in results), score, len(results), log_prob, n)


def _without_seam(src: str, one: Translation) -> Translation:
    """Say once what a translation repeats where two of its parts meet, each of which is sound; and note it."""
    text = one.text if one.n_parts < 2 else without_runs(src, one.text)
    note = Note("loop", "loop: where its parts meet; the repetition is removed")
    return one if text == one.text else replace(one, text=text, notes=(*one.notes, note))


NOT_ALIGNED = Note("alignment", "no alignment: the repetition that was removed changed the words")
"""Of a translation that ``_without_seam`` made shorter, where alignments were asked for."""


def _with_links(one: Translation, whole: Translation, links: Links) -> Translation:
    """``one`` with the alignment of ``whole``, which is what it was with its seam; where they differ, without."""
    if one.text != whole.text:
        return replace(one, alignment=(), notes=(*one.notes, NOT_ALIGNED))
    return replace(one, alignment=links)


def _align(
    texts: Sequence[str], groups: Sequence[Sequence[int]], segments: Sequence[TextSegment],
    results: Sequence[SegmentResult], plan: Plan,
) -> list[Links]:  # fmt: skip
    """The links of each text with the best translation of its segments."""
    parts: list[list[TextPart]] = []
    for text, group in zip(texts, groups, strict=True):
        solid: Iterator[int] = (n for n in word_numbers(text, plan.reader.src_unspaced) if n >= 0)
        parts.append([])
        for i in group if all(results[i].hypotheses for i in group) else ():  # a text of which a part is lost is blank
            numbers = [-1 if character.isspace() else next(solid) for character in segments[i].text]
            ids: Sequence[int] = results[i].hypotheses[0].ids
            if results[i].note is not None:  # its text may be another than its hypothesis's
                ids = plan.tgt_tokenizer.encode([results[i].texts[0]])[0]
            parts[-1].append(TextPart(segments[i].text, numbers, segments[i].search.ids, ids))
    return plan.reader.align(parts, plan.search.decode.batch_tokens)


def _with_confidence(
    texts: Sequence[str], translations: list[Translation], segments: Sequence[TextSegment],
    results: Sequence[SegmentResult], plan: Plan,
) -> list[Translation]:  # fmt: skip
    """The translations with their confidence, where it is known."""
    if plan.confidence is None:
        return translations
    unsound = {segments[i].owner for i, result in enumerate(results) if not result.sound}
    known = iter(plan.confidence.of(features_of(texts, translations, plan)))
    values = [next(known) if one.n_tokens else None for one in translations]
    return [
        replace(one, confidence=0.0 if number in unsound else value)
        for number, (one, value) in enumerate(zip(translations, values, strict=True))
    ]


def features_of(texts: Sequence[str], translations: Sequence[Translation], plan: Plan) -> list[list[float]]:
    """What is known of translations without a reference, for a ``Confidence``; blank lines are left out."""
    rare, rows = plan.src_tokenizer.rare_ids, []
    for ids, one in zip(plan.src_tokenizer.encode(list(texts)), translations, strict=True):
        if one.n_tokens:
            rows.append(confidence_features(one.log_prob, one.n_tokens, len(ids), sum(i in rare for i in ids)))
    return rows
