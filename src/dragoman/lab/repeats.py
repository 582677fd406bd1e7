"""Measure what heads of a decoder do with text that repeats, for the experiment induction.

scores = head_scores(model, text)               # "previous" and "induction", head by head
rows = rises(model, text)                       # the loss on repeats without each head
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.data.batching import Batch
from dragoman.data.tokenizer import BOS_ID, PAD_ID
from dragoman.lab.pruning import Head, attentions, without
from dragoman.model.transformer import Transformer

Scores = Mapping[str, Sequence[Mapping[str, float]]]
"""Mean weight of each head at the word before, ``previous``, and at what followed last time, ``induction``."""


KINDS = ("previous", "induction")
"""What a head may look at: the word before, and what followed the last occurrence of the word it is at."""


class Text(NamedTuple):
    """A batch of text in which words come again."""

    src: Tensor | None  # (B, S); None for a language model
    tgt_in: Tensor  # (B, T)
    tgt_out: Tensor  # (B, T)
    after: Tensor  # (B, T): the key that followed the last occurrence of each input word; -1 where there was none


class LanguageModel(nn.Module):
    """A decoder without memory, called as an encoder-decoder is."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Predict each next word; ``src`` is passed over."""
        logits: Tensor = self.model(None, tgt_in)
        return logits


def doubled(batches: Sequence[Batch], count: int) -> Iterator[Text]:
    """Yield up to ``count`` pairs of batches, each with its source and its target written twice."""
    pairs = ((src, tgt) for batch in batches for src, tgt in zip(batch.src, batch.tgt_out, strict=True))
    for _, (src, tgt) in zip(range(count), pairs, strict=False):
        source, target = src[src != PAD_ID], tgt[tgt != PAD_ID]  # both end with the end mark
        tgt_out = torch.cat((target[:-1], target))
        tgt_in = torch.cat((tgt_out.new_tensor([BOS_ID]), tgt_out[:-1]))
        period, places = len(target) - 1, torch.arange(len(tgt_in), device=tgt_in.device)
        after = torch.where((places > period) & (places < 2 * period), places - period + 1, -1)
        yield Text(torch.cat((source[:-1], source))[None], tgt_in[None], tgt_out[None], after[None])


def own_heads(model: Transformer) -> list[Head]:
    """Return the heads of the decoder's self-attention."""
    return [
        Head(name, i)
        for name, attention in attentions(model).items()
        if name.startswith("decoder.") and name.endswith("self_attn")
        for i in range(attention.n_heads)
    ]


@torch.inference_mode()
def head_scores(model: Transformer, *texts: Text) -> dict[str, list[dict[str, float]]]:
    """Return the mean weight of each head at two keys, over all queries whose word has occurred before."""
    model.eval()
    sums: dict[str, dict[str, Tensor]] = {}
    count = 0
    for text in texts:
        recorded: dict[str, Tensor] = {}
        model(text.src, text.tgt_in, record=recorded.__setitem__)
        queries = text.after >= 0
        before = (torch.arange(text.after.size(1), device=queries.device) - 1).expand_as(text.after)
        count += int(queries.sum())
        for name in {head.attention for head in own_heads(model)}:
            of_name = sums.setdefault(name, {})
            for kind, keys in (("previous", before), ("induction", text.after)):
                at = keys.clamp_min(0)[:, None, :, None].expand(-1, recorded[name].size(1), -1, 1)
                weights = recorded[name].gather(-1, at)[..., 0] * queries[:, None]  # (B, H, T)
                of_name[kind] = of_name.get(kind, 0) + weights.sum((0, 2)).double()
    return {
        name: [
            {kind: float(total[i]) / count for kind, total in of_name.items()} for i in range(len(of_name["previous"]))
        ]
        for name, of_name in sorted(sums.items())
    }


def scored(model: Transformer, text: Text, off: Sequence[Head] = ()) -> dict[Head, dict[str, float]]:
    """Return the scores by head, while the heads ``off`` are switched off."""
    with without(model, off):
        scores = head_scores(model, text)
    return {Head(name, i): score for name, rows in scores.items() for i, score in enumerate(rows)}


@torch.inference_mode()
def repeat_losses(model: Transformer, *texts: Text) -> dict[str, float]:
    """Return the loss in nats on words that the text before predicts, ``repeated``, and on the others, ``new``."""
    model.eval()
    sums = {"repeated": 0.0, "new": 0.0}
    counts = {"repeated": 0, "new": 0}
    for text in texts:
        log_p = model(text.src, text.tgt_in).float().log_softmax(-1)
        nats = -log_p.gather(-1, text.tgt_out[..., None])[..., 0]
        repeated = text.after >= 0
        for kind, places in (("repeated", repeated), ("new", ~repeated)):
            sums[kind] += float(nats[places].sum())
            counts[kind] += int(places.sum())
    return {kind: total / max(counts[kind], 1) for kind, total in sums.items()}


def rises(model: Transformer, *texts: Text) -> list[dict[str, Any]]:
    """Return the rise of the loss on repeats, and on other words, without each head of the decoder's self-attention."""
    whole, rows = repeat_losses(model, *texts), []
    for head in own_heads(model):
        with without(model, [head]):
            losses = repeat_losses(model, *texts)
        rows.append({
            "attention": head.attention, "number": head.number, "rise": losses["repeated"] - whole["repeated"],
            "rise_new": losses["new"] - whole["new"],
        })  # fmt: skip
    return rows


def judged(row: Mapping[str, Any], kind: str) -> float:
    """Return the score of the chosen head on the text that judges."""
    head = row["chosen"][kind]
    score: float = row["scores"][head["attention"]][head["number"]][kind]
    return score


def head_name(head: Mapping[str, Any]) -> str:
    """Return the name of a decoder's head for readers: its layer and its number, both from 1."""
    return f"layer {int(head['attention'].split('.')[2]) + 1}, head {head['number'] + 1}"
