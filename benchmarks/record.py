"""Where a figure came from: machine, versions, command; written beside the figure."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Processor, cores, memory and system; and what is preloaded, such as another malloc."""
    cpu = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        fields = {key.strip(): value.strip() for key, value in fields.items()}
        cpu = f"{fields['model name']} (family {fields['cpu family']}, model {fields['model']})"
        flags = [flag for flag in ("avx512_bf16", "amx_bf16", "avx512_vnni") if flag in fields["flags"].split()]
        cpu += f" with {', '.join(flags)}" if flags else ""
    except (OSError, KeyError):
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    preloaded = {"preloaded": os.environ["LD_PRELOAD"]} if os.environ.get("LD_PRELOAD") else {}
    return {
        "cpu": cpu, "cores": os.cpu_count(), "memory_gib": round(memory, 1), "system": platform.platform(), **preloaded,
    }  # fmt: skip


def save(name: str, figures: dict[str, Any], command: str, packages: Sequence[str] = ("torch", "numpy")) -> Path:
    """Write ``results/NAME.json`` and print it."""
    record = {
        "name": name,
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "figures": figures,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2, ensure_ascii=False))
    print(f"-> {path.relative_to(RESULTS.parent.parent)}", file=sys.stderr)
    return path


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
        "runs": len(values),
    }
