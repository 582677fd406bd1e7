"""Turns at something that few may do at a time: one of each API key in turn, however many wait for a key.

turns = Turns(2)
async with turns.of(owner) as turn:
    ...
    await turn.renew()    # in long work, again and again: others that wait have theirs first
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator


class Turns:
    """Lets a number of tasks of one event loop run at a time."""

    def __init__(self, at_once: int, of_owner: int | None = None) -> None:
        """Let ``at_once`` tasks run at a time, and ``of_owner`` of each owner (default: all of them)."""
        self._free, self._of_owner = at_once, of_owner or at_once
        self._held: Counter[str] = Counter()  # by owner
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by owner; the first owner has the next turn

    def n_waiting(self, owner: str) -> int:
        """Return the number of tasks of an owner that wait for a turn."""
        return len(self._waiting.get(owner, ()))

    @contextlib.asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[Turn]:
        """Wait for a turn of ``owner``, and hold it while the body runs."""
        if self._free and self._held[owner] < self._of_owner:
            self._free -= 1
            self._held[owner] += 1
        else:
            await self._granted(self._queued(owner), owner)
        turn = Turn(self, owner)
        try:
            yield turn
        finally:
            if turn.is_held:
                self._pass_on(owner)

    async def renew(self, turn: Turn) -> None:
        """Give a turn to another owner if one waits, and wait for the next; see ``Turn.renew``."""
        if self._waiting.keys() <= {turn.owner}:
            return
        # Before the other tasks of its owner: at most ``at_once`` of an owner have begun.
        future = self._queued(turn.owner, first=True)
        turn.is_held = False
        self._pass_on(turn.owner)
        await self._granted(future, turn.owner)
        turn.is_held = True

    def _queued(self, owner: str, *, first: bool = False) -> asyncio.Future[None]:
        """Return what ends once a turn has come; it waits behind the others of its owner, or before them."""
        future = asyncio.get_running_loop().create_future()
        own = self._waiting.setdefault(owner, deque())
        own.appendleft(future) if first else own.append(future)
        return future

    async def _granted(self, future: asyncio.Future[None], owner: str) -> None:
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # the turn came in the same moment
                self._pass_on(owner)
            raise

    def _pass_on(self, ended: str) -> None:
        """Give a turn that has ended to the owner that has waited longest since its last one, if it may have one more.

        Args:
            ended: Owner of the turn that has ended.
        """
        self._held -= Counter([ended])  # leaves out those that have none
        while (owner := next((name for name in self._waiting if self._held[name] < self._of_owner), None)) is not None:
            own = self._waiting.pop(owner)
            turn = own.popleft()
            if own:
                self._waiting[owner] = own  # its next turn is after all other owners
            if not turn.done():  # done: its task was cancelled while it waited
                self._held[owner] += 1
                turn.set_result(None)
                return
        self._free += 1


class Turn:
    """A turn that a task holds."""

    def __init__(self, turns: Turns, owner: str) -> None:
        """Hold a turn of ``owner``."""
        self._turns, self.owner, self.is_held = turns, owner, True

    async def renew(self) -> None:
        """Let other owners that wait have their turns, and wait for the next one of this owner."""
        await self._turns.renew(self)
