"""Do a glossary's terms stand in their place, instead of the word that stood there? 300 terms in real sentences."""

from __future__ import annotations

import argparse
import dataclasses
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.evaluation.metrics import chrf
from dragoman.languages.words import count_word
from dragoman.translation.translator import Translation, Translator

TERMS = 300
ITERATIONS = 4
WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")

Lexicon = dict[str, dict[str, float]]


class Case(NamedTuple):
    """A sentence, a term for one of its words, and what the model says for this word by itself."""

    src: str
    ref: str  # with the term in it
    word: str
    term: str
    rival: str
    kind: str  # reference: the term is the reference's word; other: another noun, in the reference too


def lexicon(pairs: Iterable[tuple[str, str]]) -> Lexicon:
    """t(target word | source word) by IBM Model 1 (https://aclanthology.org/J93-2003)."""
    data = [(WORD.findall(src), WORD.findall(tgt)) for src, tgt in pairs]
    table: Lexicon = {}
    for _ in range(ITERATIONS):
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for src, tgt in data:
            for word in tgt:
                weights = [table[other].get(word, 0.0) for other in src] if table else [1.0] * len(src)
                total = sum(weights) or 1.0
                for other, weight in zip(src, weights, strict=True):
                    counts[other][word] += weight / total
        table = {}
        for other, row in counts.items():
            n = sum(row.values())
            table[other] = {word: count / n for word, count in row.items() if count / n > 1e-4}
    return table


def cases(
    sources: Sequence[str], refs: Sequence[str], said: Sequence[str], table: Lexicon, count: int = TERMS
) -> list[Case]:
    """Half of them with the reference's word where the model has another, half with another noun; one a sentence.

    German nouns have capitals. A word and what the model says for it stand in their sentences once.
    """
    found: dict[str, list[Case]] = {"reference": [], "other": []}
    for src, ref, text in zip(sources, refs, said, strict=True):
        options = [one for word in WORD.findall(src) if (one := _case(src, ref, text, word, table)) is not None]
        options.sort(key=lambda one: (len(found[one.kind]), one.word))
        if options and len(found[options[0].kind]) < count // 2:
            found[options[0].kind].append(options[0])
    return [*found["reference"], *found["other"]]


def _case(src: str, ref: str, text: str, word: str, table: Lexicon) -> Case | None:
    row = table.get(word, {})
    nouns = [other for other, p in sorted(row.items(), key=lambda one: -one[1]) if p > 0.01 and other[0].isupper()]
    rival = next((noun for noun in nouns if count_word(text, noun)), None)
    own = next((noun for noun in nouns if count_word(ref, noun)), None)
    if rival is None or own is None or row[rival] < 0.1 or word != word.lower() or text.startswith(rival):
        return None
    if count_word(src, word) != 1 or count_word(text, rival) != 1:
        return None
    if own != rival:
        return None if count_word(text, own) else Case(src, ref, word, own, rival, "reference")
    other = next((noun for noun in nouns[:6] if noun != rival and not count_word(text + " " + ref, noun)), None)
    if other is None or count_word(ref, rival) != 1:
        return None
    return Case(src, re.sub(rf"(?<!\w){rival}(?!\w)", other, ref), word, other, rival, "other")


def placed(case: Case, text: str) -> dict[str, bool]:
    """What can be said of the term in a translation."""
    end = text.rstrip(".!?… ")
    return {
        "once": count_word(text, case.term) == 1,
        "rival_gone": not count_word(text.replace(case.term, " "), case.rival),
        "before_the_end": case.term in end and not re.search(rf"[.!?]\s+{re.escape(case.term)}", text),
    }


def score(some: Sequence[Case], found: Sequence[Translation]) -> dict[str, Any]:
    """Shares in per cent, and chrF against references that have the term."""
    checks = [placed(case, one.text) for case, one in zip(some, found, strict=True)]
    shares = {name: round(100 * sum(each[name] for each in checks) / len(checks), 2) for name in checks[0]}
    return {
        "terms": len(some), **shares, "all": round(100 * sum(all(each.values()) for each in checks) / len(checks), 2),
        "chrf": round(chrf([one.text for one in found], [case.ref for case in some]).value, 2),
    }  # fmt: skip


def main() -> None:
    """Translate each sentence without a glossary, and with a glossary of its one term."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a run from English to German, trained on Multi30k")
    parser.add_argument("--data", type=Path, required=True, help="the folder with multi30k")
    parser.add_argument("--name", default="glossary", help="of the file of results")
    given = parser.parse_args()
    folder, translator = given.data / "multi30k", Translator.load(given.run)
    train, test = (
        [list(read_lines(folder / f"{name}.{lang}")) for lang in ("en", "de")] for name in ("train", "test_2016_flickr")
    )
    plain = [one.text for one in translator.translate(test[0])]
    some = cases(*test, plain, lexicon(zip(*train, strict=True)))
    start = time.perf_counter()
    found = [translator.translate([case.src], glossary={case.word: case.term})[0] for case in some]
    seconds = time.perf_counter() - start
    by_kind = {}
    for kind in ("reference", "other"):
        chosen = [i for i, case in enumerate(some) if case.kind == kind]
        of_kind = [some[i] for i in chosen]
        # without the glossary the reference has the word that it had, or the one the model says
        before = [case.ref if kind == "reference" else re.sub(rf"(?<!\w){case.term}(?!\w)", case.rival, case.ref)
                  for case in of_kind]  # fmt: skip
        texts = [plain[test[0].index(case.src)] for case in of_kind]
        by_kind[kind] = {
            **score(of_kind, [found[i] for i in chosen]),
            "chrf_without_the_glossary": round(chrf(texts, before).value, 2),
        }
    failed = [(case.src, f"{case.word} -> {case.term}, not {case.rival}", one.text)
              for case, one in zip(some, found, strict=True) if not all(placed(case, one.text).values())]  # fmt: skip
    figures = {
        "decode": dataclasses.asdict(translator.config.decode), **score(some, found), "by_kind": by_kind,
        "ms_a_sentence_alone": round(1000 * seconds / len(some), 1),
        "noted": sum(note.kind == "constraint" for one in found for note in one.notes),
        "examples": [(case.word, case.term, one.text) for case, one in zip(some[::50], found[::50], strict=True)],
        "examples_that_fail": failed[:8],
    }  # fmt: skip
    save(
        given.name, figures, "python -m benchmarks.questions.glossary --run RUN --data DATA", ("torch", "sentencepiece")
    )


if __name__ == "__main__":
    main()
