"""A lack of memory at one moment."""

from __future__ import annotations

import inspect
from typing import Any

import pytest


def fail_once(patch: pytest.MonkeyPatch, owner: Any, name: str, caller: str = "") -> list[str]:
    """Let a function fail for want of memory the first time, or the first time that ``caller`` calls it.

    Returns:
        A list that gets the name of the function once it has failed.
    """
    real, failed = getattr(owner, name), list[str]()

    def function(*arguments: Any, **named: Any) -> Any:
        frame = inspect.currentframe()
        by = frame.f_back.f_code.co_name if frame is not None and frame.f_back is not None else ""
        if not failed and caller in ("", by):
            failed.append(name)
            raise MemoryError
        return real(*arguments, **named)

    patch.setattr(owner, name, function)
    return failed
