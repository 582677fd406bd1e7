"""Validation: measuring the weights during training, choosing the final ones, and learning a confidence."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.bundle import Bundle
from dragoman.config import Config, LengthPenalty
from dragoman.data.batching import Batch, all_batches
from dragoman.data.order import Indices
from dragoman.data.store import Store
from dragoman.data.tokenizer import PAD_ID, Tokenizer
from dragoman.decoding.batched_search import search_all
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.request import Progress, SearchSettings, Segment
from dragoman.errors import BundleError
from dragoman.evaluation.calibration import guide, learn_confidence
from dragoman.evaluation.metrics import bleu
from dragoman.files import check_sealed, standing
from dragoman.model.weights import read_weights, untied
from dragoman.progress import Ticker
from dragoman.training.averaging import average_checkpoints
from dragoman.training.checkpoint import whole_checkpoints
from dragoman.training.log import LEAST_BLEU, RunLog
from dragoman.training.loop import Outcome, Validation
from dragoman.training.loss import label_smoothed_loss
from dragoman.training.memory import VALIDATION_TOKENS
from dragoman.training.preparation import repeated_share
from dragoman.training.signals import Stopped
from dragoman.training.task import task_of
from dragoman.translation.confidence import MIN_SENTENCES
from dragoman.translation.segments import one_line
from dragoman.translation.translator import Translator

LENGTH_PENALTIES = (LengthPenalty(0.6), LengthPenalty(1.0), LengthPenalty(1.0, "power"))
"""Length penalties to choose from: the paper's, a stronger one, and the mean log-probability of a token.

With ((5 + n) / 6) ** 1.8 and above, small models repeated themselves (docs/decisions/0075).
"""
MOST_JUDGED, LEAST_GAIN = 500, 0.1
"""Most validation pairs that length penalties are compared on, and least gain."""

MOST_REPEATED = 0.1
"""Share of the validation set in the training text above which a confidence learned from it is not praised."""

logger = logging.getLogger(__name__)


class Validate(Protocol):
    """Measures a model; it calls ``must_stop`` again and again, and raises ``Stopped`` when that is True."""

    def __call__(self, model: Any, must_stop: Callable[[], bool] = lambda: False) -> Validation: ...


def validator(
    config: Config, store: Store, tgt_tokenizer: Tokenizer, ticker: Ticker, pairs: Indices | None = None
) -> Validate:
    """Return a function that measures a model on a store: unsmoothed loss, and BLEU and chrF (or F1) of greedy search.

    If there are several target languages, each is measured separately, and the scores are means over them. ``pairs``
    are the numbers of the pairs to measure on; None: all.
    """
    numbers = np.arange(len(store)) if pairs is None else pairs
    sources, references = store.texts(numbers)
    of_all = target_languages(store)
    langs = [of_all[i] for i in numbers]
    by_language = places_of(langs)
    shown = [i for row in zip_longest(*by_language.values()) for i in row if i is not None][:3]
    src_ids = [store.pair(int(i))[0].tolist() for i in numbers]
    batches = validation_batches(store, config.train.batch_tokens, pairs)
    greedy = SearchSettings(decode=config.decode).with_decode(beam_size=1)

    def scores_of(lang: str | None, rows: Sequence[int], hyps: Sequence[str]) -> dict[str, float]:
        src, ref, hyp = ([side[i] for i in rows] for side in (sources, references, hyps))
        return task_of(config).measure(src, ref, hyp, lang or config.data.tgt_lang)

    @torch.inference_mode()
    def measure(model: Any, must_stop: Callable[[], bool], progress: Progress) -> Validation:
        device = next(model.parameters()).device
        loss, tokens = 0.0, 0
        for batch in (batch.to(device) for batch in batches):
            if must_stop():
                raise Stopped
            loss += label_smoothed_loss(model(batch.src, batch.tgt_in), batch.tgt_out, PAD_ID, 0.0)[1].item()
            tokens += batch.n_tgt_tokens
        stop = Cancellation(must_stop)
        segments = [Segment(ids=ids, cancellation=stop) for ids in src_ids]
        hypotheses = search_all(model, segments, greedy, device, progress=progress).complete()
        if must_stop():
            raise Stopped
        hyps = [one_line(text) for text in tgt_tokenizer.decode([own[0].ids for own in hypotheses])]
        samples = [(sources[i], references[i], hyps[i]) for i in shown]
        scores = mean_scores([scores_of(lang, rows, hyps) for lang, rows in by_language.items()])
        return Validation(loss=loss / tokens, samples=samples, **scores)

    def validate(model: Any, must_stop: Callable[[], bool] = lambda: False) -> Validation:
        with ticker.task("validating") as progress:
            return measure(model, must_stop, progress)

    return validate


def validation_references(config: Config, run: Path) -> dict[str | None, list[str]]:
    """Return the references of the validation set of a run by the language as which they are scored."""
    store = Store.open(run / "store/valid")
    _, references = store.texts(range(len(store)))
    return {
        lang or config.data.tgt_lang: [references[i] for i in rows]
        for lang, rows in places_of(target_languages(store)).items()
    }


def validation_batches(store: Store, batch_tokens: int, pairs: Indices | None = None) -> list[Batch]:
    """Return the batches of a store, of at most ``batch_tokens`` tokens on a side, or one pair that is longer.

    Validation holds all logits of a batch, so its batches may be smaller than those of training.
    """
    longest = int(max(store.src_lengths().max(), store.tgt_lengths().max())) + 1
    return list(all_batches(store, max(longest, min(batch_tokens, VALIDATION_TOKENS)), pairs))


def target_languages(store: Store) -> list[str | None]:
    """Return the target language of each pair."""
    return [part.tgt_lang for part in store.parts for _ in range(part.pairs)]


def places_of(langs: Sequence[str | None]) -> dict[str | None, list[int]]:
    """Return where each language stands in a list."""
    return {lang: [i for i, other in enumerate(langs) if other == lang] for lang in dict.fromkeys(langs)}


def mean_scores(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each score."""
    return {name: sum(by_name[name] for by_name in scores) / len(scores) for name in scores[0]}


def final_weights(config: Config, run: Path, outcome: Outcome, model: nn.Module) -> tuple[str, Mapping[str, Tensor]]:
    """Choose the weights of the bundle (average if configured, else EMA, else the best), with a description of them."""
    if config.train.average > 1:
        checkpoints = whole_checkpoints(run / "checkpoints", outcome.state.step)[-config.train.average :]
        if len(checkpoints) > 1:
            return f"average of the last {len(checkpoints)} checkpoints", average_checkpoints(checkpoints)
    if outcome.ema is not None:
        return f"exponential moving average, decay {config.train.ema}", outcome.ema
    best, step = standing(run / "checkpoints/best"), outcome.state.best_step
    if step:
        try:
            if check_sealed(best, "checkpoint").get("step") != step:
                raise BundleError(f"{best}: not the weights of step {step}, which were the best")
            metric = task_of(config).metric
            by = metric if outcome.state.best_bleu else f"validation loss, {metric} being below {LEAST_BLEU:g}"
            return f"best by {by}, step {step}", read_weights(best / "model.safetensors", untied(model))
        except BundleError as error:
            logger.warning("%s; taking the last weights", error)
    return f"last, step {outcome.state.step}", untied(model)


def with_length_penalty(bundle: Bundle, run: Path, validation: Validation, log: RunLog) -> Config:
    """Return the configuration with the length penalty that suits the validation set best, if it is to be chosen.

    Each of ``LENGTH_PENALTIES``, and the configured one, searches up to ``MOST_JUDGED`` pairs with the configured beam.
    Another one is taken if it is better by ``LEAST_GAIN``; one of a model that cannot translate yet would be chance.
    """
    config = bundle.config
    if not (config.train.choose_length_penalty and validation.bleu >= LEAST_BLEU):
        return config
    store = Store.open(run / "store/valid")
    rows = range(0, len(store), max(1, math.ceil(len(store) / MOST_JUDGED)))
    langs, references = target_languages(store)[rows.start :: rows.step], store.texts(rows)[1]
    by_language = places_of(langs)
    segments = [Segment(ids=store.pair(i)[0].tolist()) for i in rows]
    plan = Translator(bundle).plan(guard=False, to=langs[0] if len(bundle.src_tokenizer.targets) > 1 else None)

    def quality(penalty: LengthPenalty) -> float:
        settings = replace(plan.search, decode=_penalised(config, penalty).decode)
        best = [own[0].ids for own in plan.engine.search(segments, settings).complete()]
        hyps = list(map(one_line, bundle.tgt_tokenizer.decode(best)))
        return mean_scores([
            {"bleu": bleu([hyps[i] for i in own], [references[i] for i in own], lang or config.data.tgt_lang).value}
            for lang, own in by_language.items()
        ])["bleu"]  # fmt: skip

    before = config.decode.penalty
    qualities = {penalty: quality(penalty) for penalty in dict.fromkeys((before, *LENGTH_PENALTIES))}
    best = max(qualities, key=qualities.__getitem__)
    chosen = best if qualities[best] >= qualities[before] + LEAST_GAIN else before
    log.say(
        f"length penalty {chosen.formula}: BLEU {qualities[chosen]:.1f} of {len(segments):,} validation pairs, "
        f"with {before.formula}, as configured, {qualities[before]:.1f}"
    )
    return _penalised(config, chosen)


def _penalised(config: Config, penalty: LengthPenalty) -> Config:
    """Return a configuration with another length penalty."""
    decode = replace(config.decode, length_penalty=penalty.alpha, length_penalty_form=penalty.form)
    return config.model_copy(update={"decode": decode})


def learned_confidence(bundle: Bundle, run: Path, log: RunLog) -> dict[str, Any] | None:
    """Return the numbers of a confidence, learned from the validation set; None where that is too small.

    A parser has no confidence, as it is one in translations.
    """
    if not task_of(bundle.config).translates:
        return None
    store = Store.open(run / "store/valid")
    if len(store) < MIN_SENTENCES:
        log.say(f"no confidence is learned: that needs {MIN_SENTENCES} validation pairs, and there are {len(store)}")
        return None
    to = target_languages(store) if len(bundle.src_tokenizer.targets) > 1 else None
    learned = learn_confidence(Translator(bundle), *store.texts(range(len(store))), to=to)
    if repeated_share(run) > MOST_REPEATED:
        log.say("confidence learned from pairs of the training text: it promises too much")
        return learned.model_dump(mode="json")
    log.say(
        f"confidence learned: {guide(learned)} guide to quality (rank correlation {learned.rank_correlation:.2f} "
        f"with the chrF of {learned.sentences:,} validation sentences)"
    )
    return learned.model_dump(mode="json")
