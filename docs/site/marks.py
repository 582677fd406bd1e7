"""Places that a site can lead to and a forge cannot: a line of code, a marked cell of a table, a box of a drawing.

In a page, ``[`attend`](../src/attention.py)`` leads to the line that defines ``attend`` or has that text, and so does
``[attention.py](../src/attention.py) `scores = q @ k.mT` ``; ``<span id="here">`` is a mark that ``page.md#here`` leads
to. In a drawing, ``<a href="#here"><rect .../>`` is a box that leads to a mark of the page which shows it. On a forge
the first lead to the file, the others to the page.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

CODE = re.compile(r"\[(?:`([^`\n]+)`|[^\]`\n]+)\]\(([^)\s#]+\.py)\)(?: `([^`\n]+)`)?")
"""A link to code, and the code that it names: its text, or what follows it."""
TO_MARK = re.compile(r"\[([^\]\n]+)\]\(([^)\s#]*\.md)#([\w-]+)\)")
MARK = re.compile(r'<span id="([\w-]+)">')
DRAWING = re.compile(r"^!\[([^\]\n]*)\]\(([^)\s]+\.svg)\)$", re.MULTILINE)
_BOX = re.compile(
    r'<a href="#([\w-]+)"><rect [^>]*?x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"[^>]*/>(.*?)</a>',
    re.DOTALL,
)


def line_of(path: Path, code: str) -> int | None:
    """The number of the line that defines ``code``, or else of the first that has it; None if there is none."""
    lines = path.read_text(encoding="utf-8").split("\n")
    defines = re.compile(rf"\s*(?:def|class) {re.escape(code)}\b")
    found = [n for n, line in enumerate(lines, 1) if defines.match(line)]
    found += [n for n, line in enumerate(lines, 1) if code in line]
    return found[0] if found else None


def marks_of(path: Path) -> set[str]:
    """The marks of a page."""
    return set(MARK.findall(path.read_text(encoding="utf-8")))


def with_links(shown: str, drawing: str) -> str:
    """A picture in Markdown with a link over each box of the drawing that has one, its place in per cent."""
    boxes = _BOX.findall(drawing)
    if not boxes:
        return shown
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)[0])
    links = []
    for mark, x, y, wide, tall, inside in boxes:
        words = re.findall(r"<text(?![^>]*number)[^>]*>([^<]*)</text>", inside)
        place = f"left:{float(x) / width:.2%};top:{float(y) / height:.2%}"
        size = f"width:{float(wide) / width:.2%};height:{float(tall) / height:.2%}"
        label = escape(" ".join(words), quote=True)
        links.append(f'<a class="box" style="{place};{size}" href="#{mark}" aria-label="{label}"></a>')
    return ":::{container} drawing\n" + shown + "".join(links) + "\n:::"
