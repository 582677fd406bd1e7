"""Threads for work on requests that would keep the event loop busy: keys take turns, and no key has all threads.

helpers = Helpers()
segments = await helpers.run(owner, prepare, texts)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

from dragoman.serving.turns import Turns

AT_ONCE = 3
"""Number of threads. More would be no faster: nearly all of this work holds Python's interpreter lock."""

T = TypeVar("T")


class Helpers:
    """Threads that prepare the requests of all keys, and finish their answers."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        """Start nothing yet; a key has all threads but one at most, and at least one."""
        self._turns = Turns(at_once, max(1, at_once - 1))
        self._threads = ThreadPoolExecutor(
            at_once, thread_name_prefix="helper-in-turn", initializer=torch.set_num_threads, initargs=(1,)
        )

    async def run(self, owner: str, work: Callable[..., T], *arguments: object) -> T:
        """Return ``work(*arguments)``, called in a thread when its turn has come.

        A call that is cancelled before its turn is never made. One that runs keeps its turn until it ends, so that
        clients that leave cannot fill the threads.
        """
        has_begun = False

        async def in_turn() -> T:
            nonlocal has_begun
            async with self._turns.of(owner):
                has_begun = True
                return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *arguments))

        task = asyncio.create_task(in_turn())
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may be there to see it
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not has_begun:
                task.cancel()
            raise
