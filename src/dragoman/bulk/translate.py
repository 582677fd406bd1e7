"""Translate a folder on a Ray cluster: Ray Data gives shards to actors, each of which holds one model.

The state is on the disk and not in Ray: a shard appears when it is complete, and the record of the folder names it. An
actor that dies costs the lines since its last window of 2,048. A killed driver or a cluster that is switched off costs
no more than that for each actor, and the same call resumes. All machines must see both folders and the run under the
same paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.bulk.cluster import Cluster, Job, ReadProgress, connected
from dragoman.bulk.options import FolderOptions, Machines
from dragoman.bulk.record import FinishedShard, Record, open_record
from dragoman.bulk.shards import Folders, Shard, shard_names
from dragoman.errors import ConfigError
from dragoman.files import lies_in, refuse_alike
from dragoman.options import Options, takes
from dragoman.progress import repeated
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.notes import QUIET, Events
from dragoman.translation.options import TranslateOptions
from dragoman.translation.resumable import forget

POLL_S = 1.0
"""Interval between two progress reports in seconds."""


@dataclass(frozen=True)
class FailedShard:
    """A shard that was not translated, and the reason."""

    shard: str
    why: str


@dataclass(frozen=True)
class Report:
    """Counts of a translated folder, and its failed shards."""

    shards: int  # all shards of the folder
    lines: int  # lines of the shards that are finished now
    kept: int  # shards that were finished before
    failed: tuple[FailedShard, ...]
    begun_again: int  # shards that were restarted because their actor died
    notes: Counter[str]  # number of notes of each kind in all finished shards

    def __str__(self) -> str:
        parts = [f"{self.lines:,} lines in {self.shards - len(self.failed):,} of {self.shards:,} shards"]
        parts += [f"{self.kept:,} were done before"] if self.kept else []
        parts += [f"{self.begun_again:,} begun again after a worker died"] if self.begun_again else []
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(self.notes.items()))
        parts += [f"notes: {kinds}"] if self.notes else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Listeners:
    """Callables that hear of progress and of failed shards while a folder is translated."""

    events: Events
    failed: Callable[[FailedShard], object]


@takes(FolderOptions, Machines, TranslateOptions)
def translate_folder(
    run: Path | str | Sequence[Path | str], src: Path | str, out: Path | str, options: TranslateOptions | None = None,
    *, machines: Machines | None = None, events: Events = QUIET, failed: Callable[[FailedShard], object] | None = None,
    **changes: Any,
) -> Report:  # fmt: skip
    """Translate a folder of shards on a Ray cluster into another, with the same names and as many lines in order.

    After a kill the same call resumes. A shard that cannot be translated does not stop the others.

    Args:
        run: A run folder or a bundle; several are an ensemble.
        src: A folder of text (plain, ``.gz``, ``.zst``) and ``.parquet`` files, or one such file.
        out: The folder to write. Its record refuses another model or other options than those it was begun with.
        options: As for ``Translator.translate``; ``threads`` is the number of cores of an actor, 1 if not given.
            ``changes`` are options by name: of these, of ``machines``, and ``column`` (the column of ``.parquet`` files
            to translate; may be left out if only one holds text) and ``restart`` (translate finished shards again).
        machines: ``ray``: ``local`` (or None) starts Ray on this machine, ``auto`` finds the cluster that this machine
            belongs to, HOST:PORT names one. ``actors``: number of models at work; None: as many as fit. ``device``:
            ``cpu``, ``cuda`` (a GPU for each actor) or ``auto``: a GPU if the cluster has any.
        events: Its ``progress`` is called with the number of lines done.
        failed: Called with each shard that failed, at once.

    Returns:
        The counts, and the failed shards.

    Raises:
        ConfigError: An option is impossible; ``out`` holds other files or was begun with other options; Ray is not
            installed.
        DataError: There are no shards.
        DragomanError: The cluster cannot be reached, or fails; finished shards are kept.
    """
    machines = Machines.of(machines, _taken(Machines, changes))
    folder_options = FolderOptions.of(None, _taken(FolderOptions, changes))
    options = TranslateOptions.of(options, changes)
    options = replace(options, glossary=Glossary.of(options.glossary))  # its file is on this machine
    if options.n_best > 1 or options.alignments or not isinstance(options.prefix, str):
        raise ConfigError("n_best, alignments and a prefix for each line are not for a folder: a line gives a line")
    src, out = Path(src).absolute(), Path(out).absolute()
    folder, names = (src.parent if src.is_file() else src), shard_names(src)
    if (out / names[0]).resolve() == (folder / names[0]).resolve() or lies_in(out, src.resolve()):
        raise ConfigError(f"{out}: lies in the folder that is read; choose another one")
    refuse_alike(out / name for name in names)
    runs = (run,) if isinstance(run, Path | str) else run
    job = Job(
        runs=tuple(Path(path).absolute() for path in runs), folders=Folders(folder, out, folder_options.column),
        device=machines.device, cores=options.threads or 1, n_actors=machines.actors, options=options,
    )  # fmt: skip
    with connected(machines.ray or "local") as cluster:
        job = cluster.decide(job)
        with open_record(out, job.facts or {}, folder_options.restart) as record:
            if folder_options.restart:
                for name in names:
                    forget(out / name)
            return _translate(cluster, job, names, record, Listeners(events, failed or (lambda shard: None)))


def _taken(group: type[Options], changes: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of one group from ``changes`` and return them."""
    return {name: changes.pop(name) for name in group.names() if name in changes}


def _translate(cluster: Cluster, job: Job, names: Sequence[str], record: Record, listeners: Listeners) -> Report:
    """Inspect all shards, then translate those that the record does not name."""
    failures: list[FailedShard] = []
    finished_before: list[FinishedShard] = []
    waiting: list[Shard] = []

    def fail(name: str, why: str) -> None:
        failures.append(FailedShard(name, why))
        listeners.failed(failures[-1])

    there = {name: shard for name, shard in record.finished.items() if (job.folders.out / name).is_file()}
    for name, shard in cluster.inspect(job, {name: there.get(name) for name in names}):
        if isinstance(shard, str):
            fail(name, shard)
        elif name in there:
            finished_before.append(there[name])
        else:
            waiting.append(shard)
    waiting.sort(key=lambda shard: shard.lines, reverse=True)  # a long shard begun last would keep the others waiting
    finished_now: list[FinishedShard] = []
    lines_before = sum(shard.lines for shard in finished_before)
    lines_total = lines_before + sum(shard.lines for shard in waiting)
    with cluster.translating(job, waiting) as (results, read_progress):
        with _progress_reports(read_progress, lines_before, lines_total, listeners.events):
            for name, result in results:
                if isinstance(result, FinishedShard):
                    record.add(result)
                    finished_now.append(result)
                else:
                    fail(name, result)
        begun_again = read_progress().restarts
    complete = finished_before + finished_now
    notes = sum((Counter(shard.notes) for shard in complete), Counter[str]())
    n_lines = sum(shard.lines for shard in complete)
    return Report(len(names), n_lines, len(finished_before), tuple(failures), begun_again, notes)


@contextmanager
def _progress_reports(read_progress: ReadProgress, before: int, total: int, events: Events) -> Iterator[None]:
    """Report the number of lines done to ``events`` while the body runs, every ``POLL_S`` seconds.

    Args:
        before: Lines that were done before.
        total: Lines of all shards.
    """
    report = events.progress
    if report is None:
        yield
        return

    def tick() -> None:
        done = before + read_progress().lines
        if done < total:  # the end is reported once, below
            report(done, total, "lines translated")

    if before < total:
        report(before, total, "lines translated")
    with repeated(tick, POLL_S):
        yield
    report(before + read_progress().lines, total, "lines translated")
