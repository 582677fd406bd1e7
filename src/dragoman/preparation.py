"""From the text files of a configuration to the subwords and stores of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from dragoman.config import Config, DataConfig
from dragoman.data.corpus import open_corpus, read_pairs
from dragoman.data.store import build_store
from dragoman.data.tokenizer import Tokenizer, learn_tokenizers
from dragoman.errors import DataError
from dragoman.files import explained
from dragoman.progress import Ticker

Pairs = Callable[[], Iterator[tuple[str, str]]]
"""One pass over the text each time it is called."""


def prepare(config: Config, run: Path, ticker: Ticker) -> tuple[Config, tuple[Tokenizer, Tokenizer]]:
    """Learn the subwords and write the stores of ``run``.

    Returns:
        The configuration with the vocabulary size that was really learned, and the source and target tokenizers.

    Raises:
        DataError: The corpus cannot be used.
    """
    data, folder = config.data, run / "store"
    with explained(folder):
        folder.mkdir(exist_ok=True)
    check_readable(data)
    train_pairs, valid_pairs, n_pairs = _split_off_validation(config, ticker)
    with ticker.task("learning subwords"):
        tokenizers = learn_tokenizers(train_pairs, data.tokenizer)
    joint = tokenizers[0] is tokenizers[1]
    for tokenizer, side in zip(tokenizers, ("joint" if joint else "src", "joint" if joint else "tgt"), strict=True):
        with explained(folder):
            tokenizer.save(folder / f"{side}.spm")
    for name, pairs, files, keep_text in (
        ("train", train_pairs, data.train, data.tokenizer.sampling > 0),
        ("valid", valid_pairs, data.valid or data.train, True),
    ):
        report = build_store(
            folder / name, pairs(), *tokenizers, data, keep_text=keep_text, sources=(files.src, files.tgt),
            total=n_pairs if name == "train" else None, progress=ticker,
        )  # fmt: skip
        ticker.say(f"{name}: {report}")
    size = max(tokenizers[0].vocab_size, tokenizers[1].vocab_size)
    learned = data.tokenizer.model_copy(update={"vocab_size": size})
    return config.model_copy(update={"data": data.model_copy(update={"tokenizer": learned})}), tokenizers


def check_readable(data: DataConfig) -> None:
    """Open each file once, so that a wrong name is an error now and not in an hour."""
    for files in (data.train, data.valid):
        if files is not None:
            open_corpus(files.src).close()
            open_corpus(files.tgt).close()


def _split_off_validation(config: Config, ticker: Ticker) -> tuple[Pairs, Pairs, int]:
    """The training and the validation text, and the number of training pairs."""
    files, valid = config.data.train, config.data.valid
    with ticker.task("reading the corpus"):
        n_pairs = sum(1 for _ in read_pairs(files.src, files.tgt))
    if valid is not None:
        return lambda: read_pairs(files.src, files.tgt), lambda: read_pairs(valid.src, valid.tgt), n_pairs
    every = max(100, -(-n_pairs // 2000))
    if n_pairs < every:
        raise DataError(
            f"{files.src}: {n_pairs} pairs are too few to hold out 1% for validation: give a validation set"
        )
    ticker.say(f"no validation set: every {every}th pair, {n_pairs // every:,} of {n_pairs:,}, is held out")

    def part(held_out: bool) -> Pairs:
        def pairs() -> Iterator[tuple[str, str]]:
            for i, pair in enumerate(read_pairs(files.src, files.tgt), start=1):
                if (i % every == 0) == held_out:
                    yield pair

        return pairs

    return part(False), part(True), n_pairs - n_pairs // every


def load_tokenizers(run: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers that ``prepare`` saved; one and the same object twice where they are joint.

    Raises:
        BundleError: They are missing or damaged.
    """
    folder = run / "store"
    if (folder / "joint.spm").is_file():
        joint = Tokenizer.load(folder / "joint.spm")
        return joint, joint
    return Tokenizer.load(folder / "src.spm"), Tokenizer.load(folder / "tgt.spm")
