"""Parses sentences to constituency trees (section 6.3 of the paper): segments to search for, and trees of results.

The words of a sentence are separated by spaces. Each line becomes one tree over exactly these words, on one line. In a
beam, hypotheses that are trees come before those that must be repaired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.config import LengthPenalty
from dragoman.decoding.request import Hypothesis, Segment, penalised
from dragoman.languages.scripts import is_blank
from dragoman.parsing.trees import from_symbols, right_branching, sentence_of, words_of, write_tree
from dragoman.translation.assemble import Translation
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment


def segment_sentences(
    texts: Sequence[str], plan: Plan, events: Events = QUIET, first_number: int = 0
) -> list[TextSegment]:
    """Return each sentence as one segment; blank ones and those of more than ``max_tokens`` tokens are left out."""
    sentences = [sentence_of(words_of(text)) for text in texts]
    return [
        TextSegment(
            owner=number, start=0, text=sentence,
            search=Segment(ids=ids, key=(first_number + number, 0), cancellation=events.cancellation),
        )
        for number, (sentence, ids) in enumerate(zip(sentences, plan.src_tokenizer.encode(sentences), strict=True))
        if 0 < len(ids) <= plan.facts.max_tokens
    ]  # fmt: skip


def assemble_trees(
    texts: Sequence[str], segments: Sequence[TextSegment], results: Sequence[SegmentResult], plan: Plan
) -> list[Translation]:
    """Return the tree of each text; a right-branching one, with a note, for a sentence that was too long."""
    translations = [_unsearched([] if is_blank(text) else words_of(text)) for text in texts]
    for segment, result in zip(segments, results, strict=True):
        words = words_of(texts[segment.owner])
        symbols_of = zip(result.hypotheses, result.texts, strict=True)
        trees = [_tree(hypothesis, symbols, words, plan.search.penalty) for hypothesis, symbols in symbols_of]
        trees.sort(key=lambda tree: bool(tree.notes))  # stable: otherwise best first
        of_line: dict[str, Translation] = {}
        for tree in trees:  # several may be repaired to the same tree
            of_line.setdefault(tree.text, tree)
        trees = [*of_line.values()]
        missing = () if result.note is None else (result.note,)
        best = trees[0] if trees else Translation("", 0.0, 1, notes=missing)
        translations[segment.owner] = replace(best, alternatives=tuple(trees[1 : plan.options.n_best]))
    return translations


def _tree(hypothesis: Hypothesis, symbols: str, words: Sequence[str], penalty: LengthPenalty) -> Translation:
    tree, repairs = from_symbols(symbols.split(" "), words)
    n = len(hypothesis.ids) + 1
    score = penalised(hypothesis.log_prob, n, penalty)
    notes = (Note("repaired", f"repaired: {', '.join(repairs)}"),) if repairs else ()
    return Translation(write_tree(tree), score, 1, hypothesis.log_prob, n, notes=notes)


def _unsearched(words: Sequence[str]) -> Translation:
    if not words:
        return Translation("", 0.0, 0)
    note = Note("too_long", f"too long to be parsed ({len(words):,} words): a right-branching tree is returned")
    return Translation(write_tree(right_branching(words)), 0.0, notes=(note,))
