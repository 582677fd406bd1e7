"""Judge of Markdown, by markdown-it with the plugins for what people write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from benchmarks.real_documents.judging import Block, UnreadableError, inside

MARKS = {
    "directive": re.compile(r"^[ \t]*(:::+[ \t]*\w*|!!! ?\S+|\?\?\?\+? ?\S+|=== )", re.MULTILINE),
    "import": re.compile(r"^(?:import|export) .*$", re.MULTILINE),
    "shortcode": re.compile(r"\{\{[<%].*?[>%]\}\}|\{%.*?%\}|\{\{.*?\}\}|\{#[\w-]+\}|\{: .*?\}", re.DOTALL),
    "note": re.compile(r"\[\^[^\]\s]+\]:?"),
    "alert": re.compile(r"^[ \t]*> ?\[!\w+\]", re.MULTILINE),
    "task": re.compile(r"^[ \t]*[-*+] \[[ xX]\] ", re.MULTILINE),
    "wiki": re.compile(r"!?\[\[[^\]\n|]+"),
    "abbreviation": re.compile(r"^\*\[[^\]]+\]:", re.MULTILINE),
}
STYLE = re.compile(r"<(/?)(strong|em|s|del)>")
"""The same as the marks of Markdown, which cannot stand everywhere."""
FENCE = re.compile(r"^([ \t]*)(```+|~~~+).*?^\1?[ \t]*\2", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def markdown(data: bytes) -> list[Block]:
    """Read Markdown."""
    try:
        source = data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError(str(error)) from None
    blocks = list(_markdown_blocks(source))
    prose = CODE_SPAN.sub("`", FENCE.sub("", source))
    for name, pattern in MARKS.items():
        blocks.append(Block(name, marks=[" ".join(match.split()) for match in _matches(pattern, prose)], is_text=False))
    return [block for block in blocks if block.pieces or block.marks or block.name in MARKS]


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match[0] for match in pattern.finditer(text)]


def _parser() -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"linkify": False})
    for plugin in (front_matter_plugin, footnote_plugin, deflist_plugin, tasklists_plugin):
        parser.use(plugin)
    return parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)


PARSER = _parser()


def _markdown_blocks(source: str) -> Iterator[Block]:
    path: list[str] = []
    for token in PARSER.parse(source):
        if token.nesting == 1:
            path.append(token.type.removesuffix("_open"))
        elif token.nesting == -1:
            path.pop()
        elif token.type == "inline":
            block = Block("/".join(path))
            _inline(token.children or [], block)
            yield block
        elif token.type == "front_matter":
            yield Block("front matter", marks=re.findall(r"^[ \t]*[\w-]+:", token.content, re.MULTILINE), is_text=False)
        elif token.type == "html_block":
            yield _of_html("/".join([*path, "html"]), token.content)
        else:
            yield Block("/".join([*path, token.type]), [("", token.content)], [token.info], is_text=False)


def _of_html(path: str, content: str) -> Block:
    """Return HTML in Markdown as a block: its tags without what people read, and its text."""
    block = Block(path)
    for part in re.split(r"(<!--.*?-->|<[^>]*>)", content, flags=re.DOTALL):
        if part.startswith("<"):
            block.marks.append(re.sub(r"\s(?:alt|title|placeholder|aria-label)=(?:\"[^\"]*\"|'[^']*')", "", part))
        else:
            block.add("", unescape(part))
    return block


def _inline(tokens: list[Any], block: Block) -> None:
    around: list[str] = []
    for token in tokens:
        place = "".join(around)
        if token.nesting == 1:
            block.marks.append(f"{token.tag} {token.attrs.get('href', '')}".strip())
            around.append(inside("", block.marks[-1], len(block.marks)))
        elif token.nesting == -1:
            around.pop()
        elif token.type == "text":
            block.add(place, token.content)
        elif token.type in ("softbreak", "hardbreak"):
            block.add(place, " ")
            if token.type == "hardbreak":
                block.marks.append("line break")
        elif token.type == "image":
            block.marks.append(f"image {token.attrs.get('src', '')}")
            block.add(f"{place}/image", token.content)
        elif token.type == "html_inline" and (tag := STYLE.fullmatch(token.content)):
            if tag[1]:
                around.pop()
            else:
                block.marks.append(tag[2])
                around.append(inside("", tag[2], len(block.marks)))
        else:  # code, HTML, math, footnotes
            block.marks.append(f"{token.type} {token.content or token.meta.get('label', '')}")
