"""Languages read off file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.data.languages import language_of, primary


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
