"""Helpers of all routes: fields from query, form or JSON, API keys, and the translation of texts with tags."""

from __future__ import annotations

import asyncio
import codecs
import difflib
import logging
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, create_model
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser

from dragoman.documents.document import DocumentInfo
from dragoman.documents.options import FormatOptions
from dragoman.errors import DragomanError
from dragoman.options import Options, declaration_of, must, no_switch_for_a_number, printable, refusals
from dragoman.serving.pairs import Pair
from dragoman.serving.parsing import Tagged
from dragoman.serving.refusals import BusyError, DeniedError, MalformedError, RefusalError, TooMuchError, UnreadyError
from dragoman.serving.request_json import MOST_FIELDS, n_broken, strict_json
from dragoman.serving.service import Part, Service
from dragoman.serving.state import State
from dragoman.serving.storage import refusal_of
from dragoman.translation.options import TranslateOptions

logger = logging.getLogger("dragoman.serving")

R = TypeVar("R")

MOST_FORM_FIELDS = 10_000
"""Largest number of fields of a form, each text of a list counted."""

SHORT_BODY = 64 * 1024
"""Largest body in bytes that is read in the thread of the event loop; of an upload its fields, in characters."""

MOST_SLIPS, LONGEST_SLIP = 100, 40
"""Number of unknown names that are compared with the names of fields, and the largest length of each."""

FORM_PIECE = 16 * 1024
"""Number of bytes of a multipart form that are read before other requests may run."""

MOST_SEMICOLONS = 100
"""Largest number of semicolons in a header of a form, whose parameters Python reads in the square of their number."""


def state_of(request: Request) -> State:
    """Return the parts of the server that received a request."""
    state: State = request.app.state.dragoman
    return state


def refusal_for(request: Request, error: DragomanError) -> RefusalError:
    """Return what the client of a request is told of an error."""
    # While the server starts or stops, other errors are consequences of that and would puzzle the client.
    if not state_of(request).service.ready and not isinstance(error, DeniedError | BusyError):
        return UnreadyError()
    if isinstance(error, RefusalError):
        return error
    # The text of an error of the disk names files of this machine.
    if isinstance(error.__cause__, OSError):
        logger.error("%s", error)
        return refusal_of(error.__cause__)
    return RefusalError(str(error))


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body with the fields of ``model``, sent as JSON or as a form."""
    schema = model.model_json_schema()
    schema = _inlined(schema, schema.pop("$defs", {}))
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def query_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a query with the fields of ``model``, each of which has a description."""
    schema = model.model_json_schema()
    required = schema.get("required", ())
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in required, "description": about["description"],
             "schema": about}
            for name, about in schema["properties"].items()
        ]
    }  # fmt: skip


def _inlined(node: Any, parts: Mapping[str, Any]) -> Any:
    """Return a schema with each ``$ref`` replaced by its part: OpenAPI keeps no parts next to a body's schema."""
    if isinstance(node, dict):
        if "$ref" in node:
            return _inlined(parts[node["$ref"].rpartition("/")[2]], parts)
        return {name: _inlined(child, parts) for name, child in node.items()}
    return [_inlined(child, parts) for child in node] if isinstance(node, list) else node


async def fields_of(request: Request) -> dict[str, Any]:
    """Return the fields of a request, from its query, a form or a JSON object; a repeated field becomes a list.

    Raises:
        MalformedError: The body does not fit its content type, or contradicts the query.
        TooMuchError: A form has too many fields.
    """
    pairs = request.query_params.multi_items()
    body, kind = await request.body(), request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body.strip():
        return _fields(pairs)
    if kind == "application/x-www-form-urlencoded":
        # Forms send each line end as CR LF, whatever the user typed.
        form_pairs = await _off_the_loop(_form_pairs, body)
        _check_charset(request, is_ascii=all(text.isascii() for pair in form_pairs for text in pair))
        pairs += [(name, value.replace("\r\n", "\n")) for name, value in form_pairs]
        return _fields(pairs)
    if kind == "multipart/form-data":
        for name, part in (await _form_of(request)).multi_items():
            if not isinstance(part, str):
                raise MalformedError(f"{name} must be text, got a file")
            pairs.append((name, part.replace("\r\n", "\n")))
        return _fields(pairs)
    _check_charset(request, is_ascii=body.isascii())
    return _joined(_fields(pairs), await _json_object(body))


def _joined(query: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a query and of a JSON body.

    Raises:
        MalformedError: A field is in both, with two values.
    """
    sent = {name: value for name, value in body.items() if value is not None and (value or name not in KEY_FIELDS)}
    for name in query.keys() & sent.keys():
        if name not in KEY_FIELDS and _as_texts(query[name]) != _as_texts(sent[name]):
            raise MalformedError(f"{name} has one value in the query and another one in the body: leave out one")
    return {**body, **query, **sent}


def _as_texts(value: Any) -> list[str]:
    """Return a value as a query has it: ``["3"]`` for 3 and for [3], ``["true"]`` for True."""
    values = value if isinstance(value, list) else [value]
    return [str(each).lower() if isinstance(each, bool) else str(each) for each in values]


def _form_pairs(body: bytes) -> list[tuple[str, str]]:
    """Return the names and values of a form sent as application/x-www-form-urlencoded.

    Raises:
        MalformedError: It is in another encoding than UTF-8.
        TooMuchError: It has too many fields.
    """
    try:
        return parse_qsl(body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FORM_FIELDS)
    except UnicodeDecodeError:
        raise MalformedError("the form must be UTF-8 text") from None
    except ValueError:
        raise TooMuchError(f"a form may have at most {MOST_FORM_FIELDS:,} fields: send fewer at a time") from None


async def _form_of(request: Request) -> FormData:
    """Return a form sent as multipart/form-data.

    Raises:
        MalformedError: It is damaged or cut, in another encoding than UTF-8, or has too many or too long parts.
    """
    if _content_type(request)[0] != b"multipart/form-data":
        return FormData()
    _check_charset(request, is_ascii=False)
    parser = _Utf8Parser(request.headers, _in_pieces(request), max_files=1, max_fields=MOST_FIELDS)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        why = str(error.__cause__ or error.message).rstrip(".")
        raise MalformedError(
            f"the form must be valid multipart/form-data, with at most one file, {MOST_FIELDS:,} fields of 1 MiB, and "
            f"4,096 bytes in each header of a part (such as its names): {why}"
        ) from None
    # Without its last part, such as the name of a glossary, the request would be another one.
    if not parser.is_complete:
        await form.close()
        raise MalformedError("the form has no end, which is its boundary with two further dashes: send all of it")
    return form


def _check_charset(request: Request, *, is_ascii: bool) -> None:
    """Check that a body is UTF-8 text by what its sender declares: as UTF-8, another text would be translated.

    Nothing is decoded by the name: some of Python's codecs take the square of the length, and some are for no text.

    Args:
        is_ascii: The body has bytes of ASCII alone, which mean the same in most encodings.

    Raises:
        MalformedError: It is in another encoding.
    """
    charset = _content_type(request)[1].get(b"charset", b"utf-8").decode("latin-1")
    if not _is_utf8(charset, is_ascii=is_ascii):
        raise MalformedError(f"the body must be UTF-8 text, got charset {charset[:40]!r}")


def _is_utf8(charset: str, *, is_ascii: bool) -> bool:
    """Return True if text of a declared encoding means the same in UTF-8."""
    name = charset.lower()
    return name in ("utf-8", "utf8", "us-ascii", "ascii") or (
        is_ascii and name.startswith(("iso-8859-", "windows-125"))
    )


def _content_type(request: Request) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the type of a body that its sender declares, and the parameters of the type.

    Raises:
        MalformedError: It has very many.
    """
    declared = request.headers.get("content-type", "")
    _check_semicolons(declared.encode("latin-1"))
    return parse_options_header(declared)


async def _in_pieces(request: Request) -> AsyncGenerator[bytes, None]:
    """Yield a body in pieces, and let other requests run between them."""
    async for body in request.stream():
        for start in range(0, len(body), FORM_PIECE):
            yield body[start : start + FORM_PIECE]
            await asyncio.sleep(0)


def _check_semicolons(header: bytes) -> None:
    """Check that a header of a form has few parameters.

    Raises:
        MalformedError: It has very many.
    """
    if (n := header.count(b";")) > MOST_SEMICOLONS:
        raise MalformedError(f"a header of the form may have at most {MOST_SEMICOLONS} semicolons, got {n:,}")


class _Utf8Parser(MultiPartParser):
    """Starlette's parser of forms, for fields and names in UTF-8 alone: Starlette reads any other text as Latin-1."""

    spool_max_size = 0
    """A file stays in memory, where its body is already: Starlette would hand each piece of it to another thread."""
    is_complete = False
    """True once the end of the form has come."""

    def on_end(self) -> None:
        self.is_complete = True

    def on_part_begin(self) -> None:
        super().on_part_begin()
        self._text, self._is_file = codecs.getincrementaldecoder("utf-8")(), False
        self._charset, self._is_ascii = "utf-8", True

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        super().on_header_value(data, start, end)
        self._decode(data[start:end])

    def on_header_end(self) -> None:
        super().on_header_end()
        self._decode(b"", final=True)

    def on_headers_finished(self) -> None:
        _check_semicolons(self._current_part.content_disposition or b"")
        super().on_headers_finished()
        self._is_file = self._current_part.file is not None
        for name, value in self._current_part.item_headers:
            if name == b"content-type":
                _check_semicolons(value)
                self._charset = parse_options_header(value)[1].get(b"charset", b"utf-8").decode("latin-1")
            # Starlette would take the encoded bytes for the text.
            if name == b"content-transfer-encoding" and value.strip().lower() not in (b"binary", b"8bit", b"7bit"):
                coding = value[:40].decode("latin-1")
                raise MalformedError(f"the parts of the form must be sent as they are, not as {coding!r}")

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        super().on_part_data(data, start, end)
        if not self._is_file:
            self._is_ascii = self._is_ascii and data[start:end].isascii()
            self._decode(data[start:end])

    def on_part_end(self) -> None:
        super().on_part_end()
        if not self._is_file and not _is_utf8(self._charset, is_ascii=self._is_ascii):
            raise MalformedError(f"the fields of the form must be UTF-8 text, got charset {self._charset[:40]!r}")
        self._decode(b"", final=True)

    def _decode(self, data: bytes, *, final: bool = False) -> None:
        """Check that ``data`` goes on in UTF-8, and with ``final`` that it ends there.

        Raises:
            MalformedError: It does not.
        """
        try:
            self._text.decode(data, final)
        except UnicodeDecodeError:
            raise MalformedError("the fields and names of the form must be UTF-8 text") from None


async def upload_of(request: Request) -> tuple[dict[str, Any], str, bytes]:
    """Return the fields of a form with one file, the file's name, and its content.

    Raises:
        MalformedError: The form has no file, or too much beside it.
    """
    pairs = request.query_params.multi_items()
    name, content = "", None
    async with state_of(request).budget.uploads.of(request.scope["owner"]):
        form = await _form_of(request)
        try:
            for field, part in form.multi_items():
                if isinstance(part, str):
                    pairs.append((field, part))
                else:
                    name, content = part.filename or "", await part.read()
        finally:
            await form.close()
    if content is None:
        raise MalformedError("the file is missing: send it as field 'file' of a form (multipart/form-data)")
    # They are read here, and those of the formats are stored with the document.
    if (n_chars := sum(len(field) + len(value) for field, value in pairs)) > SHORT_BODY:
        raise MalformedError(
            f"the fields beside the file may have at most {SHORT_BODY:,} characters together, got {n_chars:,}: leave "
            "some out, or name columns by their numbers"
        )
    return _fields(pairs), name, content


def upload_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a form with a file and the fields of ``model``."""
    schema = model.model_json_schema()
    schema["properties"] = {
        "file": {"type": "string", "format": "binary", "description": "The document."}, **schema["properties"],
    }  # fmt: skip
    schema["required"] = ["file", *schema.get("required", ())]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


class JsonRoute(APIRoute):
    """Route whose query and body FastAPI declares; other fields are refused, and a body is read by ``strict_json``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, for requests that read their JSON strictly."""
        handle = super().get_route_handler()
        known = {each.alias: isinstance(each.default, list) for each in self.dependant.query_params}

        async def strictly(request: Request) -> Response:
            _check_query(request, known)
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly


def _check_query(request: Request, known: Mapping[str, bool]) -> None:
    """Check the names in a query.

    Args:
        known: Names of the fields, each with whether it may be repeated.

    Raises:
        MalformedError: A field is unknown or repeated.
    """
    names = Counter(name for name, _ in request.query_params.multi_items())
    for name, n in names.items():
        if name in ("_", *KEY_FIELDS):  # jQuery's way around caches; a missing key is said by its own check
            continue
        if name not in known:
            elsewhere = ": send fields in the JSON body" if request.method == "POST" else ": leave it out"
            raise MalformedError(f"unknown field {printable(name)} in the query{elsewhere}")
        if n > 1 and not known[name]:
            raise MalformedError(f"{name} is {n} times in the query: leave it there once")


class _StrictRequest(Request):
    async def json(self) -> Any:
        body = await self.body()
        _check_charset(self, is_ascii=body.isascii())
        return await _json(body)


async def _json(body: bytes) -> Any:
    """Return the value of a JSON body."""
    return await _off_the_loop(strict_json, body)


async def _off_the_loop(read_body: Callable[[bytes], R], body: bytes) -> R:
    """Return what ``read_body`` makes of a body; a long one is read in another thread, so that others are answered."""
    return read_body(body) if len(body) <= SHORT_BODY else await asyncio.to_thread(read_body, body)


async def _json_object(body: bytes) -> dict[str, Any]:
    fields = await _json(body)
    if not isinstance(fields, dict):
        raise MalformedError("the body must be a JSON object")
    return fields


def _fields(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return (name, value) pairs as fields; a repeated name gets a list.

    Raises:
        MalformedError: There are too many names.
    """
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    if len(fields) > MOST_FIELDS:
        raise MalformedError(f"a request may have at most {MOST_FIELDS:,} fields, got {len(fields):,}")
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


def _no_surrogates(text: str) -> str:
    if n_broken([text]):
        raise must("have no unpaired surrogates, which are not characters")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise must("not be blank")
    return text


def _no_line_end(text: str) -> str:
    if "\n" in text:
        raise must("be one line")
    return text


def _as_list(texts: Any) -> Any:
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise must("be a text or a list of texts")
    return [_no_surrogates(text) for text in texts]


def _lower(word: Any) -> Any:
    return word.lower() if isinstance(word, str) else word


Text = Annotated[str, AfterValidator(_no_surrogates)]
"""Field of a request that is one text."""

FullText = Annotated[Text, Field(min_length=1), AfterValidator(_not_blank)]
"""Field that is one text and not blank."""

Line = Annotated[FullText, AfterValidator(_no_line_end)]
"""Field that is one line and not blank."""

Texts = Annotated[str | list[str], BeforeValidator(_as_list)]
"""Field that is a text or a list of texts; read as a list."""

AnyCase = BeforeValidator(_lower)
"""Validator that makes a field lower case."""

Columns = Annotated[
    Texts,
    Field(description="Heading of a column to translate, in a .csv or .tsv; may be repeated."),
]


def _declared_fields(declared: type[Options]) -> dict[str, Any]:
    """Return declared options as fields for pydantic."""
    hints = get_type_hints(declared, include_extras=True)
    return {name: (hints[name], declaration_of(declared, name)) for name in declared.names()}


class _WithColumns(BaseModel):
    column: Columns = []

    def info(self, name: str, source: str, target: str) -> DocumentInfo:
        """Return what a format must know about an upload."""
        formats = FormatOptions.of(None, {option: getattr(self, option) for option in FormatOptions.names()})
        return DocumentInfo(name, source, target, tuple(dict.fromkeys(self.column)), formats.for_formats())


DocumentFields: Any = create_model("DocumentFields", __base__=_WithColumns, **_declared_fields(FormatOptions))
"""Fields of an uploaded document, made from ``FormatOptions``."""

M = TypeVar("M", bound=BaseModel)


def read(declared: type[M], fields: Mapping[str, Any]) -> M:
    """Return the fields of a request as ``declared``; a null counts as absent.

    Raises:
        MalformedError: A field is missing or unknown, or its value is invalid.
    """
    known = declared.model_fields
    values = {
        name: no_switch_for_a_number(value, known[name].annotation) if name in known else value
        for name, value in fields.items()
        if value is not None and (name in known or name not in KEY_FIELDS)
    }
    _refuse_slips(declared, values)
    try:
        return declared.model_validate(values)
    except ValidationError as error:
        # To describe each of very many errors would take seconds, in which nobody is answered.
        if error.error_count() > MOST_FIELDS:
            raise MalformedError(f"{error.error_count():,} fields and values of the request are invalid") from None
        raise MalformedError(refusals(error.errors(include_url=False)[:5], unknown_field, "a JSON object")) from None


def _refuse_slips(declared: type[BaseModel], names: Iterable[str]) -> None:
    """Refuse unknown names that are like a known one: without its field a request would be another one.

    Other unknown fields are those of newer clients. A slip in the name of a field without effect changes nothing.

    Raises:
        MalformedError: A name is like that of a field.
    """
    known = declared.model_fields
    meant = [name for name, field in known.items() if field.annotation is not Any and name not in KEY_FIELDS]
    unknown = (name for name in names if name not in known and len(name) <= LONGEST_SLIP and name.isprintable())
    for name in islice(unknown, MOST_SLIPS):
        close = difflib.get_close_matches(name.lower(), meant, n=1, cutoff=0.84)
        if close:
            raise MalformedError(f"unknown field {name}: did you mean {close[0]}?")


def unknown_field(path: Sequence[str]) -> str:
    """Return the message for a field that does not exist."""
    return f"unknown field {'.'.join(path)}: leave it out"


async def translate_markup(
    service: Service, tagged: Tagged, pair: Pair, options: TranslateOptions, part: Part
) -> list[str]:  # fmt: skip
    """Translate texts with tags, which keep their number, nesting and bytes.

    Args:
        service: Translates.
        tagged: The texts.
        pair, options: As for ``Service.translate``.
        part: Its ``others`` are returned as they are; nothing is searched for them.
    """
    numbers = [i for i in range(len(tagged.sources)) if i not in part.others]
    own = replace(
        tagged, sources=[tagged.sources[i] for i in numbers], units=[tagged.units[i] for i in numbers]
    )  # fmt: skip
    texts = list(tagged.sources)
    if numbers:
        plain = [unit for units in own.units for unit in units]
        options = await service.aligned(pair, options, tagged.owner) if tagged.has_tags else options
        answers = await service.translate(plain, pair, options, tagged.owner, Part(waits=part.waits))
        lines = {text: answer.lines[0] for text, answer in zip(plain, answers, strict=True)}
        written = await own.written(lines, (pair.src, pair.tgt))
        for i, text in zip(numbers, written, strict=True):
            texts[i] = text
    return texts


def key_of(request: Request, fields: Mapping[str, Any] | None = None) -> str:
    """Return the API key of a request, from a header or a field; "" if it has none."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key") and key.strip():
        return key.strip()
    in_fields = (value for name in KEY_FIELDS if (value := (fields or {}).get(name)))
    other = request.headers.get("x-api-key") or next(in_fields, None)
    return other if isinstance(other, str) else ""


KEY_FIELDS = ("api_key", "auth_key")
"""Fields of a query or a body that may hold the API key."""

_KEY_IN_FIELD = re.compile(rb'(?:"\s{0,8}:\s{0,8}"|"?\r\n\r\n|=)([A-Za-z0-9_-]{1,128})')
"""What follows the name of such a field in JSON, in a form of several parts, and in a query."""

MOST_PLACES = 8
"""Number of places in a body that are looked at for each field."""


def keys_in(*encoded: bytes) -> Iterator[str]:
    """Yield what may be the API key of a request in its query or its body, which were not read yet."""
    for text in encoded:
        for name in map(str.encode, KEY_FIELDS):
            place = -len(name)
            for _ in range(MOST_PLACES):
                place = text.find(name, place + len(name))
                if place < 0:
                    break
                if (match := _KEY_IN_FIELD.match(text, place + len(name))) is not None:
                    yield match[1].decode()


def check_key(request: Request, fields: Mapping[str, Any] | None, *, missing: int, wrong: int) -> str:
    """Return the name of a request's API key, which owns what the request stores; "" if the server has no keys.

    A request without a valid key is refused with the status that clients of its API expect.

    Raises:
        DeniedError: The key is ``missing`` or ``wrong``, which are the statuses.
        BusyError: The key has too many requests in work.
    """
    keys = state_of(request).keys
    if keys is None:
        return ""
    key = key_of(request, fields)
    if not key:
        raise DeniedError("an API key is required", missing)
    owner = keys.owner(key)
    if owner is None:
        raise DeniedError("this API key is not known", wrong)
    request.scope["place"].take(owner)  # of a key in the body, which was not known before
    return owner
