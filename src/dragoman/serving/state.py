"""Parts of a running server that its routes share."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.serving.bodies import BodyBudget
from dragoman.serving.documents import Documents
from dragoman.serving.glossaries import Glossaries
from dragoman.serving.keys import Keys
from dragoman.serving.metrics import Metrics
from dragoman.serving.service import Service
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
