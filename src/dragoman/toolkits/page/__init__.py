"""A translator in one HTML file, and the search of its scripts in node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.toolkits.toolkit import Toolkit, lazily


def one_file_facts(file: Path) -> dict[str, Any]:
    """Return what a page says of itself; see ``write.facts_of``."""
    from dragoman.toolkits.page.write import facts_of

    return facts_of(file)


TOOLKIT = Toolkit(
    name="page",
    writer=lazily(__name__, "write"),
    comparer=lazily(__name__, "search"),
    one_file_facts=one_file_facts,
)
