"""Numbers of the results: a file of the site says where each number of a page is from, so that pages stay plain text.

    cased sacreBLEU | {} |
        multi30k.json:figures/scores/BLEU/mean as .1f

That file has the page's path below docs/site/numbers, with ``.txt`` behind it. Lines at the margin are a part of the
page that occurs there once, with ``{}`` for each number; the indented lines below it say where the numbers are from, in
their order. The result's file is below benchmarks/results, or in docs/lab (``lab/heads/numbers.json``); the path goes
through its keys and the places of its lists; behind ``as`` is a format of Python's. ``a ÷ b`` divides two numbers of
that file.

So a number is never only typed: the build compares it, and ``python -m docs.site numbers`` writes it again. Whoever
writes a page may put a comment behind a number, ``39.1<!-- multi30k.json:figures/scores/BLEU/mean as .1f -->``: the
same command moves it into that file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from docs.site.problems import place

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"[+-]?\d(?:[\d,.]*\d)?(?:e[+-]?\d+)?%?"
MARK = re.compile(rf"({NUMBER})<!-- ([\w./-]+\.json:[^>]+? as \S*) -->")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
ANY_MARK = re.compile(r"<!-- [^>]*\.json:[^>]*-->")
INDENT = "    "
BEFORE, AFTER, MOST_LINES = 24, 3, 12
"""Characters before the first and behind the last number of a line that say where they are; most lines that are taken
where such a part of a line occurs several times."""


class Entry(NamedTuple):
    """A part of a page with numbers, and where each is from."""

    text: str
    sources: tuple[str, ...]

    def places_in(self, text: str) -> list[re.Match[str]]:
        """Where this part stands in a text, with a group for each number; places may overlap."""
        pattern = f"({NUMBER})".join(map(re.escape, self.text.split("{}")))
        return list(re.finditer(rf"(?<![\d,.+-])(?={pattern})", text))


class Marked(NamedTuple):
    """A number of a page, its place, and where it is from."""

    start: int
    number: str
    source: str


@cache
def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _value(record: Any, path: str) -> float:
    for key in re.split(r"(?<! )/(?! )", path.strip()):  # between spaces it is part of a key
        record = record[int(key) if isinstance(record, list) else key]
    return record


def written(source: str) -> str:
    """The number as the page has to show it.

    Raises:
        KeyError, IndexError, FileNotFoundError, TypeError, ValueError: There is no such number.
    """
    name, _, path_and_form = source.partition(":")
    path, _, form = path_and_form.rpartition(" as ")
    record = _read(ROOT / ("docs" if name.startswith("lab/") else "benchmarks/results") / name)
    values = [_value(record, part) for part in path.split("÷")]
    return format(values[0] / values[1] if len(values) == 2 else values[0], form)


def file_of(page: str) -> Path:
    """The file that says where the numbers of a page are from."""
    return ROOT / "docs/site/numbers" / f"{page}.txt"


def entries_of(page: str) -> list[Entry]:
    """The parts of a page that have numbers."""
    path, entries, margin = file_of(page), [], ""
    for line in path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else ():
        if line.startswith(INDENT):
            if margin:
                entries.append(Entry(margin, ()))
                margin = ""
            entries[-1] = entries[-1]._replace(sources=(*entries[-1].sources, line.strip()))
        else:
            margin = f"{margin}\n{line}" if margin else line
    return entries


def numbers_of(page: str, text: str) -> tuple[list[Marked], list[str]]:
    """The numbers of a page in their order, and which parts of it are not there, or several times."""
    marked, problems = [], []
    for entry in entries_of(page):
        found = entry.places_in(text)
        if len(found) != 1 or len(entry.sources) != entry.text.count("{}"):
            problems.append(
                f"{page}: {entry.text!r} must be there once, with {len(entry.sources)} numbers, but is there "
                f"{len(found)} times: mend {file_of(page).relative_to(ROOT)}"
            )
            continue
        places = range(1, len(entry.sources) + 1)
        marked += [Marked(found[0].start(i), found[0][i], entry.sources[i - 1]) for i in places]
    return sorted(marked), problems


def renewed(page: str, text: str) -> tuple[str, list[str]]:
    """The text with each number as its file has it, and what was wrong: a number, or where it is from."""
    marked, problems = numbers_of(page, text)
    new = text
    for start, number, source in reversed(marked):
        where, about = place(page, text, start), source.rpartition(" as ")[0]
        try:
            right = written(source)
        except (KeyError, IndexError, OSError, TypeError, ValueError) as error:
            name, _, path = about.partition(":")
            problems.append(f"{where}: {name} has no {path}: {type(error).__name__}: {error}")
            continue
        if right != number:
            problems.append(f"{where}: {number}, but {about} is {right}")
        new = new[:start] + right + new[start + len(number) :]
    problems += [
        f"{place(page, text, start)}: a mark in the page; move it with python -m docs.site numbers"
        for start in _marks_in(text)
    ]
    return new, problems


def without_numbers(page: str, text: str) -> str:
    """The text with all numbers left out that come from results."""
    for start, number, _ in reversed(numbers_of(page, text)[0]):
        text = text[:start] + text[start + len(number) :]
    return text


# --- moving comments out of the pages ---------------------------------------------------------------------------------


def _marks_in(text: str) -> Iterator[int]:
    """The places of the comments behind numbers, but for those in code."""
    code = [found.span() for found in CODE.finditer(text)]
    for found in ANY_MARK.finditer(text):
        if not any(start <= found.end() - 1 < end for start, end in code):
            yield found.start()


def moved(page: str, text: str) -> tuple[str, list[Entry]]:
    """The text without comments behind numbers, and all entries of the page, those of its comments among them."""
    places, offset = set(_marks_in(text)), 0
    plain: list[str] = []
    with_numbers: dict[int, Entry] = {}
    for number, line in enumerate(text.split("\n")):
        found = [mark for mark in MARK.finditer(line) if offset + mark.end(1) in places]
        offset += len(line) + 1
        shown, named = line, line
        for mark in reversed(found):
            shown = shown[: mark.end(1)] + shown[mark.end() :]
            named = f"{named[: mark.start()]}{{}}{named[mark.end() :]}"
        plain.append(shown)
        if found:
            with_numbers[number] = Entry(named, tuple(mark[2] for mark in found))
    new = _shortened(plain, with_numbers)
    replaced = [plain[number] for number in with_numbers]
    older = [entry for entry in entries_of(page) if not any(map(entry.places_in, replaced))]
    whole = "\n".join(plain)
    placed = [(found[0].start(), entry) for entry in [*older, *new] if (found := entry.places_in(whole))]
    return whole, [entry for _, entry in sorted(placed)]


def _shortened(plain: list[str], with_numbers: Mapping[int, Entry]) -> list[Entry]:
    """Entries for the lines with numbers: a part of the line; where that occurs several times, lines before it too."""
    text, covered, entries = "\n".join(plain), set(), []
    for number in sorted(with_numbers, reverse=True):
        if number in covered:
            continue
        for entry, n_lines in _candidates(plain, with_numbers, number):
            if len(entry.places_in(text)) == 1:
                entries.append(entry)
                covered |= set(range(number - n_lines + 1, number + 1))
                break
        else:
            raise ValueError(f"line {number + 1} stands there several times: {plain[number]}")
    return entries


def _candidates(plain: list[str], with_numbers: Mapping[int, Entry], number: int) -> Iterator[tuple[Entry, int]]:
    """Parts of a page that end with a line, the shortest first, each with the number of its lines."""
    own = with_numbers[number]
    first, last = own.text.index("{}"), own.text.rindex("{}") + 2
    short = re.sub(r"^\S*\s+", "", own.text[max(0, first - BEFORE) : first]) if first > BEFORE else own.text[:first]
    yield own._replace(text=(short + own.text[first : last + AFTER]).rstrip()), 1
    yield own._replace(text=own.text[: last + AFTER].rstrip()), 1
    yield own, 1
    entry = own
    for before in range(number - 1, max(-1, number - MOST_LINES), -1):
        earlier = with_numbers.get(before, Entry(plain[before], ()))
        entry = Entry(f"{earlier.text}\n{entry.text}", earlier.sources + entry.sources)
        if plain[before]:
            yield entry, number - before + 1


def write_entries(page: str, entries: list[Entry]) -> None:
    """Write the file that says where the numbers of a page are from; a page without numbers has none."""
    path = file_of(page)
    if not entries:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [line for entry in entries for line in (entry.text, *(f"{INDENT}{source}" for source in entry.sources))]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
