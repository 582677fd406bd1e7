"""Measure how the time of every regular expression and every parser grows with hostile texts.

    python -m benchmarks.linear_time before    the state before a change; ``after`` for the one after it

The texts are those of ``tests/faults/test_linear_time.py``; only what is not linear is written, with its worst text.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, machine

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "faults"))
PATH = RESULTS / "hostile" / "linear-time.json"


def figures(n: int) -> dict[str, Any]:
    """Return the patterns and parsers with an exponent above the limit, and the number measured."""
    from growth import MOST
    from linear_time import measure, parser_cases, pattern_cases

    start, result = time.perf_counter(), {}
    for name, cases in (("patterns", list(pattern_cases(n))), ("parsers", list(parser_cases(min(n, 300))))):
        slow = {}
        for case in cases:
            measured = measure(case, 8192, most_suspects=3)
            if measured.exponent > MOST:
                print(name, measured, file=sys.stderr, flush=True)
                slow[case.where] = {"exponent": measured.exponent, "text": measured.text}
        texts = sum(len(case.texts) for case in cases)
        result[name] = {"measured": len(cases), "texts": texts, "superlinear": len(slow), "worst": slow}
    return {**result, "seconds": round(time.perf_counter() - start)}


def main() -> None:
    """Write one half of the record; the other half stays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=["before", "after"])
    parser.add_argument("--texts", type=int, default=4000, help="most texts for each pattern; 300 for a parser")
    arguments = parser.parse_args()
    record = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
    record |= {
        "command": f"python -m benchmarks.linear_time after --texts {arguments.texts}",
        "machine": machine(),
        "versions": {"python": platform.python_version(), "sentencex": version("sentencex"),
                     "markdown-it-py": version("markdown-it-py"), "lxml": version("lxml")},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        arguments.half: figures(arguments.texts),
    }  # fmt: skip
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
