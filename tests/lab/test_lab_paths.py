"""The experiments paths, complexity and architectures: their measuring tools, and a quick run of each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import Config, TrainConfig
from dragoman.errors import DragomanError
from dragoman.lab import accounts, architectures, complexity, costs, paths
from dragoman.lab.experiment import Lab
from dragoman.lab.report import run_experiment
from dragoman.lab.runs import corpus_config
from dragoman.model.attention import attend

SIZES = paths.Sizes(n=16, d=8, rows=3, seeds=2)


def quick(name: str, out: Path, config: Config | None = None) -> dict[str, Any]:
    record = run_experiment(name, out, Lab(out, quick=True, config=config, say=lambda text: None))
    assert record["quick"]
    assert all(claim["holds"] is None for claim in record["verdict"])
    assert (out / name / "index.html").stat().st_size > 10_000
    assert json.loads((out / name / "numbers.json").read_text(encoding="utf-8")) == record
    return record


def test_times_are_measured_again_on_other_hardware_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of one processor stood on a page that named another."""
    timed: list[int] = []

    def seconds(layer: costs.Layer, n: int, d: int, *_: Any) -> float:
        timed.append(n)
        return 1e-6 * n * d

    monkeypatch.setattr(complexity, "seconds", seconds)
    lab = Lab(tmp_path, quick=True, say=lambda _: None)
    counts = []
    for cpu in ("one", "one", "other", "one"):
        monkeypatch.setattr(complexity, "hardware", lambda _, cpu=cpu: {"cpu": cpu})
        complexity.run(lab)
        counts.append(len(timed))
    n = len(costs.LAYERS) * 2 * 4  # layers, widths, lengths
    assert counts == [n, n, 2 * n, 2 * n]


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [0.5, 1.0, 2.0])
def test_without_tanh_an_orthogonal_matrix_gives_its_norm_to_the_power_of_the_distance(norm: float) -> None:
    gradient = paths.reach(lambda: paths.plain_recurrent(8, norm, orthogonal=True, squashed=False), SIZES)["mean"]
    for k in range(1, 16):
        assert gradient[k] / gradient[1] == pytest.approx(norm ** (k - 1), rel=0.5)  # v is turned, w_xh is no rotation


def test_a_matrix_has_the_spectral_norm_that_was_asked_for() -> None:
    for orthogonal in (True, False):
        torch.manual_seed(0)
        run = paths.plain_recurrent(8, 1.7, orthogonal, squashed=False)
        cells = dict(zip(run.__code__.co_freevars, run.__closure__, strict=True))  # type: ignore[attr-defined]
        singular = torch.linalg.svdvals(cells["w_hh"].cell_contents)
        assert singular[0].item() == pytest.approx(1.7)
        assert (singular[-1].item() == pytest.approx(1.7)) == orthogonal


def test_a_step_back_is_not_the_matrix_alone_but_the_matrix_and_the_slope_of_tanh() -> None:
    """One of the five documents leaves the slope out."""
    torch.manual_seed(0)
    run = paths.plain_recurrent(5, 1.5, orthogonal=True, squashed=True)
    w = dict(zip(run.__code__.co_freevars, run.__closure__, strict=True))  # type: ignore[attr-defined]
    w_hh, w_xh = w["w_hh"].cell_contents, w["w_xh"].cell_contents
    x = torch.randn(1, 3, 5, dtype=torch.float64)
    h = run(x)[0]
    jacobian = torch.autograd.functional.jacobian(lambda x: run(x)[0, 2], x)[:, 0, 0]
    slopes = [torch.diag(1 - state**2) for state in h]
    torch.testing.assert_close(jacobian, slopes[2] @ w_hh @ slopes[1] @ w_hh @ slopes[0] @ w_xh)


def test_convolutions_see_two_tokens_further_with_each_layer_and_nothing_beyond() -> None:
    gradient = paths.reach(lambda: paths.convolutional(8, 6), SIZES)["mean"]
    assert gradient[12] > 0
    assert gradient[13:] == [0.0, 0.0, 0.0]


def test_nothing_of_the_future_reaches_a_position() -> None:
    x = torch.randn(1, 7, 8, dtype=torch.float64, requires_grad=True)
    for make in paths.LAYERS.values():
        (gradient,) = torch.autograd.grad(make(8)(x)[0, 3].sum(), x)
        assert gradient[0, 3].abs().sum() > 0
        assert not gradient[0, 4:].any()


def test_paths_quickly(tmp_path: Path) -> None:
    numbers = quick("paths", tmp_path)["numbers"]
    assert set(numbers["reach"]) == set(paths.LAYERS)
    assert numbers["reach"]["6 convolutions"]["mean"][paths.FAR] == 0


def test_a_band_holds_every_drawing_and_the_mean_lies_in_it() -> None:
    both = paths.reach(lambda: paths.self_attentive(8), SIZES)
    alone = paths.reach(lambda: paths.self_attentive(8), SIZES._replace(seeds=1))  # the first of the two drawings
    for low, mean, high, first in zip(both["low"], both["mean"], both["high"], alone["mean"], strict=True):
        assert low <= mean <= high
        assert min(abs(first / low - 1), abs(first / high - 1)) < 1e-9
        assert mean == pytest.approx(math.sqrt(low * high))


def test_the_lead_ends_where_self_attention_passes_on_more() -> None:
    numbers = {"reach": {"self-attention": {"mean": [8.0, 0.4, 0.4, 0.4]}, "LSTM": {"mean": [2.0, 1.0, 0.3, 0.05]}}}
    assert paths.lead(numbers, "LSTM", as_share=False) == 1
    assert paths.lead(numbers, "LSTM", as_share=True) == 2
    assert paths.times_weaker([8.0, 0.2, 0.8]) == pytest.approx(20)


# --- complexity -------------------------------------------------------------------------------------------------------


def test_operations_are_those_of_the_formulas() -> None:
    n, d, k, side = 256, 32, costs.KERNEL, costs.NEIGHBOURS // 2
    counted = [costs.operations(layer, n, d) for layer in costs.LAYERS]
    assert counted == [4 * n * n * d, 4 * n * d * d, 2 * k * n * d * d, 4 * n * (3 * side) * d]


@pytest.mark.parametrize("layer", costs.LAYERS, ids=lambda layer: layer.name)
def test_what_is_timed_is_what_is_counted(layer: costs.Layer) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(1, 192, 8), *costs.weights(layer, 8, torch.device("cpu"))]
    torch.testing.assert_close(layer.compute(*inputs, fused=True), layer.compute(*inputs))


def test_restricted_attention_is_attention_under_a_band() -> None:
    x, side = torch.randn(1, 256, 8), costs.NEIGHBOURS // 2
    places = torch.arange(256)
    band = (places[:, None] - places).abs() <= side
    torch.testing.assert_close(costs.restricted(x), attend(x[:, None], x[:, None], x[:, None], band)[0][:, 0])


@pytest.mark.parametrize(
    ("cell", "none", "recurrent", "both"), [("plain RNN", 0.5, 1, None), ("GRU", 1.5, 3, 1), ("LSTM", 2, 4, 2)]
)
def test_a_crossing_depends_on_what_is_counted(cell: str, none: float, recurrent: float, both: float | None) -> None:
    for d in (5, 16):
        crossings = [accounts.crossing_over_d(cell, counted, d) for counted in ("none", "recurrent", "both")]
        assert crossings == [pytest.approx(none), pytest.approx(recurrent), both and pytest.approx(both)]


def test_neighbourhood_and_kernel_are_counted_at_any_size() -> None:
    n, d = 192, 8
    for r in (16, 32, 64):
        assert costs.operations(costs.restricted_to(r), n, d) == 6 * n * r * d
    for k in (1, 3, 5):
        layer = costs.convolution_of(k)
        assert costs.operations(layer, n, d) == 2 * k * n * d * d
        inputs = [torch.randn(1, n, d), *costs.weights(layer, d, torch.device("cpu"))]
        torch.testing.assert_close(layer.compute(*inputs, fused=True), layer.compute(*inputs))


def test_projected_attention_is_attention_between_its_projections() -> None:
    torch.manual_seed(0)
    x, weights = torch.randn(1, 5, 3), [torch.randn(3, 3) for _ in range(4)]
    q, k, v = ((x @ w.T)[:, None] for w in weights[:3])
    torch.testing.assert_close(accounts.projected_attention(x, *weights), attend(q, k, v, None)[0][:, 0] @ weights[3].T)


def test_exponents_and_crossings_are_read_off_power_laws() -> None:
    x = [1.0, 2.0, 4.0, 8.0, 16.0]
    assert complexity.exponent(x, [5 * value**1.7 for value in x]) == pytest.approx(1.7)
    assert complexity.crossing(x, [value**2 for value in x], [5 * value for value in x]) == pytest.approx(5.0)
    assert complexity.crossing(x, [1.0] * 5, [2.0] * 5) is None


@pytest.mark.parametrize(
    ("attention", "is_faster"), [([1, 2, 3, 9], True), ([1, 2, 9, 9], False), ([9, 9, 9, 9], False)]
)
def test_a_layer_that_is_slower_from_the_start_is_not_the_faster_one(attention: list[int], is_faster: bool) -> None:
    lengths = [8, 16, 32, 64]
    times = {"self-attention": attention, "recurrent": [4, 4, 4, 4]}
    rows = [
        {"layer": layer, "d": 32, "n": n, "seconds": value}
        for layer, of_layer in times.items()
        for n, value in zip(lengths, of_layer, strict=True)
    ]
    assert complexity.is_faster_up_to_d({"rows": rows, "lengths": lengths}, 32) == is_faster


def test_attention_written_out_keeps_its_weights_and_fused_does_not() -> None:
    layer, n, d = costs.LAYERS[0], 512, 16
    assert costs.kept_bytes(layer, False, n, d) >= 4 * n * n
    assert costs.kept_bytes(layer, True, n, d) < 4 * n * n / 4


def test_complexity_quickly(tmp_path: Path) -> None:
    numbers = quick("complexity", tmp_path)["numbers"]
    for layer in costs.LAYERS:
        assert numbers["exponents"][layer.name]["operations_of_n"] == pytest.approx(layer.of_n, abs=0.01)
    for row in numbers["crossings"]:
        assert row["operations"] == pytest.approx(row["d"], rel=0.01)
    timed = torch.get_num_threads()
    with costs.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == timed


# --- architectures ----------------------------------------------------------------------------------------------------


def test_a_baseline_gets_the_same_run_without_settings_it_lacks(tiny: Callable[..., Any]) -> None:
    mapping = tiny(schedule="noam", lr=None, patience=3)
    mapping["model"] |= dict(norm="pre", positions="rotary", attention_dropout=0.1)
    config = Config.from_mapping(mapping)
    lstm = architectures.with_architecture(config, "lstm")
    assert (lstm.model.norm, lstm.model.positions, lstm.model.attention_dropout) == ("post", "sinusoidal", 0.0)
    assert (lstm.data, lstm.train, lstm.model.d_model) == (config.data, config.train, config.model.d_model)


def test_the_minutes_are_the_configurations_and_so_is_the_rate(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    def timed(**train: Any) -> TrainConfig:
        lab = Lab(tmp_path, config=Config.from_mapping(tiny(**train)))
        return architectures.with_time_limit(corpus_config(lab), lab).train

    own = timed(schedule="noam", lr=2.0, patience=3)
    assert (own.schedule, own.lr, own.patience, own.max_minutes) == ("cosine", architectures.LR, None, 20.0)
    assert own.warmup_steps == own.max_steps / 20
    given = timed(schedule="cosine", lr=2e-3, max_minutes=7.0, max_steps=900, warmup_steps=10)
    assert (given.lr, given.max_minutes) == (2e-3, 7.0)
    embedded = Lab(tmp_path)
    recipe = architectures.with_time_limit(corpus_config(embedded, architectures.RECIPE, n_train=50), embedded).train
    assert (recipe.lr, recipe.max_minutes) == (architectures.RECIPE["train"]["lr"], architectures.MINUTES)


def test_architectures_quickly(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    mapping = tiny()
    mapping["model"] |= dict(d_model=16, d_ff=16)
    config = Config.from_mapping(mapping)
    record = quick("architectures", tmp_path, config)
    found = record["numbers"]["trials"]
    assert list(found) == list(architectures.KINDS)
    assert all(one[0]["steps"] > 0 and one[0]["flops"] > 0 for one in found.values())
    assert len({one[0]["parameters"] for one in found.values()}) == 5
    with pytest.raises(DragomanError, match="has no use for --run"):
        run_experiment("architectures", tmp_path, Lab(tmp_path, quick=True, run=tmp_path))
