"""What ``dragoman train`` does, as a function.

    dragoman.train(src="train.en", tgt="train.de", out="runs/x")

A run folder:

    config.yaml     the resolved configuration, every default written out
    store/          subwords and ids of the corpus: joint.spm (or src.spm, tgt.spm), train/, valid/
    checkpoints/    what --resume goes on from
    bundle/         all that translating, serving and exporting need
    log.jsonl  samples.txt  tensorboard/
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman.bundle import Bundle, facts_of_text, load_bundle, save_bundle
from dragoman.config import Config, ModelConfig, each
from dragoman.data.batching import BatchStream
from dragoman.data.noise import MASK
from dragoman.data.regularisation import Regularisation
from dragoman.data.store import Store
from dragoman.data.tokenizer import Tokenizer
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import ConfigError
from dragoman.evaluation.metrics import signatures
from dragoman.files import refuse_if_locked, write_text
from dragoman.model import build as architectures
from dragoman.model.build import EncoderDecoder
from dragoman.model.weights import load_into
from dragoman.options import takes
from dragoman.progress import Ticker, duration
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.defaults import What, choose_steps, resolve, told_apart
from dragoman.training.distributed import World, joined, launch_name, of_rank_0, on_rank_0, open_group
from dragoman.training.finetune import adapt, parent_of
from dragoman.training.folder import LAUNCH, Ready, claimed, follow, ready_to_resume, refuse_a_run, reopened, restarted
from dragoman.training.log import EARLY_TOKENS, RunLog
from dragoman.training.loop import Outcome, Validation, fit, makes_no_sense
from dragoman.training.options import TrainOptions
from dragoman.training.preparation import check_trainable, load_lexicon, prepare, refuse_other_tags
from dragoman.training.signals import StopRequest
from dragoman.training.speed import tokens_per_second
from dragoman.training.task import task_of
from dragoman.training.validation import Validate, kept_weights, learned_confidence, validator

Build = Callable[[ModelConfig], EncoderDecoder]


class Trained(NamedTuple):
    """What ``train`` leaves: the run folder, how it ended, and how the kept weights do on the validation set."""

    run: Path
    reason: str
    step: int
    seconds: float
    validation: Validation | None
    signal: int | None = None
    rank: int = 0  # of this process; the others than 0 know no validation


@takes(TrainOptions)
def train(
    config: What = None, *, out: Path | str | None = None, options: TrainOptions | None = None,
    build: Build | None = None, **changes: Any,
) -> Trained:  # fmt: skip
    """Train a model from a configuration, or from two text files alone.

    Args:
        config: A ``Config``, the path of a YAML file, or text: ``["train.en", "train.de"]``, the path of a table or a
            translation memory, or several of these in a list. Without a configuration text is needed, here or by
            ``src`` and ``tgt``, and all sizes are chosen.
        out: The run folder; ``runs/NAME`` by default, NAME being what the first file's name begins with.
        options: How; ``changes`` are options by name: ``src``, ``tgt``, ``valid_src`` and ``valid_tgt``, which replace
            those of ``config``, ``resume=True``, ``overrides=["train.max_steps=2000"]`` and others. ``TrainOptions``
            says what each one means.
        build: Makes the model instead: for one that is trained otherwise, but whose weights are used as any other's.

    Returns:
        ``run``, its folder; ``reason`` why it ended, after how many steps (``step``) and ``seconds`` by the clock;
        and ``validation`` of the weights that were kept: loss in nats a target token, BLEU, chrF (None of other
        processes than the first).

    Raises:
        ConfigError, DataError, BundleError: What is wrong and what to do; nothing is half-written.
    """
    options = TrainOptions.of(options, changes)
    ticker = Ticker(options.quiet)
    run = Path(out) if out is not None else Path("runs") / _name(config)
    with (
        _word_at_ctrl_c(run, ticker),
        joined() as world,
        contextlib.ExitStack() as held,  # until all is done, nobody else trains in the folder
    ):
        if world.rank:
            _until_rank_0_is_ready(world)
            return _fit(follow(run), run, True, world, build)
        if options.resume:
            _check_resuming(run, config, out, options, ticker)
        if options.resume or restarted(run, ticker):
            overrides = options.settings if options.resume else ()
            ready = ready_to_resume(run, overrides, options.accept_changed_text, ticker)
            held.enter_context(reopened(run, ready.config))
        else:
            refuse_a_run(run)  # before the text is counted, and steps are timed
            plan = _plan(config, options, ticker)
            held.enter_context(claimed(run))
            ready = _prepared(plan, run, options, ticker, world.size)
        _until_rank_0_is_ready(world)
        return _fit(ready, run, options.quiet, world, build)


@contextlib.contextmanager
def _word_at_ctrl_c(run: Path, ticker: Ticker) -> Iterator[None]:
    """If Ctrl-C ends the body before training or after it, say what is there."""
    try:
        yield
    except KeyboardInterrupt:
        if list_checkpoints(run / "checkpoints"):
            ticker.say(f"stopped; the last checkpoint is whole. To resume: {_again(run)} --resume")
        else:
            ticker.say("stopped before training began: nothing is kept")
        raise


def _again(run: Path, program: str = "dragoman") -> str:
    return f"{program} train --out {shlex.quote(str(run))}"


def _until_rank_0_is_ready(world: World) -> None:
    """All ranks meet here: rank 0 when the run can be trained; where it failed, the others hear of it."""
    on_rank_0(world, lambda: None)


def _check_resuming(run: Path, config: What, out: Path | str | None, options: TrainOptions, ticker: Ticker) -> None:
    """See that a run is named, and say what of the arguments of ``train`` is not looked at.

    Raises:
        ConfigError: None is named, or another process trains in it.
    """
    if out is None and config is None:
        raise ConfigError("to resume, name the run: --out runs/NAME --resume")
    if not _is_as_it_was(run, config, options):
        ticker.say(f"resuming by {run}/config.yaml and --set alone; other files that were named are not read again")
    refuse_if_locked(run)


class _Plan(NamedTuple):
    """What a new run is to be, before anything is written."""

    config: Config
    chosen: bool  # whether the sizes were left to us
    tokens_per_second: float | None  # at which they were chosen
    parent: Bundle | None  # the run to start from


def _is_as_it_was(run: Path, what: What, options: TrainOptions) -> bool:
    """Whether nothing was named beside the run, or only its own text: people press the up arrow."""
    if options.from_run is not None:
        return False
    try:
        given, data = told_apart(what, options), Config.from_yaml(run / "config.yaml").data
    except ConfigError:  # text that is no longer there, a run that never was
        return False
    valid = () if data.valid is None else each(data.valid)
    return given.config is None and given.train in ((), each(data.train)) and given.valid in ((), valid)


def _name(what: What) -> str:
    """The default name of a run."""
    first = what[0] if isinstance(what, Sequence) and not isinstance(what, str) and what else what
    return Path(first).name.split(".")[0] or "train" if isinstance(first, str | Path) else "train"


def _plan(config: What, options: TrainOptions, ticker: Ticker) -> _Plan:
    """Resolve the settings of a new run and refuse what cannot be trained."""
    parent = None if options.from_run is None else load_bundle(options.from_run)
    resolved, chosen, speed = resolve(config, options, ticker, parent and parent.config)
    if parent is not None and not options.new_subwords:
        refuse_other_tags(resolved, parent.src_tokenizer, options.from_run)
    device = resolve_device(resolved.train.device)
    settings = {"device": device.type, "precision": resolve_precision(resolved.train.precision, device)}
    resolved = resolved.model_copy(update={"train": resolved.train.model_copy(update=settings)})
    check_trainable(resolved)
    if task_of(resolved).translates:
        langs = ", ".join(" -> ".join(lang or "unknown" for lang in pair) for pair in resolved.data.pairs)
        unknown = "; say it with data.src_lang and data.tgt_lang" if "unknown" in langs else ""
        ticker.say(f"languages: {langs}{unknown}")
    if resolved.train.ema and resolved.train.average > 1:
        ticker.say("both train.ema and train.average are set: the bundle will hold the average of checkpoints")
    return _Plan(resolved, chosen, speed, parent)


def _prepared(plan: _Plan, run: Path, options: TrainOptions, ticker: Ticker, n_ranks: int) -> Ready:
    """Fill the folder of a new run: subwords, stores, the weights to start with, the configuration."""
    config, parent = plan.config, plan.parent
    if launch := launch_name():
        write_text(run / LAUNCH, launch)
    kept = None if parent is None or options.new_subwords else (parent.src_tokenizer, parent.tgt_tokenizer)
    config, tokenizers = prepare(config, run, ticker, kept)
    if plan.chosen:
        store = Store.open(run / "store/train")
        config = choose_steps(config, store, options.settings, parent is not None, n_ranks, plan.tokens_per_second)
        _say_if_it_takes_long(config, store, ticker)
    start = None
    if parent is not None and options.from_run is not None:
        start, said = adapt(parent, Path(options.from_run).resolve().name, tokenizers, run)
        ticker.say(f"starting from {options.from_run}; {said}")
    write_text(run / "config.yaml", config.to_yaml())
    return Ready(config, tokenizers, start=start)


def _say_if_it_takes_long(config: Config, store: Store, ticker: Ticker) -> None:
    """Where nothing limits the time and it is an hour or more: how long the steps take on this machine."""
    train = config.train
    if train.max_minutes is not None:
        return
    lengths = np.maximum(store.src_lengths(), store.tgt_lengths())
    speed = tokens_per_second(config, int(lengths.mean()) + 1)
    hours = train.max_steps * train.accumulate * train.batch_tokens / speed / 3600
    if hours >= 1:
        ticker.say(
            f"{train.max_steps:,} steps take about {hours:,.0f} hours on this machine; --minutes N chooses what fits "
            "into N minutes"
        )


def _fit(ready: Ready, run: Path, quiet: bool, world: World, build: Build | None) -> Trained:
    """Build the model, fit it, and write the bundle."""
    config, tokenizers, start = ready.config, ready.tokenizers, ready.start
    open_group(world, resolve_device(config.train.device))
    resume = bool(of_rank_0(world, ready.resume)[0])
    torch.manual_seed(config.train.seed)
    model_config = ModelConfig(
        **config.model.model_dump(), src_vocab_size=tokenizers[0].vocab_size, tgt_vocab_size=tokenizers[1].vocab_size
    )
    model = (build or architectures.build)(model_config).to(config.train.device)
    if start is not None:
        load_into(model, start)
    train_store, valid_store = Store.open(run / "store/train"), Store.open(run / "store/valid")
    validate = validator(config, valid_store, tokenizers[1], Ticker(quiet))
    regularisation = Regularisation(
        sampling=config.data.tokenizer.sampling, noise=config.data.noise, lexicon=load_lexicon(run),
        tokenizers=tokenizers, max_tokens=config.data.max_tokens,
    )  # fmt: skip
    with (
        BatchStream(
            train_store,
            config.train.batch_tokens,
            config.train.seed,
            regularisation=regularisation,
            rank=world.rank,
            world_size=world.size,
        ) as batches,  # fmt: skip
        RunLog(None if world.rank else run, config.train.tensorboard, quiet) as log,
    ):
        _say_what_begins(config, model, train_store, world, log)
        if not resume:
            on_rank_0(world, lambda: None if start is None else _note_parent(validate(model.eval()), log))
        stop = StopRequest()
        outcome = fit(
            model, model_config, batches, config.train, run, log, lambda model: validate(model, lambda: stop.is_asked),
            resume, world, stop,
        )  # fmt: skip
        found = None
        if outcome.signal is not None:
            _say_how_to_resume(config, run, outcome.state.step, world, log)
        else:
            found = on_rank_0(world, lambda: _keep(config, run, outcome, model, tokenizers, validate, log))
    state = outcome.state
    return Trained(run, outcome.reason, state.step, state.seconds, found, outcome.signal, world.rank)


def _say_what_begins(config: Config, model: EncoderDecoder, store: Store, world: World, log: RunLog) -> None:
    """The size of the model and of the corpus, and on what it is trained."""
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    where = f"{config.train.precision} on {config.train.device}"
    if world.size > 1:
        n_batches = world.size * config.train.accumulate
        where += f", {world.size} processes, {n_batches} batches of {config.train.batch_tokens:,} tokens an update"
    drawn = f", {store.n_drawn:,.0f} drawn an epoch" if store.is_weighted else ""
    log.say(f"{n_parameters:,} parameters, {len(store):,} pairs{drawn}, {where}")
    if (kind := config.model.architecture) != "transformer":
        log.say(f"architecture {kind}: trained as it is written; the fast engine is for Transformers")


def _say_how_to_resume(config: Config, run: Path, step: int, world: World, log: RunLog) -> None:
    """A signal stopped training: the command that goes on, and the one that ends it here."""
    program = "dragoman" if world.size == 1 else "torchrun ... -m dragoman"
    again = _again(run, program)
    log.say(f"stopped at step {step:,}, saved. To resume: {again} --resume")
    log.say(f"What it has learned so far can be tried:  dragoman translate {shlex.quote(str(run))} -i")
    if config.train.schedule != "cosine" or step > config.train.warmup_steps:
        log.say(f"Or end it here: {again} --resume --set train.max_steps={step}")


def _say_what_sense_takes(found: Validation, outcome: Outcome, log: RunLog) -> None:
    """Training is over and the translations are nonsense: say what is missing, by a figure."""
    state = outcome.state
    if makes_no_sense(found) and 0 < state.tokens < EARLY_TOKENS:
        log.say(
            f"The samples look like nonsense: {state.tokens:,} tokens were learned from, and sense takes about "
            f"{EARLY_TOKENS:,}; here that is {duration(EARLY_TOKENS / state.tokens * state.seconds)} of training."
        )
    elif makes_no_sense(found):
        log.say(
            f"The samples look like nonsense after {state.tokens:,} tokens: more text is needed, or other text; "
            "`dragoman doctor` says what is wrong with it."
        )


def _note_parent(found: Validation, log: RunLog) -> None:
    """Say how the weights do that fine-tuning starts from."""
    log.event("parent", 0, loss=found.loss, **found.scores)
    log.say(f"before fine-tuning: {found}")


def _keep(
    config: Config, run: Path, outcome: Outcome, model: EncoderDecoder, tokenizers: tuple[Tokenizer, Tokenizer],
    validate: Validate, log: RunLog,
) -> Validation:  # fmt: skip
    """Choose the weights, validate them and write the bundle."""
    step = outcome.state.step
    kept, weights = kept_weights(config, run, outcome, model)
    load_into(model, weights)
    found = validate(model.eval())
    scores = {"loss": found.loss, **found.scores}
    text = facts_of_text(Store.open(run / "store/train"))
    facts = replace(
        text, weights=kept, step=step, validation=scores,
        signatures=signatures(config.data.tgt_lang) if found.f1 is None else {},
        masks=MASK if config.data.noise.inserts > 0 else None,
        confidence=learned_confidence(Bundle(config, model, *tokenizers, text.as_manifest()), run, log),
        parent=parent_of(run),
    )  # fmt: skip
    save_bundle(run / "bundle", config, model.config, weights, *tokenizers, facts.as_manifest())
    log.event("bundle", step, weights=kept, **scores)
    _say_what_sense_takes(found, outcome, log)
    log.say(f"{run}/bundle: {kept}; validation {found}; trained for {duration(outcome.state.seconds)}")
    return found
