"""The words are the field's: what a reader of fairseq, Marian or Hugging Face knows, and can search for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

UNITS = "translations|subwords|tokens|words|batches|samples|lines|updates|steps|checkpoints|validations|sentences|times"

INSTEAD = {
    r"opponents?\b": "baselines",
    r"\bwish(es)?\b": "options, constraints",
    r"\bwordings?\b": "word constraints",
    r"(found|finds?|finding) no memory": "out of memory",
    r"\bfast twins?\b": "optimised implementation",
    r"\bplain twins?\b": "reference implementation",
    r"\bwhat may follow\b": "constrained decoding",
    r"\b(is|are) said on stderr\b": "is reported on stderr",
    r"\band (that|this) is said\b": "a message says so",
    r"\bof itself (when|if|where)\b": "by default",
    rf"\bso many ({UNITS})\b": "N, or the number of",
    r"what they cannot do is refused": "unsupported options are refused",
    r"what it cannot do is refused": "unsupported options are refused",
    r"\bin vain\b": "without success",
    r"(?<!['\"])\banew\b": "again",  # in quotes it is a key of the files of a run
    r"\b(goes|go|going) on after a kill\b": "resumes after an interruption",
    r"\b(begun|began) with another\b": "started with another",
    r"\bstands? (here )?twice\b": "appears twice",
    r"\bstands? (here|there)\b": "is",
    r"\b(it|that|this|one) is none\b": "it is not one",
    r"\bis no lock\b": "is not a lock file",
    r"\bsomebody's\b": "not ours",
    r"\bof somebody\b": "of another program",
    r"\bput back what there was\b": "restore it",
    r"\bhas no such thing\b": "has no such setting",
}
"""Words that were once in the project and that no reader would search for: regular expression, and what to say."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield the code, the pages and the records, each with its name; decisions keep the words of their day."""
    pages = [*ROOT.glob("README*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md"]
    pages += ROOT.glob("benchmarks/records/*.md")
    for path in sorted([*ROOT.glob("src/**/*.py"), *pages]):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("docs/decisions/", "docs/_build/")):
            yield name, path.read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = re.search(r"^## .*unreleased.*?(?=^## |\Z)", changes, re.IGNORECASE | re.MULTILINE | re.DOTALL)
    if unreleased:
        told = re.sub(r"^  \| `.*$", "", unreleased[0], flags=re.MULTILINE)  # tables of renamed modules quote old names
        yield "CHANGELOG.md", changes[: unreleased.start()].count("\n") * "\n" + told


def banned(name: str, text: str) -> Iterator[str]:
    """FILE:LINE of each banned phrase, with its replacement; a phrase may run over the end of a line."""
    for pattern, instead in INSTEAD.items():
        for found in re.finditer(pattern.replace(" ", r"\s+(?:[#>*]\s*)?"), text, re.IGNORECASE):
            line = text[: found.start()].count("\n") + 1
            yield f"{name}:{line}: {' '.join(found[0].split())!r}: write {instead!r}"


def test_banned_phrases_appear_nowhere() -> None:
    found = [problem for name, text in texts() for problem in banned(name, text)]
    assert not found, "\n".join(found)


def test_a_banned_phrase_is_named_with_its_line_and_its_replacement() -> None:
    text = "A beam.\nIts batch found no\nmemory, as the OPPONENTS' did; swish and a twin are fine.\n"
    assert list(banned("x.md", text)) == [
        "x.md:3: 'OPPONENTS': write 'baselines'",
        "x.md:2: 'found no memory': write 'out of memory'",
    ]
