"""Training as a function, as ``dragoman train`` runs it.

    dragoman.train("train.en", "train.de", out="runs/x")    # or lists of texts, or columns of a table

A run folder:

    config.yaml     the resolved configuration, every default written out
    store/          subwords and ids of the corpus: joint.spm (or src.spm, tgt.spm), train/, valid/
    checkpoints/    from which --resume continues
    bundle/         everything that translating, serving and exporting need
    log.jsonl  samples.txt  tensorboard/
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.arguments import checked
from dragoman.bundle import (
    Bundle,
    Facts,
    Fast,
    Tables,
    facts_of_text,
    find_bundle,
    is_unfinished,
    load_bundle,
    load_tokenizers,
    save_bundle,
)
from dragoman.config import MAX_BYTES, Config, ModelConfig, each
from dragoman.data import shortlist as shortlists
from dragoman.data.batching import BatchStream
from dragoman.data.noise import MASK
from dragoman.data.regularisation import Regularisation
from dragoman.data.store import Store
from dragoman.data.texts import read_one
from dragoman.data.tokenizer import Tokenizer
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import BundleError, ConfigError, UnreadableError, as_command
from dragoman.evaluation.metrics import signatures
from dragoman.files import as_path, pinned, read_manifest, write_text
from dragoman.locks import refuse_if_locked
from dragoman.model import build as architectures
from dragoman.model.build import EncoderDecoder
from dragoman.model.weights import load_into, untied
from dragoman.options import takes
from dragoman.progress import Ticker, duration
from dragoman.ready import pinned_run
from dragoman.training.advice import MOST_PASSES, divergence, longer, lower_rate_of, retrain
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.defaults import (
    ConfigOrText,
    choose_steps,
    doubts,
    resolve,
    split_inputs,
    steps_an_epoch,
    with_pinned_paths,
)
from dragoman.training.distributed import World, broadcast_from_rank_0, joined, open_group, run_on_rank_0
from dragoman.training.finetune import PARENT, PARENT_WORDS, PATH, adapt, parent_of, words_seen
from dragoman.training.flops import training_flops
from dragoman.training.folder import (
    PreparedRun,
    check_same_folder,
    claimed,
    forget_training,
    has_only_begun,
    is_restart,
    mark_launch,
    read_prepared,
    ready_to_resume,
    refuse_a_run,
    reopened,
)
from dragoman.training.given_text import GivenText
from dragoman.training.log import EARLY_TOKENS, RunLog
from dragoman.training.loop import Job, Outcome, Validation, fit, is_nonsense
from dragoman.training.options import TrainOptions
from dragoman.training.preparation import (
    check_readable,
    check_trainable,
    load_lexicon,
    prepare,
    prepared,
    refuse_other_tags,
)
from dragoman.training.record import read_run
from dragoman.training.signals import StopRequest
from dragoman.training.speed import tokens_per_second
from dragoman.training.task import task_of
from dragoman.training.threads import threads_of_training
from dragoman.training.validation import (
    Validate,
    final_weights,
    learned_confidence,
    validation_references,
    validator,
    with_length_penalty,
)

Build = Callable[[ModelConfig], EncoderDecoder]

ROOM = 1024
"""Bytes that a configuration may grow by, as training chooses settings: its steps and the size of its vocabulary."""


class Trained(NamedTuple):
    """Result of ``train``: the run folder, why training ended, and the validation of the final weights."""

    run: Path
    reason: str
    step: int
    seconds: float
    validation: Validation | None
    signal: int | None = None
    rank: int = 0  # rank of this process; ranks other than 0 have no validation
    diverged: str | None = None  # how the training diverged, which ``train`` has reported; None: it did not


@takes(TrainOptions)
def train(
    config: Any = None, tgt: Any = None, *, out: Path | str | None = None, build: Build | None = None, **changes: Any
) -> Trained:  # fmt: skip
    """Train a model from two texts, source and target, or from a configuration.

    Args:
        config: The source side if ``tgt`` is given: a text file, or a list of texts, such as a column of a table. Else
            a ``Config``, the path of a YAML file, or both sides in one: ``["train.en", "train.de"]``, a list of pairs
            (source, target), a table in memory, the path of a table or of a translation memory, or a list of several
            of these paths. Without a configuration all sizes are chosen from the text.
        tgt: The target side: a text file, or a list of texts, line by line.
        out: The run folder; by default ``runs/NAME``, where NAME is the beginning of the first file's name.
        build: Makes the model. The default builds ``config.model``, which the weights must fit in any case.
        changes: Options by name: ``src``, ``tgt``, ``valid_src`` and ``valid_tgt``, files or lists of texts, which
            replace those of ``config``; ``resume=True``, ``overrides=["train.max_steps=2000"]`` and others; or all at
            once, ``options=TrainOptions(...)``.

    Text in memory is written into the folder ``text`` of the run, so that the run can be resumed.

    Returns:
        The folder (``run``), why training ended (``reason``), after how many steps (``step``) and ``seconds``. Also the
        ``validation`` of the final weights: loss in nats per target token, BLEU, chrF (None on ranks other than 0); and
        ``diverged``, how the training diverged, if it did: its bundle is of no use then.

    Raises:
        ConfigError, DataError, BundleError: The input cannot be used; the message says what to do, and no incomplete
            file is left.
    """
    options: TrainOptions | None = changes.pop("options", None)
    if isinstance(options, TrainOptions) and options.columns is not None:  # a table in memory takes them itself
        changes.setdefault("columns", options.columns)
        options = replace(options, columns=None)
    if out is None and config is None and changes.get("resume", options is not None and options.resume):
        raise ConfigError("to resume, name the run: --out runs/NAME --resume")
    first = config if tgt is None or isinstance(config, str | Path) else None  # else it is text
    config, texts = GivenText.of(config, tgt, changes, options, None if out is None else Path(out))
    named = _checked(first if tgt is not None else config)
    run = as_path(out) if out is not None else Path("runs") / _default_name(named or _first_side(options, changes))
    place = pinned(run)
    options = TrainOptions.of(options, changes | texts.paths(place))
    if options.from_run is not None:
        options = replace(options, from_run=pinned_run(options.from_run))
    return _train(config, place, options, texts, build)._replace(run=run)


@checked
def _train(
    config: ConfigOrText, run: Path, options: TrainOptions, texts: GivenText, build: Build | None
) -> Trained:  # fmt: skip
    """Train in the folder ``run``; text that was given in memory is written there."""
    ticker = Ticker(options.quiet)
    with (
        _usual_modes(),
        _report_interrupt(run, ticker),
        joined() as world,
        contextlib.ExitStack() as held,  # keeps the folder locked until the end
    ):
        if world.rank:
            _wait_for_rank_0(world)
            return _fit(read_prepared(run), run, True, world, build)
        if texts.columns:
            ticker.say("columns of the table: source {!r}, target {!r}".format(*texts.columns))
        if options.resume:
            _say_what_is_ignored(run, config, options, ticker)
        if options.resume or is_restart(run, ticker):
            overrides = options.settings if options.resume else ()
            held.enter_context(texts.written(run))
            ready = ready_to_resume(run, overrides, options.accept_changed_text, ticker)
            held.enter_context(reopened(run, ready.config))
            if not options.resume:
                mark_launch(run)
        else:
            refuse_a_run(run)  # before text is counted and steps are timed, which may take long
            if texts.sides:  # two trainings would write over each other's text
                held.enter_context(claimed(run))
            held.enter_context(texts.written(run))
            plan = _with_prepared(_plan(config, options, ticker), run, options, ticker)
            if not texts.sides:  # a training that is refused has touched nothing
                held.enter_context(claimed(run))
            ready = _prepare_run(plan, run, options, ticker, world.size)
        _wait_for_rank_0(world)
        return _fit(ready, run, options.quiet, world, build)


@contextlib.contextmanager
def _usual_modes() -> Iterator[None]:
    """Compute with gradients and without autocast, whatever modes of torch the calling program is in."""
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for device in filter(torch.is_autocast_enabled, ("cpu", "cuda")):
            modes.enter_context(torch.autocast(device, enabled=False))
        yield


@contextlib.contextmanager
def _report_interrupt(run: Path, ticker: Ticker) -> Iterator[None]:
    """If Ctrl-C ends the body outside of the training loop, print what is left in the folder."""
    try:
        yield
    except KeyboardInterrupt:
        if list_checkpoints(run / "checkpoints"):
            ticker.say(f"stopped; the last checkpoint is whole. To resume: {_command(run)} --resume")
        elif has_only_begun(run):
            ticker.say(
                "stopped before the first checkpoint; the same command begins the training again, with the text "
                f"prepared in {run}"
            )
        else:
            ticker.say("stopped before training began: nothing was saved")
        raise


def _command(run: Path, program: str = "dragoman") -> str:
    """Return ``PROGRAM train --out RUN``, the beginning of a command that resumes the run."""
    return f"{program} {as_command('train', '--out', run)}"


def _wait_for_rank_0(world: World) -> None:
    """Let all ranks wait until rank 0 has prepared the run; if that failed, they raise its failure message."""
    run_on_rank_0(world, lambda: None)


def _say_what_is_ignored(run: Path, config: ConfigOrText, options: TrainOptions, ticker: Ticker) -> None:
    """Print which arguments of ``train`` are ignored when a run is resumed.

    Raises:
        ConfigError: Another process trains in the run.
    """
    if not _names_same_text(run, config, options):
        ticker.say(f"resuming with {run}/config.yaml and overrides alone; other files that were named are ignored")
    refuse_if_locked(run)


class TrainingPlan(NamedTuple):
    """Settings of a new run, before anything is written."""

    config: Config
    chosen: bool  # True if the sizes were chosen, not configured
    tokens_per_second: float | None  # speed by which they were chosen; None: they do not depend on it
    parent: Bundle | None  # the run to fine-tune
    times_precision: bool = False  # True if a product was timed to choose the precision
    earlier: tuple[Config, tuple[Tokenizer, Tokenizer]] | None = None  # what a call that died has prepared


def _names_same_text(run: Path, what: ConfigOrText, options: TrainOptions) -> bool:
    """Return True if the arguments match the run being resumed: they name no text, or the text it was trained on."""
    if options.from_run is not None:
        return False
    try:
        inputs, data = split_inputs(what, options), Config.from_yaml(run / "config.yaml").data
    except ConfigError:  # the text or the run does not exist
        return False
    train = with_pinned_paths(each(data.train))
    valid = () if data.valid is None else with_pinned_paths(each(data.valid))
    return inputs.config is None and inputs.train in ((), train) and inputs.valid in ((), valid)


@checked
def _checked(config: ConfigOrText) -> ConfigOrText:
    """Return a configuration or paths of text; refuse anything else."""
    return config


def _first_side(options: TrainOptions | None, changes: Mapping[str, Any]) -> ConfigOrText:
    """Return the file that ``src`` names, if it is one and not text in memory."""
    src = changes.get("src", None if options is None else options.src)
    return src if isinstance(src, str | Path) else None


def _default_name(what: ConfigOrText) -> str:
    """Return the default name of a run."""
    first = what[0] if isinstance(what, Sequence) and not isinstance(what, str) and what else what
    return Path(first).name.split(".")[0] or "train" if isinstance(first, str | Path) else "train"


def _plan(config: ConfigOrText, options: TrainOptions, ticker: Ticker) -> TrainingPlan:
    """Resolve the settings of a new run, and refuse those that cannot be trained."""
    parent = None if options.from_run is None else load_bundle(options.from_run)
    resolved, chosen, speed = resolve(config, options, ticker, parent and parent.config)
    if parent is not None and not options.new_subwords:
        refuse_other_tags(resolved, parent.src_tokenizer, options.from_run)
    device, times_precision = resolve_device(resolved.train.device), resolved.train.precision == "auto"
    settings = {"device": device.type, "precision": resolve_precision(resolved.train.precision, device)}
    resolved = resolved.model_copy(update={"train": resolved.train.model_copy(update=settings)})
    check_trainable(resolved)
    if len(resolved.to_yaml().encode()) > MAX_BYTES - ROOM:
        raise ConfigError(
            f"{len(each(resolved.data.train)):,} texts make a configuration of more than {MAX_BYTES:,} bytes, which "
            "could not be read again: join some of the files"
        )
    if task_of(resolved).translates:
        langs = ", ".join(" -> ".join(lang or "unknown" for lang in pair) for pair in resolved.data.pairs)
        unknown = "; set data.src_lang and data.tgt_lang, such as en and de" if "unknown" in langs else ""
        ticker.say(f"languages: {langs}{unknown}")
        check_readable(resolved.data)
        for warning in doubts(resolved.data, read_one):
            ticker.say(f"warning: {warning}")
    if resolved.train.ema and resolved.train.average > 1:
        ticker.say("both train.ema and train.average are set: the bundle will hold the average of checkpoints")
    return TrainingPlan(resolved, chosen, speed, parent, times_precision)


def _subwords_of_parent(plan: TrainingPlan, options: TrainOptions) -> tuple[Tokenizer, Tokenizer] | None:
    """Return the subwords to use instead of learning any."""
    return (
        None if plan.parent is None or options.new_subwords else (plan.parent.src_tokenizer, plan.parent.tgt_tokenizer)
    )


def _with_prepared(plan: TrainingPlan, run: Path, options: TrainOptions, ticker: Ticker) -> TrainingPlan:
    """Add to a plan what a call that died has prepared; refuse a folder that it has begun with other text."""
    earlier = prepared(plan.config, run, ticker, _subwords_of_parent(plan, options))
    if earlier is None and has_only_begun(run):
        raise ConfigError(
            f"{run} holds the beginning of a run with other text or other settings of data, or of another version of "
            "dragoman, without a checkpoint (--resume goes on with those): delete it, or choose another --out"
        )
    if earlier is not None and plan.times_precision:  # timed once more beside other work it may be another
        config, tokenizers = earlier
        with contextlib.suppress(ConfigError):  # no configuration yet
            begun = Config.from_yaml(run / "config.yaml").train
            if begun.device == config.train.device:
                train = config.train.model_copy(update={"precision": begun.precision})
                earlier = config.model_copy(update={"train": train}), tokenizers
    return plan._replace(earlier=earlier)


def _prepare_run(plan: TrainingPlan, run: Path, options: TrainOptions, ticker: Ticker, n_ranks: int) -> PreparedRun:
    """Write the folder of a new run: subwords, stores, the configuration, and the weights to start from."""
    config, parent = plan.config, plan.parent
    config, tokenizers = plan.earlier or prepare(config, run, ticker, _subwords_of_parent(plan, options))
    mark_launch(run)
    if plan.chosen:
        store = Store.open(run / "store/train")
        config = choose_steps(
            config, store, options.settings, parent is not None, n_ranks, plan.tokens_per_second,
            _regularisation(config, tokenizers, run),
        )  # fmt: skip
    report_long_training(plan, config, run, ticker, n_ranks)
    for name in (PARENT, PARENT_WORDS):  # of an attempt that died before its first checkpoint
        (run / name).unlink(missing_ok=True)
    start = None
    if parent is not None and options.from_run is not None:
        start, description = adapt(parent, options.from_run, tokenizers, run)
        ticker.say(f"starting from {options.from_run}; {description}")
    write_text(run / "config.yaml", config.to_yaml())
    return PreparedRun(config, tokenizers, start=start)


def report_long_training(plan: TrainingPlan, config: Config, run: Path, ticker: Ticker, n_ranks: int = 1) -> None:
    """Print how long the steps will take on this machine, if that is an hour or more and no limit of time is set."""
    train, store = config.train, Store.open(run / "store/train")
    if train.max_minutes is not None or store.n_drawn < 1:  # an epoch without a pair is refused later
        return

    @functools.cache
    def in_an_epoch() -> float:
        regularisation = _regularisation(config, load_tokenizers(run / "store"), run)
        return steps_an_epoch(config, store, n_ranks, regularisation)

    steps = train.max_steps
    if train.max_epochs is not None:
        steps = min(steps, math.ceil(train.max_epochs * in_an_epoch()))
    length = int(np.maximum(store.src_lengths(), store.tgt_lengths())[store.drawn()].mean()) + 1
    tokens = steps * train.accumulate * train.batch_tokens  # of each process
    size = config.data.tokenizer.vocab_size
    sizes = ModelConfig(**config.model.model_dump(), src_vocab_size=size, tgt_vocab_size=size)
    if tokens / length * training_flops(sizes, 1, length, length) < FLOPS_AN_HOUR[train.device]:
        return
    with ticker.task("timing a few steps"):
        hours = tokens / tokens_per_second(config, length) / 3600
    if hours < 1:
        return
    fits = "--minutes N ends it after N minutes"
    if plan.chosen:
        fits = "--minutes N chooses what fits into N minutes"
    elif (passes := steps / in_an_epoch()) > MOST_PASSES:
        fits = (
            f"they read the text {passes:,.0f} times. Without the configuration, sizes and steps are chosen to suit "
            "the text, with --minutes N those that fit into N minutes"
        )
    about = f"{hours:,.0f} hour{'s' * (round(hours) != 1)}"
    ticker.say(f"{steps:,} steps take about {about} on this machine; {fits}")


FLOPS_AN_HOUR = {"cpu": 3e13, "cuda": 1e17}
"""Floating-point operations that even a slow machine does in less than an hour; fewer are not timed."""


def _fit(ready: PreparedRun, run: Path, quiet: bool, world: World, build: Build | None) -> Trained:
    """Build the model, train it, and write the bundle."""
    config, tokenizers, start = ready.config, ready.tokenizers, ready.start
    check_same_folder(run, tokenizers, world)
    open_group(world, resolve_device(config.train.device))
    resume = bool(broadcast_from_rank_0(world, ready.resume)[0])
    torch.manual_seed(config.train.seed)
    model_config = ModelConfig(
        **config.model.model_dump(), src_vocab_size=tokenizers[0].vocab_size, tgt_vocab_size=tokenizers[1].vocab_size
    )
    # A caller's own model may have the default dtype of the program; a bundle is float32.
    model = (build or architectures.build)(model_config).to(config.train.device, torch.float32)
    if start is not None:
        load_into(model, start)
    train_store, valid_store = Store.open(run / "store/train"), Store.open(run / "store/valid")
    validate = validator(config, valid_store, tokenizers[1], Ticker(quiet))
    # Nothing refuses the run any more, so the log of an earlier attempt goes: two trainings in one log would mislead.
    # Without such a log, files of these names are not of a run.
    run_on_rank_0(world, lambda: None if resume or not (run / "log.jsonl").exists() else forget_training(run))
    with (
        BatchStream(
            train_store,
            config.train.batch_tokens,
            config.train.seed,
            regularisation=_regularisation(config, tokenizers, run),
            rank=world.rank,
            world_size=world.size,
        ) as batches,  # fmt: skip
        RunLog(None if world.rank else run, config.train.tensorboard, quiet) as log,
        threads_of_training(config.train.threads, alone=world.size == 1) as threads,
    ):
        _report_start(config, model, train_store, world, log)
        if not resume:
            run_on_rank_0(world, lambda: None if start is None else _report_parent(validate(model.eval()), log))
        stop = StopRequest()
        job = Job(
            sizes=model_config, config=config.train, folder=run, log=log, world=world, threads=threads,
            validate=lambda model: validate(model, lambda: stop.is_set),
            is_tag=_is_tag(tokenizers[0], config.train.device),
        )  # fmt: skip
        outcome = fit(model, batches, job, resume, stop)
        validation, diverged = None, None
        if outcome.signal is not None:
            _report_how_to_resume(config, run, outcome.state.step, world, log)
        else:
            written = run_on_rank_0(
                world, lambda: _write_bundle(config, run, outcome, model, tokenizers, validate, log)
            )
            validation, diverged = written or (None, None)
    state = outcome.state
    return Trained(run, outcome.reason, state.step, state.seconds, validation, outcome.signal, world.rank, diverged)


def _regularisation(config: Config, tokenizers: tuple[Tokenizer, Tokenizer], run: Path) -> Regularisation:
    """Return the changes of the text from epoch to epoch that are configured."""
    return Regularisation(
        sampling=config.data.tokenizer.sampling, noise=config.data.noise, lexicon=load_lexicon(run),
        tokenizers=tokenizers, max_tokens=config.data.max_tokens,
    )  # fmt: skip


def _is_tag(tokenizer: Tokenizer, device: str) -> Tensor | None:
    """Return True for each id of a tag, ``(vocab_size,)``; None if a vocabulary has no tags."""
    if not tokenizer.tags:
        return None
    is_tag = torch.zeros(tokenizer.vocab_size, dtype=torch.bool)
    is_tag[list(tokenizer.tags.values())] = True
    return is_tag.to(device)


def _report_start(config: Config, model: EncoderDecoder, store: Store, world: World, log: RunLog) -> None:
    """Print the size of the model and of the corpus, and the device."""
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    where = f"{config.train.precision} on {config.train.device}"
    if world.size > 1:
        n_batches = world.size * config.train.accumulate
        where += f", {world.size} processes, {n_batches} batches of {config.train.batch_tokens:,} tokens an update"
    drawn = f", {store.n_drawn:,.0f} drawn an epoch" if store.is_weighted else ""
    log.say(f"{n_parameters:,} parameters, {len(store):,} pairs{drawn}, {where}")
    if (kind := config.model.architecture) != "transformer":
        log.say(f"architecture {kind}: trained with its plain implementation; only Transformers have an optimised one")


def _report_how_to_resume(config: Config, run: Path, step: int, world: World, log: RunLog) -> None:
    """Print, after a signal, the command that continues training and the one that ends it here."""
    program = "dragoman" if world.size == 1 else "torchrun ... -m dragoman"
    command = _command(run, program)
    log.say(f"stopped at step {step:,}, saved. To resume: {command} --resume")
    log.say(f"To try what it has learned so far:  {as_command('dragoman', 'translate', run, '-i')}")
    if config.train.schedule != "cosine" or step > config.train.warmup_steps:
        log.say(f"Or end it here: {command} --resume --set train.max_steps={step}")


def _report_nonsense(
    validation: Validation, outcome: Outcome, config: Config, run: Path, log: RunLog
) -> str | None:  # fmt: skip
    """If training has diverged or the final translations are nonsense, print why, and the command that does better.

    Returns:
        How training has diverged; None if it has not.
    """
    state = outcome.state
    how = divergence(read_run(run).losses(), config, state.skipped, state.step)
    if how is None and not math.isfinite(validation.loss):
        how = "the validation loss is not finite"
    if how is not None:
        log.error(
            f"training diverged: {how}. Its learning rate was too high; train again with a lower one:\n"
            f"  {lower_rate_of(run, config)}"
        )
        return how
    store = Store.open(run / "store/train")
    passes = EARLY_TOKENS / max(1, store.tgt_lengths()[store.drawn()].sum())
    if is_nonsense(validation) and 0 < state.tokens < EARLY_TOKENS and passes <= MOST_PASSES:
        times = EARLY_TOKENS / state.tokens
        command = retrain(run, longer(config.train, outcome.reason, state.step, state.seconds, times))
        log.say(
            f"The samples look like nonsense: the model was trained on {state.tokens:,} tokens and needs about "
            f"{EARLY_TOKENS:,}; here that is {duration(times * state.seconds)} of training: {command}"
        )
    elif is_nonsense(validation):
        log.say(
            f"The samples look like nonsense after {state.tokens:,} tokens: the model needs more or better text; "
            "`dragoman doctor` finds problems in it."
        )
    return None


def _report_parent(validation: Validation, log: RunLog) -> None:
    """Log the validation of the weights that fine-tuning starts from."""
    log.event("parent", 0, loss=validation.loss, **validation.scores)
    log.say(f"before fine-tuning: {validation}")


def _write_bundle(
    config: Config, run: Path, outcome: Outcome, model: EncoderDecoder, tokenizers: tuple[Tokenizer, Tokenizer],
    validate: Validate, log: RunLog,
) -> tuple[Validation, str | None]:  # fmt: skip
    """Choose the final weights, validate them and write the bundle; return also how training diverged, if it did."""
    step = outcome.state.step
    origin, weights = final_weights(config, run, outcome, model)
    load_into(model, weights)
    validation = validate(model.eval())
    scores = {"loss": validation.loss, **validation.scores}
    store = Store.open(run / "store/train")
    text = facts_of_text(store)
    config = with_length_penalty(Bundle(config, model, *tokenizers, text.as_manifest()), run, validation, log)
    words = words_seen(config, run, store, tokenizers[0]) if task_of(config).translates else None
    same = _same_bundle(config, run, model, log)
    learned = None if same is None else same.facts.confidence
    facts = replace(
        text, weights=origin, step=step, validation=scores,
        signatures=signatures(validation_references(config, run)) if validation.f1 is None else {},
        masks=MASK if config.data.noise.inserts > 0 else None,
        confidence=learned or learned_confidence(Bundle(config, model, *tokenizers, text.as_manifest()), run, log),
        fast=Fast() if same is None else same.facts.fast,
        parent={name: fact for name, fact in parent_of(run).items() if name not in (PATH, "is_ready")},
    )  # fmt: skip
    tables = Tables(shortlist=None if same is None else same.shortlist, words=words)
    save_bundle(run / "bundle", config, model.config, weights, *tokenizers, facts.as_manifest(), tables)
    log.event("bundle", step, weights=origin, **scores)
    diverged = _report_nonsense(validation, outcome, config, run, log)
    log.say(f"{run}/bundle: {origin}; validation {validation}; trained for {duration(outcome.state.seconds)}")
    return validation, diverged


def _same_bundle(config: Config, run: Path, model: EncoderDecoder, log: RunLog) -> Bundle | None:
    """Return the bundle of an earlier call if it has these weights and this search; else print what is lost with it.

    `calibrate` and `distill` have put into it what training does not make again. That a confidence is one of
    `calibrate` is only known if the validation set has fewer sentences.
    """
    if is_unfinished(run):
        return None
    lost, why = list[str](), "its weights or its search are other ones now"
    try:
        folder = find_bundle(run)
        manifest = read_manifest(folder, "bundle")
        facts = Facts.of(manifest, folder)
        n_sentences = (facts.confidence or {}).get("sentences", 0)
        added = {
            "its confidence (`dragoman calibrate` learns it from your text again)":
                n_sentences > len(Store.open(run / "store/valid")),
            "its shortlist (the same `dragoman distill` makes it again)": shortlists.FILE in manifest["files"],
            "its settings of --fast (the same `dragoman distill` makes them again)": facts.fast != Fast(),
        }  # fmt: skip
        lost = [what for what, is_there in added.items() if is_there]
        if not lost and facts.confidence is None:
            return None
        if Config.from_yaml(folder / "config.yaml").decode == config.decode:
            earlier, new = load_bundle(run), untied(model)
            old = untied(earlier.model)
            if old.keys() == new.keys() and all(torch.equal(part, new[name].cpu()) for name, part in old.items()):
                return earlier
    except (BundleError, ConfigError, UnreadableError) as error:
        log.say(f"{error}; it is written again")
        why = "it cannot be read"
    if lost:
        log.say(f"{run}/bundle: {why}, so this is not kept: {', '.join(lost)}")
    return None
