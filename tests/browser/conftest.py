"""Chromium, driven by Playwright: `make test-browser` installs both."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api")

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    if CHROMIUM is None:
        pytest.fail("no Chromium here: make test-browser installs it")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens a page; at the end there was no error and no request to another host."""
    contexts, wrong = [], []

    def visit(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"locale": "en-US", **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        own = (url.partition("#")[0], "blob:")
        page.on("request", lambda request: request.url.startswith(own) or wrong.append(request.url))
        page.goto(url)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def check_look() -> Callable[[Any, str], None]:
    """A check that a page is no wider than its window, has no violation of axe, and is light or dark as asked."""
    from axe_playwright_python.sync_playwright import Axe

    def check(page: Any, scheme: str) -> None:
        wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown
        report = Axe().run(page)
        assert report.violations_count == 0, report.generate_report()
        light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert light == (scheme == "light")

    return check
