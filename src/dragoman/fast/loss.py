"""The label-smoothed loss straight from the features, without ever holding the logits of all positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.fast.projection import ROWS
from dragoman.fast.top_k import IN_RANGE


def chunked_loss(
    features: Tensor, weight: Tensor, bias: Tensor | None, tgt_out: Tensor, pad_id: int, smoothing: float,
    chunk: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Fast twin of ``label_smoothed_loss(generator(features), tgt_out, pad_id, smoothing)``.

    The gradient is formed beside the loss, one chunk of positions at a time, from the softmax alone; the smoothed
    target's part of it is added as rank-one terms. Products run in the autocast precision, sums in float32.

    Args:
        features: ``(B, T, d_model)``, the decoder's output.
        weight: The generator's, ``(V, d_model)``.
        bias: The generator's, ``(V,)``, or None.
        tgt_out: ``(B, T)`` int64; padding is left out.
        smoothing: Label smoothing in [0, 1).
        chunk: Positions whose logits are held at once; None: so many that these are 8 million.

    Returns:
        The smoothed loss, differentiable, and the unsmoothed one, each summed over tokens, in nats.
    """
    keep = tgt_out.flatten() != pad_id
    chunk = chunk or max(1, 2**23 // weight.size(0) // ROWS) * ROWS
    args = features.flatten(0, 1)[keep], weight, bias, tgt_out.flatten()[keep], smoothing, chunk
    return _ChunkedLoss.apply(*args)  # type: ignore[no-untyped-call]


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, smoothing: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        # x (N, d_model)  weight (V, d_model)  y (N,); logits z (n, V); odds exp(z) (n, V), whose softmax is odds / sum
        # loss_i = log sum exp(z_i) - (1 - e) z_iy - e mean(z_i);  d loss_i / d z_i = softmax - (1 - e) onehot - e / V
        n, n_vocab = x.size(0), weight.size(0)
        dtype = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else weight.dtype
        total = torch.float64 if dtype == torch.float64 else torch.float32
        w, b = weight.detach().to(dtype), None if bias is None else bias.detach().to(dtype)
        # rows that do not count fill up the last: shapes that come again
        room = -n % ROWS
        xs, ys = F.pad(x.detach().to(dtype), (0, 0, 0, room)), F.pad(y, (0, room))[:, None]
        counts = F.pad(torch.ones_like(y, dtype=total), (0, room))[:, None]
        dx = torch.empty(xs.shape, dtype=total, device=x.device)
        dw, db = dx.new_zeros(weight.shape), dx.new_zeros(n_vocab)
        smoothed, plain = dx.new_zeros(()), dx.new_zeros(())
        w_mean = w.sum(0, dtype=total) / n_vocab
        b_mean = 0 if b is None else b.sum(dtype=total) / n_vocab
        # the same memory for each chunk: fresh memory of this size costs more than the products
        all_logits = torch.empty((min(chunk, len(xs)), n_vocab), dtype=dtype, device=x.device)
        with torch.autocast(x.device.type, enabled=False):
            for start in range(0, len(xs), chunk):
                here = slice(start, start + chunk)
                xc, yc, count = xs[here], ys[here], counts[here]
                logits = all_logits[: len(xc)]
                if b is None:
                    torch.mm(xc, w.T, out=logits)
                else:
                    torch.addmm(b, xc, w.T, out=logits)
                shift = into_range(logits)
                at_y = logits.gather(1, yc).to(total)
                odds = logits.exp_()
                sums = odds.sum(1, keepdim=True).to(total)
                nll = (sums.log() - at_y) * count
                plain += nll.sum()
                mean = xc.to(total) @ w_mean[:, None] + b_mean
                smoothed += (nll + smoothing * (at_y + shift - mean) * count).sum()
                torch.div(odds @ w, sums, out=dx[here])
                share = count / sums
                dw += odds.T @ (xc * share).to(dtype)
                if b is not None:
                    db += (odds.T @ share.to(dtype))[:, 0]
            dx = dx[:n] - (1 - smoothing) * w[y].to(total) - smoothing * w_mean
            dw.index_add_(0, y, xs[:n].to(total), alpha=-(1 - smoothing))
            dw -= smoothing / n_vocab * xs.sum(0, dtype=total)
            if b is not None:
                db.index_add_(0, y, torch.ones_like(y, dtype=total), alpha=-(1 - smoothing))
                db -= smoothing / n_vocab * n
        ctx.save_for_backward(dx.to(x.dtype), dw.to(weight.dtype), None if bias is None else db.to(bias.dtype))
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw, db = ctx.saved_tensors
        return d_smoothed * dx, d_smoothed * dw, None if db is None else d_smoothed * db, None, None, None


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
