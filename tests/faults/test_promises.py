"""docs/project/promises.md and the fault suite name the same rows."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PROMISES = (HERE.parent.parent / "docs/project/promises.md").read_text(encoding="utf-8")
LAST = {"T": 11, "D": 6, "X": 10, "M": 6, "F": 4, "S": 32, "A": 6, "H": 11, "R": 3, "K": 3, "L": 2, "N": 3}
ROWS = [f"{letter}{i}" for letter, last in LAST.items() for i in range(1, last + 1) if f"{letter}{i}" != "S6"]
"""S6 is a measurement: benchmarks/api_schema.py."""
FILES = [
    *HERE.glob("test_*.py"),
    *(HERE.parent / name for name in ("browser/test_serve_page.py", "serving/test_folders.py")),
    *(HERE.parent / name for name in ("training/test_checkpoint.py", "decoding/test_constraints.py")),
    *(HERE.parent / f"test_{part}.py" for part in ("parser_budget", "ready", "files")),
    HERE.parent / "translation/test_resumable.py",
    *(HERE.parent / f"e2e/test_{part}.py" for part in ("changed_folder", "torchrun")),
    *(HERE.parent / f"serving/test_{part}.py" for part in ("admission", "apis", "bodies", "connections")),
    *(HERE.parent / f"serving/test_{part}.py" for part in ("hostile_bodies", "key_files", "keys_apart")),
    *(
        HERE.parent / name
        for name in ("languages/test_codes.py", "serving/test_batcher.py", "serving/test_documents.py")
    ),
]


def test_every_row_stands_in_the_promises_and_its_tests_where_they_say() -> None:
    found = dict(re.findall(r"^\| ([A-Z]\d+) \| .* \| ([^|]+) \|$", PROMISES, flags=re.MULTILINE))
    assert list(found) == ROWS
    for row, files in found.items():
        named = set(re.findall(r"`(\w+\.py)`", files))
        holding = {path.name for path in FILES if f"\ndef test_{row}_" in path.read_text("utf-8")}
        assert named == holding, row


def test_every_test_of_a_row_says_its_figure() -> None:
    for row in ROWS:
        sources = [path.read_text(encoding="utf-8") for path in FILES]
        assert any(re.search(rf'figure\(\s*"{row}"', source) for source in sources), row
