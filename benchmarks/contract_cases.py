"""Requests that are unusual or wrong by the letter of HTTP and JSON, and what their answers must be.

The requests are made from the server's OpenAPI document: every route with every method, every field of every JSON body
with numbers that are none, every body with a BOM, compressed, nested, repeated; paths, hosts and framing as clients,
proxies and attackers write them. The rule for all: no 5xx, an error in the shape of its API and in one sentence,
no path of this machine in any answer.
"""

from __future__ import annotations

import gzip
import http.client
import io
import json
import re
import socket
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from dragoman.documents.formats import supported_suffixes
from dragoman.serving.apis.api import error_of
from dragoman.serving.app import APIS

Json = Any
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get")
WORDS: Mapping[str, Json] = {
    "source": "en", "target": "de", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund",
    "dictionaries": [{"source_lang": "en", "target_lang": "de", "entries": "dog\tHund"}], "text": "the dog",
    "format": "text",
}  # fmt: skip
"""Values of fields; the others that must be there are a word."""

NOT_JSON = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5000, "+1", "01", "0x10", "'a'")
"""Texts that are no JSON numbers, or none that a number of the machine can be."""

NUMBERS = (
    "true",
    "false",
    "1.9",
    '"5"',
    '"true"',
    "-0",
    "-0.0",
    "1" * 40,
    "-1",
    "1e3",
    "[]",
    "{}",
    "null",
    '"\\ud800"',
)
"""Values for a field that may be a number; the first three are no whole numbers."""


class Reply(NamedTuple):
    """An answer, read until the server closed the connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    more: bytes  # what came after the answer on the same connection


class _Stream(io.BytesIO):
    """Received bytes in place of a socket, which stay readable behind the answer."""

    def makefile(self, mode: str) -> io.BytesIO:
        """Return the bytes as a file."""
        return self

    def close(self) -> None:
        """Stay open."""


Check = Callable[[Reply, Callable[[bytes], Reply]], str | None]


class Case(NamedTuple):
    """A request with the check of its answer; the check can send further requests."""

    kind: str
    name: str
    sent: bytes
    path: str
    check: Check


def exchange(port: int, sent: bytes) -> Reply:
    """Send bytes as they are, and read until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(sent)
        received = b""
        try:
            while chunk := client.recv(1 << 16):
                received += chunk
        except ConnectionResetError:
            pass
    stream = _Stream(received)
    answer = http.client.HTTPResponse(stream, method=sent.partition(b" ")[0].decode("latin-1"))  # type: ignore[arg-type]
    answer.begin()
    body = answer.read()
    return Reply(answer.status, {name.lower(): text for name, text in answer.getheaders()}, body, stream.read())


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """Return a request after which the connection is closed."""
    lines = {"host": "127.0.0.1", "connection": "close", "content-length": str(len(body))}
    if body:
        lines["content-type"] = "application/json"
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


# --- what every answer must be ----------------------------------------------------------------------------------------


def wrong_with(case: Case, reply: Reply) -> str | None:
    """Return what breaks the rules of all answers; None if nothing does."""
    if reply.status >= 500 and not (reply.status == 503 and "not ready" in reply.body.decode("utf-8", "replace")):
        return f"status {reply.status}"
    for name in ("x-content-type-options", "content-security-policy", "referrer-policy"):
        if name not in reply.headers:
            return f"{reply.status} without {name}"
    for secret in (tempfile.gettempdir() + "/", str(Path.home()) + "/", "Traceback", 'File "', "dragoman-"):
        if secret in reply.body.decode("utf-8", "replace") and reply.status >= 400:
            return f"{reply.status} with {secret!r} in it"
    if reply.status < 400 or case.sent.startswith(b"HEAD "):
        return None
    try:
        error = json.loads(reply.body)
    except ValueError:
        return f"{reply.status} with no JSON: {reply.body[:60]!r}"
    message = _message(error, error_of(APIS)(case.path, "MESSAGE"))
    if message is None:
        return f"{reply.status} in another shape than its API's: {reply.body[:80]!r}"
    if not message.strip() or "\n" in message or len(message) > 600:
        return f"{reply.status} with no clear sentence: {message[:200]!r}"
    return None


def _message(error: Json, shape: Json) -> str | None:
    """Return the text of ``error`` that stands where ``shape`` has MESSAGE; None if the shapes differ."""
    if shape == "MESSAGE":
        return error if isinstance(error, str) else None
    if not isinstance(error, dict) or set(error) != set(shape):
        return None
    return next((text for name in shape if (text := _message(error[name], shape[name])) is not None), None)


def fault(port: int, case: Case) -> str | None:
    """Return what is wrong with the answer to a case; None if nothing is."""
    try:
        reply = exchange(port, case.sent)
        return wrong_with(case, reply) or case.check(reply, lambda sent: exchange(port, sent))
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {type(error).__name__}"


def status_is(*statuses: int) -> Check:
    """Return a check of the status."""
    return lambda reply, _: None if reply.status in statuses else f"{reply.status} instead of {statuses}"


def anything(reply: Reply, again: Callable[[bytes], Reply]) -> None:
    """Accept what the rules of all answers accept."""


def same_as(plain: bytes) -> Check:
    """Return a check that the answer is that of another request."""

    def check(reply: Reply, again: Callable[[bytes], Reply]) -> str | None:
        expected = again(plain)
        is_same = (reply.status, reply.body) == (expected.status, expected.body)
        return None if is_same else f"{reply.status} {reply.body[:60]!r} instead of {expected.status}"

    return check


# --- methods ----------------------------------------------------------------------------------------------------------


def concrete(path: str) -> str:
    """Return a path without parameters."""
    return re.sub(r"{\w+}", "nothing", path)


def method_cases(spec: Json) -> Iterator[Case]:
    """Every route with every method, and paths without a route."""
    routes = {path: {name.upper() for name in operations} for path, operations in spec["paths"].items()}
    routes["/spec"] = {"GET"}
    for path, methods in routes.items():
        allowed = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        for method in METHODS:
            if method == "GET" and "GET" in methods:
                check: Check = anything
            elif method == "HEAD" and "GET" in methods:
                check = _like_get(concrete(path))
            elif method == "OPTIONS":
                check = _allows(allowed, 204)
            else:
                check = anything if method in methods else _allows(allowed, 405)
            yield Case("methods", f"{method} {path}", request(method, concrete(path)), concrete(path), check)
    for path in ("/nothing", "/v1/nothing", "/v2/nothing", "/v3/nothing"):
        for method in METHODS:
            yield Case("methods", f"{method} {path}", request(method, path), path, status_is(404))
    yield Case("methods", "OPTIONS *", request("OPTIONS", "*"), "*", status_is(204))
    yield Case("methods", "CONNECT", request("CONNECT", "example.org:443"), "/", status_is(404, 405))


def _allows(methods: set[str], status: int) -> Check:
    def check(reply: Reply, again: Callable[[bytes], Reply]) -> str | None:
        allow = set(filter(None, re.split(r",\s*", reply.headers.get("allow", ""))))
        if (reply.status, allow) != (status, methods):
            return f"{reply.status} allows {sorted(allow)} instead of {status} allows {sorted(methods)}"
        return None

    return check


def _like_get(path: str) -> Check:
    def check(reply: Reply, again: Callable[[bytes], Reply]) -> str | None:
        get = again(request("GET", path))
        if reply.body or reply.more:
            return "HEAD with a body"
        if (reply.status, set(reply.headers)) != (get.status, set(get.headers)):
            return f"HEAD {reply.status} {sorted(reply.headers)}, GET {get.status} {sorted(get.headers)}"
        return None

    return check


# --- bodies -----------------------------------------------------------------------------------------------------------


def json_routes(spec: Json) -> Iterator[tuple[str, str, dict[str, Json], dict[str, Json]]]:
    """Yield method, path, a body that fits, and the schemas of its fields, of every operation that reads JSON."""
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if schema is None:
                continue
            schema = _resolved(schema, spec)
            fields = schema.get("properties", {})
            names = schema.get("required", ())
            body = {name: WORDS.get(name, "the dog") for name in names}
            yield method.upper(), concrete(path), body, {name: _resolved(own, spec) for name, own in fields.items()}


def _resolved(schema: Json, spec: Json) -> Json:
    name = schema.get("$ref", "").rpartition("/")[2]
    return spec["components"]["schemas"][name] if name else schema


def _kinds(schema: Json) -> set[str]:
    """Return the JSON types that a field takes."""
    return {own["type"] for own in [schema, *schema.get("anyOf", ())] if "type" in own}


def number_cases(spec: Json) -> Iterator[Case]:
    """Every field of every JSON body with every number that is odd or none."""
    for method, path, body, fields in json_routes(spec):
        for field, schema in {**fields, "no_such_field": {}}.items():
            kinds = _kinds(schema)
            for text in (*NOT_JSON, *NUMBERS):
                raw = json.dumps({**body, field: "HERE"}).replace('"HERE"', text).encode()
                check: Check = anything
                if text in NOT_JSON or ("boolean" not in kinds and text in _refused(kinds)):
                    check = status_is(400)
                elif text == '"\\ud800"' and "string" in kinds:
                    check = status_is(400, 404)
                shown = text if len(text) < 20 else f"{len(text)} digits"
                yield Case("numbers", f"{method} {path} {field}={shown}", request(method, path, raw), path, check)


def _refused(kinds: set[str]) -> tuple[str, ...]:
    """Return what a field of these types does not take for a number."""
    return NUMBERS[:3] if "integer" in kinds else NUMBERS[:2] if "number" in kinds else ()


def body_cases(spec: Json) -> Iterator[Case]:
    """Every JSON route with bodies that are encoded, compressed or built in unusual ways."""
    for method, path, body, _ in json_routes(spec):
        raw = json.dumps(body, ensure_ascii=False).encode()
        plain = request(method, path, raw)
        stores = same_status(plain) if "glossaries" in path else same_as(plain)
        first = next(iter(body), "no_such_field")
        twice = raw[:-1] + (b", " if body else b"") + json.dumps(first).encode() + b': "twice", '
        twice += json.dumps(first).encode() + b': "again"}'
        bomb = gzip.compress(b" " * 60_000_000)
        bodies: dict[str, tuple[bytes, dict[str, str], Check]] = {
            "BOM": (b"\xef\xbb\xbf" + raw, {}, stores),
            "UTF-16": (raw.decode().encode("utf-16"), {}, status_is(400)),
            "UTF-16 without BOM": (raw.decode().encode("utf-16-le"), {}, status_is(400)),
            "UTF-32": (raw.decode().encode("utf-32"), {}, status_is(400)),
            "gzip": (gzip.compress(raw), {"content_encoding": "gzip"}, stores),
            "GZIP": (gzip.compress(raw), {"content_encoding": " GZIP"}, stores),
            "x-gzip": (gzip.compress(raw), {"content_encoding": "x-gzip"}, stores),
            "deflate": (zlib.compress(raw), {"content_encoding": "deflate"}, stores),
            "identity": (raw, {"content_encoding": "identity"}, stores),
            "gzip that is none": (raw, {"content_encoding": "gzip"}, status_is(400)),
            "gzip cut": (gzip.compress(raw)[:-9], {"content_encoding": "gzip"}, status_is(400)),
            "gzip with more": (gzip.compress(raw) + b"{}", {"content_encoding": "gzip"}, status_is(400)),
            "gzip of wrong sum": (_other_sum(gzip.compress(raw)), {"content_encoding": "gzip"}, status_is(400)),
            "gzip bomb": (bomb, {"content_encoding": "gzip"}, status_is(413)),
            "br": (raw, {"content_encoding": "br"}, _names_encodings),
            "gzip twice": (gzip.compress(gzip.compress(raw)), {"content_encoding": "gzip, gzip"}, _names_encodings),
            "name twice": (twice, {}, status_is(400)),
            "nested": (raw[:-1] + (b", " if body else b"") + b'"a": ' + b"[" * 90_000 + b"]" * 90_000 + b"}", {},
                       status_is(400)),
            "nested objects": (b'{"a": ' * 90_000 + b"1" + b"}" * 90_000, {}, status_is(400)),
            "list": (b"[]", {}, status_is(400)), "text": (b'"a"', {}, status_is(400)),
            "null": (b"null", {}, status_is(400)),
            "bad bytes": (raw[:-1] + b', "a": "\xff"}' if body else b'{"a": "\xff"}', {}, status_is(400)),
            "cut": (raw[:-1], {}, status_is(400)), "two": (raw + raw, {}, status_is(400)),
            "NUL": (raw + b"\0", {}, status_is(400)), "comment": (b"/* */" + raw, {}, status_is(400)),
            "surrogate as name": (raw[:-1] + (b", " if body else b"") + b'"\\ud800": 1}', {}, anything),
        }  # fmt: skip
        for name, (data, headers, check) in bodies.items():
            yield Case("bodies", f"{method} {path} {name}", request(method, path, data, **headers), path, check)
        for kind in ("", "text/plain", "application/xml", "application/json; charset=latin-1", "multipart/form-data",
                     "multipart/form-data; boundary=", "application/x-www-form-urlencoded", "application/merge+json",
                     "application/json, text/plain", "\x80", "a" * 900):  # fmt: skip
            data = request(method, path, raw, content_type=kind)
            yield Case("bodies", f"{method} {path} as {kind[:30]!a}", data, path, anything)


def same_status(plain: bytes) -> Check:
    """Return a check that the status is that of another request."""

    def check(reply: Reply, again: Callable[[bytes], Reply]) -> str | None:
        expected = again(plain).status
        return None if reply.status == expected else f"{reply.status} {reply.body[:80]!r} instead of {expected}"

    return check


def _other_sum(data: bytes) -> bytes:
    return data[:-8] + bytes([data[-8] ^ 1]) + data[-7:]


def _names_encodings(reply: Reply, again: Callable[[bytes], Reply]) -> str | None:
    if reply.status != 415 or "gzip" not in reply.headers.get("accept-encoding", ""):
        return f"{reply.status}, accept-encoding {reply.headers.get('accept-encoding')!r}"
    return None


# --- paths, hosts, framing --------------------------------------------------------------------------------------------


def path_cases(spec: Json) -> Iterator[Case]:
    """Every route with slashes more, dots, encoded slashes and another case."""
    bodies = {(method, path): json.dumps(body).encode() for method, path, body, _ in json_routes(spec)}
    for template, operations in spec["paths"].items():
        path = concrete(template)
        for method in (name.upper() for name in operations):
            body = bodies.get((method, path), b"")
            plain = request(method, path, body)
            if path in ("/metrics", "/v2/usage") or (method, "glossaries" in path) == ("POST", True):
                same = same_status(plain)
            else:
                same = same_as(plain)
            inner = path.replace("/", "//")
            for name, target in {"//": f"/{path}", "///": f"//{path}", "inner": inner, "end": f"{path}/"}.items():
                check: Check = same if path != "/" or name != "end" else anything
                yield Case("paths", f"{method} {template} {name}", request(method, target, body), path, check)
            absolute = request(method, f"http://127.0.0.1:5000{path}", body, host="")
            yield Case("paths", f"{method} {template} absolute", request(method, f"http://127.0.0.1{path}", body), path,
                       same)  # fmt: skip
            yield Case("paths", f"{method} {template} absolute without Host", absolute, "/", status_is(400))
            foreign = request(method, f"http://evil.example{path}", body)
            yield Case("paths", f"{method} {template} absolute elsewhere", foreign, path, status_is(421))
            odd = ("/." + path, path + "/.", "/x/.." + path, "/" + path[1:].replace("/", "%2F"), path + "%00",
                   path + ";a=b", path.upper(), path + "%ff", "/%2e%2e" + path, path + "\\")  # fmt: skip
            for target in odd if path != "/" else ():
                yield Case("paths", f"{method} {target}", request(method, target, body), unquote(target), anything)


def host_cases(spec: Json) -> Iterator[Case]:
    """Names of the host as clients, containers, browsers and attackers write them, for a server on loopback."""
    good = ("127.0.0.1", "127.0.0.1:5000", "localhost", "LOCALHOST:80", "localhost.", "[::1]", "[::1]:5000",
            "[0:0:0:0:0:0:0:1]")  # fmt: skip
    bad = ("evil.example", "evil.example:5000", "127.0.0.1.evil.example", "localhost.evil.example", "[localhost]",
           "127.0.0.1@evil.example", "[::2]", "::1", "localhost:abc", "localhost:99999", "localhost:1:2", "[::1",
           "localhost ,evil.example", "http://localhost", "2130706433", "0x7f.1", "127.1", "*", "%6cocalhost",
           "localhost/", "dragoman:5000")  # fmt: skip
    for hosts, check in ((good, status_is(200)), (bad, status_is(421, 400))):
        for host in hosts:
            yield Case("hosts", host, request("GET", "/health", host=host), "/health", check)
    empty = b"GET /health HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n"
    yield Case("hosts", "empty", empty, "/health", status_is(421, 400))


def framing_cases(spec: Json) -> Iterator[Case]:
    """Requests whose end is told twice or wrongly, each with a second request behind it that nobody may answer."""
    post = b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    second = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n"
    shapes = {
        "length and chunked": b"Content-Length: 4\r\n" + chunked + b"\r\n0\r\n\r\n",
        "chunked and length": chunked + b"Content-Length: 4\r\n\r\n0\r\n\r\n",
        "length 0 and chunked": b"Content-Length: 0\r\n" + chunked + b"\r\n2\r\n{}\r\n0\r\n\r\n",
        "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "two lengths in one": b"Content-Length: 2, 3\r\n\r\n{}",
        "length +2": b"Content-Length: +2\r\n\r\n{}", "length -2": b"Content-Length: -2\r\n\r\n{}",
        "length 0x2": b"Content-Length: 0x2\r\n\r\n{}", "length ''": b"Content-Length: \r\n\r\n{}",
        "length of 30 digits": b"Content-Length: " + b"9" * 30 + b"\r\n\r\n{}",
        "xchunked": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "gzip, chunked": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "chunked twice": chunked + chunked + b"\r\n0\r\n\r\n",
        "bad chunk": chunked + b"\r\nzz\r\n{}\r\n0\r\n\r\n",
        "chunk too long": chunked + b"\r\n1\r\n{}\r\n0\r\n\r\n",
        "chunk of 20 digits": chunked + b"\r\n" + b"f" * 21 + b"\r\n{}\r\n0\r\n\r\n",
        "space before colon": b"Content-Length : 2\r\n\r\n{}", "two hosts": b"Host: 127.0.0.1\r\n\r\n",
        "header without name": b": a\r\n\r\n", "NUL in a header": b"X: a\0b\r\n\r\n",
        "CR in a header": b"X: a\rb\r\n\r\n", "long header": b"X: " + b"a" * 20_000,
        "folded": b"X: a\r\n\tb\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "many headers": b"".join(b"X-%d: a\r\n" % i for i in range(3000)) + b"\r\n",
    }  # fmt: skip
    for name, tail in shapes.items():
        yield Case("framing", name, post + tail + second, "/translate", _answers_once)
    first = {
        "no host": b"GET /health HTTP/1.1\r\n\r\n", "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "HTTP/3.7": b"GET /health HTTP/3.7\r\nHost: 127.0.0.1\r\n\r\n", "no version": b"GET /health\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 60 + b"\r\n\r\n", "noise": b"\0\1\2\3\r\n\r\n",
        "space in the path": b"GET /a b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "bytes in the path": b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "long path": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    }  # fmt: skip
    for name, data in first.items():
        yield Case("framing", name, data + second, "/", _answers_once)
    upgrade = request("GET", "/health", connection="upgrade, close", upgrade="websocket", sec_websocket_version="13",
                      sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==")  # fmt: skip
    yield Case("framing", "websocket", upgrade, "/health", status_is(200))
    h2c = request("GET", "/health", connection="upgrade, close", upgrade="h2c")
    yield Case("framing", "h2c", h2c, "/health", status_is(200))
    old = b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
    yield Case("framing", "HTTP/1.0", old, "/health", status_is(200))
    equal = post + b"Content-Length: 2\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    yield Case("framing", "two equal lengths", equal, "/translate", status_is(400))


def _answers_once(reply: Reply, again: Callable[[bytes], Reply]) -> str | None:
    if reply.status < 400 or reply.more:
        return f"{reply.status}, and then {reply.more[:40]!r}"
    return None


DAMAGED = (
    b"", b"\0\1\2", b"PK\3\4" + b"a" * 60, b"PK\5\6" + bytes(18), b"<a><b></a>", b"<!DOCTYPE a><a/>", b"\xff\xfe\0",
    b"{", b'"a', b"1\n00:00 -> x\n",
)  # fmt: skip
"""Contents that hardly any kind of document has."""

FILE_NAMES = (
    "a", "a.", ".txt", "a.exe", "../../etc/passwd.txt", "a\\b.txt", "a/b.txt", "a" * 3000 + ".txt", "\u00fc.txt",
    "CON.txt", "a\x00.txt", "a.txt.docx", " .txt", "%2e%2e.txt",
)  # fmt: skip

FILE = b"--b\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\na"
BROKEN_FORMS = {
    "no file": b"--b\r\n\r\n--b--", "no end": FILE, "no boundary": b"the dog",
    "two files": (FILE + b"\r\n") * 2 + b"--b--",
    "1,001 fields": b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\na\r\n" * 1001 + b"--b--",
}  # fmt: skip


def upload_cases(spec: Json) -> Iterator[Case]:
    """Files of every kind that are none, and forms with odd names, for every route that takes a document."""
    for path, operations in spec["paths"].items():
        content = operations.get("post", {}).get("requestBody", {}).get("content", {})
        fields = content.get("multipart/form-data", {}).get("schema", {}).get("properties", {})
        if "file" not in fields:
            continue
        target = "target" if "target" in fields else "target_lang"
        files = [(f"a{suffix}", data) for data in DAMAGED for suffix in supported_suffixes()]
        for name, data in [*files, *((name, b"the dog") for name in FILE_NAMES)]:
            yield Case("uploads", f"{path} {name[:20]!a} {data[:9]!r}", _form(path, name, data, target), path, anything)
        for name, body in BROKEN_FORMS.items():
            sent = request("POST", path, body, content_type="multipart/form-data; boundary=b")
            yield Case("uploads", f"{path} {name}", sent, path, status_is(400))


def _form(path: str, name: str, data: bytes, target: str) -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="{target}"\r\n\r\nde\r\n'
    head += f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = head.encode() + data + b"\r\n--b--\r\n"
    return request("POST", path, body, content_type="multipart/form-data; boundary=b")


def cases(spec: Json) -> Iterator[Case]:
    """Yield all cases for the routes of an OpenAPI document."""
    for kind in (method_cases, number_cases, body_cases, path_cases, host_cases, framing_cases, upload_cases):
        yield from kind(spec)
