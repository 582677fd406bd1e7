"""The translation page, and the content security policy of pages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from dragoman.documents.formats import options_of, supported_suffixes
from dragoman.languages.known import unspaced_codes
from dragoman.pages.colours import scale
from dragoman.pages.render import checksum, render
from dragoman.serving.http import state_of
from dragoman.serving.limits import EXPLAINED
from dragoman.serving.pairs import name_of
from dragoman.serving.state import State

router = APIRouter(tags=["pages"], default_response_class=HTMLResponse)


@router.get("/", summary="Translation page")
async def index(request: Request) -> HTMLResponse:
    """Return the page that translates as you type."""
    return with_policy(_index(state_of(request)))


@cache
def _index(state: State) -> str:
    pairs = list(state.service.pairs)
    codes = dict.fromkeys([*state.service.pairs.sources, *state.service.pairs.targets])
    settings = {
        "pairs": [[pair.src, pair.tgt] for pair in pairs],
        "sources": state.service.pairs.sources,
        "names": [[code, name_of(code)] for code in codes],
        "unspaced": unspaced_codes(),
        "most": state.service.limits.chars,
        "beam": min(map(state.service.beam_size, pairs)),
        "explained": EXPLAINED,
        "scale": scale(),
        "documents": {suffix: options_of(suffix) for suffix in supported_suffixes()},
    }
    return render("serve.html", settings=settings)


def _contents(text: str, name: str) -> Iterator[str]:
    """Yield the content of each element of a page; its tags have no attributes."""
    end = 0
    while (start := text.find(f"<{name}>", end)) >= 0 and (end := text.find(f"</{name}>", start)) >= 0:
        yield text[start + len(name) + 2 : end]


def with_policy(text: str) -> HTMLResponse:
    """Return a page with a content security policy that allows its own scripts and styles alone."""
    script = [checksum(code) for code in _contents(text, "script")]
    style = [checksum(code) for code in _contents(text, "style")]
    sources = {"script-src": script, "style-src": style}
    policy = "; ".join(kind + "".join(f" '{sum_}'" for sum_ in sums) for kind, sums in sources.items())
    policy = f"default-src 'none'; {policy}; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    policy += "form-action 'none'; frame-ancestors 'none'"
    return HTMLResponse(text, headers={"content-security-policy": policy})
