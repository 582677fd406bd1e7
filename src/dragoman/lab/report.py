"""Run experiments and write their reports: numbers as JSON, figures as SVG and PNG, a page each, and an index.

    record = run_experiment("masks", Path("lab"), Lab(Path("lab")))
    for claim in record["verdict"]:
        print(claim["holds"], claim["text"])

OUT/index.html            all experiments with their verdicts
OUT/NAME/index.html       the page of one experiment, figures included
OUT/NAME/numbers.json     its numbers, its verdict, the machines and the time
OUT/NAME/FIGURE.svg .png  its figures
OUT/NAME/parts/           finished parts of long experiments, from which they resume
OUT/NAME/runs/            models that it trained
"""

from __future__ import annotations

import datetime
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from dragoman.errors import ConfigError, DragomanError
from dragoman.explanation.style import check_letters, refuse_other_figures, save
from dragoman.files import explained, refuse_others, write_text
from dragoman.lab import EXPERIMENTS
from dragoman.lab.chinese import figure_in_chinese
from dragoman.lab.experiment import Findings, Lab, StoppedError, experiment_module, plain, usable_options
from dragoman.lab.machine import machine
from dragoman.lab.page import plain_section, refuse_other_report, write_index, write_page

NUMBERS = "numbers.json"


def run_experiment(name: str, out: Path, lab: Lab) -> dict[str, Any]:
    """Run one experiment, write its report to ``out/name``, and update the index.

    Args:
        name: One of ``EXPERIMENTS``.
        out: Folder of all reports.
        lab: Options of the experiment; its ``out`` is replaced.

    Returns:
        The content of ``numbers.json``.

    Raises:
        ConfigError: The name is unknown; the experiment cannot use the configuration or run; a quick report would
            replace a full one; a file that is not the laboratory's may be replaced; matplotlib is not installed.
        DragomanError: The experiment failed, or the folder cannot be written.
    """
    module, options = experiment_module(name), usable_options(name)
    for option in ("config", "run"):
        if getattr(lab, option) is not None and option not in options:
            raise ConfigError(f"{name} has no use for --{option}: leave it out")
    check_letters([])  # fails without matplotlib: now, and not after an hour of training
    folder = out / name
    refuse_other_report(out)
    _refuse_to_replace(folder, lab.quick)
    device = lab.device if "device" in options else torch.device("cpu")
    saved_s: list[float] = []
    machines: list[dict[str, Any] | None] = []
    lab = lab._replace(out=folder, device=device, saved_s=saved_s, machines=machines)
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    findings: Findings = module.run(lab)
    verdict = [claim._replace(holds=None) if lab.quick else claim for claim in findings.verdict]
    drawn = [section for section in findings.sections if section.figure is not None]
    record = {
        "experiment": name,
        "claim": EXPERIMENTS[name],
        "quick": lab.quick,
        "seconds": round(time.monotonic() - started + sum(saved_s), 1),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machines": machines or [plain(machine(device))],
        "config": None if lab.config is None else lab.config.model_dump(mode="json"),
        "run": None if lab.run is None else str(lab.run),
        "verdict": [plain(claim._asdict()) for claim in verdict],
        "figures": [
            {"file": f"{section.name}.svg", "heading": section.heading, "caption": section.caption} for section in drawn
        ],
        "sections": [plain_section(section) for section in findings.sections],
        "numbers": _finite(plain(findings.numbers)),
    }
    files = [[folder / f"{section.name}{ending}" for ending in (".svg", ".png")] for section in drawn]
    refuse_other_figures(*(path for pair in files for path in pair))  # whose names are known only now
    for section, (svg, png) in zip(drawn, files, strict=True):
        save(section.figure, svg, png, title=section.heading or name, description=section.caption)
        if lab.language == "zh":
            write_text(svg, figure_in_chinese(svg.read_text(encoding="utf-8")))
    write_page(folder, record, lab.language)
    write_text(folder / NUMBERS, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_index(out, {name: read_record(out / name) for name in EXPERIMENTS}, lab.language)
    return record


def run_all(out: Path, lab: Lab) -> Iterator[dict[str, Any]]:
    """Run every experiment in turn and yield its record; an experiment that fails does not stop the others.

    Args:
        out: Folder of all reports.
        lab: Options; configuration and run go to the experiments that use them.

    Raises:
        ConfigError: The index would replace another page.
        StoppedError: A signal stopped a training; the experiments after it are not run.
        DragomanError: Some experiments failed; raised after the last one, with the reason of each.
    """
    refuse_other_report(out)
    failures = []
    for name in EXPERIMENTS:
        lab.say(f"{name}: {EXPERIMENTS[name]}")
        options = usable_options(name)
        usable = lab._replace(
            config=None if "config" not in options or ("run" in options and lab.run is not None) else lab.config,
            run=lab.run if "run" in options else None,
        )
        try:
            yield run_experiment(name, out, usable)
        except StoppedError:
            raise
        except DragomanError as error:
            lab.say(f"{name} failed: {error}")
            failures.append(f"{name}: {error}")
    if failures:
        raise DragomanError(f"{len(failures)} of {len(EXPERIMENTS)} experiments failed: {'; '.join(failures)}")


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return the content of ``numbers.json`` in an experiment's folder; None if it is missing or not a record.

    Raises:
        OSError: It cannot be read now.
    """
    try:
        record = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
        return record if isinstance(record, dict) and {"quick", "verdict", "seconds"} <= record.keys() else None
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _refuse_to_replace(folder: Path, quick: bool) -> None:
    """Raise if a report would replace files of others, or a quick one a full one."""
    refuse_other_report(folder)
    why = "the laboratory would replace this file, which is not its record"
    refuse_others(folder / NUMBERS, why, b'{\n "experiment": "')
    record = read_record(folder)
    if quick and record is not None and not record["quick"]:
        raise ConfigError(f"{folder} holds the report of a full run: choose another --out for a quick one")


def _finite(value: Any) -> Any:
    """Return a plain value with infinite and undefined numbers as text, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
