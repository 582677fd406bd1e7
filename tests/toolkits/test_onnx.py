"""What is written for ONNX computes in onnxruntime what our model computes, step by step, in any batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.decoding.scoring import read_all
from dragoman.errors import BundleError, ConfigError
from dragoman.toolkits.engine import Models, Needs
from dragoman.toolkits.onnx.write import why_not, write
from dragoman.toolkits.writing import check
from model_variants import VARIANTS
from searching import search_all

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from dragoman.toolkits.onnx.search import Onnx  # noqa: E402

CPU = torch.device("cpu")
SIZES = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=2, n_decoder_layers=2, max_len=40)
FIELDS = {name: fields for name, fields in VARIANTS.items()
          if fields.get("n_encoder_layers", 2) and "pad_id" not in fields}  # fmt: skip
PAIRS = [([9, 7, 300], [5, 31, 8, 100]), ([4] * 21, [11]), ([8], list(range(4, 30))), ([44, 10, 6, 7, 8, 9], [])]
GRAPHS = ("encoder_model", "decoder_model_merged")

Make = Callable[..., Bundle]


def loaded(bundle: Bundle, folder: Path, quantization: str = "float32") -> Onnx:
    return Onnx(folder, quantization, bundle.model.config)


@pytest.mark.parametrize("fields", FIELDS.values(), ids=list(FIELDS))
def test_a_model_computes_the_same_there(make: Make, tmp_path: Path, fields: dict[str, Any]) -> None:
    bundle = make(**fields)
    write(bundle, tmp_path)
    for name in GRAPHS:
        graph = onnx.load(tmp_path / f"{name}.onnx")
        onnx.checker.check_model(graph, full_check=True)
        assert not {node.op_type for node in graph.graph.node} & {"If", "Loop", "Scan"}
    there = loaded(bundle, tmp_path)
    for one, other in zip(read_all(bundle.model, PAIRS, CPU), there.read(PAIRS), strict=True):
        assert one is not None
        assert other == pytest.approx(one.log_probs, abs=1e-4)
    sources = [src for src, _ in PAIRS]
    for beam in (1, 4):
        decode = DecodeConfig(beam_size=beam, max_extra_tokens=5)
        want = search_all(bundle.model, sources, decode, CPU, longest=40)
        found = there.search(
            [Segment(ids=ids) for ids in sources], SearchSettings(decode=decode, longest=40)
        ).hypotheses
        assert [one[0].ids for one in found] == [one[0].ids for one in want]
        assert [one[0].score for one in found] == pytest.approx([one[0].score for one in want], abs=1e-4)


@pytest.mark.parametrize(("batch", "src", "tgt"), [(1, 1, 1), (1, 2, 7), (3, 7, 5), (5, 13, 1), (2, 300, 20)])
def test_any_batch_and_length_in_one_go_and_token_by_token(
    make: Make, tmp_path: Path, batch: int, src: int, tgt: int
) -> None:
    bundle = make(norm="pre")
    write(bundle, tmp_path)
    there = loaded(bundle, tmp_path)
    chance = torch.Generator().manual_seed(batch)
    ids = torch.randint(4, 200, (batch, src), generator=chance)
    ids[:, -1] = 3
    if batch > 1:
        ids[0, src // 2 :] = 0  # padding
    tgt_in = torch.randint(4, 200, (batch, tgt), generator=chance)
    with torch.inference_mode():
        want = bundle.model(ids, tgt_in)
    torch.testing.assert_close(there(ids, tgt_in), want, atol=1e-4, rtol=0)
    state = there.start(ids)
    for t in range(tgt):
        logits, state = there.step(state, tgt_in[:, t])
        torch.testing.assert_close(logits, want[:, t], atol=1e-4, rtol=0)


def test_names_are_those_of_optimum(make: Make, tmp_path: Path) -> None:
    write(make(), tmp_path)
    sessions = [onnxruntime.InferenceSession(tmp_path / f"{name}.onnx") for name in GRAPHS]
    names = [[one.name for one in session.get_inputs()] for session in sessions]
    keys = [f"{i}.{side}.{kind}" for i in (0, 1) for side in ("decoder", "encoder") for kind in ("key", "value")]
    assert names[0] == ["input_ids", "attention_mask"]
    past = [f"past_key_values.{key}" for key in keys]
    assert names[1] == ["input_ids", "encoder_attention_mask", "encoder_hidden_states", *past]
    assert [one.name for one in sessions[0].get_outputs()] == ["last_hidden_state"]
    assert [one.name for one in sessions[1].get_outputs()] == ["logits", *(f"present.{key}" for key in keys)]
    shape = next(one.shape for one in sessions[1].get_inputs() if one.name.endswith("0.decoder.key"))
    assert shape == ["batch_size", 3, "past_decoder_sequence_length", 8]
    about = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert (about["model_type"], about["decoder_start_token_id"], about["eos_token_id"]) == ("marian", 2, 3)


@pytest.mark.parametrize("fields", [{}, FIELDS["modern"]], ids=["the paper's", "modern"])
def test_int8_is_small_and_near(make: Make, tmp_path: Path, fields: dict[str, Any]) -> None:
    bundle = make(**{"d_model": 96, "d_ff": 192, **fields})
    sizes = {}
    for quantization in ("float32", "int8"):
        (tmp_path / quantization).mkdir()
        write(bundle, tmp_path / quantization, quantization)
        sizes[quantization] = sum(path.stat().st_size for path in (tmp_path / quantization).glob("*.onnx"))
    # the tables of positions stay as they are
    table = 0 if fields else 2 * 4 * 1024 * 96
    assert sizes["int8"] - table < 0.4 * (sizes["float32"] - table)
    graph = onnx.load(tmp_path / "int8/decoder_model_merged_quantized.onnx").graph
    kept = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    name = "decoder.layers.0.feed_forward.w_1"
    values, scales = kept[f"{name}.rounded"], kept[f"{name}.scales"]
    matrix = bundle.model.state_dict()[f"{name}.weight"].numpy()
    assert (abs((values.astype(np.float32) - 128) * scales[:, None] - matrix) <= scales[:, None] * 0.501).all()
    there = loaded(bundle, tmp_path / "int8", "int8")
    ours = [one.log_probs for one in read_all(bundle.model, PAIRS, CPU) if one]
    theirs = there.read(PAIRS)
    differences = [abs(a - b) for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=True)]
    assert 0 < max(differences) < 1
    assert sum(differences) / len(differences) < 0.2


def test_two_vocabularies_have_two_models_and_no_tokenizer_json(make: Make, tmp_path: Path) -> None:
    from dragoman.config import TokenizerConfig
    from dragoman.data.tokenizer import Tokenizer

    other = Tokenizer.learn(["other words and more"] * 9, TokenizerConfig(vocab_size=280))
    bundle = make(share_embeddings="none", src_vocab_size=other.vocab_size)._replace(src_tokenizer=other)
    write(bundle, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json", "decoder_model_merged.onnx", "encoder_model.onnx", "generation_config.json", "src.spm",
        "tgt.spm",
    ]  # fmt: skip
    pair = ([5, 15, 4], [300, 4])
    (one,) = read_all(bundle.model, [pair], CPU)
    assert one is not None
    assert loaded(bundle, tmp_path).read([pair])[0] == pytest.approx(one.log_probs, abs=1e-4)


def test_an_export_is_certified(tiny_run: Path, tmp_path: Path, corpus: Any, command: Callable[..., Any]) -> None:
    folder = dragoman.export(tiny_run, "onnx", tmp_path / "there")
    assert {"joint.spm", "tokenizer.json", "manifest.json"} <= {path.name for path in folder.iterdir()}
    found = dragoman.certify(
        tiny_run, folder, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, device="cpu", beam_size=2
    )
    assert (found.export, found.n_identical) == ("onnx", found.n_lines)
    assert found.most_nats < 1e-4
    assert found.why == ()
    done = command(
        "export", tiny_run, "--format", "onnx", "--quantization", "int8", "--out", tmp_path / "small",
        "--check", corpus.valid_src, "--require", "nats=1", "--device", "cpu",
    )  # fmt: skip
    assert done.status == 0, done.error
    assert "B: onnx, int8" in done.out.decode()
    again = dragoman.export(tiny_run, "onnx", tmp_path / "again")
    for name in GRAPHS:
        assert (folder / f"{name}.onnx").read_bytes() == (again / f"{name}.onnx").read_bytes()


REFUSED: list[tuple[dict[str, Any], str]] = [
    (dict(n_encoder_layers=0), "it has no model without encoder"),
    (dict(n_decoder_layers=0), "it has no model without decoder"),
    (dict(architecture="gru"), "it has Transformers only, and here model.architecture is gru"),
    (dict(src_vocab_size=10**6, tgt_vocab_size=10**6, d_model=1023, n_heads=3, positions="learned"), "more than 2 GiB"),
]


def test_a_translation_is_no_longer_than_the_table_of_positions(make: Make, tmp_path: Path) -> None:
    bundle = make(positions="learned")
    assert bundle.config.data.max_tokens + bundle.config.decode.max_extra_tokens > SIZES["max_len"]
    write(bundle, tmp_path)
    generation = json.loads((tmp_path / "generation_config.json").read_text(encoding="utf-8"))
    assert generation["max_length"] == SIZES["max_len"]


def test_an_import_of_an_export_says_that_it_is_onnx(tiny_run: Path, tmp_path: Path) -> None:
    folder = dragoman.export(tiny_run, "onnx", tmp_path / "there")
    graphs = r"\(decoder_model_merged.onnx, encoder_model.onnx\)"
    with pytest.raises(BundleError, match=rf"there: is a model of ONNX {graphs}, which cannot be imported"):
        dragoman.import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("fields", "reason"), REFUSED)
def test_what_it_cannot_hold_is_refused_in_one_line(fields: dict[str, Any], reason: str) -> None:
    sizes = {} if "architecture" in fields else SIZES
    config = ModelConfig(**{"src_vocab_size": 9, "tgt_vocab_size": 9, **sizes, **fields})
    assert reason in why_not(config)
    assert "\n" not in why_not(config)


def test_a_damaged_model_is_refused(make: Make, tmp_path: Path) -> None:
    bundle = make()
    with torch.no_grad():
        bundle.model.encoder.layers[0].feed_forward.w_1.weight[0, 0] = torch.nan
    with pytest.raises(BundleError, match=r"encoder.layers.0.feed_forward.w_1.weight holds values that are not finite"):
        write(bundle, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_package_it_is_named(make: Make, tiny_run: Path, tmp_path: Path, monkeypatch: Any) -> None:
    folder = dragoman.export(tiny_run, "onnx", tmp_path / "there")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "text").write_text("x\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="comparing an export to ONNX needs onnxruntime"):
        dragoman.certify(tiny_run, folder, src=tmp_path / "text", quiet=True, device="cpu")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError, match="writing the format of ONNX needs onnx"):
        check("onnx", make().model.config, "float32")


def test_it_says_what_it_cannot_do(tiny_run: Path) -> None:
    bundle = load_bundle(tiny_run)
    models = Models((bundle,))
    assert Onnx.obstacle(models, Needs()) == ""
    assert Onnx.obstacle(models, Needs(alignments=True)) == "alignments"
    assert Onnx.obstacle(Models((bundle, bundle)), Needs()) == "an ensemble"
