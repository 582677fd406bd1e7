"""Tags keep their number, order and bytes; only text is translated."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents import markup
from dragoman.documents.units import Translations, units_of, write
from dragoman.translation.assemble import Translation


def upper(source: str, kind: markup.Kind, links: str = "", **elements: list[str]) -> str:
    """The text "translated" to capitals, word by word, or with the words as ``links`` orders them ("1 0")."""
    parts = markup.parse(source, kind, **elements)  # type: ignore[arg-type]
    found = {}
    for unit in units_of(parts):
        words = unit.plain.upper().split()
        order = [int(i) for i in links.split()] if links else list(range(len(words)))
        text = " ".join(words[i] for i in order)
        if words:
            found[unit.plain] = Translation(text, 0.0, alignment=tuple(sorted((i, n) for n, i in enumerate(order))))
    return write(parts, Translations(found))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plain", "PLAIN"),
        ("a <b>red</b> cat", "A <b>RED</b> CAT"),
        ("<p>One.</p>\n<p class='x'>Two</p>", "<p>ONE.</p>\n<p class='x'>TWO</p>"),
        ("a &amp; b &lt; c", "A &amp; B &lt; C"),
        ("a<br>b", "A<br>B"),
        ("<b>Hi</b>!", "<b>HI</b>!"),
        ("see (<i>this</i>), now", "SEE (<i>THIS</i>), NOW"),
        ("x <code>a < b</code> y", "X <code>a < b</code> Y"),
        ('keep <span translate="no">this one</span> please', 'KEEP <span translate="no">this one</span> PLEASE'),
        ("<script>if (a<b) c()</script>text", "<script>if (a<b) c()</script>TEXT"),
        ("<!-- no --> yes", "<!-- no --> YES"),
        ("1 < 2 and 3 > 2", "1 < 2 AND 3 > 2"),
        ("<ul><li>one</li><li> two </li></ul>", "<ul><li>ONE</li><li> TWO </li></ul>"),
        ("<b> </b>", "<b> </b>"),
        ("", ""),
    ],
)
def test_html(source: str, expected: str) -> None:
    assert upper(source, "html") == expected


def test_elements_go_where_their_words_went() -> None:
    assert upper("the <b>red cat</b> sleeps", "html", "3 1 2 0") == "SLEEPS <b>RED CAT</b> THE"
    assert upper("the <b>red</b> cat", "html", "0 2 1") == "THE CAT <b>RED</b>"


def test_a_placeholder_comes_back_byte_for_byte_before_the_word_it_stood_before() -> None:
    assert upper('a <x id="7"></x> cat', "xml") == 'A <x id="7"></x> CAT'
    assert upper('a<x id="7"></x>, cat', "xml") == 'A<x id="7"></x>, CAT'
    assert upper("a <x>not me</x> cat", "xml", ignored=["x"]) == "A <x>not me</x> CAT"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<td>12</td><td>15</td><td>I like cats.</td>", ["12", "15", "I like cats."]),
        ("<doc><title>A</title><para>B</para >< para>C</para></doc>", ["A", "B", "< para>C"]),
        ("<r><k>Name</k><v>Tom</v> <w>here</w></r>", ["Name", "Tom", "here"]),
        ("a <b>dog</b><i>s</i> <x1>a</x1><x2>b</x2>", ["a dogs ab"]),
        ("I like cats.<br/>Where is<br/>it?", ["I like cats. Where is it?"]),
        ("in<wbr/>side", ["inside"]),
    ],
)
def test_elements_of_xml_that_touch_are_texts_of_their_own(source: str, expected: list[str]) -> None:
    """Two numbers became one, and the words of two cells too."""
    assert [unit.plain for unit in units_of(markup.parse(source, "xml")) if unit.plain] == expected


def test_xml_keeps_lines_and_splits_where_it_is_told() -> None:
    assert upper("one\ntwo", "xml") == "ONE\nTWO"
    assert len(list(units_of(markup.parse("<a>x</a><c>y</c>", "xml", splitting=["a", "c"])))) == 2
    assert len(list(units_of(markup.parse("<a>x</a><c>y</c>", "xml")))) == 1
    assert len(list(units_of(markup.parse("<p>x</p><p>y</p>", "html", non_splitting=["p"])))) == 1


PIECES = st.lists(
    st.sampled_from(
        ["a", "cat ", " sees", "\n", "<b>", "</b>", "<i class='u<v'>", "</i>", "<br/>", '<x id="7"></x>', "<p>", "</p>",
         "&amp;", "&nbsp;", "<", ">", "<code>", "</code>", "<!-- c -->", "{0}", "é", "<td\n>", "</"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(PIECES, st.sampled_from(["html", "xml"]), st.randoms())
def test_any_mix_keeps_its_tags(source: str, kind: markup.Kind, chance: object) -> None:
    parts = markup.parse(source, kind)
    found = {}
    for unit in units_of(parts):
        words = unit.plain.split()
        order = list(range(len(words)))
        chance.shuffle(order)  # type: ignore[attr-defined]
        links = tuple((i, n) for n, i in enumerate(order) if n % 3)  # some words have no partner
        if words:
            found[unit.plain] = Translation(" ".join(words[i] for i in order), 0.0, alignment=tuple(sorted(links)))
    out = write(parts, Translations(found))
    tags = [[match[0] for match in markup.TOKEN.finditer(text)] for text in (out, source)]
    assert sorted(tags[0]) == sorted(tags[1])
    kept = [re.sub(r"\s+", "", markup.TOKEN.sub("", text)) for text in (source, out)]
    assert len(kept[0]) <= len(kept[1]) + 8 * source.count("&")  # no text is lost
