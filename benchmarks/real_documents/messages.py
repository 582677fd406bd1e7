"""Judges of messages and tables: polib and msgfmt, lxml and csv."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import polib
from lxml import etree

from benchmarks.real_documents.judging import Block, Fault, UnreadableError, names
from benchmarks.real_documents.stand_ins import deciphered

PLACEHOLDERS = {
    "c-format": re.compile(
        r"%(?:\d+\$)?[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|q|j|z|t|L)?[diouxXeEfFgGaAcsCSpnm%]"
    ),
    "objc-format": re.compile(r"%(?:\d+\$)?[-+ #0']*\d*(?:\.\d+)?(?:hh|h|ll|l|q|z|t)?[@diouxXeEfFgGaAcsCSpn%]"),
    "python-format": re.compile(r"%(?:\(\w+\))?[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[hlL]?[diouxXeEfFgGcrsa%]"),
    "python-brace-format": re.compile(r"\{[^{}]*\}"),
    "qt-format": re.compile(r"%L?\d{1,2}|%n"),
    "kde-format": re.compile(r"%\d+"),
    "javascript-format": re.compile(r"%(?:\d+\$)?[-+0]*\d*[dsfifoxXc%]"),
}  # fmt: skip
ANY = re.compile(r"%(?:\(\w+\)|\d+\$)?[sd@]|\{\w*\}|%\w+%")


def gettext(data: bytes) -> list[Block]:
    """Read messages: each entry, with its placeholders by its format flag."""
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
        with tempfile.NamedTemporaryFile("w", suffix=".po", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            return [entry for entry in polib.pofile(file.name, encoding="utf-8") if not entry.obsolete]
    except (OSError, ValueError, IndexError) as error:
        raise UnreadableError(str(error)) from None


def gettext_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return what only gettext's own rules tell: placeholders, layout, and what ``msgfmt -c`` refuses."""
    faults = []
    told = {" ".join(text.split()) for text in named}
    before = {(entry.msgctxt, entry.msgid): entry for entry in _entries(source)}
    for entry in _entries(result):
        old = before.get((entry.msgctxt, entry.msgid))
        if old is None or not entry.msgid:
            continue
        if old.msgstr or any(old.msgstr_plural.values()):
            if (old.msgstr, old.msgstr_plural) != (entry.msgstr, entry.msgstr_plural) and "fuzzy" not in old.flags:
                faults.append(Fault("changed", entry.msgid, "a translation that was there before"))
            continue
        texts = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
        is_told = any(" ".join(text.split()) in told for text in (entry.msgid, entry.msgid_plural or ""))
        for text in texts:
            if not text.strip():
                if not is_told and re.search(r"[A-Za-z]{2}", entry.msgid):
                    faults.append(Fault("untranslated", entry.msgid, "no msgstr, and it is not named"))
                continue
            faults += _message_faults(entry, text, mode)
    if _accepts(source) and not _accepts(result):
        faults.append(Fault("msgfmt", suffix, _complaint(result)))
    elif suffix == ".pot" and not _accepts(result):
        faults.append(Fault("msgfmt", "the template", _complaint(result)))
    return faults


def _message_faults(entry: Any, text: str, mode: str) -> list[Fault]:
    faults = []
    originals = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
    patterns = [PLACEHOLDERS[flag] for flag in entry.flags if flag in PLACEHOLDERS] or [ANY]
    for pattern in patterns:
        if all(sorted(pattern.findall(text)) != sorted(pattern.findall(original)) for original in originals):
            faults.append(Fault("placeholders", entry.msgid, f"became {text[:80]!r}"))
    if mode in ("same", "letters") and all(deciphered(text) != original for original in originals):
        faults.append(Fault("layout", entry.msgid, f"became {text[:90]!r}"))
    if any(text.endswith("\n") != original.endswith("\n") for original in originals):
        faults.append(Fault("line end", entry.msgid, f"became {text[-40:]!r}"))
    return faults


def _msgfmt(data: bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.po")
        path.write_bytes(data)
        return subprocess.run(
            ["msgfmt", "-c", "-o", str(Path(folder, "m.mo")), str(path)], capture_output=True, text=True, check=False
        )


def _accepts(data: bytes) -> bool:
    return bool(_msgfmt(data).returncode == 0)


def _complaint(data: bytes) -> str:
    lines = [line.partition("m.po:")[2] or line for line in _msgfmt(data).stderr.splitlines()]
    return "; ".join(lines[:2])


# --- XLIFF ------------------------------------------------------------------------------------------------------------


OF_TARGETS = names("state subState approved trgLang target-language state-qualifier")
"""Attributes that a translation may set."""


def xliff(data: bytes) -> list[Block]:
    """Read units: the sources and all that is not a target as they are; the pieces of new targets."""
    try:
        tree = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    blocks = []
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        name = etree.QName(element).localname
        if name == "target" or any(etree.QName(up).localname == "target" for up in element.iterancestors()
                                   if isinstance(up.tag, str)):  # fmt: skip
            continue
        attributes = {key: value for key, value in element.attrib.items() if key not in OF_TARGETS}
        text = (element.text or "").strip()
        blocks.append(Block(f"{name} {sorted(attributes.items())} {text}", marks=[name], is_text=False))
    return blocks


def xliff_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return what is wrong with the targets."""
    del suffix
    old, new = _units(source), _units(result)
    told = [" ".join(text.split()) for text in named]
    faults = []
    for key, (original, before) in old.items():
        target = new.get(key, (None, None))[1]
        if before is not None and "".join(before.itertext()).strip() and _inner(before) != _inner(original):
            if target is None or _inner(target) != _inner(before):
                faults.append(Fault("changed", key, "a target that was there before"))
            continue
        text = " ".join("".join(original.itertext()).split())
        if target is None or not "".join(target.itertext()).strip():
            if re.search(r"[A-Za-z]{2}", text) and not any(text in other or other in text for other in told if other):
                faults.append(Fault("untranslated", key, repr(text[:90])))
            continue
        if sorted(_codes(original)) != sorted(_codes(target)):
            faults.append(Fault("marks", key, f"{_codes(original)[:4]} became {_codes(target)[:4]}"))
        elif mode != "reversed" and deciphered(" ".join("".join(target.itertext()).split())) != text:
            faults.append(Fault("text", key, f"{text[:60]!r} became {''.join(target.itertext())[:60]!r}"))
        for mark in original.iter():
            protected = mark.get("translate") == "no" or mark.get("mtype") in ("protected", "x-no-translate")
            if protected and "".join(mark.itertext()) not in "".join(target.itertext()):
                faults.append(Fault("protected", key, "".join(mark.itertext())[:60]))
    return faults


def _units(data: bytes) -> dict[str, tuple[Any, Any]]:
    tree = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    units = {}
    for number, source in enumerate(tree.iter("{*}source")):
        parent = source.getparent()
        if any(up.get("translate") == "no" for up in source.iterancestors()) or etree.QName(parent).localname in (
            "alt-trans", "match",
        ):  # fmt: skip
            continue
        units[f"{number} {parent.get('id')}"] = source, parent.find("{*}target")
    return units


def _codes(element: Any) -> list[str]:
    return [f"{etree.QName(child).localname} {child.get('id', '')}" for child in element.iterdescendants()
            if isinstance(child.tag, str) and etree.QName(child).localname not in ("mrk", "sm", "em")]  # fmt: skip


def _inner(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


# --- tables ----------------------------------------------------------------------------------------------------------


def table(data: bytes, delimiter: str = ",") -> list[Block]:
    """Read rows and cells."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter))
    except (csv.Error, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from None
    return [Block(f"row {i}", [(str(j), cell) for j, cell in enumerate(row)]) for i, row in enumerate(rows)]


def tabbed(data: bytes) -> list[Block]:
    """Read a table with tabs."""
    return table(data, "\t")
