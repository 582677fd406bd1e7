"""A server under load: one client and many, overload, clients that leave, and its end; on loopback.

    python -m benchmarks.serving --run runs/multi30k --src test.en [--rounds 3] [--seconds 60] [-- --engine ctranslate2]

Clients are threads of this process, on the same cores as the server. ``translate`` is the command line's own way on the
same sentences in windows of 64, in turns with the server, with as many workers and with one core. Each side has seen
batches of these shapes before it is timed: the first of a shape costs its compiled products. Processor time is the
server's own for each request, and the translator's on one core. Overload asks at four times the capacity seen, at a
steady rate however late answers are, for ``--seconds``; nobody waits longer than he would be let in for.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import save, spread

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
        self._said = self.process.stderr
        for line in self._said:
            if found := re.search(r"on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise SystemExit("the server did not start")
        self.logged: list[str] = []
        self._reading = threading.Thread(target=lambda: self.logged.extend(self._said), daemon=True)
        self._reading.start()

    def rss_mib(self) -> float:
        """Its resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def cpu_s(self) -> float:
        """Its processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def gauge(self, name: str) -> float:
        """A figure of ``/metrics``."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics")
            found = re.search(rf"^{name} (\S+)", connection.getresponse().read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def stop(self) -> int:
        """Ask it to end, if it has not, and wait."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self._reading.join(10)
        self._said.close()
        return status


class Client:
    """One connection that is kept."""

    def __init__(self, port: int, asking: Asking) -> None:
        self.asking, self.connection = asking, http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def close(self) -> None:
        """It is not needed any more."""
        self.connection.close()

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
        with contextlib.closing(Client(port, asking or natively)) as client:
            ask_with(client)

    def ask_with(client: Client) -> None:
        nonlocal place
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


DIRECT = """
import json, statistics, sys, time
from pathlib import Path
import torch
from dragoman.translation.translator import Translator
run, src, n, cores, engine, precision = sys.argv[1:]
torch.set_num_threads(int(cores) or torch.get_num_threads())
texts = Path(src).read_text(encoding="utf-8").split(chr(10))[: int(n)]
translator = Translator.load(run)
plan = translator.plan(engine=engine, precision=precision)
windows = [texts[i : i + 64] for i in range(0, len(texts), 64)]
def go():
    started, cpu = time.perf_counter(), time.process_time()
    found = [one.text for window in windows for one in translator.translate(window, plan)]
    return found, len(texts) / (time.perf_counter() - started), 1000 * (time.process_time() - cpu) / len(texts)
go()
found, rate, cpu_ms = go()
alone, cpu = [], time.process_time()
for text in texts[:100]:
    started = time.perf_counter()
    translator.translate([text], plan)
    alone.append(time.perf_counter() - started)
one_cpu_ms = 1000 * (time.process_time() - cpu) / len(alone)
print(json.dumps({"sentences_per_s": rate, "cpu_ms": cpu_ms, "one_ms": 1000 * statistics.median(alone),
                  "one_cpu_ms": one_cpu_ms, "texts": found}))
"""


def directly(run: Path, src: Path, n: int, engine: Sequence[str], cores: int = 0) -> Json:
    """The translator in a process of its own: windows of 64, and one sentence at a time; 0 cores: as many as usual."""
    options = dict(zip((name.lstrip("-") for name in engine[::2]), engine[1::2], strict=True))
    argv = [str(run), str(src), str(n), str(cores), options.get("engine", "torch"), options.get("precision", "fp32")]
    done = subprocess.run([sys.executable, "-c", DIRECT, *argv], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


async def _arrival(port: int, text: str, times: dict[int, list[float]], idle: list[Any]) -> None:
    """One request of an overload, on a connection that is free and open, or a new one."""
    body = json.dumps({"text": text}).encode()
    head = "POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    started = time.perf_counter()
    try:
        while idle and idle[-1][0].at_eof():  # the server closes what was idle for 5 s, as servers do
            idle.pop()[1].close()
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        said = await reader.readuntil(b"\r\n\r\n")
        status = int(said[9:12])
        found = re.search(rb"content-length: (\d+)", said.lower())
        await reader.readexactly(int(found[1]) if found else 0)
        if status == 429 and b"retry-after" not in said.lower():
            status = -429
        idle.append((reader, writer))
    except (OSError, asyncio.IncompleteReadError):
        status = 0
    times.setdefault(status, []).append(time.perf_counter() - started)


async def _arrivals(port: int, texts: Sequence[str], rate: float, seconds: float) -> dict[int, list[float]]:
    times: dict[int, list[float]] = {}
    idle: list[Any] = []
    tasks = set()
    started = time.perf_counter()
    for i in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, started + i / rate - time.perf_counter()))
        tasks.add(task := asyncio.create_task(_arrival(port, texts[i % len(texts)], times, idle)))
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    for _, writer in idle:
        writer.close()
    return times


def overload(server: Server, texts: Sequence[str], capacity: float, seconds: float) -> Json:
    """Requests at four times the capacity, at a steady rate; ``0`` among the statuses: a connection broke."""
    stop, probes = threading.Event(), []

    def probe() -> None:
        while not stop.wait(0.25):
            started = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request("GET", "/livez")
            connection.getresponse().read()
            connection.close()
            probes.append(time.perf_counter() - started)

    before = server.rss_mib()
    prober = threading.Thread(target=probe)
    prober.start()
    started = time.perf_counter()
    times = asyncio.run(_arrivals(server.port, texts, 4 * capacity, seconds))
    took = time.perf_counter() - started
    stop.set()
    prober.join()
    done = times.get(200, [])
    return {
        "asked_per_s": round(4 * capacity, 1), "seconds": round(took, 1),
        "statuses": {str(status): len(each) for status, each in sorted(times.items())},
        "sentences_per_s": round(len(done) / took, 2), "goodput": round(len(done) / took / capacity, 3),
        "p50_ms": round(1000 * percentile(done, 0.5), 1), "p99_ms": round(1000 * percentile(done, 0.99), 1),
        "rejected_p99_ms": round(1000 * percentile(times.get(429, []), 0.99), 1),
        "livez_p99_ms": round(1000 * percentile(probes, 0.99), 1),
        "memory_growth_mib": round(server.rss_mib() - before, 1),
    }  # fmt: skip


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
        with contextlib.closing(Client(server.port, natively)) as client:
            results.append(client.ask("\n".join(texts[number : number + 10]))[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    status = server.stop()
    for thread in threads:
        thread.join()
    return {"in_flight": 20, "finished": results.count(200), "exit": status}


def rounds(server: Server, args: argparse.Namespace, texts: Sequence[str]) -> Json:
    """Server and translator in turns."""
    rows: dict[str, list[Json]] = {"direct": [], "one_core": [], "one_client": [], "many": []}
    differ = 0
    for _ in range(args.rounds):
        rows["direct"].append(directly(args.run, args.src, len(texts), args.rest))
        rows["one_core"].append(directly(args.run, args.src, len(texts), args.rest, 1))
        expected = dict(zip(texts, rows["direct"][-1].pop("texts"), strict=True))
        for name, n_clients, some in (("one_client", 1, texts[:100]), ("many", 64, texts)):
            cpu = server.cpu_s()
            figures, found = load(server.port, n_clients, some)
            rows[name].append({**figures, "cpu_ms": 1000 * (server.cpu_s() - cpu) / len(some)})
            differ += sum(text != expected[each] for each, text in found.items())

    def of(name: str, key: str) -> list[float]:
        return [row[key] for row in rows[name]]

    def pairs(ours: tuple[str, str], theirs: tuple[str, str], by: Callable[[float, float], float]) -> Json:
        return spread([by(a, b) for a, b in zip(of(*ours), of(*theirs), strict=True)])

    return {
        "one_client": {key: spread(of("one_client", key)) for key in ("sentences_per_s", "p50_ms", "p99_ms", "cpu_ms")},
        "64_clients": {key: spread(of("many", key)) for key in ("sentences_per_s", "p50_ms", "p99_ms", "cpu_ms")},
        "translate_windows_of_64": {key: spread(of("direct", key)) for key in ("sentences_per_s", "cpu_ms", "one_ms")},
        "translate_on_one_core": {
            key: spread(of("one_core", key)) for key in ("sentences_per_s", "cpu_ms", "one_ms", "one_cpu_ms")
        },
        "64_against_1": pairs(("many", "sentences_per_s"), ("one_client", "sentences_per_s"), lambda a, b: a / b),
        "64_clients_against_translate": pairs(
            ("many", "sentences_per_s"), ("direct", "sentences_per_s"), lambda a, b: a / b
        ),
        "server_overhead_ms": pairs(("one_client", "p50_ms"), ("direct", "one_ms"), lambda a, b: a - b),
        "server_overhead_to_one_core_ms": pairs(("one_client", "p50_ms"), ("one_core", "one_ms"), lambda a, b: a - b),
        "server_overhead_cpu_ms": pairs(("one_client", "cpu_ms"), ("one_core", "one_cpu_ms"), lambda a, b: a - b),
        "texts_that_differ": differ,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--name", default="serving")
    parser.add_argument("rest", nargs="*", help="options of the server, such as --engine ctranslate2, after --")
    args = parser.parse_args()
    texts = args.src.read_text(encoding="utf-8").split("\n")[:-1][: args.lines]
    server = Server(args.run, *args.rest)
    load(server.port, 1, texts[:100])
    load(server.port, 64, texts)
    load(server.port, 64, texts)
    figures = {"sentences": len(texts), "rounds": args.rounds, "server_options": args.rest}
    figures |= rounds(server, args, texts)
    figures["overload"] = overload(server, texts, figures["64_clients"]["sentences_per_s"]["median"], args.seconds)
    figures |= {"clients_that_leave": leaving(server, texts), "sigterm": ending(server, texts)}
    command = f"python -m benchmarks.serving --run RUN --src {args.src.name}"
    given = f"--rounds {args.rounds} --seconds {args.seconds:g}"
    save(args.name, figures, " ".join([command, given, *(["--", *args.rest] if args.rest else [])]),
         ("torch", "fastapi", "uvicorn"))  # fmt: skip


if __name__ == "__main__":
    main()
