"""Lines that ``translate``, ``evaluate`` and ``score`` of weak models print in terminals of 60, 80 and 100 columns.

    python -m benchmarks.terminal_lines before DATA    ``after`` for the state after a change

DATA is a folder of corpora such as ``multi30k/train.en``. For each pair of languages in ``PAIRS`` two weak models are
trained on pairs drawn by a seed, and other pairs drawn are the test set. Counted are rows on the screen, rows that
the terminal breaks inside a word, and warnings that are in no list.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import dragoman  # noqa: E402
from benchmarks.scripts_record import record  # noqa: E402
from dragoman.translation.translator import Translator  # noqa: E402
from terminals import Screen, Terminal  # noqa: E402

PAIRS = {"multi30k/train": ("en", "fr"), "pydocs-en-zh/train": ("en", "zh"), "tatoeba-en-de/train": ("de", "en")}
"""Corpora by the names of their files, and the languages to translate from and to."""
SEED, N_TRAIN, N_TEST = 20261126, 2000, 60
WIDTHS = (60, 80, 100)
WEAK = [
    "train.max_steps=60", "train.warmup_steps=5", "train.validate_every=60", "train.save_every=60", "train.lr=1e-2",
    "train.batch_tokens=1024", "model.d_model=32", "model.n_heads=2", "model.d_ff=64", "model.n_encoder_layers=1",
    "model.n_decoder_layers=1", "data.tokenizer.vocab_size=3000", "decode.max_extra_tokens=10",
]  # fmt: skip


def drawn(data: Path, corpus: str, langs: tuple[str, str]) -> list[tuple[str, str]]:
    """Return pairs drawn by the seed: those to train on, then those of the test."""
    sides = [(data / f"{corpus}.{lang}").read_text(encoding="utf-8").split("\n")[:-1] for lang in langs]
    return random.Random(SEED).sample(list(zip(*sides, strict=True)), N_TRAIN + N_TEST)


def prepare(data: Path, corpus: str, langs: tuple[str, str], folder: Path) -> None:
    """Write the texts of a corpus into a folder, and train two weak models there."""
    folder.mkdir(parents=True)
    pairs = drawn(data, corpus, langs)
    for name, part in (("train", pairs[:N_TRAIN]), ("test", pairs[N_TRAIN:])):
        for side, lang in enumerate(langs):
            text = "".join(pair[side] + "\n" for pair in part)
            (folder / f"{name}.{lang}").write_text(text, encoding="utf-8")
    for name, seed in (("first", 1), ("second", 2)):
        dragoman.train(
            src=folder / f"train.{langs[0]}", tgt=folder / f"train.{langs[1]}", out=folder / name, quiet=True,
            overrides=[*WEAK, f"train.seed={seed}"],
        )  # fmt: skip


def breaks_inside_a_word(said: str, columns: int) -> list[str]:
    """Return the places where a terminal breaks a word that would fit in a row, as ``end|start``."""
    screen = Screen(columns)
    screen.feed(said)
    broken = []
    for row, cells in enumerate(screen.rows[:-1]):
        end, start = "".join(cells), "".join(screen.rows[row + 1])
        if end not in screen.wrapped:
            continue
        tail, head = re.search(r"\S*$", end)[0], re.match(r"\S*", start)[0]  # type: ignore[index]
        is_spaced = max(tail[-1:], head[:1]) < "\u2e80"  # Chinese may break anywhere
        if tail and head and is_spaced and len(tail + head) <= columns:
            broken.append(f"{end[-12:]}|{start[:12]}")
    return broken


def expected_notes(folder: Path, langs: tuple[str, str], run: str) -> list[str]:
    """Return the texts of all notes on the test set, by the Python API."""
    lines = (folder / f"test.{langs[0]}").read_text(encoding="utf-8").split("\n")[:-1]
    return [note.text for translation in Translator.load(folder / run).translate(lines) for note in translation.notes]


def in_terminal(folder: Path, columns: int, *args: str) -> dict[str, Any]:
    """Run a command in a terminal; return what stands there and the words that it broke."""
    terminal = Terminal(*args, columns=columns, cwd=folder)
    status = terminal.end()
    lines = [line for line in terminal.screen.lines if line]
    return {
        "status": status, "said": terminal.said, "rows": len(lines),
        "broken": breaks_inside_a_word(terminal.said, columns),
    }  # fmt: skip


def listed(folder: Path, has_list: bool, *args: str) -> str:
    """Return the list of warnings that a command writes: to a file where it can, else to stderr."""
    out = folder / "warnings.txt"
    more = ["--warnings", str(out)] if has_list else []
    done = subprocess.run([sys.executable, "-m", "dragoman", *args, *more], cwd=folder, capture_output=True, text=True)
    return out.read_text(encoding="utf-8") if has_list and out.exists() else done.stderr


def measure(folder: Path, langs: tuple[str, str], has_list: bool) -> dict[str, Any]:
    """Return the figures of one pair of languages."""
    src, ref = f"test.{langs[0]}", f"test.{langs[1]}"
    commands = {
        "evaluate": ("evaluate", "first", "--src", src, "--ref", ref),
        "evaluate two": ("evaluate", "first", "second", "--src", src, "--ref", ref),
        "translate --out": ("translate", "first", src, "--out", "hyps", "--restart"),
        "score": ("score", "first", "--src", src, "--ref", ref),
    }
    figures: dict[str, Any] = {}
    for name, args in commands.items():
        for columns in WIDTHS:
            seen = in_terminal(folder, columns, *args)
            shown = {key: seen[key] for key in ("status", "rows")}
            figures[f"{name}, {columns} columns"] = {**shown, "words broken": len(seen["broken"])}
    notes = expected_notes(folder, langs, "first")
    for name in ("evaluate", "translate --out"):
        text = listed(folder, has_list, *commands[name])
        lost = sum(1 for note in set(notes) if text.count(note) < notes.count(note))
        figures[f"{name}, kinds of warnings with some in no list"] = lost
    both = listed(folder, has_list, *commands["evaluate two"])
    named = [line for line in both.splitlines() if f"{src}:" in line]
    figures["evaluate two, warnings"] = len(named)
    figures["evaluate two, warnings that name no run"] = sum("first" not in x and "second" not in x for x in named)
    figures["notes on the test set"] = len(notes)
    return figures


def worst(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures that have a target."""
    every = [(name, seen) for pair in figures.values() for name, seen in pair.items()]
    seen = [(name, of) for name, of in every if isinstance(of, dict)]
    return {
        "most rows of evaluate of one run": max(of["rows"] for name, of in seen if name.startswith("evaluate, ")),
        "most rows of evaluate of two runs": max(of["rows"] for name, of in seen if name.startswith("evaluate two")),
        "words broken": sum(of["words broken"] for _, of in seen),
        "warnings in no list": sum(of for name, of in every if "no list" in name),
        "warnings that name no run": sum(of for name, of in every if "name no run" in name),
    }


def main() -> None:
    """Train the weak models, run the commands, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state", choices=("before", "after"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, help="folder to keep the models in")
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp())
    figures = {}
    for corpus, langs in PAIRS.items():
        folder = work / corpus.replace("/", "-")
        if not folder.exists():
            prepare(args.data, corpus, langs, folder)
        figures[f"{corpus}, {' to '.join(langs)}"] = measure(folder, langs, args.state == "after")
        print(json.dumps(figures, indent=1, ensure_ascii=False), flush=True)
    inputs = {
        "rule": f"{N_TRAIN} pairs to train on and {N_TEST} to test on, drawn by the seed from each corpus",
        "seed": SEED, "corpora": {name: " to ".join(langs) for name, langs in PAIRS.items()}, "settings": WEAK,
    }  # fmt: skip
    record("terminal_lines", args.state, {"in all": worst(figures), **figures}, inputs, "newcomer")


if __name__ == "__main__":
    main()
