"""The command line for tests: in this process, with files in place of its streams, and in processes of its own."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from dragoman.cli import environment, main


class Done(NamedTuple):
    """A command line that has ended."""

    status: int
    out: bytes
    err: str

    @property
    def error(self) -> str:
        """The one line that a refusal consists of."""
        lines = [line for line in self.err.split("\n") if line.startswith("error:")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        assert self.err.endswith(f"{lines[0]}\n"), self.err
        return lines[0]


def stream_files(folder: Path, stdin: bytes) -> list[Path]:
    """Files for stdin, stdout and stderr."""
    files = [folder / name for name in ("in", "out", "err")]
    for path, content in zip(files, (stdin, b"", b""), strict=True):
        path.write_bytes(content)
    return files


def run_here(args: Sequence[str], files: Sequence[Path], cwd: Path) -> Done:
    """Run ``main`` in this process, which is left as it was; a bug of ours comes out as the exception that it is."""
    logger, status = logging.getLogger("dragoman"), 0
    handlers, level = list(logger.handlers), logger.level
    with (
        contextlib.chdir(cwd),
        mock.patch.object(sys, "argv", ["dragoman", *args]),
        mock.patch.dict(os.environ),
        mock.patch.object(environment, "prepare"),  # it tells the allocator of the process to keep all memory
        _streams(files),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ResourceWarning)  # files that the end of a process closes
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        finally:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            gc.unfreeze()
    return Done(status, files[1].read_bytes(), files[2].read_text(encoding="utf-8"))


@contextlib.contextmanager
def _streams(files: Sequence[Path]) -> Iterator[None]:
    """Put files in the place of the descriptors 0, 1 and 2, and of what Python has made of them."""
    kept = [os.dup(fd) for fd in range(3)]
    opened = [os.open(path, flags) for path, flags in zip(files, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)]
    try:
        for fd, file in enumerate(opened):
            os.dup2(file, fd)
        with (
            open(0, encoding="utf-8", closefd=False) as stdin,
            open(1, "w", encoding="utf-8", closefd=False) as stdout,
            open(2, "w", encoding="utf-8", closefd=False, buffering=1) as stderr,
            mock.patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stderr),
        ):
            yield
    finally:
        for fd, file in enumerate(kept):
            os.dup2(file, fd)
        for file in (*kept, *opened):
            os.close(file)


_ZYGOTE = """
import json, os, sys, traceback
import dragoman.training.run, dragoman.translation.translator, torch._dynamo  # which an optimiser loads
from dragoman.cli import main
for line in os.fdopen(int(sys.argv[1]), closefd=False):
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(job["cwd"])
        for fd, (name, flags) in enumerate(zip(job["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
            os.dup2(os.open(name, flags), fd)
        sys.stdin = open(0, closefd=False)
        sys.argv = ["dragoman", *job["args"]]
        status = 1
        try:
            main()
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)  # taking torch apart would take a second
    status = os.waitpid(child, 0)[1]
    os.write(int(sys.argv[2]), b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


class Zygote:
    """A process that has imported torch and forks itself for each command."""

    def __init__(self) -> None:
        jobs, jobs_out = os.pipe()
        answers_in, answers = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ZYGOTE, str(jobs), str(answers)], pass_fds=(jobs, answers)
        )
        os.close(jobs)
        os.close(answers)
        self._jobs, self._answers = os.fdopen(jobs_out, "w"), os.fdopen(answers_in)

    def run(self, args: Sequence[str], files: Sequence[Path], cwd: Path) -> Done:
        """Run a command in a process of its own."""
        job: dict[str, Any] = {"args": list(args), "cwd": str(cwd), "files": [str(path) for path in files]}
        self._jobs.write(json.dumps(job) + "\n")
        self._jobs.flush()
        status = int(self._answers.readline())
        return Done(status, files[1].read_bytes(), files[2].read_text(encoding="utf-8"))

    def close(self) -> None:
        """Let it end, which it does where there is nothing more to read."""
        self._jobs.close()
        self._answers.close()
        self._process.wait(10)
