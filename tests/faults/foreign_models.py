"""Readers of models: those of other programs, exports of ours with and without their manifest, and our own bundle."""

from __future__ import annotations

import functools
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import mutate
import numpy as np
from foreign_readers import Models, Reader
from mutate import BYTES, Mutator

import dragoman
from dragoman.bundle import load_bundle
from dragoman.evaluation.certify import opened
from dragoman.files import MANIFEST
from dragoman.model.weights import untied
from dragoman.toolkits import headers

MODEL_FILES: dict[str, dict[str, Sequence[Mutator]]] = {
    "ctranslate2": {
        "model.bin": BYTES, "config.json": [mutate.of_json, *BYTES], "shared_vocabulary.json": [mutate.of_json, *BYTES],
        "joint.spm": [mutate.of_sentencepiece, *BYTES],
    },
    "huggingface": {
        "model.safetensors": BYTES, "config.json": [mutate.of_json, mutate.of_json, *BYTES],
        "vocab.json": [mutate.of_json, *BYTES],
        "source.spm": [mutate.of_sentencepiece, *BYTES], "generation_config.json": [mutate.of_json, *BYTES],
        "tokenizer_config.json": [mutate.of_json, *BYTES],
    },
    "argos": {"translate-en_de-1_0.argosmodel": [*mutate.of_zip(mutate.of_json), *BYTES]},
    "marian": {
        "model.npz": [*mutate.of_zip(mutate.of_npy), *BYTES], "decoder.yml": [mutate.of_yaml, mutate.of_yaml, *BYTES],
        "vocab.yml": mutate.of_text(['": ', "? ", "'", "\\x", "<unk>"]), "source.spm": [mutate.of_sentencepiece],
    },
}  # fmt: skip
"""Files of each toolkit that has a reader, with their mutators."""
SEALED = ("ctranslate2", "huggingface", "argos")
"""Toolkits whose export has a manifest with sums, and is read again."""
COMPARED = {
    "onnx": "encoder_model.onnx", "ctranslate2": "model.bin", "huggingface": "model.safetensors",
    "page": "translator.html",
}  # fmt: skip
"""Exports that are opened to be compared with their model, each with a file that is mutated."""
OPTIONS = (
    "type: transformer\nenc-depth: 1\ndec-depth: 1\ntransformer-heads: 2\ntransformer-preprocess: ''\n"
    "transformer-postprocess: dan\ntransformer-postprocess-top: ''\ntransformer-ffn-activation: relu\nskip: false\n"
)
"""Options that Marian stores in its archive of arrays."""


def model_readers() -> Iterator[Reader]:
    """Yield the readers of models."""
    for toolkit, files in MODEL_FILES.items():
        for file, mutators in files.items():
            for is_sealed in (False, True)[: 1 + (toolkit in SEALED)]:
                yield Reader(
                    name=f"{toolkit}: {file}{' with its manifest' * is_sealed}", mutators=mutators,
                    quick=12 if is_sealed else 3, sound=functools.partial(_content, toolkit, file),
                    read=functools.partial(_import, toolkit, file, is_sealed),
                )  # fmt: skip
    for toolkit in SEALED:
        yield Reader(
            name=f"{toolkit}: {MANIFEST}", mutators=[mutate.of_json, *BYTES], quick=3,
            sound=functools.partial(_content, toolkit, MANIFEST), read=functools.partial(_by_manifest, toolkit),
        )  # fmt: skip
    yield Reader(
        name="marian: options in model.npz", mutators=[mutate.of_yaml], quick=3, read=_with_options, sound=_options
    )
    for file in ("config.yaml", "model.safetensors", "joint.spm", MANIFEST):
        yield Reader(name=f"bundle: {file}", sound=functools.partial(_content, "bundle", file), quick=5,
                     read=functools.partial(_bundle, file))  # fmt: skip
    for toolkit, file in COMPARED.items():
        yield Reader(name=f"{toolkit}: {file} to compare", sound=functools.partial(_content, toolkit, file), quick=3,
                     read=functools.partial(_export, toolkit, file))  # fmt: skip


EXPORTED = ("ctranslate2", "huggingface", "argos", "onnx", "page")


def write_models(run: Path, folder: Path) -> None:
    """Write the model of a run in every format that is read again."""
    shutil.copytree(run / "bundle", folder / "run/bundle")
    for name in EXPORTED:
        dragoman.export(folder / "run", name, folder / "run/exports" / name)
    write_marian(folder / "run", folder / "marian")


def models_in(folder: Path) -> Models:
    """Return the models that ``write_models`` wrote."""
    run = folder / "run"
    exports = {name: run / "exports" / name for name in EXPORTED}
    return Models(run, {"bundle": run / "bundle", **exports, "marian": folder / "marian"})


def _folder(models: Models | None, toolkit: str) -> Path:
    assert models is not None
    return models.folders[toolkit]


def _content(toolkit: str, file: str, models: Models | None) -> Sequence[bytes]:
    return [(_folder(models, toolkit) / file).read_bytes()]


def _copied(sound: Path, to: Path, file: str, content: bytes) -> Path:
    """Copy a folder with one other file; the others are links, which no reader writes into."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for path in sound.iterdir():
        if path.name != file:
            (to / path.name).symlink_to(path)
    (to / file).write_bytes(content)
    return to


def _import(toolkit: str, file: str, is_sealed: bool, models: Models | None, content: bytes, folder: Path) -> str:
    """Import a model of which one file is mutated; next to our manifest nothing changed may be accepted."""
    sound = _folder(models, toolkit)
    source = _copied(sound, folder / "model", file, content)
    if not is_sealed:
        (source / MANIFEST).unlink(missing_ok=True)
    if damage := _imported(source / file if Path(file).suffix in (".argosmodel", ".npz") else source, folder):
        return damage
    return "imported, though its sum in the manifest is another" * (
        is_sealed and content != (sound / file).read_bytes()
    )


def _imported(source: Path, folder: Path) -> str:
    """Import a model and load the run; return the damage."""
    out = folder / "imported"
    shutil.rmtree(out, ignore_errors=True)
    try:
        # What the worker parses is parsed here, under the limits of a trial: a worker for each file takes too long.
        with mock.patch("dragoman.toolkits.import_.try_headers", lambda path: headers.tried(str(path))):
            dragoman.import_model(source, out, src_lang="en", tgt_lang="de")
    except dragoman.DragomanError as error:
        if str(folder / "model") not in str(error) or "/dragoman-" in str(error):
            return f"names a path that is not the user's: {error}"
        if len(str(error)) > 2000 or "\n" in str(error):
            return f"more than one line: {error}"
        raise
    load_bundle(out)
    return ""


def _by_manifest(toolkit: str, models: Models | None, content: bytes, folder: Path) -> str:
    """Import a sound model beside a mutated manifest."""
    source = _copied(_folder(models, toolkit), folder / "model", MANIFEST, content)
    package = next(source.glob("*.argosmodel"), source)
    return _imported(package, folder)


def _with_options(models: Models | None, content: bytes, folder: Path) -> str:
    """Import a model of Marian whose options, stored in the archive, are mutated."""
    sound = _folder(models, "marian")
    with np.load(sound / "model.npz") as file:
        arrays = {**file, "special:model.yml": np.frombuffer(content + b"\0", np.int8)}
    out = io.BytesIO()
    np.savez(out, **arrays)
    return _imported(_copied(sound, folder / "model", "model.npz", out.getvalue()) / "model.npz", folder)


def _options(_: Models | None) -> Sequence[bytes]:
    return [OPTIONS.encode()]


def _bundle(file: str, models: Models | None, content: bytes, folder: Path) -> str:
    """Load a bundle of which one file is mutated."""
    sound = _folder(models, "bundle")
    load_bundle(_copied(sound, folder / "bundle", file, content))
    before = (sound / file).read_bytes()
    is_same = content == before or (file == MANIFEST and json.loads(content) == json.loads(before))
    return "" if is_same else "loaded, though its sum in the manifest is another"


def _export(toolkit: str, file: str, models: Models | None, content: bytes, folder: Path) -> str:
    """Open an export, and translate with it if its sums were not refused."""
    assert models is not None
    sound = models.folders[toolkit]
    export = _copied(sound, folder / "export", file, content)
    opened(_translator(str(models.run)), export / file if file.endswith(".html") else export)
    return (
        "" if content == (sound / file).read_bytes() or file.endswith(".html") else "opened, though its sum is another"
    )


@functools.cache
def _translator(run: str) -> dragoman.Translator:
    return dragoman.Translator.load(run)


def write_marian(run: Path, folder: Path) -> None:
    """Write a folder as Marian's: the layers of a run's model under Marian's names, and its vocabulary."""
    bundle = load_bundle(run)
    ours = {name: tensor.numpy() for name, tensor in untied(bundle.model).items()}
    arrays: dict[str, np.ndarray[Any, Any]] = {"Wemb": ours["src_embed.weight"]}
    arrays["decoder_ff_logit_out_b"] = np.zeros((1, len(arrays["Wemb"])), np.float32)
    attentions = {"encoder": {"self": "self_attn"}, "decoder": {"self": "self_attn", "context": "cross_attn"}}
    for side, names in attentions.items():
        layer = f"{side}.layers.0."
        for kind, name in names.items():
            for letter in "qkvo":
                arrays[f"{side}_l1_{kind}_W{letter}"] = ours[f"{layer}{name}.w_{letter}.weight"].T
                arrays[f"{side}_l1_{kind}_b{letter}"] = ours[f"{layer}{name}.w_{letter}.bias"][None]
        for number in "12":
            arrays[f"{side}_l1_ffn_W{number}"] = ours[f"{layer}feed_forward.w_{number}.weight"].T
            arrays[f"{side}_l1_ffn_b{number}"] = ours[f"{layer}feed_forward.w_{number}.bias"][None]
        for n, place in enumerate((*(f"{kind}_Wo" for kind in names), "ffn_ffn"), 1):
            arrays[f"{side}_l1_{place}_ln_scale"] = ours[f"{layer}norm{n}.weight"][None]
            arrays[f"{side}_l1_{place}_ln_bias"] = ours[f"{layer}norm{n}.bias"][None]
    folder.mkdir(parents=True)
    np.savez(folder / "model.npz", **{"special:model.yml": np.frombuffer(OPTIONS.encode() + b"\0", np.int8)}, **arrays)
    pieces = bundle.src_tokenizer.pieces(range(bundle.src_tokenizer.vocab_size))
    lines = "".join(f"{json.dumps(piece, ensure_ascii=False)}: {i}\n" for i, piece in enumerate(pieces))
    (folder / "vocab.yml").write_text(lines, encoding="utf-8")
    for side in attentions:
        name = {"encoder": "source", "decoder": "target"}[side]
        (folder / f"{name}.spm").write_bytes(bundle.src_tokenizer.proto)
    (folder / "decoder.yml").write_text(
        "models:\n  - model.npz\nvocabs:\n  - vocab.yml\n  - vocab.yml\nbeam-size: 6\nnormalize: 1.0\nword-penalty: 0\n"
    )
