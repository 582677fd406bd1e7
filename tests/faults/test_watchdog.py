"""Row R2: what has died is started again, what is stuck is reported and given up, and the server says so."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from leaving_clients import SENTENCE, StubPlan, answer, search_threads

from dragoman.serving.batcher import Batcher
from dragoman.serving.refusals import UnfinishedError
from dragoman.serving.tickets import Ticket
from dragoman.serving.watchdog import Patience, Watchdog
from dragoman.translation.segments import SegmentResult, TextSegment
from limits import LONG_S, wait_until

pytestmark = pytest.mark.alone

Figure = Callable[[str, str], None]
HERE = Path(__file__).parent

SHORT = Patience(look_every_s=0.01, batch_s=0.1, times_expected=0.0, loop_s=0.1, loop_ends_s=0.4)


@contextlib.contextmanager
def watched(**more: Any) -> Iterator[tuple[Batcher, Watchdog, list[tuple[str, bool]]]]:
    """A batcher of one search thread with a watchdog, and the ends that the watchdog asked for."""
    ends: list[tuple[str, bool]] = []
    with search_threads(1) as (batcher, _):
        yield batcher, Watchdog(batcher, lambda why, others: ends.append((why, others)), SHORT, **more), ends


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_R2_a_dead_search_thread_is_started_again_and_its_requests_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(segments: Sequence[TextSegment]) -> list[SegmentResult]:
        raise RuntimeError

    def dies(self: Batcher, number: int, error: BaseException) -> None:
        raise SystemExit

    monkeypatch.setattr(Batcher, "outlive", dies)
    with search_threads(1) as (batcher, n_dead):
        lost = StubPlan(engine=fails).ticket()
        batcher.submit(lost)
        wait_until(n_dead)
        assert not lost.results.done()
        slow = Watchdog(batcher, patience=Patience(look_every_s=1e6))  # looks once, after days
        assert slow.problems() == ["search thread server-0 has died"]
        watchdog = Watchdog(batcher, patience=SHORT)
        assert isinstance(lost.results.exception(LONG_S), UnfinishedError)
        next_one = StubPlan().ticket(2)
        batcher.submit(next_one)
        assert len(next_one.results.result(LONG_S)) == 2
        wait_until(lambda: not watchdog.problems())
        assert watchdog.is_alive()
        assert "server-0 died: started again" in caplog.text
        assert batcher.n_running == 0


def test_R2_a_batch_that_is_stuck_is_reported_then_given_up_then_ends_the_server() -> None:
    go = threading.Event()
    with watched() as (batcher, watchdog, ends):
        stuck = StubPlan(engine=lambda segments: answer(segments) if go.wait() else []).ticket()
        batcher.submit(stuck)
        wait_until(watchdog.problems)
        assert re.fullmatch(
            r"search thread server-0 has been working on one batch for \d+ s; about \d+ s were expected",
            watchdog.problems()[0],
        )
        assert isinstance(stuck.results.exception(LONG_S), UnfinishedError)
        assert watchdog.is_alive()
        wait_until(lambda: ends)
        assert not watchdog.is_alive()
        assert "cannot be ended" in watchdog.problems()[0]
        time.sleep(0.05)
        assert [others for _, others in ends] == [True]  # once
        go.set()
        after = StubPlan().ticket()
        batcher.submit(after)
        assert after.results.result(LONG_S)


def test_R2_a_batch_that_ends_when_it_is_given_up_leaves_a_healthy_server() -> None:
    def until_cancelled(segments: Sequence[TextSegment]) -> list[SegmentResult]:
        while not segments[0].search.is_cancelled:
            time.sleep(0.001)
        return answer(segments)

    with watched() as (batcher, watchdog, ends):
        slow = StubPlan(engine=until_cancelled).ticket()
        batcher.submit(slow)
        assert isinstance(slow.results.exception(LONG_S), UnfinishedError)
        wait_until(lambda: not watchdog.problems())
        assert watchdog.is_alive()
        assert not ends


def test_R2_a_batch_of_several_keys_that_is_given_up_ends_no_request_of_those_that_did_not_hold_it_up() -> None:
    holding = threading.Event()

    def hold(segments: Sequence[TextSegment]) -> list[SegmentResult]:
        holding.wait()
        return answer(segments)

    def until_cancelled(segments: Sequence[TextSegment]) -> list[SegmentResult]:
        slow = [segment for segment in segments if segment.text == "slow"]
        while slow and not slow[0].search.is_cancelled:
            time.sleep(0.001)
        return answer(segments)

    with watched() as (batcher, watchdog, ends):
        batcher.submit(StubPlan(engine=hold).ticket(owner="carol"))  # so that the next ones share a batch
        wait_until(batcher.running)
        plan = StubPlan(engine=until_cancelled)
        slow = Ticket(plan, [replace(SENTENCE, text="slow")], owner="ann")  # type: ignore[arg-type]
        others = [plan.ticket(2, owner="bob") for _ in range(3)]
        for ticket in (others[0], slow, *others[1:]):
            batcher.submit(ticket)
        holding.set()
        assert all(len(ticket.results.result(LONG_S)) == 2 for ticket in others)
        assert isinstance(slow.results.exception(LONG_S), UnfinishedError)
        wait_until(lambda: not watchdog.problems())
        assert not ends


def test_R2_a_batch_may_take_any_time_while_the_models_are_loading() -> None:
    go, looks = threading.Event(), [0]

    def is_serving() -> bool:
        looks[0] += 1
        return False

    with watched(is_serving=is_serving) as (batcher, watchdog, ends):
        loading = StubPlan(engine=lambda segments: answer(segments) if go.wait() else []).ticket()
        batcher.submit(loading)
        wait_until(lambda: looks[0] > 100)  # a hundred times 0.01 s: more than five times the limit
        assert watchdog.is_alive()
        go.set()
        assert loading.results.result(LONG_S)
        assert not ends


def test_R2_many_short_batches_are_never_taken_for_a_long_one() -> None:
    with watched() as (batcher, watchdog, ends):
        until = time.monotonic() + 0.7  # longer than a batch may take
        while time.monotonic() < until:
            ticket = StubPlan().ticket(3)
            batcher.submit(ticket)
            assert len(ticket.results.result(LONG_S)) == 3
        assert not watchdog.failure
        assert not ends


def test_R2_an_event_loop_that_is_blocked_is_reported_then_ends_the_server(caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()

    async def block(watchdog: Watchdog) -> None:
        watchdog.watch_loop(asyncio.get_running_loop())
        await asyncio.sleep(0.05)
        go.wait()

    with watched() as (_, watchdog, ends), caplog.at_level(logging.WARNING):
        blocked = threading.Thread(target=lambda: asyncio.run(block(watchdog)))
        blocked.start()
        wait_until(lambda: ends)
        assert [others for _, others in ends] == [False]  # nothing can finish
        # It is seen while it waits, or right before.
        assert re.search(r"the event loop has been blocked for \d+ s at .*(threading|test_watchdog)\.py", caplog.text)
        assert "blocked" in watchdog.problems()[0]
        assert str(HERE) not in watchdog.problems()[0]  # which anybody may read
        go.set()
        blocked.join()


SILENT = """
import sys, time
from dragoman.serving.heartbeat import Heartbeat
heartbeat = Heartbeat(1.0)
print(heartbeat._listener.pid, flush=True)
for line in sys.stdin:
    if line == "silence\\n":
        time.sleep(1000)
    heartbeat.beat()
    print("beat", flush=True)
"""
"""A process that beats for each line of its input, and is silent after the line "silence"."""


def _beats(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    print("beat", file=process.stdin, flush=True)
    assert process.stdout.readline() == "beat\n"


APART = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"]
"""A container of its own, whose /proc is still that of the machine."""

NOT_PID_1 = {
    "the /proc of the machine": 'mount --bind /proc /proc; "$0" "$@"; exit',
    "no /proc": 'mount -t tmpfs none /proc; "$0" "$@"; exit',
}
"""Scripts of the first process of a container, which starts a second one."""

containers = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*APART, "true"], capture_output=True).returncode != 0,
    reason="no container can be made here: not tried",
)

HANGS = """
import ctypes, sys, threading, time
from dragoman.serving.heartbeat import Heartbeat
heartbeat = Heartbeat(1.0)
threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(10**6)], daemon=True).start()
print("began", flush=True)
sys.stdin.readline()
ctypes.PyDLL(None).sleep(1000)
"""
"""A process whose native code, after a line of its input, keeps Python's lock while another thread waits for it."""


@containers
@pytest.mark.parametrize("options", [[], ["-X", "faulthandler"]])
def test_R2_the_first_process_of_a_container_ends_when_it_hangs(options: list[str]) -> None:
    """No signal that it has no handler for ends it from inside, not even SIGKILL."""
    command, pipe = [*APART, sys.executable, *options, "-c", HANGS], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        _, errors = process.communicate("hang\n", timeout=LONG_S)
        assert process.returncode == signal.SIGABRT  # as its exit status: it had to leave by itself
        assert "Fatal Python error: Aborted" in errors


@containers
@pytest.mark.parametrize("script", NOT_PID_1.values(), ids=NOT_PID_1)
def test_R2_a_container_that_was_stopped_goes_on_and_ends_when_it_hangs(script: str) -> None:
    """Without /proc, or with another one's, the listener took a stopped process for one that hangs."""
    command, pipe = [*APART, "sh", "-c", script, sys.executable, "-c", HANGS], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "began\n"
            (server,) = psutil.Process(process.pid).children()[0].children()
            server.suspend()
            time.sleep(2.2)  # twice as long as it may be silent
            assert server.status() == psutil.STATUS_STOPPED
            server.resume()
            _, errors = process.communicate("hang\n", timeout=LONG_S)
            assert "Fatal Python error: Aborted" in errors
            assert ", line 8 in <module>" in errors  # it went on after the stop, and hung there
        finally:
            process.kill()


@contextlib.contextmanager
def silent_process() -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """A process of ``SILENT``, and the one that listens to it, which is gone at the end."""
    command, pipe = [sys.executable, "-c", SILENT], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        listener = psutil.Process(int(process.stdout.readline()))
        try:
            yield process, listener
        finally:
            process.kill()
        assert listener.wait(LONG_S) is None or not listener.is_running()


def test_R2_a_process_that_was_stopped_goes_on() -> None:
    with silent_process() as (process, listener):
        assert process.stdin is not None
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.2)  # twice as long as it may be silent
        assert listener.is_running()
        print("beat", file=process.stdin, flush=True)
        process.send_signal(signal.SIGCONT)
        _beats(process)
        assert process.poll() is None


def test_R2_a_process_that_is_silent_ends_and_says_where_it_was() -> None:
    with silent_process() as (process, _):
        assert process.stdin is not None
        assert process.stderr is not None
        print("silence", file=process.stdin, flush=True)
        assert process.wait(LONG_S) == -signal.SIGABRT
        assert "Fatal Python error: Aborted" in process.stderr.read()


def test_R2_a_listener_that_was_killed_is_started_again() -> None:
    with silent_process() as (process, listener):
        listener.kill()
        wait_until(lambda: not listener.is_running() or listener.status() == psutil.STATUS_ZOMBIE)
        _beats(process)
        (again,) = psutil.Process(process.pid).children()
        assert again.pid != listener.pid


@pytest.mark.faults
@pytest.mark.parametrize(
    ("fault", "line"),
    [("stuck search", "and cannot be ended: the server ends, so that its supervisor starts it again"),
     ("blocked loop", "the event loop has been blocked for 3 s: the server ends"),
     ("held lock", "Fatal Python error: Aborted")],
)  # fmt: skip
def test_R2_a_server_that_cannot_go_on_ends_for_its_supervisor(
    fault: str, line: str, tiny_run: Path, figure: Figure
) -> None:
    command = [sys.executable, str(HERE / "failing_server.py"), str(tiny_run), fault]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    port = next(int(match[1]) for text in server.stderr if (match := re.search(r"127\.0\.0\.1:(\d+)", text)))

    def get(method: str, path: str, text: str | None = None) -> tuple[int, str]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONG_S)) as connection:
            body = None if text is None else json.dumps({"text": text})
            connection.request(method, path, body, {"content-type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    assert get("POST", "/v1/translate", "the dog")[0] == 200
    assert get("GET", "/readyz") == get("GET", "/livez") == (200, "ok")
    began = time.monotonic()
    status: list[int] = []

    def send() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            status.append(get("POST", "/v1/translate", "fault")[0])

    sender = threading.Thread(target=send)
    sender.start()
    if fault == "stuck search":
        wait_until(lambda: get("GET", "/readyz")[0] == 503)
        assert "not ready: search thread server-" in get("GET", "/readyz")[1]
    status_at_end = -signal.SIGABRT if fault == "held lock" else 1
    assert server.wait(LONG_S) == status_at_end
    seconds = time.monotonic() - began
    sender.join(LONG_S)
    assert status == ([503] if fault == "stuck search" else [])
    assert line in server.stderr.read()
    server.stderr.close()
    figure("R2", f"{fault}: exit status {status_at_end} after {seconds:.1f} s, with the line {line!r}")
