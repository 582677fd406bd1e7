"""How to serve: each option once, with its name, type, default, check and help; the command line is made from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from dragoman.translation.options import Options, Precision, option

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """All options of a server."""

    host: Annotated[str, option("Network", "Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, option("Network", "Port to listen on; 0 takes any that is free.", ge=0, le=65535)] = 5000
    allow_host: Annotated[
        tuple[str, ...],
        option("Network", "Host name under which clients reach the server, beside its address; may be repeated."),
    ] = ()
    cors_origin: Annotated[
        tuple[str, ...], option("Network", "Origin whose pages may call the API, as https://a.org; may be repeated.")
    ] = ()
    keys: Annotated[Path | None, option("Access", "File of API keys; requests without a key are refused.")] = None
    open: Annotated[bool, option("Access", "Serve the network without API keys.")] = False
    glossaries: Annotated[
        Path | None, option("Access", "Folder for glossaries that clients store (default: they cannot).")
    ] = None
    documents: Annotated[
        Path | None,
        option("Access", "Folder for uploaded documents, each kept for an hour (default: a temporary one)."),
    ] = None
    engine: Annotated[str, option("Speed", "Decoding engine: torch, ctranslate2 or auto.")] = "torch"
    precision: Annotated[Precision, option("Speed", "Precision: fp32, bf16 or int8.")] = "fp32"
    fast: Annotated[
        bool,
        option(
            "Speed",
            "Use the fastest engine, precision and stopping rule of this machine; some translations differ.",
        ),
    ] = False
    batch_tokens: Annotated[
        int | None, option("Speed", "Batch size in tokens, padding included (default: the run's).", ge=1)
    ] = None
    batches: Annotated[
        int | None,
        option(
            "Speed",
            "Number of batches decoded at a time, one CPU core each; 1: one on all cores (default: one for each core).",
            ge=1,
            le=256,
        ),
    ] = None
    max_wait: Annotated[
        float, option("Limits", "Seconds that a request may have to wait; beyond that it is answered 429.", gt=0)
    ] = 5.0
    max_chars: Annotated[int, option("Limits", "Characters in one request.", ge=1)] = 50_000
    max_texts: Annotated[int, option("Limits", "Texts in one request.", ge=1)] = 500
    max_body: Annotated[int, option("Limits", "Bytes of a request's body.", ge=1)] = 1_000_000
    max_document: Annotated[int, option("Limits", "Bytes of an uploaded document.", ge=1)] = 20_000_000
    max_beam: Annotated[int, option("Limits", "Beam size and number of translations per line.", ge=1)] = 16
    grace: Annotated[float, option("Limits", "Seconds in which requests may finish at shutdown.", ge=0)] = 30.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.host not in LOOPBACK and self.keys is None and not self.open:
            raise ValueError(
                f"host = {self.host} opens the server to the network: give a file of API keys (--keys), or --open to "
                "serve without"
            )
        if "*" in self.cors_origin:
            raise ValueError("cors_origin = '*' would let every page on the web use this server: name the origins")
        return self
