"""The page of runs: every logged number is in it, other runs' settings, translations; refusals before any work."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dragoman.history.charts import AXES, QUANTITIES, Point, charts, draw
from dragoman.history.report import different_settings, different_texts, page, samples
from dragoman.history.translations import compare_outputs
from dragoman.training.record import read_run

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def runs(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, of which one has another learning rate and a log that was cut short."""
    folder = tmp_path_factory.mktemp("report")
    for name in ("a", "b"):
        shutil.copytree(tiny_run, folder / name)
    text = (folder / "b/config.yaml").read_text(encoding="utf-8")
    (folder / "b/config.yaml").write_text(re.sub(r"\blr: .*", "lr: 0.00123", text), encoding="utf-8")
    log = folder / "b/log.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    events = [json.loads(line) for line in lines]
    events[1]["loss"] = "nan"
    log.write_text("".join(json.dumps(event) + "\n" for event in events)[:-9], encoding="utf-8")
    return folder


class Reader(HTMLParser):
    """Collects the text of a page, and whatever it would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.loads = "", []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.loads += [tag] * (tag in ("script", "link", "img", "iframe", "object"))
        self.loads += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_and_its_tables_hold_all_that_was_logged(command: Command, runs: Path, tmp_path: Path) -> None:
    done = command("report", runs / "a", runs / "b", "--out", "page.html", cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.out.decode().splitlines() == ["page.html", "page.csv"]
    page = Reader()
    page.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.loads == []
    for title in ("Loss", "BLEU", "chrF", "Learning rate", "Speed", "Gradient norm", "train.lr", "is damaged"):
        assert title in page.text
    rows = list(csv.DictReader((tmp_path / "page.csv").read_text(encoding="utf-8").splitlines()))
    for name in ("a", "b"):
        run = read_run(runs / name)
        of_run = [row for row in rows if row["run"] == str(runs / name)]
        assert len(of_run) == len(run.reports) + len(run.validations)
        losses = [float(row["loss"]) for row in of_run if row["event"] == "train"]
        expected = [event["loss"] for event in run.reports]
        assert losses == pytest.approx(expected, nan_ok=True)


def test_curves_pass_through_the_logged_numbers(runs: Path) -> None:
    run = read_run(runs / "a")
    by_key = {chart.quantity.key: chart for chart in charts([run])}
    assert list(by_key) == [quantity.key for quantity in QUANTITIES if quantity.key != "f1"]
    (line,) = by_key["lr"].lines
    assert set(line.paths) == set(AXES)
    points = [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.]+) ([\d.]+)", line.paths["steps"])]
    assert len(points) == len(run.reports)
    rates, heights = [event["lr"] for event in run.reports], [y for _, y in points]
    scale = (heights[-1] - heights[0]) / (rates[-1] - rates[0])
    for rate, height in zip(rates, heights, strict=True):
        assert height - heights[0] == pytest.approx(scale * (rate - rates[0]), abs=0.2)
    for (x, _), event in zip(points, run.reports, strict=True):
        assert x == pytest.approx(1000 * event["step"] / run.step, abs=0.1)


def test_a_number_that_is_not_finite_leaves_a_gap() -> None:
    points = [Point(step, step, step, value) for step, value in enumerate([1.0, math.nan, 2.0, 3.0], 1)]
    chart = draw(QUANTITIES[1], [(points, [])])
    assert chart is not None
    assert re.findall("[ML]", chart.lines[0].paths["steps"]) == ["M", "M", "L"]
    nothing = [Point(1, 1, 1, math.inf)]
    assert draw(QUANTITIES[1], [(nothing, [])]) is None


def test_runs_that_were_validated_on_different_texts_are_told_apart(runs: Path, tmp_path: Path) -> None:
    both = [read_run(runs / name) for name in ("a", "b")]
    assert different_texts(both) == []
    about = both[1].stores["valid"]
    about["files"]["tgt.text"]["sha256"] = "0" * 64
    (said,) = different_texts(both)
    assert said.startswith("The runs were validated on different texts")
    assert said in page(both, ["a", "b"], None)
    both[1].stores.clear()  # deleted to save space: nothing is known
    assert different_texts(both) == []


def test_only_settings_that_differ_are_shown(runs: Path) -> None:
    a, b = read_run(runs / "a"), read_run(runs / "b")
    assert [name for name, _ in different_settings([a, b])] == ["train.lr"]
    assert different_settings([a, a]) == []
    assert "data.src_lang" in dict(different_settings([a]))


def test_samples_are_those_of_each_validation(runs: Path) -> None:
    run = read_run(runs / "a")
    listed = {(sample.src, moment.step, moment.text) for sample in samples([run]) for moment in sample.moments}
    logged = {(s["src"], event["step"], s["hyp"]) for event in run.validations for s in event["samples"]}
    assert listed == logged


def test_translations_that_differ_most_come_first_with_their_words_marked() -> None:
    refs = ["a b c d", "e f g h", "i j k l"]
    outputs = compare_outputs([("one", refs), ("two", ["a b c d", "x f g h", "q r s t"])], refs, refs, "de")
    assert [sentence.line for sentence in outputs.most_different()] == [3, 2]
    assert outputs.n_same == 1
    marked = outputs.most_different()[1].marked()[1]
    assert marked == [("x", True), (" f g h", False)]
    (name, comparisons), *_ = outputs.comparisons
    assert name == "two"
    assert comparisons[0].a > comparisons[0].b
    rows = outputs.csv_rows()
    assert len(rows) == 4
    assert rows[0] == ("line", "source", "reference", "one", "chrF2 of one", "two", "chrF2 of two")


def test_outputs_of_files_are_compared(command: Command, runs: Path, corpus: Any, tmp_path: Path) -> None:
    shutil.copy(corpus.valid_tgt, tmp_path / "mine.de")
    text = "".join(f"{line} <b>\n" for line in corpus.valid_tgt.read_text(encoding="utf-8").splitlines())
    (tmp_path / "other.de").write_text(text, encoding="utf-8")
    given = ("--ref", corpus.valid_tgt, "--outputs", "mine.de", "--outputs", "other.de")
    done = command("report", runs / "a", *given, cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.out.decode().splitlines() == ["report.html", "report.csv", "report.sentences.csv"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "mine.de is better than other.de" in page
    assert "tok:13a" in page
    assert "<b></dd>" not in page
    assert "&lt;b&gt;" in page
    (tmp_path / ".report.sentences.csv.0123abcd.tmp").write_bytes(b"")  # of a call that was killed
    assert command("report", runs / "a", cwd=tmp_path).status == 0
    left = {path.name for path in tmp_path.iterdir() if path.name.strip(".").startswith("report.")}
    assert left == {"report.html", "report.csv"}  # no table of another report


@pytest.mark.parametrize("name", ["results.csv", "results.sentences.csv"])
def test_a_table_of_another_program_is_refused_by_name_and_stays(
    command: Command, runs: Path, tmp_path: Path, name: str
) -> None:
    """One was replaced, the other removed."""
    (tmp_path / name).write_text("name,score\nmine,1\n", encoding="utf-8")
    done = command("report", runs / "a", "--out", "results.html", cwd=tmp_path)
    assert done.status == 2
    assert f"{name}: a report would replace or remove this file, which is not its table" in done.error
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "name,score\nmine,1\n"


def test_a_page_of_another_program_is_replaced_only_where_its_name_was_given(
    command: Command, runs: Path, tmp_path: Path
) -> None:
    """pytest-html, for one, writes its page under the same name."""
    page, mine = tmp_path / "report.html", "<!DOCTYPE html>\n<html><head><title>report.html</title></head></html>\n"
    page.write_text(mine, encoding="utf-8")
    done = command("report", runs / "a", cwd=tmp_path)
    assert done.status == 2
    assert "report.html: a report would replace this file, which is not its page; move it away, or choose" in done.error
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert page.read_text(encoding="utf-8") == mine
    assert command("report", runs / "a", "--out", "report.html", cwd=tmp_path).status == 0
    assert page.read_text(encoding="utf-8") != mine
    assert command("report", runs / "b", cwd=tmp_path).status == 0  # an older report is no other file


def test_outputs_are_scored_in_the_language_that_options_name_or_runs_tell(
    command: Command, runs: Path, tmp_path: Path
) -> None:
    for name in ("ref.txt", "mine.txt"):
        (tmp_path / name).write_text("他在2016年买了手机。\n", encoding="utf-8")
    given = ("--ref", "ref.txt", "--outputs", "mine.txt")
    assert command("report", runs / "a", *given, "--to", "zh", cwd=tmp_path).status == 0
    assert "tok:zh" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert command("report", runs / "a", *given, cwd=tmp_path).status == 0  # whose target is German: characters
    assert "tok:char" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_outputs_in_another_language_are_told(command: Command, runs: Path, corpus: Any, tmp_path: Path) -> None:
    french = "Je ne sais pas ce que vous voulez dire avec cette phrase, mais je suis content de vous voir ici.\n"
    n_lines = len(corpus.valid_tgt.read_text(encoding="utf-8").splitlines())
    for name in ("mine.txt", "mine.fr"):
        (tmp_path / name).write_text(n_lines * french, encoding="utf-8")
    given = ("report", runs / "a", "--ref", corpus.valid_tgt, "--outputs")
    done = command(*given, "mine.txt", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "mine.txt: looks like French (fr), but the target language is German (de)" in done.err
    done = command(*given, "mine.fr", "--out", "other.html", cwd=tmp_path)
    assert done.status == 2
    assert "mine.fr: French (fr) by its name, but the target language is German (de)" in done.error
    assert not (tmp_path / "other.html").exists()


def test_the_language_of_outputs_is_that_of_to_whatever_their_names(
    command: Command, runs: Path, corpus: Any, tmp_path: Path
) -> None:
    """The refusal advised ``--to``, and came again with it."""
    german = corpus.valid_tgt.read_text(encoding="utf-8")
    for name in ("ref.de", "ref.en", "mine.en", "mine.de"):
        (tmp_path / name).write_text(german, encoding="utf-8")
    given = ("report", runs / "a", "--ref", "ref.de", "--outputs", "mine.en")
    refused = command(*given, cwd=tmp_path)
    assert refused.status == 2
    assert "mine.en: English (en) by its name, but the target language is German (de)" in refused.error
    assert refused.error.endswith("or add --to de if the name misleads")
    assert command(*given, "--to", "de", cwd=tmp_path).status == 0

    given = ("report", runs / "a", "--ref", "ref.en", "--outputs", "mine.de", "--out", "other.html")
    refused = command(*given, cwd=tmp_path)
    assert refused.status == 2
    assert refused.error.endswith("add --to en if it is meant, or rename it if the name misleads")
    refused = command(*given, "--to", "de", cwd=tmp_path)
    assert refused.status == 2
    assert "ref.en: English (en) by its name, but --to says German (de)" in refused.error
    assert "--to de" not in refused.error  # which is given
    assert command(*given, "--to", "en", cwd=tmp_path).status == 0


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["a", "a"], "is named twice"),
        (["nowhere"], "no such run"),
        (["a/bundle"], "has no log.jsonl"),
        (["a"] * 9, "a report takes 1 to 8 runs, got 9"),
        (["a", "--out", "page.pdf"], "--out must end in .html, got page.pdf"),
        (["a", "--src", "x"], "give --ref too"),
        *(
            (
                [*words, *option],
                "--device and --threads are for runs that translate: give --ref and --src without --outputs",
            )
            for words in (["a"], ["a", "--ref", "one.de", "--outputs", "one.de"])
            for option in (["--device", "cuda"], ["--threads", "1"])
        ),
        (["a", "--ref", "x"], "give --src, or translations with --outputs"),
        (["a", "--ref", "one.de", "--outputs", "two.de"], "one.de has 1 lines but two.de has 2"),
        (
            ["a", "--to", "de"],
            "--to is the language of the translations: give --ref and --src too, or --ref and --outputs",
        ),
    ],
)
def test_what_cannot_be_reported_is_refused(command: Command, runs: Path, args: list[str], error: str) -> None:
    (runs / "one.de").write_text("a\n", encoding="utf-8")
    (runs / "two.de").write_text("a\nb\n", encoding="utf-8")
    done = command("report", *args, cwd=runs)
    assert done.status == 2
    assert error in done.error
    assert not (runs / "report.html").exists()
