"""The layers of Table 1 by themselves, and what one of them costs: operations, memory, time.

What mixes positions is looked at alone, without the projections that all of them may have around it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
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
    """One row of Table 1: what mixes positions, without the projections that all of them may have around it."""

    name: str
    plain: Callable[..., Tensor]  # (1, n, d) and its weights to (1, n, d), as its equation says
    fused: Callable[..., Tensor]  # the same by the fastest kernel that torch has
    shapes: Callable[[int], list[tuple[int, int]]]  # of its weights, by d
    of_n: int  # the exponents of the paper
    of_d: int
    formula: str


def weights(layer: Layer, d: int, device: torch.device) -> list[Tensor]:
    """Matrices that neither grow nor fade what goes through."""
    return [torch.randn(shape, device=device) / math.sqrt(shape[1]) for shape in layer.shapes(d)]


def self_attention(x: Tensor) -> Tensor:
    """Eq. 1 with one head."""
    heads = x[:, None]
    return attend(heads, heads, heads, None)[0][:, 0]


def fused_self_attention(x: Tensor) -> Tensor:
    """The same, never holding all weights."""
    heads = x[:, None]
    return F.scaled_dot_product_attention(heads, heads, heads)[:, 0]


def recurrent(x: Tensor, w_x: Tensor, w_h: Tensor) -> Tensor:
    """A plain recurrent layer, cell by cell."""
    h, found = torch.zeros_like(x[:, 0]), []
    for projected in (x @ w_x.T).unbind(dim=1):
        h = rnn_cell(projected, h, w_h)
        found.append(h)
    return torch.stack(found, dim=1)


def fused_recurrent(x: Tensor, w_x: Tensor, w_h: Tensor) -> Tensor:
    """The same by torch's kernel."""
    nothing = torch.zeros_like(x[:, 0])
    return recurrence("rnn", x, (nothing,), w_x, nothing[0], w_h)[0]


def convolution(x: Tensor, w: Tensor) -> Tensor:
    """A convolution of width ``KERNEL``, as a product of windows and a matrix."""
    n = x.size(1)
    padded = F.pad(x, (0, 0, KERNEL // 2, KERNEL // 2))
    windows = torch.cat([padded[:, i : i + n] for i in range(KERNEL)], dim=-1)
    return windows @ w.T


def fused_convolution(x: Tensor, w: Tensor) -> Tensor:
    """The same by torch's convolution, of an image one pixel high: that one reads channels where they lie."""
    d = x.size(2)
    image, kernel = x.mT[:, :, None].contiguous(memory_format=torch.channels_last), w.view(d, KERNEL, d).mT[:, :, None]
    return F.conv2d(image, kernel, padding=(0, KERNEL // 2))[:, :, 0].mT


def neighbourhoods(x: Tensor, neighbours: int) -> tuple[Tensor, Tensor, Tensor]:
    """Blocks of queries with the keys near them, for attention to ``neighbours`` / 2 positions on either side.

    Args:
        x: ``(1, n, d)``; n a multiple of half the neighbours.

    Returns:
        Queries ``(blocks, 1, side, d)``, keys ``(blocks, 1, 3 * side, d)``, and who may see whom
        ``(blocks, 1, side, 3 * side)``. A third of the products in the blocks is masked.
    """
    (_, n, d), side = x.shape, neighbours // 2
    queries = x.view(-1, 1, side, d)
    keys = F.pad(x[0], (0, 0, side, side)).unfold(0, 3 * side, side).mT[:, None]
    i, j = torch.arange(side, device=x.device)[:, None] + side, torch.arange(3 * side, device=x.device)
    places = torch.arange(0, n, side, device=x.device)[:, None, None] + j - side  # (blocks, 1, 3 * side)
    mask = ((i - j).abs() <= side) & (places >= 0) & (places < n)
    return queries, keys, mask[:, None]


def restricted(x: Tensor) -> Tensor:
    """Self-attention to ``NEIGHBOURS`` positions around each."""
    queries, keys, mask = neighbourhoods(x, NEIGHBOURS)
    return attend(queries, keys, keys, mask)[0].view(x.shape)


def fused_restricted(x: Tensor) -> Tensor:
    """The same, never holding all weights."""
    queries, keys, mask = neighbourhoods(x, NEIGHBOURS)
    return F.scaled_dot_product_attention(queries, keys, keys, mask).reshape(x.shape)


LAYERS = (
    Layer("self-attention", self_attention, fused_self_attention, lambda d: [], 2, 1, "n² · d"),
    Layer("recurrent", recurrent, fused_recurrent, lambda d: [(d, d), (d, d)], 1, 2, "n · d²"),
    Layer("convolutional", convolution, fused_convolution, lambda d: [(d, KERNEL * d)], 1, 2, "k · n · d²"),
    Layer("restricted", restricted, fused_restricted, lambda d: [], 1, 1, "r · n · d"),
)


# --- measuring --------------------------------------------------------------------------------------------------------


def operations(layer: Layer, n: int, d: int) -> int:
    """Multiplications and additions of the layer as it is written out, as torch counts them; nothing is computed."""
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        layer.plain(torch.empty(1, n, d, device="meta"), *weights(layer, d, torch.device("meta")))
    return int(counter.get_total_flops())


def kept_bytes(layer: Layer, fused: bool, n: int, d: int) -> int:
    """Bytes that a forward pass keeps for the backward pass, beside the input and the weights."""
    given = [torch.randn(1, n, d), *weights(layer, d, torch.device("cpu"))]
    # each tensor is held, so that no address comes back
    kept = {tensor.untyped_storage().data_ptr(): (0, tensor.requires_grad_()) for tensor in given}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept.setdefault(storage.data_ptr(), (storage.nbytes(), tensor))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        out = (layer.fused if fused else layer.plain)(*given)
    total = sum(size for size, _ in kept.values())
    del out
    return total


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, so that the processor's time is the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.inference_mode()
def seconds(layer: Layer, n: int, d: int, device: torch.device, least: float) -> float:
    """The least time of a forward pass: of five, or of as many as ``least`` seconds hold.

    On a CPU it is the processor's time, which other programs disturb less than they do the clock.
    """
    given = [torch.randn(1, n, d, device=device), *weights(layer, d, device)]
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    found: list[float] = []
    with one_thread():
        layer.fused(*given)
        while len(found) < 5 or sum(found) < least:
            started = clock()
            layer.fused(*given)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            found.append(clock() - started)
    return min(found)
