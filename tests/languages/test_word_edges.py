"""No function of the product cuts a word where its script does not, in 84 scripts."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
import regex

from dragoman.data import noise
from dragoman.languages.words import (
    clusters,
    core,
    count_word,
    divides_cluster,
    divides_word,
    is_word_character,
    joins,
    kind_of,
    kinds,
)
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.keeping.protected import find
from script_texts import places_inside, places_inside_clusters, words_by_script
from word_functions import CLUSTERS_ONLY, FUNCTIONS

EVERY = 3
"""Of each script each third word is tried here; ``benchmarks.questions.words_of_scripts`` tries all."""


def test_there_are_words_of_many_scripts() -> None:
    words = words_by_script()
    assert len(words) >= 80
    assert sum(bool(places_inside_clusters(word)) for some in words.values() for word in some) > 800


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_cuts_a_word(name: str) -> None:
    inside = places_inside_clusters if name in CLUSTERS_ONLY else places_inside
    cut = [
        (script, word, sorted(places))
        for script, words in words_by_script().items()
        for word in words[::EVERY]
        if (places := FUNCTIONS[name](word) & inside(word))
    ]
    assert not cut, f"{len({script for script, _, _ in cut})} scripts, such as {cut[:5]}"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("राजा", "राजा"), ("می\u200cخواهم", "می\u200cخواهم"), ("soft\u00adware", "soft\u00adware"), ("a_b", "a_b"),
        ("_a_", "_|a|_"), ("don't", "don|'|t"), ("中文", "中|文"), ("きょう", "きょ|う"), ("か\u3099き", "か\u3099|き"),
        ("スーパー", "スー|パー"), ("เก่ง", "เก่|ง"), ("ประเทศ", "ป|ระ|เท|ศ"), ("မြန်မာ", "မြ|န်|မာ"), ("ក្ក", "ក្ក"),
        ("๒๐", "๒๐"), ("ก๒๐", "ก|๒๐"), ("a中", "a|中"), ("བོད་", "བོད|་"),
        ("👩\u200d👧👍🏽", "👩\u200d👧|👍🏽"), ("🇩🇪🇫🇷", "🇩🇪|🇫🇷"),
        ("ab \u00ad", "ab| |\u00ad"), ("1\ufe0f\u20e32", "1\ufe0f\u20e32"), ("각", "각"),
        ("\u1100\u1161\u11a8", "\u1100\u1161\u11a8"),
    ],
)  # fmt: skip
def test_where_a_word_may_end(text: str, whole: str) -> None:
    edges = [0, *(place for place in range(1, len(text)) if not divides_word(text, place)), len(text)]
    assert "|".join(text[start:end] for start, end in pairwise(edges)) == whole
    assert all(joins(text[:place], text[place:]) == divides_word(text, place) for place in range(len(text) + 1))


def test_no_cluster_of_unicode_is_divided() -> None:
    chance = random.Random(1)
    odd = [chr(code) for code in range(0x3200) if kind_of(chr(code)) not in ("a", chr(code))] + list("a1 .\r\n😀🇩🏽")
    for size in (2, 3, 6):
        for _ in range(3000):
            text = "".join(chance.choices(odd, k=size))
            if regex.search(r"\p{GCB=Prepend}\s", text):  # such a sign and a space are a cluster to Unicode alone
                continue
            starts = {start for start, _ in clusters(text)}
            assert starts <= {match.start() for match in regex.finditer(r"\X", text)}, ascii(text)
            assert starts == {place for place in range(size) if not divides_cluster(text, place)}


def test_a_text_without_special_characters_is_as_good_as_its_kinds() -> None:
    special = {"\u0301", "\u094d", "\u200d", "ก", "เ", "\U0001f1e6"}
    for code in (*range(0x3200), *range(0xA000, 0x20000, 5), *range(0xE0000, 0xE0200)):
        character = chr(code)
        kind = kind_of(character)
        assert len(kind) == 1
        assert kinds(character) in (kind, character)
        if kinds(character) == character != kind:
            assert kind not in special
            assert kind == "0" if character.isdecimal() else (kind in "aあ") >= character.isalnum()


def test_the_core_of_a_word_keeps_its_marks() -> None:
    for text, inside in (
        ("(आया)।", "आया"),
        ("_a_", "a"),
        ("«e\u0301t\u00e9\u0301»", "e\u0301t\u00e9\u0301"),
        ("…", ""),
        ("", ""),
    ):
        start, end = core(text)
        assert text[start:end] == inside
    assert core("ab (आया)। c", 3, 9) == (4, 7)
    assert [is_word_character(character) for character in ("a", "中", "ก", "\u0301", "7", "-", " ", "")] == [
        True
    ] * 5 + [False] * 3


def test_hashtags_accounts_and_names_with_digits_keep_their_marks() -> None:
    for text, spans in {
        "#हिन्दी बोलो": ["#हिन्दी"], "The dog #cafe\u0301.": ["#cafe\u0301"], "@कुमार आया": ["@कुमार"],
        "#தமிழ்-#বাংলা": ["#தமிழ்", "#বাংলা"], "#می\u200cخواهم": ["#می\u200cخواهم"], "नी5 है": [],
        "राजा user_name {राजा}": ["user_name", "{राजा}"],
        "1\ufe0f\u20e3 ❤️ नी": ["1\ufe0f\u20e3", "❤️"],
        "看@小明": [],
    }.items():  # fmt: skip
        assert [span.text for span in find(text)] == spans


def test_no_word_stands_in_a_longer_word_of_its_script() -> None:
    longer = {"किताबें": "किताब", "বাংলাদেশের": "বাংলা", "राजा": "राज", "می\u200cخواهم": "می", "soft\u00adware": "soft"}
    for text, part in longer.items():
        assert count_word(text, part) == 0
        assert count_word(f"{part} {text}", part) == 1
    assert not Glossary([("राम", "Ram")]).find("रामायण एक ग्रंथ है")
    assert [match.start for match in Glossary([("राम", "Ram")]).find("राम, रामायण")] == [0]


def test_noise_learns_and_writes_whole_words() -> None:
    pairs = [("the king came", "राजा आया"), ("the boy went", "लड़का गया"), ("a dog", "कुत्ता")] * 6
    lexicon = noise.sure_translations([*pairs, *[("king", "राजा"), ("boy", "लड़का"), ("the", "वह")] * 6])
    assert (lexicon["king"], lexicon["boy"], lexicon["dog"]) == ("राजा", "लड़का", "कुत्ता")
    for seed in range(40):
        _, tgt = noise.with_masks("the king", "राजा", lexicon, random.Random(seed))
        assert all(word == "राजा" or word.startswith("[") for word in tgt.split())
