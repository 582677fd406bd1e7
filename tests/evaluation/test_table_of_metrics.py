"""A metric is added by one entry of the table: everything that scores translations reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragoman
from dragoman.distillation.certificate import Measuring
from dragoman.evaluation.metrics import METRICS, Metric, Statistics
from dragoman.progress import Ticker


class WordsLost:
    """The share of the words of the reference that a translation does not have; of several references the least."""

    def statistics(self, hyps: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
        return np.array([
            min(
                ([len(set(ref.split()) - set(hyp.split())), len(set(ref.split()))] for ref in refs),
                key=lambda counts: counts[0],
            )
            for hyp, *refs in zip(hyps, *references, strict=True)
        ], dtype=np.float64)  # fmt: skip

    def score(self, sums: Statistics) -> float:
        return float(100 * sums[0] / sums[1])

    def signature(self, n_samples: int | None) -> str:
        return f"set of words|bs:{n_samples}"


@pytest.fixture
def words_lost() -> Iterator[None]:
    metric = Metric("lost", "Words lost", lambda _: WordsLost(), lower_is_better=True)
    METRICS.append(metric)
    yield
    METRICS.remove(metric)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "ref": "a b c d\ne f g h\n",
        "other": "a b c\ne f x h\n",
        "good": "a b c x\ne f g h\n",
        "bad": "x y\ne f\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in texts}


@pytest.mark.usefixtures("words_lost")
def test_evaluate_prints_it(command: Callable[..., Any], files: dict[str, Path]) -> None:
    plain = command("evaluate", files["good"], "--ref", files["ref"]).out.decode()
    assert "Words lost 12.50  [" in plain
    assert plain.splitlines()[-1].endswith("set of words|bs:1000")
    found = json.loads(command("evaluate", files["good"], "--ref", files["ref"], "--json").out)
    assert [one["name"] for one in found["scores"]] == ["BLEU", "chrF2", "TER", "Words lost"]
    assert found["scores"][-1]["value"] == 12.5
    several = command("evaluate", files["good"], "--ref", files["ref"], "--ref", files["other"], "--metric", "lost")
    assert several.out.decode().startswith("Words lost 0.00  [")


@pytest.mark.usefixtures("words_lost")
def test_two_systems_are_compared_by_it(command: Callable[..., Any], files: dict[str, Path]) -> None:
    done = command("evaluate", files["bad"], files["good"], "--ref", files["ref"], "--metric", "lost", "--json")
    (one,) = json.loads(done.out)["comparisons"]
    assert (one["metric"], one["a"], one["b"], one["lower_is_better"]) == ("Words lost", 75.0, 12.5, True)
    compared = dragoman.compare(files["bad"], files["good"], ref=files["ref"], metrics=["lost"], n_samples=50)
    assert "Words lost" in compared._repr_html_()
    better = compared.comparisons[0]._replace(p_randomisation=0.01)
    assert better.verdict() == "Words lost: B is better than A by 62.50 (p = 0.01)"


@pytest.mark.usefixtures("words_lost")
def test_certificates_have_it(tiny_run: Path, corpus: Any, tmp_path: Path) -> None:
    folder = dragoman.export(tiny_run, "ctranslate2", tmp_path / "there")
    found = dragoman.certify(tiny_run, folder, src=corpus.valid_src, ref=corpus.valid_tgt, device="cpu", quiet=True)
    assert [one.metric for one in found.comparisons] == ["BLEU", "chrF2", "TER", "Words lost"]
    assert "| Words lost |" in found.markdown()  # which stands in the model card
    assert "Words lost" in (folder / "certificate.json").read_text(encoding="utf-8")
    found.require({"lost": 0.0})
    worse = found.comparisons[-1]._replace(b=found.comparisons[-1].a + 3)
    with pytest.raises(dragoman.errors.DragomanError, match=r"lost must be worse by at most 2, got 3\.00"):
        found._replace(comparisons=(worse,)).require({"lost": 2.0})
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (corpus.valid_src, corpus.valid_tgt)]
    measured = Measuring(lines[0], lines[1], "de", Ticker(True))("teacher", dragoman.Translator.load(tiny_run, "cpu"))
    assert list(measured.row.scores) == ["BLEU", "chrF2", "TER", "Words lost"]
