"""Marian's own files come in: as CTranslate2's converter reads them, but with Marian's positions and epsilon."""

from __future__ import annotations

import io
import json
import math
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import torch
import yaml

import dragoman
from dragoman.bundle import load_bundle
from dragoman.config import DecodeConfig
from dragoman.decoding.scoring import read_all
from dragoman.errors import BundleError
from dragoman.model.transformer import Transformer
from dragoman.toolkits.marian.read import pieces_of_yaml, positions
from dragoman.toolkits.subwords import NEVER
from searching import search_all

CPU = torch.device("cpu")
D, FF, HEADS, DEPTH = 32, 48, 4, 2
Make = Callable[..., Path]


def arrays(n_pieces: tuple[int, int], pre: bool, tied: str, learned: bool = False) -> dict[str, np.ndarray[Any, Any]]:
    """Random arrays under Marian's names, nothing 0 or 1."""
    rng = np.random.default_rng(3)

    def drawn(*shape: int, mean: float = 0.0, spread: float = 0.25) -> np.ndarray[Any, Any]:
        return rng.normal(mean, spread, shape).astype(np.float32)

    found = {}
    if tied == "all":
        found["Wemb"] = drawn(n_pieces[0], D)
    else:
        found["encoder_Wemb"], found["decoder_Wemb"] = drawn(n_pieces[0], D), drawn(n_pieces[1], D)
        if tied == "none":
            found["decoder_ff_logit_out_W"] = drawn(D, n_pieces[1])
    found["decoder_ff_logit_out_b"] = drawn(1, n_pieces[1], spread=0.5)
    ending = "_pre" if pre else ""

    def norm(name: str, end: str) -> None:
        found[f"{name}_ln_scale{end}"], found[f"{name}_ln_bias{end}"] = drawn(1, D, mean=1.0), drawn(1, D)

    for side in ("encoder", "decoder"):
        for i in range(1, DEPTH + 1):
            for attention in ("self", "context")[: 1 if side == "encoder" else 2]:
                for letter in "qkvo":
                    found[f"{side}_l{i}_{attention}_W{letter}"] = drawn(D, D)
                    found[f"{side}_l{i}_{attention}_b{letter}"] = drawn(1, D)
                norm(f"{side}_l{i}_{attention}_Wo", ending)
            found[f"{side}_l{i}_ffn_W1"], found[f"{side}_l{i}_ffn_b1"] = drawn(D, FF), drawn(1, FF)
            found[f"{side}_l{i}_ffn_W2"], found[f"{side}_l{i}_ffn_b2"] = drawn(FF, D), drawn(1, D)
            norm(f"{side}_l{i}_ffn_ffn", ending)
        if pre:
            norm(f"{side}_top", "")
    if learned:
        found["Wpos"] = drawn(60, D)
    return found


@pytest.fixture
def marian(corpus: Any, tmp_path: Path) -> Make:
    """A function that makes a folder as OPUS-MT's: arrays, two models of subwords, vocab.yml, decoder.yml."""

    def make(pre: bool = False, tied: str = "all", learned: bool = False, options: Any = None, **more: Any) -> Path:
        folder = tmp_path / "marian"
        folder.mkdir()
        pieces = []
        for name, path in (("source", corpus.src), ("target", corpus.tgt)):
            model = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(path.read_text().splitlines()), model_writer=model, vocab_size=120,
                hard_vocab_limit=False, minloglevel=2,
            )  # fmt: skip
            (folder / f"{name}.spm").write_bytes(model.getvalue())
            one = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
            pieces.append({one.id_to_piece(i) for i in range(3, one.get_piece_size())})
        joint = tied == "all"
        lists = []
        for own in [pieces[0] | pieces[1]] if joint else pieces:
            listed = sorted({*own, "yes", "1_0", '"', "\\", "'", ":", "~"})  # which YAML takes for something else
            random.Random(1).shuffle(listed)
            lists.append(["</s>", "<unk>", *listed])
        names = ["joint.vocab.yml"] * 2 if joint else ["src.vocab.yml", "tgt.vocab.yml"]
        for name, listed in zip(names, lists, strict=False):
            lines = [f"{json.dumps(piece, ensure_ascii=False)}: {i}" for i, piece in enumerate(listed)]
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        sizes = len(lists[0]), len(lists[-1])
        about = {
            "type": "transformer", "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
            "transformer-ffn-activation": "swish", "transformer-preprocess": "n" if pre else "",
            "transformer-postprocess": "da" if pre else "dan", "transformer-postprocess-top": "n" if pre else "",
            "transformer-postprocess-emb": "d", "transformer-guided-alignment-layer": "last", "enc-depth": DEPTH,
            "dec-depth": DEPTH, "transformer-heads": HEADS, "dim-emb": D, "transformer-ffn-depth": 2,
            "transformer-dim-ffn": FF, "dim-vocabs": list(sizes), "transformer-train-positions": learned,
            **(options or {}),
        }  # fmt: skip
        found = {**arrays(sizes, pre, tied, learned), **more}
        found["special:model.yml"] = np.frombuffer(yaml.safe_dump(about).encode() + b"\0", np.int8)
        np.savez(folder / "model.npz", **found)
        search = {"models": ["model.npz"], "vocabs": names, "beam-size": 6, "normalize": 1}
        (folder / "decoder.yml").write_text(yaml.safe_dump(search), encoding="utf-8")
        return folder

    return make


@pytest.mark.parametrize(
    ("pre", "tied", "learned"),
    [
        (False, "all", False),
        (True, "all", False),
        (False, "decoder", False),
        (False, "none", False),
        (True, "all", True),
    ],
)
def test_it_computes_what_another_reader_of_marian_computes(
    marian: Make, tmp_path: Path, corpus: Any, pre: bool, tied: str, learned: bool
) -> None:
    """CTranslate2's converter, an independent reader: with its positions and epsilon put in, all else is the same.

    With trained positions it scales embeddings too, which Marian does not.
    """
    folder = marian(pre, tied, learned)
    bundle = load_bundle(dragoman.import_model(folder, tmp_path / "run"))
    from ctranslate2.converters import OpusMTConverter

    OpusMTConverter(str(folder)).convert(str(tmp_path / "there"))
    there = ctranslate2.Translator(str(tmp_path / "there"), compute_type="float32", intra_threads=1)
    config = bundle.model.config.model_copy(update={"norm_eps": 1e-5, "scale_embeddings": True})
    model = Transformer(config).eval()
    model.load_state_dict(bundle.model.state_dict())
    if not learned:
        places = np.arange(1024)[:, None] / 10000 ** (np.arange(0, D, 2) / D)
        table = torch.tensor(np.concatenate((np.sin(places), np.cos(places)), 1), dtype=torch.float32)
        for one in (model.src_positions, model.tgt_positions):
            one.weight.data.copy_(table)
    known = {piece for name in folder.glob("*.vocab.yml") for piece in pieces_of_yaml(name.read_text(encoding="utf-8"))}
    lines = [corpus.valid_src.read_text().splitlines()[:12], corpus.valid_tgt.read_text().splitlines()[:12]]
    pairs = [
        (src, tgt[:9])
        for src, tgt in zip(bundle.src_tokenizer.encode(lines[0]), bundle.tgt_tokenizer.encode(lines[1]), strict=True)
        if known.issuperset(bundle.src_tokenizer.pieces(src) + bundle.tgt_tokenizer.pieces(tgt))
    ]
    assert len(pairs) > 5
    theirs = there.score_batch(*(
        [tokenizer.pieces(pair[i]) for pair in pairs]
        for i, tokenizer in enumerate((bundle.src_tokenizer, bundle.tgt_tokenizer))
    ))  # fmt: skip
    for one, other in zip(read_all(model, pairs, CPU), theirs, strict=True):
        assert one is not None
        assert other.log_probs == pytest.approx(one.log_probs, abs=2e-4)
    found = there.translate_batch(
        [bundle.src_tokenizer.pieces(src) for src, _ in pairs], beam_size=1, max_decoding_length=12
    )
    greedy = search_all(model, [src for src, _ in pairs], DecodeConfig(beam_size=1, max_extra_tokens=30), CPU)
    for hypotheses, other in zip(greedy, found, strict=True):
        assert bundle.tgt_tokenizer.pieces(hypotheses[0].ids)[:12] == other.hypotheses[0][:12]


def test_positions_and_epsilon_are_those_of_marian(marian: Make, tmp_path: Path) -> None:
    """``src/tensors/cpu/tensor_operators.cpp``, line by line."""
    bundle = load_bundle(dragoman.import_model(marian(), tmp_path / "run"))
    table = bundle.model.src_positions.weight.detach()
    assert table.shape == (1024, D)
    increment = math.log(10000) / (D / 2 - 1)
    for j in (0, 1, 50, 1023):
        for i in range(D):
            v = j * math.exp((i % (D // 2)) * -increment)
            assert float(table[j, i]) == pytest.approx(math.sin(v) if i < D // 2 else math.cos(v), abs=1e-6)
    assert torch.equal(table, bundle.model.tgt_positions.weight.detach())
    assert bundle.model.config.norm_eps == 1e-6
    assert bundle.model.config.scale_embeddings
    assert not bool(bundle.model.tgt_embed.weight[2].any())  # a translation begins with zeros
    assert bundle.model.generator.bias[2].item() == bundle.model.generator.bias[0].item() == NEVER
    assert positions(3, 2).shape == (3, 2)


def test_an_imported_run_is_an_ordinary_run(marian: Make, tmp_path: Path, corpus: Any) -> None:
    run = dragoman.import_model(marian(), tmp_path / "run", src_lang="en", tgt_lang="de")
    bundle = load_bundle(run)
    decode = bundle.config.decode
    assert (decode.beam_size, decode.length_penalty, decode.length_penalty_form) == (6, 1.0, "power")
    translator = dragoman.Translator.load(run, "cpu")
    text = corpus.valid_src.read_text().splitlines()[0]
    assert translator.score([text], ["x y"])[0].n_tokens > 0
    assert dragoman.explain(translator, text).steps
    there = dragoman.export(run, "ctranslate2", tmp_path / "ct2")
    assert dragoman.certify(run, there, src=corpus.valid_src, quiet=True, device="cpu").most_nats < 1e-3
    again = load_bundle(dragoman.import_model(there, tmp_path / "again"))
    assert torch.equal(again.model.src_positions.weight, bundle.model.src_positions.weight)
    assert again.model.config == bundle.model.config.model_copy(update={"dropout": again.model.config.dropout})
    assert again.config.data.tokenizer.joint


def test_a_file_by_itself_and_a_vocabulary_of_sentencepiece(marian: Make, tmp_path: Path) -> None:
    folder = marian()
    one = dragoman.import_model(folder / "model.npz", tmp_path / "one")
    other = dragoman.import_model(folder, tmp_path / "other")
    assert (one / "bundle/model.safetensors").read_bytes() == (other / "bundle/model.safetensors").read_bytes()
    model = io.BytesIO()  # as Marian trains one
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a dog runs", "a cat sits", "dogs and cats"] * 9), model_writer=model, vocab_size=40,
        hard_vocab_limit=False, minloglevel=2, bos_id=-1, eos_id=0, unk_id=1, pad_id=-1,
    )  # fmt: skip
    (folder / "vocab.spm").write_bytes(model.getvalue())
    (folder / "decoder.yml").write_text("{models: [model.npz], vocabs: [vocab.spm, vocab.spm]}", encoding="utf-8")
    there = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    with pytest.raises(BundleError, match=r"src_embed has [0-9]+ rows, its vocabulary only [0-9]+ pieces"):
        dragoman.import_model(folder, tmp_path / "spm")
    resized(folder, there.get_piece_size())
    bundle = load_bundle(dragoman.import_model(folder, tmp_path / "spm"))
    ours = bundle.src_tokenizer.pieces(bundle.src_tokenizer.encode(["a dog sits"])[0])
    assert ours == there.encode("a dog sits", out_type=str)
    table = np.load(folder / "model.npz")["Wemb"]
    place = bundle.src_tokenizer.encode(["a"])[0][0]
    row = there.piece_to_id(bundle.src_tokenizer.pieces([place])[0])
    np.testing.assert_array_equal(bundle.model.src_embed.weight[place].detach(), table[row])


def test_what_a_vocabulary_has_beyond_the_model_is_left_out(marian: Make, tmp_path: Path) -> None:
    """As ``marian --dim-vocabs`` with a longer list does."""
    folder = marian()
    one = dragoman.import_model(folder, tmp_path / "one")
    lengthened(folder)
    other = dragoman.import_model(folder, tmp_path / "other")
    assert (one / "bundle/model.safetensors").read_bytes() == (other / "bundle/model.safetensors").read_bytes()
    assert (one / "bundle/src.spm").read_bytes() == (other / "bundle/src.spm").read_bytes()


@pytest.mark.parametrize("tied", ["all", "decoder"])
def test_a_piece_beyond_the_model_is_read_as_unknown(marian: Make, tmp_path: Path, tied: str) -> None:
    folder, n = marian(tied=tied), 45
    tables = resized(folder, n)
    bundle = load_bundle(dragoman.import_model(folder, tmp_path / "run"))
    path = folder / ("joint.vocab.yml" if tied == "all" else "tgt.vocab.yml")
    listed = pieces_of_yaml(path.read_text(encoding="utf-8"))
    tokenizer, model = bundle.tgt_tokenizer, bundle.model
    ids = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
    table = tables.get("decoder_Wemb", tables.get("Wemb"))
    assert table is not None
    row = model.tgt_embed.weight.detach()
    beyond = [piece for piece, i in listed.items() if i >= n and piece in ids]
    assert beyond
    for piece, i in listed.items():
        if piece in ids and i > 1:
            np.testing.assert_array_equal(row[ids[piece]], table[i if i < n else 1])
            assert (model.generator.bias[ids[piece]].item() == NEVER) == (i >= n)


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., Path]:
    """A function that makes a folder as ``marian train --model work/m/model.npz --keep-best`` leaves it."""

    def make(vocabularies: tuple[str, ...], relative: bool = False, **search: Any) -> Path:
        work = tmp_path / "work"
        folder = work / "m"
        folder.mkdir(parents=True)
        n_pieces = 0
        for i, name in enumerate(dict.fromkeys(vocabularies)):
            model = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([f"a dog runs {i}", "a cat sits", "dogs and cats"] * 9), model_writer=model,
                vocab_size=40, hard_vocab_limit=False, minloglevel=2, bos_id=-1, eos_id=0, unk_id=1, pad_id=-1,
            )  # fmt: skip
            path = (folder if relative else work) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(model.getvalue())
            n_pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).get_piece_size()
        is_one = len(set(vocabularies)) == 1
        options = {"type": "transformer", "transformer-heads": HEADS, "enc-depth": DEPTH, "dec-depth": DEPTH,
                   "transformer-postprocess": "dan", "transformer-ffn-activation": "relu"}  # fmt: skip
        steps = ["model.iter20.npz", "model.iter40.npz", "model.npz.best-bleu.npz", "model.npz"]
        for n, step in enumerate(steps):
            found = arrays((n_pieces, n_pieces), pre=False, tied="all" if is_one else "decoder")
            found = {name: array + n for name, array in found.items()}
            found["special:model.yml"] = np.frombuffer(yaml.safe_dump(options).encode() + b"\0", np.int8)
            np.savez(folder / step, **found)
            settings = {"relative-paths": relative, "models": [step if relative else f"m/{step}"],
                        "vocabs": list(vocabularies), "beam-size": 7, "normalize": 0.6, "word-penalty": 0,
                        **search}  # fmt: skip
            (folder / f"{step}.decoder.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        np.savez(folder / "model.npz.optimizer.npz", adam_mt=np.ones(7, np.float32), adam_vt=np.ones(7, np.float32))
        (folder / "model.npz.progress.yml").write_text("epochs: 1\nwarmup-start: 0u\n", encoding="utf-8")
        training = {**options, "model": "model.npz" if relative else "m/model.npz", "vocabs": list(vocabularies),
                    "beam-size": 12, "normalize": 0}  # fmt: skip
        (folder / "model.npz.yml").write_text(yaml.safe_dump(training), encoding="utf-8")
        return folder

    return make


def bias_of(run: Path) -> float:
    """A number of the model, from which the step is known that it was read from."""
    return float(load_bundle(run).model.encoder.layers[0].norm1.bias[0].detach())


@pytest.mark.parametrize(
    ("vocabularies", "relative"),
    [
        (("m/v.spm", "m/v.spm"), False),
        (("text/en.spm", "text/de.spm"), False),
        (("v.spm", "v.spm"), True),
        (("../text/en.spm", "../text/de.spm"), True),
    ],
)
def test_the_folder_of_a_training_is_imported_as_it_lies_there(
    trained: Callable[..., Path], tmp_path: Path, vocabularies: tuple[str, str], relative: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    folder = trained(vocabularies, relative)
    with caplog.at_level("INFO"):
        run = dragoman.import_model(folder, tmp_path / "run")
    others = "model.iter20.npz or model.iter40.npz or model.npz.best-bleu.npz"
    assert f"model.npz is imported; to import another step, give {others}" in caplog.text
    decode = load_bundle(run).config.decode
    assert (decode.beam_size, decode.length_penalty, decode.length_penalty_form) == (7, 0.6, "power")
    for n, step in enumerate(("model.iter20.npz", "model.iter40.npz", "model.npz.best-bleu.npz", "model.npz")):
        one = dragoman.import_model(folder / step, tmp_path / step)
        assert bias_of(one) == pytest.approx(bias_of(run) - 3 + n, abs=1e-5)


def test_a_folder_of_a_training_may_be_copied_with_its_vocabulary(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained(("text/en.spm", "text/de.spm"))
    there = tmp_path / "elsewhere"
    (folder.parent / "text").rename(tmp_path / "moved")
    folder.rename(there)
    with pytest.raises(BundleError, match=r"its vocabulary text/en.spm is missing; put en.spm next to the model"):
        dragoman.import_model(there, tmp_path / "run")
    for name in ("en.spm", "de.spm"):
        (tmp_path / "moved" / name).rename(there / name)
    assert dragoman.import_model(there, tmp_path / "run").is_dir()


def digits_of(run: Path) -> tuple[str, ...]:
    """The digits among the subwords of each side: the fixture's vocabularies have 0 and 1."""
    bundle = load_bundle(run)
    sides = (bundle.src_tokenizer, bundle.tgt_tokenizer)
    pieces = ["".join(tokenizer.pieces(range(4, tokenizer.vocab_size))) for tokenizer in sides]
    return tuple("".join(sorted(set("01") & set(text))) for text in pieces)


ONE_NAME = {
    "named from the training": ("en/vocab.spm", "de/vocab.spm"),
    "one in the folder of the training": ("vocab.spm", "de/vocab.spm"),
    "one next to the model": ("m/vocab.spm", "de/vocab.spm"),
    "whole paths": ("/en/vocab.spm", "/de/vocab.spm"),
}


@pytest.mark.parametrize("names", ONE_NAME.values(), ids=ONE_NAME)
@pytest.mark.parametrize("has_stray", [False, True])
def test_two_vocabularies_of_one_file_name_stay_two(
    trained: Callable[..., Path], tmp_path: Path, names: tuple[str, str], has_stray: bool
) -> None:
    """Both were read from the one file of this name that lay next to the model."""
    paths = tuple(f"{tmp_path}{name}" if name.startswith("/") else name for name in names)
    folder = trained(paths)
    if has_stray and names[0] != "m/vocab.spm":
        (folder / "vocab.spm").write_bytes((folder.parent / paths[1]).read_bytes())
    assert digits_of(dragoman.import_model(folder, tmp_path / "run")) == ("0", "1")


@pytest.mark.parametrize("names", ONE_NAME.values(), ids=ONE_NAME)
@pytest.mark.parametrize("n_left", [0, 1])
def test_one_file_next_to_a_moved_model_is_not_taken_for_both_vocabularies(
    trained: Callable[..., Path], tmp_path: Path, names: tuple[str, str], n_left: int
) -> None:
    paths = tuple(f"{tmp_path}{name}" if name.startswith("/") else name for name in names)
    folder = trained(paths)
    contents = [(folder.parent / path).read_bytes() for path in paths]
    for path in paths[n_left:]:
        (folder.parent / path).unlink()
    there = folder.rename(tmp_path / "elsewhere")
    (there / "vocab.spm").write_bytes(contents[0])
    with pytest.raises(BundleError, match=r"have one file name, .*under two names.*into model.npz.decoder.yml"):
        dragoman.import_model(there, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    for name, content in zip(("source.spm", "target.spm"), contents, strict=True):
        (there / name).write_bytes(content)
    (there / "model.npz.decoder.yml").write_text("vocabs: [source.spm, target.spm]", encoding="utf-8")
    assert digits_of(dragoman.import_model(there, tmp_path / "run")) == ("0", "1")


@pytest.mark.parametrize("stray", ["vocab.yml", "vocab.spm"])
def test_a_usual_name_does_not_stand_in_for_a_vocabulary_that_is_missing(
    trained: Callable[..., Path], tmp_path: Path, stray: str
) -> None:
    folder = trained(("text/en.spm", "text/de.spm"))
    (folder.parent / "text/de.spm").unlink()
    (folder / stray).write_bytes((folder.parent / "text/en.spm").read_bytes())
    with pytest.raises(BundleError, match=r"its vocabulary text/de.spm is missing; put de.spm next to the model"):
        dragoman.import_model(folder, tmp_path / "run")


@pytest.mark.parametrize("start", ["", "/"], ids=["named from the training", "whole paths"])
@pytest.mark.parametrize("is_moved", [False, True])
@pytest.mark.parametrize("differs", [False, True])
def test_a_vocabulary_next_to_the_model_comes_first_and_another_one_is_named(
    trained: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture, start: str, is_moved: bool,
    differs: bool,
) -> None:  # fmt: skip
    """A folder that was copied with its vocabularies was read with those of the old place."""
    names = [f"{tmp_path / 'work' if start else ''}{start}{side}.spm" for side in ("en", "de")]
    folder = trained(tuple(names))
    work = folder.parent
    for own, other in (("en", "de"), ("de", "en")):
        (folder / f"{own}.spm").write_bytes((work / f"{other if differs else own}.spm").read_bytes())
    if is_moved:
        folder = folder.rename(work / "final")
    assert digits_of(dragoman.import_model(folder, tmp_path / "run")) == (("1", "0") if differs else ("0", "1"))
    said = [
        f"{folder / 'model.npz'}: its vocabulary is read from {folder / name}, not from {work / name}, which differs"
        for name in ("en.spm", "de.spm")
    ]
    assert [line for line in caplog.messages if "is read from" in line] == (said if differs else [])


@pytest.mark.parametrize("names", [
    ["./v.spm", "v.spm"], ["m/../v.spm", "v.spm"], ["WORK/v.spm", "./v.spm"], ["v.spm"], "v.spm", "WORK/v.spm",
])  # fmt: skip
def test_one_vocabulary_may_be_written_in_several_ways(
    trained: Callable[..., Path], tmp_path: Path, names: list[str] | str
) -> None:
    folder = trained(("v.spm", "v.spm"))
    named = yaml.safe_dump(names).replace("WORK", str(folder.parent))
    for path in folder.glob("*.yml"):
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "vocabs" in settings:
            settings["vocabs"] = yaml.safe_load(named)
            path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    assert digits_of(dragoman.import_model(folder, tmp_path / "run")) == ("0", "0")
    (folder / "v.spm").write_bytes((folder.parent / "v.spm").read_bytes())
    (folder.parent / "v.spm").unlink()
    assert digits_of(dragoman.import_model(folder, tmp_path / "copied")) == ("0", "0")


def test_a_training_vocabulary_may_be_named_by_its_whole_path(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained((str(tmp_path / "voc/v.spm"),) * 2)
    (folder / "model.npz.decoder.yml").unlink()  # the options of the training name it too
    run = dragoman.import_model(folder, tmp_path / "run")
    assert load_bundle(run).config.decode.beam_size == 12


def test_steps_without_the_last_one_are_not_chosen_between(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained(("m/v.spm", "m/v.spm"))
    (folder / "model.npz").unlink()
    says = r"has 3 models \(model.iter20.npz, model.iter40.npz, model.npz.best-bleu.npz\); give the .npz of one"
    with pytest.raises(BundleError, match=says):
        dragoman.import_model(folder, tmp_path / "run")
    for step in ("model.iter20.npz", "model.iter40.npz"):
        (folder / step).unlink()
    assert dragoman.import_model(folder, tmp_path / "run").is_dir()


def test_a_word_penalty_is_refused_by_name(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained(("m/v.spm", "m/v.spm"), **{"word-penalty": 0.3})
    with pytest.raises(BundleError, match=r"word-penalty must be 0 in its decoder.yml, got 0\.3"):
        dragoman.import_model(folder, tmp_path / "run")


def decode_of(run: Path) -> tuple[int, float]:
    decode = load_bundle(run).config.decode
    return decode.beam_size, decode.length_penalty


def test_the_search_is_that_of_the_decoder_and_not_of_the_validation(marian: Make, tmp_path: Path) -> None:
    folder = marian()  # whose decoder.yml has beam 6 and normalize 1
    training = {"beam-size": 12, "normalize": 0, "word-penalty": 0.3, "vocabs": ["joint.vocab.yml"] * 2}
    (folder / "model.npz.yml").write_text(yaml.safe_dump(training), encoding="utf-8")
    with pytest.raises(BundleError, match="word-penalty must be 0"):  # no decoder.yml says otherwise
        dragoman.import_model(folder, tmp_path / "none")
    search = {**yaml.safe_load((folder / "decoder.yml").read_text(encoding="utf-8")), "word-penalty": 0}
    (folder / "decoder.yml").write_text(yaml.safe_dump(search), encoding="utf-8")
    assert decode_of(dragoman.import_model(folder, tmp_path / "run")) == (6, 1.0)
    (folder / "model.npz.decoder.yml").write_text("{beam-size: 3}", encoding="utf-8")
    assert decode_of(dragoman.import_model(folder, tmp_path / "other")) == (3, 1.0)


def test_settings_of_the_search_that_are_missing_are_those_of_marian(
    marian: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = marian()
    (folder / "decoder.yml").write_text("vocabs: [joint.vocab.yml, joint.vocab.yml]", encoding="utf-8")
    with caplog.at_level("INFO"):
        assert decode_of(dragoman.import_model(folder, tmp_path / "run")) == (12, 0.0)
    for name, value in (("beam-size", 12), ("normalize", 0)):
        assert f"its settings lack {name}; Marian's default, {value}, is used" in caplog.text


@pytest.mark.parametrize("value", [True, ["full"], ["topk", 10]])
def test_sampling_is_refused_by_name(trained: Callable[..., Path], tmp_path: Path, value: Any) -> None:
    folder = trained(("m/v.spm", "m/v.spm"), **{"output-sampling": value})
    with pytest.raises(BundleError, match=r"output-sampling must be off in its decoder.yml, got"):
        dragoman.import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_unknown_subwords_are_refused_with_the_option_that_allows_them(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    """Before, the run translated otherwise than the model, and nothing said so."""
    folder = trained(("m/v.spm", "m/v.spm"), **{"allow-unk": True})
    with pytest.raises(BundleError, match=r"allow-unk must be off in its decoder\.yml, got True; .* give --allow-unk"):
        dragoman.import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (folder / "model.npz.decoder.yml").write_text("allow-unk: false", encoding="utf-8")  # it comes last
    run = dragoman.import_model(folder, tmp_path / "run")
    assert dragoman.Translator.load(run).translate(["a"], allow_unk=True)


@pytest.mark.parametrize("value", [False, []])
def test_a_shortlist_and_sampling_that_is_off_pass(
    trained: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture, value: Any
) -> None:
    folder = trained(("m/v.spm", "m/v.spm"), **{"output-sampling": value, "shortlist": ["lex.s2t.gz", 50, 50]})
    with caplog.at_level("INFO"):
        assert dragoman.import_model(folder, tmp_path / "run").is_dir()
    assert "its shortlist is ignored" in caplog.text


@pytest.mark.parametrize("name", ["", "/", "..", "x" * 5000, "a\0b", "/dev/zero"])
def test_a_name_that_is_no_file_is_no_vocabulary(trained: Callable[..., Path], tmp_path: Path, name: str) -> None:
    folder = trained(("m/v.spm", "m/v.spm"))
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump({"vocabs": [name, name]}), encoding="utf-8")
    with pytest.raises(BundleError, match=r"its vocabulary .* is missing"):
        dragoman.import_model(folder, tmp_path / "run")


def test_lines_of_a_vocabulary() -> None:
    text = '"a": 0\n\'it\'\'s\': 1\nyes: 2\n? "b\\"c"\n: 3\n"\\u2581x": 4\n"\\x41": 5\n":": 6\n"\\\\": 7\r\n\n::: 8\n'
    assert pieces_of_yaml(text) == {"a": 0, "it's": 1, "yes": 2, 'b"c': 3, "▁x": 4, "A": 5, ":": 6, "\\": 7, "::": 8}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another model": ({"type": "s2s"}, r"option type must be .*, got 's2s'"),
    "a student": ({"transformer-decoder-autoreg": "rnn"}, r"option transformer-decoder-autoreg must be .*, got 'rnn'"),
    "no projection": ({"transformer-no-projection": True}, r"option transformer-no-projection must be .*, got True"),
    "an activation": ({"transformer-ffn-activation": "gelu"}, "transformer-ffn-activation must be .*'gelu'"),
    "a norm of embeddings": ({"transformer-postprocess-emb": "nd"}, "transformer-postprocess-emb must be .*'nd'"),
    "rms": ({"transformer-postprocess": "dar"}, "transformer-postprocess = 'dar'"),
    "depth": ({"transformer-ffn-depth": 3}, r"option transformer-ffn-depth must be .*, got 3"),
    "tied layers": ({"transformer-tied-layers": [1, 1]}, r"option transformer-tied-layers must be .*, got \[1, 1\]"),
    "backwards": ({"right-left": True}, r"option right-left must be .*, got True"),
    "factors": ({"lemma-dim-emb": -1}, r"option lemma-dim-emb must be .*, got -1"),
    "no depth": ({"enc-depth": "6"}, "option enc-depth = '6' should be a whole number"),
    "more layers": ({"dec-depth": 3}, "lacks decoder_l3_self_Wq"),
    "fewer layers": ({"dec-depth": 1}, "has decoder_l2_context_Wk, .* more, which cannot be imported"),
    "heads": ({"transformer-heads": 5}, "n_heads"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_are_not_held_are_refused_by_name(marian: Make, tmp_path: Path, name: str) -> None:
    options, says = REFUSED[name]
    with pytest.raises(dragoman.errors.DragomanError, match=says) as refused:
        dragoman.import_model(marian(options=options), tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def rewritten(folder: Path, **changes: Any) -> None:
    with np.load(folder / "model.npz") as file:
        content = {name: file[name] for name in file.files}
    content |= changes
    np.savez(folder / "model.npz", **{name: value for name, value in content.items() if value is not None})


def configured(folder: Path, **changes: Any) -> None:
    """Other options of the model; None: without one."""
    with np.load(folder / "model.npz") as file:
        options = yaml.safe_load(file["special:model.yml"].tobytes().rstrip(b"\0")) | changes
    options = {name: value for name, value in options.items() if value is not None}
    rewritten(folder, **{"special:model.yml": np.frombuffer(yaml.safe_dump(options).encode() + b"\0", np.int8)})


def lengthened(folder: Path) -> None:
    """More pieces than the tables have rows."""
    path = folder / "joint.vocab.yml"
    n = len(pieces_of_yaml(path.read_text(encoding="utf-8")))
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"x{i}: {i}\n" for i in range(n, n + 9000))


def resized(folder: Path, n: int) -> dict[str, np.ndarray[Any, Any]]:
    """Make the model one of the first ``n`` pieces, and return its tables as they were before."""
    with np.load(folder / "model.npz") as file:
        tables = {name: file[name] for name in ("Wemb", "decoder_Wemb", "encoder_Wemb") if name in file.files}
        bias = file["decoder_ff_logit_out_b"]
    rewritten(folder, decoder_ff_logit_out_b=bias[:, :n], **{name: table[:n] for name, table in tables.items()})
    configured(folder, **{"dim-vocabs": [n, n]})
    return tables


def pickled(folder: Path) -> None:
    class Bad:
        def __reduce__(self) -> Any:
            return (Path.touch, (folder / "touched",))

    rewritten(folder, Wemb=np.array([Bad()], dtype=object))


def cut(folder: Path) -> None:
    body = (folder / "model.npz").read_bytes()
    (folder / "model.npz").write_bytes(body[:-3000])


def boasting(folder: Path) -> None:
    """An array that says it is larger than any memory."""
    head = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**18)}
    np.lib.format.write_array_header_1_0(head, shape)
    with zipfile.ZipFile(folder / "model.npz", "w") as package:
        package.writestr("Wemb.npy", head.getvalue())


def emptied(folder: Path, name: str) -> None:
    with zipfile.ZipFile(folder / "model.npz", "w") as package:
        package.writestr(name, b"x")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "pickled": (pickled, "cannot be read as arrays of numbers"),
    "cut": (cut, "cannot be read as arrays|holds no model"),
    "larger than memory": (boasting, "needs more memory than there is"),
    "another's subwords": (
        lambda f: (f / "joint.vocab.yml").write_text("\n".join(f"{x}: {i}" for i, x in enumerate(
            ["<unk>", "</s>", *(f"x{i}" for i in range(50))]))), "it belongs to another model",
    ),
    "no arrays": (lambda f: emptied(f, "special:model.yml.npy"), "should hold options"),
    "a shape": (lambda f: rewritten(f, encoder_l1_self_Wq=np.ones((D, 7), np.float32)), "configuration says"),
    "a type": (lambda f: rewritten(f, Wemb=np.ones((200, D), np.int64)), "Wemb must be a matrix of floats, got int64"),
    "no number": (
        lambda f: rewritten(f, encoder_l1_self_bq=np.full((1, D), np.nan, np.float32)), "values that are not finite",
    ),
    "options": (
        lambda f: rewritten(f, **{"special:model.yml": np.frombuffer(b"[1]\0", np.int8)}), "should hold options",
    ),
    "no options": (lambda f: rewritten(f, **{"special:model.yml": None}), "holds no special:model.yml"),
    "no vocabulary": (lambda f: (f / "joint.vocab.yml").unlink(), "its vocabulary joint.vocab.yml is missing"),
    "a damaged vocabulary": (lambda f: (f / "joint.vocab.yml").write_text("x"), "not a vocabulary of Marian"),
    "an id twice": (lambda f: (f / "joint.vocab.yml").write_text("a: 0\nb: 0\n"), "the ids 0 to 1, once each"),
    "no end": (lambda f: (f / "joint.vocab.yml").write_text("<unk>: 0\n"), "has no </s>"),
    "a long vocabulary": (
        lambda f: (lengthened(f), configured(f, **{"dim-vocabs": None})), "rows, its vocabulary more",
    ),
    "a vocabulary that was cut off": (
        lambda f: (f / "joint.vocab.yml").write_text((f / "joint.vocab.yml").read_text().rpartition('\n"')[0]),
        "src_embed has [0-9]+ rows, its vocabulary only [0-9]+ pieces: if it was cut off, copy it again",
    ),
    "sizes of another model": (
        lambda f: configured(f, **{"dim-vocabs": [50, 50]}), "src_embed has [0-9]+ rows, its vocabulary only 50 pieces",
    ),
    "a size that is no number": (
        lambda f: configured(f, **{"dim-vocabs": ["90", 90]}), "option dim-vocabs = '90' should be a whole number",
    ),
    "sizes that are no list": (lambda f: configured(f, **{"dim-vocabs": 90}), "dim-vocabs = 90 should be a list"),
    "no subwords": (lambda f: (f / "source.spm").unlink(), "source.spm: cannot be read"),
    "an ensemble": (
        lambda f: (f / "decoder.yml").write_text("models: [model.npz, b.npz]"),
        r"has 2 models \(model.npz, b.npz\); give the .npz of one",
    ),
    "no YAML": (lambda f: (f / "decoder.yml").write_text("a: [", encoding="utf-8"), "decoder.yml:1: not valid YAML"),
    "one that leads out": (
        lambda f: (f / "decoder.yml").write_text("{models: [../other/model2.npz]}"), "model2.npz: cannot be read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_damaged_and_hostile_files_are_refused_in_one_line(marian: Make, tmp_path: Path, name: str) -> None:
    spoil, says = BAD[name]
    folder = marian()
    spoil(folder)
    with pytest.raises(dragoman.errors.DragomanError, match=says) as refused:
        dragoman.import_model(folder, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()
    assert not (folder / "touched").exists()


def test_another_zip_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(BundleError, match="holds no model that can be imported"):
        dragoman.import_model(tmp_path / "other.npz", tmp_path / "run")
