"""Two API keys on one server: what one of them can see, use, change, delete or exhaust of the other's.

    python -m benchmarks.two_keys --run RUN --as before|after        -> results/hostile/tenants.json

``crossings`` takes every route from the server's own OpenAPI document, so that a new route is tried without a change
here. Alice stores glossaries and documents, whose names, terms and texts are random words. Bob sends every route
requests that name each of her things. A crossing is an answer of success, a word of hers in an answer, or a difference
in what she sees afterwards. Each route must also succeed for Alice, or its requests prove nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import http.client
import json
import platform
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, machine
from benchmarks.serving import Server, percentile
from dragoman.serving.keys import make_key

Json = Any


@dataclass(frozen=True)
class Reply:
    """An answer, read to its end."""

    status: int
    headers: str
    body: bytes

    @property
    def json(self) -> Json:
        return json.loads(self.body)


@dataclass(frozen=True)
class Request:
    """A request without its API key."""

    method: str
    path: str
    body: bytes = b""
    kind: str = ""

    def names(self, things: Sequence[str]) -> bool:
        """True if the path or the body contains one of ``things``."""
        return any(thing in self.path or thing.encode() in self.body for thing in things)


@dataclass(frozen=True)
class Client:
    """A client of the server at ``port``, with an API key."""

    port: int
    key: str

    def send(self, request: Request) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"authorization": f"Bearer {self.key}"} | ({"content-type": request.kind} if request.kind else {})
        with contextlib.closing(connection):
            connection.request(request.method, request.path, request.body or None, headers)
            answer = connection.getresponse()
            return Reply(answer.status, str(answer.getheaders()), answer.read())

    def get(self, path: str) -> Reply:
        return self.send(Request("GET", path))

    def post(self, path: str, fields: Json) -> Reply:
        return self.ask("POST", path, fields)

    def ask(self, method: str, path: str, fields: Json) -> Reply:
        return self.send(Request(method, path, json.dumps(fields).encode(), "application/json"))

    def upload(self, path: str, name: str, content: bytes, **fields: str) -> Reply:
        return self.send(Request("POST", path, *form(name, content, fields)))


def form(name: str, content: bytes, fields: dict[str, str]) -> tuple[bytes, str]:
    """Return a form with a file as a body, and its content type."""
    parts = [
        f'--part\r\nContent-Disposition: form-data; name="{name_}"\r\n\r\n{value}\r\n'.encode()
        for name_, value in fields.items()
    ]
    head = f'--part\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return b"".join([*parts, head, content, b"\r\n--part--\r\n"]), "multipart/form-data; boundary=part"


@dataclass
class Things:
    """Things that a client has stored."""

    glossaries: list[str] = field(default_factory=list)
    documents: dict[str, str] = field(default_factory=dict)  # secrets by id
    downloads: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)  # which stand nowhere else

    @property
    def ids(self) -> list[str]:
        return [*self.glossaries, *self.documents, *self.downloads]


def store_glossaries(client: Client, things: Things, pairs: Sequence[tuple[str, str]]) -> None:
    """Store a glossary by v2 and one by v3 with a dictionary for each of up to two pairs."""
    word = f"zan{secrets.token_hex(4)}"
    things.words += [f"name{word}", word, f"qux{word}"]
    dictionaries = [
        {"source_lang": src, "target_lang": tgt, "entries": f"{word}\tqux{word}", "entries_format": "tsv"}
        for src, tgt in pairs[:2]
    ]
    first = client.post("/v2/glossaries", {"name": f"name{word}", **dictionaries[0]})
    second = client.post("/v3/glossaries", {"name": f"name{word}", "dictionaries": dictionaries})
    assert (first.status, second.status) == (201, 201), (first, second)
    things.glossaries[:] = [first.json["glossary_id"], second.json["glossary_id"]]


def store_documents(client: Client, things: Things, pair: tuple[str, str]) -> None:
    """Upload a document by DeepL's API and one by LibreTranslate's, and wait until both are done."""
    word = f"doc{secrets.token_hex(4)}"
    things.words.append(word)
    src, tgt = pair
    made = client.upload("/v2/document", f"{word}.txt", word.encode(), source_lang=src, target_lang=tgt).json
    things.documents[made["document_id"]] = made["document_key"]
    other = client.upload("/translate_file", f"{word}.txt", word.encode(), source=src, target=tgt).json
    things.downloads.append(other["translatedFileUrl"].rpartition("/")[2])
    things.words += [made["document_key"], things.downloads[-1].split(".")[1]]
    wait_for(client, made)


def wait_for(client: Client, made: Json, seconds: float = 120.0) -> Json:
    """Wait for the end of a document; return its last status."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = client.post(f"/v2/document/{made['document_id']}", {"document_key": made["document_key"]}).json
        if status.get("status") in ("done", "error", None):
            return status
        time.sleep(0.02)
    raise TimeoutError(made)


def view(client: Client, things: Things) -> Json:
    """Return all that a client sees of its own things."""
    seen: list[Any] = [client.get(path).json for path in ("/v2/glossaries", "/v3/glossaries", "/v2/usage")]
    for id_ in things.glossaries:
        for glossary in seen[1]["glossaries"]:
            if glossary["glossary_id"] == id_:
                seen += [
                    client.get(f"/v3/glossaries/{id_}/entries?source_lang={own['source_lang']}"
                               f"&target_lang={own['target_lang']}").json
                    for own in glossary["dictionaries"]
                ]  # fmt: skip
    for id_, secret in things.documents.items():
        fields = {"document_key": secret}
        seen += [client.post(f"/v2/document/{id_}", fields).json]
        result = client.post(f"/v2/document/{id_}/result", fields)
        seen += [(result.status, result.body)]
    return [*seen, *((one.status, one.body) for one in (client.get(f"/download_file/{n}") for n in things.downloads))]


# --- requests from the OpenAPI document -------------------------------------------------------------------------------


LANGUAGES = ("source", "source_lang", "target", "target_lang")


def operations(spec: Json) -> list[tuple[str, str]]:
    """Return the method and the path of each operation; those that delete come last."""
    found = [(method.upper(), path) for path, own in spec["paths"].items() for method in own]
    return sorted(found, key=lambda operation: operation[0] == "DELETE")


def requests_for(spec: Json, operation: tuple[str, str], things: Things, pair: tuple[str, str]) -> list[Request]:
    """Return requests of an operation, made from its description, which name each of ``things``."""
    method, path = operation
    described = spec["paths"][path][method.lower()]
    parameters = described.get("parameters", [])
    queries = ["&".join(
        f"{own['name']}={plain_value(own['name'], pair)}" for own in parameters
        if own["in"] == "query" and (own.get("required") or own["name"] in LANGUAGES)
    )]  # fmt: skip
    paths = [path]
    for own in parameters:
        if own["in"] == "path":
            paths = [one.replace(f"{{{own['name']}}}", id_) for one, id_ in product(paths, things.ids)]
    paths = [f"{one}?{query}" if query else one for one, query in product(paths, queries)]
    contents = described.get("requestBody", {}).get("content", {})
    bodies: list[tuple[bytes, str]] = [] if contents else [(b"", "")]
    for kind, content in contents.items():
        for fields in bodies_of(resolved(spec, content["schema"]), spec, things, pair):
            if kind == "application/json":
                bodies.append((json.dumps(fields).encode(), kind))
            elif kind == "multipart/form-data":
                texts = {name: value for name, value in fields.items() if isinstance(value, str)}
                bodies.append(form("a.txt", b"the dog", texts))
    return [Request(method, one, *body) for one, body in product(paths, bodies)]


def plain_value(name: str, pair: tuple[str, str]) -> str:
    """Return a value for a field that names nothing of a client."""
    values = {"source": pair[0], "source_lang": pair[0], "target": pair[1], "target_lang": pair[1],
              "entries": "dog%09hund", "entries_format": "tsv"}  # fmt: skip
    return values.get(name, "dog")


def bodies_of(schema: Json, spec: Json, things: Things, pair: tuple[str, str]) -> list[dict[str, Any]]:
    """Return bodies that fit a schema: the required fields, languages, and each field that may name a stored thing."""
    required = set(schema.get("required", ()))
    choices: dict[str, list[Any]] = {}
    for name, own in schema.get("properties", {}).items():
        if name.endswith("_id"):
            choices[name] = [*things.glossaries, *things.documents]
        elif name == "document_key":
            choices[name] = [*things.documents.values(), secrets.token_hex(16)]
        elif name == "api_key" or own.get("format") == "binary":
            continue
        elif name == "dictionaries":
            inner = resolved(spec, resolved(spec, own)["items"])
            choices[name] = [[body] for body in bodies_of(inner, spec, things, pair)]
        elif name in required or name in LANGUAGES:
            choices[name] = [plain_value(name, pair).replace("%09", "\t")]
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def resolved(spec: Json, schema: Json) -> Json:
    """Return a schema, or the part that its ``$ref`` names."""
    while "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def crossings(port: int, alice: Client, bob: Client, names: Sequence[str]) -> dict[str, Any]:
    """Try every operation as Bob on Alice's things, and then as Alice.

    Args:
        names: Names of Alice's key and of other things that no answer to Bob may contain.

    Returns:
        Number of operations and of requests, the crossings, and the operations that never succeeded for Alice.
    """
    spec = Client(port, "").get("/spec").json
    languages = alice.get("/v1/languages").json
    pairs = [(own["code"], target) for own in languages for target in own["targets"]]
    things = Things(words=list(names))
    store_glossaries(alice, things, pairs)
    store_documents(alice, things, pairs[0])
    found: list[str] = []
    n_requests = 0
    before = view(alice, things)
    for operation in operations(spec):
        for request in requests_for(spec, operation, things, pairs[0]):
            n_requests += 1
            reply = bob.send(request)
            found += [f"{' '.join(operation)}: {kind}" for kind in kinds_of(request, reply, things)]
        if operation[0] != "GET" and view(alice, things) != before:
            found.append(f"{' '.join(operation)}: changes what the other sees")
            store_glossaries(alice, things, pairs)
            before = view(alice, things)
    if view(alice, things) != before:
        found.append("GET: changes what the other sees")
    unproven = []
    for operation in operations(spec):
        replies = [alice.send(request) for request in requests_for(spec, operation, things, pairs[0])]
        if not any(200 <= reply.status < 300 for reply in replies):
            unproven.append(" ".join(operation))
        if operation[0] in ("PUT", "DELETE"):
            store_glossaries(alice, things, pairs)
    return {
        "operations": len(operations(spec)), "requests": n_requests, "crossings": sorted(set(found)),
        "operations_that_cross": len({crossing.partition(":")[0] for crossing in found}),
        "unproven": unproven,
    }  # fmt: skip


def kinds_of(request: Request, reply: Reply, things: Things) -> Iterator[str]:
    """Yield the ways in which an answer to Bob crosses to Alice's things."""
    if 200 <= reply.status < 300 and request.names(things.ids):
        yield f"success {reply.status}"
    secret = things.words if request.names(things.ids) else [*things.words, *things.ids]
    text = reply.body.decode("utf-8", "replace") + reply.headers
    if any(word in text and not request.names([word]) for word in secret):
        yield "shows what is the other's"
    if reply.status >= 500:
        yield f"fails with {reply.status}"


# --- limits and turns -------------------------------------------------------------------------------------------------


def glossary(client: Client, pair: tuple[str, str]) -> Reply:
    """Store a small glossary."""
    return client.post("/v2/glossaries", {"name": "g", "source_lang": pair[0], "target_lang": pair[1],
                                          "entries": "dog\thund", "entries_format": "tsv"})  # fmt: skip


def document(client: Client, pair: tuple[str, str], text: bytes = b"the dog") -> Reply:
    """Upload a document."""
    return client.upload("/v2/document", "a.txt", text, source_lang=pair[0], target_lang=pair[1])


def exhausted(alice: Client, bob: Client, pair: tuple[str, str]) -> dict[str, Any]:
    """Let Alice store as much as she may; return how much that was, and what Bob gets afterwards."""
    n_glossaries = 0
    while n_glossaries < 2000 and glossary(alice, pair).status == 201:
        n_glossaries += 1
    made: list[Json] = []
    while len(made) < 400:
        reply = document(alice, pair)
        if reply.status != 200:
            break
        made.append(reply.json)
        wait_for(alice, made[-1])
    figures = {
        "glossaries_of_alice": n_glossaries, "then_bobs_glossary": glossary(bob, pair).status,
        "documents_of_alice": len(made), "then_bobs_document": document(bob, pair).status,
    }  # fmt: skip
    for own in made:
        alice.post(f"/v2/document/{own['document_id']}/result", {"document_key": own["document_key"]})
    return {**figures, "after_she_fetched_all_of_hers_her_next_document": document(alice, pair).status}


def at_once(client: Client, pair: tuple[str, str], n: int = 60) -> dict[str, Any]:
    """Upload ``n`` documents at once, none of which ends soon."""
    # Each line is another one: equal lines are translated once.
    text = b"".join(b"the dog sees %d cats here.\n" % number for number in range(4000))
    with ThreadPoolExecutor(n) as pool:
        barrier = threading.Barrier(n)

        def one(i: int) -> int:
            barrier.wait()
            return document(client, pair, b"%d " % i + text).status

        statuses = list(pool.map(one, range(n)))
    return {str(status): statuses.count(status) for status in sorted(set(statuses))}


def waits(alice: Client, bob: Client, pair: tuple[str, str], seconds: float = 15.0) -> dict[str, float | None]:
    """Return how long Bob waits for a short text: alone, and while Alice asks for 24 lines from 32 clients."""

    languages = {"source": pair[0], "target": pair[1]}

    def asked() -> float | None:
        started = time.perf_counter()
        reply = bob.post("/v1/translate", {"text": "the dog sees a cat", **languages})
        return time.perf_counter() - started if reply.status == 200 else None

    def p50(times: Sequence[float | None]) -> float | None:
        answered = [seconds for seconds in times if seconds is not None]
        return round(1000 * percentile(answered, 0.5), 1) if answered else None

    alone = [asked() for _ in range(30)]
    over = threading.Event()

    def load() -> None:
        while not over.is_set():
            alice.post("/v1/translate", {"text": "\n".join(["the man sees a big house here"] * 24), **languages})

    threads = [threading.Thread(target=load) for _ in range(32)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    beside, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until:
        beside.append(asked())
    over.set()
    for thread in threads:
        thread.join()
    return {
        "alone_p50_ms": p50(alone), "beside_p50_ms": p50(beside), "asked": len(beside), "refused": beside.count(None),
    }  # fmt: skip


def record(name: str, half: str, command: str, figures: Json) -> None:
    """Write figures as ``half`` of ``results/hostile/NAME.json``."""
    path = RESULTS / "hostile" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    former = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    about = {"command": command, "machine": machine(), "versions": {"python": platform.python_version()},
             "date": datetime.datetime.now(datetime.UTC).date().isoformat()}  # fmt: skip
    path.write_text(json.dumps({**former, **about, half: figures}, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))


def main() -> None:
    """Run all parts against a server process and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--as", dest="half", choices=["before", "after"], required=True)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys = {owner: make_key(folder / "keys", owner) for owner in ("alice-5e1f", "bob")}
        arguments = ["--keys", str(folder / "keys"), "--max-wait", "5"]
        for part in ("crossings", "exhausted", "at_once", "waits"):
            stored = ["--glossaries", str(folder / part / "g"), "--documents", str(folder / part / "d")]
            server = Server(options.run, *arguments, *stored)
            alice, bob = (Client(server.port, key) for key in keys.values())
            language = alice.get("/v1/languages").json[0]
            pair = language["code"], language["targets"][0]
            if part == "crossings":
                figures[part] = crossings(server.port, alice, bob, [*keys][:1])
            elif part == "waits":
                figures[part] = waits(alice, bob, pair)
            elif part == "at_once":
                figures[part] = at_once(alice, pair)
            else:
                figures[part] = exhausted(alice, bob, pair)
            server.process.kill() if part == "at_once" else server.stop()
    record("tenants", options.half, "python -m benchmarks.two_keys --run RUN --as before|after", figures)


if __name__ == "__main__":
    main()
