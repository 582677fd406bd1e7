"""Records of figures before and after a change, in a folder of ``results``: ``scripts``, ``newcomer``."""

from __future__ import annotations

import datetime
import json
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
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
