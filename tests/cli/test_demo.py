"""The demo: its text never changes, it says what is missing, and it goes on."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from dragoman.cli import demo
from dragoman.config import Config, with_overrides
from dragoman.data import phrasebook
from dragoman.errors import ConfigError
from dragoman.progress import Ticker
from dragoman.training.run import Trained

SUMS = {  # of English, German and Chinese: SHA-256, its first 16 digits
    "train": ("c82b54ff469a2b06", "4760c99c17045b03", "42346904d56aa9fa"),
    "valid": ("b36b80dced239008", "5728723ffa8f9a88", "1d4bdc593663175e"),
    "held_out": ("92995c5affd93c74", "bb6656559a509978", "c2ff5454ba43e96f"),
    "deeper": ("7b3e38b62a1d806c", "370d93986f12eef9", "ff99261e57104fd0"),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_text_of_the_demo_is_the_one_that_its_figures_are_of(name: str) -> None:
    """The test sets are summed whole; of the training text the first 1,000 pairs."""
    count, split, seed = demo.SPLITS[name]
    german, chinese = (
        list(phrasebook.pairs(min(count, 1000), seed=seed, tgt_lang=lang, split=split)) for lang in ("de", "zh")
    )
    sides = [[pair[0] for pair in german], [pair[1] for pair in german], [pair[1] for pair in chinese]]
    sums = tuple(hashlib.sha256("".join(f"{line}\n" for line in side).encode()).hexdigest()[:16] for side in sides)
    assert sums == SUMS[name]
    assert demo.SPLITS["train"][0] == 120_000


def trained(**values: Any) -> Trained:
    return Trained(**{**dict(run=Path("x"), reason="max_minutes", step=425, seconds=720.0, validation=None), **values})


def test_what_is_missing_names_the_share_the_steps_and_the_command_that_goes_on() -> None:
    text = demo.what_is_missing(trained(), 0.105, Path("runs/demo"), "de")
    assert "10.5% are exactly right, and the demo is to reach 97%" in text
    assert "425 of about 1,700 steps in 12 minutes: this machine was busy or is slow" in text
    assert text.endswith("\n  # go on for 36 minutes\n  dragoman demo --resume --minutes 36")


def test_another_language_and_folder_are_in_the_command_that_goes_on() -> None:
    text = demo.what_is_missing(trained(reason="max_steps", step=1700), 0.9, Path("my runs/x"), "zh")
    assert "busy" not in text
    (command,) = [line for line in text.split("\n") if line.startswith("  dragoman ")]
    assert shlex.split(command)[2:] == [
        "--resume", "--minutes", "5", "--to", "zh", "--out", "my runs/x",
    ]  # fmt: skip


def test_a_limit_that_is_given_twice_is_refused(command: Callable[..., Any], tmp_path: Path) -> None:
    twice = ("demo", "--minutes", "3", "--set", "train.max_minutes=60")
    for words in (twice, (*twice, "--resume")):
        done = command(*words, cwd=tmp_path)
        assert done.status == 2
        assert "minutes=3, but override train.max_minutes=60: give one of them" in done.error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("speed", "minutes", "sentence"),
    [(21_760.0, 12.0, "stops earlier once it is good enough"), (2_000.0, 12.0, "--minutes 44 gives it the time")],
)
def test_the_time_is_estimated_before_training(
    monkeypatch: pytest.MonkeyPatch, speed: float, minutes: float, sentence: str
) -> None:
    monkeypatch.setattr("dragoman.training.speed.tokens_per_second", lambda config, length: speed)
    text = {"train": {"src": "a.en", "tgt": "a.de"}}
    recipe = {**demo.RECIPE, "data": {**demo.RECIPE["data"], **text}}
    config = Config.from_mapping(with_overrides(recipe, [f"train.max_minutes={minutes}"]))
    assert sentence in demo.estimate(config)


TINY = (
    "model.d_model=16", "model.d_ff=16", "model.n_heads=2", "model.n_encoder_layers=1", "model.n_decoder_layers=1",
    "data.tokenizer.vocab_size=400", "train.batch_tokens=256", "train.warmup_steps=2", "train.validate_every=4",
    "train.save_every=4", "train.log_every=4", "decode.beam_size=1", "train.device=cpu",
)  # fmt: skip


def test_a_demo_that_falls_short_says_so_and_is_continued(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "MORE_STEPS", 4)
    monkeypatch.setattr(demo, "estimate", lambda _: "")
    sizes = {"train": 300, "valid": 20, "held_out": 20, "deeper": 20}
    splits = {name: (sizes[name], *demo.SPLITS[name][1:]) for name in sizes}
    monkeypatch.setattr(demo, "SPLITS", splits)
    for name in ("draw", "write_page"):
        monkeypatch.setattr(demo, name, lambda *_: None)
    run = tmp_path / "run"
    assert demo.run_demo("de", run, (*TINY, "train.max_steps=4")) is None
    out = capsys.readouterr().out
    assert out.index("Not there yet: 0.0%") < out.index("dragoman demo --resume") < out.index("Now you:")
    assert demo.run_demo("de", run, resume=True) is None
    assert [line for line in (run / "log.jsonl").read_text(encoding="utf-8").split("\n") if '"end"' in line]
    assert Config.from_yaml(run / "config.yaml").train.max_steps == 8
    with pytest.raises(ConfigError, match="already holds a run: go on with --resume"):
        demo.run_demo("de", run)
    with pytest.raises(ConfigError, match=r"no demo to resume, as .* is missing; leave out --resume to start one"):
        demo.run_demo("de", tmp_path / "other", resume=True)


def test_a_demo_that_was_killed_before_its_training_begins_again(tmp_path: Path) -> None:
    (tmp_path / "run/corpus").mkdir(parents=True)
    for name in ("config.yaml", *(f"corpus/{name}.{lang}" for name in demo.SPLITS for lang in ("en", "de"))):
        (tmp_path / "run" / name).write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"no demo to resume, as .*log.jsonl is missing; leave out --resume"):
        demo.run_demo("de", tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match="max_steps"):  # no refusal of the folder
        demo.run_demo("de", tmp_path / "run", ("train.max_steps=0",))


SMALL = {"train": (300, "train", 1), "valid": (20, "held_out", 2), "held_out": (20, "held_out", 3)}


@pytest.mark.parametrize("more", ["", "linked", "config.yaml", "longer"])
def test_text_of_another_author_is_refused_by_name_and_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listing: Callable[[Path], list[str]], more: str
) -> None:
    """It was overwritten in place, through links, also where the folder was refused afterwards."""
    monkeypatch.setattr(demo, "SPLITS", SMALL)
    monkeypatch.setattr(demo, "estimate", lambda _: "")
    corpus, mine = tmp_path / "run/corpus", tmp_path / "mine.de"
    corpus.mkdir(parents=True)
    text = "".join(f"{german}\n" for _, german in phrasebook.pairs(20, seed=3, split="held_out"))
    text = f"{text}Noch ein Satz.\n" if more == "longer" else text.replace("\n", " Ja.\n", 3)
    mine.write_text(text, encoding="utf-8")
    if more == "linked":
        (corpus / "held_out.de").symlink_to(mine)
    else:
        mine.rename(corpus / "held_out.de")
    if more == "config.yaml":
        (tmp_path / "run/config.yaml").write_text("mine: 1\n", encoding="utf-8")
    before = listing(tmp_path)
    with pytest.raises(ConfigError, match=r"corpus/held_out\.de: the demo would replace this file, .* another --out"):
        demo.run_demo("de", tmp_path / "run", (*TINY, "train.max_steps=4"))
    assert (corpus / "held_out.de").read_text(encoding="utf-8") == text
    assert listing(tmp_path) == before


@pytest.mark.parametrize("name", ["attention.svg", "attention.png", "translator.html"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_map_and_a_page_of_others_are_refused_before_the_training(
    tmp_path: Path, listing: Callable[[Path], list[str]], name: str, resume: bool
) -> None:
    (tmp_path / name).write_text("<!doctype html>\n<html lang='en'><title>dragoman</title>", encoding="utf-8")
    before = listing(tmp_path)
    with pytest.raises(ConfigError, match=rf"{name}: .* replace this file, which .*; move it away, or choose another"):
        demo.run_demo("de", tmp_path, (*TINY, "train.max_steps=4"), resume=resume)
    assert listing(tmp_path) == before


def test_files_of_others_that_training_would_replace_are_refused_before_the_corpus_is_written(
    tmp_path: Path, listing: Callable[[Path], list[str]]
) -> None:
    (tmp_path / "samples.txt").write_text("mine\n", encoding="utf-8")
    before = listing(tmp_path)
    with pytest.raises(ConfigError, match=r"samples\.txt: training would replace this file"):
        demo.run_demo("de", tmp_path, (*TINY, "train.max_steps=4"))
    assert listing(tmp_path) == before


def test_the_beginning_that_a_killed_demo_leaves_is_replaced_by_the_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "SPLITS", SMALL)
    files = demo.files_of(tmp_path, "de")
    demo.write_corpus(files, "de", Ticker(quiet=True))
    whole = {path: path.read_bytes() for sides in files.values() for path in sides.values()}
    for path in files["train"].values():
        path.write_bytes(whole[path][:1001])
    files["valid"]["src"].write_bytes(b"")
    demo.refuse_other_text(files, "de", Ticker(quiet=True))
    demo.write_corpus(files, "de", Ticker(quiet=True))
    assert {path: path.read_bytes() for path in whole} == whole


def test_a_demo_that_diverged_ends_with_the_error_that_training_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It scored the model, and proposed to go on with it."""
    monkeypatch.setattr(demo, "train_demo", lambda *_: trained(diverged="the training loss is 900.0 nats"))
    with pytest.raises(typer.Exit) as ended:
        demo.run_demo("de", tmp_path / "run")
    assert ended.value.exit_code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("share", [0.97, 1.0])
def test_a_demo_that_reaches_its_goal_says_nothing_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float
) -> None:
    outcome: Callable[..., Trained] = lambda *_: trained(reason="goal")  # noqa: E731
    monkeypatch.setattr(demo, "train_demo", outcome)
    monkeypatch.setattr(demo, "report", lambda *_: share)
    for name in ("draw", "write_page"):
        monkeypatch.setattr(demo, name, lambda *_: None)
    monkeypatch.setattr("dragoman.translation.translator.Translator.load", lambda _: None)
    assert demo.run_demo("de", tmp_path / "run") is None
    assert "Not there yet" not in capsys.readouterr().out


def test_a_task_says_how_much_of_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    import time

    ticker = Ticker(every_s=0.01)
    with ticker.task("validating") as report:
        report(3, 4)
        time.sleep(0.1)
    assert "validating ... 75%, 0 s" in capsys.readouterr().err
