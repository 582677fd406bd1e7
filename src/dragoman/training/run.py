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
import logging
import math
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.bundle import Bundle, load_bundle, save_bundle
from dragoman.config import Config, ModelConfig
from dragoman.data.batching import BatchStream, all_batches
from dragoman.data.store import Store
from dragoman.data.tokenizer import PAD_ID, Tokenizer
from dragoman.decoding.batches import search_all
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import BundleError, ConfigError, DragomanError
from dragoman.evaluation.calibration import learn_confidence
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.files import check_sealed, locked, refuse_if_locked, standing, write_text
from dragoman.model import build as architectures
from dragoman.model.build import EncoderDecoder
from dragoman.model.weights import MAX_TENSORS, load_into, read_weights, shapes, untied
from dragoman.parsing.brackets import symbols_f1
from dragoman.progress import Ticker
from dragoman.training.averaging import average_checkpoints
from dragoman.training.checkpoint import list_checkpoints, whole_checkpoints
from dragoman.training.defaults import choose_steps, resolve
from dragoman.training.distributed import World, joined, launch_name, of_rank_0, on_rank_0, open_group
from dragoman.training.finetune import PARENT, adapt, parent_of
from dragoman.training.log import NO_TENSORBOARD, RunLog, duration
from dragoman.training.loop import Outcome, Validation, fit
from dragoman.training.loss import label_smoothed_loss
from dragoman.training.memory import GIB, VALIDATION_TOKENS, device_memory, n_parameters, state_bytes
from dragoman.training.preparation import check_prepared, load_lexicon, load_tokenizers, prepare
from dragoman.translation.confidence import MIN_SENTENCES
from dragoman.translation.segments import one_line
from dragoman.translation.translator import Translator

logger = logging.getLogger(__name__)

LAUNCH = "launch"
"""Which call of torchrun began the run, so that a restart by the same call goes on with it."""

File = Path | str | None
Build = Callable[[ModelConfig], EncoderDecoder]

RESUMABLE = (
    "max_steps", "max_epochs", "max_minutes", "patience", "max_bad_steps", "validate_every", "log_every", "tensorboard",
    "accumulate", "device",
)  # fmt: skip
"""Settings of ``train`` that may change when a run is resumed; any other would make it another run."""

ANOTHER_RUN = (
    "cannot change when a run is resumed (that would be another run); "
    f"of train, {', '.join(RESUMABLE)} can, and all of decode"
)


class Trained(NamedTuple):
    """What ``train`` leaves: the run folder, how it ended, and how the kept weights do on the validation set."""

    run: Path
    reason: str
    step: int
    seconds: float
    validation: Validation | None
    signal: int | None = None
    rank: int = 0  # of this process; the others than 0 know no validation


class Ready(NamedTuple):
    """A run folder in which training can begin, or go on."""

    config: Config
    tokenizers: tuple[Tokenizer, Tokenizer]
    resume: bool = False
    start: Mapping[str, Tensor] | None = None  # weights to begin with


def train(
    config: Config | Path | str | None = None,
    *,
    src: Path | str | None = None,
    tgt: Path | str | None = None,
    valid_src: Path | str | None = None,
    valid_tgt: Path | str | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    from_run: Path | str | None = None,
    new_subwords: bool = False,
    accept_changed_text: bool = False,
    overrides: Sequence[str] = (),
    quiet: bool = False,
    build: Build | None = None,
) -> Trained:
    """Train a model from a configuration, or from two text files alone.

    Args:
        config: A ``Config`` or the path of a YAML file. Without one, ``src`` and ``tgt`` are needed and all sizes are
            chosen from the corpus.
        src, tgt: The training text; they replace those of ``config``.
        valid_src, valid_tgt: Likewise; without any, 1% of the training text (at most 2,000 pairs) is held out.
        out: The run folder; ``runs/NAME`` by default, NAME being the configuration's.
        resume: Go on with the run in ``out``, bit for bit, by the ``config.yaml`` in it and ``overrides``.
        from_run: Fine-tune: start from the weights of this run (or bundle), with its sizes and its subwords.
        new_subwords: Learn subwords from the new text nonetheless; embeddings are made from those of their pieces.
        accept_changed_text: Resume although the text files have changed since: what was prepared from them is used.
        overrides: Such as ``["train.max_steps=2000"]``.
        quiet: Nothing on stderr.
        build: Makes the model instead: for one that is trained otherwise, but whose weights are used as any other's.

    Raises:
        ConfigError, DataError, BundleError: What is wrong and what to do; nothing is half-written.
    """
    ticker = Ticker(quiet)
    name = Path(config).stem if isinstance(config, str | Path) else "train"
    run = Path(out) if out is not None else Path("runs") / name
    with joined() as world:
        if world.rank:
            _until_rank_0_is_ready(world)
            return _fit(_followed(run), run, True, world, build)
        if new_subwords and from_run is None:
            raise ConfigError("--new-subwords belongs to fine-tuning: name the run to start from with --from")
        if accept_changed_text and not resume:
            raise ConfigError("--accept-changed-text belongs to --resume: a new run reads the text as it is")
        if not resume and _restarted(run, ticker):
            making = _resumed(run, (), accept_changed_text, ticker)
        elif resume:
            if out is None and config is None:
                raise ConfigError("to resume, name the run: --out runs/NAME --resume")
            if any(given is not None for given in (config, src, tgt, valid_src, valid_tgt, from_run)):
                ticker.say(
                    f"resuming by {run}/config.yaml and --set alone; other files that were named are not read again"
                )
            refuse_if_locked(run)
            making = _resumed(run, overrides, accept_changed_text, ticker)
        else:
            texts = (src, tgt, valid_src, valid_tgt)
            making = _begun(run, config, texts, from_run, new_subwords, overrides, ticker, world.size)
        with making as ready:
            _until_rank_0_is_ready(world)
            return _fit(ready, run, quiet, world, build)


def _until_rank_0_is_ready(world: World) -> None:
    """All ranks meet here: rank 0 when the run can be trained; where it failed, the others hear of it."""
    on_rank_0(world, lambda: None)


@contextlib.contextmanager
def _begun(
    run: Path,
    config: Config | Path | str | None,
    texts: tuple[File, File, File, File],
    from_run: Path | str | None,
    new_subwords: bool,
    overrides: Sequence[str],
    ticker: Ticker,
    n_ranks: int,
) -> Iterator[Ready]:
    """Prepare a new run, which is nobody else's while this is open; the arguments are those of ``train``."""
    parent = None if from_run is None else load_bundle(from_run)
    resolved, chosen = resolve(config, *texts, overrides, ticker, parent and parent.config, new_subwords)
    device = resolve_device(resolved.train.device)
    settings = {"device": device.type, "precision": resolve_precision(resolved.train.precision, device)}
    resolved = resolved.model_copy(update={"train": resolved.train.model_copy(update=settings)})
    check_trainable(resolved)
    if resolved.task == "translation":
        langs = " -> ".join(lang or "unknown" for lang in (resolved.data.src_lang, resolved.data.tgt_lang))
        unknown = "; say it with data.src_lang and data.tgt_lang" if "unknown" in langs else ""
        ticker.say(f"languages: {langs}{unknown}")
    if resolved.train.ema and resolved.train.average > 1:
        ticker.say("both train.ema and train.average are set: the bundle will hold the average of checkpoints")
    with _claimed(run):
        if launch := launch_name():
            write_text(run / LAUNCH, launch)
        kept = None if parent is None or new_subwords else (parent.src_tokenizer, parent.tgt_tokenizer)
        resolved, tokenizers = prepare(resolved, run, ticker, kept)
        if chosen:
            store = Store.open(run / "store/train")
            resolved = choose_steps(resolved, store, overrides, parent is not None, n_ranks)
        start = None
        if parent is not None and from_run is not None:
            start, said = adapt(parent, Path(from_run).resolve().name, tokenizers, run)
            ticker.say(f"starting from {from_run}; {said}")
        write_text(run / "config.yaml", resolved.to_yaml())
        yield Ready(resolved, tokenizers, start=start)


def check_trainable(config: Config) -> None:
    """Refuse what could only fail later, after the corpus has been prepared.

    Raises:
        ConfigError: The model is no translator, shares what it cannot share, or does not fit in memory.
    """
    model, tokenizer = config.model, config.data.tokenizer
    if not (model.n_encoder_layers and model.n_decoder_layers):
        raise ConfigError("a translator needs both: set model.n_encoder_layers and model.n_decoder_layers to 1 or more")
    if model.share_embeddings == "all" and not tokenizer.joint:
        raise ConfigError(
            "model.share_embeddings = 'all' needs one vocabulary, but data.tokenizer.joint = false: "
            "set model.share_embeddings to decoder or none, or data.tokenizer.joint to true"
        )
    longest = config.data.max_tokens + config.decode.max_extra_tokens
    if model.positions == "learned" and longest > model.max_len:
        raise ConfigError(
            f"model.max_len = {model.max_len} binds learned positions, but data.max_tokens + decode.max_extra_tokens = "
            f"{longest}: raise model.max_len, or lower data.max_tokens"
        )
    size = tokenizer.vocab_size
    sizes = ModelConfig(**model.model_dump(), src_vocab_size=size, tgt_vocab_size=size)
    n_tensors = 3 * len(shapes(sizes))
    if n_tensors > MAX_TENSORS:  # Adam has three for each parameter
        raise ConfigError(
            f"{model.n_encoder_layers} + {model.n_decoder_layers} layers make {n_tensors:,} tensors in a checkpoint, "
            f"which has room for {MAX_TENSORS:,}: set fewer model.n_encoder_layers and model.n_decoder_layers"
        )
    if config.train.tensorboard and find_spec("tensorboard") is None:
        raise ConfigError(NO_TENSORBOARD)
    needed, there = state_bytes(n_parameters(sizes), config.train), device_memory(config.train.device)
    if needed > there:  # whatever the batch
        raise ConfigError(
            f"{n_parameters(sizes):,} parameters need {needed / GIB:,.1f} GiB to be trained, and there are "
            f"{there / GIB:,.1f} GiB: choose a smaller model.preset, or smaller sizes"
        )


@contextlib.contextmanager
def _claimed(run: Path) -> Iterator[None]:
    """Make the run folder, unless a run is in it or being made there; if the body fails before training, clear up.

    While it is open, no other process trains there.
    """
    refuse_if_locked(run)
    _refuse_a_run(run)
    new = [folder for folder in (run, *run.parents) if not folder.exists()]
    try:
        try:
            run.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{run}: cannot write there ({error.strerror or error}); choose another --out") from None
        with locked(run):
            _refuse_a_run(run)  # which another process may have made by now
            ours = [run / name for name in ("config.yaml", PARENT, LAUNCH, "store") if not (run / name).exists()]
            before = (run / "log.jsonl").exists()
            try:
                yield
            except BaseException:
                if before or not (run / "log.jsonl").exists():  # training has not begun
                    with contextlib.suppress(OSError):
                        for path in ours:
                            if path.is_dir():
                                shutil.rmtree(path)
                            else:
                                path.unlink(missing_ok=True)
                raise
    except BaseException:
        with contextlib.suppress(OSError):  # the first that is not empty
            for folder in new:
                folder.rmdir()
        raise


def _refuse_a_run(run: Path) -> None:
    """Refuse a folder that holds a run.

    Raises:
        ConfigError: It does.
    """
    if any((run / name).exists() for name in ("config.yaml", "checkpoints", "bundle")):
        if list_checkpoints(run / "checkpoints"):
            raise ConfigError(f"{run} already holds a run: go on with --resume, or choose another --out")
        raise ConfigError(f"{run} holds a run without a checkpoint: delete it if it has ended, or choose another --out")


@contextlib.contextmanager
def _resumed(run: Path, overrides: Sequence[str], accept_changed_text: bool, ticker: Ticker) -> Iterator[Ready]:
    """A run as it was: its own configuration, its own stores; nobody else's while this is open."""
    if not list_checkpoints(run / "checkpoints"):
        what = "no checkpoint yet; delete it" if (run / "config.yaml").is_file() else "no such run; leave out --resume"
        raise BundleError(f"{run}: nothing to resume, {what} to start anew")
    saved = Config.from_yaml(run / "config.yaml")
    config = Config.from_yaml(run / "config.yaml", overrides)
    try:
        device = resolve_device(config.train.device)
    except ConfigError as error:  # the one of the run is not here
        raise ConfigError(f"{error}; that is --set train.device=cpu, and not bit for bit the run that it was") from None
    moved = device.type != saved.train.device
    if not moved and config.train.precision == "auto":  # which is what it was made into when the run began
        config = config.model_copy(
            update={"train": config.train.model_copy(update={"precision": saved.train.precision})}
        )
    before, now = _settings(saved.model_dump(mode="json")), _settings(config.model_dump(mode="json"))
    may_change = {f"train.{name}" for name in (*RESUMABLE, *(["precision"] if moved else []))}
    for name in [*before, *now]:
        is_other = before.get(name) != now.get(name)
        if is_other and name not in may_change and not name.startswith("decode."):
            raise ConfigError(
                f"--set {name} = {now.get(name)!r}, but the run has {before.get(name)!r}: it {ANOTHER_RUN}"
            )
    settings = {"device": device.type, "precision": config.train.precision}
    if moved:  # what was fast there may be emulated here
        chosen = any(override.partition("=")[0].strip() == "train.precision" for override in overrides)
        settings["precision"] = resolve_precision(config.train.precision if chosen else "auto", device)
        ticker.say(
            f"train.device was {saved.train.device} and is {device.type}, computing in {settings['precision']}: from "
            "here on not bit for bit the same run"
        )
    config = config.model_copy(update={"train": config.train.model_copy(update=settings)})
    check_trainable(config)  # decode may have changed
    if config.train.schedule == "cosine" and config.train.max_steps != saved.train.max_steps:
        ticker.say("train.max_steps has changed: the rest of the cosine is another one than the run began with")
    tokenizers = check_prepared(run, accept_changed_text, ticker)
    with locked(run):
        there = list_checkpoints(run / "checkpoints")
        write_text(run / "config.yaml", config.to_yaml())
        try:
            yield Ready(config, tokenizers, resume=True)
        except BaseException:
            if list_checkpoints(run / "checkpoints") == there:  # nothing came of these settings
                with contextlib.suppress(DragomanError):
                    write_text(run / "config.yaml", saved.to_yaml())
            raise


def _settings(section: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Each setting by its name with dots."""
    found: dict[str, Any] = {}
    for key, value in section.items():
        found |= _settings(value, f"{path}{key}.") if isinstance(value, Mapping) else {f"{path}{key}": value}
    return found


def _restarted(run: Path, ticker: Ticker) -> bool:
    """Whether this very call of torchrun began the run and now tries again; without a checkpoint it begins anew."""
    name, mark = launch_name(), run / LAUNCH
    if name is None or not mark.is_file() or mark.read_text(encoding="utf-8", errors="replace") != name:
        return False
    if list_checkpoints(run / "checkpoints"):
        ticker.say("started again by torchrun: going on from the last checkpoint, as with --resume")
        return True
    ticker.say("started again by torchrun before the first checkpoint: beginning anew")
    refuse_if_locked(run)
    for left in ("config.yaml", "log.jsonl", "samples.txt"):
        (run / left).unlink(missing_ok=True)
    for left in ("checkpoints", "store", "tensorboard"):
        shutil.rmtree(run / left, ignore_errors=True)
    return False


def _followed(run: Path) -> Ready:
    """What rank 0 has made ready, for the other ranks; whether it resumes, and from which weights, it alone knows."""
    try:
        config = Config.from_yaml(run / "config.yaml")
    except ConfigError as error:
        raise ConfigError(f"{error}; the run folder must be on a file system that all machines share") from None
    return Ready(config, load_tokenizers(run))


def _fit(ready: Ready, run: Path, quiet: bool, world: World, build: Build | None) -> Trained:
    """Build the model, fit it, and write the bundle."""
    config, tokenizers, resume, start = ready
    open_group(world, resolve_device(config.train.device))
    resume = bool(of_rank_0(world, resume)[0])
    torch.manual_seed(config.train.seed)
    model_config = ModelConfig(
        **config.model.model_dump(), src_vocab_size=tokenizers[0].vocab_size, tgt_vocab_size=tokenizers[1].vocab_size
    )
    model = (build or architectures.build)(model_config).to(config.train.device)
    if start is not None:
        load_into(model, start)
    train_store, valid_store = Store.open(run / "store/train"), Store.open(run / "store/valid")
    validate = validator(config, valid_store, tokenizers[1], Ticker(quiet))
    with (
        BatchStream(
            train_store,
            config.train.batch_tokens,
            config.train.seed,
            sampling=config.data.tokenizer.sampling,
            noise=config.data.noise,
            lexicon=load_lexicon(run),
            max_tokens=config.data.max_tokens,
            tokenizers=tokenizers,
            rank=world.rank,
            world_size=world.size,
        ) as batches,
        RunLog(None if world.rank else run, config.train.tensorboard, quiet) as log,
    ):
        size = sum(parameter.numel() for parameter in model.parameters())
        where = f"{config.train.precision} on {config.train.device}"
        if world.size > 1:
            n_batches = world.size * config.train.accumulate
            where += f", {world.size} processes, {n_batches} batches of {config.train.batch_tokens:,} tokens an update"
        log.say(f"{size:,} parameters, {len(train_store):,} pairs, {where}")
        if (kind := config.model.architecture) != "transformer":
            log.say(f"architecture {kind}: trained as it is written; the fast engine is for Transformers")
        if not resume:
            on_rank_0(world, lambda: None if start is None else _note_parent(validate(model.eval()), log))
        outcome = fit(model, model_config, batches, config.train, run, log, validate, resume, world)
        state = outcome.state
        if outcome.signal is not None:
            program = "dragoman" if world.size == 1 else "torchrun ... -m dragoman"
            again = f"{program} train --out {shlex.quote(str(run))}"
            log.say(f"stopped at step {state.step:,}, saved. Go on: {again} --resume")
            if config.train.schedule != "cosine" or state.step > config.train.warmup_steps:
                log.say(f"Or end it here: {again} --resume --set train.max_steps={state.step}")
            found = None
        else:
            found = on_rank_0(world, lambda: _keep(config, run, outcome, model, tokenizers, validate, log))
    return Trained(run, outcome.reason, state.step, state.seconds, found, outcome.signal, world.rank)


def _note_parent(found: Validation, log: RunLog) -> None:
    """Say how the weights do that fine-tuning starts from."""
    log.event("parent", 0, loss=found.loss, **found.scores)
    log.say(f"before fine-tuning: {found}")


def _keep(
    config: Config, run: Path, outcome: Outcome, model: EncoderDecoder, tokenizers: tuple[Tokenizer, Tokenizer],
    validate: Callable[[Any], Validation], log: RunLog,
) -> Validation:  # fmt: skip
    """Choose the weights, validate them and write the bundle."""
    step = outcome.state.step
    kept, weights = kept_weights(config, run, outcome, model)
    load_into(model, weights)
    found = validate(model.eval())
    scores = {"loss": found.loss, **found.scores}
    confidence = _learn_confidence(Bundle(config, model, *tokenizers, {}), run, log)
    usual = int(np.quantile(Store.open(run / "store/train").src_lengths(), 0.999, method="higher"))
    facts = {
        "weights": kept, "step": step, "validation": scores, "usual_src_tokens": usual, **confidence, **parent_of(run)
    }  # fmt: skip
    save_bundle(run / "bundle", config, model.config, weights, *tokenizers, facts)
    log.event("bundle", step, weights=kept, **scores)
    log.say(f"{run}/bundle: {kept}; validation {found}; trained for {duration(outcome.state.seconds)}")
    return found


def _learn_confidence(bundle: Bundle, run: Path, log: RunLog) -> dict[str, Any]:
    """What the manifest says of a confidence, learned from the validation set; nothing where that is too small.

    It is a confidence in translations: a parser has none.
    """
    if bundle.config.task == "parsing":
        return {}
    store = Store.open(run / "store/valid")
    if len(store) < MIN_SENTENCES:
        log.say(f"no confidence is learned: that needs {MIN_SENTENCES} validation pairs, and there are {len(store)}")
        return {}
    learned = learn_confidence(Translator(bundle), *store.texts(range(len(store))))
    said = f"Spearman {learned.rank_correlation:.2f} with the chrF of {learned.sentences:,} validation sentences"
    log.say(f"confidence learned: {said}")
    return {"confidence": learned.model_dump(mode="json")}


def kept_weights(config: Config, run: Path, outcome: Outcome, model: nn.Module) -> tuple[str, Mapping[str, Tensor]]:
    """Which weights the bundle holds, in words and tensors: averaged if asked for, else EMA, else the best."""
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
            by = "bracket F1" if config.task == "parsing" else "BLEU"
            by = by if outcome.state.best_bleu else f"validation loss, {by} being 0"
            return f"best by {by}, step {step}", read_weights(best / "model.safetensors", untied(model))
        except BundleError as error:
            logger.warning("%s; taking the last weights", error)
    return f"last, step {outcome.state.step}", untied(model)


def validator(config: Config, store: Store, tgt_tokenizer: Tokenizer, ticker: Ticker) -> Callable[[Any], Validation]:
    """A function that measures a model on a store: unsmoothed loss, BLEU and chrF, or bracket F1, of greedy search."""
    sources, references = store.texts(range(len(store)))
    src_ids = [store.pair(i)[0].tolist() for i in range(len(store))]
    longest = int(max(store.src_lengths().max(), store.tgt_lengths().max())) + 1
    # all logits are held here, so batches are smaller than those of training may be
    batches = list(all_batches(store, max(longest, min(config.train.batch_tokens, VALIDATION_TOKENS))))
    greedy = config.decode.model_copy(update={"beam_size": 1})

    @torch.inference_mode()
    def measure(model: Any) -> Validation:
        device = next(model.parameters()).device
        loss, tokens = 0.0, 0
        for batch in (batch.to(device) for batch in batches):
            loss += label_smoothed_loss(model(batch.src, batch.tgt_in), batch.tgt_out, PAD_ID, 0.0)[1].item()
            tokens += batch.n_tgt_tokens
        found = search_all(model, src_ids, greedy, device)
        hyps = [one_line(text) for text in tgt_tokenizer.decode([hypotheses[0].ids for hypotheses in found])]
        samples = [(sources[i], references[i], hyps[i]) for i in range(min(3, len(hyps)))]
        if config.task == "parsing":
            return Validation(loss / tokens, math.nan, math.nan, samples, symbols_f1(sources, references, hyps))
        lang = config.data.tgt_lang
        return Validation(loss / tokens, bleu(hyps, references, lang).value, chrf(hyps, references).value, samples)

    def validate(model: Any) -> Validation:
        with ticker.task("validating"):
            return measure(model)

    return validate
