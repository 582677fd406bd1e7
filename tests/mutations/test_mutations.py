"""Each defect in the list of mutations makes the test fail that is named for it, which passes without."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1  # of pytest; all else is neither

_TEST = """
import sys
import pytest
import dragoman
src, test, folder = sys.argv[1:]
assert dragoman.__file__.startswith(src), dragoman.__file__
sys.exit(pytest.main(["-x", "--tb=line", "-p", "no:cacheprovider", "--basetemp", folder, test]))
"""


def outcome(src: Path, test: str, folder: Path) -> tuple[int, str]:
    """The exit status of one test with the code in ``src``, and what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(src)
    arguments = [sys.executable, "-c", _TEST, str(src), test, str(folder)]
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    return done.returncode, done.stdout + done.stderr


@functools.cache
def outcome_without(test: str, folder: Path) -> tuple[int, str]:
    return outcome(ROOT / "src", test, folder)


@pytest.fixture(scope="module")
def aside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests without a defect leave their files."""
    return tmp_path_factory.mktemp("without") / "tmp"


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.defect)
def test_the_test_that_is_named_notices_the_defect(mutation: Mutation, tmp_path: Path, aside: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "src/dragoman" / mutation.file
    path.write_text(path.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
    status, said = outcome(tmp_path / "src", mutation.test, tmp_path / "tmp")
    assert status == FAILED, said
    status, said = outcome_without(mutation.test, aside)
    assert status == PASSED, said


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.defect)
def test_what_a_defect_replaces_stands_in_its_file_once(mutation: Mutation) -> None:
    """And the test is there: so `make test` notices where the list and the code have parted."""
    code = (ROOT / "src/dragoman" / mutation.file).read_text(encoding="utf-8")
    assert code.count(mutation.old) == 1
    assert mutation.new != mutation.old
    path, _, name = mutation.test.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
