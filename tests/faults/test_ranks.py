"""Several processes that train as one: what happens when one of them fails, is killed, or is asked to stop."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman.model.weights import read_weights
from dragoman.training.checkpoint import list_checkpoints
from limits import wait_until
from outcomes import assert_nothing_twice, outcome, read_log, wait_for_step, write_config
from rank_runs import Process, batches_of, ended, forked, one_of_two_machines, start, torchrun, train

LAST = 30
Figure = Callable[[str, str], None]
Tiny = Callable[..., dict[str, Any]]
Straight = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny) -> Straight:
    """A configuration, and how two ranks end it without interruption."""
    folder = tmp_path_factory.mktemp("straight")
    settings = dict(batch_tokens=250, ema=0.9, average=0, validate_every=10, save_every=5, max_bad_steps=3)
    config = write_config(folder / "config.yaml", tiny(max_steps=LAST, **settings))
    done = train(forked(2), config, "--out", folder / "run")
    assert done.statuses == [0, 0], done.err
    return config, outcome(folder / "run")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """``rank_runs.start``; what still runs when the test ends is killed."""
    processes: list[Process] = []

    def run(*args: Any, **environment: str) -> Process:
        processes.append(start(*args, **environment))
        return processes[-1]

    yield run
    for process in processes:
        for each in [process.pid, *descendants(process.pid)]:
            with_kill(each)
        process.communicate()


def descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def with_kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def status_of(pid: int) -> str | None:
    """Return the status of a process; None if it is gone."""
    try:
        return str(psutil.Process(pid).status())
    except psutil.NoSuchProcess:
        return None


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if status_of(pid) not in (None, psutil.STATUS_ZOMBIE)]


def each_pair_once_an_epoch(ids: Path) -> int:
    """Check it, whatever was done again; returns the number of whole epochs."""
    batches = batches_of(ids)
    assert sorted(batches) == list(range(1, max(batches) + 1))
    seen = [pair for step in sorted(batches) for batch in batches[step] for pair in batch]
    for epoch in range(len(seen) // 400):
        assert sorted(seen[400 * epoch : 400 * (epoch + 1)]) == list(range(400))
    return len(seen) // 400


@pytest.mark.faults
def test_T1_a_job_of_two_ranks_killed_and_resumed_ends_as_the_uninterrupted_one(
    straight: Straight, started: Any, tmp_path: Path, figure: Figure
) -> None:
    """The whole job is killed at random moments, every other time while rank 0 writes."""
    config, want = straight
    run, ids, chance, in_a_save = tmp_path / "run", tmp_path / "ids", random.Random(5), 0
    environment = dict(RANKS_IDS=str(ids), RANKS_SLEEP="0.05")
    n = 6
    for i in range(n):
        last = max((int(path.name[5:]) for path in list_checkpoints(run / "checkpoints")), default=0)
        resumed = ["--out", run, "--resume"] if last else [config, "--out", run]
        process = started(forked(2), "train", *resumed, **environment)
        if i % 2:
            wait_for_a_save(run, process)
        else:
            wait_for_step(run, last + 5, process)
            time.sleep(0.3 * chance.random())
        for pid in [*descendants(process.pid), process.pid]:
            with_kill(pid)
        process.communicate()
        in_a_save += bool(list((run / "checkpoints").glob(".step_*.tmp")))
        assert not (run / "bundle").exists()
    assert train(forked(2), "--out", run, "--resume", **environment).statuses == [0, 0]
    assert outcome(run) == want
    assert_nothing_twice(run)
    n_epochs = each_pair_once_an_epoch(ids)
    assert n_epochs >= 2
    figure("T1", f"2 ranks: {n} kill -9 of the job, {in_a_save} inside a save: sha256 equal, each pair once an epoch")


def wait_for_a_save(run: Path, process: Process) -> None:
    """Until a checkpoint is half-written."""
    while not list((run / "checkpoints").glob(".step_*.tmp")):
        assert process.poll() is None, "no checkpoint was being written"
        time.sleep(0.0005)


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_T2_a_signal_to_torchrun_saves_and_the_resumed_run_ends_as_the_uninterrupted_one(
    number: signal.Signals, straight: Straight, started: Any, tmp_path: Path, figure: Figure
) -> None:
    config, want = straight
    run = tmp_path / "run"
    process = started(torchrun(), "train", config, "--out", run, RANKS_SLEEP="0.3")
    wait_for_step(run, 5, process)
    process.send_signal(number)
    asked = time.monotonic()
    done = ended(process)
    seconds = time.monotonic() - asked
    assert done.status == 1, done.err  # that of torchrun, whatever the signal
    assert f"saved. To resume: torchrun ... -m dragoman train --out {run} --resume" in done.err
    assert not done.errors
    assert not (run / "bundle").exists()
    assert train(forked(2), "--out", run, "--resume").statuses == [0, 0]
    assert outcome(run) == want
    figure("T2", f"{number.name} through torchrun: saved and ended in {seconds:.1f} s with status 1, resumed identical")


def test_T2_a_signal_to_one_rank_stops_all_at_the_same_step(
    straight: Straight, started: Any, tmp_path: Path, figure: Figure
) -> None:
    config, want = straight
    run = tmp_path / "run"
    process = started(forked(2), "train", config, "--out", run, RANKS_SLEEP="0.3")
    pids = sorted(descendants_when_there(process, 2))
    wait_for_step(run, 5, process)
    os.kill(pids[1], signal.SIGTERM)
    asked = time.monotonic()
    done = ended(process)
    seconds = time.monotonic() - asked
    assert done.statuses == [128 + signal.SIGTERM] * 2, done.err
    assert train(forked(2), "--out", run, "--resume").statuses == [0, 0]
    assert outcome(run) == want
    figure("T2", f"SIGTERM to rank 1 alone: both ranks ended in {seconds:.1f} s with status 143, resumed identical")


def descendants_when_there(process: Process, count: int) -> list[int]:
    wait_until(lambda: len(descendants(process.pid)) >= count)
    return descendants(process.pid)


@pytest.mark.faults
def test_T2_a_second_signal_to_torchrun_ends_all_at_once(
    straight: Straight, started: Any, tmp_path: Path, figure: Figure
) -> None:
    config, _ = straight
    process = started(torchrun(), "train", config, "--out", tmp_path / "run", RANKS_SLEEP="20")
    pids = descendants_when_there(process, 2)
    wait_until((tmp_path / "run/log.jsonl").is_file)
    time.sleep(3)  # into the first step, which takes 20 seconds
    process.send_signal(signal.SIGTERM)
    time.sleep(3)  # within two seconds it would be the same request
    assert alive(pids) == pids
    process.send_signal(signal.SIGTERM)
    asked = time.monotonic()
    done = ended(process)
    assert alive(pids) == [], done.err
    seconds = time.monotonic() - asked
    figure("T2", f"second SIGTERM to torchrun: all ended in {seconds:.1f} s")


def test_T5_what_is_not_finite_on_one_rank_updates_none_and_is_logged_with_rank_and_pairs(
    straight: Straight, tmp_path: Path, figure: Figure
) -> None:
    config, _ = straight
    run, ids = tmp_path / "run", tmp_path / "ids"
    done = train(forked(2), config, "--out", run, RANKS_FAULT="nan 1 7 12", RANKS_IDS=str(ids))
    assert done.statuses == [0, 0], done.err  # so the ranks' weights were alike at each checkpoint
    skipped = [event for event in read_log(run) if event["event"] == "skipped"]
    assert [(event["step"], event["ranks"]) for event in skipped] == [(7, [1]), (12, [1])]
    for event in skipped:
        assert event["pairs"] == batches_of(ids)[event["step"]][1][:8]
    assert "step 7: loss or gradient not finite on rank 1, update skipped (pairs [" in done.err
    assert updates_made(run, LAST) == LAST - 2
    figure("T5", f"NaN on rank 1 at 2 of {LAST} steps: {LAST - 2} updates, rank and pairs logged")


def test_T5_too_much_that_is_not_finite_on_one_rank_ends_all_with_whole_checkpoints(
    straight: Straight, tmp_path: Path, figure: Figure
) -> None:
    config, _ = straight
    run = tmp_path / "run"
    done = train(forked(2), config, "--out", run, RANKS_FAULT="nan 1 12 13 14")
    assert done.statuses == [2, 2], done.err
    assert "error: rank 0: step 14: training diverged: 3 updates in a row had a non-finite loss or gradient" in done.err
    checkpoints = list_checkpoints(run / "checkpoints")
    assert updates_made(run, 10) == 10
    not_finite = 0
    for path in checkpoints:
        for name in ("model", "optimizer", "ema"):
            tensors = read_weights(path / f"{name}.safetensors").values()
            not_finite += sum(not tensor.isfinite().all() for tensor in tensors)
    assert not_finite == 0
    figure("T5", f"NaN on rank 1, 3 steps in a row: all end at step 14; {not_finite} tensors saved are not finite")


def updates_made(run: Path, step: int) -> int:
    """As Adam counted them."""
    tensors = read_weights(run / f"checkpoints/step_{step:08d}/optimizer.safetensors")
    (count,) = {int(tensor) for name, tensor in tensors.items() if name.startswith("step.")}
    return count


GONE = "error: rank 0: rank 1 disappeared without an error (killed, perhaps out of memory, stopped, or its machine"
FAILURES = {
    "raise": ([2, 1], "error: rank 0: rank 1 failed: ValueError: an error that nobody foresaw; to resume"),
    "memory": ([2, 2], "error: rank 0: rank 1 failed: OutOfMemoryError: CUDA out of memory"),
    "exit": ([2, 0], GONE),
    "kill": ([2, -signal.SIGKILL], GONE),
    "stop": ([2, -signal.SIGKILL], GONE),
}


@pytest.mark.parametrize(
    "what", ["raise", *(pytest.param(w, marks=pytest.mark.faults) for w in ("memory", "exit", "kill", "stop"))]
)
def test_T6_when_one_rank_fails_or_disappears_no_other_waits_for_it(
    what: str, straight: Straight, started: Any, tmp_path: Path, figure: Figure
) -> None:
    """Without torchrun, which would end the others by itself."""
    config, _ = straight
    run = tmp_path / "run"
    process = started(forked(2), "train", config, "--out", run, RANKS_FAULT=f"{what} 1 12")
    wait_for_step(run, 10, process)
    began = time.monotonic()
    wait_until(lambda: {status_of(pid) for pid in descendants(process.pid)} <= {psutil.STATUS_STOPPED, None})
    seconds = time.monotonic() - began
    for pid in descendants(process.pid):  # the one that was stopped
        with_kill(pid)
    done = ended(process)
    statuses, message = FAILURES[what]
    assert done.statuses == statuses, done.err
    assert message in done.err
    assert "rerun the same command with --resume" in done.err
    assert ("This was rank 1 of 2." in done.err) == (what == "raise")
    assert ("error: rank 1: out of memory; to resume" in done.err) == (what == "memory")
    assert [int(path.name[5:]) for path in list_checkpoints(run / "checkpoints")][-1] == 10
    figure("T6", f"rank 1: {what}; rank 0 ended {seconds:.1f} s later at most, naming it")


def test_T6_a_rank_killed_under_torchrun_starts_again_with_the_others_and_nothing_differs(
    straight: Straight, tmp_path: Path, figure: Figure
) -> None:
    config, want = straight
    run, ids = tmp_path / "run", tmp_path / "ids"
    done = train(torchrun(restarts=1), config, "--out", run, RANKS_FAULT="kill 1 13", RANKS_IDS=str(ids))
    assert (done.status, done.out) == (0, [str(run)]), done.err
    assert "restarted by torchrun: resuming from the last checkpoint, as with --resume" in done.err
    assert "resuming at step 10" in done.err
    assert outcome(run) == want
    assert_nothing_twice(run)
    each_pair_once_an_epoch(ids)
    figure("T6", "kill -9 of rank 1 under torchrun --max-restarts 1: sha256 equal to the uninterrupted run")


@pytest.mark.faults
def test_T6_a_restart_before_the_first_checkpoint_begins_anew_and_nothing_differs(
    straight: Straight, tmp_path: Path
) -> None:
    config, want = straight
    run = tmp_path / "run"
    done = train(torchrun(restarts=1), config, "--out", run, RANKS_FAULT="raise 0 3")
    assert (done.status, done.out) == (0, [str(run)]), done.err
    assert "restarted by torchrun before the first checkpoint: starting over" in done.err
    assert outcome(run) == want
    assert_nothing_twice(run)


@pytest.mark.faults
def test_T6_no_process_outlives_torchrun(straight: Straight, started: Any, tmp_path: Path, figure: Figure) -> None:
    config, want = straight
    run = tmp_path / "run"
    process = started(torchrun(), "train", config, "--out", run, RANKS_SLEEP="0.3")
    wait_for_step(run, 5, process)
    pids = descendants(process.pid)
    assert len(pids) >= 2
    process.kill()
    killed = time.monotonic()
    wait_until(lambda: not alive(pids))
    seconds = time.monotonic() - killed
    process.communicate()
    assert train(forked(2), "--out", run, "--resume").statuses == [0, 0]
    assert outcome(run) == want
    figure("T6", f"kill -9 of torchrun: 0 orphans after {seconds:.1f} s, resumed identical")


@pytest.mark.faults
def test_T6_a_machine_that_is_lost_ends_the_others(
    straight: Straight, started: Any, tmp_path: Path, figure: Figure
) -> None:
    config, want = straight
    run = tmp_path / "run"
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port = found.getsockname()[1]
    machine = one_of_two_machines(port)
    machines = [started(machine, "train", config, "--out", run, RANKS_SLEEP="0.3") for _ in range(2)]
    wait_for_step(run, 5, machines[0])
    ranks = {psutil.Process(pid).environ()["RANK"]: pid for each in machines for pid in descendants(each.pid)}
    lost, left = sorted(machines, key=lambda each: ranks["1"] not in descendants(each.pid))
    for pid in (lost.pid, ranks["1"]):
        with_kill(pid)
    killed = time.monotonic()
    done = ended(left)
    seconds = time.monotonic() - killed
    assert done.status == 1
    assert "error: rank 0: rank 1 disappeared without an error" in done.err
    assert train(forked(2), "--out", run, "--resume").statuses == [0, 0]
    assert outcome(run) == want
    figure("T6", f"one of two torchruns killed with its rank: the other ended {seconds:.1f} s later, resumed identical")


@pytest.mark.faults
def test_T6_ranks_whose_weights_have_drifted_apart_end_before_anything_is_saved(
    straight: Straight, tmp_path: Path
) -> None:
    config, _ = straight
    run = tmp_path / "run"
    done = train(forked(2), config, "--out", run, RANKS_FAULT="drift 1 8")
    assert done.statuses == [2, 2], done.err
    assert "error: rank 0: the weights of rank 1 differ from those of rank 0" in done.err
    assert [path.name for path in list_checkpoints(run / "checkpoints")] == ["step_00000005"]


def test_T8_one_process_takes_up_the_run_of_two_and_no_pair_is_lost_or_repeated(
    straight: Straight, tmp_path: Path, figure: Figure
) -> None:
    config, _ = straight
    run, ids = tmp_path / "run", tmp_path / "ids"
    train(forked(2), config, "--out", run, "--set", "train.max_steps=7", RANKS_IDS=str(ids))
    done = train(forked(1), "--out", run, "--resume", "--set", "train.max_steps=19", RANKS_IDS=str(ids))
    assert "made by 2 ranks, now there are 1: no pair is lost or repeated, but dropout masks differ" in done.err
    done = train(forked(2), "--out", run, "--resume", "--set", "train.max_steps=23", RANKS_IDS=str(ids))
    assert "made by 1 ranks, now there are 2" in done.err
    assert done.statuses == [0, 0], done.err
    batches = batches_of(ids)
    assert [len(batches[step]) for step in (7, 8, 19, 20, 23)] == [2, 1, 1, 2, 2]
    n_epochs = each_pair_once_an_epoch(ids)
    assert n_epochs >= 2
    figure("T8", f"2 -> 1 -> 2 ranks: {n_epochs} epochs, each of 400 pairs once in each")
