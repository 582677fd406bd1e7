"""``dragoman evaluate``: one system, two of them, one under stress; tables, JSON and refusals."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def test_set(tmp_path_factory: pytest.TempPathFactory, corpus: Any) -> Path:
    """A folder with a test set, and a file of translations of which half are spoilt."""
    folder = tmp_path_factory.mktemp("test")
    sources, references = (path.read_text(encoding="utf-8") for path in (corpus.valid_src, corpus.valid_tgt))
    (folder / "test.en").write_text(sources, encoding="utf-8")
    (folder / "test.de").write_text(references, encoding="utf-8")
    spoilt = [line if i % 2 else line[::-1] for i, line in enumerate(references.split("\n")[:-1])]
    (folder / "spoilt.de").write_text("".join(line + "\n" for line in spoilt), encoding="utf-8")
    return folder


def test_evaluate_gives_scores_with_signature_and_interval_and_writes_the_translations(
    command: Command, tiny_run: Path, corpus: Any, tmp_path: Path
) -> None:
    files = ("--src", corpus.valid_src, "--ref", corpus.valid_tgt)
    done = command("evaluate", tiny_run, *files, "--json", "--out", "hyps", cwd=tmp_path)
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["lines"] == 20
    assert [score["name"] for score in found["scores"]] == ["BLEU", "chrF2", "TER"]
    for score in found["scores"]:
        assert score["low"] <= score["value"] <= score["high"]
        assert "version:" in score["signature"]
    assert (tmp_path / "hyps").read_bytes() == command("translate", tiny_run, corpus.valid_src).out
    translations = (tmp_path / "hyps").read_bytes()
    command("evaluate", tiny_run, *files, "--out", "hyps.gz", cwd=tmp_path)
    assert gzip.decompress((tmp_path / "hyps.gz").read_bytes()) == translations
    plain = command("evaluate", tiny_run, *files, "--old-style", "--beam-size", "1")
    lines = plain.out.decode().split("\n")[:-1]
    assert [line.split(" ")[0] for line in lines] == ["BLEU", "chrF2", "TER", "old-style"]
    assert "tok:13a" in lines[0]
    assert "20 lines in" in plain.err


def test_a_test_set_without_options_leads_to_the_command(command: Command) -> None:
    done = command("evaluate", "runs/first", "test.en", "my test.de")
    assert "dragoman evaluate runs/first --src test.en --ref 'my test.de'" in done.error


def test_two_runs_are_compared_with_a_verdict(command: Command, tiny_run: Path, test_set: Path) -> None:
    args = [tiny_run, test_set / "spoilt.de", "--src", test_set / "test.en", "--ref", test_set / "test.de"]
    done = command("evaluate", *args)
    assert done.status == 0, done.err
    lines = done.out.decode().split("\n")
    assert lines[0] == f"A: {tiny_run}"
    assert lines[4] == f"B: {test_set / 'spoilt.de'}"
    assert lines[1].startswith("   BLEU ")
    found = json.loads(command("evaluate", *args, "--json").out)
    assert found["lines"] == 20
    assert [system["name"] for system in found["systems"]] == [str(args[0]), str(args[1])]
    assert found["systems"][0]["seconds"] > 0 == found["systems"][1]["seconds"]
    for comparison, name in zip(found["comparisons"], ("BLEU", "chrF2", "TER"), strict=True):
        assert comparison["metric"] == name
        assert comparison["difference"] == pytest.approx(comparison["b"] - comparison["a"])
        assert comparison["n_samples"] == 10_000
        assert comparison["p_randomisation"] < 0.05
        assert comparison["verdict"].startswith(f"{name}: A is better than B by ")
        assert comparison["verdict"] in lines
    again = json.loads(command("evaluate", *args, "--json").out)
    assert again["comparisons"] == found["comparisons"]  # the same samples each time


def test_a_run_and_its_own_translations_do_not_differ(
    command: Command, tiny_run: Path, test_set: Path, tmp_path: Path
) -> None:
    files = ["--src", test_set / "test.en", "--ref", test_set / "test.de"]
    first = command("evaluate", tiny_run, *files, "--out", tmp_path / "mine.de", "--json")
    assert first.status == 0, first.err
    done = command("evaluate", tiny_run, tmp_path / "mine.de", *files)
    assert done.out.decode().count("no difference shown between A and B (p = 1)") == 3
    alone = json.loads(command("evaluate", tmp_path / "mine.de", "--ref", test_set / "test.de", "--json").out)
    assert alone["scores"] == json.loads(first.out)["scores"]


def test_stress_prints_a_line_for_each_variant(command: Command, tiny_run: Path, test_set: Path) -> None:
    args = ["evaluate", tiny_run, "--src", test_set / "test.en", "--ref", test_set / "test.de", "--stress"]
    done = command(*args)
    assert done.status == 0, done.err
    lines = done.out.decode().split("\n")[:-1]
    assert len(lines) == 13
    names = ["source", "as it is", "capitals", "Title Case", "lower case"]
    assert [line[:13].strip() for line in lines[:5]] == names
    found = json.loads(command(*args, "--json").out)["variants"]
    assert [one["lines"] for one in found] == [20] * 11 + [1]
    clean, capitals, title, lower, *_ = found
    assert clean["chrf_loss"] == 0
    assert abs(capitals["chrf_loss"]) < 8  # it has never seen any, and reads them in lower case
    assert abs(title["chrf_loss"]) < 12  # of 20 short lines; some words are known with a capital alone
    assert capitals["chrf_loss"] == pytest.approx(clean["caseless"][1] - capitals["chrf"])
    assert lower["chrf"] == clean["chrf"]  # the toy language has no capitals
    assert found[10]["bleu"] is None
    assert json.loads(command(*args, "--json").out)["variants"] == found  # nothing in it is left to chance


def test_without_the_guard_translations_are_scored_as_found(command: Command, tiny_run: Path, test_set: Path) -> None:
    args = ["evaluate", tiny_run, "--src", test_set / "test.en", "--ref", test_set / "test.de", "--stress", "--json"]
    guarded, found = (json.loads(command(*args, *more).out)["variants"] for more in ((), ("--no-guard",)))
    assert max(one["guarded"] for one in guarded) > 0
    assert {one["guarded"] for one in found} == {0.0}
    assert max(one["faulty"] for one in found) > max(one["faulty"] for one in guarded)


def test_the_clean_line_of_a_stress_test_is_the_plain_evaluation(
    command: Command, tiny_run: Path, test_set: Path
) -> None:
    args = ["evaluate", tiny_run, "--src", test_set / "test.en", "--ref", test_set / "test.de", "--json"]
    scores = json.loads(command(*args).out)["scores"]
    clean = json.loads(command(*args, "--stress").out)["variants"][0]
    assert [scores[0]["value"], scores[1]["value"]] == pytest.approx([clean["bleu"], clean["chrf"]])


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["RUN", "--ref", "test.de"], "give the source side of the test set with --src"),
        (["RUN", "RUN", "RUN", "--src", "test.en", "--ref", "test.de"], "one or two systems, got 3"),
        (["RUN", "RUN", "--src", "test.en", "--ref", "test.de", "--out", "x"], "--out is for the translations of one"),
        (["RUN", "RUN", "--src", "test.en", "--ref", "test.de", "--stress"], "--stress needs one run"),
        (["RUN", "--ref", "test.de", "--stress"], "--stress needs one run, --src and one --ref"),
        (["test.de", "--src", "test.en", "--ref", "test.de", "--stress"], "--stress needs a run"),
        (["RUN", "short", "--src", "test.en", "--ref", "test.de"], "short has 1 lines but test.de has 20"),
        (["short", "nowhere", "--ref", "short"], "nowhere"),
        (["short", "--ref", "short", "--ref", "test.de"], "short has 1 lines but test.de has 20: each must have"),
        (["short", "--ref", "short", "--metric", "comet"], "metric must be one of bleu, chrf, ter, chrf++, "),
        (["RUN", "--src", "test.en", "--ref", "test.de", "--ref", "short", "--stress"], "and one --ref"),
        (["RUN", "--src", "test.en", "--ref", "test.de", "--stress", "--warnings", "w"], "leave out -v and --warnings"),
        (["short", "--ref", "short", "--device", "cuda"], "have no effect on texts that are translated already"),
        (["short", "--ref", "short", "--warnings", "w"], "have no effect on texts that are translated already"),
        (["short", "short", "--ref", "short", "-v"], "have no effect on texts that are translated already"),
        (
            ["short", "--ref", "short", "--beam-size", "3"],
            "beam_size has no effect on texts that are translated already",
        ),
        (
            ["a", "b", "--segment-scores", "short", "short", "--out", "x"],
            "--segment-scores compares numbers: leave out",
        ),
        (["a", "b", "--segment-scores", "short", "short", "--metric", "ter"], "--segment-scores compares numbers"),
        (["a", "b", "--segment-scores", "short", "short", "--device", "cuda"], "leave out --device"),
        (["a", "b", "--segment-scores", "short", "short", "--beam-size", "2"], "beam_size has no effect on scores of"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    args: list[str], error: str, command: Command, tiny_run: Path, test_set: Path
) -> None:
    (test_set / "short").write_text("Hund\n", encoding="utf-8")
    done = command("evaluate", *(tiny_run if arg == "RUN" else arg for arg in args), cwd=test_set)
    assert done.status == 2
    assert done.out == b""
    assert error in done.error
    assert not (test_set / "w").exists()
