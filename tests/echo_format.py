"""A document format for tests of options; workers import it."""

from __future__ import annotations

import dataclasses
import json

from dragoman.documents.document import Document, DocumentInfo
from dragoman.documents.units import Unit

GIVEN = {"set_lang": True, "front_matter": True, "line_length": 42, "reading_speed": 17.5}
"""A value for each option of formats."""


class Echo:
    """A format whose documents become the options that it was read with."""

    SUFFIXES = (".echo",)
    OPTIONS = (*GIVEN, "columns")

    def read(self, data: bytes, info: DocumentInfo) -> Document:
        """Return a document of one word, saved as the options."""
        options = dataclasses.asdict(info.options) | {"columns": list(info.columns)}
        return Document([Unit("dog", raw=["dog"], escape=str)], lambda render: json.dumps(options).encode())
