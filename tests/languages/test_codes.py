"""Languages read off file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.languages.codes import _TWO_LETTERS, UNSPACED, language_of, primary
from dragoman.languages.scripts import _SCRIPTS_OF
from dragoman.languages.stopwords import profiles


@pytest.mark.parametrize(
    ("name", "lang"),
    [
        ("train.en", "en"), ("train.en.gz", "en"), ("de.txt", "de"), ("a.tok.deu", "deu"), ("train.zh-CN", "zh-CN"),
        ("x.pt_BR.zst", "pt_BR"), ("corpus.src", None), ("a.tgt", None), ("my.raw", None), ("text", None),
        ("a.b2", None),
    ],
)  # fmt: skip
def test_a_language_is_the_last_part_of_a_name_if_it_looks_like_one(name: str, lang: str | None) -> None:
    assert language_of(Path("some.en") / name) == lang


def test_the_primary_language_is_what_counts() -> None:
    assert [primary(lang) for lang in ("zh-CN", "zh_TW", "ZH", "en", None)] == ["zh", "zh", "zh", "en", ""]


@pytest.mark.parametrize(
    ("lang", "short"), [("zho", "zh"), ("cmn_Hans", "zh"), ("chi", "zh"), ("jpn", "ja"), ("THA", "th"), ("deu", "de"),
                        ("ger-AT", "de"), ("eng_Latn", "en"), ("yue", "yue"), ("gsw", "gsw")],
)  # fmt: skip
def test_codes_of_three_letters_mean_the_same_languages(lang: str, short: str) -> None:
    assert primary(lang) == short


def test_each_language_of_which_something_is_known_has_its_code_of_three_letters() -> None:
    known = {lang for lang in (*UNSPACED, *profiles(), *_SCRIPTS_OF) if len(lang) == 2 and lang != "iw"}
    assert known <= set(_TWO_LETTERS.values())
