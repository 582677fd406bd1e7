"""Words, and the few of them that tell common languages apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from dragoman.languages.codes import primary

_ALONE = r"\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af"
WORD = re.compile(rf"[{_ALONE}]|\d+|[^\W\d_{_ALONE}]+")
"""A word, a number, or one character of Chinese or Japanese."""

# Each word in one profile only: "in", "die", "was" or "me" would betray nothing.
_PROFILES = {
    "en": "the and of to is that it for you with are this have not be at they from what he she his her which their we "
    "your there would been has had my how when who i do did don by or all an about",
    "de": "der das und ist nicht ich sie ein eine zu mit den auf für von dem sich es wir dass auch er wie einen einem "
    "einer haben wird sind aus nach bei mein ihr im zum zur kann wenn nur oder über du bist da um was hat",
    "fr": "le les et est une des dans pour pas qui vous nous avec sur ce je il elle sont au aux cette ont être été ils "
    "mais où mon leur plus deux du",
    "es": "el los las y una por para está con del lo como más pero sus muy yo tiene hay qué ser fue esta este cuando "
    "ella usted nosotros sobre",
    "it": "il di che è per non gli della sono ho ha questo questa anche nel alla delle dei più mi si lui molto ma "
    "abbiamo hanno perché essere",
    "pt": "os uma não em um com ele eu você isso muito mais são foi ao pelo seu sua também ela dos da estava tem nós",
    "nl": "het een niet ik dat van zijn voor op met hij maar zij wij wat heb heeft ook naar er bij deze werd aan ze "
    "dit geen",
    "pl": "nie się jest na że do jak ale za tego czy był mam dla jego wszystko przez która który",
    "sv": "och är att det inte jag som på ett för med han till vi har av från hon kan din",
    "cs": "je že jsem se na by jako ale také když byl jsou nebo není jeho která který už",
    "tr": "bir ve bu için ne çok ben daha gibi değil o ile var bana mı sen kadar",
}  # fmt: skip


def words_of(text: str) -> list[str]:
    """Lower-case words and numbers; of Chinese and Japanese, characters."""
    return WORD.findall(text.lower())


def profiles() -> dict[str, frozenset[str]]:
    """The words of each language that no other profile has."""
    words = {lang: set(text.split()) for lang, text in _PROFILES.items()}
    return {
        lang: frozenset(own.difference(*(other for name, other in words.items() if name != lang)))
        for lang, own in words.items()
    }


_WORDS = profiles()
_LANGUAGE_OF = {word: lang for lang, words in _WORDS.items() for word in words}


_SCRIPTS = {  # characters that one language (or, of several, the most spoken) is written in
    "zh": "\u3400-\u9fff", "ja": "\u3040-\u30ff", "ko": "\uac00-\ud7af", "ru": "\u0400-\u04ff",
    "el": "\u0370-\u03ff", "ar": "\u0600-\u06ff", "he": "\u0590-\u05ff", "hi": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f", "ka": "\u10a0-\u10ff", "hy": "\u0530-\u058f",
}  # fmt: skip
_SCRIPT_OF = {lang: re.compile(f"[{characters}]") for lang, characters in _SCRIPTS.items()}


def language_scores(text: str) -> dict[str, float]:
    """How much in a text speaks for each language: its telling words, and the characters of its script.

    Kana make Japanese of Chinese characters. A text with neither has no scores at all.
    """
    scores: Counter[str] = Counter(_LANGUAGE_OF[word] for word in words_of(text) if word in _LANGUAGE_OF)
    for lang, pattern in _SCRIPT_OF.items():
        if n := len(pattern.findall(text)):
            scores[lang] += n
    if scores["ja"]:
        scores["ja"] += scores.pop("zh", 0)
    return {lang: float(n) for lang, n in scores.items() if n}


def main_language(lines: Iterable[Sequence[str]], lang: str | None) -> str | None:
    """The language of most telling words of a sample, if these are many, ``lang`` is known, and it is another."""
    expected = primary(lang)
    found = Counter(_LANGUAGE_OF[word] for line in lines for word in line if word in _LANGUAGE_OF)
    if expected not in _WORDS or found.total() < 20:
        return None
    best, count = found.most_common(1)[0]
    return best if best != expected and 2 * count > found.total() else None


def ambiguous(lines: Iterable[Sequence[str]], lang: str | None) -> frozenset[str]:
    """Telling words of other languages that are words of ``lang`` too, as a sample of it shows.

    They are those that stand beside telling words of ``lang`` in most of the lines that have them.

    Args:
        lines: Lower-case words of each line of a sample.
    """
    own = _WORDS.get(primary(lang), frozenset())
    seen: Counter[str] = Counter()
    at_home: Counter[str] = Counter()
    for line in lines:
        words = set(line)
        telling = [word for word in words if word in _LANGUAGE_OF and word not in own]
        seen.update(telling)
        if not own.isdisjoint(words):
            at_home.update(telling)
    return frozenset(word for word, count in seen.items() if 2 * at_home[word] >= count)


def another_language(words: Sequence[str], lang: str | None, ignored: frozenset[str] = frozenset()) -> str | None:
    """The language that a line of lower-case words seems to be in, if that is not ``lang``.

    It takes two telling words that differ, a fifth of the line or more, and none of the expected language.
    """
    expected = primary(lang)
    telling = {word for word in words if word in _LANGUAGE_OF} - ignored
    found = Counter(_LANGUAGE_OF[word] for word in telling)
    if not found or expected not in _WORDS or expected in found:
        return None
    best, count = found.most_common(1)[0]
    return best if count >= 2 and 5 * count >= len(words) else None
