"""Fine-tuning: from the weights of another run, with its subwords or with new ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import dragoman
from dragoman.bundle import load_bundle
from dragoman.config import ModelConfig, TokenizerConfig
from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.files import sha256
from dragoman.model.transformer import Transformer
from dragoman.model.weights import shapes, untied
from dragoman.training import loop
from dragoman.training.defaults import inherit
from dragoman.training.finetune import adapt, composed, composition
from model_variants import CHOICES

Command = Callable[..., Any]

OLD = Tokenizer.learn(["low lower new newer wide wider 12"] * 9, TokenizerConfig(vocab_size=290))
NEW = Tokenizer.learn(["lowest newest widest ögonblick"] * 9, TokenizerConfig(vocab_size=305))


@pytest.fixture
def new_text(tmp_path: Path, make_corpus: Callable[..., Any]) -> Path:
    """A folder with text of a slightly different toy language."""
    make_corpus(tmp_path, 300)
    for path, swaps in (
        ("en", (("cat", "bird"), ("here", "now"))),
        ("de", (("katze", "vogel"), ("hier", "jetzt"), ("gross", "riesig"))),
    ):
        for name in ("train", "valid"):
            file = tmp_path / f"{name}.{path}"
            text = file.read_text(encoding="utf-8")
            for old, new in swaps:
                text = text.replace(old, new)
            file.write_text(text, encoding="utf-8")
    return tmp_path


FILES = ("--src", "train.en", "--tgt", "train.de", "--valid-src", "valid.en", "--valid-tgt", "valid.de")
BRIEF = ("--set", "train.validate_every=40", "--set", "train.save_every=40", "--set", "train.device=cpu",
         "--set", "train.batch_tokens=600")  # fmt: skip


def test_a_piece_of_both_vocabularies_keeps_its_row_and_another_gets_the_mean_of_its_parts() -> None:
    found = composition(OLD, NEW)
    assert len(found) == NEW.vocab_size
    old, new = ({piece: i for i, piece in enumerate(t.pieces(range(t.vocab_size)))} for t in (OLD, NEW))
    assert found[:4] == [[0], [1], [2], [3]]
    assert found[new["<0xC3>"]] == [old["<0xC3>"]]
    both = old.keys() & new.keys()
    assert len(both) > 260
    for piece in both:
        assert found[new[piece]] == [old[piece]]
    rest = new.keys() - both
    assert rest
    for piece in rest:  # the parts spell the piece, inside a word as at its start
        assert OLD.decode([[old["l"], *found[new[piece]], old["l"]]]) == [f"l{piece}l".replace("\u2581", " ")]
    assert {"est", "ö"} <= rest
    assert found[new["ö"]] == [old["<0xC3>"], old["<0xB6>"]]
    assert found[new["est"]] == OLD.encode_inside(["est"])[0]


def test_rows_are_means_in_float64_and_copies_are_exact() -> None:
    table = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 5.0], [0.1, 1e-7]])
    found = composed(table, [[3], [1, 2], [0], [1, 1, 2, 2]])
    torch.testing.assert_close(found, torch.tensor([[0.1, 1e-7], [2, 3.5], [0, 0], [2, 3.5]]), rtol=0, atol=0)
    bias = composed(torch.tensor([1.0, 2.0, 4.0]), [[2], [0, 1]])
    assert bias.tolist() == [4.0, 1.5]


def test_bytes_and_letters_that_the_old_vocabulary_lacks_start_as_the_unknown() -> None:
    settings = TokenizerConfig(vocab_size=30, byte_fallback=False)
    old = Tokenizer.learn(["low lower new newer"] * 9, settings)
    found = dict(zip(NEW.pieces(range(NEW.vocab_size)), composition(old, NEW), strict=True))
    assert found["<0x41>"] == [UNK_ID]
    assert found["ö"] == [UNK_ID]


@pytest.mark.parametrize("share", CHOICES["share_embeddings"])
def test_every_table_of_the_vocabulary_gets_new_rows_and_nothing_else_changes(tmp_path: Path, share: str) -> None:
    joint = share == "all"
    src_old, tgt_old = OLD, OLD if joint else NEW
    src_new, tgt_new = NEW, NEW if joint else OLD
    sizes: dict[str, Any] = dict(d_model=6, n_heads=2, d_ff=7, n_encoder_layers=1, n_decoder_layers=1)
    options: dict[str, Any] = {**sizes, "share_embeddings": share, "generator_bias": True}
    before = ModelConfig(**options, src_vocab_size=src_old.vocab_size, tgt_vocab_size=tgt_old.vocab_size)
    after = ModelConfig(**options, src_vocab_size=src_new.vocab_size, tgt_vocab_size=tgt_new.vocab_size)
    model = Transformer(before)
    torch.nn.init.normal_(model.generator.bias)
    manifest = {"files": {"model.safetensors": {"sha256": "5ea1"}}}
    bundle = dragoman.bundle.Bundle(None, model, src_old, tgt_old, manifest)  # type: ignore[arg-type]
    weights, said = adapt(bundle, "old", (src_new, tgt_new), tmp_path)
    assert {name: tensor.shape for name, tensor in weights.items()} == {
        name: tensor.shape for name, tensor in shapes(after).items()
    }
    tables = {"src_embed.weight": (src_old, src_new), "tgt_embed.weight": (tgt_old, tgt_new),
              "generator.weight": (tgt_old, tgt_new), "generator.bias": (tgt_old, tgt_new)}  # fmt: skip
    for name, tensor in untied(model).items():
        if name not in tables:
            assert torch.equal(weights[name], tensor), name
            continue
        rows = composition(*tables[name])
        for i in (0, 3, 50, len(rows) - 1):
            assert torch.allclose(weights[name][i], tensor[rows[i]].mean(0)), (name, i)
    noted = json.loads((tmp_path / "parent.json").read_text(encoding="utf-8"))
    n_rows = src_new.vocab_size + (0 if joint else tgt_new.vocab_size)
    assert noted["copied_rows"] + noted["composed_rows"] == n_rows
    assert f"{noted['copied_rows']:,} rows copied, {noted['composed_rows']:,} composed" in said
    assert (noted["name"], noted["weights_sha256"]) == ("old", "5ea1")


def started_with(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """The weights that the next trainings begin with, as they begin."""
    seen: list[dict[str, torch.Tensor]] = []
    real = loop.train_step

    def step(model: Any, *rest: Any) -> Any:
        if not seen:
            seen.append({name: tensor.clone() for name, tensor in untied(model).items()})
        return real(model, *rest)

    monkeypatch.setattr(loop, "train_step", step)
    return seen


def test_with_the_same_subwords_the_first_step_sees_the_very_weights_of_the_parent(
    tiny_run: Path, new_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = started_with(monkeypatch)
    run = tmp_path / "tuned"
    dragoman.train(src=new_text / "train.en", tgt=new_text / "train.de", out=run, from_run=tiny_run,
                   overrides=["train.max_steps=2", "train.device=cpu"])  # fmt: skip
    parent, tuned = load_bundle(tiny_run), load_bundle(run)
    torch.testing.assert_close(seen[0], untied(parent.model), rtol=0, atol=0)
    assert tuned.src_tokenizer == parent.src_tokenizer
    assert tuned.config.model == parent.config.model
    assert tuned.config.train.lr == 3e-4  # a fifth of what a training from scratch takes
    err = capsys.readouterr().err
    assert f"starting from {tiny_run}; its subwords are kept" in err
    assert "before fine-tuning: perplexity " in err
    assert tuned.manifest["from"] == {
        "name": "tiny", "weights_sha256": sha256(tiny_run / "bundle/model.safetensors"), "languages": [["en", "de"]],
    }  # fmt: skip
    assert str(tiny_run.parent) not in (run / "bundle/manifest.json").read_text(encoding="utf-8")


def test_fine_tuning_learns_in_fewer_steps_than_from_scratch_and_the_old_text_is_not_forgotten(
    process: Command, tiny_run: Path, new_text: Path, corpus: Any
) -> None:
    rates = ("--set", "train.lr=2e-3", "--set", "train.max_steps=120", "--set", "train.ema=0")
    done = process("train", *FILES, *BRIEF, *rates, "--from-run", tiny_run, "--out", "tuned", cwd=new_text)
    assert done.status == 0, done.err
    done = process("train", *FILES, *BRIEF, *rates, "--out", "scratch", "--set", "model.d_model=48",
                   "--set", "model.n_heads=2", "--set", "model.d_ff=64", "--set", "model.n_encoder_layers=1",
                   "--set", "model.n_decoder_layers=1", "--set", "data.tokenizer.vocab_size=400",
                   "--set", "model.dropout=0", cwd=new_text)  # fmt: skip
    assert done.status == 0, done.err

    def bleu(run: Path, folder: Path) -> float:
        found = dragoman.evaluate(run, src=folder / "valid.en", ref=folder / "valid.de", quiet=True)
        return found.scores[0].value

    tuned, scratch, parent = (bleu(run, new_text) for run in (new_text / "tuned", new_text / "scratch", tiny_run))
    assert tuned > parent + 5
    assert tuned > scratch + 20
    old = bleu(new_text / "tuned", corpus.src.parent)
    assert old > 0.5 * bleu(tiny_run, corpus.src.parent)


def test_new_subwords_are_learned_from_the_new_text_and_said(process: Command, tiny_run: Path, new_text: Path) -> None:
    done = process("train", *FILES, *BRIEF, "--from-run", tiny_run, "--new-subwords", "--out", "tuned",
                   "--set", "train.max_steps=40", "--set", "train.lr=2e-3", cwd=new_text)  # fmt: skip
    assert done.status == 0, done.err
    parent, tuned = load_bundle(tiny_run), load_bundle(new_text / "tuned")
    noted = tuned.manifest["from"]
    assert noted["copied_rows"] + noted["composed_rows"] == tuned.src_tokenizer.vocab_size
    assert noted["composed_rows"] > 10
    assert f"new subwords: {noted['copied_rows']} rows copied, {noted['composed_rows']} composed" in done.err
    assert tuned.src_tokenizer.encode(["the bird"])[0] != parent.src_tokenizer.encode(["the bird"])[0]
    last = [json.loads(line) for line in (new_text / "tuned/log.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert last[-1]["bleu"] > 20


def test_a_fine_tuned_run_resumes_by_itself_bit_for_bit(
    process: Command, tiny_run: Path, new_text: Path, tmp_path: Path
) -> None:
    def train(out: str, *more: str) -> None:
        done = process("train", "--out", out, *more, cwd=new_text)
        assert done.status == 0, done.err

    # The precision is named, as the automatic choice times both, and two trainings may differ beside other work.
    named = ("--set", "train.precision=fp32")
    settings = ("--set", "train.schedule=inverse_sqrt", "--set", "train.warmup_steps=5", *named, *BRIEF)
    start = (*FILES, *settings, "--from-run", str(tiny_run), "--new-subwords")
    train("straight", *start, "--set", "train.max_steps=30")
    train("stopped", *start, "--set", "train.max_steps=10")
    train("stopped", "--resume", "--set", "train.max_steps=30")
    one, two = ((new_text / name / "bundle/model.safetensors").read_bytes() for name in ("straight", "stopped"))
    assert one == two
    manifests = [load_bundle(new_text / name).manifest["from"] for name in ("straight", "stopped")]
    assert manifests[0] == manifests[1]


@pytest.mark.parametrize("decode", [{}, {"beam_size": 5}, {"max_extra_tokens": 50}], ids=str)  # 50 is the default
def test_a_configuration_gives_what_the_parent_does_not(
    tiny_run: Path, tiny: Any, tmp_path: Path, decode: dict[str, Any]
) -> None:
    mapping = tiny(max_steps=10, lr=5e-3)
    mapping["model"] = {"dropout": 0.2}
    del mapping["data"]["tokenizer"], mapping["decode"]
    mapping |= {"decode": decode} if decode else {}
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    for i, given in enumerate((config, dragoman.Config.from_mapping(mapping))):
        run = dragoman.train(given, out=tmp_path / str(i), from_run=tiny_run / "bundle", quiet=True).run
        tuned, parent = load_bundle(run), load_bundle(tiny_run)
        assert tuned.config.model == parent.config.model.model_copy(update={"dropout": 0.2})
        assert tuned.config.data.tokenizer == parent.config.data.tokenizer
        assert parent.config.decode.max_extra_tokens == 10
        assert tuned.config.decode == replace(parent.config.decode, **decode)
        assert tuned.config.train.lr == 5e-3
        assert tuned.manifest["from"]["name"] == "bundle"


def test_the_noise_of_the_parent_is_inherited(tiny: Any) -> None:
    """Without it, a fine-tuned run forgot capitals and masks, and its bundle had no masks any more."""
    mapping = tiny()
    mapping["data"]["noise"] = {"case": 0.1, "inserts": 0.2}
    parent = dragoman.Config.from_mapping(mapping)
    for noise, case in ((None, 0.1), ({}, 0.1), ({"case": 0}, 0)):
        own = {"data": {"train": mapping["data"]["train"]} | ({} if noise is None else {"noise": noise})}
        inherited = dragoman.Config.from_mapping(inherit(own, parent)).data.noise
        assert (inherited.case, inherited.inserts) == (case, 0.2)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--set", "model.d_ff=99"], "model.d_ff = 99, but the run to start from has 64: leave it out"),
        (["--set", "model.preset=small"], "model.d_model = 256, but the run to start from has 48: leave it out"),
        (["--set", "model.norm=pre"], "model.norm = 'pre', but the run to start from has 'post'"),
        (
            ["--set", "data.tokenizer.kind=unigram"],
            "data.tokenizer.kind = 'unigram', but the run to start from has 'bpe': leave it out, or learn new subwords "
            "with --new-subwords",
        ),
        (["--new-subwords", "--set", "data.tokenizer.joint=false"], "model.share_embeddings = 'all' needs one vocab"),
        (["--set", "model.dd=1"], "unknown setting model.dd"),
    ],
)
def test_what_does_not_fit_the_parent_is_refused(
    command: Command, tiny_run: Path, new_text: Path, listing: Callable[[Path], list[str]], args: list[str], says: str
) -> None:
    before = listing(new_text)
    done = command("train", *FILES, "--from-run", tiny_run, "--out", "new", *args, cwd=new_text)
    assert done.status == 2
    assert says in done.error
    assert listing(new_text) == before


def test_a_fine_tuning_that_fails_before_it_begins_leaves_nothing(tiny_run: Path, new_text: Path) -> None:
    def build(sizes: ModelConfig) -> Any:
        raise ValueError("no such model")

    run = new_text / "tuned"
    with pytest.raises(ValueError, match="no such model"):
        dragoman.train(src=new_text / "train.en", tgt=new_text / "train.de", out=run, from_run=tiny_run, build=build,
                       overrides=["train.device=cpu"], quiet=True)  # fmt: skip
    assert not run.exists()


def test_an_invalid_parent_is_refused(command: Command, new_text: Path, listing: Callable[[Path], list[str]]) -> None:
    before = listing(new_text)
    assert "no such run" in command("train", *FILES, "--from-run", "nowhere", "--out", "new", cwd=new_text).error
    assert "--new-subwords belongs to fine-tuning" in command("train", *FILES, "--new-subwords", cwd=new_text).error
    assert "belongs to --resume" in command("train", *FILES, "--accept-changed-text", cwd=new_text).error
    assert listing(new_text) == before
