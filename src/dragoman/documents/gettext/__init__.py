"""gettext catalogues, ``.po`` and ``.pot``: entries without a translation get one, the others keep theirs.

A template gets what a catalogue of the target language needs: its charset, language and plural forms. No date and no
name is written into a header: the same input gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.documents.document import Document, DocumentInfo, Text, Untranslated, decode, text_document
from dragoman.documents.gettext import mnemonics, plurals
from dragoman.documents.gettext.catalogue import Entry, Style, entries, quoted, spellings, style_of
from dragoman.documents.gettext.finishing import finished, keeps_placeholders
from dragoman.documents.gettext.inline import is_rst
from dragoman.documents.gettext.message import Kind, Message, message_of, obstacle
from dragoman.documents.gettext.placeholders import USUAL, WHY_REJECTED, syntax_of
from dragoman.documents.units import Part, Translations, units_of, write
from dragoman.errors import DataError
from dragoman.languages.codes import variety

SUFFIXES = (".po", ".pot")
COMPARED = ()  # a translation stands beside its source

_CREDITS = frozenset((
    "translator-credits", "translator_credits", "translators-credits", "Your names", "Your emails",
    "ROLES_OF_TRANSLATORS", "NAME OF TRANSLATORS", "EMAIL OF TRANSLATORS", "CREDIT_FOR_TRANSLATORS",
))  # fmt: skip
"""Messages that translators answer with their names."""
_KEY = re.compile(r"(?:<(?:Control|Ctrl|Primary|Shift|Alt|Super|Meta)>)++[^\s<>]++")
_CHARSET = re.compile(r"charset=([\w-]+)")
MOST_HEADER = 1 << 16
"""Bytes in which the header is sought, with the comments before it."""


@dataclass(frozen=True)
class _Form:
    """A field to fill."""

    message: Message
    keyword: str  # such as ``msgstr[0]``
    empty: str  # its strings if there is no translation
    spelling: dict[str, str]
    group: list[Message]  # all new forms of its entry: they are written together, or none of them


class _Header(str):
    """The strings of the header, which declare the charset."""


_Piece: TypeAlias = "str | _Form"


@dataclass(frozen=True)
class _File:
    """Facts that all messages of a catalogue share."""

    text: str
    style: Style
    is_template: bool
    is_rst: bool
    has_underscores: bool
    has_plurals: bool
    forms: tuple[int, str]  # number of plural forms, and the rule that chooses one
    language: str | None
    no_header: int | None  # where a header must be written, if there is none


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut a catalogue into the messages that have no translation yet; see ``document.Format``."""
    text = decode(data, info, _declared(data))
    all_entries = entries(text.text)
    faults = [entry for entry in all_entries if entry.fault]
    if faults and len(faults) == len(all_entries):
        raise DataError(f"{info.name}:{faults[0].fault_line}: not a line of a .po file: {faults[0].fault[:60]}")
    why = "line {} is not a line of a .po file"
    left = [Untranslated(_beginning(text.text, entry), why.format(entry.fault_line)) for entry in faults]
    if not all_entries:
        return text_document([text.text], text)
    file = _file(text.text, all_entries, info)
    pieces: list[_Piece] = []
    at = 0  # the source up to here is in ``pieces``
    for entry in all_entries:
        if not entry.fault:
            own, at = _entry(entry, file, left, at)
            pieces += own
    pieces.append(text.text[at:])
    return Document(
        _parts(pieces), _save(pieces, text, file), tuple(left), _reject(pieces), text.read_as,
        why_rejected=WHY_REJECTED,
    )  # fmt: skip


def _declared(data: bytes) -> str | None:
    """Return the charset that the header of a catalogue names; None if it names none."""
    read = entries(data[:MOST_HEADER].decode("latin-1"))
    headers = (form for entry in read if entry.is_header and not entry.fault for form in entry.forms)
    charset = next((_CHARSET.search(header.value) for header in headers), None)
    return charset[1] if charset is not None and charset[1] != "CHARSET" else None


def _beginning(text: str, entry: Entry) -> str:
    return entry.fields[0].value[:60] if entry.fields else text[entry.start :].split("\n", 1)[0].strip()[:60]


def _file(text: str, all_entries: Sequence[Entry], info: DocumentInfo) -> _File:
    """Return what all messages of a catalogue share.

    Raises:
        DataError: Its header declares another language than that of the translation.
    """
    header = next((form for entry in all_entries if entry.is_header and not entry.fault for form in entry.forms), None)
    msgids = [own.value for entry in all_entries for own in entry.fields if own.name == "msgid"]
    comments = [comment for entry in all_entries for comment in entry.comments]
    declared = plurals.declared_forms(header.value) if header is not None else None
    is_template = info.name.lower().endswith(".pot")
    lang = plurals.declared_language(header.value) if header is not None and not is_template else ""
    if info.why_not(tgt=lang) and variety(lang) != variety(info.src_lang):  # that of the source is a copy of a template
        why = f"its header says Language {lang}, but this model translates to {info.tgt_lang}"
        raise DataError(f"{info.name}: {why}; leave it out, or mend Language in its header")
    return _File(
        text, style_of(text, list(all_entries)), is_template,
        _has_rst(comments) and any(map(is_rst, msgids)), mnemonics.has_underscores(msgids),
        any(entry.get("msgid_plural") for entry in all_entries), declared or plurals.plural_forms(info.tgt_lang),
        info.tgt_lang, None if any(entry.is_header for entry in all_entries) else all_entries[0].start,
    )  # fmt: skip


def _has_rst(comments: Sequence[str]) -> bool:
    """True if a message stands in a file that may be reStructuredText."""
    return any(comment.startswith("#:") and re.search(r"\.(?:rst|txt|py):", comment) for comment in comments)


def _entry(entry: Entry, file: _File, left: list[Untranslated], at: int) -> tuple[list[_Piece], int]:
    """Return the pieces of the source up to the end of an entry's last field that is written, and that place."""
    forms = entry.forms
    if entry.is_header:
        return _header(entry, file, at), entry.forms[0].end
    msgid = _value(entry, "msgid")
    empty = [form for form in forms if not form.value]
    why = "fuzzy already" if "fuzzy" in entry.flags else "translated already"
    left += [Untranslated(_source(entry, form.index, file), why) for form in forms if form.value]
    if empty and (why := _why_left(entry, file)):
        left.append(Untranslated(msgid, why))
        empty = []
    if not empty:
        return [], at
    if _value(entry, "msgid_plural") and len(empty) == len(forms) != file.forms[0] and forms[0].index is not None:
        return _all_forms(entry, file, at), forms[-1].end
    pieces: list[_Piece] = []
    group: list[Message] = []
    for form in empty:
        pieces += [file.text[at : form.strings_start], _form(entry, file, form.index, form.source, group)]
        at = form.end
    return pieces, at


def _why_left(entry: Entry, file: _File) -> str:
    """Return why a message stays as it is; "" if it is to be translated."""
    msgid, syntax = _value(entry, "msgid"), syntax_of(entry.flags)
    if msgid in _CREDITS:
        return "the place of the translators' names"
    if _KEY.fullmatch(msgid):
        return "a key"
    return obstacle(msgid, syntax, file.language) or obstacle(_value(entry, "msgid_plural"), syntax, file.language)


def _form(entry: Entry, file: _File, index: int | None, empty: str, group: list[Message]) -> _Form:
    """Return a form of an entry, and add its message to the group."""
    text, syntax = _source(entry, index, file), syntax_of(entry.flags)
    is_marked_up = is_rst(text) or (file.is_rst and syntax is USUAL)
    message = message_of(text, syntax, Kind(is_marked_up, file.has_underscores, file.language))
    group.append(message)
    sources = [own.source for own in entry.fields if own.name in ("msgid", "msgid_plural")]
    spelling = {character: own for source in sources for character, own in spellings(source).items()}
    return _Form(message, "msgstr" if index is None else f"msgstr[{index}]", empty, spelling, group)


def _all_forms(entry: Entry, file: _File, at: int) -> list[_Piece]:
    """Return the forms of an entry that has fewer or more of them than the catalogue's language."""
    forms = entry.forms
    pieces: list[_Piece] = [file.text[at : forms[0].start]]
    between = file.text[forms[0].end : forms[1].start] if len(forms) > 1 else file.style.line_end
    group: list[Message] = []
    for index in range(file.forms[0]):
        empty = forms[index].source if index < len(forms) else '""'
        pieces += [f"{between if index else ''}msgstr[{index}] ", _form(entry, file, index, empty, group)]
    return pieces


def _header(entry: Entry, file: _File, at: int) -> list[_Piece]:
    """Return the header with what a template leaves open."""
    form = entry.forms[0]
    comments, keywords = file.text[at : entry.fields[0].start], file.text[entry.fields[0].start : form.strings_start]
    if file.is_template:
        comments = _FUZZY.sub("", comments)
    completed = plurals.completed(form, file.language, (file.is_template, file.has_plurals), file.style)
    return [comments + keywords, _Header(completed)]


_FUZZY = re.compile(r"(?m)^#,[ \t]*fuzzy[ \t]*\r?\n|(?<=#,)[ \t]*fuzzy,")


def _value(entry: Entry, name: str) -> str:
    own = entry.get(name)
    return own.value if own is not None else ""


def _source(entry: Entry, index: int | None, file: _File) -> str:
    """Return the text that a form translates: that for one thing, or that for several."""
    msgid, plural = _value(entry, "msgid"), _value(entry, "msgid_plural")
    if not plural or index is None:
        return msgid
    numbers = plurals.numbers_of(file.forms)
    own = numbers[index] if index < len(numbers) else frozenset()
    if own == {1}:
        return msgid
    pattern = syntax_of(entry.flags).pattern
    same = sorted(pattern.findall(msgid)) == sorted(pattern.findall(plural))
    return msgid if 1 in own and same and len(numbers) > 1 else plural


# --- writing ----------------------------------------------------------------------------------------------------------


def _parts(pieces: Sequence[_Piece]) -> list[Part]:
    return [part for piece in pieces for part in ([piece] if isinstance(piece, str) else piece.message.parts)]


def _reject(pieces: Sequence[_Piece]) -> Callable[[Translations], set[str]]:
    def reject(translations: Translations) -> set[str]:
        rejected: set[str] = set()
        groups = {id(piece.group): piece.group for piece in pieces if isinstance(piece, _Form)}
        for group in groups.values():
            texts = [_translated(message, lambda parts: write(parts, translations)) for message in group]
            keeps = all(keeps_placeholders(message, translations) for message in group)
            if not keeps or None in texts or ("" in texts and any(texts)):
                units = [unit for message in group for unit in units_of(message.parts)]
                rejected |= {unit.plain for unit in units}
        return rejected

    return reject


def _translated(message: Message, render: Callable[[Sequence[Part]], str]) -> str | None:
    return finished(message, [block if isinstance(block, str) else render(block.parts) for block in message.blocks])


def _save(pieces: Sequence[_Piece], text: Text, file: _File) -> Callable[[Callable[[Sequence[Part]], str]], bytes]:
    """Return the function that writes the catalogue."""

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        groups: dict[int, list[str | None]] = {}
        written = []
        for piece in pieces:
            if isinstance(piece, str):
                written.append(piece)
                continue
            if id(piece.group) not in groups:
                groups[id(piece.group)] = [_translated(message, render) for message in piece.group]
            texts = groups[id(piece.group)]
            own = texts.pop(0) if all(texts) and texts else None
            written.append(quoted(piece.keyword, own, file.style, piece.spelling) if own else piece.empty)
        content, at = "".join(written), file.no_header
        if at is not None and content != file.text and (file.is_template or not content.isascii()):
            header = plurals.new_header(file.language, file.has_plurals, file.style)
            return (content[:at] + header + content[at:]).encode()
        try:
            return text.bom + content.encode(text.encoding)
        except UnicodeEncodeError:  # in UTF-8, as the header then says
            return "".join(
                plurals.with_charset(piece, "UTF-8") if isinstance(piece, _Header) else piece for piece in written
            ).encode()

    return save
