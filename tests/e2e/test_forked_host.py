"""A program that translates and forks then, as ``multiprocessing`` and preloading servers do on Linux."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from limits import LONG_S

HOST = """
import multiprocessing, sys
import dragoman

run, engine = sys.argv[1:]
translator = dragoman.Translator.load(run)

def translated(n):
    return [made.text for made in translator.translate(["the dog"] * n, engine=engine)]

if __name__ == "__main__":
    before = translated(40)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for _ in range(2):
            assert pool.apply_async(translated, (40,)).get(60) == before
    assert translated(40) == before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere programs do not fork")
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_forked_child_translates_with_what_its_parent_loaded(engine: str, tiny_run: Path, tmp_path: Path) -> None:
    """It waited for ever for threads of its parent."""
    run = shutil.copytree(tiny_run, tmp_path / "run")  # the engine keeps its export there
    done = subprocess.run([sys.executable, "-c", HOST, run, engine], capture_output=True, text=True, timeout=LONG_S)
    assert (done.returncode, done.stderr) == (0, "")
