"""A model that is a table of probabilities, as fairseq's and tensor2tensor's tests of beam search have one."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from dragoman.config import DecodeConfig
from dragoman.decoding.request import Hypothesis, SearchBatch, SearchSettings
from dragoman.decoding.search import beam_search, greedy_search

FIRST_WORD = 4
"""The id of the first word of a table; pad, unk, bos and eos come before."""

EOS = 3


class State(NamedTuple):
    """How many tokens there are, and the sentence of each row."""

    step: int
    sentences: Tensor

    def select(self, rows: Tensor) -> Self:
        return self._replace(sentences=self.sentences[rows])


class Table:
    """Probabilities by step, sentence and place in the beam; after the last step its row is repeated, or all end."""

    def __init__(self, steps: list[list[list[float]]], beam: int, eos_column: int, ends: bool) -> None:
        """Take a table.

        Args:
            steps: Of each step a row of probabilities for each place in the beam, sentence by sentence.
            beam: Places of a sentence.
            eos_column: The column that is eos; the others are words, in order.
            ends: After the last step everything ends; else the last row stays.
        """
        self.steps = [torch.tensor(step) for step in steps]
        self.beam, self.eos_column, self.ends = beam, eos_column, ends

    def start(self, src: Tensor) -> State:
        return State(0, torch.arange(src.size(0)))

    def step(self, state: State, last_ids: Tensor) -> tuple[Tensor, State]:
        n_columns = self.steps[0].size(1)
        logits = torch.full((last_ids.numel(), FIRST_WORD + n_columns - 1), -1e30)
        places: dict[int, int] = {}
        for row, sentence in enumerate(state.sentences.tolist()):
            place = places[sentence] = places.get(sentence, -1) + 1
            if self.ends and state.step >= len(self.steps):
                logits[row, EOS] = 0.0
                continue
            table = self.steps[min(state.step, len(self.steps) - 1)]
            log_p = table[sentence * self.beam + min(place, self.beam - 1)].log().clamp(min=-1e30)
            words = torch.cat((log_p[: self.eos_column], log_p[self.eos_column + 1 :]))
            logits[row, EOS] = log_p[self.eos_column]
            logits[row, FIRST_WORD:] = words
        return logits, State(state.step + 1, state.sentences)

    def search(self, n_sentences: int, most: int, n_best: int, **decode: Any) -> list[list[Hypothesis]]:
        """Search as the tests of others do; words are numbered from 0 in what is returned.

        Args:
            most: Largest number of tokens, eos counted.
            decode: Length penalty and patience.
        """
        batch = SearchBatch(src=torch.full((n_sentences, 1), EOS), max_lens=[most] * n_sentences)
        settings = SearchSettings(decode=DecodeConfig(beam_size=self.beam, **decode), n_best=n_best)
        if self.beam == 1:
            hypotheses = [[hypothesis] for hypothesis in greedy_search(self, batch, settings)]
        else:
            hypotheses = beam_search(self, batch, settings)
        return [[hypothesis._replace(ids=[i - FIRST_WORD for i in hypothesis.ids]) for hypothesis in own]
                for own in hypotheses]  # fmt: skip
