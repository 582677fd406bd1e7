"""Plural forms of languages, as ``Plural-Forms`` of a catalogue names them, and the header of a new catalogue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from gettext import c2py

from dragoman.documents.gettext.catalogue import Field, Style, decoded, quoted
from dragoman.languages.codes import standard, tag_of

_SLAVIC = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"
_FORMS: tuple[tuple[int, str, str], ...] = (
    (1, "0", "bo cv dz fa hu id ja ka km ko lo ms my su th to tr tt ug vi wo yo yue zh ay jv"),
    (2, "(n > 1)", "ach ak am ar_TN arn br fil fr fur ln mfe mg mi oc pt_BR tg ti tl uz wa"),
    (2, "(n%10==1 && n%100!=11 ? 0 : 1)", "is mk"),
    (3, _SLAVIC, "be bs hr ru sr uk sh"),
    (3, "((n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2)", "cs sk"),
    (3, "(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)", "pl csb"),
    (3, "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)", "lt"),
    (3, "(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)", "lv"),
    (3, "(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2)", "ro mo"),
    (4, "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)", "sl hsb dsb"),
    (4, "(n==1 ? 0 : n==0 || ( n%100>=1 && n%100<=10) ? 1 : (n%100>10 && n%100<20 ) ? 2 : 3)", "mt"),
    (4, "(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n > 2 && n < 20) ? 2 : 3", "gd"),
    (5, "(n==1 ? 0 : n==2 ? 1 : n>=3 && n<=6 ? 2 : n>=7 && n<=10 ? 3 : 4)", "ga"),
    (5, "(n==1 ? 1 : n==2 ? 2 : n==3 ? 3 : n==6 ? 4 : 0)", "cy"),
    (6, "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=0 && n%100<=2 ? 4 : 5)", "ar"),
)  # fmt: skip
"""Number of forms, the rule that chooses one for the number ``n``, and its languages. All others are as English."""

_BY_LANGUAGE = {language: (n, rule) for n, rule, languages in _FORMS for language in languages.split()}
_DECLARED = re.compile(
    r"^Plural-Forms:[^\n]*?nplurals[ \t]*=[ \t]*(\d{1,2})[ \t]*;[ \t]*plural[ \t]*=([^\n;]+)", re.MULTILINE
)
_LOCALE = re.compile(r"[a-z]{2,3}(?:_[A-Z]{2})?@[a-z]+")
_PLURAL_LINE = re.compile(r'Plural-Forms:[^"\\]{0,400}+(?=\\n)')
_LANGUAGE_LINE = re.compile(r"Language:[ \t]*(?=\\n)")
_LANGUAGE = re.compile(r"^Language:[ \t]*+(\S++)", re.MULTILINE)
_CHARSET = re.compile(r"(charset=)[^\s\"\\;]+")


def plural_forms(language: str | None) -> tuple[int, str]:
    """Return the number of plural forms of a language, and the rule that chooses one for a number ``n``."""
    tag = tag_of(language)
    return _BY_LANGUAGE.get(f"{tag.language}_{tag.region}") or _BY_LANGUAGE.get(tag.language) or (2, "(n != 1)")


def locale_of(language: str) -> str:
    """Return a language as a catalogue names it, such as ``pt_BR`` or ``sr@latin``."""
    return language if _LOCALE.fullmatch(language) else standard(language).replace("-", "_")


def declared_forms(header: str) -> tuple[int, str] | None:
    """Return the number of plural forms and the rule that a header declares; None if it declares none."""
    match = _DECLARED.search(header)
    return (int(match[1]), match[2].strip()) if match is not None and int(match[1]) > 0 else None


def declared_language(header: str) -> str:
    """Return the language that a header declares; "" if it declares none."""
    match = _LANGUAGE.search(header)
    return match[1] if match is not None else ""


@lru_cache(8)
def numbers_of(forms: tuple[int, str]) -> Sequence[frozenset[int]]:
    """Return for each form the numbers up to 200 that it serves."""
    n, rule = forms
    try:
        form_of = c2py(rule)
        chosen = [form_of(number) for number in range(201)]
    except (ValueError, ArithmeticError, RecursionError):
        return [frozenset({1}) if form == 0 and n > 1 else frozenset({0, 2}) for form in range(n)]
    return [frozenset(number for number, own in enumerate(chosen) if own == form) for form in range(n)]


def completed(header: Field, language: str | None, needs: tuple[bool, bool], style: Style) -> str:
    """Return the strings of a header with what a template leaves open: language, plural forms and charset.

    Args:
        header: The ``msgstr`` of the header.
        language: Target language.
        needs: True if a missing language must be added; True if missing plural forms must.
        style: How the file writes its strings.
    """
    source = _CHARSET.sub(
        lambda match: match[1] + ("UTF-8" if match[0].endswith("=CHARSET") else match[0][8:]), header.source
    )
    if language is None:
        return source
    line = "Plural-Forms: nplurals={}; plural={};".format(*plural_forms(language))
    named = f"Language: {locale_of(language)}"
    source = _LANGUAGE_LINE.sub(named, source)
    if needs[0] and "\nLanguage:" not in f"\n{header.value}":
        source = _with_line(source, f"{named}\n", style)
    if declared_forms(header.value) is None:
        if _PLURAL_LINE.search(source):
            source = _PLURAL_LINE.sub(lambda match: line, source)
        elif needs[1]:
            source = _with_line(source, f"{line}\n", style)
    return source


def _with_line(source: str, line: str, style: Style) -> str:
    """Return the strings of a header with another line at the end."""
    if decoded(source).endswith("\n"):
        return f"{source}{style.line_end}{quoted('', line, style, {})}"
    return quoted("msgstr", f"{decoded(source)}\n{line}", style, {})


def with_charset(header: str, charset: str) -> str:
    """Return a header that declares another charset."""
    return _CHARSET.sub(lambda match: match[1] + charset, header)


def new_header(language: str | None, needs_plurals: bool, style: Style) -> str:
    """Return the header of a catalogue that has none."""
    lines = ["Content-Type: text/plain; charset=UTF-8\n", "Content-Transfer-Encoding: 8bit\n"]
    if language is not None:
        lines.insert(0, f"Language: {locale_of(language)}\n")
    if needs_plurals and language is not None:
        lines.append("Plural-Forms: nplurals={}; plural={};\n".format(*plural_forms(language)))
    strings = [f'"{line[:-1]}\\n"' for line in lines]
    return style.line_end.join(['msgid ""', 'msgstr ""', *strings, "", ""])
