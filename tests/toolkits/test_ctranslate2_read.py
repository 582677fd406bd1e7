"""What we write for CTranslate2 and Argos comes back as it was, and so do Marian models that others converted."""

from __future__ import annotations

import json
import math
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

import dragoman
from dragoman.bundle import Bundle, load_bundle, save_bundle
from dragoman.config import Config, DecodeConfig, ModelConfig
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.decoding.scoring import read_all
from dragoman.errors import BundleError
from dragoman.fast.step import FastTransformer
from dragoman.model.embedding import sinusoids
from dragoman.model.transformer import Transformer
from dragoman.model.weights import untied
from dragoman.toolkits.ctranslate2 import search as engine
from model_variants import VARIANTS, fill
from searching import search_all

CPU = torch.device("cpu")
SIZES = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=2, n_decoder_layers=2, max_len=40)
OF_ITS_OWN = {
    "heads of own width": dict(d_k=10, d_v=10),
    "rotary heads of own width": dict(positions="rotary", d_k=6, d_v=6, norm="pre"),
}
FIELDS = {name: OF_ITS_OWN.get(name, fields) for name, fields in VARIANTS.items()
          if fields.get("n_encoder_layers", 2) and "pad_id" not in fields}  # fmt: skip

MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tiny_run: Path, tmp_path: Path) -> MakeRun:
    """A function of fields of the configuration: a run with a random model, in which nothing is 0 or 1."""
    real = load_bundle(tiny_run)

    def make(**fields: Any) -> Path:
        n = real.src_tokenizer.vocab_size
        options = {**SIZES, **fields}
        model = fill(
            Transformer(ModelConfig(src_vocab_size=n, tgt_vocab_size=n, **options)).eval(), seed=1, spread=0.25
        )
        data = real.config.data.model_copy(update={"src_lang": "en", "tgt_lang": "de"})
        config = Config.from_mapping({**real.config.model_copy(update={"data": data}).model_dump(), "model": options})
        run = tmp_path / "made"
        tokenizers = real.src_tokenizer, real.tgt_tokenizer
        save_bundle(run / "bundle", config, model.config, untied(model), *tokenizers, {"weights": "random"})
        return run

    return make


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    return dict(load_bundle(run).model.state_dict())


@pytest.mark.parametrize("fields", FIELDS.values(), ids=list(FIELDS))
def test_our_export_comes_back_bit_for_bit(make_run: MakeRun, tmp_path: Path, fields: dict[str, Any]) -> None:
    run = make_run(**fields)
    again = dragoman.import_model(dragoman.export(run, "ctranslate2", tmp_path / "there"), tmp_path / "again")
    one, other = load_bundle(run), load_bundle(again)
    assert {**one.model.config.model_dump(), "max_len": 0, "dropout": 0} == {
        **other.model.config.model_dump(), "max_len": 0, "dropout": 0,
    }  # fmt: skip
    torch.testing.assert_close(dict(other.model.state_dict()), dict(one.model.state_dict()), rtol=0, atol=0)
    texts = ["a dog 日本", "", "two  spaces "]
    assert other.src_tokenizer.encode(texts) == one.src_tokenizer.encode(texts)
    assert (other.config.data.src_lang, other.config.data.tgt_lang) == ("en", "de")


ROUNDING = {
    "float16": (2**-11, 2**-11), "bfloat16": (2**-8, 2**-8), "int8": (1 / 253, 0), "int8_float32": (1 / 253, 0),
    "int8_float16": (1 / 253, 2**-11), "int8_bfloat16": (1 / 253, 2**-8),
}  # fmt: skip
"""By how much a matrix and a vector may differ: half a step of 127, or half of the last bit."""


@pytest.mark.parametrize("quantization", ROUNDING)
def test_rounded_numbers_come_back_within_their_rounding(make_run: MakeRun, tmp_path: Path, quantization: str) -> None:
    run = make_run()
    folder = dragoman.export(run, "ctranslate2", tmp_path / "there", quantization)
    again = dragoman.import_model(folder, tmp_path / "again")
    ours, theirs = weights_of(run), weights_of(again)
    matrices, rest = ROUNDING[quantization]  # of the largest of a row
    for name, one in ours.items():
        limit = (matrices if one.dim() == 2 else rest) * one.abs().amax(-1, keepdim=True)
        assert bool(((theirs[name] - one).abs() <= limit + 1e-7).all()), name
    assert load_bundle(again).manifest["imported"]["rounded_to"] == quantization.split("_")[0]
    assert load_bundle(again).model.config.positions == "sinusoidal"


def test_int16_is_multiplied_out(make_run: MakeRun, tmp_path: Path) -> None:
    from dragoman.toolkits.ctranslate2.write import specification
    from dragoman.toolkits.writing import weights_of as all_weights

    run = make_run()
    bundle = load_bundle(run)
    folder = dragoman.export(run, "ctranslate2", tmp_path / "there")
    spec = specification(bundle.model.config, all_weights(bundle), 64)
    pieces = bundle.src_tokenizer.pieces(range(bundle.src_tokenizer.vocab_size))
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize("int16")
    (tmp_path / "int16").mkdir()
    spec.save(str(tmp_path / "int16"))
    shutil.copy(tmp_path / "int16/model.bin", folder)
    (folder / "manifest.json").unlink()
    again = dragoman.import_model(folder, tmp_path / "again")
    ours, theirs = weights_of(run), weights_of(again)
    step = max(float(one.abs().max()) for one in ours.values()) / 2**10  # of the whole matrix, there queries to values
    for name, one in ours.items():
        assert float((theirs[name] - one).abs().max()) <= (step / 2 * 1.01 if one.dim() == 2 else 0), name
    assert load_bundle(again).manifest["imported"]["rounded_to"] == "int16"


def test_two_vocabularies_and_learned_positions(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(share_embeddings="none", positions="learned", generator_bias=True)
    bundle = load_bundle(run)
    from dragoman.config import TokenizerConfig
    from dragoman.data.tokenizer import Tokenizer

    other = Tokenizer.learn(["other words and more"] * 9, TokenizerConfig(vocab_size=280))
    config = bundle.model.config.model_copy(update={"src_vocab_size": other.vocab_size})
    model = fill(Transformer(config).eval(), seed=2, spread=0.25)
    two = tmp_path / "two"
    save_bundle(two / "bundle", bundle.config, config, untied(model), other, bundle.tgt_tokenizer, {"weights": "x"})
    again = dragoman.import_model(dragoman.export(two, "ctranslate2", tmp_path / "there"), tmp_path / "again")
    torch.testing.assert_close(weights_of(again), weights_of(two), rtol=0, atol=0)
    found = load_bundle(again)
    assert found.src_tokenizer.encode(["other words"]) == other.encode(["other words"])
    assert found.model.config.max_len == 40
    assert not found.config.data.tokenizer.joint


def test_two_equal_lists_are_one(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    folder = dragoman.export(run, "ctranslate2", tmp_path / "there")
    (folder / "manifest.json").unlink()
    for side in ("source", "target"):
        shutil.copy(folder / "shared_vocabulary.json", folder / f"{side}_vocabulary.json")
    (folder / "shared_vocabulary.json").unlink()
    again = load_bundle(dragoman.import_model(folder, tmp_path / "again"))
    assert (again.model.config.share_embeddings, again.config.data.tokenizer.joint) == ("all", True)
    torch.testing.assert_close(dict(again.model.state_dict()), weights_of(run), rtol=0, atol=0)


@pytest.mark.parametrize("fields", [{}, dict(activation="swiglu", norm="pre")], ids=["as in the paper", "gated"])
def test_sines_first_reorder_the_channels_of_every_tensor(
    make_run: MakeRun, tmp_path: Path, fields: dict[str, Any]
) -> None:
    wanted = {name: tensor.clone() for name, tensor in weights_of(make_run(**fields)).items()}
    bundle = load_bundle(make_run(positions="learned", **fields))
    d_model, max_len = bundle.model.config.d_model, bundle.model.config.max_len
    sines_first = torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))
    for name, tensor in bundle.model.state_dict().items():
        if "positions" in name:
            tensor.copy_(sinusoids(0, max_len, d_model)[:, sines_first])
        elif ".w_o." in name or ".w_2." in name or "norm" in name:  # written to the residual stream: rows
            tensor.copy_(wanted[name][sines_first])
        elif tensor.dim() == 2:  # read from it: columns
            tensor.copy_(wanted[name][:, sines_first])
        else:
            tensor.copy_(wanted[name])
    tokenizers = bundle.src_tokenizer, bundle.tgt_tokenizer
    other = tmp_path / "other/bundle"
    save_bundle(other, bundle.config, bundle.model.config, untied(bundle.model), *tokenizers, {"weights": "random"})
    again = dragoman.import_model(dragoman.export(other.parent, "ctranslate2", tmp_path / "there"), tmp_path / "again")
    assert load_bundle(again).model.config.positions == "sinusoidal"
    torch.testing.assert_close(weights_of(again), wanted, rtol=0, atol=0)


def opus_folder(tmp_path: Path, corpus: Any, **changes: Any) -> Path:
    """A Marian model made by transformers, and converted by CTranslate2's own converter."""
    import random

    import sentencepiece

    transformers = pytest.importorskip("transformers")
    from ctranslate2.converters import TransformersConverter

    folder = tmp_path / "marian"
    folder.mkdir()
    pieces: set[str] = set()
    for name, path in (("source", corpus.src), ("target", corpus.tgt)):
        sentencepiece.SentencePieceTrainer.train(
            input=str(path), model_prefix=str(folder / name), vocab_size=120, hard_vocab_limit=False, minloglevel=2
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        one = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
        pieces |= {one.id_to_piece(i) for i in range(3, one.get_piece_size())}
    listed = sorted(pieces)
    random.Random(1).shuffle(listed)
    listed = ["</s>", "<unk>", *listed, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(listed)}), encoding="utf-8")
    pad = len(listed) - 1
    torch.manual_seed(1)
    model = transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=len(listed), decoder_vocab_size=len(listed), d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
        activation_function="swish", scale_embedding=True, max_position_embeddings=128, pad_token_id=pad,
        eos_token_id=0, bos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0,
    )).eval()  # fmt: skip
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(1.0 if name.endswith("norm.weight") else 0.0, 0.3)
        model.get_encoder().embed_tokens.weight[pad] = 0
        model.final_logits_bias.normal_(0.0, 0.5)
    model.save_pretrained(folder)
    about = dict(tokenizer_class="MarianTokenizer", source_lang="en", target_lang="de")
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    converted = tmp_path / "converted"
    TransformersConverter(str(folder), copy_files=["source.spm", "target.spm"]).convert(str(converted))
    return converted


@pytest.mark.filterwarnings("ignore")
def test_a_marian_model_that_others_converted(tmp_path: Path, corpus: Any) -> None:
    folder = opus_folder(tmp_path, corpus)
    run = dragoman.import_model(folder, tmp_path / "run", src_lang="en", tgt_lang="de")
    bundle = load_bundle(run)
    assert bundle.model.config.positions == "sinusoidal"  # sines first there: channels are reordered
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    lines = corpus.valid_src.read_text().splitlines()[:8]
    known = set(json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8")))
    src = bundle.src_tokenizer.encode(lines)
    tgt = [ids[:7] for ids in bundle.tgt_tokenizer.encode(corpus.valid_tgt.read_text().splitlines()[:8])]
    pairs = [(s, t) for s, t in zip(src, tgt, strict=True)
             if known.issuperset(bundle.src_tokenizer.pieces(s) + bundle.tgt_tokenizer.pieces(t))]  # fmt: skip
    assert len(pairs) > 4
    theirs = translator.score_batch(
        [[*bundle.src_tokenizer.pieces(s), "</s>"] for s, _ in pairs],
        [bundle.tgt_tokenizer.pieces(t) for _, t in pairs],
    )
    for one, other in zip(read_all(bundle.model, pairs, CPU), theirs, strict=True):
        assert one is not None
        assert other.log_probs == pytest.approx(one.log_probs, abs=1e-4)
    found = translator.translate_batch(
        [[*bundle.src_tokenizer.pieces(s), "</s>"] for s, _ in pairs], beam_size=1, max_decoding_length=12
    )
    greedy = search_all(bundle.model, [s for s, _ in pairs], DecodeConfig(beam_size=1, max_extra_tokens=30), CPU)
    for hypotheses, other in zip(greedy, found, strict=True):
        assert bundle.tgt_tokenizer.pieces(hypotheses[0].ids)[:12] == other.hypotheses[0][:12]


LINES = ("a dog runs", "the cat sees a dog", "dogs", "a b c d e f g h i j k")


def the_same_there(run: Path, folder: Path) -> None:
    """CTranslate2 itself translates with the folder as the run does: greedy ids, and the log-probabilities of these."""
    bundle = load_bundle(run)
    theirs = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    src = bundle.src_tokenizer.encode(LINES)
    settings = DecodeConfig(beam_size=1, max_extra_tokens=8)
    greedy = [one[0].ids for one in search_all(bundle.model, src, settings, CPU)]
    fast = FastTransformer(bundle.model)
    assert [one[0].ids for one in search_all(fast, src, settings, CPU)] == greedy
    pieces = [bundle.src_tokenizer.pieces(ids) for ids in src]
    for ids, want in zip(pieces, greedy, strict=True):
        found = theirs.translate_batch([ids], beam_size=1, max_decoding_length=len(ids) + 7)[0].hypotheses[0]
        assert found == bundle.tgt_tokenizer.pieces(want)
    given = [bundle.tgt_tokenizer.pieces(ids) for ids in greedy]
    for one, other in zip(
        read_all(bundle.model, [*zip(src, greedy, strict=True)], CPU), theirs.score_batch(pieces, given), strict=True
    ):
        assert one is not None
        assert other.log_probs == pytest.approx(one.log_probs, abs=1e-4)


def test_sources_without_eos_come_in_and_leave_again(make_run: MakeRun, tmp_path: Path, corpus: Any) -> None:
    """As OpenNMT-py has them, and so most packages of Argos Translate."""
    run = make_run(norm="pre", generator_bias=True)
    folder = dragoman.export(run, "ctranslate2", tmp_path / "there")
    configured(folder, add_source_eos=False)
    (folder / "manifest.json").unlink()
    with pytest.raises(AssertionError):  # the run reads the eos
        the_same_there(run, folder)
    again = dragoman.import_model(folder, tmp_path / "again", src_lang="en", tgt_lang="de")
    assert load_bundle(again).config.model.src_eos is False
    the_same_there(again, folder)
    for to in ("ctranslate2", "argos"):
        back = dragoman.export(again, to, tmp_path / to)
        if to == "argos":
            pytest.importorskip("onnx")
            with zipfile.ZipFile(next(back.glob("*.argosmodel"))) as package:
                package.extractall(tmp_path / "installed")
            third = dragoman.import_model(next((tmp_path / "installed").iterdir()), tmp_path / "third")
            torch.testing.assert_close(weights_of(third), weights_of(again), rtol=0, atol=0)
            (back,) = (tmp_path / "installed").glob("*/model")
        assert json.loads((back / "config.json").read_text())["add_source_eos"] is False
        the_same_there(again, back)
    with pytest.raises(dragoman.errors.ConfigError, match=r"model.src_eos = false\); it can be exported --format "):
        dragoman.export(again, "huggingface", tmp_path / "no")
    trace = dragoman.explain(dragoman.Translator.load(again), "a dog runs")
    n = len(load_bundle(again).src_tokenizer.encode(["a dog runs"])[0])
    assert len(trace.src.tokens) == n
    assert {weights.shape[2] for weights in trace.layers("cross")} == {n}
    assert trace.alignment().sum(1) == pytest.approx(1, abs=1e-5)
    assert trace.by_words().alignment().sum(1) == pytest.approx(1, abs=1e-5)
    dragoman.train(
        None, src=corpus.src, tgt=corpus.tgt, valid=(corpus.valid_src, corpus.valid_tgt), out=tmp_path / "tuned",
        from_run=again, quiet=True, overrides=("train.max_steps=2", "train.validate_every=2", "train.save_every=2"),
    )  # fmt: skip
    assert load_bundle(tmp_path / "tuned").config.model.src_eos is False


@pytest.mark.parametrize("kept", [("<unk>", "<pad>"), ("<unk>", "<pad>", "<s>"), ("<unk>",)])
def test_sources_may_lack_bos_and_eos(make_run: MakeRun, tmp_path: Path, kept: tuple[str, ...]) -> None:
    """As in older models of OpenNMT-py: the vocabulary of the sources has no special pieces but unk and padding."""
    from dragoman.toolkits.ctranslate2.write import specification
    from dragoman.toolkits.writing import weights_of as all_weights

    run = make_run(share_embeddings="decoder", src_eos=False)
    bundle = load_bundle(run)
    folder = dragoman.export(run, "ctranslate2", tmp_path / "there")
    pieces = bundle.src_tokenizer.pieces(range(bundle.src_tokenizer.vocab_size))
    rows = [i for i, piece in enumerate(pieces) if i > 3 or piece in kept]
    weights = all_weights(bundle)
    weights["src_embed.weight"] = weights["src_embed.weight"][rows]
    spec = specification(bundle.model.config, weights, 64)
    spec.register_source_vocabulary([pieces[i] for i in rows])
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_eos = False
    spec.config.unk_token = "<unk>"
    spec.validate()
    for path in folder.glob("*.json"):
        path.unlink()
    spec.save(str(folder))
    again = dragoman.import_model(folder, tmp_path / "again")
    assert load_bundle(again).config.model.src_eos is False
    the_same_there(again, folder)
    configured(folder, add_source_eos=True)
    with pytest.raises(BundleError, match="eos_token = '</s>' should be in its vocabulary"):
        dragoman.import_model(folder, tmp_path / "other")


def as_of_2020(body: bytes, without: str = "") -> bytes:
    """A ``model.bin`` as CTranslate2 wrote it before 3.0: revision 4 of its kind in a file of version 5."""
    from dragoman.toolkits.ctranslate2 import model_bin

    _, found, names = model_bin.parse(body)
    once = {"num_heads", "pre_norm", "activation", "embeddings_merge", "alignment_layer", "alignment_heads"}
    older = {}
    for name, one in found.items():
        _, _, rest = name.partition("/")
        if rest == without:
            continue
        if rest in once:
            older[rest] = one
        elif rest not in ("scale_embeddings", "multi_query_attention", "alibi", "scale_alibi",
                          "alibi_use_positive_positions"):  # fmt: skip
            older[name.replace("embeddings_0", "embeddings")] = one
    aliases = {alias: name for alias, name in names.items() if alias != name and not alias.endswith("_scale")}

    def text(name: str) -> bytes:
        return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"

    written = struct.pack("<I", 5) + text("TransformerSpec") + struct.pack("<II", 4, len(older))
    for name, one in older.items():
        shape = one.values.shape
        written += text(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
        written += struct.pack("<BI", model_bin.TYPES.index(one.type), one.values.nbytes) + one.values.tobytes()
    written += struct.pack("<I", len(aliases))
    return written + b"".join(text(alias) + text(name.replace("embeddings_0", "embeddings"))
                              for alias, name in aliases.items())  # fmt: skip


@pytest.mark.parametrize(("quantization", "without"), [("float32", ""), ("int8", ""), ("float32", "activation")])
def test_files_of_before_there_was_a_config_come_in(
    make_run: MakeRun, tmp_path: Path, quantization: str, without: str
) -> None:
    folder = dragoman.export(make_run(norm="pre"), "ctranslate2", tmp_path / "there", quantization)
    (folder / "model.bin").write_bytes(as_of_2020((folder / "model.bin").read_bytes(), without))
    for name in ("config.json", "manifest.json"):
        (folder / name).unlink()
    pieces = json.loads((folder / "shared_vocabulary.json").read_text())
    (folder / "shared_vocabulary.json").unlink()
    (folder / "shared_vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    again = dragoman.import_model(folder, tmp_path / "again")
    assert load_bundle(again).config.model.src_eos is False  # as nothing says that there is one
    the_same_there(again, folder)


def test_a_package_of_argos_comes_back(make_run: MakeRun, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    run = make_run()
    package = dragoman.export(run, "argos", tmp_path / "package.argosmodel")
    again = dragoman.import_model(package, tmp_path / "again")
    torch.testing.assert_close(weights_of(again), weights_of(run), rtol=0, atol=0)
    data = load_bundle(again).config.data
    assert (data.src_lang, data.tgt_lang) == ("en", "de")
    with zipfile.ZipFile(package) as file:
        file.extractall(tmp_path / "installed")
    (folder,) = (tmp_path / "installed").iterdir()
    other = dragoman.import_model(folder, tmp_path / "other")
    assert (again / "bundle/model.safetensors").read_bytes() == (other / "bundle/model.safetensors").read_bytes()


@pytest.mark.parametrize(("to", "name"), [("ctranslate2", "there"), ("argos", "there.argosmodel")])
def test_an_export_comes_back_with_the_search_of_its_run(make_run: MakeRun, tmp_path: Path, to: str, name: str) -> None:
    if to == "argos":
        pytest.importorskip("onnx")
    run = make_run()
    bundle = load_bundle(run)
    decode = DecodeConfig(beam_size=3, length_penalty=1.0, length_penalty_form="power", patience=2.0)
    config = bundle.config.model_copy(update={"decode": decode})
    tokenizers = bundle.src_tokenizer, bundle.tgt_tokenizer
    save_bundle(run / "bundle", config, bundle.model.config, untied(bundle.model), *tokenizers, {"weights": "random"})
    again = dragoman.import_model(dragoman.export(run, to, tmp_path / name), tmp_path / "again")
    assert load_bundle(again).config.decode == decode


def test_a_model_that_does_not_tell_how_to_search_is_named(
    make_run: MakeRun, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = dragoman.export(make_run(), "ctranslate2", tmp_path / "there")
    (folder / "manifest.json").unlink()
    with caplog.at_level("INFO", "dragoman"):
        dragoman.import_model(folder, tmp_path / "again", src_lang="en", tgt_lang="de")
    assert f"{folder}: does not tell how to search: beam_size = 4 and length_penalty = 0.6 (gnmt)" in caplog.text


def test_a_trimmed_import_cuts_its_text_as_before(make_run: MakeRun, tmp_path: Path, corpus: Any) -> None:
    folder = dragoman.export(make_run(), "ctranslate2", tmp_path / "there")
    (tmp_path / "text").write_text("a dog runs\n", encoding="utf-8")
    whole = load_bundle(dragoman.import_model(folder, tmp_path / "whole"))
    small = load_bundle(dragoman.import_model(folder, tmp_path / "small", keep_pieces_of=[tmp_path / "text"]))
    assert small.src_tokenizer.vocab_size < whole.src_tokenizer.vocab_size
    pieces = [one.src_tokenizer.pieces(one.src_tokenizer.encode(["a dog runs"])[0]) for one in (whole, small)]
    assert pieces[0] == pieces[1]


# --- refusals --------------------------------------------------------------------------------------------------------


def configured(folder: Path, **values: Any) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**content, **values}), encoding="utf-8")


def listed_too(folder: Path, *pieces: str) -> None:
    """Other pieces in the place of the last ones."""
    path = folder / "shared_vocabulary.json"
    listed = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([*listed[: -len(pieces)], *pieces]), encoding="utf-8")


def renamed(folder: Path, old: bytes, new: bytes) -> None:
    """Another name, of the same length, for a variable of the file."""
    assert len(old) == len(new)
    body = (folder / "model.bin").read_bytes()
    assert old in body
    (folder / "model.bin").write_bytes(body.replace(old, new))


def numbered(folder: Path, name: str, value: float) -> None:
    """Another number, stored as float32, for a setting of both sides."""
    body = (folder / "model.bin").read_bytes()
    for side in ("encoder", "decoder"):
        whole = f"{side}/{name}".encode()
        place = body.index(struct.pack("<H", len(whole) + 1) + whole + b"\0") + len(whole) + 3
        n_axes, _, n_bytes = struct.unpack_from("<BBI", body, place)
        assert n_axes == 0
        body = body[:place] + struct.pack("<BBIf", 0, 0, 4, value) + body[place + 6 + n_bytes :]
    (folder / "model.bin").write_bytes(body)


def cut(folder: Path, n: int) -> None:
    body = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(body[:n] if n else body + b"x")


def versioned(folder: Path) -> None:
    body = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(struct.pack("<I", 3) + body[4:])


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a list": (lambda f: (f / "shared_vocabulary.json").write_text("{}"), "its vocabulary is damaged"),
    "no list": (lambda f: (f / "shared_vocabulary.json").unlink(), "lacks shared_vocabulary.json, or source_"),
    "a short list": (lambda f: (f / "shared_vocabulary.json").write_text('["a"]'), "start_token = '<s>' should"),
    "a long list": (
        lambda f: (f / "shared_vocabulary.json").write_text(
            json.dumps([*json.loads((f / "shared_vocabulary.json").read_text()), "more"])
        ),
        "rows, its vocabulary more",
    ),
    "a list that was cut off": (
        lambda f: (f / "shared_vocabulary.json").write_text(
            json.dumps(json.loads((f / "shared_vocabulary.json").read_text())[:-1])
        ),
        "src_embed has 400 rows, its vocabulary only 399 pieces: if it was cut off, copy it again",
    ),
    **{
        f"{name} of {value}": (
            lambda f, name=name, value=value: numbered(f, name, value),
            f"(en|de)coder/{name} = {value:g} should be a whole number",
        )
        for name in ("num_heads", "activation") for value in (math.nan, math.inf, 8.5, -2.0)
    },
    "no subwords": (lambda f: (f / "joint.spm").unlink(), "has no SentencePiece models"),
    "an end of which nothing is said": (
        lambda f: configured(f, add_source_eos=False, decoder_start_token="</s>"),
        "nothing says whether sources end with eos",
    ),
    "an end of Pegasus": (
        lambda f: configured(f, add_source_eos=False, decoder_start_token="<pad>", bos_token="<pad>"),
        "decoder_start_token = '<pad>': nothing says whether sources end with eos",
    ),
    "languages of M2M100": (
        lambda f: listed_too(f, "__de__", "__ast__"), "has __ast__, __de__: it translates by language tokens",
    ),
    "languages of NLLB": (lambda f: listed_too(f, "deu_Latn", "zho_Hans"), "deu_Latn, zho_Hans: .* cannot be imported"),
    "languages of mBART": (lambda f: listed_too(f, "de_DE", "en_XX"), "has de_DE, en_XX: it translates by language"),
    "a beginning": (lambda f: configured(f, add_source_bos=True), "add_source_bos = true"),
    "no start": (lambda f: configured(f, decoder_start_token=None), "decoder_start_token = None should be"),
    "no config": (lambda f: (f / "config.json").unlink(), "config.json: cannot be read"),
    "an old file": (versioned, "its binary version is 3; 4 to 6 can be read"),
    "cut": (lambda f: cut(f, 5000), "or damaged"),
    "cut at once": (lambda f: cut(f, 3), "or damaged"),
    "longer": (lambda f: cut(f, 0), "1 bytes are left over"),
    "an unknown variable": (
        lambda f: renamed(f, b"decoder/layer_1/ffn/layer_norm/beta", b"decoder/layer_1/ffn/layer_norm/zeta"),
        "lacks decoder/layer_1/ffn/layer_norm/beta",
    ),
    "one that is left over": (
        lambda f: renamed(f, b"decoder/scale_alibi", b"decoder/scale_aliba"),
        "has decoder/scale_aliba, which cannot be imported",
    ),
    "another kind": (lambda f: renamed(f, b"TransformerSpec", b"TransformerSpek"), "it is a TransformerSpek"),
    "an epsilon": (lambda f: configured(f, layer_norm_epsilon="x"), "norm_eps"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_imported_is_refused_in_one_line(make_run: MakeRun, tmp_path: Path, name: str) -> None:
    spoil, says = BAD[name]
    folder = dragoman.export(make_run(), "ctranslate2", tmp_path / "there")
    (folder / "manifest.json").unlink()
    spoil(folder)
    with pytest.raises(dragoman.errors.DragomanError, match=says) as refused:
        dragoman.import_model(folder, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def flipped(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: flipped(f / "model.bin"), r"model.bin: damaged \(its SHA-256 is not the manifest's\)"),
        (lambda f: configured(f, unk_token="<s>"), r"config.json: damaged .*; if it was changed on purpose, remove"),
        (lambda f: (f / "joint.spm").unlink(), r"joint.spm: missing from this export"),
        (lambda f: flipped(f / "manifest.json"), r"manifest.json: (the manifest is damaged|not JSON)"),
        (lambda f: (f / "manifest.json").write_text("{"), r"manifest.json: not JSON"),
    ],
    ids=["a bit of the weights", "a setting", "a file less", "a bit of the manifest", "no manifest any more"],
)
def test_an_export_of_ours_that_was_damaged_is_refused(
    make_run: MakeRun, tmp_path: Path, spoil: Callable[[Path], object], says: str
) -> None:
    folder = dragoman.export(make_run(), "ctranslate2", tmp_path / "there")
    assert dragoman.import_model(folder, tmp_path / "whole").is_dir()
    spoil(folder)
    with pytest.raises(dragoman.errors.BundleError, match=says):
        dragoman.import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_manifest_of_another_program_is_left_alone(make_run: MakeRun, tmp_path: Path) -> None:
    folder = dragoman.export(make_run(), "ctranslate2", tmp_path / "there")
    (folder / "manifest.json").write_text('{"name": "a page", "icons": []}', encoding="utf-8")
    assert dragoman.import_model(folder, tmp_path / "run").is_dir()


def repacked(package: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    with zipfile.ZipFile(package) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    change(contents)
    with zipfile.ZipFile(package, "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)


TOP = "translate-en_de-1_0"
BAD_PACKAGES: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "a slip": (lambda c: c.update({"../../out": b"x"}), "names a file outside"),
    "an absolute name": (lambda c: c.update({"/tmp/out": b"x"}), "names a file outside"),
    "a backslash": (lambda c: c.update({TOP + "/model\\..\\out": b"x"}), "names a file outside"),
    "two folders": (lambda c: c.update({"other/metadata.json": b"{}"}), "should hold one folder, and holds 2"),
    "a prefix": (
        lambda c: c.update({f"{TOP}/metadata.json": b'{"target_prefix": "__de__"}'}), "its texts begin with '__de__'",
    ),
    "byte pairs": (
        lambda c: c.update({f"{TOP}/bpe.model": c.pop(f"{TOP}/sentencepiece.model")}), "has subword-nmt's byte pairs",
    ),
    "no subwords": (lambda c: c.pop(f"{TOP}/sentencepiece.model"), "has no sentencepiece.model"),
    "no model": (lambda c: c.pop(f"{TOP}/model/model.bin"), "model.bin: cannot be read"),
    "something else": (lambda c: c.pop(f"{TOP}/metadata.json"), "holds no model that can be imported"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PACKAGES)
def test_bad_packages_are_refused_in_one_line(make_run: MakeRun, tmp_path: Path, name: str) -> None:
    pytest.importorskip("onnx")
    change, says = BAD_PACKAGES[name]
    package = dragoman.export(make_run(), "argos", tmp_path / "deep/down/package.argosmodel")
    repacked(package, change)
    with pytest.raises(BundleError, match=says) as refused:
        dragoman.import_model(package, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "made"]


def test_a_damaged_zip_is_refused(make_run: MakeRun, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    package = dragoman.export(make_run(), "argos", tmp_path / "package.argosmodel")
    body = bytearray(package.read_bytes())
    body[len(body) // 2] ^= 0xFF
    package.write_bytes(body)
    with pytest.raises(BundleError, match=r"cannot be unpacked|damaged"):
        dragoman.import_model(package, tmp_path / "run")
    package.write_bytes(b"PK")
    with pytest.raises(BundleError, match="holds no model that can be imported"):
        dragoman.import_model(package, tmp_path / "run")


def test_the_engine_of_ctranslate2_agrees_with_the_import(make_run: MakeRun, tmp_path: Path) -> None:
    """int8 imported and computed by us in float32 is near what CTranslate2 computes with the same integers."""
    run = make_run()
    folder = dragoman.export(run, "ctranslate2", tmp_path / "there", "int8")
    bundle: Bundle = load_bundle(dragoman.import_model(folder, tmp_path / "again"))
    theirs = engine.CTranslate2(engine.open_folder(folder, "float32"), bundle.src_tokenizer, bundle.tgt_tokenizer, 40)
    pairs = [([9, 7, 30], [5, 31, 8, 10]), ([8], list(range(4, 30)))]
    for one, other in zip(read_all(bundle.model, pairs, CPU), theirs.read(pairs), strict=True):
        assert one is not None
        assert other == pytest.approx(one.log_probs, abs=1e-4)
    settings = SearchSettings(decode=DecodeConfig(beam_size=1, max_extra_tokens=5))
    found = theirs.search([Segment(ids=[9, 7, 30])], settings).hypotheses[0][0]
    want = search_all(bundle.model, [[9, 7, 30]], settings.decode, CPU)[0][0]
    assert found.ids == want.ids
