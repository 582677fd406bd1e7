"""The label-smoothed loss from the decoder's features, without holding the logits of all positions.

    loss, plain = chunked_loss(features, generator.weight, generator.bias, Targets(tgt_out, pad_id, smoothing))
    loss.backward()

The gradient is computed in the same pass over the chunks as the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.fast.projection import ROWS
from dragoman.fast.top_k import IN_RANGE

CPU_LOGITS = 2**23
"""Logits held at once on a CPU: about as many as fit into its cache."""

GPU_LOGITS = 2**28
"""Logits held at once on a GPU: 1 GiB of float32.

Each chunk starts a dozen kernels, and starting one takes as long as computing a million logits. One of them passes over
the whole gradient of the generator."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Target tokens of a batch, and how the loss counts them."""

    tgt_out: Tensor  # (B, T) int64; padding does not count
    pad_id: int
    smoothing: float  # label smoothing, in [0, 1)
    where: Tensor | None = None  # (N,): Batch.where, if known; finding it makes the host wait for a GPU

    def real(self) -> Tensor:
        """Return the indices ``(N,)`` of the tokens that are not padding, counting the B * T positions row by row."""
        return (self.tgt_out.flatten() != self.pad_id).nonzero()[:, 0] if self.where is None else self.where


def chunked_loss(
    features: Tensor, weight: Tensor, bias: Tensor | None, targets: Targets, chunk: int | None = None
) -> tuple[Tensor, Tensor]:
    """Compute ``label_smoothed_loss(generator(features), ...)`` and its gradient, a chunk of positions at a time.

    The gradient is computed together with the loss, from the softmax of each chunk. The part of the smoothed targets is
    added at the end as rank-one terms. Products, and the sum of each position over the vocabulary, are in the autocast
    precision; in bfloat16 that sum is off by at most 0.2%, 0.002 nats. Sums over positions are in float32.

    Args:
        features: ``(B, T, d_model)``, the decoder's output.
        weight: The generator's weight, ``(V, d_model)``.
        bias: The generator's bias, ``(V,)``, or None.
        targets: The target tokens and the label smoothing.
        chunk: Number of positions whose logits are held at once; None: see ``positions_at_once``.

    Returns:
        The smoothed loss, differentiable, and the unsmoothed one, each summed over tokens, in nats.
    """
    real = targets.real()
    x, y = (padded.flatten(0, 1).index_select(0, real) for padded in (features, targets.tgt_out))
    args = x[None], weight, bias, y, targets.smoothing, chunk or positions_at_once(weight.size(0), x.device.type)
    return _ChunkedLoss.apply(*args)  # type: ignore[no-untyped-call]


def positions_at_once(n_vocab: int, device: str) -> int:
    """Return how many positions have ``CPU_LOGITS`` or ``GPU_LOGITS`` logits together: a multiple of ``ROWS``."""
    return max(1, (CPU_LOGITS if device == "cpu" else GPU_LOGITS) // n_vocab // ROWS) * ROWS


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, smoothing: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        # x (1, N, d_model)  weight (V, d_model)  y (N,); logits z (n, V), odds exp(z), softmax odds / sum
        # loss_i = log sum exp(z_i) - (1 - e) z_iy - e mean(z_i);  d loss_i / d z_i = softmax - (1 - e) onehot - e / V
        s = Sums(x, weight, bias, y)
        smoothed, plain = s.dx.new_zeros(()), s.dx.new_zeros(())
        # All chunks use the same memory: allocating this much for each would take longer than the products.
        all_logits = torch.empty((min(chunk, len(s.ys)), len(weight)), dtype=s.w.dtype, device=x.device)
        with torch.autocast(x.device.type, enabled=False):
            for start in range(0, len(s.ys), chunk):
                here = slice(start, start + chunk)
                xc, yc, count = s.xs[0, here], s.ys[here], s.counts[here]
                logits = s.logits(xc, out=all_logits[: len(xc)])
                shift = into_range(logits)
                at_y = logits.gather(1, yc).to(s.dtype)
                odds = logits.exp_()
                sums = odds.sum(1, keepdim=True).to(s.dtype)
                nll = (sums.log() - at_y) * count
                plain += nll.sum()
                smoothed += (nll + smoothing * (at_y + shift - s.mean_logit(xc)) * count).sum()
                torch.div(odds @ s.w, sums, out=s.dx[0, here])
                share = count / sums
                s.dw += odds.T @ (xc * share).to(xc.dtype)
                if s.b is not None:
                    s.db += (odds.T @ share.to(xc.dtype))[:, 0]
        ctx.save_for_backward(*s.gradients(x, weight, bias, y, smoothing))
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw, db = ctx.saved_tensors
        return d_smoothed * dx, d_smoothed * dw, None if db is None else d_smoothed * db, None, None, None


class Sums:
    """Operands and sums of a loss over the vocabulary that is computed chunk by chunk.

    Attributes:
        w, b: The generator's weight ``(V, d_model)`` and bias ``(V,)`` (or None), in the precision of products.
        xs, ys, counts: Features of P passes ``(P, M, d_model)``, targets ``(M, 1)``, and 1 for each real target
            ``(M, 1)``. M is N rounded up to a multiple of ``ROWS``, so that shapes repeat; the added rows count 0.
        dx, dw, db: Gradients in ``dtype``, the precision of sums. The caller adds everything but the targets' part.
    """

    def __init__(self, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor) -> None:
        device = x.device.type
        products = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        self.dtype = torch.float64 if products == torch.float64 else torch.float32
        self.w, self.b = weight.detach().to(products), None if bias is None else bias.detach().to(products)
        room = -len(y) % ROWS
        self.xs, self.ys = F.pad(x.detach().to(products), (0, 0, 0, room)), F.pad(y, (0, room))[:, None]
        self.counts = F.pad(torch.ones_like(y, dtype=self.dtype), (0, room))[:, None]
        self.dx = torch.empty(self.xs.shape, dtype=self.dtype, device=x.device)
        self.dw, self.db = self.dx.new_zeros(weight.shape), self.dx.new_zeros(len(weight))
        self._w_mean = self.w.mean(0, dtype=self.dtype)
        self._b_mean = 0 if self.b is None else self.b.mean(dtype=self.dtype)

    def logits(self, x: Tensor, out: Tensor) -> Tensor:
        """Write the logits of ``x`` (n, d_model) to ``out`` (n, V), and return it."""
        return torch.mm(x, self.w.T, out=out) if self.b is None else torch.addmm(self.b, x, self.w.T, out=out)

    def mean_logit(self, x: Tensor) -> Tensor:
        """Return the mean logit of each row over the vocabulary ``(n, 1)``, without computing the logits."""
        return x.to(self.dtype) @ self._w_mean[:, None] + self._b_mean

    def gradients(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Add the part of the smoothed targets, as rank-one terms; return the gradients of ``x``, weight and bias."""
        n, n_passes, hit = len(y), len(x), 1 - smoothing
        mean_x = self.xs[:, :n].sum(0, dtype=self.dtype) / n_passes
        dx = self.dx[:, :n] - (hit * self.w[y].to(self.dtype) + smoothing * self._w_mean) / n_passes
        self.dw.index_add_(0, y, mean_x, alpha=-hit)
        self.dw -= smoothing / len(weight) * mean_x.sum(0)
        if bias is None:
            return dx.to(x.dtype), self.dw.to(weight.dtype), None
        self.db.index_add_(0, y, torch.ones_like(y, dtype=self.dtype), alpha=-hit)
        self.db -= smoothing / len(weight) * n
        return dx.to(x.dtype), self.dw.to(weight.dtype), self.db.to(bias.dtype)


def into_range(logits: Tensor) -> Tensor | float:
    """Subtract the maximum of each row, in place, if ``exp`` could overflow; return what was subtracted.

    On a CPU all logits are checked first, which takes a fifth of the time of subtracting. On a GPU the check would make
    the host wait, so the maximum is always subtracted.
    """
    if logits.device.type == "cpu":
        least, greatest = torch.aminmax(logits)
        if least > -IN_RANGE and greatest < IN_RANGE:  # (false for NaN)
            return 0.0
    greatest = logits.amax(1, keepdim=True)
    logits -= greatest
    return greatest.to(torch.promote_types(logits.dtype, torch.float32))
