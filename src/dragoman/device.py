"""Where to compute and how precisely: settings resolved to what this machine has.

torch takes a second to import, so only what cannot do without it imports it.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dragoman.errors import ConfigError
from dragoman.options import not_among

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

GPU_NODES = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/nvmap", "/dev/kfd", "/dev/dxg")
"""Files of Linux, one of which is there if there is a GPU: NVIDIA's, its boards', AMD's, and Windows's subsystem's."""


def device_type(name: str = "auto") -> Literal["cpu", "cuda"]:
    """Return the kind of device of that name; ``auto`` is the GPU if there is one, else the CPU.

    Raises:
        ConfigError: The name is unknown, or there is no GPU.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise not_among("device", name, ("auto", "cpu", "cuda"))
    able = name != "cpu" and _has_gpu(is_asked_for=name == "cuda")
    if name == "cuda" and not able:
        raise ConfigError("device = 'cuda', but torch sees no GPU here: use cpu or auto")
    return "cuda" if able else "cpu"


def resolve_device(name: str = "auto") -> torch.device:
    """Return the device of that name: see ``device_type``."""
    import torch

    return torch.device(device_type(name))


def _has_gpu(*, is_asked_for: bool) -> bool:
    """Return True if torch sees a GPU; unless one is asked for, torch is not imported where there can be none."""
    if (
        not is_asked_for
        and "torch" not in sys.modules
        and sys.platform == "linux"
        and not any(map(os.path.exists, GPU_NODES))
    ):
        return False
    import torch

    return torch.cuda.is_available()


def n_threads() -> int:
    """Return torch's number of threads, or the one that it will have once it is imported: one for each core."""
    if "torch" in sys.modules:
        import torch

        return torch.get_num_threads()
    # of two settings torch takes MKL's, and of more threads than cores as many as cores
    for name in ("MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").partition(",")[0].strip()
        if value.isdecimal() and int(value):
            return min(_n_cores(), int(value))
    return _n_cores()


def set_threads(number: int) -> None:
    """Set torch's number of threads, if torch is imported."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(number)


def _n_cores() -> int:
    """Return the number of cores that this process may use; two threads of one core count once."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = set()
    for number in usable:
        siblings = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text(encoding="ascii"))
        except OSError:
            cores.add(str(number))
    return len(cores)


def resolve_precision(name: str, device: torch.device) -> Literal["fp32", "bf16"]:
    """Return the precision of training; ``auto`` is bf16 where that is natively supported and faster, else fp32.

    bf16 that is asked for is used on any CPU; one without native support logs a warning, once, that it will be slow.

    Raises:
        ConfigError: The name is unknown, or bf16 is asked for and the GPU lacks it.
    """
    if name not in ("auto", "fp32", "bf16"):
        raise not_among("precision", name, ("auto", "fp32", "bf16"))
    if device.type == "cuda":
        import torch

        able = torch.cuda.is_bf16_supported(including_emulation=False)
        if name == "bf16" and not able:
            raise ConfigError("precision = 'bf16', but this GPU does not support bf16: set it to fp32 or auto")
        return "bf16" if name == "bf16" or (name == "auto" and able) else "fp32"
    if name == "bf16":
        warn_of_emulated_bf16()
    return "bf16" if name == "bf16" or (name == "auto" and bf16_is_faster()) else "fp32"


def capabilities() -> Mapping[str, Any]:
    """Return the features of this CPU that torch knows, by name; nothing if torch is too old to tell."""
    import torch

    return torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}


def has_bf16() -> bool:
    """Return True if oneDNN computes products in bf16 natively on this CPU, rather than in plain loops."""
    facts = capabilities()
    avx512 = all(facts.get(name) for name in ("avx512_bw", "avx512_vl", "avx512_dq"))
    return bool(avx512 or facts.get("avx_ne_convert") or facts.get("bf16"))  # the last one is ARM's


@functools.cache
def warn_of_emulated_bf16() -> None:
    """Warn, once, if this CPU emulates bf16: 1.8 GFLOP/s instead of 66 in float32 on two cores of AMD's Zen 1."""
    if not has_bf16():
        logger.warning("precision = 'bf16', but this CPU does not support bf16 natively: fp32 is many times as fast")


@functools.cache
def bf16_is_faster() -> bool:
    """Return True if a product in bf16 takes less than two thirds of its time in float32, measured once.

    Native support alone is not enough: compared with float32, AMX is about ten times as fast, avx512_bf16 alone 2.7
    times on AMD's Zen 4 but 0.6 times on Intel's processors. Beside other work the timing may err (13 to 27 of 100
    times on Zen 4 with two busy cores), so a run that has begun keeps what it has chosen.
    """
    facts = capabilities()
    if not (facts.get("avx512_bf16") or facts.get("amx_bf16")):  # emulated: timing a product might take seconds
        return False
    import torch

    return seconds_of_a_product(torch.bfloat16) < 2 / 3 * seconds_of_a_product(torch.float32)


def seconds_of_a_product(dtype: torch.dtype) -> float:
    """Return the shortest time of six products of a size that training has: about 10 ms a gigaflop and core at most."""
    import torch

    left, right = torch.ones(512, 1024, dtype=dtype), torch.ones(1024, 1024, dtype=dtype)
    taken = []
    for _ in range(6):
        began = time.perf_counter()
        left @ right
        taken.append(time.perf_counter() - began)
    return min(taken)


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if an error says that memory could not be allocated, on any device."""
    words = ("out of memory", "not enough memory", "can't allocate memory", "Cannot allocate memory", "std::bad_alloc",
             "STATUS_ALLOC_FAILED")  # fmt: skip
    if "torch" in sys.modules:
        import torch

        if isinstance(error, torch.OutOfMemoryError):
            return True
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )


def free_memory() -> None:
    """Give the memory back that torch keeps for later on a GPU."""
    if "torch" in sys.modules:
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
