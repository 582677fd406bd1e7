"""Training that is killed, stopped, runs out of disk, or finds its files changed: rows T1 to T4 and T7, one process."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from amounts import amounts

import dragoman
from dragoman.data.store import Store
from dragoman.errors import BundleError, DataError
from dragoman.files import check_sealed
from dragoman.training.checkpoint import latest_checkpoint, list_checkpoints, step_of
from limits import LONG_S, wait_until
from outcomes import assert_nothing_twice, outcome, read_log, start_slowly, wait_for_step, write_config
from processes import start_code, start_script

FAILPOINTS = Path(__file__).with_name("failpoints.py")
Tiny = Callable[..., dict[str, Any]]
Figure = Callable[[str, str], None]
LAST = 30

SAVES = [  # points inside the writing of a checkpoint, of the best weights and of the bundle; each is met once a save
    "save .step.tmp/model.safetensors", "save .step.tmp/optimizer.safetensors:2", "write .step.tmp/state.json",
    "fsync .step.tmp/ema.safetensors", "write .step.tmp/.manifest.json.tmp:2", "replace .step.tmp/manifest.json",
    "rename step", "fsync checkpoints", "rmtree .step.tmp:2", "write log.jsonl:3",
]  # fmt: skip
AT_THE_END = ["save .bundle.tmp/model.safetensors", "rename bundle"]


def failpoints(*args: object) -> Any:
    process = start_script(FAILPOINTS, *args)
    out, err = process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny) -> tuple[Path, dict[str, Any]]:
    """A configuration file, and how it ends without interruption."""
    folder = tmp_path_factory.mktemp("ended")
    config = write_config(folder / "config.yaml", tiny(max_steps=LAST, ema=0.9))
    dragoman.train(config, out=folder / "run", quiet=True)
    return config, outcome(folder / "run")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny) -> tuple[Path, dict[str, Any]]:
    """A run stopped at step 60, whose next validation is its best, and how it ends at step 70 without interruption."""
    folder = tmp_path_factory.mktemp("stopped")
    mapping = tiny(max_steps=70, ema=0.9)
    mapping["model"]["dropout"] = 0.0
    config = dragoman.Config.from_mapping(mapping)
    dragoman.train(config, out=folder / "straight", quiet=True)
    dragoman.train(config, out=folder / "stopped", overrides=["train.max_steps=60"], quiet=True)
    return folder / "stopped", outcome(folder / "straight")


# --- T1 ---------------------------------------------------------------------------------------------------------------


def steps_seen(ids: Path) -> dict[int, list[int]]:
    """The pairs of each step, as it was done last: what was done after the last save counts for nothing."""
    lines = ids.read_text(encoding="utf-8").split("\n")
    return {event["step"]: event["ids"] for event in map(json.loads, filter(None, lines))}


@amounts(5, 20)
def test_T1_a_run_killed_again_and_again_ends_where_the_uninterrupted_one_does(
    n: int, tiny: Tiny, tmp_path: Path, figure: Figure
) -> None:
    last = 40 if n < 20 else 100
    config = write_config(tmp_path / "config.yaml", tiny(max_steps=last, save_every=2, validate_every=4, ema=0.9))
    for name in ("straight", "killed"):
        dragoman.train(config, out=tmp_path / name, overrides=["train.max_steps=4"], quiet=True)
    ids = {name: tmp_path / f"{name}.ids" for name in ("straight", "killed")}
    failpoints("chain", tmp_path / "straight", last, ids["straight"])
    chance = random.Random(7)
    points = [*SAVES, *(f"after {chance.uniform(0.02, 0.25):.3f}" for _ in range(20 - len(SAVES) - len(AT_THE_END)))]
    chance.shuffle(points)
    points = [*points[: n - len(AT_THE_END)], *AT_THE_END]
    found = failpoints("chain", tmp_path / "killed", last, ids["killed"], *points)
    assert [facts["died"] for facts in found] == [*[-signal.SIGKILL] * n, 0], found
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "straight")
    assert_nothing_twice(tmp_path / "killed")
    assert not list((tmp_path / "killed").rglob(".*")), "what the dead processes left half-written is gone"
    seen = steps_seen(ids["killed"])
    assert seen == steps_seen(ids["straight"])
    assert sorted(seen) == list(range(5, last + 1))
    n_epochs = each_pair_once_an_epoch(seen, tmp_path / "killed")
    inside = sum(not point.startswith("after") for point in points)
    assert inside >= min(n, 5) - 2
    figure(
        "T1", f"{n} kills, {inside} of them inside a save: all tensors sha256-equal, {n_epochs} epochs, each pair once"
    )


def each_pair_once_an_epoch(seen: dict[int, list[int]], run: Path) -> int:
    """Check whole epochs after the first; returns how many."""
    n_pairs = len(Store.open(run / "store/train"))
    everything = [i for step in sorted(seen) for i in seen[step]]
    first = next(i for i in range(n_pairs) if set(everything[i : i + n_pairs]) == set(range(n_pairs)))
    epochs = [everything[i : i + n_pairs] for i in range(first, len(everything) - n_pairs + 1, n_pairs)]
    assert len(epochs) >= 2
    for epoch in epochs:
        assert sorted(epoch) == list(range(n_pairs))
    return len(epochs)


@pytest.mark.parametrize("counts", [[26, 33, 63], pytest.param([], marks=pytest.mark.faults)])
def test_T1_a_run_killed_at_any_operation_goes_on_exactly(
    counts: Sequence[int], stopped: Any, tmp_path: Path, figure: Figure
) -> None:
    run, want = stopped
    found = failpoints("each", "kill", run, tmp_path, 70, *counts)
    for count, facts in found.items():
        assert facts["died"] in (-signal.SIGKILL, 0), facts
        assert facts["went_on"] == [0, ""], facts
        assert facts["whole"][-1] >= "step_00000060", facts
        assert facts["bundle"], facts
        assert outcome(tmp_path / f"kill-{count}") == want, facts
        assert_nothing_twice(tmp_path / f"kill-{count}")
        assert not list((tmp_path / f"kill-{count}").rglob(".*")), facts
    killed = [facts for facts in found.values() if facts["died"]]
    assert len(killed) >= 3
    assert sum(bool(facts["half"]) for facts in killed) >= 2
    figure("T1", f"killed at {len(killed)} operations while saving, one by one: all equal, bundle always loadable")


# --- T2 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_T2_a_signal_saves_says_how_to_go_on_and_the_resumed_run_equals_the_uninterrupted_one(
    number: signal.Signals, ended: Any, tmp_path: Path, figure: Figure
) -> None:
    config, want = ended
    run = tmp_path / "run"
    process = start_slowly(config, "--out", run)
    wait_for_step(run, 5, process)
    process.send_signal(number)
    asked = time.monotonic()
    out, err = process.communicate(timeout=LONG_S)
    seconds = time.monotonic() - asked
    assert process.returncode == 128 + number
    assert out == b""  # no bundle, so no run to go on with in a pipe
    last = step_of(latest_checkpoint(run / "checkpoints"))
    assert 5 <= last < LAST
    assert f"stopped at step {last}, saved. To resume: dragoman train --out {run} --resume" in err.decode()
    assert not (run / "bundle").exists()
    dragoman.train(out=run, resume=True, quiet=True)
    assert outcome(run) == want
    assert_nothing_twice(run)
    figure("T2", f"{number.name}: saved and ended with {128 + number} in {seconds:.2f} s; resumed: equal")


def test_T2_a_second_signal_ends_the_process_at_once(ended: Any, tmp_path: Path, figure: Figure) -> None:
    config, _ = ended
    script = """
import signal, sys, time, dragoman.training.run
from dragoman.training import loop
def slow(*args):
    handler = signal.getsignal(signal.SIGTERM)
    def noted(*which):
        handler(*which)
        print("asked to stop", flush=True)
    signal.signal(signal.SIGTERM, noted)
    print("in a step", flush=True)
    time.sleep(600)
loop.train_step = slow
dragoman.training.run.train(sys.argv[1], out=sys.argv[2])
"""
    process = start_code(script, config, tmp_path / "run")
    for said in (b"in a step\n", b"in a step\nasked to stop\n"):
        wait_until(lambda said=said: process.output == said or process.poll() is not None)
        process.send_signal(signal.SIGTERM)  # the second while the step is being finished
    asked = time.monotonic()
    assert process.wait(LONG_S) == -signal.SIGTERM, process.errors
    figure("T2", f"a second SIGTERM in the middle of a step: ended after {time.monotonic() - asked:.2f} s")


# --- T3 ---------------------------------------------------------------------------------------------------------------

FULL = re.compile(r"^/\S+: cannot be written \(.*No space left on device.*\); (about [\d,]+ bytes are needed, )?"
                  r"[\d,]+ bytes are free; free some space or choose another folder$")  # fmt: skip


@pytest.mark.parametrize("counts", [[14, 26, 31, 63], pytest.param([], marks=pytest.mark.faults)])
def test_T3_a_disk_that_is_full_at_any_operation_leaves_the_checkpoint_and_the_bundle_before(
    counts: Sequence[int], stopped: Any, tmp_path: Path, figure: Figure
) -> None:
    run, want = stopped
    found = failpoints("each", "fail", run, tmp_path, 70, *counts)
    goes_on = [count for count, facts in found.items() if facts["died"] == 0]
    # A file stands in its place, whole, and its new name is not flushed: a warning says so.
    assert [found[count]["at"] for count in goes_on] == [f"fsync fail-{count}" for count in goes_on]
    assert len(goes_on) == (0 if counts else 2)
    for count, name in zip(goes_on, ("log.jsonl", "samples.txt"), strict=False):  # which are cut
        said = f"/{name}: written, but perhaps not safe from a power failure: No space left on device"
        assert found[count]["message"].endswith(said)
    for count, facts in found.items():
        if count not in goes_on:
            assert facts["died"] == 2, facts
            assert FULL.match(facts["message"]), facts
        if count not in goes_on and re.search(r"\.(step|best|bundle)\.tmp|rename", facts["at"]):
            assert re.search(r"/(step_00000070|best|bundle): .*about [\d,]{7} bytes are needed", facts["message"]), (
                facts
            )
        assert facts["whole"], facts
        assert facts["bundle"], facts
        assert facts["went_on"] == [0, ""], facts
        assert outcome(tmp_path / f"fail-{count}") == want, facts
    if not counts:
        assert len(found) > 60
        assert {"rename .best.old", "rename best", "rename .bundle.old", "rename step", "write log.jsonl"} < {
            facts["at"] for facts in found.values()
        }
    figure(
        "T3", f"disk full at each of {len(found)} operations: 100% leave checkpoint and bundle loadable, resumed equal"
    )


CAN_MOUNT = shutil.which("unshare") and not subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode


@pytest.mark.skipif(not CAN_MOUNT, reason="needs user namespaces, to mount a small file system")
def test_T3_a_disk_that_is_really_full_is_told_and_the_run_goes_on_when_there_is_room(
    tiny: Tiny, tmp_path: Path, figure: Figure
) -> None:
    config = write_config(tmp_path / "config.yaml", tiny(max_steps=60, save_every=5, average=20, ema=0.9))
    dragoman.train(config, out=tmp_path / "straight", quiet=True)
    script = """
import json, shutil, subprocess, sys
from pathlib import Path
import dragoman
from dragoman.cli import main
from dragoman.training.checkpoint import whole_checkpoints
config, folder = sys.argv[1:]
sys.argv = ["dragoman", "train", config, "--out", "/mnt/run", "--quiet"]
try:
    status = main()
except SystemExit as end:
    status = end.code
whole = [path.name for path in whole_checkpoints(Path("/mnt/run/checkpoints"), 60)]
rest = [path.name for path in Path("/mnt/run").rglob(".*")]
subprocess.run(["mount", "-o", "remount,size=64m", "/mnt"], check=True)
dragoman.train(out="/mnt/run", resume=True, quiet=True)
shutil.copytree("/mnt/run", folder)
print(json.dumps([status, whole, rest]))
"""
    command = f'mount -t tmpfs -o size=8m none /mnt && exec "{sys.executable}" -c "$SCRIPT" "$@"'
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", command, "x", str(config), str(tmp_path / "run")],
        env={**os.environ, "SCRIPT": script}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    status, whole, rest = json.loads(done.stdout)
    assert (status, rest) == (2, [])
    assert len(whole) >= 2
    said = done.stderr.strip().removeprefix("error: ")
    assert FULL.match(said), done.stderr
    assert re.match(r"/mnt/run/checkpoints/step_000000\d\d: .*about [\d,]{7} bytes are needed", said)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "straight")
    figure("T3", f"a file system of 8 MiB: full after {len(whole)} checkpoints, all whole; with room resumed: equal")


# --- T4 ---------------------------------------------------------------------------------------------------------------


@amounts(100, 1000)
def test_T4_every_damage_of_a_checkpoint_is_noticed_and_the_one_before_is_taken(
    n: int, tiny: Tiny, tmp_path: Path, figure: Figure, caplog: pytest.LogCaptureFixture
) -> None:
    mapping = tiny(max_steps=20, average=2, ema=0.9)
    mapping["model"] |= {"d_model": 4, "d_ff": 4}
    run = dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True).run
    before, newest = list_checkpoints(run / "checkpoints")
    files = sorted(newest.iterdir())
    assert len(files) == 6
    contents = [file.read_bytes() for file in files]
    chance = random.Random(0)

    def is_noticed(file: Path, content: bytes | None) -> None:
        whole = file.read_bytes()
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        caplog.clear()
        assert latest_checkpoint(run / "checkpoints") == before
        assert newest.name in caplog.text
        assert "falling back to the previous checkpoint" in caplog.text
        file.write_bytes(whole)

    for _ in range(n):  # places spread evenly over all bytes of the checkpoint, but at least one in ten in small files
        i = chance.choices(range(6), [max(len(content), sum(map(len, contents)) // 10) for content in contents])[0]
        place, bit = chance.randrange(len(contents[i])), 1 << chance.randrange(8)
        is_noticed(files[i], contents[i][:place] + bytes([contents[i][place] ^ bit]) + contents[i][place + 1 :])
    for _ in range(n // 5):
        i = chance.randrange(6)
        is_noticed(files[i], contents[i][: chance.randrange(len(contents[i]) - 1)])
    for file in files:
        is_noticed(file, None)
    assert latest_checkpoint(run / "checkpoints") == newest
    figure("T4", f"{n} bit flips, {n // 5} truncations, {len(files)} missing files: 100% noticed, the one before taken")


def test_T4_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(
    tiny: Tiny, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    dragoman.train(dragoman.Config.from_mapping(tiny(max_steps=30, average=3)), out=run, quiet=True)
    want = outcome(run)
    damaged = run / "checkpoints/step_00000030/optimizer.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    caplog.clear()
    dragoman.train(out=run, resume=True)
    assert f"{damaged}: damaged" in caplog.text
    assert "resuming at step 20" in capsys.readouterr().err
    assert outcome(run) == want


# --- T7 ---------------------------------------------------------------------------------------------------------------


def flipped(path: Path) -> bytes:
    """The content, with one bit changed in the middle."""
    content = path.read_bytes()
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_T7_one_changed_byte_of_the_data_is_refused_by_name_before_a_run_is_resumed(
    process: Callable[..., Any], tiny: Tiny, make_corpus: Callable[..., Any], tmp_path: Path, figure: Figure,
    capsys: pytest.CaptureFixture[str], listing: Callable[[Path], list[str]],
) -> None:  # fmt: skip
    mapping = tiny(make_corpus(tmp_path), max_steps=20)
    mapping["data"]["tokenizer"]["sampling"] = 0.1  # so that the text is stored too
    config = dragoman.Config.from_mapping(mapping)
    dragoman.train(config, out=tmp_path / "straight", quiet=True)
    run = tmp_path / "run"
    dragoman.train(config, out=run, overrides=["train.max_steps=10"], quiet=True)
    more = ["train.max_steps=20"]
    texts = sorted(tmp_path.glob("*.[ed][ne]"))
    # prepared.json serves a run without a checkpoint alone.
    stored = sorted(path for path in (run / "store").rglob("*") if path.is_file() and path.name != "prepared.json")
    assert (len(texts), len(stored)) == (4, 19)
    before = listing(run)
    for path in (*texts, *stored):
        whole = path.read_bytes()
        path.write_bytes(flipped(path))
        with pytest.raises((DataError, BundleError), match=re.escape(str(path.relative_to(tmp_path)))):
            dragoman.train(out=run, resume=True, overrides=more, quiet=True)
        if path in stored:
            with pytest.raises((DataError, BundleError), match=re.escape(path.name)):
                dragoman.train(out=run, resume=True, overrides=more, accept_changed_text=True, quiet=True)
        path.write_bytes(whole)
    assert listing(run) == before
    texts[0].write_bytes(flipped(texts[0]))
    done = process("train", "--out", run, "--resume", "--set", *more)
    assert done.status == 2
    assert f"{texts[0]} has changed since {run} began" in done.error
    assert "--accept-changed-text" in done.error
    done = process("train", "--out", run, "--resume", "--set", *more, "--accept-changed-text")
    assert done.status == 0, done.err
    assert f"{texts[0]} has changed; continuing with the data prepared from the old text" in done.err
    assert outcome(run) == outcome(tmp_path / "straight")
    figure(
        "T7", f"one bit changed in each of {len(texts)} text files and {len(stored)} files of the store: 100% refused"
    )


# --- two processes, one run -------------------------------------------------------------------------------------------


def test_a_second_process_is_refused_while_one_trains_and_a_killed_one_leaves_no_lock(
    command: Callable[..., Any], ended: Any, tmp_path: Path
) -> None:
    config, want = ended
    run = tmp_path / "run"
    process = start_slowly(config, "--out", run, "--quiet")
    wait_for_step(run, 15, process)  # by then the checkpoint of step 10 is whole
    for args in (["--resume"], [config]):
        done = command("train", *args, "--out", run)
        assert done.status == 2
        assert re.search(rf"{run}: process {process.pid} on \S+ is training there; wait for it, stop it", done.error)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert (run / "lock").exists()
    assert max(event["step"] for event in read_log_so_far(run)) < LAST
    dragoman.train(out=run, resume=True, quiet=True)
    assert not (run / "lock").exists()
    assert outcome(run) == want
    assert max(event["step"] for event in read_log(run)) == LAST


def read_log_so_far(run: Path) -> list[dict[str, Any]]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.endswith("}")]


def test_a_build_that_was_killed_is_cleared_away_by_the_next_try(
    tiny: Tiny, tmp_path: Path, listing: Callable[[Path], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "run/store"
    for name in (".train.0123abcd.tmp", ".valid.0123abcd.tmp"):
        (store / name).mkdir(parents=True)
        (store / name / "src.ids").write_bytes(bytes(99))
    (store / "src.spm").write_bytes(b"of other subwords")
    (tmp_path / "run/lock").write_text("process 1 on elsewhere\n", encoding="utf-8")
    caplog.set_level(logging.WARNING)
    run = dragoman.train(dragoman.Config.from_mapping(tiny(max_steps=5)), out=tmp_path / "run", quiet=True).run
    assert sorted(path.name for path in store.iterdir()) == ["joint.spm", "prepared.json", "train", "valid"]
    assert not any(name.endswith("lock") or "tmp" in name for name in listing(run))
    check_sealed(run / "bundle", "bundle")
