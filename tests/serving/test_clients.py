"""The clients that people have, unchanged, against a live server."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.translation.translator import Translator


def test_deepls_python_library(live: Any, served: Translator) -> None:
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient("a-key", server_url=live.url)
    found = client.translate_text(["the dog", "a cat"], target_lang="DE")
    assert [one.text for one in found] == [one.text for one in served.translate(["the dog", "a cat"])]
    assert found[0].detected_source_lang == "EN"
    assert found[0].billed_characters == 7
    tagged = client.translate_text('the <x id="1"/>dog', target_lang="DE", tag_handling="xml", ignore_tags=["x"])
    assert '<x id="1"/>' in tagged.text
    assert [each.code for each in client.get_source_languages()] == ["EN"]
    assert [each.code for each in client.get_target_languages()] == ["DE"]
    assert client.get_usage().character.count > 0
    made = client.create_glossary("mine", "en", "de", {"dog": "baum"})
    assert client.get_glossary_entries(made) == {"dog": "baum"}
    assert "baum" in client.translate_text("the dog", source_lang="EN", target_lang="DE", glossary=made).text.split()
    client.delete_glossary(made)
    assert client.list_glossaries() == []
    entries = deepl.api_data.MultilingualGlossaryDictionaryEntries
    several = client.create_multilingual_glossary("all", [entries("en", "de", {"dog": "baum"})])
    more = client.update_multilingual_glossary_dictionary(several, entries("en", "de", {"cat": "haus"}))
    assert [each.entry_count for each in more.dictionaries] == [2]
    read = client.get_multilingual_glossary_entries(several, "en", "de")
    assert read.dictionaries[0].entries == "dog\tbaum\ncat\thaus"
    assert client.update_multilingual_glossary_name(several, "ours").name == "ours"
    client.replace_multilingual_glossary_dictionary(several, entries("en", "de", {"dog": "haus"}))
    bound = client.translate_text("the dog", source_lang="EN", target_lang="DE", glossary=several)
    assert "haus" in bound.text.split()
    with pytest.raises(deepl.DeepLException, match="at least one"):
        client.delete_multilingual_glossary_dictionary(several, source_lang="en", target_lang="de")
    assert [each.name for each in client.list_multilingual_glossaries()] == ["ours"]
    client.delete_multilingual_glossary(several)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary(several)
    with pytest.raises(deepl.DeepLException, match="FR"):
        client.translate_text("the dog", target_lang="FR")


def test_deepls_python_library_translates_documents(live: Any, served: Translator) -> None:
    deepl = pytest.importorskip("deepl")
    client = deepl.DeepLClient("a-key", server_url=live.url)
    out = io.BytesIO()
    status = client.translate_document(b"the dog\n", out, target_lang="DE", filename="a.txt")
    assert status.done
    assert out.getvalue().decode() == served.translate("the dog").text + "\n"
    with pytest.raises(deepl.DeepLException, match="not a"):
        client.translate_document(b"no zip", io.BytesIO(), target_lang="DE", filename="a.docx")
    # The library sends no name with a stream, whatever ``filename`` is: as plain text the tags would be translated.
    page = io.BytesIO(b"<!DOCTYPE html><html><p>the dog</p></html>")
    with pytest.raises(deepl.DeepLException, match=r"its name has no suffix: add it, such as \.html"):
        client.translate_document(page, io.BytesIO(), target_lang="DE", filename="a.html")


def test_libretranslatepy(live: Any, served: Translator) -> None:
    api = pytest.importorskip("libretranslatepy").LibreTranslateAPI(live.url + "/")
    assert api.translate("the dog", "en", "de") == served.translate("the dog").text
    assert api.detect("the dog and the cat")[0]["language"] == "en"
    assert {each["code"] for each in api.languages()} == {"en", "de"}


def test_deep_translator(live: Any, served: Translator) -> None:
    module = pytest.importorskip("deep_translator")
    client = module.LibreTranslator(source="en", target="de", custom_url=live.url + "/", api_key="any")
    assert client.translate("the dog sees") == served.translate("the dog sees").text


RECORDED = Path(__file__).parent / "requests_of_deepl_node.json"
"""What DeepL's library for Node.js sends for ``deepl_node.mjs``, and the status of each answer."""


def test_requests_of_deepls_node_library(live: Any, served: Translator) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    made = ""
    for each in recorded["requests"]:
        path, body = (each[name].replace("GLOSSARY", made) for name in ("path", "body"))
        headers = {"authorization": "DeepL-Auth-Key a-key", "content-type": each["content_type"] or "text/plain"}
        reply = live(path, body.encode() or None, method=each["method"], **headers)
        assert reply.status == each["status"], (each, reply)
        if each["answer"] is not None:
            answer = reply.json
            assert sorted(answer[0] if isinstance(answer, list) else answer) == each["answer"], each
            made = answer.get("glossary_id", made) if isinstance(answer, dict) else made
            if path == "/v2/translate" and reply.status == 200:
                assert [one["billed_characters"] for one in answer["translations"]]
    said = {each["method"] + " " + each["path"].partition("?")[0] for each in recorded["requests"]}
    assert {"POST /v2/translate", "POST /v3/glossaries", "GET /v2/glossaries/GLOSSARY/entries"} <= said


@pytest.mark.node
def test_deepls_node_library(live: Any, served: Translator) -> None:
    done = subprocess.run(
        ["node", Path(__file__).parent / "deepl_node.mjs", live.url], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert got["one"] == served.translate("the dog").text
    assert got["many"] == [one.text for one in served.translate(["the dog", "a cat"])]
    assert got["billed"] == [7, 5]
    assert '<x id="1"/>' in got["tagged"]
    assert got["html"].startswith("<p>")
    assert got["lines"].split("\n")[1] == ""
    assert (got["sources"], got["targets"], got["pairs"]) == (["en"], ["de"], ["en-de"])
    assert (got["entries"], got["glossaries"], got["named"], got["left"]) == ({"dog": "baum"}, 1, "mine", 0)
    assert (got["dictionaries"], got["merged"], got["replaced"]) == ([1], [2], 1)
    assert got["read"] == {"dog": "baum", "cat": "haus"}
    assert (got["renamed"], got["known"]) == ("ours", ["ours"])
    assert "baum" in got["termed"].split()
    assert "haus" in got["bound"].split()
    assert "not a target language" in got["refused"]
