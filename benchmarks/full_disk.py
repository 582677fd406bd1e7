"""A server whose disk is full: what it answers, what it leaves behind, and how soon it accepts uploads again.

    python -m benchmarks.full_disk --run RUN --as before|after       -> results/hostile/full-disk.json

The folders of documents and glossaries are on a file system of their own, in a mount namespace of this process, which
needs user namespaces. It is filled, and later made larger, while the server runs.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving import Server
from benchmarks.two_keys import Client, Reply, Request, document, glossary, record, wait_for

Json = Any
SMALL, LARGE = "600k", "64m"
TEXT = b"the dog sees a cat here.\n" * 5520
"""Document of 138,000 bytes."""

WORDS = b"the dog"


def ballast(folder: Path) -> None:
    """Fill the file system of ``folder`` to its last byte."""
    with (folder / "ballast").open("ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def resize(folder: Path, size: str) -> None:
    """Give the file system of ``folder`` another size."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def litter(folder: Path) -> list[str]:
    """Return temporary files, and job folders without a job."""
    temporary = [path.name for path in folder.rglob(".*") if path.is_file()]
    empty = [path.name for path in folder.iterdir() if path.is_dir() and not (path / "job.json").is_file()]
    return temporary + empty


def leaks(texts: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return how many texts name a path, a temporary name or a number of bytes of the server, with the first."""
    private = re.compile(rf"{re.escape(str(folder))}|/tmp|job\.json|\.tmp|[\d,]+ bytes|[0-9a-f]{{32}}")
    leaking = [text for text in texts if private.search(text)]
    return {"texts": len(leaking), "first": leaking[:1]}


def refusals(replies: Sequence[Reply]) -> list[str]:
    """Return the bodies of the answers that refuse."""
    return [reply.body.decode("utf-8", "replace") for reply in replies if reply.status >= 400]


def statuses(replies: Sequence[Reply]) -> dict[str, int]:
    """Return how often each status came; a minus: a refusal for now that has no Retry-After."""

    def shown(reply: Reply) -> str:
        later = reply.status in (429, 503, 507) and "retry-after" not in reply.headers
        return f"{'-' if later else ''}{reply.status}"

    return dict(sorted(Counter(map(shown, replies)).items()))


def seconds_to(accepted: Callable[[], bool], most: float = 15.0) -> float | None:
    """Return the seconds until something is accepted; None if it never was in ``most`` seconds."""
    started = time.perf_counter()
    while time.perf_counter() - started < most:
        if accepted():
            return round(time.perf_counter() - started, 2)
        time.sleep(0.1)
    return None


def documents(client: Client, folder: Path, n: int) -> dict[str, Any]:
    """Upload until the disk is full, ``n`` times more, then make room."""
    pair = ("en", "de")
    made, replies = [], []
    for _ in range(n):
        replies.append(document(client, pair, TEXT))
        if replies[-1].status == 200:
            made.append(replies[-1].json)
    ends = [wait_for(client, one) for one in made]
    messages = [end["error_message"] for end in ends if "error_message" in end]
    readiness = {path: client.get(path).status for path in ("/readyz", "/readyz/storage")}
    left = litter(folder / "d")
    resize(folder, LARGE)
    again = seconds_to(lambda: document(client, pair, WORDS).status == 200)
    readiness["/readyz/storage with room"] = client.get("/readyz/storage").status
    return {
        "uploads": statuses(replies), "leaks": leaks([*refusals(replies), *messages], folder), "litter": len(left),
        "readiness": readiness, "ends": dict(Counter(end["status"] for end in ends)), "messages": sorted(set(messages)),
        "seconds_to_the_first_accepted_upload": again,
    }  # fmt: skip


def result(client: Client, folder: Path) -> dict[str, Any]:
    """Fill the disk while a document is being translated; return how that ends."""
    made = document(client, ("en", "de"), TEXT[:50_000]).json
    ballast(folder)
    with contextlib.suppress(TimeoutError):
        end = wait_for(client, made, 75)
        return {"status": end["status"], "message": end.get("error_message", "")}
    return {"status": "translating for ever", "message": ""}


def glossaries(client: Client, folder: Path) -> dict[str, Any]:
    """Store, change and delete glossaries on a full disk, then make room."""
    pair = ("en", "de")
    first = glossary(client, pair).json["glossary_id"]
    entries = {"source_lang": "en", "target_lang": "de", "entries": "cat\tkatze", "entries_format": "tsv"}
    ballast(folder)
    replies = [glossary(client, pair) for _ in range(20)]
    replies.append(client.post("/v3/glossaries", {"name": "g", "dictionaries": [entries]}))
    path = f"/v3/glossaries/{first}"
    for method, where in (("PATCH", path), ("PUT", f"{path}/dictionaries")):
        fields = {"dictionaries": [entries]} if method == "PATCH" else entries
        replies.append(client.ask(method, where, fields))
    unchanged = client.get(f"/v2/glossaries/{first}/entries").body == b"dog\thund"
    left = litter(folder / "g")
    deleted = client.send(Request("DELETE", path)).status
    (folder / "ballast").unlink()
    again = seconds_to(lambda: glossary(client, pair).status == 201)
    return {
        "writes": statuses(replies), "leaks": leaks(refusals(replies), folder), "litter": len(left),
        "the_old_one_is_unchanged": unchanged, "delete": deleted, "seconds_to_the_first_accepted_glossary": again,
    }  # fmt: skip


def inside(run: Path, folder: Path, n: int) -> Json:
    """Run all parts in the namespace where ``folder`` is a small file system."""
    figures: dict[str, Any] = {}
    for part in ("documents", "result", "glossaries"):
        resize(folder, SMALL)
        subprocess.run(["rm", "-rf", *map(str, folder.iterdir())], check=True)
        words = ["--documents", str(folder / "d"), "--glossaries", str(folder / "g"), "--max-document", "1000000"]
        server = Server(run, *words)
        client = Client(server.port, "")
        if part == "documents":
            figures[part] = documents(client, folder, n)
        else:
            figures[part] = (result if part == "result" else glossaries)(client, folder)
        server.stop()
    return figures


def measured(run: Path, n: int = 200) -> Json:
    """Return the figures of all parts, measured in a namespace of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = f'mount -t tmpfs -o size={SMALL} none "$0" && exec "$@"'
        words = [sys.executable, "-m", "benchmarks.full_disk", "inside", str(run.resolve()), folder, str(n)]
        done = subprocess.run(["unshare", "-rm", "bash", "-c", script, folder, *words], env=os.environ,
                              stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
        return json.loads(done.stdout)


def main() -> None:
    """Write the record."""
    if sys.argv[1:2] == ["inside"]:
        print(json.dumps(inside(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--as", dest="half", choices=["before", "after"], required=True)
    options = parser.parse_args()
    record(
        "full-disk", options.half, "python -m benchmarks.full_disk --run RUN --as before|after", measured(options.run)
    )


if __name__ == "__main__":
    main()
