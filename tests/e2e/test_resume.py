"""A run that was stopped or killed, and resumed, ends bit for bit where an uninterrupted one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dragoman
from dragoman.errors import ConfigError
from dragoman.files import sealed_folder
from outcomes import assert_nothing_twice, outcome, write_config

LAST = 30
Tiny = Callable[..., dict[str, Any]]

VARIANTS: dict[str, dict[str, Any]] = {
    "moving average": {"ema": 0.9, "average": 0},
    "best of accumulated steps": {"accumulate": 2, "average": 0},
    "average of checkpoints": {"average": 3},
    "sampled subwords": {"average": 0, "ema": 0.8},
}


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


@pytest.mark.skipif(torch.cuda.is_available(), reason="for a machine without a GPU")
def test_a_run_of_a_gpu_resumes_without_one_if_asked(
    straight: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, _ = straight("moving average")
    run = tmp_path / "run"
    dragoman.train(config, out=run, overrides=["train.max_steps=10"], quiet=True)
    settings = (run / "config.yaml").read_text(encoding="utf-8")
    for here, there in (("device: cpu", "device: cuda"), ("precision: fp32", "precision: bf16")):
        settings = settings.replace(here, there)
    (run / "config.yaml").write_text(settings, encoding="utf-8")
    with pytest.raises(ConfigError, match="no GPU here: use cpu or auto; with train"):
        dragoman.train(out=run, resume=True, quiet=True)
    capsys.readouterr()
    changes = ["train.device=auto", "train.precision=fp32", "train.max_steps=12"]  # (auto would ask the processor)
    ended = dragoman.train(out=run, resume=True, overrides=changes)
    said = "train.device was cuda and is cpu, computing in fp32: from here on not bit for bit the same run"
    assert said in capsys.readouterr().err
    assert ended.step == 12
    assert (run / "config.yaml").read_text(encoding="utf-8").count("device: cpu") == 1
