"""Checkpoints: whole or absent, every damage noticed, the one before taken instead."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.errors import BundleError, DragomanError, UnreadableError
from dragoman.files import sealed_folder
from dragoman.model.transformer import Transformer
from dragoman.model.weights import save_weights, untied
from dragoman.training import checkpoint
from dragoman.training.averaging import start_ema
from dragoman.training.checkpoint import (
    Learner,
    TrainState,
    latest_checkpoint,
    list_checkpoints,
    load_checkpoint,
    prune_checkpoints,
    save_checkpoint,
    whole_checkpoints,
)


class Trained:
    """A model that has made two updates, its optimiser and moving average."""

    def __init__(self, seed: int = 0, d_ff: int = 7) -> None:
        torch.manual_seed(seed)
        sizes: dict[str, Any] = dict(d_model=6, n_heads=2, d_ff=d_ff, n_encoder_layers=1, n_decoder_layers=1)
        self.model = Transformer(ModelConfig(**sizes, src_vocab_size=11, tgt_vocab_size=11))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2, fused=True)
        self.ema = start_ema(self.model)
        for _ in range(2):
            self.update()

    def update(self) -> None:
        ids = torch.randint(4, 11, (2, 5))
        self.model(ids, ids).square().sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def save(self, folder: Path, step: int) -> Path:
        learner = Learner(self.model, self.optimizer, self.ema)
        return save_checkpoint(folder, learner, TrainState(step=step, tokens=7 * step))

    def load(self, path: Path) -> TrainState:
        return load_checkpoint(path, Learner(self.model, self.optimizer, self.ema))

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: tensor.clone() for name, tensor in untied(self.model).items()}


def test_a_checkpoint_restores_weights_moments_average_and_random_state(tmp_path: Path) -> None:
    old, new = Trained(0), Trained(1)
    path = old.save(tmp_path, 20)
    assert path.name == "step_00000020"
    old.update()
    assert new.load(path) == TrainState(step=20, tokens=140)
    new.update()  # the same random ids, dropout and moments: the same weights
    torch.testing.assert_close(new.weights(), old.weights(), rtol=0, atol=0)
    torch.testing.assert_close(new.ema, old.ema, rtol=0, atol=0)
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000020"]


def test_a_damaged_checkpoint_is_named_in_a_warning_and_the_one_before_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trained = Trained()
    paths = [trained.save(tmp_path, step) for step in (10, 20, 30)]
    (paths[2] / "optimizer.safetensors").write_bytes(b"")
    (paths[1] / "manifest.json").unlink()
    with caplog.at_level(logging.WARNING):
        assert latest_checkpoint(tmp_path) == paths[0]
    assert len(caplog.messages) == 2
    assert "step_00000030/optimizer.safetensors: damaged" in caplog.messages[0]
    assert "falling back to the previous checkpoint" in caplog.messages[0]
    assert "step_00000020" in caplog.messages[1]
    assert whole_checkpoints(tmp_path, 30) == paths[:1]  # an average takes no damaged one either
    shutil.rmtree(paths[0])
    with pytest.raises(BundleError, match="no usable checkpoint"):
        latest_checkpoint(tmp_path)


def test_T10_a_checkpoint_that_cannot_be_read_now_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Callable[[str, str], None]
) -> None:
    """Training would go back to an older one, and remove it later."""
    trained = Trained()
    trained.save(tmp_path, 10)
    newest, read = trained.save(tmp_path, 20), Path.read_text

    def fails(path: Path, *args: Any, **options: Any) -> str:
        if path.parent == newest:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return read(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", fails)
    for take in (latest_checkpoint, partial(whole_checkpoints, up_to=20)):
        with pytest.raises(UnreadableError, match=r"step_00000020/manifest\.json: cannot be read"):
            take(tmp_path)
    assert len(list(tmp_path.glob("step_*"))) == 2
    figure("T10", "an error of the disk while the newest checkpoint is read: 0 older ones taken, nothing removed")


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO, errno.EACCES])
def test_T10_a_folder_that_cannot_be_read_now_is_not_without_checkpoints(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``Path.glob`` takes it for empty, so a run was begun again, and what it had was removed."""
    Trained().save(tmp_path, 10)

    def fails(*_: Any) -> Any:
        raise OSError(code, os.strerror(code), str(tmp_path))

    monkeypatch.setattr(os, "listdir", fails)
    monkeypatch.setattr(os, "scandir", fails)
    with pytest.raises(UnreadableError, match="cannot be read"):
        list_checkpoints(tmp_path)


def test_a_checkpoint_of_another_model_changes_nothing(tmp_path: Path) -> None:
    path = Trained(d_ff=5).save(tmp_path, 10)
    mine = Trained(1)
    before = mine.weights()
    with pytest.raises(BundleError, match=r"w_1.weight is \(5, 6\), but the configuration says \(7, 6\)"):
        mine.load(path)
    torch.testing.assert_close(mine.weights(), before, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["model", "optimizer", "ema", "random"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        b"PK\x03\x04" + bytes(200),  # what torch.save makes
        (2**62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",  # no tensors
        (95).to_bytes(8, "little")
        + b'{"x.y":{"dtype":"F32","shape":[100000000],"data_offsets":[0,400000000]}}'.ljust(95),
    ],
)
def test_foreign_tensors_under_a_valid_seal_are_refused_before_anything_changes(
    tmp_path: Path, name: str, content: bytes
) -> None:
    mine = Trained()
    mine.save(tmp_path, 10)
    with sealed_folder(tmp_path / "step_00000020", {"step": 20}) as aside:
        for file in (tmp_path / "step_00000010").iterdir():
            if file.name != "manifest.json":
                shutil.copy(file, aside)
        (aside / f"{name}.safetensors").write_bytes(content)
    before = mine.weights()
    if (name, len(content)) == ("optimizer", 10):
        return  # an optimiser that has not made a step has no moments: a whole file
    with pytest.raises(BundleError, match=f"{name}.safetensors"):
        mine.load(tmp_path / "step_00000020")
    torch.testing.assert_close(mine.weights(), before, rtol=0, atol=0)


def test_a_damaged_state_under_a_valid_seal_is_refused(tmp_path: Path) -> None:
    mine = Trained()
    mine.save(tmp_path, 10)
    for content in ("", "[]", '{"step": 3}', "\udcff"):
        with sealed_folder(tmp_path / "step_00000020", {"step": 20}) as aside:
            for file in (tmp_path / "step_00000010").iterdir():
                if file.name != "manifest.json":
                    shutil.copy(file, aside)
            (aside / "state.json").write_text(content, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(BundleError, match=r"state\.json: damaged"):
            mine.load(tmp_path / "step_00000020")


def test_a_state_from_before_the_best_loss_was_kept_is_read(tmp_path: Path) -> None:
    mine = Trained()
    state = json.loads((mine.save(tmp_path, 10) / "state.json").read_text(encoding="utf-8"))
    del state["best_loss"]
    with sealed_folder(tmp_path / "step_00000020", {"step": 20}) as aside:
        for file in (tmp_path / "step_00000010").iterdir():
            if file.name != "manifest.json":
                shutil.copy(file, aside)
        (aside / "state.json").write_text(json.dumps(state), encoding="utf-8")
    assert mine.load(tmp_path / "step_00000020") == TrainState(step=10, tokens=70)


def test_the_last_scheduled_checkpoints_and_the_newest_are_kept(tmp_path: Path) -> None:
    trained = Trained()
    kept: list[list[int]] = []
    for step in (10, 20, 25, 30, 40, 47):
        trained.save(tmp_path, step)
        prune_checkpoints(tmp_path, 2, 10, step)
        kept.append([checkpoint.step_of(path) for path in list_checkpoints(tmp_path)])
    assert kept == [[10], [10, 20], [10, 20, 25], [20, 30], [30, 40], [30, 40, 47]]


def test_what_a_killed_process_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    trained = Trained()
    for name in (".step_00000017.tmp", ".step_00000010.old"):
        shutil.copytree(trained.save(tmp_path, 10), tmp_path / name)
    trained.save(tmp_path, 20)
    prune_checkpoints(tmp_path, 5, 10, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_00000010", "step_00000020"]


def test_a_checkpoint_that_a_process_died_replacing_is_found_beside_its_place(tmp_path: Path) -> None:
    trained = Trained()
    trained.save(tmp_path, 10)
    before = trained.weights()
    (tmp_path / "step_00000010").rename(tmp_path / ".step_00000010.old")  # and there it was killed
    found = latest_checkpoint(tmp_path)
    assert checkpoint.step_of(found) == 10
    other = Trained(seed=1)
    assert other.load(found).tokens == 70
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.weights().items())
    trained.save(tmp_path, 15)
    prune_checkpoints(tmp_path, 1, 10, 15)
    assert [checkpoint.step_of(path) for path in list_checkpoints(tmp_path)] == [10, 15]
    trained.save(tmp_path, 10)
    prune_checkpoints(tmp_path, 1, 10, 15)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_00000010", "step_00000015"]


def test_what_is_no_checkpoint_of_ours_is_left_alone(tmp_path: Path) -> None:
    trained = Trained()
    for step in (10, 20, 40):
        trained.save(tmp_path, step)
    shutil.copytree(tmp_path / "step_00000010", tmp_path / "step_00000010 (copy)")
    (tmp_path / "best").mkdir()
    (tmp_path / "step_00000040/state.json").write_text("damaged")  # a run that resumes from 20 comes to 25 and stops
    trained.save(tmp_path, 25)
    prune_checkpoints(tmp_path, 1, 10, 25)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "best", "step_00000010 (copy)", "step_00000020", "step_00000025", "step_00000040",
    ]  # fmt: skip
    assert latest_checkpoint(tmp_path).name == "step_00000025"


@pytest.mark.parametrize("call", ["fsync", "rename", "save_file"])
def test_a_write_that_fails_leaves_the_checkpoint_before_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, listing: Callable[[Path], list[str]]
) -> None:
    trained = Trained()
    path = trained.save(tmp_path, 10)
    before = listing(tmp_path)
    trained.save(tmp_path, 20)
    after = listing(tmp_path)
    shutil.rmtree(tmp_path / "step_00000020")
    owner: Any = {"fsync": os, "rename": Path, "save_file": sys.modules["dragoman.model.weights"]}[call]
    real = getattr(owner, call)
    n_calls = 0
    while True:
        n_calls += 1
        left = n_calls

        def failing(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                raise OSError(28, "No space left on device")
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(owner, call, failing)
            try:
                trained.save(tmp_path, 20)
            except DragomanError as error:
                said = str(error)
            else:
                break  # as often as it can fail, it has
        assert re.search(r"step_00000020\b.*No space left on device.*free some space", said)
        # the last flush comes after the renaming
        assert listing(tmp_path) in ((before, after) if call == "fsync" else (before,))
        assert latest_checkpoint(tmp_path) in (path, tmp_path / "step_00000020")
        shutil.rmtree(tmp_path / "step_00000020", ignore_errors=True)
    assert n_calls > 1


def test_weights_can_be_read_by_whom_the_folder_lets(tmp_path: Path) -> None:
    path = Trained().save(tmp_path, 10)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.iterdir()}
    assert set(modes.values()) == {modes["state.json"]}


def test_a_checkpoint_holds_no_pickle_and_no_more_than_its_files(tmp_path: Path) -> None:
    trained = Trained()
    path = trained.save(tmp_path, 10)
    names = {"ema.safetensors", "manifest.json", "model.safetensors", "optimizer.safetensors", "random.safetensors"}
    assert {file.name for file in path.iterdir()} == names | {"state.json"}
    save_weights(tmp_path / "again.safetensors", trained.weights())
    assert (tmp_path / "again.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()
