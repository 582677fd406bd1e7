"""Training of Hugging Face's Marian model, also compiled, in several processes, or with another malloc's habits.

Run with a number, it is one of several processes: its settings come as a line on stdin, and then a line for each run.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import torch
from hf_model import build
from serve import Run, serve
from steps import Ids, ModuleTrainer, read_batches, timed
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel


def prepare(
    batches: str,
    sizes: dict[str, Any],
    vocab_size: int,
    precision: str,
    attention: str,
    rate: float = 1e-4,
    mallopt: Mapping[str, int] | None = None,
    compiled: bool = False,
    processes: int = 1,
    rank: int = 0,
) -> Run:
    """Build the model with dropout 0.1.

    Args:
        mallopt: What glibc's malloc is told, by the numbers of its options.
        compiled: By ``torch.compile``, for shapes that change.
        processes: With a part of each batch and of the threads each, by ``DistributedDataParallel``.
        rank: Which of them this is; 0 starts the others.
    """
    settings = {name: value for name, value in locals().items() if name != "rank"}
    for option, value in (mallopt or {}).items():
        ctypes.CDLL(None).mallopt(int(option), value)
    others = [_started(other, settings) for other in range(1, processes if rank == 0 else 1)]
    if processes > 1:
        torch.set_num_threads(max(1, torch.get_num_threads() // processes))
        torch.distributed.init_process_group("gloo", rank=rank, world_size=processes)
    torch.manual_seed(0)
    whole = read_batches(batches)
    ids = [_part(batch, rank, processes) for batch in whole]
    model = build(sizes, vocab_size, 0.1, 512, attention)
    called: Any = DistributedDataParallel(model) if processes > 1 else model
    called = torch.compile(called, dynamic=True) if compiled else called

    def logits(src: Tensor, tgt_in: Tensor) -> Tensor:
        found: Tensor = called(
            input_ids=src, attention_mask=(src != 0).long(), decoder_input_ids=tgt_in,
            decoder_attention_mask=(tgt_in != 0).long(), use_cache=False,
        ).logits  # fmt: skip
        return found

    trainer = ModuleTrainer(model, logits, rate, precision == "bf16")

    def run(warm: int) -> dict[str, Any]:
        for other in others:
            assert other.stdin is not None
            other.stdin.write(f"{warm}\n")
            other.stdin.flush()
        return timed(trainer.step, ids, [batch.n_tokens for batch in whole], warm)

    return run


def _started(rank: int, settings: dict[str, Any]) -> subprocess.Popen[str]:
    """Another process, told its settings; it ends when its stdin does."""
    if rank == 1:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free.getsockname()[1])}
    process = subprocess.Popen([sys.executable, __file__, str(rank)], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(settings) + "\n")
    process.stdin.flush()
    return process


def _part(batch: Ids, rank: int, processes: int) -> Ids:
    """Every so many-th row."""
    rows = [side[rank::processes] for side in (batch.src, batch.tgt_in, batch.tgt_out)]
    return Ids(*rows, int((rows[2] != 0).sum()))


def main() -> None:
    """Serve, or be one of the other processes."""
    if len(sys.argv) == 1:
        serve(prepare, ["torch", "transformers"])
        return
    run = prepare(**json.loads(sys.stdin.readline()), rank=int(sys.argv[1]))
    for line in sys.stdin:
        run(warm=int(line))


if __name__ == "__main__":
    main()
