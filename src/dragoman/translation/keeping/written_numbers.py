"""Forms of numbers in text: digits of every script, with all that gives them their value.

    parse("-3½ km").fraction    # Fraction(7, 2)

A sign, a fraction, an exponent, a currency or percent sign, and a unit that touches the digits belong to the number.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from dragoman.languages.words import INVISIBLE

UNSPACED = "\u0600-\u06ff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"
"""Scripts in which a number may touch the word before it: Arabic, Thai, Lao, Tibetan, Burmese, Khmer, Chinese, kana,
Hangul."""
_MARKED = "|".join(rf"(?<=[{UNSPACED}]{chr(0xAA) * n})" for n in range(1, 5))
"""Pattern of the place after such a letter with marks, each of which ``marks_as_letters`` writes as U+00AA."""
CURRENCY = (
    "$\u00a2-\u00a5\u058f\u060b\u07fe\u07ff\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db\u20a0-\u20c0\ua838\ufdfc\ufe69\uff04\uffe0"
    "\uffe1\uffe5\uffe6\U00011fdd-\U00011fe0\U0001e2ff\U0001ecb0"
)
_MINUS = "-\u2212\ufe63\uff0d\u2013"
_SIGNS = _MINUS + "+\uff0b\u00b1\u2213"
_PERCENT = "%\u066a\uff05\ufe6a\u2030\u0609\u2031\u060a"
_FRACTIONS = "\u00bc-\u00be\u2150-\u215e\u2189"
SUPERSCRIPT = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079"
_SPACE = " \u00a0\u2007\u2009\u202f"
_SEPARATORS = ".,:/'’\\-\u2013\u00a0\u2007\u2009\u202f\u066b\u066c\u2044"
_UNITS = (
    "[kcdmµμn]?m|[km]?g|[mcd]?l|[mµμn]s|h|min|[kMGT]?Hz|[kMGm]?Wh?|[kM]?Wp|k?V|m?Ah?|kJ|kcal|[kMGT]i?B|[kMG]?bit|[kM]?Pa|hPa|"
    "km/h|mph|m/s|ha|ft|in|mi|yd|lbs?|oz|px|pt|dpi|rpm|t|K"
)
_NO_WORD = rf"(?![^\W{UNSPACED}])"  # after a unit or an exponent
_EXPONENT = rf"[eE][-+\u2212]?\d{{1,4}}{_NO_WORD}|\^[-+\u2212]?\d{{1,4}}|[\u207a\u207b]?[{SUPERSCRIPT}]+"
_WIDE = "(?<=[\uff10-\uff19])[\uff0c\uff0e\uff1a\uff0f\uff0d](?=[\uff10-\uff19])"
_CORE = (
    rf"\d{{1,2}}(?:h|[{_SPACE}]h[{_SPACE}]|[Hu])[0-5]\d{_NO_WORD}(?![{_SPACE}]?min)|"  # 15h30
    rf"\d{{1,3}}(?:[ \u2009]\d{{3}})+(?:[.,\u066b]\d+(?![.,]?\d))?(?!\d)|"  # 1 000 000,5
    rf"(?<!\d_)\d{{1,3}}(?:_\d{{3}})++(?!\w)|"  # 1_000_000
    rf"\d{{1,6}}[ \u00a0]\d{{1,2}}[/\u2044]\d{{1,3}}(?![\d/.:-])|"  # 3 1/2
    rf"\d+(?:(?:[{_SEPARATORS}]|{_WIDE})\d+)*"
)
_PERCENT_AFTER = rf"[{_PERCENT}](?![A-Za-z0-9({{%$])|[{_SPACE}][{_PERCENT}](?![-+#A-Za-z0-9({{%$]|\.\d)"
_MONEY_AFTER = rf"[{_SPACE}]?[{CURRENCY}](?![A-Za-z{{]|[{_SIGNS}]?\d)"
_UNIT_AFTER = (
    rf"[{_SPACE}]?[°º](?:[{_SPACE}]?[CFK](?![A-Za-z]))?|[{_SPACE}]?[\u2103\u2109]|[\u2032\u2033]|"
    rf"[{_SPACE}](?:{_UNITS})[\u207a\u207b]?[{SUPERSCRIPT}]+{_NO_WORD}|"  # 50 m²
    rf"(?:{_UNITS})(?:[\u207a\u207b]?[{SUPERSCRIPT}]+)?{_NO_WORD}"
)
_NO_SIGN_AFTER = rf"(?<![^\s(\[{{<>«„“”‚‘’\"'|=:~\u2248\u2264\u2265*_{UNSPACED}])"
_CJK = "\u2e80-\u2fff\u3005\u3041-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_SIGN_BEFORE = (
    rf"(?:(?:{_NO_SIGN_AFTER}|{_MARKED})(?<!\d[{_SPACE}])(?<![\uff10-\uff19\d])"
    rf"(?<!\d[{_CJK}])(?<!\d[{_CJK}]{{2}})[{_SIGNS}])"  # 10万-20万 is a range
)
_NO_LETTER = rf"(?:(?<![^\W_{UNSPACED}])|{_MARKED})(?<!\d)"  # "iPhone15" is a name

NUMBERS = (
    rf"{_SIGN_BEFORE}?{_NO_LETTER}0[xX][0-9A-Fa-f]+{_NO_WORD}",
    rf"{_SIGN_BEFORE}?{_NO_LETTER}(?:[A-Z]{{0,3}}[{CURRENCY}][{_SPACE}]?[{_SIGNS}]?)?"
    rf"(?:(?:{_CORE})(?:[{_SPACE}]?[{_FRACTIONS}])?|[{_FRACTIONS}])"
    rf"(?:{_EXPONENT})?(?:{_PERCENT_AFTER}|{_MONEY_AFTER}|{_UNIT_AFTER})?",
    rf"{_NO_LETTER}(?:{_UNITS})[\u207a\u207b]?[{SUPERSCRIPT}]+",  # m²
    rf"[\u207a\u207b]?[{SUPERSCRIPT}]+",
    # python3, Python3.11, iPhone15; not m2 or ft3, whose exponent may be raised
    r"(?<=[^\W\d_\u00aa])(?<!\d[^\W\d_])(?<!\bm)(?<!\bft)(?<!\bin)(?<!\bmi)(?<!\byd)(?<!\b[kcdm]m)"
    rf"\d++(?:\.\d++)*+(?![^\W_{UNSPACED}]|[.]?\d)",
)
"""Patterns of numbers, but for telephone numbers."""

_PARTS = re.compile(
    rf"(?P<sign>[{_SIGNS}])?(?:[A-Z]{{0,3}}(?P<money>[{CURRENCY}])[{_SPACE}]?(?P<inner>[{_SIGNS}])?)?"
    rf"(?P<core>(?:{_CORE})?)[{_SPACE}]?(?P<fraction>[{_FRACTIONS}]?)(?P<power>(?:{_EXPONENT})?)[{_SPACE}]?"
    rf"(?:(?P<after>[{_PERCENT}{CURRENCY}])|(?P<unit>[^\d]+))?"
)
_MIXED = re.compile(rf"(?:(\d{{1,9}})[{_SPACE}])?(\d{{1,9}})[/\u2044](\d{{1,9}})")
_DECIMAL = re.compile("(\\d{1,9})[.,\u066b\uff0c\uff0e](\\d{1,2})|0[.,\u066b\uff0c\uff0e](\\d{3})")
_LIKE_TELEPHONE = 8
"""Least number of digits without a decimal mark in which a plus sign begins a telephone number and is no sign."""
_SAME_SIGN = {**dict.fromkeys(_MINUS, "-"), "+": "+", "\uff0b": "+", "\u00b1": "\u00b1", "\u2213": "\u2213"}
_SAME_SYMBOL = {
    "\u066a": "%", "\uff05": "%", "\ufe6a": "%", "\u0609": "\u2030", "\u060a": "\u2031", "\uff04": "$", "\ufe69": "$",
    "\uffe0": "\u00a2", "\uffe1": "\u00a3", "\uffe5": "\u00a5", "\uffe6": "\u20a9", "\u20a4": "\u00a3",
    "\u20a8": "\u20b9",
}  # fmt: skip
_UNSEEN = dict.fromkeys(map(ord, INVISIBLE))
UNIT = "unit"
"""Symbol of a number with any unit: the unit may be written out or abbreviated in the translation."""

UNIT_WITH_EXPONENT = "unit with exponent"
"""Symbol of a number of m² and the like."""
_EXPONENT_OF_UNIT = re.compile(f"[{SUPERSCRIPT}]")


@dataclass(frozen=True)
class Number:
    """A number in its parts."""

    core: str  # digits and separators, or the whole text if it has no such parts
    sign: str = ""  # "-", "+", "±" or "∓"
    symbol: str = ""  # currency sign, percent sign, ``UNIT``, or ``UNIT_WITH_EXPONENT``
    power: str = ""  # exponent, in ASCII; a hexadecimal number is its own, in small letters
    fraction: Fraction | None = None  # value of a number with a fraction or with decimals, without sign and power

    @property
    def has_fraction(self) -> bool:
        """True if a fraction is written as such: 3½, 1/2, 3 1/2."""
        return self.fraction is not None and (not self.core or _DECIMAL.fullmatch(self.core) is None)


class Context(NamedTuple):
    """Up to ``AROUND`` characters on each side of a number, where words for its sign, symbol or unit may be."""

    before: str = ""
    after: str = ""


def in_ascii(text: str) -> str:
    """Return a text with all decimal digits as ASCII digits."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(character, character)) for character in text)


def parse(text: str) -> Number:
    """Return the parts of a number, as ``NUMBERS`` find it, without what nobody sees."""
    text = text.translate(_UNSEEN)
    written = _PARTS.fullmatch(text)
    if written is None:
        return Number(text)
    if written["core"] == "0" and (written["unit"] or "")[:1] in ("x", "X"):
        return Number("0", _sign(written), power=text[text.index("0") :].lower())
    if not (written["core"] or written["fraction"] or written["power"]):
        return Number(text)
    if not (written["core"] or written["fraction"]) and written["unit"]:
        return Number(text)
    unit = written["unit"] and (UNIT_WITH_EXPONENT if _EXPONENT_OF_UNIT.search(written["unit"]) else UNIT)
    symbol = written["money"] or written["after"] or unit or ""
    core = in_ascii(written["core"])
    sign = _sign(written)
    if sign == "+" and len(core) >= _LIKE_TELEPHONE and not re.search("[.,'’]", core):
        sign = ""
    return Number(
        core, sign, _SAME_SYMBOL.get(symbol, symbol), _power(written["power"]), _value(core, written["fraction"])
    )


def _sign(written: re.Match[str]) -> str:
    return _SAME_SIGN.get(written["sign"] or written["inner"] or "", "")


def _power(text: str) -> str:
    """Return an exponent in ASCII digits, without its mark: "-3" for "e-3", "^-3" and superscript."""
    return unicodedata.normalize("NFKC", in_ascii(text)).replace("\u2212", "-").lstrip("eE^").lstrip("+")


def _value(core: str, fraction: str) -> Fraction | None:
    """Return the value of a number with a fraction or with decimals; None for all others."""
    if fraction:
        whole = int(core) if core.isdecimal() and len(core) < 10 else 0
        return whole + Fraction(unicodedata.numeric(fraction)).limit_denominator(10)
    if mixed := _MIXED.fullmatch(core):
        of_whole, above, below = (int(part or 0) for part in mixed.groups())
        return of_whole + Fraction(above, below) if below else None
    if decimal := _DECIMAL.fullmatch(core):
        before, decimals = decimal[1] or "0", decimal[2] or decimal[3]
        return Fraction(int(before + decimals), 10 ** len(decimals))
    return None


_WORDS_OF_MINUS = re.compile(
    "minus|moins|menos|meno|mínus|miinus|eksi|минус|мінус|μείον|ناقص|منفی|سالب|माइनस|ऋण|মাইনাস|ลบ|负|負|零下|マイナス|마이너스|영하|"
    "below zero|below freezing|under null|unter null", re.IGNORECASE,
)  # fmt: skip
_WORDS_OF_PLUS = re.compile("plus|más|mais|più|плюс|正|プラス|플러스|زائد", re.IGNORECASE)
WORDS_OF_SYMBOLS = {
    "%": "per ?cent|pct|prozent|pour[ -]cent|por ?cento|por ciento|per cento|procent|процент|відсот|százalék|yüzde|"
    "prosent|prósent|protsen|\\bpersen\\b|persent|peratus|porsiyento|\\bposto\\b|odsto|ehuneko|për ?qind|la sută|"
    "faiz|foiz|asilimia|phần trăm|τοις εκατό|одсто|\\bпосто\\b|на сто|пайыз|хувь|տոկոս|პროცენტ|אחוז|"
    "بالمئة|بالمائة|في المئة|في المائة|درصد|فی ?صد|سلنه|प्रतिशत|फ़ीसदी|फीसदी|टक्क|শতাংশ|ટકા|ਪ੍ਰਤੀਸ਼ਤ|ਫੀਸਦੀ|"
    "சதவீத|சதவிகித|శాతం|ಶೇಕಡ|ಪ್ರತಿಶತ|ശതമാന|සියයට|ร้อยละ|เปอร์เซ็นต์|ເປີເຊັນ|ភាគរយ|ရာခိုင်နှုန်း|"
    "百分|个百分点|パーセント|퍼센트|프로",
    "\u2030": "per ?mille?|promille|pour mille|por mil|промилле|千分|パーミル",
    "$": "dollar|dólar|dollár|dolar|доллар|долар|USD|peso|دولار|دلار|डॉलर|ডলার|ดอลลาร์|美元|美金|元|ドル|달러|buck",
    "\u20ac": "euro|EUR|евро|євро|ευρώ|يورو|یورو|यूरो|ইউরো|ยูโร|欧元|歐元|ユーロ|유로",
    "\u00a3": "pound|pfund|livre|libra|sterlin|lira|funt|фунт|GBP|جنيه|पाउंड|英镑|英鎊|ポンド|파운드|quid",
    "\u00a5": "yen|yuan|renminbi|RMB|CNY|JPY|иен|юан|日元|日圆|人民币|元|円|엔|위안",
    "\u20b9": "rup|INR|рупи|रुप|টাকা|卢比|盧比|ルピー|루피",
    "\u20bd": "rub|rouble|руб|卢布|ルーブル|루블",
    "\u20a9": "won|вон|韩元|韓元|ウォン|원",
    "\u00a2": "cent|цент|分|セント|센트",
}
"""Words for each symbol in many languages, as a pattern."""
_SYMBOL_WORDS = {symbol: re.compile(words, re.IGNORECASE) for symbol, words in WORDS_OF_SYMBOLS.items()}
_WORDS_OF_FRACTIONS = {
    Fraction(1, 2): re.compile(
        "hal[bfv]|h[äe]lft|demi|moitié|medi[ao]|mezz|mei[ao]|metade|mitad|pół|połow|polovi|půl|полов|пол|半|二分之一|절반|반|"
        "نصف|نیم|आध|অর্ধ|ครึ่ง", re.IGNORECASE,
    ),
    Fraction(1, 4): re.compile("quarter|viertel|quart|cuart|fourth|ćwier|čtvrt|четверт|四分之一|刻|ربع", re.IGNORECASE),
    Fraction(3, 4): re.compile("quarter|viertel|quart|cuart|fourth|trzy czwarte|четверт|四分之三|刻", re.IGNORECASE),
    Fraction(1, 3): re.compile("third|drittel|tiers|tercio|terzo|terç|trzeci|třetin|трет|三分之一|ثلث", re.IGNORECASE),
    Fraction(2, 3): re.compile("third|drittel|tiers|tercio|terzi|terç|dwie trzecie|трет|三分之二|ثلث", re.IGNORECASE),
}  # fmt: skip
AROUND = 24
"""Number of characters before and after a number in which words for its sign, symbol or unit are looked for."""
_ANY_UNIT = re.compile(r"[\s\u00a0-]*[^\W\d_]|[\s\u00a0]*[°º\u2032\u2033\u2103\u2109\"'´]")


def around(text: str, start: int, end: int) -> Context:
    """Return the text around ``text[start:end]``; the K of 5K, a unit or a thousand, is in the text after it too."""
    after = end - 1 if text[max(start, end - 2) : end - 1].isdecimal() and text[end - 1] == "K" else end
    return Context(text[max(0, start - AROUND) : start], text[after : end + AROUND])


_END = r"\d+(?:[.,:]\d+)*"
_RANGE = re.compile(rf"(?P<before>\D*)(?P<first>{_END})[-\u2013](?P<second>{_END})(?P<after>\D*)")

_ANY_SIGN = re.compile(f"[{_SIGNS}]")


class End(NamedTuple):
    """A number at one end of a range."""

    text: str  # with the symbol and the unit of the range, which are written at one end alone
    written: str  # as it is written in the range


def ends_of(text: str) -> tuple[End, ...]:
    """Return both numbers of a range, as 5% and 10% for "5-10%", 1939 and 1945 for "1939–45"; none of other numbers."""
    parts = _RANGE.fullmatch(text)
    if parts is None:
        return ()
    before, first, second, after = parts.group("before", "first", "second", "after")
    unsigned = _ANY_SIGN.sub("", before)  # the hyphen is that of the range, so a sign is of the first number
    is_short = len(first) == 4 and len(second) == 2 and first.isdecimal() and int(second) > int(first[2:])
    whole = first[:2] + second if is_short else second
    return End(before + first + after, before + first), End(unsigned + whole + after, second + after)


_KNOWN_UNITS = {
    "km": "kilomet", "cm": "centimet|zentimet", "mm": "millimet", "kg": "kilogram", "mg": "milligram",
    "m": "met(?:er|re)|mèt", "g": "gram", "°C": "", "°F": "",
}  # fmt: skip
"""Units whose signs mean nothing else, with the beginnings of their names."""
_KNOWN_UNIT = re.compile(
    rf"[{_SPACE}]?(?:(?P<sign>[kcm]m|[km]g|[mg](?!\.)){_NO_WORD}(?![{SUPERSCRIPT}/^'’])|"
    rf"(?P<degrees>[°º][{_SPACE}]?[CF](?![A-Za-z])|[\u2103\u2109])|(?i:"
    + "|".join(f"(?P<u{i}>{names})" for i, names in enumerate(_KNOWN_UNITS.values()) if names)
    + "))"
)


_TOUCHING = re.compile(rf"(?<=\d)[{_SPACE}]?[^\d\s]{{1,4}}\Z")


def unit_of(text: str, context: Context) -> str | None:
    """Return the unit of a number if it is one of ``_KNOWN_UNITS``, "km" for "5 kilometres"; None for all others."""
    touching = _TOUCHING.search(text)
    unit = _KNOWN_UNIT.match((touching[0] if touching else "") + context.after)
    if unit is None:
        return None
    if unit["degrees"]:
        return "°F" if unit["degrees"][-1] in "F\u2109" else "°C"
    return unit["sign"] or [*_KNOWN_UNITS][int((unit.lastgroup or "u0")[1:])]


def signs_of(number: Number, context: Context) -> tuple[str, ...]:
    """Return the signs of a number: its own, or words before it."""
    if number.sign:
        return (number.sign,)
    has_minus, has_plus = _WORDS_OF_MINUS.search(context.before), _WORDS_OF_PLUS.search(context.before)
    if has_minus and has_plus:
        return "", "\u00b1", "\u2213"
    return ("", "-") if has_minus else ("", "+") if has_plus else ("",)


def has_symbol(symbol: str, number: Number, context: Context) -> bool:
    """True if a number has a symbol, its own or in words around it; an unknown symbol or unit may be any word."""
    if symbol in ("", number.symbol) or _is_of_both(symbol, context.after):
        return True
    if symbol in _SYMBOL_WORDS:
        return _SYMBOL_WORDS[symbol].search("\n".join(context)) is not None
    if symbol == UNIT_WITH_EXPONENT and _LENGTH.match(context.after):
        return False
    if is_unit(number.symbol) or _ANY_UNIT.match(context.after) is not None:
        return True
    return any(map(str.isalpha, context.before.rstrip()[-1:]))


_LENGTH = re.compile(
    rf"[{_SPACE}]?[kcm]?m(?![\w/^'’{SUPERSCRIPT}])(?![{_SPACE}]?(?:kw|kv|carr|cuad|quad|kare|sz|кв))", re.IGNORECASE
)
"""A length, and not the beginning of an area such as "m kw." or "m carrés"."""


def is_unit(symbol: str) -> bool:
    """True if a symbol is any unit."""
    return symbol in (UNIT, UNIT_WITH_EXPONENT)


def _is_of_both(symbol: str, after: str) -> bool:
    """True if a symbol follows that may be of two numbers, as in "1 bis 3 %"."""
    place = after.find(symbol)
    return place >= 0 and not after[place + len(symbol) :].lstrip()[:1].isdecimal()


def symbol_in(symbol: str, text: str) -> bool:
    """True if a symbol, or a word for it, is anywhere in a text."""
    if symbol == "" or is_unit(symbol) or symbol in text:
        return True
    return symbol not in _SYMBOL_WORDS or _SYMBOL_WORDS[symbol].search(text) is not None


def sign_in(sign: str, text: str) -> bool:
    """True if a word for a sign is in a text."""
    words = {"-": [_WORDS_OF_MINUS], "+": [_WORDS_OF_PLUS]}.get(sign, [_WORDS_OF_MINUS, _WORDS_OF_PLUS])
    return not sign or all(pattern.search(text) for pattern in words)


def fraction_in(fraction: Fraction, text: str) -> bool:
    """True if a word for the part of a fraction that is below one is in a text."""
    pattern = _WORDS_OF_FRACTIONS.get(fraction % 1)
    return pattern is not None and pattern.search(text) is not None
