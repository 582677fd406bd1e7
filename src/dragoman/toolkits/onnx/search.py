"""The graphs that ``formats.onnx`` writes, run by onnxruntime under our own search, to compare an export with ours.

It is no engine to translate with, for it is slower than those that are (docs/decisions/0041-onnx.md). The search is
ours, so what differs comes from the graphs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.batches import search_all
from dragoman.decoding.request import Progress, SearchResult, SearchSettings, Segment, out_of_memory
from dragoman.decoding.scoring import Pair, read_all
from dragoman.errors import ConfigError, not_installed
from dragoman.model.masks import read_tokens
from dragoman.toolkits.engine import Models, Needs, beyond_plain_search
from dragoman.toolkits.onnx.write import ENDINGS

CPU = torch.device("cpu")
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class State:
    """Results of earlier decoder steps that the next one needs."""

    memory: NDArray[np.float32]  # (B, S, d_model), of which there are no cross keys yet: nothing after the first step
    mask: NDArray[np.int64]  # (B, S)
    past: Arrays  # keys and values of each layer, (B, H, length, width)

    def select(self, rows: Tensor) -> Self:
        """Keep ``rows``, any number of them, repeats allowed."""
        kept = rows.numpy()
        past = {name: array[kept] for name, array in self.past.items()}
        return type(self)(self.memory[kept], self.mask[kept], past)


class Onnx:
    """A model that onnxruntime has loaded; searched and read as one of ours."""

    name: ClassVar[str] = "onnx"

    def __init__(self, folder: Path, quantization: str, config: ModelConfig) -> None:
        """Load a folder that ``formats.onnx.write`` filled.

        Args:
            config: The model's.

        Raises:
            ConfigError: The package is not installed.
        """
        runtime = installed()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # each worker searches a batch of its own, as with torch
        options.log_severity_level = 3  # warnings are of its own optimiser
        self._encoder, self._decoder = (
            runtime.InferenceSession(
                str(folder / f"{name}{ENDINGS[quantization]}.onnx"), options, providers=["CPUExecutionProvider"]
            )
            for name in ("encoder_model", "decoder_model_merged")
        )
        self._config = config
        self._present = {
            side: [f"present.{i}.{side}.{kind}" for i in range(config.n_decoder_layers) for kind in ("key", "value")]
            for side in ("decoder", "encoder")
        }

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """See ``Searcher``."""
        return beyond_plain_search(models, needs)

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, progress: Progress | None = None
    ) -> SearchResult:
        """See ``Searcher``."""
        return search_all(self, segments, settings, CPU, progress=progress)

    def read(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """Return the log-probability of each token of given translations, in nats, eos last.

        Raises:
            DecodeError: A pair ran out of memory.
        """
        log_probs = []
        for i, read in enumerate(read_all(self, pairs, CPU)):
            if read is None:
                raise out_of_memory("pair", i)
            log_probs.append(read.log_probs)
        return log_probs

    # --- what search and scoring know of a model ---

    def n_cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> int | None:
        """See ``ExportedSearcher``: what onnxruntime runs has no tokenizer."""
        return None

    def start(self, src: Tensor) -> State:
        """Encode ``src`` (B, S)."""
        ids = src.numpy()
        mask = read_tokens(src, self._config).numpy().astype(np.int64)
        (memory,) = self._encoder.run(None, {"input_ids": ids, "attention_mask": mask})
        widths = {"key": self._config.head_d_k, "value": self._config.head_d_v}
        past = {
            name.replace("present", "past_key_values"): np.zeros(
                (len(ids), self._config.n_heads, 0, widths[name.rpartition(".")[2]]), np.float32
            )
            for names in self._present.values()
            for name in names
        }
        return State(memory, mask, past)

    def step(self, state: State, last_ids: Tensor) -> tuple[Tensor, State]:
        """Append a token to each row, ``(B,)``: logits ``(B, V)`` and the next state."""
        logits, past = self._decode(last_ids[:, None].numpy(), state)
        return torch.from_numpy(logits[:, 0]), State(state.memory[:, :0], state.mask, past)

    def __call__(
        self, src: Tensor, tgt_in: Tensor, record: Callable[[str, Tensor], None] | None = None
    ) -> Tensor:  # fmt: skip
        """Logits ``(B, T, V)`` of given translations; padding stands behind them, where no token looks."""
        return torch.from_numpy(self._decode(tgt_in.numpy(), self.start(src))[0])

    def _decode(self, ids: NDArray[np.int64], state: State) -> tuple[NDArray[np.float32], Arrays]:
        """Logits ``(B, T, V)`` and all keys and values by then; those of the memory are asked for once."""
        is_first = bool(state.memory.shape[1])
        names = [*self._present["decoder"], *(self._present["encoder"] if is_first else ())]
        given = {"input_ids": ids, "encoder_attention_mask": state.mask, "encoder_hidden_states": state.memory}
        logits, *present = self._decoder.run(["logits", *names], {**given, **state.past})
        new = {name.replace("present", "past_key_values"): one for name, one in zip(names, present, strict=True)}
        return logits, {**state.past, **new}


def check_installed(device: str) -> None:
    """See ``Comparer``."""
    installed()


def open_export(export: Path, quantization: str, bundle: Bundle, device: torch.device) -> tuple[Onnx, str]:
    """See ``Comparer``."""
    return Onnx(export, quantization, bundle.model.config), quantization


def program_version() -> tuple[str, str]:
    """See ``Comparer``."""
    return "onnxruntime", version("onnxruntime")


def why_different(decode: DecodeConfig) -> list[str]:
    """See ``Comparer``: the search is ours."""
    return []


def installed() -> Any:
    """Return the package onnxruntime.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        return import_module("onnxruntime")
    except ImportError:
        raise ConfigError(not_installed("comparing an export to ONNX", "onnxruntime")) from None
