"""Rows S13: hostile documents and texts cost their sender a request, and nobody else anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.hostile_server import KINDS, Watch, attack, attacked, send_all
from benchmarks.serving import Server
from dragoman.serving.keys import make_key

Figure = Callable[[str, str], None]

ANSWERS = {"200", "400", "413"}


@pytest.fixture
def two_keys(tmp_path: Path) -> list[str]:
    """Keys of a hostile and of an honest client, in the file ``keys``."""
    return [make_key(tmp_path / "keys", name) for name in ("hostile", "honest")]


def test_S13_short_hostile_uploads_are_answered_while_others_are_served(
    tiny_run: Path, tmp_path: Path, two_keys: list[str]
) -> None:
    server = Server(tiny_run, "--keys", str(tmp_path / "keys"))
    try:
        watch = Watch(server.port, two_keys[1])
        time.sleep(0.5)  # it has begun to ask
        outcomes = send_all(server.port, two_keys[0], attack(2 * len(KINDS), most=20_000), 150)
        seen = watch.stop()
        assert {status for _, status, _ in outcomes} <= ANSWERS, outcomes
        assert seen["livez_requests"] > 0, seen
        assert not seen["unanswered"], seen
        assert not seen["failed"], seen
        assert server.process.poll() is None
    finally:
        server.process.kill()
        server.process.wait()


@pytest.mark.faults
def test_S13_hostile_uploads_up_to_every_limit_delay_nobody(
    tiny_run: Path, tmp_path: Path, two_keys: list[str], figure: Figure
) -> None:
    server = Server(tiny_run, "--keys", str(tmp_path / "keys"))
    try:
        seen = attacked(server, two_keys, attack(200), cap_s=600, quiet_s=30)
    finally:
        server.process.kill()
        server.process.wait()
    assert set(seen["statuses"]) <= ANSWERS, seen
    assert seen["alive"], seen
    assert not seen["attack"]["failed"], seen
    assert seen["attack"]["livez_p99_ms"] <= 100, seen
    assert seen["attack"]["honest_p99_ms"] < 3 * seen["quiet"]["honest_p99_ms"], seen
    figure(
        "S13",
        f"200 hostile uploads of {len(KINDS)} kinds: {seen['statuses']} in {seen['seconds']} s; /livez within "
        f"{seen['attack']['livez_p99_ms']} ms (p99); honest requests {seen['quiet']['honest_p99_ms']} ms before, "
        f"{seen['attack']['honest_p99_ms']} ms meanwhile",
    )
