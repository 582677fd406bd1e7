"""Cancellation of a search, carried by its segments.

    cancellation = Cancellation()
    translator.translate(texts, events=Events(cancellation=cancellation))     # in one thread
    cancellation.cancel()                                                     # in another

Nothing here imports torch: options are read where torch is not loaded.
"""

from __future__ import annotations

from collections.abc import Callable


class Cancellation:
    """Ends the search for the segments that share it: they leave at the next step."""

    def __init__(self, is_asked: Callable[[], bool] = lambda: False) -> None:
        """Take a function that cancels as soon as it returns True; any thread may call it, at each step."""
        self._is_asked, self._cancelled = is_asked, False

    def cancel(self) -> None:
        """End the search; any thread may call this."""
        self._cancelled = True

    @property
    def cancelled(self) -> bool:
        """True if the translations are no longer needed."""
        return self._cancelled or self._is_asked()
