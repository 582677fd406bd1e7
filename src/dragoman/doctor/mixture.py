"""Checks of several corpora that are trained on together: weights, tags, target languages, shared pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dragoman.config import TextFiles
from dragoman.data.texts import files_shown
from dragoman.doctor.findings import Finding
from dragoman.doctor.repeats import count_shared_pairs
from dragoman.doctor.text_checks import Examination

OFTEN = 5.0
"""Weight above which pairs are drawn so often in an epoch that the model may memorise them."""

MOSTLY_TAGGED = 0.9
"""Fraction of tagged pairs in an epoch that is worth a warning."""

UNEVEN = 10.0
"""Factor between the most and the least drawn target language that is worth a warning."""


class Part(NamedTuple):
    """An entry of ``data.train`` with its examination."""

    entry: TextFiles
    examination: Examination

    @property
    def name(self) -> str:
        """Names of its files, for findings."""
        return files_shown(self.entry)

    @property
    def drawn(self) -> float:
        """Number of its pairs that an epoch draws on average: pairs times weight."""
        return self.examination.pairs * self.entry.weight


def mixture_findings(parts: Sequence[Part]) -> Iterator[Finding]:
    """Yield findings about the entries taken together."""
    total = sum(part.drawn for part in parts)
    for part in parts:
        if not part.entry.weight:
            yield Finding("warning", "never-drawn", f"{part.name}: its weight is 0, so no pair of it is ever drawn",
                          "leave the entry out, or give it a weight")  # fmt: skip
        elif part.entry.weight > OFTEN:
            yield Finding(
                "note", "drawn-often", f"{part.name}: each pair is drawn {part.entry.weight:g} times an epoch",
                "watch the validation loss: a model memorises pairs that are repeated so often",
            )  # fmt: skip
    yield from _tag_findings(parts, total)
    yield from _language_findings(parts, total)
    for i, part in enumerate(parts):
        n = count_shared_pairs(part.examination.digests, [earlier.examination.digests for earlier in parts[:i]])
        if n:
            yield Finding(
                "note" if n < 0.5 * part.examination.pairs else "warning", "in-another-text",
                f"of {part.name} are also in an earlier entry",
                "drop them, or lower a weight: they are drawn from both entries", n, part.examination.pairs,
            )  # fmt: skip


def _tag_findings(parts: Sequence[Part], total: float) -> Iterator[Finding]:
    """Yield a finding about the share of tagged text, if any entry has a tag; ``total`` is the pairs of an epoch."""
    tagged = [part for part in parts if part.entry.tag is not None]
    if not tagged or not total:
        return
    if len(tagged) == len(parts):
        yield Finding("warning", "only-tagged", "every entry has a tag, but text to translate has none",
                      "remove the tag from the entry that is most like the text you will translate")  # fmt: skip
        return
    share = sum(part.drawn for part in tagged) / total
    names = ", ".join(dict.fromkeys(str(part.entry.tag) for part in tagged))
    yield Finding(
        "warning" if share > MOSTLY_TAGGED else "note", "tagged", f"{share:.0%} of the pairs that an epoch draws have "
        f"a tag ({names})", "if that is too much, lower the weight of these entries",
    )  # fmt: skip


def _language_findings(parts: Sequence[Part], total: float) -> Iterator[Finding]:
    """Yield a finding about the share of each target language, if there are several."""
    drawn: dict[str, float] = defaultdict(float)
    for part in parts:
        drawn[part.entry.tgt_lang or "?"] += part.drawn
    if len(drawn) < 2 or not total:
        return
    most_first = sorted(drawn.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{n / total:.0%} into {lang}" for lang, n in most_first)
    uneven = min(drawn.values()) * UNEVEN < max(drawn.values())
    yield Finding(
        "warning" if uneven else "note", "target-languages", f"of the pairs that an epoch draws: {shares}",
        "raise the weight of the languages that have little text" if uneven else "nothing to do: none is rare",
    )  # fmt: skip


def merge_examinations(parts: Sequence[Part]) -> Examination:
    """Return the examinations of all entries as one; each finding names the text it is about."""
    findings = [finding._replace(text=part.name) for part in parts for finding in part.examination.findings]
    characters, words, scores, digests = (
        np.concatenate([getattr(part.examination, name) for part in parts])
        for name in ("characters", "words", "scores", "digests")
    )
    return Examination(findings, characters, words, scores, digests)


def entry_sizes(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the number of pairs of each entry, and of those that an epoch draws, by the entry's name."""
    return {part.name: {"all": part.examination.pairs, "an epoch": round(part.drawn)} for part in parts}
