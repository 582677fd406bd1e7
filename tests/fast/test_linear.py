"""Prepared products against torch.nn.functional.linear."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.device import PRECISIONS, check_precision
from dragoman.errors import ConfigError
from dragoman.fast.linear import is_amd, prepared

CPU = torch.device("cpu")
HAS_INT8 = any(torch.cpu.get_capabilities().get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))
TOLERANCE = {"fp32": 1e-5, "bf16": 0.02, "int8": 0.03}  # of the largest output
HERE = [precision for precision in PRECISIONS if precision != "int8" or HAS_INT8]


def matrices(n_rows: int, n_in: int, n_out: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    gen = torch.Generator().manual_seed(n_rows)
    sizes = ((n_rows, n_in), (n_out, n_in), (n_out,), (n_rows, n_out))
    x, weight, bias, plus = (torch.randn(size, generator=gen) for size in sizes)
    return x, weight, bias, plus


@pytest.mark.parametrize(("precision", "cpu"), [*((each, "") for each in HERE), ("fp32", "AMD"), ("fp32", "Intel")])
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


@pytest.mark.parametrize("precision", HERE)
def test_what_is_given_stays_as_it_was(precision: str) -> None:
    x, weight, bias, plus = matrices(4, 32, 32)
    given: list[Any] = [t.bfloat16() if precision == "bf16" else t.clone() for t in (x, plus)]
    before = [t.clone() for t in given]
    product = prepared(weight, bias, precision)
    product(given[0], plus=given[1])
    product(given[0], relu=True)
    assert all(torch.equal(a, b) for a, b in zip(given, before, strict=True))


@pytest.mark.skipif(not HAS_INT8, reason="this CPU has no 8-bit products")
def test_a_row_of_zeros_has_a_scale_too() -> None:
    weight = torch.randn(8, 16)
    weight[3] = 0.0
    found = prepared(weight, None, "int8")(torch.randn(2, 16))
    assert found.isfinite().all()
    assert not found[:, 3].any()


def test_what_a_machine_lacks_is_one_line_that_says_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"^precision must be fp32, bf16 or int8, got 'fp16'$"):
        check_precision("fp16", CPU)
    with pytest.raises(ConfigError, match="the device is cuda: use fp32 or bf16"):
        check_precision("int8", torch.device("cuda"))
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True})
    with pytest.raises(ConfigError, match=r"8-bit products .* which this CPU lacks: use fp32 or bf16"):
        check_precision("int8", CPU)
    check_precision("bf16", CPU)


@pytest.mark.skipif(not HAS_INT8, reason="this CPU has no 8-bit products")
@pytest.mark.parametrize("n_in", [1, 16, 128])
def test_in_8_bits_no_row_depends_on_the_others(n_in: int) -> None:
    x = torch.randn(20, n_in) * torch.logspace(-3, 3, 20)[:, None]  # of every size
    x[7] = 0
    product = prepared(torch.randn(24, n_in), torch.randn(24), "int8")
    assert torch.equal(product(x), torch.cat([product(row[None]) for row in x]))
