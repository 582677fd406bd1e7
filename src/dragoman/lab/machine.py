"""The machine on which something was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch


def machine(device: torch.device) -> dict[str, Any]:
    """Return processor, cores, threads and versions, and the name of the GPU if ``device`` is one."""
    facts = {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    return facts | ({"gpu": torch.cuda.get_device_name(device)} if device.type == "cuda" else {})


def hardware(device: torch.device) -> dict[str, Any]:
    """Return the facts of ``machine`` on which measured times depend most: all but the versions."""
    return {name: fact for name, fact in machine(device).items() if name not in ("torch", "python")}


def _processor() -> str:
    """Return the processor's name, or its architecture where the system does not give a name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
