"""A teacher with fewer layers: which stay, and that they are the teacher's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.bundle import Bundle, load_bundle
from dragoman.distillation.options import DistillOptions
from dragoman.distillation.shrink import check_shrinkable, kept_layers, write_shrunk
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer

SENTENCE = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])


@pytest.mark.parametrize(
    ("n", "of", "kept"), [(1, 3, [0]), (2, 3, [0, 2]), (2, 6, [0, 5]), (3, 6, [0, 2, 5]), (5, 6, [0, 1, 2, 4, 5])]
)
def test_the_layers_that_stay_are_spread_over_the_stack(n: int, of: int, kept: list[int]) -> None:
    assert kept_layers(n, of) == kept


def test_what_stays_is_the_teachers(tiny_run: Path, tmp_path: Path) -> None:
    teacher = _deep(tiny_run)
    model = teacher.model
    write_shrunk(teacher, None, 2, tmp_path / "start")
    found = load_bundle(tmp_path / "start")
    assert (found.config.model.n_encoder_layers, found.config.model.n_decoder_layers) == (3, 2)
    want = model.state_dict()
    for name, weight in found.model.state_dict().items():
        assert torch.equal(weight, want[name.replace("decoder.layers.1.", "decoder.layers.2.")]), name
    model.decoder.layers = torch.nn.ModuleList([model.decoder.layers[0], model.decoder.layers[2]])
    assert torch.allclose(found.model(*SENTENCE), model(*SENTENCE), atol=1e-5)  # the middle one is left out


def test_the_encoder_may_be_shrunk_too(tiny_run: Path, tmp_path: Path) -> None:
    teacher = _deep(tiny_run)
    write_shrunk(teacher, 2, 1, tmp_path / "start")
    found = load_bundle(tmp_path / "start")
    assert (found.config.model.n_encoder_layers, found.config.model.n_decoder_layers) == (2, 1)
    assert (found.model.config.n_encoder_layers, found.model.config.n_decoder_layers) == (2, 1)
    model = teacher.model
    for stack, kept in ((model.encoder, (0, 2)), (model.decoder, (0,))):
        stack.layers = torch.nn.ModuleList([stack.layers[i] for i in kept])
    assert torch.allclose(found.model(*SENTENCE), model(*SENTENCE), atol=1e-5)


@pytest.mark.parametrize(
    ("layers", "what"),
    [
        ((None, 3), "--shrink 3: the teacher has 3 decoder layers; name fewer"),
        ((4, 1), r"--shrink 4\+1: the teacher has 3\+3 layers; name fewer"),
        ((1, 4), r"--shrink 1\+4: the teacher has 3\+3 layers; name fewer"),
        ((3, 3), r"--shrink 3\+3: the teacher has 3\+3 layers; name fewer"),
        ((2, 3), None),
    ],
)
def test_layers_that_are_not_there_are_refused(
    layers: tuple[int | None, int], what: str | None, tiny_run: Path
) -> None:
    config = _deep(tiny_run).config
    if what is None:
        check_shrinkable(config, *layers)
    else:
        with pytest.raises(ConfigError, match=what):
            check_shrinkable(config, *layers)


@pytest.mark.parametrize(
    ("given", "layers"), [(2, (None, 2)), ("2", (None, 2)), ("3+1", (3, 1)), (" 2+1 ", (2, 1)), (None, None)]
)
def test_what_shrink_takes(given: str | int | None, layers: tuple[int | None, int] | None) -> None:
    assert DistillOptions(shrink=given).layers == layers


@pytest.mark.parametrize("given", [0, -1, "0+1", "1+0", "1+", "+1", "2-1", "", True, 1.5])
def test_what_shrink_does_not_take_is_refused(given: object) -> None:
    with pytest.raises(
        ConfigError, match=r"shrink must be a number of decoder layers to keep, such as 1, or .* as 2\+1, got"
    ):
        DistillOptions.of(None, {"shrink": given})


def _deep(run: Path) -> Bundle:
    """A bundle with three layers on either side."""
    bundle = load_bundle(run)
    deep = {"n_encoder_layers": 3, "n_decoder_layers": 3}
    config = bundle.config.model_copy(update={"model": bundle.config.model.model_copy(update=deep)})
    model = Transformer(bundle.model.config.model_copy(update=deep)).eval()
    return bundle._replace(config=config, weights=model)
