"""Subwords: learned from the training text by SentencePiece, as byte pairs or as a unigram model.

The text is taken as it is: no normalisation, every space kept, so ``decode(encode(x)) == x`` for every string ``x``.
Imported tokenizers may normalise it first (``is_exact``).
There is one exception, U+2581 "lower one eighth block": SentencePiece writes spaces so, and it comes back as a space.
Without byte fallback there is a second one: a character that was never seen comes back as the mark of the unknown.

Digits are always pieces of their own, so that numbers are copied digit by digit and not by luck.
With byte fallback, a character becomes a piece if it is among the commonest that cover 98% of the text, or was seen
``MIN_CHARACTER_COUNT`` times and is among the ``vocab_size / 4`` commonest; the others are spelt in UTF-8 bytes. That
keeps every letter of an alphabet, and keeps thousands of rare Chinese characters from filling a small vocabulary with
rows that are hardly ever trained. Without byte fallback every character seen becomes a piece.

Tags stand before a source and are no part of it: ``>>fr<<`` says into which language it goes, ``<bt>`` of what kind the
pair is. Each is one id that no text is cut into, whatever is written there, and that spells nothing.
"""

from __future__ import annotations

import copy
import hashlib
import io
import logging
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from dragoman.config import TokenizerConfig
from dragoman.data.sentencepiece_check import check_model, is_of_words, is_unigram, keeps_texts
from dragoman.data.subword_sampling import Sampler, Vocabulary
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.languages.codes import primary

logger = logging.getLogger(__name__)

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3

MAX_LEARNING_LINES = 1_000_000
"""Maximum number of lines to learn subwords from, sampled at random; more hardly change the subwords."""

TARGET = re.compile(r">>([^<>]+)<<")
"""The tag of a target language, as OPUS-MT writes it."""
MAX_MODEL_BYTES = 64 * 2**20
MIN_CHARACTER_COUNT = 5
FEW = 32
"""Fewer texts than these are encoded and decoded one by one: a call for several begins threads, which takes 85 us
where one text takes 4."""

_N_THREADS = 2  # a constant, for what is learned depends on it
_PART = 4000  # characters; learning sees a longer line in parts, as SentencePiece would leave it out
_OURS: dict[str, Any] = dict(  # what all our models have in common
    normalization_rule_name="identity",
    remove_extra_whitespaces=False,
    num_threads=_N_THREADS,
    pad_id=PAD_ID,
    unk_id=UNK_ID,
    bos_id=BOS_ID,
    eos_id=EOS_ID,
    minloglevel=2,
)
_RESERVED = str.maketrans({"\0": " ", "\u2585": " ", "\n": " "})  # SentencePiece would leave out lines with these


class Tokenizer:
    """One vocabulary: text to ids and back. Holds, and is saved as, the bytes of a SentencePiece model.

    Ids 0, 1, 2 and 3 are pad, unk, bos and eos; ``encode`` never gives any of these but unk.
    """

    def __init__(self, proto: bytes, name: str = "tokenizer") -> None:
        """Take the bytes of a ``.spm`` file; ``name`` is what errors call it.

        Raises:
            BundleError: The bytes are no SentencePiece model, or none of ours.
        """
        if len(proto) > MAX_MODEL_BYTES:
            raise BundleError(f"{name}: {len(proto):,} bytes is too much for a tokenizer (at most {MAX_MODEL_BYTES:,})")
        if not proto:
            raise BundleError(f"{name}: the tokenizer is empty; copy it again")
        self.proto = proto
        self._samplers: dict[float, Sampler] = {}  # by rate
        self._begin: list[int] = []  # what each text begins with; see ``towards``
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            check_model(proto)  # SentencePiece trusts what it is given
            self._processor.LoadFromSerializedProto(proto)
        except (RuntimeError, ValueError) as error:
            raise BundleError(f"{name}: not a SentencePiece model, or damaged ({error}); copy it again") from None
        model = self._processor
        ids = model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id()
        if ids != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
            raise BundleError(
                f"{name}: pad, unk, bos, eos are {ids} but dragoman needs {(PAD_ID, UNK_ID, BOS_ID, EOS_ID)}: this "
                "tokenizer was learned by another program"
            )

    @classmethod
    def learn(cls, lines: Iterable[str], config: TokenizerConfig, tags: Sequence[str] = ()) -> Tokenizer:
        """Learn a vocabulary from ``lines``; the same arguments give the same tokenizer.

        A text with fewer subwords than ``config.vocab_size`` gets a smaller vocabulary, which is logged.

        Args:
            tags: Such as ``<bt>`` and ``>>fr<<``; they count towards ``config.vocab_size``.

        Raises:
            ConfigError: ``config.vocab_size`` does not hold the single characters (and bytes).
            DataError: There is no text in ``lines``.
        """
        lines, n_lines = _draw(lines, MAX_LEARNING_LINES)
        if n_lines > len(lines):
            logger.info(
                "subwords are learned from a random sample of %s of %s lines", f"{len(lines):,}", f"{n_lines:,}"
            )
        if not lines:
            raise DataError("there is no text to learn subwords from: every line is blank")
        tokenizer = cls(_train(lines, config, config.vocab_size, tags))
        if tokenizer.vocab_size < config.vocab_size:
            logger.warning(
                "the corpus yields only %s subwords; tokenizer.vocab_size = %s is lowered to that",
                f"{tokenizer.vocab_size:,}",
                f"{config.vocab_size:,}",
            )
        return tokenizer

    @classmethod
    def learn_words(cls, lines: Iterable[str]) -> Tokenizer:
        """Take each word of ``lines``, which spaces part, as one subword: for text of few symbols, such as trees.

        Raises:
            DataError: There is no word in ``lines``.
        """
        words = sorted({word for line in lines for word in line.split(" ") if word})
        if not words:
            raise DataError("there is no text to take words from: every line is blank")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(words), model_writer=model, model_type="word", use_all_vocab=True, **_OURS
        )
        return cls(model.getvalue())

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Read a ``.spm`` file.

        Raises:
            BundleError: It is missing, no file, damaged or not ours.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                proto = file.read(MAX_MODEL_BYTES + 1)
        except FileNotFoundError:
            raise BundleError(f"{path}: no such file; a bundle holds its tokenizers as .spm files") from None
        except OSError as error:
            raise BundleError(f"{path}: cannot be read ({error.strerror})") from None
        return cls(proto, str(path))

    def save(self, path: Path | str) -> None:
        """Write the bytes of the model, ``proto``."""
        Path(path).write_bytes(self.proto)

    @property
    def vocab_size(self) -> int:
        """Number of ids, special ones included."""
        return int(self._processor.get_piece_size())

    @property
    def is_exact(self) -> bool:
        """True if texts are taken as they are; an imported tokenizer may normalise them first, as NFKC does."""
        return keeps_texts(self.proto)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of ``proto``, in hex."""
        return hashlib.sha256(self.proto).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut each text into subword ids, without bos and eos; ``""`` gives ``[]``.

        Raises:
            DataError: A text contains an unpaired surrogate.
        """
        try:
            if len(texts) < FEW:
                found = [self._processor.encode(text) for text in texts]
            else:
                found = self._processor.encode(list(texts), num_threads=_N_THREADS)
        except (UnicodeEncodeError, TypeError, RuntimeError) as error:
            raise _not_utf8(texts) or error from None
        return [self._begin + ids if ids else ids for ids in found] if self._begin else found

    def unknown(self, text: str) -> list[str]:
        """Return the parts of a text for which the vocabulary has no subword, in their order, each once."""
        pieces = zip(self._processor.encode(text, out_type=str), self._processor.encode(text), strict=True)
        return list(dict.fromkeys(piece.replace("\u2581", " ") for piece, i in pieces if i == UNK_ID))

    @cached_property
    def tags(self) -> dict[str, int]:
        """The tags of this vocabulary, target languages among them, with their ids; they spell nothing."""
        pieces, model = self.pieces(range(self.vocab_size)), self._processor
        return {
            piece: i
            for i, piece in enumerate(pieces)
            if i > EOS_ID and (model.is_control(i) or (model.is_unused(i) and TARGET.fullmatch(piece)))
        }

    @cached_property
    def targets(self) -> dict[str, int]:
        """The languages that a source can be sent to, and the ids that say so; none of a model for one pair."""
        marks = ((TARGET.fullmatch(piece), i) for piece, i in self.tags.items())
        return {found[1]: i for found, i in marks if found}

    def target(self, code: str) -> str | None:
        """The one of ``targets`` that ``code`` means: the same, or the only one of that language (fr for fra)."""
        alike = [known for known in self.targets if primary(known) == primary(code)]
        return code if code in self.targets else alike[0] if len(alike) == 1 else None

    def towards(self, target: str | None) -> Tokenizer:
        """This tokenizer, but each text that it cuts begins with the id of a target language, which spells nothing.

        Args:
            target: One of ``targets``; None where there are none to choose from.

        Raises:
            ConfigError: There are several and none was chosen, or there is no such one.
        """
        known = self.targets
        if target is None and len(known) < 2:
            return self
        meant = None if target is None else self.target(target)
        if meant is None:
            said = ", ".join([*sorted(known)[:20], *(["..."] if len(known) > 20 else [])])
            if target is None:
                raise ConfigError(f"this model translates into {len(known)} languages: say which with to ({said})")
            one = f"use one of {said}" if known else "this model has one target language; leave it out"
            raise ConfigError(f"to = {target!r} is unknown: {one}")
        towards = copy.copy(self)
        towards._begin = [known[meant]]
        return towards

    def begin(self, target: str | None, tag: str | None) -> tuple[int, ...]:
        """The ids that a source begins with in training: of its target language, if there are several, and of its tag.

        Raises:
            ConfigError: The vocabulary has no such tag, or several languages of which none was said.
        """
        ids = self.towards(target if self.targets else None)._begin
        if tag is not None and tag not in self.tags:
            raise ConfigError(
                f"these subwords have no tag {tag}: leave it out, or learn new ones (--new-subwords where a run is "
                "fine-tuned)"
            )
        return (*ids, *([] if tag is None else [self.tags[tag]]))

    def sample(self, texts: Sequence[str], rate: float, seed: int) -> list[list[int]]:
        """Cut each text in a random one of the possible ways: subword regularisation, see ``Sampler``.

        The result is a function of the arguments alone. Of whole words there is one way.

        Args:
            rate: At least 0.
            seed: At least 0.

        Raises:
            DataError: As ``encode``.
        """
        if (problem := _not_utf8(texts)) is not None:
            raise problem
        if is_of_words(self.proto):
            return self.encode(texts)
        if not self.is_exact:  # the sampler takes a text as it is
            texts = [self._processor.normalize(text).replace("\u2581", " ").removeprefix(" ") for text in texts]
        return self._sampler(rate).cut(texts, seed)

    def _sampler(self, rate: float) -> Sampler:
        if rate not in self._samplers:
            model = self._processor
            pieces = self.pieces(range(self.vocab_size))
            byte_ids = [i for i in range(len(pieces)) if model.is_byte(i)]
            special = {PAD_ID, UNK_ID, BOS_ID, EOS_ID, *byte_ids, *self.tags.values()}
            ids = {piece: i for i, piece in enumerate(pieces) if i not in special}
            self._samplers[rate] = Sampler(
                Vocabulary(
                    ids,
                    {piece: model.get_score(i) for piece, i in ids.items()},
                    sorted(byte_ids, key=lambda i: pieces[i]),
                    UNK_ID,
                    is_unigram(self.proto),
                ),
                rate,
            )
        return self._samplers[rate]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Join subwords to text; pad, bos, eos and tags are dropped, wherever they stand.

        Bytes that form no character become U+FFFD. The text of ids that ``encode`` did not make may hold LF.

        Raises:
            DataError: An id lies outside the vocabulary.
        """
        size, special = self.vocab_size, {PAD_ID, BOS_ID, EOS_ID, *self.tags.values()}
        rows = []
        for row in ids:
            if len(row) and (min(row) < 0 or max(row) >= size):
                raise DataError(
                    f"ids {min(row)} to {max(row)}: this tokenizer knows 0 to {size - 1}; is it the model's?"
                )
            rows.append([int(i) for i in row if i not in special])
        return [self._processor.decode(row) for row in rows] if len(rows) < FEW else self._processor.decode(rows)

    @cached_property
    def spelled(self) -> tuple[bytes, ...]:
        """What each id puts into a text, in UTF-8, perhaps a part of a character; nothing for pad, bos, eos, tags.

        A text stands after one space more, which ``decode`` takes off: ``b"".join(spelled of its ids)[1:]``.
        """
        model, spelled, silent = self._processor, [], frozenset(self.tags.values())
        for i, piece in enumerate(self.pieces(range(self.vocab_size))):
            if model.is_byte(i):
                spelled.append(bytes([int(piece[1:-1], 16)]))
            elif i == UNK_ID:
                spelled.append(" \u2047 ".encode())  # as SentencePiece decodes it
            else:
                spelled.append(b"" if model.is_control(i) or i in silent else piece.replace("\u2581", " ").encode())
        return tuple(spelled)

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """The ids of single bytes, in which rare characters are spelt."""
        return frozenset(i for i in range(self.vocab_size) if self._processor.is_byte(i))

    @cached_property
    def scores(self) -> tuple[float, ...]:
        """The score of each piece: of byte pairs the order of merging, of a unigram model the log-probability."""
        return tuple(self._processor.get_score(i) for i in range(self.vocab_size))

    @cached_property
    def rare_ids(self) -> frozenset[int]:
        """The unknown, and the bytes in which characters are spelt that were hardly ever seen."""
        return self.byte_ids | {UNK_ID}

    @cached_property
    def shadowed(self) -> frozenset[int]:
        """Ids of single bytes that are pieces too, which is what ``encode`` gives for them; a space among them."""
        bytes_ = {spelt: i for i, spelt in enumerate(self.spelled) if self._processor.is_byte(i)}
        return frozenset(
            bytes_[spelt] for i, spelt in enumerate(self.spelled) if spelt in bytes_ and i != bytes_[spelt]
        ) | {i for spelt, i in bytes_.items() if spelt == b" "}

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Show each id as its piece, spaces as U+2581, bytes as ``<0x41>``; special ids by name."""
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.proto == other.proto

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size:,} subwords, {self.fingerprint[:8]})"


def learn_tokenizers(
    pairs: Callable[[], Iterable[tuple[str, str]]],
    config: TokenizerConfig,
    tgt_words: bool = False,
    tags: Sequence[str] = (),
) -> tuple[Tokenizer, Tokenizer]:
    """Learn the vocabularies of both sides: one and the same object twice where ``config.joint``.

    Args:
        pairs: Called for each pass over the text, such as ``lambda: read_pairs(src, tgt)``.
        tgt_words: The target's are whole words, such as the symbols of trees; ``config`` is for the source alone.
        tags: Of sources.

    Raises:
        ConfigError: As ``Tokenizer.learn``.
        DataError: As ``Tokenizer.learn``, and whatever ``pairs`` finds wrong.
    """
    if config.joint:
        tokenizer = Tokenizer.learn((side for pair in pairs() for side in pair), config, tags)
        return tokenizer, tokenizer
    tgt_lines = (tgt for _, tgt in pairs())
    return (
        Tokenizer.learn((src for src, _ in pairs()), config, tags),
        Tokenizer.learn_words(tgt_lines) if tgt_words else Tokenizer.learn(tgt_lines, config),
    )


def _train(lines: Sequence[str], config: TokenizerConfig, vocab_size: int, tags: Sequence[str]) -> bytes:
    """Run SentencePiece's trainer; lower ``vocab_size`` if the text has less."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_parts(lines),
            model_writer=model,
            model_type=config.kind,
            vocab_size=vocab_size,
            hard_vocab_limit=config.kind == "bpe",
            byte_fallback=config.byte_fallback,
            character_coverage=_coverage(lines, config.vocab_size // 4) if config.byte_fallback else 1.0,
            split_digits=True,
            max_sentence_length=4 * _PART,  # bytes
            control_symbols=list(tags),
            **_OURS,
        )
    except (RuntimeError, ValueError) as error:
        message = str(error)
        if found := re.search(r"too high .*<= (\d+)", message):
            return _train(lines, config, int(found[1]), tags)
        if found := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
            what = "256 bytes, 4 special ids, its common characters" if config.byte_fallback else "its characters"
            raise ConfigError(
                f"tokenizer.vocab_size = {vocab_size} is too small: this text needs {found[1]} ({what}) before the "
                "first subword. Set it to several times that"
            ) from None
        raise DataError(f"no subwords can be learned from this text: {message}") from None
    return model.getvalue()


def _draw(lines: Iterable[str], most: int) -> tuple[list[str], int]:
    """Draw up to ``most`` of the lines that are not blank, each with the same chance; also count those."""
    chance = random.Random(0)
    drawn: list[str] = []
    n = 0
    for line in lines:
        if not line or line.isspace():
            continue
        n += 1
        if len(drawn) < most:
            drawn.append(line)
        elif (place := int(chance.random() * n)) < most:
            drawn[place] = line
    return drawn, n


def _parts(lines: Iterable[str]) -> Iterator[str]:
    """Hand the lines to SentencePiece in a form of which it leaves nothing out."""
    for line in lines:
        if "\0" in line or "\n" in line or "\u2585" in line:  # rarely: ``translate`` is slow
            line = line.translate(_RESERVED)
        if len(line) <= _PART:
            yield line
        else:
            yield from (line[i : i + _PART] for i in range(0, len(line), _PART))


def _coverage(lines: Iterable[str], most: int) -> float:
    """The share of the text that its common characters make up: SentencePiece makes a piece of each down to that.

    Common are at most ``most`` characters, each seen ``MIN_CHARACTER_COUNT`` times, but always 98% of the text.
    """
    counts = np.zeros(sys.maxunicode + 1, np.int64)
    for block in _joined(_parts(lines)):
        counts += np.bincount(np.frombuffer(block.encode("utf-32-le", "surrogatepass"), "<u4"), minlength=len(counts))
    often = np.sort(counts[counts >= MIN_CHARACTER_COUNT])[::-1]
    return max(0.98, int(often[:most].sum()) / int(counts.sum()))


def _joined(parts: Iterable[str]) -> Iterator[str]:
    """A million characters at a time, with the space that SentencePiece puts before each part."""
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


def lone_surrogate(text: str) -> int | None:
    """The place, from 0, of the first character that is half of a surrogate pair, which UTF-8 cannot write."""
    return next((place for place, character in enumerate(text) if "\ud800" <= character <= "\udfff"), None)


def _not_utf8(texts: Sequence[str]) -> DataError | None:
    """Say which text cannot be written as UTF-8, if one cannot."""
    try:
        "".join(texts).encode()
        return None
    except UnicodeEncodeError:
        pass  # which one?
    for number, text in enumerate(texts, 1):
        if (place := lone_surrogate(text)) is not None:
            return DataError(
                f"text {number}, character {place + 1}: U+{ord(text[place]):04X} is half of a surrogate pair and no "
                "character; replace it, for example by U+FFFD"
            )
    return None
