"""Stands for a Ray cluster: inspects and translates the shards in the process of the call, by the code of the actors.

A kill at a file operation must hit all that works on the folder, as a power cut would, and count in one process.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from dragoman.bulk import cluster
from dragoman.bulk.cluster import Job, Progress, Worker
from dragoman.bulk.record import FinishedShard
from dragoman.bulk.shards import Shard
from dragoman.errors import ConfigError


class Here:
    """A cluster of one process; its methods are those of ``cluster.Cluster``."""

    def decide(self, job: Job) -> Job:
        decided = cluster.decided_here(job)
        if isinstance(decided, str):
            raise ConfigError(decided)
        return decided

    def inspect(self, job: Job, names: Mapping[str, FinishedShard | None]) -> Iterator[tuple[str, Shard | str]]:
        for name, finished in names.items():
            row = cluster.inspected(cluster.row_to_inspect(name, finished), job)
            yield name, row["error"] or Shard(**json.loads(row["shard"]))

    @contextlib.contextmanager
    def translating(self, job: Job, shards: Sequence[Shard]) -> Iterator[tuple[Any, Any]]:
        yield self._translated(job, shards), lambda: Progress(0, 0)

    def _translated(self, job: Job, shards: Sequence[Shard]) -> Iterator[tuple[str, FinishedShard | str]]:
        actor = Worker.__new__(Worker)  # without Ray, which its __init__ imports
        actor.job, actor.ray_get = job, lambda answer: answer
        actor.counter = SimpleNamespace(
            begin=SimpleNamespace(remote=lambda name: 1), report=SimpleNamespace(remote=lambda name, lines: None)
        )
        actor.translator, actor.plan = job.load()
        for shard in shards:
            row = actor({"name": shard.name, "shard": json.dumps(asdict(shard))})
            yield shard.name, row["error"] or FinishedShard(**json.loads(row["finished"]))


@contextlib.contextmanager
def connected(address: str) -> Iterator[Here]:
    """See ``cluster.connected``."""
    yield Here()
