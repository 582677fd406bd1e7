"""Russian, and what Russian shares with other languages in Cyrillic letters."""

from __future__ import annotations

import re

from dragoman.languages.language import Clock, Language

_DATE = re.compile(
    r"^\W*(?:(?:в|во|с|со|до|к|ко|по|после|около|на|от|под|лишь|только|уже|ещё|и|а|но|весной|летом|осенью|зимой|"
    r"начале|середине|конце|январ\w|феврал\w|март\w?|апрел\w|ма[йяюе]|июн\w|июл\w|август\w?|сентябр\w|октябр\w|"
    r"ноябр\w|декабр\w|у|від|навесні|влітку|восени|взимку|на|початку|кінці|січн\w|лют\w+|берез\w+|квіт\w+|трав\w+|"
    r"черв\w+|лип\w+|серп\w+|верес\w+|жовт\w+|листопад\w?|груд\w+|през|\d{1,2})\s+)*\d{1,4}"
    r"(?:\s*[–—-]\s*\d{1,4})?\s*(?:гг?|рр?)\.\s+$",
    re.IGNORECASE,
)  # "В мае 1990 г. ": no sentence, as it has no verb


def after_number(units: str) -> str:
    """Return the pattern of units that may end a sentence behind a number, unless initials follow."""
    behind = r"(?<=\d)|(?<=\d\s)|(?<=тыс\.\s)|(?<=млн\s)|(?<=млрд\s)|(?<=млн\.\s)|(?<=млрд\.\s)"
    # a number of six digits is a postal code: 119991 г. Москва
    return rf"(?:{behind})(?<!\d{{6}})(?<!\d{{6}}\s)(?:{units})(?!\.\s+\w\.)"


def is_date(tail: str, piece: str) -> bool:
    """True if the sentence so far is only a date, such as ``В 1990 г. ``."""
    return _DATE.search(tail) is not None


_AMBIGUOUS = re.compile(r"(?:^|[\s(])(?:им|[Гг]ен)\.\s+$")  # "named after" and "general", but "them" and "gene" too
_WITH_NAME = re.compile(
    r"\b(?:завод|фабри|школ|университ|инстит|академи|театр|музе|парк|площад|улиц|проспект|больниц|библиотек|стадион|колхоз|"
    r"совхоз|консерват|училищ|лице|гимнази|центр|преми|комбинат|аэропорт|[А-ЯЁ]{2})\w*\s+им\.\s+$"
)
_SURNAME = re.compile(
    r"[А-ЯЁ]\.|[А-ЯЁ][а-яё-]{0,40}(?:[оеё]в|[иы]н|ск|цк|ьк|енк)(?:а|у|е|о|ом|ым|им|ой|ий|ого|ому)?(?:\W|$)"
)


def is_before_name(tail: str, piece: str) -> bool:
    """True if the sentence so far is only a date, or ends in ``им.`` or ``ген.`` before what looks like a name."""
    if is_date(tail, piece):
        return True
    if _AMBIGUOUS.search(tail) is None:
        return False
    return _WITH_NAME.search(tail) is not None or _SURNAME.match(piece) is not None


_AT = "(?:в|до|после|около|к) "
_NO_NOUN = r"(?! [а-яё]+(?:[аяыи]|го)\b)"

LANGUAGE = Language(
    code="ru",
    name="Russian",
    scripts=("cyrillic",),
    family="east slavic",
    letters="\u0400-\u04ff",
    may_end=after_number("гг?|руб|коп|тыс|кг|см|м|мин|сек|долл"),
    titles=(
        "[Пп]ос|[Оо]з|[Нн]аб|[Бб]ул|[Мм]кр|[Сс]в|[Дд]оц|[Ии]нж|[Лл]ейт|[Аа]дм|[Чч]л|[Зз]ам|[Зз]ав|[Рр]есп|"
        "[Рр]ед|[Ии]зд|[Дд]-р|[Кк]н|[Аа]рхим|[Мм]итр|[Ее]п|"
        # behind the name these may end a sentence: Ростовская обл.
        r"(?<![йюя] )(?:[Оо]бл|[Рр]-н)"
    ),
    openers=(
        "он она оно они это я мы ты вы потом затем тогда но и а в на с у по за там тут здесь так как когда если все "
        "всё его её их мой моя наш сейчас теперь поэтому однако"
    ),
    continues=is_before_name,
    clock=Clock(
        signs="пол четверт",
        hours=(
            "перв|час втор|два трет|три четверт|четвёрт|четыре пят шест седьм|семь восьм|восемь девят десят одиннадцат "
            "двенадцат"
        ),
        ending="(?:ь?его|ого|ь)?",
        # "половине 5 века" is half a century, "половине второго тайма" a part of a match, "полчаса" a length of time
        spoken=(
            (-30, rf"{_AT}половин[аеуы] H(?:(?<=го)|(?<=\d)){_NO_NOUN}"),
            (-30, f"{_AT}пол[ -]?H(?<=го){_NO_NOUN}"),
            (-45, f"{_AT}четверть H(?<=го){_NO_NOUN}"),
            (-15, "без четверти H"),
        ),
        perhaps=(
            (-30, r"(?<![оуа][йюя] )половин[аеуы] H(?:(?<=го)|(?<=\d))"),
            (-30, "пол[ -]?H(?<=го)"),
            (-45, "четверть H(?<=го)"),
        ),
    ),
)
