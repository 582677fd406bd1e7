"""A server under load: one client and many, overload, clients that leave, and its end; on loopback.

    python -m benchmarks.serving --run runs/multi30k --src test.en [--seconds 30] [--engine ctranslate2 ...]

Clients are threads of this process, on the same cores as the server. ``translate`` is the command line's own way on the
same sentences in windows of 64. Overload asks with four times as many clients as keep the server just busy, without a
pause, for ``--seconds``.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import save

Json = Any
Asking = Callable[[str], tuple[str, Json]]
"""The route and the body to ask with for a text."""


def natively(text: str) -> tuple[str, Json]:
    """By our own API."""
    return "/v1/translate", {"text": text}


class Server:
    """``dragoman serve`` as a process."""

    def __init__(self, run: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "dragoman", "serve", str(run), "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise SystemExit("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def rss_mib(self) -> float:
        """Its resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def gauge(self, name: str) -> float:
        """A figure of ``/metrics``."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/metrics")
        found = re.search(rf"^{name} (\S+)", connection.getresponse().read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def stop(self) -> int:
        """Ask it to end, and wait."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Client:
    """One connection that is kept."""

    def __init__(self, port: int, asking: Asking) -> None:
        self.asking, self.connection = asking, http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, text: str) -> tuple[int, str]:
        """Status and translation."""
        route, body = self.asking(text)
        try:
            self.connection.request("POST", route, json.dumps(body).encode(), {"content-type": "application/json"})
            answer = self.connection.getresponse()
            said = json.loads(answer.read())
        except (OSError, http.client.HTTPException):
            self.connection.close()
            raise
        if answer.status != 200:
            return answer.status, ""
        return 200, said["translations"][0]["text"] if "translations" in said else said["translatedText"]


def load(
    port: int, n_clients: int, texts: Sequence[str], seconds: float | None = None, asking: Asking | None = None
) -> tuple[Json, Json]:
    """Clients that ask without a pause: each text once, or for some seconds."""
    lock, place = threading.Lock(), 0
    times: dict[int, list[float]] = {}
    found: dict[str, str] = {}
    until = None if seconds is None else time.perf_counter() + seconds

    def work() -> None:
        nonlocal place
        client = Client(port, asking or natively)
        while until is None or time.perf_counter() < until:
            with lock:
                i, place = place, place + 1
            if until is None and i >= len(texts):
                return
            started = time.perf_counter()
            status, text = client.ask(texts[i % len(texts)])
            with lock:
                times.setdefault(status, []).append(time.perf_counter() - started)
                if status == 200:
                    found[texts[i % len(texts)]] = text

    threads = [threading.Thread(target=work) for _ in range(n_clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    done = times.get(200, [])
    figures = {
        "clients": n_clients,
        "sentences_per_s": round(len(done) / took, 2),
        "p50_ms": round(1000 * percentile(done, 0.5), 1),
        "p99_ms": round(1000 * percentile(done, 0.99), 1),
        "statuses": dict(sorted(Counter({status: len(each) for status, each in times.items()}).items())),
    }
    if 429 in times:
        figures["rejected_p99_ms"] = round(1000 * percentile(times[429], 0.99), 1)
    return figures, found


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest rank; nan of nothing."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def directly(run: Path, texts: Sequence[str], engine: Sequence[str]) -> tuple[Json, Json]:
    """The translator without a server: windows of 64, and one sentence at a time."""
    from dragoman.translation.translator import Translator

    options = dict(zip((name.lstrip("-") for name in engine[::2]), engine[1::2], strict=True))
    translator = Translator.load(run)
    plan = translator.plan(engine=options.get("engine", "torch"), precision=options.get("precision", "fp32"))
    translator.translate(list(texts[:64]), plan)
    started = time.perf_counter()
    found = {}
    for i in range(0, len(texts), 64):
        window = list(texts[i : i + 64])
        found.update(zip(window, (one.text for one in translator.translate(window, plan)), strict=True))
    rate = len(texts) / (time.perf_counter() - started)
    alone = []
    for text in texts[:100]:
        started = time.perf_counter()
        translator.translate([text], plan)
        alone.append(time.perf_counter() - started)
    return {"sentences_per_s": round(rate, 2), "one_ms": round(1000 * statistics.median(alone), 2)}, found


def leaving(server: Server, texts: Sequence[str]) -> Json:
    """50 clients that ask for long texts and leave: seconds until the queue is empty."""
    body = json.dumps({"text": "\n".join(texts[:200])}).encode()
    clients = []
    for _ in range(50):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/v1/translate", body, {"content-type": "application/json"})
        clients.append(connection)
    time.sleep(1)
    before = server.gauge("dragoman_queue_sentences")
    started = time.perf_counter()
    for connection in clients:
        connection.close()
    while server.gauge("dragoman_queue_sentences") and time.perf_counter() - started < 30:
        time.sleep(0.02)
    queue = time.perf_counter() - started
    while server.gauge("dragoman_running_sentences") and time.perf_counter() - started < 30:
        time.sleep(0.02)
    return {
        "clients": 50, "sentences_waiting": before, "queue_empty_after_s": round(queue, 2),
        "nothing_runs_after_s": round(time.perf_counter() - started, 2),
    }  # fmt: skip


def ending(server: Server, texts: Sequence[str]) -> Json:
    """SIGTERM with 20 requests in flight: how many finish."""
    results: list[int] = []

    def work(number: int) -> None:
        results.append(Client(server.port, natively).ask("\n".join(texts[number : number + 10]))[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    status = server.stop()
    for thread in threads:
        thread.join()
    return {"in_flight": 20, "finished": results.count(200), "exit": status}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--name", default="serving")
    parser.add_argument("rest", nargs="*", help="options of the server, such as --engine ctranslate2, after --")
    args = parser.parse_args()
    texts = args.src.read_text(encoding="utf-8").split("\n")[:-1]
    server = Server(args.run, *args.rest)
    one, by_one = load(server.port, 1, texts[:150])
    many, by_many = load(server.port, 64, texts)
    direct, by_itself = directly(args.run, texts, args.rest)
    memory = server.rss_mib()
    capacity = many["sentences_per_s"]
    over, _ = load(server.port, 256, texts, args.seconds)
    figures = {
        "sentences": len(texts),
        "server_options": args.rest,
        "one_client": one,
        "64_clients": many,
        "64_against_1": round(capacity / one["sentences_per_s"], 2),
        "translate_windows_of_64": direct,
        "64_clients_against_translate": round(capacity / direct["sentences_per_s"], 3),
        "server_overhead_ms": round(one["p50_ms"] - direct["one_ms"], 2),
        "texts_that_differ": sum(by_many[text] != by_itself[text] for text in by_many)
        + sum(by_one[text] != by_itself[text] for text in by_one),
        "overload": {**over, "seconds": args.seconds, "goodput": round(over["sentences_per_s"] / capacity, 3),
                     "memory_growth_mib": round(server.rss_mib() - memory, 1)},
        "clients_that_leave": leaving(server, texts),
        "sigterm": ending(server, texts),
    }  # fmt: skip
    command = f"python -m benchmarks.serving --run RUN --src {args.src.name} --seconds {args.seconds:g}"
    save(args.name, figures, " ".join([command, *(["--", *args.rest] if args.rest else [])]),
         ("torch", "fastapi", "uvicorn"))  # fmt: skip


if __name__ == "__main__":
    main()
