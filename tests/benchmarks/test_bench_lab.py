"""docs/lab is what its numbers say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from benchmarks.lab import HERE, found_in, index, page, publish, restate
from dragoman.lab import EXPERIMENTS
from dragoman.lab.experiment import Lab
from dragoman.lab.report import run_experiment


def test_the_pages_are_made_from_the_numbers_and_show_every_figure() -> None:
    assert (HERE / "README.md").read_text(encoding="utf-8") == index(HERE)
    for name, record in found_in(HERE).items():
        text = (HERE / name / "README.md").read_text(encoding="utf-8")
        assert text == page(name, record), "python -m benchmarks.lab"
        shown = set(re.findall(r"\]\((\S+\.svg)\)", text))
        assert shown == {path.name for path in (HERE / name).glob("*.svg") if ".zh-CN" not in path.name}
    assert found_in(HERE).keys() >= EXPERIMENTS.keys()
    assert not any(record["quick"] for record in found_in(HERE).values())


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
    assert "](masks-other/README.md)" in index(tmp_path / "docs")
    text = page("masks-other", found_in(tmp_path / "docs")["masks-other"])
    assert "](numbers.json)" in text
    assert "--run RUN" in text
