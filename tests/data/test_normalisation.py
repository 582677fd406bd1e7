"""Text that only looks different is the same for the model, in every script; digits are pieces of their own."""

from __future__ import annotations

import random
import sys
import unicodedata
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest
import sentencepiece

from benchmarks.normalising import ALTERATIONS, WHITE_SPACE, altered
from dragoman.config import Config, TokenizerConfig
from dragoman.data.normalisation import SPACES, TYPOGRAPHIC_INVISIBLE, source_rule
from dragoman.data.sentencepiece_check import check_model
from dragoman.data.tokenizer import Tokenizer, learn_tokenizers
from dragoman.errors import BundleError, ConfigError
from dragoman.languages.words import INVISIBLE

SENTENCES = {
    "Latin": [
        "The old teacher reads a long letter.",
        "Zwölf Äpfel liegen über dem Küchenschrank.",
        "Où est né l'élève ?",
    ],
    "Vietnamese": ["Người phụ nữ đang đọc sách ở thư viện.", "Những đứa trẻ chạy về phía trường học."],
    "Devanagari": ["बच्चे नदी के किनारे खेल रहे हैं।", "यह किताब बहुत ज़्यादा बड़ी है।", "लड़का स्कूल गया।"],
    "Bengali": ["মেয়েটি বড় গাছের নিচে বসে আছে।", "আমরা কাল বাজারে যাব।"],
    "Tamil": ["குழந்தைகள் பூங்காவில் விளையாடுகிறார்கள்.", "அவன் மெதுவாக நடந்தான்."],
    "Arabic": ["ذهب الولد إلى المدرسة مع أخيه.", "القطة تنام تحت الطاولة."],
    "Hebrew": ["הילד קורא ספר גדול בגן.", "שָׁלוֹם לכל החברים שלי."],
    "Korean": ["아이들이 공원에서 뛰어놀고 있습니다.", "나는 어제 새 책을 샀어요."],
    "Thai": ["เด็กผู้หญิงกำลังอ่าน หนังสือ", "เราไปตลาด พรุ่งนี้"],
    "Greek": ["Ο άντρας διαβάζει την εφημερίδα.", "Πού είναι το σχολείο;"],
    "Cyrillic": ["Мой младший брат ещё ходит в школу.", "Їжак їсть яблуко під деревом."],
    "Japanese": ["先生は 新しい 本を 読んでいます。", "ぼくは パンが だいすきです。"],
}
"""Sentences made for this test, with spaces that can be altered."""

DIGITS = {
    chr(code - 9): [chr(code - 9 + value) for value in range(10)]
    for code in range(sys.maxunicode + 1)
    if unicodedata.decimal(chr(code), -1) == 9
}
"""The ten digits of each decimal system that Python's Unicode knows, by its zero."""


TEXTS = [line for lines in SENTENCES.values() for line in lines]
CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


@cache
def learned(normalisation: str = "standard", kind: str = "bpe") -> Tokenizer:
    """Return subwords of the sentences of all scripts."""
    return Tokenizer.learn(TEXTS * 6, TokenizerConfig(kind=kind, vocab_size=900, normalisation=normalisation))


def read(text: str, normalisation: str = "standard") -> str:
    return learned(normalisation).normalised(text).text


@cache
def by_map_alone() -> sentencepiece.SentencePieceNormalizer:
    """What a program reads that knows only the map in the model."""
    return sentencepiece.SentencePieceNormalizer(
        normalizer_spec=source_rule("standard"), add_dummy_prefix=False, escape_whitespaces=False
    )


@pytest.mark.parametrize("kind", ALTERATIONS)
def test_an_alteration_that_nobody_sees_gives_the_same_subwords(kind: str) -> None:
    changed = altered(kind, TEXTS)
    assert sum(map(str.__ne__, TEXTS, changed)) >= 1
    tokenizer = learned()
    assert tokenizer.encode(changed) == tokenizer.encode(TEXTS)
    assert tokenizer.sample(changed, 0.2, seed=3) == tokenizer.sample(TEXTS, 0.2, seed=3)
    assert tokenizer.decode(tokenizer.encode(changed)) == [read(text) for text in TEXTS]
    assert [tokenizer.unknown(text) for text in changed] == [tokenizer.unknown(text) for text in TEXTS]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_every_digit_of_every_script_is_a_piece_of_its_own(kind: str) -> None:
    assert len(DIGITS) > 60
    years = [f"{zero}{d[2]}{d[0]}{d[2]}{d[4]}" for zero, d in DIGITS.items()]
    lines = [f"In {''.join((d[2], d[0], d[2], d[n]))} {d[1]}{d[9]}{d[n]}." for d in DIGITS.values() for n in range(10)]
    config = TokenizerConfig(kind=kind, vocab_size=2500, byte_fallback=False)
    tokenizer = Tokenizer.learn(lines * 5, config)
    for text in years:
        (ids,) = tokenizer.encode([text])
        text = tokenizer.normalised(text).text  # digits of full width are read as ASCII
        pieces = [piece.replace("\u2581", "") for piece in tokenizer.pieces(ids)]
        assert [piece for piece in pieces if piece] == list(text)


def test_the_map_alone_composes_every_character_and_every_order_of_double_marks() -> None:
    normalise = by_map_alone().Normalize
    for character in CHARACTERS:
        letters = unicodedata.normalize("NFD", character)
        orders = permutations(letters[1:]) if 2 < len(letters) < 5 and letters[0] < "\u3000" else [letters[1:]]
        for marks in orders:
            text = f"x{letters[0]}{''.join(marks)}x"
            if unicodedata.normalize("NFC", text[1:-1]) != unicodedata.normalize("NFC", letters):
                continue  # another character: marks of one class have an order that means something
            assert normalise(text) == normalise(unicodedata.normalize("NFC", text)), hex(ord(character))


def test_marks_in_any_order_are_read_alike() -> None:
    chance = random.Random(40)
    marks = [character for character in CHARACTERS if unicodedata.combining(character)]
    for _ in range(2000):
        letter, drawn = chance.choice("aeiouAOUωиकกа"), chance.sample(marks, 3)
        readings = {read(f"x{letter}{''.join(order)}x") for order in permutations(drawn)}
        by_class: dict[int, list[str]] = {}
        for mark in drawn:
            by_class.setdefault(unicodedata.combining(mark), []).append(mark)
        if len(by_class) == 3:  # marks of one class have an order that means something
            assert len(readings) == 1


def test_normalising_twice_changes_nothing() -> None:
    for start in range(0, len(CHARACTERS), 500):
        block = "x".join(CHARACTERS[start : start + 500])
        assert read(read(block)) == read(block)


def test_all_white_space_is_one_space_and_none_outside() -> None:
    for character in WHITE_SPACE + SPACES:
        assert read(f"a{character}b") == "a b"
        assert read(f"{character}a{character}{character}b{character}") == "a b"
    for character in CHARACTERS:
        assert not character.isspace() or read(f"a{character}b") == "a b"


def test_characters_that_nobody_sees_are_left_out() -> None:
    for character in INVISIBLE + TYPOGRAPHIC_INVISIBLE:
        assert read(f"a{character}b") == "ab"
        assert read(character) == ""
        assert learned().encode([character]) == [[]]


def test_joiners_stay_where_they_mean_something() -> None:
    for text in ("می\u200cخواهم", "क्\u200dष", "👩\u200d👧", "ক্\u200cষ", "ന്\u200d"):
        assert read(text) == text
    assert read("soft\u200cware \u200dwörd") == "software wörd"


def test_width_is_that_of_ascii_and_marks_of_chinese_stay() -> None:
    assert read("Ｔｈｅ　ｄｏｇ　１２％") == "The dog 12%"
    assert read("他说：“好！”（三）。") == "他说：“好！”（三）。"
    assert read("ｶﾞﾗｽ､ﾊﾟﾝ｡") == "ガラス、パン。"


def test_quotes_and_dashes_are_an_option() -> None:
    text = "“It’s” – «so» …"
    assert read(text) == text
    assert read(text, "with_quotes") == '"It\'s" - "so" ...'
    assert read("  a  b ", "none") == "  a  b "


def test_each_character_read_has_its_place_in_the_text() -> None:
    text = " \ufeffＴhe\u00a0\u00a0o\u00adld e\u0301\u0323 \u1112\u1161\u11ab\u2028ﬁn "
    clean, places = learned().normalised(text)
    assert clean == "The old ẹ\u0301 한 fin"
    assert [text[place] for place in places] == list("Ｔhe\u00a0old ee \u1112\u2028ﬁﬁn")
    for text in altered("mixed white space", TEXTS) + altered("NFD", TEXTS):
        clean, places = learned().normalised(text)
        assert len(clean) == len(places)
        assert places == sorted(places)
        assert all(
            character == " " or not text[place].isspace() for character, place in zip(clean, places, strict=True)
        )
    assert learned("none").normalised("  a ") == ("  a ", [0, 1, 2, 3])


def test_a_target_keeps_what_it_was_learned_with() -> None:
    french = ["Qui est là\u00a0? Moi\u202f!", "«\u00a0Viens\u00a0» dit-il\u202f;  vite."] * 10
    pairs = [(line, line) for line in french]
    for joint in (True, False):
        src, tgt = learn_tokenizers(lambda: pairs, TokenizerConfig(vocab_size=330, joint=joint))
        assert src.normalised(french[0]).text == "Qui est là ? Moi !"
        assert tgt.normalised(french[1] + "\ufeff\u2003\u200b") == tgt.normalised(french[1])
        assert tgt.decode(tgt.encode(french)) == [line.replace("  ", " ") for line in french]
        assert src.shares_pieces(tgt) is joint
        check_model(tgt.proto)
        again = Tokenizer(src.proto).for_targets if joint else Tokenizer(tgt.proto)
        assert again == tgt
        assert again.for_targets == again


def test_a_target_without_them_is_read_as_a_source() -> None:
    tgt = learned().for_targets
    for kind in ALTERATIONS:
        if kind != "direction marks":
            assert tgt.encode(altered(kind, TEXTS[:2])) == learned().encode(TEXTS[:2])


def test_text_inside_a_longer_one_is_taken_as_it_is() -> None:
    tokenizer = learned()
    (ids,) = tokenizer.encode_inside(["ong  let\u00a0"])
    assert tokenizer.decode([[*tokenizer.encode(["l"])[0], *ids]]) == ["long  let\u00a0"]


def test_an_unknown_rule_of_ours_is_refused(tmp_path: Path) -> None:
    name = b"dragoman_standard_1"
    path = tmp_path / "joint.spm"
    path.write_bytes(learned().proto.replace(name, name[:-1] + b"9"))
    with pytest.raises(
        BundleError, match=r"joint.spm: its normalisation 'dragoman_standard_9' is not known .* upgrade"
    ):
        Tokenizer.load(path)
    with pytest.raises(ConfigError, match=r"normalisation must be"):
        Config.from_mapping({"data": {"train": {"src": "a", "tgt": "b"}, "tokenizer": {"normalisation": "nfkc"}}})


def test_subwords_of_before_are_as_they_were() -> None:
    exact = learned("none")
    assert exact.is_exact
    assert not exact.composes
    assert exact.for_targets is exact
    assert exact.normalisation == "none"
    assert exact.decode(exact.encode(["  a\u00a0 e\u0301\t"])) == ["  a\u00a0 e\u0301\t"]
