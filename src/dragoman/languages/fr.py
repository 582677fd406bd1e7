"""French."""

from __future__ import annotations

import re

from dragoman.languages.language import Clock, Language, NumberWords, not_after

_0_TO_16 = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
_TENS = "dix vingt trente quarante cinquante soixante septante huitante nonante"
_WORDS = [*_0_TO_16.split(), *_TENS.split()]
_STEMS = [word.rstrip("e").replace("neuf", "neu[fv]").replace("huitan", "(?:hui|oc)tan") for word in _WORDS]
_END = r"(?:ier|aine|(?:e|u?i[èe]me)?s?)\b"  # of millier, quinzaine, quinze, quinzième, cents
_AND = "e?s?[- ](?:et[- ](?=un|onz))?"
_OTHERS = [*_WORDS[2:], "octante", "vingts", "cent", "cents", "mil", "mille"]
_START = "(?<!t[- ]un[- ])(?<!ts[- ]un[- ])" + not_after(_OTHERS, r"\b", "[- ]")
LONGER = f"[- ](?:et[- ](?=un|onz))?(?:{'|'.join(_STEMS)}|cent|mill?){_END}"


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words, such as ``vingt et un``, not after a number word."""
    return _START + _words(n) + _END


def _words(n: int) -> str:
    """Return the pattern of a number up to the stem of its last word, such as ``vingt-quatr``."""
    if n < 17:
        return _STEMS[n]
    if n < 100:
        words = _STEMS[16 + n // 10] + (_AND + _STEMS[n % 10] if n % 10 else "")
        base, twenties = (60, "soixant") if n < 80 else (80, "quatre[- ]vingt")
        return words if n < 70 else f"(?:{words}|{twenties}{_AND + _words(n - base) if n > base else ''})"
    if 1100 <= n < 2000:  # years: dix-neuf cent quinze
        return f"(?:{_by(n, 100)}|{_by(n, 1000)})"
    return _by(n, 100 if n < 1000 else 1000)


def _by(n: int, size: int) -> str:
    """Return the pattern of a number as a count of hundreds or thousands and a remainder."""
    count = "" if n // size == 1 else _words(n // size) + _AND
    return count + {100: "cent", 1000: "mill?"}[size] + (_AND + _words(n % size) if n % size else "")


_NO = re.compile(r"\b[nN]os?\.\s+$")


def is_number(tail: str, piece: str) -> bool:
    """True if the text so far ends in ``no.``, and a number comes next."""
    return piece[0].isdigit() and _NO.search(tail) is not None


_AT = "(?<!qu['’])(?:à|vers|dès) "  # "après trois heures" and "jusqu'à trois heures" may be lengths of time
_HOURS = "(?:(?<=midi)|(?<=minuit)| ?h(?:eures?)?)"
_NO_LENGTH = "(?! (?:de|par)\\b| d['’])"  # "à trois heures et demie de Paris"
_O_CLOCK = "(?: ?h(?:eures?)?)?"

LANGUAGE = Language(
    code="fr",
    name="French",
    scripts=("latin",),
    articles="le la les un une des",
    stop_words=(
        "le les et est une des dans pour pas qui vous nous avec sur ce je il elle sont au aux cette ont être été ils "
        "mais où mon leur plus deux du"
    ),
    no_abbreviations="art|vol|sec",
    titles="[DP]r|M(?:me|lle|gr)s?|Mes?|S(?:te?s?|té)|(?<!et )Cie|Éts|Ets|Vve|Gén|Col|Lt|Cne|Cdt|Sgt|Bd",
    openers="nous vous on c'est puis ensuite alors voici voilà cela ça ces ses son sa quand quel quelle si en à",
    continues=is_number,
    numbers=NumberWords(
        stems="zéro un|premi deux|second trois quatre|quatri cinq six|sixi sept huit neuf|neuvi dix|dixi onz douz",
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="demi quart quinze trente quarante",
        hours="une deux trois quatre cinq six sept huit neuf dix onze douze|midi|minuit",
        spoken=(
            (30, f"{_AT}H{_HOURS} et demie?{_NO_LENGTH}"),
            (15, f"{_AT}H{_HOURS} et (?:un )?quart{_NO_LENGTH}"),
            (-15, f"H{_HOURS} moins le quart"),
        ),
        perhaps=(
            (30, f"H{_O_CLOCK} et demie?"),
            (15, f"H{_O_CLOCK} et (?:un )?quart"),
            (-15, f"H{_O_CLOCK} moins (?:le |un )?quart"),
            (15, "H heures? quinze"),
            (30, "H heures? trente"),
            (45, "H heures? quarante-cinq"),
        ),
        full=(
            rf"{_AT}H ?h(?:eures?)?(?! ?\d| (?:et|moins|cinq|dix|quinze|vingt|trente|quarante|cinquante)\b){_NO_LENGTH}"
        ),
    ),
)
