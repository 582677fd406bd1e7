"""The fault suite: one named test for each promise of docs/project/promises.md, which says its figure."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def figure() -> Callable[[str, str], None]:
    """A function that says what a row measured: ``figure("D1", "24 files, 0 counts differ")``.

    ``make test-faults`` shows the lines. They are also added to the file that DRAGOMAN_FIGURES names, if it is set.
    """

    def say(row: str, text: str) -> None:
        print(f"\n{row}: {text}", flush=True)
        if path := os.environ.get("DRAGOMAN_FIGURES"):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"row": row, "figure": text}, ensure_ascii=False) + "\n")

    return say
