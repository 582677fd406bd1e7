"""Our own runs: what their log says, and what ``dragoman evaluate`` says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.files import sha256


def dragoman(*arguments: str | Path) -> list[str]:
    """The command, in this Python."""
    return [sys.executable, "-m", "dragoman", *map(str, arguments)]


Files = tuple[str | Path, str | Path]
"""Source and target."""


def training(
    config: Path, run: Path, text: Files, valid: Files | None, settings: Sequence[str], *options: str
) -> list[str]:
    """The command that trains ``run`` from two files with a configuration, some of whose settings are changed."""
    files = ["--src", text[0], "--tgt", text[1]]
    if valid is not None:
        files += ["--valid-src", valid[0], "--valid-tgt", valid[1]]
    changes = [part for setting in settings for part in ("--set", setting)]
    return dragoman("train", config, *files, "--out", run, *changes, *options)


def events(run: Path) -> list[dict[str, Any]]:
    """The run's log, oldest first."""
    return [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").split("\n") if line]


def last(log: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """The last event of this name."""
    return next(event for event in reversed(log) if event["event"] == name)


def refuse_another(kept: Path, facts: dict[str, Any], texts: Sequence[str | Path]) -> None:
    """Write beside a run what it is made of, before it is made; a run that is there must be made of the same.

    Args:
        kept: The run's folder.
        facts: Settings and limits.
        texts: The files that it learns from.

    Raises:
        SystemExit: It was made of something else, or nothing says of what.
    """
    note = kept.with_name(f"{kept.name}.made-of.json")
    facts = json.loads(json.dumps({**facts, "texts": [sha256(Path(text)) for text in texts]}))
    if kept.exists() and (not note.is_file() or json.loads(note.read_text(encoding="utf-8")) != facts):
        raise SystemExit(f"{kept}: made with other settings or of other text; move it away to measure again")
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(facts), encoding="utf-8")


def evaluation(runs: Sequence[Path], src: Path | str, ref: Path | str, *options: str) -> dict[str, Any]:
    """What ``dragoman evaluate --json`` says of one run, or of two side by side."""
    command = dragoman("evaluate", *runs, "--src", src, "--ref", ref, "--json", *options)
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found
