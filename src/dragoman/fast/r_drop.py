"""The loss of R-Drop straight from the features of both passes, without ever holding the logits of all positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.fast.loss import Sums, cells_of, into_range, positions_at_once


def chunked_r_drop_loss(
    features: Tensor, weight: Tensor, bias: Tensor | None, tgt_out: Tensor, pad_id: int, smoothing: float,
    alpha: float, chunk: int | None = None, where: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Fast twin of ``training.loss.r_drop_loss``, which says what it is.

    As in ``chunked_loss`` the gradient is formed beside the loss. Products, sums over the vocabulary and what is done
    to each logit are in the autocast precision; sums over positions in float32.

    Args:
        features: ``(2B, T, d_model)``: the batch, and the same batch again.
        weight: The generator's, ``(V, d_model)``.
        bias: The generator's, ``(V,)``, or None.
        tgt_out: ``(B, T)`` int64; padding is left out.
        smoothing: Label smoothing in [0, 1).
        alpha: Weight of the divergence.
        chunk: Positions whose logits are held at once; None: half of what ``positions_at_once`` says, for two passes.
        where: ``Batch.where``; None: found here, for which a GPU would have to be waited for.

    Returns:
        The loss, differentiable, and the mean unsmoothed one of both passes, each summed over tokens, in nats.
    """
    where = cells_of(tgt_out, pad_id) if where is None else where
    chunk = chunk or positions_at_once(2 * weight.size(0), features.device.type)
    x = torch.stack([half.flatten(0, 1).index_select(0, where) for half in features.chunk(2)])  # (2, N, d_model)
    args = x, weight, bias, tgt_out.flatten().index_select(0, where), smoothing, alpha, chunk
    return _RDropLoss.apply(*args)  # type: ignore[no-untyped-call]


class _RDropLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, smoothing: float, alpha: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        # x (2, N, d_model)  weight (V, d_model)  y (N,); logits z, z' (n, V) of the two passes, p and q their softmax
        # divergence D = sum (p - q) (log p - log q);  d D / d z = p (log p - log q - KL(p || q)) + p - q, and so for z'
        s, k = Sums(x, weight, bias, y), alpha / 4
        loss, plain = s.dx.new_zeros(()), s.dx.new_zeros(())
        all_logits = torch.empty((2 * min(chunk, len(s.ys)), len(weight)), dtype=s.w.dtype, device=x.device)
        all_grads = torch.empty_like(all_logits)
        with torch.autocast(x.device.type, enabled=False):
            for start in range(0, len(s.ys), chunk):
                here = slice(start, start + chunk)
                xc, yc, count = s.xs[:, here].flatten(0, 1), s.ys[here].repeat(2, 1), s.counts[here].repeat(2, 1)
                logits = s.logits(xc, out=all_logits[: len(xc)])  # of the first pass, then of the second
                grads = all_grads[: len(xc)]
                (p, q), (dp, dq) = logits.chunk(2), grads.chunk(2)
                shift = into_range(logits)
                at_y = logits.gather(1, yc).to(s.dtype)
                apart = torch.sub(p, q, out=dq)
                sums = logits.exp_().sum(1, keepdim=True).to(s.dtype)
                log_sums = sums.log()
                nll = (log_sums - at_y) * count
                plain += nll.sum() / 2
                loss += (nll + smoothing * (at_y + shift - s.mean_logit(xc)) * count).sum() / 2

                further = log_sums[: len(p)] - log_sums[len(p) :]  # log p - log q = apart - further
                expected = torch.cat([torch.mul(side, apart, out=dp).sum(1, keepdim=True) for side in (p, q)])
                signs = torch.ones_like(sums)
                signs[len(p) :] = -1
                kl = signs * (expected.to(s.dtype) / sums - further.repeat(2, 1))  # KL(p || q), then KL(q || p)
                loss += k * (kl * count).sum()
                share = count / sums
                own = (share * (0.5 + k * (1 - signs * further.repeat(2, 1) - kl))).to(xc.dtype).chunk(2)
                steep, other = (k * share * signs).to(xc.dtype).chunk(2), (-k * share).to(xc.dtype).chunk(2)
                torch.mul(apart, steep[0], out=dp).add_(own[0]).mul_(p).addcmul_(q, other[1])
                dq.mul_(steep[1]).add_(own[1]).mul_(q).addcmul_(p, other[0])  # (apart is dq)

                s.dx[:, here] = (grads @ s.w).view(2, -1, x.size(2))
                s.dw += grads.T @ xc
                if s.b is not None:
                    s.db += grads.sum(0, dtype=s.dtype)
        ctx.save_for_backward(*s.gradients(x, weight, bias, y, smoothing))
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw, db = ctx.saved_tensors
        return d_loss * dx, d_loss * dw, None if db is None else d_loss * db, None, None, None, None
