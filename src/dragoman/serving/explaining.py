"""Attention and candidates of one translation: as JSON for the explorer, or as a page."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from dragoman.explanation.explain import explain as traced
from dragoman.explanation.page import page, trace_data
from dragoman.explanation.trace import Trace
from dragoman.serving.http import JsonRoute, Line, Text, check_key, read, state_of
from dragoman.serving.limits import EXPLAINED, EXPLAINED_TOKENS, Shares
from dragoman.serving.pages import with_policy
from dragoman.serving.refusals import BusyError, ClientLeft, MalformedError
from dragoman.serving.turns import Turns
from dragoman.translation.translator import Translator

router = APIRouter(route_class=JsonRoute)

MOST_WAITING = 16
"""Largest number of traces that wait for their turn; more are refused."""


ShortLine = Annotated[Line, Field(max_length=EXPLAINED)]


class ExplainRequest(BaseModel):
    """Line to explain, and its translation or the beginning of one."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[ShortLine, Field(description="Line to explain.")]
    source: Annotated[Text, Field(description="Source language; auto: detect it among those served.")] = "auto"
    target: Annotated[Text | None, Field(description="Target language; optional if the source has only one.")] = None
    translation: Annotated[
        ShortLine | None, Field(description="Translation to explain (default: the model's own).")
    ] = None
    prefix: Annotated[
        list[StrictInt],
        Field(max_length=EXPLAINED_TOKENS, description="Ids of the first subwords; the model continues from there."),
    ] = []


class Traces:
    """Runs the traces of a server one at a time, of each key in turn: they use the plain, slow model."""

    def __init__(self, shares: Shares) -> None:
        """Begin without waiting requests."""
        self._turns, self._shares, self._waiting = Turns(1), shares, Counter[str]()

    async def shown(
        self, request: Request, line: ExplainRequest, owner: str, show: Callable[[Trace], Response]
    ) -> Response:
        """Trace a sentence when its turn has come; return what ``show`` makes of the trace.

        Raises:
            MalformedError: A text has too many subwords.
            BusyError: Too many requests of this key wait.
            ClientLeft: The client left while it waited.
        """
        pair = state_of(request).service.pair(line.source, line.target, [line.text])
        _check_tokens(pair.translator, line)
        if not self._shares.has_room(MOST_WAITING, self._waiting, owner):
            raise BusyError(2.0)
        self._waiting[owner] += 1
        try:
            async with self._turns.of(owner):
                # The explorer drops a waiting request when it sends the next one.
                if await request.is_disconnected():
                    raise ClientLeft
                # ``show`` too runs in the thread: its answer has megabytes.
                return await asyncio.to_thread(
                    lambda: show(traced(pair.translator, line.text, line.translation, prefix=line.prefix, to=pair.to))
                )
        finally:
            self._waiting[owner] -= 1


def _check_tokens(translator: Translator, line: ExplainRequest) -> None:
    for text, tokenizer in ((line.text, translator.src_tokenizer), (line.translation, translator.tgt_tokenizer)):
        n_tokens = 0 if text is None else len(tokenizer.encode([text])[0])
        if n_tokens > EXPLAINED_TOKENS:
            raise MalformedError(f"text and translation must have at most {EXPLAINED_TOKENS} subwords, got {n_tokens}")


@router.post("/v1/explain", tags=["dragoman"], summary="Attention and candidates of a translation")
async def explain(line: ExplainRequest, request: Request) -> Any:
    """Return every attention weight and the candidates of each step, for one short line."""
    owner = check_key(request, None, missing=401, wrong=403)
    return await request.app.state.traces.shown(request, line, owner, lambda trace: JSONResponse(trace_data(trace)))


@router.get("/explain", tags=["pages"], summary="Explanation of a translation, as a page", response_class=HTMLResponse)
async def explained(
    request: Request, text: str, source: str = "auto", target: str | None = None, translation: str | None = None,
    prefix: Annotated[list[int], Query(max_length=EXPLAINED_TOKENS)] = [],  # noqa: B006 - FastAPI copies it
) -> Response:  # fmt: skip
    """Return the page of ``dragoman explain`` for one short line."""
    owner = check_key(request, None, missing=401, wrong=403)
    fields = {"text": text, "source": source, "target": target, "translation": translation, "prefix": prefix}
    line = read(ExplainRequest, fields)
    return await request.app.state.traces.shown(request, line, owner, lambda trace: with_policy(page(trace)))
