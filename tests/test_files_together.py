"""Several files and a report that are one fact, temporary folders, and names of outputs."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import files
from dragoman.errors import ConfigError, DragomanError
from dragoman.files import (
    MOST_NAME_BYTES,
    check_name,
    check_output,
    final_name,
    lies_in,
    read_report,
    refuse_alike,
    refuse_twice,
    remove_folder,
    remove_leftovers,
    temporary_folder,
    whole_files,
    write_output,
    write_report,
    write_text,
)

Listing = Callable[[Path], list[str]]


def make(folder: Path, text: str) -> None:
    """Write two sides and their report."""
    sides = (folder / "x.en", folder / "x.de")
    with whole_files(sides, folder / "x.json") as outs:
        for out in outs:
            out.write(text.encode())
    write_report(folder / "x.json", {"text": text}, sides)


def vouched(folder: Path) -> str | None:
    """The text that the report vouches for; None if it does not."""
    report = read_report(folder / "x.json", (folder / "x.en", folder / "x.de"))
    return None if report is None else report["text"]


def test_a_report_vouches_for_just_the_files_that_it_was_written_for(tmp_path: Path) -> None:
    assert vouched(tmp_path) is None
    make(tmp_path, "one")
    assert vouched(tmp_path) == "one"
    assert read_report(tmp_path / "x.json", (tmp_path / "x.en",)) is None
    (tmp_path / "x.de").write_text("two", encoding="utf-8")
    assert vouched(tmp_path) is None
    (tmp_path / "x.json").write_text("[" * 100_000, encoding="utf-8")
    assert vouched(tmp_path) is None


def test_if_the_body_fails_the_older_files_and_their_report_stay(tmp_path: Path, listing: Listing) -> None:
    make(tmp_path, "one")

    def fail() -> None:
        with whole_files((tmp_path / "x.en", tmp_path / "x.de"), tmp_path / "x.json") as outs:
            outs[0].write(b"two")
            raise DragomanError("no pair is fit")

    with pytest.raises(DragomanError):
        fail()
    assert vouched(tmp_path) == "one"
    assert listing(tmp_path) == ["x.de", "x.en", "x.json"]


def test_if_one_of_them_cannot_appear_the_others_do_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing
) -> None:
    monkeypatch.setattr(Path, "replace", failing(2, Path.replace))
    with pytest.raises(OSError, match="busy"):
        make(tmp_path, "one")
    assert listing(tmp_path) == []


def failing(n: int, real: Callable[..., object]) -> Callable[..., object]:
    """Return a function whose n-th call fails, and no other."""
    calls = iter(range(1, 1000))

    def call(*args: object, **kwargs: object) -> object:
        if next(calls) == n:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return real(*args, **kwargs)

    return call


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "rename"), (Path, "replace"), (Path, "unlink")])
@pytest.mark.parametrize("n", range(1, 9))
def test_whatever_fails_all_older_files_and_their_report_stay_or_all_new_ones_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, n: int
) -> None:
    """A file that is a mount point cannot be renamed, nor can some folders be flushed."""
    make(tmp_path, "one")
    sides = (tmp_path / "x.en", tmp_path / "x.de")

    def replace() -> bool:
        with contextlib.suppress(OSError, DragomanError):
            with whole_files(sides, tmp_path / "x.json") as outs:
                for out in outs:
                    out.write(b"two")
            return True
        return False

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing(n, getattr(owner, name)))
        is_written = replace()
    texts = [path.read_text(encoding="utf-8") for path in sides]
    assert (texts, vouched(tmp_path)) == ((["two"] * 2, None) if is_written else (["one"] * 2, "one"))
    make(tmp_path, "three")
    assert not list(tmp_path.glob(".*"))


def test_a_file_that_cannot_be_replaced_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing
) -> None:
    """Such as a file that is a mount point."""
    make(tmp_path, "one")
    monkeypatch.setattr(Path, "rename", failing(3, Path.rename))
    with pytest.raises(
        DragomanError, match=r"x\.de: cannot be written .Device or resource busy.; choose another folder"
    ):
        make(tmp_path, "two")
    assert (listing(tmp_path), vouched(tmp_path)) == (["x.de", "x.en", "x.json"], "one")


def test_a_folder_in_the_place_of_one_stays_with_the_others(tmp_path: Path, listing: Listing) -> None:
    make(tmp_path, "one")
    (tmp_path / "x.de").unlink()
    (tmp_path / "x.de").mkdir()
    (tmp_path / "x.de/mine").touch()
    before = listing(tmp_path)
    with pytest.raises(IsADirectoryError):
        make(tmp_path, "two")
    assert (listing(tmp_path), listing(tmp_path / "x.de")) == (before, ["mine"])
    assert (tmp_path / "x.en").read_text(encoding="utf-8") == "one"


@pytest.mark.parametrize("n", range(1, 11))
def test_a_kill_never_leaves_old_beside_new_nor_a_report_beside_others(tmp_path: Path, n: int) -> None:
    make(tmp_path, "one")
    child = os.fork()
    if not child:
        left = n

        def deadly(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal left
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        for name in ("unlink", "rename", "replace"):
            setattr(Path, name, deadly(getattr(Path, name)))
        make(tmp_path, "two")
        os._exit(0)
    os.waitpid(child, 0)
    texts = {path.read_text(encoding="utf-8") for path in tmp_path.glob("x.[ed][ne]")}
    assert len(texts) <= 1
    if (tmp_path / "x.json").exists():
        assert vouched(tmp_path) in texts
    make(tmp_path, "one")
    assert vouched(tmp_path) == "one"
    assert not list(tmp_path.glob(".*"))


def test_leftovers_of_dead_writers_go_and_those_of_live_ones_stay(tmp_path: Path, listing: Listing) -> None:
    (tmp_path / ".x.en.0123abcd.tmp").write_text("half", encoding="utf-8")
    (tmp_path / ".x.0123abcd.tmp").mkdir()
    for name in (".x.en.0123abc.tmp", ".hidden", "x.0123abcd.tmp"):  # which nobody here writes
        (tmp_path / name).write_text("other", encoding="utf-8")
    with temporary_folder(tmp_path / "live") as live:
        remove_leftovers(tmp_path)
        assert listing(tmp_path) == sorted([".hidden", ".x.en.0123abc.tmp", "x.0123abcd.tmp", live.name])
    assert not live.exists()
    assert (final_name(live), final_name(Path("x.en"))) == ("live", "x.en")


def test_a_temporary_folder_of_a_killed_process_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    child = os.fork()
    if not child:
        with temporary_folder() as folder:
            (folder / "x").write_text("half", encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(listing(tmp_path)) == 2
    with temporary_folder() as folder:
        assert listing(tmp_path) == [folder.name]
    assert listing(tmp_path) == []


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path: Path, listing: Listing) -> None:
    (tmp_path / "x/y").mkdir(parents=True)
    remove_folder(tmp_path / "x")
    assert listing(tmp_path) == []


def test_an_output_goes_through_links_and_into_pipes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_output(tmp_path / "link", b"text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"text"
    reading, writing = os.pipe()
    write_output(Path(f"/dev/fd/{writing}"), b"text")
    assert os.read(reading, 9) == b"text"
    os.close(reading)
    os.close(writing)


def test_a_name_leaves_room_for_that_of_the_temporary_file(tmp_path: Path) -> None:
    longest = tmp_path / ("ü" * (MOST_NAME_BYTES // 2) + "x" * (MOST_NAME_BYTES % 2))
    check_name(longest)
    write_text(longest, "text")
    with pytest.raises(ConfigError, match=f"must have at most {MOST_NAME_BYTES} bytes, got {MOST_NAME_BYTES + 1};"):
        check_name(longest.with_name(longest.name + "x"))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_mount_point_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    out = tmp_path / "x"
    out.mkdir() if kind == "folder" else out.touch()
    (check_name if kind == "folder" else check_output)(out)
    monkeypatch.setattr("os.path.ismount", lambda path: path == out)
    with pytest.raises(ConfigError, match=r"x: is a mount point, which cannot be replaced; choose a"):
        (check_name if kind == "folder" else check_output)(out)
    check_output(tmp_path / "y")
    check_output(Path("/dev/null"))


ALIKE = [
    ("Read.md", "READ.md"),
    ("a/Read.md", "A/Read.md"),
    ("Größe.md", "GRÖSSE.MD"),
    (unicodedata.normalize("NFC", "Café.txt"), unicodedata.normalize("NFD", "CAFÉ.txt")),
]


@pytest.mark.parametrize("pair", ALIKE)
def test_two_names_are_refused_only_where_the_file_system_takes_them_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing, pair: tuple[str, str]
) -> None:
    outs = [tmp_path / "out" / name for name in ("other.md", *pair)]
    refuse_alike(outs)
    refuse_twice(*outs)
    assert listing(tmp_path) == []
    tried = []
    monkeypatch.setattr(files, "taken_for_one", lambda paths: tried.append(paths) or tuple(paths))
    for refuse in (refuse_alike, lambda outs: refuse_twice(*outs)):
        with pytest.raises(ConfigError, match="takes both names for one") as refused:
            refuse(outs)
        assert str(refused.value).startswith(f"{outs[1]}, {outs[2]}: must be two files")
    refuse_alike([outs[0], outs[1], tmp_path / "out/Read.txt"])  # which differ more
    assert tried == [outs[1:]] * 2


def test_names_are_tried_where_they_would_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing
) -> None:
    """As on macOS, where a name is written and read in any case."""
    outs = [tmp_path / name for name in ("a/Read.md", "a/ReaD.md", "A/READ.md")]
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *args: real(path.parent.parent / path.name.lower(), *args))
    with pytest.raises(ConfigError) as refused:
        refuse_alike(outs)
    assert str(refused.value).startswith(f"{outs[0]}, {outs[1]}: must be two files")
    assert listing(tmp_path) == []


def test_a_path_lies_in_a_folder_under_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("docs", "DOCS", "other"):
        (tmp_path / name).mkdir()
    docs = (tmp_path / "docs").resolve()
    assert lies_in(docs, docs)
    assert lies_in(tmp_path / "other/../docs/a", docs)
    assert not lies_in(tmp_path / "DOCS/a", docs)
    assert not lies_in(tmp_path, docs)
    monkeypatch.setattr(Path, "samefile", lambda one, other: True)  # as where case is ignored
    assert lies_in(tmp_path / "DOCS/a", docs)
    assert not lies_in(tmp_path / "other/a", docs)
