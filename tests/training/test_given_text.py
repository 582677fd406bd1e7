"""Training text given in memory: written into the run, resumed from there, refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
import yaml
from pandas import DataFrame, Series
from safetensors.torch import load_file

import dragoman
from benchmarks.first_lines import SIZES
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.training.folder import claimed
from dragoman.training.given_text import GivenText

SRC, TGT = ["a dog runs", "a cat sleeps", "we sing"], ["ein Hund rennt", "eine Katze schläft", "wir singen"]


@pytest.mark.parametrize(
    ("config", "tgt", "changes", "names"),
    [
        (SRC, TGT, {}, ["train.src", "train.tgt"]),
        (iter(SRC), tuple(TGT), {}, ["train.src", "train.tgt"]),
        (Series(SRC, name="en"), Series(TGT, name="de"), {}, ["train.en", "train.de"]),
        (Series(SRC, name="text"), Series(TGT, name="a/b"), {}, ["train.src", "train.tgt"]),
        (Series(SRC, name="en"), Series(TGT, name="en"), {}, ["train.src", "train.tgt"]),
        (None, None, {"src": SRC, "tgt": TGT}, ["train.src", "train.tgt"]),
        (list(zip(SRC, TGT, strict=True)), None, {}, ["train.src", "train.tgt"]),
        (zip(SRC, TGT, strict=True), None, {}, ["train.src", "train.tgt"]),
        (np.array(SRC), np.array(TGT), {}, ["train.src", "train.tgt"]),
        (DataFrame({"en": SRC, "de": TGT}), None, {}, ["train.en", "train.de"]),
        (DataFrame(zip(SRC, TGT, strict=True)), None, {}, ["train.src", "train.tgt"]),
        (DataFrame([SRC, SRC, TGT]).T, None, {"columns": [0, 2]}, ["train.src", "train.tgt"]),
        (pyarrow.table({"en": SRC, "de": TGT}), None, {}, ["train.en", "train.de"]),
        (pyarrow.chunked_array([SRC]), pyarrow.array(TGT), {}, ["train.src", "train.tgt"]),
        (DataFrame({"id": [1, 2, 3], "de": TGT, "en": SRC}), None, {"columns": ["en", "de"]}, ["train.en", "train.de"]),
        (DataFrame({"id": [1, 2, 3], "de": TGT, "en": SRC}), None, {"columns": "en,de"}, ["train.en", "train.de"]),
    ],
)
def test_text_in_memory_becomes_two_files_of_the_run(
    tmp_path: Path, config: object, tgt: object, changes: dict[str, Any], names: list[str]
) -> None:
    remaining, given = GivenText.of(config, tgt, changes)
    assert remaining is None
    paths = given.paths(tmp_path)
    with given.written(tmp_path):
        assert [path.name for path in paths.values()] == names
        assert [path.read_text(encoding="utf-8").split("\n") for path in paths.values()] == [[*SRC, ""], [*TGT, ""]]
    assert changes == {}


EN_DE = {"overrides": ["data.src_lang=en", "data.tgt_lang=de"]}


@pytest.mark.parametrize("as_table", [DataFrame, pyarrow.table])
@pytest.mark.parametrize(
    ("names", "changes", "columns"),
    [
        ("de en", EN_DE, "en de"),
        ("German English", EN_DE, "English German"),
        ("text_de text_en", EN_DE, "text_en text_de"),
        ("de-AT en-GB", EN_DE, "en-GB de-AT"),
        ("de text", EN_DE, "text de"),
        ("de en", {"overrides": ["data.tgt_lang=de"]}, "en de"),
        ("de en", {"from_run": "en-de"}, "en de"),
        ("id de en", EN_DE, "en de"),
        ("target source", {}, "source target"),
        ("target source", EN_DE, "source target"),
        ("de en", {}, "de en"),
        ("x y", EN_DE, "x y"),
        ("fr en", {"overrides": ["data.src_lang=de", "data.tgt_lang=fr"]}, "fr en"),
        ("source en", EN_DE, "source en"),
        ("en source", EN_DE, "source en"),
        ("de source", {"overrides": ["data.src_lang=de"]}, "source de"),
        ("target en", {}, "en target"),
        ("target de", EN_DE, "de target"),
    ],
)
def test_columns_of_a_table_in_memory_are_taken_by_the_languages(
    as_table: Any, names: str, changes: dict[str, Any], columns: str
) -> None:
    """They were taken in their order, and the other direction was trained."""
    table = as_table({name: [f"in {name}"] for name in names.split()})
    _, given = GivenText.of(table, None, dict(changes))
    assert given.columns == tuple(columns.split())
    assert list(given.sides.values()) == [[f"in {name}"] for name in columns.split()]


def test_the_columns_that_were_taken_are_told(
    tmp_path: Path, toy_sentences: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    src, tgt = zip(*toy_sentences(130, 1), strict=True)
    overrides = [*SIZES, *EN_DE["overrides"]]
    dragoman.train(DataFrame({"de": tgt, "en": src}), out=tmp_path / "run", overrides=overrides)
    assert "columns of the table: source 'en', target 'de'\n" in capfd.readouterr().err
    assert (tmp_path / "run/text/train.en").read_text(encoding="utf-8") == "".join(f"{line}\n" for line in src)
    again = {"out": tmp_path / "run", "resume": True, "overrides": ["train.max_steps=2"], "quiet": True}
    assert dragoman.train(DataFrame({"de": tgt, "en": src}), **again).step == 2


def test_paths_and_configurations_are_left_alone() -> None:
    for config in (["a.en", "a.de"], "a.yaml", Path("a.tsv"), None):
        changes: dict[str, Any] = {"minutes": 3}
        assert GivenText.of(config, None, changes) == (config, GivenText({}, {}))
        assert changes == {"minutes": 3}
    changes = {}
    assert GivenText.of("a.en", "a.de", changes) == (None, GivenText({}, {}))
    assert changes == {"src": "a.en", "tgt": "a.de"}


@pytest.mark.parametrize(
    ("config", "tgt", "changes", "says"),
    [
        (SRC, TGT[:2], {}, "src has 3 texts but tgt has 2: text i of one must translate text i of the other"),
        (SRC, ["a", None, "b"], {}, r"tgt: number 2 must be a text \(str\), got None, a missing value: .*"),
        (SRC, ["a", 3, "b"], {}, r"tgt: number 2 must be a text \(str\), got int"),
        (SRC, ["a", "b\nc", "d"], {}, "tgt: number 2 has a line break: .*"),
        (SRC, ["a", "b", "\ud800"], {}, "tgt: number 3 has half of a surrogate pair: replace it"),
        ([], [], {}, "src has no texts: give at least one"),
        ([("a", "b"), ("c",)], None, {}, r"number 2 of the training text must be a pair of texts .* got tuple; .*"),
        ([("a", "b"), ("c", 3)], None, {}, r"tgt: number 2 must be a text \(str\), got int"),
        (DataFrame({"id": [1], "en": ["a"], "de": ["b"]}), None, {}, "columns must be two of id, en, de, .* got None"),
        (
            DataFrame({"en": ["a"], "de": ["b"]}),
            None,
            {"columns": "en,fr"},
            "columns must be two of en, de, .* got 'en,fr'",
        ),
        (
            DataFrame({"id": [1], "score": [1], "en": ["a"], "de": ["b"]}),
            None,
            {},
            "columns must be two of id, score, en, de, .*data.src_lang and data.tgt_lang.* got None",
        ),
        ("a.en", "a.de", {"src": "b.en"}, "src is given twice: as the first argument and by name"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(
    tmp_path: Path, config: object, tgt: object, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises((ConfigError, DataError), match=f"^{says}$"):
        dragoman.train(config, tgt, out=tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_columns_of_a_table_train_whether_they_are_given_apart_or_named(tmp_path: Path, toy_sentences: Any) -> None:
    src, tgt = zip(*toy_sentences(130, 1), strict=True)
    table = DataFrame({"en": src, "de": tgt, "id": range(130)})
    named = dragoman.TrainOptions(columns="en,de", overrides=SIZES, quiet=True)
    runs = [
        dragoman.train(table["en"], table["de"], out=tmp_path / "apart", overrides=SIZES, quiet=True),
        dragoman.train(np.array(src), np.array(tgt), out=tmp_path / "arrays", overrides=SIZES, quiet=True),
        dragoman.train(table, columns=["en", "de"], out=tmp_path / "named", overrides=SIZES, quiet=True),
        dragoman.train(table, options=named, out=tmp_path / "options"),
    ]
    assert [run.step for run in runs] == [1, 1, 1, 1]


def test_a_run_of_text_in_memory_is_resumed_and_refuses_other_text(tmp_path: Path, toy_sentences: Any) -> None:
    src, tgt = (list(side) for side in zip(*toy_sentences(130, 1), strict=True))
    run = tmp_path / "run"
    assert dragoman.train(src, tgt, out=run, overrides=SIZES, quiet=True).step == 1
    longer = [*SIZES, "train.max_steps=2"]
    with pytest.raises(DataError, match=r"^src differs from .*train\.src, the text that the run was begun with"):
        dragoman.train(src[::-1], tgt, out=run, overrides=["train.max_steps=2"], resume=True, quiet=True)
    assert dragoman.train(src, tgt, out=run, overrides=longer[-1:], resume=True, quiet=True).step == 2
    assert dragoman.train(out=run, overrides=["train.max_steps=3"], resume=True, quiet=True).step == 3


def test_text_in_memory_has_relative_names_in_a_run_that_has_one(
    tmp_path: Path, toy_sentences: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run may be moved, with the folder that its names begin from."""
    monkeypatch.chdir(tmp_path)
    src, tgt = (list(side) for side in zip(*toy_sentences(130, 1), strict=True))
    trained = dragoman.train(src, tgt, out="runs/x", valid_src=src[:7], valid_tgt=tgt[:7], overrides=SIZES)
    assert trained.run == Path("runs/x")
    for config in ("config.yaml", "bundle/config.yaml"):
        data = yaml.safe_load((trained.run / config).read_text(encoding="utf-8"))["data"]
        for part in ("train", "valid"):
            sides = {side: data[part][side] for side in ("src", "tgt")}
            assert sides == {"src": f"runs/x/text/{part}.src", "tgt": f"runs/x/text/{part}.tgt"}
    assert str(tmp_path) not in (trained.run / "store/prepared.json").read_text(encoding="utf-8")
    said = capsys.readouterr().err
    assert "the validation set (runs/x/text/valid.src and runs/x/text/valid.tgt): it is the training text" in said
    assert str(tmp_path) not in said
    dragoman.train(src, tgt, out="runs/x", overrides=["train.max_steps=2"], resume=True)
    assert "other files that were named" not in capsys.readouterr().err  # the same text is no other file


def test_two_trainings_in_one_folder_do_not_write_over_each_others_text(tmp_path: Path) -> None:
    run = tmp_path / "runs/train"
    with claimed(run), GivenText.of(SRC, TGT, {})[1].written(run):
        with pytest.raises(ConfigError, match="is training"):
            dragoman.train(TGT, SRC, out=run, overrides=SIZES, quiet=True)
        assert (run / "text/train.src").read_text(encoding="utf-8") == "".join(f"{line}\n" for line in SRC)


def test_a_file_of_the_user_is_neither_overwritten_nor_removed(tmp_path: Path) -> None:
    """A folder ``text`` of the user's was written over, and removed when the training was refused."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text/train.tgt").write_text("mine\n", encoding="utf-8")
    (tmp_path / "text/notes").write_text("mine\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"text/train\.tgt: a file with other text than tgt .*, or name another out$"):
        dragoman.train(SRC, TGT, out=tmp_path, overrides=SIZES, quiet=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["notes", "text", "train.tgt"]
    assert (tmp_path / "text/train.tgt").read_text(encoding="utf-8") == "mine\n"


@pytest.mark.parametrize("fails_late", [False, True])
def test_what_was_in_the_folder_of_the_text_outlives_a_training_that_fails(
    tmp_path: Path, toy_sentences: Any, fails_late: bool
) -> None:
    src, tgt = (list(side) for side in zip(*toy_sentences(130, 1), strict=True))
    (tmp_path / "text").mkdir()
    theirs = {"notes": "mine\n", "train.src": "".join(f"{line}\n" for line in src)}
    for name, text in theirs.items():
        (tmp_path / "text" / name).write_text(text, encoding="utf-8")

    def build(_: Any) -> Any:
        raise MemoryError

    overrides = SIZES if fails_late else ["train.no_such=1"]
    with pytest.raises(MemoryError if fails_late else ConfigError):
        dragoman.train(src, tgt, out=tmp_path, overrides=overrides, build=build, quiet=True)
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "text").iterdir()} == theirs
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="file/run: cannot write there"):
        dragoman.train(SRC, TGT, out=tmp_path / "file/run", overrides=SIZES, quiet=True)


def test_a_training_that_fails_after_it_was_prepared_leaves_nothing(tmp_path: Path, toy_sentences: Any) -> None:
    src, tgt = (list(side) for side in zip(*toy_sentences(130, 1), strict=True))

    def build(_: Any) -> Any:
        raise MemoryError

    with pytest.raises(MemoryError):
        dragoman.train(src, tgt, out=tmp_path / "runs/new", overrides=SIZES, build=build, quiet=True)
    assert not (tmp_path / "runs").exists()
    with pytest.raises(BundleError, match="nothing to resume"):
        dragoman.train(src, tgt, out=tmp_path / "other", resume=True, quiet=True)
    assert not (tmp_path / "other").exists()


def test_a_training_that_is_refused_leaves_no_text_behind(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(ConfigError):
        dragoman.train(SRC, TGT, out=run, overrides=["train.no_such=1"], quiet=True)
    assert not run.exists()


@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, partial(torch.autocast, "cpu", torch.bfloat16)],
    ids=["no_grad", "inference_mode", "autocast"],
)
def test_modes_of_the_calling_program_do_not_change_a_training(
    tmp_path: Path, toy_sentences: Any, mode: Callable[[], AbstractContextManager[Any]]
) -> None:
    src, tgt = map(list, zip(*toy_sentences(130, 1), strict=True))
    settings = {"overrides": [*SIZES, "train.max_steps=2", "train.precision=fp32"], "quiet": True}
    plain = dragoman.train(src, tgt, out=tmp_path / "plain", **settings)
    translations = dragoman.Translator.load(plain.run, "cpu").score(src[:9], tgt[:9])
    with mode():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")
        within = dragoman.train(src, tgt, out=tmp_path / "within", **settings)
        assert dragoman.Translator.load(within.run, "cpu").score(src[:9], tgt[:9]) == translations
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")) == before
    weights = [load_file(trained.run / "bundle/model.safetensors") for trained in (plain, within)]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())
    assert within.validation.loss == plain.validation.loss
