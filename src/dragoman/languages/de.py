"""German."""

from __future__ import annotations

import re

from dragoman.languages.language import Clock, Language, NumberWords, beside_half

_0_TO_16 = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn"
_17_TO_90 = "siebzehn achtzehn neunzehn zwanzig drei(?:ß|ss)ig vierzig fünfzig sechzig siebzig achtzig neunzig"
_WORDS = [*_0_TO_16.split(), *_17_TO_90.split()]
LONGER = f"(?:und)?(?:{'|'.join(_WORDS)}|hundert|tausend|zig|(?:ß|ss)ig)"
_ARTICLE = (
    "im|am|vom|zu[mr]|beim|d(?:er|ie|as|en|em|es)|[smdk]?ein\\w*|ihre\\w*|unser\\w*|eu(?:er|re)\\w*|jede\\w*|diese\\w*"
)
_ORDINAL = re.compile(
    rf"(?:\b(?:{_ARTICLE})\s|\d\.(?:\s(?:und|oder|bis|sowie)\s|,\s|/))\d+\.\s+$", re.IGNORECASE
)  # "am 3. ", "19. und 20. "


def is_ordinal(tail: str, piece: str) -> bool:
    """True if the text so far ends in an ordinal number, such as ``am 3. ``, which ends no sentence."""
    return _ORDINAL.search(tail) is not None


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words, such as ``einundzwanzig``."""
    if n < 20:
        return _WORDS[n]
    if n < 100:
        return (f"{_WORDS[n % 10]}und" if n % 10 else "") + _WORDS[18 + n // 10]
    if 1100 <= n < 2000:  # years: neunzehnhundertvierundsechzig
        return f"(?:{_by(n, 100)}|{_by(n, 1000)})"
    return _by(n, 100 if n < 1000 else 1000)


def _by(n: int, size: int) -> str:
    """Return the pattern of a number as a count of hundreds or thousands and a remainder."""
    count = "(?:ein)?" if n // size == 1 else spelled(n // size)
    return count + {100: "hundert", 1000: "tausend"}[size] + (f"(?:und)?{spelled(n % size)}" if n % size else "")


_NO_NOUN = "(?! (?-i:[A-ZÄÖÜ])| ?uhr)"  # "ein Viertel nach 3 Jahren", "im Viertel nach 22 Uhr"
_MINUTES = (
    "(?:(?:(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und)?(?:zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig)|"
    "(?:drei|vier|fünf|sech|sieb|acht|neun)?zehn|elf|zwölf|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun)"
)

LANGUAGE = Language(
    code="de",
    name="German",
    scripts=("latin",),
    articles="der die das den dem des ein eine einen einem einer eines",
    stop_words=(
        "der das und ist nicht ich sie ein eine zu mit den auf für von dem sich es wir dass auch er wie einen einem "
        "einer haben wird sind aus nach bei mein ihr im zum zur kann wenn nur oder über du bist da um was hat"
    ),
    no_abbreviations="[Mm]ich|mag|Bart|Art|OK",
    titles=("Fa|Fam|Frl|Abg|[Gg]eb|[Hh]l|[Ii]nkl|[Ee]xkl|[Zz]zgl|Dipl|Pfr|Oblt|Hptm|Gebr|Präs|Bgm|Lt|Hrn|[Aa]pl|Kfm"),
    openers="es mein meine dein sein seine ihre unser dann danach jetzt hier dort diese dieser dieses so aber doch",
    continues=is_ordinal,
    numbers=NumberWords(
        stems="null ein|erst zwei|beid|zwo drei|dritt vier fünf sech sieb acht neun zehn elf zwölf",
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="halb viertel fünfzehn dreißig dreissig fünfundvierzig",
        hours="eins|ein zwei|zwo drei vier fünf sechs sieben acht neun zehn elf zwölf",
        spoken=(
            (-30, f"halb (?!ein\\b)H{_NO_NOUN}"),
            (-15, f"(?:drei ?viertel|viertel vor) H{_NO_NOUN}"),
            (15, f"viertel nach H{_NO_NOUN}"),
            (-45, f"(?:um|ist|war) viertel H{_NO_NOUN}"),
            (15, f"H Uhr fünfzehn{_NO_NOUN}"),
            (30, f"H Uhr drei(?:ß|ss)ig{_NO_NOUN}"),
            (45, f"H Uhr fünfundvierzig{_NO_NOUN}"),
        ),
        perhaps=(
            *beside_half("halb", "vor", "nach", "Minuten", ("fünf", "zehn")),
            (-30, "(?:(?:vor|nach) )?halb H"),
            (-15, "(?:drei ?viertel|viertel vor) H"),
            (15, "viertel (?:nach|über|ab) H"),
            (-45, "viertel(?: auf)? H"),
        ),
        full=rf"H Uhr(?! ?\d| {_MINUTES}\b)",
    ),
)
