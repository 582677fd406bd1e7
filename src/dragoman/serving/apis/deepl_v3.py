"""DeepL's glossaries of API v3: several language pairs in one, each a dictionary that can be changed.

Requests come as JSON or as a form with names such as ``dictionaries[0].source_lang``, as deepl-node writes.
https://developers.deepl.com/api-reference/multilingual-glossaries
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from dragoman.languages.codes import primary
from dragoman.serving.apis.api import Api
from dragoman.serving.apis.deepl_glossaries import checked, error_body, stored_in, terms_of, tsv
from dragoman.serving.glossaries import Dictionary, Stored
from dragoman.serving.http import AnyCase, FullText, Text, body_of, read, state_of
from dragoman.serving.refusals import MalformedError

router = APIRouter(prefix="/v3/glossaries", tags=["DeepL"])

_INDEXED = re.compile(r"dictionaries\[(\d{1,3})\]\.(\w+)")


class DictionaryRequest(BaseModel):
    """The terms of one pair."""

    source_lang: Text
    target_lang: Text
    entries: FullText = Field(description="A term a line: source, tab, target; or as CSV.")
    entries_format: Annotated[Literal["tsv", "csv"], AnyCase] = "tsv"


class GlossaryRequest(BaseModel):
    """A glossary of several pairs."""

    name: FullText
    dictionaries: list[DictionaryRequest] = Field(min_length=1)


class ChangeRequest(BaseModel):
    """Another name, or terms to add."""

    name: FullText | None = None
    dictionaries: list[DictionaryRequest] = []


@router.post("", status_code=201, openapi_extra=body_of(GlossaryRequest), summary="Store a glossary")
async def make(request: Request) -> Any:
    """With a dictionary for each of some pairs."""
    fields, stored = await checked(request), stored_in(request)
    asked = read(GlossaryRequest, _nested(fields))
    dictionaries = [_dictionary(request, each) for each in asked.dictionaries]
    return JSONResponse(_shown(stored.add(asked.name, _merged((), dictionaries))), status_code=201)


@router.get("", summary="All glossaries")
async def list_all(request: Request) -> dict[str, Any]:
    """Without their entries."""
    await checked(request)
    stored = state_of(request).glossaries
    return {"glossaries": [_shown(each) for each in (stored.list() if stored else [])]}


@router.get("/{glossary_id}", summary="One glossary")
async def get(glossary_id: str, request: Request) -> dict[str, Any]:
    """Without its entries."""
    await checked(request)
    return _shown(stored_in(request).get(glossary_id))


@router.patch("/{glossary_id}", openapi_extra=body_of(ChangeRequest), summary="Rename a glossary, or add terms")
async def change(glossary_id: str, request: Request) -> dict[str, Any]:
    """A term that is there already gets the new translation; a pair that is not there, a dictionary."""
    fields = await checked(request)
    asked = read(ChangeRequest, _nested(fields))
    new = [_dictionary(request, each) for each in asked.dictionaries]
    return _shown(stored_in(request).change(
        glossary_id, lambda one: replace(one, name=asked.name or one.name, dictionaries=_merged(one.dictionaries, new))
    ))  # fmt: skip


@router.delete("/{glossary_id}", status_code=204, summary="Delete a glossary")
async def delete(glossary_id: str, request: Request) -> Response:
    """For good."""
    await checked(request)
    stored_in(request).delete(glossary_id)
    return Response(status_code=204)


@router.get("/{glossary_id}/entries", summary="The entries of one dictionary")
async def entries(glossary_id: str, request: Request, source_lang: str, target_lang: str) -> dict[str, Any]:
    """As lines of source TAB target."""
    await checked(request)
    found = stored_in(request).get(glossary_id).dictionary(primary(source_lang), primary(target_lang))
    return {"dictionaries": [
        {"source_lang": found.src, "target_lang": found.tgt, "entries": tsv(found), "entries_format": "tsv"}
    ]}  # fmt: skip


@router.put("/{glossary_id}/dictionaries", openapi_extra=body_of(DictionaryRequest), summary="Replace a dictionary")
async def put(glossary_id: str, request: Request) -> dict[str, Any]:
    """All its terms; where the pair is not there, it is added."""
    new = _dictionary(request, read(DictionaryRequest, await checked(request)))
    stored_in(request).change(
        glossary_id, lambda one: replace(one, dictionaries=(*_without(one, new.src, new.tgt), new))
    )  # fmt: skip
    return _counted(new)


@router.delete("/{glossary_id}/dictionaries", status_code=204, summary="Delete a dictionary")
async def delete_dictionary(glossary_id: str, request: Request, source_lang: str, target_lang: str) -> Response:
    """The last one cannot be deleted: delete the glossary."""
    await checked(request)

    def without(one: Stored) -> Stored:
        gone = one.dictionary(primary(source_lang), primary(target_lang))
        if len(one.dictionaries) == 1:
            raise MalformedError("a glossary has at least one dictionary: delete the glossary")
        return replace(one, dictionaries=_without(one, gone.src, gone.tgt))

    stored_in(request).change(glossary_id, without)
    return Response(status_code=204)


def _nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with the dictionaries of a form, ``dictionaries[0].source_lang``, as JSON has them."""
    indexed: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if parts := _INDEXED.fullmatch(name):
            indexed.setdefault(int(parts[1]), {})[parts[2]] = value
    nested = {"dictionaries": [indexed[i] for i in sorted(indexed)]} if indexed else {}
    return {**nested, **fields}


def _dictionary(request: Request, asked: DictionaryRequest) -> Dictionary:
    pair = state_of(request).service.pairs.find(asked.source_lang, asked.target_lang)
    return Dictionary(primary(pair.src), primary(pair.tgt), terms_of(asked.entries, asked.entries_format))


def _merged(old: Sequence[Dictionary], new: Sequence[Dictionary]) -> tuple[Dictionary, ...]:
    """The old ones with the terms of the new ones."""
    found = {(each.src, each.tgt): dict(each.entries) for each in old}
    for each in new:
        found.setdefault((each.src, each.tgt), {}).update(each.entries)
    return tuple(Dictionary(src, tgt, entries) for (src, tgt), entries in found.items())


def _without(one: Stored, src: str, tgt: str) -> tuple[Dictionary, ...]:
    return tuple(each for each in one.dictionaries if (each.src, each.tgt) != (src, tgt))


def _counted(one: Dictionary) -> dict[str, Any]:
    return {"source_lang": one.src, "target_lang": one.tgt, "entry_count": len(one.entries)}


def _shown(one: Stored) -> dict[str, Any]:
    return {
        "glossary_id": one.id, "name": one.name, "creation_time": one.created,
        "dictionaries": [_counted(each) for each in one.dictionaries],
    }  # fmt: skip


API = Api(router, "/v3/", error_body)
