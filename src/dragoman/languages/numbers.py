"""Numbers written out: up to twelve in ten languages, below a million in English, German, Chinese and Japanese."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from dragoman.languages.codes import CHINESE, UNSPACED, primary

_STEMS = {
    "en": "zero one|first two|second|twice three|third four five|fifth six seven eight nine|ninth ten eleven "
    "twelve|twelfth",
    "de": "null ein|erst zwei|beid|zwo drei|dritt vier fünf sech sieb acht neun zehn elf zwölf",
    "nl": "nul een|één|eerst twee|beide drie|derde vier vijf zes zeven acht negen tien elf twaalf",
    "fr": "zéro un|premi deux|second trois quatre|quatri cinq six|sixi sept huit neuf|neuvi dix|dixi onz douz",
    "es": "cero un|primer dos|ambos|segund tres|tercer cuatro|cuart cinco|quint seis|sext siete|séptim ocho|octav "
    "nueve|noven diez|décim once doce",
    "it": "zero un|prim due|entrambi|second tre|terz quattro|quart cinque|quint sei|sest sette|settim otto|ottav "
    "nove|non dieci|decim undici dodici",
    "pt": "zero um|primeir dois|duas|ambos|segund três|terceir quatro|quart cinco|quint seis|sext sete|sétim "
    "oito|oitav nove|non dez|décim onze doze",
    "cs": "nul jed|prvn dv|oba|obě|druh tři|tř|třet čtyř|čtvrt pět|pát šest sedm osm devět|devát deset|desát jedenáct "
    "dvanáct",
    "zh": "零|〇 一|首|第一 二|两|兩|双 三 四 五 六 七 八 九 十 十一 十二",
    "ja": "零 一|初 二|両 三 四 五 六 七 八 九 十 十一 十二",
}
"""How the words of 0 to 12 begin, cardinal and ordinal; of each number several, of each language 13."""


_HALVES = {
    "en": "half|thirty", "de": "halb", "nl": "half", "fr": "demi", "es": "media", "it": "mezz", "pt": "meia",
    "cs": "půl", "zh": "半", "ja": "半",
}  # fmt: skip
"""How half an hour is called."""


_ENGLISH, _GERMAN = (
    line.split()
    for line in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety",
        "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
        "siebzehn achtzehn neunzehn zwanzig drei(?:ß|ss)ig vierzig fünfzig sechzig siebzig achtzig neunzig",
    )
)
"""Those of 0 to 19, then the tens."""


def has_words(lang: str | None) -> bool:
    """Whether the words of a language are known."""
    return _code(lang) in _STEMS


class Words:
    """The numbers that a text has as words. Each may be taken as often as the text has it."""

    def __init__(self, text: str, lang: str | None) -> None:
        """``has_words`` is true of ``lang``."""
        self._text, self._code, self._taken = text.lower(), _code(lang), Counter[int]()

    def take(self, value: int) -> bool:
        """Whether a number is there once more than it was taken."""
        pattern = _pattern(value, self._code)
        if not pattern or len(re.findall(pattern, self._text)) <= self._taken[value]:
            return False
        self._taken[value] += 1
        return True

    @property
    def has_half(self) -> bool:
        """Whether there is half an hour."""
        return re.search(_HALVES[self._code], self._text) is not None


def _code(lang: str | None) -> str:
    code = primary(lang)
    return "zh" if code in CHINESE else code


@lru_cache(maxsize=1024)
def _pattern(value: int, code: str) -> str:
    """What a number looks like; nothing where that is not known."""
    stems = _STEMS[code].split()
    if value < len(stems):
        any_stem = "|".join(sorted(map(re.escape, stems[value].split("|")), key=len, reverse=True))
        return any_stem if code in UNSPACED else rf"(?<!\w)(?:{any_stem})"
    if value >= 1_000_000 or code not in _SPELLED:
        return ""
    before = f"[{_CJK_DIGITS}]" if code in UNSPACED else r"\w"
    return f"(?<!{before})(?:{_SPELLED[code](value)})(?!{_MORE[code]})"


def _english(n: int) -> str:
    if n < 20:
        return _ENGLISH[n]
    if n < 100:
        return _ENGLISH[18 + n // 10] + (f"[- ]?{_ENGLISH[n % 10]}" if n % 10 else "")
    size, name = (100, "hundred") if n < 1000 else (1000, "thousand")
    many = "(?:one|a)" if n // size == 1 else _english(n // size)
    return f"{many}[- ]{name}" + (f",?(?: and)?[- ]{_english(n % size)}" if n % size else "")


def _german(n: int) -> str:
    if n < 20:
        return _GERMAN[n]
    if n < 100:
        return (f"{_GERMAN[n % 10]}und" if n % 10 else "") + _GERMAN[18 + n // 10]
    if 1100 <= n < 2000:  # of years: neunzehnhundertvierundsechzig
        return f"(?:{_german_parts(n, 100)}|{_german_parts(n, 1000)})"
    return _german_parts(n, 100 if n < 1000 else 1000)


def _german_parts(n: int, size: int) -> str:
    many = "(?:ein)?" if n // size == 1 else _german(n // size)
    return many + {100: "hundert", 1000: "tausend"}[size] + (f"(?:und)?{_german(n % size)}" if n % size else "")


_CJK_DIGITS = "零〇一二三四五六七八九十百千万萬两兩"


def _chinese(n: int) -> str:
    digits = "零一二三四五六七八九"
    one_by_one = "".join("[零〇]" if digit == "0" else digits[int(digit)] for digit in str(n))
    said = ""
    for size, name in ((10_000, "[万萬]"), (1000, "千"), (100, "百"), (10, "十"), (1, "")):
        many, rest = n // size, n % size
        if many:
            how = _chinese(many) if many > 9 else digits[many]
            how = "[二两兩]" if how == "二" and size > 10 else "(?:一)?" if how == "一" and size >= 10 else how
            said += how + name
            gap = rest and rest < size // 10
            said += "[零〇]?" if gap else ""
        n = rest
    return f"(?:{said}|{one_by_one})"


_MORE = {
    "en": rf",?(?: and)?[- ](?:{'|'.join(_ENGLISH)}|hundred|thousand)\b",
    "de": f"(?:und)?(?:{'|'.join(_GERMAN)}|hundert|tausend)",
    "zh": f"[{_CJK_DIGITS}]",
    "ja": f"[{_CJK_DIGITS}]",
}
"""What makes another number of one that it stands behind."""

_SPELLED = {"en": _english, "de": _german, "zh": _chinese, "ja": _chinese}
