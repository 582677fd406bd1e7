"""Language codes in settings, requests and file names.

from dragoman.languages.codes import match, variety
variety("zh_TW")                     # "zh-Hant"
match("pt-br", ["en", "pt-PT", "pt-BR"])    # "pt-BR"
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

_ENDINGS = ("gz", "zst", "txt", "utf-8", "utf8")
_NOT_A_LANGUAGE = ("src", "tgt", "trg", "ref", "hyp", "out", "raw", "tok", "bpe", "spm", "csv", "tsv", "dat", "log")
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}|[-_][A-Za-z]{4}[-_](?:[A-Za-z]{2}|\d{3}))?")

_OF_PROGRAMS = {"zt": "zh-hant", "pb": "pt-br", "cn": "zh"}
"""Codes that no standard has: those of LibreTranslate and Subtitle Edit."""

_MODIFIERS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}
"""Scripts in the names of POSIX locales, such as ``sr_RS@latin``."""


class Tag(NamedTuple):
    """The parts of a language tag that tell which text is meant."""

    language: str
    """ISO 639-1 where there is one, else 639-3; "" for None."""
    script: str = ""
    """ISO 15924, such as ``Hant``; the likely one by CLDR if the tag names none; "" if the tag is no language tag."""
    region: str = ""
    """ISO 3166-1, such as ``TW``, if the tag names one."""


MOST_TAG = 100
"""Largest length of a language tag in characters; a longer text is none, and stays in no cache."""

MOST_KEPT = 4096
"""Most entries in a table of langcodes before it is emptied: it keeps each tag for ever, and clients make up tags."""

_lending = threading.RLock()


@contextlib.contextmanager
def _langcodes() -> Iterator[Any]:
    """Lend langcodes to one thread at a time, and empty its tables where they have grown."""
    # imported here, so that commands without languages start faster
    import langcodes
    from langcodes import language_distance

    with _lending:  # langcodes looks twice for what it finds, and no other thread may empty the table between the two
        for table in (
            langcodes.Language._INSTANCES, langcodes.Language._PARSE_CACHE, language_distance._DISTANCE_CACHE,
        ):  # fmt: skip
            if len(table) > MOST_KEPT:
                table.clear()
        yield langcodes


def tag_of(lang: str | None) -> Tag:
    """Return the parts of a tag as people write it: ``zh_TW``, ``zho_Hant``, ``en_US.UTF-8``, ``iw``, ``zt``, ``deu``.

    A language of a macrolanguage gets the code of the macrolanguage, if ISO 639 has one (of Chinese only Mandarin is
    ``zh``). A text that is no language tag is returned in lower case.
    """
    if lang is not None and len(lang) > MOST_TAG:
        return Tag(lang.strip().lower())
    return _tag_of(lang or "")


@functools.lru_cache(maxsize=1024)
def _tag_of(lang: str) -> Tag:
    tag, first = _standard(lang)
    if not tag:
        return Tag(first)
    with _langcodes() as langcodes:
        language = langcodes.Language.get(tag, normalize=False)
        script = language.script or language.maximize().script or ""
    return Tag((language.language or first).split("-")[0], script, language.territory or "")


def standard(lang: str) -> str:
    """Return a tag as documents declare it (BCP 47): ``zh-TW`` for ``zh_TW``, ``ru`` for ``rus_Cyrl``.

    A text that is no language tag is returned as it is, but for underscores.
    """
    known = _standard(lang, macro=False)[0] if len(lang) <= MOST_TAG else ""
    return known or lang.strip().replace("_", "-")


def _standard(lang: str, *, macro: bool = True) -> tuple[str, str]:
    """Return a tag in standard form, "" if the text is no tag, and its first part as it is written.

    Args:
        macro: Take a macrolanguage for its languages, such as ``no`` for ``nb``.
    """
    code, _, modifier = lang.strip().lower().partition("@")
    code = code.partition(".")[0].replace("_", "-")
    code = _OF_PROGRAMS.get(code, code)
    first, _, others = code.partition("-")
    if first == "pbt":  # Southern Pashto, whose macrolanguage langcodes does not know
        first = "ps"
    script = _MODIFIERS.get(modifier)
    whole = "-".join(filter(None, [first, script, others]))
    with _langcodes() as langcodes:
        for candidate in (whole, first):
            with contextlib.suppress(langcodes.LanguageTagError):
                if candidate:
                    return langcodes.standardize_tag(candidate, macro=macro), first
    return "", first


def is_registered(code: str) -> bool:
    """Return True for a language tag all parts of which have a meaning by IANA."""
    with _langcodes() as langcodes:
        return bool(langcodes.tag_is_valid(code))


def primary(lang: str | None) -> str:
    """Return the language of a tag without script and region: ``zh`` for ``zh-CN``, ``zh_TW``, ``zho``; "" for None."""
    return tag_of(lang).language


def variety(lang: str | None) -> str:
    """Return the shortest tag for a language in its script: ``zh`` for ``zh-CN``, ``zh-Hant`` for ``zh-TW``.

    Two tags with the same variety mean the same kind of text. Bokmål is Norwegian (``no``); Nynorsk is not.
    """
    tag = tag_of(lang)
    language = "no" if tag.language == "nb" else tag.language
    return f"{language}-{tag.script}" if tag.script != tag_of(tag.language).script else language


def match(code: str, among: Sequence[str]) -> str | None:
    """Return the tag of ``among`` that ``code`` means: of the same language and script, in the nearest region.

    Nynorsk is also served by Norwegian. A text in another script is never meant.
    """
    wanted = tag_of(code)
    candidates = [tag for tag in among if variety(tag) == variety(code)]
    if not candidates and wanted.language == "nn":
        candidates = [tag for tag in among if tag_of(tag).language == "no"]
    return min(candidates, key=lambda tag: (_normal(tag) != _normal(code), _distance(code, tag)), default=None)


def _normal(lang: str) -> str:
    return lang.strip().lower().replace("_", "-")


@functools.lru_cache(maxsize=1024)
def _distance(code: str, other: str) -> int:
    """Return how far apart two tags of one variety are, by CLDR: 0 for the same region."""
    with _langcodes() as langcodes:
        tags = _standard(code)[0], _standard(other)[0]
        return 0 if tag_of(code) == tag_of(other) else 1 + int(langcodes.tag_distance(*tags))


def language_of(path: PurePath) -> str | None:
    """Return ``en`` for ``train.en`` or ``train.en.gz``, ``zh-CN`` for ``train.zh-CN``; None for a name without one."""
    parts = [part for part in path.name.split(".") if part.lower() not in _ENDINGS]
    last = parts[-1] if parts else ""
    return last if _CODE.fullmatch(last) and last.lower() not in _NOT_A_LANGUAGE else None
