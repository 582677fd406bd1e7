"""Bodies of requests: the budget of all together, who loses room, and what compressed bodies may become."""

from __future__ import annotations

import asyncio
import gzip
import random
import socket
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contract_cases import exchange, request
from dragoman.errors import ConfigError
from dragoman.serving import bodies
from dragoman.serving.bodies import STEP, BodyBudget, Share, received
from dragoman.serving.helpers import Helpers
from dragoman.serving.hosts import Hosts
from dragoman.serving.keys import make_key
from dragoman.serving.options import ServeOptions
from dragoman.serving.refusals import BusyError, MalformedError, TooMuchError
from limits import LONG_S, wait_until

TEXT = b'{"q": "the dog", "source": "en", "target": "de"}'


def upload(n_bytes: int, n_sent: int) -> bytes:
    """The beginning of the upload of a document."""
    head = request("POST", "/v2/document", content_type="multipart/form-data; boundary=b")
    return head.replace(b"content-length: 0", b"content-length: %d" % n_bytes) + b"a" * n_sent


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_over_the_budget_uploads_are_refused_and_texts_translated(
    serving: Callable[..., Any], clients: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(max_body=100_000, max_document=100_000, max_bodies=200_000)
    port = int(server.url.rpartition(":")[2])
    slow = [clients.enter_context(socket.create_connection(("127.0.0.1", port), 60)) for _ in range(2)]
    slow[0].sendall(upload(90_000, 70_000))
    wait_until(lambda: server.state.budget.used == 70_000)
    slow[1].sendall(upload(70_000, 60_000))
    wait_until(lambda: server.state.budget.used == 130_000)

    def answer() -> Any:
        return exchange(port, upload(60_000, 60_000))

    refused = answer()
    assert (refused.headers["retry-after"], refused.headers["connection"]) == ("2", "close")
    assert b'{"message": "the server is busy' in refused.body
    for _ in range(3):
        assert exchange(port, request("POST", "/translate", TEXT)).status == 200
    # From now on they have had their time. There is room for the third then; that it is no document is a 400.
    monkeypatch.setattr(bodies, "BODY_S", 0.5)
    wait_until(lambda: answer().status == 400)
    assert b" 408 " in slow[0].recv(1 << 16)  # who began first
    monkeypatch.undo()
    slow[1].sendall(b"a" * 10_000)
    assert b" 400 " in slow[1].recv(1 << 16)  # the other could send all of it
    assert exchange(port, upload(90_000, 90_000)).status == 400


@pytest.mark.parametrize("seed", range(20))
def test_the_budget_is_never_exceeded_and_at_the_end_unused(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_S", 0.0)
    chance = random.Random(seed)

    async def run() -> None:
        budget, shares, refused = BodyBudget(1000), [], 0
        for _ in range(400):
            action = chance.randrange(5)
            if action == 0 or not shares:
                async with asyncio.timeout(None) as limit:
                    shares.append(Share(budget, limit, "", is_document=chance.random() < 0.5))
                    limit.reschedule(None)
            elif action < 3:
                try:
                    chance.choice(shares).take(chance.randrange(300))
                except (BusyError, RuntimeError):
                    refused += 1
            elif action == 3:
                chance.choice(shares).arrived()
            else:
                shares.pop(chance.randrange(len(shares))).release()
            assert 0 <= budget.used <= 1000
        for share in shares:
            share.release()
            share.release()
        assert budget.used == 0
        assert not budget.arriving
        assert refused

    asyncio.run(run())


def inflated(pieces: list[bytes], most: int, encoding: str) -> bytes:
    """What the server makes of a compressed body that comes in pieces."""

    async def run() -> bytes:
        left = deque(pieces)

        async def receive() -> Any:
            return {"type": "http.request", "body": left.popleft(), "more_body": bool(left)}

        async with asyncio.timeout(None) as limit:
            return await received(receive, most, encoding, Share(BodyBudget(10**9), limit, "", is_document=False))

    return asyncio.run(run())


@pytest.mark.parametrize("size", [0, 1, 1000, STEP - 1, STEP, STEP + 1, 2 * STEP, 3 * STEP + 7])
@pytest.mark.parametrize("n_bytes", [1, 7, 1 << 16])
def test_a_compressed_body_is_what_was_compressed(size: int, n_bytes: int) -> None:
    data = (random.Random(size).randbytes(999) * (size // 999 + 1))[:size]
    for encoding, packed in (("gzip", gzip.compress(data)), ("deflate", zlib.compress(data)), ("", data)):
        if len(packed) > 10_000 * n_bytes:
            continue
        pieces = [packed[i : i + n_bytes] for i in range(0, len(packed), n_bytes)] or [b""]
        most = max(size, len(packed))
        assert inflated(pieces, most, encoding) == data
        if len(packed) < size:
            with pytest.raises(TooMuchError):
                inflated(pieces, size - 1, encoding)
        for cut in range(1, min(12, len(packed))) if encoding and n_bytes > 7 else ():
            with pytest.raises(MalformedError, match="not complete"):
                inflated([packed[:-cut]], most, encoding)


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    packed = gzip.compress(bytes(30 * STEP))
    with pytest.raises(TooMuchError):
        inflated([packed], 10 * STEP, "gzip")
    with pytest.raises(MalformedError, match="goes on"):
        inflated([gzip.compress(b"{}") * 2], 1000, "gzip")


def test_bodies_need_room_for_the_largest_document() -> None:
    with pytest.raises(ConfigError, match=r"max_bodies must be 26,666,667 or more"):
        ServeOptions(max_bodies=20_000_000)


@pytest.mark.parametrize("name", ["http://a.org", "a.org:80", "a b", ""])
def test_an_allowed_host_is_a_bare_name(name: str) -> None:
    with pytest.raises(ConfigError, match="must be host names without scheme and port"):
        ServeOptions(allow_host=(name,))


@pytest.mark.parametrize(("host", "on_network", "elsewhere"), [
    ("dragoman:5000", True, False), ("my_service", True, False), ("10.0.0.7:5000", True, False),
    ("[fe80::1]:5000", True, False), ("translate.example.org", True, True), ("TRANSLATE.example.org.:80", True, True),
    ("evil.example", False, False), ("10.0.0.7.evil.example", False, False), ("1.2.3", False, False),
    ("dragoman.evil.example:5000", False, False), ("localhost:5000", True, True), ("", False, False),
    (":5000", False, False), (".", False, False),
])  # fmt: skip
def test_on_a_network_names_are_accepted_that_nobody_can_register(host: str, on_network: bool, elsewhere: bool) -> None:
    named = ["localhost", "translate.example.org"]
    assert Hosts(named, on_network=True).accept(host) is on_network
    assert Hosts(named, on_network=False).accept(host) is elsewhere


def test_one_key_takes_half_of_the_room_and_one_body_always_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LARGE", 0)

    async def run() -> None:
        budget = BodyBudget(1000, has_keys=True)
        async with asyncio.timeout(None) as limit:
            ann = [Share(budget, limit, "ann", is_document=False) for _ in range(3)]
            ann[0].take(300)
            ann[1].take(200)
            with pytest.raises(BusyError):
                ann[2].expect(1)
            bob = Share(budget, limit, "bob", is_document=False)
            bob.take(400)
            ann[1].release()
            ann[2].take(100)
            for share in (*ann, bob):
                share.release()
            assert (budget.used, dict(budget.used_by)) == (0, {})
            large = Share(budget, limit, "ann", is_document=True)
            large.take(400)
            large.take(350)
            with pytest.raises(BusyError):
                large.take(1)
            alone = BodyBudget(1000)
            for _ in range(4):
                Share(alone, limit, "", is_document=False).take(250)

    asyncio.run(run())


def test_small_bodies_have_room_beside_many_large_ones_of_their_key() -> None:
    async def run() -> None:
        budget = BodyBudget(1_000_000, has_keys=True)
        async with asyncio.timeout(None) as limit:
            flood = [Share(budget, limit, "", is_document=False) for _ in range(5)]
            for share in flood:
                share.take(100_000)
            for is_document in (False, True):  # whose key stands in the body
                small, large = (Share(budget, limit, "", is_document=is_document) for _ in range(2))
                small.expect(bodies.LARGE)
                small.take(bodies.LARGE)
                with pytest.raises(BusyError):
                    large.expect(bodies.LARGE + 1)
                with pytest.raises(BusyError):
                    small.take(1)
            while budget.used_by[""] + bodies.LARGE <= 750_000:
                Share(budget, limit, "", is_document=False).take(bodies.LARGE)
            with pytest.raises(BusyError):
                Share(budget, limit, "", is_document=False).take(bodies.LARGE)
            other = Share(budget, limit, "ann", is_document=False)
            other.take(200_000)

    asyncio.run(run())


@pytest.mark.parametrize("where", ["header", "body", "form", "query"])
def test_S23_requests_with_large_bodies_take_turns(
    where: str, serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    """Those of a key wait as they came, unparsed; those of another key and short ones pass them.

    Clients of LibreTranslate send their keys in the body: those of all keys shared the turns of nobody.
    """
    monkeypatch.setattr(bodies, "LARGE", 200)
    monkeypatch.setattr(bodies, "LARGE_AT_ONCE", 3)
    monkeypatch.setattr(bodies, "LARGE_OF_OWNER", 2)
    ann, bob = (make_key(tmp_path / "keys", name) for name in ("ann", "bob"))
    server = serving(keys=tmp_path / "keys", max_wait=LONG_S)
    begun, go = list[str](), threading.Event()
    prepare = server.state.service.prepare

    def gated(texts: Any, *arguments: Any) -> Any:
        begun.append(texts[0][:3])
        if texts[0].startswith("ann"):
            assert go.wait(LONG_S)
        return prepare(texts, *arguments)

    monkeypatch.setattr(server.state.service, "prepare", gated)
    monkeypatch.setattr(server.state.service, "helpers", Helpers(at_once=20))
    large = "dog " * 300  # prepared by a helper

    def ask(text: str, key: str) -> Any:
        fields = {"q": f'{text} "api_key": "{ann if key == bob else bob}" {large}', "source": "en", "target": "de"}
        if where == "header":
            return server("/translate", fields, authorization=f"Bearer {key}")
        if where == "query":
            return server(f"/translate?api_key={key}", fields)
        return server("/translate", **{"data" if where == "body" else "form": fields | {"api_key": key}})

    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(ask, f"ann {i}", ann) for i in range(5)]
        wait_until(lambda: len(begun) == 2)
        assert ask("bob", bob).status == 200
        short = {"q": "a dog", "source": "en", "target": "de", "api_key": ann}
        assert server("/translate", short).status == 200
        figure("S23", f"key in the {where}: 5 large bodies of one key wait, one of another passes them")
        assert begun == ["ann", "ann", "bob", "a d"]
        go.set()
        assert [reply.result(LONG_S).status for reply in asked] == [200] * 5
