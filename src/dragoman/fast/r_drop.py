"""The R-Drop loss from the features of both passes, without holding the logits of all positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.fast.loss import Sums, Targets, into_range, positions_at_once


def chunked_r_drop_loss(
    features: Tensor, weight: Tensor, bias: Tensor | None, targets: Targets, alpha: float, chunk: int | None = None
) -> tuple[Tensor, Tensor]:
    """Compute ``training.loss.r_drop_loss`` and its gradient, a chunk of positions at a time.

    The gradient is computed together with the loss, as in ``chunked_loss``. Products, sums over the vocabulary and
    elementwise work on logits are in the autocast precision; sums over positions are in float32.

    Args:
        features: ``(2B, T, d_model)``: the batch, then the same batch again with other dropout.
        weight: The generator's weight, ``(V, d_model)``.
        bias: The generator's bias, ``(V,)``, or None.
        targets: The target tokens ``(B, T)`` and the label smoothing.
        alpha: Weight of the divergence between the two passes.
        chunk: Positions whose logits are held at once; None: half as many as in ``chunked_loss``, as there are two
            passes.

    Returns:
        The loss, differentiable, and the mean unsmoothed loss of both passes, each summed over tokens, in nats.
    """
    real = targets.real()
    chunk = chunk or positions_at_once(2 * weight.size(0), features.device.type)
    x = torch.stack([half.flatten(0, 1).index_select(0, real) for half in features.chunk(2)])  # (2, N, d_model)
    args = x, weight, bias, targets.tgt_out.flatten().index_select(0, real), targets.smoothing, alpha, chunk
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
                logit_gap = torch.sub(p, q, out=dq)
                sums = logits.exp_().sum(1, keepdim=True).to(s.dtype)
                log_sums = sums.log()
                nll = (log_sums - at_y) * count
                plain += nll.sum() / 2
                loss += (nll + smoothing * (at_y + shift - s.mean_logit(xc)) * count).sum() / 2

                log_sum_gap = log_sums[: len(p)] - log_sums[len(p) :]  # log p - log q = logit_gap - log_sum_gap
                expected = torch.cat([torch.mul(side, logit_gap, out=dp).sum(1, keepdim=True) for side in (p, q)])
                signs = torch.ones_like(sums)
                signs[len(p) :] = -1
                kl = signs * (expected.to(s.dtype) / sums - log_sum_gap.repeat(2, 1))  # KL(p || q), then KL(q || p)
                loss += k * (kl * count).sum()
                share = count / sums
                own_slope = (share * (0.5 + k * (1 - signs * log_sum_gap.repeat(2, 1) - kl))).to(xc.dtype).chunk(2)
                gap_slope, other_slope = (k * share * signs).to(xc.dtype).chunk(2), (-k * share).to(xc.dtype).chunk(2)
                torch.mul(logit_gap, gap_slope[0], out=dp).add_(own_slope[0]).mul_(p).addcmul_(q, other_slope[1])
                dq.mul_(gap_slope[1]).add_(own_slope[1]).mul_(q).addcmul_(
                    p, other_slope[0]
                )  # (logit_gap shares the memory of dq)

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
