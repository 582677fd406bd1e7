"""DeepL's API v2, as its client libraries and Weblate use it: text, tags, documents, languages, usage.

Requests are JSON or forms. https://developers.deepl.com/docs/api-reference/translate
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model

from dragoman.languages.codes import primary
from dragoman.options import must
from dragoman.serving import parsing
from dragoman.serving.apis.api import Api
from dragoman.serving.apis.deepl_glossaries import authorised_fields, error_body, glossary_option
from dragoman.serving.delivery import Delivery
from dragoman.serving.documents import state_of_job
from dragoman.serving.http import (
    AnyCase,
    DocumentFields,
    Text,
    Texts,
    body_of,
    check_key,
    query_of,
    read,
    state_of,
    translate_markup,
    upload_body,
    upload_of,
)
from dragoman.serving.jobs import Job
from dragoman.serving.pairs import Pair, name_of
from dragoman.serving.refusals import MalformedError
from dragoman.serving.service import Part, is_auto
from dragoman.serving.transport import until_client_leaves

router = APIRouter(prefix="/v2", tags=["DeepL"])

UNLIMITED = 1_000_000_000_000
"""Limit that ``/usage`` reports: DeepL's clients require one, and this server has none."""


def _names(names: Any) -> Any:
    """Return names as a list; a text may hold several, separated by commas."""
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(several, str) for several in names):
        raise must("be a list of names")
    return [name.strip() for several in names for name in several.split(",") if name.strip()]


def _lower(names: list[str]) -> list[str]:
    return [name.lower() for name in names]


IGNORED: Mapping[str, str] = {
    "split_sentences": "texts are always split into lines and sentences",
    "preserve_formatting": "formatting is always kept",
    "formality": "the model has one level; `more` and `less` are refused",
    "context": "each sentence is translated by itself",
    "model_type": "there is one model for each pair of languages",
    "outline_detection": "elements that touch are texts of their own, but for `non_splitting_tags`",
    "tag_handling_version": "there is one version",
    "show_billed_characters": "they are always shown",
    "style_id": "there are no style rules",
    "custom_instructions": "the model takes no instructions",
    "translation_memory_id": "there is no translation memory",
    "translation_memory_threshold": "there is no translation memory",
    "enable_beta_languages": "every language of the models is served",
}
"""Fields of DeepL that are accepted and change nothing, each with the reason."""

Names = Annotated[list[str], BeforeValidator(_names)]
Tags = Annotated[Names, AfterValidator(_lower)]
Formality = Annotated[Literal["default", "prefer_more", "prefer_less", ""], AnyCase]


class _WithGlossary(BaseModel):
    glossary_id: Text = Field("", description="Stored glossary to follow; needs source_lang.")
    glossary_ids: Names = Field([], description="The same as a list; on this server of one glossary.")

    def glossary(self) -> str:
        """Return the id of the glossary to follow; "" for none.

        Raises:
            MalformedError: Several are named.
        """
        ids = [id_ for id_ in dict.fromkeys((self.glossary_id, *self.glossary_ids)) if id_]
        if len(ids) > 1:
            raise MalformedError(
                f"glossary_id and glossary_ids must have one glossary on this server, got {len(ids)}: "
                "store their entries as one glossary"
            )
        return ids[0] if ids else ""


class _WithEffect(BaseModel):
    """Fields of ``/v2/translate`` that change a translation."""

    text: Texts = Field(description="Texts to translate.")
    target_lang: Text = Field(description="Target language, such as DE.")
    source_lang: Text = Field("", description="Source language; detected if it is left out.")
    tag_handling: Annotated[Literal["xml", "html", ""], AnyCase] = Field("", description="Kind of the texts' tags.")
    ignore_tags: Tags = Field([], description="Elements whose content is not translated.")
    splitting_tags: Tags = Field([], description="Elements that end a sentence.")
    non_splitting_tags: Tags = Field([], description="Elements that do not end a sentence.")
    formality: Formality = Field("default", description=f"No effect: {IGNORED['formality']}.")


_WITHOUT_EFFECT: dict[str, Any] = {
    name: (Any, Field(None, description=f"No effect: {reason}."))
    for name, reason in IGNORED.items()
    if name not in _WithEffect.model_fields
}
DeepLRequest: Any = create_model(
    "DeepLRequest", __base__=(_WithGlossary, _WithEffect), __doc__="Fields of ``/v2/translate``.", **_WITHOUT_EFFECT
)


@router.post("/translate", openapi_extra=body_of(DeepLRequest), summary="Translate texts")
async def translate(request: Request) -> Any:
    """Translate texts; empty ones stay empty and are not billed."""
    state, (owner, fields) = state_of(request), await authorised_fields(request)
    if fields.get("text") is None:
        raise MalformedError("Parameter 'text' not specified.")
    if not fields.get("target_lang"):
        raise MalformedError("Parameter 'target_lang' not specified.")
    body: Any = read(DeepLRequest, fields)
    texts, source, handling = list(body.text), body.source_lang, body.tag_handling
    state.service.limits.check_texts(texts)
    tagged = None
    if handling:
        elements = {name: getattr(body, f"{name}_tags") for name in ("splitting", "non_splitting")}
        parsed = parsing.tagged(texts, handling, owner, ignored=body.ignore_tags, **elements)
        tagged = await until_client_leaves(request.receive, parsed)
    plain = tagged.plain if tagged else texts
    directions = await state.service.directions(source, body.target_lang, plain, owner)
    terms = await glossary_option(state.glossaries, owner, body.glossary(), directions.usual, source)
    options = state.service.options(**terms)

    async def work(pair: Pair, part: Part) -> list[str]:
        if tagged:
            return await translate_markup(state.service, tagged, pair, options, part)
        return [answer.text for answer in await state.service.translate(texts, pair, options, owner, part)]

    translated = await until_client_leaves(request.receive, directions.each(work))
    directions.count(state.metrics, texts, owner)
    translations = [
        {
            "detected_source_language": primary(
                directions.source(i) if is_auto(source) or i in directions.unchanged else source
            ).upper(),
            "text": translation,
            "billed_characters": len(text),
        }
        for i, (text, translation) in enumerate(zip(texts, translated, strict=True))
    ]
    return JSONResponse({"translations": translations})


class LanguagesRequest(BaseModel):
    """Fields of ``/v2/languages``."""

    type: Literal["source", "target"] = Field("source", description="Whether to list source or target languages.")


@router.post("/languages", openapi_extra=body_of(LanguagesRequest), summary="Served languages, for older clients")
@router.get("/languages", openapi_extra=query_of(LanguagesRequest), summary="Served languages")
async def languages(request: Request) -> Any:
    """Return the source languages, or with ``type=target`` the target languages."""
    (_, fields), pairs = await authorised_fields(request), state_of(request).service.pairs
    if read(LanguagesRequest, fields).type == "target":
        return [{"language": _code(code), "name": name_of(code), "supports_formality": False} for code in pairs.targets]
    return [{"language": _code(code), "name": name_of(code)} for code in pairs.sources]


def _code(code: str) -> str:
    return code.replace("_", "-").upper()


@router.post("/usage", summary="Number of translated characters, for older clients")
@router.get("/usage", summary="Number of translated characters")
async def usage(request: Request) -> dict[str, int]:
    """Return the characters translated for this key since the server started; there is no limit."""
    owner, _ = await authorised_fields(request)
    return {"character_count": state_of(request).metrics.n_characters[owner], "character_limit": UNLIMITED}


# --- documents --------------------------------------------------------------------------------------------------------


class DocumentRequest(_WithGlossary, DocumentFields):
    """Fields of ``/v2/document`` next to the file."""

    target_lang: Text = Field(description="Target language, such as DE.")
    source_lang: Text = Field("", description="Source language; detected if it is left out.")
    filename: Text = Field("", description="Name of the file (default: that of the upload).")
    output_format: Text = Field("", description="Ending of the result; must be that of the document.")
    formality: Formality = Field("default", description=f"No effect: {IGNORED['formality']}.")


@router.post(
    "/document", summary="Upload a document",
    openapi_extra=upload_body(DocumentRequest),
)  # fmt: skip
async def upload_document(request: Request) -> dict[str, str]:
    """Start to translate a document; its status is queried with the returned id and key."""
    fields, name, content = await upload_of(request)
    owner = check_key(request, fields, missing=403, wrong=403)
    if not fields.get("target_lang"):
        raise MalformedError("Parameter 'target_lang' not specified.")
    state, body = state_of(request), read(DocumentRequest, fields)
    name, source, target = body.filename or name, body.source_lang, body.target_lang
    ending = body.output_format.lower().lstrip(".")
    if ending and not name.lower().endswith(f".{ending}"):
        raise MalformedError(f"'output_format' {ending} is not supported: a document keeps its format")
    terms: Mapping[str, Any] = {}
    if glossary := body.glossary():
        pair = state.service.pair(source, target, [])
        terms = await glossary_option(state.glossaries, owner, glossary, pair, source)
    options = state.service.options(**terms)
    info = body.info(name, source, target)
    # DeepL's library gives up after 10 s and sends the document again: nobody would know the id of the first.
    job, secret = await until_client_leaves(
        request.receive, state.documents.add(content, info, options, owner), undo=state.documents.forget_added
    )
    return {"document_id": job.id, "document_key": secret}


class DocumentKey(BaseModel):
    """Fields of the routes of an uploaded document."""

    document_key: Text = Field("", description="Key from the answer to the upload.")


@router.post("/document/{document_id}", openapi_extra=body_of(DocumentKey), summary="The status of a document")
async def document_status(document_id: str, request: Request) -> dict[str, Any]:
    """Return the status: queued, translating, done, or error with its message."""
    job = await _job(document_id, request)
    status: dict[str, Any] = {"document_id": job.id, "status": job.status}
    if job.status in ("queued", "translating"):
        status["seconds_remaining"] = 1
    if job.status == "error":
        status["error_message"] = status["message"] = job.error
    if job.status == "done":
        status |= {"billed_characters": job.n_chars, **state_of_job(job)}
    return status


@router.post(
    "/document/{document_id}/result", openapi_extra=body_of(DocumentKey), response_class=FileResponse,
    summary="The translated document",
)  # fmt: skip
async def document_result(document_id: str, request: Request) -> Any:
    """Return the translated file; 503 until it is done."""
    job = await _job(document_id, request)
    if job.status == "error":
        raise MalformedError(job.error)
    if job.status != "done":
        return JSONResponse({"message": "Document translation is not done: try again later"}, status_code=503)
    jobs = state_of(request).documents.jobs
    return await jobs.disk.run(job.owner, Delivery, jobs, job)


async def _job(document_id: str, request: Request) -> Job:
    owner, fields = await authorised_fields(request)
    return await state_of(request).documents.get(document_id, read(DocumentKey, fields).document_key, owner)


API = Api(router, "/v2/", error_body, queued=["/v2/translate"], uploads=["/v2/document"])
