"""What is refused: exit status 2, one line on stderr that says what to do, and nothing half-written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman import cli
from dragoman.cli.commands import COMMANDS, load, names_files
from dragoman.errors import MOST_MESSAGE
from dragoman.files import MANIFEST, sealed_folder
from processes import start_code

Command = Callable[..., Any]
Listing = Callable[[Path], list[str]]


@pytest.fixture
def folder(tmp_path: Path, make_corpus: Callable[..., Any]) -> Path:
    """A folder with a toy corpus, in which the commands run."""
    make_corpus(tmp_path, 120)
    return tmp_path


@pytest.mark.parametrize("kind", ["an open quote", "a path", "an option", "a file of settings"])
def test_a_message_repeats_no_long_input(command: Command, tiny_run: Path, tmp_path: Path, kind: str) -> None:
    long = "x" * 60_000
    table, settings = tmp_path / "open.csv", tmp_path / "settings.yaml"
    table.write_text(f'a,b\n"{long}', encoding="ascii")
    settings.write_text(f"data: {long}\n", encoding="ascii")
    arguments: dict[str, tuple[Any, ...]] = {
        "an open quote": ("translate", tiny_run, table, "--column", "a", "--out", tmp_path / "out.csv"),
        "a path": ("translate", tiny_run, long),
        "an option": ("translate", tiny_run, table, "--beam-size", long),
        "a file of settings": ("train", settings),
    }
    done = command(*arguments[kind])
    assert "xxxx" in done.err
    assert len(done.err) < 3 * MOST_MESSAGE


@pytest.fixture
def refused(command: Command, folder: Path, listing: Listing) -> Callable[..., str]:
    """A function that runs a command, checks that it is refused and leaves nothing, and returns its one line."""

    def run(*args: Any, stdin: bytes = b"") -> str:
        before = {name: (folder / name).stat().st_mtime_ns for name in listing(folder)}
        done = command(*args, stdin=stdin, cwd=folder)
        assert done.status == 2, done
        assert done.out == b""
        assert {name: (folder / name).stat().st_mtime_ns for name in listing(folder) if name in before} == before
        assert listing(folder) == list(before)
        return done.error

    return run


TRAIN = ("train", "--src", "train.en", "--tgt", "train.de", "--out", "runs/new/x")


@pytest.mark.parametrize(
    ("side", "content", "says"),
    [
        ("train.en", None, ["train.en: no such file", "give the path of a text file"]),
        ("train.de", None, ["train.de: no such file"]),
        ("train.en", b"", ["train.en: the file is empty", "one sentence in each line"]),
        ("train.de", b"ein hund\n" * 119, ["train.en has 120 lines but train.de has 119", "find where they diverge"]),
        ("train.en", b"a dog\n" * 7, ["train.en has 7 lines but train.de has 120"]),
        ("train.de", b"ein hund\n" * 50 + b"gr\xfcn\n" + b"haus\n" * 69, ["train.de:51:3: byte 0xfc is not UTF-8"]),
        ("train.en", b"a dog\n" * 9 + b"a\0dog\n" + b"x\n" * 110, ["train.en:10:2: NUL byte"]),
        (
            "train.en",
            b" \n" * 120,
            ["train.en: no pair of this text has words on both sides"],
        ),
    ],
    ids=["no source", "no target", "empty", "one line short", "source short", "not UTF-8", "NUL", "blank"],
)
@pytest.mark.parametrize("with_config", [False, True], ids=["from files", "from a configuration"])
def test_training_refuses_what_is_no_parallel_text(
    refused: Callable[..., str], folder: Path, side: str, content: bytes | None, says: list[str], with_config: bool
) -> None:
    if content is None:
        (folder / side).unlink()
    else:
        (folder / side).write_bytes(content)
    if with_config:
        data = {"train": {"src": "train.en", "tgt": "train.de"}, "tokenizer": {"vocab_size": 400}}
        (folder / "config.yaml").write_text(yaml.safe_dump({"data": data}), encoding="utf-8")
        error = refused("train", "config.yaml")
    else:
        error = refused(*TRAIN)
    for words in says:
        assert words in error


def test_training_refuses_a_folder_for_a_file(refused: Callable[..., str], folder: Path) -> None:
    (folder / "train.de").unlink()
    (folder / "train.de").mkdir()
    assert "train.de is a folder; give the path of a text file in it" in refused(*TRAIN)


def test_training_refuses_a_truncated_archive(refused: Callable[..., str], folder: Path) -> None:
    import gzip

    whole = gzip.compress((folder / "train.en").read_bytes())
    (folder / "train.en.gz").write_bytes(whole[:-20])
    error = refused("train", "--src", "train.en.gz", "--tgt", "train.de", "--out", "x")
    assert "train.en.gz: reading failed" in error
    assert "truncated or damaged" in error


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--set", "model.n_head=3"], "unknown setting model.n_head: did you mean model.n_heads|n_heads?"),
        (["--set", "train.max_step=3"], "did you mean max_steps?"),
        (["--set", "modle.d_model=3"], "unknown setting modle: did you mean model?"),
        (["--set", "train.max_steps"], "write section.key=value"),
        (["--set", "train.max_steps=0"], "train.max_steps must be 1 or more, got 0"),
        (["--set", "train.max_steps=many"], "train.max_steps must be a whole number, got 'many'"),
        (["--set", "train.batch_tokens=-5"], "train.batch_tokens must be 1 or more, got -5"),
        (["--set", "train.batch_tokens=4"], "more than batch_tokens = 4. Set batch_tokens to at least"),
        (["--set", "model.n_heads=7"], "model.n_heads = 7 does not divide model.d_model = 128"),
        (["--set", "model.d_model=7", "--set", "model.n_heads=7"], "model.d_model = 7 is odd"),
        (["--set", "model.preset=huge"], "model.preset must be one of tiny, small,"),
        (
            ["--set", "model.d_model=65536", "--set", "model.d_ff=1048576", "--set", "model.n_encoder_layers=100"],
            "GiB to be trained, and there are",
        ),
        (["--set", "model.n_decoder_layers=0"], "a translator needs both"),
        (["--set", "data.tokenizer.joint=false"], "model.share_embeddings = 'all' needs one vocabulary"),
        (["--set", "data.tokenizer.vocab_size=100"], "tokenizer.vocab_size = 100 is too small: this text needs"),
        (["--set", "train.schedule=linear"], "train.schedule must be noam, inverse_sqrt or cosine, got 'linear'"),
        (["--set", "train.device=tpu"], "train.device must be auto, cpu or cuda, got 'tpu'"),
        (
            ["--set", "data.max_tokens=1"],
            "nothing can be held out for validation, as none of the",
        ),
        (["--valid-src", "valid.en"], "give both sides of the validation text: --valid-src and --valid-tgt"),
        (["--valid-src", "valid.en", "--valid-tgt", "no"], "no: no such file"),
        (["--valid-src", "valid.en", "--valid-tgt", "train.de"], "valid.en has 20 lines but train.de has 120"),
        (["--out", "train.en"], "train.en: cannot write there"),
        (["--out", "train.en/x"], "train.en/x: cannot write there"),
        (["--out", "/proc/x/y"], "/proc/x/y: cannot write there"),
        (["--resume"], "runs/new/x: nothing to resume, no such run"),
        (["--bogus"], "No such option: --bogus"),
    ],
    ids=lambda value: " ".join(value).replace("/", "-") if isinstance(value, list) else "",
)
def test_training_refuses_settings_that_are_unknown_or_impossible(
    refused: Callable[..., str], args: list[str], says: str
) -> None:
    error = refused(*(TRAIN[:-2] if "--out" in args else TRAIN), *args)
    assert any(words in error for words in says.split("|")), error


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "config.yaml: no such file; give the path of a .yaml configuration"),
        ("data: [", "config.yaml:1: not valid YAML"),
        ("just words", "the top level must contain only task and the sections model, data, train, decode"),
        ("model: {preset: tiny}", "data.train is missing"),
        ("data: {train: {src: train.en}}", "data.train.tgt is missing"),
        ("data: {train: {src: train.en, tgt: train.de}}\ntrian: {}", "unknown setting trian: did you mean train?"),
        ("data: {trian: {src: a, tgt: b}}", "unknown setting data.trian: did you mean train?"),
        ("data: {train: {src: train.en, tgt: train.de}}\ntrain: {shedule: noam}", "did you mean schedule?"),
        ("data: {train: 7}", "data.train"),
    ],
)
def test_training_refuses_an_invalid_configuration(
    refused: Callable[..., str], folder: Path, text: str | None, says: str
) -> None:
    if text is not None:
        (folder / "config.yaml").write_text(text, encoding="utf-8")
    error = refused("train", "config.yaml", "--out", "x")
    assert says in error
    assert "config.yaml" in error


def test_training_without_anything_to_train_on_says_what_to_give(refused: Callable[..., str]) -> None:
    assert "nothing to train on: give a configuration, or two text files (train.en train.de)" in refused("train")
    assert "give both sides of the training text: --src and --tgt" in refused("train", "--src", "train.en")
    assert "to resume, name the run" in refused("train", "--resume")


def test_too_few_pairs_to_hold_some_out_are_refused(refused: Callable[..., str], folder: Path) -> None:
    for name in ("train.en", "train.de"):
        lines = (folder / name).read_bytes().split(b"\n")
        (folder / name).write_bytes(b"\n".join(lines[:99]) + b"\n")
    error = refused(*TRAIN)
    assert (
        "99 pairs are too few to hold out 1% for validation, which takes 100: give a validation set (--valid" in error
    )


def test_a_folder_that_holds_a_run_is_not_written_over(
    refused: Callable[..., str], folder: Path, tiny_run: Path
) -> None:
    shutil.copytree(tiny_run, folder / "runs/new/x")
    assert "runs/new/x already holds a run: go on with --resume, or choose another --out" in refused(*TRAIN)
    said = refused("train", "nowhere.en", "nowhere.de", "--out", "runs/new/x")
    assert "runs/new/x already holds a run" in said  # before any text is looked at
    shutil.rmtree(folder / "runs/new/x/checkpoints")
    assert "runs/new/x holds a bundle without a checkpoint: delete it, or choose another --out" in refused(*TRAIN)
    shutil.rmtree(folder / "runs/new/x/bundle")
    assert "runs/new/x holds the beginning of a run with other text or other settings of data" in refused(*TRAIN)


def test_a_run_with_damaged_checkpoints_alone_cannot_be_resumed(command: Command, folder: Path, tiny_run: Path) -> None:
    run = folder / "x"
    shutil.copytree(tiny_run, run)
    for path in (run / "checkpoints").glob("step_*"):
        (path / "model.safetensors").write_bytes(b"foreign")
    done = command("train", "--out", run, "--resume", cwd=folder)
    assert done.status == 2
    assert "no usable checkpoint to resume from" in done.error
    assert done.err.count("damaged (its SHA-256 is not the manifest's)") == len(list(run.glob("checkpoints/step_*")))


@pytest.mark.parametrize("setting", ["train.lr=1", "train.seed=7", "train.batch_tokens=99", "model.dropout=0.5",
                                     "data.max_tokens=7", "train.ema=0.5", "data.tokenizer.joint=false",
                                     "model.preset=base", "train.precision=bf16", "data.valid=null"])  # fmt: skip
def test_a_setting_that_would_make_it_another_run_cannot_change_on_resume(
    refused: Callable[..., str], folder: Path, tiny_run: Path, setting: str
) -> None:
    shutil.copytree(tiny_run, folder / "x")
    error = refused("train", "--out", "x", "--resume", "--set", setting)
    name, _, value = setting.partition("=")
    values = {
        "model.preset": "model.d_model = 512, but the run has 48",
        "data.tokenizer.joint": "data.tokenizer.joint = False, but the run has True",
        "data.valid": "= None, but the run has",
    }
    assert values.get(name, f"{name} = ") in error
    assert value in error or name in values
    assert "it cannot change when a run is resumed" in error
    assert "max_steps" in error


def test_the_same_command_with_resume_added_resumes(command: Command, folder: Path) -> None:
    """What is set as the run has it is no change; people press the up arrow."""
    train = (
        "train", "--src", "train.en", "--tgt", "train.de", "--valid-src", "valid.en", "--valid-tgt", "valid.de",
        "--out", "x", "--set", "train.max_steps=3", "--set", "model.d_model=8", "--set", "model.n_heads=1",
        "--set", "model.d_ff=8", "--set", "data.tokenizer.vocab_size=400", "--set", "train.lr=1e-3",
        "--set", "train.precision=auto", "--set", "train.device=cpu", "--set", "data.src_lang=en",
    )  # fmt: skip
    assert command(*train, "--quiet", cwd=folder).status == 0
    done = command(*train, "--set", "train.max_steps=4", "--resume", cwd=folder)
    assert done.status == 0, done.err
    assert "resuming at step 3" in done.err


@pytest.mark.parametrize("which", ["train.en", "train.de", "valid.en", "valid.de"])
def test_a_corpus_that_changed_by_one_byte_is_named_on_resume(command: Command, folder: Path, which: str) -> None:
    done = command(
        "train", "--src", "train.en", "--tgt", "train.de", "--valid-src", "valid.en", "--valid-tgt", "valid.de",
        "--out", "x", "--set", "train.max_steps=3", "--set", "model.d_model=8", "--set", "model.n_heads=1",
        "--set", "model.d_ff=8", "--set", "data.tokenizer.vocab_size=400", "--quiet", cwd=folder,
    )  # fmt: skip
    assert done.status == 0, done.err
    content = bytearray((folder / which).read_bytes())
    content[5] ^= 1
    (folder / which).write_bytes(content)
    again = command("train", "--out", "x", "--resume", "--set", "train.max_steps=4", cwd=folder)
    assert again.status == 2
    assert f"{which} has changed since x began: restore the old text, or train a new run" in again.error


@pytest.mark.parametrize("ending", ["truncated", "flipped", "missing", "unsealed", "pickle", "other sizes", "newer"])
def test_a_bundle_that_is_damaged_or_foreign_is_refused(
    refused: Callable[..., str], folder: Path, tiny_run: Path, ending: str
) -> None:
    bundle = folder / "bundle"
    shutil.copytree(tiny_run / "bundle", bundle)
    weights = bundle / "model.safetensors"
    content = weights.read_bytes()
    says = "damaged (its SHA-256 is not the manifest's); copy it again"
    if ending == "truncated":
        weights.write_bytes(content[:-1])
    elif ending == "flipped":
        weights.write_bytes(content[:-9] + bytes([content[-9] ^ 4]) + content[-8:])
    elif ending == "missing":
        (bundle / "joint.spm").unlink()
        says = "joint.spm: missing from this bundle"
    elif ending == "unsealed":
        (bundle / MANIFEST).unlink()
        says = "neither a run nor a bundle"
    else:
        manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
        facts = {key: value for key, value in manifest.items() if key not in ("files", "sha256")}
        with sealed_folder(folder / "other", facts | ({"format": 2} if ending == "newer" else {})) as aside:
            for name in manifest["files"]:
                shutil.copy(bundle / name, aside)
            if ending == "pickle":
                (aside / "model.safetensors").write_bytes(b"PK\x03\x04" + bytes(500))
                says = "cannot be read as safetensors|not safetensors"
            elif ending == "newer":
                says = "bundle format 2, this dragoman reads 1: upgrade it"
            else:
                text = (aside / "config.yaml").read_text(encoding="utf-8").replace("d_model: 48", "d_model: 50")
                (aside / "config.yaml").write_text(text, encoding="utf-8")
                says = "but the configuration says"
        bundle = folder / "other"
    for args in (["translate", bundle], ["evaluate", bundle, "--src", "valid.en", "--ref", "valid.de"]):
        error = refused(*args, stdin=b"a dog\n")
        assert any(words in error for words in says.split("|")), error


def test_translating_refuses_what_is_no_run_and_what_is_no_text(
    refused: Callable[..., str], folder: Path, tiny_run: Path
) -> None:
    assert "nowhere: no such run; train one with `dragoman train`" in refused("translate", "nowhere")
    assert "neither a run nor a bundle" in refused("translate", ".")
    assert "neither a run nor a bundle" in refused("translate", "train.en")
    assert "nothing.txt: no such file" in refused("translate", tiny_run, "nothing.txt")
    assert "is a folder; give the path of a text file in it" in refused("translate", tiny_run, ".")
    assert "beam_size must be 1 or more, got 0" in refused("translate", tiny_run, "--beam-size", "0", stdin=b"a\n")
    assert "device must be auto, cpu or cuda, got 'tpu'" in refused("translate", tiny_run, "--device", "tpu")
    assert "leave out one of them" in refused("translate", tiny_run, "train.en", "-i")
    assert "leave out --warnings" in refused("translate", tiny_run, "-i", "--warnings", "train.en")
    assert "--out needs a FILE" in refused("translate", tiny_run, "--out", "x")
    assert "--restart overwrites the file of --out" in refused("translate", tiny_run, "train.en", "--restart")
    assert "train.en: is the input" in refused("translate", tiny_run, "train.en", "--out", "train.en")
    (folder / "checkpoints").mkdir()
    assert "nothing can be used yet; the first weights are there after" in refused("translate", ".")


def test_an_output_that_is_read_or_named_twice_is_refused(
    refused: Callable[..., str], folder: Path, tiny_run: Path
) -> None:
    """A list of warnings, and alignments, emptied the file first."""
    (folder / "terms.tsv").write_text("dog\tbaum\n", encoding="utf-8")
    (folder / "documents").mkdir()
    (folder / "documents/a.md").write_text("the dog", encoding="utf-8")
    with_terms = ("translate", tiny_run, "train.en", "--glossary", "terms.tsv")
    assert "terms.tsv: is the input" in refused(*with_terms, "--warnings", "terms.tsv")
    assert "terms.tsv: is the input" in refused(*with_terms, "--alignments", "terms.tsv")
    scored = ("evaluate", tiny_run, "--src", "valid.en", "--ref", "valid.de")
    for name in ("--warnings", "--out"):
        assert "valid.de: is the input" in refused(*scored, name, "valid.de")
    assert "x: is named for two outputs" in refused(*scored, "--out", "x", "--warnings", "./x")
    assert "x: is named for two outputs" in refused("translate", tiny_run, "--alignments", "x", "--warnings", "x")
    for work in ("x.partial", "x.journal"):
        command = ("translate", tiny_run, "train.en", "--out", "x", "--warnings", work)
        assert f"{work}: is named for two outputs" in refused(*command)
    assert "/: not a regular file" in refused("translate", tiny_run, "train.en", "--out", "/")
    assert "choose a shorter name" in refused("translate", tiny_run, "train.en", "--out", 248 * "x")
    assert "is named for two" in refused(
        "score", tiny_run, "--src", "valid.en", "--ref", "valid.de", "--alignments", "x", "--warnings", "x"
    )
    of_folder = ("translate", tiny_run, "documents", "--out", "made")
    assert "a.md: lies in the folder documents" in refused(*of_folder, "--warnings", "documents/a.md")
    assert "new: lies in the folder documents" in refused(*of_folder, "--warnings", "documents/new")


@pytest.mark.parametrize("suffix", [".bz2", ".xz", ".XZ", ".lz4", ".7z", ".zip"])
def test_a_name_of_a_compression_that_is_not_written_is_refused_before_the_work(
    refused: Callable[..., str], tiny_run: Path, suffix: str
) -> None:
    """Plain text under such a name is a file that its own program does not read."""
    for words in (
        ("translate", tiny_run, "valid.en", "--out", f"o.de{suffix}"),
        ("evaluate", tiny_run, "--src", "valid.en", "--ref", "valid.de", "--out", f"o.de{suffix}"),
        ("doctor", "valid.en", "valid.de", "--write", "o.en", f"o.de{suffix}"),
        ("doctor", "valid.en", "valid.de", "--write", f"o.de{suffix}", "o.en"),
    ):
        says = f"text is written plain, as .gz or as .zst, not as {suffix.lower()}; choose another name"
        assert refused(*words) == f"error: o.de{suffix}: {says}"


@pytest.mark.parametrize("suffix", [".gz", ".GZ", ".zst", ".xz"])
def test_a_list_or_alignments_with_a_name_of_compressed_text_are_refused_before_the_work(
    refused: Callable[..., str], tiny_run: Path, suffix: str
) -> None:
    both = ("--src", "valid.en", "--ref", "valid.de")
    for words in (
        ("translate", tiny_run, "valid.en", "--alignments", f"x{suffix}"),
        ("translate", tiny_run, "valid.en", "--out", "o.de", "--warnings", f"x{suffix}"),
        ("score", tiny_run, *both, "--alignments", f"x{suffix}"),
        ("score", tiny_run, *both, "--warnings", f"x{suffix}"),
        ("evaluate", tiny_run, *both, "--warnings", f"x{suffix}"),
        ("doctor", "valid.en", "valid.de", "--list", f"x{suffix}"),
    ):
        assert refused(*words) == f"error: x{suffix}: is written as plain text; choose a name without {suffix}"


def test_evaluating_refuses_files_that_do_not_belong_together(
    refused: Callable[..., str], folder: Path, tiny_run: Path
) -> None:
    error = refused("evaluate", tiny_run, "--src", "valid.en", "--ref", "train.de")
    assert "valid.en has 20 lines but train.de has 120" in error
    (folder / "empty").write_bytes(b"")
    assert "empty: the file is empty" in refused("evaluate", tiny_run, "--src", "empty", "--ref", "empty")
    assert "Missing option '--ref'" in refused("evaluate", tiny_run, "--src", "valid.en")
    out = refused("evaluate", tiny_run, "--src", "valid.en", "--ref", "valid.de", "--out", "no/such/folder")
    assert "no/such/folder: cannot be written" in out


def test_a_command_that_does_not_exist_names_the_nearest(refused: Callable[..., str]) -> None:
    assert "No such command 'trian'" in refused("trian")
    assert "train" in refused("trian").partition("trian")[2]


def test_what_is_missing_on_a_command_line_is_described_and_the_help_to_read_is_the_commands(
    refused: Callable[..., str],
) -> None:
    assert "Missing argument 'RUN': run folder or bundle (see dragoman translate --help)" in refused("translate")
    assert "Option '--out' requires an argument. (see dragoman train --help)" in refused("train", "--out")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_of_an_option_of_one_value_is_refused_if_there_is_another(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last value alone would count: `train --src a --src b` would train on half of the text without a word."""
    monkeypatch.chdir(tmp_path)
    for option in (parameter for parameter in load(name).params if parameter.param_type_name == "option"):
        values = ["x"] * option.nargs
        # `--to` alone is the former name of `--format`
        named = ["--format", "onnx"] if name == "export" and "--to" in option.opts else []
        for first, second in product(option.opts, repeat=2):
            if option.is_flag:
                words = [first, second]
            elif option.nargs == 1:
                words = [f"{first}=x" if first.startswith("--") else f"{first}x", second, "x"]
            else:
                words = [first, *values, second, *values]
            assert cli.run([name, *named, *words, "--no-such-option"]) == 2
            assert "No such option: --no-such-option" in capsys.readouterr().err
            assert cli.run([name, *named, *words, "--help"]) == 0  # which is asked for, not the work
            capsys.readouterr()
            if names_files(option) and not option.multiple:
                assert cli.run([name, *named, *words]) == 2
                said = capsys.readouterr().err
                takes = "one value" if option.nargs == 1 else "2 values"
                assert f"error: {option.opts[-1]} is given twice; it takes {takes} (see dragoman {name} --help)" in said
    assert not list(tmp_path.iterdir())


def test_flags_lists_and_numbers_may_be_given_again(command: Command, tiny_run: Path) -> None:
    """Of a number the last one counts, as aliases and makefiles expect."""
    words = "-v", "--verbose", "--no-guard", "--no-guard", "--exclude", "zebra", "--exclude", "giraffe"
    sizes = "--beam-size", "x", "--beam-size", "1"
    assert command("translate", tiny_run, *words, *sizes, stdin=b"A dog.\n").status == 0


def test_every_option_that_names_a_file_is_known_as_one() -> None:
    """By its placeholder: an empty name, and a second file where one counts, are refused."""
    contexts = [load(name).make_context(name, [], resilient_parsing=True) for name in COMMANDS]
    named = {option.opts[-1] for context in contexts for option in context.command.params if names_files(option)}
    files = "--src --tgt --ref --valid --valid-src --mono --held-out --outputs --glossary --out --warnings --list"
    assert named >= {*files.split(), "--write", "--alignments", "--from-run", "--keep-pieces-of", "--ensemble"}
    assert not named & {"--beam-size", "--device", "--to", "--set", "--column", "--prefix", "--include", "--columns"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("translate", "demo", "--glossary", ""), "--glossary is empty; give a name"),
        (("translate", "demo", ""), "FILE is empty; give a name"),
        (("doctor", "--write", "a", "", "a.en", "a.de"), "--write is empty; give a name"),
        (("train", "valid.en", "valid.de", "--out="), "--out is empty; give a name"),
        (("runs", ""), "FOLDER is empty; give a name"),
    ],
)
def test_an_empty_name_is_not_taken_for_the_folder_that_the_command_runs_in(
    refused: Callable[..., str], words: tuple[str, ...], says: str
) -> None:
    assert refused(*words) == f"error: {says} (see dragoman {words[0]} --help)"


def test_the_installed_command_refuses_likewise(folder: Path) -> None:
    """The same through a real process of its own, not a fork of one that knows torch."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *TRAIN[:2], "nowhere.en", *TRAIN[3:]], cwd=folder, capture_output=True
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"error: nowhere.en: no such file; give the path of a text file (plain, .gz or .zst)\n"
    assert not (folder / "runs").exists()


def test_a_full_disk_while_preparing_is_one_line_and_leaves_nothing(tmp_path: Path, corpus: Any) -> None:
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces, to mount a small file system")
    script = 'mount -t tmpfs -o size=16k none /mnt && "$@"; status=$?; ls -A /mnt | grep . && exit 99; exit $status'
    args = [sys.executable, "-m", "dragoman", "train", "--src", corpus.src, "--tgt", corpus.tgt, "--out", "/mnt/x",
            "--set", "data.tokenizer.vocab_size=400"]  # fmt: skip
    done = subprocess.run(["unshare", "-rm", "bash", "-c", script, "bash", *args], capture_output=True, text=True)
    assert done.returncode == 2, (done.stdout, done.stderr)
    errors = [line for line in done.stderr.split("\n") if line.startswith("error:")]
    assert len(errors) == 1
    assert "/mnt/x/store" in errors[0]
    assert "No space left on device" in errors[0]
    assert "Traceback" not in done.stderr


def test_an_interrupt_while_preparing_leaves_nothing(folder: Path, listing: Listing) -> None:
    before = listing(folder)
    script = """
import os, signal
from dragoman.training import preparation
from dragoman.cli import main
preparation.learn_tokenizers = lambda *args, **options: os.kill(os.getpid(), signal.SIGINT)
main()
"""
    process = start_code(script, *TRAIN, cwd=folder)
    assert process.wait() == 130, process.errors
    assert b"Traceback" not in process.errors
    assert listing(folder) == before


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "train.de: no such file"),
        (["runs/new/x/parent.json", "runs/new/x/log.jsonl"], "training would replace this"),
    ],
)
def test_foreign_files_in_out_outlive_a_refused_training(
    refused: Callable[..., str], folder: Path, others: list[str], said: str
) -> None:
    theirs = ["runs/new/x/launch", "runs/new/x/store/my.spm", *others]
    for name in theirs:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("theirs\n")
    (folder / "train.de").unlink()
    assert said in refused(*TRAIN)
    assert [(folder / name).read_text() for name in theirs] == ["theirs\n"] * len(theirs)


def test_a_model_whose_checkpoints_nobody_could_read_is_refused(refused: Callable[..., str]) -> None:
    deep = ("--set", "model.n_encoder_layers=100", "--set", "model.n_decoder_layers=100", "--set", "model.d_model=8",
            "--set", "model.n_heads=2", "--set", "model.d_ff=8")  # fmt: skip
    error = refused(*TRAIN, *deep)
    assert "100 + 100 layers" in error
    assert "must be at most 7,500" in error
