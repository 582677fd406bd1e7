"""``dragoman augment``: text made forward and back, after kills, what is counted, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman.config import Config, OneFile, PairOfFiles
from dragoman.data.texts import read_one
from dragoman.decoding import batched_search
from dragoman.distillation import augment as module
from dragoman.distillation.augment import augment
from dragoman.distillation.mixing import turned_round
from dragoman.distillation.text import sides_of
from dragoman.errors import ConfigError, DragomanError
from dragoman.translation import resumable
from dragoman.translation.translator import Translator
from failing import fail_long_lines

Sentences = Callable[[int, int], list[tuple[str, str]]]
FAST: dict[str, Any] = dict(quiet=True, engine="torch")


class Killed(BaseException):
    """Stands for a signal that nobody can catch."""


def _killed(*_: Any, **__: Any) -> None:
    raise Killed


@pytest.fixture(scope="module")
def back(once: Callable[..., Path], tiny: Callable[..., dict[str, Any]]) -> Path:
    """A run of the other direction."""
    mapping = tiny(max_steps=250, schedule="cosine", batch_tokens=600, validate_every=250, save_every=250)
    mapping["model"]["dropout"] = 0.0
    for files in (mapping["data"]["train"], mapping["data"]["valid"]):
        files["src"], files["tgt"] = files["tgt"], files["src"]
    config = Config.from_mapping(mapping)
    return once("back", lambda folder: dragoman.train(config, out=folder / "back", quiet=True)) / "back"


@pytest.fixture(scope="module")
def mono(tmp_path_factory: pytest.TempPathFactory, toy_sentences: Sentences) -> tuple[Path, Path]:
    """Text of one language each, with lines that nobody should learn from."""
    folder = tmp_path_factory.mktemp("mono")
    odd = ["", "это дом, в котором мы живём", "the dog", "the dog", "red " * 300, "the \ufffd cat"]
    lines = {"en": [src for src, _ in toy_sentences(60, 21)] + odd, "de": [tgt for _, tgt in toy_sentences(50, 22)]}
    for lang, said in lines.items():
        (folder / f"news.{lang}").write_text("".join(f"{line}\n" for line in said), encoding="utf-8")
    return folder / "news.en", folder / "news.de"


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode().removesuffix("\n").split("\n")  # samples have odd characters, CR too


def test_both_directions_and_the_configuration_that_trains_on_them(
    tiny_run: Path, back: Path, mono: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "test.en").write_text("\n".join(lines(mono[0])[:5]) + "\n", encoding="utf-8")
    found = augment(
        tmp_path / "made", forward=tiny_run, src=mono[0], back=[back], tgt=[mono[1]], held_out=tmp_path / "test.en",
        weight=0.5, **FAST,
    )  # fmt: skip
    counts = found.counts["forward"]
    assert counts.lines == {
        "read": 66, "translated": 56, "damaged": 1, "held out": 5, "blank": 1, "of unknown characters": 1,
        "repeated": 1, "too long": 1,
    }  # fmt: skip
    for one in found.counts.values():
        for counted, kept in ((one.lines, ("read", "translated")), (one.translations, ("made", "kept"))):
            left_out = sum(n for why, n in counted.items() if why not in kept)
            assert counted[kept[0]] == counted[kept[1]] + left_out
        assert one.lines["translated"] == one.translations["made"]
    assert json.loads((tmp_path / "made/augmentation.json").read_text())["forward"]["lines"] == counts.lines
    src, tgt = (lines(tmp_path / f"made/forward.{lang}") for lang in ("en", "de"))
    assert len(src) == len(tgt) == counts.translations["kept"] > 40
    assert set(src) <= set(lines(mono[0])[5:])
    assert [one.text for one in dragoman.Translator.load(tiny_run).translate(src[:9], protect=False)] == tgt[:9]
    made_src, real_tgt = (lines(tmp_path / f"made/back.{lang}") for lang in ("en", "de"))
    assert set(real_tgt) <= set(lines(mono[1]))
    assert len(made_src) == len(real_tgt) == found.counts["back"].translations["kept"]
    config = Config.from_yaml(found.config)
    assert config.model == dragoman.Translator.load(tiny_run).config.model
    own, *made = config.data.train  # type: ignore[misc]
    assert own.src == Config.from_yaml(tiny_run / "config.yaml").data.train.src  # type: ignore[union-attr]
    assert [(one.src.name, one.tag, one.weight) for one in made] == [
        ("forward.en", None, 0.5),
        ("back.en", "<bt>", 0.5),
    ]
    assert [one.model_dump(mode="json", exclude_defaults=True) for one in made] == list(found.entries)
    done = dragoman.train(
        found.config, out=tmp_path / "best", quiet=True, overrides=["train.max_steps=2", "train.warmup_steps=1"]
    )
    assert done.step == 2


def test_after_kills_the_same_call_makes_the_same(
    tiny_run: Path, back: Path, mono: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = dict(forward=tiny_run, src=mono[0], back=back, tgt=mono[1], n_best=2, **FAST)
    whole = augment(tmp_path / "whole", **given)
    for name in ("take_lines", "translate_text", "choose_pairs", "write_config"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, _killed)
            with pytest.raises(Killed):
                augment(tmp_path / "killed", **given)
    again = augment(tmp_path / "killed", **given)
    assert again.counts == whole.counts
    for name in ("forward.en", "forward.de", "back.en", "back.de"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for name in ("take_lines", "choose_pairs"):
        monkeypatch.setattr(module, name, _killed)
    assert augment(tmp_path / "killed", **given).counts == whole.counts  # and does nothing more


@pytest.mark.parametrize("how", [(), ("--sample", "--n-best", "2", "--seed", "7")])
def test_lines_without_memory_are_no_success_and_the_same_command_tries_them_alone_again(
    how: tuple[str, ...], command: Callable[..., Any], tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They counted as empty translations, with status 0."""
    long = "the dog sees a big cat and the man likes the small house here today the woman finds a red tree"
    text = ["the dog", "a big cat", long, "the man runs", f"{long} today", "a house"]
    (tmp_path / "news.en").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    words = ("augment", "--forward", tiny_run, "--src", "news.en", "--engine", "torch", *how, "--out")
    assert command(*words, "whole", cwd=tmp_path).status == 0
    with monkeypatch.context() as patch:
        fail_long_lines(patch)
        fails, sample = batched_search.beam_search, batched_search.sample_search
        patch.setattr(batched_search, "sample_search", lambda *of: fails(*of[:3]) and sample(*of))
        failed = command(*words, "made", cwd=tmp_path)
        assert (failed.status, failed.out) == (2, b"")
        assert "forward.lines: 2 lines ran out of memory; free some memory, and give the same" in failed.error
        assert "(line 3, 5)" in failed.error
        assert not (tmp_path / "made/augmentation.json").exists()
        shutil.copytree(tmp_path / "made", tmp_path / "less")
        again = command(*words, "less", cwd=tmp_path)  # which have no memory again are left out
        assert again.status == 0
        assert "forward.lines: 2 lines ran out of memory again and are left out (line 3, 5)" in again.err
        counts = json.loads((tmp_path / "less/augmentation.json").read_text())["forward"]["translations"]
        assert (counts["out of memory"], "empty" in counts) == (2, False)
        assert counts["made"] == counts["kept"] + sum(n for why, n in counts.items() if why not in ("made", "kept"))
    monkeypatch.setattr(dragoman.Translator, "translate_file", _killed)  # as it translates the whole text
    assert command(*words, "made", cwd=tmp_path).status == 0
    whole, made = (contents(tmp_path / name) for name in ("whole", "made"))
    assert made == whole
    assert "empty" not in json.loads((tmp_path / "made/augmentation.json").read_text())["forward"]["translations"]


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of an augmentation that do not name their folder."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "config.yaml"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_a_kill_while_it_translates_loses_and_repeats_no_line(
    tiny_run: Path, toy_sentences: Sentences, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    many = tmp_path / "many.en"
    different = sorted({src for src, _ in toy_sentences(2400, 31)})[:2100]
    many.write_text("".join(f"{line}\n" for line in different), encoding="utf-8")
    given: dict[str, Any] = dict(forward=tiny_run, src=many, beam_size=1, **FAST)
    append, n_windows = resumable.append_to_disk, 0

    def killed_after_one_window(file: Any, content: bytes) -> None:
        nonlocal n_windows
        append(file, content)
        n_windows += b'"sha256"' in content and b'"lines"' in content
        if n_windows:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resumable, "append_to_disk", killed_after_one_window)
        with pytest.raises(Killed):
            augment(tmp_path / "killed", **given)
    assert len(lines(tmp_path / "killed/translations/forward.jsonl.partial")) == 2048
    with caplog.at_level("INFO"):
        again = augment(tmp_path / "killed", **given)
    assert any("resuming after line 2,048" in record.getMessage() for record in caplog.records)
    n_windows = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resumable, "append_to_disk", killed_after_one_window)
        with pytest.raises(Killed):
            augment(tmp_path / "other device", **given)
        facts = Translator.facts
        patch.setattr(Translator, "facts", lambda *args: {**facts(*args), "device": "cuda"})
        with pytest.raises(DragomanError, match=r"was started with another device.*; restore it, or start over: rm '"):
            augment(tmp_path / "other device", **given)
    whole = augment(tmp_path / "whole", **given)
    assert again.counts == whole.counts
    assert again.counts["forward"].lines == {"read": 2100, "translated": 2100}
    for name in ("forward.en", "forward.de", "translations/forward.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_other_filters_choose_again_and_translate_nothing(
    tiny_run: Path, mono: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = dict(forward=tiny_run, src=mono[0], **FAST)
    first = augment(tmp_path / "made", **given).counts["forward"].translations
    monkeypatch.setattr(dragoman.Translator, "translate_file", _killed)
    second = augment(tmp_path / "made", drop_worst=0.3, **given).counts["forward"].translations
    assert second["made"] == first["made"]
    assert second["low score"] > 5
    assert second["kept"] + sum(n for why, n in second.items() if why not in ("made", "kept")) == second["made"]
    assert len(lines(tmp_path / "made/forward.en")) == second["kept"] < first["kept"]
    assert augment(tmp_path / "made", max_ratio=1.01, **given).counts["forward"].translations["of unlike lengths"]
    with pytest.raises(
        ConfigError, match=r"made: its text was begun with other n_best and other sample: give the same"
    ):
        augment(tmp_path / "made", sample=True, n_best=2, **given)
    (tmp_path / "made/config.yaml").write_text("mine", encoding="utf-8")
    augment(tmp_path / "made", **given)
    assert (tmp_path / "made/config.yaml").read_text(encoding="utf-8") == "mine"


def test_what_the_configuration_lacks_is_said(
    tiny_run: Path, mono: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "run/bundle"
    shutil.copytree(tiny_run / "bundle", bundle)
    translator = dragoman.Translator.load(bundle)
    gone = translator.config.data.train.model_copy(update={"src": Path("gone.en")})  # type: ignore[union-attr]
    data = translator.config.data.model_copy(update={"train": gone, "valid": None})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Translator, "load", lambda runs: translator)
        translator.config = translator.config.model_copy(update={"data": data})
        found = augment(tmp_path / "made", forward=bundle, src=mono[0], engine="torch")
    said = capsys.readouterr().err
    assert "is not there: add your own to data.train" in said
    assert "no validation text: give your own as data.valid" in said
    written = found.config.read_text(encoding="utf-8")
    assert "# no validation text" in written
    assert len(yaml.safe_load(written)["data"]["train"]) == 1


@pytest.fixture
def moved(tiny: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was trained in another folder, with relative paths; the current folder has other text of that name."""
    mapping = tiny(max_steps=1, validate_every=1, save_every=1)
    for folder in ("there", "here"):
        (tmp_path / folder).mkdir()
    for name in ("train", "valid"):
        for side, path in list(mapping["data"][name].items()):
            copy = f"{name}.{Path(path).suffix[1:]}"
            shutil.copy(path, tmp_path / "there" / copy)
            (tmp_path / "here" / copy).write_text("other\n" * 9, encoding="utf-8")
            mapping["data"][name][side] = copy
    monkeypatch.chdir(tmp_path / "there")
    dragoman.train(Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def test_the_text_of_the_run_is_known_by_its_content(
    moved: Path, mono: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of the current folder with the same names were trained on as the run's own."""

    def own(name: str, run: str = "run") -> list[dict[str, Any]]:
        given: dict[str, Any] = dict(forward=moved / run, src=mono[0], engine="torch")
        return yaml.safe_load(augment(moved / name, **given).config.read_text(encoding="utf-8"))["data"]

    data = own("made")
    assert data["train"][0] == {"src": str(moved / "there/train.en"), "tgt": str(moved / "there/train.de")}
    assert data["valid"] == [{"src": str(moved / "there/valid.en"), "tgt": str(moved / "there/valid.de")}]
    capsys.readouterr()
    for file in (moved / "there").iterdir():
        file.rename(moved / "here" / file.name)
    data = own("made again")
    assert data["train"][0] == {"src": "train.en", "tgt": "train.de"}
    with (moved / "here/train.de").open("a", encoding="utf-8") as file:
        file.write("more\n")
    assert len(own("changed")["train"]) == 1
    assert "has changed (train.de): add your own to data.train" in capsys.readouterr().err
    shutil.copytree(moved / "run/bundle", moved / "bare/bundle")
    assert len(own("bare again", "bare")["train"]) == 2
    said = capsys.readouterr().err
    assert "train.en and train.de: taken for the text of" in said
    assert "valid.en and valid.de: taken for the text of" in said
    shutil.rmtree(moved / "run/bundle")  # as a training leaves it that was stopped
    assert len(own("unfinished")["train"]) == 1
    assert "has changed (train.de)" in capsys.readouterr().err


def test_samples_differ_and_n_of_them_are_pairs(tiny_run: Path, mono: tuple[Path, Path], tmp_path: Path) -> None:
    found = augment(tmp_path / "made", forward=tiny_run, src=mono[0], sample=True, n_best=3, temperature=1.0, **FAST)
    counts = found.counts["forward"]
    assert counts.translations["made"] == 3 * counts.lines["translated"]
    src, tgt = (lines(tmp_path / f"made/forward.{lang}") for lang in ("en", "de"))
    assert len(set(zip(src, tgt, strict=True))) == len(src) > len(set(src))


def test_back_alone_turns_the_settings_round(back: Path, mono: tuple[Path, Path], tmp_path: Path) -> None:
    found = augment(tmp_path / "made", back=back, tgt=mono[1], tag="", **FAST)
    data, old = Config.from_yaml(found.config).data, Config.from_yaml(back / "config.yaml").data
    assert (data.src_lang, data.tgt_lang) == ("en", "de")
    assert (data.train[0].src, data.train[0].tgt) == (old.train.tgt, old.train.src)  # type: ignore[index,union-attr]
    assert data.valid[0].src == old.valid.tgt  # type: ignore[index,union-attr]
    assert found.entries == ({"src": str(tmp_path / "made/back.en"), "tgt": str(tmp_path / "made/back.de")},)


def test_a_model_of_several_languages_is_told_which(several_run: Path, mono: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="translates into 2 languages: choose one with to"):
        augment(tmp_path / "made", forward=several_run, src=mono[0], **FAST)
    found = augment(tmp_path / "made", forward=several_run, src=mono[0], to="fr", forward_tag="<ft>", **FAST)
    data = Config.from_yaml(found.config).data
    assert found.entries[0]["tag"] == "<ft>"
    assert (found.entries[0]["src_lang"], found.entries[0]["tgt_lang"]) == ("en", "fr")
    assert (len(data.train), data.tgt_langs) == (4, ("de", "fr"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "nothing to translate: give --forward RUN with --src FILE, or --back RUN with --tgt FILE"),
        (dict(forward="run"), "--forward .*tiny has nothing to translate: give the text with --src"),
        (dict(src="x.en"), "--src .*x.en needs a model that translates it: give --forward RUN"),
        (dict(tgt="x.de"), "--tgt .*x.de needs a model that translates it: give --back RUN; --forward is for text of"),
        (dict(forward="run", src="empty.en"), "empty.en: there is nothing to translate"),
        (dict(forward="run", src="blank.en"), "blank.en: there is nothing to translate"),
        (dict(forward="run", src="none.en"), "none.en: no such file"),
        (dict(forward="run", src="french.en"), "french.en: looks like French .fr., but .*tiny translates from English"),
        (dict(forward="run", src="x.de"), "x.de: German .de. by its name, but --forward .* en -> de: give text in "
         "en, or give this model to --back with --tgt"),
        (dict(back="run", tgt="x.de"), r"x.de: German .de. by its name, but --back .*tiny .* en -> de: "
         ".* to --forward"),
        (dict(forward="run", src="x.en", back="run", tgt="y.en"), "--forward .* translates en -> de and --back .* "
         "en -> de: --back takes a model of the opposite direction"),
        (dict(forward="run", src="chinese"), r"chinese: looks like Chinese \(zh\), but .*tiny translates from English"),
        (dict(forward="run", src="x.en", out="there"), "there: holds files that no augmentation wrote"),
        (dict(forward="run", src="x.en", out="x.en"), "x.en: is a file; name a folder with --out"),
        (dict(forward="run", src="x.en", out="."), ": holds files that no augmentation wrote"),
        (dict(forward="run", src="x.en", held_out="none.de"), "none.de: no such file"),
        (dict(forward="run", src="x.en", tag="<syn>"), "--tag is for the text of --back: leave it out, or give --back"),
        (dict(back="run", tgt="x.en", forward_tag="<ft>"), "--forward-tag is for the text of --forward: leave it out"),
        (dict(forward="run", src="x.en", forward_tag="bt"), "tag must be one word in angle brackets"),
        (dict(forward="run", src="x.en", weight=0.0), "weight must be above 0, got 0.0"),
        (dict(forward="run", src="x.en", n_best=3, beam_size=2), "beam_size must be at least n_best = 3, got 2"),
        (dict(forward="run", src="x.en", top_k=2), "top_k: only for sampling"),
        (dict(forward="run", src="x.en", to="it"), "--to it is the direction of training, but --forward .*en -> de"),
    ],
)  # fmt: skip
def test_what_is_impossible_is_refused_in_one_line(
    given: dict[str, Any], what: str, tiny_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    texts = {
        "empty.en": "", "blank.en": "\n \n", "french.en": "le chat est sur la table et les chiens sont là\n",
        "x.en": "the dog\n", "y.en": "the cat\n", "x.de": "der hund\n", "chinese": "这是房子\n那是一只猫\n我们\n",
        "there/notes": "mine",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text * (30 if name == "french.en" else 1), encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    paths = ("src", "tgt", "out", "held_out")
    given = {
        name: tiny_run if value == "run" else tmp_path / value if name in paths else value
        for name, value in given.items()
    }
    out = given.pop("out", tmp_path / "new")
    with pytest.raises(DragomanError, match=what) as error:
        augment(out, **given, **FAST)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_text_in_the_folder_that_is_written_is_refused(tiny_run: Path, mono: tuple[Path, Path], tmp_path: Path) -> None:
    augment(tmp_path / "made", forward=tiny_run, src=mono[0], **FAST)
    before = (tmp_path / "made/forward.en").read_bytes()
    with pytest.raises(ConfigError, match=r"forward.en: lies in .*made, which is written"):
        augment(tmp_path / "made", forward=tiny_run, src=tmp_path / "made/forward.en", **FAST)
    assert (tmp_path / "made/forward.en").read_bytes() == before


def test_two_sides_of_one_language_have_two_names(tmp_path: Path) -> None:
    assert [path.name for path in sides_of(tmp_path, "pairs", ("en", "de"))] == ["pairs.en", "pairs.de"]
    assert [path.name for path in sides_of(tmp_path, "pairs", ("en", "en"))] == ["pairs.src", "pairs.tgt"]
    assert [path.name for path in sides_of(tmp_path, "pairs", (None, "de"))] == ["pairs.src", "pairs.de"]


def test_the_command_prints_the_entries(
    command: Callable[..., Any], tiny_run: Path, mono: tuple[Path, Path], tmp_path: Path
) -> None:
    done = command(
        "augment", "--forward", tiny_run, "--src", mono[0], "--engine", "torch", "--out", "made", cwd=tmp_path
    )
    assert done.status == 0
    config, *printed = done.out.decode().removesuffix("\n").split("\n")
    assert config == "made/config.yaml"
    assert yaml.safe_load("\n".join(printed)) == {
        "data": {"train": [{"src": "made/forward.en", "tgt": "made/forward.de"}]}
    }
    assert "forward: 66 lines, 61 translated; left out: 1 blank, 1 of unknown characters" in done.err
    assert "Train on it:  dragoman train made/config.yaml --out runs/NAME" in done.err
    wrong = command("augment", "--forward", tiny_run, "--src", mono[1], "--engine", "torch", "--out", "x", cwd=tmp_path)
    assert (wrong.status, wrong.out) == (2, b"")
    assert "German (de) by its name" in wrong.error
    assert not (tmp_path / "x").exists()


def test_text_of_any_form_is_turned_round(tmp_path: Path) -> None:
    (tmp_path / "memory.tmx").write_text(
        '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a dog</seg>'
        '</tuv><tuv xml:lang="de"><seg>ein Hund</seg></tuv></tu></body></tmx>',
        encoding="utf-8",
    )
    for name, text in (
        ("plain.tsv", "a dog\tein Hund\n"),
        ("scored.tsv", "score\ten\tde\n0.5\ta dog\tein Hund\n"),
        ("reversed.tsv", "target\tsource\nein Hund\ta dog\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        given = OneFile(file=tmp_path / name)
        assert list(read_one(given)) == [("a dog", "ein Hund")]
        assert list(read_one(turned_round(given))) == [("ein Hund", "a dog")]
    for given, columns in (
        (OneFile(file=tmp_path / "plain.tsv"), ("2", "1")),
        (OneFile(file=Path("a.csv"), columns=("en", "de")), ("de", "en")),
        (OneFile(file=tmp_path / "memory.tmx"), ("de", "en")),
    ):
        found = turned_round(given)
        assert isinstance(found, OneFile)
        assert (found.file, found.columns) == (given.file, columns)
    pair = PairOfFiles(src=Path("a"), tgt=Path("b"), tag="<bt>", weight=2, src_lang="en", tgt_lang="de")
    assert turned_round(pair) == PairOfFiles(src=Path("b"), tgt=Path("a"), weight=2, src_lang="de", tgt_lang="en")
