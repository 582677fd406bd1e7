"""Subwords, learned from the training text by SentencePiece as byte pairs or as a unigram model.

    tokenizer = Tokenizer.learn(lines, TokenizerConfig(vocab_size=8000))
    ids = tokenizer.encode(["A dog runs."])
    tokenizer.decode(ids)  # ["A dog runs."]

A text is normalised first, by the rules that its model carries (``normalisation``), unless ``is_exact``. So
``decode(encode(x))`` is ``normalised(x).text`` for every string ``x``. Without byte fallback a character that was never
seen comes back as the unknown mark. Where nothing is normalised, U+2581 "lower one eighth block", by which
SentencePiece writes spaces, still comes back as a space.

Digits are always pieces of their own, so that numbers are copied digit by digit. With byte fallback, a character
becomes a piece if it is among the commonest that cover 98% of the text, or was seen ``MIN_CHARACTER_COUNT`` times and
is among the ``vocab_size / 4`` commonest; all others are spelt in UTF-8 bytes. That keeps every letter of an alphabet,
but keeps thousands of rare Chinese characters from filling a small vocabulary with rows that are hardly ever trained.
Without byte fallback every character seen becomes a piece.

Tags precede a source without being part of it: ``>>fr<<`` names the target language, ``<bt>`` the kind of the pair.
Each is a single id that spells nothing and that no text is encoded to.
"""

from __future__ import annotations

import copy
import hashlib
import io
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import sentencepiece

from dragoman.config import SPECIAL_IDS, TokenizerConfig
from dragoman.data.normalisation import (
    NO_RULES,
    normalisation_of,
    source_rule,
    target_rule,
    with_normaliser,
)
from dragoman.data.sentencepiece_check import (
    check_model,
    has_dummy_prefix,
    is_of_words,
    is_unigram,
    keeps_texts,
    normaliser_of,
)
from dragoman.data.subword_learning import COMMON_SETTINGS, SidedLine, draw, normalised_lines, train
from dragoman.data.subword_sampling import Sampler, Vocabulary
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.files import as_path, unreadable
from dragoman.languages.codes import tag_of, variety
from dragoman.languages.composition import compose, composed_places
from dragoman.options import not_among

logger = logging.getLogger(__name__)

PAD_ID, UNK_ID, BOS_ID, EOS_ID = SPECIAL_IDS.pad, SPECIAL_IDS.unk, SPECIAL_IDS.bos, SPECIAL_IDS.eos

MAX_LEARNING_LINES = 1_000_000
"""Maximum number of lines to learn subwords from, sampled at random; more hardly change the subwords."""

TARGET = re.compile(r">>([^<>]+)<<")
"""The tag of a target language, in the form of OPUS-MT."""

MAX_MODEL_BYTES = 64 * 2**20

FEW = 32
"""Fewer texts than this are encoded and decoded one by one: a call for several starts threads, which takes 85 us, where
one text takes 4."""

_N_THREADS = 2


class Normalised(NamedTuple):
    """A text as the model reads it."""

    text: str
    places: list[int]  # for each of its characters: the place in the given text that it comes from


class Tokenizer:
    """One vocabulary: turns text into ids and back. It is stored as the bytes of a SentencePiece model.

    Ids 0, 1, 2 and 3 are pad, unk, bos and eos; of these ``encode`` returns only unk.
    """

    def __init__(self, proto: bytes, name: str = "tokenizer", is_checked: bool = False) -> None:
        """Load a model from the bytes of a ``.spm`` file.

        Args:
            name: Its name in errors.
            is_checked: The bytes are those of a model that was loaded before, with other rules.

        Raises:
            BundleError: The bytes are not a SentencePiece model, or its special ids differ from ours.
        """
        if len(proto) > MAX_MODEL_BYTES:
            raise BundleError(f"{name}: {len(proto):,} bytes is too much for a tokenizer (at most {MAX_MODEL_BYTES:,})")
        if not proto:
            raise BundleError(f"{name}: the tokenizer is empty; copy it again")
        self.proto = proto
        self.normalisation: str  # "standard", "with_quotes", "none", or the name of another program's rules
        self.composes: bool  # True if a text is composed (NFC) before the rules of the model are applied
        self._samplers: dict[float, Sampler] = {}  # by rate
        self._begin: list[int] = []  # ids that each text begins with; see ``towards``
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            if not is_checked:
                check_model(proto)  # SentencePiece itself does not check the bytes
            self._processor.LoadFromSerializedProto(proto)
        except (RuntimeError, ValueError) as error:
            raise BundleError(f"{name}: not a SentencePiece model, or damaged ({error}); copy it again") from None
        try:
            self.normalisation, self.composes = normalisation_of(normaliser_of(proto))
        except ValueError as error:
            raise BundleError(f"{name}: {error}") from None
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

        A text that yields fewer subwords than ``config.vocab_size`` gets a smaller vocabulary, which is logged.

        Args:
            tags: Tags such as ``<bt>`` and ``>>fr<<``, which count towards ``config.vocab_size``.

        Raises:
            ConfigError: ``config.vocab_size`` is too small for the single characters (and bytes).
            DataError: There is no text in ``lines``.
        """
        return cls.learn_sides((SidedLine(line, False) for line in lines), config, tags)

    @classmethod
    def learn_sides(cls, lines: Iterable[SidedLine], config: TokenizerConfig, tags: Sequence[str] = ()) -> Tokenizer:
        """Learn a vocabulary as ``learn`` does, from lines of sources, of targets, or of both.

        Targets keep characters that sources lose (``normalisation``). A vocabulary of targets alone normalises as
        targets are; one that both share is the source's, and ``for_targets`` makes the target's of it.
        """
        drawn, n_lines = draw(lines, MAX_LEARNING_LINES)
        if n_lines > len(drawn):
            logger.info(
                "subwords are learned from a random sample of %s of %s lines", f"{len(drawn):,}", f"{n_lines:,}"
            )
        texts = normalised_lines(drawn, config.normalisation)
        if not texts:
            raise DataError("there is no text to learn subwords from: every line is blank")
        proto = with_normaliser(train(texts, config, config.vocab_size, tags), source_rule(config.normalisation))
        tokenizer = cls(proto)
        if all(line.is_target for line in drawn):
            tokenizer = tokenizer.for_targets
        if tokenizer.vocab_size < config.vocab_size:
            logger.warning(
                "the corpus yields only %s subwords; tokenizer.vocab_size = %s is lowered to that",
                f"{tokenizer.vocab_size:,}",
                f"{config.vocab_size:,}",
            )
        return tokenizer

    @classmethod
    def learn_words(cls, lines: Iterable[str]) -> Tokenizer:
        """Return a vocabulary with each word between spaces as one subword: for text of few symbols, such as trees.

        Raises:
            DataError: There is no word in ``lines``.
        """
        words = sorted({word for line in lines for word in line.split(" ") if word})
        if not words:
            raise DataError("there is no text to take words from: every line is blank")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(words), model_writer=model, model_type="word", use_all_vocab=True, **COMMON_SETTINGS
        )
        return cls(model.getvalue())

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Read a ``.spm`` file.

        Raises:
            BundleError: The file is missing, damaged, or not a model of ours.
            UnreadableError: It cannot be read now.
        """
        path = as_path(path)
        try:
            with path.open("rb") as file:
                proto = file.read(MAX_MODEL_BYTES + 1)
        except FileNotFoundError:
            raise BundleError(f"{path}: no such file; a bundle holds its tokenizers as .spm files") from None
        except OSError as error:
            raise unreadable(path, error) from error
        return cls(proto, f"{path}")

    def save(self, path: Path | str) -> None:
        """Write the bytes of the model, ``proto``."""
        Path(path).write_bytes(self.proto)

    @property
    def vocab_size(self) -> int:
        """Number of ids, with the special ones."""
        return int(self._processor.get_piece_size())

    @cached_property
    def is_exact(self) -> bool:
        """True if texts are not normalised at all."""
        return keeps_texts(self.proto)

    @cached_property
    def for_targets(self) -> Tokenizer:
        """The same vocabulary with the rules for a target; itself if its rules are none of ours."""
        if not self.composes:
            return self
        pieces = frozenset(self.pieces(range(self.vocab_size)))
        return Tokenizer(with_normaliser(self.proto, target_rule(self.normalisation, pieces)), is_checked=True)

    def shares_pieces(self, other: Tokenizer) -> bool:
        """True if two tokenizers have one vocabulary, the same ids, though a target's rules may differ."""
        both = (self, other)
        return self == other or (
            all(tokenizer.composes for tokenizer in both)
            and self.normalisation == other.normalisation
            and self._exact == other._exact
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of ``proto`` in hex."""
        return hashlib.sha256(self.proto).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the subword ids of each text, without bos and eos; ``""`` gives ``[]``.

        Raises:
            DataError: A text contains an unpaired surrogate.
        """
        if self.composes:
            texts = [compose(text) for text in texts]
        try:
            if len(texts) < FEW:
                rows = [self._processor.encode(text) for text in texts]
            else:
                rows = self._processor.encode(list(texts), num_threads=_N_THREADS)
        except (UnicodeEncodeError, TypeError, RuntimeError) as error:
            raise not_utf8(texts) or error from None
        return [self._begin + ids if ids else ids for ids in rows] if self._begin else rows

    def encode_inside(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts as they are inside a longer one: without a space before, with their outer spaces."""
        if not self.composes and not self.is_exact:  # the rules of another program
            texts = [self._without_spaces_lost(text) for text in texts]
        before, *rows = self._exact.encode(["\n", *("\n" + text for text in texts)])  # no piece reaches across a LF
        rows = [ids[len(before) :] for ids in rows]
        if before[-1] == UNK_ID:  # unknown characters side by side are one id
            first = self._exact.encode([text[:1] for text in texts])
            rows = [[UNK_ID, *ids] if UNK_ID in one else ids for ids, one in zip(rows, first, strict=True)]
        return rows

    def _without_spaces_lost(self, text: str) -> str:
        """Return a text as the model reads it, with its outer spaces."""
        inner = text.strip(" ")
        start = len(text) - len(text.lstrip(" "))
        return text[:start] + self.normalised(inner).text + text[start + len(inner) :]

    @cached_property
    def _has_dummy_prefix(self) -> bool:
        return has_dummy_prefix(self.proto)

    @cached_property
    def _exact(self) -> Tokenizer:
        """The same vocabulary without rules; it takes every space as it is."""
        return self if self.is_exact else Tokenizer(with_normaliser(self.proto, NO_RULES), is_checked=True)

    def normalised(self, text: str) -> Normalised:
        """Return a text as the model reads it, and where each of its characters comes from.

        Raises:
            DataError: As ``encode``.
        """
        if self.is_exact:
            return Normalised(text, list(range(len(text))))
        composed, places = composed_places(text) if self.composes else (text, list(range(len(text))))
        try:
            spelt, offsets = self._processor.normalize(composed, with_offsets=True)
        except (UnicodeEncodeError, TypeError, RuntimeError) as error:
            raise not_utf8([text]) or error from None
        first = int(self._has_dummy_prefix and spelt.startswith("\u2581"))
        clean = spelt[first:].replace("\u2581", " ")
        return Normalised(clean, [places[offset] for offset in offsets[first : first + len(clean)]])

    def unknown(self, text: str) -> list[str]:
        """Return the parts of a text for which the vocabulary has no subword, in their order, each once."""
        text = compose(text) if self.composes else text
        pieces = zip(self._processor.encode(text, out_type=str), self._processor.encode(text), strict=True)
        return list(dict.fromkeys(piece.replace("\u2581", " ") for piece, i in pieces if i == UNK_ID))

    @cached_property
    def tags(self) -> dict[str, int]:
        """Ids of the tags of this vocabulary, those of target languages too; tags spell nothing."""
        pieces, model = self.pieces(range(self.vocab_size)), self._processor
        return {
            piece: i
            for i, piece in enumerate(pieces)
            if i > EOS_ID and (model.is_control(i) or (model.is_unused(i) and TARGET.fullmatch(piece)))
        }

    @cached_property
    def targets(self) -> dict[str, int]:
        """Id of the tag of each target language; empty for a model of one language pair."""
        matches = ((TARGET.fullmatch(piece), i) for piece, i in self.tags.items())
        return {match[1]: i for match, i in matches if match}

    def target(self, code: str) -> str | None:
        """Return the one of ``targets`` that a code means: itself, or the only one of its language and script.

        So ``fra`` means fr, and ``zh-TW`` zh-Hant; of pt-BR and pt-PT, ``pt`` means neither.
        """
        same = [target for target in self.targets if variety(target) == variety(code)]
        if len(same) > 1:
            same = [target for target in same if tag_of(target) == tag_of(code)]
        return code if code in self.targets else same[0] if len(same) == 1 else None

    def towards(self, target: str | None) -> Tokenizer:
        """Return this tokenizer with the tag of a target language put before each text that it encodes.

        Args:
            target: One of ``targets``; None if the model has at most one.

        Raises:
            ConfigError: The target is unknown, or the model has several and none is chosen.
        """
        targets = self.targets
        if target is None and len(targets) < 2:
            return self
        code = None if target is None else self.target(target)
        if code is None:
            known = [*sorted(targets)[:20], *(["another"] if len(targets) > 20 else [])]
            if target is None:
                raise ConfigError(
                    f"this model translates into {len(targets)} languages: choose one with to ({', '.join(known)})"
                )
            if not targets:
                raise ConfigError(f"to = {target!r}: this model has one target language; leave it out")
            raise not_among("to", target, known)
        towards = copy.copy(self)
        towards._begin = [targets[code]]
        return towards

    def begin(self, target: str | None, tag: str | None) -> tuple[int, ...]:
        """Return the ids that a source begins with in training: those of its target language and of its tag, if any.

        A vocabulary with the tag of one language alone has one target language: translation puts no tag before a text
        either, unless the language is chosen.

        Raises:
            ConfigError: The vocabulary has no such tag, or has several target languages and none is chosen.
        """
        ids = self.towards(target if len(self.targets) > 1 else None)._begin
        if tag is not None and tag not in self.tags:
            raise ConfigError(
                f"these subwords have no tag {tag}: leave it out, or learn new ones (--new-subwords where a run is "
                "fine-tuned)"
            )
        return (*ids, *([] if tag is None else [self.tags[tag]]))

    def sample(self, texts: Sequence[str], rate: float, seed: int) -> list[list[int]]:
        """Return the ids of each text, cut in a randomly drawn way: subword regularisation, see ``Sampler``.

        The same arguments give the same ids. A vocabulary of whole words has only one way to cut a text.

        Args:
            rate: At least 0.
            seed: At least 0.

        Raises:
            DataError: As ``encode``.
        """
        if (problem := not_utf8(texts)) is not None:
            raise problem
        if is_of_words(self.proto):
            return self.encode(texts)
        if self.composes:
            texts = [compose(text) for text in texts]
        return self.sampler(rate).cut([self._processor.normalize(text) for text in texts], seed)

    def sampler(self, rate: float) -> Sampler:
        """Return the sampler for a rate, which is made once."""
        if rate not in self._samplers:
            model = self._processor
            pieces = self.pieces(range(self.vocab_size))
            byte_ids = [i for i in range(len(pieces)) if model.is_byte(i)]
            special = {PAD_ID, UNK_ID, BOS_ID, EOS_ID, *byte_ids, *self.tags.values()}
            ids = {piece: i for i, piece in enumerate(pieces) if i not in special and not model.is_unused(i)}
            scores = {piece: model.get_score(i) for piece, i in ids.items()}
            byte_ids.sort(key=lambda i: pieces[i])
            vocabulary = Vocabulary(ids, scores, byte_ids, UNK_ID, is_unigram(self.proto))
            self._samplers[rate] = Sampler(vocabulary, rate)
        return self._samplers[rate]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of ids; pad, bos, eos and tags are dropped anywhere.

        Bytes that form no character become U+FFFD. Ids that do not come from ``encode`` may give text with LF.

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
        """Bytes that each id adds to a text, in UTF-8, perhaps part of a character; none for pad, bos, eos and tags.

        The bytes of a text's ids begin with an extra space, which ``decode`` removes: ``b"".join(...)[1:]``.
        """
        model, spelled, silent = self._processor, [], frozenset(self.tags.values())
        for i, piece in enumerate(self.pieces(range(self.vocab_size))):
            if model.is_byte(i):
                spelled.append(bytes([int(piece[1:-1], 16)]))
            elif i == UNK_ID:
                spelled.append(" \u2047 ".encode())  # as SentencePiece decodes unk
            else:
                spelled.append(b"" if model.is_control(i) or i in silent else piece.replace("\u2581", " ").encode())
        return tuple(spelled)

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """Ids of single bytes, which spell rare characters."""
        return frozenset(i for i in range(self.vocab_size) if self._processor.is_byte(i))

    @cached_property
    def scores(self) -> tuple[float, ...]:
        """Score of each piece: the order of merging for byte pairs, the log-probability for a unigram model."""
        return tuple(self._processor.get_score(i) for i in range(self.vocab_size))

    @cached_property
    def rare_ids(self) -> frozenset[int]:
        """Ids of unk and of the single bytes, which spell characters that were hardly ever seen."""
        return self.byte_ids | {UNK_ID}

    @cached_property
    def shadowed(self) -> frozenset[int]:
        """Ids of single bytes that ``encode`` never returns, because a piece spells the same; the space is one."""
        byte_id = {spelt: i for i, spelt in enumerate(self.spelled) if self._processor.is_byte(i)}
        same = {byte_id[spelt] for i, spelt in enumerate(self.spelled) if spelt in byte_id and i != byte_id[spelt]}
        return frozenset(same | {i for spelt, i in byte_id.items() if spelt == b" "})

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as its piece: spaces as U+2581, bytes as ``<0x41>``, special ids by name."""
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
    """Learn the vocabularies of source and target; if ``config.joint``, one with the rules of each side.

    Args:
        pairs: Called for each pass over the text, such as ``lambda: read_pairs(src, tgt)``.
        tgt_words: The target vocabulary is of whole words, such as the symbols of trees; ``config`` is for the source.
        tags: Tags of sources.

    Raises:
        ConfigError: As ``Tokenizer.learn``.
        DataError: As ``Tokenizer.learn``, and all errors of ``pairs``.
    """
    if config.joint:
        lines = (SidedLine(pair[i], bool(i)) for pair in pairs() for i in (0, 1))
        tokenizer = Tokenizer.learn_sides(lines, config, tags)
        return tokenizer, tokenizer.for_targets
    return (
        Tokenizer.learn((src for src, _ in pairs()), config, tags),
        Tokenizer.learn_words(tgt for _, tgt in pairs())
        if tgt_words
        else Tokenizer.learn_sides((SidedLine(tgt, True) for _, tgt in pairs()), config),
    )


def lone_surrogate(text: str) -> int | None:
    """Return the place, from 0, of the first half of a surrogate pair without its other half; None if there is none.

    UTF-8 cannot encode such a character.
    """
    return next((place for place, character in enumerate(text) if "\ud800" <= character <= "\udfff"), None)


def not_utf8(texts: Sequence[str], what: str = "text") -> DataError | None:
    """Return an error for the first text that UTF-8 cannot encode; None if all texts can be encoded.

    Args:
        what: Name of the list in the message.
    """
    try:
        "".join(texts).encode()
        return None
    except UnicodeEncodeError:
        pass  # find the text below
    for number, text in enumerate(texts, 1):
        if (place := lone_surrogate(text)) is not None:
            return DataError(
                f"{what} {number}, character {place + 1}: U+{ord(text[place]):04X} is half of a surrogate pair and no "
                "character; replace it, for example by U+FFFD"
            )
    return None
