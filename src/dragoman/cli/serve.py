"""``dragoman serve``."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli import completion
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import loading
from dragoman.errors import ConfigError, not_installed
from dragoman.options import MachineOptions
from dragoman.serving.keys import make_key
from dragoman.serving.options import ServeOptions

PACKAGES = {
    "fastapi": "fastapi", "uvicorn": "uvicorn", "prometheus_client": "prometheus-client",
    "python_multipart": "python-multipart",
    "py3langid": "py3langid",
}  # fmt: skip
"""Modules that serving needs in addition to the plain install, with their names for pip."""


@with_options(ServeOptions)
@with_options(MachineOptions, "threads", into="machine")
def serve(
    options: ServeOptions,
    machine: MachineOptions,
    runs: Annotated[
        list[Path] | None, typer.Argument(autocompletion=completion.runs, metavar="RUN", help="Run folders or bundles.")
    ] = None,
    new_key: Annotated[
        str | None,
        typer.Option("--make-key", metavar="NAME", help="Add an API key to the file of --keys, print it, and exit."),
    ] = None,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log each request (no text, no key) as a line of JSON on stderr.")
    ] = False,
) -> int:
    """``dragoman serve``; its help is in ``cli/commands.py``."""
    if new_key is not None:
        if options.keys is None:
            raise ConfigError("--make-key adds a key to a file: give the file as --keys FILE")
        make_key(options.keys, new_key, show=lambda key: print(key, flush=True))
        return 0
    if not runs:
        raise ConfigError("no run to serve: give one or several")
    logging.getLogger("dragoman.serving").setLevel(logging.INFO if log_requests else logging.WARNING)
    with loading():
        missing = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
        if missing:
            raise ConfigError(not_installed("serving", *missing))
        from dragoman.serving.server import serve as run_server
    use_threads(machine.threads)
    return run_server(runs, options)
