"""Files of keys as editors, scripts and mistaken commands leave them: no key is lost, what is no such file is named."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.locks import flock
from dragoman.serving import keys as key_files
from dragoman.serving.keys import Keys, make_key
from limits import wait_until


@pytest.mark.parametrize("cut", [b"", b"\n", b"\r\n"])
def test_A5_a_new_key_leaves_the_others_whatever_their_last_line_ends_with(
    tmp_path: Path, cut: bytes, figure: Any
) -> None:
    """An editor may leave out the last line end: the new key then went into the line of the last one."""
    path = tmp_path / "keys"
    ann = make_key(path, "ann")
    path.write_bytes(path.read_bytes().rstrip(b"\n") + cut)
    bob = make_key(path, "bob")
    assert [Keys.load(path).owner(key) for key in (ann, bob)] == ["ann", "bob"]
    figure("A5", f"the last line ends with {cut!r}: both keys are accepted")


@pytest.mark.parametrize("content", [b"\n", b" \n\n", b"# our keys\n", b"# our keys", b"\xef\xbb\xbf"])
def test_A5_a_key_can_be_added_to_a_file_without_keys(tmp_path: Path, content: bytes) -> None:
    """Such a file, as an editor leaves it when its last key is deleted, was refused with the advice to do just that."""
    path = tmp_path / "keys"
    path.write_bytes(content)
    ann = make_key(path, "ann")
    assert Keys.load(path).owner(ann) == "ann"
    assert path.read_bytes().startswith(content)


def test_a_file_of_keys_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    ann = make_key(path, "ann")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert Keys.load(path).owner(ann) == "ann"
    make_key(path, "bob")
    assert Keys.load(path).names == ["ann", "bob"]


def test_A5_a_name_that_two_processes_want_at_once_is_given_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the name twice no server would start."""
    path, both = tmp_path / "keys", threading.Barrier(2)
    made, refusals = list[str](), list[str]()

    def key_when_both_want_one(n_bytes: int) -> str:
        with contextlib.suppress(threading.BrokenBarrierError):  # one of them waits outside
            both.wait(0.5)
        return f"{threading.get_ident()}"

    def make() -> None:
        try:
            made.append(make_key(path, "ann"))
        except ConfigError as error:
            refusals.append(str(error))

    monkeypatch.setattr(key_files.secrets, "token_urlsafe", key_when_both_want_one)
    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [Keys.load(path).owner(key) for key in made] == ["ann"]
    assert ["already has a key named ann" in refusal for refusal in refusals] == [True]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux lists who waits for a lock: not tried")
def test_A5_a_key_made_while_an_editor_puts_another_file_in_place_is_in_that_file(tmp_path: Path) -> None:
    path, edited, made = tmp_path / "keys", tmp_path / "edited", list[str]()
    ann = make_key(path, "ann")
    with path.open("rb") as file:
        flock(file.fileno())
        thread = threading.Thread(target=lambda: made.append(make_key(path, "bob")))
        thread.start()
        inode = f":{path.stat().st_ino} "
        wait_until(
            lambda: any(" -> " in lock and inode in lock for lock in Path("/proc/locks").read_text().split("\n"))
        )
        edited.write_bytes(b"# an editor was here\n" + path.read_bytes())
        edited.replace(path)
    thread.join()
    assert [Keys.load(path).owner(key) for key in (ann, *made)] == ["ann", "bob"]


def test_A5_a_key_that_could_not_be_shown_is_not_stored_and_the_others_stay(tmp_path: Path) -> None:
    path, made = tmp_path / "keys", list[str]()

    def fail(key: str) -> None:
        made.append(make_key(path, "bob"))  # by another process meanwhile
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    made.append(make_key(path, "ann"))
    with pytest.raises(OSError, match="No space left on device"):
        make_key(path, "eve", show=fail)
    made.append(make_key(path, "eve"))
    assert [Keys.load(path).owner(key) for key in made] == ["ann", "bob", "eve"]


def test_A5_a_key_for_a_full_disk_leaves_its_name_free(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    command = [sys.executable, "-m", "dragoman", "serve", "--keys", str(path), "--make-key", "ann"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"error: reading or writing: No space left on device\n")
    key = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    assert Keys.load(path).owner(key) == "ann"


@pytest.mark.parametrize("cut", ["bob", "bob ", "bob 0123456789abcdef", "bob " + "0" * 63])
def test_A5_a_line_that_a_call_has_not_finished_is_dropped_with_a_word(
    tmp_path: Path, cut: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Half of a line, after a power cut, made the whole file invalid, for this call too."""
    path = tmp_path / "keys"
    ann = make_key(path, "ann")
    path.write_text(path.read_text(encoding="utf-8") + cut, encoding="utf-8")
    bob = make_key(path, "bob")
    assert [Keys.load(path).owner(key) for key in (ann, bob)] == ["ann", "bob"]
    assert f"{path}:2: cut off, so this key is not accepted; make it again" in caplog.text
    path.write_text(path.read_text(encoding="utf-8").split("\n")[0] + "\n" + cut, encoding="utf-8")
    assert Keys.load(path).names == ["ann"]  # a server starts with the others


@pytest.mark.parametrize("content", ["hunter2", "my bad", "bob ", "# remarks\nbob", "one line\nbob 0123456789abcdef"])
def test_A5_a_file_that_may_be_no_file_of_keys_is_refused_and_stays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="the line must be 'NAME SHA256'"):
        make_key(path, "ann")
    assert path.read_text(encoding="utf-8") == content


def test_A5_the_first_key_of_a_file_may_be_cut_off_too(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("ann " + "0" * 32, encoding="utf-8")
    bob = make_key(path, "bob")
    assert Keys.load(path).names == ["bob"]
    assert Keys.load(path).owner(bob) == "bob"


@pytest.mark.parametrize("last", ["# a remark without an end", "two words, no key", "bob 0123 "])
def test_A5_a_last_line_that_no_call_has_written_stays(tmp_path: Path, last: str) -> None:
    path = tmp_path / "keys"
    make_key(path, "ann")
    content = path.read_text(encoding="utf-8") + last
    path.write_text(content, encoding="utf-8")
    with contextlib.suppress(ConfigError):
        make_key(path, "bob")
    assert path.read_text(encoding="utf-8").startswith(content)


def test_A5_a_link_to_a_file_of_keys_stays_one(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "keys").symlink_to("secrets/keys")
    ann = make_key(tmp_path / "keys", "ann")
    assert (tmp_path / "keys").is_symlink()
    assert Keys.load(tmp_path / "secrets/keys").owner(ann) == "ann"
    assert (tmp_path / "secrets/keys").stat().st_mode & 0o77 == 0


def test_what_is_no_file_of_keys_is_refused_before_it_takes_all_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_files, "MOST_BYTES", 100_000)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(100_001)
    for path in (large, Path("/dev/zero")):
        with pytest.raises(ConfigError, match=r"not a file of keys .*more than 100,000 bytes"):
            Keys.load(path)


def test_keys_are_read_from_a_pipe_and_no_key_is_added_there(tmp_path: Path) -> None:
    """A shell passes the output of a command as a pipe: ``--keys <(print-keys)``."""
    path, pipe = tmp_path / "keys", tmp_path / "pipe"
    ann = make_key(path, "ann")
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    assert Keys.load(pipe).owner(ann) == "ann"
    writer.join()
    for other in (pipe, tmp_path):
        with pytest.raises(ConfigError, match="a key can only be added to a file"):
            make_key(other, "bob")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which file a descriptor is of")
def test_a_key_that_is_stored_is_shown_though_closing_the_file_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was taken, and nobody had seen the key."""
    path, close = tmp_path / "keys", os.close

    def closed(descriptor: int) -> None:
        is_ours = Path(f"/proc/self/fd/{descriptor}").readlink() == path
        close(descriptor)
        if is_ours:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "close", closed)
    key = make_key(path, "ann")
    assert Keys.load(path).owner(key) == "ann"
