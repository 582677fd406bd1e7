"""A run that was stopped or killed, and resumed, ends bit for bit where an uninterrupted one does."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman.files import sealed_folder
from dragoman.training.checkpoint import latest_checkpoint

LAST = 30
FAILPOINTS = Path(__file__).with_name("failpoints.py")
Tiny = Callable[..., dict[str, Any]]

SLOW_TRAIN = [
    sys.executable,
    "-c",
    """
import sys, time
from dragoman.cli import main
from dragoman.training import loop
step = loop.train_step
def slow(*args):  # so that there is time to interrupt it, on a busy machine too
    time.sleep(0.05)
    return step(*args)
loop.train_step = slow
main()
""",
    "train",
]

VARIANTS: dict[str, dict[str, Any]] = {
    "moving average": {"ema": 0.9, "average": 0},
    "best of accumulated steps": {"accumulate": 2, "average": 0},
    "average of checkpoints": {"average": 3},
    "sampled subwords": {"average": 0, "ema": 0.8},
}


def write_config(path: Path, mapping: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


def outcome(run: Path) -> dict[str, Any]:
    """All that must be the same: sha256 of every tensor file, the counters, and what was logged when."""
    newest = latest_checkpoint(run / "checkpoints")
    weights = [run / folder / "model.safetensors" for folder in ("checkpoints/best", "bundle")]
    files = [*newest.glob("*.safetensors"), *weights]
    state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
    manifest = json.loads((run / "bundle/manifest.json").read_text(encoding="utf-8"))
    return {
        "files": {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "state": {key: value for key, value in state.items() if key != "seconds"},
        "bundle": {key: value for key, value in manifest.items() if key not in ("files", "sha256")},
        "validations": [
            {key: value for key, value in event.items() if key != "seconds"}
            for event in read_log(run)
            if event["event"] == "validation"
        ],
        "samples": (run / "samples.txt").read_text(encoding="utf-8"),
        "steps reported": sorted({e["step"] for e in read_log(run) if e["event"] == "train" and e["step"] % 5 == 0}),
    }


def read_log(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]


def assert_nothing_twice(run: Path) -> None:
    said = [(event["event"], event["step"]) for event in read_log(run) if event["event"] in ("train", "validation")]
    assert len(said) == len(set(said))
    assert [step for _, step in said] == sorted(step for _, step in said)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """The configuration file of a variant, and how it ends without interruption."""
    known: dict[str, tuple[Path, dict[str, Any]]] = {}
    folder = tmp_path_factory.mktemp("straight")

    def train(variant: str) -> tuple[Path, dict[str, Any]]:
        if variant not in known:
            mapping = tiny(max_steps=LAST, **VARIANTS[variant])
            if variant == "sampled subwords":
                mapping["data"]["tokenizer"]["sampling"] = 0.2
            config = write_config(folder / f"{variant}.yaml", mapping)
            dragoman.train(config, out=folder / variant, quiet=True)
            known[variant] = config, outcome(folder / variant)
        return known[variant]

    return train


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_stopped_by_max_steps_and_resumed_equals_the_uninterrupted_one(
    variant: str, straight: Any, tmp_path: Path
) -> None:
    config, want = straight(variant)
    run = tmp_path / "run"
    first = dragoman.train(config, out=run, overrides=["train.max_steps=20"], quiet=True)
    assert (first.step, first.reason) == (20, "max_steps")
    dragoman.train(out=run, resume=True, overrides=[f"train.max_steps={LAST}"], quiet=True)
    assert outcome(run) == want
    assert_nothing_twice(run)
    again = dragoman.train(out=run, resume=True, quiet=True)  # at its end already: the bundle is written anew, no more
    assert again.step == LAST
    assert outcome(run) == want


def test_the_straight_run_can_be_told_from_others(straight: Any, tmp_path: Path) -> None:
    """So that the comparisons here can fail."""
    config, want = straight("moving average")
    dragoman.train(config, out=tmp_path / "run", overrides=["train.seed=2"], quiet=True)
    assert not set(outcome(tmp_path / "run")["files"].values()) & set(want["files"].values())


def wait_for_step(run: Path, step: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the log tells of ``step``."""
    for _ in range(3000):
        log = run / "log.jsonl"
        if log.is_file() and any(f'"step": {step},' in line for line in log.read_text(encoding="utf-8").split("\n")):
            return
        assert process.poll() is None, "ended too early"
        time.sleep(0.01)
    raise AssertionError("it does not train")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_says_how_to_go_on_and_the_resumed_run_equals_the_uninterrupted_one(
    number: signal.Signals, straight: Any, tmp_path: Path
) -> None:
    config, want = straight("moving average")
    run = tmp_path / "run"
    process = subprocess.Popen(
        [*SLOW_TRAIN, str(config), "--out", str(run)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for_step(run, 5, process)
    process.send_signal(number)
    asked = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - asked < 10
    assert process.returncode == 128 + number
    assert out == b""  # no bundle, so no run to go on with in a pipe
    stopped = int(latest_checkpoint(run / "checkpoints").name[5:])
    assert 5 <= stopped < LAST
    assert f"stopped at step {stopped}, saved. Go on: dragoman train --out {run} --resume" in err.decode()
    assert not (run / "bundle").exists()
    dragoman.train(out=run, resume=True, quiet=True)
    assert outcome(run) == want
    assert_nothing_twice(run)


def test_a_second_signal_ends_the_process_at_once(straight: Any, tmp_path: Path) -> None:
    config, _ = straight("moving average")
    script = """
import sys, time, dragoman.api
from dragoman.training import loop
step = loop.train_step
def slow(*args):
    print("in a step", flush=True)
    time.sleep(60)
    return step(*args)
loop.train_step = slow
dragoman.api.train(sys.argv[1], out=sys.argv[2])
"""
    command = [sys.executable, "-c", script, str(config), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in a step\n"
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert process.poll() is None  # the step is being finished
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == -signal.SIGTERM


def test_a_run_killed_at_any_moment_and_resumed_equals_the_uninterrupted_one(straight: Any, tmp_path: Path) -> None:
    config, want = straight("moving average")
    run = tmp_path / "run"
    process = subprocess.Popen([*SLOW_TRAIN, str(config), "--out", str(run), "--quiet"], stdout=subprocess.DEVNULL)
    wait_for_step(run, 10, process)
    time.sleep(0.1 + 0.5 * random.Random(os.environ.get("DRAGOMAN_KILL_SEED", "7")).random())
    process.kill()
    process.wait()
    assert 10 <= max(event["step"] for event in read_log_so_far(run)) < LAST
    dragoman.train(out=run, resume=True, quiet=True)
    assert outcome(run) == want
    assert_nothing_twice(run)


def read_log_so_far(run: Path) -> list[dict[str, Any]]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.endswith("}")]


@pytest.mark.parametrize(
    "counts",
    [
        # a checkpoint takes ten flushes and renamings, "best" five, the bundle eight: inside and between them
        pytest.param([4, 9, 13, 19, 26], id="some"),
        pytest.param(range(1, 40), id="all", marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_while_it_writes_and_resumed_equals_the_uninterrupted_one(
    counts: Sequence[int], tiny: Tiny, tmp_path: Path
) -> None:
    config = write_config(tmp_path / "config.yaml", tiny(max_steps=20, save_every=5, ema=0.9))
    dragoman.train(config, out=tmp_path / "straight", quiet=True)
    want = outcome(tmp_path / "straight")
    dragoman.train(config, out=tmp_path / "stopped", overrides=["train.max_steps=10"], quiet=True)
    command = [sys.executable, str(FAILPOINTS), str(tmp_path / "stopped"), str(tmp_path), "20", *map(str, counts)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for count, facts in found.items():
        run = tmp_path / count
        assert facts["died"] in (-signal.SIGKILL, 0), (count, facts, done.stderr)
        assert facts["went_on"] == 0, (count, facts, done.stderr)
        assert facts["whole"][-1] >= "step_00000010", (count, facts)
        assert outcome(run) == want, count
        assert_nothing_twice(run)
        assert not list(run.rglob(".*")), "what the dead process left half-written is gone"
    deaths = [facts for facts in found.values() if facts["died"]]
    assert len(deaths) >= 5
    assert sum(bool(facts["half"]) for facts in deaths) >= 3


@pytest.mark.parametrize("how", ["damaged", "of another step"])
def test_best_weights_that_are_not_what_they_were_are_never_put_into_a_bundle(
    how: str, straight: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, _ = straight("best of accumulated steps")
    run = tmp_path / "run"
    dragoman.train(config, out=run, overrides=["train.max_steps=10"], quiet=True)
    best = run / "checkpoints/best"
    weights = best / "model.safetensors"
    content = weights.read_bytes()
    if how == "damaged":
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:  # as when a later validation was the best, and the run went back to before it
        with sealed_folder(best, {"step": 11, "bleu": 50.0}) as aside:
            (aside / "model.safetensors").write_bytes(content)
    dragoman.train(out=run, resume=True, quiet=True)
    assert "taking the last weights" in caplog.text
    manifest = json.loads((run / "bundle/manifest.json").read_text(encoding="utf-8"))
    assert manifest["weights"] == "last, step 10"


def test_a_damaged_newest_checkpoint_costs_only_the_steps_since_the_one_before(
    straight: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    config, want = straight("average of checkpoints")
    run = tmp_path / "run"
    dragoman.train(config, out=run, overrides=["train.max_steps=30"], quiet=True)
    damaged = run / "checkpoints/step_00000030/optimizer.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    caplog.clear()
    dragoman.train(out=run, resume=True, overrides=[f"train.max_steps={LAST}"])
    assert f"{damaged}: damaged" in caplog.text
    assert "resuming at step 20" in capsys.readouterr().err
    assert outcome(run) == want
