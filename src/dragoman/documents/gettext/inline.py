"""Markup in messages: elements of HTML, Pango, Mallard and BBCode, reStructuredText, POD, links, terminal codes.

Elements may be numbers too, such as ``<0>``: Lingui and i18next write them for components.

marks("See `the book <https://a.org>`_.", is_rst=True)    # "`" opens, " <https://a.org>`_" closes
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from dragoman.documents.tags.pairs import pairs_of

_INLINE = re.compile(
    r"(?P<control>(?:\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\udc00-\udcff]|\\[nrt](?![a-z]))++)"
    r"|(?P<code>``[^`\n](?:[^`\n]|`(?!`))*``)"
    r"|(?P<role>(?<!`):[A-Za-z][\w:.+-]{0,60}:)`(?!\s)(?P<role_text>[^`<\n]*[^`<\s])?(?P<role_target>\s*<[^<>`\n]*>)?`"
    r"|(?P<object>(?<!`):[A-Za-z][\w:.+-]{0,60}:`(?!\s)[^`\n]+`)"  # such as :cpp:class:`Outer<int>`
    r"|`(?P<link_text>[^`<\n]*[^`<\s])(?P<link_target>\s+<[^<>`\n]*>`__?)"
    r"|`(?P<reference>[^`<>\n]+)(?P<reference_end>`__?(?!\w))"
    r"|(?P<substitution>(?<![\w|])\|[A-Za-z][\w. -]*\|(?:__?)?(?![\w|]))"
    r"|(?P<footnote>\[(?:\#[\w.-]*|\d+|\*|[A-Za-z][\w.-]*)\]_(?!\w))"
    r"|(?P<strong>(?<![\w*\\])\*\*(?=[^\s*])[^*\n]*[^\s*\\]\*\*(?![\w*]))"
    r"|(?P<emphasis>(?<![\w*\\/])\*(?=[^\s*.])[^*\n]*[^\s*\\]\*(?![\w*]))"
    r"|!?\[(?P<label>[^\[\]\n]+)(?P<address>\]\([^()\s]+\))"
    r"|(?P<pod>(?<![\w<>])(?:[CEFXZ]<(?!/)[^<>\n]*>|[CEFXZ]<<+ (?:(?! >>)[^\n]){1,500}+ >>+"
    r"|[BISL]<(?!/)(?P<pod_text>(?:[^<>|\n]|(?<=[CEFXZ])<[^<>\n]*>)*)(?:\|[^<>\n]*)?>"
    r"|[BISL]<<+ ++(?!>>)(?P<pod_wide>(?:(?! >>)[^\n]){1,500}+) >>+))"
    r"|(?P<element></?(?:(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?|(?P<number>\d{1,3})\s?)/?>)"
    r"|(?P<picture>\[img(?:=[^\[\]\n]{1,300})?\][^\[\]\s]++\[/img\])"
    r"|(?P<bbcode>\[/?(?P<code_name>[A-Za-z]\w{0,20})(?:=[^\[\]\n]{1,300})?\])"
    r"|(?P<word>(?<![\w`.-])[A-Za-z](?:[\w.-]*[A-Za-z0-9])?__?(?![\w`]))"
)
_FAR = 500
"""Number of characters within which an element that opens in what may be POD must end."""
_VOID = frozenset(("br", "hr", "img", "wbr", "input", "area", "col", "embed", "source", "track"))
_VOID_BBCODE = frozenset(("br", "hr", "lb", "rb"))  # a new line, a rule, and the brackets themselves
_TEXT_ROLES = frozenset(
    (":guilabel:", ":menuselection:", ":dfn:", ":emphasis:", ":strong:", ":title:", ":sub:", ":sup:")
)


@dataclass(frozen=True)
class Mark:
    """A stretch of markup."""

    start: int
    end: int
    kind: Literal["open", "close", "point"] = "point"
    name: str = ""
    is_rst: bool = False
    source: str = ""  # to write instead of the markup


def marks(text: str, is_rst: bool, held: Sequence[tuple[int, int]] = ()) -> list[Mark]:
    """Return the markup of a text, in order; an element without its partner is text.

    Args:
        text: A sentence of a message.
        is_rst: True if the message is written in reStructuredText.
        held: Start and end of each placeholder, in order; markup may enclose one, but does not end inside.
    """
    all_marks = [mark for match in _matches(text, held) for mark in _of(match, is_rst)]
    return _with_spaces(_merged(sorted(_paired(all_marks, text), key=lambda mark: mark.start), text), text)


def _matches(text: str, held: Sequence[tuple[int, int]]) -> Iterator[re.Match[str]]:
    """Yield matches of the pattern, and those inside text that markup encloses."""
    at, starts = 0, [start for start, _ in held]
    while match := _INLINE.search(text, at):
        spans = (held[max(0, bisect_left(starts, edge) - 1)] for edge in match.span() if held)
        if any(start < edge < end for edge, (start, end) in zip(match.span(), spans, strict=False)):
            at = match.start() + 1  # "*d and %*" of "%*d and %*d" is no emphasis
            continue
        yield match
        inner = _inner(match)
        if inner is not None:
            yield from _elements_within(text, *inner)
        at = match.end()


def _elements_within(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    for match in _INLINE.finditer(text, start, end):
        is_tag = match["element"] or match["bbcode"] or match["control"]
        if is_tag or (match["pod"] and _inner(match) is None):
            yield match


def _inner(match: re.Match[str]) -> tuple[int, int] | None:
    """Return start and end of the text that a match encloses; None if it encloses none."""
    for name in ("role_text", "link_text", "reference", "label", "pod_text", "pod_wide"):
        if match[name] and (name != "role_text" or match["role_target"] or match["role"] in _TEXT_ROLES):
            return match.span(name)
    if match["strong"]:
        return match.start() + 2, match.end() - 2
    if match["emphasis"]:
        return match.start() + 1, match.end() - 1
    return None


def _of(match: re.Match[str], is_rst: bool) -> Iterable[Mark]:
    """Return the marks of a match."""
    inside = (match["pod"] or "")[2:-1]
    if inside and f"</{inside}>" in match.string[match.end() : match.end() + _FAR]:  # C<b>m</b>: behind a letter
        return [Mark(match.start() + 1, match.end(), "open", inside)]
    if match["element"]:
        kind: Literal["open", "close", "point"] = "close" if match[0].startswith("</") else "open"
        name = match["name"] or match["number"]
        if match[0].endswith("/>") or name.lower() in _VOID:
            kind = "point"
        return [Mark(*match.span(), kind, name)]
    if match["bbcode"]:
        name = match["code_name"].lower()
        if name in _VOID_BBCODE:
            return [Mark(*match.span())]
        return [Mark(*match.span(), "close" if match[0].startswith("[/") else "open", f"[{name}]")]
    if match["control"]:
        return [Mark(*match.span())]
    if match["word"] or match["code"]:  # code of one word stays in the text that the model reads
        is_mark = is_rst if match["word"] else " " in match["code"]
        return [Mark(*match.span(), is_rst=is_rst)] if is_mark else []
    if (inner := _inner(match)) is not None:
        name = f"{match.start()}"
        if match["reference"] and is_rst:  # its text is the name of its target, which stays as it is
            target = f" <{match['reference']}_>{match['reference_end']}"
            closing = Mark(inner[1], match.end(), "close", name, True, target)
            return [Mark(match.start(), inner[0], "open", name, True), closing]
        return [
            Mark(match.start(), inner[0], "open", name, is_rst), Mark(inner[1], match.end(), "close", name, is_rst)
        ]  # fmt: skip
    return [Mark(*match.span(), is_rst=is_rst)]


def _paired(all_marks: list[Mark], text: str) -> list[Mark]:
    """Return the marks without elements that are not closed or not opened, unless they are HTML with attributes."""
    paired = {i for pair in pairs_of(all_marks) for i in pair}
    alone = [mark for i, mark in enumerate(all_marks) if i not in paired and mark.kind != "point"]
    points = [Mark(mark.start, mark.end) for mark in alone if re.match(r"<[^<>]*[\s=]", text[mark.start : mark.end])]
    return [mark for i, mark in enumerate(all_marks) if i in paired or mark.kind == "point"] + points


def _merged(all_marks: Sequence[Mark], text: str) -> list[Mark]:
    """Return the marks with an element that encloses no text, and points that stand together, as one point."""
    merged: list[Mark] = []
    for mark in all_marks:
        merged.append(mark)
        while (n := _n_as_one(merged, text)) > 1:
            merged[-n:] = [Mark(merged[-n].start, mark.end)]
    return merged


def _n_as_one(marks_before: Sequence[Mark], text: str) -> int:
    """Return how many of the last marks are one point."""
    n = 2 + (len(marks_before) > 2 and marks_before[-1].kind == "close" and marks_before[-2].kind == "point")
    last = marks_before[-n:]
    if len(last) < n or any(mark.is_rst for mark in last):
        return 1
    is_empty = (last[0].kind, last[0].name, last[-1].kind) == ("open", last[-1].name, "close")
    is_together = last[0].kind == last[-1].kind == "point"
    gaps = (text[left.end : right.start] for left, right in pairwise(last))
    return n if (is_empty or is_together) and not "".join(gaps).strip() else 1


def _with_spaces(all_marks: Sequence[Mark], text: str) -> list[Mark]:
    """Return the marks with the spaces around them that a model would not see, since it reads one of them only."""
    spaced: list[Mark] = []
    cluster: list[Mark] = []
    for mark in all_marks:
        is_tag = mark.kind != "point" and not mark.is_rst
        if cluster and (not is_tag or text[cluster[-1].end : mark.start].strip()):
            spaced += _cluster(cluster, text)
            cluster = []
        if is_tag:
            cluster.append(mark)
        else:
            spaced.append(mark)
    return [*spaced, *_cluster(cluster, text)]


def _cluster(cluster: list[Mark], text: str) -> list[Mark]:
    """Return tags that stand together, of which all spaces but one are a part; that one parts the words around them.

    It is the one behind the last tag that closes an element, and before the first that opens one.
    """
    if not cluster:
        return []
    before, behind = text[: cluster[0].start], text[cluster[-1].end :]
    edges = [len(before.rstrip()), *(mark.end for mark in cluster)]
    ends = [*(mark.start for mark in cluster), len(text) - len(behind.lstrip())]
    spaces = [n for n, (start, end) in enumerate(zip(edges, ends, strict=True)) if start < end]
    kinds = [mark.kind for mark in cluster]
    joints = [n for n, pair in enumerate(pairwise(kinds), 1) if pair == ("close", "open") and n not in spaces]
    if joints:  # the model reads a space where two elements meet
        parting = joints[0]
    elif not edges[0]:
        parting = 0
    elif ends[-1] == len(text):
        parting = len(cluster)
    else:
        ideal = kinds.index("open") if "open" in kinds else len(cluster)
        parting = min(spaces, key=lambda n: abs(n - ideal), default=0)
    for n in spaces:
        if n < parting:
            cluster[n] = replace(cluster[n], start=edges[n])
        elif n > parting:
            cluster[n - 1] = replace(cluster[n - 1], end=ends[n])
    return cluster


_RST = re.compile(
    r"``[^`\n]+``|:[A-Za-z][\w:]{0,60}:`[^`\n]+`|`[^`\n]+`__?(?!\w)|(?<!\w)\|[A-Za-z][\w-]*\|(?!\w)|\[#?\w+\]_(?!\w)"
)


def is_rst(text: str) -> bool:
    """True if a message has markup that only reStructuredText has."""
    return _RST.search(text) is not None
