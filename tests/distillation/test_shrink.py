"""A teacher with fewer decoder layers: which stay, and that they are the teacher's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.bundle import load_bundle
from dragoman.distillation.shrink import kept_layers, write_shrunk
from dragoman.model.transformer import Transformer


@pytest.mark.parametrize(
    ("n", "of", "kept"), [(1, 3, [0]), (2, 3, [0, 2]), (2, 6, [0, 5]), (3, 6, [0, 2, 5]), (5, 6, [0, 1, 2, 4, 5])]
)
def test_the_layers_that_stay_are_spread_over_the_stack(n: int, of: int, kept: list[int]) -> None:
    assert kept_layers(n, of) == kept


def test_what_stays_is_the_teachers(tiny_run: Path, tmp_path: Path) -> None:
    bundle = load_bundle(tiny_run)
    deep = {"n_encoder_layers": 2, "n_decoder_layers": 3}
    config = bundle.config.model_copy(update={"model": bundle.config.model.model_copy(update=deep)})
    teacher = Transformer(bundle.model.config.model_copy(update=deep)).eval()
    write_shrunk(bundle._replace(config=config, model=teacher), 2, tmp_path / "start")
    found = load_bundle(tmp_path / "start")
    assert (found.config.model.n_encoder_layers, found.config.model.n_decoder_layers) == (2, 2)
    want = teacher.state_dict()
    for name, weight in found.model.state_dict().items():
        assert torch.equal(weight, want[name.replace("decoder.layers.1.", "decoder.layers.2.")]), name
    src, tgt = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    teacher.decoder.layers = torch.nn.ModuleList([teacher.decoder.layers[0], teacher.decoder.layers[2]])
    assert torch.allclose(found.model(src, tgt), teacher(src, tgt), atol=1e-5)  # the middle one is left out
