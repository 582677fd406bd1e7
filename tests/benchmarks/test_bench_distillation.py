"""Students beside their teacher: every way to translate that is compared can be planned."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks import distillation


def test_every_way_can_be_planned(tiny_run: Path, tmp_path: Path, toy_sentences: Any) -> None:
    tune = [src for src, _ in toy_sentences(8, 1)]
    run = shutil.copytree(tiny_run, tmp_path / "run")  # an export is made in it
    found = distillation.systems(run, [run], tune)
    beam = found[0].translator.config.decode.beam_size
    assert [one.name for one in found[:3]] == [
        f"teacher, CTranslate2 int8, beam {beam}", "teacher, CTranslate2 int8, beam 1",
        f"teacher, dragoman fp32, beam {beam}",
    ]  # fmt: skip
    assert {one.plan.engine.name for one in found} == {"ctranslate2", "torch"}
    assert all(len(one.seconds(tune)[1]) == len(tune) for one in found)
