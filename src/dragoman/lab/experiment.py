"""The types of an experiment: ``Lab`` goes into its ``run``, ``Findings`` come out.

An experiment in short:

    def run(lab: Lab) -> Findings:
        rate = lab.done("rate", measure_rate, settings={"steps": 100})       # measured once, then read from disk
        return Findings({"rate": rate}, [Section("Rate", "It rises.")], [Claim("It rises", rate > 0, f"{rate:.2f}")])
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from dragoman.config import Config, each
from dragoman.data.texts import files_of
from dragoman.errors import ConfigError, DragomanError
from dragoman.files import explained, sha256, write_text
from dragoman.lab import EXPERIMENTS
from dragoman.lab.machine import machine
from dragoman.options import not_among


class StoppedError(DragomanError):
    """A signal stopped a training; neither the experiment nor those after it can be finished."""

    def __init__(self, signal: int) -> None:
        """Keep the number of the signal, for the exit status."""
        super().__init__("stopped; finished trainings are kept: rerun the experiment to resume")
        self.signal = signal


class Lab(NamedTuple):
    """Options of a laboratory call, as an experiment gets them."""

    out: Path  # the folder of this experiment
    quick: bool = False  # True: a smoke test with sizes that take seconds
    config: Config | None = None  # what to train on instead of the embedded corpus, where TAKES has "config"
    run: Path | None = None  # a trained model to examine, where TAKES has "run"
    device: torch.device = torch.device("cpu")
    say: Callable[[str], None] = print
    language: str = "en"  # of pages and of the labels in SVG figures: "en" or "zh"
    saved_s: list[float] | None = None  # collects the seconds that results read from disk had taken to compute
    machines: list[dict[str, Any] | None] | None = None  # collects the machines of results; None: not recorded

    def done(self, key: str, make: Callable[[], Any], settings: Any = None) -> Any:
        """Return ``make()``, or the stored result of an earlier call with this key and these settings.

        Args:
            key: Name of this part of the experiment, such as a row of a table: letters, digits, ``. _ -``.
            make: Computes the result: anything that ``plain`` makes JSON of.
            settings: Values on which the result depends, besides ``quick``, ``config`` and the text that it names; of a
                measured time they are to include the ``hardware``. With other settings the part is computed again, and
                the older result stays.

        Returns:
            The result as JSON gives it back, also when it was just computed.
        """
        path = self._path("parts", key, settings, ".json")
        try:
            part = json.loads(path.read_text(encoding="utf-8"))
            result, seconds, where = part["result"], float(part["seconds"]), part.get("machine")
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError):
            self.say(f"{path} cannot be read: computing it again")
        else:
            if self.saved_s is not None:
                self.saved_s.append(seconds)
            self._note_machine(where)
            return result
        started, where = time.monotonic(), plain(machine(self.device))
        result = plain(make())
        about = {"key": key, "settings": plain(settings), "seconds": time.monotonic() - started, "machine": where}
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({**about, "result": result}, ensure_ascii=False) + "\n")
        self._note_machine(where)
        return result

    def _note_machine(self, where: dict[str, Any] | None) -> None:
        """Collect the machine of a result."""
        if self.machines is not None and where not in self.machines:
            self.machines.append(where)

    def run_folder(self, key: str, settings: Any = None) -> Path:
        """Return the folder in which to train a model: one for each key and settings, so that training can resume."""
        return self._path("runs", key, settings)

    def _path(self, kind: str, key: str, settings: Any, ending: str = "") -> Path:
        """Return a path below ``out`` that is different for other settings, configurations, texts and runs."""
        if not re.fullmatch(r"[\w-][\w.-]*", key):
            raise ValueError(f"{key!r} cannot be the name of a part")
        depends_on = [plain(settings), self.quick, self.config and changed_settings(self.config), str(self.run)]
        if self.config is not None:  # without one the path is as ever, so that the embedded corpus keeps its results
            depends_on.append(_digests(self.config))
        fingerprint = hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:10]
        return self.out / kind / f"{key}-{fingerprint}{ending}"


def _digests(config: Config) -> list[Any]:
    """Return size and SHA-256 of each file of a configuration's text; None for what is not there or cannot be read."""
    texts = [*each(config.data.train), *(each(config.data.valid) if config.data.valid is not None else ())]
    return [_digest_of(path) for text in texts for path in files_of(text)]


def _digest_of(path: Path) -> list[Any] | None:
    try:
        if not path.is_file():  # a pipe can be read only once, and training is to read it
            return None
        about = path.stat()
        return [about.st_size, _sha256(path, about.st_size, about.st_mtime_ns)]
    except OSError:
        return None


@functools.lru_cache(maxsize=1024)
def _sha256(path: Path, size: int, changed: int) -> str:
    """Return the SHA-256 of a file, read again only if its size or its time of change is another."""
    return sha256(path)


def changed_settings(config: Config) -> dict[str, Any]:
    """Return the settings that differ from their defaults.

    Stored results are found by them, so a setting that dragoman adds later, at its default, does not lose a result.
    """
    settings: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    return settings


def run_to_examine(lab: Lab) -> Path | None:
    """Return the trained model that an experiment examines; None: it trains one.

    Raises:
        ConfigError: There is a configuration to train, too.
    """
    if lab.run is not None and lab.config is not None:
        raise ConfigError("--config says what to train, but --run names a trained model: leave out one of them")
    return lab.run


class Table(NamedTuple):
    """A table; a cell is text or a number, and numbers are shown with three significant digits."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Section(NamedTuple):
    """A section of an experiment's page: paragraphs, then a figure or a table or both.

    In paragraphs, text between backticks is code, and addresses become links.
    """

    heading: str
    text: str | Sequence[str] = ()  # paragraphs
    figure: Any = None  # of matplotlib, by ``explanation.figures``
    name: str = ""  # file name of the figure, without ending
    table: Table | None = None
    caption: str = ""  # caption of the figure, or else of the table


class Claim(NamedTuple):
    """A statement that the experiment decides."""

    text: str
    holds: bool | None  # None: not decided, for example because an interval includes both answers
    figures: str  # the numbers that decide it


def expected(predictions: int, came_true: int, module: str) -> str:
    """Return a paragraph on what was expected of an experiment before its first run.

    Args:
        predictions: Number of predictions.
        came_true: Number of those that came true.
        module: Name of the experiment, whose module has them as ``PREDICTED``.
    """
    return (
        f"{predictions} predictions were written before the first run (`PREDICTED` in `lab/{module}.py`); {came_true} "
        "came true. Verdicts that were not among them say so."
    )


class Findings(NamedTuple):
    """Results of an experiment."""

    numbers: Mapping[str, Any]
    sections: Sequence[Section]
    verdict: Sequence[Claim]


def plain(value: Any) -> Any:
    """Return ``value`` as JSON has it: numbers and arrays of NumPy and torch, tuples and paths become plain values."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value) if isinstance(value, Path) else value


def experiment_module(name: str) -> Any:
    """Import and return the module of an experiment.

    Raises:
        ConfigError: No experiment has this name.
    """
    if name not in EXPERIMENTS:
        raise not_among("name", name, (*EXPERIMENTS, "all"))
    return importlib.import_module(f"dragoman.lab.{name}")


def usable_options(name: str) -> tuple[str, ...]:
    """Return those of the options ``config``, ``run`` and ``device`` that an experiment uses: its ``TAKES``."""
    options: tuple[str, ...] = getattr(experiment_module(name), "TAKES", ())
    return options
