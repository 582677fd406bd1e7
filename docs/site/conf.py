"""Settings of Sphinx, for either language; ``python -m docs.site`` gives the language and the folders."""

from __future__ import annotations

import itertools
import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from docutils import nodes  # noqa: E402
from docutils.nodes import SkipNode  # noqa: E402
from docutils.utils.math.latex2mathml import tex2mathml  # noqa: E402
from sphinx.errors import ExtensionError  # noqa: E402

import dragoman  # noqa: E402

project, author, release = "dragoman", "the dragoman maintainers", dragoman.__version__
copyright = author
language = os.environ.get("DRAGOMAN_DOCS_LANGUAGE", "en")
is_chinese = language == "zh_CN"

extensions = ["myst_nb"]
myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline", "attrs_block", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"  # a page whose code has not changed is not run again
nb_execution_cache_path = str(HERE.parent / "_build/executed")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

locale_dirs = [str(HERE / "locale")]
templates_path = [str(HERE / "templates")]
html_static_path = [str(HERE / "static")]
html_theme = "furo"
html_title = "dragoman"
html_favicon = str(HERE / "static/icon.svg")
html_css_files = ["dragoman.css"]
html_search_scorer = str(HERE / "search-order.js")
html_search_options = {"dict": str(HERE / "words.txt")}  # words that the index would cut into single characters
html_js_files = ["dragoman.js", *(["search-words.js"] if is_chinese else [])]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_use_index = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00527f", "color-brand-content": "#00527f"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ec", "color-brand-content": "#7cc0ec"},
}
html_context = {"is_chinese": is_chinese}
pygments_style, pygments_dark_style = "default", "github-dark"
suppress_warnings = ["myst.strikethrough"]
html_math_renderer = "mathml"


MATHML = "http://www.w3.org/1998/Math/MathML"
MARKS = re.compile(r"[,.;:!?)，。；：！？）、”]+")
"""Punctuation that may not begin a line."""
APPLIED = "\u2061"
"""The invisible sign between the name of a function and what it is applied to."""


def _mathml(text: str, as_block: bool) -> str:
    """A formula, with an index beside its accented letter and a gap behind *log*, where docutils has it otherwise."""
    ElementTree.register_namespace("", MATHML)
    formula = ElementTree.fromstring(tex2mathml(text, as_block=as_block).replace("&ApplyFunction;", APPLIED))
    for node in list(formula.iter(f"{{{MATHML}}}munderover")):
        base, below, above = node
        if above.get("stretchy") == "false":
            accented = ElementTree.Element(f"{{{MATHML}}}mover", accent="true")
            accented[:] = [base, above]
            node.tag, node[:] = f"{{{MATHML}}}msub", [accented, below]
    for node in formula.iter():
        for i, (child, following) in reversed(list(enumerate(itertools.pairwise(list(node))))):
            if child.text == APPLIED and following.text not in ("(", "{"):
                node.insert(i + 1, ElementTree.Element(f"{{{MATHML}}}mspace", width="0.17em"))
    return ElementTree.tostring(formula, encoding="unicode")


def _inline(self: Any, node: Any) -> None:
    formula = _mathml(node.astext(), as_block=False)
    if marks := node.get("marks"):
        formula = f'<span style="white-space: nowrap">{formula}{marks}</span>'
    self.body.append(formula)
    raise SkipNode


def _keep_marks(_: Any, doctree: Any, __: str) -> None:
    """Hold the punctuation behind an inline formula on its line; browsers would break the line before it."""
    for formula in list(doctree.findall(nodes.math)):
        following = formula.parent.index(formula) + 1
        text = formula.parent[following] if following < len(formula.parent) else None
        if isinstance(text, nodes.Text) and (marks := MARKS.match(text.astext())):
            formula["marks"] = marks[0]
            formula.parent[following] = nodes.Text(text.astext()[marks.end() :])


def _block(self: Any, node: Any) -> None:
    self.body.append(f'<div class="math">{_mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


IN_CHINESE = {
    "Toggle site navigation sidebar": "显示或隐藏导航",
    "Toggle table of contents sidebar": "显示或隐藏本页目录",
    "Toggle Light / Dark / Auto color theme": "切换浅色、深色、自动",
    "Toggle navigation of": "展开或收起",
    "<title>Contents</title>": "<title>目录</title>",
    "<title>Menu</title>": "<title>菜单</title>",
    "<title>Expand</title>": "<title>展开</title>",
    "<title>Light mode</title>": "<title>浅色</title>",
    "<title>Dark mode</title>": "<title>深色</title>",
    "<title>Auto light/dark, in light mode</title>": "<title>自动，当前浅色</title>",
    "<title>Auto light/dark, in dark mode</title>": "<title>自动，当前深色</title>",
}
"""What the theme writes into its pages without asking for a translation."""


def _finished(app: Any, error: Exception | None) -> None:
    """What Sphinx leaves out of its tables and pictures.

    A table's corner without a word is no heading: a reader of the page aloud would announce one. A drawing says how
    much room it needs, and below the first one is loaded when it comes into view. The style of cells is for pages that
    have some.
    """
    if error is not None or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        new = re.sub(r"<th (class=\"head[^\"]*\")>(?:<p></p>)?</th>", r"<td \1></td>", text)
        if 'class="cell' not in new:
            new = re.sub(r"<link [^>]*mystnb[^>]*>\n? *", "", new)
        drawings = re.findall(r'<img (?!loading|width)[^>]*src="([^"]+\.svg)"', new)
        for i, source in enumerate(dict.fromkeys(drawings)):
            room, is_wide = _room((path.parent / source).read_text(encoding="utf-8"))
            late = ('loading="lazy" ' if i else "") + ('class="wide" ' if is_wide else "")
            new = re.sub(rf'<img (?!loading|width)([^>]*src="{re.escape(source)}")', rf"<img {late}{room} \1", new)
        if new != text:
            path.write_text(new, encoding="utf-8")


WIDE = 580
"""Pixels: shrunk to a phone, letters of a wider drawing can no longer be read; it is pushed sideways instead."""


def _room(drawing: str) -> tuple[str, bool]:
    """Width and height of a drawing in pixels, as attributes, and whether it is wide; a point is 4/3 of a pixel."""
    width, height = re.findall(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', drawing)[0]
    scale = 4 / 3 if re.match(r"<svg [^>]*width=\"[\d.]+pt\"", drawing) else 1
    return f'width="{float(width) * scale:.0f}" height="{float(height) * scale:.0f}"', float(width) * scale > WIDE


def _in_chinese(app: Any, error: Exception | None) -> None:
    if error is not None or not is_chinese or app.builder.name != "html":
        return
    missing = set(IN_CHINESE)
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for english, chinese in IN_CHINESE.items():
            if english in text:
                missing.discard(english)
                text = text.replace(english, chinese)
        path.write_text(text, encoding="utf-8")
    if missing:
        raise ExtensionError(f"docs/site/conf.py: IN_CHINESE: the theme does not say {sorted(missing)} any more")


def setup(app: Any) -> None:
    """Formulas become MathML, which browsers draw without a script."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("doctree-resolved", _keep_marks)
    app.connect("build-finished", _finished)
    app.connect("build-finished", _in_chinese)
