"""Glossaries that no text can use are refused when they are made or stored, with the entry that is wrong."""

from __future__ import annotations

import csv
import io
import random
from typing import Any

import pytest

from dragoman.errors import DataError
from dragoman.serving.apis import deepl_glossaries
from dragoman.serving.apis.deepl_glossaries import terms_of, tsv
from dragoman.serving.glossaries import Dictionary
from dragoman.serving.limits import MOST_TERM
from dragoman.serving.refusals import MalformedError
from dragoman.translation.keeping.glossary import Glossary


@pytest.mark.parametrize("term", [("dog", "\ud800"), ("a\udfff", "x"), ("\ud83d", None)])
def test_half_of_a_surrogate_pair_is_refused_with_its_entry(term: tuple[str, str | None]) -> None:
    with pytest.raises(DataError, match=r"glossary entry 2: character . of .* is half of a surrogate pair"):
        Glossary([("cat", "Katze"), term])


@pytest.mark.parametrize("form", ["tsv", "csv"])
@pytest.mark.parametrize("letter", ["a", "é", "中"])
def test_a_term_that_is_too_long_is_refused_when_it_is_stored(letter: str, form: str) -> None:
    mark, longest = "\t" if form == "tsv" else ",", letter * (MOST_TERM // len(letter.encode()))
    assert terms_of(f"{longest}{mark}x\nx{mark}{longest}", form) == {longest: "x", "x": longest}
    for entry in (f"{longest}{letter}{mark}x", f"x{mark}{longest}{letter}"):
        with pytest.raises(MalformedError, match="entry 2 may have at most"):
            terms_of(f"dog{mark}Hund\n{entry}", form)


@pytest.mark.parametrize(
    "entries",
    [
        "dog,Hund\rcat,Katze",
        f'"{"x" * 140_000}",y',
        'dog,"Hu"nd',
        'dog,"Hund\ncat,Katze',
        '"dog\ncat",Hund',
        '"a\tb",c',
        "Dear Sir, or Madam,Sehr geehrte Damen und Herren",  # the third field was left out without a word
        "dog,Hund,",
        "dog,Hund,en",
        "dog,Hund,of the,house",
        "dog,Hund,en,de,fr",
    ],
)
def test_entries_that_are_no_csv_are_refused(entries: str) -> None:
    with pytest.raises(MalformedError, match=r"the glossary|of entry 1"):
        terms_of(entries, "csv")


def test_too_many_csv_entries_are_refused_before_their_languages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()
    monkeypatch.setattr(deepl_glossaries, "variety", lambda tag: read.append(tag) or tag)
    rows = [f"a{i},b,en-{i:08},de-{i:08}" for i in range(10_001)]
    with pytest.raises(MalformedError, match="at most 10,000 entries, got 10,001"):
        terms_of("\n".join(rows), "csv", ("en", "de"))
    assert read == []


def test_csv_entries_may_name_their_languages() -> None:
    assert terms_of('dog,Hund,en,de\n"a, b",c,EN-US, pt-BR\n', "csv") == {"dog": "Hund", "a, b": "c"}


def test_csv_entries_of_other_languages_are_refused() -> None:
    entries = "dog,Hund,en,de\ncat,chat,en,fr\n"
    assert terms_of("dog,Hund,en,DE\n", "csv", ("en", "de")) == {"dog": "Hund"}
    assert terms_of("dog,Hund,en-GB,de-AT\n", "csv", ("en", "de")) == {"dog": "Hund"}
    with pytest.raises(
        MalformedError, match=r"entry 2 of the glossary is of en and fr, but the dictionary is of en and"
    ):
        terms_of(entries, "csv", ("en", "de"))


def test_A6_hostile_entries_are_read_or_refused(figure: Any) -> None:
    """Nothing but the refusal of a client's input leaves, and a list of the entries has a line for each."""
    choose, n, n_read = random.Random(5), 3000, 0
    for _ in range(n):
        entries = "".join(choose.choice('ab,;\t\n\r"\0\x0b\u2028 ') for _ in range(choose.randint(1, 12)))
        for form in ("csv", "tsv"):
            try:
                terms = terms_of(entries, form)
            except MalformedError:
                continue
            assert terms_of(tsv(Dictionary("en", "de", terms)), "tsv") == terms
            if form == "csv":  # no field is lost
                assert {len(row) for row in csv.reader(io.StringIO(entries)) if row} <= {2, 4}
            n_read += bool(terms)
    assert n_read > 100
    figure("A6", f"{2 * n:,} hostile entries, {n_read:,} of them read: 0 are listed as others")
