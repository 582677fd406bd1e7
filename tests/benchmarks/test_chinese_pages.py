"""The Chinese twins of pages that programs make say what these say, all of it in Chinese."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import chinese_pages
from dragoman.lab.chinese import Words


def test_the_chinese_pages_are_made_from_the_english_ones() -> None:
    found = list(chinese_pages.pages())
    assert len(found) >= 19
    for path, text, missing in found:
        assert missing == set(), path
        assert path.read_text(encoding="utf-8") == text, "python -m benchmarks.chinese_pages"


def test_numbers_and_code_are_kept_and_links_lead_to_the_chinese_page() -> None:
    entries = {
        "# scaling": "# 缩放（scaling）",
        "holds": "成立",
        "Off by {} to {}": "差 {} 到 {}",
        "`dragoman lab {}` took {} minutes.": "`dragoman lab {}` 用了 {} 分钟。",
        "See [the table](../README.md).": "见[表](../README.md)。",
        "to": "至",
        "scaling": "缩放",  # a name in code stays
    }
    words = Words(entries)
    text = "`dragoman lab scaling` took 3.1 minutes. See [the table](../README.md).\n\n- *holds*: Off by 7% to 31%\n"
    assert chinese_pages.prose(text, words) == (
        "`dragoman lab scaling` 用了 3.1 分钟。见[表](../README.md)。\n\n- *成立*：差 7% 到 31%\n"
    )
    row = "| [scaling](scaling/README.md) | 1,024 to 8,192 |\n"
    assert chinese_pages.prose(row, words) == "| [缩放（scaling）](scaling/README.md) | 1,024 至 8,192 |\n"
    assert words.missing == set()
    page = chinese_pages.PAGES / "lab/scaling/index.md"
    english = chinese_pages.DOCS / "lab/scaling/README.md"
    turned = {"../README.md": "../index.md", "variance.svg": "../../../lab/scaling/variance.svg"}
    for link, expected in {**turned, "https://a.org/b": "https://a.org/b"}.items():
        assert chinese_pages.turned_link(link, english, page) == expected


def test_english_that_is_left_is_named() -> None:
    page = "---\nenglish: 1\n---\n\n# 一\n\n`in code` [见](in a link)，Voita et al. 2019，the same 一行\n"
    assert chinese_pages.english_in(page) == ["the same"]


def test_a_sentence_without_chinese_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "words.yaml").write_text('"holds": "成立"\n', encoding="utf-8")
    monkeypatch.setattr(chinese_pages, "WORDS", tmp_path / "words.yaml")
    with pytest.raises(SystemExit, match=r"no Chinese for what \S+ says:\n.+"):
        chinese_pages.main()
