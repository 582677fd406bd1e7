"""Several corpora in one store: how often their pairs are drawn, and the tags their sources begin with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import facts_of_text
from dragoman.config import Config, DataConfig, TokenizerConfig
from dragoman.data.batching import Batch, BatchStream
from dragoman.data.order import weighted_pairs
from dragoman.data.regularisation import Regularisation
from dragoman.data.seen_words import learn
from dragoman.data.store import Entry, Part, Store, build_store
from dragoman.data.tokenizer import EOS_ID, Tokenizer
from dragoman.errors import BundleError, ConfigError
from dragoman.training.preparation import refuse_other_tags

LINES = ["a quick brown fox jumps over the lazy dog and runs away"] * 5
TAGS = [">>fr<<", ">>de<<", "<bt>"]
TOKENIZER = Tokenizer.learn(LINES, TokenizerConfig(vocab_size=300), TAGS)
CONFIG = DataConfig.model_validate({"train": {"src": "s", "tgt": "t"}})
BUDGET = 97
WORDS = LINES[0].split()
SIZES = (41, 29, 31)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three corpora: one drawn once, one three times in two epochs, one seldom; the last two with tags."""
    folder = tmp_path_factory.mktemp("data") / "store"
    pairs = [(" ".join(WORDS[: 1 + i % 11]), " ".join(WORDS[i % 7 : 8 + i % 5])) for i in range(sum(SIZES))]
    begins = TOKENIZER.begin("fr", None), TOKENIZER.begin("de", None), TOKENIZER.begin("de", "<bt>")
    entries = [
        Entry(pairs[sum(SIZES[:i]) : sum(SIZES[: i + 1])], f"corpus {i}", weight, begin)
        for i, (weight, begin) in enumerate(zip((1.0, 1.5, 0.3), begins, strict=True))
    ]
    build_store(folder, entries, (TOKENIZER, TOKENIZER), CONFIG, keep_text=True)
    return Store.open(folder)


def batches(store: Store, n: int, anew: Regularisation | None = None, **arguments: Any) -> list[Batch]:
    with BatchStream(store, BUDGET, 7, regularisation=anew, **arguments) as stream:
        return [next(stream) for _ in range(n)]


def same(one: Batch, other: Batch) -> bool:
    return torch.equal(one.src, other.src) and torch.equal(one.tgt_out, other.tgt_out)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.sampled_from([0.0, 0.1, 0.3, 0.75, 1.0, 2.0, 2.5])), min_size=1),
    st.integers(1, 9),
)
def test_after_any_number_of_epochs_pairs_of_a_corpus_came_equally_often(
    corpora: list[tuple[int, float]], epochs: int
) -> None:
    parts = [Part(pairs=n, weight=weight) for n, weight in corpora]
    counts: Counter[int] = Counter()
    for epoch in range(epochs):
        chosen = weighted_pairs(parts, 1, epoch)
        counts.update(range(sum(n for n, _ in corpora)) if chosen is None else chosen.tolist())
    first = 0
    for part in parts:
        own = [counts[i] for i in range(first, first + part.pairs)]
        assert max(own) - min(own) <= 1
        assert abs(sum(own) - epochs * part.weight * part.pairs) < 1  # a pair is not cut in two
        first += part.pairs
    assert counts.total() == sum(part.drawn_before(epochs) for part in parts)


def test_a_weight_is_the_decimal_it_is_written_as() -> None:
    assert Part(pairs=10, weight=0.3).drawn_before(1) == 3  # 0.3 in binary is a little less
    chosen = [weighted_pairs([Part(pairs=7, weight=2.0), Part(pairs=2, weight=0.0)], seed, 0) for seed in (1, 2)]
    assert all(each is not None and Counter(each.tolist()) == dict.fromkeys(range(7), 2) for each in chosen)


def test_what_is_drawn_is_spread_over_the_corpus_and_never_changes() -> None:
    chosen = weighted_pairs([Part(pairs=1000, weight=0.02)], 1, 0)
    assert chosen is not None
    gaps = np.diff(np.sort(chosen))
    assert gaps.max() <= 4 * gaps.min()
    assert weighted_pairs([Part(pairs=10, weight=0.5), Part(pairs=3)], 1, 2).tolist() == EXPECTED  # type: ignore[union-attr]


EXPECTED = [9, 6, 3, 0, 7, 10, 12, 11]
"""Which pairs come must be the same with every version, so that a run can be resumed."""


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_an_epoch_has_each_pair_as_often_as_its_weight_says(store: Store, sampling: float) -> None:
    anew = Regularisation(sampling=sampling, tokenizers=(TOKENIZER, TOKENIZER)) if sampling else None
    counts: Counter[int] = Counter()
    with BatchStream(store, BUDGET, 7, regularisation=anew, max_epochs=10) as stream:
        for batch in stream:
            counts.update(batch.indices.tolist())
        assert stream.epochs_done == 10
    by_part = [sum(counts[i] for i in range(sum(SIZES[:k]), sum(SIZES[: k + 1]))) for k in range(3)]
    assert by_part == [410, 435, 93]
    assert store.n_drawn == pytest.approx(41 + 43.5 + 9.3)


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_each_source_begins_with_the_tags_of_its_corpus(store: Store, sampling: float) -> None:
    anew = Regularisation(sampling=sampling, tokenizers=(TOKENIZER, TOKENIZER)) if sampling else None
    ends = np.cumsum(SIZES)
    for batch in batches(store, 40, anew):
        for index, row in zip(batch.indices.tolist(), batch.src.tolist(), strict=True):
            part = store.parts[int(np.searchsorted(ends, index, side="right"))]
            assert tuple(row[: len(part.begin)]) == part.begin
            rest = row[len(part.begin) : row.index(EOS_ID)]
            assert not set(rest) & set(TOKENIZER.tags.values())
            assert TOKENIZER.decode([rest]) == store.texts([index])[0]
    assert [TOKENIZER.pieces(part.begin) for part in store.parts] == [[">>fr<<"], [">>de<<"], [">>de<<", "<bt>"]]


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_resuming_and_ranks_follow_the_one_order(store: Store, sampling: float) -> None:
    anew = Regularisation(sampling=sampling, tokenizers=(TOKENIZER, TOKENIZER)) if sampling else None
    all_ = batches(store, 60, anew, ahead=0)
    for n in (0, 1, 17, 33):
        with (
            BatchStream(store, BUDGET, 7, regularisation=anew, ahead=3) as stream,
            BatchStream(store, BUDGET, 7, regularisation=anew) as other,
        ):
            for _ in range(n):
                next(stream)
            other.load_state_dict(stream.state_dict())
            assert all(same(next(other), batch) for batch in all_[n : n + 20])
    ranks = [batches(store, 20, anew, rank=rank, world_size=3, ahead=0) for rank in range(3)]
    assert all(same(ranks[i % 3][i // 3], all_[i]) for i in range(60))


def test_a_place_taken_with_other_weights_is_refused(store: Store) -> None:
    with BatchStream(store, BUDGET, 7) as stream:
        state = stream.state_dict()
        assert state["weights"] == "1x41 1.5x29 0.3x31"
        with pytest.raises(BundleError, match="was taken with weights = 2x"):
            stream.load_state_dict({**state, "weights": "2x41 1.5x29 0.3x31"})


def test_weights_that_leave_no_pair_to_an_epoch_are_refused(tmp_path: Path) -> None:
    pairs = [("a quick fox", "the dog")] * 9
    build_store(tmp_path / "s", [Entry(pairs, weight=0.1)], (TOKENIZER, TOKENIZER), CONFIG)
    with pytest.raises(ConfigError, match=r"the weights of data.train leave 0.9 pairs to an epoch"):
        BatchStream(Store.open(tmp_path / "s"), BUDGET, 1)


def test_text_that_no_epoch_draws_does_not_count_as_trained_on(tmp_path: Path) -> None:
    real = [("a quick brown fox jumps over the dog", "the lazy dog jumps")] * 9
    off = [("and runs away. " * 9, "a fox")] * 99
    for name, entries in (("alone", [Entry(real)]), ("both", [Entry(off, weight=0.0), Entry(real)])):
        build_store(tmp_path / name, entries, (TOKENIZER, TOKENIZER), CONFIG)
    alone, both = Store.open(tmp_path / "alone"), Store.open(tmp_path / "both")
    assert len(both) == 108
    assert facts_of_text(both) == facts_of_text(alone)
    np.testing.assert_array_equal(learn(both, TOKENIZER).hashes, learn(alone, TOKENIZER).hashes)


def test_duplicates_have_the_same_tags_and_text_that_no_epoch_draws_takes_no_pair_away(tmp_path: Path) -> None:
    """The name of a city was learned for the first of two target languages alone, and of weight 0 not at all."""
    pair, others = ("a quick fox", "the dog"), [("runs", "away")]
    fr, de = TOKENIZER.begin("fr", None), TOKENIZER.begin("de", None)
    entries = [
        Entry([pair, pair], "unused", 0.0, fr),
        Entry([pair, *others], "fr", 1.0, fr),
        Entry([pair, pair], "de", 1.0, de),
        Entry([pair], "back", 2.0, TOKENIZER.begin("de", "<bt>")),
        Entry([pair, *others], "fr again", 0.5, fr),
    ]
    config = CONFIG.model_copy(update={"drop_duplicates": True})
    report = build_store(tmp_path / "s", entries, (TOKENIZER, TOKENIZER), config)
    assert [part.pairs for part in Store.open(tmp_path / "s").parts] == [1, 2, 1, 1, 0]
    assert report.duplicates == 4


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tag_is_one_id_that_no_text_is_cut_into_and_that_spells_nothing(kind: str) -> None:
    tokenizer = Tokenizer.learn(LINES, TokenizerConfig.model_validate({"kind": kind, "vocab_size": 290}), TAGS)
    assert list(tokenizer.tags) == TAGS
    assert tokenizer.targets == {"fr": tokenizer.tags[">>fr<<"], "de": tokenizer.tags[">>de<<"]}
    written = "a <bt> dog >>fr<<"
    for ids in (tokenizer.encode([written])[0], tokenizer.sample([written], 0.5, 1)[0]):
        assert not set(ids) & set(tokenizer.tags.values())
        assert tokenizer.decode([[*tokenizer.begin("fr", "<bt>"), *ids]]) == [written]
    assert tokenizer.towards("fra").encode(["dog"])[0][0] == tokenizer.targets["fr"]
    assert Tokenizer(tokenizer.proto) == tokenizer


def test_the_only_target_language_has_no_tag_before_its_texts_neither_in_training_nor_later() -> None:
    tokenizer = Tokenizer.learn(LINES, TokenizerConfig(vocab_size=300), [">>fr<<", "<bt>"])
    assert list(tokenizer.targets) == ["fr"]
    assert tokenizer.begin("fr", "<bt>") == (tokenizer.tags["<bt>"],)
    assert [*tokenizer.begin("fr", None), *tokenizer.encode(["dog"])[0]] == tokenizer.towards(None).encode(["dog"])[0]
    texts = [{"src": "a", "tgt": lang, "tgt_lang": lang} for lang in ("fr", "de")]
    several = Config.from_mapping({"data": {"train": texts}})
    with pytest.raises(ConfigError, match=r"runs/fr has one target language, and data\.train has fr, de: learn"):
        refuse_other_tags(several, tokenizer, "runs/fr")


def test_a_tag_or_a_language_that_the_subwords_lack_is_refused() -> None:
    with pytest.raises(ConfigError, match="no tag <ft>"):
        TOKENIZER.begin("fr", "<ft>")
    with pytest.raises(ConfigError, match=r"choose one with to \(de, fr\)"):
        TOKENIZER.begin(None, None)
    with pytest.raises(ConfigError, match="to must be de or fr, got 'it'"):
        TOKENIZER.towards("it")


PAIR = {"src": "a", "tgt": "b"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"train": [PAIR | {"weight": 0}, PAIR | {"weight": 0}]}, "data.train: the weights sum to 0"),
        ({"train": PAIR | {"weight": 0}}, "the weights sum to 0"),
        ({"train": [PAIR, PAIR | {"weight": -1}]}, r"data.train.1.weight must be 0 or more, got -1.0"),
        ({"train": PAIR, "valid": PAIR | {"weight": 2}}, "validation text is never weighted"),
        ({"train": PAIR | {"tag": "bt"}}, "tag must be one word in angle brackets"),
        ({"train": PAIR | {"tag": "<unk>"}}, "got '<unk>'"),
        ({"train": PAIR | {"tag": ">>fr<<"}}, "for a target language set tgt_lang"),
        (
            {"train": PAIR | {"tgt_lang": "le français"}},
            "tgt_lang must be the code of a language, such as fr, deu or zh-CN, got",
        ),
        ({"train": PAIR | {"wieght": 2}}, "unknown setting data.train.wieght: did you mean weight"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Config.from_mapping({"data": data})
    assert "\n" not in str(caught.value)
