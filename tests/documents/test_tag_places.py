"""Tags in translations of another order: judged by lxml, which knows nothing of how they were placed."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from lxml import etree

from dragoman.documents import markup
from dragoman.documents.tags.pieces import Side
from dragoman.documents.tags.spaces import with_spaces
from dragoman.documents.units import AlignedText, Lost, Tag, Translations, Unit, units_of, write
from limits import cpu_limit

SEED = 41
HAN = [chr(code) for code in range(0x4E00, 0x9000)]


@dataclass
class Made:
    """A text of nested elements, and the numbers of its words in an order that the nesting allows."""

    source: list[str] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    n_words: int = 0


def made(chance: random.Random, depth: int = 0) -> Made:
    """A random text: words, elements (some empty), placeholders."""
    content = Made()
    children: list[list[int]] = []
    for _ in range(chance.randint(1, 5)):
        kind = chance.choice(["word", "word", "word", "element", "empty", "point"])
        if kind == "word" or depth > 3:
            content.source.append("w")
            children.append([content.n_words])
            content.n_words += 1
        elif kind == "element":
            inner = made(chance, depth + 1)
            content.source.append(f"<e>{' '.join(inner.source)}</e>")
            children.append([number + content.n_words for number in inner.order])
            content.n_words += inner.n_words
        else:
            content.source.append("<e></e>" if kind == "empty" else "<x/>")
    chance.shuffle(children)
    content.order = [number for own in children for number in own]
    return content


def numbered(source: str) -> str:
    """The text with a number on each element and word."""
    ids, words = count(), count()
    source = re.sub(r"<([ebx])(/?)>", lambda match: f"<{match[1]} id='{next(ids)}'{match[2]}>", source)
    return re.sub(r"\bw\b", lambda match: f"w{next(words)}", source)


def translated(source: str, order: list[int], links: list[tuple[int, int]], unspaced: bool, lost: list[Lost]) -> str:
    """The text translated into Chinese characters or words, one for each word, in this order."""
    parts = markup.parse(source, "xml")
    units = [unit for unit in units_of(parts) if unit.plain]
    target = ("" if unspaced else " ").join(HAN[i] if unspaced else f"W{i}" for i in order)
    texts = {unit.plain: AlignedText(target, tuple(sorted(links))) for unit in units}
    return write(parts, Translations(texts, False, unspaced), lost)


def elements(text: str) -> dict[str, tuple[str, str]]:
    """For each element that lxml reads: the element around it, and its text."""
    root = etree.fromstring(f"<root>{text}</root>")
    found = {each.get("id"): (each.getparent().get("id"), "".join(each.itertext())) for each in root.iter("e", "x")}
    assert len(found) == len(root.findall(".//e")) + len(root.findall(".//x"))
    return found


def words_of(text: str) -> Counter[int]:
    """The numbers of the words in a text."""
    if any(character in text for character in "Ww"):
        return Counter(int(word[1:]) for word in text.replace("w", " w").replace("W", " W").split() if word[1:])
    return Counter(HAN.index(character) for character in text if character in HAN)


@pytest.mark.parametrize("unspaced", [False, True])
def test_elements_change_places_with_their_words(unspaced: bool) -> None:
    chance = random.Random(SEED)
    for _ in range(150):
        content = made(chance)
        source = numbered(" ".join(content.source))
        links = [(number, place) for place, number in enumerate(content.order)]
        lost: list[Lost] = []
        before, after = elements(source), elements(translated(source, content.order, links, unspaced, lost))
        assert not lost
        for name, (parent, text) in before.items():
            assert after[name][0] == parent
            assert words_of(after[name][1]) == words_of(text), (source, after)


@pytest.mark.parametrize("unspaced", [False, True])
def test_no_order_empties_an_element(unspaced: bool) -> None:
    chance = random.Random(SEED)
    for _ in range(150):
        content = made(chance)
        source = numbered(" ".join(content.source))
        order = list(range(content.n_words))
        chance.shuffle(order)
        links = [(number, place) for place, number in enumerate(order) if chance.random() < 0.7]
        lost: list[Lost] = []
        result = translated(source, order, links, unspaced, lost)
        before, after = elements(source), elements(result)
        assert not lost
        assert words_of("".join(etree.fromstring(f"<r>{result}</r>").itertext())) == Counter(order)
        for name, (parent, text) in before.items():
            assert after[name][0] == parent
            assert bool(after[name][1].strip()) == bool(text.strip()), (source, result)


def test_an_element_that_must_stay_empty_is_named() -> None:
    chance = random.Random(SEED)
    n_lost = 0
    for _ in range(300):
        content = made(chance)
        source = numbered(" ".join(content.source))
        order = list(range(chance.randint(1, max(1, content.n_words // 3)) if content.n_words else 0))
        links = [(chance.randrange(content.n_words), place) for place in order]
        lost: list[Lost] = []
        result = translated(source, order, links, True, lost)
        before, after = elements(source), elements(result)
        if lost:
            n_lost += 1
            assert result == source
            assert lost[0].n_elements > 0
            assert "no words for" in lost[0].why
        for name, (parent, text) in before.items():
            assert after[name][0] == parent
            assert bool(after[name][1].strip()) == bool(text.strip())
    assert n_lost > 10


def test_an_element_whose_words_were_dropped_is_not_left_with_code() -> None:
    chance = random.Random(SEED)
    n_written = 0
    for _ in range(300):
        words = [f"`c{i}`" if chance.random() < 0.3 else f"%({i})s" if chance.random() < 0.1 else "w" for i in range(9)]
        edges = sorted(chance.sample(range(10), 4))
        marked = [[f"<e>{' '.join(words[a:b])}</e>"] for a, b in (edges[:2], edges[2:])]
        parts = words[: edges[0]], marked[0], words[edges[1] : edges[2]], marked[1], words[edges[3] :]
        source = numbered(" ".join(word for part in parts for word in part))
        target = [i for i, word in enumerate(words) if word != "w" or chance.random() < 0.5]
        chance.shuffle(target)
        links = [(chance.choice([i, chance.randrange(9)]), place) for place, i in enumerate(target)]
        texts = {" ".join(re.sub("<[^<>]*>", "", source).split()): " ".join(
            f"W{i}" if words[i] == "w" else words[i] for i in target
        )}  # fmt: skip
        lost: list[Lost] = []
        aligned = {text: AlignedText(line, tuple(sorted(links))) for text, line in texts.items()}
        result = write(markup.parse(source, "xml"), Translations(aligned), lost)
        n_written += not lost
        before, after = elements(source), elements(result)
        for name, (_, text) in before.items():
            assert bool(re.search(r"\bw\d", text)) <= bool(re.search(r"\b[wW]\d", after[name][1])), (
                source,
                target,
                result,
            )
    assert n_written > 200


def test_the_space_beside_a_placeholder_at_an_end_moves_with_it() -> None:
    translations = Translations({"w0 w1": AlignedText("W1 W0", ((0, 1), (1, 0)))})
    first, last = Tag(0, ("<x/>",)), Tag(6, ("<x/>",))
    opening, closing = Tag(0, ("<e>",), "open", "e"), Tag(6, ("</e>",), "close", "e")
    unit = Unit("w0 w1 ", [replace(opening, place=3), last, closing])
    assert write([unit], translations) == "<e>W1 <x/></e> W0"
    unit = Unit(" w0 w1", [opening, first, replace(closing, place=3)])
    assert write([unit], translations) == "W1 <e><x/> W0</e>"
    assert write([Unit("w0 w1 ", [])], translations) == "W1 W0 "


def test_a_translation_without_words_is_named() -> None:
    lost: list[Lost] = []
    parts = markup.parse("About `run`", "xml")
    result = write(parts, Translations({"About `run`": AlignedText("`run`", ((1, 0),))}), lost)
    assert result == "About `run`"
    assert [unit.why for unit in lost] == ["its translation has no words"]


def test_an_element_without_links_takes_no_word_of_another_element() -> None:
    chance = random.Random(SEED)
    for _ in range(300):
        n_elements = chance.randint(2, 6)
        n_unlinked = chance.randint(1, n_elements - 1)
        is_element = [True] * n_elements + [False] * (n_unlinked + chance.randint(0, 2))
        chance.shuffle(is_element)
        source = numbered(" ".join("<e>w</e>" if element else "w" for element in is_element))
        unlinked = chance.sample([i for i, element in enumerate(is_element) if element], n_unlinked)
        order = [i for i in range(len(is_element)) if i not in unlinked]
        chance.shuffle(order)
        own = [i for i, element in enumerate(is_element) if element]
        links = [(number, place) for place, number in enumerate(order)]
        after = elements(translated(source, order, links, True, []))
        for name, number in enumerate(own):
            assert number in unlinked or HAN[number] in after[str(name)][1], (source, order, after)


def test_tags_without_partner_keep_their_order_and_all_others_their_side() -> None:
    chance = random.Random(SEED)
    for _ in range(150):
        tags = chance.choices(["<e>", "</e>", "<b>", "</b>", "<x/>", "w", "w", "w"], k=chance.randint(3, 14))
        source = numbered(" ".join(tags))
        n = tags.count("w")
        order = list(range(n))
        chance.shuffle(order)
        lost: list[Lost] = []
        result = translated(source, order, [(number, place) for place, number in enumerate(order)], True, lost)
        found = [[match[0] for match in markup.TOKEN.finditer(text)] for text in (source, result)]
        assert Counter(found[0]) == Counter(found[1])
        parser = etree.HTMLParser()
        trees = [etree.fromstring(f"<p>{text}</p>", parser) for text in (source, result)]
        parents = [
            Counter((each.tag, each.get("id"), each.getparent().tag) for each in tree.iter("b", "x")) for tree in trees
        ]
        assert parents[0] == parents[1], (source, result)


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("the <a>name</a> of the <b>dog</b>", "狗的名字", "1-2 1-3 4-0", "<b>狗</b>的<a>名字</a>"),
        ("see <a>one</a>, <b>two</b>.", "看二、一。", "1-3 2-1 0-0", "看<b>二</b>、<a>一</a>。"),
        ("(<a>here</a>)", "（这里）", "0-1 0-2", "（<a>这里</a>）"),
        ("<a>Is it?</a> <b>Yes!</b>", "是吗？是！", "0-0 1-1 2-3", "<a>是吗？</a><b>是！</b>"),
        ("He has <x/> dogs", "他有狗", "0-0 1-1 2-2", "他有 <x/> 狗"),
        ("He has <a>dogs</a>", "他有狗", "0-0 1-1", "他有<a>狗</a>"),
    ],
)  # fmt: skip
def test_chinese(source: str, target: str, links: str, expected: str) -> None:
    pairs = tuple(sorted(tuple(map(int, link.split("-"))) for link in links.split()))
    parts = markup.parse(source, "xml")
    texts: dict[str, Any] = {unit.plain: AlignedText(target, pairs) for unit in units_of(parts)}
    assert write(parts, Translations(texts, False, True)) == expected


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ('last <x id="6"></x>, dog', "Hund letzte", "0-1 2-0", 'Hund letzte <x id="6"></x>'),
        ('dog <x id="6"></x> last', "letzte Hund", "0-1 1-0", '<x id="6"></x> letzte Hund'),
        ('has "<x id="6"></x>" last', "hat letzte", "0-0 2-1", 'hat <x id="6"></x> letzte'),
        ("([<a>#12</a>])", "([#12])", "0-0", "([<a>#12</a>])"),
        ("H<b>2</b>O and <a>un</a>known", "H2O und unbekannt", "0-0 1-1 2-2", "H<b>2</b>O und <a>unb</a>ekannt"),
        ("<a>Home</a><b>About</b>", "ДомОкоем", "0-0", "<a>ДомО</a><b>коем</b>"),
        ("a <b>|</b> c", "C | A", "0-2 1-1 2-0", "C <b>|</b> A"),
        ("smith<b>\u00a0\u00a0/\u00a0\u00a0</b><i>marz</i> is", "smith / marz is", "0-0 1-1 2-2 3-3", "smith<b> / </b><i>marz</i> is"),
        ("a <b>  |  </b> c", "C | A", "0-2 1-1 2-0", "C<b> | </b>A"),
        ("<a>turn off</a> it", "schaltet es aus", "0-0 1-2 2-1", "<a>schaltet es aus</a>"),
        ("tools (<a>#2557</a>) (<b>dd11c28</b>)", "(dd11c28) (#2557) Werkzeuge", "0-2 1-1 2-0", "(<b>dd11c28</b>) (<a>#2557</a>) Werkzeuge"),
        ("<a>學生</a><x/><b>印本</b>", "學生印本", "0-0", "<a>學生</a><x/><b>印本</b>"),
        ("the 10<a>th</a>", "der 10.", "0-0 1-1", "der <a>10.</a>"),
        ("our <a>pill tool</a>will show", "zeigt toolwill pill unser", "0-3 1-2 2-1 3-0", "zeigt <a>toolwill pill</a> unser"),
        ("<b>some <i>inline</i> kind</b><u>x</u>", "kindx inline some", "0-2 1-1 2-0", "<u>kindx</u> <b><i>inline</i> some</b>"),
        ("m.<i>[3]</i><i>[4]</i> x", "m.[3][4] x", "0-0 1-1", "m.<i>[3]</i><i>[4]</i> x"),
        ("up <a>@v</a>/http-str<b>@2</b>.1", "auf @в/хттп-стр@2.1", "0-0 1-1", "auf <a>@в</a>/хттп-стр<b>@2</b>.1"),
        ('keys (<x id="1"></x>, <x id="2"></x>) on', "an Tasten (, )", "0-1 3-0", 'an Tasten (<x id="1"></x>, <x id="2"></x>)'),
        ('use <x id="1"></x>, <x id="2"></x>', ", nimm", "0-1 1-0", ', nimm <x id="1"></x> <x id="2"></x>'),
        ("is <b>not</b> `a b` here", "ist `a b` hier", "0-0 2-1 3-2 4-3", "<b>ist</b> `a b` hier"),
        ('with <b><x id="1"></x></b>, <b><x id="2"></x></b>', "mit", "0-0", 'mit <b><x id="1"></x></b> <b><x id="2"></x></b>'),
    ],
)  # fmt: skip
def test_words_with_spaces(source: str, target: str, links: str, expected: str) -> None:
    pairs = tuple(sorted(tuple(map(int, link.split("-"))) for link in links.split()))
    parts = markup.parse(source, "xml")
    texts: dict[str, Any] = {unit.plain: AlignedText(target, pairs) for unit in units_of(parts)}
    assert write(parts, Translations(texts)) == expected


def test_links_to_words_that_are_not_there_are_no_links() -> None:
    assert with_spaces(Side("a\u00a0b"), Side("x"), ((0, 5), (1, 6))) == Side("x")
    assert with_spaces(Side("a\u00a0b"), Side("x y"), ((0, 0), (1, 1))) == Side("x\u00a0y")


def test_a_sign_between_two_elements_of_code_stays_with_them() -> None:
    parts = markup.parse("Press <kbd>Ctrl</kbd>+<kbd>C</kbd>, <kbd>Tab</kbd>.", "html")
    texts: dict[str, Any] = {unit.plain: AlignedText(", . drücken", ((0, 2), (1, 0))) for unit in units_of(parts)}
    assert list(texts) == ["Press , ."]
    assert "<kbd>Ctrl</kbd>+<kbd>C</kbd>" in write(parts, Translations(texts))


def test_a_text_without_links_keeps_all_tags_and_empties_none() -> None:
    source = " ".join(f"a <b>dog</b> and <i>cat {n}</i> run" for n in range(50))
    parts = markup.parse(source, "html")
    (unit,) = units_of(parts)
    written = write(parts, Translations({unit.plain: AlignedText(" ".join(["Hund"] * 230), ())}))
    assert len(re.findall(r"<b>[^<]*\w[^<]*</b>|<i>[^<]*\w[^<]*</i>", written)) == 100


@pytest.mark.parametrize(
    "source",
    [
        "<e>w </e> " * 3_000, "<e>w " * 3_000 + "</e>" * 3_000, "<e>w " * 3_000, "w </e>" * 3_000,
        "<e>" * 3_000 + "w " * 600 + "</e>" * 3_000, "<e>! </e>" * 3_000, "w<x/>" * 3_000, "<e></e>w " * 3_000,
    ],
    ids=["wide", "deep", "open", "closed", "deep around", "signs", "in a word", "empty"],
)  # fmt: skip
def test_hostile_markup_takes_linear_time(source: str) -> None:
    parts = markup.parse(source, "xml")
    unit = next(units_of(parts))
    words = unit.plain.split()
    links = tuple((i, len(words) - 1 - i) for i in range(len(words)))
    with cpu_limit():
        result = write(parts, Translations({unit.plain: AlignedText(unit.plain, links)}))
    assert result.count("<") == source.count("<")
