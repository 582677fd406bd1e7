"""The parts of a running server, which its routes share."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.serving.documents import Documents
from dragoman.serving.glossaries import Glossaries
from dragoman.serving.keys import Keys
from dragoman.serving.metrics import Metrics
from dragoman.serving.service import Service


@dataclass(frozen=True)
class State:
    """The parts of a running server."""

    service: Service
    metrics: Metrics
    keys: Keys | None
    glossaries: Glossaries | None
    documents: Documents
