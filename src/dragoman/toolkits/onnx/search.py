"""Run the graphs of an ONNX export with onnxruntime under our own search, to compare it with our model.

Users cannot choose it as an engine, as it is slower (docs/decisions/0041-onnx.md). The search is ours, so any
difference comes from the graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.batched_search import search_all
from dragoman.decoding.request import Progress, SearchResult, SearchSettings, Segment, out_of_memory
from dragoman.decoding.scoring import Pair, read_all
from dragoman.model.masks import read_tokens
from dragoman.toolkits.engine import Models, Needs, beyond_plain_search
from dragoman.toolkits.huggingface.tokenizer_json import cut_differently_by_json
from dragoman.toolkits.onnx.write import ENDINGS
from dragoman.toolkits.subwords import cut_differently_by_sentencepiece
from dragoman.toolkits.toolkit import import_package

CPU = torch.device("cpu")
PURPOSE = "comparing an export to ONNX"
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class State:
    """Results of earlier decoder steps that the next one needs."""

    memory: NDArray[np.float32]  # (B, S, d_model), the part without cross keys: empty after the first step
    mask: NDArray[np.int64]  # (B, S)
    past: Arrays  # keys and values of each layer, (B, H, length, width)

    def select(self, rows: Tensor) -> Self:
        """Return the state of ``rows``, any number of them, repeats allowed."""
        i = rows.numpy()
        return type(self)(self.memory[i], self.mask[i], {name: array[i] for name, array in self.past.items()})


class Onnx:
    """Model that onnxruntime has loaded, with the methods that search and scoring call on a model."""

    name: ClassVar[str] = "onnx"

    def __init__(self, folder: Path, quantization: str, config: ModelConfig) -> None:
        """Load a folder that ``write.py`` wrote.

        Raises:
            ConfigError: The package is not installed.
        """
        runtime = import_package("onnxruntime", PURPOSE)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # each worker searches a batch of its own, as with torch
        options.log_severity_level = 3  # no warnings of its optimiser
        self._encoder, self._decoder = (
            runtime.InferenceSession(
                str(folder / f"{name}{ENDINGS[quantization]}.onnx"), options, providers=["CPUExecutionProvider"]
            )
            for name in ("encoder_model", "decoder_model_merged")
        )
        self._config, self._folder = config, folder
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
        """See ``ExportedSearcher``.

        Raises:
            DecodeError: A pair ran out of memory.
        """
        log_probs = []
        for i, read in enumerate(read_all(self, pairs, CPU)):
            if read is None:
                raise out_of_memory("pair", i)
            log_probs.append(read.log_probs)
        return log_probs

    def cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[bool] | None:
        """See ``ExportedSearcher``: SentencePiece, and ``tokenizer.json`` if it is there."""
        plain = cut_differently_by_sentencepiece(self._folder, texts, ids)
        as_json = cut_differently_by_json(self._folder, texts, ids, self._config.src_eos)
        if plain is None or as_json is None:
            return plain
        return [one or other for one, other in zip(plain, as_json, strict=True)]

    # --- methods that search and scoring call on a model ---

    def start(self, src: Tensor) -> State:
        """Return the state after encoding ``src``, ``(B, S)``."""
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
        """Append a token to each row, ``(B,)``; return logits ``(B, V)`` and the next state."""
        logits, past = self._decode(last_ids[:, None].numpy(), state)
        return torch.from_numpy(logits[:, 0]), State(state.memory[:, :0], state.mask, past)

    def __call__(
        self, src: Tensor, tgt_in: Tensor, record: Callable[[str, Tensor], None] | None = None
    ) -> Tensor:  # fmt: skip
        """Return logits ``(B, T, V)`` of given translations; padding follows them, where no token attends."""
        return torch.from_numpy(self._decode(tgt_in.numpy(), self.start(src))[0])

    def _decode(self, ids: NDArray[np.int64], state: State) -> tuple[NDArray[np.float32], Arrays]:
        """Return logits ``(B, T, V)`` and all keys and values so far; those of the memory are computed once."""
        is_first = bool(state.memory.shape[1])
        names = [*self._present["decoder"], *(self._present["encoder"] if is_first else ())]
        inputs = {"input_ids": ids, "encoder_attention_mask": state.mask, "encoder_hidden_states": state.memory}
        logits, *present = self._decoder.run(["logits", *names], {**inputs, **state.past})
        new = {name.replace("present", "past_key_values"): array for name, array in zip(names, present, strict=True)}
        return logits, {**state.past, **new}


def check_installed(device: str) -> None:
    """See ``Comparer``."""
    import_package("onnxruntime", PURPOSE)


def open_export(export: Path, quantization: str, bundle: Bundle, device: torch.device) -> tuple[Onnx, str]:
    """See ``Comparer``."""
    return Onnx(export, quantization, bundle.sizes), quantization


def program_version() -> tuple[str, str]:
    """See ``Comparer``."""
    return "onnxruntime", version("onnxruntime")


def why_different(decode: DecodeConfig) -> list[str]:
    """See ``Comparer``: the search is ours."""
    return []
