"""Files and folders that are whole or absent."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import files, locks
from dragoman.errors import BundleError, DragomanError, UnreadableError
from dragoman.files import MANIFEST, check_sealed, sealed_folder, sha256, standing, write_text

Listing = Callable[[Path], list[str]]
NO_SPACE = (
    r"x: cannot be written \(No space left on device\); about 3 bytes are needed, [\d,]+ bytes are free; free some"
)


def no_space(*args: Any, **kwargs: Any) -> None:
    raise OSError(28, "No space left on device")


def test_text_replaces_the_file_with_lf_and_utf8(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_text(path, "old")
    write_text(path, "größer\nals\r\n")
    assert path.read_bytes() == "größer\nals\r\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace")])
def test_a_text_that_cannot_be_written_leaves_the_old_one_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    path = tmp_path / "x"
    write_text(path, "old")
    monkeypatch.setattr(owner, name, no_space)
    with pytest.raises(DragomanError, match=NO_SPACE):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_text_for_a_folder_that_does_not_exist_is_refused_and_nobody_is_told_to_free_space(tmp_path: Path) -> None:
    with pytest.raises(DragomanError, match=r"written \(No such file or directory\); choose another folder$"):
        write_text(tmp_path / "no/x", "text")


def in_processes(n: int, work: Callable[[int], None]) -> list[int]:
    """Exit statuses of ``n`` processes that work at the same time: 0, or 1 for one that raised."""
    children = []
    for i in range(n):
        child = os.fork()
        if not child:
            status = 1
            try:
                work(i)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_two_processes_that_write_one_name_do_not_meet_and_a_reader_never_sees_half(tmp_path: Path) -> None:
    path = tmp_path / "x"
    texts = [letter * 100_000 for letter in "ab"]
    write_text(path, texts[0])

    def work(i: int) -> None:
        for _ in range(200):
            write_text(path, texts[i % 2])
            assert path.read_text(encoding="utf-8") in texts

    assert in_processes(3, work) == [0, 0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_link_that_lies_in_wait_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "victim").write_text("precious", encoding="utf-8")
    for name in (".x.tmp", ".x.0123abcd.tmp"):
        (tmp_path / name).symlink_to(tmp_path / "victim")
    write_text(tmp_path / "x", "text")
    assert not (tmp_path / "x").is_symlink()
    monkeypatch.setattr(secrets, "token_hex", lambda n: "0123abcd")  # even if the name were guessed
    with pytest.raises(DragomanError, match="File exists"):
        write_text(tmp_path / "x", "other")
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "precious"
    assert (tmp_path / "x").read_text(encoding="utf-8") == "text"


def test_the_mode_of_what_is_written_is_that_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "x", "text")
        with sealed_folder(tmp_path / "y", {}):
            pass
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "xy"] == [0o640, 0o750]


def test_what_the_dead_left_is_removed_and_what_the_living_write_is_not(tmp_path: Path, listing: Listing) -> None:
    of_others = [".y.0123abcd.tmp", ".x.tmp", ".x.y.0123abcd.tmp", "x.0123abcd.tmp"]
    for name in (".x.0123abcd.tmp", *of_others):
        (tmp_path / name).write_bytes(b"rest")
    with sealed_folder(tmp_path / "x", {}) as first:
        (first / "a").write_bytes(b"1")
        assert sorted(listing(tmp_path)) == sorted([*of_others, first.name, f"{first.name}/a"])
        assert in_processes(1, lambda i: write_text(tmp_path / "x", "meanwhile")) == [0]
        (tmp_path / "x").unlink()
    assert (tmp_path / "x/a").read_bytes() == b"1"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*of_others, "x"])


def test_a_large_folder_is_not_listed_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that writes all its documents into one folder took quadratic time."""
    listed, real = [], Path.iterdir
    n_files, n_names = 50, 5000
    for i in range(n_names):
        (tmp_path / f"{i}").touch()
    for i in range(n_files):  # all of them were left when a command was killed
        (tmp_path / f".x{i}.0123abcd.tmp").write_bytes(b"half")

    def counted(path: Path) -> Any:
        names = list(real(path))
        listed.extend(names)
        return iter(names)

    monkeypatch.setattr(Path, "iterdir", counted)
    for i in range(n_files):
        write_text(tmp_path / f"x{i}", "whole")
    assert 0 < len(listed) <= 2 * n_names
    assert len(list(real(tmp_path))) == n_names + n_files  # none of the leftovers


def test_what_is_left_in_a_large_folder_meanwhile_is_removed_after_a_few_files(tmp_path: Path) -> None:
    n_names = 500
    for i in range(n_names):
        (tmp_path / f"{i}").touch()
    write_text(tmp_path / "x", "text")
    (tmp_path / ".y.0123abcd.tmp").write_bytes(b"half")  # by another process, which was killed now
    for _ in range(n_names // 50):
        write_text(tmp_path / "y", "text")
    assert {path.name for path in tmp_path.iterdir()} == {*map(str, range(n_names)), "x", "y"}


def test_where_there_are_no_locks_nothing_is_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*args: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none)
    (tmp_path / ".x.0123abcd.tmp").mkdir()
    write_text(tmp_path / "x", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.0123abcd.tmp", "x"]


def test_a_sealed_folder_appears_when_its_body_ends_and_its_manifest_sums_every_file(tmp_path: Path) -> None:
    folder = tmp_path / "deep/er/x"
    with sealed_folder(folder, {"step": 7, "name": "größer"}) as aside:
        (aside / "a").write_bytes(b"abc")
        (aside / "b").write_bytes(b"")
        assert not folder.exists()
    manifest = check_sealed(folder, "bundle")
    assert manifest["step"] == 7
    assert manifest["files"] == {
        "a": {"bytes": 3, "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        "b": {"bytes": 0, "sha256": sha256(folder / "b")},
    }
    assert [path.name for path in folder.parent.iterdir()] == ["x"]


def test_a_sealed_folder_replaces_an_older_one_and_what_raises_leaves_the_older(
    tmp_path: Path, listing: Listing
) -> None:
    for content in (b"1", b"2"):
        with sealed_folder(tmp_path / "x", {}) as aside:
            (aside / "a").write_bytes(content)
    with pytest.raises(KeyError), sealed_folder(tmp_path / "x", {}) as aside:  # noqa: PT012
        (aside / "a").write_bytes(b"3")
        raise KeyError
    assert (tmp_path / "x/a").read_bytes() == b"2"
    assert listing(tmp_path) == ["x", "x/a", f"x/{MANIFEST}"]
    check_sealed(tmp_path / "x", "bundle")


@pytest.mark.parametrize("has_links", [True, False])
def test_what_else_is_in_a_sealed_folder_outlives_its_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    """Exports of a bundle, its model card, a glossary that its owner keeps there."""
    if not has_links:
        monkeypatch.setattr(os, "link", no_space)
    folder = tmp_path / "x"
    with sealed_folder(folder, {}, unsealed=("card",)) as aside:
        for name in ("a", "b", "card"):
            (aside / name).write_bytes(b"1")
    (folder / "exports/small").mkdir(parents=True)
    (folder / "exports/small/model.bin").write_bytes(b"weights")
    (folder / "glossary.tsv").write_text("dog\tHund\n", encoding="utf-8")
    (folder / "latest").symlink_to("exports/small")
    (folder / ".y.0123abcd.tmp").mkdir()
    with sealed_folder(folder, {}, unsealed=("card",)) as aside:
        (aside / "a").write_bytes(b"2")
    assert sorted(path.name for path in folder.iterdir()) == ["a", "exports", "glossary.tsv", "latest", MANIFEST]
    assert (folder / "a").read_bytes() == b"2"
    assert (folder / "latest/model.bin").read_bytes() == b"weights"
    assert (folder / "latest").is_symlink()
    assert (folder / "glossary.tsv").read_text(encoding="utf-8") == "dog\tHund\n"
    assert [*check_sealed(folder, "bundle")["files"]] == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_the_older_folder_stands_when_a_process_died_between_two_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing
) -> None:
    def write(content: bytes) -> None:
        with sealed_folder(tmp_path / "x", {}) as aside:
            (aside / "a").write_bytes(content)

    write(b"1")
    assert standing(tmp_path / "x") == tmp_path / "x"
    assert standing(tmp_path / "nothing") == tmp_path / "nothing"
    (tmp_path / "x").rename(tmp_path / ".x.old")  # here it died; its own folder is still aside
    (tmp_path / ".x.0123abcd.tmp").mkdir()
    assert standing(tmp_path / "x") == tmp_path / ".x.old"
    check_sealed(standing(tmp_path / "x"), "bundle")
    with monkeypatch.context() as patch:  # the next one fails too: nothing is lost
        patch.setattr(Path, "rename", no_space)
        with pytest.raises(DragomanError, match="cannot be written"):
            write(b"2")
    assert (standing(tmp_path / "x") / "a").read_bytes() == b"1"
    write(b"3")
    assert (standing(tmp_path / "x") / "a").read_bytes() == b"3"
    assert listing(tmp_path) == ["x", "x/a", f"x/{MANIFEST}"]


def with_a_users_file(folder: Path) -> None:
    with sealed_folder(folder, {}) as aside:
        (aside / "a").write_bytes(b"1")
        (aside / "only old").write_bytes(b"1")
    (folder / "glossary.tsv").write_text("dog\tHund\n", encoding="utf-8")
    (folder / "exports").mkdir()
    (folder / "exports/model.bin").write_bytes(b"weights")


@pytest.mark.parametrize("name", ["read_text", "iterdir", "lstat"])
@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE])
def test_a_folder_that_cannot_be_read_now_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing, name: str, number: int
) -> None:
    """It was taken for one without a manifest, and what a user kept there was removed."""
    folder = tmp_path / "x"
    with_a_users_file(folder)
    before, real = listing(tmp_path), getattr(Path, name)

    def broken(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path.is_relative_to(folder):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *args, **kwargs)

    def replace() -> None:
        with sealed_folder(folder, {}) as aside:
            (aside / "a").write_bytes(b"2")
            monkeypatch.setattr(Path, name, broken)

    with pytest.raises(DragomanError, match=os.strerror(number)):
        replace()
    monkeypatch.setattr(Path, name, real)
    assert listing(tmp_path) == before
    assert (folder / "a").read_bytes() == b"1"


@pytest.mark.parametrize("content", [b"", b"{", b'{"files": {}, "sha256": "0"}', b"\xff"])
def test_of_a_folder_whose_manifest_is_damaged_all_stays_that_the_new_one_has_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    folder = tmp_path / "x"
    with_a_users_file(folder)
    (folder / MANIFEST).write_bytes(content)
    with sealed_folder(folder, {}) as aside:
        (aside / "a").write_bytes(b"2")
    assert [*check_sealed(folder, "bundle")["files"]] == ["a"]
    assert (folder / "a").read_bytes() == b"2"
    kept = ["exports", "glossary.tsv", "only old"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(["a", MANIFEST, *kept])
    assert (folder / "exports/model.bin").read_bytes() == b"weights"
    assert "damaged, so nothing of this folder is removed" in caplog.text


def test_what_stands_in_its_place_is_said_to_be_written_whatever_fails_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, listing: Listing
) -> None:
    with_a_users_file(tmp_path / "x")
    flush, close = files.flush, os.close

    def broken(path: Path) -> None:
        if path == tmp_path:
            raise OSError(errno.EIO, "Input/output error", str(path))
        flush(path)

    def close_badly(descriptor: int) -> None:
        close(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "flush", broken)
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "close", close_badly)
        write_text(tmp_path / "y", "new")
    says = "written, but perhaps not safe from a power failure: Input/output error"
    with pytest.raises(DragomanError, match=f"x: {says}"), sealed_folder(tmp_path / "x", {}) as aside:
        (aside / "a").write_bytes(b"2")
    assert (tmp_path / "y").read_text(encoding="utf-8") == "new"
    assert [record.getMessage() for record in caplog.records] == [f"{tmp_path}/y: {says}"]
    check_sealed(tmp_path / "x", "bundle")
    check_sealed(tmp_path / ".x.old", "bundle")  # until the new one is safe
    assert (tmp_path / "x/a").read_bytes() + (tmp_path / ".x.old/a").read_bytes() == b"21"
    assert (tmp_path / "x/glossary.tsv").is_file()


def test_a_manifest_that_is_not_safe_on_the_disk_replaces_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_users_file(tmp_path / "x")
    flush = files.flush
    monkeypatch.setattr(files, "flush", lambda path: no_space() if path.name.endswith(".tmp") else flush(path))
    with pytest.raises(DragomanError, match="cannot be written"), sealed_folder(tmp_path / "x", {}) as aside:
        (aside / "a").write_bytes(b"2")
    assert (tmp_path / "x/a").read_bytes() == b"1"


def test_where_folders_cannot_be_flushed_they_are_written_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Training and export ended on such a file system, as 9p and the shared folders of VirtualBox."""
    real = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    monkeypatch.setattr(files, "devices_without_flush", set())
    for content in (b"1", b"2"):
        with sealed_folder(tmp_path / "x", {}) as aside:
            (aside / "a").write_bytes(content)
        write_text(tmp_path / "y", "text")
    check_sealed(tmp_path / "x", "bundle")
    assert (tmp_path / "x/a").read_bytes() == b"2"
    assert caplog.messages == [
        f"{tmp_path}/x: this file system cannot flush folders (Invalid argument): a power failure may undo what is "
        "written there"
    ]
    monkeypatch.setattr(os, "fsync", lambda descriptor: refuse_folders(os.open(tmp_path, os.O_RDONLY)))
    with pytest.raises(DragomanError, match=r"cannot be written .Invalid argument"):  # of a file
        write_text(tmp_path / "y", "new")


def test_an_older_folder_that_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_a_users_file(tmp_path / "x")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        with sealed_folder(tmp_path / "x", {}) as aside:
            (aside / "a").write_bytes(b"2")
    assert caplog.messages == [f"{tmp_path}/.x.old: the folder that was replaced cannot be removed: remove it"]
    assert (tmp_path / "x/a").read_bytes() == b"2"


def seal(folder: Path) -> None:
    with sealed_folder(folder, {}):
        pass


@pytest.mark.parametrize("make", [lambda path: write_text(path, "new"), seal])
def test_what_cannot_be_locked_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    def broken(*_: object) -> str:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(locks, "flock", broken)
    with pytest.raises(DragomanError, match="cannot be written"):
        make(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("behind", [1, 2])
def test_ctrl_c_between_two_renames_leaves_a_whole_folder_in_its_place(
    behind: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one was there under a hidden name alone; or the new one was said to be unwritten."""
    rename, calls = Path.rename, list[Path]()
    with sealed_folder(tmp_path / "x", {}) as aside:
        (aside / "a").write_bytes(b"old")

    def interrupted(path: Path, target: Path) -> Any:
        moved = rename(path, target)
        if path.name == "x" or path.suffix == ".tmp":
            calls.append(path)
            if len(calls) == behind:
                raise KeyboardInterrupt
        return moved

    def replace_it() -> None:
        with sealed_folder(tmp_path / "x", {}) as aside:
            (aside / "a").write_bytes(b"new")
            monkeypatch.setattr(Path, "rename", interrupted)

    with pytest.raises(KeyboardInterrupt):
        replace_it()
    monkeypatch.undo()
    check_sealed(tmp_path / "x", "bundle")
    assert (tmp_path / "x/a").read_bytes() == (b"old", b"new")[behind - 1]


def test_if_the_second_rename_fails_the_first_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"1", b"2"):
        calls: list[Path] = []
        rename = Path.rename

        def fails(path: Path, target: Path, calls: list[Path] = calls, rename: Any = rename) -> Any:
            calls.append(path)
            return no_space() if len(calls) == 2 else rename(path, target)

        with monkeypatch.context() as patch:
            if content == b"2":
                patch.setattr(Path, "rename", fails)
                with pytest.raises(DragomanError), sealed_folder(tmp_path / "x", {}) as aside:
                    (aside / "a").write_bytes(content)
            else:
                with sealed_folder(tmp_path / "x", {}) as aside:
                    (aside / "a").write_bytes(content)
    assert len(calls) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x/a").read_bytes() == b"1"


def test_a_manifest_may_have_another_name_and_facts_that_the_body_adds(tmp_path: Path) -> None:
    facts: dict[str, Any] = {}
    with sealed_folder(tmp_path / "x", facts, name="store.json") as aside:
        (aside / "a").write_bytes(b"1")
        facts["pairs"] = 7
    assert check_sealed(tmp_path / "x", "store", "store.json")["pairs"] == 7
    with pytest.raises(BundleError, match=r"not a bundle of dragoman, or an unfinished one \(no manifest.json\)"):
        check_sealed(tmp_path / "x", "bundle")


def test_what_a_killed_process_left_aside_does_not_hinder_the_next(tmp_path: Path, listing: Listing) -> None:
    for name in (".x.0123abcd.tmp", ".x.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rest").write_bytes(b"rest")
    with sealed_folder(tmp_path / "x", {}) as aside:
        (aside / "a").write_bytes(b"1")
    assert listing(tmp_path) == ["x", "x/a", f"x/{MANIFEST}"]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"7", b'"files"', b"{}", b'{"files": 3}', b'{"files": {"a": 3}}', b"\xff\xfe",
        b'{"files": {"a": {"bytes": 3}}}', b"[" * 100_000, b'{"files": {"a": {"bytes": "x", "sha256": null}}}',
        b'{"files": {"../a": {"bytes": 3, "sha256": ""}}}', b'{"files": {"/etc/passwd": {"bytes": 3, "sha256": ""}}}',
        b'{"files": {"": {"bytes": 3, "sha256": ""}}}', b'{"files": {"a": {"bytes": 3, "sha256": "0"}}}',
    ],
)  # fmt: skip
def test_a_manifest_that_is_damaged_or_leads_elsewhere_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(BundleError, match=r"damaged|missing from this bundle"):
        check_sealed(tmp_path, "bundle")


def test_a_fact_that_was_changed_in_the_manifest_is_noticed(tmp_path: Path) -> None:
    with sealed_folder(tmp_path / "x", {"src_lang": "en"}) as aside:
        (aside / "a").write_bytes(b"abc")
    path = tmp_path / "x" / MANIFEST
    path.write_text(path.read_text(encoding="utf-8").replace('"en"', '"de"'), encoding="utf-8")
    with pytest.raises(BundleError, match="the manifest is damaged"):
        check_sealed(tmp_path / "x", "bundle")
    manifest = json.loads(path.read_text(encoding="utf-8").replace('"de"', '"en"'))
    path.write_text(
        json.dumps({{"sha256": "qha256"}.get(name, name): fact for name, fact in manifest.items()}), "utf-8"
    )
    with pytest.raises(BundleError, match="the manifest is damaged"):
        check_sealed(tmp_path / "x", "bundle")
    manifest["src_lang"] = "de"
    del manifest["sha256"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert check_sealed(tmp_path / "x", "bundle")["src_lang"] == "de"  # unsealed facts, as in the first bundles


def test_a_file_that_cannot_be_read_now_is_not_said_to_be_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sealed_folder(tmp_path / "x", {}) as aside:
        (aside / "a").write_bytes(b"abc")

    def broken(path: Path, *_: object, **__: object) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    for name, file in (("read_text", MANIFEST), ("open", "a")):
        with monkeypatch.context() as patch:
            patch.setattr(Path, name, broken)
            with pytest.raises(UnreadableError, match=rf"x/{file}: cannot be read \(Too many open files\)$"):
                files.read_manifest(tmp_path / "x", "bundle") if file == MANIFEST else files.check_files(
                    tmp_path / "x", "bundle", {"files": {"a": {"bytes": 3, "sha256": ""}}}
                )


def test_no_folder_and_no_manifest_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nowhere: no such bundle"):
        check_sealed(tmp_path / "nowhere", "bundle")
    with pytest.raises(BundleError, match=r"not a bundle of dragoman, or an unfinished one \(no manifest.json\)"):
        check_sealed(tmp_path, "bundle")


def test_a_pinned_path_stays_the_same_file_and_is_shown_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host may change its current folder during a call."""
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    run, here, absolute = files.pinned("runs/x"), files.pinned("."), files.pinned(tmp_path / "one/y")
    assert (f"{run}", f"{run / 'bundle'}", f"{run.parent}", f"{here}") == ("runs/x", "runs/x/bundle", "runs", ".")
    assert f"{files.pinned('../z')}" == "../z"
    assert f"{absolute}" == str(absolute)
    assert str(run) == os.fspath(run) == f"{tmp_path}/one/runs/x"
    assert run == tmp_path / "one/runs/x"
    assert files.pinned(run) is run
    os.chdir(tmp_path)
    assert f"{run}" == "one/runs/x"
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert f"{run}" == f"{tmp_path}/one/runs/x"


def test_X9_what_replaces_a_file_or_folder_keeps_its_permissions(
    tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    """A text that only its owner might read became readable to all."""
    file, folder, new = tmp_path / "a.txt", tmp_path / "bundle", tmp_path / "new.txt"
    umask = os.umask(0o022)
    try:
        for mode in (0o600, 0o640, 0o666, 0o400):
            file.write_text("old")
            file.chmod(mode)
            write_text(file, "new")
            assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", mode | 0o600)
        write_text(new, "new")
        for content in ("old", "new"):
            with sealed_folder(folder, {}) as aside:
                (aside / "text").write_text(content)
            folder.chmod(0o700)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o644
    assert ((folder / "text").read_text(), stat.S_IMODE(folder.stat().st_mode)) == ("new", 0o700)
    figure("X9", "4 files and a folder keep their permissions; a new file has the usual ones")


def test_what_the_group_of_a_replaced_file_might_do_is_not_for_another_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchown", refuse)
    path = tmp_path / "a.txt"
    for mode, given in ((0o660, 0o600), (0o664, 0o644), (0o604, 0o644)):
        path.write_text("old")
        path.chmod(mode)
        write_text(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == given
