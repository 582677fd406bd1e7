"""Mix-ups of languages: text or a file name of another language than the one expected.

    named_otherwise(Path("test.de"), "en")             # "de"
    written_in(["Guten Morgen, wie geht es dir?"], "en")    # "de"

A short text, or one in a language that nothing here knows, is never taken for a mix-up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import PurePath

from dragoman.languages.codes import language_of, primary, tag_of
from dragoman.languages.detection import LONGEST, UNSPACED, label, likelihoods, share_of_script
from dragoman.languages.known import is_known, known
from dragoman.languages.stopwords import language_scores

LEAST_LETTERS, LEAST_UNSPACED = 24, 10
"""Least number of letters of a text to judge: all languages, and those without spaces between words."""

LEAST_TELLING, TIMES = 8, 8
"""Telling words and own characters of one language that decide without py3langid, and how many times those of another.
"""

SHORT, LEAST_OF_SHORT = 200, 2
"""A text of fewer letters is taken for the expected language if it has this many telling words of it, and of no other:
py3langid, which takes a third of a second to load, is then not asked."""

MARGIN = 3.0
"""Least difference of two log-likelihoods for each square root of a byte.

No right text of one to 100 lines, in 60 languages, reaches it (``python -m benchmarks.mixups``)."""

_ALIKE = [
    {"zh", "yue", "wuu", "lzh"}, {"ms", "id"}, {"hr", "bs", "sr", "me", "sh"}, {"no", "nb", "nn", "da"},
    {"hi", "sa", "ne", "mr", "bho", "mai", "gom"}, {"de", "lb", "gsw", "nds"}, {"gl", "pt"}, {"cs", "sk"},
    {"es", "ext", "ast", "an"}, {"ar", "arz", "ary"}, {"bg", "mk"}, {"fa", "ps", "prs"}, {"kk", "ky"}, {"bn", "as"},
    {"nl", "af"}, {"az", "tr"}, {"tl", "fil"},
]  # fmt: skip
"""Languages that are not told apart here, as a text may belong to two of them."""

_SEVERAL_SCRIPTS = {"sr", "uz", "az", "kk", "ku", "mn", "pa", "tt", "tg", "tk", "ug", "sd", "ks", "bs", "sh"}
"""Languages that are written in several scripts, of which py3langid knows one."""


def named_otherwise(path: PurePath, lang: str | None) -> str | None:
    """Return the language that the name of a file tells, if it is not ``lang``; None if either is not known.

    A name that is a code as a whole tells nothing: ``in`` and ``in.txt`` are no Indonesian.
    """
    named = language_of(path)
    named = None if path.name.partition(".")[0] == named else named
    if named is None or lang is None or not (is_known(named.lower()) and is_known(lang)):
        return None
    pair = {primary(named), primary(lang)}
    return None if len(pair) == 1 or pair <= {"no", "nb", "nn"} else named


def written_in(lines: Iterable[str], lang: str | None) -> str | None:
    """Return the language that most of a text is surely written in, if it is not ``lang``; else None.

    With py3langid 139 languages are told apart; without it those with telling words or characters of their own.

    Args:
        lines: A sample of the text.
        lang: The expected language; None, or one that nothing here knows, is never contradicted.
    """
    text = "\n".join(dict.fromkeys(lines))[:LONGEST]
    unspaced = len(UNSPACED.findall(text))
    n_letters = sum(map(str.isalpha, text))
    if lang is None or n_letters < (LEAST_UNSPACED if 2 * unspaced > n_letters else LEAST_LETTERS):
        return None
    scores = language_scores(text)
    best = max(scores, key=lambda code: scores[code], default="")
    others = sum(scores.values()) - scores.get(best, 0)
    is_sure = scores.get(best, 0) >= max(LEAST_TELLING, TIMES * others)
    is_short_and_agrees = n_letters < SHORT and scores.get(best, 0) >= LEAST_OF_SHORT and not others
    if (is_sure or is_short_and_agrees) and best == known(lang).code and known(lang).stop_words:
        return None
    if has_detector():
        return _by_likelihood(text, lang)
    facts, letters = known(lang), "".join(filter(str.isalpha, text))
    has_facts = bool(facts.stop_words or facts.letters) or share_of_script(letters, tag_of(lang).script) < 0.1
    is_other = has_facts and not _are_alike(best, lang) and primary(lang) not in _SEVERAL_SCRIPTS
    return best if is_sure and is_other else None


def name_of(lang: str) -> str:
    """Return a language for a message, such as "German (de)"."""
    name = known(lang).name
    return f"{name} ({lang})" if name and name != lang else lang


def _by_likelihood(text: str, lang: str) -> str | None:
    """Return py3langid's verdict, if it contradicts ``lang`` by ``MARGIN``."""
    scores, n_bytes = likelihoods(text)
    best, expected = max(scores, key=lambda code: scores[code]), label(lang)
    if expected not in scores or expected in _SEVERAL_SCRIPTS or _are_alike(best, lang):
        return None
    return best if scores[best] - scores[expected] >= MARGIN * math.sqrt(n_bytes) else None


@functools.cache
def has_detector() -> bool:
    """Return True if py3langid is installed."""
    return find_spec("py3langid") is not None


def _are_alike(one: str, other: str) -> bool:
    """Return True if two codes mean one language, or two that are not told apart."""
    pair = {primary(one), primary(other)}
    return len(pair) == 1 or any(pair <= group for group in _ALIKE)
