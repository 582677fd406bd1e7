"""The page of one run or of several side by side: curves, samples, settings that differ, translations.

    write_report([Path("runs/a"), Path("runs/b")], Path("comparison.html"))

The page has no script and loads nothing. CSV files next to it hold its numbers.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError
from dragoman.files import check_name, explained, refuse_others, remove_leftovers_of, write_text
from dragoman.history.charts import AXES, CURVE_COLUMNS, charts, csv_rows
from dragoman.history.summary import Summary, damage_of, summary_of
from dragoman.history.translations import SENTENCE_COLUMNS, Outputs
from dragoman.pages.render import refuse_other_page, render
from dragoman.progress import duration
from dragoman.ready import run_folder
from dragoman.training.record import Record, read_run

MOST_RUNS = 8
"""Largest number of runs on a page, which is the number of its colours."""

MOST_STEPS = 12
"""Largest number of validations whose samples are shown."""

NOT_SETTINGS = ("data.train", "data.valid")
"""Settings that are shown as they are, not part by part."""


@dataclass(frozen=True)
class Moment:
    """Translations of a sample sentence by one run at one validation."""

    step: int
    run: int
    text: str


@dataclass(frozen=True)
class Sample:
    """A sentence of the validation set that was translated at each validation."""

    src: str
    ref: str
    moments: Sequence[Moment]


def read_runs(folders: Sequence[Path]) -> list[Record]:
    """Read the logs of runs.

    Raises:
        ConfigError: There are too many, one is named twice, or one has no log.
    """
    if not 1 <= len(folders) <= MOST_RUNS:
        raise ConfigError(f"a report takes 1 to {MOST_RUNS} runs, got {len(folders)}")
    real = [os.path.realpath(folder) for folder in folders]
    for number, folder in enumerate(folders):
        if real[number] in real[:number]:
            raise ConfigError(f"{folder} is named twice: leave out one of them")
        if not run_folder(folder).is_dir():
            raise ConfigError(f"{folder}: no such run; `dragoman runs` lists those that there are")
        if not (folder / "log.jsonl").exists():
            raise ConfigError(
                f"{folder}: has no log.jsonl, so there is nothing to draw; name a run that was trained here"
            )
    return [read_run(folder) for folder in folders]


def write_report(folders: Sequence[Path], out: Path, outputs: Outputs | None = None) -> list[Path]:
    """Write the page and its CSV files; return their paths. A table of sentences of the report before goes.

    Args:
        folders: The runs.
        out: The page; the CSV files have its name.
        outputs: Translations to compare, if there are any.

    Raises:
        ConfigError: A run cannot be read, no file can be written there, or a CSV file there is not a report's.
    """
    for path in (out, *files_beside(out, outputs)):
        check_name(path)
    refuse_other_tables(out)
    runs = read_runs(folders)
    names = [str(folder) for folder in folders]
    written = {
        out: page(runs, names, outputs),
        out.with_suffix(".csv"): as_csv(csv_rows(zip(names, runs, strict=True))),
    }
    sentences = sentences_file(out)
    if outputs is not None:
        written[sentences] = as_csv(outputs.csv_rows())
    else:
        remove_leftovers_of(sentences)
        with explained(sentences):
            sentences.unlink(missing_ok=True)
    for path, text in written.items():
        write_text(path, text)
    return list(written)


def files_beside(out: Path, outputs: object) -> list[Path]:
    """Return the CSV files that a report writes."""
    return [out.with_suffix(".csv"), *([sentences_file(out)] if outputs is not None else [])]


def refuse_other_tables(out: Path) -> None:
    """Check by their first lines that the CSV files next to a page, which it replaces or removes, are a report's.

    Raises:
        ConfigError: One is not.
    """
    for path, columns in ((out.with_suffix(".csv"), CURVE_COLUMNS), (sentences_file(out), SENTENCE_COLUMNS)):
        why = "a report would replace or remove this file, which is not its table"
        refuse_others(path, why, f"{','.join(columns)},".encode())


def refuse_other_report(out: Path) -> None:
    """Check that a page under its default name replaces no other file than a page of a report.

    Raises:
        ConfigError: It would.
    """
    refuse_other_page(out, "a report", "<title>dragoman: ")


def sentences_file(out: Path) -> Path:
    """Return the CSV file of sentences next to a page."""
    return out.with_name(f"{out.stem}.sentences.csv")


def page(runs: Sequence[Record], names: Sequence[str], outputs: Outputs | None) -> str:
    """Return the page as HTML."""
    about = [summary_of(run.folder) for run in runs]
    return render(
        "report.html",
        title=" and ".join(names) if len(names) < 3 else f"{len(names)} runs",
        names=names,
        facts=facts(about),
        problems=[*(text for run in runs if (text := damage_of(run))), *different_texts(runs)],
        charts=charts(runs),
        axes=AXES,
        samples=samples(runs),
        settings=different_settings(runs),
        outputs=outputs,
    )


def facts(about: Sequence[Summary]) -> list[tuple[str, list[str]]]:
    """Return rows of facts, each with a cell for every run."""
    scores = {"bleu": "best BLEU", "chrf": "best chrF", "f1": "best bracket F1"}
    rows: list[tuple[str, list[str]]] = [
        ("languages", [run.languages for run in about]),
        ("state", [str(run.state) for run in about]),
        ("steps", [f"{run.steps or 0:,}" for run in about]),
        ("time of training", [duration(run.seconds or 0) for run in about]),
    ]
    for key, title in scores.items():
        rows.append((title, [f"{run.scores[key]:.2f}" if key in run.scores else "" for run in about]))
    return [(name, cells) for name, cells in rows if any(cells)]


def different_texts(runs: Sequence[Record]) -> list[str]:
    """Return a sentence if the runs were not validated on the same text, as far as their stores tell."""
    files = [run.stores.get("valid", {}).get("files", {}) for run in runs]
    texts = {tuple(of_run.get(f"{side}.text", {}).get("sha256") for side in ("src", "tgt")) for of_run in files}
    if len({text for text in texts if None not in text}) < 2:
        return []
    return [
        "The runs were validated on different texts: compare no losses and scores of theirs, but those of one test set"
    ]


def samples(runs: Sequence[Record]) -> list[Sample]:
    """Return the sample sentences with their translations over time, step by step."""
    by_text: dict[tuple[str, str], list[Moment]] = {}
    for number, run in enumerate(runs):
        validations = [event for event in run.validations if isinstance(event.get("samples"), list)]
        for event in _spread(validations, MOST_STEPS):
            for sample in event["samples"]:
                if isinstance(sample, Mapping):
                    src, ref, hyp = (str(sample.get(name, "")) for name in ("src", "ref", "hyp"))
                    by_text.setdefault((src, ref), []).append(Moment(event["step"], number, hyp))
    return [
        Sample(src, ref, sorted(moments, key=lambda moment: (moment.run, moment.step)))
        for (src, ref), moments in by_text.items()
    ]


def _spread(events: Sequence[Any], most: int) -> list[Any]:
    """Return at most ``most`` events, evenly spread; the first and the last are among them."""
    if len(events) <= most:
        return list(events)
    return [events[round(i * (len(events) - 1) / (most - 1))] for i in range(most)]


def different_settings(runs: Sequence[Record]) -> list[tuple[str, list[str]]]:
    """Return the settings that differ between runs, with the value in each; of one run all that are not defaults."""
    named = [settings_by_name(run.config.model_dump(mode="json")) for run in runs]
    if len(runs) == 1:
        given = settings_by_name(run_settings(runs[0]))
        return [(name, [shown(value)]) for name, value in given.items()]
    names = dict.fromkeys(name for settings in named for name in settings)
    rows = [(name, [shown(settings.get(name)) for settings in named]) for name in names]
    return [(name, cells) for name, cells in rows if len(set(cells)) > 1]


def run_settings(run: Record) -> dict[str, Any]:
    """Return the settings of a run that are not the defaults."""
    changed: dict[str, Any] = run.config.model_dump(mode="json", exclude_defaults=True)
    return changed


def settings_by_name(section: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return each setting by its dotted name."""
    named: dict[str, Any] = {}
    for key, value in section.items():
        name = f"{path}{key}"
        is_section = isinstance(value, Mapping) and name not in NOT_SETTINGS
        named |= settings_by_name(value, f"{name}.") if is_section else {name: value}
    return named


def shown(value: Any) -> str:
    """Return the value of a setting for a page."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {shown(inner)}" for key, inner in value.items() if inner is not None)
    if isinstance(value, list | tuple):
        return "; ".join(map(shown, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
