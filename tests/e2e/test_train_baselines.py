"""Every architecture is trained, resumed, translated with, evaluated and explained by the very same commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman.bundle import load_bundle
from dragoman.explanation.explain import explain

Command = Callable[..., Any]


def configured(tiny: Callable[..., dict[str, Any]], kind: str, **train: Any) -> dict[str, Any]:
    mapping = tiny(**train)
    model = mapping["model"] | dict(architecture=kind, dropout=0.0, n_encoder_layers=1, n_decoder_layers=2)
    return {**mapping, "model": model}


@pytest.mark.parametrize("kind", ["lstm", "conv"])
def test_a_toy_language_is_learned(tmp_path: Path, tiny: Callable[..., Any], kind: str) -> None:
    mapping = configured(
        tiny, kind, max_steps=170, schedule="cosine", batch_tokens=600, validate_every=170, save_every=170
    )
    trained = dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / kind, quiet=True)
    assert trained.validation is not None
    assert trained.validation.bleu > 80
    translator = dragoman.Translator.load(trained.run)
    [one] = translator.translate(["the dog sees a red house"], alignments=True)
    assert one.text == "der hund sieht ein rot haus"
    assert one.alignment == tuple((i, i) for i in range(6))
    [scored] = translator.score(["the dog sees a red house"], [one.text])
    assert scored.log_prob == pytest.approx(one.log_prob, abs=1e-4)  # step by step as all at once
    found = explain(translator, "the dog sees a red house")
    assert found.alignment().shape == (len(found.tgt.tokens), len(found.src.tokens))
    assert found.layers("encoder") == found.layers("decoder") == []


@pytest.mark.parametrize("kind", ["gru"])
def test_the_commands_are_the_same(
    tmp_path: Path, tiny: Callable[..., Any], corpus: Any, process: Command, kind: str
) -> None:
    config = tmp_path / "my.yaml"
    config.write_text(yaml.safe_dump(configured(tiny, kind, max_steps=20)), encoding="utf-8")
    done = process("train", config, "--out", "x", "--set", "train.max_steps=10", cwd=tmp_path)
    assert done.status == 0, done.err
    assert (
        f"architecture {kind}: trained with its plain implementation; only Transformers have an optimised one"
        in done.err
    )
    done = process("train", "--out", "x", "--resume", "--set", "train.max_steps=20", cwd=tmp_path)
    assert done.status == 0, done.err
    assert process("train", config, "--out", "whole", cwd=tmp_path).status == 0
    weights = [dict(load_bundle(tmp_path / run).model.state_dict()) for run in ("x", "whole")]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])  # resumed bit for bit
    done = process("translate", "x", stdin=b"the dog\n\na cat\n", cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.out.count(b"\n") == 3
    assert "no optimised decoder for this model (not a Transformer)" in done.err
    done = process("evaluate", "x", "--src", corpus.valid_src, "--ref", corpus.valid_tgt, cwd=tmp_path)
    assert done.status == 0, done.err
    assert b"BLEU" in done.out
    done = process("export", "x", "--format", "ctranslate2", cwd=tmp_path)
    assert done.status == 2
    assert f"it has Transformers only, and here model.architecture is {kind}" in done.error
    done = process("translate", "x", "--engine", "ctranslate2", stdin=b"the dog\n", cwd=tmp_path)
    assert done.status == 2
    assert f"model.architecture is {kind}" in done.error
    done = process("translate", "x", "--precision", "int8", stdin=b"the dog\n", cwd=tmp_path)
    assert done.status == 2
    assert f"model.architecture is {kind}" in done.error
    done = process("doctor", config, cwd=tmp_path)
    assert done.status == 0, done.err
    assert f"not known for model.architecture = {kind}".encode() in done.out
