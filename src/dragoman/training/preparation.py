"""From the text files of a configuration to the subwords and stores of a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from dragoman.bundle import load_tokenizers
from dragoman.config import Config, DataConfig, ModelConfig, NoiseConfig, TextFiles, each
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import open_corpus
from dragoman.data.noise import Lexicon, noised_pairs, sure_translations
from dragoman.data.store import Store, build_store, check_store, fingerprint
from dragoman.data.texts import paths_of
from dragoman.data.tokenizer import Tokenizer, learn_tokenizers
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.files import explained, write_text
from dragoman.model.weights import MAX_TENSORS, shapes
from dragoman.progress import Ticker
from dragoman.training.log import NO_TENSORBOARD
from dragoman.training.memory import GIB, device_memory, n_parameters, state_bytes
from dragoman.training.task import task_of

Pairs = Callable[[], Iterator[tuple[str, str]]]
"""One pass over the text each time it is called."""


def prepare(
    config: Config, run: Path, ticker: Ticker, tokenizers: tuple[Tokenizer, Tokenizer] | None = None
) -> tuple[Config, tuple[Tokenizer, Tokenizer]]:
    """Learn the subwords and write the stores of ``run``.

    Args:
        tokenizers: Subwords to take instead of learning any; one and the same object twice where they are joint.

    Returns:
        The configuration with the vocabulary size that was really learned, and the source and target tokenizers.

    Raises:
        DataError: The corpus cannot be used.
    """
    data, folder = config.data, run / "store"
    check_readable(data)
    with explained(folder):
        folder.mkdir(exist_ok=True)
        left = (folder / name for name in ("joint.spm", "src.spm", "tgt.spm", "lexicon.json"))
        for rest in (*left, *folder.glob("*.tmp-*")):  # of one that died
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink(missing_ok=True)
    train_pairs, valid_pairs, n_pairs = _split_off_validation(config, ticker)
    lexicon = (
        _learn_lexicon(train_pairs, folder, ticker, data.noise) if data.noise.one_word + data.noise.inserts > 0 else {}
    )
    if tokenizers is None:
        with ticker.task("learning subwords"):
            # from noised text too, where there is noise: else a line in capitals would be spelt letter by letter
            tokenizers = learn_tokenizers(
                lambda: noised_pairs(train_pairs(), data.noise, lexicon, config.train.seed),
                data.tokenizer,
                tgt_words=not task_of(config).translates,
            )
    joint = tokenizers[0] is tokenizers[1]
    for tokenizer, side in zip(tokenizers, ("joint" if joint else "src", "joint" if joint else "tgt"), strict=True):
        with explained(folder):
            tokenizer.save(folder / f"{side}.spm")
    for name, pairs, texts, keep_text in (
        ("train", train_pairs, data.train, data.tokenizer.sampling > 0 or data.noise.is_on),
        ("valid", valid_pairs, data.valid or data.train, True),
    ):
        report = build_store(
            folder / name, pairs(), *tokenizers, data, keep_text=keep_text, sources=paths_of(each(texts)),
            total=n_pairs if name == "train" else None, progress=ticker,
        )  # fmt: skip
        ticker.say(f"{name}: {report}")
    size = max(tokenizers[0].vocab_size, tokenizers[1].vocab_size)
    learned = data.tokenizer.model_copy(update={"vocab_size": size})
    return config.model_copy(update={"data": data.model_copy(update={"tokenizer": learned})}), tokenizers


def check_trainable(config: Config) -> None:
    """Refuse what could only fail later, after the corpus has been prepared.

    Raises:
        ConfigError: The model is no translator, shares what it cannot share, or does not fit in memory.
    """
    model, tokenizer = config.model, config.data.tokenizer
    if not (model.n_encoder_layers and model.n_decoder_layers):
        raise ConfigError("a translator needs both: set model.n_encoder_layers and model.n_decoder_layers to 1 or more")
    if model.share_embeddings == "all" and not tokenizer.joint:
        raise ConfigError(
            "model.share_embeddings = 'all' needs one vocabulary, but data.tokenizer.joint = false: "
            "set model.share_embeddings to decoder or none, or data.tokenizer.joint to true"
        )
    longest = config.data.max_tokens + config.decode.max_extra_tokens
    if model.n_positions is not None and longest > model.n_positions:
        raise ConfigError(
            f"model.max_len = {model.max_len} binds learned positions, but data.max_tokens + decode.max_extra_tokens = "
            f"{longest}: raise model.max_len, or lower data.max_tokens"
        )
    size = tokenizer.vocab_size
    sizes = ModelConfig(**model.model_dump(), src_vocab_size=size, tgt_vocab_size=size)
    n_tensors = 3 * len(shapes(sizes))
    if n_tensors > MAX_TENSORS:  # Adam has three for each parameter
        raise ConfigError(
            f"{model.n_encoder_layers} + {model.n_decoder_layers} layers make {n_tensors:,} tensors in a checkpoint, "
            f"which has room for {MAX_TENSORS:,}: set fewer model.n_encoder_layers and model.n_decoder_layers"
        )
    if config.train.tensorboard and find_spec("tensorboard") is None:
        raise ConfigError(NO_TENSORBOARD)
    needed, there = state_bytes(n_parameters(sizes), config.train), device_memory(config.train.device)
    if needed > there:  # whatever the batch
        raise ConfigError(
            f"{n_parameters(sizes):,} parameters need {needed / GIB:,.1f} GiB to be trained, and there are "
            f"{there / GIB:,.1f} GiB: choose a smaller model.preset, or smaller sizes"
        )


def check_readable(data: DataConfig) -> None:
    """Open each file once, so that a wrong name is an error now and not in an hour."""
    for path in paths_of([*each(data.train), *(() if data.valid is None else each(data.valid))]):
        refuse_a_pipe(path)
        open_corpus(path).close()


def _split_off_validation(config: Config, ticker: Ticker) -> tuple[Pairs, Pairs, int]:
    """The training and the validation text, and the number of training pairs."""
    texts, valid = each(config.data.train), config.data.valid
    read = task_of(config).read

    def pairs_of(texts: Sequence[TextFiles]) -> Iterator[tuple[str, str]]:
        return chain.from_iterable(map(read, texts))

    with ticker.task("reading the corpus"):
        counts = [sum(1 for _ in read(text)) for text in texts]
    for text, count in zip(texts, counts, strict=True) if len(texts) > 1 else ():
        ticker.say(f"{' and '.join(map(str, paths_of([text])))}: {count:,} pairs")
    n_pairs = sum(counts)
    if valid is not None:
        return lambda: pairs_of(texts), lambda: pairs_of(each(valid)), n_pairs
    every = max(100, -(-n_pairs // 2000))
    if n_pairs < every:
        raise DataError(
            f"{paths_of(texts)[0]}: {n_pairs} pairs are too few to hold out 1% for validation: give a validation set"
        )
    ticker.say(f"no validation set: every {every}th pair, {n_pairs // every:,} of {n_pairs:,}, is held out")

    def part(held_out: bool) -> Pairs:
        def pairs() -> Iterator[tuple[str, str]]:
            for i, pair in enumerate(pairs_of(texts), start=1):
                if (i % every == 0) == held_out:
                    yield pair

        return pairs

    return part(False), part(True), n_pairs - n_pairs // every


def _learn_lexicon(pairs: Pairs, folder: Path, ticker: Ticker, noise: NoiseConfig) -> Lexicon:
    """Which words translate each other, for ``one_word`` and ``inserts``; written to ``lexicon.json``."""
    with ticker.task("learning word translations"):
        lexicon = sure_translations(pairs())
    if not lexicon and noise.one_word > 0:
        raise DataError(
            "data.noise.one_word: no reliable word translations in this corpus (it is small, or written without "
            "spaces between words); set it to 0"
        )
    ticker.say(f"{len(lexicon):,} words have a reliable translation; data.noise samples from them")
    write_text(folder / "lexicon.json", json.dumps(lexicon, ensure_ascii=False, indent=0))
    return lexicon


def load_lexicon(run: Path) -> Lexicon:
    """The word pairs that ``prepare`` found; none if ``data.noise`` needs none.

    Raises:
        BundleError: They are damaged.
    """
    path = run / "store/lexicon.json"
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
    """The tokenizers of ``run``, if text, subwords and stores are still what they were when it began.

    Args:
        accept_changed_text: Only say so if a text file has changed; what was prepared from it is used as it is.

    Raises:
        DataError, BundleError: A file is missing or has changed; it is named.
    """
    tokenizers = load_tokenizers(run / "store")
    for name in ("train", "valid"):
        folder = run / "store" / name
        with ticker.task(f"checking {folder}"):
            if not check_store(folder):
                ticker.say(f"{folder} was written by an older dragoman, without checksums; it is used unchecked")
            store = Store.open(folder)
            for path, noted in store.sources.items():
                if Path(path).exists() and fingerprint(path) != noted:
                    if not accept_changed_text:
                        raise DataError(
                            f"{path} has changed since {run} began: restore the old text, or train a new run; "
                            "--accept-changed-text continues with the data prepared from the old text"
                        )
                    ticker.say(f"{path} has changed; continuing with the data prepared from the old text")
        for tokenizer, noted_sum, side in zip(tokenizers, store.tokenizers, ("src", "tgt"), strict=True):
            if tokenizer.fingerprint != noted_sum:
                file = run / "store" / ("joint.spm" if tokenizers[0] is tokenizers[1] else f"{side}.spm")
                raise DataError(f"{file}: not the subword model that {folder} was encoded with; restore the old file")
    return tokenizers
