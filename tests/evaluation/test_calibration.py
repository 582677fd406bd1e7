"""A confidence learned from a run's own translations, kept in its bundle, given with each translation."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.bundle import load_bundle, save_bundle
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.evaluation import calibration
from dragoman.evaluation.calibration import calibrate, learn_confidence
from dragoman.evaluation.metrics import chrf, sentence_chrf
from dragoman.locks import locked
from dragoman.model.weights import untied
from dragoman.translation.confidence import MIN_SENTENCES, Confidence, spearman
from dragoman.translation.notes import Note
from dragoman.translation.quality import QUALITIES
from dragoman.translation.translator import Translator


def mixed_pairs(toy: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Sources of the toy language; into every other one come words that the run has never seen."""
    chance = random.Random(0)
    sources, references = [], []
    for i, (src, tgt) in enumerate(toy):
        strange = " ".join("".join(chance.choices("bcdfgqxz", k=6)) for _ in range(1 + i % 4))
        sources.append(f"{src} {strange}" if i % 2 else src)
        references.append(f"{tgt} {strange}" if i % 2 else tgt)
    return sources, references


@pytest.fixture(scope="module")
def pairs(toy_sentences: Callable[[int, int], list[tuple[str, str]]]) -> tuple[list[str], list[str]]:
    return mixed_pairs(toy_sentences(240, 11))


@pytest.fixture(scope="module")
def learned(tiny_run: Path, pairs: tuple[list[str], list[str]]) -> Confidence:
    return learn_confidence(Translator.load(tiny_run, "cpu"), pairs[0][:140], pairs[1][:140])


def test_a_confidence_ranks_translations_that_it_has_not_seen(
    tiny_run: Path, learned: Confidence, pairs: tuple[list[str], list[str]]
) -> None:
    translator = Translator.load(tiny_run, "cpu")
    assert translator.confidence is None
    assert translator.translate(["the dog"])[0].confidence is None
    translator.confidence = learned
    sources, references = pairs[0][140:], pairs[1][140:]
    found = translator.translate(sources, guard=False)
    said = [one.confidence for one in found if one.confidence is not None]
    assert len(said) == len(found)
    assert all(0 <= value <= 1 for value in said)
    assert spearman(said, sentence_chrf([one.text for one in found], references)) > 0.5
    easy, hard = (sum(said[i::2]) for i in (0, 1))
    assert easy > hard


def test_blank_lines_have_none_and_a_fault_that_is_left_has_0(
    tiny_run: Path, learned: Confidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(tiny_run, "cpu")
    translator.confidence = learned
    blank, sound = translator.translate(["", "the dog sees a cat"])
    assert (blank.confidence, blank.text) == (None, "")
    assert sound.confidence is not None
    assert sound.confidence > 0
    monkeypatch.setattr("dragoman.translation.guard.faults", lambda *args, **facts: ("copy",))  # nothing is good enough
    [copy] = translator.translate(["the dog sees a cat"])
    assert copy.text == sound.text
    assert copy.notes[0].left
    assert copy.notes[0].kind == "copy"
    assert copy.confidence == 0.0


def test_lines_that_nobody_sees_are_left_out(tiny_run: Path, pairs: tuple[list[str], list[str]]) -> None:
    sources, references = pairs[0][:120], pairs[1][:120]
    sources = [*sources[:60], "\u200b", "\ufeff\u200e", *sources[60:]]
    references = [*references[:60], "ein Hund", "ein Hund", *references[60:]]
    learned = learn_confidence(Translator.load(tiny_run, "cpu"), sources, references)
    assert learned == learn_confidence(Translator.load(tiny_run, "cpu"), pairs[0][:120], pairs[1][:120])


def test_a_bundle_keeps_its_confidence_and_an_ensemble_has_none(
    learned: Confidence, reseal: Callable[..., Path], tiny_run: Path
) -> None:
    bundle = reseal({"confidence": learned.model_dump(mode="json")})
    assert Translator.load(bundle, "cpu").confidence == learned
    assert Translator.load([bundle, tiny_run], "cpu").confidence is None


@pytest.mark.parametrize("numbers", [5, [], {"bias": 1.0}, {"weights": []}])
def test_a_bundle_with_an_invalid_confidence_is_refused(reseal: Callable[..., Path], numbers: Any) -> None:
    with pytest.raises(
        BundleError, match=r"^the confidence in the bundle cannot be used \(|: confidence must be a mapping, got"
    ):
        Translator.load(reseal({"confidence": numbers}), "cpu")


def test_training_learns_it_from_the_validation_set_if_that_is_large_enough(
    tiny: Callable[..., dict[str, Any]], make_corpus: Callable[..., Any], tmp_path: Path, command: Callable[..., Any]
) -> None:
    files = make_corpus(tmp_path, 300)
    src, tgt = (path.read_text(encoding="utf-8").split("\n")[:MIN_SENTENCES] for path in (files.src, files.tgt))
    files.valid_src.write_text("\n".join(src) + "\n", encoding="utf-8")
    files.valid_tgt.write_text("\n".join(tgt) + "\n", encoding="utf-8")
    config = dragoman.Config.from_mapping(tiny(files, max_steps=40, validate_every=40, save_every=40))
    run = dragoman.train(config, out=tmp_path / "run", quiet=True).run
    manifest = json.loads((run / "bundle/manifest.json").read_text(encoding="utf-8"))
    assert manifest["confidence"]["sentences"] == MIN_SENTENCES
    done = command("translate", run, "--json", stdin=b"the dog sees a cat\n\n")
    first, blank = (json.loads(line) for line in done.out.decode().splitlines())
    assert 0 <= first["confidence"] <= 1
    assert "confidence" not in blank


def test_a_small_validation_set_gives_none_and_few_pairs_are_refused(tiny_run: Path) -> None:
    manifest = json.loads((tiny_run / "bundle/manifest.json").read_text(encoding="utf-8"))
    assert "confidence" not in manifest  # 20 pairs
    translator = Translator.load(tiny_run, "cpu")
    with pytest.raises(DataError, match=f"{MIN_SENTENCES} pairs or more, got 2"):
        learn_confidence(translator, ["a", "", "b"], ["x", "y", "z"])
    with pytest.raises(DataError, match="2 sources but 1 references"):
        learn_confidence(translator, ["a", "b"], ["x"])


def test_a_language_of_one_sentence_and_a_line_without_memory_end_no_calibration(
    several_run: Path, pairs: tuple[list[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(several_run, "cpu")
    common, rare = sorted(translator.languages.targets)[:2]
    langs = [common] * (MIN_SENTENCES + 4) + [rare]
    n = len(langs)
    assert learn_confidence(translator, pairs[0][:n], pairs[1][:n], langs).sentences == n
    translate = Translator.translate

    def short_of_memory(self: Any, texts: Any, *args: Any, **options: Any) -> Any:
        found = translate(self, texts, *args, **options)
        lost = Note("memory", "out of memory")
        options["events"].failed(lost)  # without it an error is raised
        return [*(replace(one, text="", n_tokens=0, notes=(lost,)) for one in found[:1]), *found[1:]]

    monkeypatch.setattr(Translator, "translate", short_of_memory)
    assert learn_confidence(translator, pairs[0][:n], pairs[1][:n], langs).sentences == n - 2  # one of each language


def test_sentence_chrf_is_that_of_each_sentence_alone() -> None:
    hyps, refs = ["der hund", "", "eine katze sitzt"], ["der hund", "ein mann", "die katze sitzt da"]
    assert sentence_chrf(hyps, refs) == pytest.approx([100.0, 0.0, chrf(hyps[2:], refs[2:]).value], abs=1e-6)
    with pytest.raises(DataError):
        sentence_chrf(hyps, refs[:2])
    assert sentence_chrf(["", " ", "", "x"], ["", "", "x", ""]) == [100.0, 100.0, 0.0, 0.0]  # where nothing is wrong


def test_one_command_calibrates_a_run_without_a_confidence(
    command: Callable[..., Any], tiny_run: Path, corpus: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run / "bundle", run / "bundle")
    assert Translator(run).translate("the dog").quality is None
    for name, path in (("s.en", corpus.src), ("s.de", corpus.tgt)):
        (tmp_path / name).write_text("\n".join(path.read_text(encoding="utf-8").split("\n")[:110]), encoding="utf-8")
    done = command("calibrate", run, "--src", tmp_path / "s.en", "--ref", tmp_path / "s.de")
    assert done.status == 0
    assert "confidence learned from 110 lines" in done.out.decode()
    translation = Translator(run).translate("the dog")
    assert translation.quality in QUALITIES
    done = command("translate", run, tmp_path / "s.en")
    counts = r"quality: \d+ good, \d+ doubtful, \d+ poor \(estimated\); (good|doubtful|poor) on the whole"
    assert re.search(counts, done.err)
    few = command("calibrate", run, "--src", corpus.valid_src, "--ref", corpus.valid_tgt)
    assert (few.status, few.error) == (2, "error: a confidence needs 100 pairs or more, got 20")
    other = command("calibrate", run, "--src", tmp_path / "s.en", "--ref", tmp_path / "s.de", "--to", "fr")
    assert (other.status, other.err.count("French")) == (2, 0)
    assert other.error == "error: to = 'fr': this model has one target language; leave it out"


def test_a_confidence_belongs_to_the_bundle_that_it_was_learned_of(
    tiny_run: Path, corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that ended meanwhile had its new bundle replaced by the old one, or got the confidence of that."""
    run = tmp_path / "run"
    shutil.copytree(tiny_run / "bundle", run / "bundle")
    with locked(run), pytest.raises(ConfigError, match="is training there"):
        calibrate(run, corpus.src, corpus.tgt)
    sources, references = (path.read_text(encoding="utf-8").split("\n")[:110] for path in (corpus.src, corpus.tgt))
    newer, learned = load_bundle(run), learn_confidence(Translator(run), sources, references)
    manifest = {**newer.manifest, "step": 1234}

    def learned_meanwhile(*_: Any) -> Confidence:
        save_bundle(
            run / "bundle", newer.config, newer.model.config, untied(newer.model), newer.src_tokenizer,
            newer.tgt_tokenizer, manifest,
        )  # fmt: skip
        return learned

    monkeypatch.setattr(calibration, "learn_confidence", learned_meanwhile)
    with pytest.raises(BundleError, match="another bundle has taken its place meanwhile, so nothing was stored"):
        calibrate(run, corpus.src, corpus.tgt)
    assert (load_bundle(run).facts.step, load_bundle(run).facts.confidence) == (1234, None)


def test_a_run_of_several_languages_is_calibrated_for_one_and_reported_on(
    command: Callable[..., Any], several_run: Path, corpus: Any, tmp_path: Path
) -> None:
    """Both said that a language must be chosen, and had no option for it."""
    run = tmp_path / "run"
    shutil.copytree(several_run, run)
    lines = corpus.src.read_text(encoding="utf-8").split("\n")[:110]
    for name in ("s.en", "s.de"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = ("--src", tmp_path / "s.en", "--ref", tmp_path / "s.de")
    assert "choose one with to" in command("calibrate", run, *text).error
    done = command("calibrate", run, *text, "--to", "de")
    assert done.status == 0, done.err
    assert "confidence learned from 110 lines" in done.out.decode()
    assert "learned from de alone now, and holds for all its target languages" in done.err
    done = command("report", run, *text, "--to", "de", "--out", tmp_path / "page.html")
    assert done.status == 0, done.err
    assert "--src too" in command("report", run, "--to", "de").error
