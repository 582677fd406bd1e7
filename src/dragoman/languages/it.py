"""Italian."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language, NumberWords

_0_TO_13 = "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici"
_14_TO_19 = "quattordici quindici sedici diciassette diciotto diciannove"
_LARGE = "venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento mille"
# the last vowel may be left out or have an accent: venti, vent'anni, ventuno, ventitré, ventesimo, ventina
_WORDS = [f"{word[:-1]}[{word[-1]}aé]?(?:esim[oaie]|ina)?" for word in f"{_0_TO_13} {_14_TO_19} {_LARGE}".split()]
_HUNDRED, _THOUSAND, _THOUSANDS = *_WORDS[-2:], "mil(?:a|lesim[oaie])"
_START = "(?<!cento[- ])(?<!mille[- ])(?<!mila[- ])(?<!cento e )(?<!mille e )(?<!mila e )"
_ANY = "|".join(
    [*f"{_0_TO_13} {_14_TO_19}".replace("tre ", "tr[eé] ").split(), *f"{_LARGE} mila".replace(" ", "? ").split()]
)
LONGER = rf"[- ](?:cento|mila)\b|(?<=ento|ille|mila)[- ](?:{_ANY})+\b"


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words, such as ``ventuno``, not after a number word."""
    return rf"{_START}{_words(n)}\b"


def _words(n: int) -> str:
    if n < 20:
        return _WORDS[n]
    size = 10 if n < 100 else 100 if n < 1000 else 1000
    count, remainder = divmod(n, size)
    if size == 10:
        words = _WORDS[18 + count]
    elif count == 1:
        words = _HUNDRED if size == 100 else _THOUSAND
    else:
        words = _words(count) + "[- ]?" + (_HUNDRED if size == 100 else _THOUSANDS)
    return words + (f"(?: e |[- ]?){_words(remainder)}" if remainder else "")


_AT = "(?:(?:alle|dalle|le|ore) |(?:d?all|l)['’])"

LANGUAGE = Language(
    code="it",
    name="Italian",
    scripts=("latin",),
    titles=(
        r"Dott\.ssa|Prof\.ssa|Avv\.ssa|Dr\.ssa|Sig\.na|Gent(?:\.ma)?|Ill(?:\.mo)?|Preg(?:\.mo)?|Spett\.le|P\.zza|"
        r"C\.so|Ten|Magg|Brig|Mons|On"
    ),
    openers="lei noi voi loro poi quindi allora questo questa quello quella così ora qui lì è a se",
    articles="il lo la i gli le un uno una",
    stop_words=(
        "il di che è per non gli della sono ho ha questo questa anche nel alla delle dei più mi si lui molto ma "
        "abbiamo hanno perché essere"
    ),
    numbers=NumberWords(
        stems=(
            "zero un|prim due|entrambi|second tre|terz quattro|quart cinque|quint sei|sest sette|settim otto|ottav "
            "nove|non dieci|decim undici dodici"
        ),
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="mezz quart quindici trenta quaranta",
        hours="una due tre quattro cinque sei sette otto nove dieci undici dodici|mezzogiorno|mezzanotte",
        spoken=(
            (30, f"{_AT}H e mezz[ao]"),
            (15, f"{_AT}H e (?:un )?quarto"),
            (-15, f"{_AT}H meno (?:un )?quarto"),
            (45, f"{_AT}H e tre quarti"),
        ),
        perhaps=(
            (30, "H e mezz[ao]"),
            (15, "H e (?:un )?quarto"),
            (-15, "H meno (?:un )?quarto"),
            (15, "H e quindici"),
            (30, "H e trenta"),
            (45, "H e (?:quarantacinque|tre quarti)"),
        ),
    ),
)
