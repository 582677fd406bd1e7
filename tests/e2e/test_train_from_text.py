"""Two text files in, a translator out: what is chosen, held out, dropped and written down."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman.data.batching import epoch_batches
from dragoman.data.store import Store
from dragoman.training.options import TrainOptions

Command = Callable[..., Any]

SMALL = ("--set", "model.d_model=16", "--set", "model.d_ff=16", "--set", "model.n_encoder_layers=1",
         "--set", "model.n_decoder_layers=1", "--set", "data.tokenizer.vocab_size=400", "--set", "train.device=cpu",
         "--set", "decode.max_extra_tokens=5")  # fmt: skip


def events(run: Path, name: str) -> list[dict[str, Any]]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [event for event in map(json.loads, lines) if event["event"] == name]


def test_from_two_files_alone_sizes_are_chosen_and_one_percent_is_held_out(
    process: Command, tmp_path: Path, make_corpus: Callable[..., Any]
) -> None:
    make_corpus(tmp_path, 400)
    done = process("train", "--src", "train.en", "--tgt", "train.de", *SMALL, "--set", "train.max_steps=12",
                   cwd=tmp_path)  # fmt: skip
    assert done.status == 0, done.err
    assert done.out == b"runs/train\n"
    told = re.search(r"no validation set: 4 of 400 pairs are held out(?:; (\d+) near twins)?", done.err)
    assert told is not None
    n = 396 - int(told[1] or 0)
    assert f"train: {n} pairs read, {n} kept" in done.err
    assert "valid: 4 pairs read, 4 kept" in done.err
    run = tmp_path / "runs/train"
    held_out = zip(*Store.open(run / "store/valid").texts(range(4)), strict=True)
    text = [(tmp_path / name).read_text(encoding="utf-8").split("\n")[:-1] for name in ("train.en", "train.de")]
    assert set(held_out) <= set(zip(*text, strict=True))
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    assert (config["data"]["src_lang"], config["data"]["tgt_lang"]) == ("en", "de")
    assert config["data"]["valid"] is None
    assert (config["model"]["d_model"], config["model"]["n_heads"], config["model"]["dropout"]) == (16, 4, 0.3)
    assert (config["train"]["max_steps"], config["train"]["warmup_steps"]) == (12, 1)
    assert config["train"]["precision"] in ("fp32", "bf16")  # no longer "auto"
    assert sorted(path.name for path in run.iterdir()) == [
        "bundle", "checkpoints", "config.yaml", "log.jsonl", "samples.txt", "store",
    ]  # fmt: skip
    assert process("translate", "runs/train", stdin=b"a dog\n", cwd=tmp_path).out.count(b"\n") == 1
    assert (run / "bundle/config.yaml").read_bytes() == (run / "config.yaml").read_bytes()


@pytest.mark.parametrize(
    ("n_pairs", "preset", "vocab_size"), [(300, 128, 2000), (20_000, 256, 8000), (200_000, 256, 16000)]
)
def test_more_text_gets_a_larger_model(n_pairs: int, preset: int, vocab_size: int) -> None:
    from dragoman.config import Config
    from dragoman.training.defaults import choose_sizes

    given = choose_sizes(n_pairs)
    given["data"]["train"] = {"src": "a.en", "tgt": "a.de"}
    config = Config.from_mapping(given)
    assert (config.model.d_model, config.data.tokenizer.vocab_size) == (preset, vocab_size)


def test_a_transformer_nobody_configured_is_pre_norm(tmp_path: Path, make_corpus: Callable[..., Any]) -> None:
    from dragoman.config import Config
    from dragoman.errors import ConfigError
    from dragoman.progress import Ticker
    from dragoman.training.defaults import resolve

    corpus = make_corpus(tmp_path, 20)

    def chosen(*overrides: str) -> Config:
        return resolve(None, TrainOptions(src=corpus.src, tgt=corpus.tgt, overrides=overrides), Ticker(quiet=True))[0]

    assert chosen().model.norm == "pre"
    assert chosen("model.norm=post").model.norm == "post"
    assert chosen("model.architecture=lstm").model.norm == "post"  # it has no such setting: this is the default
    assert chosen().train.lr == 1.5e-3
    assert chosen("train.schedule=noam").train.lr is None  # there it would be a factor
    assert chosen("train.schedule=noam", "train.lr=2.0").train.lr == 2.0
    with pytest.raises(ConfigError, match="model"):
        chosen("model=3")


def test_how_long_to_train_follows_the_corpus_and_what_was_said(tiny_run: Path) -> None:
    from dragoman.config import Config
    from dragoman.training.defaults import choose_steps

    store = Store.open(tiny_run / "store/train")
    config = Config.from_mapping({"data": {"train": {"src": "a", "tgt": "b"}}, "train": {"batch_tokens": 50}})
    n_tokens = sum(max(len(side) for side in store.pair(i)) + 1 for i in range(len(store)))
    chosen = choose_steps(config, store, ()).train
    assert chosen.max_steps == max(2000, math.ceil(30 * n_tokens / 50))
    assert chosen.warmup_steps == min(4000, chosen.max_steps // 10)
    assert chosen.validate_every == chosen.save_every == max(100, chosen.max_steps // 12)
    config = Config.from_mapping({**config.model_dump(), "train": {"batch_tokens": 5}})
    assert choose_steps(config, store, ()).train.max_steps == math.ceil(30 * n_tokens / 5)
    assert choose_steps(config, store, (), n_ranks=4).train.max_steps == max(2000, math.ceil(30 * n_tokens / 5 / 4))
    for epochs in (1, 4):  # what is asked for is counted out: the last batches of an epoch are not full
        config = Config.from_mapping({**config.model_dump(), "train": {"batch_tokens": 50, "max_epochs": epochs}})
        batches = sum(1 for _ in epoch_batches(store.src_lengths(), store.tgt_lengths(), 50, config.train.seed, 0))
        assert batches > n_tokens / 50
        chosen = choose_steps(config, store, ()).train.max_steps
        assert chosen == math.ceil(1.05 * epochs * batches)  # the rate falls in time
    config = Config.from_mapping({**config.model_dump(), "train": {"batch_tokens": 10**6, "max_epochs": 1}})
    assert choose_steps(config, store, ()).train.max_steps == 2  # one more than those of the warm-up
    said = ["train.max_steps=50", "train.save_every=7"]
    config = Config.from_mapping({**config.model_dump(), "train": {"max_steps": 50, "save_every": 7}})
    kept = choose_steps(config, store, said).train
    assert (kept.max_steps, kept.warmup_steps, kept.save_every, kept.validate_every) == (50, 5, 7, 100)


def test_an_over_long_line_is_dropped_and_counted(
    process: Command, tmp_path: Path, make_corpus: Callable[..., Any]
) -> None:
    make_corpus(tmp_path, 150)
    for name in ("train.en", "train.de"):
        lines = (tmp_path / name).read_text(encoding="utf-8").split("\n")
        lines[3] = "dog " * 100_000 if name == "train.en" else "hund"
        lines[5] = " "
        (tmp_path / name).write_bytes("\n".join(lines).encode())
    done = process(
        "train", "--src", "train.en", "--tgt", "train.de", "--valid-src", "valid.en", "--valid-tgt", "valid.de", *SMALL,
        "--set", "train.max_steps=2", "--out", "x", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "train: 150 pairs read, 148 kept; dropped: 1 with an empty side, 1 too long" in done.err
    assert len(Store.open(tmp_path / "x/store/train")) == 148


def test_a_python_call_trains_evaluates_and_translates_as_the_command_line_does(
    tmp_path: Path, corpus: Any, tiny: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    trained = dragoman.train(dragoman.Config.from_mapping(tiny(max_steps=20)), out=tmp_path / "x", quiet=True)
    assert capsys.readouterr() == ("", "")
    assert (trained.run, trained.reason, trained.step, trained.signal) == (tmp_path / "x", "max_steps", 20, None)
    assert trained.validation is not None
    translator = dragoman.Translator.load(trained.run)
    found = translator.translate(["the dog", ""], beam_size=5)
    assert [type(translation) for translation in found] == [dragoman.Translation] * 2
    assert found[1].text == ""
    evaluation = dragoman.evaluate(translator, src=corpus.valid_src, ref=corpus.valid_tgt)
    assert [score.name for score in evaluation.scores] == ["BLEU", "chrF2", "TER"]
    assert len(evaluation.translations) == 20
    again = dragoman.evaluate(str(trained.run), src=corpus.valid_src, ref=corpus.valid_tgt, beam_size=1, guard=False)
    validation = trained.validation
    assert again.scores[0].value == pytest.approx(validation.bleu)  # greedy, on the same set, as it is found
    assert again.scores[1].value == pytest.approx(validation.chrf)


def test_the_bundle_says_which_weights_it_holds(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    for settings, says in (
        (dict(average=2, ema=0.9), "average of the last 2 checkpoints"),
        (dict(average=0, ema=0.9), "exponential moving average, decay 0.9"),
        (dict(average=0), "best by validation loss, BLEU being below 1, step "),  # after 20 steps it is noise
    ):
        run = tmp_path / says
        mapping = tiny(max_steps=20, **settings)
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump(mapping), encoding="utf-8")
        dragoman.train(config, out=run, quiet=True)
        manifest = dragoman.Translator.load(run).manifest
        assert manifest["weights"].startswith(says)
        assert events(run, "bundle")[0]["weights"] == manifest["weights"]
        assert manifest["validation"]["bleu"] == events(run, "bundle")[0]["bleu"]


def test_the_same_seed_gives_the_same_run_and_another_one_does_not(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    weights = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        config = dragoman.Config.from_mapping(tiny(max_steps=10, seed=seed))
        dragoman.train(config, out=tmp_path / name, quiet=True)
        weights.append((tmp_path / name / "bundle/model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def test_separate_vocabularies_and_sampling_work_end_to_end(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    mapping = tiny(max_steps=10)
    mapping["model"]["share_embeddings"] = "decoder"
    mapping["data"]["tokenizer"] |= {"joint": False, "sampling": 0.1, "kind": "unigram", "vocab_size": 300}
    run = dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "x", quiet=True).run
    assert sorted(path.name for path in (run / "bundle").iterdir()) == [
        "config.yaml", "manifest.json", "model.safetensors", "src.spm", "tgt.spm", "words.hashes",
    ]  # fmt: skip
    assert len(dragoman.Translator.load(run).translate(["the dog", "a cat"])) == 2


def test_resuming_says_that_the_files_that_were_named_are_not_read_again(
    process: Command, tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    config = tmp_path / "first.yaml"
    config.write_text(yaml.safe_dump(tiny(max_steps=10)), encoding="utf-8")
    assert process("train", config, cwd=tmp_path).out == b"runs/first\n"
    done = process("train", config, "--resume", "--set", "train.max_steps=20", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "resuming with runs/first/config.yaml and overrides alone" in done.err
    assert "resuming at step 10" in done.err
    assert [event["step"] for event in events(tmp_path / "runs/first", "train")] == [5, 10, 15, 20]


def test_the_number_of_subwords_that_was_asked_for_may_be_named_again_where_the_text_yields_fewer(
    tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    """The same command with --resume was refused: "= 4000, but the run has 521"."""
    config, run = dragoman.Config.from_mapping(tiny(max_steps=2)), tmp_path / "x"
    asked = "data.tokenizer.vocab_size=4000"
    dragoman.train(config, out=run, overrides=[asked], quiet=True)
    learned = dragoman.Config.from_yaml(run / "config.yaml").data.tokenizer.vocab_size
    assert learned < 4000
    assert dragoman.train(config, out=run, overrides=[asked, "train.max_steps=4"], resume=True, quiet=True).step == 4
    assert dragoman.Config.from_yaml(run / "config.yaml").data.tokenizer.vocab_size == learned
    with pytest.raises(dragoman.ConfigError, match=f"vocab_size = 3999, but the run has {learned}: it cannot change"):
        dragoman.train(out=run, overrides=["data.tokenizer.vocab_size=3999"], resume=True, quiet=True)


def test_as_many_epochs_as_are_asked_for(process: Command, tmp_path: Path, make_corpus: Callable[..., Any]) -> None:
    make_corpus(tmp_path, 150)
    done = process(
        "train", "--src", "train.en", "--tgt", "train.de", "--valid-src", "valid.en", "--valid-tgt", "valid.de", *SMALL,
        "--set", "train.max_epochs=3", "--set", "train.batch_tokens=1000", "--out", "x", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.err
    log = [json.loads(line) for line in (tmp_path / "x/log.jsonl").read_text(encoding="utf-8").split("\n") if line]
    assert [event["reason"] for event in log if event["event"] == "end"] == ["max_epochs"]


@pytest.mark.parametrize("setting", ["data.tokenizer.sampling=0.5", "data.noise.inserts=1"])
def test_as_many_epochs_as_are_asked_for_of_text_that_grows_in_training(
    setting: str, tmp_path: Path, make_corpus: Callable[..., Any]
) -> None:
    """Its batches were counted by the lengths before sampling and noise, so the steps ended before the epochs."""
    corpus = make_corpus(tmp_path, 300)
    trained = dragoman.train(
        src=corpus.src, tgt=corpus.tgt, valid_src=corpus.valid_src, valid_tgt=corpus.valid_tgt, out=tmp_path / "x",
        overrides=[*SMALL[1::2], "train.max_epochs=3", "train.batch_tokens=200", setting], quiet=True,
    )  # fmt: skip
    assert trained.reason == "max_epochs"
    max_steps = dragoman.Config.from_yaml(trained.run / "config.yaml").train.max_steps
    assert trained.step > 0.85 * max_steps  # the rate falls in time


def test_a_section_that_is_set_as_a_whole_counts_as_said(
    process: Command, tmp_path: Path, make_corpus: Callable[..., Any]
) -> None:
    make_corpus(tmp_path, 400)
    given = ("--set", "train={max_steps: 7, warmup_steps: 3}")
    done = process("train", "--src", "train.en", "--tgt", "train.de", *SMALL, *given, "--out", "x", cwd=tmp_path)
    assert done.status == 0, done.err
    config = yaml.safe_load((tmp_path / "x/config.yaml").read_text(encoding="utf-8"))
    assert (config["train"]["max_steps"], config["train"]["warmup_steps"]) == (7, 3)


def test_paths_need_not_be_utf_8(process: Command, tmp_path: Path, make_corpus: Callable[..., Any]) -> None:
    make_corpus(tmp_path, 400)
    names = {side: os.fsdecode(b"tr\xe4in.") + side for side in ("en", "de")}
    try:
        for side, name in names.items():
            (tmp_path / f"train.{side}").rename(tmp_path / name)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    run = os.fsdecode(b"l\xe4ufe")
    begun = ("train", "--src", names["en"], "--tgt", names["de"], *SMALL, "--set", "train.max_steps=3", "--out", run)
    done = process(*begun, cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.out == b"l\xe4ufe\n"
    assert process("translate", run, stdin=b"a dog\n", cwd=tmp_path).out.count(b"\n") == 1
    done = process("train", "--out", run, "--resume", "--set", "train.max_steps=5", cwd=tmp_path)
    assert done.status == 0, done.err


def test_a_resume_that_comes_to_nothing_leaves_the_configuration_as_it_was(
    tmp_path: Path, tiny: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = dragoman.train(dragoman.Config.from_mapping(tiny(max_steps=10)), out=tmp_path / "x", quiet=True).run
    before = (run / "config.yaml").read_bytes()
    changed = ["train.max_steps=20", "train.tensorboard=true"]
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.training.preparation.find_spec", lambda name: None)
        with pytest.raises(
            dragoman.ConfigError, match=r"train.tensorboard needs tensorboard, .*: pip install tensorboard"
        ):
            dragoman.train(out=run, resume=True, overrides=changed, quiet=True)
    assert (run / "config.yaml").read_bytes() == before
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.training.run.RunLog", lambda *_: (_ for _ in ()).throw(dragoman.DataError("no room")))
        with pytest.raises(dragoman.DataError, match="no room"):
            dragoman.train(out=run, resume=True, overrides=changed[:1], quiet=True)
    assert (run / "config.yaml").read_bytes() == before
    assert dragoman.train(out=run, resume=True, overrides=changed[:1], quiet=True).step == 20
