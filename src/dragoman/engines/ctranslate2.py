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
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.config import DecodeConfig
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.decoding.batches import length_batches, most_tokens, report_lost, run_halving
from dragoman.decoding.search import NOT_FINITE, Hypothesis, length_penalty
from dragoman.device import is_out_of_memory
from dragoman.errors import ConfigError, DecodeError

NEVER = (PAD_ID, BOS_ID)  # as in ``search``


class CTranslate2(NamedTuple):
    """A model that CTranslate2 has loaded."""

    translator: Any
    src_pieces: Sequence[str]  # by id
    tgt_pieces: Sequence[str]
    tgt_ids: dict[str, int]


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
        raise ConfigError(
            "engine = 'ctranslate2', but CTranslate2 is not installed: pip install '.[ctranslate2]' in the checkout"
        ) from None
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


def load(
    folder: Path,
    src_pieces: Sequence[str],
    tgt_pieces: Sequence[str],
    precision: str,
    device: str = "cpu",
    workers: int = 1,
    threads: int = 1,
) -> CTranslate2:
    """Load a folder that ``interop.ctranslate2.write`` filled.

    Args:
        src_pieces, tgt_pieces: The piece of each id, as its vocabularies say.
        precision: In which to compute: ``float32``, or another of CTranslate2's, such as ``int8``.
        device: ``cpu`` or ``cuda``.
        workers: Batches searched at a time.
        threads: Of each worker.

    Raises:
        ConfigError: The package is not installed, or it cannot compute so on this machine.
    """
    check(precision, device)
    try:
        translator = import_module("ctranslate2").Translator(
            str(folder), device=device, compute_type=precision, inter_threads=workers, intra_threads=threads
        )
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"{folder}: CTranslate2 cannot load it ({error}); use engine torch") from None
    return CTranslate2(translator, src_pieces, tgt_pieces, {piece: i for i, piece in enumerate(tgt_pieces)})


def search_all(
    engine: CTranslate2,
    src_ids: Sequence[Sequence[int]],
    config: DecodeConfig,
    n_best: int = 1,
    progress: Callable[[int, int, str], object] = lambda done, total, what: None,
    *,
    longest: int | None = None,
    failed: Callable[[int], None] | None = None,
) -> list[list[Hypothesis]]:
    """Translate ids to ids; arguments, result and errors are those of ``batches.search_all``.

    All batches are handed over at once, so that each worker always has one.
    """
    if not 1 <= n_best <= config.beam_size:
        raise DecodeError(f"n_best = {n_best} must lie between 1 and beam_size = {config.beam_size}")
    found: list[list[Hypothesis]] = [[] for _ in src_ids]
    limits = [most_tokens(len(ids), None, config, longest) for ids in src_ids]
    n_finished = max(n_best, math.ceil((config.patience or (1.0 if n_best == 1 else 2.0)) * config.beam_size))

    def search(batch: list[int], running: list[Any] | None = None, suppress: bool = False) -> None:
        most = max(limits[i] for i in batch)
        running = running or start(engine, [src_ids[i] for i in batch], most, config, n_finished, suppress)
        results = {i: one.result() for i, one in zip(batch, running, strict=True)}
        late = [i for i in batch if limits[i] < most and any(len(h) >= limits[i] for h in results[i].hypotheses)]
        good = [i for i in batch if i not in late]
        finished = finish(engine, [(src_ids[i], limits[i], results[i]) for i in good], config, suppress)
        for i, hypotheses in zip(good, finished, strict=True):
            found[i] = hypotheses[:n_best]
        for limit in sorted({limits[i] for i in late}):  # a limit counts for a whole batch: again, with their own
            search([i for i in late if limits[i] == limit], suppress=suppress)
        nothing = [i for i in good if not found[i]]
        if nothing and not suppress:  # all that was found held pad or bos
            search(nothing, suppress=True)

    batches = list(length_batches([len(ids) + 1 for ids in src_ids], config.batch_tokens))
    running = [start(engine, [src_ids[i] for i in b], max(limits[i] for i in b), config, n_finished) for b in batches]
    lost: list[int] = []
    done = 0
    for batch, results in zip(batches, running, strict=True):
        try:
            search(batch, results)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            lost += run_halving(batch, search)
        done += len(batch)
        progress(done, len(src_ids), "sentences translated")
    report_lost(lost, failed)
    return found


def start(
    engine: CTranslate2,
    sources: Sequence[Sequence[int]],
    limit: int,
    config: DecodeConfig,
    n_finished: int,
    suppress: bool = False,
) -> list[Any]:
    """Hand over one batch; returns what will be the result of each of its sources.

    Args:
        limit: The most tokens of a translation, eos counted.
        n_finished: A sentence is done with so many finished hypotheses, which are all returned.
        suppress: Take away pad and bos before the softmax. Without it they hardly ever come, and the probabilities are
            the model's.
    """
    beam_size = config.beam_size
    return list(
        engine.translator.translate_batch(
            [[engine.src_pieces[i] for i in ids] for ids in sources],
            asynchronous=True, beam_size=beam_size, num_hypotheses=n_finished, patience=n_finished / beam_size,
            length_penalty=config.length_penalty, return_scores=True, return_end_token=True, max_input_length=0,
            min_decoding_length=0, max_decoding_length=max(1, limit - 1),  # then eos must come
            suppress_sequences=[[engine.tgt_pieces[i]] for i in NEVER] if suppress else None,
        )
    )  # fmt: skip


def finish(
    engine: CTranslate2,
    searched: Sequence[tuple[Sequence[int], int, Any]],
    config: DecodeConfig,
    suppress: bool,
) -> list[list[Hypothesis]]:
    """Make hypotheses with our scores, best first, of each source, its limit and what CTranslate2 found.

    Raises:
        DecodeError: A score is not finite.
    """
    found: list[dict[tuple[int, ...], float]] = []  # of each source: ids without eos, and their log-probability
    unread: list[tuple[int, tuple[int, ...]]] = []
    for row, (_, limit, result) in enumerate(searched):
        found.append({})
        for pieces, score in zip(result.hypotheses, result.scores, strict=True):
            if not math.isfinite(score):
                raise DecodeError(NOT_FINITE)
            ids = tuple(engine.tgt_ids[piece] for piece in pieces)
            ended = bool(ids) and ids[-1] == EOS_ID
            if any(i in NEVER for i in ids):
                continue
            if ended and not suppress:
                found[row][ids[:-1]] = score * len(ids) ** config.length_penalty
            else:
                unread.append((row, ids[:-1] if ended else ids[: limit - 1]))
    read = read_all(engine, [(searched[row][0], ids) for row, ids in unread], config.batch_tokens)
    for (row, ids), log_probs in zip(unread, read, strict=True):
        found[row][ids] = sum(log_probs)
    alpha = config.length_penalty
    hypotheses = [
        [Hypothesis(list(ids), log_p / length_penalty(len(ids) + 1, alpha), log_p) for ids, log_p in one.items()]
        for one in found
    ]
    return [sorted(one, key=lambda hypothesis: -hypothesis.score) for one in hypotheses]


def read_all(
    engine: CTranslate2, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int = 4096
) -> list[list[float]]:
    """The log-probability of each token of given translations, in nats, eos last.

    Args:
        pairs: Sources and translations, as ids without bos and eos.
        batch_tokens: Rows x longest side of one batch.
    """
    found: list[list[float]] = [[] for _ in pairs]

    def read(batch: list[int]) -> None:
        results = engine.translator.score_batch(
            [[engine.src_pieces[i] for i in pairs[row][0]] for row in batch],
            [[engine.tgt_pieces[i] for i in pairs[row][1]] for row in batch],
            max_input_length=0,
        )
        for row, result in zip(batch, results, strict=True):
            found[row] = list(result.log_probs)

    for batch in length_batches([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
        report_lost(run_halving(batch, read), None, "pair")
    return found
