"""Scoring and word alignment of given translations (forced decoding)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from dragoman.config import DecodeConfig, LengthPenalty
from dragoman.data.tokenizer import EOS_ID, UNK_ID, Tokenizer
from dragoman.decoding.alignment import links, longest_unread, token_words
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.request import OUT_OF_MEMORY, Progress, Segment
from dragoman.decoding.scoring import Read, Reader, attend_all, read_all
from dragoman.decoding.search import penalised
from dragoman.decoding.words import Links, word_numbers
from dragoman.languages.known import is_unspaced
from dragoman.languages.scripts import is_blank
from dragoman.languages.sentences import sentences
from dragoman.toolkits.ours.search import autocast
from dragoman.translation.notes import Note
from dragoman.translation.options import TranslateOptions


@dataclass(frozen=True)
class Scored:
    """Score of a given translation; its numbers are nan if it was not scored, and a note says why.

    Attributes:
        log_prob: Nats, the eos of each part included.
        score: ``log_prob`` over the length penalty, as in ``Translation``.
        n_tokens: Target subwords, eos counted; 0 if it was not scored.
        tokens: Target subwords, spaces as U+2581, with the eos of each part.
        token_log_probs: Log-probability of each of ``tokens``, in nats.
        alignment: Pairs (source word, target word), counted from 0; None: not requested.
        notes: Messages for the reader.
    """

    log_prob: float
    score: float
    n_tokens: int
    tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    alignment: Links | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class PairReader:
    """A model that scores and aligns given translations (forced decoding)."""

    model: Reader
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    device: torch.device
    src_lang: str | None
    tgt_lang: str | None
    usual_sentences: int  # a pair with more is read sentence by sentence
    max_tokens: int  # longest side in training, in subwords
    longest: int | None  # longest side that the model can read, eos counted; None: any
    precision: str = "fp32"  # or bf16
    never: frozenset[int] = frozenset()
    """Ids that an imported model cannot choose; its own toolkit reads such subwords of a target as unknown."""

    @property
    def src_unspaced(self) -> bool:
        """True if the source language puts no spaces between words: each character is a word."""
        return is_unspaced(self.src_lang)

    @property
    def tgt_unspaced(self) -> bool:
        """True if the target language puts no spaces between words."""
        return is_unspaced(self.tgt_lang)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: TranslateOptions,
        decode: DecodeConfig,
        progress: Progress | None,
    ) -> list[Scored]:
        """Score each target as the translation of its source; see ``Translator.score``."""
        pairs = list(zip(sources, targets, strict=True))
        cut = [self._sentence_pairs(*pair) if options.sentence_split else [pair] for pair in pairs]
        whole = [pair for group in cut for pair in group]
        scored = iter(self._score_whole(whole, decode, options.alignments, progress))
        return [
            self._joined(pair, group, list(islice(scored, len(group)))) for pair, group in zip(pairs, cut, strict=True)
        ]

    def _sentence_pairs(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return pairs of ``usual_sentences`` sentences each; the whole pair if the numbers of sentences differ."""
        src, tgt, n = sentences(source, self.src_lang), sentences(target, self.tgt_lang), self.usual_sentences
        if len(src) != len(tgt) or len(src) <= n:
            return [(source, target)]
        return [("".join(src[i : i + n]).strip(), "".join(tgt[i : i + n]).strip()) for i in range(0, len(src), n)]

    def _joined(self, pair: tuple[str, str], parts: Sequence[tuple[str, str]], scored: list[Scored]) -> Scored:
        """Return the score of a pair from those of its sentences."""
        if len(parts) == 1:
            return scored[0]
        notes = tuple(dict.fromkeys(note for part in scored for note in part.notes))
        if not all(part.n_tokens for part in scored):
            return replace(next(part for part in scored if not part.n_tokens), notes=notes)
        alignment: Links | None = None
        if scored[0].alignment is not None:
            src_first = _first_words(pair[0], [src for src, _ in parts], self.src_unspaced)
            tgt_first = _first_words(pair[1], [tgt for _, tgt in parts], self.tgt_unspaced)
            alignment = tuple(
                (src_word + src_start, tgt_word + tgt_start)
                for part, src_start, tgt_start in zip(scored, src_first, tgt_first, strict=True)
                for src_word, tgt_word in part.alignment or ()
            )
        return Scored(
            sum(part.log_prob for part in scored), sum(part.score for part in scored),
            sum(part.n_tokens for part in scored), tuple(token for part in scored for token in part.tokens),
            tuple(value for part in scored for value in part.token_log_probs), alignment, notes,
        )  # fmt: skip

    def _score_whole(
        self, texts: Sequence[tuple[str, str]], decode: DecodeConfig, alignments: bool, progress: Progress | None
    ) -> list[Scored]:
        """Score pairs of source and target, each in one piece."""
        src = self.src_tokenizer.encode([source for source, _ in texts])
        tgt = self.tgt_tokenizer.encode([target for _, target in texts])
        why_not = [self._why_not(*pair, *ids) for pair, *ids in zip(texts, src, tgt, strict=True)]
        readable = [i for i, note in enumerate(why_not) if note is None]
        with autocast(self.precision, self.device):
            reads = read_all(
                self.model, [(src[i], self._choosable(tgt[i])) for i in readable], self.device, decode.batch_tokens,
                attention=alignments, progress=progress,
            )  # fmt: skip
        for i, read in zip(readable, reads, strict=True):
            if read is None:
                why_not[i] = Note("memory", OUT_OF_MEMORY)
        unscored = Scored(math.nan, math.nan, 0, alignment=() if alignments else None)
        results = [unscored if note is None else replace(unscored, notes=(note,)) for note in why_not]
        for i, read in zip(readable, reads, strict=True):
            if read is not None:
                scored = self._scored(read, src[i], tgt[i], decode.penalty)
                alignment = self._align(read, texts[i], src[i], tgt[i]) if alignments else None
                results[i] = replace(scored, alignment=alignment)
        return results

    def read(
        self,
        pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
        batch_tokens: int,
        searches: Sequence[Segment],
        attention: bool = False,
    ) -> list[Read | None]:
        """Read pairs of ids, each for a segment; None for one that runs out of memory or is cancelled meanwhile."""
        with autocast(self.precision, self.device):
            return read_all(
                self.model, pairs, self.device, batch_tokens, attention=attention, searches=searches
            )  # fmt: skip

    def _choosable(self, ids: Sequence[int]) -> Sequence[int]:
        return [UNK_ID if i in self.never else i for i in ids] if self.never else ids

    def _why_not(self, source: str, target: str, src_ids: list[int], tgt_ids: list[int]) -> Note | None:
        n = max(len(src_ids), len(tgt_ids))
        if is_blank(source) or is_blank(target) or not src_ids or not tgt_ids:
            return Note("not_scored", "not scored: a side is blank")
        if self.longest is not None and n + 1 > self.longest:
            return Note("not_scored", f"not scored: {n:,} tokens, more than the model has positions for")
        return None

    def _scored(self, read: Read, src_ids: list[int], tgt_ids: list[int], penalty: LengthPenalty) -> Scored:
        n, longer = len(read.log_probs), max(len(src_ids), len(tgt_ids))
        note = Note("too_long", f"{longer:,} tokens are more than the {self.max_tokens:,} of the training text")
        return Scored(
            read.log_prob, penalised(read.log_prob, n, penalty), n,
            tuple(self.tgt_tokenizer.pieces([*tgt_ids, EOS_ID])), tuple(read.log_probs),
            notes=(note,) if longer > self.max_tokens else (),
        )  # fmt: skip

    def _align(self, read: Read, texts: tuple[str, str], src_ids: list[int], tgt_ids: list[int]) -> Links:
        assert read.attention is not None  # requested
        source, target = texts
        src_numbers, tgt_numbers = word_numbers(source, self.src_unspaced), word_numbers(target, self.tgt_unspaced)
        src_words = words_of_tokens(self.src_tokenizer, src_ids, source, src_numbers)
        tgt_words = words_of_tokens(self.tgt_tokenizer, tgt_ids, target, tgt_numbers)
        return links(read.attention, src_words, tgt_words)

    def unread(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int) -> list[int]:
        """Return how many subwords in a row of each source get no attention; 0 for a pair that runs out of memory.

        Args:
            pairs: Ids of sources and translations.
        """
        return [
            0 if attention is None else longest_unread(attention[:, : len(src)])
            for attention, (src, _) in zip(self._attended(pairs, batch_tokens), pairs, strict=True)
        ]

    def _attended(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int,
        cancellation: Cancellation | None = None,
    ) -> list[torch.Tensor | None]:  # fmt: skip
        """Return the attention of each translation to its source; None for one that runs out of memory, or is left."""
        with autocast(self.precision, self.device):
            return attend_all(self.model, pairs, self.device, batch_tokens, cancellation)

    def align(
        self, parts: Sequence[Sequence[TextPart]], batch_tokens: int, cancellation: Cancellation | None = None
    ) -> list[Links]:
        """Align the parts of some texts with their translations.

        A part that runs out of memory, or has more tokens than the model has positions for, has no links; nor have
        those that are left once ``cancellation`` is cancelled.
        """
        read = [part for group in parts for part in group if self._can_align(part)]
        attended = iter(self._attended([(part.src_ids, part.tgt_ids) for part in read], batch_tokens, cancellation))
        result = []
        for group in parts:
            pairs_of_words: set[tuple[int, int]] = set()
            n_words = 0  # in the translations of the parts before
            for part in group:
                attention = next(attended) if self._can_align(part) else None
                text = self._aligned_text(part)
                numbers = [number + n_words if number >= 0 else -1 for number in word_numbers(text, self.tgt_unspaced)]
                if part.is_copy:
                    solid = ([number for number in side if number >= 0] for side in (part.src_numbers, numbers))
                    pairs_of_words.update(zip(*solid, strict=False))
                if attention is not None:
                    src_words = words_of_tokens(self.src_tokenizer, part.src_ids, part.text, part.src_numbers)
                    if UNK_ID in part.tgt_ids:
                        tgt_words = words_of_tokens(self.tgt_tokenizer, part.tgt_ids, text, numbers)
                    else:
                        tgt_words = token_words([self.tgt_tokenizer.spelled[i] for i in part.tgt_ids], text, numbers)
                    pairs_of_words.update(links(attention, src_words, tgt_words))
                n_words = max([n_words - 1, *numbers]) + 1
            result.append(tuple(sorted(pairs_of_words)))
        return result

    def _can_align(self, part: TextPart) -> bool:
        n = max(len(part.src_ids), len(part.tgt_ids))
        return not part.is_copy and (self.longest is None or n < self.longest)

    def _aligned_text(self, part: TextPart) -> str:
        """Return the text whose words are counted: as the ids spell it, unless an id is unknown."""
        if part.is_copy or UNK_ID in part.tgt_ids:
            return part.target
        target = b"".join(self.tgt_tokenizer.spelled[i] for i in part.tgt_ids)
        return target.removeprefix(b" ").decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class ScoringPlan:
    """Decisions on how to score given translations; made by ``Translator.plan_scoring``."""

    reader: PairReader
    options: TranslateOptions
    decode: DecodeConfig

    def score(self, sources: Sequence[str], targets: Sequence[str], progress: Progress | None = None) -> list[Scored]:
        """Score each target as the translation of its source; see ``Translator.score``."""
        return self.reader.score(sources, targets, self.options, self.decode, progress)


@dataclass(frozen=True)
class TextPart:
    """A text or a part of it, with its translation."""

    text: str
    src_numbers: Sequence[int]  # word number of each of its characters
    src_ids: Sequence[int]
    tgt_ids: Sequence[int]
    target: str
    is_copy: bool = False  # True for a text without words, which the model does not read


def _first_words(text: str, parts: Sequence[str], unspaced: bool) -> list[int]:
    """Return the word number, in the whole text, of the first word of each part."""
    numbers, first, end = word_numbers(text, unspaced), [], 0
    for part in parts:
        start = text.index(part, end)
        first.append(numbers[start])
        end = start + len(part)
    return first


def words_of_tokens(tokenizer: Tokenizer, ids: Sequence[int], text: str, numbers: Sequence[int]) -> list[list[int]]:
    """Return for each token of an encoded text the numbers of the words that it is a part of.

    Args:
        numbers: The word of each character of ``text``, which the tokenizer may have normalised (``word_numbers``).
    """
    clean, places = tokenizer.normalised(text)
    pieces = [None if i == UNK_ID else tokenizer.spelled[i] for i in ids]
    return token_words(pieces, clean, [numbers[place] for place in places])
