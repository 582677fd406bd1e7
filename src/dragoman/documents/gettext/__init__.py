"""gettext catalogues, ``.po`` and ``.pot``: entries without a translation get one, the others keep theirs.

A template gets what a catalogue of the target language needs: its charset, language and plural forms. No date and no
name is written into a header: the same input gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.documents.document import Document, DocumentInfo, Text, Untranslated, decode
from dragoman.documents.gettext import mnemonics, plurals
from dragoman.documents.gettext.catalogue import Entry, Field, Style, entries, quoted, spellings, style_of
from dragoman.documents.gettext.inline import is_rst
from dragoman.documents.gettext.message import Message, finished, message_of
from dragoman.documents.gettext.placeholders import USUAL, syntax_of
from dragoman.documents.units import Part, Translations, Unit, write
from dragoman.errors import DataError

SUFFIXES = (".po", ".pot")

_CREDITS = frozenset((
    "translator-credits", "translator_credits", "translators-credits", "Your names", "Your emails",
    "ROLES_OF_TRANSLATORS", "NAME OF TRANSLATORS", "EMAIL OF TRANSLATORS", "CREDIT_FOR_TRANSLATORS",
))  # fmt: skip
"""Messages that translators answer with their names."""
_KEY = re.compile(r"(?:<(?:Control|Ctrl|Primary|Shift|Alt|Super|Meta)>)+\S+")
_CHARSET = re.compile(rb"charset=([\w-]+)")


@dataclass(frozen=True)
class _Form:
    """A field to fill."""

    message: Message
    keyword: str  # such as ``msgstr[0]``
    empty: str  # its strings if there is no translation
    spelling: dict[str, str]
    is_new: bool = False  # True if the file has no such field


@dataclass(frozen=True)
class _File:
    """What all messages of a catalogue share."""

    style: Style
    is_rst: bool
    has_underscores: bool
    forms: tuple[int, str]  # number of plural forms, and the rule that chooses one
    language: str | None


_Piece: TypeAlias = "str | _Form"


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut a catalogue into the messages that have no translation yet; see ``document.Format``."""
    declared = _CHARSET.search(data[:4096])
    name = declared[1].decode() if declared and declared[1] != b"CHARSET" else None
    text = decode(data, info, name)
    all_entries = entries(text.text)
    faults = [entry for entry in all_entries if entry.fault]
    if faults and len(faults) == len(all_entries):
        raise DataError(f"{info.name}:{faults[0].fault_line}: not a line of a .po file: {faults[0].fault[:60]}")
    left = [
        Untranslated(_beginning(text.text, entry), f"line {entry.fault_line} is not a line of a .po file")
        for entry in faults
    ]
    file = _file(text.text, all_entries, info)
    pieces: list[_Piece] = []
    at = 0  # the source up to here is in ``pieces``
    for entry in all_entries:
        if not entry.fault:
            own, at = _entry(entry, file, left, text.text, at, info.name.lower().endswith(".pot"))
            pieces += own
    pieces.append(text.text[at:])
    has_header = any(entry.is_header for entry in all_entries)
    new = (
        ""
        if has_header
        else plurals.new_header(info.tgt_lang, any(entry.get("msgid_plural") for entry in all_entries), file.style)
    )
    start = all_entries[0].start if all_entries else 0
    return Document(
        _parts(pieces), _save(pieces, text, file.style, (start, new)), tuple(left), _reject(pieces), text.read_as,
        why_rejected="its translation would lose a placeholder, or mix up placeholders without numbers",
    )  # fmt: skip


def _beginning(text: str, entry: Entry) -> str:
    return entry.fields[0].value[:60] if entry.fields else text[entry.start :].split("\n", 1)[0].strip()[:60]


def _file(text: str, all_entries: Sequence[Entry], info: DocumentInfo) -> _File:
    """Return what all messages of a catalogue share."""
    header = next((form for entry in all_entries if entry.is_header and not entry.fault for form in entry.forms), None)
    msgids = [own.value for entry in all_entries for own in entry.fields if own.name == "msgid"]
    comments = [comment for entry in all_entries for comment in entry.comments]
    declared = plurals.declared_forms(header.value) if header is not None else None
    return _File(
        style_of(text, list(all_entries)), _has_rst(comments) and any(map(is_rst, msgids)),
        mnemonics.has_underscores(msgids), declared or plurals.plural_forms(info.tgt_lang), info.tgt_lang,
    )  # fmt: skip


def _has_rst(comments: Sequence[str]) -> bool:
    """True if a message stands in a file that may be reStructuredText."""
    return any(comment.startswith("#:") and re.search(r"\.(?:rst|txt|py):", comment) for comment in comments)


def _entry(
    entry: Entry, file: _File, left: list[Untranslated], text: str, at: int, is_template: bool
) -> tuple[list[_Piece], int]:  # fmt: skip
    """Return the pieces of the source up to the end of an entry's last field that is written, and that place."""
    forms = entry.forms
    if entry.is_header:
        return _header(entry, file, text, at, is_template)
    msgid, plural = _value(entry, "msgid"), _value(entry, "msgid_plural")
    empty = [form for form in forms if not form.value]
    if not empty or msgid in _CREDITS or _KEY.fullmatch(msgid):
        why = "fuzzy already" if "fuzzy" in entry.flags else "translated already"
        if msgid in _CREDITS and empty:
            why = "the place of the translators' names"
        elif empty:
            why = "a key"
        n = len(forms) if why.endswith("already") else 1
        left += [Untranslated(_source(entry, form, file), why) for form in forms[:n]]
        return [text[at : forms[-1].end]], forms[-1].end
    why = "fuzzy already" if "fuzzy" in entry.flags else "translated already"
    left += [Untranslated(_source(entry, form, file), why) for form in forms if form.value]
    spelling = {
        key: own
        for name in ("msgid", "msgid_plural")
        if (field := entry.get(name))
        for key, own in spellings(field.source).items()
    }
    is_plural = bool(plural) and forms[0].index is not None
    if is_plural and len(empty) == len(forms) and len(forms) != file.forms[0]:
        return _all_forms(entry, file, spelling, text, at), forms[-1].end
    pieces: list[_Piece] = []
    for form in empty:
        keyword = "msgstr" if form.index is None else f"msgstr[{form.index}]"
        pieces.append(text[at : form.strings_start])
        pieces.append(_Form(_message(_source(entry, form, file), entry, file), keyword, form.source, spelling))
        at = form.end
    return pieces, at


def _all_forms(entry: Entry, file: _File, spelling: dict[str, str], text: str, at: int) -> list[_Piece]:
    """Return the forms of an entry that has fewer or more of them than the catalogue's language."""
    forms = entry.forms
    pieces: list[_Piece] = [text[at : forms[0].start]]
    for index in range(file.forms[0]):
        keyword = f"msgstr[{index}]"
        form = forms[index] if index < len(forms) else Field("msgstr", index, 0, 0, 0, '""')
        between = text[forms[0].end : forms[1].start] if len(forms) > 1 else file.style.line_end
        pieces.append(f"{between if index else ''}{keyword} ")
        source = _source(entry, Field("msgstr", index, 0, 0, 0, '""'), file)
        pieces.append(_Form(_message(source, entry, file), keyword, form.source, spelling, index >= len(forms)))
    return pieces


def _header(entry: Entry, file: _File, text: str, at: int, is_template: bool) -> tuple[list[_Piece], int]:
    """Return the header with what a template leaves open."""
    form = entry.forms[0]
    head = text[at : form.strings_start]
    if is_template and "fuzzy" in entry.flags:
        start, end = at, entry.fields[0].start
        comments = re.sub(r"(?m)^#,[ \t]*fuzzy[ \t]*\r?\n|(?<=#,)[ \t]*fuzzy,", "", text[start:end])
        head = comments + text[end : form.strings_start]
    completed = plurals.completed(form, file.language, is_template, file.style)
    return [head, completed], form.end


def _value(entry: Entry, name: str) -> str:
    own = entry.get(name)
    return own.value if own is not None else ""


def _source(entry: Entry, form: Field, file: _File) -> str:
    """Return the text that a form translates: that for one thing, or that for several."""
    msgid, plural = _value(entry, "msgid"), _value(entry, "msgid_plural")
    if not plural or form.index is None:
        return msgid
    numbers = plurals.numbers_of(file.forms)
    own = numbers[form.index] if form.index < len(numbers) else frozenset()
    if own == {1}:
        return msgid
    pattern = syntax_of(entry.flags).pattern
    same = sorted(pattern.findall(msgid)) == sorted(pattern.findall(plural))
    return msgid if 1 in own and same and len(numbers) > 1 else plural


def _message(text: str, entry: Entry, file: _File) -> Message:
    syntax = syntax_of(entry.flags)
    is_marked_up = file.is_rst or is_rst(text)
    return message_of(text, syntax, is_marked_up and (syntax is USUAL or is_rst(text)), file.has_underscores)


def _parts(pieces: Sequence[_Piece]) -> list[Part]:
    return [part for piece in pieces for part in ([piece] if isinstance(piece, str) else piece.message.parts)]


def _reject(pieces: Sequence[_Piece]) -> Callable[[Translations], set[str]]:
    def reject(translations: Translations) -> set[str]:
        rejected: set[str] = set()
        for piece in pieces:
            if isinstance(piece, _Form):
                units = [part for part in piece.message.parts if isinstance(part, Unit)]
                if units and _translated(piece.message, lambda parts: write(parts, translations)) is None:
                    rejected |= {unit.plain for unit in units}
        return rejected

    return reject


def _translated(message: Message, render: Callable[[Sequence[Part]], str]) -> str | None:
    return finished(message, [block if isinstance(block, str) else render(block.parts) for block in message.blocks])


def _save(
    pieces: Sequence[_Piece], text: Text, style: Style, header: tuple[int, str]
) -> Callable[[Callable[[Sequence[Part]], str]], bytes]:  # fmt: skip
    """Return the function that writes the catalogue.

    Args:
        pieces: The source, and the fields to fill.
        text: The source and its encoding.
        style: How strings are written.
        header: Place and text of a header that is needed if the catalogue has none and a translation is not ASCII.
    """

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        written = []
        for piece in pieces:
            if isinstance(piece, str):
                written.append(piece)
                continue
            own = _translated(piece.message, render)
            if own:
                written.append(quoted(piece.keyword, own, style, piece.spelling))
            else:
                written.append(piece.empty)
        content = "".join(written)
        if header[1] and not content[header[0] :].isascii():
            content = content[: header[0]] + header[1] + content[header[0] :]
        return _encoded(content, text)

    return save


def _encoded(content: str, text: Text) -> bytes:
    """Return a catalogue in its encoding; in UTF-8, which its header then declares, if that lacks a character."""
    try:
        return text.bom + content.encode(text.encoding)
    except UnicodeEncodeError:
        return plurals.with_charset(content, "UTF-8").encode()
