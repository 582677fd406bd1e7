"""Heads: what is cut off is exactly one head, and everything comes back."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.config import Config
from dragoman.data import phrasebook
from dragoman.data.batching import Batch, all_batches
from dragoman.data.store import Entry, Store, build_store
from dragoman.errors import ConfigError
from dragoman.lab import heads
from dragoman.lab.experiment import Lab
from dragoman.lab.heads import SENTENCES, examine
from dragoman.lab.pruning import (
    HABITS,
    Head,
    all_heads,
    attentions,
    bootstrapped,
    habit_weights,
    habits,
    kind_of,
    sentence_losses,
    without,
)
from dragoman.lab.report import run_experiment
from dragoman.progress import Ticker
from dragoman.training.validation import validator
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.fixture(scope="module")
def batches(tiny_run: Path) -> list[Batch]:
    return list(all_batches(Store.open(tiny_run / "store/valid"), 64))


def test_the_heads_are_found_in_order(translator: Translator) -> None:
    model: Any = translator.model
    names = ["encoder.layers.0.self_attn", "decoder.layers.0.self_attn", "decoder.layers.0.cross_attn"]
    assert list(attentions(model)) == names
    assert all_heads(model) == [Head(name, i) for name in names for i in range(2)]
    assert [kind_of(name) for name in names] == ["encoder", "decoder", "cross"]


def test_without_a_head_the_others_are_what_they_were(translator: Translator) -> None:
    model: Any = translator.model
    attention = attentions(model)["encoder.layers.0.self_attn"]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    x = torch.randn(1, 4, 48)
    contexts: list[torch.Tensor] = []
    hook = attention.w_o.register_forward_pre_hook(lambda module, given: contexts.append(given[0]))
    with torch.no_grad():
        attention(x, attention.keys_values(x), None)
        hook.remove()
        context = contexts[0].clone()
        context[..., 24:] = 0  # the second of two heads, each 24 wide
        expected = attention.w_o(context)
        with without(model, [Head("encoder.layers.0.self_attn", 1)]):
            torch.testing.assert_close(attention(x, attention.keys_values(x), None), expected)

    def fail() -> None:
        with without(model, [*all_heads(model), *all_heads(model)]):
            assert not attention.w_o.weight.any()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_losses_by_sentence_add_up_to_the_validation_loss(
    translator: Translator, batches: list[Batch], tiny_run: Path
) -> None:
    model: Any = translator.model
    losses, counts = sentence_losses(model, batches)
    store = Store.open(tiny_run / "store/valid")
    found = validator(translator.config, store, translator.tgt_tokenizer, Ticker(quiet=True))(model)
    assert losses.sum() / counts.sum() == pytest.approx(found.loss, rel=1e-5)
    assert len(losses) == len(store)


def test_the_bootstrap_knows_what_cannot_vary() -> None:
    counts = np.array([3.0, 5.0, 2.0])
    assert bootstrapped(0.5 * counts, counts) == pytest.approx((0.5, 0.5))
    low, high = bootstrapped(np.array([0.0, 5.0, 0.0]), counts)
    assert low < 0.5 < high


def test_shares_are_those_counted_one_by_one() -> None:
    weights = torch.rand(2, 3, 5, 5)
    last = torch.tensor([4, 2])
    encoder, decoder, cross = (habit_weights(weights, kind, last) for kind in ("encoder", "decoder", "cross"))
    for b, h, q in np.ndindex(2, 3, 5):
        row = weights[b, h, q].tolist()

        def at(key: int, row: list[float] = row) -> float:
            return row[key] if 0 <= key < 5 else 0.0

        end = row[int(last[b])]
        assert encoder[b, h, q].tolist() == [row[q], at(q - 1), at(q + 1), row[0], end, max(row)]
        assert decoder[b, h, q].tolist() == [row[q], at(q - 1), at(q - 2), row[0], max(row)]
        assert cross[b, h, q].tolist() == [row[0], end, max(row)]


def test_habits_leave_padding_out(translator: Translator, batches: list[Batch], tiny_run: Path) -> None:
    model: Any = translator.model
    alone = list(all_batches(Store.open(tiny_run / "store/valid"), 10))  # a sentence a batch: no padding
    assert max(len(batch.src) for batch in alone) < max(len(batch.src) for batch in batches)
    one, other = habits(model, batches), habits(model, alone)
    for name, rows in one.items():
        np.testing.assert_allclose(rows, other[name], atol=1e-6)
        assert rows.shape == (2, len(HABITS[kind_of(name)]))


def test_the_experiment_examines_a_run(tiny_run: Path, tmp_path: Path) -> None:
    lab = Lab(out=tmp_path, quick=True, run=tiny_run, say=lambda text: None)
    record = run_experiment("heads", tmp_path, lab)
    numbers = record["numbers"]
    assert len(numbers["alone"]) == 6
    assert numbers["together"]["pruned"] == [0, 3, 6]
    ends = [numbers["together"][kind] for kind in ("by_importance",)] + numbers["together"]["at_random"]
    assert len({curve["loss"][0] for curve in ends}) == len({round(curve["loss"][-1], 6) for curve in ends}) == 1
    assert numbers["together"]["by_importance"]["loss"][-1] > numbers["together"]["by_importance"]["loss"][0] + 0.5
    page = html.unescape((tmp_path / "heads/index.html").read_text(encoding="utf-8"))
    assert all(re.search(title, page) for title in ("encoder's heads", "Which heads matter", "How many can go"))


def test_heads_are_examined_again_on_another_validation_text(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    lab = Lab(out=tmp_path / "lab", quick=True, run=run, say=lambda text: None)
    of_text = heads.run(lab).numbers["habits"]
    translator, data = Translator.load(run), Config.from_yaml(run / "config.yaml").data
    entry, tokenizers = Entry(phrasebook.pairs(20, seed=5)), (translator.src_tokenizer, translator.tgt_tokenizer)
    build_store(run / "store/valid", [entry], tokenizers, data, keep_text=True)
    assert heads.run(lab).numbers["habits"] != of_text
    monkeypatch.setattr(heads, "habits", None)
    heads.run(lab)  # of the same text nothing is measured again


def test_a_bundle_is_examined_on_the_embedded_corpus(tiny_run: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    examined = examine(Lab(out=tmp_path, quick=True, run=tiny_run / "bundle", say=lines.append))
    assert len(examined.store) == SENTENCES
    assert lines == [
        f"{tiny_run / 'bundle'} has no validation text: examining it on 300 sentences of the embedded corpus"
    ]
    sources, _ = examined.store.texts([0, 1])
    assert sources == [phrasebook.pair(i, seed=2, split="held_out")[0] for i in (0, 1)]


def test_a_run_of_several_target_languages_is_refused_before_it_is_measured(several_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="examines models with one target language, and the run has several"):
        examine(Lab(out=tmp_path, quick=True, run=several_run))


def test_a_bundle_of_other_languages_has_no_text_to_judge_by(several_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be a run with its validation text"):
        examine(Lab(out=tmp_path, quick=True, run=several_run / "bundle"))
