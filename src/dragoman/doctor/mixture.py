"""Several corpora that are trained on together: what of each is drawn, by weight, by tag and by target language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dragoman.config import TextFiles
from dragoman.data.texts import files_of
from dragoman.doctor.findings import Finding
from dragoman.doctor.repeats import repeated_elsewhere
from dragoman.doctor.text_checks import Examination

OFTEN = 5.0
"""A pair that is drawn more often than this in an epoch may be learned by heart."""

MOSTLY_MADE = 0.9
UNEVEN = 10.0
"""A target language that is drawn this many times less often than another one falls behind."""


class Part(NamedTuple):
    """An entry of ``data.train``, and what was found in it."""

    entry: TextFiles
    found: Examination

    @property
    def name(self) -> str:
        """Its files."""
        return name_of(self.entry)

    @property
    def drawn(self) -> float:
        """Pairs that an epoch draws of it, on average."""
        return self.found.pairs * self.entry.weight


def name_of(entry: TextFiles) -> str:
    """What an entry is called in findings."""
    return " and ".join(map(str, files_of(entry)))


def mixed(parts: Sequence[Part]) -> Iterator[Finding]:
    """What is to be known of the entries together."""
    total = sum(part.drawn for part in parts)
    for part in parts:
        if not part.entry.weight:
            yield Finding("warning", "never-drawn", f"{part.name}: its weight is 0, so no pair of it is ever drawn",
                          "leave the entry out, or give it a weight")  # fmt: skip
        elif part.entry.weight > OFTEN:
            yield Finding(
                "note", "drawn-often", f"{part.name}: each pair is drawn {part.entry.weight:g} times an epoch",
                "watch the validation loss: few pairs that come often are learned by heart",
            )  # fmt: skip
    yield from _tags(parts, total)
    yield from _targets(parts, total)
    for i, part in enumerate(parts):
        n = repeated_elsewhere(part.found.digests, [other.found.digests for other in parts[:i]])
        if n:
            yield Finding(
                "note" if n < 0.5 * part.found.pairs else "warning", "in-another-text",
                f"of {part.name} are in an earlier entry too", "drop them, or weigh the entries: they are drawn twice",
                n, part.found.pairs,
            )  # fmt: skip


def _tags(parts: Sequence[Part], total: float) -> Iterator[Finding]:
    tagged = [part for part in parts if part.entry.tag is not None]
    if not tagged or not total:
        return
    if len(tagged) == len(parts):
        yield Finding("warning", "only-tagged", "every entry has a tag, and what is translated has none",
                      "leave the tag out of the text that is most like what will be translated")  # fmt: skip
        return
    share = sum(part.drawn for part in tagged) / total
    names = ", ".join(dict.fromkeys(str(part.entry.tag) for part in tagged))
    yield Finding(
        "warning" if share > MOSTLY_MADE else "note", "tagged", f"{share:.0%} of the pairs that an epoch draws have a "
        f"tag ({names})", "if that is too much, lower the weight of these entries",
    )  # fmt: skip


def _targets(parts: Sequence[Part], total: float) -> Iterator[Finding]:
    drawn: Counter[str] = Counter()
    for part in parts:
        drawn[part.entry.tgt_lang or "?"] += part.drawn  # type: ignore[assignment]  # pairs on average
    if len(drawn) < 2 or not total:
        return
    shares = ", ".join(f"{n / total:.0%} into {lang}" for lang, n in drawn.most_common())
    least = min(drawn.values())
    uneven = least * UNEVEN < max(drawn.values())
    yield Finding(
        "warning" if uneven else "note", "target-languages", f"of the pairs that an epoch draws: {shares}",
        "raise the weight of the languages that have little text" if uneven else "nothing: weights even them out",
    )  # fmt: skip


def merged(parts: Sequence[Part]) -> Examination:
    """All text as one; of each finding it is said which text it is of."""
    founds = [part.found for part in parts]
    findings = [one._replace(text=part.name) for part in parts for one in part.found.findings]
    return Examination(
        findings, *(np.concatenate([getattr(found, name) for found in founds])
                    for name in ("characters", "words", "scores", "digests")),
    )  # fmt: skip


def facts_of(parts: Sequence[Part]) -> dict[str, Any]:
    """Pairs of each entry, and how many an epoch draws."""
    return {part.name: {"all": part.found.pairs, "an epoch": round(part.drawn)} for part in parts}
