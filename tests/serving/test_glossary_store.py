"""Stored glossaries: a list reads none twice, none grows beyond its limit, and names are short."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.serving import glossaries, storage
from dragoman.serving.apis import deepl_glossaries
from dragoman.serving.glossaries import Dictionary, Glossaries
from dragoman.serving.limits import Shares
from dragoman.serving.refusals import MalformedError

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"

TERMS = {f"term {i}": f"Begriff {i}" for i in range(50)}


def test_a_glossary_has_a_largest_size(tmp_path: Path) -> None:
    stored = Glossaries(tmp_path, Shares(("",)), most_bytes=2000)
    made = stored.add("", "g", [Dictionary("en", "de", {"dog": "Hund"})])
    before = (tmp_path / f"{made.id}.json").read_bytes()
    many = Dictionary("en", "fr", {f"t{i}": "x" * 100 for i in range(20)})
    with pytest.raises(MalformedError, match="at most 2,000 bytes on this server, got 2,"):
        stored.change(made.id, "", lambda old: glossaries.replace(old, dictionaries=(*old.dictionaries, many)))
    with pytest.raises(MalformedError, match="at most 2,000 bytes"):
        stored.add("", "h", [many])
    assert (tmp_path / f"{made.id}.json").read_bytes() == before
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_changes_add_up_to_the_limit_of_terms_and_names_are_short(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl_glossaries, "MOST_ENTRIES", 5)
    server = serving(glossaries=tmp_path)

    def terms(*names: str) -> dict[str, Any]:
        entries = "\n".join(f"{name}\tx" for name in names)
        return {"dictionaries": [{"source_lang": "en", "target_lang": "de", "entries": entries}]}

    made = server("/v3/glossaries", {"name": "g", **terms("a", "b", "c")})
    path = f"/v3/glossaries/{made.json['glossary_id']}"
    assert server(path, terms("c", "d", "e"), method="PATCH").status == 200
    refused = server(path, terms("f"), method="PATCH")
    assert (refused.status, refused.json["message"]) == (400, "a glossary may have at most 5 entries, got 6")
    (shown,) = server("/v3/glossaries").json["glossaries"]
    assert shown["dictionaries"] == [{"source_lang": "en", "target_lang": "de", "entry_count": 5}]
    long = {"name": "n" * 1025, **terms("a")}
    assert server("/v3/glossaries", long).status == 400
    assert server(path, {"name": "n" * 1025}, method="PATCH").status == 400
    assert server("/v3/glossaries", {**long, "name": "n" * 1024}).status == 201


def test_composed_and_decomposed_terms_are_one(serving: Callable[..., Any], tmp_path: Path) -> None:
    """A glossary where they had two translations was stored, and no translation could use it."""
    server = serving(glossaries=tmp_path)

    def terms(*entries: str) -> dict[str, Any]:
        return {"dictionaries": [{"source_lang": "en", "target_lang": "de", "entries": "\n".join(entries)}]}

    refused = server("/v3/glossaries", {"name": "g", **terms(f"{COMPOSED}\tbaum", f"{DECOMPOSED}\thaus")})
    assert (refused.status, "translates 'caf\u00e9' a second time" in refused.json["message"]) == (400, True)
    made = server("/v3/glossaries", {"name": "g", **terms(f"{DECOMPOSED}\tbaum")})
    path = f"/v3/glossaries/{made.json['glossary_id']}"
    for term, translation in ((COMPOSED, "hund"), (DECOMPOSED, "haus")):
        changed = server(path, terms(f"{term}\t{translation}"), method="PATCH").json
        assert changed["dictionaries"][0]["entry_count"] == 1
        (shown,) = server(f"{path}/entries?source_lang=en&target_lang=de").json["dictionaries"]
        assert shown["entries"] == f"{COMPOSED}\t{translation}"


def test_the_terms_of_a_stored_file_are_composed_when_it_is_read(serving: Callable[..., Any], tmp_path: Path) -> None:
    made = Glossaries(tmp_path).add("", "g", [Dictionary("en", "de", {COMPOSED: "baum", DECOMPOSED: "haus"})])
    server = serving(glossaries=tmp_path)
    assert server(f"/v2/glossaries/{made.id}").json["entry_count"] == 1
    asked = {"text": [f"the {COMPOSED}"], "source_lang": "EN", "target_lang": "DE", "glossary_id": made.id}
    reply = server("/v2/translate", asked)
    assert reply.status == 200
    assert "haus" in reply.json["translations"][0]["text"].split()


def test_a_change_within_a_second_is_noticed_where_times_are_whole_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inode, time and size of the file stay: another server used the old terms for ever."""
    servers = Glossaries(tmp_path), Glossaries(tmp_path)
    id_ = servers[0].add("", "g0", [Dictionary("en", "de", {"dog": "Hund"})]).id
    path, second = tmp_path / f"{id_}.json", int(time.time())
    os.utime(path, (second, second))

    def seen() -> list[tuple[str, str]]:
        return [(stored.get(id_, "").name, stored.list("")[0].name) for stored in servers]

    for name in ("g1", "g2"):
        path.write_text(path.read_text().replace(f"g{int(name[1]) - 1}", name))  # as a third server
        os.utime(path, (second, second))
        assert seen() == [(name, name)] * 2
    now, read, text_of = time.time(), list[str](), glossaries.text_of
    monkeypatch.setattr(time, "time", lambda: now + 4)
    monkeypatch.setattr(glossaries, "text_of", lambda path: (read.append(path.stem), text_of(path))[1])
    for _ in range(3):
        assert seen() == [("g2", "g2")] * 2
    assert read == [id_] * 2  # once more by each


def test_a_server_sees_its_own_change_whatever_the_file_system_says_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glossaries, "version_of", lambda path: path.exists() or None)
    monkeypatch.setattr(storage, "version_of", lambda path: path.exists() or None)
    stored = Glossaries(tmp_path)
    id_ = stored.add("", "g0", [Dictionary("en", "de", {"dog": "Hund"})]).id
    for name in ("g0", "g1", "g2"):
        stored.change(id_, "", lambda old, name=name: glossaries.replace(old, name=name))
        assert (stored.get(id_, "").name, stored.list("")[0].name) == (name, name)
