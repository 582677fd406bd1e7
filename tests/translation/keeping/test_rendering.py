"""The run of words that renders a term: articles and weak words between strong ones go with it, others stay."""

from __future__ import annotations

import pytest
import torch

from dragoman.decoding.scoring import Read
from dragoman.translation.keeping.rendering import MOST_NATS, Readings, Run, cores, evidence, runs, with_article

INF = float("inf")


def best(text: str, log_odds: list[float], unspaced: bool = False) -> str:
    """Return the words of the best run."""
    run = runs(log_odds, cores(text, unspaced), unspaced)[0]
    return text[run.start : run.end]


@pytest.mark.parametrize(
    ("log_odds", "expected"),
    [
        ([-3, -4, -4, 2, 5, 6, -5], "einen schwarzen Hund"),
        ([-3, -4, -4, -1, 5, 6, -5], "schwarzen Hund"),
        ([-3, -4, -4, 5, -1, 6, -5], "einen schwarzen Hund"),
        ([-3, -4, -4, -2, -INF, 1, -5], "Hund"),
        ([-9, -8, -7, -6, -5, -4, -3], "da"),
    ],
)
def test_the_run_with_the_greatest_sum_is_the_rendering(log_odds: list[float], expected: str) -> None:
    assert best("Das Mädchen hält „einen schwarzen Hund“, da.", log_odds) == expected


def test_marks_around_a_run_stay_and_those_within_go() -> None:
    assert best("ja (rot, blau)!", [-5, 3, 3]) == "rot, blau"
    assert runs([1.0, 1.0], cores("... —", False), False) == []
    assert best("女孩抱着狗。", [4, 4, -5, -5, 3, -9], unspaced=True) == "女孩"
    assert best("आया था।", [2.0, -3.0]) == "आया"


def test_a_word_that_must_stay_is_in_no_run() -> None:
    assert all("b" not in "a b c"[run.start : run.end] for run in runs([1.0, -INF, 1.0], cores("a b c", False), False))
    assert runs([-INF], cores("a", False), False) == []


def test_evidence_is_what_the_term_says_and_where_a_word_looks() -> None:
    text, words = "ein Hund.", [[0], [1], [1], []]
    attention = torch.tensor([[0.8, 0.2], [0.1, 0.9], [0.3, 0.7], [0.5, 0.5], [0.5, 0.5]])
    reads = (
        Read([-1.0, -1.0, -1.0, -1.0, 0.0], attention),
        Read([-2.0, -3.0, -1.5, -9.0, 0.0], None),
        Read([-2.5, -1.0, -9.5, -1.0, 0.0], None),
    )
    article, noun = evidence(Readings(text, words, *reads), [False, True], unspaced=False)
    assert article == pytest.approx((-0.5, 0.2, 0.25))
    assert noun == pytest.approx((-MOST_NATS, 0.8, 1.0))  # the mark's loss is not the noun's
    assert noun.log_odds != article.log_odds


@pytest.mark.parametrize(
    ("words", "own", "expected"),
    [
        ("rotes Kleid", True, "ein rotes Kleid"), ("rotes Kleid", False, "rotes Kleid"),
        ("ein rotes Kleid", True, "ein rotes Kleid"), ("ein rotes Kleid", False, "rotes Kleid"),
        ("ein", False, "ein"), ("Sie", True, "Sie"),
    ],
)  # fmt: skip
def test_an_article_goes_with_a_term_that_has_one(words: str, own: bool, expected: str) -> None:
    text = "Sie trägt ein rotes Kleid."
    run = with_article(
        Run(text.index(words), text.index(words) + len(words), 1.0), text, cores(text, False), {"ein"}, own
    )
    assert text[run.start : run.end] == expected
    assert with_article(run, text, cores(text, False), frozenset(), own) == run
