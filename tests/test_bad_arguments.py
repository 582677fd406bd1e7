"""No impossible argument of a public function ends in an error of Python."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.bad_arguments import BAD, tried


def test_every_impossible_argument_is_refused_with_one_sentence(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some values are names of files
    run = tmp_path / "run"  # exports are written next to the bundle
    shutil.copytree(tiny_run / "bundle", run / "bundle")
    calls, wrong = 0, []
    for function, parameter, value, problem in tried(run, tmp_path):
        calls += 1
        wrong += [f"{function}({parameter} = {value}): {problem}"] if problem else []
    assert calls > 100 * len(BAD)
    assert not wrong, f"{len(wrong)} of {calls}:\n" + "\n".join(wrong)
