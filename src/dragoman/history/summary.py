"""The list of runs: what each is, how far it came, and how good its best validation was.

    for run in summaries(Path("runs")):
        print(run.name, run.state, run.scores)

Nothing here loads a model; a run that is damaged is listed with its problem.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dragoman.config import read_yaml
from dragoman.errors import BundleError, ConfigError, DragomanError, UnreadableError
from dragoman.files import read_manifest
from dragoman.locks import refuse_if_locked
from dragoman.ready import NAMES, is_ready, run_folder
from dragoman.training.record import Record, read_run

State = Literal["finished", "training", "stopped", "bundle", "ready", "damaged"]

MOST_DEPTH = 3
"""Number of levels below a folder in which runs are looked for."""

SCORES = ("bleu", "chrf", "f1")
"""Scores of a validation in a log."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One run in the list.

    Attributes:
        name: Path of the run below the folder of the list.
        languages: Source and target, such as ``en -> de``; "" if they are not known.
        steps: Updates so far; None if they are not known.
        seconds: Time of training so far; None without a log.
        scores: Best score of a validation in per cent, by its name in the log, or in the manifest of a bundle.
        n_bytes: Size of its folder on the disk.
        changed: Time of its last change, in seconds since 1970.
        problem: Sentence about what is damaged; "" if nothing is.
    """

    folder: Path
    name: str
    languages: str = ""
    state: State
    steps: int | None = None
    seconds: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    n_bytes: int = 0
    changed: float = 0.0
    problem: str = ""


def summaries(folder: Path) -> list[Summary]:
    """Return all runs in a folder, the last changed first.

    Raises:
        ConfigError: There is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; name the folder that holds your runs, such as runs")
    found = [summary_of(path, folder) for path in runs_below(folder)]
    return sorted(found, key=lambda run: (-run.changed, run.name))


def ready_summaries() -> list[Summary]:
    """Return the bundles that come with the package, each once, under the first of its names that nothing hides."""
    names: dict[Path, str] = {}
    for name in filter(is_ready, NAMES):
        names.setdefault(run_folder(name), name)
    return [replace(summary_of(folder), name=name, state="ready") for folder, name in names.items()]


def runs_below(folder: Path, depth: int = MOST_DEPTH) -> Iterator[Path]:
    """Yield the folders of runs and bundles in a folder, or the folder itself if it is one."""
    if is_run(folder):
        yield folder
        return
    if depth == 0:
        return
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:  # a folder that may not be read
        return
    for path in inside:
        # A link may lead to a run, but is not searched: it may lead back.
        if not path.name.startswith(".") and (is_run(path) or not path.is_symlink()):
            yield from runs_below(path, depth - 1)


def is_run(folder: Path) -> bool:
    """Return True if a folder holds a run or a bundle, whole or damaged."""
    has = {name: (folder / name).exists() for name in ("config.yaml", "log.jsonl", "bundle", "manifest.json")}
    return has["log.jsonl"] or has["bundle"] or (has["config.yaml"] and has["manifest.json"])


def summary_of(folder: Path, base: Path | None = None) -> Summary:
    """Return the summary of a run; its name is its path below ``base``."""
    n_bytes, changed = _size(folder)
    name = str(folder) if base is None or folder == base else str(folder.relative_to(base))
    facts: dict[str, Any] = dict(folder=folder, name=name, n_bytes=n_bytes, changed=changed)
    if not (folder / "log.jsonl").exists():
        return Summary(**facts, state="bundle", languages=_languages(folder), **_facts_of_bundle(folder))
    try:
        run = read_run(folder)
    except DragomanError as error:
        return Summary(**facts, state="damaged", languages=_languages(folder), problem=str(error))
    return Summary(
        **facts,
        languages=languages_of(run),
        state=_state(run),
        steps=run.step,
        seconds=seconds_of(run),
        scores=best_scores(run),
        problem=damage_of(run),
    )


def damage_of(run: Record) -> str:
    """Return a sentence about the lines of a log that cannot be read; "" if there are none."""
    if not run.damaged:
        return ""
    lines = ", ".join(f"{number:,}" for number in run.damaged[:5]) + ", ..." * (len(run.damaged) > 5)
    what = f"line {lines} is" if len(run.damaged) == 1 else f"lines {lines} are"
    return f"{run.folder / 'log.jsonl'}: {what} damaged and left out; a killed training leaves such a line"


def _state(run: Record) -> State:
    try:
        refuse_if_locked(run.folder)
    except ConfigError:
        return "training"
    return "finished" if run.has_bundle and run.end is not None and not run.has_older_bundle else "stopped"


def best_scores(run: Record) -> dict[str, float]:
    """Return the best score of all validations, by its name in the log."""
    by_name = {name: [event[name] for event in run.validations if name in event] for name in SCORES}
    return {name: max(scores) for name, scores in by_name.items() if scores}


def seconds_of(run: Record) -> float:
    """Return the time of training so far, in seconds."""
    events = [*run.reports, *([run.end] if run.end else [])]
    return max((event.get("seconds", 0.0) for event in events), default=0.0)


def languages_of(run: Record) -> str:
    """Return the languages of a run, such as ``en -> de``; "" if they are not known."""
    return _arrow(run.config.data.model_dump(mode="json"))


def _arrow(data: Mapping[str, Any]) -> str:
    """Return the languages of the section ``data`` of a configuration; a model may have several on a side."""
    train = data.get("train")
    entries = [entry for entry in (train if isinstance(train, list) else [train]) if isinstance(entry, dict)]
    sides = []
    for name in ("src_lang", "tgt_lang"):
        langs = [data.get(name), *(entry.get(name) for entry in entries)]
        sides.append(", ".join(dict.fromkeys(str(lang) for lang in langs if lang)))
    return f"{sides[0] or '?'} -> {sides[1] or '?'}" if any(sides) else ""


def _languages(folder: Path) -> str:
    """Return the languages that the configuration of a bundle names; "" if it cannot be read."""
    for path in (folder / "config.yaml", folder / "bundle/config.yaml"):
        try:
            return _arrow(read_yaml(path)["data"])
        except (ConfigError, KeyError, TypeError, AttributeError):
            continue
    return ""


def _facts_of_bundle(folder: Path) -> dict[str, Any]:
    """Return the steps and the scores that the manifest of a bundle holds; nothing if it cannot be read."""
    bundle = folder / "bundle" if (folder / "bundle").is_dir() else folder
    try:
        manifest = read_manifest(bundle, "bundle")
        scores = {name: float(manifest["validation"][name]) for name in SCORES if name in manifest["validation"]}
        return {"steps": int(manifest["step"]), "scores": scores}
    except (BundleError, UnreadableError, KeyError, TypeError, ValueError):
        return {}


def _size(folder: Path) -> tuple[int, float]:
    """Return the bytes of all files in a folder, and the time of the last change of one of them."""
    n_bytes, changed = 0, 0.0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                about = os.lstat(os.path.join(place, name))  # noqa: PTH118  (thousands of files)
            except OSError:  # removed meanwhile, as old checkpoints are
                continue
            n_bytes += about.st_size
            changed = max(changed, about.st_mtime)
    return n_bytes, changed
