"""Documents by the APIs: uploaded, translated in the background, fetched with what their owner knows."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import io
import json
import math
import os
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import worker_tasks
from dragoman import budget
from dragoman.budget import StoppedError, Workers
from dragoman.documents import markup
from dragoman.documents.formats import FORMATS
from dragoman.errors import DataError
from dragoman.serving import documents as of_server
from dragoman.serving import jobs, parsing, pieces
from dragoman.serving.limits import Shares
from dragoman.serving.refusals import ClientLeft, UnfinishedError
from dragoman.serving.transport import until_client_leaves
from dragoman.translation.translator import Translator
from echo_format import GIVEN, Echo
from limits import LONG_S, wait_until

PAGE = b"<title>the dog</title><p>a <b>red</b> cat</p>"


def form(name: str, content: bytes, **fields: str) -> tuple[bytes, str]:
    """A form with a file, as clients send it."""
    parts = [
        f'--part\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
        for field, value in fields.items()
    ]
    head = f'--part\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return b"".join([*parts, head, content, b"\r\n--part--\r\n"]), "multipart/form-data; boundary=part"


def upload(
    server: Any, path: str, name: str, content: bytes, headers: dict[str, str] | None = None, **fields: str
) -> Any:
    body, kind = form(name, content, **fields)
    return server(path, body, content_type=kind, **(headers or {}))


def done(server: Any, made: Any) -> Any:
    """The last status of a document."""
    status: dict[str, Any] = {}

    def is_over() -> bool:
        status.update(server(f"/v2/document/{made['document_id']}", {"document_key": made["document_key"]}).json)
        assert status["status"] in ("queued", "translating", "done", "error")
        return status["status"] in ("done", "error")

    wait_until(is_over)
    return status


def test_deepls_three_steps(live: Any, served: Translator) -> None:
    made = upload(live, "/v2/document", "a.html", PAGE, target_lang="DE", source_lang="EN").json
    status = done(live, made)
    assert status["status"] == "done"
    assert status["billed_characters"] == len("the dog") + len("a red cat")
    assert status["segments"] == {"found": 2, "translated": 2, "left": []}
    reply = live(f"/v2/document/{made['document_id']}/result", form={"document_key": made["document_key"]})
    assert reply.headers["content-disposition"] == 'attachment; filename="a.html"'
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.body.startswith(f"<title>{served.translate('the dog').text}</title><p>".encode())
    assert reply.body.count(b"<b>") == reply.body.count(b"</b>") == 1


def test_libretranslates_file(live: Any, served: Translator) -> None:
    reply = upload(live, "/translate_file", "../my file.txt", b"the dog\n\na cat", source="en", target="de")
    url = reply.json["translatedFileUrl"]
    assert url.startswith(live.url + "/download_file/")
    assert url.endswith("my%20file.txt")
    fetched = live(url.removeprefix(live.url))
    assert fetched.headers["cache-control"] == "private, no-store"  # a proxy's cache would give it to others
    assert fetched.body.decode() == "\n".join(each.text for each in served.translate(["the dog", "", "a cat"]))
    settings = live("/frontend/settings").json
    assert settings["filesTranslation"] is True
    assert ".docx" in settings["supportedFilesFormat"]


def test_a_text_in_a_file_is_translated_as_in_the_box(live: Any) -> None:
    text = "the red dog sees a big house"
    url = upload(live, "/translate_file", "a.md", f"# {text}\n".encode(), source="auto", target="de").json[
        "translatedFileUrl"
    ]
    in_box = live("/translate", {"q": text, "source": "en", "target": "de"}).json["translatedText"]
    assert live(url.removeprefix(live.url)).body.decode() == f"# {in_box}\n"


def test_the_columns_of_a_table(live: Any, served: Translator) -> None:
    table = b"id,name,said\n1,the cat,the dog\n2,a tree,a red cat\n"
    dog, cat = (each.text for each in served.translate(["the dog", "a red cat"]))
    made = upload(live, "/v2/document", "a.csv", table, target_lang="DE", source_lang="EN", column="said").json
    assert done(live, made)["segments"] == {"found": 2, "translated": 2, "left": []}
    reply = live(f"/v2/document/{made['document_id']}/result", {"document_key": made["document_key"]})
    assert reply.body.decode() == f"id,name,said\n1,the cat,{dog}\n2,a tree,{cat}\n"
    for column in ("?column=name&column=said", ""):  # several; and a table of one column needs no name
        content = table if column else b"said\nthe dog\n"
        url = upload(live, f"/translate_file{column}", "a.csv", content, source="en", target="de").json[
            "translatedFileUrl"
        ]
        body = live(url.removeprefix(live.url)).body.decode()
        assert dog in body
        assert ("the cat" in body) == (not column and "the cat" in dog)
    assert ".csv" in live("/frontend/settings").json["supportedFilesFormat"]


def test_a_glossary_binds_documents_too(live: Any) -> None:
    entries = {"name": "g", "source_lang": "en", "target_lang": "de", "entries": "dog\tbaum", "entries_format": "tsv"}
    id_ = live("/v2/glossaries", entries).json["glossary_id"]
    made = upload(live, "/v2/document", "a.txt", b"the dog", target_lang="DE", source_lang="EN", glossary_id=id_).json
    assert done(live, made)["status"] == "done"
    reply = live(f"/v2/document/{made['document_id']}/result", {"document_key": made["document_key"]})
    assert b"baum" in reply.body.split()


@pytest.mark.parametrize(
    ("path", "name", "content", "fields", "status", "said"),
    [
        ("/v2/document", "a.docx", b"no zip", {"target_lang": "DE"}, 400, "not a .docx"),
        ("/v2/document", "a.exe", b"MZ", {"target_lang": "DE"}, 400, "is neither plain text nor a supported document"),
        ("/v2/document", "a.csv", b"a,b\n", {"target_lang": "DE"}, 400, "there are a, b"),
        ("/translate_file", "a.csv", b"a,b\n", {"target": "de", "column": "c"}, 400, "no columns have the heading 'c'"),
        ("/v2/document", "..", b"x", {"target_lang": "DE"}, 400, "no file name"),
        ("/v2/document", "a.txt", b"x", {}, 400, "target_lang"),
        ("/v2/document", "a.txt", b"the dog", {"target_lang": "FR"}, 400, "FR"),
        ("/v2/document", "a.txt", b"the dog", {"target_lang": "DE", "formality": "more"}, 400, "formality"),
        ("/v2/document", "a.txt", b"the dog", {"target_lang": "DE", "output_format": "pdf"}, 400, "output_format"),
        ("/v2/document", "a.txt", b"x", {"target_lang": "DE", "source_lang": "EN", "glossary_id": "no"}, 404, "found"),
        ("/v2/document", "a.txt", b"x", {"target_lang": "DE", "source_lang": "auto", "glossary_id": "no"}, 400,
         "needs 'source_lang'"),
        ("/translate_file", "a.txt", b"the dog", {}, 400, "target"),
        ("/translate_file", "a.txt", b"\xff\xfe\xfd", {"target": "de"}, 400, "UTF-16"),
    ],
)  # fmt: skip
def test_refusals(
    live: Any, path: str, name: str, content: bytes, fields: dict[str, str], status: int, said: str
) -> None:
    reply = upload(live, path, name, content, **fields)
    assert reply.status == status
    assert said in json.dumps(reply.json)
    assert not live.state.documents.tasks


MUCH = 65_537
"""More characters than the fields beside a file may have."""


@pytest.mark.parametrize(("path", "language"), [("/v2/document", "target_lang"), ("/translate_file", "target")])
@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("", {"column": "c" * MUCH}),
        ("", {"source_lang": "\u4e2d" * MUCH}),
        ("", {"x" * 100 + str(i): "y" * 4000 for i in range(18)}),
        (f"?column={'c' * 5_000}", {"column": "c" * (MUCH - 5_000)}),
    ],
)
def test_S30_the_fields_beside_a_file_are_short(
    live: Any, path: str, language: str, query: str, fields: dict[str, str], figure: Callable[[str, str], None]
) -> None:
    reply = upload(live, path + query, "a.csv", b"c\nthe dog\n", **{language: "de"}, **fields)
    assert reply.status == 400
    figure("S30", f"fields of {MUCH:,} characters beside a file: {reply.status}")
    assert "the fields beside the file may have at most 65,536 characters together, got " in reply.body.decode()
    assert not live.state.documents.tasks


def test_a_column_that_is_named_twice_is_stored_once_and_read_for_its_owner_alone(live: Any) -> None:
    table, path = b"id,said\n1,the dog\n", "/v2/document?column=said&column=said&column=id&column=said"
    made = upload(live, path, "a.csv", table, target_lang="DE", source_lang="EN").json
    assert done(live, made)["status"] == "done"
    stored = live.state.documents.jobs
    assert stored.read(made["document_id"]).columns == ["said", "id"]


def test_without_a_file(live: Any) -> None:
    for path in ("/v2/document", "/translate_file"):
        reply = live(path, {"target": "de", "target_lang": "DE"})
        assert reply.status == 400
        assert "the file is missing" in json.dumps(reply.json)


def test_only_the_owner_has_a_document(live: Any) -> None:
    made = upload(live, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    done(live, made)
    id_ = made["document_id"]
    for wrong, secret in ((id_, "other"), ("0" * 32, made["document_key"]), ("..%2f..", "x"), (id_, "")):
        for route in ("", "/result"):
            assert live(f"/v2/document/{wrong}{route}", {"document_key": secret}).status == 404
    assert live(f"/download_file/{made['document_id']}.a.txt").status == 404
    assert live("/download_file/..%2f..%2fetc%2fpasswd").status == 404


def test_a_larger_body_for_documents_alone(serving: Callable[..., Any]) -> None:
    server = serving(max_body=1000, max_document=5000)
    long = b"the dog\n" * 200
    assert upload(server, "/translate_file", "a.txt", long, target="de", source="en").status == 200
    assert upload(server, "/translate_file", "a.txt", long * 4, target="de", source="en").status == 413
    assert server("/translate", {"q": "the dog " * 200, "target": "de"}).status == 413


def test_a_key_is_needed_where_there_are_keys(serving: Callable[..., Any], tmp_path: Path) -> None:
    from dragoman.serving.keys import make_key

    key = make_key(tmp_path / "keys", "me")
    server = serving(keys=tmp_path / "keys")
    assert upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").status == 403
    assert upload(server, "/translate_file", "a.txt", b"the dog", target="de").status == 400
    assert upload(server, "/translate_file", "a.txt", b"the dog", target="de", source="en", api_key=key).status == 200


def test_documents_survive_a_restart_and_lost_ones_are_named(serving: Callable[..., Any], tmp_path: Path) -> None:
    first = serving(documents=tmp_path)
    made = upload(first, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    done(first, made)
    second = serving(documents=tmp_path)
    assert done(second, made)["status"] == "done"
    job = tmp_path / made["document_id"] / "job.json"
    stopped = json.loads(job.read_text()) | {"status": "translating"}
    job.write_text(json.dumps(stopped))
    assert (
        second(f"/v2/document/{made['document_id']}", {"document_key": made["document_key"]}).json["status"]
        == "translating"
    )
    os.utime(job, (1, 1))
    assert "upload the document again" in done(second, made)["error_message"]


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_a_document_that_a_server_did_not_finish_is_said_to_be_lost_at_once(
    seconds: float, serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the server ends while a slow disk writes the state before."""

    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    def keep(job: jobs.Job) -> None:
        if job.status != "translating":
            kept(job)
            return
        begun.set()
        time.sleep(seconds)
        kept(job)
        written.set()

    first, begun, written = serving(documents=tmp_path), threading.Event(), threading.Event()
    kept = first.state.documents.jobs.keep
    monkeypatch.setattr(first.state.documents.jobs, "keep", keep)
    monkeypatch.setattr(first.state.service, "translate", never)
    made = upload(first, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    (task,) = first.state.documents.tasks.values()
    assert begun.wait(LONG_S)
    asyncio.run_coroutine_threadsafe(first.state.documents.close(), task.get_loop()).result(LONG_S)
    assert written.wait(LONG_S)
    asked = {"document_key": made["document_key"]}
    status = serving(documents=tmp_path)(f"/v2/document/{made['document_id']}", asked).json
    assert (status["status"], status["error_message"]) == ("error", jobs.STOPPED)


def test_documents_expire_and_are_bounded(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(documents=tmp_path)
    made = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    done(server, made)
    monkeypatch.setattr(jobs, "MOST_JOBS", 1)
    full = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE")
    assert full.status == 429
    assert int(full.headers["retry-after"]) > 0
    job = tmp_path / made["document_id"] / "job.json"
    job.write_text(json.dumps(json.loads(job.read_text()) | {"created": 0}))
    assert server(f"/v2/document/{made['document_id']}", {"document_key": made["document_key"]}).status == 404
    assert upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").status == 200
    assert not job.exists()


JOB = jobs.Job("a" * 32, "a.txt", "", "en-de", 0.0)


def test_no_step_of_the_clock_ends_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, real_ages, steps, passed = time.time, time.monotonic, [0.0], [0.0]
    # The clocks of this module alone: the event loop of another test's server would sleep for the hours that pass here.
    clocks = SimpleNamespace(time=lambda: real() + steps[0] + passed[0], monotonic=lambda: real_ages() + passed[0])
    monkeypatch.setattr(jobs, "time", clocks)
    stored, shares = jobs.Jobs(tmp_path), Shares(("",))

    def add(letter: str, status: str) -> jobs.Job:
        job = replace(JOB, id=letter * 32, created=clocks.time())
        stored.under_way.add(job.id)
        stored.create(job, b"the dog", shares)
        if status:
            stored.end(replace(job, status=status))
        return job

    works, ended = add("a", ""), add("b", "done")
    for step in (2 * jobs.LIFETIME_S, -2 * jobs.LIFETIME_S):
        steps[0] += step
        add("c" if step > 0 else "d", "done")  # deletes what has expired
        assert stored.read(works.id)
        assert stored.read(ended.id)
        assert not stored.is_lost(works)
    passed[0] = jobs.LIFETIME_S + 1
    assert stored.read(ended.id) is None
    assert stored.read(works.id)  # it is still translated, and is kept for an hour after that
    stored.end(replace(works, status="done"))
    assert stored.read(works.id)
    passed[0] *= 2
    assert stored.read(works.id) is None


@pytest.mark.parametrize("hours", [-2, 2])
def test_S31_servers_whose_clocks_differ_keep_each_others_documents(
    hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Callable[[str, str], None]
) -> None:
    real, ahead_s = time.time, [0.0]
    monkeypatch.setattr(jobs, "time", SimpleNamespace(time=lambda: real() + ahead_s[0], monotonic=time.monotonic))
    servers = {0: jobs.Jobs(tmp_path)}
    added = dict[str, jobs.Job]()

    def add(number: int) -> None:
        for status in ("translating", "done"):
            job = replace(JOB, id=f"{len(added):032x}", created=jobs.time.time())
            servers[number].under_way.add(job.id)
            servers[number].create(job, b"the dog", Shares(("",)))  # deletes what has expired
            if status == "done":
                servers[number].end(replace(job, status=status))
            added[job.id] = job

    for number in (0, 1, 0, 1):
        ahead_s[0] = number * hours * 3600
        servers.setdefault(number, jobs.Jobs(tmp_path))
        add(number)
        for job in added.values():
            assert servers[number].read(job.id)
            assert not servers[number].is_lost(job)
    (tmp_path / f"{9:032x}").mkdir()
    (tmp_path / f"{9:032x}" / "job.json").write_text("{")  # may be repaired
    assert jobs.Jobs(tmp_path)
    assert len([*tmp_path.iterdir()]) == 9
    figure("S31", f"two servers on one folder, {hours:+} hours apart: {len(added)} documents, 0 removed")


def test_a_document_whose_parsing_was_stopped_is_parsed_again_and_a_text_gets_503(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, n = serving(), 0
    monkeypatch.setattr(parsing, "AGAIN_AFTER_S", 0.01)
    for workers in (parsing.TEXTS, parsing.DOCUMENTS):
        submit = workers.submit

        def stopped(budget: Any, name: str, function: Any, submit: Any = submit, **more: Any) -> Any:
            nonlocal n
            n += 1
            if n not in (1, 3):  # the text, and the first parsing after the upload
                return submit(budget, name, function, **more)
            failed: Future[Any] = Future()
            failed.set_exception(StoppedError(name))
            return failed

        monkeypatch.setattr(workers, "submit", stopped)
    asked = {"text": ["<b>the</b> dog"], "source_lang": "EN", "target_lang": "DE", "tag_handling": "html"}
    assert server("/v2/translate", asked).status == 503
    made = upload(server, "/v2/document", "a.html", PAGE, target_lang="DE", source_lang="EN").json
    assert done(server, made)["status"] == "done"
    assert n > 3


TAGGED = {"text": ["<b>the</b> dog"], "source_lang": "EN", "target_lang": "DE", "tag_handling": "html"}


def new_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the servers of a test start workers of their own."""
    for name in ("TEXTS", "DOCUMENTS"):
        monkeypatch.setattr(parsing, name, Workers(2, preload=parsing.PRELOAD, tell=parsing.logger.error))


def test_S32_an_upgrade_under_a_running_server_is_told_and_nothing_is_read_by_one_version_and_written_by_another(
    serving: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    figure: Callable[[str, str], None],
) -> None:
    """62 of 192 texts came back as they were sent, with 200, and documents were done with their paragraphs in English.

    A worker that was started later was of the new version.
    """
    server = serving()
    with monkeypatch.context() as upgraded:
        new_workers(upgraded)
        upgraded.setitem(budget.known_sums(), markup.__name__, -1)
        for _ in range(2):
            reply = server("/v2/translate", TAGGED)
            assert (reply.status, reply.json["message"]) == (
                503, "the server was upgraded and must be restarted to read this: try again later",
            )  # fmt: skip
            assert upload(server, "/v2/document", "a.html", PAGE, target_lang="DE", source_lang="EN").status == 503
        assert server("/v2/translate", {"text": ["the dog"], "target_lang": "DE"}).status == 200
        why = "the files of dragoman were replaced while it ran (dragoman.documents.markup): restart it"
        assert (server("/readyz").status, server("/readyz").body.decode()) == (503, f"not ready: {why}")
        assert server("/livez").status == 200
        assert [record.message for record in caplog.records] == [why, why]  # once for each kind of workers
    assert server("/readyz").body == b"ok"
    figure(
        "S32",
        "2 texts with tags and 2 documents: 503; a plain text is translated; named in /readyz and once in the log",
    )


def test_a_document_that_was_translated_when_the_server_was_upgraded_fails_with_that_reason(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving()
    new_workers(monkeypatch)
    real = parsing.finished

    async def finished(*arguments: Any) -> Any:
        parsing.DOCUMENTS.close()
        new_workers(monkeypatch)
        monkeypatch.setitem(budget.known_sums(), markup.__name__, -1)
        return await real(*arguments)

    monkeypatch.setattr(parsing, "finished", finished)
    made = upload(server, "/v2/document", "a.html", PAGE, target_lang="DE", source_lang="EN").json
    status = done(server, made)
    assert (status["status"], status["message"]) == (
        "error",
        "the server was upgraded while it had this document: upload it again once the server has been restarted",
    )  # true before the restart and after it


def test_a_server_without_its_interpreter_is_not_ready_and_its_documents_wait_for_it(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The document in work was lost, and later ones got 429 for ever, while /readyz said ok."""
    server = serving()
    monkeypatch.setattr(parsing, "AGAIN_AFTER_S", 0.01)
    new_workers(monkeypatch)
    real = parsing.texts
    gone = "/bin/true died at its start: exit code 0"

    async def texts(*arguments: Any) -> Any:
        if sys.executable == "/bin/true":
            return await real(*arguments)
        new_workers(monkeypatch)
        monkeypatch.setattr(sys, "executable", "/bin/true")
        return await real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(parsing, "texts", texts)
        python = sys.executable
        made = upload(server, "/v2/document", "a.html", PAGE, target_lang="DE", source_lang="EN").json
        wait_until(lambda: server("/readyz").status == 503)
        assert server("/readyz").body == b"not ready: no process can be started to parse with: the log says why"
        assert len([text for text in caplog.messages if gone in text]) == 1
        assert server("/v2/translate", TAGGED).status == 429
        monkeypatch.setattr(sys, "executable", python)
    assert done(server, made)["status"] == "done"
    wait_until(lambda: server("/readyz").status == 200)


def test_an_upload_reads_no_file_of_other_jobs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of keys there are thousands of jobs, and each upload looks at all of them."""
    names = tuple(f"k{i}" for i in range(300))
    stored, n_read = jobs.Jobs(tmp_path), 0

    def add(number: int) -> None:
        job = replace(JOB, id=f"{number:032x}", owner=names[number % 300], created=time.time(), left=[("a", "b")])
        stored.create(job, b"the dog", Shares(names))

    for number in range(300):
        add(number)
    loads = json.loads

    def counted(text: str) -> Any:
        nonlocal n_read
        n_read += 1
        return loads(text)

    monkeypatch.setattr(jobs, "json", SimpleNamespace(loads=counted, dumps=json.dumps))
    stored.end(replace(JOB, id="0" * 32, owner="k0", status="error", created=time.time()))
    add(300)  # takes the place of the one that failed
    assert n_read < 5
    assert stored.read("0" * 32) is None
    assert stored.read(f"{7:032x}").left == [["a", "b"]]


@pytest.mark.parametrize(("spelt", "shown"), [(r"\377", "the ? dog"), (r"\000", "the ? dog")])
def test_a_text_that_no_answer_can_hold_is_shown_as_far_as_it_is_one(live: Any, spelt: str, shown: str) -> None:
    """The job was gone for its owner, and nobody's for the limits: its file was no UTF-8."""
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    catalogue = f'{header}msgid "the {spelt} dog"\nmsgstr "x"\n\nmsgid "the cat"\nmsgstr ""\n'
    made = upload(live, "/v2/document", "a.po", catalogue.encode(), target_lang="DE", source_lang="EN").json
    status = done(live, made)
    assert status["status"] == "done"
    assert [each["text"] for each in status["segments"]["left"]] == [shown]
    reply = live(f"/v2/document/{made['document_id']}/result", form={"document_key": made["document_key"]})
    assert spelt.encode() in reply.body


def test_a_job_that_nobody_can_read_goes_first_when_room_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, shares, tries = jobs.Jobs(tmp_path), Shares(("",)), list[Path]()
    ids = [f"{number:032x}" for number in range(4)]
    for number in (0, 1, 2):
        job = replace(JOB, id=ids[number], created=time.time(), status="error")
        stored.create(job, b"the dog", shares)
    for number in (1, 2):
        path = stored.path(ids[number]) / "job.json"
        path.write_bytes(b'"\xff"')
        os.utime(path, (time.time() - 3600 * (number == 1),) * 2)  # another server may work on the second
    reserve = jobs.reserve

    def full_once(path: Path, n_bytes: int) -> None:
        tries.append(path)
        if len(tries) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        reserve(path, n_bytes)

    monkeypatch.setattr(jobs, "reserve", full_once)
    stored.create(replace(JOB, id=ids[3], created=time.time()), b"the dog", shares)
    assert [stored.path(id_).exists() for id_ in ids] == [True, False, True, True]


def test_a_temporary_folder_that_was_cleared_away_is_made_again(serving: Callable[..., Any]) -> None:
    server = serving()
    fields = {"target_lang": "DE", "source_lang": "EN"}
    for _ in range(2):
        made = upload(server, "/v2/document", "a.txt", b"the dog", **fields)
        assert made.status == 200
        assert done(server, made.json)["status"] == "done"
        folder = server.state.documents.jobs.folder
        shutil.rmtree(folder, ignore_errors=True)  # the server may remove a file of the last job at the same time
        assert not folder.exists()


def test_the_file_of_a_job_that_was_edited_ends_no_upload(tmp_path: Path) -> None:
    stored, shares = jobs.Jobs(tmp_path), Shares(("",))
    sound = asdict(replace(JOB, created=time.time(), status="done"))
    wrong = [0, None, "x", [], ["x"], {}, {"x": [1]}, True, 1e999, math.nan, -1, 2**70, "\0", "b" * 32]
    texts = ["", "null", "[]", "{", "[" * 100_000, '{"a":' * 100_000, "NaN", "\udcff", '"a"']
    texts += [json.dumps(sound | {name: value}) for name in sound for value in wrong]
    for number, text in enumerate(texts):
        folder = tmp_path / sound["id"]
        folder.mkdir()
        (folder / "job.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        new = replace(JOB, id=f"{number:032x}", created=time.time())
        stored.create(new, b"the dog", shares)
        job = stored.read(sound["id"])
        assert job is None or (job.id == sound["id"] and isinstance(hash(job.owner), int))
        assert jobs.Jobs(tmp_path).read(new.id) is not None  # a server starts with it
        for id_ in (new.id, sound["id"]):
            stored.remove(id_)
    later = json.dumps(sound | {"priority": 1})  # of a later version
    (tmp_path / sound["id"]).mkdir()
    (tmp_path / sound["id"] / "job.json").write_text(later)
    assert stored.read(sound["id"]) is not None


def test_a_text_that_is_longer_than_a_request_is_translated_in_pieces(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, sizes = serving(max_chars=60), []
    translate = server.state.service.translate_document

    async def noted(texts: Any, *more: Any, **named: Any) -> Any:
        sizes.append(list(map(len, texts)))
        return await translate(texts, *more, **named)

    monkeypatch.setattr(server.state.service, "translate_document", noted)
    texts = [" ".join(["The dog sleeps."] * 12), "a cat", "dog" * 50]
    made = upload(server, "/v2/document", "a.txt", "\n".join(texts).encode(), target_lang="DE", source_lang="EN").json
    assert done(server, made)["status"] == "done"
    assert max(map(sum, sizes)) <= 60
    assert sum(map(sum, sizes)) == sum(map(len, texts))
    lines = server(f"/v2/document/{made['document_id']}/result", {"document_key": made["document_key"]}).body.decode()
    short = server("/v1/translate", {"text": "The dog sleeps. The dog sleeps. The dog sleeps. ", "source": "en"}).json
    assert lines.split("\n")[0] == " ".join([short["translations"][0]["text"].strip()] * 4)


def test_a_long_document_has_the_same_translation_and_quality_as_in_memory(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pieces lie on disk, and go when its translation is written."""
    outcomes = []
    for most in (pieces.IN_MEMORY, 3):
        monkeypatch.setattr(pieces, "IN_MEMORY", most)
        made = upload(live, "/v2/document", "a.txt", b"the dog\na red cat", target_lang="DE", source_lang="EN").json
        status = done(live, made)
        assert status.pop("document_id") == made["document_id"]
        secret = {"document_key": made["document_key"]}
        outcomes.append((status, live(f"/v2/document/{made['document_id']}/result", secret).body))
    assert outcomes[0][0]["status"] == "done"
    assert outcomes[0] == outcomes[1]


def test_a_bomb_is_refused(live: Any) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("word/document.xml", b" " * (1 << 27))
    reply = upload(live, "/v2/document", "a.docx", out.getvalue(), target_lang="DE")
    assert reply.status == 400
    assert "unpacks to 134,217,728 bytes" in reply.json["message"]


def test_no_text_of_a_document_is_left_where_the_folder_is_temporary(serving: Callable[..., Any]) -> None:
    server = serving()
    folder = server.state.documents.jobs.folder
    done(server, upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").json)
    assert folder.is_dir()
    wait_until(lambda: not server.state.documents.tasks)
    asyncio.run(server.state.documents.close())
    assert not folder.exists()


def test_options_reach_a_format_by_both_uploads_or_are_refused(live: Any) -> None:
    added = Echo()
    FORMATS.append(added)
    try:
        fields = {**{name: str(value) for name, value in GIVEN.items()}, "column": "b"}
        made = upload(live, "/translate_file", "a.echo", b"dog", target="de", **fields).json
        path = made["translatedFileUrl"].removeprefix(live.url)
        assert live(path).json == {**GIVEN, "columns": ["b"]}
        made = upload(live, "/v2/document", "a.echo", b"dog", target_lang="DE", **fields).json
        assert done(live, made)["status"] == "done"
        result = live(f"/v2/document/{made['document_id']}/result", {"document_key": made["document_key"]})
        assert result.json == {**GIVEN, "columns": ["b"]}
    finally:
        FORMATS.remove(added)
    for target, path in (("target_lang", "/v2/document"), ("target", "/translate_file")):
        refused = upload(live, path, "a.txt", b"dog", **{target: "de", "set_lang": "true"})
        assert refused.status == 400
        assert b"set_lang is for .html, .htm, .xhtml" in refused.body
        refused = upload(live, path, "a.srt", b"", **{target: "de", "line_length": "9"})
        assert (refused.status, b"line_length must be 10 or more, got 9" in refused.body) == (400, True)


def test_what_was_accepted_has_more_time_and_memory_to_be_written(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing costs a multiple of reading, and comes after hours of translating."""
    budgets, submit = {}, parsing.DOCUMENTS.submit

    def noted(budget: Any, name: str, function: Any, **more: Any) -> Any:
        budgets[function.__name__] = budget
        return submit(budget, name, function, **more)

    monkeypatch.setattr(parsing.DOCUMENTS, "submit", noted)
    server = serving()
    made = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").json
    assert done(server, made)["status"] == "done"
    assert budgets["finished"].cpu_s >= 20 * budgets["survey"].cpu_s
    assert budgets["finished"].memory >= 2 * budgets["survey"].memory
    assert budgets["finished"].result >= 2 * budgets["survey"].result


@pytest.mark.parametrize(("path", "field"), [("/v2/document", "target_lang"), ("/translate_file", "target")])
@pytest.mark.parametrize("step", ["survey", "aligned"])
def test_an_upload_whose_client_leaves_before_it_is_accepted_is_removed(
    step: str, path: str, field: str, serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DeepL's library gives up after ten seconds and sends the document again, five times."""
    begun, goes_on = threading.Event(), asyncio.Event()

    async def slow(*_: Any) -> Any:
        begun.set()
        await goes_on.wait()

    monkeypatch.setattr(of_server, "MOST_WAITING", 1)
    server = serving(documents=tmp_path)
    monkeypatch.setattr(parsing if step == "survey" else server.state.service, step, slow)
    body, kind = form("a.txt", b"the dog", **{field: "de"})
    place = urlsplit(server.url)
    client = http.client.HTTPConnection(place.hostname or "", place.port, timeout=LONG_S)
    client.request("POST", path, body, {"content-type": kind})
    assert begun.wait(LONG_S)
    assert len([folder for folder in tmp_path.iterdir() if folder.is_dir()]) == 1
    client.close()
    wait_until(lambda: not [folder for folder in tmp_path.iterdir() if folder.is_dir()])
    documents = server.state.documents
    wait_until(lambda: (documents.tasks, documents.jobs.under_way) == ({}, set()))
    documents.refuse_if_full("")


def test_an_upload_whose_translation_cannot_be_planned_leaves_nothing(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise DataError("a term is blank")

    server = serving(documents=tmp_path)
    monkeypatch.setattr(server.state.service, "plan", refuse)
    reply = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE")
    assert (reply.status, reply.json["message"]) == (400, "a term is blank")
    assert not [folder for folder in tmp_path.iterdir() if folder.is_dir()]
    documents = server.state.documents
    assert (documents.tasks, documents.jobs.under_way) == ({}, set())


def test_a_document_is_removed_once_nothing_writes_there(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that has begun to write ends its work, whoever has left meanwhile."""
    server, begun, go, calls = serving(documents=tmp_path), threading.Event(), threading.Event(), list[str]()
    documents = server.state.documents
    source, run = documents.jobs.source, documents.jobs.disk.run

    def slow(job: jobs.Job) -> Any:
        begun.set()
        assert go.wait(LONG_S)
        return source(job)

    def noted(owner: str, work: Any, *arguments: Any) -> Any:
        calls.append(work.__name__)
        return run(owner, work, *arguments)

    async def forget(job: jobs.Job) -> list[str]:
        forgetting = asyncio.create_task(documents.forget(job))
        await asyncio.sleep(0)  # until it waits
        calls_before = list(calls)
        go.set()
        await forgetting
        return calls_before

    monkeypatch.setattr(documents.jobs, "source", slow)
    monkeypatch.setattr(documents.jobs.disk, "run", noted)
    id_ = upload(server, "/v2/document", "a.txt", b"the dog", target_lang="DE").json["document_id"]
    assert begun.wait(LONG_S)
    loop = documents.tasks[id_].get_loop()
    calls_before = asyncio.run_coroutine_threadsafe(forget(documents.jobs.read(id_)), loop).result(LONG_S)
    assert "remove" not in calls_before
    assert calls[-1] == "remove"
    assert not (tmp_path / id_).exists()


def test_a_bug_of_a_parser_is_logged_without_the_name_of_the_file(
    serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(parsing.opening, "texts", worker_tasks.fail)  # which takes no document
    server = serving()
    made = upload(server, "/v2/document", "divorce of Ann.txt", b"the dog", target_lang="DE").json
    assert done(server, made)["error_message"] == "internal error; the log has its traceback"
    assert "the worker that parses the document failed" in caplog.text
    assert "Ann" not in caplog.text


def test_what_is_done_for_a_client_that_leaves_meanwhile_is_undone() -> None:
    undone: list[str] = []

    async def ask(leaves: bool) -> str:
        left = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def work() -> str:
            if leaves:
                left.set()
            with contextlib.suppress(asyncio.CancelledError):  # it is too late to break off
                await asyncio.sleep(0.05)
            return "stored"

        async def undo(result: str) -> None:
            undone.append(result)

        return await until_client_leaves(receive, work(), undo)

    assert asyncio.run(ask(leaves=False)) == "stored"
    assert undone == []
    with pytest.raises(ClientLeft):
        asyncio.run(ask(leaves=True))
    assert undone == ["stored"]


def test_a_job_whose_server_stands_still_for_a_minute_is_kept_for_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, real_ages, passed = time.time, time.monotonic, [0.0]
    clocks = SimpleNamespace(time=lambda: real() + passed[0], monotonic=lambda: real_ages() + passed[0])
    monkeypatch.setattr(jobs, "time", clocks)
    stored, other, shares = jobs.Jobs(tmp_path), jobs.Jobs(tmp_path), Shares(("",))
    job = replace(JOB, created=clocks.time() - 3 * jobs.LIFETIME_S)
    stored.under_way.add(job.id)
    stored.create(job, b"the dog", shares)

    def upload_to_the_other(number: int) -> None:
        other.create(replace(JOB, id=f"{number:032x}", created=clocks.time()), b"a cat", shares)

    upload_to_the_other(0)  # sees the time of the file
    passed[0] = jobs.LOST_S + 1
    assert other.is_lost(job)
    upload_to_the_other(1)
    assert stored.source(job) == b"the dog"
    passed[0] = jobs.LIFETIME_S + 1
    upload_to_the_other(2)
    assert not stored.path(job.id).exists()


def test_a_file_that_cannot_be_read_now_costs_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, real_ages = time.time, time.monotonic
    stored, other, shares = jobs.Jobs(tmp_path), jobs.Jobs(tmp_path), Shares(("",))
    job = replace(JOB, created=time.time())
    stored.under_way.add(job.id)
    stored.create(job, b"the dog", shares)
    later = 1.2 * jobs.LIFETIME_S
    clocks = SimpleNamespace(time=lambda: real() + later, monotonic=lambda: real_ages() + later)
    monkeypatch.setattr(jobs, "time", clocks)
    text_of = jobs.text_of

    def broken(path: Path) -> str:
        if path.parent.name == job.id:
            raise OSError(errno.EIO, "Input/output error")
        return str(text_of(path))

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "text_of", broken)
        for number, each in enumerate((stored, other)):
            os.utime(stored.path(job.id) / "job.json", (number + 1, number + 1))  # so that it is read again
            each.create(replace(JOB, id=f"{number:032x}", created=clocks.time()), b"a cat", shares)
            assert stored.source(job) == b"the dog"


@pytest.mark.parametrize("failures", [3, 4])
def test_a_batch_that_is_given_up_is_searched_again(
    failures: int, serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is told to try again; a document would lose what was translated before."""
    server, n = serving(), 0
    translate = server.state.service.translate_document

    async def given_up(*arguments: Any, **named: Any) -> Any:
        nonlocal n
        n += 1
        if n <= failures:
            raise UnfinishedError
        return await translate(*arguments, **named)

    monkeypatch.setattr(server.state.service, "translate_document", given_up)
    made = upload(server, "/v2/document", "a.txt", b"the dog\na cat", target_lang="DE", source_lang="EN").json
    assert done(server, made)["status"] == ("done" if failures == 3 else "error")
