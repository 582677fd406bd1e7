"""Conventions for masks, and ways to hide masked scores, for the experiment masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.model.attention import attend
from dragoman.model.masks import causal_mask
from dragoman.reference import masked_softmax

# --- four conventions -------------------------------------------------------------------------------------------------


class Convention(NamedTuple):
    """A convention for masks, with conversions from and to ours: bool, true = may attend."""

    users: str  # code that has this convention
    write: Callable[[Tensor], Tensor]  # from our mask
    read: Callable[[Tensor], Tensor]  # to our mask
    hide: Callable[[Tensor, Tensor], Tensor]  # (scores, mask) -> scores, as users of the convention hide them


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


class Reading(NamedTuple):
    """The outcome of reading a mask by another convention than the one in which it is written."""

    misplaced: float | str  # share of all attention that lies elsewhere than it should, or "nan"
    on_hidden: float | str  # share of all attention on hidden keys, or "nan"


HANDED_OVER: dict[str, Callable[[int], Tensor]] = {
    "causal": lambda n: causal_mask(n)[0, 0],
    "padding": lambda n: (torch.arange(n) < n - max(1, n // 4)).expand(n, n),
    "nothing hidden": lambda n: torch.ones(n, n, dtype=torch.bool),
}
"""Masks ``(n, n)`` that are handed over, by kind: of the padding one a quarter of the keys is hidden; a sentence that
fills its batch hides nothing."""


def mix_up_conventions(keep: Tensor, seed: int = 0) -> dict[str, dict[str, Reading]]:
    """Apply our mask ``keep``, written in each convention, as if it were written in each other one.

    Returns:
        By the convention written and the convention read, what comes of it.
    """
    n = len(keep)
    scores = torch.randn(n, n, generator=torch.Generator().manual_seed(seed))
    right = scores.masked_fill(~keep, -torch.inf).softmax(-1)
    readings: dict[str, dict[str, Reading]] = {}
    for written, writer in CONVENTIONS.items():
        readings[written] = {}
        for read, reader in CONVENTIONS.items():
            weights = reader.hide(scores, writer.write(keep)).softmax(-1)
            shares = float((weights - right).abs().sum() / 2 / n), float((weights * ~keep).sum() / n)
            readings[written][read] = Reading(*(shares if weights.isfinite().all() else ("nan", "nan")))
    return readings


def outcome(reading: Sequence[float | str]) -> str:
    """Return "right", "silent" (wrong weights without NaN or error) or "nan" for a ``Reading``, also a plain one."""
    misplaced = reading[0]
    return "nan" if misplaced == "nan" else "silent" if float(misplaced) > 1e-6 else "right"


def round_trips(keep: Tensor) -> bool:
    """Return True if writing our mask ``keep`` in each convention and reading it back gives the same mask."""
    return all(torch.equal(c.read(c.write(keep)), keep) for c in CONVENTIONS.values())


# --- ways to hide -----------------------------------------------------------------------------------------------------

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
"""Functions from scores ``(n, n)`` and our mask to attention weights. Our ``attend`` takes queries and keys: it gets
the scores as queries, and keys for which its products are these scores."""


def hidden_weight(way: str, dtype: torch.dtype, rows: str) -> str:
    """Hide keys in one of the ``WAYS`` and judge the weights.

    Args:
        way: Name of the way.
        dtype: Type of the scores.
        rows: "ordinary" hides the last two of four keys, "sees nothing" all of them.

    Returns:
        "right": equal to the reference, where a row that sees nothing is all 0; "leaks": hidden keys have weight;
        "wrong": hidden keys have none, but the other weights are off; "nan"; or "refused": an error.
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
