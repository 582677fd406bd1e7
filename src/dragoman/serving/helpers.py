"""Threads for work on requests that would keep the event loop busy: keys take turns, and no key has all threads.

helpers = Helpers()
segments = await helpers.run(owner, prepare, texts)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

from dragoman.serving.turns import Turns

AT_ONCE = 3
"""Number of threads. More would be no faster: nearly all of this work holds Python's interpreter lock."""

T = TypeVar("T")


def started(n_threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool of threads that all run already: later the system may give no more.

    Raises:
        RuntimeError: It gives too few now.
    """
    threads = ThreadPoolExecutor(
        n_threads, thread_name_prefix=name, initializer=torch.set_num_threads, initargs=(1,)
    )  # fmt: skip
    all_run = threading.Barrier(n_threads)
    try:
        for waiting in [threads.submit(all_run.wait) for _ in range(n_threads)]:
            waiting.result()
    except RuntimeError:
        all_run.abort()
        threads.shutdown(wait=False)
        raise
    return threads


def can_start_thread() -> bool:
    """Return True if the system lets this process have one thread more."""
    thread = threading.Thread(target=int)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


class Helpers:
    """Threads that prepare the requests of all keys, and finish their answers."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        """Start the threads; a key has all but one at most, and at least one."""
        self._turns = Turns(at_once, max(1, at_once - 1))
        self._threads = started(at_once, "helper-in-turn")

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
