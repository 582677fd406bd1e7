"""Searching a shortlist: the whole vocabulary as one changes nothing, and a real one is the plain search masked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig
from dragoman.data.shortlist import Shortlist, learn
from dragoman.data.store import Store
from dragoman.decoding.batched_search import Shortlisted
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.ensemble import Mean
from dragoman.decoding.request import Hypothesis
from dragoman.fast.step import FastTransformer
from searching import search_all

CPU = torch.device("cpu")
Found = list[list[Hypothesis]]


class Toy(NamedTuple):
    bundle: Bundle
    fast: FastTransformer
    sources: list[list[int]]
    shortlist: Shortlist


@pytest.fixture(scope="module")
def toy(tiny_run: Path, toy_sentences: Callable[..., Any]) -> Toy:
    bundle = load_bundle(tiny_run)
    sources = bundle.src_tokenizer.encode([src for src, _ in toy_sentences(40, 5)])
    patched = pytest.MonkeyPatch()
    patched.setattr("dragoman.data.shortlist.USUAL", 5)
    shortlist = learn(Store.open(tiny_run / "store/train"), bundle.src_tokenizer, bundle.tgt_tokenizer)
    patched.undo()
    return Toy(bundle, FastTransformer(bundle.model), sources, shortlist)  # type: ignore[arg-type]


def everything(n_src: int, n_tgt: int) -> Shortlist:
    return Shortlist(np.arange(n_tgt), np.zeros(n_src + 1, np.int64), np.zeros(0, np.int64))


class MaskedState(NamedTuple):
    inner: Any
    closed: Tensor  # (R, V)

    def select(self, rows: Tensor) -> Self:
        return type(self)(self.inner.select(rows), self.closed[rows])


class Masked:
    """The plain way: the model as it is, and minus infinity for what is outside a source's shortlist."""

    def __init__(self, model: Any, shortlist: Shortlist) -> None:
        self.model, self.shortlist = model, shortlist

    def start(self, src: Tensor) -> MaskedState:
        closed = torch.full((len(src), self.model.config.tgt_vocab_size), -torch.inf)
        for row, ids in zip(closed, src.tolist(), strict=True):
            row[torch.from_numpy(self.shortlist.of([i for i in ids if i > 3]))] = 0.0
        return MaskedState(self.model.start(src), closed)

    def step(self, state: MaskedState, last_ids: Tensor) -> tuple[Tensor, MaskedState]:
        logits, inner = self.model.step(state.inner, last_ids)
        return logits + state.closed, MaskedState(inner, state.closed)


def alike(one: Found, other: Found) -> None:
    assert [[h.ids for h in found] for found in one] == [[h.ids for h in found] for found in other]
    for found, twins in zip(one, other, strict=True):
        for hypothesis, twin in zip(found, twins, strict=True):
            assert hypothesis.log_prob == pytest.approx(twin.log_prob, abs=1e-4)


BEAMS = [DecodeConfig(beam_size=beam, batch_tokens=150, max_extra_tokens=6) for beam in (1, 4)]


@pytest.mark.parametrize("config", BEAMS, ids=["greedy", "beam"])
def test_the_whole_vocabulary_as_a_shortlist_changes_nothing(toy: Toy, config: DecodeConfig) -> None:
    full = everything(toy.bundle.src_tokenizer.vocab_size, toy.bundle.tgt_tokenizer.vocab_size)
    want = search_all(toy.fast, toy.sources, config, CPU, config.beam_size)
    alike(search_all(Shortlisted(toy.fast, full), toy.sources, config, CPU, config.beam_size), want)


@pytest.mark.parametrize("config", BEAMS, ids=["greedy", "beam"])
def test_it_is_the_plain_search_masked(toy: Toy, config: DecodeConfig) -> None:
    want = search_all(Masked(toy.bundle.model, toy.shortlist), toy.sources, config, CPU)
    found = search_all(Shortlisted(toy.fast, toy.shortlist), toy.sources, config, CPU)
    alike(found, want)
    free = search_all(toy.fast, toy.sources, config, CPU)
    assert found != free  # probabilities at least: the others of the vocabulary have none
    for ids, hypotheses in zip(toy.sources, found, strict=True):
        assert set(hypotheses[0].ids) <= set(toy.shortlist.of(ids).tolist())


@pytest.mark.parametrize("config", BEAMS, ids=["greedy", "beam"])
def test_neighbours_do_not_change_a_translation(toy: Toy, config: DecodeConfig) -> None:
    together = search_all(Shortlisted(toy.fast, toy.shortlist), toy.sources, config, CPU, workers=2)
    alone = [search_all(Shortlisted(toy.fast, toy.shortlist), [ids], config, CPU)[0] for ids in toy.sources]
    alike(together, alone)


def test_an_ensemble_is_narrowed_too(toy: Toy) -> None:
    both = Mean((toy.fast, toy.fast))
    want = search_all(Shortlisted(toy.fast, toy.shortlist), toy.sources, BEAMS[1], CPU)
    alike(search_all(Shortlisted(both, toy.shortlist), toy.sources, BEAMS[1], CPU), want)


def test_constraints_have_the_whole_vocabulary(toy: Toy) -> None:
    spelling = Spelling(toy.bundle.tgt_tokenizer.spelled)
    word = tuple(toy.bundle.tgt_tokenizer.encode(["xyz"])[0])
    none, forced = Rules(spelling), Rules(spelling, ids=word)
    nothing = Shortlist(
        np.arange(5), np.zeros(toy.bundle.src_tokenizer.vocab_size + 1, np.int64), np.zeros(0, np.int64)
    )
    rules = [forced, none, forced]
    found = search_all(Shortlisted(toy.fast, nothing), toy.sources[:3], BEAMS[0], CPU, rules=rules)
    want = search_all(toy.fast, toy.sources[:3], BEAMS[0], CPU, rules=rules)
    assert [found[0], found[2]] == [want[0], want[2]]
    assert tuple(found[0][0].ids[: len(word)]) == word
    assert set(found[1][0].ids) <= {1, 4}
