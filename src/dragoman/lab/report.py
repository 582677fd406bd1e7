"""Run experiments and keep what they find: numbers as JSON, figures as SVG and PNG, a page, and an index of them all.

OUT/index.html            what was examined and what came out
OUT/NAME/index.html       the experiment, figures inside: one file
OUT/NAME/numbers.json     its numbers, its verdict, the machine and the time
OUT/NAME/FIGURE.svg .png  its figures
OUT/NAME/parts/           finished parts of long experiments, so that they can resume
OUT/NAME/runs/            models that it trained
"""

from __future__ import annotations

import datetime
import hashlib
import importlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from dragoman.config import Config
from dragoman.errors import ConfigError, DragomanError
from dragoman.explanation.style import check_letters, save
from dragoman.files import explained, write_text
from dragoman.lab import EXPERIMENTS
from dragoman.lab.machine import machine

NUMBERS = "numbers.json"


class StoppedError(DragomanError):
    """A signal ended a training, and with it all that was to be made."""


class Lab(NamedTuple):
    """What an experiment is given."""

    out: Path  # the folder of this experiment
    quick: bool = False  # a smoke run: sizes of seconds
    config: Config | None = None  # what to train on instead of the embedded corpus, where TAKES says "config"
    run: Path | None = None  # a trained model to examine, where TAKES says "run"
    device: torch.device = torch.device("cpu")
    say: Callable[[str], None] = print
    saved_s: list[float] | None = None  # gathers the seconds that parts which were read had taken

    def done(self, key: str, make: Callable[[], Any], settings: Any = None) -> Any:
        """``make()``, or what it gave when it was last called for this key and these settings.

        Args:
            key: Letters, digits, ``. _ -``; one part of the experiment, such as a row of a table.
            make: Gives anything that JSON has; numbers and arrays of NumPy and torch become JSON's.
            settings: Anything that JSON has and that the result depends on beside ``quick`` and ``config``. With other
                settings the part is computed again, and the older one is kept.

        Returns:
            What JSON makes of the result: the same, made now or read.
        """
        path = self._place("parts", key, settings, ".json")
        try:
            part = json.loads(path.read_text(encoding="utf-8"))
            result, seconds = part["result"], float(part["seconds"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError):
            self.say(f"{path} cannot be read: computing it again")
        else:
            if self.saved_s is not None:
                self.saved_s.append(seconds)
            return result
        started = time.monotonic()
        result = plain(make())
        part = {"key": key, "settings": plain(settings), "seconds": time.monotonic() - started, "result": result}
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(part, ensure_ascii=False) + "\n")
        return result

    def run_folder(self, key: str, settings: Any = None) -> Path:
        """Where to train a model: one folder for each key and settings, so that a stopped training can be resumed."""
        return self._place("runs", key, settings)

    def _place(self, kind: str, key: str, settings: Any, ending: str = "") -> Path:
        if not re.fullmatch(r"[\w-][\w.-]*", key):
            raise ValueError(f"{key!r} cannot be the name of a part")
        given = [plain(settings), self.quick, self.config and identity(self.config), str(self.run)]
        fingerprint = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:10]
        return self.out / kind / f"{key}-{fingerprint}{ending}"


def identity(config: Config) -> dict[str, Any]:
    """What differs from the defaults: an option that dragoman learns later makes no part another one."""
    found: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    return found


class Table(NamedTuple):
    """Numbers in rows; a cell is text, or a number that is written with three digits."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Section(NamedTuple):
    """One step of an account: words, then a figure or a table or both.

    In words ``code`` stands between backticks, and addresses become links.
    """

    heading: str
    text: str | Sequence[str] = ()  # paragraphs
    figure: Any = None  # of matplotlib, by ``explanation.figures``
    name: str = ""  # the figure's file, without ending
    table: Table | None = None
    caption: str = ""  # of the figure, or of the table: what to see in it


class Claim(NamedTuple):
    """A sentence that the experiment decides."""

    text: str
    holds: bool | None  # None: not decided, such as where the interval holds both
    figures: str  # the numbers that decide it


class Findings(NamedTuple):
    """What an experiment gives back."""

    numbers: Mapping[str, Any]
    sections: Sequence[Section]
    verdict: Sequence[Claim]


def plain(value: Any) -> Any:
    """``value`` as JSON has it: NumPy's and torch's numbers and arrays, tuples and paths become plain ones."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value) if isinstance(value, Path) else value


def experiment(name: str) -> Any:
    """The module of an experiment.

    Raises:
        ConfigError: There is none of this name; the names are listed.
    """
    if name not in EXPERIMENTS:
        raise ConfigError(f"no experiment is called {name!r}: choose {', '.join(EXPERIMENTS)} or all")
    return importlib.import_module(f"dragoman.lab.{name}")


def takes(name: str) -> tuple[str, ...]:
    """Which of the options ``config``, ``run`` and ``device`` an experiment can use."""
    found: tuple[str, ...] = getattr(experiment(name), "TAKES", ())
    return found


def run_experiment(name: str, out: Path, lab: Lab) -> dict[str, Any]:
    """Run one experiment, keep what it finds under ``out/name``, and bring the index up to date.

    Args:
        lab: As the experiment gets it, but for ``out``.

    Returns:
        What ``numbers.json`` holds.

    Raises:
        ConfigError: The name is unknown; the experiment cannot use a configuration or run that was given; a quick run
            would replace a full one; matplotlib is not installed.
        DragomanError: Whatever the experiment refuses, or the folder cannot be written.
    """
    from dragoman.lab.page import write_index, write_page

    module = experiment(name)
    for option in ("config", "run"):
        if getattr(lab, option) is not None and option not in takes(name):
            raise ConfigError(f"{name} has no use for --{option}: leave it out")
    check_letters([])  # is matplotlib there: better known now than after an hour
    folder = out / name
    _refuse_to_replace(folder, lab.quick)
    saved_s: list[float] = []
    lab = lab._replace(out=folder, saved_s=saved_s)
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    found: Findings = module.run(lab)
    verdict = [claim._replace(holds=None) if lab.quick else claim for claim in found.verdict]
    record = {
        "experiment": name,
        "claim": EXPERIMENTS[name],
        "quick": lab.quick,
        "seconds": round(time.monotonic() - started + sum(saved_s), 1),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(lab.device if "device" in takes(name) else torch.device("cpu")),
        "config": None if lab.config is None else lab.config.model_dump(mode="json"),
        "run": None if lab.run is None else str(lab.run),
        "verdict": [plain(claim._asdict()) for claim in verdict],
        "figures": [
            {"file": f"{section.name}.svg", "heading": section.heading, "caption": section.caption}
            for section in found.sections
            if section.figure is not None
        ],
        "numbers": _finite(plain(found.numbers)),
    }
    for section in found.sections:
        if section.figure is not None:
            paths = (folder / f"{section.name}.svg", folder / f"{section.name}.png")
            save(section.figure, *paths, title=section.heading or name, description=section.caption)
    write_page(folder, record, found.sections)
    write_text(folder / NUMBERS, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_index(out)
    return record


def run_all(out: Path, lab: Lab) -> Iterator[dict[str, Any]]:
    """Run every experiment, each when its record is asked for; one that cannot be made does not stop the others.

    Args:
        lab: Its configuration and run go to the experiments that take them.

    Raises:
        StoppedError: A signal ended a training; what follows is not begun.
        DragomanError: After the last experiment, if any was refused: which, and why.
    """
    refused = []
    for name in EXPERIMENTS:
        lab.say(f"{name}: {EXPERIMENTS[name]}")
        fitting = lab._replace(
            config=lab.config if "config" in takes(name) else None, run=lab.run if "run" in takes(name) else None
        )
        try:
            yield run_experiment(name, out, fitting)
        except StoppedError:
            raise
        except DragomanError as error:
            lab.say(f"{name} failed: {error}")
            refused.append(f"{name}: {error}")
    if refused:
        raise DragomanError(f"{len(refused)} of {len(EXPERIMENTS)} experiments failed: {'; '.join(refused)}")


def read_record(folder: Path) -> dict[str, Any] | None:
    """What an experiment's folder says that it found; None where there is nothing to read."""
    try:
        record = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
        return record if isinstance(record, dict) and {"quick", "verdict", "seconds"} <= record.keys() else None
    except (OSError, ValueError):
        return None


def _refuse_to_replace(folder: Path, quick: bool) -> None:
    record = read_record(folder)
    if quick and record is not None and not record["quick"]:
        raise ConfigError(f"{folder} holds the findings of a full run: give a quick one another --out")


def _finite(value: Any) -> Any:
    """JSON has no infinity: it is written as text."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
