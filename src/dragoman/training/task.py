"""Differences between the tasks in training: how text is read, and how a model is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.config import Config, TextFiles
from dragoman.data.texts import files_of, read_one
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.parsing.brackets import symbols_f1
from dragoman.parsing.trees import tree_pairs

Lines = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything in which training differs between translation and parsing."""

    translates: bool  # True: has languages and a confidence, and its target consists of subwords, not words
    quality: str  # name in the log of the score by which the best weights are chosen
    metric: str  # name of that score for people
    read: Callable[[TextFiles], Iterator[tuple[str, str]]]
    measure: Callable[[Lines, Lines, Lines, str | None], dict[str, float]]
    """Scores by their names in the log, given sources, references, hypotheses and the target language."""


def task_of(config: Config) -> Task:
    """Return the task of a run."""
    return PARSING if config.is_parser else TRANSLATION


def _bleu_and_chrf(_: Lines, references: Lines, hyps: Lines, lang: str | None) -> dict[str, float]:
    return {"bleu": bleu(hyps, references, lang).value, "chrf": chrf(hyps, references).value}


def _trees(text: TextFiles) -> Iterator[tuple[str, str]]:
    return tree_pairs(files_of(text)[0])


def _bracket_f1(sources: Lines, references: Lines, hyps: Lines, _: str | None) -> dict[str, float]:
    return {"bleu": math.nan, "chrf": math.nan, "f1": symbols_f1(sources, references, hyps)}


TRANSLATION = Task(translates=True, quality="bleu", metric="BLEU", read=read_one, measure=_bleu_and_chrf)
PARSING = Task(translates=False, quality="f1", metric="bracket F1", read=_trees, measure=_bracket_f1)
