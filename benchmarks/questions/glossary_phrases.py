"""Does a glossary's term replace the whole rendering, once, and nothing else? 300 terms and phrases of 1 to 4 words.

    python -m benchmarks.questions.glossary_phrases before --run RUN --data DATA

Terms are drawn by a rule and a seed from Multi30k's test set and Tatoeba's dev set. The judge is a word aligner of its
own (``benchmarks.word_alignment``), learned from both training texts: it says which words of the translation without a
glossary render the term, before the glossary is tried. Replacements are words that nobody ever saw, other words of the
corpus, and the reference's own rendering.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import itertools
import json
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.questions.glossary_terms import (
    ARTICLES,
    ARTIFICIAL,
    SEED,
    SETS,
    USUAL,
    Case,
    Corpora,
    cases,
    english_stop_words,
    read,
    words,
)  # fmt: skip
from benchmarks.record import RESULTS, machine
from benchmarks.word_alignment import words_of
from dragoman.evaluation.metrics import chrf
from dragoman.languages.words import count_word
from dragoman.translation.assemble import Translation, assemble
from dragoman.translation.keeping.placing import place_terms
from dragoman.translation.notes import QUIET
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.segments import SegmentResult, segment
from dragoman.translation.translator import Translator


def faults(case: Case, text: str, corpora: Corpora) -> list[str]:
    """Return what is wrong with a translation that should have the term."""
    wrong = []
    if count_word(text, case.replacement) != 1:
        wrong.append("not once")
    u = corpora.unspaced
    out, plain, gold = (Counter(w.lower() for w in words(some, u)) for some in (text, case.plain, case.rendering))
    new = Counter(w.lower() for w in words(case.replacement, u))
    usual = {
        other for word in words(case.term) if word.lower() not in english_stop_words()
        for other, p in corpora.table.get(word.lower(), {}).items() if p >= USUAL
    }  # fmt: skip
    if any(
        out[word] - new[word] > plain[word] - gold[word]
        for word in {*gold, *usual} - corpora.function_words
        if u or len(word) > 2
    ):
        wrong.append("left")
    if _doubled(text, u) - _doubled(case.plain, u) - _doubled(case.replacement, u):
        wrong.append("doubled")
    if any(count_word(text, word.strip()) < n for word, n in _needed(case, corpora).items()) or _lost_article(
        case, text
    ):
        wrong.append("lost")
    return wrong


def _needed(case: Case, corpora: Corpora) -> dict[str, int]:
    """Return the content words that stand next to the rendering: they must stay."""
    if corpora.unspaced:
        return {}
    spans = words_of(case.plain)
    before = [span for span in spans if span[1] <= case.gold[0]][-1:]
    after = [span for span in spans if span[0] >= case.gold[1]][:1]
    names = [case.plain[slice(*span)] for span in (*before, *after)]
    outside = case.plain[: case.gold[0]] + " " + case.plain[case.gold[1] :]
    return {name: count_word(outside, name) for name in names if name.lower() not in corpora.function_words}


def _lost_article(case: Case, text: str) -> bool:
    """True if an article before the rendering, which the term does not have, is gone."""
    own = words(case.plain[: case.gold[0]])
    if not own or own[-1].lower() not in ARTICLES or case.replacement not in text:
        return False
    before = words(text[: text.index(case.replacement)])
    return not before or before[-1].lower() not in ARTICLES


def _doubled(text: str, unspaced: bool) -> Counter[tuple[str, str]]:
    """Return the pairs of neighbours that are the same word twice, or two articles."""
    own = [word.lower() for word in words(text, unspaced)]
    return Counter(
        pair for pair in itertools.pairwise(own)
        if pair[0] == pair[1] or (pair[0] in ARTICLES and pair[1] in ARTICLES)
    )  # fmt: skip


def judge(some: Sequence[Case], texts: Sequence[str], corpora: Corpora) -> dict[str, Any]:
    """Return the shares of terms that are right, in per cent, by kind; and the faults."""
    wrong = [faults(case, text, corpora) for case, text in zip(some, texts, strict=True)]

    def share(chosen: Sequence[int]) -> dict[str, Any]:
        right = sum(not wrong[i] for i in chosen)
        return {"terms": len(chosen), "right": round(100 * right / max(1, len(chosen)), 2)}

    every = range(len(some))
    groups = {
        name: {value: share([i for i in every if getattr(some[i], name) == value])
               for value in sorted({getattr(case, name) for case in some})}
        for name in ("kind", "source", "corpus")
    }  # fmt: skip
    exact = sum(
        text == case.plain[: case.gold[0]] + case.replacement + case.plain[case.gold[1] :]
        for case, text in zip(some, texts, strict=True)
    )
    own = [i for i in every if some[i].source == "reference"]
    scores = [
        chrf([some_texts[i] for i in own], [some[i].ref for i in own]).value
        for some_texts in ([case.plain for case in some], texts)
    ]
    return {
        **share(every), "exactly_the_rendering_replaced": round(100 * exact / max(1, len(some)), 2), **groups,
        "faults": dict(Counter(name for names in wrong for name in names)),
        "chrf_reference": {"without": round(scores[0], 2), "with": round(scores[1], 2)},
        "wrong": [
            {"term": case.term, "replacement": case.replacement, "rendering": case.rendering, "faults": names}
            for case, names in zip(some, wrong, strict=True) if names
        ][:40],
    }  # fmt: skip


def translated(some: Sequence[Case], translator: Translator) -> list[Translation]:
    """Translate each sentence with a glossary of its term; the first search, which knows no term, is done once for all.

    What the guard and the protected spans make of it is the same as in ``Translator.translate``.
    """
    plain = translator.plan()
    first = segment([case.src for case in some], plain, QUIET)
    results = iter(translate_segments(first, plain))
    by_owner: dict[int, list[SegmentResult]] = defaultdict(list)
    for own in first:
        by_owner[own.owner].append(next(results))
    found = []
    for number, case in enumerate(some):
        plan = translator.plan(glossary={case.term: case.replacement})
        segments, own_results = segment([case.src], plan, QUIET), list(by_owner[number])
        place_terms(own_results, segments, plan)
        found += assemble([case.src], segments, own_results, plan)
    return found


def timed(translator: Translator, corpora: Corpora) -> dict[str, float]:
    """Return median milliseconds of processor time of a sentence alone: without terms, with 1 and with up to 10."""
    longer = [src for src in corpora.src if len(words(src)) >= 12][:15]
    stop_words = english_stop_words()
    spent: dict[str, list[float]] = defaultdict(list)
    for src in longer:
        own = list(dict.fromkeys(word for word in words(src) if word.lower() not in stop_words))
        for name, n in (("0 terms", 0), ("1 term", 1), ("10 terms", 10)):
            terms = {word: ARTIFICIAL[k % len(ARTIFICIAL)] + str(k) for k, word in enumerate(own[:n])}
            start = time.process_time()
            translator.translate([src], glossary=terms or None)
            spent[name].append(1000 * (time.process_time() - start))
    return {name: round(sorted(times)[len(times) // 2], 1) for name, times in spent.items()}


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def main() -> None:
    """Draw the terms, translate each sentence with its own, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("when", choices=("before", "after", "look"))
    parser.add_argument("--run", type=Path, required=True, help="a run from English, trained on Multi30k")
    parser.add_argument("--data", type=Path, required=True, help="the folder with multi30k and tatoeba-en-de")
    parser.add_argument("--to", default="de", help="target language: de, or zh with tatoeba-en-zh")
    parser.add_argument("--show", type=int, default=0, help="print so many wrong translations")
    options = parser.parse_args()
    translator = Translator.load(options.run, "cpu")
    sets = SETS if options.to == "de" else {f"tatoeba-en-{options.to}": "dev"}
    corpora = read(options.data, translator, sets, options.to)
    some = cases(corpora)
    found = translated(some, translator)
    figures = judge(some, [translation.text for translation in found], corpora)
    figures["noted"] = sum(note.kind == "constraint" for translation in found for note in translation.notes)
    figures["ms"] = timed(translator, corpora)
    wrong = [(case, one) for case, one in zip(some, found, strict=True) if faults(case, one.text, corpora)]
    for case, one in wrong[: options.show]:
        print(f"{case.term} -> {case.replacement} for {case.rendering}: {faults(case, one.text, corpora)}\n"
              f"  {case.src}\n  {case.plain}\n  {one.text}")  # fmt: skip
    if options.when != "look":
        _save(options, corpora, some, figures)
    print(json.dumps({key: value for key, value in figures.items() if key != "wrong"}, indent=2, ensure_ascii=False))


def _save(options: argparse.Namespace, corpora: Corpora, some: Sequence[Case], figures: dict[str, Any]) -> None:
    name = "glossary-phrases" if options.to == "de" else f"glossary-phrases-{options.to}"
    path = RESULTS / "scripts" / f"{name}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record |= {
        "command": "python -m benchmarks.questions.glossary_phrases before|after --run RUN --data DATA",
        "machine": machine(), "versions": {name: version(name) for name in ("torch", "sentencepiece", "numpy")},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "inputs": {
            "rule": "benchmarks/questions/glossary_phrases.py", "seed": SEED,
            "sha256": {"sources": _digest(*corpora.src), "references": _digest(*corpora.ref),
                       "plain": _digest(*corpora.plain),
                       "cases": _digest(*(f"{case.src}\t{case.term}\t{case.replacement}" for case in some))},
            "licence": "Multi30k: CC BY-NC-SA 4.0 (not copied here); Tatoeba: CC BY 2.0 FR",
        },
        options.when: figures,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
