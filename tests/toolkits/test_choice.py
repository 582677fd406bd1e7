"""Which engine searches, what it is made from, and what a translator does with it."""

from __future__ import annotations

import io
import json
import logging
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
import torch

import dragoman
from dragoman import toolkits
from dragoman.bundle import Bundle, load_bundle
from dragoman.decoding.constraints import Rules
from dragoman.decoding.request import Progress, SearchResult, SearchSettings, Segment
from dragoman.errors import BundleError, ConfigError, DragomanError
from dragoman.files import check_sealed
from dragoman.options import json_schema
from dragoman.toolkits import choice as engines
from dragoman.toolkits import export as exports
from dragoman.toolkits.ctranslate2 import search
from dragoman.toolkits.ctranslate2.search import CTranslate2
from dragoman.toolkits.engine import Models, Needs
from dragoman.toolkits.export import kept_export
from dragoman.toolkits.ours.search import Torch
from dragoman.toolkits.toolkit import Toolkit
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the tiny run's bundle that a test may write beside."""
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    return tmp_path / "run"


@pytest.fixture
def texts(toy_sentences: Callable[..., Any]) -> list[str]:
    return ["", *(src for src, _ in toy_sentences(30, 5)), "  "]


def test_a_translator_says_the_same_with_either_engine(run: Path, texts: list[str]) -> None:
    translator = Translator.load(run, "cpu")
    for settings in ({}, {"beam_size": 1}, {"n_best": 2, "beam_size": 3}, {"deterministic": True}, {"threads": 2}):
        # told to, our search too ends where a beam of translations is finished, though better ones might come
        want = translator.translate(texts, patience=1.0, **settings)
        found = translator.translate(texts, engine="ctranslate2", patience=1.0, **settings)
        assert [one.text for one in found] == [one.text for one in want], settings
        assert [one.notes for one in found] == [one.notes for one in want]
        assert [one.score for one in found] == pytest.approx([one.score for one in want], abs=1e-4)
    long = ["the dog sees a cat " * 30]
    parts = [translator.translate(long, engine=engine)[0].n_parts for engine in ("torch", "ctranslate2")]
    assert parts[0] == parts[1] > 1


def test_int8_is_asked_for_and_is_near(run: Path, texts: list[str]) -> None:
    translator = Translator.load(run, "cpu")
    want = translator.translate(texts[1:31])
    found = translator.translate(texts[1:31], engine="ctranslate2", precision="int8")
    assert sum(a.text == b.text for a, b in zip(found, want, strict=True)) > 20
    assert [one.score for one in found] != [one.score for one in want]
    assert sorted(path.name for path in (run / "exports").iterdir()) == ["ctranslate2-int8"]


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"sample": True}, "sampling"),
    ({"prefix": "der"}, "constrained decoding"),
    ({"include": ("hund",)}, "constrained decoding"),
    ({"exclude": ("hund",)}, "constrained decoding"),
    ({"no_repeat_ngram": 2}, "constrained decoding"),
    ({"alignments": True}, "alignments"),
    ({"precision": "bf16"}, "precision bf16"),
]


@pytest.mark.parametrize(("option", "name"), OPTIONS)
def test_what_it_cannot_do_is_refused_and_auto_goes_to_torch(
    tiny_run: Path, caplog: pytest.LogCaptureFixture, option: dict[str, Any], name: str
) -> None:
    translator = Translator.load(tiny_run, "cpu")
    with pytest.raises(ConfigError, match=rf"engine = 'ctranslate2' cannot do {name}: use engine torch \(or auto\)"):
        translator.translate(["the dog"], engine="ctranslate2", **option)
    with caplog.at_level(logging.INFO, "dragoman.toolkits.choice"):
        found = translator.translate(["the dog"], engine="auto", **option)
    assert found == translator.translate(["the dog"], **option)
    said = [record.message for record in caplog.records if record.name == "dragoman.toolkits.choice"]
    assert said == [f"engine: torch (CTranslate2 cannot do {name})"]


def test_an_ensemble_is_one_such_option(tiny_run: Path) -> None:
    with pytest.raises(ConfigError, match="cannot do an ensemble"):
        Translator.load([tiny_run, tiny_run], "cpu").translate(["the dog"], engine="ctranslate2")


def test_a_model_that_it_cannot_express_is_one_too(tiny_run: Path) -> None:
    bundle = load_bundle(tiny_run)
    model = type(bundle.model)(bundle.model.config.model_copy(update={"d_k": 4, "d_v": 6}))
    assert CTranslate2.obstacle(Models((bundle,)), Needs()) == ""
    found = CTranslate2.obstacle(Models((bundle._replace(weights=model),)), Needs())
    assert found == "this model: its heads have one width, and here model.d_k is 4 and model.d_v 6"


@pytest.mark.parametrize(
    ("device", "took", "reason"), [("cpu", "ctranslate2", "the faster one on a CPU"), ("cuda", "torch", "a GPU")]
)
def test_auto_says_what_it_took_and_why(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    device: str, took: str, reason: str,
) -> None:  # fmt: skip
    bundle = load_bundle(tiny_run)
    choose = engines.Engines(Models((bundle,))).choose
    monkeypatch.setattr(Models, "device_type", device)
    with caplog.at_level(logging.INFO, "dragoman.toolkits.choice"):
        assert choose("auto", Needs()) == took
    assert caplog.messages == [f"engine: {took} ({reason})"]
    assert choose("torch", Needs()) == "torch"
    assert choose("ctranslate2", Needs()) == "ctranslate2"
    assert len(caplog.messages) == 1


def test_an_unknown_engine_is_refused(tiny_run: Path) -> None:
    with pytest.raises(ConfigError, match="engine must be torch, ctranslate2 or auto, got 'onnx'"):
        Translator.load(tiny_run, "cpu").translate(["the dog"], engine="onnx")
    with pytest.raises(ConfigError, match="threads must be 1 or more, got 0"):
        Translator.load(tiny_run, "cpu").translate(["the dog"], engine="ctranslate2", threads=0)
    bundle = load_bundle(tiny_run)
    for engine in ("torch", "ctranslate2"):
        with pytest.raises(ConfigError, match="workers must be 1 or more, got 0"):
            engines.Engines(Models((bundle,))).get(engine, "fp32", 0)


def test_what_auto_took_for_a_file_is_told_to_the_process_that_resumes(
    run: Path, tmp_path: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    translator = Translator.load(run, "cpu")
    whole = translator.translate_planned

    def dies_at_the_second_window(texts: Any, plan: Any, events: Any, first_number: int) -> Any:
        if first_number:
            raise KeyboardInterrupt
        return whole(texts, plan, events, first_number)

    monkeypatch.setattr(translator, "translate_planned", dies_at_the_second_window)
    settings: dict[str, Any] = {"engine": "auto", "read_ahead": 4}
    with pytest.raises(KeyboardInterrupt):
        translator.translate_file(tmp_path / "in", tmp_path / "out", **settings)
    monkeypatch.setattr(translator, "translate_planned", whole)
    with monkeypatch.context() as without:
        without.setattr(CTranslate2, "why_not_auto", classmethod(lambda *_: "another machine"))
        with pytest.raises(DragomanError, match="engine"):
            translator.translate_file(tmp_path / "in", tmp_path / "out", **settings)
    assert translator.translate_file(tmp_path / "in", tmp_path / "out", **settings) == len(texts)


def test_a_file_is_one_engines_work(run: Path, tmp_path: Path, texts: list[str]) -> None:
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    translator = Translator.load(run, "cpu")
    outputs = []
    for engine in ("torch", "auto", "ctranslate2"):
        settings = {"engine": engine, "read_ahead": 4, "patience": 1.0}
        translator.translate_file(tmp_path / "in", tmp_path / f"{engine}.out", **settings)
        outputs.append((tmp_path / f"{engine}.out").read_bytes())
        assert (run / "exports").exists() == (engine != "torch")
    assert outputs[0] == outputs[1] == outputs[2]


# --- what the engine is made from -------------------------------------------------------------------------------------


def test_the_model_is_converted_once_and_again_when_it_is_another(run: Path, reseal: Callable[..., Path]) -> None:
    bundle = load_bundle(run)
    first = kept_export(bundle, run, "ctranslate2", "float32")
    assert first.folder == run / "exports/ctranslate2-float32"
    facts = check_sealed(first.folder, "conversion")
    assert facts["bundle"] == bundle.manifest["sha256"]
    made = (first.folder / "model.bin").stat()
    again = kept_export(bundle, run / "bundle", "ctranslate2", "float32")
    assert (again.folder / "model.bin").stat().st_ino == made.st_ino
    shutil.rmtree(run / "bundle")
    shutil.copytree(reseal({"step": 12345}), run / "bundle")
    other = load_bundle(run)
    assert (
        check_sealed(kept_export(other, run, "ctranslate2", "float32").folder, "conversion")["bundle"]
        == other.manifest["sha256"]
    )
    assert (first.folder / "model.bin").stat().st_ino != made.st_ino


def test_a_damaged_conversion_is_made_again(run: Path) -> None:
    bundle = load_bundle(run)
    folder = kept_export(bundle, run, "ctranslate2", "float32").folder
    (folder / "model.bin").write_bytes(b"")
    with pytest.raises(BundleError):
        check_sealed(folder, "conversion")
    assert kept_export(bundle, run, "ctranslate2", "float32").folder == folder
    check_sealed(folder, "conversion")


def test_foreign_files_where_exports_go_are_left_alone(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    bundle = load_bundle(run)
    folder = exports.export_folder(run, "ctranslate2", "float32")
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("years")
    found = kept_export(bundle, run, "ctranslate2", "float32")
    assert found.temporary is not None
    assert found.folder != folder
    assert "left unchanged" in caplog.text
    found.temporary.close()
    (folder / "mine.txt").unlink()
    assert dragoman.export(run) == folder
    (folder / "mine.txt").write_text("years")
    with pytest.raises(ConfigError, match=r"already exists and also has mine.txt; choose"):
        dragoman.export(run)
    assert (folder / "mine.txt").read_text() == "years"


def test_a_run_that_cannot_be_written_is_converted_elsewhere_for_a_while(run: Path) -> None:
    (run / "exports").write_bytes(b"in the way")
    translator = Translator.load(run, "cpu")
    want = translator.translate(["the dog sees a cat"])[0].text
    assert translator.translate(["the dog sees a cat"], engine="ctranslate2")[0].text == want
    engine = translator.plan(engine="ctranslate2").engine
    assert isinstance(engine, CTranslate2)
    elsewhere = engine.export
    assert elsewhere is not None
    assert elsewhere.temporary is not None
    assert elsewhere.folder.is_dir()
    engine.close()
    assert not elsewhere.folder.exists()
    assert (run / "exports").read_bytes() == b"in the way"


def test_a_model_in_memory_is_converted_as_it_is(tiny_run: Path) -> None:
    bundle = load_bundle(tiny_run)
    with torch.no_grad():
        bundle.model.decoder.layers[0].feed_forward.w_2.bias += 1.0  # no longer what the manifest says
    translator = Translator(bundle)
    want = translator.translate(["the dog sees a cat"], guard=False)
    found = translator.translate(["the dog sees a cat"], guard=False, engine="ctranslate2")
    assert found[0].score == pytest.approx(want[0].score, abs=1e-4)
    translator.plan(engine="ctranslate2").engine.close()


def test_a_model_that_is_changed_in_memory_before_the_translator_reads_it_is_converted_as_it_is(run: Path) -> None:
    Translator.load(run, "cpu").plan(engine="ctranslate2")  # an export is kept
    translator = Translator.load(run, "cpu")
    with torch.no_grad():
        translator.bundle.model.decoder.layers[0].feed_forward.w_2.bias += 1.0
    want = translator.translate(["the dog sees a cat"], guard=False)
    found = translator.translate(["the dog sees a cat"], guard=False, engine="ctranslate2")
    assert found[0].score == pytest.approx(want[0].score, abs=1e-4)
    assert pickle.loads(pickle.dumps(translator)).run is None
    translator.plan(engine="ctranslate2").engine.close()


def test_fast_translates_with_a_kept_export_without_torch_and_as_with_it(run: Path, texts: list[str]) -> None:
    """It takes a second to import, and 200 MB."""
    script = """
import json, sys
from dragoman.cli import main
if sys.argv[1] == "torch":
    import torch
from dragoman.translation.translator import Translator
found = Translator.load(sys.argv[2]).translate(json.load(sys.stdin), fast=True)
print(json.dumps(["torch" in sys.modules, [(line.text, line.score, line.confidence) for line in found]]))
"""
    told = []
    for which in ("torch", "torch", ""):  # the first call writes the export
        done = subprocess.run(
            [sys.executable, "-c", script, which, str(run)], input=json.dumps(texts), capture_output=True, text=True
        )
        told.append(json.loads(done.stdout or "0"))
        assert told[-1], done.stderr
    assert [is_imported for is_imported, _ in told] == [True, True, False]
    assert told[0][1] == told[1][1] == told[2][1]


@pytest.fixture
def other_bundle(run: Path, reseal: Callable[..., Path]) -> Bundle:
    """The bundle of the run after another training: its scores are others."""
    bundle = load_bundle(reseal({"step": 12345}))
    with torch.no_grad():
        for weight in bundle.model.parameters():
            weight.mul_(0.8)
    return bundle


@pytest.mark.parametrize("times", [1, 2, 9])
@pytest.mark.parametrize("is_missing", [False, True])
def test_an_export_that_another_process_replaces_while_it_is_loaded_is_loaded_again(
    run: Path, texts: list[str], other_bundle: Bundle, monkeypatch: pytest.MonkeyPatch, times: int, is_missing: bool
) -> None:
    translator = Translator.load(run, "cpu")
    settings: dict[str, Any] = {"patience": 1.0, "guard": False}
    want = [line.score for line in translator.translate(texts, **settings)]
    folder, opened, n_opened = exports.export_folder(run, "ctranslate2", "float32"), search.open_folder, 0

    def interrupted(export: Path, *options: Any) -> Any:
        nonlocal n_opened
        n_opened += 1
        if export != folder or n_opened > times:
            return opened(export, *options)
        exports.write(other_bundle, folder, "ctranslate2", "float32")
        if not is_missing:
            return opened(export, *options)
        try:  # between the two renames of a folder that is replaced
            moved = folder.rename(run / "moved")
            return opened(export, *options)
        finally:
            moved.rename(folder)

    monkeypatch.setattr(search, "open_folder", interrupted)
    lines = translator.translate(texts, engine="ctranslate2", **settings)
    assert [line.score for line in lines] == pytest.approx(want, abs=1e-4)
    engine = translator.plan(engine="ctranslate2").engine
    assert isinstance(engine, CTranslate2)
    assert engine.export is not None
    assert (engine.export.folder != folder) == (times > 1)  # at last a folder that no other process replaces
    engine.close()


def test_an_export_that_cannot_be_loaded_is_not_tried_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def refused(export: Path, *_: Any) -> Any:
        tried.append(export)
        raise ConfigError("cannot load it")

    monkeypatch.setattr(search, "open_folder", refused)
    with pytest.raises(ConfigError, match="cannot load it"):
        Translator.load(run, "cpu").translate(["a dog"], engine="ctranslate2")
    assert len(tried) == 1


# --- exports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["export", "translator.html"])
def test_a_new_export_does_not_keep_the_comparison_of_the_older_one(run: Path, tmp_path: Path, name: str) -> None:
    form = "page" if name.endswith(".html") else "ctranslate2"
    out = dragoman.export(run, form, tmp_path / name)
    certificate = out / exports.CERTIFICATE if out.is_dir() else tmp_path / "translator.certificate.json"
    certificate.write_text('{"n_identical": 1}', encoding="utf-8")
    if out.is_dir():
        (out / exports.CARD).write_text("Compared with the original", encoding="utf-8")
    assert dragoman.export(run, form, out) == out
    assert not certificate.exists()
    assert not (out / exports.CARD).exists()


def test_a_readme_that_a_user_put_into_an_export_is_kept(
    run: Path, other_bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    """An engine replaced the folder, and this file alone was removed without a word."""
    folder = kept_export(load_bundle(run), run, "ctranslate2", "float32").folder
    (folder / exports.CARD).write_text("# How we use this model trained with dragoman", encoding="utf-8")
    found = kept_export(other_bundle, run, "ctranslate2", "float32")
    assert found.temporary is not None
    found.temporary.close()
    assert "its README.md is yours or was changed; it is left unchanged" in caplog.text
    with pytest.raises(ConfigError, match=r"already exists and its README.md is yours or was changed; choose"):
        dragoman.export(run, "ctranslate2", folder)
    (folder / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"and also has notes.txt and its README.md is yours or was changed; choose"):
        dragoman.export(run, "ctranslate2", folder)
    (folder / exports.CARD).unlink()
    with pytest.raises(ConfigError, match=r"already exists and also has notes.txt; choose"):
        dragoman.export(run, "ctranslate2", folder)
    (folder / exports.CARD).write_text("# How we use this", encoding="utf-8")
    assert (folder / exports.CARD).read_text(encoding="utf-8").startswith("# How we use")


def test_an_export_of_one_file_leaves_what_is_no_comparison_of_it(run: Path, tmp_path: Path) -> None:
    """Two exports of one stem have one name for their certificates."""
    pytest.importorskip("onnx")
    page = dragoman.export(run, "page", tmp_path / "de.html")
    certificate = tmp_path / "de.certificate.json"
    contents = ('{"export": "page", "n_identical": 1}', '{"subject": "CN=example.org"}', "BEGIN", "[1]", "{}")
    for content in contents:
        certificate.write_text(content, encoding="utf-8")
        dragoman.export(run, "argos", tmp_path / "de.argosmodel")
        assert certificate.read_text(encoding="utf-8") == content
    for content in contents:
        certificate.write_text(content, encoding="utf-8")
        dragoman.export(run, "page", page)
        assert certificate.exists() == (content != contents[0])


def test_an_engine_that_writes_its_export_again_removes_the_older_comparison(run: Path, other_bundle: Bundle) -> None:
    folder = kept_export(load_bundle(run), run, "ctranslate2", "float32").folder
    certificate = folder / exports.CERTIFICATE
    certificate.write_text("{}", encoding="utf-8")
    assert kept_export(load_bundle(run), run, "ctranslate2", "float32").folder == folder
    assert certificate.exists()  # of this model
    assert kept_export(other_bundle, run, "ctranslate2", "float32").folder == folder
    assert not certificate.exists()


def test_an_export_is_complete_and_says_where_it_is_from(run: Path, tmp_path: Path) -> None:
    folder = dragoman.export(run, "ctranslate2", tmp_path / "out", "int8")
    assert folder == tmp_path / "out"
    facts = check_sealed(folder, "conversion")
    wanted = {"export": "ctranslate2", "quantization": "int8", "src_lang": "en", "tgt_lang": "de"}
    assert {name: facts[name] for name in wanted} == wanted
    assert sorted(facts["files"]) == ["config.json", "joint.spm", "model.bin", "shared_vocabulary.json"]
    assert json.loads((folder / "config.json").read_text())["add_source_eos"] is True
    assert dragoman.export(run, out=folder) == folder  # an export may be replaced, also a damaged one
    (folder / "model.bin").write_bytes(b"")
    dragoman.export(run, out=folder)
    assert check_sealed(folder, "conversion")["quantization"] == "float32"
    assert dragoman.export(run / "bundle") == run / "exports/ctranslate2-float32"


def test_an_export_of_a_bundle_that_lies_by_itself_goes_into_it(run: Path) -> None:
    run = run.rename(run.with_name("other"))
    (run / "bundle").rename(run / "english-german")
    assert dragoman.export(run / "english-german") == run / "english-german/exports/ctranslate2-float32"
    load_bundle(run / "english-german")


def test_nothing_else_is_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years")
    (tmp_path / "file").write_text("a file")
    for out in (tmp_path / "mine", tmp_path / "file", run, run / "bundle"):
        with pytest.raises(ConfigError, match="already exists and is not an export; choose another --out"):
            dragoman.export(run, out=out)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years"
    with pytest.raises(ConfigError, match=r"format must be ctranslate2, .*, got 'word'"):
        dragoman.export(run, "word")
    with pytest.raises(ConfigError, match=r"quantization must be .*, got 'int3'"):
        dragoman.export(run, quantization="int3")
    assert exports.export_folder(run, "ctranslate2", "int3").parent.exists() is False


def test_weights_that_have_changed_are_converted_again_and_not_beside_the_run(run: Path, texts: list[str]) -> None:
    translator = Translator.load(run, "cpu")
    settings: dict[str, Any] = {"patience": 1.0, "guard": False}
    before = translator.translate(texts, engine="ctranslate2", **settings)
    with torch.no_grad():
        for weight in translator.model.parameters():
            weight.mul_(0.8)
    want = translator.translate(texts, **settings)
    found = translator.translate(texts, engine="ctranslate2", **settings)
    assert [one.score for one in found] != pytest.approx([one.score for one in before], abs=1e-3)
    assert [one.score for one in found] == pytest.approx([one.score for one in want], abs=1e-4)
    translator.plan(engine="ctranslate2").engine.close()
    again = Translator.load(run, "cpu").translate(texts, engine="ctranslate2", **settings)
    assert again == before


def test_a_plan_takes_an_engine_that_is_handed_over(run: Path, texts: list[str]) -> None:
    translator, bundle = Translator.load(run, "cpu"), load_bundle(run)
    engine = CTranslate2.load(Models((bundle,), run), "fp32", 1)
    plan = translator.plan()
    assert isinstance(plan.engine, Torch)
    handed = replace(plan, engine=engine)
    assert translator.translate(texts, handed) == translator.translate(texts, engine="ctranslate2")
    engine.close()


def test_an_engine_that_is_handed_over_refuses_what_it_cannot_do_too(run: Path) -> None:
    folder = dragoman.export(run)
    (run / "src").write_text("the dog\n", encoding="utf-8")
    for option in ({"sample": True}, {"exclude": ["hund"]}):
        with pytest.raises(ConfigError, match="cannot do"):
            dragoman.certify(run, folder, src=run / "src", device="cpu", quiet=True, **option)


def test_a_glossary_without_terms_is_none(run: Path, texts: list[str]) -> None:
    translator, empty = Translator.load(run, "cpu"), dragoman.Glossary([])
    for engine in ("torch", "ctranslate2", "auto"):
        found = translator.translate(texts, glossary=empty, engine=engine)
        assert found == translator.translate(texts, engine="torch" if engine == "torch" else "ctranslate2")


def test_a_refused_setting_leaves_no_file(run: Path, tmp_path: Path) -> None:
    (tmp_path / "src").write_text("the dog\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    for wrong in ({"n_best": 9}, {"precision": "fp8"}, {"engine": "ctranslate2", "sample": True}):
        with pytest.raises(DragomanError):
            Translator.load(run, "cpu").translate_file(tmp_path / "src", tmp_path / "out", **wrong)
    assert sorted(tmp_path.rglob("*")) == before


def test_prefixes_that_are_not_those_of_the_lines_leave_no_file(run: Path, tmp_path: Path) -> None:
    (tmp_path / "src").write_text("the dog\na cat\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match="give one prefix for all lines"):
        Translator.load(run, "cpu").translate_file(tmp_path / "src", tmp_path / "out", prefix=["der", "die", "das"])
    assert sorted(tmp_path.rglob("*")) == before


def test_options_count_where_there_is_nothing_to_translate(run: Path) -> None:
    translator = Translator.load(run, "cpu")
    for option in ({"no_repeat_ngram": 2}, {"prefix": "der"}, {"include": ["hund"]}):
        with pytest.raises(ConfigError, match="constrained decoding"):
            translator.translate([], engine="ctranslate2", **option)


# --- another engine ---------------------------------------------------------------------------------------------------


class Shouting:
    """A third engine: Torch's translations, of which it takes the last word twice. It cannot sample, nor constrain."""

    name: ClassVar[str] = "shouting"
    loads_workers: ClassVar[bool] = True
    merit: ClassVar[str] = "it is loud"
    attend = None
    loaded: ClassVar[list[tuple[str, int]]] = []
    closed: ClassVar[list[str]] = []

    def __init__(self, inner: Torch) -> None:
        self.inner = inner

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        return "sampling" if needs.sampling else "constrained decoding" if needs.constraints else ""

    def can_search(self, rules: Rules) -> bool:
        return False

    @classmethod
    def why_not_auto(cls, models: Models, needs: Needs) -> str:
        return "it is never taken by itself"

    @classmethod
    def fastest_precision(cls, models: Models, needs: Needs) -> None:
        return None

    @classmethod
    def load(cls, models: Models, precision: str, workers: int) -> Self:
        cls.loaded.append((precision, workers))
        return cls(Torch.load(models, precision, workers))

    def is_of(self, models: Models) -> bool:
        return self.inner.is_of(models)

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, progress: Progress | None = None
    ) -> SearchResult:
        found = self.inner.search(segments, settings, progress)
        twice = [[h._replace(ids=[*h.ids, *h.ids[-1:]]) for h in hypotheses] for hypotheses in found.hypotheses]
        return SearchResult(twice, found.out_of_memory)

    def close(self) -> None:
        self.closed.append(self.name)


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> type[Shouting]:
    """The class of a third engine that is known by its name."""
    toolkit = Toolkit(name="shouting", engine=Shouting.name, engine_class=lambda: Shouting)
    monkeypatch.setattr(toolkits, "TOOLKITS", [*toolkits.TOOLKITS, toolkit])
    monkeypatch.setattr(Shouting, "loaded", [])
    monkeypatch.setattr(Shouting, "closed", [])
    return Shouting


def test_a_third_engine_is_a_class_and_an_entry(tiny_run: Path, shouting: type[Shouting], tmp_path: Path) -> None:
    translator = Translator.load(tiny_run, "cpu")
    sentences = ["the dog sees a cat", "", "a man finds the house today"]
    want = [one.text.split() for one in translator.translate(sentences, guard=False)]
    settings: dict[str, Any] = {"engine": "shouting", "guard": False}
    found = translator.translate(sentences, **settings)
    assert [one.text.split() for one in found] == [[*words, *words[-1:]] for words in want]
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in sentences), encoding="utf-8")
    assert translator.translate_file(tmp_path / "in", tmp_path / "out", **settings) == 3
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert written == "".join(f"{one.text}\n" for one in found)
    streamed = translator.translate_stream(io.BytesIO((tmp_path / "in").read_bytes()), "in", **settings)
    assert list(streamed) == found
    assert shouting.loaded == [("fp32", 1)]  # once for all
    translator.translate(sentences, precision="bf16", threads=2, **settings)
    assert shouting.loaded == [("fp32", 1), ("bf16", 2)]
    assert shouting.closed == []


def test_a_third_engine_has_the_guard_search_again_with_torch(tiny_run: Path, shouting: type[Shouting]) -> None:
    translator = Translator.load(tiny_run, "cpu")
    plan = translator.plan(engine="shouting")
    assert isinstance(plan.engine, shouting)
    assert isinstance(plan.constrained.engine, Torch)


def test_a_third_engine_that_can_constrain_is_asked_by_the_guard_itself(
    tiny_run: Path, shouting: type[Shouting], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shouting, "obstacle", classmethod(lambda cls, models, needs: ""))
    plan = Translator.load(tiny_run, "cpu").plan(engine="shouting", precision="bf16")
    assert plan.constrained.engine is plan.engine


def test_the_help_names_all_engines() -> None:
    assert "torch, ctranslate2 or auto" in json_schema(TranslateOptions)["properties"]["engine"]["description"]


def test_a_third_engine_is_refused_what_it_cannot_do(tiny_run: Path, shouting: type[Shouting]) -> None:
    translator = Translator.load(tiny_run, "cpu")
    with pytest.raises(ConfigError, match="engine = 'shouting' cannot do sampling"):
        translator.translate(["the dog"], engine="shouting", sample=True)
    with pytest.raises(ConfigError, match="engine must be torch, ctranslate2, shouting or auto, got 'onnx'"):
        translator.translate(["the dog"], engine="onnx")
    assert shouting.loaded == []


def test_a_third_engine_is_loaded_again_when_the_weights_have_changed(run: Path, shouting: type[Shouting]) -> None:
    translator = Translator.load(run, "cpu")
    first = translator.plan(engine="shouting").engine
    assert translator.plan(engine="shouting").engine is first
    with torch.no_grad():
        for weight in translator.model.parameters():
            weight.mul_(0.8)
    assert translator.plan(engine="shouting").engine is not first
    assert (shouting.loaded, shouting.closed) == ([("fp32", 1)] * 2, ["shouting"])


def test_each_engine_says_what_it_cannot_do_before_anything_is_loaded(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)  # nor does it ask for the package
    for engine in (Torch, CTranslate2):
        monkeypatch.setattr(engine, "load", lambda *given: pytest.fail("loaded"))
    bundle = load_bundle(tiny_run)
    one, two = Models((bundle,)), Models((bundle, bundle))
    asked = {
        "sampling": Needs(sampling=True), "alignments": Needs(alignments=True), "parsing": Needs(trees=True),
        "constrained decoding": Needs(constraints=True), "precision bf16": Needs(precision="bf16"),
        "": Needs(precision="int8"),
    }  # fmt: skip
    for what, needs in asked.items():
        assert Torch.obstacle(one, needs) == Torch.obstacle(two, needs) == ("" if what else "precision int8")
        assert CTranslate2.obstacle(one, needs) == what
        assert CTranslate2.obstacle(two, needs) == "an ensemble"


@pytest.mark.parametrize(
    ("needs", "precision", "took"),
    [
        (Needs(), "fp32", ("ctranslate2", "int8")),
        (Needs(constraints=True), "bf16", ("torch", "bf16")),
        (Needs(constraints=True), "fp32", ("torch", "fp32")),
    ],
)
def test_fast_takes_the_fastest_that_is_here(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, needs: Needs, precision: str, took: tuple[str, str]
) -> None:
    bundle = load_bundle(tiny_run)
    monkeypatch.setattr("dragoman.toolkits.ours.search.resolve_precision", lambda *_: precision)
    assert engines.Engines(Models((bundle,))).fastest(needs) == took


def test_int8_is_searched_by_the_engine_that_has_it(tiny_run: Path) -> None:
    bundle = load_bundle(tiny_run)
    assert Translator(bundle).plan(precision="int8").engine.name == "ctranslate2"
    with pytest.raises(ConfigError, match="'torch' cannot do precision int8: use engine ctranslate2"):
        Translator(bundle).plan(precision="int8", engine="torch")
    for engine in ("auto", None):
        with pytest.raises(ConfigError, match=r"cannot do an ensemble|no engine can do what is needed"):
            Translator(bundle, bundle).plan(precision="int8", engine=engine)


def test_fast_stands_for_an_engine_a_precision_and_a_rule_to_stop_which_are_told(
    run: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engines.Engines, "fastest", lambda self, needs: ("ctranslate2", "int8"))
    translator = Translator.load(run, "cpu")
    with caplog.at_level(logging.INFO, "dragoman.translation.translator"):
        found = translator.translate(texts, fast=True)
    assert found == translator.translate(texts, engine="ctranslate2", precision="int8", patience=1.0)
    differ = "some translations differ from those of the exact search in fp32"
    assert caplog.messages == [f"fast: engine ctranslate2, precision int8, patience 1; {differ}"]
    for other in ({"engine": "ctranslate2"}, {"precision": "int8"}, {"patience": 1.0}):
        with pytest.raises(ConfigError, match="fast already chooses engine, precision and patience"):
            translator.plan(fast=True, **other)
    monkeypatch.undo()
    sampled = translator.plan(fast=True, sample=True)
    assert sampled.search.decode.patience == translator.plan().search.decode.patience


def test_there_is_a_worker_for_each_core_unless_told_otherwise(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator.load(tiny_run, "cpu")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert translator.plan().search.workers == 3
    assert translator.plan(threads=2).search.workers == 2
    assert translator.plan(deterministic=True).search.workers == 1  # bits hang on the number of cores
