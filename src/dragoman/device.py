"""Where to compute and how precisely: the words of the configuration made into facts of this machine."""

from __future__ import annotations

from typing import Literal

import torch

from dragoman.errors import ConfigError

Precision = Literal["fp32", "bf16"]


def resolve_device(name: str = "auto") -> torch.device:
    """``auto`` is the GPU if there is one.

    Raises:
        ConfigError: The name is unknown, or a GPU is asked for and there is none.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device = {name!r} is unknown: use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda', but torch sees no GPU here: use cpu or auto")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def resolve_precision(name: str, device: torch.device) -> Precision:
    """``auto`` is bf16 where the processor multiplies bf16 itself, else fp32.

    Raises:
        ConfigError: bf16 is asked for and the GPU has none.
    """
    if device.type == "cuda":
        able = torch.cuda.is_bf16_supported(including_emulation=False)
        if name == "bf16" and not able:
            raise ConfigError("precision = 'bf16', but this GPU has no bf16: set it to fp32 or auto")
    else:
        facts = torch.cpu.get_capabilities()
        able = bool(facts.get("avx512_bf16") or facts.get("amx_bf16"))
    return "bf16" if name == "bf16" or (name == "auto" and able) else "fp32"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a tensor found no room, on whichever device."""
    words = ("out of memory", "not enough memory", "can't allocate memory", "Cannot allocate memory")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )
