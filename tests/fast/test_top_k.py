"""The best extensions by blocks against a whole log-softmax and a whole top-k."""

import pytest
import torch
from torch import Tensor

from dragoman.fast.top_k import BLOCK, best_extensions, maxima_and_log_sum

NEVER = (0, 2)


def plain(logits: Tensor, scores: Tensor, n: int, never: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    log_p = logits.float().log_softmax(dim=-1) if logits.dtype.itemsize < 4 else logits.log_softmax(dim=-1)
    log_p[:, list(never)] = -torch.inf
    totals = scores[:, :, None] + log_p.view(*scores.shape, -1)
    best, where = totals.flatten(1).topk(n)
    return best, where


@pytest.mark.parametrize("n_vocab", [5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 1000, 8000])
@pytest.mark.parametrize(("n_sentences", "k"), [(1, 1), (7, 1), (3, 5), (40, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_they_are_those_of_the_whole(n_vocab: int, n_sentences: int, k: int, dtype: torch.dtype) -> None:
    gen = torch.Generator().manual_seed(n_vocab + k)
    logits = (4 * torch.randn(n_sentences * k, n_vocab, generator=gen)).to(dtype)
    scores = -3 * torch.rand(n_sentences, k, generator=gen)
    scores[0, k // 2 + 1 :] = -torch.inf  # as at the first step, when only one hypothesis is there
    n = min(2 * k, k * n_vocab)
    want, where_wanted = plain(logits.clone(), scores, n, NEVER)
    best, where, log_sum = best_extensions(logits.clone(), scores, n, NEVER)
    assert 0 <= int(where.min()) <= int(where.max()) < k * n_vocab  # of what may not be chosen, too
    close = dict(rtol=0, atol=1e-12 if dtype == torch.float64 else 4e-6)
    torch.testing.assert_close(best, want, **close)
    torch.testing.assert_close(log_sum, logits.to(best.dtype).logsumexp(dim=1), rtol=1e-6, atol=1e-5)
    if dtype != torch.bfloat16:  # whose logits are often equal, and any of equals may be taken
        finite = want.isfinite()
        assert torch.equal(where[finite], where_wanted[finite])


def test_a_token_that_is_not_chosen_still_counts_among_the_probabilities() -> None:
    logits = torch.zeros(1, 130)
    logits[0, [0, 2]] = 9.0
    best, where, _ = best_extensions(logits, torch.zeros(1, 1), 2, NEVER)
    assert not {0, 2} & set(where[0].tolist())
    torch.testing.assert_close(best[0, 0].exp(), torch.tensor(1 / (128 + 2 * torch.tensor(9.0).exp().item())))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("column", [0, 77, 129])
def test_a_logit_that_is_no_number_is_seen_in_the_sum(bad: float, column: int) -> None:
    logits = torch.randn(70, 130, generator=torch.Generator().manual_seed(0))
    logits[41, column] = bad
    _, _, log_sum = best_extensions(logits, torch.zeros(70, 1), 2, NEVER)
    assert log_sum.isfinite().tolist() == [row != 41 for row in range(70)]


def test_a_row_comes_out_alike_to_the_last_bit_alone_and_among_others() -> None:
    logits = 5 * torch.randn(100, 777, generator=torch.Generator().manual_seed(1))
    together = maxima_and_log_sum(logits)
    for row in (0, 31, 32, 99):
        for one, all_ in zip(maxima_and_log_sum(logits[row : row + 1]), together, strict=True):
            assert torch.equal(one[0], all_[row])
