"""Training with noise: from the settings to a run that reads capitals and resumes exactly."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, DataError

Tiny = Callable[..., dict[str, Any]]

NOISE = {"case": 0.3, "punctuation": 0.2, "typos": 0.1, "one_word": 0.1, "inserts": 0.1}


def noisy(tiny: Tiny, **train: Any) -> dragoman.Config:
    mapping = tiny(**train)
    mapping["data"] |= {"noise": NOISE, "tokenizer": {"vocab_size": 600}}
    return dragoman.Config.from_mapping(mapping)


def weights(run: Path) -> str:
    return hashlib.sha256((run / "bundle/model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny) -> Path:
    """A run of 30 steps without interruption."""
    folder = tmp_path_factory.mktemp("noise") / "run"
    dragoman.train(noisy(tiny), out=folder, quiet=True)
    return folder


def test_a_run_with_noise_resumes_bit_for_bit(run: Path, tmp_path: Path, tiny: Tiny) -> None:
    for noise, same in ((True, True), (False, False)):
        config = noisy(tiny) if noise else dragoman.Config.from_mapping(tiny())
        again = tmp_path / str(noise)
        dragoman.train(config, out=again, overrides=["train.max_steps=10"], quiet=True)
        dragoman.train(out=again, resume=True, overrides=["train.max_steps=30"], quiet=True)
        assert (weights(again) == weights(run)) == same


def test_the_bundle_says_that_its_model_has_learned_masks(run: Path, tiny_run: Path) -> None:
    assert dragoman.Translator.load(run, "cpu").masks == "[{}]"
    assert dragoman.Translator.load(tiny_run, "cpu").masks is None


def test_subwords_are_learned_from_capitals_too_and_word_pairs_from_the_corpus(run: Path) -> None:
    lexicon = json.loads((run / "store/lexicon.json").read_text(encoding="utf-8"))
    assert lexicon["dog"] == "hund"
    assert lexicon["woman"] == "frau"
    pieces = Tokenizer.load(run / "store/joint.spm")
    shouted = pieces.pieces(pieces.encode(["THE BIG DOG SLEEPS"])[0])
    assert len(shouted) < 8  # and not a piece for each of 18 characters


def test_another_lexicon_than_that_of_the_run_is_refused(run: Path, tmp_path: Path, tiny: Tiny) -> None:
    other = tmp_path / "other"
    dragoman.train(noisy(tiny, max_steps=10), out=other, quiet=True)
    path = other / "store/lexicon.json"
    for text, message in (
        ("{}", "was taken with noise = "),
        ("[", "cannot be read"),
        ('{"a": 1}', "not a file of word pairs"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BundleError, match=message):
            dragoman.train(out=other, resume=True, overrides=["train.max_steps=20"], quiet=True)
    path.unlink()
    with pytest.raises(BundleError, match="was taken with noise = "):
        dragoman.train(out=other, resume=True, overrides=["train.max_steps=20"], quiet=True)


def test_one_word_lines_need_words_that_translate_each_other(tmp_path: Path, tiny: Tiny) -> None:
    mapping = tiny()
    src = Path(mapping["data"]["train"]["src"]).read_text(encoding="utf-8")
    joined = tmp_path / "train.zh"
    joined.write_text("".join(line.replace(" ", "") + "\n" for line in src.split("\n")[:-1]), encoding="utf-8")
    mapping["data"]["train"]["tgt"] = str(joined)
    del mapping["data"]["valid"]
    mapping["data"]["noise"] = {"one_word": 0.1}
    with pytest.raises(DataError, match=r"data\.noise\.one_word: no reliable word translations .* set it to 0"):
        dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_model_trained_with_capitals_reads_capitals(tmp_path: Path, tiny: Tiny, tiny_run: Path) -> None:
    mapping = tiny(max_steps=400, schedule="cosine", batch_tokens=600, validate_every=400, save_every=400)
    mapping["model"]["dropout"] = 0.0
    mapping["data"] |= {"noise": {"case": 0.4}, "tokenizer": {"vocab_size": 600}}
    dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    words = ["the dog sees a cat", "a woman likes the house", "the man finds a tree here"]
    wanted = ["der hund sieht ein katze", "ein frau mag der haus", "der mann findet ein baum hier"]

    def right(run: Path, texts: list[str]) -> int:
        found = dragoman.Translator.load(run).translate(texts, truecase=False)  # or each would read them in lower case
        pairs = zip(found, wanted, strict=True)
        return sum(a == b for one, line in pairs for a, b in zip(one.text.split(), line.split(), strict=False))

    capitals = [text.upper() for text in words]
    assert right(tmp_path / "run", capitals) > right(tiny_run, capitals) + 5
    assert right(tmp_path / "run", capitals) >= 12  # of 16 words
