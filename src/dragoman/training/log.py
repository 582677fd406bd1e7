"""What a run reports: ``log.jsonl`` for machines, stderr for people, TensorBoard on request."""

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
"""Up to so many target tokens translations that make no sense are no cause for concern."""

SENSE = 5.0
"""Translations of a lower BLEU (F1, of a parser) make no sense, as far as a figure can tell."""

NO_TENSORBOARD = not_installed("train.tensorboard", "tensorboard")


class RunLog:
    """Appends one JSON object a line to ``folder/log.jsonl``, and speaks to people on stderr.

    Every event has ``event`` and ``step``; numbers are in the units that their names carry.
    """

    def __init__(self, folder: Path | None, tensorboard: bool = False, quiet: bool = False) -> None:
        """Open the log.

        Args:
            folder: The run; None for the ranks beside the first, whose log goes nowhere.

        Raises:
            ConfigError: TensorBoard is asked for and not installed.
        """
        self.path = folder / "log.jsonl" if folder else Path(os.devnull)
        self.quiet = quiet or folder is None
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
        """Drop what was logged after ``step``: a resumed run will say it again."""
        if not self.path.is_file():  # of another rank
            return
        self._file.flush()
        kept = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                if line and json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError, TypeError):
                continue  # a line that a crash cut short
        self._file.close()
        write_text(self.path, "".join(kept))
        samples = self.path.with_name("samples.txt")
        if samples.is_file():
            text = samples.read_bytes().decode("utf-8", "replace")  # in which a CR stays one
            blocks = re.split(r"^(?=step \d+)", text, flags=re.MULTILINE)
            write_text(samples, "".join(b for b in blocks if (m := re.match(r"step (\d+)", b)) and int(m[1]) <= step))
        with explained(self.path):
            self._file = self.path.open("a", encoding="utf-8")
        if self._writer is not None:
            self._writer.close()
            self._writer = self._new_writer(step + 1)

    def event(self, event: str, step: int, **facts: Any) -> None:
        """Write one line of JSON, and each number to TensorBoard; what is not finite is written as a word."""
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
        """Append to ``samples.txt``."""
        path = self.path.with_name("samples.txt")
        with explained(path, len(text.encode())), path.open("a", encoding="utf-8") as file:
            file.write(text)

    def say(self, *parts: str) -> None:
        """Print a line for people to stderr; on a narrow terminal with the parts that fit."""
        if not self.quiet:
            say(*parts)

    def show(self, *parts: str) -> None:
        """Rewrite the live line, where there is one."""
        if not self.quiet:
            show(*parts)

    def close(self) -> None:
        """Flush and close."""
        with contextlib.suppress(OSError):  # of a full disk, which the event told of already
            self._file.close()
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
