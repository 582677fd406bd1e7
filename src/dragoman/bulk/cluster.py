"""All that runs on Ray: a task that makes the plan, a task for each shard that inspects it, actors that translate.

Ray Data hands out the shards. When an actor dies, Ray starts another and gives it the shard again; the new actor
resumes from the shard's journal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.bulk.record import FinishedShard
from dragoman.bulk.shards import Folders, Shard, inspect, translate_shard
from dragoman.errors import ConfigError, DecodeError, DragomanError, not_installed
from dragoman.files import sha256
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

TRIES = 3
"""Number of attempts at a shard whose actor dies each time."""

REACH_S = 5.0
"""Time that the first machine of a cluster may take to answer, in seconds."""

ANSWER_S = 30.0
"""Time that the counter of progress may take to answer, in seconds; a busy machine needs some."""

STORE_BYTES = 2**28
"""Size of Ray's object store on this machine in bytes; only names and counts go through it."""


class Progress(NamedTuple):
    """Number of lines done, and of shards restarted because an actor died."""

    lines: int
    restarts: int


ReadProgress = Callable[[], Progress]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Job:
    """All that each machine must know to translate shards; paths are absolute."""

    runs: tuple[Path, ...]
    folders: Folders
    device: str
    cores: int  # of each actor
    n_actors: int | None  # None: as many as fit on the cluster
    options: TranslateOptions
    facts: Mapping[str, Any] | None = None  # all that translations depend on; None: not decided yet

    def load(self) -> tuple[Translator, Plan]:
        """Load the model and make the plan, with as many threads as an actor has cores."""
        import torch

        torch.set_num_threads(self.cores)
        translator = Translator.load(self.runs, self.device)
        return translator, translator.plan(self.options, threads=1)  # processes cannot be forked next to Ray's threads

    def facts_of(self, translator: Translator, plan: Plan) -> dict[str, Any]:
        """Return all that translations depend on, in the form that the record of the folder holds."""
        facts: dict[str, Any] = json.loads(json.dumps(translator.facts(plan), default=repr))
        return {**facts, "column": self.folders.column}

    @property
    def needs(self) -> dict[str, int]:
        """Resources of a machine that an actor takes, by Ray's names."""
        return {"num_cpus": self.cores, "num_gpus": 1 if self.device == "cuda" else 0}


def decided_here(job: Job) -> Job | str:
    """Return the job with device, engine and facts decided; or the error message if it is refused."""
    try:
        translator, plan = job.load()
    except DragomanError as error:
        return str(error)
    options = replace(plan.options, engine=plan.engine.name)
    return replace(job, options=options, device=translator.device.type, facts=job.facts_of(translator, plan))


def row_to_inspect(name: str, finished: FinishedShard | None) -> dict[str, str]:
    """Return the row of Ray Data by which a shard is inspected, with the record of its translation if it has one."""
    return {"name": name, "finished": json.dumps(asdict(finished)) if finished else ""}


def inspected(row: dict[str, Any], job: Job) -> dict[str, Any]:
    """Inspect the shard of a row of Ray Data, and its translation if it has one; add it to the row, or the error."""
    src, out, name = job.folders.src, job.folders.out, row["name"]
    try:
        shard = inspect(src, name, job.folders.column)
        finished = FinishedShard(**json.loads(row["finished"])) if row["finished"] else None
        error = finished.unlike(src / name, shard.sha256, out / name) if finished else ""
        return {**row, "shard": json.dumps(asdict(shard)), "error": error}
    except DragomanError as error:
        return {**row, "shard": "", "error": str(error)}
    except Exception as error:  # a bug of ours fails this shard only
        logger.exception("%s", name)
        return {**row, "shard": "", "error": f"{src / name}: {type(error).__name__}: {error}"}


class Worker:
    """An actor that holds one model and translates one shard after the other."""

    def __init__(self, job: Job, counter: Any) -> None:
        import ray

        self.job, self.counter, self.ray_get = job, counter, ray.get
        self.translator, self.plan = job.load()
        if job.facts_of(self.translator, self.plan) != job.facts:
            raise ConfigError(f"{job.runs[0]}: another model or device on {socket.gethostname()} than elsewhere")

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate the shard of a row of Ray Data; add the finished shard to the row, or the error message."""
        shard, folders, started = Shard(**json.loads(row["shard"])), self.job.folders, time.monotonic()
        src = folders.src / shard.name
        if self.ray_get(self.counter.begin.remote(shard.name)) > TRIES:
            return {**row, "finished": "", "error": f"{src}: {TRIES} workers died of it (out of memory?)"}

        def report(lines: int) -> None:
            self.counter.report.remote(shard.name, lines)

        try:
            notes = translate_shard(self.translator, self.plan, shard, folders, report)
            if n_lost := notes["memory"]:
                raise DecodeError(
                    f"{src}: {n_lost:,} lines ran out of memory and are blank; free some memory, or lower batch_tokens "
                    "(--batch-tokens)"
                )
            checksum, seconds = sha256(folders.out / shard.name), round(time.monotonic() - started, 3)
            finished = FinishedShard(shard.name, shard.sha256, shard.lines, checksum, seconds, dict(notes))
            return {**row, "finished": json.dumps(asdict(finished)), "error": ""}
        except DragomanError as error:
            return {**row, "finished": "", "error": str(error)}
        except Exception as error:  # a bug of ours fails this shard only
            logger.exception("%s", shard.name)
            return {**row, "finished": "", "error": f"{src}: {type(error).__name__}: {error}"}


class ProgressCounter:
    """An actor that counts the lines and the attempts of the others."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._attempts: Counter[str] = Counter()

    def begin(self, name: str) -> int:
        """Count an attempt at a shard; return the number of its attempts."""
        self._attempts[name] += 1
        return self._attempts[name]

    def report(self, name: str, lines: int) -> None:
        """Note the number of lines of a shard that are done."""
        self._lines[name] = lines

    def progress(self) -> Progress:
        """Return the sums over all shards."""
        return Progress(sum(self._lines.values()), sum(attempts - 1 for attempts in self._attempts.values()))


class Cluster:
    """A Ray cluster that this process is connected to."""

    def __init__(self, ray: Any, address: str) -> None:
        self._ray, self._address = ray, address

    def decide(self, job: Job) -> Job:
        """Load the model once, on one of the machines, and return the job with device, engine and facts decided.

        Raises:
            ConfigError: No machine has room for an actor.
            DragomanError: The run cannot be loaded there, or an option is impossible.
        """
        if job.device == "auto":
            job = replace(job, device="cuda" if self._ray.cluster_resources().get("GPU") else "cpu")
        self._most_actors(job)
        decided = self._ray.get(self._ray.remote(**job.needs, max_retries=TRIES)(decided_here).remote(job))
        if isinstance(decided, str):
            raise ConfigError(decided)
        return decided

    def _most_actors(self, job: Job) -> int:
        """Return the number of actors that fit on the machines of the cluster."""
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        n_actors = 0
        for machine in machines:
            fit = int(machine.get("CPU", 0)) // job.cores
            n_actors += min(fit, int(machine.get("GPU", 0))) if job.needs["num_gpus"] else fit
        if not n_actors:
            needs = f"{job.cores} cores" + (" and a GPU" if job.needs["num_gpus"] else "")
            most = int(max((machine.get("CPU", 0) for machine in machines), default=0))
            raise ConfigError(
                f"no machine of the cluster {self._address} has {needs} (the largest has {most} cores): lower threads, "
                "or give another device"
            )
        return n_actors

    def inspect(self, job: Job, names: Mapping[str, FinishedShard | None]) -> Iterator[tuple[str, Shard | str]]:
        """Yield each name with its shard, in the order of completion.

        In place of a shard that cannot be read, or was finished from another file or has another translation now,
        comes the reason.

        Args:
            names: Each name with the record of its translation; None if it has none.
        """
        rows = self._rows([row_to_inspect(*named) for named in names.items()]).map(inspected, fn_args=[job])
        for row in _completed(rows):
            yield row["name"], row["error"] or Shard(**json.loads(row["shard"]))

    @contextmanager
    def translating(
        self, job: Job, shards: Sequence[Shard]
    ) -> Iterator[tuple[Iterable[tuple[str, FinishedShard | str]], ReadProgress]]:
        """Translate shards while the body runs.

        Yields:
            The results in the order of completion: each name with its finished shard, or with the reason why it failed;
            and a function that returns the progress so far.
        """
        counter = self._ray.remote(num_cpus=0, max_restarts=-1)(ProgressCounter).remote()

        progress = Progress(0, 0)

        def read_progress() -> Progress:
            nonlocal progress
            with contextlib.suppress(self._ray.exceptions.RayError):  # then the last known progress is shown
                progress = self._ray.get(counter.progress.remote(), timeout=ANSWER_S)
            return progress

        try:
            yield self._translated(job, shards, counter), read_progress
        finally:
            self._ray.kill(counter)

    def _translated(self, job: Job, shards: Sequence[Shard], counter: Any) -> Iterator[tuple[str, FinishedShard | str]]:
        """Yield the results of ``translating``; the actors report to ``counter``."""
        from ray.data import ActorPoolStrategy

        if not shards:
            return
        size = min(job.n_actors or self._most_actors(job), len(shards))
        rows = self._rows([{"name": shard.name, "shard": json.dumps(asdict(shard))} for shard in shards]).map(
            Worker, fn_constructor_args=[job, counter],
            compute=ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=1), **job.needs,
        )  # fmt: skip
        for row in _completed(rows):
            yield row["name"], row["error"] or FinishedShard(**json.loads(row["finished"]))

    def _rows(self, rows: list[dict[str, Any]]) -> Any:
        """Return a Ray data set with a block for each row, so that each row is handed out on its own."""
        return self._ray.data.from_items(rows, override_num_blocks=len(rows))


def _completed(data: Any) -> Iterator[dict[str, str]]:
    """Yield the rows of a data set at once; ``iter_rows`` would hold each back until the next is there."""
    for batch in data.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pandas"):
        yield from batch.to_dict("records")


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to a Ray cluster, or start Ray on this machine (``local``), while the body runs.

    Raises:
        ConfigError: Ray is not installed.
        DragomanError: The cluster cannot be reached, or failed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends no usage statistics
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # otherwise its C++ part writes to stderr
    try:
        import ray
        import ray.data
    except ImportError:
        raise ConfigError(not_installed("translating on a cluster", "'dragoman[ray]'")) from None
    was_connected = ray.is_initialized()
    if not was_connected:
        _connect(ray, address)
    context = ray.data.DataContext.get_current()
    settings = dict(enable_progress_bars=False, print_on_execution_start=False)
    before = {name: getattr(context, name) for name in settings}
    level = logging.getLogger("ray").level, logging.getLogger("ray.data").level
    try:
        for name, value in settings.items():
            setattr(context, name, value)
        for name in ("ray", "ray.data"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield Cluster(ray, address)
    except ray.exceptions.RayError as error:
        raise DragomanError(
            f"cluster {address}: {_first_line(error)}; finished shards are kept, and the same call resumes"
        ) from error
    finally:
        for name, value in before.items():
            setattr(context, name, value)
        for name, was in zip(("ray", "ray.data"), level, strict=True):
            logging.getLogger(name).setLevel(was)
        if not was_connected:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    """Connect Ray to an address, which is reached for at most ``REACH_S`` seconds."""
    host_port = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", address)
    if address not in ("local", "auto") and host_port is None:
        raise ConfigError(f"ray = {address!r}: give local, auto, or HOST:PORT of a cluster's first machine")
    try:
        if host_port:
            # A quick test first: Ray itself waits for minutes.
            socket.create_connection((host_port[1], int(host_port[2])), timeout=REACH_S).close()
        settings = {"object_store_memory": STORE_BYTES, "include_dashboard": False} if address == "local" else {}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **settings)
    except (OSError, RuntimeError, ValueError, OverflowError, ray.exceptions.RayError) as error:
        raise DragomanError(
            f"Ray cluster {address}: cannot be reached ({_first_line(error)}); start it with `ray start --head` and "
            "give HOST:PORT as it says, or give local"
        ) from None


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's message; for an error raised on a machine, of its cause there."""
    while getattr(error, "cause", None) is not None:
        error = error.cause  # type: ignore[attr-defined]
    return next((line.strip() for line in str(error).split("\n") if line.strip()), type(error).__name__)
