"""The API of LibreTranslate 1.9, as its clients use it: Weblate, Mastodon, Discourse, Subtitle Edit and others.

Requests come as JSON, as a form or in the query. https://docs.libretranslate.com/api/operations/translate/
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, Field

from dragoman.documents.formats import supported_suffixes
from dragoman.serving.apis.api import Api
from dragoman.serving.http import (
    Columns,
    Text,
    Texts,
    body_of,
    check_key,
    fields_of,
    plain_text,
    read,
    state_of,
    translate_markup,
    upload_body,
    upload_of,
)
from dragoman.serving.pairs import Detected, name_of
from dragoman.serving.refusals import ClientLeft, MalformedError, UnknownError
from dragoman.serving.transport import unless_gone

router = APIRouter(tags=["LibreTranslate"])


class LibreRequest(BaseModel):
    """What ``/translate`` reads."""

    q: Texts = Field(description="Text or texts to translate.")
    source: Text = Field("auto", description="Source language, or auto.")
    target: Text = Field(description="Target language.")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, description="Number of other translations.")
    api_key: str = ""


class DetectRequest(BaseModel):
    """What ``/detect`` reads."""

    q: Text = Field(description="Text whose language is asked for.")
    api_key: str = ""


class FileRequest(BaseModel):
    """What ``/translate_file`` reads beside the file."""

    source: Text = Field("auto", description="Source language, or auto.")
    target: Text = Field(description="Target language.")
    api_key: str = Field("", description="API key.")
    column: Columns = []


@router.post("/translate", openapi_extra=body_of(LibreRequest), summary="Translate text or HTML")
async def translate(request: Request) -> Any:
    """Translate; a list is answered by lists."""
    state, fields = state_of(request), await fields_of(request)
    check_key(request, fields, missing=400, wrong=403)
    for name in ("q", "target"):
        if fields.get(name) is None:
            raise MalformedError(f"Invalid request: missing {name} parameter")
    asked = read(LibreRequest, fields)
    texts, n_others, is_html = list(asked.q), asked.alternatives, asked.format == "html"
    state.service.limits.check_texts(texts)
    plain = [plain_text(text, "html") for text in texts] if is_html else texts
    detected = [state.service.pairs.detect(text[:5000], asked.target) for text in plain]
    pair = state.service.pair(asked.source, asked.target, plain)
    options = state.service.options(**({"n_best": n_others + 1} if n_others and not is_html else {}))
    options = _wide_enough(state, options, n_others)
    state.metrics.translated(pair.name, sum(map(len, texts)))
    others: list[list[str]] = [[] for _ in texts]
    if is_html:
        pages = await unless_gone(request.receive, translate_markup(state.service, texts, pair, options, "html"))
        translated = [text for text, _ in pages]
    else:
        answers = await unless_gone(request.receive, state.service.translate(texts, pair, options))
        translated = [answer.text for answer in answers]
        others = [
            [one.text for one in answer.lines[0].alternatives] if len(answer.lines) == 1 else [] for answer in answers
        ]
    answer: dict[str, Any] = {"translatedText": translated}
    if asked.source.lower() == "auto":
        answer["detectedLanguage"] = [_detected(one) for one in detected]
    if n_others:
        answer["alternatives"] = others
    return JSONResponse(answer if isinstance(fields["q"], list) else {name: each[0] for name, each in answer.items()})


def _wide_enough(state: Any, options: Any, n_others: int) -> Any:
    """With a beam that holds as many translations as were asked for."""
    if n_others:
        beams = map(state.service.beam_size, state.service.pairs)
        return state.service.options(n_best=options.n_best, beam_size=max(options.n_best, *beams))
    return options


def _detected(found: Detected) -> dict[str, Any]:
    return {"language": found.code, "confidence": round(100 * found.confidence, 1)}


@router.post(
    "/translate_file", summary="Translate a document",
    openapi_extra=upload_body(FileRequest),
)  # fmt: skip
async def translate_file(request: Request) -> dict[str, str]:
    """Translate a document, and answer with where it can be fetched for an hour."""
    fields, name, content = await upload_of(request)
    check_key(request, fields, missing=400, wrong=403)
    if not fields.get("target"):
        raise MalformedError("Invalid request: missing target parameter")
    state, asked = state_of(request), read(FileRequest, fields)
    options = state.service.options()
    job, secret = await state.documents.add(content, name, asked.source, asked.target, options, list(asked.column))
    try:
        job = await unless_gone(request.receive, state.documents.finished(job.id))
    except ClientLeft:
        state.documents.forget(job.id)
        raise
    if job.status != "done":
        raise MalformedError(job.error)
    state.metrics.translated(job.pair, job.n_chars)
    return {"translatedFileUrl": str(request.url_for("download_file", name=quote(f"{job.id}.{secret}.{job.name}")))}


@router.get("/download_file/{name}", response_class=FileResponse, summary="A translated document")
async def download_file(name: str, request: Request) -> Any:
    """The document that ``/translate_file`` has named; its name is the secret."""
    documents = state_of(request).documents
    id_, _, rest = name.partition(".")
    job = documents.get(id_, rest.partition(".")[0])
    if job.status != "done":
        raise UnknownError("document not found")
    return FileResponse(documents.result(job), media_type="application/octet-stream", filename=job.name)


@router.post("/detect", openapi_extra=body_of(DetectRequest), summary="Tell the language of a text")
async def detect(request: Request) -> list[dict[str, Any]]:
    """The most likely of the languages that are served."""
    state, fields = state_of(request), await fields_of(request)
    check_key(request, fields, missing=400, wrong=403)
    if fields.get("q") is None:
        raise MalformedError("Invalid request: missing q parameter")
    return [_detected(state.service.pairs.detect(read(DetectRequest, fields).q[:5000]))]


@router.get("/languages", summary="The languages that are served")
async def languages(request: Request) -> list[dict[str, Any]]:
    """Every language with its targets; one that is only a target has none."""
    pairs = state_of(request).service.pairs
    codes = dict.fromkeys([*pairs.sources, *pairs.targets])
    return [{"code": code, "name": name_of(code), "targets": pairs.targets_of(code)} for code in codes]


@router.get("/frontend/settings", summary="What a web page of LibreTranslate asks for")
async def settings(request: Request) -> dict[str, Any]:
    """Limits and the first pair."""
    state = state_of(request)
    first = next(iter(state.service.pairs))
    return {
        "charLimit": state.service.limits.chars,
        "frontendTimeout": 500,
        "apiKeys": state.keys is not None,
        "keyRequired": state.keys is not None,
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": list(supported_suffixes()),
        "language": {
            "source": {"code": "auto", "name": "Auto Detect"},
            "target": {"code": first.tgt, "name": name_of(first.tgt)},
        },
    }


@router.get("/health", summary="Whether the server is up")
async def health() -> dict[str, str]:
    """Always the same, as long as there is an answer."""
    return {"status": "ok"}


API = Api(router, "/", lambda message: {"error": message}, queued=["/translate"], uploads=["/translate_file"])
