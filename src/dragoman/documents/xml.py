"""XML as its own text: checked by lxml, then cut into tokens, so that what is not translated keeps its bytes."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.documents.document import Asked, Text, decode
from dragoman.errors import ConfigError, DataError, not_installed

_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<[^>\"']*(?:\"[^\"]*\"[^>\"']*|'[^']*'[^>\"']*)*>", re.DOTALL
)
_DECLARED = re.compile(rb"^\s*<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)")
_DOCTYPE = re.compile(r"\s*(?:<\?.*?\?>|<!--.*?-->|\s)*<!DOCTYPE", re.DOTALL)
_NAME = re.compile(r"</?([^\s/>]+)")
_NAMESPACE = re.compile(r"\sxmlns(?::([\w.-]+))?\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ATTRIBUTE = re.compile(r"\s([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


@dataclass(frozen=True)
class Token:
    """A tag, or text between two of them."""

    source: str
    kind: Literal["open", "close", "empty", "text", "other"]
    name: str = ""  # with the usual prefix of its namespace, whatever the file's is

    @property
    def text(self) -> str:
        """What text says."""
        return self.source[9:-3] if self.source.startswith("<![CDATA[") else html.unescape(self.source)

    def get(self, name: str) -> str | None:
        """An attribute."""
        return next(
            (html.unescape(own or other) for key, own, other in _ATTRIBUTE.findall(self.source) if key == name), None
        )


def check(data: bytes, asked: Asked) -> Text:
    """The text of an XML file.

    Raises:
        DataError: It is not well-formed, or has a DOCTYPE: entities could be a bomb, or name other files.
        ConfigError: lxml is not installed.
    """
    declared = _DECLARED.search(data[:200])
    text = decode(data, asked, declared[1].decode() if declared else None)
    if _DOCTYPE.match(text.text):
        raise DataError(f"{asked.name}: has a DOCTYPE, which could define entities: such files are refused")
    etree = _lxml()
    try:
        etree.fromstring(
            data, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
        )
    except etree.XMLSyntaxError as error:
        raise DataError(f"{asked.name}: not well-formed XML: {error.msg}") from None
    return text


def _lxml() -> Any:
    try:
        from lxml import etree
    except ImportError:
        raise ConfigError(not_installed("reading XML", "lxml")) from None
    return etree


def tokens(text: str, prefixes: dict[str, str]) -> list[Token]:
    """The tokens of well-formed XML.

    Args:
        prefixes: Of namespaces; names in others keep the prefix of the file.
    """
    own = {match[1] or "": prefixes.get(match[2] or match[3]) for match in _NAMESPACE.finditer(text)}
    found, at = [], 0
    for match in _TOKEN.finditer(text):
        if match.start() > at:
            found.append(Token(text[at : match.start()], "text"))
        at = match.end()
        source = match[0]
        if source.startswith("<![CDATA["):
            found.append(Token(source, "text"))
        elif source.startswith(("<!", "<?")):
            found.append(Token(source, "other"))
        else:
            named = _NAME.match(source)
            prefix, _, local = (named[1] if named else "").rpartition(":")
            usual = own.get(prefix)
            name = f"{prefix}:{local}" if usual is None and prefix else f"{usual}:{local}" if usual else local
            kind: Any = "close" if source.startswith("</") else "empty" if source.endswith("/>") else "open"
            found.append(Token(source, kind, name))
    if at < len(text):
        found.append(Token(text[at:], "text"))
    return found


def ends(found: list[Token]) -> dict[int, int]:
    """For each opening token where its closing one is."""
    open_, closing = [], {}
    for i, token in enumerate(found):
        if token.kind == "open":
            open_.append(i)
        elif token.kind == "close":
            closing[open_.pop()] = i
    return closing
