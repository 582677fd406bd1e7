"""Eq. 1 and multi-head attention."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.config import ModelConfig
from dragoman.model.attention import MultiHeadAttention, attend
from dragoman.model.dropout import Dropout

B, H, Q, K, D_K, D_V = 2, 3, 5, 7, 11, 13


def projections(dtype: torch.dtype = torch.float64, grad: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    gen = torch.Generator().manual_seed(1)
    q, k, v = (
        torch.randn(B, H, length, width, generator=gen, dtype=torch.float64).to(dtype).requires_grad_(grad)
        for length, width in ((Q, D_K), (K, D_K), (K, D_V))
    )
    return q, k, v


def a_mask() -> Tensor:
    """Half of the keys seen; one query sees nothing, one a single key."""
    mask = torch.rand(B, 1, Q, K, generator=torch.Generator().manual_seed(2)) < 0.5
    mask[..., 0] = True
    mask[1, 0, 2] = False
    mask[0, 0, 3] = torch.arange(K) == 4
    return mask


def test_weights_sum_to_one_over_the_keys_that_may_be_seen() -> None:
    mask = a_mask()
    context, weights = attend(*projections(), mask)
    assert context.shape == (B, H, Q, D_V)
    assert weights.shape == (B, H, Q, K)
    want = mask.any(-1).double().expand(B, H, Q)  # 1, or 0 for the query that sees nothing
    torch.testing.assert_close(weights.sum(-1), want, rtol=0, atol=1e-14)
    assert (weights[~mask.expand_as(weights)] == 0).all()
    assert (weights[mask.expand_as(weights)] > 0).all()


def test_attend_equals_scaled_dot_product_attention() -> None:
    ours, theirs = projections(grad=True), projections(grad=True)
    context, _ = attend(*ours, a_mask())
    want = F.scaled_dot_product_attention(*theirs, a_mask())
    torch.testing.assert_close(context, want, rtol=1e-12, atol=1e-14)
    d_context = torch.randn(context.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    context.backward(d_context)
    want.backward(d_context)
    for got, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got.grad, expected.grad, rtol=1e-12, atol=1e-14)


def test_attend_by_hand() -> None:
    """Scores 0 and ln 3 after the scaling by sqrt(4): weights 1/4 and 3/4."""
    q = torch.tensor([2.0, 0, 0, 0], dtype=torch.float64).view(1, 1, 1, 4)
    k = torch.tensor([[0.0, 1, 1, 1], [math.log(3), 5, 5, 5]], dtype=torch.float64).view(1, 1, 2, 4)
    v = torch.tensor([[8.0], [4.0]], dtype=torch.float64).view(1, 1, 2, 1)
    context, weights = attend(q, k, v, None)
    torch.testing.assert_close(weights.flatten(), torch.tensor([0.25, 0.75], dtype=torch.float64))
    assert context.item() == pytest.approx(5.0)


def test_no_mask_is_a_mask_that_hides_nothing() -> None:
    q, k, v = projections()
    seen = torch.ones(1, 1, 1, K, dtype=torch.bool)
    for got, want in zip(attend(q, k, v, None), attend(q, k, v, seen), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_query_that_sees_nothing_gathers_zeros_and_its_gradients_are_finite(dtype: torch.dtype) -> None:
    q, k, v = projections(dtype, grad=True)
    mask = a_mask()
    context, weights = attend(q, k, v, mask)
    assert (context[1, :, 2] == 0).all()
    assert (weights[1, :, 2] == 0).all()
    assert context.isfinite().all()
    (context.float() ** 2 + context.float()).sum().backward()
    for x in (q, k, v):
        assert x.grad.isfinite().all()
        assert (x.grad != 0).any()
    assert (q.grad[1, :, 2] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_a_batch_that_sees_nothing_at_all_has_zero_gradients(dtype: torch.dtype) -> None:
    q, k, v = projections(dtype, grad=True)
    context, _ = attend(q, k, v, torch.zeros(B, 1, 1, K, dtype=torch.bool))
    assert (context == 0).all()
    context.sum().backward()
    assert all((x.grad == 0).all() for x in (q, k, v))


def test_hidden_keys_and_values_may_hold_anything_finite() -> None:
    q, k, v = projections()
    want, _ = attend(q, k, v, a_mask())
    hidden = ~a_mask().any(-2)[..., None].expand(B, H, K, 1)
    assert hidden.any()
    got, _ = attend(q, k.masked_fill(hidden, 1e6), v.masked_fill(hidden, -1e6), a_mask())
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)


def test_attention_dropout_thins_the_context_but_not_the_weights_handed_out() -> None:
    torch.manual_seed(0)
    dropout = Dropout(0.5)  # in training mode, as modules begin
    context, weights = attend(*projections(), a_mask(), dropout)
    want_context, want_weights = attend(*projections(), a_mask())
    assert torch.equal(weights, want_weights)
    assert not torch.allclose(context, want_context)
    assert torch.equal(attend(*projections(), a_mask(), dropout.eval())[0], want_context)


def test_heads_attend_side_by_side_and_are_projected_once_more() -> None:
    """Multi-head attention spelled out head by head, as the paper writes it."""
    torch.manual_seed(0)
    config = ModelConfig(src_vocab_size=7, tgt_vocab_size=7, d_model=14, n_heads=3, d_k=5, d_v=11)
    attention = MultiHeadAttention(config).double()
    x, y = torch.randn(2, Q, 14, dtype=torch.float64), torch.randn(2, K, 14, dtype=torch.float64)
    mask = a_mask()
    heads = []
    for h in range(3):
        q = x @ attention.w_q.weight[5 * h : 5 * h + 5].T + attention.w_q.bias[5 * h : 5 * h + 5]
        k = y @ attention.w_k.weight[5 * h : 5 * h + 5].T + attention.w_k.bias[5 * h : 5 * h + 5]
        v = y @ attention.w_v.weight[11 * h : 11 * h + 11].T + attention.w_v.bias[11 * h : 11 * h + 11]
        heads.append(attend(q[:, None], k[:, None], v[:, None], mask)[0][:, 0])
    want = torch.cat(heads, -1) @ attention.w_o.weight.T + attention.w_o.bias
    torch.testing.assert_close(attention(x, attention.keys_values(y), mask), want, rtol=1e-12, atol=1e-14)
