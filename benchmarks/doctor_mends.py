"""``dragoman doctor`` judged on damaged corpora: is the damage named, is its place right, and does ``--write`` mend it?

    python -m benchmarks.doctor_mends --data DATA --phase before|after [--kind KIND ...] [--corpus NAME ...] [--seed 1]

Each kind of damage of ``benchmarks.damaged`` is put into each real corpus that can have it. For each the command runs
as a user types it: ``doctor SRC TGT --json --list FILE --write OUT OUT``. The rules:

named     the first finding that is an error or a warning has a right name
placed    a shift: as many places as were made, each within 3 lines; else precision and recall of the lines in FILE or,
          where there is no FILE, in the report, are both 0.9 or more
verdict   "mend first"; of the clean corpus "fit to train"
equal     share of the pairs written that are pairs of the clean corpus
lost      share of the clean pairs without damage that were not written
restored  share of the clean pairs with damage that were written
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.damaged import CORPORA, KINDS, Clean, Damaged, clean_corpus, damage
from benchmarks.record import RESULTS, save
from dragoman.cli import main as run_command
from dragoman.doctor import diagnosis  # noqa: F401  imported once, not in each process

TOLERANCE = 3  # lines between a reported place of a shift and the true one
ENOUGH = 0.9  # precision and recall of the lines of a finding
NO_FAULT = ("memory", "line-counts")  # findings that are true of a damaged corpus, but do not name its damage


def doctor(*args: Any, folder: Path) -> tuple[int, str, str]:
    """Run the command in a process that need not import anything, and return its status, its output and messages."""
    files = folder / "stdout", folder / "stderr"
    child = multiprocessing.get_context("fork").Process(target=_command, args=(list(map(str, args)), files))
    child.start()
    child.join()
    return child.exitcode or 0, *(path.read_text(encoding="utf-8") for path in files)


def _command(args: list[str], files: tuple[Path, Path]) -> None:
    """Run ``dragoman doctor`` with its output in files."""
    for descriptor, path in enumerate(files, start=1):
        os.dup2(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), descriptor)
    sys.argv = ["dragoman", "doctor", *args, "--quiet"]
    run_command()


@dataclass(frozen=True)
class Report:
    """What the command says of a text, and the text that it writes."""

    findings: dict[str, Any]  # as JSON
    rows: list[tuple[str, str, int]] | None  # name, file and line of each finding; None where there is no --list
    written: list[tuple[str, str]] | None  # None where there is no --write


def examined(files: tuple[Path, Path], folder: Path) -> Report:
    """Run the command on two files.

    Raises:
        RuntimeError: The command failed.
    """
    listed = folder / "lines.tsv"
    outs = folder / f"out{files[0].suffix}", folder / f"out{files[1].suffix}"
    for path in (listed, *outs, *folder.glob("out.log*")):
        path.unlink(missing_ok=True)
    status, out, err = doctor(*files, "--json", "--list", listed, "--write", *outs, folder=folder)
    if status == 2:  # there are no such options
        status, out, err = doctor(*files, "--json", folder=folder)
        if not status:
            return Report(json.loads(out), None, None)
    if status:
        raise RuntimeError(err)
    cells = [line.split("\t") for line in listed.read_text(encoding="utf-8").split("\n")[1:-1]]
    sides = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in outs)
    return Report(json.loads(out), [(c[0], c[1], int(c[2])) for c in cells], list(zip(*sides, strict=True)))


def judged(damaged: Damaged, files: tuple[Path, Path], folder: Path) -> dict[str, Any]:
    """Return what the rules of this module say of one damaged corpus."""
    started = time.perf_counter()
    result = examined(files, folder)
    report, rows = result.findings, result.rows
    seconds = time.perf_counter() - started
    faults = [f for f in report["findings"] if f["level"] != "note" and f["name"] not in NO_FAULT]
    named = bool(faults) and faults[0]["name"] in damaged.names
    mine = [f for f in report["findings"] if f["name"] in damaged.names]
    if rows is None:
        lines = [(f["name"], "", line) for f in mine for line in f["lines"]]
    else:
        lines = [(name, file, line) for name, file, line in rows if name in damaged.names]
    return {
        "named": named,
        "first": faults[0]["name"] if faults else None,
        "placed": placed(damaged, files, lines),
        "verdict": report.get("verdict") == "mend first",
        "seconds": round(seconds, 1),
        **mended(damaged, result.written),
    }


def placed(damaged: Damaged, files: tuple[Path, Path], lines: list[tuple[str, str, int]]) -> bool:
    """True if the lines of a report are those of the damage."""
    if damaged.exact:
        sides = {str(path): side for side, path in enumerate(files)}
        numbers = sorted({(sides.get(file, 2), line) for _, file, line in lines})
        # Lines of one file that follow each other are one place.
        runs = [n for i, n in enumerate(numbers) if i == 0 or n[0] != numbers[i - 1][0] or n[1] > numbers[i - 1][1] + 1]
        near = [
            min((abs(n - first) for side, n in runs if side in (wanted, 2)), default=10**9)
            for wanted, first, _ in damaged.places
        ]
        return max(near) <= TOLERANCE and len(runs) == len(damaged.places)
    wanted = {(side, n) for side, first, last in damaged.places for n in range(first, last + 1)}
    names = {path.name: side for side, path in enumerate(files)}
    sides = {side for side, _ in wanted}
    reported = {(names.get(Path(file).name, 2) if 2 not in sides else 2, n) for _, file, n in lines}
    if any(side == 2 for side, _ in reported):
        reported, wanted = {(2, n) for _, n in reported}, {(2, n) for _, n in wanted}
    hits = len(reported & wanted)
    return hits >= ENOUGH * len(wanted) and hits >= ENOUGH * max(len(reported), 1)


def mended(damaged: Damaged, written: list[tuple[str, str]] | None) -> dict[str, Any]:
    """Return how much of the clean text ``--write`` gives back; nothing where there is no such option."""
    if written is None:
        return {"equal": None, "lost": None, "restored": None}
    clean = damaged.corpus.pairs
    available, wanted = Counter(written), Counter(clean)
    equal = sum((available & wanted).values())
    whole = [pair for i, pair in enumerate(clean) if i not in damaged.touched]
    broken = [clean[i] for i in sorted(damaged.touched)]
    return {
        "equal": round(equal / max(len(written), 1), 4),
        "lost": round(sum(pair not in available for pair in whole) / max(len(whole), 1), 4),
        "restored": round(sum(pair in available for pair in broken) / max(len(broken), 1), 4) if broken else None,
    }


def clean_verdict(corpus: Clean, folder: Path) -> dict[str, Any]:
    """Return the verdict on a corpus without damage, and what ``--write`` does to it."""
    undamaged = Damaged(corpus, "none", corpus.src[:], corpus.tgt[:])
    files = undamaged.write(folder)
    result = examined(files, folder)
    report = result.findings
    warned = [f["name"] for f in report["findings"] if f["level"] != "note"]
    return {"verdict": report.get("verdict"), "errors_and_warnings": warned, **mended(undamaged, result.written)}


def summary(kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return for each kind in how many corpora it is named and placed, and the median of what is mended."""
    table = {}
    for kind, corpora in kinds.items():
        results = list(corpora.values())
        table[kind] = {
            "corpora": len(results),
            **{rule: sum(r[rule] for r in results) for rule in ("named", "placed", "verdict")},
            **{f"least_{rule}": min((r[rule] for r in results if r[rule] is not None), default=None)
               for rule in ("equal", "restored")},
            "most_lost": max((r["lost"] for r in results if r["lost"] is not None), default=None),
        }  # fmt: skip
    return table


def main() -> None:
    """Judge all kinds in all corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the corpora")
    parser.add_argument("--phase", choices=("before", "after"), help="record the figures under this name")
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=list(KINDS))
    parser.add_argument("--corpus", choices=CORPORA, nargs="*", default=list(CORPORA))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=3000)
    args = parser.parse_args()
    kinds: dict[str, dict[str, Any]] = {kind: {} for kind in args.kind}
    cleans: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for corpus_name in args.corpus:
            corpus = clean_corpus(args.data, corpus_name, args.seed, args.size)
            cleans[corpus_name] = clean_verdict(corpus, folder)
            print(corpus_name, json.dumps(cleans[corpus_name]), flush=True)
            for kind in args.kind:
                damaged = damage(corpus, kind, args.seed)
                if damaged is not None:
                    kinds[kind][corpus_name] = judged(damaged, damaged.write(folder), folder)
                    print(corpus_name, kind, json.dumps(kinds[kind][corpus_name]), flush=True)
    figures = {"kinds": summary(kinds), "clean": cleans, "each": kinds}
    print(json.dumps(figures["kinds"], indent=1))
    if args.phase:
        record(figures, args)


def record(figures: dict[str, Any], args: argparse.Namespace) -> None:
    """Write the figures of a phase, beside those of the other phase."""
    path = RESULTS / "newcomer" / "doctor.json"
    earlier = json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}
    inputs = {
        "rule": "benchmarks/damaged.py: consecutive pairs of each corpus from a place that the seed draws",
        "seed": args.seed, "pairs": args.size, "corpora": args.corpus, "kinds": args.kind,
    }  # fmt: skip
    command = f"python -m benchmarks.doctor_mends --data DATA --phase before|after --seed {args.seed}"
    save("newcomer/doctor", {**earlier, "inputs": inputs, args.phase: figures}, command, ("numpy",))


if __name__ == "__main__":
    main()
