"""The training loop. ``fit`` reads from top to bottom; what it calls is small and stands below it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
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
from dragoman.training.averaging import start_ema, update_ema
from dragoman.training.checkpoint import (
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
    check_alike,
    gathered,
    of_rank_0,
    on_rank_0,
    start_alike,
    total,
)
from dragoman.training.flops import training_flops
from dragoman.training.log import EARLY_TOKENS, SENSE, RunLog
from dragoman.training.loss import perplexity
from dragoman.training.schedule import learning_rate
from dragoman.training.signals import Stopped, StopRequest
from dragoman.training.update import StepResult, train_step

SHOWN = 200
"""Characters of a sample on the console: a model that loops says the same a hundred times. ``samples.txt`` has all."""

Reason = Literal["max_steps", "max_epochs", "max_minutes", "patience", "signal"]


class Validation(NamedTuple):
    """What a validation found; ``loss`` in nats per target token, unsmoothed."""

    loss: float
    bleu: float
    chrf: float
    samples: list[tuple[str, str, str]]  # source, reference, translation
    f1: float | None = None  # of labelled brackets, where the task is parsing: BLEU and chrF are nan then

    @property
    def quality(self) -> float:
        """What the best validation is the best by."""
        return self.bleu if self.f1 is None else self.f1

    @property
    def scores(self) -> dict[str, float]:
        """What there is to say of the task, in per cent."""
        return {"bleu": self.bleu, "chrf": self.chrf} if self.f1 is None else {"f1": self.f1}

    def __str__(self) -> str:
        names = {"bleu": "BLEU", "chrf": "chrF", "f1": "bracket F1"}
        figures = (f"{names[name]} {value:.2f}" for name, value in self.scores.items())
        return "  ".join((f"perplexity {perplexity(self.loss):.2f}", *figures))


class Outcome(NamedTuple):
    """How training ended."""

    state: TrainState
    reason: Reason
    ema: dict[str, Tensor] | None
    signal: int | None = None


def fit(
    model: Any,
    model_config: ModelConfig,
    batches: BatchStream,
    config: TrainConfig,
    folder: Path,
    log: RunLog,
    validate: Callable[[nn.Module], Validation] | None = None,
    resume: bool = False,
    world: World = ALONE,
    stop: StopRequest | None = None,
) -> Outcome:
    """Train ``model`` as in section 5 of the paper, with checkpoints, validation and logs.

    Args:
        model: Anything with ``features(src, tgt_in)`` (B, T, d_model) and a ``generator``, on its device.
        batches: An endless stream that knows its position.
        config: How to train; ``precision`` is resolved ("fp32" or "bf16").
        folder: The run; checkpoints go to ``folder/checkpoints``.
        validate: Called with the model in eval mode, with the moving average for its weights, if there is one. It may
            raise ``Stopped`` when ``stop`` is asked for; the validation is done when training goes on, then.
        resume: Go on from the latest whole checkpoint, bit for bit on a CPU with the same number of threads.
        world: With other ranks: each calls this with its own model, batches and log; validation, checkpoints and log
            are rank 0's.
        stop: By which Ctrl-C and SIGTERM ask to stop, opened here.

    Returns:
        How it ended; the last checkpoint holds the last step.

    Raises:
        DragomanError: Too many updates in a row were not finite, the disk is full, or another rank has failed.
        BundleError: ``resume`` finds no usable checkpoint.
    """
    start_alike(world, model)
    checkpoints = folder / "checkpoints"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=config.adam_betas, eps=config.adam_eps, fused=True)
    ema = start_ema(model) if config.ema else None
    state = TrainState(data=batches.state_dict())
    if resume:
        state = load_checkpoint(_same_checkpoint(world, checkpoints), model, optimizer, ema, world)
        batches.load_state_dict(state.data)
        log.forget_after(state.step)
        log.say(f"resuming at step {state.step:,}")
    else:
        seed_apart(world)
    window, tidings = Window(state), Tidings(state)
    reason = stop_reason(state, config, batches)
    with stop or StopRequest() as stop:
        if validate is not None and state.validated_step < state.step and (
            reason is not None or state.step % config.validate_every == 0
        ):  # fmt: skip
            # a signal stopped it before this validation, or stopped it here and now this is the end: which is validated
            if run_validation(world, validate, model, ema, state, log, checkpoints):
                save(world, checkpoints, config, model, optimizer, ema, state)
            else:
                reason = stopped(stop)
        while reason is None:
            started = time.perf_counter()
            state.step += 1
            micro_batches = [next(batches) for _ in range(config.accumulate)]
            rate = learning_rate(state.step, config, model_config.d_model, state.seconds)
            result = train_step(model, micro_batches, optimizer, rate, config, model_config.pad_id, world)
            if result.finite:
                state.bad_steps = 0
                if ema is not None:
                    update_ema(ema, model, config.ema, state.step)
            else:
                note_bad_step(state, config, log, result, micro_batches, world)
            state.tokens += result.tokens if result.finite else 0
            state.data = batches.state_dict()
            state.seconds += time.perf_counter() - started
            asked = agree(world, state, stop, flops_of(micro_batches, model_config, config))
            window.add(result)
            tidings.window.add(result)

            reason = stop_reason(state, config, batches) or ("signal" if asked else None)
            if state.step % config.log_every == 0 or reason:
                window = window.report(state, batches, rate, log)
            tidings.tell(
                state, seconds_left(state, config, batches.epochs_done), batches.epoch, log, reason is not None
            )
            if validate is not None and (state.step % config.validate_every == 0 or (reason and reason != "signal")):
                before = state.seconds
                if run_validation(world, validate, model, ema, state, log, checkpoints, reason is not None):
                    reason = reason or stop_reason(state, config, batches)
                else:
                    reason = stopped(stop)
                for each in (window, tidings.window):
                    each.seconds += state.seconds - before
            if state.step % config.save_every == 0 or reason:
                save(world, checkpoints, config, model, optimizer, ema, state)
        asked = agree(world, state, stop)
    log.event("end", state.step, reason=reason, seconds=state.seconds, tokens=state.tokens, flops=state.flops)
    return Outcome(state, reason, ema, stop.signal if asked else None)


def _same_checkpoint(world: World, checkpoints: Path) -> Path:
    """The newest whole checkpoint that rank 0 finds."""
    path = on_rank_0(world, lambda: latest_checkpoint(checkpoints))
    return standing(step_folder(checkpoints, int(of_rank_0(world, step_of(path) if path else 0)[0])))


def agree(world: World, state: TrainState, stop: StopRequest, flops: float = 0.0) -> bool:
    """Count what all ranks did, go by the clock of rank 0, and say whether any rank was asked to stop."""
    seconds = state.seconds if world.rank == 0 else 0.0
    flops, state.seconds, n_asked = total(world, flops, seconds, stop.signal is not None)
    state.flops += flops
    if n_asked:
        stop.others_were_asked()
    return n_asked > 0


def run_validation(
    world: World, validate: Callable[[nn.Module], Validation], model: nn.Module, ema: dict[str, Tensor] | None,
    state: TrainState, log: RunLog, checkpoints: Path, is_last: bool = False,
) -> bool:  # fmt: skip
    """Validate on rank 0, and keep the weights if they are the best so far; returns whether that came to its end."""

    def work() -> None:
        # what is measured is also what is kept as the best
        with contextlib.suppress(Stopped), ema_in_place(model, ema):
            found = validate(model)
            state.validated_step = state.step
            note_validation(found, state, log, is_last)
            if state.best_step == state.step:
                save_best(checkpoints, model, state.step, found)

    started = time.perf_counter()
    on_rank_0(world, work)
    seconds, since_best, validated = of_rank_0(
        world, time.perf_counter() - started, state.since_best, state.validated_step
    )
    state.since_best, state.validated_step = int(since_best), int(validated)
    state.seconds += seconds
    return state.validated_step == state.step


def stopped(stop: StopRequest) -> Reason:
    """A validation was left because rank 0 was asked to stop, and so all stop."""
    stop.others_were_asked()
    return "signal"


def save(
    world: World, checkpoints: Path, config: TrainConfig, model: nn.Module, optimizer: torch.optim.Optimizer,
    ema: dict[str, Tensor] | None, state: TrainState,
) -> None:  # fmt: skip
    """Write a checkpoint and delete those that are not needed any more."""
    check_alike(world, model)
    random = random_state(world)

    def work() -> None:
        save_checkpoint(checkpoints, model, optimizer, ema, state, random)
        prune_checkpoints(checkpoints, max(config.average, 1), config.save_every, state.step)

    on_rank_0(world, work)


def stop_reason(state: TrainState, config: TrainConfig, batches: BatchStream) -> Reason | None:
    """Which limit has been reached, if any."""
    if state.step >= config.max_steps:
        return "max_steps"
    if config.max_epochs is not None and batches.epochs_done >= config.max_epochs:
        return "max_epochs"
    if config.max_minutes is not None and state.seconds >= 60 * config.max_minutes:
        return "max_minutes"
    if config.patience is not None and state.since_best >= config.patience:
        return "patience"
    return None


def seconds_left(state: TrainState, config: TrainConfig, epochs_done: float) -> float:
    """Until the first limit is reached, at the speed so far; patience cannot be foreseen."""
    left = [(config.max_steps - state.step) / max(state.step, 1) * state.seconds]
    if config.max_epochs is not None and epochs_done:
        left.append((config.max_epochs - epochs_done) / epochs_done * state.seconds)
    if config.max_minutes is not None:
        left.append(60 * config.max_minutes - state.seconds)
    return max(0.0, min(left))


def shape_of(batch: Batch) -> tuple[int, int, int]:
    """Rows, source length and target length."""
    return batch.src.size(0), batch.src.size(1), batch.tgt_in.size(1)


def flops_of(batches: Sequence[Batch], model_config: ModelConfig, config: TrainConfig) -> float:
    """What this rank computes in one step."""
    passes = 2 if config.r_drop else 1
    return passes * sum(training_flops(model_config, *shape_of(batch)) for batch in batches)


def note_bad_step(
    state: TrainState, config: TrainConfig, log: RunLog, result: StepResult, batches: Sequence[Batch],
    world: World = ALONE,
) -> None:  # fmt: skip
    """Count and log a skipped update, with the ranks where something was not finite, and their pairs.

    Raises:
        DragomanError: It was one too many in a row.
    """
    state.bad_steps += 1
    state.skipped += 1
    mine = torch.full((1 + 8 * len(batches),), -1)
    mine[0] = result.mine_finite
    for i, batch in enumerate(batches):
        mine[1 + 8 * i :][: min(8, len(batch.indices))] = batch.indices[:8]
    told = [row.tolist() for row in gathered(world, mine)]
    ranks = [rank for rank, (fine, *_) in enumerate(told) if not fine] or list(range(world.size))
    pairs = [i for rank in ranks for i in told[rank][1:] if i >= 0]  # their numbers in store/train, from 0
    loss, grad_norm = str(result.smoothed), str(result.grad_norm)
    log.event("skipped", state.step, loss=loss, grad_norm=grad_norm, ranks=ranks, pairs=pairs)
    where = f" on rank {', '.join(map(str, ranks))}" if world.size > 1 else ""
    some = f"pairs {pairs[:4]} ... of store/train"
    log.say(f"step {state.step:,}: loss or gradient not finite{where}, update skipped ({some})")
    if state.bad_steps >= config.max_bad_steps:
        raise DragomanError(
            f"step {state.step}: {state.bad_steps} updates in a row had a non-finite loss or gradient; none "
            "touched the weights, and the checkpoints are intact. Train a new run with a lower train.lr, more "
            "train.warmup_steps or train.clip_norm=1"
        )


def note_validation(found: Validation, state: TrainState, log: RunLog, is_last: bool = False) -> None:
    """Log a validation with three samples, and see whether it is the best so far.

    Of equal quality the one with the lower loss is better; while the quality is 0 that also keeps patience from
    counting: a model may have a long way to its first right words.
    """
    before, loss = state.best_bleu, math.inf if math.isnan(found.loss) else found.loss
    best_loss = math.inf if state.best_loss is None else state.best_loss
    better = (found.quality, -loss) > (before, -best_loss)
    gains = found.quality > before or (better and found.quality == 0)
    state.since_best = 0 if gains else state.since_best + 1
    if better:
        state.best_bleu, state.best_step = found.quality, state.step
        state.best_loss = loss if math.isfinite(loss) else None
    log.event(
        "validation", state.step, loss=found.loss, perplexity=perplexity(found.loss), **found.scores, best=better,
        samples=[dict(zip(("src", "ref", "hyp"), sample, strict=True)) for sample in found.samples],
    )  # fmt: skip
    is_early = makes_no_sense(found) and state.tokens < EARLY_TOKENS
    early = "  (samples look like nonsense: normal this early)" if is_early else ""
    log.say(f"  validation: {found}{'  best so far' if better else ''}{'' if is_last else early}")
    log.say(_listed(found, SHOWN))
    log.samples(f"step {state.step}{early}\n{_listed(found)}\n")


def _listed(found: Validation, limit: int | None = None) -> str:
    """The samples of a validation, each text with at most ``limit`` characters."""
    return "\n".join(
        f"    {name}: {text if limit is None or len(text) <= limit else text[: limit - 1] + '…'}"
        for sample in found.samples
        for name, text in zip(("src", "ref", "hyp"), sample, strict=True)
    )


def makes_no_sense(found: Validation) -> bool:
    """Whether the translations of a validation are nonsense, as far as a figure can tell."""
    return found.quality < SENSE


def save_best(checkpoints: Path, model: nn.Module, step: int, found: Validation) -> None:
    """Keep the weights of the best validation, with its scores under their names."""
    weights = untied(model)
    facts = {"step": step, **found.scores}
    with sealed_folder(checkpoints / "best", facts, n_bytes(weights)) as aside:
        save_weights(aside / "model.safetensors", weights)


@contextlib.contextmanager
def ema_in_place(model: nn.Module, ema: dict[str, Tensor] | None) -> Iterator[None]:
    """Put the model in eval mode and the moving average in its weights' place; the weights come back afterwards."""

    @torch.no_grad()
    def exchange() -> None:
        for mine, other in zip(untied(model).values(), (ema or {}).values(), strict=ema is not None):
            kept = mine.clone()
            mine.copy_(other)
            other.copy_(kept)

    model.eval()
    exchange()
    try:
        yield
    finally:
        exchange()


class Window:
    """Sums between two reports."""

    def __init__(self, state: TrainState) -> None:
        self.plain, self.tokens, self.grad_norm = 0.0, 0, 0.0
        self.seconds = state.seconds

    def add(self, result: StepResult) -> None:
        """Count one update."""
        self.grad_norm = result.grad_norm
        if result.finite:
            self.plain += result.plain
            self.tokens += result.tokens

    @property
    def loss(self) -> float:
        """In nats per target token; nan where all updates were skipped."""
        return self.plain / self.tokens if self.tokens else math.nan

    def speed(self, state: TrainState) -> float:
        """Target tokens a second."""
        return self.tokens / max(state.seconds - self.seconds, 1e-9)

    def report(self, state: TrainState, batches: BatchStream, rate: float, log: RunLog) -> Window:
        """Log what happened since the last report; returns the next window."""
        log.event(
            "train", state.step, epoch=batches.epoch, loss=self.loss, perplexity=perplexity(self.loss), lr=rate,
            grad_norm=self.grad_norm if math.isfinite(self.grad_norm) else str(self.grad_norm),
            tokens_per_s=self.speed(state), tokens=state.tokens, flops=state.flops, seconds=state.seconds,
        )  # fmt: skip
        return Window(state)


class Tidings:
    """What people read while a model trains: a line soon, then less and less often; a live line in between."""

    FIRST_S, EVERY_S, MOST_S = 5.0, 10.0, 60.0

    def __init__(self, state: TrainState) -> None:
        self.window = Window(state)
        now = time.monotonic()
        self._shown, self._due, self._every = now, now + self.FIRST_S, self.EVERY_S

    def tell(self, state: TrainState, left: float, epoch: int, log: RunLog, is_last: bool) -> None:
        """Say how far training is, if it is time to: ``left`` seconds before its end; in words the first epoch is 1."""
        now = time.monotonic()
        if not is_last and now < self._due and now - self._shown < REWRITE_S:
            return
        parts = (
            f"{state.seconds / max(state.seconds + left, 1e-9):4.0%}  step {state.step:,}",
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
