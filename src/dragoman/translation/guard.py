"""The guard: what ``faults`` sees in finished translations is searched for again, and what was done is said.

A sound translation costs a look at its text. One with a fault is searched for again, each time with its neighbours of
the same fate:

1. with a wider beam, of which every hypothesis is looked at: the model may well know a sound translation, and
   nothing has to be forbidden;
2. with that beam and rules: no 3-gram of subwords comes twice (https://arxiv.org/abs/1705.04304), the end is not the
   first thing to come, and a copy may not have two words of its source side by side.

The first sound hypothesis, the best by score, is taken. If there is none, the least bad one is: a copy; or else a loop,
with what it repeats said once; or else one that is too long. For nothing at all the source stands itself. In each case
a note says so; nothing is changed without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from dragoman.config import DecodeConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.batches import most_tokens, search_all
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.search import Hypothesis, Model
from dragoman.translation.faults import faults, neighbours, without_loops

LEAST_BEAM = 8
NO_REPEAT_NGRAM = 3


class Part(NamedTuple):
    """A line, or a part of one, as it was searched for."""

    src: str
    n_src: int  # subwords
    limit: int  # the most subwords that its translation may have, eos counted


class Effort(NamedTuple):
    """How to search once more."""

    beam_size: int  # and so many hypotheses
    no_repeat_ngram: int = 0  # 0: they may
    min_tokens: int = 0
    exclude: tuple[tuple[str, ...], ...] = ()  # for each part asked for: what may not stand in its translation


class Guarded(NamedTuple):
    """A translation that has been looked at."""

    hypothesis: Hypothesis
    text: str
    note: str = ""  # what was seen and done, nothing where all was well
    sound: bool = True  # no fault is left


class _Candidate(NamedTuple):
    hypothesis: Hypothesis
    text: str
    faults: tuple[str, ...]


Search = Callable[[list[int], Effort], Sequence[Sequence[Hypothesis]]]
"""Search for some parts, by their indices, once more."""


def guarded(
    parts: Sequence[Part],
    found: Sequence[Hypothesis],
    search: Search,
    decode: Callable[[Sequence[Hypothesis]], Sequence[str]],
    beam_size: int,
    src_lang: str | None,
    tgt_lang: str | None,
) -> list[Guarded]:
    """Look at translations, and search again for those with a fault.

    Args:
        parts: What was translated; none is blank.
        found: The translation of each.
        search: How to search again.
        decode: Hypotheses to texts.
        beam_size: With which they were found.
        src_lang: For what may be a copy of the source.
        tgt_lang: Likewise.

    Returns:
        For each part its translation, another one where that was necessary.
    """

    def look(indices: Sequence[int], hypotheses: Sequence[Hypothesis]) -> list[_Candidate]:
        seen = []
        for i, hypothesis, text in zip(indices, hypotheses, decode(hypotheses), strict=True):
            part, n = parts[i], len(hypothesis.ids)
            wrong = faults(
                part.src, text, n_src=part.n_src, n_tgt=n, ended=n + 1 < part.limit,
                src_lang=src_lang, tgt_lang=tgt_lang,
            )  # fmt: skip
            seen.append(_Candidate(hypothesis, text, wrong))
        return seen

    first = look(range(len(parts)), found)
    result = [Guarded(candidate.hypothesis, candidate.text) for candidate in first]
    bad = {i: [candidate] for i, candidate in enumerate(first) if candidate.faults}
    wide = max(LEAST_BEAM, 2 * beam_size)
    for strict in (False, True):
        asked = sorted(bad)
        if not asked:
            break
        effort = Effort(wide)
        if strict:
            copies = [neighbours(parts[i].src) if "copy" in bad[i][0].faults else () for i in asked]
            effort = Effort(wide, NO_REPEAT_NGRAM, 1, tuple(copies))
        for i, hypotheses in zip(asked, search(asked, effort), strict=True):
            candidates = look([i] * len(hypotheses), hypotheses)
            sound = max((c for c in candidates if not c.faults), key=lambda c: c.hypothesis.score, default=None)
            if sound is None:
                bad[i] += candidates
                continue
            seen = bad.pop(i)[0].faults
            how = f"with a beam of {wide}"
            if strict:
                how = f"without repeated {NO_REPEAT_NGRAM}-grams" + " or word pairs of the source" * ("copy" in seen)
            result[i] = Guarded(sound.hypothesis, sound.text, f"{' and '.join(seen)}: searched again {how}")
    for i, candidates in bad.items():
        result[i] = _least_bad(parts[i].src, candidates)
    return result


def _least_bad(src: str, candidates: Sequence[_Candidate]) -> Guarded:
    """Of translations that all have a fault, the one to do with, and a note of what is the matter."""
    best = min(candidates, key=lambda c: (_badness(c.faults), -c.hypothesis.score))
    note = f"{' and '.join(candidates[0].faults)} left: searched again in vain; "
    if "empty" in best.faults:
        return Guarded(best.hypothesis, src.strip(), note + "the source stands here instead", False)
    if "loop" in best.faults:
        once = without_loops(src, best.text)
        return Guarded(best.hypothesis, once, note + "what was repeated stands here once", False)
    what = {"long": "too long", "copy": "a copy of the source"}
    rest = " and ".join(what[fault] for fault in best.faults)
    return Guarded(best.hypothesis, best.text, f"{note}this is the best that was found, though {rest}", False)


def _badness(wrong: tuple[str, ...]) -> tuple[int, bool]:
    """A copy is better than a loop, which can be cut; that than too much, which cannot; and anything than nothing."""
    place = 3 if "empty" in wrong else 1 if "loop" in wrong else 2 if "long" in wrong else 0
    return place, "copy" in wrong


class Guard(NamedTuple):
    """The guard of one translator: what it searches with."""

    model: Model
    device: torch.device
    tgt_tokenizer: Tokenizer
    spelling: Spelling
    longest: int | None  # the most tokens that the model has positions for
    src_lang: str | None
    tgt_lang: str | None

    def look(
        self,
        sources: Sequence[str],
        src_ids: Sequence[Sequence[int]],
        rules: Sequence[Rules | None],
        found: Sequence[Hypothesis],
        config: DecodeConfig,
    ) -> list[Guarded]:
        """As ``guarded``, searching with ``config`` and what was asked of each translation.

        Args:
            sources: Raw text, none blank.
            src_ids: Their ids.
            rules: What each translation must and must not be; the guard's rules are added.
            found: The translations.
            config: With which they were found.
        """

        def search(indices: list[int], effort: Effort) -> list[list[Hypothesis]]:
            fewer = max(1, config.batch_tokens * config.beam_size // effort.beam_size)
            again = config.model_copy(update={"beam_size": effort.beam_size, "batch_tokens": fewer})
            strict = [rules[i] or Rules(self.spelling) for i in indices]
            if effort.no_repeat_ngram:
                strict = [
                    rule._replace(
                        no_repeat_ngram=min(effort.no_repeat_ngram, rule.no_repeat_ngram or effort.no_repeat_ngram),
                        min_tokens=effort.min_tokens,
                        exclude=rule.exclude + tuple(words.encode() for words in exclude),
                    )
                    for rule, exclude in zip(strict, effort.exclude, strict=True)
                ]
            return search_all(
                self.model, [src_ids[i] for i in indices], again, self.device, effort.beam_size,
                rules=strict if effort.no_repeat_ngram or any(rules) else None, longest=self.longest,
                failed=lambda i: None,  # no memory for a wide beam: what was found stays
            )  # fmt: skip

        parts = [
            Part(src, len(ids), most_tokens(len(ids), rule, config, self.longest))
            for src, ids, rule in zip(sources, src_ids, rules, strict=True)
        ]
        result = guarded(parts, found, search, self._decode, config.beam_size, self.src_lang, self.tgt_lang)
        return [self._spelt_anew(one) for one in result]

    def _decode(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        texts = self.tgt_tokenizer.decode([hypothesis.ids for hypothesis in hypotheses])
        return [text.replace("\n", " ") for text in texts]

    def _spelt_anew(self, one: Guarded) -> Guarded:
        """Where the text is no longer what the search found, the ids are those of the text."""
        if one.sound or one.text == self._decode([one.hypothesis])[0]:
            return one
        return one._replace(hypothesis=one.hypothesis._replace(ids=self.tgt_tokenizer.encode([one.text])[0]))
