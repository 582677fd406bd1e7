"""What stops a build: each problem names its place."""

from __future__ import annotations


class BrokenDocsError(Exception):
    """The site cannot be built as it is; one line for each problem, with its file and line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def place(page: str, text: str, at: int) -> str:
    """``FILE:LINE`` of a position in a page."""
    return f"{page}:{text[:at].count(chr(10)) + 1}"
