"""Models of Marian read: a ``.npz`` as https://github.com/marian-nmt/marian-dev writes it, such as OPUS-MT's originals.

  model.npz                  matrices ``(in, out)``, vectors ``(1, n)``, and the options that it was made with
  model.npz.decoder.yml      which files belong together, how to search; OPUS-MT calls it ``decoder.yml``
  model.npz.yml              the options of its training, which name the vocabularies too
  vocab.yml, vocab.json      the id of each piece; or the SentencePiece model itself, such as ``vocab.spm``
  source.spm, target.spm     the subwords, where the vocabulary is not one

Marian's sinusoids are not the paper's: their frequencies are ``10000^(-i / (d_model / 2 - 1))``, the sines come first.
Other converters take the paper's, and long sentences come out otherwise. Here they are a table, as if they had been
learned, and the norms have Marian's epsilon. A translation begins with zeros in place of an embedding: our bos.
Every array is taken or refused by its name.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.data.sentencepiece_check import Parts
from dragoman.errors import BundleError
from dragoman.toolkits.reading import Imported, facts_of, read_bytes
from dragoman.toolkits.subwords import Vocabulary, check_belongs, needed, numbered, read_model, tokenizers, vocabulary

logger = logging.getLogger(__name__)

OPTIONS = "special:model.yml"
WANTED = "a model of Marian has it"
EPSILON = 1e-6  # of its norms: src/layers/generic.h
N_POSITIONS = 1024
"""Rows of the table of sinusoids, which Marian computes as far as a text goes."""
MAX_BYTES = 16 * 2**30
ACTIVATIONS = ("swish", "relu")  # its gelu is x * sigmoid(1.702 x), which is another function
HELD: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",), "transformer-decoder-autoreg": ("self-attention",), "transformer-no-projection": (False,),
    "transformer-postprocess-emb": ("", "d"), "transformer-ffn-activation": ACTIVATIONS, "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2), "transformer-decoder-dim-ffn": (0,),
    "transformer-attention-mask": ("default",), "transformer-disable-position-embeddings": (False,),
    "transformer-tied-layers": ([],), "transformer-pool": (False,), "right-left": (False,), "ulr": (False,),
    "lemma-dim-emb": (0,), "input-types": ([], ["sequence"], ["sequence", "sequence"]),
}  # fmt: skip
"""Options that say what is computed, and what can be held here of each; one that is not there has the first."""
LAYERS = {
    ("", "dan", ""): "post",  # before a sub-layer, after it, after the stack
    ("n", "da", "n"): "pre",
}
"""Their ways to put norms, and ours."""
ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b",
           "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}  # fmt: skip


def read(
    source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
) -> Imported:  # fmt: skip
    """Read a folder or a ``.npz``; see ``imported.Reader``."""
    file = _model_file(source) if source.is_dir() else source
    folder = file.parent
    about = _settings(file)
    arrays = Arrays(file)
    options = arrays.options
    norm = _refuse_what_is_not_held(options, file)
    _refuse_other_searches(about, file)
    paths = _vocabulary_paths(file, about)
    lists, models = _lists(paths, folder)
    kept = None if texts is None else needed(models, texts)
    vocabularies = [
        vocabulary(listed, _special(listed, path), models if len(lists) == 1 else [models[-1 if i else 0]], kept)
        for i, (listed, path) in enumerate(zip(lists, paths, strict=False))
    ]
    for one, listed, side in zip((models[0], models[-1]), (lists[0], lists[-1]), ("source", "target"), strict=True):
        check_belongs(one, listed, f"{folder}/{side}.spm")
    src, tgt = tokenizers(models, vocabularies, str(folder))
    settings, weights = _model(arrays, options, norm, vocabularies)
    arrays.refuse_the_rest()
    config = Config.from_mapping(
        {
            "model": settings,
            "data": dict(
                train={"src": "imported.src", "tgt": "imported.tgt"}, src_lang=languages[0], tgt_lang=languages[1],
                max_tokens=max(1, min(256, settings["max_len"] - 1)), tokenizer=dict(joint=len(lists) == 1),
            ),
            "decode": dict(
                beam_size=about.get("beam-size", 6), length_penalty=about.get("normalize", 1.0),
                length_penalty_form="power",  # Marian divides by n ** normalize
            ),
        },
        str(file),
    )  # fmt: skip
    model = ModelConfig(**config.model.model_dump(), src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size)
    return Imported(config, model, weights, src, tgt, facts_of(name, "marian", arrays.digest, models))


def positions(n: int, d_model: int) -> Tensor:
    """Marian's sinusoids, ``(n, d_model)``; ``SinusoidalPositionEmbeddings`` of its tensor_operators.cpp."""
    half = d_model // 2
    angles = torch.arange(n, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(half, dtype=torch.float64) / max(1, half - 1)
    )
    return torch.cat((angles.sin(), angles.cos()), 1).float()


class Arrays:
    """The arrays of a ``.npz``, each taken once; what is left at the end is refused."""

    def __init__(self, path: Path) -> None:
        """Read the file; pickled objects are never read.

        Raises:
            BundleError: It is damaged, holds other things than numbers, or no options of Marian.
        """
        self.path = path
        try:
            with zipfile.ZipFile(path) as package:
                size = sum(entry.file_size for entry in package.infolist())
            if size > MAX_BYTES:
                raise BundleError(f"{path}: {size:,} bytes are too many for a model of Marian")
            with np.load(path, allow_pickle=False) as file:
                self._of = {name: file[name] for name in file.files}
            with path.open("rb") as raw:
                self.digest = hashlib.file_digest(raw, "sha256").hexdigest()
            found = yaml.safe_load(np.asarray(self._of.pop(OPTIONS)).tobytes().rstrip(b"\0").decode())
        except KeyError:
            raise BundleError(f"{path}: holds no {OPTIONS}; it is no model of Marian") from None
        except MemoryError:
            raise BundleError(f"{path}: says that its arrays are larger than memory; copy it again") from None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, yaml.YAMLError, RecursionError) as error:
            said = " ".join(str(error).split())[:120]
            raise BundleError(f"{path}: cannot be read as arrays of numbers with their options ({said})") from None
        if not isinstance(found, dict):
            raise BundleError(f"{path}: its {OPTIONS} should hold options")
        self.options: dict[str, Any] = found
        self._taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._of

    def matrix(self, name: str) -> Tensor:
        """A matrix as it is there, in float32.

        Raises:
            BundleError: It is not there, or no matrix of numbers.
        """
        self._taken.add(name)
        if name not in self._of:
            raise BundleError(f"{self.path}: lacks {name}")
        found = np.asarray(self._of[name])  # which is bytes, if it is no array
        if found.ndim != 2 or not found.size or found.dtype not in (np.float32, np.float16):
            raise BundleError(f"{self.path}: {name} is {found.dtype} {list(found.shape)}, and no matrix of floats")
        return torch.from_numpy(found.astype(np.float32))

    def vector(self, name: str) -> Tensor:
        """A vector, which is a matrix of one row there.

        Raises:
            BundleError: As ``matrix``.
        """
        return self.matrix(name).flatten()

    def refuse_the_rest(self) -> None:
        """Refuse a model that has more than was taken.

        Raises:
            BundleError: There is more.
        """
        if rest := sorted(self._of.keys() - self._taken):
            more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
            raise BundleError(f"{self.path}: has {', '.join(rest[:3])}{more}, which cannot be held here")


def _model_file(folder: Path) -> Path:
    """Return the one model of a folder: the one that ``decoder.yml`` names, or else the one that training ends with.

    Marian also writes its optimiser, earlier steps and the best steps of a validation; a log line names those.

    Raises:
        BundleError: There is none, or several.
    """
    settings = _yaml(folder / "decoder.yml")
    names = sorted(path.name for path in folder.glob("*.npz"))
    if isinstance(listed := settings.get("models"), list):
        models = [Path(str(path)).name for path in listed]
    else:
        steps = [name for name in names if not name.endswith(".optimizer.npz")]
        models = [name for name in steps if not any(_is_a_step_of(name, other) for other in steps)]
    if len(models) != 1:
        several = f" ({', '.join(models[:4])})" if models else ""
        raise BundleError(f"{folder}: has {len(models)} models{several}; give the .npz of one")
    if others := [name for name in names if _is_a_step_of(name, models[0]) and not name.endswith(".optimizer.npz")]:
        logger.info("%s: %s is imported; to import another step, give %s", folder, models[0], " or ".join(others))
    return folder / models[0]


def _is_a_step_of(name: str, model: str) -> bool:
    """True if Marian wrote ``name`` beside ``model``, such as model.iter100.npz, model.npz.best-bleu.npz."""
    is_earlier = re.fullmatch(re.escape(model.removesuffix(".npz")) + r"\.iter[0-9]+\.npz", name)
    return name.startswith(f"{model}.") or is_earlier is not None


def _settings(file: Path) -> dict[str, Any]:
    """Return the settings that lie beside a model; where two files differ, the one that names the model wins."""
    nearest_last = ("decoder.yml", f"{file.name}.yml", f"{file.name}.decoder.yml")
    return {name: value for yml in nearest_last for name, value in _yaml(file.with_name(yml)).items()}


def _yaml(path: Path) -> dict[str, Any]:
    """Return the settings of a file, or none if it is not there."""
    if not path.is_file():
        return {}
    try:
        found = yaml.safe_load(read_bytes(path, WANTED))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        raise BundleError(f"{path}: not YAML; copy it again") from None
    return found if isinstance(found, dict) else {}


def _refuse_what_is_not_held(options: Mapping[str, Any], file: Path) -> str:
    """Refuse by name each option that our model does not have; where the norms are, else."""
    for name, values in HELD.items():
        if (value := options.get(name, values[0])) not in values:
            raise BundleError(
                f"{file}: its option {name} = {str(value)[:40]!r} cannot be held here, only {values[0]!r}"
            )
    for name in ("enc-depth", "dec-depth", "transformer-heads"):
        if type(options.get(name)) is not int or options[name] < 1:
            raise BundleError(f"{file}: its option {name} = {str(options.get(name))[:40]} should be a whole number")
    names = [f"transformer-{what}" for what in ("preprocess", "postprocess", "postprocess-top")]
    given = tuple(str(options.get(name, "")) for name in names)
    if given not in LAYERS:
        said = ", ".join(f"{name} = {value[:9]!r}" for name, value in zip(names, given, strict=True))
        raise BundleError(f"{file}: its options {said} cannot be held here, only {' and '.join(map(str, LAYERS))}")
    return LAYERS[given]


def _refuse_other_searches(about: Mapping[str, Any], file: Path) -> None:
    """Refuse by name each setting of the search that gives other translations and cannot be kept in a run."""
    if penalty := about.get("word-penalty"):
        raise BundleError(
            f"{file}: its decoder.yml says word-penalty = {str(penalty)[:40]}, which a run cannot hold, only 0; "
            "set it to 0 there to import the model without it"
        )


def _vocabulary_paths(file: Path, about: Mapping[str, Any]) -> list[Path]:
    """Return the file of each side's vocabulary: the one that the settings name, or else the one with the usual name.

    Raises:
        BundleError: There is none.
    """
    named = about.get("vocabs")
    for names in (named, ["vocab.yml"], ["vocab.spm"]):
        if isinstance(names, list) and names:
            paths = [_vocabulary_path(file, str(name), about) for name in names]
            if all(_is_file(path) for path in paths):
                return paths
    if isinstance(named, list) and named:
        raise BundleError(
            f"{file}: its vocabulary {str(named[0])[:80]} is not there; put {Path(str(named[0])).name} beside the model"
        )
    raise BundleError(f"{file.parent}: has no vocabulary: decoder.yml or vocab.yml is missing; copy the whole folder")


def _vocabulary_path(file: Path, name: str, about: Mapping[str, Any]) -> Path:
    """Return the file that a setting names: beside the model, as it says, or from where the training was started.

    Marian notes the names of model and vocabularies as they were given to it. So a model ``runs/m/model.npz`` was
    trained two folders above the file.
    """
    beside = file.parent / Path(name).name
    if _is_file(beside):
        return beside
    models = about.get("models")
    model = Path(str(models[0] if isinstance(models, list) and models else about.get("model", file.name)))
    above = file.absolute().parents
    start = above[0] if model.is_absolute() else above[min(len(model.parts), len(above)) - 1]
    as_noted = file.parent / name
    return as_noted if _is_file(as_noted) else start / name


def _is_file(path: Path) -> bool:
    """True if a file is there; False too for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def _lists(paths: Sequence[Path], folder: Path) -> tuple[list[list[str]], list[Parts]]:
    """The pieces of each id, one list for both sides or two; the models of subwords."""
    if paths[0].suffix == ".spm":
        models = [read_model(read_bytes(path, WANTED), str(path)) for path in paths]
        lists = [[piece.text.decode() for piece in model.pieces] for model in models]
    else:
        spm = [folder / f"{side}.spm" for side in ("source", "target")]
        models = [read_model(read_bytes(path, WANTED), str(path)) for path in spm]
        lists = [_listed(path) for path in paths]
    return (lists[:1] if lists[0] == lists[-1] else [lists[0], lists[-1]]), models


def _listed(path: Path) -> list[str]:
    """The piece of each id, of a file of JSON, or of YAML in lines as Marian writes it.

    PyYAML is not used, for it takes ``yes`` and ``1_0`` for other things than texts.
    """
    try:
        text = read_bytes(path, WANTED).decode("utf-8")
        found = json.loads(text) if text.startswith("{") else pieces_of_yaml(text)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not a vocabulary of Marian ({error}); copy it again") from None
    return numbered(found, str(path))


def pieces_of_yaml(text: str) -> dict[str, int]:
    """Lines such as ``"a": 7``, ``a: 7``, or a key after ``? `` and its id in the next line."""
    found, key = {}, None
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if not line or line == "---":
            continue
        if line.startswith("? "):
            key = line[2:]
            continue
        before, _, number = line.rpartition(":")
        found[_unquoted(before if key is None else key)] = int(number)
        key = None
    return found


def _unquoted(key: str) -> str:
    if len(key) > 1 and key[0] == key[-1] == "'":
        return key[1:-1].replace("''", "'")
    if len(key) > 1 and key[0] == key[-1] == '"':
        return ESCAPED.sub(lambda m: _character(m.group(1)), key[1:-1])
    return key


def _character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else LETTERS.get(escape, escape)


def _special(listed: Sequence[str], path: Path) -> tuple[int | None, int, int | None, int]:
    """The ids there of our pad, unk, bos and eos; Marian has no bos, and no padding of its own."""
    ids = {piece: i for i, piece in enumerate(listed)}
    for name in ("<unk>", "</s>"):
        if name not in ids:
            raise BundleError(f"{path}: its vocabulary has no {name}")
    return ids.get("<pad>"), ids["<unk>"], None, ids["</s>"]


def _model(
    arrays: Arrays, options: Mapping[str, Any], norm: str, vocabularies: Sequence[Vocabulary]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings of the model, and its tensors under our names."""
    weights: dict[str, Tensor] = {}
    is_pre = norm == "pre"

    def linear(theirs: str, letter: str, ours: str) -> None:
        weights[f"{ours}.weight"] = arrays.matrix(f"{theirs}_W{letter}").T
        weights[f"{ours}.bias"] = arrays.vector(f"{theirs}_b{letter}")

    def layer_norm(theirs: str, ours: str, ending: str) -> None:
        for what, name in (("scale", "weight"), ("bias", "bias")):
            weights[f"{ours}.{name}"] = arrays.vector(f"{theirs}_ln_{what}{ending}")

    for side, depth in (("encoder", options["enc-depth"]), ("decoder", options["dec-depth"])):
        for i in range(depth):
            theirs, ours = f"{side}_l{i + 1}", f"{side}.layers.{i}"
            attentions = {"self": "self_attn", "context": "cross_attn"} if side == "decoder" else {"self": "self_attn"}
            for one, name in attentions.items():
                for letter in "qkvo":
                    linear(f"{theirs}_{one}", letter, f"{ours}.{name}.w_{letter}")
            for number in "12":
                linear(f"{theirs}_ffn", number, f"{ours}.feed_forward.w_{number}")
            for n, place in enumerate((*(f"{one}_Wo" for one in attentions), "ffn_ffn"), 1):
                layer_norm(f"{theirs}_{place}", f"{ours}.norm{n}", "_pre" if is_pre else "")
        if is_pre:
            layer_norm(f"{side}_top", f"{side}.norm", "")

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
        of = vocabularies[0 if name == "src_embed" else -1]
        rows = of.take(table, f"{arrays.path}: {name}")
        if name in {"all": ("src_embed",), "decoder": ("src_embed", "tgt_embed")}.get(share, (name,)):
            weights[f"{name}.weight"] = rows
    d_model = src.size(1)
    given = arrays.vector(f"{head}_b") if f"{head}_b" in arrays else torch.zeros(len(generator))
    if len(given) != len(generator):
        raise BundleError(f"{arrays.path}: {head}_b has {len(given):,} numbers for {len(generator):,} rows")
    bias = vocabularies[-1].bias(given, f"{arrays.path}: {head}_b")
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
        scale_embeddings=not is_trained,  # as Marian has it
    )  # fmt: skip
    return settings, {name: one.contiguous() for name, one in weights.items()}
