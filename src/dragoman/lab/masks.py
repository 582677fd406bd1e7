"""Test masks: leaks of the future, four conventions and mixing them up, and ways to hide scores (section 3.2.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.explanation.figures import HeatMap, heat_maps, number
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.lab.hiding import (
    CONVENTIONS,
    DTYPES,
    HANDED_OVER,
    WAYS,
    hidden_weight,
    mix_up_conventions,
    outcome,
    round_trips,
)
from dragoman.model.attention import attend
from dragoman.model.masks import causal_mask

WORDS = ("I", "love", "cats", "and", "dogs", "(pad)")


# --- leaks ------------------------------------------------------------------------------------------------------------


def leaks(mask: Tensor | None, n_layers: int = 3, n: int = 8, seed: int = 0) -> Tensor:
    """Measure how strongly each output t of a stack of attentions depends on each input s.

    Args:
        mask: ``(1, 1, n, n)``, true = may attend; None: every position sees all.
        n_layers: Number of attentions, each with a residual.
        n: Length of the sequence.
        seed: Seed of weights and inputs.

    Returns:
        The norms ``|d y_t / d x_s|``, ``(n, n)``.
    """
    generator = torch.Generator().manual_seed(seed)
    d = 16
    weights = torch.randn(n_layers, 3, d, d, generator=generator, dtype=torch.float64) / d**0.5

    def stack(x: Tensor) -> Tensor:
        for w_q, w_k, w_v in weights:
            h = x[None, None]  # (1, 1, n, d)
            x = x + attend(h @ w_q, h @ w_k, h @ w_v, mask)[0][0, 0]
        return x

    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    derive: Any = torch.autograd.functional.jacobian  # untyped in torch
    return torch.linalg.matrix_norm(derive(stack, x).transpose(1, 2))  # of (n, n, d, d)


MASKS: dict[str, Callable[[int], Tensor | None]] = {
    "causal": causal_mask,
    "none": lambda n: None,
    "off by one: tril(1)": lambda n: torch.ones(n, n).tril(1).bool()[None, None],
    "upside down: triu": lambda n: torch.ones(n, n).triu().bool()[None, None],
}


def run(lab: Lab) -> Findings:
    """Run the experiment; claims: the causal mask leaks nothing, conventions cannot be mixed, -1e9 fails in float16."""
    n = 8
    jacobians = {name: leaks(make(n), 2 if lab.quick else 6, n) for name, make in MASKS.items()}
    future = torch.ones(n, n).triu(1).bool()
    hides = {
        rows: {way: {str(d).removeprefix("torch."): hidden_weight(way, d, rows) for d in DTYPES} for way in WAYS}
        for rows in ("ordinary", "sees nothing")
    }
    numbers: dict[str, Any] = {
        "leak_of_the_future": {name: float(j[future].max()) for name, j in jacobians.items()},
        "past": {name: float(j[~future].mean()) for name, j in jacobians.items()},
        "jacobians": jacobians,
        "conventions": {name: convention.users for name, convention in CONVENTIONS.items()},
        "round_trips": round_trips(causal_mask(n)[0, 0]),
        "handed_over": {kind: mix_up_conventions(make(n)) for kind, make in HANDED_OVER.items()},
        "hides": hides,
    }
    numbers["pairs"] = count_pairs(numbers["handed_over"])
    return Findings(numbers, sections(numbers), verdict(numbers))


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    leak, hides = numbers["leak_of_the_future"], numbers["hides"]
    our_outcomes = {outcome for rows in hides.values() for outcome in rows["ours"].values()}
    return [
        Claim(
            "With the causal mask no output depends on a later input, exactly",
            leak["causal"] == 0.0,
            f"greatest |d y_t / d x_s| for s > t: {leak['causal']:.0f}; without a mask {leak['none']:.2f}, one "
            f"diagonal too many {leak['off by one: tril(1)']:.2f}",
        ),
        Claim(
            "Each of the four ways to write a mask can be translated into the others",
            numbers["round_trips"],
            "there and back, to the bit",
        ),
        *handed_over_claims(numbers["handed_over"]),
        Claim(
            "−1e9 can be filled in at half precision",
            "refused" not in hides["ordinary"]["fill −1e9"].values(),
            f"float16: {hides['ordinary']['fill −1e9']['float16']}; its least number is −65,504",
        ),
        Claim(
            "A row that may see nothing gives zeros with our attention, in every precision",
            our_outcomes == {"right"},
            f"others: −inf gives {hides['sees nothing']['fill −inf']['float32']}, −1e9 in float32 "
            f"{hides['sees nothing']['fill −1e9']['float32']}: equal weight on all that was to be hidden",
        ),
    ]


def pairs_with(handed_over: Mapping[str, Any], kind: str, result: str) -> set[tuple[str, str]]:
    """Return the pairs of different conventions, written and read, with which a kind of mask has this outcome."""
    return {
        (written, read)
        for written, row in handed_over[kind].items()
        for read, reading in row.items()
        if written != read and outcome(reading) == result
    }


def count_pairs(handed_over: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the number of pairs of different conventions with each outcome, by kind of mask."""
    return {
        kind: {result: len(pairs_with(handed_over, kind, result)) for result in ("silent", "nan", "right")}
        for kind in handed_over
    }


def handed_over_claims(handed_over: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about masks that are read by another convention."""
    silent, nan = (
        {kind: pairs_with(handed_over, kind, result) for kind in handed_over} for result in ("silent", "nan")
    )
    shown = silent["padding"] & nan["nothing hidden"]
    counts = ", ".join(f"{len(pairs)} ({kind})" for kind, pairs in silent.items())
    loud = ", ".join(f"{len(pairs)} ({kind})" for kind, pairs in nan.items())
    return [
        Claim(
            "A mask given to code of another convention fails loudly",
            not any(silent.values()),
            f"of 12 pairs, so many give wrong weights without NaN or error: {counts}; NaN: {loud}",
        ),
        Claim(
            "A padding mask shows it less than a causal one: where padding is hidden, no pair gives NaN",
            not nan["padding"] and bool(nan["causal"]) and len(silent["padding"]) > len(silent["causal"]),
            f"of the {len(silent['padding'])} silent pairs {len(shown)} give NaN for a sentence without padding, such "
            "as the longest of a batch",
        ),
    ]


# --- the report -------------------------------------------------------------------------------------------------------


def _examples() -> list[HeatMap]:
    """Return maps of mask and weights for a sentence with one padding token, bidirectional and causal."""
    n, names = len(WORDS), list(WORDS)
    generator = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 1, 1, n, 8, generator=generator)
    padding = torch.tensor([word != "(pad)" for word in WORDS])
    causal = causal_mask(n) & padding
    maps = []
    for title, mask in (("all but padding", padding.expand(1, 1, n, n)), ("the past", causal)):
        weights = attend(q, k, k, mask)[1][0, 0]
        maps += [
            HeatMap(mask[0, 0].float(), f"may see: {title}", names, names),
            HeatMap(weights, "weights", names, names),
        ]
    return maps


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    positions = [str(i) for i in range(8)]
    sizes = {name: np.asarray(matrix, dtype=float) for name, matrix in numbers["jacobians"].items()}
    jacobians = [
        HeatMap(matrix / matrix.max(axis=1, keepdims=True), f"{name}\nleak: {_leak(matrix)}", positions, positions)
        for name, matrix in sizes.items()
    ]
    names = list(CONVENTIONS)
    handed_over = numbers["handed_over"]
    titles = {"causal": "causal mask", "padding": "padding mask", "nothing hidden": "a mask that hides nothing"}
    misplaced = [
        HeatMap([[float(handed_over[kind][w][r][0]) for r in names] for w in names], title, names, names)
        for kind, title in titles.items()
    ]
    return [
        Section(
            "Side by side",
            "Hidden keys have a weight of exactly 0, and the other weights still sum to 1.",
            heat_maps(
                _examples(), "query", "key", "weight; of a mask: 1 may see, 0 may not", n_columns=2, cell=0.36,
                framed=True,
            ),
            "side-by-side",
            caption="One sentence, random queries and keys. Above an encoder's attention, below a decoder's.",
        ),
        Section(
            "A leak test",
            "A model that sees the future has an excellent loss, so the loss does not show the bug. The derivative of "
            "output t by input s does. Above the diagonal it must be exactly 0.",
            heat_maps(jacobians, "output at", "input at", "size, row by row", n_columns=4, cell=0.19),
            "leaks",
            caption="Sizes of the derivatives, each row divided by its greatest. Above each: the greatest derivative "
            "by a later input. Only the first mask is right.",
        ),
        Section(
            "Four ways to say it",
            "All four conventions are in use, and all four occur in the five documents; a mask does not show which "
            "one it follows. Conversions from and to our mask, `keep`:",
            table=_conventions_table(),
        ),
        Section(
            "Read by other rules",
            "The share of all attention that lies elsewhere than it should when a mask of one convention is read by "
            "the rules of another.",
            heat_maps(
                misplaced, "written as", "read as", "misplaced attention", numbers=".2f", n_columns=2, cell=0.55,
                framed=True, missing="NaN: the bug shows at once",
            ),
            "handed-over",
            caption="A mask, written one way (rows) and read another (columns). A number above 0 is a bug that raises "
            "no error; grey is NaN. 0.00 is right: on the diagonal, and off it by luck.",
        ),
        _hiding(numbers["hides"]),
    ]  # fmt: skip


def _leak(matrix: NDArray[np.float64]) -> str:
    """Return the greatest derivative by a later input, which is above the diagonal, as text."""
    return number(float(np.triu(matrix, 1).max()))


def _conventions_table() -> Table:
    """Return a table of the conventions: who uses each, and its conversions from and to ours as code."""
    conversions = {
        "true = may attend": ("`keep`", "`mask`"),
        "true = hidden": ("`~keep`", "`~mask`"),
        "1 = keep, 0 = hide": ("`keep.long()`", "`mask != 0`"),
        "0 = keep, −inf = hide": ("`zeros.masked_fill(~keep, -inf)`", "`mask == 0`"),
    }
    rows = [(name, CONVENTIONS[name].users, *codes) for name, codes in conversions.items()]
    return Table(("mask", "used by", "from ours", "to ours"), rows)


def _hiding(hides: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Section:
    """Return the section on the outcome of each way to hide, for both kinds of rows."""
    return Section(
        "What to hide with",
        [
            "float16 ends at −65,504: −1e9 cannot be filled in, and added it becomes −inf.",
            "A row that sees nothing is a padded query, or an empty sentence. Ours fills with the least finite number "
            "and then sets hidden weights to 0.",
        ],
        table=Table(
            ("way", "an ordinary row", "a row that sees nothing"),
            [(way, *(_by_precision(hides[rows][way]) for rows in ("ordinary", "sees nothing"))) for way in WAYS],
        ),
    )


def _by_precision(outcomes: Mapping[str, str]) -> str:
    """Return the outcomes in all precisions, "right", or those that differ: "float16 refused, else right"."""
    usual = outcomes["float32"]
    odd = [f"{dtype} {result}" for dtype, result in outcomes.items() if result != usual]
    return ", ".join([*odd, f"else {usual}"]) if odd else usual
