"""HTTP connections that no client can hold open: uvicorn's, with time limits for headers and for reading answers.

uvicorn ends connections that are idle between two requests. It would keep one for ever whose client sends its headers
byte by byte, or never reads its answer. What is no HTTP at all is refused here, as JSON and with the security headers.
While there are too many connections, those go that have waited longest for their clients: a new client gets its answer.

h11 reads each byte in the thread of the event loop, so what it reads must be cheap: two of its patterns are rewritten,
and very many headers and small chunks are refused.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from importlib.metadata import version
from typing import Any

import h11
from h11 import _abnf, _readers
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.errors import ConfigError, shortened
from dragoman.serving.refusals import MOST_HEADER_BYTES, MOST_HEADERS, LongHeadersError, TooMuchError
from dragoman.serving.transport import HEADERS

HEADERS_S = 15.0
"""Longest time for receiving the headers of a request, in seconds, from the connection or the first byte."""

READING_S = 15.0
"""Longest time for reading an answer, or ``LEAST_READ`` bytes of a long one, in seconds."""

LEAST_READ = 64 * 1024
"""Number of bytes of a long answer that a client must read in ``READING_S``."""

MOST_UNREAD = 200_000_000
"""Largest size of what clients have not read yet of all long answers together, such as explanations, in bytes."""

UNSENT = 128 * 1024
"""Largest number of bytes that the system keeps for a connection and has not sent: it may take megabytes otherwise."""


BACKLOG = 64
"""Largest number of connections that are accepted at once, before the limit of all is looked at."""

QUEUE = 1024
"""Largest number of connections that wait to be accepted; the system may allow fewer. Beyond it each loses seconds."""

LET_GO = 8
"""Fraction, as a divisor, of the connections that wait for their clients, and go together while there are too many.

While none waits, the server holds up to ``BACKLOG`` connections more, until some have their answers.
"""

MOST_CONNECTIONS = 4096
"""Largest number of connections, where the system allows so many files; each may keep some 30 KB of a request."""

FILES_OF_CONNECTION = 3
"""Number of files for each connection: its own, that of a document which it fetches, and one for all other work."""

MOST_FILES = MOST_CONNECTIONS * FILES_OF_CONNECTION
"""Largest number of files that a server lets itself open, where the system allows so many."""

PIECE = 64 * 1024
"""Most bytes that are read at once: so many may wait behind a request that the server works on."""


def bound_connections() -> None:
    """Set how many connections the server holds: a third of its files.

    Without files asyncio can accept no connection, and tries again and again, with a traceback in the log each time.
    """
    global MOST_CONNECTIONS
    import resource  # not every system has it

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = MOST_FILES if soft == resource.RLIM_INFINITY else soft
    MOST_CONNECTIONS = max(1, min(MOST_FILES, files) // FILES_OF_CONNECTION)


MOST_CHUNKS, LEAST_CHUNK = 1_000, 32
"""Number of chunks of a body that may be small, and smallest mean size of further ones in bytes.

A chunk of one byte takes as long to read as one of a kilobyte.
"""


def _made_linear(name: str, source: str, part: str, linear: str) -> bytes:
    """Return the text of one of h11's patterns, changed so that it takes linear time.

    Args:
        name: Name of the pattern in ``h11._readers``.
        source: Name of its text in ``h11._abnf``.
        part: Part of the text that takes the square of a line.
        linear: Text that takes the place of ``part``.

    Raises:
        ConfigError: This version of h11 reads requests in another way: it may take the square of a line.
    """
    text: str = getattr(_abnf, source, "")
    pattern = getattr(_readers, name, None)
    changed = text.replace(part, linear)
    # In this process the pattern may have been changed before.
    if text.count(part) != 1 or getattr(pattern, "pattern", b"").decode() not in (text, changed):
        raise ConfigError(
            f"h11 must be a version whose patterns are known to this server, such as {KNOWN_H11}, got "
            f"{version('h11')}: install h11=={KNOWN_H11}"
        )
    return changed.encode()


KNOWN_H11 = "0.16.0"
"""Version of h11 whose patterns are replaced here."""

_HEADER_LINE = re.compile(_made_linear("header_field_re", "header_field", r":[ \t]*", r":[ \t]*+"))
"""h11's pattern of a header, which after the colon takes all spaces at once: it tried every number of them, twice."""

_CHUNK_LINE = re.compile(
    _made_linear("chunk_header_re", "chunk_header", r"(?P<chunk_ext>;.*)?[ \t]*", r"(?:(?P<chunk_ext>;.*)|[ \t]*)")
)
"""h11's pattern of the line before a chunk, in which the spaces after an extension are a part of it alone."""

_readers.header_field_re, _readers.chunk_header_re = _HEADER_LINE, _CHUNK_LINE


class _FewLines(ReceiveBuffer):
    """h11's buffer, which refuses very many headers, and very many trailers after a body in chunks."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines up to the next blank one; None if it has not come yet.

        Raises:
            h11.LocalProtocolError: They are too many: each takes time, however short it is.
        """
        lines = super().maybe_extract_lines()
        if lines is not None and len(lines) > 1 + MOST_HEADERS:
            raise h11.LocalProtocolError("too many headers", error_status_hint=LongHeadersError.status)
        return lines


class BoundedReader(h11.Connection):
    """h11's reader of requests, which refuses very many headers, and a body in very many small chunks."""

    _n_chunks = _n_bytes = 0

    def __init__(self, most_bytes: int) -> None:
        """Read requests whose headers have at most ``most_bytes``."""
        super().__init__(h11.SERVER, most_bytes)
        self._receive_buffer = _FewLines()

    def next_event(self) -> Any:
        """Return the next part of a request.

        Raises:
            h11.RemoteProtocolError: The request is not valid, or has too many headers or too many small chunks.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._n_chunks = self._n_bytes = 0
        elif isinstance(event, h11.Data):
            self._n_chunks += event.chunk_start
            self._n_bytes += len(event.data)
            if self._n_chunks > MOST_CHUNKS + self._n_bytes // LEAST_CHUNK:
                raise h11.RemoteProtocolError(
                    f"a body may have {MOST_CHUNKS:,} chunks of any size, then of {LEAST_CHUNK} bytes on average",
                    error_status_hint=TooMuchError.status,
                )
        return event


def keep_few_unsent(listener: socket.socket) -> None:
    """Let the system keep few bytes of an answer that a client does not read, for all connections of ``listener``."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT") and listener.family in (socket.AF_INET, socket.AF_INET6):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)


def _without_values(message: str) -> str:
    """Return a message of h11 without the line that it repeats, which may have a key: clients log what they get.

    The name of a header stays.
    """
    reason, _, line = message.partition(": bytearray(b")
    name, colon, _ = line[1:].partition(":")
    return f"{reason}: {name}" if colon and name.replace("-", "").isalnum() else reason


class PatientProtocol(H11Protocol):
    """uvicorn's protocol on h11 with both time limits, and a limit of all connections."""

    _until_headers: asyncio.TimerHandle | None = None
    _until_read: asyncio.TimerHandle | None = None
    began = 0.0  # time of the connection, or of its last answer

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Read requests by ``BoundedReader``."""
        super().__init__(*arguments, **named)
        self.conn = BoundedReader(MOST_HEADER_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for headers; let other connections go if there are too many."""
        super().connection_made(transport)
        self.began = self.loop.time()
        # The transport says at once when something of an answer is unread, and again when all is read.
        transport.set_write_buffer_limits(high=0)
        transport.max_size = PIECE  # type: ignore[attr-defined]  # asyncio's own, for ``recv``
        n_too_many = len(self.connections) - MOST_CONNECTIONS
        if n_too_many > 0 and not self._let_others_go() and n_too_many > BACKLOG:
            transport.abort()
            return
        self._expect_headers()

    def _let_others_go(self) -> bool:
        """End the connections that have waited longest for their clients; return False if none waits.

        Those that have had their answers go first. While none waits, each ends with its answer.
        """
        all_others = [other for other in self.connections if isinstance(other, PatientProtocol) and other is not self]
        waiting = [other for other in all_others if other.waits_for_client()]
        waiting.sort(key=lambda other: (other.cycle is None or not other.cycle.response_complete, other.began))
        for other in waiting[: -(-len(waiting) // LET_GO)]:
            self.connections.discard(other)  # the transport calls ``connection_lost`` later
            other.transport.abort()
        return bool(waiting)

    def waits_for_client(self) -> bool:
        """Return True while it is the client's turn: to send a request or the rest of one, or to read its answer."""
        is_idle = self.cycle is None or self.cycle.response_complete
        is_reading = self.conn.their_state is h11.SEND_BODY
        return is_idle or is_reading or self.flow.write_paused or self.transport.is_closing()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless there are too many connections."""
        self.began = self.loop.time()
        if len(self.connections) > MOST_CONNECTIONS and self.conn.their_state is h11.DONE:
            self.connections.discard(self)  # the transport calls ``connection_lost`` later, once the answer is sent
            self.transport.close()
        super().on_response_complete()
        if self._sends_what_nobody_reads():
            self._expect_headers()

    def _sends_what_nobody_reads(self) -> bool:
        """Return True if a request was answered before its body came, as the one that precedes one of another page."""
        return self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; end the time limit once its headers are complete."""
        super().data_received(data)
        if (self.conn.their_state is h11.IDLE or self._sends_what_nobody_reads()) and not self.transport.is_closing():
            self._expect_headers()
        else:
            self._end_wait_for_headers()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, and close the connection; uvicorn calls this while it handles h11's error."""
        error = sys.exception()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE) or not isinstance(error, h11.RemoteProtocolError):
            self.transport.close()  # in the middle of an answer nothing can be said any more
            return
        status = error.error_status_hint
        if status == LongHeadersError.status:
            message = str(LongHeadersError())
        elif status == TooMuchError.status:
            message = str(error)
        else:
            status, message = 400, shortened(f"the request must be valid HTTP/1.1: {_without_values(str(error))}")
        body = json.dumps({"error": message}).encode()
        headers = [
            (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"connection", b"close"),
            *HEADERS.items(),
        ]  # fmt: skip
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        """Start the time limit for reading: the client reads more slowly than the server writes."""
        super().pause_writing()
        n_unread = self.transport.get_write_buffer_size()
        if n_unread > LEAST_READ:
            self._let_unread_answers_go()
        self._expect_reading(n_unread)

    def _let_unread_answers_go(self) -> None:
        """End the connections that have read for the longest time, while what is unread of all is too much."""
        readers = [
            other for other in self.connections if isinstance(other, PatientProtocol) and other.flow.write_paused
        ]
        n_bytes = sum(other.transport.get_write_buffer_size() for other in readers)
        for other in sorted(readers, key=lambda other: (other is self, other.began)):
            if n_bytes <= MOST_UNREAD:
                return
            n_bytes -= other.transport.get_write_buffer_size()
            other.transport.abort()

    def _expect_reading(self, n_unread: int) -> None:
        self._end_wait_for_reader()
        self._until_read = self.loop.call_later(READING_S, self._look_at_reading, n_unread)

    def _look_at_reading(self, n_before: int) -> None:
        """End the connection unless the client has read enough since ``n_before`` bytes were unread."""
        n_unread = self.transport.get_write_buffer_size()
        if n_unread > n_before - LEAST_READ:
            self.transport.abort()
        else:
            self._expect_reading(n_unread)

    def resume_writing(self) -> None:
        """End the time limit for reading: the client has read all."""
        super().resume_writing()
        self._end_wait_for_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """End both time limits."""
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
