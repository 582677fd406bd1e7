"""What routes need of a request: the server's parts, fields however they were sent, the key, texts with tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from starlette.datastructures import FormData

from dragoman.documents import markup
from dragoman.documents.units import Translations, units_of, write
from dragoman.languages.known import is_unspaced
from dragoman.options import must, refusals
from dragoman.serving.pairs import Pair
from dragoman.serving.refusals import DeniedError, MalformedError
from dragoman.serving.service import Answer, Service
from dragoman.serving.state import State
from dragoman.translation.options import TranslateOptions


def state_of(request: Request) -> State:
    """The parts of the server that a request came to."""
    found: State = request.app.state.dragoman
    return found


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that comes as JSON or as a form."""
    schema = model.model_json_schema()
    schema = _inlined(schema, schema.pop("$defs", {}))
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def _inlined(node: Any, parts: Mapping[str, Any]) -> Any:
    """A schema with its parts where they are referred to: OpenAPI has no place for them beside it."""
    if isinstance(node, dict):
        if "$ref" in node:
            return _inlined(parts[node["$ref"].rpartition("/")[2]], parts)
        return {name: _inlined(child, parts) for name, child in node.items()}
    return [_inlined(child, parts) for child in node] if isinstance(node, list) else node


async def fields_of(request: Request) -> dict[str, Any]:
    """The fields of a request, from its query, a form or a JSON object; a field given several times is a list.

    Raises:
        MalformedError: The body is not what its content type says.
    """
    asked = request.query_params.multi_items()
    body, kind = await request.body(), request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body.strip():
        return _fields(asked)
    if kind == "application/x-www-form-urlencoded":
        try:
            pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise MalformedError("the form is not UTF-8") from None
        asked += [(name, value.replace("\r\n", "\n")) for name, value in pairs]  # as forms send line ends
        return _fields(asked)
    if kind == "multipart/form-data":
        form: FormData = await request.form(max_files=1, max_fields=1000)
        for name, part in form.multi_items():
            if not isinstance(part, str):
                raise MalformedError(f"{name} is a file: this route takes text")
            asked.append((name, part.replace("\r\n", "\n")))
        return _fields(asked)
    return {**_fields(asked), **_json_object(body)}


async def upload_of(request: Request) -> tuple[dict[str, Any], str, bytes]:
    """The fields of a form with one file, the file's name, and what is in it.

    Raises:
        MalformedError: There is no file.
    """
    asked = request.query_params.multi_items()
    name, content = "", None
    async with request.form(max_files=1, max_fields=1000) as form:
        for field, part in form.multi_items():
            if isinstance(part, str):
                asked.append((field, part))
            else:
                name, content = part.filename or "", await part.read()
    if content is None:
        raise MalformedError("there is no file: send it as the field file of a form (multipart/form-data)")
    return _fields(asked), name, content


def upload_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return what OpenAPI says of a form with a file and the fields of ``model``."""
    schema = model.model_json_schema()
    schema["properties"] = {
        "file": {"type": "string", "format": "binary", "description": "The document."}, **schema["properties"],
    }  # fmt: skip
    schema["required"] = ["file", *schema.get("required", ())]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def no_json(why: object) -> str:
    """What is said of a body that cannot be read."""
    return f"the body is no valid JSON in UTF-8: {str(why)[:200]}"


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise MalformedError(no_json(error)) from None
    if not isinstance(found, dict):
        raise MalformedError("the body must be a JSON object")
    return found


def _fields(asked: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Names and values as fields; one that is given several times is a list."""
    found: dict[str, list[str]] = {}
    for name, value in asked:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _of_characters(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise must("have no unpaired surrogate, which is no character")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise must("have 1 or more characters that are no spaces")
    return text


def _several(texts: Any) -> Any:
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise must("be a text or a list of texts")
    return [_of_characters(text) for text in texts]


def _lower(word: Any) -> Any:
    return word.lower() if isinstance(word, str) else word


Text = Annotated[str, AfterValidator(_of_characters)]
"""Field of a request that is one text."""

FullText = Annotated[Text, Field(min_length=1), AfterValidator(_not_blank)]
"""The same, not blank."""

Texts = Annotated[str | list[str], BeforeValidator(_several)]
"""Field that is a text or a list of texts; once it is read, always a list."""

AnyCase = BeforeValidator(_lower)
"""For a field whose words may be written in capitals."""

Columns = Annotated[
    Texts,
    Field(description="Heading of a column to translate, of a .csv or .tsv; may be given several times."),
]

M = TypeVar("M", bound=BaseModel)


def read(declared: type[M], fields: Mapping[str, Any]) -> M:
    """Return the fields of a request as they are declared; a field that is null is as if it were not there.

    Raises:
        MalformedError: A field is missing, or its value impossible.
    """
    try:
        return declared.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise MalformedError(refusals(error.errors(include_url=False), unknown_field)) from None


def unknown_field(path: Sequence[str]) -> str:
    """Return the refusal of a field that a request may not have."""
    return f"unknown field {'.'.join(path)}: leave it out"


async def translate_markup(
    service: Service, texts: Sequence[str], pair: Pair, options: TranslateOptions, kind: markup.Kind,
    **elements: Any,
) -> list[tuple[str, list[Answer]]]:  # fmt: skip
    """Translate texts with tags, which keep their number, order and bytes.

    Returns:
        Each text, and the answers for its units.
    """
    documents = [markup.parse(text, kind, **elements) for text in texts]
    units = [[unit for unit in units_of(parts) if unit.plain] for parts in documents]
    has_tags = any(unit.tags for own in units for unit in own)
    plain = [unit.plain for own in units for unit in own]
    options = service.aligned(pair, options) if has_tags else options
    answers = await service.translate(plain, pair, options)
    found = Translations(
        {text: answer.lines[0] for text, answer in zip(plain, answers, strict=True)},
        is_unspaced(pair.src), is_unspaced(pair.tgt),
    )  # fmt: skip
    in_order = iter(answers)
    return [(write(parts, found), [next(in_order) for _ in own]) for parts, own in zip(documents, units, strict=True)]


def plain_text(text: str, kind: markup.Kind) -> str:
    """What a text with tags says, for telling its language."""
    return " ".join(unit.plain for unit in units_of(markup.parse(text, kind)))


def key_of(request: Request, fields: Mapping[str, Any] | None = None) -> str:
    """The API key that a request brings, in a header or a field; "" if none."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key") and key.strip():
        return key.strip()
    given = request.headers.get("x-api-key") or (fields or {}).get("api_key") or (fields or {}).get("auth_key")
    return given if isinstance(given, str) else ""


def check_key(request: Request, fields: Mapping[str, Any] | None, *, missing: int, wrong: int) -> None:
    """Let a request pass, or not; the statuses are those that the clients of each API understand.

    Raises:
        DeniedError: It has no key, or a wrong one.
    """
    keys = state_of(request).keys
    if keys is None:
        return
    key = key_of(request, fields)
    if not key:
        raise DeniedError("an API key is required", missing)
    if keys.owner(key) is None:
        raise DeniedError("this API key is not known", wrong)
