"""The same model behind LibreTranslate's own server and behind ``dragoman serve``: sentences a second, in turns.

    python -m benchmarks.questions.libretranslate --run RUN --src test.en --ref test.de [--rounds 3] [--peer-threads 1]

The run is exported as a package of Argos Translate in int8, which LibreTranslate loads unmodified in an environment of
its own (below ``.bench/``; ``--threads`` 64, so that no client waits for a thread; ``--peer-threads`` 1 for what
searches, which makes it much faster than its own choice). dragoman serves the same run with the same engine and
precision, CTranslate2 in int8, and Argos' beam of 4 is asked for there too: as it comes, and without its guard, which
LibreTranslate has nothing like. dragoman's own float32 stands beside it. One server runs at a time; clients are threads
of this process, on the same cores, and each text is asked for once.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness.environments import python_of
from benchmarks.record import save, spread
from benchmarks.serving import Server, load

Json = Any
INSTALL = "import argostranslate.package as p, sys; p.install_from_path(sys.argv[1])"
VERSIONS = ("libretranslate", "argos-translate-lt", "ctranslate2")


def offline(home: Path) -> dict[str, str]:
    """The environment of LibreTranslate: nothing of ours, and a home of its own."""
    own = {**os.environ, "HOME": str(home), "LT_DISABLE_FILES_TRANSLATION": "true"}
    own.pop("PYTHONPATH", None)
    return own


def install(python: Path, package: Path, home: Path) -> None:
    """Put a package where LibreTranslate finds it."""
    subprocess.run([python, "-c", INSTALL, package], env=offline(home), check=True, capture_output=True)


class LibreTranslate:
    """Its server as a process, offline."""

    def __init__(self, python: Path, home: Path, threads: int | None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [
            str(python.parent / "libretranslate"), "--host", "127.0.0.1", "--port", str(self.port), "--threads", "64",
            "--load-only", "en,de",
        ]  # fmt: skip
        settings = offline(home) | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
        self.process = subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("LibreTranslate did not start")
            time.sleep(0.5)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/languages")
            return connection.getresponse().status == 200
        return False

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@contextlib.contextmanager
def running(server: Any) -> Iterator[Any]:
    """A server that is stopped at the end."""
    try:
        yield server
    finally:
        server.stop()


def ask_libre(text: str) -> tuple[str, Json]:
    """LibreTranslate's route and body."""
    return "/translate", {"q": text, "source": "en", "target": "de"}


def ask_native(text: str) -> tuple[str, Json]:
    """Ours, with Argos' beam."""
    return "/v1/translate", {"text": text, "beam_size": 4}


def ask_unguarded(text: str) -> tuple[str, Json]:
    """The same without the guard."""
    return "/v1/translate", {"text": text, "beam_size": 4, "guard": False}


SYSTEMS = {
    "libretranslate": ("libretranslate", ask_libre),
    "int8": ("int8", ask_native),
    "int8_unguarded": ("int8", ask_unguarded),
    "fp32": ("fp32", ask_native),
}
"""What is measured: which server, asked how."""


def bleu(found: Json, texts: Sequence[str], refs: Sequence[str]) -> float:
    """Of the translations of all texts."""
    from dragoman.evaluation import metrics

    return round(metrics.bleu([found[text] for text in texts], refs, "de").value, 2)


def measured(servers: Json, systems: Json, said: Json, texts: Sequence[str], clients: Sequence[int]) -> None:
    """One round: each server is started, warmed and asked; what comes is added to ``systems`` and ``said``."""
    for served, start in servers.items():
        began = time.perf_counter()
        with running(start()) as server:
            for name, ask in ((name, ask) for name, (own, ask) in SYSTEMS.items() if own == served):
                load(server.port, 64, texts[:128], asking=ask)  # warm
                for n in clients:
                    figures, found = load(server.port, n, texts[:100] if n == 1 else texts, asking=ask)
                    systems[name].setdefault(f"{n}_clients", []).append(figures)
                    said[name].update(found)
                    print(f"{name}, {n} clients: {figures}", file=sys.stderr, flush=True)
        print(f"{served}: {time.perf_counter() - began:.1f} s in all", file=sys.stderr, flush=True)


def summary(systems: Json, said: Json, texts: Sequence[str], refs: Sequence[str]) -> Json:
    """The figures of all rounds so far."""
    figures: Json = {}
    for name, rows in systems.items():
        figures[name] = {
            n: {
                **{key: spread([each[key] for each in of]) for key in ("sentences_per_s", "p50_ms", "p99_ms")},
                "statuses": [each["statuses"] for each in of],
            }
            for n, of in rows.items()
        }
        figures[name]["bleu"] = bleu(said[name], texts, refs)
    theirs = systems["libretranslate"]
    for name in (name for name in SYSTEMS if name != "libretranslate"):
        figures[name]["same_texts"] = sum(said[name][text] == said["libretranslate"][text] for text in texts)
        figures[f"{name}_against_libretranslate"] = {
            n: {
                key: spread([ours[key] / other[key] for ours, other in zip(of, theirs[n], strict=True)])
                for key in ("sentences_per_s", "p99_ms")
            }
            for n, of in systems[name].items()
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-threads", type=int, help="OMP_NUM_THREADS of LibreTranslate; default: its own choice")
    parser.add_argument("--clients", type=int, nargs="+", default=[64])
    args = parser.parse_args()
    texts, refs = (
        path.read_text(encoding="utf-8").split("\n")[: args.lines] for path in (args.src, args.ref)
    )  # fmt: skip
    python = python_of("libretranslate")
    show = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    peer = subprocess.run([python, "-c", show, *VERSIONS], check=True, capture_output=True, text=True)
    systems: Json = {name: {} for name in SYSTEMS}
    said: Json = {name: {} for name in SYSTEMS}
    command = f"python -m benchmarks.questions.libretranslate --run RUN --src {args.src.name} --ref {args.ref.name}"
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "model.argosmodel"
        subprocess.run(
            [sys.executable, "-m", "dragoman", "export", str(args.run), "--format", "argos", "--quantization", "int8",
             "--out", str(package)],
            check=True, capture_output=True,
        )  # fmt: skip
        install(python, package, Path(folder))
        servers = {
            "libretranslate": lambda: LibreTranslate(python, Path(folder), args.peer_threads),
            "int8": lambda: Server(args.run, "--engine", "ctranslate2", "--precision", "int8", "--max-wait", "60"),
            "fp32": lambda: Server(args.run, "--max-wait", "60"),
        }
        for n_rounds in range(1, args.rounds + 1):
            measured(servers, systems, said, texts, args.clients)
            figures = {
                "lines": len(texts), "rounds": n_rounds, "peer_threads": args.peer_threads,
                **summary(systems, said, texts, refs),
                "peer_versions": json.loads(peer.stdout), "our_ctranslate2": version("ctranslate2"),
            }  # fmt: skip
            given = f"--lines {args.lines} --rounds {n_rounds}"
            given += f" --peer-threads {args.peer_threads}" if args.peer_threads else ""
            save("libretranslate", figures, f"{command} {given}", ("torch", "fastapi"))  # so far


if __name__ == "__main__":
    main()
