"""The command line itself: fast to start, and what it prints where."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import cli
from dragoman.cli.commands import COMMANDS, load
from dragoman.cli.demo import what_next
from limits import LONG_S
from processes import start_code

Command = Callable[..., Any]

_WHAT_IS_LOADED = """
import json, sys
from dragoman.cli import run
from dragoman.cli.commands import COMMANDS
status = run(sys.argv[1:])
heavy = ("torch", "numpy", "sacrebleu", "sentencepiece", "matplotlib", "yaml")
if status == 0 and sys.argv[1] == "--help":  # needs no option of any command either
    heavy += ("pydantic", *(f"dragoman.cli.{about.function.split(':')[0]}" for about in COMMANDS.values()))
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


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_narrow_terminal_and_speaks_no_python(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    said = command(name, "--help").out.decode()
    assert max(map(len, said.splitlines())) <= 60
    for each in load(name).params:
        assert all(f"{option} " in said for option in each.opts if option.startswith("-"))
    assert not [word for word in ("bool", "list[", "<str>", "<int>", "[[", "......") if word in said]


def test_the_version_is_the_packages(command: Command) -> None:
    assert command("--version").out.decode() == f"dragoman {dragoman.__version__}\n"


def test_the_commands_that_the_demo_ends_with_can_be_pasted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setenv("PATH", str(tmp_path))
    said = what_next(Path("runs/demo"), "de")
    assert said.split("\n") == [
        "", "Now you:",
        "  # first, in each new terminal", "  source .venv/bin/activate",
        "  # type English, read German", "  dragoman translate runs/demo -i",
        "  # a page: where the model looked, word by word", '  dragoman explain runs/demo "The clever girl sleeps."',
        "  # your own text, line by line", "  dragoman train A.en A.de --out runs/mine",
    ]  # fmt: skip
    program = tmp_path / "dragoman"
    program.touch(mode=0o755)
    assert "source" not in what_next(Path("runs/demo"), "de")


@pytest.mark.parametrize("args", [["--version"], ["train", "--help"]])
def test_a_full_disk_behind_stdout_is_one_line(args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "dragoman", *args], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"error: reading or writing: No space left on device\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_nothing_is_lost_where_a_full_pipe_does_not_wait(stream: str, unbuffered: str) -> None:
    """Another program that shares a pipe may have made it non-blocking, as Node.js and ssh do."""
    code = f"""
import os, sys
from dragoman import cli
os.set_blocking(sys.{stream}.fileno(), False)
def run(arguments):
    print(*range(20000), sep="\\n", file=sys.{stream}, flush=True)
    sys.{stream}.buffer.write(b"x" * 200000)
    return 0
cli.run = run
cli.main()
"""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **{stream: subprocess.PIPE}) as process:
        pipe = getattr(process, stream)
        time.sleep(1)  # it is full
        content = pipe.read()
        assert process.wait(LONG_S) == 0
    text = content.decode()
    assert list(map(int, text.rstrip("x").split())) == [*range(20000)]
    assert text.count("x") == 200000


def test_python_m_dragoman_and_the_script_are_the_same_command() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="dragoman")
    assert script.value == "dragoman.cli:main"
    done = subprocess.run([sys.executable, "-m", "dragoman", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"dragoman {dragoman.__version__}\n")


def test_a_bug_of_ours_shows_its_traceback_and_exits_with_1() -> None:
    script = """
import sys
import dragoman.training.run
from dragoman.cli import main
def broken(*args, **settings):
    raise ZeroDivisionError("ours")
dragoman.training.run.train = broken
sys.argv = ["dragoman", "train"]
main()
"""
    process = start_code(script)
    assert process.wait() == 1
    assert b"Traceback" in process.errors
    assert process.errors.endswith(b"ZeroDivisionError: ours\n")
    assert b"error:" not in process.errors


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MemoryError("anything"), 2),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), 2),
        (RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"), 2),
        (RuntimeError("tensor has elements, but its data is not allocated yet"), None),
    ],
)
def test_out_of_memory_is_told_in_one_line_and_nothing_else_is_taken_for_it(
    error: Exception, status: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: object, **settings: object) -> None:
        raise error

    monkeypatch.setattr("dragoman.training.run.train", broken)
    if status is None:
        with pytest.raises(RuntimeError, match="not allocated yet"):
            cli.run(["train"])
    else:
        assert cli.run(["train"]) == status
        assert capsys.readouterr().err.startswith("error: out of memory: lower train.batch_tokens")


def test_what_is_said_does_not_go_to_stdout_where_stderr_is_closed(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a dog\n\xff\n")
    shell = shlex.join([sys.executable, "-m", "dragoman", "translate", str(tiny_run), str(tmp_path / "text")])
    said = subprocess.run(["bash", "-c", shell], capture_output=True, check=True)
    quiet = subprocess.run(["bash", "-c", f"{shell} 2>&-"], capture_output=True, check=True)
    assert b"not UTF-8" in said.stderr
    assert quiet.stdout == said.stdout
    assert quiet.stdout.count(b"\n") == 2
    refused = subprocess.run(["bash", "-c", f"{shell} --n-best 99 2>&-"], capture_output=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, b"")


@pytest.mark.parametrize("option", [[], ["-i"]])
def test_a_closed_stdin_is_refused_where_it_is_wanted(tiny_run: Path, option: list[str]) -> None:
    shell = f"{shlex.join([sys.executable, '-m', 'dragoman', 'translate', str(tiny_run), *option])} <&-"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("error: stdin is closed: give a FILE, or redirect input to stdin\n")
    assert "Traceback" not in done.stderr


def test_stdout_is_utf_8_whatever_the_locale_says(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a dog\n", encoding="utf-8")
    arguments = ["score", str(tiny_run), "--src", str(tmp_path / "text"), "--ref", str(tmp_path / "text"), "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments], capture_output=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\u2581" in json.loads(done.stdout.decode())["tokens"][0][0]
