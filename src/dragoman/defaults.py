"""Settings for those who give none: sizes chosen from the corpus, languages from file names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import Config, read_yaml, with_overrides
from dragoman.data.corpus import read_pairs
from dragoman.data.store import Store
from dragoman.errors import ConfigError
from dragoman.languages import language_of
from dragoman.progress import Ticker


def resolve(
    config: Config | Path | str | None,
    src: Path | str | None,
    tgt: Path | str | None,
    valid_src: Path | str | None,
    valid_tgt: Path | str | None,
    overrides: Sequence[str],
    ticker: Ticker,
) -> tuple[Config, bool]:
    """One configuration from all that was given; also whether sizes were left to us.

    Raises:
        ConfigError: Something is missing, one side is, or the result does not fit the schema.
        DataError: The text cannot be read (without a configuration, it is read once to count it).
    """
    if (src is None) != (tgt is None):
        raise ConfigError("give both sides of the training text: --src and --tgt")
    if (valid_src is None) != (valid_tgt is None):
        raise ConfigError("give both sides of the validation text: --valid-src and --valid-tgt")
    given: dict[str, Any]
    if config is None:
        if src is None or tgt is None:
            raise ConfigError("nothing to train on: give a configuration, or --src and --tgt")
        with ticker.task("counting the pairs"):
            n_pairs = sum(1 for _ in read_pairs(src, tgt))
        given = choose_sizes(n_pairs, with_overrides({}, overrides).get("model", {}).get("preset"))
        given["train"]["warmup_steps"] = 1  # until choose_steps knows better
    elif isinstance(config, Config):
        given = config.model_dump()
    else:
        given = read_yaml(config)
    data = given.setdefault("data", {})
    if isinstance(data, dict):
        if src is not None:
            data["train"] = {"src": src, "tgt": tgt}
        if valid_src is not None:
            data["valid"] = {"src": valid_src, "tgt": valid_tgt}
    where = str(config) if isinstance(config, str | Path) else "configuration"
    resolved = Config.from_mapping(with_overrides(given, overrides), where)
    data_config = resolved.data
    langs = {
        "src_lang": data_config.src_lang or language_of(data_config.train.src),
        "tgt_lang": data_config.tgt_lang or language_of(data_config.train.tgt),
    }
    return resolved.model_copy(update={"data": data_config.model_copy(update=langs)}), config is None


def choose_sizes(n_pairs: int, preset: str | None = None) -> dict[str, Any]:
    """Settings that fit a corpus of ``n_pairs``: smaller text, smaller model, more dropout; larger model, lower rate.

    Args:
        preset: The size of the model, if somebody said it.
    """
    preset = preset or ("tiny" if n_pairs < 10_000 else "small" if n_pairs < 500_000 else "base")
    vocab_size = next(
        (v for limit, v in ((10_000, 2000), (100_000, 8000), (1_000_000, 16000)) if n_pairs < limit), 32000
    )
    dropout = 0.3 if n_pairs < 100_000 else 0.1
    return {
        "model": {"preset": preset, "dropout": dropout},
        "data": {"tokenizer": {"vocab_size": vocab_size}},
        "train": {
            "schedule": "cosine",
            "lr": 7e-4 if preset in ("base", "big") else 1.5e-3,
            "clip_norm": 1.0,
            "ema": 0.998,
            "average": 0,  # a mean of checkpoints along a cosine would hold unfinished ones
        },
    }


def choose_steps(config: Config, store: Store, overrides: Sequence[str]) -> Config:
    """How long to train when nobody says otherwise: about 30 epochs, fewer of a large corpus, at least 2,000 steps."""
    longest = np.maximum(store.src_lengths(), store.tgt_lengths()) + 1
    steps_an_epoch = max(1.0, int(longest.sum()) / config.train.batch_tokens / config.train.accumulate)
    epochs = 30 if len(store) < 200_000 else 10 if len(store) < 2_000_000 else 3
    said = {name.partition("=")[0].strip() for name in overrides}
    steps = config.train.max_steps if "train.max_steps" in said else max(2000, round(epochs * steps_an_epoch))
    every, warmup = max(100, min(2000, steps // 12)), max(1, min(4000, steps // 10))
    chosen = {"max_steps": steps, "warmup_steps": warmup, "validate_every": every, "save_every": every}
    update = {name: value for name, value in chosen.items() if f"train.{name}" not in said}
    train = {**config.train.model_dump(), **update}
    return Config.from_mapping({**config.model_dump(), "train": train}, "the settings chosen and given")
