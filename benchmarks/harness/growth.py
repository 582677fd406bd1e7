"""What ``benchmarks.growth`` measures, in a process of its own: ``python -m benchmarks.harness.growth NAME JSON``."""

from __future__ import annotations

import json
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from dragoman.cli import environment
from dragoman.config import PRESETS, DecodeConfig, ModelConfig, TrainConfig
from dragoman.data.batching import BatchStream, collate
from dragoman.data.store import Store
from dragoman.data.tokenizer import EOS_ID
from dragoman.decoding.batched_search import search_all
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.device import is_out_of_memory, resolve_precision
from dragoman.fast import training_attention as fast
from dragoman.model.attention import attend
from dragoman.model.transformer import Transformer
from dragoman.training.update import train_step

STEPS = 16  # of a search
ENOUGH_RUNS, ENOUGH_S = 7, 15.0
SHARE_OF_MEMORY = 0.8


def attention(kind: str, dtype: str, length: int) -> dict[str, float]:
    """Self-attention of one sentence over 8 heads of 64, forward and backward."""
    torch.manual_seed(0)
    kept = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]

    def work_of(length: int) -> Callable[[], None]:
        shapes = [(length, 3 * 512)] if kind == "written_out" else [(1, 8, length, 64)] * 3  # as projected, or q, k, v
        leaves = [torch.randn(shape, dtype=kept, requires_grad=True) for shape in shapes]
        bias, layout = torch.zeros(1, 1, fast.padded_keys(length)), fast.Layout(1, length, length, 8, 64, 64)

        def work() -> None:
            for leaf in leaves:
                leaf.grad = None
            if kind == "written_out":
                out = fast.written_out(leaves[0], None, layout, bias, 0.0)
            else:
                q, k, v = leaves
                out = attend(q, k, v, None)[0] if kind == "plain" else F.scaled_dot_product_attention(q, k, v)
            out.backward(torch.ones_like(out))

        return work

    return measured(work_of(length), work_of(64))


def training(
    rows: int = 32, length: int = 32, vocab_size: int = 8000, n_layers: int = 3, attention: str = "as_chosen"
) -> dict[str, float]:
    """A whole update: forward, loss, backward, optimiser; in bf16 where this processor has it."""
    if attention != "as_chosen":
        fast.LONG = sys.maxsize if attention == "written_out" else 0
    model = small(vocab_size, n_layers).train()
    precision = resolve_precision("auto", torch.device("cpu"))
    config = TrainConfig(precision=precision)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=config.adam_betas, eps=config.adam_eps, fused=True)

    def work(rows: int = rows, length: int = length) -> None:
        ids = [torch.randint(4, vocab_size, (length - 1,)).tolist() for _ in range(2 * rows)]
        batch = collate(ids[:rows], ids[rows:], range(rows))
        assert train_step(model, [batch], optimizer, 1e-4, config, model.config.pad_id).finite

    return measured(work, lambda: work(1, 16))


def decoding(rows: int = 8, beam_size: int = 5, vocab_size: int = 8000, n_layers: int = 3) -> dict[str, float]:
    """A search of sentences of 15 subwords for 16 steps, which the model never ends sooner."""
    model = small(vocab_size, n_layers, generator_bias=True).eval()
    with torch.no_grad():
        model.generator.bias[EOS_ID] = -1e4

    def work(rows: int = rows, beam_size: int = beam_size) -> None:
        ids = [torch.randint(4, vocab_size, (STEPS - 1,)).tolist() for _ in range(rows)]
        settings = SearchSettings(decode=DecodeConfig(beam_size=beam_size, max_extra_tokens=1))
        result = search_all(model, [Segment(ids=row) for row in ids], settings, torch.device("cpu"))
        assert all(len(hypotheses[0].ids) == STEPS - 1 for hypotheses in result.complete())

    return measured(work, lambda: work(1, 1))


def first_batch(folder: str) -> dict[str, float]:
    """Open a store and draw its first batch, once."""
    idle, started = resident(), time.perf_counter()
    with BatchStream(Store.open(folder), 4096, seed=1) as stream:
        next(stream)
        seconds = time.perf_counter() - started
        return {"seconds": round(seconds, 4), "mib": round(resident("VmHWM") - idle, 1)}


def small(vocab_size: int, n_layers: int, **fields: Any) -> Transformer:
    """The preset small with random weights."""
    torch.manual_seed(0)
    sizes = {**PRESETS["small"], "n_encoder_layers": n_layers, "n_decoder_layers": n_layers}
    return Transformer(ModelConfig(**{**sizes, "src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size, **fields}))


def measured(work: Callable[[], None], tiny: Callable[[], None]) -> dict[str, float]:
    """The median time of some runs after a first one, and the peak of all of them above what is there now.

    Args:
        tiny: The same work at a size that does not count, run before: what is kept once and for all (code, weights'
            gradients, the optimiser's moments) is there when the memory begins to be looked at.
    """
    tiny()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak so far
    ready = resident()
    work()
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) < ENOUGH_RUNS and (not seconds or time.perf_counter() - began < ENOUGH_S):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    peak = resident("VmHWM")
    figures = {"seconds": statistics.median(seconds), "mib": peak - ready, "peak_mib": peak, "runs": len(seconds)}
    return {name: round(value, 6 if name == "seconds" else 1) for name, value in figures.items()}


def resident(field: str = "VmRSS") -> float:
    """Resident memory of this process, or its peak, MiB."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return int(found[1]) / 1024


def limit_memory() -> None:
    """Make too much an error of this process, before the machine has to choose a process to kill."""
    available = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    assert available
    most = int((SHARE_OF_MEMORY * int(available[1]) / 1024 + resident("VmSize")) * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    """Measure once and print it as JSON."""
    environment.set_defaults()
    limit_memory()
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    measures = {each.__name__: each for each in (attention, training, decoding, first_batch)}
    try:
        print(json.dumps(measures[name](**arguments)))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        print(json.dumps({"no_memory": True}))


if __name__ == "__main__":
    main()
