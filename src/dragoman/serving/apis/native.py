"""dragoman's own API, ``/v1``: all options of translation, scores, confidence, notes, alignments, and streaming.

The fields of a request are made from the declarations in ``TranslateOptions``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from dragoman.errors import ConfigError, DragomanError, shortened
from dragoman.options import declaration_of, no_switch_for_a_number
from dragoman.serving.apis.api import Api
from dragoman.serving.http import JsonRoute, Text, Texts, check_key, refusal_for, state_of
from dragoman.serving.pairs import Pair, name_of
from dragoman.serving.service import Answer, Directions, Part, Service, request_options
from dragoman.serving.transport import until_client_leaves
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.options import TranslateOptions
from dragoman.translation.quality import Quality

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/v1", tags=["dragoman"], route_class=JsonRoute)


class _RequestBase(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[Texts, Field(description="One text, or several; each may have several lines.")]
    source: Annotated[Text, Field(description="Source language; auto: detect it among those served.")] = "auto"
    target: Annotated[Text | None, Field(description="Target language; optional if the source has only one.")] = None
    stream: Annotated[
        bool, Field(description="Answer with server-sent events: each `sentence`, then `done` with all, or `error`.")
    ] = False

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: Any, info: Any) -> Any:
        return no_switch_for_a_number(value, cls.model_fields[info.field_name].annotation)


def _declared() -> dict[str, Any]:
    """Return the options that a request may set, as fields for pydantic."""
    hints = get_type_hints(TranslateOptions, include_extras=True)
    fields: dict[str, Any] = {
        option.name: (hints[option.name], declaration_of(TranslateOptions, option.name)) for option in request_options()
    }
    about = Field(
        None,
        description="Glossary: source terms and their target terms, null copies; or a text of lines such as "
        "'source = target', as in a glossary file.",
    )
    return {**fields, "glossary": (dict[str, str | None] | Text | None, about)}


TranslateRequest: Any = create_model("TranslateRequest", __base__=_RequestBase, **_declared())


class Alternative(BaseModel):
    """Another translation of a one-line text."""

    text: str
    score: float


class NoteOut(BaseModel):
    """Note on a translation for its reader."""

    kind: str
    text: str
    line: str = ""
    left: bool = Field(default=False, description="True if the fault is still there.")
    words: list[str] = Field(default=[], description="Words of the source that the note is about.")


class TranslationOut(BaseModel):
    """One translated text."""

    text: str
    source: str | None = Field(
        default=None, description="Its source language, if it is another than that of the answer."
    )
    score: float = Field(description="Log-probability divided by the length penalty; summed over lines.")
    confidence: float | None = Field(
        default=None, description="Expected sentence chrF divided by 100; the lowest of several lines."
    )
    quality: Quality | None = Field(
        default=None,
        description="Good, doubtful or poor, from confidence and length; of several lines, of all.",
    )
    notes: list[NoteOut] = []
    alternatives: list[Alternative] | None = None
    alignment: list[list[tuple[int, int]]] | None = Field(
        default=None, description="Pairs of source and target word numbers, from 0, for each line."
    )


class GlossaryOut(BaseModel):
    """Numbers of terms of a request's glossary."""

    read: int
    found: int = Field(description="Terms that occur in the texts.")


class TranslateResponse(BaseModel):
    """Translations of all texts, in order."""

    source: str
    target: str
    translations: list[TranslationOut]
    glossary: GlossaryOut | None = Field(default=None, description="Only if the request has a glossary.")


class Language(BaseModel):
    """Source language with its target languages."""

    code: str
    name: str
    targets: list[str]


@router.get("/languages", summary="Served languages")
def languages(request: Request) -> list[Language]:
    """Return each source language with its targets."""
    check_key(request, None, missing=401, wrong=403)
    pairs = state_of(request).service.pairs
    return [Language(code=code, name=name_of(code), targets=pairs.targets_of(code)) for code in pairs.sources]


_EVENTS = (
    "Server-sent events, each with JSON in its data: `sentence` with `text` and `translation` for each sentence as it "
    "is done; at the end `done` with the JSON of an answer without `stream`, or `error` with the JSON of a refusal."
)
_STREAM = {"schema": {"type": "string", "description": _EVENTS}}
_STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": _STREAM}}}


@router.post(
    "/translate", summary="Translate one text or several", response_model=TranslateResponse, responses=_STREAMED
)
async def translate(body: TranslateRequest, request: Request) -> Any:
    """Translate texts; with ``stream`` the answer is ``text/event-stream``."""
    owner = check_key(request, None, missing=401, wrong=403)
    state = state_of(request)
    service: Service = state.service
    texts = body.text
    service.limits.check_texts(texts)
    directions = await service.directions(body.source, body.target, texts, owner)
    changes = {name: getattr(body, name) for name in body.model_fields_set - set(_RequestBase.model_fields)}
    if isinstance(changes.get("glossary"), str):  # never the name of a file of the server
        changes["glossary"] = await service.helpers.run(owner, _terms_of, changes["glossary"])
    options = service.options(**changes)
    if options.n_best > 1 and any("\n" in text for text in texts):
        raise ConfigError("n_best above 1 needs texts of one line: send each line as a text")
    if body.stream:
        # The first step raises what is wrong with the request, while the answer can still have an error status.
        parts = directions.parts
        for pair in list(parts)[1:]:
            await service.helpers.run(owner, service.plan, pair, options)
        streams = {pair: service.stream(texts, pair, options, owner, part) for pair, part in parts.items()}
        await anext(streams[next(iter(parts))])
        events = _events(streams, directions, options, request, partial(directions.count, state.metrics, texts, owner))
        return StreamingResponse(events, media_type="text/event-stream")

    def work(pair: Pair, part: Part) -> Awaitable[list[Answer]]:
        return service.translate(texts, pair, options, owner, part)

    answers = await until_client_leaves(request.receive, directions.each(work))
    directions.count(state.metrics, texts, owner)
    return JSONResponse(_response(directions, answers, options).model_dump(exclude_none=True, exclude_defaults=False))


def _terms_of(glossary: str) -> dict[str, str | None]:
    """Return the terms of a glossary in the form of a glossary file."""
    return dict(Glossary.parse(glossary).terms)


def _response(directions: Directions, answers: list[Answer], options: TranslateOptions) -> TranslateResponse:
    terms = None
    if options.glossary:
        found = {term for answer in answers for line in answer.lines for term in line.terms}
        terms = GlossaryOut(read=len(options.glossary), found=len(found))
    usual = directions.usual
    translations = [
        _translation(answer, options, None if (source := directions.source(i)) == usual.src else source)
        for i, answer in enumerate(answers)
    ]
    return TranslateResponse(source=usual.src, target=usual.tgt, translations=translations, glossary=terms)


def _translation(answer: Answer, options: TranslateOptions, source: str | None) -> TranslationOut:
    best = answer.lines[0]
    alternatives = None
    if options.n_best > 1:
        alternatives = [Alternative(text=other.text, score=other.score) for other in best.alternatives]
    return TranslationOut(
        text=answer.text,
        source=source,
        score=sum(line.score for line in answer.lines),
        confidence=answer.confidence,
        quality=answer.quality,
        notes=[
            NoteOut(kind=note.kind, text=note.text, line=note.where, left=note.left, words=list(note.words))
            for note in answer.notes
        ],
        alternatives=alternatives,
        alignment=[list(line.alignment or ()) for line in answer.lines] if options.alignments else None,
    )


async def _events(
    streams: Mapping[Pair, AsyncGenerator[Any, None]], directions: Directions, options: TranslateOptions,
    request: Request, count: Callable[[], object],
) -> AsyncIterator[str]:  # fmt: skip
    """Yield each sentence, then all translations, or the error with which the request failed.

    Args:
        count: Called once all translations have come.
    """
    answers_of: dict[Pair, list[Answer]] = {}
    try:
        for pair, stream in streams.items():
            async with aclosing(stream):
                async for step in stream:
                    if isinstance(step, list):
                        answers_of[pair] = step
                    elif step is not None and directions.pairs[step[0]] is pair:
                        yield _event("sentence", {"text": step[0], "translation": step[1]})
    except DragomanError as error:
        refusal = refusal_for(request, error)
        request.scope["failed"] = refusal.status  # for the log and the metrics: the answer has its status already
        yield _event("error", API.error(shortened(str(refusal))))
        return
    except Exception as error:
        logger.error("a stream failed", exc_info=error)
        request.scope["failed"] = 500
        yield _event("error", API.error("internal error; the log has its traceback"))
        return
    count()
    answers = [answers_of[pair][i] for i, pair in enumerate(directions.pairs)]
    yield _event("done", _response(directions, answers, options).model_dump(exclude_none=True))


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


API = Api(router, "/v1/", lambda message: {"error": {"message": message}}, queued=["/v1/translate"])
