"""The same model behind LibreTranslate's own server and behind ``dragoman serve``: sentences a second, in turns.

    python -m benchmarks.libretranslate --run runs/multi30k --src test.en --ref test.de [--rounds 3] [--clients 1 64]

The run is exported as a package of Argos Translate in int8, which LibreTranslate loads unmodified in an environment of
its own (below ``.bench/``; ``--threads`` 64, so that no client waits for a thread). dragoman serves the same run with
the same engine and precision, CTranslate2 in int8; Argos' beam of 4 is asked for there too, and dragoman's own float32
stands beside it. One server runs at a time; clients are threads of this process, on the same cores, and each text is
asked for once.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import subprocess
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


class LibreTranslate:
    """Its server as a process, offline, with one package."""

    def __init__(self, python: Path, package: Path, home: Path) -> None:
        environment = {**os.environ, "HOME": str(home), "LT_DISABLE_FILES_TRANSLATION": "true"}
        environment.pop("PYTHONPATH", None)
        subprocess.run([python, "-c", INSTALL, package], env=environment, check=True, capture_output=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [
            str(python.parent / "libretranslate"), "--host", "127.0.0.1", "--port", str(self.port), "--threads", "64",
            "--load-only", "en,de",
        ]  # fmt: skip
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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


def bleu(found: Json, texts: Sequence[str], refs: Sequence[str]) -> float:
    """Of the translations of all texts."""
    from dragoman.evaluation.metrics import bleu_metric

    return round(bleu_metric("de").corpus_score([found[text] for text in texts], [list(refs)]).score, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 64])
    args = parser.parse_args()
    texts, refs = (
        path.read_text(encoding="utf-8").split("\n")[: args.lines] for path in (args.src, args.ref)
    )  # fmt: skip
    python = python_of("libretranslate")
    systems: Json = {name: {f"{n}_clients": [] for n in args.clients} for name in ("libretranslate", "int8", "fp32")}
    said: Json = {}
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "model.argosmodel"
        subprocess.run(
            ["dragoman", "export", str(args.run), "--to", "argos", "--quantization", "int8", "--out", str(package)],
            check=True, capture_output=True,
        )  # fmt: skip
        starts = {
            "libretranslate": lambda: LibreTranslate(python, package, Path(folder)),
            "int8": lambda: Server(args.run, "--engine", "ctranslate2", "--precision", "int8", "--max-wait", "60"),
            "fp32": lambda: Server(args.run, "--max-wait", "60"),
        }
        for _ in range(args.rounds):
            for name, start in starts.items():
                ask = ask_libre if name == "libretranslate" else ask_native
                with running(start()) as server:
                    load(server.port, 4, texts[:40], asking=ask)  # warm
                    for n in args.clients:
                        figures, found = load(server.port, n, texts[:100] if n == 1 else texts, asking=ask)
                        systems[name][f"{n}_clients"].append(figures)
                        said.setdefault(name, {}).update(found)
    figures: Json = {"lines": len(texts), "rounds": args.rounds}
    for name, rows in systems.items():
        figures[name] = {
            n: {
                "sentences_per_s": spread([each["sentences_per_s"] for each in of]),
                "p50_ms": spread([each["p50_ms"] for each in of]), "p99_ms": spread([each["p99_ms"] for each in of]),
                "statuses": [each["statuses"] for each in of],
            }
            for n, of in rows.items()
        }  # fmt: skip
        figures[name]["bleu"] = bleu(said[name], texts, refs)
    figures["same_texts_int8"] = sum(said["int8"][text] == said["libretranslate"][text] for text in texts)
    for name in ("int8", "fp32"):
        figures[f"{name}_against_libretranslate"] = {
            n: spread(
                [
                    ours["sentences_per_s"] / theirs["sentences_per_s"]
                    for ours, theirs in zip(systems[name][n], systems["libretranslate"][n], strict=True)
                ]
            )
            for n in systems[name]
        }
    show = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    peer = subprocess.run([python, "-c", show, *VERSIONS], check=True, capture_output=True, text=True)
    figures["peer_versions"] = json.loads(peer.stdout)
    figures["our_ctranslate2"] = version("ctranslate2")
    command = f"python -m benchmarks.libretranslate --run RUN --src {args.src.name} --ref {args.ref.name}"
    save("libretranslate", figures, f"{command} --lines {args.lines} --rounds {args.rounds}", ("torch", "fastapi"))


if __name__ == "__main__":
    main()
