"""The front matter of Markdown: YAML between ``---``, TOML between ``+++``, or a JSON object.

Site generators show some of its texts. They are units of their own if ``DocumentOptions.front_matter`` is set.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator

import yaml

from dragoman.documents.document import Untranslated
from dragoman.documents.units import Part, Unit

TEXTS = (
    "title", "description", "summary", "subtitle", "excerpt", "tagline", "linkTitle", "sidebar_label",
    "pagination_label", "nav_title",
)  # fmt: skip
"""Keys whose values site generators show as text."""

MOST_CHARACTERS = 200_000
"""Largest front matter of which texts are translated, in characters."""

_KEYS = "|".join(TEXTS)
_YAML = re.compile(rf"^[\"']?({_KEYS})[\"']?:[ \t]++(\S[^\r\n]*+)\r?$", re.MULTILINE)
_TOML = re.compile(rf"^[\"']?({_KEYS})[\"']?[ \t]*+=[ \t]*+(\S[^\r\n]*+)\r?$", re.MULTILINE)
_JSON_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|\\.|[{}\[\]:,]")
_YAML_END = re.compile(r"^(?:---|\.\.\.)[^\S\n]*$", re.MULTILINE)
_TOML_END = re.compile(r"^\+\+\+[^\S\n]*$", re.MULTILINE)
_BASIC = re.compile(r"\"(?:[^\"\\]|\\.)*+\"")
_SINGLE = re.compile(r"'(?:[^']|'')*+'")
_LITERAL = re.compile(r"'[^']*'")
_COMMENT = re.compile(r"[ \t]#.*\Z")
_BLOCK = re.compile(r"([>|])([+-]?[1-9]?[+-]?)\Z")
_MORE = re.compile(r"\r?\n[ \t]+\S")


def end_of(source: str) -> int:
    """Return the number of characters of a text's front matter, with the line end behind it; 0 without one."""
    first_line = source.split("\n", 1)[0].strip()
    if first_line in ("---", "+++"):
        closing = _YAML_END if first_line == "---" else _TOML_END
        match = closing.search(source, source.find("\n") + 1) if "\n" in source else None
        return 0 if match is None else min(match.end() + 1, len(source))
    if first_line.startswith("{") and not first_line.startswith(("{{", "{%", "{:", "{#", "{/")):
        try:
            made, end = json.JSONDecoder().raw_decode(source)
        except (ValueError, RecursionError):
            return 0
        rest = source[end:].split("\n", 1)[0]
        return min(end + len(rest) + 1, len(source)) if isinstance(made, dict) and not rest.strip() else 0
    return 0


def parts_of(source: str, left: list[Untranslated]) -> list[Part]:
    """Return front matter as parts with a unit for each of its texts; those that cannot be followed go to ``left``."""
    kind = source[:1]
    if len(source) > MOST_CHARACTERS:
        left.append(Untranslated(source[:60], f"front matter of more than {MOST_CHARACTERS:,} characters"))
        return [source]
    values = {"-": _yaml_values, "+": _toml_values, "{": _json_values}[kind](source)
    parts: list[Part] = []
    at = 0
    for start, end, read, quote in values:
        written = source[start:end]
        text = read(written)
        if text is None:
            left.append(Untranslated(written, "its front matter could not be followed"))
        elif text and "{{" not in text and "{%" not in text:
            parts += [source[at:start], Unit(text, raw=[written], escape=quote)]
            at = end
    return [*parts, source[at:]]


Value = tuple[int, int, Callable[[str], str | None], Callable[[str], str]]
"""The place of a value with its quotes, and functions that read it and that write a text as such a value."""


def _yaml_values(source: str) -> Iterator[Value]:
    for match in _YAML.finditer(source):
        start, value = match.start(2), match[2].rstrip(" \t")
        closing = {'"': _BASIC, "'": _SINGLE}[value[0]].match(value) if value[0] in "\"'" else None
        behind = value[closing.end() :] if closing is not None else ""
        if closing is not None and behind[:1] in " \t" and behind.lstrip(" \t").startswith("#"):
            value = closing[0]
        elif value[0] not in "\"'":
            value = _COMMENT.sub("", value).rstrip()
        if _BLOCK.match(value):
            yield _block_value(source, match.end(), value[0])
        elif value[0] in "&*!%@`[{#|>":
            continue
        elif _MORE.match(source, match.end()):
            yield start, start + len(value), lambda text: None, str
        else:
            yield start, start + len(value), _read_yaml, _yaml_like(value[0])


def _block_value(source: str, at: int, style: str) -> Value:
    """Return the value of a text on the indented lines below its key."""
    lines = re.compile(r"(?:\r?\n(?:[ \t]+[^\r\n]*|(?=\r?\n)))*").match(source, at)
    text = lines[0].rstrip() if lines else ""
    indent = re.match(r"\s*", text)
    start, end = at + (len(indent[0]) if indent else 0), at + len(text)
    one_paragraph = "\n\n" not in text.replace("\r", "") and (style == ">" or source.find("\n", start, end) < 0)
    return start, end, (lambda written: " ".join(written.split()) if one_paragraph else None), str


def _read_yaml(written: str) -> str | None:
    """Return the text that a value stands for; "" if it is no text, such as a number, and None if it is not YAML."""
    try:
        node = yaml.compose(written, yaml.SafeLoader)  # no data are made, so aliases take no memory
    except _NOT_YAML:
        return None
    return _text_of(node) or ""


_NOT_YAML = (yaml.YAMLError, ValueError, RecursionError)


def _text_of(node: yaml.Node | None) -> str | None:
    """Return the text of a node; None if it is no text."""
    is_text = isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str"
    return str(node.value) if node is not None and is_text else None


def _yaml_like(sign: str) -> Callable[[str], str]:
    """Return a function that writes a text in the style of a value that begins with ``sign``."""

    def quoted(text: str) -> str:
        if sign == "'":
            return "'" + text.replace("'", "''") + "'"
        if sign != '"' and _is_plain(text):
            return text
        return json.dumps(text, ensure_ascii=False)

    return quoted


def _is_plain(text: str) -> bool:
    """True if YAML reads a text without quotes as this text."""
    try:
        node = yaml.compose(f"k: {text}\n", yaml.SafeLoader)
    except _NOT_YAML:
        return False
    if not isinstance(node, yaml.MappingNode) or len(node.value) != 1:
        return False
    ((_, value),) = node.value
    return _text_of(value) == text


def _toml_values(source: str) -> Iterator[Value]:
    table = re.compile(r"^[ \t]*\[", re.MULTILINE).search(source)
    for match in _TOML.finditer(source, 0, table.start() if table else len(source)):
        start, value = match.start(2), match[2].rstrip(" \t")
        if value.startswith(('"""', "'''")):
            yield start, start + len(value), lambda text: None, str
        elif value[0] in "\"'":
            closing = _BASIC.match(value) if value[0] == '"' else _LITERAL.match(value)
            if closing:
                yield start, start + closing.end(), _read_toml, _toml_like(value[0])


def _read_toml(written: str) -> str | None:
    try:
        return str(tomllib.loads(f"k = {written}")["k"])
    except tomllib.TOMLDecodeError:
        return None


def _toml_like(sign: str) -> Callable[[str], str]:
    def quoted(text: str) -> str:
        return f"'{text}'" if sign == "'" and "'" not in text else json.dumps(text, ensure_ascii=False)

    return quoted


def _json_values(source: str) -> Iterator[Value]:
    depth, key, after = 0, "", ""
    for match in _JSON_TOKEN.finditer(source):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
        elif token.startswith('"') and depth == 1:
            if after == ":" and key in TEXTS:
                yield match.start(), match.end(), json.loads, lambda text: json.dumps(text, ensure_ascii=False)
            key = token[1:-1]
        after = token
