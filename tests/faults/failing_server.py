"""``dragoman serve`` with a fault: the text "fault" makes it happen. ``python failing_server.py RUN FAULT``

The limits of the watchdog are short, so that a test need not wait for minutes.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

from dragoman.cli import main
from dragoman.serving import batcher, server, service, watchdog

search: Callable[..., Any] = batcher.translate_segments
prepare: Callable[..., Any] = service.segment


def is_meant(segments: Any) -> bool:
    return any(segment.text.startswith("fault") for segment in segments)


def stuck(segments: Any, plan: Any) -> Any:
    """Never come back from a search."""
    if is_meant(segments):
        threading.Event().wait()
    return search(segments, plan)


def blocking(lines: Any, plan: Any, events: Any) -> Any:
    """Never come back from the preparation of a short text, which the event loop does itself."""
    if "fault" in lines:
        threading.Event().wait()
    return prepare(lines, plan, events)


def holding(segments: Any, plan: Any) -> Any:
    """Keep the interpreter lock for ever, as native code may."""
    if is_meant(segments):
        ctypes.PyDLL(None).sleep(1000)
    return search(segments, plan)


if __name__ == "__main__":
    run, fault = sys.argv[1:]
    if fault == "blocked loop":
        service.segment = blocking  # type: ignore[attr-defined]
    else:
        batcher.translate_segments = {"stuck search": stuck, "held lock": holding}[fault]  # type: ignore[attr-defined]
    watchdog.Patience.__init__.__defaults__ = (0.1, 0.5, 0.0, 0.5, 3.0, None)  # type: ignore[attr-defined]
    server.SILENT_S, server.LAST_S = 2.0, 1.0
    sys.argv = ["dragoman", "serve", run, "--port", "0", "--grace", "1"]
    main()
