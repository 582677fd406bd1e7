"""Measure operations, memory and time of each layer of Table 1.

    operations(LAYERS[0], n=512, d=64)        # of self-attention

A layer here is only the part that mixes positions, without the projections that usually surround it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from dragoman.model.attention import attend
from dragoman.model.baselines.cells import recurrence, rnn_cell

KERNEL = 3  # k of Table 1
NEIGHBOURS = 128  # r of Table 1: 64 on either side


class Layer(NamedTuple):
    """A row of Table 1."""

    name: str
    compute: Callable[..., Tensor]  # (x (1, n, d), *weights, fused) to (1, n, d)
    shapes: Callable[[int], list[tuple[int, int]]]  # shapes of the weights for a width d
    of_n: int  # exponent of n in the paper
    of_d: int  # exponent of d in the paper
    formula: str  # operations in the paper


def weights(layer: Layer, d: int, device: torch.device) -> list[Tensor]:
    """Return random weights of a layer, scaled so that outputs are about as large as inputs."""
    return [torch.randn(shape, device=device) / math.sqrt(shape[1]) for shape in layer.shapes(d)]


# Each layer below is computed as its equation is written, or with ``fused`` by torch's fastest kernel.


def self_attention(x: Tensor, fused: bool = False) -> Tensor:
    """Compute Eq. (1) with one head; the fused kernel never holds all attention weights."""
    heads = x[:, None]
    if fused:
        return F.scaled_dot_product_attention(heads, heads, heads)[:, 0]
    return attend(heads, heads, heads, None)[0][:, 0]


def recurrent(x: Tensor, w_x: Tensor, w_h: Tensor, fused: bool = False) -> Tensor:
    """Compute a plain recurrent layer."""
    h = torch.zeros_like(x[:, 0])
    if fused:
        return recurrence("rnn", x, (h,), w_x, h[0], w_h)[0]
    states = []
    for projected in (x @ w_x.T).unbind(dim=1):
        h = rnn_cell(projected, h, w_h)
        states.append(h)
    return torch.stack(states, dim=1)


def convolution(x: Tensor, w: Tensor, fused: bool = False) -> Tensor:
    """Compute a convolution: a product of all windows with a matrix, ``(d, k * d)`` for windows of width k."""
    (n, d), k = x.shape[1:], w.size(1) // x.size(2)
    if fused:
        # An image one pixel high: unlike a sequence, its channels may be stored last, so that nothing is copied.
        image = x.mT[:, :, None].contiguous(memory_format=torch.channels_last)
        kernel = w.view(d, k, d).mT[:, :, None]
        return F.conv2d(image, kernel, padding=(0, k // 2))[:, :, 0].mT
    padded = F.pad(x, (0, 0, k // 2, k // 2))
    return torch.cat([padded[:, i : i + n] for i in range(k)], dim=-1) @ w.T


def neighbourhoods(x: Tensor, neighbours: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cut a sequence into blocks of queries with the keys near them, for attention to ``neighbours / 2`` on each side.

    Args:
        x: ``(1, n, d)``; n must be a multiple of ``side = neighbours / 2``.
        neighbours: Number of positions that a query sees besides its own.

    Returns:
        Queries ``(blocks, 1, side, d)``, keys ``(blocks, 1, 3 * side, d)``, and a mask that is true where a query may
        attend, ``(blocks, 1, side, 3 * side)``. A third of the products in the blocks is masked.
    """
    (_, n, d), side = x.shape, neighbours // 2
    queries = x.view(-1, 1, side, d)
    keys = F.pad(x[0], (0, 0, side, side)).unfold(0, 3 * side, side).mT[:, None]
    i, j = torch.arange(side, device=x.device)[:, None] + side, torch.arange(3 * side, device=x.device)
    places = torch.arange(0, n, side, device=x.device)[:, None, None] + j - side  # (blocks, 1, 3 * side)
    mask = ((i - j).abs() <= side) & (places >= 0) & (places < n)
    return queries, keys, mask[:, None]


def restricted(x: Tensor, neighbours: int = NEIGHBOURS, fused: bool = False) -> Tensor:
    """Compute self-attention to ``neighbours`` positions around each query."""
    queries, keys, mask = neighbourhoods(x, neighbours)
    if fused:
        return F.scaled_dot_product_attention(queries, keys, keys, mask).reshape(x.shape)
    return attend(queries, keys, keys, mask)[0].view(x.shape)


def convolution_of(width: int) -> Layer:
    """Return the row of a convolution whose windows have this width, an odd number."""
    return Layer("convolutional", convolution, lambda d: [(d, width * d)], 1, 2, "k · n · d²")


def restricted_to(neighbours: int) -> Layer:
    """Return the row of self-attention to this many neighbours, an even number."""
    return Layer("restricted", partial(restricted, neighbours=neighbours), lambda d: [], 1, 1, "r · n · d")


LAYERS = (
    Layer("self-attention", self_attention, lambda d: [], 2, 1, "n² · d"),
    Layer("recurrent", recurrent, lambda d: [(d, d), (d, d)], 1, 2, "n · d²"),
    convolution_of(KERNEL),
    restricted_to(NEIGHBOURS),
)


# --- measuring --------------------------------------------------------------------------------------------------------


def operations(layer: Layer, n: int, d: int) -> int:
    """Return the multiplications and additions of a layer as its equation is written, as torch counts them."""
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        layer.compute(torch.empty(1, n, d, device="meta"), *weights(layer, d, torch.device("meta")))
    return int(counter.get_total_flops())


def kept_bytes(layer: Layer, fused: bool, n: int, d: int) -> int:
    """Return the bytes that a forward pass keeps for the backward pass, without the input and the weights."""
    inputs = [torch.randn(1, n, d), *weights(layer, d, torch.device("cpu"))]
    # Each tensor is kept alive, so that its address is not used again and every address is counted once.
    saved = {tensor.untyped_storage().data_ptr(): (0, tensor.requires_grad_()) for tensor in inputs}

    def save(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved.setdefault(storage.data_ptr(), (storage.nbytes(), tensor))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        out = layer.compute(*inputs, fused=fused)
    total = sum(size for size, _ in saved.values())
    del out
    return total


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread, so that processor time is elapsed time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.inference_mode()
def seconds(layer: Layer, n: int, d: int, device: torch.device, least_s: float) -> float:
    """Return the shortest time of a forward pass in seconds, among five or more that take ``least_s`` together.

    On a CPU it is processor time, which other programs disturb less than elapsed time.
    """
    inputs = [torch.randn(1, n, d, device=device), *weights(layer, d, device)]
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    times: list[float] = []
    with one_thread():
        layer.compute(*inputs, fused=True)
        while len(times) < 5 or sum(times) < least_s:
            started = clock()
            layer.compute(*inputs, fused=True)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            times.append(clock() - started)
    return min(times)
