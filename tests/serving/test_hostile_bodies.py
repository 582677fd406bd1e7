"""Bodies that would cost a server seconds before they are refused: it reads them in linear time, within limits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
import starlette.datastructures
from starlette.requests import Request

from dragoman.errors import MOST_MESSAGE, shortened
from dragoman.languages import detection
from dragoman.serving.apis.native import TranslateRequest
from dragoman.serving.bodies import BodyBudget
from dragoman.serving.helpers import Helpers
from dragoman.serving.http import FORM_PIECE, MOST_FORM_FIELDS, read, upload_of
from dragoman.serving.refusals import MalformedError
from dragoman.serving.request_json import MOST_FIELDS, MOST_VALUES, strict_json
from dragoman.serving.service import Service
from dragoman.translation.options import TranslateOptions
from limits import cpu_limit

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=e"
MANY = MOST_VALUES + 1

WRONG: dict[str, Callable[[int], Any]] = {
    "numbers": lambda n: [1] * n, "lists": lambda n: [[]] * n, "objects": lambda n: [{"a": "b"}] * n,
    "nulls": lambda n: [None] * n, "halves of a pair": lambda n: ["\ud800"] * n,
    "values of names": lambda n: {str(i): 1 for i in range(n)},
    "names in a list": lambda n: [{str(i): "a" for i in range(n)}],
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("field", ["text", "include", "prefix", "glossary"])
def test_a_refusal_of_many_wrong_values_is_short(live: Any, field: str, kind: str) -> None:
    fields = {"text": "the dog", "source": "en", "target": "de", field: WRONG[kind](MANY)}
    reply = live("/v1/translate", fields)
    assert reply.status == 400
    assert len(reply.body) < 2 * MOST_MESSAGE


@pytest.mark.parametrize("path", ["/v1/translate", "/translate", "/v2/translate", "/v2/glossaries", "/detect"])
def test_a_request_may_have_so_many_fields(live: Any, path: str) -> None:
    fields = {f"a{i}": "b" for i in range(MOST_FIELDS + 1)}
    reply = live(path, fields)
    assert reply.status == 400
    assert "at most 1,000 fields, got 1,001" in reply.body.decode()


def test_a_name_that_is_there_twice_at_the_end_of_many_is_named() -> None:
    body = "{" + ",".join(f'"{i}":"a"' for i in range(5000)) + ',"z":1,"z":2}'
    with pytest.raises(MalformedError, match="the name 'z' is there twice"):
        strict_json(body.encode())


def test_values_that_a_request_may_have_are_read() -> None:
    glossary = {str(i): None for i in range(3 * MOST_VALUES)} | {f"a{i}": "b" for i in range(3 * MOST_VALUES)}
    fields = {"text": ["a"] * 5000, "glossary": glossary, "include": [1] * (MOST_VALUES - 3)}
    assert strict_json(json.dumps(fields).encode()) == fields
    fields["include"] = [1] * (MOST_VALUES - 2)
    with pytest.raises(MalformedError, match="at most 1,000 values that are no text, got 1,001"):
        strict_json(json.dumps(fields).encode())


def test_very_many_errors_are_counted_and_few_are_named() -> None:
    with pytest.raises(MalformedError, match=r"^5,000 fields and values of the request are invalid$"):
        read(TranslateRequest, {"text": "a", "source": "en", "target": "de", "include": [1] * 5000})
    with pytest.raises(MalformedError) as caught:
        read(TranslateRequest, {"text": "a", "source": "en", "target": "de", "include": [1] * 50})
    assert str(caught.value).count("must be a text") == 5


def test_a_form_has_so_many_fields_and_is_utf8(live: Any) -> None:
    pairs = "&".join(f"a{i}=b" for i in range(MOST_FIELDS + 1))
    assert "at most 1,000 fields" in live("/translate", pairs.encode(), content_type=FORM).body.decode()
    assert (
        "at most 10,000 fields" in live("/translate", b"a&" * MOST_FORM_FIELDS + b"a", content_type=FORM).body.decode()
    )
    edge = '--e\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    parts = edge.format("q", "a dog") + edge.format("source", "en") + edge.format("target", "de") + "--e--\r\n"
    assert live("/translate", parts.encode(), content_type=f"{MULTIPART}; charset=UTF-8").status == 200
    for charset in ("idna", "punycode", "utf-16", "undefined"):  # of the first, Python's takes the square of the length
        reply = live("/translate", parts.encode(), content_type=f"{MULTIPART}; charset={charset}")
        assert reply.status == 400
        assert f"the body must be UTF-8 text, got charset '{charset}'" in reply.body.decode()


@pytest.mark.parametrize(
    ("charset", "text", "status"),
    [
        ("UTF-8", "d\u00f6g".encode(), 200),
        ('"utf8"', "d\u00f6g".encode(), 200),
        ("ISO-8859-1", b"dog", 200),  # as older programs declare whatever they send
        ("windows-1252", b"a dog", 200),
        ("ISO-8859-1", "d\u00f6g".encode(), 400),  # of four characters
        ("utf-7", b"d+APY-g", 400),
        ("iso-2022-jp", b"\x1b$B8$\x1b(B", 400),
        ("hz-gb-2312", b"~{9<9~}", 400),
        ("idna", b"dog", 400),
    ],
)
@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/translate", "application/json", b'{"source": "en", "target": "de", "q": "%s"}'),
        ("/v1/translate", "application/json", b'{"text": "%s"}'),
        ("/v2/translate", "application/x-www-form-urlencoded", b"target_lang=DE&text=%s"),
    ],
)
def test_H10_a_body_in_another_encoding_is_not_taken_for_another_text(
    live: Any, path: str, kind: str, body: bytes, charset: str, text: bytes, status: int
) -> None:
    """Encodings of ASCII bytes, such as UTF-7, are no error as UTF-8, but another text."""
    sent = text.replace(b"\x1b", b"\\u001b") if "json" in kind else quote(text).encode()
    reply = live(path, body % sent, content_type=f"{kind}; charset={charset}")
    assert reply.status == status
    assert status == 200 or "the body must be UTF-8 text" in reply.body.decode()


PART = b'--e\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'


@pytest.mark.parametrize("end", [b"", b"--e\r\n", b"--e", PART[:40], PART % (b"glossary_id", b"", b"1")])
def test_H10_a_form_without_its_end_is_refused(live: Any, end: bytes, figure: Any) -> None:
    """Its last part, which may change the translation, would be missing without a word."""
    body = PART % (b"text", b"", b"the dog") + PART % (b"target_lang", b"", b"DE")
    assert live("/v2/translate", body + b"--e--\r\n", content_type=MULTIPART).status == 200
    reply = live("/v2/translate", body + end, content_type=MULTIPART)
    assert reply.status == 400
    assert "the form has no end" in reply.json["message"]
    figure("H10", f"a form that ends with {end[-20:]!r}: {reply.status}")


def test_H10_an_encoded_part_of_a_form_is_not_taken_for_text(live: Any) -> None:
    def status(coding: bytes) -> int:
        header = b"\r\nContent-Transfer-Encoding: " + coding
        body = PART % (b"text", header, b"dGhlIGRvZw==") + PART % (b"target_lang", b"", b"DE") + b"--e--"
        return int(live("/v2/translate", body, content_type=MULTIPART).status)

    assert [status(coding) for coding in (b"8bit", b"Binary", b"base64", b"quoted-printable")] == [200, 200, 400, 400]


@pytest.mark.parametrize("field", ["q", "r\u00e4tsel", "name"])
def test_a_field_of_a_form_that_is_not_utf8_is_refused_and_a_file_may_have_any_bytes(live: Any, field: str) -> None:
    """Read as Latin-1 it would be another text than the client's."""
    edge = b"--e\r\nContent-Disposition: form-data; name="
    fields = b"".join(edge + b'"%s"\r\n\r\n%s\r\n' % pair for pair in ((b"source", b"en"), (b"target", b"de")))
    text = "gr\u00fcn \U0001f600".encode()
    file = edge + b'"file"; filename="gr\xc3\xbcn.txt"\r\n\r\nthe d\xff\xfeg\r\n'
    sound = fields + edge + b'"q"\r\n\r\n' + text + b"\r\n--e--\r\n"
    assert live("/translate", sound, content_type=MULTIPART).status == 200
    assert live("/translate_file", fields + file + b"--e--\r\n", content_type=MULTIPART).status in (200, 400)
    for encoded in (b"\xff", b"gr\xfcn", b"\xed\xa0\x80", text[:-1], text[:2] + b"\xc3"):
        if field == "name":
            hostile = fields + edge + b'"file"; filename="' + encoded + b'.txt"\r\n\r\nthe dog\r\n--e--\r\n'
            reply = live("/translate_file", hostile, content_type=MULTIPART)
        else:
            hostile = sound.replace(text, encoded) if field == "q" else sound.replace(b'"q"', b'"%s"' % encoded)
            reply = live("/translate", hostile, content_type=MULTIPART)
        assert reply.status == 400
        assert "the fields and names of the form must be UTF-8 text" in reply.body.decode()


@pytest.mark.parametrize(
    ("part", "why"),
    [('name="file"; filename="' + "a" * 5000 + '.txt"', "Maximum header size exceeded"), ("x", "must be provided")],
)
def test_a_form_that_cannot_be_read_is_explained(live: Any, part: str, why: str) -> None:
    body = f"--e\r\nContent-Disposition: form-data; {part}\r\n\r\nx\r\n--e--\r\n"
    reply = live("/v2/document", body.encode(), content_type=MULTIPART)
    assert reply.status == 400
    assert "valid multipart/form-data, with at most one file" in reply.body.decode()
    assert why in reply.body.decode()


@pytest.mark.parametrize("field", ["source", "target", "x" * 40_000])
def test_a_message_repeats_no_long_value(live: Any, field: str) -> None:
    reply = live("/v1/translate", {"text": "a", "source": "en", "target": "de", field: "d" * 40_000})
    assert reply.status == 400
    assert len(reply.body) < 2 * MOST_MESSAGE


def test_both_ends_of_a_long_message_are_kept() -> None:
    assert shortened("a" * MOST_MESSAGE) == "a" * MOST_MESSAGE
    short = shortened("a" * 40_000 + " is not a target language here: use de")
    assert short.startswith("aaa")
    assert short.endswith(" is not a target language here: use de")
    assert "39,038 characters" in short


def test_a_request_with_a_glossary_is_prepared_outside_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    class Prepared(Exception):  # noqa: N818
        pass

    class StubService(Service):
        def __init__(self) -> None:
            self.batcher = type("StubBatcher", (), {"refuse_if_full": lambda self, owner: None})()
            self.helpers = Helpers()

        def prepare(self, *arguments: Any) -> Any:
            threads.append(threading.current_thread())
            raise Prepared

    for options in (TranslateOptions(), TranslateOptions(glossary={"a": "b"})):
        with pytest.raises(Prepared):
            asyncio.run(StubService().translate(["a"], None, options, ""))  # type: ignore[arg-type]
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


def test_a_header_of_a_form_has_few_parameters(live: Any) -> None:
    part = '--e\r\nContent-Disposition: form-data; name="q{}"{}\r\n\r\na\r\n'
    many = "".join(part.format(i, ";" * 4000) for i in range(240)) + "--e--\r\n"
    few = part.format("", "; a=b" * 90) + part.format("x", "") + "--e--\r\n"
    with cpu_limit(4.0):  # Python's parser alone takes a second for each
        for _ in range(10):
            reply = live("/translate", many.encode(), content_type=MULTIPART)
            assert "at most 100 semicolons, got 4,001" in reply.body.decode()
        assert live("/translate", b"a", content_type=MULTIPART + ";" * 15_000).status == 400
    assert live("/translate?source=en&target=de", few.encode(), content_type=MULTIPART).status == 200


def test_other_requests_run_while_a_form_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'--e\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + b"dog " * 500_000
    turns = 0

    async def hand_over(*_: Any) -> None:
        raise AssertionError("each piece of a file costs a change of the thread")

    monkeypatch.setattr(starlette.datastructures, "run_in_threadpool", hand_over)

    async def run() -> bytes:
        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def receive() -> Any:
            return {"type": "http.request", "body": body + b"\r\n--e--\r\n", "more_body": False}

        headers = [(b"content-type", MULTIPART.encode())]
        app = SimpleNamespace(state=SimpleNamespace(dragoman=SimpleNamespace(budget=BodyBudget(0))))
        scope = {
            "type": "http",
            "path": "/v2/document",
            "query_string": b"",
            "headers": headers,
            "app": app,
            "owner": "",
        }
        running = asyncio.create_task(others())
        try:
            return (await upload_of(Request(scope, receive)))[2]
        finally:
            running.cancel()

    assert asyncio.run(run()) == b"dog " * 500_000
    assert turns > len(body) // FORM_PIECE


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_very_many_texts_where_dictionaries_must_be(serving: Callable[..., Any], tmp_path: Any, method: str) -> None:
    server = serving(glossaries=tmp_path / "g")
    path = "/v3/glossaries" + ("" if method == "POST" else "/" + "0" * 36)
    with cpu_limit(4.0):
        for _ in range(10):
            reply = server(path, {"name": "a", "dictionaries": [""] * 190_000}, method=method)
            assert reply.status == 400
    assert "dictionaries" in reply.body.decode()


def test_a_query_has_few_fields(live: Any) -> None:
    """Starlette takes ten milliseconds for those of 16 KB."""
    assert live("/translate?" + "&".join(["q=the+dog"] * 999 + ["source=en&target=de"]), b"{}").status == 400
    reply = live("/livez?" + "a&" * 1000)
    assert reply.status == 400
    assert b"a query may have at most 1,000 fields, got 1,001" in reply.body
    assert live("/livez?" + "a&" * 999).status == 200


def test_the_openapi_document_is_written_once(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = live("/spec")
    assert (first.status, first.json["info"]["title"]) == (200, "dragoman")
    monkeypatch.setattr(json, "dumps", None)
    monkeypatch.setattr(json, "JSONEncoder", None)
    assert live("/spec").body == first.body
    assert live("/spec", method="HEAD").status == 200


@pytest.mark.parametrize(
    ("path", "name", "others"),
    [
        ("/translate", "q", {"source": "auto", "target": "de"}), ("/v1/translate", "text", {"source": "auto"}),
        ("/v2/translate", "text", {"target_lang": "DE"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n_texts", [5, 40])
def test_languages_of_many_texts_are_detected_outside_of_the_event_loop(
    live: Any, monkeypatch: pytest.MonkeyPatch, path: str, name: str, others: dict[str, str], n_texts: int
) -> None:
    """With one pair nothing is detected there: the source of all together is the only one."""
    threads = list[str]()
    likelihoods = detection.likelihoods

    def noted(text: str) -> Any:
        threads.append(threading.current_thread().name)
        return likelihoods(text)

    monkeypatch.setattr(detection, "likelihoods", noted)
    texts = [f"the small dog and the old cat see the red house number {i}" for i in range(n_texts)]
    assert live(path, {name: texts, **others}).status == 200
    assert len(threads) >= n_texts
    assert all(name.startswith("helper") for name in threads)
