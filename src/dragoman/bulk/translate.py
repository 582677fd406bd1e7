"""A folder translated on a Ray cluster: Ray Data gives shards to actors, each of which holds one model.

What is done is on the disk and not in Ray: a shard appears when it is whole, and the record of the folder names it. So
an actor that dies costs the lines since its last window (2,048 of them), and a killed driver, or a cluster that is
switched off, no more than that for each actor: the same call resumes. All machines see both folders and the run under
the same paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.bulk.cluster import Cluster, Job, Progress, connected
from dragoman.bulk.options import Machines
from dragoman.bulk.record import Done, Record, recorded
from dragoman.bulk.shards import Shard, shard_names
from dragoman.errors import ConfigError
from dragoman.progress import repeated
from dragoman.translation.notes import QUIET, Events
from dragoman.translation.options import TranslateOptions, takes
from dragoman.translation.resumable import forget

POLL_S = 1.0
"""How often actors are asked how far they are."""


@dataclass(frozen=True)
class Failed:
    """A shard that was not translated."""

    shard: str
    why: str


@dataclass(frozen=True)
class Report:
    """What became of a folder."""

    shards: int  # all of them
    lines: int  # of those that are whole now
    kept: int  # shards that were whole before
    failed: tuple[Failed, ...]
    begun_again: int  # shards whose actor died
    notes: Counter[str]  # of each kind, over all shards that are whole

    def __str__(self) -> str:
        said = [f"{self.lines:,} lines in {self.shards - len(self.failed):,} of {self.shards:,} shards"]
        said += [f"{self.kept:,} were done before"] if self.kept else []
        said += [f"{self.begun_again:,} begun again after a worker died"] if self.begun_again else []
        said += [f"notes: {', '.join(f'{n:,} {kind}' for kind, n in sorted(self.notes.items()))}"] if self.notes else []
        return "; ".join(said)


@takes(Machines, TranslateOptions)
def translate_folder(
    run: Path | str | Sequence[Path | str], src: Path | str, out: Path | str, options: TranslateOptions | None = None,
    *, machines: Machines | None = None, column: str | None = None, restart: bool = False, events: Events = QUIET,
    failed: Callable[[Failed], object] | None = None, **changes: Any,
) -> Report:  # fmt: skip
    """Translate a folder of shards on a Ray cluster into another: the same names, as many lines, in the same order.

    After a kill the same call resumes. A shard that cannot be translated does not hold up the others.

    Args:
        run: A run folder or a bundle; several are an ensemble.
        src: A folder of text (plain, ``.gz``, ``.zst``) and ``.parquet``, or one such file.
        out: The folder to write. Its record refuses another model or other options than those it was begun with.
        options: As for ``Translator.translate``; ``workers`` is the number of cores of an actor, 1 if not given.
            ``changes`` are options by name, of these and of ``machines``.
        machines: ``ray``: ``local`` (or None) starts Ray on this machine, ``auto`` finds the cluster that this machine
            belongs to, HOST:PORT names one. ``actors``: how many models work at a time; as many as the cluster has room
            for, if not given. ``device``: ``cpu``, ``cuda`` (a GPU for each actor) or ``auto``: a GPU where the cluster
            has any.
        column: Of ``.parquet`` files; may be left out where there is a single one of text.
        restart: Translate again what is done.
        events: Who is told of progress, in lines.
        failed: Told of each shard that failed, at once.

    Returns:
        What was done, and what failed.

    Raises:
        ConfigError: Options are impossible; ``out`` is not ours or was begun with others; Ray is not installed.
        DataError: There are no shards.
        DragomanError: The cluster cannot be reached, or fails; what is done is kept.
    """
    of_machines = {name: changes.pop(name) for name in Machines.names() if name in changes}
    machines = Machines.of(machines, of_machines)
    options = TranslateOptions.of(options, changes)
    if options.n_best > 1 or options.alignments or not isinstance(options.prefix, str):
        raise ConfigError("n_best, alignments and a prefix for each line are not for a folder: a line gives a line")
    src, out = Path(src).absolute(), Path(out).absolute()
    folder, names = (src.parent if src.is_file() else src), shard_names(src)
    if (out / names[0]).resolve() == (folder / names[0]).resolve() or out.resolve().is_relative_to(src.resolve()):
        raise ConfigError(f"{out}: lies in the folder that is read; choose another one")
    runs = (run,) if isinstance(run, Path | str) else run
    job = Job(
        runs=tuple(Path(each).absolute() for each in runs), src=folder, out=out, column=column,
        device=machines.device, cores=options.workers or 1, options=options,
    )  # fmt: skip
    with connected(machines.ray or "local") as cluster:
        job = cluster.decide(job)
        with recorded(out, job.facts or {}, restart) as record:
            if restart:
                for name in names:
                    forget(out / name)
            return _translate(cluster, job, names, machines.actors, record, events, failed or (lambda one: None))


def _translate(
    cluster: Cluster, job: Job, names: Sequence[str], actors: int | None, record: Record, events: Events,
    failed: Callable[[Failed], object],
) -> Report:  # fmt: skip
    """Inspect all shards, then translate those that the record does not name."""
    failures: list[Failed] = []
    kept: dict[str, Done] = {}
    waiting: list[Shard] = []

    def fail(name: str, why: str) -> None:
        failures.append(Failed(name, why))
        failed(failures[-1])

    for name, said in cluster.inspect(job, names):
        done = record.done.get(name) if (job.out / name).is_file() else None
        if isinstance(said, str):
            fail(name, said)
        elif done is None:
            waiting.append(said)
        elif done.input == said.sha256:
            kept[name] = done
        else:
            fail(name, f"{job.src / name}: not the file that was translated; restore it, or give --restart")
    waiting.sort(key=lambda shard: shard.lines, reverse=True)  # so that none of the longest is begun last
    made: dict[str, Done] = {}
    lines_kept = sum(done.lines for done in kept.values())
    with cluster.translating(job, waiting, actors) as (found, progress):
        with _ticking(progress, lines_kept, lines_kept + sum(shard.lines for shard in waiting), events):
            for name, result in found:
                if isinstance(result, Done):
                    record.add(result)
                    made[name] = result
                else:
                    fail(name, result)
        begun_again = progress()[1]
    whole = [*kept.values(), *made.values()]
    notes = sum((Counter(done.notes) for done in whole), Counter[str]())
    n_lines = sum(done.lines for done in whole)
    return Report(len(names), n_lines, len(kept), tuple(failures), begun_again, notes)


@contextmanager
def _ticking(progress: Progress, before: int, total: int, events: Events) -> Iterator[None]:
    """Tell, while the body runs, how many lines are done."""
    told = events.progress
    if told is None:
        yield
        return

    def tick() -> None:
        done = before + progress()[0]
        if done < total:  # the end is told once
            told(done, total, "lines translated")

    if before < total:
        told(before, total, "lines translated")
    with repeated(tick, POLL_S):
        yield
    told(before + progress()[0], total, "lines translated")
