"""Subwords drawn at random: the same in every process, and as SentencePiece draws them."""

from __future__ import annotations

import io
import itertools
import math
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.data.subword_sampling import LONGEST_REMEMBERED, VARIANTS, Sampler, Vocabulary
from dragoman.data.tokenizer import UNK_ID, Tokenizer

_chance = random.Random(3)
_SYLLABLES = ["ba", "de", "ki", "lo", "mu", "ra", "ti", "zu", "ön", "7", "日本"]
LINES = [
    " ".join("".join(_chance.choices(_SYLLABLES, k=_chance.randint(1, 4))) for _ in range(_chance.randint(1, 9)))
    for _ in range(600)
]
SETTINGS = {
    "bpe": TokenizerConfig(vocab_size=500),
    "bpe without bytes": TokenizerConfig(vocab_size=300, byte_fallback=False),
    "unigram": TokenizerConfig(kind="unigram", vocab_size=500),
    "unigram without bytes": TokenizerConfig(kind="unigram", vocab_size=200, byte_fallback=False),
}
TOKENIZERS = {name: Tokenizer.learn(LINES, config) for name, config in SETTINGS.items()}
NO_PREFIX = {"add_dummy_prefix": False}
SWITCHES: dict[str, dict[str, Any]] = {
    "no space before a text": NO_PREFIX,
    "no space before a text, and all others stay": NO_PREFIX | {"remove_extra_whitespaces": False},
    "all texts as they are": {"remove_extra_whitespaces": False, "normalization_rule_name": "identity"},
    "spaces behind words": {"treat_whitespace_as_suffix": True},
}
"""Settings that a vocabulary of another program may have."""


def imported(switches: dict[str, Any]) -> Tokenizer:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, model_type="bpe", vocab_size=500, byte_fallback=True,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, **switches,
    )  # fmt: skip
    return Tokenizer(model.getvalue())


TOKENIZERS |= {name: imported(switches) for name, switches in SWITCHES.items()}

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.lists(st.sampled_from([*_SYLLABLES, " ", "  ", "\t", "é", "<s>", "▁", "x" * 30])).map("".join),
)


@pytest.mark.parametrize("name", ["bpe", "bpe without bytes", *SWITCHES])
@settings(max_examples=150, deadline=None)
@given(text=texts)
@example(text=" a  b ")
@example(text="éé é")
def test_with_rate_0_byte_pairs_are_cut_as_sentencepiece_cuts_them(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    assert tokenizer.sample([text], 0.0, seed=1) == tokenizer.encode([text])


@pytest.mark.parametrize("name", SETTINGS)
def test_every_text_of_the_corpus_comes_back_and_is_cut_in_many_ways(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    for seed in range(3):
        assert tokenizer.decode(tokenizer.sample(LINES, 0.3, seed)) == LINES
    assert len({tuple(tokenizer.sample([LINES[0]], 0.3, seed)[0]) for seed in range(30)}) > 10


@pytest.mark.parametrize("name", ["bpe", "unigram"])
def test_the_draws_are_the_same_in_another_process(name: str, tmp_path: Path) -> None:
    tokenizer = TOKENIZERS[name]
    tokenizer.save(tmp_path / "x.spm")
    script = """
import sys
from dragoman.data.tokenizer import Tokenizer
tokenizer = Tokenizer.load(sys.argv[1])
print([tokenizer.sample(sys.argv[2:], 0.2, seed) for seed in (0, 1, 2**32 - 1, 2**63 - 1)])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "x.spm", *LINES[:50]], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[tokenizer.sample(LINES[:50], 0.2, seed) for seed in (0, 1, 2**32 - 1, 2**63 - 1)]}\n"


@pytest.mark.parametrize(("name", "rate"), [("bpe", 0.1), ("bpe", 0.5), ("unigram", 0.2), ("unigram", 1.0)])
def test_the_cuts_are_as_frequent_as_those_of_sentencepiece(name: str, rate: float) -> None:
    tokenizer, n = TOKENIZERS[name], 5000
    sampler, theirs_too = tokenizer.sampler(rate), sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    for word in ("bade", "kilomu", "zu"):
        mine = Counter(sampler.variant_of(f"▁{word}", number) for number in range(n))
        drawn = theirs_too.encode([word] * n, enable_sampling=True, alpha=rate, nbest_size=-1, num_threads=1)
        theirs = Counter(map(tuple, drawn))
        commonest = {ids for counts in (mine, theirs) for ids, _ in counts.most_common(8)}
        for ids in commonest:
            p = (mine[ids] + theirs[ids]) / 2 / n
            assert abs(mine[ids] - theirs[ids]) / n < 5 * math.sqrt(2 * p * (1 - p) / n), (word, ids)


def test_a_unigram_segmentation_has_its_probability_to_the_power_of_the_rate() -> None:
    scores = {"▁": -1.0, "a": -2.0, "b": -2.5, "ab": -3.0, "▁a": -2.2, "▁ab": -6.0}
    ids = {piece: i + 4 for i, piece in enumerate(scores)}
    sampler = Sampler(Vocabulary(ids, scores, (), UNK_ID, True), 0.5)
    weights = {}
    for cuts in itertools.product((0, 1), repeat=2):
        pieces, start = [], 0
        for end in [i + 1 for i, cut in enumerate(cuts) if cut] + [3]:
            pieces.append("▁ab"[start:end])
            start = end
        if all(piece in scores for piece in pieces):
            weights[tuple(ids[piece] for piece in pieces)] = math.exp(0.5 * sum(scores[piece] for piece in pieces))
    assert len(weights) == 4
    n = 20_000
    found = Counter(sampler.variant_of("▁ab", number) for number in range(n))
    for cut, weight in weights.items():
        assert found[cut] / n == pytest.approx(weight / sum(weights.values()), abs=0.02)


def test_what_is_unknown_comes_once_for_any_number_of_characters() -> None:
    for name in ("bpe without bytes", "unigram without bytes"):
        tokenizer = TOKENIZERS[name]
        for text in ("éé", "é é", "ba ééé de"):
            (sampled,), (encoded,) = tokenizer.sample([text], 0.2, 1), tokenizer.encode([text])
            assert sampled.count(UNK_ID) == encoded.count(UNK_ID) >= 1


def test_words_have_many_cuts_and_long_ones_are_not_remembered() -> None:
    tokenizer = TOKENIZERS["bpe"]
    sampler = tokenizer.sampler(0.5)
    before = sampler.remembered.cache_info().currsize
    tokenizer.sample(["badekilo" * 4], 0.5, 1)
    assert len("badekilo" * 4) > LONGEST_REMEMBERED
    assert sampler.remembered.cache_info().currsize == before
    cuts = {tuple(tokenizer.sample(["badekilomu"], 0.5, seed)[0]) for seed in range(400)}
    assert VARIANTS / 4 < len(cuts) <= VARIANTS
