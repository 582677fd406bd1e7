"""Search with transformers on a model that ``write.py`` wrote, ids in and ids out, to compare it with ours.

Users cannot choose it as an engine, as ours is faster. Model, ids and the limit of a sentence are those of our search.
Its beam search keeps 2 x ``beam_size`` extensions as ours does, but divides by n ** p. With ``early_stopping="never"``
it searches until no better hypothesis is possible at the limit. Each search stops by the rule that ``write.py`` writes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.decoding.batches import most_tokens
from dragoman.decoding.request import NOT_FINITE, Hypothesis, Progress, SearchResult, SearchSettings, Segment, scored
from dragoman.errors import DecodeError
from dragoman.toolkits.engine import Models, Needs, beyond_plain_search
from dragoman.toolkits.huggingface.tokenizer_json import cut_differently_by_json
from dragoman.toolkits.huggingface.write import early_stopping, power
from dragoman.toolkits.toolkit import import_package

BATCH = 32  # sentences of one length
PURPOSE = "comparing an export for Hugging Face"


class HuggingFace:
    """Model that transformers has loaded."""

    name: ClassVar[str] = "huggingface"

    def __init__(self, folder: Path, device: torch.device) -> None:
        """Load a folder that ``write.py`` wrote.

        Raises:
            ConfigError: The package is not installed.
        """
        self.transformers = import_package("transformers", PURPOSE)
        load = self.transformers.AutoModelForSeq2SeqLM.from_pretrained
        self.model = load(folder, local_files_only=True).eval().to(device)
        self.model.generation_config = self.transformers.GenerationConfig()  # each search has its own
        self.tokenizer = self.transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.device, self.folder = device, folder

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """See ``Searcher``."""
        return beyond_plain_search(models, needs)

    def cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[bool]:
        """See ``ExportedSearcher``: its ``AutoTokenizer``, and ``tokenizer.json`` if it is there."""
        pairs = zip(texts, ids, strict=True)
        slow = [self.tokenizer(text)["input_ids"] != [*row, EOS_ID] for text, row in pairs]
        fast = cut_differently_by_json(self.folder, texts, ids) or slow
        return [one or other for one, other in zip(slow, fast, strict=True)]

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, progress: Progress | None = None
    ) -> SearchResult:
        """See ``Searcher``; sentences of the same length are one batch, without padding."""
        n_best = settings.n_best
        by_length: dict[int, list[int]] = defaultdict(list)
        for i, segment in enumerate(segments):
            by_length[len(segment.ids)].append(i)
        hypotheses: list[list[Hypothesis]] = [[] for _ in segments]
        done = 0
        for _, members in sorted(by_length.items()):
            limit = most_tokens(segments[members[0]], settings)
            for start in range(0, len(members), BATCH):
                batch = members[start : start + BATCH]
                src = torch.tensor([[*segments[i].ids, EOS_ID] for i in batch], device=self.device)
                how = self._generation_config(settings, limit)
                with torch.inference_mode():
                    rows = self.model.generate(src, attention_mask=torch.ones_like(src), generation_config=how).tolist()
                ids = [row[1 : [*row[1:], EOS_ID].index(EOS_ID) + 1] for row in rows]
                sources = [segments[i].ids for i in batch for _ in range(n_best)]
                log_probs = map(sum, self.read(list(zip(sources, ids, strict=True))))
                flat = [scored(row, log_p, settings.penalty) for row, log_p in zip(ids, log_probs, strict=True)]
                for place, i in enumerate(batch):
                    hypotheses[i] = flat[place * n_best : (place + 1) * n_best]
                done += len(batch)
                if progress is not None:
                    progress(done, len(segments), "sentences translated")
        return SearchResult(hypotheses)

    def _generation_config(self, settings: SearchSettings, limit: int) -> Any:
        decode = settings.decode
        beam: dict[str, Any] = {}
        if decode.beam_size > 1:
            beam = dict(length_penalty=power(decode), early_stopping=early_stopping(decode))
        return self.transformers.GenerationConfig(
            num_beams=decode.beam_size, num_return_sequences=settings.n_best, do_sample=False, max_new_tokens=limit,
            pad_token_id=PAD_ID, bos_token_id=BOS_ID, eos_token_id=EOS_ID, decoder_start_token_id=BOS_ID,
            forced_eos_token_id=EOS_ID, suppress_tokens=list(settings.never), **beam,
        )  # fmt: skip

    def read(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        """See ``ExportedSearcher``."""
        log_probs: list[list[float]] = []
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            src = self._padded([[*src, EOS_ID] for src, _ in batch])
            tgt_in = self._padded([[BOS_ID, *tgt] for _, tgt in batch])
            tgt_out = self._padded([[*tgt, EOS_ID] for _, tgt in batch])
            with torch.inference_mode():
                logits = self.model(
                    input_ids=src, attention_mask=(src != PAD_ID).long(), decoder_input_ids=tgt_in
                ).logits.float()  # (B, T, V)
            log_p = logits.log_softmax(-1).gather(2, tgt_out[:, :, None])[:, :, 0].tolist()
            log_probs += [row[: len(tgt) + 1] for row, (_, tgt) in zip(log_p, batch, strict=True)]
        if not all(math.isfinite(number) for row in log_probs for number in row):
            raise DecodeError(NOT_FINITE)
        return log_probs

    def _padded(self, rows: Sequence[list[int]]) -> Tensor:
        longest = max(map(len, rows))
        return torch.tensor([row + [PAD_ID] * (longest - len(row)) for row in rows], device=self.device)


def check_installed(device: str) -> None:
    """See ``Comparer``."""
    import_package("transformers", PURPOSE)


def open_export(export: Path, quantization: str, bundle: Bundle, device: torch.device) -> tuple[HuggingFace, str]:
    """See ``Comparer``."""
    return HuggingFace(export, device), quantization


def program_version() -> tuple[str, str]:
    """See ``Comparer``."""
    return "transformers", version("transformers")


def why_different(decode: DecodeConfig) -> list[str]:
    """See ``Comparer``."""
    if decode.beam_size == 1:
        return []
    reasons = ["B ends a hypothesis that reaches the limit of its sentence for free, A with the probability of eos"]
    if decode.patience not in (None, 1):
        reasons.append(
            f"A stops a sentence at {decode.patience:g} times as many finished hypotheses as the beam, "
            "B when no better one can come"
        )
    if decode.length_penalty_form == "gnmt":
        reasons.append(f"B divides by n ** {power(decode):g}, A by {decode.penalty.formula}")
    return reasons
