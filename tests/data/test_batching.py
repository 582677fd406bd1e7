"""Batches: every pair once, the budget kept, an order that can be taken up again."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import os
import random
import shutil
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dragoman.config import DataConfig, NoiseConfig, TokenizerConfig
from dragoman.data import batching, order, regularisation
from dragoman.data.batching import Batch, BatchStream, all_batches, collate
from dragoman.data.noise import noised
from dragoman.data.order import epoch_batches
from dragoman.data.regularisation import Regularisation
from dragoman.data.store import Entry, Store, build_store
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, ConfigError
from limits import cpu_limit, wait_until

TOKENIZER = Tokenizer.learn(
    ["a quick brown fox jumps over the lazy dog and runs away"] * 5,
    TokenizerConfig(vocab_size=300, normalisation="none"),
)
BUDGET = 97
NOISE = NoiseConfig(case=0.2, punctuation=0.2, typos=0.2, one_word=0.1, inserts=0.1)
LEXICON = {"fox": "fox", "lazy": "lazy"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    words = ["a", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "runs", "away"]
    pairs = [(" ".join(words[: 1 + i % 11]), " ".join(words[i % 7 : 8 + i % 5])) for i in range(101)]
    folder = tmp_path_factory.mktemp("data") / "store"
    config = DataConfig.model_validate({"train": {"src": "s", "tgt": "t"}})
    build_store(folder, [Entry(pairs)], (TOKENIZER, TOKENIZER), config, keep_text=True)
    return Store.open(folder)


def lengths(n: int, seed: int = 0) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Lengths as in real text: log-normal, both sides alike."""
    rng = np.random.default_rng(seed)
    src = np.clip(rng.lognormal(2.8, 0.6, n), 1, 250).astype(np.int32)
    return src, np.clip(src * rng.lognormal(0, 0.25, n) + 1, 1, 250).astype(np.int32)


def same(one: Batch, other: Batch) -> bool:
    return one.n_tgt_tokens == other.n_tgt_tokens and all(
        torch.equal(getattr(one, name), getattr(other, name)) for name in ("src", "tgt_in", "tgt_out", "indices")
    )


def assert_same(one: list[Batch], other: list[Batch]) -> None:
    assert len(one) == len(other)
    assert all(map(same, one, other))


def test_collate_shifts_and_pads() -> None:
    batch = collate([[5, 6, 7], [8]], [np.array([9], np.uint16), np.array([10, 11], np.uint16)], [4, 2])
    assert batch.src.tolist() == [[5, 6, 7, 3], [8, 3, 0, 0]]
    assert batch.tgt_in.tolist() == [[2, 9, 0], [2, 10, 11]]
    assert batch.tgt_out.tolist() == [[9, 3, 0], [10, 11, 3]]
    assert batch.indices.tolist() == [4, 2]
    assert batch.n_tgt_tokens == 5 == int((batch.tgt_out != 0).sum())
    assert {t.dtype for t in (batch.src, batch.tgt_in, batch.tgt_out, batch.indices)} == {torch.int64}


def test_collate_takes_empty_sides() -> None:
    batch = collate([[], []], [[], [5]], [0, 1])
    assert (batch.src.tolist(), batch.tgt_in.tolist(), batch.tgt_out.tolist()) == (
        [[3], [3]],
        [[2, 0], [2, 5]],
        [[3, 0], [5, 3]],
    )


def test_a_batch_moves_to_a_device() -> None:
    batch = collate([[5]], [[6, 7]], [0]).to("meta")
    assert {t.device.type for t in (batch.src, batch.tgt_in, batch.tgt_out, batch.indices)} == {"meta"}
    assert batch.n_tgt_tokens == 3


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60),
    st.integers(31, 200),
    st.integers(0, 2**63 - 1),
    st.integers(0, 1000),
    st.integers(1, 70),
)
def test_every_pair_comes_once_and_the_budget_is_kept(
    pairs: list[tuple[int, int]], batch_tokens: int, seed: int, epoch: int, pool: int
) -> None:
    src, tgt = np.array(pairs, np.int32).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "POOL_PAIRS", pool)
        batches = list(epoch_batches(src, tgt, batch_tokens, seed, epoch))
        again = list(epoch_batches(src, tgt, batch_tokens, seed, epoch))
    assert sorted(itertools.chain(*batches)) == list(range(len(pairs)))
    for indices in batches:
        longest = 1 + max(src[indices].max(), tgt[indices].max())
        assert len(indices) >= 1
        assert len(indices) * longest <= batch_tokens
    assert all(map(np.array_equal, batches, again))


def test_the_order_is_another_in_each_epoch_and_for_each_seed() -> None:
    src, tgt = lengths(2000)
    orders = {tuple(np.concatenate(list(epoch_batches(src, tgt, 999, s, e)))) for s in (1, 2) for e in (0, 1, 2)}
    assert len(orders) == 6


def test_batches_are_mixed_again_and_not_only_shuffled() -> None:
    src, tgt = lengths(2000)
    contents = [{frozenset(b.tolist()) for b in epoch_batches(src, tgt, 999, 1, epoch)} for epoch in (0, 1)]
    assert len(contents[0]) > 40
    assert len(contents[0] & contents[1]) < len(contents[0]) / 4


def test_the_order_never_changes_between_versions() -> None:
    # a change here means that no run can be resumed across it
    assert order.shuffled(10, np.random.PCG64((1, 2))).tolist() == [5, 6, 9, 3, 2, 1, 0, 8, 4, 7]
    src, tgt = np.array([3, 1, 4, 1, 5, 9, 2, 6]), np.array([2, 7, 1, 8, 2, 8, 1, 8])
    assert [b.tolist() for b in epoch_batches(src, tgt, 20, 1, 2)] == [[6], [4, 2, 0], [7, 1], [5, 3]]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 64, 65, 1000, 1024, 1025])
@pytest.mark.parametrize("chunk", [64, 2**16])
def test_shuffling_in_place_equals_sorting_pairs(monkeypatch: pytest.MonkeyPatch, n: int, chunk: int) -> None:
    monkeypatch.setattr(order, "CHUNK_NUMBERS", chunk)
    n_bits = max(n - 1, 1).bit_length()
    drawn = np.random.PCG64((3, n)).random_raw(n).tolist()
    wanted = [number for _, number in sorted((raw >> n_bits, number) for number, raw in enumerate(drawn))]
    assert order.shuffled(n, np.random.PCG64((3, n))).tolist() == wanted


def test_shuffling_is_fair() -> None:
    n, rounds = 5, 20_000
    bits = np.random.PCG64(0)
    places = np.zeros((n, n))
    for _ in range(rounds):
        places[np.arange(n), order.shuffled(n, bits)] += 1
    np.testing.assert_allclose(places / rounds, 1 / n, atol=0.015)


def test_little_is_spent_on_padding() -> None:
    src, tgt = lengths(200_000)
    batches = list(epoch_batches(src, tgt, 4096, 1, 0))
    cells_src = sum(len(b) * int(src[b].max() + 1) for b in batches)
    cells_tgt = sum(len(b) * int(tgt[b].max() + 1) for b in batches)
    assert (src.sum() + len(src)) / cells_src > 0.96
    assert (tgt.sum() + len(tgt)) / cells_tgt > 0.97
    assert np.mean([len(b) * (1 + max(src[b].max(), tgt[b].max())) for b in batches]) > 0.95 * 4096


def lines_of_python(function: Callable[[], object]) -> int:
    """Lines of the module that run: in NumPy's place they would be as many as the pairs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename == batching.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def test_a_million_pairs_are_put_in_order_by_numpy() -> None:
    src, tgt = lengths(1_000_000)
    found: list[int] = []
    n_lines = lines_of_python(lambda: found.extend(map(len, epoch_batches(src, tgt, 4096, 1, 0))))
    assert sum(found) == 1_000_000
    assert n_lines < 30 * len(found) < 500_000


def test_the_first_batch_of_ten_million_pairs_takes_200_mib(store: Store, tmp_path: Path) -> None:
    n, length = 10_000_000, 12
    folder = tmp_path / "s"
    shutil.copytree(store.folder, folder)
    about = json.loads((folder / "store.json").read_text())
    for side in ("src", "tgt"):
        about[side]["tokens"] = n * length
        np.arange(0, (n + 1) * length, length, dtype="<i8").tofile(folder / f"{side}.offsets")
        os.truncate(folder / f"{side}.ids", 2 * n * length)  # sparse: all zeros
    (folder / "store.json").write_text(json.dumps({**about, "pairs": n, "corpora": [{"pairs": n}], "text_bytes": None}))
    tracemalloc.start()
    try:
        with cpu_limit(), BatchStream(Store.open(folder), 4096, 1) as stream:
            rows = len(next(stream).src)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    shutil.rmtree(folder)
    assert 0.9 * 4096 < rows * (length + 1) <= 4096
    assert peak < 200 * 2**20


def test_a_pair_longer_than_a_batch_is_refused_by_name(store: Store) -> None:
    src, tgt = np.array([3, 40, 5]), np.array([3, 9, 5])
    with pytest.raises(ConfigError, match=r"pair 1 .* 40 source and 9 target .* batch_tokens = 40\. .* at least 41"):
        next(epoch_batches(src, tgt, 40, 1, 0))
    assert len(list(epoch_batches(src, tgt, 41, 1, 0))) == 2
    with pytest.raises(ConfigError, match="batch_tokens = 5"):
        BatchStream(store, 5, 1)


@pytest.mark.parametrize("ahead", [0, 3])
@pytest.mark.parametrize("sampling", [0.0, 0.3])
@pytest.mark.parametrize("noise", [NoiseConfig(), NOISE])
def test_resuming_at_any_step_equals_going_on(
    store: Store, monkeypatch: pytest.MonkeyPatch, ahead: int, sampling: float, noise: NoiseConfig
) -> None:
    def stream() -> BatchStream:
        anew = Regularisation(sampling=sampling, noise=noise, lexicon=LEXICON, tokenizers=(TOKENIZER, TOKENIZER))
        return BatchStream(store, BUDGET, 7, regularisation=anew, ahead=ahead)

    monkeypatch.setattr(regularisation, "RESAMPLED_PAIRS", 40)
    n = 2 * len(list(epoch_batches(store.src_lengths(), store.tgt_lengths(), BUDGET, 7, 0))) + 5
    states, batches = [], []
    with stream() as whole:
        for _ in range(n):
            states.append(json.loads(json.dumps(whole.state_dict())))
            batches.append(next(whole))
    for step in (*range(0, n, 7), n - 1):
        with stream() as resumed:
            resumed.load_state_dict(states[step])
            assert resumed.state_dict() == states[step]
            assert_same(list(itertools.islice(resumed, n - step)), batches[step:])


def test_going_back_in_a_running_stream_gives_the_same_batches(store: Store) -> None:
    with BatchStream(store, BUDGET, 7) as stream:
        next(stream)
        state = stream.state_dict()
        first = [next(stream) for _ in range(9)]
        stream.load_state_dict(state)
        assert_same([next(stream) for _ in range(9)], first)


@settings(max_examples=25, deadline=None)
@given(epochs=st.integers(1, 3), seed=st.integers(0, 2**63 - 1))
def test_each_epoch_holds_every_pair_once(store: Store, epochs: int, seed: int) -> None:
    with BatchStream(store, BUDGET, seed, max_epochs=epochs, ahead=0) as stream:
        seen: dict[int, list[int]] = {}
        for batch in stream:
            seen.setdefault(stream.epoch, []).extend(batch.indices.tolist())
        assert [sorted(seen[epoch]) for epoch in range(epochs)] == [list(range(101))] * epochs
        assert stream.epochs_done == epochs
        with pytest.raises(StopIteration):
            next(stream)


def test_a_batch_holds_the_ids_of_its_pairs(store: Store) -> None:
    with BatchStream(store, BUDGET, 1) as stream:
        batch = next(stream)
    src_ids, tgt_ids = zip(*map(store.pair, batch.indices.tolist()), strict=True)
    assert same(batch, collate(src_ids, tgt_ids, batch.indices.tolist()))


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(regularisation, "RESAMPLED_PAIRS", 40)
    return 40


def texts_by_pair(batches: Iterable[Batch], rows: bool = False) -> dict[int, Any]:
    """Of each pair its text, or its ids, on both sides."""
    found: dict[int, Any] = {}
    for batch in batches:
        sides = [side.tolist() if rows else TOKENIZER.decode(side.tolist()) for side in (batch.src, batch.tgt_out)]
        found |= dict(zip(batch.indices.tolist(), zip(*sides, strict=True), strict=True))
    return found


def test_sampled_batches_hold_the_same_text_cut_otherwise(store: Store, small_pools: int) -> None:
    plain = list(BatchStream(store, BUDGET, 1, max_epochs=1, ahead=0))
    sampled = list(noisy(store, noise=NoiseConfig(), max_epochs=1, sampling=0.5))
    assert texts_by_pair(sampled) == texts_by_pair(plain)
    one, other = texts_by_pair(plain, rows=True), texts_by_pair(sampled, rows=True)
    assert sum(one[i] != other[i] for i in range(101)) > 50
    indices = [i for batch in sampled for i in batch.indices.tolist()]
    shuffled = list(order.shuffled(101, np.random.PCG64((1, 0))))
    for start in (0, small_pools, 2 * small_pools):
        here = slice(start, start + small_pools)
        assert sorted(indices[here]) == sorted(shuffled[here])


@pytest.mark.parametrize("changes", [{"sampling": 0.5}, {"noise": NoiseConfig(case=0.5)}])
def test_resampled_text_keeps_the_budget_and_lies_beside_what_is_as_long(store: Store, changes: dict[str, Any]) -> None:
    cells = tokens = 0
    for batch in noisy(store, max_epochs=3, **{"noise": NoiseConfig()} | changes):
        assert max(batch.src.numel(), batch.tgt_in.numel()) <= BUDGET
        cells += batch.src.numel()
        tokens += int((batch.src != 0).sum())
    assert tokens > 0.7 * cells  # (0.6 where batches are planned by the plain lengths)


@pytest.mark.parametrize(
    "changes",
    [{}, {"sampling": 0.5}, {"noise": NoiseConfig(inserts=1.0)}, {"sampling": 0.5, "noise": NoiseConfig(inserts=1.0)}],
)
def test_the_batches_of_an_epoch_are_counted_as_they_will_be_cut(
    store: Store, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resampled text is longer than that of the store; an epoch of more than one pool is estimated."""

    def counts() -> tuple[int, int]:
        anew = Regularisation(tokenizers=(TOKENIZER, TOKENIZER), lexicon=LEXICON, **changes)
        with BatchStream(store, BUDGET, 1, regularisation=anew, max_epochs=1, ahead=0) as stream:
            return batching.batches_an_epoch(store, BUDGET, 1, anew), sum(1 for _ in stream)

    counted, cut = counts()
    assert counted == cut
    plain = batching.batches_an_epoch(store, BUDGET, 1)
    assert (cut > 1.1 * plain) == bool(changes)
    monkeypatch.setattr(regularisation, "RESAMPLED_PAIRS", 40)
    counted, cut = counts()
    assert counted == pytest.approx(cut, rel=0.1)  # of pools of 40 pairs; of real ones it is nearer


def noisy(store: Store, **changes: Any) -> BatchStream:
    arguments = {"ahead": 0, "noise": NOISE, "lexicon": LEXICON, "tokenizers": (TOKENIZER, TOKENIZER)} | changes
    names = [each.name for each in dataclasses.fields(Regularisation) if each.name in arguments]
    anew = Regularisation(**{name: arguments.pop(name) for name in names})
    return BatchStream(store, BUDGET, 1, regularisation=anew, **arguments)


def decoded(batch: Batch) -> list[tuple[str, str]]:
    return list(zip(TOKENIZER.decode(batch.src.tolist()), TOKENIZER.decode(batch.tgt_out.tolist()), strict=True))


@pytest.mark.parametrize("sampling", [0.0, 0.4])
def test_noisy_batches_hold_the_text_as_the_plain_function_noises_it(
    store: Store, small_pools: int, sampling: float
) -> None:
    stream, touched = noisy(store, max_epochs=2, sampling=sampling), 0
    found = [{}, {}]
    for batch in stream:
        found[stream.epoch] |= dict(zip(batch.indices.tolist(), decoded(batch), strict=True))
        if not sampling:
            sources = [src for src, _ in decoded(batch)]
            assert [row[row > 3].tolist() for row in batch.src] == TOKENIZER.encode(sources)
    for epoch, texts in enumerate(found):
        shuffled = order.shuffled(101, np.random.PCG64((1, epoch)))
        for start in range(0, 101, small_pools):
            chance = random.Random(int(np.random.SeedSequence((1, epoch, start)).generate_state(4)[2]))
            pool = shuffled[start : start + small_pools].tolist()
            plain = list(zip(*store.texts(pool), strict=True))
            wanted = [noised(*pair, NOISE, LEXICON, chance) for pair in plain]
            assert [texts[i] for i in pool] == wanted
            touched += sum(one != other for one, other in zip(plain, wanted, strict=True))
    assert 0.4 < touched / 202 < 0.75


def test_noise_is_sampled_again_in_each_epoch(store: Store) -> None:
    stream = noisy(store, max_epochs=2)
    epochs: list[dict[int, tuple[str, str]]] = [{}, {}]
    for batch in stream:
        epochs[stream.epoch] |= dict(zip(batch.indices.tolist(), decoded(batch), strict=True))
    assert sum(epochs[0][i] != epochs[1][i] for i in range(101)) > 40


def test_ranks_share_one_noise(store: Store) -> None:
    wanted = list(itertools.islice(noisy(store), 30))
    ranks = [noisy(store, rank=rank, world_size=2) for rank in (0, 1)]
    assert_same([next(stream) for _ in range(15) for stream in ranks], wanted)


def test_pairs_that_grow_too_long_come_as_they_are(store: Store) -> None:
    most = int(store.src_lengths().max())
    capitals = NoiseConfig(case=1.0)
    plain, grown = 0, 0
    for batch in noisy(store, max_epochs=1, noise=capitals, max_tokens=most):
        assert batch.src.shape[1] <= most + 1
        texts = zip(*store.texts(batch.indices.tolist()), strict=True)
        for (src, tgt), (plain_src, plain_tgt) in zip(decoded(batch), texts, strict=True):
            assert tgt == plain_tgt
            plain += src == plain_src
    for batch in noisy(store, max_epochs=1, noise=capitals):
        grown += int((batch.src > 3).sum(1).max()) > most
    assert plain > 5
    assert grown > 0


def test_another_noise_is_another_run(store: Store) -> None:
    stream = noisy(store)
    for other in (noisy(store, noise=NoiseConfig(case=0.3)), noisy(store, lexicon={})):
        with pytest.raises(BundleError, match="was taken with noise = "):
            other.load_state_dict(stream.state_dict())
    with pytest.raises(BundleError, match="was taken with anew = None"):
        stream.load_state_dict(BatchStream(store, BUDGET, 1, ahead=0).state_dict())


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_the_ranks_share_one_order(store: Store, world_size: int) -> None:
    with BatchStream(store, BUDGET, 1, ahead=0) as alone:
        wanted = [next(alone) for _ in range(60)]
    ranks = [BatchStream(store, BUDGET, 1, rank=r, world_size=world_size, ahead=0) for r in range(world_size)]
    got = [next(stream) for _ in range(60 // world_size) for stream in ranks]
    assert_same(got, wanted)
    assert all(stream.state_dict() == ranks[0].state_dict() for stream in ranks)


def test_a_run_resumes_with_another_number_of_ranks(store: Store) -> None:
    with BatchStream(store, BUDGET, 1, ahead=0) as alone:
        wanted = [next(alone) for _ in range(40)]
    ranks = [BatchStream(store, BUDGET, 1, rank=r, world_size=3, ahead=0) for r in range(3)]
    got = [next(stream) for _ in range(9) for stream in ranks]
    with BatchStream(store, BUDGET, 1) as alone:
        alone.load_state_dict(ranks[2].state_dict())
        got += [next(alone) for _ in range(13)]
    assert_same(got, wanted)


def test_all_ranks_end_together_and_say_what_is_left_out(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    n = len(list(epoch_batches(store.src_lengths(), store.tgt_lengths(), BUDGET, 1, 0)))
    world_size = next(w for w in (2, 3, 4, 5, 7) if n % w)
    counts = [
        len(list(BatchStream(store, BUDGET, 1, max_epochs=1, rank=r, world_size=world_size, ahead=0)))
        for r in range(world_size)
    ]
    assert counts == [n // world_size] * world_size
    assert f"the last {n % world_size} batches are left out" in caplog.text


@pytest.mark.parametrize("change", [{"seed": 2}, {"batch_tokens": 98}, {"corpus": "another"}])
def test_a_place_in_another_order_is_refused(store: Store, change: dict[str, object]) -> None:
    stream = BatchStream(store, BUDGET, 1)
    with pytest.raises(BundleError, match=f"was taken with {next(iter(change))} = "):
        stream.load_state_dict({**stream.state_dict(), **change})


@pytest.mark.parametrize("change", [{"epoch": -1}, {"position": "3"}, {"position": None}, {"pairs": 0.5}])
def test_a_damaged_place_is_refused(store: Store, change: dict[str, object]) -> None:
    stream = BatchStream(store, BUDGET, 1)
    with pytest.raises(BundleError, match="is damaged"):
        stream.load_state_dict({**stream.state_dict(), **change})


def test_arguments_that_do_not_fit_are_refused(store: Store) -> None:
    with pytest.raises(ConfigError, match="rank = 2"):
        BatchStream(store, BUDGET, 1, rank=2, world_size=2)
    needing_text: list[dict[str, Any]] = [{"sampling": 0.1}, {"noise": NOISE}]
    for arguments in needing_text:
        with pytest.raises(ConfigError, match="both tokenizers"):
            BatchStream(store, BUDGET, 1, regularisation=Regularisation(**arguments))
    other = Tokenizer.learn(["something else"] * 3, TokenizerConfig(vocab_size=275))
    with pytest.raises(ConfigError, match="that the store was built with"):
        noisy(store, sampling=0.1, tokenizers=(TOKENIZER, other))


def threads() -> int:
    return sum(thread.name == "dragoman-batches" for thread in threading.enumerate())


def test_the_thread_ends_when_the_stream_is_closed_used_up_or_forgotten(store: Store) -> None:
    assert threads() == 0
    with BatchStream(store, BUDGET, 1) as stream:
        next(stream)
        assert threads() == 1
    assert threads() == 0
    assert next(stream) is not None  # and a closed stream can go on
    del stream
    gc.collect()
    used = BatchStream(store, BUDGET, 1, max_epochs=1)
    list(used)
    wait_until(lambda: threads() == 0)


def test_an_error_in_the_thread_is_raised_where_batches_are_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, calls = batching.stored_batch, itertools.count()

    def fails_later(*arguments: object) -> Batch:
        if next(calls) == 3:
            raise OSError("disk gone")
        return plain(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(batching, "stored_batch", fails_later)
    with BatchStream(store, BUDGET, 1, ahead=2) as stream:
        for _ in range(3):
            next(stream)
        for _ in range(2):
            with pytest.raises(OSError, match="disk gone"):
                next(stream)


def test_batches_are_made_ahead_but_not_too_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, made = batching.stored_batch, itertools.count()
    n = 0

    def counted(*arguments: object) -> Batch:
        nonlocal n
        n = next(made) + 1
        return plain(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(batching, "stored_batch", counted)
    with BatchStream(store, BUDGET, 1, ahead=3) as stream:
        next(stream)
        wait_until(lambda: n >= 5)
        time.sleep(0.3)  # in which there would be more
        assert n == 5  # one handed out, three waiting, one in the thread's hands
        assert stream.state_dict()["position"] == 1


def test_validation_batches_hold_every_pair_once_in_a_fixed_order(store: Store) -> None:
    one, other = list(all_batches(store, BUDGET)), list(all_batches(store, BUDGET))
    assert_same(one, other)
    assert sorted(i for batch in one for i in batch.indices.tolist()) == list(range(101))


def test_the_tokenizer_of_the_tests_covers_its_words(tmp_path: Path) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(["a quick fox"])) == ["a quick fox"]
