"""The label-smoothed loss straight from the features, without ever holding the logits of all positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.fast.projection import ROWS
from dragoman.fast.top_k import IN_RANGE

CPU_LOGITS = 2**23
"""So many are held at once on a CPU: about what its cache holds."""

GPU_LOGITS = 2**28
"""So many elsewhere: 1 GiB of float32. A kernel started costs as much as a million of them, and each chunk starts a
dozen, of which one goes through the whole gradient of the generator."""


def chunked_loss(
    features: Tensor, weight: Tensor, bias: Tensor | None, tgt_out: Tensor, pad_id: int, smoothing: float,
    chunk: int | None = None, where: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Fast twin of ``label_smoothed_loss(generator(features), tgt_out, pad_id, smoothing)``.

    The gradient is formed beside the loss, one chunk of positions at a time, from the softmax alone; the smoothed
    target's part of it is added as rank-one terms. Products, and each position's sum over the vocabulary, are in the
    autocast precision (of bfloat16 the latter is off by at most 0.2%, 0.002 nats); sums over positions in float32.

    Args:
        features: ``(B, T, d_model)``, the decoder's output.
        weight: The generator's, ``(V, d_model)``.
        bias: The generator's, ``(V,)``, or None.
        tgt_out: ``(B, T)`` int64; padding is left out.
        smoothing: Label smoothing in [0, 1).
        chunk: Positions whose logits are held at once; None: as ``positions_at_once`` says.
        where: ``Batch.where``; None: found here, for which a GPU would have to be waited for.

    Returns:
        The smoothed loss, differentiable, and the unsmoothed one, each summed over tokens, in nats.
    """
    where = cells_of(tgt_out, pad_id) if where is None else where
    x, y = (cells.flatten(0, 1).index_select(0, where) for cells in (features, tgt_out))
    args = x[None], weight, bias, y, smoothing, chunk or positions_at_once(weight.size(0), x.device.type)
    return _ChunkedLoss.apply(*args)  # type: ignore[no-untyped-call]


def cells_of(tgt_out: Tensor, pad_id: int) -> Tensor:
    """Which cells of ``(B, T)``, counted row by row, are no padding: ``(N,)``."""
    return (tgt_out.flatten() != pad_id).nonzero()[:, 0]


def positions_at_once(n_vocab: int, device: str) -> int:
    """So many that their logits are ``CPU_LOGITS`` or ``GPU_LOGITS``, in whole blocks of rows; at least one block."""
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
        # the same memory for each chunk: fresh memory of this size costs more than the products
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
    """What a loss over the vocabulary, made chunk by chunk, multiplies with and adds up.

    Attributes:
        w, b: The generator's, ``(V, d_model)`` and ``(V,)`` or None, in the precision of products.
        xs, ys, counts: ``(P, M, d_model)``, ``(M, 1)``, ``(M, 1)``: features of P passes, targets, and 1 for each; N of
            them and rows that do not count, up to whole blocks: shapes that come again.
        dx, dw, db: Gradients in the precision of sums, ``dtype``; for the caller to form, but for the targets' part.
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
        """Those of ``(n, d_model)`` features, written to ``out``, ``(n, V)``."""
        return torch.mm(x, self.w.T, out=out) if self.b is None else torch.addmm(self.b, x, self.w.T, out=out)

    def mean_logit(self, x: Tensor) -> Tensor:
        """The mean over the vocabulary of each row's logits, without these: ``(n, 1)``."""
        return x.to(self.dtype) @ self._w_mean[:, None] + self._b_mean

    def gradients(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Of what ``__init__`` was given, with the smoothed targets' part: rank-one terms, shared by the passes."""
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
    """Subtract the greatest of each row, in place, unless ``exp`` of all is in range without; returns what was taken.

    A look at the least and the greatest of all costs a fifth of it; on a GPU it would have to wait for the answer.
    """
    if logits.device.type == "cpu":
        least, greatest = torch.aminmax(logits)
        if least > -IN_RANGE and greatest < IN_RANGE:  # (false for NaN)
            return 0.0
    greatest = logits.amax(1, keepdim=True)
    logits -= greatest
    return greatest.to(torch.promote_types(logits.dtype, torch.float32))
