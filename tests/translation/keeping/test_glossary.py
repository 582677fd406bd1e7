"""Glossaries: which terms are found in a text, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError
from dragoman.translation.keeping.glossary import Glossary, Match
from dragoman.translation.keeping.glossary_entries import read_entries
from limits import cpu_limit

TERMS = Glossary(
    [
        ("dog", "Hund"),
        ("big dog", "Grosshund"),
        ("GPU", None),
        ("Apple", "Apple Inc."),
        ("狗", "dog"),
        ("e.g.", "z. B."),
    ]
)


def found(text: str) -> list[tuple[str, str]]:
    return [(match.source, match.target) for match in TERMS.find(text)]


def test_terms_are_found_where_they_stand_by_themselves_the_longest_first() -> None:
    assert found("a dog, a big dog.") == [("dog", "Hund"), ("big dog", "Grosshund")]
    assert found("dogma hotdog dogs dog-house") == [("dog", "Hund")]
    assert found("小狗跑") == [("狗", "dog")]
    assert found("cats, e.g. lions") == [("e.g.", "z. B.")]
    assert found("") == found("a cat") == []
    assert found("dog dog") == [("dog", "Hund")] * 2


def test_a_term_without_capitals_is_found_in_any_case_and_one_with_them_as_it_is_written() -> None:
    assert found("Dog DOG dOg") == [("Dog", "Hund"), ("DOG", "Hund"), ("dOg", "Hund")]
    assert found("GPU gpu Gpu") == [("GPU", "GPU")]
    assert found("an apple, an Apple") == [("Apple", "Apple Inc.")]
    assert Glossary([("mr", None)]).find("Mr X") == [Match("Mr", "Mr")]  # copied as it stands there


def test_a_file_has_two_columns_or_one(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("dog\tHund\r\n\n GPU \n#x\t狗\n# y\t狗\ndog\tHund\n".encode())
    glossary = Glossary.load(path)
    assert len(glossary) == 3
    assert [match.target for match in glossary.find("dog GPU #x # y")] == ["Hund", "GPU", "狗"]
    assert repr(glossary) == repr(Glossary([("#x", "狗"), ("GPU", None), ("dog", "Hund")]))
    assert repr(glossary) != repr(TERMS)


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        (b"a\tb\tc\n", 1, "3 columns"),
        (b"a\tb\n\tb\n", 2, "a term is blank"),
        (b"a\tb\nc\t\n", 2, "remove the tab to copy"),
        (b"a\tb\nc\td\na\te\n", 3, "'a' is translated as 'e' here and as 'b' above"),
        (b"a\tb\na\n", 2, "'a' is translated as None here and as 'b' above"),
        (b"a\tb\n\xff\tc\n", 2, "not UTF-8"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, content: bytes, line: int, why: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError) as refused:
        Glossary.load(path)
    assert str(refused.value).startswith(f"{path}:{line}")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"terms\.tsv"):
        Glossary.load(tmp_path / "terms.tsv")
    (tmp_path / "empty.tsv").touch()
    with pytest.raises(DataError, match=r"empty\.tsv"):
        Glossary.load(tmp_path / "empty.tsv")
    with pytest.raises(DataError, match="glossary entry 1"):
        Glossary([(" ", "x")])


def test_of_terms_that_begin_alike_the_longest_whole_one_is_found() -> None:
    """The terms are searched in sorted order: each kind of beginning must lead back to the right one."""
    glossary = Glossary(
        [(term, None) for term in ("ab", "ab a", "ab ab", "ab ab a", "Ab ab", "狗", "狗b", "İ x", "οδος")]
    )
    expected = {
        "ab ab ab": ["ab ab", "ab"], "ab ab a": ["ab ab a"], "AB AB": ["AB AB"], "Ab ab x": ["Ab ab"], "ab ac": ["ab"],
        "cab": [], "狗狗bc": ["狗", "狗"], "狗b": ["狗b"], "İ x İ y": ["İ x"], "ΟΔΟΣ": ["ΟΔΟΣ"],
    }  # fmt: skip
    assert {text: [match.source for match in glossary.find(text)] for text in expected} == expected


@pytest.mark.parametrize(
    ("terms", "text", "most"),
    [
        (["ab " * n + "a" for n in range(1, 700)], "ab " * 2000, 3),
        (["!" * n for n in range(4, 700)], "!!!?" * 1500, 15),  # the text differs from the longest after three signs
    ],
)
def test_the_number_of_lengths_of_terms_costs_no_time(terms: list[str], text: str, most: int) -> None:
    """A megabyte holds terms of 1,400 lengths; trying each at each word took minutes for 50,000 characters."""
    looked_at = 0

    class Counted(str):
        def startswith(self, *arguments: Any) -> bool:
            nonlocal looked_at
            looked_at += 1
            return super().startswith(*arguments)

        def __getitem__(self, key: Any) -> Counted:
            return Counted(super().__getitem__(key))

    glossary = Glossary([(term, "x") for term in terms])
    assert glossary.find(Counted(text)) == []
    assert 0 < looked_at <= most * len(text)


@pytest.mark.parametrize(("text", "last"), [("{}", "{"), ("!1,0", "!1")])
def test_terms_that_fit_but_end_where_none_may_end_cost_no_time(text: str, last: str) -> None:
    """Each ends inside a placeholder or a number; trying all at each place took minutes."""
    glossary = Glossary([(text * n + last, "x") for n in range(1, 1024 // len(text))])
    with cpu_limit():
        assert glossary.find(text * 25_000) == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\t", "\0"])
def test_a_term_is_part_of_one_line(end: str) -> None:
    for terms in ([("dog", f"Hund{end}x")], [(f"dog{end}x", "Hund")], [(f"a{end}b", None)]):
        with pytest.raises(DataError, match="has a tab, a line end or a NUL"):
            Glossary(terms)
    assert Glossary([(" dog ", "  Hund ")]).terms == {"dog": "Hund"}


@pytest.mark.parametrize(
    "heading", ["英文\t德文", "中文（简体）\t英文", "简体中文\t繁體中文", "日文\tEnglish", "한국어 = 영문"]
)
def test_a_row_of_names_of_languages_is_a_heading(heading: str) -> None:
    assert [entry.source for entry in read_entries([heading, "狗\tdog"], "terms")[1]] == ["狗"]


@pytest.mark.parametrize("row", ["英文\tEnglish", "中文\tChinese", "作文\tessay", "德文书\tGerman books"])
def test_a_row_with_one_language_or_none_is_a_term(row: str) -> None:
    assert [entry.source for entry in read_entries([row, "狗\tdog"], "terms")[1]] == [row.split("\t")[0], "狗"]


@pytest.mark.parametrize(
    "text",
    [
        "A man sees {dog}.", "Mail to dog@example.org.", "See https://www.dog.com/dog today.", "Open dog.txt.",
        "Like #dog.", "Ask @dog.", "Run `the big dog` now.", "<dog>x</dog>", '<a title="a big dog">x</a>',
        "Go to /home/dog/x.", "Use %(dog)s and $dog.", "Call dog() or dog_x.", "A :dog: here.", "Pay 5.5 and 2:05.",
        "A B5-12 x.",
    ],
)  # fmt: skip
def test_a_part_of_what_must_arrive_unchanged_is_no_term(text: str) -> None:
    glossary = Glossary([("dog", "Hund"), ("big dog", "Grosshund"), ("the big", "x"), ("5", "fünf"), ("B5", "x")])
    assert glossary.find(text) == []
    assert glossary.terms_in(text) == ()
    assert [match.source for match in glossary.find(f"{text} A dog, 5 of them")] == ["dog", "5"]


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("#dog and 🙂, {name}", ["#dog", "🙂", "{name}"]),  # a term may be such a span
        ("the file dog.txt, the file dog", ["the file dog.txt", "the file"]),  # or have one inside
        ("the dog.txt", []),  # a term ends inside
        ("see the file dog@a.org", ["see", "the file"]),  # the longest term ends inside, a shorter one before
        ("5 % of 5 and 24/7, part 5.5", ["%", "24/7", "part"]),  # a number is cut between its digits alone
        ("part 5:2015, part 5-1, part 5/6, 50 m²", ["part 5", "part 5", "part 5", "m²"]),
        ("a $50.5 bill", ["$"]),  # the longer one would cut the number between its digits
        ("売上は1億2000万円、5千万円", ["万円", "万円"]),  # 万 is a word, and no fraction as the ½ of 3½
        ("2만 5천 원, 3½ cups", ["원"]),
    ],
)
def test_a_term_has_the_whole_of_what_must_arrive_unchanged_or_nothing(text: str, sources: list[str]) -> None:
    terms = ["#dog", "🙂", "{name}", "see", "%", "24/7", "part", "m²", "$", "万円", "원", "½"]
    longer = ["the file", "the file dog.txt", "the dog", "see the file dog", "part 5", "$50"]
    glossary = Glossary([(term, "x") for term in [*terms, *longer]])
    assert [match.source for match in glossary.find(text)] == sources


@pytest.mark.parametrize(
    ("term", "text", "source"),
    [
        ("new york", "in New\u00a0York", "New\u00a0York"),
        ("new york", "in new  york", "new  york"),
        ("new york", "in\u2009new \u202f york ", "new \u202f york"),
        ("new york", "in new\nyork", "new\nyork"),
        ("new\u00a0york", "in new york", "new york"),
        ("New  York", "the  New York", "New York"),
        ("don't", "They don’t run", "don’t"),
        ("don’t", "They DON'T run", "DON'T"),
        ("don't", "They  donʼt run", "donʼt"),
        ("café's dog", "cafe\u0301’s  dog", "cafe\u0301’s  dog"),
        ("e-mail", "an  e\u2011mail", "e\u2011mail"),
    ],
)
def test_ordinary_typography_makes_no_other_term(term: str, text: str, source: str) -> None:
    glossary = Glossary([(term, "x"), ("zzz", "y")])
    assert glossary.find(f"{text}  zzz") == [Match(source, "x", text.index(source)), Match("zzz", "y", len(text) + 2)]
    assert glossary.terms_in(text) == (term,)
    assert [*glossary.terms] == [term, "zzz"]


def test_of_terms_that_differ_in_typography_the_exact_one_is_taken() -> None:
    glossary = Glossary([("a b", "plain"), ("a\u00a0b", "hard"), ("l’eau", "typeset"), ("l'eau", "typed")])
    assert [match.target for match in glossary.find("a\u00a0b, a b, l'eau l’eau, a  b")] == [
        "hard", "plain", "typed", "typeset", "plain"
    ]  # fmt: skip


def test_a_copied_term_is_on_one_line_with_single_spaces_and_a_tab_joins_no_words() -> None:
    assert [match.target for match in Glossary([("new york", None)]).find("New\n  York")] == ["New York"]
    assert Glossary([("new york", "x")]).find("new\tyork") == []


def test_a_letter_that_looks_like_an_apostrophe_ends_no_word() -> None:
    assert Glossary([("dog", "x"), ("dog'sa", "y")]).find("dogʼsab dogʼs") == []
