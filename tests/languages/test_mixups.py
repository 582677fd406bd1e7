"""Mix-ups of languages: what is noticed, and that nothing right is ever taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.data.sides import LanguageWatch, Side, are_one_text, doubt, doubt_about_name, refuse_by_name, sample
from dragoman.errors import ConfigError
from dragoman.languages import mixups
from dragoman.languages.mixups import named_otherwise, written_in

SENTENCES = {
    "en": "The children were playing in the garden when the rain began to fall on their heads.",
    "de": "Die Kinder spielten im Garten, als der Regen auf ihre Köpfe zu fallen begann und sie nass wurden.",
    "fr": "Les enfants jouaient dans le jardin quand la pluie a commencé à tomber sur leurs têtes.",
    "es": "Los niños estaban jugando en el jardín cuando la lluvia empezó a caer sobre sus cabezas.",
    "pt": "As crianças estavam brincando no jardim quando a chuva começou a cair sobre as suas cabeças.",
    "fi": "Lapset leikkivät puutarhassa, kun sade alkoi pudota heidän päähänsä ja he kastuivat.",
    "et": "Lapsed mängisid aias, kui vihm hakkas neile pähe sadama ja nad said märjaks.",
    "tr": "Çocuklar bahçede oynarken yağmur başlarına yağmaya başladı ve hepsi ıslandı.",
    "ru": "Дети играли в саду, когда дождь начал падать им на головы.",
    "uk": "Діти гралися в саду, коли дощ почав падати їм на голови, і вони змокли.",
    "hi": "बच्चे बगीचे में खेल रहे थे जब बारिश उनके सिर पर गिरने लगी।",
    "th": "เด็กๆ กำลังเล่นอยู่ในสวนเมื่อฝนเริ่มตกลงมาบนหัวของพวกเขา",
    "zh": "孩子们正在花园里玩耍，这时雨开始落在他们的头上。",
    "ja": "子供たちが庭で遊んでいると、雨が頭の上に降り始めました。",
    "ar": "كان الأطفال يلعبون في الحديقة عندما بدأ المطر يهطل على رؤوسهم.",
    "ko": "아이들이 정원에서 놀고 있을 때 비가 머리 위로 내리기 시작했습니다.",
}


@pytest.mark.parametrize("lang", SENTENCES)
def test_text_of_the_right_language_is_never_doubted(lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for lines in ([SENTENCES[lang]], [SENTENCES[lang]] * 30, SENTENCES[lang].split()[:2], [SENTENCES[lang][:8]]):
        assert written_in(lines, lang) is None
    monkeypatch.setattr(mixups, "has_detector", lambda: False)
    assert written_in([SENTENCES[lang]] * 30, lang) is None


@pytest.mark.parametrize("lang", SENTENCES)
def test_text_of_any_other_language_is_noticed(lang: str) -> None:
    noticed = {other: written_in([SENTENCES[other]] * 5, lang) for other in SENTENCES if other != lang}
    assert noticed == {other: other for other in SENTENCES if other != lang}


@pytest.mark.parametrize(
    "lines", [[], [""], ["OK"], ["Hand"], ["12.5 %"], ["…", "!"], ["Berlin"], ["iPhone 15 Pro"], ["ALTER TABLE x"]]
)
@pytest.mark.parametrize("lang", ["en", "de", "zh", "tlh", "xx", None])
def test_a_short_text_or_an_unknown_language_gives_no_alarm(lines: list[str], lang: str | None) -> None:
    assert written_in(lines, lang) is None


def test_languages_in_two_scripts_and_near_relatives_are_left_alone() -> None:
    assert written_in(["Djeca su se igrala u vrtu kad je kiša počela padati po njihovim glavama."] * 5, "sr") is None
    assert written_in(["Børnene legede i haven, da regnen begyndte at falde ned over deres hoveder."] * 5, "nb") is None


def test_telling_words_decide_without_a_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixups, "has_detector", lambda: False)
    german = [SENTENCES["de"], "Ich weiß nicht, wie es mit dem Haus und der Arbeit für uns ist.", "Das hat er von mir."]
    assert written_in(german, "en") == "de"
    assert written_in([SENTENCES["th"]] * 3, "hi") == "th"
    assert written_in([SENTENCES["et"]] * 3, "fi") is None


@pytest.mark.parametrize(
    ("name", "lang", "expected"),
    [
        ("a.de", "en", "de"), ("a.de.gz", "en", "de"), ("a.de", "de-AT", None), ("a.txt", "en", None),
        ("a", "en", None), ("a.zh_TW", "zh", None), ("a.nb", "no", None), ("a.srt", "en", None),
        ("in.txt", "en", None), ("it.txt.gz", "en", None), ("in", "en", None),
        ("a.de", None, None), ("a.tok", "en", None), ("a.de", "xx", None), ("a.th", "hi", "th"),
    ],
)  # fmt: skip
def test_the_name_of_a_file_tells_its_language(name: str, lang: str | None, expected: str | None) -> None:
    assert named_otherwise(Path(name), lang) == expected


def test_swapped_files_are_refused_with_what_to_do() -> None:
    sides = [Side(Path("t.de"), "en", "runs/x translates from"), Side(Path("t.en"), "de", "runs/x translates into")]
    with pytest.raises(ConfigError) as refusal:
        refuse_by_name(sides, "add --from en if the name is wrong")
    assert str(refusal.value) == (
        "t.de: German (de) by its name, but runs/x translates from English (en): swap the two files, or add --from en "
        "if the name is wrong"
    )
    with pytest.raises(ConfigError, match=r"t\.fr: French \(fr\) by its name, .*: give text in English \(en\)$"):
        refuse_by_name([Side(Path("t.fr"), "en", "runs/x translates from")], "")


@pytest.mark.parametrize(
    ("name", "said"),
    [("out.fr", "out.fr: French (fr) by its name, but runs/x translates into German (de)"),
     ("out.de", None), ("out.txt", None), ("de.out", None), ("out.de-AT.txt", None)],
)  # fmt: skip
def test_a_file_to_write_whose_name_tells_another_language_is_doubted(name: str, said: str | None) -> None:
    assert doubt_about_name(Side(Path(name), "de", "runs/x translates into")) == said


def test_a_doubt_is_one_line_for_a_whole_text() -> None:
    said = doubt("t.txt", [SENTENCES["de"]] * 500, "en", "runs/x translates from")
    assert said == "t.txt: looks like German (de), but runs/x translates from English (en)"
    assert len(sample([SENTENCES["de"], ""] * 5000)) <= 60


def test_a_stream_is_judged_as_its_lines_come_and_named_once() -> None:
    warnings: list[str] = []
    watch = LanguageWatch("stdin", "en", "runs/x translates from", warnings.append)
    watch(["OK", ""])
    assert warnings == []
    watch([SENTENCES["de"]] * 4)
    expected = ["stdin: looks like German (de), but runs/x translates from English (en)"]
    assert warnings == expected
    for _ in range(50):
        watch([SENTENCES["fr"]])
    assert warnings == expected


def test_a_stream_of_the_right_language_or_of_none_is_left_alone() -> None:
    warnings: list[str] = []
    for lang in ("en", None):
        watch = LanguageWatch("stdin", lang, "runs/x translates from", warnings.append)
        for _ in range(100):
            watch([SENTENCES["en"], "", "Guten Tag"])
    assert warnings == []


def test_one_text_on_both_sides() -> None:
    lines = list(SENTENCES.values())
    assert are_one_text(lines, lines)
    assert not are_one_text(lines[:4], lines[:4])
    assert not are_one_text(lines, lines[::-1])


def test_a_few_kana_make_no_japanese_of_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixups, "has_detector", lambda: False)
    chinese = ["约翰・史密斯和玛丽・安・琼斯在公园里散步，这时开始下雨，他们就回家了。"]
    brand = ["优の美味的饼干在超市里卖得很好，孩子们都喜欢吃，大人们也常常买来送给朋友和邻居。"]
    assert written_in(chinese, "zh") is None
    assert written_in(brand, "zh") is None
    assert written_in(chinese, "ja") == written_in(brand, "ja") == "zh"
    assert written_in([SENTENCES["ja"]] * 3, "zh") == "ja"
    assert written_in(["東京都新宿区で開催された国際会議に多数の研究者が参加し、最新技術を発表した。"], "zh") == "ja"
