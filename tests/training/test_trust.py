"""What tells a user that a training is not what it seems: advice, warnings before it begins, sizes of students."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.cli.commands import load
from dragoman.config import PRESETS, Config, ModelConfig, OneFile, TrainConfig
from dragoman.data.order import epoch_batches
from dragoman.data.store import Store
from dragoman.data.texts import refuse_other_languages
from dragoman.distillation.sizes import is_smaller, sizes_below
from dragoman.documents import translate as document
from dragoman.evaluation import ledger
from dragoman.files import pinned
from dragoman.progress import Ticker
from dragoman.training import run as training
from dragoman.training.advice import divergence, longer, lower_rate, retrain, working_rate
from dragoman.training.finetune import PARENT, PATH
from dragoman.training.preparation import Repeated
from dragoman.translation.translator import Translator
from outcomes import read_log, write_config

German = "Der alte Mann sieht das rote Haus und die kleine Katze, weil es heute nicht regnet, sagt seine Frau {i}."


@pytest.mark.parametrize(
    ("schedule", "lr", "d_model", "expected"),
    [
        ("cosine", 1e6, 128, 1.5e-3), ("cosine", 1e-2, 512, 7.5e-4), ("inverse_sqrt", 1e-3, 256, 5e-4),
        ("noam", 30.0, 512, 1.0), ("noam", None, 512, 0.5),
    ],
)  # fmt: skip
def test_a_rate_that_is_known_to_work_is_lower(schedule: str, lr: float | None, d_model: int, expected: float) -> None:
    train = TrainConfig(schedule=schedule, lr=lr)  # type: ignore[arg-type]
    assert working_rate(train, d_model) == expected
    assert working_rate(train, d_model, fine_tuned=True) <= expected
    assert lower_rate(train, d_model) == {"lr": expected, "clip_norm": 1}


def test_advice_is_a_command_to_paste(tmp_path: Path) -> None:
    command = retrain(tmp_path / "my run", {"lr": 1.5e-3, "max_steps": 20})
    assert shlex.split(command) == [
        "dragoman", "train", f"{tmp_path}/my run/config.yaml", "--set", "train.lr=0.0015",
        "--set", "train.max_steps=20", "--out", f"{tmp_path}/my run-2",
    ]  # fmt: skip
    assert longer(TrainConfig(max_minutes=2), "max_minutes", 100, 130.0, 3) == {"max_minutes": 7}


@pytest.mark.parametrize("named", [Path, pinned])
@pytest.mark.parametrize("moved", [False, True])
def test_advice_names_the_parent_where_it_is_and_new_subwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: bool, named: Callable[[str], Path]
) -> None:
    """It named a run of that name beside the run, and left out --new-subwords, without which it is another training."""
    monkeypatch.chdir(tmp_path)
    for folder in ("models/base", "models/base/bundle", "runs/tuned", "elsewhere"):
        Path(folder).mkdir(parents=True)
    run = named("runs/tuned")
    given = Path("models/base/bundle")
    (run / PARENT).write_text(
        json.dumps({"name": "bundle", PATH: os.path.relpath(given, run), "composed_rows": 3}), encoding="utf-8"
    )
    if moved:
        (run.parent / "bundle").mkdir()
        shutil.rmtree("models")
    there = "runs/bundle" if moved else str(given)
    assert shlex.split(retrain(run, {})) == [
        "dragoman", "train", "runs/tuned/config.yaml", "--from-run", there, "--new-subwords", "--out", "runs/tuned-2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("noted", "there"),
    [
        ({"is_ready": True}, "en-de"),
        ({"is_ready": False, PATH: "../../models/en-de"}, "models/en-de"),  # gone, and no ready one
        ({}, "runs/en-de"),  # of an older version
    ],
)
def test_advice_takes_no_other_run_of_that_name_for_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: dict[str, Any], there: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs/tuned").mkdir(parents=True)
    if PATH not in noted:
        Path("runs/en-de").mkdir()
    Path("runs/tuned", PARENT).write_text(json.dumps({"name": "en-de", **noted}), encoding="utf-8")
    assert f" --from-run {there} --out " in retrain(Path("runs/tuned"), {})


def test_a_memory_or_a_table_in_another_language_or_direction_is_refused(
    tiny_run: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    """Its sides were exchanged, or it was in another language, and bore the names of those that were wanted."""
    for lang in ("en", "fr"):
        rows = "".join(f"der Hund {i}\tthe dog {i}\n" for i in range(150))
        (tmp_path / f"{lang}.tsv").write_text(f"de\t{lang}\n{rows}", encoding="utf-8")
        sides = '<tuv xml:lang="de"><seg>der Hund {i}</seg></tuv><tuv xml:lang="{lang}"><seg>the dog {i}</seg></tuv>'
        units = "".join(f"<tu>{sides.format(i=i, lang=lang)}</tu>" for i in range(150))
        (tmp_path / f"{lang}.tmx").write_text(f"<tmx><body>{units}</body></tmx>", encoding="utf-8")
    wanted = ("--set", "data.src_lang=en", "--set", "data.tgt_lang=de")
    for name in ("en.tsv", "en.tmx"):
        for more in (("--from-run", str(tiny_run)), wanted):
            done = command("train", name, *more, "--out", "x", cwd=tmp_path)
            assert done.status == 2
            assert f"{name}: read as de to en, where en to de is wanted; give --columns en,de" in done.error
    for name in ("fr.tsv", "fr.tmx"):
        done = command("train", name, "--columns", "fr,de", "--from-run", str(tiny_run), "--out", "x", cwd=tmp_path)
        assert done.status == 2
        assert (
            f"{name}: French (fr), but --from-run {tiny_run} translates from English (en): give text in" in done.error
        )
        assert "or set data.src_lang=fr and data.tgt_lang=de if new languages are meant" in done.error
    done = command(
        "train", "en.tsv", "--from-run", str(tiny_run), "--set", "data.src_lang=en", "--out", "x", cwd=tmp_path
    )
    assert "en.tsv: read as de to en, where en to de is wanted; give --columns en,de" in done.error
    assert not (tmp_path / "x").exists()


def test_a_memory_in_a_variety_of_the_language_is_none_in_another(tmp_path: Path) -> None:
    """As two files named so are none."""
    (tmp_path / "m.tsv").write_text("en\tzh-TW\na\tb\n", encoding="utf-8")
    refuse_other_languages(OneFile(file=tmp_path / "m.tsv"), ("en", "zh"), "x translates", "")


def test_divergence_is_told_from_a_slow_start(tiny: Callable[..., Any]) -> None:
    config = Config.from_mapping(tiny())
    assert divergence([6.0, 5.9], config, 0, 2) is None
    assert divergence([6.0, 5.0, 4.0, 3.5, 3.2, 3.1, 3.0], config, 0, 70) is None
    assert divergence([], config, 1, 3) is None
    assert "6 of 8 updates were NaN" in str(divergence([6.0], config, 6, 8))
    assert "guessing would give" in str(divergence([6.0] * 4 + [900.0] * 8, config, 0, 70))
    assert "rose from 3.00 nats" in str(divergence([6.0, 5.0, *[3.0] * 8, *[5.0] * 8], config, 0, 70))


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_training_that_diverged_is_an_error_with_its_bundle_written(
    tiny: Callable[..., Any], command: Callable[..., Any], tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    """It ended with status 0 and "Try it", and with --quiet it said nothing."""
    write_config(tmp_path / "x.yaml", tiny(lr=5000.0, clip_norm=None))
    done = command("train", "x.yaml", "--out", "x", *quiet, cwd=tmp_path)
    assert (done.status, done.out) == (2, b"x\n")
    message = "error: training diverged: the training loss is "
    assert message in done.err
    assert "\n  dragoman train x/config.yaml --set train.lr=" in done.err
    assert "Try it" not in done.err
    if quiet:
        assert done.err.startswith(message)
        assert len(done.err.splitlines()) == 2
    assert (tmp_path / "x/bundle/manifest.json").is_file()


def test_train_returns_how_a_training_diverged(
    tiny: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Config.from_mapping(tiny(lr=5000.0, clip_norm=None))
    trained = dragoman.train(config, out=tmp_path / "x", quiet=True)
    assert trained.diverged is not None
    assert f"error: training diverged: {trained.diverged}. " in capsys.readouterr().err
    assert trained.validation is not None
    sound = dragoman.train(Config.from_mapping(tiny(max_steps=2)), out=tmp_path / "y", quiet=True)
    assert (sound.diverged, capsys.readouterr().err) == (None, "")


def test_a_bundle_says_that_the_loss_chose_it_where_bleu_is_chance(tiny: Callable[..., Any], tmp_path: Path) -> None:
    config = Config.from_mapping(tiny(max_steps=3, validate_every=1))
    run = dragoman.train(config, out=tmp_path / "x", quiet=True).run
    assert max(float(event["bleu"]) for event in read_log(run) if event["event"] == "validation") < 1
    weights = json.loads((run / "bundle/manifest.json").read_text(encoding="utf-8"))["weights"]
    assert weights == "best by validation loss, BLEU being below 1, step 3"


def test_pairs_of_the_validation_set_in_the_training_text_are_counted(tiny_run: Path) -> None:
    valid = Store.open(tiny_run / "store/valid")
    pairs = list(zip(*valid.texts(range(len(valid))), strict=True))
    repeated = Repeated.of(valid)
    assert list(repeated.watched([("a", "b"), *pairs[:5], *pairs[:5]])) == [("a", "b"), *pairs[:5], *pairs[:5]]
    assert str(repeated).startswith(f"5 of its {len(repeated.pairs)} pairs stand in the training text, so scores")
    list(repeated.watched(pairs))
    assert str(repeated).startswith("it is the training text (")


def test_a_configuration_that_takes_hours_says_so_before_it_begins(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "tokens_per_second", lambda config, length: 1000.0)
    config = Config.from_yaml(tiny_run / "config.yaml")
    plan = training.TrainingPlan(config, False, None, None)

    def said(**changes: Any) -> str:
        changed = config.model_copy(update={"train": config.train.model_copy(update=changes)})
        training.report_long_training(plan, changed, tiny_run, Ticker())
        return capsys.readouterr().err

    assert said() == ""
    assert said(max_steps=100_000, batch_tokens=25_000, max_minutes=5.0) == ""
    told = said(max_steps=100_000, batch_tokens=25_000)
    assert "100,000 steps take about 694 hours on this machine; they read the text" in told
    assert "Without the configuration" in told
    plan = plan._replace(chosen=True)
    assert "--minutes N chooses what fits" in said(max_steps=100_000, batch_tokens=25_000)


def test_the_hours_are_those_of_the_epochs_and_all_processes_read_the_text(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a run of 3 epochs it was said that 100,000 steps read the text thousands of times."""
    monkeypatch.setattr(training, "tokens_per_second", lambda config, length: 1.0)
    monkeypatch.setattr(training, "FLOPS_AN_HOUR", {"cpu": 0.0})
    config = Config.from_yaml(tiny_run / "config.yaml")
    plan, store = training.TrainingPlan(config, False, None, None), Store.open(tiny_run / "store/train")
    n = sum(1 for _ in epoch_batches(store.src_lengths(), store.tgt_lengths(), 500, config.train.seed, 0))

    def said(*n_ranks: int, **changes: Any) -> str:
        train = config.train.model_copy(update={"max_steps": 100_000, "batch_tokens": 500, **changes})
        training.report_long_training(plan, config.model_copy(update={"train": train}), tiny_run, Ticker(), *n_ranks)
        return capsys.readouterr().err

    ends = "on this machine; --minutes N ends it after N minutes"
    assert f"{20 * n:,} steps take about {20 * n * 500 / 3600:,.0f} hours {ends}" in said(max_epochs=20)
    assert f"they read the text {100_000 / n:,.0f} times" in said()
    assert f"they read the text {400_000 / n:,.0f} times" in said(4)
    steps = math.ceil(20 * n / 4)
    assert f"{steps:,} steps take about {steps * 500 / 3600:,.0f} hours {ends}" in said(4, max_epochs=20)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_student_that_nobody_sized_is_smaller_than_its_teacher(preset: str) -> None:
    teacher = ModelConfig(**{**PRESETS[preset], "src_vocab_size": 2000, "tgt_vocab_size": 2000})
    assert is_smaller(sizes_below(teacher), teacher)
    assert not is_smaller(dict(PRESETS[preset]), teacher)


def test_the_least_teacher_has_a_smaller_student_too() -> None:
    teacher = ModelConfig(
        src_vocab_size=400, tgt_vocab_size=400, d_model=48, d_ff=64, n_heads=2, n_encoder_layers=1, n_decoder_layers=1
    )
    assert is_smaller(sizes_below(teacher), teacher)
    large = ModelConfig(**{**PRESETS["big"], "src_vocab_size": 32000, "tgt_vocab_size": 32000})
    assert sizes_below(large) == PRESETS["student"]


def test_each_evaluation_is_counted_in_the_run(tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run, ignore=shutil.ignore_patterns("evaluations.jsonl"))
    translator = Translator.load(run)
    test = ledger.TestSet(["t.en", "t.de"], [["a dog"], ["ein hund"]])
    assert ledger.enter(translator, test, []) == ""
    assert ledger.enter(translator, test._replace(lines=[["a cat"], ["ein hund"]]), []) == ""
    assert ledger.enter(translator, test, []).startswith(f"evaluation 2 of {run} on t.en: ")
    with (run / ledger.LEDGER).open("a") as file:
        file.write('{"cut\n[]\n')
    assert [entry["files"] for entry in ledger.read(run)] == [["t.en", "t.de"]] * 3
    assert ledger.enter(Translator.load(run / "bundle"), test, []) == ""


def test_what_was_read_before_is_said_where_a_ledger_cannot_be_written(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run, ignore=shutil.ignore_patterns("evaluations.jsonl"))
    translator = Translator.load(run)
    test = ledger.TestSet(["t.en", "t.de"], [["a dog"], ["ein hund"]])
    assert ledger.enter(translator, test, []) == ""

    def read_only(file: Any) -> bytes:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(ledger, "missing_line_end", read_only)
    said = ledger.enter(translator, test, [])
    assert said.startswith(f"evaluation 2 of {run} on t.en: ")
    assert "; this evaluation is not counted: " in said
    assert len(ledger.read(run)) == 1


def test_the_robustness_of_a_run_is_an_evaluation_too(tiny_run: Path, corpus: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run, ignore=shutil.ignore_patterns("evaluations.jsonl"))
    clean, *_ = dragoman.stress(run, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True)
    (entry,) = ledger.read(run)
    assert entry["scores"] == {"BLEU": clean.bleu, "chrF2": clean.chrf}
    dragoman.evaluate(run, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True)
    assert len({entry["sha256"] for entry in ledger.read(run)}) == 1


def _advised(error: str) -> set[str]:
    """Return the options that an error names."""
    return set(re.findall(r"--[a-z-]+", error))


def _options_of(command: str) -> set[str]:
    return {name for parameter in load(command).params for name in parameter.opts}


def test_mixed_up_files_are_refused_or_named_once(tiny_run: Path, command: Callable[..., Any], tmp_path: Path) -> None:
    german = "".join(German.format(i=i) + "\n" for i in range(6))
    for name in ("t.de", "t.txt"):
        (tmp_path / name).write_text(german, encoding="utf-8")
    (tmp_path / "t.en").write_text("the old man sees the house\n" * 6, encoding="utf-8")
    calls: dict[tuple[str, ...], str] = {
        ("translate", str(tiny_run), "t.de"): "give text in English (en), or add --from en if the name is wrong",
        ("evaluate", str(tiny_run), "--src", "t.de", "--ref", "t.en"): "swap the two files, or add --from en",
        ("score", str(tiny_run), "--src", "t.de", "--ref", "t.en"): "swap the two files, or add --from en",
        (
            "train",
            "t.de",
            "t.en",
            "--from-run",
            str(tiny_run),
        ): "set data.src_lang=de and data.tgt_lang=en if new",
        ("evaluate", "t.de", "--ref", "t.en"): "t.en: English (en) by its name, but t.de is in German (de)",
    }
    for call, told in calls.items():
        refused = command(*call, cwd=tmp_path)
        assert refused.status == 2
        assert told in refused.error
        assert _advised(refused.error) <= _options_of(call[0])
    shutil.copytree(tiny_run, tmp_path / "teacher")  # whose engine may leave an export there
    distill = ("distill", "teacher", "--out", "x")
    swapped = ("--src", "t.de", "--ref", "t.en")
    for call in (
        (*distill, *swapped),
        (*distill, "--src", "t.en", "--valid-src", "t.de", "--valid-ref", "t.en"),
    ):
        assert "swap the two files, or add --from en" in command(*call, cwd=tmp_path).error
        assert "--from" in _options_of(call[0])
    # these have no --from
    for call in (
        ("calibrate", str(tiny_run), *swapped),
        ("export", str(tiny_run), "--format", "ctranslate2", "--out", "x", "--check", *swapped[1:]),
        ("report", str(tiny_run), *swapped),
    ):
        error = command(*call, cwd=tmp_path).error
        assert "t.de: German (de) by its name, but" in error
        assert error.endswith(": swap the two files, or rename it if the name misleads")
        assert _advised(error) <= _options_of(call[0])
    warned = command("score", tiny_run, "--src", "t.txt", "--ref", "t.txt", cwd=tmp_path)
    warnings = [line for line in warned.err.split("\n") if line.startswith("warning: t.txt: ")]
    assert len(warnings) == 2
    assert warnings[0].startswith("warning: t.txt: looks like German (de), but")
    assert warnings[1] == "warning: t.txt: the same text as t.txt; is it the right file?"


def test_standard_input_and_documents_in_another_language_are_named_once(
    tiny_run: Path, command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    german = [German.format(i=i) for i in range(6)]
    text = "".join(line + "\n" for line in german).encode()
    monkeypatch.setattr(document, "MOST_DOUBTFUL", 1)
    (tmp_path / "docs").mkdir()
    for i in range(2):
        (tmp_path / f"docs/{i}.md").write_text("\n\n".join(german) + "\n", encoding="utf-8")
    about = "looks like German (de), but"
    run = ("translate", tiny_run, "--beam-size", "1")
    named = {
        "stdin": command(*run, stdin=text, cwd=tmp_path),
        "line 1": command(*run, "-i", stdin=text, cwd=tmp_path),
        "docs/0.md": command("translate", tiny_run, "docs", "--out", "x", cwd=tmp_path),
    }
    for name, done in named.items():
        assert done.status == 0
        lines = [line for line in done.err.split("\n") if f"warning: {name}: {about}" in line]
        assert len(lines) == 1, done.err
    in_folder = [line for line in named["docs/0.md"].err.split("\n") if about in line]
    assert len(in_folder) == 1
    assert in_folder[-1].endswith("; further files with such text are not named")
    english = command(*run, stdin=b"the old man sees the house by the water\n" * 6, cwd=tmp_path)
    assert "looks like" not in english.err
