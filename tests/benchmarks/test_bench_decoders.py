"""Systems that translate: the best setting is found, refusals are told, weights are checked, answers are texts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.decoding import quality
from benchmarks.harness import decoders
from benchmarks.harness.carry import random_bundle
from benchmarks.harness.corpus import subwords
from benchmarks.harness.decoders import Decoder, Job, Setting, able, carried_over, ct2, dragoman, hf, job, texts_of
from benchmarks.harness.peer import PeerError, System, started
from dragoman import Translator

REFUSAL = "toy: Traceback ...\ndragoman.errors.ConfigError: precision = 'int8' needs another machine\n"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job whose systems are played: fastest with two workers and a batch of 32; int8 is refused."""

    @contextlib.contextmanager
    def play(system: System) -> Iterator[Callable[..., dict[str, Any]]]:
        if system.settings["precision"] == "int8":
            raise PeerError(REFUSAL)
        off = {"Hugging Face fp32": float("nan"), "CTranslate2 fp32": 0.002}.get(system.name, 0.0)

        def ask(what: str, batch: int = 0, count: int = 0) -> dict[str, Any]:
            if what == "score":
                return {"log_probs": [-1.0 + off] * count}
            return {"seconds": 1 + abs(batch - 32) / 32 + 3 / system.settings["workers"]}

        yield ask

    monkeypatch.setattr(decoders, "started", play)
    models = {name: Path(name) for name in ("bundle", "ctranslate2", "hugging_face")}
    return Job(models, Path("sources.json"), None, [("a", "b")] * 10, 5, 1.0, None)  # type: ignore[arg-type]


def test_each_system_gets_its_best_setting_and_refusals_are_told(toy: Job, capsys: pytest.CaptureFixture[str]) -> None:
    found, sweeps, left_out = able([dragoman("fp32", (16, 32, 64)), dragoman("int8"), ct2("fp32")], toy)
    assert {name: setting for name, (_, setting) in found.items()} == {
        "dragoman fp32": Setting(2, 1, 32), "CTranslate2 fp32": Setting(2, 1, 32),
    }  # fmt: skip
    assert len(sweeps["dragoman fp32"]) == 6
    assert left_out == {"dragoman int8": "precision = 'int8' needs another machine"}
    assert "left out: dragoman int8" in capsys.readouterr().err


def test_a_system_whose_form_the_weights_cannot_have_is_left_out_with_the_reason(toy: Job) -> None:
    lacking = toy._replace(lacking={"hugging_face": "model.positions = 'learned'"})
    found, _, left_out = able([dragoman("fp32"), hf("fp32")], lacking)
    assert list(found) == ["dragoman fp32"]
    assert left_out == {"Hugging Face fp32": "model.positions = 'learned'"}


def test_a_system_that_is_broken_is_not_left_out(toy: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(system: System) -> Any:
        raise PeerError("toy: ImportError: no such module")

    monkeypatch.setattr(decoders, "started", broken)
    with pytest.raises(PeerError, match="no such module"):
        able([dragoman("fp32")], toy)


def test_other_weights_are_noticed(toy: Job) -> None:
    def at(*chosen: Decoder) -> dict[str, tuple[Decoder, Setting]]:
        return {decoder.name: (decoder, Setting(1, 1, 1)) for decoder in chosen}

    assert carried_over(toy, at(dragoman("fp32"), ct2("fp32"), ct2("int8")), 3) == {
        "dragoman fp32": 0.0, "CTranslate2 fp32": 0.002,
    }  # fmt: skip
    with pytest.raises(PeerError, match=r"Hugging Face fp32: .* other weights"):
        carried_over(toy, at(dragoman("fp32"), hf("fp32")), 3)


def test_quality_is_bleu_and_the_share_of_our_translations() -> None:
    refs = ["the cat sat on the mat today", "a dog runs over the green field"]
    found = quality({"dragoman fp32": refs, "toy": [refs[0], "something else"]}, refs)
    assert found["dragoman fp32"] == {"bleu": 100.0, "identical_percent": 100.0}
    assert found["toy"]["identical_percent"] == 50.0
    assert found["toy"]["bleu"] < 100


def test_ours_and_ctranslate2_translate_alike_with_the_same_weights(
    tmp_path: Path, tiny_run: Path, toy_sentences: Callable[[int, int], list[tuple[str, str]]]
) -> None:
    """The scripts themselves; CTranslate2 here in the environment of the tests."""
    pairs = toy_sentences(12, 5)
    work = job(tiny_run, pairs, tmp_path, 3, 0.0)
    # without a length penalty CTranslate2 too stops when nothing can become better
    ours, theirs = dragoman("fp32", stop="safe"), ct2("fp32")._replace(environment="dragoman")
    outputs, log_probs = [], []
    for decoder, batch in ((ours, 500), (theirs, 8)):
        with started(work.system(decoder, 1, 1)) as ask:
            outputs.append(texts_of(ask(what="translate", batch=batch), work))
            log_probs.append(ask(what="score", count=6)["log_probs"])
            assert len(ask(what="chunks", batch=4)["ms"]) == 3
    assert outputs[0] == outputs[1]
    settings = dict(beam_size=3, length_penalty=0.0, guard=False)
    expected = Translator.load(tiny_run, "cpu").translate([src for src, _ in pairs], **settings)  # type: ignore[arg-type]
    assert outputs[0] == [one.text for one in expected]
    assert log_probs[0] == pytest.approx(log_probs[1], abs=1e-3)


def test_with_random_weights_ours_makes_exactly_the_steps_asked_for(
    tmp_path: Path, toy_sentences: Callable[[int, int], list[tuple[str, str]]]
) -> None:
    pairs = toy_sentences(300, 1)
    bundle = random_bundle(tmp_path / "run", subwords(pairs, 400), "tiny")
    work = job(bundle, [("the dog " * 40, "der hund"), *pairs[:3]], tmp_path / "job", 2, 1.0, steps=6)
    with started(work.system(dragoman("fp32"), 1, 1)) as ask:
        assert ask(what="translate", batch=1000)["n_tokens"] == [6, 6, 6, 6]
