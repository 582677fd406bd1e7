"""Copy a word from k places back; compare additive with dot-product attention; scale and tie embeddings.

These are statements of sections 4, 3.2.1 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.explanation.figures import Bars, Chart, Curve, bars, curves
from dragoman.explanation.style import SERIES
from dragoman.lab.copying import COPIERS, WORDS, CopySizes, copied
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table, expected
from dragoman.lab.grow import RATE, RATES, Sizes, trained_model
from dragoman.lab.phrases import Phrases
from dragoman.lab.runs import Interval, all_hold, bar, difference, holds, mean_curve, span, within
from dragoman.lab.similarity import SIMILARITIES, LetterSizes, reversed_letters
from dragoman.model.transformer import Transformer

PREDICTED = (
    "Trained to copy from k places back, self-attention is right at every distance.",
    "A plain RNN is right near the end alone; a GRU and an LSTM get further, an LSTM with an open forget gate furthest "
    "of the recurrent layers.",
    "Six causal convolutions are right up to 12 places back, and guess beyond.",
    "Fresh, self-attention's gradient is the weaker one near the end (as in `paths`); trained, it is as strong at the "
    "far end as at the near one, and a plain RNN's there is less than a hundredth of it.",
    "Additive attention and the undivided dot product learn alike with d_k = 8; with d_k = 256 the undivided one is "
    "worse, and the divided one is not.",
    "Embeddings times √d_model learn faster than without, tied or not; tying makes little difference on this task.",
)
"""What was expected before the experiment was run for the first time."""

EMBEDDINGS = {
    "√d_model, not tied": {"scale_embeddings": True, "share_embeddings": "none"},
    "√d_model, tied": {"scale_embeddings": True, "share_embeddings": "decoder"},
    "not scaled, not tied": {"scale_embeddings": False, "share_embeddings": "none"},
    "not scaled, tied": {"scale_embeddings": False, "share_embeddings": "decoder"},
}
"""Ways to embed; the paper's is scaled and tied."""

SCALED = tuple(EMBEDDINGS)[:2]

LENGTHS = (20, 40, 80)
"""Lengths of the sequences to copy from: three seeds at the middle one, one at the others."""

WIDTHS = (8, 64, 256)
"""Values of d_k for each kind of attention."""


def run(lab: Lab) -> Findings:
    """Train all; claims: who can copy from where, and what similarity, scale and tying are worth."""
    seeds = (1,) if lab.quick else (1, 2, 3)
    middle = LENGTHS[1]
    lengths = {f"{middle}": seeds} if lab.quick else {f"{n}": seeds if n == middle else (1,) for n in LENGTHS}
    small = {"steps": 3, "batch": 4, "rows": 4} if lab.quick else {}
    numbers: dict[str, Any] = {"copy": {}, "similarity": {}, "embeddings": {}}
    for n, of_length in lengths.items():
        numbers["copy"][n] = {
            kind: [_part(lab, copied, kind, seed, CopySizes(n=int(n), **small)) for seed in of_length]
            for kind in COPIERS
        }
    letters = LetterSizes(steps=3, batch=4) if lab.quick else LetterSizes()
    for d_k in WIDTHS[:1] if lab.quick else WIDTHS:
        numbers["similarity"][f"{d_k}"] = {
            kind: [_part(lab, reversed_letters, kind, seed, letters._replace(d_k=d_k)) for seed in seeds]
            for kind in SIMILARITIES
        }
    sizes = Sizes(steps=3, n_train=40, n_test=4, batch=4) if lab.quick else Sizes()
    phrases = Phrases.make(sizes.n_train, sizes.n_test, sizes.longest)
    cases = [(RATE, seed) for seed in seeds] + ([] if lab.quick else [(rate, 1) for rate in RATES if rate != RATE])
    for name, options in EMBEDDINGS.items():
        config = phrases.config(n_encoder_layers=1, n_decoder_layers=1, **options)
        numbers["embeddings"][name] = []
        for rate, seed in cases:
            lab.say(f"embeddings: {name}, peak rate {rate:g}, seed {seed}")
            numbers["embeddings"][name].append(
                lab.done(
                    f"embeddings-{'-'.join(map(str, options.values()))}-{seed}",
                    lambda: trained_model(phrases, lambda: Transformer(config), seed, rate, sizes),  # noqa: B023
                    [rate, sizes, options],
                )
            )
    return Findings(numbers, sections(numbers), verdict(numbers))


def _part(lab: Lab, make: Callable[[str, int, Any], Any], kind: str, seed: int, sizes: Any) -> Any:
    """Train a model, or return what an earlier call measured."""
    lab.say(f"{kind}, seed {seed}, {sizes}")
    name = kind.replace(" ", "_").replace(",", "")
    return lab.done(f"{name}-{seed}", lambda: make(kind, seed, sizes), sizes)


# --- the verdict ------------------------------------------------------------------------------------------------------


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    return [
        *copy_claims(numbers["copy"][f"{LENGTHS[1]}"]),
        *similarity_claims(numbers["similarity"]),
        *embedding_claims(numbers["embeddings"]),
    ]


def mean_at(rows: Sequence[Mapping[str, Any]], key: str, places: slice) -> float:
    """Return the mean over seeds and some distances of a number that each training has by distance."""
    values = [value for row in rows for value in row[key][places]]
    return sum(values) / len(values)


def furthest(rows: Sequence[Mapping[str, Any]], bound: float = 0.9) -> list[int]:
    """Return for each seed the distance up to which a model is right at least as often as ``bound``."""
    far = []
    for row in rows:
        wrong = (k for k, right in enumerate(row["accuracy"], 1) if right < bound)
        far.append(next(wrong, len(row["accuracy"]) + 1) - 1)
    return far


NEAR, FAR = slice(0, 4), slice(-4, None)
"""The four nearest and the four furthest distances."""


def copy_claims(rows: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about copying in sequences of one length."""
    far = {kind: furthest(of_kind) for kind, of_kind in rows.items()}
    reach = {kind: sum(values) / len(values) for kind, values in far.items()}
    n = len(rows["self-attention"][0]["accuracy"])
    gradient = {
        kind: {
            (when, where): mean_at(of_kind, when, places)
            for when in ("fresh", "trained")
            for where, places in (("near", NEAR), ("far", FAR))
        }
        for kind, of_kind in rows.items()
    }
    attention, plain = gradient["self-attention"], gradient["plain RNN"]
    convolutions = [row["accuracy"] for row in rows["6 convolutions"]]
    beyond = [right for accuracy in convolutions for right in accuracy[12:]]  # index 0 is 1 place back
    return [
        Claim(
            "Trained to copy from k places back, self-attention is right at every distance",
            min(far["self-attention"]) == n,
            f"up to {min(far['self-attention'])} of {n}, with the worst seed",
        ),
        Claim(
            "Of the recurrent layers a plain RNN gets least far, an LSTM with an open forget gate furthest",
            reach["plain RNN"] < min(reach["GRU"], reach["LSTM"])
            and reach["LSTM, forget bias 4"] > max(reach["GRU"], reach["LSTM"]),
            ", ".join(f"{kind} {reach[kind]:.0f}" for kind in RECURRENT),
        ),
        Claim(
            "Six causal convolutions are right up to 12 places back, and guess beyond",
            min(far["6 convolutions"]) >= 12 and max(beyond, default=0.0) < 0.3,
            f"up to {_list(far['6 convolutions'])}; beyond, {sum(beyond) / max(len(beyond), 1):.2f} are right",
        ),
        Claim(
            "Fresh, a plain RNN's gradient is stronger near the end than self-attention's; far from it, weaker",
            plain["fresh", "near"] > attention["fresh", "near"] and plain["fresh", "far"] < attention["fresh", "far"],
            f"near {plain['fresh', 'near']:.2g} against {attention['fresh', 'near']:.2g}, far "
            f"{plain['fresh', 'far']:.1e} against {attention['fresh', 'far']:.2g}",
        ),
        Claim(
            "Trained, self-attention's is as strong at the far end as at the near one, within a factor of 2",
            0.5 < attention["trained", "far"] / attention["trained", "near"] < 2,
            f"{attention['trained', 'near']:.2g} near, {attention['trained', 'far']:.2g} far",
        ),
        Claim(
            "A plain RNN's at the far end is then less than a hundredth of it, and it does not learn to copy from "
            "there",
            plain["trained", "far"] < attention["trained", "far"] / 100 and max(far["plain RNN"]) < n / 2,
            f"{plain['trained', 'far']:.1e}",
        ),
        Claim(
            "What a fresh layer passes on does not tell what it can learn: a GRU is right at every distance",
            min(far["GRU"]) == n and gradient["GRU"]["fresh", "far"] < attention["fresh", "far"] / 10,
            f"its gradient at the far end is {gradient['GRU']['fresh', 'far']:.1e} fresh, "
            f"{gradient['GRU']['trained', 'far']:.2g} trained. Seen, not foretold",
        ),
    ]


RECURRENT = ("plain RNN", "GRU", "LSTM", "LSTM, forget bias 4")


def similarity_claims(rows: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about additive and dot-product attention (section 3.2.1)."""
    losses = {
        d_k: {kind: [row["loss"] for row in of_kind] for kind, of_kind in of_width.items()}
        for d_k, of_width in rows.items()
    }
    *narrow, wide = sorted(losses, key=int)
    apart = {d_k: difference(of["additive"], of["dot product"]) for d_k, of in losses.items()}
    divided = {d_k: difference(of["additive"], of["divided dot product"]) for d_k, of in losses.items()}
    slower = [holds(divided[d_k], 1) for d_k in narrow]
    return [
        Claim(
            "In narrow heads additive attention and the undivided dot product learn alike",
            within(apart[min(losses, key=int)], 0.1),
            f"d_k = {min(losses, key=int)}: {apart[min(losses, key=int)]:+.2f} nats a letter",
        ),
        Claim(
            "In wide heads the undivided dot product is worse than additive attention, as the paper says",
            holds(apart[wide], 1),
            f"d_k = {wide}: {apart[wide]:+.2f} nats a letter",
        ),
        Claim(
            "Divided by √d_k it is not",
            None if holds(divided[wide], 1) is None else not holds(divided[wide], 1),
            f"{divided[wide]:+.2f} nats a letter",
        ),
        Claim(
            "In heads of up to 64 even the divided one learns more slowly than additive attention, in so few steps",
            all_hold(slower),
            f"{', '.join(f'd_k = {d_k}: {divided[d_k]:+.2f}' for d_k in narrow)} nats a letter. Seen, not foretold"
            if narrow
            else "one width was tried",
        ),
    ]


def embedding_claims(rows: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about scaled and tied embeddings, at all peak rates."""
    rates = sorted({row["rate"] for row in rows[SCALED[0]]})

    def rise(base: str, other: str, rate: float) -> Interval:
        """Return by how much the loss of ``other`` is above that of ``base`` at a peak rate."""
        return difference(*([row["loss"] for row in rows[name] if row["rate"] == rate] for name in (base, other)))

    scale = {
        rate: [rise(f"√d_model, {tied}", f"not scaled, {tied}", rate) for tied in ("not tied", "tied")]
        for rate in rates
    }
    tying = {rate: rise(SCALED[0], SCALED[1], rate) for rate in rates}
    return [
        Claim(
            "Embeddings learn faster times √d_model at every peak rate, tied or not",
            all_hold([holds(delta, 1) for rises in scale.values() for delta in rises]),
            f"without it the loss is {scale[rates[0]][1]:+.2f} nats a word, tied, at {rates[0]:g}",
        ),
        Claim(
            "Without the factor they bear less of a rate: at the highest the loss is more than 0.5 nats higher",
            all_hold([holds(delta, 1, 0.5) for delta in scale[rates[-1]]]),
            f"{scale[rates[-1]][0]:+.2f} and {scale[rates[-1]][1]:+.2f}. Seen, not foretold",
        ),
        Claim(
            "Tying the target's embeddings to the output makes little difference here, less than 0.1 nats",
            all_hold([within(delta, 0.1) for delta in tying.values()]),
            f"loss {min(tying.values()):+.2f} to {max(tying.values()):+.2f} nats a word",
        ),
    ]


def _of_seeds(values: Sequence[int]) -> str:
    """Return one number where all seeds agree, and else that of each."""
    return _list(values if len(set(values)) > 1 else values[:1])


def _list(values: Sequence[float]) -> str:
    """Return numbers as a list in a sentence."""
    return ", ".join(f"{value:g}" for value in values)


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    return [_expected(numbers), *_copying(numbers["copy"]), _similarity(numbers["similarity"]), _embedded(numbers)]


def _expected(numbers: Mapping[str, Any]) -> Section:
    """Return the section on what was expected; a prediction came true if all of its claims hold."""
    claims = verdict(numbers)
    parts = [claims[0:1], claims[1:2], claims[2:3], claims[3:6], claims[7:10], [claims[11], claims[13]]]
    came_true = sum(all(claim.holds for claim in of_text) for of_text in parts)
    return Section("", expected(len(PREDICTED), came_true, "reach"))


def _line(name: str, rows: Sequence[Mapping[str, Any]], key: str) -> Curve:
    """Draw a number by distance, mean and band over seeds; a gradient ends where it is zero."""
    seeds = [[(k, value) for k, value in enumerate(row[key], 1) if value > FLOOR] for row in rows]
    colour, dashed = COLOURS[name.split(",")[0]], "," in name
    hidden = key == "fresh" and name == "6 convolutions"  # its end lies among the other lines
    return Curve("" if hidden else NAMES.get(name, name), *mean_curve(seeds), colour=colour, dashed=dashed)


FLOOR = 1e-7
"""Gradient at which curves end in the figure."""

NAMES = {"LSTM, forget bias 4": "LSTM, bias 4"}

COLOURS = dict(zip(("self-attention", "plain RNN", "GRU", "LSTM", "6 convolutions"), SERIES, strict=False))


def _copying(copy: Mapping[str, Any]) -> list[Section]:
    """Return the sections on copying from k places back."""
    middle = copy[f"{LENGTHS[1]}"]
    n = len(middle["self-attention"][0]["accuracy"]) + 1
    seeds = len(middle["self-attention"])
    charts = [
        Chart([_line(kind, rows, key) for kind, rows in middle.items()], "distance k (words)", label, title, **axis)
        for key, label, title, axis in (
            ("accuracy", "right", "Trained: what is right", {"y_range": (0, 1.05)}),
            ("fresh", "gradient (log scale)", "Fresh: gradient", {"y_log": 10, "y_range": (FLOOR, 10)}),
            ("trained", "gradient (log scale)", "Trained: gradient", {"y_log": 10, "y_range": (FLOOR, 10)}),
        )
    ]
    places = [k for k in (1, 10, 39) if k < n]
    at = ", ".join(map(str, places))
    gradients = Table(
        ("layer", f"fresh, at {at}", f"trained, at {at}"),
        [
            (kind, *(", ".join(f"{mean_at(rows, key, slice(k - 1, k)):.1e}" for k in places)
                     for key in ("fresh", "trained")))
            for kind, rows in middle.items()
            if kind in ("self-attention", "plain RNN", "GRU")
        ],
    )  # fmt: skip
    lengths = Table(
        ("layer", *(f"n = {length}" for length in copy)),
        [(kind, *(_of_seeds(furthest(of_length[kind])) for of_length in copy.values())) for kind in middle],
    )
    return [
        Section(
            "Copy from k places back",
            [
                f"One layer (of convolutions, six) reads {n} random words from a vocabulary of {WORDS}, one of them "
                f"marked, and names it at the end; 1 in {WORDS} is right by chance. The gradient is that of the right "
                "word's logit by the embedding of the marked word.",
            ],
            curves(charts, n_columns=1, width=5.6, height=2.6),
            "copy",
            gradients,
            f"By the distance of the marked word; means of {seeds} seeds (of gradients, geometric over sequences), "
            "bands: the lowest and the highest. The table: gradients.",
        ),
        Section(
            "In longer and shorter sequences",
            "",
            table=lengths,
            caption="Distance up to which at least 9 of 10 are right, for each seed where they differ.",
        ),
    ]


def _similarity(rows: Mapping[str, Any]) -> Section:
    """Return the section on additive and dot-product attention."""
    loss = {
        kind: {d_k: span([row["loss"] for row in of_width[kind]]) for d_k, of_width in rows.items()}
        for kind in SIMILARITIES
    }
    shown = bars(
        [
            Bars([bar(kind, loss[kind][d_k]) for kind in SIMILARITIES], "loss (nats a letter)", f"d_k = {d_k}")
            for d_k in rows
        ],
        n_columns=1,
        width=4.2,
    )
    return Section(
        "Additive attention and the dot product",
        "Additive attention compares a query with a key by v · tanh(q + k), with a learned v; the dot product by "
        "q · k, and the paper's divides that by √d_k. Models of one layer and one head write letters backwards.",
        shown,
        "similarity",
        _losses_and_scores(
            "loss, right letters", loss, {d_k: f"d_k = {d_k}" for d_k in rows},
            {
                kind: {d_k: f"{span([row['accuracy'] for row in rows[d_k][kind]]).mean:.0%}" for d_k in rows}
                for kind in SIMILARITIES
            },
        ),
        "Loss on new letters, by the width of the head; whiskers and brackets: the range of the seeds.",
    )  # fmt: skip


def _losses_and_scores(
    what: str, loss: Mapping[str, Mapping[Any, Interval]], columns: Mapping[Any, str],
    scores: Mapping[str, Mapping[Any, str]],
) -> Table:  # fmt: skip
    """Return a table of models by a constant: in each cell the loss, with its range, and how well the model does.

    Args:
        what: Head of the first column.
        loss: By model and value of the constant.
        columns: Heads of the other columns, by value of the constant.
        scores: By model and value of the constant, as text.
    """
    rows = [
        (name, *(f"{_with_range(losses[at])}; {scores[name][at]}" for at in columns)) for name, losses in loss.items()
    ]
    return Table((what, *columns.values()), rows)


def _with_range(loss: Interval) -> str:
    """Return a loss with the range of its seeds, if there are several."""
    return f"{loss:.2f}" if loss.low < loss.high else f"{loss.mean:.2f}"


def _embedded(numbers: Mapping[str, Any]) -> Section:
    """Return the section on scaled and tied embeddings."""
    rows = numbers["embeddings"]
    rates = sorted({row["rate"] for row in next(iter(rows.values()))})
    at = {
        (name, rate, key): span([row[key] for row in rows[name] if row["rate"] == rate])
        for name in rows
        for rate in rates
        for key in ("loss", "bleu")
    }
    shown = bars(
        [
            Bars([bar(name, at[name, RATE, "loss"]) for name in rows], "loss (nats a word)", "Test loss"),
            Bars([bar(name, at[name, RATE, "bleu"]) for name in rows], "BLEU, greedy", "Translations"),
        ]
    )
    return Section(
        "√d_model and tying",
        "The block of `grow` with its embeddings scaled or not, and the target's tied to the output or not. "
        f"Three seeds at a peak rate of {RATE:g}, one at the others.",
        shown,
        "embeddings",
        _losses_and_scores(
            "loss, BLEU",
            {name: {rate: at[name, rate, "loss"] for rate in rates} for name in rows},
            {rate: f"peak rate {rate:g}" for rate in rates},
            {name: {rate: f"{at[name, rate, 'bleu'].mean:.1f}" for rate in rates} for name in rows},
        ),
        "Means over three seeds; whiskers: the range.",
    )
