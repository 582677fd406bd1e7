"""``dragoman export``, and ``dragoman translate --engine``."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import cli
from dragoman.cli import main
from dragoman.cli.demo import refuse_other_results, write_page
from dragoman.files import check_sealed
from dragoman.progress import Ticker
from processes import Forked

Command = Callable[..., Any]


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    return tmp_path / "run"


def test_it_writes_and_says_where(command: Command, run: Path, tmp_path: Path) -> None:
    done = command("export", run, "--format", "ctranslate2")
    assert (done.status, done.out.decode(), done.err) == (0, f"{run}/exports/ctranslate2-float32\n", "")
    done = command("export", run, "--format", "ctranslate2", "--quantization", "int8", "--out", tmp_path / "small")
    assert done.out.decode() == f"{tmp_path}/small\n"
    sizes = [
        (folder / "model.bin").stat().st_size for folder in (tmp_path / "small", run / "exports/ctranslate2-float32")
    ]
    assert sizes[0] < 0.7 * sizes[1]  # the table of positions stays


def test_check_prints_the_certificate(command: Command, run: Path, corpus: Any) -> None:
    done = command("export", run, "--format", "ctranslate2", "--check", corpus.valid_src, "--ref", corpus.valid_tgt)
    assert done.status == 0, done.err
    said = done.out.decode().split("\n")
    assert said[0] == f"{run}/exports/ctranslate2-float32"
    assert said[1] == "A: our model, float32, torch; B: ctranslate2, float32, computed in float32"
    assert said[2] == "20 lines, beam 4, length penalty 0.6 (gnmt)"
    assert said[4] == "identical translations: 20 of 20 (100.0%)"
    assert said[5] == "lines split into other subwords: 0"
    assert said[6].endswith("letters in other forms (11 kinds): the same subwords")
    assert said[7].startswith("reason for differences: B stops a sentence at as many finished hypotheses as the beam")
    assert said[9].split() == ["A", "B", "B", "-", "A", "95%", "interval", "p"]
    names = ["BLEU", "chrF2", "TER", "megabytes", "seconds", "", "BLEU:", "chrF2:", "TER:"]
    assert [line.split(" ")[0] for line in said[10:-1]] == names
    assert max(map(len, said[9:15])) < 60
    done = command("export", run, "--format", "ctranslate2", "--check", corpus.valid_src, "--json")
    kept = (run / "exports/ctranslate2-float32/certificate.json").read_text(encoding="utf-8")
    assert json.loads(done.out) == json.loads(kept)


def test_an_export_for_hugging_face_is_compared_and_must_come_up_to_what_is_required(
    command: Command, run: Path, corpus: Any
) -> None:
    pytest.importorskip("transformers")
    asked = ("export", run, "--format", "huggingface", "--check", corpus.valid_src, "--ref", corpus.valid_tgt)
    done = command(*asked, "--require", "nats=1e-4", "--require", "identical=0.9", "--require", "bleu=1", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert (found["export"], found["computed_in"], found["n_cut_differently"]) == ("huggingface", "float32", 0)
    assert found["most_nats"] < 1e-4
    assert found["n_identical"] >= 18
    assert found["why"][0].startswith("B ends a hypothesis that reaches the limit of its sentence for free")
    assert found["why"][1:] == ["B divides by n ** 0.45, A by ((5 + n) / 6) ** 0.6"]
    assert found["versions"].keys() == {"dragoman", "transformers", "torch", "sacrebleu"}
    done = command(*asked, "--require", "nats=1e-12")
    assert done.status == 2
    assert re.search(r"does not satisfy --require: nats must be at most 1e-12, got ", done.error)
    for given, says in (("x=1", "use one of nats=NUMBER"), ("nats=a", "'a' is no number")):
        assert says in command(*asked, "--require", given).error
    assert "needs references" in command(*asked[:6], "--require", "bleu=1").error


def test_check_reads_its_text_once_so_that_it_may_be_a_pipe(run: Path, corpus: Any, capfd: Any) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"".join(corpus.valid_src.read_bytes().splitlines(keepends=True)[:3]))
    os.close(writer)
    status = cli.run(["export", str(run), "--format", "ctranslate2", "--check", f"/dev/fd/{reader}"])
    os.close(reader)
    said = capfd.readouterr()
    assert status == 0, said.err
    assert "identical translations: 3 of 3 (100.0%)" in said.out


def test_two_processes_that_export_to_one_place_both_succeed(run: Path, tmp_path: Path) -> None:
    command = ["dragoman", "export", str(run), "--format", "ctranslate2", "--out", str(tmp_path / "x")]
    for _ in range(2):  # to a place that is free, and to one that is taken
        processes = [Forked(main, command) for _ in range(2)]
        assert [process.wait() for process in processes] == [0, 0]
        check_sealed(tmp_path / "x", "conversion")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "x"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "word"], "format must be ctranslate2, huggingface, argos, page or onnx, got 'word'"),
        (["--format", "ctranslate2", "--quantization", "int4"], "quantization must be float32"),
        (["--format", "ctranslate2", "--ref", "x"], "--ref, --json, --require and --to need --check"),
        *(
            (["--format", "ctranslate2", *option], "--device and --threads are for comparing an export: give --check")
            for option in (["--device", "cuda"], ["--threads", "1"])
        ),
        (["--format", "ctranslate2", "--json"], "--ref, --json, --require and --to need --check"),
        (["--format", "ctranslate2", "--out", "/"], "already exists and is not an export"),
        (["--format", "ctranslate2", "--check", "missing.en"], "missing.en: no such file"),
        (["--format", "ctranslate2", "--check", "missing.en", "--device", "tpu"], "'tpu'"),
        ([], "Missing option '--format': target format: ctranslate2, "),
    ],
)
def test_refusals(command: Command, run: Path, options: list[str], said: str) -> None:
    done = command("export", run, *options)
    assert done.status == 2
    assert said in done.error
    assert [path.name for path in run.iterdir()] == ["bundle"]


def test_translate_takes_an_engine(command: Command, run: Path, corpus: Any) -> None:
    want = command("translate", run, corpus.valid_src)
    done = command("translate", run, corpus.valid_src, "--engine", "ctranslate2")
    assert (done.status, done.out, done.err) == (0, want.out, "")
    done = command("translate", run, corpus.valid_src, "--engine", "auto")
    assert (done.out, done.err) == (want.out, "engine: ctranslate2 (the faster one on a CPU)\n")
    first = corpus.valid_src.read_bytes().split(b"\n")[0] + b"\n"
    done = command("translate", run, "--engine", "auto", "--no-repeat-ngram", "9", stdin=first)
    assert done.out == want.out.split(b"\n")[0] + b"\n"
    assert done.err == "engine: torch (CTranslate2 cannot do constrained decoding)\n"
    done = command("translate", run, "--engine", "ctranslate2", "--sample", stdin=first)
    assert (done.status, done.out) == (2, b"")
    assert done.error == "error: engine = 'ctranslate2' cannot do sampling: use engine torch (or auto), or leave it out"


def test_the_folder_one_stands_in_is_not_replaced(command: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = command("export", run, "--format", "ctranslate2", "--out", ".", cwd=tmp_path / "empty")
    assert done.status == 2
    assert ".: --out must name a folder" in done.error
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_page_is_one_file_with_its_certificate_beside_it(
    command: Command, run: Path, corpus: Any, tmp_path: Path
) -> None:
    file = tmp_path / "translator.html"
    asked = ("export", run, "--format", "page", "--out", file, "--check", corpus.valid_src, "--ref", corpus.valid_tgt)
    done = command(*asked, "--require", "nats=1e-4", "--require", "identical=1")
    assert done.status == 0, done.err
    said = done.out.decode().split("\n")
    assert said[:2] == [str(file), "A: our model, float32, torch; B: page, float32, computed in float32"]
    assert "lines split into other subwords: 0" in said
    assert {path.name for path in tmp_path.iterdir()} == {"run", "translator.html", "translator.certificate.json"}
    done = command(*asked, "--quantization", "int8", "--require", "nats=1e-9")
    assert done.status == 2
    assert "the export does not satisfy --require: nats must be" in done.err


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("content", ['{"subject": "CN=example.org"}', "BEGIN CERTIFICATE", ""])
def test_a_certificate_of_another_is_refused_before_the_export_is_written(
    command: Command, run: Path, corpus: Any, tmp_path: Path, content: str
) -> None:
    certificate = tmp_path / "de.certificate.json"
    certificate.write_text(content, encoding="utf-8")
    for name in ("de.html", "more/de.html"):  # next to the certificate, and elsewhere
        file = tmp_path / name
        done = command("export", run, "--format", "page", "--out", file, "--check", corpus.valid_src)
        if name == "de.html":
            assert done.status == 2
            said = "the comparison would replace this file, which is not one of dragoman; move it away, or choose"
            assert f"{certificate}: {said}" in done.error
        assert (done.status == 0) == file.exists() == (name != "de.html")
    assert certificate.read_text(encoding="utf-8") == content


def test_without_node_a_page_is_written_but_not_checked(
    command: Command, run: Path, corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = command("export", run, "--format", "page", "--check", corpus.valid_src, "--out", tmp_path / "x.html")
    assert (done.status, done.err) == (
        2, "error: comparing a page needs node, which is not installed: https://nodejs.org, or leave out --check\n"
    )  # fmt: skip
    assert not (tmp_path / "x.html").exists()
    assert command("export", run, "--format", "page", "--out", tmp_path / "x.html").status == 0


def test_the_demo_ends_with_a_page(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_page(run, Ticker())
    page = run / "translator.html"
    assert page.stat().st_size > 50_000
    assert capsys.readouterr().out.startswith(f"the translator as one file: {page} (0.")
    refuse_other_results(run)  # an older one is no other file
