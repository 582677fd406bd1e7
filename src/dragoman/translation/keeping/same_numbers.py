"""Finds a number of the source among those of a translation, where it may be written differently.

    unused = UnusedNumbers([("2000", Context("", "万")), ("15.30", Context())])
    unused.take("20", Context("", " million"))    # 0, the place of 2000万

Sign, exponent and fraction must be the same; a currency sign, a percent sign or a unit may be a word beside the number.
Numbers are looked up by what must be equal, so many numbers take no longer for each than a few.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from dragoman.languages.words import HAN
from dragoman.translation.keeping.dates import Hours, hours, is_decade
from dragoman.translation.keeping.written_numbers import (
    UNSPACED,
    Context,
    Number,
    has_symbol,
    in_ascii,
    parse,
    signs_of,
    unit_of,
)

_SCALES = (
    ((1,), "十"),
    ((2,), "[百백]|hundred|hundert|hundr[ae]\\b"),
    (
        (3,),
        "[千천]|thousand|tausend|tsd\\b|mille\\b|mil\\b|mila\\b|mii\\b|duizend|tusen|tusind|þúsund|tis[ií]|tys|tisuć|tisoč|"
        "hilja|tuha|ezer|tūkst|bin\\b|mijë|ribu|libo|k\\b|тыс|тис|хиляд|хиљад|илјад|мың|мянга|χιλιάδ|nghìn|ngàn|ألف|آلاف|"
        "هزار|ہزار|אלף|אלפים|हज़ार|हजार|হাজার|હજાર|ಸಾವಿರ|వేల|ஆயிர|ആയിര|พัน|ພັນ|ពាន់",
    ),
    ((4,), "[万萬만]|หมื่น|ໝື່ນ|ម៉ឺន|vạn\\b"),
    ((5,), "lakh|lac\\b|लाख|লাখ|লক্ষ|લાખ|ਲੱਖ|لاکھ|లక్ష|ಲಕ್ಷ|ലക്ഷ|லட்ச|แสน|ແສນ|សែន"),
    (
        (6,),
        "mil+[ijy]*[oóuő]|milh[ãõ]|mio\\b|mln|mn\\b|м[иі]л+[иіь]?[ийоё]+н|милиј?у?н|мілён|млн|εκατομ|triệu|juta|مليون|ملايين|"
        "میلیون|ملین|מיליון|मिलियन|মিলিয়ন|મિલિયન|மில்லியன்|ล้าน|ລ້ານ|លាន",
    ),
    ((7,), "crore|करोड़|करोड|कोटी|কোটি|કરોડ|ਕਰੋੜ|کروڑ|కోట్ల|ಕೋಟಿ|കോടി|கோடி"),
    ((8,), "[亿億억]"),
    (
        (9,),
        "mil+[ijy]+ar|mld|mrd|mlrd|bn\\b|м[иі]л+[ьи]?[ия]рд|милиј?ард|мільярд|млрд|δισεκατομ|tỷ|tỉ\\b|مليار|میلیارد|ارب|"
        "מיליארד|अरब",
    ),
    ((9, 12), "bil+[ijyh]*[oóuõã]|б[иі]л+[ьи]?[ийоё]+н"),
    ((12,), "[兆조]|трлн"),
    ((12, 18), "tril+[ijyh]*[oóuõã]|тр[иі]л+[ьи]?[ийоё]+н"),
)
"""Words for powers of ten in many languages; the powers of billion and trillion differ between countries."""
_POWERS = {f"s{i}": powers for i, (powers, _) in enumerate(_SCALES)}
_SCALE = re.compile(
    r"[\s-]?(?:de\s)?[多余餘几幾数數여]?(?:"
    + "|".join(f"(?P<s{i}>{words})" for i, (_, words) in enumerate(_SCALES))
    + ")",
    re.IGNORECASE,
)
MOST_SCALES = 4
"""Largest number of words of a power of ten: 千 and 万, or "hundred thousand", are two."""

_GROUPING = re.compile(r"(?<=\d)[.,'’\u00a0\u2007\u2009\u202f\u066c\uff0c\uff0e_ ](?=\d{3}(?!\d))")
_UNEVEN_GROUPS = re.compile(r"(?<![\d,])(?:\d{1,2}(?:,\d\d)+,\d{3}|\d{1,4}(?:,\d{4})+)(?!\d)")  # 12,34,567 and 1,2345


def powers_of(after: str) -> frozenset[int]:
    """Return the powers of ten that the words right after a number may be, as 6 for "million"; none without a word."""
    powers = frozenset({0})
    words, _ = _scale_words(after, 0)
    for word in words:
        powers = frozenset(power + more for power in powers for more in word)
    return powers if words else frozenset()


def _scale_words(text: str, place: int) -> tuple[list[tuple[int, ...]], int]:
    """Return the powers of ten of each word from a place on that is one, and the place behind the last of them."""
    words: list[tuple[int, ...]] = []
    while len(words) < MOST_SCALES and (scale := _SCALE.match(text, place)) is not None:
        words.append(_POWERS[scale.lastgroup or ""])
        place = scale.end()
    return words, place


class Chain(NamedTuple):
    """Numbers with words for powers of ten that add up to one number: 1億2000万 is 120,000,000."""

    value: str  # in digits; of 3割5分 it is 35%
    numbers: tuple[tuple[int, int], ...]  # start and end of each
    end: int


MOST_LINKS = 8
"""Largest number of numbers in a chain."""
MOST_CHAIN = 200
"""Largest length of a chain in characters; what is behind is not read, and stays in no cache."""

_FIRST_DIGIT = re.compile(r"\D{0,8}(?=\d)")
_WHOLE = re.compile(r"(?:\d{1,3}(?:[.,'’\u00a0\u202f]\d{3}){1,5}|\d{1,15})(?!\d|[.,:/'’–-]\d)")
_TO_NEXT = re.compile(rf"(?P<ending>[^\W\d_{UNSPACED}]{{0,6}})\.?[ \u00a0\u202f]?")
_NO_SPACE = re.compile(rf"(?<=[{HAN}])|(?<=[\uac00-\ud7a3])[ \u00a0]?")
_BEHIND_THOUSAND = re.compile(r"(?:(?<=\bbin)|(?<=\bmil))[ \u00a0]", re.IGNORECASE)  # Turkish, Spanish, Portuguese
_WARI = re.compile(r"(\d)割(\d)分(?:(\d)厘)?")


def chain_at(text: str, start: int = 0) -> Chain | None:
    """Return the chain whose first number has its digits right behind ``start``, but for a sign or a currency.

    Its places are counted from ``start``.
    """
    return _chain_of(text[start : start + MOST_CHAIN])


@lru_cache(maxsize=1024)
def _chain_of(text: str) -> Chain | None:
    first = _FIRST_DIGIT.match(text)
    place = behind = end = first.end() if first else len(text)
    if wari := _WARI.match(text, place):
        tenths, percent, decimal = (int(digit or 0) for digit in wari.groups())
        return Chain(f"{10 * tenths + percent}{f'.{decimal}' * bool(decimal)}%", (wari.span(1),), wari.end())
    items, numbers = list[tuple[int, int]](), list[tuple[int, int]]()
    while len(numbers) < MOST_LINKS and (number := _WHOLE.match(text, place)) is not None:
        words, after = _scale_words(text, number.end())
        # the last number may have no word, as in 1万5000 and "2 bin 500", but not in "5 Tsd. 300 in Berlin"
        is_last = bool(items) and (
            _NO_SPACE.fullmatch(text, behind, place)
            or (len(number[0]) == 3 and _BEHIND_THOUSAND.fullmatch(text, behind, place))
        )
        linked = _linked(items, int(re.sub(r"\D", "", number[0])), words) if words or is_last else None
        if linked is None:
            break
        items, behind = linked, after
        numbers.append(number.span())
        next_one = _TO_NEXT.match(text, behind)
        end = next_one.end("ending") if words and next_one else number.end()
        place = next_one.end() if words and next_one else len(text)
    return Chain(str(sum(value for value, _ in items)), tuple(numbers), end) if len(numbers) > 1 else None


def _linked(items: list[tuple[int, int]], number: int, words: list[tuple[int, ...]]) -> list[tuple[int, int]] | None:
    """Add a number and its words for powers of ten to the values of a chain; return None if it does not belong there.

    A word multiplies all values below its power: 2천5백만 is 25,000,000.

    Args:
        items: Values, each with the power of ten of its last word; a value is below the power of the one before it.
    """
    items = [*items, (number, 0)]
    for powers in words:
        power = next((power for power in powers if items[-1][0] < 10**power), None)
        if power is None:
            return None
        value = 0
        while items and items[-1][0] < 10**power:
            value += items.pop()[0]
        items.append((value * 10**power, power))
    return items if len(items) < 2 or items[-1][0] < 10 ** items[-2][1] else None


def summed(text: str) -> str:
    """Return a chain as one number in digits: 120000000 for 1億2000万, 35% for 3割5分; any other text as it is."""
    chain = chain_at(text)
    return text if chain is None else f"{text[: chain.numbers[0][0]]}{chain.value}{text[chain.end :]}"


def links_of(text: str, context: Context) -> list[tuple[str, Context]]:
    """Return each number of a chain with the text around it; none of another number."""
    chain = chain_at(text)
    numbers = chain.numbers if chain is not None and len(chain.numbers) > 1 else ()
    return [(text[start:end], Context(context.before, text[end:] + context.after)) for start, end in numbers]


_SHARE = re.compile(r"\s?(?:割|成(?![员員为為立功长長就果分本人])|(?P<price>折(?![叠疊页頁线線])))")
_TENTHS = re.compile(r"\d{1,2}(?:[.\uff0e]\d)?")


def shares_of(number: str, after: str) -> list[str]:
    """Return the percentages that a number of tenths may be: 70% for 7割 and 7成, 80% and 20% for a price of 8折."""
    share, tenths = _SHARE.match(after), _TENTHS.fullmatch(number)
    if share is None or tenths is None:
        return []
    value = float(in_ascii(number).replace("\uff0e", "."))
    percent = round(value if share["price"] and value > 10 else 10 * value)  # 85折 is 8.5折
    return [f"{percent}%", f"{100 - percent}%"] if share["price"] else [f"{percent}%"]


_OTHERS_BETWEEN = re.compile(r"(?:\s?(?:[^\W\d_]{1,4}|[-–—~～〜、,，/])\s?\d++(?:[.,]\d++)*+){1,3}")


def shared_powers(after: str) -> frozenset[int]:
    """Return ``powers_of`` the last number of a row: 6 for the 5 of "5 to 10 million"; none without a row."""
    row = _OTHERS_BETWEEN.match(after)
    return powers_of(after[row.end() :]) if row else frozenset()


_SHORT_MILLION = re.compile(r"\s?mil\b", re.IGNORECASE)


def scales_of(after: str) -> frozenset[int]:
    """Return ``powers_of`` a text, and 6 for "mil", which is a thousand or, abbreviated, a million."""
    powers = powers_of(after)
    return powers | {6} if powers and _SHORT_MILLION.match(after) else powers


def groups_of(text: str) -> tuple[int, ...]:
    """Return the groups of digits as numbers: (1, 0, 5) for "1,000.5"."""
    return tuple(int(digits) for digits in re.findall(r"\d{1,4000}", text))  # Python reads no more than 4,300 at a time


def without_grouping(text: str) -> str:
    """Return a number without separators of thousands, and of lakhs: 1000.5 for "1,000.5"."""
    text = _UNEVEN_GROUPS.sub(lambda groups: groups[0].replace(",", ""), text)
    marks = list(_GROUPING.finditer(text))
    if len(marks) > 1 and marks[-1][0] not in [mark[0] for mark in marks[:-1]]:  # 1,234.567 has decimals
        end = marks[-1].start()
        return _GROUPING.sub("", text[:end]) + text[end:]
    return _GROUPING.sub("", text)


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", in_ascii(text))


def _sizes(number: str, powers: Collection[int]) -> Iterator[tuple[str, int]]:
    """Yield the digits of a number without zeros at their ends, and how many digits its value has before the point.

    A point or comma with three digits behind it may be that of thousands or of decimals: both are tried.

    Args:
        powers: Powers of ten after the number; none: it is its own value.
    """
    groups = _digits(number)
    digits = "".join(groups)
    bare = digits.strip("0")
    if not bare:
        return
    n_zeros = len(digits) - len(digits.lstrip("0"))
    has_one_mark = len(set(re.findall(r"\D", number))) == 1 and n_zeros == 0
    is_whole = len(groups) == 1 or (has_one_mark and len(_digits(without_grouping(number))) == 1)
    lengths = [len(digits)] if is_whole else []
    if len(groups) == 2 or not is_whole:
        lengths.append(len(digits) - len(groups[-1]))
    for n_whole in lengths:
        yield from ((bare, n_whole - n_zeros + power) for power in powers or (0,))


_DATE = re.compile(r"\d+([./:-])\d+\1\d+")


def _same(number: Number) -> Iterator[Hashable]:
    """Yield keys of a number; numbers with a common key differ only in separators, as "1,000", "1.000" and "1000"."""
    if number.fraction is not None:
        yield "fraction", number.fraction
    groups = groups_of(number.core)
    if not groups:
        yield "text", number.core
    elif not (number.has_fraction and number.fraction is not None and len(groups) == 1):  # the 3 of 3½ is not 3
        # 1.05 and 1.5 differ, and so do 1,000.05 and 1,000.5, but a date may have zeros, as 05.01.2024
        yield "groups", groups, None if _DATE.fullmatch(number.core) else len(re.findall(r"\d", number.core))
        yield "digits", *_digits(without_grouping(number.core))


def _hours(text: str, number: Number, context: Context) -> Hours | None:
    """Return the times that a number may be, by the text around it; its unit may be the word for hours, as in "20h"."""
    return hours(number.core, Context(context.before, text[len(number.core) :] + context.after))


_ANY = "any"
"""Sign of every number, with which a number without a sign is looked up last; and a power of ten of every number."""


class UnusedNumbers:
    """The numbers of a text; each can be taken once."""

    def __init__(self, numbers: Iterable[tuple[str, Context]], symbols: Iterable[str] = ()) -> None:
        """Take each number with the text around it, and all symbols that ``take`` will ask for."""
        self._numbers = list(numbers)
        self._is_used = [False] * len(self._numbers)
        self._by_key: dict[Hashable, deque[int]] = {}
        wanted = dict.fromkeys(["", *symbols])
        for i, (text, context) in enumerate(self._numbers):
            self._add(i, summed(text), context, wanted)
            for share in shares_of(text, context.after):
                self._add(i, share, Context(), wanted)

    def _add(self, i: int, text: str, context: Context, wanted: Iterable[str]) -> None:
        number = parse(text)
        signs = signs_of(number, context)
        owned = [symbol for symbol in wanted if has_symbol(symbol, number, context)]
        keys = list(dict.fromkeys(self._keys(text, number, context)))
        # a number without a sign in the source may be taken as a signed one: the hyphen may be a mark of a list
        for sign in dict.fromkeys([*signs, _ANY]):
            for symbol in owned:
                for key in keys:
                    self._by_key.setdefault((sign, number.power, symbol, key), deque()).append(i)

    def _keys(self, text: str, number: Number, context: Context) -> Iterator[Hashable]:
        """Yield all keys by which ``take`` looks a number up."""
        scales, unit = scales_of(context.after), unit_of(text, context)
        for key in _same(number):
            yield from ((key, scale, end) for scale in (_ANY, *(scales or (None,))) for end in (_ANY, unit))
        if clock := _hours(text, number, context):
            for time in clock.times:
                yield "time", time
                if clock.is_clock:
                    yield "clock", time
        core, powers, shared = number.core, powers_of(context.after), shared_powers(context.after)
        for size in _sizes(core, powers):
            yield "scaled" if powers else "unscaled", size
        for size in _sizes(core, shared) if shared else ():
            yield "scaled", size
        if len(core) == 2 or (len(core) == 4 and core.isdigit()):
            yield "decade", len(core), core[-2:]

    def left(self) -> list[int]:
        """Return the indices of the numbers that are left."""
        return [i for i, is_used in enumerate(self._is_used) if not is_used]

    def take(self, text: str, context: Context, symbol: str | None = None) -> int | None:
        """Take the first number that is the same, else the same with another scale or decade; None if there is none.

        Args:
            text: Number of the source.
            context: The text around it; its words ("million", "pm") matter.
            symbol: Symbol that the number must have; None: its own.

        Returns:
            The index of the number that is taken.
        """
        for share in shares_of(text, context.after):
            if (place := self._take(share, Context(), None)) is not None:
                return place
        return self._take(summed(text), context, symbol)

    def _take(self, text: str, context: Context, symbol: str | None) -> int | None:
        number = parse(text)
        # the same digits are another number with another word for powers of ten, or another unit
        powers, unit = scales_of(context.after), unit_of(text, context)
        units = [None, unit] if unit else [_ANY]

        def equal(scales: Iterable[Hashable]) -> list[Hashable]:
            return [(key, scale, end) for key in _same(number) for scale in scales for end in units]

        at_time = [*self._at_time(text, number, context)]
        scaled, decade = [*self._scaled(number.core, context)], [*self._decade(number.core, context)]
        if powers:
            # "20 million" is rather 20.000.000 than the 20 of "20 Hunde"
            in_order = [[*equal(powers), *at_time], scaled, equal([None]), decade]
        elif number.core.isdecimal():
            # of "3 Hunde um 15 Uhr" the second number is "3 pm"; 3 is rather 3 than the 3 of "3 Millionen"
            in_order = [at_time, equal([None]), equal([_ANY]), scaled, decade]
        else:
            in_order = [[*equal([_ANY]), *at_time], scaled, decade]
        for sign in [number.sign] if number.sign else ["", _ANY]:
            mark = sign, number.power, number.symbol if symbol is None else symbol
            for keys in in_order:
                places = [place for key in keys if (place := self._first((*mark, key))) is not None]
                if places:
                    self._is_used[min(places)] = True
                    return min(places)
        return None

    def _first(self, key: Hashable) -> int | None:
        """Return the first unused number with a key."""
        places = self._by_key.get(key)
        while places and self._is_used[places[0]]:
            places.popleft()
        return places[0] if places else None

    def _at_time(self, text: str, number: Number, context: Context) -> Iterator[Hashable]:
        """Yield the keys of the same time on a clock of 12 and of 24 hours, as 3:30 pm and 15.30, 3 pm and 15 Uhr.

        One of both must be surely a time: "3 h" and "15 h" are two durations.
        """
        if clock := _hours(text, number, context):
            yield from (("time" if clock.is_clock else "clock", time) for time in clock.times)

    def _scaled(self, number: str, context: Context) -> Iterator[Hashable]:
        """Yield the keys of the same value with another word for the zeros, as 20 million and 2000万."""
        powers, shared = powers_of(context.after), shared_powers(context.after)
        for size in _sizes(number, powers):
            yield "scaled", size
            if powers:
                yield "unscaled", size
        for size in _sizes(number, shared) if shared else ():
            yield from (("scaled", size), ("unscaled", size))

    def _decade(self, number: str, context: Context) -> Iterator[Hashable]:
        """Yield the keys of a decade by four digits and by two, as "the 1990s" and "les années 90"."""
        if is_decade(number, context):
            yield "decade", 6 - len(number), number[-2:]
