"""What runs on Ray: one task that decides how to translate, a task for each shard that reads it, actors that translate.

Ray Data hands out the shards. When an actor dies it starts another and gives it the shard again; that one resumes from
the shard's journal.
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
from typing import Any

from dragoman.bulk.record import Done
from dragoman.bulk.shards import Shard, inspect, translate_shard
from dragoman.errors import ConfigError, DragomanError, not_installed
from dragoman.files import sha256
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

TRIES = 3
"""How often a shard is begun, where each time the actor dies with it."""

REACH_S = 5.0
"""How long the first machine of a cluster may take to answer."""

STORE_BYTES = 2**28
"""Of Ray's object store on this machine, where nothing but names and counts goes through it."""

Progress = Callable[[], tuple[int, int]]
"""Lines that are done, and shards that were begun again because an actor died."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What each machine must know; paths are absolute."""

    runs: tuple[Path, ...]
    src: Path
    out: Path
    column: str | None
    device: str
    cores: int  # of an actor
    options: TranslateOptions
    facts: Mapping[str, Any] | None = None  # what translations depend on; None: not decided yet

    def load(self) -> tuple[Translator, Plan]:
        """The model and the plan, with as many threads as an actor has cores."""
        import torch

        torch.set_num_threads(self.cores)
        translator = Translator.load(self.runs, self.device)
        return translator, translator.plan(self.options, workers=1)  # on all of its cores: Ray's own threads are about

    def facts_of(self, translator: Translator, plan: Plan) -> dict[str, Any]:
        """What translations depend on, as it is written."""
        facts: dict[str, Any] = json.loads(json.dumps(translator.facts(plan), default=repr))
        return {**facts, "column": self.column}

    @property
    def needs(self) -> dict[str, int]:
        """What of a machine an actor takes."""
        return {"num_cpus": self.cores, "num_gpus": 1 if self.device == "cuda" else 0}


def _decide(job: Job) -> Job | str:
    """The job with everything decided that may be left open; or why it is refused."""
    try:
        translator, plan = job.load()
    except DragomanError as error:
        return str(error)
    options = replace(plan.options, engine=plan.engine.name)
    return replace(job, options=options, device=translator.device.type, facts=job.facts_of(translator, plan))


def _inspected(row: dict[str, Any], job: Job) -> dict[str, Any]:
    """A row of Ray Data: a shard's name, and what it is or why it cannot be read."""
    try:
        return {**row, "shard": json.dumps(asdict(inspect(job.src, row["name"], job.column))), "error": ""}
    except DragomanError as error:
        return {**row, "shard": "", "error": str(error)}


class Worker:
    """An actor: holds one model, and translates one shard after the other."""

    def __init__(self, job: Job, counts: Any) -> None:
        import ray

        self.job, self._counts, self._ray_get = job, counts, ray.get
        self.translator, self.plan = job.load()
        if job.facts_of(self.translator, self.plan) != job.facts:
            raise ConfigError(f"{job.runs[0]}: another model or device on {socket.gethostname()} than elsewhere")

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate the shard of a row of Ray Data."""
        shard, job, started = Shard(**json.loads(row["shard"])), self.job, time.monotonic()
        if self._ray_get(self._counts.begin.remote(shard.name)) > TRIES:
            return {**row, "done": "", "error": f"{job.src / shard.name}: {TRIES} workers died of it (out of memory?)"}

        def tell(lines: int) -> None:
            self._counts.tell.remote(shard.name, lines)

        try:
            notes = translate_shard(self.translator, self.plan, shard, job.src, job.out, job.column, tell)
            made = sha256(job.out / shard.name)
            done = Done(shard.name, shard.sha256, shard.lines, made, round(time.monotonic() - started, 3), dict(notes))
            return {**row, "done": json.dumps(asdict(done)), "error": ""}
        except DragomanError as error:
            return {**row, "done": "", "error": str(error)}
        except Exception as error:  # a bug of ours holds up this shard and no other
            logger.exception("%s", shard.name)
            return {**row, "done": "", "error": f"{job.src / shard.name}: {type(error).__name__}: {error}"}


class Counts:
    """An actor that knows how far the others are."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._begun: Counter[str] = Counter()

    def begin(self, name: str) -> int:
        """A shard is begun; how often that was."""
        self._begun[name] += 1
        return self._begun[name]

    def tell(self, name: str, lines: int) -> None:
        """How many lines of a shard are done."""
        self._lines[name] = lines

    def get(self) -> tuple[int, int]:
        """See ``Progress``."""
        return sum(self._lines.values()), sum(times - 1 for times in self._begun.values())


class Cluster:
    """Ray, connected."""

    def __init__(self, ray: Any, address: str) -> None:
        self._ray, self._address = ray, address

    def decide(self, job: Job) -> Job:
        """Load the model once, on one of the machines, and decide all that may be left open.

        Raises:
            ConfigError: No machine has room for an actor.
            DragomanError: The run cannot be loaded there, or an option is impossible.
        """
        if job.device == "auto":
            job = replace(job, device="cuda" if self._ray.cluster_resources().get("GPU") else "cpu")
        self._room(job)
        said = self._ray.get(self._ray.remote(**job.needs, max_retries=TRIES)(_decide).remote(job))
        if isinstance(said, str):
            raise ConfigError(said)
        return said

    def _room(self, job: Job) -> int:
        """How many actors the machines of the cluster have room for."""
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        n_actors = 0
        for has in machines:
            room = int(has.get("CPU", 0)) // job.cores
            n_actors += min(room, int(has.get("GPU", 0))) if job.needs["num_gpus"] else room
        if not n_actors:
            asked = f"{job.cores} cores" + (" and a GPU" if job.needs["num_gpus"] else "")
            most = int(max((has.get("CPU", 0) for has in machines), default=0))
            raise ConfigError(
                f"no machine of the cluster {self._address} has {asked} (the largest has {most} cores): lower workers, "
                "or give another device"
            )
        return n_actors

    def inspect(self, job: Job, names: Sequence[str]) -> Iterator[tuple[str, Shard | str]]:
        """Each shard as it is, or why it cannot be read, in the order in which they come."""
        rows = self._rows([{"name": name} for name in names]).map(_inspected, fn_args=[job])
        for row in _as_they_come(rows):
            yield row["name"], row["error"] or Shard(**json.loads(row["shard"]))

    @contextmanager
    def translating(
        self, job: Job, shards: Sequence[Shard], actors: int | None
    ) -> Iterator[tuple[Iterable[tuple[str, Done | str]], Progress]]:
        """Translate shards: each as it is done, or why it cannot be translated, in the order in which they come."""
        counts = self._ray.remote(num_cpus=0, max_restarts=-1)(Counts).remote()

        def progress() -> tuple[int, int]:
            with contextlib.suppress(self._ray.exceptions.RayError):
                return self._ray.get(counts.get.remote(), timeout=REACH_S)
            return 0, 0

        try:
            yield self._translated(job, shards, actors, counts), progress
        finally:
            self._ray.kill(counts)

    def _translated(
        self, job: Job, shards: Sequence[Shard], actors: int | None, counts: Any
    ) -> Iterator[tuple[str, Done | str]]:
        from ray.data import ActorPoolStrategy

        if not shards:
            return
        size = min(actors or self._room(job), len(shards))
        rows = self._rows([{"name": shard.name, "shard": json.dumps(asdict(shard))} for shard in shards]).map(
            Worker, fn_constructor_args=[job, counts],
            compute=ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=1), **job.needs,
        )  # fmt: skip
        for row in _as_they_come(rows):
            yield row["name"], row["error"] or Done(**json.loads(row["done"]))

    def _rows(self, rows: list[dict[str, Any]]) -> Any:
        """A data set of a block for each row, so that each is given out by itself."""
        return self._ray.data.from_items(rows, override_num_blocks=len(rows))


def _as_they_come(data: Any) -> Iterator[dict[str, str]]:
    """The rows of a data set, none kept back until the next is there, as ``iter_rows`` does."""
    for batch in data.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pandas"):
        yield from batch.to_dict("records")


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to a cluster, or start Ray on this machine (``local``); what Ray raises in the body is one line.

    Raises:
        ConfigError: Ray is not installed.
        DragomanError: The cluster cannot be reached, or failed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # or its C++ talks on stderr
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
            f"cluster {address}: {_first_line(error)}; what is done is kept, and the same call resumes"
        ) from error
    finally:
        for name, value in before.items():
            setattr(context, name, value)
        for name, was in zip(("ray", "ray.data"), level, strict=True):
            logging.getLogger(name).setLevel(was)
        if not was_connected:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    place = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", address)
    if address not in ("local", "auto") and place is None:
        raise ConfigError(f"ray = {address!r}: give local, auto, or HOST:PORT of a cluster's first machine")
    try:
        if place:
            socket.create_connection((place[1], int(place[2])), timeout=REACH_S).close()  # Ray itself waits for minutes
        given = {"object_store_memory": STORE_BYTES, "include_dashboard": False} if address == "local" else {}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **given)
    except (OSError, RuntimeError, ValueError, OverflowError, ray.exceptions.RayError) as error:
        raise DragomanError(
            f"Ray cluster {address}: cannot be reached ({_first_line(error)}); start it with `ray start --head` and "
            "give HOST:PORT as it says, or give local"
        ) from None


def _first_line(error: BaseException) -> str:
    """What an error says first; of one that a machine raised, what that raised."""
    while getattr(error, "cause", None) is not None:
        error = error.cause  # type: ignore[attr-defined]
    return next((line.strip() for line in str(error).split("\n") if line.strip()), type(error).__name__)
