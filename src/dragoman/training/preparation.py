"""From the text files of a configuration to the subwords and stores of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.bundle import load_tokenizers
from dragoman.config import Config, DataConfig, ModelConfig, NoiseConfig, TextFiles, each
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import open_corpus
from dragoman.data.noise import Lexicon, noised_pairs, sure_translations
from dragoman.data.store import Entry, Origin, Store, build_store, check_store, fingerprint
from dragoman.data.texts import files_shown, paths_of
from dragoman.data.tokenizer import Tokenizer, learn_tokenizers
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.files import explained, read_report, write_report, write_text
from dragoman.model.weights import MAX_TENSORS, shapes
from dragoman.progress import Ticker
from dragoman.training.hold_out import HeldOut, Pool, draw
from dragoman.training.log import NO_TENSORBOARD
from dragoman.training.memory import GIB, device_memory, n_parameters, state_bytes
from dragoman.training.task import task_of

PREPARED, LEXICON = "prepared.json", "lexicon.json"
"""Names of files next to the stores: the report on what was prepared, and the words that translate each other."""
SUBWORDS = ("joint.spm", "src.spm", "tgt.spm")

Pairs = Callable[[], Iterator[tuple[str, str]]]
"""Function that makes a new pass over the pairs each time it is called."""


class Text(NamedTuple):
    """An entry of ``data.train`` or ``data.valid``, or the part of it that is held out or remains."""

    setting: TextFiles
    pairs: Pairs

    def entry(self, data: DataConfig, tokenizer: Tokenizer, weight: float) -> Entry:
        """Return the entry for a store, drawn ``weight`` times an epoch."""
        lang, name = self.setting.tgt_lang or data.tgt_lang, files_shown(self.setting)
        begin = tokenizer.begin(lang, self.setting.tag)
        return Entry(self.pairs(), name, weight, begin, self.setting.src_lang or data.src_lang, lang)


def prepare(
    config: Config, run: Path, ticker: Ticker, tokenizers: tuple[Tokenizer, Tokenizer] | None = None
) -> tuple[Config, tuple[Tokenizer, Tokenizer]]:
    """Learn the subwords and write the stores of ``run``.

    Args:
        tokenizers: Subwords to use instead of learning any, source and target.

    Returns:
        The configuration with the vocabulary size that was really learned, and the source and target tokenizers.

    Raises:
        ConfigError: The folder of the stores is a link to those of a run.
        DataError: The corpus cannot be used.
    """
    data, folder = config.data, run / "store"
    check_readable(data)
    if folder.is_symlink() and (folder / PREPARED).exists():
        raise ConfigError(f"{folder}: is a link to prepared text of a run, which would be replaced; remove the link")
    with explained(folder):
        folder.mkdir(exist_ok=True)
        write_report(folder / PREPARED, {"settings": None}, ())  # by which the folder is known to be of a run
        for name in (*SUBWORDS, LEXICON):  # of an attempt that died, or of other text
            (folder / name).unlink(missing_ok=True)
    texts = _read_texts(config, ticker)
    drawn = None if texts.pool is None else HeldOut(texts.pool.pairs, frozenset())

    def train_pairs() -> Iterator[tuple[str, str]]:
        return chain.from_iterable(text.pairs() for text in texts.divided(config, drawn)[0])

    lexicon = (
        _learn_lexicon(train_pairs, folder, ticker, data.noise) if data.noise.one_word + data.noise.inserts > 0 else {}
    )
    reused = tokenizers
    if tokenizers is None:
        with ticker.task("learning subwords"):
            # Learn from noised text, too, if noise is configured: else a line in capitals would be split into letters.
            tokenizers = learn_tokenizers(
                lambda: noised_pairs(train_pairs(), data.noise, lexicon, config.train.seed),
                data.tokenizer,
                tgt_words=not task_of(config).translates,
                tags=tags_of(data),
            )
    sides = ("joint",) if tokenizers[0].shares_pieces(tokenizers[1]) else ("src", "tgt")
    for tokenizer, side in zip(tokenizers, sides, strict=False):  # the target's rules are made of a joint one's
        with explained(folder):
            tokenizer.save(folder / f"{side}.spm")
    held_out = _hold_out(texts, tokenizers, data, ticker)
    train, valid = texts.divided(config, held_out)
    # The validation set comes first: one that cannot be used is refused before the training text is encoded.
    sources = paths_of([text.setting for text in valid])
    entries = [text.entry(data, tokenizers[0], 1.0) for text in valid]  # in the validation text each pair counts once
    name = "the held-out pairs" if held_out else f"the validation set ({' and '.join(map(format, sources[:2]))})"
    report = build_store(
        folder / "valid", entries, tokenizers, data, Origin(name, sources), keep_text=True, progress=ticker
    )
    ticker.say(f"valid: {report}")
    _report_parts("valid", Store.open(folder / "valid"), tokenizers[0], ticker)
    repeated = Repeated.of(Store.open(folder / "valid"))
    report = build_store(
        folder / "train", [
            replace(entry, pairs=repeated.watched(entry.pairs)) if entry.weight > 0 else entry
            for entry in (text.entry(data, tokenizers[0], text.setting.weight) for text in train)
        ],
        tokenizers, data, Origin("the training text", paths_of([text.setting for text in train])),
        keep_text=data.tokenizer.sampling > 0 or data.noise.is_on, total=sum(texts.counts), progress=ticker,
    )  # fmt: skip
    ticker.say(f"train: {report}")
    _report_parts("train", Store.open(folder / "train"), tokenizers[0], ticker)
    if repeated.seen:
        ticker.say(f"warning: {name}: {repeated}")
    about = {"settings": _request(config, reused), "repeated": repeated.share}
    write_report(folder / PREPARED, about, _small_files(folder))
    return _with_learned_size(config, tokenizers), tokenizers


@dataclass(frozen=True)
class Repeated:
    """Pairs of the validation set that also stand in the text that epochs draw, noted while that is read."""

    pairs: frozenset[tuple[str, str]]
    seen: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, valid: Store) -> Repeated:
        """Look for the pairs of a store."""
        return cls(frozenset(zip(*valid.texts(range(len(valid))), strict=True)))

    def watched(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield all pairs; note those of the validation set."""
        for pair in pairs:
            if pair in self.pairs:
                self.seen.add(pair)
            yield pair

    @property
    def share(self) -> float:
        """Share of the pairs that were found, 0 to 1."""
        return len(self.seen) / len(self.pairs)

    def __str__(self) -> str:
        n = f"{len(self.seen):,} of its {len(self.pairs):,} pairs"
        stand = "stands" if len(self.seen) == 1 else "stand"
        what = f"it is the training text ({n})" if self.share > 0.9 else f"{n} {stand} in the training text"
        return f"{what}, so scores and confidence promise too much; give another one, or leave it out to hold out 1%"


def _with_learned_size(config: Config, tokenizers: tuple[Tokenizer, Tokenizer]) -> Config:
    """Return the configuration with the vocabulary size that was really learned."""
    return with_vocab_size(config, max(tokenizers[0].vocab_size, tokenizers[1].vocab_size))


def with_vocab_size(config: Config, size: int) -> Config:
    """Return the configuration with another ``data.tokenizer.vocab_size``."""
    data = config.data.model_copy(update={"tokenizer": config.data.tokenizer.model_copy(update={"vocab_size": size})})
    return config.model_copy(update={"data": data})


def prepared(
    config: Config, run: Path, ticker: Ticker, reused: tuple[Tokenizer, Tokenizer] | None = None
) -> tuple[Config, tuple[Tokenizer, Tokenizer]] | None:
    """Return what ``prepare`` would, if a call that died has prepared this text with these settings; else None.

    Files are compared by their names and their content: a link may have got another target, a name another folder.
    """
    folder = run / "store"
    report = read_report(folder / PREPARED, _small_files(folder))
    if report is None or report.get("settings") != _request(config, reused):
        return None
    try:
        tokenizers = check_prepared(run, False, ticker)
    except (BundleError, DataError):  # text has changed, or a file
        return None
    noted = {path for name in ("train", "valid") for path in Store.open(folder / name).sources}
    if noted != {str(path.absolute()) for path in paths_of(_texts_of(config.data))}:
        return None
    ticker.say(f"{folder}: the text was prepared by an earlier call")
    return _with_learned_size(config, tokenizers), tokenizers


def _request(config: Config, reused: tuple[Tokenizer, Tokenizer] | None) -> dict[str, Any]:
    """Return everything that the stores depend on, besides the text."""
    return {
        "dragoman": __version__,
        "data": config.data.model_dump(mode="json"),
        "seed": config.train.seed,
        "translates": task_of(config).translates,
        "reused": None if reused is None else [tokenizer.fingerprint for tokenizer in reused],
    }


def _small_files(folder: Path) -> list[Path]:
    """Return the files of a prepared text that are there, but for the stores, which have manifests of their own."""
    return [path for name in (*SUBWORDS, LEXICON) if (path := folder / name).is_file()]


def tags_of(data: DataConfig) -> list[str]:
    """Return the tags that sources begin with: of target languages, if there are several, and of corpora."""
    tags = dict.fromkeys(text.tag for text in _texts_of(data) if text.tag)
    return [*(f">>{lang}<<" for lang in data.tgt_langs), *tags]


def _texts_of(data: DataConfig) -> tuple[TextFiles, ...]:
    """Return all texts that a configuration names, those of training first."""
    return (*each(data.train), *(() if data.valid is None else each(data.valid)))


def refuse_other_tags(config: Config, tokenizer: Tokenizer, parent: Path | str | None) -> None:
    """Check that the subwords of ``parent`` have all tags of the configuration.

    Raises:
        ConfigError: A tag is missing; the message says what can be done.
    """
    data, new = config.data, "or learn new subwords with --new-subwords"
    if data.tgt_langs and len(tokenizer.targets) < 2:
        raise ConfigError(
            f"{parent} has one target language, and data.train has {', '.join(data.tgt_langs)}: {new[3:]}"
        )
    for _, lang in data.pairs if len(tokenizer.targets) > 1 else ():
        if lang is None or tokenizer.target(lang) is None:
            raise ConfigError(
                f"{parent} translates into {', '.join(sorted(tokenizer.targets))}, and the target language of "
                f"data.train is {lang or 'not known'}: set data.tgt_lang, or tgt_lang in its entries, to one of these, "
                f"{new}"
            )
    for tag in tags_of(data):
        if tag.startswith("<") and tag not in tokenizer.tags:
            raise ConfigError(f"{parent} has no tag {tag}: leave it out of data.train, {new}")


def _report_parts(name: str, store: Store, tokenizer: Tokenizer, ticker: Ticker) -> None:
    """If there are several corpora or weights, print the number of pairs of each and how often they are drawn."""
    if len(store.parts) == 1 and not store.is_weighted:
        return
    for part in store.parts:
        begin = "".join(f", {tag} before each source" for tag in tokenizer.pieces(part.begin))
        drawn = f", each drawn {part.weight:g} times an epoch" if store.is_weighted else ""
        ticker.say(f"{name}: {part.name}: {part.pairs:,} pairs{drawn}{begin}")


def check_trainable(config: Config) -> None:
    """Refuse settings that would fail only after the corpus has been prepared.

    Raises:
        ConfigError: The model is not a translator, shares embeddings of different vocabularies, or does not fit in
            memory.
    """
    model, tokenizer = config.model, config.data.tokenizer
    if not (model.n_encoder_layers and model.n_decoder_layers):
        raise ConfigError("a translator needs both: set model.n_encoder_layers and model.n_decoder_layers to 1 or more")
    if model.share_embeddings == "all" and not tokenizer.joint:
        raise ConfigError(
            "model.share_embeddings = 'all' needs one vocabulary, but data.tokenizer.joint = false: "
            "set model.share_embeddings to decoder or none, or data.tokenizer.joint to true"
        )
    longest = config.data.max_tokens + config.decode.max_extra_tokens + (2 if tags_of(config.data) else 0)
    if model.n_positions is not None and longest > model.n_positions:
        raise ConfigError(
            f"model.max_len = {model.max_len} binds learned positions, but data.max_tokens + decode.max_extra_tokens"
            f"{' + 2 for tags' if tags_of(config.data) else ''} = {longest}: raise model.max_len, or lower "
            "data.max_tokens"
        )
    size = tokenizer.vocab_size
    sizes = ModelConfig(**model.model_dump(), src_vocab_size=size, tgt_vocab_size=size)
    n_tensors = 3 * len(shapes(sizes))
    if n_tensors > MAX_TENSORS:  # Adam has three tensors for each parameter
        raise ConfigError(
            f"{model.n_encoder_layers} + {model.n_decoder_layers} layers make {n_tensors:,} tensors in a checkpoint, "
            f"which must be at most {MAX_TENSORS:,}: set fewer model.n_encoder_layers and model.n_decoder_layers"
        )
    if config.train.tensorboard and find_spec("tensorboard") is None:
        raise ConfigError(NO_TENSORBOARD)
    needed, available = state_bytes(n_parameters(sizes), config.train), device_memory(config.train.device)
    if needed > available:  # with any batch size
        raise ConfigError(
            f"{n_parameters(sizes):,} parameters need {needed / GIB:,.1f} GiB to be trained, and there are "
            f"{available / GIB:,.1f} GiB: choose a smaller model.preset, or smaller sizes"
        )


def check_readable(data: DataConfig) -> None:
    """Open each file once, so that a wrong name is an error now and not in an hour."""
    for path in paths_of(_texts_of(data)):
        refuse_a_pipe(path)
        open_corpus(path).close()


class _Texts(NamedTuple):
    """The training text, counted, and what is held out of it if there is no validation text."""

    settings: tuple[TextFiles, ...]
    counts: tuple[int, ...]
    pool: Pool | None

    def divided(self, config: Config, held_out: HeldOut | None) -> tuple[list[Text], list[Text]]:
        """Return the training and the validation text."""
        read = task_of(config).read
        if held_out is None:
            valid = () if config.data.valid is None else each(config.data.valid)
            return [Text(text, partial(read, text)) for text in self.settings], [
                Text(text, partial(read, text)) for text in valid
            ]
        train, valid_texts, first = [], [], 0
        for text, n in zip(self.settings, self.counts, strict=True):
            train.append(Text(text, partial(held_out.remaining, read, text, first)))
            if pairs := held_out.of(first, n):
                valid_texts.append(Text(text, partial(iter, pairs)))
            first += n
        return train, valid_texts


def _read_texts(config: Config, ticker: Ticker) -> _Texts:
    """Count the training text, and draw the pairs that may be held out if there is no validation text.

    Text with a tag is synthetic data; it is not held out if there is other text. Nor is text that no epoch draws.
    """
    settings = each(config.data.train)
    task = task_of(config)
    with ticker.task("reading the corpus"):
        counts = tuple(sum(1 for _ in task.read(setting)) for setting in settings)
    for setting, n in zip(settings, counts, strict=True) if len(settings) > 1 else ():
        ticker.say(f"{files_shown(setting)}: {n:,} pairs")
    if config.data.valid is not None:
        return _Texts(settings, counts, None)
    drawn = [setting for setting in settings if setting.weight > 0] or settings
    divided = [setting for setting in drawn if setting.tag is None] or drawn
    with ticker.task("choosing pairs for validation"):
        # of a parser's pairs only the sentences are compared, as many trees are alike
        return _Texts(settings, counts, draw(settings, divided, task.read, one_side=not task.translates))


def _hold_out(
    texts: _Texts, tokenizers: tuple[Tokenizer, Tokenizer], data: DataConfig, ticker: Ticker
) -> HeldOut | None:
    """Choose the pairs that are held out, and print their number; None if there is validation text."""
    if texts.pool is None:
        return None
    held_out = texts.pool.choose(tokenizers, data)
    drawn = [text for text in texts.settings if text.weight > 0]
    has_both = any(text.tag for text in texts.settings) and any(text.tag is None for text in drawn)
    scope = " of the text without a tag" if has_both else ""
    n, n_twins = len(held_out.pairs), len(held_out.twins)
    near = "near twin of these is" if n_twins == 1 else "near twins of these are"
    twins = f"; {n_twins:,} {near} left out of the training text" if n_twins else ""
    verb = "is" if n == 1 else "are"
    ticker.say(f"no validation set: {n:,} of {sum(texts.counts):,} pairs{scope} {verb} held out{twins}")
    return held_out


def _learn_lexicon(pairs: Pairs, folder: Path, ticker: Ticker, noise: NoiseConfig) -> Lexicon:
    """Learn which words translate each other, for the noise ``one_word`` and ``inserts``; write ``lexicon.json``."""
    with ticker.task("learning word translations"):
        lexicon = sure_translations(pairs())
    if not lexicon and noise.one_word > 0:
        raise DataError(
            "data.noise.one_word: no reliable word translations in this corpus (it is small, or written without "
            "spaces between words); set it to 0"
        )
    ticker.say(f"{len(lexicon):,} words have a reliable translation; data.noise samples from them")
    write_text(folder / LEXICON, json.dumps(lexicon, ensure_ascii=False, indent=0))
    return lexicon


def repeated_share(run: Path) -> float:
    """Return the share of the validation set that stands in the training text; 0 for a run of an older version."""
    report = read_report(run / "store" / PREPARED, _small_files(run / "store"))
    return float((report or {}).get("repeated", 0.0))


def requested_vocab_size(run: Path) -> int | None:
    """Return the ``data.tokenizer.vocab_size`` that a run was begun with, of which its text may yield fewer.

    None: the run does not tell.
    """
    report = read_report(run / "store" / PREPARED, _small_files(run / "store")) or {}
    try:
        return int(report["settings"]["data"]["tokenizer"]["vocab_size"])
    except (KeyError, TypeError, ValueError):  # of an older version
        return None


def load_lexicon(run: Path) -> Lexicon:
    """Return the word pairs that ``prepare`` has learned; none if ``data.noise`` needs none.

    Raises:
        BundleError: The file is damaged.
    """
    path = run / "store" / LEXICON
    try:
        lexicon = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BundleError(f"{path}: cannot be read as word pairs ({error}); train a new run") from None
    if not isinstance(lexicon, dict) or not all(isinstance(word, str) for pair in lexicon.items() for word in pair):
        raise BundleError(f"{path}: not a file of word pairs; train a new run")
    return lexicon


def check_prepared(run: Path, accept_changed_text: bool, ticker: Ticker) -> tuple[Tokenizer, Tokenizer]:
    """Check that text, subwords and stores of ``run`` have not changed since it began; return its tokenizers.

    Args:
        accept_changed_text: Only print a message if a text file has changed; the prepared data is used as it is.

    Raises:
        DataError, BundleError: A file is missing or has changed; the message names it.
    """
    tokenizers, sources = load_tokenizers(run / "store"), dict[str, Any]()
    for name in ("train", "valid"):
        folder = run / "store" / name
        with ticker.task(f"checking {folder}"):
            if not check_store(folder):
                ticker.say(f"{folder} was written by an older dragoman, without checksums; it is used unchecked")
            store = Store.open(folder)
            sources |= store.sources  # of both, where text is held out
        for tokenizer, noted_sum, side in zip(tokenizers, store.tokenizers, ("src", "tgt"), strict=True):
            if tokenizer.fingerprint != noted_sum:
                file = run / "store" / ("joint.spm" if tokenizers[0].shares_pieces(tokenizers[1]) else f"{side}.spm")
                raise DataError(f"{file}: not the subword model that {folder} was encoded with; restore the old file")
    for path, noted in sources.items():
        if not os.access(path, os.F_OK):
            ticker.say(f"{path} is no longer there; continuing with the data prepared from it")
        elif fingerprint(path) != noted:
            if not accept_changed_text:
                raise DataError(
                    f"{path} has changed since {run} began: restore the old text, or train a new run; "
                    "--accept-changed-text continues with the data prepared from the old text"
                )
            ticker.say(f"{path} has changed; continuing with the data prepared from the old text")
    return tokenizers
