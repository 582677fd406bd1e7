"""What the commands do, as functions: ``train`` and ``evaluate``.

    dragoman.train(src="train.en", tgt="train.de", out="runs/x")
    dragoman.evaluate("runs/x", src="test.en", ref="test.de")

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
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman import environment
from dragoman.bundle import load_into, read_weights, save_bundle, shapes, untied
from dragoman.config import Config, ModelConfig
from dragoman.data.batching import BatchStream, all_batches
from dragoman.data.corpus import read_pairs
from dragoman.data.store import Store, fingerprint
from dragoman.data.tokenizer import PAD_ID, Tokenizer
from dragoman.decoding.batches import search_all
from dragoman.defaults import choose_steps, resolve
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.evaluation.metrics import Score, bleu, chrf, moses_tokens, old_style_bleu, ter
from dragoman.files import check_sealed, write_text
from dragoman.model.transformer import Transformer
from dragoman.preparation import load_tokenizers, prepare
from dragoman.progress import Ticker
from dragoman.training.averaging import average_checkpoints
from dragoman.training.checkpoint import list_checkpoints, whole_checkpoints
from dragoman.training.log import RunLog, duration
from dragoman.training.loop import Outcome, Validation, fit
from dragoman.training.loss import label_smoothed_loss, perplexity
from dragoman.translator import Translation, Translator, one_line

logger = logging.getLogger(__name__)

RESUMABLE = (
    "max_steps", "max_epochs", "max_minutes", "patience", "max_bad_steps", "validate_every", "log_every", "tensorboard",
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


class Evaluation(NamedTuple):
    """Scores of a run on a test set, the translations beside them."""

    scores: list[Score]
    translations: list[Translation]
    seconds: float  # of translating


def train(
    config: Config | Path | str | None = None,
    *,
    src: Path | str | None = None,
    tgt: Path | str | None = None,
    valid_src: Path | str | None = None,
    valid_tgt: Path | str | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    overrides: Sequence[str] = (),
    quiet: bool = False,
) -> Trained:
    """Train a model from a configuration, or from two text files alone.

    Args:
        config: A ``Config`` or the path of a YAML file. Without one, ``src`` and ``tgt`` are needed and all sizes are
            chosen from the corpus.
        src, tgt: The training text; they replace those of ``config``.
        valid_src, valid_tgt: Likewise; without any, 1% of the training text (at most 2,000 pairs) is held out.
        out: The run folder; ``runs/NAME`` by default, NAME being the configuration's.
        resume: Go on with the run in ``out``, bit for bit, by the ``config.yaml`` in it and ``overrides``.
        overrides: Such as ``["train.max_steps=2000"]``.
        quiet: Nothing on stderr.

    Raises:
        ConfigError, DataError, BundleError: What is wrong and what to do; nothing is half-written.
    """
    environment.set_defaults()
    ticker = Ticker(quiet)
    name = Path(config).stem if isinstance(config, str | Path) else "train"
    run = Path(out) if out is not None else Path("runs") / name
    if resume:
        if out is None and config is None:
            raise ConfigError("to resume, name the run: --out runs/NAME --resume")
        if any(given is not None for given in (config, src, tgt, valid_src, valid_tgt)):
            ticker.say(f"resuming by {run}/config.yaml and --set alone; other files that were named are not read again")
        return _resume(run, overrides, quiet)
    resolved, chosen = resolve(config, src, tgt, valid_src, valid_tgt, overrides, ticker)
    device = resolve_device(resolved.train.device)
    settings = {"device": device.type, "precision": resolve_precision(resolved.train.precision, device)}
    resolved = resolved.model_copy(update={"train": resolved.train.model_copy(update=settings)})
    check_trainable(resolved)
    langs = " -> ".join(lang or "unknown" for lang in (resolved.data.src_lang, resolved.data.tgt_lang))
    ticker.say(f"languages: {langs}" + ("; say it with data.src_lang and data.tgt_lang" if "unknown" in langs else ""))
    if resolved.train.ema and resolved.train.average > 1:
        ticker.say("both train.ema and train.average are set: the bundle will hold the average of checkpoints")
    with _claimed(run):
        torch.manual_seed(resolved.train.seed)
        resolved, tokenizers = prepare(resolved, run, ticker)
        if chosen:
            resolved = choose_steps(resolved, Store.open(run / "store/train"), overrides)
        write_text(run / "config.yaml", resolved.to_yaml())
        return _train(resolved, run, tokenizers, quiet, resume=False)


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
    n_parameters = sum(tensor.numel() for tensor in shapes(sizes).values())
    if config.train.device == "cuda":
        there = torch.cuda.get_device_properties(0).total_memory
    else:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 16 * n_parameters > there:  # weights, gradients and Adam's two moments, 4 bytes each
        raise ConfigError(
            f"{n_parameters:,} parameters need {16 * n_parameters / 2**30:,.1f} GiB to be trained, and there are "
            f"{there / 2**30:,.1f} GiB: choose a smaller model.preset, or smaller sizes"
        )


@contextlib.contextmanager
def _claimed(run: Path) -> Iterator[None]:
    """Make the run folder, unless a run is in it already; if the body fails before training begins, clear up."""
    if any((run / name).exists() for name in ("config.yaml", "checkpoints", "bundle")):
        if list_checkpoints(run / "checkpoints"):
            raise ConfigError(f"{run} already holds a run: go on with --resume, or choose another --out")
        raise ConfigError(f"{run} holds a run without a checkpoint: delete it if it has ended, or choose another --out")
    new = [folder for folder in (run, *run.parents) if not folder.exists()]
    new_store = not (run / "store").exists()
    try:
        try:
            run.mkdir(parents=True, exist_ok=True)
            probe = run / ".probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigError(f"{run}: cannot write there ({error.strerror or error}); choose another --out") from None
        yield
    except BaseException:
        if not (run / "log.jsonl").exists():  # training has not begun
            if new_store:
                shutil.rmtree(run / "store", ignore_errors=True)
            with contextlib.suppress(OSError):
                (run / "config.yaml").unlink(missing_ok=True)
                for folder in new:
                    folder.rmdir()
        raise


def _resume(run: Path, overrides: Sequence[str], quiet: bool) -> Trained:
    """Go on with a run: its own configuration, its own stores, the latest whole checkpoint."""
    if not list_checkpoints(run / "checkpoints"):
        what = "no checkpoint yet; delete it" if (run / "config.yaml").is_file() else "no such run; leave out --resume"
        raise BundleError(f"{run}: nothing to resume, {what} to start anew")
    for key in (override.partition("=")[0].strip() for override in overrides):
        if key.partition(".")[0] in ("model", "data"):
            raise ConfigError(f"--set {key} {ANOTHER_RUN}")
    saved = Config.from_yaml(run / "config.yaml")
    config = Config.from_yaml(run / "config.yaml", overrides)
    for name in Config.model_fields:
        before, now = getattr(saved, name).model_dump(), getattr(config, name).model_dump()
        changed = [key for key in before if before[key] != now[key] and not (name == "train" and key in RESUMABLE)]
        if changed and name != "decode":
            raise ConfigError(f"--set {name}.{changed[0]} {ANOTHER_RUN}")
    resolve_device(config.train.device)  # is the one of the run here?
    if config.train.schedule == "cosine" and config.train.max_steps != saved.train.max_steps:
        Ticker(quiet).say("train.max_steps has changed: the rest of the cosine is another one than the run began with")
    tokenizers = load_tokenizers(run)
    for name in ("train", "valid"):
        store = Store.open(run / "store" / name)
        for path, noted in store.sources.items():
            if Path(path).exists() and fingerprint(path) != noted:
                raise DataError(f"{path} has changed since {run} began: put the old text back, or train a new run")
        if tuple(tokenizer.fingerprint for tokenizer in tokenizers) != store.tokenizers:
            raise DataError(f"{run}/store: the subwords are not those that {name} was encoded with; train a new run")
    write_text(run / "config.yaml", config.to_yaml())
    return _train(config, run, tokenizers, quiet, resume=True)


def _train(config: Config, run: Path, tokenizers: tuple[Tokenizer, Tokenizer], quiet: bool, resume: bool) -> Trained:
    """Build the model, fit it, and write the bundle."""
    model_config = ModelConfig(
        **config.model.model_dump(), src_vocab_size=tokenizers[0].vocab_size, tgt_vocab_size=tokenizers[1].vocab_size
    )
    model = Transformer(model_config).to(config.train.device)
    train_store, valid_store = Store.open(run / "store/train"), Store.open(run / "store/valid")
    validate = validator(config, valid_store, tokenizers[1], Ticker(quiet))
    with (
        BatchStream(
            train_store,
            config.train.batch_tokens,
            config.train.seed,
            sampling=config.data.tokenizer.sampling,
            tokenizers=tokenizers,
        ) as batches,
        RunLog(run, config.train.tensorboard, quiet) as log,
    ):
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        where = f"{config.train.precision} on {config.train.device}"
        log.say(f"{n_parameters:,} parameters, {len(train_store):,} pairs, {where}")
        outcome = fit(model, model_config, batches, config.train, run, log, validate, resume)
        step = outcome.state.step
        if outcome.signal is not None:
            where = shlex.quote(str(run))
            log.say(f"stopped at step {step:,}, saved. Go on: dragoman train --out {where} --resume")
            if config.train.schedule != "cosine" or step > config.train.warmup_steps:
                log.say(f"Or end it here: dragoman train --out {where} --resume --set train.max_steps={step}")
            return Trained(run, outcome.reason, step, outcome.state.seconds, None, outcome.signal)
        kept, weights = kept_weights(config, run, outcome, model)
        load_into(model, weights)
        found = validate(model.eval())
        scores = {"loss": found.loss, "bleu": found.bleu, "chrf": found.chrf}
        facts = {"weights": kept, "step": step, "validation": scores}
        save_bundle(run / "bundle", config, model_config, weights, *tokenizers, facts)
        log.event("bundle", step, weights=kept, **scores)
        log.say(
            f"{run}/bundle: {kept}; validation perplexity {perplexity(found.loss):.2f}  BLEU {found.bleu:.2f}  "
            f"chrF {found.chrf:.2f}; trained for {duration(outcome.state.seconds)}"
        )
    return Trained(run, outcome.reason, step, outcome.state.seconds, found)


def kept_weights(config: Config, run: Path, outcome: Outcome, model: nn.Module) -> tuple[str, Mapping[str, Tensor]]:
    """Which weights the bundle holds, in words and tensors: averaged if asked for, else EMA, else the best by BLEU."""
    if config.train.average > 1:
        checkpoints = whole_checkpoints(run / "checkpoints", outcome.state.step)[-config.train.average :]
        if len(checkpoints) > 1:
            return f"average of the last {len(checkpoints)} checkpoints", average_checkpoints(checkpoints)
    if outcome.ema is not None:
        return f"exponential moving average, decay {config.train.ema}", outcome.ema
    best, step = run / "checkpoints/best", outcome.state.best_step
    if step:
        try:
            if check_sealed(best, "checkpoint").get("step") != step:
                raise BundleError(f"{best}: not the weights of step {step}, which were the best")
            return f"best by BLEU, step {step}", read_weights(best / "model.safetensors", untied(model))
        except BundleError as error:
            logger.warning("%s; taking the last weights", error)
    return f"last, step {outcome.state.step}", untied(model)


def validator(config: Config, store: Store, tgt_tokenizer: Tokenizer, ticker: Ticker) -> Callable[[Any], Validation]:
    """A function that measures a model on a store: unsmoothed loss, and BLEU and chrF of greedy translations."""
    sources, references = store.texts(range(len(store)))
    src_ids = [store.pair(i)[0].tolist() for i in range(len(store))]
    longest = int(max(store.src_lengths().max(), store.tgt_lengths().max())) + 1
    # all logits are held here, so batches are smaller than those of training may be
    batches = list(all_batches(store, max(longest, min(config.train.batch_tokens, 4096))))
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
        lang = config.data.tgt_lang
        return Validation(loss / tokens, bleu(hyps, references, lang).value, chrf(hyps, references).value, samples)

    def validate(model: Any) -> Validation:
        with ticker.task("validating"):
            return measure(model)

    return validate


def evaluate(
    run: Path | str | Translator,
    *,
    src: Path | str,
    ref: Path | str,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    old_style: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> Evaluation:
    """Translate a test set and score it.

    Args:
        run: A run folder, a bundle, or a loaded translator.
        src, ref: Two text files, line by line the same.
        beam_size, length_penalty: None takes the run's settings.
        old_style: Also the lower-cased, Moses-tokenised BLEU of older papers (needs ``dragoman[moses]``).
        quiet: No progress on stderr.

    Raises:
        DataError: The files cannot be used, or their counts differ.
    """
    ticker = Ticker(quiet)
    translator = run if isinstance(run, Translator) else Translator.load(run, device)
    pairs = list(read_pairs(src, ref))
    if old_style:
        moses_tokens([], "en")  # is it installed? better known now than after translating
    if not pairs:
        raise DataError(f"{src}: there is nothing to evaluate: no lines")
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    started = time.perf_counter()
    found = translator.translate(
        sources,
        beam_size=beam_size,
        length_penalty=length_penalty,
        progress=ticker,
        warn=lambda text: ticker.say(f"warning: {text}"),
        label=lambda i: f"{src}:{i + 1}",
    )
    seconds = time.perf_counter() - started
    return Evaluation(score(found, references, translator.config.data.tgt_lang, old_style), found, seconds)


def score(
    found: Sequence[Translation], references: Sequence[str], tgt_lang: str | None, old_style: bool = False
) -> list[Score]:
    """BLEU, chrF and TER with their intervals; with ``old_style`` the BLEU of older papers too."""
    hyps = [translation.text for translation in found]
    scores = [
        bleu(hyps, references, tgt_lang, interval=True),
        chrf(hyps, references, interval=True),
        ter(hyps, references, tgt_lang, interval=True),
    ]
    return [*scores, *([old_style_bleu(hyps, references, tgt_lang or "en")] if old_style else [])]
