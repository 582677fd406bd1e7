"""Text that only looks different is the same for the model, in every script; digits are pieces of their own."""

from __future__ import annotations

import sys
import unicodedata
from functools import cache

import pytest

from benchmarks.normalising import ALTERATIONS, altered
from dragoman.config import TokenizerConfig
from dragoman.data.tokenizer import Tokenizer

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


@cache
def learned(kind: str) -> Tokenizer:
    """Return subwords of the sentences of all scripts."""
    lines = [line for lines in SENTENCES.values() for line in lines] * 6
    return Tokenizer.learn(lines, TokenizerConfig(kind=kind, vocab_size=900))


@pytest.mark.parametrize("kind", ALTERATIONS)
def test_an_alteration_that_nobody_sees_gives_the_same_subwords(kind: str) -> None:
    texts = [line for lines in SENTENCES.values() for line in lines]
    changed = altered(kind, texts)
    assert sum(map(str.__ne__, texts, changed)) >= 1
    tokenizer = learned("bpe")
    assert tokenizer.encode(changed) == tokenizer.encode(texts)


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
