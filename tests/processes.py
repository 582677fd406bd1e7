"""Processes of their own that need not import torch anew: forked from one that has, by ``multiprocessing``'s server."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LOADED = ["dragoman.training.run", "dragoman.translation.pair_reader", "torch._dynamo"]  # which an optimiser loads

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(LOADED)


class Forked:
    """Such a process, as ``subprocess.Popen`` shows one; what it says goes to files.

    Args:
        main: A function of a module, without arguments; what it returns is the exit status.
        argv: What ``sys.argv`` is to be.
        environment: What is to be different in the environment.
        stdin: What it can read.
        terminal: The path of a terminal, for all three of its streams instead of files.
    """

    def __init__(
        self,
        main: Callable[[], int | None],
        argv: list[str],
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
        terminal: str | None = None,
    ) -> None:
        folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._files = [folder / name for name in ("in", "out", "err")]
        for path, content in zip(self._files, (stdin, b"", b""), strict=True):
            path.write_bytes(content)
        place = (
            str(cwd or Path.cwd()),
            {**os.environ, **(environment or {})},
            [terminal or str(path) for path in self._files],
        )
        self._process = SERVER.Process(target=_in_its_place, args=(main, argv, *place), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    @property
    def output(self) -> bytes:
        """What it has said so far on stdout."""
        return self._files[1].read_bytes()

    @property
    def errors(self) -> bytes:
        """What it has said so far on stderr."""
        return self._files[2].read_bytes()

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Wait for its end; what it said on stdout and on stderr."""
        self.wait(timeout)
        return self.output, self.errors


def start_script(path: Path, *args: object, cwd: Path | None = None, **environment: str) -> Forked:
    """Start a script in such a process, as ``python path args`` would."""
    return Forked(functools.partial(_run_script, str(path)), [str(path), *map(str, args)], environment, cwd)


def start_code(code: str, *args: object, cwd: Path | None = None, **environment: str) -> Forked:
    """Start a program in such a process, as ``python -c code args`` would."""
    return Forked(functools.partial(_run_code, code), ["-c", *map(str, args)], environment, cwd)


def _run_script(path: str) -> None:
    runpy.run_path(path, run_name="__main__")


def _run_code(code: str) -> None:
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def _in_its_place(
    main: Callable[[], int | None], argv: list[str], cwd: str, environment: dict[str, str], files: list[str]
) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for fd, (name, flags) in enumerate(zip(files, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        file = os.open(name, flags)
        os.dup2(file, fd)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (multiprocessing has closed it)
    if os.isatty(1):  # which cannot be sought in, as what stood there before can
        sys.stdout, sys.stderr = (os.fdopen(fd, "w", 1, "utf-8", closefd=False) for fd in (1, 2))
    sys.argv = argv
    status: Any = 1
    try:
        status = main() or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)  # taking torch apart would take a second
