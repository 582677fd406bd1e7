"""Which words of a translation render which of its source, from the attention of a model. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.decoding.alignment import links, longest_unread
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.words import Links, token_words, word_numbers
from dragoman.toolkits.engine import Attend
from dragoman.translation.language_pairs import Direction
from dragoman.translation.scoring import TextPart, words_of_tokens


@dataclass(frozen=True)
class Aligner:
    """Aligns translations with their sources."""

    attend: Attend
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    direction: Direction
    longest: int | None  # longest side that the model can read, eos counted; None: any

    def unread(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int) -> list[int]:
        """Return how many subwords in a row of each source get no attention; 0 for a pair that runs out of memory.

        Args:
            pairs: Ids of sources and translations.
        """
        return [
            0 if attention is None else longest_unread(attention[:, : len(src)])
            for attention, (src, _) in zip(self.attend(pairs, batch_tokens), pairs, strict=True)
        ]

    def align(
        self, parts: Sequence[Sequence[TextPart]], batch_tokens: int, cancellation: Cancellation | None = None
    ) -> list[Links]:
        """Align the parts of some texts with their translations.

        A part that runs out of memory, or has more tokens than the model has positions for, has no links; nor have
        those that are left once ``cancellation`` is cancelled.
        """
        read = [part for group in parts for part in group if self._can_align(part)]
        attended = iter(self.attend([(part.src_ids, part.tgt_ids) for part in read], batch_tokens, cancellation))
        result = []
        for group in parts:
            pairs_of_words: set[tuple[int, int]] = set()
            n_words = 0  # in the translations of the parts before
            for part in group:
                attention = next(attended) if self._can_align(part) else None
                text = self._aligned_text(part)
                numbers = [
                    number + n_words if number >= 0 else -1
                    for number in word_numbers(text, self.direction.tgt_unspaced)
                ]
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
