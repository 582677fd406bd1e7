"""Our exports as transformers, CTranslate2 and ONNX Runtime read them, and their models as we import them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

import dragoman
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig
from dragoman.decoding.batched_search import search_all
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.decoding.scoring import read_all

Suite = Callable[[str, int], Any]

PLAIN = dict(beam_size=1, guard=False)
CPU = torch.device("cpu")
N = 20
"""Lines of the toy language's validation text."""


def pairs_of(bundle: Bundle, corpus: Any) -> list[tuple[list[int], list[int]]]:
    """The ids of the validation text, both sides, without eos."""
    src = bundle.src_tokenizer.encode(corpus.valid_src.read_text().splitlines())
    return list(zip(src, bundle.tgt_tokenizer.encode(corpus.valid_tgt.read_text().splitlines()), strict=True))


def log_probs(bundle: Bundle, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
    """Our log-probability of each pair, eos included."""
    return [read.log_prob for read in read_all(bundle.model, pairs, CPU) if read is not None]


def torch_log_prob(logits: Any, ids: Sequence[int]) -> float:
    """Of ids, by logits ``(T, V)``."""
    return float(torch.as_tensor(logits).log_softmax(-1).gather(-1, torch.tensor(ids)[:, None]).sum())


# --- CTranslate2 and ONNX Runtime -------------------------------------------------------------------------------------


def test_ctranslate2_reads_our_export(suite: Suite, tiny_run: Path, tmp_path: Path, corpus: Any) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    values, bundle = suite("ctranslate2-ours", 2 * N), load_bundle(tiny_run)
    folder = dragoman.export(tiny_run, "ctranslate2", tmp_path / "there")
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    pairs = pairs_of(bundle, corpus)
    src = [bundle.src_tokenizer.pieces(ids) for ids, _ in pairs]
    scored = translator.score_batch(src, [bundle.tgt_tokenizer.pieces(ids) for _, ids in pairs])
    for read, expected in zip(log_probs(bundle, pairs), scored, strict=True):
        values.near("log-probability", read, sum(expected.log_probs), 1e-4)
    lines = corpus.valid_src.read_text().splitlines()
    translations = dragoman.Translator.load(tiny_run, "cpu").translate(lines, **PLAIN)
    for translation, expected in zip(translations, translator.translate_batch(src, beam_size=1), strict=True):
        ids = [bundle.tgt_tokenizer.pieces([i])[0] for i in bundle.tgt_tokenizer.encode([translation.text])[0]]
        values.equal("greedy", ids, expected.hypotheses[0])


def test_onnx_runtime_reads_our_export(suite: Suite, tiny_run: Path, tmp_path: Path, corpus: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    values, bundle = suite("onnxruntime", N), load_bundle(tiny_run)
    folder = dragoman.export(tiny_run, "onnx", tmp_path / "there")
    encoder, decoder = (
        runtime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
        for name in ("encoder_model", "decoder_model_merged")
    )
    pairs = pairs_of(bundle, corpus)
    for (src, tgt), read in zip(pairs, log_probs(bundle, pairs), strict=True):
        ids = np.array([[*src, 3]])
        given = {"attention_mask": np.ones_like(ids)}
        (memory,) = encoder.run(None, {"input_ids": ids, **given})
        feeds = {"input_ids": np.array([[2, *tgt]]), "encoder_attention_mask": given["attention_mask"]}
        feeds["encoder_hidden_states"] = memory
        for part in decoder.get_inputs():  # nothing is remembered yet
            if part.name.startswith("past_key_values"):
                _, heads, _, width = part.shape
                feeds[part.name] = np.zeros((1, heads, 0, width), np.float32)
        (logits,) = decoder.run(["logits"], feeds)
        values.near("log-probability", read, torch_log_prob(logits[0], [*tgt, 3]), 1e-4)


# --- transformers -----------------------------------------------------------------------------------------------------

quiet = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")


def transformers_of() -> Any:
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@torch.inference_mode()
def expect_what_transformers_reads(values: Any, folder: Path, bundle: Bundle, corpus: Any) -> None:
    """Ids, log-probabilities and greedy translations of the validation text."""
    transformers = transformers_of()
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    start = model.config.decoder_start_token_id
    lines, references = (path.read_text().splitlines() for path in (corpus.valid_src, corpus.valid_tgt))
    pairs = pairs_of(bundle, corpus)
    settings = SearchSettings(decode=DecodeConfig(beam_size=1, max_extra_tokens=10))
    greedy = search_all(bundle.model, [Segment(ids=ids) for ids, _ in pairs], settings, CPU).hypotheses
    read = log_probs(bundle, pairs)
    for line, reference, (ids, _), found, (best,) in zip(lines, references, pairs, read, greedy, strict=True):
        src, tgt = tokenizer(line)["input_ids"], tokenizer(text_target=reference)["input_ids"]
        pieces = tokenizer.convert_ids_to_tokens(src[:-1])
        values.equal((line, "pieces"), bundle.src_tokenizer.pieces(ids), pieces)
        logits = model(input_ids=torch.tensor([src]), decoder_input_ids=torch.tensor([[start, *tgt[:-1]]])).logits[0]
        values.near((line, "log-probability"), found, torch_log_prob(logits, tgt), 1e-4)
        most = len(ids) + 9  # one more, and ours would have to end
        generated = model.generate(torch.tensor([src]), num_beams=1, max_new_tokens=most)[0, 1:].tolist()
        generated = generated[: generated.index(tgt[-1])] if tgt[-1] in generated else generated
        values.equal((line, "greedy"), bundle.tgt_tokenizer.pieces(best.ids)[:most],
                     tokenizer.convert_ids_to_tokens(generated))  # fmt: skip


@quiet
@pytest.mark.foreign
def test_transformers_reads_our_export(suite: Suite, tiny_run: Path, tmp_path: Path, corpus: Any) -> None:
    values = suite("huggingface-ours", 3 * N)
    folder = dragoman.export(tiny_run, "huggingface", tmp_path / "there")
    expect_what_transformers_reads(values, folder, load_bundle(tiny_run), corpus)


def marian_of_transformers(folder: Path, corpus: Any) -> Path:
    """A folder as those of OPUS-MT, with random weights."""
    transformers = transformers_of()
    folder.mkdir()
    proto = io.BytesIO()
    lines = corpus.src.read_text().splitlines() + corpus.tgt.read_text().splitlines()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=proto,
        vocab_size=150,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(proto.getvalue())
    cut = sentencepiece.SentencePieceProcessor(model_proto=proto.getvalue())
    pieces = [cut.id_to_piece(i) for i in range(3, cut.get_piece_size())]
    random.Random(1).shuffle(pieces)
    pieces = ["</s>", "<unk>", *pieces, "<pad>"]
    pad = len(pieces) - 1
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    torch.manual_seed(1)
    model = transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=len(pieces), decoder_vocab_size=len(pieces), d_model=32, encoder_layers=2, decoder_layers=2,
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
        model.final_logits_bias[0, [1, pad]] = -100.0  # neither unk nor pad is ever likely
    model.generation_config = transformers.GenerationConfig(
        pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, bad_words_ids=[[pad]]
    )
    model.save_pretrained(folder)
    about = dict(tokenizer_class="MarianTokenizer", source_lang="en", target_lang="de")
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


@quiet
@pytest.mark.foreign
def test_a_model_of_transformers_comes_in(suite: Suite, tmp_path: Path, corpus: Any) -> None:
    values = suite("huggingface-theirs", 3 * N)
    folder = marian_of_transformers(tmp_path / "there", corpus)
    run = dragoman.import_model(folder, tmp_path / "run")
    expect_what_transformers_reads(values, folder, load_bundle(run), corpus)


ORDERS = {
    "no_repeat_ngram_size": 2,
    "repetition_penalty": 1.5,
    "forced_bos_token_id": 7,
    "bad_words_ids": [[5], [9, 7]],
}


@quiet
@pytest.mark.foreign
def test_the_search_that_a_model_of_transformers_orders_is_done_or_refused(
    suite: Suite, tmp_path: Path, corpus: Any
) -> None:
    """A setting that would choose other translations is kept, or its name is in the refusal."""
    values = suite("huggingface-orders", len(ORDERS))
    plain = marian_of_transformers(tmp_path / "there", corpus)
    path = plain / "generation_config.json"
    generation = json.loads(path.read_text(encoding="utf-8"))
    for setting, order in ORDERS.items():
        path.write_text(json.dumps({**generation, setting: order}), encoding="utf-8")
        try:
            run = dragoman.import_model(plain, tmp_path / setting)
        except dragoman.DragomanError as error:
            values.equal(setting, setting in str(error), True)
        else:
            values.equal(setting, ours_and_theirs(run, plain, corpus), True)


@torch.inference_mode()
def ours_and_theirs(run: Path, folder: Path, corpus: Any) -> bool:
    """True if five lines are translated as transformers does, with what the model orders."""
    transformers = transformers_of()
    lines = corpus.valid_src.read_text().splitlines()[:5]
    model, tokenizer = (
        kind.from_pretrained(folder) for kind in (transformers.AutoModelForSeq2SeqLM, transformers.AutoTokenizer)
    )
    theirs = [
        tokenizer.decode(
            model.generate(**tokenizer(line, return_tensors="pt"), num_beams=1, max_new_tokens=50)[0],
            skip_special_tokens=True,
        )
        for line in lines
    ]
    ours = [translation.text for translation in dragoman.Translator.load(run, "cpu").translate(lines, **PLAIN)]
    return all(one.startswith(other) or other.startswith(one) for one, other in zip(ours, theirs, strict=True))


@quiet
@pytest.mark.foreign
def test_a_model_of_ctranslate2s_converter_comes_in(suite: Suite, tmp_path: Path, corpus: Any) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    from ctranslate2.converters import TransformersConverter

    values = suite("ctranslate2-theirs", N)
    source, there = marian_of_transformers(tmp_path / "source", corpus), tmp_path / "there"
    TransformersConverter(str(source), copy_files=["source.spm", "target.spm"]).convert(str(there))
    bundle = load_bundle(dragoman.import_model(there, tmp_path / "run", src_lang="en", tgt_lang="de"))
    translator = ctranslate2.Translator(str(there), compute_type="float32", intra_threads=1)
    pairs = pairs_of(bundle, corpus)
    scored = translator.score_batch(
        [[*bundle.src_tokenizer.pieces(src), "</s>"] for src, _ in pairs],
        [bundle.tgt_tokenizer.pieces(tgt) for _, tgt in pairs],
    )
    for read, expected in zip(log_probs(bundle, pairs), scored, strict=True):
        values.near("log-probability", read, sum(expected.log_probs), 1e-3)
