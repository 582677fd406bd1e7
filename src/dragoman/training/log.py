"""The log of a run: ``log.jsonl`` for programs, stderr for people, TensorBoard on request."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dragoman.errors import ConfigError, not_installed
from dragoman.files import explained, write_text
from dragoman.progress import say, show

EARLY_TOKENS = 3_000_000
"""Number of target tokens up to which nonsensical translations are normal."""

SENSE = 5.0
"""BLEU (F1 of a parser) below which translations are considered nonsense."""

LEAST_BLEU = 1.0
"""BLEU (F1 of a parser) below which a difference is chance: it counts as 0 where validations are compared.

Text without one right word reaches some hundredths. From here on BLEU grows with the words that are right, though all
below ``SENSE`` is nonsense to a reader.
"""

NO_TENSORBOARD = not_installed("train.tensorboard", "tensorboard")


class RunLog:
    """Appends one JSON object a line to ``folder/log.jsonl``, and prints to stderr for people.

    Every event has ``event`` and ``step``; numbers are in the units that their names give.
    """

    def __init__(self, folder: Path | None, tensorboard: bool = False, quiet: bool = False) -> None:
        """Open the log.

        Args:
            folder: The run; None on ranks other than 0, which write nothing.
            tensorboard: Also write numbers for TensorBoard.

        Raises:
            ConfigError: TensorBoard is not installed.
        """
        self.path = folder / "log.jsonl" if folder else Path(os.devnull)
        self.quiet = quiet or folder is None
        self._reports_errors = folder is not None
        self._writer: Any = None
        if tensorboard and folder:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ConfigError(NO_TENSORBOARD) from None
            self._new_writer: Any = lambda step: SummaryWriter(str(folder / "tensorboard"), purge_step=step)
            self._writer = self._new_writer(None)
        with explained(self.path):
            self._file = self.path.open("a", encoding="utf-8")

    def forget_after(self, step: int) -> None:
        """Drop everything that was logged after ``step``: a resumed run will log it again."""
        if not self.path.is_file():  # on ranks other than 0
            return
        self._file.flush()
        lines = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                if line and json.loads(line)["step"] <= step:
                    lines.append(line + "\n")
            except (ValueError, KeyError, TypeError):
                continue  # a line that a crash cut short
        self._file.close()
        write_text(self.path, "".join(lines))
        samples = self.path.with_name("samples.txt")
        if samples.is_file():
            text = samples.read_bytes().decode("utf-8", "replace")  # read_text would change CR
            blocks = re.split(r"^(?=step \d+)", text, flags=re.MULTILINE)
            write_text(samples, "".join(b for b in blocks if (m := re.match(r"step (\d+)", b)) and int(m[1]) <= step))
        with explained(self.path):
            self._file = self.path.open("a", encoding="utf-8")
        if self._writer is not None:
            self._writer.close()
            self._writer = self._new_writer(step + 1)

    def event(self, event: str, step: int, **facts: Any) -> None:
        """Write one line of JSON, and each number to TensorBoard; nan and infinity are written as words."""
        words = {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in facts.items()}
        line = json.dumps({"event": event, "step": step, **words}, ensure_ascii=False) + "\n"
        with explained(self.path, len(line.encode())):
            self._file.write(line)
            self._file.flush()
        if self._writer is not None:
            for name, value in facts.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    self._writer.add_scalar(f"{event}/{name}", value, step)

    def samples(self, text: str) -> None:
        """Append ``text`` to ``samples.txt``."""
        path = self.path.with_name("samples.txt")
        with explained(path, len(text.encode())), path.open("a", encoding="utf-8") as file:
            file.write(text)

    def say(self, *parts: str) -> None:
        """Print a line to stderr; on a narrow terminal with the parts that fit."""
        if not self.quiet:
            say(*parts)

    def error(self, text: str) -> None:
        """Print what went wrong to stderr, also if quiet."""
        if self._reports_errors:
            say(f"error: {text}")

    def show(self, *parts: str) -> None:
        """Rewrite the live line, if there is one."""
        if not self.quiet:
            show(*parts)

    def close(self) -> None:
        """Flush and close."""
        with contextlib.suppress(OSError):  # the disk is full, which ``event`` has reported
            self._file.close()
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
