"""Which lines are worth translating, and which translations are fit to learn from: the filters of all made text.

A translation is left out that is empty, loops, copies its source or is far too long (``faults``), that has characters
that are no text, that has a low score, or that is not in its language. What language a line is in is only guessed, and
only where something speaks for it:

- by script, where a language has one of its own (``data.characters``);
- by telling words, of which eleven languages have some (``data.stopwords``): two that differ and none of the language
  that is expected. A short line, and a line of another language than these, is let through;
- a source of which most subwords are bytes or unknown is of characters that the model has hardly seen, in whatever
  language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.data.tokenizer import Tokenizer
from dragoman.languages.scripts import count_classes, in_another_script, scripts_of
from dragoman.languages.stopwords import ambiguous, another_language, words_of
from dragoman.translation.faults import Sizes, faults
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translation

SAMPLE = 2000
"""Lines of a text by which its language is told."""

MOST_UNKNOWN = 0.5
"""A source is unreadable if more of its subwords than this share are bytes or unknown."""

DAMAGED = "damaged"
OTHER_LANGUAGE = "in another language"
LOW_SCORE = "low score"
BLANK = "blank"
NO_TEXT = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f\ufffd]")
"""Control characters but the tab, and what stands for bytes that are no UTF-8: a model with subwords for single bytes
may say any, above all where it samples."""

UNKNOWN = "of unknown characters"


class Made(NamedTuple):
    """A translation that a model made."""

    src: str
    text: str
    score: float  # log-probability, in nats, for each target subword


def rendered(_: int, found: Translation) -> str:
    """What ``translate_file`` writes of a line: a JSON list of the score and the text of each of the n best."""
    every = (found, *found.alternatives)
    return json.dumps([[round(one.log_prob / max(one.n_tokens, 1), 4), one.text] for one in every], ensure_ascii=False)


def read_rendered(src: str, line: str) -> list[Made]:
    """The translations of a line from what ``rendered`` made of them, best first."""
    return [Made(src, text, float(score)) for score, text in json.loads(line)]


def least_score(made: Iterable[Made], drop_worst: float) -> float:
    """The score below which a share of all translations lies; minus infinity where none is to be dropped."""
    if not drop_worst:
        return -np.inf
    scores = np.fromiter((one.score for one in made if one.text), np.float64)
    return float(np.quantile(scores, drop_worst)) if len(scores) else -np.inf


class Language:
    """Tells lines that are in another language than ``lang``, as far as anything speaks for that."""

    def __init__(self, lang: str | None, sample: Sequence[str]) -> None:
        """Take a sample of the text, which shows what words its language has in common with others."""
        self.lang, self._ignored = lang, ambiguous(map(words_of, sample), lang)
        self._scripts = scripts_of(lang, count_classes(sample).sum(0)) if sample else None

    def others(self, texts: Sequence[str]) -> list[bool]:
        """Which of the texts are."""
        if self._scripts is None or not texts:
            return [False] * len(texts)
        by_script = in_another_script(count_classes(texts), self._scripts).tolist()
        return [
            script or another_language(words_of(text), self.lang, self._ignored) is not None
            for script, text in zip(by_script, texts, strict=True)
        ]


def unreadable(texts: Sequence[Sequence[int]], tokenizer: Tokenizer) -> list[bool]:
    """Which texts, as ids, are of characters that a model has hardly seen."""
    rare = tokenizer.rare_ids
    return [sum(i in rare for i in ids) > MOST_UNKNOWN * len(ids) for ids in texts]


def unfit(made: Sequence[Made], plan: Plan, language: Language, least: float) -> list[str]:
    """Why each translation is not fit to learn from; nothing where it is.

    Args:
        made: None of a blank source.
        plan: How they were translated.
        language: Of the translations.
        least: The lowest score that is kept.
    """
    n_src = [len(ids) for ids in plan.src_tokenizer.encode([one.src for one in made])]
    n_tgt = [len(ids) for ids in plan.tgt_tokenizer.encode([one.text for one in made])]
    foreign = language.others([one.text for one in made])
    found = []
    for one, src, tgt, other in zip(made, n_src, n_tgt, foreign, strict=True):
        wrong = faults(one.src, one.text, Sizes(src, tgt), plan.src_lang, plan.tgt_lang)
        damaged = set(NO_TEXT.findall(one.text)).difference(one.src)
        why = DAMAGED if damaged else OTHER_LANGUAGE if other else LOW_SCORE if one.score < least else ""
        found.append(wrong[0] if wrong else why)
    return found
