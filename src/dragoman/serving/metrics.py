"""Metrics for Prometheus: requests, latencies, queue, batches, tokens, use by key, room on the disk.

Labels are few and hold no text of users. Names of keys are bounded by the file of keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client import Counter as Count
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from dragoman.serving.batcher import Batcher

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Metrics of one server."""

    def __init__(self, batcher: Batcher) -> None:
        self.registry = CollectorRegistry()
        self.n_characters: Counter[str] = Counter()  # translated since the server started, by key
        names = ["method", "route", "status"]
        self._requests = Count("dragoman_requests", "Requests answered.", names, registry=self.registry)
        self._latency = Histogram(
            "dragoman_request_seconds", "Time to the end of the answer.", ["route"], buckets=SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self._chars = Count("dragoman_characters", "Characters translated.", ["pair"], registry=self.registry)
        self.registry.register(_BatcherMetrics(batcher))
        self.batcher = batcher

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request and its time; status 0 (the client left without an answer) is counted as 499."""
        self._requests.labels(method if method in METHODS else "other", route, str(status or 499)).inc()
        self._latency.labels(route).observe(seconds)

    def translated(self, pair: str, n_chars: int, owner: str) -> None:
        """Count the translated characters of a request of a key."""
        self.n_characters[owner] += n_chars
        self._chars.labels(pair).inc(n_chars)

    def text(self, key: str, room: Mapping[str, bool], *, all_keys: bool = False) -> bytes:
        """Return all metrics in Prometheus' text format.

        Args:
            key: Name of the key that asks, which sees its own use alone; "" on a server without keys.
            room: True for each kind of stored thing whose disk has room.
            all_keys: Show the use of every key, and what all have in common: less one's own it tells that of others.
        """
        own = CollectorRegistry()
        own.register(_KeyMetrics(self.batcher, self.n_characters, None if all_keys else key))
        gauge = Gauge("dragoman_storage_has_room", "1 while the disk has room.", ["what"], registry=own)
        for what, has_room in room.items():
            gauge.labels(what).set(has_room)
        return (generate_latest(self.registry) if all_keys or not key else b"") + generate_latest(own)


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


class _BatcherMetrics:
    """Reads the batcher's counts whenever Prometheus collects them."""

    def __init__(self, batcher: Batcher) -> None:
        self.batcher = batcher

    def collect(self) -> Iterable[Any]:
        """Yield one metric family for each count."""
        done = self.batcher.done
        for name, what, value in (
            ("dragoman_queue_sentences", "Sentences waiting.", self.batcher.n_waiting),
            ("dragoman_running_sentences", "Sentences being translated.", self.batcher.n_running),
            ("dragoman_expected_wait_seconds", "Expected time until the queue is empty.", self.batcher.expected_wait_s),
        ):
            yield GaugeMetricFamily(name, what, value=value)
        for name, what, total in (
            ("dragoman_batches", "Batches searched.", done.batches),
            ("dragoman_sentences", "Sentences searched.", done.sentences),
            ("dragoman_source_tokens", "Source tokens searched, eos counted.", done.tokens),
            ("dragoman_dropped_sentences", "Sentences dropped because their client had left.", done.dropped),
            ("dragoman_search_seconds", "Time spent searching.", done.busy_s),
        ):
            yield CounterMetricFamily(name, what, value=total)


class _KeyMetrics:
    """Use of the server by each key, or by one."""

    def __init__(self, batcher: Batcher, n_characters: Mapping[str, int], only: str | None) -> None:
        self.batcher, self.n_characters, self.only = batcher, n_characters, only

    def collect(self) -> Iterable[Any]:
        """Yield one metric family for each count, with a sample for each key that has a name."""
        characters = CounterMetricFamily("dragoman_key_characters", "Characters translated, by key.", labels=["key"])
        waiting = GaugeMetricFamily("dragoman_key_queue_sentences", "Sentences waiting, by key.", labels=["key"])
        n_waiting = self.batcher.n_waiting_by_owner()
        for key in sorted(name for name in {*self.n_characters, *n_waiting} if name and self.only in (None, name)):
            characters.add_metric([key], self.n_characters.get(key, 0))
            waiting.add_metric([key], n_waiting.get(key, 0))
        yield characters
        yield waiting
