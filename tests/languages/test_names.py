"""Names of languages as headings have them, also in Chinese, Japanese and Korean."""

from __future__ import annotations

import pytest

from dragoman.languages.names import code_named


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ("英文|英语|英語|영문|영어|English", "en"),
        ("德文|德语|德語|独語|ドイツ語|독일어", "de"),
        ("法文|法语|法語|仏語", "fr"),
        ("日文|日语|日語|和文|일문", "ja"),
        ("韩文|韓文|韩语|韓語|韩国语|朝鲜语|朝鮮語|한글", "ko"),
        ("俄文|俄语|俄語|俄罗斯语|俄羅斯語", "ru"),
        ("西班牙文|西班牙語", "es"),
        ("葡萄牙文|葡文", "pt"),
        ("義大利文|意大利语|義大利語", "it"),
        ("荷蘭文|荷兰语|荷蘭語", "nl"),
        ("烏克蘭文|乌克兰文", "uk"),
        ("希臘文|希腊文", "el"),
        ("印尼文|印尼語", "id"),
        ("中文|汉语|國語|普通话|중문", "zh"),
        ("简体中文|簡體中文|中文（简体）|中文(简体)|简体字中文", "zh-Hans"),
        ("簡体字中国語|中国語（簡体字）|중국어(간체)|간체 중국어", "zh-Hans"),
        ("繁體中文|繁体中文|正體中文|中文（繁體）|中国語（繁体字）|중국어 번체|Chinese (Traditional)", "zh-Hant"),
        ("English（US）|US English|English (US)", "en-US"),
        ("ノルウェー語（ブークモール）", "nb"),
    ],
)  # fmt: skip
def test_a_language_is_known_by_its_usual_names(names: str, code: str) -> None:
    assert {name: code_named(name) for name in names.split("|")} == dict.fromkeys(names.split("|"), code)


@pytest.mark.parametrize(
    "text", ["文", "语", "原文", "作文", "課文", "西文", "简体", "繁體字", "US", "usenglish", "中文书"]
)
def test_another_word_is_no_language(text: str) -> None:
    assert code_named(text) is None
