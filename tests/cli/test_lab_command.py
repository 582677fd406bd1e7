"""``dragoman lab``: the list, the refusals, and one experiment to its end."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.lab import EXPERIMENTS, runs

Command = Callable[..., Any]


def test_without_a_name_the_experiments_are_listed(command: Command) -> None:
    done = command("lab")
    assert done.status == 0
    lines = done.out.decode().splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    "option", [["--quick"], ["--run", "demo"], ["--out", "x"], ["--config", "x.yaml"], ["--threads", "1"]], ids=str
)
def test_options_of_running_are_refused_for_the_list(command: Command, option: list[str]) -> None:
    done = command("lab", *option)
    assert (done.status, done.out) == (2, b"")
    assert done.error == "error: only --lang has an effect on the list of experiments: name one to run, or all"


def test_an_unknown_experiment_is_refused_with_the_names(command: Command, tmp_path: Path) -> None:
    done = command("lab", "scalling", cwd=tmp_path)
    assert done.status == 2
    assert "'scalling'" in done.error
    assert all(name in done.error for name in EXPERIMENTS)
    assert list(tmp_path.iterdir()) == []


def test_options_without_use_and_folders_that_cannot_be_are_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "no use for --run" in command("lab", "scaling", "--quick", "--run", tmp_path, cwd=tmp_path).error
    assert "file" in command("lab", "scaling", "--quick", "--out", tmp_path / "file", cwd=tmp_path).error
    assert "no such file" in command("lab", "scaling", "--config", tmp_path / "none.yaml", cwd=tmp_path).error


@pytest.mark.parametrize("name", ["heads", "parsing"])
def test_a_configuration_next_to_a_trained_model_is_refused(
    command: Command, tmp_path: Path, tiny_run: Path, name: str
) -> None:
    """It was ignored, and then written into the numbers."""
    config = tiny_run / "config.yaml"
    done = command("lab", name, "--quick", "--run", tiny_run, "--config", config, cwd=tmp_path)
    assert done.status == 2
    assert "--config says what to train, but --run names a trained model: leave out one of them" in done.error


def test_an_experiment_that_a_signal_stops_ends_with_its_number(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(signal=signal.SIGTERM)

    monkeypatch.setattr(runs, "train", stopped)
    done = command("lab", "ablations", "--quick", cwd=tmp_path)
    assert done.status == 128 + signal.SIGTERM
    assert "rerun the experiment to resume" in done.err
    assert "error" not in done.err


def test_a_quick_experiment_leaves_its_page_and_prints_no_verdict_that_it_cannot_make(
    command: Command, tmp_path: Path
) -> None:
    done = command("lab", "scaling", "--quick", cwd=tmp_path)
    assert done.status == 0, done.err
    *verdict, page = done.out.decode().splitlines()
    assert page == "lab-quick/scaling/index.html"
    assert (tmp_path / page).exists()
    assert verdict
    assert all(line.startswith("-----") for line in verdict)
    assert json.loads((tmp_path / "lab-quick/scaling/numbers.json").read_text(encoding="utf-8"))["quick"] is True
