"""The search of CTranslate2 on a model that ``formats.ctranslate2`` wrote: ids in, ids out, as ``batches.search_all``.

What is the same as in ``search``: the model, the ids, the extensions that a beam keeps, which of them are finished, and
the score, log P / ((5 + n) / 6) ** alpha. What is not: CTranslate2 stops a sentence when ``beam_size`` hypotheses are
finished (of n best, twice as many; or ``patience`` times as many), without asking whether an unfinished one could still
become better; so a translation may differ, seldom, where a longer one wins late. Its own length penalty, n ** alpha,
only chooses which of the finished ones it hands over. Its kernels may round differently for batches of different
shapes.

A hypothesis that reaches the limit of its sentence unfinished is ended there, and then read to know its probability.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from dragoman.bundle import Bundle
from dragoman.config import LengthPenalty
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from dragoman.decoding.batches import length_batches, most_tokens, report_lost, run_halving
from dragoman.decoding.search import NOT_FINITE, Hypothesis, penalised
from dragoman.device import is_out_of_memory
from dragoman.errors import ConfigError, DecodeError, not_installed
from dragoman.fast.step import weight_versions
from dragoman.toolkits.ctranslate2.write import why_not
from dragoman.toolkits.engine import Alive, Found, Models, Needs, Progress, SearchSettings, Segment
from dragoman.toolkits.export import Kept, kept

PRECISIONS = {"fp32": "float32", "int8": "int8"}
"""Ours, and what CTranslate2 calls them."""

BATCH_TOKENS = 512
"""Rows x longest source of a batch on a CPU, where the caller leaves that open: more are slower (docs/log.md)."""


def is_installed() -> bool:
    """Whether the package is there."""
    try:
        import_module("ctranslate2")
    except ImportError:
        return False
    return True


def precisions(device: str) -> set[str]:
    """In what CTranslate2 can compute on this ``cpu`` or ``cuda``.

    Raises:
        ConfigError: The package is not installed, or it sees no GPU.
    """
    try:
        ctranslate2 = import_module("ctranslate2")
    except ImportError:
        raise ConfigError(not_installed("engine = 'ctranslate2'", "ctranslate2")) from None
    if device == "cuda" and not ctranslate2.get_cuda_device_count():
        raise ConfigError("engine = 'ctranslate2' sees no GPU here: use engine torch, or device cpu")
    return set(ctranslate2.get_supported_compute_types(device))


def check(precision: str, device: str) -> None:
    """Raise what ``load`` would, before there is anything to load."""
    able = precisions(device)
    if precision not in able:
        raise ConfigError(
            f"engine = 'ctranslate2' cannot compute in {precision} on this {device}, but in {', '.join(sorted(able))}"
        )


class CTranslate2:
    """A model that CTranslate2 has loaded."""

    name: ClassVar[str] = "ctranslate2"
    loads_workers: ClassVar[bool] = True

    def __init__(
        self, translator: Any, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, longest: int | None = None,
        workers: int = 1,
    ) -> None:  # fmt: skip
        """Take a loaded ``ctranslate2.Translator`` and the tokenizers of the bundle that was converted.

        Args:
            longest: The most tokens that the model has positions for, eos counted; None: any.
            workers: How many batches it searches at a time.
        """
        self.translator, self.longest, self.workers = translator, longest, workers
        self.src_pieces = src_tokenizer.pieces(range(src_tokenizer.vocab_size))
        self.tgt_pieces = tgt_tokenizer.pieces(range(tgt_tokenizer.vocab_size))
        self.tgt_ids = {piece: i for i, piece in enumerate(self.tgt_pieces)}
        self._home: Kept | None = None
        self._versions: list[tuple[int, float]] = []  # of the weights that were converted

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """See ``Engine``."""
        if len(models.bundles) > 1:
            return "an ensemble"
        if reason := why_not(models.bundles[0].model.config):
            return f"this model: {reason}"
        if needs.precision not in PRECISIONS:
            return f"precision {needs.precision}"
        asked = {
            "sampling": needs.sampling, "alignments": needs.alignments, "parsing": needs.trees,
            "constrained decoding": needs.constraints,
        }  # fmt: skip
        return next((what for what, is_asked in asked.items() if is_asked), "")

    @classmethod
    def load(cls, models: Models, precision: str, workers: int) -> Self:
        """See ``Engine``; the model is written in CTranslate2's format first where that has not been done.

        Args:
            workers: On a CPU at least as many as torch has threads are taken: two batches on a thread each are done
                sooner than one on two.

        Raises:
            ConfigError: As ``open_folder``.
            DragomanError: No folder can be written.
        """
        bundle, device, versions = models.bundles[0], models.device.type, weight_versions(models.model)
        if device == "cpu":
            workers = max(workers, torch.get_num_threads())
        check(PRECISIONS[precision], device)  # before anything is written
        # an export beside the run has the weights that the run was loaded with
        home = kept(bundle, models.run if versions == models.versions else None, "ctranslate2", PRECISIONS[precision])
        translator = open_folder(home.folder, PRECISIONS[precision], device, workers)
        engine = cls(translator, bundle.src_tokenizer, bundle.tgt_tokenizer, models.longest, workers)
        engine._home, engine._versions = home, versions
        if home.temporary is not None:
            weakref.finalize(engine, home.temporary.cleanup)
        return engine

    def is_of(self, models: Models) -> bool:
        """See ``Engine``."""
        return self._versions == weight_versions(models.model)

    def close(self) -> None:
        """See ``Engine``."""
        if self._home is not None and self._home.temporary is not None:
            self._home.temporary.cleanup()

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, alive: Alive | None = None,
        progress: Progress | None = None,
    ) -> Found:  # fmt: skip
        """See ``Engine``; what is no longer alive is dropped before its batch is handed over.

        Batches are handed over ahead, so that each worker always has one: all of them, or, where segments may be
        dropped, two for each worker.
        """
        config = settings.decode
        if not 1 <= settings.n_best <= config.beam_size:
            raise DecodeError(f"n_best = {settings.n_best} must lie between 1 and beam_size = {config.beam_size}")
        search = _Search(self, segments, settings)
        most = min(config.batch_tokens, BATCH_TOKENS) if settings.balance else config.batch_tokens
        waiting = deque(length_batches([len(segment.ids) + 1 for segment in segments], most))
        ahead = len(waiting) if alive is None else 2 * self.workers
        running: deque[tuple[int, list[int], list[Any]]] = deque()  # how many there were, those still wanted, results
        lost: list[int] = []
        done = 0
        while waiting or running:
            while waiting and len(running) < ahead:
                whole = waiting.popleft()
                batch = whole if alive is None else [i for i in whole if alive(i)]
                running.append((len(whole), batch, search.start(batch) if batch else []))
            n, batch, results = running.popleft()
            try:
                search.settle(batch, results)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                lost += run_halving(batch, search.settle)
            done += n
            if progress is not None:
                progress(done, len(segments), "sentences translated")
        return Found(search.found, lost)

    def read(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int = 4096) -> list[list[float]]:
        """The log-probability of each token of given translations, in nats, eos last.

        Args:
            pairs: Sources and translations, as ids without bos and eos.
            batch_tokens: Rows x longest side of one batch.
        """
        found: list[list[float]] = [[] for _ in pairs]

        def read(batch: list[int]) -> None:
            results = self.translator.score_batch(
                [[self.src_pieces[i] for i in pairs[row][0]] for row in batch],
                [[self.tgt_pieces[i] for i in pairs[row][1]] for row in batch],
                max_input_length=0,
            )
            for row, result in zip(batch, results, strict=True):
                found[row] = list(result.log_probs)

        for batch in length_batches([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
            report_lost(run_halving(batch, read), None, "pair")
        return found


class _Search:
    """One call of ``CTranslate2.search``."""

    def __init__(self, engine: CTranslate2, segments: Sequence[Segment], settings: SearchSettings) -> None:
        self.engine, self.segments, self.settings = engine, segments, settings
        self.found: list[list[Hypothesis]] = [[] for _ in segments]
        self._never = (PAD_ID, BOS_ID) if settings.allow_unk else (PAD_ID, UNK_ID, BOS_ID)  # as in ``search``
        config, n_best = settings.decode, settings.n_best
        self._limits = [most_tokens(len(segment.ids), None, config, engine.longest) for segment in segments]
        # a sentence is done with so many finished hypotheses, which are all returned
        self._n_finished = max(n_best, math.ceil((config.patience or (1.0 if n_best == 1 else 2.0)) * config.beam_size))

    def start(self, batch: list[int], suppress: bool = False) -> list[Any]:
        """Hand over one batch; returns what will be the result of each of its sources.

        Args:
            suppress: Take away pad, bos and unk before the softmax. Without it they seldom come, and the probabilities
                are the model's.
        """
        engine, config = self.engine, self.settings.decode
        most = max(self._limits[i] for i in batch)
        return list(
            engine.translator.translate_batch(
                [[engine.src_pieces[i] for i in self.segments[row].ids] for row in batch],
                asynchronous=True, beam_size=config.beam_size, num_hypotheses=self._n_finished,
                patience=self._n_finished / config.beam_size, length_penalty=config.length_penalty,
                return_scores=True, return_end_token=True, max_input_length=0,
                min_decoding_length=0, max_decoding_length=max(1, most - 1),  # then eos must come
                suppress_sequences=[[engine.tgt_pieces[i]] for i in self._never] if suppress else None,
                use_vmap=self.settings.shortlist,  # the union of a batch's shortlists
            )
        )  # fmt: skip

    def settle(self, batch: list[int], running: list[Any] | None = None, suppress: bool = False) -> None:
        """Wait for a batch, and search again for those of it that were not searched for as they should be."""
        if not batch:
            return
        most = max(self._limits[i] for i in batch)
        waited = running or self.start(batch, suppress)
        results = {i: one.result() for i, one in zip(batch, waited, strict=True)}
        # a limit counts for a whole batch: those that went beyond their own are searched for again by it
        late = [
            i for i in batch if self._limits[i] < most and any(len(h) >= self._limits[i] for h in results[i].hypotheses)
        ]
        good = [i for i in batch if i not in late]
        for i, hypotheses in zip(good, self._finish(good, results, suppress), strict=True):
            self.found[i] = hypotheses[: self.settings.n_best]
        for limit in sorted({self._limits[i] for i in late}):
            self.settle([i for i in late if self._limits[i] == limit], suppress=suppress)
        if not suppress:
            self.settle([i for i in good if self._spoiled(results[i], self.found[i])], suppress=True)

    def _spoiled(self, result: Any, hypotheses: Sequence[Hypothesis]) -> bool:
        """True if a sentence must be searched again without the special subwords.

        That is so if unk stands in any hypothesis, as the beam that it took could have held a better one; or if all
        hypotheses hold pad or bos, which a trained model hardly ever predicts.
        """
        unk = None if self.settings.allow_unk else self.engine.tgt_pieces[UNK_ID]
        return not hypotheses or any(unk in pieces for pieces in result.hypotheses)

    def _finish(self, good: list[int], results: dict[int, Any], suppress: bool) -> list[list[Hypothesis]]:
        """Make hypotheses with our scores, best first, of what CTranslate2 found for each.

        Raises:
            DecodeError: A score is not finite.
        """
        engine, decode = self.engine, self.settings.decode
        found: list[dict[tuple[int, ...], float]] = []  # of each source: ids without eos, and their log-probability
        unread: list[tuple[int, tuple[int, ...]]] = []
        for row, i in enumerate(good):
            found.append({})
            for pieces, score in zip(results[i].hypotheses, results[i].scores, strict=True):
                if not math.isfinite(score):
                    raise DecodeError(NOT_FINITE)
                ids = tuple(engine.tgt_ids[piece] for piece in pieces)
                ended = bool(ids) and ids[-1] == EOS_ID
                if any(each in self._never for each in ids):
                    continue
                if ended and not suppress:
                    found[row][ids[:-1]] = score * len(ids) ** decode.length_penalty
                else:
                    unread.append((row, ids[:-1] if ended else ids[: self._limits[i] - 1]))
        pairs = [(self.segments[good[row]].ids, ids) for row, ids in unread]
        read = engine.read(pairs, self.settings.decode.batch_tokens)
        for (row, ids), log_probs in zip(unread, read, strict=True):
            found[row][ids] = sum(log_probs)
        return [
            sorted((_hypothesis(ids, log_p, decode.penalty) for ids, log_p in one.items()), key=lambda one: -one.score)
            for one in found
        ]


def _hypothesis(ids: Sequence[int], log_prob: float, alpha: LengthPenalty) -> Hypothesis:
    return Hypothesis(list(ids), penalised(log_prob, len(ids) + 1, alpha), log_prob)


def open_folder(folder: Path, precision: str, device: str = "cpu", workers: int = 1, threads: int = 1) -> Any:
    """A ``ctranslate2.Translator`` of a folder that ``formats.ctranslate2.write`` filled.

    Args:
        precision: In which to compute: ``float32``, or another of CTranslate2's, such as ``int8``.
        device: ``cpu`` or ``cuda``.
        workers: Batches searched at a time.
        threads: Of each worker.

    Raises:
        ConfigError: The package is not installed, or it cannot compute so on this machine.
    """
    check(precision, device)
    n_threads = torch.get_num_threads()
    try:
        return import_module("ctranslate2").Translator(
            str(folder), device=device, compute_type=precision, inter_threads=workers, intra_threads=threads
        )
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"{folder}: CTranslate2 cannot load it ({error}); use engine torch") from None
    finally:
        torch.set_num_threads(n_threads)  # it takes its own number for the thread that loads it, torch's included


def open_export(folder: Path, quantization: str, bundle: Bundle, device: str) -> tuple[CTranslate2, str]:
    """Load an export of a bundle, and say in what it computes: its own precision, or what this machine has for it.

    Raises:
        ConfigError: As ``open_folder``.
    """
    whole = quantization in ("float16", "bfloat16")
    own = [quantization, "float32" if whole or quantization == "float32" else "int8_float32"]
    able = precisions(device)
    precision = next((name for name in own if name in able), own[-1])
    translator = open_folder(folder, precision, device)
    return CTranslate2(translator, bundle.src_tokenizer, bundle.tgt_tokenizer), precision
