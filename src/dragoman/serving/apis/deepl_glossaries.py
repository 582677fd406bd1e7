"""DeepL's glossaries of API v2: one language pair each; stored on disk, they bind the search.

https://developers.deepl.com/docs/api-reference/glossaries
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field

from dragoman.languages.codes import primary
from dragoman.serving.apis.api import Api
from dragoman.serving.glossaries import Dictionary, Glossaries, Stored
from dragoman.serving.http import AnyCase, FullText, Text, body_of, check_key, fields_of, read, state_of
from dragoman.serving.pairs import Pair, match
from dragoman.serving.refusals import MalformedError, UnknownError

router = APIRouter(prefix="/v2", tags=["DeepL"])


class GlossaryRequest(BaseModel):
    """What ``/v2/glossaries`` stores."""

    name: FullText
    source_lang: Text
    target_lang: Text
    entries: FullText = Field(description="A term a line: source, tab, target; or as CSV.")
    entries_format: Annotated[Literal["tsv", "csv"], AnyCase] = "tsv"


def error_body(message: str) -> dict[str, str]:
    """Return an error as clients of DeepL read it."""
    return {"message": message}


async def checked(request: Request) -> dict[str, Any]:
    """The fields of a request, whose key is checked as DeepL's clients expect."""
    fields = await fields_of(request)
    check_key(request, fields, missing=403, wrong=403)
    return fields


@router.get("/glossary-language-pairs", summary="The pairs that glossaries can be for")
async def glossary_pairs(request: Request) -> dict[str, Any]:
    """All that are served."""
    await checked(request)
    pairs = state_of(request).service.pairs
    return {
        "supported_languages": [{"source_lang": primary(pair.src), "target_lang": primary(pair.tgt)} for pair in pairs]
    }


@router.post("/glossaries", status_code=201, openapi_extra=body_of(GlossaryRequest), summary="Store a glossary")
async def make_glossary(request: Request) -> Any:
    """Store terms as TSV or CSV; they bind the search."""
    fields, stored = await checked(request), stored_in(request)
    asked = read(GlossaryRequest, fields)
    pair = state_of(request).service.pairs.find(asked.source_lang, asked.target_lang)
    terms = terms_of(asked.entries, asked.entries_format)
    made = stored.add(asked.name, [Dictionary(primary(pair.src), primary(pair.tgt), terms)])
    return JSONResponse(_shown(made), status_code=201)


@router.get("/glossaries", summary="All glossaries")
async def list_glossaries(request: Request) -> dict[str, Any]:
    """Those of one pair, without their entries."""
    await checked(request)
    stored = state_of(request).glossaries
    return {"glossaries": [_shown(each) for each in (stored.list() if stored else []) if len(each.dictionaries) == 1]}


@router.get("/glossaries/{glossary_id}", summary="One glossary")
async def get_glossary(glossary_id: str, request: Request) -> dict[str, Any]:
    """Without its entries."""
    await checked(request)
    return _shown(_of_one_pair(request, glossary_id))


@router.delete("/glossaries/{glossary_id}", status_code=204, summary="Delete a glossary")
async def delete_glossary(glossary_id: str, request: Request) -> Response:
    """For good."""
    await checked(request)
    stored_in(request).delete(glossary_id)
    return Response(status_code=204)


@router.get("/glossaries/{glossary_id}/entries", response_class=PlainTextResponse, summary="The entries of a glossary")
async def glossary_entries(glossary_id: str, request: Request) -> PlainTextResponse:
    """As lines of source TAB target."""
    await checked(request)
    text = tsv(_of_one_pair(request, glossary_id).dictionaries[0])
    return PlainTextResponse(text, media_type="text/tab-separated-values")


def stored_in(request: Request) -> Glossaries:
    """The glossaries of the server.

    Raises:
        UnknownError: It stores none.
    """
    stored = state_of(request).glossaries
    if stored is None:
        raise UnknownError("this server stores no glossaries: start it with --glossaries FOLDER")
    return stored


def terms_of(entries: str, form: str) -> dict[str, str]:
    """Terms from ``tsv`` or ``csv``.

    Raises:
        MalformedError: A line has not two fields, or there are too many; the line is named.
    """
    if form == "csv":
        rows = [row[:2] for row in csv.reader(io.StringIO(entries)) if row]
    else:
        rows = [line.split("\t") for line in entries.replace("\r\n", "\n").split("\n") if line.strip()]
    terms: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not all(field.strip() for field in row):
            raise MalformedError(f"entry {number} of the glossary is not a source term and a target term")
        src, tgt = row[0].strip(), row[1].strip()
        if terms.get(src, tgt) != tgt:
            raise MalformedError(f"entry {number} of the glossary gives {src!r} another translation than before")
        terms[src] = tgt
    if len(terms) > 10_000:
        raise MalformedError("a glossary may have at most 10,000 entries")
    return terms


def tsv(dictionary: Dictionary) -> str:
    """Its entries as lines of source TAB target."""
    return "\n".join(f"{src}\t{tgt}" for src, tgt in dictionary.entries.items())


def _of_one_pair(request: Request, id_: str) -> Stored:
    found = stored_in(request).get(id_)
    if len(found.dictionaries) != 1:
        raise MalformedError(f"the glossary has {len(found.dictionaries)} dictionaries: use /v3/glossaries")
    return found


def _shown(one: Stored) -> dict[str, Any]:
    only = one.dictionaries[0]
    return {
        "glossary_id": one.id, "name": one.name, "ready": True, "source_lang": only.src, "target_lang": only.tgt,
        "creation_time": one.created, "entry_count": len(only.entries),
    }  # fmt: skip


def chosen(stored: Glossaries | None, id_: str, pair: Pair, source: str) -> Mapping[str, Any]:
    """The option of translating that a ``glossary_id`` means: its dictionary for the pair.

    Raises:
        MalformedError: There is no source language beside it, or it has no dictionary for the pair.
        UnknownError: There is no such glossary.
    """
    if not id_:
        return {}
    if not source:
        raise MalformedError("'glossary_id' needs 'source_lang'")
    if stored is None:
        raise UnknownError("glossary not found")
    one = stored.get(id_)
    for each in one.dictionaries:
        if match(each.src, [pair.src]) is not None and match(each.tgt, [pair.tgt]) is not None:
            return {"glossary": dict(each.entries)}
    has = ", ".join(f"{each.src} to {each.tgt}" for each in one.dictionaries)
    raise MalformedError(f"the glossary is for {has}, not for {pair.src} to {pair.tgt}")


API = Api(router, "/v2/", error_body)
