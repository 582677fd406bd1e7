"""Test sinusoidal and rotary positions, and sentences longer than those of training (section 3.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.explanation.figures import Chart, Curve, HeatMap, curves, heat_maps, number
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.lab.letters import accuracy, endless, learn, reversals, small_model, warm_cosine
from dragoman.lab.sinusoids import (
    closest,
    compare_ways_to_count,
    distinct_rows,
    mean_change,
    moved_scores,
    shift_error,
    wavelengths,
)
from dragoman.reference import sinusoidal_positions

WIDTH, LENGTH = 128, 100  # size of the matrix that is drawn, as in one of the five documents
SHOWN = (0, 8, 16, 32, 64, 126)  # channels that are drawn as curves; all are sines
LONGEST = 16  # letters in the longest sentence of training


# --- longer than trained ----------------------------------------------------------------------------------------------


def longer_sentences(positions: str, seed: int, steps: int, lengths: list[int], count: int) -> dict[str, Any]:
    """Train a model to reverse up to ``LONGEST`` letters, and test it at other lengths.

    Args:
        positions: "rotary", "sinusoidal" or "learned".
        seed: Seed of weights and data.
        steps: Length of the training.
        lengths: Letters per sentence in each test.
        count: Sentences per test.

    Returns:
        The last training loss, and the fraction of right letters at each of ``lengths``.
    """
    model = small_model(seed, positions=positions, max_len=max(lengths) + 2)
    losses = learn(model, endless(64, 4, LONGEST, seed=seed), steps, warm_cosine(steps, 3e-3, min(100, steps // 4)))
    generator = torch.Generator().manual_seed(1000 + seed)
    tests = [reversals(count, length, length, 20, generator) for length in lengths]
    return {"loss": losses[-1], "accuracy": [accuracy(model, test) for test in tests]}


def run(lab: Lab) -> Findings:
    """Run the experiment; claims: sinusoids are unique, bounded and evenly spaced, and a shift is a linear map."""
    n = 2000 if lab.quick else 10_000
    table = sinusoidal_positions(LENGTH, WIDTH)
    wide = sinusoidal_positions(2000, 512)
    steps = np.linalg.norm(np.diff(wide, axis=0), axis=1)
    moved = moved_scores(5, 200, np.random.default_rng(3))
    lengths = [4, 8, 20] if lab.quick else [4, 8, 12, 16, 17, 18, 20, 24, 28, 32, 40]
    budget = 20 if lab.quick else 800
    seeds = (1,) if lab.quick else (1, 2, 3)
    kinds = ("rotary", "sinusoidal", "learned")
    trained = {
        kind: [
            lab.done(
                f"longer-{kind}-{seed}",
                partial(longer_sentences, kind, seed, budget, lengths, 100),
                {"steps": budget, "lengths": lengths},
            )
            for seed in seeds
        ]
        for kind in kinds
    }
    many = torch.from_numpy(sinusoidal_positions(n, 512))
    numbers: dict[str, Any] = {
        "wavelengths": wavelengths(WIDTH),
        "mean_change": mean_change(table),
        "closest": [closest(d_model, n) for d_model in (2, 4, 8, 16, 32, 64, 128, 256, 512)],
        "positions": n,
        "distinct": {
            str(dtype).removeprefix("torch."): distinct_rows(many.to(dtype))
            for dtype in (torch.float32, torch.bfloat16, torch.float16)
        },
        "greatest_value": float(np.abs(wide).max()),
        "length_of_a_row": [float(np.linalg.norm(wide, axis=1).min()), float(np.linalg.norm(wide, axis=1).max())],
        "step": [float(steps.min()), float(steps.max())],
        "counted": compare_ways_to_count(100),
        "shift_errors": {str(k): shift_error(wide, k) for k in (1, 10, 100, 1000)},
        "by_offset": wide[1000] @ wide[900:1101].T / 256,
        "moved": moved,
        "lengths": lengths,
        "longer": trained,
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


def verdict(numbers: dict[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    change, n = numbers["mean_change"], numbers["positions"]
    least, most = numbers["step"]
    shift = max(numbers["shift_errors"].values())
    spread = {name: float(np.ptp(scores)) for name, scores in numbers["moved"].items()}
    closest_two = numbers["closest"][-1]
    low, high = float(change[0]), float(change[-1])
    return [
        Claim(
            "Low channels vary fast and high ones slowly",
            bool(low > 10 * high),
            f"from one position to the next channels 0 and 1 move by {low:.2f}, the last two by {high:.5f}",
        ),
        Claim(
            "Low channels vary slowly and high ones fast, as one of the five documents says",
            bool(high > low),
            f"the other way round: wavelength {numbers['wavelengths'][0]:.2f} at channel 0, "
            f"{numbers['wavelengths'][-1]:,.0f} at channel {WIDTH - 1}",
        ),
        Claim(
            "Every position has a row of its own",
            closest_two["distance"] > 0.1 and set(numbers["distinct"].values()) == {n},
            f"the closest two of {n:,} are {closest_two['distance']:.2f} apart, and all differ in float32, bfloat16 "
            "and float16",
        ),
        Claim(
            "Values stay between −1 and 1, and all rows are equally long",
            numbers["greatest_value"] <= 1 and bool(np.ptp(numbers["length_of_a_row"]) < 1e-9),
            f"greatest {numbers['greatest_value']:.3f}; length {numbers['length_of_a_row'][0]:.6f} = sqrt(d_model / 2)",
        ),
        Claim(
            "Neighbours are equally far apart everywhere, whatever the length of the sentence",
            most - least < 1e-9,
            f"{least:.6f} to {most:.6f}",
        ),
        Claim(
            "PE(pos + k) is a linear function of PE(pos)",
            shift < 1e-9,
            f"a rotation of each pair of channels; greatest error for k up to 1,000: {shift:.1e}",
        ),
        Claim(
            "Rotary scores depend on the offset alone; those with added sinusoids do not",
            spread["rotary"] < 1e-9 and spread["sinusoidal"] > 0.1,
            f"the score of two words, moved along, spreads by {spread['rotary']:.1e} against "
            f"{spread['sinusoidal']:.2f}",
        ),
        *_claims_of_longer(numbers),
    ]


def _claims_of_longer(numbers: dict[str, Any]) -> list[Claim]:
    """Return the claims about sentences longer than those of training."""
    beyond = {kind: _accuracy_beyond(numbers, kind) for kind in numbers["longer"]}
    return [
        Claim(
            f"Trained to reverse up to {LONGEST} letters, rotary positions go furthest beyond",
            _rotary_ahead(numbers),
            "right letters at twice the length and more: "
            + ", ".join(f"{kind} {share:.0%}" for kind, share in beyond.items()),
        ),
        Claim(
            "Sinusoids let this model extrapolate to twice the length, as the paper hopes of longer sentences",
            beyond["sinusoidal"] > 0.5,
            f"{beyond['sinusoidal']:.0%} right there; {1 / 21:.0%} would be chance. https://arxiv.org/abs/2108.12409 "
            "(Press et al. 2022) finds that language models with them soon fail too, https://arxiv.org/abs/2305.19466 "
            "(Kazemnejad et al. 2023) that rotary positions are no remedy on downstream tasks",
        ),
    ]


def _accuracies(numbers: dict[str, Any], kind: str) -> NDArray[np.float64]:
    """Return the fractions of right letters of one kind of positions: ``(seeds, lengths)``."""
    return np.array([result["accuracy"] for result in numbers["longer"][kind]])


def _accuracy_beyond(numbers: dict[str, Any], kind: str) -> float:
    """Return the mean fraction of right letters at twice the length of training and more; nan if not measured."""
    far = np.array(numbers["lengths"]) >= 2 * LONGEST
    return float(_accuracies(numbers, kind)[:, far].mean()) if far.any() else math.nan


def _by_length(numbers: dict[str, Any]) -> Table:
    """Return a table of the right letters by kind of positions, from the longest sentence of training on."""
    shown = [n for n in numbers["lengths"] if n in (LONGEST, LONGEST + 1, LONGEST + 2, 20, 2 * LONGEST)]
    places = [numbers["lengths"].index(n) for n in shown]
    rows = [
        (kind, *(f"{share:.0%}" for share in _accuracies(numbers, kind).mean(0)[places])) for kind in numbers["longer"]
    ]
    return Table(("letters", *map(str, shown)), rows)


def _rotary_ahead(numbers: dict[str, Any]) -> bool | None:
    """Return True if every rotary seed is ahead of all others at twice the length and more; None if seeds differ."""
    far = np.array(numbers["lengths"]) >= 2 * LONGEST
    if not far.any():  # a quick run does not measure them
        return None
    means = {kind: _accuracies(numbers, kind)[:, far].mean(axis=1) for kind in numbers["longer"]}
    others = np.concatenate([of_seeds for kind, of_seeds in means.items() if kind != "rotary"])
    if means["rotary"].min() > others.max():
        return True
    return False if means["rotary"].max() < others.min() else None


# --- the report -------------------------------------------------------------------------------------------------------


def sections(numbers: dict[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    table = sinusoidal_positions(LENGTH, WIDTH)
    matrix = heat_maps(
        [HeatMap(table[:, 0::2], "sines: channels 2i"), HeatMap(table[:, 1::2], "cosines: channels 2i + 1")],
        "position", "i, number of the pair of channels", "value", limits=(-1.0, 1.0), cell=0.042,
    )  # fmt: skip
    tenths = [tenth / 10 for tenth in range(10 * LENGTH - 9)]
    fine_table = _fractional_positions(tenths)
    waves = [
        Chart(
            [Curve("", tenths, list(fine_table[:, c]))], "position", "value",
            f"channel {c}: wavelength {number(numbers['wavelengths'][c])}", y_range=(-1.15, 1.15),
        )
        for c in SHOWN
    ]  # fmt: skip
    speed = Chart(
        [Curve("", list(range(WIDTH // 2)), list(numbers["mean_change"]))], "i, of the channels 2i and 2i + 1",
        "change in one step (log scale)", y_log=10,
    )  # fmt: skip
    return [
        Section(
            "The matrix",
            "At the low channels, on the left, stripes are "
            "narrow: the wave is 6.28 positions long.",
            matrix,
            "matrix",
            caption=f"The first {LENGTH} positions, {WIDTH} channels, sines and cosines apart.",
        ),
        Section(
            "Which end is fast",
            "",
            curves(waves, n_columns=3, width=2.6, height=1.9),
            "waves",
            caption="Six channels over the first 100 positions.",
        ),
        Section("Speed", figure=curves([speed], width=6.4), name="speed", caption="How far channels move in one step."),
        _unique_section(numbers),
        *_attention_sections(numbers),
    ]  # fmt: skip


def _fractional_positions(places: Sequence[float]) -> NDArray[np.float64]:
    """Return the encoding of fractional positions, so that short waves are drawn smoothly: ``(len(places), WIDTH)``."""
    i = np.arange(WIDTH) // 2
    angles = np.asarray(places)[:, None] / 10_000.0 ** (2 * i / WIDTH)
    return np.where(np.arange(WIDTH) % 2 == 0, np.sin(angles), np.cos(angles))


def _unique_section(numbers: dict[str, Any]) -> Section:
    """Return the section that shows that no two positions are alike."""
    pairs = numbers["closest"]
    uniqueness = Chart(
        [Curve("", [pair["d_model"] for pair in pairs], [pair["distance"] for pair in pairs], points=True)],
        "d_model (log scale)", "distance of the closest two (log scale)", x_log=2, y_log=10,
    )  # fmt: skip
    return Section(
        "Unique, bounded, evenly spaced",
        [
            "Positions should be unique, have no large numbers, and have the same step everywhere and for every "
            "length.",
        ],
        curves([uniqueness], width=6.4),
        "unique",
        Table(
            ("positions as", "distinct of 100", "greatest value", "size of a step", "least step at 200"),
            [
                (
                    row["name"], row["distinct"], row["greatest"],
                    f"{row['least_step']:.3g} to {row['greatest_step']:.3g}", row["least_step_of_longer"],
                )
                for row in numbers["counted"]
            ],
        ),
        f"Distance of the closest two of {numbers['positions']:,} positions, over the number of channels.",
    )  # fmt: skip


def _attention_sections(numbers: dict[str, Any]) -> list[Section]:
    """Return the sections on attention scores, and on sentences longer than those of training."""
    offsets = Chart(
        [Curve("", list(range(-100, 101)), list(numbers["by_offset"]))], "offset k",
        "PE(p) · PE(p + k) / 256", marks={0: "the same position"},
    )  # fmt: skip
    moved = Chart(
        [Curve(name, list(range(200)), list(scores)) for name, scores in numbers["moved"].items()],
        "position of the pair", "score of two words 5 apart",
    )  # fmt: skip
    lines = []
    for kind in numbers["longer"]:
        shares = _accuracies(numbers, kind)
        lines.append(
            Curve(kind, numbers["lengths"], list(shares.mean(0)), list(shares.min(0)), list(shares.max(0)), points=True)
        )
    longer = Chart(
        lines, "letters in the sentence", "right letters", y_range=(0, 1.15), marks={LONGEST: "longest in training"}
    )
    return [
        Section(
            "A shift is a rotation",
            "PE(pos + k) = M PE(pos) with the same M at every pos: each pair of channels is turned by k times its own "
            "angle. So the product of two rows depends only on their offset, and is greatest at offset 0.",
            curves([offsets], width=6.4),
            "offsets",
            caption="Products of rows of the matrix, 512 channels.",
        ),
        Section(
            "What attention makes of it",
            "Attention multiplies projections of word plus row, which depend on the absolute place too. Rotary "
            "positions (https://arxiv.org/abs/2104.09864) turn queries and keys after the projection, so that only the "
            "offset matters.",
            curves([moved], width=6.4),
            "moved",
            caption="The same two words, five apart, moved along the sentence: random vectors, d_k = 64.",
        ),
        Section(
            "Longer than trained on",
            f"Small models (2 + 2 layers, d_model = 64) learn to write 4 to {LONGEST} letters backwards. Learned "
            "positions beyond the longest were never trained; sinusoids are defined there, but no layer has seen them.",
            curves([longer], width=6.4),
            "longer",
            _by_length(numbers),
            f"Share of right letters, the ones before being given; mean, least and greatest of "
            f"{len(numbers['longer']['rotary'])} seeds.",
        ),
    ]  # fmt: skip
