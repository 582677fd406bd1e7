"""Detection of the language of a text among those that are possible, with a confidence that is a probability.

    from dragoman.languages.detection import detect
    detect("Guten Morgen", ["en", "de", "zh"])    # Detected(code="de", confidence=0.99...)

py3langid (naive Bayes on byte n-grams, 139 languages) compares languages of one script. The script itself is decided by
Unicode, and Chinese characters by the character sets of the countries that write them.
"""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import regex

from dragoman.errors import ConfigError
from dragoman.languages.codes import primary, tag_of, variety

LONGEST = 2000
"""Number of characters of a text that are looked at."""

TEMPERATURE = 0.6
"""Divisor of the scores, times the square root of the number of bytes, at which the probabilities are true ones.

Fitted by ``python -m benchmarks.languages fit`` on texts that no test uses.
"""

SCRIPT_WEIGHT = 4.0
"""Weight of the share of letters that are in a language's script."""

SURE = 0.95
"""Least confidence at which a text counts as written in the target language."""

LEAST_WORDS = 3
"""Least number of words of such a text: a shorter one may belong to both languages, such as ``Hand``."""

_SCRIPTS = {
    "Hans": ("Han",), "Hant": ("Han",), "Jpan": ("Han", "Hiragana", "Katakana"), "Kore": ("Hangul", "Han"),
    "Hira": ("Hiragana",), "Kana": ("Katakana",),
}  # fmt: skip
"""Scripts of Unicode that ISO 15924 has one code for."""

_CHARACTER_SETS = {"Hans": "gb2312", "Hant": "big5", "Jpan": "shift_jis", "Kore": "euc_kr"}
"""A character set for each way of writing Chinese characters."""

_LABELS = {"fil": "tl", "nb": "no"}
"""Codes of py3langid that differ from ours."""

_LETTER = regex.compile(r"\p{L}")
UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


class Detected(NamedTuple):
    """Detected language of a text."""

    code: str
    """The tag, as it stands among the possible ones."""
    confidence: float
    """Probability that the text is in this language rather than in another possible one, 0 to 1."""


def detect(text: str, among: Sequence[str]) -> Detected:
    """Return the most likely language of a text among ``among``.

    A text without letters gets the first one with confidence 0. A single language is compared with all known ones.

    Raises:
        ConfigError: The package py3langid is missing.
    """
    return max(probabilities(text, among), key=lambda detected: detected.confidence)


def probabilities(text: str, among: Sequence[str]) -> list[Detected]:
    """Return the probability of each language of ``among``; all are 0 for a text without letters.

    Raises:
        ConfigError: The package py3langid is missing.
    """
    codes = list(dict.fromkeys(among))
    letters = "".join(_LETTER.findall(text[:LONGEST]))
    if not letters:
        return [Detected(code, 0.0) for code in codes]
    scores, size = likelihoods(text[:LONGEST])
    others = [] if len(codes) > 1 else [code for code in scores if code != label(codes[0])]
    middle = sorted(scores.values())[len(scores) // 2]  # for a language that py3langid does not know
    logits = []
    shares: dict[str, float] = {}  # of each script, of which there are fewer than languages
    for code in [*codes, *others]:
        script = tag_of(code).script
        if script not in shares:
            shares[script] = share_of_script(letters, script)
        fit = math.log(shares[script] + 0.001)
        logits.append(scores.get(label(code), middle) / (TEMPERATURE * math.sqrt(size)) + SCRIPT_WEIGHT * fit)
    greatest = max(logits)
    weights = [math.exp(logit - greatest) for logit in logits]
    return [Detected(code, weight / sum(weights)) for code, weight in zip(codes, weights, strict=False)]


def is_target(text: str, sources: Sequence[str], target: str) -> Detected | None:
    """Return the target language if a text is surely written in it already, else None.

    Args:
        sources: Possible source languages of the text.

    Raises:
        ConfigError: The package py3langid is missing.
    """
    is_source = any(variety(code) == variety(target) for code in sources)
    return None if is_source else surely(text, target, sources)


def surely(text: str, code: str, others: Sequence[str]) -> Detected | None:
    """Return a language if a text is surely written in it and in none of the others, else None.

    The text must have ``LEAST_WORDS`` words and the language a probability of ``SURE``. A shorter text counts if no
    letter of it is in a script of the others.

    Raises:
        ConfigError: The package py3langid is missing.
    """
    letters = "".join(_LETTER.findall(text[:LONGEST]))
    if not letters:
        return None
    in_other_script = not any(share_of_script(letters, tag_of(other).script) for other in others)
    if not in_other_script and _n_words(text[:LONGEST]) < LEAST_WORDS:
        return None
    best = detect(text, [*others, code])
    return best if best.code == code and best.confidence >= SURE else None


def _n_words(text: str) -> int:
    """Return the number of words; without spaces two letters count as a word."""
    n_unspaced = len(UNSPACED.findall(text))
    return (
        n_unspaced // 2
        if 2 * n_unspaced > len(text)
        else sum(_LETTER.search(word) is not None for word in text.split())
    )


def label(code: str) -> str:
    """Return py3langid's code of a language."""
    language = primary(code)
    return _LABELS.get(language, language)


def share_of_script(letters: str, script: str) -> float:
    """Return the share of letters that belong to a script, 0 to 1.

    Of Chinese characters those count that the character set of the way of writing has.
    """
    own = _pattern(script).findall(letters)
    if character_set := _CHARACTER_SETS.get(script):
        own = [letter for letter in own if _has(character_set, letter)]
    return len(own) / len(letters)


@functools.cache
def _pattern(script: str) -> Any:
    names = _SCRIPTS.get(script, (script,))
    try:
        return regex.compile("[" + "".join(rf"\p{{Script={name}}}" for name in names) + "]")
    except regex.error:  # no script of Unicode, such as that of a tag that is no language
        return regex.compile(r"(?!)")


@functools.lru_cache(maxsize=20_000)
def _has(character_set: str, letter: str) -> bool:
    try:
        letter.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True


def likelihoods(text: str) -> tuple[dict[str, float], int]:
    """Return a logarithm of the likelihood of each language that py3langid knows, and the number of bytes.

    Capitals say little in a short text, so it is read twice: in lower case, and with a capital at its beginning.
    """
    low = text.lower()
    variants = [f" {low} ", f" {low[:1].upper()}{low[1:]} "]
    ranked = [dict(_identifier().rank(variant)) for variant in variants]
    scores = {label: sum(scores[label] for scores in ranked) / len(ranked) for label in ranked[0] if label != "zxx"}
    return scores, len(variants[0].encode("utf-8", "surrogatepass"))


def load() -> None:
    """Load what detects languages, so that the first text needs no second more than the others.

    Raises:
        ConfigError: The package py3langid is missing.
    """
    _identifier()


@functools.cache
def _identifier() -> Any:
    """Return py3langid's model, loaded once.

    Raises:
        ConfigError: The package is missing, or there is no room for temporary files.
    """
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise ConfigError(
            "detecting a language needs the package py3langid: install dragoman[detect], or name the source language"
        ) from error
    try:
        return LanguageIdentifier.from_model_file(MODEL_FILE)
    except OSError as error:  # it unpacks the model into a temporary file
        raise ConfigError(
            f"{tempfile.gettempdir()}: detecting a language needs 70 MB for a temporary file there "
            f"({error.strerror or error}): make room, or set TMPDIR to another folder"
        ) from error
