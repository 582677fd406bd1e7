"""The optimised dropout against torch.nn.functional.dropout."""

import pytest
import torch
from torch.nn import functional as F

from dragoman.model.dropout import dropout

N = 300_007  # prime, so no multiple of the four elements that one draw serves


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


def within_five_sigma(dropped: torch.Tensor, p: float) -> bool:
    sigma = (p * (1 - p) / dropped.numel()) ** 0.5
    return abs(dropped.double().mean().item() - p) < 5 * sigma + 1 / 131072  # p is rounded to 1 / 65536


@pytest.mark.parametrize("p", [0.001, 0.1, 0.25, 0.5, 0.9, 0.999])
def test_it_drops_at_the_rate_of_f_dropout(p: float) -> None:
    x = torch.ones(N)
    assert within_five_sigma(dropout(x, p) == 0, p)
    assert within_five_sigma(F.dropout(x, p) == 0, p)  # the measure is fair


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_what_stays_is_scaled_as_by_f_dropout(p: float) -> None:
    x = torch.randn(N, dtype=torch.float64)
    ours, theirs = dropout(x, p), F.dropout(x, p)
    both = (ours != 0) & (theirs != 0)
    assert both.sum() > 0.5 * (1 - p) ** 2 * N
    torch.testing.assert_close(ours[both], theirs[both], rtol=1e-3 if p == 0.9 else 1e-4, atol=0)
    level = round(p * 65536)
    kept = ours[ours != 0] / x[ours != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 65536 / (65536 - level)), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_the_gradient_passes_where_the_value_passed(dtype: torch.dtype) -> None:
    x = torch.ones(101, 103, dtype=dtype, requires_grad=True)
    y = dropout(x, 0.3)
    assert y.dtype == dtype
    assert y.shape == x.shape
    d_y = torch.randn(101, 103).to(dtype)
    y.backward(d_y)
    torch.testing.assert_close(x.grad, d_y * y.detach(), rtol=0, atol=0)
    assert within_five_sigma(x.grad == 0, 0.3)
    assert y.detach().unique().tolist() == [0, pytest.approx(1 / 0.7, rel=torch.finfo(dtype).eps + 1e-4)]


def test_bfloat16_and_float16_are_dropped_like_float32() -> None:
    masks = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.manual_seed(7)
        masks.append(dropout(torch.ones(N, dtype=dtype), 0.2) == 0)
    assert within_five_sigma(masks[0], 0.2)
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])


@pytest.mark.parametrize("p", [0.0, 1e-9])
def test_a_rate_of_zero_is_the_identity_and_draws_nothing(p: float) -> None:
    x = torch.randn(7, 11)
    before = torch.get_rng_state()
    assert dropout(x, p) is x
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (5,), (7, 1), (3, 5, 7), (2, 3, 5, 7), (0,), (3, 0)])
def test_any_shape_will_do(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    y = dropout(x, 0.5)
    assert y.shape == x.shape
    assert y.unique().tolist() in ([], [0.0], [2.0], [0.0, 2.0])
    assert torch.equal(x, torch.ones(shape))  # the input is left as it was


def test_a_transposed_tensor_is_dropped_element_by_element() -> None:
    x = torch.arange(1.0, 101 * 103 + 1).view(101, 103).T
    y = dropout(x, 0.25)
    assert within_five_sigma(y == 0, 0.25)
    assert ((y == 0) | ((y - x / 0.75).abs() < 1e-2)).all()


def test_a_seed_fixes_the_draw_and_the_next_call_draws_again() -> None:
    x = torch.ones(1009)
    one, two = dropout(x, 0.4), dropout(x, 0.4)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.4), one)
    assert torch.equal(dropout(x, 0.4), two)
    assert not torch.equal(one, two)
    torch.manual_seed(6)
    assert not torch.equal(dropout(x, 0.4), one)


def test_the_four_elements_of_one_draw_are_independent() -> None:
    dropped = (dropout(torch.ones(400_000), 0.5) == 0).double().view(-1, 4)
    for column in range(4):
        assert within_five_sigma(dropped[:, column], 0.5)
    correlation = torch.corrcoef(dropped.T) - torch.eye(4, dtype=torch.float64)
    assert correlation.abs().max() < 5 / 100_000**0.5
    after = torch.corrcoef(torch.stack((dropped[:-1, 3], dropped[1:, 0])))[0, 1]  # of the next draw
    assert abs(after) < 5 / 100_000**0.5


def test_a_rate_next_to_one_drops_all() -> None:
    assert (dropout(torch.ones(1009), 1 - 1e-9) == 0).all()
