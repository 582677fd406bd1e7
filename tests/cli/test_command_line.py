"""The command line itself: fast to start, and what it prints where."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman

Command = Callable[..., Any]

_WHAT_IS_LOADED = """
import json, sys
from dragoman.cli import run
status = run(sys.argv[1:])
heavy = ("torch", "numpy", "sacrebleu", "sentencepiece", "matplotlib", "yaml")
print(json.dumps([status, [name for name in heavy if name in sys.modules]]), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "args", [["--help"], ["train", "-h"], ["translate", "--help"], ["--version"], ["lab"], ["trian"]]
)
def test_help_loads_none_of_the_heavy_libraries(args: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", _WHAT_IS_LOADED, *args], capture_output=True, text=True)
    status, loaded = json.loads(done.stderr.split("\n")[-2])
    assert (status, loaded) == (2 if args == ["trian"] else 0, [])


def test_without_arguments_the_help_is_shown(command: Command) -> None:
    bare, asked = command(), command("--help")
    assert bare.status == asked.status == 0
    assert bare.out == asked.out
    for name in (b"demo", b"train", b"translate", b"evaluate", b"explain", b"lab"):
        assert name in asked.out


@pytest.mark.parametrize("name", ["demo", "train", "translate", "evaluate", "explain", "doctor"])
def test_each_command_has_help(command: Command, name: str) -> None:
    done = command(name, "--help")
    assert (done.status, done.err) == (0, "")
    assert b"--" in done.out


def test_the_version_is_the_packages(command: Command) -> None:
    assert command("--version").out.decode() == f"dragoman {dragoman.__version__}\n"


@pytest.mark.parametrize("args", [["--version"], ["train", "--help"]])
def test_a_full_disk_behind_stdout_is_one_line(args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "dragoman", *args], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"error: reading or writing: No space left on device\n")


def test_python_m_dragoman_and_the_script_are_the_same_command() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="dragoman")
    assert script.value == "dragoman.cli:main"
    done = subprocess.run([sys.executable, "-m", "dragoman", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"dragoman {dragoman.__version__}\n")


def test_a_bug_of_ours_shows_its_traceback_and_exits_with_1() -> None:
    script = """
import sys
import dragoman.api
from dragoman.cli import main
def broken(*args, **settings):
    raise ZeroDivisionError("ours")
dragoman.api.train = broken
sys.argv = ["dragoman", "train"]
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: ours\n")
    assert "error:" not in done.stderr
