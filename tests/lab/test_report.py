"""The laboratory itself: parts that are kept, records, pages, refusals. Experiments here are made up."""

from __future__ import annotations

import html.parser
import importlib
import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.lab import EXPERIMENTS
from dragoman.lab.experiment import Claim, Findings, Lab, Section, StoppedError, Table, plain
from dragoman.lab.report import read_record, run_all, run_experiment
from dragoman.pages.render import words


def findings(lab: Lab) -> Findings:
    figure = curves([Chart([Curve("rise", [0, 1, 2], [1, 2, 3])], "x", "y")])
    table = Table(("row", "n", "share"), [("a <b>", 12345, 0.12345), ("c", 7, 1e-7)])
    return Findings(
        {"array": np.arange(3), "inf": float("inf"), "scalar": torch.tensor(2.5)},
        [
            Section(
                "First & last", ["One `x < y`.", "See https://arxiv.org/abs/1706.03762."], figure, "curve", table, "Up"
            )
        ],
        [Claim("It rises", True, "1 to 3"), Claim("It falls", np.bool_(False), "no")],  # type: ignore[arg-type],
    )


@pytest.fixture
def experiments(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that makes these functions the experiments, by name; attributes of the modules come from ``run``."""

    def install(**runs: Callable[[Lab], Findings]) -> None:
        for module_with_list in ("experiment", "report", "page"):
            claims = {name: f"What {name} claims" for name in runs}
            monkeypatch.setattr(f"dragoman.lab.{module_with_list}.EXPERIMENTS", claims)
        for name, run in runs.items():
            module = types.ModuleType(f"dragoman.lab.{name}")
            module.__dict__.update(run=run, **vars(run))
            monkeypatch.setitem(sys.modules, module.__name__, module)

    return install


def test_every_experiment_has_its_module_and_every_module_its_name() -> None:
    package = Path(importlib.import_module("dragoman.lab").__file__ or "").parent
    runs = {path.stem for path in package.glob("*.py") if "\ndef run(lab: Lab) -> Findings:" in path.read_text("utf-8")}
    assert runs == set(EXPERIMENTS)


def test_a_part_is_made_once_and_again_only_for_other_settings(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"n": len(made), "array": np.eye(2), "nothing": float("nan")}

    lab = Lab(tmp_path, say=lambda _: None)
    first = lab.done("row-A", make, {"steps": 3})
    assert first["array"] == [[1.0, 0.0], [0.0, 1.0]]
    assert [lab.done("row-A", make, {"steps": 3})["n"], len(made)] == [1, 1]
    assert lab.done("row-A", make, {"steps": 4})["n"] == 2
    assert lab._replace(quick=True).done("row-A", make, {"steps": 3})["n"] == 3
    assert lab.done("row-B", make, {"steps": 3})["n"] == 4
    assert lab.done("row-A", make, {"steps": 3})["n"] == 1  # none was lost to another


def test_a_damaged_part_is_computed_again_and_reported(tmp_path: Path) -> None:
    said: list[str] = []
    lab = Lab(tmp_path, say=said.append)
    lab.done("row", lambda: 1)
    (path,) = (tmp_path / "parts").iterdir()
    path.write_text('{"result": 1', encoding="utf-8")
    assert lab.done("row", lambda: 2) == 2
    assert len(said) == 1
    assert str(path) in said[0]


def test_runs_of_other_settings_lie_apart(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    assert lab.run_folder("lstm", {"seed": 1}) == lab.run_folder("lstm", {"seed": 1})
    assert lab.run_folder("lstm", {"seed": 1}) != lab.run_folder("lstm", {"seed": 2})
    with pytest.raises(ValueError, match="name of a part"):
        lab.run_folder("../lstm")


def test_an_experiment_leaves_numbers_figures_a_page_and_the_index(
    tmp_path: Path, experiments: Callable[..., None]
) -> None:
    experiments(rising=findings, falling=findings)
    record = run_experiment("rising", tmp_path, Lab(tmp_path))
    kept = json.loads((tmp_path / "rising/numbers.json").read_text(encoding="utf-8"))
    assert kept == record
    assert kept["numbers"] == {"array": [0, 1, 2], "inf": "inf", "scalar": 2.5}
    assert [claim["holds"] for claim in kept["verdict"]] == [True, False]
    assert (tmp_path / "rising/curve.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "rising/curve.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")

    page = (tmp_path / "rising/index.html").read_text(encoding="utf-8")
    assert "<code>x &lt; y</code>" in page
    assert 'href="https://arxiv.org/abs/1706.03762"' in page
    assert '<td class="text">a &lt;b&gt;</td><td>12,345</td><td>0.123</td>' in page
    assert not re.search(r"<script|src=\"(?!data:)|url\(", page)  # one file, works offline
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="rising/index.html"' in index
    assert "dragoman lab falling" in index
    assert "1 of 2 statements hold, 1 do not, 0 are open" in index
    for text in (page, index):
        assert balanced(text)


def balanced(text: str) -> bool:
    """Whether every tag that must be closed is, in order."""
    open_tags: list[str] = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in ("meta", "img", "br"):
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

    Reader().feed(text)
    return not open_tags


def test_a_quick_run_claims_nothing_and_replaces_no_full_one(tmp_path: Path, experiments: Callable[..., None]) -> None:
    experiments(rising=findings)
    record = run_experiment("rising", tmp_path / "quick", Lab(tmp_path, quick=True))
    assert [claim["holds"] for claim in record["verdict"]] == [None, None]
    assert "claims nothing" in (tmp_path / "quick/rising/index.html").read_text(encoding="utf-8")
    run_experiment("rising", tmp_path / "full", Lab(tmp_path))
    with pytest.raises(ConfigError, match="full run"):
        run_experiment("rising", tmp_path / "full", Lab(tmp_path, quick=True))
    run_experiment("rising", tmp_path / "quick", Lab(tmp_path))  # a full one may replace a quick one


def test_time_of_parts_that_were_read_is_counted(tmp_path: Path, experiments: Callable[..., None]) -> None:
    def run(lab: Lab) -> Findings:
        return Findings({"x": lab.done("part", lambda: 1)}, [], [])

    experiments(slow=run)
    run_experiment("slow", tmp_path, Lab(tmp_path))
    (path,) = (tmp_path / "slow/parts").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "seconds": 100.0}), encoding="utf-8")
    assert 100 <= run_experiment("slow", tmp_path, Lab(tmp_path))["seconds"] < 110


@pytest.mark.parametrize("name", ["index.html", "rising/index.html", "rising/numbers.json"])
def test_files_of_others_are_refused_before_the_work_and_stay(
    tmp_path: Path, experiments: Callable[..., None], name: str
) -> None:
    """A project has a folder ``lab`` or ``masks`` of its own, and a site its index."""
    started: list[Lab] = []

    def run(lab: Lab) -> Findings:
        started.append(lab)
        return findings(lab)

    experiments(rising=run)
    (tmp_path / "rising").mkdir()
    mine = '{"mine": 1}' if name.endswith(".json") else "<!doctype html>\n<html lang='en'><title>Our masks</title>"
    (tmp_path / name).write_text(mine, encoding="utf-8")
    for call in (run_experiment, lambda _, *options: [*run_all(*options)]):
        with pytest.raises(DragomanError, match=rf"{name}: .* replace this file, which .*; move it away, or choose"):
            call("rising", tmp_path, Lab(tmp_path, say=lambda _: None))
    assert started == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]
    assert (tmp_path / name).read_text(encoding="utf-8") == mine


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_only_a_picture_that_a_figure_would_replace_is_refused_and_nothing_is_written(
    tmp_path: Path, experiments: Callable[..., None], ending: str
) -> None:
    experiments(rising=findings)
    other, screenshot = (tmp_path / "rising" / f"{name}{ending}" for name in ("curve", "screenshot"))
    other.parent.mkdir()
    for path in (other, screenshot):
        path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"curve{ending}: .* replace this file, which .*; move it away, or choose"):
        run_experiment("rising", tmp_path, Lab(tmp_path))
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == [other, screenshot]
    assert other.read_text(encoding="utf-8") == "mine"
    other.unlink()
    for _ in range(2):
        run_experiment("rising", tmp_path, Lab(tmp_path))
    assert other.stat().st_size > 1000
    assert screenshot.read_text(encoding="utf-8") == "mine"


def test_a_report_is_written_again_over_reports_of_all_versions(
    tmp_path: Path, experiments: Callable[..., None]
) -> None:
    experiments(rising=findings)
    for language in ("en", "zh", "en"):
        run_experiment("rising", tmp_path, Lab(tmp_path, language=language))
    first_version = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n<title>dragoman lab</title>\n"
    )
    (tmp_path / "index.html").write_text(first_version, encoding="utf-8")
    run_experiment("rising", tmp_path, Lab(tmp_path))
    assert "statements hold" in (tmp_path / "index.html").read_text(encoding="utf-8")


def on(monkeypatch: pytest.MonkeyPatch, cpu: str, threads: int) -> None:
    """Let results be measured on another machine."""
    facts = {"cpu": cpu, "cores": 8, "threads": threads, "torch": "2.0", "python": "3.11"}
    for place in ("experiment", "report", "machine"):
        monkeypatch.setattr(f"dragoman.lab.{place}.machine", lambda _: facts)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_names_the_machines_that_its_numbers_are_of(
    tmp_path: Path, experiments: Callable[..., None], monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """It named the machine of the last call, and its threads."""
    keys = ["a"]

    def run(lab: Lab) -> Findings:
        return Findings({key: lab.done(key, lambda: 1) for key in keys}, [], [])

    experiments(slow=run)

    def facts() -> str:
        run_experiment("slow", tmp_path, Lab(tmp_path, language=language))
        (line,) = re.findall(r'<p class="facts">(.*?)<br>', (tmp_path / "slow/index.html").read_text(encoding="utf-8"))
        assert (re.search("[\u4e00-\u9fff]", line) is not None) == (language == "zh")
        return line

    on(monkeypatch, "Old 1", 2)
    assert "Old 1" in facts()
    on(monkeypatch, "New 2", 7)
    assert "Old 1" in facts()
    assert "New 2" not in facts()
    keys.append("b")
    line = facts()
    assert line.index("Old 1") < line.index("New 2")
    assert [where["threads"] for where in read_record(tmp_path / "slow")["machines"]] == [2, 7]  # type: ignore[index]
    (path,) = (tmp_path / "slow/parts").glob("a-*")  # of a version that kept no machine
    part = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({key: part[key] for key in part if key != "machine"}), encoding="utf-8")
    line = facts()
    assert "Old 1" not in line
    assert "New 2" in line
    assert ("an earlier version did not record" in line) or ("较早的版本没有记下机器" in line)
    keys.remove("b")
    assert "New 2" not in facts()


def test_options_that_an_experiment_cannot_use_are_refused(tmp_path: Path, experiments: Callable[..., None]) -> None:
    def takes_run(lab: Lab) -> Findings:
        return Findings({"run": lab.run}, [], [])

    takes_run.TAKES = ("run",)  # type: ignore[attr-defined]
    experiments(one=findings, other=takes_run)
    with pytest.raises(ConfigError, match="one has no use for --run"):
        run_experiment("one", tmp_path, Lab(tmp_path, run=tmp_path))
    records = [*run_all(tmp_path, Lab(tmp_path, run=tmp_path, say=lambda _: None))]
    assert records[1]["numbers"] == {"run": str(tmp_path)}


def test_one_refusal_does_not_keep_the_rest_from_being_made(tmp_path: Path, experiments: Callable[..., None]) -> None:
    def refuses(lab: Lab) -> Findings:
        raise DataError("no such corpus")

    experiments(bad=refuses, good=findings)
    with pytest.raises(DragomanError, match=r"^1 of 2 experiments failed: bad: no such corpus$"):
        [*run_all(tmp_path, Lab(tmp_path, say=lambda _: None))]
    assert (tmp_path / "good/numbers.json").exists()


def test_a_signal_ends_all_at_once(tmp_path: Path, experiments: Callable[..., None]) -> None:
    def is_stopped(lab: Lab) -> Findings:
        raise StoppedError("stopped; run it again to resume")

    experiments(stopped=is_stopped, good=findings)
    with pytest.raises(StoppedError):
        [*run_all(tmp_path, Lab(tmp_path, say=lambda _: None))]
    assert not (tmp_path / "good").exists()


def test_plain_makes_json_of_arrays_tuples_and_paths() -> None:
    value = {1: (np.float32(0.5), torch.ones(2)), "path": Path("x")}
    assert plain(value) == {"1": [0.5, [1.0, 1.0]], "path": "x"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("see https://x.org/a?b=1&c=2.", 'see <a href="https://x.org/a?b=1&amp;c=2">https://x.org/a?b=1&amp;c=2</a>.'),
        ('https://x.org/"onmouseover="alert(1)', '<a href="https://x.org/">https://x.org/</a>&#34;onmouseover='),
        ('<a href="http://foo.com/p">', '&lt;a href=&#34;<a href="http://foo.com/p">http://foo.com/p</a>&#34;&gt;'),
        ("`a < b`, it's", "<code>a &lt; b</code>, it&#39;s"),
    ],
)
def test_what_users_text_holds_stays_text(text: str, want: str) -> None:
    assert words(text).startswith(want)
