"""Configuration: four sections, frozen, in and out of YAML; unknown keys are refused with the nearest name.

    model:  {preset: small, dropout: 0.3}
    data:   {train: {src: train.en, tgt: train.de}, tokenizer: {vocab_size: 8000}}  # or {file: pairs.tsv}, or a list
    train:  {max_steps: 8000, batch_tokens: 4096}
    decode: {beam_size: 4, length_penalty: 0.6}

``ModelConfig`` is the model section plus the two vocabulary sizes, which are known once the subwords are learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ArgsKwargs

from dragoman.errors import ConfigError, DragomanError
from dragoman.options import SearchOptions, must, nearest, no_switch_for_a_number, option, option_group, refusals

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": dict(d_model=128, d_ff=256, n_heads=4, n_encoder_layers=4, n_decoder_layers=4),
    "small": dict(d_model=256, d_ff=1024, n_heads=4, n_encoder_layers=3, n_decoder_layers=3),
    "student": dict(d_model=256, d_ff=1024, n_heads=4, n_encoder_layers=6, n_decoder_layers=2),
    "student-tiny": dict(d_model=128, d_ff=512, n_heads=4, n_encoder_layers=6, n_decoder_layers=1),
    "base": dict(d_model=512, d_ff=2048, n_heads=8, n_encoder_layers=6, n_decoder_layers=6, dropout=0.1),
    "big": dict(d_model=1024, d_ff=4096, n_heads=16, n_encoder_layers=6, n_decoder_layers=6, dropout=0.3),
}


MAX_BYTES = 2**16
"""A larger file is no configuration."""


def setting(default: Any, text: str, **limits: Any) -> Any:
    """Declare a setting: its default (``...``: it must be given), what it means, and its limits, such as ``ge=1``."""
    return Field(default, description=text, **limits)


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the four special subwords; every vocabulary has them in these places."""

    pad: int = 0
    unk: int = 1
    bos: int = 2
    eos: int = 3


SPECIAL_IDS = SpecialIds()


class Section(BaseModel):
    """A frozen group of settings that knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: Any, info: Any) -> Any:
        return no_switch_for_a_number(value, cls.model_fields[info.field_name].annotation)


OF_TRANSFORMERS = (
    "d_k", "d_v", "attention_dropout", "activation_dropout", "norm", "activation", "attention_bias", "norm_eps",
    "src_eos",
)  # fmt: skip
"""Settings that no other architecture has. It does not use ``n_heads`` and ``d_ff`` either, which presets set."""


class ModelOptions(Section):
    """Sizes and variants of one model; the defaults are the paper's base model (section 3)."""

    architecture: Literal["transformer", "rnn", "gru", "lstm", "conv"] = setting(
        "transformer", "`transformer`, or one of the paper's baselines: `rnn`, `gru`, `lstm`, `conv`"
    )
    d_model: int = setting(512, "width of the residual stream", ge=1, le=65536)
    n_heads: int = setting(8, "attention heads; must divide `d_model`, unless `d_k` and `d_v` are given", ge=1, le=1024)
    d_ff: int = setting(2048, "inner width of the feed-forward network", ge=1, le=1_048_576)
    n_encoder_layers: int = setting(6, "0: no encoder, a language model (Python only)", ge=0, le=1000)
    n_decoder_layers: int = setting(6, "0: no decoder, the encoder alone (Python only)", ge=0, le=1000)
    d_k: int | None = setting(None, "width of a head's queries and keys; null: `d_model / n_heads`", ge=1, le=65536)
    d_v: int | None = setting(None, "width of a head's values; null: `d_model / n_heads`", ge=1, le=65536)
    dropout: float = setting(0.1, "on each sub-layer's output and on the sum of embedding and position", ge=0, lt=1)
    attention_dropout: float = setting(0.0, "on attention weights", ge=0, lt=1)
    activation_dropout: float = setting(0.0, "inside the feed-forward network", ge=0, lt=1)
    norm: Literal["post", "pre"] = setting(
        "post",
        "`post`: norm(x + sublayer(x)), the paper's; `pre`: x + sublayer(norm(x)), with one more norm after each stack",
    )
    activation: Literal["relu", "gelu", "swish", "swiglu"] = setting(
        "relu", "`relu`, `gelu` (exact), `swish`, `swiglu` (a third matrix gates)"
    )
    positions: Literal["sinusoidal", "learned", "rotary"] = setting(
        "sinusoidal", "`sinusoidal`, `learned`, `rotary` (in self-attention only)"
    )
    share_embeddings: Literal["all", "decoder", "none"] = setting(
        "all",
        "one matrix for source, target and generator (`all`), for the latter two (`decoder`), or three (`none`); "
        "`all` needs `data.tokenizer.joint`",
    )
    scale_embeddings: bool = setting(True, "multiply embeddings by sqrt(d_model)")
    src_eos: bool = setting(True, "read the eos behind each source; false: sources have none, as OpenNMT-py has them")
    attention_bias: bool = setting(True, "biases in w_q, w_k, w_v, w_o")
    generator_bias: bool = setting(False, "a bias in the last projection to the vocabulary")
    norm_eps: float = setting(1e-5, "added to the variance in layer norm", gt=0, lt=1)
    max_len: int = setting(1024, "rows of learned positions; the other kinds have no limit", ge=1, le=10_000_000)
    kernel_width: int = setting(
        3, "positions in the window of a convolution, an odd number; `conv` only", ge=1, le=1023
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_preset(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "preset" not in data:
            return data
        fields = dict(data)
        preset = fields.pop("preset")
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ValueError(f"model.preset must be one of {', '.join(PRESETS)}, got {preset!r}")
        return {**PRESETS[preset], **fields}

    @model_validator(mode="after")
    def _check_architecture(self) -> Self:
        kind, fields = self.architecture, type(self).model_fields
        if kind != "conv" and self.kernel_width != fields["kernel_width"].default:
            raise ValueError(f"model.kernel_width is for model.architecture = 'conv', this is {kind!r}: leave it out")
        if kind == "transformer":
            return self
        for name in OF_TRANSFORMERS if kind == "conv" else (*OF_TRANSFORMERS, "positions"):
            if getattr(self, name) != fields[name].default:
                raise ValueError(
                    f"model.{name} = {getattr(self, name)!r}, but model.architecture = {kind!r} has no such "
                    "setting: leave it out, or use the transformer"
                )
        if not (self.n_encoder_layers and self.n_decoder_layers):
            raise ValueError(f"model.architecture = {kind!r} has encoder and decoder: give each 1 layer or more")
        if kind == "conv" and self.is_rotary:
            raise ValueError(f"model.positions = {self.positions!r} needs self-attention, which 'conv' does not have")
        if kind == "conv" and not self.kernel_width % 2:
            raise ValueError(f"model.kernel_width must be odd, got {self.kernel_width}: the window is symmetric")
        if kind != "conv" and self.d_model % 2:
            raise ValueError(f"model.d_model = {self.d_model} is odd: half of {kind!r} reads each way")
        return self

    @model_validator(mode="after")
    def _check_widths(self) -> Self:
        by_heads = self.architecture == "transformer" and (self.d_k is None or self.d_v is None)
        if by_heads and self.d_model % self.n_heads:
            fits = [n for n in (1, 2, 4, 8, 16, 32) if self.d_model % n == 0]
            raise ValueError(
                f"model.n_heads = {self.n_heads} does not divide model.d_model = {self.d_model}. Each head is "
                f"d_model / n_heads wide: set n_heads to one of {fits}, or give d_k and d_v"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"model.d_model = {self.d_model} is odd; sinusoidal positions come in sine-cosine pairs")
        if self.is_rotary and self.head_d_k % 2:
            raise ValueError(f"model.d_k = {self.head_d_k} is odd; rotary positions turn pairs of channels")
        if not self.n_encoder_layers and not self.n_decoder_layers:
            raise ValueError("model.n_encoder_layers and model.n_decoder_layers are both 0: the model would be empty")
        return self

    @property
    def is_gated(self) -> bool:
        """True if a third projection gates the feed-forward network: its product with the first one's activation."""
        return self.activation == "swiglu"

    @property
    def is_rotary(self) -> bool:
        """True if self-attention rotates queries and keys by their positions."""
        return self.positions == "rotary"

    @property
    def n_positions(self) -> int | None:
        """The most tokens of a text, eos counted; None: there are positions for any."""
        return self.max_len if self.positions == "learned" else None

    @property
    def head_d_k(self) -> int:
        """Width of one head's queries and keys."""
        return self.d_k or self.d_model // self.n_heads

    @property
    def head_d_v(self) -> int:
        """Width of one head's values."""
        return self.d_v or self.d_model // self.n_heads


class ModelConfig(ModelOptions):
    """Options of a model, the sizes of its two vocabularies, the ids of padding and of eos."""

    src_vocab_size: int = Field(ge=1, le=10_000_000)
    tgt_vocab_size: int = Field(ge=1, le=10_000_000)
    pad_id: int = Field(SPECIAL_IDS.pad, ge=0)
    eos_id: int = Field(SPECIAL_IDS.eos, ge=0)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise _refused(error, type(self), "") from None

    @model_validator(mode="after")
    def _check_vocabularies(self) -> Self:
        if self.share_embeddings == "all" and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                f"share_embeddings = 'all' needs one vocabulary, but src_vocab_size = {self.src_vocab_size} and "
                f"tgt_vocab_size = {self.tgt_vocab_size}: learn a joint tokenizer, or share 'decoder' or 'none'"
            )
        if self.pad_id >= min(self.src_vocab_size, self.tgt_vocab_size):
            raise ValueError(f"pad_id = {self.pad_id} lies outside a vocabulary")
        return self


def unknown(setting: str, value: object) -> ConfigError:
    """Return the error of a branch that no value of the schema leads to; a new value must not pass for another."""
    return ConfigError(f"{setting} = {value!r} is unknown where it is used: take another, or write it there")


RESERVED_TAG = re.compile(r"<(pad|unk|s|/s|0x[0-9A-F]{2})>")
"""What a tokenizer has already."""


class Corpus(Section):
    """Optional attributes of a corpus: weight, tag, languages."""

    weight: float = Field(1.0, ge=0, le=1000)  # how often each of its pairs is drawn in an epoch, on average
    tag: str | None = None  # a mark such as <bt> before each source: a subword of its own
    src_lang: str | None = None  # where texts have several languages; None: that of data
    tgt_lang: str | None = None  # several: one model for all, which is told by >>fr<< before each source

    @field_validator("tag")
    @classmethod
    def _a_mark(cls, tag: str | None) -> str | None:
        if tag is not None and (not re.fullmatch(r"<[^<>\s\u2581]{1,60}>", tag) or RESERVED_TAG.fullmatch(tag)):
            raise must(
                "be one word in angle brackets, such as <bt>, that is no special symbol of a tokenizer (for a target "
                "language set tgt_lang)"
            )
        return tag

    @field_validator("src_lang", "tgt_lang")
    @classmethod
    def _a_code(cls, lang: str | None) -> str | None:
        if lang is not None and not re.fullmatch(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*", lang):
            raise must("be the code of a language, such as fr, deu or zh-CN")
        return lang


GivenPath = Annotated[Path, PlainSerializer(format, return_type=str, when_used="json")]
"""Path of a file; one that was made absolute is written as it was given: see ``files.pinned``."""


class PairOfFiles(Corpus):
    """Two text files whose lines belong together; plain, .gz or .zst. A treebank is given as both."""

    src: GivenPath
    tgt: GivenPath


class OneFile(Corpus):
    """A table (.tsv, .csv) or a translation memory (.tmx), which has both sides in it; also .gz or .zst."""

    file: GivenPath
    columns: tuple[str, str] | None = None  # source and target: headings or numbers of a table, languages of a memory

    @field_validator("columns", mode="before")
    @classmethod
    def _two(cls, columns: Any) -> Any:
        """``en,de`` and ``[1, 3]`` are two columns, as ``[en, de]`` is."""
        parts = columns.split(",") if isinstance(columns, str) else columns
        return [str(part).strip() for part in parts] if isinstance(parts, list | tuple) else parts


TextFiles = PairOfFiles | OneFile


def _tag(text: Any) -> str:
    """Return the label of the form that a value of ``data.train`` has."""
    if isinstance(text, list | tuple):
        return "<several>"
    return "<file>" if isinstance(text, OneFile) or (isinstance(text, Mapping) and "file" in text) else "<pair>"


OneText = Annotated[Annotated[PairOfFiles, Tag("<pair>")] | Annotated[OneFile, Tag("<file>")], Discriminator(_tag)]
Texts = Annotated[
    Annotated[PairOfFiles, Tag("<pair>")]
    | Annotated[OneFile, Tag("<file>")]
    | Annotated[tuple[OneText, ...], Tag("<several>"), Field(min_length=1)],
    Discriminator(_tag),
]
"""One text, or a list of them that are read one after the other."""


def each(texts: TextFiles | tuple[TextFiles, ...]) -> tuple[TextFiles, ...]:
    """The texts of a setting that has one or several."""
    return texts if isinstance(texts, tuple) else (texts,)


class TokenizerConfig(Section):
    """Settings of subwords."""

    kind: Literal["bpe", "unigram"] = setting("bpe", "`bpe` or `unigram`")
    vocab_size: int = setting(
        8000, "subwords of each vocabulary, bytes and four special ones included", ge=8, le=1_000_000
    )
    joint: bool = setting(True, "one vocabulary for both languages")
    normalisation: Literal["standard", "with_quotes", "none"] = setting(
        "standard",
        "what new subwords read: `standard`: white space, invisible characters, width and composed characters as in "
        "normal text; `with_quotes`: quotation marks and dashes too; `none`: every character as it is",
    )
    byte_fallback: bool = setting(True, "rare and unseen characters become UTF-8 bytes instead of unknown")
    sampling: float = setting(
        0.0, "subword regularisation in training: BPE-dropout rate, or alpha for unigram; 0: none", ge=0, lt=1
    )


class NoiseConfig(Section):
    """Noise on the source side of training, sampled again in each epoch; see ``dragoman.data.noise``."""

    case: float = setting(
        0.0,
        "share of training sentences whose source comes in CAPITALS, in lower case, With Capitals or with its "
        "initial changed",
        ge=0,
        le=1,
    )
    punctuation: float = setting(0.0, "share whose source loses its final mark, repeats it or gets one", ge=0, le=1)
    typos: float = setting(0.0, "share whose source gets typing errors and stray spaces", ge=0, le=1)
    one_word: float = setting(0.0, "share of which only one word and its translation are left", ge=0, le=1)
    inserts: float = setting(
        0.0,
        "share that gets the same emoji, e-mail or web address, or masks such as `[3]`, on both sides",
        ge=0,
        le=1,
    )

    @property
    def is_on(self) -> bool:
        """True if any sentence gets noise."""
        return any(share > 0 for share in self.model_dump().values())


class DataConfig(Section):
    """Files of the text, and how it is cleaned and cut."""

    train: Texts = setting(
        ...,
        "the training text: `{src: FILE, tgt: FILE}`; `{file: FILE}` of a table or a translation memory, with "
        "`columns: [en, de]` where they are to be chosen; a list of these; for a parser `{trees: FILE}`",
    )
    valid: Texts | None = setting(None, "the validation text, likewise; null: a part of the training text is held out")
    src_lang: str | None = setting(None, "source language, such as `en`; null: from the file name")
    tgt_lang: str | None = setting(None, "target language; null: from the file name")
    tokenizer: TokenizerConfig = TokenizerConfig()
    noise: NoiseConfig = NoiseConfig()
    max_tokens: int = setting(
        256,
        "pairs with a side of more subwords are dropped; longer lines to translate are split",
        ge=1,
        le=100_000,
    )
    max_ratio: float | None = setting(
        None, "drop pairs where one side has more than N times the subwords of the other", gt=1
    )
    drop_duplicates: bool = setting(False, "of pairs that are the same on both sides the first stays")

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if all(text.weight == 0 for text in each(self.train)):
            raise ValueError("data.train: the weights sum to 0, so no pair is ever drawn: give one entry more than 0")
        if self.valid is not None and any(text.weight != 1 for text in each(self.valid)):
            raise ValueError("data.valid: validation text is never weighted, each pair counts once: leave out weight")
        return self

    @property
    def pairs(self) -> tuple[tuple[str | None, str | None], ...]:
        """Source and target language of the training text; several for a model of several."""
        pairs = ((text.src_lang or self.src_lang, text.tgt_lang or self.tgt_lang) for text in each(self.train))
        return tuple(dict.fromkeys(pairs))

    @property
    def tgt_langs(self) -> tuple[str, ...]:
        """The target languages that are told apart by a mark before each source; none where there is one language."""
        langs = tuple(dict.fromkeys(tgt for _, tgt in self.pairs if tgt is not None))
        return langs if len(langs) > 1 else ()


class TrainConfig(Section):
    """Settings of training; the defaults are the paper's (section 5)."""

    max_steps: int = setting(100_000, "updates in all", ge=1)
    max_epochs: int | None = setting(None, "stop after N passes over the corpus", ge=1)
    max_minutes: float | None = setting(
        None,
        "stop after N minutes of training, validation and saving, of all parts of a run; a cosine reaches zero then",
        gt=0,
    )
    batch_tokens: int = setting(4096, "rows times longest side of one batch, padding counted", ge=1)
    accumulate: int = setting(1, "batches to one update", ge=1)
    schedule: Literal["noam", "inverse_sqrt", "cosine"] = setting(
        "noam", "`noam`: the paper's; `inverse_sqrt` and `cosine`: a line up to `lr`, then down"
    )
    lr: float | None = setting(
        None, "peak rate of `inverse_sqrt` and `cosine`, which need it; for `noam` a factor (null: 1)", gt=0
    )
    warmup_steps: int = setting(4000, "steps until the peak", ge=1)
    label_smoothing: float = setting(0.1, "share of the target spread over the vocabulary", ge=0, lt=1)
    r_drop: float = setting(
        0.0,
        "weight of R-Drop (https://arxiv.org/abs/2106.14448): each batch goes through the model twice, and both "
        "passes must agree; twice the time of a step; the paper takes 5",
        ge=0,
        le=100,
    )
    token_dropout: float = setting(
        0.0,
        "share of the subwords read, of the source and of what the decoder has written so far, that are replaced "
        "by `<unk>` in training (https://arxiv.org/abs/1512.05287)",
        ge=0,
        lt=1,
    )
    adam_betas: tuple[float, float] = setting((0.9, 0.98), "decay of Adam's two moments")
    adam_eps: float = setting(1e-9, "added to the root in Adam", gt=0)
    clip_norm: float | None = setting(None, "largest norm of the gradient of all parameters together", gt=0)
    ema: float = setting(0.0, "decay of the moving average of the weights; 0: none", ge=0, lt=1)
    average: int = setting(5, "how many last checkpoints are averaged at the end; 0 or 1: none", ge=0, le=1000)
    choose_length_penalty: bool = setting(
        False,
        "choose `decode.length_penalty` and its form at the end, by the BLEU of up to 500 validation pairs; "
        "of a parser it has no effect",
    )
    validate_every: int = setting(500, "steps between validations; there is also one at the end", ge=1)
    save_every: int = setting(500, "steps between checkpoints; there is also one at the end", ge=1)
    log_every: int = setting(50, "steps between reports", ge=1)
    patience: int | None = setting(
        None,
        "stop after N validations without a better BLEU (of a parser, F1) or, while that is below 1, a lower loss",
        ge=1,
    )
    goal: float | None = setting(
        None, "stop after a validation with this BLEU (of a parser, F1) or more, in per cent", gt=0, le=100
    )
    max_bad_steps: int = setting(10, "stop after N updates in a row that were not finite", ge=1)
    seed: int = setting(1, "of weights, dropout, and the order of batches", ge=0, lt=2**63)
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "auto",
        "`fp32`, `bf16`; `auto`: bf16 on a GPU that has it and on a processor that multiplies faster in it, else fp32",
    )
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "`cpu`, `cuda`; `auto`: the GPU if there is one")
    threads: int | None = setting(
        None,
        "threads on a CPU; null: one for each core, and fewer where that is faster beside others, which changes "
        "the last bits of the weights",
        ge=1,
    )
    tensorboard: bool = setting(False, "also log for TensorBoard")

    @model_validator(mode="after")
    def _check_rate(self) -> Self:
        if self.schedule != "noam" and self.lr is None:
            raise ValueError(f"train.schedule = {self.schedule!r} needs its peak rate: set train.lr (for example 1e-3)")
        single = self.warmup_steps == self.max_steps == 1  # which is all warm-up
        if self.schedule == "cosine" and self.warmup_steps >= self.max_steps and not single:
            raise ValueError(
                f"train.warmup_steps = {self.warmup_steps} must be below train.max_steps = {self.max_steps}: "
                "the cosine decay starts when the warm-up ends"
            )
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise ValueError(f"train.adam_betas = {self.adam_betas}: each must lie in [0, 1)")
        return self


class LengthPenalty(NamedTuple):
    """Divisor of a hypothesis' log-probability: called with its number of tokens, eos counted."""

    alpha: float
    form: Literal["gnmt", "power"] = "gnmt"

    def __call__(self, n: int) -> float:
        if self.form == "gnmt":  # https://arxiv.org/abs/1609.08144, Eq. 14
            return float(((5 + n) / 6) ** self.alpha)
        if self.form == "power":
            return float(n**self.alpha)
        raise unknown("decode.length_penalty_form", self.form)

    @property
    def formula(self) -> str:
        """The formula as text."""
        if self.form == "gnmt":
            return f"((5 + n) / 6) ** {self.alpha:g}"
        if self.form == "power":
            return f"n ** {self.alpha:g}"
        raise unknown("decode.length_penalty_form", self.form)


_SET_NAMES = "_set_names"
"""Attribute of a ``DecodeConfig`` with the names of the settings that were set."""


@option_group
class DecodeConfig(SearchOptions):
    """A run's own settings of the search; the defaults are the paper's (section 6.1)."""

    beam_size: int = 4
    length_penalty: float = 0.6
    length_penalty_form: Literal["gnmt", "power"] = "gnmt"
    patience: float | None = None
    batch_tokens: int = 4096
    max_extra_tokens: int = option(
        50, "Search", "A translation has at most N subwords more than its source.", ge=1, le=10_000
    )

    @model_validator(mode="wrap")
    @classmethod
    def _note_set_names(cls, values: Any, make: ModelWrapValidatorHandler[Self]) -> Self:
        made = make(values)
        if made is not values:  # pydantic notes which settings of a model were set, but not those of a dataclass
            names = values.kwargs if isinstance(values, ArgsKwargs) else values
            object.__setattr__(made, _SET_NAMES, frozenset(names or ()))
        return made

    @property
    def set_values(self) -> dict[str, Any]:
        """The settings that were set, by name; one that was set to its default is among them."""
        return {name: getattr(self, name) for name in self.names() if name in vars(self)[_SET_NAMES]}

    def changed_by(self, options: SearchOptions) -> Self:
        """Return these settings with those that ``options`` has instead."""
        changes = options.of_group(SearchOptions)
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    @property
    def penalty(self) -> LengthPenalty:
        """Alpha and form together."""
        return LengthPenalty(self.length_penalty, self.length_penalty_form)


class Config(Section):
    """A whole run: ``task``, and the sections ``model``, ``data``, ``train`` and ``decode``."""

    task: Literal["translation", "parsing"] = setting(
        "translation", "`translation`, or `parsing`: sentences to constituency trees (section 6.3)"
    )
    model: ModelOptions = ModelOptions()
    data: DataConfig
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()

    @model_validator(mode="before")
    @classmethod
    def _expand_trees(cls, data: Any) -> Any:
        """``{trees: FILE}`` is a file that is both sides."""
        if not isinstance(data, Mapping) or not isinstance(data.get("data"), Mapping):
            return data
        files = dict(data["data"])
        for name in ("train", "valid"):
            text = files.get(name)
            if isinstance(text, Mapping) and "trees" in text:
                if data.get("task", "translation") == "translation":
                    raise ValueError(f"data.{name}.trees is for parsers: set task to parsing, or give src and tgt")
                if len(text) > 1:
                    raise ValueError(f"data.{name}: give trees alone; the sentences are in them")
                files[name] = {"src": text["trees"], "tgt": text["trees"]}
        return {**data, "data": files}

    @model_validator(mode="after")
    def _check_parsing(self) -> Self:
        if not self.is_parser:
            return self
        for name, files in (("train", self.data.train), ("valid", self.data.valid)):
            if files is not None and not (isinstance(files, PairOfFiles) and files.src == files.tgt):
                raise ValueError(f"task = 'parsing' takes one file of trees: give data.{name}.trees, not src and tgt")
        if self.data.tokenizer.joint or self.model.share_embeddings == "all":
            raise ValueError(
                "task = 'parsing' has two vocabularies, subwords and symbols of trees: set data.tokenizer.joint to "
                "false, and model.share_embeddings to decoder or none"
            )
        if self.data.noise.is_on:
            raise ValueError("data.noise is for translation: it may change a sentence's words, which a tree must keep")
        return self

    @property
    def is_parser(self) -> bool:
        """True if sentences become constituency trees instead of translations."""
        return self.task == "parsing"

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], where: str = "configuration") -> Self:
        """Check ``data`` against the schema.

        Raises:
            ConfigError: A key is unknown (the nearest is named) or a value is impossible; one line for each.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise _refused(error, cls, f"{where}: ") from None

    @classmethod
    def from_yaml(cls, path: Path | str, overrides: Sequence[str] = ()) -> Self:
        """Read a YAML file, then apply ``overrides`` such as ``"train.max_steps=2000"``.

        Relative corpus paths are taken from the folder the command runs in, as on any command line.

        Raises:
            ConfigError: The file is missing, not YAML, or does not fit the schema.
        """
        return cls.from_mapping(with_overrides(read_yaml(path), overrides), where=named_with(path, overrides))

    def to_yaml(self) -> str:
        """The whole configuration, every default written out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


NO_YAML = (yaml.YAMLError, ValueError, RecursionError, LookupError, TypeError, AttributeError)
"""What PyYAML raises: beside its own, of dates that are none and numbers too long, and of tags such as ``!!int ''``."""


def read_yaml(path: Path | str) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping.

    Raises:
        ConfigError: The file cannot be read or is no YAML mapping; names the file and, for syntax, the line.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(f"{path}: more than {MAX_BYTES:,} bytes, too large for a configuration")
        text = raw.decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; give the path of a .yaml configuration") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a UTF-8 text file ({error})") from None
    data = parse_yaml(text, path)
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ConfigError(f"{path}: the top level must contain only task and the sections model, data, train, decode")
    return data


def parse_yaml(text: str, name: object, refusal: type[DragomanError] = ConfigError) -> Any:
    """Return the plain data of a YAML text; aliases and duplicate keys are refused.

    Args:
        name: Name of the file in messages.

    Raises:
        DragomanError: The text is no such YAML; the error, of the kind ``refusal``, names the file and the line.
    """
    try:
        return yaml.load(text, _StrictLoader)  # a SafeLoader
    except NO_YAML as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        reason = " ".join(str(getattr(error, "problem", None) or error).split())[:120]
        raise refusal(f"{name}{line}: not valid YAML ({reason})") from None


class _StrictLoader(yaml.SafeLoader):
    """YAML's plain data; refused are duplicate keys, and aliases, by which a few lines become gigabytes.

    As in YAML 1.2 only true and false are switches: ``no`` is Norwegian. (A setting that is a switch takes yes and no
    all the same, and on and off.)
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not read: write it out", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                raise yaml.MarkedYAMLError(
                    problem=f"{str(key)[:60]!r} appears twice", problem_mark=node.value[i][0].start_mark
                )
        return super().construct_mapping(node, deep)


_BOOL = "tag:yaml.org,2002:bool"
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_StrictLoader.add_implicit_resolver(_BOOL, re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def named_with(path: object, overrides: Sequence[str]) -> str:
    """Return how messages name a configuration file, of which ``overrides`` may be to blame as well."""
    return f"{path} with --set" if overrides else str(path)


def with_overrides(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``data`` with each ``a.b=value`` set; values are read as YAML, so ``0.3``, ``true``, ``[1, 2]`` work.

    A preset that is set takes the place of the sizes that ``data`` has.

    Raises:
        ConfigError: An override is not of the form ``a.b=value`` or goes through something that is no section.
    """
    result = _deep_copy(data)
    if isinstance(model := result.get("model"), dict) and any(
        override.partition("=")[0].strip() == "model.preset" for override in overrides
    ):
        result["model"] = {name: value for name, value in model.items() if name not in PRESETS["tiny"]}
    for override in overrides:
        name, equals, value = override.partition("=")
        keys = name.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"override {override!r}: write section.key=value, for example train.max_steps=2000")
        node = result
        for key in keys[:-1]:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise ConfigError(f"override {override!r}: {key} is a value, not a section")
        try:
            node[keys[-1]] = _number_or_same(yaml.load(value, _StrictLoader))
        except NO_YAML:
            raise ConfigError(f"override {override!r}: {value!r} is not valid YAML; quote it") from None
    return result


def _number_or_same(value: Any) -> Any:
    """Read ``1e-3`` as the number it looks like: YAML 1.1 wants ``1.0e-3`` and would call it a string."""
    return (
        float(value) if isinstance(value, str) and re.fullmatch(r"[-+]?\d++(?:\.\d*+)?[eE][-+]?\d+", value) else value
    )


def _deep_copy(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _deep_copy(value) if isinstance(value, Mapping) else value for key, value in data.items()}


def _refused(error: ValidationError, root: type[Any], prefix: str) -> ConfigError:
    """Return the refusal of a configuration: every setting by its full name."""

    def unknown_setting(path: Sequence[str]) -> str:
        name = ".".join(path)
        elsewhere = [setting for setting in settings_named(path[-1]) if setting != name]
        meant = (
            f"did you mean {' or '.join(elsewhere)}?" if elsewhere else nearest(path[-1], _names_at(root, path[:-1]))
        )
        return f"unknown setting {name}: {meant}"

    return ConfigError(prefix + refusals(error.errors(include_url=False), unknown_setting))


def fields_of(section: type[Any]) -> dict[str, FieldInfo]:
    """Return the declared settings of a section."""
    return getattr(section, "model_fields", None) or section.__pydantic_fields__


def all_settings(root: type[Any], path: str = "") -> Iterator[str]:
    """Yield the settings below ``root``, each with all its parts, such as ``train.max_minutes``."""
    for name in _names_at(root, ()):
        about = fields_of(root).get(name)
        below = None if about is None else section_in(about.annotation)
        if below is None:
            yield f"{path}{name}"
        else:
            yield from all_settings(below, f"{path}{name}.")


def settings_named(name: str) -> list[str]:
    """Return the settings whose last part is ``name``."""
    return [setting for setting in all_settings(Config) if setting.split(".")[-1] == name]


def _names_at(root: type[Any], path: Sequence[str]) -> list[str]:
    """Return the names that may stand at ``path`` below ``root``."""
    sections = [root]
    for key in path:
        if not key.isdecimal():
            inside = [fields_of(section)[key].annotation for section in sections if key in fields_of(section)]
            sections = [section for annotation in inside for section in sections_in(annotation)]
    names = dict.fromkeys(name for section in sections for name in fields_of(section))
    return [*names, *(["preset"] if any(issubclass(section, ModelOptions) for section in sections) else [])]


def section_in(annotation: Any) -> type[Any] | None:
    """Return the section that a setting of this type is; None for a value, and for text in one of several forms."""
    sections = list(sections_in(annotation))
    return sections[0] if len(sections) == 1 else None


def sections_in(annotation: Any) -> Iterator[type[Any]]:
    """Yield the sections that a type has anywhere."""
    if isinstance(annotation, type) and issubclass(annotation, Section | SearchOptions):
        yield annotation
    for inner in get_args(annotation):
        yield from sections_in(inner)
