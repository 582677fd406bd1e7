"""Several processes that train one model: started by torchrun, identified by their rank, ended together.

    with joined() as world:                               # alone: World(rank=0, size=1)
        open_group(world, device)
        (n_tokens,) = total(world, n_tokens)

Rank 0 alone reads the text, writes files and prints. All ranks have the same weights and make the same updates: each
computes the gradients of its own batches, and the gradients are summed before they are used. What one rank decides (to
stop, to skip a step, that time is up) all ranks are told and do.

There are two ways of communication. Tensors are exchanged by gloo on a CPU and by NCCL on GPUs; an exchange fails if it
takes longer than ``EXCHANGE_TIMEOUT``. Work of rank 0 that may take long, such as preparing a corpus or validating, is
waited for at the store: a small key-value table kept by torchrun. A rank that fails leaves its failure message there
for the others. docs/decisions/0015-several-processes.md
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import socket
import sys
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

START_TIMEOUT = timedelta(minutes=5)
"""How long the ranks wait until all of them have started."""

EXCHANGE_TIMEOUT = timedelta(seconds=45)
"""How long an exchange waits for the slowest rank before that rank is considered lost."""

HOW_TO_RESUME = "to resume from the last checkpoint, rerun the same command with --resume"


class World(NamedTuple):
    """Rank of this process, and number of processes that train together."""

    rank: int = 0
    size: int = 1
    store: Any = None  # torch's key-value store, if there are several processes


ALONE = World()


@contextlib.contextmanager
def joined() -> Iterator[World]:
    """Join the other processes that torchrun started, as given by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

    If the body raises on one rank, the others raise as well, with its failure message: at their next exchange or while
    they wait for rank 0.

    Raises:
        ConfigError: The variables are incomplete, or the other processes cannot be reached.
        DragomanError: This or another rank failed; the message names the rank.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        _end_with_the_launcher()
    if os.environ.get("WORLD_SIZE", "1") in ("1", ""):
        yield ALONE
        return
    world = _rendezvous()
    if world.rank:
        logging.getLogger("dragoman").setLevel(logging.ERROR)  # rank 0 prints the warnings
    try:
        yield world
        leave_group(world)
    except BaseException as error:
        report_failure(world, error)
        if isinstance(error, DragomanError):
            raise type(error)(f"rank {world.rank}: {error}") from error
        if is_out_of_memory(error):
            raise DragomanError(
                f"rank {world.rank}: out of memory; {HOW_TO_RESUME}, on a machine with more of it or with fewer "
                "processes on this one, or train a new run with a lower train.batch_tokens"
            ) from error
        error.add_note(f"This was rank {world.rank} of {world.size}.")
        raise


def open_group(world: World, device: torch.device) -> None:
    """Prepare the exchange of tensors: by gloo on a CPU, by NCCL with one GPU for each process of a machine.

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
    with failures_named(world):
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=PrefixStore("group", world.store),
            rank=world.rank,
            world_size=world.size,
            timeout=EXCHANGE_TIMEOUT,
            device_id=torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else None,
        )


def run_on_rank_0(world: World, work: Callable[[], T]) -> T | None:
    """Call ``work`` on rank 0 and return its result; the other ranks wait without a time limit and get None.

    Raises:
        DragomanError: On the other ranks, if rank 0 has failed or disappeared.
    """
    if world.size == 1:
        return work()
    if world.rank == 0:
        result = work()
        world.store.add("turns of 0", 1)
        return result
    # Each call is a numbered turn: rank 0 counts the turns it has finished, and the others wait for theirs.
    with failures_named(world):
        turn = world.store.add(f"turns of {world.rank}", 1)
        while world.store.add("turns of 0", 0) < turn:
            if world.store.check(["failed"]):
                raise DragomanError(world.store.get("failed").decode())
            time.sleep(0.05)
    return None


def total(world: World, *numbers: float) -> list[float]:
    """Return the sum of each number over all ranks, in float64."""
    return total_async(world, *numbers)()


def total_async(world: World, *numbers: float) -> Callable[[], list[float]]:
    """Start ``total``, and return a function that waits for its result."""
    if world.size == 1:
        return lambda: list(numbers)
    sums = torch.tensor(numbers, dtype=torch.float64, device=_exchange_device())
    with failures_named(world):
        sent = dist.all_reduce(sums, async_op=True)

    def received() -> list[float]:
        with failures_named(world):
            sent.wait()
            return sums.tolist()

    return received


def broadcast_from_rank_0(world: World, *numbers: float) -> list[float]:
    """Return the numbers that rank 0 passes, on every rank."""
    return total(world, *(number if world.rank == 0 else 0.0 for number in numbers))


def gathered(world: World, tensor: Tensor) -> list[Tensor]:
    """Return the tensors of all ranks on the CPU, in order of rank; all must have the same shape and dtype."""
    if world.size == 1:
        return [tensor]
    tensor_here = tensor.to(_exchange_device())
    parts = [torch.empty_like(tensor_here) for _ in range(world.size)]
    with failures_named(world):
        dist.all_gather(parts, tensor_here)
        return [part.cpu() for part in parts]


@torch.no_grad()
def broadcast_weights(world: World, model: torch.nn.Module) -> None:
    """Give every rank the weights of rank 0; other kinds of processors may initialise them slightly differently."""
    if world.size > 1:
        for parameter in model.parameters():
            with failures_named(world):
                dist.broadcast(parameter.data, src=0)


def check_same_weights(world: World, model: torch.nn.Module) -> None:
    """Raise a DragomanError if the weights of any rank differ from those of rank 0 in a single bit."""
    if world.size == 1:
        return
    sums = [parameter.detach().view(torch.int16).sum(dtype=torch.int64) for parameter in model.parameters()]
    first, *others = gathered(world, torch.stack(sums))
    differ = [rank for rank, other in enumerate(others, start=1) if not other.equal(first)]
    if differ:
        raise DragomanError(
            f"the weights of rank {differ[0]} differ from those of rank 0, which only faulty hardware or different "
            f"versions of torch can cause; nothing was saved. Fix that; {HOW_TO_RESUME}"
        )


def ranks_that_differ(world: World, what: str, value: str) -> list[int]:
    """Return the ranks whose ``value`` is another one than that of rank 0; all ranks call it, and need no group yet.

    Args:
        world: Of more than one rank.
        what: Name of the value, used once.
    """
    with failures_named(world):
        world.store.set(f"{what} of {world.rank}", value)
        first, *others = [world.store.get(f"{what} of {rank}") for rank in range(world.size)]
    return [rank for rank, other in enumerate(others, start=1) if other != first]


def launch_name() -> str | None:
    """Return a name of this call of torchrun and its command, the same after each restart; None without torchrun."""
    job = os.environ.get("TORCHELASTIC_RUN_ID")
    if job is None:
        return None
    launcher, command = os.getppid(), ascii(sys.argv)
    # A process number may be reused, so the name includes the start of the launcher: field 22 of its stat, in clock
    # ticks since boot. The fields are counted after the command name, which may contain spaces.
    try:
        fields = Path(f"/proc/{launcher}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return f"{job} {socket.gethostname()} {launcher} {command}"
    return f"{job} {socket.gethostname()} {boot} {launcher} {fields[19]} {command}"


def _rendezvous() -> World:
    """Connect to the other ranks, or raise a ConfigError that says what is missing."""
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        store, _, _ = next(rendezvous("env://", timeout=START_TIMEOUT))
        name = _agreed_name(store, rank, size)
        store.set_timeout(EXCHANGE_TIMEOUT)
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
    """Return a name for this start, chosen by rank 0 and confirmed by all ranks.

    torchrun's store survives restarts, so it may contain values of an earlier start. To ignore these, each rank
    announces a random name of its own. It accepts rank 0's name only together with its own random name, which no
    earlier start knew.
    """
    own_name = uuid.uuid4().hex
    deadline = time.monotonic() + START_TIMEOUT.total_seconds()
    if rank:
        store.set(f"name of {rank}", own_name)
    while time.monotonic() < deadline:
        if rank:
            name, *heard = store.get("start").decode().split()
            if heard[rank - 1 : rank] == [own_name]:
                store.set(f"{name} heard by {rank}", "")
                return name
        else:
            heard = [store.get(f"name of {other}").decode() for other in range(1, size)]
            store.set("start", " ".join([own_name, *heard]))
            if all(store.check([f"{own_name} heard by {other}"]) for other in range(1, size)):
                return own_name
        time.sleep(0.02)
    raise RuntimeError(f"not all ranks have joined after {START_TIMEOUT.seconds} s")


def leave_group(world: World) -> None:
    """Close the process group, and wait until all ranks do."""
    if dist.is_initialized():
        dist.destroy_process_group()
    _wait_for_others(world, patience=10)


def _wait_for_others(world: World, patience: float) -> None:
    """On rank 0 without torchrun, keep the store alive until the others have read it, at most ``patience`` seconds."""
    with contextlib.suppress(RuntimeError):
        world.store.add("left", 1)
        keeps_the_store = world.rank == 0 and "TORCHELASTIC_RUN_ID" not in os.environ
        deadline = time.monotonic() + patience
        while keeps_the_store and world.store.add("left", 0) < world.size and time.monotonic() < deadline:
            time.sleep(0.05)


def report_failure(world: World, error: BaseException) -> None:
    """Leave this rank's failure message for the other ranks, unless another rank has failed first."""
    message = str(error) if isinstance(error, DragomanError) else f"{type(error).__name__}: {error}"
    with contextlib.suppress(RuntimeError):
        world.store.compare_set("failed", "", f"rank {world.rank} failed: {' '.join(message.split())}")
    _wait_for_others(world, patience=3)


@contextlib.contextmanager
def failures_named(world: World) -> Iterator[None]:
    """Replace a network error in the body by an error that says which rank is lost, and why if that is known."""
    try:
        yield
    except RuntimeError as error:
        message = _failure_message(world)
        with contextlib.suppress(RuntimeError):
            world.store.compare_set("failed", "", message)
        raise DragomanError(f"{message}; {HOW_TO_RESUME}") from error


def _failure_message(world: World) -> str:
    """Return the failure message of a rank, or else say which ranks no longer answer."""
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
        limit = EXCHANGE_TIMEOUT.seconds
        return f"a collective operation failed or took longer than {limit} s, though all ranks are alive"
    who = f"rank {missing[0]}" if len(missing) == 1 else f"one of the ranks {', '.join(map(str, missing))}"
    return f"{who} disappeared without an error (killed, perhaps out of memory, stopped, or its machine is lost)"


def _exchange_device() -> torch.device:
    """Return the device on which tensors are exchanged."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


@functools.cache
def _end_with_the_launcher() -> None:
    """Watch torchrun from a thread: when it is gone, stop as on SIGTERM, and 7 s later by force.

    torchrun starts each process in a session of its own, so nothing else would end them if torchrun were killed.
    """
    launcher = os.getppid()

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(7)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="dragoman-launcher").start()
