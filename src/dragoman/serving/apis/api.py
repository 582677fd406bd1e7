"""An HTTP API of the server: its routes, and the facts about them that the layers in front need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter


@dataclass(frozen=True)
class Api:
    """One API. Each module of this package defines its ``API``; ``app.APIS`` lists them."""

    router: APIRouter
    prefix: str
    """Beginning of its paths, such as ``/v2/``; a path belongs to the API with the longest matching prefix."""
    error: Callable[[str], Any]
    """Makes the JSON body of an error from its message, in the form that clients of the API expect."""
    queued: Sequence[str] = ()
    """Paths that use the queue, and are refused while it is full."""
    uploads: Sequence[str] = ()
    """Paths whose body is a document."""


def error_of(apis: Sequence[Api]) -> Callable[[str, str], Any]:
    """Return a function ``(path, message)`` that makes the body of an error in the form of the path's API."""
    by_length = sorted(apis, key=lambda api: -len(api.prefix))

    def error(path: str, message: str) -> Any:
        api = next((api for api in by_length if path.startswith(api.prefix)), None)
        return {"error": message} if api is None else api.error(message)

    return error
