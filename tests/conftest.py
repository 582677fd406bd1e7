"""What the tests share: a toy language, one small run trained on it, and the command line."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: bit-exactness is promised at one number of threads

import fcntl
import json
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from command_line import Done, run_apart, run_here
from several import settings as settings_of_several

settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fixed")

# a script's shell has what it starts in the background ignore this signal, which the tests send
signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = {"faults", "e2e", "benchmarks", "lab", "toolkits", "doctor", "training", "translation", "serving", "golden",
        "test_docs.py", "test_site.py", "test_progress.py", "test_unfinished_run.py"}  # fmt: skip

LONGEST = "test_soak.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process is left alone with one at the end."""
    tests = Path(__file__).parent
    items.sort(key=lambda item: (item.path.name != LONGEST, not LONG & set(item.path.relative_to(tests).parts)))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a parameter of bytes by its argument.

    What was compressed while the file was read contains the time, and pytest-xdist refuses to run tests whose names
    differ between two of its processes.
    """
    return argname if isinstance(val, bytes) else None


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


CORPUS_FILES = ("train.en", "train.de", "valid.en", "valid.de")


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
        files = Corpus(*(folder / name for name in CORPUS_FILES))
        write_pairs(toy_pairs(count, 1), files.src, files.tgt)
        write_pairs(toy_pairs(20, 2), files.valid_src, files.valid_tgt)
        return files

    return make


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """The size and the time of each file below ``folder``; not of the ledger, which every evaluation of a run fills."""
    files = ((path, path.stat()) for path in folder.rglob("*") if path.is_file() and path.name != "evaluations.jsonl")
    return {str(path.relative_to(folder)): (stat.st_size, stat.st_mtime_ns) for path, stat in files}


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Callable[[Path], object]], Path]]:
    """A function that has a folder made by the first process of a test run that asks for it, and gives it to all.

    None may change what is in it: whoever wants to does so to a copy.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    given: dict[Path, dict[str, tuple[int, int]]] = {}

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        path = shared / "once" / name
        path.mkdir(parents=True, exist_ok=True)
        with (path.parent / f"{name}.made").open("a+") as made:
            fcntl.flock(made, fcntl.LOCK_EX)
            if not made.seek(0, os.SEEK_END):
                make(path)
                made.write(json.dumps(contents(path)))
            made.seek(0)
            given[path] = {file: tuple(stat) for file, stat in json.load(made).items()}
        return path

    yield folder
    for path, before in given.items():
        assert contents(path) == before, f"a test has changed {path}, which is for all"


@pytest.fixture(scope="session")
def corpus(once: Callable[..., Path], make_corpus: Callable[..., Corpus]) -> Corpus:
    return Corpus(*(once("corpus", make_corpus) / name for name in CORPUS_FILES))


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
def tiny_run(once: Callable[..., Path], tiny: Callable[..., dict[str, Any]]) -> Path:
    """A run that translates the toy language passably; for all tests, so none may change it."""
    import dragoman

    mapping = tiny(max_steps=250, schedule="cosine", batch_tokens=600, validate_every=250, save_every=125)
    mapping["model"]["dropout"] = 0.0
    config = dragoman.Config.from_mapping(mapping)
    return once("runs", lambda folder: dragoman.train(config, out=folder / "tiny", quiet=True)) / "tiny"


@pytest.fixture(scope="session")
def several_run(
    once: Callable[..., Path], tiny: Callable[..., dict[str, Any]],
    toy_sentences: Callable[[int, int], list[tuple[str, str]]],
) -> Path:  # fmt: skip
    """A run that translates the toy language into two others; for all tests, so none may change it."""
    import dragoman

    def make(folder: Path) -> None:
        mapping = settings_of_several(tiny, folder, toy_sentences, max_steps=350, schedule="cosine", batch_tokens=600)
        mapping["train"] |= {"validate_every": 350, "save_every": 350}
        mapping["model"]["dropout"] = 0.0
        dragoman.train(dragoman.Config.from_mapping(mapping), out=folder / "run", quiet=True)

    return once("several", make) / "run"


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


def runner(run: Callable[..., Done], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    def command(*args: Any, stdin: bytes = b"", cwd: Path | None = None) -> Done:
        folder = tmp_path_factory.mktemp("command")
        return run([str(arg) for arg in args], stdin, folder, cwd or folder)

    return command


@pytest.fixture
def command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """A function that runs ``dragoman`` in this process: for refusals, and wherever a process is not the point."""
    return runner(run_here, tmp_path_factory)


@pytest.fixture
def process(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """A function that runs ``dragoman`` in a process of its own, which does not import torch anew."""
    return runner(run_apart, tmp_path_factory)


@pytest.fixture
def figure() -> Callable[[str, str], None]:
    """A function that says what a row measured: ``figure("D1", "24 files, 0 counts differ")``.

    ``make test-faults`` shows the lines. They are also added to the file that DRAGOMAN_FIGURES names, if it is set.
    """

    def say(row: str, text: str) -> None:
        print(f"\n{row}: {text}", file=sys.stderr, flush=True)  # the processes of pytest-xdist show no other output
        if path := os.environ.get("DRAGOMAN_FIGURES"):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"row": row, "figure": text}, ensure_ascii=False) + "\n")

    return say
