"""Layers in front of the routes, as plain ASGI: body limits, allowed hosts, security headers, request log, metrics.

Bodies are read here, whole, within limits of bytes and time, so that no route waits for a slow or endless one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from dragoman.serving.metrics import Metrics
from dragoman.serving.refusals import BusyError, ClientLeft

logger = logging.getLogger("dragoman.serving")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

BODY_S = 15.0
"""Longest time for receiving the body of a request, in seconds."""

DOCUMENT_S = 120.0
"""Longest time for receiving a document, in seconds."""

LINGER_S = 1.0
"""Longest time for reading and discarding the rest of a refused body, in seconds."""

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
"""Security headers of every answer; a page sets its own content security policy."""

ErrorBody = Callable[[str, str], Any]
"""Makes the JSON body of an error from the path of the request and the message; see ``apis.api.error_of``."""


class Envelope:
    """Outermost layer: adds the security headers to every answer, and logs and counts every request."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in HEADERS.items() if h[0] not in own)]
            await send(message)

        try:
            await self.app(scope, receive, answer)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", scope.get("shed"))  # not the path itself: few labels
            self.metrics.request(scope["method"], route or "other", status, seconds)
            logger.info(
                "%s",
                json.dumps({"method": scope["method"], "route": route, "status": status or 499,
                            "ms": round(1000 * seconds, 1)}),
            )  # fmt: skip


class Gate:
    """Refuses requests that are too long, too slow, or for another host, before any route sees them."""

    def __init__(
        self, app: App, error: ErrorBody, *, most_bytes: int, path_limits: Mapping[str, int], hosts: Sequence[str]
    ) -> None:
        """Set the largest body in bytes (``path_limits`` for some paths, else ``most_bytes``), and the hosts."""
        self.app, self.error, self.most_bytes, self.path_limits = app, error, most_bytes, path_limits
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}

        async def refused(status: int, message: str, unread: Receive | None = receive) -> None:
            await refuse(send, status, self.error(scope["path"], message), unread=unread)

        if not self._is_allowed(headers.get(b"host", b"").decode("latin-1")):
            await refused(421, "this host name is not allowed here: the operator can add it with --allow-host")
            return
        # Starlette replaces bytes that are not UTF-8: without this, another text than the client's would be translated.
        try:
            unquote_to_bytes(scope["query_string"]).decode("utf-8")
        except UnicodeDecodeError:
            await refused(400, "the query must be UTF-8 text")
            return
        most = self.path_limits.get(scope["path"], self.most_bytes)
        seconds = DOCUMENT_S if scope["path"] in self.path_limits else BODY_S
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            await refused(413, f"the body is longer than {most:,} bytes")
            return
        try:
            body = await asyncio.wait_for(self._body(receive, most), seconds)
        except ClientLeft:
            return
        except TimeoutError:
            await refused(408, f"the body did not come within {seconds:.0f} seconds", None)
            return
        if body is None:
            await refused(413, f"the body is longer than {most:,} bytes")
            return
        # The routes get the body from here in one piece. What comes after it can only be the client's disconnection.
        is_replayed = False

        async def replay() -> Message:
            nonlocal is_replayed
            if is_replayed:
                return await receive()
            is_replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    def _is_allowed(self, host: str) -> bool:
        """Return True if the Host header names this server."""
        # Against DNS rebinding: a page elsewhere could let its own host name point to this machine, and read answers.
        name = re.sub(r":\d+$", "", host).strip("[]").lower()
        return "*" in self.hosts or name in self.hosts

    async def _body(self, receive: Receive, most: int) -> bytes | None:
        chunks, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > most:
                return None
            if not message.get("more_body"):
                return b"".join(chunks)


class Shed:
    """Refuses requests while the queue is full, before anything reads them.

    In an overload most requests are refused, and the time spent on each is lost to the accepted ones.
    """

    def __init__(
        self, app: App, error: ErrorBody, queued: Collection[str], busy_for_s: Callable[[], float | None]
    ) -> None:
        """Set the paths that use the queue; ``busy_for_s`` returns the seconds until there is room, or None."""
        self.app, self.error, self.queued, self.busy_for_s = app, error, frozenset(queued), busy_for_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self.queued:
            again_after_s = self.busy_for_s()
            if again_after_s is not None:
                scope["shed"] = scope["path"]  # for the metrics: such a request has no route
                busy = BusyError(again_after_s)
                await refuse(send, busy.status, self.error(scope["path"], str(busy)), busy.headers)
                return
        await self.app(scope, receive, send)


async def refuse(
    send: Send, status: int, error: Any, headers: Mapping[str, str] | None = None, unread: Receive | None = None
) -> None:
    """Answer with an error, and close the connection unless ``headers`` are given.

    Args:
        error: JSON body in the shape of the API.
        headers: Further headers, for a request whose body was read to its end.
        unread: Receives the rest of an unread body, for ``LINGER_S`` at most.
    """
    body = json.dumps(error).encode()
    all_headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(headers or {"connection": "close"}),
    }
    encoded = [(name.encode(), value.encode()) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    # Closing a connection with unread bytes resets it, and the client may then lose the answer: read them first.
    if unread is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while (await unread()).get("more_body"):
                    await asyncio.sleep(0.005)  # let other requests run
    await send({"type": "http.response.body", "body": b""})


async def until_client_leaves(receive: Receive, work: Awaitable[Any]) -> Any:
    """Return the result of ``work``, or cancel it as soon as the client closes the connection.

    Raises:
        ClientLeft: The client closed the connection.
    """

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeft
        return task.result()
    finally:
        for future in (task, watch):
            if not future.done():
                future.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)
