"""A folder translated on a local Ray cluster of two workers: as one process does it, also when workers are killed."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.bulk.record import NAME
from dragoman.bulk.translate import FailedShard, translate_folder
from dragoman.errors import ConfigError, DragomanError
from dragoman.translation.notes import Events
from dragoman.translation.resumable import lines_done
from dragoman.translation.translator import Translator

ray = pytest.importorskip("ray", reason="make test-ray installs it")
psutil = pytest.importorskip("psutil")
pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

QUICK = {"beam_size": 1, "guard": False, "protect": False}
FLAGS = ["--beam-size", "1", "--no-guard", "--no-protect"]
N_LINES = 4400  # three windows


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray with two cores, for all tests here."""
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=2**28)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def lines(toy_sentences: Callable[[int, int], list[tuple[str, str]]]) -> list[str]:
    return [" ".join(src.split()[:3]) for src, _ in toy_sentences(2 * N_LINES, 5)]


@pytest.fixture
def two_shards(tmp_path: Path, lines: list[str]) -> Path:
    """A folder of two shards of three windows each."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"{line}\n" for line in lines[:N_LINES]), encoding="utf-8")
    (folder / "b.txt").write_text("".join(f"{line}\n" for line in lines[N_LINES:]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def translated(tiny_run: Path, lines: list[str]) -> list[str]:
    return [one.text for one in Translator.load(tiny_run, "cpu").translate(lines, **QUICK)]


def whole(folder: Path) -> list[str]:
    """All lines of the two shards."""
    return [line for name in ("a.txt", "b.txt") for line in (folder / name).read_text("utf-8").split("\n")[:-1]]


def workers() -> list[int]:
    """The processes of this machine's actors that translate."""
    found = []
    for process in psutil.process_iter():
        try:
            if "ray::MapWorker(Map(Worker))" in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def wait_for(condition: Callable[[], Any], seconds: float = 240) -> Any:
    """What ``condition`` gives as soon as that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)
    return found


def test_shards_of_all_kinds_come_out_as_one_process_translates_them(
    cluster: None, tiny_run: Path, tmp_path: Path, lines: list[str], translated: list[str], listing: Any
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    folder, text = tmp_path / "in", "".join(f"{line}\n" for line in lines[:50]).encode()
    (folder / "sub").mkdir(parents=True)
    (folder / "plain").write_bytes(text)
    (folder / "sub/packed.gz").write_bytes(gzip.compress(text))
    (folder / "sub/packed.zst").write_bytes(zstandard.compress(text))
    (folder / "none.txt").write_bytes(b"")
    cells = [None, f"{lines[0]}\n{lines[1]}", "", *lines[3:20]]
    table = pa.table({"id": list(range(20)), "text": cells})
    pq.write_table(table, folder / "rows.parquet", row_group_size=8)
    (folder / "cut.gz").write_bytes(gzip.compress(text)[:-20])
    (folder / "cut.parquet").write_bytes((folder / "rows.parquet").read_bytes()[:-40])
    pq.write_table(table.select(["id"]), folder / "other.parquet")
    pq.write_table(table.rename_columns(["text", "translation"]), folder / "taken.parquet")

    failed: list[FailedShard] = []
    told: list[tuple[int, int, str]] = []
    report = translate_folder(
        tiny_run, folder, tmp_path / "out", ray="local", actors=2, column="text", device="cpu",
        events=Events(progress=lambda *said: told.append(said)), failed=failed.append, **QUICK,
    )  # fmt: skip
    assert {one.shard for one in failed} == {"cut.gz", "cut.parquet", "other.parquet", "taken.parquet"}
    assert all(one.why.startswith(str(folder / one.shard)) and "\n" not in one.why for one in failed), failed
    assert (report.shards, report.lines, report.kept, report.begun_again) == (9, 3 * 50 + 20, 0, 0)
    assert set(report.failed) == set(failed)
    assert told[0] == (0, 170, "lines translated")
    assert told[-1] == (170, 170, "lines translated")
    want = "".join(f"{line}\n" for line in translated[:50]).encode()
    out = tmp_path / "out"
    assert listing(out) == sorted([NAME, "none.txt", "plain", "rows.parquet", "sub", "sub/packed.gz", "sub/packed.zst"])
    assert (out / "plain").read_bytes() == want
    assert gzip.decompress((out / "sub/packed.gz").read_bytes()) == want
    assert zstandard.ZstdDecompressor().decompressobj().decompress((out / "sub/packed.zst").read_bytes()) == want
    made = pq.read_table(out / "rows.parquet")
    assert made.select(["id", "text"]).equals(table)
    assert made["translation"].to_pylist() == [None, "\n".join(translated[:2]), "", *translated[3:20]]
    assert pq.ParquetFile(out / "rows.parquet").num_row_groups == 3

    again = translate_folder(tiny_run, folder, out, column="text", device="cpu", **QUICK)
    assert (again.kept, again.lines, len(again.failed)) == (5, 170, 4)
    with pytest.raises(ConfigError, match="was translated with another beam_size; choose another folder"):
        translate_folder(tiny_run, folder, out, column="text", device="cpu", **{**QUICK, "beam_size": 2})
    (out / "none.txt").write_bytes(b"ein Hund\n")
    damaged = translate_folder(tiny_run, folder, out, column="text", device="cpu", **QUICK)
    assert "has changed since it was written" in {one.shard: one.why for one in damaged.failed}["none.txt"]
    assert (out / "none.txt").read_bytes() == b"ein Hund\n"
    (out / "none.txt").unlink()
    assert translate_folder(tiny_run, folder, out, column="text", device="cpu", **QUICK).kept == 4
    assert (out / "none.txt").read_bytes() == b""
    (folder / "plain").write_bytes(text + b"a dog\n")
    changed = translate_folder(tiny_run, folder, out, column="text", device="cpu", **QUICK)
    assert "not the file that was translated" in {one.shard: one.why for one in changed.failed}["plain"]
    assert (out / "plain").read_bytes() == want


def test_a_killed_worker_costs_no_line_and_repeats_none(
    cluster: None, tiny_run: Path, two_shards: Path, tmp_path: Path, translated: list[str]
) -> None:
    out = tmp_path / "out"
    killed: list[int] = []

    def kill() -> None:
        wait_for(lambda: any(lines_done(out / name) for name in ("a.txt", "b.txt")))
        killed.append(workers()[0])
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    report = translate_folder(tiny_run, two_shards, out, actors=2, device="cpu", **QUICK)
    thread.join()
    assert killed
    assert (report.lines, report.failed, report.begun_again) == (2 * N_LINES, (), 1)
    assert whole(out) == translated
    assert sorted(path.name for path in out.iterdir()) == [NAME, "a.txt", "b.txt"]


def test_a_killed_command_resumes(tiny_run: Path, two_shards: Path, tmp_path: Path, translated: list[str]) -> None:
    out = tmp_path / "out"
    args = ["translate", tiny_run, two_shards, "--ray", "local", "--actors", "1", "--out", out, *FLAGS]
    command = [sys.executable, "-m", "dragoman", *map(str, args)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        wait_for(lambda: (out / NAME).exists() and (out / NAME).read_bytes().count(b"\n") == 2)
        first = {name for name in ("a.txt", "b.txt") if (out / name).exists()}
        before = {name: (out / name).stat().st_mtime_ns for name in first}
        os.killpg(process.pid, signal.SIGKILL)
    assert len(first) == 1
    wait_for(lambda: not workers())
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{2 * N_LINES:,} lines in 2 of 2 shards; 1 were done before" in done.stderr
    assert {name: (out / name).stat().st_mtime_ns for name in first} == before
    assert whole(out) == translated


@pytest.mark.parametrize(
    ("address", "says"),
    [("127.0.0.1:1", "Ray cluster 127.0.0.1:1: cannot be reached"), ("nowhere", "give local, auto, or HOST:PORT")],
)
def test_a_cluster_that_cannot_be_reached_is_one_line(
    command: Callable[..., Any], tiny_run: Path, two_shards: Path, tmp_path: Path, address: str, says: str
) -> None:
    ray.shutdown()
    began = time.monotonic()
    done = command("translate", tiny_run, two_shards, "--ray", address, "--out", tmp_path / "out")
    assert done.status == 2
    assert says in done.error
    assert not (tmp_path / "out").exists()
    assert time.monotonic() - began < 60


def test_what_no_machine_has_and_what_no_run_is_are_refused(
    cluster: None, tiny_run: Path, two_shards: Path, tmp_path: Path
) -> None:
    if not ray.is_initialized():
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    with pytest.raises(ConfigError, match="no machine of the cluster local has 64 cores"):
        translate_folder(tiny_run, two_shards, tmp_path / "out", threads=64, device="cpu")
    with pytest.raises(DragomanError, match="norun: no such run"):
        translate_folder(tmp_path / "norun", two_shards, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()
