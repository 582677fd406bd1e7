"""The server under load and attack, at its full figures, against ``dragoman serve`` as a process on loopback.

Its quick half is in tests/serving, where the same is tried with fewer clients and shorter limits of time.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from slow_clients import HEAD, hold

from benchmarks.serving import Server, ending, leaving, load, overload
from dragoman.serving.keys import make_key
from limits import wait_until

Figure = Callable[[str, str], None]

pytestmark = [pytest.mark.faults, pytest.mark.alone]

JSON = {"content-type": "application/json"}
WORDS = ["dog", "cat", "man", "woman", "house", "tree"]
TEXTS = [f"the {a} sees a {b} here the {c} likes" for a in WORDS for b in WORDS for c in WORDS]
LONG = ["\n".join(TEXTS[i : i + 24]) for i in range(0, 192, 2)]
"""Texts of 24 lines."""


@pytest.fixture
def serve(tiny_run: Path) -> Iterator[Callable[..., Server]]:
    """A function that starts a server with some arguments."""
    started: list[Server] = []

    def begin(*arguments: Any) -> Server:
        started.append(Server(tiny_run, *map(str, arguments)))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
    """An answer, read whole."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {**(JSON if data else {}), **headers})
    answer = connection.getresponse()
    answer.said = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def raw(port: int, pieces: list[bytes]) -> int:
    """The status of a request that is sent as it stands, while the answer is waited for."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client, ThreadPoolExecutor(1) as pool:

        def send() -> None:
            with contextlib.suppress(OSError):
                for piece in pieces:
                    client.sendall(piece)

        pool.submit(send)
        status = int(client.recv(1 << 16)[9:12])
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
    return status


def test_S1_an_overload_is_refused_quickly_and_costs_no_throughput(serve: Any, figure: Figure) -> None:
    server = serve("--max-wait", 2)
    # a request of so many lines costs its client, on the same cores, little beside
    texts = ["\n".join(TEXTS[i : i + 96]) for i in range(0, 120, 2)]
    load(server.port, 16, texts)
    capacity = load(server.port, 16, texts, seconds=10)[0]["sentences_per_s"]
    seen = overload(server, texts, capacity, 60)
    assert set(seen["statuses"]) <= {"200", "429", "503"}, seen  # -429 stands for one without Retry-After
    assert seen["rejected_p99_ms"] < 200, seen
    assert seen["livez_p99_ms"] < 200, seen
    assert seen["memory_growth_mib"] < 100, seen
    assert seen["goodput"] >= 0.9, seen
    figure(
        "S1",
        f"{seen['asked_per_s']} requests of 96 lines a second for 60 s, four times the capacity: "
        f"{seen['statuses']}, refused within {seen['rejected_p99_ms']} ms (p99), /livez within "
        f"{seen['livez_p99_ms']} ms, {seen['memory_growth_mib']} MiB more, goodput {seen['goodput']}",
    )


def test_S2_slow_clients_are_let_go_and_others_do_not_wait(serve: Any, figure: Figure) -> None:
    server = serve()
    load(server.port, 2, TEXTS)
    before = load(server.port, 2, TEXTS, seconds=10)[0]["p99_ms"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(hold, server.port, 500, 30)
        time.sleep(2)  # all are connected
        during = load(server.port, 2, TEXTS, seconds=10)[0]["p99_ms"]
        held = waiting.result()
    longest = {kind: max(times) for kind, times in held.items()}
    assert max(longest.values()) < 17, longest  # 15, and what the client needs to see it
    assert during <= 2 * before, (before, during)
    assert ask(server.port, "GET", "/livez").status == 200
    said = ", ".join(f"{len(times)} ({kind}) after at most {max(times):.1f} s" for kind, times in held.items())
    figure("S2", f"500 slow clients let go: {said}; p99 of others {before} ms before, {during} ms beside them")


def test_S3_the_work_of_clients_that_leave_is_dropped(serve: Any, figure: Figure) -> None:
    server = serve("--max-wait", 600)
    seen = leaving(server, TEXTS)
    assert seen["sentences_waiting"] > 1000, seen
    assert seen["queue_empty_after_s"] <= 1, seen
    assert seen["nothing_runs_after_s"] <= 2, seen
    figure("S3", f"50 clients left with {seen['sentences_waiting']:,.0f} sentences waiting: none waits after "
                 f"{seen['queue_empty_after_s']} s, none runs after {seen['nothing_runs_after_s']} s")  # fmt: skip


def test_S4_what_is_in_flight_at_sigterm_finishes_and_nobody_is_told_ready(serve: Any, figure: Figure) -> None:
    server = serve("--grace", 60, "--max-wait", 600)
    load(server.port, 1, TEXTS[:20])
    told: list[int] = []
    over = threading.Event()

    def probe() -> None:
        while not over.wait(0.005):
            with contextlib.suppress(OSError):
                told.append(ask(server.port, "GET", "/readyz").status)

    prober = threading.Thread(target=probe)
    prober.start()
    started = time.perf_counter()
    seen = ending(server, LONG)
    seconds = time.perf_counter() - started
    over.set()
    prober.join()
    assert (seen["finished"], seen["exit"]) == (20, 0), seen
    assert seconds < 60
    last = told.index(503) if 503 in told else len(told)
    assert 200 not in told[last:]
    figure(
        "S4",
        f"20 requests in flight at SIGTERM: {seen['finished']} finished, exit code {seen['exit']} after "
        f"{seconds:.1f} s; /readyz: {told.count(200)} times 200, then {told[last:].count(503)} times 503",
    )


def test_S5_every_limit_holds_at_one_more_and_not_before(serve: Any, figure: Figure) -> None:
    server = serve("--max-body", 20_000, "--max-document", 30_000, "--max-chars", 9000, "--max-texts", 50)
    port = server.port

    def of_length(n: int) -> bytes:
        body = json.dumps({"text": "the dog", "source": "en"}).encode()
        return body + b" " * (n - len(body))

    def document(n: int) -> int:
        head = b'--b\r\nContent-Disposition: form-data; name="target"\r\n\r\nde\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nthe dog'  # noqa: E501
        body = head + b" " * (n - len(head) - 7) + b"\r\n--b--"
        return ask(port, "POST", "/translate_file", body, **{"content-type": "multipart/form-data; boundary=b"}).status

    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    many = b"".join(b"X-%d: a\r\n" % i for i in range(2500))
    statuses = {
        "body": [ask(port, "POST", "/v1/translate", of_length(n)).status for n in (20_000, 20_001)],
        "chunks of six bytes": [raw(port, [chunked, b"6\r\n      \r\n" * 500_000])],  # 3 MB
        "document": [document(n) for n in (30_000, 30_001)],
        "one header": [
            raw(port, [HEAD + b"X: " + b"a" * n + b"\r\nContent-Length: 0\r\n\r\n"]) for n in (9000, 17_000)
        ],
        "many headers": [raw(port, [HEAD + many + b"\r\n"])],
    }
    for name, path, asked in (
        ("texts", "/v1/translate", lambda n: {"text": ["a"] * n}),
        ("texts, LibreTranslate", "/translate", lambda n: {"q": ["a"] * n, "source": "en", "target": "de"}),
        ("texts, DeepL", "/v2/translate", lambda n: {"text": ["a"] * n, "target_lang": "DE"}),
    ):
        statuses[name] = [ask(port, "POST", path, asked(n)).status for n in (50, 51)]
    line = "the dog sees a cat. " * 450
    statuses["characters"] = [ask(port, "POST", "/v1/translate", {"text": t}).status for t in (line, line + "a")]
    for name, asked in (
        ("beam", lambda n: {"text": "a", "beam_size": n}),
        ("translations", lambda n: {"text": "a", "beam_size": 16, "n_best": n}),
    ):
        statuses[name] = [ask(port, "POST", "/v1/translate", asked(n)).status for n in (16, 17)]
    alternatives = {"q": "a", "source": "en", "target": "de"}
    statuses["alternatives"] = [
        ask(port, "POST", "/translate", {**alternatives, "alternatives": n}).status for n in (15, 16)
    ]  # fmt: skip
    allowed = {"body", "document", "characters", "texts", "texts, LibreTranslate", "texts, DeepL"}
    for name, found in statuses.items():
        beyond = 413 if name in allowed or "chunks" in name else 431 if "header" in name else 400
        assert found[-1] == beyond, (name, found)
        assert found[:-1] in ([], [200]) or (name == "one header" and found[0] == 400), (name, found)
    assert ask(port, "GET", "/livez").status == 200
    figure("S5", f"{len(statuses)} limits: {', '.join(statuses)}: each holds at one more, the value itself passes")


def test_S8_no_key_and_no_text_is_written_anywhere(serve: Any, tmp_path: Path, figure: Figure) -> None:
    key, text = make_key(tmp_path / "keys", "ann"), "the zanzibar"
    server = serve("--log-requests", "--keys", tmp_path / "keys", "--glossaries", tmp_path / "glossaries")
    port, n = server.port, 0
    for given in (key, key[:-1] + "x", "", "no key"):
        for path, asked in (
            ("/v1/translate", {"text": text}), ("/v1/translate", {"text": text, "beam_size": -1}),
            ("/v1/explain", {"text": text}), (f"/{quote(text)}?q={quote(text)}", {}),
            ("/translate", {"q": text, "source": "en", "target": "de", "api_key": given}),
            (f"/translate?q={quote(text)}&source=en&target=de&api_key={quote(given)}", None),
            ("/detect", {"q": text, "api_key": given}), ("/v2/translate", {"text": [text], "target_lang": "DE"}),
            ("/v2/glossaries", {"name": text, "source_lang": "en", "target_lang": "de", "entries": f"{text}\ta",
                                "entries_format": "tsv"}),
            ("/v2/translate", b"{" + text.encode()),
        ):  # fmt: skip
            ask(port, "POST", path, asked, authorization=f"Bearer {given}")
            n += 1
    assert server.stop() == 0
    logged = "".join(server.logged)
    assert logged.count('"status"') >= n
    kept = (tmp_path / "keys").read_text(encoding="ascii")
    assert (tmp_path / "keys").stat().st_mode & 0o77 == 0
    assert not [secret for secret in (key, key[:-1]) if secret in kept + logged]
    assert "zanzibar" not in logged
    figure("S8", f"{n} requests of every API with four keys, {logged.count(chr(10))} lines of log: no key, no text; "
                 "the file of keys has hashes and is its owner's")  # fmt: skip


NAMES = ("etc/passwd", "config.yaml", "job.json", "keys", "model.safetensors", ".ssh/id_rsa", "proc/self/environ")
ENCODED = (
    str, lambda name: name.replace("/", "%2f"), lambda name: name.replace("/", "\\"), lambda name: f"%00{name}",
    lambda name: name.replace("..", "%2e%2e"), lambda name: name.replace("../", "..%c0%af"),
    lambda name: name.replace("../", "....//"), lambda name: "/" + name, lambda name: quote(quote(name, safe="")),
    lambda name: name.replace("../", "..;/"),
)  # fmt: skip
CLIMBING = list(dict.fromkeys(encode("../" * n + name) for encode in ENCODED for n in range(1, 19) for name in NAMES))
CLIMBING = CLIMBING[:: len(CLIMBING) // 1000][:1000]


@contextlib.contextmanager
def traced(server: Server, calls: str, path: Path) -> Iterator[None]:
    """strace watches some calls of all threads of the server, and of the processes that parse for it."""
    pids = [server.process.pid, *(child.pid for child in psutil.Process(server.process.pid).children(recursive=True))]
    command = ["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", str(path)]
    command += [part for pid in pids for part in ("-p", str(pid))]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        deadline = time.monotonic() + 20
        untraced = lambda: [pid for pid in pids if "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text()]  # noqa: E731
        while untraced() and tracer.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert tracer.poll() is None, tracer.communicate()[1]
        assert not untraced()
        yield
        tracer.send_signal(signal.SIGINT)
        tracer.wait(20)


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


@needs_strace
def test_S9_a_name_that_climbs_is_404_and_opens_nothing(serve: Any, tmp_path: Path, figure: Figure) -> None:
    roots = [tmp_path / "glossaries", tmp_path / "documents"]
    server = serve("--glossaries", roots[0], "--documents", roots[1])
    assert len(set(CLIMBING)) == 1000

    def try_all(names: list[str]) -> list[tuple[str, int]]:
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        client._validate_path = lambda path: None  # type: ignore[attr-defined]  # names go out as they are
        closing.callback(client.close)
        found = []
        for name in names:
            for method, route, body in (
                ("GET", "/download_file/", None), ("GET", "/v2/glossaries/", None), ("GET", "/v3/glossaries/", None),
                ("GET", "/v2/glossaries/{}/entries", None), ("POST", "/v2/document/", {"document_key": "a"}),
                ("POST", "/v2/document/{}/result", {"document_key": name}), ("GET", "/", None),
                ("POST", "/v2/translate", {"text": ["a"], "source_lang": "EN", "target_lang": "DE",
                                           "glossary_id": name}),
            ):  # fmt: skip
                path = route.format(name) if "{}" in route else route + name if route != "/v2/translate" else route
                client.request(method, path, body and json.dumps(body), JSON)
                answer = client.getresponse()
                answer.read()
                found.append((f"{method} {path}", answer.status))
        return found

    with contextlib.ExitStack() as closing:
        assert ask(server.port, "GET", "/spec").status == 200
        try_all([*CLIMBING[:3], "nothing"])  # what is imported or read at the first request
        # a process that parses texts, and one that ends the server if it hangs: a second after the start it runs too
        wait_until(lambda: len(psutil.Process(server.process.pid).children()) == 2)
        with traced(server, "open,openat,openat2", tmp_path / "calls"):
            found = try_all(CLIMBING)
    wrong = [one for one in found if one[1] not in (404, 405)]
    assert not wrong, wrong[:5]
    opened = re.findall(r'open\w*\((?:AT_FDCWD, )?"([^"]*)"', (tmp_path / "calls").read_text())
    outside = [name for name in opened if not Path(name).resolve().is_relative_to(tmp_path)]
    assert not outside, outside[:5]
    missing = sum(status == 404 for _, status in found)
    figure("S9", f"1,000 names through 8 routes: {missing:,} of {len(found):,} answers 404, the rest 405; strace saw "
                 f"{len(outside)} files opened outside the folders of glossaries and documents")  # fmt: skip


@needs_strace
def test_S10_the_server_connects_to_nobody(serve: Any, tmp_path: Path, figure: Figure) -> None:
    server = serve("--glossaries", tmp_path / "glossaries")
    spec = json.loads(ask(server.port, "GET", "/spec").said)  # type: ignore[attr-defined]
    wait_until(lambda: len(psutil.Process(server.process.pid).children()) == 2)  # one of them parses texts
    with traced(server, "connect,sendto,sendmsg", tmp_path / "calls"):
        for path, asked in (
            ("/v1/translate", {"text": "see http://example.org/a and the dog"}),
            ("/v1/explain", {"text": "http://example.org"}), ("/detect", {"q": "http://example.org"}),
            ("/translate", {"q": "<img src=http://example.org/a.png> the dog", "source": "auto", "target": "de",
                            "format": "html"}),
            ("/v2/translate", {"text": ["<!DOCTYPE a SYSTEM 'http://example.org/a.dtd'><a>the dog</a>"],
                               "target_lang": "DE", "tag_handling": "xml"}),
        ):  # fmt: skip
            assert ask(server.port, "POST", path, asked).status == 200, path
        for path in spec["paths"]:
            ask(server.port, "GET", path)
        text = '<?xml version="1.0"?><!DOCTYPE a SYSTEM "http://example.org/a.dtd"><xliff/>'
        body = '--b\r\nContent-Disposition: form-data; name="target"\r\n\r\nde\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a.xliff"\r\n\r\n{}\r\n--b--'  # noqa: E501
        kind = {"content-type": "multipart/form-data; boundary=b"}
        assert ask(server.port, "POST", "/translate_file", body.format(text).encode(), **kind).status == 400
    calls = (tmp_path / "calls").read_text()
    connected = [line for line in calls.split("\n") if "connect(" in line and "AF_UNIX" not in line]
    assert not connected
    assert "sendto(" in calls  # the answers: strace has seen what there was
    named = {
        parameter["name"] for operations in spec["paths"].values() for operation in operations.values()
        for parameter in operation.get("parameters", ())
    }  # fmt: skip
    assert not {name for name in named if re.search(r"url|uri|href|callback|webhook", name, re.IGNORECASE)}
    figure("S10", f"{len(spec['paths'])} routes, texts, documents and entities that name other hosts: "
                  f"{len(connected)} connections made; no parameter takes a URL")  # fmt: skip


def test_S11_every_answer_has_the_headers_and_no_origin_is_let_in(serve: Any, figure: Figure) -> None:
    server, named = serve(), serve("--cors-origin", "https://a.org")
    spec = json.loads(ask(server.port, "GET", "/spec").said)  # type: ignore[attr-defined]
    n = 0
    for origin in ("https://a.org", "null", "https://evil.example"):
        for path in [*spec["paths"], "/nothing", "/v2/nothing", "/%ff", "/?q=%ff"]:
            for method in ("GET", "POST", "OPTIONS", "PUT"):
                for port in (server.port, named.port):
                    answer = ask(port, method, path, origin=origin)
                    found = {name.lower(): value for name, value in answer.getheaders()}
                    where = (method, path, answer.status)
                    assert answer.status < 500, where
                    assert found["x-content-type-options"] == "nosniff", where
                    assert "frame-ancestors 'none'" in found["content-security-policy"], where
                    assert "unsafe" not in found["content-security-policy"], where
                    assert found["referrer-policy"] == "no-referrer", where
                    assert "no-store" in found["cache-control"], where  # what one key may see is in no cache
                    assert "server" not in found
                    let_in = found.get("access-control-allow-origin")
                    known = port == named.port and origin == "https://a.org"
                    assert let_in is None or (known and let_in == "https://a.org"), where
                    assert "access-control-allow-credentials" not in found, where
                    n += 1
    hosts = (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "",
        "127.0.0.1@evil.example",
        "[::2]",
    )
    assert [ask(server.port, "GET", "/", host=host).status for host in hosts] == [421] * len(hosts)
    figure("S11", f"{n:,} answers of {len(spec['paths'])} routes: all have nosniff, a policy, no referrer; no origin "
                  f"let in but the named one, none with credentials; {len(hosts)} other host names: 421")  # fmt: skip


def listening(pid: int) -> set[str]:
    """The addresses on which a process listens, as the kernel writes them."""
    own = {
        match[1]
        for entry in Path(f"/proc/{pid}/fd").iterdir()
        if (match := re.match(r"socket:\[(\d+)\]", str(entry.readlink())))
    }
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().split("\n")[1:]:
            fields = line.split()
            if fields and fields[3] == "0A" and fields[9] in own:
                found.add(fields[1].partition(":")[0])
    return found


def test_S12_it_listens_on_loopback_and_has_no_way_to_manage_it(
    serve: Any, command: Callable[..., Any], tiny_run: Path, figure: Figure
) -> None:
    server = serve()
    assert listening(server.process.pid) == {"0100007F"}
    refused = [command("serve", tiny_run, "--port", "0", "--host", host) for host in ("0.0.0.0", "::", "192.0.2.1")]
    assert [(one.status, one.err.count("\n"), "--keys" in one.err) for one in refused] == [(2, 1, True)] * 3
    managing = (
        "/models", "/v1/models", "/models/reload", "/shutdown", "/admin", "/config", "/debug", "/docs/reload", "/redoc",
        "/openapi.json", "/env", "/restart", "/v2/models", "/unload", "/load", "/../config", "/static/..", "/keys",
    )  # fmt: skip
    for path in managing:
        for method in ("GET", "POST", "PUT", "DELETE"):
            assert ask(server.port, method, path).status == 404, path
    figure("S12", f"listens on 127.0.0.1 alone; {len(refused)} other addresses without a key refused; "
                  f"{len(managing)} ways to manage a server: 404")  # fmt: skip
