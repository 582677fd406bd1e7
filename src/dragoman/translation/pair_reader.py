"""Reads given translations with the model, for their scores and word alignments (forced decoding)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from dragoman.config import DecodeConfig, LengthPenalty
from dragoman.data.tokenizer import EOS_ID, UNK_ID, Tokenizer
from dragoman.decoding.alignment import Attention, links
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.request import OUT_OF_MEMORY, Progress, Segment, penalised
from dragoman.decoding.scoring import Read, Reader, attend_all, read_all
from dragoman.decoding.words import Links, word_numbers
from dragoman.languages.scripts import is_blank
from dragoman.languages.sentences import sentences
from dragoman.toolkits.ours.search import autocast
from dragoman.translation.language_pairs import Direction
from dragoman.translation.notes import Note
from dragoman.translation.options import TranslateOptions
from dragoman.translation.scoring import Scored, words_of_tokens


@dataclass(frozen=True)
class PairReader:
    """A model that scores and aligns given translations (forced decoding)."""

    model: Reader
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    device: torch.device
    direction: Direction
    usual_sentences: int  # a pair with more is read sentence by sentence
    max_tokens: int  # longest side in training, in subwords
    longest: int | None  # longest side that the model can read, eos counted; None: any
    precision: str = "fp32"  # or bf16
    never: frozenset[int] = frozenset()
    """Ids that an imported model cannot choose; its own toolkit reads such subwords of a target as unknown."""

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
        src, tgt, n = sentences(source, self.direction.src), sentences(target, self.direction.tgt), self.usual_sentences
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
            src_first = _first_words(pair[0], [src for src, _ in parts], self.direction.src_unspaced)
            tgt_first = _first_words(pair[1], [tgt for _, tgt in parts], self.direction.tgt_unspaced)
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
        src_numbers = word_numbers(source, self.direction.src_unspaced)
        tgt_numbers = word_numbers(target, self.direction.tgt_unspaced)
        src_words = words_of_tokens(self.src_tokenizer, src_ids, source, src_numbers)
        tgt_words = words_of_tokens(self.tgt_tokenizer, tgt_ids, target, tgt_numbers)
        return links(read.attention, src_words, tgt_words)

    def attend(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int,
        cancellation: Cancellation | None = None,
    ) -> list[Attention | None]:  # fmt: skip
        """Return the attention of each translation to its source; None for one that runs out of memory, or is left."""
        with autocast(self.precision, self.device):
            return attend_all(self.model, pairs, self.device, batch_tokens, cancellation)


def _first_words(text: str, parts: Sequence[str], unspaced: bool) -> list[int]:
    """Return the word number, in the whole text, of the first word of each part."""
    numbers, first, end = word_numbers(text, unspaced), [], 0
    for part in parts:
        start = text.index(part, end)
        first.append(numbers[start])
        end = start + len(part)
    return first
