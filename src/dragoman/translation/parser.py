"""Sentences to constituency trees (section 6.3 of the paper): what is searched for, and trees of what was found.

A sentence's words are what stands between its spaces. Each line becomes one tree over exactly these words, on one line.
Of the hypotheses of a beam, those that are trees already go before those that have to be repaired.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.batches import NO_MEMORY
from dragoman.decoding.search import Hypothesis, length_penalty
from dragoman.parsing.trees import from_symbols, right_branching, sentence_of, words_of, write_tree
from dragoman.translation.segments import Part, Translation

REPAIRED = "repaired: "
"""So begins the note of a tree that was not one as the model wrote it; a sentence too long to parse has another."""


def cut(texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> list[Part]:
    """What to search for: each sentence whole, but for blank ones and those of more than ``max_tokens`` tokens."""
    sentences = [sentence_of(words_of(text)) for text in texts]
    pairs = zip(sentences, tokenizer.encode(sentences), strict=True)
    return [
        Part(number, 0, sentence, ids) for number, (sentence, ids) in enumerate(pairs) if 0 < len(ids) <= max_tokens
    ]


def join(
    texts: Sequence[str],
    parts: Sequence[Part],
    found: Sequence[Sequence[Hypothesis]],
    n_best: int,
    alpha: float,
    tokenizer: Tokenizer,
) -> list[Translation]:
    """The tree of each text; a right-branching one, with a note, for a sentence that was too long to search for.

    Args:
        found: The hypotheses of each part, best first; none where there was no memory.
        n_best: How many trees of each to give.
        alpha: Length penalty.
        tokenizer: Of the symbols.
    """
    result = [_unsearched(words_of(text)) for text in texts]
    decoded = iter(tokenizer.decode([h.ids for hypotheses in found for h in hypotheses]))
    for part, hypotheses in zip(parts, found, strict=True):
        words = words_of(texts[part.owner])
        trees = [_tree(hypothesis, next(decoded), words, alpha) for hypothesis in hypotheses]
        trees.sort(key=lambda one: bool(one.notes))  # stable: else best first
        of_line: dict[str, Translation] = {}
        for tree in trees:  # several may be repaired to the same one
            of_line.setdefault(tree.text, tree)
        trees = [*of_line.values()]
        best = trees[0] if trees else Translation("", 0.0, 1, notes=(NO_MEMORY,))
        result[part.owner] = best._replace(alternatives=tuple(trees[1:n_best]))
    return result


def _tree(hypothesis: Hypothesis, symbols: str, words: Sequence[str], alpha: float) -> Translation:
    tree, repairs = from_symbols(symbols.split(" "), words)
    n = len(hypothesis.ids) + 1
    score = hypothesis.log_prob / length_penalty(n, alpha)
    notes = (f"{REPAIRED}{', '.join(repairs)}",) if repairs else ()
    return Translation(write_tree(tree), score, 1, hypothesis.log_prob, n, notes=notes)


def _unsearched(words: Sequence[str]) -> Translation:
    if not words:
        return Translation("", 0.0, 0)
    note = f"too long to be parsed ({len(words):,} words): a right-branching tree stands here"
    return Translation(write_tree(right_branching(words)), 0.0, notes=(note,))
