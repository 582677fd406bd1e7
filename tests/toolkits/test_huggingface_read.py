"""Models that transformers itself has made come in: the same ids, logits and translations, and an ordinary run."""

from __future__ import annotations

import io
import json
import logging
import os
import random
import shutil
import unicodedata
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import dragoman
from dragoman.bundle import load_bundle
from dragoman.config import DecodeConfig, ModelConfig, TokenizerConfig
from dragoman.data.sentencepiece_check import UNUSED, parts
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from dragoman.decoding.scoring import read_all
from dragoman.errors import BundleError, ConfigError
from dragoman.model.embedding import sinusoids
from dragoman.model.transformer import Transformer
from dragoman.model.weights import NEVER
from dragoman.serving.pairs import Pairs
from dragoman.toolkits.huggingface.write import QUANTIZATIONS, write
from dragoman.toolkits.page.search import Page
from dragoman.training.finetune import adapt
from model_variants import fill
from searching import search_all

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")

Opus = Callable[..., Path]


def learned(lines: list[str], kind: str, **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type=kind, vocab_size=options.pop("size", 120),
        hard_vocab_limit=kind == "bpe", minloglevel=2, num_threads=1, **options,
    )  # fmt: skip
    return model.getvalue()


@pytest.fixture
def opus(corpus: Any, tmp_path: Path) -> Opus:
    """A function that makes a folder as those of OPUS-MT: random weights, two models of subwords, a shuffled list."""

    def make(
        kind: str = "unigram", seed: int = 0, drop: int = 4, separate: bool = False, marks: tuple[str, ...] = (),
        **changes: Any,
    ) -> Path:  # fmt: skip
        folder = tmp_path / f"opus-{kind}-{seed}-{separate}"
        folder.mkdir()
        protos = [learned(path.read_text().splitlines(), kind) for path in (corpus.src, corpus.tgt)]
        pieces = []
        for name, proto in zip(("source.spm", "target.spm"), protos, strict=True):
            (folder / name).write_bytes(proto)
            one = sentencepiece.SentencePieceProcessor(model_proto=proto)
            pieces.append([one.id_to_piece(i) for i in range(3, one.get_piece_size())])

        def listed(own: list[str]) -> dict[str, int]:
            own = sorted(set(own))
            chance = random.Random(seed)
            lacking = set(chance.sample([piece for piece in own if len(piece) > 2], drop))
            own = [piece for piece in own if piece not in lacking]
            own += marks
            chance.shuffle(own)
            whole = ["</s>", "<unk>", "<pad>", *own] if separate else ["</s>", "<unk>", *own, "<pad>"]
            return {piece: i for i, piece in enumerate(whole)}

        lists = [listed(pieces[0]), listed(pieces[1])] if separate else [listed(pieces[0] + pieces[1])]
        for name, one in zip(("vocab.json", "target_vocab.json"), lists, strict=False):
            (folder / name).write_text(json.dumps(one, ensure_ascii=False), encoding="utf-8")
        pad = lists[0]["<pad>"]
        torch.manual_seed(seed)
        config = transformers.MarianConfig(**{
            **dict(
                vocab_size=len(lists[0]), decoder_vocab_size=len(lists[-1]), d_model=32, encoder_layers=2,
                decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                decoder_ffn_dim=48, activation_function="swish", scale_embedding=True, max_position_embeddings=128,
                pad_token_id=pad, eos_token_id=0, bos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0,
                share_encoder_decoder_embeddings=not separate,
            ),
            **changes,
        })  # fmt: skip
        model = transformers.MarianMTModel(config).eval()
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "embed_positions" in parameter_name:
                    continue
                if parameter.dim() == 1:
                    parameter.normal_(1.0 if parameter_name.endswith("norm.weight") else 0.0, 0.3)
                else:
                    parameter.normal_(0.0, 0.25)
            for table in (model.get_encoder().embed_tokens, model.get_decoder().embed_tokens):
                table.weight[pad] = 0
            model.final_logits_bias.normal_(0.0, 0.5)
            model.final_logits_bias[0, lists[-1]["<pad>"]] = 0
        model.generation_config = transformers.GenerationConfig(
            pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, num_beams=4,
            bad_words_ids=[[lists[-1]["<pad>"]]],
        )  # fmt: skip
        model.save_pretrained(folder)
        about = dict(tokenizer_class="MarianTokenizer", source_lang="en", target_lang="de", separate_vocabs=separate)
        (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
        return folder

    return make


def texts_of(corpus: Any) -> list[str]:
    odd = ["émigré 日本 ½ ﬁ", "  two  spaces ", "Ａ ① x", "", "UPPER", "a\u00a0b"]
    return [*corpus.valid_src.read_text().splitlines(), *corpus.src.read_text().splitlines()[:300], *odd]


@pytest.mark.parametrize(("kind", "separate"), [("unigram", False), ("bpe", False), ("unigram", True)])
def test_it_computes_and_translates_the_same(
    opus: Opus, tmp_path: Path, corpus: Any, kind: str, separate: bool
) -> None:
    folder = opus(kind, separate=separate)
    run = dragoman.import_model(folder, tmp_path / "run")
    bundle = load_bundle(run)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = texts_of(corpus)
    # the same pieces; what their list lacks is unknown there, and here has a row of its own that is the same
    src_listed = {i: piece for piece, i in json.loads((folder / "vocab.json").read_text(encoding="utf-8")).items()}
    unknown = set(bundle.src_tokenizer.pieces(range(bundle.src_tokenizer.vocab_size))) - set(src_listed.values())
    ours = bundle.src_tokenizer.encode(texts)
    for text, ids in zip(texts, ours, strict=True):
        theirs = [src_listed[i] for i in tokenizer(text)["input_ids"]][:-1]
        assert ["<unk>" if p in unknown else p for p in bundle.src_tokenizer.pieces(ids)] == theirs
    tgt_ids = {piece: i for i, piece in enumerate(bundle.tgt_tokenizer.pieces(range(bundle.tgt_tokenizer.vocab_size)))}
    listed = json.loads((folder / ("target_vocab.json" if separate else "vocab.json")).read_text(encoding="utf-8"))
    there = {tgt_ids[piece]: i for piece, i in listed.items() if piece != "<pad>"}  # their id of each of ours
    here = {i: ours for ours, i in there.items()}
    for text, ids in list(zip(texts, ours, strict=True))[:20]:
        batch = tokenizer(text, return_tensors="pt")
        tgt = torch.randint(3, 30, (1, 6), generator=torch.Generator().manual_seed(1))
        tgt_in = torch.tensor([[2, *(here[i] for i in tgt[0].tolist())]])
        start = torch.full((1, 1), model.config.decoder_start_token_id)
        with torch.inference_mode():
            mine = bundle.model(torch.tensor([[*ids, 3]]), tgt_in)[0][:, list(there)]
            theirs = model(**batch, decoder_input_ids=torch.cat((start, tgt), 1)).logits[0][:, list(there.values())]
            assert (mine - theirs).abs().max() < 1e-4  # logits of about 30
            best = model.generate(  # unk is not chosen here
                **batch, num_beams=1, max_new_tokens=len(ids) + 20, suppress_tokens=[listed["<unk>"]]
            )[0, 1:].tolist()
        greedy = DecodeConfig(beam_size=1, max_extra_tokens=20)
        found = search_all(bundle.model, [ids], greedy, torch.device("cpu"))[0][0].ids
        assert [there[i] for i in found] == best[: len(found)]
        assert bundle.tgt_tokenizer.decode([found])[0] == tokenizer.decode([there[i] for i in found])


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_character_that_only_the_other_side_knows_is_no_unknown(
    opus: Opus, tmp_path: Path, corpus: Any, kind: str
) -> None:
    folder = opus(kind, drop=0)
    bundle = load_bundle(dragoman.import_model(folder, tmp_path / "run"))
    known = [
        {model.id_to_piece(i) for i in range(model.get_piece_size())}
        for model in (
            sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
            for side in ("source", "target")
        )
    ]
    only = sorted(piece for piece in known[1] - known[0] if len(piece) == 1)
    assert only
    texts = [text for letter in only for text in (f"a {letter} dog", f"the{letter}re", letter, f"{letter} 日 {letter}")]
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    for text in texts:
        want = theirs.convert_ids_to_tokens(theirs(text)["input_ids"][:-1])
        got = bundle.src_tokenizer.pieces(bundle.src_tokenizer.encode([text])[0])
        assert got == want
        assert only[texts.index(text) // 4] in got


def test_pads_and_lacking_pieces_are_never_chosen(opus: Opus, tmp_path: Path) -> None:
    bundle = load_bundle(dragoman.import_model(opus(), tmp_path / "run"))
    bias = bundle.model.generator.bias
    assert [bias[i].item() for i in (0, 2, -1, -2)] == [NEVER] * 4
    assert not bundle.src_tokenizer.is_exact
    assert bundle.manifest["imported"]["normalises_text"] == ["nmt_nfkc"]


def test_an_imported_run_is_an_ordinary_run(opus: Opus, tmp_path: Path, corpus: Any) -> None:
    run = dragoman.import_model(opus(), tmp_path / "run")
    text = corpus.valid_src.read_text().splitlines()[0]
    translator = dragoman.Translator.load(run, "cpu")
    assert translator.score([text], ["x y"])[0].n_tokens > 0
    translator.translate([text], alignments=True, beam_size=2)
    assert dragoman.explain(translator, text).steps
    found = dragoman.evaluate(run, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, guard=False, device="cpu")
    assert found.scores
    there = dragoman.export(run, "ctranslate2", tmp_path / "ct2")
    assert dragoman.certify(run, there, src=corpus.valid_src, quiet=True, device="cpu").most_nats < 1e-3
    again = dragoman.import_model(dragoman.export(run, "huggingface", tmp_path / "hf"), tmp_path / "again")
    one, other = load_bundle(run), load_bundle(again)
    assert one.src_tokenizer.encode([text]) == other.src_tokenizer.encode([text])
    src, tgt = one.src_tokenizer.encode([text])[0], [5, 6, 7]
    read = [read_all(bundle.model, [(src, tgt)], torch.device("cpu"))[0] for bundle in (one, other)]
    assert read[0] is not None
    assert read[1] is not None
    assert read[1].log_probs == pytest.approx(read[0].log_probs, abs=1e-5)


@pytest.mark.parametrize("form", ["huggingface", "ctranslate2"])
@pytest.mark.parametrize(("separate", "share"), [(False, "all"), (True, "decoder")])
def test_an_imported_model_comes_back_with_all_its_settings(
    opus: Opus, tmp_path: Path, corpus: Any, form: str, separate: bool, share: str
) -> None:
    """Two models of subwords with one list came back as two vocabularies: untied, or tied and not to be tuned."""
    run = dragoman.import_model(opus(separate=separate), tmp_path / "run", src_lang="en", tgt_lang="de")
    again = dragoman.import_model(dragoman.export(run, form, tmp_path / "there"), tmp_path / "again")
    one, other = load_bundle(run), load_bundle(again)
    of_training = {"max_len": 0, "dropout": 0, "attention_dropout": 0, "activation_dropout": 0}
    assert other.model.config.model_copy(update=of_training) == one.model.config.model_copy(update=of_training)
    assert (one.model.config.share_embeddings, one.config.data.tokenizer.joint) == (share, not separate)
    assert other.config.data.tokenizer == one.config.data.tokenizer
    torch.testing.assert_close(dict(other.model.state_dict()), dict(one.model.state_dict()), rtol=0, atol=0)
    dragoman.train(
        None, src=corpus.src, tgt=corpus.tgt, valid=(corpus.valid_src, corpus.valid_tgt), out=tmp_path / "tuned",
        from_run=again, quiet=True, overrides=("train.max_steps=2", "train.validate_every=2", "train.save_every=2"),
    )  # fmt: skip
    assert load_bundle(tmp_path / "tuned").model.config.share_embeddings == share


def test_two_equal_lists_are_one(opus: Opus, tmp_path: Path) -> None:
    folder = opus()
    one = dragoman.import_model(folder, tmp_path / "one")
    shutil.copy(folder / "vocab.json", folder / "target_vocab.json")
    two = dragoman.import_model(folder, tmp_path / "two")
    for name in ("config.yaml", "model.safetensors"):
        assert (two / "bundle" / name).read_bytes() == (one / "bundle" / name).read_bytes()


def test_fine_tuning_goes_on_improving(opus: Opus, tmp_path: Path, corpus: Any) -> None:
    run = dragoman.import_model(opus(), tmp_path / "run")
    dragoman.train(
        None, src=corpus.src, tgt=corpus.tgt, valid=(corpus.valid_src, corpus.valid_tgt), out=tmp_path / "tuned",
        from_run=run, quiet=True, overrides=("train.max_steps=60", "train.validate_every=60", "train.save_every=60",
        "train.batch_tokens=400", "train.schedule=inverse_sqrt", "train.lr=0.003", "train.warmup_steps=10"),
    )  # fmt: skip
    events = [json.loads(line) for line in (tmp_path / "tuned/log.jsonl").read_text().splitlines()]
    parent = next(one["loss"] for one in events if one["event"] == "parent")
    assert load_bundle(tmp_path / "tuned").manifest["validation"]["loss"] < parent - 0.5


def test_our_own_export_comes_back_as_it_was(tiny_run: Path, tmp_path: Path) -> None:
    run = dragoman.import_model(dragoman.export(tiny_run, "huggingface", tmp_path / "hf"), tmp_path / "run")
    one, other = load_bundle(tiny_run), load_bundle(run)
    assert other.model.config == one.model.config.model_copy(update={"max_len": other.model.config.max_len})
    assert other.config.data.tokenizer.joint
    ours, theirs = one.model.state_dict(), other.model.state_dict()
    assert {name: tensor for name, tensor in theirs.items() if not torch.equal(tensor, ours[name])} == {}
    assert other.src_tokenizer.encode(["a dog 日本"]) == one.src_tokenizer.encode(["a dog 日本"])


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_rounded_sinusoids_are_known_again(tiny_run: Path, tmp_path: Path, quantization: str) -> None:
    """A Pegasus has a table of them, with as many rows as the settings can need; bfloat16 rounds by up to 2 ** -9."""
    real = load_bundle(tiny_run)
    config = real.model.config.model_copy(update={"norm": "pre"})
    (tmp_path / "there").mkdir()
    write(real._replace(weights=fill(Transformer(config).eval(), seed=1)), tmp_path / "there", quantization)
    run = dragoman.import_model(tmp_path / "there", tmp_path / "run")
    assert load_bundle(run).model.config.positions == "sinusoidal"


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_trimmed_model_cuts_its_texts_as_before(opus: Opus, tmp_path: Path, corpus: Any, kind: str) -> None:
    folder = opus(kind, drop=0)
    (tmp_path / "text").write_text("\n".join(corpus.valid_src.read_text().splitlines()[:3]) + "\n", encoding="utf-8")
    whole = load_bundle(dragoman.import_model(folder, tmp_path / "whole"))
    small = load_bundle(dragoman.import_model(folder, tmp_path / "small", keep_pieces_of=[tmp_path / "text"]))
    assert small.src_tokenizer.vocab_size < 0.8 * whole.src_tokenizer.vocab_size
    texts = (tmp_path / "text").read_text().splitlines()
    for one, other in zip(whole.src_tokenizer.encode(texts), small.src_tokenizer.encode(texts), strict=True):
        assert whole.src_tokenizer.pieces(one) == small.src_tokenizer.pieces(other)
        with torch.inference_mode():
            memories = [b.model.encode(torch.tensor([[*ids, 3]])) for b, ids in ((whole, one), (small, other))]
        assert torch.allclose(*memories, atol=1e-6)


def test_a_bin_is_read_by_its_weights_alone(opus: Opus, tmp_path: Path) -> None:
    folder = opus()
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    whole = dragoman.import_model(folder, tmp_path / "one")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    other = dragoman.import_model(folder, tmp_path / "two")
    assert (whole / "bundle/model.safetensors").read_bytes() == (other / "bundle/model.safetensors").read_bytes()

    class Bad:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "touched",))

    torch.save({"x": Bad()}, folder / "pytorch_model.bin")
    with pytest.raises(BundleError, match=r"cannot be read as weights .* tensors alone"):
        dragoman.import_model(folder, tmp_path / "three")
    assert not (tmp_path / "touched").exists()
    assert not (tmp_path / "three").exists()


# --- weights in several files ----------------------------------------------------------------------------------------


def in_parts(folder: Path, form: str = "safetensors") -> dict[str, str]:
    """The weights in three files with an index, as transformers writes large ones; returns the index's map."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    stem, ending, write = {
        "safetensors": ("model", "safetensors", save_file), "bin": ("pytorch_model", "bin", torch.save),
    }[form]  # fmt: skip
    placed = {name: f"{stem}-{i % 3 + 1:05}-of-00003.{ending}" for i, name in enumerate(weights)}
    for part in set(placed.values()):
        write({name: weights[name] for name in weights if placed[name] == part}, folder / part)
    index = {"metadata": {"total_size": 1}, "weight_map": placed}
    (folder / f"{stem}.{ending}.index.json").write_text(json.dumps(index), encoding="utf-8")
    return placed


@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_weights_in_parts_are_found_by_their_index(opus: Opus, tmp_path: Path, form: str) -> None:
    folder = opus()
    whole = dragoman.import_model(folder, tmp_path / "whole")
    in_parts(folder, form)
    run = dragoman.import_model(folder, tmp_path / "run")
    assert (whole / "bundle/model.safetensors").read_bytes() == (run / "bundle/model.safetensors").read_bytes()


def test_what_transformers_itself_writes_in_parts_is_read(opus: Opus, tmp_path: Path) -> None:
    folder = opus()
    whole = dragoman.import_model(folder, tmp_path / "whole")
    model = transformers.MarianMTModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*-of-*.safetensors"))) > 2
    run = dragoman.import_model(folder, tmp_path / "run")
    assert (whole / "bundle/model.safetensors").read_bytes() == (run / "bundle/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: (f / "model-00002-of-00003.safetensors").unlink(), r"model-00002-of-00003.safetensors: "),
        (
            lambda f: shutil.copy(f / "model-00002-of-00003.safetensors", f / "model-00001-of-00003.safetensors"),
            r"is in another file of the weights too",
        ),
        (lambda f: changed(f, INDEX, weight_map={"x": "../x.safetensors"}), r"should name a file in this folder"),
        (lambda f: changed(f, INDEX, weight_map=[]), r"should name a file in this folder"),
        (lambda f: changed(f, INDEX, weight_map={"x": 7}), r"should name a file in this folder"),
        (lambda f: (f / INDEX).write_text("{"), r"index.json: not JSON"),
        (lambda f: (f / INDEX).unlink(), r"neither model.safetensors nor pytorch_model.bin is there, and no index"),
    ],
)
def test_bad_parts_are_refused_in_one_line(
    opus: Opus, tmp_path: Path, spoil: Callable[[Path], object], says: str
) -> None:
    folder = opus()
    in_parts(folder)
    spoil(folder)
    with pytest.raises(BundleError, match=says):
        dragoman.import_model(folder, tmp_path / "run")


INDEX = "model.safetensors.index.json"


# --- the search that it orders ---------------------------------------------------------------------------------------


ORDERED: dict[str, tuple[dict[str, Any], str]] = {
    "n-grams": (dict(no_repeat_ngram_size=3), "no_repeat_ngram_size = 3 .*, and give --no-repeat-ngram 3 to translate"),
    "n-grams of the source": (dict(encoder_no_repeat_ngram_size=2), "encoder_no_repeat_ngram_size = 2"),
    "repetition": (dict(repetition_penalty=1.2), "repetition_penalty = 1.2 orders a search that a run cannot hold"),
    "a first token": (dict(forced_bos_token_id=7), "forced_bos_token_id = 7 orders .*, only null"),
    "a last token": (dict(forced_eos_token_id=7), "forced_eos_token_id = 7 orders .*, only eos, which is 0"),
    "a length": (dict(min_length=10), "min_length = 10 .*, only 0 or 1"),
    "new tokens": (dict(min_new_tokens=2), "min_new_tokens = 2"),
    "a word": (dict(bad_words_ids=[[9]]), r"bad_words_ids = \[\[9\]\] .*, only tokens that are never chosen"),
    "a phrase": (dict(bad_words_ids=[[1, 1]]), r"bad_words_ids = \[\[1, 1\]\]"),
    "no list": (dict(bad_words_ids="x"), "bad_words_ids = 'x'"),
    "a token": (dict(suppress_tokens=[1, 9]), r"suppress_tokens = \[1, 9\]"),
    "a first word": (dict(begin_suppress_tokens=[5]), r"begin_suppress_tokens = \[5\]"),
    "sampling": (dict(do_sample=True), "do_sample = True"),
    "groups": (dict(num_beam_groups=2), "num_beam_groups = 2"),
    "many beams": (dict(num_beams=5000), "num_beams = 5000 .*, only 1 to 1000"),
    "beams in words": (dict(num_beams="four"), "num_beams = 'four'"),
    "a negative penalty": (dict(length_penalty=-1.0), "length_penalty = -1.0 .*, only 0 to 10"),
    "a stop": (dict(early_stopping="soon"), "early_stopping = 'soon'"),
    "another end": (dict(eos_token_id=[0, 5]), r"eos_token_id = \[0, 5\] .*, only the 0 of config.json"),
    "what nobody knows": (dict(a_new_penalty=0.5), "a_new_penalty = 0.5 .*, only settings that are known here"),
}


@pytest.mark.parametrize("name", ORDERED)
def test_a_search_that_a_run_cannot_hold_is_refused_by_name(opus: Opus, tmp_path: Path, name: str) -> None:
    values, says = ORDERED[name]
    folder = opus()
    changed(folder, "generation_config.json", **values)
    with pytest.raises(BundleError, match=f"generation_config.json: {says}") as refused:
        dragoman.import_model(folder, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_an_older_model_orders_its_search_in_its_configuration(opus: Opus, tmp_path: Path) -> None:
    folder = opus()
    (folder / "generation_config.json").unlink()
    changed(folder, "config.json", num_beams=6, length_penalty=0.8)
    decode = load_bundle(dragoman.import_model(folder, tmp_path / "run")).config.decode
    assert (decode.beam_size, decode.length_penalty) == (6, 0.8)
    changed(folder, "config.json", no_repeat_ngram_size=3)
    with pytest.raises(BundleError, match=r"/config.json: no_repeat_ngram_size = 3"):
        dragoman.import_model(folder, tmp_path / "other")


@pytest.mark.parametrize(("given", "patience"), [(True, 1.0), (False, None), ("never", None), (None, None)])
def test_the_stopping_rule_is_kept(opus: Opus, tmp_path: Path, given: Any, patience: float | None) -> None:
    folder = opus()
    changed(folder, "generation_config.json", early_stopping=given, num_beams=3, length_penalty=0.4)
    decode = load_bundle(dragoman.import_model(folder, tmp_path / "run")).config.decode
    assert (decode.patience, decode.beam_size, decode.length_penalty) == (patience, 3, 0.4)


def test_the_stopping_rule_is_exported_again(opus: Opus, tmp_path: Path) -> None:
    folder = opus()
    changed(folder, "generation_config.json", early_stopping=True, num_beams=3)
    run = dragoman.import_model(folder, tmp_path / "run")
    again = dragoman.import_model(dragoman.export(run, "huggingface", tmp_path / "there"), tmp_path / "again")
    assert load_bundle(again).config.decode.patience == 1.0


def test_settings_of_the_search_come_from_one_file(opus: Opus, tmp_path: Path) -> None:
    """As in transformers: those of the configuration count only without a generation_config.json; the beam is 1."""
    folder = opus()
    path = folder / "generation_config.json"
    generation = json.loads(path.read_text(encoding="utf-8"))
    del generation["num_beams"]
    path.write_text(json.dumps(generation), encoding="utf-8")
    changed(folder, "config.json", num_beams=6, length_penalty=0.8, no_repeat_ngram_size=3, early_stopping=True)
    decode = load_bundle(dragoman.import_model(folder, tmp_path / "run")).config.decode
    assert (decode.beam_size, decode.length_penalty, decode.patience) == (1, 1.0, None)


def test_a_model_without_settings_of_the_search_is_greedy(opus: Opus, tmp_path: Path) -> None:
    folder = opus()
    (folder / "generation_config.json").unlink()
    assert load_bundle(dragoman.import_model(folder, tmp_path / "run")).config.decode.beam_size == 1


def test_sines_and_cosines_in_turn_are_read_as_learned_positions(tiny_run: Path, tmp_path: Path) -> None:
    """Only sines first reorder the channels, as the classes of transformers have them."""
    real = load_bundle(tiny_run)
    n = real.src_tokenizer.vocab_size
    sizes = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=1, n_decoder_layers=1, max_len=40)
    config = ModelConfig(src_vocab_size=n, tgt_vocab_size=n, norm="pre", positions="learned", **sizes)
    model = fill(Transformer(config).eval(), seed=1, spread=1 / 4)
    for table in (model.src_positions, model.tgt_positions):
        table.weight.data.copy_(sinusoids(0, 40, 24))
    there = tmp_path / "there"
    there.mkdir()
    write(real._replace(weights=model), there)
    again = load_bundle(dragoman.import_model(there, tmp_path / "run"))
    assert again.model.config.positions == "learned"
    assert again.model.config.max_len == 40
    torch.testing.assert_close(dict(again.model.state_dict()), dict(model.state_dict()), rtol=0, atol=0)


def test_neutral_values_and_those_of_every_marian_model_pass(
    opus: Opus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As Helsinki-NLP/opus-mt-en-de has them, and every default of transformers written out."""
    folder = opus()
    pad = json.loads((folder / "config.json").read_text(encoding="utf-8"))["pad_token_id"]
    defaults = dict(
        max_length=20, min_length=0, do_sample=False, use_cache=True, early_stopping=False, num_beams=1, top_k=50,
        typical_p=1.0, repetition_penalty=1.0, length_penalty=1.0, no_repeat_ngram_size=0, output_scores=False,
        encoder_no_repeat_ngram_size=0, num_return_sequences=1, forced_bos_token_id=None, epsilon_cutoff=0.0,
        encoder_repetition_penalty=1.0, num_beam_groups=1, diversity_penalty=0.0, remove_invalid_values=False,
    )  # fmt: skip
    changed(
        folder, "generation_config.json",
        **{
            **defaults, "num_beams": 6, "max_length": 512, "bad_words_ids": [[pad]], "suppress_tokens": [1, pad],
            "forced_eos_token_id": 0, "bos_token_id": 0, "renormalize_logits": True, "_from_model_config": True,
            "transformers_version": "4.32.0.dev0", "temperature": 0.7,
        },
    )  # fmt: skip
    with caplog.at_level("INFO"):
        decode = load_bundle(dragoman.import_model(folder, tmp_path / "run")).config.decode
    assert (decode.beam_size, decode.length_penalty, decode.patience) == (6, 1.0, None)
    assert "max_length = 512 is not kept; the length of the source limits a translation here" in caplog.text


def test_every_setting_of_transformers_is_known() -> None:
    """A new version may order new things: each belongs to one of the lists."""
    from dragoman.toolkits.generation import KNOWN

    names = {name for name in transformers.GenerationConfig().to_dict() if not name.startswith("_")}
    assert names <= KNOWN


def reweighted(folder: Path, **tensors: Tensor) -> None:
    """Other tensors in the place of some, or more; ``__`` stands for the dot of a name."""
    content = load_file(folder / "model.safetensors")
    content |= {name.replace("__", "."): tensor for name, tensor in tensors.items()}
    save_file(content, folder / "model.safetensors")


def greek() -> list[str]:
    """Lines of random letters that no text of the corpus has."""
    chance = random.Random(1)
    return ["".join(chance.choices("αβγδεζηθικλ ", k=60)) for _ in range(300)]


def respelled(folder: Path, piece: str) -> None:
    """Another piece in the place of one."""
    listed = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    listed[piece] = listed.pop(next(name for name, i in listed.items() if i == 20))
    (folder / "vocab.json").write_text(json.dumps(listed), encoding="utf-8")


def changed(folder: Path, name: str, **values: Any) -> None:
    content = json.loads((folder / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps({**content, **values}), encoding="utf-8")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "another model": (lambda f: changed(f, "config.json", model_type="bert"), "model_type is 'bert'"),
    "an activation": (
        lambda f: changed(f, "config.json", activation_function="tanh"),
        "activation_function must be .*, got 'tanh'",
    ),
    "embedding norm": (lambda f: changed(f, "config.json", normalize_embedding=True), "normalize_embedding = true"),
    "sides differ": (lambda f: changed(f, "config.json", decoder_ffn_dim=64), "ffn_dim of encoder and decoder differ"),
    "a width": (
        lambda f: changed(f, "config.json", d_model=64),
        r"is \(60, 32\), but its vocabulary and configuration say \(60, 64\)",
    ),
    "fewer layers": (
        lambda f: changed(f, "config.json", encoder_layers=1),
        "have model.encoder.layers.1.fc1.bias, .* and 13 more, which",
    ),
    "more layers": (lambda f: changed(f, "config.json", encoder_layers=3), "lack model.encoder.layers.2"),
    "no number": (lambda f: changed(f, "config.json", d_model="64"), "d_model = '64' should be a whole number"),
    "a size of targets that is no number": (
        lambda f: changed(f, "config.json", decoder_vocab_size="58101"),
        "decoder_vocab_size = '58101' should be a whole number",
    ),
    "an infinite size of targets": (
        lambda f: changed(f, "config.json", decoder_vocab_size=float("inf")),
        "decoder_vocab_size = inf should be a whole number",
    ),
    "a size of targets below 0": (
        lambda f: changed(f, "config.json", decoder_vocab_size=-7),
        "decoder_vocab_size = -7 should be a whole number",
    ),
    "no JSON": (lambda f: (f / "config.json").write_text("{"), "config.json: not JSON"),
    "no config": (
        lambda f: (f / "config.json").unlink(),
        "holds no model that can be imported: give a folder of CTranslate2",
    ),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "neither model.safetensors nor pytorch_model.bin"),
    "cut weights": (lambda f: (f / "model.safetensors").write_bytes(b"123"), "model.safetensors: "),
    "a bias": (lambda f: reweighted(f, final_logits_bias=torch.ones(1, 7)), r"final_logits_bias is \(1, 7\), but its"),
    "more rows": (
        lambda f: reweighted(f, model__shared__weight=torch.ones(900, 32)),
        r"model.shared.weight is \(900, 32\), but its",
    ),
    "positions": (
        lambda f: reweighted(f, model__encoder__embed_positions__weight=torch.ones(128, 16)),
        "embed_positions.weight is",
    ),
    "whole numbers": (
        lambda f: reweighted(f, final_logits_bias=torch.ones(1, 7, dtype=torch.int64)),
        "no array of floats",
    ),
    "a tensor more": (
        lambda f: reweighted(f, model__encoder__layernorm_embedding__weight=torch.ones(32)),
        "have model.encoder.layernorm_embedding.weight, which its configuration has not",
    ),
    "not finite": (
        lambda f: reweighted(f, model__encoder__layers__0__fc1__bias=torch.full((48,), torch.nan)),
        "not finite",
    ),
    "untied without a head": (
        lambda f: changed(f, "config.json", tie_word_embeddings=False),
        "lack lm_head.weight",
    ),
    "unshared without tables": (
        lambda f: changed(f, "config.json", share_encoder_decoder_embeddings=False),
        "lack model.encoder.embed_tokens",
    ),
    "a piece that is no text": (lambda f: respelled(f, "\ud800"), "which no text can hold"),
    "a piece that ends a line": (lambda f: respelled(f, "a\nb"), "which no text can hold"),
    "another's subwords": (
        lambda f: (f / "source.spm").write_bytes(learned(greek(), "bpe")),
        "source.spm: .* pieces are not in the vocabulary; it belongs to another model",
    ),
    "no truth": (lambda f: changed(f, "config.json", scale_embedding="no"), "'no' should be true or false"),
    "no subwords": (lambda f: (f / "target.spm").unlink(), "target.spm: cannot be read"),
    "bad subwords": (lambda f: (f / "target.spm").write_bytes(b"\x0a\xff"), "not a SentencePiece model"),
    "an id twice": (lambda f: changed(f, "vocab.json", **{"<pad>": 0}), "should give the"),
    "a short list": (lambda f: changed(f, "config.json", vocab_size=7), "its configuration says 7"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_imported_is_refused_in_one_line(
    opus: Opus, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil, says = BAD[name]
    folder = opus()
    spoil(folder)
    caplog.set_level("INFO")
    with pytest.raises(BundleError, match=says) as refused:
        dragoman.import_model(folder, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert caplog.text == ""
    assert not (tmp_path / "run").exists()


def test_other_refusals(opus: Opus, tmp_path: Path, command: Callable[..., Any]) -> None:
    folder = opus()
    with pytest.raises(ConfigError, match="neither a folder nor the name of a model"):
        dragoman.import_model(tmp_path / "nowhere", tmp_path / "run")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BundleError, match="holds no model that can be imported"):
        dragoman.import_model(tmp_path / "pipe", tmp_path / "run")
    done = command("import", folder, "--out", tmp_path / "run")
    assert (done.status, done.out.decode().strip()) == (0, str(tmp_path / "run"))
    with pytest.raises(ConfigError, match="already exists; choose another --out"):
        dragoman.import_model(folder, tmp_path / "run")


def test_a_name_without_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def offline(*_: Any, **__: Any) -> str:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(hub, "snapshot_download", offline)
    with pytest.raises(ConfigError, match=r"some/model: cannot be downloaded \(ConnectionError: no route to host\)"):
        dragoman.import_model("some/model", tmp_path / "run")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            "LocalEntryNotFoundError",
            "some/model: is not in the cache of this machine, and Hugging Face cannot be reached",
        ),
        ("RevisionNotFoundError", "some/model: has no revision 'v9'"),
        ("RepositoryNotFoundError", "some/model: Hugging Face has no such model, or it is private"),
    ],
)
def test_what_hugging_face_answers_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, says: str
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    kind = getattr(hub.errors, error)

    def refused(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        raise kind.__new__(kind)

    monkeypatch.setattr(hub, "snapshot_download", refused)
    with pytest.raises(ConfigError, match=says):
        dragoman.import_model("some/model", tmp_path / "run", revision="v9")
    assert not (tmp_path / "run").exists()


def stored(snapshot: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, hub: Any) -> list[tuple[Any, ...]]:
    """A hub with one model; returns the list of what is downloaded: name, revision, names of the files."""
    seen: list[tuple[Any, ...]] = []

    def found(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        names = [path.name for path in snapshot.iterdir()
                 if any(fnmatch(path.name, pattern) for pattern in allow_patterns)]  # fmt: skip
        (cache / snapshot.name).mkdir(parents=True, exist_ok=True)
        for file in names:
            shutil.copy(snapshot / file, cache / snapshot.name)
        seen.append((name, revision, names))
        return str(cache / snapshot.name)

    monkeypatch.setattr(hub, "snapshot_download", found)
    return seen


def listed_there(folder: Path, *pieces: str) -> None:
    """Other pieces in the place of the last ones of CTranslate2's list."""
    path = folder / "shared_vocabulary.json"
    names = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([*names[: -len(pieces)], *pieces]), encoding="utf-8")


REFUSED_EARLY: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "another model": (
        "huggingface", lambda f: changed(f, "config.json", model_type="t5"), "its model_type is 't5'; only marian and",
    ),
    "no subwords": ("huggingface", lambda f: (f / "target.spm").unlink(), "target.spm: cannot be read"),
    "no vocabulary": ("huggingface", lambda f: (f / "vocab.json").unlink(), "vocab.json: cannot be read"),
    "another search": (
        "huggingface", lambda f: changed(f, "generation_config.json", repetition_penalty=2.0), "repetition_penalty = 2",
    ),
    "nothing": ("huggingface", lambda f: (f / "config.json").unlink(), "some/model: has no config.json"),
    "a bomb": ("huggingface", lambda f: (f / "config.json").write_text("[" * 10**6), "config.json: not JSON"),
    "no subwords of CTranslate2": ("ctranslate2", lambda f: (f / "joint.spm").unlink(), "has no SentencePiece models"),
    "languages": ("ctranslate2", lambda f: listed_there(f, "__de__", "__fr__"), "it translates by language tokens"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_EARLY)
def test_what_cannot_be_imported_is_refused_before_its_weights_are_downloaded(
    tmp_path: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    form, spoil, says = REFUSED_EARLY[name]
    snapshot = dragoman.export(tiny_run, form, tmp_path / "abc123")
    (snapshot / "manifest.json").unlink()
    spoil(snapshot)
    seen = stored(snapshot, tmp_path / "cache", monkeypatch, hub)
    with pytest.raises(BundleError, match=says):
        dragoman.import_model("some/model", tmp_path / "run")
    assert len(seen) == 1
    assert not {"model.safetensors", "model.bin"} & set(seen[0][2])
    assert not (tmp_path / "run").exists()


def test_pickled_weights_are_downloaded_only_if_there_are_no_others(
    tmp_path: Path, opus: Opus, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    snapshot = opus().rename(tmp_path / "abc123")
    torch.save(load_file(snapshot / "model.safetensors"), snapshot / "pytorch_model.bin")
    seen = stored(snapshot, tmp_path / "cache", monkeypatch, hub)
    dragoman.import_model("some/model", tmp_path / "one")
    assert ["pytorch_model.bin" in call[2] for call in seen] == [False, False]
    seen.clear()
    (snapshot / "model.safetensors").unlink()
    shutil.rmtree(tmp_path / "cache")
    dragoman.import_model("some/model", tmp_path / "other")
    assert [(call[1], "pytorch_model.bin" in call[2]) for call in seen] == [
        (None, False), ("abc123", False), ("abc123", True),
    ]  # fmt: skip
    weights = [load_bundle(tmp_path / run).model.state_dict() for run in ("one", "other")]
    torch.testing.assert_close(dict(weights[0]), dict(weights[1]), rtol=0, atol=0)


@pytest.mark.parametrize("form", ["huggingface", "ctranslate2"])
def test_a_name_is_downloaded_and_its_commit_noted(
    tmp_path: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    snapshot = dragoman.export(tiny_run, form, tmp_path / "abc123")
    seen = stored(snapshot, tmp_path / "cache", monkeypatch, hub)
    run = dragoman.import_model("some/model", tmp_path / "run", revision="v1")
    assert [call[:2] for call in seen] == [("some/model", "v1"), ("some/model", "abc123")]  # the branch may move on
    weights = {"huggingface": "model.safetensors", "ctranslate2": "model.bin"}[form]
    assert [weights in call[2] for call in seen] == [False, True]
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["abc123"]
    names = {path.name for path in (tmp_path / "cache/abc123").iterdir()}
    assert names == {path.name for path in snapshot.iterdir()} - {"README.md"}
    assert load_bundle(run).manifest["imported"]["from"] == "some/model@abc123"
    with pytest.raises(ConfigError, match="revision = 'v1' is for a model that is downloaded"):
        dragoman.import_model(snapshot, tmp_path / "other", revision="v1")


def test_a_normaliser_is_said(opus: Opus, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "dragoman"):
        dragoman.import_model(opus(), tmp_path / "run")
    assert "its tokenizer normalises text (nmt_nfkc)" in caplog.text


# --- several target languages ----------------------------------------------------------------------------------------

MARKS = (">>fra<<", ">>spa<<", ">>cmn_Hans<<")


def test_a_target_language_is_chosen_by_an_option(opus: Opus, tmp_path: Path, corpus: Any) -> None:
    folder = opus(marks=MARKS, drop=0)
    run = dragoman.import_model(folder, tmp_path / "run")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    translator = dragoman.Translator.load(run, "cpu")
    assert translator.manifest["imported"]["targets"] == ["cmn_Hans", "fra", "spa"]
    assert sorted(translator.src_tokenizer.targets) == ["cmn_Hans", "fra", "spa"]
    listed = {
        piece: i for i, piece in enumerate(translator.src_tokenizer.pieces(range(translator.src_tokenizer.vocab_size)))
    }
    text = corpus.valid_src.read_text().splitlines()[0]
    found = set()
    for to in ("fra", "spa", "cmn_Hans"):
        batch = tokenizer(f">>{to}<< {text}", return_tensors="pt")
        ids = translator.src_tokenizer.towards(to).encode([text, ""])
        theirs = [tokenizer.convert_ids_to_tokens(i) for i in batch["input_ids"][0].tolist()][:-1]
        assert translator.src_tokenizer.pieces(ids[0]) == theirs
        assert ids[1] == []
        best = model.generate(**batch, num_beams=1, max_new_tokens=12)[0, 1:].tolist()
        ours = [listed[tokenizer.convert_ids_to_tokens(i)] for i in best if i]
        greedy = translator.translate([text], to=to, beam_size=1, guard=False, protect=False)[0]
        theirs_text = translator.tgt_tokenizer.decode([ours])[0]
        assert greedy.text[: len(theirs_text)] == theirs_text or theirs_text.startswith(greedy.text)
        score = translator.score([text], ["x y"], to=to)[0]
        found.add(round(score.log_prob, 4))
        one = translator.score([text], ["x y"], to=to, alignments=True)[0].alignment
        assert one is not None
        assert all(0 <= src < len(text.split()) for src, _ in one)
    assert len(found) == 3  # the mark is read
    trace = dragoman.explain(translator, text, to="fra")
    assert trace.src.tokens[0] == ">>fra<<"
    assert trace.src.words[:2] == (">>fra<<", text.split()[0])
    assert trace.src.spans[0] == (0, 1)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_an_imported_model_translates_in_a_page(opus: Opus, tmp_path: Path, corpus: Any, kind: str) -> None:
    run = dragoman.import_model(opus(kind), tmp_path / "run")
    (tmp_path / "odd").write_text("\n".join(texts_of(corpus)[-60:]), encoding="utf-8")
    page = dragoman.export(run, "page", tmp_path / "page.html")
    found = dragoman.certify(run, page, src=tmp_path / "odd", quiet=True, device="cpu")
    assert found.most_nats < 1e-4
    assert (found.n_identical, found.n_cut_differently) == (found.n_lines, 0)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_page_has_a_choice_of_target_languages(opus: Opus, tmp_path: Path, corpus: Any) -> None:
    run = dragoman.import_model(opus(marks=MARKS, drop=0), tmp_path / "run")
    translator, text = dragoman.Translator.load(run, "cpu"), corpus.valid_src.read_text().splitlines()[0]
    page, said = Page(dragoman.export(run, "page", tmp_path / "page.html")), set()
    for to in ("cmn_Hans", "fra", "spa"):
        asked: dict[str, Any] = {"text": text, "to": to}
        (found,), (trace,) = (
            page.answers([{"task": "translate", **asked}]),
            page.answers([{"task": "trace", "prefix": [], **asked}]),
        )
        assert found == translator.translate([text], to=to, guard=False, protect=False)[0].text
        ours = dragoman.explain(translator, text, to=to)
        assert tuple(trace["views"][1]["kinds"]["encoder"]["rows"]) == ours.src.tokens
        assert tuple(trace["views"][0]["kinds"]["encoder"]["rows"]) == ours.src.words
        assert trace["steps"][0]["probability"] == pytest.approx(ours.steps[0].probability, abs=1e-5)
        said.add(round(trace["steps"][0]["probability"], 7))
    assert len(said) == 3  # the mark is read


def test_target_languages_are_refused_by_name(opus: Opus, tmp_path: Path, corpus: Any, tiny_run: Path) -> None:
    run = dragoman.import_model(opus(marks=MARKS), tmp_path / "run")
    translator = dragoman.Translator.load(run, "cpu")
    with pytest.raises(ConfigError, match=r"translates into 3 languages: choose one with to \(cmn_Hans, fra, spa\)"):
        translator.translate(["x"])
    with pytest.raises(ConfigError, match="to must be cmn_Hans, fra or spa, got 'deu'"):
        translator.score(["x"], ["y"], to="deu")
    with pytest.raises(ConfigError, match="to = 'fra': this model has one target language; leave it out"):
        dragoman.Translator.load(tiny_run, "cpu").translate(["x"], to="fra")
    with pytest.raises(ConfigError, match="choose one with to"):
        dragoman.explain(translator, "x")
    with pytest.raises(
        ConfigError, match=r"translates into cmn_Hans, fra, spa, and the target language of data\.train is de"
    ):
        dragoman.train(
            None, src=corpus.src, tgt=corpus.tgt, valid=(corpus.valid_src, corpus.valid_tgt), out=tmp_path / "tuned",
            from_run=run, quiet=True,
        )  # fmt: skip
    assert not (tmp_path / "tuned").exists()


def test_a_model_of_several_targets_is_tuned_for_one_and_serves_all(opus: Opus, tmp_path: Path, corpus: Any) -> None:
    run = dragoman.import_model(opus(marks=MARKS), tmp_path / "run", src_lang="en")
    dragoman.train(
        None, src=corpus.src, tgt=corpus.tgt, valid=(corpus.valid_src, corpus.valid_tgt), out=tmp_path / "tuned",
        from_run=run, quiet=True, overrides=("data.tgt_lang=fra", "train.max_steps=40", "train.validate_every=40",
        "train.save_every=40", "train.batch_tokens=400", "train.schedule=inverse_sqrt", "train.lr=0.003",
        "train.warmup_steps=10"),
    )  # fmt: skip
    before, after = (
        sum(one.log_prob for one in dragoman.Translator.load(each, "cpu").score(
            corpus.valid_src.read_text().splitlines(), corpus.valid_tgt.read_text().splitlines(), to="fra"))
        for each in (run, tmp_path / "tuned")
    )  # fmt: skip
    assert after > before + 10
    served = Pairs([dragoman.Translator.load(tmp_path / "tuned", "cpu")])
    assert sorted(served.targets_of("en")) == ["cmn_Hans", "fra", "spa"]


def test_marks_survive_trimming_export_and_evaluation(
    opus: Opus, tmp_path: Path, corpus: Any, command: Callable[..., Any]
) -> None:
    (tmp_path / "text").write_text(corpus.valid_src.read_text().splitlines()[0] + "\n", encoding="utf-8")
    run = dragoman.import_model(opus(seed=3, marks=MARKS, drop=0), tmp_path / "run", keep_pieces_of=[corpus.valid_src])
    again = dragoman.import_model(dragoman.export(run, "ctranslate2", tmp_path / "ct2"), tmp_path / "again")
    assert sorted(load_bundle(again).src_tokenizer.targets) == ["cmn_Hans", "fra", "spa"]
    found = dragoman.certify(run, tmp_path / "ct2", src=corpus.valid_src, quiet=True, device="cpu", to="fra")
    assert found.most_nats < 1e-3
    ref = shutil.copy(corpus.valid_tgt, tmp_path / "ref")  # whose name tells no language
    assert dragoman.evaluate(run, src=corpus.valid_src, ref=ref, quiet=True, device="cpu", to="fra").scores
    done = command("translate", run, "--to", "fra", tmp_path / "text")
    assert (done.status, len(done.out.splitlines())) == (0, 1)
    assert command("translate", run, tmp_path / "text").status == 2


def test_subwords_that_are_never_written_count_as_unknown_and_can_be_learned(
    opus: Opus, tmp_path: Path, corpus: Any
) -> None:
    """A bias that rules them out made such a token of a given target cost 10,000 nats, and no training raised it."""
    run = dragoman.import_model(opus(drop=12), tmp_path / "run")
    bundle = load_bundle(run)
    never = {i for i, bias in enumerate(bundle.model.generator.bias.tolist()) if bias <= NEVER and i > EOS_ID}
    tokenizer, texts = bundle.tgt_tokenizer, corpus.valid_tgt.read_text().splitlines()
    with_them = next(text for text in texts if never & set(tokenizer.encode([text])[0]))
    translator = dragoman.Translator(bundle)
    (scored,) = translator.score([texts[0]], [with_them])
    (ids,) = tokenizer.encode([with_them])
    (src,) = bundle.src_tokenizer.encode([texts[0]])
    as_unknown = [UNK_ID if i in never else i for i in ids]
    read = read_all(bundle.model, [(src, as_unknown)], torch.device("cpu"))[0]
    assert read is not None
    assert scored.token_log_probs == pytest.approx(read.log_probs, abs=1e-4)
    assert min(scored.token_log_probs) > -100
    weights, _ = adapt(bundle, run, (bundle.src_tokenizer, tokenizer), tmp_path)
    bias = weights["generator.bias"]
    assert all(bias[i] == bias[UNK_ID] for i in never)
    assert [bias[i].item() for i in (PAD_ID, BOS_ID)] == [NEVER, NEVER]
    learned = Tokenizer.learn(texts, TokenizerConfig(vocab_size=330))
    weights, _ = adapt(bundle, run, (learned, learned), tmp_path)
    assert weights["generator.bias"][EOS_ID + 1 :].min() > -100


def test_the_settings_of_an_imported_run_say_what_its_subwords_are(opus: Opus, tmp_path: Path) -> None:
    for kind in ("unigram", "bpe"):
        bundle = load_bundle(dragoman.import_model(opus(kind), tmp_path / kind))
        settings = bundle.config.data.tokenizer
        assert (settings.kind, settings.byte_fallback) == (kind, False)
        assert settings.vocab_size == max(bundle.src_tokenizer.vocab_size, bundle.tgt_tokenizer.vocab_size)


def test_a_subword_inside_a_word_is_cut_without_a_space_before_it(opus: Opus, tmp_path: Path) -> None:
    tokenizer = load_bundle(dragoman.import_model(opus(drop=0), tmp_path / "run")).tgt_tokenizer
    texts = ["und", " und", "und ", "katze", "  der", "\uff44er"]
    for text, ids in zip(texts, tokenizer.encode_inside(texts), strict=True):
        pieces = "".join(tokenizer.pieces(ids)).replace("\u2581", " ")
        assert pieces == unicodedata.normalize("NFKC", text)
    (known,) = tokenizer.encode_inside(["und"])
    assert tokenizer.encode_inside(["\u4a3b", "\u4a3bund", "und\u4a3b", ""]) == [
        [UNK_ID], [UNK_ID, *known], [*known, UNK_ID], [],
    ]  # fmt: skip


def test_subwords_of_the_other_language_are_not_drawn(opus: Opus, tmp_path: Path, corpus: Any) -> None:
    bundle = load_bundle(dragoman.import_model(opus(drop=0), tmp_path / "run"))
    texts = [*corpus.valid_src.read_text().splitlines()[:50], *corpus.valid_tgt.read_text().splitlines()[:50]]
    drawn = {i for seed in range(5) for ids in bundle.src_tokenizer.sample(texts, 0.1, seed) for i in ids}
    kinds = parts(bundle.src_tokenizer.proto).pieces
    assert len(drawn) > 30
    assert not [kinds[i].text for i in drawn if kinds[i].kind == UNUSED]


def test_kept_texts_are_cut_as_before_where_the_list_lacks_a_piece(opus: Opus, tmp_path: Path, corpus: Any) -> None:
    folder = opus(drop=12)
    whole = load_bundle(dragoman.import_model(folder, tmp_path / "whole")).src_tokenizer
    kept = load_bundle(
        dragoman.import_model(folder, tmp_path / "kept", keep_pieces_of=[corpus.valid_src])
    ).src_tokenizer
    for text in corpus.valid_src.read_text().splitlines()[:100]:
        cuts = [tokenizer.pieces(tokenizer.encode([text])[0]) for tokenizer in (whole, kept)]
        assert cuts[0] == cuts[1]
