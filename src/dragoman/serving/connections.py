"""HTTP connections that nobody can hold without asking: uvicorn's, with a limit of time for headers and for reading.

uvicorn ends a connection that is idle between two requests. One that sends its headers byte by byte, or never takes its
answer, it would keep for ever.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 15.0
"""Seconds in which the headers of a request must have come, from the first byte or from the connection's beginning."""

READING_S = 15.0
"""Seconds in which a client must take something of an answer that waits for it."""


class PatientProtocol(H11Protocol):
    """uvicorn's protocol on h11, with those limits."""

    _until_headers: asyncio.TimerHandle | None = None
    _until_read: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came."""
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        """Something of a request came."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._expect_headers()  # a part of them is here
        else:
            self._end_wait_for_headers()

    def pause_writing(self) -> None:
        """The client takes less than it is sent."""
        super().pause_writing()
        self._until_read = self._until_read or self.loop.call_later(READING_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It has taken nearly all of it."""
        super().resume_writing()
        self._end_wait_for_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._end_wait_for_headers()
        self._end_wait_for_reader()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        self._until_headers = self._until_headers or self.loop.call_later(HEADERS_S, self.transport.abort)

    def _end_wait_for_headers(self) -> None:
        if self._until_headers is not None:
            self._until_headers.cancel()
            self._until_headers = None

    def _end_wait_for_reader(self) -> None:
        if self._until_read is not None:
            self._until_read.cancel()
            self._until_read = None
