"""The label-smoothed loss straight from the features, without ever holding the logits of all positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
    chunk = chunk or max(1, 2**23 // weight.size(0))
    args = features.flatten(0, 1)[keep], weight, bias, tgt_out.flatten()[keep], smoothing, chunk
    return _ChunkedLoss.apply(*args)  # type: ignore[no-untyped-call]


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, smoothing: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        # x (N, d_model)  weight (V, d_model)  y (N,); p: softmax (N, V)
        # loss_i = log sum exp(z_i) - (1 - e) z_iy - e mean(z_i);  d loss_i / d z_i = p_i - (1 - e) onehot - e / V
        n_vocab = weight.size(0)
        dtype = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else weight.dtype
        total = torch.float64 if dtype == torch.float64 else torch.float32
        w, xs = weight.detach().to(dtype), x.detach().to(dtype)
        b = None if bias is None else bias.detach().to(dtype)
        dx = torch.empty_like(xs)
        dw = torch.zeros(weight.shape, dtype=total, device=x.device)
        db = torch.zeros(n_vocab, dtype=total, device=x.device)
        smoothed = torch.zeros((), dtype=total, device=x.device)
        plain = torch.zeros((), dtype=total, device=x.device)
        w_mean = w.sum(0, dtype=total)[:, None] / n_vocab
        b_mean = 0 if b is None else b.sum(dtype=total) / n_vocab
        # the same memory for each chunk: fresh memory of this size costs more than the softmax
        all_logits = torch.empty((min(chunk, x.size(0)), n_vocab), dtype=dtype, device=x.device)
        all_p = torch.empty_like(all_logits)
        with torch.autocast(x.device.type, enabled=False):
            for start in range(0, x.size(0), chunk):
                xc, yc = xs[start : start + chunk], y[start : start + chunk, None]
                logits, p = all_logits[: len(xc)], all_p[: len(xc)]
                if b is None:
                    torch.mm(xc, w.T, out=logits)
                else:
                    torch.addmm(b, xc, w.T, out=logits)
                torch.softmax(logits, dim=-1, out=p)
                nll = _surprise(logits, p, yc, total)
                at_y = logits.gather(1, yc).to(total)
                plain += nll.sum()
                smoothed += (nll + smoothing * (at_y - xc.to(total) @ w_mean - b_mean)).sum()
                torch.mm(p, w, out=dx[start : start + chunk])
                dw += p.T @ xc
                if b is not None:
                    db += p.sum(0, dtype=total)
            dx = dx.to(total) - (1 - smoothing) * w[y].to(total) - smoothing / n_vocab * w.sum(0, dtype=total)
            dw.index_add_(0, y, xs.to(total), alpha=-(1 - smoothing))
            dw -= smoothing / n_vocab * xs.sum(0, dtype=total)
            db.index_add_(0, y, torch.ones_like(y, dtype=total), alpha=-(1 - smoothing))
            db -= smoothing / n_vocab * x.size(0)
        ctx.save_for_backward(dx.to(x.dtype), dw.to(weight.dtype), None if bias is None else db.to(bias.dtype))
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw, db = ctx.saved_tensors
        return d_smoothed * dx, d_smoothed * dw, None if db is None else d_smoothed * db, None, None, None


def _surprise(logits: Tensor, p: Tensor, y: Tensor, total: torch.dtype) -> Tensor:
    """``-log p[y]``, ``(n, 1)``; where that is too small for a number, from the logits."""
    p_y = p.gather(1, y).to(total)
    lost = p_y < 1e-30
    if bool(lost.any()):
        exact = logits.to(total).logsumexp(-1, keepdim=True) - logits.gather(1, y).to(total)
        return torch.where(lost, exact, -p_y.clamp(min=1e-30).log())
    return -p_y.log()
