"""``dragoman translate`` with options, and ``dragoman score``."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.translation import pair_reader

Command = Callable[..., Any]

LINES = b"the dog sees a cat\n\na man finds the house\n"


def rows(out: bytes) -> list[list[str]]:
    return [line.split("\t") for line in out.decode().split("\n")[:-1]]


def test_the_n_best_are_number_score_and_text_or_json(command: Command, tiny_run: Path) -> None:
    plain = command("translate", tiny_run, stdin=LINES).out.decode().split("\n")
    done = command("translate", tiny_run, "--n-best", "3", stdin=LINES)
    assert done.status == 0, done.err
    found = rows(done.out)
    assert [row[0] for row in found] == ["1", "1", "1", "2", "3", "3", "3"]
    assert found[0][2] == plain[0]
    assert found[3] == ["2", "0.000000", ""]
    scores = [float(row[1]) for row in found if row[0] == "3"]
    assert scores == sorted(scores, reverse=True)
    as_json = command("translate", tiny_run, "--n-best", "3", "--json", stdin=LINES).out.decode().split("\n")[:-1]
    first, blank, _ = map(json.loads, as_json)
    assert [first["text"], *(one["text"] for one in first["alternatives"])] == [row[2] for row in found[:3]]
    assert blank["alternatives"] == []
    done = command("translate", tiny_run, "--n-best", "9", stdin=LINES)
    assert done.error == "error: n_best must be at most beam_size = 4, got 9"


def test_samples_are_those_of_their_seed_and_line(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    options = ("--sample", "--temperature", "1.8", "--top-k", "30", "--top-p", "0.99")
    text = b"the dog sees a cat\n" * 30
    one = command("translate", tiny_run, *options, "--seed", "1", stdin=text)
    assert one.status == 0, one.err
    assert len(set(one.out.split(b"\n"))) > 10
    assert one.out == command("translate", tiny_run, *options, "--seed", "1", stdin=text).out
    assert one.out != command("translate", tiny_run, *options, "--seed", "2", stdin=text).out
    (tmp_path / "text").write_bytes(text)
    command("translate", tiny_run, "text", "--out", "out", *options, "--seed", "1", cwd=tmp_path)
    assert (tmp_path / "out").read_bytes() == one.out
    assert "give sample too" in command("translate", tiny_run, "--top-k", "3", stdin=text).error
    done = command("translate", tiny_run, "--sample", "--top-p", "3", stdin=text)
    assert done.error == "error: top_p must be at most 1, got 3.0"
    for option in ("--beam-size", "--patience"):
        error = command("translate", tiny_run, "--sample", option, "2", stdin=text).error
        assert "sample draws instead of searching" in error


def test_words_prefixes_and_glossaries(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("dog\twauwau\nhouse\n", encoding="utf-8")
    done = command(
        "translate", tiny_run, "--glossary", "terms.tsv", "--prefix", "ein", "--include", "baum", "--include", "rot",
        "--exclude", "der", "--no-repeat-ngram", "2", "--no-guard", stdin=LINES, cwd=tmp_path,
    )  # fmt: skip
    assert (done.status, done.err) == (0, "glossary: 2 terms read, 2 found in the text\n")
    first, blank, third = done.out.decode().split("\n")[:-1]
    assert blank == ""
    for text, term in ((first, "wauwau"), (third, "house")):
        assert text.startswith("ein")
        assert {"baum", "rot", term} <= set(text.split())
        assert "der" not in text.split()
    done = command("translate", tiny_run, "--include", "rot", "--exclude", "rot", "--json", "--no-guard", stdin=LINES)
    assert done.status == 0
    assert done.err.split("\n")[:-1] == [f"warning: stdin:{n}: the excluded 'rot' appears" for n in (1, 3)]
    assert [json.loads(line).get("notes") for line in done.out.splitlines()] == [
        [{"kind": "constraint", "text": "the excluded 'rot' appears"}] if n != 2 else None for n in (1, 2, 3)
    ]  # fmt: skip
    (tmp_path / "bad.tsv").write_text("dog\tHund\na\tb\tc\n", encoding="utf-8")
    refused = command("translate", tiny_run, "--glossary", "bad.tsv", stdin=LINES, cwd=tmp_path)
    assert refused.status == 2
    assert refused.error.startswith("error: bad.tsv:2: 3 columns")


def test_alignments_are_one_line_for_each_line(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    done = command("translate", tiny_run, "--alignments", "links", stdin=LINES, cwd=tmp_path)
    assert done.out == command("translate", tiny_run, stdin=LINES).out
    lines = (tmp_path / "links").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4
    assert lines[1] == lines[3] == ""
    for line, translation in ((lines[0], done.out.split(b"\n")[0]), (lines[2], done.out.split(b"\n")[2])):
        assert re.fullmatch(r"\d+-\d+( \d+-\d+)*", line)
        assert {int(link.split("-")[1]) for link in line.split()} == set(range(len(translation.split())))
    assert "0-0 1-1" in lines[0]
    (tmp_path / "text").write_bytes(LINES)
    refused = command("translate", tiny_run, "text", "--out", "out", "--alignments", "links", cwd=tmp_path)
    assert "leave out one" in refused.error


def test_a_run_with_itself_is_an_ensemble_that_translates_as_it_does(command: Command, tiny_run: Path) -> None:
    done = command("translate", tiny_run, "--ensemble", tiny_run, "--ensemble", tiny_run / "bundle", stdin=LINES)
    assert done.status == 0, done.err
    assert done.out == command("translate", tiny_run, stdin=LINES).out
    assert "no such run" in command("translate", tiny_run, "--ensemble", "nowhere", stdin=LINES).error


def test_bf16_is_asked_for_by_name(command: Command, tiny_run: Path) -> None:
    assert command("translate", tiny_run, "--precision", "bf16", stdin=LINES).out.count(b"\n") == 3
    done = command("translate", tiny_run, "--precision", "int4", stdin=LINES)
    assert done.error == "error: precision must be fp32, bf16 or int8, got 'int4'"


def test_the_size_of_a_batch_is_asked_for_and_changes_no_text(command: Command, tiny_run: Path, corpus: Any) -> None:
    done = command("translate", tiny_run, "--batch-tokens", "1", stdin=LINES)
    assert (done.status, done.out) == (0, command("translate", tiny_run, stdin=LINES).out)
    score = ("score", tiny_run, "--src", corpus.valid_src, "--ref", corpus.valid_tgt)
    together, alone = (rows(command(*score, *more).out) for more in ((), ("--batch-tokens", "1")))
    assert [float(row[0]) for row in alone] == pytest.approx([float(row[0]) for row in together], abs=1e-4)
    for refused in (command("translate", tiny_run, "--batch-tokens", "0"), command(*score, "--batch-tokens", "0")):
        assert "batch_tokens" in refused.error
    both = command("translate", tiny_run, "--batch-tokens", "64", "--deterministic")
    assert both.error == "error: deterministic decodes each sentence alone: leave it out, or batch_tokens"


def test_score_gives_three_numbers_a_line_and_the_perplexity(
    command: Command, tiny_run: Path, corpus: Any, tmp_path: Path
) -> None:
    files = ("--src", corpus.valid_src, "--tgt", corpus.valid_tgt)
    done = command("score", tiny_run, *files)
    assert done.status == 0, done.err
    found = [[float(cell) for cell in row] for row in rows(done.out)]
    assert len(found) == 20
    assert all(log_prob < per_token < 0 and log_prob < score for log_prob, per_token, score in found)
    as_json = command("score", tiny_run, *files, "--json", "--alignments", tmp_path / "links")
    each = [json.loads(line) for line in as_json.out.splitlines()]
    assert [one["log_prob"] for one in each] == pytest.approx([row[0] for row in found], abs=1e-5)
    for one in each:
        shares = [share for _, share in one["tokens"]]
        assert one["log_prob"] == pytest.approx(sum(shares))
        assert one["per_token"] == pytest.approx(sum(shares) / len(shares))
    n_tokens = sum(len(one["tokens"]) for one in each)
    perplexity = math.exp(-sum(row[0] for row in found) / n_tokens)
    assert f"perplexity {perplexity:.4f}; 20 of 20 lines, {n_tokens:,} tokens" in done.err
    links = (tmp_path / "links").read_text(encoding="utf-8").split("\n")
    assert links[:-1] == [" ".join(f"{src}-{tgt}" for src, tgt in one["alignment"]) for one in each]


def test_the_score_of_a_translation_is_that_of_its_search(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(LINES.replace(b"\n\n", b"\n"))
    done = command("translate", tiny_run, "src", "--json", cwd=tmp_path)
    found = [json.loads(line) for line in done.out.splitlines()]
    (tmp_path / "tgt").write_text("".join(one["text"] + "\n" for one in found), encoding="utf-8")
    scored = rows(command("score", tiny_run, "--src", "src", "--ref", "tgt", cwd=tmp_path).out)
    assert [float(row[2]) for row in scored] == pytest.approx([one["score"] for one in found], abs=1e-5)


def test_score_says_what_it_does_not_score(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(b"the dog\n\nthe cat\n")
    (tmp_path / "tgt").write_bytes(b"der hund\nx\n\n")
    done = command("score", tiny_run, "--src", "src", "--ref", "tgt", cwd=tmp_path)
    assert done.status == 0
    assert rows(done.out)[1:] == [["nan"] * 3] * 2
    assert [line for line in done.err.split("\n") if line.startswith("warning")] == [
        f"warning: tgt:{n}: not scored: a side is blank" for n in (2, 3)
    ]
    assert "; 1 of 3 lines" in done.err
    as_json = command("score", tiny_run, "--src", "src", "--ref", "tgt", "--json", cwd=tmp_path)
    assert json.loads(as_json.out.splitlines()[1])["log_prob"] is None
    (tmp_path / "tgt").write_bytes(b"der hund\n")
    assert "3 lines but" in command("score", tiny_run, "--src", "src", "--ref", "tgt", cwd=tmp_path).error


def test_score_with_lines_that_run_out_of_memory_is_no_success(
    command: Command, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status was 0, and the perplexity that of the other lines."""
    real = pair_reader.read_all
    monkeypatch.setattr(pair_reader, "read_all", lambda *args, **options: [*real(*args, **options)[:-1], None])
    (tmp_path / "src").write_bytes(b"the dog\nthe cat\n")
    (tmp_path / "tgt").write_bytes(b"der hund\ndie katze\n")
    done = command("score", tiny_run, "--src", "src", "--ref", "tgt", cwd=tmp_path)
    assert done.status == 2
    assert rows(done.out)[1] == ["nan"] * 3
    assert "warning: tgt:2: out of memory" in done.err
    assert "; 1 of 2 lines" in done.err
    assert done.error.startswith("error: tgt: 1 lines ran out of memory and are not scored; free some memory")


def test_alignments_replace_no_input_and_no_older_file_when_the_call_is_refused(
    command: Command, tiny_run: Path, tmp_path: Path
) -> None:
    names = ("src", "tgt", "links")
    for name in names:
        (tmp_path / name).write_text(f"the {name}\n", encoding="utf-8")
    os.link(tmp_path / "src", tmp_path / "src2")
    calls = [
        ("translate", tiny_run, "src", "--alignments", "src"),
        ("translate", tiny_run, "src", "--alignments", "src2"),
        ("translate", tiny_run, "src", "--alignments", "links", "--n-best", "9"),
        ("translate", tiny_run, "src", "--alignments", "."),
        ("translate", tiny_run, "missing", "--alignments", "links"),
        ("translate", tiny_run, ".", "--alignments", "links"),
        ("translate", tiny_run, "src", "--alignments", "links", "--sample", "--include", "hund"),
        ("translate", tiny_run, "src", "--out", "links", "--glossary", "links"),
        ("score", tiny_run, "--src", "src", "--ref", "tgt", "--alignments", "tgt"),
        ("score", tiny_run, "--src", "src", "--ref", "tgt", "--alignments", "links", "--precision", "fp8"),
        ("evaluate", tiny_run, "--src", "src", "--ref", "tgt", "--out", "tgt"),
        ("evaluate", "links", "--ref", "tgt", "--out", "links"),
    ]
    for call in calls:
        done = command(*call, cwd=tmp_path)
        assert (done.status, done.out) == (2, b""), call
        assert done.error
        assert [(tmp_path / name).read_text(encoding="utf-8") for name in names] == [f"the {name}\n" for name in names]
    assert command("translate", tiny_run, "src", "--alignments", "links", cwd=tmp_path).status == 0
    assert (tmp_path / "links").read_text(encoding="utf-8") != "the links\n"


def test_after_many_lines_a_faster_way_is_named_if_there_is_one(
    command: Command, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")  # where the other engine writes its model
    said = "--fast is faster here (ctranslate2 in int8); some translations differ then"
    assert said not in command("translate", tiny_run, stdin=LINES).err
    monkeypatch.setattr("dragoman.cli.translate.MANY_LINES", 3)
    assert command("translate", tiny_run, stdin=LINES).err.count(said) == 1
    assert "--fast is faster" not in command("translate", run, "--fast", stdin=LINES).err
