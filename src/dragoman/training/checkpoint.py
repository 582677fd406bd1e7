"""What resumes a run: weights, optimiser, moving average, order of the data, random state. No pickle.

checkpoints/step_00002000/
  model.safetensors       the weights being trained
  optimizer.safetensors   Adam's two moments, under ``exp_avg.NAME`` and ``exp_avg_sq.NAME``
  ema.safetensors         if there is a moving average
  random.safetensors      the state of torch's generators; those of rank 1, 2 ... as ``cpu.1``, ``cuda.1`` ...
  state.json              step, counters, the best so far, position in the data
  manifest.json           written last: SHA-256 of each file
checkpoints/best/         the weights of the best validation alone
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import BundleError
from dragoman.files import check_sealed, sealed_folder, standing
from dragoman.model.weights import load_into, n_bytes, read_weights, save_weights, untied
from dragoman.training.distributed import ALONE, World, gathered

logger = logging.getLogger(__name__)


@dataclass
class TrainState:
    """The counters of a run; all of it is saved and restored."""

    step: int = 0  # updates made, skipped ones included
    tokens: int = 0  # target tokens learned from
    flops: float = 0.0
    seconds: float = 0.0  # of training, validation included, over all parts of the run
    bad_steps: int = 0  # updates in a row that were skipped for a non-finite loss or gradient
    skipped: int = 0  # such updates in all
    best_bleu: float = -1.0  # the quality of the best validation: its BLEU, or a parser's bracket F1
    best_loss: float | None = None  # of that validation, in nats; None: not known, as in older runs, or not finite
    best_step: int = 0
    since_best: int = 0  # validations since
    validated_step: int = 0  # of the last validation
    data: dict[str, Any] = field(default_factory=dict)  # position of the BatchStream


def save_checkpoint(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, ema: Mapping[str, Tensor] | None,
    state: TrainState, random: Mapping[str, Tensor] | None = None,
) -> Path:  # fmt: skip
    """Write ``folder/step_XXXXXXXX`` in one step and return it.

    Args:
        random: What ``random_state`` found; by default that of this process alone.

    Raises:
        DragomanError: The disk is full or the folder cannot be written; earlier checkpoints stay as they are.
    """
    target = step_folder(folder, state.step)
    weights, moments = untied(model), _optimizer_tensors(model, optimizer)
    with sealed_folder(target, {"step": state.step}, n_bytes(weights, moments, ema or {})) as aside:
        save_weights(aside / "model.safetensors", weights)
        save_weights(aside / "optimizer.safetensors", moments)
        if ema is not None:
            save_weights(aside / "ema.safetensors", ema)
        save_weights(aside / "random.safetensors", random or random_state())
        (aside / "state.json").write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
    return target


def load_checkpoint(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, ema: dict[str, Tensor] | None,
    world: World = ALONE,
) -> TrainState:  # fmt: skip
    """Restore everything from one checkpoint folder.

    With another number of ranks than it was made by, dropout continues with other random numbers; a warning says so.

    Raises:
        BundleError: It is damaged or belongs to another configuration; nothing was changed then.
    """
    check_sealed(folder, "checkpoint")
    weights = read_weights(folder / "model.safetensors", untied(model))
    moments = read_weights(folder / "optimizer.safetensors")
    averages = read_weights(folder / "ema.safetensors", ema) if ema is not None else {}
    random = read_weights(folder / "random.safetensors")
    try:
        saved = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        saved = {"validated_step": 0, "best_loss": None, **saved}  # which older runs did not keep
        state = TrainState(**{f.name: saved[f.name] for f in fields(TrainState)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{folder}/state.json: damaged ({error})") from None
    _check_moments(folder / "optimizer.safetensors", model, moments)
    n_ranks = sum(name.partition(".")[0] == "cpu" for name in random)
    if _of_rank("cpu", 0) not in random or _of_rank("cpu", n_ranks - 1) not in random:
        raise BundleError(f"{folder}/random.safetensors: contains no random state; use another checkpoint")
    load_into(model, weights)
    _restore_optimizer(model, optimizer, moments)
    if ema is not None:
        for name, tensor in averages.items():
            ema[name].copy_(tensor)
    mine = world.rank if n_ranks == world.size else 0
    torch.set_rng_state(random[_of_rank("cpu", mine)])
    if _of_rank("cuda", mine) in random and torch.cuda.is_available():
        torch.cuda.set_rng_state(random[_of_rank("cuda", mine)])
    if n_ranks != world.size:
        logger.warning(
            "the checkpoint of step %d was made by %d ranks, now there are %d: no pair is lost or repeated, but "
            "dropout masks differ from now on, and an update takes %g times the batches (unless train.accumulate makes "
            "up for it)",
            state.step, n_ranks, world.size, world.size / n_ranks,
        )  # fmt: skip
        seed_apart(world)
    return state


def seed_apart(world: World) -> None:
    """From one random state that all ranks share, give each rank but the first another; the same in each run."""
    if world.rank:
        torch.manual_seed(int(torch.randint(2**62, ())) + world.rank)


def random_state(world: World = ALONE) -> dict[str, Tensor]:
    """The state of torch's generators on all ranks; all must ask for it together."""
    states = {"cpu": gathered(world, torch.get_rng_state())}
    if torch.cuda.is_available():
        states["cuda"] = gathered(world, torch.cuda.get_rng_state())
    return {_of_rank(kind, rank): state for kind, ranks in states.items() for rank, state in enumerate(ranks)}


def _of_rank(kind: str, rank: int) -> str:
    return f"{kind}.{rank}" if rank else kind


def latest_checkpoint(folder: Path) -> Path:
    """The newest checkpoint that is whole; damaged newer ones are named in a warning.

    Raises:
        BundleError: There is none.
    """
    for path in reversed(list_checkpoints(folder)):
        try:
            check_sealed(path, "checkpoint")
        except BundleError as error:
            logger.warning("%s; falling back to the previous checkpoint", error)
        else:
            return path
    raise BundleError(f"{folder}: no usable checkpoint to resume from; start again without --resume")


def whole_checkpoints(folder: Path, up_to: int) -> list[Path]:
    """The undamaged ones of ``list_checkpoints``; the others are named in a warning."""
    whole = []
    for path in list_checkpoints(folder, up_to):
        try:
            check_sealed(path, "checkpoint")
        except BundleError as error:
            logger.warning("%s; left out", error)
        else:
            whole.append(path)
    return whole


def list_checkpoints(folder: Path, up_to: int | None = None) -> list[Path]:
    """Checkpoint folders, oldest first; with ``up_to`` none of a later step.

    One that a process died replacing stands beside its place, as ``files.standing`` says.
    """
    names = {path.name for path in folder.glob("step_*")}
    names |= {path.name.removeprefix(".").removesuffix(".old") for path in folder.glob(".step_*.old")}
    paths = [standing(folder / name) for name in sorted(names) if re.fullmatch(r"step_\d{8,}", name)]
    return [path for path in paths if up_to is None or step_of(path) <= up_to]


def prune_checkpoints(folder: Path, keep: int, every: int, step: int) -> None:
    """Delete all but the last ``keep`` scheduled checkpoints and that of ``step``, whatever made it.

    Later ones are left alone: they were damaged, or the run would not have gone back to before them. What a killed
    process left half-written goes too.
    """
    for rest in folder.glob(".step_*.tmp"):
        shutil.rmtree(rest)
    for old in folder.glob(".step_*.old"):
        if standing(step_folder(folder, step_of(old))) != old:
            shutil.rmtree(old)
    paths = list_checkpoints(folder, step)
    scheduled = [path for path in paths if step_of(path) % every == 0]
    kept = {*scheduled[-keep:], *paths[-1:]}
    for path in paths:
        if path not in kept:
            shutil.rmtree(path)


def step_folder(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step belongs."""
    return folder / f"step_{step:08d}"


def step_of(path: Path) -> int:
    """The step in the name of a checkpoint folder, wherever it stands."""
    return int("".join(filter(str.isdecimal, path.name)))


def _optimizer_tensors(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{key}.{name}"] = torch.as_tensor(value)
    return tensors


def _check_moments(path: Path, model: torch.nn.Module, moments: Mapping[str, Tensor]) -> None:
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    for full_name, tensor in moments.items():
        key, _, name = full_name.partition(".")
        if name not in shapes or (key != "step" and tensor.shape != shapes[name]):
            raise BundleError(f"{path}: {full_name} {tuple(tensor.shape)} belongs to no parameter of this model")


def _restore_optimizer(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    by_name = dict(model.named_parameters())
    for full_name, tensor in tensors.items():
        key, _, name = full_name.partition(".")
        parameter = by_name[name]
        device = "cpu" if tensor.dim() == 0 and not parameter.is_cuda else parameter.device
        optimizer.state[parameter][key] = tensor.to(device)
