"""Damaged corpora made from clean ones: every kind of damage by a rule and a seed.

    corpus = Clean("multi30k-en-fr", "en", "fr", src_lines, tgt_lines, other_lines)
    damaged = damage(corpus, "extra-line", seed=1)
    damaged.write(folder)       # folder/x.en, folder/x.fr

    python -m benchmarks.damaged train.en train.fr --kind extra-line --seed 1 --out folder

A damage says under which names a report may name it, in which lines of which side it stands, and which clean pairs it
left as they were.
"""

from __future__ import annotations

import argparse
import html
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Lines = list[str]
Place = tuple[int, int, int]
"""Side (0 source, 1 target, 2 both or either), and the first and the last line, from 1."""


@dataclass(frozen=True)
class Clean:
    """A clean corpus, and text in another language that is put into it."""

    name: str
    src_lang: str
    tgt_lang: str
    src: Lines
    tgt: Lines
    other: Lines = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of the corpus."""
        return list(zip(self.src, self.tgt, strict=True))


@dataclass
class Damaged:
    """A damaged corpus, and what a report of it must say."""

    corpus: Clean
    kind: str
    src: Lines
    tgt: Lines
    names: tuple[str, ...] = ()  # names of findings that are right
    places: list[Place] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)  # clean pairs that were changed, from 0
    exact: bool = False  # places are points: lines where a shift begins
    encodings: tuple[str, str] = ("utf-8", "utf-8")

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write both files, and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = folder / f"x.{self.corpus.src_lang}", folder / f"x.{self.corpus.tgt_lang}"
        for path, lines, encoding in zip(paths, (self.src, self.tgt), self.encodings, strict=True):
            path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding, "replace"))
        return paths


Damager = Callable[[Damaged, random.Random], bool]
"""Changes the corpus in place; False if the kind does not exist for its languages."""


def damage(corpus: Clean, kind: str, seed: int) -> Damaged | None:
    """Return the corpus with one kind of damage; None where the kind does not exist for its languages."""
    damaged = Damaged(corpus, kind, corpus.src[:], corpus.tgt[:])
    return damaged if KINDS[kind](damaged, random.Random(f"{kind} {corpus.name} {seed}")) else None


# --- lines ------------------------------------------------------------------------------------------------------------


def extra_line(d: Damaged, chance: random.Random) -> bool:
    """One line too many on one side."""
    at, side = chance.randrange(len(d.src) // 10, len(d.src) * 9 // 10), chance.randrange(2)
    lines = (d.src, d.tgt)[side]
    lines.insert(at, lines[chance.randrange(len(lines))])
    return _shifted(d, [(side, at + 1, at + 1)], set())


def early_missing_line(d: Damaged, chance: random.Random) -> bool:
    """One line missing on one side within the first fiftieth: nearly every pair is wrong."""
    at, side = chance.randrange(5, len(d.src) // 50), chance.randrange(2)
    del (d.src, d.tgt)[side][at]
    return _shifted(d, [(1 - side, at + 1, at + 1)], {at})


def several_shifts(d: Damaged, chance: random.Random) -> bool:
    """Four places with one to three lines missing, on either side."""
    step, places, touched = len(d.src) // 5, [], set()
    for k in (3, 2, 1, 0):  # from the end, so that the places before stay where they are
        at = step * k + chance.randrange(step // 4, step)
        side, count = chance.randrange(2), chance.randint(1, 3)
        touched |= set(range(at, at + count))
        places.append((at, side, count))
    for at, side, count in places:
        del (d.src, d.tgt)[side][at : at + count]
    moved, points = [0, 0], []
    for at, side, count in reversed(places):
        first = at + 1 - moved[1 - side]
        points.append((1 - side, first, first + count - 1))
        moved[side] += count
    return _shifted(d, points, touched)


def shift_and_return(d: Damaged, chance: random.Random) -> bool:
    """A line is missing on one side, and further down one on the other: both files have the same length."""
    first = chance.randrange(len(d.src) // 10, len(d.src) // 2)
    last = first + chance.randrange(len(d.src) // 10, len(d.src) // 3)
    side = chance.randrange(2)
    del (d.src, d.tgt)[1 - side][last]
    del (d.src, d.tgt)[side][first]
    return _shifted(d, [(1 - side, first + 1, first + 1), (side, last, last)], {first, last})


def far_shift(d: Damaged, chance: random.Random) -> bool:
    """A block of 20 to 60 lines is missing on one side."""
    at, count = chance.randrange(len(d.src) // 5, len(d.src) * 3 // 5), chance.randint(20, 60)
    side = chance.randrange(2)
    del (d.src, d.tgt)[side][at : at + count]
    return _shifted(d, [(1 - side, at + 1, at + count)], set(range(at, at + count)))


def _shifted(d: Damaged, points: list[Place], touched: set[int]) -> bool:
    d.names, d.places, d.exact, d.touched = ("shifted",), points, True, touched
    return True


def other_language(d: Damaged, chance: random.Random) -> bool:
    """A block of the target is in another language."""
    if not d.corpus.other:
        return False
    count = len(d.src) // 8
    at, start = chance.randrange(len(d.src) - count), chance.randrange(len(d.corpus.other) - count)
    d.tgt[at : at + count] = d.corpus.other[start : start + count]
    return _block(d, ("target-language", "target-script"), 1, at, count)


def swapped_block(d: Damaged, chance: random.Random) -> bool:
    """Source and target of a block are exchanged."""
    return _swapped_block(d, chance, len(d.src) // 8)


def large_swapped_block(d: Damaged, chance: random.Random) -> bool:
    """Source and target of a block of two fifths are exchanged."""
    return _swapped_block(d, chance, len(d.src) * 2 // 5)


def _swapped_block(d: Damaged, chance: random.Random, count: int) -> bool:
    at = chance.randrange(len(d.src) - count)
    _exchange(d, range(at, at + count))
    return _block(d, ("swapped-sides",), 2, at, count)


def _exchange(d: Damaged, rows: Sequence[int]) -> None:
    for i in rows:
        d.src[i], d.tgt[i] = d.tgt[i], d.src[i]


def scattered_swaps(d: Damaged, chance: random.Random) -> bool:
    """Source and target of a fifth of the pairs, drawn one by one, are exchanged."""
    rows = sorted(chance.sample(range(len(d.src)), len(d.src) // 5))
    _exchange(d, rows)
    d.names, d.places, d.touched = ("swapped-sides",), [(2, i + 1, i + 1) for i in rows], set(rows)
    return True


def scattered_languages(d: Damaged, chance: random.Random) -> bool:
    """A fifth of the targets, drawn one by one, are in another language."""
    if not d.corpus.other:
        return False
    rows = sorted(chance.sample(range(len(d.src)), len(d.src) // 5))
    for i, text in zip(rows, chance.sample(d.corpus.other, len(rows)), strict=True):
        d.tgt[i] = text
    d.names, d.places = ("target-language", "target-script"), [(1, i + 1, i + 1) for i in rows]
    d.touched = set(rows)
    return True


def copied_source(d: Damaged, chance: random.Random) -> bool:
    """The target of every twelfth pair is its source."""
    return _lines(d, chance, 12, 1, ("untranslated",), lambda line, i: d.src[i])


def wrong_pairs(d: Damaged, chance: random.Random) -> bool:
    """Every twelfth pair has the target of another."""
    rows = [i for i in range(len(d.src)) if i % 12 == 5]
    for i, text in zip(rows, [d.tgt[i] for i in rows[7:] + rows[:7]], strict=True):
        d.tgt[i] = text
    d.names, d.places, d.touched = ("misaligned",), [(2, i + 1, i + 1) for i in rows], set(rows)
    return True


def boilerplate(d: Damaged, chance: random.Random) -> bool:
    """One pair of the corpus stands before every tenth pair, as the footer of a page does."""
    pair = d.src[7], d.tgt[7]
    src, tgt = [], []
    for i, (s, t) in enumerate(d.corpus.pairs):
        if i % 10 == 0 and i > 10:
            src.append(pair[0])
            tgt.append(pair[1])
            d.places.append((2, len(src), len(src)))
        src.append(s)
        tgt.append(t)
    d.src[:], d.tgt[:], d.names = src, tgt, ("boilerplate", "duplicate")
    return True


def repeated_block(d: Damaged, chance: random.Random) -> bool:
    """A third of the corpus stands a second time at the end."""
    count = len(d.src) // 3
    at = chance.randrange(len(d.src) - count)
    d.places = [(2, len(d.src) + 1, len(d.src) + count)]
    d.src += d.src[at : at + count]
    d.tgt += d.tgt[at : at + count]
    d.names = ("duplicate",)
    return True


def truncated(d: Damaged, chance: random.Random) -> bool:
    """The longer targets, a tenth of all, are cut at one length."""
    limit = sorted(map(len, d.tgt))[len(d.tgt) * 9 // 10]
    rows = [i for i, line in enumerate(d.tgt) if len(line) > limit]
    for i in rows:
        d.tgt[i] = d.tgt[i][:limit]
    d.names, d.places, d.touched = ("truncated",), [(1, i + 1, i + 1) for i in rows], set(rows)
    return bool(rows)


def placeholder(d: Damaged, chance: random.Random) -> bool:
    """Every fifth line of one side is a placeholder."""
    text = chance.choice(("<range>", "N/A", "[no translation]", "...", "TODO", "#REF!", "null"))
    return _lines(d, chance, 5, chance.randrange(2), ("placeholder",), lambda line, i: text)


# --- text -------------------------------------------------------------------------------------------------------------


def decomposed(d: Damaged, chance: random.Random) -> bool:
    """Half of the target is in normal form D."""
    return _lines(d, chance, 2, 1, ("normal-form",), lambda line, i: unicodedata.normalize("NFD", line))


def bpe_marks(d: Damaged, chance: random.Random) -> bool:
    """The target is cut into subwords with ``@@``."""
    return _lines(d, chance, 1, 1, ("subword-marks",), lambda line, i: _cut(line, "@@ ", chance))


def piece_marks(d: Damaged, chance: random.Random) -> bool:
    """Both sides are cut into the pieces of SentencePiece, which begin words with U+2581."""
    for side in (0, 1):
        _lines(
            d,
            chance,
            1,
            side,
            ("subword-marks",),
            lambda line, i: " ".join("▁" + _cut(word, " ", chance) for word in line.split(" ") if word),
        )
    return True


def _cut(line: str, mark: str, chance: random.Random) -> str:
    """Return a line of which some words are cut into two or three parts."""

    def parts(match: re.Match[str]) -> str:
        word = match.group()
        at = chance.randrange(2, len(word) - 1)
        return f"{word[:at]}{mark}{word[at:]}" if chance.random() < 0.5 else word

    return re.sub(r"[^\W\d_]{4,}", parts, line)


def tokenised(d: Damaged, chance: random.Random) -> bool:
    """Punctuation on one side stands by itself, as tokenizers leave it."""
    side = chance.randrange(2)
    if (d.corpus.src_lang, d.corpus.tgt_lang)[side] in ("zh", "ja"):
        side = 1 - side
    return _lines(
        d,
        chance,
        1,
        side,
        ("tokenised",),
        lambda line, i: (
            " ".join(re.sub(r"(?<!\d)([.,;:!?()\"«»„“”])|([.,;:!?()\"«»„“”])(?!\d)", r" \1\2 ", line).split(" "))
            .replace("  ", " ")
            .strip()
        ),
    )


def lower_cased(d: Damaged, chance: random.Random) -> bool:
    """One side is in lower case."""
    side = chance.randrange(2)
    if (d.corpus.src_lang, d.corpus.tgt_lang)[side] in ("zh", "ja"):
        side = 1 - side
    return _lines(d, chance, 1, side, ("lower-case",), lambda line, i: line.lower())


def number_column(d: Damaged, chance: random.Random) -> bool:
    """The number of the line and a tab stand before each line of one side or both."""
    first = chance.randrange(1, 5000)
    for side in chance.choice(((0,), (1,), (0, 1))):
        _lines(d, chance, 1, side, ("column",), lambda line, i: f"{first + i}\t{line}")
    return True


def name_column(d: Damaged, chance: random.Random) -> bool:
    """A name of the source of each line stands behind a tab after it, on the target side."""
    names = [f"{chance.choice(('news', 'web', 'book'))}-{chance.randrange(10**6):06d}" for _ in d.tgt]
    return _lines(d, chance, 1, 1, ("column",), lambda line, i: f"{line}\t{names[i]}")


ALIKE = str.maketrans("aeopcxyAEOPCXBHKMT", "аеорсхуАЕОРСХВНКМТ")


def homoglyphs(d: Damaged, chance: random.Random) -> bool:
    """Every tenth source has Cyrillic letters within Latin words."""
    return _lines(
        d,
        chance,
        10,
        0,
        ("mixed-script",),
        lambda line, i: re.sub(
            r"(?<=[a-zA-Z])[aeopcxy]|[aeopcxy](?=[a-zA-Z])", lambda m: m.group().translate(ALIKE), line, count=2
        ),
    )


WIDE = {ord(c): ord(c) + 0xFEE0 for c in map(chr, range(0x21, 0x7F))}


def full_width(d: Damaged, chance: random.Random) -> bool:
    """Every tenth source is in full-width letters."""
    return _lines(d, chance, 10, 0, ("full-width",), lambda line, i: line.translate(WIDE))


def entities(d: Damaged, chance: random.Random) -> bool:
    """Quotes, angle brackets and ampersands of both sides are entities; a fifth of the lines is in quotes."""
    for side in (0, 1):
        lines = (d.src, d.tgt)[side]
        plain = [f'"{line}"' if i % 5 == 2 else line for i, line in enumerate(lines)]
        d.corpus = _with_side(d.corpus, side, plain)
        lines[:] = plain
        _lines(d, chance, 1, side, ("entity",), lambda line, i: html.escape(line))
    return True


def markup(d: Damaged, chance: random.Random) -> bool:
    """Tags of a page stand around or behind every fourth target."""
    tags = ("<p>{}</p>", "{}<br/>", '<span class="t">{}</span>', "<b>{}</b>")
    return _lines(d, chance, 4, 1, ("markup",), lambda line, i: chance.choice(tags).format(line))


def spaces(d: Damaged, chance: random.Random) -> bool:
    """Every third source has no-break spaces, zero-width spaces or soft hyphens."""
    return _lines(
        d,
        chance,
        3,
        0,
        ("no-break-words", "no-break-space", "invisible"),
        lambda line, i: line.replace(" ", "\u00a0", 2) if i % 2 else line[:3] + "\u200b" + line[3:],
    )


def mojibake(d: Damaged, chance: random.Random) -> bool:
    """A third of the target was UTF-8 read as Windows-1252, undefined bytes as Latin-1 has them."""

    def broken(line: str, i: int) -> str:
        return (
            "".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in line.encode())
            if not line.isascii()
            else line
        )

    return _lines(d, chance, 3, 1, ("mojibake",), broken)


def cyrillic_as_latin(d: Damaged, chance: random.Random) -> bool:
    """Cyrillic text in CP1251 was read as Latin-1: a third of the target."""
    if d.corpus.tgt_lang != "mk":
        return False
    return _lines(d, chance, 3, 1, ("mojibake",), lambda line, i: line.encode("cp1251", "replace").decode("latin-1"))


# --- bytes ------------------------------------------------------------------------------------------------------------


def utf16(d: Damaged, chance: random.Random) -> bool:
    """The target is a file in UTF-16 without a mark."""
    return _in(d, "utf-16-le")


def legacy(d: Damaged, chance: random.Random) -> bool:
    """The target is a file in the encoding that its language had before UTF-8."""
    return _in(d, {"zh": "gb18030", "mk": "cp1251", "cs": "cp1250"}.get(d.corpus.tgt_lang, "cp1252"))


def _in(d: Damaged, encoding: str) -> bool:
    d.encodings = "utf-8", encoding
    d.tgt[:] = [line.encode(encoding, "ignore").decode(encoding) for line in d.tgt]
    d.corpus = _with_side(d.corpus, 1, d.tgt[:])
    d.names, d.places = ("encoding",), [(1, 1, len(d.tgt))]
    return True


# --- helpers ----------------------------------------------------------------------------------------------------------


def _with_side(corpus: Clean, side: int, lines: Lines) -> Clean:
    sides = [corpus.src, corpus.tgt]
    sides[side] = lines
    return Clean(corpus.name, corpus.src_lang, corpus.tgt_lang, sides[0], sides[1], corpus.other)


def _block(d: Damaged, names: tuple[str, ...], side: int, at: int, count: int) -> bool:
    d.names, d.places, d.touched = names, [(side, at + 1, at + count)], set(range(at, at + count))
    return True


def _lines(
    d: Damaged, chance: random.Random, every: int, side: int, names: tuple[str, ...], change: Callable[[str, int], str]
) -> bool:
    """Change every so many lines of a side; False if fewer than 20 lines became others."""
    lines, first = (d.src, d.tgt)[side], chance.randrange(every)
    for i in range(first, len(lines), every):
        new = change(lines[i], i)
        if new != lines[i]:
            lines[i] = new
            d.touched.add(i)
            d.places.append((side, i + 1, i + 1))
    d.names = names
    return len(d.touched) >= 20


KINDS: dict[str, Damager] = {
    f.__name__.replace("_", "-"): f
    for f in (
        extra_line, early_missing_line, several_shifts, shift_and_return, far_shift, other_language,
        swapped_block, large_swapped_block, scattered_swaps, scattered_languages, copied_source, wrong_pairs,
        boilerplate, repeated_block, truncated, placeholder, decomposed, bpe_marks, piece_marks, tokenised,
        lower_cased, number_column, name_column, homoglyphs, full_width, entities, markup, spaces, mojibake,
        cyrillic_as_latin, utf16, legacy,
    )
}  # fmt: skip


# --- clean corpora ----------------------------------------------------------------------------------------------------

CYRILLIC = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzáčďéěíňóřšťúůýžABCDEFGHIJKLMNOPQRSTUVWXYZÁČĎÉĚÍŇÓŘŠŤÚŮÝŽ",
    "абцдефгхијклмнопљрстувњџузачдеејњоршќууужАБЦДЕФГХИЈКЛМНОПЉРСТУВЊЏУЗАЧДЕЕЈЊОРШЌУУУЖ",
)
"""Czech letters as Cyrillic ones: a text in Cyrillic script where there is no other."""

CORPORA: dict[str, tuple[str, str, str, str, str]] = {
    # folder, part, source, target, text in another language
    "tatoeba-en-de": ("tatoeba-en-de", "train", "en", "de", "multi30k/train.cs"),
    "tatoeba-en-zh": ("tatoeba-en-zh", "train", "en", "zh", "tatoeba-en-de/train.de"),
    "multi30k-en-cs": ("multi30k", "train", "en", "cs", "multi30k/train.fr"),
    "multi30k-fr-de": ("multi30k", "train", "fr", "de", "tatoeba-en-zh/train.zh"),
    "multi30k-en-mk": ("multi30k", "train", "en", "cs", "multi30k/train.de"),
    "pydocs-en-zh": ("pydocs-en-zh", "train", "en", "zh", "justice-en-fr/dev.fr"),
    "justice-en-fr": ("justice-en-fr", "dev", "en", "fr", "tatoeba-en-de/train.de"),
}


def clean_corpus(data: Path, name: str, seed: int, size: int = 3000) -> Clean:
    """Return consecutive pairs of a real corpus from a place that the seed draws, without blank and repeated ones."""
    folder, part, src_lang, tgt_lang, other = CORPORA[name]
    src, tgt = (lines_of(data / folder / f"{part}.{lang}") for lang in (src_lang, tgt_lang))
    start = random.Random(f"{name} {seed}").randrange(max(1, len(src) - size * 3 // 2))
    pairs = dict.fromkeys(zip(src[start : start + size * 3 // 2], tgt[start : start + size * 3 // 2], strict=True))
    chosen = [(s, unicodedata.normalize("NFC", t)) for s, t in pairs if s.strip() and t.strip()][:size]
    src, tgt = [s for s, _ in chosen], [t for _, t in chosen]
    if name.endswith("-mk"):
        tgt_lang, tgt = "mk", [line.translate(CYRILLIC) for line in tgt]
    return Clean(name, src_lang, tgt_lang, src, tgt, lines_of(data / other))


def lines_of(path: Path) -> Lines:
    """Return a file cut at LF."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def main(args: Sequence[str] | None = None) -> None:
    """Damage two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src", type=Path)
    parser.add_argument("tgt", type=Path)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--other", type=Path, help="text in another language, for other-language")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(args)
    langs = [path.suffix.lstrip(".") for path in (options.src, options.tgt)]
    other = lines_of(options.other) if options.other else []
    corpus = Clean(options.src.stem, *langs, lines_of(options.src), lines_of(options.tgt), other)
    damaged = damage(corpus, options.kind, options.seed)
    if damaged is None:
        parser.error(f"{options.kind} does not exist for these languages")
    print(*damaged.write(options.out), f"{damaged.names[0]} at {damaged.places[:8]}", sep="\n")


if __name__ == "__main__":
    main()
