"""Runs the server: listen, load, become ready, and at SIGTERM finish the requests in flight."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import torch
import uvicorn

from dragoman.errors import ConfigError
from dragoman.serving import parsing
from dragoman.serving.app import build
from dragoman.serving.connections import BACKLOG, QUEUE, PatientProtocol, bound_connections, keep_few_unsent
from dragoman.serving.helpers import can_start_thread, started
from dragoman.serving.log import Log, written_apart
from dragoman.serving.memory import bound_arenas
from dragoman.serving.options import ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.serving.refusals import MOST_HEADER_BYTES
from dragoman.serving.state import State
from dragoman.translation.translator import Translator

logger = logging.getLogger("dragoman.serving")

SWITCH_S = 0.0005
"""Longest time that a search thread keeps Python's interpreter lock while a request waits, in seconds. Python's default
is ten times that, and a request needs the lock several times."""


SILENT_S = 90.0
"""Seconds after which the process ends if no Python code can run in it, such as behind native code that never ends."""

UNUSED = [
    getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO")
    if hasattr(signal, name)
]  # fmt: skip
"""Signals that mean nothing to a server; the system ends a process by them that does not say so."""

HELPERS = 6
"""Number of threads for work that would keep the event loop busy and is not the turn of a key, such as long bodies."""

LAST_S = 10.0
"""Seconds after ``grace`` in which a server that has failed must have ended."""


def serve(runs: Sequence[Path | str], options: ServeOptions | None = None, **changes: Any) -> int:
    """Serve runs until SIGINT, SIGTERM or SIGHUP.

    Returns:
        The exit status: 0, or 1 if a part of the server failed that only a restart can mend.

    Raises:
        ConfigError, BundleError: A run or an option cannot be used, or the port is in use.
    """
    options = ServeOptions.of(options, changes)
    sys.setswitchinterval(SWITCH_S)
    bound_connections()
    # Loading can take minutes: a port that is in use is reported before.
    listener = _listen(options.host, options.port)
    # Only the search threads compute on several cores; see ``Batcher``.
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    # The search threads, the event loop, and one for all helpers.
    bound_arenas((options.batches or cores) + 2)
    try:
        with _handled(dict.fromkeys(UNUSED, signal.SIG_IGN)), written_apart() as log:
            app, state = build(Pairs(Translator.load(run) for run in runs), options, cores)
            status = asyncio.run(_run(app, state, options, listener, log))
    except RuntimeError as error:
        if can_start_thread():
            raise
        raise ConfigError(
            f"the system gives this process too few threads ({error}): raise the limit of processes of its user or "
            "container"
        ) from None
    finally:
        listener.close()
    if not log.is_written:  # stderr is a pipe that nobody reads: a plain exit would wait for it for ever
        os._exit(status)
    return status


@contextlib.contextmanager
def _handled(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    """Handle signals during the body."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keep_few_unsent(listener)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise _no_listener(host, port, error) from None
    return listener


def _no_listener(host: str, port: int, error: Exception) -> ConfigError:
    return ConfigError(f"cannot listen on {host}:{port} ({error}): choose another --port or --host")


def configured(app: Any, grace_s: float, **more: Any) -> uvicorn.Config:
    """Return uvicorn's configuration: limits and time limits of a connection."""
    return uvicorn.Config(
        app, http=PatientProtocol, ws="none", backlog=BACKLOG, log_config=None, access_log=False, server_header=False,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES, timeout_keep_alive=5,
        timeout_graceful_shutdown=math.ceil(grace_s), lifespan="on", **more,
    )  # fmt: skip


async def _run(app: Any, state: State, options: ServeOptions, listener: socket.socket, log: Log) -> int:
    try:  # two servers that start together can both have the port until one of them listens
        listener.listen(QUEUE)
    except OSError as error:
        raise _no_listener(options.host, options.port, error) from None
    server = _Server(configured(app, options.grace), state, log)
    state.watchdog.end = server.end
    state.watchdog.patience = replace(state.watchdog.patience, interpreter_s=SILENT_S)
    asyncio.get_running_loop().set_default_executor(started(HELPERS, "helper"))
    host, port = listener.getsockname()[:2]
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.gather(asyncio.to_thread(state.service.warm), parsing.warm())
    except BaseException:
        server.should_exit = True
        await running
        raise
    if not server.should_exit:  # a signal has come meanwhile
        shown = f"[{host}]" if ":" in host else host
        pairs = ", ".join(pair.name for pair in state.service.pairs)
        log.say(f"serving {pairs} on http://{shown}:{port}  (Ctrl-C ends)")
    await running
    failure = state.watchdog.failure
    if not await asyncio.to_thread(state.service.batcher.close, options.grace if failure is None else 0.0):
        logger.warning("some requests did not finish within %g s", options.grace)
    return 0 if failure is None else 1


class _Server(uvicorn.Server):
    """Becomes unready at the first signal that ends it, before it stops listening."""

    def __init__(self, config: uvicorn.Config, state: State, log: Log) -> None:
        super().__init__(config)
        self._state, self._log = state, log

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; more connections may wait than are accepted at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM during the block."""
        # uvicorn raises the signal again at the end, so an orderly shutdown would end as a death by signal.
        # A terminal that closes sends SIGHUP, unless ``nohup`` lets it be ignored.
        ends = [signal.SIGINT, signal.SIGTERM]
        ends += [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
        with _handled(dict.fromkeys(ends, self.handle_exit)):
            yield

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin the shutdown."""
        self._state.service.unready = "the server is shutting down"
        super().handle_exit(sig, frame)

    def end(self, why: str, others_finish: bool) -> None:
        """End the process with exit status 1, so that its supervisor starts it again; any thread may call this.

        Args:
            why: Reason, for the log.
            others_finish: Let the other requests finish; if that takes too long, the process ends all the same.
        """
        logger.error("%s: the server ends, so that its supervisor starts it again", why)
        grace = self.config.timeout_graceful_shutdown or 0
        if not others_finish:
            self._exit()
        self._state.service.unready = "the server is shutting down"
        self.should_exit = True
        deadline = threading.Timer(grace + LAST_S, self._exit)
        deadline.daemon = True
        try:
            deadline.start()
        except RuntimeError:  # the system gives no thread: this one, which has nothing else to do now, waits
            time.sleep(grace + LAST_S)
            self._exit()

    def _exit(self) -> NoReturn:
        self._log.close()  # ``os._exit`` stops the thread that writes why
        os._exit(1)
