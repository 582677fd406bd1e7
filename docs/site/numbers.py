"""Numbers of the results: each stands before a comment that says where it is from.

    39.1<!-- multi30k.json:figures/scores/BLEU/mean as .1f -->

So a page reads well anywhere, and a number is never only typed: the build compares it, and
``python -m docs.site numbers`` writes it again. The file is below benchmarks/results, or in docs/lab
(``lab/heads/numbers.json``); the path goes through its keys and the places of its lists; behind ``as`` is a format of
Python's. ``a ÷ b`` divides two numbers of that file.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from docs.site.problems import place

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"([+-]?\d(?:[\d,.]*\d)?(?:e[+-]?\d+)?%?)<!-- ([\w./-]+\.json):([^>]+?) as (\S*) -->")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
ANY_MARK = re.compile(r"<!-- [^>]*\.json:[^>]*-->")


@cache
def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _value(record: Any, path: str) -> float:
    for key in re.split(r"(?<! )/(?! )", path.strip()):  # between spaces it is part of a key
        record = record[int(key) if isinstance(record, list) else key]
    return record


def written(name: str, path: str, form: str) -> str:
    """The number as the page has to show it.

    Raises:
        KeyError, IndexError, FileNotFoundError, TypeError, ValueError: There is no such number.
    """
    record = _read(ROOT / ("docs" if name.startswith("lab/") else "benchmarks/results") / name)
    values = [_value(record, part) for part in path.split("÷")]
    return format(values[0] / values[1] if len(values) == 2 else values[0], form)


def renewed(page: str, text: str) -> tuple[str, list[str]]:
    """The text with each number as its file has it, and what was wrong: a number, or where it is from."""
    problems = []
    code = [found.span() for found in CODE.finditer(text)]

    def is_code(found: re.Match[str]) -> bool:
        return any(start <= found.end() - 1 < end for start, end in code)

    def renew(found: re.Match[str]) -> str:
        if is_code(found):
            return found[0]
        try:
            number = written(*found.group(2, 3, 4))
        except (KeyError, IndexError, OSError, TypeError, ValueError) as error:
            problems.append(
                f"{place(page, text, found.start())}: {found[2]} has no {found[3]}: {type(error).__name__}: {error}"
            )
            return found[0]
        if number != found[1]:
            problems.append(f"{place(page, text, found.start())}: {found[1]}, but {found[2]}:{found[3]} is {number}")
        return found[0].replace(found[1], number, 1)

    new = MARK.sub(renew, text)
    marked = {found.end() for found in MARK.finditer(text)}
    problems += [
        f"{place(page, text, found.start())}: no number before {found[0]}"
        for found in ANY_MARK.finditer(text)
        if found.end() not in marked and not is_code(found)
    ]
    return new, problems


def without_numbers(text: str) -> str:
    """The text with all that its marks decide left out."""
    return MARK.sub("", text)
