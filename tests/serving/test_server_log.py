"""The log of a server is written apart: who does not read it delays nobody."""

from __future__ import annotations

import logging
import threading

import pytest

from dragoman.serving import log as log_module
from dragoman.serving.log import written_apart
from limits import LONG_S, wait_until

logger = logging.getLogger("dragoman.serving")


class Gated(logging.Handler):
    """Writes nothing until ``go`` is set, as a full pipe."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.lines = threading.Event(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.go.wait(LONG_S)
        self.lines.append(record.getMessage())


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> Gated:
    handler = Gated()
    monkeypatch.setattr(logging.getLogger("dragoman"), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger("dragoman"), "propagate", False)
    return handler


def test_a_pipe_that_nobody_reads_does_not_keep_the_server_from_ending(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "LAST_S", 0.1)
    with written_apart() as log:
        logger.warning("a line")
    assert not log.is_written
    gated.go.set()
    wait_until(lambda: log.is_written)
    assert gated.lines == ["a line"]


def test_other_libraries_are_written_apart_too(gated: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no handler takes goes to Python's last resort, which is stderr too."""
    monkeypatch.setattr(logging, "lastResort", gated)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with written_apart():
        logging.getLogger("asyncio").error("too many files")
        assert gated.lines == []
        gated.go.set()
    assert gated.lines == ["too many files"]
