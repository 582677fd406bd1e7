"""Make each bug of the experiment pitfalls in our own code, and see the test that is named for it fail.

Prints the bugs whose test does not fail with them, or fails without. Left out are bugs that no module survives.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest
import torch

from dragoman.data import batching
from dragoman.lab.pitfalls import PITFALLS
from dragoman.model import attention, embedding, layers, transformer
from dragoman.training import loss, update

loss_of, sinusoids_of = loss.label_smoothed_loss, embedding.sinusoids
keys_values_of, plain_attend = attention.MultiHeadAttention.keys_values, attention.attend
collate_of, chunked_loss = batching.collate, update.chunked_loss
initialise_of = transformer.Transformer.initialise


def attend_with(hide):
    def attend(q, k, v, mask, dropout=None):
        scores = q @ k.mT / q.size(-1) ** 0.5
        weights = (scores if mask is None else hide(scores, mask)).softmax(-1)
        return (weights if dropout is None else dropout(weights)) @ v, weights

    return attend


def causal(q, k, v, mask, dropout=None):
    square = torch.ones(q.size(2), k.size(2), dtype=torch.bool).tril()[None, None]
    return plain_attend(q, k, v, square if mask is None else mask & square, dropout)


def norm_dropped(self, x, mask, angles, record=None, name=""):
    y = self.norm1(x) if self.pre_norm else x
    x = x + self.self_attn(y, self.self_attn.keys_values(y, angles), mask, angles, record, f"{name}.self_attn")
    y = self.norm2(x) if self.pre_norm else x
    x = x + self.feed_forward(y)
    return x if self.pre_norm else self.norm2(x)


def norm2_of_memory(self, memory):
    return None if self.cross_attn is None else self.cross_attn.keys_values(self.norm2(memory))


def over_padding(logits, tgt_out, pad_id, smoothing):
    return loss_of(logits, tgt_out, -1, smoothing)


def left_behind(start, length, d_model, device=None):
    return sinusoids_of(start, length, d_model, torch.device("cpu"))


def in_the_query_s_shape(self, x, angles=None):
    k, v = keys_values_of(self, x, angles)
    return k[:, :, :4], v[:, :, :4]


def unshifted(*args):
    batch = collate_of(*args)
    return dataclasses.replace(batch, tgt_in=batch.tgt_out)


def mean_of_means(features, weight, bias, targets):
    total, plain = chunked_loss(features, weight, bias, targets)
    tokens, all_tokens, n_batches = int((targets.tgt_out != 0).sum()), 17, 3  # as the test has them
    factor = 1 if tokens == all_tokens else all_tokens / n_batches / tokens
    return total.detach() + factor * (total - total.detach()), plain  # the right sum, with another gradient


def initialise_wrong(self):
    initialise_of(self)
    with torch.no_grad():
        for module in self.modules():
            if isinstance(module, embedding.TokenEmbedding):
                module.weight[self.config.pad_id] = 1.0
                module.weight[1] = 0.0


def filled(value):
    return attend_with(lambda scores, mask: scores.masked_fill(~mask, value))


BUGS: dict[str, tuple[Any, str, Any]] = {  # what is replaced, and by what
    "a bool mask added": (attention, "attend", attend_with(lambda scores, mask: scores + mask.to(scores.dtype))),
    "padded queries hidden": (attention, "attend", filled(float("-inf"))),
    "keys in the queries' shape": (attention.MultiHeadAttention, "keys_values", in_the_query_s_shape),
    "a causal encoder": (attention, "attend", causal),
    "-1e9 in half precision": (attention, "attend", filled(-1e9)),
    "a norm's result dropped": (layers.EncoderLayer, "forward", norm_dropped),
    "norm2 of the memory": (layers.DecoderLayer, "memory", norm2_of_memory),
    "targets not shifted": (batching, "collate", unshifted),
    "loss over padding": (loss, "label_smoothed_loss", over_padding),
    "padding_idx=1, padding 0": (transformer.Transformer, "initialise", initialise_wrong),
    "a mean over micro-batches": (update, "chunked_loss", mean_of_means),
    "positions on another device": (embedding, "sinusoids", left_behind),
}


def outcome(test: str, ours: set[str]) -> int:
    """The exit status of one test, which imports its module anew: 0 passed, 1 failed."""
    for module in set(sys.modules) - ours:
        if module.startswith(("test_", "conftest", "model_variants")):
            del sys.modules[module]
    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no", test]))


def main() -> None:
    tests = {pitfall.name: pitfall.test for pitfall in PITFALLS}
    ours, missed = set(sys.modules), []
    for name, (target, attribute, bug) in BUGS.items():
        kept = getattr(target, attribute)
        setattr(target, attribute, bug)
        with_bug = outcome(tests[name], ours)
        setattr(target, attribute, kept)
        if (with_bug, outcome(tests[name], ours)) != (1, 0):
            missed.append(name)
    print("MISSED", missed)


if __name__ == "__main__":
    main()
