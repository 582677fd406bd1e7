"""Dates and times: months by name, centuries in Roman numerals, decades, hours on clocks of 12 and of 24 hours.

Calendar("May 1, 1990").take("5", Context("1990年", "月1日"))    # True
hours("3", Context("at ", " pm")).times                       # {(15, 0)}
times_of("um halb vier", "de")[0].minutes                     # {210}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from dragoman.languages.known import LANGUAGES, is_known, known
from dragoman.languages.language import Clock, Language
from dragoman.translation.keeping.written_numbers import Context, in_ascii

_MONTHS = (
    "jan|jän|jaan|ene(?:ro)?\\b|gen(?:\\b|n|er\\b)|ianu|led(?:en|n)|stycz|siječ|sausi|oca[kğ]|tammi|ιαν|янв|яну|јан|січ|студз|"
    "يناير|كانون الثاني|ژانویه|जनवरी|มกรา|ינואר",
    "feb|fev(?:\\b|ereiro)|fév|lut(?:y|eg)|únor|veljač|helmik|veebr|vasar[ij]|şubat|φεβ|фев|феб|лют|فبراير|شباط|فوریه|"
    "फ़?रवरी|กุมภา|פברואר",
    "mar(?:\\.|\\s\\d|ch|s\\b|z|ç|t(?:\\b|[aeisuāą])|ec|c[au]\\b|et\\b)|mär|maart|mrt\\b|břez|ožuj|márc|maalis|kov[ao]s?\\b|"
    "μαρ|μάρ|март|берез|сакав|مارس|آذار|मार्च|มีนา|מרץ",
    "apr(?:\\b|[iīí])|ápr|avr|abr(?:il)?\\b|kwie|dub(?:en|n)|trav(?:anj|nj)|huhti|balan(?:d|dž)|nisan|απρ|апр|квіт|красав|"
    "أبريل|إبريل|نيسان|آوریل|अप्रैल|เมษา|אפריל",
    "may(?:o|ıs)?\\b|mai(?:o|g|js|jā)?\\b|mag(?:gio|\\.)|mei\\b|maj(?:a|u|em|s)?\\b|máj|květ|svib|touko|geguž|μάι|μαΐ|"
    "ма[йяею]\\b|мај|трав|مايو|أيار|मई|พฤษภา|מאי",
    "jun(?:\\b|[eiy]\\b|[hi])|jún|jūn|juun|juin\\b|giu(?:\\b|gn)|iuni|czerw|červ(?:en\\b|n)|lip(?:anj|nj)|kesäk|birž|haziran|"
    "ιουν|ιούν|июн|юни|јун|черв|чэрв|يونيو|حزيران|ژوئن|जून|มิถุนา|יוני",
    "jul|júl|jūl|juul|juil|lug(?:\\b|l)|iuli|lip(?:iec|c)|červen[ec]|srp(?:anj|nj)|heinä|liep(?:a|os|ą)\\b|temmuz|ιουλ|ιούλ|"
    "июл|юли|јул|лип(?:ень|н)|ліп|يوليو|تموز|ژوئیه|जुलाई|กรกฎา|יולי",
    "aug(?:\\b|us)|avg|ao[uû]t|agost|agust|ağust|sierp|srp(?:en|n(?!j))|kolovoz|elok|rugpj|αυγ|αύγ|авг|серп|жні|أغسطس|"
    "آب\\b|اوت\\b|अगस्त|สิงหา|אוגוסט",
    "sep(?:\\b|t\\.|tem|tiem)|set(?:t?embr|iembr|\\.?\\s\\d)|wrze|září|ruj(?:an|n)|szept|syys|rugs|eylül|σεπ|сент|септ|верес|верас|"
    "سبتمبر|أيلول|سپتامبر|सितंबर|सितम्बर|กันยา|ספטמבר",
    "oct|okt|ott(?:\\b|ob)|outub|paźdz|říj|lokak|spali|ekim|οκτ|окт|жовт|кастр|أكتوبر|تشرين الأول|اکتبر|"
    "अक्टूबर|अक्तूबर|ตุลา|אוקטובר",
    "nov(?:\\b|em|iem)|noiem|studen(?:i|og)\\b|marrask|lapkri|kasım|νοε|νοέ|ноя|ное|нов(?:\\b|ем)|листопад|"
    "лістапад|نوفمبر|تشرين الثاني|نوامبر|नवंबर|नवम्बर|พฤศจิกา|נובמבר",
    "d[eé]c(?:\\b|em)|dez(?:\\.|\\s\\d|em)|dic(?:\\b|em|iem)|desem|detsem|grud(?:zi|ni)|prosin|jouluk|gruod|aralık|δεκ|"
    "дек(?:\\b|аб|ем)|дец|груд|снеж|ديسمبر|كانون الأول|دسامبر|दिसंबर|दिसम्बर|ธันวา|דצמבר",
)
"""Beginnings of the names of the months in many languages, as patterns."""
_LISTOPAD = frozenset({10, 11})  # a month of autumn: October in Croatian, November in Czech and Polish
_NAME = re.compile(  # no letters before, but the prefixes of Arabic, Hebrew and Thai
    "(?<![A-Za-z\u00aa-\u052f])(?:listopad|"
    + "|".join(f"(?P<m{month}>{names})" for month, names in enumerate(_MONTHS, 1))
    + ")",
    re.IGNORECASE,
)

_MONTH_BEFORE = re.compile(r"(?:tháng|เดือน|ខែ)\s?$", re.IGNORECASE)
_MONTH_AFTER = re.compile(r"\s?[月월]")
_DAY_BEFORE = re.compile(r"\d\.\s?$")  # 3. 10. 2024
_DAY_AND_MONTH = re.compile(r"\d{1,2}([./])\d{1,2}")

_TENS = ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC")
_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_ROMAN_VALUES = {tens + ones: 10 * t + o for t, tens in enumerate(_TENS) for o, ones in enumerate(_ONES)}
_IN_LATIN = str.maketrans("\u0406\u0425", "IX")  # the letters of Cyrillic, which Russian and Ukrainian type for them
_CENTURY = (
    "century|centuries|jahrh|jh\\b|eeuw|siècle|s\\.|siglo|segle|século|secol|sec\\.|wiek|w\\.|stolet|stoljeć|stuleci|storoč|"
    "vijek|век|вв?\\.|вік|століт|ст\\.|стаг|αιών|század|vuosisa|sajand|amži|gadsimt|yüzyıl|asır|mendea|thế kỷ"
)
_ROMAN = re.compile(
    rf"(?<![\w.])(?P<before>(?i:{_CENTURY})[^\W\d_]*\s)?(?P<roman>(?=[IVXL])(?:X[CL]|L?X{{0,3}})(?:I[XV]|V?I{{0,3}}))"
    rf"(?:-?(?P<end>er|re|e|è|ème|eme|º|ª|°|th|st|nd|rd|го|й|м))?(?![\w'’])(?P<after>\.?\s(?i:{_CENTURY}))?"
)
_CENTURY_BEFORE_DECADE = re.compile(r"\s?(?:世[纪紀]|세기)\s?(\d0)\s?(?:年代|년대)")

_DECADE_AFTER = re.compile(
    r"(?:['’]?s\b|er|['’]?l[aeı]r|['’]erne|-?luvu|-?talet|-?årene|-(?:[хеи]|их|ых|те|ті|tych|te|as|es|an)\b|\. l[eé]t|"
    r"\s?年代|\s?년대)"
)
_DECADE_BEFORE = re.compile(
    r"(?:ann[ée]es|años|anys|anos|anni|anii|jaren|lata|latach|lat|tahun|thập niên|ทศวรรษ(?:ที่)?)\s?['’]?$", re.IGNORECASE
)

TIME = re.compile(r"(\d{1,2})(?:[:.]|\s?[hH]\s?|u)(\d\d)")
_MORNING = re.compile(r"\s?[aA]\.?\s?[mM]\b(?!\s[A-ZÄÖÜ])")  # no "3:30 am Montag"
_EVENING = re.compile(r"\s?(?:[pP]\.?\s?[mM]\b|โมงเย็น)")
_MORNING_BEFORE = re.compile(r"(?:上午|凌晨|午前|오전|ตี)\s?$")
_EVENING_BEFORE = re.compile(r"(?:下午|午[后後]|오후|บ่าย)\s?$")
_CLOCK_AFTER = re.compile(r"\s?(?:[ap]\.?\s?m\b|uhr|o['’]clock|[点點]|[時时시](?![间間간])|น\.|โมง)", re.IGNORECASE)
_CLOCK_BEFORE = re.compile(r"(?:kl\.?|klo|klockan|[上下]午|午[前后後]|凌晨|오전|오후|ตี|บ่าย)\s?$", re.IGNORECASE)
_HOURS_AFTER = re.compile(
    r"\s?(?:h\b|hrs?\b|heures?|hor[ae]s?\b|ore\b|uur|час|годин|giờ|godz|hod|óra|ór[áa]kor|saat)", re.IGNORECASE
)
_OF_EVENING = re.compile(r"\s?ทุ่ม(?P<half>ครึ่ง)?")


class Hours(NamedTuple):
    """Times of day that a number may be."""

    times: frozenset[tuple[int, int]]
    """Hours from 0 to 23, each with its minute."""
    is_clock: bool
    """False if the number may as well be a duration, as in "3 h"."""


def hours(number: str, context: Context) -> Hours | None:
    """Return the times that a number may be; None if it is no time. The 3 of "3 Uhr" may be of night or day."""
    if evening := evening_times(number, context):
        return Hours(evening, True)
    time = TIME.fullmatch(number)
    is_clock = time is not None or _CLOCK_AFTER.match(context.after) or _CLOCK_BEFORE.search(context.before)
    if time is None and not (
        len(number) < 3 and number.isdecimal() and (is_clock or _HOURS_AFTER.match(context.after))
    ):
        return None
    hour, minute = (int(time[1]), int(time[2])) if time else (int(number), 0)
    if hour > 24 or minute > 59:
        return None
    is_morning = _MORNING.match(context.after) or _MORNING_BEFORE.search(context.before)
    is_evening = _EVENING.match(context.after) or _EVENING_BEFORE.search(context.before)
    of_day = {hour % 24}
    if hour < 13 and (is_morning or is_evening):
        of_day = {hour % 12 + (12 if is_evening else 0)}
    elif 0 < hour < 13:
        of_day = {hour % 12, hour % 12 + 12}
    return Hours(frozenset((hour, minute) for hour in of_day), bool(is_clock))


def evening_times(number: str, context: Context) -> frozenset[tuple[int, int]]:
    """Return the time of a number that counts the hours of the evening from six: 20:00 for the Thai "2 ทุ่ม"."""
    evening = _OF_EVENING.match(context.after)
    if evening is None or len(number) > 2 or not number.isdecimal() or not 1 <= int(number) <= 12:
        return frozenset()
    return frozenset({((int(number) + 18) % 24, 30 if evening["half"] else 0)})


class Time(NamedTuple):
    """A time of day in a text."""

    start: int
    end: int
    minutes: frozenset[int]
    """Minutes from noon or midnight; several if it has another meaning in another language."""
    is_spoken: bool
    """True if a word names half, a quarter, or minutes: "halb 4"."""
    is_sure: bool
    """False if it may be something else, as a length of time."""


_DIGITAL = re.compile(
    r"(?<![\d.,:])(?P<hour>\d{1,2})(?:[:hHu]|(?P<point>\.)|\sh\s|\sUhr\s|\s?[点點時时]\s?|시\s?)(?P<minute>[0-5]\d)"
    r"(?![\d%]|[.,:]\d|\s?min)"
)


def may_have_spoken_times(text: str, lang: str | None) -> bool:
    """True if a text has a word for half, a quarter, or minutes in its language, in any if that is not known."""
    small = text.lower()
    return any(sign in small for sign in _signs(lang))


@lru_cache(maxsize=64)
def _signs(lang: str | None) -> tuple[str, ...]:
    signs = (sign for language in _languages(lang) if language.clock for sign in language.clock.signs.split())
    return tuple(dict.fromkeys(signs))


def _languages(lang: str | None) -> list[Language]:
    return [known(lang)] if lang and is_known(lang) else LANGUAGES


def times_of(text: str, lang: str | None) -> list[Time]:
    """Return the times of day of a text with half, a quarter or minutes in words, full hours and those in digits.

    They are in order. Of a language that is not known all patterns are tried.
    """
    clocks = [(language.clock, language.spaces) for language in _languages(lang) if language.clock]
    times = [time for clock, spaces in clocks for time in _in_words(text, clock, spaces)]
    for written in _DIGITAL.finditer(text):
        hour, minute = int(written["hour"]), int(written["minute"])
        if hour <= 24:
            is_sure = not written["point"] or _CLOCK_AFTER.match(text, written.end()) is not None
            times.append(Time(*written.span(), frozenset({(60 * hour + minute) % _HALF_DAY}), False, is_sure))
    return _merged(times)


_HALF_DAY = 12 * 60


def _in_words(text: str, clock: Clock, spaces: bool) -> Iterator[Time]:
    """Yield the times of a text by the words of a language."""
    n_spoken, n_sure, patterns = len(clock.spoken) + len(clock.perhaps), len(clock.spoken), clock_patterns(clock)
    for match in clock_pattern(clock, spaces).finditer(text):
        place = int((match.lastgroup or "t0")[1:])
        hour = match[f"h{place}"].lower()
        value = int(hour) if hour.isdecimal() else _hours_in_words(clock).get(hour, 99)  # "ſieben" is "sieben" to re
        if value <= 24:
            minutes = frozenset({(60 * value + patterns[place][0]) % _HALF_DAY})
            yield Time(*match.span(), minutes, place < n_spoken, not n_sure <= place < n_spoken)


def _merged(times: Iterable[Time]) -> list[Time]:
    """Return times without overlaps, in order: the longest of several, with all meanings of those as long."""
    merged: list[Time] = []
    for time in sorted(times, key=lambda time: (time.start, -time.end)):
        last = merged[-1] if merged else None
        if last is None or last.end <= time.start:
            merged.append(time)
        elif last.is_spoken and time.is_spoken:
            is_sure = last.is_sure or time.is_sure
            merged[-1] = Time(last.start, max(last.end, time.end), last.minutes | time.minutes, True, is_sure)
        elif time.is_spoken or time.end - time.start > last.end - last.start:
            merged[-1] = time
    return merged


def clock_patterns(clock: Clock) -> tuple[tuple[int, str], ...]:
    """Return the patterns of a language, each with the minutes from its hour to its time: those of a full hour last."""
    return (*clock.spoken, *clock.perhaps, *(((0, clock.full),) if clock.full else ()))


@lru_cache(maxsize=64)
def clock_pattern(clock: Clock, spaces: bool) -> re.Pattern[str]:
    """Return the pattern of a time in a language: group ``t0`` is the first of ``clock_patterns``, ``h0`` its hour."""
    words = sorted(_hours_in_words(clock), key=len, reverse=True)
    digits = r"(?<!\d[.,:])\d{1,2}(?![\d%]|[.,:]\d)"
    alternatives = []
    for i, (_, pattern) in enumerate(clock_patterns(clock)):
        hour = f"(?:(?P<h{i}>{'|'.join([digits, *map(re.escape, words)])}){clock.ending if words else ''})"
        alternatives.append(f"(?P<t{i}>{pattern.replace(' ', chr(92) + 's').replace('H', hour)})")
    start, end = (r"(?<![^\W_])", r"(?![^\W\d_])") if spaces else (rf"(?<![\d{''.join(words)}])", "")
    pattern = f"{start}(?:{'|'.join(alternatives)}){end}"
    return re.compile(pattern, re.IGNORECASE)


@lru_cache(maxsize=64)
def _hours_in_words(clock: Clock) -> dict[str, int]:
    return {word: hour for hour, words in enumerate(clock.hours.split(), 1) for word in words.split("|")}


class SameTimes(NamedTuple):
    """The times of a text and its translation that are compared, because one of both has words for its minutes."""

    src: list[Time]
    translation: list[Time]
    other_src: list[Time]
    """Spoken times of the text; the translation has other times in their place."""
    other_translation: list[Time]
    """Spoken times of the translation; the text has other times in their place."""


def same_times(src: Sequence[Time], translation: Sequence[Time]) -> SameTimes:
    """Return the times that are the same in a text and its translation, and those that have become another.

    A time is another one only if both texts have a time without a partner, and all those are surely times. Those that
    are not sure find a partner last.
    """
    same = SameTimes([], [], [], [])
    left, others = (sorted(times, key=lambda time: not time.is_sure) for times in (src, translation))
    # times in digits are compared elsewhere, with morning and evening
    for is_spoken, is_other_spoken in ((False, False), (True, True), (True, False), (False, True)):
        places: dict[int, list[Time]] = {}
        for time in reversed(others):
            for minute in time.minutes if time.is_spoken is is_other_spoken else ():
                places.setdefault(minute, []).append(time)
        used, used_others = set[Time](), set[Time]()
        for time in left:
            if time.is_spoken is is_spoken:
                for minute in time.minutes:
                    while minute in places and places[minute] and places[minute][-1] in used_others:
                        places[minute].pop()
                    if places.get(minute):
                        used.add(time)
                        used_others.add(places[minute].pop())
                        break
        if is_spoken or is_other_spoken:
            same.src.extend(time for time in left if time in used)
            same.translation.extend(time for time in others if time in used_others)
        left = [time for time in left if time not in used]
        others = [time for time in others if time not in used_others]
    unpaired = [*left, *others]
    are_sure = all(time.is_sure for time in unpaired) and any(time.is_spoken for time in unpaired)
    if left and others and are_sure:
        same.other_src.extend(time for time in left if time.is_spoken)
        same.other_translation.extend(time for time in others if time.is_spoken)
    return same


def is_decade(number: str, context: Context) -> bool:
    """True if a number is a decade by its last two digits or by four: the 1990s, les années 90, 90-х."""
    if len(number) not in (2, 4) or not number.isdecimal() or not number.endswith("0"):
        return False
    return _DECADE_AFTER.match(context.after) is not None or _DECADE_BEFORE.search(context.before) is not None


def is_month(number: str, context: Context) -> bool:
    """True if a number is a month by the word or the signs around it, as in 5月, 5월, tháng 5, and 3. 5. 2024."""
    if len(number) > 2 or not number.isdecimal() or not 1 <= int(number) <= 12:
        return False
    if _MONTH_AFTER.match(context.after) or _MONTH_BEFORE.search(context.before):
        return True
    return context.after.startswith(".") and _DAY_BEFORE.search(context.before) is not None


def is_day_and_month(number: str, context: Context) -> bool:
    """True if a number is a date without a year, as the German 3.10. and the English 10/3."""
    written = _DAY_AND_MONTH.fullmatch(number)
    return written is not None and (written[1] == "/" or context.after.startswith("."))


_TWO_GROUPS = re.compile("\\d+[.,\u066b]\\d+")


def is_decimal(number: str, context: Context) -> bool:
    """True if a number has one mark, of decimals or of thousands, and is neither a date without a year nor a time."""
    if not _TWO_GROUPS.fullmatch(number) or is_day_and_month(number, context):
        return False
    signs = (_CLOCK_AFTER, _HOURS_AFTER, _MORNING, _EVENING)
    return not (
        TIME.fullmatch(number)
        and (_CLOCK_BEFORE.search(context.before) or any(sign.match(context.after) for sign in signs))
    )


class Calendar:
    """Dates of a text that are written by other means than their digits."""

    def __init__(self, text: str, other: str = "") -> None:
        """Read a text. Roman numerals that the other text has too are no numbers of it: Charles VI is Carlos VI."""
        self._text, self._other = text, other

    @cached_property
    def months(self) -> frozenset[int]:
        """The months whose names are in the text."""
        return frozenset().union(*self._names)

    @property
    def n_names(self) -> int:
        """The number of places at which the text names a month."""
        return len(self._names)

    @cached_property
    def _names(self) -> list[frozenset[int]]:
        names = _NAME.finditer(self._text)
        return [frozenset({int(name.lastgroup[1:])}) if name.lastgroup else _LISTOPAD for name in names]

    def take(self, number: str, context: Context) -> bool:
        """Take a number that the text has as the name of a month, in Roman numerals, or as a part of a decade.

        Each Roman numeral can be taken once. The 20 of 20世纪90年代 is there if 1990 is.

        Args:
            number: Digits of the number.
            context: The text around it, in the other text.
        """
        if len(number) > 2 or not number.isdecimal():
            return False
        value = int(number)
        if is_month(number, context) and value in self.months:
            return True
        decade = _CENTURY_BEFORE_DECADE.match(context.after)
        if decade is not None and 100 * (value - 1) + int(decade[1]) in self._years:
            return True
        if self._roman[value] < 1:
            return False
        self._roman[value] -= 1
        return True

    @cached_property
    def _years(self) -> frozenset[int]:
        return frozenset(int(year) for year in re.findall(r"(?<!\d)\d{4}(?!\d)", in_ascii(self._text)))

    @cached_property
    def _roman(self) -> Counter[int]:
        return _roman_numerals(self._text) - _roman_numerals(self._other)


def _roman_numerals(text: str) -> Counter[int]:
    """Return the Roman numerals of a text; a single letter counts only beside a century, and as "Ier"."""
    numerals = Counter[int]()
    for match in _ROMAN.finditer(text.translate(_IN_LATIN)):
        if len(match["roman"]) > 1 or match["before"] or match["after"] or match["end"] in ("er", "re"):
            numerals[_ROMAN_VALUES[match["roman"]]] += 1
    return numerals
