"""Tables of beam search that fairseq and tensor2tensor test with, and what others say of penalties and constraints."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from probability_table import EOS, FIRST_WORD, Table
from safetensors.torch import save_file
from torch import Tensor

from dragoman.config import LengthPenalty
from dragoman.decoding.constraints import Rules, Spelling, following, repeating
from dragoman.decoding.scoring import read_all
from dragoman.training.averaging import average_checkpoints

Suite = Callable[[str, int], Any]

# --- fairseq ----------------------------------------------------------------------------------------------------------

FAIRSEQ = [  # columns: eos, w1, w2; two places in the beam of each of two sentences
    [[0.0, 0.9, 0.1], [0.0, 0.9, 0.1], [0.0, 0.7, 0.3], [0.0, 0.7, 0.3]],
    [[1.0, 0.0, 0.0], [0.0, 0.9, 0.1], [0.25, 0.35, 0.4], [0.0, 0.1, 0.9]],
    [[0.0, 0.1, 0.9], [0.6, 0.2, 0.2], [0.6, 0.4, 0.0], [0.01, 0.0, 0.99]],
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.1, 0.5, 0.4], [1.0, 0.0, 0.0]],
]
W1, W2 = 0, 1
A, B = ([W1], [0.9, 1.0]), ([W2, W1, W2], [0.1, 0.9, 0.9, 1.0])
C, D = ([W1, W2, W1], [0.7, 0.4, 0.4, 1.0]), ([W1, W2], [0.7, 0.4, 0.6])
CASES = {  # alpha of n ** alpha, the most tokens with eos, and the hypotheses: two of each sentence, best first
    "normalised": (1.0, 200, [A, B, C, D]),
    "not normalised": (0.0, 200, [A, B, D, C]),
    "lenpen 0.6": (0.6, 200, [A, B, D, C]),
    "lenpen 5": (5.0, 200, [B, A, C, D]),
    "max_len_b 2": (1.0, 3, [A, ([W2, W2], [0.1, 0.1, 0.6]), D, ([W2, W2], [0.3, 0.9, 0.01])]),
}


@pytest.mark.parametrize("case", CASES)
def test_fairseqs_beam_search(suite: Suite, case: str) -> None:
    alpha, most, expected = CASES[case]
    values = suite("fairseq-beam", 8)
    power = dict(length_penalty=alpha, length_penalty_form="power", patience=1.0)
    found = Table(FAIRSEQ, 2, 0, ends=True).search(2, most, 2, **power)
    for hypothesis, (words, probabilities) in zip([one for own in found for one in own], expected, strict=True):
        values.equal((case, words), hypothesis.ids, words)
        score = sum(map(math.log, probabilities)) / len(probabilities) ** alpha
        values.near((case, words, "score"), hypothesis.score, score, 1e-6)


class Given:
    """A model whose probabilities of the next token do not depend on what is read: by sentence and position."""

    def __init__(self, table: Tensor) -> None:
        self.table = table  # (sentences, positions, V)

    def __call__(self, src: Tensor, tgt_in: Tensor, record: object = None) -> Tensor:
        return self.table[src[:, 0] - FIRST_WORD, : tgt_in.size(1)]


def test_fairseqs_scorer(suite: Suite) -> None:
    expected = [[0.6, 0.7, 0.5, 0.9], [0.6, 0.8, 0.15], [0.3, 0.7]]
    targets = [[W1, W2, W1], [W2, W1], [W2]]
    steps = [  # columns: eos, w1, w2
        [[0.0, 0.6, 0.4], [0.0, 0.4, 0.6], [0.0, 0.7, 0.3]],
        [[0.0, 0.2, 0.7], [0.0, 0.8, 0.2], [0.7, 0.1, 0.2]],
        [[0.1, 0.5, 0.4], [0.15, 0.15, 0.7], [0.0, 0.0, 0.0]],
        [[0.9, 0.05, 0.05], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
    table = torch.zeros(3, 4, FIRST_WORD + 2)
    probabilities = torch.tensor(steps).transpose(0, 1)  # (sentences, positions, 3)
    table[..., EOS], table[..., FIRST_WORD:] = probabilities[..., 0], probabilities[..., 1:]
    table[..., 0] = 1 - table.sum(-1)  # the rest, which a softmax must have somewhere
    pairs = [([FIRST_WORD + i], [word + FIRST_WORD for word in words]) for i, words in enumerate(targets)]
    read = read_all(Given(table.log().clamp(min=-1e30)), pairs, torch.device("cpu"))
    values = suite("fairseq-scorer", 9)
    for given, row in zip(read, expected, strict=True):
        for place, (found, probability) in enumerate(zip(given.log_probs, row, strict=True)):
            values.near((row, place), found, math.log(probability), 1e-4)


def test_fairseqs_average_of_checkpoints(suite: Suite, tmp_path: Path) -> None:
    checkpoints = [{"a": [100.0], "b": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}, {"a": [1.0], "b": [[1.0] * 3, [1.0] * 3]}]
    folders = [tmp_path / name for name in ("one", "other")]
    for folder, tensors in zip(folders, checkpoints, strict=True):
        folder.mkdir()
        save_file({name: torch.tensor(tensor) for name, tensor in tensors.items()}, folder / "model.safetensors")
    mean = average_checkpoints(folders)
    values = suite("fairseq-average", 2)
    values.equal("a", mean["a"].tolist(), [50.5])
    values.equal("b", mean["b"].tolist(), [[1.0, 1.5, 2.0], [2.5, 3.0, 3.5]])


def test_fairseqs_blocking_of_ngrams(suite: Suite) -> None:
    values = suite("fairseq-ngrams", 2)
    for ids in ([2, 2, 2, 2], [3, 3, 3, 3]):
        values.equal(ids, sorted(set(repeating(ids, 2))), [ids[0]])


# --- tensor2tensor ----------------------------------------------------------------------------------------------------

STEPS = [[[0.1, 0.1, 0.8]] * 2, [[0.4, 0.5, 0.1], [0.2, 0.4, 0.4]], [[0.05, 0.9, 0.05], [0.4, 0.4, 0.2]]]
SECOND = [[[0.1, 0.1, 0.8]] * 2, [[0.3, 0.6, 0.1], [0.2, 0.4, 0.4]], STEPS[2]]
"""Columns: 0, eos, 2, so that 2 is our word 1."""
UNFINISHED = "tensor2tensor returns what is not finished at the limit; ours ends each translation with eos"


def test_tensor2tensors_beam_search(suite: Suite) -> None:
    values = suite("t2t-beam", 22)

    def expect(name: str, found: list[Any], expected: list[tuple[list[int], float]]) -> None:
        assert len(found) == len(expected)
        for hypothesis, (words, score) in zip(found, expected, strict=True):
            values.equal((name, words), hypothesis.ids, words)
            values.near((name, words, "score"), hypothesis.score, score, 1e-6)

    plain, alpha = dict(length_penalty=0.0), dict(length_penalty=3.5)
    greedy = Table([[[0.7, 0.3]], [[0.4, 0.6]], [[0.5, 0.5]]], 1, 1, ends=False)
    expect("greedy", greedy.search(1, 3, 1, **plain)[0], [([0], math.log(0.7 * 0.6))])
    corner = Table([[[0.2, 0.1, 0.7]], [[0.4, 0.1, 0.5]]], 1, 1, ends=False).search(1, 2, 1, **plain)[0][0]
    values.differs("greedy at its limit", corner.ids, [1, 1], UNFINISHED)
    values.differs("greedy at its limit, score", round(corner.score, 4), round(math.log(0.7 * 0.5), 4), UNFINISHED)

    table = Table(STEPS, 2, 1, ends=False)
    short, long = math.log(0.8 * 0.5), math.log(0.8 * 0.4 * 0.9)
    expect("stop early", table.search(1, 3, 1, **plain)[0], [([1], short)])
    expect("not early", table.search(1, 3, 2, **plain)[0], [([1], short), ([1, 0], long)])
    six = [([1, 0], long / (8 / 6) ** 3.5), ([1], short / (7 / 6) ** 3.5)]
    expect("alpha 3.5", table.search(1, 3, 2, **alpha)[0], six)
    both = Table([a + b for a, b in zip(STEPS, SECOND, strict=True)], 2, 1, ends=False).search(2, 3, 2, **alpha)
    expect("a batch of two, first", both[0], six)
    second = [([1], math.log(0.8 * 0.6) / (7 / 6) ** 3.5), ([1, 0], math.log(0.8 * 0.3 * 0.9) / (8 / 6) ** 3.5)]
    expect("a batch of two, second", both[1], second)


# --- penalties and constraints ----------------------------------------------------------------------------------------


def test_length_penalties(suite: Suite) -> None:
    values = suite("length-penalties", 16)
    for n, expected in ((1, 1.0), (7, 2.0**0.6), (25, 5.0**0.6)):  # Eq. 14: (5 + n) ** alpha / (5 + 1) ** alpha
        values.near(f"GNMT, {n} tokens", LengthPenalty(0.6, "gnmt")(n), expected, 1e-12)
    for n in (1, 2, 3):
        values.near(f"Sockeye, alpha 0.2, beta 5, {n}", LengthPenalty(0.2, "gnmt")(n), ((5 + n) / 6) ** 0.2, 1e-12)
        values.near(f"Sockeye, alpha 1, beta 0, {n}", LengthPenalty(1.0, "power")(n), n, 1e-12)
        values.near(f"OpenNMT wu, {n}", LengthPenalty(0.8, "gnmt")(n), ((5 + n) / 6.0) ** 0.8, 1e-12)
        values.near(f"OpenNMT avg, {n}", LengthPenalty(1.0, "power")(n), n, 1e-12)
    values.near("Hugging Face, length_penalty 2, 7 tokens", LengthPenalty(2.0, "power")(7), 49.0, 1e-12)


def test_what_the_processors_of_transformers_forbid(suite: Suite) -> None:
    values = suite("huggingface-processors", 8)
    for ids, n, expected in [
        ([1, 1, 2, 1], 2, [1, 2]),
        ([0, 1, 0, 1], 2, [0]),
        ([1, 1, 2, 1], 3, []),
        ([0, 1, 0, 1], 3, [0]),
        ([1, 2], 3, []),
        ([0, 1], 3, []),
    ]:
        values.equal((f"no_repeat_ngram_size {n}", ids), sorted(set(repeating(ids, n))), expected)
    # bad words, here the texts that ids spell: [1], [4], [1, 0], [0, 1, 2], [1, 3, 1, 3], of which 4 is eos
    spelling = Spelling([b" a", b" b", b" c", b" d", b""])
    bad = (b" b", b" b a", b" a b c", b" b d b d")
    for ids, expected in (([0, 1, 3, 1], [0, 1, 3]), ([0, 1, 0, 1], [0, 1, 2])):
        values.equal(("bad_words_ids", ids), following(ids, Rules(spelling, exclude=bad), 9, 4)[1], expected)
