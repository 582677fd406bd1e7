"""Threads that prepare requests: keys take turns, and who leaves keeps no thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.serving.apis import deepl_glossaries, native
from dragoman.serving.helpers import Helpers
from dragoman.serving.service import Service
from dragoman.serving.storage import AT_ONCE, Disk
from dragoman.serving.turns import Turns
from dragoman.translation.options import TranslateOptions
from limits import LONG_S


def test_a_call_whose_client_leaves_is_not_made_or_keeps_its_turn_until_it_ends() -> None:
    made: list[str] = []
    go = threading.Event()

    def work(name: str) -> None:
        made.append(name)
        assert go.wait(LONG_S)

    async def run() -> None:
        helpers = Helpers(at_once=2)
        for i in range(10):  # each leaves at once: only the first ever ran
            call = asyncio.create_task(helpers.run("ann", work, f"ann{i}"))
            await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await asyncio.wait_for(helpers.run("bob", made.append, "bob"), LONG_S)
        assert made == ["ann0", "bob"]
        go.set()
        await asyncio.wait_for(helpers.run("ann", made.append, "end"), LONG_S)
        assert made == ["ann0", "bob", "end"]

    asyncio.run(run())


def test_an_error_is_that_of_the_call_and_its_turn_is_passed_on() -> None:
    def fail() -> None:
        raise ValueError("a fault")

    async def run() -> None:
        helpers = Helpers(at_once=1)
        for _ in range(3):
            with pytest.raises(ValueError, match="a fault"):
                await helpers.run("ann", fail)
        assert await helpers.run("ann", lambda: 7) == 7

    asyncio.run(run())


def test_turns_with_a_limit_for_each_owner_leave_one_free_for_others() -> None:
    running: list[str] = []

    async def run() -> None:
        turns, go = Turns(3, of_owner=2), asyncio.Event()

        async def work(owner: str) -> None:
            async with turns.of(owner):
                running.append(owner)
                await go.wait()

        tasks = [asyncio.create_task(work(owner)) for owner in ["ann"] * 5]
        await asyncio.sleep(0)
        assert running == ["ann"] * 2
        tasks += [asyncio.create_task(work("bob")) for _ in range(2)]
        await asyncio.sleep(0)
        assert running == ["ann", "ann", "bob"]
        go.set()
        await asyncio.gather(*tasks)
        assert sorted(running) == ["ann"] * 5 + ["bob"] * 2
        async with turns.of("eve"), turns.of("ann"), turns.of("bob"):  # all three came back
            running.append("end")

    asyncio.run(run())


def test_the_plan_of_a_large_glossary_stops_no_other_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop makes the plans of short requests, so it may never wait for a helper's."""
    begun, go = threading.Event(), threading.Event()

    class Translator:
        config = SimpleNamespace(decode=SimpleNamespace(beam_size=4))

        def plan(self, options: TranslateOptions) -> Any:
            if options.glossary:
                begun.set()
                assert go.wait(LONG_S)
            return SimpleNamespace(glossary=None)

    class Pair:
        name, to, translator = "en-de", None, Translator()

    service = Service.__new__(Service)
    Service.__init__(service, [], None, SimpleNamespace(beam=16), TranslateOptions())  # type: ignore[arg-type]
    large = TranslateOptions(glossary={"dog": "Hund"})
    plans: list[Any] = []
    threads = [threading.Thread(target=lambda: plans.append(service.plan(Pair(), large))) for _ in range(2)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    assert begun.wait(LONG_S)
    plain = service.plan(Pair(), TranslateOptions())  # type: ignore[arg-type]
    assert service.plan(Pair(), TranslateOptions()) is plain  # type: ignore[arg-type]
    go.set()
    for thread in threads:
        thread.join(LONG_S)
    assert plans[0] is plans[1], "equal options have one plan, so that their sentences share batches"


def test_reads_of_files_take_turns_so_that_one_key_delays_no_other() -> None:
    begun: list[str] = []
    go = threading.Event()

    def read(owner: str) -> None:
        begun.append(owner)
        assert go.wait(LONG_S)

    async def run() -> None:
        disk = Disk()
        reads = [asyncio.create_task(disk.run("ann", read, "ann")) for _ in range(10)]
        while len(begun) < AT_ONCE - 1:
            await asyncio.sleep(0.001)
        await asyncio.wait_for(disk.run("bob", begun.append, "bob"), LONG_S)
        assert begun == [*["ann"] * (AT_ONCE - 1), "bob"]
        go.set()
        await asyncio.gather(*reads)
        assert begun.count("ann") == 10

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "body", "reader"),
    [
        (
            "/v2/glossaries",
            {"name": "g", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"},
            (deepl_glossaries, "terms_of"),
        ),
        ("/v1/translate", {"text": ["a dog"], "glossary": "dog\tbaum"}, (native.Glossary, "parse")),
    ],
    ids=["stored", "of a request"],
)
def test_a_glossary_is_read_by_a_helper_and_not_by_the_event_loop(
    path: str, body: dict[str, Any], reader: tuple[Any, str], serving: Callable[..., Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A glossary of 249,000 lines takes 0.65 s, in which a loop would answer nobody."""
    module, name = reader
    terms_of, threads = getattr(module, name), list[str]()

    def noted(*arguments: str) -> Any:
        threads.append(threading.current_thread().name)
        return terms_of(*arguments)

    monkeypatch.setattr(module, name, noted)
    server = serving(glossaries=tmp_path / "glossaries")
    assert server(path, body).status in (200, 201)
    assert [name.startswith("helper-in-turn") for name in threads] == [True]
