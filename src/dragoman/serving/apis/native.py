"""dragoman's own API, ``/v1``: every option of translating, scores, confidence, notes, alignments, and streaming.

The request is made from the declaration of ``TranslateOptions``; nothing of it is written twice.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, create_model

from dragoman.errors import ConfigError
from dragoman.options import declaration_of
from dragoman.serving.apis.api import Api
from dragoman.serving.http import Texts, check_key, state_of
from dragoman.serving.pairs import Pair, name_of
from dragoman.serving.service import Answer, Service, request_options
from dragoman.serving.transport import unless_gone
from dragoman.translation.options import TranslateOptions

router = APIRouter(prefix="/v1", tags=["dragoman"])


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[Texts, Field(description="One text, or several; each may have several lines.")]
    source: Annotated[str, Field(description="Source language; auto detects it among those served.")] = "auto"
    target: Annotated[
        str | None, Field(description="Target language; may be left out where the source has only one.")
    ] = None
    stream: Annotated[
        bool, Field(description="Answer with server-sent events: each sentence as it is done, then the whole.")
    ] = False


def _declared() -> dict[str, Any]:
    """Return the declared options that a request may give, for pydantic."""
    hints = get_type_hints(TranslateOptions, include_extras=True)
    fields: dict[str, Any] = {
        option.name: (hints[option.name], declaration_of(TranslateOptions, option.name)) for option in request_options()
    }
    about = Field(None, description="Glossary: source terms and their target terms; null copies.")
    return {**fields, "glossary": (dict[str, str | None] | None, about)}


TranslateRequest: Any = create_model("TranslateRequest", __base__=_Asked, **_declared())


class Alternative(BaseModel):
    """Another translation of a text of one line."""

    text: str
    score: float


class NoteOut(BaseModel):
    """What a reader should know of a translation."""

    kind: str
    text: str
    line: str = ""


class TranslationOut(BaseModel):
    """One translated text."""

    text: str
    score: float = Field(description="Log-probability over the length penalty; of several lines the sum.")
    confidence: float | None = Field(
        default=None, description="Expected sentence chrF over 100; of several lines the least."
    )
    notes: list[NoteOut] = []
    alternatives: list[Alternative] | None = None
    alignment: list[list[tuple[int, int]]] | None = Field(
        default=None, description="For each line pairs of a source and a target word, from 0."
    )


class TranslateResponse(BaseModel):
    """All texts, in order."""

    source: str
    target: str
    translations: list[TranslationOut]


class Language(BaseModel):
    """A source language and what it is translated to."""

    code: str
    name: str
    targets: list[str]


@router.get("/languages", summary="The languages that are served")
def languages(request: Request) -> list[Language]:
    """Each source language with its targets."""
    check_key(request, None, missing=401, wrong=403)
    pairs = state_of(request).service.pairs
    return [Language(code=code, name=name_of(code), targets=pairs.targets_of(code)) for code in pairs.sources]


_STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


@router.post(
    "/translate", summary="Translate one text or several", response_model=TranslateResponse, responses=_STREAMED
)
async def translate(asked: TranslateRequest, request: Request) -> Any:
    """Translate; with ``stream`` the answer is ``text/event-stream``."""
    check_key(request, None, missing=401, wrong=403)
    state = state_of(request)
    service: Service = state.service
    texts = asked.text
    service.limits.check_texts(texts)
    pair = service.pair(asked.source, asked.target, texts)
    given = {name: getattr(asked, name) for name in asked.model_fields_set - set(_Asked.model_fields)}
    options = service.options(**given)
    if options.n_best > 1 and any("\n" in text for text in texts):
        raise ConfigError("n_best needs texts of one line each: split them")
    state.metrics.translated(pair.name, sum(map(len, texts)))
    if asked.stream:
        found = service.stream(texts, pair, options)
        await anext(found)  # what is wrong has its status; later it would end a stream that began well
        return StreamingResponse(
            _events(found, pair, options), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )
    answers = await unless_gone(request.receive, service.translate(texts, pair, options))
    return JSONResponse(_response(pair, answers, options).model_dump(exclude_none=True, exclude_defaults=False))


def _response(pair: Pair, answers: list[Answer], options: TranslateOptions) -> TranslateResponse:
    return TranslateResponse(
        source=pair.src, target=pair.tgt, translations=[_translation(answer, options) for answer in answers]
    )


def _translation(answer: Answer, options: TranslateOptions) -> TranslationOut:
    best = answer.lines[0]
    alternatives = None
    if options.n_best > 1:
        alternatives = [Alternative(text=one.text, score=one.score) for one in best.alternatives]
    return TranslationOut(
        text=answer.text,
        score=sum(line.score for line in answer.lines),
        confidence=answer.confidence,
        notes=[NoteOut(kind=note.kind, text=note.text, line=note.where) for note in answer.notes],
        alternatives=alternatives,
        alignment=[list(line.alignment or ()) for line in answer.lines] if options.alignments else None,
    )


async def _events(stream: AsyncIterator[Any], pair: Pair, options: TranslateOptions) -> AsyncIterator[str]:
    async for found in stream:
        if isinstance(found, tuple):
            yield _event("sentence", {"text": found[0], "translation": found[1]})
        else:
            yield _event("done", _response(pair, found, options).model_dump(exclude_none=True))


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


API = Api(router, "/v1/", lambda message: {"error": {"message": message}}, queued=["/v1/translate"])
