"""``dragoman doctor``: before training, after it, and the page."""

from __future__ import annotations

import csv
import gzip
import html
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from dragoman.data import phrasebook
from dragoman.data.compression import open_corpus
from dragoman.doctor.diagnosis import diagnose_run

Command = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of 700 pairs with some damage, a test set of which two pairs were trained on."""
    pairs = list(dict.fromkeys(phrasebook.pairs(700)))
    test = [*phrasebook.pairs(10, split="held_out"), *pairs[:2]]
    pairs[100] = pairs[100][0], pairs[100][0]
    pairs[200] = "<script>alert(1)</script> & <b>", "<img src=x onerror=alert(1)> &amp; </svg></style>"
    pairs.append(pairs[5])
    for name, lines in (("train", pairs), ("test", test)):
        for lang, side in (("en", 0), ("de", 1)):
            (tmp_path / f"{name}.{lang}").write_text("".join(p[side] + "\n" for p in lines), encoding="utf-8")
    return tmp_path


TEXT = ("--src", "train.en", "--tgt", "train.de", "--quiet")
TEST = ("--test-src", "test.en", "--test-ref", "test.de")


def test_text_is_examined(command: Command, folder: Path) -> None:
    done = command("doctor", *TEXT, *TEST, cwd=folder)
    assert (done.status, done.err) == (0, "")
    out = done.out.decode()
    assert out.startswith("train.en and train.de\nmend first: 1 finding would spoil the training or cost quality\n\n")
    assert "2 of 12 pairs (16.7%) of the test set are in the training text  [test-overlap-pair]" in out
    for words in ("[untranslated]", "line 101: ", "[duplicate]"):
        assert words in out


def test_a_test_set_in_other_languages_than_the_training_text_is_told(command: Command, folder: Path) -> None:
    done = command("doctor", *TEXT, "--test-src", "test.de", "--test-ref", "test.en", cwd=folder)
    assert (done.status, done.out) == (2, b"")
    assert "test.de and test.en: de where train.en and train.de has en" in done.error
    for lang, name in (("de", "test.src"), ("en", "test.ref")):
        (folder / name).write_bytes((folder / f"test.{lang}").read_bytes())
    done = command("doctor", *TEXT, "--test-src", "test.src", "--test-ref", "test.ref", cwd=folder)
    assert done.status == 0, done.err
    out = done.out.decode()
    assert "test.src: looks like German (de), but the test source should be English (en)  [test-language]" in out
    assert "test.ref: looks like English (en), but the test target should be German (de)  [test-language]" in out


def test_several_texts_are_examined_each_and_together(command: Command, folder: Path) -> None:
    for lang in ("en", "de"):
        lines = (folder / f"train.{lang}").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / f"made_up.{lang}").write_text("".join(lines[:300]), encoding="utf-8")
        (folder / f"few.{lang}").write_text("".join(lines[300:340]), encoding="utf-8")
        (folder / f"test.{lang}").write_text("".join(lines[:2]), encoding="utf-8")
    entries = [
        {"src": "train.en", "tgt": "train.de"}, {"src": "made_up.en", "tgt": "made_up.de", "tag": "<bt>", "weight": 9},
        {"src": "few.en", "tgt": "few.de", "weight": 0},
    ]  # fmt: skip
    valid = {"src": "test.en", "tgt": "test.de"}
    (folder / "my.yaml").write_text(yaml.safe_dump({"data": {"train": entries, "valid": valid}}), encoding="utf-8")
    done = command("doctor", "my.yaml", "--quiet", "--out", "report", cwd=folder)
    assert done.status == 0, done.err
    out = done.out.decode()
    assert out.startswith("data.train of my.yaml, 3 texts\n")
    assert re.search(r"made_up.en and made_up.de +300 +2,700$", out, flags=re.MULTILINE)
    n = len((folder / "train.en").read_text(encoding="utf-8").splitlines())
    for words in (
        f"train.en and train.de: 1 of {n} pairs", "[untranslated]",
        "few.en and few.de: its weight is 0, so no pair of it is ever drawn  [never-drawn]",
        "each pair is drawn 9 times an epoch  [drawn-often]",
        f"{2700 / (2700 + n):.0%} of the pairs that an epoch draws have a tag (<bt>)",
        "300 of 300 pairs (100.0%) of made_up.en and made_up.de are also in an earlier entry  [in-another-text]",
        "2 of 2 pairs (100.0%) of the valid set are in the training text  [valid-overlap-pair]",
    ):  # fmt: skip
        assert words in out, words
    assert "made_up.en" in (folder / "report/doctor.html").read_text(encoding="utf-8")
    found = {one["name"]: one for one in json.loads(command("doctor", "my.yaml", "--json", cwd=folder).out)["findings"]}
    assert found["never-drawn"]["level"] == "warning"


def test_target_languages_and_tags_of_several_texts(command: Command, folder: Path) -> None:
    def doctor(*entries: dict[str, Any]) -> Any:
        (folder / "my.yaml").write_text(json.dumps({"data": {"train": entries}}), encoding="utf-8")
        return command("doctor", "my.yaml", "--quiet", cwd=folder)

    german = {"src": "train.en", "tgt": "train.de"}
    (folder / "fr.en").write_bytes((folder / "test.en").read_bytes())
    (folder / "fr.fr").write_text("le chien\n" * 12, encoding="utf-8")
    french = {"src": "fr.en", "tgt": "fr.fr"}
    out = doctor(german | {"tgt_lang": "de"}, french | {"tgt_lang": "fr"}).out.decode()
    assert "warning: of the pairs that an epoch draws: 98% into de, 2% into fr  [target-languages]" in out
    out = doctor(german | {"tag": "<a>"}, german | {"tag": "<b>"}).out.decode()
    assert "every entry has a tag, but text to translate has none  [only-tagged]" in out
    assert "weights sum to 0" in doctor(german | {"weight": 0}).error
    assert "a.tmx: no such file" in doctor(german, {"file": "a.tmx"}).error
    wrong = doctor(german, {"src": "train.de", "tgt": "train.en"}).error  # nothing says which language is meant
    assert "give one pair of languages in one direction" in wrong


def test_tables_and_memories_are_read_as_training_reads_them(command: Command, folder: Path) -> None:
    sides = [(folder / f"train.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de")]
    rows = list(zip(*sides, strict=True))
    expected = json.loads(command("doctor", *TEXT, "--json", cwd=folder).out)

    (folder / "a.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in rows), encoding="utf-8")
    with gzip.open(folder / "b.csv.gz", "wt", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("no", "de", "en"), *((i, tgt, src) for i, (src, tgt) in enumerate(rows))])
    unit = "<tu><tuv xml:lang='en'><seg>{}</seg></tuv><tuv xml:lang='de'><seg>{}</seg></tuv></tu>"
    units = "".join(unit.format(*(html.escape(side) for side in row)) for row in rows)
    (folder / "c.tmx").write_text(f"<tmx><header srclang='en'/><body>{units}</body></tmx>", encoding="utf-8")
    for words in (("a.tsv",), ("b.csv.gz", "--columns", "en,de"), ("c.tmx",)):
        found = json.loads(command("doctor", *words, "--json", "--quiet", cwd=folder).out)
        assert found["of"] == f"{words[0]} (its pairs are numbered from 1)"
        assert found["facts"] == expected["facts"]
        of_bytes = {"byte-order-mark", "carriage-return", "nul", "not-utf8", "too-long-line"}
        unlike = {"examples": [], "places": []}  # they name the file
        assert [{**one, **unlike} for one in found["findings"] if one["name"] != "target-language"] == [
            {**one, **unlike} for one in expected["findings"] if one["name"] not in {*of_bytes, "target-language"}
        ]

    several = command("doctor", "a.tsv", "c.tmx", "train.en", "train.de", "--quiet", cwd=folder).out.decode()
    assert several.startswith("training text, 3 texts\n")
    assert f"{len(rows)} of {len(rows)} pairs (100.0%) of c.tmx are also in an earlier entry" in several
    (folder / "b.csv").write_text('en,de\n"a dog\nruns",ein Hund\na cat,eine Katze\n', encoding="utf-8")
    out = command("doctor", "b.csv", "--quiet", cwd=folder).out.decode()
    assert "1 of 2 pairs (50.0%) contain a line break  [line-break]" in out


def test_damaged_text_is_mended_and_every_line_is_listed(command: Command, folder: Path) -> None:
    lines = (folder / "train.de").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.de").write_text("".join([*lines[:350], "Eine Zeile zu viel.\n", *lines[350:]]), encoding="utf-8")
    done = command(
        "doctor", "train.en", "train.de", "--list", "lines.tsv", "--write", "c.en", "c.de", "--out", "r", "--quiet",
        cwd=folder,
    )  # fmt: skip
    assert done.status == 0, done.err
    out = done.out.decode()
    assert "\nmend first: 2 findings would spoil the training or cost quality\n" in out
    assert "\n  next: dragoman doctor c.en c.de\n" in out  # not to mend it once more
    assert "    train.de:351: one line too many here, or missing in train.en before line 351\n" in out
    assert "mend first: 2 findings" in (folder / "r/doctor.html").read_text(encoding="utf-8")
    rows = (folder / "lines.tsv").read_text(encoding="utf-8").split("\n")
    assert rows[0] == "finding\tfile\tline\tabout"
    assert any(row.startswith("shifted\ttrain.de\t351\tone line too many") for row in rows)
    assert done.err == ""  # as --quiet says; the files are named without it, see the next test
    assert (folder / "c.en.log.tsv").read_text(encoding="utf-8").startswith("action\treason\t")
    sides = [(folder / name).read_text(encoding="utf-8").splitlines() for name in ("c.en", "c.de")]
    assert sides[1][350] == lines[350].rstrip("\n")
    found = json.loads(command("doctor", "c.en", "c.de", "--json", cwd=folder).out)
    assert found["verdict"] == "fit to train"


@pytest.mark.parametrize("suffix", [".gz", ".GZ", ".zst", ""])
def test_a_text_of_which_nothing_is_left_is_an_empty_text_in_the_form_of_its_name(
    command: Command, folder: Path, suffix: str
) -> None:
    for name in ("blank.en", "blank.de"):
        (folder / name).write_bytes(b"\n\n\n")
    outs = folder / f"none.en{suffix}", folder / f"none.de{suffix}"
    done = command("doctor", "blank.en", "blank.de", "--write", *outs, cwd=folder)
    assert done.status == 0
    assert f"0 pairs are in {outs[0]} and {outs[1]}; " in done.err
    assert f"; every line of it is in {outs[0]}.log.tsv" in done.err
    for out in outs:
        assert (out.stat().st_size > 0) is (suffix != "")
        with open_corpus(out) as stream:  # which refuses a compressed file without a byte
            assert stream.read() == b""


def test_the_next_command_trains_on_what_was_examined(command: Command, folder: Path) -> None:
    """Of a configuration it named the text alone, and text to validate with not at all."""
    texts = {"train": {"src": "train.en", "tgt": "train.de"}}
    (folder / "my.yaml").write_text(json.dumps({"data": texts}), encoding="utf-8")
    found = command("doctor", "my.yaml", "--set", "data.max_tokens=99", "--quiet", cwd=folder).out.decode()
    assert "\n  next: dragoman train my.yaml --set data.max_tokens=99 --out runs/first\n" in found
    for name in ("-a.en", "-a.de"):
        (folder / name).write_bytes((folder / f"train.{name[-2:]}").read_bytes())
    new = dict.fromkeys(list(phrasebook.pairs(900))[850:])  # not in the training text
    for side, name in enumerate(("v.en", "v.de")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in new), encoding="utf-8")
    named = ("--src", "./-a.en", "--tgt", "./-a.de", "--valid-src", "v.en", "--valid-tgt", "v.de")
    found = command("doctor", *named, "--quiet", cwd=folder).out.decode()
    assert "\n  next: dragoman train ./-a.en ./-a.de --valid v.en --valid v.de --out runs/first\n" in found


def test_text_that_is_named_clean_is_mended_into_other_files(command: Command, folder: Path) -> None:
    lines = (folder / "train.de").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "clean.de").write_text("".join([*lines[:350], "Eine Zeile zu viel.\n", *lines[350:]]), encoding="utf-8")
    (folder / "clean.en").write_bytes((folder / "train.en").read_bytes())
    found = command("doctor", "clean.en", "clean.de", "--quiet", cwd=folder).out.decode()
    (line,) = [line for line in found.split("\n") if line.startswith("  next: ")]
    assert line == "  next: dragoman doctor clean.en clean.de --write clean-2.en clean-2.de"
    assert command(*line.split()[2:], "--quiet", cwd=folder).status == 0
    found = command("doctor", "clean.en", "clean.de", "--quiet", cwd=folder).out.decode()
    assert " --write clean-3.en clean-3.de\n" in found  # nothing that is there is replaced


def test_the_page_of_text_whose_name_is_not_utf8_is_written(command: Command, folder: Path) -> None:
    """It ended in a traceback once all was read."""
    names = [folder / os.fsdecode(b"caf\xe9.%s" % lang) for lang in (b"en", b"de")]
    for name in names:
        name.write_bytes((folder / f"train.{name.suffix[1:]}").read_bytes())
    done = command("doctor", *names, "--out", "page", "--quiet", cwd=folder)
    assert done.status == 0
    assert b"dragoman train " in done.out
    assert b"caf\xe9.en" in done.out
    assert b"caf\xe9.en" in (folder / "page/doctor.html").read_bytes()


def test_a_table_is_mended_into_two_files(command: Command, folder: Path) -> None:
    sides = [(folder / f"train.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de")]
    rows = [f"{src}\t{tgt.replace(' ', chr(0xA0), 1)}\n" for src, tgt in zip(*sides, strict=True)]
    (folder / "a.tsv").write_text("".join(rows), encoding="utf-8")
    done = command("doctor", "a.tsv", "--write", "c.en.gz", "c.de.gz", "--quiet", cwd=folder)
    assert done.status == 0, done.err
    mended = gzip.decompress((folder / "c.de.gz").read_bytes()).decode().splitlines()
    assert mended[:100] == sides[1][:100]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("train.en", "train.de", "--write", "train.en", "c.de"), "train.en: is the input; choose another name"),
        (("train.en", "train.de", "--write", "c", "c"), "must be two files"),
        (("train.en", "train.de", "--list", "train.de"), "train.de: is the input"),
        (("train.en", "train.de", "test.en", "test.de", "--write", "a", "b"), "one text at a time, got 2"),
        (("train.en", "train.de", "--write", "no/a", "b"), "no/a: cannot be written"),
        (("my.yaml", "--list", "train.de"), "train.de: is the input"),
        (("my.yaml", "--list", "my.yaml"), "my.yaml: is the input"),
        (("my.yaml", "--write", "a", "test.de"), "test.de: is the input"),
        (("train.en", "train.de", *TEST, "--write", "test.en", "b"), "test.en: is the input"),
        (("train.en", "train.de", "--write", "a", "../a-pipe"), "../a-pipe: must be a file"),
    ],
)
def test_an_output_that_cannot_be_is_refused_first(
    command: Command, folder: Path, args: tuple[str, ...], says: str
) -> None:
    pipe = folder.parent / "a-pipe"  # no device of this machine: code that fails here would replace it
    if not pipe.exists():
        os.mkfifo(pipe)
    data = "{train: {src: train.en, tgt: train.de}, valid: {src: test.en, tgt: test.de}}"
    (folder / "my.yaml").write_text(f"model: {{preset: tiny}}\ndata: {data}\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert says in command("doctor", *args, cwd=folder).error
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_two_sides_that_would_be_one_file_are_refused_first(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On macOS one side was lost, and the command said that both were written."""
    monkeypatch.setattr("dragoman.files.taken_for_one", tuple)
    done = command("doctor", "train.en", "train.de", "--write", "mended.txt", "Mended.txt", cwd=folder)
    assert "mended.txt, " in done.error
    assert "Mended.txt: must be two files, but their file system takes both names for one" in done.error
    assert not [*folder.glob("[mM]ended*")]


@pytest.mark.parametrize(
    "args", [("--list", "r/doctor.html"), ("--write", "r/doctor.html", "c.de"), ("--write", "c.de", "r/doctor.html")]
)
def test_another_output_with_the_name_of_the_page_is_refused_first(
    command: Command, folder: Path, args: tuple[str, ...]
) -> None:
    """The page replaced it, with status 0."""
    done = command("doctor", "train.en", "train.de", "--out", "r", *args, cwd=folder)
    assert done.status == 2
    assert "r/doctor.html: is named for two outputs" in done.error
    assert not (folder / "r").exists()


@pytest.mark.parametrize("args", [("--list", "r"), ("--write", "r", "c.de"), ("--write", "c.en", "r")])
def test_the_folder_of_the_page_as_another_output_is_refused_first(
    command: Command, folder: Path, args: tuple[str, ...]
) -> None:
    """It became a file, and there was no page after minutes."""
    for out in ("r", "r/s"):
        done = command("doctor", "train.en", "train.de", "--out", out, *args, cwd=folder)
        assert done.status == 2
        assert "r: the page is written to this folder or below it" in done.error
    assert not (folder / "r").exists()


@pytest.mark.parametrize(("name", "args"), [
    ("r/doctor.html", ("--out", "r")), ("c.en.log.tsv", ("--write", "c.en", "c.de")),
])  # fmt: skip
def test_a_file_of_another_under_a_name_that_nobody_gave_is_refused_first(
    command: Command, folder: Path, name: str, args: tuple[str, ...]
) -> None:
    (folder / "r").mkdir()
    (folder / name).write_text("action\tmine\n", encoding="utf-8")
    before = sorted(path for path in folder.rglob("*"))
    done = command("doctor", "train.en", "train.de", *args, cwd=folder)
    assert done.status == 2
    assert f"{name}: the " in done.error
    assert "would replace this file, which is no" in done.error
    assert sorted(path for path in folder.rglob("*")) == before
    assert (folder / name).read_text(encoding="utf-8") == "action\tmine\n"


def test_texts_that_differ_in_their_endings_have_logs_of_their_own(command: Command, folder: Path) -> None:
    """The second log replaced the first."""
    lines = (folder / "train.en").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.en").write_text("".join(["A line &amp; more.\n", *lines[1:]]), encoding="utf-8")
    for _ in range(2):
        for names in (("c.en", "c.de"), ("c.fr", "d.de"), ("c.en.gz", "e.de")):
            done = command("doctor", "train.en", "train.de", "--write", *names, "--quiet", cwd=folder)
            assert done.status == 0, done.err
    assert {path.name for path in folder.glob("*.log.tsv")} == {"c.en.log.tsv", "c.fr.log.tsv", "c.en.gz.log.tsv"}


def test_a_list_never_replaces_a_file_of_the_run(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    before = (run / "config.yaml").read_bytes()
    assert "config.yaml: is the input" in command("doctor", run, "--list", run / "config.yaml").error
    assert (run / "config.yaml").read_bytes() == before


def test_a_list_goes_into_a_device_and_where_a_link_leads(command: Command, folder: Path) -> None:
    command("doctor", "train.en", "train.de", "--list", "list.tsv", cwd=folder)
    expected = (folder / "list.tsv").read_bytes()
    assert expected.count(b"\n") > 2
    (folder / "place").mkdir()
    (folder / "link").symlink_to("place/list.tsv")
    command("doctor", "train.en", "train.de", "--list", "link", cwd=folder)
    assert (folder / "link").is_symlink()
    assert (folder / "place/list.tsv").read_bytes() == expected
    reading, writing = os.pipe()  # what it holds is less than a pipe takes without a reader
    (folder / "pipe").symlink_to(f"/dev/fd/{writing}")
    code = "import sys; from dragoman.cli import run; run(sys.argv[1:])"
    args = [sys.executable, "-c", code, "doctor", "train.en", "train.de", "--quiet", "--list", "pipe"]
    subprocess.run(args, cwd=folder, pass_fds=[writing], check=True, stdout=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == expected
    assert (folder / "pipe").is_symlink()


def test_the_command_that_trains_names_a_folder_without_a_run(command: Command, folder: Path) -> None:
    (folder / "runs/first").mkdir(parents=True)
    pairs = list(dict.fromkeys(phrasebook.pairs(700)))
    for lang, side in (("en", 0), ("de", 1)):
        (folder / f"good.{lang}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    assert b"dragoman train good.en good.de --out runs/first-2" in command("doctor", "good", "en", "de", cwd=folder).out


def test_text_is_named_as_train_takes_it(command: Command, folder: Path) -> None:
    (folder / "my.yaml").write_text("model: {preset: tiny}\n", encoding="utf-8")
    expected = command("doctor", *TEXT, "--set", "model.preset=tiny", cwd=folder).out
    for words in (
        ("train.en", "train.de", "--set", "model.preset=tiny"),
        ("train", "en", "de", "--set", "model.preset=tiny"),
    ):
        done = command("doctor", *words, "--quiet", cwd=folder)
        assert (done.status, done.out) == (0, expected), done.err
    assert command("doctor", "my.yaml", "train", "en", "de", "--quiet", cwd=folder).out.startswith(b"train.en and")


def test_text_from_a_pipe_is_refused_for_it_is_read_twice(command: Command, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = command("doctor", "--src", "train.en", "--tgt", "pipe", cwd=folder)
    assert done.status != 0
    assert "pipe: a pipe, but it is read more than once; write it to a file" in done.err
    os.mkfifo(folder / "pipe.tsv")  # nobody writes into them: whoever opens one waits
    for words in (("doctor", "pipe.tsv"), ("train", "pipe", "train.de", "--out", "r"), ("train", "pipe.tsv")):
        assert "a pipe, but it is read more than once" in command(*words, cwd=folder).error
    assert not (folder / "r").exists()


def test_json_has_the_same_findings(command: Command, folder: Path) -> None:
    found = json.loads(command("doctor", *TEXT, *TEST, "--json", cwd=folder).out)
    by_name = {finding["name"]: finding for finding in found["findings"]}
    assert by_name["untranslated"]["lines"] == [101]
    assert by_name["duplicate"]["n"] == 1
    assert by_name["test-overlap-pair"]["lines"] == [11, 12]
    assert found["facts"]["pairs"] == len((folder / "train.en").read_text(encoding="utf-8").split("\n")) - 1
    levels = [finding["level"] for finding in found["findings"]]
    assert levels == sorted(levels, key=("error", "warning", "note").index)


def test_a_configuration_is_read_and_may_be_changed(command: Command, folder: Path) -> None:
    config = {
        "model": {"preset": "tiny"},
        "data": {"train": {"src": "train.en", "tgt": "train.de"}, "valid": {"src": "test.en", "tgt": "test.de"}},
    }
    (folder / "my.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    args = ("doctor", "my.yaml", "--quiet", "--json", "--set", "train.batch_tokens=50000", "--memory", "1.5")
    found = json.loads(command(*args, cwd=folder).out)
    by_name = {finding["name"]: finding for finding in found["findings"]}
    assert by_name["valid-overlap-pair"]["n"] == 2
    assert by_name["memory"]["level"] == "error"
    assert "batches of 50,000 tokens" in by_name["memory"]["what"]


def test_a_run_is_diagnosed(command: Command, tiny_run: Path) -> None:
    found = json.loads(command("doctor", tiny_run, "--json").out)
    assert found["facts"]["step"] == 250
    assert not [finding for finding in found["findings"] if finding["level"] != "note"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "nothing to examine: give a run, a configuration, or training text such as train.en train.de"),
        (("--src", "train.en"), "give both sides of the training text: --src and --tgt"),
        ((*TEXT, "--test-src", "test.en"), "give both sides of the test text: --test-src and --test-ref"),
        (("--src", "none.en", "--tgt", "train.de"), "none.en: no such file"),
        ((*TEXT, "--valid-src", "none.en", "--valid-tgt", "test.de"), "none.en: no such file"),
        (("none.yaml",), "none.yaml: no such file"),
        (("train.en",), "train.en: one side alone"),
        (("pairs.tsv",), "pairs.tsv: no such file"),
        (("--set", "data.train={file: a.tmx}"), "a.tmx: no such file"),
        (("three.csv",), "three.csv:1: 3 cells (1, en, de); choose source and target, for example --columns 2,3"),
        (("three.csv", "--columns", "1"), "columns must be two names or numbers, as en,de, got '1'"),
        (("train.en", "train.de", "--columns", "1,2"), "--columns belongs to a table"),
        (("train.en", "train.de", *TEXT), "the training text is given twice"),
        ((".",), ". is a folder; give two text files"),
        ((".", "train.de"), ". is a folder; give two text files"),
        (("run", *TEXT), "is a run: leave out other files and options"),
        ((*TEXT, "--set", "model.n_head=3"), "did you mean"),
        ((*TEXT, "--out", "train.en"), "train.en"),
        ((*TEXT, "--memory", "0"), "0"),
    ],
)
def test_what_cannot_be_done_is_one_line(command: Command, folder: Path, args: tuple[str, ...], says: str) -> None:
    (folder / "three.csv").write_text("1,en,de\n", encoding="utf-8")
    (folder / "run").mkdir()
    (folder / "run/config.yaml").write_text("", encoding="utf-8")
    done = command("doctor", *args, cwd=folder)
    assert (done.status, done.out) == (2, b"")
    assert says in done.error


class Outline(html.parser.HTMLParser):
    """Tags that are open, all that were seen, their attributes, and the text."""

    VOID = ("meta", "br", "img", "link", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(page: Path) -> Outline:
    found = Outline()
    found.feed(page.read_text(encoding="utf-8"))
    assert found.open == []
    return found


def check_offline(found: Outline) -> None:
    """Nothing is loaded, nothing runs, ids are unique."""
    assert not {"script", "img", "link", "iframe", "object", "foreignobject"} & {tag for tag, _ in found.seen}
    for _, attributes in found.seen:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "xlink:href", "src"):
            assert (attributes.get(name) or "#").startswith("#")
        assert not re.search(r"url\((?!#)", attributes.get("style") or "")
    ids = [attributes["id"] for _, attributes in found.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in found.seen


def test_the_page_of_a_corpus(command: Command, folder: Path) -> None:
    pytest.importorskip("matplotlib")
    done = command("doctor", *TEXT, "--out", "report/here", cwd=folder)
    assert done.status == 0
    found = outline(folder / "report/here/doctor.html")
    check_offline(found)
    assert "<img src=x onerror=alert(1)> &amp; </svg></style>" in found.text  # escaped, so it is text
    figures = [attributes for tag, attributes in found.seen if tag == "svg"]
    assert len(figures) == 4
    assert all(attributes["aria-label"] for attributes in figures)


def test_the_page_of_a_run(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert command("doctor", tiny_run, "--out", tmp_path).status == 0
    found = outline(tmp_path / "doctor.html")
    check_offline(found)
    titles = [attributes["aria-label"] for tag, attributes in found.seen if tag == "svg"]
    # one validation makes no curve of quality
    assert titles == ["Perplexity", "Learning rate", "Gradient", "Speed", "How long the sentences are"]


def test_the_same_findings_make_the_same_page(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a", "b"):
        assert command("doctor", tiny_run, "--out", tmp_path / name).status == 0
    assert (tmp_path / "a/doctor.html").read_bytes() == (tmp_path / "b/doctor.html").read_bytes()


def test_without_matplotlib_the_page_has_no_figures_and_says_so(
    command: Command, monkeypatch: pytest.MonkeyPatch, tiny_run: Path, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = command("doctor", tiny_run, "--out", tmp_path / "new")
    assert done.status == 0
    missing = "drawing figures needs matplotlib, which is not installed: pip install matplotlib"
    assert f"the page has no figures: {missing}" in done.err
    page = (tmp_path / "new/doctor.html").read_text(encoding="utf-8")
    assert f"Figures are left out: {missing}" in page
    assert diagnose_run(tiny_run)._repr_html_().startswith("<iframe srcdoc=")
    assert "<figure>" not in page


@pytest.mark.parametrize(
    ("config", "args", "says"),
    [
        ("train:\n", TEXT, "train"),
        ("data:\n", TEXT, "data"),
        ("model: {no_such: 1}\n", TEXT, "no_such"),
        (None, (*TEXT, "--set", "data=5"), "data"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused_before_the_text_is_read(
    command: Command, folder: Path, config: str | None, args: tuple[str, ...], says: str
) -> None:
    given: tuple[str, ...] = ()
    if config is not None:
        (folder / "wrong.yaml").write_text(config, encoding="utf-8")
        given = ("wrong.yaml",)
    done = command("doctor", *given, *args, cwd=folder)
    assert (done.status, done.out) == (2, b"")
    assert says in done.error
    if config is not None and args:
        assert "lines" not in done.err.replace(done.error, "")


@pytest.mark.skipif(torch.cuda.is_available(), reason="for a machine without a GPU")
def test_a_configuration_for_another_machine_is_examined_all_the_same(command: Command, folder: Path) -> None:
    (folder / "gpu.yaml").write_text("train: {device: cuda}\nmodel: {preset: tiny}\n", encoding="utf-8")
    for memory, level, says in (
        ((), "note", "torch sees no GPU here"),
        (("--memory", "0.3"), "error", "of the given 0.3 GiB"),
    ):
        found = json.loads(command("doctor", "gpu.yaml", *TEXT, "--json", "--quiet", *memory, cwd=folder).out)
        by_name = {finding["name"]: finding for finding in found["findings"]}
        assert by_name["memory"]["level"] == level
        assert says in by_name["memory"]["what"]
        assert by_name["untranslated"]["lines"] == [101]
