"""What the guard sees in a text, and what it lets pass."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data import phrasebook
from dragoman.translation.faults import (
    COPY_SHARE,
    COPY_WORDS,
    FAULTS,
    LOOP_PERIOD,
    LOST_TOKENS,
    MAX_REPETITION,
    MOST_SCANS,
    Run,
    Sizes,
    differ,
    faults,
    is_copy,
    is_loop,
    neighbours,
    ordinary_words,
    repetition,
    runs,
    without_loops,
    without_runs,
)
from limits import cpu_limit


def seen(src: str, output: str, *, src_lang: str | None = "en", tgt_lang: str | None = "de") -> tuple[str, ...]:
    """The faults of a translation whose number of subwords is that of its characters over four."""
    return faults(src, output, Sizes(len(src) // 4 + 1, len(output) // 4 + 1), src_lang, tgt_lang)


LONG = "one two three four five six seven eight nine ten eleven twelve"

LOOPS = [
    ("A man is riding a bike.", "ein ein ein ein"),
    ("Hello, a small pool.", "ein sehr sehr sehr kleiner Pool"),
    ("Hello, a small pool.", "eine U-Bahn-Bahn-Bahn"),
    ("A man is riding a bike.", "Ein Mann Mann Mann Mann Mann fährt."),
    ("A man is riding a bike.", "Ein Mann, ein Mann, ein Mann, ein Mann fährt."),
    ("A man is riding a bike.", "Ein Mann, EIN MANN, Ein mann, ein Mann fährt."),
    ("A man is riding a bike.", "Fahrrrrrrrrrrrrrrrrad"),
    ("A man is riding a bike.", "babababababababa"),
    ("A man is riding a bike.", "Ein Mann !!!!!!!!!!!!!!"),
    ("A man is riding a bike.", "一个人一个人一个人一个人骑车。"),
    ("A man is riding a bike.", "的的的的"),
    ("A man is riding a bike.", "Auf der" + " " * 40 + "Straße"),
    ("Near a red shirt.", "in der Nähe eines roten Hemd in der Nähe eines roten Hemd"),  # three words, and twice
    ("Near a red shirt.", "Sie ist, in der Nähe, in der Nähe, rot."),
    ("He left.", "Er ging nach Hause. Er ging nach Hause."),
    ("A man is riding a bike.", "这个男人骑车这个男人骑车"),
    ("what?!", "was ? ! ? ! ? ! ? ! ? !"),
    ("no no", "nein nein nein nein"),
    ("yes 1111111111111", "ja ja ja ja"),
    (LONG, " ".join(f"und der {n} Mann sieht den Hund" for n in "abcdef")),  # loops with a part that changes
    (LONG, " ".join(["Die Frau die dort drüben steht sieht heute Abend sehr müde aus."] * 3)),  # a long period
    (LONG, "那个女人站在那边今天晚上看起来很累。" * 3),
]

SOUND = [
    ("A man is riding a bike.", "Ein Mann fährt Fahrrad."),
    ("ha ha ha ha ha ha", "ha ha ha ha ha ha"),
    ("ha ha ha ha ha ha", "哈哈哈哈哈哈"),
    ("hahaha", "哈哈哈哈"),
    ("no no no", "nein nein nein nein"),
    ("Nooooooooooo!!!!!!!!!!", "Neeeeeeeeeeein!!!!!!!!!!"),
    ("A line: ------------------", "Eine Linie: ------------------"),
    ("- - - - - - - -", "- - - - - - - -"),
    ("A very, very old man, and then and then", "Ein sehr, sehr alter Mann, der wo, der wo wohnt"),  # two words, twice
    ("In a blue shirt, in a blue car.", "in einem blauen Hemd in einem blauen Auto"),  # not all of it is there again
    ("He went home. He went home.", "Er ging nach Hause. Er ging nach Hause."),
    ("we study it", "研究一下研究一下"),  # two ideographs are a word
    ("10 billion 10000000000", "10 Milliarden 10000000000"),
    ("one billion", "1.000.000.000"),
    ("wait...", "warte ..."),
    ("Very, very, very good", "Sehr, sehr, sehr gut"),
    ("The bus that the man that the dog bit took", "Der Bus, den der Mann, den der Hund biss, nahm"),
    ("🙂🙂🙂🙂🙂🙂", "🙂🙂🙂🙂🙂🙂"),
    ("x" + " " * 20 + "y", "x" + " " * 20 + "y"),
    ("dog " * 30, "Hund " * 30),
    ("word and the other word " * 10, "Wort und das andere Wort " * 10),
    ("12345", "12345"),
    ("...", "..."),
    ("?!", "?!"),
]


@pytest.mark.parametrize(("src", "output"), LOOPS)
def test_loops_are_seen_and_can_be_taken_out(src: str, output: str) -> None:
    assert is_loop(src, output)
    assert "loop" in seen(src, output)
    shorter = without_loops(src, output)
    assert 0 < len(shorter.strip()) < len(output)
    assert not is_loop(src, shorter)
    assert output.startswith(shorter[:3])


@pytest.mark.parametrize(("src", "output"), SOUND)
def test_what_the_source_repeats_may_be_repeated(src: str, output: str) -> None:
    assert seen(src, output, tgt_lang="de") == ()
    assert without_loops(src, output) == output


def test_a_loop_is_said_once() -> None:
    assert without_loops("a man", "Ein Mann, ein Mann, ein Mann, ein Mann fährt.") == "Ein Mann, fährt."
    assert without_loops("a man", "der der der der der Hund") == "der Hund"
    assert without_loops("a man", "Fahrrrrrrrrrrrrrad") == "Fahrad"
    assert without_loops("a man", "一个人一个人一个人一个人骑车") == "一个人骑车"
    sentence = "Die Frau die dort drüben steht sieht heute Abend sehr müde aus."
    assert without_loops("a", f"{sentence} " * 9) == sentence


def test_runs_say_where_and_how_often() -> None:
    text = "so der Hund der Hund der Hund der Hund rennt"
    [run] = [run for run in runs(text, 4) if run.words]
    assert (text[run.start : run.once], run.repeats, text[run.end :]) == ("der Hund ", 4, " rennt")
    assert runs("a b c d e", 2) == []
    assert runs("", 2) == runs(" ", 2) == []


def test_repetition_is_the_share_of_4_grams_seen_before() -> None:
    words = [chr(ord("a") + i) for i in range(26)]
    assert repetition(" ".join(words)) == 0.0
    assert repetition(" ".join([*words, *words])) == pytest.approx(1 - 26 / 49)
    assert repetition("a b c d " * 5) == 0.0  # too short to be judged by it
    assert repetition(" ".join([*words, *words])) > MAX_REPETITION


COPIES = [
    ("A man is riding a bike down the street.", "A man is riding a bike down the street."),
    ("A man is riding a bike down the street.", "A man is riding a bike down the street"),
    ("A man is riding a bike down the street.", "a man is riding a bike down the streets ."),
    ("A MAN IS RIDING A BIKE DOWN THE STREET.", "A MAN IS RIDING A BIKE DOWN THE STREET."),
    ("the dog sees a cat", "the dog sees a cat"),
    ("一个人在街上骑车。", "一个人在街上骑车。"),
]

NO_COPIES = [
    ("A man is riding a bike.", "Ein Mann fährt Fahrrad."),
    ("hello", "hello"),
    ("Hotel", "Hotel"),
    ("hello there", "hello there"),  # too few words to tell
    ("Angela Merkel, Emmanuel Macron, Justin Trudeau", "Angela Merkel, Emmanuel Macron, Justin Trudeau"),
    ("Ludwig van Beethoven and Johann Sebastian Bach", "Ludwig van Beethoven und Johann Sebastian Bach"),
    ("JOHN SMITH, MARY JONES, PETER BROWN, ANN LEE", "JOHN SMITH, MARY JONES, PETER BROWN, ANN LEE"),
    ("https://example.org/a/long/path?with=query&and=more www.example.org", "https://example.org/a/long/path www.ex"),
    ("mail me@example.org you@example.org them@example.org us@example.org", "me@example.org you@example.org"),
    ("3.14 + 2.71 = 5.85 (100 %)", "3.14 + 2.71 = 5.85 (100 %)"),
    ("for (i=0; i<n; i++) { x[i]=0; }", "for (i=0; i<n; i++) { x[i]=0; }"),
    ("🙂 🙃 😀 😎 😴", "🙂 🙃 😀 😎 😴"),
    ("?!", "?!"),
    ("He says 'in' and 'an' a lot.", "Er sagt oft 'in' und 'an'."),
]


@pytest.mark.parametrize(("src", "output"), COPIES)
def test_copies_of_the_source_are_seen(src: str, output: str) -> None:
    assert is_copy(src, output)
    assert seen(src, output) == ("copy",)


@pytest.mark.parametrize(("src", "output"), NO_COPIES)
def test_what_is_the_same_in_both_languages_is_no_copy(src: str, output: str) -> None:
    assert seen(src, output) == ()


def test_a_copy_is_a_fault_only_between_languages_that_differ() -> None:
    src, output = COPIES[0]
    for src_lang, tgt_lang in (
        ("en", "en"),
        ("en", "en-GB"),
        (None, "de"),
        ("en", None),
        ("da", "nb"),
        ("zh-CN", "ja"),
    ):
        assert seen(src, output, src_lang=src_lang, tgt_lang=tgt_lang) == ()
        assert not differ(src_lang, tgt_lang)
    assert differ("en", "de")
    assert differ("zh_TW", "en")


def test_ordinary_words_leave_out_names_numbers_addresses_and_code() -> None:
    assert ordinary_words("The dog's owner, Anna Smith, e-mailed 3 times") == ["dog's", "owner", "e-mailed", "times"]
    assert ordinary_words("see http://a.b/c and foo_bar or x=y or file.txt") == ["see", "and", "or", "or"]
    assert ordinary_words("STOP THE CAR NOW! HEY, YOU") == ["stop", "the", "car", "now"]
    assert ordinary_words("狗 and 猫") == ["狗", "and", "猫"]
    assert ordinary_words("") == ordinary_words("123 ... 🙂") == []


def test_neighbours_are_the_pairs_of_words_that_a_copy_would_have() -> None:
    assert neighbours("A man sees Anna and the  man sees http://a.b me, you") == (
        "man sees", "and the", "the  man",
    )  # fmt: skip
    assert neighbours("我爱你") == ("我爱", "爱你")
    assert neighbours("STOP THE CAR NOW") == ("STOP THE", "THE CAR", "CAR NOW")
    assert neighbours("Anna") == neighbours("") == ()


@pytest.mark.parametrize("output", ["", " ", "\t", "\u3000", "\u2028"])
@pytest.mark.parametrize("src", ["A dog runs.", "...", "🙂", "7"])
def test_nothing_at_all_is_a_fault(src: str, output: str) -> None:
    assert seen(src, output) == ("empty",)


def test_a_translation_that_is_far_longer_than_its_source_is_seen() -> None:
    def long(n_src: int, n_tgt: int, ended: bool = True) -> bool:
        found = faults("a b", "c d", Sizes(n_src, n_tgt, ended), "en", "de")
        assert set(found) <= {"long"}
        return bool(found)

    assert not long(1, 14)  # one word may need a few
    assert long(1, 15)
    assert not long(40, 112)
    assert long(40, 113)
    assert not long(10, 10)
    assert long(10, 10, ended=False)  # the search had to stop it


def test_a_translation_that_left_a_part_of_its_source_unread_is_short() -> None:
    def of(output: str, lost: int) -> tuple[str, ...]:
        return faults("src " * 30, output, Sizes(30, 12, lost=lost), "en", "de")

    assert of("Er ging.", LOST_TOKENS) == ("short",)
    assert of("Er ging.", LOST_TOKENS - 1) == ()
    assert of(" ", 30) == ("empty",)


def test_several_faults_are_named_the_worst_first() -> None:
    src = "the dog sees a small cat"
    assert seen(src, " ".join([src] * 9)) == ("loop", "long")
    assert [fault for fault in FAULTS if fault in seen(src, " ".join([src] * 9))] == ["loop", "long"]


@pytest.mark.parametrize("lang", ["de", "zh"])
def test_there_is_no_false_alarm_on_the_embedded_corpus(lang: str) -> None:
    pairs = phrasebook.pairs(2000, tgt_lang=lang)
    alarms = [(src, tgt) for src, tgt in pairs if seen(src, tgt, tgt_lang=lang) or seen(tgt, src, src_lang=lang)]
    assert alarms == []


TEXT = st.text(st.sampled_from("ab ,.!猫的\u3000🙂1A"), max_size=60)


@settings(max_examples=150)
@given(TEXT, TEXT, st.integers(1, 12))
def test_any_text_can_be_rid_of_its_loops_and_something_is_left(src: str, unit: str, n: int) -> None:
    output = unit * n
    shorter = without_loops(src, output)
    assert not is_loop(src, shorter)
    assert bool(shorter.strip()) == bool(output.strip())


def test_a_very_long_text_is_judged_in_time() -> None:
    chance = random.Random(0)
    words = " ".join("".join(chance.choices("abcdefgh", k=5)) for _ in range(20_000))
    assert seen(words, words[::-1]) == ()
    assert seen("a dog", "z" * 100_000) == ("loop", "long")
    assert ordinary_words("a" * 200_000) == ["a" * 200_000]
    with cpu_limit():  # looking for the end of the cluster from each mark took minutes
        assert runs("e" + "\u0301\u0301\u0302\u0302" * 12_500, 2) == []


def nested(depth: int) -> str:
    """Return a text with loops that a loop that is removed leaves, around the place of the first."""
    text, (w, x, y, z) = "d a b c", "dabc"
    for _ in range(depth):
        text = f"{x} {y} {z} {text} {y} {z} {w} {x} {y} {z} {w}"
        w, x, y, z = x, y, z, w
    return text


@pytest.mark.parametrize(
    ("text", "once"),
    [
        (" ".join(f"w{i} w{i} w{i} w{i}" for i in range(3000)), " ".join(f"w{i}" for i in range(3000))),
        (nested(2), "b c d a"),
        (nested(500), None),
    ],
)
def test_the_number_of_loops_costs_no_scans(text: str, once: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scanning both texts anew for each loop of a long line took minutes."""
    n_scans = 0

    def counted(text: str, least: int) -> list[Run]:
        nonlocal n_scans
        n_scans += 1
        assert n_scans <= 1 + MOST_SCANS  # that of the source
        return runs(text, least)

    monkeypatch.setattr("dragoman.translation.faults.runs", counted)
    shorter = without_runs("a man", text)
    assert len(shorter) < len(text) if once is None else shorter == once


FEW = st.lists(st.sampled_from(["a", "b", "Der", "hund", "läuft", ",", ".", "日", "12", "x@y", "UND"]), max_size=30)


@given(FEW, st.integers(2, 3))
@settings(max_examples=150, deadline=None)
def test_repeated_units_are_those_of_looking_at_every_place(units: list[str], least: int) -> None:
    text = " ".join(units)
    starts = [len(" ".join(units[:i])) + (i > 0) for i in range(len(units))]
    parts = ["x", "@", "y"]  # which is three units
    split = [(each, start) for unit, start in zip(units, starts, strict=True) for each, start in (
        zip(parts, range(start, start + 3), strict=True) if unit == "x@y" else [(unit, start)])]  # fmt: skip
    want = set()
    for period in range(1, LOOP_PERIOD + 1):
        same = [i >= period and split[i][0].lower() == split[i - period][0].lower() for i in range(len(split))] + [
            False
        ]
        first = period
        for i in range(period, len(split) + 1):
            if not same[i]:
                repeats = (i - first + (period > 2)) // period + 1
                if repeats >= least:
                    want.add((repeats, split[first - period][1], split[first][1]))
                first = i + 1
    assert {(run.repeats, run.start, run.once) for run in runs(text, least) if run.words} == want


@given(FEW, FEW, st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_copy_is_one_by_the_words_of_both(src: list[str], other: list[str], loud: bool) -> None:
    text, output = " ".join(src), " ".join(src[: len(src) // 2 * 2] + other[:3])
    output = output.upper() if loud else output
    said, words = Counter(ordinary_words(text)), Counter(ordinary_words(output))
    want = len(said) >= COPY_WORDS and (said & words).total() >= COPY_SHARE * max(said.total(), words.total())
    assert is_copy(text, output) == want


SAID_TWICE = {
    "Hindi": "वह धीरे धीरे चला",
    "Hindi, kinship": "दादा दादी नाना नानी",
    "Tamil": "மெல்ல மெல்ல நடந்தான்",
    "Bengali": "সে আস্তে আস্তে হাঁটল",
    "Telugu": "ఆమె నెమ్మదిగా నెమ్మదిగా వచ్చింది.",
    "Malayalam": "പതുക്കെ പതുക്കെ നടക്കൂ.",
    "Sinhala": "හෙමින් හෙමින් යන්න",
    "Urdu": "آہستہ آہستہ چلو",
    "Persian": "نرم\u200cنرم نرم\u200cنرم رفت",
    "Indonesian": "Dia berjalan pelan-pelan.",
    "Indonesian, plural": "anak-anak dan orang-orang",
    "Turkish": "yavaş yavaş yürüdü",
    "Vietnamese": "đi từ từ, xanh xanh",
    "Thai": "เขาเดินช้าๆ",
    "Thai, doubled": "เด็กเด็กเดินช้าช้า",
    "Lao": "ຄ່ອຍໆ ຄ່ອຍຄ່ອຍ",
    "Khmer": "យឺតៗ តូចតូច",
    "Burmese": "ဖြည်းဖြည်း သွား",
    "Tibetan": "ག་ལེར་ག་ལེར་འགྲོ",
    "Chinese": "他慢慢地走",
    "Chinese, twice": "我们研究研究这个问题",
    "Japanese": "時々、人々は色々な物を見る",
    "Japanese, sounds": "ゆっくりゆっくり歩く",
    "Korean": "천천히 천천히 걸었다",
    "Amharic": "ቀስ ቀስ ብሎ ሄደ",
    "Armenian": "կամաց կամաց գնաց",
    "Georgian": "ნელ-ნელა წავიდა",
    "Swahili": "alitembea pole pole",
    "Tagalog": "araw-araw, dahan-dahan",
    "Hebrew": "הוא הלך לאט לאט",
    "Arabic": "مشى رويدا رويدا",
    "decomposed": "marche doucement, doucement e\u0301te\u0301 e\u0301te\u0301",
}
"""Words that are said twice, as these languages do."""


@pytest.mark.parametrize("text", SAID_TWICE.values(), ids=SAID_TWICE)
def test_a_word_said_twice_is_no_loop_in_any_language(text: str) -> None:
    assert not is_loop("He walked slowly.", text)
    assert without_loops("He walked slowly.", text) == text


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("राजा आया राजा आया राजा आया", "राजा आया"),
        ("वह घर गया और वह घर गया और", "वह घर गया और"),
        ("மெல்ல மெல்ல மெல்ல மெல்ல நடந்தான்", "மெல்ல நடந்தான்"),
        ("เด็กกินข้าวเด็กกินข้าวเด็กกินข้าว", "เด็กกินข้าว"),
        ("กรุงเทพมหานครเป็นเมืองกรุงเทพมหานครเป็นเมือง", "กรุงเทพมหานครเป็นเมือง"),
        ("ကျွန်တော်သွားတယ်ကျွန်တော်သွားတယ်ကျွန်တော်သွားတယ်", "ကျွန်တော်သွားတယ်"),
        ("កកកកកកកកកកកកក", "ក"),
        ("नीनीनीनीनीनीनी", "नी"),
        ("他走了他走了他走了", "他走了"),
        ("かきかきかきかき", "かき"),
    ],
)
def test_a_loop_is_found_in_any_script(text: str, once: str) -> None:
    assert is_loop("He walked slowly.", text)
    assert without_loops("He walked slowly.", text) == once
