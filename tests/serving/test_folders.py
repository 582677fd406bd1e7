"""Folders of a server that others use too: a slow disk, a lock that somebody holds, links and pipes in place of files.

And what is scarce besides the disk: threads, processes, the time of a worker.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch
from test_documents import done, upload

from dragoman.documents.document import DocumentInfo
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.serving import glossaries, helpers, jobs, pieces, server, storage
from dragoman.serving.delivery import Delivery
from dragoman.serving.glossaries import Dictionary, Glossaries
from dragoman.serving.jobs import Job, Jobs
from dragoman.serving.limits import Shares
from dragoman.serving.parsing import Finished
from dragoman.serving.pieces import Pieces
from dragoman.serving.refusals import BusyError, UnknownError, UnstorableError
from limits import LONG_S, wait_until

DICTIONARY = {"source_lang": "en", "target_lang": "de", "entries": "dog\thund", "entries_format": "tsv"}
TERMS = {"name": "g", **DICTIONARY}
SECRET = "a line of a file that no client may see"
EVENTS = (
    "open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.utime",
    "os.truncate", "shutil.rmtree",
)  # fmt: skip
"""Events of Python's audit that tell of work on a disk."""


def in_event_loop() -> bool:
    """Whether this thread runs an event loop."""
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


@contextmanager
def on_disk(folder: Path) -> Iterator[dict[bool, list[str]]]:
    """Collect what the body does with files below a folder, by whether the thread runs an event loop."""
    seen: dict[bool, list[str]] = {False: [], True: []}
    watching = True

    def note(event: str, arguments: Any) -> None:
        if watching and event in EVENTS and str(folder) in str(arguments[0]):
            seen[in_event_loop()].append(f"{event} {arguments[0]}")

    sys.addaudithook(note)  # cannot be taken away again, hence the flag
    try:
        yield seen
    finally:
        watching = False


def test_S20_the_event_loop_waits_for_no_disk(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    """A disk may take seconds for each file, or never answer."""
    monkeypatch.setattr(pieces, "IN_MEMORY", 3)
    live = serving(documents=tmp_path / "d", glossaries=tmp_path / "g")
    with on_disk(tmp_path) as seen:
        stored = live("/v3/glossaries", {"name": "g", "dictionaries": [DICTIONARY]}).json["glossary_id"]
        path = f"/v3/glossaries/{stored}"
        for method, route, fields in (
            ("GET", "/v3/glossaries", None), ("GET", "/v2/glossaries", None), ("GET", path, None),
            ("GET", f"/v2/glossaries/{stored}/entries", None), ("PATCH", path, {"name": "h"}),
            ("PUT", f"{path}/dictionaries", DICTIONARY), ("GET", "/readyz/storage", None), ("GET", "/metrics", None),
            ("POST", "/v2/translate", {"text": ["the dog"], "source_lang": "EN", "target_lang": "DE",
                                       "glossary_id": stored}),
        ):  # fmt: skip
            assert live(route, fields, method=method).status == 200, route
        made = upload(live, "/v2/document", "a.txt", b"the dog\na cat", target_lang="DE", source_lang="EN",
                      glossary_id=stored).json  # fmt: skip
        assert done(live, made)["status"] == "done"
        secret = {"document_key": made["document_key"]}
        assert live(f"/v2/document/{made['document_id']}/result", secret).status == 200
        url = upload(live, "/translate_file", "a.txt", b"the dog", target="de").json["translatedFileUrl"]
        assert live(url.removeprefix(live.url)).status == 200
        assert live(path, method="DELETE").status == 204
        wait_until(lambda: not live.state.documents.tasks)
    assert len(seen[False]) > 40
    assert seen[True] == []
    figure("S20", f"{len(seen[False])} operations of a disk, {len(seen[True])} of them in the event loop")


def test_a_lock_that_another_program_holds_stops_changes_alone(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may read a folder can lock it: that takes no thread which other requests need."""
    monkeypatch.setattr(jobs, "LOCK_S", LONG_S)
    monkeypatch.setattr(glossaries, "LOCK_S", LONG_S)
    live = serving(documents=tmp_path / "d", glossaries=tmp_path / "g")
    stored = live("/v2/glossaries", TERMS).json["glossary_id"]
    fields = {"target_lang": "DE", "source_lang": "EN"}
    made = upload(live, "/v2/document", "a.txt", b"the dog", **fields).json
    assert done(live, made)["status"] == "done"
    held = [os.open(tmp_path / name, os.O_RDONLY) for name in "dg"]
    for folder in held:
        fcntl.flock(folder, fcntl.LOCK_EX)
    n = 10
    with ThreadPoolExecutor(2 * n) as clients:
        waiting = [clients.submit(upload, live, "/v2/document", "a.txt", b"a cat", **fields) for _ in range(n)]
        waiting += [clients.submit(live, "/v2/glossaries", TERMS) for _ in range(n)]
        wait_until(lambda: len(live.state.documents.jobs.under_way) == n)
        long = {"text": "the dog", "source": "en", "glossary": {f"t{i}": "x" * 50 for i in range(2000)}}
        for path, data in (("/metrics", None), ("/readyz/storage", None), (f"/v2/glossaries/{stored}", None),
                           ("/v2/glossaries", None), ("/v1/translate", long)):  # fmt: skip
            assert live(path, data).status == 200, path
        secret = {"document_key": made["document_key"]}
        assert live(f"/v2/document/{made['document_id']}/result", secret).status == 200
        assert not any(client.done() for client in waiting)
        for folder in held:
            os.close(folder)
        assert [client.result().status for client in waiting] == [200] * n + [201] * n


def test_a_lock_that_is_held_too_long_is_a_refusal(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "LOCK_S", 0.0)
    monkeypatch.setattr(glossaries, "LOCK_S", 0.0)
    live = serving(documents=tmp_path, glossaries=tmp_path)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    replies = [upload(live, "/v2/document", "a.txt", b"a cat", target_lang="DE"), live("/v2/glossaries", TERMS)]
    assert [(reply.status, reply.headers["retry-after"]) for reply in replies] == [(503, "30")] * 2
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DragomanError, match="another program has locked it"):
        Jobs(tmp_path)
    os.close(held)
    assert live("/v2/glossaries", TERMS).status == 201


def test_few_changes_of_a_key_wait_for_the_disk(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that waits keeps a connection."""
    monkeypatch.setattr(glossaries, "LOCK_S", LONG_S)
    monkeypatch.setattr(storage, "MOST_CHANGES", 2)
    live = serving(glossaries=tmp_path)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with ThreadPoolExecutor(3) as clients:
        waiting = [clients.submit(live, "/v2/glossaries", TERMS) for _ in range(3)]
        wait_until(lambda: live.state.glossaries.disk.turns.n_waiting("") == 2)
        assert live("/v2/glossaries", TERMS).status == 429
        os.close(held)
        assert [client.result().status for client in waiting] == [201] * 3


def link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def dangling(path: Path, secret: Path) -> None:
    path.symlink_to(secret.with_name("new"))


def pipe(path: Path, secret: Path) -> None:
    os.mkfifo(path)


def local_socket(path: Path, secret: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # a name of a socket has at most 108 bytes
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def folder(path: Path, secret: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("put", [link, dangling, pipe, local_socket, folder])
@pytest.mark.parametrize("name", ["job.json", "source", "room", "pieces", "result"])
def test_what_stands_in_the_place_of_a_file_of_a_job_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path, Path], None], name: str
) -> None:
    """Nothing waits for it, nothing is read or written where a link leads, and other jobs go on."""
    monkeypatch.setattr(pieces, "IN_MEMORY", 3)
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(SECRET))
    stored, job, other = Jobs(tmp_path / "d"), Job("0" * 32, "a.txt", "", "en-de", 1.0), Job("1" * 32, "b", "", "", 2.0)
    for own in (job, other):
        stored.create(own, b"the dog", Shares(("",)))
        stored.under_way.add(own.id)
    path = stored.path(job.id) / name
    path.unlink(missing_ok=True)
    put(path, secret)
    seen: list[object] = []

    def use() -> None:
        seen.append(stored.read(job.id))
        for work in (
            lambda: seen.append(stored.source(job)),
            lambda: Pieces.of(["the dog", "a cat"], stored.pieces(job), 100, "en").window(),
            lambda: stored.fill(job, b"der hund"),
            lambda: Delivery(stored, job),
        ):
            with suppress(DragomanError):
                work()
        seen.append(stored.read(other.id))
        stored.create(Job("2" * 32, "c", "", "", 3.0), b"a cat", Shares(("",)))
        stored.end(job)

    using = threading.Thread(target=use, daemon=True)
    using.start()
    using.join(LONG_S)
    assert not using.is_alive()
    assert getattr(seen[-1], "id", None) == other.id
    assert SECRET not in str(seen)
    assert secret.read_text() == json.dumps(SECRET)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "secret"]
    stored.close()


def test_a_result_that_is_a_link_is_not_fetched(tmp_path: Path) -> None:
    stored, job = Jobs(tmp_path / "d"), Job("0" * 32, "a.txt", "", "en-de", 1.0)
    stored.create(job, b"the dog", Shares(("",)))
    stored.result(job).symlink_to("/etc/passwd")
    with pytest.raises(UnknownError):
        Delivery(stored, job)


CALLS = ("open", "fsync", "replace", "unlink", "stat")
"""Calls of a disk, all but reading and writing, which pathlib and the server make through the module ``os``."""


class Failing:
    """Lets a call below a job fail, or all from it on; sees whether a client could be told before that it is done."""

    def __init__(self, patch: pytest.MonkeyPatch, job: Path, n: int, error: int, lasting: bool) -> None:
        self.job, self.n, self.error, self.lasting = job, n, error, lasting
        self.calls, self.failed, self.told = 0, False, False
        for name in CALLS:
            patch.setattr(os, name, self._meeting(getattr(os, name)))

    def _meeting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(what: Any, *rest: Any, **more: Any) -> Any:
            path = str(Path(f"/proc/self/fd/{what}").readlink() if isinstance(what, int) else what)
            if path.startswith(str(self.job)):
                self.told = self.told or b'"status": "done"' in (self.job / "job.json").read_bytes()
                self.calls += 1
                if self.calls == self.n or (self.lasting and self.calls > self.n):
                    self.failed = True
                    raise OSError(self.error, os.strerror(self.error), path)
            return real(what, *rest, **more)

        return call


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux")
@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE, errno.ENOSPC])
def test_S25_a_document_that_was_reported_done_stays_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any, error: int, lasting: bool
) -> None:
    """Its state became an error, and the translation was deleted, where a later call failed."""
    monkeypatch.setattr(storage, "AGAIN_S", (0.0, 0.0), raising=False)
    n_told = 0
    for n in count(1):
        stored, job = Jobs(tmp_path / f"{n}"), Job("0" * 32, "a.txt", "", "en-de", 1.0, status="translating")
        stored.create(job, b"the dog", Shares(("",)))
        stored.fill(job, b"der hund")
        with monkeypatch.context() as patch:
            failing = Failing(patch, stored.path(job.id), n, error, lasting)
            stored.end(replace(job, status="done"))
        if not failing.failed:
            break
        n_told += failing.told
        if failing.told or error != errno.ENOSPC:  # a full disk is the one reason to give a translation up
            states = stored.read(job.id), Jobs(tmp_path / f"{n}").read(job.id)
            assert [state and state.status for state in states] == ["done", "done"], failing.calls
            assert stored.result(job).read_bytes() == b"der hund"
    assert n > 8
    assert n_told > 1
    figure(
        "S25", f"{os.strerror(error)} at each of {n - 1} calls{' and all later ones' if lasting else ''}: stays done"
    )


def test_a_job_that_cannot_be_looked_at_now_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, job = Jobs(tmp_path), Job("0" * 32, "a.txt", "", "en-de", 1.0)
    stored.create(job, b"the dog", Shares(("",)))
    Failing(monkeypatch, stored.path(job.id), 1, errno.EIO, lasting=False)
    with pytest.raises(UnstorableError):
        stored.keep(job)
    stored.keep(replace(job, status="translating"))
    assert getattr(stored.read(job.id), "status", None) == "translating"


def broken_disk(path: Path) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))


async def file_that_cannot_be_opened(path: Path, **_: str) -> Any:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))


async def file_that_cannot_be_read(path: Path, mode: str, open_file: Any = anyio.open_file) -> Any:
    return await open_file("/proc/self/mem", mode)  # an EIO at its beginning


async def file_that_is_gone(path: Path, **_: str) -> Any:
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_translation_that_cannot_be_read_now_is_a_refusal_from_its_first_line(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 500, or a 200 that broke off."""
    server = serving(documents=tmp_path)
    made = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    assert done(server, made)["status"] == "done"
    address, secret = f"/v2/document/{made['document_id']}/result", {"document_key": made["document_key"]}
    for broken, status in (
        (file_that_cannot_be_opened, 503), (file_that_cannot_be_read, 503), (file_that_is_gone, 404)
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(anyio, "open_file", broken)
            reply = server(address, secret)
        assert (reply.status, reply.headers.get("retry-after")) == (status, "30" if status == 503 else None)
        assert str(tmp_path) not in reply.body.decode()
        assert "content-disposition" not in reply.headers
    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", broken_disk)
        assert server(address, secret).status == 503
    assert server(address, secret).status == 200


def test_a_glossary_that_was_refused_is_not_stored(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, write = serving(glossaries=tmp_path), glossaries.write_text

    def write_then_fail(path: Path, text: str) -> None:
        write(path, text)
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(glossaries, "write_text", write_then_fail)
        assert server("/v2/glossaries", TERMS).status == 503
    assert server("/v2/glossaries").json["glossaries"] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("put", [link, dangling, pipe, local_socket, folder])
def test_what_stands_in_the_place_of_a_glossary_is_none(tmp_path: Path, put: Callable[[Path, Path], None]) -> None:
    secret = tmp_path / "secret"
    stored = Glossaries(tmp_path / "g")
    kept, gone = (stored.add("", name, [Dictionary("en", "de", {"dog": "Hund"})]) for name in "ab")
    path = tmp_path / "g" / f"{gone.id}.json"
    path.rename(secret)
    put(path, secret)
    using = ThreadPoolExecutor(1)
    for known in (stored, Glossaries(tmp_path / "g")):
        assert [own.id for own in using.submit(known.list, "").result(LONG_S)] == [kept.id]
        with pytest.raises(UnknownError):
            using.submit(known.get, gone.id, "").result(LONG_S)


@pytest.mark.parametrize(
    "changed",
    [
        {"dictionaries": [{"src": "en", "tgt": "de", "entries": ["dog"]}]}, {"dictionaries": {}}, {"name": 1},
        {"dictionaries": [{"src": "en", "tgt": "de", "entries": {"dog": 1}}]}, {"owner": ["a"]}, {"created": None},
    ],
)  # fmt: skip
def test_a_glossary_whose_file_was_edited_hides_itself_and_is_named_at_the_start(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    stored = Glossaries(tmp_path)
    made = stored.add("", "secret name", [Dictionary("en", "de", {"dog": "Hund"})])
    path = tmp_path / f"{made.id}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"later": 1}))
    assert stored.get(made.id, "") == Glossaries(tmp_path).get(made.id, "") == made
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    assert stored.list("") == []
    with pytest.raises(UnknownError):
        stored.get(made.id, "")
    with pytest.raises(ConfigError, match=r"not a glossary of this server \(.*\); repair or delete it") as refused:
        Glossaries(tmp_path)
    assert "dog" not in str(refused.value)
    assert "secret" not in str(refused.value).replace(str(tmp_path), "")


def test_other_files_in_the_folder_of_glossaries_are_none(tmp_path: Path) -> None:
    """A folder that was mistyped may hold anything, such as a run with its manifest."""
    (tmp_path / "manifest.json").write_text("{}")
    assert Glossaries(tmp_path).list("") == []


def test_a_file_that_cannot_be_opened_now_is_not_taken_for_gone(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glossaries, "MOST_READ_BYTES", 1)  # the newest alone stays in memory
    live = serving(documents=tmp_path / "d", glossaries=tmp_path / "g")
    _, stored = (live("/v2/glossaries", TERMS).json["glossary_id"] for _ in range(2))
    made = upload(live, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    assert done(live, made)["status"] == "done"
    wait_until(lambda: not live.state.documents.tasks)

    def no_more_files(path: Path, **_: bool) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    monkeypatch.setattr(storage, "opened", no_more_files)
    secret = {"document_key": made["document_key"]}
    replies = live(f"/v2/document/{made['document_id']}", secret), live(f"/v2/glossaries/{stored}")
    assert [reply.status for reply in replies] == [503, 503]
    assert str(tmp_path) not in str([reply.body for reply in replies])


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux")
@pytest.mark.parametrize("store", [Jobs, Glossaries])
def test_a_folder_where_nothing_can_be_stored_is_refused_at_the_start(store: Any) -> None:
    with pytest.raises(DragomanError, match="/proc/self: cannot be written"):
        store(Path("/proc/self"))


def test_a_folder_where_every_user_may_write_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o777)
    Jobs(tmp_path)
    assert "every user of this machine may write there" in caplog.text


# --- no more threads and processes ------------------------------------------------------------------------------------


def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)


def test_where_the_system_gives_no_more_threads_requests_are_told_to_come_again(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = serving(documents=tmp_path / "d", glossaries=tmp_path / "g")
    no_threads(monkeypatch)
    later = live("/v1/languages")  # Starlette starts a thread for it
    assert (later.status, later.headers["retry-after"]) == (429, "10")
    stored = live("/v2/glossaries", TERMS)
    assert stored.status == 201
    texts = {"text": "the dog " * 300, "source": "en"}  # prepared by a helper
    for path, data in (("/livez", None), ("/v1/translate", texts), ("/v2/glossaries", None), ("/readyz/storage", None)):
        assert live(path, data).status == 200, path
    monkeypatch.undo()
    assert live("/v1/languages").status == 200


def test_a_server_that_gets_too_few_threads_says_so_in_one_sentence(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name in (
        (server, "bound_connections"), (server, "bound_arenas"), (torch, "set_num_threads"), (sys, "setswitchinterval"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, lambda *_: None)  # of this process
    no_threads(monkeypatch)
    with pytest.raises(ConfigError, match="the system gives this process too few threads"):
        server.serve([tiny_run], port=0)


def test_a_pool_that_cannot_start_keeps_no_thread() -> None:
    began: list[threading.Thread] = []
    start = threading.Thread.start

    def third_fails(thread: threading.Thread) -> None:
        if len(began) == 2:
            raise RuntimeError("can't start new thread")
        began.append(thread)
        start(thread)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", third_fails)
        with pytest.raises(RuntimeError, match="can't start"):
            helpers.started(4, "few")
    for thread in began:
        thread.join(LONG_S)
        assert not thread.is_alive()


def test_a_translated_document_waits_for_a_process_that_writes_it(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the work of hours would be lost in a moment without processes."""
    from dragoman.serving import parsing

    tries: list[int] = []
    finish = parsing.finished

    async def busy_twice(data: bytes, info: DocumentInfo, pieces: Pieces, owner: str) -> Finished:
        tries.append(1)
        if len(tries) < 3:
            raise BusyError(0.0)
        return await finish(data, info, pieces, owner)

    monkeypatch.setattr(parsing, "finished", busy_twice)
    live = serving()
    made = upload(live, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    assert (done(live, made)["status"], len(tries)) == ("done", 3)


def test_an_archive_that_is_packed_to_almost_nothing_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import zipfile

    from dragoman.documents.document import DocumentOptions
    from dragoman.documents.office import package

    def archive(content: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("word/document.xml", "<a/>")
            made.writestr("word/media/a.bmp", content)
        return out.getvalue()

    monkeypatch.setattr(package, "FREE_BYTES", 1 << 16)
    info = DocumentInfo("a.docx", "en", "de", (), DocumentOptions())
    zeros, noise = archive(bytes(1 << 20)), archive(os.urandom(1 << 17))
    with pytest.raises(DataError, match=r"a.docx: unpacks to 1,048,580 bytes in 2 members: too much"):
        package.read(zeros, info)
    package.read(noise, info)
    monkeypatch.undo()
    package.read(zeros, info)
