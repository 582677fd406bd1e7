"""Parts of a running server that its routes share."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.serving.bodies import BodyBudget
from dragoman.serving.documents import Documents
from dragoman.serving.glossaries import Glossaries
from dragoman.serving.jobs import room_of
from dragoman.serving.keys import Keys
from dragoman.serving.metrics import Metrics
from dragoman.serving.pieces import room_of_pieces
from dragoman.serving.service import Service
from dragoman.serving.storage import has_room
from dragoman.serving.watchdog import Watchdog


@dataclass(frozen=True)
class State:
    """Parts of a running server; ``keys`` and ``glossaries`` are None where the operator gave none."""

    service: Service
    metrics: Metrics
    keys: Keys | None
    glossaries: Glossaries | None
    documents: Documents
    watchdog: Watchdog
    budget: BodyBudget
    metrics_key: str | None = None  # name of the key that sees the use of every key

    async def room(self) -> dict[str, bool]:
        """Return, for each kind of stored thing, whether its disk has room for one of the largest size."""
        limits = self.service.limits
        n_bytes = room_of(limits.document) + room_of_pieces(limits.document)
        jobs, stored = self.documents.jobs, self.glossaries
        room = {"documents": await jobs.disk.run("", jobs.has_room, n_bytes)}
        if stored is not None:
            room["glossaries"] = await stored.disk.run("", has_room, stored.folder, limits.body)
        return room
