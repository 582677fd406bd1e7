"""Lines that Markdown's dialects read as markup: admonitions, shortcodes, components, formulas, tables of other kinds.

Each function gets the lines from one on and returns a ``Lines`` if they are its markup.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from itertools import takewhile

from dragoman.documents.markdown import programs
from dragoman.documents.markdown.jsx import MODULE, module_lines, tag_end
from dragoman.documents.markdown.lines import MOST_LINES, Around, Lines, Text, lines_until, title_of
from dragoman.documents.markdown.masks import closed, is_mention, spans


def _names(text: str) -> frozenset[str]:
    """Return the names that a text lists, separated by spaces."""
    return frozenset(text.split())


PROSE = _names(
    "note warning tip important caution attention danger error hint seealso admonition dropdown card card-item grid "
    "grid-item grid-item-card tab-set tab-item tabs tab margin sidebar topic epigraph highlights pull-quote compound "
    "container rubric versionadded versionchanged deprecated versionremoved todo figure table list-table centered "
    "glossary definition theorem proof lemma exercise solution prf:theorem prf:proof aside details info callout "
    "button div exercise-start exercise-end solution-start solution-end only toggle"
)
"""Directives of MyST whose content is Markdown."""
_TITLED = PROSE - _names(
    "figure grid tab-set card-item container only tabs div glossary solution solution-start solution-end exercise-end"
)
"""Those whose argument is a title, and not an address, a class or a label."""
_NO_TITLE = _names("html caption figure-caption table-caption")
"""Blocks of PyMdown whose argument is no title."""
_LITERAL = _names(
    "mermaid code code-block code-cell sourcecode math raw eval-rst toctree include literalinclude image graphviz "
    "parsed-literal doctest testcode testoutput highlight currentmodule contents index plantuml"
)
_LANGUAGES = _names(
    "r rcpp python python3 julia bash sh shell zsh fish powershell sql js javascript ts typescript jsx tsx ojs node "
    "stan css scss sass less html xml json yaml toml dot d3 rust go c cpp c++ cs csharp java scala kotlin perl ruby "
    "php lua haskell ocaml fsharp clojure elixir erlang swift matlab octave fortran latex tex tikz asy awk sed groovy "
    "cat embed verbatim block targets webr-r pyodide-python shinylive-r shinylive-python glue jupyter-execute ipython "
    "bibliography plot tableofcontents program-output command-output iframe exec"
)
"""Languages of code that R Markdown and Quarto run, and directives without words, in the braces of a fence."""
_LITERAL_PAIRS = {
    "{{<": re.compile(
        r"\{\{<\s*((?:highlight|code[\w-]*|mermaid|math|katex|chem|goat|plantuml|raw\w*)\b|tab(?:pane)?(?=\s[^<>]{0,200}\blang=))"
    ),
    "{{%": re.compile(r"\{\{%\s*(highlight|code[\w-]*|mermaid|math|katex|chem)\b"),
    "{%": re.compile(r"\{%-?\s*(highlight|comment|code|mermaid|codeblock|uml|plantuml)\b"),
}
_RAW = re.compile(r"\{\{<\s*raw")
_ANY_TAG = re.compile(r"\{\{[^{}]*\}\}|<[^<>]*>")
_CAPTURE = re.compile(r"\{%-?\s*(set|capture)\s+[\w.]+\s*-?%\}")
"""A block whose content a template stores, for Nunjucks, Jinja and Liquid: text, or a program that a page shows."""
_ENTITY = re.compile(r"&#?\w{1,31};\Z")
_LITERAL_END = re.compile(r"\{(?:\{[<%]|%-?)\s*+(?:/\s*+|end)([\w-]+)")

_COLONS = re.compile(r"(:{3,})[ \t]*(\{[^{}\n]*\}|[\w-]*)[ \t]*(.*)")
_COMPONENT_LINE = re.compile(r"::(?:[A-Za-z][\w-]*(?:\[([^\[\]\n]*)\])?(?:\{[^\n]*\}|::)?)?\Z")
"""A line of a component in Nuxt's MDC, of a leaf directive of remark, or of a slot of Slidev; its end is ``::``."""
_SLOT = re.compile(r"#[a-z][\w-]*(?:\{[^{}\n]*\})?\Z")
_YAML_KEY = re.compile(r"[\w-]+:(?:[ \t]|\Z)")
_NAMED = re.compile(r"\{[ \t]*[\w:+-][\w:.+-]*[ \t]*\}\Z")
"""The name of a directive in braces; other braces hold attributes, as in Pandoc's ``::: {style="color: red"}``."""
_OBJECT = re.compile(r":::[ \t]+[\w-]+(?:[.:/][\w-]+)+[ \t]*\Z")
"""An object of a program that mkdocstrings documents in its place; indented lines below are its options."""
_ADMONISH = re.compile(r"(`{3,}|~{3,})[ \t]*admonish\b([^`]*)\Z")
"""The first line of a box of mdbook-admonish, whose inside is Markdown."""
_ADMONISH_TITLE = re.compile(r"(?<=title=)(?:\"([^\"\n]*)\"|'([^'\n]*)')|(?<=[ \t])\"([^\"\n]*)\"[ \t]*\Z")
_MYST_FENCE = re.compile(r"(`{3,}|~{3,})\{([\w:-]+)\}[ \t]*(.*)")
_FENCE_END = re.compile(r"(`{3,}|~{3,})[ \t]*\Z")
_FIELD = re.compile(r":[\w-]+:(?:[ \t].*)?\Z")
_SHOWN_FIELD = re.compile(r":(?:alt|caption|title):[ \t]+(\S.*)")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]?[\w-]+(?:[ \t]+[\w-]+)*(?:[ \t]+\"(.*)\")?[ \t]*\Z")
_TAB = re.compile(r"===[!+]?[ \t]+(?:\"(.+)\"|'(.+)')[ \t]*\Z")
_SLASHES = re.compile(r"/{3,}[ \t]*+(?:([\w-]++)[ \t]*+(?:\|[ \t]*+(.*))?)?\Z")
_OPTION = re.compile(r"[\w-]+:(?:[ \t].*)?\Z")
_ABBREVIATION = re.compile(r"\*\[[^\]\n]+\]:[ \t]*")
_SNIPPET = re.compile(r"(?:;*+-++8<-++.*|<<<[ \t]*+\S.*|\[TOC\]|\[\[_?TOC_?\]\]|\[\[toc\]\]|\[toc\]|\^{3,})\Z")
_NAMED_SNIPPET = re.compile(r"<<<[ \t]*+[^\s\[\]][^\[\]]*+\[(?=[^\[\]]*?[^\W\d_][ \t])([^\[\]]*+)\]\Z")
"""The code of a file in VitePress, and its name in words."""
_LATEX = re.compile(r"\\(?!begin\b)[a-zA-Z]+\*?(?:\[[^\]\n]*\])?(?:\{[^{}\n]*\})*[ \t]*\Z")
_BEGIN = re.compile(r"\\begin\{([\w*]+)\}")
_END = re.compile(r"\\end\{([\w*]+)\}")
ATTRIBUTE_LIST = re.compile(r"\{:?[ \t]*[#.][^{}]*\}\Z")
_CODE_IN_BRACKETS = re.compile(r"\[(prism|code|raw|highlight|mermaid|plantuml|pre)(?:[ \t=][^\]\n]*)?\]")
_PAGE_CODE = re.compile(r"<(script|style|pre)(?=[\s>])", re.IGNORECASE)
_TARGET = re.compile(r"\([\w:.-]+\)=[ \t]*\Z")
_GRID = re.compile(r"\+(?:[-=:]+\+)+[ \t]*\Z")
_LABEL = re.compile(r"(?<=\$\$)[ \t]*\([\w:.-]+\)\Z")
"""The label of a formula in MyST."""
_RULER = re.compile(r"-{2,}(?:[ \t]+-{2,})+[ \t]*\Z")
_FULL_RULER = re.compile(r"-{5,}[ \t]*\Z")
_MOST_OF_A_HEAD = 50
"""Largest number of lines of the headings of a table."""
_IMPORT_START = re.compile(r"import\s*(?:[\w$]+\s*,\s*)?\{[^}'\"]*\Z")


_MDX_EXPORT = re.compile(r"export\s+(?:default\s+(?:[\w$.]+[ \t]*\Z|\[)|(?:let|var)\s+[\w$]+[ \t]*(?:;|\Z))")
"""Exports that no program but MDX expects in Markdown: elsewhere these words may be prose."""


def recognised(lines: Text, around: Around) -> Lines | None:
    """Return the lines of a dialect's markup that begin here; None if it is ordinary Markdown."""
    start, end = lines[0]
    recognisers = _BY_SIGN.get(around.source[start : start + 1], ())
    text = around.source[start:end].rstrip()
    made = next((made for recogniser in recognisers if (made := recogniser(text, lines, around))), None)
    signs = [around.source[first : first + 2] for first, _ in lines[:2]]
    return _simple_table(lines, around.source) if made is None and "--" in signs else made


def _options(lines: Text, around: Around) -> int:
    """Return the number of lines of a directive's head: its first line and its options."""
    count = 1
    while count < len(lines) and _FIELD.match(around.source[lines[count][0] : lines[count][1]].rstrip()):
        count += 1
    if count == 1 and len(lines) > 1 and around.source[lines[1][0] : lines[1][1]].rstrip() == "---":
        return 1 + lines_until(lines[1:], around, "options", lambda line: line == "---") if len(lines) > 2 else 1
    return count


def _option_titles(lines: Text, count: int, around: Around) -> tuple[tuple[int, int, str], ...]:
    """Return the places of the texts among the options of a directive, counted from its first character."""
    matches = (_SHOWN_FIELD.match(around.source, *lines[i]) for i in range(1, count))
    return tuple(
        (m.start(1) - lines[0][0], m.start(1) - lines[0][0] + len(m[1].rstrip()), "text") for m in matches if m
    )


def _colons(text: str, lines: Text, around: Around) -> Lines | None:
    if component := _COMPONENT_LINE.match(text):
        return _component_head(lines, around, title_of(text, *component.span(1)) if component[1] else ())
    if _OBJECT.match(text):
        sources = (around.source[start:end] for start, end in lines[1:])
        return Lines(1 + sum(1 for _ in takewhile(lambda line: line.startswith((" ", "\t")) and line.strip(), sources)))
    match = _COLONS.match(text)
    if match is None:
        return None
    name = match[2].strip("{} ")
    in_braces = bool(_NAMED.match(match[2]))
    if name in _LITERAL or (in_braces and not _is_prose(name)):
        length = len(match[1])
        kind = f"colons {min(length, 20)}"  # few kinds, so that few searches are without success
        count = lines_until(lines, around, kind, lambda line: line.strip(":") == "" and len(line) >= length)
        if not _is_code_directive(name) and count >= 3:
            return Lines(count, why=f"the directive {name} is not known")
        shows_text = name == "raw" or (name == "highlight" and not in_braces)
        return Lines(count or 1, why=_why_raw(lines[1:count], around.source) if shows_text else "")
    if in_braces:
        titles = title_of(text, *match.span(3)) if _has_title(name) else ()
        count = _options(lines, around)
        return Lines(count, (*titles, *_option_titles(lines, count, around)))
    titles = () if name == "code-group" else title_of(text, match.start(3), match.end(3))
    if not match[2] and match[3].startswith(("<", "|")):
        return None
    return _component_head(lines, around, titles)


def _component_head(lines: Text, around: Around, titles: tuple[tuple[int, int, str], ...]) -> Lines:
    """Return the first line of a component and its options, which are YAML between two lines ``---``."""
    if len(lines) > 2 and _YAML_KEY.match(around.source, *lines[2]):
        count = _options(lines, around)
        sources = (around.source[slice(*lines[i])] for i in range(2, count - 1))
        if any(programs.TEXT_OF_YAML.search(source) for source in sources):
            return Lines(count, why="the options of a component are not translated")
        return Lines(count, titles)
    return Lines(1, titles)


def _slot(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise the name of a component's slot in Nuxt's MDC, such as ``#title``."""
    return Lines() if around.components and _SLOT.match(text) else None


def _fence(text: str, lines: Text, around: Around) -> Lines | None:
    if end := _FENCE_END.match(text):
        if not around.fences or around.fences[-1][0] != end[1][0] or len(end[1]) < len(around.fences[-1]):
            return None
        if not around.silent:
            around.fences.pop()
        return Lines()
    admonish = _ADMONISH.match(text)
    match = admonish or _MYST_FENCE.match(text)
    if match is None:
        return None
    if not admonish and not _is_prose(match[2]):
        return _unknown_fence(match, lines, around)
    if not around.silent:
        around.fences.append(match[1])
    if admonish:
        title = _ADMONISH_TITLE.search(text, admonish.start(2))
        if title and "<" in title[title.lastindex or 0]:
            return Lines(1, why="a title with HTML is not translated")
        return Lines(
            1, ((*title.span(title.lastindex or 0), "quoted"),) if title and title[title.lastindex or 0] else ()
        )
    titles = title_of(text, *match.span(3)) if _has_title(match[2]) else ()
    count = _options(lines, around)
    return Lines(count, (*titles, *_option_titles(lines, count, around)))


def _is_prose(directive: str) -> bool:
    """True if the content of a directive is Markdown; those of sphinx-proof all are."""
    return directive in PROSE or directive.startswith("prf:")


def _has_title(directive: str) -> bool:
    return directive in _TITLED or directive.startswith("prf:")


def _is_code_directive(name: str) -> bool:
    """True if the content of a directive is code, or the documentation of an object."""
    return name in _LITERAL or ":" in name or name.startswith("auto")


def _unknown_fence(match: re.Match[str], lines: Text, around: Around) -> Lines | None:
    """Return a directive in a fence with words that may be text, to be reported; any other is code."""
    fence, name = match[1], match[2]
    if _is_code_directive(name) or name.lower() in _LANGUAGES:
        return None
    kind = f"fence {fence[:20]}"  # few kinds, so that few searches are without success
    count = lines_until(lines, around, kind, lambda line: line.startswith(fence) and not line.strip(fence[0]))
    has_text = any(programs.TEXT_OF_YAML.search(around.source[slice(*line)]) for line in lines[1 : count - 1])
    return Lines(count, why=f"the directive {name} is not known") if count and has_text else None


def _admonition(text: str, lines: Text, around: Around) -> Lines | None:
    match = _ADMONITION.match(text) or _TAB.match(text)
    if match is None:
        return None
    group = next((i for i in range(1, (match.lastindex or 0) + 1) if match[i]), 0)
    if group:
        return Lines(1, ((*match.span(group), "quoted"),), 4)
    words = " ".join(word for word in text.split() if word not in ("inline", "end"))
    why = "words of an admonition without quotes are not translated" if programs.TEXT_OF_YAML.search(words) else ""
    return Lines(indent=4, why=why)


def _slashes(text: str, lines: Text, around: Around) -> Lines | None:
    match = _SLASHES.match(text)
    if match is None:
        return None
    count = 1
    while count < len(lines) and around.source[lines[count][0] - 4 : lines[count][0]].isspace():
        if not _OPTION.match(around.source[lines[count][0] : lines[count][1]].rstrip()):
            break
        count += 1
    has_title = match[2] and match[1] not in _NO_TITLE
    return Lines(count, title_of(text, *match.span(2)) if has_title else ())


def _abbreviation(text: str, lines: Text, around: Around) -> Lines | None:
    match = _ABBREVIATION.match(text)
    return Lines(1, title_of(text, match.end(), len(text))) if match else None


def _single(text: str, lines: Text, around: Around) -> Lines | None:
    if named := _NAMED_SNIPPET.match(text):
        return Lines(1, title_of(text, *named.span(1)))
    if _LATEX.match(text):
        has_words = any(map(programs.TEXT_OF_YAML.search, text.split("{")[1:]))
        return Lines(why="a command of LaTeX is not translated" if has_words else "")
    if text.startswith("+++"):
        return Lines(why="a line of +++ is not translated" if programs.TEXT_OF_YAML.search(text) else "")
    return Lines() if _SNIPPET.match(text) or _TARGET.match(text) else None


def _brackets(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise code between shortcodes in brackets, such as ``[prism]`` and ``[/prism]``."""
    match = _CODE_IN_BRACKETS.match(text)
    if match is None:
        return None
    closing = f"[/{match[1]}]"
    count = 1 if text.endswith(closing) else lines_until(lines, around, closing, lambda line: line.endswith(closing))
    return Lines(count) if count else None


def _braces(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise lines that hold nothing but shortcodes, attribute lists and expressions."""
    if count := code_of_template(text, lines, around):
        return Lines(count, why=_why_raw(lines[:count], around.source) if _RAW.match(text) else "")
    start = place = lines[0][0]
    source, limit = around.source, lines[min(len(lines), 200) - 1][1]
    while place < limit:
        signs = closed(source, place)
        if signs:
            end = source.find(signs[1], place + len(signs[0]), limit)
            end = -1 if end < 0 or is_mention(source, place, signs[0], end) else end + len(signs[1])
        elif source[place] == "{" and place in around.braces:
            end = around.braces[place] + 1
        elif (
            source[place] == "{"
            and (own := spans(source[place : place + 500].split("\n")[0], False))
            and not own[0].start
        ):
            end = place + own[0].end if own[0].kind == "point" else -1
        else:
            end = -1
        if end < 0 or end > limit:
            return None
        line = _line_of(lines, end)
        place = end
        while place < lines[line][1] and source[place] in " \t":
            place += 1
        if place == lines[line][1]:
            return Lines(line + 1, joins=not line and bool(ATTRIBUTE_LIST.match(text)))
        if source[place] not in "{<" or place == start:
            return None
    return None


def tag_of_code(source: str, at: int = 0) -> re.Match[str] | None:
    """Return the match of a shortcode or a tag of a template that begins at a place, and encloses code."""
    signs = closed(source, at)
    pair = _LITERAL_PAIRS.get(signs[0]) if signs else None
    return pair.match(source, at) if pair is not None else None


def code_of_template(text: str, lines: Text, around: Around) -> int:
    """Return the number of lines of code that begin here between two tags of a template; 0 if none do."""
    literal = tag_of_code(around.source, lines[0][0])
    match = literal or _CAPTURE.match(text)
    if match is None:
        return 0
    name, above = match[1], ""

    def ends(line: str) -> bool:
        nonlocal above
        above = f"{above} {line}"[-1_000:]  # a tag may stand on several lines
        return any(closing[1] == name for closing in _LITERAL_END.finditer(above))

    count = 0 if ends(text) else lines_until(lines, around, name, ends)
    inside = lines[1 : max(1, count - 1)]
    return count if literal or any(_is_code(around.source[slice(*line)]) for line in inside) else 0


def _is_code(line: str) -> bool:
    """True if a line ends as those of a program do, and not in an expression of a template or an entity."""
    line = line.rstrip()
    return line.endswith(("{", "}", ";")) and not line.endswith(("}}", "%}")) and not _ENTITY.search(line)


def _why_raw(lines: Text, source: str) -> str:
    """Return the reason why lines are left, if they have words outside of tags; otherwise nothing."""
    words = _ANY_TAG.sub(" ", " ".join(source[slice(*line)] for line in lines))
    return "raw text is not translated" if programs.TEXT_OF_YAML.search(words) else ""


def _line_of(lines: Text, place: int) -> int:
    """Return the number of the line in which a place is."""
    return min(bisect_left(lines, place, key=lambda line: line[1]), len(lines) - 1)


def _component(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise lines that hold nothing but tags of MDX or of a template."""
    if text.startswith(("<%", "<?")):
        return _braces(text, lines, around)
    if text.startswith("<!--") and around.mdx:
        count = 1 if "-->" in text else lines_until(lines, around, "comment", lambda line: "-->" in line)
        return Lines(count) if count else None
    if not around.mdx:
        return None
    if (code := _PAGE_CODE.match(text)) and not text.endswith("/>"):
        closing = f"</{code[1].lower()}>"
        is_one_line = closing in text.lower()
        count = 1 if is_one_line else lines_until(lines, around, closing, lambda line: closing in line.lower())
        return Lines(count) if count else None
    lines = lines[:500]
    place, source = lines[0][0], around.source
    while True:
        end = tag_end(source, place, around.braces) if source[place : place + 1] == "<" else None
        if end is None and place in around.braces:
            end = around.braces[place] + 1
        if end is None or end > lines[-1][1]:
            return None
        line = _line_of(lines, end)
        place = end
        while place < lines[line][1] and source[place] in " \t":
            place += 1
        if place == lines[line][1]:
            return Lines(line + 1)


def _dollars(text: str, lines: Text, around: Around) -> Lines | None:
    if not text.startswith("$$"):
        return None
    label = _LABEL.search(text)
    text = text[: label.start()] if label else text
    if len(text) > 4 and text.endswith("$$"):
        return Lines()
    if "$$" in text[2:]:
        return None
    count = lines_until(lines, around, "dollars", lambda line: "$$" in line)
    last = around.source[slice(*lines[count - 1])].strip() if count else ""
    return Lines(count) if count and (last.startswith("$$") or last.endswith("$$")) else None


def _formula(text: str, lines: Text, around: Around) -> Lines | None:
    if text in ("\\[", "\\\\["):
        closing = text.replace("[", "]")
        return Lines(count) if (count := lines_until(lines, around, text, lambda line: line == closing)) else None
    begin = _BEGIN.match(text)
    if begin is None:
        return None
    ends = around.formula_ends.get(begin[1], [])
    i = bisect_left(ends, lines[0][0])
    lines = lines[:MOST_LINES]
    return Lines(1 + _line_of(lines, ends[i])) if i < len(ends) and ends[i] < lines[-1][1] else None


def ends_of_formulas(source: str) -> dict[str, list[int]]:
    """Return the places of the ends of formulas such as ``\\end{align}``, by the names of their environments."""
    ends: dict[str, list[int]] = {}
    for match in _END.finditer(source):
        ends.setdefault(match[1], []).append(match.start())
    return ends


def _module(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise imports and exports of MDX."""
    start = lines[0][0]
    if around.silent or (start and around.source[start - 1] != "\n"):
        return None  # in a paragraph it is a word
    is_module = MODULE.match(text) or (around.mdx and _MDX_EXPORT.match(text))
    if not is_module and not (_IMPORT_START.match(text) and " from " in around.source[start : start + 2000]):
        return None
    if start < around.misses.get("module", -1):
        return None
    lines = lines[:MOST_LINES]
    count = module_lines(around.source, lines)
    if not count:
        around.misses["module"] = lines[-1][1]
    return Lines(count or 1)


def _comment(text: str, lines: Text, around: Around) -> Lines | None:
    if text == "%%":
        return Lines(count) if (count := lines_until(lines, around, "percent", lambda line: line == "%%")) else None
    return Lines() if text.startswith("%%") and text.endswith("%%") and len(text) > 4 else None


def _grid(text: str, lines: Text, around: Around) -> Lines | None:
    if not _GRID.match(text):
        return None
    count = lines_until(lines, around, "grid", lambda line: not line.startswith(("|", "+")))
    return Lines(count - 1 if count else len(lines), why="a grid table cannot be translated")


def _simple_table(lines: Text, source: str) -> Lines | None:
    """Return the lines of a table whose columns are set off by spaces, as Pandoc reads it.

    One with blank lines between its rows begins and ends with a ruler: a full one above its headings, or the one of its
    columns if it has none.
    """

    def text(i: int) -> str:
        return source[slice(*lines[i])].strip()

    first, numbers, last = text(0), range(1, len(lines)), 0
    if _FULL_RULER.match(first):
        head = next((i for i in numbers[:_MOST_OF_A_HEAD] if not text(i).strip("- \t")), 0)
        if head > 1 and _RULER.match(text(head)):
            last = next((i for i in numbers[head:] if _FULL_RULER.match(text(i))), 0)
    elif _RULER.match(first) and len(lines) > 1 and text(1):
        last = next((i for i in numbers if text(i) and not text(i).strip("- \t")), 0)
        if text(last) != first or not any(_has_gap(lines[i], lines[0], source) for i in numbers[: max(0, last - 1)]):
            last = 0
    if not last and any(_RULER.match(text(i)) for i in range(min(2, len(lines)))):
        last = next((i for i in numbers if not text(i)), len(lines)) - 1
    return Lines(last + 1, why="a table with columns of spaces cannot be translated") if last else None


def _has_gap(row: tuple[int, int], ruler: tuple[int, int], source: str) -> bool:
    """True if a row has words on both sides of several spaces where its ruler has its first gap."""
    begin = source.rfind("\n", 0, ruler[0]) + 1
    gap = ruler[0] - begin + len(source[slice(*ruler)].split()[0])
    own = source[source.rfind("\n", 0, row[0]) + 1 : row[1]]
    before, behind = own[:gap], own[gap:]
    spaces = len(before) - len(before.rstrip()) + len(behind) - len(behind.lstrip())
    return behind[:1] == " " and spaces > 1 and bool(before.strip() and behind.strip())


_BY_SIGN: dict[str, tuple[Callable[[str, Text, Around], Lines | None], ...]] = {
    ":": (programs.colons, _colons), "`": (_fence,), "~": (_fence,), "!": (_admonition,), "?": (_admonition,),
    "=": (_admonition,), "/": (_slashes,), "*": (_abbreviation,), "{": (_braces, programs.braces),
    "<": (_single, _component), "$": (_dollars,), "\\": (_formula, _single), "(": (_single,), ";": (_single,),
    "[": (_brackets, programs.brackets, _single), "-": (programs.head_of_a_slide, _single), "@": (programs.at_sign,),
    "}": (programs.closing_brace,), "%": (programs.percent, _comment), "#": (_slot,), "+": (_single, _grid),
    "^": (_single,), "i": (_module,), "e": (_module,),
}  # fmt: skip
