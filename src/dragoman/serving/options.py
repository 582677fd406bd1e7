"""Options of `serve`, declared once: name, type, default, limits and help; the command line is made from them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Self

from pydantic import field_validator, model_validator

from dragoman.options import must, option, option_group
from dragoman.toolkits.options import FastOptions

DOCUMENTS_SHARE = 0.75
"""Largest share of ``max_bodies`` that documents may take, so that uploads never stop the translating of texts."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@option_group
class ServeOptions(FastOptions):
    """Options of a server; its search options are the defaults of requests."""

    host: str = option("127.0.0.1", "Network", "Address to listen on.")
    port: int = option(5000, "Network", "Port to listen on; 0: any free one.", ge=0, le=65535)
    allow_host: tuple[str, ...] = option(
        (), "Network", "Further host name that clients use for this server; may be repeated."
    )
    cors_origin: tuple[str, ...] = option(
        (), "Network", "Origin whose pages may call the API, such as https://a.org; may be repeated."
    )
    keys: Path | None = option(None, "Access", "File of API keys; requests without a valid key are refused.")
    open: bool = option(False, "Access", "Serve the network without API keys.")
    glossaries: Path | None = option(
        None, "Access", "Folder for the glossaries of clients (default: clients store none)."
    )
    share_glossaries: bool = option(
        False, "Access", "Let every key see and use all stored glossaries; only its owner changes one."
    )
    adopt_glossaries: str | None = option(
        None, "Access", "Name of the key that gets the stored glossaries without an owner."
    )
    metrics_key: str | None = option(
        None, "Access", "Name of the key whose /metrics show all, with the use of every key (default: of itself alone)."
    )
    documents: Path | None = option(
        None, "Access", "Folder for uploaded documents, each kept for an hour (default: a temporary one)."
    )
    batches: int | None = option(
        None,
        "Speed",
        "Number of batches decoded at a time, on one CPU core each; 1: one batch on all cores (default: one per core).",
        ge=1,
        le=256,
    )
    max_wait: float = option(
        5.0, "Limits", "Longest expected wait of a request in seconds; beyond it the answer is 429.", gt=0
    )
    max_chars: int = option(50_000, "Limits", "Largest number of characters in a request.", ge=1)
    max_texts: int = option(500, "Limits", "Largest number of texts in a request.", ge=1)
    max_body: int = option(1_000_000, "Limits", "Largest body of a request in bytes.", ge=1)
    max_document: int = option(20_000_000, "Limits", "Largest uploaded document in bytes.", ge=1)
    max_bodies: int = option(
        200_000_000,
        "Limits",
        "Largest size of all bodies together while they are received and read, in bytes; beyond it the answer is 429.",
        ge=1,
    )
    max_beam: int = option(16, "Limits", "Largest beam size, and number of translations per line.", ge=1)
    grace: float = option(
        30.0, "Limits", "Time for running requests to finish at shutdown, in seconds.", ge=0, le=86_400
    )

    @field_validator("allow_host")
    @classmethod
    def _bare_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"[\w.-]+|[0-9A-Fa-f:]+|\*", name) for name in names):
            raise must("be host names without scheme and port, such as translate.example.org")
        return names

    @field_validator("cors_origin")
    @classmethod
    def _named_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        # "*" would let every page on the web use this server, and "null" every page that puts itself into a sandbox.
        # Browsers compare the whole text: with a path, no page would ever be one of the origin.
        if not all(re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s?#@*]+", origin) for origin in origins):
            raise must("be origins by name, without a path, such as https://a.org or http://localhost:8080")
        return origins

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.host not in LOOPBACK and self.keys is None and not self.open:
            raise ValueError(
                f"host = {self.host} opens the server to the network: give a file of API keys (--keys), or --open to "
                "serve without keys"
            )
        largest = max(self.max_body, math.ceil(self.max_document / DOCUMENTS_SHARE))
        if self.max_bodies < largest:
            raise ValueError(
                f"max_bodies must be {largest:,} or more, as max_body and max_document need it, got {self.max_bodies:,}"
            )
        for name, needed in (("share_glossaries", "glossaries"), ("adopt_glossaries", "glossaries"),
                             ("adopt_glossaries", "keys"), ("metrics_key", "keys")):  # fmt: skip
            if getattr(self, name) and getattr(self, needed) is None:
                raise ValueError(f"{name} needs {needed}: give --{needed} too")
        if self.beam_size is not None and self.beam_size > self.max_beam:
            raise ValueError(f"beam_size must be at most max_beam = {self.max_beam}, got {self.beam_size}")
        return self
