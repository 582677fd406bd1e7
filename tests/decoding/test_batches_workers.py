"""Several batches searched at a time: the same results in the same order, and errors as with one worker."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from table_model import TableModel, TableState
from torch import Tensor

from dragoman.config import DecodeConfig
from dragoman.decoding.batches import Hooks, search_all
from dragoman.errors import ConfigError, DecodeError

CPU = torch.device("cpu")
SOURCES = [[4 + (i * j) % 3 for j in range(1 + i % 7)] for i in range(60)]
CONFIG = DecodeConfig(batch_tokens=20)


class Watched(TableModel):
    """Notes how many searches begin while another one goes on; fails for sources longer than ``room``."""

    def __init__(self, seed: int, room: int = 99, error: type[Exception] = MemoryError) -> None:
        super().__init__(seed)
        self.room, self.error, self.starts = room, error, list[tuple[str, int]]()

    def start(self, src: Tensor) -> TableState:
        self.starts.append((threading.current_thread().name, torch.get_num_threads()))
        time.sleep(0.01)
        if src.size(1) > self.room:
            raise self.error("no luck")
        return super().start(src)


@pytest.mark.parametrize("workers", [2, 3, 100])
def test_the_results_are_those_of_one_worker_in_order(workers: int) -> None:
    before = torch.get_num_threads()
    model, told = Watched(1), list[int]()
    found = search_all(
        model,
        SOURCES,
        CONFIG,
        CPU,
        2,
        workers=workers,
        hooks=Hooks(progress=lambda done, total, what: told.append(done)),
    )
    assert found == search_all(TableModel(1), SOURCES, CONFIG, CPU, 2)
    assert len({name for name, _ in model.starts}) > 1
    assert {n_threads for _, n_threads in model.starts} == {1}
    assert torch.get_num_threads() == before
    assert told == sorted(told)
    assert told[-1] == len(SOURCES)


def test_a_source_without_memory_is_reported_after_the_others() -> None:
    lost: list[int] = []
    found = search_all(Watched(1, room=7), SOURCES, CONFIG, CPU, workers=2, hooks=Hooks(failed=lost.append))
    want = search_all(TableModel(1), SOURCES, CONFIG, CPU)
    assert lost == [i for i, src in enumerate(SOURCES) if len(src) + 1 > 7]
    assert found == [[] if i in lost else one for i, one in enumerate(want)]
    with pytest.raises(DecodeError, match=r"^sentence 7: out of memory, even alone in a batch"):
        search_all(Watched(1, room=7), SOURCES, CONFIG, CPU, workers=2)


def test_another_error_ends_all_and_batches_not_yet_begun_are_left() -> None:
    model = Watched(1, room=7, error=ValueError)
    with pytest.raises(ValueError, match="no luck"):
        search_all(model, SOURCES * 10, CONFIG, CPU, workers=2)
    assert len(model.starts) < 20  # of some 170 batches
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("search")]


def test_calls_at_the_same_time_leave_as_many_threads_as_there_were() -> None:
    def count() -> int:
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(torch.get_num_threads).result()

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with ThreadPoolExecutor(4) as calls:
            for _ in range(10):
                list(calls.map(lambda _: search_all(TableModel(1), SOURCES, CONFIG, CPU, workers=2), range(4)))
                assert count() == 3
    finally:
        torch.set_num_threads(before)


def test_no_workers_are_refused() -> None:
    with pytest.raises(ConfigError, match="workers = 0 must be 1 or more"):
        search_all(TableModel(1), SOURCES, CONFIG, CPU, workers=0)


def test_threads_that_begin_meanwhile_have_as_many_cores_as_before() -> None:
    before, seen = torch.get_num_threads(), list[int]()
    torch.set_num_threads(3)
    try:

        def ask(done: int, total: int, what: str) -> None:
            with ThreadPoolExecutor(1) as fresh:
                seen.append(fresh.submit(torch.get_num_threads).result())

        search_all(Watched(1), SOURCES, CONFIG, CPU, workers=2, hooks=Hooks(progress=ask))
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {3}
