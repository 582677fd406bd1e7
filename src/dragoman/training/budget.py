"""Sizes for a time limit: the largest model that can see enough text in it on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from dragoman.config import PRESETS, Config, ModelConfig, with_overrides
from dragoman.training.memory import n_parameters

SIZES: tuple[tuple[int, int, int], ...] = ((128, 2, 4000), (192, 2, 4000), (256, 3, 8000), (512, 6, 32000))
"""Candidates from small to large: width, layers of each stack, and largest number of subwords."""

TOKENS_A_PARAMETER = 3.0
"""Target tokens that a model must see for each parameter of its layers, embeddings not counted.

With half of that a model was still worse than a smaller one in the same time
(docs/decisions/0035-the-minutes-choose-the-sizes.md)."""

RATE_TIMES_WIDTH = 0.384
RATE_GROWS_UP_TO_WIDTH = 128
"""Up to this width the peak rate grows with the square root of an update's tokens, from the second of ``BATCH_TOKENS``
to the last. Wider models were not measured with it (docs/decisions/0035-the-minutes-choose-the-sizes.md)."""

UPDATES = 1000
"""Number of updates up to which batches stay small; with more time the batches grow."""

BATCH_TOKENS = (512, 1024, 2048, 4096)

DROPOUT_BELOW_EPOCHS = ((15, 0.1), (60, 0.2))
"""Largest dropout of a training of fewer epochs than this: a model that reads a text less often memorises less of it,
and learns more in the same time with less dropout."""

FOR_TRAINING = 0.85
"""Fraction of the time that is left for training; the rest is validation."""

CHARACTERS_A_SUBWORD = 3.5


class Text(NamedTuple):
    """Size of a corpus."""

    n_pairs: int
    characters: float  # average length of the longer side

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Count the pairs and characters of a corpus."""
        n_pairs = characters = 0
        for src, tgt in pairs:
            n_pairs += 1
            characters += max(len(src), len(tgt))
        return cls(n_pairs, characters / max(1, n_pairs))

    @property
    def length(self) -> int:
        """Estimated number of subwords of the longer side, eos included."""
        return max(2, round(self.characters / CHARACTERS_A_SUBWORD) + 1)


class Choice(NamedTuple):
    """The chosen settings, the speed by which they were chosen, and both in a sentence."""

    settings: dict[str, Any]
    tokens_per_second: float
    reason: str


def updates_in(minutes: float, tokens_per_second: float, tokens_an_update: int) -> int:
    """Return the estimated number of updates in so many minutes, validation included."""
    return max(1, int(FOR_TRAINING * 60 * minutes * tokens_per_second / tokens_an_update))


def sizes_are_set(settings: Mapping[str, Any]) -> bool:
    """Return True if no setting is left to choose by the speed of this machine."""
    train = settings.get("train")
    return _has_sizes(settings) and isinstance(train, Mapping) and "batch_tokens" in train


def _has_sizes(settings: Mapping[str, Any]) -> bool:
    """Return True if the settings name a size of the model."""
    model = settings.get("model", {})
    return not isinstance(model, Mapping) or bool(model.keys() & {"preset", *PRESETS["tiny"]})


def in_time(
    settings: Mapping[str, Any], overrides: Sequence[str], text: Text, speed: Callable[[Config], float]
) -> Choice:
    """Choose model, subwords, batch, rate and dropout for the ``train.max_minutes`` among ``overrides``.

    It is the largest model that still sees ``TOKENS_A_PARAMETER``. Batches are the largest that still allow ``UPDATES``
    updates. The rate is ``peak_rate``. More minutes never choose a smaller model.

    Args:
        settings: Settings that suit the corpus without a time limit; the chosen model is not larger than theirs.
        overrides: Settings that were given; they are not changed.
        text: The size of the corpus.
        speed: Measures the tokens of one side per second, padding included.

    Raises:
        ConfigError: The overrides do not fit the schema.
    """
    chosen: dict[str, Any] = {}
    rate = seconds = 0.0
    for candidate in _candidates(settings, overrides):
        config = Config.from_mapping(with_overrides(candidate, overrides), "the settings chosen and given")
        seconds = FOR_TRAINING * 60 * (config.train.max_minutes or 0)
        enough = TOKENS_A_PARAMETER * _parameters_of_layers(config)
        if chosen and seconds * rate < enough:  # a larger model is not faster, so it need not be timed
            break
        measured = speed(config)
        if chosen and seconds * measured < enough:
            break
        chosen, rate = candidate, measured
    tokens = seconds * rate
    batch_tokens = max((b for b in BATCH_TOKENS if tokens >= UPDATES * b), default=BATCH_TOKENS[0])
    chosen["train"] = {**chosen["train"], "batch_tokens": batch_tokens}
    epochs = tokens / max(1, text.n_pairs * text.length)
    dropouts = [chosen["model"]["dropout"], *(most for limit, most in DROPOUT_BELOW_EPOCHS if epochs < limit)]
    chosen["model"] = {**chosen["model"], "dropout": min(dropouts)}
    config = Config.from_mapping(with_overrides(chosen, overrides), "the settings chosen and given")
    if not _has_sizes(with_overrides({}, overrides)):
        chosen["train"]["lr"] = peak_rate(config.model.d_model, config.train.batch_tokens * config.train.accumulate)
    return Choice(chosen, rate, _reason(config, rate))


def _candidates(settings: Mapping[str, Any], overrides: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield ``settings`` with models from small to large, up to their preset's width, each with its subwords.

    A size among ``overrides`` leaves one candidate: ``settings`` unchanged.
    """
    if _has_sizes(with_overrides({}, overrides)):
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
            }


def peak_rate(d_model: int, tokens: int) -> float:
    """Return the peak rate of Adam for a width and the tokens of an update."""
    growth = (min(max(tokens, BATCH_TOKENS[1]), BATCH_TOKENS[-1]) / BATCH_TOKENS[1]) ** 0.5
    return float(f"{RATE_TIMES_WIDTH / d_model * (growth if d_model <= RATE_GROWS_UP_TO_WIDTH else 1.0):.3g}")


def _parameters_of_layers(config: Config) -> int:
    return n_parameters(ModelConfig(**config.model.model_dump(), src_vocab_size=1, tgt_vocab_size=1))


def _reason(config: Config, tokens_per_second: float) -> str:
    """Describe the speed, the number of updates and the sizes chosen by them."""
    model, train, minutes = config.model, config.train, config.train.max_minutes or 0
    updates = updates_in(minutes, tokens_per_second, train.batch_tokens * train.accumulate)
    return (
        f"this machine trains about {tokens_per_second:,.0f} tokens/s at width {model.d_model}: {minutes:g} minutes "
        f"are about {updates:,} updates of {train.batch_tokens * train.accumulate:,} tokens; so "
        f"{model.n_encoder_layers} + {model.n_decoder_layers} layers, {config.data.tokenizer.vocab_size:,} subwords, "
        f"dropout {model.dropout:g}"
    )
