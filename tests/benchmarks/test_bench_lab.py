"""docs/lab is what its numbers say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from benchmarks.lab import HERE, page, publish, restate
from dragoman.lab import EXPERIMENTS
from dragoman.lab.report import Lab, run_experiment


def test_the_page_is_made_from_the_numbers_and_shows_every_figure() -> None:
    text = (HERE / "README.md").read_text(encoding="utf-8")
    assert text == page(HERE)
    shown = set(re.findall(r"\]\((\S+\.svg)\)", text))
    assert shown == {str(path.relative_to(HERE)) for path in HERE.glob("*/*.svg") if ".zh-CN" not in path.name}
    assert {path.parent.name for path in HERE.glob("*/numbers.json")} >= EXPERIMENTS.keys()
    assert not any(json.loads(path.read_text(encoding="utf-8"))["quick"] for path in HERE.glob("*/numbers.json"))


@pytest.mark.parametrize("folder", sorted(path.parent for path in HERE.glob("*/numbers.json")), ids=lambda at: at.name)
def test_verdicts_and_captions_are_those_of_the_code_for_these_numbers(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / folder.name)
    restate(tmp_path / folder.name)
    was, now = (json.loads((at / "numbers.json").read_text("utf-8")) for at in (folder, tmp_path / folder.name))
    assert now == was
    assert {path.name for path in (tmp_path / folder.name).iterdir()} == {path.name for path in folder.iterdir()}


def test_quick_reports_are_not_published(tmp_path: Path) -> None:
    run_experiment("masks", tmp_path / "report", Lab(tmp_path, quick=True))
    with pytest.raises(SystemExit, match="quick"):
        publish(tmp_path / "report", tmp_path / "docs")


def test_places_on_this_machine_are_not_published(tmp_path: Path) -> None:
    run_experiment("masks", tmp_path / "report", Lab(tmp_path))
    path = tmp_path / "report/masks/numbers.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    files = {"src": "/somewhere/train.en", "tgt": "/somewhere/train.de"}
    record |= {"run": "/somewhere/run", "config": {"data": {"train": files, "valid": None, "max_tokens": 5}}}
    path.write_text(json.dumps(record), encoding="utf-8")
    assert publish(tmp_path / "report", tmp_path / "docs", "-other") == ["masks-other"]
    published = (tmp_path / "docs/masks-other/numbers.json").read_text(encoding="utf-8")
    assert "somewhere" not in published
    assert '"train.en"' in published
    assert {each.name for each in (tmp_path / "docs/masks-other").iterdir()} == {
        "numbers.json", *(figure["file"] for figure in record["figures"])
    }  # fmt: skip
    text = page(tmp_path / "docs")
    assert "](masks-other/numbers.json)" in text
    assert "--run RUN" in text
