"""Text changed in ways that readers do not see: unusual white space, invisible characters, other forms of letters.

    CHANGES["no-break spaces"]("A dog runs.")  # "A\\u00a0dog\\u00a0runs."

A model that reads normalised text translates all of these alike.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F) if chr(code).isalnum()}  # marks of full width are others


def _spaces_as(space: str) -> Callable[[str], str]:
    """Return a function that replaces the spaces of a text."""
    return lambda text: text.replace(" ", space)


def _inside_with(character: str) -> Callable[[str], str]:
    """Return a function that puts a character between two letters near the middle of a text, where no mark follows."""

    def changed(text: str) -> str:
        places = [
            i for i in range(1, len(text)) if _is_letter(text[i - 1]) and _is_letter(text[i]) and _begins(text[i])
        ]
        if not places:
            return text
        place = min(places, key=lambda i: abs(2 * i - len(text)))
        return text[:place] + character + text[place:]

    return changed


def _is_letter(character: str) -> bool:
    return unicodedata.category(character).startswith(("L", "M"))


def _begins(character: str) -> bool:
    """True if a character begins a syllable, so that no mark or conjoining letter is parted from its base."""
    return not unicodedata.category(character).startswith("M") and not "\u1100" <= character <= "\u11ff"


CHANGES: dict[str, Callable[[str], str]] = {
    "no-break spaces": _spaces_as("\u00a0"),
    "narrow no-break spaces": _spaces_as("\u202f"),
    "ideographic spaces": _spaces_as("\u3000"),
    "double spaces": _spaces_as("  "),
    "line separators": _spaces_as("\u2028"),
    "tab before": lambda text: "\t" + text,
    "byte order mark before": lambda text: "\ufeff" + text,
    "zero-width space inside": _inside_with("\u200b"),
    "soft hyphen inside": _inside_with("\u00ad"),
    "decomposed letters (NFD)": lambda text: unicodedata.normalize("NFD", text),
    "full-width letters": lambda text: text.translate(_WIDE),
}
"""Changes that no reader sees, by their names; each leaves a text alone that has nothing to change."""
