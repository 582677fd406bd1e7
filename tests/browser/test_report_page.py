"""The page of ``dragoman report``: curves of several runs and their translations, at three widths in both themes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.history.report import write_report
from dragoman.history.translations import compare_outputs

pytestmark = pytest.mark.browser

WIDTHS = {"phone": 375, "tablet": 768, "desktop": 1440}
LONG = "ein-Wort-das-so-lang-ist-dass-es-in-keine-Spalte-passt" * 3


@pytest.fixture(scope="module")
def report(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two runs, one of them with a long name, and of two outputs."""
    folder = tmp_path_factory.mktemp("report")
    other = folder / "a-run-with-a-name-that-is-longer-than-a-column-of-a-table-on-a-phone"
    shutil.copytree(tiny_run, other)
    refs = [f"der hund schläft {i}" for i in range(40)]
    outputs = [("one.txt", [*refs[:39], LONG]), ("two.txt", [ref.replace("hund", "mann") for ref in refs])]
    compared = compare_outputs(outputs, refs, [f"the dog sleeps {i}" for i in range(40)], "de")
    write_report([tiny_run, other], folder / "page.html", compared)
    return folder / "page.html"


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(
    open_page: Callable[..., Any], check_look: Callable[[Any, str], None], report: Path, width: int, scheme: str
) -> None:
    page = open_page(report.as_uri(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    check_look(page, scheme)


def test_curves_are_shown_over_steps_minutes_or_tokens(open_page: Callable[..., Any], report: Path) -> None:
    page = open_page(report.as_uri())
    shown = page.locator("figure .frame:visible")
    assert "steps" in (shown.first.locator("svg").get_attribute("aria-label") or "")
    page.locator("#by-steps").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#by-minutes").is_checked()
    assert "on-minutes" in (shown.first.get_attribute("class") or "")
    page.locator("label[for=by-tokens]").click()
    assert "on-tokens" in (shown.first.get_attribute("class") or "")
    assert shown.count() == page.locator("figure").count() > 1


def test_words_that_differ_are_marked_and_lines_that_differ_most_come_first(
    open_page: Callable[..., Any], report: Path
) -> None:
    page = open_page(report.as_uri())
    assert page.locator("#translations").is_visible()
    assert page.locator(".sentence").first.locator("h3").inner_text() == "Line 40"
    assert "mann" in page.locator(".sentence mark").all_inner_texts()
