"""Small files and headers of a foreign model are tried in a worker before a reader parses them."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman.errors import BundleError, DataError
from dragoman.toolkits import headers


def laughs(levels: int) -> str:
    """YAML of a few hundred bytes whose content, written out, has 10 ** ``levels`` words."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join([*lines, f"type: *a{levels - 1}"]) + "\n"


def marian(path: Path, options: str) -> Path:
    """A ``.npz`` with some options."""
    np.savez(path, **{"special:model.yml": np.frombuffer(options.encode() + b"\0", np.int8), "Wemb": np.zeros((2, 2))})
    return path


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that is used up soon."""
    monkeypatch.setattr(headers, "HEADERS", replace(headers.HEADERS, memory=192 << 20))


def test_a_kilobyte_that_becomes_gigabytes_is_refused_and_fills_no_memory(tmp_path: Path) -> None:
    source = marian(tmp_path / "model.npz", laughs(12))
    with pytest.raises(BundleError, match=r"model\.npz: special:model.yml:2: not valid YAML \(aliases"):
        dragoman.import_model(source, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.argosmodel", "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("a/metadata.json", "[" + "[1,2],[3,4]," * 2_000_000 + "1]")
    with pytest.raises(DataError, match=r"a\.argosmodel: parsing it takes more"):
        dragoman.import_model(tmp_path / "a.argosmodel", tmp_path / "run")


def test_damage_is_named_by_the_reader(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "source.spm").write_bytes(b"\xff" * 100)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as package:
        package.writestr("a/metadata.json", json.dumps({"a": 1}) * 100)
    (tmp_path / "b.npz").write_bytes(packed.getvalue()[:-200])
    headers.try_headers(tmp_path)
    with pytest.raises(BundleError, match=r"config\.json: not JSON"):
        dragoman.import_model(tmp_path, tmp_path / "run")
