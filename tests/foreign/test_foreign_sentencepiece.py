"""SentencePiece's own test models, and models made like them: they come in with an import and cut as there.

Its test models are older than the package that is installed. Their control pieces have no field ``score`` (0 is the
default), and their normalisation map is that of an older Unicode. The models made here have both.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import yaml

import dragoman
from dragoman.bundle import load_bundle
from dragoman.data import phrasebook
from dragoman.data.sentencepiece_check import fields
from dragoman.data.tokenizer import Tokenizer
from peers import member

Suite = Callable[[str, int], Any]

D, D_FF = 8, 12
ODD = ["ﬁve ① ½ cats", "Ａ full stop．", "two  spaces", "ª ｂ ｃａｔ", "日本"]


def field(number: int, content: bytes) -> bytes:
    """A field of protocol buffers that holds bytes."""
    size, length = len(content), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def learned(lines: list[str], **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=150, minloglevel=2, num_threads=1, **options
    )  # fmt: skip
    return model.getvalue()


def without_scores(proto: bytes) -> bytes:
    """A model whose control pieces have no field ``score``."""
    parts = []
    for number, _, content in fields(proto):
        assert isinstance(content, bytes)
        if number == 1:
            inner = list(fields(content))
            if any((n, value) in ((3, 2), (3, 3)) for n, _, value in inner):  # unknown, control
                kind = next(value for n, _, value in inner if n == 3)
                text = next(value for n, _, value in inner if n == 1)
                assert isinstance(text, bytes)
                assert isinstance(kind, int)
                content = field(1, text) + bytes([3 << 3, kind])
        parts.append(field(number, content))
    return b"".join(parts)


def with_an_older_map(lines: list[str], folder: Path, **options: Any) -> bytes:
    """A model named nfkc whose map knows fewer characters than the installed one's."""
    rules = folder / "rules.tsv"
    rules.write_text("FB01\t66 69\n2460\t31\nFF21\t41\nFF0E\t2E\n", encoding="utf-8")  # ﬁ ① Ａ ．
    proto = learned(lines, normalization_rule_tsv=str(rules), **options)
    parts = []
    for number, _, content in fields(proto):
        assert isinstance(content, bytes)
        if number == 3:
            (older,) = (value for n, _, value in fields(content) if n == 2)
            assert isinstance(older, bytes)
            content = field(1, b"nfkc") + field(2, older)
        parts.append(field(number, content))
    return b"".join(parts)


def package(folder: Path, proto: bytes) -> Path:
    """A model of Marian, of random numbers, with these subwords on both sides."""
    folder.mkdir()
    (folder / "vocab.spm").write_bytes(proto)
    n_pieces = sentencepiece.SentencePieceProcessor(model_proto=proto).get_piece_size()
    rng = np.random.default_rng(1)
    shapes = {"Wemb": (n_pieces, D), "decoder_ff_logit_out_b": (1, n_pieces)}
    for side, attentions in (("encoder", ["self"]), ("decoder", ["self", "context"])):
        for attention in attentions:
            for letter in "qkvo":
                shapes |= {f"{side}_l1_{attention}_W{letter}": (D, D), f"{side}_l1_{attention}_b{letter}": (1, D)}
        shapes |= {f"{side}_l1_ffn_W1": (D, D_FF), f"{side}_l1_ffn_b1": (1, D_FF)}
        shapes |= {f"{side}_l1_ffn_W2": (D_FF, D), f"{side}_l1_ffn_b2": (1, D)}
        for place in (*(f"{attention}_Wo" for attention in attentions), "ffn_ffn"):
            shapes |= {f"{side}_l1_{place}_ln_scale": (1, D), f"{side}_l1_{place}_ln_bias": (1, D)}
    arrays: dict[str, Any] = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    options = {
        "type": "transformer", "transformer-ffn-activation": "relu", "transformer-preprocess": "",
        "transformer-postprocess": "dan", "transformer-postprocess-top": "", "enc-depth": 1, "dec-depth": 1,
        "transformer-heads": 2, "dim-emb": D, "transformer-dim-ffn": D_FF, "dim-vocabs": [n_pieces, n_pieces],
    }  # fmt: skip
    arrays["special:model.yml"] = np.frombuffer(yaml.safe_dump(options).encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **arrays)
    search = {"models": ["model.npz"], "vocabs": ["vocab.spm", "vocab.spm"]}
    (folder / "decoder.yml").write_text(yaml.safe_dump(search), encoding="utf-8")
    return folder


def imported_pieces(folder: Path, proto: bytes, lines: list[str]) -> list[list[str]]:
    """The pieces of each line, as the run cuts it that was made of a model with these subwords."""
    run = dragoman.import_model(package(folder / "marian", proto), folder / "run", src_lang="en", tgt_lang="de")
    tokenizer = load_bundle(run).src_tokenizer
    return [[piece for piece in tokenizer.pieces(ids) if piece != "</s>"] for ids in tokenizer.encode(lines)]


def expect_the_same(values: Any, folder: Path, proto: bytes, lines: list[str]) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=proto)
    unknown = theirs.id_to_piece(theirs.unk_id())
    for line, found in zip(lines, imported_pieces(folder, proto, lines), strict=True):
        expected = [
            unknown if theirs.piece_to_id(p) == theirs.unk_id() else p for p in theirs.encode(line, out_type=str)
        ]
        values.equal(line, found, expected)


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    phrasebook.write(60, tmp_path / "text.en", tmp_path / "text.de", split="train")
    return (tmp_path / "text.en").read_text(encoding="utf-8").splitlines()


def test_a_model_as_it_is_learned_today(suite: Suite, tmp_path: Path, lines: list[str]) -> None:
    values = suite("sentencepiece-like", 65)
    expect_the_same(values, tmp_path, learned(lines), lines + ODD)


def test_a_model_without_scores(suite: Suite, tmp_path: Path, lines: list[str]) -> None:
    values, proto = suite("sentencepiece-like", 66), without_scores(learned(lines))
    first = next(content for _, _, content in fields(proto))
    assert isinstance(first, bytes)
    values.equal("fields of the first piece", [number for number, _, _ in fields(first)], [1, 3])
    expect_the_same(values, tmp_path, proto, lines + ODD)


def test_a_model_of_another_unicode(suite: Suite, tmp_path: Path, lines: list[str]) -> None:
    values = suite("sentencepiece-like", 65)
    expect_the_same(values, tmp_path, with_an_older_map(lines, tmp_path), lines + ODD)


def test_a_run_of_another_unicode(suite: Suite, tmp_path: Path, lines: list[str]) -> None:
    """Of the subwords of a run, as one wrote them where an older SentencePiece was installed."""
    values = suite("sentencepiece-like", 65)
    proto = with_an_older_map(lines, tmp_path, pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    (tmp_path / "src.spm").write_bytes(proto)
    tokenizer, theirs = Tokenizer.load(tmp_path / "src.spm"), sentencepiece.SentencePieceProcessor(model_proto=proto)
    for line, ids in zip(lines + ODD, tokenizer.encode(lines + ODD), strict=True):
        values.equal(line, ids, theirs.encode(line))


JAPANESE = [
    "吾輩は猫である。名前はまだ無い。",
    "どこで生れたかとんと見当がつかぬ。",
    "清水寺は京都にある。",
    "ｶﾀｶﾅ ① ﾃｽﾄ",
    "グーグル",
]


@pytest.mark.foreign
@pytest.mark.parametrize(("name", "planned"), [("test_model.model", 4288), ("test_ja_model.model", 4293)])
def test_its_own_models(suite: Suite, tmp_path: Path, name: str, planned: int) -> None:
    values = suite("sentencepiece-own", planned)
    files = [member("sentencepiece", f"test/{part}") for part in (name, "botchan.txt")]
    if files[0] is None or files[1] is None:
        values.not_tried("SentencePiece's source package is not there: make test-foreign fetches it")
    lines = files[1].read_text(encoding="utf-8").splitlines()
    expect_the_same(values, tmp_path, files[0].read_bytes(), lines + (JAPANESE if "ja" in name else []))
