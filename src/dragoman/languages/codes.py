"""Language codes in settings, requests and file names."""

from __future__ import annotations

import functools
import re
from pathlib import Path

_ENDINGS = ("gz", "zst", "txt", "utf8")
_NOT_A_LANGUAGE = ("src", "tgt", "trg", "ref", "hyp", "out", "raw", "tok", "bpe", "spm", "csv", "tsv", "dat", "log")


@functools.lru_cache(maxsize=256)
def primary(lang: str | None) -> str:
    """Return ``zh`` for ``zh-CN``, ``zh_TW``, ``zho`` or ``cmn_Hans``; "" for None.

    A language of a macrolanguage gets the code of the macrolanguage, if ISO 639 has one (of Chinese only Mandarin is
    ``zh``). A text that is no language code is returned in lower case.
    """
    # imported here, so that commands without languages start faster
    import langcodes
    from langcodes.tag_parser import LanguageTagError

    first = re.split("[-_]", (lang or "").lower())[0]
    if first == "pbt":  # Southern Pashto, whose macrolanguage langcodes does not know
        return "ps"
    try:
        return langcodes.standardize_tag(first, macro=True).split("-")[0] if first else ""
    except LanguageTagError:
        return first


def language_of(path: Path) -> str | None:
    """Return ``en`` for ``train.en`` or ``train.en.gz``, ``zh-CN`` for ``train.zh-CN``; None for a name without one."""
    parts = [part for part in path.name.split(".") if part.lower() not in _ENDINGS]
    last = parts[-1] if parts else ""
    looks_like_code = re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})?", last) is not None
    return last if looks_like_code and last.lower() not in _NOT_A_LANGUAGE else None
