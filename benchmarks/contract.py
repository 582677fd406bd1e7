"""Send the server requests that are unusual or wrong by the letter of HTTP and JSON, and check every answer.

    python -m benchmarks.contract --run RUN [--every 1] [--before]

``benchmarks/contract_cases.py`` makes the requests; ``tests/faults/test_contract.py`` sends a part of them in
`make test`. Then many clients upload documents at once and stop in the middle: how far the memory of the server grows,
and whether others are served meanwhile. ``--before`` records what is seen as the state before the mends.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import platform
import socket
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.contract_cases import cases, exchange, fault, request
from benchmarks.record import RESULTS, machine
from benchmarks.serving import Server

Json = Any
N_UPLOADS = 40
UPLOAD_BYTES = 19_000_000
MIB = 2**20


def spec_of(port: int) -> Json:
    """Return the OpenAPI document of a server."""
    return json.loads(exchange(port, request("GET", "/spec")).body)


def tried(port: int, every: int = 1, start: int = 0) -> dict[str, dict[str, Any]]:
    """Send every n-th case; return by kind how many were sent, how many answers were wrong, and why."""
    counts: dict[str, dict[str, Any]] = {}
    for number, case in enumerate(cases(spec_of(port))):
        if (number + start) % every:
            continue
        own = counts.setdefault(case.kind, {"tried": 0, "wrong": 0, "what": {}})
        own["tried"] += 1
        if why := fault(port, case):
            own["wrong"] += 1
            own["what"][case.name] = why
    return counts


def held_uploads(server: Server) -> dict[str, Any]:
    """Begin many uploads, all but their last byte, and return what they cost the server and others meanwhile."""
    before_mib = server.rss_mib()
    statuses: dict[str, int] = {}
    start = request("POST", "/v2/document", content_type="multipart/form-data; boundary=b")
    start = start.replace(b"content-length: 0", b"content-length: %d" % UPLOAD_BYTES)
    with contextlib.ExitStack() as clients:
        opened = [
            clients.enter_context(socket.create_connection(("127.0.0.1", server.port), 60)) for _ in range(N_UPLOADS)
        ]
        for client in opened:
            with contextlib.suppress(OSError):
                client.sendall(start + b"a" * (UPLOAD_BYTES - 1))
        asked = request("POST", "/translate", b'{"q": "the dog", "source": "en", "target": "de"}')
        translated = [exchange(server.port, asked).status for _ in range(20)]
        growth_mib = server.rss_mib() - before_mib
        for client in opened:
            client.settimeout(0.2)
            status = "held"
            with contextlib.suppress(OSError):
                status = client.recv(1 << 12)[9:12].decode() or "closed"
            statuses[status] = statuses.get(status, 0) + 1
    return {
        "uploads": N_UPLOADS, "bytes_each": UPLOAD_BYTES, "memory_growth_mib": round(growth_mib),
        "uploads_by_status": statuses, "translated_meanwhile": f"{translated.count(200)} of {len(translated)}",
    }  # fmt: skip


def record(counts: Mapping[str, Mapping[str, Any]], uploads: Json, command: str, state: str) -> Path:
    """Write what was seen as the ``before`` or the ``after`` of the record, with a dozen faults of each kind."""
    path = RESULTS / "hostile" / "contract.json"
    path.parent.mkdir(exist_ok=True)
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    shown = {kind: {**own, "what": dict(list(own["what"].items())[:12])} for kind, own in counts.items()}
    packages = ("uvicorn", "h11", "starlette", "fastapi", "pydantic")
    new = {
        "command": command, "machine": machine(), "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "before": old.get("before", {}), "after": old.get("after", {}), state: {**shown, "held uploads": uploads},
    }  # fmt: skip
    path.write_text(json.dumps(new, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="send every n-th case")
    parser.add_argument("--before", action="store_true", help="record as the state before the mends")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(arguments.run, "--glossaries", folder, "--max-wait", "600")
        try:
            uploads = held_uploads(server)
            counts = tried(server.port, arguments.every)
        finally:
            server.stop()
    command = "python -m benchmarks.contract --run RUN" + f" --every {arguments.every}" * (arguments.every > 1)
    print(uploads)
    path = record(counts, uploads, command, "before" if arguments.before else "after")
    for kind, own in counts.items():
        print(f"{kind}: {own['tried']:,} sent, {own['wrong']:,} wrong")
        for name, why in list(own["what"].items())[:200]:
            print(f"    {name}: {why[:160]}")
    print(f"-> {path}")


if __name__ == "__main__":
    main()
