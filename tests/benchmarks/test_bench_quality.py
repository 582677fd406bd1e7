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
    for name in ("train", "val"):
        for side in ("en", "de"):
            (tmp_path / f"{name}.{side}").write_bytes(f"{name} {side}\n".encode())
    quality.train(recipe, tmp_path, run, ["train.seed=7"])
    assert "--resume" not in commands[0]
    assert commands[0][commands[0].index("--src") + 1] == str(tmp_path / "train.de")  # swapped
    assert commands[0][-2:] == ["--set", "train.seed=7"]
    run.mkdir()
    (run / "log.jsonl").write_text(json.dumps({"event": "step"}) + "\n", encoding="utf-8")
    quality.train(recipe, tmp_path, run, ["train.seed=7"])
    assert commands[1][-1] == "--resume"
    (run / "bundle").mkdir()
    (run / "log.jsonl").write_text(json.dumps({"event": "end"}) + "\n", encoding="utf-8")
    quality.train(recipe, tmp_path, run, ["train.seed=7"])
    assert len(commands) == 2
    with pytest.raises(SystemExit, match="made with other settings or of other text"):
        quality.train(recipe, tmp_path, run, ["train.seed=8"])
    (tmp_path / "val.en").write_bytes(b"other\n")
    with pytest.raises(SystemExit, match="made with other settings or of other text"):
        quality.train(recipe, tmp_path, run, ["train.seed=7"])
    (tmp_path / "val.en").write_bytes(b"val en\n")
    run.with_name("one.made-of.json").unlink()
    with pytest.raises(SystemExit, match="made with other settings or of other text"):
        quality.train(recipe, tmp_path, run, ["train.seed=7"])
    assert len(commands) == 2


def test_tokenised_text_is_compared_by_its_own_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, run = quality.RECIPES["multi30k-tok"], tmp_path / "runs/multi30k-tok-1"
    (tmp_path / "tok").mkdir()
    run.mkdir(parents=True)
    test = [tmp_path / recipe.file(recipe.test, side) for side in ("en", "de")]
    assert test[1].name == "test_2016_flickr.lc.norm.tok.de"
    test[1].write_bytes(b"der hund &quot; rex &quot; bellt laut .\n" * 4)
    bundle = {"event": "bundle", "weights": "ema", "loss": 1.0, "bleu": 40.0, "chrf": 60.0}
    end = {"event": "end", "seconds": 60.0, "step": 5, "tokens": 10, "flops": 1.0}
    log = "".join(json.dumps(event) + "\n" for event in (bundle, end))
    (run / "log.jsonl").write_text(log, encoding="utf-8")
    config = "train: {seed: 3}\ndata: {train: {}, valid: {}}\n"
    (run / "config.yaml").write_text(config, encoding="utf-8")

    def evaluation(runs: list[Path], src: Path, ref: Path, *options: str | Path) -> dict[str, Any]:
        assert (runs, src, ref, options[0], len(options)) == ([run], *test, "--out", 2)
        Path(options[1]).write_bytes(test[1].read_bytes())
        return {"scores": [], "lines": 4, "seconds": 1.0}

    monkeypatch.setattr(quality, "evaluation", evaluation)
    found = quality.evaluated(recipe, tmp_path, run)
    (name,) = found["scores"]
    assert name.startswith("old-style BLEU")
    assert found["scores"][name]["value"] == pytest.approx(100)
    assert "tok:none" in found["scores"][name]["signature"]


def test_two_runs_translate_the_training_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.en").write_bytes(b"a cat\na dog\n")
    (tmp_path / "train.de").write_bytes(b"eine Katze\nein Hund\n")
    for side in ("en", "de"):
        (tmp_path / f"val.{side}").write_bytes(b"x\n")
    commands: list[list[str]] = []

    def run(command: list[str], check: bool) -> None:
        commands.append(command)
        if "translate" in command:
            text = Path(command[-3]).read_bytes().upper()
            Path(command[-1]).write_bytes(text)

    monkeypatch.setattr(subprocess, "run", run)
    recipe = quality.RECIPES["multi30k-diverse"]
    for _ in range(2):
        src, tgt = quality.diverse(recipe, tmp_path, tmp_path / "runs", tmp_path / "more")
        assert src.read_text(encoding="utf-8") == "a cat\na dog\na cat\na dog\nEINE KATZE\nEIN HUND\n"
        assert tgt.read_text(encoding="utf-8") == "eine Katze\nein Hund\nA CAT\nA DOG\neine Katze\nein Hund\n"
    teachers = [command[command.index("--out") + 1] for command in commands if "train" in command]
    assert teachers == 2 * [str(tmp_path / "runs/multi30k-1"), str(tmp_path / "runs/multi30k-de-en-1")]
    assert sum("translate" in command for command in commands) == 2  # what is there is not translated again
