"""What is one of the formats: a file that says what a format has to, and a name."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest

import dragoman
from dragoman import formats
from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.formats import FORMATS
from dragoman.formats.format import Format, format_of


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_takes_what_a_format_takes(name: str) -> None:
    for function in ("check", "write"):
        wanted = list(inspect.signature(getattr(Format, function)).parameters)[1:]  # without self
        assert list(inspect.signature(getattr(format_of(name), function)).parameters) == wanted


def test_a_format_is_a_file_and_a_name(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--to 'notes' is unknown: use ctranslate2"):
        dragoman.export(tiny_run, "notes", tmp_path / "out")
    assert not (tmp_path / "out").exists()

    notes = ModuleType("dragoman.formats.notes")

    def check(config: ModelConfig, quantization: str) -> None:
        if quantization != "float32":
            raise ConfigError("notes are not quantized")

    def write(bundle: Bundle, folder: Path, quantization: str) -> None:
        (folder / "notes.txt").write_text(f"{bundle.model.config.d_model}\n", encoding="utf-8")

    notes.check, notes.write = check, write  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dragoman.formats.notes", notes)
    for module in (formats, sys.modules["dragoman.formats.format"]):
        monkeypatch.setattr(module, "FORMATS", (*FORMATS, "notes"))
    with pytest.raises(ConfigError, match="notes are not quantized"):
        dragoman.export(tiny_run, "notes", tmp_path / "out", "int8")
    assert not (tmp_path / "out").exists()
    folder = dragoman.export(tiny_run, "notes", tmp_path / "out")
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "notes.txt"]
