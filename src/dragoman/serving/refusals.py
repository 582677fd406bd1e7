"""Reasons for refusing a request, each with the HTTP status of its answer."""

from __future__ import annotations

from dragoman.errors import ServeError

MOST_HEADER_BYTES = 16 * 1024
"""Largest size of the first line and the headers of a request, in bytes."""

MOST_HEADERS = 200
"""Largest number of headers of a request: each takes time, however short it is."""


def readable(text: str) -> str:
    """Return a text with a question mark for each half of a surrogate pair, which no answer can hold."""
    return text.encode("utf-8", "replace").decode()


class RefusalError(ServeError):
    """The request cannot be met."""

    status = 400

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer that tell a client what to do."""
        return {}


class MalformedError(RefusalError):
    """A field or a body of the request cannot be read."""


class UnservedError(RefusalError):
    """The server has no model for a language or a pair of languages."""


class DeniedError(RefusalError):
    """The API key is missing or not known; each API answers with a status of its own."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class UnknownError(RefusalError):
    """The server has no glossary or document of that name."""

    status = 404


class ForeignError(RefusalError):
    """The thing belongs to another API key, which shares it for reading only."""

    status = 403


class TooMuchError(RefusalError):
    """The request is beyond a limit of the server."""

    status = 413


class LongHeadersError(RefusalError):
    """The first line and the headers of the request are too long."""

    status = 431

    def __init__(self) -> None:
        super().__init__(
            f"path, query and headers must have at most {MOST_HEADER_BYTES:,} bytes, and {MOST_HEADERS} lines"
        )


class ElsewhereError(RefusalError):
    """The request is for another host."""

    status = 421


class OriginError(RefusalError):
    """A page of another site sent the request."""

    status = 403


class SlowError(RefusalError):
    """The body came too slowly."""

    status = 408


class UnsupportedEncodingError(RefusalError):
    """The body is compressed in a way that this server does not read."""

    status = 415

    @property
    def headers(self) -> dict[str, str]:
        """Header ``Accept-Encoding``, with the content codings that this server reads."""
        return {"accept-encoding": "gzip, deflate"}


class LaterError(RefusalError):
    """The request cannot be met now: try again after ``retry_after_s`` seconds."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        """Header ``Retry-After``, in whole seconds."""
        return {"retry-after": str(round(self.retry_after_s + 0.5))}


START_S = 10.0
"""Time that a server needs to start, in seconds."""


class UnreadyError(LaterError):
    """The server starts or stops."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the server is starting or shutting down: try again later", START_S)


class BusyError(LaterError):
    """The queue, or a key's share of it, is full, or there is no room for a body."""

    status = 429

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("the server is busy: try again later", retry_after_s)


class FullError(LaterError):
    """The disk of the server is full."""

    status = 507

    def __init__(self) -> None:
        super().__init__("the server has no room to store this: try again later", 30.0)


class UnstorableError(LaterError):
    """The disk of the server cannot be used for another reason than its size."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the server cannot store this now: try again later", 30.0)


class OutdatedError(LaterError):
    """The files of the program were replaced while the server ran, so it can parse nothing until it is restarted."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the server was upgraded and must be restarted to read this: try again later", 30.0)


class UnfinishedError(RefusalError):
    """The search or parsing of a request was given up: its thread died or had no end, or its process was stopped."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the translation was given up because of an error of the server: try again")


class NoMemoryError(LaterError):
    """There was no memory for a sentence, and an answer without it would be a wrong one."""

    status = 503

    def __init__(self) -> None:
        super().__init__("there was no memory for this text: try again later, or send shorter texts", 30.0)


class ClientLeft(Exception):  # noqa: N818  (neither our fault nor the client's)
    """The client closed the connection; an answer would reach nobody."""
