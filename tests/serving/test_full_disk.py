"""A disk that is full from some operation on: what clients are told, what is left, and that it is over with room."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_documents import done, upload

from dragoman.serving import jobs, storage
from dragoman.serving.jobs import FULL, Job, Jobs
from dragoman.serving.limits import Shares
from dragoman.serving.refusals import BusyError, FullError
from limits import wait_until

TERMS = {"name": "g", "source_lang": "en", "target_lang": "de", "entries": "dog\thund", "entries_format": "tsv"}


class Disk:
    """Counts the operations below a folder that need room; from number ``full_from`` on they fail."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.n, self.full_from = str(folder), 0, 0
        os_open, mkdir, allocate, path_open, fdopen = os.open, os.mkdir, os.posix_fallocate, Path.open, os.fdopen

        def open_(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if flags & os.O_CREAT:
                self.meet(path)
            return os_open(path, flags, *rest, **more)

        def mkdir_(path: Any, *rest: Any, **more: Any) -> None:
            self.meet(path)
            mkdir(path, *rest, **more)

        def allocate_(descriptor: int, *rest: Any) -> None:
            self.meet(Path(f"/proc/self/fd/{descriptor}").readlink())
            allocate(descriptor, *rest)

        def path_open_(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
            file = path_open(path, mode, *rest, **more)
            return Written(file, path, self) if "+" in mode else file

        def fdopen_(descriptor: int, *rest: Any, **more: Any) -> Any:
            file = fdopen(descriptor, *rest, **more)
            return Written(file, Path(f"/proc/self/fd/{descriptor}").readlink(), self)

        for owner, name, new in (
            (os, "open", open_), (os, "mkdir", mkdir_), (os, "posix_fallocate", allocate_), (Path, "open", path_open_),
            (os, "fdopen", fdopen_),
        ):  # fmt: skip
            monkeypatch.setattr(owner, name, new)

    def meet(self, path: Any) -> None:
        if str(path).startswith(self.folder):
            self.n += 1
            if self.full_from and self.n >= self.full_from:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def fill(self, after: int) -> None:
        """Let the operation after ``after`` more, and all later ones, fail."""
        self.n, self.full_from = 0, after + 1

    def free(self) -> bool:
        """Make room; return True if an operation failed."""
        met = bool(self.full_from) and self.n >= self.full_from
        self.full_from = 0
        return met


class Written:
    """A file whose writes need room."""

    def __init__(self, file: Any, path: Path, disk: Disk) -> None:
        self._file, self._path, self._disk = file, path, disk

    def write(self, data: Any) -> int:
        self._disk.meet(self._path)
        return int(self._file.write(data))

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def told(server: Any, reply: Any, tmp_path: Path) -> str:
    """The message of a refusal, which has a time to come again and no path."""
    message = reply.json["message"]
    assert (reply.status, reply.headers["retry-after"]) == (507, "30")
    assert str(tmp_path) not in message
    assert "bytes" not in message
    return str(message)


def test_an_upload_meets_a_disk_that_is_full_from_each_operation_on(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "d"
    server = serving(documents=folder)
    disk = Disk(folder, monkeypatch)
    outcomes = []
    for n in range(100):
        disk.fill(n)
        reply = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE", source_lang="EN")
        if reply.status == 200:
            status = done(server, reply.json)
            wait_until(lambda: not server.state.documents.tasks)
            outcomes.append(status["status"])
            left = {path.name for path in (folder / reply.json["document_id"]).iterdir()}
            if status["status"] == "error":
                assert status["error_message"] == FULL
                assert left == {"job.json"}
            else:
                assert left - {"full.json"} == {"job.json", "result"}
            server.state.documents.jobs.remove(reply.json["document_id"])
        else:
            assert told(server, reply, tmp_path) == "the server has no room to store this: try again later"
            outcomes.append("refused")
        assert list(folder.iterdir()) == []
        if not disk.free():
            break
        again = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE", source_lang="EN")
        assert again.status == 200
        assert done(server, again.json)["status"] == "done"
        wait_until(lambda: not server.state.documents.tasks)
        server.state.documents.jobs.remove(again.json["document_id"])
    assert list(dict.fromkeys(outcomes)) == ["refused", "error", "done"]
    assert len(outcomes) > 12


def test_a_glossary_meets_a_disk_that_is_full_from_each_operation_on(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "g"
    server = serving(glossaries=folder)
    kept = server("/v2/glossaries", TERMS).json["glossary_id"]
    before = server(f"/v3/glossaries/{kept}").body
    disk = Disk(folder, monkeypatch)
    for method, path, fields in (
        ("POST", "/v2/glossaries", TERMS), ("PATCH", f"/v3/glossaries/{kept}", {"name": "new"}),
        ("PUT", f"/v3/glossaries/{kept}/dictionaries", {name: TERMS[name] for name in TERMS if name != "name"}),
    ):  # fmt: skip
        n = 0
        while True:
            disk.fill(n)
            reply = server(path, fields, method=method)
            if not disk.free():
                assert reply.status < 300
                break
            assert told(server, reply, tmp_path)
            assert [file.name for file in folder.iterdir()] == [f"{kept}.json"]
            assert server(f"/v3/glossaries/{kept}").body == before
            n += 1
        assert n >= 2
        for other in server("/v3/glossaries").json["glossaries"]:
            if other["glossary_id"] != kept:
                server(f"/v3/glossaries/{other['glossary_id']}", method="DELETE")
        before = server(f"/v3/glossaries/{kept}").body


def test_a_full_disk_drops_what_was_fetched_before_it_refuses(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(documents=tmp_path)
    fields = {"target_lang": "DE", "source_lang": "EN"}
    old = upload(server, "/v2/document", "a.txt", b"the dog", **fields).json
    assert done(server, old)["status"] == "done"
    wait_until(lambda: not server.state.documents.tasks)
    allocate = os.posix_fallocate

    def only_without_the_old_one(*arguments: int) -> None:
        if (tmp_path / old["document_id"]).exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        allocate(*arguments)

    monkeypatch.setattr(os, "posix_fallocate", only_without_the_old_one)
    assert upload(server, "/v2/document", "a.txt", b"a cat", **fields).status == 507
    secret = {"document_key": old["document_key"]}
    assert server(f"/v2/document/{old['document_id']}/result", secret).status == 200
    wait_until(lambda: not (tmp_path / old["document_id"] / "result").stat().st_mode & 0o200)
    assert upload(server, "/v2/document", "a.txt", b"a cat", **fields).status == 200
    assert server(f"/v2/document/{old['document_id']}", secret).status == 404


def test_what_cannot_be_removed_makes_no_room_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same job was dropped for ever, while the lock of the folder was held."""
    stored, shares = Jobs(tmp_path), Shares(("",))
    monkeypatch.setattr(jobs, "MOST_JOBS", 2)
    for number in range(2):
        job = Job(f"{number:032x}", "a.txt", "", "", time.time(), status="error")
        stored.create(job, b"the dog", shares)
    monkeypatch.setattr(jobs.shutil, "rmtree", lambda *_, **__: None)  # a disk that has become read-only
    with pytest.raises(BusyError):
        stored.create(Job("f" * 32, "a.txt", "", "", time.time()), b"the dog", shares)
    assert len(list(tmp_path.glob("*/job.json"))) == 2


def test_a_file_that_may_not_be_so_large_costs_nobody_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All documents that were fetched were dropped, of every key, and none of them made room."""
    stored, shares = Jobs(tmp_path), Shares(("ann", "bob"))
    stored.create(Job("a" * 32, "a.txt", "", "", time.time(), status="error", owner="bob"), b"the dog", shares)

    def refuse(path: Path, content: bytes) -> None:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))

    monkeypatch.setattr(jobs, "write_bytes", refuse)
    with pytest.raises(FullError):
        stored.create(Job("b" * 32, "a.txt", "", "", time.time(), owner="ann"), b"the dog", shares)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["a" * 32]


def test_room_is_reserved_where_the_system_cannot_allocate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    storage.reserve(tmp_path / "room", storage.BLOCK + 7)
    assert (tmp_path / "room").stat().st_size == storage.BLOCK + 7
    storage.fill(tmp_path / "room", tmp_path / "result", b"short")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("result", b"short")]
    assert storage.has_room(tmp_path, 1)
    assert not storage.has_room(tmp_path, 1 << 60)


def test_a_translation_that_is_longer_than_its_room_ends_with_the_truth(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(documents=tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(jobs, "fill", full)
    made = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE", source_lang="EN").json
    status = done(server, made)
    assert (status["status"], status["error_message"]) == ("error", FULL)
    reply = server(f"/v2/document/{made['document_id']}/result", {"document_key": made["document_key"]})
    assert (reply.status, reply.json) == (400, {"message": FULL})


def test_what_a_killed_server_left_goes_at_the_start_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, temporary = tmp_path / "d", tmp_path / "t"
    for name in ("0" * 32, "1" * 32):
        (folder / name).mkdir(parents=True)
    (folder / ("0" * 32) / "job.json").write_text("{")  # may be repaired
    (folder / ("1" * 32) / ".job.json.01234567.tmp").write_text("{")
    monkeypatch.setattr(
        jobs, "time", SimpleNamespace(time=lambda: time.time() + jobs.LOST_S + 1, monotonic=time.monotonic)
    )
    monkeypatch.setattr(Jobs, "now", lambda _: jobs.time.time())  # the files' clock goes on as much
    Jobs(folder)
    assert [path.name for path in folder.iterdir()] == ["0" * 32]
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    live = Jobs(None)
    assert live.folder.parent == temporary
    (temporary / f"{jobs.TEMPORARY}dead" / ("2" * 32)).mkdir(parents=True)
    (temporary / "other").mkdir()
    Jobs(None)
    assert {path.name for path in temporary.iterdir()} == {live.folder.name, "other"}
    live.close()
    assert [path.name for path in temporary.iterdir()] == ["other"]


def test_a_server_keeps_its_temporary_folder_though_its_lock_file_was_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    live = Jobs(None)
    live.create(Job("0" * 32, "a.txt", "", "en-de", time.time()), b"the dog", Shares(("",)))
    (live.folder / jobs.SERVER).unlink()  # as a program does that deletes what nobody has touched for days
    Jobs(None)
    assert live.read("0" * 32) is not None
    live.close()


def test_a_disk_without_room_is_not_ready_and_the_server_is(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(documents=tmp_path / "d", glossaries=tmp_path / "g")
    assert (server("/readyz/storage").status, server("/readyz/storage").body) == (200, b"ok")
    disk = Disk(tmp_path / "d", monkeypatch)
    disk.fill(0)
    reply = server("/readyz/storage")
    assert (reply.status, reply.body) == (503, b"no room for documents")
    assert server("/readyz").status == 200
    assert 'dragoman_storage_has_room{what="documents"} 0.0' in server("/metrics").body.decode()
    assert server("/v1/translate", {"text": "the dog"}).status == 200
    assert json.loads(server("/v2/glossaries", TERMS).body)["ready"]


def test_another_reason_than_a_full_disk_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not storage.has_room(tmp_path / "gone", 1)
    assert caplog.messages == [f"{tmp_path}/gone: nothing can be stored there now: No such file or directory"]
    assert not storage.has_room(tmp_path, 1 << 60)
    assert len(caplog.messages) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which file a descriptor is of")
def test_an_error_of_closing_files_is_that_of_a_full_disk_and_leaves_no_file(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS reports a quota that is used up when a file is closed: an upload was 500, with a traceback."""
    server = serving(documents=tmp_path / "d")
    close = os.close

    def closed(descriptor: int) -> None:
        where = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        close(descriptor)
        if where.startswith(str(tmp_path)):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed)
        assert upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").status == 507
    assert [*(tmp_path / "d").glob("*/*")] == []
    made = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    assert done(server, made)["status"] == "done"


def test_a_server_whose_folder_for_temporary_files_is_gone_says_so_and_works_once_it_is_back(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Uploads, ``/metrics`` and ``/readyz/storage`` were 500, with tracebacks."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    server = serving()
    for n_before in range(2):  # documents
        if n_before:
            made = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
            assert done(server, made)["status"] == "done"
            wait_until(lambda: not server.state.documents.tasks)
        shutil.rmtree(tmp_path / "tmp")
        caplog.clear()
        reply = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE")
        assert (reply.status, reply.json["message"]) == (503, "the server cannot store this now: try again later")
        assert str(tmp_path / "tmp") in caplog.text
        assert server("/readyz/storage").body == b"no room for documents"
        assert 'dragoman_storage_has_room{what="documents"} 0.0' in server("/metrics").body.decode()
        assert server("/v1/translate", {"text": "the dog"}).status == 200
        if n_before:
            fields = {"document_key": made["document_key"]}
            assert server(f"/v2/document/{made['document_id']}", fields).status == 404  # it went too
        (tmp_path / "tmp").mkdir()
        assert server("/readyz/storage").body == b"ok"
    assert "Traceback" not in caplog.text


def test_first_uploads_that_come_together_share_one_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    make = tempfile.mkdtemp

    def make_slowly(**options: Any) -> str:
        time.sleep(0.05)
        return make(**options)

    jobs = Jobs(None)
    monkeypatch.setattr(tempfile, "mkdtemp", make_slowly)
    with ThreadPoolExecutor(8) as pool:
        folders = {future.result() for future in [pool.submit(lambda: jobs.folder) for _ in range(8)]}
    jobs.close()
    assert len(folders) == 1


def test_other_users_of_the_machine_read_nothing_that_clients_store(
    serving: Callable[..., Any], tmp_path: Path
) -> None:
    """A folder that the server makes is its own; below one that others may read, the jobs are."""
    there = tmp_path / "documents"
    there.mkdir(mode=0o755)
    there.chmod(0o755)
    server = serving(documents=there, glossaries=tmp_path / "glossaries")
    assert (tmp_path / "glossaries").stat().st_mode & 0o777 == 0o700
    stored = server.state.documents.jobs
    job = Job("0" * 32, "a.txt", "", "en-de", time.time())
    stored.create(job, b"secret", Shares(("",)))
    assert stored.path(job.id).stat().st_mode & 0o007 == 0
