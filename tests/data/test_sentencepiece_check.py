"""The check of SentencePiece models lets ours pass and says what is wrong with others."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.data.sentencepiece_check import check_model, fields, keeps_texts, normalizer_map, normalizer_name
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError
from dragoman.toolkits.subwords import read_model

LINES = [f"hello wörld {i} 日本 abc" for i in range(200)]
PROTO = Tokenizer.learn(LINES, TokenizerConfig(vocab_size=320, normalisation="none")).proto
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
        (PROTO + piece(b""), "must have 1 to 4,096 bytes, got 0"),
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
        (PROTO + b"\x0a\x08\x0a\x02x1\x0a\x02x2", "piece 313: field 1 appears twice"),
        (NO_BYTES + b"\x1a\x00", "2 normalisers"),
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
    with pytest.raises(ValueError, match="must have 1 to 4,096 bytes, got 4,097"):
        check_model(PROTO + long(4097))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_by_a_value_error_alone(content: bytes) -> None:
    for start in (b"", PROTO[:200]):
        with pytest.raises(ValueError, match=r"."):
            check_model(start + content)


# --- what may be left out, and normalisers -------------------------------------------------------------------------


def message(number: int, *parts: bytes) -> bytes:
    """A field of bytes, of any length."""
    body, size = b"".join(parts), b""
    n = len(body)
    while n > 0x7F:
        size, n = size + bytes([n & 0x7F | 0x80]), n >> 7
    return bytes([number << 3 | 2]) + size + bytes([n]) + body


def rebuilt(proto: bytes, piece: Any = bytes, trainer: Any = bytes, normalizer: Any = bytes) -> bytes:
    """A model of which each message was changed; None leaves it out."""
    changed = [(n, (piece, trainer, normalizer)[n - 1](value)) for n, _, value in fields(proto)]
    return b"".join(message(n, value) for n, value in changed if value is not None)


def without(*numbers: int) -> Any:
    """A function that leaves fields out of a message, if they are 0."""

    def change(body: bytes) -> bytes:
        kept = b""
        for number, wire, value in fields(body):
            if number in numbers and (not value or not any(value)):
                continue
            kept += (
                bytes([number << 3]) + bytes([value]) if isinstance(value, int)
                else message(number, value) if wire == 2 else bytes([number << 3 | wire]) + value
            )  # fmt: skip
        return kept

    return change


def learned(rule: str = "nmt_nfkc", table: Path | None = None) -> bytes:
    """A model as others learn it; with a table of rules it normalises by these."""
    model = io.BytesIO()
    rules = {"normalization_rule_tsv": str(table)} if table else {"normalization_rule_name": rule}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a dog runs", "cats and dogs"] * 20), model_writer=model, vocab_size=24,
        hard_vocab_limit=False, pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2, **rules,
    )  # fmt: skip
    return model.getvalue()


def test_a_score_that_is_left_out_is_zero() -> None:
    """``optional float score = 2``: SentencePiece's own test models leave it out where it is 0."""
    proto = learned("identity")
    bare = rebuilt(proto, piece=without(2))
    assert len(bare) < len(proto)
    tokenizer = Tokenizer(bare)
    assert tokenizer.scores == Tokenizer(proto).scores
    assert tokenizer.encode(["a dog runs", "dogs"]) == Tokenizer(proto).encode(["a dog runs", "dogs"])


def test_a_normaliser_that_is_left_out_changes_nothing_but_spaces() -> None:
    """``optional NormalizerSpec normalizer_spec = 3``: no map, and its switches are true."""
    proto = rebuilt(learned("identity"), normalizer=lambda body: None)
    there = sentencepiece.SentencePieceProcessor(model_proto=proto)
    tokenizer = Tokenizer(proto)
    assert tokenizer.encode(["a  dog"]) == [there.encode("a  dog")]
    assert not tokenizer.is_exact  # two spaces become one


def test_a_name_without_a_map_is_the_identity() -> None:
    assert normalizer_name(b"\x0a\x08nmt_nfkc") == "identity"
    assert normalizer_name(b"") == "identity"
    assert Tokenizer(PROTO.replace(b"identity", b"nmt_nfkc")).is_exact
    assert keeps_texts(PROTO)
    assert not keeps_texts(learned())


def test_the_map_of_another_unicode_is_read_as_it_is(tmp_path: Path) -> None:
    """SentencePiece's maps grow with Unicode: the map in the model counts, not the map of the wheel."""
    (tmp_path / "rules.tsv").write_text("41\t61\nFF21\t61\nFB01\t66 69\n", encoding="utf-8")
    proto = learned(table=tmp_path / "rules.tsv")
    (body,) = (value for number, _, value in fields(proto) if number == 3)
    named = rebuilt(proto, normalizer=lambda _: message(1, b"nfkc") + message(2, normalizer_map(body)))
    for model in (proto, named):
        tokenizer = Tokenizer(model)
        there = sentencepiece.SentencePieceProcessor(model_proto=model)
        texts = ["A dog runs", "Ａ dog", "ﬁ", "①"]
        assert tokenizer.encode(texts) == there.encode(texts)
        assert tokenizer.encode(["A"]) == tokenizer.encode(["a"])
        assert not tokenizer.is_exact


def with_map(content: bytes) -> bytes:
    return rebuilt(learned(), normalizer=lambda _: message(1, b"nmt_nfkc") + message(2, content))


A = 256 ^ ord("a")


def trie(texts: bytes = b"b\0", **units: int) -> bytes:
    """A map with a trie by hand: ``a`` is replaced by the first text. ``units`` are other ones, by their place."""
    of = (np.arange(512, dtype="<u4") ^ 1) & 255  # bytes that lead here from bases that nobody has
    of[0] = 256 << 10  # the base of the first byte is 256
    of[A] = ord("a") | 1 << 8 | (A ^ 128) << 10  # its base is 128, and its value stands there
    of[128] = 1 << 31
    for place, unit in units.items():
        of[int(place.removeprefix("at"))] = unit
    return struct.pack("<I", of.nbytes) + of.tobytes() + texts


MAPS = {
    "cut off": (trie()[:-600], "the map of its normaliser is cut off"),
    "a size that is no trie": (b"\x03\0\0\0abcd\0", "the map of its normaliser is cut off"),
    "an end that is missing": (trie(b"b"), "the map of its normaliser is cut off"),
    "no UTF-8": (trie(b"\xff\0"), "can't decode byte 0xff"),
    "a long text": (trie(b"b" * 257 + b"\0"), "a replacement of its normaliser must have at most 256 bytes"),
    "a base far away": (trie(at0=(2**21 - 1) << 10 | 1 << 9), "points outside its memory"),
    "a text far away": (trie(at128=1 << 31 | 5000), "points to no replacement"),
    "the middle of a text": (trie(b"bc\0", at128=1 << 31 | 1), "points to no replacement"),
    "no text": (trie(at128=7), "points to no replacement"),
    "a circle": (trie(**{f"at{A}": ord("a") | (A ^ 256) << 10}), "replaces must have at most 32 bytes"),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_that_leads_astray_is_refused(name: str) -> None:
    content, says = MAPS[name]
    with pytest.raises(ValueError, match=says):
        check_model(with_map(content))


def test_a_map_by_hand_passes_and_does_what_it_says() -> None:
    tokenizer = Tokenizer(with_map(trie()))
    assert tokenizer.encode(["aba"]) == tokenizer.encode(["bbb"])


@pytest.mark.parametrize("name", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
def test_the_maps_of_sentencepiece_pass(name: str) -> None:
    check_model(learned(name))


def test_damaged_maps_are_refused_or_harmless() -> None:
    proto = learned()
    (body,) = (value for number, _, value in fields(proto) if number == 3)
    content = normalizer_map(body)
    at, chance = proto.index(content), random.Random(7)
    n_refused = 0
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 50])):
            damaged[chance.randrange(chance.choice([400, len(damaged)]))] = chance.randrange(256)
        try:
            tokenizer = Tokenizer(proto[:at] + bytes(damaged) + proto[at + len(content) :])
        except BundleError:
            n_refused += 1
        else:
            tokenizer.encode(["①ﬁ ｶﾞ Å　 a", "".join(map(chr, range(0x20, 0x2000)))])
    assert 30 < n_refused < 60


@pytest.mark.parametrize("message", [2, 3])
def test_a_damaged_part_is_found_as_the_model_is_parsed(message: int) -> None:
    """Whoever imports a model reads its rules later, and meets no ValueError there."""
    damaged = bytes([message << 3 | 2, 1, 0x0F])
    own = b"".join(piece(b"%d" % i) for i in range(9))
    with pytest.raises(BundleError, match="wire type 7"):
        read_model(own + damaged, "a.spm")
