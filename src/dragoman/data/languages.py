"""The little that must be known of a language: its code, whether it puts spaces between words, where a word ends."""

from __future__ import annotations

import functools
import re
import unicodedata
from pathlib import Path

CHINESE = ("zh", "yue", "wuu", "lzh")  # as ``primary`` names them: Mandarin, Cantonese, Wu, literary Chinese
UNSPACED = (*CHINESE, "ja", "th", "lo", "km", "my")

_CODES = (
    "zho:zh chi:zh cmn:zh jpn:ja tha:th lao:lo khm:km mya:my bur:my kor:ko "
    "eng:en deu:de ger:de fra:fr fre:fr spa:es ita:it por:pt nld:nl dut:nl afr:af swe:sv dan:da nor:no nob:nb nno:nn "
    "fin:fi est:et ekk:et lav:lv lvs:lv lit:lt pol:pl ces:cs cze:cs slk:sk slo:sk slv:sl hrv:hr hun:hu ron:ro bos:bs "
    "srp:sr rum:ro tur:tr vie:vi ind:id msa:ms may:ms zsm:ms eus:eu baq:eu cat:ca glg:gl gle:ga cym:cy wel:cy "
    "isl:is ice:is sqi:sq alb:sq als:sq mlt:mt lat:la ell:el gre:el heb:he "
    "rus:ru ukr:uk bul:bg bel:be mkd:mk mac:mk kaz:kk kir:ky mon:mn khk:mn "
    "ara:ar arb:ar fas:fa per:fa pes:fa urd:ur pus:ps pbt:ps uig:ug "
    "hin:hi mar:mr nep:ne npi:ne san:sa ben:bn guj:gu tam:ta tel:te kan:kn mal:ml asm:as ori:or pan:pa"
)
_TWO_LETTERS: dict[str, str] = dict(pair.split(":") for pair in _CODES.split())
"""ISO 639-3 (and the older codes of 639-2/B) to ISO 639-1, of the languages of which something is known here."""

_ENDINGS = ("gz", "zst", "txt")
_NOT_A_LANGUAGE = ("src", "tgt", "trg", "ref", "hyp", "out", "raw", "tok", "bpe", "spm", "csv", "tsv", "dat", "log")


@functools.lru_cache(maxsize=256)
def primary(lang: str | None) -> str:
    """``zh`` of ``zh-CN``, ``zh_TW``, ``zho`` or ``cmn_Hans``; nothing of None."""
    first = re.split("[-_]", (lang or "").lower())[0]
    return _TWO_LETTERS.get(first, first)


def is_known(code: str) -> bool:
    """Whether ``en``, ``deu`` or ``zh-CN`` is a code of a language that is known here, in small letters."""
    first = re.split("[-_]", code)[0]
    return first in _TWO_LETTERS or first in _TWO_LETTERS.values()


def language_of(path: Path) -> str | None:
    """``en`` from ``train.en`` or ``train.en.gz``, ``zh-CN`` from ``train.zh-CN``; None where the name has none."""
    parts = [part for part in path.name.split(".") if part.lower() not in _ENDINGS]
    last = parts[-1] if parts else ""
    looks_like_one = re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})?", last) is not None
    return last if looks_like_one and last.lower() not in _NOT_A_LANGUAGE else None


_UNSPACED_SCRIPT = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Chinese characters, kana: scripts whose words stand side by side."""


def in_word(character: str) -> bool:
    """Whether a character belongs to a word that ends only where another kind of character stands.

    True of letters, digits and combining marks, but for scripts without spaces, where any character may end a word;
    False of ``""``.
    """
    return bool(
        character
        and (character.isalnum() or unicodedata.combining(character))
        and not _UNSPACED_SCRIPT.match(character)
    )


def has_word(text: str, word: str) -> bool:
    """Whether ``word`` (one word or several) stands in ``text`` by itself: "dog" in "a dog." but not in "dogma"."""
    return count_word(text, word) > 0


def count_word(text: str, word: str) -> int:
    """How often ``word`` stands in ``text`` by itself."""
    starts, start = [], text.find(word)
    while start >= 0:
        starts.append(start)
        start = text.find(word, start + 1)
    return sum(is_whole(text, start, start + len(word)) for start in starts)


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether no word continues across either end of ``text[start:end]``."""
    cut_before = in_word(text[start]) and in_word(text[start - 1 : start])
    cut_after = in_word(text[end - 1]) and in_word(text[end : end + 1])
    return not (cut_before or cut_after)
