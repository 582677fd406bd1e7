"""Preparing a corpus (learn subwords, encode, store): seconds and memory; target 60 s and 1 GiB for 165,813 pairs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.record import save, spread

CHILD = """
import json, re, sys, time
from pathlib import Path
from dragoman.config import Config
from dragoman.training.preparation import prepare
from dragoman.progress import Ticker
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
src, tgt, run = sys.argv[1:]
config = Config.from_mapping({"data": {"train": {"src": src, "tgt": tgt}}})
idle, started = peak(), time.perf_counter()
Path(run).mkdir()
prepare(config, Path(run), Ticker(quiet=True))
seconds = time.perf_counter() - started
size = sum(path.stat().st_size for path in Path(run).rglob("*"))
found = {"seconds": seconds, "idle_mib": idle, "mib": peak() - idle, "store_mib": size / 2**20}
print(json.dumps({name: round(value, 3) for name, value in found.items()}))
"""


def prepared(src: Path, tgt: Path, run: Path) -> dict[str, Any]:
    """Prepare a corpus in a fresh process: seconds, memory above that of the idle process, size of what it wrote."""
    done = subprocess.run([sys.executable, "-c", CHILD, src, tgt, run], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Prepare the corpus in three fresh processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with tatoeba-en-de/train.en and train.de")
    args = parser.parse_args()
    corpus = args.data / "tatoeba-en-de"
    found = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            found.append(prepared(corpus / "train.en", corpus / "train.de", Path(folder) / "run"))
    with (corpus / "train.en").open("rb") as file:
        pairs = sum(1 for _ in file)
    figures = {
        "pairs": pairs,
        "seconds": spread([f["seconds"] for f in found]),
        "memory_above_idle_mib": spread([f["mib"] for f in found]),
        "idle_mib": round(found[0]["idle_mib"]),
        "store_mib": round(found[0]["store_mib"], 1),
    }
    save("prepare_tatoeba", figures, "python -m benchmarks.prepare --data DATA", ("numpy", "sentencepiece"))


if __name__ == "__main__":
    main()
