"""Rows M1 to M6: a model file that is damaged, foreign or meant to harm is refused in one line and does nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from amounts import amounts
from hostile import hostile_tensors, laughs, mutated_config

from dragoman.bundle import load_bundle
from dragoman.cli import app
from dragoman.config import Config
from dragoman.errors import BundleError, DragomanError
from dragoman.model.weights import read_weights
from processes import start_code, start_script

Command = Callable[..., Any]
Figure = Callable[[str, str], None]
Reseal = Callable[..., Path]

HERE = Path(__file__).parent

# --- M1 ---------------------------------------------------------------------------------------------------------------


def test_M1_no_command_unpickles_anything(
    tmp_path: Path, tiny: Callable[..., Any], corpus: Any, figure: Figure
) -> None:
    config, run = tmp_path / "config.yaml", tmp_path / "x"
    config.write_text(yaml.safe_dump(tiny(save_every=2, validate_every=4, ema=0.9, average=2)), encoding="utf-8")
    (tmp_path / "text").write_text("a dog\n\nthe cat\n", encoding="utf-8")
    valid = ["--src", corpus.valid_src]
    commands = [
        ["train", config, "--out", run, "--set", "train.max_steps=4", "--quiet"],
        ["train", "--out", run, "--resume", "--set", "train.max_steps=8", "--quiet"],
        ["translate", run, tmp_path / "text"],
        ["translate", run, tmp_path / "text", "--out", tmp_path / "out"],
        ["evaluate", run, *valid, "--ref", corpus.valid_tgt],
        ["explain", run, "a dog", "--out", tmp_path / "a.svg"],
        ["export", run, "--format", "ctranslate2"],
    ]
    known = {str(command.name) for command in app.registered_commands} - {
        "demo",
        "serve",
        "formats",
        "import",
    }  # they train, load and translate, or write no model; import reads .bin by weights_only, see tests/toolkits
    if "distill" in known:
        text = ["--src", corpus.src, "--ref", corpus.tgt, "--valid-src", corpus.valid_src,
                "--valid-ref", corpus.valid_tgt]  # fmt: skip
        steps = ["--set", "train.max_steps=2", "--set", "train.warmup_steps=1"]
        commands.append(["distill", run, *text, "--preset", "student-tiny", *steps, "--out", tmp_path / "student"])
    if "augment" in known:
        commands.append(["augment", "--forward", run, "--src", corpus.valid_src, "--out", tmp_path / "made"])
    if "runs" in known:
        commands.append(["runs", tmp_path])
    if "report" in known:
        commands.append(["report", run, "--out", tmp_path / "report.html"])
    if "calibrate" in known:
        commands.append(["calibrate", run, "--src", corpus.src, "--ref", corpus.tgt])
    if "score" in known:
        commands.append(["score", run, *valid, "--ref", corpus.valid_tgt])
    if "doctor" in known:
        commands.append(["doctor", run])
    if "lab" in known:
        commands.append(["lab", "heads", "--run", run, "--quick", "--out", tmp_path / "lab"])
    assert {command[0] for command in commands} == known
    arguments = json.dumps([[str(argument) for argument in command] for command in commands])
    process = start_script(HERE / "unpickle_nothing.py", arguments, cwd=tmp_path)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert json.loads(out) == {"statuses": [0] * len(commands), "unpickled": []}, err
    figure("M1", f"{', '.join(sorted(known))}: 0 objects unpickled; no reader of .pt files exists")


# --- M2 ---------------------------------------------------------------------------------------------------------------


@amounts(40, 200)
def test_M2_hostile_safetensors_are_refused_within_a_second(
    n: int, tiny_run: Path, tmp_path: Path, reseal: Reseal, figure: Figure
) -> None:
    expected = read_weights(tiny_run / "bundle/model.safetensors")
    path = tmp_path / "model.safetensors"
    slowest, kinds = 0.0, Counter[str]()
    files = hostile_tensors(expected, seed=n)
    for _ in range(n):
        kind, content = next(files)
        path.write_bytes(content)
        start = time.process_time()
        with pytest.raises(BundleError) as caught:
            read_weights(path, expected)
        slowest = max(slowest, time.process_time() - start)
        assert str(path) in str(caught.value), kind
        assert len(str(caught.value)) < 500, kind
        try:  # where nothing is expected, it is refused or takes no more memory than the file has bytes
            found = read_weights(path)
        except BundleError:
            pass
        else:
            assert sum(tensor.nbytes for tensor in found.values()) <= len(content), kind
        kinds[kind] += 1
    for (_, content), _ in zip(hostile_tensors(expected, seed=1), range(n // 5), strict=False):  # under a right seal
        with pytest.raises(BundleError):
            load_bundle(reseal(model=content))
    assert slowest < 1
    figure(
        "M2",
        f"{n} hostile files of {len(kinds)} kinds: {n} refused, the slowest after {slowest:.2f} s of the processor, "
        "0 crashes",
    )


# --- M3 ---------------------------------------------------------------------------------------------------------------


@amounts(100, 1000)
def test_M3_mutated_configurations_are_read_or_refused(
    n: int, tiny_run: Path, tmp_path: Path, reseal: Reseal, figure: Figure
) -> None:
    text = (tiny_run / "bundle/config.yaml").read_text(encoding="utf-8")
    chance, path = random.Random(n), tmp_path / "config.yaml"
    refused = read = loaded = 0
    slowest = 0.0
    for i in range(n):
        content = mutated_config(text, chance)
        path.write_bytes(content)
        start = time.process_time()
        try:
            Config.from_yaml(path)
        except DragomanError as error:
            refused += 1
            assert len(str(error)) < 200_000  # noqa: PT017
        else:
            read += 1
            if i % 4 == 0:  # one that is read goes on to be held against the weights
                try:
                    load_bundle(reseal(config=content))
                except DragomanError:
                    pass
                else:
                    loaded += 1
        slowest = max(slowest, time.process_time() - start)
    assert refused > n / 3
    assert read > 0
    path.write_text(laughs(), encoding="utf-8")
    with pytest.raises(DragomanError, match="aliases"):
        Config.from_yaml(path)
    assert slowest < 5
    figure("M3", f"{n:,} mutated configurations: {refused} refused by a typed error, {read} read, 0 other errors; the "
                 f"slowest after {slowest:.1f} s of the processor")  # fmt: skip


# --- M4 ---------------------------------------------------------------------------------------------------------------


@amounts(60, 500)
def test_M4_mutated_subword_models_are_refused_or_work(n: int, tiny_run: Path, figure: Figure) -> None:
    process = start_script(HERE / "survive_models.py", tiny_run / "bundle/joint.spm", n)
    out, err = process.communicate()
    assert process.returncode == 0, f"died with {process.returncode}: {err[-2000:]!r}"
    refused = int(out)
    assert n / 2 < refused < n
    figure("M4", f"{n} mutated SentencePiece models: {refused} refused, {n - refused} harmless and used, 0 crashes")


# --- M5 ---------------------------------------------------------------------------------------------------------------


def archives(folder: Path, inner: Path) -> list[Path]:
    """Archives with entries that lead out of any folder, links, and a bomb."""
    paths = []
    for name, entry in (("up", "../escaped"), ("absolute", str(folder / "escaped")), ("inside", "model.safetensors")):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as zipped:
            zipped.write(inner, entry)
        for suffix, mode in ((".tar", "w"), (".tar.gz", "w:gz"), (".tar.bz2", "w:bz2"), (".tar.xz", "w:xz")):
            with tarfile.open(folder / f"{name}{suffix}", mode) as tarred:
                info = tarred.gettarinfo(inner, entry)
                info.name = entry
                with inner.open("rb") as content:
                    tarred.addfile(info, content)
            paths.append(folder / f"{name}{suffix}")
        paths.append(folder / f"{name}.zip")
    with tarfile.open(folder / "links.tar", "w") as tarred:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            link = tarfile.TarInfo("bundle")
            link.type, link.linkname = kind, str(folder / "escaped")
            tarred.addfile(link)
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("bundle/config.yaml", bytes(2**27))
    (folder / "disguised").write_bytes((folder / "up.tar.gz").read_bytes())
    return [*paths, folder / "links.tar", folder / "bomb.zip", folder / "disguised"]


@amounts(3, 18)
def test_M5_archives_are_refused_and_nothing_is_unpacked(
    n: int,
    command: Command,
    tiny_run: Path,
    tmp_path: Path,
    listing: Callable[[Path], list[str]],
    corpus: Any,
    figure: Figure,
) -> None:
    paths = random.Random(2).sample(archives(tmp_path, corpus.valid_src), n)
    before = listing(tmp_path)
    tried = 0
    for path in paths:
        uses = [
            ("translate", path),
            ("translate", tiny_run, path),
            ("train", "--src", path, "--tgt", corpus.tgt, "--out", tmp_path / "new"),
            ("evaluate", tiny_run, "--src", corpus.valid_src, "--ref", path),
            ("train", path, "--out", tmp_path / "new"),
            ("translate", tiny_run, corpus.valid_src, "--glossary", path),
        ]
        for args in uses:
            done = command(*args, stdin=b"a dog\n")
            assert done.status == 2, (args, done)
            assert path.name in done.error, done.error
            assert done.out == b""
            assert listing(tmp_path) == before
            tried += 1
    figure("M5", f"{len(paths)} archives (.., absolute paths, links, a bomb) as run, text, glossary, configuration: "
                 f"{tried} of {tried} refused in one line, 0 files written")  # fmt: skip


# --- M6 ---------------------------------------------------------------------------------------------------------------

_TRANSLATE_AGAIN = """
import os, shutil, sys
from pathlib import Path
from dragoman import Translator
bundle = Path(sys.argv[1])
translator, weights = Translator.load(bundle, "cpu"), bundle / "model.safetensors"
damages = [
    lambda: None, lambda: os.truncate(weights, 100), lambda: os.truncate(weights, 0),
    lambda: weights.write_bytes(os.urandom(10_000)), lambda: shutil.rmtree(bundle),
]
for damage in damages:
    damage()
    print([(found.text, found.score) for found in translator.translate(["the dog sees a cat", "a big house"])])
"""

_LOAD_AGAIN = """
import sys
from dragoman.model.weights import read_weights
from dragoman.errors import BundleError
from pathlib import Path
refused = whole = 0
for _ in range(int(sys.argv[2])):
    try:
        read_weights(Path(sys.argv[1]))
        whole += 1
    except BundleError:
        refused += 1
print(whole, refused)
"""


@amounts(100, 3000)
def test_M6_a_model_file_that_changes_under_a_running_program_does_no_harm(
    n: int, tiny_run: Path, tmp_path: Path, figure: Figure
) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "bundle")
    process = start_code(_TRANSLATE_AGAIN, tmp_path / "bundle")
    out, err = process.communicate()
    assert process.returncode == 0, f"died with {process.returncode}: {err!r}"
    first, *others = out.decode().splitlines()
    assert "haus" in first
    assert others == [first] * 4
    content = (tiny_run / "bundle/model.safetensors").read_bytes()
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(content)
    loading = start_code(_LOAD_AGAIN, weights, n)
    chance = random.Random(1)
    while loading.poll() is None:
        os.truncate(weights, chance.randrange(len(content)))
        with weights.open("r+b") as file:
            file.write(content)
    said = loading.communicate()[0].split()
    assert loading.returncode == 0, f"died with {loading.returncode}"
    whole, refused = map(int, said)
    assert whole + refused == n
    assert refused > 0
    figure("M6", f"cut, emptied, replaced and deleted under a loaded model: 4 of 4 times the same output; {n:,} loads "
                 f"while the file is cut and mended without end: {refused:,} refused, {whole:,} whole, 0 "
                 "crashes")  # fmt: skip
