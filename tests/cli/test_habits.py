"""Near misses, what others call things, examples, and the tab key."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.commands import COMMANDS, load
from dragoman.cli.completion import among, runs, settings
from dragoman.cli.habits import COMMANDS as OF_OTHERS
from dragoman.cli.habits import NAMES, RENAMED, with_present_names
from dragoman.config import Config, all_settings

Command = Callable[..., Any]


def options_of(command: str) -> set[str]:
    return {name for parameter in load(command).params for name in parameter.opts}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("translate r --beam 5", "did you mean --beam-size?"),
        ("translate r -b 5", "did you mean --beam-size?"),
        ("translate r --beam_size=5", "did you mean --beam-size?"),
        ("translate r --lenpen 1", "did you mean --length-penalty?"),
        ("translate r --no-gaurd", "did you mean --no-guard?"),
        ("translate r --nbest 3", "did you mean --n-best?"),
        ("translate r --input f", "name the file after the run: dragoman translate RUN FILE"),
        ("translate r --source-lang en", "not needed: a run knows its languages"),
        ("train --max-minutes 5", "did you mean --minutes?"),
        ("train --max-update 5", "did you mean --set train.max_steps=N?"),
        ("train --lr 1", "did you mean --set train.lr=...?"),
        ("train --label-smoothing 0", "did you mean --set train.label_smoothing=...?"),
        ("train --arch base", "did you mean --set model.preset=base"),
        ("lab --list", "leave it out: dragoman lab lists the experiments"),
        ("lab --quik", "did you mean --quick?"),
        ("runs --list", "No such option: --list (see dragoman runs --help)"),
        ("evaluate r --wanted x", "No such option: --wanted (see dragoman evaluate --help)"),
    ],
)
def test_an_option_that_is_not_there_leads_to_the_one_that_is(given: str, says: str, command: Command) -> None:
    done = command(*given.split())
    assert done.status == 2
    assert says in done.error


def test_what_habits_lead_to_is_there_and_what_they_are_is_not() -> None:
    for command, names in NAMES.items():
        known = options_of(command)
        for others, ours in names.items():
            assert not known & set(others.split()), others
            if ours.startswith("--set "):
                assert ours.split()[1].partition("=")[0] in all_settings(Config)
            elif ours.startswith("-"):
                assert ours.split()[0] in known


def test_an_option_has_one_meaning_in_all_commands() -> None:
    meanings: dict[str, dict[str, set[str]]] = {"--from": {}, "--to": {}, "--ref": {}, "--src": {}}
    for command in COMMANDS:
        for parameter in load(command).params:
            for name in set(parameter.opts) & set(meanings):
                meanings[name].setdefault(_meaning(parameter.help), set()).add(command)
    assert {name: list(by_meaning) for name, by_meaning in meanings.items()} == {
        "--from": ["source language"], "--to": ["target language"], "--ref": ["translations"], "--src": ["source text"],
    }  # fmt: skip


def _meaning(help: str) -> str:
    """Return the meaning of an option by words of its help; the help itself if it has none of them."""
    meanings = {
        r"source language": "source language", r"target language": "target language",
        r"^(with --check: |with --ref: )?(references|its translations|translations to score)": "translations",
        r"source (side|text)": "source text",
    }  # fmt: skip
    return next((meaning for words, meaning in meanings.items() if re.search(words, help.lower())), help)


def test_former_names_lead_to_names_that_are_there() -> None:
    for command, renamed in RENAMED.items():
        assert set(renamed.values()) <= options_of(command)
        assert (set(renamed) - set(renamed.values())).isdisjoint(options_of(command))


@pytest.mark.parametrize(
    ("command", "arguments", "present"),
    [
        ("train", ["a", "--from", "demo", "--", "--from"], ["a", "--from-run", "demo", "--", "--from"]),
        ("score", ["r", "--src", "a", "--tgt=b"], ["r", "--src", "a", "--ref=b"]),
        ("explain", ["r", "A.", "--target", "B."], ["r", "A.", "--translation", "B."]),
        ("export", ["r", "--to", "onnx", "--target", "fr"], ["r", "--format", "onnx", "--to", "fr"]),
        ("export", ["r", "--format", "onnx", "--to", "fr"], ["r", "--format", "onnx", "--to", "fr"]),
        ("export", ["r", "--to", "fr", "--format=onnx"], ["r", "--to", "fr", "--format=onnx"]),
        ("translate", ["r", "--to", "fr", "--from", "en"], ["r", "--to", "fr", "--from", "en"]),
    ],
)
def test_former_names_of_options_work(command: str, arguments: list[str], present: list[str]) -> None:
    words, warnings = with_present_names(command, arguments)
    assert words == present
    assert len(warnings) == sum(a != b for a, b in zip(arguments, present, strict=True))


def test_a_former_name_gives_one_warning(command: Command, tiny_run: Path, corpus: Any) -> None:
    files = ("--src", corpus.valid_src)
    former = command("score", tiny_run, *files, "--tgt", corpus.valid_tgt)
    present = command("score", tiny_run, *files, "--ref", corpus.valid_tgt)
    assert former.out == present.out != b""
    assert former.err.split("\n").count("warning: --tgt is called --ref now") == 1
    assert "is called" not in present.err
    refused = command("export", tiny_run, "--to", "word")
    assert "warning: --to is called --format now\n" in refused.err
    assert "format must be" in refused.error


def test_a_setting_without_its_section_is_named_with_it(command: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n" * 300, encoding="utf-8")
    done = command("train", "--src", "a", "--tgt", "b", "--out", "r", "--set", "max_minutes=5", cwd=tmp_path)
    assert "unknown setting max_minutes: did you mean train.max_minutes?" in done.error


def test_a_text_for_a_file_and_a_file_for_a_text_are_told_apart(command: Command, tmp_path: Path) -> None:
    done = command("translate", "r", "The child sees.", cwd=tmp_path)
    assert "The child sees.: no such file" in done.error
    assert "echo TEXT | dragoman translate r, or dragoman translate r -i" in done.error
    (tmp_path / "t.en").write_text("a\n", encoding="utf-8")
    done = command("explain", "r", "t.en", cwd=tmp_path)
    assert "t.en is a file, but explain takes a sentence" in done.error


def test_each_command_shows_three_examples_made_of_what_there_is(command: Command) -> None:
    for name, about in COMMANDS.items():
        assert len(about.examples) == 3
        for example in about.examples:
            program, shown, *arguments = shlex.split(example.rpartition("| ")[2])
            assert (program, shown) == ("dragoman", name)
            assert {one for one in arguments if one.startswith("-")} <= options_of(name), example
        assert about.examples[0] in command(name, "--help").out.decode()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("generate", "RUN"), "No such command 'generate'; did you mean dragoman translate RUN FILE, or dragoman tr"),
        (("fairseq-preprocess",), "not needed: dragoman train learns the subwords"),
        (("bleu", "--ref", "a"), "did you mean dragoman evaluate RUN --src FILE --ref FILE?"),
        (("install", "en_de"), "nothing is downloaded"),
        (("help", "train"), "did you mean dragoman --help, or dragoman COMMAND --help?"),
        (("translat", "RUN"), "Did you mean 'translate'"),
        (("translate", "RUN", "--num-beams", "4"), "did you mean --beam-size?"),
    ],
)
def test_commands_of_others_lead_somewhere(command: Command, given: tuple[str, ...], says: str) -> None:
    assert says in command(*given).error


def test_no_command_of_others_is_one_of_ours() -> None:
    ours = set(COMMANDS)
    assert ours.isdisjoint(" ".join(OF_OTHERS).split())
    for said in re.findall(r"dragoman ([a-z]+)", " ".join(OF_OTHERS.values())):
        assert said in ours


def test_the_tab_key_completes_runs_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runs/first", "runs/other", "texts"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "runs/first/config.yaml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert runs("") == ["runs/", "texts/", "demo", "demo-zh", "en-de", "en-zh"]
    assert runs("runs/") == ["runs/first", "runs/other/"]
    assert runs("ru") == runs("runs/")  # no "runs/" alone, behind which the shell would put a space
    assert runs("te") == ["texts/"]
    assert runs("runs/f") == ["runs/first"]
    assert among(["page", "onnx"])("o") == ["onnx"]
    assert runs("nowhere/x") == []
    assert settings("train.max_m") == ["train.max_minutes="]
    assert settings("data.tok") == [name for name in settings("data.") if "tokenizer" in name]


def test_the_shell_asks_and_is_answered(process: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "dragoman train --set train.max_m"
    for name, value in {"_DRAGOMAN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}.items():
        monkeypatch.setenv(name, value)
    assert process().out.decode().split() == ["train.max_minutes="]


def test_segment_scores_of_any_metric_are_compared(command: Command, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("".join(f"{0.5 + i / 1000}\n" for i in range(100)), encoding="utf-8")
    b.write_text("".join(f"{0.6 + i / 1000 + (i % 3) / 50}\n" for i in range(100)), encoding="utf-8")
    done = command("evaluate", "A", "B", "--segment-scores", a, b)
    assert done.status == 0
    first, verdict = done.out.decode().splitlines()
    assert first.startswith("segment scores  A 0.5495  B 0.6693  B - A +0.1198 [+0.1")
    assert verdict.startswith("segment scores: B is better than A by 0.1198 (p = 0.0001")
    done = command("evaluate", "A", "B", "--segment-scores", a, a)
    assert "no difference shown between A and B (p = 1)" in done.out.decode()
    b.write_text("0.5\nnot\n", encoding="utf-8")
    refused = command("evaluate", "A", "B", "--segment-scores", a, b)
    assert f"{b}:2: a line of scores must be a number, got 'not'" in refused.error
    b.write_text("0.5\n", encoding="utf-8")
    assert "100 scores but 1" in command("evaluate", "A", "B", "--segment-scores", a, b).error
    assert "two names and two files" in command("evaluate", "A", "--segment-scores", a, b).error
