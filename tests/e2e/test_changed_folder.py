"""A host that changes its current folder during a call: the rest is read and written where the call began."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman.bundle import load_bundle, save_bundle
from dragoman.distillation import augment, distill
from dragoman.evaluation import calibration, certify, evaluate
from dragoman.model.weights import untied
from dragoman.toolkits import export, import_
from dragoman.training import run as training

Tiny = Callable[..., dict[str, Any]]
QUICK: dict[str, Any] = dict(beam_size=1)


class Host:
    """Two folders with files of the same names, one of which becomes the current folder during a call."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.one, self.two, self._monkeypatch = folder / "one", folder / "two", monkeypatch

    def move(self, *_: object) -> None:
        os.chdir(self.two)

    def moves_after(self, module: Any, name: str) -> None:
        """Let another thread of the host change the folder right after a function was called."""
        function = getattr(module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.move()
            return result

        self._monkeypatch.setattr(module, name, call)

    @property
    def events(self) -> dragoman.Events:
        return dragoman.Events(progress=self.move)


def train(host: Host) -> None:
    host.moves_after(training, "_plan")
    trained = dragoman.train("config.yaml", out="new", quiet=True)
    assert trained.run == Path("new")
    written = yaml.safe_load((host.one / "new/config.yaml").read_text())
    assert written["data"]["train"]["src"] == str(host.one / "train.en")  # its short name would be another file now


def train_on_files(host: Host) -> None:
    host.moves_after(training, "check_readable")
    dragoman.train(
        src="train.en", tgt="train.de", out="new", quiet=True,
        overrides=["train.max_steps=1", "train.warmup_steps=1", "model.preset=tiny"],
    )  # fmt: skip


def train_on_text_in_memory(host: Host) -> None:
    host.moves_after(training, "_plan")
    sides = [(host.one / f"train.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de")]
    dragoman.train(
        *sides, out="new", quiet=True, overrides=["train.max_steps=1", "train.warmup_steps=1", "model.preset=tiny"]
    )


def distill_a_run(host: Host) -> None:
    host.moves_after(distill, "_texts")
    settings = ["train.max_steps=2", "train.warmup_steps=1", "model.d_model=8", "model.d_ff=8"]
    distilled = dragoman.distill(
        "run", src="train.en", valid_src="valid.en", valid_ref="valid.de", out="new", engine="torch", quiet=True,
        overrides=settings,
    )  # fmt: skip
    assert distilled.run == Path("new")
    assert (host.one / "new/distillation.json").exists()


def fine_tune(host: Host) -> None:
    host.moves_after(training, "_plan")
    dragoman.train("config.yaml", out="new", from_run="run", quiet=True)


def translate_file(host: Host) -> None:
    translator = dragoman.Translator.load("run")
    assert translator.translate_file("in.en", "new", read_ahead=2, events=host.events, **QUICK) == 6


def translate_document(host: Host) -> None:
    report = dragoman.translate_document(
        dragoman.Translator.load("run"), "documents", "new", events=host.events, **QUICK
    )
    assert sorted(report.files) == ["a.txt", "b.txt"]


def export_model(host: Host) -> None:
    host.moves_after(export, "load_bundle")
    assert dragoman.export("run", "ctranslate2", "new") == Path("new")


def import_export(host: Host) -> None:
    dragoman.export("run", "ctranslate2", "made")
    host.moves_after(import_, "try_headers")
    assert dragoman.import_model("made", "new", keep_pieces_of=["in.en"]) == Path("new")


def engine_of_a_run(host: Host) -> None:
    translator = dragoman.Translator.load("run")
    host.move()
    translator.translate("the dog", engine="ctranslate2")
    (host.one / "run/exports/ctranslate2-float32").rename(host.one / "new")


def ledger(host: Host) -> None:
    translator = dragoman.Translator.load("run")
    host.move()
    dragoman.evaluate(translator, ["the dog"], ["le chien"], quiet=True, **QUICK)
    (host.one / "run/evaluations.jsonl").rename(host.one / "new")


def evaluate_files(host: Host) -> None:
    host.moves_after(evaluate, "_loaded")
    result = dragoman.evaluate("run", "in.en", "in.de", warnings="new", quiet=True, **QUICK)
    assert len(result.translations) == 6


def compare_files(host: Host) -> None:
    host.moves_after(evaluate, "_loaded")
    result = dragoman.compare("run", "in.de", "in.en", "in.de", warnings="new", quiet=True, **QUICK)
    assert result.b.scores[1].value == 100  # chrF


def calibrate(host: Host) -> None:
    host.moves_after(calibration, "learn_confidence")
    before = (host.one / "run/bundle/manifest.json").read_bytes()
    calibration.calibrate("run", "train.en", "train.de")
    assert (host.one / "run/bundle/manifest.json").read_bytes() != before
    (host.one / "new").touch()


def certify_export(host: Host) -> None:
    dragoman.export("run", "ctranslate2", "made")
    host.moves_after(certify, "compared_text")
    dragoman.certify("run", "made", src="in.en", quiet=True)
    (host.one / "made/certificate.json").rename(host.one / "new")


def augment_text(host: Host) -> None:
    host.moves_after(augment, "_check_files")
    augmented = dragoman.augment("new", forward="run", src="in.en", quiet=True)
    assert augmented.entries[0]["src"] == str(host.one / "new/forward.en")


def augment_with_two_models(host: Host) -> None:
    """The second one is loaded, and its text is opened, after the first one."""
    bundle = load_bundle("run")
    turned = bundle.config.data.model_copy(update={"src_lang": "de", "tgt_lang": "en"})
    save_bundle(
        host.one / "back/bundle", bundle.config.model_copy(update={"data": turned}), bundle.model.config,
        untied(bundle.model), bundle.src_tokenizer, bundle.tgt_tokenizer, {},
    )  # fmt: skip
    host.moves_after(augment, "_plan")
    augmented = dragoman.augment("new", forward="run", src="in.en", back="back", tgt="in.de", quiet=True)
    assert len(augmented.entries) == 2


CALLS = [
    train, train_on_files, train_on_text_in_memory, fine_tune, translate_file, translate_document, export_model,
    import_export, engine_of_a_run, ledger, evaluate_files, compare_files, calibrate, certify_export, augment_text,
    augment_with_two_models, distill_a_run,
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_X7_a_host_that_changes_its_folder_changes_no_file_of_the_new_one(
    call: Callable[[Host], None], tiny: Tiny, tiny_run: Path, corpus: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, figure: Callable[[str, str], None],
) -> None:  # fmt: skip
    mapping = tiny(max_steps=2, validate_every=2, save_every=2)
    mapping["data"] |= {"train": dict(src="train.en", tgt="train.de"), "valid": dict(src="valid.en", tgt="valid.de")}
    for name in ("one", "two"):
        folder = tmp_path / name
        shutil.copytree(tiny_run, folder / "run")
        (folder / "config.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
        for file, path in zip(("train.en", "train.de", "valid.en", "valid.de"), corpus, strict=False):
            shutil.copy(path, folder / file)
        for lang, side in (("en", "the dog\n"), ("de", "le chien\n")):
            (folder / f"in.{lang}").write_text(side * 6, encoding="utf-8")
        (folder / "documents").mkdir()
        for document in ("a.txt", "b.txt"):
            (folder / "documents" / document).write_text("the dog\n", encoding="utf-8")
    for path in (*(tmp_path / "two").glob("*.*"), *(tmp_path / "two/documents").iterdir()):
        path.write_bytes(b"\xff precious \x00")  # of another project, and no text
    shutil.rmtree(tmp_path / "two/run/bundle")
    before = {path: path.read_bytes() for path in (tmp_path / "two").rglob("*") if path.is_file()}
    monkeypatch.chdir(tmp_path / "one")
    call(Host(tmp_path, monkeypatch))
    assert Path.cwd() == tmp_path / "two"
    assert (tmp_path / "one/new").exists()
    assert {path: path.read_bytes() for path in (tmp_path / "two").rglob("*") if path.is_file()} == before
    figure("X7", f"{call.__name__}: 0 of {len(before)} files of the other folder changed")
