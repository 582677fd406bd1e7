"""What goes to stderr: lines that stay, and one live line that rewrites itself on a terminal.

Whoever speaks clears the live line first, so nothing is ever glued to it. Where stderr is no terminal, or one that
``NO_COLOR`` or ``TERM=dumb`` wants plain, there is no live line, and progress is a line every few seconds.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len, set_cell_size

REWRITE_S = 0.2
"""How long a live line stands at least."""

_lock = threading.RLock()
_standing = False  # whether there is a live line on the screen


def has_live_line() -> bool:
    """Whether stderr is a terminal on which a line may be rewritten."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return not plain and sys.stderr.isatty()


def show(*parts: str) -> None:
    """Rewrite the live line, if there is one: as many of the parts as fit, the first of them in any case."""
    global _standing
    if has_live_line():
        with _lock:
            _standing = True
            _put(f"\r\x1b[2K{fitted(parts, columns() - 3)}")  # the terminal's echo of Ctrl-C has room behind it


def clear() -> None:
    """Take the live line away: for whoever is about to write to the terminal."""
    global _standing
    with _lock:
        if _standing:
            _standing = False
            _put("\r\x1b[2K")


def say(*parts: str) -> None:
    """Print a line that stays; on a terminal with the parts that fit, but the first in any case and whole."""
    with _lock:
        clear()
        text = "  ".join(parts)
        if len(parts) > 1 and has_live_line() and cell_len(text) > columns():
            text = fitted(parts, max(columns(), cell_len(parts[0])))
        print(text, file=sys.stderr, flush=True)


def columns() -> int:
    """How many cells a line of the terminal behind stderr has."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def fitted(parts: Sequence[str], width: int) -> str:
    """The first of ``parts`` that fit into ``width`` cells, two blanks between; if the first does not, its beginning.

    A Chinese character takes two cells.
    """
    text = "".join(character if character.isprintable() else " " for character in parts[0])
    for part in parts[1:]:
        longer = f"{text}  {part}"
        if cell_len(longer) > width:
            break
        text = longer
    return text if cell_len(text) <= width else set_cell_size(text, max(width, 0)).rstrip()


def duration(seconds: float) -> str:
    """``75`` as ``1:15``, ``3675`` as ``1:01:15``."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _put(text: str) -> None:
    """Write to the terminal as it is; that it has gone ends no work."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def repeated(tick: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call ``tick`` from a thread every so many seconds while the body runs; never after its end."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(every_s):
            tick()

    thread = threading.Thread(target=run, daemon=True, name="ticker")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Ticker:
    """Reports progress; callable as ``ticker(done, total, what)``."""

    def __init__(self, quiet: bool = False, every_s: float = 5.0) -> None:
        self.quiet = quiet
        self.every_s = every_s
        self._last = time.monotonic()
        self._counted = ("", 0)  # what was counted last, and how far
        self._start = (0, self._last)  # how far it was when it was first told of, and when that was

    def __call__(self, done: int, total: int | None, what: str) -> None:
        """Report how far something is; the end is always reported, in a line that stays."""
        now = time.monotonic()
        if self._counted[0] != what or done < self._counted[1]:
            self._start = (done, now)
        self._counted = (what, done)
        live, ended = has_live_line(), done == total
        soon = now - self._last < (REWRITE_S if live else self.every_s)
        if self.quiet or (soon and not ended and not (live and not done)):  # that it begins is shown at once
            return
        self._last = now
        count = f"{done:,} {what}" if total is None else f"{done:,} of {total:,} {what} ({done / max(total, 1):.0%})"
        rate = (done - self._start[0]) / max(now - self._start[1], 1e-9)
        speed = [f"{rate:,.0f} a second"] if now - self._start[1] > 1 and rate >= 1 else []
        if live and not ended:
            left = [f"{duration((total - done) / rate)} left"] if speed and total is not None else []
            show(count, *left, *speed)
        else:
            say(count, *speed)

    def named(self, what: str) -> Callable[[int, int, str], None]:
        """The same, for who is told of something by another name: here it is ``what``."""
        return lambda done, total, _: self(done, total, what)

    def say(self, *parts: str) -> None:
        """Print a line that stays: ``say`` above, unless all is to be quiet."""
        if not self.quiet:
            say(*parts)

    @contextlib.contextmanager
    def task(self, what: str, keep: bool = True) -> Iterator[None]:
        """Count the seconds of something that cannot say how far it is.

        Args:
            keep: Say in the end how long it took, if that is worth a line.
        """
        if self.quiet:
            yield
            return
        started = time.monotonic()

        def tick() -> None:
            said = f"{what} ... {time.monotonic() - started:.0f} s"
            show(said) if has_live_line() else say(said)

        try:
            with repeated(tick, REWRITE_S if has_live_line() else self.every_s):
                yield
        finally:
            clear()
        if keep and time.monotonic() - started >= 1:
            self.say(f"{what}: {time.monotonic() - started:.1f} s")
