"""Parts of an OOXML package: the main one, those with text, the properties, and the data that content controls show.

A control that is bound to data shows the data's own text as soon as the file is opened, so both are translated.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping

from dragoman.documents.document import Text, Untranslated
from dragoman.documents.office.grammars import OOXML
from dragoman.documents.units import Part, Unit
from dragoman.documents.xml import Token, closing_tags, tokens
from dragoman.translation.keeping.protected import has_letters

CORE_PROPERTIES = "docProps/core.xml"
CONTENT_TYPES = "[Content_Types].xml"
RELATIONSHIPS = "_rels/.rels"

_STORES = {
    "{6C3C8BC8-F283-45AE-878A-BAB7291924A1}": CORE_PROPERTIES,
    "{6668398D-A668-4E3E-A5EB-62B293D839F1}": "docProps/app.xml",
}
"""Parts that a control can be bound to by a fixed identifier."""

_WITH_TEXT = re.compile(r"wordprocessingml|presentationml|drawingml|ms-office\.chartex|ms-powerpoint|ms-word")
_NO_TEXT = re.compile(r"\.(?:theme|settings|fontTable|webSettings|styles|numbering|tableStyles)\+xml")
_STEP = re.compile(r"/(?:[\w.-]+:)?([\w.-]+)(?:\[(\d{1,6})\])?")
_OF_CHOICE = frozenset(["w:dropDownList", "w:comboBox", "w:date", "w:picture", "w:docPartList", "w:docPartObj"])
"""Controls whose data is not their text: the value of a choice, a date, a picture."""

_SHOWN_PROPERTIES = frozenset(["title", "subject"])
_EMBEDDED = (
    ".docx", ".docm", ".doc", ".pptx", ".pptm", ".ppt", ".odt", ".odp", ".xlsx", ".xlsm", ".xlsb", ".xls", ".rtf",
    ".pdf", ".htm", ".html", ".mht",
)  # fmt: skip
_IN_THE_TEXT = (".htm", ".html", ".mht", ".rtf")
"""Suffixes of embedded documents, and of those that stand in the text wherever they are in the package."""


def main_part(relationships: str) -> str:
    """Return the main part that the relationships of a package name; "" if they name none."""
    for token in tokens(relationships, {}):
        if token.name.endswith("Relationship") and (token.get("Type") or "").endswith("/officeDocument"):
            return posixpath.normpath((token.get("Target") or "").lstrip("/"))
    return ""


def parts_with_text(content_types: str) -> Iterator[str]:
    """Yield the parts that may hold text, by their content types."""
    for token in tokens(content_types, {}):
        kind = token.get("ContentType") or ""
        is_listed = token.name.endswith("Override") and kind.endswith("+xml")
        if is_listed and _WITH_TEXT.search(kind) and not _NO_TEXT.search(kind):
            yield (token.get("PartName") or "").lstrip("/")


def embedded(names: Collection[str]) -> list[Untranslated]:
    """Return the embedded documents of a package, which stay as they are."""
    return [
        Untranslated(name, "an embedded document is not translated")
        for name in names
        if name.lower().endswith(_EMBEDDED if "embeddings/" in name else _IN_THE_TEXT)
    ]


def properties(text: str, translated: Collection[str] = ()) -> list[Untranslated]:
    """Return the title and the subject in a document's properties, but for texts that are translated."""
    left, name = [], ""
    for token in tokens(text, {}):
        name = token.name.rpartition(":")[2] if token.kind == "open" else name
        words = " ".join(token.text.split()) if token.kind == "text" else ""
        if name in _SHOWN_PROPERTIES and words not in translated and has_letters(words):
            left.append(Untranslated(words, f"the {name} in the document's properties"))
    return left


def bound_data(
    documents: Mapping[str, Text], stores: Mapping[str, Text]
) -> tuple[dict[str, list[Part]], list[Untranslated]]:  # fmt: skip
    """Return the parts of the data that controls show, by member, and the texts that cannot be reached.

    Args:
        documents: Members with text.
        stores: Properties, and the members below ``customXml``.
    """
    member_of = _STORES | _custom_stores(stores)
    places: dict[str, set[tuple[int, int]]] = {}
    cut: dict[str, list[Token]] = {}
    left = []
    for identifier, path in dict.fromkeys(_bindings(documents.values())):
        member = member_of.get(identifier.upper(), "")
        if member not in stores:
            continue  # the control shows its own text
        if member not in cut:
            cut[member] = tokens(stores[member].text, {})
        place = _resolved(cut[member], path)
        if place is None:
            left.append(Untranslated(path, "a control shows this data, which is not translated"))
        elif place[0] < place[1]:
            places.setdefault(member, set()).add(place)
    return {member: _parts(cut[member], sorted(spans)) for member, spans in places.items()}, left


def _bindings(documents: Collection[Text]) -> Iterator[tuple[str, str]]:
    """Yield the store and the path that each control with text is bound to."""
    for document in documents:
        if "dataBinding" not in document.text:
            continue
        all_tokens = tokens(document.text, dict(OOXML.namespaces))
        closing = closing_tags(all_tokens)
        for i, token in enumerate(all_tokens):
            if token.name == "w:sdtPr" and token.kind == "open":
                about = all_tokens[i : closing[i]]
                if any(own.name in _OF_CHOICE or own.name.endswith(":checkbox") for own in about):
                    continue
                for own in about:
                    if own.name.rpartition(":")[2] == "dataBinding":
                        values = {key: own.get(f"w:{key}") or own.get(key) or "" for key in ("storeItemID", "xpath")}
                        yield values["storeItemID"], values["xpath"]


def _custom_stores(stores: Mapping[str, Text]) -> dict[str, str]:
    """Return the members below ``customXml`` by their identifiers."""
    result: dict[str, str] = {}
    for name, text in stores.items():
        if not name.endswith(".rels"):
            continue
        folder, file = posixpath.split(name.removesuffix(".rels"))
        member = posixpath.join(posixpath.dirname(folder), file)
        for token in tokens(text.text, {}):
            about = posixpath.join(posixpath.dirname(member), token.get("Target") or "")
            if about in stores:
                identifiers = (own.get("ds:itemID") for own in tokens(stores[about].text, {}))
                result |= {identifier.upper(): member for identifier in identifiers if identifier}
    return result


def _resolved(member: list[Token], path: str) -> tuple[int, int] | None:
    """Return the tokens of the text that a path such as ``/a[1]/b[2]`` leads to.

    Returns:
        None if the path has other steps, or leads to no element or to one with elements inside.
    """
    steps = list(_STEP.finditer(path))
    if not steps or "".join(step[0] for step in steps) != path:
        return None
    closing = closing_tags(member)
    at, end = 0, len(member)
    for step in steps:
        wanted = int(step[2] or 1)
        while at < end:
            token = member[at]
            is_element = token.kind in ("open", "empty")
            wanted -= is_element and token.name.rpartition(":")[2] == step[1]
            if not wanted:
                break
            at = closing[at] + 1 if token.kind == "open" else at + 1
        if at >= end:
            return None
        if member[at].kind == "empty":
            return at, at
        at, end = at + 1, closing[at]
    return (at, end) if all(token.kind == "text" for token in member[at:end]) else None


def _parts(member: list[Token], spans: list[tuple[int, int]]) -> list[Part]:
    """Return a member as parts, with a unit for each span of its tokens."""
    parts: list[Part] = []
    at = 0
    for start, end in spans:
        source = "".join(token.source for token in member[start:end])
        text = "".join(token.text for token in member[start:end])
        parts += ["".join(token.source for token in member[at:start]), Unit(text, raw=[source])]
        at = end
    return [*parts, "".join(token.source for token in member[at:])]
