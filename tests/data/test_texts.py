"""Which form of text somebody means, and texts in several forms read as one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import Config, OneFile, PairOfFiles, each
from dragoman.data.texts import languages_of, paths_of, read_texts, refuse_reversed, texts_named
from dragoman.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de", "three.en", "three.de", "three.fr", "one.en", "notes.xlsx"):
        Path(name).write_text(f"{name}\n", encoding="utf-8")
    Path("t.tsv").write_text("en\tde\nx\ty\n", encoding="utf-8")
    Path("fr.tsv").write_text("en\tfr\nx\ty\n", encoding="utf-8")
    Path("m.tmx").write_text(
        '<tmx><body><tu><tuv xml:lang="en"><seg>p</seg></tuv><tuv xml:lang="de"><seg>q</seg></tuv></tu></body></tmx>',
        encoding="utf-8",
    )
    (tmp_path / "dir").mkdir()
    return tmp_path


def pair(src: str, tgt: str) -> PairOfFiles:
    return PairOfFiles(src=Path(src), tgt=Path(tgt))


def test_forms_are_told_apart(folder: Path) -> None:
    assert texts_named([]) == []
    assert texts_named(["a.en", "a.de"]) == [pair("a.en", "a.de")]
    assert texts_named(["three", "fr", "en"]) == [pair("three.fr", "three.en")]
    assert texts_named(["a"]) == [pair("a.de", "a.en")]
    assert texts_named([folder / "a", "en", "de"]) == [PairOfFiles(src=folder / "a.en", tgt=folder / "a.de")]
    (folder / "a").mkdir()  # beside the two files
    assert texts_named(["a", "en", "de"]) == [pair("a.en", "a.de")]
    assert texts_named(["m.tmx"]) == [OneFile(file=Path("m.tmx"))]
    mixed = ["a.en", "a.de", "t.tsv", "three", "en", "de", "m.tmx"]
    found = texts_named(mixed, ("en", "de"))
    assert found == [
        pair("a.en", "a.de"), OneFile(file=Path("t.tsv"), columns=("en", "de")), pair("three.en", "three.de"),
        OneFile(file=Path("m.tmx"), columns=("en", "de")),
    ]  # fmt: skip
    assert list(read_texts(found)) == [("a.en", "a.de"), ("x", "y"), ("three.en", "three.de"), ("p", "q")]
    assert languages_of(found) == ("en", "de")
    assert paths_of([*found, *found]) == [Path(name) for name in
                                          ("a.en", "a.de", "t.tsv", "three.en", "three.de", "m.tmx")]  # fmt: skip


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.txt", "pairs.tab", "pairs"])
def test_one_file_of_another_form_is_refused_wherever_it_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text('{"en": "A dog runs", "de": "Ein Hund rennt"}\na "cat\teine Katze\n', encoding="utf-8")
    for use in (lambda text: list(read_texts([text])), lambda text: languages_of([text])):
        with pytest.raises(ConfigError, match=f"^{name}: no known form of text with both sides; give two text files"):
            use(OneFile(file=Path(name)))


def test_a_common_beginning_takes_its_own_files_before_longer_names(folder: Path) -> None:
    for name in ("a.bt.en", "a.clean.de", "a.en.gz", "set.clean.en.gz", "set.clean.de.txt", "odd.bpe.en", "odd.tok.de"):
        Path(name).write_text(f"{name}\n", encoding="utf-8")
    assert texts_named(["a", "en", "de"]) == [pair("a.en", "a.de")]
    assert texts_named(["a"]) == [pair("a.de", "a.en")]
    assert texts_named(["set", "en", "de"]) == [pair("set.clean.en.gz", "set.clean.de.txt")]
    assert texts_named(["odd", "en", "de"]) == [pair("odd.bpe.en", "odd.tok.de")]  # there are no others
    Path("a.de").unlink()
    several = re.escape("a: several files begin so (a.bt.en, a.en, a.clean.de); name the two")
    with pytest.raises(ConfigError, match=several):
        texts_named(["a", "en", "de"])
    with pytest.raises(ConfigError, match=several):
        texts_named(["a"])


@pytest.mark.parametrize("stray", ["set.sh", "set.py", "set.ids", "set.clean.en.bak", "set.clean.log.en"])
@pytest.mark.parametrize("words", [["set", "en", "de"], ["set"]])
def test_a_file_of_another_kind_beside_a_common_beginning_changes_nothing(
    folder: Path, stray: str, words: list[str]
) -> None:
    for name in ("set.clean.en", "set.clean.de", stray):
        Path(name).write_text(f"{name}\n", encoding="utf-8")
    found = texts_named(words)
    assert found == [pair("set.clean.en", "set.clean.de") if len(words) > 1 else pair("set.clean.de", "set.clean.en")]


def test_which_direction_a_common_beginning_takes_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "dragoman"):
        texts_named(["a"])
    assert [record.getMessage() for record in caplog.records] == ["a.de to a.en; for the other direction give a en de"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["notes.xlsx"],
            "notes.xlsx: one side alone, or no known form of text (a configuration ends in .yaml); give two text files",
        ),
        (["a.en"], "a.en: one side alone"),
        (["/dev/zero"], "/dev/zero: one side alone"),  # its first line has no end
        (["a.en", "t.tsv"], "a.en: one side alone"),
        (["a.en", "missing.de"], "missing.de: no such file"),
        (["dir"], "dir is a folder; give two text files"),
        (["nothing"], "nothing: no such file; give two text files"),
        (["one"], "one: no such file, only one.en; give two"),
        (["three"], "three: there is de, en, fr; say from which to which: three de en"),
        (["three", "en", "it"], "three: there is de, en, fr"),
    ],
)
def test_what_is_none_of_the_forms_is_refused_with_those_there_are(
    folder: Path, words: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        texts_named(words)


def test_texts_of_different_languages_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"fr\.tsv: fr where a\.en and a\.de has de; give one pair of languages"):
        languages_of(texts_named(["a.en", "a.de", "fr.tsv"]))
    odd = [pair("a.en", "a.de"), pair("a.old", "a.new")]  # endings that are no languages
    assert languages_of(odd) == ("en", "de")


@pytest.mark.parametrize(
    ("names", "langs"),
    [
        (("a.de", "a.en"), ("en", "de")),
        (("a.de", "a.en"), ("eng", "de-AT")),
        (("a.zh-TW", "a.zh"), ("zh-CN", "zh-Hant")),
        (("de", "en"), ("en", "de")),  # which train takes for German and English too
    ],
)
def test_two_files_in_the_wrong_order_are_refused(folder: Path, names: tuple[str, str], langs: tuple[str, str]) -> None:
    for name in names:
        Path(name).write_text("x\n", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=f"^{names[0]} and {names[1]}: .* by their names, .*; swap the two files, correct"
    ):
        refuse_reversed(pair(*names), langs)
    refuse_reversed(pair(*names[::-1]), langs)


@pytest.mark.parametrize(
    ("names", "langs"),
    [
        (("three.fr", "a.en"), ("en", "de")),  # another language is no order
        (("a.de", "one.en"), ("en", None)),
        (("a.de", "notes.xlsx"), ("en", "de")),
        (("a.de", "none.en"), ("en", "de")),  # a missing file is reported when it is read
        (("a.en", "one.en"), ("en-US", "en-GB")),
    ],
)
def test_what_is_no_exchange_of_two_files_passes(
    folder: Path, names: tuple[str, str], langs: tuple[str | None, str | None]
) -> None:
    refuse_reversed(pair(*names), langs)


def test_training_and_doctor_refuse_two_files_in_the_wrong_order(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    """The swapped model was trained, with two warnings, where the languages were set."""
    for lang, text in (("de", "der Hund {}\n"), ("en", "the dog {}\n")):
        (tmp_path / f"q.{lang}").write_text("".join(map(text.format, range(150))), encoding="utf-8")
    data = "src_lang: en, tgt_lang: de, train: {src: q.de, tgt: q.en}"
    own = "train: {src: q.de, tgt: q.en, src_lang: en, tgt_lang: de}"
    valid = "src_lang: en, tgt_lang: de, train: {src: q.en, tgt: q.de, tgt_lang: de}, valid: {src: q.de, tgt: q.en}"
    for name, section in (("data", data), ("own", own), ("valid", valid)):
        (tmp_path / f"{name}.yaml").write_text(f"data: {{{section}}}\nmodel: {{preset: tiny}}\n", encoding="utf-8")
    set_langs = ("--set", "data.src_lang=en", "--set", "data.tgt_lang=de")
    calls = [("data.yaml",), ("own.yaml",), ("valid.yaml",), ("q.de", "q.en", *set_langs)]
    trainings = [*calls, ("q.de", "q.en", *set_langs, "--from-run", str(tiny_run))]
    for words in (*(("train", *call, "--out", "x") for call in trainings), *(("doctor", *call) for call in calls)):
        done = command(*words, "--set", "train.max_steps=1", cwd=tmp_path)
        assert done.status == 2, words
        assert "q.de and q.en: de to en by their names, where en to de is wanted; swap the two files" in done.error
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ({"src": "a", "tgt": "b"}, (pair("a", "b"),)),
        ({"file": "a.tsv"}, (OneFile(file=Path("a.tsv")),)),
        ({"file": "a.tsv", "columns": [1, 3]}, (OneFile(file=Path("a.tsv"), columns=("1", "3")),)),
        ({"file": "a.tmx", "columns": "en, de"}, (OneFile(file=Path("a.tmx"), columns=("en", "de")),)),
        ([{"src": "a", "tgt": "b"}, {"file": "a.tmx"}], (pair("a", "b"), OneFile(file=Path("a.tmx")))),
    ],
)
def test_a_configuration_has_one_text_or_a_list(tmp_path: Path, given: object, texts: tuple[object, ...]) -> None:
    config = Config.from_mapping({"data": {"train": given, "valid": given}})
    assert each(config.data.train) == texts
    path = tmp_path / "config.yaml"
    path.write_text(config.to_yaml(), encoding="utf-8")
    assert Config.from_yaml(path) == config


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "data.train must have 1 or more entries, got []"),
        ([7], "data.train.0 must be a section (a mapping of settings to values), got 7"),
        ([{"src": "a"}], "data.train.0.tgt is missing"),
        ({"file": "a.tsv", "colums": "en,de"}, "unknown setting data.train.colums: did you mean columns?"),
        ({"file": "a.tsv", "columns": "en"}, "data.train.columns"),
        ({"file": "a.tsv", "widht": 2}, "unknown setting data.train.widht"),
    ],
)
def test_a_text_that_is_none_is_refused_under_its_name(given: object, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Config.from_mapping({"data": {"train": given}})
    assert message in str(refusal.value)
