"""Servers of the tiny run on loopback, in threads of this process."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

from dragoman.serving.app import build
from dragoman.serving.options import ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.serving.server import configured
from dragoman.translation.translator import Translator
from limits import LONG_S


@pytest.fixture(scope="session")
def served(tiny_run: Path) -> Translator:
    """The translator that is served."""
    return Translator.load(tiny_run)


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    status: int
    headers: Any
    body: bytes = field(repr=True)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A server that listens."""

    url: str
    state: Any

    def __call__(
        self, path: str, data: Any = None, *, form: Any = None, method: str | None = None, **headers: str
    ) -> Reply:
        """Ask it: ``data`` goes as JSON (bytes as they are), ``form`` as a form."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        body = None
        if form is not None:
            body = urlencode(form, doseq=True).encode()
        elif data is not None:
            body = data if isinstance(data, bytes) else json.dumps(data).encode()
            headers.setdefault("content-type", "application/json")
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LONG_S) as answer:
                return Reply(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read())


def _start(served: Translator, *others: Translator, **options: Any) -> tuple[Served, Callable[[], None]]:
    app, state = build(Pairs([served, *others]), ServeOptions(**options))
    server = uvicorn.Server(configured(app, 10, port=0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    state.service.warm()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]

    def stop() -> None:
        server.should_exit = True
        thread.join(LONG_S)
        assert not thread.is_alive()
        assert state.service.batcher.close(LONG_S)

    return Served(f"http://127.0.0.1:{port}", state), stop


@pytest.fixture(scope="module")
def live(served: Translator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the usual options, and a folder for glossaries."""
    made, stop = _start(served, glossaries=tmp_path_factory.mktemp("glossaries"))
    yield made
    stop()


@pytest.fixture
def serving(served: Translator) -> Iterator[Callable[..., Served]]:
    """A function that starts a server, with more translators if need be; options are those of ``ServeOptions``."""
    stops = []

    def start(*others: Translator, **options: Any) -> Served:
        made, stop = _start(served, *others, **options)
        stops.append(stop)
        return made

    yield start
    for stop in stops:
        stop()
