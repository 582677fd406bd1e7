"""Bodies of requests: received whole, decompressed, within limits of bytes and time, and of all bodies together."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from dragoman.serving.options import DOCUMENTS_SHARE
from dragoman.serving.refusals import BusyError, ClientLeft, MalformedError, TooMuchError, UnsupportedEncodingError
from dragoman.serving.turns import Turns

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

BODY_S = 15.0
"""Longest time for receiving the body of a request, in seconds; for a document, while others wait for room."""

DOCUMENT_S = 120.0
"""Longest time for receiving a document, in seconds."""

ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Content codings of bodies, each with the ``wbits`` of zlib."""

OF_OWNER, OF_OWNER_SMALL = 0.5, 0.75
"""Largest share of the room for bodies that one key may take, where there are keys, and with its small bodies too.

Until a body is read, it counts as one without a key if the key is in it: a flood without a key takes half of the
room at most, and leaves some for small bodies.
"""

LARGE = 16 * 1024
"""Body in bytes from which few requests are answered at a time: parsed it may take ten times its size."""

LARGE_AT_ONCE, LARGE_OF_OWNER = 16, 4
"""Number of requests with large bodies that are answered at a time, and of one key where there are keys."""

UPLOADS_AT_ONCE, UPLOADS_OF_OWNER = 4, 2
"""Number of uploads whose documents are copied out of their bodies at a time, and of one key where there are keys."""

LARGE_WAITING = 64
"""Largest number of requests with large bodies of one key that wait for their turn, each with a connection."""

STEP = 1 << 20
"""Largest number of bytes that are decompressed before other requests may run."""


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """Limits of bodies: of one request, and of all together."""

    most_bytes: int
    documents: Mapping[str, int]
    """Largest document in bytes, by the path of its upload."""
    budget: BodyBudget
    owner_of: Callable[[Message], str]
    """Name of the key in the headers of a request; "" if they have none that is known."""
    owner_in: Callable[[Message, bytes], str]
    """Name of the key that the fields of a request seem to have, before they are read; "" for none.

    It decides turns alone: the route checks the key.
    """
    refuse_document: Callable[[str], None]
    """Raises BusyError if a key may upload no document now."""

    def is_large(self, path: str, body: bytes) -> bool:
        """Return True if few such requests are answered at a time; documents have limits of their own."""
        return len(body) > LARGE and path not in self.documents


class BodyBudget:
    """Bytes that the bodies of all requests may take together, from their first byte until the answer begins."""

    def __init__(self, most_bytes: int, *, has_keys: bool = False) -> None:
        """Allow ``most_bytes`` for all bodies, and half of it for those of one key if there are keys."""
        self.most_bytes, self.used = most_bytes, 0
        self.has_keys = has_keys
        self.used_by: Counter[str] = Counter()  # by the key in the headers
        self.arriving: dict[Share, None] = {}  # in the order in which they began
        self.turns = Turns(LARGE_AT_ONCE, LARGE_OF_OWNER if has_keys else None)
        """Turns of requests with large bodies, from the end of their bodies until they are answered."""
        self.uploads = Turns(UPLOADS_AT_ONCE, UPLOADS_OF_OWNER if has_keys else None)
        """Turns of uploads, whose documents are copied out of their bodies."""

    def make_room(self, own: Share, n_bytes: int) -> None:
        """Make room for ``n_bytes`` more of a body; the slowest clients lose theirs if there is none.

        Raises:
            BusyError: There is no room, or the other bodies of its key take what one key may.
        """
        most_bytes, by_owner = own.most, self.used_by[own.owner]
        most_of_owner = OF_OWNER_SMALL if own.n_bytes + n_bytes <= LARGE else OF_OWNER
        if self.has_keys and by_owner > own.n_bytes and by_owner + n_bytes > most_of_owner * most_bytes:
            raise BusyError(2.0)
        # A document has two minutes to arrive. Nobody has more than the time of any other body while others wait, so
        # clients that stop in the middle cannot keep the room for themselves.
        latest = asyncio.get_running_loop().time() - BODY_S
        for share in list(self.arriving):
            if self.used + n_bytes <= most_bytes:
                return
            if share.began <= latest:
                share.evict()
        if self.used + n_bytes > most_bytes:
            raise BusyError(2.0)


class Share:
    """Bytes of the budget that the body of one request takes."""

    def __init__(self, budget: BodyBudget, limit: asyncio.Timeout, owner: str, *, is_document: bool) -> None:
        """Begin without bytes; ``limit`` ends the receiving of the body."""
        self._budget, self._limit = budget, limit
        self.owner, self.n_bytes = owner, 0
        self.most = budget.most_bytes * (DOCUMENTS_SHARE if is_document else 1)
        self.began, self.is_evicted = asyncio.get_running_loop().time(), False
        budget.arriving[self] = None

    def expect(self, n_bytes: int) -> None:
        """Check that a body of ``n_bytes`` has room, without taking it.

        Raises:
            BusyError: There is no room.
        """
        self._budget.make_room(self, n_bytes)

    def take(self, n_bytes: int) -> None:
        """Take ``n_bytes`` more.

        Raises:
            BusyError: There is no room.
        """
        self._budget.make_room(self, n_bytes)
        self.n_bytes += n_bytes
        self._budget.used += n_bytes
        self._budget.used_by[self.owner] += n_bytes

    def arrived(self) -> None:
        """Note that the body is complete: from now on it cannot be evicted."""
        self._budget.arriving.pop(self, None)

    def evict(self) -> None:
        """End the receiving of the body, and give its bytes back."""
        self.is_evicted = True
        if not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())
        self.release()

    def release(self) -> None:
        """Give the bytes back; further calls do nothing."""
        self.arrived()
        self._budget.used -= self.n_bytes
        self._budget.used_by -= Counter({self.owner: self.n_bytes})  # leaves out those that have none
        self.n_bytes = 0


async def received(receive: Receive, most: int, encoding: str, share: Share) -> bytes:
    """Return the body of a request, decompressed.

    Args:
        receive: Receives the next part of the request.
        most: Largest body in bytes, before and after decompressing.
        encoding: Header Content-Encoding; "" if there is none.
        share: Takes the bytes from the budget of all bodies.

    Raises:
        TooMuchError: The body is too long.
        UnsupportedEncodingError, MalformedError: The body is compressed in another way, or damaged.
        BusyError: All bodies together are too long.
        ClientLeft: The client closed the connection.
    """
    name = encoding.strip().lower()
    if name not in ("", "identity", *ENCODINGS):
        raise UnsupportedEncodingError(
            f"the body must be sent as it is, or compressed by gzip or deflate, got Content-Encoding {encoding[:40]!r}"
        )
    unpacked = zlib.decompressobj(ENCODINGS[name]) if name in ENCODINGS else None
    body, n_received = bytearray(), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        piece = message.get("body", b"")
        n_received += len(piece)
        for part in (piece,) if unpacked is None else _decompressed(unpacked, piece, name):
            if max(n_received, len(body) + len(part)) > most:
                raise TooMuchError(f"the body is longer than {most:,} bytes")
            share.take(len(part))
            body += part
            if len(part) == STEP:
                await asyncio.sleep(0)
        if not message.get("more_body"):
            break
    if unpacked is not None and n_received and not unpacked.eof:
        raise MalformedError(f"the body is not complete {name}: send all of it")
    share.arrived()
    return bytes(body)


def _decompressed(unpacked: Any, piece: bytes, name: str) -> Iterator[bytes]:
    """Yield what a piece of a compressed body gives, in steps.

    Raises:
        MalformedError: The piece is damaged, or follows the end of the compressed body.
    """
    part = b""
    # After a full step zlib may hold more, even if it has read the whole piece.
    while piece or len(part) == STEP:
        if not unpacked.eof:
            try:
                part = unpacked.decompress(piece, STEP)
            except zlib.error:
                raise MalformedError(f"the body is not valid {name}: compress it again") from None
            yield part
            piece = unpacked.unconsumed_tail or unpacked.unused_data
        elif piece:
            raise MalformedError(f"the body goes on after the end of its {name}: send one compressed body")
        else:
            return
