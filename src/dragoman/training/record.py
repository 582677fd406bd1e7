"""A run, read back from its folder: configuration, log, sizes of the stores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import Config
from dragoman.data.store import Store
from dragoman.errors import ConfigError


class Record(NamedTuple):
    """Configuration, log and stores of a run."""

    folder: Path
    config: Config
    reports: list[dict[str, Any]]  # the "train" events
    validations: list[dict[str, Any]]
    skipped: list[dict[str, Any]]
    end: dict[str, Any] | None
    has_bundle: bool
    has_older_bundle: bool  # it was trained on since then, and its new bundle is not written
    stores: dict[str, dict[str, Any]]  # store.json of train and valid, where there is one
    damaged: tuple[int, ...] = ()  # numbers of the lines of the log that cannot be read

    @property
    def step(self) -> int:
        """The last step in the log."""
        return max((event["step"] for event in [*self.reports, *self.validations, *self.skipped]), default=0)

    @property
    def tokens(self) -> int:
        """Target tokens trained on."""
        return int(self.reports[-1]["tokens"]) if self.reports else 0

    def lengths(self) -> list[NDArray[np.integer[Any]]]:
        """Return the subwords of each source and of each target trained on; nothing if the store was deleted.

        Raises:
            DataError: The store is damaged.
        """
        folder = self.folder / "store/train"
        if not folder.is_dir():
            return []
        store = Store.open(folder)
        drawn = store.drawn()
        return [store.src_lengths()[drawn], store.tgt_lengths()[drawn]]

    def finite_reports(self) -> list[dict[str, Any]]:
        """Return the reports whose training loss is finite."""
        return [event for event in self.reports if math.isfinite(event["loss"])]

    def losses(self) -> list[float]:
        """Return the finite training losses, in nats per token."""
        return [event["loss"] for event in self.finite_reports()]


def read_run(folder: Path) -> Record:
    """Read the configuration, the log and the sizes of the stores of a run.

    Raises:
        ConfigError: There is no configuration or no log, or it cannot be read.
    """
    config = Config.from_yaml(folder / "config.yaml")
    events, damaged = read_log(folder / "log.jsonl")
    by_name: dict[str, list[dict[str, Any]]] = {name: [] for name in ("train", "validation", "skipped", "end")}
    for event in events:
        by_name.setdefault(event["event"], []).append(event)
    stores = {}
    for name in ("train", "valid"):
        path = folder / "store" / name / "store.json"
        try:
            stores[name] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue  # it may have been deleted to save space
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: cannot be read ({error}); is the run damaged?") from None
    last = events[-1]["event"] if events else ""
    return Record(
        folder, config, by_name["train"], by_name["validation"], by_name["skipped"],
        by_name["end"][-1] if by_name["end"] and last in ("end", "bundle") else None, (folder / "bundle").is_dir(),
        last == "end" and "bundle" in by_name, stores, damaged,
    )  # fmt: skip


_NUMBERS = ("loss", "perplexity", "bleu", "chrf", "f1", "lr", "grad_norm", "tokens_per_s", "tokens", "seconds")


def read_log(path: Path) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    """Return the events of a log, with words such as "nan" as numbers again, and the numbers of its damaged lines.

    A crash may have cut the last line short.

    Raises:
        ConfigError: There is no log, or it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; name the folder of a run that has started training") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    events, damaged = [], []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            event["step"], event["event"] = int(event["step"]), str(event["event"])
            for name in _NUMBERS:
                if name in event:
                    event[name] = float(event[name])
            events.append(event)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            if line.strip():
                damaged.append(number)
    return events, tuple(damaged)
