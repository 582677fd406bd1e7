"""Numbers whose value changed although their digits are there, and numbers that are right in another form."""

from __future__ import annotations

import pytest

from dragoman.translation.keeping.protected import Sides, find, missing, unmatched
from dragoman.translation.keeping.written_numbers import End, ends_of


def lost(src: str, translation: str, lang: str | None = "de", src_lang: str | None = None) -> list[str]:
    return [span.text for span in missing(find(src), translation, src, lang, src_lang)]


def wrong(src: str, translation: str, langs: tuple[str | None, str | None] = ("en", "de")) -> list[str]:
    return [span.text for span in unmatched(Sides(src, translation, *langs))]


RANGES = [
    ("5-10%", "5 bis 10 %", "de"), ("5-10%", "5 à 10 %", "fr"), ("5-10%", "5%至10%", "zh"),
    ("5-10%", "от 5 до 10 %", "ru"), ("5-10 %", "5～10％", "ja"), ("5%-10%", "5-10 %", "de"),
    ("5 bis 10 %", "5-10%", "en"), ("5–10‰", "5 bis 10 ‰", "de"), ("30--40%", "30-40%", "zh"),
    ("$5-10 million", "5 bis 10 Millionen Dollar", "de"), ("5 bis 10 Millionen Dollar", "$5-10 million", "en"),
    ("$10-20", "10 à 20 dollars", "fr"), ("10 à 20 dollars", "$10-20", "en"), ("€2.50-3.50", "2,50 bis 3,50 €", "de"),
    ("5-10kg", "5 bis 10 kg", "de"), ("5 bis 10 kg", "5-10kg", "en"), ("10-15°C", "10 bis 15 Grad", "de"),
    ("-5-10°C", "-5 bis 10 °C", "de"), ("5-10 m²", "5 bis 10 Quadratmeter", "de"),
    ("9:00–17:30", "von 9 bis 17.30 Uhr", "de"), ("von 9 bis 17.30 Uhr", "9:00–17:30", "en"),
    ("9am-5pm", "9-17 Uhr", "de"), ("9-17 Uhr", "9am-5pm", "en"),
    ("1939–45", "1939 bis 1945", "de"), ("1939 bis 1945", "1939–45", "en"), ("1939 bis 45", "1939–45", "en"),
    ("1939–45", "1939 bis 45", "de"), ("3-4 dogs", "drei bis vier Hunde", "de"), ("1-2%", "ein bis zwei Prozent", "de"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "translation", "lang"), RANGES)
def test_a_range_may_be_two_numbers(src: str, translation: str, lang: str) -> None:
    assert lost(src, translation, lang) == []
    assert wrong(src, translation, ("de" if lang == "en" else "en", lang)) == []


@pytest.mark.parametrize(
    ("src", "translation", "expected", "more"),
    [
        ("5-10%", "5 bis 11 %", ["5-10%"], ["5", "11 %"]), ("5-10%", "5 bis 10", ["5-10%"], ["5", "10"]),
        ("5-10%", "10 bis 15 %", ["5-10%"], ["10", "15 %"]), ("$5-10", "5 bis 10 €", ["$5-10"], None),
        ("1939–45", "1939 bis 1946", ["1939–45"], ["1939", "1946"]),
        ("9am-5pm", "9-18 Uhr", ["5"], None), ("-5-10°C", "5 bis 10 °C", ["-5-10°C"], None),
        ("5-10% and 10%", "5 bis 10 %", ["5-10%"], None), ("5 bis 10 %", "5-12%", ["10 %"], None),
    ],
)  # fmt: skip
def test_a_range_with_another_end_is_missing(
    src: str, translation: str, expected: list[str], more: list[str] | None
) -> None:
    assert lost(src, translation) == expected
    assert more is None or wrong(src, translation) == more


def test_both_ends_of_a_range_have_its_symbol_and_the_first_its_sign() -> None:
    assert ends_of("-$5-10") == (End("-$5", "-$5"), End("$10", "10"))
    assert ends_of("5-10 kg") == (End("5 kg", "5"), End("10 kg", "10 kg"))
    assert ends_of("1939–45") == (End("1939", "1939"), End("1945", "45"))
    assert ends_of("2024-05") == (End("2024", "2024"), End("05", "05"))
    assert ends_of("2024-05-01") == ends_of("10-5e3") == ends_of("-5") == ends_of("5") == ()


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("50 m²", "50 Quadratmeter", "de"), ("50 m²", "50 mètres carrés", "fr"), ("50 m²", "50平方米", "zh"),
        ("50m²", "50 m kw.", "pl"), ("50m²", "50 m carrés", "fr"),
        ("50 m²", "50 m2", "de"), ("50 m²", "50m²", "de"), ("50m²", "50 m²", "de"),
        ("50 m²", "fünfzig Quadratmeter", "de"),
        ("100 km²", "100 square kilometres", "en"), ("5\u00a0m³", "5 Kubikmeter", "de"),
        ("50 Quadratmeter", "50 m²", "en"), ("9.8 m/s²", "9,8 m/s²", "de"),
        ("$5K", "5.000 $", "de"), ("$300K", "300.000 Dollar", "de"), ("10K steps", "10.000 Schritte", "de"),
        ("5.000 $", "$5K", "en"), ("10.000 Schritte", "10K steps", "en"), ("5K steps", "fünftausend Schritte", "de"),
        ("$1.5K", "1.500 $", "de"), ("$5-10K", "5.000 bis 10.000 $", "de"), ("$5K", "5 Tsd. Dollar", "de"),
        ("at 300K", "bei 300 Kelvin", "de"), ("at 300 K", "bei 300K", "de"), ("4K video", "4K-Video", "de"),
    ],
)  # fmt: skip
def test_a_unit_with_an_exponent_and_a_capital_k_may_be_written_out(src: str, translation: str, lang: str) -> None:
    assert lost(src, translation, lang) == []
    assert wrong(src, translation, ("de" if lang == "en" else "en", lang)) == []


def test_a_number_without_its_unit_or_thousand_is_missing() -> None:
    assert lost("It has 50 m².", "Es hat 40 Quadratmeter.") == ["50 m²"]
    assert lost("It has 50 m².", "(50)") == ["50 m²"]
    assert lost("It has 50 m².", "Es hat 50 m.") == ["50 m²"]
    assert lost("It has 50m².", "Es hat 50 km lang.") == ["50m²"]
    assert lost("$5K", "500 $") == ["$5K"]
    assert lost("10K steps", "100.000 Schritte") == ["10K"]
    assert [span.text for span in find("50 m² and a km² of 5 m")] == ["50 m²", "km²", "5"]


@pytest.mark.parametrize(
    ("src", "translation", "lang", "expected"),
    [
        ("20 million dollars", "20 Milliarden Dollar", "de", ["20"]), ("3 billion", "3 Millionen", "de", ["3"]),
        ("20 Milliarden Dollar", "20 million dollars", "en", ["20"]), ("3亿元", "3 million yuan", "en", ["3"]),
        ("5 thousand", "5 Millionen", "de", ["5"]), ("1.5 million", "1,5 Milliarden", "de", ["1.5"]),
        ("$5 million", "5 Milliarden Dollar", "de", ["$5"]), ("5K steps", "5 Millionen Schritte", "de", ["5K"]),
        ("3 million and 3", "3 Milliarden und 3", "de", ["3"]),
        ("20 million people, 20 dogs", "20.000.000 Menschen, 20 Hunde", "de", []),
        ("20 dogs, 20 million people", "20.000.000 Menschen, 20 Hunde", "de", []),
        ("20.000.000 Menschen, 20 Hunde", "20 million people, 20 dogs", "en", []),
        ("20 dogs, 20 people", "20 Hunde, 20 Millionen Menschen", "de", []),
        ("3亿元", "300 million yuan", "en", []), ("20 billion", "20 Milliarden", "de", []),
        ("1 billion", "1 Billion", "de", []), ("20 mil millones", "20 billion", "en", []),
        ("$5 million", "5 mil. dolarů", "cs", []), ("5 mil. Kč", "5 million crowns", "en", []),
        ("20 million to 30 million", "20 bis 30 Millionen", "de", []), ("5千克", "5 kg", "en", []),
        ("5 mille milliards", "5 trillion", "en", []),
        ("5 million or 3 billion", "3 Milliarden oder 5 Millionen", "de", []),
        ("20万人", "two hundred thousand people", "en", []), ("5 million euros", "5M €", "de", []),
        ("5 million to 10 million", "5 bis 10 Mio.", "de", []), ("500兆瓦", "500 MW", "en", []),
        ("3千米", "3 km", "en", []), ("5 million", "5 მილიონი", "ka", []), ("5 million", "fünf Millionen", "de", []),
        ("10万-20万", "100,000-200,000", "en", []), ("10万到20万", "100 to 200 thousand", "en", []),
        ("10 to 20 million", "10.000.000 bis 20.000.000", "de", []), ("5 or 6 thousand", "5000或6000", "zh", []),
        ("2, 3 or 4 million", "200万、300万或400万", "zh", []), ("2-3万", "20 to 30 thousand", "en", []),
        ("10 to 20 million", "10.000 bis 20.000.000", "de", ["10"]),
    ],
)  # fmt: skip
def test_the_same_digits_with_another_power_of_ten_are_another_number(
    src: str, translation: str, lang: str, expected: list[str]
) -> None:
    assert lost(src, translation, lang) == expected


@pytest.mark.parametrize(
    ("src", "translation", "lang", "is_right"),
    [
        ("2024-03-05", "5. April 2024", "de", False), ("03/05/2024", "5. Juni 2024", "de", False),
        ("5.3.2024", "April 5, 2024", "en", False), ("2024-03-05", "3. Mai 2024", "de", False),
        ("2024-03-05", "5. März 2024", "de", True), ("03/05/2024", "5. März 2024", "de", True),
        ("03/05/2024", "3. Mai 2024", "de", True), ("5.3.2024", "March 5, 2024", "en", True),
        ("2024-03-05", "5 Mar 2024", "en", True), ("2024-03-05", "Martxoaren 5, 2024", "eu", True),
        ("2024-03-05 to 2024-05-06", "Mar 5, 2024 to May 6, 2024", "en", True),
        ("2024-10-05", "5 Dit 2024; May it be", None, False),
        ("2024-03-05 and 2024-04-06", "X 5 2024, 6 April 2024", None, True),
        ("2024-11-05", "5. listopadu 2024", "cs", True), ("2024-10-05", "5. listopada 2024", "hr", True),
    ],
)  # fmt: skip
def test_the_month_of_a_whole_date_is_the_one_that_is_named(
    src: str, translation: str, lang: str | None, is_right: bool
) -> None:
    assert (lost(src, translation, lang) == []) == is_right


@pytest.mark.parametrize(
    ("src", "translation", "lang", "expected"),
    [
        ("Take 0.05 mg.", "Nimm 0,5 mg.", "de", ["0.05"]), ("1.5 l", "1,05 l", "de", ["1.5"]),
        ("10.5 km", "5,10 km", "de", ["10.5"]), ("version 2.05", "Version 2.5", "de", ["2.05"]),
        ("1.05 million", "1,5 Millionen", "de", ["1.05"]), ("5.05 and 5.05", "5,5 und 5,5", "de", ["5.05", "5.05"]),
        ("1.50 l", "1,5 l", "de", []), ("version 2.5", "Version 2.5", "de", []),
        ("2.5 l", "zwei Komma fünf Liter", "de", []),
        ("2.5 l", "2 Komma 5 Liter", "de", []), ("2.5 l", "2 Komma fünf Liter", "de", []),
        ("9:05", "9 Uhr 5", "de", []), ("um 9.05 Uhr", "at 9:05", "en", []), ("am 03.10.", "on 10/3", "en", []),
        ("am 3.10. und 4.11.", "10/3 and 11/4", "en", []), ("05.01.2024", "5.1.2024", "de", []),
        ("am 05.03.", "5.3.", "cs", []), ("am 3.10 kommen", "come on 10/3", "en", []),
    ],
)  # fmt: skip
def test_the_parts_of_a_decimal_are_not_those_of_another_decimal(
    src: str, translation: str, lang: str, expected: list[str]
) -> None:
    assert lost(src, translation, lang) == expected


@pytest.mark.parametrize(
    ("src", "translation", "expected"),
    [
        ("Room 1 is a big room", "Zimmer 7 ist ein großes Zimmer", ["1"]),
        ("Press 1 for a taxi", "Drücken Sie 4 für ein Taxi", ["1"]),
        ("1 dog in room 1", "Ein Hund in Zimmer 7", ["1"]),
        ("Room 1 is a big room", "Zimmer 1 ist ein großes Zimmer", []), ("1 dog", "Ein Hund", []),
        ("1 dog and three cats", "Ein Hund und 3 Katzen", []), ("1 dog and a dozen eggs", "Ein Hund und 12 Eier", []),
        ("1 dog on 2024-03-05", "Ein Hund am 5. März 2024", []), ("1 mile", "eine Meile (1,6 km)", []),
        ("1 dog and a pair of shoes", "Ein Hund und 2 Schuhe", []), ("1 dog in March 2024", "ein Hund 3/2024", []),
    ],
)  # fmt: skip
def test_an_article_is_no_one_where_another_number_is_in_its_place(
    src: str, translation: str, expected: list[str]
) -> None:
    assert lost(src, translation, "de", "en") == expected


def test_where_the_words_of_the_source_are_unknown_a_number_may_be_one_of_them() -> None:
    assert lost("Hét kutya és 1 macska", "7 Hunde und eine Katze") == []
    assert lost("Hét kutya és 1 macska", "7 Hunde und eine Katze", "de", "hu") == []


@pytest.mark.parametrize(
    ("src", "translation", "lang", "expected"),
    [
        ("1. A dog runs.", "11. Ein Hund läuft.", "de", ["1"]),
        ("2. Two dogs run.", "3. Zwei Hunde laufen.", "de", ["2"]),
        ("1) A dog runs.", "Ein Hund läuft.", "de", ["1"]), ("1) A dog runs.", "2) Ein Hund läuft.", "de", ["1"]),
        ("1. A dog runs.", "1. Ein Hund läuft.", "de", []), ("1) A dog runs.", "1. Ein Hund läuft.", "de", []),
        ("1) A dog runs.", "一、一只狗在跑。", "zh", []), ("1. Mai ist Feiertag", "May first is a holiday", "en", []),
        ("1. Mai 2024", "2024. május 1.", "hu", []), ("2. Weltkrieg", "Second World War", "en", []),
    ],
)  # fmt: skip
def test_the_mark_of_a_list_is_no_word(src: str, translation: str, lang: str, expected: list[str]) -> None:
    assert lost(src, translation, lang) == expected


@pytest.mark.parametrize(
    ("src", "translation", "expected"),
    [
        ("5km", "5 m", ["5km"]), ("5kg", "5 Meter", ["5kg"]), ("5°C", "5 °F", ["5°C"]), ("5 mg", "5 g", ["5"]),
        ("20 °C", "20 ℉", ["20 °C"]), ("It is 5 km.", "Es sind 5 cm.", ["5"]), ("5 kilometres", "5 Meter", ["5"]),
        ("5km", "5 Kilometer", []), ("5 km", "5km", []), ("5 °C", "5 Grad", []), ("5℃", "5 °C", []),
        ("5 mg", "5 Milligramm", []),
        ("5 km and 3 m", "3 m und 5 km", []), ("5 kg", "5 кг", []), ("5km", "5 Km", []),
        ("100m sprint", "100-Meter-Lauf", []),
        ("5 m/s", "5 Meter pro Sekunde", []), ("5 g", "5 gr", []), ("£5m", "5 Mio. Pfund", []),
        ("5 m high", "5 Meter hoch", []),
    ],
)  # fmt: skip
def test_the_same_digits_with_another_known_unit_are_another_number(
    src: str, translation: str, expected: list[str]
) -> None:
    assert lost(src, translation) == expected


def test_a_placeholder_of_xcode_is_one_span() -> None:
    texts = ("%#@elements@ in the list", "%1$#@n_files@", "%#@_x@ here")
    assert [[span.text for span in find(text)] for text in texts] == [["%#@elements@"], ["%1$#@n_files@"], ["%#@_x@"]]
    assert lost("%#@elements@ in the list", "Elemente in der Liste") == ["%#@elements@"]


@pytest.mark.parametrize(
    "text",
    ["Open http://localhost:8080/50 with 50 users.", "Use `50` for 50 days", "{50} 50", "a@50.de 50", "`50` `50` 50"],
)
def test_numbers_inside_what_is_copied_take_nothing_from_those_of_the_text(text: str) -> None:
    assert unmatched(Sides(text, text, "en", "de")) == []
    changed = text[::-1].replace("05", "99", 1)[::-1]
    wrong = [span.text for span in unmatched(Sides(text, changed, "en", "de"))]
    assert wrong == ["99"]


CHAINS = [
    ("売上は1億2000万円です。", "Sales were 120 million yen.", "ja", "en"), ("2만 5천 원", "25,000 won", "ko", "en"),
    ("3亿5000万", "350 million", "zh", "en"), ("1 करोड़ 20 लाख", "12 million", "hi", "en"),
    ("1 млн 200 тыс. человек", "1.2 million people", "ru", "en"), ("120 million", "1億2000万", "en", "ja"),
    ("１億２０００万円", "120 million yen", "ja", "en"), ("1万5000円", "15,000 yen", "ja", "en"),
    ("2만 5,000원", "25,000 won", "ko", "en"), ("2천5백만 명", "25 million people", "ko", "en"),
    ("2 mil 500 millones de pesos", "2.5 billion pesos", "es", "en"), ("2 bin 500 kişi", "2,500 people", "tr", "en"),
    ("1 ล้าน 2 แสนบาท", "1.2 million baht", "th", "en"), ("2 triệu 500 nghìn", "2.5 million", "vi", "en"),
    ("2万5千円", "fünfundzwanzigtausend Yen", "ja", "de"), ("一億二千万円", "1亿2000万日元", "ja", "zh"),
    ("1万2000km", "12.000 km", "ja", "de"), ("$1 million 200 thousand", "1,2 Millionen Dollar", "en", "de"),
    ("1 млн 200 тыс.", "1 million and 200 thousand", "ru", "en"),
    ("1 million and 200 thousand", "1 млн 200 тыс.", "en", "ru"),
    ("Es waren 5 Millionen 2019.", "There were 5 million in 2019.", "de", "en"),
    ("2 mil 500 personas", "2,500 people", "es", "en"), ("打率は3割5分だった", "35%", "ja", "en"),
    ("3割5分", "fünfunddreißig Prozent", "ja", "de"), ("35 percent", "3割5分", "en", "ja"),
    ("thirty-five percent", "3割5分", "en", "ja"), ("3割2分1厘", "32.1%", "ja", "en"),
    ("Of the 10 thousand 500 died.", "Von den zehntausend starben fünfhundert.", "en", "de"),
    ("He ran 10k 500 times.", "Er lief 10k fünfhundert Mal.", "en", "de"), ("4k 100 mbit", "4k 100 Mbit", "en", "de"),
    ("5 Tsd. 300 in Berlin", "5 thousand, three hundred in Berlin", "de", "en"),
    ("5割の人が賛成した。", "Half of the people agreed.", "ja", "en"), ("5割の人", "die Hälfte der Leute", "ja", "de"),
    ("Half of the people agreed.", "5割の人が賛成した。", "en", "ja"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "translation", "src_lang", "tgt_lang"), CHAINS)
def test_numbers_with_several_words_for_powers_of_ten_are_one_number(
    src: str, translation: str, src_lang: str, tgt_lang: str
) -> None:
    assert lost(src, translation, tgt_lang, src_lang) == []
    assert wrong(src, translation, (src_lang, tgt_lang)) == []


@pytest.mark.parametrize(
    ("src", "translation", "lang", "expected"),
    [
        ("1億2000万", "100 million", "en", ["1億2000万"]), ("100 million", "1億2000万", "ja", ["100"]),
        ("1億2000万", "120 thousand", "en", ["1億2000万"]), ("2만 5천", "25 million", "en", ["2만 5천"]),
        ("1億2000万", "1亿2500万", "zh", ["1億2000万"]), ("3割5分", "30%", "en", ["3割5分"]),
        ("3割5分", "3 to 5 percent", "en", ["3割5分"]), ("36%", "3割5分", "ja", ["36%"]), ("6割", "half", "en", ["6"]),
    ],
)  # fmt: skip
def test_a_part_of_such_a_number_is_another_number(src: str, translation: str, lang: str, expected: list[str]) -> None:
    assert lost(src, translation, lang) == expected


def test_rows_and_ranges_of_numbers_stay_several_numbers() -> None:
    texts = ["5万 30000", "10万20万", "1億2000万3億", "5 тыс. 20 июня", "3万人2千", "10万-20万", "5 Millionen 2019",
             "10 thousand 500", "10k 500 times", "4k 100 mbit", "5 тыс. 300 домов"]  # fmt: skip
    assert [[span.text for span in find(text)] for text in texts] == [
        ["5", "30000"], ["10", "20"], ["1億2000万", "3"], ["5", "20"], ["3", "2"], ["10", "20"], ["5", "2019"],
        ["10", "500"], ["10", "500"], ["4", "100"], ["5", "300"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("1.5 million", "15 Millionen", "de"), ("15 Millionen", "1.5 million", "en"),
        ("3.2亿元", "3.2 billion yuan", "en"), ("2.5 billion", "250亿", "zh"), ("2.5万", "250,000", "en"),
        ("$1.5K", "15.000 $", "de"), ("0.5 million", "5,000,000", "en"), ("1.25 million", "125 Millionen", "de"),
        ("1,000,000", "1 thousand", "en"), ("1,234.567 million", "1234567 Millionen", "de"),
    ],
)  # fmt: skip
def test_a_mark_is_one_of_thousands_only_before_three_digits(src: str, translation: str, lang: str) -> None:
    assert len(lost(src, translation, lang)) == 1


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("1,500 thousand", "1,5 Millionen", "de"), ("1.500.000", "1.5 million", "en"), ("2.5 billion", "25亿", "zh"),
        ("12,34,567", "1,234,567", "en"), ("1.234 million", "1,234,000", "en"), ("1,2345", "12,345", "en"),
    ],
)  # fmt: skip
def test_a_mark_before_three_digits_may_be_one_of_thousands_or_of_decimals(
    src: str, translation: str, lang: str
) -> None:
    assert lost(src, translation, lang) == []


@pytest.mark.parametrize(
    ("src", "translation", "lang", "is_right"),
    [
        ("約7割の人が賛成した。", "About 70 percent of people agreed.", "en", True), ("7割", "70%", "zh", True),
        ("7割", "seven tenths", "en", True), ("7割", "siebzig Prozent", "de", True), ("7成", "70 %", "de", True),
        ("70%", "7割", "ja", True), ("70 percent", "7割", "ja", True), ("7.5割", "75 %", "de", True),
        ("8折", "20% off", "en", True), ("8折", "80 % des Preises", "de", True), ("8.5折", "15 % Rabatt", "de", True),
        ("85折", "15 % Rabatt", "de", True), ("20% off", "8折", "zh", True),
        ("約7割", "60 percent", "en", False), ("7%", "7割", "ja", False), ("70%", "8割", "ja", False),
        ("30% off", "8折", "zh", False), ("8折", "30% off", "en", False),
    ],
)  # fmt: skip
def test_tenths_and_prices_in_tenths_are_percentages(src: str, translation: str, lang: str, is_right: bool) -> None:
    assert (lost(src, translation, lang) == []) == is_right
