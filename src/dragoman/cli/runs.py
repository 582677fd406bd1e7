"""``dragoman runs``."""

from __future__ import annotations

import datetime
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.signs import loading
from dragoman.cli.tables import at_terminal, print_line, print_table
from dragoman.errors import ConfigError
from dragoman.progress import columns, duration, say

if TYPE_CHECKING:
    from dragoman.history.summary import Summary

COLUMNS = ("run", "languages", "state", "steps", "time", "BLEU", "chrF", "size", "changed")


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder that holds runs (default: runs, or this folder; and the ready bundles of the package).",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per run.", rich_help_panel="Output")
    ] = False,
) -> None:
    """``dragoman runs``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.history.summary import ready_summaries, summaries, summary_of
        from dragoman.ready import is_ready, run_folder

    if folder is None:
        listed = [*summaries(Path("runs") if Path("runs").is_dir() else Path()), *ready_summaries()]
    elif is_ready(folder):
        listed = [replace(summary_of(run_folder(folder)), name=str(folder), state="ready")]
    else:
        listed = summaries(folder)
    if not listed:
        raise ConfigError(f"{folder}: no runs there; name the folder that `dragoman train --out` wrote to")
    if as_json:
        for run in listed:
            print(json.dumps(_fields(run), ensure_ascii=False))
    else:
        _print(listed)
    for run in listed:
        if run.problem:
            say(f"warning: {run.problem}")


def _print(listed: Sequence[Summary]) -> None:
    """Print a table; in a narrow terminal a block for each run; for programs the columns with tabs between them."""
    if not at_terminal():
        for row in [COLUMNS, *(_row(run, _date(run.changed)) for run in listed)]:
            print("\t".join(cell.replace("\t", " ") for cell in row))
        return
    now = time.time()
    rows = [_row(run, _age(now - run.changed)) for run in listed]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    if sum(widths) + 2 * len(widths) > columns(sys.stdout):
        for row in rows:
            print_line("\n".join(_block(row, columns(sys.stdout))))
        return
    numbers = ["steps", "time", "BLEU", "chrF", "size"]
    print_table(COLUMNS, rows, right=numbers, fixed=["run", "languages", "state", "changed"])


_UNITS = ("{}", "{}", "{} steps", "{}", "BLEU {}", "chrF {}", "{}", "{}")


def _block(row: Sequence[str], width: int) -> list[str]:
    """Return the lines of a run for a narrow terminal: its name, and below it the other cells with their units."""
    name, *cells = row
    lines = [name, ""]
    for unit, cell in zip(_UNITS, cells, strict=True):
        text = "  " + unit.format(cell).replace("BLEU F1", "F1") if cell else ""
        if len(lines[-1]) + len(text) > width:
            lines.append("")
        lines[-1] += text
    return lines


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def _age(seconds: float) -> str:
    """Format the time since a change: ``5 min ago``."""
    for size, unit in ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds / size):,} {unit} ago"
    return "now"


def _row(run: Summary, changed: str) -> tuple[str, ...]:
    """Return the cells of a run, in the order of ``COLUMNS``; a parser's F1 stands under BLEU."""
    scores = {name: f"{score:.1f}" for name, score in run.scores.items()}
    return (
        run.name,
        run.languages,
        run.state,
        "" if run.steps is None else f"{run.steps:,}",
        "" if run.seconds is None else duration(run.seconds),
        scores.get("bleu") or (f"F1 {scores['f1']}" if "f1" in scores else ""),
        scores.get("chrf", ""),
        _size(run.n_bytes),
        changed,
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{math.ceil(n_bytes / 1e6):,} MB"


def _fields(run: Summary) -> dict[str, object]:
    changed = datetime.datetime.fromtimestamp(run.changed, datetime.UTC)
    return {
        "run": run.name, "folder": str(run.folder), "languages": run.languages, "state": run.state, "steps": run.steps,
        "seconds": run.seconds, "scores": dict(run.scores), "bytes": run.n_bytes,
        "changed": changed.isoformat(timespec="seconds"), "problem": run.problem,
    }  # fmt: skip
