"""A server under attack: hostile documents and texts of one key, honest requests of another, and ``/livez``.

    python -m benchmarks.hostile_server --run runs/tiny --as before|after [--uploads 200] [--cap 240]

The attack has ``KINDS`` of uploads, each in sizes that grow by a constant factor up to the limit of its route. Another
process asks ``/livez`` every 20 ms and sends honest requests at a steady rate, however late answers are; what has
no answer at the end counts with its age. Before the attack the same is measured on the quiet server. ``--cap`` ends an
attack that a frozen server would never answer.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import io
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.record import machine
from benchmarks.serving import Server, percentile
from dragoman.serving.keys import make_key
from dragoman.serving.options import ServeOptions

SEED = 39
POLL_S = 0.02
HONEST_S = 0.25
"""Seconds between two honest requests."""
CLIENTS = 8
"""Number of connections of the attack."""
MOST_DOCUMENT = ServeOptions().max_document
MOST_CHARS = ServeOptions().max_chars
MOST_MEMBER = 1 << 26
"""Largest uncompressed XML member of an office file."""
MOST_MARKDOWN = 2_000_000


@dataclass(frozen=True)
class Upload:
    """One hostile request."""

    kind: str
    size: int  # bytes, or characters of a text
    path: str
    content_type: str
    body: bytes


def document(kind: str, name: str, content: bytes) -> Upload:
    """Return the upload of a document by DeepL's API."""
    edge = b"dragoman-edge"
    fields = {"target_lang": b"DE", "source_lang": b"EN"}
    parts = [
        b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (edge, field.encode(), value)
        for field, value in fields.items()
    ]
    head = b'--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n' % (edge, name.encode())
    body = b"".join([*parts, head, content, b"\r\n--%s--\r\n" % edge])
    return Upload(kind, len(content), "/v2/document", f"multipart/form-data; boundary={edge.decode()}", body)


def text(kind: str, content: str, handling: str) -> Upload:
    """Return the request of a text with tags: HTML by LibreTranslate's API, XML by DeepL's."""
    if handling == "html":
        fields: dict[str, Any] = {"q": content, "source": "en", "target": "de", "format": "html"}
        path = "/translate"
    else:
        fields, path = (
            {"text": [content], "source_lang": "EN", "target_lang": "DE", "tag_handling": "xml"},
            "/v2/translate",
        )
    return Upload(kind, len(content), path, "application/json", json.dumps(fields).encode())


def office(document_xml: bytes, copies: int = 1) -> bytes:
    """Return a .docx whose parts hold some XML."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", document_xml)
        for number in range(1, copies):
            archive.writestr(f"word/header{number}.xml", document_xml)
    return out.getvalue()


WORD = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%s</w:body></w:document>'
XLIFF = '<xliff version="1.2"><file source-language="en" target-language="de"><body>%s</body></file></xliff>'


def _comments(size: int, chance: random.Random) -> Upload:
    filling = "<!---->" if chance.random() < 0.5 else "<?a b?>"
    head = '<?xml version="1.0"?>' + filling * (size // len(filling))
    return document("comments before the root", "a.xlf", (head + XLIFF % "").encode())


def _spaces(size: int, chance: random.Random) -> Upload:
    head = '<?xml version="1.0"?>' + chance.choice([" ", "\n", "\t"]) * size
    return document("spaces before the root", "a.xliff", (head + XLIFF % "").encode())


def _tag_soup_html(size: int, chance: random.Random) -> Upload:
    piece = chance.choice([" ", "\n", "<a ", '<a b="', "<!--", "<b>", "</"])
    return text("tag soup, html", ("<a" + piece * size)[:size], "html")


def _tag_soup_xml(size: int, chance: random.Random) -> Upload:
    piece = chance.choice([" ", "\t", "<a ", "<a b='", "<![CDATA[", "<x/>", "&#x"])
    return text("tag soup, xml", ("<a" + piece * size)[:size], "xml")


def _much_xml(size: int, chance: random.Random) -> Upload:
    piece = chance.choice([b"<w:p/>", b"<w:p><w:r/></w:p>", b"<w:sectPr/>"])
    return document(
        "zip with much XML", "a.docx", office(WORD % (piece * (size // len(piece))), chance.choice([1, 1, 3]))
    )


def _nested(size: int, chance: random.Random) -> Upload:
    depth = size // 9
    if chance.random() < 0.5:
        return document("nested elements", "a.html", b"<i>" * depth + b"1" + b"</i>" * depth)
    inside = "<g id='1'>" * (size // 14) + "1" + "</g>" * (size // 14)
    return document(
        "nested elements", "a.xlf", (XLIFF % f"<trans-unit id='1'><source>{inside}</source></trans-unit>").encode()
    )


def _entities(size: int, chance: random.Random) -> Upload:
    if chance.random() < 0.3:
        laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 40))
        return document("entities", "a.xlf", f'<?xml version="1.0"?><!DOCTYPE x [{laughs}]>{XLIFF % "&a39;"}'.encode())
    piece = chance.choice(["&#49;", "&amp;", "&", "&#x31;", "&lt;"])
    return document("entities", "a.html", ("<p>" + piece * (size // len(piece))).encode())


def _wide_table(size: int, chance: random.Random) -> Upload:
    if chance.random() < 0.5:
        return document("wide tables", "a.tsv", b"1\t" * (size // 4) + b"\n" + b"2\t" * (size // 4))
    return document("wide tables", "a.html", b"<table><tr>" + b"<td>1" * (size // 5))


def _markdown(size: int, chance: random.Random) -> Upload:
    piece = chance.choice(["**1", "[1](", "`1", "> ", "- ", "_*", "![", "<a ", "|1"])
    return document("markdown", "a.md", (piece * size)[:size].encode())


def _long_lists(size: int, chance: random.Random) -> Upload:
    name, piece = chance.choice(
        [
            ("a.csv", "1,2\n"), ("a.csv", '"'), ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n1\n\n"),
            ("a.po", 'msgid "1"\nmsgstr ""\n\n'), ("a.po", '"1"\n'), ("a.vtt", "\n"), ("a.txt", "1\n"),
        ]
    )  # fmt: skip
    head = {"a.vtt": "WEBVTT\n\n", "a.po": 'msgid ""\nmsgstr ""\n\n'}.get(name, "")
    return document("long lists", name, (head + piece * (size // len(piece))).encode())


KINDS: list[tuple[Callable[[int, random.Random], Upload], int]] = [
    (_comments, MOST_DOCUMENT - 10_000), (_spaces, MOST_DOCUMENT - 10_000), (_tag_soup_html, MOST_CHARS),
    (_tag_soup_xml, MOST_CHARS), (_much_xml, MOST_MEMBER - 10_000), (_nested, MOST_DOCUMENT - 10_000),
    (_entities, MOST_DOCUMENT - 10_000), (_wide_table, MOST_DOCUMENT - 10_000), (_markdown, MOST_MARKDOWN),
    (_long_lists, MOST_DOCUMENT - 10_000),
]  # fmt: skip
"""Each kind of upload, made from a size, with its largest size."""
SMALLEST = 300


def attack(count: int, most: int | None = None, seed: int = SEED) -> list[Upload]:
    """Return ``count`` uploads of all kinds in a random order.

    Args:
        most: The largest size; None: the limit of each kind.
    """
    chance, uploads, each = random.Random(seed), [], count // len(KINDS)
    for make, limit in KINDS:
        largest = limit if most is None else min(limit, most)
        for step in range(each):
            size = round(SMALLEST * (largest / SMALLEST) ** ((step + 1) / each))
            uploads.append(make(size, chance))
    chance.shuffle(uploads)
    return uploads


def send(port: int, key: str, upload: Upload, until: float) -> str:
    """Send one upload, again while the server is busy; return the status of the last answer, or why there is none."""
    status = "no answer"
    while (left_s := until - time.perf_counter()) > 0:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=left_s)
        headers = {"content-type": upload.content_type, "authorization": f"Bearer {key}"}
        try:
            connection.request("POST", upload.path, upload.body, headers)
            answer = connection.getresponse()
            answer.read()
            status = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            return f"no answer ({type(error).__name__})"
        finally:
            connection.close()
        if status != "429":
            return status
        time.sleep(0.5)
    return status


def send_all(port: int, key: str, uploads: Sequence[Upload], cap_s: float) -> list[tuple[Upload, str, float]]:
    """Send uploads by ``CLIENTS`` connections; return each with its status and its seconds."""
    waiting, outcomes, lock = list(reversed(uploads)), [], threading.Lock()
    until = time.perf_counter() + cap_s

    def work() -> None:
        while True:
            with lock:
                if not waiting:
                    return
                upload = waiting.pop()
            started = time.perf_counter()
            status = send(port, key, upload, until)
            with lock:
                outcomes.append((upload, status, time.perf_counter() - started))

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


# --- the honest client and /livez, in another process -----------------------------------------------------------------

HONEST = [
    ("/v1/translate", {"text": "the dog sees a cat", "source": "en", "target": "de"}),
    ("/translate", {"q": "<p>the <b>dog</b> sees a cat</p>", "source": "en", "target": "de", "format": "html"}),
    ("/v2/translate", {"text": ["<p>a <i>tree</i></p>"], "target_lang": "DE", "tag_handling": "xml"}),
]  # fmt: skip


async def _answer(port: int, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        return int((await reader.read())[9:12])
    finally:
        writer.close()


async def watch(port: int, key: str) -> dict[str, Any]:
    """Ask until stdin is closed, at a steady rate; return the seconds of each answer."""
    loop, over, first = asyncio.get_running_loop(), asyncio.Event(), time.perf_counter()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(over.set)), daemon=True).start()
    times: dict[str, list[float]] = {"livez": [], "honest": []}
    failed: Counter[str] = Counter()
    pending: dict[asyncio.Task[None], tuple[Sequence[str], float]] = {}

    async def ask(names: Sequence[str], due: float, request: bytes) -> None:
        try:
            status = str(await _answer(port, request))
        except (OSError, ValueError) as error:
            status = type(error).__name__
        for name in names:
            times.setdefault(name, []).append(time.perf_counter() - due)
        if status != "200":
            failed[f"{names[0]} {status}"] += 1

    def begin(names: Sequence[str], due: float, request: bytes) -> None:
        task = loop.create_task(ask(names, due, request))
        pending[task] = names, due
        task.add_done_callback(lambda done: pending.pop(done, None))

    end, host = "HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", f"Authorization: Bearer {key}\r\n"
    number = 0
    while not over.is_set():
        due = first + number * POLL_S
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        begin(["livez"], due, f"GET /livez {end}\r\n".encode())
        every = round(HONEST_S / POLL_S)
        if number % every == 0:
            path, fields = HONEST[number // every % len(HONEST)]
            body = json.dumps(fields)
            head = f"POST {path} {end}{host}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            begin(["honest", f"honest {path}"], due, (head + body).encode())
        number += 1
    if pending:
        await asyncio.wait(list(pending), timeout=1.0)
    now = time.perf_counter()
    unanswered: Counter[str] = Counter()
    for names, due in pending.values():
        for name in names:
            times.setdefault(name, []).append(now - due)
        unanswered[names[0]] += 1
    return {"times": times, "failed": dict(failed), "unanswered": dict(unanswered)}


class Watch:
    """The watching process; ``stop`` ends it and returns its figures."""

    def __init__(self, port: int, key: str) -> None:
        command = [sys.executable, "-m", "benchmarks.hostile_server", "watch", str(port)]
        root = Path(__file__).parent.parent
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root,
                                         env=None)  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(key + "\n")
        self._process.stdin.flush()

    def stop(self) -> dict[str, Any]:
        """Return p50, p99 and the longest time of each kind of request, in milliseconds."""
        seen = json.loads(self._process.communicate(timeout=60)[0])
        return {
            **{
                f"{name}_{what}_ms": round(1000 * value, 1)
                for name, times in seen["times"].items()
                for what, value in (("p50", percentile(times, 0.5)), ("p99", percentile(times, 0.99)),
                                    ("longest", max(times, default=float("nan"))))
            },
            **{f"{name}_requests": len(times) for name, times in seen["times"].items()},
            "failed": seen["failed"], "unanswered": seen["unanswered"],
        }  # fmt: skip


def attacked(
    server: Server, keys: Sequence[str], uploads: Sequence[Upload], cap_s: float, quiet_s: float
) -> dict[str, Any]:
    """Measure a quiet server, then the server under attack.

    Args:
        keys: Of the hostile client, and of the honest one.
    """
    warming = Watch(server.port, keys[1])
    time.sleep(3)
    warming.stop()
    watch = Watch(server.port, keys[1])
    time.sleep(quiet_s)
    quiet = watch.stop()
    watch = Watch(server.port, keys[1])
    time.sleep(1.5)  # it has begun to ask
    started, rss = time.perf_counter(), server.rss_mib()
    outcomes = send_all(server.port, keys[0], uploads, cap_s)
    seconds = time.perf_counter() - started
    attack = watch.stop()
    slowest = sorted(outcomes, key=lambda outcome: -outcome[2])[:5]
    return {
        "uploads": len(outcomes), "seconds": round(seconds, 1), "cap_s": cap_s,
        "statuses": dict(sorted(Counter(status for _, status, _ in outcomes).items())),
        "alive": server.process.poll() is None, "memory_growth_mib": round(server.rss_mib() - rss),
        "slowest": [f"{upload.kind}, {upload.size:,}: {status}, {took:.1f} s" for upload, status, took in slowest],
        "quiet": quiet, "attack": attack,
    }  # fmt: skip


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--as", dest="half", choices=["before", "after"], required=True)
    parser.add_argument("--uploads", type=int, default=200)
    parser.add_argument("--cap", type=float, default=240)
    parser.add_argument("--quiet", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys"
        keys = [make_key(path, name) for name in ("hostile", "honest")]
        server = Server(options.run, "--keys", str(path))
        try:
            figures = attacked(server, keys, attack(options.uploads), options.cap, options.quiet)
        finally:
            server.process.kill()
    record_path = Path(__file__).parent / "results" / "hostile" / "livez.json"
    record = json.loads(record_path.read_text(encoding="utf-8")) if record_path.exists() else {}
    about = machine()
    record |= {
        "command": "python -m benchmarks.hostile_server --run RUN --as before|after", "machine": about,
        "versions": {"python": sys.version.split()[0]}, "date": time.strftime("%Y-%m-%d"), options.half: figures,
    }  # fmt: skip
    record_path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        print(json.dumps(asyncio.run(watch(int(sys.argv[2]), sys.stdin.readline().strip()))))
    else:
        main()
