"""Metrics for Prometheus: requests, latencies, queue, batches, tokens. Labels are few and hold no text of users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from dragoman.serving.batcher import Batcher

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Metrics of one server."""

    def __init__(self, batcher: Batcher) -> None:
        self.registry = CollectorRegistry()
        self.n_characters = 0  # translated since the server started
        names = ["method", "route", "status"]
        self._requests = Counter("dragoman_requests", "Requests answered.", names, registry=self.registry)
        self._latency = Histogram(
            "dragoman_request_seconds", "Time to the end of the answer.", ["route"], buckets=SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self._chars = Counter("dragoman_characters", "Characters translated.", ["pair"], registry=self.registry)
        self.registry.register(_BatcherMetrics(batcher))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request and its time; status 0 (the client left without an answer) is counted as 499."""
        self._requests.labels(method if method in METHODS else "other", route, str(status or 499)).inc()
        self._latency.labels(route).observe(seconds)

    def translated(self, pair: str, n_chars: int) -> None:
        """Count the translated characters of a request."""
        self.n_characters += n_chars
        self._chars.labels(pair).inc(n_chars)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


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
