"""Admission of requests: however many come at once, few start at a time, and no key takes all connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.serving import connections
from dragoman.serving.admission import AT_ONCE, Places, Starts
from dragoman.serving.keys import make_key
from dragoman.serving.refusals import BusyError
from limits import wait_until


def test_S21_many_requests_start_in_rounds_one_of_each_key_in_turn(figure: Any) -> None:
    started: list[tuple[int, str]] = []

    async def run() -> None:
        starts, n_rounds, is_over = Starts(), 0, False

        def count_rounds() -> None:
            nonlocal n_rounds
            n_rounds += 1
            if not is_over:
                asyncio.get_running_loop().call_soon(count_rounds)

        async def start(owner: str) -> None:
            await starts.turn(owner)
            started.append((n_rounds, owner))

        tasks = [asyncio.ensure_future(start("many")) for _ in range(10 * AT_ONCE)]
        tasks.append(asyncio.ensure_future(start("other")))
        tasks[AT_ONCE + 1].cancel()  # its client has left
        count_rounds()
        await asyncio.gather(*tasks, return_exceptions=True)
        is_over = True
        await asyncio.wait_for(starts.turn("many"), 5)

    asyncio.run(run())
    assert len(started) == 10 * AT_ONCE
    most = max(map([n for n, _ in started].count, range(100)))
    assert most <= 2 * AT_ONCE  # the end of one round, and the next
    place = [owner for _, owner in started].index("other")
    assert place <= AT_ONCE + 2
    figure(
        "S21", f"{len(started)} requests at once: {most} in a round at most; that of another key is number {place + 1}"
    )


def test_a_request_that_comes_alone_starts_at_once() -> None:
    async def run() -> bool:
        turn = Starts().turn("")
        with pytest.raises(StopIteration):
            turn.send(None)
        return True

    assert asyncio.run(run())


def test_a_key_has_so_many_places_and_nobody_any_number() -> None:
    places = Places(lambda: 2)
    with places.place() as first, places.place() as second, places.place() as third:
        for place in (first, first, second):
            place.take("a")
        with pytest.raises(BusyError):
            third.take("a")
        third.take("")
        third.take("b")
        with places.place() as fourth:
            fourth.take("b")
    with places.place() as first, places.place() as second:
        first.take("a")
        second.take("a")


@pytest.mark.parametrize("where", ["header", "body"])
def test_S21_one_key_leaves_connections_to_others(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    keys = {name: make_key(tmp_path / "keys", name) for name in ("a", "b")}
    server = serving(keys=tmp_path / "keys")
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 4)
    is_free = threading.Event()
    n_waiting = 0
    service = server.state.service

    async def translate(*_: Any, **__: Any) -> list[Any]:
        nonlocal n_waiting
        n_waiting += 1
        while not is_free.is_set():
            await asyncio.sleep(0.01)
        raise BusyError(1.0)

    monkeypatch.setattr(service, "translate", translate)

    def ask(name: str) -> int:
        fields = {"q": "the dog", "source": "en", "target": "de"}
        if where == "body":
            return int(server("/translate", {**fields, "api_key": keys[name]}).status)
        return int(server("/translate", fields, authorization=f"Bearer {keys[name]}").status)

    waiting = [threading.Thread(target=ask, args=["a"]) for _ in range(2)]
    for thread in waiting:
        thread.start()
    try:
        wait_until(lambda: n_waiting == 2)
        assert ask("a") == 429  # at once: it does not wait with the others
        other = threading.Thread(target=ask, args=["b"])
        other.start()
        waiting.append(other)
        wait_until(lambda: n_waiting == 3)
        assert server("/livez").status == 200
    finally:
        is_free.set()
        for thread in waiting:
            thread.join()
