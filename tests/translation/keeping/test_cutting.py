"""What is cut out of a text and put into its translation stands there as a careful typist would set it."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from dragoman.decoding.words import word_spans
from dragoman.languages.words import in_word
from dragoman.translation.keeping.cutting import put_back, without
from dragoman.translation.keeping.protected import find


def carried(src: str, tgt: str, links: str, unspaced: tuple[bool, bool] = (False, False), first: int = 0) -> str:
    bare, cuts = without(src, find(src))
    pairs = tuple(tuple(map(int, pair.split("-"))) for pair in links.split())
    return put_back(bare, cuts, tgt, pairs, unspaced, first)


def back(text: str, unspaced: bool = False) -> str:
    """The text with its spans cut out and put back into what is left of it."""
    bare, cuts = without(text, find(text))
    same = tuple((k, k) for k in range(len(word_spans(bare, unspaced))))
    return put_back(bare, cuts, bare, same, (unspaced, unspaced))


@pytest.mark.parametrize(
    ("src", "tgt", "links", "expected"),
    [
        ('"The album 2007" is good', '"Das Album" ist gut', "0-0 1-1 2-2 3-3", '"Das Album 2007" ist gut'),
        ('on "album 2007" one', "auf einer", "0-0 2-1", "auf 2007 einer"),
        ("“Album 2007” is good", "„Album“ ist gut", "0-0 1-1 2-2", "„Album 2007“ ist gut"),
        ('"2007 was good."', "„war gut.“", "0-0 1-1", "„2007 war gut.“"),
        ("“2007 was good.”", '"War gut."', "0-0 1-1", '"2007 War gut."'),
        ("It was (in 2007) good", "Es war (im Jahr) gut", "0-0 1-1 2-3 3-4", "Es war (im Jahr 2007) gut"),
        ("It (2007 or so) was good", "Es (oder so) war gut", "0-0 1-1 2-2 3-3 4-4", "Es (2007 oder so) war gut"),
        ("It was 'in 2007' good", "Es war ,im' gut", "0-0 1-1 2-2 3-3", "Es war ,im 2007' gut"),
        ("a 5\" screen", "ein Bildschirm", "0-0 1-1", "ein 5\" Bildschirm"),
        ("a 5′ pole", "eine Stange", "0-0 1-1", "eine 5′ Stange"),
        ("It cost $5 then", "Damals kostete das Geld", "1-1 2-3 3-0", "Damals kostete das $5 Geld"),
        ("It cost -$5", "Das kostete", "0-0 1-1", "Das kostete -$5"),
        ("5km away", "weit", "0-0", "5km weit"),
        ("5 % of it", "davon", "0-0 1-0", "5 % davon"),
        ("Nr.5 lives", "Nummer lebt", "0-0 1-1", "Nummer 5 lebt"),
        ("Nr.5 lives", "Nr. lebt", "0-0 1-1", "Nr.5 lebt"),
        ("a dog – 2007 – runs", "ein Hund – – läuft", "0-0 1-1 2-2 3-3 4-4", "ein Hund – 2007 – läuft"),
        ("- A dog runs", "Heute läuft ein Hund", "0-2 1-3 2-1", "- Heute läuft ein Hund"),
        ("> > - [x] 3 dogs", "Hunde", "0-0", "> > - [x] 3 Hunde"),
        ("- {name} is what it is", "Es ist, was es ist", "0-1 1-2 2-0 3-4", "- {name} Es ist, was es ist"),
        ("a)\u00a0“A dog.”", "„Ein Hund.“", "0-0 1-1", "a)\u00a0„Ein Hund.“"),
        ("l'an 2007 était bon", "the year was good", "0-1 1-2 2-3", "the year 2007 was good"),
        ("4, 12, 17 and 20 dogs", "und Hunde", "0-0 1-1", "4, 12, 17 und 20 Hunde"),
        ("Dogs: <b>5</b>.", "Hunde:.", "0-0", "Hunde: <b>5</b>."),
        ("5 🙂 :-) dogs", "Hunde", "0-0", "5 🙂 :-) Hunde"),
        ("Hello 🙂🙂, Tom", "Hallo, Tom", "0-0 1-1", "Hallo 🙂🙂, Tom"),
        ("A big<br>dog", "Ein großer Hund", "0-0 1-1 2-2", "Ein großer<br>Hund"),
        ("A “<b>big</b>” dog", "Ein „großer“ Hund", "0-0 1-1 2-2", "Ein „<b>großer</b>“ Hund"),
        ("<p>“A dog.”</p>", "„Ein Hund.“", "0-0 1-1", "<p>„Ein Hund.“</p>"),
        ("He wrote “<i>A dog</i>.”", "Er schrieb „Ein Hund.“", "0-0 1-1 2-2 3-3", "Er schrieb „<i>Ein Hund</i>.“"),
        ("Texas A&amp;M is", "Texas ist", "0-0 2-1", "Texas &amp; ist"),
        ("a 3-wheeler", "ein Wheeler", "0-0 1-1", "ein 3 Wheeler"),
        ("a 3-wheeler", "ein wheeler", "0-0 1-1", "ein 3-wheeler"),
        ("A 21-year-old man", "Ein Jahre alter Mann", "0-0 1-1 1-2 2-3", "Ein 21 Jahre alter Mann"),
        ("In the mid-1990s, dogs ran", "In den, Hunde rannten", "0-0 1-1 2-2 3-3", "In den mid-1990s, Hunde rannten"),
        ("The 18th-century house", "Das Haus", "0-0 1-1", "Das 18th-century Haus"),
        ("Two 2-for-1 deals", "Zwei Angebote", "0-0 1-1", "Zwei 2-for-1 Angebote"),
        ("The album 5 runs", "Le «\u00a0disque\u00a0» va", "0-0 1-2 2-4", "Le «\u00a0disque\u00a0» 5 va"),
    ],
)  # fmt: skip
def test_it_touches_what_it_should_and_nothing_else(src: str, tgt: str, links: str, expected: str) -> None:
    assert carried(src, tgt, links) == expected


@pytest.mark.parametrize(
    ("src", "tgt", "links", "unspaced", "expected"),
    [
        ("In 2007 dogs ran.", "狗跑。", "0-0 1-0 2-1", (False, True), "2007狗跑。"),
        ("Dogs ran in 2007.", "狗跑。", "0-0 1-1 2-2", (False, True), "狗跑2007。"),
        ("Dogs ran (in 2007).", "狗跑（在）。", "0-0 1-1 2-3", (False, True), "狗跑（在2007）。"),
        ("The Python 3 program", "Python程序", "1-0 2-6", (False, True), "Python 3程序"),
        ("有5只狗跑。", "There are dogs.", "1-2 2-2 3-2", (True, False), "There are 5 dogs."),
        ("他在2007年跑。", "He ran in the year.", "0-0 1-2 2-4 3-1", (True, False), "He ran in the 2007 year."),
        ("狗🙂跑", "The dog runs", "0-1 1-2", (True, False), "The dog 🙂 runs"),
        ("“2007年的狗”", "“The dog of”", "1-2 3-1", (True, False), "“The dog 2007 of”"),
    ],
)  # fmt: skip
def test_where_one_side_puts_no_spaces(
    src: str, tgt: str, links: str, unspaced: tuple[bool, bool], expected: str
) -> None:
    assert carried(src, tgt, links, unspaced) == expected


def test_a_word_of_the_prefix_is_not_broken() -> None:
    assert carried("🙂 dogs run", "Hunde rennen", "0-0 1-1", first=3) == "Hunde 🙂 rennen"


PIECES = ["2007", "1,000.50", "5%", "$5", "#7", "🙂", "https://a.org/b?c=1", "%s", "{name}", "COVID-19", "`x y`",
          "``x`y``", "a@b.org", ":-)", "4, 12, 17", "5 🙂", "-3", "mid-1990s", "2-for-1",
          "18th-century", "21-year-old", "~/a/b.txt", '5"',
          "(2007)", "“2007”", "[2]", '"%s"']  # fmt: skip
BEFORE = ["", '"', "“", "„", "'", "(", "[", "«", "‘", "¿", "-", "–", "– ", "/", "*", "...", "l'", "€", "no.", "word "]
AFTER = [
    "",
    '"',
    "”",
    "“",
    "'",
    ")",
    "]",
    "»",
    "’",
    "?",
    ".",
    ",",
    "...",
    '."',
    ".)",
    ":",
    "!",
    " –",
    "/",
    "*",
    "'s",
    "km",
]


def torture() -> list[str]:
    """Each piece in each pair of marks, at the beginning, inside and at the end of a line."""
    chosen = random.Random(1)
    lines = []
    for piece, before, after in itertools.product(PIECES, BEFORE, AFTER):
        frames = ["{}", "{} der Hund", "der Hund {}", "der „Hund“ {} rennt.", 'ein "Hund {} rennt"', "(er {} hier), ja"]
        lines.append(chosen.choice(frames).format(before + piece + after))
    return lines


def test_put_back_into_the_same_text_it_is_that_text_again() -> None:
    lines = torture()
    assert len(lines) > 9_000
    cut = [line for line in lines if find(line)]
    assert len(cut) > 0.95 * len(lines)
    wrong = [(line, back(line)) for line in cut if back(line) != line]
    assert wrong == []


WORDS = [
    "einer",
    "„Das",
    "Album“",
    '"Das',
    'Album"',
    "(im",
    "Jahr)",
    "gut.",
    "Tag,",
    "–",
    "km",
    "'s",
    "«",
    "»",
    "Nr.",
    "$",
]


def test_in_any_other_text_no_word_is_glued_to_it_and_nothing_else_changes() -> None:
    chosen = random.Random(2)
    for line in torture():
        bare, cuts = without(line, find(line))
        if not cuts:
            continue
        words = chosen.choices(WORDS, k=chosen.randrange(1, 7))
        tgt = " ".join(words)
        n = len(bare.split())
        links = tuple((chosen.randrange(n), k) for k in range(len(words))) if n else ()
        text = put_back(bare, cuts, tgt, links, (False, False))
        rest, place = "", 0
        for cut in sorted(cuts, key=lambda cut: text.index(cut.text)):
            start = text.index(cut.text, place)
            rest, place = rest + text[place:start], start + len(cut.text)
            left, right = rest.rsplit(" ", 1)[-1], re.split(r"\s", text[place:], maxsplit=1)[0]
            right = "" if cut.text[-1].isspace() else right  # the mark of a list has a space of its own
            for glued, once in ((left[-1:], cut.before), (right[:1], cut.after)):
                # only to the word it was glued to
                if in_word(glued) and cut.kind not in ("markup", "emoji", "sign", "list mark"):
                    assert once in ({left[-len(once) :], right[: len(once)]} - {""}), (line, tgt, text)
            assert not re.search(r"(?:^|\s)[(„]\s$", rest), (line, tgt, text)
            assert not re.match(r"\s[.,)]", text[place:]), (line, tgt, text)
        assert "".join((rest + text[place:]).split()) == "".join(tgt.split()), (line, tgt, text)
        assert "  " not in text.replace(line, ""), (line, tgt, text)
        assert text == text.strip()
