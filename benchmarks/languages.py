"""Sentence ends, language tags and language detection, judged by Django's and Babel's catalogues.

python -m benchmarks.languages before|after|fit

``fit`` prints how true the confidence is at several temperatures, on texts that nothing else uses.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import language_inputs as inputs
from benchmarks.record import RESULTS, machine

Guess = Callable[[str], tuple[str, float]]
"""Returns the language of a text and a confidence from 0 to 1."""

SERVERS = [
    inputs.SHORT_LANGUAGES,
    ["en", "de", "zh"],
    ["es", "pt", "fr", "it"],
    ["sv", "da", "de", "en"],
    ["ru", "uk", "en"],
]
"""Languages to choose from: those of servers."""


def sentence_figures() -> dict[str, Any]:
    """Return how many pairs of sentences are split exactly where they were joined, and which texts of one are."""
    from dragoman.languages.sentences import sentences

    pairs = inputs.two_sentences()
    wrong: dict[str, int] = defaultdict(int)
    for pair in pairs:
        wrong[pair.lang] += sentences(pair.first + pair.second, pair.lang) != [pair.first, pair.second]
    marks = [
        mark
        for mark in inputs.FOREIGN_ENDS
        if sentences(f"猫犬鳥{mark} 猫犬鳥{mark}", None) != [f"猫犬鳥{mark} ", f"猫犬鳥{mark}"]
    ]
    split = [text for lang, text in inputs.not_ends() if sentences(text, lang) != [text]]
    return {
        "languages": len({pair.lang for pair in pairs}),
        "pairs": len(pairs),
        "split_right": len(pairs) - sum(wrong.values()),
        "wrong_by_language": {lang: n for lang, n in wrong.items() if n},
        "marks_that_end_nothing": "".join(marks),
        "single_sentences": len(inputs.not_ends()),
        "single_sentences_split": split,
    }


def tag_figures(match: Callable[[str, Sequence[str]], str | None]) -> dict[str, Any]:
    """Return how many pairs of tags are taken for the same, or kept apart, as CLDR has it."""
    same = [*inputs.same_tags(), *inputs.AS_USERS_WRITE.items()]
    apart = [*inputs.other_scripts(), *inputs.NOT_THE_SAME]
    missed = [pair for pair in same if match(pair[0], [pair[1]]) is None]
    mixed = [pair for pair in apart if match(pair[0], [pair[1]]) is not None or match(pair[1], [pair[0]]) is not None]
    return {
        "same": len(same),
        "taken_for_the_same": len(same) - len(missed),
        "missed": [" ".join(pair) for pair in missed[:40]],
        "apart": len(apart),
        "kept_apart": len(apart) - len(mixed),
        "mixed": [" ".join(pair) for pair in mixed[:60]],
    }


def detection_figures(texts: Sequence[inputs.ShortText], guess: Guess) -> dict[str, Any]:
    """Return accuracy, by language and number of words, and how far confidence is from accuracy in bins of a tenth."""
    hits: list[tuple[inputs.ShortText, float, bool]] = []
    start = time.perf_counter()
    for text in texts:
        lang, confidence = guess(text.text)
        hits.append((text, confidence, lang == text.lang))
    ms = 1000 * (time.perf_counter() - start) / len(texts)
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for _, confidence, hit in hits:
        bins[min(9, int(10 * confidence))].append((confidence, hit))
    gaps = {b: sum(c - h for c, h in rows) / len(rows) for b, rows in bins.items()}
    return {
        "texts": len(texts),
        "right": share(hit for *_, hit in hits),
        "mean_gap": round(sum(abs(gaps[b]) * len(rows) for b, rows in bins.items()) / len(texts), 3),
        "largest_gap_of_a_bin_of_20": round(
            max((abs(gaps[b]) for b, rows in bins.items() if len(rows) >= 20), default=0.0), 3
        ),
        "bins": {f"{b / 10:.1f}": [len(bins[b]), round(gaps[b], 2)] for b in sorted(bins)},
        "by_words": by(hits, lambda text: str(inputs.n_words(text.text, text.lang))),
        "by_language": by(hits, lambda text: text.lang),
        "ms_a_text": round(ms, 2),
    }


def share(hits: Any) -> float:
    values = list(hits)
    return round(sum(values) / len(values), 3)


def by(
    hits: Sequence[tuple[inputs.ShortText, float, bool]], key: Callable[[inputs.ShortText], str]
) -> dict[str, float]:
    groups: dict[str, list[bool]] = defaultdict(list)
    for text, _, hit in hits:
        groups[key(text)].append(hit)
    return {name: share(groups[name]) for name in sorted(groups)}


def product_guess(among: Sequence[str]) -> Guess:
    """Return the product's own detection among the languages of a server."""
    from dragoman.languages.detection import detect

    return lambda text: detect(text, among)


def product_match(code: str, among: Sequence[str]) -> str | None:
    """Return the tag that the product takes for the same, if any."""
    from dragoman.languages.codes import match

    return match(code, among)


def all_detection(guess_among: Callable[[Sequence[str]], Guess]) -> dict[str, Any]:
    """Return the figures for each server, of the short texts and of the greetings."""
    texts, figures = inputs.short_texts(1, 15), {}
    for among in SERVERS:
        name = "-".join(among) if len(among) < 9 else f"{len(among)} languages"
        guess = guess_among(among)
        figures[name] = detection_figures([text for text in texts if text.lang in among], guess)
        figures[f"{name}, greetings"] = detection_figures(
            [text for text in inputs.greetings() if text.lang in among], guess
        )
    return figures


def fit() -> None:
    """Print, for each temperature, how far the confidence is from the accuracy for the servers, on other texts."""
    from dragoman.languages import detection

    texts = inputs.short_texts(2, 15)
    for temperature in (0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8):
        detection.TEMPERATURE = temperature
        gaps = [
            detection_figures([text for text in texts if text.lang in among], product_guess(among))["mean_gap"]
            for among in SERVERS
        ]
        print(temperature, *gaps, "mean", round(sum(gaps) / len(gaps), 4))


def record_inputs() -> Mapping[str, Any]:
    """Return rule, seed, sum and licence of the inputs."""
    return {
        "rule": "the functions of benchmarks/language_inputs.py; short_texts(1, 15)",
        "seed": 1,
        "sha256": {
            "two_sentences": inputs.digest(inputs.two_sentences()),
            "tags": inputs.digest([*inputs.same_tags(), *inputs.other_scripts()]),
            "short_texts": inputs.digest(inputs.short_texts(1, 15)),
        },
        "licence": "Django: BSD-3-Clause; CLDR, by Babel: Unicode-3.0; the rest is ours",
    }


def main() -> None:
    """Measure, and write the figures beside those of the other state."""
    import datetime
    import platform
    from importlib.metadata import version

    (when,) = sys.argv[1:]
    if when == "fit":
        fit()
        return
    path = RESULTS / "scripts" / "languages.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"before": {}, "after": {}}
    packages = ("Django", "babel", "sentencex", "langcodes", "py3langid")
    figures = {
        "sentences": sentence_figures(), "tags": tag_figures(product_match), "detection": all_detection(product_guess)
    }  # fmt: skip
    record = {
        "command": f"python -m benchmarks.languages {when}", "machine": machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "inputs": record_inputs(),
        "before": record["before"], "after": record["after"], when: figures,
    }  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
