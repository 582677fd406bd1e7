"""How a system answers the harness: JSON objects, one a line, in on stdin and out on stdout.

Runs in the environment of any system: standard library only. The first request is ``{"do": "prepare", ...}``, the
following ones are ``{"do": "run", ...}``; end of file ends the process. Each answer holds the peak memory so far.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

Run = Callable[..., dict[str, Any]]


def peak_mib() -> float:
    """The most resident memory of this process so far (Linux: ``VmHWM``), MiB."""
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        line = next(line for line in file if line.startswith("VmHWM"))
    return round(int(line.split()[1]) / 1024, 1)


def chunk_ms(work: Callable[[list[Any]], object], rows: list[Any], size: int) -> list[float]:
    """Milliseconds of each ``size`` rows, one after the other; what is left over is left out."""
    found = []
    for start in range(0, len(rows) - size + 1, size):
        began = time.perf_counter()
        work(rows[start : start + size])
        found.append(1000 * (time.perf_counter() - began))
    return found


def serve(prepare: Callable[..., Run], packages: Sequence[str] = ()) -> None:
    """Answer requests until stdin ends.

    Args:
        prepare: Called with the fields of the first request; returns what is called with those of the others.
        packages: Whose versions the first answer says.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not get between the answers
    run: Run | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request.pop("do") == "prepare":
                run = prepare(**request)
                answer: dict[str, Any] = {"versions": {name: version(name) for name in packages}}
            elif run is None:
                raise RuntimeError("asked to run before anything was prepared")
            else:
                answer = run(**request)
        except Exception:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps({**answer, "peak_mib": peak_mib()}) + "\n")
        answers.flush()
