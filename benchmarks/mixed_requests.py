"""Requests of all kinds, as clients of a server send them: texts, HTML, documents, glossaries, streams, refused ones.

send_mixed(port, n_requests=10_000, note=lambda n_done: ...)
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import random
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

JSON = {"content-type": "application/json"}
WORDS_NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


class MixedClient:
    """A connection of one client, and what it sends at random."""

    def __init__(self, port: int, texts: Sequence[str], chance: random.Random) -> None:
        """Draw texts of ``texts`` for the requests to a server on ``port``."""
        self.port, self.texts, self.chance = port, texts, chance
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

    def send(self, method: str, path: str, data: Any = None, headers: dict[str, str] = JSON) -> tuple[int, bytes]:
        """Send a request; return status and body of the answer."""
        body = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
        try:
            self.connection.request(method, path, body, headers if body is not None else {})
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):  # such as a refused body: the server closes the connection
            self.connection.close()
            return 0, b""

    def lines(self, most: int) -> list[str]:
        """Return 1 to ``most`` texts."""
        return self.chance.choices(self.texts, k=self.chance.randint(1, most))

    def plain(self) -> int:
        """Ask for one text or several, of one line or of many."""
        text: Any = "\n".join(self.lines(24)) if self.chance.random() < 0.5 else self.lines(8)
        return self.send("POST", "/v1/translate", {"text": text})[0]

    def with_options(self) -> int:
        """Ask with options of its own: each needs a plan, and none shares a batch with others."""
        options: Any = {"beam_size": self.chance.randint(1, 8), "length_penalty": round(self.chance.random(), 2)}
        options |= self.chance.choice(({}, {"alignments": True}, {"n_best": 1}, {"guard": False}))
        return self.send("POST", "/v1/translate", {"text": self.lines(2), **options})[0]

    def with_terms(self) -> int:
        """Ask with a glossary in the request."""
        words = self.chance.choice(self.texts).split()
        terms = {word: f"{word}{self.chance.randint(0, 10**6)}" for word in words[:3]}
        return self.send("POST", "/v1/translate", {"text": self.lines(2), "glossary": terms})[0]

    def html(self) -> int:
        """Ask for marked-up text."""
        parts = "".join(f"<p>{text.replace(' ', ' <b>', 1)}</b></p>" for text in self.lines(8))
        data = {"q": parts, "source": "en", "target": "de", "format": "html"}
        return self.send("POST", "/translate", data)[0]

    def stream(self) -> int:
        """Ask for events, and read them all."""
        return self.send("POST", "/v1/translate", {"text": "\n".join(self.lines(12)), "stream": True})[0]

    def refused(self) -> int:
        """Send what must be refused."""
        path, data = self.chance.choice((
            ("/v1/translate", b"{"), ("/v1/translate", {"text": "a", "beam_size": 10**6}),
            ("/v1/translate", {"text": "a" * 60_000}), ("/translate", {"q": "a", "source": "en", "target": "xx"}),
            ("/v2/translate", {"text": ["a"]}), ("/v1/translate", b"x" * 1_100_000), ("/nowhere", {}),
            ("/v1/translate", {"text": "a", f"unknown_{self.chance.randint(0, 99)}": 1}),
        ))  # fmt: skip
        return self.send("POST", path, data)[0]

    def stored_terms(self) -> int:
        """Store a glossary, use it and delete it."""
        n_terms = self.chance.choice((3, 3, 300))
        entries = "\n".join(f"word{i} {self.chance.randint(0, 10**6)}\tWort{i}" for i in range(n_terms))
        data = {"name": "g", "source_lang": "en", "target_lang": "de", "entries": entries, "entries_format": "tsv"}
        status, body = self.send("POST", "/v2/glossaries", data)
        if status != 201:
            return status
        id_ = json.loads(body)["glossary_id"]
        used = {"text": self.lines(2), "source_lang": "EN", "target_lang": "DE", "glossary_id": id_}
        status = self.send("POST", "/v2/translate", used)[0]
        self.send("DELETE", f"/v2/glossaries/{id_}")
        return status

    def document(self) -> int:
        """Upload a document and wait for its translation."""
        name, content = self.chance.choice(
            (("a.txt", self._text()), ("a.docx", self._docx()), ("a.html", self._page()))
        )
        fields = (("source_lang", "EN"), ("target_lang", "DE"))
        parts = [f'--part\r\ncontent-disposition: form-data; name="{key}"\r\n\r\n{text}\r\n' for key, text in fields]
        head = f'--part\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = "".join([*parts, head]).encode() + content + b"\r\n--part--\r\n"
        form = {"content-type": "multipart/form-data; boundary=part"}
        status, answer = self.send("POST", "/v2/document", body, form)
        if status != 200:
            return status
        job = json.loads(answer)
        path, key = f"/v2/document/{job['document_id']}", {"document_key": job["document_key"]}
        while json.loads(self.send("POST", path, key)[1]).get("status") in ("queued", "translating"):
            threading.Event().wait(0.05)
        return self.send("POST", f"{path}/result", key)[0]

    def _text(self) -> bytes:
        return "\n".join(self.lines(40)).encode()

    def _page(self) -> bytes:
        return f"<html><body>{''.join(f'<p>{text}</p>' for text in self.lines(40))}</body></html>".encode()

    def _docx(self) -> bytes:
        paragraphs = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in self.lines(40))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
            package.writestr("word/document.xml", f"<w:document {WORDS_NS}><w:body>{paragraphs}</w:body></w:document>")
        return file.getvalue()

    def leave(self) -> int:
        """Ask for a long text and close the connection before the answer."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("POST", "/v1/translate", json.dumps({"text": "\n".join(self.lines(40))}).encode(), JSON)
            threading.Event().wait(self.chance.random() / 20)
        return 499

    def look(self) -> int:
        """Read what a page or Prometheus reads."""
        return self.send("GET", self.chance.choice(("/metrics", "/languages", "/v2/usage", "/", "/readyz")))[0]

    def any(self) -> tuple[str, int]:
        """Send a request of a random kind; return the kind and the status of its answer."""
        kind = self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        return kind, getattr(self, kind)()


KINDS = {
    "plain": 40, "with_options": 12, "with_terms": 6, "html": 12, "stream": 8, "refused": 8, "stored_terms": 4,
    "document": 1.2, "leave": 4, "look": 4.8,
}  # fmt: skip
"""Methods of ``MixedClient``, with their shares in per cent."""


def send_mixed(
    port: int, texts: Sequence[str], n_requests: int, note: Callable[[int], object], n_clients: int = 8, seed: int = 1
) -> dict[str, dict[str, int]]:
    """Send requests of all kinds; call ``note`` with the number that is done, after each.

    Returns:
        The number of answers for each kind and status; status 0: the connection broke.
    """
    lock, counts, n_done = threading.Lock(), {kind: Counter[str]() for kind in KINDS}, 0

    def work(number: int) -> None:
        nonlocal n_done
        client = MixedClient(port, texts, random.Random(seed * 1000 + number))
        with contextlib.closing(client.connection):
            while n_done < n_requests:
                kind, status = client.any()
                with lock:
                    n_done += 1
                    counts[kind][str(status)] += 1
                    note(n_done)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {kind: dict(sorted(own.items())) for kind, own in counts.items()}
