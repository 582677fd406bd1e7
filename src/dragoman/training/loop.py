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

from dragoman.bundle import save_weights, untied
from dragoman.config import ModelConfig, TrainConfig
from dragoman.data.batching import Batch, BatchStream
from dragoman.errors import DragomanError
from dragoman.files import sealed_folder
from dragoman.training.averaging import start_ema, update_ema
from dragoman.training.checkpoint import (
    TrainState,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)
from dragoman.training.flops import training_flops
from dragoman.training.log import RunLog, duration, quantity
from dragoman.training.loss import loss_from_features, perplexity, r_drop_loss
from dragoman.training.schedule import learning_rate
from dragoman.training.signals import StopRequest

Reason = Literal["max_steps", "max_epochs", "max_minutes", "patience", "signal"]


EARLY_TOKENS = 3_000_000
"""Up to so many target tokens translations that make no sense are no cause for concern."""


class Validation(NamedTuple):
    """What a validation found; ``loss`` in nats per target token, unsmoothed."""

    loss: float
    bleu: float
    chrf: float
    samples: list[tuple[str, str, str]]  # source, reference, translation


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
) -> Outcome:
    """Train ``model`` as in section 5 of the paper, with checkpoints, validation and logs.

    Args:
        model: Anything with ``features(src, tgt_in)`` (B, T, d_model) and a ``generator``, on its device.
        batches: An endless stream that knows its position.
        config: How to train; ``precision`` is resolved ("fp32" or "bf16").
        folder: The run; checkpoints go to ``folder/checkpoints``.
        validate: Called with the model in eval mode, with the moving average for its weights, if there is one.
        resume: Go on from the latest whole checkpoint, bit for bit on a CPU with the same number of threads.

    Returns:
        How it ended; the last checkpoint holds the last step.

    Raises:
        DragomanError: Too many updates in a row were not finite, or the disk is full.
        BundleError: ``resume`` finds no usable checkpoint.
    """
    checkpoints = folder / "checkpoints"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=config.adam_betas, eps=config.adam_eps, fused=True)
    ema = start_ema(model) if config.ema else None
    state = TrainState(data=batches.state_dict())
    if resume:
        state = load_checkpoint(latest_checkpoint(checkpoints), model, optimizer, ema)
        batches.load_state_dict(state.data)
        log.forget_after(state.step)
        log.say(f"resuming at step {state.step:,}")
    window = Window(state)
    reason = ended(state, config, batches)
    with StopRequest() as stop:
        while reason is None:
            started = time.perf_counter()
            state.step += 1
            micro_batches = [next(batches) for _ in range(config.accumulate)]
            rate = learning_rate(state.step, config, model_config.d_model, state.seconds)
            result = train_step(model, micro_batches, optimizer, rate, config, model_config.pad_id)
            if result.finite:
                state.bad_steps = 0
                if ema is not None:
                    update_ema(ema, model, config.ema, state.step)
            else:
                note_bad_step(state, config, log, result, micro_batches)
            state.tokens += result.tokens if result.finite else 0
            passes = 2 if config.r_drop else 1
            state.flops += passes * sum(training_flops(model_config, *shape_of(batch)) for batch in micro_batches)
            state.data = batches.state_dict()
            state.seconds += time.perf_counter() - started
            window.add(result)

            reason = ended(state, config, batches) or ("signal" if stop.signal else None)
            if state.step % config.log_every == 0 or reason:
                window = window.report(state, config, batches.epoch, rate, log)
            if validate is not None and (state.step % config.validate_every == 0 or (reason and reason != "signal")):
                started = time.perf_counter()
                with ema_in_place(model, ema):  # what is measured is also what is kept as the best
                    note_validation(validate(model), state, log)
                    if state.best_step == state.step:
                        save_best(checkpoints, model, state)
                window.seconds += time.perf_counter() - started
                state.seconds += time.perf_counter() - started
                reason = reason or ended(state, config, batches)
            if state.step % config.save_every == 0 or reason:
                save_checkpoint(checkpoints, model, optimizer, ema, state)
                prune_checkpoints(checkpoints, max(config.average, 1), config.save_every, state.step)
    log.event("end", state.step, reason=reason, seconds=state.seconds, tokens=state.tokens, flops=state.flops)
    return Outcome(state, reason, ema, stop.signal)


class StepResult(NamedTuple):
    """One update: losses summed over ``tokens`` target tokens, in nats."""

    smoothed: float
    plain: float
    tokens: int
    grad_norm: float
    finite: bool


def train_step(
    model: Any,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    rate: float,
    config: TrainConfig,
    pad_id: int,
) -> StepResult:
    """Make one update from one or more micro-batches, as if they were one batch.

    The loss is divided by the tokens of all of them before any backward pass. Where the loss or the gradient is not
    finite, the weights and the optimiser stay as they are.
    """
    model.train()
    device = next(model.parameters()).device
    tokens = sum(batch.n_tgt_tokens for batch in batches)
    smoothed = plain = torch.zeros((), device=device)
    for batch in batches:
        batch = batch.to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bf16"):
            if config.r_drop:
                features = model.features(batch.src.repeat(2, 1), batch.tgt_in.repeat(2, 1))  # (2B, T, d_model)
                loss, nll = r_drop_loss(
                    features, model.generator, batch.tgt_out, pad_id, config.label_smoothing, config.r_drop
                )
            else:
                features = model.features(batch.src, batch.tgt_in)  # (B, T, d_model)
                loss, nll = loss_from_features(features, model.generator, batch.tgt_out, pad_id, config.label_smoothing)
        torch.autograd.backward(loss / tokens)
        smoothed, plain = smoothed + loss.detach(), plain + nll.detach()
    grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    grad_norm = torch.nn.utils.get_total_norm(grads)
    finite = math.isfinite(smoothed.item()) and math.isfinite(grad_norm.item())
    if finite:
        if config.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(model.parameters(), config.clip_norm, grad_norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return StepResult(smoothed.item(), plain.item(), tokens, grad_norm.item(), finite)


def ended(state: TrainState, config: TrainConfig, batches: BatchStream) -> Reason | None:
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


def shape_of(batch: Batch) -> tuple[int, int, int]:
    """Rows, source length and target length."""
    return batch.src.size(0), batch.src.size(1), batch.tgt_in.size(1)


def note_bad_step(
    state: TrainState, config: TrainConfig, log: RunLog, result: StepResult, batches: Sequence[Batch]
) -> None:
    """Count and log a skipped update.

    Raises:
        DragomanError: It was one too many in a row.
    """
    state.bad_steps += 1
    state.skipped += 1
    pairs = [int(i) for batch in batches for i in batch.indices[:8]]  # their numbers in the store, from 0
    log.event("skipped", state.step, loss=str(result.smoothed), grad_norm=str(result.grad_norm), pairs=pairs)
    log.say(f"step {state.step:,}: loss or gradient not finite, update skipped (pairs {pairs[:4]} ... of store/train)")
    if state.bad_steps >= config.max_bad_steps:
        raise DragomanError(
            f"step {state.step}: {state.bad_steps} updates in a row had a non-finite loss or gradient; none "
            "touched the weights, and the checkpoints are whole. Train a new run with a lower train.lr, more "
            "train.warmup_steps or train.clip_norm=1"
        )


def note_validation(found: Validation, state: TrainState, log: RunLog) -> None:
    """Log a validation with three samples, and see whether it is the best so far."""
    better = found.bleu > state.best_bleu
    if better:
        state.best_bleu, state.best_step, state.since_best = found.bleu, state.step, 0
    else:
        state.since_best += 1
    log.event(
        "validation", state.step, loss=found.loss, perplexity=perplexity(found.loss), bleu=found.bleu, chrf=found.chrf,
        best=better, samples=[dict(zip(("src", "ref", "hyp"), sample, strict=True)) for sample in found.samples],
    )  # fmt: skip
    is_early = found.bleu < 5 and state.tokens < EARLY_TOKENS
    early = "  (samples look like nonsense: normal this early)" if is_early else ""
    log.say(
        f"  validation: perplexity {perplexity(found.loss):.2f}  BLEU {found.bleu:.2f}  chrF {found.chrf:.2f}"
        f"{'  best so far' if better else ''}{early}"
    )
    lines = [f"    src: {src}\n    ref: {ref}\n    hyp: {hyp}" for src, ref, hyp in found.samples]
    log.say("\n".join(lines))
    log.samples(f"step {state.step}{early}\n" + "\n".join(lines) + "\n")


def save_best(checkpoints: Path, model: nn.Module, state: TrainState) -> None:
    """Keep the weights of the best validation."""
    with sealed_folder(checkpoints / "best", {"step": state.step, "bleu": state.best_bleu}) as aside:
        save_weights(aside / "model.safetensors", untied(model))


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

    def report(self, state: TrainState, config: TrainConfig, epoch: int, rate: float, log: RunLog) -> Window:
        """Log and say what happened since the last report; returns the next window."""
        seconds = max(state.seconds - self.seconds, 1e-9)
        loss = self.plain / self.tokens if self.tokens else math.nan  # all were skipped
        speed = self.tokens / seconds
        eta = (config.max_steps - state.step) * state.seconds / max(state.step, 1)
        if config.max_minutes is not None:
            eta = min(eta, max(0.0, 60 * config.max_minutes - state.seconds))
        log.event(
            "train", state.step, epoch=epoch, loss=loss, perplexity=perplexity(loss), lr=rate,
            grad_norm=self.grad_norm if math.isfinite(self.grad_norm) else str(self.grad_norm),
            tokens_per_s=speed, tokens=state.tokens, flops=state.flops, seconds=state.seconds,
        )  # fmt: skip
        log.say(
            f"step {state.step:,}/{config.max_steps:,}  epoch {epoch}  perplexity {perplexity(loss):.2f}  "
            f"lr {rate:.2e}  {speed:,.0f} tokens/s  {quantity(state.flops)}FLOP  "
            f"{duration(state.seconds)} so far, about {duration(eta)} left"
        )
        return Window(state)
