"""The embedded corpus: a synchronous grammar of English with German and with Chinese.

    english, german = pair(7, seed=1, tgt_lang="de")

One derivation is drawn and written in each language, so a pair is a translation by construction, and the same English
sentence always has the same translation. Pair ``i`` is a function of ``(seed, i)``, so any pairs can be made in any
order on any machine.

- ``train``: clauses nested at most two deep; some combinations of words never occur.
- ``held_out``: sentences with at least one of those combinations, each word of which occurs in ``train``.
- ``deeper``: clauses nested three deep, one level more than in ``train``; no reserved combination.

The grammar: cases, genders, adjective endings, verb-second and verb-final clauses, separable verbs, perfect, future and
modal verbs, infinitives with zu, relative clauses (before the noun in Chinese), questions, negation, measure words,
numbers and dates in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dragoman.data.phrasebook.chinese import chinese
from dragoman.data.phrasebook.derivation import SPLITS, derive
from dragoman.data.phrasebook.english import english, tree
from dragoman.data.phrasebook.german import german
from dragoman.errors import ConfigError
from dragoman.files import whole_file

LANGUAGES = ("de", "zh")

_TRANSLATE = {"de": german, "zh": chinese}


def pair(index: int, *, seed: int = 0, tgt_lang: str = "de", split: str = "train") -> tuple[str, str]:
    """Return English sentence number ``index`` and its translation.

    Raises:
        ConfigError: ``tgt_lang`` or ``split`` is unknown.
    """
    return next(pairs(1, seed=seed, tgt_lang=tgt_lang, split=split, start=index))


def pairs(
    count: int, *, seed: int = 0, tgt_lang: str = "de", split: str = "train", start: int = 0
) -> Iterator[tuple[str, str]]:
    """Yield pairs ``start`` to ``start + count - 1``.

    Raises:
        ConfigError: ``tgt_lang`` or ``split`` is unknown.
    """
    _check(tgt_lang, split)
    translate = _TRANSLATE[tgt_lang]
    for index in range(start, start + count):
        sentence = derive(index, seed, split)
        yield english(sentence), translate(sentence)


def write(
    count: int, src_path: Path | str, tgt_path: Path | str, *, seed: int = 0, tgt_lang: str = "de", split: str = "train"
) -> None:
    """Write pairs to two UTF-8 text files; line i of one translates line i of the other. Each appears when complete.

    Raises:
        ConfigError: ``tgt_lang`` or ``split`` is unknown.
        OSError: A file cannot be written.
    """
    with whole_file(Path(src_path)) as src, whole_file(Path(tgt_path)) as tgt:
        for source, target in pairs(count, seed=seed, tgt_lang=tgt_lang, split=split):
            src.write(f"{source}\n".encode())
            tgt.write(f"{target}\n".encode())


def trees(count: int, *, seed: int = 0, split: str = "train", start: int = 0) -> Iterator[str]:
    """Yield the constituency trees of English sentences ``start`` to ``start + count - 1``, each on one line.

    Raises:
        ConfigError: ``split`` is unknown.
    """
    _check("de", split)
    for index in range(start, start + count):
        yield tree(derive(index, seed, split))


def write_trees(count: int, path: Path | str, *, seed: int = 0, split: str = "train") -> None:
    """Write trees to a UTF-8 text file, one a line.

    Raises:
        ConfigError: ``split`` is unknown.
        OSError: The file cannot be written.
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for line in trees(count, seed=seed, split=split):
            file.write(line + "\n")


def _check(tgt_lang: str, split: str) -> None:
    """Raise ConfigError for an unknown target language or split."""
    if tgt_lang not in LANGUAGES:
        raise ConfigError(f"tgt_lang = {tgt_lang!r}: the phrasebook translates English to {' or '.join(LANGUAGES)}")
    if split not in SPLITS:
        raise ConfigError(f"split = {split!r}: the phrasebook has {', '.join(SPLITS)}")
