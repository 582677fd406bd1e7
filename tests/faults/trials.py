"""Read mutated files in processes of their own, under limits of memory and of the processor, and count what happens."""

from __future__ import annotations

import functools
import json
import logging
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from foreign_readers import Models, Reader, mutations
from mutate import BYTES

from dragoman.errors import DragomanError

CPU_S = 10
"""Seconds of the processor that one file may take."""
MEMORY_BYTES = 2 << 30
"""Memory that reading may add to the process."""
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Folder in memory, where flushing a file takes no time."""


class TooLongError(BaseException):
    """A file took more than ``CPU_S`` seconds of the processor."""


@dataclass
class Tally:
    """Counts of a reader's trials, and for each kind of fault the mutators and numbers of its mutations."""

    refused: int = 0
    read: int = 0
    faults: dict[str, list[str]] = field(default_factory=dict)
    slowest_s: float = 0.0
    grown_bytes: int = 0

    @property
    def n_faults(self) -> int:
        """Number of mutations with a fault."""
        return sum(map(len, self.faults.values()))

    def __str__(self) -> str:
        kinds = "; ".join(f"{len(where)} x {kind} ({where[0]})" for kind, where in self.faults.items())
        return f"{self.refused} refused, {self.read} read, {self.n_faults} faults{': ' * bool(kinds)}{kinds}"


def try_all(reader: Reader, models: Models | None, n: int, seed: int) -> Tally:
    """Read ``n`` mutations, and go on after one that ended the process."""
    tally, start = Tally(), 0
    while start < n:
        start = _in_a_process(reader, models, (start, n, seed), tally)
    return tally


def _in_a_process(reader: Reader, models: Models | None, extent: tuple[int, int, int], tally: Tally) -> int:
    """Read mutations in a fork; return where the next process must begin.

    Args:
        extent: Number of the first mutation, of all mutations, and the seed.
    """
    start, n, seed = extent
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as out, tempfile.TemporaryDirectory(prefix="mutated-", dir=SCRATCH) as folder:
                logging.disable()
                _limit_memory()
                signal.signal(signal.SIGVTALRM, _too_long)
                for i, (mutator, content) in enumerate(mutations(reader, models, n, seed)):
                    if i >= start:
                        print(json.dumps({"begins": i, "kind": mutator.__name__}), file=out, flush=True)
                        lost = reader.lost if mutator in BYTES else None
                        read = functools.partial(reader.read, models, content, Path(folder))
                        print(json.dumps(_one(read, content, lost)), file=out, flush=True)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    last, kind = start - 1, ""
    with os.fdopen(reading) as lines:
        for line in lines:
            entry = json.loads(line)
            if "begins" in entry:
                last, kind, is_open = entry["begins"], entry["kind"], True
                continue
            is_open = False
            tally.refused += entry["outcome"] == "refused"
            tally.read += entry["outcome"] == "read"
            if entry["outcome"] not in ("refused", "read"):
                tally.faults.setdefault(entry["outcome"], []).append(f"{kind} {last}")
            tally.slowest_s = max(tally.slowest_s, entry["cpu_s"])
            tally.grown_bytes = max(tally.grown_bytes, entry["grown"])
    _, status = os.waitpid(child, 0)
    if last < start or (last < n - 1 or is_open):
        assert last >= start, f"{reader.name}: no mutation was read (status {status})"
        tally.faults.setdefault(f"the process ended with {status}", []).append(f"{kind} {last}")
    return last + 1


def _one(
    read: Callable[[], str], content: bytes, lost: Callable[[bytes], str] | None
) -> dict[str, str | float]:  # fmt: skip
    """Read one file; return the outcome, the seconds of the processor and the growth of the process in bytes."""
    began = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(began.ru_utime + began.ru_stime) + 3 * CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
    try:
        damage = read() or (lost(content) if lost is not None else "")
        outcome = f"silent: {damage[:160]}" if damage else "read"
    except DragomanError:
        outcome = "refused"
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in last if "/dragoman/" in frame.filename] or last
        outcome = f"{type(error).__name__} in {Path(ours[-1].filename).name}:{ours[-1].name}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    ended = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "outcome": outcome, "cpu_s": ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime,
        "grown": (ended.ru_maxrss - began.ru_maxrss) * 1024,
    }  # fmt: skip


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TooLongError


def _limit_memory() -> None:
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, resource.RLIM_INFINITY))
