"""The loss of R-Drop straight from the features of both passes, without ever holding the logits of all positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.fast.loss import into_range
from dragoman.fast.projection import ROWS


def chunked_r_drop_loss(
    features: Tensor, weight: Tensor, bias: Tensor | None, tgt_out: Tensor, pad_id: int, smoothing: float,
    alpha: float, chunk: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Fast twin of ``training.loss.r_drop_loss``, which says what it is.

    As in ``chunked_loss`` the gradient is formed beside the loss. Products run in the autocast precision, and so does
    what is done to each logit; sums are float32.

    Args:
        features: ``(2B, T, d_model)``: the batch, and the same batch again.
        weight: The generator's, ``(V, d_model)``.
        bias: The generator's, ``(V,)``, or None.
        tgt_out: ``(B, T)`` int64; padding is left out.
        smoothing: Label smoothing in [0, 1).
        alpha: Weight of the divergence.
        chunk: Positions whose logits are held at once; None: so many that these, of both passes, are 8 million.

    Returns:
        The loss, differentiable, and the mean unsmoothed one of both passes, each summed over tokens, in nats.
    """
    keep = tgt_out.flatten() != pad_id
    chunk = chunk or max(1, 2**22 // weight.size(0) // ROWS) * ROWS
    x = torch.stack([half.flatten(0, 1)[keep] for half in features.chunk(2)])  # (2, N, d_model)
    args = x, weight, bias, tgt_out.flatten()[keep], smoothing, alpha, chunk
    return _RDropLoss.apply(*args)  # type: ignore[no-untyped-call]


class _RDropLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, smoothing: float, alpha: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        # x (2, N, d_model)  weight (V, d_model)  y (N,); logits z, z' (n, V) of the two passes, p and q their softmax
        # divergence D = sum (p - q) (log p - log q);  d D / d z = p (log p - log q - KL(p || q)) + p - q, and so for z'
        n, n_vocab, k = x.size(1), weight.size(0), alpha / 4
        dtype = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else weight.dtype
        total = torch.float64 if dtype == torch.float64 else torch.float32
        w, b = weight.detach().to(dtype), None if bias is None else bias.detach().to(dtype)
        room = -n % ROWS  # rows that do not count: shapes that come again
        xs, ys = F.pad(x.detach().to(dtype), (0, 0, 0, room)), F.pad(y, (0, room))[:, None]
        counts = F.pad(torch.ones_like(y, dtype=total), (0, room))[:, None]
        dx = torch.empty(xs.shape, dtype=total, device=x.device)
        dw, db = dx.new_zeros(weight.shape), dx.new_zeros(n_vocab)
        loss, plain = dx.new_zeros(()), dx.new_zeros(())
        w_mean = w.sum(0, dtype=total) / n_vocab
        b_mean = 0 if b is None else b.sum(dtype=total) / n_vocab
        all_logits = torch.empty((2 * min(chunk, len(ys)), n_vocab), dtype=dtype, device=x.device)
        all_grads = torch.empty_like(all_logits)
        with torch.autocast(x.device.type, enabled=False):
            for start in range(0, len(ys), chunk):
                here = slice(start, start + chunk)
                xc, yc, count = xs[:, here].flatten(0, 1), ys[here].repeat(2, 1), counts[here].repeat(2, 1)
                logits, grads = all_logits[: len(xc)], all_grads[: len(xc)]  # of the first pass, then of the second
                (p, q), (dp, dq) = logits.chunk(2), grads.chunk(2)
                if b is None:
                    torch.mm(xc, w.T, out=logits)
                else:
                    torch.addmm(b, xc, w.T, out=logits)
                shift = into_range(logits)
                at_y = logits.gather(1, yc).to(total)
                apart = torch.sub(p, q, out=dq)
                sums = logits.exp_().sum(1, keepdim=True).to(total)
                log_sums = sums.log()
                nll = (log_sums - at_y) * count
                plain += nll.sum() / 2
                mean = xc.to(total) @ w_mean[:, None] + b_mean
                loss += (nll + smoothing * (at_y + shift - mean) * count).sum() / 2

                further = log_sums[: len(p)] - log_sums[len(p) :]  # log p - log q = apart - further
                expected = torch.cat([torch.mul(side, apart, out=dp).sum(1, keepdim=True) for side in (p, q)])
                signs = torch.ones_like(sums)
                signs[len(p) :] = -1
                kl = signs * (expected.to(total) / sums - further.repeat(2, 1))  # KL(p || q), then KL(q || p)
                loss += k * (kl * count).sum()
                share = count / sums
                own = (share * (0.5 + k * (1 - signs * further.repeat(2, 1) - kl))).to(dtype).chunk(2)
                steep, other = (k * share * signs).to(dtype).chunk(2), (-k * share).to(dtype).chunk(2)
                torch.mul(apart, steep[0], out=dp).add_(own[0]).mul_(p).addcmul_(q, other[1])
                dq.mul_(steep[1]).add_(own[1]).mul_(q).addcmul_(p, other[0])  # (apart is dq)

                dx[:, here] = (grads @ w).view(2, -1, x.size(2))
                dw += grads.T @ xc
                if b is not None:
                    db += grads.sum(0, dtype=total)
            ones, both = torch.ones_like(y, dtype=total), xs[:, :n].sum(0, dtype=total) / 2
            dx = dx[:, :n] - ((1 - smoothing) * w[y].to(total) + smoothing * w_mean) / 2
            dw.index_add_(0, y, both, alpha=-(1 - smoothing))
            dw -= smoothing / n_vocab * both.sum(0)
            if b is not None:
                db.index_add_(0, y, ones, alpha=-(1 - smoothing))
                db -= smoothing / n_vocab * n
        ctx.save_for_backward(dx.to(x.dtype), dw.to(weight.dtype), None if bias is None else db.to(bias.dtype))
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw, db = ctx.saved_tensors
        return d_loss * dx, d_loss * dw, None if db is None else d_loss * db, None, None, None, None
