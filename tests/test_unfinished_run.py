"""A run can be used before it is finished: while it trains, and wherever it was stopped."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dragoman
from dragoman import bundle as bundles
from dragoman.bundle import load_bundle
from dragoman.cli import main
from dragoman.errors import BundleError
from dragoman.files import sealed_folder
from dragoman.model.weights import read_weights, save_weights, untied
from dragoman.training import validation
from dragoman.training.checkpoint import latest_checkpoint
from dragoman.training.run import Trained, train
from limits import LONG_S, wait_until
from processes import Forked

Command = Callable[..., Any]


@pytest.fixture
def unfinished(tiny_run: Path, tmp_path: Path) -> Path:
    """The tiny run as it was before its bundle was written."""
    shutil.copytree(tiny_run, tmp_path / "run", ignore=shutil.ignore_patterns("bundle"))
    return tmp_path / "run"


def test_of_a_run_without_a_bundle_the_newest_weights_are_taken_and_that_is_said(
    unfinished: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "dragoman"):
        bundle = load_bundle(unfinished)
    assert f"{unfinished}: training is not finished; using the weights of step 250" in caplog.text
    newest = read_weights(latest_checkpoint(unfinished / "checkpoints") / "model.safetensors")
    for name, tensor in untied(bundle.model).items():
        assert torch.equal(tensor, newest[name]), name
    assert (bundle.manifest["step"], bundle.manifest["unfinished"]) == (250, True)
    shutil.rmtree(latest_checkpoint(unfinished / "checkpoints"))
    assert load_bundle(unfinished).manifest["step"] == 250  # of the best validation
    shutil.rmtree(unfinished / "checkpoints/best")
    with pytest.raises(BundleError, match="nothing can be used yet"):
        load_bundle(unfinished)


def test_the_moving_average_is_taken_where_there_is_one(tiny: Callable[..., Any], tmp_path: Path) -> None:
    config = dragoman.Config.from_mapping(tiny(max_steps=4, save_every=2, ema=0.9))
    dragoman.train(config, out=tmp_path / "x", quiet=True)
    shutil.rmtree(tmp_path / "x/bundle")
    averaged = read_weights(tmp_path / "x/checkpoints/step_00000004/ema.safetensors")
    for name, tensor in untied(load_bundle(tmp_path / "x").model).items():
        assert torch.equal(tensor, averaged[name]), name


def test_a_damaged_newest_checkpoint_is_refused_by_its_name(unfinished: Path) -> None:
    weights = latest_checkpoint(unfinished / "checkpoints") / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(BundleError, match=r"step_00000250/model\.safetensors: damaged"):
        load_bundle(unfinished)


def test_commands_take_an_unfinished_run(unfinished: Path, command: Command, tmp_path: Path) -> None:
    for name in ("s", "r"):
        (tmp_path / name).write_text("the dog sleeps\n", encoding="utf-8")
    for arguments in (
        ("translate", unfinished, "s"),
        ("evaluate", unfinished, "--src", "s", "--ref", "r"),
        ("explain", unfinished, "the dog sleeps"),
        ("score", unfinished, "--src", "s", "--ref", "r"),
    ):
        done = command(*arguments, cwd=tmp_path)
        assert done.status == 0, done.err
        assert "training is not finished; using the weights of step 250" in done.err


def test_an_unfinished_run_is_not_calibrated_and_that_is_said_before_the_work(
    unfinished: Path, command: Command, tmp_path: Path
) -> None:
    done = command("calibrate", unfinished, "--src", "nowhere.en", "--ref", "nowhere.de", cwd=tmp_path)
    assert done.status == 2
    assert (
        f"not ended, and only a finished run keeps a confidence (dragoman train --out {unfinished} --resume)"
        in done.err
    )


def test_an_unfinished_run_is_exported_into_its_folder_too(unfinished: Path) -> None:
    pytest.importorskip("ctranslate2")
    folder = dragoman.export(unfinished)
    assert folder == unfinished / "exports/ctranslate2-float32"
    texts = ["the dog sleeps"]
    ours, theirs = (
        dragoman.Translator.load(unfinished).translate(texts, engine=name) for name in ("torch", "ctranslate2")
    )
    assert [one.text for one in ours] == [one.text for one in theirs]


@pytest.mark.parametrize("when", ["before the check", "before the weights"])
def test_what_is_replaced_while_it_is_read_is_read_again_and_never_torn(
    when: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {path.name: path.read_bytes() for path in (tiny_run / "bundle").iterdir()}
    manifest = json.loads(files.pop("manifest.json"))
    facts = {key: value for key, value in manifest.items() if key not in ("files", "sha256")}
    weights = read_weights(tiny_run / "bundle/model.safetensors")
    check, joint, manifest_of = bundles.check_files, bundles.is_joint, bundles.read_manifest
    is_checked, reads, replacing = threading.Event(), list[float](), iter([lambda: write(1.0)])

    def write(value: float) -> None:
        with sealed_folder(tmp_path / "run/bundle", {**facts, "value": value}) as aside:
            for name, content in files.items():
                if name == "model.safetensors":
                    save_weights(aside / name, {name: torch.full_like(one, value) for name, one in weights.items()})
                else:
                    (aside / name).write_bytes(content)

    def begun(*args: Any) -> Any:
        is_checked.clear()
        reads.append(manifest_of(*args)["value"])
        return manifest_of(*args)

    def checked(*args: Any) -> None:
        if when == "before the check":
            next(replacing, lambda: None)()
        try:
            check(*args)
        finally:
            is_checked.set()

    def read_after_the_check(folder: Path) -> bool:
        assert is_checked.wait(LONG_S)
        if when == "before the weights":
            next(replacing, lambda: None)()
        return joint(folder)

    (tmp_path / "run").mkdir()
    write(0.0)
    monkeypatch.setattr(bundles, "read_manifest", begun)
    monkeypatch.setattr(bundles, "check_files", checked)
    monkeypatch.setattr(bundles, "is_joint", read_after_the_check)  # the first that is asked of the files
    bundle = load_bundle(tmp_path / "run")
    assert reads == [0.0, 1.0]
    assert bundle.manifest["value"] == 1
    assert {float(value) for tensor in untied(bundle.model).values() for value in tensor.unique()} == {1.0}


def test_a_run_stopped_before_its_first_validation_translates(tiny: Callable[..., Any], tmp_path: Path) -> None:
    config = dragoman.Config.from_mapping(tiny(max_steps=100_000, validate_every=100_000, save_every=100_000))
    (tmp_path / "x.yaml").write_text(config.to_yaml(), encoding="utf-8")
    process = Forked(main, ["dragoman", "train", "x.yaml", "--out", "x"], cwd=tmp_path)
    log = tmp_path / "x/log.jsonl"
    wait_until(lambda: log.is_file() and '"train"' in log.read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG_S) == 128 + signal.SIGTERM
    assert b"dragoman translate x -i" in process.communicate()[1]
    assert len(dragoman.Translator.load(tmp_path / "x").translate(["the dog"])) == 1


@pytest.fixture(scope="module")
def whole(tiny: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A run that nobody stopped."""
    config = dragoman.Config.from_mapping(tiny(ema=0.9))
    return train(config, out=tmp_path_factory.mktemp("whole") / "run", quiet=True)


@pytest.mark.parametrize("stop_at", [10, 30])
def test_a_signal_in_a_validation_leaves_it_at_once_and_the_resumed_run_is_the_same(
    stop_at: int, whole: Trained, tiny: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = dragoman.Config.from_mapping(tiny(ema=0.9))
    real, asked_after = validation.search_all, []

    def search(*args: Any, **how: Any) -> Any:
        if not asked_after and _step(tmp_path / "x") == stop_at:
            signal.raise_signal(signal.SIGTERM)  # when the search has begun
            found = real(*args, **how)
            asked_after.append(found.hypotheses)
            return found
        return real(*args, **how)

    monkeypatch.setattr(validation, "search_all", search)
    stopped = train(config, out=tmp_path / "x", quiet=True)
    assert (stopped.signal, stopped.step, stopped.reason) == (signal.SIGTERM, stop_at, "signal")
    assert asked_after == [[[]] * len(asked_after[0])]  # each sentence has left the search
    done = train(out=tmp_path / "x", resume=True, quiet=True)
    assert (done.validation, done.reason) == (whole.validation, whole.reason)
    logs = [_validations(run) for run in (tmp_path / "x", whole.run)]
    assert logs[0] == logs[1]
    last = "checkpoints/step_00000030"
    for name in ("model", "optimizer", "ema", "random"):
        one, other = (read_weights(run / last / f"{name}.safetensors") for run in (tmp_path / "x", whole.run))
        assert all(torch.equal(one[key], other[key]) for key in other), name
    states = [json.loads((run / last / "state.json").read_text()) for run in (tmp_path / "x", whole.run)]
    assert {**states[0], "seconds": 0} == {**states[1], "seconds": 0}


def _step(run: Path) -> int:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").split("\n")[:-1] if (run / "log.jsonl").is_file() else []
    return max((json.loads(line)["step"] for line in lines), default=0)


def _validations(run: Path) -> list[Any]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [event for event in map(json.loads, lines) if event["event"] == "validation"]
