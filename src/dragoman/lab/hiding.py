"""Ways to write a mask, and ways to hide what it hides, for the experiment masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.model.attention import attend
from dragoman.model.masks import causal_mask
from dragoman.reference import masked_softmax

# --- four polarities --------------------------------------------------------------------------------------------------


class Convention(NamedTuple):
    """A way to write down who may see whom."""

    users: str
    write: Callable[[Tensor], Tensor]  # from ours, bool with true = may attend
    read: Callable[[Tensor], Tensor]  # back to ours
    hide: Callable[[Tensor, Tensor], Tensor]  # (scores, mask) -> scores: what its users do with it


CONVENTIONS = {
    "true = may attend": Convention(
        "ours; torch's scaled_dot_product_attention",
        lambda keep: keep,
        lambda mask: mask,
        lambda scores, mask: scores.masked_fill(~mask.bool(), -torch.inf),
    ),
    "true = hidden": Convention(
        "torch.nn.MultiheadAttention: attn_mask, key_padding_mask",
        lambda keep: ~keep,
        lambda mask: ~mask,
        lambda scores, mask: scores.masked_fill(mask.bool(), -torch.inf),
    ),
    "1 = keep, 0 = hide": Convention(
        "Hugging Face's attention_mask; masked_fill(mask == 0, ...)",
        lambda keep: keep.long(),
        lambda mask: mask != 0,
        lambda scores, mask: scores.masked_fill(mask == 0, -1e9),
    ),
    "0 = keep, −inf = hide": Convention(
        "added to the scores; torch's generate_square_subsequent_mask",
        lambda keep: torch.zeros(keep.shape).masked_fill(~keep, -torch.inf),
        lambda mask: mask == 0,
        lambda scores, mask: scores + mask,
    ),
}


def handed_over(n: int = 8, seed: int = 0) -> dict[str, dict[str, float | str]]:
    """Give a causal mask, written by each convention, to code made for each: how much weight lies where it must not.

    Returns:
        ``[written][read]``: the share of all attention on hidden keys, 0 where all is well; or "nan".
    """
    generator = torch.Generator().manual_seed(seed)
    scores, keep = torch.randn(n, n, generator=generator), causal_mask(n)[0, 0]
    found: dict[str, dict[str, float | str]] = {}
    for written, one in CONVENTIONS.items():
        found[written] = {}
        for read, other in CONVENTIONS.items():
            weights = other.hide(scores, one.write(keep)).softmax(-1)
            leaked = float((weights * ~keep).sum() / n)
            found[written][read] = leaked if weights.isfinite().all() else "nan"
    return found


def round_trips(keep: Tensor) -> bool:
    """Whether each convention gives back what was written."""
    return all(torch.equal(each.read(each.write(keep)), keep) for each in CONVENTIONS.values())


# --- what hides -------------------------------------------------------------------------------------------------------

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
WAYS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "fill −1e9": lambda scores, keep: scores.masked_fill(~keep, -1e9).softmax(-1),
    "fill −inf": lambda scores, keep: scores.masked_fill(~keep, -torch.inf).softmax(-1),
    "fill finfo.min": lambda scores, keep: scores.masked_fill(~keep, torch.finfo(scores.dtype).min).softmax(-1),
    "add −1e9": lambda scores, keep: (scores + (~keep).to(scores.dtype) * -1e9).softmax(-1),
    "add finfo.min twice": lambda scores, keep: (
        scores + 2 * ((~keep).to(scores.dtype) * torch.finfo(scores.dtype).min)
    ).softmax(-1),
    "multiply by 0": lambda scores, keep: (scores * keep).softmax(-1),
    "ours": lambda scores, keep: attend(
        scores[None, None], torch.eye(len(scores), dtype=scores.dtype)[None, None] * len(scores) ** 0.5,
        torch.eye(len(scores), dtype=scores.dtype)[None, None], keep[None, None],
    )[1][0, 0],
}  # fmt: skip
"""Scores and who may be seen, to weights. Ours gets the scores as queries, with keys that give them back."""


def hidden_weight(way: str, dtype: torch.dtype, rows: str) -> str:
    """What becomes of the weights: an ordinary row whose last two keys are hidden, or one that may see nothing.

    Returns:
        "right": as the reference has it, a row that sees nothing being all 0; "leaks": hidden keys have weight;
        "wrong": they have none, but the others are not as they should be; "nan"; or "refused", by an error.
    """
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(4, 4, generator=generator).to(dtype)
    keep = torch.tensor([True, True, False, False]).expand(4, 4).clone()
    if rows == "sees nothing":
        keep[:] = False
    try:
        weights = WAYS[way](scores, keep)
    except RuntimeError:
        return "refused"
    if not weights.isfinite().all():
        return "nan"
    if (weights * ~keep).sum() > 1e-6:
        return "leaks"
    expected = torch.from_numpy(masked_softmax(scores.double().numpy(), keep.numpy()))
    return "right" if torch.allclose(weights.double(), expected, atol=4 * torch.finfo(dtype).eps) else "wrong"
