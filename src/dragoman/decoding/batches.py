"""Many sentences: sorted by length, cut into batches by tokens, searched, and put back in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from dragoman.config import DecodeConfig
from dragoman.decoding.search import DEFAULT, Hypothesis, Model, Specials, beam_search, greedy_search


def length_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices of similar length, the longest batch first; rows x longest is at most ``batch_tokens``, or one row."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def search_all(
    model: Model,
    src_ids: Sequence[Sequence[int]],
    config: DecodeConfig,
    device: torch.device,
    n_best: int = 1,
    specials: Specials = DEFAULT,
    progress: Callable[[int, int, str], object] = lambda done, total, what: None,
) -> list[list[Hypothesis]]:
    """Translate ids to ids.

    Args:
        src_ids: Sources without eos; none may be empty.
        config: Beam, length penalty, and how many tokens a translation may have beyond its source's.
        progress: Told after each batch how many sentences are done, of how many.

    Returns:
        For each source, in order, its ``n_best`` hypotheses (one when greedy), best first.
    """
    found: list[list[Hypothesis]] = [[] for _ in src_ids]
    done = 0
    for batch in length_batches([len(ids) + 1 for ids in src_ids], config.batch_tokens):
        rows = [torch.tensor([*src_ids[i], specials.eos_id]) for i in batch]
        src = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=specials.pad_id).to(device)
        max_lens = [len(src_ids[i]) + config.max_extra_tokens for i in batch]
        if config.beam_size == 1:
            results = [[h] for h in greedy_search(model, src, max_lens, config.length_penalty, specials)]
        else:
            results = beam_search(model, src, max_lens, config.beam_size, config.length_penalty, n_best, specials)
        for i, hypotheses in zip(batch, results, strict=True):
            found[i] = hypotheses
        done += len(batch)
        progress(done, len(src_ids), "sentences translated")
    return found
