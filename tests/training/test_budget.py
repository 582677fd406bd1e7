"""What is chosen for a limit of minutes: a pure function of the corpus and the speed, and never told by the clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import Config, with_overrides
from dragoman.errors import ConfigError
from dragoman.progress import Ticker
from dragoman.training.budget import BATCH_TOKENS, Choice, Text, in_time, updates_in
from dragoman.training.defaults import choose_sizes, resolve
from dragoman.training.options import TrainOptions
from dragoman.training.speed import tokens_per_second

CORPUS = Text(n_pairs=1_000_000, characters=60.0)


def slower_when_wider(per_second: float) -> Callable[[Config], float]:
    return lambda config: per_second * (128 / config.model.d_model) ** 2


def chosen(minutes: float, *overrides: str, text: Text = CORPUS, per_second: float = 10_000.0) -> tuple[Choice, Config]:
    settings = choose_sizes(text.n_pairs)
    settings["data"]["train"] = {"src": "a.en", "tgt": "a.de"}
    settings["train"] |= {"warmup_steps": 1}
    overrides = (*overrides, f"train.max_minutes={minutes}")
    choice = in_time(settings, overrides, text, slower_when_wider(per_second))
    return choice, Config.from_mapping(choice.settings)


def test_more_minutes_or_a_faster_machine_never_choose_a_smaller_model_or_batch_of_it() -> None:
    for text in (Text(50, 20.0), Text(8000, 30.0), Text(30_000, 60.0), CORPUS):
        for budgets in (
            [chosen(minutes, text=text)[1] for minutes in (0.01, 0.5, 2.5, 10, 60, 600, 6000, 60_000)],
            [chosen(10, text=text, per_second=speed)[1] for speed in (1, 100, 1e4, 1e6, 1e8)],
        ):
            for less, more in itertools.pairwise(budgets):
                assert less.model.d_model <= more.model.d_model
                assert less.model.n_encoder_layers <= more.model.n_encoder_layers
                assert less.data.tokenizer.vocab_size <= more.data.tokenizer.vocab_size
                if less.model.d_model == more.model.d_model:
                    assert less.train.batch_tokens <= more.train.batch_tokens
                    assert less.model.dropout <= more.model.dropout
    widths = [chosen(minutes)[1].model.d_model for minutes in (0.1, 60_000)]
    assert widths == [128, 512]


def test_a_small_corpus_gets_no_large_model_however_long_it_may_take() -> None:
    config = chosen(1e6, text=Text(50, 20.0))[1]
    assert (config.model.d_model, config.train.batch_tokens, config.model.dropout) == (128, BATCH_TOKENS[-1], 0.3)


def test_a_text_that_is_read_more_often_gets_more_dropout() -> None:
    small, large = Text(n_pairs=20_000, characters=60.0), CORPUS  # their own dropout is 0.3 and 0.1
    for text, minutes, dropout in ((small, 5, 0.1), (small, 60, 0.2), (small, 600, 0.3), (large, 60_000, 0.1)):
        assert chosen(minutes, text=text)[1].model.dropout == dropout
    assert chosen(60, "model.dropout=0.05", text=small)[0].reason.endswith("dropout 0.05")


def test_the_reason_names_speed_updates_and_sizes() -> None:
    choice, config = chosen(2.5)
    assert choice.tokens_per_second == 10_000 * (128 / config.model.d_model) ** 2
    updates = updates_in(2.5, choice.tokens_per_second, config.train.batch_tokens)
    assert (
        f"about {choice.tokens_per_second:,.0f} tokens/s at width {config.model.d_model}: 2.5 minutes" in choice.reason
    )
    assert f"about {updates:,} updates of {config.train.batch_tokens:,} tokens" in choice.reason
    assert f"{config.data.tokenizer.vocab_size:,} subwords" in choice.reason


def test_the_rate_fits_width_and_tokens_of_an_update() -> None:
    for minutes, overrides, tokens, rate in (
        (0.1, [], 512, 3e-3), (2.5, [], 1024, 3e-3), (4.1, [], 2048, 4.24e-3), (9, [], 4096, 6e-3),
        (9, ["train.accumulate=4"], 4096, 6e-3), (2.5, ["train.batch_tokens=4096"], 4096, 6e-3),
    ):  # fmt: skip
        config = chosen(minutes, *overrides)[1]
        given = Config.from_mapping(with_overrides(chosen(minutes, *overrides)[0].settings, overrides))
        assert (config.model.d_model, given.train.batch_tokens, config.train.lr) == (128, tokens, rate)
    wider = chosen(60)[1]
    assert (wider.model.d_model, wider.train.batch_tokens, wider.train.lr) == (192, 4096, 2e-3)
    assert chosen(2.5, "model.d_model=128")[1].train.lr == choose_sizes(CORPUS.n_pairs)["train"]["lr"]


def test_what_was_said_is_not_chosen() -> None:
    def speed(config: Config) -> float:
        assert (config.model.d_model, config.model.n_encoder_layers) == (64, 4)  # the rest of its preset
        return 1000.0

    settings = choose_sizes(1000)
    settings["data"]["train"] = {"src": "a.en", "tgt": "a.de"}
    settings["train"] |= {"warmup_steps": 1}
    choice = in_time(settings, ["model.d_model=64", "train.max_minutes=3"], Text(1000, 30.0), speed)
    assert choice.settings["train"]["batch_tokens"] in BATCH_TOKENS
    with pytest.raises(ConfigError, match=r"max_minutes must be above 0, got -1.0"):
        in_time(settings, ["train.max_minutes=-1"], Text(1000, 30.0), speed)


def test_the_speed_is_measured_and_leaves_the_random_state_alone(tiny: Callable[..., Any]) -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    assert tokens_per_second(Config.from_mapping(tiny()), 9) > 0
    assert torch.equal(torch.rand(4), expected)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations whose speed was asked for; each is said to be fast."""
    asked: list[Config] = []

    def fake(config: Config, length: int) -> float:
        asked.append(config)
        return 5000.0

    monkeypatch.setattr("dragoman.training.defaults.tokens_per_second", fake)
    return asked


def test_fifty_pairs_and_a_few_minutes_are_enough_to_choose(
    tmp_path: Path, make_corpus: Callable[..., Any], timed: list[Config]
) -> None:
    corpus = make_corpus(tmp_path, 50)
    given = TrainOptions(src=corpus.src, tgt=corpus.tgt, minutes=2)
    found = resolve(None, given, Ticker(quiet=True))
    assert found.chosen
    assert found.tokens_per_second == 5000.0
    assert (found.config.model.d_model, found.config.train.max_minutes) == (128, 2.0)
    assert timed
    assert resolve(None, given, Ticker(quiet=True)) == found  # the speed decides, and nothing else


def test_nothing_is_timed_where_all_is_said_or_there_is_no_limit(
    tmp_path: Path, make_corpus: Callable[..., Any], timed: list[Config]
) -> None:
    corpus = make_corpus(tmp_path, 50)
    texts = dict(src=corpus.src, tgt=corpus.tgt)
    sizes = ("model.preset=tiny", "train.batch_tokens=512")
    assert resolve(None, TrainOptions(**texts, minutes=2, overrides=sizes), Ticker(quiet=True)).chosen
    assert resolve(None, TrainOptions(**texts), Ticker(quiet=True)).tokens_per_second is None
    assert not timed


def test_minutes_is_max_minutes_and_may_not_contradict_it() -> None:
    assert TrainOptions(minutes=5).settings == ("train.max_minutes=5.0",)
    assert "train.max_minutes=5" in TrainOptions(minutes=5, overrides=("train.max_minutes=5",)).settings
    with pytest.raises(ConfigError, match=r"minutes=5, but override train\.max_minutes=6: give one of them"):
        assert TrainOptions(minutes=5, overrides=("train.max_minutes=6",)).settings
    with pytest.raises(ConfigError, match=r"minutes must be above 0, got 0.0"):
        TrainOptions.of(None, {"minutes": 0})


@pytest.mark.parametrize("said", ["train.max_steps=1", "train.warmup_steps=5000", "train.warmup_steps=200000"])
def test_what_is_chosen_never_refuses_what_was_said(
    tmp_path: Path, make_corpus: Callable[..., Any], tiny_run: Path, said: str
) -> None:
    from dragoman.data.store import Store
    from dragoman.training.defaults import choose_steps

    corpus = make_corpus(tmp_path, 20)
    config = resolve(None, TrainOptions(src=corpus.src, tgt=corpus.tgt, overrides=(said,)), Ticker(quiet=True)).config
    chosen = choose_steps(config, Store.open(tiny_run / "store/train"), [said]).train
    name, _, value = said.removeprefix("train.").partition("=")
    assert getattr(chosen, name) == int(value)


def test_the_steps_that_fit_into_the_minutes_bound_the_schedule(tiny_run: Path) -> None:
    from dragoman.data.store import Store
    from dragoman.training.defaults import STEPS_MARGIN, choose_steps

    store = Store.open(tiny_run / "store/train")
    config = Config.from_mapping(
        {"data": {"train": {"src": "a", "tgt": "b"}}, "train": {"batch_tokens": 500, "max_minutes": 1}}
    )
    updates = updates_in(1, 1000, 500)
    chosen = choose_steps(config, store, ["train.max_minutes=1"], tokens_per_second=1000).train
    assert chosen.max_steps == STEPS_MARGIN * updates
    assert chosen.warmup_steps == updates // 10
    assert chosen.validate_every <= updates // 2
    assert choose_steps(config, store, ["train.max_minutes=1"], tokens_per_second=1e9).train.max_steps == 2000  # epochs


def test_with_a_limit_of_minutes_text_is_read_for_up_to_sixty_epochs(tiny_run: Path) -> None:
    from dragoman.data.store import Store
    from dragoman.training.defaults import choose_steps

    store = Store.open(tiny_run / "store/train")
    text = {"data": {"train": {"src": "a", "tgt": "b"}}}
    train = {"batch_tokens": 5}  # so small that 2,000 steps are fewer epochs
    without = choose_steps(Config.from_mapping({**text, "train": train}), store, ()).train
    config = Config.from_mapping({**text, "train": {**train, "max_minutes": 1}})
    within = choose_steps(config, store, ["train.max_minutes=1"], tokens_per_second=1e9).train
    assert without.max_steps > 2000
    assert abs(within.max_steps - 2 * without.max_steps) <= 1


def test_a_machine_that_was_timed_while_it_was_busy_trains_until_its_time_is_up(tiny_run: Path) -> None:
    from dragoman.data.store import Store
    from dragoman.training.defaults import choose_steps
    from dragoman.training.schedule import learning_rate

    store = Store.open(tiny_run / "store/train")
    for schedule in ("cosine", "inverse_sqrt"):
        train = {"batch_tokens": 500, "max_minutes": 1, "schedule": schedule, "lr": 1.0}
        config = Config.from_mapping({"data": {"train": {"src": "a", "tgt": "b"}}, "train": train})
        chosen = choose_steps(config, store, ["train.max_minutes=1"], tokens_per_second=1000).train
        updates = updates_in(1, 1000, 500)
        assert chosen.max_steps > 3 * updates
        # at the speed that was timed, and at three times that speed: the peak is early, and the end near 0
        for speed in (1, 3):
            rates = [
                learning_rate(step, chosen, 128, 60 * step / (speed * updates)) for step in range(1, speed * updates)
            ]
            assert rates.index(max(rates)) < 0.11 * len(rates) * (1 if schedule == "cosine" else 2)
            assert rates[-1] < (0.01 if schedule == "cosine" else 0.6)
