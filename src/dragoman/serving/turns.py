"""Turns at something that few may do at a time: one of each API key in turn, however many wait for a key.

turns = Turns(2)
async with turns.of(owner) as turn:
    ...
    await turn.renew()    # in long work, again and again: others that wait have theirs first
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator

AGAIN_S = 0.1
"""Time in seconds after which a turn is given on if that failed."""

Waiting = OrderedDict[str, deque[asyncio.Future[None]]]
"""What waits for a turn, by owner; the first owner has the next one."""


def taken_in_turn(waiting: Waiting, owner: str) -> asyncio.Future[None]:
    """Take the first of an owner out; its next turn is after all other owners."""
    own = waiting[owner]
    future = own.popleft()
    if own:
        waiting.move_to_end(owner)
    else:
        del waiting[owner]
    return future


class Turns:
    """Lets a number of tasks of one event loop run at a time."""

    def __init__(self, at_once: int, of_owner: int | None = None) -> None:
        """Let ``at_once`` tasks run at a time, and ``of_owner`` of each owner (default: all of them)."""
        self._free, self._of_owner = at_once, of_owner or at_once
        self._held: Counter[str] = Counter()  # by owner
        self._waiting: Waiting = OrderedDict()

    def n_waiting(self, owner: str) -> int:
        """Return the number of tasks of an owner that wait for a turn."""
        return sum(not waiting.done() for waiting in self._waiting.get(owner, ()))  # done: it has left

    @contextlib.asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[Turn]:
        """Wait for a turn of ``owner``, and hold it while the body runs."""
        turn = Turn(self, owner)
        if self._free and self._held[owner] < self._of_owner:
            self._held[owner] += 1
            self._free -= 1
        else:
            await self._granted(self._queued(owner), owner)
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
        self._held[ended] -= 1
        if self._held[ended] <= 0:
            del self._held[ended]
        self._free += 1
        try:
            self._give_free_ones()
        except BaseException:  # such as a lack of memory: the turn is free, and others wait for it
            asyncio.get_running_loop().call_later(AGAIN_S, self._give_free_ones)
            raise

    def _give_free_ones(self) -> None:
        while self._free:
            owner = next((name for name in self._waiting if self._held[name] < self._of_owner), None)
            if owner is None:
                return
            turn = taken_in_turn(self._waiting, owner)
            if not turn.done():  # done: its task was cancelled while it waited
                self._held[owner] += 1
                self._free -= 1
                turn.set_result(None)


class Turn:
    """A turn that a task holds."""

    def __init__(self, turns: Turns, owner: str) -> None:
        """Hold a turn of ``owner``."""
        self._turns, self.owner, self.is_held = turns, owner, True

    async def renew(self) -> None:
        """Let other owners that wait have their turns, and wait for the next one of this owner."""
        await self._turns.renew(self)
