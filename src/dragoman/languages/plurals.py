"""Plural categories of languages, by CLDR 48: https://www.unicode.org/cldr/charts/48/supplemental/language_plural_rules.html

Categories of whole numbers below a million; each language also has ``other``.
"""

from __future__ import annotations

from dragoman.languages.codes import primary


def _table(lines: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the categories of each language of a table of lines."""
    return {code: tuple(names.split()) for names, codes in lines.items() for code in codes.split()}


_CARDINAL = _table({
    "": "bm bo dz id ig ja jbo jv kde km ko lo ms my nqo sah ses sg su th to tpi vi wo yo yue zh",
    "one two": "he iu naq se sma smj smn sms",
    "one two few": "dsb gd hsb sl",
    "one few": "bs hr ro shi sr",
    "one few many": "be cs lt pl ru sk uk",
    "zero one": "blo ksh lag lv prg",
    "zero one two few many": "ar cy kw",
    "one two few many": "br ga gv mt",
})  # fmt: skip
_ORDINAL = _table({
    "one": "bal fil fr ga hu hy lo mo ms ne ro sv vi", "few": "be tk uk", "many": "it kk lld scn vec",
    "one two few": "ca en gd mr", "one two few many": "as bn gu hi or", "one two many": "mk", "one many": "ka kw sq",
    "one few many": "az", "zero one two few many": "cy",
})  # fmt: skip


def plural_categories(lang: str | None, ordinal: bool = False) -> tuple[str, ...]:
    """Return the plural categories that a language needs beside ``other``, in CLDR's order.

    Args:
        lang: A language tag. An unknown language counts two forms, and has no ordinal forms.
        ordinal: Return those of "1st, 2nd, 3rd" instead of those of "1 dog, 2 dogs".
    """
    return _ORDINAL.get(primary(lang), ()) if ordinal else _CARDINAL.get(primary(lang), ("one",))
