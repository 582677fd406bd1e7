"""Marks that end a sentence, of all scripts: the one table for everything that looks for the end of a sentence."""

from __future__ import annotations

import re
import unicodedata

_RANGES = (
    "0021 002E 003F 037E 0589 061D-061F 06D4 0700-0702 07F9 0837 0839 083D-083E 0964-0965 0DF4 0F0D-0F11 0F14 "
    "104B 1362 1367-1368 166E 1736 17D4-17D5 1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F "
    "1B7D-1B7F 1C3B-1C3C 1C7E-1C7F 203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E53-2E54 2E60-2E61 3002 A4FF "
    "A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16 FE52 FE56-FE57 "
    "FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 "
    "111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 113D4-113D5 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 "
    "1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 "
    "16B37-16B38 16B44 16D6E-16D6F 16E98 1BC9F 1DA88"
)
"""Unicode's property Sentence_Terminal, without four marks that are written as commas and leaders.

Those are U+104A of Burmese, U+1735 of the Philippines, U+A9C8 of Javanese and U+2024. Added are the shad of Tibetan,
the kunddaliya of Sinhala and the question mark of Greek.
"""


def _characters(ranges: str) -> str:
    """Return the characters of ranges such as ``0021 061D-061F``."""
    bounds = [[int(code, 16) for code in part.split("-")] for part in ranges.split()]
    return "".join(chr(code) for bound in bounds for code in range(bound[0], bound[-1] + 1))


ENDS = _characters(_RANGES)
"""All marks that end a sentence."""

ASCII_ENDS = ".!?"
"""Marks that end a sentence only before a space or the end of the text: they are part of numbers and addresses too."""

UNSPACED_ENDS = "".join(mark for mark in ENDS if mark not in ASCII_ENDS)
"""Marks that end a sentence without a space after them too."""

BRACKETS = (
    "（）［］｛｝「」『』【】〈〉《》〔〕〖〗〘〙〚〛｟｠｢｣〝〟〝〞﹙﹚﹛﹜﹝﹞︵︶︷︸︹︺︻︼︽︾︿﹀﹁﹂﹃﹄﹇﹈︗︘⁅⁆⁽⁾₍₎⌈⌉⌊⌋\u2329\u232a❨❩❪❫❬❭❮❯❰❱❲❳❴❵⟅⟆⟦⟧⟨⟩⟪⟫⟬⟭⟮⟯"
    "⦃⦄⦅⦆⦇⦈⦉⦊⦋⦌⦍⦐⦏⦎⦑⦒⦗⦘⧘⧙⧚⧛⧼⧽⸢⸣⸤⸥⸦⸧⸨⸩⹕⹖⹗⹘⹙⹚⹛⹜"
)
"""Brackets in pairs, opening and closing; ASCII's are left out, as they are parts of smiles and of list numbers too."""

SPEECH_CLOSERS = "」』｣〟〞﹂﹄"
"""Closing marks of ``BRACKETS`` behind what someone says: a sentence may end behind them."""

COMMAS = "\u104a\u1735\ua9c8"
"""Marks that Unicode takes for sentence ends, and writers for commas."""

ENDS_CLASS = "[" + re.escape(ENDS) + "]"
"""``ENDS`` as a class of regular expressions."""


def is_closing(mark: str) -> bool:
    """True if a mark outside ASCII closes brackets or a quotation, such as ``』`` or ``»``."""
    return mark > "\x7f" and unicodedata.category(mark) in ("Pe", "Pf")


def is_question(mark: str) -> bool:
    """True if a mark ends a question, such as ``?`` or ``؟``."""
    return "QUESTION" in unicodedata.name(mark, "") or mark == "\u1367"


def is_exclamation(mark: str) -> bool:
    """True if a mark ends an exclamation, such as ``!`` or ``！``, and no question."""
    return "EXCLAMATION" in unicodedata.name(mark, "") and not is_question(mark)
