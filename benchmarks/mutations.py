"""Mutate sound files of every format that is read, and count what is refused, read, and handled wrongly.

    python -m benchmarks.mutations --n 1000                     all readers, with the seed 1
    python -m benchmarks.mutations --n 300 --seeds 10           ten seeds
    python -m benchmarks.mutations --n 1000 --reader .docx      one reader, printed alone

A tiny model is trained first. The first record of a machine stays as ``before``; ``--as before`` replaces it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/faults")]

import json  # noqa: E402

from foreign_models import model_readers, models_in, write_models  # noqa: E402
from foreign_readers import Models, Reader, small_readers  # noqa: E402
from trials import Tally, try_all  # noqa: E402

import dragoman  # noqa: E402
from benchmarks.record import RESULTS, save  # noqa: E402
from dragoman.data import phrasebook  # noqa: E402

NAME = "hostile/mutations"


def trained(folder: Path) -> Path:
    """Train a model of seconds on two hundred sentences of the embedded corpus."""
    files = folder / "train.en", folder / "train.de"
    phrasebook.write(200, *files, tgt_lang="de")
    text = {"src": str(files[0]), "tgt": str(files[1])}
    sizes = dict(d_model=48, d_ff=64, n_heads=2, n_encoder_layers=1, n_decoder_layers=1)
    train = dict(
        max_steps=5, batch_tokens=500, validate_every=5, save_every=5, average=0, precision="fp32", device="cpu"
    )
    config = {"model": sizes, "data": {"train": text, "tokenizer": {"vocab_size": 400}}, "train": train}
    dragoman.train(dragoman.Config.from_mapping(config), out=folder / "run", quiet=True)
    return folder / "run"


def counts(reader: Reader, models: Models, n: int, seeds: int) -> dict[str, Any]:
    """Return the counts of one reader over all seeds, with the faults by kind."""
    tallies = [try_all(reader, models, n, seed) for seed in range(1, seeds + 1)]
    faults: dict[str, int] = {}
    for tally in tallies:
        for kind, where in tally.faults.items():
            faults[kind] = faults.get(kind, 0) + len(where)
    result = {"mutations": n * seeds, "refused": total(tallies, "refused"), "read": total(tallies, "read"),
              "faults": sum(faults.values()), "slowest_s": round(max(tally.slowest_s for tally in tallies), 2),
              **({"kinds": faults} if faults else {})}  # fmt: skip
    print(f"{reader.name}: {result}", file=sys.stderr, flush=True)
    return result


def total(tallies: list[Tally], field: str) -> int:
    """Return the sum of a count over all seeds."""
    return sum(getattr(tally, field) for tally in tallies)


def main() -> None:
    """Try every reader, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--reader", help="name of one reader; nothing is recorded")
    parser.add_argument("--as", dest="state", choices=["before", "after"], default="after")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_models(trained(Path(folder)), Path(folder) / "models")
        models = models_in(Path(folder) / "models")
        readers = [*small_readers(), *model_readers()]
        by_reader = {reader.name: counts(reader, models, options.n, options.seeds)
                     for reader in readers if options.reader in (None, reader.name)}  # fmt: skip
    if options.reader:
        return
    path = RESULTS / f"{NAME}.json"
    path.parent.mkdir(exist_ok=True)
    former = json.loads(path.read_text(encoding="utf-8"))["figures"] if path.is_file() else {}
    sums = {name: sum(row[name] for row in by_reader.values()) for name in ("mutations", "refused", "read", "faults")}
    figures = {**former, options.state: {**sums, "readers": by_reader}}
    save(NAME, figures, f"python -m benchmarks.mutations --n {options.n} --seeds {options.seeds}")


if __name__ == "__main__":
    main()
