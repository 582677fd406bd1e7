"""Layers in front of the routes, as plain ASGI: body limits, allowed hosts, security headers, request log, metrics.

Bodies are read before a route is called, so that no route waits for a slow or endless one; see ``bodies``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar
from urllib.parse import unquote, unquote_to_bytes

from starlette.requests import Request

from dragoman.serving import bodies
from dragoman.serving.admission import PROBES, Places, Starts
from dragoman.serving.bodies import BodyLimits, Message, Receive, Share
from dragoman.serving.hosts import Hosts
from dragoman.serving.metrics import Metrics
from dragoman.serving.refusals import (
    MOST_HEADER_BYTES,
    BusyError,
    ClientLeft,
    ElsewhereError,
    LongHeadersError,
    MalformedError,
    OriginError,
    RefusalError,
    SlowError,
    TooMuchError,
    UnreadyError,
)
from dragoman.serving.request_json import MOST_FIELDS

T = TypeVar("T")

logger = logging.getLogger("dragoman.serving")

Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LINGER_S = 5.0
"""Longest time for reading and discarding the rest of a refused body, in seconds."""

HEADERS = {
    b"cache-control": b"no-store",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
"""Headers of every answer; a page sets its own content security policy.

What a key may see may be in no cache, which would give it to another.
"""

EVENTS = b"text/event-stream; charset=utf-8"

ErrorBody = Callable[[str, str], Any]
"""Makes the JSON body of an error from the path of the request and the message; see ``apis.api.error_of``."""


class Envelope:
    """Outermost layer: adds the security headers to every answer, and logs and counts every request."""

    def __init__(self, app: App, error: ErrorBody, metrics: Metrics) -> None:
        self.app, self.error, self.metrics = app, error, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, is_stream = time.perf_counter(), 0, False

        async def answer(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status = message["status"]
                is_stream = (b"content-type", EVENTS) in message["headers"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in HEADERS.items() if h[0] not in own)]
            await send(message)

        try:
            await self.app(scope, receive, answer)
        except asyncio.CancelledError:  # the server ends, and the time for this request is over
            unready = UnreadyError()
            body = self.error(scope["path"], str(unready))
            with contextlib.suppress(OSError):
                if not status:
                    await refuse(answer, unready.status, body, {"connection": "close", **unready.headers})
                elif is_stream:
                    last = f"event: error\ndata: {json.dumps(body)}\n\n".encode()
                    await send({"type": "http.response.body", "body": last})
            scope["failed"] = unready.status
        except Exception:
            status = 500  # also where the answer had begun
            raise
        finally:
            status = scope.get("failed", status)  # of an answer that says after its start that it failed
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", scope.get("shed"))  # not the path itself: few labels
            self.metrics.request(scope["method"], route or "other", status, seconds)
            logger.info(
                "%s",
                json.dumps({"method": scope["method"], "route": route, "status": status or 499,
                            "ms": round(1000 * seconds, 1)}),
            )  # fmt: skip


class Gate:
    """Refuses requests that are too long, too slow, unclear, or for another host, before any route sees them."""

    def __init__(self, app: App, error: ErrorBody, hosts: Hosts, limits: BodyLimits, places: Places) -> None:
        """Accept requests for ``hosts`` with bodies within ``limits``, while their keys have ``places``."""
        self.app, self.error, self.hosts, self.limits = app, error, hosts, limits
        self.places, self.starts = places, Starts()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        owner = scope["owner"] = self.limits.owner_of(scope)
        if scope["path"] not in PROBES:
            await self.starts.turn(owner)
        with self.places.place() as scope["place"]:
            await self._answer(scope, owner, receive, send)

    async def _answer(self, scope: Message, owner: str, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        _normalise_target(scope, headers)
        is_complete = False

        async def noted() -> Message:
            nonlocal is_complete
            message = await receive()
            is_complete = not message.get("more_body")
            return message

        try:
            self._check(scope, headers)
            scope["place"].take(owner)
            self._check_upload(scope, owner)
            body, share = await self._body(scope, owner, headers, noted)
            owner = scope["owner"] = owner or self.limits.owner_in(scope, body)
            self._refuse_waiting(scope, owner, body, share)
        except ClientLeft:
            return
        except RefusalError as error:
            unread = None if is_complete or isinstance(error, SlowError) else receive
            said = self.error(scope["path"], str(error))
            await refuse(send, error.status, said, {"connection": "close", **error.headers}, unread)
            return
        # The routes get the body from here in one piece. What comes after it can only be the client's disconnection.
        pending: bytes | None = body

        async def replay() -> Message:
            nonlocal pending
            if pending is None:
                return await receive()
            message = {"type": "http.request", "body": pending, "more_body": False}
            pending = None
            return message

        async def answer(message: Message) -> None:
            share.release()
            if is_head and message["type"] == "http.response.body":
                message["body"] = b""
            await send(message)

        scope["release_body"] = share.release  # for a route that keeps nothing of the body, and answers much later
        is_head = scope["method"] == "HEAD"
        scope["is_head"], scope["method"] = is_head, "GET" if is_head else scope["method"]
        try:
            turn = self._turn(scope, owner, body)
            del body  # the route may answer much later
            async with turn:
                if not await Request(scope, receive).is_disconnected():
                    await self.app(scope, replay, answer)
        finally:
            share.release()
            scope["method"] = "HEAD" if is_head else scope["method"]  # for the log and the metrics

    def _check_upload(self, scope: Message, owner: str) -> None:
        """Refuse a document of a key that has too many: clients try again and again, each time with all of it.

        Raises:
            BusyError: Too many documents of ``owner`` wait.
        """
        limits = self.limits
        is_known = owner or not limits.budget.has_keys  # a key in the body is not known yet
        if scope["method"] == "POST" and scope["path"] in limits.documents and is_known:
            scope["shed"] = scope["path"]  # see ``Shed``
            limits.refuse_document(owner)

    def _refuse_waiting(self, scope: Message, owner: str, body: bytes, share: Share) -> None:
        """Refuse a large body of a key of which many wait for their turn.

        Raises:
            BusyError: Too many wait.
        """
        n_waiting = self.limits.budget.turns.n_waiting(owner)
        if self.limits.is_large(scope["path"], body) and n_waiting >= bodies.LARGE_WAITING:
            share.release()
            raise BusyError(2.0)

    def _turn(self, scope: Message, owner: str, body: bytes) -> AbstractAsyncContextManager[object]:
        """Return what waits for the turn of a request, and holds it: at once, unless its body is large."""
        if not self.limits.is_large(scope["path"], body):
            return contextlib.nullcontext()
        return self.limits.budget.turns.of(owner)

    def _check(self, scope: Message, headers: Mapping[bytes, bytes]) -> None:
        """Check version, length, host, query and framing of a request.

        Raises:
            LongHeadersError: Its first line and headers are too long.
            ElsewhereError: It is for another host.
            OriginError: A page of another site sent it.
            MalformedError: It is of another version, its query is not UTF-8 or has too many fields, or its length is
                given in two ways.
        """
        # h11 reads a request of any version, and of any length if it comes in one piece.
        if not scope["http_version"].startswith("1."):
            raise MalformedError(f"the request must be HTTP/1.1, got HTTP/{scope['http_version']}")
        n_bytes = sum(len(name) + len(value) + len(": \r\n") for name, value in scope["headers"])
        if n_bytes + len(scope.get("raw_path", b"")) + len(scope["query_string"]) > MOST_HEADER_BYTES:
            raise LongHeadersError
        if not self.hosts.accept(headers.get(b"host", b"").decode("latin-1")):
            raise ElsewhereError("this host name is not allowed here: the operator can add it with --allow-host")
        reads = scope["method"] in ("GET", "HEAD")
        if scope["method"] != "OPTIONS" and self.hosts.is_foreign(headers, reads=reads):
            raise OriginError(
                "pages of other sites may not use this server: its operator can allow them (--cors-origin); if this is "
                "its own page, a proxy must pass the header Host on"
            )
        # Each field takes time, however short it is.
        if (n := scope["query_string"].count(b"&")) >= MOST_FIELDS:
            raise MalformedError(f"a query may have at most {MOST_FIELDS:,} fields, got {n + 1:,}")
        # Starlette replaces bytes that are not UTF-8: without this, another text than the client's would be translated.
        try:
            unquote_to_bytes(scope["query_string"]).decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedError("the query must be UTF-8 text") from None
        # A proxy in front that counts the length would see another end of this request, and pass on what follows as the
        # request of another client (RFC 9112, section 6.1).
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise MalformedError("the request must have Content-Length or Transfer-Encoding, got both: leave out one")

    async def _body(
        self, scope: Message, owner: str, headers: Mapping[bytes, bytes], receive: Receive
    ) -> tuple[bytes, Share]:  # fmt: skip
        """Return the body of a request, and its share of the budget.

        Raises:
            RefusalError: The body is too long, too slow, cannot be decompressed, or has no room.
            ClientLeft: The client closed the connection.
        """
        is_document = scope["path"] in self.limits.documents
        most = self.limits.documents.get(scope["path"], self.limits.most_bytes)
        length = int(headers.get(b"content-length", b"0"))
        if length > most:
            raise TooMuchError(f"the body is longer than {most:,} bytes")
        codings = [value for name, value in scope["headers"] if name.lower() == b"content-encoding"]
        encoding = b", ".join(codings).decode("latin-1")  # the header may be there twice
        seconds = bodies.DOCUMENT_S if is_document else bodies.BODY_S
        limit = asyncio.timeout(seconds)
        share = Share(self.limits.budget, limit, owner, is_document=is_document)
        try:
            async with limit:
                share.expect(length)
                body = await bodies.received(receive, most, encoding, share)
            return body, share
        except BaseException as error:
            share.release()
            if not isinstance(error, TimeoutError):
                raise
            if share.is_evicted:
                raise SlowError("the body came too slowly while others waited for room: send it again") from None
            raise SlowError(f"the body did not come within {seconds:.0f} seconds") from None


def _normalise_target(scope: Message, headers: dict[bytes, bytes]) -> None:
    """Bring the target of a request into the usual form: a path with single slashes and none at its end.

    A target that is a whole URL, as for a proxy, also says the host (RFC 9112, section 3.2.2).
    """
    whole = re.match(rb"https?://([^/]*)(.*)", scope.get("raw_path", b""), re.IGNORECASE | re.DOTALL)
    if whole is not None:
        headers[b"host"] = whole[1]
        scope["headers"] = [(name, value) for name, value in scope["headers"] if name.lower() != b"host"]
        scope["headers"].append((b"host", whole[1]))
        scope["path"] = unquote(whole[2].decode("ascii")) or "/"
    # Clients put "/translate" behind the address of a server, which often ends with a slash.
    path = re.sub("//+", "/", scope["path"])
    scope["path"] = path.rstrip("/") or "/" if path.startswith("/") else path


class Shed:
    """Refuses requests while the queue is full, before anything reads them.

    In an overload most requests are refused, and the time spent on each is lost to the accepted ones.
    """

    def __init__(
        self, app: App, error: ErrorBody, queued: Collection[str], busy_for_s: Callable[[Message], float | None]
    ) -> None:
        """Set the paths that use the queue; ``busy_for_s`` returns the seconds until there is room for a request."""
        self.app, self.error, self.queued, self.busy_for_s = app, error, frozenset(queued), busy_for_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self.queued:
            again_after_s = self.busy_for_s(scope)
            if again_after_s is not None:
                scope["shed"] = scope["path"]  # for the metrics: such a request has no route
                busy = BusyError(again_after_s)
                await refuse(send, busy.status, self.error(scope["path"], str(busy)), busy.headers)
                return
        await self.app(scope, receive, send)


async def refuse(
    send: Send, status: int, error: Any, headers: Mapping[str, str], unread: Receive | None = None
) -> None:
    """Answer with an error; the connection is kept unless ``headers`` close it.

    Args:
        error: JSON body in the shape of the API.
        headers: Further headers; ``connection: close`` for a request whose body was not read to its end.
        unread: Receives the rest of an unread body, for ``LINGER_S`` at most.
    """
    body = json.dumps(error).encode()
    all_headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **headers,
    }
    encoded = [(name.encode(), value.encode()) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    # Closing a connection with unread bytes resets it, and the client may then lose the answer: read them first.
    if unread is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while (await unread()).get("more_body"):
                    await asyncio.sleep(0.002)  # let other requests run
    await send({"type": "http.response.body", "body": b""})


async def until_client_leaves(
    receive: Receive, work: Awaitable[T], undo: Callable[[T], Awaitable[object]] | None = None
) -> T:
    """Return the result of ``work``, or cancel it as soon as the client closes the connection.

    Args:
        undo: Called with the result if ``work`` was done all the same.

    Raises:
        ClientLeft: The client closed the connection.
    """

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        has_left = watch.done()
    finally:
        for future in (task, watch):
            if not future.done():
                future.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)
    if not has_left:
        return task.result()
    if undo and not task.cancelled() and task.exception() is None:
        await undo(task.result())
    raise ClientLeft
