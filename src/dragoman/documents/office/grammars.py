"""Grammars of OOXML and OpenDocument: the elements that hold text, and the attributes that people read."""

from __future__ import annotations

from typing import Literal

from dragoman.documents.office.paragraphs import Grammar


def _names(prefix: str, names: str) -> frozenset[str]:
    """Return the element names that a text lists, separated by spaces, each with the prefix."""
    return frozenset(f"{prefix}:{name}" for name in names.split())


def _ranges(key: str, names: str, start: str, end: str) -> dict[str, tuple[Literal["open", "close"], str]]:
    """Return both ends of the ranges with some names, and the attribute that the two ends share."""
    ends: dict[str, tuple[Literal["open", "close"], str]] = {}
    for name in names.split():
        ends |= {name + start: ("open", key), name + end: ("close", key)}
    return ends


_OOXML = "http://schemas.openxmlformats.org"
_STRICT = "http://purl.oclc.org/ooxml"
_CHART = _names("c", "v") | _names("cx", "v pt")
"""Elements with the labels and numbers that a chart shows; its formulas are in other elements."""
OOXML = Grammar(
    namespaces={
        f"{_OOXML}/wordprocessingml/2006/main": "w", f"{_STRICT}/wordprocessingml/main": "w",
        f"{_OOXML}/drawingml/2006/main": "a", f"{_STRICT}/drawingml/main": "a",
        f"{_OOXML}/presentationml/2006/main": "p", f"{_STRICT}/presentationml/main": "p",
        f"{_OOXML}/drawingml/2006/chart": "c", f"{_STRICT}/drawingml/chart": "c",
        "http://schemas.microsoft.com/office/drawing/2014/chartex": "cx",
    },
    paragraphs=frozenset({"w:p", "a:p", "p:text"}) | _CHART,
    inline=_names("w", "hyperlink ins moveTo sdt sdtContent smartTag customXml fldSimple bdo dir"),
    breaks=_names("w", "br tab cr ptab") | {"a:br"},
    dropped=_names("w", "proofErr lastRenderedPageBreak"),
    runs=frozenset({"w:r", "a:r"}),
    direct=frozenset({"p:text"}) | _CHART,
    texts={"w:noBreakHyphen": "\u2011", "w:softHyphen": ""},
    untouched=_names("w", "del moveFrom pPr sdtPr sdtEndPr instrText delText") | {"a:pPr", "a:endParaRPr"},
    ranges=_ranges("w:id", "w:bookmark w:commentRange w:moveToRange w:perm", "Start", "End"),
    shown={
        "docPr": ("descr", "title"), "cNvPr": ("descr", "title"), "hyperlink": ("tooltip",),
        "hlinkClick": ("tooltip",), "hlinkMouseOver": ("tooltip",), "hlinkHover": ("tooltip",),
        "tblCaption": ("val",), "tblDescription": ("val",), "alias": ("val",), "listItem": ("displayText",),
        "listEntry": ("val",), "helpText": ("val",), "statusText": ("val",),
        "default": ("val",), "lvlText": ("val",), "textpath": ("string",),
        "shape": ("alt",), "rect": ("alt",), "roundrect": ("alt",), "oval": ("alt",), "line": ("alt",),
        "polyline": ("alt",), "curve": ("alt",), "arc": ("alt",), "group": ("alt",), "image": ("alt",),
    },
)  # fmt: skip
_REFERENCES = (
    "bookmark-ref reference-ref sequence-ref note-ref chapter title subject keywords description placeholder "
    "conditional-text hidden-text variable-set variable-get variable-input user-field-get user-field-input text-input "
    "database-display expression drop-down"
)
"""Fields that repeat a text of the document: each is a unit, so it is translated as that text."""
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
ODF = Grammar(
    namespaces={f"{_OASIS}:text:1.0": "text", f"{_OASIS}:office:1.0": "office", f"{_OASIS}:drawing:1.0": "draw",
                f"{_OASIS}:svg-compatible:1.0": "svg", "http://purl.org/dc/elements/1.1/": "dc",
                f"{_OASIS}:meta:1.0": "meta", f"{_OASIS}:table:1.0": "table",
                f"{_OASIS}:presentation:1.0": "presentation",
               "urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0": "loext"},
    paragraphs=_names("text", "p h index-title-template index-entry-span " + _REFERENCES)
    | _names("text", "note-continuation-notice-forward note-continuation-notice-backward")
    | _names("svg", "title desc") | _names("table", "title desc")
    | _names("presentation", "header-decl footer-decl date-time-decl"),
    direct=_names("svg", "title desc") | _names("table", "title desc"),
    inline=_names("text", "span a meta meta-field ruby ruby-base") | {"loext:content-control"},
    breaks=_names("text", "tab line-break"),
    dropped=_names("text", "soft-page-break"),
    spaces={"text:s": "text:c"},
    untouched=_names("text", "tracked-changes note-citation"),
    ranges=_ranges("text:name", "text:bookmark text:reference-mark", "-start", "-end")
    | _ranges("text:id", "text:alphabetical-index-mark text:toc-mark text:user-index-mark", "-start", "-end")
    | _ranges("text:change-id", "text:change", "-start", "-end")
    | _ranges("office:name", "office:annotation", "", "-end"),
    facts=_names("dc", "creator date") | _names("meta", "creator-initials date-string")
    | {"loext:sender-initials", "text:sender-initials"},
    shown={
        "a": ("title",), "label": ("value",), "content-control": ("alias",), "list-item": ("display-text",),
        "conditional-text": ("string-value-if-true", "string-value-if-false"), "hidden-text": ("string-value",),
        "placeholder": ("description",), "text-input": ("description",),
        **dict.fromkeys(["user-field-decl", "variable-set", "expression"], ("string-value",)),
        **dict.fromkeys(["toc-mark", "toc-mark-start", "user-index-mark", "user-index-mark-start",
                         "alphabetical-index-mark", "alphabetical-index-mark-start"], ("string-value", "key1", "key2")),
        **dict.fromkeys(["list-level-style-number", "outline-level-style"], ("num-prefix", "num-suffix")),
        **dict.fromkeys(["button", "checkbox", "radio", "fixed-text", "frame", "option", "item"], ("label", "title")),
        **dict.fromkeys(["text", "textarea", "combobox", "listbox"], ("value", "current-value", "title")),
    },
)  # fmt: skip
