"""What the model looked at, for people who ask: as JSON for the explorer, or as a page of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.explanation.explain import explain as traced
from dragoman.explanation.page import page, trace_data
from dragoman.explanation.trace import Trace
from dragoman.serving.http import check_key, state_of
from dragoman.serving.limits import EXPLAINED, EXPLAINED_TOKENS
from dragoman.serving.pages import with_policy
from dragoman.serving.refusals import BusyError, ClientLeft, MalformedError
from dragoman.translation.translator import Translator

router = APIRouter()

MOST_WAITING = 16
"""Traces that wait for their turn; one more is refused."""


class ExplainRequest(BaseModel):
    """One line to explain."""

    model_config = ConfigDict(extra="forbid")

    text: str
    source: str = "auto"
    target: str | None = None
    translation: Annotated[
        str | None, Field(description="Explain this translation; without it the model's own is searched for.")
    ] = None
    prefix: Annotated[
        list[int],
        Field(
            max_length=EXPLAINED_TOKENS, description="Ids that the translation begins with; the rest is searched for."
        ),
    ] = []


class Turns:
    """Traces run the plain model, for people who look: one at a time."""

    def __init__(self) -> None:
        """Nobody waits yet; one for each server."""
        self._one, self._waiting = asyncio.Semaphore(1), 0

    async def shown(self, request: Request, asked: ExplainRequest, show: Callable[[Trace], Response]) -> Response:
        """What ``show`` makes of the trace that is asked for, when its turn has come; megabytes, so in a thread.

        Raises:
            MalformedError: A text is blank, too long, or has several lines.
            BusyError: Too many wait already.
            ClientLeft: Nobody waits for it any more.
        """
        for line in (asked.text, asked.translation):
            if line is not None and (not line.strip() or len(line) > EXPLAINED or "\n" in line):
                raise MalformedError(f"text and translation must be one line of at most {EXPLAINED} characters")
        pair = state_of(request).service.pair(asked.source, asked.target, [asked.text])
        _check_tokens(pair.translator, asked)
        if self._waiting >= MOST_WAITING:
            raise BusyError(2.0)
        self._waiting += 1
        try:
            async with self._one:
                if await request.is_disconnected():  # a later request has taken its place
                    raise ClientLeft
                return await asyncio.to_thread(
                    lambda: show(
                        traced(pair.translator, asked.text, asked.translation, prefix=asked.prefix, to=pair.to)
                    )
                )
        finally:
            self._waiting -= 1


def _check_tokens(translator: Translator, asked: ExplainRequest) -> None:
    for line, tokenizer in ((asked.text, translator.src_tokenizer), (asked.translation, translator.tgt_tokenizer)):
        n_tokens = 0 if line is None else len(tokenizer.encode([line])[0])
        if n_tokens > EXPLAINED_TOKENS:
            raise MalformedError(f"{n_tokens} subwords are more than the {EXPLAINED_TOKENS} that can be shown")


@router.post("/v1/explain", tags=["dragoman"], summary="What the model looked at and considered")
async def explain(asked: ExplainRequest, request: Request) -> Any:
    """Every attention weight and the candidates of each step, for one short line."""
    check_key(request, None, missing=401, wrong=403)
    return await request.app.state.turns.shown(request, asked, lambda trace: JSONResponse(trace_data(trace)))


@router.get("/explain", tags=["pages"], summary="The same as a page", response_class=HTMLResponse)
async def explained(
    request: Request, text: str, source: str = "auto", target: str | None = None, translation: str | None = None,
    prefix: Annotated[list[int], Query(max_length=EXPLAINED_TOKENS)] = [],  # noqa: B006 - FastAPI copies it
) -> Response:  # fmt: skip
    """As ``dragoman explain`` writes it, for one short line."""
    check_key(request, None, missing=401, wrong=403)
    asked = ExplainRequest(text=text, source=source, target=target, translation=translation, prefix=prefix)
    return await request.app.state.turns.shown(request, asked, lambda trace: with_policy(page(trace)))
