"""A toolkit that this file adds to the one list is exported to, compared, imported from, chosen and named."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

import dragoman
import dragoman.cli.export  # its help lists the toolkits at import: it must not list the one that is added here
from dragoman.bundle import Bundle, load_bundle, save_bundle
from dragoman.config import DecodeConfig, ModelConfig
from dragoman.errors import BundleError, ConfigError
from dragoman.model.weights import untied
from dragoman.options import Precision
from dragoman.toolkits import TOOLKITS
from dragoman.toolkits.engine import Models, Needs
from dragoman.toolkits.ours.search import Torch
from dragoman.toolkits.reading import Imported
from dragoman.toolkits.toolkit import Toolkit
from dragoman.toolkits.writing import check


def why_not(config: ModelConfig) -> str:
    return "" if config.norm == "pre" else "notes are of pre-norm only"


def write(bundle: Bundle, folder: Path, quantization: str) -> None:
    """Write a bundle, zipped."""
    tokenizers = bundle.src_tokenizer, bundle.tgt_tokenizer
    with TemporaryDirectory() as made:
        save_bundle(Path(made) / "b", bundle.config, bundle.model.config, untied(bundle.model), *tokenizers, {})
        shutil.make_archive(str(folder / "model"), "zip", Path(made) / "b")
        (folder / "model.zip").rename(folder / "model.notes")


def unzipped(folder: Path) -> Bundle:
    with TemporaryDirectory() as made:
        shutil.unpack_archive(folder / "model.notes", Path(made) / "b", "zip")
        return load_bundle(Path(made) / "b")


def read(
    source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
) -> Imported:  # fmt: skip
    bundle = unzipped(source)
    tokenizers = bundle.src_tokenizer, bundle.tgt_tokenizer
    facts = {"weights": f"imported from {name}", "imported": {"from": name}}
    return Imported(bundle.config, bundle.model.config, untied(bundle.model), *tokenizers, facts)


class Notes(Torch):
    """Our search, which says that it is another program's."""

    name: ClassVar[str] = "notes"
    merit: ClassVar[str] = "it has taken notes"
    has_package: ClassVar[bool] = True

    @classmethod
    def why_not_auto(cls, models: Models, needs: Needs) -> str:
        return "" if cls.has_package else "notes is not installed"

    @classmethod
    def fastest_precision(cls, models: Models, needs: Needs) -> Precision | None:
        return "fp32" if cls.has_package else None

    def read(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        model = self._models.model
        log_probs = []
        for src, tgt in pairs:
            logits = model(torch.tensor([[*src, 3]]), torch.tensor([[2, *tgt]]))
            log_probs.append(logits.log_softmax(-1)[0].gather(1, torch.tensor([[i] for i in (*tgt, 3)]))[:, 0].tolist())
        return log_probs

    def cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[bool] | None:
        return [False] * len(texts)


def open_export(export: Path, quantization: str, bundle: Bundle, device: torch.device) -> tuple[Notes, str]:
    opened = unzipped(export)
    return Notes.load(Models((opened,)), "fp32", 1), quantization


def why_different(decode: DecodeConfig) -> list[str]:
    return ["B is a note"]


def recognises(source: Path, names: Collection[str]) -> bool:
    return "model.notes" in names


WRITER = SimpleNamespace(
    TITLE="Notes", QUANTIZATIONS=("float32",), PACKAGES=(), FILE="", why_not=why_not, write=write
)  # fmt: skip
COMPARER = SimpleNamespace(
    check_installed=lambda device: None, open_export=open_export, program_version=lambda: ("notes", "7"),
    why_different=why_different,
)  # fmt: skip


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Toolkit]:
    toolkit = Toolkit(
        name="notes", writer=lambda: WRITER, reader=lambda: SimpleNamespace(read=read), reads="a folder of notes",
        recognises=recognises, comparer=lambda: COMPARER, engine="notes", engine_class=lambda: Notes,
    )  # fmt: skip
    TOOLKITS.insert(1, toolkit)  # before the other engines
    yield toolkit
    TOOLKITS.remove(toolkit)


def test_it_is_exported_to_compared_and_imported_from(
    notes: Toolkit, tiny_run: Path, tmp_path: Path, corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        ConfigError, match=r"written for Notes: notes are of pre-norm only; it can be exported --format ct"
    ):
        dragoman.export(tiny_run, "notes", tmp_path / "export")
    with pytest.raises(ConfigError, match=r"quantization must be float32, got 'int8'"):
        check("notes", ModelConfig(src_vocab_size=9, tgt_vocab_size=9, norm="pre"), "int8")
    monkeypatch.setattr(WRITER, "why_not", lambda config: "")
    folder = dragoman.export(tiny_run, "notes", tmp_path / "export")
    certificate = dragoman.certify(tiny_run, folder, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True)
    assert (certificate.export, certificate.versions["notes"], certificate.n_cut_differently) == ("notes", "7", 0)
    assert certificate.n_identical == certificate.n_lines
    assert certificate.most_nats < 1e-5
    assert certificate.why == ("B is a note",)
    run = dragoman.import_model(folder, tmp_path / "imported")
    line = "the dog sees a cat"
    assert dragoman.Translator.load(run).translate(line).text == dragoman.Translator.load(tiny_run).translate(line).text
    with pytest.raises(BundleError, match=r"holds no model that can be imported: give .*a folder of notes"):
        dragoman.import_model(tmp_path, tmp_path / "other")


def test_it_is_an_engine_that_auto_and_fast_choose(notes: Toolkit, tiny_run: Path) -> None:
    translator = dragoman.Translator.load(tiny_run, "cpu")
    for options in (dict(engine="notes"), dict(engine="auto"), dict(fast=True)):
        assert translator.plan(**options).engine.name == "notes"
    with pytest.raises(ConfigError, match="engine must be torch, notes, ctranslate2 or auto, got 'other'"):
        translator.plan(engine="other")


def test_without_its_package_auto_goes_on_to_the_next(
    notes: Toolkit, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")  # an engine may write its export there
    monkeypatch.setattr(Notes, "has_package", False)
    assert dragoman.Translator.load(run, "cpu").plan(engine="auto").engine.name == "ctranslate2"


def test_the_commands_name_it(notes: Toolkit, command: Callable[..., Any], tiny_run: Path) -> None:
    assert "| notes |" in command("formats").out.decode()
    assert "format must be" in command("export", str(tiny_run), "--format", "nothing").err
