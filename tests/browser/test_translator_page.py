"""The translator in one HTML file, opened from the disk as people open it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from axe_playwright_python.sync_playwright import Axe

import dragoman
from dragoman.explanation.explain import explain
from dragoman.translation.translator import Translator

pytestmark = pytest.mark.browser

WIDTHS = {"phone": 375, "tablet": 768, "desktop": 1440}
TEXT = "the dog sees a cat and the man likes the house"


@pytest.fixture(scope="module")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "run"
    shutil.copytree(tiny_run / "bundle", folder / "bundle")
    return folder


@pytest.fixture(scope="module")
def url(run: Path) -> str:
    return dragoman.export(run, "page", run / "translator.html", "float32").as_uri()


def translated(page: Any, text: str) -> str:
    page.fill("#source", text)
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    return str(page.inner_text("#result"))


def explored(page: Any, text: str) -> None:
    """Translate, and wait for the explorer to show the first sentence."""
    translated(page, text)
    page.locator("#explorer dd", has_text=text.split(".")[0]).first.wait_for(timeout=20_000)


def test_it_translates_as_dragoman_does(open_page: Callable[..., Any], run: Path, url: str, corpus: Any) -> None:
    page, translator = open_page(url), Translator.load(run)
    lines = corpus.valid_src.read_text().splitlines()[:10]
    ours = [one.text for one in translator.translate(lines, guard=False)]
    assert translated(page, "\n".join(lines)).split("\n") == ours
    page.click("#clear")
    assert page.inner_text("#result") == ""
    assert page.locator("#why").is_hidden()


def test_it_works_offline_and_sends_nothing(browser: Any, url: str) -> None:
    context = browser.new_context(offline=True, locale="en-US")
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    assert translated(page, TEXT).startswith("der hund")
    assert [one for one in asked if not one.startswith(("file:", "blob:"))] == []
    assert page.evaluate("fetch('https://example.org').then(() => 'sent', () => 'refused')") == "refused"
    context.close()


def test_a_later_text_takes_the_place_of_an_earlier_one(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    page.fill("#source", "\n".join([TEXT] * 300))
    page.wait_for_timeout(400)
    assert translated(page, "a cat") == "ein katze"
    page.wait_for_timeout(300)
    assert page.inner_text("#result") == "ein katze"


def test_what_is_shown_is_never_that_of_an_earlier_text(open_page: Callable[..., Any], url: str) -> None:
    """However long the worker takes, and it is busy here: at once, before any other event."""
    page = open_page(url)
    assert translated(page, TEXT).startswith("der hund")
    page.fill("#source", "\n".join([TEXT] * 300))
    changed = page.evaluate("""() => {
        const $ = (id) => document.getElementById(id), after = [];
        const note = () => {
            after.push([$("result").textContent, $("result").classList.contains("old"), $("why").hidden]);
        };
        $("source").value = "a cat";
        $("source").dispatchEvent(new Event("input"));
        note();
        $("clear").click();
        note();
        return after;
    }""")
    assert [old for _, old, _ in changed] == [True, False]
    assert (changed[1][0], changed[1][2]) == ("", True)
    assert translated(page, "a cat") == "ein katze"


def test_the_page_never_waits_for_the_model(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    assert page.evaluate("typeof Transformer") == "undefined"
    translated(page, TEXT)
    assert len(page.workers) == 1  # where the model is


def test_words_heads_and_steps(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    explored(page, TEXT)
    page.locator(".ex-queries .ex-chip").nth(1).hover()
    shares = [float(text[:-1]) for text in page.locator(".ex-keys small").all_inner_texts() if text]
    assert sum(shares) == pytest.approx(100, abs=4)
    page.locator(".ex-thumb").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert "head 1" in page.inner_text(".ex-one h3")
    page.locator(".ex-player [data-sign='›']").focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".ex-steps span").startswith("Step 2 of")


def test_another_candidate_is_decoded_in_the_page(open_page: Callable[..., Any], run: Path, url: str) -> None:
    page = open_page(url)
    explored(page, TEXT)
    before = page.locator("#explorer dd").nth(1).inner_text()
    other = page.locator(".ex-candidates li button:enabled").first
    chosen = other.locator("bdi").inner_text()
    other.click()
    page.locator(".ex-original").wait_for(timeout=20_000)
    assert page.locator(".ex-player [aria-current] bdi").inner_text() == chosen
    now = page.locator("#explorer dd").nth(1).inner_text()
    translator = Translator.load(run)
    trace = explain(translator, TEXT)
    first = next(i for i, (name, _) in zip(trace.steps[0].best_ids, trace.steps[0].best, strict=True) if name == chosen)
    assert now == explain(translator, TEXT, prefix=[first]).translation != before
    page.click(".ex-original")
    assert page.locator("#explorer dd").nth(1).inner_text() == before


# --- inside one head --------------------------------------------------------------------------------------------------


def opened(page: Any, text: str = TEXT) -> Any:
    """Look inside one head of a sentence, and wait for its matrices."""
    explored(page, text)
    inside = page.locator("#inside")
    inside.scroll_into_view_if_needed()
    inside.locator(".in-maps canvas").first.wait_for(timeout=20_000)
    return inside


def changed(inside: Any) -> None:
    """Wait for the probabilities of the changed model and for what it writes."""
    inside.locator(".in-steps thead th", has_text="changed").wait_for(timeout=20_000)
    inside.locator(".in-writes", has_text="The changed model writes:").wait_for(timeout=20_000)


def shares(inside: Any) -> list[int]:
    return [int(text[:-1]) for text in inside.locator(".in-view > .in-table tbody .in-weight span").all_inner_texts()]


def test_the_matrices_are_those_of_the_head_and_step_that_are_looked_at(
    open_page: Callable[..., Any], url: str
) -> None:
    page = open_page(url)
    inside = opened(page)
    assert inside.locator("figure").count() == 3
    assert inside.locator(".in-view > h3").inner_text().startswith("Translation to source, layer")
    assert inside.locator(".in-rows select").input_value() == "0"
    assert sum(shares(inside)) == pytest.approx(100, abs=6)
    before = inside.locator(".in-query").inner_text()
    page.locator(".ex-player [data-sign='›']").click()
    inside.locator(".in-query", has_not_text=before).wait_for(timeout=20_000)
    assert inside.locator(".in-rows select").input_value() == "1"
    page.get_by_role("button", name="Source to itself").click()
    inside.scroll_into_view_if_needed()  # what is not looked at is not computed
    inside.locator("h3", has_text="source to itself").wait_for()
    keys = inside.locator(".in-view > .in-table tbody th")
    assert keys.last.inner_text() == "(end)"
    inside.locator(".in-rows select").select_option("2")
    inside.locator(".in-query", has_text=keys.nth(2).inner_text()).wait_for(timeout=20_000)


def test_a_switch_changes_the_model_and_all_can_be_undone(open_page: Callable[..., Any], run: Path, url: str) -> None:
    page = open_page(url)
    inside = opened(page)
    inside.get_by_label("Divide scores by √d_k").uncheck()
    changed(inside)
    assert "÷ √" not in inside.locator("figcaption").first.inner_text()
    inside.get_by_role("combobox", name="Mask", exact=True).select_option("none")
    inside.get_by_label("Padding after the source").select_option("2")
    inside.locator(".in-view > .in-table tbody th", has_text="(padding)").first.wait_for(timeout=20_000)
    inside.get_by_label("Temperature of the softmax: 1").evaluate(
        "(at) => { at.value = 2; at.dispatchEvent(new Event('input')); }"
    )
    inside.get_by_label("Temperature of the softmax: 4").wait_for()
    inside.get_by_role("button", name="Remove head").click()
    inside.get_by_role("button", name="Put back head").wait_for()
    assert shares(inside) != []
    word = inside.locator(".in-chips button[aria-pressed]").first
    word.click()
    assert word.get_attribute("aria-pressed") == "true"
    changed(inside)
    inside.get_by_role("button", name="Undo all changes").click()
    inside.locator(".in-steps thead th", has_text="changed").wait_for(state="detached", timeout=20_000)
    assert inside.locator(".in-writes").inner_text() == ""
    assert page.inner_text("#result") == Translator.load(run).translate([TEXT], guard=False)[0].text


def test_a_row_of_another_sentence_is_put_in(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    inside = opened(page, "the dog sees a cat")
    field = inside.get_by_label("Another sentence")
    field.fill("the man sees a cat")
    field.press("Enter")
    inside.get_by_label("Replace the row of").wait_for(timeout=20_000)
    assert inside.get_by_label("Replace the row of").input_value() == "1"  # where the two differ
    changed(inside)
    inside.get_by_role("combobox", name="After", exact=True).select_option("decoder 1")
    changed(inside)
    field = inside.get_by_label("Another sentence")
    field.fill("")
    field.press("Enter")
    inside.locator(".in-steps thead th", has_text="changed").wait_for(state="detached", timeout=20_000)


def test_a_link_may_hold_a_text(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(f"{url}#a%20cat")
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    assert page.input_value("#source") == "a cat"


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_inside_fits_and_can_be_used_by_everybody(
    open_page: Callable[..., Any], url: str, language: str, width: int, scheme: str
) -> None:
    page = open_page(url, viewport={"width": width, "height": 900}, color_scheme=scheme, locale=language)
    inside = opened(page)
    inside.locator(".in-tick input").first.uncheck()
    inside.locator(".in-masks select").nth(0).select_option("inverted")
    inside.locator(".in-chips button").first.click()
    inside.locator(".in-notes li").nth(2).wait_for()
    inside.locator(".in-writes bdi").wait_for(timeout=20_000)
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown
    report = Axe().run(page)
    assert report.violations_count == 0, report.generate_report()


def test_a_sentence_is_chosen_of_several(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    explored(page, "the dog sees. A cat.\n\nthe man")
    assert page.inner_text("#result").count("\n") == 2
    page.select_option("#sentence", index=2)
    page.locator("#explorer dd", has_text="the man").first.wait_for(timeout=20_000)


def test_what_is_shown_can_be_kept(open_page: Callable[..., Any], url: str, tmp_path: Path) -> None:
    page = open_page(url)
    explored(page, TEXT)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save the picture").first.click()
    waiting.value.save_as(tmp_path / "links.svg")
    assert ElementTree.parse(tmp_path / "links.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as a page").click()
    waiting.value.save_as(tmp_path / "state.html")
    again = open_page((tmp_path / "state.html").as_uri())
    assert again.locator("dd", has_text=TEXT).count() == 1
    assert (tmp_path / "state.html").stat().st_size < 300_000  # without the model


def test_text_never_becomes_html(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    for payload in ("<img src=x onerror=alert(1)>", "<script>alert(1)</script>"):
        explored(page, payload)
        assert page.locator("main img, main svg:not(.ex-links), main script").count() == 0


def test_a_damaged_file_says_so(browser: Any, run: Path, url: str, tmp_path: Path) -> None:
    text = (run / "translator.html").read_text(encoding="utf-8")
    longer = text.replace('id="weights">', 'id="weights">AAAA')
    at = text.index('id="worker">') + 2000
    other = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
    for damaged in (longer, other, text[:-20_000], text[: text.index('id="weights">')]):
        (tmp_path / "damaged.html").write_text(damaged, encoding="utf-8")
        page = browser.new_page(locale="en-US")
        page.goto((tmp_path / "damaged.html").as_uri())
        said = page.locator("#state", has_text="This file cannot translate here: it is damaged, so get it again")
        said.wait_for(timeout=20_000)
        page.close()


def test_a_file_whose_scripts_are_damaged_says_so(browser: Any, run: Path, url: str, tmp_path: Path) -> None:
    """The policy of the page lets no changed script run."""
    text = (run / "translator.html").read_text(encoding="utf-8")
    for place in ("const PAUSE_MS", "const SUMS", '"content":'):
        at = text.rindex(place)
        (tmp_path / "damaged.html").write_text(text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :], encoding="utf-8")
        page = browser.new_page(locale="en-US")
        page.goto((tmp_path / "damaged.html").as_uri())
        page.locator("#damaged", has_text="This file is damaged: get it again.").wait_for(timeout=20_000)
        page.close()


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(open_page: Callable[..., Any], url: str, width: int, scheme: str) -> None:
    page = open_page(url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    explored(page, TEXT)
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_phone_is_told_what_fingers_do(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url, viewport={"width": 375, "height": 800}, has_touch=True, is_mobile=True)
    assert page.locator("#pair").bounding_box()["height"] < 40  # one line
    explored(page, TEXT)
    hint = page.inner_text(".ex-said")
    assert hint == "Tap a word. Tap it again to let it go."
    word = page.locator(".ex-queries .ex-chip").nth(1)
    word.tap()
    assert "looks at" in page.inner_text(".ex-said")
    word.tap()
    page.locator(".ex-said", has_text=hint).wait_for()


def test_it_speaks_chinese_and_has_a_dark_theme(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url, locale="zh-CN")
    assert page.inner_text("#clear") == "清空"
    explored(page, TEXT)
    assert page.inner_text(".ex-bar button >> nth=0") == "译文看原文"
    assert "Intl.Segmenter" in page.inner_text("footer")
    page.click("#language")
    assert page.inner_text("#clear") == "Clear"
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_the_sentence_that_is_looked_at_stays_chosen_while_the_text_is_the_same(
    open_page: Callable[..., Any], url: str
) -> None:
    page = open_page(url)
    explored(page, "The dog sees. The cat sleeps.")
    page.select_option("#sentence", "1")
    page.locator("#explorer dd", has_text="The cat sleeps").first.wait_for(timeout=20_000)
    page.focus("#source")
    page.keyboard.press("End")
    page.keyboard.type(" ")
    page.locator("#result:not(.old)").wait_for(timeout=20_000)
    assert page.input_value("#sentence") == "1"
    assert page.locator("#explorer dd").first.inner_text() == "The cat sleeps."


def test_another_target_language_shows_its_own_attention(
    open_page: Callable[..., Any], several_run: Path, tmp_path: Path
) -> None:
    page = open_page(dragoman.export(several_run, "page", tmp_path / "page.html", "float32").as_uri())
    explored(page, "the dog sees a cat")
    shown = page.locator("#explorer dd").nth(1)
    assert shown.inner_text() == page.inner_text("#result")
    other = next(code for code in ("de", "fr") if code != page.input_value("#target"))
    page.select_option("#target", other)
    assert page.locator("#why").is_hidden()
    page.locator("#why").wait_for(timeout=20_000)
    page.locator("#result:not(.old)").wait_for(timeout=20_000)
    page.wait_for_function(
        "document.querySelectorAll('#explorer dd')[1].textContent === document.getElementById('result').textContent",
        timeout=20_000,
    )
