"""Settings that stand before torch is imported, and imports that the garbage collector stays out of."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from command_line import Done
from dragoman.cli import environment
from dragoman.cli.commands import COMMANDS, load
from limits import LONG_S


def test_what_is_set_stays_and_what_is_not_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = environment.PRODUCTS
    monkeypatch.delenv(second, raising=False)
    monkeypatch.setenv(first, "7")
    environment.set_defaults()
    assert (os.environ[first], os.environ[second]) == ("7", str(environment.KEPT))


@pytest.mark.parametrize("width", ["0", "19", "1000000000", "9" * 5000, "\u0663", "80", "abc"])
def test_help_is_printed_at_any_width_that_the_environment_names(width: str) -> None:
    """At 0 it was empty, and at a thousand million it had no end."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "translate", "--help"],
        env={**os.environ, "COLUMNS": width}, capture_output=True, text=True, timeout=LONG_S, check=True,
    )  # fmt: skip
    assert "--beam-size" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_threads_spin_for_long_only_where_nobody_else_has_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "0.00 0.01 0.05 1/234 5678\n")
    environment.set_defaults()
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "0.00 0.01 0.05 3/234 5678\n")
    environment.set_defaults()
    assert os.environ["GOMP_SPINCOUNT"] == "1000"


@pytest.mark.parametrize(
    ("given", "threads"),
    [({"OMP_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "3"}, "1"), ({"OMP_THREAD_LIMIT": " 1 "}, "1"),
     ({"OMP_THREAD_LIMIT": "4", "OMP_NUM_THREADS": "3"}, "3"),
     ({"OMP_THREAD_LIMIT": "4", "OMP_NUM_THREADS": "8,2"}, "4"),
     ({"OMP_THREAD_LIMIT": "many", "OMP_NUM_THREADS": "3"}, "3"), ({"OMP_NUM_THREADS": "3"}, "3"), ({}, "")],
)  # fmt: skip
def test_a_limit_of_threads_becomes_their_number(
    given: dict[str, str], threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer threads than it asks OpenMP for, oneDNN leaves parts of its products out."""
    for name in ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    environment.set_defaults()
    assert os.environ.get("OMP_NUM_THREADS", "") == threads
    assert "OMP_THREAD_LIMIT" not in os.environ


@pytest.mark.parametrize("given", ["OMP_DYNAMIC=true", "OMP_THREAD_LIMIT=1", "OMP_MAX_ACTIVE_LEVELS=0"])
def test_products_are_right_whatever_openmp_is_told(given: str) -> None:
    code = """
from dragoman.cli import environment
environment.set_defaults()
import torch
torch.set_num_threads(2)
x, weight = torch.rand(64, 128), torch.rand(512, 128)
ops = torch.ops.mkldnn
found = ops._linear_pointwise(x, ops._reorder_linear_weight(weight), None, "none", [], "")
assert torch.allclose(found, x @ weight.T, atol=1e-3)
"""
    name, _, value = given.partition("=")
    subprocess.run([sys.executable, "-c", code], env={**os.environ, name: value}, check=True, timeout=LONG_S)


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults of glibc's malloc")
def test_memory_that_was_freed_is_had_again_without_page_faults() -> None:
    code = """
import resource
from dragoman.cli import environment
environment.keep_memory()
import torch
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        [torch.ones(2**21) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(said) < 100  # 40,960 pages of 4 KiB are filled


@pytest.mark.parametrize(("command", "keeps"), [("train", True), ("translate", True), ("serve", False), ("", True)])
def test_a_server_leaves_the_settings_of_malloc_alone(
    command: str, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(environment, "keep_memory", lambda: calls.append(command))
    environment.prepare(command)
    assert calls == [command] * keeps


@pytest.mark.parametrize("fails", [False, True])
def test_the_collector_is_off_while_importing_and_on_afterwards(fails: bool) -> None:
    try:
        with environment.importing():
            assert not gc.isenabled()
            if fails:
                raise ImportError
    except ImportError:
        assert fails
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()


def test_every_command_that_computes_with_a_model_takes_the_number_of_threads() -> None:
    flags = {name: {flag for parameter in load(name).params for flag in parameter.opts} for name in COMMANDS}
    assert not {name for name, its in flags.items() if "--device" in its and "--threads" not in its}
    others = ("train", "demo", "serve", "augment", "distill")
    assert {name for name in others if "--threads" in flags[name]} == set(others)


def test_threads_are_those_of_the_option(
    command: Callable[..., Done], tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    done = command("explain", tiny_run, "the dog", "--out", tmp_path / "page.html", "--threads", 3)
    assert (done.status, numbers[0]) == (0, 3), done.error
    numbers.clear()
    environment.use_threads(None)
    assert not numbers
