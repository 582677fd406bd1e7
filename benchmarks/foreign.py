"""Run what other people's tests and programs expect, record what holds, and write the page that explains the rest.

    python -m benchmarks.foreign            run tests/foreign with all peers: foreign.json and its page
    python -m benchmarks.foreign --redraw   write the page again from the record

``make test-foreign`` installs the peers and runs the same tests, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, save

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/project/foreign-tests.md"
PACKAGES = ("torch", "sacrebleu", "sentencepiece", "transformers", "ctranslate2", "onnxruntime")

HEAD = """\
# What other people's tests expect

Each row is a suite of values that somebody else expects: a table in a project's tests, or the answer of its program.
They are compared with this code by `make test-foreign`, which installs the peers by name below `.bench/foreign` (Marian
alone is 600 MB); what needs no big peer is also in `make test`. Values stand in [tests/foreign](../../tests/foreign),
with their source. Texts and trees are generated. What needs a corpus, or a program that cannot be installed by name, is
counted as skipped.

A value that fails is a fault that will be mended, or a difference that stays; below the table each has its reason.
"""


def run() -> list[dict[str, Any]]:
    """Run the tests; returns of each suite how many values passed, failed and were skipped.

    Raises:
        CalledProcessError: A test failed that was not expected to.
    """
    with tempfile.TemporaryDirectory() as folder:
        counted = Path(folder) / "counted.json"
        command = [sys.executable, "-m", "pytest", "tests/foreign", "-m", "foreign or not foreign"]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "DRAGOMAN_FOREIGN": str(counted)}, check=True)
        suites: list[dict[str, Any]] = json.loads(counted.read_text(encoding="utf-8"))
    return suites


def commit() -> str:
    """Return the last commit that changed the code, marked where it was changed since."""
    last = ["git", "log", "-1", "--abbrev=10", "--format=%h", "--", "src"]
    changed = ["git", "status", "--porcelain", "--", "src"]
    found, since = (subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
                    for command in (last, changed))  # fmt: skip
    return f"{found}, changed since" if since else found


def page(record: dict[str, Any]) -> str:
    """The page of a record."""
    suites = record["figures"]["suites"]
    parts = [HEAD, f"{_origin(record)}\n", "\n".join(_table(suites)), "\n## Why values fail or are skipped\n"]
    parts += ["\n".join(_reasons(suite)) for suite in suites if suite["others"]]
    return "\n".join(parts).rstrip("\n") + "\n"


def _origin(record: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"Recorded on {record['date']}, code of commit {record['figures']['commit']}, {versions}: "
        "[foreign.json](../../benchmarks/results/foreign.json)."
    )


def _table(suites: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| suite | of | what is expected | passed | failed | skipped |"
    yield "|---|---|---|---|---|---|"
    sums = [0, 0, 0]
    for suite in suites:
        of_kind = [sum(o["count"] for o in suite["others"] if o["kind"] == kind) for kind in ("failed", "skipped")]
        counts = [suite["passed"], *of_kind]
        sums = [before + count for before, count in zip(sums, counts, strict=True)]
        cells = " | ".join(f"{count:,}" for count in counts)
        yield f"| `{suite['key']}` | {suite['peer']} | {suite['holds']} | {cells} |"
    yield f"| {len(suites)} suites | | | " + " | ".join(f"{count:,}" for count in sums) + " |"


def _reasons(suite: dict[str, Any]) -> Iterator[str]:
    """The source of a suite, and the reason of each value that fails or is skipped."""
    yield f"`{suite['key']}` ({suite['source']}):\n"
    for other in suite["others"]:
        yield f"- {other['count']:,} {other['kind']}: {other['reason']}."
        if other["example"]:
            yield f"  Example: `{_short(other['example'])}`"
    yield ""


def _short(example: str) -> str:
    text = " ".join(example.replace("`", "'").replace("|", "/").split())
    return text if len(text) <= 160 else f"{text[:157]}..."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redraw", action="store_true", help="write the page from the record; no test runs")
    if not parser.parse_args().redraw:
        save("foreign", {"commit": commit(), "suites": run()}, "python -m benchmarks.foreign", PACKAGES)
    record = json.loads((RESULTS / "foreign.json").read_text(encoding="utf-8"))
    PAGE.write_text(page(record), encoding="utf-8")


if __name__ == "__main__":
    main()
