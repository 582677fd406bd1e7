"""All forms of text lead to the same training; what is named beside a run that resumes is compared."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
import yaml

import dragoman
from dragoman.data.store import Store
from dragoman.errors import ConfigError, DataError

Command = Callable[..., Any]

SMALL = [
    "model.d_model=16", "model.d_ff=16", "model.n_encoder_layers=1", "model.n_decoder_layers=1",
    "data.tokenizer.vocab_size=400", "train.device=cpu", "train.max_steps=2", "decode.max_extra_tokens=5",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, make_corpus: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """train.en and train.de, and the same pairs in all other forms."""
    make_corpus(tmp_path, 200)
    monkeypatch.chdir(tmp_path)
    sides = [Path(f"train.{side}").read_text(encoding="utf-8").split("\n")[:-1] for side in ("en", "de")]
    pairs = list(zip(*sides, strict=True))
    Path("pairs.tsv").write_text("".join(f"{i}\t{en}\t{de}\n" for i, (en, de) in enumerate(pairs)), encoding="utf-8")
    table = io.StringIO()
    csv.writer(table).writerows([("de", "en"), *((de, en) for en, de in pairs)])
    Path("pairs.csv.gz").write_bytes(gzip.compress(table.getvalue().encode()))
    units = "".join(
        f'<tu><tuv xml:lang="de-DE"><seg>{escape(de)}</seg></tuv>'
        f'<tuv xml:lang="en-GB"><seg>{escape(en)}</seg></tuv></tu>'
        for en, de in pairs
    )
    Path("pairs.tmx").write_text(f'<tmx><header srclang="en"/><body>{units}</body></tmx>', encoding="utf-8")
    return tmp_path


def texts_of(run: Path) -> tuple[list[str], list[str]]:
    return Store.open(run / "store/valid").texts(range(2))


def test_every_form_gives_the_same_pairs_and_languages(folder: Path) -> None:
    forms: dict[str, tuple[Any, dict[str, Any]]] = {
        "two files": (["train.en", "train.de"], {}),
        "beginning": (["train", "en", "de"], {}),
        "tsv": ("pairs.tsv", {"columns": "2,3", "overrides": [*SMALL, "data.src_lang=en", "data.tgt_lang=de"]}),
        "csv": (["pairs.csv.gz"], {"columns": "en,de"}),
        "tmx": ("pairs.tmx", {"columns": "en,de"}),
    }
    configs, texts = [], []
    for name, (what, more) in forms.items():
        run = dragoman.train(what, out=name, quiet=True, **{"overrides": SMALL, **more}).run
        configs.append(dragoman.Config.from_yaml(run / "config.yaml").data)
        texts.append(texts_of(run))
    assert texts == texts[:1] * len(forms)
    assert {(data.src_lang, data.tgt_lang) for data in configs} == {("en", "de")}


def test_several_texts_are_one_and_all_of_them_are_watched(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = ["train.en", "train.de", "pairs.tmx"]
    run = dragoman.train(what, overrides=SMALL, valid="pairs.csv.gz", columns="en,de").run
    assert run == Path("runs/train")
    said = capsys.readouterr().err
    assert "train.en and train.de: 200 pairs\npairs.tmx: 200 pairs\n" in said
    assert "train: 400 pairs read, 400 kept" in said
    assert "valid: 200 pairs read, 200 kept" in said
    data = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["data"]
    drawn = {"weight": 1.0, "tag": None, "src_lang": None, "tgt_lang": None}
    texts = {"src": "train.en", "tgt": "train.de"}, {"file": "pairs.tmx", "columns": ["en", "de"]}
    assert data["train"] == [{**text, **drawn} for text in texts]
    assert data["valid"] == {"file": "pairs.csv.gz", "columns": ["en", "de"], **drawn}
    again = [*SMALL, "train.max_steps=3"]
    dragoman.train(what, out=run, overrides=again, valid=["pairs.csv.gz"], columns="en,de", resume=True)
    assert "resuming with" not in capsys.readouterr().err  # nothing was named that it does not have
    dragoman.train(["train.en", "train.de"], out=run, overrides=[*SMALL, "train.max_steps=4"], resume=True)
    assert "other files that were named are ignored" in capsys.readouterr().err
    Path("pairs.tmx").write_text(Path("pairs.tmx").read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"pairs\.tmx has changed since"):
        dragoman.train(out=run, overrides=again, resume=True, quiet=True)
    Path("pairs.tmx").unlink()
    dragoman.train(out=run, overrides=[*SMALL, "train.max_steps=5"], resume=True)
    assert "pairs.tmx is no longer there; continuing with the data prepared from it" in capsys.readouterr().err


def test_a_configuration_may_name_several_and_old_ones_mean_what_they_meant(folder: Path) -> None:
    given = {"data": {"train": [{"file": "pairs.tsv", "columns": [2, 3]}], "src_lang": "en", "tgt_lang": "de"}}
    Path("c.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    several = dragoman.train("c.yaml", out="x", overrides=SMALL, quiet=True).run
    given["data"]["train"] = {"src": "train.en", "tgt": "train.de"}
    Path("c.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    old = dragoman.train("c.yaml", overrides=SMALL, quiet=True).run
    assert old == Path("runs/c")
    assert texts_of(several) == texts_of(old)
    replaced = dragoman.train(["c.yaml", "pairs.tmx"], out="y", columns="en,de", overrides=SMALL, quiet=True).run
    assert (
        dragoman.Config.from_yaml(replaced / "config.yaml").data.train != dragoman.Config.from_yaml("c.yaml").data.train
    )


def test_a_pair_with_a_line_break_is_dropped_and_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gzip.open("pairs.csv.gz", "at", encoding="utf-8") as file:
        file.write('"zwei\r\nZeilen",two lines\r\n')
    dragoman.train("pairs.csv.gz", out="x", overrides=SMALL)
    assert "train: 199 pairs read, 198 kept; dropped: 1 with a line break" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "more", "error", "message"),
    [
        ("pairs.xlsx", {}, ConfigError, "a table (.tsv, .csv) or a translation memory (.tmx)"),
        (".", {}, ConfigError, ". is a folder; give two text files"),
        ("train.en", {}, ConfigError, "train.en: one side alone"),
        (None, {}, ConfigError, "nothing to train on: give a configuration, or two text files"),
        (None, {"src": "train.en"}, ConfigError, "give both sides of the training text: --src and --tgt"),
        ("pairs.tmx", {"src": "train.en", "tgt": "train.de"}, ConfigError, "src is given twice"),
        (["train.en", "train.de"], {"columns": "en,de"}, ConfigError, "--columns belongs to a table"),
        ("pairs.tmx", {"columns": "en"}, ConfigError, "columns must be two names or numbers, as en,de, got 'en'"),
        ("pairs.tmx", {"columns": "en,fr"}, DataError, "no unit has both en and fr"),
        ("pairs.csv.gz", {"columns": "en,fr"}, DataError, "no column has the heading 'fr'"),
        (["train.en", "train.de", "pairs.csv.gz"], {}, ConfigError, "give one pair of languages in one direction"),
        (["train.de", "train.en"], {"valid": "pairs.tmx"}, ConfigError, "pairs.tmx: en-GB where train.de and train.en"),
        ("pairs.tmx", {"valid": ["train.en"]}, ConfigError, "train.en: one side alone"),
    ],
)
def test_what_cannot_be_trained_on_leaves_nothing(
    folder: Path, what: Any, more: dict[str, Any], error: type[Exception], message: str
) -> None:
    Path("pairs.xlsx").write_bytes(b"PK\3\4" + bytes(70_000))
    with pytest.raises(error) as refusal:
        dragoman.train(what, out="runs/x", overrides=SMALL, quiet=True, **more)
    assert message in str(refusal.value)
    assert not Path("runs").exists()


def test_the_command_takes_the_same_words(command: Command, folder: Path) -> None:
    given = [word for setting in SMALL for word in ("--set", setting)]
    done = command("train", "train.en", "train.de", "--valid", "train.en", "--valid", "train.de", *given, cwd=folder)
    assert done.status == 0, done.err
    assert done.out == b"runs/train\n" or done.out == "runs/train\n"
    done = command("train", "pairs.tmx", "--columns", "en,de", "--minutes", "0.01", *given, cwd=folder)
    assert done.status == 0, done.err
    config = yaml.safe_load((folder / "runs/pairs/config.yaml").read_text(encoding="utf-8"))
    assert config["train"]["max_minutes"] == 0.01
    done = command("train", "pairs.tmx", "--columns", "en,de", "--minutes", "0.01", *given, "--resume", cwd=folder)
    assert done.status == 0, done.err
    assert "resuming with" not in done.err


def test_training_that_takes_hours_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(per_second: float, **more: Any) -> str:
        monkeypatch.setattr("dragoman.training.run.tokens_per_second", lambda config, length: per_second)
        run = dragoman.train(["train.en", "train.de"], overrides=[*SMALL, "train.batch_tokens=900"], **more).run
        shutil.rmtree(run)
        return capsys.readouterr().err

    monkeypatch.setattr("dragoman.training.run.FLOPS_AN_HOUR", {"cpu": 0.0})  # else so few are not timed
    hours = "2 steps take about 5 hours on this machine; --minutes N chooses what fits into N minutes"
    assert hours in train(0.1)
    assert "hours" not in train(1000.0)
    assert "hours" not in train(0.1, minutes=1)


def test_the_minutes_choose_once_and_the_same_command_goes_on(command: Command, folder: Path) -> None:
    begun = ("train", "train.en", "train.de", "--minutes", "0.02", "--out", "x")
    done = command(*begun, cwd=folder)
    assert done.status == 0, done.err
    assert "this machine trains about" in done.err
    config = (folder / "x/config.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(config)["model"]["d_model"] == 128
    done = command(*begun, "--resume", cwd=folder)
    assert done.status == 0, done.err
    assert "this machine trains" not in done.err
    assert (folder / "x/config.yaml").read_text(encoding="utf-8") == config
    assert "max_minutes is" not in done.err
    log = [json.loads(line) for line in (folder / "x/log.jsonl").read_text(encoding="utf-8").split("\n") if line]
    # A machine that trains faster than it measured runs out of steps before it runs out of time.
    assert {event["reason"] for event in log if event["event"] == "end"} <= {"max_minutes", "max_steps"}
    steps = yaml.safe_load(config)["train"]["max_steps"]
    done = command(*begun[:4], "0.04", *begun[5:], "--resume", cwd=folder)
    assert f"train.max_minutes is 0.04 now, but train.max_steps still {steps:,}: if that" in done.err
    assert f"resume with --set train.max_steps={2 * steps}" in done.err
