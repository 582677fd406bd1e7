"""The application: every API's routes, what each error is answered with, and the routes of operation."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.serving import explaining, pages
from dragoman.serving.apis import deepl, deepl_glossaries, deepl_v3, libretranslate, native
from dragoman.serving.batcher import TURN_ON_CPU, Batcher, BusyError
from dragoman.serving.documents import Documents
from dragoman.serving.glossaries import Glossaries, UnknownError
from dragoman.serving.http import DeniedError, MalformedError, State, check_key, no_json, state_of
from dragoman.serving.keys import Keys
from dragoman.serving.limits import Limits, TooMuchError
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import LOOPBACK, ServeOptions
from dragoman.serving.pairs import Pairs, UnservedError
from dragoman.serving.service import Service
from dragoman.serving.transport import ClientLeft, Envelope, Gate, Shed, error_body, retry_after
from dragoman.translation.options import TranslateOptions

logger = logging.getLogger("dragoman.serving")

STATUS: dict[type[Exception], int] = {
    UnservedError: 400,
    MalformedError: 400,
    TooMuchError: 413,
    UnknownError: 404,
    BusyError: 429,
}
"""What errors of ours are answered with; the rest of ``DragomanError`` is the request's fault: 400."""


def build(pairs: Pairs, options: ServeOptions, cores: int = 1) -> tuple[Any, State]:
    """The ASGI application for some pairs, and its parts; ``cores`` is what all searches have together.

    Raises:
        ConfigError: An option cannot be met: a file of keys, a folder, an engine.
    """
    on_cpu = all(pair.translator.device.type == "cpu" for pair in pairs)
    owners = options.batches or (cores if on_cpu else 1)
    batcher = Batcher(
        longest_wait_s=options.max_wait, owners=owners, cores=cores if owners == 1 else 1,
        turn=TURN_ON_CPU if on_cpu and options.batch_tokens is None else None,
    )  # fmt: skip
    limits = Limits(chars=options.max_chars, texts=options.max_texts, body=options.max_body, beam=options.max_beam)
    defaults = TranslateOptions(
        engine=options.engine, precision=options.precision, fast=options.fast,
        batch_tokens=options.batch_tokens, workers=1,
    )  # fmt: skip
    service = Service(pairs, batcher, limits, defaults)
    keys = None if options.keys is None else Keys.load(options.keys)
    stored = None if options.glossaries is None else Glossaries(options.glossaries)
    state = State(service, Metrics(batcher), keys, stored, Documents(service, options.documents))
    app = FastAPI(
        title="dragoman", docs_url=None, redoc_url=None, openapi_url="/spec", lifespan=_lifespan,
        description="Translation by a Transformer: dragoman's own API, LibreTranslate's and DeepL's v2.",
    )  # fmt: skip
    app.state.dragoman, app.state.turns = state, explaining.Turns()
    apis = native, libretranslate, deepl, deepl_glossaries, deepl_v3, explaining, pages
    for router in (api.router for api in apis):
        app.include_router(router)
    _operations(app)
    _errors(app)
    app.openapi = lambda: described(app, pairs)  # type: ignore[method-assign]
    app.add_middleware(Shed, queued=QUEUED, busy_for_s=lambda: batcher.busy_for_s)
    hosts = [*LOOPBACK, options.host, *options.allow_host]
    if options.host in ("0.0.0.0", "::") and not options.allow_host:
        hosts = ["*"]
    sizes = dict.fromkeys(UPLOADS, options.max_document)
    outer: Any = Gate(app, most_bytes=options.max_body, of_path=sizes, hosts=hosts)
    if options.cors_origin:  # outside of all that refuses: a page may read why
        outer = CORSMiddleware(
            outer, allow_origins=list(options.cors_origin), allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key"], expose_headers=["retry-after"],
        )  # fmt: skip
    return Envelope(outer, state.metrics), state


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The documents in work are given up at the end."""
    yield
    await app.state.dragoman.documents.close()


def _operations(app: FastAPI) -> None:
    @app.get("/livez", tags=["operation"], summary="Whether the process answers", response_class=PlainTextResponse)
    async def livez() -> PlainTextResponse:
        return PlainTextResponse("ok")

    @app.get("/readyz", tags=["operation"], summary="Whether it takes requests", response_class=PlainTextResponse)
    async def readyz(request: Request) -> PlainTextResponse:
        ready = state_of(request).service.ready
        return PlainTextResponse("ok" if ready else "not ready", status_code=200 if ready else 503)

    @app.get("/metrics", tags=["operation"], summary="Figures for Prometheus", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        check_key(request, None, missing=401, wrong=403)
        return Response(state_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _errors(app: FastAPI) -> None:
    """Each error as the API that was asked would say it; nothing of ours in any but the log."""

    def answer(request: Request, status: int, message: str, headers: Any = None) -> JSONResponse:
        return JSONResponse(error_body(request.url.path, message), status_code=status, headers=headers)

    @app.exception_handler(DragomanError)
    async def ours(request: Request, error: DragomanError) -> JSONResponse:
        if isinstance(error, DeniedError):
            return answer(request, error.status, str(error))
        if isinstance(error, BusyError):
            return answer(request, 429, str(error), retry_after(error.retry_after_s))
        if not state_of(request).service.ready:
            return answer(request, 503, "the server is starting or shutting down: try again later")
        status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 400)
        return answer(request, status, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(request, 400, "; ".join(map(_said, error.errors()[:5])))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        if error.status_code == 400 and error.__cause__ is not None:  # FastAPI could not read the body
            return answer(request, 400, no_json(error.__cause__))
        if error.status_code == 405:  # of all routes of that path, where Starlette names the first one's
            paths = app.openapi()["paths"].items()
            asked = request.url.path
            methods = [set(own) for path, own in paths if re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), asked)]
            headers = {"allow": ", ".join(sorted(name.upper() for each in methods for name in each))}
        return answer(request, error.status_code, str(error.detail), headers)

    @app.exception_handler(ClientLeft)
    async def left(request: Request, error: ClientLeft) -> Response:
        return Response(status_code=499)  # nobody reads it

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> JSONResponse:
        logger.error("a request failed", exc_info=error)
        return answer(request, 500, "internal error; the log has its traceback")


def _said(problem: Any) -> str:
    """One of FastAPI's complaints about a request, as a sentence."""
    if problem["type"] == "json_invalid":
        return no_json(f"{problem['ctx']['error']} (char {problem['loc'][-1]})")
    if problem["type"] == "model_attributes_type" and problem["loc"] == ("body",):
        return "the body must be a JSON object"
    return f"{'.'.join(str(part) for part in problem['loc'] if part != 'body') or 'body'}: {problem['msg']}"


UPLOADS = ("/v2/document", "/translate_file")
"""Routes whose body is a document."""

QUEUED = ("/v1/translate", "/translate", "/v2/translate")
"""Routes whose texts wait in the queue of all requests."""

REFUSALS = {
    400: "The request cannot be met; the message says why.", 401: "An API key is missing.",
    403: "The API key is missing or not known.", 404: "There is no such thing.",
    405: "The route has other methods.", 408: "The body came too slowly.", 413: "Too much for one request.",
    421: "The server is not known by that host name.", 429: "Busy; see Retry-After.", 500: "A fault of the server.",
    503: "Starting or shutting down.",
}  # fmt: skip
"""What else than success an answer may be."""


def described(app: FastAPI, pairs: Pairs) -> dict[str, Any]:
    """The OpenAPI document: FastAPI's, with the languages that are served and every refusal in its API's shape."""
    if app.openapi_schema is None:
        spec = get_openapi(title=app.title, version=__version__, description=app.description, routes=app.routes)
        for path, operations in spec["paths"].items():
            shape = _shape(error_body(path, "why"))
            refused = {"content": {"application/json": {"schema": shape}}}
            for operation in operations.values():
                operation["responses"].pop("422", None)  # which is 400 here
                for status, what in REFUSALS.items():
                    operation["responses"].setdefault(str(status), {"description": what, **refused})
        _name_languages(spec, pairs)
        app.openapi_schema = spec
    return app.openapi_schema


def _shape(example: Any) -> dict[str, Any]:
    """The schema of an error like ``example``."""
    if isinstance(example, str):
        return {"type": "string"}
    return {
        "type": "object", "required": list(example), "properties": {name: _shape(v) for name, v in example.items()}
    }  # fmt: skip


def _name_languages(node: Any, pairs: Pairs) -> None:
    """Put the codes that are served into each schema of a request."""
    codes = {"source": ["auto", *pairs.sources], "target": pairs.targets,
             "source_lang": [code.upper() for code in pairs.sources],
             "target_lang": [code.upper() for code in pairs.targets]}  # fmt: skip
    if isinstance(node, dict):
        if {"q", "text", "entries"} & set(node.get("properties", ())):
            for name, known in codes.items():
                if name in node["properties"]:
                    node["properties"][name]["examples"] = known
        for child in node.values():
            _name_languages(child, pairs)
    elif isinstance(node, list):
        for child in node:
            _name_languages(child, pairs)
