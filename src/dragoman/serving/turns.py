"""Turns at something that few may do at a time: one of each API key in turn, however many wait for a key.

turns = Turns(2)
async with turns.of(owner):
    ...
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class Turns:
    """Lets a number of tasks of one event loop run at a time."""

    def __init__(self, at_once: int) -> None:
        """Let ``at_once`` tasks run at a time."""
        self._free = at_once
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by owner; the first owner has the next turn

    @contextlib.asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn of ``owner``, and hold it while the body runs."""
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(owner, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # the turn came in the same moment
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give a turn that has ended to the owner that has waited longest since its last one."""
        while self._waiting:
            owner = next(iter(self._waiting))
            own = self._waiting.pop(owner)
            turn = own.popleft()
            if own:
                self._waiting[owner] = own  # its next turn is after all other owners
            if not turn.done():  # done: its task was cancelled while it waited
                turn.set_result(None)
                return
        self._free += 1
