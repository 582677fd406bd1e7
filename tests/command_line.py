"""The command line for tests: in this process, with files in place of its streams, or in a process of its own."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from dragoman.cli import environment, main
from processes import Forked


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


def run_apart(args: Sequence[str], stdin: bytes, folder: Path, cwd: Path) -> Done:
    """Run ``main`` in a process of its own."""
    process = Forked(main, ["dragoman", *args], stdin=stdin, cwd=cwd)
    out, err = process.communicate()
    return Done(process.wait(), out, err.decode("utf-8", "surrogateescape"))  # a name may be other bytes


def run_here(args: Sequence[str], stdin: bytes, folder: Path, cwd: Path) -> Done:
    """Run ``main`` in this process, which is left as it was; a bug of ours comes out as the exception that it is."""
    files = [folder / name for name in ("in", "out", "err")]
    for path, content in zip(files, (stdin, b"", b""), strict=True):
        path.write_bytes(content)
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
    return Done(status, files[1].read_bytes(), files[2].read_text(encoding="utf-8", errors="surrogateescape"))


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
            open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1) as stderr,
            mock.patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stderr),
        ):
            yield
    finally:
        for fd, file in enumerate(kept):
            os.dup2(file, fd)
        for file in (*kept, *opened):
            os.close(file)
