"""The documentation as a site, looked at as readers do; `make test-browser` builds it first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from docs.site.gather import DOCS
from docs.site.questions import listed

pytestmark = pytest.mark.browser

BUILT = DOCS / "_build/html"
PAGES = [
    "index", "start/demo", "how-to/translate", "how-to/data", "understand/paper", "understand/walk",
    "course/03-attention", "results/performance", "reference/settings", "lab/norms/index",
]  # fmt: skip
"""Ten pages: a first one, text, code, drawings, formulas, wide tables, long tables, figures."""
WIDTHS = {"phone": 375, "desktop": 1440}
MOST_BYTES = 300_000
"""Of a first view."""


class Quiet(SimpleHTTPRequestHandler):
    """Files, and no line for each of them."""

    def log_message(self, *said: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if not (BUILT / "zh/index.html").is_file():
        pytest.fail(f"no site in {BUILT}: make docs builds it")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(BUILT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("folder", ["", "zh/"], ids=["en", "zh"])
def test_ten_pages_fit_and_can_be_read_by_everybody(
    open_page: Callable[..., Any], url: str, width: int, scheme: str, folder: str
) -> None:
    page = open_page(url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for name in PAGES:
        page.goto(f"{url}{folder}{name}.html")
        wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown, name
        found = Axe().run(page)
        assert found.violations_count == 0, f"{name}: {found.generate_report()}"


@pytest.mark.parametrize("name", [*PAGES, "how-to/operate", "start/first-translator", "zh/index"])
def test_a_first_view_weighs_little(browser: Any, url: str, name: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 800})
    page, bytes_ = context.new_page(), []
    page.on("response", lambda response: bytes_.append(len(response.body())))
    page.goto(f"{url}{name}.html")
    page.wait_for_load_state("networkidle")
    assert sum(bytes_) < MOST_BYTES, f"{name}: {sum(bytes_):,}"
    context.close()


def found_by(page: Any, url: str, folder: str, words: str) -> list[str]:
    """The pages that the site's own search names, best first."""
    page.goto(f"{url}{folder}search.html?q={words}")
    page.wait_for_function("document.querySelector('#search-results .search-summary')?.textContent.trim()")
    links = page.locator("#search-results ul.search > li > a").evaluate_all("all => all.map((one) => one.href)")
    return list(dict.fromkeys(link.removeprefix(f"{url}{folder}").partition(".html")[0] for link in links))


@pytest.mark.parametrize("folder", ["", "zh/"], ids=["en", "zh"])
def test_the_search_finds_pages(open_page: Callable[..., Any], url: str, folder: str) -> None:
    page = open_page(url)
    asked = 0
    for question in listed():
        if folder and not (DOCS / "zh" / question.page).is_file():
            continue
        words = question.zh if folder else question.en
        assert question.page.removesuffix(".md") in found_by(page, url, folder, words)[:10], words
        asked += 1
    assert asked >= 20


def test_a_figure_has_the_colours_of_the_page(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url, color_scheme="light")
    page.goto(f"{url}understand/paper.html")
    page.evaluate("document.body.dataset.theme = 'dark'")
    figure = page.locator(".drawing img").first
    assert page.evaluate("getComputedStyle(document.querySelector('.drawing img')).colorScheme") == "dark"
    dark = figure.screenshot()
    page.evaluate("document.body.dataset.theme = 'light'")
    assert figure.screenshot() != dark


def test_a_box_of_a_drawing_leads_to_its_row_and_on_to_its_line(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    page.goto(f"{url}understand/paper.html")
    page.locator(".drawing a.box[href='#figure-1-5']").first.click()
    row = page.locator("tr", has=page.locator("#figure-1-5"))
    assert "feed-forward" in row.inner_text()
    row.get_by_role("link", name="Eq. 2", exact=True).click()
    equation = page.locator("tr", has=page.locator("#eq-feed-forward"))
    equation.get_by_role("link", name="model/feed_forward.py").click()
    line = """(at) => {
      let text = "";
      for (let next = at.nextSibling; next && !text.includes("\\n"); next = next.nextSibling) text += next.textContent;
      return text.split("\\n")[0];
    }"""
    assert "return F.relu(x)" in page.locator(f"[id='{page.url.partition('#')[2]}']").evaluate(line)


def test_print_has_the_text_alone(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url, color_scheme="dark")
    page.goto(f"{url}course/03-attention.html")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('article img')).colorScheme") == "light"
    assert page.locator("article h1").is_visible()
    for part in (".sidebar-drawer", ".toc-drawer", "footer", ".mobile-header", ".theme-toggle"):
        for one in page.locator(part).all():
            assert not one.is_visible(), part
    assert len(page.pdf()) > 10_000


@pytest.mark.parametrize(("folder", "said"), [("", "hund"), ("zh/", "狗")], ids=["en", "zh"])
def test_the_translator_in_the_page_translates(open_page: Callable[..., Any], url: str, folder: str, said: str) -> None:
    page = open_page(url)
    page.goto(f"{url}{folder}understand/play.html")
    assert [frame.url for frame in page.frames[1:]] in ([], [""])  # closed, it loads nothing
    page.locator(".translator summary").click()
    inside = page.frame_locator(".translator iframe")
    inside.locator("#source").fill("The girl sees the dog.")
    inside.locator("#result:not(.old):not(:empty)").wait_for(timeout=30_000)
    assert said in inside.locator("#result").inner_text().lower()
    inside.locator("#explorer .ex-chip").first.wait_for(timeout=30_000)


@pytest.mark.parametrize(("folder", "said"), [("", "Undo all changes"), ("zh/", "撤销全部改动")], ids=["en", "zh"])
def test_the_model_of_the_walk_can_be_changed(open_page: Callable[..., Any], url: str, folder: str, said: str) -> None:
    page = open_page(url, locale="zh-CN" if folder else "en-US")
    page.goto(f"{url}{folder}understand/walk.html")
    page.locator(".translator summary").click()
    inside = page.frame_locator(".translator iframe")
    inside.locator("#result", has_text="die Katze sieht den Hund").wait_for(timeout=30_000)
    inside.locator("#inside").scroll_into_view_if_needed()
    inside.get_by_role("button", name=said).wait_for(timeout=30_000)
    inside.locator(".in-maps canvas").first.wait_for(timeout=30_000)


@pytest.mark.parametrize(
    ("folder", "words"), [("", "rows fit, of"), ("zh/", "行相符，共")], ids=["en", "zh"]
)  # fmt: skip
def test_the_vocabulary_of_table_3_can_be_moved(
    open_page: Callable[..., Any], url: str, folder: str, words: str
) -> None:
    page = open_page(url)
    page.goto(f"{url}{folder}understand/paper.html")
    size, total = page.locator("#vocabulary-size"), page.locator("div.vocabulary [role=status]")
    for vocabulary, fitting, big in ((37000, 0, False), (41000, 10, False), (36000, 1, True)):
        size.evaluate("(at, value) => { at.value = value; at.dispatchEvent(new Event('input')); }", vocabulary)
        assert total.inner_text() == f"{fitting} {words} 11"
        assert page.locator("div.vocabulary tbody tr").last.evaluate("row => row.className === 'fits'") is big
