"""The table of variants holds what the configuration allows, and few rows hold every pair of values."""

from __future__ import annotations

from itertools import combinations

from dragoman.config import ModelConfig, ModelOptions
from model_variants import CHOICES, FACTORS, VARIANTS, every, fields_of, pairwise

NUMBERS = {
    "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "d_k", "d_v", "dropout", "attention_dropout",
    "activation_dropout", "norm_eps", "max_len", "kernel_width",
}  # fmt: skip


def test_every_value_of_every_choice_is_in_the_table() -> None:
    assert CHOICES["norm"] == ("post", "pre")
    assert CHOICES["generator_bias"] == (False, True)
    for name, values in CHOICES.items():
        assert {fields.get(name, values[0]) for fields in VARIANTS.values()} == set(values), name


def test_a_setting_is_a_choice_or_a_number_that_tests_know() -> None:
    """A new one that is neither fails here: give it a row in ``VARIANTS``, then name it above."""
    assert set(ModelOptions.model_fields) == {*CHOICES, *NUMBERS, "architecture"}


def test_in_few_rows_each_pair_of_values_meets() -> None:
    rows, full = pairwise(FACTORS), every(FACTORS)
    assert len(full) == 2 * 4 * 3 * 3 * 2**5
    assert len(rows) <= 20
    for one, other in combinations(FACTORS, 2):
        wanted = [(x, y) for x in FACTORS[one] for y in FACTORS[other]]
        assert all((x, y) in [(row[one], row[other]) for row in rows] for x, y in wanted), (one, other)
    assert pairwise(FACTORS) == rows
    assert all(row in full for row in rows)
    for row in rows:
        ModelConfig(**{"src_vocab_size": 13, "tgt_vocab_size": 13, "d_model": 12, "n_heads": 3, **fields_of(row)})


def test_a_new_value_of_a_choice_meets_all_others_too() -> None:
    rows = pairwise({**FACTORS, "activation": (*FACTORS["activation"], "new")})
    met = {(row["norm"], row["positions"]) for row in rows if row["activation"] == "new"}
    assert {norm for norm, _ in met} == {"post", "pre"}
    assert {positions for _, positions in met} == set(FACTORS["positions"])


def test_pairs_of_factors_with_one_value_or_none_besides_are_rows_too() -> None:
    assert pairwise({"a": [1], "b": [2, 3]}) == [{"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert pairwise({"a": [1, 2], "b": [3, 4], "c": [5, 6]}) == [
        {"a": 1, "b": 3, "c": 5}, {"a": 1, "b": 4, "c": 6}, {"a": 2, "b": 3, "c": 6}, {"a": 2, "b": 4, "c": 5},
    ]  # fmt: skip
