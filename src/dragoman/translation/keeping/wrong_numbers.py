"""Writes the right numbers in the places of those that a model got wrong.

    in_place("شهر ١٩٣٤", [Span("number", "1943", 6)], [Span("number", "١٩٣٤", 4)], alike=True)    # "شهر ١٩٤٣"

A model that copies a number digit by digit may swap, lose or add some. If each missing number of the source has its own
wrong number in the translation, that one is replaced: the sentence stays, and the digits and separators are its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

from dragoman.translation.keeping.protected import Span
from dragoman.translation.keeping.same_numbers import summed, without_grouping
from dragoman.translation.keeping.written_numbers import in_ascii, parse

LEAST_ALIKE = 0.55
"""Least likeness (twice the common digits over all) of a number and its wrong copy: 1943 and 1934 have 0.75."""

MOST_NUMBERS = 12
MOST_DIGITS = 24
"""Texts with more numbers, and longer numbers, are not compared: the time grows with their squares."""

_PLAIN = re.compile(r"\d+")
_DATE_BEFORE, _DATE_AFTER = re.compile(r"\d[^\w\s]{1,3}$"), re.compile(r"[^\w\s]{1,3}\d")
_SEPARATED = re.compile(r"\d+(?:[hHu.,:/٫٬‎‏\u00a0\u202f -]+\d+)*")


def in_place(text: str, lost: Sequence[Span], wrong: Sequence[Span], alike: bool) -> str | None:
    """Return a translation with each lost number in the place of a wrong one; None if they do not pair up one to one.

    Args:
        lost: Numbers that the translation lacks, in the order of the source.
        wrong: Numbers of the translation that the source has in no form, in order.
        alike: True if only a garbled copy may be replaced, whatever other wrong numbers there are; otherwise there
            must be as many wrong numbers as lost ones.
    """
    if not lost or len(lost) > len(wrong) or len(wrong) > MOST_NUMBERS or (not alike and len(lost) != len(wrong)):
        return None
    pairs = _alike(lost, wrong)
    if pairs is None and not alike:
        pairs = list(zip(lost, wrong, strict=True))
    if pairs is None:
        return None
    for number, old in sorted(pairs, key=lambda pair: -pair[1].start):
        new = written_like(number.text, old.text)
        if new is None:
            return None
        text = text[: old.start] + new + text[old.end :]
    return text


def in_date(text: str, number: Span) -> bool:
    """True if a number may be the month of a date whose source has its name, as 05 in 22/05/1924."""
    if not number.text.isdecimal() or not 1 <= int(number.text[-MOST_DIGITS:]) <= 12:
        return False
    before, after = text[: number.start], text[number.end :]
    return _DATE_BEFORE.search(before[-4:]) is not None or _DATE_AFTER.match(after[:4]) is not None


def _alike(lost: Sequence[Span], wrong: Sequence[Span]) -> list[tuple[Span, Span]] | None:
    """Return each lost number with the wrong one that is most like it; None if one has none, or two equally alike."""
    ranked = sorted(
        ((_likeness(number.text, old.text), number, old) for number in lost for old in wrong), key=lambda row: -row[0]
    )
    pairs: dict[Span, tuple[float, Span]] = {}
    for likeness, number, old in ranked:
        is_used = any(old == other for _, other in pairs.values())
        if likeness < LEAST_ALIKE or (number in pairs and (is_used or likeness < pairs[number][0])):
            continue
        if number in pairs and len(lost) != len(wrong):
            return None
        if number not in pairs and not is_used:
            pairs[number] = likeness, old
    return [(number, pairs[number][1]) for number in lost] if len(pairs) == len(lost) else None


def _likeness(number: str, old: str) -> float:
    """Return twice the digits that two numbers have in common over all of theirs; 0 if only zeros at the end differ."""
    digits, others = ("".join(re.findall(r"\d", in_ascii(text))) for text in (number, old))
    if len(digits) < 2 or max(len(digits), len(others)) > MOST_DIGITS:
        return 0.0
    if len(others) > len(digits) + 1 and not set(others) <= set(digits):  # two numbers have become one
        return 0.0
    if digits.strip("0") == others.strip("0"):
        return 0.0
    return SequenceMatcher(None, digits, others, autojunk=False).ratio()


def written_like(number: str, old: str) -> str | None:
    """Return a number in the digits of another and with its separators; None if their signs or units differ.

    The other may be no chain such as 1億2000万: its first number would be replaced.
    """
    new, before = parse(number), parse(old)
    if (new.sign, new.symbol, new.power, new.has_fraction) != (before.sign, before.symbol, before.power, False):
        return None
    core = _SEPARATED.search(old)
    if core is None or summed(old) != old or not _SEPARATED.fullmatch(new.core):
        return None
    if before.core == old != core[0]:  # "halb 3", whose hour is no number by itself
        return None
    plain = without_grouping(new.core)
    groups, separators = re.findall(r"\d+", new.core), re.findall(r"\D+", core[0])
    if len(groups) == len(separators) + 1:
        written = "".join(group + separator for group, separator in zip(groups, [*separators, ""], strict=True))
    elif _PLAIN.fullmatch(core[0]) and _PLAIN.fullmatch(plain):
        written = plain
    else:
        written = new.core
    return old[: core.start()] + in_digits_of(written, core[0]) + old[core.end() :]


def in_digits_of(number: str, text: str) -> str:
    """Return a number in the decimal digits of a text, if the text has those of one script alone."""
    zeros = {ord(character) - unicodedata.decimal(character) for character in text if character.isdecimal()}
    if len(zeros) != 1:
        return number
    zero = zeros.pop()
    return "".join(chr(zero + unicodedata.decimal(digit)) if digit.isdecimal() else digit for digit in number)


def beside(text: str, parts: Sequence[str], wrong: Sequence[Span]) -> str | None:
    """Return a translation in which parts that were put in take the places of wrong numbers right beside them.

    Args:
        parts: Texts that were put in; those that are no single number stay where they are.
    """
    if len(wrong) > MOST_NUMBERS:
        return None
    new = text
    for old in reversed(wrong):
        for number in parts:
            after = new[old.end :].lstrip()
            if _SEPARATED.fullmatch(number) and after.startswith(number) and not after[len(number) :][:1].isdecimal():
                written = written_like(number, old.text)
                if written is not None:
                    new = new[: old.start] + written + after[len(number) :]
                    break
    return new if new != text else None
