"""The same test set as people would type it: in capitals, with errors, a word at a time, all of it on one line.

Each variant of the source is translated and scored against the references as they are: a good system translates what
is meant, however it is typed. Two variants have references of their own: where an emoji or an address was put into
the source, the reference has it at the same end, so that copying it is right and losing it is wrong; and where
sentences were joined to one long line, so were their references. Of a single word nobody knows the right
translation, so only faults and length are counted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.data.noise import with_insert, with_typos, without_final_mark, words_of
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.languages.known import is_unspaced
from dragoman.translation.assemble import Translation
from dragoman.translation.faults import FAULTS, Sizes, faults

LONG_LINE = 2000
SEED = 1
UNSPACED_WORD = 2
"""Characters that stand for one word where there are no spaces to tell."""

CLEAN = "as it is"


class Variant(NamedTuple):
    """A test set in another dress."""

    name: str
    sources: list[str]
    references: list[str] | None  # None: nobody knows them


class Stressed(NamedTuple):
    """How one variant was translated; shares are of lines that are not blank, in per cent."""

    name: str
    lines: int
    bleu: float | None  # per cent; None without references
    chrf: float | None
    bleu_loss: float | None  # of the clean variant's, minus this one's
    chrf_loss: float | None
    guarded: float  # the guard saw a fault and stepped in
    faulty: float  # a fault can be seen in what came out
    empty: float  # nothing came out
    words: float  # a line of output on average; characters where there are no spaces


def variants(
    sources: Sequence[str], references: Sequence[str], src_lang: str | None, tgt_lang: str | None, seed: int = SEED
) -> list[Variant]:
    """The test set, first as it is, then in seven other ways; the same seed gives the same.

    Typing errors are about 5 in 100 letters. Emoji and addresses come on half of the lines each. Of each line one word
    is drawn, or ``UNSPACED_WORD`` characters where there are no spaces. Long lines have ``LONG_LINE`` words
    (or characters), or as few more as end with a sentence; the rest that fills no line is left out, unless there is no
    other.
    """
    sources, references = list(sources), list(references)
    typos, inserts, words = (random.Random(3 * seed + i) for i in range(3))
    inserted = [
        with_insert(src, ref, inserts) if src.strip() else (src, ref)
        for src, ref in zip(sources, references, strict=True)
    ]
    joined = long_lines(sources, references, src_lang, tgt_lang)
    return [
        Variant(CLEAN, sources, references),
        Variant("capitals", [text.upper() for text in sources], references),
        Variant("lower case", [text.lower() for text in sources], references),
        Variant("typing errors", [with_typos(text, typos) if text.strip() else text for text in sources], references),
        Variant("no final mark", [without_final_mark(text) for text in sources], references),
        Variant("emoji, addresses", [src for src, _ in inserted], [ref for _, ref in inserted]),
        Variant("one word", [_a_word(text, src_lang, words) for text in sources], None),
        Variant(f"{LONG_LINE:,} words", [src for src, _ in joined], [ref for _, ref in joined]),
    ]


def _a_word(text: str, lang: str | None, chance: random.Random) -> str:
    if is_unspaced(lang):
        start = int(chance.random() * max(1, len(text) - UNSPACED_WORD + 1))
        return text[start : start + UNSPACED_WORD]
    words = words_of(text) or [text.strip()]
    return words[int(chance.random() * len(words))]


def long_lines(
    sources: Sequence[str], references: Sequence[str], src_lang: str | None, tgt_lang: str | None
) -> list[tuple[str, str]]:
    """Neighbouring sentences joined to lines of ``LONG_LINE`` words, with their references."""
    lines: list[tuple[list[str], list[str]]] = [([], [])]
    size = 0
    for src, ref in zip(sources, references, strict=True):
        if size >= LONG_LINE:
            lines.append(([], []))
            size = 0
        lines[-1][0].append(src)
        lines[-1][1].append(ref)
        size += n_words(src, src_lang)
    if size < LONG_LINE and len(lines) > 1:
        lines.pop()
    between = ["" if is_unspaced(lang) else " " for lang in (src_lang, tgt_lang)]
    return [(between[0].join(src), between[1].join(ref)) for src, ref in lines]


def n_words(text: str, lang: str | None) -> int:
    """Words between spaces, or characters where the language has no spaces."""
    return len("".join(text.split())) if is_unspaced(lang) else len(text.split())


def measure(
    variant: Variant,
    found: Sequence[Translation],
    n_src: Sequence[int],
    src_lang: str | None,
    tgt_lang: str | None,
    clean: Stressed | None = None,
) -> Stressed:
    """Score the translations of a variant.

    Args:
        found: One for each of its sources.
        n_src: Subwords of each source.
        clean: The result of the first variant, to compare with; None for itself.
    """
    hyps = [translation.text for translation in found]
    asked = [i for i, src in enumerate(variant.sources) if src.strip()]
    wrong = [faults(variant.sources[i], hyps[i], Sizes(n_src[i], found[i].n_tokens), src_lang, tgt_lang) for i in asked]
    refs, share = variant.references, 100 / max(1, len(asked))
    by_bleu = None if refs is None else bleu(hyps, refs, tgt_lang).value
    by_chrf = None if refs is None else chrf(hyps, refs).value
    return Stressed(
        name=variant.name,
        lines=len(hyps),
        bleu=by_bleu,
        chrf=by_chrf,
        bleu_loss=_loss(clean.bleu if clean else by_bleu, by_bleu),
        chrf_loss=_loss(clean.chrf if clean else by_chrf, by_chrf),
        guarded=share * sum(is_guarded(found[i]) for i in asked),
        faulty=share * sum(bool(each) for each in wrong),
        empty=share * sum("empty" in each for each in wrong),
        words=sum(n_words(hyps[i], tgt_lang) for i in asked) / max(1, len(asked)),
    )


def _loss(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else before - now


def is_guarded(translation: Translation) -> bool:
    """Whether the guard has left a note: those begin with the fault that it saw."""
    return any(note.kind in FAULTS for note in translation.notes)


def table(results: Sequence[Stressed]) -> list[str]:
    """The results as lines of text, one for each variant below one of headings."""
    rows: list[tuple[str, ...]] = [
        ("source", "lines", "BLEU", "loss", "chrF2", "loss", "guarded", "faulty", "empty", "words a line")
    ]
    for one in results:
        first = one.name == CLEAN
        figures = [one.bleu, None if first else one.bleu_loss, one.chrf, None if first else one.chrf_loss]
        shares = [f"{share:.1f}%" for share in (one.guarded, one.faulty, one.empty)]
        rows.append((one.name, f"{one.lines:,}", *map(_two, figures), *shares, f"{one.words:.1f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
