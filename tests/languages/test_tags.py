"""Language tags as people write them, judged by CLDR: never across scripts."""

from __future__ import annotations

import sys

import pytest

from benchmarks.language_inputs import AS_USERS_WRITE, NOT_THE_SAME, other_scripts, same_tags
from dragoman.languages.codes import match, tag_of, variety
from dragoman.languages.known import is_known


def test_tags_of_one_language_and_script_are_taken_for_the_same() -> None:
    missed = [pair for pair in same_tags() if match(pair[0], [pair[1]]) is None]
    assert len(same_tags()) > 1000
    assert len(missed) <= 10, missed  # where CLDR in langcodes is older than in Babel


def test_tags_are_understood_as_people_write_them() -> None:
    assert [pair for pair in AS_USERS_WRITE.items() if match(pair[0], [pair[1]]) is None] == []


def test_a_language_in_another_script_is_another() -> None:
    pairs = [*other_scripts(), *NOT_THE_SAME]
    assert [pair for pair in pairs if match(pair[0], [pair[1]]) or match(pair[1], [pair[0]])] == []


@pytest.mark.parametrize("part", ["en-t-", "en-u-co-", "q", "zh-Hans-", "_", "."])
def test_a_long_text_is_no_tag_and_stays_nowhere(part: str) -> None:
    """A client of a server may send any text as a language: caches would keep a thousand of them."""
    text = (part * 20_000)[:100_001]
    held = sys.getrefcount(text)
    assert match(text, ["en", "zh"]) is None
    assert variety(text) == tag_of(text).language == text.lower()
    assert not is_known(text)
    assert sys.getrefcount(text) == held
