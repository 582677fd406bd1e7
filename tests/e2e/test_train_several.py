"""One model of several corpora: weights, tags, and several target languages, from the settings to the translation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.bundle import load_bundle
from dragoman.data.store import Store
from dragoman.data.tokenizer import UNK_ID
from dragoman.errors import ConfigError
from dragoman.serving.pairs import Pairs
from dragoman.training import update
from dragoman.training.preparation import repeated_share
from dragoman.training.record import read_run
from several import Pair, Tiny, french, settings, written


@pytest.fixture(name="run")
def _run(several_run: Path) -> Path:
    return several_run


def test_one_model_translates_into_the_language_that_is_asked_for(
    run: Path, toy_sentences: Callable[[int, int], list[Pair]]
) -> None:
    translator, pairs = dragoman.Translator.load(run, "cpu"), toy_sentences(20, 2)
    sources = [src for src, _ in pairs]
    for to, expected in (("de", pairs), ("fr", french(pairs))):
        found = [one.text.split() for one in translator.translate(sources, to=to)]
        wanted = [tgt.split() for _, tgt in expected]
        right = sum(word in want for each, want in zip(found, wanted, strict=True) for word in each)
        assert right > 0.8 * sum(map(len, found))
        targets = [tgt for _, tgt in expected]
        own, other = (translator.score(sources, targets, to=lang) for lang in (to, {"de": "fr", "fr": "de"}[to]))
        assert all(a.log_prob > b.log_prob for a, b in zip(own, other, strict=True))
    assert repr(translator).startswith("<Translator: en to de, fr,")


def test_it_must_be_asked_for_a_language_that_it_knows(run: Path, tmp_path: Path) -> None:
    translator = dragoman.Translator.load(run, "cpu")
    for ask in (
        lambda **to: translator.translate("the dog", **to),
        lambda **to: translator.score("the dog", "der hund", **to),
        lambda **to: dragoman.explain(translator, "the dog", **to),
    ):
        with pytest.raises(ConfigError, match=r"translates into 2 languages: choose one with to \(de, fr\)"):
            ask()
        with pytest.raises(ConfigError, match="to must be de or fr, got 'it'"):
            ask(to="it")
    with pytest.raises(ConfigError, match="from_lang must be en, got 'cs'"):
        translator.translate("the dog", to="fr", from_lang="cs")


def test_the_manifest_and_the_store_say_what_it_was_trained_on(run: Path) -> None:
    manifest = json.loads((run / "bundle/manifest.json").read_text(encoding="utf-8"))
    assert manifest["pairs"] == [["en", "de"], ["en", "fr"]]
    assert (manifest["src_lang"], manifest["tgt_lang"]) == ("en", None)
    parts = Store.open(run / "store/train").parts
    assert [(part.pairs, part.weight, len(part.begin)) for part in parts] == [(300, 1, 1), (300, 1, 1), (200, 0.5, 2)]
    assert [part.weight for part in Store.open(run / "store/valid").parts] == [1, 1]


def test_a_server_has_each_direction_and_chooses_it_by_the_languages(run: Path) -> None:
    pairs = Pairs([dragoman.Translator.load(run, "cpu")])
    assert [(pair.name, pair.to) for pair in pairs] == [("en-de", "de"), ("en-fr", "fr")]
    assert pairs.find("EN", "fra").to == "fr"


def test_it_resumes_bit_for_bit(tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]]) -> None:
    config = dragoman.Config.from_mapping(settings(tiny, tmp_path, toy_sentences))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    dragoman.train(config, out=whole, quiet=True)
    dragoman.train(config, out=parts, overrides=["train.max_steps=10"], quiet=True)
    dragoman.train(out=parts, resume=True, overrides=["train.max_steps=30"], quiet=True)
    one, other = (hashlib.sha256((run / "bundle/model.safetensors").read_bytes()).digest() for run in (whole, parts))
    assert one == other


def test_it_is_fine_tuned_for_one_of_its_languages_and_knows_what_it_was_trained_on(
    run: Path, tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]]
) -> None:
    data = {"train": written(tmp_path, "fr", french(toy_sentences(200, 5)), tgt_lang="fr", src_lang="en"),
            "valid": written(tmp_path, "v", french(toy_sentences(20, 2)), tgt_lang="fr", src_lang="en")}  # fmt: skip
    mapping = {"data": data, "train": tiny(max_steps=10)["train"]}
    (tmp_path / "tune.yaml").write_text(json.dumps(mapping), encoding="utf-8")
    dragoman.train(tmp_path / "tune.yaml", out=tmp_path / "tuned", from_run=run, quiet=True)
    tuned = dragoman.Translator.load(tmp_path / "tuned", "cpu")
    assert tuned.languages.trained == (("en", "fr"), ("en", "de"))
    assert tuned.translate("the dog", to="fr").text
    for change, message in (
        ({"tgt_lang": "it"}, r"translates into de, fr, and the target language of data.train is it"),
        ({"tag": "<ft>"}, "has no tag <ft>"),
    ):
        other = {"data": {"train": data["train"] | change, "valid": data["valid"] | change}, "train": mapping["train"]}
        (tmp_path / "other.yaml").write_text(json.dumps(other), encoding="utf-8")
        with pytest.raises(ConfigError, match=message):
            dragoman.train(tmp_path / "other.yaml", out=tmp_path / "other", from_run=run, quiet=True)


def test_a_pair_that_was_never_trained_on_is_named(
    tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]], caplog: pytest.LogCaptureFixture
) -> None:
    real, valid = toy_sentences(200, 1), toy_sentences(20, 2)
    back = [(de, en) for en, de in real]
    mapping = tiny(max_steps=10)
    mapping["data"] |= {
        "train": [
            written(tmp_path, "fr", french(real), src_lang="en", tgt_lang="fr"),
            written(tmp_path, "en", back, src_lang="de", tgt_lang="en"),
        ],
        "valid": written(tmp_path, "v", french(valid), src_lang="en", tgt_lang="fr"),
    }
    dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    translator = dragoman.Translator.load(tmp_path / "run", "cpu")
    (found,) = translator.translate(["der hund"], to="fr", from_lang="de")
    (note,) = [note for note in found.notes if note.kind == "zero_shot"]
    assert note.text.startswith("zero-shot: de to fr was never trained on (trained: en to fr, de to en)")
    assert note.text in caplog.text
    for given in ({"to": "fr", "from_lang": "en"}, {"to": "fr"}):  # trained on; nobody knows
        assert not [note for note in translator.translate(["the dog"], **given)[0].notes if note.kind == "zero_shot"]
    assert [(pair.name, pair.to) for pair in Pairs([translator])] == [("en-fr", "fr"), ("de-en", "en"), ("de-fr", "fr")]


def test_made_text_is_not_held_out_for_validation_where_there_is_other_text(
    tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]]
) -> None:
    mapping = tiny(max_steps=2)
    real, made = toy_sentences(250, 1), toy_sentences(300, 3)
    mapping["data"]["train"] = [
        written(tmp_path, "made", made, tag="<bt>"), written(tmp_path, "real", real, weight=2)
    ]  # fmt: skip
    del mapping["data"]["valid"]
    dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    valid = Store.open(tmp_path / "run/store/valid")
    held_out = set(zip(*valid.texts(range(len(valid))), strict=True))
    assert len(valid) == 2
    assert held_out <= set(real)
    n_made, n_real = (part.pairs for part in Store.open(tmp_path / "run/store/train").parts)
    assert 270 < n_made <= 300  # without near twins of the held-out pairs
    assert 220 < n_real <= 248


def test_text_that_no_epoch_draws_is_not_held_out(
    tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]]
) -> None:
    mapping = tiny(max_steps=2)
    off, real = toy_sentences(900, 3), toy_sentences(250, 1)
    mapping["data"]["train"] = [written(tmp_path, "off", off, weight=0), written(tmp_path, "real", real)]
    del mapping["data"]["valid"]
    dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    valid = Store.open(tmp_path / "run/store/valid")
    assert set(zip(*valid.texts(range(len(valid))), strict=True)) <= set(real)


def test_text_that_no_epoch_draws_makes_no_claim_about_the_model(
    tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Validation pairs that stood in such text alone were said to stand in the training text."""
    mapping, real = tiny(max_steps=2), toy_sentences(250, 1)
    valid = [pair for pair in toy_sentences(30, 2) if pair not in real]
    off = [*valid, *((f"quetzal {src}", tgt) for src, tgt in toy_sentences(600, 3))]
    mapping["data"] |= {
        "train": [written(tmp_path, "off", off, weight=0), written(tmp_path, "real", real)],
        "valid": written(tmp_path, "valid", valid),
    }
    run = dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run").run
    assert "in the training text" not in capsys.readouterr().err
    assert repeated_share(run) == 0
    bundle = load_bundle(run)
    assert bundle.facts.train_pairs == 250
    assert bundle.words is not None
    assert bundle.words.unseen("the quetzal sees") == ["quetzal"]
    assert [len(lengths) for lengths in read_run(run).lengths()] == [250, 250]


def test_no_tag_is_dropped_with_the_tokens(
    tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its tag a source does not tell into which language it is to be translated."""
    read, features = [], update.features

    def noted(model: Any, src: Any, *rest: Any) -> Any:
        read.extend(src.tolist())
        return features(model, src, *rest)

    monkeypatch.setattr(update, "features", noted)
    config = dragoman.Config.from_mapping(settings(tiny, tmp_path, toy_sentences, max_steps=5, token_dropout=0.999))
    run = dragoman.train(config, out=tmp_path / "run", quiet=True).run
    begins = {part.begin for part in Store.open(run / "store/train").parts}
    assert {len(begin) for begin in begins} == {1, 2}
    assert {begin for row in read for begin in begins if tuple(row[: len(begin)]) == begin} == begins
    assert all(any(tuple(row[: len(begin)]) == begin for begin in begins) for row in read)
    assert sum(row.count(UNK_ID) for row in read) > 2 * len(read)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"tgt_lang": "de"}, {}], "its target language is not known; write tgt_lang"),
        ([{"tgt_lang": "de"}, {"tgt_lang": "fr"}], "it is no target language of data.train"),
    ],
)
def test_a_text_without_a_target_language_among_several_is_refused(
    tmp_path: Path, tiny: Tiny, toy_sentences: Callable[[int, int], list[Pair]], entries: list[Any], message: str
) -> None:
    mapping = tiny()
    mapping["data"]["train"] = [
        written(tmp_path, f"t{i}", toy_sentences(20, i), **entry) for i, entry in enumerate(entries)
    ]
    mapping["data"]["valid"] = written(tmp_path, "v", toy_sentences(20, 9), tgt_lang="it")
    with pytest.raises(ConfigError, match=message):
        dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()
