"""The command line and the public names say and compute what they did when ``texts.json`` was recorded."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RECORD = HERE / "record.py"
Json = Any

READING = re.compile(r"U\+FFFD|byte order mark|error:|splits? into|is blank")
"""Warnings of the text that is read and not of what the model made of it. (Parts of a line are of the model's size.)"""


def recorded(out: Path, only: str) -> Json:
    done = subprocess.run([sys.executable, RECORD, "--out", out, "--only", only], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "texts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def unlike() -> Callable[..., list[str]]:
    """The comparison of the script, as a function."""
    sys.path.insert(0, str(HERE))
    try:
        spec = importlib.util.spec_from_file_location("golden_record", RECORD)
        assert spec is not None and spec.loader is not None  # noqa: PT018
        module = importlib.util.module_from_spec(spec)
        before = dict(os.environ)
        spec.loader.exec_module(module)
        os.environ.clear()
        os.environ.update(before)  # its settings are for its own processes
    finally:
        sys.path.remove(str(HERE))
    return lambda old, new: list(module.unlike(old, new, 0.0))


@pytest.fixture(scope="session")
def committed() -> Json:
    return json.loads((HERE / "texts.json").read_text(encoding="utf-8"))


def same_words(committed: Json, found: Json, *packages: str) -> bool:
    """Whether the packages that words come from are those of the record."""
    return all(committed["versions"].get(name) == found["versions"].get(name) for name in packages)


def test_help_refusals_and_public_names_are_those_of_the_record(
    tmp_path: Path, committed: Json, unlike: Callable[..., list[str]]
) -> None:
    found = recorded(tmp_path, "plain")
    if not same_words(committed, found, "typer", "rich", "pydantic", "sentencepiece"):
        pytest.skip("the record was made with other versions of the packages that word these texts")
    pages = [(folder / "help.txt").read_text(encoding="utf-8").split("\n") for folder in (HERE, tmp_path)]
    assert unlike(*pages) == []
    left_out = {"machine", "versions"}
    if not same_words(committed, found, "ctranslate2"):
        left_out |= {name for name in found if "ctranslate2" in name}
    assert (
        unlike(*({k: v for k, v in one.items() if k in found and k not in left_out} for one in (committed, found)))
        == []
    )


def bare(case: Json) -> Json:
    """Of a case what does not hang on the last bits of a training: exit status, refusals, warnings about the text."""
    if not isinstance(case, dict) or "exit" not in case:
        return None
    return {"exit": case["exit"], "err": [line for line in case["err"] if READING.search(line)]}


@pytest.mark.slow
def test_translations_notes_and_files_are_those_of_the_record(
    tmp_path: Path, committed: Json, unlike: Callable[..., list[str]]
) -> None:
    """To the letter where the record was made; elsewhere last bits differ, and what stays is compared."""
    found = recorded(tmp_path, "all")
    here = {name: value for name, value in found.items() if name not in ("machine", "versions")}
    there = {name: value for name, value in committed.items() if name not in ("machine", "versions")}
    if found["machine"] == committed["machine"] and same_words(committed, found, *committed["versions"]):
        assert unlike(there, here) == []
        return
    words = "typer", "rich", "pydantic", "sentencepiece", "sacrebleu", "ctranslate2"
    if not same_words(committed, found, *words):
        pytest.skip("the record was made with other versions of the packages that word these texts")
    stays = [name for name in there if not re.search("bf16|int8", name)]  # which not every processor has
    assert unlike({name: bare(there[name]) for name in stays}, {name: bare(here.get(name)) for name in stays}) == []


def test_the_comparison_names_what_differs(unlike: Callable[..., list[str]]) -> None:
    old = {"a": {"out": ["x", "y"]}, "b": [1.0, 2.0], "c": 1}
    assert unlike(old, json.loads(json.dumps(old))) == []
    new = {"a": {"out": ["x", "z"]}, "b": [1.0, 2.0000000000000004], "d": 1}
    found = unlike(old, new)
    assert [line.partition(":")[0] for line in found] == ["a / out[1]", "b[1]", "c", "d"]
    assert 'old "y"' in found[0]
    assert 'new "z"' in found[0]
    assert "2.0 -> 2.0000000000000004" in found[1]
