"""Words made into rules, in languages with spaces between words and without; and what cannot be spelled."""

from __future__ import annotations

import io
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.errors import ConfigError
from dragoman.languages.words import has_word, in_word
from dragoman.translation.keeping.glossary import Glossary, Match
from dragoman.translation.notes import QUIET
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import ModelFacts, Plan
from dragoman.translation.segments import segment
from dragoman.translation.word_constraints import ConstraintEncoder, Target, WordConstraints

TEXT = ["der hund sieht eine katze", "die katze mag den hund", "我有一只狗", "小狗跑得快", "他的狗很小，很快"] * 8
TOKENIZER = Tokenizer.learn(TEXT, TokenizerConfig(vocab_size=330))
BARE = Tokenizer.learn(TEXT, TokenizerConfig(vocab_size=60, byte_fallback=False))


def constraints(
    encoder: ConstraintEncoder, terms: Sequence[Match] = (), prefix: str = "", is_first: bool = True, **options: Any
) -> WordConstraints:
    """Those of one translation."""
    return encoder.encode(TranslateOptions.of(None, options), prefix, terms, is_first, {})


def of_texts(encoder: ConstraintEncoder, texts: list[str], **options: Any) -> list[WordConstraints | None]:
    """Those of each of some texts that are not split."""
    facts = ModelFacts(max_tokens=100, usual_tokens=100, usual_sentences=1, least_ratio=0.0, masks=None)
    known: Any = SimpleNamespace(
        options=TranslateOptions.of(None, options), encoder=encoder, src_tokenizer=TOKENIZER, glossary=None,
        facts=facts, src_lang="en",
    )  # fmt: skip
    return [each.constraints for each in segment(texts, cast(Plan, known), QUIET)]


@given(st.text(st.one_of(st.sampled_from("der hund 我狗 \t\u2581"), st.characters(codec="utf-8")), max_size=20))
def test_the_bytes_of_its_pieces_are_the_text_after_a_space(text: str) -> None:
    ids = TOKENIZER.encode([text])[0]
    clean = TOKENIZER.normalised(text).text
    want = (" " + clean).encode() if clean else b""
    assert b"".join(TOKENIZER.spelled[i] for i in ids) == want
    assert not TOKENIZER.shadowed & set(ids)


def test_bytes_that_are_pieces_too_are_known() -> None:
    named = TOKENIZER.pieces(sorted(TOKENIZER.shadowed))
    assert "<0x20>" in named
    assert all(name.startswith("<0x") for name in named)
    assert BARE.shadowed == frozenset()
    assert BARE.decode([[UNK_ID]])[0] == BARE.spelled[UNK_ID].decode()


def test_a_word_begins_after_a_space_or_where_there_are_none_anywhere() -> None:
    spaced, unspaced = ConstraintEncoder(TOKENIZER, False), ConstraintEncoder(TOKENIZER, True)
    for word in ("hund", "狗", "GPU", "很 小", "é"):
        for encoder, start in ((spaced, b" "), (unspaced, b"")):
            phrase = constraints(encoder, include=[word]).rules.include[0]
            assert b"".join(TOKENIZER.spelled[i] for i in phrase) == start + word.encode()


def test_words_are_compared_as_any_tokenizer_writes_them() -> None:
    """Imported models normalise by rules of their own (NFKC), which turn a no-break space into a space."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=model, model_type="unigram", vocab_size=60, minloglevel=2,
        normalization_rule_name="nmt_nfkc", hard_vocab_limit=False, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
    )  # fmt: skip
    nfkc = Tokenizer(model.getvalue())
    assert not nfkc.composes
    assert not nfkc.is_exact
    found = constraints(
        ConstraintEncoder(nfkc, False), prefix="der\u00a0hund", include=["ka\uff54ze"], exclude=["\uff4dag"]
    )
    assert found.rules.prefix == b" der hund"
    assert found.rules.exclude == (b"mag",)
    assert found.violations("der hund katze") == ()
    terms = Glossary([("dog", "der\u00a0hund")]).find("a dog")
    assert constraints(ConstraintEncoder(nfkc, False), terms).violations("der hund") == ()


def test_a_term_is_encoded_once_however_often_it_comes() -> None:
    """A text may have 25,000 times a term of a thousand ids: a gigabyte."""
    glossary, encoder = Glossary([("dog", "hund" * 50)]), ConstraintEncoder(TOKENIZER, unspaced=False)
    known: dict[tuple[str, str], Target] = {}
    options = TranslateOptions.of(None, {"glossary": glossary})
    first, second = (encoder.encode(options, "", glossary.find("a dog, a dog"), False, known) for _ in range(2))
    assert len(known) == 1
    assert len({id(phrase) for phrase in (*first.terms, *second.terms)}) == 1
    assert len({id(written) for written, _ in (*first.placed, *second.placed)}) == 1


def test_a_glossary_adds_the_terms_of_the_text() -> None:
    glossary = Glossary([("dog", "hund"), ("cat", None)])
    encoder = ConstraintEncoder(TOKENIZER, False)
    terms = glossary.find("A Cat, a dog, a dog.")
    found = constraints(encoder, terms, include=["狗"], glossary=glossary)
    assert [word for word, _ in found.placed] == ["狗", "Cat", "hund", "hund"]
    assert len(found.rules.include) == 1  # the glossary's are placed after the search
    assert found.violations("Cat hund 狗 hund") == ()
    assert found.violations("Cat hund 狗") == ("'hund' (the glossary's for 'dog') could not be placed",)
    assert found.violations("Cat hunde") == (
        "'狗' could not be placed", "'hund' (the glossary's for 'dog') could not be placed",
    )  # fmt: skip
    assert constraints(encoder, glossary.find("nothing"), glossary=glossary).rules.are_none
    later = constraints(encoder, terms, "der ", False, include=["狗"], exclude=["GPU"], glossary=glossary)
    assert [word for word, _ in later.placed] == ["Cat", "hund", "hund"]  # of a later part of a text
    assert (later.rules.prefix, later.prefix, later.excluded) == (b"", "", ("GPU",))


def test_what_the_vocabulary_cannot_spell_is_said_or_refused() -> None:
    encoder = ConstraintEncoder(BARE, False)
    found = constraints(encoder, include=["hund", "Ω"])
    assert len(found.rules.include) == 1
    assert found.violations("der hund") == ("'Ω' could not be placed",)
    for prefix in ("der Ω", ["der", "der Ω"]):
        with pytest.raises(ConfigError, match=r"prefix 'der Ω' .*not in this run's subword vocabulary"):
            encoder.check(TranslateOptions(prefix=prefix))
    encoder.check(TranslateOptions(prefix=["der", "", "die"]))
    assert constraints(encoder, prefix="der ").rules.prefix == b" der "


def test_each_text_has_constraints_of_its_own_and_no_option_makes_none() -> None:
    encoder, two = ConstraintEncoder(TOKENIZER, False), ["a dog", "a cat"]
    assert of_texts(encoder, two) == [None, None]
    assert of_texts(encoder, two, prefix=["", ""]) == [None, None]
    der, free = of_texts(encoder, two, prefix=["der", ""])
    assert der == constraints(encoder, prefix="der")
    assert free == constraints(encoder)
    assert free is not None
    assert free.rules.are_none
    assert of_texts(encoder, [], prefix="der") == []
    assert TranslateOptions(prefix="der").constrains  # an option, though of no text
    assert not TranslateOptions(prefix=["", ""]).constrains
    assert of_texts(encoder, ["a dog"], prefix="die", no_repeat_ngram=3) == [
        constraints(encoder, prefix="die", no_repeat_ngram=3)
    ]
    with pytest.raises(ConfigError, match="1 prefixes for 2 texts"):
        of_texts(encoder, two, prefix=["der"], no_repeat_ngram=3)


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
    with pytest.raises(ConfigError, match="unpaired surrogate"):
        TranslateOptions.of(None, {name: word if name == "prefix" else (word,)})
