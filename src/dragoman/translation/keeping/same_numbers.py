"""Finds a number of the source among those of a translation, where it may be written differently.

    unused = UnusedNumbers([("2000", Context("", "万")), ("15.30", Context())])
    unused.take("20", "20 million", 2)    # True: 2000万

Sign, exponent and fraction must be the same; a currency sign, a percent sign or a unit may be a word beside the number.
Numbers are looked up by what must be equal, so many numbers take no longer for each than a few.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterable, Iterator

from dragoman.translation.keeping.written_numbers import Context, Number, has_symbol, in_ascii, parse, signs_of

_SCALE = re.compile(
    "\\s?(?:[十百千万亿萬億만억]|(?:hundred|thousand|million|billion|trillion|tausend|Million|Milliarde|mille|milliard|mil|"
    "milione|miliard|тысяч|миллион)s?)", re.IGNORECASE,
)  # fmt: skip
_DECADE = re.compile(r"(?<=0)(?:['’]?s\b|er|年代)")  # behind "1990"
_TIME = re.compile(r"(\d{1,2})[:.](\d\d)")
_GROUPING = re.compile(r"(?<=\d)[.,'’\u00a0\u2007\u2009\u202f\u066c\uff0c\uff0e_ ](?=\d{3}(?!\d))")
_UNEVEN_GROUPS = re.compile(r"(?<![\d,])(?:\d{1,2}(?:,\d\d)+,\d{3}|\d{1,4}(?:,\d{4})+)(?!\d)")  # 12,34,567 and 1,2345


def groups_of(text: str) -> tuple[int, ...]:
    """Return the groups of digits as numbers: (1, 0, 5) for "1,000.5"."""
    return tuple(int(digits) for digits in re.findall(r"\d{1,4000}", text))  # Python reads no more than 4,300 at a time


def without_grouping(text: str) -> str:
    """Return a number without separators of thousands, and of lakhs: 1000.5 for "1,000.5"."""
    text = _UNEVEN_GROUPS.sub(lambda groups: groups[0].replace(",", ""), text)
    return _GROUPING.sub("", text)


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", in_ascii(text))


def _same(number: Number) -> Iterator[Hashable]:
    """Yield keys of a number; numbers with a common key differ only in separators, as "1,000", "1.000" and "1000"."""
    if number.fraction is not None:
        yield "fraction", number.fraction
    groups = groups_of(number.core)
    if not groups:
        yield "text", number.core
    elif not (number.has_fraction and number.fraction is not None and len(groups) == 1):  # the 3 of 3½ is not 3
        # 1.05 and 1.5 differ, but a date may have zeros, as 05.01.2024
        yield "groups", groups, None if len(groups) == 3 else len(re.findall(r"\d", number.core))
        yield "digits", *_digits(without_grouping(number.core))


_ANY = "any"
"""Sign of every number, with which a number without a sign is looked up last."""


class UnusedNumbers:
    """The numbers of a text; each can be taken once."""

    def __init__(self, numbers: Iterable[tuple[str, Context]], symbols: Iterable[str] = ()) -> None:
        """Take each number with the text around it, and all symbols that ``take`` will ask for."""
        self._numbers = list(numbers)
        self._is_used = [False] * len(self._numbers)
        self._by_key: dict[Hashable, deque[int]] = {}
        self._lengths: dict[str, set[int]] = {}  # numbers of digits of all numbers that differ only in zeros at the end
        wanted = dict.fromkeys(["", *symbols])
        for i, (text, context) in enumerate(self._numbers):
            number = parse(text)
            signs = signs_of(number, context)
            owned = [symbol for symbol in wanted if has_symbol(symbol, number, context)]
            keys = list(self._keys(number, context.after))
            # a number without a sign in the source may be taken as a signed one: the hyphen may be a mark of a list
            for sign in dict.fromkeys([*signs, _ANY]):
                for symbol in owned:
                    for key in keys:
                        self._by_key.setdefault((sign, number.power, symbol, key), deque()).append(i)

    def _keys(self, number: Number, after: str) -> Iterator[Hashable]:
        """Yield all keys by which ``take`` looks a number up."""
        yield from _same(number)
        text = number.core
        if time := _TIME.fullmatch(text):
            yield "time", int(time[1]), int(time[2])
        digits = "".join(_digits(text))
        bare = digits.strip("0")
        self._lengths.setdefault(bare, set()).add(len(digits))
        yield "length", bare, len(digits)
        if _SCALE.match(after):
            yield "scaled", bare
        if len(text) == 2 or (len(text) == 4 and text.isdigit()):
            yield "decade", len(text), text[-2:]

    def left(self) -> list[int]:
        """Return the indices of the numbers that are left."""
        return [i for i, is_used in enumerate(self._is_used) if not is_used]

    def take(self, text: str, src: str, end: int) -> bool:
        """Take the first number that is the same, else the same with another scale or decade; False if there is none.

        Args:
            text: Number of the source.
            src: The source text.
            end: End of the number in it; the word after it ("million") matters.
        """
        number = parse(text)
        signs = [number.sign] if number.sign else ["", _ANY]
        for sign in signs:
            mark = sign, number.power, number.symbol
            for keys in (self._equal(number), self._scaled(number.core, src, end), self._decade(number.core, src, end)):
                places = [place for key in keys if (place := self._first((*mark, key))) is not None]
                if places:
                    self._is_used[min(places)] = True
                    return True
        return False

    def _first(self, key: Hashable) -> int | None:
        """Return the first unused number with a key."""
        places = self._by_key.get(key)
        while places and self._is_used[places[0]]:
            places.popleft()
        return places[0] if places else None

    def _equal(self, number: Number) -> Iterator[Hashable]:
        """Yield the keys of the same number, and of the same time on a clock of 12 and of 24 hours: 3:30 and 15.30."""
        yield from _same(number)
        if time := _TIME.fullmatch(number.core):
            hour, minute = int(time[1]), int(time[2])
            yield from (("time", other, minute) for other in range(hour % 12, 100, 12) if other != hour)

    def _scaled(self, number: str, src: str, end: int) -> Iterator[Hashable]:
        """Yield the keys of the same digits with another word for the zeros, as 20 million and 2000万."""
        digits = "".join(_digits(number))
        bare = digits.strip("0")
        yield "scaled", bare
        if _SCALE.match(src[end : end + 12]):
            yield from (("length", bare, n) for n in self._lengths.get(bare, ()) if n > len(digits) + 1)

    def _decade(self, number: str, src: str, end: int) -> Iterator[Hashable]:
        """Yield the keys of a decade by four digits and by two, as "the 1990s" and "les années 90"."""
        if _DECADE.match(src, end) and (len(number) == 2 or (len(number) == 4 and number.isdigit())):
            yield "decade", 6 - len(number), number[-2:]
