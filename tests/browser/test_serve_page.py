"""The page of the server, used as people use it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe

from dragoman.bundle import Bundle, load_bundle
from dragoman.serving.app import build
from dragoman.serving.options import ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.translation.translator import Translator
from echo import Echo

pytestmark = pytest.mark.browser

WIDTHS = {"phone": 375, "tablet": 768, "desktop": 1440}


@contextmanager
def served(*translators: Translator, **defaults: Any) -> Iterator[str]:
    app, state = build(Pairs(translators), ServeOptions())
    state.service.defaults = replace(state.service.defaults, **defaults)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    state.service.warm()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def url(tiny_run: Path) -> Iterator[str]:
    with served(Translator.load(tiny_run)) as found:
        yield found


@pytest.fixture(scope="module")
def echoing(tiny_run: Path) -> Iterator[str]:
    """A server whose translations are their sources."""
    real = load_bundle(tiny_run)
    model: Any = Echo(real.tgt_tokenizer.vocab_size)
    with served(Translator(Bundle(real.config, model, *real[2:4], {})), guard=False) as found:
        yield found


def translated(page: Any, text: str) -> str:
    page.fill("#source", text)
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    return str(page.inner_text("#result"))


def echoed(page: Any, text: str) -> None:
    """Translate with a model that copies, and wait for the whole text to stand there."""
    page.fill("#source", text)
    page.locator("#result:not(.old)", has_text=text).wait_for(timeout=20_000)


def explored(page: Any, text: str) -> None:
    """Translate, and wait for the explorer to show this text."""
    translated(page, text)
    page.locator("#explorer dd", has_text=text).first.wait_for(timeout=20_000)


def test_translate_as_one_types(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    assert translated(page, "the dog sees a cat").startswith("der hund")
    assert page.locator("#alternatives li").count() == 3
    page.click("#clear")
    assert page.inner_text("#result") == ""
    assert page.locator("#others").is_hidden()
    assert page.locator("#why").is_hidden()


def test_a_glossary(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    translated(page, "the dog sees a cat")
    page.click("#terms summary")
    page.fill("#glossary", "dog = haus")
    page.locator("#result", has_text="haus").wait_for(timeout=20_000)


def test_a_document_is_chosen_translated_and_saved(open_page: Callable[..., Any], url: str, tmp_path: Path) -> None:
    page = open_page(url)
    page.click("#document summary")
    for box in page.locator("#document-options input").all():  # the others are for other formats
        box.check()
    html = b"<html lang=en><p>the dog</p><p>a cat</p>"
    page.set_input_files("#file", {"name": "a.html", "mimeType": "text/html", "buffer": html})
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    assert page.inner_text("#document-state") == "2 of 2 segments translated."
    text = saved(page, page.locator("#document-result"), tmp_path / "b.html")
    assert text.startswith("<html lang=de><p>der hund")
    assert text.count("<p>") == 2
    page.click("#language")
    assert page.inner_text("#document summary") == "文档"


def test_the_column_of_a_table_is_chosen(open_page: Callable[..., Any], url: str, tmp_path: Path) -> None:
    page = open_page(url)
    table = b'id,"said, by whom",name\r\n1,the dog,the dog\r\n'
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": table})
    page.locator("#columns button").first.wait_for()
    assert page.locator("#columns button").all_inner_texts() == ["id", "said, by whom", "name"]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    rows = saved(page, page.locator("#document-result"), tmp_path / "b.csv").splitlines()
    assert rows[0] == 'id,"said, by whom",name'
    assert rows[1].startswith("1,der hund")
    assert rows[1].endswith(",the dog")
    assert page.locator("#columns button").count() == 0


def test_a_document_is_dropped(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    drop = """(name) => {
      const held = new DataTransfer();
      held.items.add(new File(["the dog"], name, { type: "text/plain" }));
      for (const kind of ["dragover", "drop"])
        document.querySelector("#result").dispatchEvent(
          new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: held }));
    }"""
    page.evaluate(drop, "a.txt")
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    page.evaluate(drop, "<img src=x onerror=alert(1)>.txt")
    page.locator("#document-result", has_text="<img").wait_for(timeout=20_000)


def test_what_is_wrong_with_a_document_is_said(browser: Any, url: str) -> None:
    page = browser.new_page(locale="en-US")  # whose console names the status 400
    page.goto(url)
    page.locator("#document summary").focus()
    page.keyboard.press("Enter")
    page.locator("#document-options input").last.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "file"
    page.set_input_files("#file", {"name": "a.docx", "mimeType": "x/y", "buffer": b"no zip"})
    page.locator("#document-state", has_text="not a .docx file").wait_for(timeout=20_000)
    assert page.locator("#document-result").is_hidden()
    page.close()


def test_a_word_lights_up_its_partners(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    explored(page, "the dog sees a cat")
    page.locator(".ex-queries .ex-chip").nth(1).hover()
    shares = [float(text[:-1]) for text in page.locator(".ex-keys small").all_inner_texts() if text]
    assert sum(shares) == pytest.approx(100, abs=4)
    assert page.locator(".ex-links path").count() >= 1
    page.locator(".ex-keys .ex-chip").first.focus()
    page.keyboard.press("ArrowRight")
    assert "at" in (page.locator(".ex-keys .ex-chip").nth(1).get_attribute("class") or "").split()
    assert "dog" in page.inner_text(".ex-said")


def test_links_stay_where_a_row_wraps(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url, viewport={"width": 375, "height": 800})
    explored(page, "the dog sees a cat and the man likes the house")
    tops = page.locator(".ex-keys .ex-chip").evaluate_all("all => new Set(all.map((one) => one.offsetTop)).size")
    assert tops > 1
    page.locator(".ex-queries .ex-chip").nth(1).hover()
    assert page.locator(".ex-links path").count() >= 1


def test_every_head_can_be_enlarged_by_key(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    explored(page, "the dog sees a cat")
    page.locator(".ex-thumb").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert "head 1" in page.inner_text(".ex-one h3")
    page.get_by_role("button", name="Translation to itself").click()
    assert page.locator(".ex-map td.masked").count() > 3
    page.get_by_role("button", name="Masks").click()
    assert page.locator(".ex-map td.masked").count() == 0
    page.get_by_role("button", name="Positions").click()
    assert page.locator(".ex-map td.same").count() > 3


def test_step_and_choose_another_candidate(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    explored(page, "the dog sees a cat")
    before = page.locator("#explorer dd").nth(1).inner_text()
    page.locator(".ex-player [data-sign='›']").focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".ex-steps span").startswith("Step 2 of")
    page.keyboard.press("ArrowLeft")
    other = page.locator(".ex-candidates li button:enabled").first
    chosen = other.locator("bdi").inner_text()
    other.click()
    page.locator(".ex-original").wait_for(timeout=20_000)
    assert page.locator(".ex-player [aria-current] bdi").inner_text() == chosen
    assert page.locator("#explorer dd").nth(1).inner_text() != before
    page.click(".ex-original")
    assert page.locator("#explorer dd").nth(1).inner_text() == before


def saved(page: Any, button: Any, path: Path, encoding: str = "utf-8") -> str:
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(path)
    return path.read_text(encoding)


def test_pictures_and_the_whole_state_are_files(open_page: Callable[..., Any], url: str, tmp_path: Path) -> None:
    page = open_page(url)
    explored(page, "the dog sees a cat")
    buttons = page.get_by_role("button", name="Save the picture")
    assert buttons.count() == 4
    for i in range(4):
        text = saved(page, buttons.nth(i), tmp_path / f"{i}.svg")
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    page.get_by_role("button", name="Source to itself").click()
    page.locator(".ex-thumb").nth(2).click()
    shown = page.inner_text(".ex-one h3")
    saved(page, page.get_by_role("button", name="Save as a page"), tmp_path / "state.html")
    again = open_page((tmp_path / "state.html").as_uri())
    assert again.inner_text(".ex-one h3") == shown
    assert again.locator(".ex-candidates button:enabled").count() == 0  # nobody there to decode
    saved(again, again.get_by_role("button", name="Save as a page"), tmp_path / "state2.html")
    assert open_page((tmp_path / "state2.html").as_uri()).inner_text(".ex-one h3") == shown


def test_a_line_is_chosen_of_several(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    assert translated(page, "the dog\n\na cat").count("\n") == 2
    page.select_option("#line", index=1)
    page.locator("#explorer dd", has_text="a cat").wait_for(timeout=20_000)


def test_only_the_last_of_quick_changes_is_shown(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    for text in ("the dog", "the dog sees", "a cat sleeps"):
        page.fill("#source", text)
        page.wait_for_timeout(320)
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    page.locator("#explorer dd", has_text="a cat sleeps").wait_for(timeout=20_000)


CALLS = ("hit()", "hit`1`", "top['hit']()", "setTimeout('hit()')", "hit&lpar;&rpar;")
PAYLOADS = [
    shape.replace("CALL", call)
    for shape in (
        "<script>CALL</script>",
        "<img src=x onerror=CALL>",
        "<svg onload=CALL>",
        "<svg/onload='CALL'//",
        "</p><b onfocus=CALL",
        "'\"><img src=x onerror=CALL>",
        "<iframe srcdoc='<script>parent.CALL</script>'>",
        "<a href=javascript:CALL>a</a>",
        "</textarea><script>CALL</script>",
        "<details open ontoggle=CALL>",
        "<input autofocus onfocus=CALL>",
        "<video><source onerror=CALL>",
        "<body onload=CALL>",
        "<math><mtext><img src=x onerror=CALL>",
        "{{CALL}} ${CALL}",
        "<!--><img src=x onerror=CALL>-->",
        "<style>@import 'javascript:CALL'</style>",
        "<object data=javascript:CALL>",
        "<form><button formaction=javascript:CALL>b",
        "&lt;img src=x onerror=CALL&gt;",
    )
    for call in CALLS
]


def test_S7_text_never_becomes_html(
    browser: Any, url: str, echoing: str, figure: Callable[[str, str], None]
) -> None:  # fmt: skip
    """As a translation (of a model that copies), and as what the explorer shows (of one that can be explained)."""
    assert len(set(PAYLOADS)) == 100
    wrong: list[str] = []
    for address, show, payloads in ((echoing, echoed, PAYLOADS), (url, explored, PAYLOADS[:: len(CALLS)])):
        page = browser.new_page(locale="en-US")
        page.add_init_script("window.hits = 0; window.hit = () => { window.hits += 1; };")
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        for payload in payloads:
            show(page, payload)
            made = page.locator(
                "main :is(img, svg:not(.ex-links), script, iframe, object, video, math, style, form:not(#access))"
            )
            if made.count() or page.evaluate("window.hits"):
                wrong.append(payload)
        page.close()
    assert not wrong
    figure("S7", f"{len(PAYLOADS)} payloads as translations, {len(PAYLOADS) // len(CALLS)} in the explorer: 0 executed")


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(open_page: Callable[..., Any], url: str, width: int, scheme: str) -> None:
    page = open_page(url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    explored(page, "the dog sees a cat and the man likes the house")
    page.get_by_role("button", name="Positions").click()
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_it_speaks_chinese_and_has_a_dark_theme(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url, locale="zh-CN")
    assert page.inner_text("#from-label") == "源语言"
    explored(page, "the dog sees a cat")
    assert page.inner_text(".ex-bar button >> nth=0") == "译文看原文"
    page.click("#language")
    assert page.inner_text("#from-label") == "From"
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_attention_has_a_page(open_page: Callable[..., Any], url: str, width: int, scheme: str) -> None:
    page = open_page(url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(f"{url}explain?text=the%20dog%20sees%20a%20cat%20and%20the%20man%20likes%20the%20house%20greenish")
    assert page.locator(".ex-map td[title]").count() > 10
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("#language")
    assert page.inner_text("h1") == "模型看了哪里"
    page.click("#theme")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_link_opens_the_page_with_its_text_and_the_server_never_sees_it(
    open_page: Callable[..., Any], url: str
) -> None:
    page = open_page(url)
    assert page.locator("#share").is_disabled()
    translated(page, "the dog / a cat #1")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }")
    page.click("#share")
    page.wait_for_function("location.hash.length > 1")
    assert page.evaluate("location.hash") == "#en/de/the%20dog%20%2F%20a%20cat%20%231"
    again = open_page(page.url)
    again.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    assert again.input_value("#source") == "the dog / a cat #1"
    assert again.locator("#swap").is_hidden()  # there is no model for the other direction


def test_a_link_of_other_languages_is_ignored(open_page: Callable[..., Any], url: str) -> None:
    for end in ("#fr/de/text", "#en/de", "#%", "#en/de/%E0%A4%A"):
        assert open_page(url + end).input_value("#source") == ""


def test_a_text_that_is_not_translated_yet_is_not_lost_by_swapping(browser: Any, tiny_run: Path) -> None:
    back = Translator.load(tiny_run)
    back.languages = replace(back.languages, src_lang="de", tgt_lang="en")
    with served(Translator.load(tiny_run), back) as url:
        page = browser.new_context(locale="en-US").new_page()
        page.goto(url)
        page.select_option("#from", "en")
        translation = translated(page, "the dog")
        page.fill("#source", "a long text")
        page.click("#swap")
        assert page.input_value("#source") == "a long text"
        assert (page.input_value("#from"), page.input_value("#to")) == ("de", "en")
        page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
        page.select_option("#from", "en")
        page.fill("#source", "the dog")
        page.locator("#result:not(.old)", has_text=translation).wait_for(timeout=20_000)
        page.click("#swap")
        assert page.input_value("#source") == translation


def test_texts_have_their_direction_and_language(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    translated(page, "مرحبا (test)!")
    direction = "one => getComputedStyle(one).direction"
    assert page.eval_on_selector("#source", direction) == "rtl"
    page.evaluate("document.getElementById('result').textContent = 'مرحبا!'")
    assert page.eval_on_selector("#result", direction) == "rtl"
    assert (page.get_attribute("#source", "lang"), page.get_attribute("#result", "lang")) == ("en", "de")
    assert page.evaluate("['ar', 'he', 'ckb', 'az-Arab', 'de', 'zh_TW', '', '?'].map(directionOf)") == [
        "rtl", "rtl", "rtl", "rtl", "ltr", "ltr", "auto", "auto",
    ]  # fmt: skip


def test_each_line_of_a_translation_has_its_own_direction(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    left, right = page.evaluate("""() => {
      const result = document.getElementById("result"), range = document.createRange();
      result.textContent = "مرحبا\\nhello";
      range.setStart(result.firstChild, 6);
      range.setEnd(result.firstChild, 11);
      const [box, line] = [result.getBoundingClientRect(), range.getBoundingClientRect()];
      return [line.left - box.left, box.right - line.right];
    }""")
    assert left < right


def chosen_column(page: Any, table: bytes, at: int, name: str = "a.csv") -> list[str]:
    """Choose a column of a table, wait for its translation, and return what the buttons said."""
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": table})
    page.locator("#columns button").first.wait_for()
    labels: list[str] = page.locator("#columns button").all_inner_texts()
    page.locator("#columns button").nth(at).click()
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    return labels


@pytest.mark.parametrize(
    ("table", "at", "labels", "row"),
    [
        (b",en,note\n0,the dog,a cat\n", 1, ["column 1", "en", "note"], "0,der hund"),
        (b",en,note\nthe dog,a cat,x\n", 0, ["column 1", "en", "note"], "der hund"),
        (b"en,en\na cat,the dog\n", 1, ["column 1: en", "column 2: en"], "a cat,der hund"),
        (b'5" disk,name\n1,the dog\n', 1, ['5" disk', "name"], "1,der hund"),
        (b'"a\nb" ; "say ""x"""\n1;the dog\n', 1, ["a b", 'say "x"'], "1;der hund"),
        (b"sep=|\nid|en\n1|the dog\n", 1, ["id", "en"], "1|der hund"),
        (b"# of the shop, May, 2026, v2\n#\nid;en;n\n1;the dog;2\n", 1, ["id", "en", "n"], "1;der hund"),
        (b"#id,en\n1,the dog\n", 1, ["#id", "en"], "1,der hund"),
    ],
    ids=["blank", "the blank one", "doubled", "a mark inside", "quoted", "Excel's line", "comments", "no comment"],
)
def test_every_column_of_a_table_can_be_chosen(
    open_page: Callable[..., Any], url: str, tmp_path: Path, table: bytes, at: int, labels: list[str], row: str
) -> None:
    page = open_page(url)
    assert chosen_column(page, table, at) == labels
    rows = saved(page, page.locator("#document-result"), tmp_path / "b.csv").splitlines()
    assert any(each.startswith(row) for each in rows)


def test_a_quoted_heading_between_tabs_is_known_to_the_server(open_page: Callable[..., Any], url: str) -> None:
    assert chosen_column(open_page(url), b'"id"\t"en"\n1\tthe dog\n', 1, "a.tsv") == ["id", "en"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_columns_of_a_table_in_utf_16_can_be_chosen(
    open_page: Callable[..., Any], url: str, tmp_path: Path, encoding: str
) -> None:
    page = open_page(url)
    mark = "\ufeff" if encoding.endswith("be") else ""  # Python writes one by itself where the order is not named
    assert chosen_column(page, f"{mark}Größe,en\n1,the dog\n".encode(encoding), 1) == ["Größe", "en"]
    rows = saved(page, page.locator("#document-result"), tmp_path / "b.csv", "utf-16").splitlines()
    assert rows[1].startswith("1,der hund")


def test_a_column_whose_heading_is_not_utf_8_is_sent_by_its_number(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    page.route("**/v2/document", lambda route: route.fulfill(
        body='{"document_id": "a", "document_key": "b"}'))  # fmt: skip
    page.route("**/v2/document/a", lambda route: route.fulfill(body='{"status": "error", "error_message": "no"}'))
    page.set_input_files(
        "#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": "id,Größe\n1,x\n".encode("latin-1")}
    )
    with page.expect_request("**/v2/document") as asked:
        page.locator("#columns button").nth(1).click()
    assert b'name="column"\r\n\r\n2\r\n' in asked.value.post_data_buffer


@pytest.mark.parametrize("fault", ["abort", "502"])
def test_one_question_that_fails_does_not_give_a_document_up(browser: Any, url: str, fault: str) -> None:
    page = browser.new_page(locale="en-US")  # whose console names the request that fails
    page.goto(url)
    faults = [fault, fault]

    def answered(route: Any) -> None:
        if not faults:
            route.continue_()
        elif faults.pop() == "abort":
            route.abort()
        else:
            route.fulfill(status=502, body="Bad Gateway")

    page.route("**/v2/document/*", answered)
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog"})
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    assert page.inner_text("#document-state").startswith("1 of 1 segments translated.")
    assert not faults
    page.close()


def test_of_several_dropped_documents_the_first_is_taken_and_that_is_said(
    open_page: Callable[..., Any], url: str
) -> None:
    page = open_page(url)
    page.evaluate("""() => {
      const held = new DataTransfer();
      for (const name of ["a.txt", "b.txt"]) held.items.add(new File(["the dog"], name, { type: "text/plain" }));
      document.body.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: held }));
    }""")
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    said = "1 of 1 segments translated. Only a.txt was taken, the first of 2 files."
    assert page.inner_text("#document-state") == said
    page.click("#language")
    assert "只处理了第一个：a.txt" in page.inner_text("#document-state")
    page.set_input_files("#file", {"name": "c.txt", "mimeType": "text/plain", "buffer": b"a cat"})
    page.locator("#document-result", has_text="c.de.txt").wait_for(timeout=20_000)
    assert "a.txt" not in page.inner_text("#document-state")


def test_a_text_to_which_one_comes_back_is_translated(open_page: Callable[..., Any], url: str) -> None:
    page = open_page(url)
    translated(page, "the dog")
    page.click("nav a")
    page.wait_for_url("**/docs")
    page.go_back()
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    assert page.input_value("#source") == "the dog"
    assert page.inner_text("#count").startswith("7 of")
    assert page.locator("#clear").is_enabled()


def test_another_language_of_the_page_rewrites_it_and_translates_nothing(
    open_page: Callable[..., Any], url: str
) -> None:
    page = open_page(url)
    explored(page, "the dog sees a quetzal")
    page.locator(".ex-candidates li button:enabled").first.click()
    page.locator(".ex-original").wait_for(timeout=20_000)
    other = page.locator("#explorer dd").nth(1).inner_text()
    table = b"id,en,en\n1,the dog,x\n2,x\n"
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": table})
    page.locator("#columns button").first.wait_for()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.click("#language")
    assert page.inner_text("#document-state") == "翻译 a.csv 的哪一列？"
    assert page.locator("#columns button").all_inner_texts() == ["id", "第 2 列：en", "第 3 列：en"]
    assert "模型没见过的词" in page.inner_text("#notes")
    page.wait_for_timeout(500)
    assert asked == []
    assert page.locator("#explorer dd").nth(1).inner_text() == other
    page.locator("#columns button").nth(1).click()
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    assert page.inner_text("#document-state").startswith("共 ")
    assert page.inner_text("#document-result") == "保存 a.de.csv"
    assert "：" in page.locator("#document-left li").last.inner_text()
    page.click("#language")
    assert "segments translated" in page.inner_text("#document-state")
    assert page.inner_text("#document-result") == "Save a.de.csv"
    assert "：" not in page.locator("#document-left li").last.inner_text()


def test_the_terms_that_were_found_go_with_their_text(browser: Any, url: str) -> None:
    page = browser.new_page(locale="en-US")  # whose console names the request that fails
    page.goto(url)
    page.click("#terms summary")
    page.fill("#glossary", "dog = haus")
    translated(page, "the dog")
    assert page.inner_text("#terms-found") == "1 term read, 1 found in the text."
    page.click("#clear")
    assert page.inner_text("#terms-found") == ""
    page.fill("#glossary", "dog = haus\ncat = haus")
    translated(page, "the dog")
    assert page.inner_text("#terms-found") == "2 terms read, 1 found in the text."
    page.route("**/v1/translate", lambda route: route.abort())
    page.fill("#source", "a cat")
    page.locator("#notes li").wait_for(timeout=20_000)
    assert page.inner_text("#terms-found") == ""
    page.close()
