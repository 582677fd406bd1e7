"""Words made into rules, in languages with spaces between words and without; and what cannot be spelled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.data.languages import has_word, in_word
from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.errors import ConfigError
from dragoman.translation.glossary import Glossary
from dragoman.translation.word_constraints import Wording, WordingEncoder

TEXT = ["der hund sieht eine katze", "die katze mag den hund", "我有一只狗", "小狗跑得快", "他的狗很小，很快"] * 8
TOKENIZER = Tokenizer.learn(TEXT, TokenizerConfig(vocab_size=330))
BARE = Tokenizer.learn(TEXT, TokenizerConfig(vocab_size=60, byte_fallback=False))


@given(st.text(st.one_of(st.sampled_from("der hund 我狗 \t\u2581"), st.characters(codec="utf-8")), max_size=20))
def test_the_bytes_of_its_pieces_are_the_text_after_a_space(text: str) -> None:
    ids = TOKENIZER.encode([text])[0]
    want = (" " + text.replace("\u2581", " ")).encode() if text else b""
    assert b"".join(TOKENIZER.spelled[i] for i in ids) == want
    assert not TOKENIZER.shadowed & set(ids)


def test_bytes_that_are_pieces_too_are_known() -> None:
    named = TOKENIZER.pieces(sorted(TOKENIZER.shadowed))
    assert "<0x20>" in named
    assert all(name.startswith("<0x") for name in named)
    assert BARE.shadowed == frozenset()
    assert BARE.decode([[UNK_ID]])[0] == BARE.spelled[UNK_ID].decode()


def test_a_word_begins_after_a_space_or_where_there_are_none_anywhere() -> None:
    spaced, unspaced = WordingEncoder(TOKENIZER, False), WordingEncoder(TOKENIZER, True)
    for word in ("hund", "狗", "GPU", "很 小", "é"):
        for encoder, start in ((spaced, b" "), (unspaced, b"")):
            phrase = encoder.demand(Wording(include=(word,))).rules.include[0]
            assert b"".join(TOKENIZER.spelled[i] for i in phrase) == start + word.encode()


def test_a_glossary_adds_the_terms_of_the_text() -> None:
    glossary = Glossary([("dog", "hund"), ("cat", None)])
    encoder = WordingEncoder(TOKENIZER, False)
    terms = glossary.find("A Cat, a dog, a dog.")
    demand = encoder.demand(Wording(include=("狗",), glossary=glossary), terms)
    assert [word for word, _ in demand.placed] == ["狗", "Cat", "hund", "hund"]
    assert len(demand.rules.include) == 4
    assert demand.unmet("Cat hund 狗 hund") == ()
    assert demand.unmet("Cat hund 狗") == ("'hund' (the glossary's for 'dog') could not be placed",)
    assert demand.unmet("Cat hunde") == (
        "'狗' could not be placed", "'hund' (the glossary's for 'dog') could not be placed",
    )  # fmt: skip
    assert encoder.demand(Wording(glossary=glossary), glossary.find("nothing")).rules.are_none


def test_what_the_vocabulary_cannot_spell_is_said_or_refused() -> None:
    encoder = WordingEncoder(BARE, False)
    demand = encoder.demand(Wording(include=("hund", "Ω")))
    assert len(demand.rules.include) == 1
    assert demand.unmet("der hund") == ("'Ω' could not be placed",)
    for n_texts, prefix in ((0, "der Ω"), (1, "der Ω"), (2, ["der", "der Ω"])):
        with pytest.raises(ConfigError, match=r"prefix 'der Ω' .*cannot spell"):
            encoder.wordings(n_texts, prefix, Wording())
    assert encoder.demand(Wording(prefix="der ")).rules.prefix == b" der "


def test_each_text_has_a_wording_of_its_own_and_no_wish_makes_none() -> None:
    encoder, others = WordingEncoder(TOKENIZER, False), Wording(no_repeat_ngram=3)
    assert encoder.wordings(2, "", Wording()) is None
    assert encoder.wordings(2, ["", ""], Wording()) is None
    assert encoder.wordings(2, ["der", ""], Wording()) == [Wording("der"), Wording()]
    assert encoder.wordings(0, "der", Wording()) == []  # a wish, though of no text
    assert encoder.wordings(1, "die", others) == [Wording("die", no_repeat_ngram=3)]
    with pytest.raises(ConfigError, match="1 prefixes for 2 texts"):
        encoder.wordings(2, ["der"], others)


def test_where_a_word_ends() -> None:
    assert has_word("a dog.", "dog")
    assert has_word("dogma, dog", "dog")
    assert not has_word("dogma hotdog dog2", "dog")
    assert has_word("小狗跑", "狗")
    assert has_word("我的GPU很好", "GPU")
    assert has_word("(c) 2026", "(c)")
    assert not has_word("cafe\u0301", "cafe")  # an accent goes on with the word
    assert [in_word(character) for character in ("a", "é", "7", "и", "한", "狗", "か", "ก", " ", "-", "")] == [
        True, True, True, True, True, False, False, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["prefix", "include", "exclude"])
def test_what_is_no_text_is_refused(name: str) -> None:
    word = b"\xff".decode("utf-8", "surrogateescape")  # as a byte of a command line comes
    with pytest.raises(ConfigError, match="half of a surrogate pair"):
        Wording(**{name: word if name == "prefix" else (word,)}).checked()
