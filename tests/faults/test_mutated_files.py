"""Rows F1 to F3: a foreign file that is damaged or made to harm is refused by our own errors, before any work is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_models import COMPARED, MODEL_FILES, model_readers, models_in, write_models
from foreign_readers import ALIASES, DOCUMENTS, Models, small_readers
from trials import MEMORY_BYTES, try_all

from dragoman.documents.formats import supported_suffixes
from dragoman.toolkits import TOOLKITS

Figure = Callable[[str, str], None]

READERS = {reader.name: reader for reader in [*small_readers(), *model_readers()]}
FULL = 1000
RED = {".docx", ".pptx", ".odt", "text.tmx", "argos: translate-en_de-1_0.argosmodel",
       "argos: translate-en_de-1_0.argosmodel with its manifest"}  # fmt: skip
RED_AT_FULL_SIZE = {*RED, ".html", "text.csv", "marian: model.npz", "marian: options in model.npz"}


@pytest.fixture(scope="session")
def models(once: Callable[..., Path], tiny_run: Path) -> Models:
    """The tiny run, and its model in the formats of other programs."""
    return models_in(once("models", lambda folder: write_models(tiny_run, folder)))


def test_F1_whatever_declares_a_reader_has_a_row_here() -> None:
    assert {*DOCUMENTS, *ALIASES} == set(supported_suffixes()), "mutate a format that is added"
    assert set(MODEL_FILES) == {toolkit.name for toolkit in TOOLKITS if toolkit.reader is not None}
    assert set(COMPARED) == {toolkit.name for toolkit in TOOLKITS if toolkit.comparer is not None}
    # The pool of processes that open files and the register of patterns are compared with the same lists here.


SLOW = "huggingface: model.safetensors to compare"  # transformers is imported for it


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.faults] * (name == SLOW)) for name in READERS])
def test_F1_the_sound_files_are_read(name: str, models: Models, tmp_path: Path) -> None:
    reader = READERS[name]
    for content in reader.sound(models):
        assert reader.read(models, content, tmp_path) == ""
        assert reader.lost(content) == ""


def trials(name: str, n: int, red: set[str]) -> object:
    marks = [pytest.mark.xfail(strict=True, reason="other errors leave, or damage is taken")] * (name in red)
    return pytest.param(name, n, marks=[*marks, *[pytest.mark.faults] * (n == FULL)], id=f"{name}, {n}")


@pytest.mark.parametrize(
    ("name", "n"),
    [trial for name, reader in READERS.items()
     for trial in (trials(name, reader.quick, RED), trials(name, FULL, RED_AT_FULL_SIZE))],
)  # fmt: skip
def test_F1_mutated_files_are_read_or_refused(name: str, n: int, models: Models, figure: Figure) -> None:
    tally = try_all(READERS[name], models, n, seed=1)
    figure("F1", f"{name}: {tally}, the slowest {tally.slowest_s:.2f} s of the processor")
    assert not tally.faults, str(tally)
    assert tally.refused + tally.read == n
    assert tally.refused > 0 or n < FULL
    assert tally.grown_bytes < MEMORY_BYTES
