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
from dragoman.documents.shortcodes import TWO_WORDS
from dragoman.documents.units import Part, Unit

TEXTS = (
    "title", "description", "summary", "subtitle", "excerpt", "tagline", "linkTitle", "sidebar_label",
    "pagination_label", "nav_title",
)  # fmt: skip
"""Keys whose values site generators show as text."""

MOST_CHARACTERS = 200_000
"""Largest front matter of which texts are translated, in characters."""

_KEYS = "|".join(TEXTS)
_YAML = re.compile(rf"^[\"']?({_KEYS})[\"']?:(?:[ \t]++(\S[^\r\n]*+)|[ \t]*+)\r?$", re.MULTILINE)
_TOML = re.compile(rf"^[\"']?({_KEYS})[\"']?[ \t]*+=[ \t]*+(\S[^\r\n]*+)\r?$", re.MULTILINE)
_JSON_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|\\.|[{}\[\]:,]")
_YAML_END = re.compile(r"^(?:---|\.\.\.)[^\S\n]*$", re.MULTILINE)
_TOML_END = re.compile(r"^\+\+\+[^\S\n]*$", re.MULTILINE)
_COMMENTS = r"(?:[ \t]*+(?:#[^\n]*+)?\r?\n)*+[ \t]*+"
_YAML_KEY = re.compile(_COMMENTS + r"[\w\"'<$@./?][^\n]*?:(?=\s|\Z)")
_TOML_KEY = re.compile(_COMMENTS + r"(?:[\w\"'.-][^\n=]*=|\[)")
_BASIC = re.compile(r"\"(?:[^\"\\]|\\.)*+\"")
_SINGLE = re.compile(r"'(?:[^']|'')*+'")
_LITERAL = re.compile(r"'[^']*'")
_COMMENT = re.compile(r"[ \t]#.*\Z")
_BLOCK = re.compile(r"([>|])([+-]?[1-9]?[+-]?)\Z")
_MORE = re.compile(r"\r?\n[ \t]+\S")
_ANCHOR = re.compile(r"&[^\s,\[\]{}]++[ \t]++(?=\S)")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{%[^{}]*%\}")
_NOT_FOLLOWED = "its front matter could not be followed"


def end_of(source: str) -> int:
    """Return the number of characters of a text's front matter, with the line end behind it; 0 without one."""
    first_line = source.split("\n", 1)[0].rstrip()
    if first_line in ("---", "+++"):
        closing = _YAML_END if first_line == "---" else _TOML_END
        start = source.find("\n") + 1
        match = closing.search(source, start) if start else None
        if match is None:
            return 0
        inside = source[start : match.start()]
        key = _YAML_KEY.match(inside) if first_line == "---" else _TOML_KEY.match(inside)
        if inside.strip() and key is None:
            return 0  # the first line is a thematic break above a text
        return min(match.end() + 1, len(source))
    if first_line.startswith("{") and not first_line.startswith(("{{", "{%", "{:", "{#", "{/")):
        try:
            made, end = json.JSONDecoder().raw_decode(source)
        except (ValueError, RecursionError):
            return 0
        rest = source[end:].split("\n", 1)[0]
        return min(end + len(rest) + 1, len(source)) if isinstance(made, dict) and not rest.strip() else 0
    return 0


def unreadable(source: str) -> list[Untranslated]:
    """Return front matter that is no valid YAML or TOML, and stays; it may be text between two thematic breaks."""
    inside = source.partition("\n")[2].rstrip().removesuffix(source[:3]).removesuffix("...")
    if len(source) > MOST_CHARACTERS or not inside.strip() or source.startswith("{"):
        return []
    try:
        if source.startswith("+"):
            tomllib.loads(inside)
            return []
        if isinstance(yaml.compose(inside, yaml.SafeLoader), yaml.MappingNode):
            return []
    except _NOT_YAML:  # errors of TOML are of ``ValueError`` too
        pass
    return [Untranslated(" ".join(inside.split())[:200], _NOT_FOLLOWED)]


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
        if text and "{{" not in text and "{%" not in text:
            parts += [source[at:start], Unit(text, raw=[written], escape=quote)]
            at = end
        elif text is None or TWO_WORDS.search(_TEMPLATE.sub("", written)):
            left.append(Untranslated(" ".join(written.split()), _NOT_FOLLOWED))
    return [*parts, source[at:]]


Value = tuple[int, int, Callable[[str], str | None], Callable[[str], str]]
"""The place of a value with its quotes, and functions that read it and that write a text as such a value."""


def _yaml_values(source: str) -> Iterator[Value]:
    for match in _YAML.finditer(source):
        if match[2] is None:
            if _MORE.match(source, match.end()):
                yield _value_below(source, match.end())
            continue
        anchor = _ANCHOR.match(match[2])
        start = match.start(2) + (anchor.end() if anchor else 0)
        value = source[start : match.end(2)].rstrip(" \t")
        closing = {'"': _BASIC, "'": _SINGLE}[value[0]].match(value) if value[0] in "\"'" else None
        behind = value[closing.end() :] if closing is not None else ""
        if closing is not None and behind[:1] in " \t" and behind.lstrip(" \t").startswith("#"):
            value = closing[0]
        elif value[0] not in "\"'":
            value = _COMMENT.sub("", value).rstrip()
        if _BLOCK.match(value):
            yield _block_value(source, match.end(), value[0])
        elif value[0] in "&*!%@`[{#|>":
            yield start, start + len(value), _skip, str
        elif _MORE.match(source, match.end()):
            yield start, start + len(value), lambda text: None, str
        else:
            yield start, start + len(value), _read_yaml, _yaml_like(value[0])


def _skip(written: str) -> str:
    """Return no text for a value that may hold some, but is not read."""
    return ""


def _value_below(source: str, at: int) -> Value:
    """Return the value on the indented lines below its key, which may have quotes."""
    start, end = _indented(source, at)
    has_comment = re.search(r"[ \t\n]#", source[start:end]) is not None
    return start, end, _skip if has_comment else _read_yaml, _yaml_like(source[start])


def _indented(source: str, at: int) -> tuple[int, int]:
    """Return the place of the first character of the indented lines from ``at`` on, and their end."""
    lines = re.compile(r"(?:\r?\n(?:[ \t]+[^\r\n]*|(?=\r?\n)))*").match(source, at)
    text = lines[0].rstrip() if lines else ""
    return at + len(text) - len(text.lstrip()), at + len(text)


def _block_value(source: str, at: int, style: str) -> Value:
    """Return the value of a text on the indented lines below its key, and below the sign of its style."""
    start, end = _indented(source, at)
    text = source[start:end]
    one_paragraph = "\n\n" not in text.replace("\r", "") and (style == ">" or source.find("\n", start, end) < 0)
    return start, end, (lambda written: " ".join(written.split()) if one_paragraph else None), str


def _read_yaml(written: str) -> str | None:
    """Return the text that a value stands for; "" if it is no text, such as a number, and None if it is not YAML."""
    try:
        node = yaml.compose(written, yaml.SafeLoader)  # no data are made, so aliases take no memory
        return _joined(_text_of(node) or "")
    except _NOT_YAML:
        return None


def _joined(text: str) -> str:
    """Return a text with one character for each pair of surrogates, as JSON escapes them.

    Raises:
        UnicodeDecodeError: A surrogate stands alone.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


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
        else:
            yield start, start + len(value), _skip, str


def _read_toml(written: str) -> str | None:
    try:
        return str(tomllib.loads(f"k = {written}")["k"])
    except tomllib.TOMLDecodeError:
        return None


def _toml_like(sign: str) -> Callable[[str], str]:
    def quoted(text: str) -> str:
        return f"'{text}'" if sign == "'" and "'" not in text else json.dumps(text, ensure_ascii=False)

    return quoted


def _read_json(written: str) -> str | None:
    try:
        return _joined(json.loads(written))
    except ValueError:
        return None


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
                yield match.start(), match.end(), _read_json, lambda text: json.dumps(text, ensure_ascii=False)
            key = token[1:-1]
        after = token
