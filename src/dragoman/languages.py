"""The little that must be known of a language: its code, and whether it puts spaces between sentences."""

from __future__ import annotations

import re
from pathlib import Path

UNSPACED = ("zh", "cmn", "yue", "ja", "th", "lo", "km", "my")
CHINESE = ("zh", "cmn", "yue")

_ENDINGS = ("gz", "zst", "txt")
_NOT_A_LANGUAGE = ("src", "tgt", "trg", "ref", "hyp", "out", "raw", "tok", "bpe", "spm", "csv", "tsv", "dat", "log")


def primary(lang: str | None) -> str:
    """``zh`` of ``zh-CN`` or ``zh_TW``; nothing of None."""
    return re.split("[-_]", (lang or "").lower())[0]


def language_of(path: Path) -> str | None:
    """``en`` from ``train.en`` or ``train.en.gz``, ``zh-CN`` from ``train.zh-CN``; None where the name has none."""
    parts = [part for part in path.name.split(".") if part.lower() not in _ENDINGS]
    last = parts[-1] if parts else ""
    looks_like_one = re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})?", last) is not None
    return last if looks_like_one and last.lower() not in _NOT_A_LANGUAGE else None
