"""Settings for runs that give none: sizes chosen from the corpus and the time, languages from file names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.config import (
    PRESETS,
    Config,
    DataConfig,
    OneFile,
    PairOfFiles,
    TextFiles,
    each,
    named_with,
    read_yaml,
    with_overrides,
)
from dragoman.data.batching import batches_an_epoch
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.regularisation import Regularisation
from dragoman.data.sides import FIRST_LINES, Side, are_one_text, doubt, refuse_by_name
from dragoman.data.store import Store
from dragoman.data.texts import (
    FORMS,
    Langs,
    files_of,
    files_shown,
    languages_of,
    paths_of,
    read_texts,
    refuse_other_languages,
    refuse_reversed,
    refuse_stray_columns,
    texts_named,
)
from dragoman.errors import ConfigError
from dragoman.files import as_path, pinned
from dragoman.languages.codes import language_of
from dragoman.options import flags
from dragoman.progress import Ticker
from dragoman.training.budget import Text, in_time, sizes_are_set, updates_in
from dragoman.training.options import TrainOptions
from dragoman.training.speed import tokens_per_second
from dragoman.training.task import task_of

VALIDATIONS = 4
"""Approximate number of validations within a limit of minutes, as each takes time from training."""

STEPS_MARGIN = 4
"""The steps that fit into a limit of minutes are multiplied by this.

The clock is to end the training, and the machine may have been busy when its speed was measured. A cosine follows the
clock, so its rate still reaches 0."""

EPOCHS_IN_TIME = 60
"""Largest number of epochs with a limit of minutes and a known speed, where the steps are not set.

A limit of minutes asks for as good a model as there is time for, so it is more than without one, but small text is not
read for so long that the model memorises it (docs/decisions/0035-the-minutes-choose-the-sizes.md)."""

EPOCHS_MARGIN = 1.05
"""The estimated steps of the configured epochs are multiplied by this, as epochs differ in their number of batches."""


UNKNOWN_STEPS = 10**9
"""``max_steps`` of a run whose length has not been chosen yet."""


class Resolved(NamedTuple):
    """The resolved configuration of a run, and how it was chosen."""

    config: Config
    chosen: bool  # True if the sizes were chosen, not configured
    tokens_per_second: float | None = None  # speed by which they were chosen; None: they do not depend on it


ConfigOrText = Config | Path | str | Sequence[Path | str] | None
"""The first argument of ``train``: a configuration, text in one of its forms, or both."""


class Inputs(NamedTuple):
    """The configuration and the text that were named; the text replaces that of the configuration."""

    config: Config | Path | None = None
    train: tuple[TextFiles, ...] = ()
    valid: tuple[TextFiles, ...] = ()


def split_inputs(config_or_text: ConfigOrText, options: TrainOptions) -> Inputs:
    """Split the arguments of ``train`` into configuration and text, with absolute paths.

    Raises:
        ConfigError: A side is missing, a text is named twice, or an argument is none of the forms of text.
    """
    config: Config | Path | None = None
    words: list[Path] = []
    if isinstance(config_or_text, Config):
        config = config_or_text
    elif config_or_text is not None:
        words = list(map(as_path, [config_or_text] if isinstance(config_or_text, str | Path) else config_or_text))
    if words and words[0].suffix.lower() in (".yaml", ".yml"):
        config = words.pop(0)
    columns = options.two_columns
    texts_by_side = []
    for text, src, tgt, named in (
        ("the training text", "src", "tgt", words),
        ("the validation text", "valid_src", "valid_tgt", options.valid),
    ):
        pair: tuple[PairOfFiles, ...] = ()
        if options.has_both_sides(text, src, tgt):
            pair = (PairOfFiles(src=as_path(getattr(options, src)), tgt=as_path(getattr(options, tgt))),)
        if pair and named:
            raise ConfigError(f"{named[0]}: name the text once, as an argument or with {flags(src, tgt)}")
        texts_by_side.append((*pair, *texts_named(named, columns)))
    refuse_stray_columns(columns, chain.from_iterable(texts_by_side))
    return Inputs(config, *map(with_pinned_paths, texts_by_side))


def resolve(
    config_or_text: ConfigOrText, options: TrainOptions, ticker: Ticker, parent: Config | None = None
) -> Resolved:
    """Resolve the arguments of ``train`` to one configuration.

    Args:
        config_or_text: The first argument of ``train``.
        parent: The configuration of the run to fine-tune, from which missing settings are taken.

    Raises:
        ConfigError: A file or a side is missing, or the result does not fit the schema or ``parent``.
        DataError: The text cannot be read (without a configuration it is read once, to count it).
    """
    config, train, valid = split_inputs(config_or_text, options)
    overrides, speed = options.settings, None
    settings: dict[str, Any]
    if config is None:
        settings, speed = _chosen_settings(train, overrides, ticker, parent)
    elif isinstance(config, Config):
        settings = config.model_dump(exclude_unset=parent is not None)
        if parent is not None:
            settings["decode"] = config.decode.set_values
    else:
        settings = read_yaml(config)
    data = settings.setdefault("data", {})
    if isinstance(data, dict):
        data |= {name: _as_setting(texts) for name, texts in (("train", train), ("valid", valid)) if texts}
    where = named_with(config, options.overrides) if isinstance(config, Path) else "configuration"
    settings = with_overrides(settings, overrides)
    resolved = Config.from_mapping(settings if parent is None else inherit(settings, parent), where)
    texts = {name: with_pinned_paths(getattr(resolved.data, name)) for name in ("train", "valid")}
    resolved = resolved.model_copy(update={"data": resolved.data.model_copy(update=texts)})
    if parent is not None:
        refuse_another_shape(resolved, parent, options.new_subwords)
        refuse_other_names(settings["data"], resolved.data, parent.data, options.from_run)
    if not task_of(resolved).translates:  # a parser has one language, which nothing uses
        return Resolved(resolved, config is None, speed)
    return Resolved(resolved.model_copy(update={"data": with_languages(resolved.data)}), config is None, speed)


def with_pinned_paths(texts: Any) -> Any:
    """Return the same text, or texts, with absolute paths: each file is opened several times."""
    if isinstance(texts, PairOfFiles | OneFile):
        return texts.model_copy(update={name: pinned(path) for name, path in texts if isinstance(path, Path)})
    return texts and tuple(map(with_pinned_paths, texts))


def with_languages(data: DataConfig) -> DataConfig:
    """Fill in languages that are not set, from the names of files, headings of tables or translation memories.

    If a text sets its own languages, each text gets its two, and ``data`` gets those that all texts have in common.

    Raises:
        ConfigError: Texts differ in their languages and do not set them, or the target language of one of several
            texts is not known.
    """
    train, valid = each(data.train), () if data.valid is None else each(data.valid)
    if not any(text.src_lang or text.tgt_lang for text in (*train, *valid)):
        src_lang, tgt_lang = languages_of(train)
        if all(path.exists() for path in paths_of(valid)):  # a missing file is reported when it is opened
            languages_of((*train, *valid))  # raises if they differ
        langs = {"src_lang": data.src_lang or src_lang, "tgt_lang": data.tgt_lang or tgt_lang}
        for text in (*train, *valid):
            refuse_reversed(text, (langs["src_lang"], langs["tgt_lang"]))
        return data.model_copy(update=langs)

    def named(text: TextFiles) -> TextFiles:
        by_name = languages_of([text]) if all(path.exists() for path in paths_of([text])) else (None, None)
        src_lang, tgt_lang = text.src_lang or data.src_lang or by_name[0], text.tgt_lang or data.tgt_lang or by_name[1]
        refuse_reversed(text, (src_lang, tgt_lang))
        return text.model_copy(update={"src_lang": src_lang, "tgt_lang": tgt_lang})

    train, valid = tuple(map(named, train)), tuple(map(named, valid))
    known = dict.fromkeys(text.tgt_lang for text in train)
    for text in (*train, *valid) if len(known) > 1 else ():
        if text.tgt_lang is None or text.tgt_lang not in known:
            where = files_shown(text)
            what = (
                f"{text.tgt_lang} is no target language of data.train"
                if text.tgt_lang
                else "its target language is not known"
            )
            raise ConfigError(f"{where}: {what}; write tgt_lang: one of {', '.join(lang for lang in known if lang)}")
    langs_by_side = {name: {getattr(text, name) for text in train} for name in ("src_lang", "tgt_lang")}
    common = {name: next(iter(langs)) if len(langs) == 1 else None for name, langs in langs_by_side.items()}
    texts = {"train": train if isinstance(data.train, tuple) else train[0]}
    if data.valid is not None:
        texts["valid"] = valid if isinstance(data.valid, tuple) else valid[0]
    return data.model_copy(update={**common, **texts})


def refuse_other_names(
    settings: Mapping[str, Any], data: DataConfig, parent: DataConfig, from_run: Path | str | None
) -> None:
    """Check that the files to fine-tune on are not in other languages, by their names, than those of the parent.

    Args:
        settings: The section ``data`` as it was given; languages that it names are meant.
        data: The same section, resolved.
        parent: The section of the parent.
        from_run: Name of the parent, for messages.

    Raises:
        ConfigError: The name of a file tells another language.
    """
    meant = [settings.get("src_lang"), settings.get("tgt_lang")]
    reads = f"--from-run {from_run} translates"
    for text in (*each(data.train), *(() if data.valid is None else each(data.valid))):
        langs = (
            None if meant[0] or text.src_lang else parent.src_lang,
            None if meant[1] or text.tgt_lang else parent.tgt_lang,
        )
        advice = "set data.src_lang={} and data.tgt_lang={} if new languages are meant"
        if not isinstance(text, PairOfFiles):
            refuse_reversed(text, (text.src_lang or data.src_lang, text.tgt_lang or data.tgt_lang))
            refuse_other_languages(text, langs, reads, advice)
        else:
            sides = [Side(text.src, langs[0], f"{reads} from"), Side(text.tgt, langs[1], f"{reads} into")]
            names = [language_of(side.path) or side.lang for side in sides]
            refuse_by_name(sides, advice.format(*names))


def doubts(data: DataConfig, samples: Callable[[TextFiles], Iterable[tuple[str, str]]]) -> Iterator[str]:
    """Yield a warning for each side of a text that looks like another language than the run's, or like the other side.

    Args:
        data: The text, with its languages.
        samples: Returns the first pairs of a text.
    """
    for name, texts in (("training", each(data.train)), ("validation", () if data.valid is None else each(data.valid))):
        for text in texts:
            langs = text.src_lang or data.src_lang, text.tgt_lang or data.tgt_lang
            yield from doubts_about(name, text, langs, samples(text))


def doubts_about(name: str, text: TextFiles, langs: Langs, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a warning for each side of the text ``name`` that looks like another language, or like the other side."""
    sides = list(zip(*islice(pairs, FIRST_LINES), strict=True)) or [(), ()]
    files = files_of(text) * (1 if isinstance(text, PairOfFiles) else 2)
    for file, lines, lang, side in zip(files, sides, langs, ("source", "target"), strict=True):
        if warning := doubt(file, lines, lang, f"the {name} {side} should be"):
            yield warning
    if are_one_text(*sides):
        yield f"{files[1]}: the {name} target is the same text as the source; is it the right file?"


def _as_setting(texts: Sequence[TextFiles]) -> Any:
    """Return the value of ``data.train``: one text alone, several as a list."""
    settings = [text.model_dump() for text in texts]
    return settings[0] if len(settings) == 1 else settings


def _chosen_settings(
    train: Sequence[TextFiles], overrides: Sequence[str], ticker: Ticker, parent: Config | None
) -> tuple[dict[str, Any], float | None]:
    """Choose settings by the corpus and the time limit, or by the run to fine-tune.

    Returns:
        The settings, and the measured tokens per second if they depend on it.
    """
    if not train:
        raise ConfigError(f"nothing to train on: give a configuration, or {FORMS}")
    overridden = with_overrides({}, overrides)
    # Overrides are not validated yet: a wrong type is refused later, by the schema.
    limits = overridden["train"] if isinstance(overridden.get("train"), dict) else {}
    provisional: dict[str, Any] = {"warmup_steps": 1, "max_steps": UNKNOWN_STEPS}  # replaced by choose_steps
    if limits.get("max_steps") == 1:
        provisional["schedule"] = "inverse_sqrt"  # a cosine needs at least two steps
    speed = None
    if parent is not None:
        settings: dict[str, Any] = {"train": fine_tuning(parent)}
    else:
        for path in paths_of(train):
            refuse_a_pipe(path)  # counting would use it up, or wait for it
        with ticker.task("counting the pairs"):
            text = Text.of(read_texts(train))
        settings = choose_sizes(text.n_pairs, overridden.get("model"))
        settings["data"]["train"] = _as_setting(train)
        if "max_minutes" in limits and not sizes_are_set(overridden):
            settings["train"] |= provisional
            with ticker.task("timing a few steps"):
                choice = in_time(settings, overrides, text, lambda config: tokens_per_second(config, text.length))
            settings, speed = choice.settings, choice.tokens_per_second
            ticker.say(choice.reason)
    settings["train"] |= provisional
    decode = overridden.get("decode")
    if isinstance(decode, dict) and not decode.keys().isdisjoint(("length_penalty", "length_penalty_form")):
        settings["train"]["choose_length_penalty"] = False
    if limits.get("schedule") == "noam":
        del settings["train"]["lr"]  # it is a rate, but noam's lr is a factor
    return settings, speed


def choose_sizes(n_pairs: int, model: Any = None) -> dict[str, Any]:
    """Choose settings for a corpus of ``n_pairs``.

    Less text means a smaller model with more dropout; a larger model gets a lower learning rate. A Transformer is
    pre-norm: it needs fewer epochs than the paper's post-norm (docs/decisions/0030).

    Args:
        n_pairs: Number of sentence pairs.
        model: Settings of the model that are given: its ``preset``, its ``architecture``.
    """
    settings = model if isinstance(model, Mapping) else {}  # the schema refuses any other type
    preset = settings.get("preset") or ("tiny" if n_pairs < 10_000 else "small" if n_pairs < 500_000 else "base")
    vocab_size = next(
        (v for limit, v in ((10_000, 2000), (100_000, 8000), (1_000_000, 16000)) if n_pairs < limit), 32000
    )
    dropout = 0.3 if n_pairs < 100_000 else 0.1
    norm = {"norm": "pre"} if settings.get("architecture", "transformer") == "transformer" else {}
    return {
        "model": {"preset": preset, "dropout": dropout, **norm},
        "data": {"tokenizer": {"vocab_size": vocab_size}},
        "train": {
            "schedule": "cosine",
            "lr": 7e-4 if preset in ("base", "big") else 1.5e-3,
            "clip_norm": 1.0,
            "ema": 0.998,
            "average": 0,  # along a cosine, earlier checkpoints are unfinished
            "choose_length_penalty": True,  # with the paper's, small models leave too much out
        },
    }


def fine_tuning(parent: Config) -> dict[str, Any]:
    """Return settings of ``train`` for fine-tuning: a fifth of the learning rate of training from scratch."""
    return {**choose_sizes(0)["train"], "lr": 1.5e-4 if parent.model.d_model >= 512 else 3e-4}


def inherit(settings: Mapping[str, Any], parent: Config) -> dict[str, Any]:
    """Return ``settings`` completed by those that a fine-tuned run takes from its parent."""
    old = parent.model_dump()
    data = {key: old["data"][key] for key in ("tokenizer", "noise", "max_tokens", "src_lang", "tgt_lang")}
    model = settings.get("model")
    if isinstance(model, dict) and isinstance(preset := model.get("preset"), str) and preset in PRESETS:
        other_settings = {key: value for key, value in model.items() if key != "preset"}
        settings = {**settings, "model": {**PRESETS[preset], **other_settings}}
    return _merged(settings, {"task": old["task"], "model": old["model"], "data": data, "decode": old["decode"]})


def _merged(upper: Mapping[str, Any], lower: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested mappings; where both have a value, that of ``upper`` wins."""
    result = {**lower, **upper}
    for key in lower.keys() & upper.keys():
        if isinstance(lower[key], Mapping) and isinstance(upper[key], Mapping):
            result[key] = _merged(upper[key], lower[key])
    return result


def refuse_another_shape(config: Config, parent: Config, new_subwords: bool) -> None:
    """Check that the weights of ``parent`` fit the model and, without ``new_subwords``, the subwords.

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


def steps_an_epoch(config: Config, store: Store, n_ranks: int, regularisation: Regularisation | None) -> float:
    """Return the number of steps of one epoch, by its batches.

    Args:
        n_ranks: Number of processes, each of which learns from ``train.accumulate`` batches in every step.
        regularisation: What changes the text in each epoch, and with it the number of batches.
    """
    train = config.train
    batches = batches_an_epoch(store, train.batch_tokens, train.seed, regularisation)
    return max(1.0, batches / train.accumulate / n_ranks)


def choose_steps(
    config: Config, store: Store, overrides: Sequence[str], fine_tuning: bool = False, n_ranks: int = 1,
    tokens_per_second: float | None = None, regularisation: Regularisation | None = None,
) -> Config:  # fmt: skip
    """Choose the number of steps where none is set: about 30 epochs, fewer of a large corpus, at least 2,000 steps.

    Fine-tuning takes a third of the epochs, and at least 500 steps. ``train.max_epochs`` replaces these numbers. With
    ``train.max_minutes`` and a known speed there are up to ``EPOCHS_IN_TIME``, and only a few times as many steps as
    fit: the clock ends the training.

    Args:
        overrides: Settings that were given; they are not changed.
        fine_tuning: True if the run starts from another one.
        n_ranks: Number of processes, each of which learns from one batch in every step.
        tokens_per_second: Speed of training in tokens of one side, padding included; None: not known.
        regularisation: What changes the text in each epoch; None: nothing.
    """
    train = config.train
    if train.max_epochs is None:
        draws = np.repeat([part.weight for part in store.parts], [part.pairs for part in store.parts])
        tokens = ((np.maximum(store.src_lengths(), store.tgt_lengths()) + 1) * draws).sum()
        in_an_epoch = max(1.0, tokens / train.batch_tokens / train.accumulate / n_ranks)
    else:  # the number of epochs is set, so count their batches
        in_an_epoch = steps_an_epoch(config, store, n_ranks, regularisation)
    epochs: float = 30 if store.n_drawn < 200_000 else 10 if store.n_drawn < 2_000_000 else 3
    least, updates = 2000, None
    if tokens_per_second is not None and train.max_minutes is not None:
        epochs = EPOCHS_IN_TIME
        updates = updates_in(train.max_minutes, tokens_per_second, train.batch_tokens * train.accumulate)
    if fine_tuning:
        epochs, least = -(-epochs // 3), 500
    if train.max_epochs is not None:
        epochs, least = EPOCHS_MARGIN * train.max_epochs, 2  # with more, the rate would still be high at the end
    overridden = with_overrides({}, overrides).get("train") or {}
    steps = train.max_steps if "max_steps" in overridden else max(least, math.ceil(epochs * in_an_epoch))
    every = max(100, min(2000, steps // 12))
    if updates is not None:
        every = max(1, min(2000, updates // VALIDATIONS))
        if "max_steps" not in overridden:
            steps = max(2, min(steps, math.ceil(STEPS_MARGIN * updates)))
    if "warmup_steps" in overridden and "max_steps" not in overridden:
        steps = max(steps, train.warmup_steps + 1)
    # With a time limit a cosine follows the share of time used, scaled to max_steps; other schedules count steps.
    counted = steps if updates is None or train.schedule == "cosine" else min(steps, updates)
    warmup = max(1, min(4000, counted // 10))
    values = {"max_steps": steps, "warmup_steps": warmup, "validate_every": every, "save_every": every}
    update = {name: value for name, value in values.items() if name not in overridden}
    settings = {**config.model_dump(), "train": {**train.model_dump(), **update}}
    return Config.from_mapping(settings, "the settings chosen and given")
