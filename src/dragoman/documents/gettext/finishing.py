"""The translation of a message: its placeholders with their numbers, its lines, and its mnemonic.

finished(message, [write(parts, translations), ...])    # None if it would not be valid
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from dragoman.documents.gettext import layout, mnemonics
from dragoman.documents.gettext.message import STAND_INS, UNTRANSLATED, Message, is_valid_text, spans_of
from dragoman.documents.gettext.placeholders import Syntax, effective, is_ordered, renumbered
from dragoman.documents.units import Translations, units_of

_MARKER = re.compile(r"\0([^\0]*)\0")


def finished(message: Message, texts: Sequence[str]) -> str | None:
    """Return the translation of a message as it stands in a catalogue.

    Args:
        message: The source.
        texts: What was written for each of its ``blocks``.

    Returns:
        The translation; "" if none of its units has one; None if a placeholder were lost, or cannot have the number
        that it would need in another order.
    """
    markers = [marker for text in texts for marker in _MARKER.findall(text)]
    n_units = sum(unit.raw[:1] == [UNTRANSLATED] for unit in units_of(message.parts))
    if n_units and markers.count("-") >= n_units:
        return ""
    resolver = _Resolver(message)
    pieces = [resolver.read(text) for text in texts]
    if resolver.is_wrong or len(resolver.order) < len(message.placeholders):
        return None
    placeholders = renumbered(message.syntax, message.placeholders, resolver.order)
    if placeholders is None:
        return None
    has_numbers = placeholders != [message.placeholders[number] for number in resolver.order]
    branches = [_ordered(_placeholders_of(unit.plain, message.syntax), message.syntax) for unit in message.branches]
    if has_numbers and any(branches):
        return None  # a branch has placeholders without numbers, which do not go with others that have some
    in_order = iter(placeholders)
    written: list[str] = []
    for block, own in zip(message.blocks, pieces, strict=True):
        text = "".join(piece if isinstance(piece, str) else next(in_order) for piece in own)
        written.append(block if isinstance(block, str) else layout.wrapped(block.paragraph, _set_off(text)))
    text = _with_mnemonic("".join(written), message)
    if message.syntax.has_quotes and effective(text, message.syntax) != effective(message.text, message.syntax):
        return None
    return text if message.is_doubled or not message.is_valid or is_valid_text(text, message.syntax) else None


def keeps_placeholders(message: Message, translations: Translations) -> bool:
    """True if the branches of messages of ICU have their own placeholders, those without a name in their order.

    Placeholders in braces are tags, which always arrive.
    """
    for unit in message.branches:
        if unit.plain not in translations.by_text:
            continue
        before = _placeholders_of(unit.plain, message.syntax)
        after = _placeholders_of(translations.by_text[unit.plain].text, message.syntax)
        if sorted(before) != sorted(after):
            return False
        if _ordered(before, message.syntax) != _ordered(after, message.syntax):
            return False
    return True


def _placeholders_of(text: str, syntax: Syntax) -> list[str]:
    """Return the placeholders of a branch that are not in braces."""
    spans = [text[start:end] for start, end in spans_of(text, syntax, True)]
    return [span for span in spans if not span.startswith("{")]


def _ordered(placeholders: Sequence[str], syntax: Syntax) -> list[str]:
    """Return those placeholders of which only the order says what they stand for."""
    return [text for text in placeholders if is_ordered(syntax, text)]


def _with_mnemonic(text: str, message: Message) -> str:
    if message.mnemonic is None:
        return text
    return mnemonics.set_again(text.replace(_MNEMONIC, ""), max(0, text.find(_MNEMONIC)), message.mnemonic)


_MNEMONIC = "\0m"
_EDGE = re.compile(r"(?<=[\w`])\0\(|\0\)(?=[\w`]|(?:\0\()?:[\w:.+-]{1,60}:`|\0\(`)")


def _set_off(text: str) -> str:
    """Return text in which markup of reStructuredText is set off from letters and markup next to it."""
    return _EDGE.sub(r"\\ ", text).replace("\0(", "").replace("\0)", "")


class _Resolver:
    """Finds the placeholders in what was written, and their order."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.order: list[int] = []
        self.is_wrong = False
        self.taken: set[int] = set()
        self.waiting: dict[str, deque[int]] = {}  # the numbers of each visible placeholder
        for number, shown in sorted(message.visible.items()):
            self.waiting.setdefault(shown, deque()).append(number)

    def read(self, written: str) -> list[str | int]:
        """Return a text in pieces: text as the catalogue needs it, and the number of each placeholder."""
        pieces: list[str | int] = []
        is_joined = False
        run, hints, hint = "", list[int](), -1  # text that is not read yet, and for each character the placeholder
        for i, piece in enumerate(_MARKER.split(written)):
            if i % 2 == 0:
                run += piece
                hints += [hint] * len(piece)
                continue
            if piece[:1] in "<>":
                hint = int(piece[1:] or -1)
                continue
            if not (is_joined and piece.startswith("=") and not run.strip()):
                pieces += self._text(run, hints)
            run, hints, is_joined = "", [], piece == "j"
            if piece.startswith("="):
                pieces.append(piece[1:])
            elif piece in ("m", "(", ")"):
                pieces.append(f"\0{piece}")
            elif piece.isdecimal():
                pieces.append(self._taken(int(piece)))
        return [*pieces, *self._text(run, hints)]

    def _taken(self, number: int) -> int:
        """Return the number of a placeholder that was met."""
        self.is_wrong |= number in self.taken
        self.taken.add(number)
        self.order.append(number)
        return number

    def _text(self, text: str, hints: Sequence[int]) -> list[str | int]:
        pieces: list[str | int] = []
        at = 0
        for start, end in self._places(text):
            shown = text[start:end]
            numbers = self.waiting.get(shown)
            while numbers and numbers[0] in self.taken:
                numbers.popleft()
            if not numbers:
                self.is_wrong |= numbers is not None  # a placeholder that comes too often
                continue
            hint = max(hints[start:end])
            is_right = hint not in self.taken and self.message.visible.get(hint) == shown
            number = self._taken(hint if is_right else numbers[0])
            pieces += [self._doubled(text[at:start]), number]
            at = end
        return [*pieces, self._doubled(text[at:])]

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Return start and end of each placeholder and each stand-in of one."""
        places, at = [], 0
        for match in STAND_INS.finditer(text):
            if match[0] in self.waiting:
                before = spans_of(text[at : match.start()], self.message.syntax, not self.message.is_doubled)
                places += [(at + start, at + end) for start, end in before]
                places.append(match.span())
                at = match.end()
        behind = spans_of(text[at:], self.message.syntax, not self.message.is_doubled)
        return places + [(at + start, at + end) for start, end in behind]

    def _doubled(self, text: str) -> str:
        if self.message.is_doubled:
            for character in self.message.syntax.doubled:
                text = text.replace(character, character * 2)
        return text
