"""Each private operator of torch against the public way, and that none is used elsewhere."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import dragoman
from dragoman.device import has_bf16
from dragoman.fast import private_ops
from dragoman.fast.step import weight_versions
from limits import LONG_S


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def in_both_ways(work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """What the private operator finds, and what the public way finds."""
    private = work()
    with monkeypatch.context() as patch:
        patch.setattr(private_ops, "works", lambda name: False)
        return private, work()


@pytest.mark.parametrize("name", private_ops.TRIALS)
def test_this_torch_has_each(name: str, caplog: pytest.LogCaptureFixture) -> None:
    private_ops.works.cache_clear()
    assert private_ops.works(name)
    assert not caplog.records


def test_one_that_is_gone_is_told_of_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delattr(torch, "_foreach_lerp_")
    private_ops.works.cache_clear()
    try:
        for _ in range(2):
            target = torch.zeros(3)
            private_ops.lerp_all([target], [torch.ones(3)], 1.0)
            assert target.tolist() == [1, 1, 1]
    finally:
        private_ops.works.cache_clear()
    (record,) = caplog.records
    assert "has no lerp_all as dragoman uses it" in record.message
    assert record.message.endswith("a slower implementation is used")


def test_the_gradient_through_a_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = random(3, 5, 7).requires_grad_()
    weights, side = scores.softmax(-1), random(3, 5, 7, seed=1)
    (want,) = torch.autograd.grad((weights * side).sum(), scores)
    for found in in_both_ways(lambda: private_ops.softmax_backward(side, weights.detach()), monkeypatch):
        torch.testing.assert_close(found, want)


def test_the_gradient_through_a_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    out, side = random(5, 7).relu(), random(5, 7, seed=1)
    out[0, 0] = torch.nan  # which must not be lost
    private, public = in_both_ways(lambda: private_ops.relu_backward(side, out), monkeypatch)
    assert torch.equal(private, public)
    assert torch.equal(public, torch.where(out == 0, 0.0, side))


def test_many_tensors_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> list[Tensor]:
        targets, others = ([random(n, 3, seed=n + which) for n in (1, 5, 2)] for which in (0, 9))
        private_ops.lerp_all(targets, others, 0.3)
        return targets

    private, public = in_both_ways(work, monkeypatch)
    assert all(map(torch.equal, private, public))
    for n, found in zip((1, 5, 2), public, strict=True):
        torch.testing.assert_close(found, torch.lerp(random(n, 3, seed=n), random(n, 3, seed=n + 9), 0.3))


@pytest.mark.parametrize("public", [False, True])
def test_a_tensor_that_was_written_has_another_version(public: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if public:
        monkeypatch.setattr(private_ops, "works", lambda name: False)
    layer = torch.nn.Linear(3, 5)
    before = weight_versions(layer)
    assert weight_versions(layer) == before
    with torch.no_grad():
        layer.bias[2] += 1
    after = weight_versions(layer)
    assert (after[0], after[1] == before[1]) == (before[0], False)


@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.skipif(
    not has_bf16(), reason="this processor has no bf16"))])  # fmt: skip
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_packed_product(dtype: torch.dtype, has_bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    weight, x, plus = random(13, 11).to(dtype), random(5, 11, seed=1).to(dtype), random(5, 13, seed=2).to(dtype)
    bias = random(13, seed=3).to(dtype) if has_bias else None

    def work() -> list[Tensor]:
        product = private_ops.packed_product(weight, bias)
        return [product(x), product(x, plus=plus), product(x, relu=True)]

    private, public = in_both_ways(work, monkeypatch)
    for mine, found in zip(private, public, strict=True):
        torch.testing.assert_close(mine, found, rtol=0, atol=0.05 if dtype == torch.bfloat16 else 1e-5)
    torch.testing.assert_close(public[0], F.linear(x, weight, bias))


@pytest.mark.parametrize(
    "given", [{}, {"OMP_DYNAMIC": "true"}, {"OMP_THREAD_LIMIT": "1"}, {"OMP_MAX_ACTIVE_LEVELS": "0"},
              {"OMP_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1"}, {"OMP_THREAD_LIMIT": "1", "THREADS": "1"}],
)  # fmt: skip
def test_products_are_right_where_openmp_gives_fewer_threads_than_it_promises(given: dict[str, str]) -> None:
    """They were garbage, often finite; with a number of threads for the first thread alone, in a new one."""
    code = """
import concurrent.futures, os, torch
torch.set_num_threads(int(os.environ.get("THREADS", 2)))
from dragoman.fast import private_ops
def differs(dtype):
    x, weight = torch.rand(64, 128).to(dtype), torch.rand(512, 128).to(dtype)
    found = private_ops.packed_product(weight, None)(x)
    return not torch.allclose(found.double(), x.double() @ weight.double().T, rtol=0.02)
for dtype in (torch.float32, torch.bfloat16):
    for _ in range(3):
        with concurrent.futures.ThreadPoolExecutor(1) as new_thread:
            assert not new_thread.submit(differs, dtype).result(), dtype
    assert not differs(dtype), dtype
print(private_ops.works("packed_product"))
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", **given}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=LONG_S)
    assert done.stdout == f"{not given}\n", done.stderr
    assert (
        "OMP_DYNAMIC, OMP_THREAD_LIMIT or OMP_MAX_ACTIVE_LEVELS makes products of oneDNN wrong" in done.stderr
    ) == bool(given)


def test_a_processor_has_bf16_where_onednn_says_so() -> None:
    assert has_bf16() == torch.ops.mkldnn._is_mkldnn_bf16_supported()


def test_private_names_of_torch_are_used_in_one_module_only() -> None:
    """``torch._x``, ``torch.a.b._x``, what lies below ``torch.ops`` and ``torch._C``, and ``Tensor._version``."""
    sources = Path(dragoman.__file__).parent.rglob("*.py")
    found = {
        (path.name, name)
        for path in sources
        if path.name != "private_ops.py"
        for name in private_names(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()
    own = Path(private_ops.__file__).read_text(encoding="utf-8")
    assert len(set(private_names(ast.parse(own)))) > 6


def private_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            is_private = node.attr.startswith("_") and not node.attr.startswith("__")
            if (name.startswith("torch.") and is_private) or name.startswith("torch.ops.") or node.attr == "_version":
                yield name
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.startswith("torch._"))
