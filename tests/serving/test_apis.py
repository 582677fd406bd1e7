"""The three APIs: what they answer, in which shape, and what each error looks like."""

from __future__ import annotations

import asyncio
import html
import http.client
import json
import logging
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from docs.site import tables
from dragoman.bundle import Bundle, load_bundle
from dragoman.errors import ConfigError
from dragoman.serving import batcher, explaining
from dragoman.serving.apis.deepl import IGNORED
from dragoman.serving.batcher import Batcher
from dragoman.serving.http import translate_markup
from dragoman.serving.keys import Keys, make_key
from dragoman.serving.options import ServeOptions
from dragoman.serving.parsing import tagged
from dragoman.serving.refusals import UnfinishedError
from dragoman.serving.service import Answer, Part, Service
from dragoman.translation.assemble import Translation
from dragoman.translation.notes import Note
from dragoman.translation.options import TranslateOptions
from dragoman.translation.segments import SegmentResult
from dragoman.translation.translator import Translator
from echo import Echo
from limits import cpu_limit, wait_until

Json = Any


def test_the_native_api_gives_what_the_translator_gives(live: Any, served: Translator) -> None:
    texts = ["the dog sees a cat", "a man"]
    expected = served.translate(texts, n_best=2, alignments=True)
    answer = live("/v1/translate", {"text": texts, "n_best": 2, "alignments": True})
    assert answer.status == 200
    assert (answer.json["source"], answer.json["target"]) == ("en", "de")
    for one, other in zip(answer.json["translations"], expected, strict=True):
        assert one["text"] == other.text
        assert one["score"] == pytest.approx(other.score, abs=1e-5)
        assert [each["text"] for each in one["alternatives"]] == [each.text for each in other.alternatives]
        assert [tuple(link) for link in one["alignment"][0]] == list(other.alignment or ())


def test_lines_stay_lines(live: Any, served: Translator) -> None:
    text = "the dog\r\n\n  \na cat\n"
    found = live("/v1/translate", {"text": text}).json["translations"][0]["text"]
    dog, cat = served.translate(["the dog", "a cat"])
    assert found == f"{dog.text}\r\n\n\n{cat.text}\n"


def test_streaming_sends_each_sentence_and_then_all(live: Any) -> None:
    kinds = live("/spec").json["paths"]["/v1/translate"]["post"]["responses"]["200"]["content"]
    assert set(kinds) == {"application/json", "text/event-stream"}
    plain = live("/v1/translate", {"text": "the dog\na cat"}).json
    answer = live("/v1/translate", {"text": "the dog\na cat", "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = re.findall(r"event: (\w+)\ndata: (.*)\n\n", answer.body.decode())
    assert [name for name, _ in events] == ["sentence", "sentence", "done"]
    assert json.loads(events[-1][1])["translations"][0]["text"] == plain["translations"][0]["text"]


def test_a_stream_that_fails_after_its_start_says_so_and_is_not_counted(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = serving()
    monkeypatch.setattr(server.state.service.batcher, "submit", lambda ticket: ticket.fail(UnfinishedError()))
    caplog.set_level(logging.INFO, "dragoman.serving")
    answer = server("/v1/translate", {"text": "the dog", "stream": True})
    (event,) = re.findall(r"event: (\w+)\ndata: (.*)\n\n", answer.body.decode())
    assert (event[0], json.loads(event[1])) == ("error", {"error": {"message": str(UnfinishedError())}})
    assert not server.state.metrics.n_characters
    counted = 'dragoman_requests_total{method="POST",route="/v1/translate",status="503"} 1.0'
    wait_until(lambda: counted in server("/metrics").body.decode())
    wait_until(lambda: any('"route": "/v1/translate", "status": 503' in line for line in caplog.messages))


def test_a_stream_that_cannot_begin_is_refused_as_any_request(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving()
    answers = iter([None, None, 2.5, None])
    monkeypatch.setattr(Batcher, "busy_for_s", lambda self, owner: next(answers))  # full only when it is put in
    reply = server("/v1/translate", {"text": "the dog", "stream": True})
    assert (reply.status, reply.headers["retry-after"]) == (429, "3")
    assert "busy" in reply.json["error"]["message"]


def test_very_short_sentences_are_bounded_too(serving: Callable[..., Any]) -> None:
    server = serving(max_chars=1000, max_texts=50)
    for path, asked in (
        ("/v1/translate", lambda text: {"text": text}), ("/v1/translate", lambda text: {"text": text, "stream": True}),
        ("/translate", lambda text: {"q": text, "source": "en", "target": "de"}),
        ("/v2/translate", lambda text: {"text": [text], "target_lang": "DE"}),
    ):  # fmt: skip
        assert server(path, asked("a\n" * 100)).status == 200
        reply = server(path, asked("a\n" * 101))
        assert (reply.status, b"at most 100 lines and sentences, got 101" in reply.body) == (413, True)
    assert server("/v1/translate", {"text": ["a"] * 50}).status == 200


def test_every_option_of_translating_is_an_option_of_a_request(live: Any) -> None:
    from dragoman.options import json_schema
    from dragoman.serving.service import LANGUAGE_OPTIONS, OPERATOR_OPTIONS
    from dragoman.translation.options import TranslateOptions

    spec = live("/spec").json
    request = spec["components"]["schemas"]["TranslateRequest"]["properties"]
    declared = json_schema(TranslateOptions)["properties"]
    elsewhere = {*OPERATOR_OPTIONS, *LANGUAGE_OPTIONS}
    assert set(declared) - elsewhere <= set(request)
    assert not elsewhere & set(request)
    assert request["beam_size"]["description"] == declared["beam_size"]["description"]


def test_the_openapi_document_has_every_route_with_its_refusals(live: Any) -> None:
    paths = live("/spec").json["paths"]
    assert {"/v1/translate", "/translate", "/detect", "/v2/translate", "/v2/glossaries/{glossary_id}"} <= set(paths)
    assert {"/v2/document", "/v2/document/{document_id}/result", "/translate_file"} <= set(paths)
    uploaded = paths["/v2/document"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert uploaded["required"] == ["file", "target_lang"]
    for operations in paths.values():
        for operation in operations.values():
            assert {"400", "413", "429", "503"} <= set(operation["responses"])
            assert "422" not in operation["responses"]
    shape = paths["/v2/translate"]["post"]["responses"]["400"]["content"]["application/json"]["schema"]
    assert shape["required"] == ["message"]
    assert live("/v2/glossaries", method="PUT").headers["allow"] == "GET, HEAD, OPTIONS, POST"


def test_the_pages_bring_a_policy_of_their_own(live: Any) -> None:
    page = live("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert len(page.body) < 150_000
    shown = live("/explain?text=the%20dog%20sees&source=en&target=de")
    assert shown.status == 200
    assert b"the dog sees" in shown.body
    assert live("/explain?text=" + "a" * 500).status == 400


def test_what_the_model_looked_at_comes_as_json(live: Any, served: Translator) -> None:
    found = live("/v1/explain", {"text": "the dog sees a cat", "source": "en", "target": "de"}).json
    assert found["translation"] == served.translate("the dog sees a cat").text
    assert set(found["views"][0]["kinds"]) == {"cross", "encoder", "decoder"}
    given = live("/v1/explain", {"text": "the dog", "translation": "haus katze"}).json
    assert given["translation"] == "haus katze"
    step = found["steps"][0]
    again = live("/v1/explain", {"text": "the dog sees a cat", "prefix": [step["best_ids"][1]]}).json
    assert (again["steps"][0]["id"], again["forced"]) == (step["best_ids"][1], 1)
    page = live(f"/explain?text=the%20dog&prefix={step['best_ids'][1]}")
    assert page.status == 200


@pytest.mark.parametrize("asked", [
    {"text": " "}, {"text": "a\nb"}, {"text": "a" * 401}, {"text": "a", "translation": ""},
    {"text": "🙂" * 100}, {"text": "a", "translation": "🙂" * 100}, {"text": "a", "prefix": [5] * 300},
    {"text": "a", "prefix": [-5]},
    {"text": "a", "prefix": [10**9]}, {"text": "a", "prefix": ["x"]}, {"text": "a", "translation": "b", "prefix": [9]},
    {"text": "a", "target": "xx"}, {"text": "a", "other": 1}, {},
])  # fmt: skip
def test_what_cannot_be_explained_is_a_clear_error(live: Any, asked: dict[str, Any]) -> None:
    answer = live("/v1/explain", asked)
    assert answer.status == 400
    assert answer.json["error"]["message"]


def test_who_would_wait_too_long_for_a_trace_is_refused(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "MOST_WAITING", 0)
    answer = live("/v1/explain", {"text": "the dog"})
    assert (answer.status, answer.headers["retry-after"]) == (429, "2")


def test_explaining_needs_the_key_too(serving: Callable[..., Any], tmp_path: Path) -> None:
    make_key(tmp_path / "keys", "me")
    assert serving(keys=tmp_path / "keys")("/v1/explain", {"text": "the dog"}).status == 401


def test_constraints_reach_the_search(live: Any) -> None:
    asked = {"text": "the dog sees a cat", "include": ["baum"], "prefix": "der"}
    text = live("/v1/translate", asked).json["translations"][0]["text"]
    assert text.startswith("der")
    assert "baum" in text.split()
    text = live("/v1/translate", {"text": "the dog", "glossary": {"dog": "haus"}}).json["translations"][0]["text"]
    assert "haus" in text.split()


@pytest.mark.parametrize("stream", [False, True])
def test_a_glossary_may_be_a_text_and_its_terms_are_counted(live: Any, stream: bool) -> None:
    terms = "# animals\ndog -> haus\ncat\tbaum\nzebra"
    answer = live("/v1/translate", {"text": ["the dog", "a dog"], "glossary": terms, "stream": stream})
    done = json.loads(answer.body.decode().split("data: ")[-1]) if stream else answer.json
    assert done["glossary"] == {"read": 3, "found": 1}
    assert all("haus" in translation["text"].split() for translation in done["translations"])
    refused = live("/v1/translate", {"text": "the dog", "glossary": "dog = haus\ndog = baum"})
    assert refused.status == 400
    assert "glossary:2: 'dog' is translated as 'baum' here and as 'haus' above" in refused.json["error"]["message"]
    named = live("/v1/translate", {"text": "the dog", "glossary": "/etc/passwd"})
    assert named.json["glossary"] == {"read": 1, "found": 0}  # a term, never a file of the server


@pytest.mark.parametrize("how", ["json", "form", "query"])
def test_libretranslate_takes_json_forms_and_queries(live: Any, served: Translator, how: str) -> None:
    asked = {"q": "the dog", "source": "en", "target": "de", "format": "text"}
    expected = served.translate("the dog").text
    if how == "json":
        answer = live("/translate", {**asked, "q": [asked["q"]]})
        expected = [expected]  # a list for a list
    elif how == "form":
        answer = live("/translate", form=asked)
    else:
        answer = live("/translate?q=the%20dog&source=en&target=de", method="POST")
    assert answer.json == {"translatedText": expected}


def test_libretranslate_detects_lists_alternatives_and_aliases(live: Any) -> None:
    answer = live("/translate", {"q": "the dog", "source": "auto", "target": "DE", "alternatives": 2}).json
    assert answer["detectedLanguage"]["language"] == "en"
    assert len(answer["alternatives"]) == 2
    assert live("/detect", form={"q": "the dog and the cat"}).json[0]["language"] == "en"
    languages = live("/languages").json
    assert {"code": "en", "name": "English", "targets": ["de"]} in languages
    assert live("/frontend/settings").json["language"]["target"]["code"] == "de"
    assert live("/health").json == {"status": "ok"}


def test_alternatives_of_several_lines_join_those_of_each_line(live: Any) -> None:
    def translated(text: str) -> Any:
        return live("/translate", {"q": text, "source": "en", "target": "de", "alternatives": 2}).json

    dog, cat, both = translated("the dog"), translated("a cat"), translated("the dog\r\n\na cat\n")
    assert both["translatedText"] == f"{dog['translatedText']}\r\n\n{cat['translatedText']}\n"
    pairs = zip(dog["alternatives"], cat["alternatives"], strict=True)
    assert both["alternatives"] == [f"{one}\r\n\n{other}\n" for one, other in pairs]
    assert len(both["alternatives"]) == 2


def test_a_line_with_fewer_alternatives_has_its_best_translation_there() -> None:
    first = Translation("a", 0.0, alternatives=(Translation("b", -1.0), Translation("c", -2.0)))
    second = Translation("x", 0.0, alternatives=(Translation("y", -1.0),))
    assert Answer("a\nx", (first, second), (), ("\n", "")).alternatives == ["b\ny", "c\nx"]


def test_a_text_in_the_target_language_is_returned_by_every_api_if_the_source_is_detected(live: Any) -> None:
    german, english = "Guten Morgen, wie geht es dir?\r\nMir geht es gut.", "the dog sees a cat"
    expected = live("/v1/translate", {"text": english, "source": "en"}).json["translations"][0]["text"]

    answer = live("/v1/translate", {"text": [german, english], "target": "de"}).json["translations"]
    assert [one["text"] for one in answer] == [german, expected]
    assert [[note["kind"] for note in one["notes"] if note["kind"] == "same_language"] for one in answer] == [
        ["same_language"], [],
    ]  # fmt: skip
    assert [one.get("source") for one in answer] == ["de", None]
    streamed = live("/v1/translate", {"text": german, "target": "de", "stream": True}).body.decode()
    assert "Guten Morgen" in streamed
    assert "same_language" in streamed

    libre = live("/translate", {"q": [german, english], "source": "auto", "target": "de"}).json
    assert libre["translatedText"] == [german, expected]
    assert [one["language"] for one in libre["detectedLanguage"]] == ["de", "en"]
    assert all(one["confidence"] > 90 for one in libre["detectedLanguage"])
    page = "<p>Guten <b>Morgen</b>, wie geht es dir?</p>"
    assert live("/translate", {"q": page, "source": "auto", "target": "de", "format": "html"}).json[
        "translatedText"
    ] == page  # fmt: skip

    deepl = live("/v2/translate", {"text": [german, english], "target_lang": "DE"}).json["translations"]
    assert [one["text"] for one in deepl] == [german, expected]
    assert [one["detected_source_language"] for one in deepl] == ["DE", "EN"]


def test_a_short_word_of_both_languages_is_translated_and_so_is_a_named_source(live: Any, served: Translator) -> None:
    for text, source in (("Hand", "auto"), ("Guten Morgen, wie geht es dir?", "en")):
        answer = live("/translate", {"q": text, "source": source, "target": "de"}).json
        assert answer["translatedText"] == served.translate(text).text
    assert live("/translate", {"q": "Hand", "source": "auto", "target": "de"}).json["detectedLanguage"] == {
        "language": "en", "confidence": 50.0,
    }  # fmt: skip


def test_html_keeps_its_tags(live: Any) -> None:
    page = '<p>the <b class="x">dog</b> sees</p>\n<ul><li>a cat</li></ul>'
    found = live("/translate", {"q": page, "source": "en", "target": "de", "format": "html"}).json["translatedText"]
    assert re.findall(r"<[^>]*>", found) == re.findall(r"<[^>]*>", page)


IN_PAGES = [
    "the <button type=submit>dog</button> sees <a href='?translate=no'>a cat</a>",
    "<a href=x/y?z>the dog</a> and <a href=y>a cat</a>",
    'the dog <?php if ($a->b) echo "<b>no</b>"; ?> sees a cat',
    "<p class=\"notranslate\">the <b>dog</b></p><p translate='no'>a cat</p>the cat",
    "the <!-- a > b --> dog<br/><x id='a>b'/>",
]
IN_HTML = [
    '<script>a = "<!--<script>the dog</script>"; b("<p>");</script><p>a cat</p>',
    "<ruby>dog<rp>(</rp><rt>the dog</rt><rp>)</rp></ruby> and a cat",
    '<p class="a"">the dog<p id=b\'\'>a cat<li>the cat<li>a dog',
    "<h1>the dog<a class=headerlink href='#a'>¶</a></h1><textarea>a cat</textarea>",
]


@pytest.mark.parametrize(
    ("source", "how"),
    [(source, how) for source in IN_PAGES for how in ("libretranslate", "html", "xml")]
    + [(source, how) for source in IN_HTML for how in ("libretranslate", "html")],
)
def test_every_api_keeps_the_markup_of_a_page(live: Any, source: str, how: str) -> None:
    if how == "libretranslate":
        asked = {"q": source, "source": "en", "target": "de", "format": "html"}
        found = live("/translate", asked).json["translatedText"]
    else:
        asked = {"text": [source], "source_lang": "EN", "target_lang": "DE", "tag_handling": how}
        found = live("/v2/translate", asked).json["translations"][0]["text"]
    markup = re.compile(
        r"<script>.*</script>|<!--.*?-->|<\?.*?\?>|<r[pt]>.*?</r[pt]>|<p [^>]*(?:notranslate|'no').*?</p>"
        r"|<x id='a>b'/>|</?[a-z][^<>]*>|¶"
    )
    assert sorted(markup.findall(found)) == sorted(markup.findall(source))
    assert markup.sub("", found).split() != markup.sub("", source).split()  # the text is translated
    assert "&lt;" not in found


def test_deepl_takes_json_and_forms(live: Any, served: Translator) -> None:
    expected = [one.text for one in served.translate(["the dog", "", "a cat"])]
    for answer in (
        live("/v2/translate", {"text": ["the dog", "", "a cat"], "target_lang": "DE", "show_billed_characters": True}),
        live("/v2/translate", form={"text": ["the dog", "", "a cat"], "target_lang": "de", "source_lang": "en"}),
    ):
        found = answer.json["translations"]
        assert [one["text"] for one in found] == expected
        assert [one["billed_characters"] for one in found] == [7, 0, 5]
        assert {one["detected_source_language"] for one in found} == {"EN"}


def test_deepl_says_its_languages_and_usage(live: Any) -> None:
    assert live("/v2/languages").json == [{"language": "EN", "name": "English"}]
    targets = live("/v2/languages", form={"type": "target"}, method="GET").json
    assert targets == [{"language": "DE", "name": "German", "supports_formality": False}]
    assert live("/v2/languages", form={"type": "target"}).json == targets  # older clients ask so
    assert live("/v2/languages", {}).json == live("/v2/languages").json
    assert set(live("/v2/usage").json) == {"character_count", "character_limit"}
    assert live("/v2/usage", form={}, method="POST").json == live("/v2/usage").json
    pairs = live("/v2/glossary-language-pairs").json["supported_languages"]
    assert pairs == [{"source_lang": "en", "target_lang": "de"}]


def test_a_placeholder_in_xml_comes_back_byte_for_byte(live: Any) -> None:
    asked = {"text": ['the <x id="7"></x> dog'], "target_lang": "DE", "tag_handling": "xml", "ignore_tags": ["x"]}
    assert '<x id="7"></x>' in live("/v2/translate", asked).json["translations"][0]["text"]


def test_a_glossary_is_stored_used_listed_and_deleted(live: Any, served: Translator) -> None:
    asked = {"name": "mine", "source_lang": "en", "target_lang": "de", "entries_format": "tsv", "entries": "dog\tbaum"}
    made = live("/v2/glossaries", asked)
    assert made.status == 201
    id_ = made.json["glossary_id"]
    assert (made.json["entry_count"], made.json["ready"]) == (1, True)
    assert live(f"/v2/glossaries/{id_}/entries").body.decode() == "dog\tbaum"
    asked = {"text": ["the dog"], "source_lang": "EN", "target_lang": "DE", "glossary_id": id_}
    assert "baum" in live("/v2/translate", asked).json["translations"][0]["text"].split()
    assert [each["glossary_id"] for each in live("/v2/glossaries").json["glossaries"]] == [id_]
    assert live(f"/v2/glossaries/{id_}", method="DELETE").status == 204
    assert live(f"/v2/glossaries/{id_}").status == 404


def test_glossaries_survive_a_restart(serving: Callable[..., Any], tmp_path: Path) -> None:
    asked = {"name": "a", "source_lang": "EN", "target_lang": "DE", "entries_format": "csv", "entries": 'dog,"a, b"\n'}
    made = serving(glossaries=tmp_path / "kept")("/v2/glossaries", asked).json
    assert serving(glossaries=tmp_path / "kept")("/v2/glossaries").json["glossaries"] == [made]


def test_quotes_behind_a_space_of_a_csv_do_not_become_a_part_of_terms(
    serving: Callable[..., Any], tmp_path: Path
) -> None:
    asked = {"name": "a", "source_lang": "EN", "target_lang": "DE", "entries_format": "csv"}
    reply = serving(glossaries=tmp_path / "kept")("/v2/glossaries", {**asked, "entries": '"dog", "Hund"\n'})
    assert reply.status == 400
    assert "spaces before quotation marks" in reply.body.decode()


BAD: list[tuple[str, Json, int]] = [
    ("/v1/translate", {"text": "a", "target": "fr"}, 400),
    ("/v1/translate", {"text": "a", "beam_sise": 3}, 400),
    ("/v1/translate", {"text": "a", "beam_size": 0}, 400),
    ("/v1/translate", {"text": "a", "beam_size": 900}, 400),
    ("/v1/translate", {"text": "a", "threads": 2}, 400),
    ("/v1/translate", {"text": 7}, 400),
    ("/v1/translate", {"text": "a" * 60_000}, 413),
    ("/v1/translate", {"text": ["a"] * 100_000}, 413),
    ("/v1/translate", b'{"text": "a"', 400),
    ("/v1/translate", b"\xff\xfe", 400),
    ("/v1/translate", b"[" * 100_000, 400),
    ("/v1/translate", [1], 400),
    ("/v1/translate?a=%ff", {"text": "a"}, 400),
    ("/translate?q=%ff&source=en&target=de", b"", 400),
    ("/v2/languages?type=%ff", None, 400),
    ("/v2/languages?type=both", None, 400),
    ("/v1/translate", b'{"text": "\\ud800"}', 400),
    ("/v1/translate", {"text": "a", "n_best": 3, "beam_size": 2}, 400),
    ("/translate", {"source": "en", "target": "de"}, 400),
    ("/translate", {"q": "a", "source": "xx", "target": "de"}, 400),
    ("/translate", {"q": "a", "source": "en", "target": "de", "format": "pdf"}, 400),
    ("/translate", {"q": {"a": 1}, "source": "en", "target": "de"}, 400),
    ("/translate", b"[1, 2]", 400),
    ("/translate", b'{"q": "a" "api_key": "k"}', 400),
    ("/translate", b"[" * 100_000, 400),
    ("/v2/translate", {"text": ["a"]}, 400),
    ("/v2/translate", {"text": ["a"], "target_lang": "FR"}, 400),
    ("/v2/translate", {"text": ["a"], "target_lang": "DE", "formality": "more"}, 400),
    ("/v2/translate", {"text": ["a"], "target_lang": "DE", "tag_handling": "md"}, 400),
    ("/v2/translate", {"text": ["a"], "target_lang": "DE", "source_lang": "EN", "glossary_id": "../../etc"}, 404),
    ("/v2/glossaries", {"name": "x", "source_lang": "en", "target_lang": "de", "entries": "no tab here"}, 400),
    ("/v2/write/rephrase", {"text": ["a"]}, 404),
]


@pytest.mark.parametrize(("path", "asked", "status"), BAD)
def test_a_bad_request_is_one_clear_error_in_the_shape_of_its_api(
    live: Any, path: str, asked: Json, status: int
) -> None:
    answer = live(path, asked)
    assert answer.status == status
    found = answer.json
    if path.startswith("/v2"):
        message = found["message"]
    elif path.startswith("/v1"):
        message = found["error"]["message"]
    else:
        message = found["error"]
    assert message
    assert "Traceback" not in message
    assert live("/translate", {"q": "the dog", "source": "en", "target": "de"}).status == 200


@pytest.mark.parametrize("route", ["/v1/translate", "/v1/explain", "/translate", "/v2/translate", "/v3/glossaries"])
@pytest.mark.parametrize("body", [b'{"text":', b'{"q": "a" "api_key": "k"}', b'{"text": "\xff"}', b"[" * 9000, b"[1]"])
def test_a_body_that_is_no_json_is_said_to_be_none(live: Any, route: str, body: bytes) -> None:
    answer = live(route, body)
    assert answer.status == 400
    assert b"JSON" in answer.body


def test_what_a_text_must_be_is_said_once(live: Any) -> None:
    for text in (7, None, {}, [1], [None]):
        message = live("/v1/translate", {"text": text}).json["error"]["message"]
        assert message == f"text must be a text or a list of texts, got {text!r}"


def test_a_form_of_a_hundred_thousand_fields_is_refused_at_once(live: Any) -> None:
    with cpu_limit(8):  # 0.2 s; copying all fields for each took 10
        answer = live("/v2/translate", form=[("target_lang", "DE"), *[("text", "a")] * 100_000])
    assert answer.status == 413


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\x1b[31m", "\u2028", "\u202e", "\U0010ffff", " ", "\t\n", "🙂"])
def test_odd_text_is_translated_like_any_other(live: Any, text: str) -> None:
    assert live("/v1/translate", {"text": text}).status == 200


def test_keys(serving: Callable[..., Any], tmp_path: Path) -> None:
    key = make_key(tmp_path / "keys", "ann")
    assert key not in (tmp_path / "keys").read_text(encoding="ascii")
    assert (tmp_path / "keys").stat().st_mode & 0o77 == 0
    server = serving(keys=tmp_path / "keys")
    asked = {"q": "the dog", "source": "en", "target": "de"}
    assert server("/translate", asked).status == 400
    assert server("/translate", {**asked, "api_key": "wrong"}).status == 403
    assert server("/translate", {**asked, "api_key": key}).status == 200
    deepl = {"text": ["the dog"], "target_lang": "DE"}
    assert server("/v2/translate", deepl).status == 403
    assert server("/v2/translate", deepl, authorization=f"DeepL-Auth-Key {key}").status == 200
    assert server("/v1/translate", {"text": "the dog"}).status == 401
    assert server("/v1/translate", {"text": "the dog"}, authorization=f"Bearer {key}").status == 200
    assert server("/metrics").status == 401
    assert server("/readyz").status == 200
    with pytest.raises(ConfigError, match="already"):
        make_key(tmp_path / "keys", "ann")
    assert Keys.load(tmp_path / "keys").owner(key) == "ann"


def test_health_routes_say_what_is_wrong(serving: Callable[..., Any]) -> None:
    server = serving()
    service, watchdog = server.state.service, server.state.watchdog
    for path in ("/livez", "/readyz"):
        assert (server(path).status, server(path).body) == (200, b"ok")
    assert server("/health").json == {"status": "ok"}
    service.unready = "the models are loading"
    assert (server("/readyz").status, server("/readyz").body) == (503, b"not ready: the models are loading")
    assert server("/livez").status == 200
    service.unready = None
    watchdog.failure = "search thread server-0 cannot be ended"
    for path, word in (("/livez", "failed"), ("/readyz", "not ready")):
        assert server(path).status == 503
        assert server(path).body.decode() == f"{word}: search thread server-0 cannot be ended"
    assert server("/health").status == 503
    assert server("/health").json == {"status": "search thread server-0 cannot be ended"}


def test_other_hosts_long_bodies_and_framing_are_refused(serving: Callable[..., Any]) -> None:
    server = serving(max_body=1000)
    assert server("/livez", host="evil.example").status == 421
    assert server("/translate", b"x" * 1001).status == 413
    answer = server("/livez")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers.get("access-control-allow-origin") is None
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:  # chunks of six bytes, without an end
        raw.sendall(b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        raw.sendall(b"6\r\nabcdef\r\n" * 200)
        assert b" 413 " in raw.recv(100)


def test_cors_is_for_named_origins(serving: Callable[..., Any]) -> None:
    server = serving(cors_origin=("https://a.org",))
    assert server("/health", origin="https://a.org").headers["access-control-allow-origin"] == "https://a.org"
    assert server("/health", origin="https://b.org").headers.get("access-control-allow-origin") is None


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "", "a.org", "https://a.org/", "https://a.org/x", "https://*.a.org", "https://a.org\r\nx: y"],
)
def test_S22_an_origin_of_every_page_or_of_none_is_refused(origin: str, figure: Any) -> None:
    """A page in a sandbox has the origin "null", which each page can give itself."""
    with pytest.raises(ConfigError, match="origins by name, without a path"):
        ServeOptions(cors_origin=(origin,))
    for named in ("https://a.org", "http://localhost:8080", "http://[::1]:80", "chrome-extension://abcdefghij"):
        assert ServeOptions(cors_origin=(named,)).cors_origin == (named,)
    figure("S22", f"--cors-origin {origin!r}: refused")


def test_a_page_of_a_named_origin_reads_every_refusal(serving: Callable[..., Any]) -> None:
    server = serving(cors_origin=("https://a.org",), max_body=1000)
    for status, path, body, more in (
        (400, "/v1/languages?%ff", None, {}),
        (400, "/v1/translate", b"{", {}),
        (404, "/v1/nothing", None, {}),
        (413, "/v1/translate", b" " * 1001, {}),
        (421, "/v1/languages", None, {"host": "evil.example"}),
    ):
        reply = server(path, body, origin="https://a.org", **more)
        assert reply.status == status
        assert reply.json["error"] if status != 404 else reply.body
        assert reply.headers["access-control-allow-origin"] == "https://a.org", status
        assert reply.headers["x-content-type-options"] == "nosniff", status
        assert server(path, body, origin="https://b.org", **more).headers.get("access-control-allow-origin") is None


def test_a_preflight_is_answered_for_named_origins(serving: Callable[..., Any]) -> None:
    server = serving(cors_origin=("https://a.org",))
    asks = {"access_control_request_method": "POST", "access_control_request_headers": "content-type"}
    reply = server("/v1/translate", method="OPTIONS", origin="https://a.org", **asks)
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "https://a.org"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert server("/v1/translate", method="OPTIONS", origin="https://b.org", **asks).status == 400


def test_metrics_count_and_name_no_text(live: Any) -> None:
    live("/v1/translate", {"text": "the dog"})
    live("/no/such/route/of/mine")
    text = live("/metrics").body.decode()
    assert 'dragoman_requests_total{method="POST",route="/v1/translate",status="200"}' in text
    assert "dragoman_search_seconds_total" in text
    assert "such" not in text


@pytest.mark.parametrize(
    ("path", "asked", "message"),
    [
        ("/v1/translate", {"text": "the dog"}, ("error", "message")),
        ("/translate", {"q": "the dog", "source": "en", "target": "de"}, ("error",)),
        ("/v2/translate", {"text": ["the dog"], "target_lang": "DE"}, ("message",)),
    ],
)
def test_a_full_queue_refuses_requests_before_they_are_read(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, path: str, asked: Any, message: tuple[str, ...]
) -> None:
    server = serving(cors_origin=("https://a.org",))
    assert server(path, asked).status == 200
    monkeypatch.setattr(Batcher, "busy_for_s", lambda self, owner: 2.5)
    monkeypatch.setattr(Service, "translate", None)  # nobody gets as far
    reply = server(path, asked, origin="https://a.org")
    assert (reply.status, reply.headers["retry-after"]) == (429, "3")
    assert reply.headers["access-control-allow-origin"] == "https://a.org"  # so that a page can read it
    assert reply.headers["content-security-policy"]
    found = reply.json
    for name in message:
        found = found[name]
    assert "busy" in found
    assert server("/livez").status == 200
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    for _ in range(2):  # it was read, so the connection is kept
        connection.request("POST", path, json.dumps(asked), {"content-type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, answer.headers.get("connection")) == (429, None)
        answer.read()
    connection.close()
    assert f'route="{path}",status="429"' in server("/metrics").body.decode()


def test_each_reference_in_the_document_leads_somewhere(live: Any) -> None:
    spec = live("/spec").json
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(spec)))
    assert references
    assert references <= {f"#/components/schemas/{name}" for name in spec["components"]["schemas"]}


def test_words_to_include_are_bounded(live: Any) -> None:
    asked = {"text": "the dog", "include": ["\u0081" * 10] * 30}
    reply = live("/v1/translate", asked)
    assert reply.status == 400
    assert "at most 200 bytes on this server, got 600" in reply.json["error"]["message"]
    assert live("/v1/translate", {**asked, "include": ["Haus"]}).status == 200


@pytest.mark.parametrize(("option", "why"), [
    ({"prefix": "hund " * 201}, "a prefix may have at most 1,000 bytes on this server, got 1,005"),
    ({"exclude": ["ab" * 1000] * 3}, "exclude may have at most 4,000 bytes on this server, got 6,000"),
    ({"glossary": {"dog": "x" * 1025}}, "a term of the glossary may have at most 1,024 bytes on this server"),
    ({"glossary": {"x" * 1025: None}}, "a term of the glossary may have at most 1,024 bytes on this server"),
    ({"text": ["the dog"] * 200, "prefix": "hund " * 100}, "too long for so many texts"),
    ({"text": ["the dog"] * 200, "include": ["hund" * 45]}, "too long for so many texts"),
])  # fmt: skip
def test_words_that_make_a_search_long_are_bounded(live: Any, option: dict[str, Any], why: str) -> None:
    reply = live("/v1/translate", {"text": "the dog", "source": "en", **option})
    assert reply.status in (400, 413)
    assert why in reply.json["error"]["message"]


def test_the_page_of_the_api_shows_every_route_and_loads_nothing(live: Any) -> None:
    page = live("/docs")
    text = page.body.decode()
    for path, operations in live("/spec").json["paths"].items():
        assert f"<code>{path}</code>" in text
        for method in operations:
            assert f'data-method="{method.upper()}"' in text
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
    for example in re.findall(r'name="body"[^>]*>([^<]*)<', text):
        json.loads(html.unescape(example))


def test_an_example_of_the_page_is_a_request_that_is_answered(live: Any) -> None:
    text = live("/docs").body.decode()
    for path, status in (("/v1/translate", 200), ("/translate", 200), ("/detect", 200), ("/v2/translate", 200),
                         ("/v2/glossaries", 201), ("/v3/glossaries", 201), ("/v1/explain", 200)):  # fmt: skip
        form = text[text.index(f'name="path" value="{path}"') :]
        example = html.unescape(re.findall(r'name="body"[^>]*>([^<]*)<', form)[0])
        assert live(path, example.encode()).status == status, (path, example)


def test_the_reference_names_every_field_of_deepl_that_changes_nothing(live: Any) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\| No effect: (.+)\. \|$", tables.http(), re.MULTILINE))
    assert rows == {name: tables.escaped(reason) for name, reason in IGNORED.items()}
    plain = live("/v2/translate", {"text": ["the dog"], "target_lang": "DE"}).json
    asked = {"text": ["the dog"], "target_lang": "DE", **dict.fromkeys(IGNORED, "1"), "formality": "prefer_more"}
    assert live("/v2/translate", asked).json == plain


def test_the_language_of_several_texts_is_detected_together(live: Any) -> None:
    single = live("/detect", {"q": "the dog and the cat"}).json
    assert live("/detect", {"q": ["the dog", "and the cat"]}).json == single
    assert live("/detect", {"q": []}).status == 400
    assert live("/detect", {"q": ["a", 1]}).status == 400


def test_a_preflight_allows_every_method_that_exists(serving: Callable[..., Any]) -> None:
    server = serving(cors_origin=("https://a.org",))
    for path, operations in server("/spec").json["paths"].items():
        for method in operations:
            asks = {
                "access_control_request_method": method.upper(),
                "access_control_request_headers": "content-type, content-encoding",
            }
            reply = server(path.replace("{", "").replace("}", ""), method="OPTIONS", origin="https://a.org", **asks)
            assert reply.status == 200, (method, path, reply.body)
            assert method.upper() in reply.headers["access-control-allow-methods"]
    found = server("/v2/glossaries", method="OPTIONS", origin="https://a.org")  # no preflight, but a question
    assert (found.status, found.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")


def test_marked_up_texts_in_the_target_language_are_not_searched() -> None:
    class _Service:
        """Translates to capitals, and remembers what it was asked for."""

        def __init__(self) -> None:
            self.texts: list[str] = []

        async def aligned(self, pair: Any, options: Any, owner: str) -> Any:
            return options

        async def translate(
            self, texts: list[str], pair: Any, options: Any, owner: str, part: Part
        ) -> list[Answer]:  # fmt: skip
            assert not part.others
            self.texts += texts
            lines = [Translation(text.upper(), 0.0) for text in texts]
            return [Answer(line.text, (line,), ()) for line in lines]

    async def work() -> list[str]:
        sources = ["<b>ein Hund</b>", "<p>a dog</p><p>a <i>cat</i></p>"]
        marked = await tagged(sources, "html", "")
        pair = SimpleNamespace(src="en", tgt="de")
        return await translate_markup(service, marked, pair, TranslateOptions(), Part(frozenset({0})))  # type: ignore[arg-type]

    service = _Service()
    assert asyncio.run(work()) == ["<b>ein Hund</b>", "<p>A DOG</p><p>A <i>CAT</i></p>"]
    assert service.texts == ["a dog", "a cat"]


@pytest.mark.parametrize(
    ("site", "origin"),
    [("cross-site", "https://evil.org"), ("same-site", "http://localhost:3000"), ("cross-site", "null")],
)
def test_S24_a_page_of_another_site_sends_nothing(
    serving: Callable[..., Any], site: str, origin: str, tmp_path: Path, figure: Any
) -> None:
    """What needs no preflight, such as a form or JSON sent as text, is not read; CORS hides the answer alone."""
    server = serving(cors_origin=("https://a.org",), glossaries=tmp_path / "glossaries")
    sent = {"sec_fetch_site": site, "origin": origin, "content_type": "text/plain"}
    glossary = {"name": "a", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund", "entries_format": "tsv"}
    for path, data in (("/translate", {"q": "the dog", "source": "en", "target": "de"}), ("/v2/glossaries", glossary)):
        reply = server(path, data, **sent)
        assert reply.status == 403
        assert "a proxy must pass the header Host on" in reply.body.decode()
        assert "--cors-origin" in reply.body.decode()
        for allowed in (
            {"origin": "https://a.org"},
            {"origin": "moz-extension://0"},
            {"sec_fetch_site": "same-origin"},
        ):
            assert server(path, data, **{**sent, **allowed}).status < 300
    assert server("/", **sent, sec_fetch_dest="document").status == 200  # a link to the page
    # A picture or a script has no origin, and no page reads it; but the server computes for it.
    for dest, mode in (("image", "no-cors"), ("iframe", "navigate"), ("empty", "no-cors")):
        read = {"sec_fetch_site": site, "sec_fetch_dest": dest, "sec_fetch_mode": mode}
        for path in ("/explain?text=the+dog&target=de", "/languages", "/"):
            assert server(path, **read).status == 403
            assert server(path, **read, method="HEAD").status == 403
            for allowed in ({"sec_fetch_site": "same-origin"}, {"referer": "https://a.org/page"}):
                assert server(path, **{**read, **allowed}).status == 200
    extension = {"sec_fetch_site": "cross-site", "sec_fetch_dest": "empty", "sec_fetch_mode": "cors"}
    assert server("/languages", **extension).status == 200
    figure("S24", f"{site}: 2 routes that change something, 3 that read as part of a page: refused")


@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        ("http://192.0.2.2:5000", True), ("http://192.0.2.2:8000", False), ("http://evil.org", False), ("null", False),
        ("moz-extension://0", True), ("https://a.org", True), (None, True),
    ],
)  # fmt: skip
def test_without_a_word_of_the_site_the_origin_must_be_the_servers_own(
    origin: str | None, is_own: bool, serving: Callable[..., Any], tmp_path: Path
) -> None:
    """Browsers send Sec-Fetch-Site to this machine and over https alone."""
    server = serving(cors_origin=("https://a.org",), glossaries=tmp_path / "glossaries", allow_host=("192.0.2.2",))
    glossary = {"name": "a", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund", "entries_format": "tsv"}
    sent = {"host": "192.0.2.2:5000", **({} if origin is None else {"origin": origin})}
    assert server("/v2/glossaries", glossary, **sent).status == (201 if is_own else 403)


def test_a_server_with_narrow_beams_translates(serving: Callable[..., Any]) -> None:
    server = serving(max_beam=2)
    settings = json.loads(
        re.search(r'<script type="application/json"[^>]*>(.*?)</script>', server("/").body.decode())[1]
    )  # type: ignore[index]
    assert settings["beam"] == 2
    assert server("/v1/translate", {"text": "the dog", "n_best": 2}).status == 200
    made = server("/translate", {"q": "the dog", "source": "en", "target": "de", "alternatives": 1})
    assert (made.status, len(made.json["alternatives"])) == (200, 1)
    refused = server("/translate", {"q": "the dog", "source": "en", "target": "de", "alternatives": 2})
    assert (refused.status, refused.json["error"]) == (400, "alternatives must be at most 1 on this server, got 2")
    plan = server.state.service.plan(next(iter(server.state.service.pairs)), server.state.service.options())
    assert plan.search.decode.beam_size == 2


def with_french(serving: Callable[..., Any], tiny_run: Path) -> Any:
    """Return a server from English and French to German; its translations of French are their sources."""
    real = load_bundle(tiny_run)
    echo: Any = Echo(real.tgt_tokenizer.vocab_size)
    french = Translator(Bundle(real.config, echo, *real[2:4], {}))
    french.languages = replace(french.languages, src_lang="fr")
    server = serving(french)
    server.state.service.defaults = replace(server.state.service.defaults, guard=False)
    return server


def test_each_text_of_a_request_is_translated_from_its_own_language(
    serving: Callable[..., Any], tiny_run: Path
) -> None:
    """All went through the model of one of the languages, whatever the answer said."""
    server = with_french(serving, tiny_run)
    texts = [
        "The weather is fine today.",
        "Le temps est beau et nous sortons ce soir.",
        "Guten Morgen, wie geht es dir?",
    ]
    n_chars = server.state.metrics.n_characters

    libre = server("/translate", {"q": texts, "source": "auto", "target": "de"}).json
    assert [one["language"] for one in libre["detectedLanguage"]] == ["en", "fr", "de"]
    assert (
        libre["translatedText"][0]
        == server("/v1/translate", {"text": texts[0], "source": "en"}).json["translations"][0]["text"]
    )
    assert libre["translatedText"][1:] == texts[1:]
    assert libre["translatedText"][0] != texts[0]
    deepl = server("/v2/translate", {"text": texts, "target_lang": "DE"}).json["translations"]
    assert [one["detected_source_language"] for one in deepl] == ["EN", "FR", "DE"]
    assert [one["text"] for one in deepl] == libre["translatedText"]
    pages = [f"<p>{text}</p>" for text in texts]
    marked = server("/v2/translate", {"text": pages, "target_lang": "DE", "tag_handling": "html"}).json["translations"]
    assert [one["detected_source_language"] for one in marked] == ["EN", "FR", "DE"]
    assert [one["text"] for one in marked] == [f"<p>{text}</p>" for text in libre["translatedText"]]
    own = server("/v1/translate", {"text": texts, "target": "de"}).json
    usual = own["source"]
    assert [one.get("source", usual) for one in own["translations"][:2]] == ["en", "fr"]
    assert [one["text"] for one in own["translations"]] == libre["translatedText"]
    streamed = server("/v1/translate", {"text": texts, "target": "de", "stream": True}).body.decode()
    events = [json.loads(line.removeprefix("data: ")) for line in streamed.split("\n") if line.startswith("data: ")]
    assert sorted(event["text"] for event in events[:-1]) == [0, 1, 2]
    assert events[-1] == own
    assert sum(n_chars.values()) == len(texts[0]) + 5 * sum(map(len, texts)) + 7 * len(texts)


def test_each_line_has_its_own_prefix_whatever_its_language(
    serving: Callable[..., Any], tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = with_french(serving, tiny_run)
    texts = [
        "The weather is fine today.\nThe dog sees the cat in the garden.",
        "Guten Morgen, wie geht es dir?\nMir geht es gut.",
        "Le temps est beau et nous sortons ce soir.\nNous mangeons dans la rue.",
    ]
    prefixes = ["der ", "ein ", "nie ", "nie ", "die ", "das "]
    asked = {"text": texts, "target": "de", "prefix": prefixes}
    answer = server("/v1/translate", asked).json
    english, german, french = (one["text"] for one in answer["translations"])
    lines = [*english.split("\n"), *french.split("\n")]
    assert [line[:4] for line in lines] == [*prefixes[:2], *prefixes[4:]]
    assert german == texts[1]
    streamed = server("/v1/translate", {**asked, "stream": True}).body.decode()
    assert json.loads(streamed.split("data: ")[-1]) == answer
    monkeypatch.setattr(server.state.service.batcher, "submit", None)  # nothing is searched
    for n in (3, 4, 5, 7):
        for stream in (False, True):
            refused = server("/v1/translate", {**asked, "prefix": ["der "] * n, "stream": stream})
            assert refused.status == 400
            assert f"{n} prefixes for 6 lines" in refused.json["error"]["message"]
    monkeypatch.setattr(TranslateOptions, "of", None)  # nor is any of too many prefixes read
    most = server.state.service.limits.sentences
    refused = server("/v1/translate", {**asked, "prefix": ["der "] * (most + 1)})
    assert (refused.status, f"at most {most:,} prefixes" in refused.json["error"]["message"]) == (413, True)


def test_a_sentence_without_memory_is_no_empty_translation(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients of DeepL and LibreTranslate see no notes: the answer was 200, and a sentence was missing."""
    server = serving()

    def without_memory(segments: Sequence[Any], plan: Any) -> list[SegmentResult]:
        return [SegmentResult(note=Note("memory", "it does not fit")) for _ in segments]

    monkeypatch.setattr(batcher, "translate_segments", without_memory)
    for path, body in (
        ("/translate", {"q": "the dog", "source": "en", "target": "de"}),
        ("/v2/translate", {"text": ["the dog"], "target_lang": "DE"}),
        ("/v1/translate", {"text": "the dog", "target": "de"}),
    ):
        answer = server(path, body)
        assert (answer.status, "no memory for this text" in answer.body.decode()) == (503, True), path
        assert answer.headers["retry-after"]
    streamed = server("/v1/translate", {"text": "the dog", "target": "de", "stream": True}).body.decode()
    assert "event: error" in streamed
    assert "event: sentence" not in streamed
    assert "event: done" not in streamed


def test_a_stream_says_that_it_has_failed_whatever_fails(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving()

    def broken(segments: Sequence[Any], plan: Any) -> list[SegmentResult]:
        raise RuntimeError("a kernel failed")

    monkeypatch.setattr(batcher, "translate_segments", broken)
    streamed = server("/v1/translate", {"text": "the dog", "target": "de", "stream": True}).body.decode()
    assert "event: error" in streamed
    assert "kernel" not in streamed
