"""XML checked by lxml, then cut into tokens of its own source text, so that untranslated source keeps its bytes."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.documents.document import DocumentInfo, Text, decode
from dragoman.errors import ConfigError, DataError, not_installed, parsing

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>",
    re.DOTALL,
)
_DECLARED = re.compile(rb"^\s*<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)")
_DOCTYPE = re.compile(
    r"\s*+(?:(?:<\?.*?\?>|<!--.*?-->)\s*+)*+<!DOCTYPE(?:[^\[>\"']++|\"[^\"]*+\"|'[^']*+')*+(\[)?", re.DOTALL
)
NO_MEMORY = 2
"""libxml2's code of the error XML_ERR_NO_MEMORY."""

_NAME = re.compile(r"</?([^\s/>]+)")
_NAMESPACE = re.compile(r"\sxmlns(?::([\w.-]+))?\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ATTRIBUTE = re.compile(r"\s([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


@dataclass(frozen=True)
class Token:
    """A tag, a comment, or the text between two of them."""

    source: str
    kind: Literal["open", "close", "empty", "text", "other"]
    name: str = ""  # element name with the usual prefix of its namespace, whichever prefix the file uses

    @property
    def text(self) -> str:
        """Text of a text token, with its entities resolved."""
        return self.source[9:-3] if self.source.startswith("<![CDATA[") else html.unescape(self.source)

    def get(self, name: str) -> str | None:
        """Return the value of an attribute of the tag; None if it has no such attribute."""
        return next(
            (html.unescape(own or other) for key, own, other in _ATTRIBUTE.findall(self.source) if key == name), None
        )


def check(data: bytes, info: DocumentInfo) -> Text:
    """Check that the bytes are well-formed XML without declarations in a DOCTYPE, and return their text.

    A DOCTYPE that only names a file is let through; the file is never read.

    Raises:
        DataError: The XML is not well-formed, or declares anything: entities could exhaust memory or read other files.
        ConfigError: lxml is not installed.
    """
    declared = _DECLARED.search(data[:200])
    text = decode(data, info, declared[1].decode() if declared else None)
    doctype = _DOCTYPE.match(text.text)
    if doctype is not None and doctype[1]:
        raise DataError(f"{info.name}: declares entities in its DOCTYPE, which is unsafe: remove its part in brackets")
    etree = _lxml()
    with parsing(info.name, "XML"):
        try:
            etree.fromstring(
                data, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
            )
        except etree.XMLSyntaxError as error:
            if error.code == NO_MEMORY:
                raise MemoryError from None
            raise DataError(f"{info.name}: not well-formed XML: {error.msg}") from None
    return text


def _lxml() -> Any:
    """Return the module ``lxml.etree``."""
    try:
        from lxml import etree
    except ImportError:
        raise ConfigError(not_installed("reading XML", "lxml")) from None
    return etree


def tokens(text: str, prefixes: dict[str, str]) -> list[Token]:
    """Cut well-formed XML into tokens; joined, their sources are the text again.

    Args:
        prefixes: The usual prefix of each namespace; names in other namespaces keep the prefix of the file.
    """
    usual_prefix = {match[1] or "": prefixes.get(match[2] or match[3]) for match in _NAMESPACE.finditer(text)}
    result, at = [], 0
    for match in _TOKEN.finditer(text):
        if match.start() > at:
            result.append(Token(text[at : match.start()], "text"))
        at = match.end()
        source = match[0]
        if source.startswith("<![CDATA["):
            result.append(Token(source, "text"))
        elif source.startswith(("<!", "<?")):
            result.append(Token(source, "other"))
        else:
            named = _NAME.match(source)
            prefix, _, local = (named[1] if named else "").rpartition(":")
            usual = usual_prefix.get(prefix)
            name = f"{prefix}:{local}" if usual is None and prefix else f"{usual}:{local}" if usual else local
            kind: Any = "close" if source.startswith("</") else "empty" if source.endswith("/>") else "open"
            result.append(Token(source, kind, name))
    if at < len(text):
        result.append(Token(text[at:], "text"))
    return result


def with_attribute(tag: str, name: str, value: str) -> str:
    """Return the source of an opening or empty tag with an attribute set."""
    old = next((match for match in _ATTRIBUTE.finditer(tag) if match[1] == name), None)
    tag = tag if old is None else tag[: old.start()] + tag[old.end() :]
    end = -2 if tag.endswith("/>") else -1
    return f'{tag[:end].rstrip()} {name}="{html.escape(value)}"{tag[end:]}'


def closing_tags(tokens: list[Token]) -> dict[int, int]:
    """Return for the index of each opening tag the index of the tag that closes it."""
    still_open, closing = [], {}
    for i, token in enumerate(tokens):
        if token.kind == "open":
            still_open.append(i)
        elif token.kind == "close":
            closing[still_open.pop()] = i
    return closing
