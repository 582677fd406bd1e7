"""Text that is not UTF-8: the refusal gives the command that makes it UTF-8, and damaged UTF-8 stays UTF-8.

The texts are those of ``benchmarks/encodings.py``, of another seed than its record.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.encodings import GROUPS, Sample, damaged, samples
from dragoman.data.corpus import lines_of, read_lines
from dragoman.errors import DataError

SEED = 41
ENOUGH = 0.9
"""Least share of the refused texts of 20 lines whose command is right."""

iconv = pytest.mark.skipif(shutil.which("iconv") is None, reason="needs the program iconv")


def refusal(path: Path, data: bytes) -> str:
    """Return the message by which training refuses a file."""
    path.write_bytes(data)
    with pytest.raises(DataError) as error:
        list(read_lines(path))
    return str(error.value)


def converted(message: str, path: Path) -> bytes | None:
    """Run the command of a message; return the file that it makes, None without a command."""
    command = re.search(r"iconv -f (\S+) -t UTF-8 (\S+) > (\S+)", message)
    if command is None or (Path(command[2]), Path(command[3])) != (path, Path(f"{path}.utf8")):
        return None
    run = subprocess.run(["iconv", "-f", command[1], "-t", "UTF-8", command[2]], capture_output=True, check=False)
    return run.stdout if run.returncode == 0 else None


def legacy() -> Iterator[Sample]:
    """Yield a text of 20 lines for every fourth pair of a language and a legacy encoding of it."""
    encodings = [encoding for names in GROUPS.values() for encoding in names.split()]
    return islice(samples(1, (20,), SEED, encodings), 0, None, 4)


@iconv
def test_the_command_of_the_refusal_makes_the_text_utf8(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    wrong, total = [], 0
    for sample in legacy():
        total += 1
        if converted(refusal(path, sample.data), path) != sample.text.encode():
            wrong.append(f"{sample.lang} {sample.encoding}")
    assert len(wrong) <= (1 - ENOUGH) * total, wrong


def test_utf16_with_a_mark_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    for sample in samples(1, (5,), SEED, ["utf-16", "utf-16-be-mark", "utf-32"]):
        path.write_bytes(sample.data)
        assert list(read_lines(path)) == sample.text.split("\n")[:-1]
        assert list(lines_of(path)) == sample.text.split("\n")[:-1]


@iconv
def test_utf16_without_a_mark_is_refused_with_the_command(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    for sample in samples(1, (20,), SEED, ["utf-16-le", "utf-16-be"]):
        assert converted(refusal(path, sample.data), path) == sample.text.encode(), (sample.lang, sample.encoding)


def test_utf8_with_a_bad_byte_stays_utf8(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    for sample in damaged(1, SEED):
        message = refusal(path, sample.data)
        assert re.search(rf"^{path}:\d+:\d+: byte 0x[0-9a-f]{{2}} is not UTF-8", message)
        assert "iconv" not in message, (sample.lang, sample.encoding, message)
