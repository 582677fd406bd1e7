"""The training loop: updates, validations, checkpoints and progress reports.

    outcome = fit(model, batches, Job(sizes=model.config, config=config.train, folder=run, log=log, validate=validate))

``fit`` reads from top to bottom. The functions that it calls are small and come below it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, TrainConfig
from dragoman.data.batching import Batch, BatchStream
from dragoman.errors import DragomanError
from dragoman.files import sealed_folder, standing
from dragoman.model.weights import n_bytes, save_weights, untied
from dragoman.progress import REWRITE_S, duration
from dragoman.training.advice import lower_rate, retrain
from dragoman.training.averaging import start_ema, update_ema
from dragoman.training.checkpoint import (
    Learner,
    TrainState,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    random_state,
    save_checkpoint,
    seed_apart,
    step_folder,
    step_of,
)
from dragoman.training.distributed import (
    ALONE,
    World,
    broadcast_from_rank_0,
    broadcast_weights,
    check_same_weights,
    gathered,
    run_on_rank_0,
    total,
)
from dragoman.training.finetune import parent_of
from dragoman.training.flops import training_flops
from dragoman.training.log import EARLY_TOKENS, LEAST_BLEU, SENSE, RunLog
from dragoman.training.loss import perplexity
from dragoman.training.schedule import learning_rate
from dragoman.training.signals import Stopped, StopRequest
from dragoman.training.threads import Threads
from dragoman.training.update import StepResult, train_step

SHOWN = 200
"""Longest sample on the console, in characters; ``samples.txt`` has them in full."""

VALIDATION_SHARE = 0.2
"""With a limit of minutes, a validation is left out while those before took more than this fraction of the time."""

Reason = Literal["max_steps", "max_epochs", "max_minutes", "patience", "goal", "signal"]


class Validation(NamedTuple):
    """Result of a validation; ``loss`` in nats per target token, unsmoothed."""

    loss: float
    bleu: float
    chrf: float
    samples: list[tuple[str, str, str]]  # source, reference, translation
    f1: float | None = None  # labelled bracket F1 if the task is parsing, where BLEU and chrF are nan

    @property
    def quality(self) -> float:
        """The score by which validations are compared, in per cent: BLEU, or a parser's F1; see ``counted``."""
        return self.bleu if self.f1 is None else self.f1

    @property
    def scores(self) -> dict[str, float]:
        """The scores of the task by their names in the log, in per cent."""
        return {"bleu": self.bleu, "chrf": self.chrf} if self.f1 is None else {"f1": self.f1}

    def __str__(self) -> str:
        names = {"bleu": "BLEU", "chrf": "chrF", "f1": "bracket F1"}
        figures = (f"{names[name]} {value:.2f}" for name, value in self.scores.items())
        return "  ".join((f"perplexity {perplexity(self.loss):.2f}", *figures))


class Outcome(NamedTuple):
    """State of training at its end, and why it ended."""

    state: TrainState
    reason: Reason
    ema: dict[str, Tensor] | None
    signal: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """Everything about a training that does not change while it runs."""

    sizes: ModelConfig  # of the model
    config: TrainConfig  # with a resolved ``precision``: "fp32" or "bf16"
    folder: Path  # the run; checkpoints go to folder/checkpoints
    log: RunLog
    validate: Callable[[nn.Module], Validation] | None = None
    """Measures the model, which is in eval mode and has the moving average for its weights, if there is one.

    It may raise ``Stopped`` when a stop is requested; then training repeats that validation when it resumes."""
    world: World = ALONE  # the ranks that train together; rank 0 validates, writes checkpoints and logs
    threads: Threads | None = None  # of torch, which other programs may make fewer; None: they stay as they are
    is_tag: Tensor | None = None  # (src_vocab_size,) bool, on the device: ids that token dropout leaves; None: none

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.folder / "checkpoints"


def fit(
    model: Any, batches: BatchStream, job: Job, resume: bool = False, stop_request: StopRequest | None = None
) -> Outcome:
    """Train ``model`` as in section 5 of the paper, with checkpoints, validation and logs.

    With several ranks each calls this with its own model, batches and log. Differs from the paper: gradient clipping,
    the moving average of weights, R-Drop and token dropout, if configured.

    Args:
        model: Any model with ``features(src, tgt_in)`` -> (B, T, d_model) and a ``generator``, on its device.
        batches: An endless stream that knows its position.
        job: Settings, folder, log and validation.
        resume: Continue from the latest complete checkpoint: bit for bit on a CPU with the same number of threads.
        stop_request: Receives Ctrl-C and SIGTERM while ``fit`` runs; None: a new one.

    Returns:
        The last state. The last checkpoint holds the last step.

    Raises:
        DragomanError: Too many updates in a row were not finite, the disk is full, or another rank has failed.
        BundleError: ``resume`` finds no usable checkpoint.
    """
    config, log, world = job.config, job.log, job.world
    broadcast_weights(world, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=config.adam_betas, eps=config.adam_eps, fused=True)
    ema = start_ema(model) if config.ema else None
    learner = Learner(model, optimizer, ema)
    state = TrainState(data=batches.state_dict())
    if resume:
        state = load_checkpoint(_same_checkpoint(world, job.checkpoints), learner, world)
        batches.load_state_dict(state.data)
        state.best_bleu = counted(state.best_bleu, config)  # older versions took chance for the best
        log.forget_after(state.step)
        prune(job, state)  # a kill may have come between a save and this
        log.say(f"resuming at step {state.step:,}")
    else:
        seed_apart(world)
    reason = stop_reason(state, config, batches)
    with stop_request or StopRequest() as stop:
        # The checkpoint may be older than the validation of its step: a signal ended that validation, or the step is
        # the last one only now, by a limit that has changed. Validate first then.
        is_due = reason is not None or state.step % config.validate_every == 0
        if job.validate is not None and state.validated_step < state.step and is_due:
            if run_validation(job, learner, state):
                reason = reason or stop_reason(state, config, batches)
                save(job, learner, state)
            else:  # rank 0 received a signal during the validation
                stop.stop_with_others()
                reason = "signal"

        window, reporter = Window(state), ProgressReporter(state)
        validation_clock = ValidationClock(state.seconds)
        while reason is None:
            # One update. Its time counts towards ``max_minutes``, and so does that of validations and checkpoints.
            started = time.perf_counter()
            state.step += 1
            micro_batches = [next(batches) for _ in range(config.accumulate)]
            rate = learning_rate(state.step, config, job.sizes.d_model, state.seconds)
            result = train_step(model, micro_batches, optimizer, rate, config, job.sizes.pad_id, world, job.is_tag)
            if result.finite:
                state.bad_steps = 0
                if ema is not None:
                    update_ema(ema, model, config.ema, state.step)
            else:
                note_bad_step(job, state, result, micro_batches)
            state.tokens += result.tokens if result.finite else 0
            state.data = batches.state_dict()
            seconds = time.perf_counter() - started
            state.seconds += seconds
            work = flops_of(micro_batches, job.sizes, config)
            adapt_threads(job, state.step, work, seconds)

            # All ranks must leave the loop at the same step, so they agree on the time and on signals after each one.
            must_stop = agree(world, state, stop, work)
            window.add(result)
            reporter.window.add(result)
            reason = stop_reason(state, config, batches) or ("signal" if must_stop else None)
            if state.step % config.log_every == 0 or reason:
                window = window.report(state, batches, rate, log)
            reporter.report(
                state, seconds_left(state, config, batches.epochs_done), batches.epoch, log, reason is not None
            )

            # Validate on schedule and at the end; a signal ends training at once, and the validation is done on resume.
            before = state.seconds
            if job.validate is not None and (validation_clock.is_due(state, config) or (reason and reason != "signal")):
                if run_validation(job, learner, state, reason is not None):
                    reason = reason or stop_reason(state, config, batches)
                else:  # rank 0 received a signal during the validation
                    stop.stop_with_others()
                    reason = "signal"
                validation_clock.seconds += state.seconds - before
            if state.step % config.save_every == 0 or reason:
                save(job, learner, state)
            for sums in (window, reporter.window):  # the speed that is shown is that of updates
                sums.seconds += state.seconds - before
        must_stop = agree(world, state, stop)
    log.event("end", state.step, reason=reason, seconds=state.seconds, tokens=state.tokens, flops=state.flops)
    return Outcome(state, reason, ema, stop.signal if must_stop else None)


def _same_checkpoint(world: World, checkpoints: Path) -> Path:
    """Return the newest complete checkpoint that rank 0 finds."""
    path = run_on_rank_0(world, lambda: latest_checkpoint(checkpoints))
    return standing(step_folder(checkpoints, int(broadcast_from_rank_0(world, step_of(path) if path else 0)[0])))


def adapt_threads(job: Job, step: int, work: float, seconds: float) -> None:
    """Set the threads of the next update after one that took so long, and log each change; the first is printed."""
    threads = job.threads
    if threads is None or not threads.learn(work, seconds):
        return
    job.log.event("threads", step, threads=threads.number)
    if threads.changes == 1:
        job.log.say(
            "other programs compute on these cores too: training compares numbers of threads, and goes on with the "
            f"fastest (--threads {threads.most} keeps {threads.most})"
        )


def agree(world: World, state: TrainState, stop: StopRequest, flops: float = 0.0) -> bool:
    """Add up the operations of all ranks, take the clock of rank 0, and return True if any rank received a signal."""
    seconds = state.seconds if world.rank == 0 else 0.0
    flops, state.seconds, n_signals = total(world, flops, seconds, stop.signal is not None)
    state.flops += flops
    if n_signals:
        stop.stop_with_others()
    return n_signals > 0


def run_validation(job: Job, learner: Learner, state: TrainState, is_last: bool = False) -> bool:
    """Validate on rank 0 and save the weights if they are the best so far; return False if a signal interrupted it."""
    model, validate = learner.model, job.validate
    assert validate is not None

    def work() -> None:
        # The best weights are saved with the moving average in place: they are the weights that were measured.
        with contextlib.suppress(Stopped), ema_in_place(model, learner.ema):
            validation = validate(model)
            state.validated_step = state.step
            note_validation(validation, state, job, is_last)
            if state.best_step == state.step:
                save_best(job.checkpoints, model, state.step, validation)

    started = time.perf_counter()
    run_on_rank_0(job.world, work)
    # All that ``stop_reason`` looks at must be the same on all ranks, which leave the loop together.
    seconds, since_best, state.best_bleu, validated = broadcast_from_rank_0(
        job.world, time.perf_counter() - started, state.since_best, state.best_bleu, state.validated_step
    )
    state.since_best, state.validated_step = int(since_best), int(validated)
    state.seconds += seconds
    return state.validated_step == state.step


def save(job: Job, learner: Learner, state: TrainState) -> None:
    """Write a checkpoint and delete those that are not needed any more.

    The time of this is added to the clock of the run. The checkpoint itself has the clock as it was before.
    """
    started = time.perf_counter()
    check_same_weights(job.world, learner.model)
    random = random_state(job.world)

    run_on_rank_0(job.world, lambda: save_checkpoint(job.checkpoints, learner, state, random))
    prune(job, state)
    # All ranks leave the loop by the same clock, that of rank 0.
    state.seconds += broadcast_from_rank_0(job.world, time.perf_counter() - started)[0]


def prune(job: Job, state: TrainState) -> None:
    """Delete the checkpoints that are not needed any more."""
    config, folder = job.config, job.checkpoints
    run_on_rank_0(job.world, lambda: prune_checkpoints(folder, max(config.average, 1), config.save_every, state.step))


def stop_reason(state: TrainState, config: TrainConfig, batches: BatchStream) -> Reason | None:
    """Return the limit that has been reached, or None."""
    if state.step >= config.max_steps:
        return "max_steps"
    if config.max_epochs is not None and batches.epochs_done >= config.max_epochs:
        return "max_epochs"
    if config.max_minutes is not None and state.seconds >= 60 * config.max_minutes:
        return "max_minutes"
    if config.patience is not None and state.since_best >= config.patience:
        return "patience"
    if config.goal is not None and state.best_bleu >= config.goal:
        return "goal"
    return None


def seconds_left(state: TrainState, config: TrainConfig, epochs_done: float) -> float:
    """Return the seconds until the first limit is reached, at the speed so far; patience cannot be foreseen."""
    left = [(config.max_steps - state.step) / max(state.step, 1) * state.seconds]
    if config.max_epochs is not None and epochs_done:
        left.append((config.max_epochs - epochs_done) / epochs_done * state.seconds)
    if config.max_minutes is not None:
        left.append(60 * config.max_minutes - state.seconds)
    return max(0.0, min(left))


def shape_of(batch: Batch) -> tuple[int, int, int]:
    """Return the number of rows, the source length and the target length."""
    return batch.src.size(0), batch.src.size(1), batch.tgt_in.size(1)


def flops_of(batches: Sequence[Batch], model_config: ModelConfig, config: TrainConfig) -> float:
    """Return the floating-point operations of this rank in one step."""
    passes = 2 if config.r_drop else 1
    return passes * sum(training_flops(model_config, *shape_of(batch)) for batch in batches)


def note_bad_step(job: Job, state: TrainState, result: StepResult, batches: Sequence[Batch]) -> None:
    """Count and log a skipped update, with the ranks on which something was not finite, and their pairs.

    Raises:
        DragomanError: There were too many in a row.
    """
    state.bad_steps += 1
    state.skipped += 1
    # Each rank sends whether its part was finite, and the first 8 pairs of each of its batches, padded with -1.
    own_report = torch.full((1 + 8 * len(batches),), -1)
    own_report[0] = result.mine_finite
    for i, batch in enumerate(batches):
        own_report[1 + 8 * i :][: min(8, len(batch.indices))] = batch.indices[:8]
    by_rank = [row.tolist() for row in gathered(job.world, own_report)]
    ranks = [rank for rank, (is_finite, *_) in enumerate(by_rank) if not is_finite] or list(range(job.world.size))
    pairs = [i for rank in ranks for i in by_rank[rank][1:] if i >= 0]  # indices in store/train, from 0
    loss, grad_norm = str(result.smoothed), str(result.grad_norm)
    job.log.event("skipped", state.step, loss=loss, grad_norm=grad_norm, ranks=ranks, pairs=pairs)
    where = f" on rank {', '.join(map(str, ranks))}" if job.world.size > 1 else ""
    some = f"pairs {pairs[:4]} ... of store/train"
    job.log.say(f"step {state.step:,}: loss or gradient not finite{where}, update skipped ({some})")
    if state.bad_steps >= job.config.max_bad_steps:
        again = retrain(job.folder, lower_rate(job.config, job.sizes.d_model, bool(parent_of(job.folder))))
        raise DragomanError(
            f"step {state.step}: training diverged: {state.bad_steps} updates in a row had a non-finite loss or "
            f"gradient; none touched the weights, and the checkpoints are intact. Train again "
            f"with a lower learning rate: {again}"
        )


def counted(quality: float, config: TrainConfig) -> float:
    """Return the quality of a validation as it is compared with that of others: 0 if it is below ``LEAST_BLEU``.

    Such a quality is chance: nonsense with BLEU 0.02 is no better than nonsense with 0. Only a goal below that says
    that less counts.
    """
    least = LEAST_BLEU if config.goal is None else min(LEAST_BLEU, config.goal)
    return quality if quality >= least else min(quality, 0.0)


def note_validation(validation: Validation, state: TrainState, job: Job, is_last: bool = False) -> None:
    """Log a validation with its samples, and record whether it is the best so far.

    Of two validations with equal quality the one with the lower loss is better. While the quality counts as 0, a lower
    loss is also progress for ``patience``: a model may train for long before its first correct words.
    """
    log, quality = job.log, counted(validation.quality, job.config)
    best_quality, loss = state.best_bleu, math.inf if math.isnan(validation.loss) else validation.loss
    best_loss = math.inf if state.best_loss is None else state.best_loss
    better = (quality, -loss) > (best_quality, -best_loss)
    gains = quality > best_quality or (better and quality == 0)
    state.since_best = 0 if gains else state.since_best + 1
    if better:
        state.best_bleu, state.best_step = quality, state.step
        state.best_loss = loss if math.isfinite(loss) else None
    log.event(
        "validation", state.step, loss=validation.loss, perplexity=perplexity(validation.loss), **validation.scores,
        best=better,
        samples=[dict(zip(("src", "ref", "hyp"), sample, strict=True)) for sample in validation.samples],
    )  # fmt: skip
    is_early = is_nonsense(validation) and state.tokens < EARLY_TOKENS
    remark = "  (samples look like nonsense: normal this early)" if is_early else ""
    log.say(f"  validation: {validation}{'  best so far' if better else ''}{'' if is_last else remark}")
    log.say(_listed(validation, SHOWN))
    log.samples(f"step {state.step}{remark}\n{_listed(validation)}\n")


def _listed(validation: Validation, limit: int | None = None) -> str:
    """Format the samples of a validation, each text cut to ``limit`` characters."""
    return "\n".join(
        f"    {name}: {text if limit is None or len(text) <= limit else text[: limit - 1] + '…'}"
        for sample in validation.samples
        for name, text in zip(("src", "ref", "hyp"), sample, strict=True)
    )


def is_nonsense(validation: Validation) -> bool:
    """Return True if the translations of a validation are nonsense, judged by their score alone."""
    return validation.quality < SENSE


def save_best(checkpoints: Path, model: nn.Module, step: int, validation: Validation) -> None:
    """Save the weights of the best validation, with its scores by name."""
    weights = untied(model)
    facts = {"step": step, **validation.scores}
    with sealed_folder(checkpoints / "best", facts, n_bytes(weights)) as folder:
        save_weights(folder / "model.safetensors", weights)


@contextlib.contextmanager
def ema_in_place(model: nn.Module, ema: dict[str, Tensor] | None) -> Iterator[None]:
    """Set the model to eval mode and swap the moving average into its weights while the body runs."""

    @torch.no_grad()
    def exchange() -> None:
        for weight, average in zip(untied(model).values(), (ema or {}).values(), strict=ema is not None):
            saved = weight.clone()
            weight.copy_(average)
            average.copy_(saved)

    model.eval()
    exchange()
    try:
        yield
    finally:
        exchange()


@dataclass
class ValidationClock:
    """Time that validations took since training began or was resumed."""

    began: float  # ``state.seconds`` at that time
    seconds: float = 0.0

    def is_due(self, state: TrainState, config: TrainConfig) -> bool:
        """Return True if a validation is scheduled for this step and the clock leaves time for it."""
        has_time = config.max_minutes is None or self.seconds <= VALIDATION_SHARE * (state.seconds - self.began)
        return state.step % config.validate_every == 0 and has_time


class Window:
    """Sums over the updates since the last report."""

    def __init__(self, state: TrainState) -> None:
        self.plain, self.tokens, self.grad_norm = 0.0, 0, 0.0
        self.seconds = state.seconds

    def add(self, result: StepResult) -> None:
        """Add one update."""
        self.grad_norm = result.grad_norm
        if result.finite:
            self.plain += result.plain
            self.tokens += result.tokens

    @property
    def loss(self) -> float:
        """Loss in nats per target token; nan if all updates were skipped."""
        return self.plain / self.tokens if self.tokens else math.nan

    def speed(self, state: TrainState) -> float:
        """Return target tokens per second."""
        return self.tokens / max(state.seconds - self.seconds, 1e-9)

    def report(self, state: TrainState, batches: BatchStream, rate: float, log: RunLog) -> Window:
        """Log the updates since the last report; return the next window."""
        log.event(
            "train", state.step, epoch=batches.epoch, loss=self.loss, perplexity=perplexity(self.loss), lr=rate,
            grad_norm=self.grad_norm if math.isfinite(self.grad_norm) else str(self.grad_norm),
            tokens_per_s=self.speed(state), tokens=state.tokens, flops=state.flops, seconds=state.seconds,
        )  # fmt: skip
        return Window(state)


class ProgressReporter:
    """Progress reports on the console: the first soon, then at growing intervals, with a live line in between."""

    FIRST_S, EVERY_S, MOST_S = 5.0, 10.0, 60.0

    def __init__(self, state: TrainState) -> None:
        self.window = Window(state)
        now = time.monotonic()
        self._shown, self._due, self._every = now, now + self.FIRST_S, self.EVERY_S

    def report(self, state: TrainState, left: float, epoch: int, log: RunLog, is_last: bool) -> None:
        """Print the progress if a report is due or training ends; ``left`` is the estimated seconds until then."""
        now = time.monotonic()
        if not is_last and now < self._due and now - self._shown < REWRITE_S:
            return
        parts = (
            f"{int(100 * state.seconds / max(state.seconds + left, 1e-9)):3d}%  step {state.step:,}",
            f"perplexity {perplexity(self.window.loss):.2f}",
            f"{duration(left)} left" if left else f"{duration(state.seconds)} in all",
            f"{self.window.speed(state):,.0f} tokens/s",
            f"epoch {epoch + 1}",
        )
        self._shown = now
        if is_last or now >= self._due:
            log.say(*parts)
            self.window = Window(state)
            self._due, self._every = now + self._every, min(1.5 * self._every, self.MOST_S)
        else:
            log.show(*parts)
