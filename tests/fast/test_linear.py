"""Prepared products against torch.nn.functional.linear."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.fast.linear import is_amd, prepared

TOLERANCE = {"fp32": 1e-5, "bf16": 0.02}  # of the largest output


def matrices(n_rows: int, n_in: int, n_out: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    gen = torch.Generator().manual_seed(n_rows)
    sizes = ((n_rows, n_in), (n_out, n_in), (n_out,), (n_rows, n_out))
    x, weight, bias, plus = (torch.randn(size, generator=gen) for size in sizes)
    return x, weight, bias, plus


@pytest.mark.parametrize(("precision", "cpu"), [("fp32", ""), ("bf16", ""), ("fp32", "AMD"), ("fp32", "Intel")])
@pytest.mark.parametrize(("n_rows", "n_in", "n_out"), [(1, 16, 32), (2, 16, 32), (5, 48, 20), (33, 64, 131)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_product_is_that_of_f_linear(
    precision: str, cpu: str, n_rows: int, n_in: int, n_out: int, has_bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cpu:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": f"{cpu} of some kind"})
        assert is_amd() == (cpu == "AMD")
    x, weight, bias, plus = matrices(n_rows, n_in, n_out)
    product = prepared(weight, bias if has_bias else None, precision)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    want = F.linear(x, weight, bias if has_bias else None)
    for options, expected in [({}, want), ({"relu": True}, want.relu()), ({"plus": plus}, want + plus)]:
        found = product(x.to(dtype), **{name: v.to(dtype) if torch.is_tensor(v) else v for name, v in options.items()})
        assert found.dtype == dtype
        assert (found.float() - expected).abs().max() <= TOLERANCE[precision] * want.abs().max()


@pytest.mark.parametrize("precision", TOLERANCE)
def test_what_is_given_stays_as_it_was(precision: str) -> None:
    x, weight, bias, plus = matrices(4, 32, 32)
    given: list[Any] = [t.bfloat16() if precision == "bf16" else t.clone() for t in (x, plus)]
    before = [t.clone() for t in given]
    product = prepared(weight, bias, precision)
    product(given[0], plus=given[1])
    product(given[0], relu=True)
    assert all(torch.equal(a, b) for a, b in zip(given, before, strict=True))
