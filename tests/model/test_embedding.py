"""Tokens and positions."""

import math

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.model.embedding import LearnedPositions, TokenEmbedding, position_angles, rotate, sinusoids

WIDTH = 14  # twice a prime


def a_config(**fields: object) -> ModelConfig:
    return ModelConfig(**{**dict(src_vocab_size=11, tgt_vocab_size=11, d_model=WIDTH, n_heads=2), **fields})


@pytest.mark.parametrize("start", [0, 1, 997, 1_000_000])
def test_sinusoids_follow_the_formula_even_far_out(start: int) -> None:
    table = sinusoids(start, 3, WIDTH)
    assert table.shape == (3, WIDTH)
    assert table.dtype == torch.float64
    for row in range(3):
        for i in range(WIDTH // 2):
            angle = (start + row) / 10000 ** (2 * i / WIDTH)
            assert table[row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoids_are_bounded_and_no_two_positions_are_alike() -> None:
    table = sinusoids(0, 2003, WIDTH)
    assert table.abs().max() <= 1
    distances = torch.cdist(table, table) + 10 * torch.eye(2003, dtype=torch.float64)
    assert distances.min() > 0.1


def test_a_later_start_is_a_later_window_of_the_same_table() -> None:
    torch.testing.assert_close(sinusoids(5, 7, WIDTH), sinusoids(0, 12, WIDTH)[5:], rtol=0, atol=0)


@pytest.mark.parametrize("offset", [1, 7, 101])
def test_a_shift_by_k_is_one_rotation_for_all_positions(offset: int) -> None:
    """Section 3.5: PE(pos + k) is a linear function of PE(pos), here by the angle k / 10000^(2i / d_model)."""
    here, there = sinusoids(0, 53, WIDTH), sinusoids(offset, 53, WIDTH)
    for i in range(WIDTH // 2):
        turn = offset / 10000 ** (2 * i / WIDTH)
        sine, cosine = here[:, 2 * i], here[:, 2 * i + 1]
        torch.testing.assert_close(there[:, 2 * i], sine * math.cos(turn) + cosine * math.sin(turn), atol=1e-12, rtol=0)
        torch.testing.assert_close(
            there[:, 2 * i + 1], cosine * math.cos(turn) - sine * math.sin(turn), atol=1e-12, rtol=0
        )


def test_rotation_multiplies_pairs_of_neighbours_as_complex_numbers() -> None:
    x = torch.randn(2, 3, 5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    got = rotate(x, position_angles(4, 5, WIDTH))
    for position in range(5):
        for i in range(WIDTH // 2):
            turn = complex(math.cos(a := (4 + position) / 10000 ** (2 * i / WIDTH)), math.sin(a))
            before = torch.view_as_complex(x[:, :, position, 2 * i : 2 * i + 2].contiguous())
            after = torch.view_as_complex(got[:, :, position, 2 * i : 2 * i + 2].contiguous())
            torch.testing.assert_close(after, before * turn, rtol=0, atol=1e-12)
    torch.testing.assert_close(got.norm(dim=-1), x.norm(dim=-1))


def test_rotary_scores_depend_on_the_offset_only() -> None:
    gen = torch.Generator().manual_seed(1)
    q = torch.randn(WIDTH, dtype=torch.float64, generator=gen).expand(1, 1, 11, WIDTH)  # the same at each position
    k = torch.randn(WIDTH, dtype=torch.float64, generator=gen).expand(1, 1, 11, WIDTH)
    near = rotate(q, position_angles(0, 11, WIDTH)) @ rotate(k, position_angles(0, 11, WIDTH)).mT
    far = rotate(q, position_angles(5003, 11, WIDTH)) @ rotate(k, position_angles(5003, 11, WIDTH)).mT
    torch.testing.assert_close(near, far, rtol=0, atol=1e-9)
    by_offset = [near[0, 0].diagonal(offset) for offset in range(-10, 11)]
    assert all((d - d[0]).abs().max() < 1e-12 for d in by_offset)
    firsts = torch.stack([d[0] for d in by_offset])
    assert firsts.unique().numel() == 21  # and they do depend on it


@pytest.mark.parametrize("scaled", [True, False])
def test_tokens_are_scaled_by_the_root_of_d_model_or_not(scaled: bool) -> None:
    embedding = TokenEmbedding(11, a_config(scale_embeddings=scaled))
    ids = torch.tensor([[3, 10, 3], [0, 1, 2]])
    want = embedding.weight[ids] * (math.sqrt(14) if scaled else 1.0)
    torch.testing.assert_close(embedding(ids), want)


def test_learned_positions_are_rows_of_a_table() -> None:
    positions = LearnedPositions(a_config(max_len=7))
    assert torch.equal(positions.window(0, 7), positions.weight)
    assert torch.equal(positions.window(3, 2), positions.weight[3:5])


@pytest.mark.parametrize(("start", "length"), [(0, 8), (7, 1), (5, 3)])
def test_learned_positions_end_at_max_len(start: int, length: int) -> None:
    positions = LearnedPositions(a_config(max_len=7))
    with pytest.raises(ConfigError, match=r"8 tokens is longer than model\.max_len = 7"):
        positions.window(start, length)
