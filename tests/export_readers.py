"""Tokenizers of other programs, reading what an export holds as their users load it: a text in, ids without eos out."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

import dragoman
from dragoman.bundle import Bundle, load_bundle
from dragoman.toolkits.argos import write as argos
from dragoman.toolkits.ctranslate2 import write as ctranslate2
from dragoman.toolkits.huggingface import write as huggingface
from dragoman.toolkits.onnx import write as onnx
from dragoman.toolkits.page import write as page
from dragoman.toolkits.page.search import Page

Encode = Callable[[Sequence[str]], list[list[int]]]
NODE_SCRIPT = Path(__file__).parent / "toolkits" / "tokenizers_js.mjs"


def written(bundle: Bundle, folder: Path) -> dict[str, Path]:
    """Write the bundle in every format; return the folder of each."""
    data = bundle.config.data.model_copy(update={"src_lang": "en", "tgt_lang": "de"})
    bundle = bundle._replace(config=bundle.config.model_copy(update={"data": data}))
    folders = {}
    for writer in (argos, ctranslate2, huggingface, onnx, page):
        own = folders[writer.TITLE] = folder / writer.__name__.split(".")[-2]
        own.mkdir(parents=True)
        writer.write(bundle, own, "float32")
    return folders


def readers(folders: dict[str, Path], work: Path, node_modules: Path | None = None) -> dict[str, Encode]:
    """The tokenizers by the name of their program.

    transformers.js needs the folder where npm installed its tokenizer; it and two others need ``tokenizer.json``.
    """
    from tokenizers import Tokenizer as JsonTokenizer
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    def plain(proto: bytes) -> Encode:
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        return lambda texts: [processor.encode(text) for text in texts]

    def without_eos(encode: Callable[[str], Sequence[int]]) -> Encode:
        return lambda texts: [list(encode(text))[:-1] for text in texts]

    (package,) = folders["Argos Translate"].glob("*.argosmodel")
    with zipfile.ZipFile(package) as zipped:
        (name,) = (name for name in zipped.namelist() if name.endswith("/sentencepiece.model"))
        argos_proto = zipped.read(name)
    there = folders["Hugging Face"]
    slow = AutoTokenizer.from_pretrained(there)
    again = load_bundle(dragoman.import_model(there, work / "imported")).src_tokenizer
    by_name = {
        "CTranslate2 with SentencePiece": plain((folders["CTranslate2"] / "joint.spm").read_bytes()),
        "Argos Translate with SentencePiece": plain(argos_proto),
        "transformers, slow": without_eos(lambda text: slow(text)["input_ids"]),
        "imported again": again.encode,
    }
    has_json = (there / "tokenizer.json").is_file()
    assert has_json == (folders["ONNX"] / "tokenizer.json").is_file()
    if has_json:
        fast = PreTrainedTokenizerFast.from_pretrained(folders["ONNX"])
        as_json = JsonTokenizer.from_file(str(there / "tokenizer.json"))
        by_name["transformers, fast"] = without_eos(lambda text: fast(text)["input_ids"])
        by_name["tokenizers"] = without_eos(lambda text: as_json.encode(text).ids)
    if shutil.which("node") is not None:
        html = Page(folders["an HTML page"] / page.NAME)
        by_name["HTML page"] = lambda texts: next(
            html.answers([{"task": "encode", "texts": list(texts), "side": "src"}])
        )
    if node_modules is not None and has_json:
        by_name["transformers.js"] = lambda texts: in_node(folders["ONNX"], node_modules, texts)
    return by_name


def in_node(folder: Path, node_modules: Path, texts: Sequence[str]) -> list[list[int]]:
    """The ids of transformers.js, whose tokenizer is the package ``@huggingface/tokenizers``."""
    answer = subprocess.run(
        ["node", str(NODE_SCRIPT), str(folder), str(node_modules)], input=json.dumps(list(texts)), capture_output=True,
        text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    rows: list[list[int]] = json.loads(answer.stdout)
    return [row[:-1] for row in rows]


def compared(encode: Encode, ours: Any, texts: Sequence[str]) -> list[str]:
    """The texts that a reader cuts otherwise than our tokenizer."""
    pairs = zip(texts, encode(texts), ours.encode(list(texts)), strict=True)
    return [text for text, theirs, mine in pairs if theirs != mine]
