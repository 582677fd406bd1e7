"""What the server's page says where something is wrong, in its own language, and what it says of a translation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from test_serve_page import explored, translated, url  # noqa: F401  (a fixture)

pytestmark = pytest.mark.browser

LANGUAGES = {"en": "en-US", "zh": "zh-CN"}


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


@pytest.fixture(params=LANGUAGES.values(), ids=LANGUAGES)
def page(browser: Any, url: str, request: pytest.FixtureRequest) -> Any:  # noqa: F811
    """A page in either language, whose console may name the statuses of refused requests."""
    made = browser.new_page(locale=request.param)
    made.goto(url)
    yield made
    made.close()


def refused(page: Any, status: int, message: str = "a message in English") -> str:
    """Return what the page shows if the server refuses to translate with this status."""
    answer = json.dumps({"error": {"message": message}})
    page.route("**/v1/translate", lambda route: route.fulfill(status=status, body=answer))
    page.fill("#source", "the dog")
    page.locator("#notes li").wait_for(timeout=20_000)
    return str(page.inner_text("#notes"))


@pytest.mark.parametrize("status", [400, 401, 403, 408, 413, 429, 500, 503, 507])
def test_a_refusal_is_said_in_the_language_of_the_page(page: Any, status: int) -> None:
    text = refused(page, status)
    assert is_chinese(text) == (page.evaluate("document.documentElement.lang") == "zh-Hans")
    assert page.locator("#access").is_visible() == (status in (401, 403))


PROXY = {
    413: ("This is larger than a proxy in front of the server lets through.", "内容超过服务器前的代理允许的大小。"),
    502: ("A proxy cannot reach the server. Try again later.", "代理无法连接服务器，请稍后再试。"),
    504: (
        "A proxy in front of the server has not waited for its answer. Try again, or with less at a time.",
        "代理等待服务器超时：请重试，或减少每次的内容。",
    ),
    418: (
        "A proxy in front of the server has answered in its place (status 418). "
        "Load the page again, or try again later.",
        "服务器前的代理代为返回了状态码 418：请刷新页面，或稍后再试。",
    ),
    200: (
        "A proxy in front of the server has answered in its place (status 200). "
        "Load the page again, or try again later.",
        "服务器前的代理代为返回了状态码 200：请刷新页面，或稍后再试。",
    ),
}


BODIES = ["<html><h1>An error of a proxy</h1></html>", "", "{}"]


@pytest.mark.parametrize(("status", "body"), [(status, body) for status in PROXY for body in BODIES][:-1])
def test_an_error_of_a_proxy_is_not_called_a_server_that_does_not_answer(page: Any, status: int, body: str) -> None:
    for route in ("**/v1/translate", "**/v2/document"):
        page.route(route, lambda route: route.fulfill(status=status, body=body))
    page.fill("#source", "the dog")
    page.locator("#notes li").wait_for(timeout=20_000)
    assert page.inner_text("#notes") in PROXY[status]
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog"})
    page.wait_for_function(
        "texts => texts.includes(document.getElementById('document-state').textContent)", arg=list(PROXY[status])
    )


def test_a_server_that_does_not_answer_is_named_and_the_next_change_tries_again(page: Any) -> None:
    page.route("**/v1/translate", lambda route: route.abort())
    page.fill("#source", "the dog")
    page.locator("#notes li").wait_for(timeout=20_000)
    text = page.inner_text("#notes")
    assert text in ("The server does not answer. Change the text to try again.", "服务器没有响应。修改文本即可重试。")
    page.unroute("**/v1/translate")
    assert translated(page, "the dog sees a cat").startswith("der hund")
    assert page.locator("#notes li").count() == 0


def test_a_text_that_is_too_long_is_not_sent(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("settings.most = 30")
    page.fill("#source", "the dog sees a cat and the man 🙂")
    page.locator("#notes li", has_text="32").wait_for(timeout=20_000)
    assert "30" in page.inner_text("#notes")
    assert asked == []
    assert translated(page, "the dog").startswith("der hund")


def test_words_that_the_model_never_saw_are_named(page: Any) -> None:
    translated(page, "the quetzal sees\nthe dog")
    text = page.locator("#notes li", has_text="quetzal").inner_text()
    assert text in ("Line 1: a word that the model never saw: quetzal", "第 1 行：模型没见过的词：quetzal")


def test_a_slow_answer_is_announced_and_the_old_translation_is_faded(page: Any) -> None:
    translated(page, "the dog sees a cat")
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: held.append(route))
    page.fill("#source", "the dog")
    page.locator("#result.old").wait_for(timeout=20_000)
    assert page.inner_text("#state") in ("translating …", "正在翻译……")
    held[0].continue_()
    page.locator("#result:not(.old)").wait_for(timeout=20_000)
    assert page.inner_text("#state") == ""


def test_the_estimate_is_explained_where_a_finger_can_reach_it(
    open_page: Callable[..., Any], url: str  # noqa: F811
) -> None:  # fmt: skip
    page = open_page(url, viewport={"width": 375, "height": 800})
    answer = {"source": "en", "target": "de", "translations": [
        {"text": "der hund", "score": -1, "confidence": 0.5, "quality": "doubtful", "notes": []}]}  # fmt: skip
    page.route("**/v1/translate", lambda route: route.fulfill(body=json.dumps(answer)))
    explored(page, "the dog")
    assert page.inner_text("#confidence summary") == "Quality, estimated: doubtful"
    page.click("#confidence summary")
    assert "read it beside the source" in page.inner_text("#confidence")


@pytest.mark.parametrize("width", [320, 375, 430, 768])
def test_a_long_unknown_word_widens_nothing(open_page: Callable[..., Any], url: str, width: int) -> None:  # noqa: F811
    page = open_page(url, viewport={"width": width, "height": 800})
    translated(page, "the " + "quetzal" * 30)
    assert "quetzalquetzal" in page.inner_text("#notes")
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown


def test_a_document_that_cannot_be_read_is_refused_in_the_language_of_the_page(page: Any) -> None:
    page.set_input_files("#file", {"name": "a.docx", "mimeType": "x/y", "buffer": b"no zip"})
    page.locator("#document-state", has_text=".docx").wait_for(timeout=20_000)
    chinese = page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert is_chinese(page.inner_text("#document-state")) == chinese


def test_a_document_for_which_no_server_answers_has_to_be_chosen_again(page: Any) -> None:
    page.route("**/v2/document", lambda route: route.abort())
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog"})
    page.locator("#document-state", has_text=re.compile("again|重新")).wait_for(timeout=20_000)
    said = ("The server does not answer. Choose the document again.", "服务器没有响应。请重新选择文档。")
    assert page.inner_text("#document-state") in said


def test_a_key_that_no_header_can_hold_is_not_known_and_the_right_one_goes_on(page: Any) -> None:
    def guarded(kind: str) -> Any:
        def answer(route: Any) -> None:
            if route.request.headers.get("authorization") == "Bearer right":
                route.fallback()
            else:
                message = "an API key is required"
                route.fulfill(status=401 if kind == "text" else 403,
                              body=json.dumps({"message": message, "error": {"message": message}}))  # fmt: skip

        return answer

    page.route("**/v1/translate", guarded("text"))
    page.route("**/v2/document", guarded("document"))
    unknown = ("this API key is not known", "API 密钥不正确：请在页面下方重新填写。")
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog"})
    page.fill("#source", "the dog")
    page.locator("#notes li").wait_for(timeout=20_000)
    page.locator("#access").wait_for(timeout=20_000)
    page.fill("#key", "密钥")
    page.click("#access button")
    page.wait_for_function("texts => texts.includes(document.getElementById('notes').textContent)", arg=unknown)
    page.wait_for_function(
        "texts => texts.includes(document.getElementById('document-state').textContent)", arg=unknown
    )
    assert page.locator("#access").is_visible()
    page.fill("#key", "right")
    page.click("#access button")
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=20_000)
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    assert page.inner_text("#document-state") not in unknown
    assert page.locator("#access").is_hidden()


def test_a_busy_server_is_asked_again_and_the_old_translation_stays(page: Any) -> None:
    before = translated(page, "the dog sees a cat")
    texts: list[str] = []

    def busy(route: Any) -> None:
        texts.append(route.request.post_data_json["text"])
        if len(texts) == 3:
            route.fallback()
        else:
            route.fulfill(
                status=429, headers={"retry-after": "1"}, body='{"error": {"message": "the server is busy"}}'
            )  # fmt: skip

    page.route("**/v1/translate", busy)
    page.fill("#source", "the dog")
    page.locator("#notes li").wait_for(timeout=20_000)
    said = ("The server is busy. The page asks again in 1 second.", "服务器繁忙。页面将在 1 秒后重试。")
    assert page.inner_text("#notes") in said
    assert page.inner_text("#result") == before
    assert page.locator("#result.old").count() == 1
    page.fill("#source", "a cat")  # asked in place of the former text, not beside it
    page.locator("#result:not(.old)").wait_for(timeout=20_000)
    assert page.inner_text("#result") != before
    assert page.locator("#notes li").count() == 0
    page.wait_for_timeout(1500)
    assert texts == ["the dog", "a cat", "a cat"]


def test_a_busy_server_is_asked_after_a_document_again(page: Any) -> None:
    busy = iter(range(2))

    def sometimes(route: Any) -> None:
        if next(busy, None) is None:
            route.fallback()
        else:
            route.fulfill(status=429, headers={"retry-after": "1"}, body='{"message": "busy"}')

    page.route(re.compile(r"/v2/document/\w+(/result)?$"), sometimes)
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog\n"})
    page.locator("#document-result:not([hidden])").wait_for(timeout=20_000)
    said = ("1 of 1 segments translated.", "共 1 个片段，已翻译 1 个。")
    assert page.inner_text("#document-state") in said
