"""How time and memory grow with sentence length, corpus, batch, beam, vocabulary and layers.

Each figure comes from a process of its own. Memory is resident, in MiB: ``peak_mib`` is the process, ``mib`` what the
work took above all that is kept (code, weights, gradients, the optimiser's moments). Exponents are the slopes of
least-squares lines through the logarithms, of all sizes and of the three largest; ``off_percent`` is how far the points
lie from the line. Sizes are those of the preset small unless a part says otherwise; decoding is beam 5 in float32, 16
steps that random weights cannot end sooner.

A size for which there is no memory is left out and named in ``no_memory``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.harness import growth as measures
from benchmarks.harness.peer import precisions
from benchmarks.harness.rounds import say
from benchmarks.prepare import prepared
from benchmarks.record import RESULTS, machine, save
from dragoman.data import phrasebook

Figures = dict[str, Any]
PACKAGES = ("torch", "numpy", "sentencepiece")


def length(most: int | None) -> Figures:
    """Attention (one sentence, 8 heads of 64), forward and backward; and whole training steps at batch 1."""
    sizes = _up_to([256, 512, 1024, 2048, 4096, 8192], most)
    able, left_out = precisions()
    kinds = [(kind, precision) for kind in ("plain", "written_out", "fused") for precision in able]
    attention = {
        f"{kind}_{dtype}": series("attention", sizes, lambda n, k=kind, d=dtype: dict(kind=k, dtype=d, length=n))
        for kind, dtype in kinds
    }
    training = {
        kind: series("training", sizes, lambda n, k=kind: dict(rows=1, length=n, attention=k))
        for kind in ("as_chosen", "written_out", "fused")
    }
    return {"attention": attention, "training": training, "left_out": left_out}


def corpus(most: int | None) -> Figures:
    """Text of the phrasebook: preparing it, opening the store and drawing the first batch (files cached, and not)."""
    sizes = _up_to([10_000, 100_000, 1_000_000, 10_000_000], most)
    found: list[Figures] = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            src, tgt, run = Path(folder) / "x.en", Path(folder) / "x.de", Path(folder) / "run"
            write_pairs(n, src, tgt)
            row = {f"prepare_{name}": value for name, value in prepared(src, tgt, run).items()}
            for name, evict in (("cold", True), ("warm", False)):
                if evict:
                    forget_files(run / "store/train")
                first = run_in_child("first_batch", folder=str(run / "store/train"))
                row |= {f"first_batch_{name}_s": first["seconds"], f"first_batch_{name}_mib": first["mib"]}
        row["prepare_pairs_per_s"] = round(n / row["prepare_seconds"])
        say(f"corpus {n:,}: {row}")
        found.append(row)
    columns = {key: [row[key] for row in found] for key in found[0]}
    wanted = ("prepare_seconds", "prepare_mib", "first_batch_warm_s", "first_batch_warm_mib", "first_batch_cold_s")
    return {"size": sizes, **columns, "growth": {key: growth(sizes, columns[key]) for key in wanted}}


def write_pairs(count: int, src_path: Path, tgt_path: Path, at_once: int = 20_000) -> None:
    """As ``phrasebook.write`` does, in parts of so many pairs by all cores: ten million take a core over 20 minutes."""
    starts = range(0, count, at_once)
    with src_path.open("wb") as src, tgt_path.open("wb") as tgt, ProcessPoolExecutor() as pool:
        for source, target in pool.map(_part, starts, (min(at_once, count - start) for start in starts)):
            src.write(source)
            tgt.write(target)


def _part(start: int, count: int) -> tuple[bytes, bytes]:
    sides = zip(*phrasebook.pairs(count, start=start), strict=True)
    source, target = ("".join(line + "\n" for line in side).encode() for side in sides)
    return source, target


def batch(most: int | None) -> Figures:
    """Rows of a training step (32 tokens each), and of a search."""
    training = _up_to([1, 2, 4, 8, 16, 32, 64, 128, 256], most)
    return {
        "training": series("training", training, lambda n: dict(rows=n)),
        "decoding": series("decoding", _up_to([1, 2, 4, 8, 16, 32, 64], most), lambda n: dict(rows=n)),
    }


def beam(most: int | None) -> Figures:
    """The beam of a search of 8 sentences."""
    return {"decoding": series("decoding", _up_to([1, 2, 4, 8, 16, 32], most), lambda n: dict(beam_size=n))}


def vocabulary(most: int | None) -> Figures:
    """Subwords: the embedding, the generator and the loss."""
    return _both(_up_to([1000, 2000, 4000, 8000, 16_000, 32_000, 64_000], most), "vocab_size")


def layers(most: int | None) -> Figures:
    """Layers of the encoder, and as many of the decoder."""
    return _both(_up_to([1, 2, 3, 4, 6, 8, 12, 16], most), "n_layers")


PARTS: tuple[Callable[[int | None], Figures], ...] = (length, corpus, batch, beam, vocabulary, layers)


def growth(sizes: Sequence[float], values: Sequence[float]) -> Figures:
    """The exponents of a power law through points; None where fewer than two of them are above 0."""
    points = [(math.log(size), math.log(value)) for size, value in zip(sizes, values, strict=True) if value > 0]
    return {"all": _line(points), "last_three": _line(points[-3:])}


def _line(points: Sequence[tuple[float, float]]) -> Figures | None:
    if len(points) < 2:
        return None
    slope, start = statistics.linear_regression(*zip(*points, strict=True))
    off = math.sqrt(statistics.fmean((y - slope * x - start) ** 2 for x, y in points))
    return {"exponent": round(slope, 3), "off_percent": round(100 * math.expm1(off), 1), "points": len(points)}


def _up_to(sizes: list[int], most: int | None) -> list[int]:
    return [size for size in sizes if most is None or size <= most]


def _both(sizes: list[int], name: str) -> Figures:
    return {what: series(what, sizes, lambda n: {name: n}) for what in ("training", "decoding")}


def series(measure: str, sizes: Sequence[int], arguments: Callable[[int], Figures]) -> Figures:
    """One measure at each size, and how it grows."""
    rows = []
    no_memory = []
    for size in sizes:
        found = run_in_child(measure, **arguments(size))
        say(f"{measure} {arguments(size)}: {found}")
        if found.get("no_memory"):
            no_memory.append(size)
        else:
            rows.append({"size": size, **found})
    columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
    fits = {key: growth(columns["size"], columns[key]) for key in ("seconds", "mib")} if rows else {}
    return {**columns, "no_memory": no_memory, "growth": fits}


def run_in_child(measure: str, **arguments: Any) -> Figures:
    """Measure in a fresh process."""
    command = [sys.executable, "-m", measures.__name__, measure, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    if done.returncode:
        raise RuntimeError(f"{measure} {arguments}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    found: Figures = json.loads(done.stdout)
    return found


def forget_files(folder: Path) -> None:
    """Have the files of a folder read from the disk again."""
    os.sync()
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _measured_before(results: Path) -> Figures:
    """Parts that were measured on this machine before."""
    path = results / "growth.json"
    if not path.exists():
        return {}
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["machine"] != machine():
        say(f"{path.name} was measured on another machine: its parts are left out")
        return {}
    figures: Figures = record["figures"]
    return figures


def main() -> None:
    """Measure the parts that are named, or all."""
    names = [part.__name__ for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(names)} (all of them, if none is named)")
    parser.add_argument("--most", type=int, help="leave out greater sizes")
    args = parser.parse_args()
    if wrong := set(args.parts) - set(names):
        parser.error(f"no such part: {', '.join(sorted(wrong))}; there are {', '.join(names)}")
    for part in PARTS:
        if not args.parts or part.__name__ in args.parts:
            command = f"python -m benchmarks.growth {part.__name__}" + (f" --most {args.most}" if args.most else "")
            found = {"command": command, **part(args.most)}
            before = _measured_before(RESULTS)
            figures = {name: found if name == part.__name__ else before.get(name) for name in names}
            save("growth", {k: v for k, v in figures.items() if v}, "python -m benchmarks.growth", PACKAGES)


if __name__ == "__main__":
    main()
