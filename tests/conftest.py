"""What the tests share: a toy language, one small run trained on it, and the command line in processes of its own."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: bit-exactness is promised at one number of threads

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

# a script's shell has what it starts in the background ignore this signal, which the tests send
signal.signal(signal.SIGINT, signal.default_int_handler)

DICTIONARY = """
the=der a=ein dog=hund cat=katze man=mann woman=frau sees=sieht likes=mag finds=findet big=gross small=klein red=rot
green=gruen house=haus tree=baum runs=rennt sleeps=schlaeft today=heute here=hier
"""
WORDS = [entry.split("=") for entry in DICTIONARY.split()]


class Corpus(NamedTuple):
    """Text files of the toy language, which is translated word by word."""

    src: Path
    tgt: Path
    valid_src: Path
    valid_tgt: Path


class Done(NamedTuple):
    """A command line that has ended."""

    status: int
    out: bytes
    err: str

    @property
    def error(self) -> str:
        """The one line that a refusal consists of."""
        lines = [line for line in self.err.split("\n") if line.startswith("error:")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        assert self.err.endswith(f"{lines[0]}\n"), self.err
        return lines[0]


def toy_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    pairs = []
    for _ in range(count):
        words = chance.choices(WORDS, k=chance.randint(2, 8))
        pairs.append((" ".join(en for en, _ in words), " ".join(de for _, de in words)))
    return pairs


def write_pairs(pairs: Sequence[tuple[str, str]], src: Path, tgt: Path) -> None:
    for path, side in ((src, 0), (tgt, 1)):
        path.write_bytes("".join(pair[side] + "\n" for pair in pairs).encode())


@pytest.fixture(scope="session")
def toy_sentences() -> Callable[[int, int], list[tuple[str, str]]]:
    """The function ``toy_pairs`` for those that cannot import this file, for folders below have one of that name."""
    return toy_pairs


@pytest.fixture(scope="session")
def make_corpus() -> Callable[..., Corpus]:
    """A function that writes a toy corpus into a folder."""

    def make(folder: Path, count: int = 400) -> Corpus:
        files = Corpus(*(folder / name for name in ("train.en", "train.de", "valid.en", "valid.de")))
        write_pairs(toy_pairs(count, 1), files.src, files.tgt)
        write_pairs(toy_pairs(20, 2), files.valid_src, files.valid_tgt)
        return files

    return make


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, make_corpus: Callable[..., Corpus]) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def tiny(corpus: Corpus) -> Callable[..., dict[str, Any]]:
    """A function that gives a configuration of seconds, as a mapping; keyword arguments change its ``train``."""

    def mapping(corpus: Corpus = corpus, **train: Any) -> dict[str, Any]:
        return {
            "model": dict(d_model=48, d_ff=64, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, dropout=0.1),
            "data": {
                "train": {"src": str(corpus.src), "tgt": str(corpus.tgt)},
                "valid": {"src": str(corpus.valid_src), "tgt": str(corpus.valid_tgt)},
                "tokenizer": {"vocab_size": 400},
            },
            "train": dict(
                max_steps=30, batch_tokens=500, schedule="inverse_sqrt", lr=1e-2, warmup_steps=20, clip_norm=1.0,
                validate_every=10, save_every=10, log_every=5, average=0, precision="fp32", device="cpu",
            ) | train,
            "decode": {"max_extra_tokens": 10},
        }  # fmt: skip

    return mapping


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., dict[str, Any]]) -> Path:
    """A run that translates the toy language passably; for all tests, so none may change it."""
    import dragoman

    mapping = tiny(max_steps=250, schedule="cosine", batch_tokens=600, validate_every=250, save_every=125)
    mapping["model"]["dropout"] = 0.0
    run = tmp_path_factory.mktemp("runs") / "tiny"
    dragoman.train(dragoman.Config.from_mapping(mapping), out=run, quiet=True)
    return run


@pytest.fixture
def listing() -> Callable[[Path], list[str]]:
    """A function that lists all that is in a folder, hidden files too."""
    return lambda folder: sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def reseal(tiny_run: Path, tmp_path: Path) -> Callable[..., Path]:
    """A function that copies the tiny run's bundle with files or facts changed, under a seal that is right."""
    from dragoman.files import MANIFEST, sealed_folder

    def copy(facts: dict[str, Any] | None = None, **files: bytes | None) -> Path:
        manifest = json.loads((tiny_run / "bundle" / MANIFEST).read_text(encoding="utf-8"))
        kept = {key: value for key, value in manifest.items() if key not in ("files", "sha256")} | (facts or {})
        with sealed_folder(tmp_path / "resealed", kept) as aside:
            for name in manifest["files"]:
                content = files.get(name.partition(".")[0], (tiny_run / "bundle" / name).read_bytes())
                if content is not None:
                    (aside / name).write_bytes(content)
        return tmp_path / "resealed"

    return copy


_ZYGOTE = """
import json, os, sys, traceback
import dragoman.training.run, dragoman.translation.translator, torch._dynamo  # which an optimiser loads
from dragoman.cli import main
for line in os.fdopen(int(sys.argv[1]), closefd=False):
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(job["cwd"])
        for fd, (name, flags) in enumerate(zip(job["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
            os.dup2(os.open(name, flags), fd)
        sys.stdin = open(0, closefd=False)
        sys.argv = ["dragoman", *job["args"]]
        status = 1
        try:
            main()
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)  # taking torch apart would take a second
    status = os.waitpid(child, 0)[1]
    os.write(int(sys.argv[2]), b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="session")
def _zygote() -> Iterator[Callable[[dict[str, Any]], int]]:
    """A process that has imported torch and forks itself for each command."""
    jobs_in, jobs_out = os.pipe()
    answers_in, answers_out = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", _ZYGOTE, str(jobs_in), str(answers_out)], pass_fds=(jobs_in, answers_out)
    )
    os.close(jobs_in)
    os.close(answers_out)
    with os.fdopen(answers_in) as answers, os.fdopen(jobs_out, "w") as jobs:

        def do(job: dict[str, Any]) -> int:
            jobs.write(json.dumps(job) + "\n")
            jobs.flush()
            return int(answers.readline())

        yield do
    process.wait(10)


@pytest.fixture
def command(_zygote: Callable[[dict[str, Any]], int], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """A function that runs ``dragoman`` in a process of its own, which does not import torch anew."""

    def run(*args: Any, stdin: bytes = b"", cwd: Path | None = None) -> Done:
        folder = tmp_path_factory.mktemp("command")
        files = [folder / name for name in ("in", "out", "err")]
        for path, content in zip(files, (stdin, b"", b""), strict=True):
            path.write_bytes(content)
        status = _zygote(
            {"args": [str(arg) for arg in args], "cwd": str(cwd or folder), "files": [str(path) for path in files]}
        )
        return Done(status, files[1].read_bytes(), files[2].read_text(encoding="utf-8"))

    return run
