"""Workers: what is too much costs one call, and the next works."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dragoman
import worker_tasks
from dragoman import budget
from dragoman.budget import Budget, ReplacedError, StartError, StoppedError, Workers
from dragoman.documents import opening
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.errors import ConfigError, DataError
from failing import fail_once
from limits import LONG_S, wait_until

ENOUGH = Budget(memory=256 << 20, cpu_s=60, wall_s=LONG_S)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """One worker at a time."""
    pool = Workers(1)
    yield pool
    pool.close()


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(), lambda inside: st.lists(inside, max_size=5)
)


@settings(max_examples=50, deadline=None)
@given(values=st.dictionaries(st.text("abc", min_size=1), st.binary() | plain))
def test_what_goes_to_a_worker_comes_back_as_it_was(workers: Workers, values: dict[str, Any]) -> None:
    assert workers.run(ENOUGH, "a", worker_tasks.echo, **values) == values


def test_large_values_arrive_whole(workers: Workers) -> None:
    values = {"blob": os.urandom(3_000_000), "texts": [f"{i} \u732b \ud800" for i in range(50_000)], "empty": b""}
    assert workers.run(ENOUGH, "a", worker_tasks.echo, **values) == values


TOO_MUCH: dict[str, tuple[Callable[..., Any], dict[str, Any], Budget, str]] = {
    "memory": (worker_tasks.eat_memory, {}, ENOUGH, r"a\.xyz: parsing it takes more than 256 MiB of memory"),
    "cpu": (worker_tasks.burn, {}, replace(ENOUGH, cpu_s=1), "takes more than 1 seconds of processor time"),
    "time": (worker_tasks.sleep, {}, replace(ENOUGH, wall_s=1.0), "takes more than 1 seconds"),
    "exit": (worker_tasks.leave, {}, ENOUGH, r"a\.xyz: the process that parsed it died \(exit code 3\)"),
    "signal": (worker_tasks.kill, {}, ENOUGH, r"died \(signal 9\)"),
    "depth": (worker_tasks.recurse, {}, ENOUGH, r"a\.xyz: its elements are nested too deeply"),
    "result": (worker_tasks.many, {"n": 50_000}, replace(ENOUGH, result=1 << 20), "takes more than 1 MiB"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_too_much_is_a_data_error_and_the_next_call_works(workers: Workers, what: str) -> None:
    task, arguments, budget, message = TOO_MUCH[what]
    with pytest.raises(DataError, match=message):
        workers.run(budget, "a.xyz", task, **arguments)
    assert workers.run(ENOUGH, "a", worker_tasks.echo, b=1) == {"b": 1}


def test_a_worker_that_is_killed_between_two_calls_is_replaced(workers: Workers) -> None:
    pid = workers.run(ENOUGH, "a", worker_tasks.about)["pid"]
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], LONG_S)
    assert workers.run(ENOUGH, "a", worker_tasks.about)["pid"] != pid


def test_a_worker_that_was_stopped_between_two_calls_is_replaced_at_once(workers: Workers) -> None:
    pid = workers.run(ENOUGH, "a", worker_tasks.about)["pid"]
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    assert workers.run(ENOUGH, "a", worker_tasks.about)["pid"] != pid


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_call_whose_worker_was_stopped_is_not_called_too_long(workers: Workers, goes_on: bool) -> None:
    pid = workers.run(ENOUGH, "a", worker_tasks.about)["pid"]
    call = workers.submit(replace(ENOUGH, wall_s=2.0), "a", worker_tasks.sleep)
    for number in (signal.SIGSTOP, signal.SIGCONT)[: 1 + goes_on]:
        time.sleep(0.5)
        os.kill(pid, number)
    with pytest.raises(StoppedError, match=r"^a: the process that parsed it was stopped: try again$"):
        call.result(LONG_S)
    assert workers.run(ENOUGH, "a", worker_tasks.echo, b=1) == {"b": 1}


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says which process it ends when memory is short")
def test_S31_the_system_ends_a_worker_first_when_memory_is_short(
    workers: Workers, figure: Callable[[str, str], None]
) -> None:
    pid = workers.run(ENOUGH, "a", worker_tasks.about)["pid"]
    score = Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii")
    assert score == "1000\n"
    figure("S31", f"a worker that parses: {score.strip()} of 1,000 in the system's order of what to end")


def test_errors_arrive_as_they_were_raised(workers: Workers) -> None:
    for kind, expected in (("DataError", DataError), ("ConfigError", ConfigError)):
        with pytest.raises(expected, match=r"^as it was raised$"):
            workers.run(ENOUGH, "a", worker_tasks.fail, kind=kind)
    with pytest.raises(RuntimeError, match=r"(?s)the worker that parses a failed:.*ValueError: as it was raised"):
        workers.run(ENOUGH, "a", worker_tasks.fail, kind="ValueError")


def test_a_worker_is_kept_and_knows_no_torch(workers: Workers) -> None:
    first, second = (workers.run(ENOUGH, "a", worker_tasks.about) for _ in range(2))
    assert first == second
    opened = open_document(b"the dog", DocumentInfo("a.md"))
    assert opened.texts == ["the dog"]
    pool = Workers(1, preload=opening.__name__, niceness=3)
    about = pool.run(ENOUGH, "a", worker_tasks.about)
    assert (about["torch"], about["niceness"]) == (False, min(19, os.nice(0) + 3))
    pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a thread has a niceness of its own on Linux alone")
def test_a_call_yields_the_processor_once_it_is_long_and_the_next_one_does_not_at_first() -> None:
    pool, own = Workers(1, niceness=3, short_s=0.2), os.nice(0)
    short, long = {"first": own, "then": own}, {"first": own, "then": min(19, own + 3)}
    for after_s, expected in ((0.0, short), (1.0, long), (0.0, short)):
        assert pool.run(ENOUGH, "a", worker_tasks.niceness, after_s=after_s) == expected
    pids = {pool.run(ENOUGH, "a", worker_tasks.about)["pid"] for _ in range(20)}
    assert len(pids) == 1  # threads reserve no address space that would wear the worker out
    with pytest.raises(DataError, match="memory"):
        pool.run(ENOUGH, "a", worker_tasks.eat_memory)
    with pytest.raises(DataError, match="processor"):
        pool.run(replace(ENOUGH, cpu_s=1), "a", worker_tasks.burn)
    pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a thread has a niceness of its own on Linux alone")
def test_a_long_call_of_a_process_that_yields_already_yields_more() -> None:
    """The niceness was set and not added: under ``nice`` a long text got the processor first, or its worker died."""
    code = """
import os
import worker_tasks
from dragoman.budget import Budget, Workers
os.nice(4)
workers = Workers(1, niceness=3, short_s=0.2)
print(workers.run(Budget(memory=1 << 28, cpu_s=60, wall_s=60.0), "a", worker_tasks.niceness, after_s=1.0))
"""
    path = os.pathsep.join([str(Path(worker_tasks.__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, check=True, timeout=LONG_S,
        capture_output=True, text=True,
    )  # fmt: skip
    own = os.nice(0)
    assert done.stdout == f"{{'first': {min(19, own + 4)}, 'then': {min(19, own + 7)}}}\n"


def test_what_a_worker_prints_goes_nowhere(workers: Workers, capfd: pytest.CaptureFixture[str]) -> None:
    assert workers.run(ENOUGH, "a", worker_tasks.talk) == {}
    assert capfd.readouterr() == ("", "")


def test_one_owner_leaves_a_worker_to_the_others(tmp_path: Path) -> None:
    pool, sign = Workers(2), tmp_path / "sign"
    stuck = [pool.submit(ENOUGH, "a", worker_tasks.wait_for, owner="a", sign=str(sign)) for _ in range(3)]
    assert pool.run(ENOUGH, "b", worker_tasks.echo, owner="b", c=1) == {"c": 1}
    assert not any(future.done() for future in stuck)
    assert pool.n_waiting("a") == 2
    pool.close()
    assert [future.cancelled() for future in stuck] == [False, True, True]
    sign.touch()
    assert stuck[0].result(LONG_S) == {}  # a call that has begun is not broken off


def test_S28_calls_whose_caller_has_left_are_forgotten_with_their_arguments(
    tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    """Their uploads stayed in memory until a worker was free, and counted as waiting, while no limit counted them."""
    pool, sign = Workers(1), tmp_path / "sign"
    running = pool.submit(ENOUGH, "a", worker_tasks.wait_for, owner="a", sign=str(sign))
    wait_until(running.running)
    uploads = [NoticedList() for _ in range(4)]
    alive = [weakref.ref(upload) for upload in uploads]
    left = [pool.submit(ENOUGH, "a", worker_tasks.echo, owner="a", data=upload) for upload in uploads]
    kept = pool.submit(ENOUGH, "a", worker_tasks.echo, owner="a", c=1)
    assert all(future.cancel() for future in left)
    del uploads, left
    assert pool.n_waiting("a") == 1
    assert [each() for each in alive] == [None] * 4
    sign.touch()
    assert (running.result(LONG_S), kept.result(LONG_S)) == ({}, {"c": 1})
    pool.close()
    figure("S28", "4 uploads whose clients left while all workers were busy: 0 in memory, 0 counted")


@pytest.mark.parametrize("task", [worker_tasks.echo, worker_tasks.kill, "cancelled"])
def test_a_call_that_has_ended_is_forgotten_with_its_arguments(tmp_path: Path, task: Any) -> None:
    """The thread of a worker held its last upload for as long as nothing came: up to ten minutes."""
    pool, upload = Workers(1), NoticedList()
    pool.run(ENOUGH, "a", worker_tasks.echo)
    alive = [weakref.ref(upload)]
    arguments = {} if task is worker_tasks.kill else {"data": upload}
    if task == "cancelled":
        sign = tmp_path / "sign"
        busy = pool.submit(ENOUGH, "a", worker_tasks.wait_for, sign=str(sign))
        call = pool.submit(ENOUGH, "a", worker_tasks.echo, **arguments)
        call.cancel()
        sign.touch()
        busy.result(LONG_S)
    else:
        call = pool.submit(ENOUGH, "a", task, **arguments)
        error = call.exception(LONG_S)
        alive += [] if error is None else [weakref.ref(error)]
        del error
    alive.append(weakref.ref(call))
    del call, upload, arguments
    wait_until(lambda: [each() for each in alive] == [None] * len(alive))
    pool.close()


def test_an_idle_worker_holds_nothing_of_its_last_call() -> None:
    pool = Workers(1)
    process = psutil.Process(pool.run(ENOUGH, "a", worker_tasks.about)["pid"])
    before = process.memory_info().rss
    assert len(pool.run(ENOUGH, "a", worker_tasks.echo, data=b"x" * (32 << 20))["data"]) == 32 << 20
    wait_until(lambda: process.memory_info().rss < before + (24 << 20))
    pool.close()


class NoticedList(list[bytes]):
    """A list can be referred to weakly."""


def test_calls_that_come_together_do_not_wait_for_one_idle_worker(tmp_path: Path) -> None:
    """Two found the same thread idle, so the second waited for the end of the first, though others were free."""
    pool, sign = Workers(3), tmp_path / "sign"
    pool.run(ENOUGH, "a", worker_tasks.echo)
    slow = pool.submit(ENOUGH, "a", worker_tasks.wait_for, owner="ann", sign=str(sign))
    fast = pool.submit(ENOUGH, "b", worker_tasks.echo, owner="bob")
    assert fast.result(LONG_S) == {}
    assert not slow.done()
    pool.close()
    sign.touch()
    assert slow.result(LONG_S) == {}


def test_a_call_that_nobody_waits_for_is_not_made() -> None:
    pool = Workers(1)
    first = pool.submit(replace(ENOUGH, wall_s=1.0), "a", worker_tasks.sleep)
    second = pool.submit(ENOUGH, "a", worker_tasks.kill)
    assert second.cancel()
    with pytest.raises(DataError):
        first.result(LONG_S)
    assert pool.run(ENOUGH, "a", worker_tasks.echo, c=1) == {"c": 1}
    pool.close()


@pytest.mark.parametrize(("module", "name", "why"), [
    (threading.Thread, "start", RuntimeError("can't start new thread")),
    (subprocess, "Popen", BlockingIOError(11, "Resource temporarily unavailable")),
    (socket, "socketpair", OSError(24, "Too many open files")),
])  # fmt: skip
def test_a_system_that_lets_nothing_start_costs_a_call_and_no_worker(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, why: Exception
) -> None:
    workers = Workers(1)

    def refuse(*arguments: Any, **more: Any) -> None:
        raise why

    with monkeypatch.context() as patch:
        patch.setattr(module, name, refuse)
        for _ in range(3):
            with pytest.raises(StartError, match="no process can be started"):
                workers.run(ENOUGH, "x", worker_tasks.echo)
    assert workers.run(ENOUGH, "x", worker_tasks.echo, a=1) == {"a": 1}
    workers.close()


UPGRADED = """
import os, pathlib, sys
from dragoman.budget import Budget, StartError, Workers
from dragoman.documents import opening

package = pathlib.Path(opening.__file__).parent.parent
sys.path = [at for at in sys.path if at == str(package.parent) or not pathlib.Path(at, "dragoman").exists()]

def units():
    workers = Workers(1, preload=opening.__name__)
    enough = Budget(memory=1 << 28, cpu_s=60, wall_s=60.0)
    try:
        source = {"sources": ["<p>a dog</p>"], "kind": "html", "elements": {}}
        return workers.run(enough, "the text", opening.tagged_texts, **source)["units"], workers.problem
    except StartError as error:
        assert workers.problem == error.shown
        return str(error)

print(units())
markup = package / "documents" / "markup.py"
before = markup.read_bytes()
os.utime(markup, (1, 1))
print(units())  # the same content, installed again
(package / "lab" / "lab.py").write_text("x")
print(units())  # no part of a worker
markup.write_bytes(before + b"# another version\\n")
print(units())
markup.write_bytes(before)
print(units())
budget = package / "budget.py"
before = budget.read_bytes()
budget.write_text("import time\\ndef work(*_):\\n    time.sleep(600)")  # a version whose workers say nothing first
print(units())
budget.write_bytes(before)
package.rename(package.with_name("away"))
print(units())
package.with_name("away").rename(package)
print(units())
"""


def test_S32_a_worker_of_another_version_refuses_to_start_and_one_that_cannot_be_loaded_too(
    tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    """Texts that one version had read were written by another, which left most of them as they were."""
    folder = Path(dragoman.__file__).parent
    shutil.copytree(folder, tmp_path / "dragoman", ignore=lambda at, names: [
        name for name in names if (not name.endswith(".py") and not Path(at, name).is_dir()) or name == "__pycache__"
    ])  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", UPGRADED], env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=True, timeout=LONG_S,
        capture_output=True, text=True,
    )  # fmt: skip
    works = "(['a dog'], '')"
    replaced = "the files of dragoman were replaced while it ran (dragoman.documents.markup): restart it"
    gone = (
        f"no process can be started to parse with ({sys.executable} died at its start: exit code 1): sys.executable "
        "must be a Python interpreter that can import dragoman; or try again later"
    )
    silent = "the files of dragoman were replaced while it ran (dragoman.budget): restart it"
    assert done.stdout.split("\n") == [works, works, works, replaced, works, silent, gone, works, ""]
    figure("S32", "3 workers of other files refused, 5 of the same read the text")


def test_a_command_whose_files_were_replaced_says_so_and_writes_nothing_of_that_document(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pages").mkdir()
    for name in "ab":
        (tmp_path / "pages" / f"{name}.html").write_text("<p>the dog</p>")
    budget.forget_shared()
    monkeypatch.setitem(budget.known_sums(), opening.__name__, -1)
    done = command("translate", tiny_run, tmp_path / "pages", "--out", tmp_path / "out")
    why = "the files of dragoman were replaced while it ran (dragoman.documents.opening): restart it"
    assert (done.status, done.error) == (2, f"error: {why}")
    assert not (tmp_path / "out").exists()


def test_a_part_that_is_replaced_or_gone_when_a_call_needs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(1)
    assert workers.run(ENOUGH, "a", worker_tasks.echo, c=1) == {"c": 1}
    monkeypatch.setattr(worker_tasks.echo, "__module__", "dragoman.gone")
    with pytest.raises(StartError, match=r"No module named 'dragoman\.gone'"):
        workers.run(ENOUGH, "a", worker_tasks.echo)
    monkeypatch.setitem(budget.known_sums(), opening.__name__, -1)
    with pytest.raises(ReplacedError, match=r"replaced while it ran \(dragoman\.documents\.opening\): restart it$"):
        workers.run(ENOUGH, "a", opening.tagged_texts, sources=["a"], kind="html", elements={})
    monkeypatch.undo()
    assert workers.run(ENOUGH, "a", worker_tasks.echo, c=1) == {"c": 1}
    workers.close()


@pytest.mark.parametrize(("program", "why"), [
    ("", "sys.executable names no program"), (None, "sys.executable names no program"),
    ("/nowhere/python", "No such file or directory: '/nowhere/python'"),
    ("/bin/true", "/bin/true died at its start: exit code 0"),
    ("sleeps", "sleeps is not ready after 0.5 seconds"),
])  # fmt: skip
def test_a_program_that_is_no_python_with_dragoman_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str | None, why: str
) -> None:
    """A program that embeds Python names itself as its interpreter, or nothing."""
    workers = Workers(1)
    if program == "sleeps":
        program = str(tmp_path / program)
        Path(program).write_text("#!/bin/sh\nexec sleep 1000\n")
        Path(program).chmod(0o700)
        monkeypatch.setattr(budget, "START_S", 0.5)
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(StartError) as raised:
        workers.run(ENOUGH, "x", worker_tasks.echo)
    assert why in str(raised.value)
    assert "): sys.executable must be a Python interpreter that can import dragoman" in str(raised.value)
    monkeypatch.undo()
    assert workers.run(ENOUGH, "x", worker_tasks.echo, a=1) == {"a": 1}
    assert workers.problem == ""
    workers.close()


def test_a_search_path_with_paths_of_pathlib_starts_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Python skips what is no text in it."""
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path, None])
    workers = Workers(1)
    assert workers.run(ENOUGH, "x", worker_tasks.echo, a=1) == {"a": 1}
    workers.close()


def test_workers_work_under_limits_that_the_system_sets() -> None:
    """A worker may not lift a limit of ``ulimit -v`` or ``-t`` above what the system allows; it died of that."""
    code = """
import resource
import worker_tasks
from dragoman.budget import Budget, Workers
resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
resource.setrlimit(resource.RLIMIT_CPU, (1000, 1000))
workers = Workers(1)
for i in range(2):
    assert workers.run(Budget(memory=1 << 28, cpu_s=60, wall_s=60.0), "a", worker_tasks.echo, a=i) == {"a": i}
"""
    folder = Path(worker_tasks.__file__).parent
    path = os.pathsep.join([str(folder), *sys.path])
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, check=True, timeout=LONG_S)


def test_many_threads_share_workers() -> None:
    pool, results = Workers(2), {}

    def work(n: int) -> None:
        results[n] = pool.run(ENOUGH, "a", worker_tasks.echo, owner=str(n % 3), n=n)["n"]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert results == {n: n for n in range(30)}
    pool.close()


PARENT = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import worker_tasks
from dragoman.budget import Budget, Workers
enough = Budget(memory=1 << 28, cpu_s=600, wall_s=600.0)
busy, idle = Workers(1), Workers(1)
print(idle.run(enough, "a", worker_tasks.about)["pid"], busy.run(enough, "a", worker_tasks.about)["pid"], flush=True)
busy.submit(enough, "a", worker_tasks.burn)
threading.Event().wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a busy worker lives until its budget is used up")
def test_workers_end_with_a_process_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        orphans = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        time.sleep(0.3)  # the busy one is inside its regular expression
        parent.kill()
    assert psutil.wait_procs(orphans, LONG_S)[1] == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_S29_a_driver_that_dies_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counted as idle for ever, so the next text had no end."""
    pool = Workers(1)
    pool.run(ENOUGH, "a", worker_tasks.echo, c=1)
    failed = fail_once(monkeypatch, threading.Condition, "wait", "_take")
    assert pool.run(ENOUGH, "a", worker_tasks.echo, c=2) == {"c": 2}  # the thread meets the fault at its next wait
    wait_until(lambda: failed)
    assert pool.submit(ENOUGH, "a", worker_tasks.echo, c=3).result(LONG_S) == {"c": 3}
    pool.close()
