"""The everyday command beside the script that a user of CTranslate2 writes: whole commands, taking turns.

    python -m benchmarks.everyday --run RUN --src FILE --ref FILE [--lines 1000 50000] [--rounds 5]

Each turn starts a process, which reads lines and writes translations with beam 5: ``dragoman translate`` by default,
with ``--fast``, and each without the guard; and the script with float32 and int8, at its best number of workers and
size of batches. The lines are the first of the file, which must have as many.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.environments import PEERS
from benchmarks.harness.rounds import best, say, turns
from benchmarks.record import save, spread
from dragoman.bundle import find_bundle, load_bundle
from dragoman.evaluation.metrics import bleu
from dragoman.toolkits.export import export

OURS: dict[str, tuple[str, ...]] = {
    "default": (), "default without guard": ("--no-guard",), "fast": ("--fast",),
    "fast without guard": ("--fast", "--no-guard"),
}  # fmt: skip
SCRIPTS = {"script float32": "float32", "script int8": "int8"}
SETTINGS = [(workers, threads, batch) for workers, threads in ((2, 1), (1, 2)) for batch in (16, 32, 64)]


def timed(command: Sequence[str | Path], text: bytes) -> tuple[float, list[str]]:
    """Return the seconds of a command from its start to its end, and the lines that it wrote."""
    started = time.perf_counter()
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.decode()[-2000:]}")
    return seconds, done.stdout.decode("utf-8").split("\n")[:-1]


def compare(run: Path, lines: Sequence[str], refs: Sequence[str], rounds: int, language: str) -> dict[str, Any]:
    """Return the figures of all ways on the same lines; the first number of references are scored."""
    text, few = ("".join(line + "\n" for line in some).encode("utf-8") for some in (lines, lines[:1000]))
    with tempfile.TemporaryDirectory() as scratch:
        commands: dict[str, list[str | Path]] = {
            name: [sys.executable, "-m", "dragoman", "translate", run, "--beam-size", "5", *more]
            for name, more in OURS.items()
        }
        chosen: dict[str, Any] = {}
        for name, compute_type in SCRIPTS.items():
            folder = export(run, "ctranslate2", out=Path(scratch) / compute_type, quantization=compute_type)

            def script(
                setting: tuple[int, int, int], folder: Path = folder, compute_type: str = compute_type
            ) -> list[str | Path]:
                return [sys.executable, PEERS / "ct2_script.py", folder, compute_type, *map(str, setting)]

            chosen[name], _ = best(name, SETTINGS, lambda setting, script=script: 1 / timed(script(setting), few)[0])
            commands[name] = script(chosen[name])
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        found: dict[str, list[str]] = {}
        for round_, name in turns(list(commands), rounds):
            spent, found[name] = timed(commands[name], text)
            seconds[name].append(spent)
            say(f"round {round_ + 1}/{rounds}  {name}: {len(lines) / spent:,.1f} lines/s")
    return {
        "settings_of_scripts": {name: list(setting) for name, setting in chosen.items()},
        "ways": {
            name: {
                "lines_per_s": spread([len(lines) / spent for spent in seconds[name]]),
                "bleu": round(bleu(found[name][: len(refs)], refs, language).value, 2),
                "lines_that_differ_from_default": sum(
                    a != b for a, b in zip(found[name], found["default"], strict=True)
                ),
            }
            for name in commands
        },
        "ratios": {
            f"{name} / {peer}": round(
                statistics.median(b / a for a, b in zip(seconds[name], seconds[peer], strict=True)), 3
            )
            for name, peer in [(name, f"script {'int8' if 'fast' in name else 'float32'}") for name in OURS]
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--lines", type=int, nargs="+", default=[1000, 50_000])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    texts, refs = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in (given.src, given.ref))
    if len(texts) < max(given.lines) or len(refs) < max(given.lines):
        parser.error(f"{given.src} and {given.ref} must have {max(given.lines):,} lines each")
    language = load_bundle(find_bundle(given.run)).config.data.tgt_lang
    figures = {}
    for count in given.lines:
        rounds = given.rounds if count <= 5000 else min(2, given.rounds)
        figures[str(count)] = compare(given.run, texts[:count], refs[:count], rounds, language)
    counts = " ".join(map(str, given.lines))
    command = f"python -m benchmarks.everyday --run RUN --src SRC --ref REF --lines {counts}"
    save("everyday", {"rounds": given.rounds, "lines": figures}, command, ("torch", "numpy", "ctranslate2"))


if __name__ == "__main__":
    main()
