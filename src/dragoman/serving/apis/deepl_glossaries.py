"""DeepL's glossaries of API v2: one language pair each. The search enforces their terms.

https://developers.deepl.com/docs/api-reference/glossaries
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.data.rows import has_spaces_before_quotes
from dragoman.languages.codes import match, variety
from dragoman.languages.composition import compose
from dragoman.serving.apis.api import Api
from dragoman.serving.glossaries import MOST_NAME, Dictionary, Glossaries, Outline, Stored
from dragoman.serving.http import AnyCase, FullText, Text, body_of, check_key, fields_of, read, state_of
from dragoman.serving.limits import MOST_TERM
from dragoman.serving.pairs import Pair
from dragoman.serving.refusals import MalformedError, UnknownError
from dragoman.serving.service import is_auto
from dragoman.translation.keeping.glossary import NOT_IN_A_TERM

router = APIRouter(prefix="/v2", tags=["DeepL"])

MOST_ENTRIES = 10_000
"""Largest number of terms of a dictionary."""


_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*+")

Name = Annotated[FullText, Field(max_length=MOST_NAME, description="Name of the glossary.")]
"""Name of a glossary."""


class TsvResponse(PlainTextResponse):
    """Answer with lines of source TAB target."""

    media_type = "text/tab-separated-values"


class StoredRequest(BaseModel):
    """Fields that are stored: unknown ones are refused, as nobody would notice later that they are missing."""

    model_config = ConfigDict(extra="forbid")


class DictionaryRequest(StoredRequest):
    """Terms of one language pair."""

    source_lang: Text = Field(description="Source language, such as EN.")
    target_lang: Text = Field(description="Target language, such as DE.")
    entries: FullText = Field(description="One term per line: source, tab, target; or CSV.")
    entries_format: Annotated[Literal["tsv", "csv"], AnyCase] = Field("tsv", description="Form of the entries.")


class GlossaryRequest(DictionaryRequest):
    """Fields of ``/v2/glossaries``."""

    name: Name


def error_body(message: str) -> dict[str, str]:
    """Return the body of an error in DeepL's form."""
    return {"message": message}


async def authorised_fields(request: Request) -> tuple[str, dict[str, Any]]:
    """Check the API key of a request; return its name and the fields of the request."""
    fields = await fields_of(request)
    return check_key(request, fields, missing=403, wrong=403), fields


@router.get("/glossary-language-pairs", summary="Language pairs of glossaries")
async def glossary_pairs(request: Request) -> dict[str, Any]:
    """Return all served pairs."""
    await authorised_fields(request)
    pairs = state_of(request).service.pairs
    return {
        "supported_languages": [{"source_lang": variety(pair.src), "target_lang": variety(pair.tgt)} for pair in pairs]
    }


@router.post("/glossaries", status_code=201, openapi_extra=body_of(GlossaryRequest), summary="Store a glossary")
async def make_glossary(request: Request) -> Any:
    """Store a glossary given as TSV or CSV."""
    (owner, fields), stored = await authorised_fields(request), stored_glossaries(request)
    body = read(GlossaryRequest, fields)
    dictionary = await dictionary_of(request, owner, body)
    glossary = await stored.disk.change(owner, stored.add, owner, body.name, [dictionary])
    return JSONResponse(_described(glossary.outline), status_code=201)


@router.get("/glossaries", summary="All glossaries")
async def list_glossaries(request: Request) -> dict[str, Any]:
    """Return all glossaries of a single pair, without their entries."""
    owner, _ = await authorised_fields(request)
    stored = state_of(request).glossaries
    outlines = await stored.disk.run(owner, stored.list, owner) if stored else []
    return {"glossaries": [_described(outline) for outline in outlines if len(outline.counts) == 1]}


@router.get("/glossaries/{glossary_id}", summary="One glossary")
async def get_glossary(glossary_id: str, request: Request) -> dict[str, Any]:
    """Return a glossary without its entries."""
    owner, _ = await authorised_fields(request)
    return _described((await _of_one_pair(request, glossary_id, owner)).outline)


@router.delete("/glossaries/{glossary_id}", status_code=204, summary="Delete a glossary")
async def delete_glossary(glossary_id: str, request: Request) -> Response:
    """Delete a glossary for good."""
    owner, _ = await authorised_fields(request)
    stored = stored_glossaries(request)
    await stored.disk.change(owner, stored.delete, glossary_id, owner)
    return Response(status_code=204)


@router.get("/glossaries/{glossary_id}/entries", response_class=TsvResponse, summary="Entries of a glossary")
async def glossary_entries(glossary_id: str, request: Request) -> TsvResponse:
    """Return the entries as lines of source TAB target."""
    owner, _ = await authorised_fields(request)
    return TsvResponse(tsv((await _of_one_pair(request, glossary_id, owner)).dictionaries[0]))


def stored_glossaries(request: Request) -> Glossaries:
    """Return the glossaries of the server.

    Raises:
        UnknownError: The server stores no glossaries.
    """
    stored = state_of(request).glossaries
    if stored is None:
        raise UnknownError("this server stores no glossaries: start it with --glossaries FOLDER")
    return stored


async def dictionary_of(request: Request, owner: str, body: DictionaryRequest) -> Dictionary:
    """Return the dictionary of a request; reading many terms takes a turn of ``owner`` and not the event loop.

    Raises:
        UnservedError, MalformedError: See ``Pairs.find`` and ``terms_of``.
    """
    service = state_of(request).service
    pair = service.pairs.find(body.source_lang, body.target_lang)
    terms = await service.helpers.run(owner, terms_of, body.entries, body.entries_format, (pair.src, pair.tgt))
    return Dictionary(variety(pair.src), variety(pair.tgt), terms)


def _names_languages(row: Sequence[str]) -> bool:
    """True for a row of four fields, the last two of which are codes of languages, as DeepL's CSV may have."""
    return len(row) == 4 and all(_LANGUAGE.fullmatch(field.strip()) for field in row[2:])


def _of_languages(row: list[str], number: int, languages: tuple[str, str] | None) -> list[str]:
    """Return a row of CSV without the languages that it may name; they must be those of the dictionary."""
    if not _names_languages(row):
        return row
    named = [variety(field.strip()) for field in row[2:]]
    if languages is not None and named != [variety(language) for language in languages]:
        raise MalformedError(
            f"entry {number} of the glossary is of {row[2].strip()} and {row[3].strip()}, but the dictionary is of "
            f"{' and '.join(languages)}: give each pair a dictionary"
        )
    return row[:2]


def terms_of(entries: str, form: str, languages: tuple[str, str] | None = None) -> dict[str, str]:
    """Return the terms of ``entries``, which are ``tsv`` or ``csv``; their sources are composed as in a ``Glossary``.

    Args:
        languages: Source and target of the dictionary, which those that a row of CSV names must be.

    Raises:
        MalformedError: A line cannot be read, does not have two fields, names other languages, contradicts another, or
            there are too many.
    """
    if form == "csv":
        if has_spaces_before_quotes(entries.split("\n"), ","):  # which programs read in different ways
            raise MalformedError('the glossary has spaces before quotation marks, as in "a", "b": leave them out')
        reader = csv.reader(io.StringIO(entries), strict=True)
        try:
            rows = [*filter(None, reader)]
        except csv.Error as error:
            raise MalformedError(f"line {reader.line_num:,} of the glossary is not valid CSV: {error}") from None
    else:
        rows = [line.split("\t") for line in entries.replace("\r\n", "\n").split("\n") if line.strip()]
    check_number(len(rows))
    terms: dict[str, str] = {}
    for number, fields in enumerate(rows, 1):
        row = _of_languages(fields, number, languages) if form == "csv" else fields
        if len(row) != 2 or not all(field.strip() for field in row):
            quotes = " (in CSV, put a term with a comma between quotes)" if form == "csv" and len(row) > 2 else ""
            raise MalformedError(f"entry {number} of the glossary must have a source term and a target term{quotes}")
        src, tgt = compose(row[0].strip()), row[1].strip()
        if any(character in src + tgt for character in NOT_IN_A_TERM):  # the list of entries would have other lines
            raise MalformedError(f"a term of entry {number} has a tab, a line end or a NUL: leave it out")
        n_bytes = max(len(term.encode("utf-8", "surrogatepass")) for term in (src, tgt))
        if n_bytes > MOST_TERM:
            raise MalformedError(f"a term of entry {number} may have at most {MOST_TERM:,} bytes, got {n_bytes:,}")
        if terms.get(src, tgt) != tgt:
            raise MalformedError(f"entry {number} of the glossary translates {src!r} a second time: keep one")
        terms[src] = tgt
    return terms


def check_number(n_terms: int) -> None:
    """Refuse too many terms of a dictionary.

    Raises:
        MalformedError: There are too many.
    """
    if n_terms > MOST_ENTRIES:
        raise MalformedError(f"a glossary may have at most {MOST_ENTRIES:,} entries, got {n_terms:,}")


def tsv(dictionary: Dictionary) -> str:
    """Return the entries of a dictionary as lines of source TAB target."""
    return "\n".join(f"{src}\t{tgt}" for src, tgt in dictionary.entries.items())


async def _of_one_pair(request: Request, id_: str, owner: str) -> Stored:
    stored = stored_glossaries(request)
    glossary = await stored.disk.run(owner, stored.get, id_, owner)
    if len(glossary.dictionaries) != 1:
        raise MalformedError(f"the glossary has {len(glossary.dictionaries)} dictionaries: use /v3/glossaries")
    return glossary


def _described(outline: Outline) -> dict[str, Any]:
    src, tgt, n_terms = outline.counts[0]
    return {
        "glossary_id": outline.id, "name": outline.name, "ready": True, "source_lang": src,
        "target_lang": tgt, "creation_time": outline.created, "entry_count": n_terms,
    }  # fmt: skip


async def glossary_option(
    stored: Glossaries | None, owner: str, id_: str, pair: Pair, source: str
) -> Mapping[str, Any]:  # fmt: skip
    """Return the option ``glossary`` for a ``glossary_id``: its dictionary for the pair; nothing without an id.

    Raises:
        MalformedError: ``source`` is empty or ``auto``, or the glossary has no dictionary for the pair.
        UnknownError: There is no such glossary that ``owner`` sees.
    """
    if not id_:
        return {}
    if is_auto(source):
        raise MalformedError("'glossary_id' needs 'source_lang'")
    if stored is None:
        raise UnknownError("glossary not found")
    dictionaries = (await stored.disk.run(owner, stored.get, id_, owner)).dictionaries
    for own in dictionaries:
        if match(own.src, [pair.src]) is not None and match(own.tgt, [pair.tgt]) is not None:
            return {"glossary": dict(own.entries)}
    has = ", ".join(f"{own.src} to {own.tgt}" for own in dictionaries)
    raise MalformedError(f"the glossary is for {has}, not for {pair.src} to {pair.tgt}")


API = Api(router, "/v2/", error_body)
