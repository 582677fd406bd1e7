"""Progress on stderr: a line that rewrites itself on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from rich.console import Console


class Ticker:
    """Reports progress; callable as ``ticker(done, total, what)``."""

    def __init__(self, quiet: bool = False, every_s: float = 5.0) -> None:
        self.quiet = quiet
        self.console = Console(file=sys.stderr, highlight=False, markup=False, soft_wrap=True)
        self.every_s = 0.2 if self.console.is_terminal else every_s
        self._last = time.monotonic()

    def __call__(self, done: int, total: int | None, what: str) -> None:
        """Report how far something is; the end is always reported."""
        if self.quiet or (time.monotonic() - self._last < self.every_s and done != total):
            return
        self._last = time.monotonic()
        text = f"{done:,} {what}" if total is None else f"{done:,} of {total:,} {what} ({done / max(total, 1):.0%})"
        self._write(text, final=done == total)

    def say(self, text: str) -> None:
        """Print a line."""
        if not self.quiet:
            self._write(text, final=True)

    @contextlib.contextmanager
    def task(self, what: str) -> Iterator[None]:
        """Count the seconds of something that cannot say how far it is."""
        started, over = time.monotonic(), threading.Event()

        def tick() -> None:
            while not over.wait(self.every_s):
                self._write(f"{what} ... {time.monotonic() - started:.0f} s", final=False)

        thread = threading.Thread(target=tick, daemon=True, name="ticker")
        if not self.quiet:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if thread.is_alive():
                thread.join()
        if not self.quiet and time.monotonic() - started >= 1:
            self._write(f"{what}: {time.monotonic() - started:.1f} s", final=True)

    def _write(self, text: str, final: bool) -> None:
        if self.console.is_terminal:
            self.console.print(f"\r\x1b[2K{text}", end="\n" if final else "", markup=False)
        else:
            print(text, file=sys.stderr, flush=True)
