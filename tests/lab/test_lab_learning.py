"""The experiments grow, induction and reach: their models, their tasks, and what their verdicts make of numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.data.batching import Batch
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.lab import grow, induction, reach
from dragoman.lab.copying import COPIERS, Copier, CopySizes, by_distance, gradients, marked
from dragoman.lab.experiment import Lab
from dragoman.lab.grow import FULL, PARTS, Partial, ladder, mirror, partial_model
from dragoman.lab.letters import FIRST
from dragoman.lab.phrases import Phrases, batch, mean_loss
from dragoman.lab.pruning import Head
from dragoman.lab.repeats import Text, doubled, head_scores, own_heads, repeat_losses, rises
from dragoman.lab.runs import Interval, all_hold, holds, within
from dragoman.lab.similarity import SIMILARITIES, ComparingAttention, comparing
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.transformer import Transformer

PHRASES = Phrases.make(n_train=40, n_test=6, longest=6)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_quick_run_of_each_makes_all_its_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, n_tables in ((grow, 2), (induction, 2), (reach, 4)):
        for draw in ("bars", "curves"):  # docs/lab is drawn in another test
            monkeypatch.setattr(module, draw, lambda *_, **__: None)
        made = module.run(Lab(tmp_path, quick=True, say=lambda _: None))
        assert sum(section.table is not None for section in made.sections) == n_tables
        assert len(made.verdict) >= 6


# --- sentences --------------------------------------------------------------------------------------------------------


def test_batches_have_all_sentences_and_test_sentences_are_short() -> None:
    pairs = [next(batches) for batches in [PHRASES.endless(10, seed=1)] for _ in range(4)]
    texts = sorted(text for pair in pairs for text in PHRASES.texts(pair.tgt_out.tolist()))
    assert texts == sorted(PHRASES.texts(PHRASES.train[1]))
    assert max(map(len, PHRASES.test[0])) <= 6
    pair = batch([[7]], [[8, 9]])
    assert [side.tolist() for side in pair] == [[[7, EOS_ID]], [[BOS_ID, 8, 9]], [[8, 9, EOS_ID]]]


class Oracle(torch.nn.Module):
    """A model that writes the references."""

    def start(self, src: Tensor) -> int:
        return 0

    def step(self, state: int, last: Tensor) -> tuple[Tensor, int]:
        ids = PHRASES.test_batch().tgt_out
        at = ids[:, state] if state < ids.size(1) else torch.full((len(ids),), EOS_ID)
        return torch.nn.functional.one_hot(at, FIRST + 2000).double(), state + 1


def test_the_references_themselves_have_a_bleu_of_100() -> None:
    assert PHRASES.bleu(Oracle()) == pytest.approx(100)


# --- grow -------------------------------------------------------------------------------------------------------------


def test_with_all_parts_it_is_the_ordinary_model() -> None:
    ours = partial_model(PHRASES, PARTS, seed=1).eval()
    plain: Any = Transformer(ours.config).eval()
    plain.load_state_dict(ours.state_dict())
    pairs = PHRASES.test_batch()
    torch.testing.assert_close(ours(pairs.src, pairs.tgt_in), plain(pairs.src, pairs.tgt_in))


def predictions(parts: tuple[str, ...], src: Tensor, tgt_in: Tensor) -> Tensor:
    logits: Tensor = partial_model(PHRASES, parts, seed=1).eval()(src, tgt_in)
    return logits


def test_a_mean_of_the_source_knows_neither_order_nor_what_is_written() -> None:
    src, other = torch.tensor([[5, 6, 7, EOS_ID]]), torch.tensor([[7, 5, EOS_ID, 6]])
    first, second = torch.tensor([[BOS_ID, 8, 9]]), torch.tensor([[BOS_ID, 9, 10]])
    mean = predictions((), src, first)
    for again in (predictions((), other, first), predictions((), src, second), mean[:, [2, 0, 1]]):
        torch.testing.assert_close(again, mean)
    for parts in (PARTS[:3], PARTS[:5]):  # with positions, and with residuals
        assert not torch.allclose(predictions(parts, other, first), predictions(parts, src, first))
    assert not torch.allclose(predictions(PARTS[:5], src, second), predictions(PARTS[:5], src, first))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_missing_has_no_gradient(part: str) -> None:
    model = Partial(PHRASES.config(n_heads=4, n_encoder_layers=1, n_decoder_layers=1), mirror()[part])
    pairs = PHRASES.test_batch()
    model(pairs.src, pairs.tgt_in).sum().backward()
    unused = {name.split(".")[-2] for name, weight in model.named_parameters() if weight.grad is None}
    expected = {
        "weights": {"w_q", "w_k"}, "feed-forward": {"w_1", "w_2"}, "norm": {"norm1", "norm2", "norm3"},
    }  # fmt: skip
    assert unused >= expected.get(part, set())
    assert ladder()[FULL] == PARTS


def row(loss: float, seed: int, rate: float = grow.RATE) -> dict[str, Any]:
    return {"loss": loss, "seed": seed, "rate": rate}


def test_the_verdict_on_parts_is_that_of_the_losses() -> None:
    losses = {"mean": 5.0, "weights": 4.5, "heads": 4.4, "positions": 3.0, "feed-forward": 2.95, "residuals": 1.5}
    losses |= {"norm": 1.3, "second layer": 1.2}
    dear = {"weights": 4.0, "positions": 3.0, "residuals": 2.5, "heads": 1.5, "feed-forward": 1.45, "norm": 1.4}
    numbers = {
        "ladder": {name: [row(loss + 0.01 * seed, seed) for seed in (1, 2, 3)] for name, loss in losses.items()},
        "mirror": {name: [row(loss + 0.01 * seed, seed) for seed in (1, 2, 3)] for name, loss in dear.items()},
    }
    assert [claim.holds for claim in grow.verdict(numbers)] == [True, False, True, True, True, False]
    assert grow.gains(numbers)["positions"].mean == pytest.approx(1.4)
    assert grow.costs(numbers)["weights"].mean == pytest.approx(2.7)


# --- induction --------------------------------------------------------------------------------------------------------


def test_what_followed_last_time_is_what_comes_next() -> None:
    text = induction.sequences(20, induction.Sizes(), torch.Generator().manual_seed(1))
    rows, places = (text.after >= 0).nonzero(as_tuple=True)
    assert len(rows) > 200
    keys = text.after[rows, places]
    assert (keys < places).all()
    assert (text.tgt_in[rows, keys] == text.tgt_out[rows, places]).all()
    assert (text.tgt_in[rows, keys - 1] == text.tgt_in[rows, places]).all()


def test_a_sentence_written_twice_names_what_followed() -> None:
    src, tgt = torch.tensor([[5, 6, EOS_ID, PAD_ID]]), torch.tensor([[7, 8, 9, EOS_ID, PAD_ID]])
    pair = Batch(src, torch.zeros_like(tgt), tgt, torch.zeros(1), 4)
    (text,) = doubled([pair], 3)
    assert text.src is not None
    assert text.src.tolist() == [[5, 6, 5, 6, EOS_ID]]
    assert text.tgt_in.tolist() == [[BOS_ID, 7, 8, 9, 7, 8, 9]]
    assert text.tgt_out.tolist() == [[7, 8, 9, 7, 8, 9, EOS_ID]]
    assert text.after.tolist() == [[-1, -1, -1, -1, 2, 3, -1]]


class Looking(MultiHeadAttention):
    """Attention whose heads look at the word before, and at the third key."""

    def forward(self, x: Tensor, keys_values: Any, mask: Any, angles: Any = None, record: Any = None,
                name: str = "") -> Tensor:  # fmt: skip
        n = x.size(1)
        before = torch.eye(n).roll(-1, dims=1)
        third = torch.zeros(n, n)
        third[:, 2] = 1
        record(name, torch.stack((before, third))[None].expand(x.size(0), 2, n, n))
        return x


def test_scores_are_the_weights_at_the_two_keys() -> None:
    model = induction.fresh(1, induction.Sizes(positions="sinusoidal"), 1)
    layer: Any = model.decoder.layers[0]
    layer.self_attn = Looking(model.config.model_copy(update={"n_heads": 2}))
    tgt_in, tgt_out = torch.tensor([[BOS_ID, 5, 6, 7, 5, 6]]), torch.tensor([[5, 6, 7, 5, 6, 7]])
    text = Text(None, tgt_in, tgt_out, torch.tensor([[-1, -1, -1, -1, 2, 3]]))
    first, second = head_scores(model, text)["decoder.layers.0.self_attn"]
    assert first == {"previous": 1.0, "induction": 0.0}
    assert second == {"previous": 0.0, "induction": 0.5}


def test_losses_are_told_apart_and_heads_are_cut_off_one_by_one() -> None:
    sizes = induction.Sizes()
    model = induction.fresh(2, sizes, 1)
    text = induction.sequences(4, sizes, torch.Generator().manual_seed(1))
    losses, whole = repeat_losses(model, text), mean_loss_of(model, text)
    share = (text.after >= 0).double().mean().item()
    assert share * losses["repeated"] + (1 - share) * losses["new"] == pytest.approx(whole, rel=1e-5)
    rows = rises(model, text)
    assert [Head(row["attention"], row["number"]) for row in rows] == own_heads(model)
    assert len(rows) == 8
    assert repeat_losses(model, text) == losses  # all heads are there again


@torch.no_grad()
def mean_loss_of(model: Any, text: Text) -> float:
    logits = model(None, text.tgt_in)
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), text.tgt_out.flatten()))


# --- reach ------------------------------------------------------------------------------------------------------------


def test_the_marked_word_is_so_far_from_the_end() -> None:
    distances = torch.tensor([1, 4, 9])
    ids, words = marked(distances, 10, torch.Generator().manual_seed(1))
    for of_row, word, distance in zip(ids.tolist(), words.tolist(), distances.tolist(), strict=True):
        assert [i for i, word_id in enumerate(of_row) if word_id >= 8] == [9 - distance]
        assert of_row[9 - distance] == word + 8


@pytest.mark.parametrize("kind", COPIERS)
def test_gradients_reach_as_far_as_the_layer_does(kind: str) -> None:
    torch.manual_seed(1)
    sizes = CopySizes(n=20, d=8)
    distances = torch.arange(1, 20)
    ids, words = marked(distances, 20, torch.Generator().manual_seed(2))
    sizes_by_distance = by_distance(gradients(Copier(kind, sizes), ids, words, distances), 20)
    reached = [size > 0 for size in sizes_by_distance]
    assert reached == [kind != "6 convolutions" or k <= 12 for k in range(1, 20)]


def test_scores_of_the_three_similarities() -> None:
    q, k = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 4)
    config = partial_model(PHRASES, PARTS, 1).config.model_copy(update={"n_heads": 1, "d_k": 4, "d_v": 4})
    additive, dot, divided = (ComparingAttention(config, kind) for kind in SIMILARITIES)
    assert additive.v is not None
    expected = torch.stack([torch.tanh(q[:, :, i, None] + k) @ additive.v for i in range(3)], 2)
    torch.testing.assert_close(additive.scores(q, k), expected)
    torch.testing.assert_close(dot.scores(q, k), q @ k.mT)
    torch.testing.assert_close(divided.scores(q, k), q @ k.mT / 2)


def test_divided_dot_products_are_the_ordinary_attention() -> None:
    ours: Any = comparing("divided dot product", 8, 1).eval()
    plain: Any = Transformer(ours.config).eval()
    plain.load_state_dict(ours.state_dict())
    src, tgt = torch.tensor([[5, 6, 7, EOS_ID, PAD_ID]]), torch.tensor([[BOS_ID, 7, 6, 5]])
    torch.testing.assert_close(ours(src, tgt), plain(src, tgt))


def reached(far: int, n: int = 10) -> dict[str, Any]:
    return {
        "accuracy": [1.0] * far + [0.2] * (n - far),
        "fresh": [1.0] * n,
        "trained": [1.0] * n,
    }


def test_the_distance_that_is_reached_ends_at_the_first_that_is_not_right() -> None:
    assert reach.furthest([reached(4), reached(10), reached(0)]) == [4, 10, 0]
    assert reach.mean_at([reached(4), reached(6)], "accuracy", slice(4, 5)) == pytest.approx(0.6)


def losses_of_embeddings(unscaled: float, tied: float, seeds: int, last: float = 0.0) -> dict[str, Any]:
    """Losses at two rates: that of the paper's embeddings is 1, others are more; ``last`` is added at the higher."""
    plus = {(True, True): tied, (True, False): 0.0, (False, True): tied + unscaled, (False, False): unscaled}
    return {
        name: [
            {"rate": rate, "loss": 1 + plus["not scaled" not in name, "not tied" not in name] * (1 + seed / 100) + more}
            for rate, more in ((0.1, 0.0), (0.2, last * ("not scaled" in name)))
            for seed in range(seeds)
        ]
        for name in reach.EMBEDDINGS
    }


def test_a_verdict_on_embeddings_is_open_where_the_seeds_do_not_decide() -> None:
    def verdict(*rows: Any) -> list[bool | None]:
        return [claim.holds for claim in reach.embedding_claims(losses_of_embeddings(*rows))]

    assert verdict(0.7, 0.05, 1) == [None, None, None]
    assert verdict(0.7, 0.05, 3) == [True, True, True]
    assert verdict(0.7, 0.3, 3, -1.4) == [False, False, False]
    assert verdict(0.505, 0.099, 3) == [True, None, None]  # the intervals hold 0.5 and 0.1


def test_a_difference_and_a_bound() -> None:
    for low, high, about in ((0.2, 0.4, (True, False)), (-0.4, -0.2, (False, False)), (-0.05, 0.05, (False, True)),
                             (0.05, 0.2, (None, None)), (-0.2, 0.2, (None, None))):  # fmt: skip
        delta = Interval((low + high) / 2, low, high)
        assert (holds(delta, 1, 0.1), within(delta, 0.1)) == about
    assert within(Interval(0.0, math.nan, math.nan), 0.1) is None
    assert all_hold([True, None, False]) is False


def test_mean_loss_counts_no_padding() -> None:
    pairs = PHRASES.test_batch()
    model = partial_model(PHRASES, PARTS, 1)
    wide = pairs._replace(
        tgt_in=torch.nn.functional.pad(pairs.tgt_in, (0, 2)), tgt_out=torch.nn.functional.pad(pairs.tgt_out, (0, 2))
    )
    assert mean_loss(model, wide) == pytest.approx(mean_loss(model, pairs), rel=1e-5)
