"""The laboratory in Chinese: every report that the documentation keeps, and a page as ``--lang zh`` writes it."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.lab import EXPERIMENTS
from dragoman.lab.chinese import Words, figure_in_chinese, in_chinese, label_words, report_words, said, untranslated
from dragoman.lab.experiment import Lab
from dragoman.lab.report import run_experiment

REPORTS = Path(__file__).parents[2] / "docs/lab"
NAMES = sorted(path.parent.name for path in REPORTS.glob("*/numbers.json"))


@pytest.fixture(autouse=True)
def nothing_is_missing() -> None:
    report_words().missing.clear()
    label_words().missing.clear()


def digits(text: str) -> Counter[str]:
    """Return the numbers of a text, and how often each occurs."""
    return Counter(re.findall(r"\d[\d.,]*\d|\d", text))


@pytest.mark.parametrize("name", NAMES)
def test_every_text_and_label_of_a_report_has_chinese_with_its_numbers(name: str) -> None:
    record = json.loads((REPORTS / name / "numbers.json").read_text(encoding="utf-8"))
    chinese = in_chinese(record)
    for figure in record["figures"]:
        figure_in_chinese((REPORTS / name / figure["file"]).read_text(encoding="utf-8"))
    assert untranslated() == set()
    for claim, other in zip(record["verdict"], chinese["verdict"], strict=True):
        lost = digits(f"{claim['text']}: {claim['figures']}") - digits(other["text"])
        assert not lost, (claim, other["text"])
    for section, other in zip(record["sections"], chinese["sections"], strict=True):
        assert not section["table"] or other["table"]["kinds"] == section["table"]["kinds"]


def test_gaps_are_those_of_a_lazy_pattern() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        entry = "=" + "".join(chance.choice(["a", "b", "{}"]) for _ in range(chance.randint(1, 5)))
        text = "=" + "".join(chance.choice("ab") for _ in range(chance.randint(0, 9)))
        if "{}" not in entry:
            continue
        found = re.fullmatch(r"(.+?)".join(map(re.escape, entry.split("{}"))), text)
        expected = None if found is None else "|".join(found.groups())
        assert Words({entry: "|".join(["{}"] * entry.count("{}"))}).find(text) == expected, (entry, text)


def test_a_page_in_chinese_and_its_record_in_english(tmp_path: Path) -> None:
    run_experiment("attention", tmp_path, Lab(tmp_path, quick=True, language="zh"))
    page = (tmp_path / "attention/index.html").read_text(encoding="utf-8")
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert untranslated() == set()
    for text in (page, index):
        assert '<html lang="zh-Hans"' in text
        prose = re.sub(r"<style>.*?</style>|<code>.*?</code>|<[^>]+>", " ", text, flags=re.DOTALL)
        assert not re.search(r"\b(?:the|of|is|and)\b", prose), prose
    assert said(f"{EXPERIMENTS['attention']}.", "zh") in page
    assert said(f"{EXPERIMENTS['masks']}.", "zh") in index
    record = json.loads((tmp_path / "attention/numbers.json").read_text(encoding="utf-8"))
    assert record["claim"] == EXPERIMENTS["attention"]
    figures = list(tmp_path.glob("attention/*.svg"))
    assert figures
    assert all(re.search(r"[一-鿿]", path.read_text(encoding="utf-8")) for path in figures)


def test_the_command_speaks_chinese_and_names_what_stays_english(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = command("lab", "attention", "--quick", "--lang", "zh", "--out", tmp_path)
    assert done.status == 0
    assert done.out.decode().startswith("未决  每一行权重之和为 1：")
    assert "have no Chinese" not in done.err
    words = Words({"holds": "成立"})
    monkeypatch.setattr("dragoman.lab.chinese.report_words", lambda: words)
    done = command("lab", "attention", "--quick", "--lang", "zh", "--out", tmp_path)
    assert b"Each row of weights sums to 1" in done.out
    assert re.search(r"\d+ texts have no Chinese and are in English, such as: \S", done.err)
