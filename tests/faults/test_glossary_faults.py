"""Glossaries that no text can use are refused when they are made or stored, with the entry that is wrong."""

from __future__ import annotations

import pytest

from dragoman.errors import DataError
from dragoman.serving.apis.deepl_glossaries import terms_of
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
