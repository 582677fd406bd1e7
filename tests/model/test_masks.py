"""Masks as literal tables: 1 = may attend."""

import torch

from dragoman.model.masks import causal_mask, padding_mask, target_mask


def test_the_causal_mask_lets_each_position_see_itself_and_the_past() -> None:
    mask = causal_mask(4)
    assert mask.dtype == torch.bool
    assert mask.shape == (1, 1, 4, 4)
    assert mask[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_the_padding_mask_lets_every_query_see_what_is_no_padding() -> None:
    mask = padding_mask(torch.tensor([[5, 7, 3], [3, 0, 0], [0, 0, 0], [0, 4, 3]]), pad_id=0)
    assert mask.dtype == torch.bool
    assert mask.shape == (4, 1, 1, 3)
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 1]]


def test_the_padding_mask_goes_by_the_id_it_is_told() -> None:
    assert padding_mask(torch.tensor([[5, 0, 7]]), pad_id=7)[0, 0, 0].int().tolist() == [1, 1, 0]


def test_the_target_mask_is_both_together_for_each_sentence() -> None:
    mask = target_mask(torch.tensor([[2, 6, 4], [2, 0, 0], [0, 2, 9]]), pad_id=0)
    assert mask.dtype == torch.bool
    assert mask.shape == (3, 1, 3, 3)
    assert mask[:, 0].int().tolist() == [
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        [[1, 0, 0], [1, 0, 0], [1, 0, 0]],
        [[0, 0, 0], [0, 1, 0], [0, 1, 1]],
    ]
