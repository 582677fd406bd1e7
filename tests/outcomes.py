"""What must be the same of two runs that did the same, and a slow training to interrupt."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml

from dragoman.cli import main
from dragoman.training import loop
from dragoman.training.checkpoint import latest_checkpoint
from limits import wait_until
from processes import Forked


def slow_train() -> None:
    """``dragoman train``, slowed down: so that there is time to interrupt it, on a busy machine too."""
    step = loop.train_step

    def slow(*args: Any) -> Any:
        time.sleep(0.05)
        return step(*args)

    loop.train_step = slow
    main()


def start_slowly(*args: Any) -> Forked:
    """Start ``slow_train`` in a process of its own."""
    return Forked(slow_train, ["dragoman", "train", *map(str, args)])


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


def wait_for_step(run: Path, step: int, process: subprocess.Popen[bytes] | Forked) -> None:
    """Wait until the log tells of ``step``."""
    log = run / "log.jsonl"

    def is_told() -> bool:
        told = log.is_file() and f'"step": {step},' in log.read_text(encoding="utf-8")
        assert told or process.poll() is None, "ended too early"
        return told

    wait_until(is_told)
