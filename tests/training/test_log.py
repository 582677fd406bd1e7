"""The log of a run, and what people read of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.training.log import RunLog


def test_each_event_is_one_line_of_json(tmp_path: Path) -> None:
    with RunLog(tmp_path, quiet=True) as log:
        log.event("train", 3, loss=1.5, note="ü")
        log.event("end", 4)
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines[:-1]] == [
        {"event": "train", "step": 3, "loss": 1.5, "note": "ü"},
        {"event": "end", "step": 4},
    ]


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with RunLog(tmp_path, tensorboard=True, quiet=True) as log:
        for step in (1, 2):
            log.event("train", step, loss=1.5 * step, best=True, words="no number")
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert events.Tags()["scalars"] == ["train/loss"]
    assert [(e.step, e.value) for e in events.Scalars("train/loss")] == [(1, 1.5), (2, 3.0)]


def test_a_line_that_a_crash_cut_inside_a_character_is_dropped_on_resuming(tmp_path: Path) -> None:
    with RunLog(tmp_path, quiet=True) as log:
        log.event("validation", 1, hyp="这")
        log.samples("step 1\n    hyp: 这\n")
    for name in ("log.jsonl", "samples.txt"):
        with (tmp_path / name).open("ab") as file:
            file.write('{"event": "train", "step": 1, "hyp": "那'.encode()[:-1])
    with RunLog(tmp_path, quiet=True) as log:
        log.forget_after(1)
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["hyp"] for line in lines if line] == ["这"]


def test_an_error_is_printed_by_a_quiet_log_too_but_by_one_rank_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path, None):  # None: a rank other than 0
        with RunLog(folder, quiet=True) as log:
            log.say("progress")
            log.error("it diverged")
    assert capsys.readouterr().err == "error: it diverged\n"
