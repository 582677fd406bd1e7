"""The page of the server, used as people use it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from dragoman.serving.app import build
from dragoman.serving.options import ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.translation.translator import Translator

pytestmark = pytest.mark.browser

WIDTHS = {"phone": 390, "tablet": 768, "desktop": 1280}


@pytest.fixture(scope="module")
def url(tiny_run: Path) -> Iterator[str]:
    app, state = build(Pairs([Translator.load(tiny_run)]), ServeOptions())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    state.service.warm()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


def translated(page: Any, text: str) -> str:
    page.fill("#source", text)
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    return str(page.inner_text("#result"))


def test_translate_as_one_types_and_see_which_word_went_where(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    assert translated(page, "the dog sees a cat").startswith("der hund")
    page.locator("#lines .words").nth(0).locator(".word").nth(1).hover()
    lit = page.locator("#lines .words").nth(1).locator(".lit")
    assert lit.count() >= 1
    assert page.locator("#alternatives li").count() == 3
    page.click("#clear")
    assert page.inner_text("#result") == ""
    assert page.locator("#others").is_hidden()


def test_lines_and_keyboard(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    assert translated(page, "the dog\n\na cat").count("\n") == 2
    first = page.locator("#lines .word").first
    first.focus()
    assert "at" in (first.get_attribute("class") or "").split()
    page.keyboard.press("Tab")
    assert "at" not in (first.get_attribute("class") or "").split()


def test_only_the_last_of_quick_changes_is_shown(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    for text in ("the dog", "the dog sees", "a cat sleeps"):
        page.fill("#source", text)
        page.wait_for_timeout(320)
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    words = page.locator("#lines .words").nth(0).inner_text().split()
    assert words == ["a", "cat", "sleeps"]


def test_text_never_becomes_html(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    for payload in ("<img src=x onerror=alert(1)>", "<script>alert(1)</script>", '"><svg onload=alert(1)>'):
        dialogs: list[str] = []
        page.on("dialog", lambda dialog, dialogs=dialogs: (dialogs.append(dialog.message), dialog.dismiss()))
        translated(page, payload)
        assert page.locator("main img, main svg, main script:not([type])").count() == 0
        assert dialogs == []


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(open_page: Callable[..., Any], url: str, width: int, scheme: str) -> None:
    page = open_page(url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    translated(page, "the dog sees a cat and the man likes the house " * 3)
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown


def test_it_speaks_chinese_and_has_a_dark_theme(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url, locale="zh-CN")
    assert page.inner_text("#from-label") == "源语言"
    page.click("#language")
    assert page.inner_text("#from-label") == "From"
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_the_attention_has_a_page(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    translated(page, "the dog sees a cat")
    page.goto(url + str(page.get_attribute("#why", "href")))
    assert page.locator("#map td").count() > 10
