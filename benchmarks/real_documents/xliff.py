"""A judge of XLIFF: lxml reads it, a reader of braces its messages, and XML Schema what the standard allows."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from lxml import etree

from benchmarks.real_documents.judging import BY_MODEL, LATIN_WORD, Block, Fault, UnreadableError, names, plain, stayed
from benchmarks.real_documents.stand_ins import deciphered

OF_TARGETS = names("state subState approved trgLang target-language state-qualifier")
"""Attributes that a translation may set."""
OPEN_STATES = {None, "new", "needs-translation", "initial"}
ANNOTATIONS = names("mrk sm em")
CATEGORIES = names("zero one two few many other")
ICU = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,")
IN_ORDER = re.compile(r"(?<!%)%[-+ #0]*\d*(?:\.\d+)?(?:l|ll|h)?[sdufxc@](?!\w)")
"""Placeholders of which only the order says what they stand for."""
ADDRESS = re.compile(r"\w+://\S+")
SCHEMAS = "XLIFF_SCHEMAS"
"""Environment variable with a folder of the standard's schemas; without it nothing is held against them."""


def _tree(data: bytes) -> Any:
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableError(str(error)) from None


def _name(element: Any) -> str:
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def xliff(data: bytes) -> list[Block]:
    """Read all that is not a target: each element with its attributes and text, all of which stay."""
    blocks = []
    for element in _tree(data).iter():
        name = _name(element)
        if not name or (any(_name(up) == "target" for up in [element, *element.iterancestors()])
                        and not _in_alternative(element)):  # fmt: skip
            continue
        attributes = {key: value for key, value in element.attrib.items() if key not in OF_TARGETS}
        text, tail = (element.text or "").strip(), (element.tail or "").strip()
        blocks.append(Block(f"{name} {sorted(attributes.items())} {text} {tail}", marks=[name], is_text=False))
    return blocks


def _in_alternative(element: Any) -> bool:
    return any(_name(up) in ("alt-trans", "match") for up in element.iterancestors())


def without_targets(data: bytes) -> bytes | None:
    """Return a file with its targets removed and its languages set to English and German; None if it cannot be read."""
    try:
        tree = _tree(data)
    except UnreadableError:
        return None
    etree.strip_elements(tree, "{*}target", with_tail=False)
    for element in [tree, *tree.iter("{*}file")]:
        for key, value in (("source-language", "en"), ("srcLang", "en"), ("target-language", None), ("trgLang", None)):
            if key in element.attrib:
                del element.attrib[key]
                if value:
                    element.set(key, value)
    for element in tree.iter("{*}trans-unit", "{*}segment"):
        for key in ("approved", "state", "subState"):
            element.attrib.pop(key, None)
    return bytes(etree.tostring(tree, xml_declaration=True, encoding="UTF-8"))


# --- segments ---------------------------------------------------------------------------------------------------------


def _segments(tree: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield each segment: where it stands, its element, its source, which seg-source replaces, and its target."""
    for number, segment in enumerate(tree.iter("{*}trans-unit", "{*}segment")):
        source = segment.find("{*}source")
        if source is None:
            continue
        cut = segment.find("{*}seg-source")
        if cut is not None and cut.find(".//{*}mrk[@mtype='seg']") is not None:
            source = cut
        yield (
            f"{number} {segment.get('id') or segment.getparent().get('id')}",
            segment,
            source,
            segment.find("{*}target"),
        )


def _is_translated(element: Any) -> bool:
    for up in [element, *element.iterancestors()]:
        if up.get("translate") in ("yes", "no"):
            return bool(up.get("translate") == "yes")
    return True


def xliff_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return what is wrong with the targets, and what the schemas say of the result and not of the source."""
    del suffix
    before, after = _tree(source), _tree(result)
    told = [plain(text) for text in named]
    faults: list[Fault] = []
    for old, new in zip(_segments(before), _segments(after), strict=True):
        key, segment, text, target = old
        faults += _segment_faults(key, (segment, text, target), (new[1], new[3]), mode, told)
    if not faults:
        new_errors = set(_schema_errors(after)) - set(_schema_errors(before))
        faults += [Fault("schema", "the whole", error) for error in sorted(new_errors)[:3]]
    return faults


def _segment_faults(
    key: str, old: tuple[Any, Any, Any], new: tuple[Any, Any], mode: str, told: list[str]
) -> list[Fault]:  # fmt: skip
    (segment, source, target), (new_segment, new_target) = old, new
    state = None if target is None else target.get("state") or segment.get("state")
    had_words = target is not None and bool("".join(target.itertext()).strip())
    segmented = target is not None and target.find(".//{*}mrk[@mtype='seg']") is not None
    if had_words and not segmented:
        is_copy = plain("".join(target.itertext())) == plain("".join(source.itertext()))
        may_change = state in OPEN_STATES and state is not None and is_copy and segment.get("approved") != "yes"
        if not may_change:
            same = new_target is not None and _same(target, new_target) and segment.attrib == new_segment.attrib
            return [] if same else [Fault("changed", key, "a target that was there before")]
    texts = list(_texts(source, _is_translated(segment)))
    if new_target is None or not "".join(new_target.itertext()).strip():
        return [Fault("untranslated", key, repr(text[:90])) for text, wanted in texts
                if wanted and LATIN_WORD.search(text) and not _is_told(text, told)]  # fmt: skip
    if not _is_translated(segment):
        return [Fault("protected", key, "has a target now")] if target is None else []
    if segmented and had_words:
        return []
    faults = _target_faults(key, source, new_target, mode)
    faults += _text_faults(key, (texts, list(_texts(new_target, True))), mode, told)
    new_state = new_target.get("state") or new_segment.get("state")
    is_missing = any(_is_told(text, told) for text, _ in texts)  # a text that is named leaves the segment open
    right = {"needs-review-translation", "translated"} | (OPEN_STATES if is_missing else set())
    if not faults and new_state not in right and LATIN_WORD.search(texts[0][0]):
        faults.append(Fault("state", key, f"a new target in state {new_state}"))
    return faults


def _same(one: Any, two: Any) -> bool:
    return bool(etree.tostring(one, method="c14n") == etree.tostring(two, method="c14n"))


def _is_told(text: str, told: list[str]) -> bool:
    text = plain(text)
    return any(text in other or (other and other in text) for other in told)


def _target_faults(key: str, source: Any, target: Any, mode: str) -> list[Fault]:
    """Compare the codes and the protected texts of a source and its target."""
    faults = []
    own, new = Counter(_codes(source)), Counter(_codes(target))
    lost = own - new if _messages(source) else (own - new) + (new - own)  # a message may have more branches
    if lost:
        faults.append(Fault("marks", key, f"codes that differ: {list(lost)[:4]}"))
    if _protected(source) != _protected(target) and mode not in ("reversed", *BY_MODEL):
        faults.append(Fault("protected", key, f"{_protected(source)} became {_protected(target)}"))
    if mode in ("reversed", *BY_MODEL) and Counter(_protected(source)) != Counter(_protected(target)):
        faults.append(Fault("protected", key, f"{_protected(source)} became {_protected(target)}"))
    own_places, places = _around(source), _around(target)
    for around, words in own_places.items():
        if words and not places.get(around) and not _messages(source):
            faults.append(Fault("emptied", key, f"{around}: {words[:5]}"))
    return faults


def _codes(element: Any) -> list[str]:
    """Return every element inside with its attributes: none may be lost or changed."""
    return [f"{_name(child)} {sorted(child.attrib.items())}" for child in element.iterdescendants() if _name(child)]


def _around(element: Any) -> dict[str, list[str]]:
    """Return the words inside each element that has an identifier and flowing text."""
    return {f"{_name(child)} {child.get('id') or child.get('mid')}": re.findall(r"[^\W\d_]+", "".join(child.itertext()))
            for child in element.iterdescendants() if _name(child) in ("g", "pc", "mrk")}  # fmt: skip


def _protects(element: Any) -> bool | None:
    """True if an annotation protects its text, False if it frees it again, None if it says nothing."""
    if _name(element) != "mrk":
        return None
    if element.get("mtype") == "protected" or element.get("translate") == "no":
        return True
    return False if element.get("translate") == "yes" else None


def _protected(element: Any) -> list[str]:
    """Return the texts that an annotation protects, those of spans between ``sm`` and ``em`` too."""
    texts = [plain(child.text or "") for child in element.iterdescendants() if _protects(child)]
    spans = {child.get("id"): child for child in element.iterdescendants()
             if _name(child) == "sm" and child.get("translate") == "no"}  # fmt: skip
    return texts + [plain(child.tail or "") for child in spans.values()]


def _texts(element: Any, wanted: bool) -> Iterator[tuple[str, bool]]:
    """Yield the texts of an element's content: that of the element, of each segment and of each ``sub`` by itself."""
    segments = [child for child in element.iterdescendants() if _name(child) == "mrk" and child.get("mtype") == "seg"]
    for part in segments or [element]:
        text: list[tuple[str, bool]] = []
        subs: list[Any] = []
        _flow(part, wanted, text, subs)
        for message in _branches("".join(piece for piece, free in text if free)):
            yield message, wanted
        for sub in subs:
            yield from _texts(sub, wanted)


def _flow(element: Any, wanted: bool, text: list[tuple[str, bool]], subs: list[Any]) -> None:
    """Add the text of an element with whether it may be translated, and the subs of the codes inside."""
    span: str | None = None
    text.append((element.text or "", wanted))
    for child in element:
        name = _name(child)
        protects = _protects(child)
        if name == "sm" and child.get("translate") == "no":
            span = child.get("id")
        elif name == "em" and child.get("startRef") == span:
            span = None
        elif name in ("g", "pc", "mrk"):
            _flow(child, wanted if protects is None else not protects, text, subs)
        else:
            subs += [sub for sub in child.iterdescendants() if _name(sub) == "sub"]
        text.append((child.tail or "", wanted and span is None))


def _messages(element: Any) -> bool:
    return bool(ICU.search("".join(element.itertext())))


def _text_faults(key: str, texts: tuple[list[Any], list[Any]], mode: str, told: list[str]) -> list[Fault]:
    """Compare each text with its translation."""
    own, new = ([text for text, _ in group] for group in texts)
    if len(own) != len(new) and not any("," in text for text in own):
        return [Fault("texts", key, f"{own[:4]} became {new[:4]}")]
    faults = []
    for before, after in zip(own, new, strict=False):
        same = plain(deciphered(after)) == plain(before)
        words = sorted(re.findall(r"[^\W_]+", before)) == sorted(re.findall(r"[^\W_]+", deciphered(after)))
        if mode not in BY_MODEL and not (words if mode == "reversed" else same):
            faults.append(Fault("text", key, f"{before[:60]!r} became {after[:60]!r}"))
        elif LATIN_WORD.search(ADDRESS.sub("", before)) and stayed(before, after, mode) and not _is_told(before, told):
            faults.append(Fault("untranslated", key, repr(before[:90])))
        if IN_ORDER.findall(before) != IN_ORDER.findall(after):
            faults.append(Fault("mixed up", key, f"{before[:60]!r} became {after[:60]!r}"))
    return faults


# --- ICU messages -----------------------------------------------------------------------------------------------------


def _branches(text: str) -> Iterator[str]:
    """Yield a text without its ICU messages, then the branches of each message; a copy of ``other`` is no branch."""
    outside, inside, at = [], [], 0
    while match := ICU.search(text, at):
        outside.append(text[at : match.start()])
        at = match.end()
        branches: list[tuple[str, str]] = []
        while (branch := re.compile(r"\s*([=\w:-]+(?:\s+[\w=]+)?)\s*\{").match(text, at)) is not None:
            end = _closing(text, branch.end())
            branches.append((branch[1], text[branch.end() : end - 1]))
            at = end
        closing = re.compile(r"\s*\}").match(text, at)
        at = closing.end() if closing else len(text)
        last = branches[-1][1] if branches else ""
        for name, content in branches:
            if content != last or name not in CATEGORIES or name == branches[-1][0]:
                inside.append(content)
    yield "".join([*outside, text[at:]])
    for content in inside:
        yield from _branches(content)


def _closing(text: str, at: int) -> int:
    """Return the place after the brace that closes the one before ``at``."""
    depth = 1
    while at < len(text) and depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


# --- schemas ----------------------------------------------------------------------------------------------------------


@lru_cache
def _schema(namespace: str) -> Any:
    """Return the schema of a namespace from the folder of schemas; None without one."""
    folder = os.environ.get(SCHEMAS)
    for path in sorted(Path(folder).rglob("*.xsd")) if folder else ():
        if f'targetNamespace="{namespace}"' in path.read_text(encoding="utf-8", errors="replace"):
            try:
                return etree.XMLSchema(etree.parse(str(path)))
            except etree.XMLSchemaParseError:
                continue
    return None


def _schema_errors(tree: Any) -> list[str]:
    schema = _schema(etree.QName(tree).namespace or "")
    if schema is None or schema.validate(tree):
        return []
    return [error.message for error in schema.error_log]
