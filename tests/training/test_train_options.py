"""The options of ``train``: declared once, refused by name, shown where they are asked for."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman.errors import ConfigError
from dragoman.training.options import TrainOptions


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
