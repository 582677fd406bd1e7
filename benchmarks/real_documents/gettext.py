"""Judge of gettext catalogues: polib, Babel's checkers and ``msgfmt -c``."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import polib
from babel.messages.pofile import PoFileError, read_po

from benchmarks.real_documents.judging import BY_MODEL, LATIN_WORD, Block, Fault, UnreadableError, stayed
from benchmarks.real_documents.stand_ins import deciphered

_C = r"%(?:\d+\$)?[-+ #0'I]*(?:\d+|\*(?:\d+\$)?)?(?:\.(?:\d+|\*(?:\d+\$)?)?)?"
PLACEHOLDERS = {
    "c-format": re.compile(
        _C + r"(?:(?:hh|h|ll|l|q|j|z|t|L)?[diouxXeEfFgGaAcsCSpnm%]|<PRI\w+>)"
    ),
    "objc-format": re.compile(_C + r"(?:hh|h|ll|l|q|z|t)?[@diouxXeEfFgGaAcsCSpn%]"),
    "python-format": re.compile(r"%(?:\(\w+\))?[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[hlL]?[diouxXeEfFgGcrsa%]"),
    "python-brace-format": re.compile(r"\{[^{}]*\}"),
    "perl-brace-format": re.compile(r"\{\w+\}"),
    "qt-format": re.compile(r"%L?\d{1,2}|%n"),
    "qt-plural-format": re.compile(r"%L?\d{1,2}|%L?n"),
    "kde-format": re.compile(r"%\d+"),
    "javascript-format": re.compile(r"%(?:\d+\$)?[-+0]*\d*[dsfifoxXc%]"),
    "tcl-format": re.compile(_C + r"[hl]?[diouxXeEfFgGcs%]"),
    "perl-format": re.compile(_C + r"[hlqLV]*[diouxXeEfFgGcspn%]"),
    "php-format": re.compile(r"%(?:\d+\$)?[-+]?(?:0|'.)?\d*(?:\.\d+)?[bcdeEfFgGosuxX%]"),
    "sh-format": re.compile(r"\$\w+|\$\{\w+\}"),
    "lisp-format": re.compile(r"~[-+\d,'vV#:@]*[^-+\d,'vV#:@\s]"),
    "scheme-format": re.compile(r"~[-+\d,'vV#:@]*[^-+\d,'vV#:@\s]"),
    "gcc-internal-format": re.compile(r"%(?:\d+\$)?[-+ #0qwlzt.*\d]*[A-Za-z@%{}]|%[<>']"),
    "gfc-internal-format": re.compile(r"%(?:\d+\$)?[lh]*[A-Za-z%]|%[<>']"),
    "csharp-format": re.compile(r"\{\d+[^{}]*\}"),
    "java-format": re.compile(r"\{\d+[^{}]*\}"),
    "ruby-format": re.compile(r"%\{\w+\}|%<\w+>[-+ #0\d.]*[A-Za-z]|%(?:\d+\$)?[-+ #0\d.]*[A-Za-z%]"),
}  # fmt: skip
ANY = re.compile(r"%(?:\(\w+\)|\d+\$)?[sd@](?!\w)|\{\w*\}|%\w+%|%L?\d{1,2}(?![\d%])|\$\{\w+\}|@[A-Z_]+@"
                 r"|(?<![\w:.]):[a-z]\w{2,}(?![\w:`])|\\[nrt](?![a-z])")  # fmt: skip
MARKUP = re.compile(
    r"</?[A-Za-z][^<>]*>|&\w+;|``[^`]+``|(?<!`):[\w:]+:`(?!\s)[^`<]+`|<[^<>`]+>`_|(?<![\w|])\|\w+\|(?![\w|])|\[#?\w+\]_|https?://[\w./-]+"
)
"""Markup that must arrive: elements, entities, code, roles, targets of links, substitutions, footnotes, addresses."""
TEXT_ROLES = re.compile(r":(?:guilabel|menuselection|dfn|emphasis|strong|title):`[^`]+`")
POD = re.compile(r"(?<![\w<>])[BISL]<(?!/)[^<>]*>")
"""Text in a style, and links, in the documentation of Perl."""
NO_WORDS = re.compile(
    r"``[^`]+``|`[^`]*`|:[\w:]+:|<[^<>]*>|%\(\w+\)\w|[%$#@]?\{[^{}]*\}|\w+[._]\w[\w._]*|-\S+|\S+[/\\=]\S*|\S+@\S+|&\w+;|%\S+|\$\w+|\[\S+\]_?"
)
NAMED_TARGET = re.compile(r" <[^<>`]+_>`_")
"""Name of a link's target, which is the link's text in the source."""
ACCELERATOR = re.compile(r"\(_\w\)")


def gettext(data: bytes) -> list[Block]:
    """Read messages: each entry, with its comments and flags."""
    blocks = []
    for entry in _entries(data):
        key = f"{entry.msgctxt}|{entry.msgid}|{entry.msgid_plural}"
        marks = [*entry.flags, *map(str, entry.occurrences), entry.comment, entry.tcomment, str(entry.previous_msgid)]
        blocks.append(Block(key, marks=marks, is_text=False))
    return blocks


def _entries(data: bytes) -> list[Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        match = re.search(rb"charset=([\w-]+)", data[:4000])
        try:
            text = data.decode(match[1].decode() if match else "latin-1")
        except (LookupError, UnicodeDecodeError) as error:
            raise UnreadableError(str(error)) from None
    try:
        return _read(text)
    except (OSError, ValueError, IndexError) as error:
        command = ["msgcat", "--no-wrap", "-"]  # gettext reads some forms that polib does not
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        try:
            done.check_returncode()
            return _read(done.stdout.decode())
        except (OSError, ValueError, IndexError, subprocess.CalledProcessError):
            raise UnreadableError(str(error)) from None


def _read(text: str) -> list[Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".po", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        return [entry for entry in polib.pofile(file.name, encoding="utf-8") if not entry.obsolete]


def gettext_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return what only gettext's own rules tell: placeholders, markup, layout, and what ``msgfmt -c`` refuses."""
    faults = []
    told = {_bare(text) for text in named}
    before = {(entry.msgctxt, entry.msgid): entry for entry in _entries(source)}
    for entry in _entries(result):
        old = before.get((entry.msgctxt, entry.msgid))
        if old is None or not entry.msgid:
            continue
        if old.msgstr or any(old.msgstr_plural.values()):
            if not _keeps(old, entry) and "fuzzy" not in old.flags:
                faults.append(Fault("changed", entry.msgid, "a translation that was there before"))
            continue
        faults += _entry_faults(entry, mode, told)
    faults += _refused(source, result, suffix)
    return faults


def _keeps(old: Any, new: Any) -> bool:
    forms = all(new.msgstr_plural.get(i) == text for i, text in old.msgstr_plural.items() if text)
    return bool(old.msgstr == new.msgstr and forms)


def _bare(text: str) -> str:
    return " ".join(re.findall(r"[^\W\d_]{2,}", re.sub(r"</?[A-Za-z][^<>]*>", " ", text)))


def _entry_faults(entry: Any, mode: str, told: set[str]) -> list[Fault]:
    texts = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
    originals = [
        _bare(text)
        for own in (entry.msgid, entry.msgid_plural or "")
        for text in (own, re.sub("[&_](?=\\w)", "", own), _CODE.sub(" ", own))
    ]
    is_told = any(other and any(other in text or text == other for text in originals) for other in told) or any(
        _is_of(other, text) for text in originals for other in told if text
    )
    faults = []
    for text in texts:
        if not text.strip():
            if not is_told and re.search(r"[A-Za-z]{2}", NO_WORDS.sub(" ", entry.msgid)):
                faults.append(Fault("untranslated", entry.msgid, "no msgstr, and it is not named"))
            continue
        faults += _message_faults(entry, text, mode)
        words = LATIN_WORD.search(NO_WORDS.sub(" ", TEXT_ROLES.sub(" ", entry.msgid)))
        is_left = any(stayed(original, text, mode) for original in (entry.msgid, entry.msgid_plural or entry.msgid))
        if words and is_left and not is_told:
            faults.append(Fault("untranslated", entry.msgid, f"is {text[:80]!r}"))
    return faults


_CODE = re.compile(r"``[^`]+``|:[\w:]+:`[^`]+`")
"""Code and roles of reStructuredText."""


def _is_of(named: str, text: str) -> bool:
    """True if a text that the report names is a message's, perhaps without its placeholders."""
    own, words = named.split(), text.split()
    return 2 * len(own) >= len(words) and not Counter(own) - Counter(words)


def _message_faults(entry: Any, text: str, mode: str) -> list[Fault]:
    faults = []
    text = NAMED_TARGET.sub("`_", text)
    originals = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
    flags = [flag for flag in entry.flags if flag in PLACEHOLDERS]
    is_icu = re.search(r"\{\w+, *(?:plural|select)", entry.msgid)  # its branches are text
    for pattern in [PLACEHOLDERS[flag] for flag in flags] or [ANY][: not is_icu]:
        if all(_counted(pattern, text, mode) != _counted(pattern, original, mode) for original in originals):
            faults.append(Fault("placeholders", entry.msgid, f"became {text[:80]!r}"))
    if "c-format" in flags and mode == "reversed":
        faults += _mixed_up(entry, text, originals)
    if all(_marks(text) != _marks(original) for original in originals):
        faults.append(Fault("markup", entry.msgid, f"became {text[:90]!r}"))
    if mode in ("same", "letters") and all(deciphered(text) != deciphered(original) for original in originals):
        faults.append(Fault("layout", entry.msgid, f"became {text[:90]!r}"))
    if all(_shape(text) != _shape(original) for original in originals):
        faults.append(Fault("columns", entry.msgid, f"became {text[:90]!r}"))
    for edge in (str.startswith, str.endswith):
        if any(edge(text, "\n") != edge(original, "\n") for original in originals):
            faults.append(Fault("line end", entry.msgid, f"became {text[-40:]!r}"))
    return faults


def _counted(pattern: re.Pattern[str], text: str, mode: str) -> Counter[str]:
    """Count placeholders, with or without numbers; a model may write a percent sign as a word ("100 Prozent")."""
    counted = Counter(re.sub(r"\d+\$|(?<=\{)\d+", "", match) for match in pattern.findall(text))
    if mode in BY_MODEL:
        del counted["%%"]
    return counted


def _mixed_up(entry: Any, text: str, originals: list[str]) -> list[Fault]:
    """Return a fault if two equal placeholders were not numbered though the words are in reverse order."""
    words = re.compile(r"(?<!\S)%s(?!\S)")
    plain = originals[0]
    is_simple = (
        re.search("[a-z]", words.sub("", plain))
        and text.count("%") == plain.count("%") == len(words.findall(plain)) == 2
        and "\n" not in plain.strip()
    )
    if is_simple and "$" not in text and not re.search(r"[.?!:] |  |\t", plain):
        return [Fault("mixed up", entry.msgid, f"became {text[:90]!r}")]
    return []


def _marks(text: str) -> Counter[str]:
    plain_text = TEXT_ROLES.sub("", POD.sub("", deciphered(text)))
    return Counter(re.sub(r"%\d+\$", "%", mark) for mark in MARKUP.findall(plain_text)
                   if deciphered(mark) == mark)  # fmt: skip


def _shape(text: str) -> tuple[int, int, str, str]:
    """Return what of a layout another order of words does not change: tabs, columns, space at both ends."""
    text = ACCELERATOR.sub("", text)
    ends = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return text.count("\t"), len(re.findall(r"\S {3,}(?=\S)", text)), *ends


def _refused(source: bytes, result: bytes, suffix: str) -> list[Fault]:
    """Return what ``msgfmt -c`` and Babel's checkers have against the result and not against the source."""
    faults = []
    complaint = _complaint(result)
    if complaint and (suffix == ".pot" or not _complaint(source)):
        faults.append(Fault("msgfmt", suffix, complaint))
    if _checked(result) > _checked(source):
        faults.append(Fault("babel", suffix, f"{_checked(result)} errors instead of {_checked(source)}"))
    return faults


def _checked(data: bytes) -> int:
    """Return the number of messages that Babel's checkers refuse."""
    try:
        with redirect_stdout(StringIO()):  # it prints warnings
            catalogue = read_po(BytesIO(data))
    except (PoFileError, ValueError, LookupError, UnicodeDecodeError, AttributeError, TypeError):
        return 0
    # Babel takes every percent sign for a placeholder of Python.
    flagged = {entry.msgid for entry in _entries(data) if "python-format" in entry.flags}
    own = [message for message in catalogue if message.string and _first(message.id) in flagged]
    filled = [message for message in own if isinstance(message.string, str) or all(message.string)]
    return sum(bool(message.id and message.check(catalogue)) for message in filled)


def _first(msgid: Any) -> str:
    return str(msgid if isinstance(msgid, str) else msgid[0])


def _complaint(data: bytes) -> str:
    """Return what ``msgfmt -c`` says; "" if it accepts the catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.po")
        path.write_bytes(data)
        command = ["msgfmt", "-c", "-o", str(Path(folder, "m.mo")), str(path)]
        done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        return ""
    errors = done.stderr.decode(errors="replace").splitlines()
    lines = [line.partition("m.po:")[2] or line for line in errors if "warning" not in line]
    return "; ".join(lines[:2]) or "refused"


def without_translations(data: bytes) -> bytes | None:
    """Return a catalogue with each translation emptied; None for one that gettext does not read, or that has none."""
    command = ["msgattrib", "--no-obsolete", "--clear-fuzzy", "--clear-previous", "-"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    made = emptied(done.stdout) if done.returncode == 0 and done.stdout else None
    return made if made != done.stdout else None


def emptied(data: bytes) -> bytes:
    """Return a catalogue, as gettext's programs write it, with each translation but the header emptied."""
    lines: list[bytes] = []
    is_header = is_dropped = False
    for line in data.split(b"\n"):
        if line.startswith(b"msgstr"):
            is_header = bool(lines) and lines[-1] == b'msgid ""'
            is_dropped = not is_header
            lines.append(line if is_header else line.partition(b" ")[0] + b' ""')
        elif not (is_dropped and line.startswith(b'"')):
            is_dropped = False
            lines.append(line)
    return b"\n".join(lines)
