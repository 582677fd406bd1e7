"""Stop a resumed run with SIGKILL, or let the disk be full, at a chosen operation; then go on with it.

    python failpoints.py chain RUN LAST IDS POINT...        one run, killed at one point after the other
    python failpoints.py each kill|fail STOPPED FOLDER LAST [N...]    a copy of a run for each N (none given: for all)

An operation is the making, writing, flushing, renaming or deleting of a file or folder by the process that trains. A
point is ``rename step`` or the like, with ``:2`` for the second time, or ``after 0.2`` seconds. What is killed in the
middle of a write has written half. ``chain`` writes which pairs each step saw to the file IDS. Both print JSON.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import logging
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch._dynamo  # noqa: F401  (an optimiser loads it; once for all processes)
from safetensors import SafetensorError

import dragoman.model.weights
import dragoman.training.run
from dragoman.bundle import find_bundle
from dragoman.errors import BundleError, DragomanError
from dragoman.files import check_sealed
from dragoman.training import loop
from dragoman.training.log import RunLog

Meet = Callable[[str], str | None]  # told an operation; says "kill", "fail" or nothing


def label(operation: str, path: Path) -> str:
    """Such as ``fsync .step.tmp/model.safetensors`` or ``rename step``."""
    name = path.name if path.name.lstrip(".").startswith(("step_", "best", "bundle", "checkpoints")) else None
    name = name or (f"{path.parent.name}/{path.name}" if path.parent.name.startswith(".") else path.name)
    return f"{operation} {re.sub(r'[.][0-9a-f]{8}[.]tmp', '.tmp', re.sub(r'step_[0-9]+', 'step', name))}"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Watched:
    """A file opened for writing, each write of which may fail half-way."""

    def __init__(self, file: Any, path: Path, meet: Meet) -> None:
        self._file, self._path, self._meet = file, path, meet

    def write(self, data: Any) -> int:
        what = self._meet(label("write", self._path))
        if what:
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            if what == "kill":
                die()
            raise full()
        return int(self._file.write(data))

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def arm(meet: Meet) -> None:
    """Let ``meet`` decide before each operation from now on."""

    def met(operation: str, path: Path) -> None:
        what = meet(label(operation, path))
        if what == "kill":
            die()
        if what:
            raise full()

    def watched(owner: Any, name: str, path_of: Callable[..., Path]) -> None:
        real = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            met(name, path_of(*args))
            return real(*args, **kwargs)

        setattr(owner, name, call)

    def of(descriptor: int) -> Path:
        return Path(f"/proc/self/fd/{descriptor}").readlink()

    watched(os, "fsync", of)
    watched(Path, "rename", lambda path, target: Path(target))
    watched(Path, "replace", lambda path, target: Path(target))
    watched(Path, "mkdir", lambda path, *rest: path)
    fdopen = os.fdopen
    opened, save_file, rmtree = Path.open, dragoman.model.weights.save_file, shutil.rmtree

    def open_(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if not set(mode) & set("wax+"):
            return opened(self, mode, *args, **kwargs)
        met("open", self)
        return Watched(opened(self, mode, *args, **kwargs), self, meet)

    def fdopen_(descriptor: int, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        met("open", of(descriptor))
        return Watched(fdopen(descriptor, mode, *args, **kwargs), of(descriptor), meet)

    def save(tensors: Any, path: Path, metadata: dict[str, str] | None = None) -> None:
        what = meet(label("save", path))
        save_file(tensors, path, metadata)
        if what:
            os.truncate(path, path.stat().st_size // 2)
            if what == "kill":
                die()
            raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    def remove(path: Any, *args: Any, **kwargs: Any) -> None:
        if Path(path).exists() and meet(label("rmtree", Path(path))) == "kill":
            next(file for file in Path(path).iterdir() if file.is_file()).unlink()
            die()
        rmtree(path, *args, **kwargs)

    Path.open, dragoman.model.weights.save_file, shutil.rmtree = open_, save, remove  # type: ignore[assignment]
    os.fdopen = fdopen_


def when_resumed(do: Callable[[int], None]) -> None:
    """Call ``do(step)`` when the run resumes there, right before its log is cut to that step."""
    forget_after = RunLog.forget_after

    def resumed(self: RunLog, step: int) -> None:
        do(step)
        forget_after(self, step)

    RunLog.forget_after = resumed  # type: ignore[method-assign]


def in_a_process(work: Callable[[], None]) -> tuple[int, str]:
    """Its exit status (minus the signal that killed it; 2 for what dragoman refuses), and the message or warnings."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 0
        try:
            with warnings_of_files() as warned:
                work()
            os.write(writing, "\n".join(warned).encode())
        except DragomanError as error:
            status = 2
            os.write(writing, str(error).encode())
        except BaseException as error:
            status = 1
            os.write(writing, repr(error).encode())
        os._exit(status)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123
        message = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), message


@contextlib.contextmanager
def warnings_of_files() -> Iterator[list[str]]:
    """Collect what ``dragoman.files`` warns of."""
    warned: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warned.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("dragoman.files").addHandler(handler)
    yield warned


def go_on(run: Path, last: str) -> None:
    dragoman.training.run.train(out=run, resume=True, overrides=[f"train.max_steps={last}"])


def chain(run: Path, last: str, ids: Path, points: list[str]) -> list[dict[str, Any]]:
    """Kill one run at each point, and let it end after the last one."""
    found = []
    for point in [*points, "never"]:
        died, message = in_a_process(lambda point=point: _until(point, run, last, ids))  # type: ignore[misc]
        half = [path.name for path in run.rglob(".*")]
        found.append({"point": point, "died": died, "message": message, "half": half})
    return found


def _until(point: str, run: Path, last: str, ids: Path) -> None:
    name, _, nth = point.partition(":")
    left = int(nth or 1)
    step = 0

    def meet(operation: str) -> str | None:
        nonlocal left
        left -= operation == name
        return "kill" if operation == name and left == 0 else None

    def resumed(at: int) -> None:
        nonlocal step
        step = at
        if name.startswith("after "):
            threading.Timer(float(name.split()[1]), die).start()
        else:
            arm(meet)

    real = loop.train_step

    def train_step(model: Any, batches: Any, *rest: Any) -> Any:
        nonlocal step
        step += 1
        rows = [int(i) for batch in batches for i in batch.indices]
        descriptor = os.open(ids, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{json.dumps({'step': step, 'ids': rows})}\n".encode())
        os.close(descriptor)
        time.sleep(0.03 if name != "never" else 0)  # so that a moment is a few steps and not all
        return real(model, batches, *rest)

    loop.train_step = train_step
    when_resumed(resumed)
    go_on(run, last)


def each(what: str, stopped: Path, folder: Path, last: str, counts: list[int]) -> dict[int, dict[str, Any]]:
    """For each count a copy of a run, stopped before that operation, and taken up again."""
    found: dict[int, dict[str, Any]] = {}
    for count in counts or range(1, 10_000):
        run = folder / f"{what}-{count}"
        shutil.copytree(stopped, run)
        met = folder / "met"
        met.unlink(missing_ok=True)
        died, message = in_a_process(lambda run=run, count=count, met=met: _stop(what, run, last, count, met))  # type: ignore[misc]
        if not met.exists() and not counts:
            break  # there are no more
        half = [path.name for path in run.rglob(".*")]
        whole = []
        for path in sorted((run / "checkpoints").glob("step_*")):
            with contextlib.suppress(BundleError):
                check_sealed(path, "checkpoint")
                whole.append(path.name)
        bundle = True
        try:
            check_sealed(find_bundle(run), "bundle")
        except BundleError:
            bundle = False
        went_on = in_a_process(lambda run=run: go_on(run, last))  # type: ignore[misc]
        at = met.read_text(encoding="utf-8") if met.exists() else None
        found[count] = {
            "at": at, "died": died, "message": message, "whole": whole, "half": half, "bundle": bundle,
            "went_on": went_on,
        }  # fmt: skip
    return found


def _stop(what: str, run: Path, last: str, count: int, note: Path) -> None:
    left = count

    def meet(operation: str) -> str | None:
        nonlocal left
        if what == "fail" and operation.startswith(("rmtree", "rename .step.tmp")):
            return None  # deleting takes no space
        left -= 1
        if left:
            return None
        with io.open(note, "w", encoding="utf-8") as file:  # noqa: UP020 (Path.open is watched)
            file.write(operation)
        return what

    when_resumed(lambda step: arm(meet))
    go_on(run, last)


def main() -> None:
    way, *rest = sys.argv[1:]
    if way == "chain":
        run, last, ids, *points = rest
        print(json.dumps(chain(Path(run), last, Path(ids), points)))
    else:
        what, stopped, folder, last, *counts = rest
        print(json.dumps(each(what, Path(stopped), Path(folder), last, [int(count) for count in counts])))


if __name__ == "__main__":
    main()
