"""What is written for CTranslate2 computes there what our model computes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.decoding.scoring import read_all
from dragoman.errors import BundleError, ConfigError
from dragoman.toolkits.ctranslate2 import search as ctranslate2_engine
from dragoman.toolkits.ctranslate2.write import QUANTIZATIONS, why_not, write
from dragoman.toolkits.writing import check
from model_variants import VARIANTS
from searching import search_all

CPU = torch.device("cpu")
SIZES = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=2, n_decoder_layers=2, max_len=40)
OF_ITS_OWN = {  # its heads have one width; left out are what it refuses and padding that is no tokenizer's
    "heads of own width": dict(d_k=10, d_v=10),
    "rotary heads of own width": dict(positions="rotary", d_k=6, d_v=6, norm="pre"),
}
FIELDS = {name: OF_ITS_OWN.get(name, fields) for name, fields in VARIANTS.items()
          if fields.get("n_encoder_layers", 2) and "pad_id" not in fields}  # fmt: skip
PAIRS = [([9, 7, 300], [5, 31, 8, 100]), ([4] * 21, [11]), ([8], list(range(4, 30))), ([44, 10, 6, 7, 8, 9], [])]

Make = Callable[..., Bundle]


def load(bundle: Bundle, folder: Path, precision: str = "float32") -> ctranslate2_engine.CTranslate2:
    translator = ctranslate2_engine.open_folder(folder, precision)
    return ctranslate2_engine.CTranslate2(translator, bundle.src_tokenizer, bundle.tgt_tokenizer, 40)


def searched(engine: ctranslate2_engine.CTranslate2, sources: list[list[int]], decode: DecodeConfig) -> list[Any]:
    """The best hypothesis of each source."""
    found = engine.search([Segment(ids=ids) for ids in sources], SearchSettings(decode=decode))
    return [hypotheses[0] for hypotheses in found.hypotheses]


@pytest.mark.parametrize("fields", FIELDS.values(), ids=list(FIELDS))
def test_a_model_computes_the_same_there(make: Make, tmp_path: Path, fields: dict[str, Any]) -> None:
    bundle = make(**fields)
    write(bundle, tmp_path)
    engine = load(bundle, tmp_path)
    ours = read_all(bundle.model, PAIRS, CPU)
    theirs = engine.read(PAIRS)
    for one, other in zip(ours, theirs, strict=True):
        assert one is not None
        assert other == pytest.approx(one.log_probs, abs=1e-4)
    sources = [src for src, _ in PAIRS]
    greedy = DecodeConfig(beam_size=1, max_extra_tokens=5)
    want = search_all(bundle.model, sources, greedy, CPU, longest=40)
    found = searched(engine, sources, greedy)
    assert [h.ids for h in found] == [h[0].ids for h in want]
    assert [h.score for h in found] == pytest.approx([h[0].score for h in want], abs=1e-4)
    beam = DecodeConfig(beam_size=4, max_extra_tokens=5)
    best = searched(engine, sources, beam)
    read = read_all(bundle.model, [(src, h.ids) for src, h in zip(sources, best, strict=True)], CPU)
    assert [h.log_prob for h in best] == pytest.approx([one.log_prob for one in read if one], abs=1e-4)


REFUSED: list[tuple[dict[str, Any], str]] = [
    (dict(n_encoder_layers=0), r"no model without encoder \(model.n_encoder_layers = 0\)"),
    (dict(n_decoder_layers=0), r"no model without decoder \(model.n_decoder_layers = 0\)"),
    (dict(d_k=4, d_v=6), "heads have one width, and here model.d_k is 4 and model.d_v 6"),
    (dict(src_vocab_size=10**7, tgt_vocab_size=10**7, d_model=120), "more than 4 GiB"),
]


@pytest.mark.parametrize(("fields", "reason"), REFUSED)
def test_what_it_cannot_express_is_refused_in_one_line(fields: dict[str, Any], reason: str) -> None:
    config = ModelConfig(**{"src_vocab_size": 9, "tgt_vocab_size": 9, **SIZES, **fields})
    assert "\n" not in why_not(config)
    with pytest.raises(ConfigError, match=reason):
        raise ConfigError(why_not(config))


def test_what_cannot_be_written_is_refused_before_there_is_a_folder(make: Make) -> None:
    with pytest.raises(ConfigError, match="cannot be written for CTranslate2: its heads have one width"):
        check("ctranslate2", make(d_k=4, d_v=6).model.config, "float32")
    with pytest.raises(ConfigError, match=r"quantization must be float32, float16, .*int8.*, got 'int4'"):
        check("ctranslate2", make().model.config, "int4")


def test_a_damaged_model_is_refused(make: Make, tmp_path: Path) -> None:
    bundle = make()
    with torch.no_grad():
        bundle.model.encoder.layers[0].feed_forward.w_1.weight[0, 0] = torch.nan
    with pytest.raises(BundleError, match=r"encoder.layers.0.feed_forward.w_1.weight holds values that are not finite"):
        write(bundle, tmp_path)


# --- the file --------------------------------------------------------------------------------------------------------


def read_binary(path: Path) -> dict[str, tuple[str, np.ndarray[Any, Any]]]:
    """All variables of a model.bin, aliases resolved, as type and values (bfloat16 as its bits)."""
    body, place = path.read_bytes(), 0

    def take(form: str) -> Any:
        nonlocal place
        values = struct.unpack_from(f"<{form}", body, place)
        place += struct.calcsize(f"<{form}")
        return values[0] if len(values) == 1 else values

    def string() -> str:
        raw = take(f"{take('H')}s")
        assert raw.endswith(b"\0")
        return raw[:-1].decode()

    assert take("I") == 6
    assert (string(), take("I")) == ("TransformerSpec", 7)
    found: dict[str, tuple[str, np.ndarray[Any, Any]]] = {}
    names = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
    for _ in range(take("I")):
        name = string()
        shape = [take("I") for _ in range(take("B"))]
        kind, n_bytes = names[take("B")], take("I")
        array = np.frombuffer(body[place : place + n_bytes], {"bfloat16": "uint16"}.get(kind, kind)).reshape(shape)
        found[name], place = (kind, array), place + n_bytes
    for _ in range(take("I")):
        alias, name = string(), string()
        for ending in ("", "_scale"):  # the scale of a matrix goes with it
            if name + ending in found:
                found[alias + ending] = found[name + ending]
    assert place == len(body)
    return found


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_types_are_those_of_the_quantization_and_what_is_tied_is_there_once(
    make: Make, tmp_path: Path, quantization: str
) -> None:
    bundle = make()
    write(bundle, tmp_path, quantization)
    found = read_binary(tmp_path / "model.bin")
    matrices, rest = quantization.split("_")[0], quantization.split("_")[-1].replace("int8", "float32")
    for name, (kind, array) in found.items():
        if array.ndim and not name.endswith("_scale"):
            assert kind == (matrices if name.endswith("weight") else rest), name
    tied = [found[f"{name}/weight"][1] for name in ("encoder/embeddings_0", "decoder/embeddings", "decoder/projection")]
    assert np.shares_memory(tied[0], tied[1])
    assert np.shares_memory(tied[0], tied[2])
    if matrices == "float32":
        np.testing.assert_array_equal(tied[0], bundle.model.src_embed.weight.detach())


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_the_model_itself_stays_as_it_is(make: Make, tmp_path: Path, quantization: str) -> None:
    bundle = make()
    before = {name: tensor.clone() for name, tensor in bundle.model.state_dict().items()}
    write(bundle, tmp_path, quantization)
    torch.testing.assert_close(dict(bundle.model.state_dict()), before, rtol=0, atol=0)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_every_quantization_loads_and_is_near(make: Make, tmp_path: Path, quantization: str) -> None:
    bundle = make()
    write(bundle, tmp_path, quantization)
    assert ctranslate2.contains_model(str(tmp_path))
    precision = "int8" if "int8" in quantization else "float32"  # a processor need not compute in 16 bits
    ours, theirs = (
        read_all(bundle.model, PAIRS, CPU),
        load(bundle, tmp_path, precision).read(PAIRS),
    )
    differences = [
        abs(a - b)
        for one, other in zip(ours, theirs, strict=True)
        if one
        for a, b in zip(one.log_probs, other, strict=True)
    ]
    assert len(differences) == sum(len(tgt) + 1 for _, tgt in PAIRS)
    bound = {"float32": 1e-4, "float16": 0.05}.get(quantization, 1.0)
    assert 0 < max(differences) < bound


class OddTokenizer:
    """Pieces that a text file of one piece a line would lose."""

    odd = ("\n", "\r", "a\u2028b", '"', "\\", " ", "\t", "\u00e9", "\U0001f600", "<0x0A>", "\ufeff", "</S>")
    vocab_size = 4 + len(odd)

    def pieces(self, ids: Any) -> list[str]:
        every = ["<pad>", "<unk>", "<s>", "</s>", *self.odd]
        return [every[i] for i in ids]

    def shares_pieces(self, other: object) -> bool:
        return self is other

    def save(self, path: Path) -> None:
        path.write_bytes(b"")


def test_pieces_keep_their_ids_whatever_they_are(make: Make, tmp_path: Path) -> None:
    odd: Any = OddTokenizer()
    n = odd.vocab_size
    bundle = make(src_vocab_size=n, tgt_vocab_size=n)._replace(src_tokenizer=odd, tgt_tokenizer=odd)
    write(bundle, tmp_path)
    assert json.loads((tmp_path / "shared_vocabulary.json").read_text(encoding="utf-8")) == odd.pieces(range(n))
    engine = load(bundle, tmp_path)
    pairs = [(list(range(4, n)), list(range(n - 1, 3, -1)))] + [([i], [i]) for i in range(4, n)]
    ours, theirs = read_all(bundle.model, pairs, CPU), engine.read(pairs)
    for one, other in zip(ours, theirs, strict=True):
        assert one is not None
        assert other == pytest.approx(one.log_probs, abs=1e-4)


def test_two_vocabularies_are_two_files(make: Make, tmp_path: Path) -> None:
    bundle = make(src_vocab_size=16, share_embeddings="none")
    odd: Any = OddTokenizer()
    bundle = bundle._replace(src_tokenizer=odd)
    write(bundle, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json", "model.bin", "source_vocabulary.json", "src.spm", "target_vocabulary.json", "tgt.spm",
    ]  # fmt: skip
    engine = load(bundle, tmp_path)
    (one,), (other,) = (
        read_all(bundle.model, [([5, 15, 4], [300, 4])], CPU),
        engine.read([([5, 15, 4], [300, 4])]),
    )
    assert one is not None
    assert other == pytest.approx(one.log_probs, abs=1e-4)


def test_the_table_of_sinusoids_is_as_long_as_the_settings_can_ask_for(make: Make, tmp_path: Path) -> None:
    bundle = make()
    write(bundle, tmp_path)
    assert read_binary(tmp_path / "model.bin")["encoder/position_encodings/encodings"][1].shape == (1024, 24)
    data = bundle.config.data.model_copy(update={"max_tokens": 2000})
    write(bundle._replace(config=bundle.config.model_copy(update={"data": data})), tmp_path)
    n_rows = 2000 + bundle.config.decode.max_extra_tokens + 1
    found = read_binary(tmp_path / "model.bin")
    assert found["decoder/position_encodings/encodings"][1].shape == (n_rows, 24)
    pair = (list(range(4, 204)) * 10, [5])
    (one,) = read_all(bundle.model, [pair], CPU)
    (other,) = load(bundle, tmp_path).read([pair])
    assert one is not None
    assert other == pytest.approx(one.log_probs, abs=1e-4)
