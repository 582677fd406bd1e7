"""One process at a time in a folder."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.locks import LOCK, locked, one_at_a_time, refuse_if_locked


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


def test_a_foreign_file_of_this_name_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("of my bicycle\n")
    with pytest.raises(ConfigError, match="not a dragoman lock file"), locked(tmp_path):
        pass
    assert (tmp_path / "lock").read_text() == "of my bicycle\n"


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


def test_no_lock_takes_the_place_of_a_folder_that_is_gone(tmp_path: Path) -> None:
    """A disk that is unmounted under a server must find its folder again, not a file of that name."""
    with pytest.raises(FileNotFoundError), one_at_a_time(tmp_path / "gone"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError), one_at_a_time(tmp_path / "file"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
