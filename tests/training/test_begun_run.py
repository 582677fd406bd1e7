"""A run whose process died before the first checkpoint: begun again, with the text that was prepared."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dragoman
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.files import sha256
from dragoman.model.build import EncoderDecoder, build
from dragoman.progress import Ticker
from dragoman.training import folder, loop, preparation
from dragoman.training import run as training
from dragoman.training.finetune import PARENT, PARENT_WORDS
from dragoman.training.folder import ready_to_resume
from dragoman.training.log import RunLog


@pytest.fixture(scope="module")
def config(tiny: Callable[..., dict[str, Any]]) -> dragoman.Config:
    return dragoman.Config.from_mapping(tiny(max_steps=4, validate_every=2, save_every=2))


@pytest.fixture(scope="module")
def whole(config: dragoman.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    dragoman.train(config, out=run, quiet=True)
    return run


@pytest.fixture
def begun(whole: Path, tmp_path: Path) -> Path:
    """The same run as a kill in its first save leaves it."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    for name in ("checkpoints", "bundle"):
        shutil.rmtree(run / name)
    (run / "checkpoints/.step_00000002.0123abcd.tmp").mkdir(parents=True)
    (run / "checkpoints/.step_00000002.0123abcd.tmp/model.safetensors").write_bytes(b"half")
    return run


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_the_precision_that_was_timed_stays_whatever_a_second_timing_says(
    device: str, config: dragoman.Config, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command could take the other one beside other work, and gave other weights without a word."""
    resolve = training.resolve_precision
    monkeypatch.setattr(
        training, "resolve_precision", lambda asked, on: "bf16" if asked == "auto" else resolve(asked, on)
    )
    settings = ["train.precision=auto", f"train.device={device}"]
    assert dragoman.Config.from_yaml(begun / "config.yaml").train.precision == "fp32"
    dragoman.train(config, out=begun, overrides=settings, quiet=True)
    assert dragoman.Config.from_yaml(begun / "config.yaml").train.precision == "fp32"


def test_a_precision_that_is_named_counts(config: dragoman.Config, begun: Path) -> None:
    dragoman.train(config, out=begun, overrides=["train.precision=bf16"], quiet=True)
    assert dragoman.Config.from_yaml(begun / "config.yaml").train.precision == "bf16"


@pytest.mark.parametrize("resume", [False, True], ids=["the same call", "--resume"])
def test_it_becomes_the_undisturbed_run_and_its_text_is_not_prepared_again(
    resume: bool, config: dragoman.Config, whole: Path, begun: Path, listing: Callable[[Path], list[str]]
) -> None:
    before = times(begun / "store")
    dragoman.train(None if resume else config, out=begun, resume=resume, quiet=True)
    assert times(begun / "store") == before
    assert listing(begun) == listing(whole)
    for name in ("bundle/model.safetensors", "bundle/manifest.json", "samples.txt", "config.yaml"):
        assert sha256(begun / name) == sha256(whole / name), name
    assert (begun / "log.jsonl").read_text(encoding="utf-8").count('"event": "bundle"') == 1


def test_settings_of_training_may_be_others(config: dragoman.Config, begun: Path) -> None:
    before = times(begun / "store")
    dragoman.train(config, out=begun, overrides=["model.d_ff=32"], quiet=True)
    assert times(begun / "store") == before
    assert dragoman.Config.from_yaml(begun / "config.yaml").model.d_ff == 32


def test_other_settings_of_data_or_another_text_are_refused(
    config: dragoman.Config, begun: Path, tmp_path: Path, corpus: Any
) -> None:
    before = times(begun / "store"), sha256(begun / "config.yaml")
    with pytest.raises(ConfigError, match=r"beginning of a run with other text .*: delete it, or choose another --out"):
        dragoman.train(config, out=begun, overrides=["data.max_tokens=99"], quiet=True)
    other = tmp_path / "other.en"
    other.write_bytes(corpus.src.read_bytes().replace(b"dog", b"cat"))
    with pytest.raises(ConfigError, match="beginning of a run with other text"):
        dragoman.train(config, out=begun, overrides=[f"data.train.src={other}"], quiet=True)
    assert (times(begun / "store"), sha256(begun / "config.yaml")) == before


def test_text_behind_a_link_that_got_another_target_is_another_text(
    tiny: Callable[..., dict[str, Any]], whole: Path, tmp_path: Path, corpus: Any
) -> None:
    """Working trees of DVC and git-annex, and snapshots of Hugging Face, are links into a folder of versions."""
    link, other, run = tmp_path / "train.en", tmp_path / "other.en", tmp_path / "linked"
    link.symlink_to(corpus.src)
    mapping = tiny(max_steps=2, validate_every=2, save_every=2)
    mapping["data"]["train"]["src"] = str(link)
    config = dragoman.Config.from_mapping(mapping)
    dragoman.train(config, out=run, quiet=True)
    other.write_bytes(corpus.src.read_bytes().replace(b"dog", b"cat"))
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(DataError, match=r"train\.en has changed since"):
        dragoman.train(out=run, resume=True, overrides=["train.max_steps=4"], quiet=True)
    for name in ("checkpoints", "bundle"):
        shutil.rmtree(run / name)
    with pytest.raises(ConfigError, match="beginning of a run with other text"):
        dragoman.train(config, out=run, quiet=True)


def test_a_run_that_starts_from_another_names_it_again(whole: Path, config: dragoman.Config, begun: Path) -> None:
    (begun / "parent.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BundleError, match="leave out --resume and name the run to start from again"):
        dragoman.train(out=begun, resume=True, quiet=True)


def test_a_damaged_file_of_the_prepared_text_is_noticed(config: dragoman.Config, begun: Path) -> None:
    (begun / "store/joint.spm").write_bytes(b"damaged")
    with pytest.raises(ConfigError, match="beginning of a run with other text"):
        dragoman.train(config, out=begun, quiet=True)


def test_a_longer_time_names_the_steps_that_the_run_makes_in_it_at_its_own_speed(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of 4 steps in 6 of its 60 seconds was told 8 steps for two minutes."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    settings = (run / "config.yaml").read_text(encoding="utf-8")
    assert settings.count("max_minutes: null") == 1
    (run / "config.yaml").write_text(settings.replace("max_minutes: null", "max_minutes: 1"), encoding="utf-8")
    for seconds, said in (
        (6.0, "resume with --set train.max_steps=80\n"),
        (120.0, "resume with --set train.max_steps=8\n"),
    ):
        with (run / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(f'{{"event": "end", "step": 4, "reason": "max_steps", "seconds": {seconds}}}\n')
        ready_to_resume(run, ["train.max_minutes=2"], False, Ticker())
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["train.max_minutes=null"], "train.max_minutes has changed, and with it the rest of the cosine schedule: at "
         "step 5 the learning rate is 0.001 instead of 0.0005\n"),
        (["train.max_minutes=2"], "train.max_minutes has changed, and with it the rest of the cosine schedule: at "
         "step 5 the learning rate is 0.00085 instead of 0.0005\n"),
        (["train.max_minutes=null", "train.max_steps=12"], "train.max_steps and train.max_minutes have changed, and "
         "with them the rest of the cosine schedule: at step 5 the learning rate is 0.00071 instead of 0.0005\n"),
        (["train.max_steps=100000"], "train.max_steps has changed, and with it the rest of the cosine schedule\n"),
        (["train.max_minutes=1.001"], ""),
        (["train.patience=3"], ""),
    ],
)  # fmt: skip
def test_a_resumed_cosine_says_to_what_rate_other_limits_bring_it(
    overrides: list[str], said: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the minutes, a run went back to nearly its peak rate, and nobody was told."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    config = dragoman.Config.from_yaml(run / "config.yaml")
    cosine = dict(schedule="cosine", lr=1e-3, warmup_steps=1, max_steps=1000, max_minutes=1)
    config = config.model_copy(update={"train": config.train.model_copy(update=cosine)})
    (run / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
    state = run / "checkpoints/step_00000004/state.json"
    state.write_text(json.dumps({**json.loads(state.read_text(encoding="utf-8")), "seconds": 30}), encoding="utf-8")
    ready_to_resume(run, overrides, False, Ticker())
    lines = [line for line in capsys.readouterr().err.splitlines(keepends=True) if "cosine" in line]
    assert lines == ([said] if said else [])


def test_an_interrupt_before_the_first_checkpoint_says_what_stays_and_how_to_continue(
    config: dragoman.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second Ctrl-C of a training said that nothing was saved."""
    run = tmp_path / "run"

    def interrupted(where: ModuleType, function: str) -> str:
        def interrupt(*args: Any, **more: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(where, function, interrupt)
            with pytest.raises(KeyboardInterrupt):
                dragoman.train(config, out=run)
        return capsys.readouterr().err

    assert "stopped before training began: nothing was saved" in interrupted(training, "prepare")
    assert not run.exists()
    said = interrupted(loop, "train_step")
    assert f"the same command begins the training again, with the text prepared in {run}\n" in said
    assert "nothing was saved" not in said
    before = times(run / "store")
    assert dragoman.train(config, out=run, quiet=True).step == 4
    assert times(run / "store") == before


STRAY = '{"event": "train", "step": 9, "loss": 1.0}\n'


def test_a_training_that_fails_in_a_folder_with_a_stray_log_keeps_its_checkpoints_usable(
    config: dragoman.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It removed its own store and configuration, and its log began with that of another."""
    run, saves = tmp_path / "run", 0
    run.mkdir()
    (run / "log.jsonl").write_text(STRAY, encoding="utf-8")
    (run / "samples.txt").write_text("step 9\n", encoding="utf-8")
    real = loop.save

    def save(*args: Any) -> Any:
        nonlocal saves
        saves += 1
        if saves == 2:
            raise MemoryError
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save", save)
        with pytest.raises(MemoryError):
            dragoman.train(config, out=run, quiet=True)
    assert dragoman.train(out=run, resume=True, quiet=True).step == 4
    assert STRAY not in (run / "log.jsonl").read_text(encoding="utf-8")
    assert "step 9" not in (run / "samples.txt").read_text(encoding="utf-8")


def test_files_of_others_in_the_folder_outlive_a_training(config: dragoman.Config, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "tensorboard").mkdir(parents=True)
    (run / "tensorboard/events").write_text("mine", encoding="utf-8")
    assert dragoman.train(config, out=run, quiet=True).step == 4
    assert (run / "tensorboard/events").read_text(encoding="utf-8") == "mine"


def test_a_training_that_dies_after_a_stray_log_keeps_the_text_that_it_prepared(
    config: dragoman.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "log.jsonl").write_text(STRAY, encoding="utf-8")

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_step", fail)
        with pytest.raises(MemoryError):
            dragoman.train(config, out=run, quiet=True)
    before = times(run / "store")
    assert dragoman.train(config, out=run, quiet=True).step == 4
    assert times(run / "store") == before


@pytest.mark.parametrize("where", ["report_long_training", "validator"])
def test_the_log_of_an_earlier_attempt_outlives_a_training_that_is_refused(
    where: str, config: dragoman.Config, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [sha256(begun / name) for name in ("log.jsonl", "samples.txt")]

    def refuse(*_: Any, **__: Any) -> None:
        raise DataError("no")

    monkeypatch.setattr(training, where, refuse)
    with pytest.raises(DataError, match="no"):
        dragoman.train(config, out=begun, quiet=True)
    assert [sha256(begun / name) for name in ("log.jsonl", "samples.txt")] == before


def test_a_stray_log_outlives_a_training_that_is_refused_and_nothing_else_is_left(
    config: dragoman.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    (run / "store").mkdir(parents=True)
    (run / "store/notes").write_text("mine", encoding="utf-8")
    (run / "log.jsonl").write_text(STRAY, encoding="utf-8")

    def refuse(*_: Any, **__: Any) -> None:
        raise DataError("no")

    monkeypatch.setattr(training, "validator", refuse)
    with pytest.raises(DataError, match="no"):
        dragoman.train(config, out=run, quiet=True)
    assert sorted(path.name for path in run.rglob("*")) == ["log.jsonl", "notes", "store"]
    assert (run / "log.jsonl").read_text(encoding="utf-8") == STRAY


@pytest.mark.parametrize("has_config", [True, False])
def test_a_run_of_its_own_forgets_the_parent_of_an_attempt_that_died(
    has_config: bool, config: dragoman.Config, whole: Path, begun: Path, listing: Callable[[Path], list[str]]
) -> None:
    """It passed for a run that was fine-tuned, and knew no words."""
    (begun / PARENT).write_text('{"name": "other", "is_ready": false, "weights_sha256": "0"}', encoding="utf-8")
    (begun / PARENT_WORDS).write_bytes(b"")
    if not has_config:  # killed before that was written
        for name in ("config.yaml", "log.jsonl", "samples.txt"):
            (begun / name).unlink()
        shutil.rmtree(begun / "checkpoints")
    dragoman.train(config, out=begun, quiet=True)
    assert listing(begun) == listing(whole)
    assert sha256(begun / "bundle/manifest.json") == sha256(whole / "bundle/manifest.json")


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    "name",
    ["parent.json", "parent.words.hashes", "samples.txt", "log.jsonl", "launch", "store/joint.spm", "store/src.spm",
     "store/tgt.spm", "store/lexicon.json", "store/prepared.json"],
)  # fmt: skip
def test_files_of_others_with_names_of_a_run_are_refused_and_stay(
    name: str, in_memory: bool, config: dragoman.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    listing: Callable[[Path], list[str]],
) -> None:  # fmt: skip
    """Training removed some of them, and wrote into others."""
    monkeypatch.setattr(folder, "launch_name", lambda: "this call of torchrun")
    run = tmp_path / "project"
    (run / name).parent.mkdir(parents=True)
    (run / name).write_text('{"mine": "step 9"}\n', encoding="utf-8")
    before = listing(run)
    text = (["a dog"] * 200, ["ein Hund"] * 200) if in_memory else (config,)
    with pytest.raises(ConfigError, match=f"{re.escape(str(run / name))}: training would replace this file, which is "):
        dragoman.train(*text, out=run, quiet=True)
    assert listing(run) == before
    assert (run / name).read_text(encoding="utf-8") == '{"mine": "step 9"}\n'


@pytest.mark.parametrize(
    ("name", "mine"),
    [
        ("log.jsonl", '{"event": "user_logged_in", "level": "info"}\n'),
        ("log.jsonl", '{"event": "a step", "step": "two"}\n'),
        ("lock", ""),
        ("lock", "12\n"),
    ],
)
def test_a_log_or_a_lock_of_another_program_does_not_pass_for_a_training(
    name: str, mine: str, config: dragoman.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    listing: Callable[[Path], list[str]],
) -> None:  # fmt: skip
    (tmp_path / name).write_text(mine, encoding="utf-8")
    (tmp_path / "samples.txt").write_text("mine\n", encoding="utf-8")
    before = listing(tmp_path)
    monkeypatch.setattr(training, "resolve", None)  # refused before text is counted and steps are timed
    with pytest.raises(ConfigError, match=r"samples\.txt: training would replace this file, .* delete it or move it"):
        dragoman.train(config, out=tmp_path, quiet=True)
    assert listing(tmp_path) == before
    assert (tmp_path / name).read_text(encoding="utf-8") == mine


def test_prepared_text_of_another_run_behind_a_link_is_not_replaced(
    config: dragoman.Config, whole: Path, tmp_path: Path, listing: Callable[[Path], list[str]]
) -> None:
    """That run could never be resumed then."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run/store").symlink_to(whole / "store")
    before = {path: path.read_bytes() for path in (whole / "store").rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=r"store: is a link to prepared text of a run, .*; remove the link"):
        dragoman.train(config, out=tmp_path / "run", quiet=True, overrides=["data.max_tokens=99"])
    assert {path: path.read_bytes() for path in (whole / "store").rglob("*") if path.is_file()} == before
    (tmp_path / "run/store").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run/store").symlink_to(tmp_path / "elsewhere")
    assert dragoman.train(config, out=tmp_path / "run", quiet=True).step == 4


def test_a_log_that_a_training_has_written_frees_its_names(config: dragoman.Config, tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.event("train", 3, loss=1.5)
    (tmp_path / "samples.txt").write_text("step 3\n", encoding="utf-8")
    assert dragoman.train(config, out=tmp_path, quiet=True).step == 4


def test_a_launch_script_is_left_alone_without_torchrun(config: dragoman.Config, tmp_path: Path) -> None:
    (tmp_path / "launch").write_text("#!/bin/sh\n", encoding="utf-8")
    assert dragoman.train(config, out=tmp_path, quiet=True).step == 4
    assert (tmp_path / "launch").read_text(encoding="utf-8") == "#!/bin/sh\n"


def test_an_attempt_that_is_interrupted_after_a_killed_one_can_be_begun_again(
    config: dragoman.Config, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the killed one has prepared is half removed then, and passes for nobody else's."""
    for name in ("config.yaml", "log.jsonl", "samples.txt"):
        (begun / name).unlink()
    shutil.rmtree(begun / "checkpoints")
    (begun / PARENT).write_text("{}", encoding="utf-8")
    (begun / "store/lexicon.json").write_text("{}", encoding="utf-8")

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for function in ("learn_tokenizers", "build_store"):
        with monkeypatch.context() as patch:
            patch.setattr(preparation, function, interrupt)
            with pytest.raises(KeyboardInterrupt):
                dragoman.train(config, out=begun, overrides=["data.max_tokens=99"], quiet=True)
    assert dragoman.train(config, out=begun, quiet=True).step == 4
    assert not (begun / PARENT).exists()


def test_another_training_of_one_process_is_no_restart(
    config: dragoman.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script under torchrun that trains twice into one name got the first model as the result of the second."""
    monkeypatch.setattr(folder, "launch_name", lambda: "this call of torchrun")
    run = tmp_path / "run"

    def train_again(**changes: Any) -> int:
        return dragoman.train(config, out=run, quiet=True, **changes).step

    assert train_again() == 4
    with pytest.raises(ConfigError, match="already holds a run"):
        train_again(overrides=["train.max_steps=6"])
    # Whatever failed after the training has ended, torchrun runs the whole script again.
    monkeypatch.setattr(folder, "PROCESS", "the restarted one")
    assert train_again() == 4
    with pytest.raises(ConfigError, match="already holds a run"):
        train_again(overrides=["train.max_steps=6"])
    monkeypatch.setattr(folder, "PROCESS", "of another call")
    monkeypatch.setattr(folder, "launch_name", lambda: "another call of torchrun")
    with pytest.raises(ConfigError, match="already holds a run"):
        train_again()


def test_a_model_of_a_caller_is_trained_in_float32(config: dragoman.Config, tmp_path: Path) -> None:
    def double(model_config: dragoman.ModelConfig) -> EncoderDecoder:
        return build(model_config).double()

    dragoman.train(config, out=tmp_path / "run", quiet=True, build=double)
    assert len(dragoman.Translator.load(tmp_path / "run").translate(["a dog"])) == 1
