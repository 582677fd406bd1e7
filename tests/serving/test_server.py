"""``dragoman serve`` as a process: it is ready, serves, and finishes what is in flight before it ends."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from py3langid import langid

from dragoman import cli
from dragoman.errors import ConfigError
from dragoman.serving.server import UNUSED
from limits import LONG_S, wait_until
from processes import Forked


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[Forked, str]]]:
    """A function that starts a server and waits until it says where it listens."""
    started = []

    def begin(*arguments: Any) -> tuple[Forked, str]:
        process = Forked(cli.main, ["dragoman", "serve", *map(str, arguments), "--port", "0"])
        started.append(process)
        wait_until(lambda: b" on http://" in process.errors or process.poll() is not None)
        found = re.search(r"on (http://\S+)", process.errors.decode())
        assert found is not None, process.errors
        return process, found[1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def post(url: str, asked: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(asked).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=LONG_S) as answer:
        return json.load(answer)


def test_what_is_in_flight_at_sigterm_finishes(start: Callable[..., Any], tiny_run: Path) -> None:
    process, url = start(tiny_run, "--max-wait", 3600)
    text = "the dog sees a cat\n" * 40
    expected = post(url + "/v1/translate", {"text": text})
    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(post, url + "/v1/translate", {"text": text}) for _ in range(20)]
        wait_until(lambda: _metric(url, "queue_sentences") or all(answer.done() for answer in answers))
        process.send_signal(signal.SIGTERM)
        assert [answer.result(LONG_S) for answer in answers] == [expected] * 20
    assert process.wait(LONG_S) == 0


INTERRUPTED = """
import os, signal, sys, time
from dragoman import cli
from dragoman.serving.service import Service

warm = Service.warm

def interrupted(service):
    time.sleep(0.5)  # until it listens
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.5)
    warm(service)
    assert not service.ready

Service.warm = interrupted
sys.exit(cli.main())
"""


def test_a_signal_while_the_models_load_ends_it_in_order(tiny_run: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, "serve", str(tiny_run), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG_S)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    assert "serving" not in done.stderr


TOGETHER = """
import socket, sys
from dragoman import cli
from dragoman.translation.translator import Translator

other, load = socket.socket(), Translator.load
other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
other.bind(("127.0.0.1", 0))

def loaded(run):
    other.listen()  # the other server has loaded first
    return load(run)

Translator.load = loaded
sys.argv += ["--port", str(other.getsockname()[1])]
sys.exit(cli.main())
"""


def test_of_two_servers_that_start_together_on_a_port_one_is_refused_in_a_line(tiny_run: Path) -> None:
    """Both had bound it, as neither listened yet: the second one ended with a traceback."""
    command = [sys.executable, "-c", TOGETHER, "serve", str(tiny_run), "--host", "127.0.0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG_S)
    assert done.returncode == 2
    assert re.findall(r"(?m)^error: .*", done.stderr) == [
        line for line in done.stderr.splitlines() if "Address already in use" in line
    ]
    assert re.search(r"cannot listen on 127\.0\.0\.1:\d+ \(.*\): choose another --port or --host", done.stderr)
    assert "Traceback" not in done.stderr
    assert "serving" not in done.stderr


def test_a_server_starts_and_ends_though_nobody_reads_what_it_prints(tiny_run: Path) -> None:
    """It printed where it serves in its event loop, and waited there for ever."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dragoman", "serve", tiny_run, "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=writing, stderr=writing)
    try:
        wait_until(lambda: is_ready(port))
        process.terminate()
        assert process.wait(LONG_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reading)
        os.close(writing)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_terminal_that_closes_ends_it_in_order(start: Callable[..., Any], tiny_run: Path) -> None:
    process, _ = start(tiny_run)
    process.send_signal(signal.SIGHUP)
    assert process.wait(LONG_S) == 0


def test_signals_that_mean_nothing_to_a_server_do_not_end_it(start: Callable[..., Any], tiny_run: Path) -> None:
    process, url = start(tiny_run)
    for number in UNUSED:
        process.send_signal(number)
    assert post(url + "/v1/translate", {"text": "the dog"})["translations"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG_S) == 0


def test_a_temporary_folder_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(langid.LanguageIdentifier, "from_model_file", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = importlib.util.find_spec("dragoman.languages.detection")
    assert found is not None
    assert found.loader is not None
    fresh = importlib.util.module_from_spec(found)  # one that has loaded nothing yet
    monkeypatch.setitem(sys.modules, found.name, fresh)
    found.loader.exec_module(fresh)
    with pytest.raises(ConfigError, match=f"{tmp_path}.*TMPDIR"):
        fresh.load()


def _metric(url: str, *names: str) -> float:
    """The sum of some figures at one moment."""
    with urllib.request.urlopen(url + "/metrics", timeout=LONG_S) as answer:
        shown = dict(re.findall(r"^dragoman_(\w+) (\S+)", answer.read().decode(), re.MULTILINE))
    return sum(float(shown[name]) for name in names)


def test_the_work_of_clients_that_leave_is_dropped(start: Callable[..., Any], tiny_run: Path) -> None:
    _, url = start(tiny_run, "--max-chars", 10_000_000, "--max-body", 10_000_000, "--max-wait", 3600)
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps({"text": "the dog sees a cat and a tree\n" * 3000}).encode()
    head = f"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    clients = []
    for _ in range(4):  # a queue of 10,000 is full
        client = socket.create_connection((host, int(port)), timeout=LONG_S)
        client.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        clients.append(client)
        everywhere = ("queue_sentences", "running_sentences", "sentences_total")
        wait_until(lambda: _metric(url, *everywhere) >= 3000 * len(clients))  # noqa: B023
    waiting = _metric(url, "queue_sentences")
    for client in clients:
        client.close()
    wait_until(lambda: _metric(url, "queue_sentences") == 0)
    assert _metric(url, "dropped_sentences_total") > waiting / 2 > 0  # and not searched for first
    assert post(url + "/translate", {"q": "the dog", "source": "en", "target": "de"})["translatedText"]


def test_a_server_open_to_the_network_needs_keys(command: Callable[..., Any], tiny_run: Path, tmp_path: Path) -> None:
    refused = command("serve", tiny_run, "--host", "0.0.0.0")
    assert refused.status == 2
    assert "--keys" in refused.err
    made = command("serve", "--keys", tmp_path / "keys", "--make-key", "ann")
    assert len(made.out.decode().strip()) > 40
    assert made.out.decode().strip() not in (tmp_path / "keys").read_text(encoding="ascii")


def test_a_taken_port_and_a_run_that_cannot_be_served_are_refused(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = command("serve", tiny_run, "--port", taken.getsockname()[1])
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "--port" in refused.err
    assert command("serve", tiny_run, tiny_run, "--port", "0").status == 2  # two runs for one pair
    assert command("serve").status == 2
    assert command("serve", tmp_path / "none", "--port", "0").status == 2


def test_requests_that_look_alike_are_all_logged() -> None:
    """Other messages of dragoman are shown once; of a server's there is no end."""
    lets_through = cli.no_repeats()
    for name, shown in (("dragoman.serving", [True, True]), ("dragoman.data", [True, False])):
        record = logging.LogRecord(name, logging.INFO, "", 0, "the same", (), None)
        assert [lets_through(record) for _ in range(2)] == shown
