"""Keys keep their owners apart: who sees and changes glossaries, and each key's share of limits, turns and figures."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_batcher import Slow, sentences, slow, submit
from test_documents import upload

from dragoman.errors import ConfigError
from dragoman.serving import documents, glossaries, jobs, pieces
from dragoman.serving.batcher import Batcher, BusyError
from dragoman.serving.glossaries import Dictionary, Glossaries
from dragoman.serving.keys import Keys, make_key
from dragoman.serving.limits import Shares
from dragoman.serving.options import ServeOptions
from dragoman.serving.refusals import ForeignError, MalformedError, UnknownError
from dragoman.serving.tickets import Ticket
from dragoman.serving.turns import Turns
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.translator import Translator
from limits import LONG_S, cpu_limit, wait_until

TERMS = {"name": "g", "source_lang": "en", "target_lang": "de", "entries": "dog\tbaum", "entries_format": "tsv"}
DICTIONARY = Dictionary("en", "de", {"dog": "baum"})


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, dict[str, str]]:
    """The headers of two keys, whose file is ``tmp_path / "keys"``."""
    return {name: {"authorization": f"Bearer {make_key(tmp_path / 'keys', name)}"} for name in ("ann", "bob")}


def test_shared_glossaries_are_read_and_used_by_all_and_changed_by_their_owner(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]]
) -> None:
    server = serving(keys=tmp_path / "keys", glossaries=tmp_path / "g", share_glossaries=True)
    id_ = server("/v2/glossaries", TERMS, **keys["ann"]).json["glossary_id"]
    listed = server("/v2/glossaries", **keys["bob"]).json["glossaries"]
    assert [glossary["glossary_id"] for glossary in listed] == [id_]
    asked = {"text": ["the dog"], "source_lang": "EN", "target_lang": "DE", "glossary_id": id_}
    assert "baum" in server("/v2/translate", asked, **keys["bob"]).json["translations"][0]["text"]
    for method, path, fields in (
        ("DELETE", f"/v2/glossaries/{id_}", None), ("PATCH", f"/v3/glossaries/{id_}", {"name": "mine"}),
        ("PUT", f"/v3/glossaries/{id_}/dictionaries", {name: TERMS[name] for name in TERMS if name != "name"}),
    ):  # fmt: skip
        refused = server(path, fields, method=method, **keys["bob"])
        assert (refused.status, "belongs to another key" in refused.json["message"]) == (403, True)
    assert server(f"/v2/glossaries/{id_}", method="DELETE", **keys["ann"]).status == 204


def test_glossaries_without_an_owner_are_for_nobody_until_a_key_adopts_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = Glossaries(tmp_path).add("", "old", [DICTIONARY])
    path = tmp_path / f"{made.id}.json"
    before_owners = {name: value for name, value in json.loads(path.read_text()).items() if name != "owner"}
    path.write_text(json.dumps(before_owners))
    stored = Glossaries(tmp_path, Shares(("ann", "bob")))
    stored.report_ownerless()
    assert "--adopt-glossaries" in caplog.text
    with pytest.raises(UnknownError):
        stored.get(made.id, "ann")
    shared = Glossaries(tmp_path, Shares(("ann", "bob")), shared=True)
    assert shared.get(made.id, "bob").name == "old"
    with pytest.raises(ForeignError):
        shared.delete(made.id, "bob")
    stored.adopt("ann")
    assert stored.get(made.id, "ann").dictionaries == made.dictionaries
    assert (stored.list("bob"), Glossaries(tmp_path).list("")) == ([], [])  # nor for a server without keys


def test_an_adopting_key_must_exist_and_options_that_need_others_say_so(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]]
) -> None:
    with pytest.raises(ConfigError, match="must have a key named eve"):
        serving(keys=tmp_path / "keys", glossaries=tmp_path / "g", adopt_glossaries="eve")
    with pytest.raises(ConfigError, match="share_glossaries needs glossaries"):
        ServeOptions(share_glossaries=True)
    with pytest.raises(ConfigError, match="metrics_key needs keys"):
        ServeOptions(metrics_key="ann")


def test_two_servers_with_one_folder_lose_no_change(tmp_path: Path) -> None:
    servers = [Glossaries(tmp_path, Shares(("ann", "bob"))) for _ in range(2)]
    made = servers[0].add("ann", "g", [DICTIONARY])

    def more(number: int) -> None:
        def with_another(old: Any) -> Any:
            (own,) = old.dictionaries
            return replace(old, dictionaries=(Dictionary("en", "de", {**own.entries, f"a{number}": "b"}),))

        servers[number % 2].change(made.id, "ann", with_another)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(more, range(40)))
    assert [len(server.get(made.id, "ann").dictionaries[0].entries) for server in servers] == [41, 41]
    with pytest.raises(UnknownError):
        servers[1].change(made.id, "bob", lambda old: old)


def test_a_file_that_is_damaged_later_hides_one_glossary_and_names_no_path(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]]
) -> None:
    server = serving(keys=tmp_path / "keys", glossaries=tmp_path / "g")
    ids = [server("/v2/glossaries", TERMS, **keys["ann"]).json["glossary_id"] for _ in range(2)]
    (tmp_path / "g" / f"{ids[0]}.json").write_text("{")
    listed = server("/v2/glossaries", **keys["ann"]).json["glossaries"]
    assert [glossary["glossary_id"] for glossary in listed] == ids[1:]
    refused = server(f"/v2/glossaries/{ids[0]}", **keys["ann"])
    assert (refused.status, refused.json) == (404, {"message": "glossary not found"})
    with pytest.raises(ConfigError, match="repair or delete it"):
        Glossaries(tmp_path / "g")


def test_a_document_is_for_its_key_and_a_download_without_one_for_who_has_the_address(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]]
) -> None:
    server = serving(keys=tmp_path / "keys", documents=tmp_path / "d")
    url = (
        upload(server, "/translate_file", "a.txt", b"the dog", headers=keys["ann"], source="en", target="de")
        .json["translatedFileUrl"]
        .removeprefix(server.url)
    )
    assert server(url, **keys["bob"]).status == 404
    assert server(url, **keys["ann"]).status == server(url).status == 200
    assert server(url, authorization="Bearer wrong").status == 403
    secret = {"document_key": url.split(".")[1]}
    id_ = url.removeprefix("/download_file/").split(".")[0]
    assert server(f"/v2/document/{id_}", secret, **keys["bob"]).status == 404
    assert server(f"/v2/document/{id_}", secret, **keys["ann"]).status == 200


def test_use_is_counted_by_key_and_shown_to_that_key(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]]
) -> None:
    server = serving(keys=tmp_path / "keys", metrics_key="ann")
    asked = {"text": "the dog", "source": "en", "target": "de"}
    for name, n in (("ann", 1), ("bob", 2)):
        for _ in range(n):
            server("/v1/translate", asked, **keys[name])
    counts = [server("/v2/usage", **keys[name]).json["character_count"] for name in ("ann", "bob")]
    assert counts == [7, 14]
    texts = {name: server("/metrics", **keys[name]).body.decode() for name in ("ann", "bob")}
    for line in ('dragoman_key_characters_total{key="bob"} 14.0', 'dragoman_key_queue_sentences{key="bob"} 0.0'):
        assert line in texts["bob"]
        assert line in texts["ann"]
    assert 'key="ann"' not in texts["bob"]
    names = {line.split("{")[0] for line in texts["bob"].split("\n") if line and not line.startswith("#")}
    assert names == {"dragoman_key_characters_total", "dragoman_key_queue_sentences", "dragoman_storage_has_room"}
    assert 'dragoman_characters_total{pair="en-de"} 21.0' in texts["ann"]
    refused = {"text": "a.\n" * 6000, "source": "en", "target": "de"}  # too many sentences
    assert server("/v1/translate", refused, **keys["bob"]).status == 413
    assert server("/v2/usage", **keys["bob"]).json["character_count"] == 14
    assert 'dragoman_storage_has_room{what="documents"} 1.0' in texts["bob"]
    assert server("/readyz/storage").body == b"ok"


def test_half_of_a_limit_is_divided_among_the_keys_and_half_is_for_whoever_comes_first() -> None:
    shares = Shares(("ann", "bob"))
    assert shares.of(8) == 2
    assert shares.has_room(8, {"ann": 5}, "ann")
    assert not shares.has_room(8, {"ann": 6}, "ann")
    assert shares.has_room(8, {"ann": 6}, "bob")
    assert not shares.has_room(8, {"ann": 6, "bob": 2}, "bob")
    assert not shares.has_room(8, {"gone": 4, "ann": 2}, "ann")  # a deleted key has no share
    assert shares.has_room(8, {"gone": 9, "ann": 1}, "ann")
    many = Shares(tuple(map(str, range(100))))
    assert many.has_room(8, {str(i): 1 for i in range(99)}, "99")
    assert not many.has_room(8, {}, "gone")
    alone = Shares(("",))
    assert [alone.has_room(n_most, {"": n}, "") for n_most, n in ((8, 7), (8, 8), (1, 0), (1, 1), (0, 0))] == [
        True, False, True, False, False,
    ]  # fmt: skip


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    make_key(path, "ann")
    path.write_text("".join(f"ann {digit * 64}\n" for digit in "ab"))
    with pytest.raises(ConfigError, match="keys:2: the name ann is there twice: delete the line"):
        Keys.load(path)


def test_a_key_is_known_among_very_many(tmp_path: Path) -> None:
    names = [f"key{i}" for i in range(100_000)]
    keys = Keys({name: hashlib.sha256(name.encode()).hexdigest() for name in names})
    shares, used = Shares(tuple(keys.names)), dict.fromkeys(names[:400], 1)
    with cpu_limit(8):  # 0.02 s; comparing with each key took 40
        assert [keys.owner(name) for name in names[::100]] == names[::100]
        assert [keys.owner(f"{name} ") for name in names[::100]] == [None] * 1000
        assert all(shares.has_room(8, used, name) for name in names[-1000:])


def test_glossaries_have_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries, "MOST", 8)
    stored = Glossaries(tmp_path, Shares(("ann", "bob")))
    for _ in range(6):
        stored.add("ann", "g", [DICTIONARY])
    with pytest.raises(MalformedError, match="6 are yours: delete one first"):
        stored.add("ann", "g", [DICTIONARY])
    for _ in range(2):
        stored.add("bob", "g", [DICTIONARY])
    with pytest.raises(MalformedError):
        stored.add("bob", "g", [DICTIONARY])


def never_done(server: Any, most_waiting: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let no document of a server end, and so many wait."""

    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(server.state.service, "translate_document", never)
    monkeypatch.setattr(documents, "MOST_WAITING", most_waiting)
    return server


def test_of_uploads_at_once_no_more_are_taken_than_may_wait(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = never_done(serving(keys=tmp_path / "keys", documents=tmp_path / "d"), 8, monkeypatch)
    barrier = threading.Barrier(20)

    def post(name: str) -> int:
        barrier.wait()
        fields = {"target_lang": "DE", "source_lang": "EN"}
        return int(upload(server, "/v2/document", "a.txt", b"the dog", headers=keys[name], **fields).status)

    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(post, ["ann"] * 20))
        assert (statuses.count(200), statuses.count(429)) == (6, 14)
        statuses = list(pool.map(post, ["bob"] * 20))
        assert (statuses.count(200), statuses.count(429)) == (2, 18)


def test_a_document_too_many_is_refused_before_it_is_received(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy server's clients try again, each time with all of it."""
    server = never_done(serving(keys=tmp_path / "keys", documents=tmp_path / "d"), 2, monkeypatch)
    fields = {"target_lang": "DE", "source_lang": "EN"}
    assert upload(server, "/v2/document", "a.txt", b"the dog", headers=keys["ann"], **fields).status == 200
    host, port = server.url.removeprefix("http://").split(":")
    for name, path, answer in (
        ("ann", "/v2/document", b"HTTP/1.1 429 "),
        ("ann", "/translate_file", b"HTTP/1.1 429 "),
        ("bob", "/v2/document", b""),
    ):
        head = [
            f"POST {path} HTTP/1.1",
            f"Host: {host}",
            "Content-Length: 9000000",
            "Content-Type: multipart/form-data",
        ]
        head += [f"{header}: {value}" for header, value in keys[name].items()]
        with socket.create_connection((host, int(port)), timeout=LONG_S if answer else 0.5) as client:
            client.sendall("\r\n".join([*head, "", ""]).encode())
            try:
                received = client.recv(1 << 16)
            except TimeoutError:  # the server waits for the document
                received = b""
        assert received[: len(answer)] == answer, (name, path)
        assert bool(received) == bool(answer), (name, path)


def test_what_was_fetched_or_failed_goes_first_when_room_is_short(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MOST_JOBS", 4)
    server = serving(keys=tmp_path / "keys", documents=tmp_path / "d")
    fields = {"target_lang": "DE", "source_lang": "EN"}

    def add(name: str) -> Any:
        return upload(server, "/v2/document", "a.txt", b"the dog", headers=keys[name], **fields)

    def ask(name: str, job: Any, what: str = "", **headers: str) -> Any:
        secret = {"document_key": job["document_key"]}
        return server(f"/v2/document/{job['document_id']}{what}", secret, **keys[name], **headers)

    made = [add("ann").json for _ in range(3)]
    wait_until(lambda: all(ask("ann", job).json["status"] == "done" for job in made))
    assert add("ann").status == 429
    folder = tmp_path / "d" / made[1]["document_id"]
    assert {path.name for path in folder.iterdir()} == {"job.json", "result"}
    assert ask("ann", made[1], "/result").status == 200
    wait_until(lambda: not (folder / "result").stat().st_mode & 0o200)
    assert ask("ann", made[1], "/result").status == 200  # there is room: it stays
    assert add("ann").status == 200
    assert [ask("ann", job).status for job in made] == [200, 404, 200]
    assert add("ann").status == 429
    assert add("bob").status == 200  # his own share
    assert add("bob").status == 429


def translated_document(server: Any, folder: Path) -> tuple[Any, Path]:
    """What an upload was answered, and the file of its translation, which is there."""
    made = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE", source_lang="EN").json
    path = folder / made["document_id"] / "result"
    wait_until(path.exists)
    wait_until(lambda: not server.state.documents.tasks)
    return made, path


def test_a_translation_counts_as_fetched_once_it_was_received_whole(
    serving: Callable[..., Any], tmp_path: Path
) -> None:
    server = serving(documents=tmp_path)
    made, path = translated_document(server, tmp_path)
    path.write_bytes(b"x" * 20_000_000)  # more than the buffers of a connection
    host, port = server.url.removeprefix("http://").split(":")
    route = f"/download_file/{made['document_id']}.{made['document_key']}.a.txt"

    def is_fetched() -> bool:
        return not path.stat().st_mode & 0o200

    with socket.create_connection((host, int(port)), timeout=LONG_S) as client:
        client.sendall(f"GET {route} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
    wait_until(lambda: 'route="/download_file/{name}"' in server("/metrics").body.decode())  # its answer has ended
    assert not is_fetched()
    assert server(route, range="bytes=0-9").status == 206
    assert server(route, method="HEAD").status == 200
    assert not is_fetched()
    assert len(server(route).body) == 20_000_000
    wait_until(is_fetched)


def test_headers_alone_are_no_translation_that_was_fetched(serving: Callable[..., Any], tmp_path: Path) -> None:
    """HEAD on a connection that stays open counted as fetched, and what is fetched goes first when room is short."""
    server = serving(documents=tmp_path)
    made, path = translated_document(server, tmp_path)
    host, port = server.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=LONG_S)
    route = f"/download_file/{made['document_id']}.{made['document_key']}.a.txt"
    for method in ("HEAD", "GET"):
        connection.request(method, route)
        answer = connection.getresponse()
        assert answer.status == 200
        assert int(answer.headers["content-length"]) == path.stat().st_size
        assert len(answer.read()) == (path.stat().st_size if method == "GET" else 0)
        connection.request("GET", "/livez")  # its answer comes after the work on the one before
        connection.getresponse().read()
        if method == "HEAD":
            wait_until(lambda: 'method="HEAD"' in server("/metrics").body.decode())
            assert path.stat().st_mode & 0o200
    wait_until(lambda: not path.stat().st_mode & 0o200)
    connection.close()


@pytest.mark.parametrize(
    ("ranges", "status", "n_bytes"),
    [
        ("bytes=0-2", 206, 3), ("bytes=2-", 206, -2), ("bytes=-1", 206, 1), ("items=0-9", 200, 0),
        ("bytes=99999999-", 200, 0), ("bytes=3-2", 200, 0), ("bytes=0-1,2-3", 200, 0), ("bytes=-", 200, 0),
    ],
)  # fmt: skip
def test_a_range_that_is_none_is_ignored_and_what_came_whole_was_fetched(
    serving: Callable[..., Any], tmp_path: Path, ranges: str, status: int, n_bytes: int
) -> None:
    """Such ranges were refused, not in JSON; and a whole file that was asked for as a range was never fetched."""
    server = serving(documents=tmp_path)
    made, path = translated_document(server, tmp_path)
    whole = path.stat().st_size
    reply = server(f"/download_file/{made['document_id']}.{made['document_key']}.a.txt", range=ranges)
    assert (reply.status, len(reply.body)) == (status, n_bytes if n_bytes > 0 else whole + n_bytes)
    if status == 200:
        wait_until(lambda: not path.stat().st_mode & 0o200)
    else:
        assert path.stat().st_mode & 0o200
        assert server(f"/v2/document/{made['document_id']}/result", {"document_key": made["document_key"]},
                      range=ranges).status == 200  # fmt: skip
        wait_until(lambda: not path.stat().st_mode & 0o200)


def test_a_key_that_waits_has_its_turn_whatever_the_requests_of_another(served: Translator) -> None:
    batcher = Batcher(batch_tokens=64)
    plan, engine = slow(served)
    submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)

    def put(text: str, owner: str, plan: Any = plan) -> Ticket:
        ticket = Ticket(plan, sentences([text], plan), owner=owner)
        batcher.submit(ticket)
        return ticket

    tickets = [put("the cat sleeps here", "ann") for _ in range(12)]
    tickets.append(put("a man runs", "bob"))
    assert batcher.n_waiting_by_owner() == {"ann": 12, "bob": 1}
    engine.go.set()
    for ticket in tickets:
        ticket.results.result(LONG_S)
    assert plan.src_tokenizer.encode(["a man runs"])[0] in engine.batches[1]
    assert batcher.n_waiting_by_owner() == {}
    assert batcher.close(LONG_S)


def test_requests_of_many_kinds_take_no_more_turns_than_those_of_one(served: Translator) -> None:
    batcher = Batcher()
    order: list[str] = []

    class Named(Slow):
        def search(self, segments: Any, settings: Any, progress: Any = None) -> Any:
            order.append(self.owner)
            # Without steps in which others pass: how many do depends on how long each takes.
            alone = [replace(segment, between_steps=None) for segment in segments]
            return super().search(alone, settings, progress)

    plan = served.plan(guard=False, protect=False)

    def put(owner: str) -> tuple[Ticket, Named]:
        engine = Named(plan.engine)  # another engine is another kind
        engine.owner = owner
        own = replace(plan, engine=engine)
        ticket = Ticket(own, sentences(["the dog"], own), owner=owner)
        batcher.submit(ticket)
        return ticket, engine

    first, blocking = put("")
    assert blocking.entered.wait(LONG_S)
    waiting = [put("ann") for _ in range(6)] + [put("bob") for _ in range(2)]
    for _, engine in [(first, blocking), *waiting]:
        engine.go.set()
    for ticket, _ in waiting:
        ticket.results.result(LONG_S)
    assert order == ["", "ann", "bob", "ann", "bob", "ann", "ann", "ann", "ann"]
    assert batcher.close(LONG_S)


OPTIONS = (
    {"glossary": {"dog": "Zebra"}}, {"glossary": {"dog": "Hyäne"}}, {"truecase": False}, {"protect": False},
    {"guard": False}, {"include": ["Zebra"]}, {"exclude": ["hund"]}, {"prefix": "eine"},
)  # fmt: skip


@pytest.mark.parametrize("first", range(len(OPTIONS)))
def test_the_options_of_a_request_change_no_other_request_of_the_queue(served: Translator, first: int) -> None:
    batcher, text = Batcher(), "THE DOG SEES 12 CATS AT http://a.b/c"
    blocked, engine = slow(served)
    submit(batcher, ["the dog"], blocked)
    assert engine.entered.wait(LONG_S)
    others = [served.plan(**changes) for changes in (*OPTIONS[first:], *OPTIONS[:first], {})]
    plans = [replace(plan, engine=blocked.engine) for plan in others]
    tickets = [Ticket(plan, sentences([text], plan), owner=str(i)) for i, plan in enumerate(plans)]
    for ticket in tickets:
        batcher.submit(ticket)
    engine.go.set()
    together = [ticket.results.result(LONG_S)[0].texts for ticket in tickets]
    alone = [translate_segments(sentences([text], plan), plan)[0].texts for plan in plans]
    assert together == alone
    assert "Zebra".upper() in alone[-1 - len(OPTIONS) :][(-first) % len(OPTIONS)][0].upper()
    assert batcher.close(LONG_S)


def test_a_queue_that_one_key_has_filled_has_room_for_another(served: Translator) -> None:
    batcher = Batcher(longest_wait_s=1.0, most_waiting=20)
    plan, engine = slow(served)
    batcher.tokens_per_s = 10.0
    submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    batcher.submit(Ticket(plan, sentences(["the cat sleeps here"] * 8, plan), owner="ann"))
    assert batcher.busy_for_s("ann") == pytest.approx(max(1.0, batcher.expected_wait_s - 1.0))
    assert batcher.busy_for_s("bob") is None
    mine = Ticket(plan, sentences(["a man"], plan), owner="bob")
    batcher.submit(mine)
    with pytest.raises(BusyError):
        batcher.submit(Ticket(plan, sentences(["a man"], plan), owner="ann"))
    batcher.forget(mine)
    assert batcher.n_waiting_by_owner() == {"ann": 8}
    engine.go.set()
    assert batcher.close(LONG_S)


def test_turns_go_round_the_owners_and_a_cancelled_one_is_passed_on() -> None:
    order: list[str] = []

    async def run() -> None:
        turns, go = Turns(1), asyncio.Event()

        async def work(owner: str) -> None:
            async with turns.of(owner):
                order.append(owner)
                await go.wait()

        tasks = [asyncio.create_task(work(owner)) for owner in ("ann", "ann", "ann", "bob", "eve", "bob")]
        await asyncio.sleep(0)
        tasks[4].cancel()
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with turns.of("eve"):  # all turns came back
            order.append("end")

    asyncio.run(run())
    assert order == ["ann", "ann", "bob", "ann", "bob", "end"]


def test_a_turn_is_renewed_after_those_of_other_owners_and_before_others_of_its_own() -> None:
    order: list[str] = []

    async def run() -> None:
        turns = Turns(1)

        async def work(name: str) -> None:
            async with turns.of(name[:3]) as turn:
                for _ in range(3):
                    order.append(name)
                    await asyncio.sleep(0)
                    await turn.renew()

        tasks = [asyncio.create_task(work(name)) for name in ("ann1", "ann2", "bob1", "eve1")]
        await asyncio.sleep(0)
        tasks[3].cancel()  # while it waits
        await asyncio.gather(*tasks, return_exceptions=True)
        task = asyncio.create_task(work("ann3"))
        async with turns.of("bob") as turn:
            await asyncio.sleep(0)
            task.cancel()
            await turn.renew()
        async with turns.of("eve"):  # all turns came back
            order.append("end")

    asyncio.run(run())
    assert order[0] == "ann1"
    assert order.index("bob1") <= 2
    assert order.index("ann2") > max(i for i, name in enumerate(order) if name == "ann1")
    assert sorted(order) == ["ann1"] * 3 + ["ann2"] * 3 + ["bob1"] * 3 + ["end"]


def noted_order(service: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], threading.Event]:
    """Let the parts of documents wait for an event; return the owners of the parts in the order in which they begin."""
    translate, order, go = service.translate_document, list[str](), threading.Event()

    async def noted(texts: Any, pair: Any, options: Any, owner: str, **more: Any) -> Any:
        order.append(owner)
        await asyncio.to_thread(go.wait, LONG_S)
        return await translate(texts, pair, options, owner, **more)

    monkeypatch.setattr(service, "translate_document", noted)
    return order, go


def test_a_long_document_lets_that_of_another_key_pass(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "AT_ONCE", 1)
    monkeypatch.setattr(pieces, "WINDOW", 1)
    server = serving(keys=tmp_path / "keys", documents=tmp_path / "d")
    order, go = noted_order(server.state.service, monkeypatch)
    fields = {"target_lang": "DE", "source_lang": "EN"}
    text = "\n".join(f"the dog {number}" for number in range(9)).encode()
    for name in ("ann", "ann", "bob"):
        assert upload(server, "/v2/document", "a.txt", text, headers=keys[name], **fields).status == 200
    wait_until(lambda: len(server.state.documents.tasks) == 3)
    go.set()
    wait_until(lambda: not server.state.documents.tasks)
    assert sorted(order) == ["ann"] * 18 + ["bob"] * 9
    assert "bob" in order[:4]  # not after both of the other key


def test_S23_a_key_leaves_others_a_turn_while_its_documents_are_parsed(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch,
    figure: Any,
) -> None:  # fmt: skip
    """Two of one key held both turns while they waited behind its own other uploads."""
    server = serving(keys=tmp_path / "keys", documents=tmp_path / "d")
    order, go = noted_order(server.state.service, monkeypatch)
    fields = {"target_lang": "DE", "source_lang": "EN"}
    for name in ("ann", "ann", "ann", "bob"):
        assert upload(server, "/v2/document", "a.txt", b"the dog", headers=keys[name], **fields).status == 200
    wait_until(lambda: len(order) == 2)
    assert order == ["ann", "bob"]
    figure("S23", "three documents of one key: that of another begins beside the first of them")
    go.set()
    wait_until(lambda: not server.state.documents.tasks)


def test_documents_take_turns_by_key(
    serving: Callable[..., Any], tmp_path: Path, keys: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "AT_ONCE", 1)
    server = serving(keys=tmp_path / "keys", documents=tmp_path / "d")
    order, go = noted_order(server.state.service, monkeypatch)
    fields = {"target_lang": "DE", "source_lang": "EN"}
    for name in ("ann", "ann", "ann", "bob"):
        assert upload(server, "/v2/document", "a.txt", b"the dog", headers=keys[name], **fields).status == 200
    go.set()
    wait_until(lambda: not server.state.documents.tasks)
    assert order == ["ann", "bob", "ann", "ann"]


def test_a_key_that_was_not_written_whole_harms_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key(tmp_path / "keys", "ann")
    before = (tmp_path / "keys").read_bytes()
    sizes = []

    def full(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="cannot be written"):
        make_key(tmp_path / "keys", "bob")
    assert sizes[0] > len(before)
    assert (tmp_path / "keys").read_bytes() == before
    assert Keys.load(tmp_path / "keys").owner(key) == "ann"
