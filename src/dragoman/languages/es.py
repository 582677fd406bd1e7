"""Spanish."""

from __future__ import annotations

import re

from dragoman.languages.language import Clock, Language, NumberWords, not_after

_0_TO_15 = "cero [uú]n[oa]? d[oó]s tr[eé]s cuatro cinco s[eé]is siete ocho nueve diez once doce trece catorce quince"
_TENS = "diez veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa"
_WORDS = [*_0_TO_15.split(), *_TENS.split()]
_HUNDREDS = "dosc tresc cuatroc quin seisc setec ochoc novec"
_FIRST = "primer segund tercer cuart quint sext s[eé]ptim octav noven"
_TENTH = "d[eé]c vig[eé]s trig[eé]s cuadrag[eé]s quincuag[eé]s sexag[eé]s septuag[eé]s octog[eé]s nonag[eé]s cent[eé]s"
_OTHERS = (  # ends of words
    "y un|y uno|y una|nto un|nto uno|tos un|tos uno|iún|iuno|idós|tres|itrés|cuatro|cinco|seis|iséis|siete|ocho|nueve|"
    f"once|doce|trece|catorce|quince|{_TENS.replace(' ', '|')}|cien|ciento|cientos|cientas|nientos|nientas|mil"
)
_START = r"(?<!\bdos )" + not_after(_OTHERS.split("|"))
_LARGE = rf"dieci\w+|veinti\w+|{'|'.join(_WORDS[10:])}|cien(?:to)?|(?:{_HUNDREDS.replace(' ', '|')})ient[oa]s|mil"
LONGER = rf" (?:(?:y )?(?:{'|'.join(_WORDS[1:10])})|{_LARGE})\b|(?<=im[oa])[- ](?:{_FIRST.replace(' ', '|')})"


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words, such as ``treinta y dos``, not after a number word."""
    start = f"(?<!nta y ){_START}" if 1000 < n < 10_000 else _START  # 2000 is not in "treinta y dos mil"
    return rf"{start}(?:{_words(n)}{_ordinal(n)})\b"


def _ordinal(n: int) -> str:
    """Return the pattern of an ordinal number as one more alternative, such as ``|vig[eé]sim[oa]s?``."""
    if n > 100:
        return "|mil[eé]sim[oa]s?" if n == 1000 else ""
    unit = f"[oa]?[- ]?{_FIRST.split()[n % 10 - 1]}" if n % 10 else ""
    return f"|{_TENTH.split()[n // 10 - 1]}im{unit}[oa]?s?"


def _words(n: int) -> str:
    if n < 16:
        return _WORDS[n]
    if n < 100:  # dieciséis, veintidós, treinta y tres
        tens = _WORDS[15 + n // 10]
        return f"{tens[:-1]}(?:{tens[-1]} y |[ac]?i){_WORDS[n % 10]}" if n % 10 else tens
    if n < 200:
        words = "ciento" if n % 100 else "cien"
    elif n < 1000:
        words = f"{_HUNDREDS.split()[n // 100 - 2]}ient[oa]s"
    else:
        words = "mil" if n < 2000 else f"{_words(n // 1000)} mil"
    rest = n % (100 if n < 1000 else 1000)
    return words + (f" (?:y )?{_words(rest)}" if rest else "")


_BEFORE_C = re.compile(r"\b[AaDd]\.\s+(?:de\s+)?$")


def is_era(tail: str, piece: str) -> bool:
    """True within ``a. C.`` and ``d. C.``."""
    return piece.startswith("C.") and _BEFORE_C.search(tail) is not None


LANGUAGE = Language(
    code="es",
    name="Spanish",
    scripts=("latin",),
    family="ibero-romance",
    may_end=r"EE\.\s?UU|RR\.\s?HH|FF\.\s?AA|CC\.\s?OO|JJ\.\s?OO",
    titles=(
        "Dña|Mons|(?<!y )Cía|Profa?s?|Fr|Cnel|Tte|Sgto|Exm[oa]s?|Excm[oa]s?|Ilm[oa]s?|Rvdm?[oa]|Rvmo|Pdte|Pbro|"
        "Hn[oa]s?|Sr[ae]s|Dr[ae]s|Ldo|Lda"
    ),
    openers=(
        "son fue él ellos ellas luego después entonces así también ese esa eso esto estos estas se me te le les en a si"
    ),
    continues=is_era,
    articles="el la los las un una unos unas",
    stop_words=(
        "el los las y una por para está con del lo como más pero sus muy yo tiene hay qué ser fue esta este cuando "
        "ella usted nosotros sobre"
    ),
    numbers=NumberWords(
        stems=(
            "cero un|primer dos|ambos|segund tres|tercer cuatro|cuart cinco|quint seis|sext siete|séptim ocho|octav "
            "nueve|noven diez|décim once doce"
        ),
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="media cuarto quince treinta cuarenta",
        hours="una dos tres cuatro cinco seis siete ocho nueve diez once doce",
        spoken=(
            (30, "las? H y media(?! (?:hora|docena))"),
            (15, "las? H y cuarto"),
            (-15, "las? H menos cuarto"),
            (-15, "(?:al|son|es|faltan?)(?: un)? cuarto para las? H"),
        ),
        perhaps=(
            (-15, "cuarto (?:para|a) las? H"),  # "salió del cuarto a las 3"
            (30, "H y media"),
            (15, "H y cuarto"),
            (15, "H (?:y )?quince"),
            (30, "H (?:y )?treinta"),
            (45, "H (?:y )?cuarenta y cinco"),
        ),
    ),
)
