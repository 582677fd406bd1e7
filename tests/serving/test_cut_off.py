"""Requests that are not done when a server that ends has no more time for them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.serving.apis.api import error_of
from dragoman.serving.app import APIS
from dragoman.serving.transport import Envelope, Receive, Send


class Counted:
    """Takes the place of the metrics, and keeps the status of each request."""

    def __init__(self) -> None:
        self.statuses: list[int] = []

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.statuses.append(status)


def cut_off(path: str, first: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return what is sent for a request that sends ``first`` and is cancelled, and the counted statuses."""
    sent: list[dict[str, Any]] = []
    counted = Counted()

    async def route(scope: Any, receive: Receive, send: Send) -> None:
        for message in first:
            await send(message)
        await asyncio.sleep(3600)

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        app = Envelope(route, error_of(APIS), counted)  # type: ignore[arg-type]
        scope = {"type": "http", "method": "POST", "path": path}
        task = asyncio.create_task(app(scope, send, send))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        task.cancel()  # as uvicorn does
        await task

    asyncio.run(run())
    return sent, counted.statuses


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/translate", lambda message: {"error": message}),
        ("/v1/translate", lambda message: {"error": {"message": message}}),
        ("/v2/translate", lambda message: {"message": message}),
    ],
)
def test_it_is_told_in_the_form_of_its_api(path: str, said: Any) -> None:
    """It was a 500 as plain text, with a traceback in the log."""
    (start, *bodies), statuses = cut_off(path, [])
    assert (start["status"], statuses) == (503, [503])
    headers = dict(start["headers"])
    assert (headers[b"content-type"], headers[b"retry-after"]) == (b"application/json", b"10")
    answer = json.loads(b"".join(body["body"] for body in bodies))
    assert answer == said("the server is starting or shutting down: try again later")


def test_a_stream_ends_with_an_error() -> None:
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
    }
    sent, statuses = cut_off("/v1/translate", [start])
    assert statuses == [503]
    assert sent[-1]["body"].startswith(b"event: error\ndata: {")
    assert not sent[-1].get("more_body")
