"""Synthetic data: texts to translate, their translations in a file, and the pairs that a student learns from.

Sequence-level knowledge distillation (Kim and Rush 2016, https://aclanthology.org/D16-1139): the student is trained on
the result of the teacher's beam search. With references, the one of the N best that is nearest to its reference can be
taken instead (their sequence-level interpolation). Unfit translations are dropped (``translation.filters``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import lines_of
from dragoman.data.sides import Side, doubt, refuse_by_name
from dragoman.data.text_names import form_of
from dragoman.errors import ConfigError, DataError, DecodeError, DragomanError, as_command
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.files import explained, read_report, whole_file, whole_files, write_report
from dragoman.languages.codes import variety
from dragoman.languages.scripts import is_blank
from dragoman.progress import Ticker
from dragoman.translation.assemble import LineFormat
from dragoman.translation.filters import (
    BLANK,
    DAMAGED,
    SAMPLE,
    Language,
    Made,
    least_score,
    read_rendered,
    rendered,
    unfit,
)
from dragoman.translation.language_pairs import Langs, LanguagePairs
from dragoman.translation.notes import Events
from dragoman.translation.plan import Plan
from dragoman.translation.resumable import UnfinishedFileError, forget
from dragoman.translation.translator import Translator

CHUNK = 2000
"""Lines that are filtered at a time."""

T = TypeVar("T")

FORM = "scored n-best"
"""Format name in the journal of an unfinished file of translations."""

NOTHING = '[[0.0, ""]]'
"""Rendered translation of a line that ran out of memory or has no text; any other has a score, even an empty one."""

LOST = "[]"
"""Rendered n best of a line that ran out of memory in two calls, and is left out."""

MEMORY = "out of memory"
"""Why such a line is left out."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text to translate, with or without references."""

    src: Path
    ref: Path | None = None  # line by line
    held_out: frozenset[int] | None = None  # numbers of lines, from 1, that are for validation only; None: not held out
    twins: frozenset[int] = frozenset()  # numbers of their near twins, which are left out
    n_lines: int = 0


def check_text(path: Path, lang: str | None, who: str, meant: str = "") -> None:
    """Check that a file has text, in the language that ``who`` translates from.

    Args:
        path: The file.
        lang: The language; None: any, as it is not known or the text is meant.
        who: Name of the model, for messages.
        meant: How to say that the text is meant.

    Raises:
        ConfigError, DataError: It cannot be read, has no text, or is in another language by its name or its words.
    """
    refuse_a_pipe(path)
    refuse_two_sides(path)
    side = Side(path, lang, f"{who} translates from")
    refuse_by_name([side], meant)
    sample = sample_of(path)
    if not sample:
        raise DataError(f"{path}: there is nothing to translate: no lines, or only blank ones")
    if warning := doubt(path, sample, lang, side.expected_by):
        raise DataError(f"{warning}: give text in {lang}{meant and f', or {meant}'}")


def refuse_two_sides(path: Path) -> None:
    """Refuse a table or a translation memory where lines of one language are read.

    Raises:
        ConfigError: By its name it is one; a .tsv without a tab is not.
    """
    form = form_of(path)
    if form and (form != ".tsv" or any("\t" in line for line in sample_of(path))):
        raise ConfigError(
            f"{path}: by its name a {form}, which holds both sides; give a text file with one sentence a line"
        )


def arrow(langs: Langs) -> str:
    """Return a pair of languages for messages, such as "en -> de"."""
    return " -> ".join(lang or "unknown" for lang in langs)


def check_languages(translator: Translator, names: Sequence[Path | str], plan: Plan) -> None:
    """Check that all members of an ensemble translate between the same languages.

    Raises:
        ConfigError: A member does not.
    """
    several, expected = len(translator.src_tokenizer.targets) > 1, (plan.src_lang, plan.tgt_lang)
    for name, bundle in zip(names, translator.bundles, strict=True):
        pair = LanguagePairs.of(bundle).direction(plan.tgt_lang if several else None, plan.options.from_lang)
        if tuple(map(variety, pair)) != tuple(map(variety, expected)):
            raise ConfigError(
                f"{name}: translates {arrow(pair)}, and {names[0]} {arrow(expected)}: ensemble members must "
                "share their languages"
            )


def sample_of(path: Path) -> list[str]:
    """Return the first ``SAMPLE`` lines of a text that are not blank."""
    return list(islice((line for line in lines_of(path) if line.strip()), SAMPLE))


def sides_of(folder: Path, stem: str, langs: Langs) -> tuple[Path, Path]:
    """Return the paths of a pair of files: ``STEM.en`` and ``STEM.de``, or ``STEM.src`` and ``STEM.tgt``."""
    src, tgt = langs if variety(langs[0]) != variety(langs[1]) else (None, None)
    return folder / f"{stem}.{src or 'src'}", folder / f"{stem}.{tgt or 'tgt'}"


def is_held_out(number: int, text: Text) -> bool:
    """True if a line, counted from 1, is for validation."""
    return text.held_out is not None and number in text.held_out


def translate_text(
    translator: Translator, plan: Plan, files: tuple[Path, Path], progress: Callable[[int, int], None], ticker: Ticker
) -> None:
    """Translate a text into a file of scored translations; a partial file is resumed, a complete one is left.

    Lines that run out of memory are tried again at the end, and by the next call, which leaves out those that fail.

    Args:
        files: The text and its translations.
        progress: Called with the number of lines that are translated and read.

    Raises:
        DragomanError: The partial file cannot be resumed, such as on another device.
        DecodeError: Lines ran out of memory, in the first call.
    """
    src, out = files
    is_first = not out.exists()
    if is_first:
        try:
            events = Events(progress=lambda done, read, _: progress(done, read))
            translator.translate_file(src, out, plan, form=LineFormat(FORM, rendered), events=events)
        except DecodeError:
            if not out.exists():  # else lines ran out of memory, and have no translation yet
                raise
        except UnfinishedFileError as error:
            remove = as_command("rm", error.partial, error.journal)
            raise DragomanError(
                f"{error.partial}: this unfinished file {error.what}; restore it, or start over: {remove}"
            ) from None
    forget(out)  # a kill right after the last line leaves a journal
    if not (lost := _try_again(translator, plan, files, ticker, gives_up=not is_first)):
        return
    lines = f"{src}: {len(lost):,} line{'s' * (len(lost) > 1)} ran out of memory"
    which = ", ".join(map(str, lost[:FEW])) + ", ..." * (len(lost) > FEW)
    if is_first:
        raise DecodeError(
            f"{lines}; free some memory, and give the same command again: it tries these lines alone (line {which}), "
            "and leaves out those that fail again"
        )
    ticker.say(f"{lines} again and are left out (line {which})")


FEW = 5
"""Most lines that a message names by their numbers."""


def _try_again(
    translator: Translator, plan: Plan, files: tuple[Path, Path], ticker: Ticker, *, gives_up: bool
) -> list[int]:  # fmt: skip
    """Translate the lines that ran out of memory once more; return the numbers of those that do again, from 1.

    Args:
        gives_up: True marks these as lost.
    """
    src, out = files

    def lines() -> Iterator[tuple[str, str]]:
        """Yield each translation, and its line if it has none; else an empty line, which costs no time."""
        for line, made in zip(lines_of(src), lines_of(out), strict=True):
            yield line if made == NOTHING and not is_blank(line) else "", made

    if not any(line for line, _ in lines()):
        return []
    lost: list[int] = []
    with ticker.task(f"{src}: trying lines again that ran out of memory"), explained(out), whole_file(out) as file:
        for before, chunk in zip(count(0, CHUNK), chunks(lines()), strict=False):
            texts = [line for line, _ in chunk]
            again = translator.translate(texts, plan, events=Events(failed=lambda _: None), first_number=before)
            for number, ((line, made), translation) in enumerate(zip(chunk, again, strict=True), before + 1):
                fails = any(note.kind == "memory" for note in translation.notes)
                lost += [number] * fails
                new = LOST if fails and gives_up else rendered(number, translation) if line else made
                file.write(f"{new}\n".encode())
    return lost


def translate_texts(teacher: Translator, plan: Plan, texts: Sequence[Text], folder: Path, ticker: Ticker) -> list[Path]:
    """Translate each text with the teacher; return the files of translations."""
    paths, total = [], sum(text.n_lines for text in texts)
    for i, text in enumerate(texts):
        before = sum(earlier.n_lines for earlier in texts[:i])

        def progress(done: int, _: int, before: int = before) -> None:
            ticker(before + done, total, "lines translated by the teacher")

        paths.append(folder / f"translations-{i}.jsonl")
        translate_text(teacher, plan, (text.src, paths[-1]), progress, ticker)
    return paths


def choose(
    texts: Sequence[Text], translations: Sequence[Path], plan: Plan, outs: Sequence[BinaryIO], drop_worst: float,
    ticker: Ticker,
) -> dict[str, int]:  # fmt: skip
    """Write the pairs that the student learns from.

    Args:
        outs: The files of both sides, open for writing.

    Returns:
        Number of ``lines``, of pairs that are ``kept``, and of those dropped for each reason.

    Raises:
        DataError: No pair is kept.
    """
    firsts = (made for path in translations for line in lines_of(path) for made in read_rendered("", line)[:1])
    least, language = least_score(firsts, drop_worst), Language(plan.tgt_lang, first_translations(translations))
    counts: Counter[str] = Counter()
    total = sum(text.n_lines for text in texts)
    for text, path in zip(texts, translations, strict=True):
        for chunk in chunks(_lines(text, path)):
            made = list(_nearest_of(chunk, counts))
            for translation, why in zip(made, unfit(made, plan, language, least), strict=True):
                counts[why or "kept"] += 1
                if not why:
                    outs[0].write(f"{translation.src}\n".encode())
                    outs[1].write(f"{translation.text}\n".encode())
            counts["lines"] += len(chunk)
            ticker(counts["lines"], total, "translations filtered")
    if not counts["kept"]:
        raise DataError(f"{texts[0].src}: no translation is fit to learn from ({dict(counts)}); is it the right text?")
    return dict(counts)


def is_damaged(*sides: str | None) -> bool:
    """True if a line holds U+FFFD, as one with bytes that are not UTF-8 does."""
    return any(side is not None and "\ufffd" in side for side in sides)


def chunks(items: Iterator[T]) -> Iterator[list[T]]:
    """Yield lists of ``CHUNK`` items; the last may be shorter."""
    while chunk := list(islice(items, CHUNK)):
        yield chunk


def first_translations(paths: Iterable[Path]) -> list[str]:
    """Return a sample of the best translations, from which their language is detected."""
    lines = (line for path in paths for line in islice(lines_of(path), SAMPLE))
    return [made.text for line in lines for made in read_rendered("", line)[:1]]


_Line = tuple[str | None, list[Made], str]
"""Reference of a line (or None), its n best translations, and why it is left out ("" if it is not)."""


def _lines(text: Text, translations: Path) -> Iterator[_Line]:
    refs: Iterator[str | None] = iter(lambda: None, 0) if text.ref is None else iter(lines_of(text.ref))
    for number, (src, n_best) in enumerate(zip(lines_of(text.src), lines_of(translations), strict=True), 1):
        ref = next(refs, None)
        why = "held out" if is_held_out(number, text) else "near twins of these" if number in text.twins else ""
        why = why or (DAMAGED if is_damaged(src, ref) else MEMORY if n_best == LOST else "")
        yield ref, read_rendered(src, n_best), why


def _nearest_of(chunk: Sequence[_Line], counts: Counter[str]) -> Iterator[Made]:
    """Yield one translation of each line to learn from; count the lines that are held out or blank."""
    for ref, n_best, why in chunk:
        if why or is_blank(n_best[0].src):
            counts[why or BLANK] += 1
        else:
            yield _nearest(n_best, ref)._replace(score=n_best[0].score)  # lines are dropped by their best score


def _nearest(n_best: Sequence[Made], ref: str | None) -> Made:
    """Return the translation with the highest chrF to the reference; among equals, or without one, the first."""
    if ref is None or len(n_best) < 2:
        return n_best[0]
    scores = sentence_chrf([made.text for made in n_best], [ref] * len(n_best))
    return n_best[max(range(len(n_best)), key=lambda i: (scores[i], -i))]


def hold_out(text: Text, sides: tuple[Path, Path], inverted: bool = False) -> None:
    """Write the pairs that are held out, unless an earlier call did: a file for each side, and a report on them.

    Args:
        sides: The files to write; the report is next to them, under their name with ``.json``.
        inverted: True writes all other pairs.
    """
    assert text.ref is not None
    report = sides[0].with_suffix(".json")
    if read_report(report, sides) is not None:
        return
    n_pairs = 0
    with explained(report), whole_files(sides, report) as outs:
        pairs = zip(lines_of(text.src), lines_of(text.ref), strict=True)
        for number, pair in enumerate(pairs, 1):
            is_out = is_held_out(number, text)
            if is_out if not inverted else not (is_out or number in text.twins or is_damaged(*pair)):
                n_pairs += 1
                for out, line in zip(outs, pair, strict=True):
                    out.write(f"{line}\n".encode())
    write_report(report, {"pairs": n_pairs}, sides)
