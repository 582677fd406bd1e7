"""Language codes, and which languages are written without spaces between words."""

from __future__ import annotations

import functools
import re
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
