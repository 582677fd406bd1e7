"""DeepL's API v2, as its libraries and Weblate use it: text, tags, documents, languages, usage.

Requests come as JSON or as a form. https://developers.deepl.com/docs/api-reference/translate
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, BeforeValidator, Field

from dragoman.options import must
from dragoman.serving.apis.api import Api
from dragoman.serving.apis.deepl_glossaries import checked, chosen, error_body
from dragoman.serving.documents import Job, state_of_job
from dragoman.serving.http import (
    AnyCase,
    Columns,
    Text,
    Texts,
    body_of,
    check_key,
    plain_text,
    read,
    state_of,
    translate_markup,
    upload_body,
    upload_of,
)
from dragoman.serving.pairs import name_of
from dragoman.serving.refusals import MalformedError
from dragoman.serving.transport import unless_gone

router = APIRouter(prefix="/v2", tags=["DeepL"])

UNLIMITED = 1_000_000_000_000
"""What ``/usage`` gives as the limit: there is none."""


def _names(tags: Any) -> Any:
    """Return names of elements as a list; one text may have several, with commas."""
    tags = [tags] if isinstance(tags, str) else tags
    if not isinstance(tags, list) or not all(isinstance(each, str) for each in tags):
        raise must("be a list of names")
    return [name.strip().lower() for each in tags for name in each.split(",") if name.strip()]


Tags = Annotated[list[str], BeforeValidator(_names)]
Formality = Annotated[Literal["default", "prefer_more", "prefer_less", ""], AnyCase]


class DeepLRequest(BaseModel):
    """What ``/v2/translate`` reads; other fields of DeepL's are accepted and have no effect."""

    text: Texts = Field(description="Texts to translate.")
    target_lang: Text = Field(description="Target language, such as DE.")
    source_lang: Text = Field("", description="Source language; detected if it is left out.")
    tag_handling: Annotated[Literal["xml", "html", ""], AnyCase] = ""
    ignore_tags: Tags = []
    splitting_tags: Tags = []
    non_splitting_tags: Tags = []
    formality: Formality = "default"
    glossary_id: Text = ""
    show_billed_characters: bool | None = None


@router.post("/translate", openapi_extra=body_of(DeepLRequest), summary="Translate texts")
async def translate(request: Request) -> Any:
    """Translate; empty texts stay empty and are not billed."""
    state, fields = state_of(request), await checked(request)
    if fields.get("text") is None:
        raise MalformedError("Parameter 'text' not specified.")
    if not fields.get("target_lang"):
        raise MalformedError("Parameter 'target_lang' not specified.")
    asked = read(DeepLRequest, fields)
    texts, source, handling = list(asked.text), asked.source_lang, asked.tag_handling
    state.service.limits.check_texts(texts)
    plain = [plain_text(text, handling) for text in texts] if handling else texts
    pair = state.service.pair(source, asked.target_lang, plain)
    options = state.service.options(**chosen(state.glossaries, asked.glossary_id, pair, source))
    state.metrics.translated(pair.name, sum(map(len, texts)))
    if handling:
        work = translate_markup(
            state.service, texts, pair, options, handling, ignored=asked.ignore_tags, splitting=asked.splitting_tags,
            non_splitting=asked.non_splitting_tags,
        )  # fmt: skip
        translated = [text for text, _ in await unless_gone(request.receive, work)]
    else:
        answers = await unless_gone(request.receive, state.service.translate(texts, pair, options))
        translated = [answer.text for answer in answers]
    shown = (source or pair.src).split("-")[0].upper()
    found = [
        {"detected_source_language": shown, "text": out, "billed_characters": len(text)}
        for text, out in zip(texts, translated, strict=True)
    ]
    return JSONResponse({"translations": found})


class LanguagesRequest(BaseModel):
    """What ``/v2/languages`` reads."""

    type: Text = "source"


@router.get("/languages", summary="The languages that are served")
async def languages(request: Request) -> Any:
    """Source languages, or target languages with ``type=target`` (in the query or in a form)."""
    fields, pairs = await checked(request), state_of(request).service.pairs
    if read(LanguagesRequest, fields).type == "target":
        return [{"language": _code(code), "name": name_of(code), "supports_formality": False} for code in pairs.targets]
    return [{"language": _code(code), "name": name_of(code)} for code in pairs.sources]


def _code(code: str) -> str:
    return code.replace("_", "-").upper()


@router.get("/usage", summary="How much has been translated")
async def usage(request: Request) -> dict[str, int]:
    """Characters since the server began; there is no limit."""
    await checked(request)
    return {"character_count": state_of(request).metrics.n_characters, "character_limit": UNLIMITED}


# --- documents --------------------------------------------------------------------------------------------------------


class DocumentRequest(BaseModel):
    """What ``/v2/document`` reads beside the file."""

    target_lang: Text = Field(description="Target language, such as DE.")
    source_lang: Text = Field("", description="Source language; detected if it is left out.")
    filename: Text = Field("", description="Name of the file, if it is not that of the part.")
    output_format: Text = Field("", description="Its ending: a document keeps its format.")
    formality: Formality = "default"
    glossary_id: Text = ""
    column: Columns = []


@router.post(
    "/document", summary="Upload a document",
    openapi_extra=upload_body(DocumentRequest),
)  # fmt: skip
async def upload_document(request: Request) -> dict[str, str]:
    """Translate a document in the background; ask for its status with the id and the key."""
    fields, name, content = await upload_of(request)
    check_key(request, fields, missing=403, wrong=403)
    if not fields.get("target_lang"):
        raise MalformedError("Parameter 'target_lang' not specified.")
    state, asked = state_of(request), read(DocumentRequest, fields)
    name, source, target = asked.filename or name, asked.source_lang, asked.target_lang
    wanted = asked.output_format.lower().lstrip(".")
    if wanted and not name.lower().endswith(f".{wanted}"):
        raise MalformedError(f"'output_format' {wanted} is not supported: a document keeps its format")
    terms: Mapping[str, Any] = {}
    if asked.glossary_id:
        if not source:
            raise MalformedError("'glossary_id' needs 'source_lang'")
        terms = chosen(state.glossaries, asked.glossary_id, state.service.pair(source, target, []), source)
    options = state.service.options(**terms)
    job, secret = await state.documents.add(content, name, source, target, options, list(asked.column))
    state.metrics.translated(job.pair, job.n_chars)
    return {"document_id": job.id, "document_key": secret}


class DocumentKey(BaseModel):
    """What routes of a document read."""

    document_key: Text = Field("", description="As the upload answered.")


@router.post("/document/{document_id}", openapi_extra=body_of(DocumentKey), summary="The status of a document")
async def document_status(document_id: str, request: Request) -> dict[str, Any]:
    """Queued, translating, done, or error with its message."""
    job = await _job(document_id, request)
    told: dict[str, Any] = {"document_id": job.id, "status": job.status}
    if job.status in ("queued", "translating"):
        told["seconds_remaining"] = 1
    if job.status == "error":
        told["error_message"] = told["message"] = job.error
    if job.status == "done":
        told |= {"billed_characters": job.n_chars, **state_of_job(job)}
    return told


@router.post(
    "/document/{document_id}/result", openapi_extra=body_of(DocumentKey), response_class=FileResponse,
    summary="The translated document",
)  # fmt: skip
async def document_result(document_id: str, request: Request) -> Any:
    """Its bytes; 503 until it is done."""
    job = await _job(document_id, request)
    if job.status == "error":
        raise MalformedError(job.error)
    if job.status != "done":
        return JSONResponse({"message": "Document translation is not done: try again later"}, status_code=503)
    return FileResponse(
        state_of(request).documents.result(job), media_type="application/octet-stream", filename=job.name
    )


async def _job(document_id: str, request: Request) -> Job:
    fields = await checked(request)
    return state_of(request).documents.get(document_id, read(DocumentKey, fields).document_key)


API = Api(router, "/v2/", error_body, queued=["/v2/translate"], uploads=["/v2/document"])
