"""Documents that once lost something, each small: what comes back is judged by other programs' parsers, and byte by byte.

A document ``trial/NAME`` is translated by stand-ins of a model (``benchmarks.real_documents.stand_ins``). The judges of
``benchmarks.documents`` compare it with its source, and ``trial/right/NAME`` holds the right translation by the stand-in
``letters``.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from benchmarks.real_documents.measure import JUDGES, judge
from benchmarks.real_documents.stand_ins import STAND_INS, translations
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.errors import DataError

TRIAL = Path(__file__).parent / "trial"
RIGHT = TRIAL / "right"
REFUSED = {"x05-srclang.xlf": "its source is in fr, but this model translates from en"}
DOCUMENTS = sorted(path for path in TRIAL.iterdir() if path.is_file() and path.name not in REFUSED)
COLUMNS = {"c01-ragged.csv": ("text",), "c02-sep.csv": ("text",), "c04-bom.csv": ("text",)}


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in DOCUMENTS])
def test_document_is_right(path: Path) -> None:
    """The translation has the right bytes, and the judges find no fault with any stand-in."""
    opened = open_document(path.read_bytes(), DocumentInfo(path.name, "en", "de", COLUMNS.get(path.name, ())))
    result, _ = opened.finish(translations(opened.texts, STAND_INS["letters"]))
    right = RIGHT / path.name
    if right.is_dir():  # an archive, of which it holds the members that change
        assert _members(result) == _members(path.read_bytes()) | {
            str(member.relative_to(right)): member.read_bytes() for member in right.rglob("*") if member.is_file()
        }
    else:
        assert result == right.read_bytes()
    if path.suffix in JUDGES:
        judgements = judge(path, tuple(STAND_INS), columns=COLUMNS.get(path.name, ()))
        assert not [judgement.faults for judgement in judgements if judgement.faults]
        assert {judgement.outcome for judgement in judgements} == {"right"}


@pytest.mark.parametrize("name", REFUSED)
def test_document_is_refused(name: str) -> None:
    """What cannot be translated is refused in one sentence."""
    with pytest.raises(DataError, match=REFUSED[name]):
        open_document((TRIAL / name).read_bytes(), DocumentInfo(name, "en", "de"))
