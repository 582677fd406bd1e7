"""The page to translate on and the page that shows the attention: one file each, with a policy of its own."""

from __future__ import annotations

import asyncio
import re
from functools import cache

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from dragoman.data.languages import UNSPACED
from dragoman.explanation.page import page as explanation_page
from dragoman.explanation.trace import explain as traced
from dragoman.pages.render import checksum, render
from dragoman.serving.http import MalformedError, State, check_key, state_of
from dragoman.serving.pairs import Pair, name_of

router = APIRouter(tags=["pages"], default_response_class=HTMLResponse)

MOST_EXPLAINED = 400
"""Characters of a text whose attention is shown: more would not fit on a page."""

_EXPLAINING = asyncio.Semaphore(1)  # a trace runs the plain model, for people who look: one at a time


@router.get("/", summary="A page to translate on")
async def index(request: Request) -> HTMLResponse:
    """Translate as you type."""
    return _answer(_index(state_of(request)))


@cache
def _index(state: State) -> str:
    pairs = list(state.service.pairs)
    codes = dict.fromkeys([*state.service.pairs.sources, *state.service.pairs.targets])
    settings = {
        "pairs": [[pair.src, pair.tgt] for pair in pairs],
        "sources": state.service.pairs.sources,
        "names": [[code, name_of(code)] for code in codes],
        "unspaced": list(UNSPACED),
        "most": state.service.limits.chars,
        "beam": min(pair.translator.config.decode.beam_size for pair in pairs),
        "explain": state.keys is None,
    }
    return render("serve.html", settings=settings)


@router.get("/explain", summary="A page that shows the attention")
async def explain(request: Request, text: str, source: str = "auto", target: str | None = None) -> HTMLResponse:
    """As ``dragoman explain`` writes it, for one short text."""
    check_key(request, None, missing=401, wrong=403)
    if not text.strip() or len(text) > MOST_EXPLAINED or "\n" in text:
        raise MalformedError(f"text must be one line of at most {MOST_EXPLAINED} characters")
    pair = state_of(request).service.pair(source, target, [text])
    async with _EXPLAINING:
        return _answer(await asyncio.to_thread(_explained, pair, text))


def _explained(pair: Pair, text: str) -> str:
    return explanation_page(traced(pair.translator, text))


def _answer(text: str) -> HTMLResponse:
    """A page with the policy that lets its own scripts and styles run, and nothing else."""
    script = [checksum(each) for each in re.findall(r"<script>(.*?)</script>", text, re.DOTALL)]
    style = [checksum(each) for each in re.findall(r"<style>(.*?)</style>", text, re.DOTALL)]
    sources = {"script-src": script, "style-src": style}
    policy = "; ".join(kind + "".join(f" '{one}'" for one in sums) for kind, sums in sources.items())
    policy = f"default-src 'none'; {policy}; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    policy += "form-action 'none'; frame-ancestors 'none'"
    return HTMLResponse(text, headers={"content-security-policy": policy})
