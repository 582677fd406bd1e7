"""What a folder was begun with: another call with the same folder must ask for the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError
from dragoman.files import write_text

ASKED = "asked.json"
"""In the folder of a distillation or an augmentation."""


def same_as_before(path: Path, asked: Mapping[str, Any], what: str) -> None:
    """Note what is asked for, or see that it is what an earlier call asked for.

    Args:
        path: Where that is noted.
        what: Who was begun, such as "runs/student: its distillation".

    Raises:
        ConfigError: It is not, or the note is damaged.
    """
    if not path.is_file():
        write_text(path, json.dumps(asked, indent=2) + "\n")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [name for name in {**before, **asked} if before.get(name) != asked.get(name)]
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"{path}: damaged; choose another --out, or delete {path.parent.parent}") from None
    if changed:
        raise ConfigError(
            f"{what} was begun with other {' and other '.join(changed)}: give the same again, or choose another --out"
        )
