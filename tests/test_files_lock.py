"""One process at a time in a folder."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.bulk.record import open_record
from dragoman.errors import ConfigError
from dragoman.files import remove_leftovers, sealed_folder, write_text
from dragoman.locks import LOCK, locked, one_at_a_time, refuse_if_locked
from dragoman.training.folder import begin_again


def in_a_child(folder: Path) -> int:
    """A process that holds the lock of ``folder`` until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with locked(folder):
            os.write(writing, b"!")
            signal.pause()
        os._exit(0)
    assert os.read(reading, 1) == b"!"
    return child


def test_a_lock_is_there_while_it_is_held_and_leaves_nothing(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert (tmp_path / LOCK).read_text(encoding="utf-8").startswith(f"process {os.getpid()} on ")
    assert list(tmp_path.iterdir()) == []
    refuse_if_locked(tmp_path)
    refuse_if_locked(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    child = in_a_child(tmp_path)
    says = rf"{tmp_path}: process {child} on \S+ is training there; wait for it, stop it, or choose another --out"
    for _ in range(2):
        with pytest.raises(ConfigError, match=says), locked(tmp_path):
            raise AssertionError
        with pytest.raises(ConfigError, match=says):
            refuse_if_locked(tmp_path)
    assert (tmp_path / LOCK).exists()  # it is not ours to remove
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert (tmp_path / LOCK).exists()
    refuse_if_locked(tmp_path)
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_of_many_processes_at_once_one_holds_the_lock_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()

    def contend() -> int:
        won = 0
        while won < 20:
            try:
                with locked(tmp_path):
                    (tmp_path / "inside/one").touch(exist_ok=False)  # fails if another one is inside
                    (tmp_path / "inside/one").unlink()
                    won += 1
            except ConfigError:
                pass
        return won

    children = []
    for _ in range(4):
        child = os.fork()
        if not child:
            status = 1
            try:
                status = 0 if contend() == 20 else 1
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_a_failure_inside_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path):
        pass


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    "make",
    [lambda path: path.write_text("of my bicycle\n"), Path.mkdir, os.mkfifo, a_link_to_itself],
    ids=["a file", "a folder", "a pipe", "a link"],
)
def test_a_foreign_file_of_this_name_is_refused_and_kept(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """A folder ended in a traceback."""
    make(tmp_path / "lock")
    before = (tmp_path / "lock").lstat()
    refuse_if_locked(tmp_path)
    with pytest.raises(ConfigError, match=f"{tmp_path}/lock: exists and is not a dragoman lock file; delete it or mov"):
        locked(tmp_path).__enter__()
    after = (tmp_path / "lock").lstat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)


def test_the_lock_of_another_process_is_not_removed_after_ones_own_is_gone(tmp_path: Path) -> None:
    with locked(tmp_path):
        (tmp_path / "lock").unlink()
        (tmp_path / "lock").write_bytes(b"process 1 on another\n")
    assert (tmp_path / "lock").read_bytes() == b"process 1 on another\n"


def test_an_empty_lock_that_is_held_is_of_a_training(tmp_path: Path) -> None:
    """On a full disk it names no process."""
    child = in_a_child(tmp_path)
    os.truncate(tmp_path / "lock", 0)
    with pytest.raises(ConfigError, match=f"{tmp_path}: another process is training there"):
        locked(tmp_path).__enter__()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"no: cannot write there \(No such file or directory\)"),
        locked(tmp_path / "no"),
    ):
        raise AssertionError


def test_without_locks_in_the_file_system_a_warning_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none(*args: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none)
    with caplog.at_level(logging.WARNING), locked(tmp_path):
        assert "this file system has no locks (Operation not supported)" in caplog.text


def test_a_file_whose_inode_differs_at_each_look_is_locked_as_well_as_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was tried for ever."""
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    with locked(tmp_path):
        assert "this file system has no locks (a file has another inode at each look)" in caplog.text
    write_text(tmp_path / "x", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.fixture
def nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be locked as on NFS: only through descriptors that are open for writing."""
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


def test_on_nfs_too_a_training_is_seen_and_what_a_dead_process_left_goes(tmp_path: Path, nfs: None) -> None:
    child = in_a_child(tmp_path)
    with pytest.raises(ConfigError, match=f"process {child} on .* is training there"):
        refuse_if_locked(tmp_path)
    with pytest.raises(ConfigError, match=f"process {child} on .* is training there"):
        begin_again(tmp_path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    refuse_if_locked(tmp_path)
    (tmp_path / ".x.0123abcd.tmp").touch()
    remove_leftovers(tmp_path)
    begin_again(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_lock_that_may_only_be_read_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    child, real = in_a_child(tmp_path), os.open

    def read_only(path: Path, flags: int, *args: int) -> int:
        if flags & os.O_RDWR:
            raise OSError(number, os.strerror(number), str(path))
        return real(path, flags, *args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only)
        with pytest.raises(ConfigError, match=f"process {child} on .* is training there"):
            refuse_if_locked(tmp_path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_no_lock_takes_the_place_of_a_folder_that_is_gone(tmp_path: Path) -> None:
    """A disk that is unmounted under a server must find its folder again, not a file of that name."""
    with pytest.raises(FileNotFoundError), one_at_a_time(tmp_path / "gone"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError), one_at_a_time(tmp_path / "file"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "hold", [locked, one_at_a_time, partial(sealed_folder, facts={}), partial(open_record, facts={})]
)
def test_a_process_that_is_forked_meanwhile_does_not_keep_the_lock(hold: Callable[..., Any], tmp_path: Path) -> None:
    with hold(tmp_path):
        child = os.fork()
        if not child:
            signal.pause()
            os._exit(0)
    try:
        with locked(tmp_path), one_at_a_time(tmp_path, most_s=0):
            pass
        with hold(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
