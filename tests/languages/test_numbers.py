"""Numbers written out are found in the text, as often as they stand there, and no other numbers."""

from __future__ import annotations

import pytest

from dragoman.languages.numbers import Words, has_words


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [
        ("en", 13, "thirteen dogs"),
        ("en", 45, "Forty-five dogs"),
        ("en", 100, "a hundred dogs"),
        ("en", 320, "three hundred and twenty dogs"),
        ("en", 1001, "one thousand and one dogs"),
        ("en", 25_000, "twenty-five thousand dogs"),
        ("de", 31, "einunddreissig Hunde"),
        ("de", 100, "einhundert Hunde"),
        ("de", 120, "hundertzwanzig Hunde"),
        ("de", 1964, "neunzehnhundertvierundsechzig"),
        ("de", 1964, "tausendneunhundertvierundsechzig"),
        ("de", 2000, "zweitausend Hunde"),
        ("de", 10_000, "eine Zehntausendyennote"),
        ("zh", 20, "二十只狗"),
        ("zh", 105, "一百零五只狗"),
        ("zh", 110, "一百一十只狗"),
        ("zh", 2000, "两千多只狗"),
        ("zh-TW", 10_000, "一萬隻狗"),
        ("zh", 250_000, "二十五万只狗"),
        ("zh", 1972, "一九七二年"),
        ("ja", 1972, "千九百七十二年"),
        ("fr", 12, "douze chiens"),
    ],
)
def test_a_number_is_found_once_by_its_words(lang: str, value: int, text: str) -> None:
    words = Words(text, lang)
    assert words.take(value)
    assert not words.take(value)


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [
        ("en", 20, "a hundred and twenty-one"), ("en", 100, "a hundred and twenty-one"), ("de", 20, "dreiundzwanzig"),
        ("de", 100, "hundertzwanzig"), ("zh", 20, "二十三"), ("zh", 30, "一百三十"), ("fr", 30, "trente-deux chiens"),
        ("de", 2_000_000, "zwei Millionen"),
    ],
)  # fmt: skip
def test_another_number_or_one_that_is_not_known_is_not_found(lang: str, value: int, text: str) -> None:
    assert not Words(text, lang).take(value)


def test_only_some_languages_are_known() -> None:
    assert has_words("de-AT")
    assert has_words("cmn_Hans")
    assert not has_words("hu")
    assert not has_words(None)


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [
        ("en", 20, "in the twentieth century"), ("en", 21, "in the twenty-first century"), ("en", 19, "the nineteenth"),
        ("en", 90, "in the nineties"), ("en", 53, "the fifty-third"), ("en", 20, "twenty third-party tools"),
        ("zh", 10_000_000, "一千万人"), ("zh", 100_000_000, "一亿人"), ("zh-TW", 300_000_000, "三億人"),
        ("ja", 8_000_000, "八百万人"), ("zh", 1_200_000_000, "十二亿人"),
    ],
)  # fmt: skip
def test_ordinals_decades_and_the_great_numbers_of_chinese_are_found(lang: str, value: int, text: str) -> None:
    assert Words(text, lang).take(value)


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [("en", 20, "the twenty-first century"), ("en", 21, "the twentieth"), ("zh", 100_000_000, "三亿人"),
     ("ja", 100_000_000, "3億人"), ("ja", 100_000_000, "一億2000万人"),
     ("zh", 10_000_000, "一百万人"), ("zh", 10_000, "一亿人")],
)  # fmt: skip
def test_a_part_of_such_a_number_is_not_found(lang: str, value: int, text: str) -> None:
    assert not Words(text, lang).take(value)


WRITTEN = {
    "fr": "13 treize | 15 une quinzaine | 17 dix-septième | 20 le vingt septembre | 21 vingt-et-une"
    "| 71 soixante et onze | 75 septante-cinq | 80 quatre-vingts | 84 octante-quatre | 90 quatre-vingt-dix"
    "| 95 nonante-cinq | 101 cent un | 300 trois cents | 1000 mille | 1815 mil huit cent quinze"
    "| 1915 dix-neuf cent quinze | 20 entre vingt et trente | 223821 deux cent vingt-trois mille huit cent vingt et un",
    "es": "13 décimo tercero | 15 quince | 16 dieciséis | 20 veinte segundos | 21 veintiún | 21 veintiuna"
    "| 30 trigésimo | 31 treinta y una | 30 entre veinte y treinta | 100 cien | 108 ciento ocho | 200 doscientas"
    "| 500 quinientos | 1001 mil y una | 1999 mil novecientos noventa y nueve | 31000 treinta y un mil"
    "| 25 vigesimoquinto",
    "pt": "13 décimo terceiro | 14 catorze | 14 quatorze | 16 dezasseis | 16 dezesseis | 20 vinte segundos"
    "| 22 vinte e duas | 30 entre vinte e trinta | 20 documentos e vinte pessoas | 100 cem | 121 cento e vinte e um"
    "| 200 duzentas | 1200 mil e duzentos | 1999 mil novecentos e noventa e nove | 1221 mil, duzentos e vinte e um"
    "| 223821 duzentos e vinte e três mil oitocentos e vinte e um",
    "it": "13 tredici | 15 una quindicina | 17 diciassettesimo | 20 vent'anni | 21 ventuno | 23 ventitré | 28 ventotto"
    "| 100 centesimo | 108 centotto | 180 centottanta | 200 duecento | 1001 mille e una | 2022 duemila ventidue"
    "| 3000 tremila | 999999 novecentonovantanovemilanovecentonovantanove",
    "nl": "13 dertiende | 15 vijftienjarige | 21 eenentwintig | 22 tweeëntwintig | 80 tachtigste | 100 honderd"
    "| 101 honderdeerste | 105 honderdenvijf | 201 tweehonderdéén | 1000 duizend eenden | 1100 elfhonderd"
    "| 1964 negentienhonderdvierenzestig | 2050 tweeduizend vijftig | 12500 twaalfduizend vijfhonderd"
    "| 223821 tweehonderddrieëntwintigduizendachthonderdeenentwintig",
    "cs": "13 třináctého | 15 dva patnáctiletí | 20 dvacet stolů | 21 jednadvacet | 25 pětadvacet | 25 dvacet pět"
    "| 25 dvaceti pěti | 25 dvacátého pátého | 50 padesátých | 100 sto | 200 dvě stě | 201 dvěstě jedna | 500 pět set"
    "| 1000 tisíc | 1989 devatenáct set osmdesát devět | 5000 pět tisíc"
    "| 223821 dvě stě dvacet tři tisíce osm set dvacet jedna",
}
PARTS_OF_OTHERS = {
    "fr": "15 quatre-vingt-quinze | 20 cent vingt | 20 vingt et un | 27 le vingt septembre | 60 soixante-dix"
    "| 80 quatre-vingt-dix | 100 deux cents | 100 des centaines | 100 centimètres | 1000 vingt et un mille"
    "| 2000 vingt-deux mille",
    "es": "20 ciento veinte | 20 vigésimo segundo | 30 treinta y uno | 100 ciento uno | 100 veinte por ciento"
    "| 1000 veintidós mil | 2000 treinta y dos mil",
    "pt": "20 cento e vinte | 20 vinte e um | 100 vinte por cento | 200 duzentos e vinte | 609 mil, seiscentos e nove"
    "| 1000 mil e duzentos | 2000 vinte e dois mil",
    "it": "20 ventuno | 20 centoventi | 22 duemila ventidue | 30 Trento | 100 duecento | 1000 duemila",
    "nl": "19 negentienhonderd | 20 eenentwintig | 50 tweeduizend vijftig | 100 honderden | 103 honderddrieëntwintig"
    "| 106 honderdzestig | 2000 tweeduizend vijftig",
    "cs": "18 osmnáct set | 20 dvacet pět | 20 pětadvacet | 20 dvacátého pátého | 25 sto pětadvacet | 100 dvě stě"
    "| 100 stolů | 1000 dvacet jedna tisíc | 2000 dvacet dva tisíce | 8000 osmnáct tisíc",
}


def _rows(table: dict[str, str]) -> list[tuple[str, int, str]]:
    rows = [(lang, *row.split(maxsplit=1)) for lang, rows in table.items() for row in rows.split("|")]
    return [(lang, int(value), text.strip()) for lang, value, text in rows]


@pytest.mark.parametrize(("lang", "value", "text"), _rows(WRITTEN))
def test_a_number_below_a_million_is_found_in_each_way_to_write_it(lang: str, value: int, text: str) -> None:
    words = Words(text, lang)
    assert words.take(value)
    assert not words.take(value)


@pytest.mark.parametrize(("lang", "value", "text"), _rows(PARTS_OF_OTHERS))
def test_a_part_of_a_longer_number_or_of_another_word_is_not_found(lang: str, value: int, text: str) -> None:
    assert not Words(text, lang).take(value)
