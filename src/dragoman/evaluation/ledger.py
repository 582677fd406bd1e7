"""Ledger of a run: each evaluation of it, so that a test set that is read again and again is noticed.

evaluations.jsonl    one JSON object a line: date, files, number of lines, digest of the test set, weights, scores
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import DragomanError
from dragoman.evaluation.metrics import Score
from dragoman.files import MANIFEST, explained, missing_line_end
from dragoman.translation.translator import Translator

LEDGER = "evaluations.jsonl"


class TestSet(NamedTuple):
    """The files of a test set, and their lines."""

    files: Sequence[str]
    lines: Sequence[Sequence[str]]

    @property
    def digest(self) -> str:
        """SHA-256 of all lines."""
        text = "\0".join("\n".join(side) for side in self.lines)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def enter(translator: Translator, test: TestSet, scores: Sequence[Score]) -> str:
    """Enter an evaluation in the ledger of a run; return a note if its test set was read before, else "".

    A bundle alone has no ledger.
    """
    run = translator.run
    if run is None or (run / MANIFEST).is_file():
        return ""
    path, digest = run / LEDGER, test.digest
    entry = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "files": list(map(str, test.files)),
        "lines": len(test.lines[0]), "sha256": digest, "weights": translator.bundle.facts.sha256,
        "scores": {score.name: score.value for score in scores},
    }  # fmt: skip
    line = (json.dumps(entry) + "\n").encode()
    n, why_not = 1 + sum(earlier.get("sha256") == digest for earlier in read(run)), ""
    try:
        with explained(path, len(line)), path.open("ab+") as file:
            file.write(missing_line_end(file) + line)  # a kill may have torn the last line
    except DragomanError as error:
        why_not = f"this evaluation is not counted: {error}"
    advice = (
        f"evaluation {n} of {run} on {test.files[0]}: if you choose by its scores, measure on other text at the end"
    )
    return "; ".join(filter(None, (advice if n > 1 else "", why_not)))


def read(run: Path) -> list[dict[str, Any]]:
    """Return the entries of the ledger of a run, without lines that are damaged."""
    try:
        lines = (run / LEDGER).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries
