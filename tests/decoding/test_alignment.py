"""From attention to links between words."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.alignment import links, longest_unread
from dragoman.decoding.scoring import CrossAttention
from dragoman.decoding.words import pharaoh, token_words, word_numbers
from dragoman.errors import DecodeError


def test_words_are_what_stands_between_spaces_or_characters_where_there_are_none() -> None:
    assert word_numbers("a bc  d") == [0, -1, 1, 1, -1, -1, 2]
    assert word_numbers(" a\u3000b ") == [-1, 0, -1, 1, -1]
    assert word_numbers("我有 GPU。", unspaced=True) == [0, 1, -1, 2, 3, 4, 5]
    assert word_numbers("") == []


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_there_are_as_many_words_as_split_finds(text: str) -> None:
    assert max(word_numbers(text), default=-1) + 1 == len(text.split())


@given(st.text(st.sampled_from("aü猫 \t\u2581.😀"), max_size=20), st.randoms(use_true_random=False))
def test_however_a_text_is_cut_each_token_belongs_to_the_words_it_is_in(text: str, chance: object) -> None:
    data = (" " + text.replace("\u2581", " ")).encode()
    cuts = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(4))})  # type: ignore[attr-defined]
    pieces = [data[a:b] for a, b in pairwise(cuts)]
    numbers = word_numbers(text)
    owner = [-1] + [n for c, n in zip(text, numbers, strict=True) for _ in c.replace("\u2581", " ").encode()]
    got = token_words(list(pieces), text, numbers)
    want = [sorted({n for n in owner[a:b] if n >= 0}) for a, b in pairwise(cuts)]
    assert got == want


def test_what_no_step_attends_to_is_counted_where_it_is_longest() -> None:
    attention = torch.tensor([[0.9, 0.1, 0.0, 0.0, 0.0, 0.0], [0.0, 0.1, 0.5, 0.1, 0.1, 0.2]])  # (T, S)
    assert longest_unread(attention) == 2  # source tokens 3 and 4, more than 1 alone
    assert longest_unread(attention[:, :1]) == 0
    assert longest_unread(torch.zeros(3, 4)) == 4


def test_an_unknown_token_spells_what_stands_before_the_next_known_one() -> None:
    numbers = word_numbers("ab 猫猫 c")
    assert token_words([b" ab", b" ", None, b" c"], "ab 猫猫 c", numbers) == [[0], [], [1], [2]]
    assert token_words([b" ab", b" ", None], "ab 猫猫", numbers[:5]) == [[0], [], [1]]
    assert token_words([None, b" c"], "猫 c", [0, -1, 1]) == [[0], [1]]


def test_each_target_word_is_linked_to_the_source_word_its_subwords_look_at_most() -> None:
    attention = torch.tensor([
        [0.4, 0.3, 0.3, 0.0],  # to the two subwords of the second word more than to the one of the first
        [0.1, 0.1, 0.2, 0.6],  # and of this second subword of the word eos is not asked
        [0.9, 0.0, 0.0, 0.1],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip
    assert links(attention, [[0], [1], [1]], [[0], [0], [1]]) == ((0, 1), (1, 0))
    assert links(attention, [[0], [1, 2], []], [[0], [0], [1]]) == ((0, 0), (0, 1))
    assert links(attention, [[], [0, 1], [2]], [[0]]) == ((2, 0),)
    assert links(attention, [[0, 1], []], [[0], [1, 2]]) == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))
    assert links(attention, [], [[0]]) == links(attention, [[0]], []) == links(attention, [[]], [[]]) == ()
    far = 10**9  # as in a part of a long line: no matrix has a row or column for the words of other parts
    assert links(attention, [[far], [far + 1, far + 2], []], [[far], [far], [far + 1]]) == ((far, far), (far, far + 1))
    assert pharaoh(((0, 1), (1, 0))) == "0-1 1-0"


def test_without_cross_attention_there_is_nothing_to_align() -> None:
    cross = CrossAttention()
    cross.record("encoder.layers.0.self_attn", torch.zeros(1, 2, 3, 3))
    with pytest.raises(DecodeError, match="no cross-attention"):
        cross.mean()
