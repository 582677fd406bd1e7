"""What suits the minutes that there are: the largest model that can see enough text in them on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from dragoman.config import PRESETS, Config, ModelConfig, with_overrides
from dragoman.training.memory import n_parameters

SIZES: tuple[tuple[int, int, int], ...] = ((128, 2, 4000), (192, 2, 4000), (256, 3, 8000), (512, 6, 32000))
"""Width, layers of each stack, and the most subwords: what is tried, from the smallest up to what suits the corpus."""

TOKENS_A_PARAMETER = 3.0
"""Of the layers, embeddings not counted. With half of that a model was still worse than a smaller one in the same time
(docs/decisions/0035-the-minutes-choose-the-sizes.md)."""

RATE_TIMES_WIDTH = 0.384

UPDATES = 1000
"""These come before larger batches."""

BATCH_TOKENS = (512, 1024, 2048, 4096)

FEW_EPOCHS, LESS_DROPOUT = 15, 0.1
"""A text that is seen less often than this is hardly learned by heart."""

FOR_TRAINING = 0.85
"""Of the time; the rest goes to validation."""

CHARACTERS_A_SUBWORD = 3.5


class Text(NamedTuple):
    """What the choice looks at in a corpus."""

    n_pairs: int
    characters: float  # of the longer side, on average

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Count a corpus."""
        n_pairs = characters = 0
        for src, tgt in pairs:
            n_pairs += 1
            characters += max(len(src), len(tgt))
        return cls(n_pairs, characters / max(1, n_pairs))

    @property
    def length(self) -> int:
        """About how many subwords the longer side has, eos counted."""
        return max(2, round(self.characters / CHARACTERS_A_SUBWORD) + 1)


class Choice(NamedTuple):
    """Settings, the speed that they were chosen at, and both in a sentence."""

    settings: dict[str, Any]
    tokens_per_second: float
    reason: str


def updates_in(minutes: float, tokens_per_second: float, tokens_an_update: int) -> int:
    """About how many updates can be made, validation taking its share of the time."""
    return max(1, int(FOR_TRAINING * 60 * minutes * tokens_per_second / tokens_an_update))


def all_is_said(said: Mapping[str, Any]) -> bool:
    """Whether nothing is left that would follow from the speed of this machine."""
    train = said.get("train")
    return _is_sized(said) and isinstance(train, Mapping) and "batch_tokens" in train


def _is_sized(said: Mapping[str, Any]) -> bool:
    model = said.get("model", {})
    return not isinstance(model, Mapping) or bool(model.keys() & {"preset", *PRESETS["tiny"]})


def in_time(
    settings: Mapping[str, Any], overrides: Sequence[str], text: Text, speed: Callable[[Config], float]
) -> Choice:
    """Model, subwords, batch, rate and dropout for ``train.max_minutes``, which is among ``overrides``.

    The larger of two models is taken where it still sees ``TOKENS_A_PARAMETER``. Of these small batches as many as
    give ``UPDATES`` are better than fewer large ones, at a peak rate of ``RATE_TIMES_WIDTH / d_model``. More minutes
    never choose a smaller model.

    Args:
        settings: Those that suit the corpus whatever the time; the model chosen is no larger.
        overrides: What was said; it is not chosen.
        text: The corpus.
        speed: Measures tokens of one side a second, padding counted.

    Raises:
        ConfigError: What was said does not fit the schema.
    """
    chosen: dict[str, Any] = {}
    rate = seconds = 0.0
    for candidate in _candidates(settings, overrides):
        config = Config.from_mapping(with_overrides(candidate, overrides), "the settings chosen and given")
        seconds = FOR_TRAINING * 60 * (config.train.max_minutes or 0)
        enough = TOKENS_A_PARAMETER * _parameters_of_layers(config)
        if chosen and seconds * rate < enough:  # a larger one is no faster than the one before
            break
        found = speed(config)
        if chosen and seconds * found < enough:
            break
        chosen, rate = candidate, found
    tokens = seconds * rate
    batch_tokens = max((b for b in BATCH_TOKENS if tokens >= UPDATES * b), default=BATCH_TOKENS[0])
    chosen["train"] = {**chosen["train"], "batch_tokens": batch_tokens}
    if tokens < FEW_EPOCHS * text.n_pairs * text.length:
        chosen["model"] = {**chosen["model"], "dropout": LESS_DROPOUT}
    config = Config.from_mapping(with_overrides(chosen, overrides), "the settings chosen and given")
    return Choice(chosen, rate, _reason(config, rate))


def _candidates(settings: Mapping[str, Any], overrides: Sequence[str]) -> Iterator[dict[str, Any]]:
    """``settings`` with models from small to large, or as they are where somebody said a size."""
    if _is_sized(with_overrides({}, overrides)):
        yield dict(settings)
        return
    model, tokenizer = dict(settings["model"]), settings["data"]["tokenizer"]
    largest = PRESETS[model.pop("preset")]["d_model"]
    for d_model, n_layers, vocab_size in SIZES:
        if d_model <= largest:
            sizes = dict(
                d_model=d_model, d_ff=4 * d_model, n_heads=max(4, d_model // 64),
                n_encoder_layers=n_layers, n_decoder_layers=n_layers,
            )  # fmt: skip
            subwords = {**tokenizer, "vocab_size": min(vocab_size, tokenizer["vocab_size"])}
            yield {
                **settings,
                "model": {**model, **sizes},
                "data": {**settings["data"], "tokenizer": subwords},
                "train": {**settings["train"], "lr": RATE_TIMES_WIDTH / d_model},
            }


def _parameters_of_layers(config: Config) -> int:
    return n_parameters(ModelConfig(**config.model.model_dump(), src_vocab_size=1, tgt_vocab_size=1))


def _reason(config: Config, tokens_per_second: float) -> str:
    """Speed, updates and what follows from them."""
    model, train, minutes = config.model, config.train, config.train.max_minutes or 0
    updates = updates_in(minutes, tokens_per_second, train.batch_tokens * train.accumulate)
    return (
        f"this machine trains about {tokens_per_second:,.0f} tokens/s at width {model.d_model}: {minutes:g} minutes "
        f"are about {updates:,} updates of {train.batch_tokens * train.accumulate:,} tokens; so "
        f"{model.n_encoder_layers} + {model.n_decoder_layers} layers, {config.data.tokenizer.vocab_size:,} subwords, "
        f"dropout {model.dropout:g}"
    )
