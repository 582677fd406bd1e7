"""Rows D1 to D6: text of any kind is read as documented, or refused in one line."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from amounts import amounts

from dragoman.data.corpus import open_corpus, read_lines, read_lines_leniently
from dragoman.errors import DataError

Command = Callable[..., Any]
Figure = Callable[[str, str], None]

NO_LINE_ENDS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


def wc(path: Path) -> int:
    """What ``wc -l`` says."""
    return int(subprocess.run(["wc", "-l", path], capture_output=True, text=True, check=True).stdout.split(" ")[0])


@pytest.fixture
def folder(tmp_path: Path, make_corpus: Callable[..., Any]) -> Path:
    """A folder with a toy corpus of 120 pairs."""
    make_corpus(tmp_path, 120)
    return tmp_path


TRAIN = ("train", "--src", "train.en", "--tgt", "train.de", "--out", "x")


@amounts(20, 200)
def test_D1_lines_are_what_wc_counts(n: int, command: Command, tiny_run: Path, folder: Path, figure: Figure) -> None:
    chance = random.Random(1)
    words = ["a", "dog", "sees", "ß", "日本", "", " ", *NO_LINE_ENDS, *NO_LINE_ENDS]
    total = 0
    for _ in range(n):
        texts = ["".join(chance.choices(words, k=chance.randint(0, 9))) for _ in range(chance.randint(1, 30))]
        (folder / "odd").write_bytes("".join(f"{text}\n" for text in texts).encode())
        count = wc(folder / "odd")
        total += count
        with open_corpus(folder / "odd") as stream:
            assert len(list(read_lines_leniently(stream, "odd"))) == count
        assert list(read_lines(folder / "odd")) == [text.removesuffix("\r") for text in texts]
        assert len(texts) == count
    done = command("translate", tiny_run, "odd", "--beam-size", "1", "--no-guard", cwd=folder)
    (folder / "out").write_bytes(done.out)
    assert wc(folder / "out") == wc(folder / "odd")
    for name in ("train.en", "train.de"):  # both sides, through training
        lines = (folder / name).read_text(encoding="utf-8").split("\n")[:-1]
        lines[::7] = [line.replace(" ", chance.choice(NO_LINE_ENDS), 1) for line in lines[::7]]
        (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    sizes = ["model.d_model=8", "model.n_heads=1", "model.d_ff=8", "train.max_steps=2", "data.tokenizer.vocab_size=400"]
    trained = command(*TRAIN, *(part for size in sizes for part in ("--set", size)), cwd=folder)
    assert trained.status == 0, trained.err
    assert f"{wc(folder / 'train.en') - 1} pairs read" in trained.err  # one is held out
    figure("D1", f"{n} files, {total:,} lines with {len(NO_LINE_ENDS)} characters that end none inside: training and "
                 "translating count what wc -l counts, 0 differ")  # fmt: skip


@amounts(3, 12)
def test_D2_sides_of_unequal_length_are_refused_before_the_first_step(
    n: int, command: Command, folder: Path, listing: Callable[[Path], list[str]], figure: Figure
) -> None:
    whole = {name: (folder / name).read_bytes().split(b"\n")[:-1] for name in ("train.en", "train.de")}
    before = listing(folder)
    for i in range(n):
        name = ("train.en", "train.de")[i % 2]
        lines = whole[name][: 120 - i] if i % 3 else [*whole[name], *[b"one more"] * (i + 1)]
        (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
        done = command(*TRAIN, cwd=folder)
        assert done.status == 2
        counts = {side: wc(folder / side) for side in ("train.en", "train.de")}
        if len(set(counts.values())) == 2:
            assert f"train.en has {counts['train.en']} lines but train.de has {counts['train.de']}:" in done.error
        assert listing(folder) == before
        (folder / name).write_bytes(b"".join(line + b"\n" for line in whole[name]))
    figure("D2", f"{n} of {n} refused with both counts, before anything is written")


BAD = [b"\xff", b"\xfc", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe4\xb8", b"\x80"]


@amounts(3, 14)
def test_D3_bytes_that_are_not_utf8_are_named_or_replaced(
    n: int, command: Command, tiny_run: Path, folder: Path, figure: Figure
) -> None:
    lines = (folder / "train.en").read_bytes().split(b"\n")[:-1]
    places = {}
    for i in range(n):
        row, bad = 3 + 7 * i, BAD[i % len(BAD)]
        damaged = [*lines[:row], lines[row][:4] + bad + lines[row][4:], *lines[row + 1 :]]
        (folder / "train.en").write_bytes(b"".join(line + b"\n" for line in damaged))
        done = command(*TRAIN, cwd=folder)
        assert done.status == 2
        assert f"train.en:{row + 1}:5: byte 0x{bad[0]:02x} is not UTF-8" in done.error
        places[row] = damaged[row]
    mixed = [places.get(row, line) for row, line in enumerate(lines)]
    (folder / "mixed").write_bytes(b"".join(line + b"\n" for line in mixed))
    done = command("translate", tiny_run, "mixed", "--beam-size", "1", "--no-guard", "-v", cwd=folder)
    assert done.status == 0
    assert done.out.count(b"\n") == len(lines)
    warned = [line for line in done.err.split("\n") if "not UTF-8, U+FFFD put in" in line]
    assert [line.split(" ")[1] for line in warned] == [f"mixed:{row + 1}:5:" for row in places]
    good = b"".join(line + b"\n" for row, line in enumerate(lines) if row not in places)
    wanted = command("translate", tiny_run, "--beam-size", "1", "--no-guard", stdin=good).out.split(b"\n")
    assert [line for row, line in enumerate(done.out.split(b"\n")) if row not in places] == wanted
    figure("D3", f"training refuses {n} of {n} with file, line and byte; translating replaces and names {n} of {n}, "
                 f"{len(lines)} lines in, as many out")  # fmt: skip


TABLE = {  # what a file holds: lines when translating, or None where training refuses; what training says or reads
    "BOM": (b"\xef\xbb\xbfa dog\nb\n", ["a dog", "b"], ["a dog", "b"]),
    "BOM inside": (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"], ["a", "\ufeffb"]),
    "CRLF": (b"a dog\r\nb\r\n", ["a dog", "b"], ["a dog", "b"]),
    "CR inside": (b"a\rb\r\r\nc\r", ["a\rb\r", "c\r"], ["a\rb\r", "c\r"]),
    "no final LF": (b"a\nb", ["a", "b"], ["a", "b"]),
    "blank lines": (b"\n \n\n", ["", " ", ""], ["", " ", ""]),
    "NUL": (b"a\nb\0c\n", ["a", "b\ufffdc"], "x:2:2: NUL byte"),
    "empty": (b"", [], "x: the file is empty"),
    "only a BOM": (b"\xef\xbb\xbf", [], "x: the file is empty"),
}


def test_D4_marks_and_endings_follow_one_table(tmp_path: Path, figure: Figure) -> None:
    checked = 0
    for suffix, pack in (("", bytes), (".gz", gzip.compress), (".zst", zstandard.compress)):
        for content, lenient, strict in TABLE.values():
            path = tmp_path / f"x{suffix}"
            path.write_bytes(pack(content))
            with open_corpus(path) as stream:
                assert [line.text for line in read_lines_leniently(stream, "x")] == lenient
            if isinstance(strict, str):
                with pytest.raises(DataError) as caught:
                    list(read_lines(path))
                assert strict.replace("x:", f"x{suffix}:") in str(caught.value)
            else:
                assert list(read_lines(path)) == strict
            checked += 1
    figure("D4", f"{len(TABLE)} kinds of file x plain, gz, zst: {checked} of {checked} as the table says")


@amounts(10, 50)
def test_D5_a_compressed_file_that_is_cut_is_an_error(n: int, folder: Path, command: Command, figure: Figure) -> None:
    text = b"".join(b"%d the dog sees\n" % i for i in np.random.default_rng(0).integers(0, 10**6, 20_000))
    refused = 0
    for suffix, pack in ((".gz", gzip.compress), (".zst", zstandard.compress)):
        whole, path = pack(text), folder / f"cut{suffix}"
        for cut in np.linspace(0, len(whole) - 1, n).astype(int).tolist():
            path.write_bytes(whole[:cut])
            with pytest.raises(DataError, match="truncated or damaged"):
                list(read_lines(path))
            with pytest.raises(DataError, match="truncated or damaged"), open_corpus(path) as stream:
                list(read_lines_leniently(stream, "x"))
            refused += 1
        (folder / f"train.en{suffix}").write_bytes(pack((folder / "train.en").read_bytes())[:-5])
        done = command("train", "--src", f"train.en{suffix}", "--tgt", "train.de", "--out", "x", cwd=folder)
        assert done.status == 2
        assert f"train.en{suffix}: reading failed" in done.error
    figure("D5", f"gz and zst cut at {n} points each: {refused} of {refused} are errors, read strictly and leniently")


# --- D6 ---------------------------------------------------------------------------------------------------------------

GIB = 2**30


def bomb(path: Path, byte: bytes, n_bytes: int) -> Path:
    """A file of one line of so many bytes: plain (zeros only, a hole), ``.gz`` or ``.zst``."""
    block = byte * 2**20
    if path.suffix == ".gz":
        one = gzip.compress(block * 16)
        path.write_bytes(one * (n_bytes // len(block) // 16))
    elif path.suffix == ".zst":
        with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as writer:
            for _ in range(n_bytes // len(block)):
                writer.write(block)
    else:
        with path.open("wb") as file:
            file.truncate(n_bytes)
    return path


def measured(folder: Path, *args: Any) -> tuple[int, str, int]:
    """Run a command; its status, what it said, and the most memory it had, in MiB."""
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *map(str, args)], cwd=folder, stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, (folder / "said").read_text(encoding="utf-8"), usage.ru_maxrss // 1024


@pytest.mark.faults
def test_D6_a_line_of_a_gibibyte_keeps_memory_small(tiny_run: Path, folder: Path, figure: Figure) -> None:
    (folder / "bad").write_bytes(b"\xff\n")
    (folder / "small").write_bytes(b"xxx\n" * 3000)
    commands = {
        "train": lambda name: ("train", "--src", name, "--tgt", "train.de", "--out", "x"),
        "evaluate": lambda name: ("evaluate", tiny_run, "--src", name, "--ref", "train.de"),
        "translate": lambda name: ("translate", tiny_run, name, "--beam-size", "1", "--no-guard"),
    }
    worst = 0
    bases = {
        what: measured(folder, *args("small" if what == "translate" else "bad")) for what, args in commands.items()
    }
    assert [status for status, _, _ in bases.values()] == [2, 2, 0]
    tried = 0
    uses = [("", b"\0", "train"), (".gz", b"\0", "train"), (".zst", b"\0", "train"), (".gz", b"\0", "evaluate")]
    for suffix, byte, what in [*uses, (".zst", b"x", "translate")]:
        path = bomb(folder / f"bomb{suffix}", byte, GIB)
        status, said, memory = measured(folder, *commands[what](path.name))
        if what == "translate":
            assert status == 0, said
            assert f"{path.name}:1: only the first 1,048,576 bytes of the line are used" in said
        else:
            assert status == 2
            assert f"{path.name}:1: the line is longer than 1,048,576 bytes" in said
        worst, tried = max(worst, memory - bases[what][2]), tried + 1
        path.unlink()
    assert worst < 300
    figure("D6", f"1 GiB in one line, plain, gz and zst, through train, evaluate and translate: {tried} of {tried} end "
                 f"as documented, at most {worst} MiB above the same command on a small file")  # fmt: skip
