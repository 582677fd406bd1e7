"""Dates, centuries, decades, hours and powers of ten as each language writes them, and what is none of these."""

from __future__ import annotations

import pytest

from dragoman.translation.keeping.protected import Sides, find, is_reckoned, missing, unmatched
from dragoman.translation.keeping.same_numbers import powers_of


def lost(src: str, translation: str, lang: str | None = "en") -> list[str]:
    return [span.text for span in missing(find(src), translation, src, lang)]


def wrong(src: str, translation: str, langs: tuple[str | None, str | None]) -> list[str]:
    return [span.text for span in unmatched(Sides(src, translation, *langs))]


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("他生于1990年5月1日。", "He was born on May 1, 1990.", "en"),
        ("他生于1990年5月5日。", "He was born on 5 May 1990.", "en"),
        ("他於１９９０年１２月３１日出生", "Er wurde am 31. Dezember 1990 geboren.", "de"),
        ("1990年3月2日から4月2日まで", "du 2 mars au 2 avril 1990", "fr"),
        ("5월 1일에 만나요.", "Nos vemos el 1 de mayo.", "es"),
        ("9月3日", "3 září", "cs"),
        ("10月2日", "2. listopada", "cs"), ("11月2日", "2. listopadu", "cs"),
        ("8月1日", "il 1º agosto", "it"), ("10月2日", "2 de outubro", "pt"),
        ("5月1日至9日", "op 1 tot 9 mei", "nl"),
        ("ngày 1 tháng 5 năm 1990", "May 1, 1990", "en"),
        ("Wir kommen am 3.10. an.", "We arrive on October 3.", "en"), ("am 3.10.", "3 octobre", "fr"),
        ("am 3.10. und 4.11.", "október 3-án és november 4-én", "hu"), ("on 10/3", "am 3. Oktober", "de"),
        ("dne 3. 10. 2024", "on October 3, 2024", "en"),
        ("20世纪90年代", "the 1990s", "en"), ("20世紀60年代", "les années 60 du XXe siècle", "fr"),
        ("20세기 90년대", "in the 1990s", "en"), ("5月", "in 5/2024", "en"),
    ],
)  # fmt: skip
def test_a_month_may_be_named_and_a_century_be_in_its_decade(src: str, translation: str, lang: str) -> None:
    assert lost(src, translation, lang) == []


@pytest.mark.parametrize(
    ("src", "translation", "expected"),
    [
        ("他生于1990年5月1日。", "He was born on March 1, 1990.", ["5"]),
        ("他生于1990年5月1日。", "He was born on 1, 1990.", ["5"]),
        ("他生于1990年5月5日。", "He was born in May 1990.", ["5"]),
        ("5个月", "in May", ["5"]), ("5只狗", "dogs in May", ["5"]), ("13月", "in May", ["13"]),
        ("5月", "the mayor and the maid", ["5"]), ("8月", "3 years ago", ["8"]), ("10月", "it is out", ["10"]),
        ("am 3.10.", "on May 3", ["3.10"]), ("am 3.10.", "in October", ["3.10"]), ("it costs 3.10 now", "October 3",
         ["3.10"]),
        ("20世纪90年代", "the 1890s", ["20"]), ("20世纪有90人", "in 1990", ["20", "90"]),
    ],
)  # fmt: skip
def test_another_month_or_none_is_missing(src: str, translation: str, expected: list[str]) -> None:
    assert lost(src, translation) == expected


def test_a_month_or_century_that_the_source_has_in_another_way_is_not_wrong() -> None:
    assert wrong("He was born on May 1, 1990.", "他生于1990年5月1日。", ("en", "zh")) == []
    assert wrong("He was born on May 1, 1990.", "他生于1990年3月1日。", ("en", "zh")) == ["3"]
    assert wrong("in the mid-1990s", "在20世纪90年代中期", ("en", "zh")) == []
    assert wrong("in the mid-1990s", "在21世纪90年代中期", ("en", "zh")) == ["21"]
    assert wrong("au XIXe siècle", "in the 19th century", ("fr", "en")) == []
    assert wrong("au XIXe siècle", "in the 18th century", ("fr", "en")) == ["18"]
    assert wrong("一千万人", "10 million people", ("zh", "en")) == []
    assert wrong("一千万人", "20 million people", ("zh", "en")) == ["20"]
    assert wrong("at 3 pm", "um 15 Uhr", ("en", "de")) == []


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("In the 19th century", "Au XIXe siècle", "fr"), ("In the 19th century", "En el siglo XIX", "es"),
        ("In the 19th century", "w XIX wieku", "pl"), ("In the 19th century", "в XIX веке", "ru"),
        ("In the 19th century", "у ХІХ столітті", "uk"),  # in letters of Cyrillic
        ("In the 21st century", "nel XXI secolo", "it"), ("In the 5th century", "au Ve siècle", "fr"),
        ("In the 10th century", "siglo X", "es"), ("In the 16th and 17th centuries", "aux XVIe et XVIIe siècles", "fr"),
        ("World War 2", "II wojna światowa", "pl"), ("Chapter 44", "capítulo XLIV", "es"),
        ("20世纪", "the twentieth century", "en"), ("21世纪", "the twenty-first century", "en"),
        ("les années 90", "the 1990s", "en"), ("los años 90", "the 1990s", "en"), ("gli anni '90", "the 1990s", "en"),
        ("в 90-х годах", "in the 1990s", "en"), ("w latach 90. XX wieku", "in the 1990s", "en"),
        ("90년대", "the 1990s", "en"), ("90-luvulla", "in the 1990s", "en"), ("1990'larda", "in the 90s", "en"),
        ("les années 1990", "the 90s", "en"), ("the 1990s", "les années 90", "fr"), ("the 1990s", "anni '90", "it"),
        ("les années 90", "the nineties", "en"),
    ],
)  # fmt: skip
def test_a_century_may_be_in_roman_numerals_and_a_decade_without_its_century(
    src: str, translation: str, lang: str
) -> None:
    assert lost(src, translation, lang) == []


@pytest.mark.parametrize(
    ("src", "translation", "lang", "expected"),
    [
        ("In the 19th century", "Au XVIIIe siècle", "fr", ["19"]), ("19 dogs, 19 cats", "XIX perros", "es", ["19"]),
        ("1 dog", "I stole it", "en", ["1"]), ("50 dogs", "Le chien", "fr", ["50"]),
        ("5 dogs", "Ve köpek", "fr", ["5"]),
        ("Charles VI has 6 dogs", "Carlos VI tiene perros", "es", ["6"]), ("14 dogs", "xiv", "es", ["14"]),
        ("les années 90", "the 1980s", "en", ["90"]), ("il y a 90 ans", "in 1990", "en", ["90"]),
        ("les années 95", "in 1995", "en", ["95"]), ("90年", "in 1990", "en", ["90"]),
    ],
)  # fmt: skip
def test_another_century_or_decade_is_missing(src: str, translation: str, lang: str, expected: list[str]) -> None:
    assert lost(src, translation, lang) == expected


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("有30多万人参加", "More than 300,000 people", "en"), ("有30余萬人參加", "More than 300,000 people", "en"),
        ("30여만 명", "more than 300,000 people", "en"), ("5천 명", "5,000 people", "en"),
        ("3백만 명", "3 million", "en"),
        ("2조 원", "2,000,000,000,000 won", "en"), ("20 million", "2 करोड़", "hi"), ("500,000", "5 लाख", "hi"),
        ("5 lakh people", "500,000 Menschen", "de"), ("2 crore", "20 million", "en"),
        ("10 million people", "一千万人", "zh"), ("100 million people", "一亿人", "zh"),
        ("8 million", "八百万人", "ja"),
        ("20 тыс. человек", "20,000 people", "en"), ("20 nghìn người", "20,000 people", "en"),
        ("20 ngàn người", "20,000 people", "en"), ("3 แสนคน", "300,000 people", "en"),
        ("2 หมื่นคน", "20,000 people", "en"),
        ("1.5 million", "150万", "zh"), ("2.5万", "25,000", "en"), ("20 mil millones", "20 billion", "en"),
        ("100 mil millones", "1000亿", "zh"), ("20 de mii", "20,000", "en"), ("0.5 million", "500,000", "en"),
        ("5 Billionen", "5万亿", "zh"), ("300,000", "300 Tsd.", "de"), ("$5 million", "500万美元", "zh"),
        ("1 lakh", "one hundred thousand", "en"), ("$20k", "20.000 $", "de"),
    ],
)  # fmt: skip
def test_a_power_of_ten_may_have_another_word(src: str, translation: str, lang: str) -> None:
    assert lost(src, translation, lang) == []


@pytest.mark.parametrize(
    ("src", "translation", "lang", "expected"),
    [
        ("有30多万人参加", "More than 30,000 people", "en", ["30"]), ("5천 명", "500 people", "en", ["5"]),
        ("5천 명", "50,000 people", "en", ["5"]), ("20 million", "2 लाख", "hi", ["20"]),
        ("3 แสนคน", "3,000,000 people", "en", ["3"]), ("1.5 million", "15万", "zh", ["1.5"]),
        ("20 million", "200 Hunde", "de", ["20"]), ("20 millimetres", "20000 m", "de", ["20"]),
        ("10 million people", "一百万人", "zh", ["10"]), ("100 million people", "三亿人", "zh", ["100"]),
        ("30多人", "300,000 people", "en", ["30"]), ("3.5 l", "35 l", "de", ["3.5"]),
    ],
)  # fmt: skip
def test_another_power_of_ten_is_another_number(src: str, translation: str, lang: str, expected: list[str]) -> None:
    assert lost(src, translation, lang) == expected


def test_words_for_powers_of_ten_add_up() -> None:
    assert powers_of(" million people") == {6}
    assert powers_of("百万人") == powers_of("多百万") == {6}
    assert powers_of(" hundred thousand") == {5}
    assert powers_of(" milliards") == {9}
    assert powers_of(" billion") == {9, 12}
    assert powers_of("") == powers_of(" people") == powers_of(" millimetres") == frozenset()


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("at 3:30 pm", "à 15h30", "fr"), ("um 15:30 Uhr", "à 15 h 30", "fr"), ("à 15h30", "at 3:30 pm", "en"),
        ("à 15h30", "um 15.30 Uhr", "de"), ("om 15u30", "at 15:30", "en"), ("à 15h30", "um halb vier", "de"),
        ("at 3 pm", "um 15 Uhr", "de"), ("à 20h", "at 8 pm", "en"), ("at 8 pm", "à 20h", "fr"),
        ("at 8 p.m.", "à 20 heures", "fr"), ("下午3点", "um 15 Uhr", "de"), ("15点", "at 3 pm", "en"),
        ("15時に", "at 3 p.m.", "en"), ("오후 3시", "um 15 Uhr", "de"), ("15시", "at 3 pm", "en"),
        ("at 12 am", "um 0 Uhr", "de"),
        ("um 15 Uhr", "at 3:00 pm", "en"), ("3 dogs at 3 pm", "um 15 Uhr 3 Hunde", "de"),
        ("15 dogs at 3 pm", "um 15 Uhr 15 Hunde", "de"), ("3 pm and 3 dogs", "3 Hunde um 15 Uhr", "de"),
        ("at 3 am", "um 3 Uhr", "de"), ("um 3:30 am Montag", "on Monday at 3:30", "en"),
    ],
)  # fmt: skip
def test_a_time_may_be_on_the_other_clock(src: str, translation: str, lang: str) -> None:
    assert lost(src, translation, lang) == []


@pytest.mark.parametrize(
    ("src", "translation", "lang", "expected"),
    [
        ("at 3:30 pm", "à 15h20", "fr", ["3:30"]), ("à 15h30", "à 15h", "fr", ["15h30"]),
        ("at 3 am", "um 15 Uhr", "de", ["3"]), ("at 3:30 am", "um 15:30 Uhr", "de", ["3:30"]),
        ("at 3 pm", "um 16 Uhr", "de", ["3"]), ("at 3 pm", "15 Hunde", "de", ["3"]),
        ("3 dogs", "um 15 Uhr", "de", ["3"]),
        ("in 3 h", "en 15 h", "es", ["3"]), ("3 heures", "15 hours", "en", ["3"]), ("3시간", "15 o'clock", "en", ["3"]),
        ("dure 15 h", "takes 3 h", "en", ["15"]),
    ],
)  # fmt: skip
def test_another_time_and_a_duration_are_missing(src: str, translation: str, lang: str, expected: list[str]) -> None:
    assert lost(src, translation, lang) == expected


def test_a_time_with_h_is_one_number_and_two_lengths_of_time_are_two() -> None:
    texts = ("à 15h30.", "à 9 h 05", "om 15u30", "24h 15 km", "2 h 30 min", "15h30开始", "5h99")
    found = [[span.text for span in find(text)] for text in texts]
    assert found[:3] == [["15h30"], ["9 h 05"], ["15u30"]]
    assert found[3] == ["24h", "15"]
    assert found[4][0].startswith("2")
    assert len(found[4]) == 2
    assert found[5] == ["15h30"]
    assert found[6] == ["5"]


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("Wir treffen uns um halb 4.", "We meet at half past three.", "en"),
        ("Wir treffen uns um halb 4.", "We meet at 3:30.", "en"), ("um halb 4", "at 3:30 pm", "en"),
        ("um halb 4", "à trois heures et demie", "fr"), ("um halb 4", "a las tres y media", "es"),
        ("um halb 4", "三点半", "zh"), ("um halb 4", "3時半", "ja"), ("um halb 1", "at half past twelve", "en"),
        ("kl. halv 8", "at half past seven", "en"), ("kl. halv 8", "um 7.30 Uhr", "de"),
        ("om half 8", "at 7:30", "en"), ("om half 8", "um halb acht", "de"), ("fél 4-kor", "at 3:30", "en"),
        ("v půl 4", "at 3:30", "en"), ("o wpół do 4", "at half past three", "en"), ("о пів на 4", "at 3:30", "en"),
        ("klo puoli 4", "at 3:30", "en"), ("at 3:30", "um halb 4", "de"), ("at half past 3", "um halb vier", "de"),
        ("at half past 3", "um halb 4", "de"), ("3点半", "at half past three", "en"),
        ("3点半开始", "um halb 4", "de"), ("3시 반에", "at 15:30", "en"),
        ("ตอน 2 ทุ่ม", "at 8 pm", "en"), ("ตอน 2 ทุ่ม", "um 20:00 Uhr", "de"), ("2 ทุ่ม", "at eight in the evening", "en"),
        ("2 ทุ่มครึ่ง", "at 8:30 pm", "en"), ("บ่าย 3 โมง", "um 15 Uhr", "de"),
        ("à 3 heures et demie", "at half past three", "en"), ("vers 3 h et demie", "gegen 15.30 Uhr", "de"),
        ("a las 3 y media", "um halb vier", "de"), ("alle 3 e mezza", "at 3:30", "en"),
        ("às 3 e meia", "om half vier", "nl"), ("at half past 3", "v půl čtvrté", "cs"),
        ("Cela a duré 3 heures et demie.", "dreieinhalb Stunden", "de"),
    ],
)  # fmt: skip
def test_a_half_hour_may_be_counted_to_the_next_hour_and_an_evening_from_six(
    src: str, translation: str, lang: str
) -> None:
    assert lost(src, translation, lang) == []


@pytest.mark.parametrize(
    ("src", "translation"),
    [
        ("um halb 4", "at 5:30"), ("um halb 4", "at half past six"), ("2 ทุ่ม", "at 10 pm"), ("kl. halv 8", "at 9:30"),
        ("half past 3", "half past four"), ("at 3:30", "at half past four"),
        ("Cela a duré 3 heures et demie.", "It took four and a half hours."), ("Il vit 3 h et demie.", "at 15.30"),
        ("Duró 3 horas y media.", "It took four and a half hours."), ("ha 3 e mezzo", "at 15:30"),
        ("In the second half 10 players were sent off.", "at 9:30"), ("It fell by half 2 days later.", "at 1:30"),
        ("Cut the pizza in half 4 times.", "at 3:30"), ("во второй половине 5 века", "at 4:30"),
    ],
)  # fmt: skip
def test_another_half_hour_is_missing(src: str, translation: str) -> None:
    assert len(lost(src, translation)) == 1


def test_a_length_of_time_is_no_half_hour() -> None:
    assert lost("Cela a duré 3 heures et demie.", "Es dauerte viereinhalb Stunden.", "de") == ["3"]


HALF_PAST_THREE = [
    ("We meet at half past 3.", "en"), ("We meet at half past three.", "en"), ("We met at half three.", "en"),
    ("We meet at 3:30.", "en"), ("Wir treffen uns um halb vier.", "de"), ("Wir treffen uns um halb 4.", "de"),
    ("Um drei Uhr dreißig.", "de"), ("We zien elkaar om half vier.", "nl"), ("Vi ses klockan halv fyra.", "sv"),
    ("Vi ses klokken halv fire.", "da"), ("Vi møtes klokka halv fire.", "no"), ("в половине четвёртого", "ru"),
    ("Встретимся в полчетвёртого.", "ru"), ("o wpół do czwartej", "pl"), ("v půl čtvrté", "cs"),
    ("o pol štvrtej", "sk"), ("Fél négykor találkozunk.", "hu"), ("Tavataan puoli neljältä.", "fi"),
    ("о пів на четверту", "uk"),
    ("a las tres y media", "es"), ("à trois heures et demie", "fr"), ("à 3 h et demie", "fr"),
    ("alle tre e mezza", "it"), ("às três e meia", "pt"), ("我们三点半见。", "zh"), ("我們3點半見。", "zh"),
    ("3時半に会いましょう。", "ja"), ("세 시 반에 만나요.", "ko"),
]  # fmt: skip
QUARTERS = {
    (3, 15): [
        ("at a quarter past three", "en"), ("at 3:15", "en"), ("um Viertel nach 3", "de"), ("um viertel vier", "de"),
        ("om kwart over drie", "nl"), ("klockan kvart över tre", "sv"), ("à trois heures et quart", "fr"),
        ("a las tres y cuarto", "es"), ("alle tre e un quarto", "it"), ("čtvrt na čtyři", "cs"), ("三点一刻", "zh"),
        ("kwadrans po trzeciej", "pl"), ("в четверть четвёртого", "ru"), ("negyed négykor", "hu"),
    ],
    (3, 45): [
        ("at quarter to 4", "en"), ("um Viertel vor vier", "de"), ("um drei viertel 4", "de"),
        ("um dreiviertel vier", "de"),
        ("om kwart voor vier", "nl"), ("klokken kvart i fire", "da"), ("klokka kvart på fire", "nb"),
        ("à quatre heures moins le quart", "fr"), ("a las cuatro menos cuarto", "es"), ("三点四十五分", "zh"),
        ("às quinze para as quatro", "pt"), ("без четверти четыре", "ru"), ("za kwadrans czwarta", "pl"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("same", [HALF_PAST_THREE, *QUARTERS.values()])
def test_the_same_time_in_other_words_is_neither_missing_nor_wrong(same: list[tuple[str, str]]) -> None:
    for src, src_lang in same:
        for translation, lang in same:
            spans = missing(find(src), translation, src, lang, src_lang)
            assert (src, translation, spans) == (src, translation, [])
            assert (src, translation, wrong(src, translation, (src_lang, lang))) == (src, translation, [])


OTHERS = [
    ("um halb drei", "de"), ("half past 4", "en"), ("at 4:30", "en"), ("om half drie", "nl"), ("v půl třetí", "cs"),
    ("в половине третьего", "ru"), ("wpół do trzeciej", "pl"), ("四点半", "zh"), ("à deux heures et demie", "fr"),
    ("um drei Uhr", "de"), ("3 o'clock", "en"),
]  # fmt: skip


@pytest.mark.parametrize("other", [OTHERS, *QUARTERS.values()])
def test_another_time_than_one_with_half_is_missing(other: list[tuple[str, str]]) -> None:
    for src, src_lang in HALF_PAST_THREE:
        for translation, lang in other:
            spans = missing(find(src), translation, src, lang, src_lang)
            assert (src, translation, len(spans)) == (src, translation, 1)


def test_a_time_in_words_is_named_whole() -> None:
    src = "We meet at half past three, and again at half past five."
    assert [span.text for span in missing(find(src), "um halb vier und um halb fünf", src, "de", "en")] == [
        "half past five"
    ]
    assert wrong(src, "um halb vier und um halb fünf", ("en", "de")) == ["halb fünf"]


def test_half_means_another_time_in_english_than_in_german_and_dutch() -> None:
    assert [span.text for span in missing(find("at half 4"), "um halb 4", "at half 4", "de", "en")] == ["4"]
    assert missing(find("at half 4"), "um halb 5", "at half 4", "de", "en") == []
    assert missing(find("om half 4"), "um halb 4", "om half 4", "de", "nl") == []


@pytest.mark.parametrize(
    ("src", "translation", "langs"),
    [
        ("Half of the 4 dogs left at half past three.", "Die Hälfte der 4 Hunde ging um halb vier.", ("en", "de")),
        ("Sales fell by a quarter to 5 million.", "Der Absatz fiel um ein Viertel auf 5 Millionen.", ("en", "de")),
        ("The meeting began at half past two and ended at five.", "Sie dauerte von halb drei bis fünf.", ("en", "de")),
        ("It took half an hour, until 3:45.", "Es dauerte eine halbe Stunde, bis Viertel vor vier.", ("en", "de")),
        ("Cela a duré trois heures et demie.", "It took until half past four.", ("fr", "en")),
        ("Nach einer halben Stunde, um 5 Uhr, ging er.", "He left after half an hour, at 5 o'clock.", ("de", "en")),
        ("半年后，3点的时候", "Half a year later, at 3 o'clock", ("zh", "en")),
        ("The score was 3:15 at half past four.", "Um halb fünf stand es 3:15.", ("en", "de")),
        ("Fünf vor halb vier ging er.", "He left shortly before half past three.", ("de", "en")),
        ("Er kam kurz nach halb 3.", "He came shortly after half past two.", ("de", "en")),
        ("Er kam kurz vor halb 3.", "He came shortly before 2:30.", ("de", "en")),
        ("Fünf nach halb 3 kam er.", "He came at 2:35.", ("de", "en")),
        ("Um fünf vor halb 3 kam er.", "He came at 2:25.", ("de", "en")),
        ("Klockan är fem i halv 3.", "It is 2:25.", ("sv", "en")),
        ("Het is vijf voor half 3.", "It is 2:25.", ("nl", "en")),
        ("Tule viittä vaille puoli kolme.", "Come at 2:25.", ("fi", "en")),
        ("Przyjdź za pięć wpół do trzeciej.", "Come at 2:25.", ("pl", "en")),
        ("Přijď za pět minut půl 3.", "Come at 2:25.", ("cs", "en")),
        ("Kom tio i halv 3.", "Come at 2:20.", ("sv", "en")),
        ("Klokken er fem over halv 3.", "It is 2:35.", ("da", "en")),
        ("Je skoro půl 2.", "It is almost 1:30.", ("cs", "en")),
        ("Stäng i halv 3.", "Close at half past two.", ("sv", "en")),
        ("Kom over halv 3.", "Come after half past two.", ("da", "en")),
        ("Kom på halv 3.", "Come at half past two.", ("nb", "en")),
        ("Kom voor half 3.", "Come before half past two.", ("nl", "en")),
        ("Kom voor half drie, niet om 3:00.", "Come before 2:30, not at 3:00.", ("nl", "en")),
        ("He left the room at 3 o'clock.", "Salió del cuarto a las 3.", ("en", "es")),
        ("Book a room at 3 o'clock.", "Reserva un cuarto a las 3.", ("en", "es")),
        ("A room for the 3 people at 5 o'clock.", "Um quarto para as 3 pessoas às 5 horas.", ("en", "pt")),
        ("In the quarter from 6 pm, and at 10 o'clock.", "Im Viertel ab 18 Uhr, und um 22 Uhr.", ("en", "de")),
        ("It is quiet in the quarter after 10 pm.", "Im Viertel ist es nach 22 Uhr still.", ("en", "de")),
        ("The quarter after 10 pm.", "Das Viertel nach 22 Uhr.", ("en", "de")),
        ("A quarter was sold after 3 years, at 5 o'clock.", "Ein Viertel nach 3 Jahren, um 5 Uhr.", ("en", "de")),
        ("Shares fell by a quarter before 2 o'clock.", "Die Aktien fielen bis 2 Uhr um ein Viertel.", ("en", "de")),
        ("It shrank by half after 3 o'clock.", "Nach 3 Uhr schrumpfte es um die Hälfte.", ("en", "de")),
        ("Sales fell by a quarter to 5 million at 3:00.",
         "Der Absatz fiel um 3:00 um ein Viertel auf 5 Millionen.", ("en", "de")),
        ("It rose from a quarter to one third at 3:00.",
         "Es stieg um 3:00 von einem Viertel auf ein Drittel.", ("en", "de")),
        ("Четверть первого тайма прошла к 3:00.", "A quarter of the first half was over by 3:00.", ("ru", "en")),
        ("Пол первого этажа убрали до 3:00.", "The floor of the first storey was cleaned by 3:00.", ("ru", "en")),
        ("Половина второго года прошла в 3:00.", "Half of the second year was over at 3:00.", ("ru", "en")),
        ("Гол забили в половине второго тайма, в 3:00.",
         "The goal was scored in half of the second period, at 3:00.", ("ru", "en")),
        ("Après trois heures et demie de route, il est arrivé à 5 h.",
         "After three and a half hours on the road he arrived at 5 o'clock.", ("fr", "en")),
        ("Jusqu'à trois heures et demie par jour, dès 5 h.",
         "Up to three and a half hours a day, from 5 o'clock.", ("fr", "en")),
        ("À trois heures et demie de Paris, à 5 h.", "Three and a half hours from Paris, at 5 o'clock.", ("fr", "en")),
        ("Il dort vers deux heures et demie.", "He sleeps at two thirty.", ("fr", "en")),
        ("Il est deux heures et demie.", "Es ist halb drei.", ("fr", "de")),
        ("at two thirty", "um halb drei", ("en", "de")),
        ("um halb drei", "at two thirty", ("de", "en")),
        ("我有一点累，三点半走。", "I am a little tired and leave at half past three.", ("zh", "en")),
        ("他说了两点，五点半走了。", "He made two points and left at half past five.", ("zh", "en")),
        ("在这两点之间，得到一点。", "Between these two points at half past three.", ("zh", "en")),
        ("晚上一点都不冷，三点半走。", "It was not cold at all at night; we left at 3:30.", ("zh", "en")),
        ("一時は三時半だった。", "For a time it was half past three.", ("ja", "en")),
        ("十五点半见。", "See you at 15:30.", ("zh", "en")),
        ("十五時三十分", "15:30", ("zh", "en")),
        ("十五時半に会う。", "We meet at 3:30 pm.", ("ja", "en")),
        ("Um 10 Uhr fertig, um halb elf weg.", "Ready at 10 o'clock, gone at 10:30.", ("de", "en")),
        ("Um 10 Uhr zehn Leute, um halb elf zwölf.", "Ten people at 10 o'clock, twelve at 10:30.", ("de", "en")),
        ("Fél hét múlva, 3:00-kor.", "In half a week, at 3:00.", ("hu", "en")),
        ("Po pol 3 je prišel.", "He came after 2:30.", ("sl", "en")),
        ("Er ist halb ein Kind, um 3:00.", "He is half a child, at 3:00.", ("de", "en")),
        ("En kvart i 3 dagar, kl. 5:00.", "A quarter for 3 days, at 5:00.", ("sv", "en")),
        ("Een kwart voor 3 euro, om 5:00.", "A quarter for 3 euros, at 5:00.", ("nl", "en")),
    ],
)  # fmt: skip
def test_halves_and_quarters_that_are_no_other_time_get_no_note(
    src: str, translation: str, langs: tuple[str, str]
) -> None:
    for text, other, (lang, other_lang) in ((src, translation, langs), (translation, src, langs[::-1])):
        spans = missing(find(text), other, text, other_lang, lang)
        assert (text, spans, wrong(text, other, (lang, other_lang))) == (text, [], [])


@pytest.mark.parametrize(
    "text",
    [
        "um halb 3", "kurz vor halb 3", "fünf nach halb 3", "Viertel vor 3", "půl 3", "i halv 3", "over halv 3",
        "half 3", "quarter of 3", "3 thirty", "3 y media", "cuarto a las 3", "3 heures et demie", "3 e mezza", "fél 3",
        "3点半", "3时半",
    ],
)  # fmt: skip
def test_the_hour_of_what_may_be_a_time_in_words_is_not_cut_out(text: str) -> None:
    assert [is_reckoned(span, text) for span in find(text) if span.kind == "number"][-1:] == [True]


@pytest.mark.parametrize(
    ("src", "translation", "langs"),
    [
        ("um 10 Uhr fertig", "at half past ten", ("de", "en")),
        ("3点见", "at half past three", ("zh", "en")),
        ("下午三点见", "at half past three", ("zh", "en")),
        ("午後三時に会う", "at half past three", ("ja", "en")),
        ("十五点半见", "at half past four", ("zh", "en")),
        ("Il arrive à trois heures.", "at half past three", ("fr", "en")),
        ("Ven al cuarto para las 3.", "at half past three", ("es", "en")),
    ],
)
def test_a_time_that_has_surely_become_another_is_named(src: str, translation: str, langs: tuple[str, str]) -> None:
    assert wrong(src, translation, langs) == [translation.removeprefix("at ")]
