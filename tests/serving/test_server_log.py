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


def test_a_warning_again_and_again_is_written_a_few_times_and_counted(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other lines are neither lost nor late: requests are all logged, and so is what another place logs."""
    monkeypatch.setattr(log_module, "ALIKE_S", 3600.0)
    monkeypatch.setattr(log_module, "MOST_LINES", 0)  # without a limit
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.manager._clear_cache()
    gated.go.set()
    with written_apart():
        for number in range(1000):
            logger.warning("request %d is invalid", number)
            logger.info("a request")
        logger.error("something else")
    wait_until(lambda: gated.lines[-1:] == ["980 more lines like this: request 0 is invalid"])
    warnings = [line for line in gated.lines if line.startswith("request")]
    assert warnings == [f"request {number} is invalid" for number in range(log_module.MOST_ALIKE)]
    assert gated.lines.count("a request") == 1000
    assert "something else" in gated.lines


def test_lines_that_were_left_out_are_counted_while_the_server_runs(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "ALIKE_S", 0.01)
    monkeypatch.setattr(log_module, "MOST_ALIKE", 0)
    gated.go.set()
    with written_apart():
        logger.warning("a line")
        wait_until(lambda: gated.lines == ["1 more lines like this: a line"])
