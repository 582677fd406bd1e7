"""Rows F1 to F3: a foreign file that is damaged or made to harm is refused in one line, before any work is done."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import mutate
import pytest
from amounts import amounts
from foreign_models import COMPARED, MODEL_FILES, SEALED, model_readers, models_in, write_models
from foreign_readers import ALIASES, DOCUMENTS, PACKAGES, Models, small_readers
from hostile import laughs
from parsers import PARSERS
from trials import MEMORY_BYTES, try_all

import dragoman
from dragoman.documents.document import DocumentInfo
from dragoman.documents.formats import FORMATS, format_of, supported_suffixes
from dragoman.documents.translate import open_document
from dragoman.errors import BundleError, DataError
from dragoman.files import MANIFEST
from dragoman.toolkits import TOOLKITS
from limits import cpu_limit

Figure = Callable[[str, str], None]

READERS = {reader.name: reader for reader in [*small_readers(), *model_readers()]}
FULL = 1000
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def models(once: Callable[..., Path], tiny_run: Path) -> Models:
    """The tiny run, and its model in the formats of other programs."""
    return models_in(once("models", lambda folder: write_models(tiny_run, folder)))


def test_F1_whatever_declares_a_reader_has_a_row_here() -> None:
    assert {*DOCUMENTS, *ALIASES} == set(supported_suffixes()), "mutate a format that is added"
    assert set(MODEL_FILES) == {toolkit.name for toolkit in TOOLKITS if toolkit.reader is not None}
    assert set(COMPARED) == {toolkit.name for toolkit in TOOLKITS if toolkit.comparer is not None}
    assert set(DOCUMENTS) <= {parser.name for parser in PARSERS}, "measure a format that is added: parsers.py"
    for suffix, name in ALIASES.items():  # so a row for the one measures the other
        assert format_of(f"a{suffix}") is format_of(f"a{name}"), suffix


def test_F1_every_document_is_parsed_in_a_worker_and_never_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(data: bytes, info: DocumentInfo) -> None:
        raise AssertionError(f"{info.name} is parsed in this process")

    for document_format in FORMATS:
        monkeypatch.setattr(document_format, "read", here)
    for suffix, (sound, _) in DOCUMENTS.items():
        columns = ("text",) if suffix in (".csv", ".tsv") else ()
        assert open_document(sound[0], DocumentInfo(f"a{suffix}", "en", "de", columns)).texts


SLOW = "huggingface: model.safetensors to compare"  # transformers is imported for it


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.faults] * (name == SLOW)) for name in READERS])
def test_F1_the_sound_files_are_read(name: str, models: Models, tmp_path: Path) -> None:
    reader = READERS[name]
    for content in reader.sound(models):
        assert reader.read(models, content, tmp_path) == ""
        assert reader.lost(content) == ""


@pytest.mark.parametrize(
    ("name", "n"),
    [trial for name, reader in READERS.items()
     for trial in ((name, reader.quick), pytest.param(name, FULL, marks=pytest.mark.faults))],
)  # fmt: skip
def test_F1_mutated_files_are_read_or_refused(name: str, n: int, models: Models, figure: Figure) -> None:
    tally = try_all(READERS[name], models, n, seed=1)
    figure("F1", f"{name}: {tally}, the slowest {tally.slowest_s:.2f} s of the processor")
    assert not tally.faults, str(tally)
    assert tally.refused + tally.read == n
    assert tally.refused > 0 or n < FULL
    assert tally.grown_bytes < MEMORY_BYTES


# --- F2 ---------------------------------------------------------------------------------------------------------------


@amounts(60, 1000)
def test_F2_a_damaged_member_is_refused_before_anything_is_translated(n: int, figure: Figure) -> None:
    """Flip bits in members that are only copied, in every method of compression."""
    picture = bytes(range(256)) * 20
    opened = refused = 0
    for i in range(n):
        chance = random.Random(i)
        method = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
        suffix = chance.choice(PACKAGES)
        members = {**mutate.unzipped(DOCUMENTS[suffix][0][0]), "media/picture.png": picture}
        content = bytearray(mutate.zipped(members, method))
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entry = archive.getinfo("media/picture.png")
        start = entry.header_offset + 30 + len(entry.filename)
        content[start + chance.randrange(entry.compress_size)] ^= 1 << chance.randrange(8)
        try:
            document = open_document(bytes(content), DocumentInfo(f"a{suffix}", "en", "de"))
        except DataError as error:
            refused += 1
            assert str(error).startswith(f"a{suffix}: damaged")  # noqa: PT017
        else:  # a bit that the method ignores, such as the last ones of a stream
            opened += 1
            saved, _ = document.finish({})
            assert mutate.unzipped(saved)["media/picture.png"] == picture
    figure(
        "F2", f"{n} pictures with a flipped bit: {refused} refused when opened, {opened} read whole, 0 refused later"
    )


# --- F3 ---------------------------------------------------------------------------------------------------------------


def test_F3_every_file_of_an_export_is_checked_when_it_is_imported(
    models: Models, tmp_path: Path, figure: Figure
) -> None:
    n_files = 0
    for toolkit in SEALED:
        sound = models.folders[toolkit]
        for name in json.loads((sound / MANIFEST).read_text())["files"]:
            n_files += 1
            source = tmp_path / f"{toolkit}-{n_files}"
            shutil.copytree(sound, source)
            content = bytearray((source / name).read_bytes())
            content[len(content) // 2] ^= 1
            (source / name).write_bytes(content)
            model = next(source.glob("*.argosmodel"), source)
            with pytest.raises(BundleError, match="SHA-256") as caught:
                dragoman.import_model(model, tmp_path / "out")
            assert str(source / name) in str(caught.value)
            assert not (tmp_path / "out").exists()
    figure("F3", f"{n_files} files of {len(SEALED)} formats with a flipped bit: {n_files} refused, 0 runs written")


def test_F3_a_manifest_of_others_beside_a_package_changes_nothing(models: Models, tmp_path: Path) -> None:
    (package,) = models.folders["argos"].glob("*.argosmodel")
    shutil.copy(package, tmp_path)
    for content in ("no JSON", "[]", '{"name": "an extension", "files": []}', '{"files": {"other": {}}}'):
        (tmp_path / MANIFEST).write_text(content)
        run = dragoman.import_model(tmp_path / package.name, tmp_path / f"run {len(content)}")
        assert (run / "bundle").is_dir()


def test_F1_yaml_is_read_in_one_place(models: Models, tmp_path: Path) -> None:
    """Look for other loaders, which would read aliases, and for what aliases do in the one that there is."""
    sources = {
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"yaml\.(safe_|full_|unsafe_)?load|YAML\(", path.read_text())
    }
    assert sources == {"config.py"}
    folder = tmp_path / "marian"
    shutil.copytree(models.folders["marian"], folder)
    with (folder / "decoder.yml").open("a") as file:
        file.write(laughs(9))
    with cpu_limit(5.0), pytest.raises(BundleError, match=r"decoder.yml:\d+: not valid YAML \(aliases"):
        dragoman.import_model(folder, tmp_path / "out")
