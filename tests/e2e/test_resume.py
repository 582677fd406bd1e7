"""A run that was stopped or killed, and resumed, ends bit for bit where an uninterrupted one does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dragoman
from dragoman.bundle import Fast, amend_bundle, load_bundle
from dragoman.data import shortlist as shortlists
from dragoman.data.store import Store
from dragoman.errors import ConfigError, UnreadableError
from dragoman.evaluation.calibration import calibrate
from dragoman.files import sealed_folder
from dragoman.model.weights import untied
from dragoman.training import run as training
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


@pytest.mark.parametrize(
    ("variant", "change"),
    [
        ("moving average", "train.max_steps=30"),
        ("best of accumulated steps", "decode.beam_size=3"),
        ("average of checkpoints", "train.max_steps=21"),
        ("sampled subwords", "decode.length_penalty=2"),
    ],
)
def test_what_was_added_to_the_bundle_of_a_finished_run_stays_until_weights_or_search_change(
    variant: str, change: str, straight: Any, corpus: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch job that was put into the queue again replaced a calibration, and lost a shortlist without a word."""
    config, _ = straight(variant)
    run = tmp_path / "run"
    dragoman.train(config, out=run, overrides=["train.max_steps=20"], quiet=True)
    lines = [path.read_text(encoding="utf-8").splitlines()[:100] for path in (corpus.src, corpus.tgt)]
    calibrate(run, *lines)
    bundle = load_bundle(run)
    shortlist = shortlists.learn(Store.open(run / "store/train"), bundle.src_tokenizer, bundle.tgt_tokenizer)
    amend_bundle(run, shortlist, fast={"beam_size": 1, "shortlist": True})
    before = json.loads((run / "bundle/manifest.json").read_text(encoding="utf-8"))
    assert {"confidence", "fast"} < set(before)
    capsys.readouterr()
    dragoman.train(out=run, resume=True)
    assert json.loads((run / "bundle/manifest.json").read_text(encoding="utf-8")) == before  # the sums of all files too
    assert "not kept" not in capsys.readouterr().err
    dragoman.train(out=run, resume=True, overrides=[change])
    line = next(line for line in capsys.readouterr().err.splitlines() if "not kept" in line)
    assert "its weights or its search are other ones now" in line
    for what in (
        "confidence (`dragoman calibrate` ",
        "shortlist (the same `dragoman distill` ",
        "settings of --fast (the",
    ):
        assert what in line
    after = load_bundle(run)
    assert after.shortlist is None
    assert (after.facts.fast, after.facts.confidence) == (Fast(), None)  # 20 validation pairs are too few for one


@pytest.fixture(scope="module")
def calibrated(tiny: Tiny, corpus: Any, toy_sentences: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 20 steps, of which the tenth was the best, that has learned a confidence of 120 validation pairs."""
    folder = tmp_path_factory.mktemp("calibrated")
    mapping = tiny(max_steps=20)
    for side, lines in zip(("src", "tgt"), zip(*toy_sentences(120, 12), strict=True), strict=True):
        path = folder / f"valid.{side}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        mapping["data"]["valid"][side] = str(path)
    dragoman.train(write_config(folder / "config.yaml", mapping), out=folder / "run", quiet=True)
    return folder / "run"


def test_a_confidence_that_training_itself_has_learned_is_learned_again_without_a_warning(
    calibrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ordinary run that trained on was told that its confidence is lost, and to calibrate."""
    run = Path(shutil.copytree(calibrated, tmp_path / "run"))
    assert load_bundle(run).facts.confidence is not None
    monkeypatch.setattr(training, "load_bundle", None)  # with another search nothing is read but manifest and settings
    dragoman.train(out=run, resume=True, overrides=["train.max_steps=25", "decode.beam_size=3"])
    err = capsys.readouterr().err
    assert "confidence learned" in err
    assert "not kept" not in err
    assert "dragoman calibrate" not in err


def test_more_steps_that_leave_the_best_weights_lose_nothing(
    calibrated: Path, corpus: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(calibrated, tmp_path / "run"))
    lines = [path.read_text(encoding="utf-8").splitlines()[:150] for path in (corpus.src, corpus.tgt)]
    learned = calibrate(run, *lines)
    amend_bundle(run, fast={"beam_size": 1, "shortlist": False})
    weights = untied(load_bundle(run).model)
    monkeypatch.setattr(training, "final_weights", lambda *_: ("best by BLEU, step 20", weights))
    dragoman.train(out=run, resume=True, overrides=["train.max_steps=25"])
    assert "not kept" not in capsys.readouterr().err
    facts = load_bundle(run).facts
    assert (facts.step, facts.confidence) == (25, learned.model_dump(mode="json"))
    assert facts.fast == Fast(beam_size=1, shortlist=False)


def test_an_old_model_that_cannot_be_read_is_named_with_what_is_lost_and_replaced(
    calibrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(calibrated, tmp_path / "run"))
    amend_bundle(run, fast={"beam_size": 1, "shortlist": False})

    def fails(path: Path) -> None:
        raise UnreadableError(f"{path}/bundle/model.safetensors: cannot be read (Input/output error)")

    monkeypatch.setattr(training, "load_bundle", fails)
    dragoman.train(out=run, resume=True)
    err = capsys.readouterr().err
    assert "model.safetensors: cannot be read (Input/output error); it is written again" in err
    assert "so this is not kept: its settings of --fast (the same `dragoman distill`" in err
    assert load_bundle(run).facts.fast == Fast()


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
