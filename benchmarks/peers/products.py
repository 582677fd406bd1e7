"""What this processor reaches: matrix products by size and precision, as torch offers them and as dragoman decodes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from serve import Run, serve

from dragoman.cli import environment

environment.set_defaults()

import torch  # noqa: E402

from dragoman.fast.linear import prepared  # noqa: E402


def median_time(work: Callable[[], object], seconds: float) -> float:
    """The median time of one call, seconds, measured for about so many."""
    for _ in range(3):
        work()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(times) < 5:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def prepare(seconds: float) -> Run:
    """Nothing to build; ``seconds`` is for each product."""

    def run(m: int, k: int, n: int, how: str) -> dict[str, Any]:
        torch.set_float32_matmul_precision("medium" if how == "fp32 medium" else "highest")
        x, weight = torch.randn(m, k), torch.randn(n, k)
        with torch.inference_mode():
            if how == "int8, both given":
                a, b = (tensor.mul(30).to(torch.int8) for tensor in (x, weight.T))
                work: Callable[[], object] = lambda: torch._int_mm(a, b)  # noqa: E731
            elif how == "bf16 prepared":
                product, given = prepared(weight, None, "bf16"), x.bfloat16()
                work = lambda: product(given)  # noqa: E731
            else:
                given, matrix = (tensor.bfloat16() if how == "bf16" else tensor for tensor in (x, weight))
                work = lambda: torch.nn.functional.linear(given, matrix)  # noqa: E731
            return {"gflop_per_s": 2 * m * k * n / median_time(work, seconds) / 1e9}

    return run


if __name__ == "__main__":
    serve(prepare, ["torch"])
