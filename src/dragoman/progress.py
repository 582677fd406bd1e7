"""Output to stderr: lines that stay, and one live line that rewrites itself on a terminal.

    ticker = Ticker()
    with ticker.task("counting the pairs"):
        ...
    ticker.say("train: 29,000 pairs")

Every function that prints clears the live line first. If stderr is not a terminal, or ``NO_COLOR`` or ``TERM=dumb`` is
set, there is no live line: progress is then a line every few seconds.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from dragoman.errors import shortened

REWRITE_S = 0.2
"""Shortest time between two versions of the live line, in seconds."""

_lock = threading.RLock()
_standing = False  # True while a live line is on the screen


def has_live_line() -> bool:
    """Return True if stderr is a terminal on which a line may be rewritten."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return not plain and _is_terminal()


def _is_terminal() -> bool:
    """True if stderr is a terminal; a host may have closed it, or have none."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def show(*parts: str) -> None:
    """Rewrite the live line, if there is one, with as many of the parts as fit; the first part is always shown."""
    global _standing
    if has_live_line():
        with _lock:
            _standing = True
            _put(f"\r\x1b[2K{fitted(parts, columns() - 3)}")  # leaves room for the terminal's echo of Ctrl-C


def clear() -> None:
    """Remove the live line, before something else is written to the terminal."""
    global _standing
    with _lock:
        if _standing:
            _standing = False
            _put("\r\x1b[2K")


_CONTROLS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]")
"""Control characters, with which the name of a file or a text would write to the terminal in other places."""


def say(*parts: str) -> None:
    """Print a line that stays; on a terminal with as many of the parts as fit, the first always in full.

    A line that cannot be written, such as to a full disk or a closed stderr, is lost: messages never end the work that
    they are about.
    """
    with _lock:
        clear()
        text = _CONTROLS.sub(lambda control: repr(control[0])[1:-1], "  ".join(parts))
        text = "\n".join(map(shortened, text.split("\n")))  # it may quote a line of megabytes
        if len(parts) > 1 and has_live_line() and cell_len(text) > columns():
            text = fitted(parts, max(columns(), cell_len(parts[0])))
        _put(f"{wrapped(text, columns()) if _is_terminal() else text}\n")


def columns(stream: TextIO | None = None) -> int:
    """Return the width of the terminal behind a stream, stderr by default, in cells; 80 if it is not known."""
    try:
        return os.get_terminal_size((stream or sys.stderr).fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


_UNBROKEN = re.compile("[^ \\u2e80-\\U0003ffff]+|[ \\u2e80-\\U0003ffff]")
"""Part of a line that stays in one row: a word; Chinese may break after every character."""


def wrapped(text: str, width: int) -> str:
    """Return text whose lines a terminal of this width breaks between words.

    Rows are filled with spaces up to their end, so the terminal itself begins the next one. It then knows that the rows
    are one line: a command that is copied from it can be pasted.
    """
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    if cell_len(line) <= width or "\t" in line:
        return line
    pieces, column = [], 0
    parts = _UNBROKEN.findall(line)
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        size = cell_len(part)
        if column and column + size + (following == " ") > width >= size and part != " ":
            if len(part) > 1 or size == 1:  # the terminal itself moves a character of two cells
                pieces.append(" " * (width - column))
            column = 0
        pieces.append(part)
        column = (column + size) % width
    return "".join(pieces)


def fitted(parts: Sequence[str], width: int) -> str:
    """Join the first of ``parts`` that fit into ``width`` cells, two spaces apart; cut the first if it does not fit.

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
    """Format seconds: ``75`` as ``1:15``, ``3675`` as ``1:01:15``."""
    minutes, whole_seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_seconds:02d}" if hours else f"{minutes}:{whole_seconds:02d}"


def _put(text: str) -> None:
    """Write raw text to stderr; nothing is written where there is none, or no longer."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def repeated(tick: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call ``tick`` from a thread every ``every_s`` seconds while the body runs, and never after it."""
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


def _percent(done: int, total: int) -> str:
    """Return the share in whole percent, rounded down: 100% is the end."""
    return f"{100 * done // max(total, 1)}%"


class Ticker:
    """Progress reports on stderr; call it as ``ticker(done, total, what)``."""

    def __init__(self, quiet: bool = False, every_s: float = 5.0) -> None:
        self.quiet = quiet
        self.every_s = every_s
        self._last = time.monotonic()
        self._counted = ("", 0)  # name and number of the last report
        self._start = (0, self._last)  # number and time of the first report under this name

    def __call__(self, done: int, total: int | None, what: str) -> None:
        """Report that ``done`` of ``total`` (None: unknown) are done; the end is printed on a line that stays."""
        now = time.monotonic()
        if self._counted[0] != what or done < self._counted[1]:
            self._start = (done, now)
        self._counted = (what, done)
        live, ended = has_live_line(), done == total
        soon = now - self._last < (REWRITE_S if live else self.every_s)
        if self.quiet or (soon and not ended and not (live and not done)):  # the start is shown at once
            return
        self._last = now
        count = f"{done:,} {what}" if total is None else f"{done:,} of {total:,} {what} ({_percent(done, total)})"
        rate = (done - self._start[0]) / max(now - self._start[1], 1e-9)
        speed = [f"{rate:,.0f} a second"] if now - self._start[1] > 1 and rate >= 1 else []
        if live and not ended:
            left = [f"{duration((total - done) / rate)} left"] if speed and total is not None else []
            show(count, *left, *speed)
        else:
            say(count, *speed)

    def named(self, what: str) -> Callable[[int, int, str], None]:
        """Return a callback like this ticker that reports under the name ``what`` instead of the caller's."""
        return lambda done, total, _: self(done, total, what)

    def without_end(self) -> Callable[[int, int, str], None]:
        """Return a callback like this ticker without the last line on a terminal, for work that prints its own."""
        return lambda done, total, what: None if done == total and has_live_line() else self(done, total, what)

    def say(self, *parts: str) -> None:
        """Print a line that stays, unless quiet."""
        if not self.quiet:
            say(*parts)

    @contextlib.contextmanager
    def task(self, what: str, keep: bool = True) -> Iterator[Callable[..., None]]:
        """Show the elapsed seconds while the body runs, and the percentage once the body reports what is done.

        The body may call what it is given with the number of things done and their total.

        Args:
            what: Name of the work.
            keep: At the end, print how long it took, if it was at least a second.
        """
        counts = [0, 0]

        def report(done: int, total: int, _what: str = "") -> None:
            counts[:] = done, total

        if self.quiet:
            yield report
            return
        started = time.monotonic()

        def tick() -> None:
            percentage = f"{_percent(*counts)}, " if counts[1] else ""
            text = f"{what} ... {percentage}{time.monotonic() - started:.0f} s"
            show(text) if has_live_line() else say(text)

        try:
            with repeated(tick, REWRITE_S if has_live_line() else self.every_s):
                yield report
        finally:
            clear()
        if keep and time.monotonic() - started >= 1:
            self.say(f"{what}: {time.monotonic() - started:.1f} s")
