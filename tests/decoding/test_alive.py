"""A sentence that nobody wants any more leaves the search at the next step; the others stay as they are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from table_model import TableModel, TableState
from torch import Tensor

from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.request import Hypothesis, Sampling
from dragoman.fast.step import FastTransformer
from dragoman.model.transformer import Transformer
from searching import search_all

CPU = torch.device("cpu")
SOURCES = [[4 + (i * j) % 3 for j in range(1 + i % 7)] for i in range(24)]
WAYS = pytest.mark.parametrize(
    "how",
    [
        {"config": DecodeConfig(beam_size=1)},
        {"config": DecodeConfig(beam_size=4)},
        {"config": DecodeConfig(beam_size=3, patience=1.0), "n_best": 3},
        {"config": DecodeConfig(), "sampling": Sampling(seed=3)},
        {"config": DecodeConfig(), "sampling": Sampling(temperature=1.3), "n_best": 2},
    ],
    ids=["greedy", "beam", "patience", "sampling", "two samples"],
)


class Stepwise(TableModel):
    """A table that never ends by itself: translations go on to their limit. It counts its steps, and their rows."""

    def __init__(self, seed: int, ends: bool = False) -> None:
        super().__init__(seed)
        if not ends:
            self.table[..., 3] = -30.0
        self.rows, self.starts = list[int](), list[int]()

    def start(self, src: Tensor) -> TableState:
        self.starts.append(len(src))
        return super().start(src)

    def step(self, state: TableState, last_ids: Tensor) -> tuple[Tensor, TableState]:
        self.rows.append(len(last_ids))
        return super().step(state, last_ids)


def search(model: Any, config: DecodeConfig, alive: Callable[[int], bool] | None, **how: Any) -> list[list[Hypothesis]]:
    return search_all(model, SOURCES, config, CPU, alive=alive, **how)


@WAYS
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_search_ends_one_step_after_nobody_wants_it(how: dict[str, Any], steps: int) -> None:
    model = Stepwise(1)
    assert search(model, alive=lambda i: len(model.rows) < steps, **how) == [[] for _ in SOURCES]
    assert len(model.rows) == steps
    assert len(model.starts) == 1
    whole = Stepwise(1)
    search(whole, alive=lambda i: True, **how)
    assert len(whole.rows) > 50


@WAYS
@pytest.mark.parametrize("steps", [3, 4, 5, 8, 9])
def test_it_may_end_where_the_ids_fill_their_room(
    how: dict[str, Any], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.decoding.search.ROOM", 4)
    model, whole = Stepwise(1), Stepwise(1)
    assert search(model, alive=lambda i: len(model.rows) < steps, **how) == [[] for _ in SOURCES]
    found = search(whole, alive=None, **how)
    monkeypatch.undo()
    assert found == search(Stepwise(1), alive=None, **how)


@WAYS
@pytest.mark.parametrize("ends", [True, False])
def test_the_others_do_not_notice_that_one_leaves(how: dict[str, Any], ends: bool) -> None:
    want = search(Stepwise(1, ends), alive=None, **how)
    model, dropped = Stepwise(1, ends), {0, 5, 6, 23}
    found = search(model, alive=lambda i: i not in dropped or len(model.rows) < 2, **how)
    assert found == [[] if i in dropped else one for i, one in enumerate(want)]
    assert all(want)


@pytest.mark.parametrize("how", [{"config": DecodeConfig(beam_size=1)}, {"config": DecodeConfig(beam_size=4)}])
def test_the_rows_of_a_sentence_leave_at_the_next_step(how: dict[str, Any]) -> None:
    model, beam = Stepwise(1), how["config"].beam_size
    search(model, alive=lambda i: i < 6 or len(model.rows) < 3, **how)
    assert model.rows[1:5] == [24 * beam, 24 * beam, 6 * beam, 6 * beam]


@WAYS
def test_what_nobody_wants_from_the_first_is_not_begun(how: dict[str, Any]) -> None:
    want, model = search(Stepwise(1), alive=None, **how), Stepwise(1)
    found = search(model, alive=lambda i: i % 2 == 0, **how)
    assert found == [one if i % 2 == 0 else [] for i, one in enumerate(want)]
    n_rows = how.get("n_best", 1) if "sampling" in how else 1  # of several samples each has a row
    assert model.starts == [12 * n_rows]
    none = Stepwise(1)
    assert search(none, alive=lambda i: False, **how) == [[] for _ in SOURCES]
    assert none.starts == []


def test_batches_that_wait_are_dropped_and_counted() -> None:
    config, told = DecodeConfig(beam_size=2, batch_tokens=20), list[tuple[int, int]]()
    model = Stepwise(1)
    found = search(model, config, lambda i: not told, progress=lambda done, total, what: told.append((done, total)))
    assert len(model.starts) == 1
    assert sum(bool(one) for one in found) == model.starts[0]
    assert told == sorted(told)
    assert told[-1] == (24, 24)


@pytest.mark.parametrize("workers", [2, 4])
def test_any_worker_may_ask(workers: int) -> None:
    config, dropped, asked = DecodeConfig(beam_size=2, batch_tokens=20), {2, 11, 20}, set[str]()

    def alive(i: int) -> bool:
        asked.add(threading.current_thread().name)
        return i not in dropped

    want = search(TableModel(1), config, None)
    assert search(TableModel(1), config, alive, workers=workers) == [
        [] if i in dropped else one for i, one in enumerate(want)
    ]
    assert len(asked) > 1


@pytest.mark.parametrize("beam_size", [1, 3])
def test_constraints_stay_with_their_sentences(beam_size: int) -> None:
    spelling = Spelling([b"", b" ?", b"", b"", b" a", b" b", b" c"])
    rules = [Rules(spelling, prefix=(b" a", b" b", b" c")[i % 3], no_repeat_ngram=2) for i in range(len(SOURCES))]
    config, model = DecodeConfig(beam_size=beam_size, max_extra_tokens=8), Stepwise(1)
    want = search(Stepwise(1), config, None, rules=rules)
    found = search(model, config, lambda i: i not in (0, 7) or len(model.rows) < 2, rules=rules)
    assert found == [[] if i in (0, 7) else one for i, one in enumerate(want)]
    assert [one[0].ids[0] for one in want] == [4 + i % 3 for i in range(len(SOURCES))]


@pytest.mark.parametrize("how", [{}, {"sampling": Sampling(seed=5)}])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_optimised_model_drops_rows_too(how: dict[str, Any], beam_size: int) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(preset="tiny", src_vocab_size=23, tgt_vocab_size=23, dropout=0.0)).eval()
    config, n_asked = DecodeConfig(beam_size=beam_size, max_extra_tokens=8), [0] * len(SOURCES)

    def alive(i: int) -> bool:
        n_asked[i] += 1
        return i not in (1, 8, 20) or n_asked[i] < 3

    want = search(FastTransformer(model, "fp32"), config, None, **how)
    found = search(FastTransformer(model, "fp32"), config, alive, **how)
    assert [i for i, one in enumerate(found) if not one] == [1, 8, 20]
    for i, (one, other) in enumerate(zip(found, want, strict=True)):
        if i not in (1, 8, 20):
            assert [h.ids for h in one] == [h.ids for h in other]
            assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-5)
