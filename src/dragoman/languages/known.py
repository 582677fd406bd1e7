"""All known languages: some have a file of their own, the others a line here.

    from dragoman.languages.known import known
    known("de-AT").name    # "German"

A new language is a line below, or a file like ``de.py`` and its ``LANGUAGE`` in the list. A program that adds one does
so before it asks for any, as answers are cached: the doctor asks once for each line of a corpus.
"""

from __future__ import annotations

import functools

from dragoman.languages import cs, de, en, es, fr, hi, it, ja, km, nl, pl, pt, ru, sv, tr, zh
from dragoman.languages.codes import MOST_TAG, primary
from dragoman.languages.language import Clock, Language, beside_half

_KLOKKEN = r"(?:klokk[ae]n?|kl\.?|til|før|etter|efter) "
_KOR = "H(?:(?<=kor)|(?=-kor))"


def _clock(hours: str, before: str) -> Clock:
    """Return the clock of Danish or Norwegian; ``before`` is their word for *to* in *quarter to four*."""
    times = ((-30, "halv H"), (-15, f"kvart {before} H"), (15, "kvart over H"))
    return Clock(
        signs="halv kvart",
        hours=hours,
        spoken=tuple((minutes, _KLOKKEN + pattern) for minutes, pattern in times),
        perhaps=(*beside_half("halv", before, "over", "minutter", ("fem", "ti")), *times),
    )


_NORWEGIAN = _clock("ett to tre fire fem seks sju|syv åtte ni ti elleve tolv", "på")

LANGUAGES: list[Language] = [
    *(module.LANGUAGE for module in (cs, de, en, es, fr, hi, it, ja, km, nl, pl, pt, ru, sv, tr, zh)),
    Language(code="af", name="Afrikaans", family="dutch", titles="[Mm]nr|[Mm]ev|[Dd]s"),
    Language(
        code="ar",
        name="Arabic",
        scripts=("arabic",),
        letters="\u0600-\u06ff",
        titles=r"(?<!\d )(?:د|أ|م|أ\.\s?د|أ\.م\.د|ا\.د|ص|ج|ش)",
        openers="ثم هو هي هم نحن أنا لكن ولكن وقد هذا هذه",
    ),
    Language(code="as", name="Assamese"),
    Language(code="ast", name="Asturian", family="ibero-romance"),
    Language(code="az", name="Azerbaijani"),
    Language(
        code="be",
        name="Belarusian",
        scripts=("cyrillic",),
        family="east slavic",
        may_end=ru.after_number("гг?|руб"),
    ),
    Language(
        code="bg",
        name="Bulgarian",
        scripts=("cyrillic",),
        family="bulgarian",
        titles="[Дд]-р|[Аа]рх|[Гг]-н|[Гг]-жа",
        continues=ru.is_date,
        may_end=ru.after_number("г|лв|кг"),
        openers="той тя то те това аз ние ти вие после тогава но и а в на там тук",
    ),
    Language(code="bn", name="Bengali", titles="ডা|ড|মো|মোঃ|মি|মিসেস|প্রফ|অধ্যা"),
    Language(code="bs", name="Bosnian", family="serbo-croatian", titles="[Gg]đa|[Ss]v|[Uu]l|[Ii]nž|[Dd]ipl|[Gg]osp"),
    Language(code="ca", name="Catalan", scripts=("latin",), family="ibero-romance", titles="Mn|St"),
    Language(code="cy", name="Welsh", scripts=("latin",)),
    Language(
        code="da",
        name="Danish",
        scripts=("latin",),
        family="scandinavian",
        titles="[Kk]apt|[Cc]and",
        clock=_clock("et to tre fire fem seks syv otte ni ti elleve tolv", "i"),
    ),
    Language(code="el", name="Greek", scripts=("greek",), letters="\u0370-\u03ff", titles="[Κκ]αθ|Αγ|Αφοί"),
    Language(code="eo", name="Esperanto"),
    Language(
        code="et",
        name="Estonian",
        scripts=("latin",),
        clock=Clock(
            signs="pool veerand",
            hours="üks kaks kolm neli viis kuus seitse kaheksa üheksa kümme üksteist kaksteist",
            spoken=((-30, "kell pool H"), (-45, "kell veerand H"), (-15, "kolmveerand H")),
            perhaps=((-30, "pool H"),),
        ),
    ),
    Language(code="eu", name="Basque", scripts=("latin",)),
    Language(code="fa", name="Persian", scripts=("arabic",)),
    Language(
        code="fi",
        name="Finnish",
        scripts=("latin",),
        titles="[Tt]ri|[Hh]ra|[Rr]va",
        clock=Clock(
            signs="puoli vart",
            hours=(
                "yksi|yhde kaksi|kahde kolme neljä viisi|viide kuusi|kuude seitsemä kahdeksa yhdeksä kymmene "
                "yksitoista|yhdeltätoista kaksitoista|kahdeltatoista"
            ),
            ending="(?:n|[aä]n|lt[aä]|ks[iä])?",
            spoken=((-30, "puoli H"), (-15, "varttia vaille H"), (15, "vart(?:in|tia) yli H")),
            perhaps=beside_half("puoli", "vaille", "yli", "minuuttia", ("viittä|viisi", "kymmentä|kymmenen")),
        ),
    ),
    Language(code="fil", name="Filipino"),
    Language(code="ga", name="Irish", scripts=("latin",)),
    Language(code="gl", name="Galician", scripts=("latin",), family="ibero-romance", titles="Dna"),
    Language(code="gu", name="Gujarati"),
    Language(code="he", name="Hebrew", scripts=("hebrew",), letters="\u0590-\u05ff", titles="פרופ|גב|עמ|רח"),
    Language(
        code="hr",
        name="Croatian",
        scripts=("latin",),
        family="serbo-croatian",
        titles="[Gg]đa|[Ss]v|[Uu]l|[Ii]nž|[Dd]ipl|[Gg]osp",
    ),
    Language(
        code="hu",
        name="Hungarian",
        scripts=("latin",),
        titles="[Ii]fj|[Öö]zv|[Ss]zt",
        clock=Clock(
            signs="fél negyed",
            hours="egy kettő három négy öt hat hét nyolc kilenc tíz tizenegy tizenkettő",
            ending="(?:kor|[rt][ae]|ig|t[óő]l)?",
            spoken=((-30, f"fél {_KOR}"), (-45, f"negyed {_KOR}"), (-15, f"háromnegyed {_KOR}")),
            perhaps=((-30, "fél H"), (-45, "negyed H"), (-15, "háromnegyed H")),  # "fél hét" may be half a week
        ),
    ),
    Language(code="hy", name="Armenian", letters="\u0530-\u058f"),
    Language(code="id", name="Indonesian", scripts=("latin",), family="malay", titles="Ir|Jl|Bpk|Sdri?|Hjh?|Tn|Ny"),
    Language(
        code="is",
        name="Icelandic",
        scripts=("latin",),
        clock=Clock(
            signs="hálf",
            hours="eitt tvö þrjú fjögur fimm sex sjö átta níu tíu ellefu tólf",
            spoken=((-30, "klukkan hálf H"),),
            perhaps=((-30, "hálf H"),),
        ),
    ),
    Language(code="ka", name="Georgian", letters="\u10a0-\u10ff"),
    Language(code="kk", name="Kazakh", scripts=("cyrillic",)),
    Language(code="kn", name="Kannada"),
    Language(
        code="ko",
        name="Korean",
        scripts=("hangul",),
        letters="\uac00-\ud7af",
        clock=Clock(
            signs="반",
            hours="한 두 세 네 다섯 여섯 일곱 여덟 아홉 열 열한 열두",
            spoken=((30, r"H ?시 ?반\w{0,3}"),),
        ),
    ),
    Language(code="ky", name="Kyrgyz", scripts=("cyrillic",)),
    Language(code="la", name="Latin", scripts=("latin",)),
    Language(code="lo", name="Lao", spaces=False),
    Language(code="lt", name="Lithuanian", scripts=("latin",), titles="[Dd]oc|[Šš]v"),
    Language(code="lv", name="Latvian", scripts=("latin",)),
    Language(code="mk", name="Macedonian", scripts=("cyrillic",), family="bulgarian"),
    Language(code="ml", name="Malayalam"),
    Language(code="mn", name="Mongolian", scripts=("cyrillic",)),
    Language(code="mr", name="Marathi", scripts=("devanagari",), continues=hi.is_title),
    Language(code="ms", name="Malay", scripts=("latin",), family="malay", titles="Ir|Jl|Bpk|Sdri?|Hjh?|Tn|Ny"),
    Language(code="mt", name="Maltese", scripts=("latin",)),
    Language(code="my", name="Burmese", spaces=False),
    *(
        Language(code=code, name=name, scripts=("latin",), family="scandinavian", titles="[Kk]apt", clock=_NORWEGIAN)
        for code, name in (("nb", "Norwegian Bokmål"), ("nn", "Norwegian Nynorsk"), ("no", "Norwegian"))
    ),
    Language(code="ne", name="Nepali", scripts=("devanagari",), continues=hi.is_title),
    Language(code="or", name="Odia"),
    Language(code="pa", name="Punjabi"),
    Language(code="ps", name="Pashto", scripts=("arabic",)),
    Language(code="ro", name="Romanian", scripts=("latin",), titles="[Dd]l|[Dd]na|[Ss]tr|[Ss]f|[Aa]v"),
    Language(code="sa", name="Sanskrit", scripts=("devanagari",)),
    Language(
        code="sk",
        name="Slovak",
        scripts=("latin",),
        family="czecho-slovak",
        clock=Clock(
            signs="pol štvr",
            hours=(
                "jedn druh|dve tret|tri štvrt|štyri piat|päť šiest|šesť siedm|sedem ôsm|osem deviat|deväť desiat|desať "
                "jedenást|jedenásť dvanást|dvanásť"
            ),
            ending="(?:ej|u)?",
            spoken=((-30, "ob? pol H"), (-45, "štvrť na H"), (-15, "tri ?štvrte na H")),
        ),
    ),
    Language(
        code="sl",
        name="Slovenian",
        scripts=("latin",),
        titles="[Ss]v|[Uu]l|[Mm]ag|[Ii]nž",
        clock=Clock(
            signs="pol",
            hours="en|ena dv|dve tr|tri štir|štiri pet šest sed|sedem os|osem devet deset enajst dvanajst",
            ending="(?:eh|ih|mih)?",
            spoken=((-30, "ob pol H"),),
            perhaps=((-30, "pol H"),),
        ),
    ),
    Language(code="sq", name="Albanian", scripts=("latin",)),
    Language(
        code="sr",
        name="Serbian",
        family="serbo-croatian",
        dialects=("sh", "me"),
        titles="[Дд]р|[Пп]роф|[Гг]ђа|[Сс]в|[Уу]л|[Мм]р|[Ии]нж|[Dd]r|[Pp]rof|[Gg]đa|[Ss]v|[Uu]l|[Ii]nž",
    ),
    Language(code="sw", name="Swahili"),
    Language(code="ta", name="Tamil"),
    Language(code="te", name="Telugu"),
    Language(
        code="th",
        name="Thai",
        scripts=("thai",),
        spaces=False,
        letters="\u0e00-\u0e7f",
        clock=Clock(signs="ครึ่ง", spoken=((30 + 6 * 60, "H ?ทุ่มครึ่ง"), (30, "H ?โมงครึ่ง"))),
    ),
    Language(code="ug", name="Uyghur", scripts=("arabic",)),
    Language(
        code="uk",
        name="Ukrainian",
        scripts=("cyrillic",),
        family="east slavic",
        titles="[Рр]ис|смт|просп|бул|тов|[Гг]ен|[Іі]нж|[Рр]ед|оз",
        continues=ru.is_date,
        may_end=ru.after_number("рр?|грн|коп|тис|кг|хв"),
        openers="він вона воно вони це я ми ти ви потім тоді але і й а в у на за там тут так як коли якщо все його її",
        clock=Clock(
            signs="пів чверть",
            hours=(
                "перш друг трет четверт п'ят|п’ят|пʼят шост сьом восьм дев'ят|дев’ят|девʼят десят одинадцят дванадцят"
            ),
            ending="(?:[уюая]|ої|ьої|ій)?",
            spoken=((-30, "пів на H"), (-45, "чверть на H"), (-15, "за чверть H"), (15, "чверть по H")),
        ),
    ),
    Language(code="ur", name="Urdu", scripts=("arabic",)),
    Language(code="uz", name="Uzbek"),
    Language(code="vi", name="Vietnamese", scripts=("latin",), titles="P?GS|[Tt]hS|TS|TP"),
    Language(code="yi", name="Yiddish"),
]


def known(lang: str | None) -> Language:
    """Return the facts about the language of a code such as ``de-AT``; of an unknown language only its code."""
    if lang is not None and len(lang) > MOST_TAG:
        return Language(code=primary(lang), name=lang)
    return _known(lang)


@functools.lru_cache(maxsize=1024)
def _known(lang: str | None) -> Language:
    code = primary(lang)
    for language in LANGUAGES:
        if code == language.code or code in language.dialects:
            return language
    return Language(code=code, name=lang or "")


def is_known(lang: str) -> bool:
    """True if ``LANGUAGES`` has the language of a code such as ``en``, ``deu`` or ``zh-CN``."""
    return known(lang) in LANGUAGES


def is_unspaced(lang: str | None) -> bool:
    """True if the language is written without spaces between words."""
    return not known(lang).spaces


def unspaced_codes() -> list[str]:
    """Return the codes of all languages that are written without spaces between words."""
    return [code for language in LANGUAGES if not language.spaces for code in (language.code, *language.dialects)]
