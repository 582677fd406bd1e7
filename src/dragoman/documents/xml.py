"""XML checked by lxml, then cut into tokens of its own source text, so that untranslated source keeps its bytes."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.documents.document import DocumentInfo, Text, decode
from dragoman.errors import ConfigError, DataError, not_installed, parsing

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<!DOCTYPE(?:[^<>\"'\[]++|\"[^\"]*+\"|'[^']*+')*+>"
    r"|<(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>",
    re.DOTALL,
)
"""A comment, CDATA, an instruction, a DOCTYPE without declarations, whose addresses may have any sign, or a tag."""
_DECLARED = re.compile(rb"^\s*<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)")
_DOCTYPE = re.compile(
    r"\s*+(?:(?:<\?.*?\?>|<!--.*?-->)\s*+)*+<!DOCTYPE(?:[^\[>\"']++|\"[^\"]*+\"|'[^']*+')*+(\[)?", re.DOTALL
)
NO_MEMORY = 2
"""libxml2's code of the error XML_ERR_NO_MEMORY."""

_NAME = re.compile(r"</?([^\s/>]+)")
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]++)|#([0-9]++)|\w++);")
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
        return self.source[9:-3] if self.source.startswith("<![CDATA[") else unescape(self.source)

    def get(self, name: str) -> str | None:
        """Return the value of an attribute of the tag; None if it has no such attribute.

        A file may have another prefix for the namespace of ``name`` than the usual one.
        """
        attributes = {key: own or other for key, own, other in reversed(_ATTRIBUTE.findall(self.source))}
        prefix, _, local = name.rpartition(":")
        if name not in attributes and prefix not in ("", "xml", "xmlns"):
            renamed = (key for key in attributes if key.partition(":")[2] == local and not key.startswith("xmlns:"))
            name = next(renamed, name)
        value = attributes.get(name)
        return None if value is None else unescape(value)


def unescape(text: str) -> str:
    """Return a text with its references resolved; of those by number, HTML takes some for other characters."""
    if "&#" not in text:
        return html.unescape(text)
    return _REFERENCE.sub(lambda match: _referenced(match[0], match[1] or "", match[2] or ""), text)


def _referenced(reference: str, hexadecimal: str, decimal: str) -> str:
    if not hexadecimal + decimal:
        return html.unescape(reference)
    return chr(int(hexadecimal, 16) if hexadecimal else int(decimal))


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

    ``<a></a>`` is one empty token, as ``<a/>`` is: to XML they are the same.

    Args:
        prefixes: The usual prefix of each namespace. A name in another namespace keeps the prefix of the file, with a
            question mark before it if that is the usual prefix of one of these.
    """
    scopes: list[dict[str, str | None]] = [{}]  # usual prefix of each declared one, in each open element
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
            kind: Any = "close" if source.startswith("</") else "empty" if source.endswith("/>") else "open"
            scope = scopes[-1] if kind == "close" else _scope(source, scopes[-1], prefixes)
            if kind == "close" and result and result[-1].kind == "open":
                result[-1] = Token(result[-1].source + source, "empty", result[-1].name)
            else:
                result.append(Token(source, kind, _name_in(source, scope, prefixes)))
            if kind == "open":
                scopes.append(scope)
            elif kind == "close":
                scopes.pop()
    if at < len(text):
        result.append(Token(text[at:], "text"))
    return result


def root_of(tokens: Iterable[Token], info: DocumentInfo) -> Token:
    """Return the tag of the outermost element.

    Raises:
        DataError: There is none.
    """
    root = next((token for token in tokens if token.kind in ("open", "empty")), None)
    if root is None:
        raise DataError(f"{info.name}: has no element that can be read: convert the file to UTF-8 first")
    return root


def root_namespace(text: str) -> str:
    """Return the namespace of the outermost element of well-formed XML; "" if it has none."""
    tags = (match[0] for match in _TOKEN.finditer(text))
    root = next((tag for tag in tags if not tag.startswith(("<!", "<?"))), "")
    prefix = _name_in(root, {}, {}).rpartition(":")[0]
    return Token(root, "open").get(f"xmlns:{prefix}" if prefix else "xmlns") or ""


def _scope(tag: str, outer: dict[str, str | None], prefixes: dict[str, str]) -> dict[str, str | None]:
    """Return the usual prefix of each prefix that is declared in a tag or around it."""
    if "xmlns" not in tag:
        return outer
    own = {
        name.removeprefix("xmlns").removeprefix(":"): prefixes.get(unescape(value or other))
        for name, value, other in _ATTRIBUTE.findall(tag)
        if name == "xmlns" or name.startswith("xmlns:")
    }
    return {**outer, **own} if own else outer


def _name_in(tag: str, scope: dict[str, str | None], prefixes: dict[str, str]) -> str:
    named = _NAME.match(tag)
    prefix, _, local = (named[1] if named else "").rpartition(":")
    usual = scope.get(prefix)
    if usual is not None:
        return f"{usual}:{local}" if usual else local
    own = f"{prefix}:{local}" if prefix else local
    return f"?{own}" if prefix in scope and prefix in prefixes.values() else own


def with_attribute(tag: str, name: str, value: str) -> str:
    """Return the source of an opening tag or of an empty element with an attribute set."""
    tag, mark, closing = tag.partition("</")
    old = next((match for match in _ATTRIBUTE.finditer(tag) if match[1] == name), None)
    tag = tag if old is None else tag[: old.start()] + tag[old.end() :]
    end = -2 if tag.endswith("/>") else -1
    return f'{tag[:end].rstrip()} {name}="{html.escape(value)}"{tag[end:]}{mark}{closing}'


def opening_tag(token: Token) -> str:
    """Return the tag that opens an element, also where nothing is in it."""
    start = token.source.partition("</")[0]
    return f"{start[:-2].rstrip()}>" if start.endswith("/>") else start


def closing_tags(tokens: list[Token]) -> dict[int, int]:
    """Return for the index of each opening tag the index of the tag that closes it."""
    still_open, closing = [], {}
    for i, token in enumerate(tokens):
        if token.kind == "open":
            still_open.append(i)
        elif token.kind == "close":
            closing[still_open.pop()] = i
    return closing
