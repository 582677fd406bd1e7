"""X4: a batch that runs out of memory is split in half, down to single sentences; nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from table_model import TableModel, TableState
from torch import Tensor

from dragoman.config import DecodeConfig
from dragoman.decoding.batches import run_halving
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.request import Sampling
from dragoman.decoding.scoring import read_all
from dragoman.device import is_out_of_memory
from dragoman.errors import DecodeError
from searching import search_all, search_result

CPU = torch.device("cpu")
ERRORS: list[Callable[[], BaseException]] = [
    lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    lambda: RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: not enough memory: you tried to"),
    lambda: RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"),
    MemoryError,
]


class Small(TableModel):
    """Has room for so many tokens of sources at a time."""

    def __init__(self, seed: int, room: int, error: Callable[[], BaseException]) -> None:
        super().__init__(seed)
        self.room, self.error, self.sizes = room, error, list[int]()

    def start(self, src: Tensor) -> TableState:
        self.sizes.append(src.numel())
        if src.numel() > self.room:
            raise self.error()
        return super().start(src)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("room", [5, 12, 30])
def test_x4_batches_are_split_and_the_order_stays(error: Callable[[], BaseException], room: int) -> None:
    sources = [[4 + i % 3] * (1 + i % 4) for i in range(37)]
    want = search_all(TableModel(1), sources, DecodeConfig(), CPU)
    model = Small(1, room, error)
    assert search_all(model, sources, DecodeConfig(), CPU) == want
    assert max(model.sizes) > room
    print(f"X4: 37 sentences with room for {room} tokens: {len(model.sizes)} tries, 0 lost, order kept")


@pytest.mark.parametrize("error", ERRORS)
def test_x4_a_sentence_that_fails_alone_is_named_after_the_others_are_done(error: Callable[[], BaseException]) -> None:
    sources = [[4], [5] * 30, [6, 6], [5] * 40, [4, 5]]
    want = search_all(TableModel(1), sources, DecodeConfig(), CPU)
    done: list[int] = []
    result = search_result(
        Small(1, 12, error), sources, DecodeConfig(), CPU, progress=lambda n, total, what: done.append(n)
    )
    assert done[-1] == 5
    assert result.out_of_memory == [1, 3]
    assert result.hypotheses == [want[0], [], want[2], [], want[4]]
    with pytest.raises(DecodeError, match=r"^sentence 2: out of memory, even alone in a batch"):
        result.complete()
    print("X4: 2 of 5 sentences fail alone: both reported, 3 translated as ever")


@pytest.mark.parametrize(
    ("beam", "words", "sampling"), [(1, None, None), (5, None, None), (5, "exclude", None), (5, "include", None),
                                    (16, "exclude", None), (5, None, Sampling(1.0, 0, 1.0, 0))],
)  # fmt: skip
def test_a_batch_has_few_very_short_lines(beam: int, words: str | None, sampling: Sampling | None) -> None:
    """Each hypothesis takes a row of the size of the vocabulary: 512 lines of a letter took 5 GB."""
    spelling = Spelling([b"", b"?", b"", b"", b" a", b" b", b" c"])
    rules = Rules(spelling, **({} if words is None else {words: (b"c",) if words == "exclude" else ((6,),)}))
    sources, how = [[4 + i % 3] for i in range(500)], {"rules": [rules] * 500, "sampling": sampling}
    model, config = Small(1, 10_000, MemoryError), DecodeConfig(beam_size=beam, batch_tokens=1024)
    found = search_all(model, sources, config, CPU, **how)
    assert max(model.sizes) <= 64 * 2  # 1,024 tokens of lines of 16, and each has two
    alone = search_all(TableModel(1), sources, DecodeConfig(beam_size=beam, batch_tokens=1), CPU, **how)
    assert found == alone


def test_other_errors_are_not_taken_for_it() -> None:
    model = Small(1, 1, lambda: RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes"):
        search_all(model, [[4], [5]], DecodeConfig(), CPU)
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"))
    assert not is_out_of_memory(RuntimeError("The tensor has a non-zero number of elements, but its data is not alloc"))
    assert not is_out_of_memory(ValueError("out of memory"))
    assert not is_out_of_memory(DecodeError("out of memory"))


def test_scoring_splits_too() -> None:
    def model(src: Tensor, tgt_in: Tensor, record: object = None) -> Tensor:
        if src.numel() > 12:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return torch.nn.functional.one_hot(tgt_in, 7).double() + src.sum(1)[:, None, None]

    pairs = [([4] * n, [5] * (n % 3)) for n in (1, 4, 40, 2, 3, 5, 1)]
    found = read_all(model, pairs, CPU)
    assert [one and len(one.log_probs) for one in found] == [2, 2, None, 3, 1, 3, 2]


def test_halves_are_run_in_order() -> None:
    seen: list[list[int]] = []

    def run(batch: list[int]) -> None:
        seen.append(batch)
        if len(batch) > 2 or batch == [3]:
            raise MemoryError

    assert run_halving([0, 1, 2, 3, 4], run) == []
    assert seen == [[0, 1, 2, 3, 4], [0, 1], [2, 3, 4], [2], [3, 4]]
    assert run_halving([3], run) == [3]
