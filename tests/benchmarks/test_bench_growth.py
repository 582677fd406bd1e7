"""How growth is measured: the exponents, and each measure at a tiny size."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.harness import growth as harness
from dragoman.config import DataConfig, TokenizerConfig
from dragoman.data import phrasebook
from dragoman.data.store import Entry, build_store
from dragoman.data.tokenizer import learn_tokenizers
from processes import Forked


def test_the_exponent_of_a_power_law_is_found() -> None:
    sizes = [1, 2, 4, 8, 16]
    found = growth.growth(sizes, [3 * size**1.7 for size in sizes])
    assert found["all"] == {"exponent": 1.7, "off_percent": 0.0, "points": 5}
    assert found["last_three"] == {"exponent": 1.7, "off_percent": 0.0, "points": 3}


def test_a_bend_shows_in_the_last_three_and_in_the_distance() -> None:
    sizes = [2**i for i in range(10)]
    found = growth.growth(sizes, [100 * size + size**2 for size in sizes])
    assert 1.0 < found["all"]["exponent"] < found["last_three"]["exponent"] < 2.0
    assert found["all"]["off_percent"] > 5 > found["last_three"]["off_percent"]


def test_how_far_points_lie_from_the_line_is_in_percent() -> None:
    up, down = 1.1, 1 / 1.1
    found = growth.growth([1, 10, 100, 1000], [1 * up, 10 * down, 100 * down, 1000 * up])
    assert found["all"] == {"exponent": 1.0, "off_percent": pytest.approx(10.0), "points": 4}


def test_without_two_points_there_is_no_exponent() -> None:
    assert growth.growth([1], [2.0]) == {"all": None, "last_three": None}
    assert growth.growth([1, 2, 4], [0.0, 0.0, 3.0])["all"] is None
    assert growth.growth([1, 2, 4], [0.0, 1.0, 2.0])["all"] == {"exponent": 1.0, "off_percent": 0.0, "points": 2}


def measured(measure: str, **arguments: object) -> dict[str, float]:
    """What the process prints that ``growth.run_in_child`` starts, by one that need not import torch anew."""
    process = Forked(harness.main, ["growth", measure, json.dumps(arguments)])
    out, err = process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.parametrize(
    ("measure", "arguments"),
    [
        ("attention", dict(kind="plain", dtype="fp32", length=64)),
        ("attention", dict(kind="written_out", dtype="bf16", length=64)),
        ("attention", dict(kind="fused", dtype="bf16", length=64)),
        ("training", dict(rows=2, length=16, vocab_size=100, n_layers=1, attention="fused")),
        ("decoding", dict(rows=2, beam_size=2, vocab_size=100, n_layers=1)),
    ],
)
def test_each_measure_gives_time_and_memory(measure: str, arguments: dict[str, object]) -> None:
    found = measured(measure, **arguments)
    assert found["seconds"] > 0
    assert found["runs"] >= 1
    assert 0 <= found["mib"] < found["peak_mib"]


def test_running_out_of_memory_is_reported_and_does_not_take_the_machine_down() -> None:
    found = growth.series("attention", [64, 150_000], lambda n: dict(kind="plain", dtype="fp32", length=n))
    assert (found["size"], found["no_memory"]) == ([64], [150_000])  # 720 GB of scores


def test_parts_make_the_text_that_the_phrasebook_writes(tmp_path: Path) -> None:
    growth.write_pairs(50, tmp_path / "parts.en", tmp_path / "parts.de", at_once=20)
    phrasebook.write(50, tmp_path / "whole.en", tmp_path / "whole.de")
    for end in ("en", "de"):
        assert (tmp_path / f"parts.{end}").read_bytes() == (tmp_path / f"whole.{end}").read_bytes()


def test_the_first_batch_of_a_store_is_drawn(tmp_path: Path) -> None:
    pairs = list(phrasebook.pairs(500))
    tokenizers = learn_tokenizers(lambda: pairs, TokenizerConfig(vocab_size=400))
    data = DataConfig.model_validate({"train": {"src": "x.en", "tgt": "x.de"}})
    build_store(tmp_path / "store", [Entry(pairs)], tokenizers, data)
    growth.forget_files(tmp_path / "store")
    found = measured("first_batch", folder=str(tmp_path / "store"))
    assert found["seconds"] > 0
    assert math.isfinite(found["mib"])


def test_a_failure_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match=r"attention .* exit status 1\n(.|\n)*KeyError"):
        growth.run_in_child("attention", kind="plain", dtype="fp8", length=64)
