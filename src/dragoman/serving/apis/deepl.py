"""DeepL's API v2, as its libraries and Weblate use it: text, tags, documents, languages, usage.

Requests come as JSON or as a form. https://developers.deepl.com/docs/api-reference/translate
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, Field

from dragoman.serving.apis.api import Api
from dragoman.serving.apis.deepl_glossaries import checked, chosen, error_body
from dragoman.serving.documents import Job, state_of_job
from dragoman.serving.http import (
    COLUMN,
    body_of,
    check_key,
    columns_of,
    one_text,
    plain_text,
    state_of,
    text_list,
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


class DeepLRequest(BaseModel):
    """What ``/v2/translate`` reads; other fields of DeepL's are accepted and have no effect."""

    text: list[str] = Field(description="Texts to translate.")
    target_lang: str = Field(description="Target language, such as DE.")
    source_lang: str | None = Field(None, description="Source language; detected if it is left out.")
    tag_handling: str | None = Field(None, description="xml or html.")
    ignore_tags: list[str] | None = None
    splitting_tags: list[str] | None = None
    non_splitting_tags: list[str] | None = None
    formality: str | None = Field(None, description="default, prefer_more or prefer_less; others are not supported.")
    glossary_id: str | None = None
    show_billed_characters: bool | None = None


@router.post("/translate", openapi_extra=body_of(DeepLRequest), summary="Translate texts")
async def translate(request: Request) -> Any:
    """Translate; empty texts stay empty and are not billed."""
    state, fields = state_of(request), await checked(request)
    if fields.get("text") is None:
        raise MalformedError("Parameter 'text' not specified.")
    texts = text_list(fields["text"], "text")
    state.service.limits.check_texts(texts)
    target, source = one_text(fields, "target_lang"), one_text(fields, "source_lang")
    if not target:
        raise MalformedError("Parameter 'target_lang' not specified.")
    _check_formality(fields, target)
    handling = one_text(fields, "tag_handling").lower()
    if handling not in ("", "xml", "html"):
        raise MalformedError(f"Value for 'tag_handling' not supported: {handling}; use xml or html")
    said = [plain_text(text, handling) for text in texts] if handling else texts  # type: ignore[arg-type]
    pair = state.service.pair(source, target, said)
    options = state.service.options(**chosen(state.glossaries, one_text(fields, "glossary_id"), pair, source))
    state.metrics.translated(pair.name, sum(map(len, texts)))
    if handling:
        elements = {
            name: _names(fields.get(key))
            for name, key in (
                ("ignored", "ignore_tags"), ("splitting", "splitting_tags"), ("non_splitting", "non_splitting_tags"),
            )
        }  # fmt: skip
        work = translate_markup(state.service, texts, pair, options, handling, **elements)  # type: ignore[arg-type]
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


def _check_formality(fields: Mapping[str, Any], target: str) -> None:
    if one_text(fields, "formality", "default").lower() not in ("default", "prefer_more", "prefer_less", ""):
        raise MalformedError(f"'formality' is not supported for given 'target_lang': {target}")


def _names(value: Any) -> list[str]:
    """Names of elements: a list, or one text with commas."""
    if value is None:
        return []
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise MalformedError("tags must be names")
    return [name.strip().lower() for each in found for name in each.split(",") if name.strip()]


@router.get("/languages", summary="The languages that are served")
async def languages(request: Request) -> Any:
    """Source languages, or target languages with ``type=target`` (in the query or in a form)."""
    fields, pairs = await checked(request), state_of(request).service.pairs
    if one_text(fields, "type", "source") == "target":
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


@router.post(
    "/document", summary="Upload a document",
    openapi_extra=upload_body(
        target_lang="Target language, such as DE.*", source_lang="Source language; detected if it is left out.",
        filename="Name of the file, if it is not that of the part.", formality="As for texts.",
        glossary_id="As for texts.", column=COLUMN,
    ),
)  # fmt: skip
async def upload_document(request: Request) -> dict[str, str]:
    """Translate a document in the background; ask for its status with the id and the key."""
    fields, name, content = await upload_of(request)
    check_key(request, fields, missing=403, wrong=403)
    state = state_of(request)
    target, source = one_text(fields, "target_lang"), one_text(fields, "source_lang")
    if not target:
        raise MalformedError("Parameter 'target_lang' not specified.")
    _check_formality(fields, target)
    name = one_text(fields, "filename") or name
    wanted = one_text(fields, "output_format").lower().lstrip(".")
    if wanted and not name.lower().endswith(f".{wanted}"):
        raise MalformedError(f"'output_format' {wanted} is not supported: a document keeps its format")
    id_ = one_text(fields, "glossary_id")
    terms: Mapping[str, Any] = {}
    if id_:
        if not source:
            raise MalformedError("'glossary_id' needs 'source_lang'")
        terms = chosen(state.glossaries, id_, state.service.pair(source, target, []), source)
    options = state.service.options(**terms)
    job, secret = await state.documents.add(content, name, source, target, options, columns_of(fields))
    state.metrics.translated(job.pair, job.n_chars)
    return {"document_id": job.id, "document_key": secret}


class DocumentKey(BaseModel):
    """What routes of a document read."""

    document_key: str = Field(description="As the upload answered.")


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
    return state_of(request).documents.get(document_id, one_text(fields, "document_key"))


API = Api(router, "/v2/", error_body, queued=["/v2/translate"], uploads=["/v2/document"])
