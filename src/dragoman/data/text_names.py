"""Names of text files: of plain text, which is translated line by line, and of files that hold both sides.

is_plain_text("train.en.gz")      # True
is_plain_text("messages.json")    # False: refused, not guessed
form_of(Path("pairs.tsv.gz"))     # ".tsv"
"""

from __future__ import annotations

from pathlib import PurePath

from dragoman.languages.codes import is_registered, language_of, primary
from dragoman.languages.known import is_known

COMPRESSED = (".gz", ".zst")
TEXT_SUFFIXES = frozenset([
    ".txt", ".text", ".utf8", ".utf-8", ".src", ".tgt", ".trg", ".ref", ".hyp", ".mono", ".in", ".out", ".input",
    ".output", ".lines", ".sent", ".sents", ".snt", ".plain", ".raw", ".clean", ".norm", ".tok", ".detok", ".lc", ".tc",
    ".bpe", ".sp", ".spm", ".train", ".dev", ".valid", ".test",
])  # fmt: skip
"""Suffixes of plain text, one sentence or paragraph a line, besides language codes such as ``.en`` and ``.zh_CN``."""
NO_LANGUAGE = frozenset([".arb", ".asm", ".mac", ".mo", ".sh", ".so", ".ts"])
"""Suffixes that are language codes too, but of files that are seldom plain text."""


def is_plain_text(name: str) -> bool:
    """Return True if the suffix of a file name is one of plain text; a compressed text has a second one.

    Text has no suffix, one of ``TEXT_SUFFIXES``, or a language code. Numbers behind it are those of parts: ``a.en.01``.
    """
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1][1:].isdigit() and (len(suffixes) > 1 or len(suffixes[-1]) > 2):
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    return not last or last in TEXT_SUFFIXES or (last not in NO_LANGUAGE and _is_language(last[1:]))


def form_of(path: PurePath) -> str:
    """Return ``.tsv``, ``.csv`` or ``.tmx`` for the name of a file that holds both sides; "" for any other file."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst", ".utf8")]
    return suffixes[-1] if suffixes and suffixes[-1] in (".tsv", ".csv", ".tmx") else ""


def _is_language(suffix: str) -> bool:
    """Return True for the code of a language that ISO 639-1 has, and for one with a script or region: ``hau_Latn``."""
    code = language_of(PurePath(f"text.{suffix}"))
    if code is None or not is_registered(code.replace("_", "-")):
        return False
    return len(primary(code)) == 2 or is_known(code) or bool({"-", "_"} & set(code))
