"""Gathers the pages of one language into a folder that Sphinx builds from.

Pages are Markdown that reads well where it lies. On the way into the site their links are turned: those to other pages
lead there, those to code and results lead to copies of these, shown as pages. The lists of an index page become its
part of the navigation. What is made from the code is put in its place, and numbers are compared with the results.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from docs.site import chinese_figures, marks, numbers, reference
from docs.site.problems import BrokenDocsError, place

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OTHERS = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "README.md": "index.md",
    **{
        path.relative_to(ROOT).as_posix(): f"project/{path.parent.name}/{path.name.replace('README', 'index')}"
        for folder in ("records", "results")
        for path in sorted((ROOT / "benchmarks" / folder).glob("*.md"))
    },
}
"""Pages that lie elsewhere, by their place on the site; README leads to its first page."""
LINK = re.compile(r"(?<!\\\\)(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"en": "en", "zh": "zh_CN"}
DOWNLOAD = {"en": "Download the notebook", "zh": "下载这个笔记本"}
NOT_YET = "本页尚无中文译文，以下是英文原文。"
SHOWN = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".sh": "bash",
    ".conf": "nginx",
    ".js": "javascript",
}
"""Files that are shown as pages, and in which language; all others are given as they are."""


def sources() -> dict[str, Path]:
    """The English pages, by their place on the site."""
    found = {}
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).as_posix()
        if not name.startswith(("zh/", "site/", "_build/")):
            found[re.sub(r"(^|/)README\.md$", r"\1index.md", name)] = path
    return found | {place: ROOT / name for name, place in OTHERS.items() if place != "index.md"}


def places() -> dict[str, str]:
    """Where each file of the repository that is a page is on the site, Chinese ones at their English twin's place."""
    found = {path.relative_to(ROOT).as_posix(): where for where, path in sources().items()} | OTHERS
    return found | {f"docs/zh/{where}": where for where in found.values()} | {"README.zh-CN.md": "index.md"}


def fingerprint(path: Path) -> str:
    """What a Chinese page names of the English page it was made from, but for numbers of results and made parts."""
    text = reference.without_parts(path.read_text(encoding="utf-8"))
    text = numbers.without_numbers(path.relative_to(ROOT).as_posix(), text)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The lines ``name: value`` between ``---`` at the top, and the rest."""
    found = re.match(r"---\n(.*?)\n---\n+", text, re.DOTALL)
    if found is None:
        return {}, text
    return dict(re.findall(r"^(\w+): *(.*)$", found[1], re.MULTILINE)), text[found.end() :]


def joined(text: str) -> str:
    """Chinese whose lines are joined: a browser would put a space where a line ends."""
    han, signs = "\u3000-\u303f\u4e00-\u9fff\uff00-\uffef", "\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
    parts = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(rf"(?<=[{han}])\n *(?=[{han}])", "", parts[i])
        parts[i] = re.sub(rf"(?<=[{signs}])\n *(?=[A-Za-z`\[]|\d[\d,]*[^\d.])", "", parts[i])
    return "".join(parts)


def anchors(path: Path) -> list[str]:
    """What the headings of a page are linked to by, in their order."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


class Gatherer:
    """Writes the pages of one language into a folder."""

    def __init__(self, language: str, into: Path) -> None:
        self.language, self.into = language, into
        self.english, self.places = sources(), places()
        self.shown: set[str] = set()  # files of the repository that are linked
        self.twins = chinese_figures.made() if language == "zh" else {}
        self.problems: list[str] = []
        self.inside: dict[str, list[str]] = {}  # pages that a page's lists name

    def gather(self) -> None:
        """Write everything.

        Raises:
            BrokenDocsError: A link leads nowhere, a number is not that of its file, something has no description.
        """
        shutil.rmtree(self.into, ignore_errors=True)
        texts = {where: self._page(where, path) for where, path in self.english.items()}
        trees = self._navigation()
        for where, text in texts.items():
            self._write(where, text + trees.get(where, ""))
        for name in sorted(self.shown):
            self._show(name)
        for path, text in self.twins.items():  # last, in place of the English figures that were copied
            self._write(path.relative_to(DOCS).as_posix(), text)
        if self.problems:
            raise BrokenDocsError(sorted(set(self.problems)))

    def _page(self, where: str, path: Path) -> str:
        twin = DOCS / "zh" / where
        is_translated = self.language == "zh" and twin.is_file()
        path = twin if is_translated else path
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        _, wrong = numbers.renewed(name, text)
        self.problems += wrong
        head, text = front_matter(text)
        text = re.sub(r"^\[(简体中文|中文|English)\]\([^)]*\)\n\n", "", text, flags=re.MULTILINE)
        self.check_parts(name, text)
        if is_translated:
            text = joined(text)
        text = self.link_places(name, where, text)
        text = self.turn_links(name, where, text)
        kept = "".join(f"{key}: {value}\n" for key, value in head.items() if key != "english")
        if self.language == "zh" and not is_translated:
            text = re.sub(r"^(# .*\n)", rf"\1\n:::{{note}}\n{NOT_YET}\n:::\n", text, count=1, flags=re.MULTILINE)
        return (f"---\n{kept}---\n\n" if kept else "") + text

    def check_parts(self, name: str, text: str) -> None:
        """Note a part of a page that is not what the code says now, or that nothing makes."""
        try:
            if reference.renewed(text, name) != text:
                self.problems.append(f"{name}: a part that is made from the code is out of date: {reference.COMMAND}")
        except BrokenDocsError as broken:
            self.problems += broken.problems

    def link_places(self, name: str, where: str, text: str) -> str:
        """The text with what leads to lines of code, to marks and from boxes of drawings; code blocks stay."""

        def link(target: str, label: str) -> str:
            return f'<a class="reference internal" href="{os.path.relpath(target, Path(where).parent)}">{label}</a>'

        def to_line(found: re.Match[str]) -> str:
            code, full = found[1] or found[3], os.path.normpath(Path(name).parent / found[2])
            if code is None or not (ROOT / full).is_file():
                return found[0]
            line = marks.line_of(ROOT / full, code)
            if line is None:
                self.problems.append(f"{place(name, text, text.find(found[0]))}: {full} has no line with {code}")
            self.shown.add(full)
            label = found[0][1 : found[0].index("](")]
            line_of_code = f' <code class="docutils literal line">{escape(code)}</code>' if found[3] else ""
            return link(f"files/{full}.html#L-{line}", label) + line_of_code

        def to_mark(found: re.Match[str]) -> str:
            full = os.path.normpath(Path(name).parent / found[2])
            page = self.places.get(full)
            if page is None or not (ROOT / full).is_file() or found[3] not in marks.marks_of(ROOT / full):
                return found[0]
            self.inside.setdefault(where, []).append(page)
            return link(f"{page.removesuffix('.md')}.html#{found[3]}", found[1])

        def drawn(found: re.Match[str]) -> str:
            path = ROOT / os.path.normpath(Path(name).parent / found[2])
            if not path.is_file():
                return found[0]
            twin = self.twins.get(path) if name.startswith("docs/zh/") else None
            return marks.with_links(found[0], twin or path.read_text(encoding="utf-8"))

        parts = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)
        for i in range(0, len(parts), 2):
            for pattern, put in ((marks.CODE, to_line), (marks.TO_MARK, to_mark), (marks.DRAWING, drawn)):
                parts[i] = pattern.sub(put, parts[i])
        return "".join(parts)

    def turn_links(self, name: str, where: str, text: str) -> str:
        """The text with its links as the site needs them; those in code stay."""
        kept = re.compile(FENCE.pattern + r"|`[^`\n]+`(?!\])", re.MULTILINE | re.DOTALL)
        parts, at = [], 0
        for code in kept.finditer(text):
            parts += [LINK.sub(lambda found: self._link(name, where, text, found), text[at : code.start()]), code[0]]
            at = code.end()
        parts.append(LINK.sub(lambda found: self._link(name, where, text, found), text[at:]))
        return "".join(parts)

    def _link(self, name: str, where: str, text: str, found: re.Match[str]) -> str:
        target, _, anchor = found[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        full = os.path.normpath(Path(name).parent / target)
        page = self.places.get(full) or self.places.get(f"{full}/README.md")
        if page is None and not (ROOT / full).exists():
            self.problems.append(f"{place(name, text, text.find(found[0]))}: {found[2]} leads nowhere")
            return found[0]
        if page is None and full.startswith("docs/") and Path(full).suffix in (".svg", ".png", ".html"):
            page = full.removeprefix("docs/")
            (self.into / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / full, self.into / page)
        elif page is None:
            self.shown.add(full)
            page = self._place_of_file(full)
        else:
            self.inside.setdefault(where, []).append(page)
        anchor = self._anchor(page, anchor)
        new = os.path.relpath(page, Path(where).parent)
        return f"{found[1]}{new}{'#' + anchor if anchor and page.endswith('.md') else ''}{found[3]}"

    def _anchor(self, page: str, anchor: str) -> str:
        """The anchor of a heading, in a Chinese page that of the heading at the same place; none if there is none."""
        twin = DOCS / "zh" / page
        if self.language != "zh" or not twin.is_file():
            return anchor
        english, chinese = anchors(self.english[page]), anchors(twin)
        if anchor in chinese or anchor not in english:
            return anchor
        return chinese[english.index(anchor)] if len(english) == len(chinese) else ""

    def _place_of_file(self, full: str) -> str:
        is_page = (ROOT / full).is_dir() or Path(full).suffix in (*SHOWN, ".ipynb")
        return f"files/{full}.md" if is_page else f"files/{full}"

    def _show(self, name: str) -> None:
        """A file of the repository as a page, or as it is; of a folder a list of what is in it."""
        path, where = ROOT / name, self._place_of_file(name)
        head = f"---\norphan: true\nnosearch: true\n---\n\n# {name}\n\n"
        if path.is_dir():
            listed = subprocess.run(
                ["git", "ls-files", "--", name], cwd=ROOT, capture_output=True, text=True, check=True
            )
            rows = [each for each in listed.stdout.split("\n") if each]
            items = []
            for each in rows:
                if Path(each).suffix in (*SHOWN, ".ipynb"):
                    self._show(each)
                    target = os.path.relpath(self._place_of_file(each), Path(where).parent.as_posix())
                    items.append(f"- [{os.path.relpath(each, name)}]({target})")
                else:
                    items.append(f"- {os.path.relpath(each, name)}")
            self._write(where, head + "\n".join(items) + "\n")
        elif path.suffix == ".ipynb":
            download = DOWNLOAD[self.language]
            self._write(where, f'{head}<a download href="{path.name}">{download}</a>\n\n{_notebook(path)}')
        elif path.suffix in SHOWN:
            self._write(where, head + listing(path))
        elif path.suffix == ".md":  # a page that no list of contents names
            text = path.read_text(encoding="utf-8")
            self._write(where, f"---\norphan: true\nnosearch: true\n---\n\n{front_matter(text)[1]}")
        else:
            (self.into / where).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.into / where)

    def _navigation(self) -> dict[str, str]:
        """A hidden tree of contents for each index page: the pages its lists name that no earlier one has."""
        trees, taken = {}, {"index.md"}

        def grow(where: str) -> None:
            folder = Path(where).parent.as_posix()
            own = [
                page
                for page in dict.fromkeys(self.inside.get(where, ()))
                if page not in taken and (where == "index.md" or _belongs(page, folder))
            ]
            taken.update(own)
            if own:
                relative = [os.path.relpath(page, folder).removesuffix(".md") for page in own]
                trees[where] = "\n```{toctree}\n:hidden:\n\n" + "\n".join(relative) + "\n```\n"
            for page in own:
                if page.endswith("index.md"):
                    grow(page)

        grow("index.md")
        for page in self.english:
            if page not in taken:
                self.problems.append(f"docs/{page}: no index page names it, so nobody finds it")
        return trees

    def _write(self, where: str, text: str) -> None:
        path = self.into / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def listing(path: Path) -> str:
    """A file as a page: its lines are numbered, and each can be led to (``#L-12``)."""
    lexer = get_lexer_by_name(SHOWN[path.suffix])
    look = HtmlFormatter(linenos="inline", lineanchors="L", wrapcode=True)
    html = highlight(path.read_text(encoding="utf-8"), lexer, look)
    fence = "`" * (3 + max((len(run) for run in re.findall(r"`{3,}", html)), default=0))
    return f"{fence}{{raw}} html\n{html}{fence}\n"


def _notebook(path: Path) -> str:
    """A notebook as a page: its text, headings one level lower, and its code."""
    cells = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        is_code = cell["cell_type"] == "code"
        cells.append(f"```python\n{source}\n```" if is_code else re.sub(r"^#", "##", source, flags=re.MULTILINE))
    return "\n\n".join(cells) + "\n"


def _belongs(page: str, folder: str) -> bool:
    """Whether a page is one of an index page's own: below its folder, or of the project, which gathers the rest."""
    return page.startswith(f"{folder}/") or (folder == "project" and page.startswith("decisions/"))
