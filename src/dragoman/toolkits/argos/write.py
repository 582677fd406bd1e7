"""Write a package of Argos Translate, which LibreTranslate uses too: one file that works offline.

NAME.argosmodel is a zip of one folder:

  metadata.json        languages and versions
  model/               CTranslate2's folder, see ``ctranslate2/write.py``
  sentencepiece.model  the subwords, one model for both sides
  minisbd/CODE.onnx    sentence splitter; without it Argos downloads one at first use
  README.md

The splitter is one table: each of the marks ``.!?`` and their wide forms ends a sentence, as in "Mr. Smith" too.
See https://github.com/argosopentech/argos-translate, ``package.py`` and ``sbd.py``.
"""

from __future__ import annotations

import json
import logging
import zipfile
from pathlib import Path

import numpy as np

from dragoman import __version__
from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.files import temporary_folder
from dragoman.languages.codes import primary, tag_of, variety
from dragoman.languages.known import known
from dragoman.languages.sentence_ends import ENDS
from dragoman.toolkits.argos import BYTES
from dragoman.toolkits.ctranslate2 import write as ctranslate2

logger = logging.getLogger(__name__)

TITLE = "Argos Translate"
FILE = ".argosmodel"
PACKAGES = ("onnx",)
QUANTIZATIONS = ctranslate2.QUANTIZATIONS

MARKS = ENDS
LABELS = 5  # scores of the splitter: no end, end of a token, end of a sentence, and two more
ARGOS_VERSION = "1.9"
DATE = (1980, 1, 1, 0, 0, 0)  # the same model gives the same file


def why_not(config: ModelConfig) -> str:
    """See ``Writer``: a package holds what CTranslate2 holds, but only one vocabulary."""
    if reason := ctranslate2.why_not(config):
        return reason
    if config.src_vocab_size != config.tgt_vocab_size:
        return "it has one model of subwords, and here source and target have two"
    return ""


def write(bundle: Bundle, folder: Path, quantization: str = "float32") -> None:
    """See ``Writer``; the file is ``translate-FROM_TO-1_0.argosmodel``."""
    targets = sorted(bundle.src_tokenizer.targets)
    if len(targets) > 1:
        raise ConfigError(
            "this model cannot be written for Argos Translate: a package is for one pair of languages, and here "
            f"sources say one of {', '.join(targets)}; it can be exported --format ctranslate2"
        )
    codes = [
        _code(lang, side) for side, lang in (("src", bundle.config.data.src_lang), ("tgt", bundle.config.data.tgt_lang))
    ]
    if not bundle.src_tokenizer.shares_pieces(bundle.tgt_tokenizer):
        raise ConfigError(
            "this model cannot be written for Argos Translate: it has one model of subwords, and here source and "
            "target have two; it can be exported --format ctranslate2"
        )
    name = f"translate-{codes[0]}_{codes[1]}-1_0"
    about = dict(
        package_version="1.0", argos_version=ARGOS_VERSION, from_code=codes[0], from_name=known(codes[0]).name,
        to_code=codes[1], to_name=known(codes[1]).name,
        **bundle.config.model_dump(mode="json", include={"decode"}),  # for an import; Argos itself ignores it
    )  # fmt: skip
    readme = f"{about['from_name']} to {about['to_name']}, {quantization}, made with dragoman {__version__}.\n"
    if bundle.tgt_tokenizer.byte_ids:
        logger.warning("%s", BYTES)
        readme += f"\n{BYTES}\n"
    with temporary_folder(folder / "model") as model, zipfile.ZipFile(folder / f"{name}{FILE}", "w") as package:
        ctranslate2.write(bundle, model, quantization)
        contents = {
            f"model/{path.name}": path.read_bytes() for path in sorted(model.iterdir()) if path.suffix != ".spm"
        }
        contents |= {
            "metadata.json": json.dumps(about, indent=2).encode(),
            "sentencepiece.model": bundle.src_tokenizer.proto,
            f"minisbd/{codes[0]}.onnx": splitter(codes[0]),
            "README.md": readme.encode(),
        }
        for path, content in contents.items():
            entry = zipfile.ZipInfo(f"{name}/{path}", DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            package.writestr(entry, content)


def _code(lang: str | None, side: str) -> str:
    """Return Argos' code of a language: two letters; zt is traditional Chinese, pb Brazilian Portuguese."""
    if not lang:
        raise ConfigError(
            f"an Argos package needs data.{side}_lang, which this run does not have: export it to ctranslate2"
        )
    if tag_of(lang)[::2] == ("pt", "BR"):
        return "pb"
    return "zt" if variety(lang) == "zh-Hant" else primary(lang)


def splitter(code: str) -> bytes:
    """Return an ONNX file that finds the ends of sentences: a table with a row for each unit, minisbd's settings."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    units = ["<PAD>", "<UNK>", "<EMPTY>", "<ROOT>", *MARKS]
    table = np.zeros((len(units), LABELS), np.float32)
    table[:, 0], table[4:, 2] = 1, 2
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "units"], ["scores"]),
            helper.make_node("Shape", ["features"], ["unused"]),
        ],
        "sentence_ends",
        [
            helper.make_tensor_value_info("units", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", "length", "n"]),
        ],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", "length", LABELS])],
        [numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    settings = dict(skip_newline=False, max_seqlen=1000, batch_size=8, feat_funcs=["space_before"],
                    use_dictionary=False, num_dict_feat=0)  # fmt: skip
    vocabulary = dict(
        lang=code, idx=0, cutoff=0, lower=False, _unit2id={unit: i for i, unit in enumerate(units)}, _id2unit=units
    )
    facts = {"lang_code": code, "config": json.dumps(settings), "vocab": json.dumps(vocabulary), "lexicon": "null"}
    onnx.helper.set_model_props(model, facts)
    return bytes(model.SerializeToString())
