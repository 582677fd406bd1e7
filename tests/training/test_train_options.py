"""The options of ``train``: declared once, refused by name, shown where they are asked for."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.errors import ConfigError
from dragoman.training.options import TrainOptions


def test_a_configuration_that_could_not_be_read_again_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many files of text have long names in it."""
    monkeypatch.chdir(tmp_path)
    names = [f"shard-{i:03d}-{'x' * 100}" for i in range(300)]
    for name in names:
        for lang in ("en", "de"):
            Path(f"{name}.{lang}").write_text("a dog\n", encoding="utf-8")
    files = [f"{name}.{lang}" for name in names for lang in ("en", "de")]
    with pytest.raises(ConfigError, match=r"^300 texts make a configuration of more than 65,536 bytes"):
        dragoman.train(files, out="run", quiet=True)
    assert not Path("run").exists()


@pytest.mark.parametrize("named", [("news.en", "news.de"), ("--src", "news.en", "--tgt", "news.de")])
def test_a_run_has_the_name_of_the_first_file_however_it_is_named(
    command: Callable[..., Any], make_corpus: Callable[..., Any], tmp_path: Path, named: tuple[str, ...]
) -> None:
    corpus = make_corpus(tmp_path, 400)
    for lang, path in (("en", corpus.src), ("de", corpus.tgt)):
        (tmp_path / f"news.{lang}").write_bytes(path.read_bytes())
    settings = ("model.preset=tiny", "train.max_steps=1", "train.batch_tokens=256", "data.tokenizer.vocab_size=300")
    words = [word for setting in settings for word in ("--set", setting)]
    done = command("train", *named, *words, "--quiet", cwd=tmp_path)
    assert (done.status, done.out) == (0, b"runs/news\n"), done.err


def test_train_shows_all_its_options_in_its_signature() -> None:
    shown = inspect.signature(dragoman.train).parameters
    assert {each.name for each in dataclasses.fields(TrainOptions)} < set(shown)
    assert list(shown)[:4] == ["config", "tgt", "out", "build"]


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown option override: did you mean overrides"):
        dragoman.train(override=["train.max_steps=1"])


def test_one_setting_instead_of_a_list_is_refused() -> None:
    with pytest.raises(
        ConfigError,
        match=r"^overrides must be a list of settings, such as \['train.max_steps=1'\], got 'train.max_steps=1'$",
    ):
        TrainOptions.of(None, {"overrides": "train.max_steps=1"})


@pytest.mark.parametrize(("given", "other"), [("new_subwords", "--from-run"), ("accept_changed_text", "--resume")])
def test_what_belongs_to_another_option_is_refused_without_it(given: str, other: str) -> None:
    with pytest.raises(ConfigError, match=other):
        dragoman.train(**{given: True})


def test_a_path_stays_what_was_given() -> None:
    options = TrainOptions(src="a", tgt=Path("b"))
    assert (options.src, options.tgt, options.valid_src) == ("a", Path("b"), None)


def test_the_options_import_no_torch() -> None:
    code = "import sys, dragoman.training.options; print([m for m in ('torch', 'numpy', 'yaml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
