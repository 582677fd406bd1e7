"""Dutch."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language, NumberWords, beside_half

_0_TO_16 = "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien"
_17_TO_90 = "zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig"
_WORDS = [word.replace("een", "[eé][eé]n") for word in f"{_0_TO_16} {_17_TO_90}".split()]
_IRREGULAR = {1: "eerst", 3: "derd"}
_AND = "[ -]?(?:en[ -]?)?"
_ANY = "|".join(_WORDS)
LONGER = (
    rf"(?:[eë]n)?(?:{_ANY}|tig)|en\b|[ -]?(?:honderd|duizend)"  # honderden is not 100
    rf"|(?<=duizend)[ -](?:en[ -])?(?:{_ANY})(?:\b|[eë]n|honderd)"
)


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words, such as ``eenentwintig``, not after a thousand."""
    return f"(?<!duizend[ -])(?<!duizend[ -]en[ -]){_words(n)}"


def _words(n: int) -> str:
    if n < 20:
        return f"(?:{_WORDS[n]}|{_IRREGULAR[n]})" if n in _IRREGULAR else _WORDS[n]
    if n < 100:
        return (f"{_WORDS[n % 10]}[eë]n" if n % 10 else "") + _WORDS[18 + n // 10]
    if 1100 <= n < 10_000 and n % 1000 >= 100:  # negentienhonderdvijf
        return f"(?:{_by(n, 100)}|{_by(n, 1000)})"
    return _by(n, 100 if n < 1000 else 1000)


def _by(n: int, size: int) -> str:
    """Return the pattern of a number as a count of hundreds or thousands and a remainder."""
    count = "(?:[eé][eé]n ?)?" if n // size == 1 else _words(n // size) + "[ -]?"
    return count + {100: "honderd", 1000: "duizend"}[size] + (_AND + _words(n % size) if n % size else "")


_AT = "(?:om|tot|vanaf|rond|tegen|is|was) "  # "een kwart voor 3 euro"

LANGUAGE = Language(
    code="nl",
    name="Dutch",
    scripts=("latin",),
    family="dutch",
    titles="[Mm]evr|[Mm]w|[Mm]ej|[Dd]s|[Ff]am|Kol|Kap|[Ll]t|Sgt|[Bb]r|[Hh]l|Wed|Burg|[Ii]ncl|[Ee]xcl",
    openers="hij u je jij jullie hun ons dan toen daarna nu hier daar",
    articles="de het een",
    stop_words=(
        "het een niet ik dat van zijn voor op met hij maar zij wij wat heb heeft ook naar er bij deze werd aan ze dit "
        "geen"
    ),
    numbers=NumberWords(
        stems="nul een|één|eerst twee|beide drie|derde vier vijf zes zeven acht negen tien elf twaalf",
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="half kwart dertig",
        hours="een|één twee drie vier vijf zes zeven acht negen tien elf twaalf",
        spoken=(
            (-30, f"{_AT}half H"),
            (-15, f"{_AT}kwart voor H"),
            (15, f"{_AT}kwart over H"),
        ),
        perhaps=(
            *beside_half("half", "voor", "over", "minuten", ("vijf", "tien")),
            (-30, "half H"),
            (-15, "kwart voor H"),
            (15, "kwart over H"),
            (30, "H uur dertig"),
        ),
    ),
)
