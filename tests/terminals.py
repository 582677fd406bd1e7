"""A terminal for tests: a pty of a chosen width, a command that runs in it, and what is on its screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path

from dragoman.cli import main
from limits import LONG_S, wait_until
from processes import Forked

ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b.")


class Screen:
    """What a terminal shows of the bytes that it was given; it never scrolls, so its lines are all there ever were."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self.wrapped: list[str] = []  # lines that went on in the next row

    def feed(self, text: str) -> None:
        """Show some text."""
        at = 0
        while at < len(text):
            escape = ESCAPE.match(text, at)
            if escape:
                if escape[2] == "K":
                    self.rows[self.row] = [] if escape[1] == "2" else self.rows[self.row][: self.column]
                at = escape.end()
                continue
            self._put(text[at])
            at += 1

    def _put(self, character: str) -> None:
        if character == "\n":
            self.row, self.rows = self.row + 1, [*self.rows, []]
        elif character == "\r":
            self.column = 0
        elif character >= " " and not unicodedata.combining(character):
            width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.column + width > self.columns:
                self.wrapped.append("".join(self.rows[self.row]))
                self._put("\n")
                self.column = 0
            cells = self.rows[self.row]
            cells += [" "] * (self.column - len(cells))
            cells[self.column : self.column + width] = [character, ""][:width]
            self.column += width

    @property
    def lines(self) -> list[str]:
        """What stands there, without the empty lines at the end."""
        return "\n".join("".join(row).rstrip() for row in self.rows).rstrip("\n").split("\n")


class Terminal:
    """A dragoman command in a terminal of its own.

    Attributes:
        said: All that it wrote, as it wrote it.
    """

    def __init__(
        self, *args: object, columns: int = 80, cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.columns, self.said = columns, ""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        plain = {"TERM": "xterm-256color", "NO_COLOR": "", "COLUMNS": "", "LINES": ""}
        argv = ["dragoman", *map(str, args)]
        name = os.ttyname(slave)
        self.process = Forked(main, argv, {**plain, **(environment or {})}, cwd, terminal=name)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._slave = slave

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            rest = b""
            while block := os.read(self._master, 2**16):
                rest += block
                text = rest.decode("utf-8", "ignore")
                rest = rest[len(text.encode()) :]
                self.said += text

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self._master, text.encode())

    def wait_for(self, found: str | Callable[[str], bool]) -> None:
        """Until something was said."""

        def is_there() -> bool:
            there = found in self.said if isinstance(found, str) else found(self.said)
            assert there or self.process.poll() is None, self.said
            return there

        wait_until(is_there)

    def end(self) -> int:
        """Wait until the command has ended; its exit status."""
        status = self.process.wait(LONG_S)
        time.sleep(0.05)
        os.close(self._slave)
        self._reader.join(LONG_S)
        os.close(self._master)
        return status

    @property
    def screen(self) -> Screen:
        """What it shows now."""
        screen = Screen(self.columns)
        screen.feed(self.said)
        return screen
