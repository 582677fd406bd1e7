"""An HTTP API of the server: its routes, and what the layers before the routes must know of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter


@dataclass(frozen=True)
class Api:
    """One API. Every module beside this one has its own as ``API``; ``app.APIS`` lists them."""

    router: APIRouter
    prefix: str
    """Beginning of the paths of its routes, such as ``/v2/``; the longest that fits a path decides whose it is."""
    error: Callable[[str], Any]
    """Makes the JSON body of an error answer from its message, as clients of the API read it."""
    queued: Sequence[str] = ()
    """Paths whose texts wait in the queue of all requests."""
    uploads: Sequence[str] = ()
    """Paths whose body is a document."""


def error_of(apis: Sequence[Api]) -> Callable[[str, str], Any]:
    """Return the function ``(path, message)`` that makes the body of an error in the shape of the path's API."""
    by_length = sorted(apis, key=lambda api: -len(api.prefix))

    def error(path: str, message: str) -> Any:
        api = next((api for api in by_length if path.startswith(api.prefix)), None)
        return {"error": message} if api is None else api.error(message)

    return error
