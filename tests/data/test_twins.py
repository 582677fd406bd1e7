"""Near twins of pairs, and the hold-out that has none of them in the training text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.config import DataConfig, PairOfFiles
from dragoman.data.tokenizer import Tokenizer, learn_tokenizers
from dragoman.data.twins import Pair, Twins
from dragoman.errors import DataError
from dragoman.training import hold_out
from dragoman.training.hold_out import HeldOut, draw

WORDS = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]


def pairs(n: int, seed: int = 1) -> list[Pair]:
    chance = random.Random(seed)
    sides = [" ".join(chance.choices(WORDS, k=chance.randint(5, 12))) for _ in range(2 * n)]
    return list(zip(sides[:n], sides[n:], strict=True))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("A dog runs.", "a dog  runs !", True), ("Chapter 12", "Chapter 7", True),
        ("Tom sleeps.", "Mary sleeps.", False), ("狗在花园里跑。", "狗在花园里跑", True),
        ("the old man sees a red house near the tree today", "the old man sees a red house near the river today", True),
        ("the old man sees a red house", "a young woman sold two green houses", False),
        ("...", "...", True), ("...", "?", False), ("", "", True),
    ],
)  # fmt: skip
def test_near_twins_share_nearly_all_words(one: str, other: str, alike: bool) -> None:
    assert Twins([(one, "unlike this")]).of((other, "something else")) == ({0} if alike else set())
    assert Twins([("unlike this", one)]).of(("something else", other)) == ({0} if alike else set())


def test_the_index_finds_what_comparing_all_finds() -> None:
    text = pairs(25)
    chance = random.Random(3)
    for src, tgt in pairs(25):
        words = src.split()
        words[chance.randrange(len(words))] = chance.choice(WORDS)
        text.append((" ".join(words), tgt[::-1]))
    every = Twins(text)
    alone = [Twins([other]) for other in text]
    for pair in text:
        assert every.of(pair) == {i for i, other in enumerate(alone) if other.of(pair)}


def held_out(text: list[Pair], data: DataConfig) -> tuple[HeldOut, list[Pair]]:
    setting = PairOfFiles(src=Path("a"), tgt=Path("b"))

    def read(_: object) -> Iterator[Pair]:
        return iter(text)

    pool = draw([setting], [setting], read)
    chosen = pool.choose(tokenizers(), data)
    return chosen, list(chosen.remaining(read, setting, 0))


def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    data = DataConfig(train=PairOfFiles(src=Path("a"), tgt=Path("b")), tokenizer={"vocab_size": 400})
    return learn_tokenizers(lambda: iter(pairs(200)), data.tokenizer)


def data_of(**changes: object) -> DataConfig:
    return DataConfig(train=PairOfFiles(src=Path("a"), tgt=Path("b")), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["three times over", "upper case", "each fiftieth blank", "each other too long"])
def test_no_pair_of_the_hold_out_stands_in_the_training_text(kind: str) -> None:
    text, data = pairs(400), data_of(max_tokens=100)
    if kind == "three times over":
        text = text * 3
    elif kind == "upper case":
        text += [(src.upper(), tgt + "!") for src, tgt in text]
    elif kind == "each fiftieth blank":
        text = [("", " ") if i % 50 == 49 else pair for i, pair in enumerate(text)]
    elif kind == "each other too long":
        text = [(src + " ban" * 200, tgt) if i % 2 else (src, tgt) for i, (src, tgt) in enumerate(text)]
    chosen, remaining = held_out(text, data)
    assert len(chosen.pairs) == sum(all(map(str.strip, pair)) for pair in text) // 100
    twins = Twins(list(chosen.pairs.values()))
    assert [pair for pair in remaining if twins.of(pair)] == []
    assert len(remaining) == len(text) - len(chosen.pairs) - len(chosen.twins)
    assert all(" ban ban" not in src and src for src, _ in chosen.pairs.values())
    assert held_out(text, data)[0] == chosen


def test_where_every_pair_is_repeated_more_often_than_is_kept_no_copy_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_out, "MOST_TWINS", 20)
    chosen, remaining = held_out(pairs(20) * 30, data_of())
    assert len(chosen.pairs) == 2  # with their copies a tenth of the text
    assert len(remaining) == 600 - 2 * 30
    assert not set(remaining) & set(chosen.pairs.values())
    common, rare = pairs(2)
    chosen, remaining = held_out([common] * 900 + [rare] * 100, data_of())
    assert set(chosen.pairs.values()) == {rare}
    assert set(remaining) == {common}


def test_what_cannot_be_held_out_is_refused_with_the_reason() -> None:
    with pytest.raises(DataError, match="60 pairs are too few to hold out 1%"):
        held_out(pairs(60), data_of())
    with pytest.raises(DataError, match="nearly every pair is repeated in it: give a validation set"):
        held_out(pairs(1) * 300, data_of())
    with pytest.raises(DataError, match="none of the 4 pairs drawn for validation is kept by cleaning"):
        held_out(pairs(200), data_of(max_tokens=2))
