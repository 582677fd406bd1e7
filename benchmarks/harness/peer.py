"""A system under test: a script in a process of its own, in an environment of its own, that speaks JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.environments import PEERS, python_of
from dragoman.device import has_bf16

SAMPLE_S = 0.5
"""How often the memory of a system's worker processes is looked at."""

Ask = Callable[..., dict[str, Any]]


class System(NamedTuple):
    """What takes turns: a script below ``peers/``, run by the Python of an environment, with settings."""

    name: str
    environment: str  # "dragoman" is the one that runs this
    script: str
    settings: dict[str, Any]  # of its ``prepare``
    threads: int = 2
    preload: str = ""  # a library that is loaded before all others: another malloc


class PeerError(RuntimeError):
    """A system failed; the message is its own.

    Attributes:
        refusal: Why it cannot do what is asked, in its words; nothing if it is not unable but broken.
    """

    def __init__(self, message: str, refusal: str = "") -> None:
        super().__init__(message)
        told = re.findall(r"^(?:\w+\.)*ConfigError: (.+)$", message, flags=re.MULTILINE)
        self.refusal: str = refusal or (told[-1] if told else "")


def lacking(precision: str) -> str:
    """Why nothing is measured in this precision here; nothing if it is.

    A processor without bf16 does it all the same, in loops some twenty times slower than float32, which says nothing
    of any system.
    """
    if precision == "bf16" and not has_bf16():
        return "this processor has no bf16"
    return ""


def precisions() -> tuple[list[str], dict[str, str]]:
    """Those in which training is measured here, and why others are left out."""
    why = {precision: lacking(precision) for precision in ("bf16", "fp32")}
    return [one for one in why if not why[one]], {one: told for one, told in why.items() if told}


@contextlib.contextmanager
def started(system: System) -> Iterator[Ask]:
    """Start the process and prepare it; gives ``ask(**request)``, which runs once and returns the answer.

    The answer's ``peak_mib`` is the process's own peak, and that of the private memory of its children together.
    ``ask.versions`` is what it said of its packages.

    Raises:
        PeerError: It failed or ended, or its precision is one that this processor lacks.
    """
    if why := lacking(system.settings.get("precision", "")):
        raise PeerError(f"{system.name}: {why}", why)
    env = {**os.environ, "OMP_NUM_THREADS": str(system.threads), "TOKENIZERS_PARALLELISM": "false"}
    if system.preload:
        env["LD_PRELOAD"] = system.preload
    process = subprocess.Popen(
        [python_of(system.environment), PEERS / system.script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env,
    )  # fmt: skip
    try:
        versions = _asked(system.name, process, {"do": "prepare", **system.settings}).get("versions", {})

        def ask(**request: Any) -> dict[str, Any]:
            return {"versions": versions, **_asked(system.name, process, {"do": "run", **request})}

        yield ask
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _asked(name: str, process: subprocess.Popen[bytes], request: dict[str, Any]) -> dict[str, Any]:
    """Send a request, wait for the answer, and see meanwhile what memory the children take."""
    assert process.stdin is not None
    assert process.stdout is not None
    children_kib = 0
    line = b""
    with contextlib.suppress(BrokenPipeError):  # it has ended: the empty answer says so
        process.stdin.write(json.dumps(request).encode() + b"\n")
    while not line.endswith(b"\n"):
        if select.select([process.stdout], [], [], SAMPLE_S)[0]:
            chunk = process.stdout.read(65536)
            if not chunk:
                raise PeerError(f"{name}: its process ended with status {process.wait()}; see what it said above")
            line += chunk
        else:
            children_kib = max(
                children_kib, sum(memory_kib(pid, "Private_Clean", "Private_Dirty") for pid in descendants(process.pid))
            )
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise PeerError(f"{name}: {answer['error']}")
    answer["peak_mib"] = round(answer["peak_mib"] + children_kib / 1024, 1)
    return answer


def descendants(pid: int) -> list[int]:
    """Children, and theirs; those that are gone meanwhile are left out."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text(encoding="ascii").split()):
                found += [child, *descendants(child)]
    return found


def memory_kib(pid: int, *fields: str) -> int:
    """Sum of fields of ``smaps_rollup``, KiB, such as Pss; 0 of a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").split("\n")
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.split(":")[0] in fields)
