"""Records of figures before and after a change, in a folder of ``results``: ``scripts``, ``newcomer``."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from benchmarks.record import RESULTS, machine


def record(
    name: str, when: str, figures: Mapping[str, Any], inputs: Mapping[str, Any], folder: str = "scripts",
    packages: Sequence[str] = ("torch", "sentencepiece"),
) -> None:  # fmt: skip
    """Write the figures of ``when``, before, after or in between, into ``results/FOLDER/NAME.json``; the others stay.

    Args:
        name: Name of the benchmark.
        when: ``before``, ``between`` or ``after``.
        figures: What was measured.
        inputs: Rule and seed of what it was measured on.
        folder: Folder in ``results``.
        packages: Packages whose versions are noted.
    """
    path = RESULTS / folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    entry = {
        "command": shlex.join(["python", "-m", f"benchmarks.{name}", when]),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "inputs": inputs,
        "before": earlier.get("before", {}),
        "after": earlier.get("after", {}),
    }
    if "between" in earlier:
        entry["between"] = earlier["between"]
    entry[when] = figures
    path.write_text(json.dumps(entry, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stderr.write(f"-> {path.relative_to(RESULTS.parent.parent)}\n")


def record_of_tests(
    name: str, about: str, form: str, measure: Callable[..., Mapping[str, Any]], inputs: Mapping[str, Any]
) -> None:  # fmt: skip
    """Measure the tests that the command line names, and write their record into ``results/newcomer``.

    Args:
        name: Name of the benchmark.
        about: Its description, of which ``--help`` shows the first line.
        form: How a test is written, as ``NAME=RUN:SRC:REF``.
        measure: Takes what stands between the colons; returns the figures of the test.
        inputs: Rule and seed of what it is measured on.
    """
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("state", choices=("before", "after"))
    parser.add_argument("tests", nargs="+", metavar=form)
    args = parser.parse_args()
    figures = {}
    for test in args.tests:
        test_name, _, paths = test.partition("=")
        figures[test_name] = measure(*paths.split(":"))
    record(name, args.state, figures, inputs, folder="newcomer")
