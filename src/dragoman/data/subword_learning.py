"""Runs SentencePiece's trainer on text: what it is given, and how its vocabulary is chosen.

It leaves out lines that hold a few reserved characters, and lines that are too long; here no line is lost. It splits
off only digits of ASCII and of full width; here every decimal digit is a piece of its own. All ten digits of a decimal
system that the text holds become pieces, so that none is spelt in bytes.
"""

from __future__ import annotations

import io
import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from dragoman.config import SPECIAL_IDS, TokenizerConfig
from dragoman.data.normalisation import source_rule, target_rule
from dragoman.errors import ConfigError, DataError
from dragoman.languages.composition import compose

MIN_CHARACTER_COUNT = 5

_N_THREADS = 2  # fixed, because the learned vocabulary depends on it
_PART = 4000  # characters; a longer line is learned from in parts, because SentencePiece would leave it out
COMMON_SETTINGS: dict[str, Any] = dict(
    normalization_rule_name="identity",
    remove_extra_whitespaces=False,
    num_threads=_N_THREADS,
    pad_id=SPECIAL_IDS.pad,
    unk_id=SPECIAL_IDS.unk,
    bos_id=SPECIAL_IDS.bos,
    eos_id=SPECIAL_IDS.eos,
    minloglevel=2,
)
_BORDER = "\ufdd0"  # no piece reaches across it; a character that no text holds
_RESERVED = str.maketrans({"\0": " ", "\u2585": " ", "\n": " ", _BORDER: " "})
_HOLDS_RESERVED = re.compile("[\0\u2585\n\ufdd0]").search
_ANY_DIGIT, _DIGIT = re.compile(r"\d"), re.compile(r"(?![0-9])\d")


class SidedLine(NamedTuple):
    """A line to learn subwords from."""

    text: str
    is_target: bool


def normalised_lines(lines: Sequence[SidedLine], normalisation: str) -> list[str]:
    """Return the lines as the model is to read and to write them; those of which nothing is left are left out."""
    if normalisation == "none":
        return [line.text for line in lines]
    rules = [
        sentencepiece.SentencePieceNormalizer(
            normalizer_spec=target_rule(normalisation, None) if is_target else source_rule(normalisation),
            add_dummy_prefix=False,
            escape_whitespaces=False,
        )
        for is_target in (False, True)
    ]
    clean = (rules[line.is_target].Normalize(compose(line.text)) for line in lines)
    return [text for text in clean if text]


def train(lines: Sequence[str], config: TokenizerConfig, vocab_size: int, tags: Sequence[str]) -> bytes:
    """Run SentencePiece's trainer, with a lower ``vocab_size`` if the text yields fewer subwords; return the model."""
    model = io.BytesIO()
    digits, borders = _digits(lines)
    settings: dict[str, Any] = {"pretokenization_delimiter": _BORDER} if borders else {}
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_bordered(lines) if borders else _parts(lines),
            model_writer=model,
            model_type=config.kind,
            vocab_size=vocab_size,
            hard_vocab_limit=config.kind == "bpe",
            byte_fallback=config.byte_fallback,
            character_coverage=coverage(lines, config.vocab_size // 4) if config.byte_fallback else 1.0,
            split_digits=True,
            required_chars=digits,
            max_sentence_length=4 * _PART,  # bytes
            control_symbols=list(tags),
            **settings,
            **COMMON_SETTINGS,
        )
    except (RuntimeError, ValueError) as error:
        message = str(error)
        if limit := re.match(r".*<= (\d+)", message.partition("too high ")[2]):
            return train(lines, config, int(limit[1]), tags)
        if limit := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
            needed = "256 bytes, 4 special ids, its common characters" if config.byte_fallback else "its characters"
            raise ConfigError(
                f"tokenizer.vocab_size = {vocab_size} is too small: this text needs {limit[1]} ({needed}) before the "
                "first subword. Set it to several times that"
            ) from None
        raise DataError(f"no subwords can be learned from this text: {message}") from None
    return model.getvalue()


def draw(lines: Iterable[SidedLine], most: int) -> tuple[list[SidedLine], int]:
    """Return up to ``most`` random lines that are not blank (reservoir sampling), and the number of such lines."""
    chance = random.Random(0)
    drawn: list[SidedLine] = []
    n = 0
    for line in lines:
        if not line.text or line.text.isspace():
            continue
        n += 1
        if len(drawn) < most:
            drawn.append(line)
        elif (place := int(chance.random() * n)) < most:
            drawn[place] = line
    return drawn, n


def _parts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines so that SentencePiece leaves none out: without reserved characters, and cut if they are long."""
    for line in lines:
        if _HOLDS_RESERVED(line):  # rare; ``translate`` is slow
            line = line.translate(_RESERVED)
        if len(line) <= _PART:
            yield line
        else:
            yield from (line[i : i + _PART] for i in range(0, len(line), _PART))


def _bordered(lines: Iterable[str]) -> Iterator[str]:
    """Yield the parts of the lines with a border on both sides of each digit that is not ASCII."""
    for part in _parts(lines):
        yield part if part.isascii() else _DIGIT.sub(rf"{_BORDER}\g<0>{_BORDER}", part)


def _digits(lines: Iterable[str]) -> tuple[str, bool]:
    """Return all ten digits of each decimal system seen ``MIN_CHARACTER_COUNT`` times; True if any is not ASCII."""
    counts = Counter(digit for line in lines for digit in _ANY_DIGIT.findall(line))
    zeros = Counter[str]()
    for digit, count in counts.items():
        zeros[chr(ord(digit) - unicodedata.decimal(digit))] += count
    often = sorted(zero for zero, count in zeros.items() if count >= MIN_CHARACTER_COUNT)
    digits = "".join(chr(ord(zero) + value) for zero in often for value in range(10))
    return digits, not "".join(zeros).isascii()


def coverage(lines: Iterable[str], most: int) -> float:
    """Return the share of the text to cover by characters that become pieces: SentencePiece's character_coverage.

    It is the share of the ``most`` commonest characters seen ``MIN_CHARACTER_COUNT`` times, but at least 98%.
    """
    counts = np.zeros(sys.maxunicode + 1, np.int64)
    for block in _joined(_parts(lines)):
        counts += np.bincount(np.frombuffer(block.encode("utf-32-le", "surrogatepass"), "<u4"), minlength=len(counts))
    often = np.sort(counts[counts >= MIN_CHARACTER_COUNT])[::-1]
    return max(0.98, int(often[:most].sum()) / int(counts.sum()))


def _joined(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts joined to blocks of a million characters, with the space that SentencePiece puts before each."""
    block: list[str] = []
    size = 0
    for part in parts:
        block.append(part)
        size += len(part) + 1
        if size >= 2**20:
            yield " " + " ".join(block)
            block, size = [], 0
    if block:
        yield " " + " ".join(block)
