"""The web application: routes of all APIs, answers to errors, and routes for operation."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from dragoman import __version__
from dragoman.errors import ConfigError, DragomanError, shortened
from dragoman.options import refusals
from dragoman.serving import api_page, connections, explaining, pages, parsing
from dragoman.serving.admission import Places
from dragoman.serving.apis import deepl, deepl_glossaries, deepl_v3, libretranslate, native
from dragoman.serving.apis.api import Api, error_of
from dragoman.serving.batcher import BATCH_TOKENS_ON_CPU, Batcher
from dragoman.serving.bodies import BodyBudget, BodyLimits, Message
from dragoman.serving.documents import Documents
from dragoman.serving.glossaries import GROWTH, Glossaries
from dragoman.serving.helpers import can_start_thread
from dragoman.serving.hosts import Hosts
from dragoman.serving.http import check_key, key_of, keys_in, refusal_for, state_of, unknown_field
from dragoman.serving.keys import Keys
from dragoman.serving.limits import Limits, Shares
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import LOOPBACK, ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.serving.refusals import BusyError, ClientLeft, MalformedError, readable
from dragoman.serving.request_json import invalid_json
from dragoman.serving.service import Service
from dragoman.serving.state import State
from dragoman.serving.storage import NO_SPACE, refusal_of
from dragoman.serving.transport import Envelope, ErrorBody, Gate, Shed
from dragoman.serving.watchdog import Watchdog
from dragoman.toolkits.options import FastOptions
from dragoman.translation.options import TranslateOptions

logger = logging.getLogger("dragoman.serving")

SPEC = "/spec"
"""Path of the OpenAPI document."""

APIS: list[Api] = [native.API, libretranslate.API, deepl.API, deepl_glossaries.API, deepl_v3.API]
"""APIs of the server. To add one, write a module in ``apis`` and append its ``API`` here."""


def build(pairs: Pairs, options: ServeOptions, cores: int = 1) -> tuple[Any, State]:
    """Build the ASGI application and its parts; ``cores`` is the number of CPU cores for all searches together.

    Raises:
        ConfigError: A file of keys, a folder or an engine cannot be used.
    """
    # On a CPU one batch on each core is faster than one batch on all; a GPU is filled by one batch.
    on_cpu = all(pair.translator.device.type == "cpu" for pair in pairs)
    threads = options.batches or (cores if on_cpu else 1)
    batcher = Batcher(
        longest_wait_s=options.max_wait, threads=threads, cores=cores if threads == 1 else 1,
        batch_tokens=BATCH_TOKENS_ON_CPU if on_cpu and options.batch_tokens is None else None,
    )  # fmt: skip
    limits = Limits(
        chars=options.max_chars,
        texts=options.max_texts,
        body=options.max_body,
        beam=options.max_beam,
        document=options.max_document,
    )
    defaults = TranslateOptions(threads=1, **options.of_group(FastOptions))
    service = Service(pairs, batcher, limits, defaults)
    keys = None if options.keys is None else Keys.load(options.keys)
    shares = Shares(("",) if keys is None else tuple(keys.names))
    metrics = Metrics(batcher)
    documents = Documents(service, options.documents, shares, metrics.translated)
    state = State(
        service, metrics, keys, _glossaries(options, shares), documents,
        Watchdog(batcher, is_serving=lambda: service.ready),
        BodyBudget(options.max_bodies, has_keys=keys is not None), _key_named(options.metrics_key, shares),
    )  # fmt: skip
    app = FastAPI(
        title="dragoman", docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan, redirect_slashes=False,
        description="Translation by a Transformer: dragoman's own API, LibreTranslate's, and DeepL's v2 and v3.",
    )  # fmt: skip
    app.state.dragoman, app.state.traces = state, explaining.Traces(shares)
    error, queued = error_of(APIS), [path for api in APIS for path in api.queued]
    for router in (*(api.router for api in APIS), explaining.router, pages.router, api_page.router):
        app.include_router(router)
    _operations(app)
    _errors(app, error)
    app.openapi = lambda: described(app, pairs, error, has_keys=keys is not None)  # type: ignore[method-assign]

    def owner_of(scope: Message) -> str | None:
        # A key in the body is not known yet: the route checks it before it prepares anything.
        return "" if keys is None else keys.owner(key_of(Request(scope)))

    def owner_in(scope: Message, body: bytes) -> str:
        known = () if keys is None else map(keys.owner, keys_in(scope["query_string"], body))
        return next(filter(None, known), "")

    def busy_for_s(scope: Message) -> float | None:
        owner = owner_of(scope)
        return None if owner is None else batcher.busy_for_s(owner)

    app.add_middleware(Shed, error=error, queued=queued, busy_for_s=busy_for_s)
    names = [*LOOPBACK, options.host, *options.allow_host]
    if options.host in ("0.0.0.0", "::") and not options.allow_host:
        names = ["*"]
    hosts = Hosts(names, on_network=options.host not in LOOPBACK, origins=options.cors_origin)
    sizes = {path: options.max_document for api in APIS for path in api.uploads}
    bodies = BodyLimits(
        most_bytes=options.max_body, documents=sizes, budget=state.budget, owner_of=lambda scope: owner_of(scope) or "",
        owner_in=owner_in, refuse_document=documents.refuse_if_full,
    )  # fmt: skip
    # A request in work makes no room for another connection: one key may not have them all.
    places = Places(lambda: max(1, connections.MOST_CONNECTIONS // 2))
    outer: Any = Gate(app, error, hosts, bodies, places)
    # Outside of the layers that refuse, so that pages of other origins can read the refusals too.
    if options.cors_origin:
        outer = CORSMiddleware(
            outer, allow_origins=list(options.cors_origin), allow_methods=sorted(_methods(app)),
            allow_headers=["authorization", "content-encoding", "content-type", "x-api-key"],
            expose_headers=["accept-encoding", "allow", "content-disposition", "retry-after"],
        )  # fmt: skip
    return Envelope(outer, error, state.metrics), state


def _glossaries(options: ServeOptions, shares: Shares) -> Glossaries | None:
    if options.glossaries is None:
        return None
    adopter = _key_named(options.adopt_glossaries, shares)
    stored = Glossaries(
        options.glossaries, shares, shared=options.share_glossaries, most_bytes=GROWTH * options.max_body
    )
    if adopter is not None:
        stored.adopt(adopter)
    stored.report_ownerless()
    return stored


def _key_named(name: str | None, shares: Shares) -> str | None:
    """Return ``name``, the value of an option.

    Raises:
        ConfigError: It is not the name of a key.
    """
    if name is not None and name not in shares.names:
        raise ConfigError(f"the file of keys must have a key named {name}: make it with --make-key {name}")
    return name


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Let the watchdog see the event loop; stop unfinished documents at shutdown."""
    app.state.dragoman.watchdog.watch_loop(asyncio.get_running_loop())
    yield
    await app.state.dragoman.documents.close()


def _operations(app: FastAPI) -> None:
    @app.get(SPEC, include_in_schema=False)
    async def spec() -> Response:
        return Response(_spec_text(app), media_type="application/json")

    @app.get("/livez", tags=["operation"], summary="Liveness: no restart is needed", response_class=PlainTextResponse)
    async def livez(request: Request) -> PlainTextResponse:
        watchdog = state_of(request).watchdog
        if watchdog.is_alive():
            return PlainTextResponse("ok")
        return PlainTextResponse(f"failed: {'; '.join(watchdog.problems())}", status_code=503)

    @app.get(
        "/readyz", tags=["operation"], summary="Readiness: requests are accepted", response_class=PlainTextResponse
    )
    async def readyz(request: Request) -> PlainTextResponse:
        state = state_of(request)
        unready = state.service.unready
        reasons = [unready] if unready else [*state.watchdog.problems(), *await parsing.problems()]
        text = f"not ready: {'; '.join(reasons)}" if reasons else "ok"
        return PlainTextResponse(text, status_code=503 if reasons else 200)

    @app.get(
        "/readyz/storage", tags=["operation"], summary="Readiness: documents and glossaries can be stored",
        response_class=PlainTextResponse,
    )  # fmt: skip
    async def storage(request: Request) -> PlainTextResponse:
        full = [what for what, has_room in (await state_of(request).room()).items() if not has_room]
        text = f"no room for {' and '.join(full)}" if full else "ok"
        return PlainTextResponse(text, status_code=503 if full else 200)

    @app.get("/metrics", tags=["operation"], summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        key, state = check_key(request, None, missing=401, wrong=403), state_of(request)
        text = state.metrics.text(key, await state.room(), all_keys=key == state.metrics_key)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _errors(app: FastAPI, error_body: ErrorBody) -> None:
    """Answer every error in the shape of the request's API; tracebacks go to the log alone."""

    def answer(request: Request, status: int, message: str, headers: Any = None) -> JSONResponse:
        body = error_body(request.url.path, readable(shortened(message)))
        return JSONResponse(body, status_code=status, headers=headers)

    @app.exception_handler(DragomanError)
    async def refuse(request: Request, error: DragomanError) -> JSONResponse:
        refusal = refusal_for(request, error)
        return answer(request, refusal.status, str(refusal), refusal.headers)

    @app.exception_handler(OSError)
    async def disk(request: Request, error: OSError) -> JSONResponse:
        if error.errno not in NO_SPACE:  # a bug
            raise error
        return await refuse(request, refusal_of(error))

    @app.exception_handler(RuntimeError)
    async def threads(request: Request, error: RuntimeError) -> JSONResponse:
        if can_start_thread():  # a bug
            raise error
        logger.error("%s", error)
        return await refuse(request, BusyError(10.0))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(request, 400, _sentence(error.errors()[:5]))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        if error.status_code == 400 and error.__cause__ is not None:  # FastAPI could not read the body
            why = error.__cause__
            return answer(request, 400, str(why) if isinstance(why, MalformedError) else invalid_json(why))
        # Starlette names the methods of the first route of a path; the header must name those of all.
        path = request.scope["path"]
        if error.status_code == 405 or path == "*":
            headers = {"allow": ", ".join(sorted(_methods(app, path)))}
            if request.method == "OPTIONS":
                return Response(status_code=204, headers=headers)
        return answer(request, error.status_code, str(error.detail), headers)

    @app.exception_handler(ClientLeft)
    async def client_left(request: Request, error: ClientLeft) -> Response:
        return Response(status_code=499)  # for the log and the metrics

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> JSONResponse:
        logger.error("a request failed", exc_info=error)
        return answer(request, 500, "internal error; the log has its traceback")


def _methods(app: FastAPI, path: str = "*") -> set[str]:
    """Return the methods of a path; those of all paths for ``*``."""
    routes = {**app.openapi()["paths"], SPEC: {"get": {}}}
    own = [
        name.upper() for route, operations in routes.items() for name in operations
        if path == "*" or re.fullmatch(re.sub(r"{\w+}", "[^/]+", route), path)
    ]  # fmt: skip
    return {*own, "OPTIONS"} | ({"HEAD"} if "GET" in own else set())


def _sentence(problems: Sequence[Any]) -> str:
    """Return FastAPI's validation errors as one sentence."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return invalid_json(f"{first['ctx']['error']} (char {first['loc'][-1]})")
    if first["loc"] == ("body",):
        return "the body must be a JSON object"
    inside = [{**problem, "loc": problem["loc"][1:]} for problem in problems]
    return refusals(inside, unknown_field, "a JSON object")


REFUSALS = {
    400: "The request is invalid; the message says why.", 401: "An API key is missing.",
    403: "The API key is missing or not known, or a page of another site sent the request.", 404: "Not found.",
    405: "The route has other methods; see Allow.", 408: "The body came too slowly.", 413: "The request is too large.",
    415: "The body is compressed in another way than Accept-Encoding names.",
    421: "The host name is not allowed.", 429: "Busy; see Retry-After.", 431: "Path, query and headers are too long.",
    500: "Internal error.",
    503: "Starting, shutting down, the search was given up, no memory for a text, or the disk cannot be used.",
    507: "The disk is full; see Retry-After.",
}  # fmt: skip
"""Description of each error status in the OpenAPI document."""


KEYS = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "deepl": {"type": "apiKey", "in": "header", "name": "Authorization", "description": "DeepL-Auth-Key KEY"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The key alone."},
}
"""Ways to send an API key, in the OpenAPI document."""

WITHOUT_KEY = (
    "/livez", "/readyz", "/readyz/storage", "/", "/docs", "/languages", "/frontend/settings", "/health",
    "/download_file/{name}",
)  # fmt: skip
"""Paths that need no API key."""


def described(app: FastAPI, pairs: Pairs, error_body: ErrorBody, *, has_keys: bool = False) -> dict[str, Any]:
    """Return FastAPI's OpenAPI document with the served languages, and each error in the shape of its API."""
    if app.openapi_schema is None:
        spec = get_openapi(title=app.title, version=__version__, description=app.description, routes=app.routes)
        for path, operations in spec["paths"].items():
            shape = _shape(error_body(path, "why"))
            refused = {"content": {"application/json": {"schema": shape}}}
            for operation in operations.values():
                operation["responses"].pop("422", None)  # this server answers 400 instead
                for status, what in REFUSALS.items():
                    operation["responses"].setdefault(str(status), {"description": what, **refused})
        _name_languages(spec, pairs)
        if has_keys:
            _name_keys(spec)
        app.openapi_schema = spec
    return app.openapi_schema


def _name_keys(spec: dict[str, Any]) -> None:
    """Add the ways to send an API key, and the paths that need none."""
    spec["components"]["securitySchemes"] = KEYS
    spec["security"] = [{name: []} for name in KEYS]
    for path in WITHOUT_KEY:
        for operation in spec["paths"][path].values():
            operation["security"] = []


@cache  # making the text takes milliseconds, and needs no key
def _spec_text(app: FastAPI) -> bytes:
    return json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()


def _shape(example: Any) -> dict[str, Any]:
    """Return the JSON schema of ``example``."""
    if isinstance(example, dict):
        properties = {name: _shape(value) for name, value in example.items()}
        return {"type": "object", "required": list(example), "properties": properties}
    if isinstance(example, list):
        return {"type": "array", "items": _shape(example[0])}
    return {"type": "string"}


def _name_languages(node: Any, pairs: Pairs) -> None:
    """Add the served language codes, as examples, to the schema of each request."""
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
