"""How long a command takes to say its first word, from the start of the process.

``dragoman --help``, whole process; target 0.3 s. ``dragoman translate``, to its first line, beside ``import torch`` to
the line after it, taking turns; target 0.5 s more. The models have random weights, end where they must (14 steps), and
differ in nothing else from trained ones; ``--run`` times a trained one instead.
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

import torch

from benchmarks.harness.rounds import turns
from benchmarks.record import save, spread
from dragoman.bundle import save_bundle
from dragoman.config import Config, ModelConfig
from dragoman.data import phrasebook
from dragoman.data.tokenizer import EOS_ID, learn_tokenizers
from dragoman.model.transformer import Transformer
from dragoman.model.weights import untied

ROUNDS = 15
SENTENCE = "the old man reads a book in the garden .\n"


def random_bundle(folder: Path, preset: str) -> None:
    """A bundle of random weights that never ends a sentence before the last step it is allowed."""
    config = Config.from_mapping({
        "model": {"preset": preset, "generator_bias": True},
        "data": {"train": {"src": "none", "tgt": "none"}, "src_lang": "en", "tgt_lang": "de"},
        "decode": {"beam_size": 5, "max_extra_tokens": 4},
    })  # fmt: skip
    tokenizer, _ = learn_tokenizers(lambda: phrasebook.pairs(20_000), config.data.tokenizer)
    sizes = {"src_vocab_size": tokenizer.vocab_size, "tgt_vocab_size": tokenizer.vocab_size}
    model_config = ModelConfig(**config.model.model_dump(), **sizes)
    torch.manual_seed(0)
    model = Transformer(model_config)
    with torch.no_grad():
        model.generator.bias[EOS_ID] = -1e4
    save_bundle(folder, config, model_config, untied(model), tokenizer, tokenizer, {})


def first_line(command: Sequence[str | Path], text: str = "") -> float:
    """Seconds from the start of a process to its first line."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(text.encode())
        process.stdin.close()
        line = process.stdout.readline()
        seconds = time.perf_counter() - started
    if process.returncode or not line.strip():
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {process.returncode}, first line {line!r}")
    return seconds


def main() -> None:
    """Time all in turns, after one round to warm up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a trained run to time instead of random weights")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    dragoman = Path(sys.executable).with_name("dragoman")
    with tempfile.TemporaryDirectory() as folder:
        runs = {"trained": args.run} if args.run else {name: Path(folder) / name for name in ("small", "base")}
        if not args.run:
            for preset, place in runs.items():
                random_bundle(place, preset)
        commands: dict[str, Sequence[str | Path]] = {
            "help": [dragoman, "--help"],
            "import_torch": [sys.executable, "-c", "import torch; print('here', flush=True)"],
            **{f"translate_{name}": [dragoman, "translate", place, "--no-guard"] for name, place in runs.items()},
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for round_, name in turns(list(commands), args.rounds + 1):
            if name == "help":
                started = time.perf_counter()
                subprocess.run(commands[name], check=True, stdout=subprocess.DEVNULL)
                taken = time.perf_counter() - started
            else:
                taken = first_line(commands[name], SENTENCE)
            if round_:
                seconds[name].append(taken)
    figures = {"help_s": spread(seconds["help"]), "import_torch_s": spread(seconds["import_torch"])}
    for name in runs:
        figures[f"translate_{name}_s"] = spread(seconds[f"translate_{name}"])
        more = [a - b for a, b in zip(seconds[f"translate_{name}"], seconds["import_torch"], strict=True)]
        figures[f"translate_{name}_beyond_import_torch_s"] = spread(more)
        print(f"{name}: {statistics.median(more):.3f} s beyond import torch", file=sys.stderr)
    packages = ("torch", "numpy", "sentencepiece", "pydantic", "typer", "rich")
    save("startup", figures, f"python -m benchmarks.startup{' --run RUN' if args.run else ''}", packages)


if __name__ == "__main__":
    main()
