"""Several batches searched at a time: the same results in the same order, and errors as with one worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from table_model import TableModel, TableState
from torch import Tensor

from dragoman.config import DecodeConfig
from dragoman.data.corpus import Line
from dragoman.decoding import workers
from dragoman.decoding.batches import BATCHES_A_WORKER, SHARED_TOKENS, balanced
from dragoman.decoding.workers import run_jobs
from dragoman.errors import ConfigError, DecodeError
from dragoman.progress import repeated
from dragoman.translation.streams import windows
from limits import LONG_S, wait_until
from processes import start_code
from searching import search_all, search_result, segments_of, settings_of

CPU = torch.device("cpu")
SOURCES = [[4 + (i * j) % 3 for j in range(1 + i % 7)] for i in range(60)]
CONFIG = DecodeConfig(batch_tokens=20)


class Watched(TableModel):
    """Notes which threads search, the first of which waits for another; fails for sources longer than ``room``."""

    def __init__(self, seed: int, room: int = 99, error: type[Exception] = MemoryError) -> None:
        super().__init__(seed)
        self.room, self.error, self.starts = room, error, list[tuple[str, int]]()
        self.failed = False

    def start(self, src: Tensor) -> TableState:
        self.starts.append((threading.current_thread().name, torch.get_num_threads()))
        if threading.current_thread() is not threading.main_thread():
            wait_until(lambda: len({name for name, _ in self.starts}) > 1)
        if src.size(1) > self.room:
            self.failed = True
            raise self.error("no luck")
        if self.failed:
            time.sleep(0.05)  # time enough to leave all that has not begun
        return super().start(src)


@pytest.mark.parametrize("workers", [2, 3, 100])
def test_the_results_are_those_of_one_worker_in_order(workers: int) -> None:
    before = torch.get_num_threads()
    model, told = Watched(1), list[int]()
    found = search_all(
        model,
        SOURCES,
        CONFIG,
        CPU,
        2,
        workers=workers,
        progress=lambda done, total, what: told.append(done),
    )
    assert found == search_all(TableModel(1), SOURCES, CONFIG, CPU, 2)
    assert len({name for name, _ in model.starts}) > 1
    assert {n_threads for _, n_threads in model.starts} == {1}
    assert torch.get_num_threads() == before
    assert told == sorted(told)
    assert told[-1] == len(SOURCES)


def test_a_source_without_memory_is_reported_after_the_others() -> None:
    result = search_result(Watched(1, room=7), SOURCES, CONFIG, CPU, workers=2)
    want, found, lost = search_all(TableModel(1), SOURCES, CONFIG, CPU), result.hypotheses, result.out_of_memory
    assert lost == [i for i, src in enumerate(SOURCES) if len(src) + 1 > 7]
    assert found == [[] if i in lost else one for i, one in enumerate(want)]
    with pytest.raises(DecodeError, match=r"^sentence 7: out of memory, even alone in a batch"):
        search_all(Watched(1, room=7), SOURCES, CONFIG, CPU, workers=2)


def test_another_error_ends_all_and_batches_not_yet_begun_are_left() -> None:
    model = Watched(1, room=7, error=ValueError)
    with pytest.raises(ValueError, match="no luck"):
        search_all(model, SOURCES * 10, CONFIG, CPU, workers=2)
    assert len(model.starts) < 100  # of some 170 batches
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("search")]


def test_calls_at_the_same_time_leave_as_many_threads_as_there_were() -> None:
    def count() -> int:
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(torch.get_num_threads).result()

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with ThreadPoolExecutor(4) as calls:
            for _ in range(10):
                list(calls.map(lambda _: search_all(TableModel(1), SOURCES, CONFIG, CPU, workers=2), range(4)))
                assert count() == 3
    finally:
        torch.set_num_threads(before)


def test_no_workers_are_refused() -> None:
    with pytest.raises(ConfigError, match="workers must be 1 or more, got 0"):
        search_all(TableModel(1), SOURCES, CONFIG, CPU, workers=0)


def test_threads_that_begin_meanwhile_have_as_many_cores_as_before() -> None:
    before, seen = torch.get_num_threads(), list[int]()
    torch.set_num_threads(3)
    try:

        def ask(done: int, total: int, what: str) -> None:
            with ThreadPoolExecutor(1) as fresh:
                seen.append(fresh.submit(torch.get_num_threads).result())

        search_all(Watched(1), SOURCES, CONFIG, CPU, workers=2, progress=ask)
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {3}


forks = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")


@pytest.fixture(autouse=True)
def runner_is_a_bystander(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that distribute tests over processes only read a pipe."""
    there = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    monkeypatch.setattr(workers, "BYSTANDERS", (*workers.BYSTANDERS, *there))


class Noting(TableModel):
    """Writes into a file which process searches, with how many threads; ``then`` does what else happens in a child."""

    def __init__(self, path: Path, then: str = "") -> None:
        super().__init__(1)
        self.path, self.then, self.parent = path, then, os.getpid()

    def start(self, src: Tensor) -> TableState:
        with self.path.open("a") as file:
            file.write(f"{os.getpid()} {torch.get_num_threads()}\n")
        if os.getpid() != self.parent and self.then == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.then == "fails":
            raise ValueError("no luck")
        return super().start(src)

    def noted(self) -> list[tuple[int, int]]:
        return [(int(pid), int(n)) for pid, n in (line.split() for line in self.path.read_text().splitlines())]


def children() -> list[int]:
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(pid) for pid in path.read_text().split()]


@forks
def test_processes_find_what_one_worker_finds(tmp_path: Path) -> None:
    model, told, before = Noting(tmp_path / "pids"), list[int](), children()
    found = search_all(
        model, SOURCES, CONFIG, CPU, 2, workers=2, processes=True,
        progress=lambda done, total, what: told.append(done),
    )  # fmt: skip
    assert found == search_all(TableModel(1), SOURCES, CONFIG, CPU, 2)
    assert told == sorted(told)
    assert told[-1] == len(SOURCES)
    pids, n_threads = zip(*model.noted(), strict=True)
    assert len(set(pids)) == 2
    assert os.getpid() not in pids
    assert set(n_threads) == {1}
    assert children() == before


@forks
def test_the_batches_of_processes_that_die_are_searched_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = Noting(tmp_path / "pids", "dies")
    found = search_all(model, SOURCES, CONFIG, CPU, workers=2, processes=True)
    assert found == search_all(TableModel(1), SOURCES, CONFIG, CPU)
    assert [record.getMessage() for record in caplog.records] == [
        "a worker process died (out of memory?); this one searches its batch"
    ] * 2
    assert [pid for pid, _ in model.noted()].count(os.getpid()) == len(model.noted()) - 2


@forks
def test_an_error_in_a_process_is_raised_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, before = Noting(tmp_path / "pids", "fails"), children()
    with pytest.raises(ValueError, match="no luck"):
        search_all(model, SOURCES * 10, CONFIG, CPU, workers=2, processes=True)
    assert len(model.noted()) < 20  # of some 170 batches
    assert "a worker process failed (ValueError('no luck')); this one searches its batch" in caplog.text
    assert children() == before


@forks
def test_a_source_without_memory_in_a_process_is_reported(tmp_path: Path) -> None:
    result = search_result(Watched(1, room=7), SOURCES, CONFIG, CPU, workers=2, processes=True)
    assert result.out_of_memory == [i for i, src in enumerate(SOURCES) if len(src) + 1 > 7]


@forks
def test_what_can_be_cancelled_and_who_has_threads_is_not_forked(tmp_path: Path) -> None:
    def pids(alive: Callable[[int], bool] | None = None) -> set[int]:
        model = Noting(tmp_path / "pids")
        model.path.unlink(missing_ok=True)
        search_all(model, SOURCES, CONFIG, CPU, workers=2, processes=True, alive=alive)
        return {pid for pid, _ in model.noted()}

    here = {os.getpid()}
    assert pids(lambda _: True) == here
    with ThreadPoolExecutor(1) as other:
        assert other.submit(pids).result() == here
        assert pids() == here  # whatever the other thread does now
    with repeated(lambda: None, 0.01):
        assert here.isdisjoint(pids())


@forks
def test_the_read_ahead_of_a_stream_is_a_bystander(tmp_path: Path) -> None:
    over = threading.Event()

    def lines() -> Iterator[Line]:
        yield Line("a", None)
        over.wait(60)

    found = windows(lines(), 9)
    next(found)
    model = Noting(tmp_path / "pids")
    search_all(model, SOURCES, CONFIG, CPU, workers=2, processes=True)
    assert os.getpid() not in {pid for pid, _ in model.noted()}
    found.close()
    over.set()


@forks
def test_a_process_holds_no_file_of_its_parent(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as locked:
        jobs = [lambda: [int(path.name) for path in Path("/proc/self/fd").iterdir()]] * 2
        for files in run_jobs(jobs, 2, processes=True):
            assert locked.fileno() not in files
            assert len(files) == 5  # stdin, stdout, stderr, its pipe, the folder that is listed


@forks
def test_where_no_process_can_be_forked_this_one_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError("no room")

    monkeypatch.setattr(os, "fork", full)
    model = Noting(tmp_path / "pids")
    found = search_all(model, SOURCES, CONFIG, CPU, workers=2, processes=True)
    assert found == search_all(TableModel(1), SOURCES, CONFIG, CPU)
    assert {pid for pid, _ in model.noted()} == {os.getpid()}


ORPHANS = """
import os, time
from dragoman.decoding import workers
from dragoman.decoding.workers import run_jobs

def job():
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(10 * 60)

list(run_jobs([job] * 1000, 2, processes=True))
"""


@forks
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_do_not_outlive_the_one_that_forked_them(end: signal.Signals) -> None:
    parent = start_code(ORPHANS)
    wait_until(lambda: parent.output.count(b"\n") == 2 or parent.poll() is not None)
    pids = {int(pid) for pid in parent.output.split()}
    assert len(pids) == 2, parent.errors
    parent.send_signal(end)
    parent.wait(LONG_S)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))  # sooner than their jobs end
    assert parent.pid not in pids


HOST = """
import os, signal, sys
from dragoman.decoding.workers import run_jobs

real, host = os.fork, os.getpid()

def fork():
    pid = real()
    if not pid:
        os.kill(os.getpid(), signal.SIGUSR1)
    return pid

def handle(*_):
    raise TimeoutError

os.fork = fork
signal.signal(signal.SIGUSR1, handle)
try:
    print(*run_jobs([lambda n=n: n for n in range(6)], 2, processes=True), os.getpid() == host, flush=True)
except TimeoutError:
    print("a copy of the host" if os.getpid() != host else "the host", flush=True)
"""


@forks
def test_a_signal_that_the_program_handles_makes_no_copy_of_it() -> None:
    """Its handler ran in the child of a fork, whose exception went on there through the code of the program."""
    done = subprocess.run([sys.executable, "-c", HOST], capture_output=True, text=True, timeout=LONG_S)
    assert done.stdout == "0 1 2 3 4 5 True\n"
    assert not done.stderr


def test_there_is_work_for_all_until_the_end() -> None:
    large, small = (settings_of(DecodeConfig(batch_tokens=n), workers=2) for n in (16_000, 60))
    segments = segments_of([[4, 5, 6]] * 4000)
    # each counts for 16 tokens, as a batch has few very short ones
    assert balanced(large, segments).decode.batch_tokens == 16 * 4000 // (2 * BATCHES_A_WORKER)
    assert balanced(large, segments_of([[4, 5, 6] * 10] * 4000)).decode.batch_tokens == 31 * 4000 // (
        2 * BATCHES_A_WORKER
    )
    assert balanced(large, segments[:40]).decode.batch_tokens == SHARED_TOKENS
    assert balanced(small, segments).decode.batch_tokens == 60
