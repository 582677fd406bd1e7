"""A task of translation that small models learn in seconds: sentences of the embedded corpus, word by word.

    phrases = Phrases.make(n_train=6000, n_test=300, longest=6)
    learn(model, phrases.endless(32, seed=1), steps, rate)
    phrases.bleu(model)

Each word and each mark is a token, so that no tokenizer has to be trained. Test sentences combine words in ways that
never occur in training.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.data import phrasebook
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.evaluation.metrics import bleu
from dragoman.lab.letters import FIRST, Pairs

WORD = re.compile(r"\w+|[^\w\s]")
"""A word, or a mark."""

Ids = list[list[int]]
"""Sentences as ids, without begin and end."""


class Phrases(NamedTuple):
    """Training and test sentences with their vocabularies."""

    train: tuple[Ids, Ids]
    test: tuple[Ids, Ids]
    words: tuple[list[str], list[str]]  # words of the source and of the target, the first with id ``FIRST``

    @classmethod
    def make(cls, n_train: int, n_test: int, longest: int) -> Self:
        """Draw the sentences; the vocabularies are those of the training sentences."""
        train, test = short("train", n_train, longest, seed=1), short("held_out", n_test, longest, seed=2)
        words = [sorted(set(itertools.chain.from_iterable(side))) for side in train]
        ids = [{word: FIRST + i for i, word in enumerate(of_side)} for of_side in words]
        (train_src, train_tgt), (test_src, test_tgt) = (
            [
                [[known.get(word, UNK_ID) for word in text] for text in side]
                for known, side in zip(ids, sides, strict=True)
            ]
            for sides in (train, test)
        )
        return cls((train_src, train_tgt), (test_src, test_tgt), (words[0], words[1]))

    def config(self, **options: Any) -> ModelConfig:
        """Return the configuration of a small model for this task; ``options`` are fields of ``ModelConfig``."""
        sizes = dict(d_model=32, d_ff=128, n_heads=4, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0)
        src, tgt = (FIRST + len(words) for words in self.words)
        return ModelConfig(**{"share_embeddings": "none", **sizes, **options}, src_vocab_size=src, tgt_vocab_size=tgt)

    def endless(self, count: int, seed: int) -> Iterator[Pairs]:
        """Yield batches of ``count`` training pairs of like lengths without end, in another order each time."""
        generator = torch.Generator().manual_seed(seed)
        src, tgt = self.train
        while True:
            order = torch.randperm(len(src), generator=generator).tolist()
            pools = [
                sorted(order[i : i + 16 * count], key=lambda j: len(src[j])) for i in range(0, len(src), 16 * count)
            ]
            batches = [pool[i : i + count] for pool in pools for i in range(0, len(pool), count)]
            for i in torch.randperm(len(batches), generator=generator).tolist():
                yield batch([src[j] for j in batches[i]], [tgt[j] for j in batches[i]])

    def test_batch(self) -> Pairs:
        """Return all test pairs."""
        return batch(*self.test)

    @torch.no_grad()
    def bleu(self, model: nn.Module, extra: int = 5) -> float:
        """Return BLEU of greedy translations of the test sentences, at most ``extra`` words longer than the longest."""
        reader: Any = model.eval()
        pairs = self.test_batch()
        state = reader.start(pairs.src)
        last, written = torch.full((len(pairs.src),), BOS_ID), []
        for _ in range(pairs.tgt_out.size(1) + extra):
            logits, state = reader.step(state, last)
            last = logits.argmax(-1)
            written.append(last)
        hyps, refs = (self.texts(ids) for ids in (torch.stack(written, 1).tolist(), self.test[1]))
        return bleu(hyps, refs, "de", force=True).value

    def texts(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return target ids as text, each up to its end mark."""
        return [
            " ".join(
                self.words[1][i - FIRST] if i >= FIRST else "?"
                for i in itertools.takewhile(lambda i: i != EOS_ID, sentence)
            )
            for sentence in sentences
        ]


def short(split: str, count: int, longest: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words of the first ``count`` pairs whose source has at most ``longest``."""
    drawn = phrasebook.pairs(100 * count, seed=seed, split=split)
    words = ((WORD.findall(src), WORD.findall(tgt)) for src, tgt in drawn)
    src, tgt = zip(*itertools.islice((pair for pair in words if len(pair[0]) <= longest), count), strict=True)
    return list(src), list(tgt)


def batch(src: Ids, tgt: Ids) -> Pairs:
    """Return sentences as a padded batch."""
    return Pairs(
        padded([[*ids, EOS_ID] for ids in src]),
        padded([[BOS_ID, *ids] for ids in tgt]),
        padded([[*ids, EOS_ID] for ids in tgt]),
    )


def padded(sentences: Ids) -> Tensor:
    """Return sentences as one tensor."""
    return nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in sentences], batch_first=True, padding_value=PAD_ID)


@torch.no_grad()
def mean_loss(model: nn.Module, pairs: Pairs) -> float:
    """Return the loss in nats per target token."""
    model.eval()
    logits = model(pairs.src, pairs.tgt_in)
    return float(nn.functional.cross_entropy(logits.flatten(0, 1), pairs.tgt_out.flatten(), ignore_index=PAD_ID))
