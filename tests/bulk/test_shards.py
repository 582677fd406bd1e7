"""Shards and the record of a folder, without a cluster: whole or absent, and never done with two settings."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.bulk.record import NAME, FinishedShard, open_record
from dragoman.bulk.shards import Folders, Shard, inspect, shard_names, translate_shard
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.translation.translator import Translator

DONE = FinishedShard("a.txt", "0", 3, "1", 0.5, {"loop": 1})


def record(
    folder: Path, add: FinishedShard | None = None, restart: bool = False, **facts: Any
) -> dict[str, FinishedShard]:
    with open_record(folder, facts, restart) as opened:
        if add is not None:
            opened.add(add)
        return dict(opened.finished)


def test_a_record_names_what_is_done_and_a_torn_line_is_not(tmp_path: Path) -> None:
    out = tmp_path / "deep/out"
    assert record(out, model="m") == {}
    assert record(out, DONE, model="m") == {"a.txt": DONE}
    with (out / NAME).open("ab") as file:
        file.write(b'{"shard": "b.txt", "inp')
    later = FinishedShard("b.txt", "2", 1, "3", 0.1)
    assert record(out, later, model="m") == {"a.txt": DONE, "b.txt": later}
    assert record(out, model="m") == {"a.txt": DONE, "b.txt": later}


def test_other_facts_are_refused_where_something_is_done_and_begun_anew_with_restart(tmp_path: Path) -> None:
    out = tmp_path / "out"
    record(out, model="m")
    record(out, DONE, model="other")  # nothing was done
    with pytest.raises(ConfigError, match="out: was translated with another beam_size and another model; choose"):
        record(out, model="m", beam_size=3)
    assert record(out, model="other") == {"a.txt": DONE}
    assert record(out, restart=True, model="m") == {}
    assert record(out, model="m") == {}


def test_folders_that_are_not_ours_are_refused_and_kept(tmp_path: Path, listing: Any) -> None:
    (tmp_path / "photo").write_bytes(b"1")
    with pytest.raises(ConfigError, match=r"holds files and no _dragoman\.jsonl"):
        record(tmp_path, model="m")
    with pytest.raises(ConfigError, match="photo: a file"):
        record(tmp_path / "photo", model="m")
    (tmp_path / NAME).write_bytes(b'{"my": "diary"}\n')
    for restart in (False, True):
        with pytest.raises(ConfigError, match="is not a record of this version"):
            record(tmp_path, restart=restart, model="m")
    assert listing(tmp_path) == [NAME, "photo"]
    assert (tmp_path / NAME).read_bytes() == b'{"my": "diary"}\n'


def test_a_damaged_record_and_a_second_process_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    record(out, DONE, model="m")
    with open_record(out, {"model": "m"}), pytest.raises(ConfigError, match="another process is translating into it"):
        record(out, model="m")
    text = (out / NAME).read_bytes()
    (out / NAME).write_bytes(text.replace(b'"lines"', b'"leins"'))
    with pytest.raises(DragomanError, match="damaged; start over with --restart"):
        record(out, model="m")


def test_names_of_shards_are_those_of_files_that_are_data(tmp_path: Path) -> None:
    for name in ("b.txt", "sub/a.gz", "_SUCCESS", ".hidden/c.txt", "sub/_d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert shard_names(tmp_path) == ["b.txt", "sub/a.gz"]
    assert shard_names(tmp_path / "b.txt") == ["b.txt"]
    (tmp_path / "bare").mkdir()
    with pytest.raises(DataError, match="no files in it"):
        shard_names(tmp_path / "bare")
    with pytest.raises(DataError, match="nowhere: no such folder"):
        shard_names(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


def test_a_shard_of_lines_is_translated_line_by_line_under_its_name(translator: Translator, tmp_path: Path) -> None:
    lines = ["the dog sees a cat", "", "the man likes a tree"]
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/sub/a.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    shard = inspect(tmp_path / "in", "sub/a.gz", None)
    assert (shard.name, shard.lines) == ("sub/a.gz", 3)
    told: list[int] = []
    plan = translator.plan(beam_size=1)
    notes = translate_shard(translator, plan, shard, Folders(tmp_path / "in", tmp_path / "out"), told.append)
    want = [one.text for one in translator.translate(lines, beam_size=1)]
    assert gzip.decompress((tmp_path / "out/sub/a.gz").read_bytes()).decode().split("\n") == [*want, ""]
    assert told[-1] == 3
    assert "memory" not in notes


def test_a_shard_that_changes_or_is_cut_is_refused(translator: Translator, tmp_path: Path, listing: Any) -> None:
    (tmp_path / "a.txt").write_bytes(b"a dog\na cat\n")
    stale = Shard("a.txt", 3, "0")
    with pytest.raises(DataError, match="2 lines where there were 3"):
        translate_shard(translator, translator.plan(), stale, Folders(tmp_path, tmp_path / "out"), lambda n: None)
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"a dog\n" * 100)[:-9])
    with pytest.raises(DataError, match=r"b\.gz: reading failed .* truncated or damaged"):
        inspect(tmp_path, "b.gz", None)
    (tmp_path / "c.json").write_bytes(b"{}")
    with pytest.raises(DataError, match=r"c\.json: \.json is no suffix of plain text: .* name it \.txt$"):
        inspect(tmp_path, "c.json", None)


def test_lines_that_run_out_of_memory_are_counted_and_blank(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.translation.assemble import Translation
    from dragoman.translation.notes import Note

    def short(texts: list[str], plan: Any, events: Any, first: int) -> list[Translation]:
        events.failed(Note("memory", "out of memory"))
        return [Translation("", 0.0) for _ in texts]

    monkeypatch.setattr(translator, "translate_planned", short)
    (tmp_path / "a.txt").write_bytes(b"a dog\na cat\n")
    shard = inspect(tmp_path, "a.txt", None)
    notes = translate_shard(translator, translator.plan(), shard, Folders(tmp_path, tmp_path / "out"), lambda n: None)
    assert notes == {"memory": 1}
    assert (tmp_path / "out/a.txt").read_bytes() == b"\n\n"


def test_what_is_no_file_stands_among_the_shards_and_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links to folders and to nothing were left out without a word."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"a dog\n")
    (folder / "gone.txt").symlink_to("nowhere")
    (folder / "more").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.txt")
    for hidden in (".trash", "_private"):
        (folder / hidden).mkdir()
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: scan(path) if Path(path).name == "in" else pytest.fail("looked"))
    assert shard_names(folder) == ["a.txt", "gone.txt", "more", "pipe.txt"]
    monkeypatch.undo()
    for name, says in (("gone.txt", "no such file"), ("more", "is a folder"), ("pipe.txt", "a pipe")):
        with pytest.raises(DataError, match=says):
            inspect(folder, name, None)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), r"cannot be read \(Permission denied\)"),
        (OSError("Couldn't deserialize thrift: no"), r"damaged, or not a Parquet file \(Couldn't deserialize"),
    ],
)
def test_a_table_that_cannot_be_read_is_a_shard_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, says: str
) -> None:
    """It stopped the whole folder."""
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(Path, "open", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(DataError, match=says):
        inspect(tmp_path, "a.parquet", None)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "give FILE as a folder, and --out DIR"),
        (["in", "--out", "out", "--json"], "leave out -i, --json and --alignments"),
        (["in", "--out", "out", "--warnings", "list"], "leave out --as, -v and --warnings"),
        (["in", "--out", "out", "-v"], "leave out --as, -v and --warnings"),
        (["in", "--out", "out", "--as", "lines"], "leave out --as, -v and --warnings"),
        (["in", "--out", "out", "--column", "a", "--column", "b"], "give one --column"),
        (["in", "--out", "out", "--n-best", "2"], "a line gives a line"),
        (["in", "--out", "in/out"], "lies in the folder that is read"),
        (["in/a.txt", "--out", "in"], "lies in the folder that is read"),
        (["nowhere", "--out", "out"], "nowhere: no such folder"),
        (["in", "--out", "out", "--glossary", "none.txt"], "none.txt: no such file"),  # read here, not on the cluster
        (["in", "--out", "out"], "translating on a cluster needs 'dragoman[ray]', which is not installed: pip install"),
    ],
)
def test_the_command_line_refuses_in_one_line(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path, args: list[str], says: str,
    monkeypatch: pytest.MonkeyPatch, listing: Any,
) -> None:  # fmt: skip
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_bytes(b"a dog\n")
    done = command("translate", tiny_run, *args, "--ray", "local", cwd=tmp_path)
    assert done.status == 2
    assert says in done.error
    assert listing(tmp_path) == ["in", "in/a.txt"]


def test_actors_without_a_cluster_are_refused(command: Callable[..., Any], tiny_run: Path) -> None:
    assert "give --ray too" in command("translate", tiny_run, "--actors", "2").error


def test_shards_whose_translations_would_be_one_file_are_refused(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Any
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "A.txt"):
        (tmp_path / "in" / name).write_bytes(b"a dog\n")
    monkeypatch.setattr("dragoman.files.taken_for_one", tuple)
    done = command("translate", tiny_run, "in", "--out", "out", "--ray", "local", cwd=tmp_path)
    assert "out/a.txt: must be two files, but their file system takes both names for one" in done.error
    assert listing(tmp_path) == ["in", "in/A.txt", "in/a.txt"]
