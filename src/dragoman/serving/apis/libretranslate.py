"""The API of LibreTranslate 1.9, as its clients use it: Weblate, Mastodon, Discourse, Subtitle Edit and others.

Requests are JSON, forms or queries. https://docs.libretranslate.com/api/operations/translate/
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, Field

from dragoman.documents.formats import supported_suffixes
from dragoman.languages.detection import Detected
from dragoman.serving import parsing
from dragoman.serving.apis.api import Api
from dragoman.serving.delivery import Delivery
from dragoman.serving.http import (
    DocumentFields,
    Text,
    Texts,
    body_of,
    check_key,
    fields_of,
    key_of,
    read,
    state_of,
    translate_markup,
    upload_body,
    upload_of,
)
from dragoman.serving.pairs import Pair, name_of
from dragoman.serving.refusals import ClientLeft, MalformedError, UnknownError
from dragoman.serving.service import Part, is_auto
from dragoman.serving.state import State
from dragoman.serving.transport import until_client_leaves
from dragoman.translation.options import TranslateOptions

router = APIRouter(tags=["LibreTranslate"])


class LibreRequest(BaseModel):
    """Fields of ``/translate``."""

    q: Texts = Field(description="Text or texts to translate.")
    source: Text = Field("auto", description="Source language, or auto.")
    target: Text = Field(description="Target language.")
    format: Literal["text", "html"] = Field("text", description="html keeps the tags.")
    alternatives: int = Field(0, ge=0, description="Number of other translations; none of HTML.")
    api_key: Text = Field("", description="API key.")


class DetectRequest(BaseModel):
    """Fields of ``/detect``."""

    q: Texts = Field(description="Text whose language to detect; several texts count as one.")
    api_key: Text = Field("", description="API key.")


class FileRequest(DocumentFields):
    """Fields of ``/translate_file`` next to the file."""

    source: Text = Field("auto", description="Source language, or auto.")
    target: Text = Field(description="Target language.")
    api_key: Text = Field("", description="API key.")


@router.post("/translate", openapi_extra=body_of(LibreRequest), summary="Translate text or HTML")
async def translate(request: Request) -> Any:
    """Translate a text, or a list of texts into lists."""
    state, fields = state_of(request), await fields_of(request)
    owner = check_key(request, fields, missing=400, wrong=403)
    for name in ("q", "target"):
        if fields.get(name) is None:
            raise MalformedError(f"Invalid request: missing {name} parameter")
    body = read(LibreRequest, fields)
    texts, n_others, is_html = list(body.q), body.alternatives, body.format == "html"
    state.service.limits.check_texts(texts)
    tagged = await until_client_leaves(request.receive, parsing.tagged(texts, "html", owner)) if is_html else None
    plain = tagged.plain if tagged else texts
    directions = await state.service.directions(body.source, body.target, plain, owner)
    options = _with_others(state, 0 if is_html else n_others)

    async def work(pair: Pair, part: Part) -> list[tuple[str, list[str]]]:
        if tagged:
            return [(text, []) for text in await translate_markup(state.service, tagged, pair, options, part)]
        answers = await state.service.translate(texts, pair, options, owner, part)
        return [(one.text, one.alternatives) for one in answers]

    translated = await until_client_leaves(request.receive, directions.each(work))
    directions.count(state.metrics, texts, owner)
    answer: dict[str, Any] = {"translatedText": [text for text, _ in translated]}
    if is_auto(body.source):
        answer["detectedLanguage"] = list(map(_detected, await state.service.detected(plain, directions, owner)))
    if n_others:
        answer["alternatives"] = [others for _, others in translated]
    if not isinstance(fields["q"], list):
        answer = {name: values[0] for name, values in answer.items()}
    return JSONResponse(answer)


def _with_others(state: State, n_others: int) -> TranslateOptions:
    """Return options with ``n_others`` other translations, and a beam wide enough for them."""
    if not n_others:
        return state.service.options()
    if n_others >= state.service.limits.beam:
        most = state.service.limits.beam - 1
        raise MalformedError(f"alternatives must be at most {most} on this server, got {n_others}")
    beams = map(state.service.beam_size, state.service.pairs)
    return state.service.options(n_best=n_others + 1, beam_size=max(n_others + 1, *beams))


def _detected(language: Detected) -> dict[str, Any]:
    return {"language": language.code, "confidence": round(100 * language.confidence, 1)}


@router.post(
    "/translate_file", summary="Translate a document",
    openapi_extra=upload_body(FileRequest),
)  # fmt: skip
async def translate_file(request: Request) -> dict[str, str]:
    """Translate a document; the returned URL is valid for an hour."""
    fields, name, content = await upload_of(request)
    owner = check_key(request, fields, missing=400, wrong=403)
    if not fields.get("target"):
        raise MalformedError("Invalid request: missing target parameter")
    state, body = state_of(request), read(FileRequest, fields)
    info = body.info(name, body.source, body.target)
    adding = state.documents.add(content, info, state.service.options(), owner)
    job, secret = await until_client_leaves(request.receive, adding, undo=state.documents.forget_added)
    del adding, content  # it is stored, and its translation can take long
    request.scope["release_body"]()
    try:
        job = await until_client_leaves(request.receive, state.documents.finished(job.id))
    except ClientLeft:
        await state.documents.forget(job)
        raise
    if job.status != "done":
        raise MalformedError(job.error)
    return {"translatedFileUrl": str(request.url_for("download_file", name=quote(f"{job.id}.{secret}.{job.name}")))}


_RANGES: dict[int | str, dict[str, Any]] = {206: {"description": "The range of bytes that was asked for."}}


@router.get("/download_file/{name}", response_class=FileResponse, summary="Translated document", responses=_RANGES)
async def download_file(name: str, request: Request) -> Any:
    """Return the document of a URL from ``/translate_file``; its name holds the id and the secret.

    LibreTranslate's clients fetch it without a key. One that is sent must be the owner's.
    """
    owner = check_key(request, None, missing=400, wrong=403) if key_of(request) else None
    id_, _, secret_and_name = name.partition(".")
    documents = state_of(request).documents
    job = await documents.get(id_, secret_and_name.partition(".")[0], owner)
    if job.status != "done":
        raise UnknownError("document not found")
    return await documents.jobs.disk.run(job.owner, Delivery, documents.jobs, job)


@router.post("/detect", openapi_extra=body_of(DetectRequest), summary="Detect the language of a text")
async def detect(request: Request) -> list[dict[str, Any]]:
    """Return the most likely of the served languages, for several texts together as LibreTranslate does."""
    state, fields = state_of(request), await fields_of(request)
    check_key(request, fields, missing=400, wrong=403)
    if fields.get("q") in (None, []):
        raise MalformedError("Invalid request: missing q parameter")
    texts = list(read(DetectRequest, fields).q)
    state.service.limits.check_texts(texts)
    return [_detected(state.service.pairs.detect(" ".join(texts)))]


@router.get("/languages", summary="Served languages")
async def languages(request: Request) -> list[dict[str, Any]]:
    """Return all languages with their targets; a language that is only a target has none."""
    pairs = state_of(request).service.pairs
    codes = dict.fromkeys([*pairs.sources, *pairs.targets])
    return [{"code": code, "name": name_of(code), "targets": pairs.targets_of(code)} for code in codes]


@router.get("/frontend/settings", summary="Settings for LibreTranslate's web page")
async def settings(request: Request) -> dict[str, Any]:
    """Return the limits and the default pair."""
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


@router.get("/health", summary="Liveness")
async def health(request: Request) -> JSONResponse:
    """Return ``ok``, or with status 503 what is wrong."""
    watchdog = state_of(request).watchdog
    if watchdog.is_alive():
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": "; ".join(watchdog.problems())}, status_code=503)


API = Api(router, "/", lambda message: {"error": message}, queued=["/translate"], uploads=["/translate_file"])
