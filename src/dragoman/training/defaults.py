"""Settings for those who give none: sizes chosen from the corpus and the time, languages from file names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.config import (
    PRESETS,
    Config,
    DataConfig,
    PairOfFiles,
    TextFiles,
    each,
    read_yaml,
    with_overrides,
)
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.order import epoch_batches, weighted_pairs
from dragoman.data.store import Store
from dragoman.data.texts import FORMS, languages_of, paths_of, read_texts, refuse_stray_columns, texts_named
from dragoman.errors import ConfigError
from dragoman.options import flags
from dragoman.progress import Ticker
from dragoman.training.budget import Text, all_is_said, in_time, updates_in
from dragoman.training.options import TrainOptions
from dragoman.training.speed import tokens_per_second
from dragoman.training.task import task_of

VALIDATIONS = 4
"""About so many in a limit of minutes, where each takes of the time for training."""

SPARE = 4
"""The steps that fit into a limit of minutes are multiplied by this: the speed was perhaps timed while others were at
work, and the clock shall end the training. With a cosine the rate follows the clock all the same."""

SLACK = 1.05
"""The estimated steps of the epochs asked for are multiplied by this, as epochs differ in their number of batches."""


UNKNOWN_STEPS = 10**9
"""Of a run whose length has not been chosen yet."""


class Resolved(NamedTuple):
    """One configuration from all that was given, and how it came about."""

    config: Config
    chosen: bool  # whether the sizes were left to us
    tokens_per_second: float | None = None  # at which they were chosen; None: they do not depend on it


What = Config | Path | str | Sequence[Path | str] | None
"""What ``train`` is given first: a configuration, text in one of the forms, or both."""


class Given(NamedTuple):
    """What was named: a configuration, and text that replaces its own."""

    config: Config | Path | None = None
    train: tuple[TextFiles, ...] = ()
    valid: tuple[TextFiles, ...] = ()


def told_apart(what: What, options: TrainOptions) -> Given:
    """The configuration and the text among what was named.

    Raises:
        ConfigError: A side is missing, a text is named twice, or something is none of the forms that text may have.
    """
    config: Config | Path | None = None
    words: list[Path] = []
    if isinstance(what, Config):
        config = what
    elif what is not None:
        words = [Path(what)] if isinstance(what, str | Path) else list(map(Path, what))
    if words and words[0].suffix.lower() in (".yaml", ".yml"):
        config = words.pop(0)
    columns = options.two_columns
    found = []
    for text, src, tgt, named in (
        ("the training text", "src", "tgt", words),
        ("the validation text", "valid_src", "valid_tgt", options.valid),
    ):
        pair: tuple[PairOfFiles, ...] = ()
        if options.has_both_sides(text, src, tgt):
            pair = (PairOfFiles(src=Path(getattr(options, src)), tgt=Path(getattr(options, tgt))),)
        if pair and named:
            raise ConfigError(f"{named[0]}: name the text once, so or by {flags(src, tgt)}")
        found.append((*pair, *texts_named(named, columns)))
    refuse_stray_columns(columns, chain.from_iterable(found))
    return Given(config, *found)


def resolve(what: What, options: TrainOptions, ticker: Ticker, parent: Config | None = None) -> Resolved:
    """One configuration from all that was given.

    Args:
        parent: The configuration of the run to start from: what is not given is taken from there.

    Raises:
        ConfigError: Something is missing, one side is, or the result does not fit the schema or ``parent``.
        DataError: The text cannot be read (without a configuration, it is read once to count it).
    """
    config, train, valid = told_apart(what, options)
    overrides, speed = options.settings, None
    given: dict[str, Any]
    if config is None:
        given, speed = _chosen(train, overrides, ticker, parent)
    elif isinstance(config, Config):
        given = config.model_dump(exclude_unset=parent is not None)
    else:
        given = read_yaml(config)
    data = given.setdefault("data", {})
    if isinstance(data, dict):
        data |= {name: _as_setting(texts) for name, texts in (("train", train), ("valid", valid)) if texts}
    where = str(config) if isinstance(config, Path) else "configuration"
    given = with_overrides(given, overrides)
    resolved = Config.from_mapping(given if parent is None else inherit(given, parent), where)
    if parent is not None:
        refuse_another_shape(resolved, parent, options.new_subwords)
    if not task_of(resolved).translates:  # one language, which nothing asks for
        return Resolved(resolved, config is None, speed)
    return Resolved(resolved.model_copy(update={"data": with_languages(resolved.data)}), config is None, speed)


def with_languages(data: DataConfig) -> DataConfig:
    """The settings with the languages that names of files, headings or a memory say where nobody else does.

    Where a text names its own, each text gets its two, and those of ``data`` are the ones that all have in common.

    Raises:
        ConfigError: Texts differ in their languages and do not name them, or the target language of one of several is
            not known.
    """
    train, valid = each(data.train), () if data.valid is None else each(data.valid)
    if not any(text.src_lang or text.tgt_lang for text in (*train, *valid)):
        src_lang, tgt_lang = languages_of(train)
        if all(path.exists() for path in paths_of(valid)):  # what is missing is named when it is opened
            languages_of((*train, *valid))  # which must be the same ones
        langs = {"src_lang": data.src_lang or src_lang, "tgt_lang": data.tgt_lang or tgt_lang}
        return data.model_copy(update=langs)

    def named(text: TextFiles) -> TextFiles:
        found = languages_of([text]) if all(path.exists() for path in paths_of([text])) else (None, None)
        src_lang, tgt_lang = text.src_lang or data.src_lang or found[0], text.tgt_lang or data.tgt_lang or found[1]
        return text.model_copy(update={"src_lang": src_lang, "tgt_lang": tgt_lang})

    train, valid = tuple(map(named, train)), tuple(map(named, valid))
    known = dict.fromkeys(text.tgt_lang for text in train)
    for text in (*train, *valid) if len(known) > 1 else ():
        if text.tgt_lang is None or text.tgt_lang not in known:
            where = " and ".join(map(str, paths_of([text])))
            what = (
                f"{text.tgt_lang} is no target language of data.train"
                if text.tgt_lang
                else "its target language is not known"
            )
            raise ConfigError(f"{where}: {what}; write tgt_lang: one of {', '.join(lang for lang in known if lang)}")
    both = {name: {getattr(text, name) for text in train} for name in ("src_lang", "tgt_lang")}
    common = {name: next(iter(found)) if len(found) == 1 else None for name, found in both.items()}
    texts = {"train": train if isinstance(data.train, tuple) else train[0]}
    if data.valid is not None:
        texts["valid"] = valid if isinstance(data.valid, tuple) else valid[0]
    return data.model_copy(update={**common, **texts})


def _as_setting(texts: Sequence[TextFiles]) -> Any:
    """The value of ``data.train``: one as it is, several as a list."""
    settings = [text.model_dump() for text in texts]
    return settings[0] if len(settings) == 1 else settings


def _chosen(
    train: Sequence[TextFiles], overrides: Sequence[str], ticker: Ticker, parent: Config | None
) -> tuple[dict[str, Any], float | None]:
    """The settings of those who give none: by the corpus and the time there is, or by the run to start from.

    Also the speed they were chosen at, if they were.
    """
    if not train:
        raise ConfigError(f"nothing to train on: give a configuration, or {FORMS}")
    said = with_overrides({}, overrides)
    limits = said["train"] if isinstance(said.get("train"), dict) else {}  # what else it is, the schema refuses
    provisional: dict[str, Any] = {"warmup_steps": 1, "max_steps": UNKNOWN_STEPS}  # until choose_steps knows better
    if limits.get("max_steps") == 1:
        provisional["schedule"] = "inverse_sqrt"  # a cosine has two steps or more
    speed = None
    if parent is not None:
        given: dict[str, Any] = {"train": fine_tuning(parent)}
    else:
        for path in paths_of(train):
            refuse_a_pipe(path)  # which counting would read to its end, or wait for
        with ticker.task("counting the pairs"):
            text = Text.of(read_texts(train))
        given = choose_sizes(text.n_pairs, said.get("model"))
        given["data"]["train"] = _as_setting(train)
        if "max_minutes" in limits and not all_is_said(said):
            given["train"] |= provisional
            with ticker.task("timing a few steps"):
                choice = in_time(given, overrides, text, lambda config: tokens_per_second(config, text.length))
            given, speed = choice.settings, choice.tokens_per_second
            ticker.say(choice.reason)
    given["train"] |= provisional
    if limits.get("schedule") == "noam":
        del given["train"]["lr"]  # a rate, and noam's is a factor
    return given, speed


def choose_sizes(n_pairs: int, model: Any = None) -> dict[str, Any]:
    """Settings that fit a corpus of ``n_pairs``: smaller text, smaller model, more dropout; larger model, lower rate.

    A Transformer is pre-norm: it learns from fewer epochs than the paper's post-norm (docs/decisions/0030).

    Args:
        model: What somebody said of the model: its ``preset``, its ``architecture``.
    """
    said = model if isinstance(model, Mapping) else {}  # what else it may be is refused by the schema
    preset = said.get("preset") or ("tiny" if n_pairs < 10_000 else "small" if n_pairs < 500_000 else "base")
    vocab_size = next(
        (v for limit, v in ((10_000, 2000), (100_000, 8000), (1_000_000, 16000)) if n_pairs < limit), 32000
    )
    dropout = 0.3 if n_pairs < 100_000 else 0.1
    norm = {"norm": "pre"} if said.get("architecture", "transformer") == "transformer" else {}  # others have none
    return {
        "model": {"preset": preset, "dropout": dropout, **norm},
        "data": {"tokenizer": {"vocab_size": vocab_size}},
        "train": {
            "schedule": "cosine",
            "lr": 7e-4 if preset in ("base", "big") else 1.5e-3,
            "clip_norm": 1.0,
            "ema": 0.998,
            "average": 0,  # a mean of checkpoints along a cosine would hold unfinished ones
        },
    }


def fine_tuning(parent: Config) -> dict[str, Any]:
    """Settings of ``train`` that suit weights which are good already: a fifth of the rate of training from scratch."""
    return {**choose_sizes(0)["train"], "lr": 1.5e-4 if parent.model.d_model >= 512 else 3e-4}


def inherit(given: Mapping[str, Any], parent: Config) -> dict[str, Any]:
    """What is given, and below it what a fine-tuned run has from the one it starts from."""
    old = parent.model_dump()
    data = {key: old["data"][key] for key in ("tokenizer", "max_tokens", "src_lang", "tgt_lang")}
    model = given.get("model")
    if isinstance(model, dict) and isinstance(preset := model.get("preset"), str) and preset in PRESETS:
        rest = {key: value for key, value in model.items() if key != "preset"}
        given = {**given, "model": {**PRESETS[preset], **rest}}
    return _over(given, {"task": old["task"], "model": old["model"], "data": data, "decode": old["decode"]})


def _over(upper: Mapping[str, Any], lower: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings of mappings as one; where both say something, the upper one counts."""
    result = {**lower, **upper}
    for key in lower.keys() & upper.keys():
        if isinstance(lower[key], Mapping) and isinstance(upper[key], Mapping):
            result[key] = _over(upper[key], lower[key])
    return result


def refuse_another_shape(config: Config, parent: Config, new_subwords: bool) -> None:
    """Refuse a model, or without ``new_subwords`` subwords, that the weights of ``parent`` do not fit.

    Raises:
        ConfigError: A setting contradicts; dropout and subword sampling may differ.
    """
    if config.task != parent.task:
        raise ConfigError(f"task = {config.task!r}, but the run to start from has {parent.task!r}: leave it out")
    sections = [("model", config.model.model_dump(), parent.model.model_dump(), "leave it out")]
    if not new_subwords:
        tokenizers = config.data.tokenizer.model_dump(), parent.data.tokenizer.model_dump()
        sections.append(("data.tokenizer", *tokenizers, "leave it out, or learn new subwords with --new-subwords"))
    for name, new, old, do in sections:
        for key in old:
            if new[key] != old[key] and "dropout" not in key and key != "sampling":
                raise ConfigError(f"{name}.{key} = {new[key]!r}, but the run to start from has {old[key]!r}: {do}")


def choose_steps(
    config: Config, store: Store, overrides: Sequence[str], fine_tuning: bool = False, n_ranks: int = 1,
    tokens_per_second: float | None = None,
) -> Config:  # fmt: skip
    """How long to train when nobody says otherwise: about 30 epochs, fewer of a large corpus, at least 2,000 steps.

    Fine-tuning takes a third of the epochs, and at least 500 steps. ``train.max_epochs`` counts instead of all this.
    With ``train.max_minutes`` and a known speed there are no more steps than fit, and some to spare: the clock ends it.

    Args:
        overrides: What was said; it is not chosen.
        n_ranks: So many processes learn from a batch each in every step.
        tokens_per_second: What a step takes of one side, padding counted; None: not known.
    """
    lengths, train = (store.src_lengths(), store.tgt_lengths()), config.train
    if train.max_epochs is None:
        often = np.repeat([part.weight for part in store.parts], [part.pairs for part in store.parts])
        batches = ((np.maximum(*lengths) + 1) * often).sum() / train.batch_tokens
    else:  # exactly, for these are what was asked for
        chosen = weighted_pairs(store.parts, train.seed, 0)
        batches = sum(1 for _ in epoch_batches(*lengths, train.batch_tokens, train.seed, 0, chosen))
    steps_an_epoch = max(1.0, batches / train.accumulate / n_ranks)
    epochs: float = 30 if store.n_drawn < 200_000 else 10 if store.n_drawn < 2_000_000 else 3
    least = 2000
    if fine_tuning:
        epochs, least = -(-epochs // 3), 500
    if train.max_epochs is not None:
        epochs, least = SLACK * train.max_epochs, 2  # else the schedule were at its peak when they are over
    said = with_overrides({}, overrides).get("train") or {}
    steps = train.max_steps if "max_steps" in said else max(least, math.ceil(epochs * steps_an_epoch))
    every = max(100, min(2000, steps // 12))
    updates = None
    if tokens_per_second is not None and train.max_minutes is not None:
        updates = updates_in(train.max_minutes, tokens_per_second, train.batch_tokens * train.accumulate)
        every = max(1, min(2000, updates // VALIDATIONS))
        if "max_steps" not in said:
            steps = max(2, min(steps, math.ceil(SPARE * updates)))
    if "warmup_steps" in said and "max_steps" not in said:
        steps = max(steps, train.warmup_steps + 1)
    # a cosine by the clock has its place in max_steps by the share of the time, other schedules by the steps made
    counted = steps if updates is None or train.schedule == "cosine" else min(steps, updates)
    warmup = max(1, min(4000, counted // 10))
    values = {"max_steps": steps, "warmup_steps": warmup, "validate_every": every, "save_every": every}
    update = {name: value for name, value in values.items() if name not in said}
    settings = {**config.model_dump(), "train": {**train.model_dump(), **update}}
    return Config.from_mapping(settings, "the settings chosen and given")
