"""The course: the code of a chapter prints what the page says, and every exercise has a solution that holds."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import course

DOCS = Path(__file__).resolve().parents[2] / "docs"
ENGLISH, CHINESE = DOCS / "course", DOCS / "zh/course"
CHAPTERS = sorted([*ENGLISH.glob("[0-9]*.md"), *CHINESE.glob("[0-9]*.md")])
LEAST_EQUATIONS, EXERCISES = 5, 5
MOST_CHARACTERS = 3600
"""Most Chinese characters of a chapter: as long to read as 1,500 English words, code included."""

EXERCISE = re.compile(
    r"^### (?:Exercise|练习) (\d+\.\d)\n\n(.+?)<details>\n<summary>(?:Solution|解答)</summary>\n\n(.+?)\n</details>$",
    re.MULTILINE | re.DOTALL,
)
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def named(path: Path) -> str:
    """Return the name of a page below docs."""
    return path.relative_to(DOCS).as_posix()


@pytest.fixture(autouse=True)
def _leave_no_settings() -> Iterator[None]:
    """Keep what a chapter sets, such as NumPy's number of decimals, from other tests."""
    dtype = torch.get_default_dtype()
    with np.printoptions(), torch.random.fork_rng(devices=[]):
        yield
    torch.set_default_dtype(dtype)


def run(code: str, namespace: dict[str, Any], place: str) -> str:
    """Run code as if pasted into Python; return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, place, "exec"), namespace)
    return printed.getvalue()


@pytest.mark.parametrize("path", CHAPTERS, ids=named)
def test_the_code_of_a_chapter_prints_what_the_page_says_and_its_solutions_hold(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    solutions = {found.start(3): found.end(3) for found in EXERCISE.finditer(text)}
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        is_solution = any(start <= block.start() < end for start, end in solutions.items())
        place = f"{named(path)}:{text.count(chr(10), 0, block.start()) + 2}"
        # A solution is tried by itself: a reader may skip any exercise.
        printed = run(block[1], dict(namespace) if is_solution else namespace, place)
        assert printed == (block[2] or ""), place


@pytest.mark.parametrize("path", CHAPTERS, ids=named)
def test_each_chapter_has_equations_and_five_exercises_with_a_solution(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    exercises = EXERCISE.findall(text)
    number = int(path.name[:2])
    assert [name for name, _, _ in exercises] == [f"{number}.{i + 1}" for i in range(EXERCISES)]
    assert text.count("<details>") == len(exercises)
    for name, question, solution in exercises:
        assert question.strip(), name
        for block, _ in BLOCK.findall(solution):
            assert re.search(r"^assert .+\n\Z", block, flags=re.MULTILINE), name
    assert sum("```python" in solution for _, _, solution in exercises) >= 3
    displayed = re.findall(r"^\$\$.+?\$\$$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(displayed) >= LEAST_EQUATIONS
    assert text.count("$$") == 2 * len(displayed)


@pytest.mark.parametrize("path", CHAPTERS, ids=named)
def test_a_chapter_is_read_in_one_sitting(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.split()) <= 1500
    assert len(re.findall(r"[\u4e00-\u9fff]", text)) <= MOST_CHARACTERS


def test_both_languages_have_the_chapters_that_the_index_lists_and_the_same_code() -> None:
    english, chinese = (sorted(folder.glob("[0-9]*.md")) for folder in (ENGLISH, CHINESE))
    assert [path.name for path in english] == [path.name for path in chinese]
    for folder in (ENGLISH, CHINESE):
        listed = re.findall(
            r"^\d+\. \[.+?\]\((\d\d-[\w-]+\.md)\)", (folder / "index.md").read_text("utf-8"), re.MULTILINE
        )
        assert listed == [path.name for path in english]
    for pair in zip(english, chinese, strict=True):
        codes = [[without_comments(code) for code, _ in BLOCK.findall(path.read_text("utf-8"))] for path in pair]
        assert codes[0] == codes[1], pair[0].name


def without_comments(code: str) -> str:
    """Return code without its comments."""
    return re.sub(r"[ \t]*#.*$", "", code, flags=re.MULTILINE)


@pytest.mark.parametrize("folder", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_each_chapter_leads_to_the_one_before_and_the_next(folder: Path) -> None:
    names = ["index.md", *(path.name for path in sorted(folder.glob("[0-9]*.md"))), "index.md"]
    for before, name, after in zip(names, names[1:-1], names[2:], strict=False):
        last = (folder / name).read_text(encoding="utf-8").rstrip().rsplit("\n", 1)[-1]
        assert re.findall(r"\]\(([\w-]+\.md)\)", last) == [before, after], name


@pytest.mark.parametrize("name", sorted(course.DRAWINGS))
def test_the_drawings_are_made_by_the_script(name: str) -> None:
    assert (ENGLISH / f"{name}.svg").read_text(encoding="utf-8") == course.DRAWINGS[name]()
