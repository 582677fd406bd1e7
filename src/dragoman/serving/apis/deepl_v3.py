"""DeepL's glossaries of API v3: several language pairs in one glossary, each with a dictionary that can be changed.

Requests are JSON or forms with names such as ``dictionaries[0].source_lang``, as deepl-node writes them, or
``dictionaries[0][source_lang]``, as PHP, Rails and jQuery do.
https://developers.deepl.com/api-reference/multilingual-glossaries
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from dragoman.languages.codes import variety
from dragoman.options import printable
from dragoman.serving.apis.api import Api
from dragoman.serving.apis.deepl_glossaries import (
    DictionaryRequest,
    Name,
    StoredRequest,
    authorised_fields,
    check_number,
    dictionary_of,
    error_body,
    stored_glossaries,
    tsv,
)
from dragoman.serving.glossaries import Dictionary, Outline, Stored
from dragoman.serving.http import Text, body_of, query_of, read, state_of
from dragoman.serving.refusals import MalformedError

router = APIRouter(prefix="/v3/glossaries", tags=["DeepL"])

_INDEXED = re.compile(r"dictionaries\[(0|[1-9]\d{0,2})\](?:\.(\w+)|\[(\w+)\])")

_WRITTEN = "dictionaries[N].source_lang or dictionaries[N][source_lang], where N is a number from 0 to 999"
"""Names of fields in a form."""

_IN_A_FORM = "in a form the fields are `dictionaries[0].entries` or `dictionaries[0][entries]`"

MOST_DICTIONARIES = 1_000
"""Largest number of dictionaries in a request."""


class GlossaryRequest(StoredRequest):
    """Glossary of one or several language pairs."""

    name: Name
    dictionaries: list[DictionaryRequest] = Field(
        min_length=1, max_length=MOST_DICTIONARIES, description=f"Dictionaries, each of a language pair; {_IN_A_FORM}."
    )


class ChangeRequest(StoredRequest):
    """New name of a glossary, or terms to add."""

    name: Name | None = Field(None, description="New name.")
    dictionaries: list[DictionaryRequest] = Field(
        [], max_length=MOST_DICTIONARIES, description=f"Terms to add, of each language pair; {_IN_A_FORM}."
    )


class PairRequest(BaseModel):
    """Language pair of a dictionary."""

    source_lang: Text = Field(description="Source language, such as EN.")
    target_lang: Text = Field(description="Target language, such as DE.")


def _body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body with dictionaries, whose fields have names of their own in a form."""
    described = body_of(model)
    content = described["requestBody"]["content"]
    form = content["application/x-www-form-urlencoded"]
    fields = dict(form["schema"]["properties"])
    inner = fields.pop("dictionaries")["items"]
    named = {f"dictionaries[0].{name}": field for name, field in inner["properties"].items()}
    form["schema"] = {
        **form["schema"], "properties": {**fields, **named},
        "description": "dictionaries[1] begins the next dictionary; dictionaries[0][entries] is read too.",
        "patternProperties": {f"^{_INDEXED.pattern}$": {"type": "string"}},
    }  # fmt: skip
    if "required" in form["schema"]:
        form["schema"]["required"] = ["name", *(f"dictionaries[0].{name}" for name in inner["required"])]
    return described


@router.post("", status_code=201, openapi_extra=_body_of(GlossaryRequest), summary="Store a glossary")
async def make(request: Request) -> Any:
    """Store a glossary with a dictionary for each pair."""
    (owner, fields), stored = await authorised_fields(request), stored_glossaries(request)
    body = read(GlossaryRequest, _nested(fields))
    dictionaries = [await dictionary_of(request, owner, own) for own in body.dictionaries]
    glossary = await stored.disk.change(owner, stored.add, owner, body.name, _merged((), _agreed(dictionaries)))
    return JSONResponse(_described(glossary.outline), status_code=201)


@router.get("", summary="All glossaries")
async def list_all(request: Request) -> dict[str, Any]:
    """Return all glossaries, without their entries."""
    owner, _ = await authorised_fields(request)
    stored = state_of(request).glossaries
    outlines = await stored.disk.run(owner, stored.list, owner) if stored else []
    return {"glossaries": [_described(outline) for outline in outlines]}


@router.get("/{glossary_id}", summary="One glossary")
async def get(glossary_id: str, request: Request) -> dict[str, Any]:
    """Return a glossary without its entries."""
    owner, _ = await authorised_fields(request)
    stored = stored_glossaries(request)
    return _described((await stored.disk.run(owner, stored.get, glossary_id, owner)).outline)


@router.patch("/{glossary_id}", openapi_extra=_body_of(ChangeRequest), summary="Rename a glossary, or add terms")
async def change(glossary_id: str, request: Request) -> dict[str, Any]:
    """Rename a glossary or add terms: known terms get the new translation, new pairs a dictionary."""
    owner, fields = await authorised_fields(request)
    body = read(ChangeRequest, _nested(fields))
    if body.name is None and not body.dictionaries:
        raise MalformedError("the request must have a name or dictionaries: without them it changes nothing")
    new = _agreed([await dictionary_of(request, owner, own) for own in body.dictionaries])

    def changed(old: Stored) -> Stored:
        return replace(old, name=body.name or old.name, dictionaries=_merged(old.dictionaries, new))

    stored = stored_glossaries(request)
    glossary = await stored.disk.change(owner, stored.change, glossary_id, owner, changed)
    return _described(glossary.outline)


@router.delete("/{glossary_id}", status_code=204, summary="Delete a glossary")
async def delete(glossary_id: str, request: Request) -> Response:
    """Delete a glossary for good."""
    owner, _ = await authorised_fields(request)
    stored = stored_glossaries(request)
    await stored.disk.change(owner, stored.delete, glossary_id, owner)
    return Response(status_code=204)


@router.get("/{glossary_id}/entries", openapi_extra=query_of(PairRequest), summary="Entries of a dictionary")
async def entries(glossary_id: str, request: Request) -> dict[str, Any]:
    """Return the entries of a pair's dictionary as lines of source TAB target."""
    owner, fields = await authorised_fields(request)
    pair = read(PairRequest, fields)
    stored = stored_glossaries(request)
    glossary = await stored.disk.run(owner, stored.get, glossary_id, owner)
    own = glossary.dictionary(variety(pair.source_lang), variety(pair.target_lang))
    return {"dictionaries": [
        {"source_lang": own.src, "target_lang": own.tgt, "entries": tsv(own), "entries_format": "tsv"}
    ]}  # fmt: skip


@router.put("/{glossary_id}/dictionaries", openapi_extra=body_of(DictionaryRequest), summary="Replace a dictionary")
async def put(glossary_id: str, request: Request) -> dict[str, Any]:
    """Replace all terms of a pair, or add the pair."""
    owner, fields = await authorised_fields(request)
    new = await dictionary_of(request, owner, read(DictionaryRequest, fields))

    def replaced(old: Stored) -> Stored:
        return replace(old, dictionaries=(*_without(old, new.src, new.tgt), new))

    stored = stored_glossaries(request)
    await stored.disk.change(owner, stored.change, glossary_id, owner, replaced)
    return _counted(new.src, new.tgt, len(new.entries))


@router.delete(
    "/{glossary_id}/dictionaries", status_code=204, openapi_extra=query_of(PairRequest), summary="Delete a dictionary"
)
async def delete_dictionary(glossary_id: str, request: Request) -> Response:
    """Delete the dictionary of a pair, unless it is the only one."""
    owner, fields = await authorised_fields(request)
    pair = read(PairRequest, fields)

    def without(glossary: Stored) -> Stored:
        own = glossary.dictionary(variety(pair.source_lang), variety(pair.target_lang))
        if len(glossary.dictionaries) == 1:
            raise MalformedError("a glossary must have at least one dictionary: delete the glossary instead")
        return replace(glossary, dictionaries=_without(glossary, own.src, own.tgt))

    stored = stored_glossaries(request)
    await stored.disk.change(owner, stored.change, glossary_id, owner, without)
    return Response(status_code=204)


def _nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's fields, with those such as ``dictionaries[0].source_lang`` as a list ``dictionaries``.

    Fields that came as JSON are returned as they are.

    Raises:
        MalformedError: The name of such a field cannot be read, or the same field is there twice.
    """
    nested: dict[str, Any] = {}
    indexed: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if not name.startswith("dictionaries[") and not name.startswith("dictionaries."):
            nested[name] = value
            continue
        parts = _INDEXED.fullmatch(name)
        if parts is None:
            raise MalformedError(f"{printable(name[:80])} must be written as {_WRITTEN}")
        own = indexed.setdefault(int(parts[1]), {})
        if own.setdefault(parts[2] or parts[3], value) != value or "dictionaries" in fields:
            raise MalformedError(f"{name} is there in two forms: leave out one")
    return {**nested, "dictionaries": [indexed[i] for i in sorted(indexed)]} if indexed else nested


def _agreed(new: Sequence[Dictionary]) -> Sequence[Dictionary]:
    """Return the dictionaries of one request.

    Raises:
        MalformedError: Two of one pair translate a term differently.
    """
    terms: dict[tuple[str, str, str], str] = {}
    for own in new:
        for src, tgt in own.entries.items():
            if terms.setdefault((own.src, own.tgt, src), tgt) != tgt:
                raise MalformedError(f"two dictionaries of {own.src} and {own.tgt} translate {src!r}: keep one")
    return new


def _merged(old: Sequence[Dictionary], new: Sequence[Dictionary]) -> tuple[Dictionary, ...]:
    """Return the old dictionaries with the terms of the new ones added.

    Raises:
        MalformedError: A dictionary would have too many.
    """
    terms = {(own.src, own.tgt): dict(own.entries) for own in old}
    for own in new:
        terms.setdefault((own.src, own.tgt), {}).update(own.entries)
    for entries in terms.values():
        check_number(len(entries))
    return tuple(Dictionary(src, tgt, entries) for (src, tgt), entries in terms.items())


def _without(glossary: Stored, src: str, tgt: str) -> tuple[Dictionary, ...]:
    return tuple(own for own in glossary.dictionaries if (own.src, own.tgt) != (src, tgt))


def _counted(src: str, tgt: str, n_terms: int) -> dict[str, Any]:
    return {"source_lang": src, "target_lang": tgt, "entry_count": n_terms}


def _described(outline: Outline) -> dict[str, Any]:
    return {
        "glossary_id": outline.id, "name": outline.name, "creation_time": outline.created,
        "dictionaries": [_counted(*count) for count in outline.counts],
    }  # fmt: skip


API = Api(router, "/v3/", error_body)
