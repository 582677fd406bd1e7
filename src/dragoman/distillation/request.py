"""The request that an output folder was begun with: a call that resumes it must request the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError
from dragoman.files import write_text

REQUEST = "asked.json"
"""File name of the request in the folder of a distillation or an augmentation."""


def check_request(path: Path, request: Mapping[str, Any], what: str) -> None:
    """Write a request to a file, or check that it is the same as in the file.

    Args:
        path: The file, ``REQUEST`` in the folder.
        what: Subject of the error message, such as "runs/student: its distillation".

    Raises:
        ConfigError: It differs, or the file is damaged.
    """
    if not path.is_file():
        write_text(path, json.dumps(request, indent=2) + "\n")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [name for name in {**before, **request} if before.get(name) != request.get(name)]
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"{path}: damaged; choose another --out, or delete {path.parent.parent}") from None
    if changed:
        raise ConfigError(
            f"{what} was begun with other {' and other '.join(changed)}: give the same again, or choose another --out"
        )
