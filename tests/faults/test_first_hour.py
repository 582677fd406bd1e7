"""Rows N1 to N3: mixed-up files, validation text that leaks into training, and ready bundles that change."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import ready
from dragoman.config import DataConfig, PairOfFiles
from dragoman.data import phrasebook
from dragoman.data.twins import Pair
from dragoman.training.hold_out import draw
from dragoman.translation.translator import Translator

Command = Callable[..., Any]
Figure = Callable[[str, str], None]

ENGLISH = "The children were playing in the garden when the rain began to fall on their heads, {i} of them."
GERMAN = "Die Kinder spielten im Garten, als der Regen auf ihre Köpfe zu fallen begann, {i} von ihnen."


@pytest.fixture
def here(tiny_run: Path, tmp_path: Path) -> Path:
    """A folder with a run from English to German, and texts with telling names and without."""
    shutil.copytree(tiny_run, tmp_path / "run", ignore=shutil.ignore_patterns("exports", "evaluations.jsonl"))
    for lang, sentence in (("en", ENGLISH), ("de", GERMAN)):
        text = "".join(sentence.format(i=i) + "\n" for i in range(8))
        for name in (f"t.{lang}", f"{lang}-text"):
            (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_N1_a_mix_up_of_languages_is_refused_or_named_once(here: Path, command: Command, figure: Figure) -> None:
    swapped = ("--src", "t.de", "--ref", "t.en")
    by_name = [
        ("translate", "run", "t.de"),
        ("translate", "run", "t.de", "--ray", "local", "--out", "x"),
        ("evaluate", "run", *swapped),
        ("score", "run", *swapped),
        ("calibrate", "run", *swapped),
        ("distill", "run", *swapped, "--out", "x"),
        ("augment", "--forward", "run", "--src", "t.de", "--out", "x"),
        ("export", "run", "--format", "ctranslate2", "--out", "x", "--check", "t.de", "--ref", "t.en"),
        ("train", "t.de", "t.en", "--from-run", "run", "--out", "x"),
    ]
    for call in by_name:
        refused = command(*call, cwd=here)
        assert refused.status == 2, call
        assert "by its name, but" in refused.error
    assert not (here / "x").exists()
    search = ("--beam-size", "1")
    by_words = {
        "de-text": ("translate", "run", "de-text", *search),
        "en-text": ("score", "run", "--src", "en-text", "--ref", "en-text"),
        "stdin": ("translate", "run", *search),
    }
    for name, call in by_words.items():
        warned = command(*call, stdin=(here / "de-text").read_bytes(), cwd=here)
        lines = [line for line in warned.err.split("\n") if line.startswith(f"warning: {name}: looks like ")]
        assert (warned.status, len(lines)) == (0, 1), warned.err
    right = [("--src", en, "--ref", de) for en, de in (("t.en", "t.de"), ("en-text", "de-text"))]
    for call in [("score", "run", *options) for options in right] + [("translate", "run", *search)]:
        done = command(*call, stdin=(here / "en-text").read_bytes(), cwd=here)
        assert done.status == 0
        assert "looks like" not in done.err
    figure("N1", f"{len(by_name)} calls refused by names, {len(by_words)} warned of by words, 3 right ones: 0 alarms")


def test_N2_no_held_out_pair_stands_in_the_training_text(tiny_run: Path, figure: Figure) -> None:
    rng = random.Random(1)
    pairs = list(phrasebook.pairs(1500))
    pairs += [*pairs[::3], *((src.upper(), tgt) for src, tgt in pairs[::7])]
    rng.shuffle(pairs)
    text = PairOfFiles(src=Path("a"), tgt=Path("b"))

    def read(_: Any) -> Iterator[Pair]:
        return iter(pairs)

    translator = Translator.load(tiny_run, "cpu")
    pool = draw([text], [text], read)
    held_out = pool.choose((translator.src_tokenizer, translator.tgt_tokenizer), DataConfig(train=text))
    remaining = set(held_out.remaining(read, text, 0))
    leaked = [pair for pair in held_out.pairs.values() if pair in remaining]
    assert len(held_out.pairs) >= len(pairs) // 100
    assert leaked == []
    figure("N2", f"{len(held_out.pairs)} pairs held out of {len(pairs):,} with copies: 0 in the training text")


def test_N3_a_ready_bundle_can_be_named_everywhere_and_is_never_changed(
    here: Path, command: Command, figure: Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = here / "package"
    shutil.copytree(here / "run/bundle", package / "en-de")
    monkeypatch.setattr(ready, "FOLDER", package)
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in package.rglob("*") if path.is_file()}
    sides = ("--src", "t.en", "--ref", "t.de")
    calls = [
        ("translate", "demo", "t.en"),
        ("evaluate", "demo", *sides, "--metric", "chrf"),
        ("score", "demo", *sides),
        ("explain", "demo", "The dog sleeps."),
        ("export", "demo", "--format", "page"),
        ("formats", "demo"),
        ("doctor", "demo"),
        ("runs", "demo"),
        # of what this small model makes of unknown words, only torch's search keeps any
        ("augment", "--forward", "demo", "--src", "t.en", "--out", "made", "--any-language", "--engine", "torch"),
    ]
    for call in calls:
        assert command(*call, cwd=here).status == 0, call
    assert "belongs to the package and is not changed" in command("calibrate", "demo", *sides, cwd=here).error
    after = {path: hashlib.sha256(path.read_bytes()).digest() for path in package.rglob("*") if path.is_file()}
    assert after == before
    figure("N3", f"{len(calls)} commands by its name, 1 refused: 0 of {len(before)} files changed")
