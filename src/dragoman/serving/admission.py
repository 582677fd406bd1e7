"""Admission of requests: few start at a time, one of each key in turn, and one key has half of the connections at most.

starts, places = Starts(), Places(lambda: 2048)
await starts.turn(owner)      # before anything is done for the request
with places.place() as place:
    place.take(owner)         # a BusyError if the key has too many requests in work
    ...
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator

from dragoman.serving.refusals import BusyError
from dragoman.serving.turns import Waiting, taken_in_turn

AT_ONCE = 8
"""Number of requests that start in one round of the event loop, which takes some milliseconds for each."""

PROBES = frozenset({"/livez", "/readyz", "/health"})
"""Paths that wait for no turn: a supervisor restarts a server that does not answer them."""


class Starts:
    """Turns at starting: however many requests come at once, the event loop is never busy with all of them."""

    def __init__(self) -> None:
        """Begin without requests."""
        self._n_started, self._is_counting = 0, False  # in this round of the event loop
        self._waiting: Waiting = OrderedDict()

    async def turn(self, owner: str) -> None:
        """Wait until a request of ``owner`` may start: at once, unless many others start now."""
        # The next round begins when the event loop has looked for new connections, and what has come on the others.
        if not self._is_counting:
            asyncio.get_running_loop().call_soon(self._begin_round)
            self._is_counting = True
        if self._n_started < AT_ONCE and not self._waiting:
            self._n_started += 1
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(future)
        await future

    def _begin_round(self) -> None:
        self._n_started, self._is_counting = 0, False
        try:
            while self._waiting and self._n_started < AT_ONCE:
                owner = next(iter(self._waiting))
                future = taken_in_turn(self._waiting, owner)
                if not future.done():  # done: its client has left
                    self._n_started += 1
                    future.set_result(None)
        finally:  # without memory for one request, the others start all the same
            if self._n_started or self._waiting:
                asyncio.get_running_loop().call_soon(self._begin_round)
                self._is_counting = True


class Places:
    """Requests in work, of which one key may have a number: each keeps a connection."""

    def __init__(self, most_of_owner: Callable[[], int]) -> None:
        """Let each key have ``most_of_owner()`` requests in work."""
        self._most_of_owner = most_of_owner
        self._held: Counter[str] = Counter()

    @contextlib.contextmanager
    def place(self) -> Iterator[Place]:
        """Yield the place of one request, which it leaves at the end of the body."""
        place = Place(self._most_of_owner, self._held)
        try:
            yield place
        finally:
            place.leave()


class Place:
    """Place of one request, which its key takes once it is known."""

    def __init__(self, most_of_owner: Callable[[], int], held: Counter[str]) -> None:
        """Begin without a key."""
        self._most_of_owner, self._held, self._owner = most_of_owner, held, ""

    def take(self, owner: str) -> None:
        """Count the request as one of ``owner``; "" is nobody, and a second call does nothing.

        Raises:
            BusyError: The key has too many requests in work.
        """
        if not owner or self._owner:
            return
        if self._held[owner] >= self._most_of_owner():
            raise BusyError(2.0)
        self._held[owner] += 1
        self._owner = owner

    def leave(self) -> None:
        """End to count the request."""
        self._held -= Counter([self._owner])  # leaves out those that have none
        self._owner = ""
