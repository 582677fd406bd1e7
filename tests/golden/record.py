"""What dragoman says and computes today, written down: a net under changes that shall change nothing.

    python tests/golden/record.py --out NEW                 # the whole record
    python tests/golden/record.py --out NEW --only plain    # what needs no training: help, refusals, public names
    python tests/golden/record.py --compare OLD NEW         # the differences; exit status 1 if there are any

It asks through what is public alone: the command line, the names in ``dragoman.__all__``, and files on disk. Whichever
dragoman Python imports is recorded, so one script serves two commits. To compare with commit OLD:

    git worktree add ../old OLD
    PYTHONPATH=../old/src python tests/golden/record.py --out ../record-old
    PYTHONPATH=src        python tests/golden/record.py --out ../record-new
    python tests/golden/record.py --compare ../record-old ../record-new

The folder of ``--out`` gets three files: ``texts.json`` (what is written, exit statuses, notes, refusals), ``help.txt``
and ``floats.json`` (scores, losses, gradients, SHA-256 of files). Where a number stands in a text, the text has ``#``
and the number is in ``floats.json``; under ``wish``, = stands for the line of ``translate/json``. All is
the same to the bit on the same machine with the same versions; elsewhere trainings end in other last bits, and what
they translate may differ. ``texts.json`` therefore says under ``machine`` where it was made, and under ``versions``
with what. What was changed on purpose is recorded again with ``--out tests/golden``, and read as a diff.

Left out: durations, speeds, and progress that appears every few seconds. Of the files of a checkpoint ``state.json``
(holds seconds) is compared without them, and ``manifest.json`` by its keys (it holds the SHA-256 of that file); of
those of a bundle ``manifest.json`` without its own sum and the version.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import gc
import gzip
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import math
import os
import platform
import re
import resource
import runpy
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import toy

SETTINGS = {
    "OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256", "LRU_CACHE_CAPACITY": "256", "_TYPER_FORCE_DISABLE_TERMINAL": "1",
    "CUDA_VISIBLE_DEVICES": "",
}  # fmt: skip
os.environ.update(SETTINGS)  # before torch and typer
for _name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH"):
    os.environ.pop(_name, None)

HERE = Path(__file__).resolve().parent
AT_ONCE = 2
COMMANDS = ("demo", "train", "translate", "score", "evaluate", "explain", "doctor", "lab", "export")
Json = Any


class Case(NamedTuple):
    """One command line, or one function, in a process of its own."""

    name: str
    args: Sequence[str] = ()
    stdin: bytes = b""
    numbers: bool = False  # numbers with a point are taken out of what it writes
    function: Callable[[], Json] | None = None  # instead of a command line; gives what JSON can hold
    threads: int = 1
    largest_file: int | None = None  # bytes: writing more fails, as on a full disk
    files: Sequence[str] = ()  # that it writes: their lines are recorded, or their SHA-256 where that is said by #


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder to write the record to")
    parser.add_argument("--only", choices=["all", "plain"], default="all", help="plain: what needs no training")
    parser.add_argument("--times", action="store_true", help="say which cases took longest")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two records")
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative, of numbers; 0: to the bit")
    given = parser.parse_args()
    if given.compare:
        found = differences(*given.compare, given.tolerance)
        print("\n".join(found) or "no difference")
        return 1 if found else 0
    if given.out is None:
        parser.error("give --out or --compare")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        record = Record(Path(folder))
        record.take(everything=given.only == "all")
        record.write(given.out)
    if given.times:
        print(
            "\n".join(f"{seconds:6.1f} s  {name}" for seconds, name in sorted(SECONDS, reverse=True)[:30]),
            file=sys.stderr,
        )
    print(f"recorded: {importlib.import_module('dragoman').__file__}", file=sys.stderr)
    print(f"{given.out}: {len(record.texts)} cases in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return 0


class Record:
    """What was found so far. Everything runs in ``folder``, by relative paths."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts: dict[str, Json] = {}
        self.floats: dict[str, Json] = {}
        self.help: dict[str, str] = {}

    def take(self, everything: bool) -> None:
        """Make the whole record, or what needs no training."""
        os.chdir(self.folder)
        write_corpora()
        preload(everything, self.folder)
        self.do([Case("machine", function=machine)])
        self.texts["machine"] = self.texts["machine"]["value"]
        self.texts["versions"] = versions()
        self.do(plain_cases())
        if everything:
            for cases in (trainings, more_trainings, after_training, wishes_and_engines, going_on, at_last):
                self.do(cases())
        for name in [name for name in self.texts if name.startswith("help/")]:
            self.help[name.removeprefix("help/")] = self.texts.pop(name)["out"]

    def do(self, cases: Sequence[Case]) -> None:
        """Run cases, ``AT_ONCE`` at a time, and keep what they give."""
        for case, ended in zip(cases, at_once(cases, self.folder), strict=True):
            assert case.name not in self.texts, case.name
            self.keep(case, *ended)

    def keep(self, case: Case, status: int, out: bytes, err: str) -> None:
        """Put away what a case gave: texts here, numbers there."""
        numbers: list[Json] = []
        said = self.clean(err, numbers if case.numbers else None)
        if case.function is not None:
            if status:  # such as an option that is gone: a difference like any other
                self.texts[case.name] = {"failed": said[-1:]}
            else:
                value = without_numbers(json.loads(out), numbers)
                self.texts[case.name] = {"value": value, **({"err": said} if said else {})}
        else:
            text = out.decode("utf-8", "backslashreplace")
            if case.name.startswith("help/"):
                self.texts[case.name] = {"out": text}
                return
            if "--json" in case.args:
                lines: Json = [without_numbers(json.loads(line), numbers) for line in json_texts(text)]
            else:
                lines = self.clean(text, numbers if case.numbers else None)
            if case.name.startswith("wish/") or case.name == "translate/greedy":
                plain = self.texts["translate/beam" if case.name == "translate/greedy" else "translate/json"]
                lines, said = beside(lines, plain["out"]), beside(said, plain["err"])
            self.texts[case.name] = {"exit": status, "out": lines, "err": said}
        for name in case.files:
            self.texts[case.name].setdefault("files", {})[name.removesuffix("#")] = self.file(case.name, name)
        if numbers:
            self.floats[case.name] = numbers

    def file(self, case: str, name: str) -> Json:
        """The lines of a file; with # behind its name only whether it is there, and its SHA-256 among the numbers."""
        path = self.folder / name.removesuffix("#")
        if not path.is_file():
            return None
        content = path.read_bytes()
        if name.endswith("#"):
            self.floats[f"{case}: {path.name}"] = hashlib.sha256(content).hexdigest()
            return "#"
        return content.decode("utf-8", "backslashreplace").split("\n")

    def clean(self, text: str, numbers: list[Json] | None) -> list[str]:
        """Lines without what depends on the clock or on the place."""
        text = text.replace(str(self.folder), "{tmp}").replace(str(HERE), "{golden}")
        lines = [line for line in text.split("\n") if not any(each.search(line) for each in TICKS)]
        for pattern, instead in CLOCK:
            lines = [pattern.sub(instead, line) for line in lines]
        if numbers is not None:
            for line in lines:
                numbers.extend(map(float, NUMBER.findall(line)))
            lines = [NUMBER.sub("#", line) for line in lines]
        return lines[:-1] if lines and not lines[-1] else lines

    def write(self, out: Path) -> None:
        """Write the three files."""
        out.mkdir(parents=True, exist_ok=True)
        (out / "texts.json").write_text(as_json(self.texts), encoding="utf-8")
        (out / "floats.json").write_text(as_json(self.floats), encoding="utf-8")
        pages = [f"===== dragoman {name}\n{page.rstrip()}\n" for name, page in self.help.items()]
        text = "\n".join(line.rstrip() for line in "\n".join(pages).split("\n"))
        (out / "help.txt").write_text(text, encoding="utf-8")


TICKS = [
    re.compile(pattern)
    for pattern in (
        r"this CPU does not support bf16",
        r" \.\.\. \d+ s$",
        r": \d+\.\d s$",
        r"\((?!100%)\d+%\)$",
        r"^ *(?!100)\d+%  step ",
    )
]
CLOCK = [
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"[\d,.]+ tokens/s", "{speed} tokens/s"),
        (r"[\d:]+ so far, about [\d:]+ left", "{clock}"),
        (r"trained for [\d:]+", "trained for {clock}"),
        (r"\b\d+:\d+(?= (?:left|in all|of training)\b)", "{clock}"),
        (r" in \d+\.\d+ s\b", " in {seconds} s"),
        (r"\bx-\d+\b", "x"),
    )
]
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]\d+")


def json_texts(text: str) -> list[str]:
    """One JSON object a line, or one in all."""
    return [text] if text.startswith("{\n") else text.split("\n")[:-1]


def without_numbers(value: Json, numbers: list[Json]) -> Json:
    """A value with # for each float, which goes into ``numbers``."""
    if isinstance(value, float):
        numbers.append(value)
        return "#"
    if isinstance(value, dict):
        kept = {k: without_numbers(v, numbers) for k, v in value.items() if k not in ("seconds", "versions")}
        return translation(kept) if "text" in kept else kept
    if isinstance(value, list):
        within = [without_numbers(one, numbers) for one in value]
        if len(within) > 3 and all(one == "#" for one in within):
            return f"{len(within)} #"
        is_links = within and all(isinstance(one, list) and [type(i) for i in one] == [int, int] for one in within)
        return " ".join(f"{i}-{j}" for i, j in within) if is_links else within
    if isinstance(value, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", value):
        numbers.append(value)
        return "#"
    return value


def translation(kept: dict[str, Json]) -> Json:
    """What is said of a translation, in few words: its text alone where there is nothing more."""
    plain = {"score": "#", "parts": 1, "n_parts": 1, "confidence": "#", "log_prob": "#", "alignment": None}
    plain |= {"alternatives": [], "notes": []}
    rest = {k: v for k, v in kept.items() if k != "n_tokens" and not (k in plain and plain[k] == v)}
    return rest["text"] if len(rest) == 1 else rest


def beside(lines: list[Json], plain: list[Json]) -> Json:
    """Lines, with = for each that is the same without the wish, or for all of them."""
    if lines == plain or len(lines) != len(plain):
        return "=" if lines == plain else lines
    return ["=" if one == other and one else one for one, other in zip(lines, plain, strict=True)]


def as_json(value: Json, depth: int = 0) -> str:
    """JSON whose lists of plain values, and objects that are short, stand on one line each: it shows well as a diff."""
    flat = json.dumps(value, ensure_ascii=False)
    if depth > 3 or not isinstance(value, dict | list) or (len(flat) < 100 and depth):
        return flat
    pad, end = " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(k, ensure_ascii=False)}: {as_json(v, depth + 1)}" for k, v in value.items()]
    elif all(isinstance(one, float | int) for one in value):
        return flat
    else:
        inner = [f"{pad}{as_json(one, depth + 1)}" for one in value]
    brackets = "{}" if isinstance(value, dict) else "[]"
    return f"{brackets[0]}\n" + ",\n".join(inner) + f"{end}{brackets[1]}" + ("" if depth else "\n")


# Processes


SECONDS: list[tuple[float, str]] = []
"""How long each case took."""


def preload(everything: bool, folder: Path) -> None:
    """Import here, once for all forks, what the command line would import in each, whatever its modules are called."""

    def loaded() -> list[str]:
        with (
            Path(os.devnull).open("w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            for args in (["--help"], ["translate", "old", "nowhere.en"], ["train"]):
                command_line(args)
        return [name for name in sys.modules if "__main__" not in name]

    import dragoman

    for name in dragoman.__all__:
        getattr(dragoman, name)  # imports torch
    ((_, out, _),) = at_once([Case("modules", function=loaded)], folder)
    for name in [*json.loads(out), *(["torch._dynamo"] if everything else [])]:  # (an optimiser loads it)
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def at_once(cases: Sequence[Case], folder: Path) -> list[tuple[int, bytes, str]]:
    """Run each case in a fork of this process, which has torch imported; a few at a time, in order."""
    found: dict[int, tuple[int, bytes, str]] = {}
    running: dict[int, tuple[int, float]] = {}
    waiting = list(range(len(cases)))
    stem = folder / ".io"
    stem.mkdir(exist_ok=True)
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            number = waiting.pop(0)
            running[start(cases[number], stem / str(number), folder)] = number, time.perf_counter()
        pid, status = os.wait()
        number, began = running.pop(pid)
        SECONDS.append((time.perf_counter() - began, cases[number].name))
        path = stem / str(number)
        err = path.with_suffix(".err").read_bytes().decode("utf-8", "backslashreplace")
        found[number] = os.waitstatus_to_exitcode(status), path.with_suffix(".out").read_bytes(), err
    return [found[number] for number in range(len(cases))]


def start(case: Case, path: Path, folder: Path) -> int:
    """Fork a process for a case; its number."""
    path.with_suffix(".in").write_bytes(case.stdin)
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.chdir(folder)
        for fd, (suffix, flags) in enumerate(
            ((".in", os.O_RDONLY), (".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), (".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        ):  # fmt: skip
            os.dup2(os.open(path.with_suffix(suffix), flags, 0o644), fd)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        if case.threads != 1:
            import torch

            torch.set_num_threads(case.threads)
        if case.largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (case.largest_file, resource.RLIM_INFINITY))
        if case.function is not None:
            print(json.dumps(case.function(), ensure_ascii=False))
            status = 0
        else:
            status = command_line(case.args)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
    return 0


def command_line(args: Sequence[str]) -> int:
    """Run ``python -m dragoman ARGS`` in this process; its exit status."""
    sys.argv = ["dragoman", *args]
    try:
        runpy.run_module("dragoman", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def machine() -> Json:
    """A name for what decides the last bits of a product: processor, torch, and a few sums by torch itself."""
    import torch

    torch.manual_seed(1)
    a, b, c = torch.randn(96, 64), torch.randn(64, 200), torch.randn(4, 4, 30, 16)
    sums = [a @ b, torch.log_softmax(a @ b, -1), torch.nn.functional.layer_norm(a, (64,)), torch.exp(a), torch.erf(a)]
    sums += [torch.nn.functional.scaled_dot_product_attention(c, c, c), (a.bfloat16() @ b.bfloat16()).float()]
    digest = hashlib.sha256(b"".join(each.numpy().tobytes() for each in sums)).hexdigest()
    known = json.dumps(dict(torch.cpu.get_capabilities()), sort_keys=True)
    return {
        "processor": f"{platform.machine()} {hashlib.sha256(known.encode()).hexdigest()[:12]}",
        "torch": torch.__version__, "sums": digest[:24],
    }  # fmt: skip


def versions() -> Json:
    """Of the packages whose words, or cuts of text, are in the record."""
    names = ("typer", "rich", "click", "pydantic", "sentencepiece", "sacrebleu", "torch", "ctranslate2", "matplotlib")
    found = {"python": platform.python_version()}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


# Texts and configurations


def write_corpora() -> None:
    """All text that is used, into the current folder."""
    for name, count, seed in (
        ("train", 2500, 1),
        ("valid", 150, 2),
        ("eval", 80, 5),
        ("small", 500, 6),
        ("tiny", 120, 7),
        ("short", 12, 10),
    ):
        found = toy.sentences(count, seed)
        for side, ending in enumerate(("en", "de", "zh")):
            toy.write_lines(Path(f"{name}.{ending}"), [one[side] for one in found])
    for name, count, seed in (("train", 300, 1), ("valid", 40, 2)):
        toy.write_lines(Path(f"{name}.trees"), [toy.tree(en) for en, _, _ in toy.sentences(count, seed)])
    Path("test.en").write_bytes(toy.hard_text(170, 3))
    Path("few.en").write_bytes(toy.hard_text(10, 4))
    toy.write_lines(Path("new.en"), [f"{en} Really, {n} robots!" for n, (en, _, _) in enumerate(toy.sentences(150, 8))])
    toy.write_lines(Path("new.de"), [f"{de} Echt, {n} Roboter!" for n, (_, de, _) in enumerate(toy.sentences(150, 8))])
    some = [*(en.encode() for en, _, _ in toy.sentences(6, 12)), *toy.HARD[3:7], *toy.HARD[10:13]]
    Path("bits.en").write_bytes(b"".join(line + b"\n" for line in some))
    easy = [en for en, _, _ in toy.sentences(40, 9)]
    toy.write_lines(Path("long.en"), [*easy[:20], *[""] * 2040, *easy[20:]])  # more than is read ahead
    Path("terms.tsv").write_text("dog\tDackel\nbig house\tVilla\nIKEA\nbook\tRoman\n", encoding="utf-8")
    Path("three.tsv").write_text("dog\tDackel\tHund\n", encoding="utf-8")
    spoil_a_corpus()
    for name in ("bundle-v1", "config-v1.yaml"):
        copy = shutil.copytree if (HERE / name).is_dir() else shutil.copy
        copy(HERE / name, "old" if name == "bundle-v1" else name)
    for name, change in (("cut", lambda b: b[:-1]), ("flipped", lambda b: b[:-9] + bytes([b[-9] ^ 4]) + b[-8:])):
        shutil.copytree("old", name)
        weights = Path(name, "model.safetensors")
        weights.write_bytes(change(weights.read_bytes()))
    shutil.copytree("old", "unsealed")
    Path("unsealed/manifest.json").unlink()
    shutil.copytree("old", "no-subwords")
    Path("no-subwords/joint.spm").unlink()


def spoil_a_corpus() -> None:
    """A corpus for the doctor: shifted, swapped, copied and repeated lines, bad bytes, odd characters."""
    src, tgt = (Path(f"train.{ending}").read_bytes().split(b"\n")[:900] for ending in ("en", "de"))
    tgt[100:140] = tgt[101:141]
    src[200:210], tgt[200:210] = tgt[200:210], src[200:210]
    tgt[220:228] = src[220:228]
    src[300:306], tgt[300:306] = [src[300]] * 6, [tgt[300]] * 6
    tgt[310] = "schÃ¶n".encode()
    tgt[320] = b"gr\xfcn"
    src[330] = b"a\0dog"
    src[340], tgt[350] = b"", b"&amp; &lt;b&gt;"
    tgt[360] = tgt[360] * 9
    Path("spoilt.en").write_bytes(b"\n".join(src) + b"\n")
    Path("spoilt.de").write_bytes(b"\n".join(tgt) + b"\n")


def sets(**settings: Any) -> list[str]:
    """``--set`` for each setting, a double underscore for a point."""
    return [word for name, value in settings.items() for word in ("--set", f"{name.replace('__', '.')}={value}")]


BASE = {
    "model": dict(d_model=64, d_ff=128, n_heads=4, n_encoder_layers=2, n_decoder_layers=2, dropout=0.1, norm="pre"),
    "data": {
        "train": {"src": "train.en", "tgt": "train.de"}, "valid": {"src": "valid.en", "tgt": "valid.de"},
        "tokenizer": {"vocab_size": 420}, "max_tokens": 60,
    },
    "train": dict(
        max_steps=240, batch_tokens=1200, schedule="cosine", lr=8e-3, warmup_steps=40, clip_norm=1.0, validate_every=120,
        save_every=60, log_every=20, average=0, ema=0.98, precision="fp32", device="cpu",
    ),
    "decode": dict(max_extra_tokens=20),
}  # fmt: skip
"""Of the runs that translate; the variants below are smaller."""

SMALL = {
    "model": dict(d_model=32, d_ff=48, n_heads=2, n_encoder_layers=2, n_decoder_layers=2, dropout=0.1),
    "data": {
        "train": {"src": "small.en", "tgt": "small.de"}, "valid": {"src": "tiny.en", "tgt": "tiny.de"},
        "tokenizer": {"vocab_size": 400}, "max_tokens": 60,
    },
    "train": dict(
        max_steps=50, batch_tokens=400, schedule="inverse_sqrt", lr=1e-2, warmup_steps=20, clip_norm=1.0,
        validate_every=50, save_every=25, log_every=1, average=0, precision="fp32", device="cpu",
    ),
    "decode": dict(max_extra_tokens=10),
}  # fmt: skip

VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre-norm": dict(model__norm="pre"),
    "gelu": dict(model__activation="gelu"), "swish": dict(model__activation="swish"), "swiglu": dict(model__activation="swiglu"),
    "learned": dict(model__positions="learned", model__max_len=80), "rotary": dict(model__positions="rotary"),
    "rnn": dict(model__architecture="rnn"), "gru": dict(model__architecture="gru"), "lstm": dict(model__architecture="lstm"),
    "conv": dict(model__architecture="conv"), "conv-5-learned": dict(model__architecture="conv", model__kernel_width=5, model__positions="learned"),
}  # fmt: skip
"""Each is trained in float32 and in bf16."""

MORE_VARIANTS: dict[str, dict[str, Any]] = {
    "share-decoder": dict(model__share_embeddings="decoder", data__tokenizer__joint="false"),
    "share-none": dict(model__share_embeddings="none", model__generator_bias="true", data__tokenizer__joint="false"),
    "heads": dict(model__d_k=8, model__d_v=12), "plain-parts": dict(model__attention_bias="false", model__scale_embeddings="false"),
    "dropouts": dict(model__attention_dropout=0.1, model__activation_dropout=0.1, model__dropout=0.2),
    "no-dropout": dict(model__dropout=0.0), "norm-eps": dict(model__norm_eps="1e-3"),
    "noam": dict(train__schedule="noam", train__lr=2), "cosine": dict(train__schedule="cosine"),
    "accumulate": dict(train__accumulate=2), "ema": dict(train__ema=0.9), "average": dict(train__average=2),
    "r-drop": dict(train__r_drop=5), "token-dropout": dict(train__token_dropout=0.1),
    "no-smoothing": dict(train__label_smoothing=0.0), "adam": dict(train__adam_betas="[0.8,0.95]", train__adam_eps="1e-6", train__clip_norm="null"),
    "unigram": dict(data__tokenizer__kind="unigram", data__tokenizer__sampling=0.2),
    "bpe-dropout": dict(data__tokenizer__sampling=0.1), "no-bytes": dict(data__tokenizer__byte_fallback="false", data__tokenizer__vocab_size=200),
    "clean": dict(data__drop_duplicates="true", data__max_ratio=1.2, data__max_tokens=25),
    "noise": dict(data__noise__case=0.3, data__noise__typos=0.3, data__noise__punctuation=0.3, data__noise__inserts=0.2, data__noise__one_word=0.1),
    "patience": dict(train__patience=1, train__validate_every=5, train__max_epochs=3),
    "held-out": dict(data__valid="null"),
}  # fmt: skip
"""Each is trained in float32 alone."""

CHINESE = sets(data__train__tgt="train.zh", data__valid__tgt="valid.zh", train__max_steps=120, train__ema=0.95)
TREES = {
    "task": "parsing", "model": SMALL["model"] | dict(share_embeddings="decoder"),
    "data": {"train": {"trees": "train.trees"}, "valid": {"trees": "valid.trees"}, "tokenizer": {"vocab_size": 350, "joint": False}},
    "train": SMALL["train"] | dict(batch_tokens=900, max_steps=80, log_every=20), "decode": dict(max_extra_tokens=60),
}  # fmt: skip


# The cases


def plain_cases() -> list[Case]:
    """What needs no training."""
    pages = [("", ["--help"]), *((name, [name, "--help"]) for name in COMMANDS)]
    return [
        *(Case(f"help/{name}".strip(), args) for name, args in pages),
        Case("version", ["--version"]), Case("nothing", []), Case("lab", ["lab"]),
        *(Case(f"refusal/{' '.join(args)}", apart(args, n), stdin=b"a dog\n") for n, args in enumerate(REFUSALS)),
        Case("names", function=public_names), Case("defaults", function=defaults), Case("errors", function=python_refusals),
        Case("config-v1", function=old_config),
    ]  # fmt: skip


def apart(args: Sequence[str], number: int) -> list[str]:
    """Arguments with an ``x`` of their own, for two commands that run at once must not find each other there."""
    return [f"x-{number}" if arg == "x" else arg for arg in args]


TRAIN = ["train", "--src", "tiny.en", "--tgt", "tiny.de", "--out", "x"]
REFUSALS: list[list[str]] = [
    ["trian"], ["translate"], ["train"], ["train", "--src", "tiny.en"], ["train", "--resume"], ["train", "nowhere.yaml"],
    ["train", "train.en"], ["train", "--src", "nowhere.en", "--tgt", "tiny.de", "--out", "x"], [*TRAIN, "--bogus"],
    ["train", "--src", "tiny.en", "--tgt", "small.de", "--out", "x"], ["train", "--src", "spoilt.en", "--tgt", "spoilt.de", "--out", "x"],
    ["train", "--src", ".", "--tgt", "tiny.de", "--out", "x"], [*TRAIN[:-1], "tiny.en/x"],
    [*TRAIN, *sets(model__n_head=3)], [*TRAIN, *sets(modle__d_model=3)], [*TRAIN, "--set", "train.max_steps"],
    [*TRAIN, *sets(train__max_steps=0)], [*TRAIN, *sets(train__max_steps="many")], [*TRAIN, *sets(train__average="true")],
    [*TRAIN, *sets(model__n_heads=7)], [*TRAIN, *sets(model__d_model=7, model__n_heads=7)], [*TRAIN, *sets(model__preset="huge")],
    [*TRAIN, *sets(model__n_decoder_layers=0)], [*TRAIN, *sets(data__tokenizer__joint="false")],
    [*TRAIN, *sets(data__tokenizer__vocab_size=100)], [*TRAIN, *sets(train__schedule="linear")], [*TRAIN, *sets(train__device="tpu")],
    [*TRAIN, *sets(train__device="cuda")], [*TRAIN, *sets(data__max_tokens=1)], [*TRAIN, *sets(model__architecture="lstm", model__norm="pre")],
    [*TRAIN, *sets(model__architecture="conv", model__kernel_width=4)], [*TRAIN, *sets(model__kernel_width=5)],
    [*TRAIN, *sets(train__schedule="cosine", train__lr="null")], [*TRAIN, *sets(train__warmup_steps=9, train__max_steps=9)],
    [*TRAIN, *sets(train__adam_betas="[1,2]")], [*TRAIN, *sets(task="parsing")], [*TRAIN, "--valid-src", "valid.en"],
    [*TRAIN, "--valid-src", "valid.en", "--valid-tgt", "tiny.de"], [*TRAIN, "--resume"], [*TRAIN, "--new-subwords"],
    [*TRAIN, "--from-run", "nowhere"], [*TRAIN, "--from-run", "old", *sets(model__d_model=32)], [*TRAIN, *sets(train__tensorboard=7)],
    ["translate", "nowhere"], ["translate", "."], ["translate", "tiny.en"], ["translate", "cut"], ["translate", "flipped"],
    ["translate", "unsealed"], ["translate", "no-subwords"], ["translate", "old", "nowhere.en"], ["translate", "old", "."],
    *(["translate", "old", *more] for more in (
        ["--beam-size", "0"], ["--beam-size", "many"], ["--length-penalty", "-1"], ["--patience", "0"], ["--n-best", "0"],
        ["--n-best", "9"], ["--batch-tokens", "0"], ["--workers", "0"], ["--device", "tpu"], ["--device", "cuda"],
        ["--precision", "fp16"], ["--engine", "marian"], ["--temperature", "0.5"], ["--sample", "--temperature", "0"],
        ["--sample", "--top-p", "2"], ["--sample", "--top-k", "-1"], ["--sample", "--include", "Hund"], ["--include", " "], ["--exclude", ""],
        ["--no-repeat-ngram", "-1"], ["--glossary", "nowhere.tsv"], ["--glossary", "three.tsv"], ["tiny.en", "-i"],
        ["--out", "x"], ["tiny.en", "--restart"], ["tiny.en", "--out", "tiny.en"], ["tiny.en", "--out", "x", "--alignments", "y"],
        ["--alignments", "no/such/folder"], ["--deterministic", "--batch-tokens", "9"], ["--engine", "ctranslate2", "--sample"],
        ["--engine", "ctranslate2", "--prefix", "Der"], ["--engine", "ctranslate2", "--precision", "bf16"],
        ["--engine", "ctranslate2", "--alignments", "y"], ["--ensemble", "nowhere"], ["--ensemble", "old", "--engine", "ctranslate2"],
    )),
    ["score", "old", "--src", "tiny.en"], ["score", "old", "--src", "tiny.en", "--ref", "small.de"],
    ["score", "old", "--src", "tiny.en", "--ref", "tiny.de", "--precision", "int8"],
    ["evaluate", "old", "--src", "tiny.en"], ["evaluate", "old", "--ref", "tiny.de"], ["evaluate", "old", "--src", "tiny.en", "--ref", "small.de"],
    ["evaluate", "old", "old", "old", "--ref", "tiny.de"], ["evaluate", "old", "old", "--src", "tiny.en", "--ref", "tiny.de", "--out", "x"],
    ["evaluate", "old", "--ref", "tiny.de", "--stress"], ["evaluate", "tiny.de", "--src", "tiny.en", "--ref", "tiny.de", "--stress"],
    ["explain", "old", "a dog", "--out", "x.txt"], ["explain", "old", "a dog", "--show", "nothing"], ["explain", "old", ""],
    ["export", "old"], ["export", "old", "--format", "fairseq"], ["export", "old", "--format", "ctranslate2", "--quantization", "int4"],
    ["export", "old", "--format", "ctranslate2", "--json"], ["export", "old", "--format", "ctranslate2", "--out", "old"],
    ["doctor"], ["doctor", "nowhere"], ["doctor", "--src", "tiny.en"], ["doctor", "old", "--src", "tiny.en", "--tgt", "tiny.de"],
    ["lab", "nothing"], ["lab", "scaling", "--run", "old", "--out", "x"], ["demo", "--to", "fr"],
]  # fmt: skip


def trainings() -> list[Case]:
    """The runs that all else needs, and one that speaks; the longest first."""
    return [
        config_case("train/base", BASE, "base"),
        config_case("train/second", BASE, "second", sets(train__seed=2, train__max_steps=90, train__validate_every=90)),
        config_case("train/chinese", BASE, "chinese", CHINESE),
        config_case("train/parser", TREES, "parser", numbers=True),
        *(config_case(f"train/{name}", SMALL, f"v/{name}", sets(**changes), quiet=True) for name, changes in VARIANTS.items()),
        *(
            config_case(f"train/{name}-bf16", SMALL, f"v/{name}-bf16", sets(**changes, train__precision="bf16"), quiet=True)
            for name, changes in VARIANTS.items()
        ),
        *(config_case(f"train/{name}", SMALL, f"v/{name}", sets(**changes), quiet=True) for name, changes in MORE_VARIANTS.items()),
        config_case("train/half", SMALL, "half", sets(train__max_steps=25), quiet=True),
    ]  # fmt: skip


def config_case(
    name: str, config: Json, out: str, more: Sequence[str] = (), quiet: bool = False, numbers: bool = True
) -> Case:
    """A training from a configuration, which is JSON, and so YAML."""
    Path("configs").mkdir(exist_ok=True)
    path = Path("configs", f"{name.replace('/', '-')}.yaml")
    path.write_text(json.dumps(config), encoding="utf-8")
    args = ["train", str(path), "--out", out, *more, *(["--quiet"] if quiet else [])]
    return Case(name, args, numbers=numbers)


def more_trainings() -> list[Case]:
    """What begins with a run, or with no configuration."""
    shutil.copytree("half", "resumed")
    few = sets(
        train__max_steps=6, train__validate_every=6, train__save_every=6, train__log_every=2, train__precision="fp32"
    )
    return [
        Case("train/resumed", ["train", "--out", "resumed", "--resume", *sets(train__max_steps=50, train__log_every=5)], numbers=True),
        Case("refusal/resumed with another rate", ["train", "--out", "half", "--resume", *sets(train__lr=1)]),
        Case("refusal/a run that is there", ["train", "configs/train-base.yaml", "--out", "v/paper"]),
        Case("train/from", ["train", "--src", "new.en", "--tgt", "new.de", "--from-run", "base", "--out", "from", *few], numbers=True),
        Case(
            "train/from-new-subwords",
            ["train", "--src", "new.en", "--tgt", "new.de", "--from-run", "base/bundle", "--new-subwords", "--out", "from2", *few],
            numbers=True,
        ),
        Case(
            "train/two files",
            ["train", "--src", "small.en", "--tgt", "small.de", "--out", "two", *few, *sets(train__warmup_steps=3, model__d_model=16, model__d_ff=16)],
            numbers=True, files=["two/config.yaml"],
        ),
        Case("train/python", function=train_in_python),
    ]  # fmt: skip


def after_training() -> list[Case]:
    """What the runs left on disk, and the plainer translations."""
    runs = sorted(str(path.parent) for path in [*Path().glob("*/log.jsonl"), *Path().glob("v/*/log.jsonl")])
    text = Path("few.en").read_bytes()
    return [
        *(Case(f"log/{run}", function=lambda run=run: losses(Path(run))) for run in runs),
        broken(),
        *(Case(f"files/{run}", function=lambda run=run: files_of(Path(run))) for run in
          ("base", "chinese", "parser", "resumed", "v/paper", "v/lstm", "v/share-none", "v/ema", "from", "from2")),
        Case("translate/beam", ["translate", "base", "test.en"]),
        Case("translate/greedy", ["translate", "base", "--beam-size", "1", "test.en", "--json"]),
        Case("translate/stdin", ["translate", "base/bundle"], stdin=text),
        Case("translate/json", ["translate", "base", "few.en", "--json"]),
        Case("translate/half trained", ["translate", "second", "few.en", "--json"]),
        Case("translate/half trained, no guard", ["translate", "second", "few.en", "--json", "--no-guard"]),
        Case("translate/half trained, greedy", ["translate", "second", "few.en", "--beam-size", "1"]),
        Case("translate/interactive", ["translate", "base", "-i"], stdin=b"The dog sees the cat.\n\nA \xff cat.\n"),
        Case("translate/old bundle", ["translate", "old", "few.en", "--json"]),
        Case("translate/chinese", ["translate", "chinese", "bits.en", "--json", "--alignments", "zh.links"], files=["zh.links"]),
        Case("translate/chinese wishes", ["translate", "chinese", "few.en", "--include", "猫", "--exclude", "狗", "--prefix", "大"]),
        Case("translate/parser", ["translate", "parser", "short.en", "--json"]),
        Case("translate/parser, 2 best", ["translate", "parser", "bits.en", "--n-best", "2"], numbers=True),
        *(Case(f"translate/{name}", ["translate", f"v/{name}", "bits.en", "--json", "--no-guard", "--beam-size", "3"])
          for name in (*VARIANTS, "share-decoder", "share-none", "heads", "plain-parts", "unigram", "no-bytes")),
        Case("translate/lstm, guarded", ["translate", "v/lstm", "bits.en"]),
        Case("translate/learned positions", ["translate", "v/learned", "bits.en"]),
        Case("translate/gz", ["translate", "base", gz("short.en")]),
        *(Case(f"python/{name}", function=way) for name, way in ways_in_python().items()),
        Case("python/model", function=models),
    ]  # fmt: skip


def wishes_and_engines() -> list[Case]:
    """The options of translating, and the other commands."""
    ours = ["translate", "base", "few.en"]
    bits = ["translate", "base", "bits.en"]
    eight = ["--src", "eval.en", "--ref", "eval.de"]
    cases = [
        Case("wish/n-best", [*bits, "--n-best", "3"], numbers=True),
        Case("wish/n-best json", [*ours, "--n-best", "2", "--beam-size", "6", "--json"]),
        Case("wish/length penalty", [*ours, "--length-penalty", "2.5", "--json"]),
        Case("wish/patience", [*ours, "--patience", "1", "--json"]),
        Case("wish/batch", [*ours, "--batch-tokens", "60"]),
        Case("wish/workers", [*ours, "--workers", "2", "--batch-tokens", "100", "--json"]),
        Case("wish/two threads", [*ours, "--json"], threads=2),
        Case("wish/deterministic", [*ours, "--deterministic", "--json"]),
        Case("wish/bf16", [*ours, "--precision", "bf16", "--json"]),
        Case("wish/int8", [*ours, "--precision", "int8", "--json"]),
        Case("wish/sample", [*ours, "--sample", "--seed", "7", "--json"]),
        Case("wish/sample, no guard", [*ours, "--sample", "--temperature", "1.5", "--no-guard"]),
        Case("wish/sample sharp", [*bits, "--sample", "--temperature", "0.7", "--top-k", "10", "--top-p", "0.9", "--n-best", "2", "--json"]),
        Case("wish/prefix", [*ours, "--prefix", "Die ", "--json"]),
        Case("wish/prefix in a word", [*ours, "--prefix", "Ha"]),
        Case("wish/include", [*ours, "--include", "Hund", "--include", "alte Tür", "--json"]),
        Case("wish/exclude", [*ours, "--exclude", "Die", "--exclude", "Hund", "--json"]),
        Case("wish/glossary", [*ours, "--glossary", "terms.tsv", "--json"]),
        Case("wish/no-repeat", [*ours, "--no-repeat-ngram", "2"]),
        Case("wish/all", [*ours, "--prefix", "Der ", "--include", "Katze", "--exclude", "Katze", "--no-repeat-ngram", "3", "--glossary", "terms.tsv", "--beam-size", "2"]),
        Case("wish/all sampled", [*ours, "--sample", "--prefix", "Der ", "--exclude", "Hund", "--no-repeat-ngram", "3"]),
        Case("wish/alignments", [*ours, "--alignments", "links"], files=["links"]),
        Case("wish/alignments json", [*bits, "--alignments", "links2", "--json", "--n-best", "2"], files=["links2"]),
        Case("wish/ensemble", [*ours, "--ensemble", "second", "--json"]),
        Case("wish/ensemble with all", [*ours, "--ensemble", "second", "--ensemble", "base", "--exclude", "Hund", "--alignments", "links3"], files=["links3"]),
        Case("refusal/ensemble of other subwords", [*ours, "--ensemble", "chinese"]),
        Case("refusal/parser wishes", ["translate", "parser", "few.en", "--prefix", "("]),
        Case("refusal/parser scores", ["score", "parser", "--src", "eval.en", "--ref", "eval.de"]),
        Case("refusal/lstm in int8", ["translate", "v/lstm", "few.en", "--precision", "int8"]),
        Case("out/whole", ["translate", "base", "long.en", "--out", "whole.de"], files=["whole.de#", "whole.de.journal", "whole.de.partial"]),
        Case("refusal/going on otherwise", [*LONG_OUT, "--beam-size", "2"]),
        Case("out/json", [*ours, "--json", "--out", "few.json"], files=["few.json#"]),
        Case("score", ["score", "base", "--src", "eval.en", "--ref", "eval.de"], numbers=True),
        Case("score/json", ["score", "base", "--src", "short.en", "--ref", "short.zh", "--json", "--alignments", "links4"], files=["links4"], numbers=True),
        Case("score/ensemble", ["score", "base", "--ensemble", "second", "--src", "eval.en", "--ref", "eval.de", "--precision", "bf16", "--length-penalty", "0", "--batch-tokens", "200"], numbers=True),
        Case("score/lstm", ["score", "v/lstm", "--src", "eval.en", "--ref", "eval.de"], numbers=True),
        Case("evaluate", ["evaluate", "base", *eight, "--old-style", "--out", "eval.hyp"], files=["eval.hyp"], numbers=True),
        Case("evaluate/json", ["evaluate", "second", *eight, "--json", "--no-guard", "--beam-size", "2"]),
        Case("evaluate/compare", ["evaluate", "base", "second", *eight], numbers=True),
        Case("evaluate/compare with a file", ["evaluate", "base", "eval.de", *eight, "--json"]),
        Case("evaluate/file", ["evaluate", "eval.de", "--ref", "eval.de"], numbers=True),
        Case("evaluate/stress", ["evaluate", "base", *eight, "--stress"], numbers=True),
        Case("evaluate/chinese", ["evaluate", "chinese", "--src", "eval.en", "--ref", "eval.zh"], numbers=True),
        Case("evaluate/parser", ["evaluate", "parser", "--ref", "valid.trees"], numbers=True),
        Case("doctor/text", ["doctor", "--src", "small.en", "--tgt", "small.de", "--memory", "4", "--quiet"]),
        Case("doctor/spoilt", ["doctor", "--src", "spoilt.en", "--tgt", "spoilt.de", "--valid-src", "tiny.en", "--valid-tgt", "tiny.de", "--memory", "4", "--quiet"]),
        Case("doctor/json", ["doctor", "configs/train-base.yaml", "--test-src", "eval.en", "--test-ref", "eval.de", "--memory", "1", "--json", "--quiet"]),
        *(Case(f"doctor/{run}", ["doctor", steady(run)], numbers=True) for run in ("base", "second", "v/paper", "v/noam", "half", "parser")),
        Case("export/check", ["export", "base", "--format", "ctranslate2", "--check", "eval.en", "--ref", "eval.de"], numbers=True,
             files=[f"base/exports/ctranslate2-float32/{name}#" for name in ("model.bin", "config.json", "shared_vocabulary.json")]),
        Case("export/int8", ["export", "second", "--format", "ctranslate2", "--quantization", "int8", "--out", "int8"], files=["int8/model.bin#"]),
        Case("refusal/export lstm", ["export", "v/lstm", "--format", "ctranslate2"]),
        Case("explain/page", ["explain", "base", "The old dog sees 7 cats.", "--out", "page.html"], files=["page.html#"]),
        Case("explain/target", ["explain", "v/lstm", "The old dog sees 7 cats.", "--translation", "Der Hund.", "--subwords", "--out", "page2.html"], files=["page2.html#"]),
        Case("explain/svg", ["explain", "base", "The old dog sees 7 cats.", "--out", "figure.svg", "--show", "cross"], files=["figure.svg#"]),
        Case("python/assess", function=assess_in_python),
        *(Case(f"python/{name}", function=way) for name, way in wishes_in_python().items()),
        Case("demo/text", ["demo", "--out", "demo"], largest_file=200_000, files=["demo/corpus/train.en#", "demo/corpus/train.de#"]),
        Case("demo/chinese", ["demo", "--to", "zh", "--out", "demo-zh"], largest_file=150_000, files=["demo-zh/corpus/train.zh#"]),
    ]  # fmt: skip
    if importlib.util.find_spec("ctranslate2"):
        foreign = ["--engine", "ctranslate2"]
        cases += [
            Case("engine/ctranslate2", ["translate", "second", "few.en", *foreign, "--json"]),
            Case("engine/ctranslate2 n-best", ["translate", "v/rotary", "bits.en", *foreign, "--n-best", "2", "--no-guard"], numbers=True),
            Case("engine/auto", ["translate", "v/pre-norm", "bits.en", "--engine", "auto", "--no-guard"]),
            Case("engine/auto takes torch", [*ours, "--engine", "auto", "--prefix", "Die "]),
            Case("engine/auto for an lstm", ["translate", "v/lstm", "bits.en", "--engine", "auto", "--no-guard"]),
            Case("refusal/engine for an lstm", ["translate", "v/lstm", "few.en", *foreign]),
        ]  # fmt: skip
    return cases


def broken() -> Case:
    """A translation to a file that breaks off in its second window of lines, as on a full disk."""
    n_bytes = 2048 + 3 * sum(len(line) for line in Path("long.en").read_bytes().split(b"\n")[:20]) // 2
    files = ["part.de", "part.de.partial#"]
    return Case("out/broken", LONG_OUT, largest_file=n_bytes, files=files)


def going_on() -> list[Case]:
    """The same command again."""
    return [Case("out/goes on", LONG_OUT, files=["part.de#", "part.de.partial", "part.de.journal"])]


def at_last() -> list[Case]:
    """What is the same, whatever it is."""
    return [
        Case("same/broken and whole", function=lambda: Path("part.de").read_bytes() == Path("whole.de").read_bytes()),
        Case("same/resumed", function=lambda: [alike("v/paper", "resumed", name) for name in ("optimizer", "model")]),
        Case("refusal/a text is no run", ["translate", "whole.de"]),
    ]


def alike(run: str, other: str, name: str) -> bool:
    """Whether two runs have the same bytes in a file of their last checkpoint."""
    path = f"checkpoints/step_00000050/{name}.safetensors"
    return Path(run, path).read_bytes() == Path(other, path).read_bytes()


LONG_OUT = ["translate", "base", "long.en", "--out", "part.de"]


# What files hold


def gz(name: str) -> str:
    """A compressed copy of a file."""
    Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes(), mtime=0))
    return f"{name}.gz"


def steady(run: str) -> str:
    """A copy of a run whose speed never changed, for the doctor speaks of that."""
    copy = Path("steady", run)
    shutil.copytree(run, copy)
    log = copy / "log.jsonl"
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").split("\n")[:-1]]
    for event in events:
        event.update({key: 1000.0 for key in ("tokens_per_s",) if key in event})
    log.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return str(copy)


def losses(run: Path) -> Json:
    """All that a run's log says but seconds and speed; its samples."""
    events = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    rest = [{k: v for k, v in event.items() if k not in ("seconds", "tokens_per_s")} for event in events]
    steps = [event for event in rest if event["event"] == "train"]
    numbers = [[event.pop(key) for key in ("loss", "lr", "grad_norm", "perplexity", "flops")] for event in steps]
    keys = " ".join(sorted({key for event in events for key in event})) if run.name == "base" else "..."
    last = {} if not steps else {"tokens": steps[-1]["tokens"], "epoch": steps[-1]["epoch"], "reports": len(steps)}
    others = [event for event in rest if event["event"] != "train"]
    for event in others:
        if "samples" in event:
            event["samples"] = [sample["hyp"] for sample in event["samples"]]
    return {"keys": keys, "last": last, "events": others, "numbers": [n for row in numbers for n in row]}


def files_of(run: Path) -> Json:
    """The SHA-256 of what a run left; of what holds times the rest. The store comes from text alone."""
    found: dict[str, Json] = {}
    for path in sorted(path for path in run.rglob("*") if path.is_file() and path.name not in ("lock", "log.jsonl")):
        name, content = str(path.relative_to(run)), path.read_bytes()
        if name.startswith("exports/"):
            continue
        if path.name == "state.json":
            found[name] = {k: v for k, v in json.loads(content).items() if k not in ("seconds", "data")} | {
                "data": "..."
            }
        elif path.name in ("manifest.json", "store.json", "parent.json"):
            found[name] = pruned(json.loads(content))
        else:
            found[name] = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return found


def pruned(manifest: Json) -> Json:
    """A manifest without its own sum, sums of other files, and the version that wrote it."""
    left = {key: value for key, value in manifest.items() if key not in ("sha256", "dragoman", "files")}
    files = {"files": sorted(manifest["files"])} if isinstance(manifest.get("files"), dict) else {}
    return {key: "..." if "sha256" in json.dumps(value) else value for key, value in left.items()} | files


# The same in Python


def public_names() -> Json:
    """Public names, with the names and defaults of what they take."""
    import dragoman

    found: dict[str, Json] = {
        "all": list(dragoman.__all__),
        "dir": sorted(dir(dragoman)),
        "version": dragoman.__version__,
    }
    for name in dragoman.__all__:
        value = getattr(dragoman, name)
        found[name] = {"signature": signature(value)}
        if inspect.isclass(value):
            ours = [base.__name__ for base in value.__mro__ if base is not object]
            found[name]["bases"] = [each for each in ours if not each.startswith("_")]
            if not issubclass(value, Exception):
                mine = [key for key in vars(value) if not key.startswith("_")]
                methods = [key for key in mine if callable(getattr(value, key, None)) and key not in ("count", "index")]
                found[name]["methods"] = {key: signature(getattr(value, key)) for key in sorted(methods)}
                found[name]["fields"] = list(getattr(value, "_fields", ()) or getattr(value, "model_fields", ()))
    return found


def signature(value: Any) -> str:
    """Names and defaults of parameters, without types, which may be spelt in many ways."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "?"
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    text = ", ".join(("*" if one.kind is one.KEYWORD_ONLY else "") + str(one) for one in bare)
    return re.sub(r"<(\w+).*?at 0x\w+>", r"<\1>", text)


def defaults() -> Json:
    """Every setting with its default, and what the presets set."""
    import dragoman

    found: dict[str, list[str]] = {}
    for preset in (None, "tiny", "small", "base", "big"):
        model = {} if preset is None else {"preset": preset}
        config = dragoman.Config.from_mapping({"data": {"train": {"src": "a.en", "tgt": "b.de"}}, "model": model})
        lines = config.to_yaml().split("\n")
        found[preset or "none"] = [line for line in lines if preset is None or line not in found["none"]]
    return found


def old_config() -> Json:
    """A configuration in which every setting has another value than its default, read and written again."""
    import dragoman

    config = dragoman.Config.from_yaml("config-v1.yaml")
    again = dragoman.Config.from_yaml("config-v1.yaml", ["train.max_steps=777", "model.dropout=0.25"])
    return [config.to_yaml().split("\n"), config == again, again.train.max_steps, str(again.model.dropout)]


def python_refusals() -> Json:
    """What is raised, and what it says."""
    import dragoman

    translator = dragoman.Translator.load("old")
    attempts: dict[str, Callable[[], Any]] = {
        "a string": lambda: translator.translate("a dog"),
        "no run": lambda: dragoman.Translator.load([]),
        "prefixes": lambda: translator.translate(["a", "b"], prefix=["x"]),
        "line end": lambda: translator.translate(["a"], prefix="x\n"),
        "include": lambda: translator.translate(["a"], include="x"),
        "n best": lambda: translator.translate(["a"], n_best=0),
        "no number": lambda: translator.translate(["a"], beam_size="x"),  # type: ignore[arg-type]
        "score": lambda: translator.score(["a"], []),
        "sampling": lambda: translator.translate(["a"], **drawn(temperature=-1)),
        "glossary": lambda: dragoman.Glossary([("a", "b"), ("a", "c")]),
        "glossary file": lambda: dragoman.Glossary.load("three.tsv"),
        "mapping": lambda: dragoman.Config.from_mapping({"data": {"train": 7}}),
        "model": lambda: dragoman.ModelConfig(src_vocab_size=5, tgt_vocab_size=6),
        "unknown": lambda: dragoman.ModelConfig(src_vocab_size=5, tgt_vocab_size=5, n_head=2),
        "evaluate": lambda: dragoman.evaluate("old", ref="tiny.de"),
        "train": lambda: dragoman.train(out="x"),
        "export": lambda: dragoman.export("old", "fairseq"),
        "certify": lambda: dragoman.certify("old", "old", src="tiny.en"),
        "attribute": lambda: dragoman.nothing,
    }
    found = {}
    for name, attempt in attempts.items():
        try:
            found[name] = f"not refused: {type(attempt()).__name__}"
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def fields(value: Any) -> Json:
    """A named tuple or dataclass, and those within it, as JSON has it; nan and notes as words."""
    if hasattr(value, "_asdict"):
        return {
            key: [str(one) for one in each] if key == "notes" else fields(each) for key, each in value._asdict().items()
        }
    if dataclasses.is_dataclass(value):
        every = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {key: [str(one) for one in each] if key == "notes" else fields(each) for key, each in every.items()}
    if isinstance(value, list | tuple):
        return [fields(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def train_in_python() -> Json:
    """The function: with a configuration as an object, and with overrides."""
    import dragoman

    overrides = ["train.max_steps=10", "train.save_every=5", "train.validate_every=5", "train.average=2"]
    config = dragoman.Config.from_mapping(SMALL | {"train": SMALL["train"] | {"max_steps": 8}})
    found = []
    for out, given in (
        ("p1", {"config": config}),
        ("p2", {"config": "configs/train-paper.yaml", "overrides": overrides}),
    ):
        first, *_ = inspect.signature(dragoman.train).parameters
        trained = dragoman.train(given.pop("config"), out=out, quiet=True, **given)
        found.append([first, str(trained.run), trained.reason, trained.step, fields(trained.validation)])
    return found


def ways_in_python() -> dict[str, Callable[[], Json]]:
    """The same texts by a few options each."""
    import dragoman

    texts = Path("bits.en").read_bytes().decode("utf-8", "replace").split("\n")
    options: dict[str, dict[str, Any]] = {
        "default": {}, "greedy": dict(beam_size=1), "three": dict(n_best=3), "aligned": dict(alignments=True),
        "deterministic": dict(deterministic=True), "workers": dict(threads=2, batch_tokens=60),
        "no guard": dict(guard=False, patience=1, length_penalty=1.5),
    }  # fmt: skip

    def translated(run: str | list[str] = "base", **settings: Any) -> Any:
        return dragoman.Translator.load(run, "cpu").translate(texts, **settings)

    def sampled() -> Json:
        return fields(translated("second", **drawn(seed=5, top_p=0.8), first_number=100))

    def alone() -> Json:
        translator = dragoman.Translator.load("base")
        return [translator.translate([text])[0].text for text in texts] == [one.text for one in translated()]

    def scored() -> Json:
        targets = [one.text for one in translated()]
        found = dragoman.Translator.load("base").score(texts, targets, alignments=True)
        return [fields(one) | {"tokens": len(one.tokens)} for one in found]

    ways = {name: lambda settings=settings: fields(translated(**settings)) for name, settings in options.items()}
    return {**ways, "sampled": sampled, "alone and together": alone, "scored": scored}


def drawn(**settings: Any) -> dict[str, Any]:
    """How to ask for samples: by an object of the public class, where there is one, or by name."""
    import dragoman

    if "Sampling" in dragoman.__all__:
        return {"sampling": dragoman.Sampling(**settings)}
    return {"sample": True, **settings}


def wishes_in_python() -> dict[str, Callable[[], Json]]:
    """Wishes of an ensemble that only Python can have, and a file."""
    import dragoman

    texts = [en for en, _, _ in toy.sentences(12, 11)]

    def ensemble() -> Any:
        return dragoman.Translator.load(["base", "second"])

    def with_a_glossary() -> Json:
        glossary = dragoman.Glossary([("dog", "Dackel"), ("IKEA", None), ("Anna", "Anne")])
        return fields(ensemble().translate(texts, glossary=glossary, exclude=["das"], no_repeat_ngram=3))

    def to_a_file() -> Json:
        lines = ensemble().translate_file(Path("bits.en"), Path("python.de"))
        return [lines, Path("python.de").read_text(encoding="utf-8").split("\n")]

    return {
        "prefixes": lambda: fields(ensemble().translate(texts, prefix=["Die ", "Der ", "", "Nie "] * 3)),
        "glossary": with_a_glossary,
        "include": lambda: fields(ensemble().translate(texts, include=["Hund", "Hund"], n_best=2, beam_size=5)),
        "file": to_a_file,
    }


def assess_in_python() -> Json:
    """Scores as objects."""
    import dragoman

    translator = dragoman.Translator.load("second")
    found = dragoman.evaluate(translator, src="eval.en", ref="eval.de", beam_size=2, quiet=True)
    compared = dragoman.compare("eval.de", translator, src="eval.en", ref="eval.de", quiet=True)
    return {
        "scores": fields(found.scores), "strings": len([str(score) for score in found.scores]),
        "compared": fields(compared.comparisons), "verdicts": len([one.verdict() for one in compared.comparisons]),
    }  # fmt: skip


def models() -> Json:
    """Logits of random weights, their names and shapes, and one step of a search."""
    import torch

    import dragoman

    found = {}
    known: set[str] = set()
    options: dict[str, dict[str, Any]] = {
        "paper": {}, "pre": dict(norm="pre"), "swiglu": dict(activation="swiglu"), "rotary": dict(positions="rotary"),
        "learned": dict(positions="learned"), "none": dict(share_embeddings="none", generator_bias=True),
        "language model": dict(n_encoder_layers=0), "encoder": dict(n_decoder_layers=0),
    }  # fmt: skip
    src, tgt = torch.tensor([[7, 12, 5, 3], [9, 3, 0, 0]]), torch.tensor([[2, 11, 12], [2, 8, 0]])
    for name, changes in options.items():
        torch.manual_seed(3)
        sizes = dict(d_model=16, d_ff=24, n_heads=2, n_encoder_layers=2, n_decoder_layers=2)
        config = dragoman.ModelConfig(src_vocab_size=30, tgt_vocab_size=30, **(sizes | changes))
        model = dragoman.Transformer(config).eval()
        shapes = [f"{key} {list(value.shape)}" for key, value in model.state_dict().items()]
        with torch.no_grad():
            if name == "encoder":
                out = model.encode(src)
            else:
                out = model(None if name == "language model" else src, tgt)
        known = set(shapes) if name == "paper" else known
        named = shapes if name == "paper" else [line for line in shapes if line not in known]
        found[name] = {
            "count": len(shapes),
            "names": "; ".join(named),
            "out": [float(one) for one in out.flatten()[:40]],
        }
    return found


# Comparing


def differences(old: Path, new: Path, tolerance: float) -> list[str]:
    """A line or a few for each difference between two records."""
    found: list[str] = []
    for name in ("texts.json", "floats.json"):
        values = [json.loads((folder / name).read_text(encoding="utf-8")) for folder in (old, new)]
        found += [f"{name}: {line}" for line in unlike(*values, tolerance if name == "floats.json" else 0.0)]
    pages = [(folder / "help.txt").read_text(encoding="utf-8").split("\n") for folder in (old, new)]
    found += [f"help.txt: {line}" for line in difflib.unified_diff(*pages, "old", "new", lineterm="", n=0)]
    return found


def unlike(old: Json, new: Json, tolerance: float, where: str = "") -> Iterator[str]:
    """Walk two values together."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            place = f"{where} / {key}" if where else key
            if key not in new:
                yield f"{place}: is missing now"
            elif key not in old:
                yield f"{place}: is new: {brief(new[key])}"
            else:
                yield from unlike(old[key], new[key], tolerance, place)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from unlike(one, other, tolerance, f"{where}[{number}]")
    elif isinstance(old, float) and isinstance(new, float):
        alike = old == new or (math.isnan(old) and math.isnan(new))
        if not alike and not abs(old - new) <= tolerance * max(abs(old), abs(new)):
            yield f"{where}: {old!r} -> {new!r}"
    elif type(old) is not type(new) or old != new:
        yield f"{where}:\n    old {brief(old)}\n    new {brief(new)}"


def brief(value: Json) -> str:
    """A value in at most 300 characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:297]}..."


if __name__ == "__main__":
    sys.exit(main())
