"""Kills and full disks at the file operations of every command: rows K1 to K3 of docs/project/promises.md.

``DRAGOMAN_KILLS=all`` tries every operation in the marked half, any other number at most so many of each call.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from amounts import amounts
from written import CALLS, WRITES_NOTHING

from dragoman.cli.commands import COMMANDS
from dragoman.toolkits import TOOLKITS, writers

HERE = Path(__file__).parent
SEED = 39
QUICK = (
    ("augment", "other", 3), ("augment", "again", 1), ("translate, a document", "full", 1), ("serve", "again", 1),
    ("serve", "torn", 1),
)  # fmt: skip
"""Calls that are quick, the way in which each is tried, and at how many operations."""
WAYS = {"K1": ("again", "torn"), "K2": ("between", "other"), "K3": ("full",)}
HAS_OTHER = {name for name, call in CALLS.items() if call.other}

Results = Callable[[str, int], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that counts file operations, compiled here."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        pytest.skip("kills at file operations need Linux and a C compiler (cc): none was tried")
    path = tmp_path_factory.mktemp("library") / "operations.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, HERE / "operations.c", "-ldl"], check=True)
    return path


@pytest.fixture(scope="module")
def results(library: Path, tiny_run: Path, corpus: Any, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A function that gives the results of a row, short (0) or full (1); the short ones are made all at once."""
    made: dict[str, list[dict[str, Any]]] = {}

    def of(row: str, full: int) -> list[dict[str, Any]]:
        if (key := row if full else "short") not in made:
            jobs = full_jobs(WAYS[row]) if full else quick_jobs()
            folder = tmp_path_factory.mktemp("kills")
            n_processes = min(4, os.cpu_count() or 1) if full else 1
            made[key] = try_all(jobs, folder, library, (tiny_run, corpus.src.parent), n_processes)
        return [result for result in made[key] if result["way"] in WAYS[row]]

    return of


def quick_jobs() -> list[dict[str, Any]]:
    return [{"name": name, "way": way, "most": most, "seed": SEED} for name, way, most in QUICK]


def full_jobs(ways: Sequence[str]) -> list[dict[str, Any]]:
    wanted = os.environ.get("DRAGOMAN_KILLS", "6")
    most = None if wanted == "all" else int(wanted)
    return [
        {"name": name, "way": way, "most": most, "seed": SEED}
        for name in CALLS
        for way in ways
        if name in HAS_OTHER or way not in ("between", "other")
    ]


def try_all(
    jobs: Sequence[dict[str, Any]], folder: Path, library: Path, inputs: Sequence[Path], n_processes: int
) -> list[dict[str, Any]]:
    """Do jobs in several processes at once, each with a folder of its own."""

    def do(i: int) -> list[dict[str, Any]]:
        (folder / str(i)).mkdir()
        command = [
            sys.executable,
            HERE / "kill_commands.py",
            folder / str(i),
            *inputs,
            json.dumps(jobs[i::n_processes]),
        ]
        environment = os.environ | {"LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return [json.loads(line) for line in done.stdout.splitlines()]

    with ThreadPoolExecutor(n_processes) as pool:
        return [result for part in pool.map(do, range(n_processes)) for result in part]


def checked(what: str, results: Sequence[dict[str, Any]]) -> str:
    """Check that nothing is wrong; return the counts in words."""
    hit, counted = (sum(result[name] for result in results) for name in ("hit", "operations"))
    wrong = [(result["call"], result["way"], *entry) for result in results for entry in result["wrong"]]
    calls = len({result["call"] for result in results})
    idle = {(result["call"], result["way"]) for result in results if not result["hit"]}
    # What refuses to replace a finished result begins nothing that could be killed.
    refused = {(name, "other") for name, call in CALLS.items() if call.keeps and call.other}
    assert idle <= refused, f"nothing was hit in {idle - refused}"
    assert not wrong, f"{len(wrong)} wrong of {hit} at {counted}:\n" + "\n".join(map(str, wrong[:20]))
    return f"{what} at {hit:,} of {counted:,} operations of {calls} calls: 0 wrong"


@amounts(quick=0, full=1)
def test_K1_after_a_kill_the_same_call_writes_the_same_bytes(n: int, results: Results, figure: Any) -> None:
    figure("K1", checked("killed", results("K1", n)))


@amounts(quick=0, full=1)
def test_K2_after_a_kill_a_call_with_other_options_changes_nothing_of_the_first(
    n: int, results: Results, figure: Any
) -> None:
    figure("K2", checked("killed, with other options before or between,", results("K2", n)))


@amounts(quick=0, full=1)
def test_K3_a_full_disk_is_refused_in_one_line_and_leaves_nothing(n: int, results: Results, figure: Any) -> None:
    figure("K3", checked("disk full", results("K3", n)))


def test_every_command_that_writes_is_tried() -> None:
    tried = {call.words[0] for call in CALLS.values()}
    assert set(COMMANDS) == tried | set(WRITES_NOTHING)
    exported = {call.words[call.words.index("--format") + 1] for call in CALLS.values() if call.words[0] == "export"}
    assert exported == set(writers())
    imported = {name.removeprefix("import ") for name in CALLS if name.startswith("import ")}
    assert imported == {toolkit.name for toolkit in TOOLKITS if toolkit.reader is not None}


@pytest.mark.parametrize("words", WRITES_NOTHING.values(), ids=" ".join)
def test_what_is_declared_to_write_nothing_writes_nothing(
    words: Sequence[str], command: Any, tiny_run: Path, corpus: Any, tmp_path: Path, listing: Any
) -> None:
    (tmp_path / "tiny").symlink_to(tiny_run)
    for name, text in (("test.en", corpus.valid_src), ("test.de", corpus.valid_tgt)):
        (tmp_path / name).write_bytes(text.read_bytes())
    before = listing(tmp_path)
    assert command(*words, cwd=tmp_path).status == 0
    assert listing(tmp_path) == before
