"""The list of runs: states, scores, damaged ones; and that reading a damaged log names its lines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.doctor.run_checks import unfinished
from dragoman.errors import ConfigError
from dragoman.history.summary import summaries, summary_of
from dragoman.locks import locked
from dragoman.training.record import read_log, read_run
from terminals import Terminal

Command = Callable[..., Any]


@pytest.fixture
def folder(tiny_run: Path, tmp_path: Path) -> Path:
    """A folder with runs in every state."""
    for name in ("finished", "stopped", "torn", "broken"):
        shutil.copytree(tiny_run, tmp_path / "runs" / name)
    shutil.rmtree(tmp_path / "runs/stopped/bundle")
    shutil.copytree(tiny_run / "bundle", tmp_path / "runs/of others/imported")
    log = tmp_path / "runs/torn/log.jsonl"
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    (tmp_path / "runs/broken/config.yaml").write_text("data: [", encoding="utf-8")
    return tmp_path


def test_every_run_of_a_folder_is_listed_with_its_state(folder: Path) -> None:
    states = {run.name: run.state for run in summaries(folder / "runs")}
    assert states == {
        "finished": "finished", "stopped": "stopped", "torn": "stopped", "broken": "damaged",
        "of others/imported": "bundle",
    }  # fmt: skip


@pytest.mark.parametrize("reason", ["signal", "steps"])
def test_a_run_that_was_continued_and_has_no_new_bundle_is_stopped(folder: Path, reason: str) -> None:
    run = folder / "runs/finished"
    step = {"step": 300, "loss": 1.0, "tokens": 9000, "seconds": 99.0, "lr": 1e-4}
    with (run / "log.jsonl").open("a", encoding="utf-8") as log:
        for event in ({"event": "train", **step}, {"event": "end", **step, "reason": reason}):
            log.write(json.dumps(event) + "\n")
    assert summary_of(run).state == "stopped"
    named = {"signal": "stopped", "steps": "older-bundle"}[reason]
    assert named in {finding.name for finding in unfinished(read_run(run))}


def test_a_run_behind_a_link_is_listed_and_no_circle_is_walked(folder: Path) -> None:
    (folder / "runs/large").symlink_to(folder / "runs/finished", target_is_directory=True)
    (folder / "runs/of others/circle").symlink_to(folder / "runs", target_is_directory=True)
    names = [run.name for run in summaries(folder / "runs")]
    assert "large" in names
    assert len(names) == 6


def test_facts_of_a_run_are_those_of_its_log(folder: Path) -> None:
    run = summary_of(folder / "runs/finished")
    events = [json.loads(line) for line in (run.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert run.languages == "en -> de"
    assert run.steps == max(event["step"] for event in events if event["event"] == "train")
    assert run.scores["bleu"] == max(event["bleu"] for event in events if event["event"] == "validation")
    assert run.seconds == next(event["seconds"] for event in events if event["event"] == "end")
    assert run.n_bytes == sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file())
    assert run.problem == ""


def test_a_run_that_a_process_trains_in_says_so(folder: Path) -> None:
    with locked(folder / "runs/finished"):
        assert summary_of(folder / "runs/finished").state == "training"


def test_damaged_lines_of_a_log_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"event": "train", "step": 1, "loss": "nan"}\n\xff\n[]\n\n{"event": "train", "step": 2, "lo')
    events, damaged = read_log(path)
    assert [event["step"] for event in events] == [1]
    assert damaged == (2, 3, 5)


def test_the_command_prints_a_row_for_each_run_and_names_what_is_damaged(command: Command, folder: Path) -> None:
    done = command("runs", cwd=folder)
    assert done.status == 0
    head, *rows = (line.split("\t") for line in done.out.decode().splitlines())
    assert head == ["run", "languages", "state", "steps", "time", "BLEU", "chrF", "size", "changed"]
    rows = [row for row in rows if row[2] != "ready"]
    assert {row[0] for row in rows} == {"finished", "stopped", "torn", "broken", "of others/imported"}
    n_lines = (folder / "runs/torn/log.jsonl").read_text(encoding="utf-8").count("\n") + 1
    assert f"runs/torn/log.jsonl: line {n_lines} is damaged" in done.err
    assert "runs/broken/config.yaml" in done.err
    listed = [json.loads(line) for line in command("runs", "runs", "--json", cwd=folder).out.splitlines()]
    assert sorted(run["run"] for run in listed) == sorted(row[0] for row in rows)
    assert command("runs", "nowhere", cwd=folder).status == 2
    (folder / "empty").mkdir()
    assert "no runs there" in command("runs", "empty", cwd=folder).error


@pytest.mark.parametrize("columns", [60, 100])
def test_the_list_fits_a_terminal(folder: Path, columns: int) -> None:
    terminal = Terminal("runs", columns=columns, cwd=folder)
    assert terminal.end() == 0
    assert all(len(line) <= columns for line in terminal.screen.lines)
    for name in ("finished", "stopped", "torn", "broken", "of others/imported"):
        assert any(line.startswith(name) for line in terminal.screen.lines)


def test_a_folder_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        summaries(Path("/nowhere"))
