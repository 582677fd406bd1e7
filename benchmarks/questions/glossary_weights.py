"""Learns how readings tell which words render a term: ``WEIGHTS``, ``COHERENCE`` and ``MOST_FALL``.

    python -m benchmarks.questions.glossary_weights --run RUN --data DATA --sets multi30k:val --to de

Terms of 1 to 4 words of the sentences, with the words of the translation that render them by the judge's alignment
(``benchmarks.word_alignment``, learned from the training text alone). The weights come from logistic regression on the
words, the weight of what is left from a search on the runs, the largest fall from right places of an artificial word.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.questions.glossary_terms import (
    ARTICLES,
    ARTIFICIAL,
    ENGLISH_ARTICLES,
    Corpora,
    english_stop_words,
    read,
    words,
)  # fmt: skip
from benchmarks.word_alignment import span_of, words_of
from dragoman.decoding.scoring import Read
from dragoman.languages.words import count_word
from dragoman.translation.keeping import placing, rendering
from dragoman.translation.keeping.glossary import Match
from dragoman.translation.keeping.rendering import Evidence, Readings, Run, cores, evidence
from dragoman.translation.plan import Plan
from dragoman.translation.scoring import words_of_tokens
from dragoman.translation.translator import Translator

MOST = 300
TERMS_A_SENTENCE = 2
STEPS = 400


class Term(NamedTuple):
    """A term with the words of the translation that render it, and the evidence for each word."""

    src: str
    plain: str
    term: str
    gold: tuple[int, int]
    evidence: list[Evidence]
    spans: list[tuple[int, int]]


def drawn(corpora: Corpora, rng: random.Random) -> list[tuple[int, str, tuple[int, int]]]:
    """Draw terms that one run of words renders: the number of the sentence, the term, and the run's characters."""
    chosen = []
    for i in rng.sample(range(len(corpora.src)), min(MOST, len(corpora.src))):
        src_spans, spans = words_of(corpora.src[i]), words_of(corpora.plain[i], corpora.unspaced)
        options = []
        for n in (1, 2, 3, 4):
            for first in range(len(src_spans) - n + 1):
                span, linked = span_of(corpora.to_plain[i], first, first + n), {t for _, t in corpora.to_plain[i]}
                term = corpora.src[i][src_spans[first][0] : src_spans[first + n - 1][1]]
                if not _is_sensible(words(term)):
                    continue
                if span is None or n == len(src_spans) or count_word(corpora.src[i], term) != 1:
                    continue
                if any(t not in linked for t in (span[0] - 1, span[1]) if 0 <= t < len(spans)):
                    continue
                gold = spans[span[0]][0], spans[span[1] - 1][1]
                options.append((i, term, gold))
        rng.shuffle(options)
        options.sort(key=lambda option: -len(words(option[1])) * rng.random())
        usual = (option for option in options if corpora.renders(words(option[1]), _spelled(option, corpora)))
        chosen += itertools.islice(usual, TERMS_A_SENTENCE)
    return chosen


def _is_sensible(term: Sequence[str]) -> bool:
    """True if a term neither ends nor begins with a small word, an article apart."""
    small = english_stop_words()
    return term[-1].lower() not in small and term[0].lower() not in small - ENGLISH_ARTICLES - {"is", "are"}


def _spelled(option: tuple[int, str, tuple[int, int]], corpora: Corpora) -> str:
    i, _, gold = option
    return ("" if corpora.unspaced else " ").join(words(corpora.plain[i][slice(*gold)], corpora.unspaced))


def with_evidence(corpora: Corpora, some: Sequence[tuple[int, str, tuple[int, int]]], plan: Plan) -> list[Term]:
    """Read each translation with its source, without the term and with the term alone."""
    sources = [corpora.src[i] for i, _, _ in some]
    plains = [corpora.plain[i] for i, _, _ in some]
    starts = [source.index(term) for source, (_, term, _) in zip(sources, some, strict=True)]
    parts = [placing.parts(source, Match(term, "", start))
             for source, (_, term, _), start in zip(sources, some, starts, strict=True)]  # fmt: skip
    src, tgt = plan.src_tokenizer.encode(sources), plan.tgt_tokenizer.encode(plains)
    halves = [plan.src_tokenizer.encode([part[k] for part in parts]) for k in (0, 1)]
    whole = plan.reader.read(list(zip(src, tgt, strict=True)), 4096, attention=True)
    without, alone = (plan.reader.read(list(zip(half, tgt, strict=True)), 4096) for half in halves)
    terms = []
    for k, (_, term, gold) in enumerate(some):
        numbers = [-1] * len(sources[k])
        numbers[starts[k] : starts[k] + len(term)] = [0] * len(term)
        of_term = [bool(own) for own in words_of_tokens(plan.src_tokenizer, src[k], sources[k], numbers)]
        its_words = words_of_tokens(
            plan.tgt_tokenizer, tgt[k], plains[k], rendering.owners(plains[k], corpora.unspaced)
        )
        reads = whole[k], without[k], alone[k]
        assert all(own is not None for own in reads)
        found = evidence(Readings(plains[k], its_words, *reads), of_term, corpora.unspaced)  # type: ignore[arg-type]
        terms.append(Term(sources[k], plains[k], term, gold, found, cores(plains[k], corpora.unspaced)))
    return terms


def fitted(terms: Sequence[Term]) -> list[float]:
    """Return the weights of a logistic regression that tells words of the rendering from others."""
    rows, labels = [], []
    for term in terms:
        for own, (start, end) in zip(term.evidence, term.spans, strict=True):
            if start < end:
                rows.append([1.0, *own])
                labels.append(float(term.gold[0] <= start < term.gold[1]))
    data, wanted = torch.tensor(rows), torch.tensor(labels)
    weights = torch.zeros(data.shape[1], requires_grad=True)
    search = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Any:
        search.zero_grad()
        value = torch.nn.functional.binary_cross_entropy_with_logits(data @ weights, wanted) + 1e-4 * (weights**2).sum()
        value.backward()
        return value

    search.step(loss)
    return [round(weight, 2) for weight in weights.tolist()]


def _runs(term: Term, weights: Sequence[float], unspaced: bool) -> list[Run]:
    """Return the runs that placing would try: the best ones, with or without their article as the term has one."""
    odds = [weights[0] + sum(w * v for w, v in zip(weights[1:], own, strict=True)) for own in term.evidence]
    free = [span for span in term.spans if span[0] < span[1]]
    own = words(term.term)[0].lower() in ENGLISH_ARTICLES and len(words(term.term)) > 1
    some = [rendering.with_article(run, term.plain, free, ARTICLES, own)
            for run in rendering.runs(odds, term.spans, unspaced)]  # fmt: skip
    return list({(run.start, run.end): run for run in reversed(some)}.values())


def _fits(terms: Sequence[Term], flat: Sequence[tuple[int, Run]], plan: Plan) -> list[float]:
    """Return the nats of each translation without a run, read without the term, against those before."""
    before = _read([(term.src, term.plain) for term in terms], plan)
    texts = []
    for k, run in flat:
        start = terms[k].src.index(terms[k].term)
        source = placing.without(terms[k].src, start, start + len(terms[k].term))
        texts.append((source, placing.without(terms[k].plain, run.start, run.end)))
    return [
        read.log_prob - placing.around(terms[k].plain, [(run.start, run.end)], *before[k], plan)
        for (k, run), (_, read) in zip(flat, _read(texts, plan), strict=True)
    ]


def _falls(terms: Sequence[Term], best: Mapping[int, Run], plan: Plan) -> dict[str, dict[str, float]]:
    """Return quantiles of the nats that the words around an artificial word lose, in right and in wrong places."""
    target = ARTIFICIAL[0]
    before = _read([(term.src, term.plain) for term in terms], plan)
    texts = [run.changed(terms[k].plain, target) for k, run in best.items()]
    after = _read([(terms[k].src, text) for k, text in zip(best, texts, strict=True)], plan)
    falls: dict[str, list[float]] = {"right": [], "wrong": []}
    for (k, run), text, own in zip(best.items(), texts, after, strict=True):
        is_right = (run.start, run.end) == terms[k].gold
        falls["right" if is_right else "wrong"].append(
            placing.around(terms[k].plain, [(run.start, run.end)], *before[k], plan)
            - placing.around(text, [(run.start, run.start + len(target))], *own, plan)
        )
    return {
        name: {str(share): round(sorted(some)[int(share * (len(some) - 1))], 1) for share in (0.1, 0.5, 0.9, 0.98)}
        for name, some in falls.items() if some
    }  # fmt: skip


def _read(pairs: Sequence[tuple[str, str]], plan: Plan) -> list[tuple[Sequence[int], Read]]:
    """Return the target ids of each pair of texts, with their reading."""
    src = plan.src_tokenizer.encode([source for source, _ in pairs])
    tgt = plan.tgt_tokenizer.encode([target for _, target in pairs])
    reads = plan.reader.read(list(zip(src, tgt, strict=True)), 4096)
    assert all(read is not None for read in reads)
    return [(ids, read) for ids, read in zip(tgt, reads, strict=True) if read is not None]


def main() -> None:
    """Print the weights, and how often the best run is the rendering for several weights of the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["multi30k:val"], help="folder:name of sentences to draw from")
    parser.add_argument("--to", default="de")
    options = parser.parse_args()
    translator = Translator.load(options.run, "cpu")
    sets = dict(name.split(":") for name in options.sets)
    corpora = read(options.data, translator, sets, options.to)
    plan = translator.plan()
    terms = with_evidence(corpora, drawn(corpora, random.Random(1)), plan)
    half = len(terms) // 2
    weights = fitted(terms[:half])
    possible = [_runs(term, weights, corpora.unspaced) for term in terms]
    flat = [(k, run) for k, some in enumerate(possible) for run in some]
    fits = _fits(terms, flat, plan)
    figures: dict[str, Any] = {"terms": len(terms), "weights": weights, "all": fitted(terms)}
    for coherence in (0.0, 0.1, 0.2, 0.3, 0.5):
        best: dict[int, tuple[float, Run]] = {}
        for (k, run), nats in zip(flat, fits, strict=True):
            best[k] = max(best.get(k, (float("-inf"), run)), (run.log_odds + coherence * nats, run))
        right = [(run.start, run.end) == terms[k].gold for k, (_, run) in best.items() if k >= half]
        figures[f"right, coherence {coherence}"] = round(100 * sum(right) / max(1, len(right)), 2)
        if coherence == rendering.COHERENCE:
            figures["fall"] = _falls(terms, {k: run for k, (_, run) in best.items()}, plan)
    among = [any((run.start, run.end) == term.gold for run in some) for term, some in zip(terms, possible, strict=True)]
    figures["among the runs that are tried"] = round(100 * sum(among[half:]) / max(1, len(among) - half), 2)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
