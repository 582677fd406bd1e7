"""An environment for each peer below ``.bench/``, made when first needed from ``peers/NAME.txt``."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / "benchmarks/peers"
CACHE = ROOT / ".bench"
CPU_TORCH = "https://download.pytorch.org/whl/cpu/torch/"
"""Builds of torch that pull nothing for GPUs."""


def python_of(name: str, cache: Path = CACHE) -> Path:
    """The Python of an environment; ``dragoman`` is the one that runs this.

    An environment whose requirements have changed, or whose making was interrupted, is made anew.

    Raises:
        FileNotFoundError: There are no requirements of that name.
        CalledProcessError: pip could not install them.
    """
    if name == "dragoman":
        return Path(sys.executable)
    requirements = PEERS / f"{name}.txt"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    folder = cache / name
    ready, python = folder / "ready", folder / "bin/python"
    if not (ready.is_file() and ready.read_text(encoding="ascii") == wanted):
        print(f"making {folder} from {requirements.relative_to(ROOT)}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for torch in re.findall(r"^torch==\S+", requirements.read_text(encoding="utf-8"), flags=re.MULTILINE):
            from_there = ["--find-links", CPU_TORCH, "--retries", "0", "--no-deps"]  # where that is no use: the index's
            subprocess.run([*pip, *from_there, torch], check=True, stdout=sys.stderr)
        subprocess.run([*pip, "--requirement", requirements], check=True, stdout=sys.stderr)
        ready.write_text(wanted, encoding="ascii")
    return python
