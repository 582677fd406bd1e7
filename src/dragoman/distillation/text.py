"""Text that models make: the texts they translate, their translations in a file, and what a student learns from.

Sequence-level knowledge distillation (Kim and Rush 2016, https://aclanthology.org/D16-1139): the student is trained on
what the teacher's beam search finds. With references the one of the N best that comes nearest to its reference may be
taken instead (sequence-level interpolation there). What is unfit to learn from is dropped (``translation.filters``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import lines_of
from dragoman.errors import ConfigError, DataError, DecodeError
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.files import whole_file, write_text
from dragoman.languages.codes import language_of, primary
from dragoman.languages.stopwords import main_language, words_of
from dragoman.progress import Ticker
from dragoman.translation.assemble import LineFormat
from dragoman.translation.filters import BLANK, SAMPLE, Language, Made, least_score, read_rendered, rendered, unfit
from dragoman.translation.language_pairs import Langs, LanguagePairs
from dragoman.translation.notes import Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

CHUNK = 2000
"""Lines that are chosen from at a time."""

T = TypeVar("T")

FORM = "scored n-best"
"""What an unfinished file of translations notes itself as."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text that the teacher translates."""

    src: Path
    ref: Path | None = None  # line by line
    held_out: int | None = None  # one line in N is for validation, and not learned from
    n_lines: int = 0


def check_text(path: Path, lang: str | None, who: str) -> None:
    """See that there is text to translate in a file, and that it is in the language that ``who`` translates from.

    Raises:
        ConfigError, DataError: It cannot be read, has no text, or is in another language by its name or by its words.
    """
    refuse_a_pipe(path)
    said = language_of(path)
    if said and lang and primary(said) != primary(lang):
        raise ConfigError(f"{path}: {said} by its name, but {who} translates from {lang}; give such text")
    sample = sample_of(path)
    if not sample:
        raise DataError(f"{path}: there is nothing to translate: no lines, or blank ones alone")
    if other := main_language(map(words_of, sample), lang):
        raise DataError(f"{path}: looks like {other}, but {who} translates from {lang}; give text in {lang}")


def arrow(langs: Langs) -> str:
    """A pair of languages, to be shown."""
    return " -> ".join(lang or "unknown" for lang in langs)


def check_languages(translator: Translator, names: Sequence[str], plan: Plan) -> None:
    """Refuse an ensemble whose members translate between other languages than the first.

    Raises:
        ConfigError: One does.
    """
    several, ours = len(translator.src_tokenizer.targets) > 1, (plan.src_lang, plan.tgt_lang)
    for name, one in zip(names, translator.bundles, strict=True):
        pair = LanguagePairs.of(one).direction(plan.tgt_lang if several else None, plan.options.from_lang)
        if tuple(map(primary, pair)) != tuple(map(primary, ours)):
            raise ConfigError(
                f"{name}: translates {arrow(pair)}, and {names[0]} {arrow(ours)}: runs that translate together must "
                "share their languages"
            )


def sample_of(path: Path) -> list[str]:
    """The first lines of a text that are not blank."""
    return list(islice((line for line in lines_of(path) if line.strip()), SAMPLE))


def sides_of(folder: Path, stem: str, langs: Langs) -> tuple[Path, Path]:
    """The names of two files that belong together: ``STEM.en`` and ``STEM.de``, or ``STEM.src`` and ``STEM.tgt``."""
    src, tgt = langs if primary(langs[0]) != primary(langs[1]) else (None, None)
    return folder / f"{stem}.{src or 'src'}", folder / f"{stem}.{tgt or 'tgt'}"


def is_held_out(number: int, text: Text) -> bool:
    """Whether a line, counted from 1, is for validation."""
    return text.held_out is not None and number % text.held_out == 0


def translate_text(
    translator: Translator, plan: Plan, src: Path, out: Path, ticker: Ticker, what: str, before: int = 0,
    total: int | None = None,
) -> None:  # fmt: skip
    """Translate a text into a file of scored translations; what an earlier process did is not done again.

    A line that runs out of memory has an empty translation, and how many they are is said.

    Args:
        what: To be counted on the console, such as "lines translated"; ``before`` lines were.
        total: All lines; None: those that have been read.
    """
    if out.exists():
        return
    lost = 0

    def progress(done: int, read: int, _: str) -> None:
        ticker(before + done, total if total is not None else before + read, what)

    def listen(note: Note) -> None:
        nonlocal lost
        lost += note.kind == "memory"

    try:
        translator.translate_file(
            src, out, plan, form=LineFormat(FORM, rendered), events=Events(progress=progress, warn=listen)
        )
    except DecodeError:
        if not lost:
            raise
        ticker.say(f"{src}: {lost:,} lines ran out of memory; they have no translation")


def translate_texts(teacher: Translator, plan: Plan, texts: Sequence[Text], folder: Path, ticker: Ticker) -> list[Path]:
    """Have the teacher translate each text."""
    found, before, total = [], 0, sum(text.n_lines for text in texts)
    for i, text in enumerate(texts):
        found.append(folder / f"translations-{i}.jsonl")
        translate_text(teacher, plan, text.src, found[-1], ticker, "lines translated by the teacher", before, total)
        before += text.n_lines
    return found


def choose(
    texts: Sequence[Text], translations: Sequence[Path], plan: Plan, sides: tuple[Path, Path], drop_worst: float,
    ticker: Ticker,
) -> dict[str, int]:  # fmt: skip
    """Write the pairs that the student learns from, a file for each side.

    Returns:
        How many lines there were, how many pairs are ``kept``, and how many were dropped by each reason.

    Raises:
        DataError: None is kept.
    """
    firsts = (read_rendered("", line)[0] for path in translations for line in lines_of(path))
    least, language = least_score(firsts, drop_worst), Language(plan.tgt_lang, first_translations(translations))
    counts: Counter[str] = Counter()
    total = sum(text.n_lines for text in texts)
    with ExitStack() as open_files:
        outs = [open_files.enter_context(whole_file(side)) for side in sides]
        for text, path in zip(texts, translations, strict=True):
            for chunk in chunks(_lines(text, path)):
                made = list(_nearest_of(chunk, counts))
                for one, why in zip(made, unfit(made, plan, language, least), strict=True):
                    counts[why or "kept"] += 1
                    if not why:
                        outs[0].write(f"{one.src}\n".encode())
                        outs[1].write(f"{one.text}\n".encode())
                counts["lines"] += len(chunk)
                ticker(counts["lines"], total, "translations looked at")
        if not counts["kept"]:
            raise DataError(
                f"{texts[0].src}: no translation is fit to learn from ({dict(counts)}); is it the right text?"
            )
    return dict(counts)


def chunks(items: Iterator[T]) -> Iterator[list[T]]:
    """Lists of ``CHUNK`` items; the last may be shorter."""
    while chunk := list(islice(items, CHUNK)):
        yield chunk


def first_translations(paths: Iterable[Path]) -> list[str]:
    """A sample of what was translated, by which its language is told."""
    return [read_rendered("", line)[0].text for path in paths for line in islice(lines_of(path), SAMPLE)]


_Line = tuple[str | None, list[Made], bool]
"""The reference of a source, its translations, and whether it is held out."""


def _lines(text: Text, translations: Path) -> Iterator[_Line]:
    refs: Iterator[str | None] = iter(lambda: None, 0) if text.ref is None else iter(lines_of(text.ref))
    for number, (src, found) in enumerate(zip(lines_of(text.src), lines_of(translations), strict=True), 1):
        yield next(refs, None), read_rendered(src, found), is_held_out(number, text)


def _nearest_of(chunk: Sequence[_Line], counts: Counter[str]) -> Iterator[Made]:
    """Of each line to learn from the translation to take; what is dropped is counted."""
    for ref, found, held_out in chunk:
        if held_out or not found[0].src.strip():
            counts["held out" if held_out else BLANK] += 1
        else:
            yield _nearest(found, ref)._replace(score=found[0].score)  # a line is as good as its best


def _nearest(found: Sequence[Made], ref: str | None) -> Made:
    """Of several translations the one with the highest chrF to the reference; of equals, or without one, the first."""
    if ref is None or len(found) < 2:
        return found[0]
    scores = sentence_chrf([one.text for one in found], [ref] * len(found))
    return found[max(range(len(found)), key=lambda i: (scores[i], -i))]


def hold_out(text: Text, src: Path, ref: Path, inverted: bool = False) -> None:
    """Write the pairs that are held out, a file for each side; ``inverted``: those that are not."""
    assert text.ref is not None
    pairs = zip(lines_of(text.src), lines_of(text.ref), strict=True)
    kept = [pair for number, pair in enumerate(pairs, 1) if is_held_out(number, text) != inverted]
    for path, side in ((src, 0), (ref, 1)):
        write_text(path, "".join(f"{pair[side]}\n" for pair in kept))
