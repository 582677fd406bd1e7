"""A judge of XLIFF: lxml."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from benchmarks.real_documents.judging import Block, Fault, UnreadableError, names
from benchmarks.real_documents.stand_ins import deciphered

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
