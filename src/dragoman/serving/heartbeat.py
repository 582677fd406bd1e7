"""Ends this process from outside once no Python code can run in it, such as behind native code that never ends.

    heartbeat = Heartbeat(90)     # starts a small process that listens
    heartbeat.beat()              # again and again: 90 seconds of silence end this process

A timer in this process would count the time in which the process was stopped (SIGSTOP, a frozen container, a machine
that sleeps), and end it as soon as it goes on. The other process counts its own seconds, and none while this one is
stopped.

The first process of a container (PID 1) gets no signal from inside it unless it has a handler for it: not even SIGKILL.
So it gets a handler in C, which needs no Python code.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import logging
import os
import signal
import subprocess
import sys

logger = logging.getLogger("dragoman.serving")

LISTENER = """
import os, select, signal, subprocess, sys, time
process, most, tick = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)

# In a container /proc may be missing, or the host's, where this number is another process.
try:
    is_own = os.readlink("/proc/self") == str(os.getpid())
    stat = os.open(f"/proc/{process}/stat", os.O_RDONLY) if is_own else None
except OSError:
    stat = None

used_s = None

def is_stopped():
    global used_s
    if stat is None and sys.platform == "linux":
        # Threads that wait for Python's lock look for it 200 times a second; only a stopped process uses no time.
        before = used_s
        try:
            used_s = time.clock_gettime(~process << 3 | 2)  # Linux's clock of another process
        except OSError:
            return False
        return before == used_s
    if stat is None:
        state = subprocess.run(["ps", "-o", "state=", "-p", str(process)], capture_output=True).stdout
    else:
        try:
            state = os.pread(stat, 4096, 0).rpartition(b")")[2]
        except ProcessLookupError:
            state = b""
    return state.strip()[:1] in (b"T", b"t")

silent = 0.0
while silent <= most:
    began = time.monotonic()
    if select.select([0], [], [], tick)[0]:
        if not os.read(0, 4096):
            sys.exit()
        silent = 0.0
    elif is_stopped():
        silent = 0.0
    else:
        silent += min(time.monotonic() - began, tick)
os.kill(process, signal.SIGABRT)
if not select.select([0], [], [], 5.0)[0] or os.read(0, 4096):
    os.kill(process, signal.SIGABRT)  # again, without words: for PID 1
    os.kill(process, signal.SIGKILL)
"""
"""Program of the other process. It ends when this one has ended, which closes the pipe."""


class Heartbeat:
    """A process that listens to this one, and ends it by SIGABRT when it is silent."""

    def __init__(self, most_silent_s: float) -> None:
        """Start to listen; SIGABRT prints where each thread is."""
        self._most_silent_s = most_silent_s
        self._listener: subprocess.Popen[bytes] | None = None
        if os.getpid() == 1:
            faulthandler.disable()  # it raises the signal again for the handler that it found when it was enabled
            libc = ctypes.CDLL(None)
            libc.signal(signal.SIGABRT, libc._exit)
        if not faulthandler.is_enabled():
            faulthandler.enable()
        self._start()

    def _start(self) -> None:
        tick_s = min(1.0, self._most_silent_s / 10)
        command = [sys.executable, "-I", "-S", "-c", LISTENER, str(os.getpid()), str(self._most_silent_s), str(tick_s)]
        try:
            self._listener = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            assert self._listener.stdin is not None
            os.set_blocking(self._listener.stdin.fileno(), False)
        except OSError as error:
            logger.warning("no process can be started that ends this one if it hangs: %s", error)

    def beat(self) -> None:
        """Show that Python code runs; start to listen again if the other process has died."""
        if self._listener is None or self._listener.poll() is not None:
            self.close()
            self._start()
        elif self._listener.stdin is not None:
            with contextlib.suppress(OSError):  # BlockingIOError: it was stopped for long; BrokenPipeError: it dies now
                os.write(self._listener.stdin.fileno(), b".")

    def close(self) -> None:
        """End the other process."""
        if self._listener is not None:
            self._listener.kill()
            self._listener.wait()
            if self._listener.stdin is not None:
                self._listener.stdin.close()
            self._listener = None
