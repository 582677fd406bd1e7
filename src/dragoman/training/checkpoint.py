"""Checkpoints: weights, optimiser, moving average, position in the data, random state. No pickle.

    save_checkpoint(folder, Learner(model, optimizer, ema), state)
    state = load_checkpoint(latest_checkpoint(folder), Learner(model, optimizer, ema))

checkpoints/step_00002000/
  model.safetensors       the weights being trained
  optimizer.safetensors   Adam's two moments, under ``exp_avg.NAME`` and ``exp_avg_sq.NAME``
  ema.safetensors         if there is a moving average
  random.safetensors      the state of torch's generators; those of rank 1, 2 ... as ``cpu.1``, ``cuda.1`` ...
  state.json              step, counters, the best so far, position in the data
  manifest.json           written last: SHA-256 of each file
checkpoints/best/         only the weights of the best validation
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.errors import BundleError
from dragoman.files import check_sealed, names_in, remove_folder, sealed_folder, standing, unreadable
from dragoman.model.weights import load_into, n_bytes, read_weights, save_weights, untied
from dragoman.training.distributed import ALONE, World, gathered

logger = logging.getLogger(__name__)


@dataclass
class TrainState:
    """The counters of a run; all of them are saved and restored."""

    step: int = 0  # updates made, skipped ones included
    tokens: int = 0  # target tokens learned from
    flops: float = 0.0
    seconds: float = 0.0  # of training, validation and saving included, over all parts of the run
    bad_steps: int = 0  # updates in a row that were skipped for a non-finite loss or gradient
    skipped: int = 0  # such updates in all
    best_bleu: float = -1.0  # quality of the best validation: its BLEU, or a parser's bracket F1; 0 if that is chance
    best_loss: float | None = None  # loss of that validation, in nats; None: unknown (older runs) or not finite
    best_step: int = 0
    since_best: int = 0  # validations since the best one
    validated_step: int = 0  # step of the last validation
    data: dict[str, Any] = field(default_factory=dict)  # position of the BatchStream


class Learner(NamedTuple):
    """Everything that an update changes: the model, its optimiser, and the moving average of its weights."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    ema: dict[str, Tensor] | None


def save_checkpoint(
    folder: Path, learner: Learner, state: TrainState, random: Mapping[str, Tensor] | None = None
) -> Path:
    """Write ``folder/step_XXXXXXXX`` in one step and return it.

    Args:
        random: From ``random_state``; by default that of this process alone.

    Raises:
        DragomanError: The disk is full or the folder cannot be written; earlier checkpoints are not touched.
    """
    target = step_folder(folder, state.step)
    model, optimizer, ema = learner
    weights, moments = untied(model), _optimizer_tensors(model, optimizer)
    with sealed_folder(target, {"step": state.step}, n_bytes(weights, moments, ema or {})) as new:
        save_weights(new / "model.safetensors", weights)
        save_weights(new / "optimizer.safetensors", moments)
        if ema is not None:
            save_weights(new / "ema.safetensors", ema)
        save_weights(new / "random.safetensors", random or random_state())
        (new / "state.json").write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
    return target


def load_checkpoint(folder: Path, learner: Learner, world: World = ALONE) -> TrainState:
    """Restore everything from the checkpoint ``folder``.

    If the number of ranks has changed, dropout continues with other random numbers, and a warning is logged.

    Raises:
        BundleError: It is damaged or belongs to another configuration; in that case nothing was changed.
    """
    model, optimizer, ema = learner
    check_sealed(folder, "checkpoint")
    weights = read_weights(folder / "model.safetensors", untied(model))
    moments = read_weights(folder / "optimizer.safetensors")
    averages = read_weights(folder / "ema.safetensors", ema) if ema is not None else {}
    random = read_weights(folder / "random.safetensors")
    try:
        saved = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        saved = {"validated_step": 0, "best_loss": None, **saved}  # missing in older runs
        state = TrainState(**{f.name: saved[f.name] for f in fields(TrainState)})
    except OSError as error:
        raise unreadable(folder / "state.json", error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{folder}/state.json: damaged ({error})") from None
    _check_moments(folder / "optimizer.safetensors", model, moments)
    n_ranks = sum(name.partition(".")[0] == "cpu" for name in random)
    if _random_key("cpu", 0) not in random or _random_key("cpu", n_ranks - 1) not in random:
        raise BundleError(f"{folder}/random.safetensors: contains no random state; use another checkpoint")
    load_into(model, weights)
    _restore_optimizer(model, optimizer, moments)
    if ema is not None:
        for name, tensor in averages.items():
            ema[name].copy_(tensor)
    source_rank = world.rank if n_ranks == world.size else 0
    torch.set_rng_state(random[_random_key("cpu", source_rank)])
    if _random_key("cuda", source_rank) in random and torch.cuda.is_available():
        torch.cuda.set_rng_state(random[_random_key("cuda", source_rank)])
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
    """Give each rank but the first a random state of its own, derived from the one that all ranks share."""
    if world.rank:
        torch.manual_seed(int(torch.randint(2**62, ())) + world.rank)


def random_state(world: World = ALONE) -> dict[str, Tensor]:
    """Return the state of torch's generators on all ranks; all ranks must call this together."""
    states = {"cpu": gathered(world, torch.get_rng_state())}
    if torch.cuda.is_available():
        states["cuda"] = gathered(world, torch.cuda.get_rng_state())
    return {_random_key(kind, rank): state for kind, ranks in states.items() for rank, state in enumerate(ranks)}


def _random_key(kind: str, rank: int) -> str:
    """Return the name of a generator's state in ``random.safetensors``."""
    return f"{kind}.{rank}" if rank else kind


def latest_checkpoint(folder: Path) -> Path:
    """Return the newest complete checkpoint; damaged newer ones are named in a warning.

    Raises:
        BundleError: There is none.
        UnreadableError: One cannot be read now. An older one is not taken in its place: training would go back, and
            remove it later.
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
    """Return the undamaged checkpoints up to step ``up_to``; the others are named in a warning."""
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
    """Return the checkpoint folders, oldest first, up to step ``up_to`` if given.

    If a process died while replacing one, the older version is returned; see ``files.standing``.

    Raises:
        UnreadableError: The folder cannot be read now, so nobody knows whether there are any.
    """
    names = {re.sub(r"^\.(.*)\.old$", r"\1", name) for name in names_in(folder)}
    paths = [standing(folder / name) for name in sorted(names) if re.fullmatch(r"step_\d{8,}", name)]
    return [path for path in paths if up_to is None or step_of(path) <= up_to]


def prune_checkpoints(folder: Path, keep: int, every: int, step: int) -> None:
    """Delete all checkpoints but the last ``keep`` scheduled ones and that of ``step``.

    Later ones are not touched: they are damaged, or the run would not have gone back to an earlier step. Unfinished
    files of a killed process are deleted, too.
    """
    for unfinished in folder.glob(".step_*.tmp"):
        shutil.rmtree(unfinished)
    for old in folder.glob(".step_*.old"):
        if standing(step_folder(folder, step_of(old))) != old:
            shutil.rmtree(old)
    paths = list_checkpoints(folder, step)
    scheduled = [path for path in paths if step_of(path) % every == 0]
    needed = {*scheduled[-keep:], *paths[-1:]}
    for path in paths:
        if path not in needed:
            remove_folder(path)


def step_folder(folder: Path, step: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return folder / f"step_{step:08d}"


def step_of(path: Path) -> int:
    """Return the step in the name of a checkpoint folder, also of ``.step_XXXXXXXX.old``."""
    return int("".join(filter(str.isdecimal, path.name)))


def _optimizer_tensors(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{key}.{name}"] = torch.as_tensor(value)
    return tensors


def _check_moments(path: Path, model: torch.nn.Module, moments: Mapping[str, Tensor]) -> None:
    """Check that each tensor of the optimiser belongs to a parameter and has its shape."""
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
