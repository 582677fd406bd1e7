"""Kill each command of ``written.CALLS`` at each of its file operations, call it again, and compare what it writes.

    LD_PRELOAD=operations.so python kill_commands.py FOLDER RUN TEXTS '[{"name": "augment", "way": "again"}, ...]'

RUN is a trained run and TEXTS a folder with train.en, train.de, valid.en, valid.de. Ways:

    again     killed, and the same call again
    between   killed, the call with other options, and the first call again
    other     the call; the call with other options, killed; and the first call again
    torn      killed when half of the bytes of a write are there, and the same call again
    full      the disk is full from an operation on; then there is room, and the same call again

After each the files must be those of an undisturbed call, hidden and temporary ones included. A refusal must be one
line that says what to do, and doing that must lead there. A job may have "most", the number of operations to try, drawn
by "seed". Each line of the output is the JSON of a job: operations counted and hit, calls made, and what was wrong.
"""

from __future__ import annotations

import ctypes
import gzip
import hashlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import cluster_here
import torch
from foreign_models import write_marian
from written import CALLS, Call, advice_of

import dragoman.bulk.translate
import dragoman.cli
import dragoman.cli.demo
from dragoman.cli.commands import COMMANDS
from dragoman.translation import resumable

COUNT, KILL, FULL, TORN = range(4)
FAULTS = {"full": FULL, "torn": TORN}
"""What an operation meets in a way; it is a kill in the others."""
WRITES = ("+write", "+pwrite", "+fwrite ", "+sendfile", "+copy_file_range ")
"""How a line of the log begins whose operation has bytes, of which the first half may be written."""
LIMIT_S = 180
LIBRARY = ctypes.CDLL(None)
LIBRARY.operations_log.restype = ctypes.c_char_p
LIBRARY.operations_watch(b"", 0, COUNT)  # makes the counter, which all processes forked from here share
TEMPORARY = re.compile(r"[0-9a-f]{8}\.tmp|(?<=dragoman-)\w{8}|(?<=^tmp)\w{8}|(?<=/tmp)\w{8}")

BOOK = "# the dog\n\nthe dog runs here\n\n- a cat sees the house\n- the man likes a tree\n"


class Ended(NamedTuple):
    """A call that has ended: its status (minus the signal that killed it), and what it said on stderr."""

    status: int
    errors: str

    @property
    def refusal(self) -> str:
        """The one line of a refusal; "" if it is anything else."""
        lines = [line for line in self.errors.splitlines() if line.startswith("error:")]
        return lines[0] if self.status == 2 and len(lines) == 1 and "Traceback" not in self.errors else ""


@dataclass(frozen=True)
class Place:
    """The folders of the harness; what is below ``watched`` is counted."""

    base: Path

    @property
    def watched(self) -> Path:
        return self.base / "watched"

    @property
    def work(self) -> Path:
        """Where a call is made."""
        return self.watched / "work"

    @property
    def temporary(self) -> Path:
        """For temporary files that are in nobody's folder."""
        return self.watched / "temporary"

    def become(self, template: Path) -> None:
        """Make the folders those of a template."""
        shutil.rmtree(self.watched, ignore_errors=True)
        self.watched.mkdir()
        self.temporary.mkdir()
        shutil.copytree(template, self.work, symlinks=True)

    def call(self, words: tuple[str, ...], nth: int = 0, fault: int = COUNT) -> Ended:
        """Call ``dragoman`` in a process of its own; operation ``nth`` meets the fault."""
        errors = self.base / "errors"
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            _become(words, self, errors)
            LIBRARY.operations_watch(f"{self.watched}/".encode(), nth, fault)
            try:
                dragoman.cli.main()
            except SystemExit as end:
                os._exit(end.code if isinstance(end.code, int) else 1)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        until = time.monotonic() + LIMIT_S
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return Ended(1, f"no end after {LIMIT_S} seconds")
            time.sleep(0.002)
        return Ended(os.waitstatus_to_exitcode(ended[1]), errors.read_text(encoding="utf-8", errors="replace"))

    def tree(self, call: Call) -> dict[str, str]:
        """Return a digest of each file that is there, and each folder; what varies by declaration is left out."""
        tree = {}
        for path in sorted(self.watched.rglob("*")):
            name = TEMPORARY.sub("*", str(path.relative_to(self.watched)))
            tree[name] = "a folder" if path.is_dir() else _digest(path, name, call)
        return tree


def _become(words: tuple[str, ...], place: Place, errors: Path) -> None:
    """Turn this process into a call: its folder, its streams, its arguments."""
    os.chdir(place.work)
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.temporary)  # Python tries one by writing into it, if not told
    for fd, path in ((0, os.devnull), (1, place.base / "output"), (2, errors)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, fd)
        os.close(file)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["dragoman", *words]


def _digest(path: Path, name: str, call: Call) -> str:
    data = path.read_bytes()
    for pattern, different in call.varies:
        if re.search(pattern, name):
            text = re.sub(different, "", data.decode("utf-8", errors="replace"))
            data = text.encode() if text.strip() else b""
    return hashlib.sha256(data).hexdigest()[:12]


@dataclass
class Found:
    """What the tries of one job came to."""

    call: str
    way: str
    operations: int = 0
    hit: int = 0
    calls: int = 0
    wrong: list[list[Any]] = field(default_factory=list)


class Harness:
    """Makes the inputs once, and each call in a copy of them."""

    def __init__(self, base: Path, run: Path, texts: Path) -> None:
        self.base, self.place = base, Place(base)
        self.inputs = base / "inputs"
        if not self.inputs.exists():
            _make_inputs(self.inputs, run, texts)

    def template(self, name: str) -> Path:
        """Return the folder in which a call begins, with what goes before it done."""
        call, folder = CALLS[name], self.base / "templates" / re.sub(r"\W+", "-", name)
        if not call.first:
            return self.inputs
        if not folder.exists():
            self.place.become(self.inputs)
            for words in call.first:
                ended = self.place.call(words)
                assert ended.status == 0, (words, ended)
            shutil.copytree(self.place.work, folder)
        return folder

    def job(self, name: str, way: str, most: int | None = None, seed: int = 0) -> Found:
        """Try a call in one way at each of its operations, or at ``most`` of them."""
        call, template = CALLS[name], self.template(name)
        self.place.become(template)
        ended = self.place.call(call.words)
        assert ended.status == 0, (name, ended)
        found, whole = Found(name, way, calls=1), self.place.tree(call)
        killed = call.words
        if way == "other":
            template = self.base / "whole"
            shutil.rmtree(template, ignore_errors=True)
            shutil.copytree(self.place.work, template)
            killed = call.other
            ended = self.place.call(killed)
            found.calls += 1
        found.operations = LIBRARY.operations_count()
        log = LIBRARY.operations_log().decode(errors="replace").split("\n")
        known: dict[str, list[Any]] = {}
        begins = {"full": "+", "torn": WRITES}.get(way, "")
        points = [n for n in range(1, found.operations + 1) if not begins or log[n - 1].startswith(begins)]
        found.operations = len(points)
        if most is not None and most < len(points):
            points = sorted(random.Random(f"{seed} {name} {way}").sample(points, most))
        for nth in points:
            self.place.become(template)
            ended = self.place.call(killed, nth, FAULTS.get(way, KILL))
            found.hit += 1
            found.calls += 1
            tree = self.place.tree(call)
            problem = _problem_when_full(ended, tree, whole) if way == "full" else _problem_when_killed(ended)
            state = json.dumps([tree, ended.status if way == "full" else 0])
            if state not in known:  # what a call does follows from the files that are there
                known[state] = self.again(call, way, whole, found)
            if problem or known[state]:
                found.wrong.append([nth, log[nth - 1], *problem, *known[state]])
        return found

    def again(self, call: Call, way: str, whole: dict[str, str], found: Found) -> list[Any]:
        """Call again, do what a refusal says, and return what is wrong then."""
        done_by_other = False
        if way == "between":
            ended = self.place.call(call.other)
            found.calls += 1
            if ended.status and not ended.refusal:
                return ["with other options: no refusal of one line", ended.errors[-600:]]
            done_by_other = not ended.status
        words = call.words
        for _ in range(4):
            ended = self.place.call(words)
            found.calls += 1
            if not ended.status:
                break
            if done_by_other and call.keeps and ended.refusal:
                return []
            advice = advice_of(ended.refusal)
            if advice is None:
                return ["refused for ever" if ended.refusal else "failed", ended.refusal or ended.errors[-600:]]
            words = self.follow(*advice, words)
        else:
            return ["its advice leads nowhere", ended.refusal]
        now = self.place.tree(call)
        differing = sorted(name for name in whole | now if whole.get(name) != now.get(name))
        left = [name for name in differing if name not in whole]
        return (["left behind" if left == differing else "other bytes", differing[:6]]) if differing else []

    def follow(self, action: str, path: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """Do what a refusal says; return the words of the next call."""
        if action == "resume":
            return ("train", "--out", "run", "--resume")
        if action == "add":
            return (*words, "--resume")
        if action == "restart":
            return (*words, "--restart")
        if action == "begin":
            return tuple(word for word in words if word != "--resume")
        assert action == "remove", action
        there = self.place.work / path
        shutil.rmtree(there) if there.is_dir() else there.unlink()
        return words


def _problem_when_killed(ended: Ended) -> list[Any]:
    return [] if ended.status == -signal.SIGKILL else ["not killed", ended.status, ended.errors[-300:]]


def _problem_when_full(ended: Ended, tree: dict[str, str], whole: dict[str, str]) -> list[Any]:
    """Return what is wrong with a call on a full disk: it must do all or refuse in one line, and clear away."""
    if not ended.status and tree != whole:
        return [
            "on a full disk: done, it says",
            sorted(name for name in whole | tree if whole.get(name) != tree.get(name))[:6],
        ]
    if not ended.status:
        return []
    if ended.refusal:
        left = [name for name in tree if "*" in name]
        return ["left behind on a full disk", left] if left else []
    return ["on a full disk: no refusal of one line", ended.status, ended.errors[-600:]]


def _make_inputs(folder: Path, run: Path, texts: Path) -> None:
    """Make the files that the calls read; a folder of that name is complete."""
    aside = folder.with_name("inputs.aside")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(run / "bundle", aside / "tiny/bundle")
    for name in ("config.yaml", "log.jsonl"):
        shutil.copy(run / name, aside / "tiny")
    write_marian(aside / "tiny", aside / "marian")
    lines = {name: (texts / name).read_bytes().splitlines(keepends=True) for name in ("train.en", "train.de")}
    for name, begin, end in (("train", 0, 130), ("test", 130, 160)):
        for lang in ("en", "de"):
            (aside / f"{name}.{lang}").write_bytes(b"".join(lines[f"train.{lang}"][begin:end]))
    for name in ("valid.en", "valid.de"):
        (aside / name).write_bytes(b"".join((texts / name).read_bytes().splitlines(keepends=True)[:6]))
    (aside / "book.md").write_text(BOOK, encoding="utf-8")
    (aside / "books/more").mkdir(parents=True)
    for name in ("books/a.md", "books/more/b.md"):
        (aside / name).write_text(BOOK, encoding="utf-8")
    (aside / "shards/more").mkdir(parents=True)
    (aside / "shards/a.txt").write_bytes(b"".join(lines["train.en"][130:142]))
    (aside / "shards/more/b.txt.gz").write_bytes(gzip.compress(b"".join(lines["train.en"][142:150]), mtime=0))
    (aside / "tiny.yaml").write_text(json.dumps(_settings(("en", "de"))), encoding="utf-8")
    without_sizes = _settings(("en", "de"))
    del without_sizes["model"], without_sizes["data"]["tokenizer"]
    (aside / "from.yaml").write_text(json.dumps(without_sizes), encoding="utf-8")
    (aside / "back.yaml").write_text(json.dumps(_settings(("de", "en"))), encoding="utf-8")
    aside.rename(folder)


def _settings(langs: tuple[str, str]) -> dict[str, Any]:
    src, tgt = langs
    return {
        "model": dict(d_model=16, d_ff=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, dropout=0.1),
        "data": {
            "src_lang": src, "tgt_lang": tgt,
            "train": {"src": f"train.{src}", "tgt": f"train.{tgt}"},
            "valid": {"src": f"valid.{src}", "tgt": f"valid.{tgt}"},
            "tokenizer": {"vocab_size": 300},
        },
        "train": dict(
            max_steps=8, batch_tokens=500, schedule="inverse_sqrt", lr=1e-2, warmup_steps=20, clip_norm=1.0,
            validate_every=4, save_every=2, log_every=2, average=0, precision="fp32", device="cpu",
        ),
        "decode": {"max_extra_tokens": 5, "beam_size": 1},
    }  # fmt: skip


LOADED = {
    "train": ("torch._dynamo", "dragoman.training.run"),
    "augment": ("dragoman.distillation.augment", "dragoman.translation.pair_reader"),
    "distill": ("dragoman.distillation.distill", "torch._dynamo", "ctranslate2.specs"),
    "translate": ("dragoman.translation.pair_reader", "dragoman.documents.translate"),
    "score": ("dragoman.translation.pair_reader",),
    "evaluate": ("dragoman.evaluation.evaluate", "dragoman.translation.pair_reader"),
    "calibrate": ("dragoman.evaluation.calibration", "dragoman.translation.pair_reader"),
    "explain": ("dragoman.explanation.outputs", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"),
    "report": ("dragoman.history.report", "dragoman.history.translations"),
    "doctor": ("dragoman.doctor.diagnosis", "dragoman.doctor.page", "matplotlib.backends.backend_svg"),
    "demo": (
        "torch._dynamo",
        "dragoman.training.run",
        "dragoman.explanation.outputs",
        "matplotlib.backends.backend_agg",
    ),
    "lab": ("dragoman.lab.report", "dragoman.lab.masks", "matplotlib.backends.backend_agg"),
    "export": ("dragoman.evaluation.certify", "ctranslate2.specs", "onnx", "transformers"),
    "import": ("dragoman.toolkits.import_", "ctranslate2.specs"),
    "serve": ("dragoman.cli.serve",),
}
"""Modules that the calls of a command would each import again: here once, for all processes."""


def _prepare(names: set[str]) -> None:
    """Import what these calls import, and make windows and corpora small."""
    torch.set_num_threads(1)
    for command in {CALLS[name].words[0] for name in names}:
        for module in (f"dragoman.cli.{COMMANDS[command].function.partition(':')[0]}", *LOADED[command]):
            importlib.import_module(module)
    resumable.make_file.__defaults__ = (False, 10)  # lines a window
    dragoman.bulk.translate.connected = cluster_here.connected  # type: ignore[assignment]
    dragoman.cli.demo.SPLITS = {
        name: (300 if name == "train" else 6, split, seed)
        for name, (_, split, seed) in dragoman.cli.demo.SPLITS.items()
    }


def main() -> None:
    base, run, texts, jobs = sys.argv[1:]
    _prepare({job["name"] for job in json.loads(jobs)})
    harness = Harness(Path(base), Path(run), Path(texts))
    for job in json.loads(jobs):
        begun = time.monotonic()
        found = harness.job(**job)
        print(json.dumps({**vars(found), "seconds": round(time.monotonic() - begun, 1)}), flush=True)


if __name__ == "__main__":
    main()
