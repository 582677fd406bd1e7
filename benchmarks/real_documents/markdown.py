"""Judge of Markdown, by markdown-it with the plugins for what people write."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from html import unescape
from itertools import accumulate
from typing import Any
from zlib import crc32

from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from benchmarks.real_documents.judging import Block, UnreadableError, inside, names, plain, words_of

MARKS = {
    "directive": re.compile(
        r"^[ \t]*(:::+[ \t]*\w*|::[a-z][\w-]*(?=$|[\[{])|(?:!!!|\?\?\?\+?) ?[a-z][\w-]*(?=\s*$| \")|=== )", re.MULTILINE
    ),
    "import": re.compile(
        r"^(?:import\s+[\w$*{'\"].*['\"]|export (?:const|let|default|function|class|[{*])).*$", re.MULTILINE
    ),
    "shortcode": re.compile(r"\{\{[<%].*?[>%]\}\}|\{%.*?%\}|\{\{[^<]*?\}\}|\{#[\w-]+\}|\{: .*?\}", re.DOTALL),
    "component": re.compile(r"(?<![\w:]):[a-z][\w-]*\{[^{}\n]*\}"),
    "bracketed": re.compile(r"(?<!\\)\]\{[.#][^{}\n]*\}"),
    "include": re.compile(
        r"\[!(?:(?:INCLUDE|include|code[\w-]*)\s*\[[^\[\]\n]*\]\([^()\n]*\)|(?:div|VIDEO)\s[^\[\]\n]*)\]"
    ),
    "colons with attributes": re.compile(
        r":::[\w-]+(?:\s+[\w-]+=\"[^\"\n]*\")*\s*:::|^:::\s*(?:zone|moniker)\b.*$", re.M
    ),
    "head of a slide": re.compile(r"(?:(?<=\n\n)|\A)---\n(?:[a-z][\w-]*:(?: .*)?\n(?:[ \t].*\n)*)+---$", re.MULTILINE),
    "picture behind a slide": re.compile(r"!\[(?:bg|w:|h:|width:|height:)[^\]\n]*\](?=\()"),
    "directive of DocC": re.compile(r"^[ \t]*@[A-Z]\w*(?=\(.*$|[ \t]*\{?[ \t]*$)", re.MULTILINE),
    "property": re.compile(r"^[ \t]*(?:[-*] )?[a-z][\w-]*::(?=[ \t])", re.MULTILINE),
    "quote of Org": re.compile(r"#\+(?:BEGIN|END)_\w+"),
    "keys": re.compile(r"\+\+[a-z]+(?:\+[a-z]+)+\+\+"),
    "tab": re.compile(r"^@tab(?::active)?\b", re.MULTILINE),
    "section of an RFC": re.compile(r"^--- (?:abstract|middle|back|note_\w+)$", re.MULTILINE),
    "note": re.compile(r"^\[\^[^\]\s]+\]:|\[\^[^\]\s]+\]", re.MULTILINE),
    "alert": re.compile(r"^[ \t]*> ?\[!\w+\]", re.MULTILINE),
    "task": re.compile(r"^[ \t]*[-*+] \[[ xX]\] ", re.MULTILINE),
    "wiki": re.compile(r"!?\[\[[^\[\]\n|]+(?=\||\]\](?![(\[]))"),
    "abbreviation": re.compile(r"^\*\[[^\]]+\]:", re.MULTILINE),
}
STYLE = re.compile(r"<(/?)(strong|em|s|del)>")
"""The same as the marks of Markdown, which cannot stand everywhere."""
FENCE = re.compile(r"((?:[ \t]|[-*+] |\d+[.)] )*)(`{3,}(?=[^`]*$)|~{3,})")
"""The first line of fenced code."""
FENCE_END = re.compile(r"([ \t>]*)([`~]{3,})[ \t]*$")
BELOW_HTML = re.compile(r"(?<=>)\n(?= {0,3}(?:\[[^\]\n]+\]: |\ue010))")
"""The line end between HTML and the definition of a link or fenced code, which some programs read there."""
COMMENTED_TERM = re.compile(r"^<!--[^\n]*-->(?=\n\n?:[ \t])", re.MULTILINE)
"""The term of a definition that a program writes: a comment, which is a paragraph there."""
SHORTCODE_OF_CODE = re.compile(
    r"^([ \t]*)(?:\{\{<\s*(code-toggle|highlight)\b(?![^\n]*/>\}\}).*?^[ \t]*\{\{<\s*/\s*\2\s*>\}\}|"
    r"\[(prism|raw)\b[^\]\n]*\].*?\[/\3\]|\\begin\{(\w+\*?)\}.*?\\end\{\4\})",
    re.M | re.S,
)
"""A shortcode whose inside is code: data of a page, a program, a formula."""
MYST = re.compile(r"^([ \t]*)(```+|~~~+)(\{([\w:-]+)\}.*)\n((?:.*\n)*?)\1\2[ \t]*$", re.MULTILINE)
ADMONISH = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*admonish\b([^`\n]*)\n((?:.*\n)*?)[ \t]*\2[ \t]*$", re.MULTILINE)
"""A box of mdbook-admonish, whose inside is Markdown."""
ADMONISH_TITLE = re.compile(r"(?:title=| )(?:\"([^\"]*)\"|'([^']*)')")
PROSE = names(
    "note warning tip important caution attention danger error hint seealso admonition versionadded versionchanged "
    "deprecated dropdown list-table figure margin sidebar epigraph topic rubric table centered pull-quote highlights "
    "compound container glossary todo versionremoved"
)
"""Directives of MyST whose inside is Markdown."""
CODE_SPAN = re.compile(r"(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\1(?!`)", re.DOTALL)


HEAD = re.compile(
    r"(---|\+\+\+)[ \t]*\r?\n(?:.*\n)*?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)|\{\s*\n(?:.*\n)*?\}[ \t]*(?:\r?\n|\Z)"
)
"""Front matter in YAML, TOML or JSON."""
MODULE = re.compile(
    r"^(?:(?:(?:import\s+(?:[\w$*{][^'\"]*?)?['\"][^'\"\n]+['\"]|export\s*\{[^{}\n]*\});?[ \t]*)+$"
    r"|export\s+(?:const|let|default|async|function|class)\b(?P<code>(?:.+\n)*.*)"
    r"|export\s*\{[^{}]*\}\s*from\s.*)",
    re.MULTILINE,
)
BLANK = re.compile(r"\n[ \t]*(?=\n)|\n?\Z")
COMPONENT = re.compile(
    r"^[ \t]*</?(?:[A-Z][\w.]*)?(?:\s(?:[^<>{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)?/?>[ \t]*$", re.MULTILINE
)
COMMENT = re.compile(CODE_SPAN.pattern + r"|(?P<code>\{\s*/\*.*?\*/\s*\})", re.DOTALL)
TITLED = re.compile(
    r"^([ \t]*(?:>[ \t]?)*(?::   )?)(?:(:::+[ \t]*(?:\{[\w-]+\}|[\w-]+)?)[ \t]*(.*?)|"
    r"((?:!!!|\?\?\?\+?)[ ]?[\w-]+(?: [\w-]+)*)"
    r"(?: \"(.*)\")?|(===[!+]?) +[\"'](.*)[\"']|(///+ ?[\w-]*)(?: ?\| ?(.*))?)[ \t]*$",
    re.MULTILINE,
)
"""A line that begins or ends a directive: its marker and its title."""
OPTION = re.compile(r"[ \t]*:[\w-]+:")
FULL_LINE = re.compile(
    r"^[ \t]*(?:(?:\{\{[<%](?:(?![>%]\}\}).)*[>%]\}\}|\{%(?:(?!%\}).)*%\}|\{:[^{}]*\}|"
    r"\{\{(?:[^{}]|\{[^{}]*\})*\}\}|\([\w:.-]+\)=|\+\+\+.*)[ \t]*)+$",
    re.MULTILINE,
)


def mdx(data: bytes) -> list[Block]:
    """Read MDX."""
    return markdown(data, is_mdx=True)


def markdown(data: bytes, is_mdx: bool = False) -> list[Block]:
    """Read Markdown, or MDX if its imports or exports say so."""
    try:
        source = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(str(error)) from None
    head = HEAD.match(source)
    body = DEFINED_BY_CODE.sub(r"\1/shortcode", source[head.end() :] if head else source)
    fences: list[tuple[str, str]] = []
    shown: list[Block] = []
    is_mdx = is_mdx or _is_mdx(body)
    if is_mdx:
        body = _without_expressions(body, shown)
    body = ADMONISH.sub(_admonish, body)
    while (opened := MYST.sub(_opened, body)) != body:
        body = opened
    body = SHORTCODE_OF_CODE.sub(_as_fence, body)
    text, modules = _plain_markdown(_with_fences(body, partial(_hidden, fences=fences)), is_mdx)
    blocks = [Block("front matter", [("", head[0] if head else "")], is_text=False)]
    parser = MDX_PARSER if is_mdx else PARSER
    blocks += _with_sorted_notes(list(_markdown_blocks(FENCED.sub(lambda match: _shown(match, fences), text), parser)))
    prose = CODE_SPAN.sub("`", _with_fences(body, lambda prefix, code: ""))
    blocks.append(Block("modules", marks=[" ".join(module.split()) for module in modules], is_text=False))
    blocks += shown
    for name, pattern in MARKS.items():
        marks = [" ".join(VISIBLE.sub(r"\1", match).split()) for match in _matches(pattern, prose)]
        blocks.append(Block(name, marks=marks, is_text=False))
    return [block for block in blocks if block.pieces or block.marks or block.name in MARKS]


def _admonish(match: re.Match[str]) -> str:
    """Return a box of mdbook-admonish as a directive."""
    title = ADMONISH_TITLE.search(match[3])
    text = title[title.lastindex or 0] if title else ""
    return f"{match[1]}:::{{note}} {text}\n\n{match[4]}\n{match[1]}:::"


DEFINED_BY_CODE = re.compile(r"^([ \t]{0,3}\[[^\[\]\n]+\]:[ \t]*)\{\{[<%][^\n]*[>%]\}\}", re.MULTILINE)
"""The definition of a link whose address a shortcode of Hugo gives: it is read before the Markdown."""


FENCED = re.compile("^(.*)\ue010(\\d+)\ue011", re.MULTILINE)
"""A fence that was taken out, and what stands in front of it."""


def _is_mdx(source: str) -> bool:
    bare = _with_fences(re.sub(r"<script\b.*?</script>", "", source, flags=re.DOTALL), lambda prefix, code: prefix)
    return bool(MODULE.search(bare)) and not re.search(r"^\{%-? *\w", bare, re.MULTILINE)  # which MDX refuses


def _without_expressions(text: str, shown: list[Block]) -> str:
    """Return MDX without the expressions that have lines of their own, as @mdx-js/mdx reads them (mdxFlowExpression).

    Each becomes a block of ``shown``: its code, and the text of its elements, which readers see.
    """
    lines, made, i = text.split("\n"), [], 0
    while i < len(lines):
        opened = FENCE.match(lines[i])
        last = _fence_end(lines, i, opened) if opened else -1
        if last < 0 and lines[i].startswith("{"):
            last = next((n for n in range(i, len(lines)) if _is_expression("\n".join(lines[i : n + 1]))), -1)
            if last >= 0:
                code = "\n".join(lines[i : last + 1])
                shown.append(Block("expression", [("", "\n".join(IN_ELEMENT.findall(_bare(code))))], [plain(code)]))
                made.append("")
                i = last + 1
                continue
        made += lines[i : max(i, last) + 1]
        i = max(i, last) + 1
    return "\n".join(made)


IN_ELEMENT = re.compile(r"(?<!=)>([^<>{}]+)(?=</|<[A-Za-z]|\{)")
IN_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`", re.DOTALL)
"""Comments and strings of JavaScript."""


def _bare(code: str) -> str:
    return IN_CODE.sub(lambda match: "''" if match[0][0] in "'\"`" else "", code)


def _is_expression(code: str) -> bool:
    """True if code ends with the brace that closes its first one."""
    bare = _bare(code).strip()
    depths = list(accumulate((char == "{") - (char == "}") for char in bare))
    return bare.endswith("}") and not depths[-1] and 0 not in depths[:-1]


def _opened(match: re.Match[str]) -> str:
    """Return a directive of MyST in colons if its inside is Markdown; in backticks it would be code."""
    if match[4] not in PROSE:
        return match[0]
    return f"{match[1]}:::{match[3]}\n{match[5]}{match[1]}:::"


def _as_fence(match: re.Match[str]) -> str:
    lines = "\n".join(match[1] + line for line in match[0].split("\n"))
    return f"{match[1]}~~~~~~~~\n{lines}\n{match[1]}~~~~~~~~"


def _with_fences(text: str, written: Callable[[str, str], str]) -> str:
    """Return a text with something else for each fenced code, of which ``written`` gets what is before it, and it."""
    lines, made, i = text.split("\n"), [], 0
    while i < len(lines):
        opened = FENCE.match(lines[i])
        last = _fence_end(lines, i, opened) if opened else -1
        if opened and last > 0:
            made.append(written(opened[1], "\n".join(lines[i : last + 1])[len(opened[1]) :]))
            i = last
        else:
            made.append(lines[i])
        i += 1
    return "\n".join(made)


def _fence_end(lines: list[str], first: int, opened: re.Match[str]) -> int:
    """Return the number of the line that ends fenced code; -1 if none does."""
    for i in range(first + 1, len(lines)):
        ended = FENCE_END.match(lines[i])
        if ended and ended[2].startswith(opened[2]) and len(ended[1]) <= len(opened[1]) + 3:
            return i
    return -1


def _hidden(prefix: str, code: str, fences: list[tuple[str, str]]) -> str:
    fences.append((prefix, code))
    return f"{prefix}\ue010{len(fences) - 1}\ue011"


def _shown(match: re.Match[str], fences: list[tuple[str, str]]) -> str:
    """Return a fence, moved to the left as far as its first line was; a tag directly above it becomes a block."""
    before, fence = fences[int(match[2])]
    moved = max(0, len(before) - len(match[1]))
    lines = [line[min(moved, len(line) - len(line.lstrip(" "))) :] for line in fence.split("\n")]
    above = match.string[: match.start()].rstrip("\n").rpartition("\n")[2]
    blank = "\n" if re.fullmatch(r"[ \t]*</?[A-Za-z][^<>]*>[ \t]*", above) else ""
    return blank + match[1] + "\n".join(lines)


def _plain_markdown(source: str, is_mdx: bool) -> tuple[str, list[str]]:
    """Return the source in CommonMark, and the code of MDX in it.

    Lines of directives become comments with their titles below, what is indented below them loses its indent.
    """
    modules: list[str] = []

    def taken(match: re.Match[str]) -> str:
        modules.append(VISIBLE.sub(r"\1", match[0]))
        shown = "\n\n".join(found[found.lastindex or 1] for found in VISIBLE.finditer(match[0]))
        return f"\n\n{shown}\n\n" if shown else "\n\n"

    source = LIQUID_CODE.sub(lambda match: modules.append(match[0]) or "\n\n", source)
    if is_mdx:
        source = COMPONENT.sub(taken, _without_modules(source, taken))
    source = COMMENT.sub(lambda match: modules.append(match[0]) or "" if match["code"] else match[0], source)
    source = PROGRAM_LINES.sub(lambda match: _program_line(match[0], modules), _without_indents(source))
    source = FULL_LINE.sub(lambda match: "<!-- -->" if _is_in_html(match) else taken(match), source)
    source = TEMPLATE.sub(_template, source).replace("][^", "]\u200b[^")  # a link, and a footnote behind it
    source = BELOW_HTML.sub("\n\n", source)
    source = COMMENTED_TERM.sub(lambda match: chr(0xE100 + crc32(match[0].encode()) % 0x1000), source)
    source = re.sub(r"^\*\[[^\]\n]+\]:[ \t]*(?:#\S*)?$", "", source, flags=re.MULTILINE)  # without a text
    source = SNIPPET.sub(lambda match: modules.append(match[1]) or f"\n\n{match[2] or ''}\n\n", source)
    for sign in ("[", "{", "::"):  # a label or a variable, no formula
        source = source.replace(f"{sign}$", f"{sign}\\$")
    lines: list[str] = []
    indents: list[int] = []
    is_head = in_options = False
    for line in source.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        while line.strip() and indents and indent < indents[-1]:
            indents.pop()
        line = line[4 * len(indents) :] if indents else line
        titled = TITLED.match(line)
        in_options = is_head and line.strip() == "---" if not in_options else line.strip() != "---"
        if in_options or (titled is None and is_head and (OPTION.match(line) or line.strip() == "---")):
            modules.append(line)
            continue
        is_head = titled is not None
        if titled is None:
            lines.append(line)
            continue
        groups = [group for group in titled.groups()[1:] if group is not None]
        if re.fullmatch(r"\{[^{}]*\}", groups[-1]):  # attributes, no title
            groups[:] = [" ".join(groups)]
        lines += [
            *[""] * (":" not in titled[1]),
            f"{titled[1]}<!-- {groups[0]} -->",
            titled[1].replace(":", " ").rstrip(" "),
            *[titled[1].replace(":", " ") + title for title in groups[1:]],
            "",
        ]
        if groups[0].startswith(("!!!", "???", "===")):
            indents.append(4 * (len(indents) + 1) + (len(titled[1]) // 4) * 4)
    return "\n".join(lines), modules


def _without_modules(source: str, taken: Callable[[re.Match[str]], str]) -> str:
    """Return MDX without its modules; one ends at a blank line where its braces and backquotes are in pairs."""
    made, at = "", 0
    while match := MODULE.search(source, at):
        end = match.end()
        blanks = BLANK.finditer(source, end) if match["code"] else ()
        end = next(
            (at for at in (end, *(blank.start() for blank in blanks)) if _is_whole(source[match.start() : at])), end
        )
        module = re.compile(r".*", re.DOTALL).match(source, match.start(), end)
        assert module
        made, at = made + source[at : match.start()] + taken(module), end
    return made + source[at:]


def _is_whole(code: str) -> bool:
    return code.count("{") == code.count("}") and code.count("`") % 2 == 0


TEMPLATE = re.compile(
    CODE_SPAN.pattern + r"|(?P<code>:::[\w-]+(?:[ \t]+[\w-]+=\"[^\"\n]*\")*[ \t]*:::|"
    r"!\[(?:bg|w:|h:|width:|height:)[^\]\n]*\]\([^()\n]*\)|"
    + "".join(f"{MARKS[name].pattern}|" for name in ("include", "component", "keys"))
    + r"\{\{(?![<%])(?:[^{}\n]|\{[^{}\n]*\})*\}\}|\{%(?:(?!%\}).)*%\}|!?\[\[[^\[\]\n|]+(?:\||\]\](?![(\[]))|"
    r"(?<!\])\[\]\[[^\[\]\n]+\]|\{:?[ \t]*[.#][\w-][^{}\n]*\}|\{[\w-]+=[^{}\n]*\})",
    re.DOTALL,
)
"""Code of a template inside a line, a list of attributes, and a link of a wiki without a text of its own."""


PROGRAM_LINES = re.compile(
    "|".join(MARKS[name].pattern for name in ("head of a slide", "section of an RFC"))
    + r"|^[ \t]*:::[\w-]+(?:[ \t]+[\w-]+=\"[^\"\n]*\")*[ \t]*:::$|^[ \t]*(?:[-*] )?[a-z][\w-]*::(?:[ \t].*)?$"
    r"|^[ \t]*@[A-Z]\w*(?:\(.*|[ \t]*\{?[ \t]*)$|^\{[a-z][\w-]*: [^{}\n]*\}$|^::[a-z]+::$",
    re.MULTILINE,
)
"""Lines that a single program reads: Slidev, kramdown-rfc, DocFX, Logseq, DocC, Markua."""
DOCC_TEXT = re.compile(r"(?:\b(?:alt|title): *|@(?:Tab|DisplayName|TitleHeading)\()\"([^\"]*)\"")


def _program_line(line: str, modules: list[str]) -> str:
    """Return the text that people read of a line of markup, as paragraphs; its code goes to ``modules``."""
    texts = [found[found.lastindex or 1] for found in (*VISIBLE.finditer(line), *DOCC_TEXT.finditer(line))]
    modules.append(DOCC_TEXT.sub("", VISIBLE.sub(r"\1", line)))
    return "\n\n" + "".join(f"{text}\n\n" for text in texts)


def _without_indents(source: str) -> str:
    """Return a source whose text inside a directive of DocC, and in a row or column of DocFX, has no indent."""
    sizes: list[int] = []
    lines = []
    for line in source.split("\n"):
        if sizes and re.match(r"\s*(?:\}|:::(?:row|column)-end:::)\s*$", line):
            sizes.pop()
        lines.append(line[min(sum(sizes), len(line) - len(line.lstrip(" "))) :])
        if re.match(r"[ \t]*@[A-Z]\w*(?:\(.*\))?[ \t]*\{[ \t]*$", line):
            sizes.append(4)
        elif re.match(r"[ \t]*:::(?:row|column)\b(?!-).*:::[ \t]*$", line):
            sizes.append(3)
    return "\n".join(lines)


SNIPPET = re.compile(r"^(<<<[ \t]*[^\[\]\n]+)(?:\[([^\[\]\n]* [^\[\]\n]*)\])?[ \t]*$", re.MULTILINE)
"""The code of a file in VitePress, and its name in words."""
STARS = ("*", "_")
LIQUID_CODE = re.compile(
    r"^[ \t]*\{%-?\s*highlight\b.*?\{%-?\s*endhighlight\s*-?%\}|"
    r"^[ \t]*\{%-?\s*set\s+\w+\s*-?%\}(?=(?:(?!endset).)*[;{]\n).*?\{%-?\s*endset\s*-?%\}|"
    r"^[ \t]*\{\{<\s*(tab(?:pane)?)\s[^<>\n]*\blang=[^<>\n]*>\}\}.*?\{\{<\s*/\s*\1\s*>\}\}",
    re.MULTILINE | re.DOTALL,
)
"""Code of Liquid and Nunjucks, and of Docsy's tabs with a language."""


def _template(match: re.Match[str]) -> str:
    """Return a character for code that Markdown must not read; alike for the same code."""
    if match["code"] is None:
        return match[0]
    code = chr(0xE100 + crc32(VISIBLE.sub(r"\1", match["code"]).encode()) % 0x1000)
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    return f"{'†' * (before in STARS)}{code}{'†' * (after in STARS)}"  # a sign to a star, as the brace was


def _is_in_html(match: re.Match[str]) -> bool:
    """True if the line stands between lines of HTML, which a blank line would end."""
    above = match.string[: match.start()].rstrip(" \t").removesuffix("\n").rpartition("\n")[2].strip()
    below = match.string[match.end() :].removeprefix("\n").partition("\n")[0].strip()
    is_between = above.endswith((">", "}")) and below[:1] in ("", "<", "{")
    return not VISIBLE.search(match[0]) and (is_between or (bool(above) and below.startswith("</")))


ROLE_TARGET = re.compile(r"(.*\S)(\s*<[^<>]*>)\Z", re.DOTALL)
"""The title and the target of a role of MyST."""
FOREIGN = re.compile(r"\]\[[^\[\]=]+\]")
"""The label of a link that another program defines."""
BREAK = re.compile(r"</?(?:br|p)\b", re.IGNORECASE)
CALLOUT = re.compile(r"\[!\w[\w-]*\][+-]?")
"""The kind of a callout (Obsidian), which may have a title behind it."""
COMPONENT_TAG = re.compile("<[A-Z]")
INLINE = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|cite|code|del|em|font|i|ins|kbd|mark|q|s|samp|small|span|strong|sub|sup|u|var)\b", re.I
)
VISIBLE_OF_HTML = re.compile(
    r"(\s(?:alt|title|placeholder|aria-label|label(?==)|content)\s*=\s*)(?:\"([^\"]*)\"|'[^']*')"
)
VISIBLE = re.compile(
    r"(\s(?:(?:title|alt|caption|label|description|heading|placeholder|summary|subtitle|alt-text)="
    r"|(?:content|text|message|body)=(?=[\"'{][^\"'{}]*[^\W\d_]{2}[,;]?[ \t]+[^\W\d_]{2})))"
    r"(?=[\"'{])(?:\"([^\"{}]*)\"|'([^'{}]*)'|\{[ \t]*(?:\"([^\"{}\\\n]*)\"|'([^'{}\\\n]*)')[ \t]*\})"
)


def _visible(tag: str) -> re.Pattern[str]:
    """Return the pattern of the attributes of a tag that people read."""
    return VISIBLE if COMPONENT_TAG.match(tag) else VISIBLE_OF_HTML


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match[0] for match in pattern.finditer(text)]


def _parser() -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"linkify": False})
    for plugin in (footnote_plugin, deflist_plugin, tasklists_plugin):
        parser.use(plugin)
    return parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)


PARSER = _parser()
MDX_PARSER = _parser().disable("code")
"""In MDX an indent makes no code."""


def _markdown_blocks(source: str, parser: MarkdownIt) -> Iterator[Block]:
    path: list[str] = []
    for token in parser.parse(source):
        if token.nesting == 1:
            path.append(token.type.removesuffix("_open"))
            if token.type == "footnote_open":
                yield Block(
                    "/".join([*path, "begins"]), marks=[f"footnote {token.meta.get('label') or ''}"], is_text=False
                )
        elif token.nesting == -1:
            path.pop()
        elif token.type == "inline":
            block = Block("/".join(path))
            _inline(token.children or [], block)
            yield block
        elif token.type == "html_block":
            yield _of_html("/".join([*path, "html"]), token.content)
        else:
            yield Block("/".join([*path, token.type]), [("", token.content)], [token.info], is_text=False)


def _with_sorted_notes(blocks: list[Block]) -> list[Block]:
    """Return blocks with the footnotes in an order of their own: the parser's is that of their marks, which move."""
    notes: list[list[Block]] = []
    others = []
    for block in blocks:
        if not block.name.startswith("footnote_block/"):
            others.append(block)
            continue
        if block.name.endswith("/begins"):
            notes.append([])
        notes[-1].append(block)
    notes.sort(key=lambda note: (note[0].marks, words_of(" ".join(block.text for block in note))))
    return [*others, *(block for note in notes for block in note)]


def _of_html(path: str, content: str) -> Block:
    """Return HTML in Markdown as a block: its tags without what people read, and its text."""
    block = Block(path)
    in_code = 0
    for part in re.split(
        r"(<!--.*?(?:-->|\Z)|<(?:style|script)\b.*?</(?:style|script)>|<[/!?A-Za-z](?:[^>\"']|\"[^\"]*\"|'[^'\n]*')*>)",
        content,
        flags=re.S,
    ):
        if re.match("<[/!?A-Za-z]", part):
            shown = _visible(part)
            for match in shown.finditer(part):
                block.add("/attribute", f" {unescape(match[match.lastindex or 1])} ")
            block.marks.append(shown.sub(r"\1", part))
            if not INLINE.match(part):
                block.add("", " ")
            in_code += _of_code(part, in_code)
        elif in_code:
            block.marks.append(f"code {' '.join(part.split())}")
        else:
            block.add("", unescape(part))
    return block


CODE_TAG, CODE_TAG_END = (
    re.compile(r"<(?:code|pre|kbd|samp|var)\b", re.I),
    re.compile(r"</(?:code|pre|kbd|samp|var)\b", re.I),
)
"""Elements whose text is code."""


def _inline(tokens: list[Any], block: Block) -> None:
    around: list[str] = []
    closed = Counter(tag[2] for token in tokens if (tag := STYLE.fullmatch(token.content)) and tag[1])
    opened = Counter[str]()  # elements that such a tag opened
    in_code = in_address = 0
    before = ""
    n_ends = sum(bool(CODE_TAG_END.match(token.content)) for token in tokens)  # code without an end is a word in <>
    for token in tokens:
        n_ends -= bool(CODE_TAG_END.match(token.content))
        place = "".join(around)
        is_role, before = before.endswith("}"), token.content
        in_address += token.nesting * (token.markup == "autolink")
        if token.markup == "autolink":
            continue
        if in_address or (in_code and token.type in ("text", "softbreak")):
            block.marks.append(f"kept {token.content}")
        elif token.nesting == 1:
            block.marks.append(f"{token.tag} {token.attrs.get('href', '')}".strip())
            around.append(inside("", block.marks[-1], len(block.marks)))
        elif token.nesting == -1:
            around.pop()
        elif token.type == "text":
            if not block.pieces and (callout := CALLOUT.match(token.content)):
                block.marks.append(callout[0])
                token.content = token.content[callout.end() :]
            block.marks += FOREIGN.findall(token.content)
            block.add(place, FOREIGN.sub("]", token.content))
        elif token.type in ("softbreak", "hardbreak"):
            block.add(place, " ")
            if token.type == "hardbreak":
                block.marks.append("line break")
        elif token.type == "image":
            block.marks.append(f"image {token.attrs.get('src', '')}")
            block.add(f"{place}/image", token.content)
        elif token.type == "html_inline" and (tag := STYLE.fullmatch(token.content)) and (closed[tag[2]] or tag[1]):
            opened[tag[2]] += 1 if not tag[1] else -1
            if not tag[1]:
                closed[tag[2]] -= 1
                block.marks.append(tag[2])
                around.append(inside("", tag[2], len(block.marks)))
            elif opened[tag[2]] >= 0 and around and around[-1].startswith(f"/{tag[2]}\0"):
                around.pop()
            opened[tag[2]] = max(0, opened[tag[2]])
        elif token.type == "code_inline" and (role := ROLE_TARGET.match(token.content)) and is_role:
            block.marks.append(f"role {role[2]}")
            block.add(place, role[1])
        else:  # code, HTML, math, footnotes
            if token.type == "html_inline" and (n_ends or CODE_TAG_END.match(token.content)):
                in_code += _of_code(token.content, in_code)
            _mark(token, block, place)


def _of_code(tag: str, depth: int) -> int:
    """Return what a tag adds to the number of open elements of code."""
    return bool(CODE_TAG.match(tag)) - bool(depth and CODE_TAG_END.match(tag))


def _mark(token: Any, block: Block, place: str) -> None:
    """Add a token that is no text as a mark, and the attributes that people read of a tag as text."""
    content = token.content
    if token.type == "code_inline":
        block.add(place, chr(0xE100 + crc32(content.encode()) % 0x1000))
    if token.type == "html_inline":
        if BREAK.match(content):
            block.add(place, " ")
        shown = _visible(content)
        for match in shown.finditer(content):
            block.add("/attribute", f" {unescape(match[match.lastindex or 1])} ")
        content = shown.sub(r"\1", content)
    block.marks.append(f"{token.type} {content or token.meta.get('label', '')}")
