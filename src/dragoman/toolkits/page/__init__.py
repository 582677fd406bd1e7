"""A translator in one HTML file, and the search of its scripts in node."""

from __future__ import annotations

from dragoman.toolkits.toolkit import Toolkit, lazily

TOOLKIT = Toolkit(
    name="page",
    writer=lazily(__name__, "write"),
    comparer=lazily(__name__, "search"),
    one_file_facts=lazily(__name__, "write:facts_of"),
)
