"""Several processes that train as one: started by torchrun, told apart by their rank, ended together.

Rank 0 alone reads the text, writes files and speaks. All ranks hold the same weights and make the same updates: each
computes the gradients of its own batches, and these are summed before anyone uses them. What one rank decides (to
stop, to skip a step, that time is up) all ranks are told of and do.

Two ways lead from rank to rank. Tensors are exchanged by gloo on a CPU and by NCCL on GPUs; an exchange that gets no
answer for ``PATIENCE`` fails. Turns that may take long, such as preparing a corpus or validating, are waited for at the
store, a small table of values kept by torchrun, where a rank that fails leaves its last words for the others.
docs/decisions/0015-several-processes.md
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from dragoman.device import is_out_of_memory
from dragoman.errors import ConfigError, DragomanError

T = TypeVar("T")

PATIENCE_AT_START = timedelta(minutes=5)
"""How long the ranks wait until all of them have been started."""

PATIENCE = timedelta(seconds=45)
"""How long an exchange waits for the slowest rank before it takes it for lost."""

GO_ON = "to resume from the last checkpoint, rerun the same command with --resume"


class World(NamedTuple):
    """The place of this process among those that train together."""

    rank: int = 0
    size: int = 1
    store: Any = None  # of a world of several: torch's key-value store


ALONE = World()


@contextlib.contextmanager
def joined() -> Iterator[World]:
    """Find the other processes that torchrun started, as RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say.

    If the body raises on one rank, the others learn why and raise too, at their next exchange or while they wait.

    Raises:
        ConfigError: The variables are incomplete, or the others cannot be reached.
        DragomanError: This or another rank failed; the message names the rank.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        _end_with_the_launcher()
    if os.environ.get("WORLD_SIZE", "1") in ("1", ""):
        yield ALONE
        return
    world = _meet()
    if world.rank:
        logging.getLogger("dragoman").setLevel(logging.ERROR)  # rank 0 warns for all
    try:
        yield world
        _take_leave(world)
    except BaseException as error:
        _leave_word(world, error)
        if isinstance(error, DragomanError):
            raise type(error)(f"rank {world.rank}: {error}") from error
        if is_out_of_memory(error):
            raise DragomanError(
                f"rank {world.rank}: out of memory; {GO_ON}, on a machine with more of it or with fewer processes on "
                "this one, or train a new run with a lower train.batch_tokens"
            ) from error
        error.add_note(f"This was rank {world.rank} of {world.size}.")
        raise


def open_group(world: World, device: torch.device) -> None:
    """Make ready to exchange tensors: by gloo on a CPU, by NCCL with a GPU for each process of a machine.

    Raises:
        ConfigError: This machine has more processes than GPUs.
    """
    if world.size == 1:
        return
    if device.type == "cuda":
        n_devices = torch.cuda.device_count()
        local_rank = int(os.environ.get("LOCAL_RANK", world.rank % n_devices))
        if local_rank >= n_devices:
            raise ConfigError(
                f"no GPU is left for process {local_rank + 1} of this machine, which has {n_devices}: start "
                f"torchrun with --nproc-per-node {n_devices}, or set train.device to cpu"
            )
        torch.cuda.set_device(local_rank)
    with together(world):
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=PrefixStore("group", world.store),
            rank=world.rank,
            world_size=world.size,
            timeout=PATIENCE,
            device_id=torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else None,
        )


def on_rank_0(world: World, work: Callable[[], T]) -> T | None:
    """Do ``work`` on rank 0 while the others wait, however long it takes; they get None.

    Raises:
        DragomanError: On the others, if rank 0 has failed or gone.
    """
    if world.size == 1:
        return work()
    if world.rank == 0:
        result = work()
        world.store.add("turns of 0", 1)
        return result
    with together(world):
        turn = world.store.add(f"turns of {world.rank}", 1)
        while world.store.add("turns of 0", 0) < turn:
            if world.store.check(["failed"]):
                raise DragomanError(world.store.get("failed").decode())
            time.sleep(0.05)
    return None


def total(world: World, *numbers: float) -> list[float]:
    """The sum of each number over all ranks, in float64."""
    return total_later(world, *numbers)()


def total_later(world: World, *numbers: float) -> Callable[[], list[float]]:
    """``total``, on its way; what is returned waits for it."""
    if world.size == 1:
        return lambda: list(numbers)
    sums = torch.tensor(numbers, dtype=torch.float64, device=_wire())
    with together(world):
        sent = dist.all_reduce(sums, async_op=True)

    def received() -> list[float]:
        with together(world):
            sent.wait()
            return sums.tolist()

    return received


def of_rank_0(world: World, *numbers: float) -> list[float]:
    """The numbers that rank 0 has."""
    return total(world, *(number if world.rank == 0 else 0.0 for number in numbers))


def gathered(world: World, tensor: Tensor) -> list[Tensor]:
    """The tensors of all ranks, in order of rank, on the CPU; they must be alike in shape and dtype."""
    if world.size == 1:
        return [tensor]
    mine = tensor.to(_wire())
    parts = [torch.empty_like(mine) for _ in range(world.size)]
    with together(world):
        dist.all_gather(parts, mine)
        return [part.cpu() for part in parts]


@torch.no_grad()
def start_alike(world: World, model: torch.nn.Module) -> None:
    """Give every rank the weights of rank 0: another kind of processor may have drawn slightly others."""
    if world.size > 1:
        for parameter in model.parameters():
            with together(world):
                dist.broadcast(parameter.data, src=0)


def check_alike(world: World, model: torch.nn.Module) -> None:
    """See that all ranks still have the same weights, to the bit.

    Raises:
        DragomanError: They have not, so that what follows would be no training.
    """
    if world.size == 1:
        return
    sums = [parameter.detach().view(torch.int16).sum(dtype=torch.int64) for parameter in model.parameters()]
    first, *others = gathered(world, torch.stack(sums))
    differ = [rank for rank, other in enumerate(others, start=1) if not other.equal(first)]
    if differ:
        raise DragomanError(
            f"the weights of rank {differ[0]} differ from those of rank 0, which only faulty hardware or different "
            f"versions of torch can cause; nothing was saved. Fix that; {GO_ON}"
        )


def launch_name() -> str | None:
    """What tells this call of torchrun from every other, the same after each restart; None without torchrun."""
    job = os.environ.get("TORCHELASTIC_RUN_ID")
    if job is None:
        return None
    launcher = os.getppid()
    try:  # the 22nd field, after a name that may hold spaces: clock ticks from boot to the launcher's start
        began = Path(f"/proc/{launcher}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return f"{job} {socket.gethostname()} {launcher}"
    return f"{job} {socket.gethostname()} {boot} {launcher} {began[19]}"


def _meet() -> World:
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        store, _, _ = next(rendezvous("env://", timeout=PATIENCE_AT_START))
        name = _agreed_name(store, rank, size)
        store.set_timeout(PATIENCE)
    except (KeyError, ValueError) as error:
        raise ConfigError(
            f"the environment says WORLD_SIZE = {os.environ['WORLD_SIZE']}, so several processes, but RANK, "
            f"MASTER_ADDR or MASTER_PORT is missing or no number ({error}): start them with torchrun, or unset it"
        ) from None
    except RuntimeError as error:
        address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        reason = str(error).splitlines()[0]
        raise ConfigError(f"rank {rank}: the other processes cannot be reached at {address} ({reason})") from error
    return World(rank, size, PrefixStore(name, store))


def _agreed_name(store: Any, rank: int, size: int) -> str:
    """A name for this start of all ranks, which rank 0 gives.

    torchrun's store outlives restarts. So that nobody takes what an earlier rank left in it for a word of today, each
    rank calls itself by a random name and goes by what rank 0 says only once that has heard this very name.
    """
    mine = uuid.uuid4().hex
    deadline = time.monotonic() + PATIENCE_AT_START.total_seconds()
    if rank:
        store.set(f"name of {rank}", mine)
    while time.monotonic() < deadline:
        if rank:
            name, *heard = store.get("start").decode().split()
            if heard[rank - 1 : rank] == [mine]:
                store.set(f"{name} heard by {rank}", "")
                return name
        else:
            heard = [store.get(f"name of {other}").decode() for other in range(1, size)]
            store.set("start", " ".join([mine, *heard]))
            if all(store.check([f"{mine} heard by {other}"]) for other in range(1, size)):
                return mine
        time.sleep(0.02)
    raise RuntimeError(f"not all ranks have joined after {PATIENCE_AT_START.seconds} s")


def _take_leave(world: World) -> None:
    """Close the group, and go when all do."""
    if dist.is_initialized():
        dist.destroy_process_group()
    _leave_last(world, patience=10)


def _leave_last(world: World, patience: float) -> None:
    """Where no torchrun keeps the store, rank 0 does: it waits for the others, so that they hear what was said."""
    with contextlib.suppress(RuntimeError):
        world.store.add("left", 1)
        keeps_the_store = world.rank == 0 and "TORCHELASTIC_RUN_ID" not in os.environ
        deadline = time.monotonic() + patience
        while keeps_the_store and world.store.add("left", 0) < world.size and time.monotonic() < deadline:
            time.sleep(0.05)


def _leave_word(world: World, error: BaseException) -> None:
    """Tell the other ranks why this one ends; the first word that any of them leaves stays."""
    words = str(error) if isinstance(error, DragomanError) else f"{type(error).__name__}: {error}"
    with contextlib.suppress(RuntimeError):
        world.store.compare_set("failed", "", f"rank {world.rank} failed: {' '.join(words.split())}")
    _leave_last(world, patience=3)


@contextlib.contextmanager
def together(world: World) -> Iterator[None]:
    """Around what needs the other ranks: says which of them is lost, in place of what the network says."""
    try:
        yield
    except RuntimeError as error:
        happened = _what_happened(world)
        with contextlib.suppress(RuntimeError):
            world.store.compare_set("failed", "", happened)
        raise DragomanError(f"{happened}; {GO_ON}") from error


def _what_happened(world: World) -> str:
    """The last words of a rank that failed, else which ranks do not say that they are here."""
    missing = list(range(world.size))
    try:
        world.store.set(f"here {world.rank}", "")
        deadline = time.monotonic() + 3
        while missing and time.monotonic() < deadline:
            time.sleep(0.1)
            if world.store.check(["failed"]):
                return world.store.get("failed").decode()
            missing = [rank for rank in missing if not world.store.check([f"here {rank}"])]
    except RuntimeError:
        return "the launcher, or the machine that coordinated the ranks, is gone"
    if not missing:
        return f"a collective operation failed or took longer than {PATIENCE.seconds} s, though all ranks are alive"
    who = f"rank {missing[0]}" if len(missing) == 1 else f"one of the ranks {', '.join(map(str, missing))}"
    return f"{who} disappeared without an error (killed, perhaps out of memory, stopped, or its machine is lost)"


def _wire() -> torch.device:
    """Where a tensor must be to be exchanged."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


@functools.cache
def _end_with_the_launcher() -> None:
    """Let no process outlive torchrun: when that is gone, stop as on SIGTERM, or 7 s later by force.

    torchrun starts each process in a session of its own, so that nothing else would end them if it were killed.
    """
    launcher = os.getppid()

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(7)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="dragoman-launcher").start()
