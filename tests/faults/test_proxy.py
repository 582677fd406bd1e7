"""Row H8: ``deploy/nginx.conf`` before two processes, with nginx itself, and the unit as systemd reads it.

Skipped where nginx or systemd is not installed; ``make test-faults`` installs nginx.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.serving import Server
from limits import wait_until

Figure = Callable[[str, str], None]
DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "translate.example.org"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.faults
needs_nginx = pytest.mark.skipif(NGINX is None, reason="needs nginx: apt-get install nginx-light")
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Proxied(NamedTuple):
    """nginx with the configuration of ``deploy``, and the processes behind it."""

    port: int
    start: Callable[[int], Server]
    processes: list[Server]

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"host": f"{NAME}:{self.port}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        with contextlib.closing(connection):
            connection.request(method, path, body or None, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()


@pytest.fixture(scope="module")
def proxied(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    folder = tmp_path_factory.mktemp("nginx")
    ports = [free_port(), free_port()]

    def start(port: int) -> Server:
        return Server(tiny_run, "--port", str(port), "--allow-host", NAME, "--documents", str(folder / "documents"),
                      "--glossaries", str(folder / "glossaries"), "--max-wait", "60")  # fmt: skip

    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    listening = free_port()
    for old, new in (
        (":5001", f":{ports[0]}"),
        (":5002", f":{ports[1]}"),
        ("listen 80;", f"listen 127.0.0.1:{listening};"),
    ):
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    (folder / "site.conf").write_text(text, encoding="utf-8")
    kinds = "".join(
        f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    owner = "user root;" if Path("/root").owner() == Path(folder).owner() else ""
    (folder / "nginx.conf").write_text(
        f"{owner} daemon off; pid {folder}/pid; error_log stderr warn; events {{}}\n"
        f"http {{ access_log off; {kinds} include {folder}/site.conf; }}\n",
        encoding="utf-8",
    )
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    tried = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert tried.returncode == 0, tried.stderr
    nginx = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    made = Proxied(listening, start, [start(port) for port in ports])
    try:
        wait_until(lambda: listens(listening))
        yield made
    finally:
        nginx.send_signal(signal.SIGQUIT)
        nginx.wait(30)
        for process in made.processes:
            process.stop()


ASKED = json.dumps({"q": "the dog sees a cat", "source": "en", "target": "de"}).encode()


@needs_nginx
def test_H8_what_a_client_sends_arrives_and_what_is_answered_returns(proxied: Proxied) -> None:
    status, _, body = proxied.ask("POST", "/translate", ASKED)
    assert status == 200
    assert proxied.ask("POST", "//translate", ASKED)[::2] == (200, body)
    assert proxied.ask("POST", "/translate", gzip.compress(ASKED), content_encoding="gzip")[::2] == (200, body)
    assert proxied.ask("HEAD", "/health")[::2] == (200, b"")
    assert proxied.ask("OPTIONS", "/v2/glossaries")[1]["allow"] == "GET, HEAD, OPTIONS, POST"
    assert proxied.ask("GET", "/health", host="evil.example")[0] == 421
    status, _, page = proxied.ask("GET", "/docs")
    assert (status, b"HTTP API" in page) == (200, True)


def form(content: bytes, **fields: str) -> tuple[bytes, dict[str, str]]:
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()]
    head = "".join(parts) + '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    return head.encode() + content + b"\r\n--b--\r\n", {"content_type": "multipart/form-data; boundary=b"}


@needs_nginx
def test_H8_a_document_returns_by_the_address_that_the_client_knows(proxied: Proxied) -> None:
    body, kind = form(b"the dog\n", target="de")
    status, _, answer = proxied.ask("POST", "/translate_file", body, **kind)
    assert status == 200
    address = json.loads(answer)["translatedFileUrl"]
    assert address.startswith(f"http://{NAME}:{proxied.port}/download_file/")
    for _ in range(4):  # either process has it
        assert proxied.ask("GET", address.partition(str(proxied.port))[2])[0] == 200
    largest, kind = form(b"", target="de")
    padded = largest.replace(b"\r\n\r\n\r\n--b--", b"\r\n\r\n" + b" " * (20_000_000 - len(largest)) + b"\r\n--b--")
    assert len(padded) == 20_000_000
    assert proxied.ask("POST", "/translate_file", padded, **kind)[0] != 413
    assert proxied.ask("POST", "/translate_file", padded + b"\r\n", **kind)[0] == 413


@needs_nginx
def test_H8_sentences_stream_as_they_are_done(proxied: Proxied) -> None:
    text = "the dog sees a cat.\n" * 200
    connection = http.client.HTTPConnection("127.0.0.1", proxied.port, timeout=60)
    body = json.dumps({"text": text, "stream": True}).encode()
    with contextlib.closing(connection):
        connection.request("POST", "/v1/translate", body, {"host": NAME, "content-type": "application/json"})
        answer = connection.getresponse()
        first = answer.read1(1 << 14)
        assert first.startswith(b"event: sentence")
        assert b"event: done" not in first
        assert b"event: done" in answer.read()


@needs_nginx
def test_H8_no_request_fails_while_one_process_after_the_other_is_restarted(proxied: Proxied, figure: Figure) -> None:
    statuses: Counter[int] = Counter()
    over = threading.Event()

    def client() -> None:
        while not over.is_set():
            statuses[proxied.ask("POST", "/translate", ASKED)[0]] += 1

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        for number, process in enumerate(proxied.processes):
            time.sleep(1)
            assert process.stop() == 0
            proxied.processes[number] = proxied.start(process.port)
    over.set()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}, statuses
    figure("H8", f"nginx before two processes, each restarted twice under load: {statuses[200]} requests, 0 failed")


@needs_systemd
def test_H8_systemd_reads_the_unit_without_a_complaint(tmp_path: Path, figure: Figure) -> None:
    text = (DEPLOY / "dragoman.service").read_text(encoding="utf-8")
    program = re.findall(r"ExecStart=(\S+)", text)[0]
    (tmp_path / "dragoman.service").write_text(text.replace(program, "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "dragoman.service")], capture_output=True, text=True
    )
    assert (done.returncode, [line for line in done.stderr.split("\n") if "dragoman" in line]) == (0, []), done.stderr
    exposed = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=35", str(tmp_path / "dragoman.service")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert exposed.returncode == 0, exposed.stdout + exposed.stderr
    figure("H8", f"the unit, as systemd reads it: {exposed.stdout.strip().split(chr(10))[-1].strip(' →')}")
