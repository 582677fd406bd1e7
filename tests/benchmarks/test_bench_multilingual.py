"""One model for several languages against single ones: which language a line is in, and what is trained."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.questions import multilingual
from benchmarks.questions.multilingual import Classifier, settings
from dragoman.config import Config, with_overrides

TEXTS = {
    "en": ["a dog runs in the snow", "two men are sitting on the bench", "the woman is wearing a hat"],
    "de": ["ein Hund rennt im Schnee", "zwei Männer sitzen auf der Bank", "die Frau trägt einen Hut"],
    "fr": ["un chien court dans la neige", "deux hommes sont assis sur le banc", "la femme porte un chapeau"],
}


def test_the_language_of_a_line_is_told_by_its_characters() -> None:
    classify = Classifier(TEXTS)
    assert [classify(line) for line in ("die Männer", "les hommes assis", "the men are")] == ["de", "fr", "en"]
    assert classify.share(["ein Mann sitzt im Schnee", "the man is sitting in the snow", ""], "de") == pytest.approx(
        1 / 3
    )


def test_the_one_model_has_the_steps_and_minutes_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command))
    (tmp_path / "multi30k").mkdir()
    for split in ("train", "val"):
        for lang, lines in TEXTS.items():
            (tmp_path / f"multi30k/{split}.{lang}").write_text("\n".join(lines * 40) + "\n", encoding="utf-8")
    args = argparse.Namespace(
        data=tmp_path, out=tmp_path, lines=80, steps=100, minutes=2.0, preset="tiny", vocab_size=400, seed=1,
        set=["model.dropout=0.1"],
    )  # fmt: skip
    steps = {}
    for name, langs in (("fr", ["fr"]), ("several", ["de", "fr"])):
        multilingual.trained(name, langs, args)
        said: Any = [commands[-1][i + 1] for i, word in enumerate(commands[-1]) if word == "--set"]
        config = Config.from_yaml(multilingual.CONFIG, said)
        steps[name] = config.train.max_steps, config.train.max_minutes
        assert [text.tgt_lang for text in config.data.train] == langs  # type: ignore[union-attr]
        assert len(Path(config.data.train[0].src).read_text().splitlines()) == 80  # type: ignore[index,union-attr]
        assert config.model.dropout == 0.1
    assert steps == {"fr": (100, 2.0), "several": (200, 4.0)}
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr/log.jsonl").write_text(json.dumps({"event": "start"}) + "\n", encoding="utf-8")
    multilingual.trained("fr", ["fr"], args)
    assert commands[-1][-1] == "--resume"
    (tmp_path / "fr/bundle").mkdir()
    (tmp_path / "fr/log.jsonl").write_text(json.dumps({"event": "end"}) + "\n", encoding="utf-8")
    n = len(commands)
    assert multilingual.trained("fr", ["fr"], args) == tmp_path / "fr"
    assert len(commands) == n


def test_settings_are_read_as_they_are_meant() -> None:
    args = argparse.Namespace(steps=None, minutes=None, preset="tiny", vocab_size=8000, seed=3, set=[])
    said = settings([{"src": "a, b.en", "tgt": "c: d.de"}], [{"src": "v.en", "tgt": "v.de"}], args)
    assert with_overrides({}, said)["data"]["train"] == [{"src": "a, b.en", "tgt": "c: d.de"}]
    assert with_overrides({}, said)["train"]["max_steps"] == multilingual.STEPS
