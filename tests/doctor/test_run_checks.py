"""The doctor after training: each illness has a log that shows it; a healthy log shows none."""

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman.doctor.findings import Finding
from dragoman.doctor.run_checks import CHECKS, check_run
from dragoman.errors import ConfigError, DragomanError
from dragoman.training.log import RunLog
from dragoman.training.record import read_run

STEPS, EVERY, VALIDATE = 10_000, 100, 500
SAMPLES = [
    {"src": "The dog sees the cat.", "ref": "Der Hund sieht die Katze.", "hyp": "Der Hund sieht eine Katze."},
    {"src": "A man runs.", "ref": "Ein Mann rennt.", "hyp": "Ein Mann läuft."},
    {"src": "We are here.", "ref": "Wir sind hier.", "hyp": "Wir sind da."},
]


def fall(step: int) -> float:
    """A training loss in nats as it should be."""
    return 1.2 + 7.0 * math.exp(-step / 1200)


def rise(step: int) -> float:
    """A BLEU as it should be."""
    return 35 * (1 - math.exp(-step / 1500))


class Case:
    """Writes a run folder: curves by step, and what is odd about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(
        self,
        *,
        loss: Callable[[int], float] = fall,
        valid_loss: Callable[[int], float] = lambda step: fall(step) + 0.3,
        bleu: Callable[[int], float] = rise,
        chrf: Callable[[int], float] = lambda step: 2 * rise(step),
        grad_norm: Callable[[int], float] = lambda step: 1.0 + step % 3,
        speed: Callable[[int], float] = lambda step: 9000 + step % 700,
        rate: Callable[[int], float] = lambda step: 1e-3 * min(1, step / 1000),
        skips: range | list[int] = [],  # noqa: B006
        samples: list[dict[str, str]] = SAMPLES,
        steps: int = STEPS,
        end: str | None = "max_steps",
        valid_pairs: int = 1000,
        report: dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        bundle: bool = True,
    ) -> list[Finding]:
        """Write it, and diagnose it."""
        data = {"train": {"src": "t.en", "tgt": "t.de"}, "src_lang": "en", "tgt_lang": "de"}
        settings: dict[str, Any] = {
            "model": {"preset": "small"}, "data": data,
            "train": {"max_steps": STEPS, "schedule": "inverse_sqrt", "lr": 1e-3, "warmup_steps": 1000},
        }  # fmt: skip
        for section, values in (config or {}).items():
            settings[section] = {**settings[section], **values}
        self.folder.mkdir(exist_ok=True)
        (self.folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        counts = {"read": 30_000, "kept": 29_900, "empty": 100, "too_long": 0, "ratio": 0, "duplicates": 0}
        for name, pairs in (("train", 29_900), ("valid", valid_pairs)):
            store = self.folder / "store" / name
            store.mkdir(parents=True, exist_ok=True)
            about = {"pairs": pairs, "report": (report or counts) if name == "train" else {}}
            (store / "store.json").write_text(json.dumps(about), encoding="utf-8")
        if bundle:
            (self.folder / "bundle").mkdir(exist_ok=True)
        with RunLog(self.folder, quiet=True) as log:
            for step in range(1, steps + 1):
                if step in skips:
                    log.event("skipped", step, loss="nan", grad_norm="inf", pairs=[1, 2])
                if step % EVERY == 0:
                    log.event(
                        "train", step, epoch=0, loss=loss(step), perplexity=math.exp(loss(step)), lr=rate(step),
                        grad_norm=grad_norm(step), tokens_per_s=speed(step), tokens=4000 * step, flops=1.0, seconds=1.0,
                    )  # fmt: skip
                if step % VALIDATE == 0:
                    log.event(
                        "validation", step, loss=valid_loss(step), perplexity=math.exp(valid_loss(step)),
                        bleu=bleu(step), chrf=chrf(step), best=True, samples=samples,
                    )  # fmt: skip
            if end is not None:
                log.event("end", steps, reason=end, seconds=6.0, tokens=4000 * steps, flops=1.0)
                log.event("bundle", steps, weights="last", loss=1.5, bleu=35.0, chrf=70.0)
        return check_run(read_run(self.folder))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "run")


def only(found: list[Finding], name: str, level: str) -> Finding:
    """The one finding there should be."""
    assert [(finding.name, finding.level) for finding in found] == [(name, level)], found
    assert found[0].advice
    return found[0]


def test_a_healthy_run_has_no_finding(case: Case) -> None:
    assert case.write() == []


def test_a_run_without_validation_is_no_illness(case: Case) -> None:
    found = case.write()
    log = case.folder / "log.jsonl"
    kept = [line for line in log.read_text(encoding="utf-8").split("\n") if '"validation"' not in line]
    log.write_text("\n".join(kept), encoding="utf-8")
    assert check_run(read_run(case.folder)) == found == []


def test_unfinished_killed_and_stopped_runs(case: Case) -> None:
    found = only(case.write(steps=6000, end=None, bundle=False), "unfinished", "warning")
    assert "step 6,000 of 10,000" in found.what
    assert f"--out {case.folder} --resume" in found.advice


def test_a_signal(case: Case) -> None:
    only(case.write(steps=6000, end="signal", bundle=False), "stopped", "warning")


def test_a_missing_bundle(case: Case) -> None:
    only(case.write(bundle=False), "no-bundle", "error")


def test_an_empty_log(case: Case) -> None:
    only(case.write(steps=0, end=None), "no-steps", "error")


def test_a_few_skipped_updates_are_a_note_and_many_a_warning(case: Case) -> None:
    found = only(case.write(skips=[500, 7000]), "skipped", "note")
    assert "2 updates (0.02%)" in found.what
    assert "step 500" in found.what


def test_many_skipped_updates(case: Case) -> None:
    only(case.write(skips=list(range(2000, 10_000, 50))), "skipped", "warning")


def test_training_that_ended_in_nan(case: Case) -> None:
    found = case.write(steps=2010, skips=range(2001, 2011), end=None, bundle=False)
    assert [finding.name for finding in found] == ["unfinished", "not-finite"]
    assert "10 updates in a row" in found[1].what
    assert "train.clip_norm=1" in found[1].advice


def test_divergence(case: Case) -> None:
    found = case.write(
        loss=lambda s: fall(s) if s < 6000 else 6.5, valid_loss=lambda s: 1.6 if s < 6000 else 6.8,
        bleu=lambda s: rise(s) if s < 6000 else 0.1,
    )  # fmt: skip
    finding = only(found, "diverged", "error")
    assert "train.lr=0.0005" in finding.advice


def test_a_rate_that_is_too_low(case: Case) -> None:
    found = case.write(loss=lambda s: 8.0 - s * 1e-5, valid_loss=lambda s: 8.0, bleu=lambda s: 0.0, rate=lambda s: 1e-6)
    only(found, "rate-too-low", "error")


def test_a_rate_that_is_too_high(case: Case) -> None:
    found = case.write(
        loss=lambda s: 6.7 + s % 3 * 0.01, valid_loss=lambda s: 6.8, bleu=lambda s: 0.0, rate=lambda s: 0.05
    )
    finding = only(found, "stuck", "error")
    assert "too high" in finding.what


def test_gradients_that_jump(case: Case) -> None:
    assert case.write(grad_norm=lambda s: 50.0 if s % 1000 == 0 else 1.0, config={"train": {"clip_norm": 1.0}}) == []


def test_gradients_that_jump_and_are_not_clipped(case: Case) -> None:
    only(case.write(grad_norm=lambda s: 50.0 if s % 1000 == 0 else 1.0), "gradient-spikes", "warning")


def test_overfitting(case: Case) -> None:
    found = case.write(
        loss=lambda s: 3.0 * math.exp(-s / 3000) + 0.1, valid_loss=lambda s: 1.8 + abs(s - 3000) / 5000,
        bleu=lambda s: rise(min(s, 4000)) - s / 1e5,
    )  # fmt: skip
    finding = only(found, "overfitting", "warning")
    assert "(step 3,000)" in finding.what
    assert "train.patience" in finding.advice


def test_a_plateau(case: Case) -> None:
    finding = only(case.write(bleu=lambda s: rise(s) if s <= 3000 else rise(3000) - 0.5), "plateau", "note")
    assert "in the 14 validations since" in finding.what


def test_underfitting(case: Case) -> None:
    finding = only(case.write(bleu=lambda s: s / 400), "still-learning", "note")
    assert "train.max_steps=20000" in finding.advice


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (dict(), "the target is not shifted"),
        (dict(chrf=lambda s: 45.0), "words are split in another way"),
        (dict(valid_loss=lambda s: 9.0), "the validation set is from another domain"),
        (dict(samples=[{**s, "hyp": ""} for s in SAMPLES]), "the translations are empty"),
        (dict(samples=[{**s, "hyp": "Der Mann."} for s in SAMPLES]), "every translation is the same ('Der Mann.')"),
        (
            dict(samples=[{**s, "src": s["ref"] + " Das ist nicht der Hund."} for s in SAMPLES]),
            "in the target language",
        ),
    ],
)
def test_high_accuracy_but_bleu_near_zero(case: Case, settings: dict[str, Any], says: str) -> None:
    finding = only(
        case.write(**({"bleu": lambda s: 0.3, "chrf": lambda s: 5.0} | settings)), "accurate-but-bleu-zero", "error"
    )
    assert says in finding.what
    assert "training perplexity is 3.3, but BLEU is 0.3" in finding.what


def test_bleu_near_zero_early_in_training_is_no_illness(case: Case) -> None:
    only(case.write(loss=lambda s: 5.0 - s / 5000, bleu=lambda s: 0.3, steps=500, end=None), "unfinished", "warning")


def test_training_that_ended_too_early(case: Case) -> None:
    only(case.write(loss=lambda s: 5.0 - s / 5000, bleu=lambda s: 0.3, steps=500), "too-short", "warning")


@pytest.mark.parametrize(
    ("train", "reason", "advice"),
    [
        ({"max_minutes": 0.9, "max_steps": 9000}, "max_minutes", "--set train.max_minutes=2"),
        ({"max_minutes": 0.9, "max_steps": 700}, "max_minutes", "--set train.max_minutes=2 --set train.max_steps=1000"),
        ({"max_minutes": 0.1}, "max_steps", "--set train.max_minutes=1 --set train.max_steps=1000"),
        ({"max_minutes": 60}, "max_steps", "--set train.max_steps=1000"),
        ({"max_epochs": 3}, "max_epochs", "--set train.max_epochs=6"),
        ({"patience": 2}, "patience", "--set train.patience=4"),
    ],
)
def test_to_train_longer_is_to_raise_what_ended_the_run(
    case: Case, train: dict[str, Any], reason: str, advice: str
) -> None:
    early: dict[str, Any] = dict(loss=lambda s: 5.0 - s / 5000, bleu=lambda s: 0.3, steps=500)
    found = case.write(**early, end=reason, config={"train": train})
    assert advice in only(found, "too-short", "warning").advice


def test_bleu_near_zero_after_long_training(case: Case) -> None:
    only(case.write(loss=lambda s: 5.0 - s / 5000, valid_loss=lambda s: 5.0, bleu=lambda s: 0.3), "bleu-zero", "error")


def test_a_model_that_is_hardly_trained(case: Case) -> None:
    found = only(case.write(loss=lambda s: 5.0 - s / 5000, bleu=lambda s: 4.4, steps=700), "too-short", "warning")
    assert (
        found.what
        == "BLEU is 4.4: training ended after 2,800,000 target tokens; readable translations take about 3,000,000"
    )


def test_a_model_that_still_makes_no_sense_after_long_training(case: Case) -> None:
    """Its BLEU rises to the end: that it was still learning is not said beside that."""
    found = case.write(loss=lambda s: 5.0 - s / 5000, valid_loss=lambda s: 5.0, bleu=lambda s: 4.4 * s / STEPS)
    assert "too little to translate" in only(found, "bleu-low", "warning").what


def test_a_low_bleu_at_a_low_perplexity_may_be_hard_text(case: Case) -> None:
    assert case.write(bleu=lambda s: 4.0 * s / STEPS) == []


def test_a_small_validation_set(case: Case) -> None:
    assert "has 50 pairs" in only(case.write(valid_pairs=50), "small-validation", "note").what


def test_many_dropped_pairs(case: Case) -> None:
    report = {"read": 1000, "kept": 700, "empty": 0, "too_long": 250, "ratio": 50, "duplicates": 0}
    finding = only(case.write(report=report), "dropped", "warning")
    assert (
        finding.headline()
        == "300 of 1,000 pairs (30.0%) were dropped before training: 250 too long, 50 with very different lengths"
    )


def test_a_vocabulary_that_was_lowered(case: Case) -> None:
    only(case.write(config={"data": {"tokenizer": {"vocab_size": 1437}}}), "vocabulary", "note")


@pytest.mark.parametrize("size", [8000, 32768, 37000, 1600])
def test_a_vocabulary_that_was_asked_for(case: Case, size: int) -> None:
    assert case.write(config={"data": {"tokenizer": {"vocab_size": size}}}) == []


def test_steps_that_become_slow(case: Case) -> None:
    assert "9,0" in only(case.write(speed=lambda s: 9000 + s % 7 if s < 5000 else 3000 + s % 7), "slower", "note").what


def test_a_line_that_a_crash_cut_short_is_passed_over(case: Case) -> None:
    case.write()
    with (case.folder / "log.jsonl").open("ab") as file:
        file.write('{"event": "train", "step": 9, "loss": "ü'.encode()[:-1])
    assert check_run(read_run(case.folder)) == []


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml: no such file"):
        read_run(tmp_path)


def test_every_check_says_what_it_looks_for() -> None:
    assert all(check.__doc__ for check in CHECKS)


# --- real runs --------------------------------------------------------------------------------------------------------


def test_a_real_run_that_goes_well(tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    told = (run / "log.jsonl").read_text(encoding="utf-8")
    even = re.sub(r'"tokens_per_s": [\d.]+', '"tokens_per_s": 9000.0', told)  # whatever else the machine had to do
    (run / "log.jsonl").write_text(even, encoding="utf-8")
    names = {finding.name for finding in check_run(read_run(run))}
    assert names <= {"small-validation", "vocabulary"}  # it has 20 validation pairs, and a toy vocabulary


def test_a_real_run_at_a_rate_far_too_high(tmp_path: Path, tiny: Callable[..., dict[str, Any]]) -> None:
    mapping = tiny(max_steps=60, lr=30.0, warmup_steps=5, clip_norm=None, log_every=2, validate_every=60, save_every=60)
    run = tmp_path / "run"
    with contextlib.suppress(DragomanError):  # it may stop at too many updates that are not finite
        dragoman.train(dragoman.Config.from_mapping(mapping), out=run, quiet=True)
    found = {finding.name: finding for finding in check_run(read_run(run))}
    names = {"diverged", "stuck", "not-finite"} & set(found)
    assert names
    assert all(found[name].level == "error" and "train.lr=0.0015" in found[name].advice for name in names)


def test_where_it_diverged_is_the_step_of_the_best_loss_whatever_was_no_number_before(case: Case) -> None:
    def loss(step: int) -> float:
        return math.nan if step <= 2000 else fall(step) if step < 6000 else 6.5

    finding = only(case.write(loss=loss, bleu=lambda s: 0.1), "diverged", "error")
    step = int(re.search(r"about step ([\d,]+)", finding.what)[1].replace(",", ""))  # type: ignore[index]
    assert 5500 <= step <= 6000
