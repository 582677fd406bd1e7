"""Filters of synthetic data: the lines to translate, and the translations that are fit to learn from.

Translations are left out that are empty, loop, copy their source or are far too long (``faults``), have characters that
are no text, have a low score, or are in another language. The language of a line is only guessed from clear evidence:

- its script (``languages.scripts``);
- two different stop words of another language and none of the expected one (``languages.stopwords``; not all languages
  have stop words). Short lines and lines of other languages pass.

A source is left out, in whatever language, if most of its subwords are bytes or unknown: the model has hardly seen its
characters.
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
"""Number of lines of a text from which its language is guessed."""

MOST_UNKNOWN = 0.5
"""Largest fraction of the subwords of a source that may be bytes or unknown."""

DAMAGED = "damaged"
OTHER_LANGUAGE = "in another language"
LOW_SCORE = "low score"
BLANK = "blank"
NO_TEXT = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f\ufffd]")
"""Control characters except the tab, and U+FFFD: a model with subwords for single bytes may produce any of them, above
all in sampling."""

UNKNOWN = "of unknown characters"


class Made(NamedTuple):
    """A translation that a model made."""

    src: str
    text: str
    score: float  # log-probability, in nats, for each target subword


def rendered(_: int, translation: Translation) -> str:
    """Return the n best of a line as a JSON list of scores and texts, for ``translate_file``."""
    n_best = (translation, *translation.alternatives)
    return json.dumps([[round(t.log_prob / max(t.n_tokens, 1), 4), t.text] for t in n_best], ensure_ascii=False)


def read_rendered(src: str, line: str) -> list[Made]:
    """Return the n best of a line from the output of ``rendered``, best first."""
    return [Made(src, text, float(score)) for score, text in json.loads(line)]


def least_score(made: Iterable[Made], drop_worst: float) -> float:
    """Return the score below which the fraction ``drop_worst`` of all translations lies; minus infinity for 0."""
    if not drop_worst:
        return -np.inf
    scores = np.fromiter((translation.score for translation in made if translation.text), np.float64)
    return float(np.quantile(scores, drop_worst)) if len(scores) else -np.inf


class Language:
    """Detects lines that are clearly in another language than ``lang``."""

    def __init__(self, lang: str | None, sample: Sequence[str]) -> None:
        """Learn from a sample of the text which words its language shares with others."""
        self.lang, self._ignored = lang, ambiguous(map(words_of, sample), lang)
        self._scripts = scripts_of(lang, count_classes(sample).sum(0)) if sample else None

    def others(self, texts: Sequence[str]) -> list[bool]:
        """Return True for each text in another language."""
        if self._scripts is None or not texts:
            return [False] * len(texts)
        by_script = in_another_script(count_classes(texts), self._scripts).tolist()
        return [
            script or another_language(words_of(text), self.lang, self._ignored) is not None
            for script, text in zip(by_script, texts, strict=True)
        ]


def unreadable(texts: Sequence[Sequence[int]], tokenizer: Tokenizer) -> list[bool]:
    """Return True for each text (as ids) of characters that the model has hardly seen."""
    rare = tokenizer.rare_ids
    return [sum(i in rare for i in ids) > MOST_UNKNOWN * len(ids) for ids in texts]


def unfit(made: Sequence[Made], plan: Plan, language: Language, least: float) -> list[str]:
    """Return the reason why each translation is unfit to learn from; "" if it is fit.

    Args:
        made: Translations of sources that are not blank.
        plan: The plan by which they were translated.
        language: Expected language of the translations.
        least: Lowest score that is kept.
    """
    n_src = [len(ids) for ids in plan.src_tokenizer.encode([translation.src for translation in made])]
    texts = [translation.text for translation in made]
    n_tgt = [len(ids) for ids in plan.tgt_tokenizer.encode(texts)]
    reasons = []
    for pair, src, tgt, foreign in zip(made, n_src, n_tgt, language.others(texts), strict=True):
        wrong = faults(pair.src, pair.text, Sizes(src, tgt), plan.src_lang, plan.tgt_lang)
        damaged = set(NO_TEXT.findall(pair.text)).difference(pair.src)
        why = DAMAGED if damaged else OTHER_LANGUAGE if foreign else LOW_SCORE if pair.score < least else ""
        reasons.append(wrong[0] if wrong else why)
    return reasons
