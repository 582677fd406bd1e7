"""Search with CTranslate2 on a model that ``write.py`` wrote: ids in, ids out, as ``search_all``.

Model, ids, the extensions that a beam keeps, and the score log P / ((5 + n) / 6) ** alpha are those of our search.
Three things differ:

* CTranslate2 stops a sentence when ``beam_size`` hypotheses are finished (twice as many for several best, or
  ``patience`` times as many), even if an unfinished one could still become better. So a few translations differ.
* Its own length penalty, n ** alpha, only chooses which of the finished hypotheses it returns.
* Its kernels may round differently for batches of different shapes.

A hypothesis that reaches the limit of its sentence unfinished is ended there, and then scored.
"""

from __future__ import annotations

import math
import os
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig
from dragoman.data.tokenizer import EOS_ID, UNK_ID, Tokenizer
from dragoman.decoding.alignment import Attention
from dragoman.decoding.batches import length_batches, most_tokens, run_halving
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.constraints import Rules
from dragoman.decoding.request import (
    NOT_FINITE,
    Hypothesis,
    Progress,
    SearchResult,
    SearchSettings,
    Segment,
    out_of_memory,
    scored,
)
from dragoman.device import is_out_of_memory, n_threads, set_threads
from dragoman.errors import ConfigError, DecodeError
from dragoman.fast import LEAST_SOURCE
from dragoman.options import Precision
from dragoman.toolkits.ctranslate2.write import why_not
from dragoman.toolkits.engine import Attend, Models, Needs, Versions, beyond_plain_search
from dragoman.toolkits.export import KeptExport, load_kept_export
from dragoman.toolkits.writing import n_positions

if TYPE_CHECKING:
    import torch

PRECISIONS = {"fp32": "float32", "int8": "int8"}
"""Our precisions, and their names in CTranslate2."""

BATCH_TOKENS = 512
"""Rows x longest source of a batch on a CPU, unless the caller chooses; larger ones are slower.

The sizes that were tried: benchmarks/records/decoding-speed.md.
"""


def precisions(device: str) -> set[str]:
    """Return the precisions that CTranslate2 has on this ``cpu`` or ``cuda``.

    Raises:
        ConfigError: It sees no GPU.
    """
    ctranslate2 = import_module("ctranslate2")
    if device == "cuda" and not ctranslate2.get_cuda_device_count():
        raise ConfigError("engine = 'ctranslate2' sees no GPU here: use engine torch, or device cpu")
    return set(ctranslate2.get_supported_compute_types(device))


def check_installed(device: str) -> None:
    """See ``Comparer``."""
    precisions(device)


def program_version() -> tuple[str, str]:
    """See ``Comparer``."""
    return "ctranslate2", version("ctranslate2")


def why_different(decode: DecodeConfig) -> list[str]:
    """See ``Comparer``."""
    if decode.beam_size == 1 or decode.patience is not None:
        return []
    return ["B stops a sentence at as many finished hypotheses as the beam, A when no better one can come"]


def check(precision: str, device: str) -> None:
    """Refuse a precision that CTranslate2 does not have on this device."""
    able = precisions(device)
    if precision not in able:
        raise ConfigError(
            f"engine = 'ctranslate2' has the precisions {', '.join(sorted(able))} on this {device}, got {precision}"
        )


def _close_own(temporary: ExitStack, pid: int) -> None:
    """Remove a temporary folder, unless this is a forked child that ends."""
    if pid == os.getpid():
        temporary.close()


_OF_PARENT: list[object] = []
"""Engines that a forked child has from its parent: CTranslate2 would wait for their threads before it frees them."""


class CTranslate2:
    """Model that CTranslate2 has loaded."""

    name: ClassVar[str] = "ctranslate2"
    loads_workers: ClassVar[bool] = True
    merit: ClassVar[str] = "the faster one on a CPU"

    def __init__(self, translator: Any, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, workers: int = 1) -> None:
        """Take a loaded ``ctranslate2.Translator`` and the tokenizers of the bundle that was converted.

        Args:
            workers: Number of batches that it searches at a time.
        """
        self.translator, self.workers = translator, workers
        self.src_pieces = src_tokenizer.pieces(range(src_tokenizer.vocab_size))
        self.tgt_pieces = tgt_tokenizer.pieces(range(tgt_tokenizer.vocab_size))
        self.tgt_ids = {piece: i for i, piece in enumerate(self.tgt_pieces)}
        self.export: KeptExport | None = None
        self.n_positions: int | None = None  # rows of the table of positions; None: it needs none, or is not known
        self.folder: Path | None = None  # of an export that is compared with its model
        self._changes: Versions = []  # of the converted weights
        self._pid = os.getpid()

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """See ``Engine``."""
        if len(models.bundles) > 1:
            return "an ensemble"
        if reason := why_not(models.bundles[0].sizes):
            return f"this model: {reason}"
        if needs.precision not in PRECISIONS:
            return f"precision {needs.precision}"
        return beyond_plain_search(models, needs)

    @classmethod
    def why_not_auto(cls, models: Models, needs: Needs) -> str:
        """See ``Engine``: on a CPU it is faster than torch in the same precision."""
        if obstacle := cls.obstacle(models, needs):
            return f"CTranslate2 cannot do {obstacle}"
        return "" if models.device_type == "cpu" else "a GPU"

    @classmethod
    def fastest_precision(cls, models: Models, needs: Needs) -> Precision | None:
        """See ``Engine``."""
        in_int8 = replace(needs, precision="int8")
        can = models.device_type == "cpu" and not cls.obstacle(models, in_int8)
        return "int8" if can and "int8" in precisions(models.device_type) else None

    def cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[bool] | None:
        """See ``ExportedSearcher``: the subwords are in the folder of an export."""
        if self.folder is None:
            return None
        from dragoman.toolkits.subwords import cut_differently_by_sentencepiece

        return cut_differently_by_sentencepiece(self.folder, texts, ids)

    @classmethod
    def load(cls, models: Models, precision: str, workers: int) -> Self:
        """See ``Engine``; the model is first written in CTranslate2's format, unless that was done before.

        Args:
            workers: Number of batches searched at a time, each on one thread: two batches on one thread each are
                faster than one batch on two.

        Raises:
            ConfigError: See ``open_folder``.
            DragomanError: No folder can be written.
        """
        bundle, device, changes = models.bundles[0], models.device_type, models.changes
        check(PRECISIONS[precision], device)  # before anything is written
        # The export in the run's folder has the weights on disk: it serves only if they were not changed in memory.
        export, translator = load_kept_export(
            bundle, None if changes else models.run, "ctranslate2", PRECISIONS[precision],
            lambda folder: open_folder(folder, PRECISIONS[precision], device, workers),
        )  # fmt: skip
        engine = cls(translator, bundle.src_tokenizer, bundle.tgt_tokenizer, workers)
        engine.export, engine._changes = export, changes
        engine.n_positions = None if bundle.sizes.positions == "rotary" else n_positions(bundle)
        if export.temporary is not None:
            weakref.finalize(engine, _close_own, export.temporary, engine._pid)
        return engine

    def is_of(self, models: Models) -> bool:
        """See ``Engine``; its threads are not in a forked child of the program, which loads it again."""
        return self._changes == models.changes and self._pid == os.getpid()

    def can_search(self, rules: Rules) -> bool:
        """See ``Engine``: under the guard's own rules, but not with words of which it would need the spelling."""
        return not (rules.prefix or rules.include or rules.exclude or rules.ids)

    @property
    def attend(self) -> Attend | None:
        """See ``Engine``; of an export that is compared None, as an earlier version has another layer's attention."""
        return None if self.export is None else self._attend

    def _attend(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int,
        cancellation: Cancellation | None = None,
    ) -> list[Attention | None]:  # fmt: skip
        """See ``engine.Attend``; ``write.py`` says which layer's attention CTranslate2 returns."""
        attentions: list[Attention | None] = [None] * len(pairs)

        def attend(batch: list[int]) -> None:
            results = self.translator.translate_batch(
                [[self.src_pieces[i] for i in pairs[row][0]] for row in batch],
                target_prefix=[[self.tgt_pieces[i] for i in pairs[row][1]] for row in batch],
                max_decoding_length=max(len(pairs[row][1]) for row in batch) + 1,  # eos, or another one in its place
                beam_size=1, return_attention=True, return_end_token=True, max_input_length=0, min_decoding_length=0,
            )  # fmt: skip
            for row, result in zip(batch, results, strict=True):
                attentions[row] = np.array(result.attention[0][: len(pairs[row][1]) + 1], np.float32)

        lengths = [max(len(src), len(tgt)) + 1 for src, tgt in pairs]
        fitting = [row for row, n in enumerate(lengths) if self.n_positions is None or n <= self.n_positions]
        for batch in length_batches([lengths[row] for row in fitting], batch_tokens):
            if cancellation is None or not cancellation.cancelled:
                run_halving([fitting[place] for place in batch], attend)
        return attentions

    def close(self) -> None:
        """See ``Engine``."""
        if self._pid != os.getpid():
            _OF_PARENT.append(self)
        elif self.export is not None and self.export.temporary is not None:
            self.export.temporary.close()

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, progress: Progress | None = None
    ) -> SearchResult:
        """See ``Engine``; cancelled segments are left out when their batch is submitted.

        Batches are submitted ahead, so that no worker waits: all of them, or two for each worker if segments may be
        cancelled.
        """
        config = settings.decode
        settings.check(segments)
        if any(segment.rules is not None and not self.can_search(segment.rules) for segment in segments):
            raise ConfigError("engine = 'ctranslate2' cannot search with a prefix, or with words to include or exclude")
        search = _Search(self, segments, settings)
        most = min(config.batch_tokens, BATCH_TOKENS) if settings.balance else config.batch_tokens
        # By default batches are small, however short their lines are.
        least = 1 if settings.balance else LEAST_SOURCE
        waiting: deque[list[int]] = deque()
        for rows in search.with_equal_rules():
            lengths = [len(segments[i].ids) + 1 for i in rows]
            waiting.extend([rows[place] for place in batch] for batch in length_batches(lengths, most, least))
        can_be_cancelled = any(segment.cancellation is not None for segment in segments)
        ahead = 2 * self.workers if can_be_cancelled else len(waiting)
        running: deque[_Running] = deque()
        lost: list[int] = []
        done = 0
        while waiting or running:
            while waiting and len(running) < ahead:
                batch = waiting.popleft()
                rows = [i for i in batch if not segments[i].is_cancelled]
                running.append(_Running(len(batch), rows, search.start(rows) if rows else []))
            first = running.popleft()
            try:
                search.collect(first.rows, first.results)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                lost += run_halving(first.rows, search.collect)
            done += first.size
            if progress is not None:
                progress(done, len(segments), "sentences translated")
        return SearchResult(search.hypotheses, lost)

    def read(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int = 4096) -> list[list[float]]:
        """See ``ExportedSearcher``.

        Args:
            batch_tokens: Rows x longest side of one batch.

        Raises:
            DecodeError: A pair ran out of memory.
        """
        log_probs: list[list[float]] = [[] for _ in pairs]

        def read(batch: list[int]) -> None:
            results = self.translator.score_batch(
                [[self.src_pieces[i] for i in pairs[row][0]] for row in batch],
                [[self.tgt_pieces[i] for i in pairs[row][1]] for row in batch],
                max_input_length=0,
            )
            for row, result in zip(batch, results, strict=True):
                log_probs[row] = list(result.log_probs)

        for batch in length_batches([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
            if lost := run_halving(batch, read):
                raise out_of_memory("pair", min(lost))
        return log_probs


@dataclass(frozen=True)
class _Running:
    """Submitted batch."""

    size: int  # number of its segments, cancelled ones too
    rows: list[int]  # segments that were not cancelled
    results: list[Any]  # future result of each row


_Spelled = tuple[list[str], float]
"""Subwords of a hypothesis, and CTranslate2's score."""


def _spelled(result: Any) -> list[_Spelled]:
    """Return the hypotheses of a result, which CTranslate2 copies each time that they are read."""
    return list(zip(result.hypotheses, result.scores, strict=True))


class _Search:
    """State of one call of ``CTranslate2.search``."""

    def __init__(self, engine: CTranslate2, segments: Sequence[Segment], settings: SearchSettings) -> None:
        self.engine, self.segments, self.settings = engine, segments, settings
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in segments]
        config, n_best = settings.decode, settings.n_best
        self._limits = [most_tokens(segment, settings) for segment in segments]
        # A sentence ends when so many hypotheses are finished; all of them are returned.
        self._n_finished = max(n_best, math.ceil((config.patience or (1.0 if n_best == 1 else 2.0)) * config.beam_size))

    def with_equal_rules(self) -> list[list[int]]:
        """Return the segments in groups of equal rules: CTranslate2 has those of a batch."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i in range(len(self.segments)):
            groups.setdefault(self._rules(i), []).append(i)
        return list(groups.values())

    def _rules(self, i: int) -> tuple[int, int]:
        """Return the length of n-grams that may not come twice in a segment, and the least number of its tokens."""
        rules = self.segments[i].rules
        return (0, 0) if rules is None else (rules.no_repeat_ngram, rules.min_tokens)

    def start(self, batch: list[int], suppress: bool = False) -> list[Any]:
        """Submit one batch, whose rules are equal, and return the future result of each source.

        Args:
            suppress: Remove pad, bos and unk before the softmax. They seldom win without it, and the probabilities are
                then the model's own.
        """
        engine, config = self.engine, self.settings.decode
        most, (no_repeat_ngram, min_tokens) = max(self._limits[i] for i in batch), self._rules(batch[0])
        return list(
            engine.translator.translate_batch(
                [[engine.src_pieces[i] for i in self.segments[row].ids] for row in batch],
                asynchronous=True, beam_size=config.beam_size, num_hypotheses=self._n_finished,
                patience=self._n_finished / config.beam_size, length_penalty=config.length_penalty,
                return_scores=True, return_end_token=True, max_input_length=0,
                min_decoding_length=min(min_tokens, most - 1), max_decoding_length=max(1, most - 1),  # eos follows
                no_repeat_ngram_size=no_repeat_ngram,
                suppress_sequences=[[engine.tgt_pieces[i]] for i in self.settings.never] if suppress else None,
                use_vmap=self.settings.shortlist,  # the union of a batch's shortlists
            )
        )  # fmt: skip

    def collect(self, batch: list[int], running: list[Any] | None = None, suppress: bool = False) -> None:
        """Wait for a batch; search sentences again that went past their limit or got special subwords."""
        if not batch:
            return
        most = max(self._limits[i] for i in batch)
        futures = running or self.start(batch, suppress)
        spelled = {i: _spelled(future.result()) for i, future in zip(batch, futures, strict=True)}
        # CTranslate2 has one limit for a batch: sentences that went beyond their own are searched again with it.
        late = [
            i for i in batch
            if self._limits[i] < most and any(len(pieces) >= self._limits[i] for pieces, _ in spelled[i])
        ]  # fmt: skip
        good = [i for i in batch if i not in late]
        for i, hypotheses in zip(good, self._finish(good, spelled, suppress), strict=True):
            self.hypotheses[i] = hypotheses if self.settings.with_spare else hypotheses[: self.settings.n_best]
        for limit in sorted({self._limits[i] for i in late}):
            self.collect([i for i in late if self._limits[i] == limit], suppress=suppress)
        if not suppress:
            self.collect([i for i in good if self._needs_suppression(spelled[i], self.hypotheses[i])], suppress=True)

    def _needs_suppression(self, spelled: Sequence[_Spelled], hypotheses: Sequence[Hypothesis]) -> bool:
        """True if a sentence must be searched again without the special subwords.

        Any hypothesis with unk may have displaced a better one. And none may be left without pad and bos, which a
        trained model hardly ever predicts.
        """
        unk = None if self.settings.allow_unk else self.engine.tgt_pieces[UNK_ID]
        return not hypotheses or any(unk in pieces for pieces, _ in spelled)

    def _finish(
        self, good: list[int], spelled: Mapping[int, Sequence[_Spelled]], suppress: bool
    ) -> list[list[Hypothesis]]:
        """Return CTranslate2's hypotheses of each source with our scores, best first.

        Raises:
            DecodeError: A score is not finite.
        """
        engine, decode, never = self.engine, self.settings.decode, frozenset(self.settings.never)
        penalty = decode.penalty
        log_probs_of: list[dict[tuple[int, ...], float]] = []  # for each source, by ids without eos
        unread: list[tuple[int, tuple[int, ...]]] = []
        for row, i in enumerate(good):
            log_probs_of.append({})
            is_free = not any(self._rules(i))  # rules too take tokens away before the softmax
            for pieces, score in spelled[i]:
                if not math.isfinite(score):
                    raise DecodeError(NOT_FINITE)
                ids = tuple(map(engine.tgt_ids.__getitem__, pieces))
                ended = bool(ids) and ids[-1] == EOS_ID
                if not never.isdisjoint(ids):
                    continue
                if ended and not suppress and is_free:
                    log_probs_of[row][ids[:-1]] = score * len(ids) ** decode.length_penalty
                else:
                    unread.append((row, ids[:-1] if ended else ids[: self._limits[i] - 1]))
        pairs = [(self.segments[good[row]].ids, ids) for row, ids in unread]
        read = engine.read(pairs, self.settings.decode.batch_tokens)
        for (row, ids), log_probs in zip(unread, read, strict=True):
            log_probs_of[row][ids] = sum(log_probs)
        return [
            sorted((scored(ids, log_p, penalty) for ids, log_p in own.items()), key=lambda h: -h.score)
            for own in log_probs_of
        ]


def open_folder(folder: Path, precision: str, device: str = "cpu", workers: int = 1, threads: int = 1) -> Any:
    """Load a folder that ``write.py`` wrote as a ``ctranslate2.Translator``.

    Args:
        precision: One of CTranslate2's, such as ``float32`` or ``int8``.
        device: ``cpu`` or ``cuda``.
        workers: Number of batches searched at a time.
        threads: Number of threads of each worker.

    Raises:
        ConfigError: The package has no such precision on this machine.
    """
    check(precision, device)
    number = n_threads()
    try:
        return import_module("ctranslate2").Translator(
            str(folder), device=device, compute_type=precision, inter_threads=workers, intra_threads=threads
        )
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"{folder}: CTranslate2 cannot load it ({error}); use engine torch") from None
    finally:
        set_threads(number)  # loading changes torch's number of threads


def open_export(export: Path, quantization: str, bundle: Bundle, device: torch.device) -> tuple[CTranslate2, str]:
    """See ``Comparer``; the precision is the export's own, or the nearest one of this machine."""
    whole = quantization in ("float16", "bfloat16")
    own = [quantization, "float32" if whole or quantization == "float32" else "int8_float32"]
    able = precisions(device.type)
    precision = next((name for name in own if name in able), own[-1])
    translator = open_folder(export, precision, device.type)
    engine = CTranslate2(translator, bundle.src_tokenizer, bundle.tgt_tokenizer)
    engine.folder = export
    return engine, precision
