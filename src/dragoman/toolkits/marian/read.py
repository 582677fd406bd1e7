"""Read a model of Marian: a ``.npz`` of https://github.com/marian-nmt/marian-dev, such as OPUS-MT's originals.

  model.npz                  matrices ``(in, out)``, vectors ``(1, n)``, and the options of the model
  model.npz.decoder.yml      names of the files, settings of the search; OPUS-MT calls it ``decoder.yml``
  model.npz.yml              options of the training, which name the vocabularies too
  vocab.yml, vocab.json      the id of each piece; or the SentencePiece model itself, such as ``vocab.spm``
  source.spm, target.spm     the subwords, unless the vocabulary is a SentencePiece model

Marian's sinusoids are not the paper's: their frequencies are ``10000^(-i / (d_model / 2 - 1))``, the sines come first.
With the paper's, as in other converters, long sentences are translated differently. So they become a table of learned
positions, and the norms have Marian's epsilon. A translation begins with zeros in place of an embedding: our bos.
Every array is either read or refused by name.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig, parse_yaml
from dragoman.data.sentencepiece_check import Parts
from dragoman.errors import BundleError, listing, parsing
from dragoman.files import sha256
from dragoman.options import either
from dragoman.toolkits.reading import Imported, facts_of, read_bytes, shown, whole_number
from dragoman.toolkits.subwords import (
    Vocabulary,
    check_belongs,
    folded,
    needed,
    numbered,
    read_model,
    tokenizers,
    vocabulary,
)

logger = logging.getLogger(__name__)

OPTIONS = "special:model.yml"
WANTED = "a model of Marian has it"
EPSILON = 1e-6  # epsilon of its norms: src/layers/generic.h
N_POSITIONS = 1024
"""Number of rows of the table of sinusoids, which Marian computes for any length."""
MAX_BYTES = 16 * 2**30
MAX_YAML_BYTES = 2**20
"""Largest accepted options and settings of a model; Marian writes a few kilobytes."""
ACTIVATIONS = ("swish", "relu")  # its gelu is x * sigmoid(1.702 x), another function
SUPPORTED: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",), "transformer-decoder-autoreg": ("self-attention",), "transformer-no-projection": (False,),
    "transformer-postprocess-emb": ("", "d"), "transformer-ffn-activation": ACTIVATIONS, "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2), "transformer-decoder-dim-ffn": (0,),
    "transformer-attention-mask": ("default",), "transformer-disable-position-embeddings": (False,),
    "transformer-tied-layers": ([],), "transformer-pool": (False,), "right-left": (False,), "ulr": (False,),
    "lemma-dim-emb": (0,), "input-types": ([], ["sequence"], ["sequence", "sequence"]),
}  # fmt: skip
"""Options of the model, each with its supported values; a missing option has the first."""
DEFAULTS = {"beam-size": 12, "normalize": 0}
"""Settings of the search that a run keeps, and Marian's values if no file has them."""
LAYERS = {
    ("", "dan", ""): "post",  # steps before a sub-layer, after it, after the stack
    ("n", "da", "n"): "pre",
}
"""Marian's placements of norms, and ours."""
ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b",
           "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}  # fmt: skip


def read(
    source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
) -> Imported:  # fmt: skip
    """Read a folder or a ``.npz``; see ``toolkit.Reader``."""
    file = _model_file(source) if source.is_dir() else source
    folder = file.parent
    about = _settings(file)
    arrays = Arrays(file)
    options = arrays.options
    norm = _refuse_what_is_not_held(options, file)
    search = _search(file)
    paths = _vocabulary_paths(file, about)
    lists, models = _lists(paths, folder, _sizes(options, file))
    pieces = None if texts is None else needed(models, texts)
    vocabularies = [
        vocabulary(listed, _special(listed, path), models if len(lists) == 1 else [models[-1 if i else 0]], pieces)
        for i, (listed, path) in enumerate(zip(lists, paths, strict=False))
    ]
    for spm, listed, side in zip((models[0], models[-1]), (lists[0], lists[-1]), ("source", "target"), strict=True):
        check_belongs(spm, listed, f"{folder}/{side}.spm")
    src, tgt = tokenizers(models, vocabularies, f"{folder}")
    settings, weights = _model(arrays, options, norm, vocabularies)
    arrays.refuse_unread()
    config = Config.from_mapping(
        {
            "model": settings,
            "data": dict(
                train={"src": "imported.src", "tgt": "imported.tgt"}, src_lang=languages[0], tgt_lang=languages[1],
                max_tokens=max(1, min(256, settings["max_len"] - 1)), tokenizer=dict(joint=len(lists) == 1),
            ),
            "decode": dict(
                beam_size=search["beam-size"], length_penalty=search["normalize"],
                length_penalty_form="power",  # Marian divides by n ** normalize
            ),
        },
        f"{file}",
    )  # fmt: skip
    model = ModelConfig(**config.model.model_dump(), src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size)
    return Imported(config, model, weights, src, tgt, facts_of(name, "marian", arrays.digest, models))


def positions(n: int, d_model: int) -> Tensor:
    """Return Marian's sinusoids, ``(n, d_model)``; see ``SinusoidalPositionEmbeddings`` of its tensor_operators.cpp."""
    half = d_model // 2
    angles = torch.arange(n, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(half, dtype=torch.float64) / max(1, half - 1)
    )
    return torch.cat((angles.sin(), angles.cos()), 1).float()


class Arrays:
    """Arrays of a ``.npz``; those that were not read can be refused at the end."""

    def __init__(self, path: Path) -> None:
        """Read the file; pickled objects are never read.

        Raises:
            BundleError: The file is damaged, holds something other than numbers, or no options of Marian.
        """
        self.path = path
        with parsing(path, "arrays of numbers", BundleError, wrong="cannot be read as"):
            with zipfile.ZipFile(path) as package:
                size = sum(entry.file_size for entry in package.infolist())
            if size > MAX_BYTES:
                raise BundleError(f"{path}: must have at most {MAX_BYTES:,} bytes unpacked, got {size:,}")
            with np.load(path, allow_pickle=False) as file:
                self._arrays = {name: np.asarray(file[name]) for name in file.files}
            with path.open("rb") as raw:
                self.digest = hashlib.file_digest(raw, "sha256").hexdigest()
        if OPTIONS not in self._arrays:
            raise BundleError(f"{path}: holds no {OPTIONS}; it is no model of Marian")
        options = _parsed(self._arrays.pop(OPTIONS).tobytes().rstrip(b"\0"), f"{path}: {OPTIONS}")
        if not isinstance(options, dict):
            raise BundleError(f"{path}: its {OPTIONS} should hold options")
        self.options: dict[str, Any] = options
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def matrix(self, name: str) -> Tensor:
        """Return a matrix in float32, stored as it is.

        Raises:
            BundleError: There is none, or it is no matrix of floats.
        """
        self._read.add(name)
        if name not in self._arrays:
            raise BundleError(f"{self.path}: lacks {name}")
        array = self._arrays[name]
        if array.ndim != 2 or not array.size or array.dtype not in (np.float32, np.float16):
            raise BundleError(f"{self.path}: {name} must be a matrix of floats, got {array.dtype} {list(array.shape)}")
        return torch.from_numpy(array.astype(np.float32))

    def vector(self, name: str) -> Tensor:
        """Return a vector, which is stored as a matrix of one row.

        Raises:
            BundleError: See ``matrix``.
        """
        return self.matrix(name).flatten()

    def refuse_unread(self) -> None:
        """Check that every array was read.

        Raises:
            BundleError: There are others.
        """
        if unread := self._arrays.keys() - self._read:
            raise BundleError(f"{self.path}: has {listing(unread)}, which cannot be imported")


def _model_file(folder: Path) -> Path:
    """Return the one model of a folder: the one that ``decoder.yml`` names, or else the last one of the training.

    Marian also writes its optimiser, earlier steps and the best steps of a validation; a log line names those.

    Raises:
        BundleError: There is none, or several.
    """
    settings = _yaml(folder / "decoder.yml")
    names = sorted(path.name for path in folder.glob("*.npz"))
    if isinstance(listed := settings.get("models"), list):
        models = [Path(path).name for path in listed if isinstance(path, str)]
    else:
        steps = [name for name in names if not name.endswith(".optimizer.npz")]
        models = [name for name in steps if not any(_is_a_step_of(name, other) for other in steps)]
    if len(models) != 1:
        several = f" ({', '.join(models[:4])})" if models else ""
        raise BundleError(f"{folder}: has {len(models)} models{several}; give the .npz of one")
    if others := [name for name in names if _is_a_step_of(name, models[0]) and not name.endswith(".optimizer.npz")]:
        several = " or ".join(others)
        logger.info("%s: %s is imported; to import another step, give %s", f"{folder}", models[0], several)
    return folder / models[0]


def _is_a_step_of(name: str, model: str) -> bool:
    """True if ``name`` is another step of ``model``, such as model.iter100.npz, model.npz.best-bleu.npz."""
    is_earlier = re.fullmatch(re.escape(model.removesuffix(".npz")) + r"\.iter[0-9]+\.npz", name)
    return name.startswith(f"{model}.") or is_earlier is not None


def _settings(file: Path) -> dict[str, Any]:
    """Return the settings in the folder of a model; a file with the model's name overrides ``decoder.yml``."""
    return _merged(file, ("decoder.yml", f"{file.name}.yml", f"{file.name}.decoder.yml"))


def _search(file: Path) -> dict[str, Any]:
    """Return the settings of the search, with Marian's defaults; refuse those that a run cannot keep.

    The options of the training come last: their beam is that of its validation.
    """
    search = _merged(file, (f"{file.name}.yml", "decoder.yml", f"{file.name}.decoder.yml"))
    _refuse_other_searches(search, file)
    if search.get("shortlist"):
        logger.info("%s: its shortlist is ignored: each translation is chosen from the whole vocabulary", f"{file}")
    for name, value in DEFAULTS.items():
        if name not in search:
            logger.info("%s: its settings lack %s; Marian's default, %s, is used", f"{file}", name, value)
    return DEFAULTS | search


def _merged(file: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings of files in the folder of a model; a later file overrides an earlier one."""
    return {setting: value for name in names for setting, value in _yaml(file.with_name(name)).items()}


def _yaml(path: Path) -> dict[str, Any]:
    """Return the settings of a file; none if there is no such file."""
    if not path.is_file():
        return {}
    settings = _parsed(read_bytes(path, WANTED), f"{path}")
    return settings if isinstance(settings, dict) else {}


def _parsed(content: bytes, name: str) -> Any:
    """Return the data of a YAML text without aliases; a few lines of aliases would become gigabytes.

    Raises:
        BundleError: It is no such text.
    """
    if len(content) > MAX_YAML_BYTES:
        raise BundleError(f"{name}: must have at most {MAX_YAML_BYTES:,} bytes of options, got {len(content):,}")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BundleError(f"{name}: byte {error.start:,} is not UTF-8; copy it again") from None
    return parse_yaml(text, name, BundleError)


def _refuse_what_is_not_held(options: Mapping[str, Any], file: Path) -> str:
    """Refuse by name each option that our model does not support; return the placement of the norms."""
    for name, values in SUPPORTED.items():
        if (value := options.get(name, values[0])) not in values:
            raise BundleError(f"{file}: its option {name} must be {either(map(repr, values))}, got {shown(value)}")
    for name in ("enc-depth", "dec-depth", "transformer-heads"):
        whole_number(options.get(name), f"{file}: its option {name}", least=1)
    names = [f"transformer-{what}" for what in ("preprocess", "postprocess", "postprocess-top")]
    steps = tuple(options.get(name, "") for name in names)
    if not all(isinstance(step, str) for step in steps) or steps not in LAYERS:
        settings = ", ".join(f"{name} = {shown(value)}" for name, value in zip(names, steps, strict=True))
        raise BundleError(f"{file}: its options {settings} are not supported, only {' and '.join(map(str, LAYERS))}")
    return LAYERS[steps]


def _refuse_other_searches(about: Mapping[str, Any], file: Path) -> None:
    """Refuse by name each setting of the search that changes translations and cannot be kept in a run."""
    if penalty := about.get("word-penalty"):
        raise BundleError(
            f"{file}: word-penalty must be 0 in its decoder.yml, got {shown(penalty)}; "
            "set it to 0 there to import the model without it"
        )
    if sampling := about.get("output-sampling"):
        raise BundleError(
            f"{file}: output-sampling must be off in its decoder.yml, got {shown(sampling)}; "
            "remove it there to import the model without it"
        )
    if unknowns := about.get("allow-unk"):
        raise BundleError(
            f"{file}: allow-unk must be off in its decoder.yml, got {shown(unknowns)}; "
            "remove it there to import the model, and give --allow-unk to translate"
        )


def _vocabulary_paths(file: Path, about: Mapping[str, Any]) -> list[Path]:
    """Return the files of the vocabularies, as the settings name them; without settings those under the usual names.

    Raises:
        BundleError: One is missing, or nothing tells the files of two sides apart.
    """
    named = about.get("vocabs") or []
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named[:3]):
        raise BundleError(f"{file}: its vocabs must be names of files, got {shown(named)}")
    if not named:
        for usual in ("vocab.yml", "vocab.spm"):
            if _is_file(file.with_name(usual)):
                return [file.with_name(usual)]
        raise BundleError(
            f"{file.parent}: has no vocabulary: decoder.yml or vocab.yml is missing; copy the whole folder"
        )
    names, folders = [Path(name) for name in named[:3]], _named_from(file, about)
    n_files = len({os.path.normpath(folders[0] / name) for name in names})
    if len({name.name for name in names}) == n_files:
        paths = {name: _vocabulary_path(file, name, folders) for name in dict.fromkeys(names)}
        return [paths[name] for name in names]
    # A file of this name next to the model could be the one of either side, so only the named places count.
    for folder in folders:
        if all(_is_file(folder / name) for name in names):
            return [folder / name for name in names]
    sides = " and ".join(str(name)[:80] for name in dict.fromkeys(names))
    raise BundleError(
        f"{file}: its vocabularies {sides} have one file name, and are not both there; put them next to the model "
        f"under two names, and write these into {file.name}.decoder.yml (vocabs: [SOURCE, TARGET])"
    )


def _vocabulary_path(file: Path, name: Path, folders: Sequence[Path]) -> Path:
    """Return the file that a setting names: next to the model, as a folder may be copied, or else at its place.

    Raises:
        BundleError: There is none.
    """
    places = [file.absolute().parent / name.name, *(folder / name for folder in folders)]
    there = [place for place in dict.fromkeys(places) if _is_file(place)]
    if not there:
        raise BundleError(f"{file}: its vocabulary {str(name)[:80]} is missing; put {name.name[:80]} next to the model")
    for other in there[1:]:
        if _differ(there[0], other):
            names = (f"{path}" for path in (file, there[0], other))
            logger.warning("%s: its vocabulary is read from %s, not from %s, which differs", *names)
    return there[0]


def _differ(path: Path, other: Path) -> bool:
    """True if the contents of two files differ, or one cannot be read."""
    try:
        return sha256(path) != sha256(other)
    except OSError:
        return True


def _named_from(file: Path, about: Mapping[str, Any]) -> tuple[Path, Path]:
    """Return the two folders from which the settings may name a file, the likelier first.

    Marian records the names of model and vocabularies as its command line had them. So a model ``runs/m/model.npz``
    was trained two folders above the file, unless its folder was moved since; others name files from their own folder.
    """
    models = about.get("models")
    noted = models[0] if isinstance(models, list) and models else about.get("model", file.name)
    folder = Path(noted if isinstance(noted, str) else file.name).parent
    own, *above = file.absolute().parents
    start = own if folder.is_absolute() else [own, *above][min(len(folder.parts), len(above))]
    return (start, own) if start / folder == own else (own, start)


def _is_file(path: Path) -> bool:
    """True if a file exists; False too for a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False


def _sizes(options: Mapping[str, Any], file: Path) -> list[int | None]:
    """Return how many pieces of each vocabulary the model uses, its option ``dim-vocabs``; None: all.

    Raises:
        BundleError: The option is no list of whole numbers.
    """
    sizes = options.get("dim-vocabs") or []
    if not isinstance(sizes, list):
        raise BundleError(f"{file}: its option dim-vocabs = {shown(sizes)} should be a list")
    return [whole_number(size, f"{file}: its option dim-vocabs") or None for size in sizes]


def _lists(paths: Sequence[Path], folder: Path, sizes: Sequence[int | None]) -> tuple[list[list[str]], list[Parts]]:
    """Return the pieces in the order of their ids, one list for both sides or two, and the SentencePiece models.

    Args:
        sizes: As ``_sizes``. Marian leaves out what a list has beyond them; see ``load`` of its default_vocab.cpp.
    """
    if paths[0].suffix == ".spm":
        models = [read_model(read_bytes(path, WANTED), f"{path}") for path in paths]
        lists = [[piece.text.decode() for piece in model.pieces] for model in models]
    else:
        spm = [folder / f"{side}.spm" for side in ("source", "target")]
        models = [read_model(read_bytes(path, WANTED), f"{path}") for path in spm]
        lists = [_listed(path)[:n] for path, n in zip_longest(paths, sizes[: len(paths)])]
    return folded(lists), models


def _listed(path: Path) -> list[str]:
    """Return the pieces of a vocabulary file in the order of their ids; the file is JSON, or YAML in Marian's lines.

    PyYAML is not used, as it reads ``yes`` as a boolean and ``1_0`` as a number.
    """
    try:
        text = read_bytes(path, WANTED).decode("utf-8")
        ids = json.loads(text) if text.startswith("{") else pieces_of_yaml(text)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not a vocabulary of Marian ({error}); copy it again") from None
    return numbered(ids, f"{path}")


def pieces_of_yaml(text: str) -> dict[str, int]:
    """Parse lines such as ``"a": 7`` and ``a: 7``, or a key after ``? `` and its id in the next line."""
    ids, key = {}, None
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if not line or line == "---":
            continue
        if line.startswith("? "):
            key = line[2:]
            continue
        before, _, number = line.rpartition(":")
        ids[_unquoted(before if key is None else key)] = int(number)
        key = None
    return ids


def _unquoted(key: str) -> str:
    if len(key) > 1 and key[0] == key[-1] == "'":
        return key[1:-1].replace("''", "'")
    if len(key) > 1 and key[0] == key[-1] == '"':
        return ESCAPED.sub(lambda m: _character(m.group(1)), key[1:-1])
    return key


def _character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else LETTERS.get(escape, escape)


def _special(listed: Sequence[str], path: Path) -> tuple[int | None, int, int | None, int]:
    """Return its ids of our pad, unk, bos and eos; Marian has no bos, and seldom a padding."""
    ids = {piece: i for i, piece in enumerate(listed)}
    for name in ("<unk>", "</s>"):
        if name not in ids:
            raise BundleError(f"{path}: its vocabulary has no {name}")
    return ids.get("<pad>"), ids["<unk>"], None, ids["</s>"]


def _model(
    arrays: Arrays, options: Mapping[str, Any], norm: str, vocabularies: Sequence[Vocabulary]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the settings of the model, and its tensors under our names."""
    weights: dict[str, Tensor] = {}
    is_pre = norm == "pre"

    def linear(source: str, letter: str, target: str) -> None:
        weights[f"{target}.weight"] = arrays.matrix(f"{source}_W{letter}").T
        weights[f"{target}.bias"] = arrays.vector(f"{source}_b{letter}")

    def layer_norm(source: str, target: str, ending: str) -> None:
        for what, name in (("scale", "weight"), ("bias", "bias")):
            weights[f"{target}.{name}"] = arrays.vector(f"{source}_ln_{what}{ending}")

    for side, depth in (("encoder", options["enc-depth"]), ("decoder", options["dec-depth"])):
        for i in range(depth):
            source, target = f"{side}_l{i + 1}", f"{side}.layers.{i}"
            attentions = {"self": "self_attn", "context": "cross_attn"} if side == "decoder" else {"self": "self_attn"}
            for kind, name in attentions.items():
                for letter in "qkvo":
                    linear(f"{source}_{kind}", letter, f"{target}.{name}.w_{letter}")
            for number in "12":
                linear(f"{source}_ffn", number, f"{target}.feed_forward.w_{number}")
            for n, place in enumerate((*(f"{kind}_Wo" for kind in attentions), "ffn_ffn"), 1):
                layer_norm(f"{source}_{place}", f"{target}.norm{n}", "_pre" if is_pre else "")
        if is_pre:
            layer_norm(f"{side}_top", f"{side}.norm", "")

    # Tied tables are stored once: a table that is missing is the one of the other side.
    src = arrays.matrix("Wemb" if "Wemb" in arrays else "encoder_Wemb")
    tgt = arrays.matrix("decoder_Wemb") if "decoder_Wemb" in arrays else src
    head = "decoder_ff_logit_out"
    generator = (
        arrays.matrix(f"{head}_W").T if f"{head}_W" in arrays
        else arrays.matrix(f"{head}_Wt") if f"{head}_Wt" in arrays
        else tgt
    )  # fmt: skip
    share = "none" if generator is not tgt else "all" if tgt is src and len(vocabularies) == 1 else "decoder"
    for name, table in {"src_embed": src, "tgt_embed": tgt, "generator": generator}.items():
        own = vocabularies[0 if name == "src_embed" else -1]
        rows = own.take(table, f"{arrays.path}: {name}")
        if name in {"all": ("src_embed",), "decoder": ("src_embed", "tgt_embed")}.get(share, (name,)):
            weights[f"{name}.weight"] = rows
    d_model = src.size(1)
    their_bias = arrays.vector(f"{head}_b") if f"{head}_b" in arrays else torch.zeros(len(generator))
    if len(their_bias) != len(generator):
        raise BundleError(f"{arrays.path}: {head}_b has {len(their_bias):,} numbers for {len(generator):,} rows")
    bias = vocabularies[-1].bias(their_bias, f"{arrays.path}: {head}_b")
    assert bias is not None
    weights["generator.bias"] = bias
    is_trained = "Wpos" in arrays
    table = arrays.matrix("Wpos") if is_trained else positions(N_POSITIONS, d_model)
    weights["src_positions.weight"], weights["tgt_positions.weight"] = table, table.clone()
    settings = dict(
        d_model=d_model, d_ff=len(weights["encoder.layers.0.feed_forward.w_1.weight"]),
        n_heads=options["transformer-heads"], n_encoder_layers=options["enc-depth"],
        n_decoder_layers=options["dec-depth"], norm=norm,
        activation=options.get("transformer-ffn-activation", ACTIVATIONS[0]),
        positions="learned", max_len=len(table), share_embeddings=share, generator_bias=True, norm_eps=EPSILON,
        scale_embeddings=not is_trained,  # Marian scales with sinusoids alone
    )  # fmt: skip
    return settings, {name: tensor.contiguous() for name, tensor in weights.items()}
