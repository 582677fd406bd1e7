"""Fixtures of the tests of the model."""

from typing import Any

import pytest

from model_variants import VARIANTS, Build, build_model, unequal


@pytest.fixture(params=map(unequal, VARIANTS.values()), ids=list(VARIANTS))
def variant(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The fields of one variant that decodes; each test that asks for it runs once for each."""
    return request.param


@pytest.fixture
def build() -> Build:
    """A function of a seed, a dtype and fields of the configuration."""
    return build_model
