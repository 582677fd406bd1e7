"""Measure robustness: translate perturbed variants of a test set, such as capitals, typing errors and long lines.

Each variant of the source is scored against the unchanged references: a good system translates the meaning, however it
is typed. The variants in capitals and in Title Case are compared without case, and their loss is that from the score of
the unchanged test set without case: a line in capitals is rightly translated into capitals. Two variants change the
references too. An emoji or address inserted into the source is inserted at the same
end of the reference, so copying it is right. Sentences joined to one long line have joined references. Single words
have no reference, so only faults and lengths are counted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.data.noise import titled, with_insert, with_typos, without_final_mark, words_of
from dragoman.evaluation.metrics import aligned, bleu, chrf
from dragoman.languages.casing import capitals, lower
from dragoman.languages.known import is_unspaced
from dragoman.translation.assemble import Translation
from dragoman.translation.faults import FAULTS, Sizes, faults

LONG_LINE = 2000
"""Length of a long line in words, or in characters of a language without spaces."""
SEED = 1
UNSPACED_WORD = 2
"""Number of characters that count as a word in a language without spaces."""

CLEAN = "as it is"


class Variant(NamedTuple):
    """A test set as it is, or perturbed in one way; ``references`` is None where none fit the new sources."""

    name: str
    sources: list[str]
    references: list[str] | None  # None: unknown
    caseless: bool = False  # True: scored without case


class Stressed(NamedTuple):
    """Results of one variant; shares are in per cent of the lines that are not blank."""

    name: str
    lines: int
    bleu: float | None  # per cent; None without references
    chrf: float | None
    bleu_loss: float | None  # score of the clean variant minus this one
    chrf_loss: float | None
    guarded: float  # lines in which the guard saw a fault
    faulty: float  # lines whose final translation has a fault
    empty: float  # lines without a translation
    words: float  # mean length of a translation; characters without spaces
    caseless: tuple[float, float] | None = None  # BLEU and chrF without case, of the clean variant alone


def variants(
    sources: Sequence[str], references: Sequence[str], src_lang: str | None, tgt_lang: str | None, seed: int = SEED
) -> list[Variant]:
    """Return the test set as it is and in eleven perturbed variants; the same seed gives the same.

    Typing errors hit about 5 of 100 letters. About half of the lines get an emoji, the others an address. The
    variant of single words draws one of each line. Long lines end with the first sentence that fills ``LONG_LINE``
    words; a last shorter line is left out, unless it is the only one.
    """
    sources, references = list(sources), list(references)
    typos, inserts, words = (random.Random(3 * seed + i) for i in range(3))
    spaces = random.Random(f"spaces {seed}")
    inserted = [
        with_insert(src, ref, inserts) if src.strip() else (src, ref)
        for src, ref in zip(sources, references, strict=True)
    ]
    joined = long_lines(sources, references, src_lang, tgt_lang)
    return [
        Variant(CLEAN, sources, references),
        Variant("capitals", [capitals(text, src_lang) for text in sources], references, caseless=True),
        Variant("Title Case", [titled(text) for text in sources], references, caseless=True),
        Variant("lower case", [lower(text, src_lang) for text in sources], references),
        Variant("typing errors", [with_typos(text, typos) if text.strip() else text for text in sources], references),
        Variant("no final mark", [without_final_mark(text) for text in sources], references),
        Variant("more final marks", [with_final_mark(text) for text in sources], references),
        Variant("white space", [other_spaces(text, spaces) for text in sources], references),
        Variant("typography", [typeset(text) for text in sources], references),
        Variant("emoji, addresses", [src for src, _ in inserted], [ref for _, ref in inserted]),
        Variant("one word", [_a_word(text, src_lang, words) for text in sources], None),
        Variant(f"{LONG_LINE:,} words", [src for src, _ in joined], [ref for _, ref in joined]),
    ]


def with_final_mark(text: str) -> str:
    """Return text with its final mark twice, or with a full stop if it has none."""
    body = text.rstrip()
    return body + (body[-1:] if without_final_mark(body) != body else "." * bool(body))


def other_spaces(text: str, chance: random.Random) -> str:
    """Return text with other white space, which a reader hardly sees; nothing else changes."""
    kinds = (
        text.replace(" ", "\u00a0"), text.replace(" ", "  "), f"\t{text}", f" {text} ",
        text.replace(" ", "\u2009"), text.replace(" ", "\t"),
    )  # fmt: skip
    return kinds[int(chance.random() * len(kinds))] if text.strip() else text


def typeset(text: str) -> str:
    """Return text as a typesetter writes it: curly quotes, dashes, an ellipsis, no break before the last word."""
    pieces = text.replace("...", "\u2026").replace(" - ", " \u2013 ").replace("'", "\u2019").split('"')
    quoted = "".join(piece + "\u201c\u201d"[i % 2] for i, piece in enumerate(pieces[:-1])) + pieces[-1]
    return "\u00a0".join(quoted.rsplit(" ", 1))


def _a_word(text: str, lang: str | None, chance: random.Random) -> str:
    if is_unspaced(lang):
        start = int(chance.random() * max(1, len(text) - UNSPACED_WORD + 1))
        return text[start : start + UNSPACED_WORD]
    words = words_of(text) or [text.strip()]
    return words[int(chance.random() * len(words))]


def long_lines(
    sources: Sequence[str], references: Sequence[str], src_lang: str | None, tgt_lang: str | None
) -> list[tuple[str, str]]:
    """Join neighbouring sentences to lines of ``LONG_LINE`` words, and their references alike."""
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
    """Return the number of words between spaces, or of characters if the language has no spaces."""
    return len("".join(text.split())) if is_unspaced(lang) else len(text.split())


def measure(
    variant: Variant,
    translations: Sequence[Translation],
    n_src: Sequence[int],
    langs: tuple[str | None, str | None],
    clean: Stressed | None = None,
) -> Stressed:
    """Score the translations of a variant.

    Args:
        translations: One for each source.
        n_src: Number of subwords of each source.
        langs: Languages of the sources and of the translations.
        clean: Result of the unchanged test set, to compare with; None for itself.
    """
    src_lang, tgt_lang = langs
    hyps = [translation.text for translation in translations]
    filled = [i for i, src in enumerate(variant.sources) if src.strip()]
    sizes = [Sizes(n, translation.n_tokens) for n, translation in zip(n_src, translations, strict=True)]
    faults_of = [faults(variant.sources[i], hyps[i], sizes[i], src_lang, tgt_lang) for i in filled]
    refs, share = variant.references, 100 / max(1, len(filled))
    by_bleu, by_chrf = (None, None) if refs is None else _scored(hyps, refs, tgt_lang, variant.caseless)
    before = None if clean is None else clean.caseless if variant.caseless else (clean.bleu, clean.chrf)
    return Stressed(
        name=variant.name,
        lines=len(hyps),
        bleu=by_bleu,
        chrf=by_chrf,
        bleu_loss=_loss(before[0] if before else by_bleu, by_bleu),
        chrf_loss=_loss(before[1] if before else by_chrf, by_chrf),
        guarded=share * sum(is_guarded(translations[i]) for i in filled),
        faulty=share * sum(map(bool, faults_of)),
        empty=share * sum("empty" in kinds for kinds in faults_of),
        words=sum(n_words(hyps[i], tgt_lang) for i in filled) / max(1, len(filled)),
        caseless=_scored(hyps, refs, tgt_lang, True) if clean is None and refs is not None else None,
    )


def _scored(hyps: Sequence[str], refs: Sequence[str], lang: str | None, caseless: bool) -> tuple[float, float]:
    """Return BLEU and chrF, with case or without: all in capitals, from which ß and some accents do not come back."""
    if caseless:
        hyps, refs = ([capitals(text, lang) for text in side] for side in (hyps, refs))
    return bleu(hyps, refs, lang).value, chrf(hyps, refs).value


def _loss(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else before - now


def is_guarded(translation: Translation) -> bool:
    """True if the guard left a note on a translation; its kind is the fault that it saw."""
    return any(note.kind in FAULTS for note in translation.notes)


def table(results: Sequence[Stressed]) -> list[str]:
    """Return the results as lines of text, one for each variant after one of headings."""
    rows: list[tuple[str, ...]] = [
        ("source", "lines", "BLEU", "loss", "chrF2", "loss", "guarded", "faulty", "empty", "words a line")
    ]
    for result in results:
        is_clean = result.name == CLEAN
        losses = (None, None) if is_clean else (result.bleu_loss, result.chrf_loss)
        figures = [result.bleu, losses[0], result.chrf, losses[1]]
        shares = [f"{share:.1f}%" for share in (result.guarded, result.faulty, result.empty)]
        rows.append((result.name, f"{result.lines:,}", *map(_two, figures), *shares, f"{result.words:.1f}"))
    return aligned(rows)


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
