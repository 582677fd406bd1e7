"""The blocks of a Markdown text: markdown-it-py finds them, with rules for what dialects add, and says where they are.

blocks_of("# A dog\\n", mdx=False).blocks  # [Block("text", ((2, 7),))]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from dragoman.documents.html import elements
from dragoman.documents.markdown.definitions import definition_by_code, description, footnote
from dragoman.documents.markdown.dialects import ATTRIBUTE_LIST, code_of_template, ends_of_formulas, recognised
from dragoman.documents.markdown.jsx import MODULE, brace_pairs, tag_end
from dragoman.documents.markdown.lines import Around, Lines, lines_until
from dragoman.documents.markdown.programs import PROPERTY, TEXT_OF_YAML
from dragoman.documents.markdown.state import View, add_raw, read_indented
from dragoman.errors import ConfigError, not_installed

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

Kind = Literal["text", "cell", "title", "quoted", "html", "raw", "definition", "left"]

_TASK = re.compile(r"(?:\[[ xX]\]|TODO|DOING|DONE|NOW|LATER|WAITING)[ \t]+(?=\S)")
"""The mark of a task, also as Logseq writes it."""
_ALERT = re.compile(r"\[!(?:[\w-]+|(?:div|VIDEO)[ \t][^\[\]\n]*)\][+-]?[ \t]*")
_BULLET = re.compile(r"[-*+][ \t]+(?=\S)")
_DOCSIFY = re.compile(r"[?!]>[ \t]+(?=\S)")
"""The mark of a notice in docsify, which only its first line has."""
_GLOSSARY = re.compile(r"(`{3,}|~{3,}|:{3,})[ \t]*\{glossary\}")
_NOTICE = re.compile(r"(?:!{1,4}|[A-Z]>)[ \t]+(?=\S)")
_VERSE = re.compile(r"\|[ \t]+([^\s|][^|\n]*)\Z")
"""A line of a verse, or of an address, in Pandoc."""
_DELIMITERS = re.compile(r"(?=[^-\n]*-)[|:+= \t-]++\Z")
"""The line below the headings of a table; that of kramdown may have fewer cells than its table."""
_HAS_LETTERS = re.compile(r"[^\W\d_]")
_CAPITAL_TAG = re.compile(r"^<([A-Z]\w*)((?:\s[^<>]*)?)/?>[ \t]*$", re.MULTILINE)
_HTML_ELEMENTS = (
    elements.BLOCKS
    | elements.CODE
    | elements.names(
        "a abbr acronym applet b basefont bdi bdo bgsound big blink cite data del dfn em font frame i img ins map mark "
        "math nobr picture q rb rp rt rtc ruby s slot small span strike strong sub sup svg time u wbr"
    )
)
"""Names that people also write in capital letters, unlike those of components."""
_COMPONENT = re.compile(r"^[ \t]*::[a-z][\w-]*(?:[\[{][^\n]*)?$", re.MULTILINE)
"""The first line of a component of Nuxt's MDC."""
_TEMPLATE_TAG = re.compile(r"^[ \t]*\{%-?[ \t]*[a-z]", re.MULTILINE)
"""A tag of Liquid, Jinja or Nunjucks, at which a program for MDX would stop."""
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(`{3,}|~{3,})")
_MARKDOWN_INSIDE = re.compile(r"<[a-z]+\s(?:[^<>]*\s)?markdown(?:=[\"']?\w+[\"']?)?(?:\s[^<>]*)?>\s*\Z", re.IGNORECASE)
_TAG_ONLY = re.compile(r"</?[A-Za-z][\w.-]*(?:\s[^<>]*)?>\s*\Z")
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|button|cite|del|em|i|img|ins|kbd|label|mark|q|s|small|span|strong|sub|sup|u)\b", re.IGNORECASE
)
_HTML_WITH_OWN_END = re.compile(r"<(?:!|\?|(?:script|pre|style|textarea)\b)", re.IGNORECASE)
_CODE_NAMES = "listing|math|pre|script|style|textarea|xmp"
_CODE_TAG = re.compile(
    rf"<!(--)|<(\?|(?:{_CODE_NAMES})(?=[\s>])(?=[^<>]*+(?<!/)>))|</({_CODE_NAMES})[ \t]*+>|(--|\?)>", re.IGNORECASE
)
"""What begins or ends code, or a comment, in HTML; of other elements, such as ``kbd``, blank lines end the code."""
_NOT_QUOTED = re.compile(rf"(?<!`)`++[^`\n]*+`|{_CODE_TAG.pattern}", re.IGNORECASE)
"""The same, or a stretch between backticks, which may mention a tag."""
_OPENING = (1, 2)
"""Groups of these patterns in which a tag is that begins code."""
_CODE_TO_THE_END = {
    "--": "<!--", "?": "<?", "pre": "<pre>", "script": "<script>", "style": "<style>", "textarea": "<textarea>"
}  # fmt: skip
"""Those of which all below is code if they begin a block and nothing closes them, and how they begin."""
_FENCE_LINE = re.compile(r"`{3,}[^`\n]*\Z|~{3,}")
_DEFINITION = re.compile(r"\[[^\[\]\n]{1,200}\]:[ \t]+\S+[ \t]*\Z")
_MOST_OF_A_TAG = 2_000
"""Number of characters in front of a ``>`` in which the tag that it ends is sought."""
_CLOSING = re.compile(r"</[a-z]+>\s*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """A stretch of the source: text to translate, or what is kept."""

    kind: Kind
    lines: tuple[tuple[int, int], ...]
    """The first character and the end of each line, without the markers of quotes and lists."""
    why: str = ""
    """Of text that is left: the reason."""


@dataclass
class Blocks:
    """The blocks of a text."""

    blocks: list[Block] = field(default_factory=list)
    references: dict[str, Any] = field(default_factory=dict)
    """Definitions of links such as ``[label]: https://a.org``, as the parser holds them."""
    tokens: list[Token] = field(default_factory=list)


def is_mdx(source: str, name: str) -> bool:
    """True if the braces and tags of a file are those of MDX: by its suffix, its imports or its components."""
    if name.lower().endswith(".mdx"):
        return True
    text = _without_fences(source)
    is_code = any(map(MODULE.match, text.split("\n"))) or any(map(_is_component, _CAPITAL_TAG.finditer(text)))
    return is_code and not _TEMPLATE_TAG.search(text)


def _is_component(tag: re.Match[str]) -> bool:
    """True if a tag is no HTML in capital letters; a value in braces is JavaScript."""
    return tag[1].lower() not in _HTML_ELEMENTS or "={" in tag[2]


def _without_fences(source: str) -> str:
    """Return a text without its fenced code and the scripts of its pages."""
    lines, fence, in_script = [], "", False
    for line in source.split("\n"):
        match = _FENCE.match(line)
        if not fence and (in_script or line[:7].lower() == "<script"):
            in_script = "</script>" not in line.lower()
            continue
        if not fence and match:
            fence = match[1]
        elif fence and match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence:
            lines.append(line)
    return "\n".join(lines)


def blocks_of(source: str, mdx: bool) -> Blocks:
    """Return the blocks of a text whose line ends are all LF."""
    env: dict[str, Any] = {
        "mdx": mdx, "braces": brace_pairs(source) if mdx else {}, "fences": [], "misses": {}, "inside": 0,
        "components": _COMPONENT.search(source) is not None, "formula_ends": ends_of_formulas(source),
    }  # fmt: skip
    tokens = _parser(mdx).parse(source, env)
    blocks = list(_blocks(tokens, source))
    return Blocks(_with_uncovered(blocks, tokens, source), env.get("references", {}), tokens)


@cache
def _parser(mdx: bool) -> Any:
    """Return the parser of blocks, which does not look inside paragraphs."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise ConfigError(not_installed("reading Markdown", "markdown-it-py")) from None
    parser = MarkdownIt("commonmark", {"maxNesting": 60, "inline_definitions": True}).enable(["table"])
    parser.disable(["inline", "text_join", *(["code", "html_block"] if mdx else [])])
    ruler = parser.block.ruler
    ends: Any = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    paragraph_only: Any = {"alt": ["paragraph"]}
    rules = {rule.name: rule for rule in ruler.__rules__}
    for name in ("paragraph", "heading", "lheading", "table"):
        rule = _without_indents(rules[name].fn) if mdx else rules[name].fn
        ruler.at(name, _noting(rule), {"alt": rules[name].alt})
    ruler.at("html_block", _html_alone(rules["html_block"].fn), {"alt": rules["html_block"].alt})
    if mdx:
        ruler.at("blockquote", _no_end_of_a_tag(rules["blockquote"].fn), {"alt": rules["blockquote"].alt})
    ruler.before("table", "dialect", _dialect, ends)
    ruler.before("table", "footnote", footnote, ends)
    ruler.before("table", "definition_by_code", definition_by_code)
    ruler.before("table", "description", description, paragraph_only)
    if not mdx:
        ruler.before("html_block", "markdown_inside", _markdown_inside, ends)
    return parser


# --- rules ------------------------------------------------------------------------------------------------------------


def _noting(rule: Callable[..., bool]) -> Callable[..., bool]:
    """Return a rule that also notes where the lines of its text are."""

    def noting(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        n_tokens = len(state.tokens)
        if not rule(state, start, end, silent):
            return False
        if not silent:
            _note_lines(state, state.tokens[n_tokens:])
        return True

    return noting


class _Shallow:
    """Indents of lines, of which those down to the next blank line are too small to begin code.

    A line is looked at when its indent is asked for: a rule that asks for two lines does not wait for all below them.
    """

    def __init__(self, state: StateBlock, start: int) -> None:
        self._state, self._start, self._last = state, start, start
        self._own, self._most = state.sCount, state.blkIndent + 3

    def __getitem__(self, line: int) -> int:
        while self._last < line and not self._state.isEmpty(self._last + 1):
            self._last += 1
        return min(self._own[line], self._most) if self._start < line <= self._last else self._own[line]

    def __setitem__(self, line: int, indent: int) -> None:
        self._own[line] = indent


def _without_indents(rule: Callable[..., bool]) -> Callable[..., bool]:
    """Return a rule of MDX, where an indent makes no code: an indented line may begin a block below a paragraph."""

    def shallow(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        own: Any = state.sCount
        lines: Any = _Shallow(state, start)
        state.sCount = lines
        made = rule(state, start, end, silent)
        state.sCount = own
        return made

    return shallow


def _no_end_of_a_tag(rule: Callable[..., bool]) -> Callable[..., bool]:
    """Return the rule of quotes, which leaves a line whose ``>`` ends a tag that begins above it."""

    def quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        place = View(state, start, end)[0][0]
        tag = state.src.rfind("<", max(0, place - _MOST_OF_A_TAG), place) if state.src[place : place + 1] == ">" else -1
        if tag >= 0 and tag_end(state.src, tag, state.env["braces"]) == place + 1:
            return False
        return rule(state, start, end, silent)

    return quote


def _html_alone(rule: Callable[..., bool]) -> Callable[..., bool]:
    """Return the rule of HTML, which ends before what programs read directly below it.

    That is the definition of a link, fenced code, and code between tags of a template, which reads its file before
    Markdown.
    """

    def html(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if state.env["inside"] and _INLINE_TAG.match(state.src, View(state, start, end)[0][0]):
            return False  # kramdown reads its paragraph as Markdown
        place, limit = View(state, start, end)[0][0], end
        if not silent and state.src.startswith("<", place) and not _HTML_WITH_OWN_END.match(state.src, place):
            end = _end_of_html(state, start, end)  # HTML with an end of its own goes on over blank lines
        if not rule(state, start, end, silent):
            return False
        if not silent:
            token = state.tokens[-1]
            opening, last = _end_of_code(state, start, limit)
            below = range(start + 1, state.line)
            lines = (place, state.eMarks[start]), *((state.bMarks[i], state.eMarks[i]) for i in below)
            token.meta, token.map = {"lines": lines}, [start, state.line]
            first = next((i for i in range(state.line, last) if not state.isEmpty(i)), last)
            if first < last:
                add_raw(state, first, Lines(last - first, why=f"{opening} above it is not closed"))
        return True

    return html


def _end_of_code(state: StateBlock, start: int, limit: int) -> tuple[str, int]:
    """Move on to the end of code that is open below HTML, over blank lines: browsers read it as code.

    Without a closing tag the HTML ends at the blank line, as Markdown ends it, unless its first line begins the code.

    Args:
        state: Stands below the HTML.
        start: Number of the first line of the HTML.
        limit: Number of the first line that is not read now.

    Returns:
        The tag that begins code up to the last line, and the line below that; else "", and the line below the HTML.
    """
    at, below = View(state, start, limit)[0][0], state.line
    if below == limit and _HTML_WITH_OWN_END.match(state.src, at):  # its rule found no end
        opening = _CODE_TO_THE_END.get(_open_code(state.src, at, state.eMarks[below - 1]), "")
        state.line = next((i for i in range(start + 1, below) if opening and state.isEmpty(i)), below)
        return opening, below
    while state.line < limit and (name := _open_code(state.src, at, state.eMarks[state.line - 1])):
        last, tag = state.line, None
        while tag is None and last < limit and (state.isEmpty(last) or state.sCount[last] >= state.blkIndent):
            tags = _CODE_TAG.finditer(state.src, state.bMarks[last], state.eMarks[last])
            tag = next((tag for tag in tags if tag[tag.lastindex or 0].lower() == name), None)
            last += 1
        if tag is None or tag.lastindex in _OPENING:
            break
        below = _end_of_html(state, last - 1, limit)
        at, state.line = tag.end(), next((i for i in range(last, below) if state.sCount[i] < state.blkIndent), below)
    return "", state.line


def _open_code(source: str, at: int, end: int) -> str:
    """Return the name of the element of code that is open at the end of HTML, ``--`` for a comment; "" if none is."""
    name = ""
    while tag := (_CODE_TAG if name else _NOT_QUOTED).search(source, at, end):
        at = tag.end()
        own, opens = tag[tag.lastindex or 0].lower(), tag.lastindex in _OPENING
        if opens and not name:
            name = own
        elif own == name and not opens:
            name = ""
    return name


def _end_of_html(state: StateBlock, start: int, end: int) -> int:
    """Return the first line below HTML that cannot be its own: a blank one, or what programs read."""
    view = View(state, start, end)
    for i in range(1, len(view)):
        line = state.src[slice(*view[i])]
        above = state.src[slice(*view[i - 1])].rstrip()
        is_below = (_TAG_ONLY.match(above) and _DEFINITION.match(line)) or (
            above.endswith(">") and _FENCE_LINE.match(line) and _is_closed(state, line, start + i, end)
        )
        if not line or is_below or (line.startswith("{%") and _begins_code(state, start + i, end)):
            return start + i
    return end


def _is_closed(state: StateBlock, fence: str, line: int, end: int) -> bool:
    """True if fenced code that begins with a line has an end."""
    signs = fence[: len(fence) - len(fence.lstrip(fence[0]))]
    lines = View(state, line, end)
    return (
        lines_until(
            lines,
            _around(state, silent=True),
            signs,
            lambda below: below.rstrip(signs[0]) == "" and below.startswith(signs),
        )
        > 0
    )


def _begins_code(state: StateBlock, line: int, end: int) -> bool:
    lines = View(state, line, end)
    return bool(code_of_template(state.src[slice(*lines[0])].rstrip(), lines, _around(state, silent=True)))


def _note_lines(state: StateBlock, tokens: Sequence[Token]) -> None:
    cells: list[tuple[int, int]] = []
    row = -1
    for i, token in enumerate(tokens):
        if token.type != "inline" or token.map is None:
            continue
        first, end = token.map
        if tokens[i - 1].type in ("th_open", "td_open"):
            if first != row:
                row, cells = first, _cells(state.src, *View(state, first, end)[0])
            token.meta = {"lines": (cells.pop(0),) if cells else ()}
            if cells and tokens[i + 2].type == "tr_close":
                token.meta["surplus"] = tuple(cells)
            continue
        lines = [View(state, first, end)[i] for i in range(end - first)]
        if tokens[i - 1].type == "heading_open" and not set(tokens[i - 1].markup) - {"#"}:
            start = (
                state.src.find(token.content, lines[0][0] + len(tokens[i - 1].markup)) if token.content else lines[0][0]
            )
            lines = [(start, start + len(token.content))]
        last_start, last_end = lines[-1]
        lines[-1] = last_start, last_start + len(state.src[last_start:last_end].rstrip())
        token.meta = {"lines": tuple(lines)}


def _cells(source: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the places of a table row's cells, as GitHub divides it."""
    bars = [match.end() - 1 for match in re.compile(r"\\.|\|").finditer(source, start, end) if match[0] == "|"]
    edges = [start - 1, *bars, end]
    cells = []
    for i in range(len(edges) - 1):
        first, last = edges[i] + 1, edges[i + 1]
        text = source[first:last]
        stripped = first + len(text) - len(text.lstrip())
        cells.append((min(stripped, last), stripped + len(text.strip())))
    if cells and cells[0][0] >= cells[0][1] and bars and not source[start : bars[0]].strip():
        cells.pop(0)
    if cells and bars and not source[bars[-1] + 1 : end].strip():
        cells.pop()
    return cells


def _dialect(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Keep lines of a dialect's markup, and read the indented lines that belong to them."""
    if state.is_code_block(start):
        return False
    lines = recognised(View(state, start, end), _around(state, silent))
    if lines is None or (lines.indent and silent and not _is_indented(state, start + 1, end, lines.indent)):
        return False
    if silent and lines.joins and state.sCount[start] < state.blkIndent:
        return False  # belongs to the item's paragraph, though it is not indented
    if not silent:
        add_raw(state, start, lines)
        if lines.indent:
            read_indented(state, start + lines.count, end, lines.indent)
    return True


def _around(state: StateBlock, silent: bool) -> Around:
    env = state.env
    return Around(
        state.src,
        env["mdx"],
        env["braces"],
        env["fences"],
        env["misses"],
        env["formula_ends"],
        env["components"],
        silent,
    )


def _is_indented(state: StateBlock, line: int, end: int, indent: int) -> bool:
    """True if a line belongs to the line before it by its indent."""
    return line >= end or state.isEmpty(line) or state.sCount[line] >= state.blkIndent + indent


def _markdown_inside(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Keep a tag whose element holds Markdown (``<div markdown>``), and its closing tag, as lines of their own.

    So is a tag with fenced code directly below: people write it, and code must not become text.
    """
    place, line_end = View(state, start, end)[0]
    line = state.src[place:line_end]
    if state.is_code_block(start) or not line.startswith("<"):
        return False
    opens = bool(_MARKDOWN_INSIDE.match(line))
    if not opens and start + 1 < end and _TAG_ONLY.match(line) and _has_fence(state, start + 1):
        if not silent:
            add_raw(state, start, Lines())
        return True
    if not opens and not (state.env["inside"] and _CLOSING.match(line)):
        return False
    if not silent:
        state.env["inside"] += 1 if opens else -1
        add_raw(state, start, Lines())
    return True


def _has_fence(state: StateBlock, line: int) -> bool:
    """True if a line begins fenced code."""
    place, line_end = View(state, line, line + 1)[0]
    return not state.is_code_block(line) and bool(_FENCE_LINE.match(state.src, place, line_end))


# --- blocks -----------------------------------------------------------------------------------------------------------


def _blocks(tokens: Sequence[Token], source: str) -> Iterator[Block]:
    """Yield the blocks of tokens, in order."""
    starts = [0, *(match.end() for match in re.finditer("\n", source)), len(source)]
    glossary = ""  # the fence of the one that is open
    for i, token in enumerate(tokens):
        if token.type == "inline":
            lines = token.meta.get("lines", ())
            if tokens[i - 1].type in ("th_open", "td_open"):
                yield from (Block("cell", (line,)) for line in lines)
                yield from (
                    Block("left", (line,), "its table has no column for it") for line in token.meta.get("surplus", ())
                )
            elif lines and glossary:
                yield from (Block("text", tuple(own)) for own in _terms(lines, source))
            elif lines:
                yield from _paragraph(lines, tokens[i - 2].type == "list_item_open", source)
        elif token.type == "raw":
            line = source[slice(*token.meta["lines"][0])].rstrip()
            if opening := _GLOSSARY.match(line):
                glossary = opening[1]
            elif glossary and line.startswith(glossary) and not line.strip(glossary[0]):
                glossary = ""
            yield from _raw(token)
        elif token.type == "html_block":
            yield Block("html", token.meta["lines"])
        elif token.map is not None and token.type == "definition":
            yield Block("definition", ((starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]),))


def _terms(lines: Sequence[tuple[int, int]], source: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the lines of a paragraph of a glossary: its terms, and the indented lines that explain each."""

    def indent(line: tuple[int, int]) -> int:
        before = source[max(0, line[0] - 40) : line[0]]
        return len(before) - len(before.rstrip(" \t"))

    for _, group in groupby(lines, lambda line: indent(line) > indent(lines[0])):
        yield list(group)


def _raw(token: Token) -> Iterator[Block]:
    lines, titles = token.meta["lines"], token.meta["titles"]
    if titles:
        for start, end, kind in titles:
            yield Block("quoted" if kind == "quoted" else "title", ((start, end),))
    elif token.meta["why"]:
        yield Block("left", lines, token.meta["why"])
    else:
        yield Block("raw", ((lines[0][0], lines[-1][1]),))


def _paragraph(lines: tuple[tuple[int, int], ...], in_list: bool, source: str) -> Iterator[Block]:
    """Yield a paragraph without the mark of a task, an alert or a notice in front of its text."""
    first, end = lines[0]
    in_quote = source[max(0, first - 20) : first].rstrip(" \t").endswith(">")
    if mark := (in_list and _TASK.match(source, first, end)) or _DOCSIFY.match(source, first, end):
        lines = ((mark.end(), end), *lines[1:])
    elif in_quote and (alert := _ALERT.match(source, first, end)):
        if alert.end() < end:
            yield Block("text", ((alert.end(), end),))
        lines = lines[1:]
    elif all(_NOTICE.match(source, start, stop) for start, stop in lines):
        lines = tuple((_NOTICE.match(source, start, stop).end(), stop) for start, stop in lines)  # type: ignore[union-attr]
    if rows := _rows(lines, source):
        yield from rows
        return
    for is_kept, group in groupby(lines, lambda line: _is_kept(source, *line)):
        if not is_kept:
            yield from (Block("text", own) for own in _at_bullets(list(group), source))
            continue
        texts = [line for line in group if PROPERTY.match(source, *line) and TEXT_OF_YAML.search(source, *line)]
        yield from (Block("left", (line,), "a property is not translated") for line in texts)


def _at_bullets(lines: list[tuple[int, int]], source: str) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the lines of a paragraph, divided where one begins with a bullet: people mean a list, indented too far."""
    own: list[tuple[int, int]] = []
    for start, end in lines:
        bullet = _BULLET.match(source, start, end)
        if bullet and own:
            yield tuple(own)
            own = []
        own.append((bullet.end() if bullet else start, end))
    yield tuple(own)


def _rows(lines: Sequence[tuple[int, int]], source: str) -> list[Block]:
    """Return the lines of a verse, or the cells of a table that GitHub would not read; nothing if it is neither."""
    if not all(source.startswith("|", start) for start, _ in lines):
        return []
    verse = [_VERSE.match(source, *line) for line in lines]
    if all(verse):
        return [Block("text", (line.span(1),)) for line in verse if line]
    is_rule = [bool(_DELIMITERS.match(source, *line)) for line in lines]
    rows = [line for line, is_kept in zip(lines, is_rule, strict=True) if not is_kept] if any(is_rule) else []
    return [Block("cell", (cell,)) for row in rows for cell in _cells(source, *row)]


def _is_kept(source: str, start: int, end: int) -> bool:
    """True if a line of a paragraph is a list of its attributes, or a property."""
    return bool(ATTRIBUTE_LIST.match(source, start, end) or PROPERTY.match(source, start, end))


def _with_uncovered(blocks: list[Block], tokens: Sequence[Token], source: str) -> list[Block]:
    """Return the blocks with those that no rule read, which are left."""
    starts = [0, *(match.end() for match in re.finditer("\n", source))]
    covered = bytearray(len(starts) + 1)
    for token in tokens:
        if token.map is not None and token.nesting == 0:
            first, end = token.map
            covered[first:end] = b"\1" * (min(end, len(covered)) - first)
        elif token.type == "heading_open" and token.map is not None:
            covered[token.map[0] : token.map[1]] = b"\1" * (token.map[1] - token.map[0])
    left = []
    for i, start in enumerate(starts):
        end = starts[i + 1] - 1 if i + 1 < len(starts) else len(source)
        if not covered[i] and _HAS_LETTERS.search(source, start, end):
            left.append(Block("left", ((start, end),), "its Markdown could not be followed"))
    return sorted([*blocks, *left], key=lambda block: block.lines[0][0])
