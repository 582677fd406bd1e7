"""Many keys on one server, what it stores and logs for them, and exported pages: rows F4 and S15 to S19."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import h11
import pytest
from amounts import amounts
from starlette.requests import Request

from dragoman.bundle import load_bundle
from dragoman.errors import BundleError
from dragoman.serving import glossaries
from dragoman.serving import log as log_module
from dragoman.serving.connections import BoundedReader
from dragoman.serving.glossaries import Dictionary, Glossaries
from dragoman.serving.helpers import Helpers
from dragoman.serving.http import fields_of
from dragoman.serving.log import written_apart
from dragoman.serving.pieces import Pieces
from dragoman.serving.refusals import MOST_HEADER_BYTES, MalformedError
from dragoman.toolkits.page.search import Page
from dragoman.toolkits.page.write import write
from dragoman.translation.assemble import Translation
from limits import LONG_S, wait_until

pytestmark = pytest.mark.alone

PARTS = (b"content", b"shell", b"worker", b"sums", b"weights")
"""Parts of a page that no policy of a browser covers, and the sums themselves."""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@amounts(quick=1, full=40)
def test_F4_a_page_that_is_not_as_it_was_written_is_noticed(
    n: int, tiny_run: Path, tmp_path: Path, figure: Any
) -> None:
    write(load_bundle(tiny_run), tmp_path, "int8")
    page, chance = Page(tmp_path / "translator.html"), random.Random(5)
    whole = page.file.read_bytes()
    damaged = [whole[:cut] for cut in (whole.index(b'id="worker">') + 99, len(whole) - 40)]
    for part in PARTS:
        start = whole.index(b'id="%s">' % part) + len(part) + 5
        end = whole.index(b"</script>", start) - 1
        for at in [start, end, *(chance.randrange(start, end) for _ in range(n))]:
            damaged.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    question = [{"task": "encode", "texts": ["a dog"], "side": "src"}]
    assert len(list(page.answers(question))) == 1
    for content in damaged:
        page.file.write_bytes(content)
        with pytest.raises(BundleError, match=r"translator.html: it is not as it was written; export it again"):
            list(page.answers(question))
    figure("F4", f"{len(damaged)} damaged pages: all noticed")


@amounts(quick=50, full=5000)
def test_S15_calls_of_one_key_that_are_long_to_prepare_delay_no_other_key(n: int, figure: Any) -> None:
    order: list[str] = []
    go = threading.Event()

    def prepare(owner: str) -> None:
        order.append(owner)
        if owner == "ann":
            assert go.wait(LONG_S)

    async def run() -> None:
        helpers = Helpers()
        calls = [asyncio.create_task(helpers.run("ann", prepare, "ann")) for _ in range(n)]
        for call in calls[2::2]:  # clients that leave keep no thread
            await asyncio.sleep(0)
            call.cancel()
        for _ in range(n):
            await asyncio.wait_for(helpers.run("bob", prepare, "bob"), LONG_S)
        assert order == ["ann"] * 2 + ["bob"] * n
        go.set()
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(run())
    assert order.count("ann") == n - len(range(2, n, 2))
    figure("S15", f"{n:,} calls of one key that wait: {n:,} of another pass all of them but 2")


@amounts(quick=20, full=1000)
def test_S16_a_list_of_glossaries_reads_only_what_has_changed(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    """However little of the glossaries stays in memory."""
    monkeypatch.setattr(glossaries, "MOST_READ_BYTES", 100)
    terms = Dictionary("en", "de", {f"term {i}": f"Begriff {i}" for i in range(50)})
    stored, read = Glossaries(tmp_path), list[str]()
    made = [stored.add("", f"g{i}", [terms]) for i in range(n)]
    text_of = glossaries.text_of
    monkeypatch.setattr(glossaries, "text_of", lambda path: (read.append(path.stem), text_of(path))[1])
    assert [outline.name for outline in stored.list("")] == [f"g{i}" for i in range(n)]
    assert read == [made[-1].id]  # the others were counted when it came
    other = Glossaries(tmp_path)
    other.change(made[3].id, "", lambda old: glossaries.replace(old, name="changed"))
    stored.delete(made[4].id, "")
    read.clear()
    names = [outline.name for outline in stored.list("")]
    assert ("changed" in names, "g4" in names, len(names)) == (True, False, n - 1)
    assert read == [made[3].id]
    figure("S16", f"{n:,} glossaries, one changed by another server: 1 read")


@amounts(quick=4, full=30)
def test_S17_documents_under_way_need_no_memory_for_their_texts(n: int, tmp_path: Path, figure: Any) -> None:
    """Of ``n`` keys, each in the middle of its work."""
    tracemalloc.start()
    try:
        under_way = []
        for i in range(n):
            texts = [f"line {number} of document {i}" for number in range(10_000)]
            under_way.append(Pieces.of(texts, tmp_path / str(i), 50_000, "en"))
            del texts
            under_way[-1].add([Translation(text, -1.0) for text in under_way[-1].window()])
        n_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n_bytes < 40_000 * n
    figure("S17", f"{n} documents of 10,000 lines under way: {n_bytes // 1000:,} KB")


@amounts(quick=50, full=100_000)
def test_S18_a_log_that_nobody_reads_delays_nothing(n: int, monkeypatch: pytest.MonkeyPatch, figure: Any) -> None:
    monkeypatch.setattr(log_module, "MOST_LINES", 5)
    monkeypatch.setattr(log_module, "MOST_ALIKE", n)
    logger, lines, go = logging.getLogger("dragoman.serving"), list[str](), threading.Event()

    class Full(logging.Handler):
        """A pipe that is full until ``go`` is set."""

        def emit(self, record: logging.LogRecord) -> None:
            assert go.wait(LONG_S)
            lines.append(record.getMessage())

    monkeypatch.setattr(logging.getLogger("dragoman"), "handlers", [Full()])
    monkeypatch.setattr(logging.getLogger("dragoman"), "propagate", False)
    with written_apart() as log:
        for i in range(n):
            logger.warning("line %d", i)
        assert lines == []
        wait_until(lambda: log.n_lost >= n - 6)
        go.set()
    assert log.is_written
    assert lines[0] == "line 0"
    assert any("lines of the log were lost" in line for line in lines)
    figure("S18", f"{n:,} lines to a full pipe: none waited, {n - 6:,} or more counted as lost")


_HEAD = b"POST /translate HTTP/1.1\r\nhost: a\r\n"
_CHUNKED = _HEAD + b"transfer-encoding: chunked\r\n\r\n"
_PART = b'--e\r\nContent-Disposition: form-data; name="q"' + b";" * 4000 + b"\r\n\r\na\r\n"
FRAMES = {
    "a header of spaces": _HEAD + b"a:" + b" " * 16_000 + b"\0\r\n\r\n",
    "a trailer of spaces": _CHUNKED + b"0\r\na:" + b" " * 16_000 + b"\0\r\n\r\n",
    "a chunk's extension of spaces": _CHUNKED + b"1;" + b" " * 16_000 + b"\n\r\na\r\n",
    "small chunks": _CHUNKED + b"1\r\na\r\n" * 400_000,
    "many headers": _HEAD + b"a:\r\n" * 4000 + b"\r\n",
    "many trailers": _CHUNKED + b"0\r\n" + b"a:\r\n" * 4000 + b"\r\n",
    "semicolons in a form": _HEAD + b"content-length: %d\r\n\r\n" % (240 * len(_PART)) + _PART * 240,
}
"""Requests that a server refuses, whose framing alone cost the event loop up to a second."""


def _read(sent: bytes) -> None:
    """Read a request as the server does, up to the end of its form."""
    reader = BoundedReader(MOST_HEADER_BYTES)
    reader.receive_data(sent)
    body, event = b"", reader.next_event()
    while event is not h11.NEED_DATA and not isinstance(event, h11.EndOfMessage):
        body, event = body + bytes(getattr(event, "data", b"")), reader.next_event()

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", b"multipart/form-data; boundary=e")]
    asyncio.run(fields_of(Request({"type": "http", "query_string": b"", "headers": headers}, receive)))


@amounts(3, 50)
def test_S19_the_framing_of_a_request_takes_milliseconds(n: int, figure: Any) -> None:
    slowest_s = {}
    for name, sent in FRAMES.items():
        began = time.process_time()
        for _ in range(n):
            with pytest.raises((h11.RemoteProtocolError, MalformedError)):
                _read(sent)
        slowest_s[name] = (time.process_time() - began) / n
        assert slowest_s[name] < 0.3, name
    figure("S19", f"{len(FRAMES)} kinds, {n} of each: {max(slowest_s.values()) * 1000:.1f} ms of the processor at most")
