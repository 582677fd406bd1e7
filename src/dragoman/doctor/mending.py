"""Write a text mended: lines put side by side, forms of lines repaired, and what cannot be repaired left out.

mended = write_mended(text, examination, (Path("clean.en"), Path("clean.de")))
mended.log      # clean.en.log.tsv: every line that was mended or dropped, and why
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from dragoman.config import TextFiles
from dragoman.data.compression import compressor
from dragoman.data.corpus import advice, conversion, encoding_of, open_corpus, read_line
from dragoman.data.encodings import SAMPLE_BYTES, Encoding, recognise
from dragoman.data.texts import files_of
from dragoman.doctor.findings import Finding, Place
from dragoman.doctor.forms import without_tags
from dragoman.doctor.paired_lines import Pairs, Reading
from dragoman.doctor.realignment import gaps
from dragoman.doctor.text_checks import Examination, names_of
from dragoman.errors import ConfigError, DataError
from dragoman.files import check_output, explained, refuse_others, refuse_twice, whole_files
from dragoman.languages.codes import language_of
from dragoman.languages.scripts import is_blank

MENDED = (
    "encoding", "column", "subword-marks", "entity", "mojibake", "control", "full-width", "normal-form",
    "no-break-words", "invisible", "mixed-script", "tokenised", "markup", "swapped-sides",
)  # fmt: skip
"""Kinds that are repaired."""

DROPPED = (
    "placeholder", "truncated", "untranslated", "source-script", "target-script", "source-language", "target-language",
    "misaligned", "replacement", "not-utf8", "nul", "too-long-line", "line-break", "boilerplate", "duplicate",
)  # fmt: skip
"""Kinds whose pairs are left out, where they are more than a note."""

MENDABLE = frozenset((*MENDED, *DROPPED, "shifted", "empty"))
"""Kinds of which a mended text is free."""

COLUMNS = "action\treason\tsource line\ttarget line\tsource\ttarget"
"""Headings of the log."""

BLOCK_CHARACTERS = 2**20
"""Characters of text that are written at a time."""


@dataclass(frozen=True)
class Mended:
    """Files and counts of a text that was written mended."""

    files: tuple[Path, Path]
    log: Path
    n_pairs: int  # pairs of the text, once lines were put side by side
    n_written: int
    mended: dict[str, int]  # pairs by kind
    dropped: dict[str, int]  # pairs and lines by kind

    def in_words(self) -> str:
        """Return one line that says what was written."""
        are = "pair is" if self.n_written == 1 else "pairs are"
        words = [f"{self.n_written:,} {are} in {self.files[0]} and {self.files[1]}"]
        for what, counts in (("mended", self.mended), ("dropped", self.dropped)):
            if counts:
                listed = ", ".join(f"{n:,} {name}" for name, n in sorted(counts.items(), key=lambda item: -item[1]))
                words.append(f"{what}: {listed}")
        return f"{'; '.join(words)}; every line of it is in {self.log}"


def check_mended(
    texts: Sequence[TextFiles], outs: tuple[Path, Path], inputs: Sequence[Path], listed: Path | None = None
) -> None:
    """Check, before minutes are spent on the examination, that a mended text can be written.

    Args:
        texts: The texts to examine.
        outs: Source and target file to write.
        inputs: All files that are read: the texts, a configuration, validation and test text.
        listed: Another file that is to be written, which is checked already.

    Raises:
        ConfigError: There are several texts, a file cannot be written, is an input, or is a pipe or a device, its
            name asks for another compression than ``.gz`` and ``.zst``, or the log would replace another file than a
            log.
        DataError: zstandard is missing for ``.zst``.
    """
    if len(texts) != 1:
        raise ConfigError(f"--write mends one text at a time, got {len(texts)}; give each by itself")
    paths = [*outs, log_of(outs)]
    for path in paths:
        check_output(path, *inputs)
        compressor(path)
        if path.exists() and not path.is_file():
            raise ConfigError(
                f"{path}: must be a file, as mended text appears when all is written; choose another name"
            )
    paths += [] if listed is None else [listed]
    if len({path.absolute() for path in paths}) < len(paths):
        raise ConfigError(f"{outs[0]}, {outs[1]}: must be two files, and neither the log {log_of(outs)} nor the list")
    refuse_twice(*paths)
    why = "the log of the mended text would replace this file, which is no such log"
    refuse_others(log_of(outs), why, f"{COLUMNS}\n".encode())


def log_of(outs: tuple[Path, Path]) -> Path:
    """Return the name of the log beside a mended text; mended texts of other names have other logs."""
    return outs[0].parent / f"{outs[0].name}.log.tsv"


def write_mended(text: TextFiles, examination: Examination, outs: tuple[Path, Path]) -> Mended:
    """Write a text mended, with a log of what was mended or dropped and why.

    Args:
        text: The text that was examined.
        examination: Its examination.
        outs: Source and target file to write, also ``.gz`` and ``.zst``.

    Raises:
        DataError: The text cannot be read, or the encoding of a file is not certain.
        DragomanError: A file cannot be written.
    """
    _refuse_guesses(text, examination.reading)
    log, counts = log_of(outs), (Counter[str](), Counter[str]())
    n = n_written = 0
    with explained(outs[0]), whole_files((*outs, log), log) as files:
        writers = [_Writer(file, path) for file, path in zip(files, (*outs, log), strict=True)]
        writers[2].write(COLUMNS)
        for pair in mended_pairs(text, examination):
            n += pair.is_pair
            if pair.action:
                writers[2].write("\t".join((pair.action, pair.reason, *pair.numbers, *map(escaped, pair.before))))
                counts[pair.action == "dropped"].update(pair.reason.split(", "))
            if pair.action != "dropped":
                n_written += 1
                writers[0].write(pair.after[0])
                writers[1].write(pair.after[1])
        for writer in writers:
            writer.flush()
    return Mended(outs, log, n, n_written, dict(counts[0]), dict(counts[1]))


def _refuse_guesses(text: TextFiles, reading: Reading) -> None:
    """Check that each file that is not UTF-8 was read in an encoding that is certain.

    Raises:
        DataError: The encoding was a guess, and other characters may be meant.
    """
    for path, codec in zip(files_of(text), reading.codecs, strict=False):
        if codec is None:
            continue
        encoding = encoding_of(path)
        if encoding == Encoding(codec, certain=True):
            encoding = _by_all_bytes(path, encoding)
        if encoding != Encoding(codec, certain=True):
            how = advice(path, 1) if encoding is None else conversion(encoding, path)
            raise DataError(f"{path}: not UTF-8, and --write does not guess its encoding: {how}")


def _by_all_bytes(path: Path, encoding: Encoding) -> Encoding:
    """Return the encoding of a file by its first lines and those with a byte that no line before them has.

    The first lines alone may lack the characters in which similar encodings differ, such as the sign of the euro.

    Args:
        path: The file.
        encoding: The one that its first lines show; returned where the file is damaged, or has characters of two bytes.
    """
    lines: list[bytes] = []
    seen, free = bytes(range(128)), SAMPLE_BYTES // 2
    with open_corpus(path) as stream:
        while line := read_line(stream, str(path)):
            unseen = line.translate(None, seen)
            if unseen or (free > 0 and not line.isascii()):
                lines.append(line)
                free -= len(line)
                seen += bytes(set(unseen))
    sample = b"".join(lines)
    try:
        sample.decode(encoding.codec)
    except UnicodeError:
        return encoding
    is_utf = encoding.codec.startswith("utf")  # a line of its bytes may end within a character
    return encoding if is_utf else recognise(sample, language_of(path)) or encoding


@dataclass(frozen=True)
class MendedPair:
    """A pair, or a line without a partner, before and after."""

    numbers: tuple[str, str]  # of the lines; "" where there is none
    before: tuple[str, str]
    after: tuple[str, str]
    action: str = ""  # "mended", "dropped", or "" where nothing was done
    reason: str = ""  # names of findings
    is_pair: bool = True


def mended_pairs(text: TextFiles, examination: Examination) -> Iterator[MendedPair]:
    """Yield every pair of a text with what was done to it, and every line without a partner.

    Raises:
        DataError: The text cannot be read.
    """
    reading = examination.reading
    plain = replace(reading, repairs=(None, None))
    cursors = _Cursors(text, examination.findings)
    without = _without_partner(text, plain)
    waiting = next(without, None)
    n = 0
    for src, tgt in Pairs(text, reading=plain):
        if src is None or tgt is None:
            if not reading.segments:  # else the gaps speak of them
                n += 1
                yield _alone(0, n, src) if src is not None else _alone(1, n, tgt or "")
            continue
        numbers = reading.line(n, 0), reading.line(n, 1)
        while waiting is not None and waiting[1] <= numbers[waiting[0]]:
            yield _alone(*waiting)
            waiting = next(without, None)
        yield _mended(reading, cursors, numbers, (src, tgt))
        n += 1
    while waiting is not None:
        yield _alone(*waiting)
        waiting = next(without, None)


def _mended(reading: Reading, cursors: _Cursors, numbers: tuple[int, int], before: tuple[str, str]) -> MendedPair:
    """Return one pair mended, or dropped."""
    names = cursors.names(numbers)
    after = [repair(line) if repair else line for repair, line in zip(reading.repairs, before, strict=True)]
    for side in (0, 1):
        if ("markup", side) in names:
            after[side] = without_tags(after[side], after[1 - side])
    if ("swapped-sides", 2) in names:
        after.reverse()
    shown = str(numbers[0]), str(numbers[1])
    reasons = list(dict.fromkeys(name for name, _ in names if name in DROPPED))
    if any(is_blank(line) for line in after):
        reasons = ["empty"]
    if reasons:
        return MendedPair(shown, before, (after[0], after[1]), "dropped", ", ".join(reasons))
    if tuple(after) == before:
        return MendedPair(shown, before, before)
    reasons = list(dict.fromkeys(name for name, _ in names if name in MENDED))
    return MendedPair(shown, before, (after[0], after[1]), "mended", ", ".join(reasons) or "form")


def _alone(side: int, number: int, line: str) -> MendedPair:
    """Return a line without a partner, as dropped."""
    numbers, lines = ["", ""], ["", ""]
    numbers[side], lines[side] = str(number), line
    texts = lines[0], lines[1]
    return MendedPair((numbers[0], numbers[1]), texts, texts, "dropped", "shifted", is_pair=False)


def _without_partner(text: TextFiles, reading: Reading) -> Iterator[tuple[int, int, str]]:
    """Yield side, number and text of each line between the segments, ascending in each side."""
    if not reading.segments:
        return
    as_it_stands = reading.as_it_stands()
    # The lines are counted to know those behind the last segment: a file is read once more for them.
    n_src = n_tgt = 0
    for src, tgt in Pairs(text, reading=as_it_stands):
        n_src += src is not None
        n_tgt += tgt is not None
    pending = gaps(reading.segments, (n_src, n_tgt))
    numbers = [
        {line for gap in pending if gap.side == side for line in range(gap.first, gap.last + 1)} for side in (0, 1)
    ]
    for i, pair in enumerate(Pairs(text, reading=as_it_stands), start=1):
        for side, line in enumerate(pair):
            if line is not None and i in numbers[side]:
                yield side, i, line


class _Cursors:
    """The lines of findings that are more than notes, looked up in ascending order."""

    def __init__(self, text: TextFiles, findings: Sequence[Finding]) -> None:
        files = names_of(text)
        self._runs: dict[tuple[str, int], list[Place]] = {}
        for finding in findings:
            # Free translations are among the pairs that do not seem to belong together: a few are left alone.
            counts = finding.is_harmful if finding.name == "misaligned" else finding.level != "note"
            if counts and finding.name in (*MENDED, *DROPPED):
                for place in finding.places:
                    side = files.index(place.file) if place.file in files else 2
                    self._runs.setdefault((finding.name, side), []).append(place)
        self._at = dict.fromkeys(self._runs, 0)

    def names(self, numbers: tuple[int, int]) -> list[tuple[str, int]]:
        """Return kind and side (0 source, 1 target, 2 both) of the findings that a pair of line numbers is in."""
        result = []
        for key, places in self._runs.items():
            line = numbers[1 if key[1] == 1 else 0]
            at = self._at[key]
            while at < len(places) and places[at].last < line:
                at += 1
            self._at[key] = at
            if at < len(places) and places[at].first <= line:
                result.append(key)
        return result


class _Writer:
    """A file that is written line by line, compressed as its name says."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._compressed = file, compressor(path)
        self._lines: list[str] = []
        self._size = 0

    def write(self, line: str) -> None:
        """Write a line; a line break within becomes a space."""
        self._lines.append(line.replace("\n", " "))
        self._size += len(line)
        if self._size >= BLOCK_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        text = "".join(f"{line}\n" for line in self._lines)
        if text or not self._file.tell():  # an empty compressed file has a header
            self._file.write(self._compressed(text.encode("utf-8", "surrogatepass")))
        self._lines, self._size = [], 0


def escaped(text: str) -> str:
    """Return text as one cell of a table: backslash, tab, CR and LF are written as escapes."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")
