"""What stands before the routes, as plain ASGI: body limits, the Host list, security headers, request logs, metrics.

Bodies are read here, whole, within a limit of bytes and of time, so that no route waits for a slow or endless one.
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
"""Seconds in which the body of a request must have come."""

DOCUMENT_S = 120.0
"""The same for a document."""

LINGER_S = 1.0
"""Seconds in which the rest of a refused body is taken, and thrown away, while the client reads why."""

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
"""Of every answer; a page brings a content security policy of its own."""


ErrorBody = Callable[[str, str], Any]
"""Makes the JSON body of an error from the path of the request and the message; see ``apis.api.error_of``."""


class Envelope:
    """The outermost layer: every answer gets the security headers, every request a line of the log and its metrics."""

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
            route = getattr(scope.get("route"), "path", scope.get("shed"))  # of the route, so that labels are few
            self.metrics.request(scope["method"], route or "other", status, seconds)
            logger.info(
                "%s",
                json.dumps({"method": scope["method"], "route": route, "status": status or 499,
                            "ms": round(1000 * seconds, 1)}),
            )  # fmt: skip


class Gate:
    """Before all routes: nothing passes that is too long, too slow, or for another host."""

    def __init__(
        self, app: App, error: ErrorBody, *, most_bytes: int, of_path: Mapping[str, int], hosts: Sequence[str]
    ) -> None:
        """Take the largest body in bytes: ``most_bytes``, or that of the path in ``of_path``; and the Host names."""
        self.app, self.error, self.most_bytes, self.of_path = app, error, most_bytes, of_path
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}

        async def refused(status: int, message: str, unread: Receive | None = receive) -> None:
            await refuse(send, status, self.error(scope["path"], message), unread=unread)

        if not self._is_for_us(headers.get(b"host", b"").decode("latin-1")):
            await refused(421, "this server is not known by that name: see --allow-host")
            return
        try:
            unquote_to_bytes(scope["query_string"]).decode("utf-8")
        except UnicodeDecodeError:
            await refused(400, "the query is not UTF-8")
            return
        most = self.of_path.get(scope["path"], self.most_bytes)
        seconds = DOCUMENT_S if scope["path"] in self.of_path else BODY_S
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
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()  # the client's leaving
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    def _is_for_us(self, host: str) -> bool:
        """A name that leads elsewhere is refused: a page could have it point here (DNS rebinding)."""
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

    An overload is mostly refusals, and the time that each takes is taken from the requests that were let in.
    """

    def __init__(
        self, app: App, error: ErrorBody, queued: Collection[str], busy_for_s: Callable[[], float | None]
    ) -> None:
        """Take the paths whose texts wait, and a function that returns the seconds until there is room, or None."""
        self.app, self.error, self.queued, self.busy_for_s = app, error, frozenset(queued), busy_for_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self.queued:
            again_after_s = self.busy_for_s()
            if again_after_s is not None:
                scope["shed"] = scope["path"]  # it never comes to its route, whose name the metrics want
                busy = BusyError(again_after_s)
                await refuse(send, busy.status, self.error(scope["path"], str(busy)), busy.headers)
                return
        await self.app(scope, receive, send)


async def refuse(
    send: Send, status: int, error: Any, headers: Mapping[str, str] | None = None, unread: Receive | None = None
) -> None:
    """Answer with an error; the connection is closed if the body of the request may be unread.

    Args:
        error: JSON body in the shape of the API.
        headers: Further headers of a request that was read to its end.
        unread: The rest of a body that may still be coming. It is taken for ``LINGER_S``: a connection that is closed
            over unread bytes is reset, and then the client may lose the answer.
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
    if unread is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while (await unread()).get("more_body"):
                    await asyncio.sleep(0.005)  # others have their turn
    await send({"type": "http.response.body", "body": b""})


async def unless_gone(receive: Receive, work: Awaitable[Any]) -> Any:
    """The result of ``work``; cancels it as soon as the client closes the connection.

    Raises:
        ClientLeft: It did.
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
        for each in (task, watch):
            if not each.done():
                each.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)
