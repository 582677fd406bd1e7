"""Clients that are slow, odd or hostile: what each connection may do, and how long."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import h11
import pytest
from uvicorn.server import ServerState

from dragoman.serving import bodies, connections
from dragoman.serving.keys import make_key
from dragoman.serving.server import configured
from limits import LONG_S, cpu_limit, wait_until

N_SLOW = 60
HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def connect(live: Any) -> Iterator[Callable[[bytes], socket.socket]]:
    """A function that connects and sends something."""
    host, port = live.url.removeprefix("http://").split(":")
    made = []

    def begin(data: bytes) -> socket.socket:
        client = socket.create_connection((host, int(port)), timeout=LONG_S)
        made.append(client)
        client.sendall(data)
        return client

    yield begin
    for client in made:
        client.close()


def is_closed(client: socket.socket) -> bool:
    """Whether the server ends a connection, having said whatever it has to say."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def wait_until_broken(client: socket.socket, piece: bytes, pause_s: float) -> None:
    """Until the server ends a connection that sends and never reads."""

    def is_broken() -> bool:
        try:
            client.sendall(piece)
        except ConnectionError:
            return True
        time.sleep(pause_s)
        return False

    wait_until(is_broken)


@pytest.mark.parametrize(
    "sent", [b"", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{"], ids=["nothing", "headers", "body"]
)
def test_slow_clients_are_let_go_and_others_served(
    live: Any, connect: Callable[[bytes], socket.socket], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEADERS_S", 1.0)
    monkeypatch.setattr(bodies, "BODY_S", 1.0)
    clients = [connect(sent) for _ in range(N_SLOW)]
    assert live("/v1/translate", {"text": "the dog"}).status == 200
    assert all(map(is_closed, clients))


def test_a_body_that_nobody_reads_has_no_more_time(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of another page asks first, and is answered without its body: the connection had no limit then."""
    monkeypatch.setattr(connections, "HEADERS_S", 0.5)
    server = serving(cors_origin=("https://a.org",))
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=LONG_S) as client:
        client.sendall(
            f"OPTIONS /translate HTTP/1.1\r\nHost: {host}\r\nOrigin: https://a.org\r\n"
            "Access-Control-Request-Method: POST\r\nContent-Length: 1000000000\r\n\r\n".encode()
        )
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(b"a")
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1000):
                pass


def test_headers_that_come_piece_by_piece_have_no_more_time(
    connect: Callable[[bytes], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADERS_S", 1.0)
    client = connect(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")  # a request in time, on the same connection
    assert b" 200 " in client.recv(1 << 16)
    wait_until_broken(client, b"G", 0.05)


def test_who_does_not_take_an_answer_is_let_go(
    live: Any, connect: Callable[[bytes], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READING_S", 0.5)
    client = connect(b"")
    asked = b"GET /spec HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    wait_until_broken(client, asked, 0.005)
    assert live("/livez").status == 200


def test_who_sends_more_and_more_still_reads_why_it_is_refused(
    live: Any, connect: Callable[[bytes], socket.socket]
) -> None:  # fmt: skip
    """A body that never ends: the answer is whole before the connection is closed, and others do not wait for it."""
    for _ in range(5):
        client = connect(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"fff0\r\n" + b"a" * 0xFFF0 + b"\r\n")
        sent = 0
        said = b""
        client.settimeout(0.02)
        while b"}" not in said and sent < 100:
            with contextlib.suppress(TimeoutError):
                client.sendall(b"fff0\r\n" + b"a" * 0xFFF0 + b"\r\n")
                sent += 1
                said += client.recv(1 << 16)
        assert b" 413 " in said
        assert b"longer than 1,000,000 bytes" in said
        assert live("/livez").status == 200


def test_headers_are_bounded(connect: Callable[[bytes], socket.socket]) -> None:
    head = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    assert b" 431 " in connect(head + b"X-Long: " + b"a" * 17_000).recv(1 << 16)
    assert b" 431 " in connect(head + b"a:\r\n" * 200 + b"\r\n").recv(1 << 16)
    assert b" 200 " in connect(head + b"a:\r\n" * 199 + b"\r\n").recv(1 << 16)
    many = b"a:\r\n" * 150 + b"\r\n"  # several requests in one packet
    with connect((head + many) * 3 + head + b"Connection: close\r\n\r\n").makefile("rb") as answers:
        assert answers.read().count(b" 200 OK") == 4


def test_no_log_has_a_text_or_a_key(
    serving: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    key = make_key(tmp_path / "keys", "ann")
    server = serving(keys=tmp_path / "keys")
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "dragoman.serving")  # where a command has set it
    secret = "the zanzibar"
    assert server("/v1/translate", {"text": secret}, authorization=f"Bearer {key}").status == 200
    assert server(f"/translate?q={quote(secret)}&source=en&target=de&api_key={key}", b"").status == 200
    assert server("/v1/translate", {"text": secret, "beam_size": -1}, authorization=f"Bearer {key}").status == 400
    assert server(f"/{quote(secret)}").status == 404
    logged = caplog.text + "".join(capfd.readouterr())
    assert '"route": "/v1/translate"' in logged
    assert "zanzibar" not in logged
    assert key not in logged


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\x0b\r\n\r\n", "line: Authorization"),
        (b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nsecret\r\n\r\n", "illegal header line"),
        (b"GET /languages?api_key=secret  HTTP/1.1\r\n\r\n", "illegal request line"),
        (b"GET /\xff?api_key=secret: HTTP/1.1\r\n\r\n", "illegal request line"),
    ],
)
def test_H11_a_refusal_of_what_is_no_http_repeats_no_key(
    connect: Callable[[bytes], socket.socket], sent: bytes, says: str, figure: Any
) -> None:
    """Programs log the messages that they get."""
    with connect(sent).makefile("rb") as answered:
        answer = answered.read().decode()
    assert " 400 " in answer
    assert says in answer
    assert "secret" not in answer
    figure("H11", f"{says!r} and no more of the line")


def test_a_path_that_climbs_opens_nothing(live: Any) -> None:
    """Nothing that a client names is a path: no file is opened but those that answers are made of."""
    steps = ["../" * n + name for n in range(1, 9) for name in ("etc/passwd", "config.yaml", "job.json")]
    names = [*steps, *(name.replace("/", "%2f") for name in steps), *(name.replace("/", "\\") for name in steps)]
    names += [quote(name.replace("..", "%2e%2e"), safe="") for name in steps] + [f"%00{name}" for name in steps]
    opened: list[str] = []
    here = os.getpid()

    def note(event: str, arguments: Any) -> None:
        if watching and event == "open" and os.getpid() == here:
            opened.append(str(arguments[0]))

    watching = True
    sys.addaudithook(note)  # cannot be taken away again, hence the flag
    try:
        for name in names:
            for route in ("/download_file/", "/v2/glossaries/", "/"):
                reply = live(route + quote(name, safe="%/\\"))
                assert reply.status in (404, 405), (route, name, reply.status)
            reply = live(f"/v2/document/{quote(name, safe='%')}", {"document_key": "a"})
            assert reply.status in (404, 405), name
            reply = live("/v1/translate", {"text": "a", "source": name})
            assert reply.status == 400
            assert json.loads(reply.body)["error"]["message"]
    finally:
        watching = False
    assert not [name for name in opened if "passwd" in name or "config.yaml" in name or "job.json" in name]


@pytest.mark.parametrize(
    "sent",
    [b"", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{", b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"],
    ids=["nothing", "headers", "body", "an answered request"],
)
def test_connections_that_wait_for_their_clients_make_room_for_new_ones(
    live: Any, connect: Callable[[bytes], socket.socket], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 8)
    clients = [connect(sent) for _ in range(20)]
    for _ in range(3):
        assert live("/v1/translate", {"text": "the dog"}).status == 200
    for client in clients:
        client.settimeout(0.2)
    closed = [client for client in clients if is_closed(client)]
    assert len(closed) >= 12
    for client in clients:
        client.close()


def test_a_new_client_gets_its_answer_while_all_connections_are_in_work(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    live, go = serving(), threading.Event()
    translate, n_held = live.state.service.translate, 0

    async def held(texts: Any, *more: Any, **named: Any) -> Any:
        nonlocal n_held
        n_held += 1
        await asyncio.to_thread(go.wait, LONG_S)
        return await translate(texts, *more, **named)

    monkeypatch.setattr(live.state.service, "translate", held)
    body = b'{"text": "the dog", "source": "en"}'
    host, port = live.url.removeprefix("http://").split(":")
    asked = HEAD + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with contextlib.ExitStack() as open_clients:
        clients = []
        for n in range(1, 5):
            clients.append(open_clients.enter_context(socket.create_connection((host, int(port)), timeout=LONG_S)))
            clients[-1].sendall(asked)
            wait_until(lambda n=n: n_held == n)
        assert live("/livez").status == 200
        go.set()
        answers = [client.recv(1 << 16) for client in clients]
        assert [answer.split()[1] for answer in answers] == [b"200"] * 4
        for client in clients:
            client.settimeout(0.2)
        assert sum(map(is_closed, clients)) == 2


def test_few_requests_of_a_key_keep_a_connection_while_they_wait_for_their_turn(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections whose requests are in work make no room for others."""
    monkeypatch.setattr(bodies, "LARGE_WAITING", 2)
    monkeypatch.setattr(bodies, "LARGE_AT_ONCE", 1)
    live, go = serving(), threading.Event()
    turns, translate = live.state.budget.turns, live.state.service.translate

    async def held(texts: Any, *more: Any, **named: Any) -> Any:
        if texts[0] != "quick":
            await asyncio.to_thread(go.wait, LONG_S)
        return await translate(texts, *more, **named)

    monkeypatch.setattr(live.state.service, "translate", held)
    large = {"text": "the dog", "source": "en", "glossary": {f"term {i}": "x" * 50 for i in range(400)}}
    with ThreadPoolExecutor(3) as clients:
        waiting = [clients.submit(live, "/v1/translate", large) for _ in range(3)]
        wait_until(lambda: turns.n_waiting("") == 2)
        refused = live("/v1/translate", large)
        assert (refused.status, refused.headers["retry-after"]) == (429, "2")
        assert live("/v1/translate", {"text": "quick", "source": "en"}).status == 200
        go.set()
        assert [client.result().status for client in waiting] == [200] * 3


def test_what_a_client_leaves_unread_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that fits into no buffer of the system, and is shorter than asyncio's."""
    monkeypatch.setattr(connections, "READING_S", 0.2)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b"a" * 40_000})

    async def serve() -> None:
        config, state = configured(answer, 10), ServerState()
        config.load()
        loop = asyncio.get_running_loop()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        made: list[connections.PatientProtocol] = []

        def protocol() -> connections.PatientProtocol:
            made.append(connections.PatientProtocol(config=config, server_state=state, app_state={}))
            return made[-1]

        server = await loop.create_server(protocol, sock=listener)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.setblocking(False)
            await loop.sock_connect(client, listener.getsockname())
            await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            async with asyncio.timeout(LONG_S):
                while not made or made[0].cycle is None or state.connections:
                    await asyncio.sleep(0.01)
        server.close()

    asyncio.run(serve())


def test_little_waits_behind_a_request_that_is_in_work() -> None:
    """What a client sends before its answer stays with the system, and not in the memory of the server."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    async def serve() -> None:
        config, state = configured(answer, 10), ServerState()
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: connections.PatientProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, server.sockets[0].getsockname())
            sent = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 10_000
            sending = asyncio.create_task(loop.sock_sendall(client, sent))
            async with asyncio.timeout(LONG_S):
                while not any(own.flow.read_paused for own in state.connections):
                    await asyncio.sleep(0.01)
            (own,) = state.connections
            assert 0 < len(own.conn.trailing_data[0]) < connections.PIECE
            sending.cancel()
            for task in state.tasks:
                task.cancel()
        server.close()

    asyncio.run(serve())


def test_who_reads_a_long_answer_slowly_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look finds that enough was read since the last one, though the answer is not at its end."""
    unread = iter([500_000, 400_000, 300_000, 290_000])
    looks: list[tuple[Any, int]] = []
    protocol = object.__new__(connections.PatientProtocol)
    protocol.transport = SimpleNamespace(get_write_buffer_size=lambda: next(unread), abort=lambda: looks.append("end"))
    protocol.flow, protocol.connections = SimpleNamespace(pause_writing=lambda: None, write_paused=True), set()
    timer = SimpleNamespace(cancel=lambda: None)
    protocol.loop = SimpleNamespace(call_later=lambda _, look, n: looks.append((look, n)) or timer)
    protocol.pause_writing()
    for number in range(3):
        look, n_before = looks[number]
        look(n_before)
    assert [n for _, n in looks[:3]] == [500_000, 400_000, 300_000]
    assert looks[3:] == ["end"]


def test_what_is_unread_longest_goes_when_all_together_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads megabytes of explanations slowly keeps them in memory for hours."""
    monkeypatch.setattr(connections, "MOST_UNREAD", 700_000)
    ended: list[str] = []
    everybody: set[Any] = set()

    def reading(name: str, began: float, n_unread: int, *, is_slow: bool = True) -> Any:
        protocol = object.__new__(connections.PatientProtocol)
        protocol.transport = SimpleNamespace(
            get_write_buffer_size=lambda: n_unread, abort=lambda: ended.append(name)
        )  # fmt: skip
        protocol.flow = SimpleNamespace(pause_writing=lambda: None, write_paused=is_slow)
        protocol.loop = SimpleNamespace(call_later=lambda *_: SimpleNamespace(cancel=lambda: None))
        protocol.connections, protocol.began = everybody, began
        everybody.add(protocol)
        return protocol

    for name, began in (("third", 3.0), ("first", 1.0), ("second", 2.0)):
        reading(name, began, 200_000)
    reading("quick", 0.0, 0, is_slow=False)
    reading("new", 0.5, 40_000).pause_writing()  # short: nobody has to go for it
    assert ended == []
    reading("newest", 0.0, 400_000).pause_writing()
    assert ended == ["new", "first", "second"]


def test_each_connection_may_use_three_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1000))
    limits = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    connections.bound_connections()
    assert limits == [(1000, 1000)]
    assert connections.MOST_CONNECTIONS == 333


@pytest.mark.parametrize("kind", ["header", "trailer", "chunk"])
def test_lines_of_spaces_are_refused_in_linear_time(connect: Callable[[bytes], socket.socket], kind: str) -> None:
    """h11's own patterns take the square of their length: a second of the event loop for each request."""
    spaces = b" " * 15_000
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    sent = {
        "trailer": chunked + b"0\r\na:" + spaces + b"\0\r\n\r\n",
        "chunk": chunked + b"1;" + spaces + b"\n\r\na\r\n",
    }
    with cpu_limit(4.0):
        for _ in range(10):
            answer = connect(sent.get(kind, HEAD + b"a:" + spaces + b"\0\r\n\r\n")).recv(1 << 16)
            assert b" 400 " in answer
            assert len(answer) < 3000


def test_a_body_has_few_small_chunks(connect: Callable[[bytes], socket.socket]) -> None:
    head = HEAD + b"Connection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    text = json.dumps({"text": "the dog", "source": "en", "target": "de"}).encode()
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in text.ljust(connections.MOST_CHUNKS - 1)) + b"0\r\n\r\n"
    assert b" 200 " in connect(head + body).recv(1 << 16)
    spaces = b"20\r\n" + b" " * 32 + b"\r\n"
    assert b" 200 " in connect(head + spaces * 5000 + body).recv(1 << 16)
    small = b"1\r\n \r\n"
    with connect(head + small * 1100).makefile("rb") as answer:
        refused = answer.read()
        assert refused.startswith(b"HTTP/1.1 413 ")
        assert b'{"error": "a body may have 1,000 chunks of any size' in refused
    with cpu_limit(4.0):
        for _ in range(10):
            with contextlib.suppress(ConnectionError):
                connect(head + small * 400_000)


@pytest.mark.parametrize(
    ("module", "name"), [("_abnf", "header_field"), ("_abnf", "chunk_header"), ("_readers", "header_field_re")]
)
def test_another_h11_is_refused_in_one_sentence(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, module: str, name: str, tiny_run: Path
) -> None:
    """A version whose patterns are not the known ones may take the square of a line."""
    for own in ("h11._abnf", "h11._readers"):  # as they were before this server changed them
        monkeypatch.delitem(sys.modules, own)
    fresh = {own: importlib.import_module(f"h11.{own}") for own in ("_abnf", "_readers")}
    for own, made in fresh.items():
        monkeypatch.setattr(h11, own, made)
    monkeypatch.delattr(fresh[module], name)
    for loaded in ("dragoman.serving.connections", "dragoman.serving.server"):
        monkeypatch.delitem(sys.modules, loaded)
    refused = command("serve", tiny_run, "--port", "0")
    lines = [line for line in refused.err.splitlines() if not line.startswith("{")]  # those of another server's log
    assert (refused.status, len(lines)) == (2, 1)
    assert f"install h11=={connections.KNOWN_H11}" in lines[0]


@pytest.mark.parametrize(("grace_s", "waits_s"), [(0.0, 0), (0.4, 1), (30.0, 30)])
def test_no_time_to_finish_is_not_any_time(grace_s: float, waits_s: int) -> None:
    """Uvicorn takes None for as long as the requests want."""
    assert configured(lambda: None, grace_s).timeout_graceful_shutdown == waits_s
