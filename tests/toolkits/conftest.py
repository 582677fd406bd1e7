"""Small bundles with random models, for every toolkit alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.bundle import Bundle, load_bundle
from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from model_variants import fill


@pytest.fixture
def make(tiny_run: Path, request: pytest.FixtureRequest) -> Callable[..., Bundle]:
    """A function of fields of the configuration, whose others are ``SIZES`` of the test's module.

    It returns a bundle with a random model, in which nothing is 0 or 1.
    """
    real = load_bundle(tiny_run)

    def bundle(**fields: Any) -> Bundle:
        n = real.src_tokenizer.vocab_size
        sizes = request.module.SIZES
        model = Transformer(ModelConfig(**{"src_vocab_size": n, "tgt_vocab_size": n, **sizes, **fields})).eval()
        return real._replace(weights=fill(model, seed=1, spread=1 / 4))

    return bundle
