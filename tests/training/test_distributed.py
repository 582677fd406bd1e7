"""Several processes: what each learns from its environment, and what one decides for all."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
import torch

from dragoman.config import TrainConfig
from dragoman.errors import ConfigError
from dragoman.training.checkpoint import TrainState
from dragoman.training.distributed import (
    ALONE,
    World,
    broadcast_from_rank_0,
    gathered,
    joined,
    launch_name,
    open_group,
    run_on_rank_0,
    total,
)
from dragoman.training.loop import seconds_left
from dragoman.training.signals import SAME_REQUEST_S, StopRequest


def test_one_process_is_a_world_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (None, "1", ""):
        monkeypatch.setenv("WORLD_SIZE", size) if size is not None else monkeypatch.delenv("WORLD_SIZE", raising=False)
        with joined() as world:
            assert world == ALONE
    tensor = torch.arange(3)
    assert total(ALONE, 1.5, 2) == broadcast_from_rank_0(ALONE, 1.5, 2) == [1.5, 2]
    assert gathered(ALONE, tensor)[0] is tensor
    assert run_on_rank_0(ALONE, lambda: 3) == 3


@pytest.mark.parametrize("missing", ["RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_an_environment_that_is_half_set_is_refused(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(missing)
    with (
        pytest.raises(ConfigError, match=f"WORLD_SIZE = 2.*{missing}.*start them with torchrun, or unset it"),
        joined(),
    ):
        pass


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(
        ConfigError, match=r"no GPU is left for process 3 of this machine, which has 2: .*--nproc-per-node 2"
    ):
        open_group(World(2, 3), torch.device("cuda"))


def test_the_name_of_a_launch_is_that_of_the_parent_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert launch_name() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    monkeypatch.setattr(os, "getppid", os.getpid)  # a process that surely is there
    name = launch_name()
    assert name is not None
    assert name.startswith("job ")
    assert f" {os.getpid()} " in f"{name} "
    assert launch_name() == name  # after a restart too
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert launch_name() != name
    monkeypatch.setattr(os, "getppid", os.getpid)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "another")
    assert launch_name() != name


def test_the_time_left_is_that_of_the_first_limit() -> None:
    state = TrainState(step=100, seconds=50.0)

    def left(epochs_done: float = 2.0, **limits: Any) -> float:
        return seconds_left(state, TrainConfig(**{"max_steps": 1000, **limits}), epochs_done)

    assert left() == 450
    assert left(max_epochs=5) == 75
    assert left(max_epochs=100) == 450
    assert left(max_epochs=5, max_minutes=1) == 10
    assert left(max_epochs=5, max_minutes=0.5) == 0
    assert left(epochs_done=0, max_epochs=5) == 450


def test_a_request_to_another_rank_is_not_the_first_of_two_to_this_one() -> None:
    with StopRequest() as stop:
        stop.stop_with_others()
        assert stop.signal == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal == signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_under_torchrun_a_signal_that_comes_twice_is_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    before = signal.getsignal(signal.SIGINT)
    try:
        with StopRequest() as stop:
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
            assert stop.signal == signal.SIGINT
            now += 1.01 * SAME_REQUEST_S
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, before)
