"""What workers are made to do in tests: top-level functions, which a worker can import."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError, DataError


def echo(**values: Any) -> dict[str, Any]:
    """Its arguments."""
    return values


def about() -> dict[str, Any]:
    """The process, and whether it has torch."""
    return {"pid": os.getpid(), "torch": "torch" in sys.modules, "niceness": os.nice(0)}


def eat_memory() -> dict[str, Any]:
    """More and more memory."""
    eaten = []
    while True:
        eaten.append(bytearray(1 << 20))


def burn() -> dict[str, Any]:
    """A regular expression that takes for ever, and holds the interpreter."""
    return {"never": re.match(r"(?:a|aa|aaa)*b", "a" * 100) is None}


def sleep() -> dict[str, Any]:
    """Much time, and no processor."""
    time.sleep(1000)
    return {}


def wait_for(sign: str) -> dict[str, Any]:
    """What takes until a file appears."""
    while not Path(sign).exists():
        time.sleep(0.01)
    return {}


def leave() -> dict[str, Any]:
    """An end without a word."""
    os._exit(3)


def kill() -> dict[str, Any]:
    """An end by a signal."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def fail(kind: str) -> dict[str, Any]:
    """An exception."""
    raise {"DataError": DataError, "ConfigError": ConfigError, "ValueError": ValueError}[kind]("as it was raised")


def recurse(n: int = 0) -> dict[str, Any]:
    """A recursion without an end."""
    return recurse(n + 1)


def many(n: int) -> dict[str, Any]:
    """A long list."""
    return {"numbers": [str(i) for i in range(n)]}


def talk() -> dict[str, Any]:
    """Words on every channel that a library might use."""
    print("a word", flush=True)
    print("a word", file=sys.stderr, flush=True)
    os.write(1, b"a word\n")
    return {}


def niceness(after_s: float) -> dict[str, Any]:
    """How much it yields the processor at once, and after some time."""
    first = os.nice(0)
    time.sleep(after_s)
    return {"first": first, "then": os.nice(0)}
