"""Quality: mean and deviation over seeds; a run that is finished is not trained again, one that is not goes on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import quality
from benchmarks.harness.environments import ROOT


def run_with(*values: float) -> dict[str, Any]:
    return {"scores": {name: {"value": value} for name, value in zip(("BLEU", "chrF2"), values, strict=True)}}


def test_over_seeds() -> None:
    found = quality.over_seeds([run_with(40.0, 60.0), run_with(41.0, 60.0), run_with(42.0, 60.0)])
    assert found["BLEU"] == {"mean": 41.0, "deviation": 1.0, "values": [40.0, 41.0, 42.0]}
    assert found["chrF2"]["deviation"] == 0.0
    assert quality.over_seeds([run_with(40.0, 60.0)])["BLEU"]["deviation"] is None


@pytest.mark.parametrize("name", quality.RECIPES)
def test_recipes_are_there(name: str) -> None:
    assert (ROOT / "configs" / quality.RECIPES[name].config).is_file()


def test_a_run_is_begun_resumed_or_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command))
    recipe, run = quality.RECIPES["multi30k-de-en"], tmp_path / "runs/one"
    quality.train(recipe, tmp_path, run, ["train.seed=7"])
    assert "--resume" not in commands[0]
    assert commands[0][commands[0].index("--src") + 1] == str(tmp_path / "train.de")  # swapped
    assert commands[0][-2:] == ["--set", "train.seed=7"]
    run.mkdir()
    (run / "log.jsonl").write_text(json.dumps({"event": "step"}) + "\n", encoding="utf-8")
    quality.train(recipe, tmp_path, run, [])
    assert commands[1][-1] == "--resume"
    (run / "bundle").mkdir()
    (run / "log.jsonl").write_text(json.dumps({"event": "end"}) + "\n", encoding="utf-8")
    quality.train(recipe, tmp_path, run, [])
    assert len(commands) == 2
