"""The page of the HTTP API at ``/docs``, made from the OpenAPI document: routes, fields, answers, and forms to try it.

It loads nothing from elsewhere, unlike the pages that FastAPI has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse

from dragoman.pages.render import render
from dragoman.serving.pages import with_policy

router = APIRouter(tags=["pages"], default_response_class=HTMLResponse)

EXAMPLES: Mapping[str, Any] = {
    "text": "The dog sleeps.", "q": "The dog sleeps.", "name": "animals", "entries": "dog\tHund", "document_key": "KEY",
}  # fmt: skip
"""Values of required fields in the forms; languages are those that are served."""


@router.get("/docs", summary="Page of this API")
async def api_page(request: Request) -> HTMLResponse:
    """Return the page that shows every route of this server, with a form to try it."""
    return with_policy(_page(request.app))


@dataclass(frozen=True)
class Field:
    """Field of a request, or a parameter of its path or query."""

    name: str
    place: str
    kind: str
    is_required: bool
    about: str


@dataclass(frozen=True)
class Operation:
    """Method of a route."""

    method: str
    path: str
    summary: str
    description: str
    fields: list[Field]
    bodies: list[str]  # content types
    answers: list[str]
    target: str  # path and query to try
    example: str  # JSON to try; "" without a body
    is_upload: bool

    @property
    def curl(self) -> str:
        """Command that uploads a file to this route."""
        given = " ".join(f"-F {field.name}=de" for field in self.fields if field.is_required and field.name != "file")
        return f"curl -F file=@letter.docx {given} http://127.0.0.1:5000{self.path}"


@cache
def _page(app: FastAPI) -> str:
    spec = app.openapi()
    groups: dict[str, list[Operation]] = {}
    errors: dict[str, str] = {}
    for path, operations in spec["paths"].items():
        for method, about in operations.items():
            groups.setdefault(about["tags"][0], []).append(_operation(method.upper(), path, about, spec))
            errors |= {code: own["description"] for code, own in about["responses"].items() if int(code) >= 400}
    return render(
        "api.html", about=spec["info"]["description"], version=spec["info"]["version"],
        groups=[{"name": name, "operations": own} for name, own in groups.items()], errors=sorted(errors.items()),
    )  # fmt: skip


def _operation(method: str, path: str, about: Mapping[str, Any], spec: Mapping[str, Any]) -> Operation:
    content = about.get("requestBody", {}).get("content", {})
    schema = _resolved(next(iter(content.values()))["schema"], spec) if content else {}
    required = schema.get("required", ())
    parameters = about.get("parameters", ())
    fields = [
        Field(own["name"], own["in"], _kind(own["schema"], spec), own["required"], own.get("description", ""))
        for own in parameters
    ]
    fields += [
        Field(name, "body", _kind(own, spec), name in required, _resolved(own, spec).get("description", ""))
        for name, own in schema.get("properties", {}).items()
    ]
    query = "&".join(
        f"{own['name']}={_example(own['name'], own['schema'], spec)}" for own in parameters
        if own["in"] == "query" and own["required"]
    )  # fmt: skip
    example = ""
    if "application/json" in content:
        values = {name: _example(name, schema["properties"][name], spec) for name in required}
        example = json.dumps(values, ensure_ascii=False, indent=2)
    return Operation(
        method, path, about["summary"], re.sub(r"\s+", " ", about.get("description", "")), fields, list(content),
        [f"{code} {', '.join(own.get('content', {})) or 'without a body'}" for code, own in about["responses"].items()
         if int(code) < 400],
        path + (f"?{query}" if query else ""), example, "multipart/form-data" in content,
    )  # fmt: skip


def _resolved(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return spec["components"]["schemas"][name] if name else schema


def _kind(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Return the type of a field in words, with its choices and limits."""
    return ", ".join(dict.fromkeys(_kinds(_resolved(schema, spec), spec))) or "anything"


def _kinds(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    for own in schema.get("anyOf", ()):
        yield from _kinds(_resolved(own, spec), spec)
    if "enum" in schema:
        yield " or ".join(str(choice) or '""' for choice in schema["enum"])
    elif schema.get("type") == "array":
        yield f"list of {_kind(schema.get('items', {}), spec)}"
    elif schema.get("type") not in (None, "null"):
        kind = "file" if schema.get("format") == "binary" else _NAMES.get(schema["type"], schema["type"])
        limits = [f"{words} {schema[name]:g}" for name, words in _LIMITS.items() if name in schema]
        yield " ".join([kind, *limits])


_NAMES = {"string": "text", "integer": "whole number", "boolean": "true or false"}
_LIMITS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}


def _example(name: str, schema: Mapping[str, Any], spec: Mapping[str, Any]) -> Any:
    schema = _resolved(schema, spec)
    if name in EXAMPLES:
        return EXAMPLES[name]
    if schema.get("examples"):
        return next(code for code in schema["examples"] if code != "auto")
    if schema.get("type") == "array":
        own = _resolved(schema["items"], spec)
        return [{part: _example(part, own["properties"][part], spec) for part in own.get("required", ())}]
    return "en" if name.startswith("source") else "de" if name.startswith("target") else ""
