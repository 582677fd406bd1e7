"""Nothing of a request is dropped without a word: names, repeated fields, encodings of parts, lists of glossaries."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dragoman.serving import app
from dragoman.serving.apis.deepl import IGNORED, DeepLRequest
from dragoman.serving.http import read
from dragoman.serving.keys import make_key
from dragoman.serving.refusals import MalformedError

MULTIPART = "multipart/form-data; boundary=e"
LIBRE = {"q": "the dog", "source": "en", "target": "de"}
DEEPL = {"text": ["the dog"], "source_lang": "EN", "target_lang": "DE"}
TERMS = {"source_lang": "en", "target_lang": "de", "entries": "dog\tbaum"}


def message(reply: Any) -> str:
    """Return the sentence of a refusal, whatever its API."""
    error = reply.json.get("message") or reply.json["error"]
    return str(error["message"] if isinstance(error, dict) else error)


def form(*parts: tuple[str, bytes]) -> bytes:
    """Return a multipart form; each part is what follows its name in the header, and its content."""
    return b"".join(b"--e\r\nContent-Disposition: form-data; name=" + head.encode() + b"\r\n\r\n" + content + b"\r\n"
                    for head, content in parts) + b"--e--\r\n"  # fmt: skip


# --- lists of glossaries ----------------------------------------------------------------------------------------------


def stored(live: Any, entries: str = "dog\tbaum") -> str:
    return str(live("/v2/glossaries", {**TERMS, "entries": entries, "name": "mine"}).json["glossary_id"])


def test_one_glossary_of_a_list_is_followed_and_several_are_refused(live: Any) -> None:
    one, other = stored(live), stored(live, "cat\thaus")
    lists: list[Any] = [[one], one, f" {one}, ", [one, ""]]
    for named in lists:
        reply = live("/v2/translate", {**DEEPL, "glossary_ids": named})
        assert "baum" in reply.json["translations"][0]["text"].split(), named
    assert "baum" in live("/v2/translate", form={**DEEPL, "glossary_ids": one}).json["translations"][0]["text"].split()
    several: list[dict[str, Any]] = [
        {"glossary_ids": [one, other]}, {"glossary_ids": f"{one},{other}"},
        {"glossary_id": one, "glossary_ids": [other]},
    ]  # fmt: skip
    for fields in several:
        reply = live("/v2/translate", {**DEEPL, **fields})
        assert (reply.status, "one glossary on this server, got 2" in message(reply)) == (400, True)
    assert live("/v2/translate", {**DEEPL, "glossary_ids": ["0" * 36]}).status == 404
    assert live("/v2/translate", {**DEEPL, "glossary_ids": []}).status == 200
    no_source = live("/v2/translate", {"text": ["a"], "target_lang": "DE", "glossary_ids": [one]})
    assert "needs 'source_lang'" in message(no_source)


def test_a_document_follows_the_glossary_of_a_list(live: Any) -> None:
    file = ('"file"; filename="a.txt"', b"the dog")

    def upload(ids: str) -> Any:
        parts = form(("target_lang", b"DE"), ("source_lang", b"EN"), ("glossary_ids", ids.encode()), file)
        return live("/v2/document", parts, content_type=MULTIPART)

    one = stored(live)
    assert upload(f"{one},{stored(live)}").status == 400
    assert upload("0" * 36).status == 404
    made = upload(one).json
    path, key = f"/v2/document/{made['document_id']}", {"document_key": made["document_key"]}
    while live(path, key).json["status"] not in ("done", "error"):
        time.sleep(0.05)
    assert "baum" in live(f"{path}/result", key).body.decode().split()


def test_deepls_python_library_gets_the_glossary_of_its_list(live: Any) -> None:
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient("a-key", server_url=live.url)
    one = stored(live)
    told = client.translate_text("the dog", source_lang="EN", target_lang="DE", glossary_ids=[one])
    assert "baum" in told.text.split()
    with pytest.raises(deepl.DeepLException, match="one glossary on this server, got 2"):
        client.translate_text("the dog", source_lang="EN", target_lang="DE", glossary_ids=[one, stored(live)])


# --- encodings of parts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "text", "status"),
    [
        ("text/plain", "d\u00f6g".encode(), 200),
        ("text/plain; charset=UTF-8", "d\u00f6g".encode(), 200),
        ('text/plain; charset="utf-8"', b"dog", 200),
        ("text/plain; charset=ISO-8859-1", b"dog", 200),  # as Apache's HttpClient declares every field
        ("text/plain; charset=ISO-8859-1", "d\u00f6g".encode(), 400),
        ("text/plain;charset=utf-16le", "dog".encode("utf-16-le"), 400),
        ("text/plain; charset=utf-7", b"d+APY-g", 400),
        ("application/json; charset=hz-gb-2312", b"~{9<9~}", 400),
        ("text/plain;" + "a;" * 200, b"dog", 400),
    ],
)
def test_a_part_of_a_form_in_another_encoding_is_not_taken_for_another_text(
    live: Any, declared: str, text: bytes, status: int
) -> None:
    body = form((f"text\r\nContent-Type: {declared}", text), ("target_lang", b"DE"))
    reply = live("/v2/translate", body, content_type=MULTIPART)
    assert reply.status == status
    if "charset" in declared and status == 400:
        assert "the fields of the form must be UTF-8 text, got charset" in message(reply)


def test_a_file_may_be_in_any_encoding(live: Any) -> None:
    def upload(head: str) -> Any:
        return live("/translate_file", form((head, b"the dog"), ("target", b"de")), content_type=MULTIPART)

    assert upload('"file"; filename="a.txt"\r\nContent-Type: text/plain; charset=iso-8859-1').status == 200


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "sent", "says"),
    [
        ("/translate", {**LIBRE, "alternativs": 2}, "unknown field alternativs: did you mean alternatives?"),
        ("/translate", {**LIBRE, "Format": "html"}, "unknown field Format: did you mean format?"),
        ("/v2/translate", {**DEEPL, "sourceLang": "EN"}, "unknown field sourceLang: did you mean source_lang?"),
        ("/v2/translate", {**DEEPL, "tag_handing": "xml"}, "unknown field tag_handing: did you mean tag_handling?"),
        ("/v2/languages?typ=target", None, "unknown field typ: did you mean type?"),
        ("/v2/glossaries", {**TERMS, "name": "a", "entry_format": "csv"}, "did you mean entries_format?"),
        ("/v2/glossaries", {**TERMS, "name": "a", "colour": "red"}, "unknown field colour: leave it out"),
        ("/v1/translate?beam_size=99", {"text": "a"}, "unknown field beam_size in the query"),
        ("/v1/languages?sort=name", None, "unknown field sort in the query: leave it out"),
        ("/v1/explain?text=a", {"text": "a"}, "unknown field text in the query"),
        ("/explain?text=a&text=b", None, "text is 2 times in the query: leave it there once"),
        ("/v2/translate?text=a+cat", DEEPL, "text has one value in the query and another one in the body"),
        ("/translate?source=fr", LIBRE, "source has one value in the query and another one in the body"),
    ],
)
def test_a_name_that_would_be_ignored_by_mistake_is_refused(live: Any, path: str, sent: Any, says: str) -> None:
    reply = live(path, sent)
    assert reply.status == 400
    assert says in message(reply)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/v1/languages?_=12", None), ("/v1/translate?api_key=x", {"text": "a"}),
        ("/translate?target=de", {**LIBRE, "target": None}),
        ("/translate?alternatives=1", {**LIBRE, "alternatives": 1}),
        ("/translate?api_key=x", {**LIBRE, "api_key": ""}),
        ("/v2/translate?text=a+dog", {**DEEPL, "text": ["a dog"]}),
        ("/v2/translate", {**DEEPL, "formality_level": "more"}),
        ("/v2/translate", {**DEEPL, "glossary_name": "a"}), ("/v2/translate", {**DEEPL, "input_format": "txt"}),
    ],
)  # fmt: skip
def test_what_clients_send_beside_is_no_mistake(live: Any, path: str, sent: Any) -> None:
    assert live(path, sent).status == 200


def test_a_slip_in_a_field_of_an_upload_is_refused(live: Any) -> None:
    body = form(('"file"; filename="a.csv"', b"name\nthe dog"), ("target", b"de"), ("colum", b"name"))
    reply = live("/translate_file", body, content_type=MULTIPART)
    assert (reply.status, message(reply)) == (400, "unknown field colum: did you mean column?")


def test_a_number_past_its_limit_may_be_written_with_a_point(live: Any) -> None:
    """Such a number once ended in a status of 500."""
    spec = live("/spec").json["components"]["schemas"]["TranslateRequest"]["properties"]
    n_refused = 0
    for name, schema in spec.items():
        for kind in schema.get("anyOf", [schema]):
            least, most = kind.get("minimum", -1e9), kind.get("maximum", 1e9)
            for text in ("-1.0", "0.0", "99999.0"):
                if not least <= float(text) <= most:
                    reply = live("/v1/translate", {"text": "a", name: text})
                    assert reply.status == 400, (name, text)
                    assert message(reply).startswith(f"{name} must be "), (name, text)
                    n_refused += 1
    assert n_refused > 10


@pytest.mark.parametrize("text", ["-1.0", "0.0"])
def test_a_number_of_a_form_past_its_limit_is_refused(live: Any, text: str) -> None:
    assert live("/translate", form={**LIBRE, "alternatives": "-1.0"}).status == 400
    body = form(('"file"; filename="a.srt"', b"1"), ("target", b"de"), ("line_length", text.encode()))
    reply = live("/translate_file", body, content_type=MULTIPART)
    assert (reply.status, message(reply).split(", ")[-1]) == (400, f"got {text[:-2]}")


def test_fields_of_newer_clients_have_no_effect(live: Any) -> None:
    newer = {"secret": "a", "text": "a", "to": "de", "writing_style": "default", "enable_document_minification": "1"}
    assert live("/translate", {**LIBRE, **newer}).json == live("/translate", LIBRE).json
    del newer["text"]
    assert live("/v2/translate", {**DEEPL, **newer, "auth_key": "a"}).json == live("/v2/translate", DEEPL).json
    assert live("/v2/usage?cache=1").status == 200
    assert live("/translate?target=de&_=1", {"q": "the dog", "target": "de"}).status == 200  # the same in both
    for name in IGNORED.keys() - DeepLRequest.model_fields.keys() | {"style_rule_id", "translation_memory_ids"}:
        read(DeepLRequest, {**DEEPL, name: "1"})
    with pytest.raises(MalformedError, match=r"^unknown field ignore_tag: did you mean ignore_tags\?$"):
        read(DeepLRequest, {**DEEPL, "ignore_tag": "x"})


# --- glossaries of API v3 ---------------------------------------------------------------------------------------------

STYLES = ["dictionaries[{}].{}", "dictionaries[{}][{}]"]


@pytest.mark.parametrize("style", STYLES)
def test_dictionaries_of_a_form_are_read_as_javascript_and_as_php_write_them(live: Any, style: str) -> None:
    fields = {style.format(0, name): value for name, value in TERMS.items()}
    made = live("/v3/glossaries", form={"name": "all", **fields})
    assert (made.status, made.json["dictionaries"][0]["entry_count"]) == (201, 1)
    path = f"/v3/glossaries/{made.json['glossary_id']}"
    more = {**fields, style.format(0, "entries"): "cat\thaus"}
    assert live(path, form=more, method="PATCH").json["dictionaries"][0]["entry_count"] == 2
    assert live(path, form={"name": "ours"}, method="PATCH").json["name"] == "ours"


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({}, "must have a name or dictionaries"),
        ({"dictionaries": []}, "must have a name or dictionaries"),
        ({"dictionary": [TERMS]}, "unknown field dictionary"),
        ({"title": "a"}, "unknown field title: leave it out"),
        ({"dictionaries[1000].source_lang": "en"}, "dictionaries[1000].source_lang must be written as dictionaries[N]"),
        ({"dictionaries[][source_lang]": "en"}, "must be written as dictionaries[N].source_lang or dictionaries[N]["),
        ({"dictionaries.0.source_lang": "en"}, "must be written as dictionaries[N]"),
        ({"dictionaries[00].entries": "a\tb"}, "must be written as dictionaries[N]"),
        ({"dictionaries": [TERMS], "dictionaries[0].entries": "a\tb"}, "is there in two forms"),
        ({"dictionaries[0].entries": "a\tb", "dictionaries[0][entries]": "a\tc"}, "is there in two forms"),
        ({"dictionaries": [{**TERMS, "entriesFormat": "csv"}]}, "unknown field dictionaries.0.entriesFormat"),
        ({f"dictionaries[0].{name}": value for name, value in {**TERMS, "form": "csv"}.items()}, "dictionaries.0.form"),
        ({"dictionaries": ["a"]}, "dictionaries.0 must be a JSON object, got 'a'"),
        ({"name": ""}, "name must have 1 or more characters, got ''"),
    ],
)
def test_a_change_of_a_glossary_that_would_be_lost_is_refused(live: Any, sent: Any, says: str) -> None:
    made = live("/v3/glossaries", {"name": "all", "dictionaries": [TERMS]}).json
    path = f"/v3/glossaries/{made['glossary_id']}"
    reply = live(path, sent, method="PATCH")
    assert reply.status == 400
    assert says in message(reply)
    assert live(path).json == made


def test_a_repeated_language_of_a_query_is_refused(live: Any) -> None:
    made = live("/v3/glossaries", {"name": "all", "dictionaries": [TERMS]}).json
    path = f"/v3/glossaries/{made['glossary_id']}"
    for method, route in (("GET", "entries"), ("DELETE", "dictionaries")):
        twice = live(f"{path}/{route}?source_lang=xx&source_lang=en&target_lang=de", method=method)
        assert (twice.status, message(twice)) == (400, "source_lang must be a text, got ['xx', 'en']")
        assert message(live(f"{path}/{route}?source_lang=en", method=method)) == "target_lang is missing"
    assert live(f"{path}/entries?source_lang=en&target_lang=de").status == 200


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "sent", "says"),
    [
        ("/v2/translate", {**DEEPL, "formality": "more"}, "default, prefer_more, prefer_less or empty, got 'more'"),
        ("/v2/glossaries", {**TERMS, "name": ""}, "name must have 1 or more characters, got ''"),
        ("/v1/explain", {"text": ""}, "text must have 1 or more characters, got ''"),
        ("/v1/explain", {"text": " "}, "text must not be blank, got ' '"),
        ("/v1/explain", {"text": "a\nb"}, "text must be one line, got 'a\\nb'"),
        ("/v1/explain", {"text": "a" * 401}, "text must have at most 400 characters, got 'aaa"),
        ("/v1/explain", {"text": "a", "translation": ""}, "translation must have 1 or more characters, got ''"),
        ("/explain?text=", None, "text must have 1 or more characters, got ''"),
        ("/explain?text=" + "a" * 401, None, "text must have at most 400 characters"),
    ],
)
def test_a_message_says_what_is_wrong_with_this_value(live: Any, path: str, sent: Any, says: str) -> None:
    reply = live(path, sent)
    assert reply.status == 400
    assert says in message(reply)


# --- the OpenAPI document ---------------------------------------------------------------------------------------------


def test_the_openapi_document_says_what_is_sent_and_taken(live: Any) -> None:
    paths = live("/spec").json["paths"]
    content = paths["/v2/glossaries/{glossary_id}/entries"]["get"]["responses"]["200"]["content"]
    reply = live(f"/v2/glossaries/{stored(live)}/entries")
    assert list(content) == [reply.headers["content-type"].partition(";")[0]] == ["text/tab-separated-values"]
    stream = paths["/v1/translate"]["post"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert all(f"`{event}`" in stream["description"] for event in ("sentence", "done", "error"))
    kinds = paths["/v3/glossaries"]["post"]["requestBody"]["content"]
    fields = kinds["application/x-www-form-urlencoded"]["schema"]
    assert "dictionaries[0].entries" in fields["required"]
    assert set(fields["required"]) <= set(fields["properties"])
    assert "dictionaries" in kinds["application/json"]["schema"]["properties"]
    explain = live("/spec").json["components"]["schemas"]["ExplainRequest"]["properties"]["text"]
    assert (explain["minLength"], explain["maxLength"]) == (1, 400)
    entries = paths["/v3/glossaries/{glossary_id}/entries"]["get"]["parameters"]
    assert {each["name"] for each in entries if each["required"]} == {"glossary_id", "source_lang", "target_lang"}


def test_the_openapi_document_names_the_routes_that_need_a_key(
    serving: Callable[..., Any], live: Any, tmp_path: Path
) -> None:
    assert "security" not in live("/spec").json
    make_key(tmp_path / "keys", "ann")
    server = serving(keys=tmp_path / "keys", glossaries=tmp_path / "glossaries")
    spec = server("/spec").json
    assert spec["security"] == [{"bearer": []}, {"deepl": []}, {"header": []}]
    assert set(spec["components"]["securitySchemes"]) == {"bearer", "deepl", "header"}
    assert set(app.WITHOUT_KEY) <= set(spec["paths"])
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            if method != "get":
                assert "security" not in operation
                continue
            needed = "&".join(f"{own['name']}=a" for own in operation.get("parameters", ()) if own["in"] == "query")
            status = server(quote(path.replace("{", "").replace("}", "")) + f"?{needed}").status
            assert (status in (400, 401, 403)) == ("security" not in operation), (path, status)
