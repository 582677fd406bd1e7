"""The check of SentencePiece models lets ours pass and says what is wrong with others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.data.sentencepiece_check import check_model
from dragoman.data.tokenizer import Tokenizer

LINES = [f"hello wörld {i} 日本 abc" for i in range(200)]
PROTO = Tokenizer.learn(LINES, TokenizerConfig(vocab_size=320)).proto
NO_BYTES = Tokenizer.learn(LINES, TokenizerConfig(kind="unigram", vocab_size=40, byte_fallback=False)).proto


def piece(text: bytes, score: bytes = b"\0\0\x80\xbf", kind: int = 1) -> bytes:
    """A piece as it stands in a model; its text has less than 100 bytes."""
    body = bytes([0x0A, len(text)]) + text + b"\x15" + score + bytes([0x18, kind])
    return bytes([0x0A, len(body)]) + body


def test_a_model_of_words_passes() -> None:
    check_model(Tokenizer.learn_words(LINES).proto)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_what_is_learned_here_passes(kind: str, byte_fallback: bool) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=400, byte_fallback=byte_fallback)
    check_model(Tokenizer.learn(LINES, config).proto)
    check_model(NO_BYTES + piece(b"one more"))


@pytest.mark.parametrize(
    ("proto", "says"),
    [
        (b"", "it has 0 pieces, 0 trainers, 0 normalisers"),
        (PROTO + PROTO, "it has 626 pieces, 2 trainers"),
        (PROTO + piece(b""), "has 0 bytes"),
        (PROTO + piece(b"hello"[:1]), "a piece appears twice"),
        (PROTO + piece(b"\xff"), "can't decode byte 0xff"),
        (PROTO + piece(b"a\0b"), "holds NUL"),
        (PROTO + piece(b"x1", b"\0\0\x80\x7f"), "its score is no finite number"),
        (PROTO + piece(b"x1", b"\0\0\xc0\x7f"), "its score is no finite number"),
        (PROTO + piece(b"x1", kind=4), "its special pieces are not pad, unk, bos, eos"),
        (PROTO + piece(b"x1", kind=6), "is marked as a byte but is not one"),
        (NO_BYTES + piece(b"<0x41>", kind=6), "some of the 256 bytes are missing"),
        (PROTO + b"\x22\x02ab", "field 4 does not belong there"),
        (PROTO + b"\x0a\x05\x0a\x7fabc", "127 bytes should follow, and there are 3"),
        (PROTO + b"\x0b", "wire type 3"),
        (PROTO + b"\x0a", "it ends inside a number"),
        (PROTO + b"\xff" * 11, "a number of more than ten bytes"),
        (PROTO.replace(b"identity", b"nmt_nfkc"), "it changes the text before it cuts it"),
    ],
)
def test_what_is_wrong_is_said(proto: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        check_model(proto)
    assert says in str(caught.value)


def test_a_piece_may_have_4096_bytes_and_no_more() -> None:
    def long(n: int) -> bytes:
        size = bytes([n & 0x7F | 0x80, n >> 7])
        body = b"\x0a" + size + b"x" * n + b"\x15\0\0\x80\xbf"
        return b"\x0a" + bytes([len(body) & 0x7F | 0x80, len(body) >> 7]) + body

    check_model(PROTO + long(4096))
    with pytest.raises(ValueError, match="has 4,097 bytes"):
        check_model(PROTO + long(4097))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_by_a_value_error_alone(content: bytes) -> None:
    for start in (b"", PROTO[:200]):
        with pytest.raises(ValueError, match=r"."):
            check_model(start + content)
