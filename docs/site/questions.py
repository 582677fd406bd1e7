"""The questions that readers come with: each is answered at most two clicks from the first page, and found by search.

docs/project/forty-questions.yaml lists them with the page that answers each, and words that a reader would search for.
docs/project/newcomer-questions.yaml lists fifteen of newcomers, course-questions.yaml those of students, with words
that their page must have.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

LIST = Path(__file__).resolve().parents[1] / "project/forty-questions.yaml"
NEWCOMERS = LIST.with_name("newcomer-questions.yaml")
STUDENTS = LIST.with_name("course-questions.yaml")
LAST = re.compile(r"(decisions|project)/|log$")
"""Pages that a search names after all others: those for people who change the code (search-order.js)."""
FIRST_RESULTS = 10
"""Of the pages that a search finds, as many are looked at."""


class Question(NamedTuple):
    """A question, the page that answers it, and what a reader would search for in either language."""

    question: str
    page: str
    en: str
    zh: str


def listed(path: Path = LIST) -> list[Question]:
    """The questions of a list."""
    return [Question(**row) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]


def clicks(source: Path) -> dict[str, int]:
    """How many clicks each page is from the first one, by the links in the text alone."""
    found, edge = {"index.md": 0}, ["index.md"]
    while edge:
        page = edge.pop(0)
        text = (source / page).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#\s]+\.md)", text):
            target = (source / page).parent.joinpath(link).resolve()
            if target.is_file() and target.is_relative_to(source.resolve()):
                name = target.relative_to(source.resolve()).as_posix()
                if name not in found:
                    found[name] = found[page] + 1
                    edge.append(name)
    return found


def too_far(source: Path) -> list[str]:
    """Questions whose page is more than two clicks away."""
    away = clicks(source)
    return [
        f"{path.name}: {each.question!r}: {each.page} needs {away.get(each.page, 'endless')} clicks, not 2"
        for path in (LIST, NEWCOMERS, STUDENTS)
        for each in listed(path)
        if away.get(each.page, 99) > 2
    ]


def without_answer(source: Path, language: str) -> list[str]:
    """Questions of newcomers and students whose page does not have the words of the answer."""
    return [
        f"{path.name}: {each.question!r}: {each.page} does not say {words!r}"
        for path in (NEWCOMERS, STUDENTS)
        for each in listed(path)
        if (words := getattr(each, language)) not in (source / each.page).read_text(encoding="utf-8")
    ]


def unanswered(source: Path, out: Path, language: str) -> list[str]:
    """Questions whose page is too far away, or that the search index of a built site does not find."""
    text = (out / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    problems = too_far(source)
    for each in listed():
        if language == "zh" and not (LIST.parents[1] / "zh" / each.page).is_file():
            continue
        words = each.en if language == "en" else each.zh
        pages = search(index, words, language)
        if each.page.removesuffix(".md") not in pages[:FIRST_RESULTS]:
            problems.append(
                f"{LIST.name}: {words!r} does not find {each.page}, but {', '.join(pages[:5]) or 'nothing'}"
            )
    return problems


def search(index: dict[str, Any], words: str, language: str) -> list[str]:
    """The pages that have all words, best first: as Sphinx's script counts, with titles before texts."""
    from sphinx.search import languages

    name = {"en": "en", "zh": "zh"}[language]
    kind = languages[name]
    if isinstance(kind, str):
        module, _, own = kind.rpartition(".")
        kind = getattr(__import__(module, fromlist=[own]), own)
    splitter = kind({})
    wanted = {splitter.stem(word.lower()) for word in splitter.split(words) if splitter.word_filter(word.lower())}
    scores: dict[int, int] = {}
    for number in range(len(index["docnames"])):
        found = [_score(index, word, number) for word in wanted]
        if found and all(found):
            scores[number] = sum(found) - 100 * bool(LAST.match(index["docnames"][number]))
    return [index["docnames"][number] for number in sorted(scores, key=lambda number: -scores[number])]


def _score(index: dict[str, Any], word: str, number: int) -> int:
    def holds(table: dict[str, Any]) -> bool:
        pages = table.get(word, [])
        return number in pages if isinstance(pages, list) else pages == number

    return 15 * holds(index["titleterms"]) + 5 * holds(index["terms"])
