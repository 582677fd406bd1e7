"""The loop: limits, validation, what is not finite, the log."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import ModelConfig, TrainConfig
from dragoman.data.batching import BatchStream
from dragoman.data.store import Store
from dragoman.errors import DragomanError
from dragoman.files import check_sealed
from dragoman.model.transformer import Transformer
from dragoman.model.weights import read_weights, untied
from dragoman.training import loop
from dragoman.training.checkpoint import TrainState, latest_checkpoint, list_checkpoints
from dragoman.training.log import RunLog
from dragoman.training.loop import SHOWN, Job, Outcome, Validation, ValidationClock, fit

Fit = Callable[..., Outcome]


class Poisoned(Transformer):
    """Gives NaN in the forward passes that ``bad`` names, counted from 1."""

    bad: Iterable[int] = ()
    calls = 0

    def features(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        self.calls += 1
        found = super().features(*args, **kwargs)
        return found * float("nan") if self.calls in self.bad else found


@pytest.fixture
def run_fit(tiny_run: Path, tmp_path: Path) -> Fit:
    store = Store.open(tiny_run / "store/train")

    def run(
        bad: Iterable[int] = (), validate: Any = None, resume: bool = False, quiet: bool = True, **settings: Any
    ) -> Outcome:
        torch.manual_seed(0)
        sizes: dict[str, Any] = dict(d_model=8, d_ff=8, n_heads=2, n_encoder_layers=1, n_decoder_layers=1)
        vocab = store.vocab_sizes[0]
        model = Poisoned(ModelConfig(**sizes, src_vocab_size=vocab, tgt_vocab_size=vocab))
        model.bad = bad
        config = TrainConfig(**{**dict(precision="fp32", max_steps=20, save_every=5, log_every=5), **settings})
        with BatchStream(store, 1000, 1) as batches, RunLog(tmp_path, quiet=quiet) as log:
            job = Job(sizes=model.config, config=config, folder=tmp_path, log=log, validate=validate)
            return fit(model, batches, job, resume)

    return run


def read_log(folder: Path, event: str) -> list[dict[str, Any]]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    lines = (folder / "log.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    events = [json.loads(line, parse_constant=refuse) for line in lines]
    return [found for found in events if found["event"] == event]


def steps(folder: Path) -> list[int]:
    return [int(path.name[5:]) for path in list_checkpoints(folder / "checkpoints")]


def test_a_step_that_is_not_finite_is_skipped_and_logged_with_its_pairs(
    run_fit: Fit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run_fit(bad={7}, quiet=False)
    assert (outcome.reason, outcome.state.step, outcome.state.skipped, outcome.state.bad_steps) == (
        "max_steps", 20, 1, 0,
    )  # fmt: skip
    (skipped,) = read_log(tmp_path, "skipped")
    assert skipped["step"] == 7
    assert skipped["loss"] == "nan"
    assert len(skipped["pairs"]) >= 1
    assert all(0 <= pair < 400 for pair in skipped["pairs"])
    assert "step 7: loss or gradient not finite, update skipped (pairs [" in capsys.readouterr().err
    for name in ("model", "optimizer"):
        tensors = read_weights(latest_checkpoint(tmp_path / "checkpoints") / f"{name}.safetensors")
        assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_too_many_steps_in_a_row_that_are_not_finite_end_the_run_with_usable_checkpoints(
    run_fit: Fit, tmp_path: Path
) -> None:
    with pytest.raises(
        DragomanError, match="step 14: training diverged: 3 updates in a row had a non-finite loss or gradient"
    ):
        run_fit(bad=range(12, 100), max_bad_steps=3, ema=0.9)
    assert [skipped["step"] for skipped in read_log(tmp_path, "skipped")] == [12, 13, 14]
    assert steps(tmp_path) == [5, 10]
    outcome = run_fit(resume=True, ema=0.9)
    assert (outcome.state.step, outcome.state.skipped, outcome.reason) == (20, 0, "max_steps")
    for name in ("model", "optimizer", "ema"):
        tensors = read_weights(latest_checkpoint(tmp_path / "checkpoints") / f"{name}.safetensors")
        assert all(tensor.isfinite().all() for tensor in tensors.values())
    assert read_log(tmp_path, "skipped") == []  # they came after step 10, and did not happen again


def test_bad_steps_count_in_a_row_only(run_fit: Fit, tmp_path: Path) -> None:
    outcome = run_fit(bad={2, 3, 5, 6, 8, 9}, max_bad_steps=3)
    assert (outcome.state.step, outcome.state.skipped) == (20, 6)


def test_the_log_stays_json_where_nothing_was_finite(run_fit: Fit, tmp_path: Path) -> None:
    run_fit(bad=range(100), max_bad_steps=100, max_steps=5)
    (report,) = read_log(tmp_path, "train")
    assert report["grad_norm"] == "nan"
    assert report["tokens_per_s"] == 0
    assert report["loss"] == "nan"  # no loss, and not a perfect one


@pytest.mark.parametrize(
    ("limit", "reason"),
    [({"max_epochs": 2}, "max_epochs"), ({"max_minutes": 1e-6}, "max_minutes"), ({"max_steps": 3}, "max_steps")],
)
def test_each_limit_ends_the_run_and_saves(run_fit: Fit, tmp_path: Path, limit: dict[str, Any], reason: str) -> None:
    outcome = run_fit(**{"max_steps": 500, "save_every": 500, **limit})
    assert outcome.reason == reason
    assert outcome.signal is None
    assert steps(tmp_path) == [outcome.state.step]
    assert read_log(tmp_path, "end")[0]["reason"] == reason
    if reason == "max_epochs":
        assert outcome.state.data["epoch"] + outcome.state.data["pairs"] / 400 >= 2
        assert 2 < outcome.state.step < 100


def test_patience_ends_the_run_and_the_best_weights_are_those_of_the_best_bleu(run_fit: Fit, tmp_path: Path) -> None:
    seen = []

    def validate(model: torch.nn.Module) -> Validation:
        assert not model.training
        seen.append({name: tensor.clone() for name, tensor in untied(model).items()})
        return Validation(1.0, [1.0, 3.0, 2.0, 3.0][len(seen) - 1], 5.0, [("a", "b", "c")])

    outcome = run_fit(validate=validate, validate_every=2, patience=2)
    assert (outcome.reason, outcome.state.step, outcome.state.best_step, outcome.state.best_bleu) == (
        "patience", 8, 4, 3.0,
    )  # fmt: skip
    torch.testing.assert_close(read_weights(tmp_path / "checkpoints/best/model.safetensors"), seen[1], rtol=0, atol=0)
    assert [event["best"] for event in read_log(tmp_path, "validation")] == [True, True, False, False]
    assert "normal this early" in (tmp_path / "samples.txt").read_text(encoding="utf-8")


def test_a_validation_that_reaches_the_goal_ends_the_run(run_fit: Fit, tmp_path: Path) -> None:
    scores = iter([96.9, 97.0, 99.0])
    outcome = run_fit(validate=lambda _: Validation(1.0, next(scores), 5.0, []), validate_every=2, goal=97.0)
    assert (outcome.reason, outcome.state.step, outcome.state.best_bleu) == ("goal", 4, 97.0)
    assert read_log(tmp_path, "end")[0]["reason"] == "goal"


def test_with_a_limit_of_minutes_validations_take_a_share_of_the_clock() -> None:
    config, clock = TrainConfig(max_minutes=1, validate_every=10), ValidationClock(began=100.0)
    assert clock.is_due(TrainState(step=10, seconds=110.0), config)  # the first is always due
    clock.seconds = 10.0
    assert not clock.is_due(TrainState(step=20, seconds=149.0), config)
    assert clock.is_due(TrainState(step=30, seconds=150.0), config)
    assert not clock.is_due(TrainState(step=31, seconds=999.0), config)
    assert clock.is_due(TrainState(step=20, seconds=149.0), TrainConfig(validate_every=10))


def test_a_sample_that_loops_does_not_fill_the_console(
    run_fit: Fit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = "und " * 200
    run_fit(
        validate=lambda _: Validation(1.0, 1.0, 5.0, [("a", "b", loop)]), max_steps=2, validate_every=2, quiet=False
    )
    shown = [line for line in capsys.readouterr().err.split("\n") if "hyp: " in line]
    assert [len(line) for line in shown] == [len("    hyp: ") + SHOWN]
    assert shown[0].endswith("…")
    assert f"    src: a\n    ref: b\n    hyp: {loop}\n" in (tmp_path / "samples.txt").read_text(encoding="utf-8")


def test_of_equal_quality_the_lower_loss_is_better_and_at_0_patience_does_not_count(
    run_fit: Fit, tmp_path: Path
) -> None:
    """A first BLEU of 0 is no best that nothing can beat: what was trained longest would be thrown away for it."""
    losses = iter([7.0, 5.0, math.nan, 4.0, 4.5, 4.25, 3.0])

    def validate(model: torch.nn.Module) -> Validation:
        return Validation(next(losses), 0.0, 5.0, [])

    outcome = run_fit(validate=validate, validate_every=2, max_steps=100, patience=2)
    assert [event["best"] for event in read_log(tmp_path, "validation")] == [True, True, False, True, False, False]
    assert (outcome.reason, outcome.state.best_step, outcome.state.best_loss) == ("patience", 8, 4.0)
    assert check_sealed(tmp_path / "checkpoints/best", "checkpoint")["step"] == 8


@pytest.mark.parametrize("is_parser", [False, True])
def test_a_quality_that_is_chance_counts_as_0(run_fit: Fit, tmp_path: Path, is_parser: bool) -> None:
    """A perplexity of 454 with BLEU 0.02 was better than any with BLEU 0: patience ended the training."""
    found = iter([(6.1, 0.02), (5.5, 0.0), (5.3, 0.0), (5.4, 0.99), (5.2, 0.5), (5.6, 1.0), (5.1, 0.9), (5.0, 1.0)])

    def validate(model: torch.nn.Module) -> Validation:
        loss, quality = next(found)
        return Validation(loss, *([math.nan] * 2 if is_parser else [quality] * 2), [], quality if is_parser else None)

    outcome = run_fit(validate=validate, validate_every=2, max_steps=100, patience=2)
    assert [event["best"] for event in read_log(tmp_path, "validation")] == [
        True, True, True, False, True, True, False, True,
    ]  # fmt: skip
    assert (outcome.reason, outcome.state.best_step, outcome.state.best_bleu) == ("patience", 16, 1.0)
    assert check_sealed(tmp_path / "checkpoints/best", "checkpoint")["step"] == 16


def test_a_best_that_was_chance_is_none_after_a_resume(
    run_fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of an older version holds it."""
    with monkeypatch.context() as older:
        older.setattr(loop, "counted", lambda quality, config: quality, raising=False)
        first = run_fit(validate=lambda _: Validation(6.1, 0.02, 3.0, []), validate_every=10, max_steps=10)
    assert (first.state.best_step, first.state.best_bleu) == (10, 0.02)
    settings: dict[str, Any] = {"validate_every": 10, "patience": 1, "resume": True}
    outcome = run_fit(validate=lambda _: Validation(5.0, 0.0, 3.0, []), max_steps=20, **settings)
    assert (outcome.reason, outcome.state.best_step, outcome.state.best_bleu) == ("max_steps", 20, 0.0)
    assert check_sealed(tmp_path / "checkpoints/best", "checkpoint")["step"] == 20


def test_a_goal_below_what_is_chance_ends_the_run_too(run_fit: Fit, tmp_path: Path) -> None:
    found = iter([Validation(5.0, 0.2, 5.0, []), Validation(6.0, 0.4, 5.0, [])])
    outcome = run_fit(validate=lambda _: next(found), validate_every=2, goal=0.3)
    assert (outcome.reason, outcome.state.step, outcome.state.best_bleu) == ("goal", 4, 0.4)


def test_above_0_a_lower_loss_is_kept_but_patience_counts(run_fit: Fit, tmp_path: Path) -> None:
    losses = iter([3.0, 2.0, 1.0, 0.5])

    def validate(model: torch.nn.Module) -> Validation:
        return Validation(next(losses), 100.0, 100.0, [])

    outcome = run_fit(validate=validate, validate_every=2, max_steps=100, patience=2)
    assert (outcome.reason, outcome.state.step, outcome.state.best_step) == ("patience", 6, 6)


@pytest.mark.parametrize(
    ("found", "scores"),
    [
        (Validation(1.0, 30.0, 50.0, []), {"bleu": 30.0, "chrf": 50.0}),
        (Validation(1.0, math.nan, math.nan, [], 35.0), {"f1": 35.0}),
    ],
)
def test_the_best_weights_say_their_scores_by_name(
    run_fit: Fit, tmp_path: Path, found: Validation, scores: dict[str, float]
) -> None:
    run_fit(validate=lambda model: found, validate_every=20)
    facts = check_sealed(tmp_path / "checkpoints/best", "checkpoint")
    assert {name: value for name, value in facts.items() if name in ("bleu", "chrf", "f1")} == scores


def test_validation_sees_the_moving_average_and_training_continues_with_the_weights(
    run_fit: Fit, tmp_path: Path
) -> None:
    seen = []

    def validate(model: torch.nn.Module) -> Validation:
        seen.append({name: tensor.clone() for name, tensor in untied(model).items()})
        return Validation(1.0, 50.0, 50.0, [])

    run_fit(validate=validate, validate_every=10, save_every=10, max_steps=10, ema=0.99)
    path = latest_checkpoint(tmp_path / "checkpoints")
    average, weights = (read_weights(path / f"{name}.safetensors") for name in ("ema", "model"))
    torch.testing.assert_close(seen[0], average, rtol=0, atol=0)
    assert any(not torch.equal(tensor, weights[name]) for name, tensor in average.items())


def test_the_moving_average_is_updated_at_every_step(run_fit: Fit, tmp_path: Path) -> None:
    weights = []
    for n_steps in (1, 2, 3):
        outcome = run_fit(max_steps=n_steps, ema=0.999)
        weights.append(read_weights(latest_checkpoint(tmp_path / "checkpoints") / "model.safetensors"))
        assert outcome.ema is not None
        if n_steps == 1:
            want = outcome.ema
        else:
            decay = (1 + n_steps) / (10 + n_steps)
            want = {name: decay * want[name] + (1 - decay) * tensor for name, tensor in weights[-1].items()}
        torch.testing.assert_close(outcome.ema, want)
    assert not torch.equal(weights[0]["src_embed.weight"], weights[1]["src_embed.weight"])


def test_validation_does_not_disturb_training(run_fit: Fit, tmp_path: Path) -> None:
    """Neither the weights nor the random numbers of dropout: the run is the same without it."""
    run_fit(validate=lambda model: Validation(1.0, 50.0, 50.0, []), validate_every=3, ema=0.9)
    path = latest_checkpoint(tmp_path / "checkpoints")
    with_validation = {name: (path / f"{name}.safetensors").read_bytes() for name in ("model", "ema", "random")}
    run_fit(ema=0.9)
    assert {name: (path / f"{name}.safetensors").read_bytes() for name in ("model", "ema", "random")} == with_validation


def test_a_run_that_a_signal_stopped_where_it_now_ends_is_validated_once(run_fit: Fit, tmp_path: Path) -> None:
    run_fit(max_steps=20)  # without a validation, as a signal leaves it
    for _ in range(2):
        found = run_fit(validate=lambda model: Validation(2.0, 30.0, 50.0, []), resume=True, max_steps=20)
        assert (found.reason, found.state.validated_step, found.state.best_step) == ("max_steps", 20, 20)
    assert [event["step"] for event in read_log(tmp_path, "validation")] == [20]


def test_a_validation_after_a_resume_ends_the_run_without_a_further_update(run_fit: Fit, tmp_path: Path) -> None:
    """One more update was made, and the best weights were not those of the last checkpoint."""
    run_fit(max_steps=10)  # without a validation, as a signal leaves it
    outcome = run_fit(
        validate=lambda model: Validation(2.0, 30.0, 50.0, []), resume=True, validate_every=10, goal=30.0
    )  # fmt: skip
    assert (outcome.reason, outcome.state.step, outcome.state.best_step) == ("goal", 10, 10)
    assert read_log(tmp_path, "end")[-1]["reason"] == "goal"
    assert steps(tmp_path)[-1] == 10


def test_the_speed_after_a_resume_is_that_of_updates(run_fit: Fit, tmp_path: Path) -> None:
    """The validation that a signal had ended counted as the time of the first updates."""

    def validate(_: torch.nn.Module) -> Validation:
        time.sleep(1)
        return Validation(2.0, 30.0, 50.0, [])

    run_fit(max_steps=10, log_every=1)
    run_fit(validate=validate, resume=True, validate_every=10, log_every=1, max_steps=11)
    before, after = read_log(tmp_path, "train")[-2:]
    assert (before["step"], after["step"]) == (10, 11)
    assert (after["tokens"] - before["tokens"]) / after["tokens_per_s"] < 1


def test_the_time_of_saving_counts_towards_the_minutes_but_not_for_the_speed(
    run_fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.save_checkpoint

    def slow(*args: Any) -> Path:
        time.sleep(1)
        return real(*args)

    monkeypatch.setattr(loop, "save_checkpoint", slow)
    outcome = run_fit(max_minutes=1.5 / 60, save_every=1, log_every=1)
    assert (outcome.reason, outcome.state.step) == ("max_minutes", 3)
    assert outcome.state.seconds >= 3
    reports = read_log(tmp_path, "train")
    for before, after in pairwise(reports):
        assert after["seconds"] - before["seconds"] >= 1
        assert (after["tokens"] - before["tokens"]) / after["tokens_per_s"] < 1
