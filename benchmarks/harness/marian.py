"""Marian through its own command line, which is inside the wheel of pymarian."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.harness.environments import CACHE

FOLDER = Path(os.environ.get("DRAGOMAN_PEERS", CACHE / "foreign"))
"""Where ``make test-foreign`` puts what big peers are."""

MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); import _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))"


def has_marian() -> bool:
    """Return True if Marian is there, for this Python."""
    return any(FOLDER.glob(f"pymarian/_pymarian.cpython-{sys.version_info.major}{sys.version_info.minor}-*.so"))


def marian(*arguments: object) -> list[str]:
    """Return a command of Marian.

    Raises:
        CalledProcessError: The wheel cannot be had for this Python.
    """
    folder = str(FOLDER / "pymarian")
    if not has_marian():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, "pymarian==1.12.42"], check=True, stdout=sys.stderr)
    return [sys.executable, "-c", MAIN, folder, *map(str, arguments)]


def sizes_of(sizes: dict[str, int]) -> list[object]:
    """Return the options of a post-norm Transformer of these widths and depths, as its transformer example has them."""
    return [
        "--type", "transformer", "--dim-emb", sizes["d_model"], "--transformer-dim-ffn", sizes["d_ff"],
        "--transformer-heads", sizes["n_heads"], "--enc-depth", sizes["n_encoder_layers"],
        "--dec-depth", sizes["n_decoder_layers"], "--transformer-ffn-activation", "relu",
        "--transformer-preprocess", "", "--transformer-postprocess", "dan", "--tied-embeddings-all",
    ]  # fmt: skip
