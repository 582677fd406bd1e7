"""Repeat every row of the paper's ablations, Table 3, with a model and a text that a CPU can train.

A row changes our base model in the proportion in which the paper's row changes the paper's: half the layers, a quarter
of d_k. Our base model is pre-norm. With post-norm, three layers and so few updates, results depend on the seed (5 to 59
BLEU over five seeds), and no row would differ from chance. Perplexity is per subword, so it can be compared within the
table only. As in the paper, models are measured on the development set, by beam search, without averaged checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.config import Config, ModelOptions
from dragoman.explanation.figures import Bar, Bars, bars
from dragoman.explanation.style import BLUE, ORANGE, PALE
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table, plain
from dragoman.lab.runs import (
    SMALL,
    Interval,
    Trial,
    Variant,
    bleus,
    changed,
    corpus_config,
    interval,
    losses,
    prediction_interval,
    trial,
    trials,
)
from dragoman.translation.confidence import spearman

TAKES = ("config", "device")

RECIPE: dict[str, Any] = {
    **SMALL,
    "model": {**SMALL["model"], "n_encoder_layers": 3, "n_decoder_layers": 3, "norm": "pre"},
    "train": {**SMALL["train"], "max_steps": 1500, "warmup_steps": 200, "validate_every": 1500, "save_every": 500},
}
BASE_SEEDS = (1, 2, 3, 4, 5)
"""Seeds of the base model, whose spread shows the effect of chance; every other row is trained once, with seed 1."""


class Row(NamedTuple):
    """A row of Table 3."""

    name: str
    group: str  # A to E, base or big
    paper: str  # the paper's change
    perplexity: float  # the paper's result on newstest2013
    bleu: float  # likewise
    parameters: float | None  # the paper's, in millions, where it gives them
    model: Mapping[str, Any] = {}  # settings of the model that are changed here
    train: Mapping[str, Any] = {}  # settings of the training that are changed here


def rows(config: Config) -> list[Row]:
    """Return the rows of Table 3 for the base model of ``config``, with the figures of https://arxiv.org/abs/1706.03762v7."""
    model, smoothing = config.model, config.train.label_smoothing or 0.1

    def heads(number: int) -> dict[str, Any]:
        return {"n_heads": max(1, model.n_heads * number // 8), "d_k": None, "d_v": None}

    def layers(number: int) -> dict[str, Any]:
        n = (model.n_encoder_layers, model.n_decoder_layers)
        return dict(
            zip(("n_encoder_layers", "n_decoder_layers"), (max(1, round(k * number / 6)) for k in n), strict=True)
        )

    def width(factor: float) -> dict[str, Any]:
        return {"d_model": round(model.d_model * factor), "d_k": None, "d_v": None}

    wide = {**width(2), "d_ff": model.d_ff * 2, "n_heads": model.n_heads * 2, "dropout": min(0.3, 3 * model.dropout)}
    longer = {key: 3 * getattr(config.train, key) for key in ("max_steps", "validate_every", "save_every")}
    max_len = config.data.max_tokens + config.decode.max_extra_tokens
    return [
        Row("base", "base", "N = 6, d_model = 512, d_ff = 2048, h = 8, d_k = 64", 4.92, 25.8, 65),
        Row("A-1", "A", "h = 1, d_k = 512", 5.29, 24.9, None, heads(1)),
        Row("A-4", "A", "h = 4, d_k = 128", 5.00, 25.5, None, heads(4)),
        Row("A-16", "A", "h = 16, d_k = 32", 4.91, 25.8, None, heads(16)),
        Row("A-32", "A", "h = 32, d_k = 16", 5.01, 25.4, None, heads(32)),
        Row("B-16", "B", "d_k = 16", 5.16, 25.1, 58, {"d_k": max(1, model.head_d_k // 4), "d_v": model.head_d_v}),
        Row("B-32", "B", "d_k = 32", 5.01, 25.4, 60, {"d_k": max(1, model.head_d_k // 2), "d_v": model.head_d_v}),
        Row("C-2", "C", "N = 2", 6.11, 23.7, 36, layers(2)),
        Row("C-4", "C", "N = 4", 5.19, 25.3, 50, layers(4)),
        Row("C-8", "C", "N = 8", 4.88, 25.5, 80, layers(8)),
        Row("C-d256", "C", "d_model = 256, d_k = 32", 5.75, 24.5, 28, width(0.5), _rate(config, 0.5)),
        Row("C-d1024", "C", "d_model = 1024, d_k = 128", 4.66, 26.0, 168, width(2), _rate(config, 2)),
        Row("C-ff1024", "C", "d_ff = 1024", 5.12, 25.4, 53, {"d_ff": max(1, model.d_ff // 2)}),
        Row("C-ff4096", "C", "d_ff = 4096", 4.75, 26.2, 90, {"d_ff": model.d_ff * 2}),
        Row("D-0.0", "D", "dropout 0.0", 5.77, 24.6, None, {"dropout": 0.0}),
        Row("D-0.2", "D", "dropout 0.2", 4.95, 25.5, None, {"dropout": min(0.9, 2 * (model.dropout or 0.1))}),
        Row("D-ls0.0", "D", "label smoothing 0.0", 4.67, 25.3, None, {}, {"label_smoothing": 0.0}),
        Row("D-ls0.2", "D", "label smoothing 0.2", 5.47, 25.7, None, {}, {"label_smoothing": min(0.9, 2 * smoothing)}),
        Row("E", "E", "learned positions", 4.92, 25.7, None, {"positions": "learned", "max_len": max_len}),
        Row("big", "big", "d_model = 1024, d_ff = 4096, h = 16, dropout 0.3, 3 x steps", 4.33, 26.4, 213, wide,
            {**longer, **_rate(config, 2)}),
    ]  # fmt: skip


def _rate(config: Config, factor: float) -> dict[str, float]:
    """Return the peak learning rate of a model ``factor`` times as wide, which falls as d_model^-0.5 (section 5.3)."""
    if config.train.schedule == "noam" or config.train.lr is None:
        return {}  # the schedule depends on d_model already
    return {"lr": config.train.lr * factor**-0.5}


def run(lab: Lab) -> Findings:
    """Train every row of Table 3; claims: the sentences that section 6.2 draws from it."""
    config = corpus_config(lab, RECIPE, n_train=8000)
    table = rows(config)
    # All configurations are made before the first training, so that an impossible row is refused at once.
    variants = [Variant(row.name, changed(config, model=row.model, train=row.train)) for row in table[1:]]
    base = trials(lab, Variant("base", config), BASE_SEEDS[:1] if lab.quick else BASE_SEEDS)
    results = {"base": base[0], **{variant.name: trial(lab, variant, 1) for variant in variants}}
    mean = interval(losses(base)).mean
    differences = {name: result.loss - mean for name, result in results.items()}
    paper = {row.name: math.log(row.perplexity / table[0].perplexity) for row in table}
    numbers = {
        "base": config.model.model_dump(),
        "steps": config.train.max_steps,
        "rows": [
            {
                **row._asdict(),
                "changed": {**row.model, **row.train},
                "found": results[row.name]._asdict(),
                "loss_over_base": differences[row.name],
                "paper_loss_over_base": paper[row.name],
            }
            for row in table
        ],
        "base_seeds": [result._asdict() for result in base],
        **chances(base, len(variants)),
        "rank_correlation": spearman([*differences.values()][1:], [*paper.values()][1:]),
    }
    return Findings(numbers, sections(plain(numbers)), verdict(plain(numbers)))


def chances(base: Sequence[Trial], rows: int) -> dict[str, Any]:
    """Return by how much chance may change a loss: in one row, and (``chance``) in any of the rows together."""
    alone, together = prediction_interval(losses(base)), prediction_interval(losses(base), rows)
    half_widths = {"one_row": alone.high - alone.mean, "all_rows": together.high - together.mean}
    return {"chance_of_one_row": alone._asdict(), "chance": together._asdict(), "half_widths": half_widths}


# --- the report -------------------------------------------------------------------------------------------------------


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    results = {row["name"]: Trial(**row["found"]) for row in numbers["rows"]}
    base = [Trial(**row) for row in numbers["base_seeds"]]
    rows = len(results) - 1
    loss, bleu = prediction_interval(losses(base), rows), prediction_interval(bleus(base), rows)

    def beyond(value: float, chance: Interval) -> int:
        """Return 1 above and -1 below the interval of as many base models as rows; 0 inside: nothing is shown."""
        return int(value > chance.high) - int(value < chance.low)

    def claim(text: str, names: Sequence[str], sign: int) -> Claim:
        """Claim that the losses of all these rows differ from the base's in the direction of ``sign``."""
        signs = [beyond(results[name].loss, loss) for name in names]
        holds = True if all(s == sign for s in signs) else False if -sign in signs else None
        return Claim(text, holds, f"loss {_listed(results, names, loss.mean)}")

    smooth = beyond(results["D-ls0.0"].bleu, bleu)
    learned = beyond(results["E"].loss, loss)
    correlation = numbers["rank_correlation"]
    low, high = _rank_interval(correlation, rows)
    return [
        claim("(A) One head is worse than eight", ["A-1"], 1),
        claim("(A) Too many heads are worse, too", ["A-32"], 1),
        claim("(B) A smaller d_k is worse", ["B-16", "B-32"], 1),
        claim("(C) Fewer layers are worse", ["C-2", "C-4"], 1),
        claim("(C) Smaller models are worse", ["C-2", "C-d256", "C-ff1024"], 1),
        claim("(C) Bigger models are better", ["C-8", "C-d1024", "C-ff4096"], -1),
        claim("(D) Without dropout it is worse", ["D-0.0"], 1),
        claim("(D) Without label smoothing perplexity is better", ["D-ls0.0"], -1),
        Claim(
            "(D) and BLEU is worse",
            None if smooth == 0 else smooth < 0,
            f"{results['D-ls0.0'].bleu:.1f} against {bleu.mean:.1f}, chance ±{bleu.high - bleu.mean:.1f}",
        ),
        Claim(
            "(E) Learned positions do as well as sinusoids",
            None if learned == 0 else learned < 0,
            f"loss {_listed(results, ['E'], loss.mean)}",
        ),
        claim("The big model, trained three times as long, is better", ["big"], -1),
        Claim(
            "Rows that cost the paper's model more tend to cost this one more",
            low > 0 if low > 0 or high < 0 else None,
            f"rank correlation {correlation:.2f} [{low:.2f}, {high:.2f}] over {rows} rows",
        ),
    ]


def _rank_interval(correlation: float, n: int) -> tuple[float, float]:
    """Return the 95% interval of Spearman's rank correlation of ``n`` pairs (Bonett and Wright 2000)."""
    half = 1.96 * math.sqrt((1 + correlation**2 / 2) / (n - 3))
    centre = math.atanh(min(max(correlation, -0.999999), 0.999999))
    return math.tanh(centre - half), math.tanh(centre + half)


def _listed(results: Mapping[str, Trial], names: Sequence[str], base: float) -> str:
    return ", ".join(f"{results[name].loss - base:+.3f}" for name in names)


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    model = ModelOptions(**numbers["base"])
    table = [Row(*(entry[name] for name in Row._fields)) for entry in numbers["rows"]]
    base = [Trial(**row) for row in numbers["base_seeds"]]
    chance, alone = numbers["chance"], numbers["chance_of_one_row"]
    half = chance["high"] - chance["mean"]
    marks = {} if math.isnan(half) else {-half: "", half: "chance"}
    label = "loss over the base's (nats a token)"
    our_bars, paper_bars = [], []
    for row, entry in zip(table[1:], numbers["rows"][1:], strict=True):
        ours, papers = entry["loss_over_base"], entry["paper_loss_over_base"]
        colour = PALE if abs(ours) <= half else BLUE if ours < 0 else ORANGE
        our_bars.append(Bar(_title(row, model), ours, colour=colour, text=_signed(ours)))
        paper_bars.append(Bar(_paper(row), papers, colour=BLUE if papers < 0 else ORANGE, text=_signed(papers)))
    return [
        Section(
            "Table 3, scaled",
            [
                f"The base model has N = {model.n_encoder_layers}, d_model = {model.d_model}, d_ff = {model.d_ff}, "
                f"h = {model.n_heads}, d_k = {model.head_d_k}, dropout {model.dropout:g}, and is {model.norm}-norm. "
                f"It is trained for {numbers['steps']:,} steps, {len(base)} times (loss {interval(losses(base)):.3f}). "
                "Each row changes it in the paper's proportion, and is trained once; verdicts give its loss over the "
                "base's.",
                f"Chance is the interval in which {len(table) - 1} trainings of the base would all lie with 95% "
                f"probability, ±{half:.3f}: a difference within it shows nothing. For a single row it would be "
                f"±{alone['high'] - alone['mean']:.3f}.",
            ],
            bars(
                [
                    Bars(our_bars, label, "Here (the scales differ)", marks=marks),
                    Bars(paper_bars, label, "The paper (log of its perplexities)"),
                ],
                width=3.4,
            ),
            "rows",
            _table(table, numbers),
            "Left of zero (blue) is better than the base, right of it (orange) worse; grey may be chance. The two "
            "scales differ.",
        ),
    ]


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−") if abs(value) >= 0.005 else "0.00"


def _paper(row: Row) -> str:
    return f"({row.group}) {row.paper}" if len(row.group) == 1 else row.group


def _title(row: Row, model: ModelOptions) -> str:
    """Return the change that a row makes here, in the paper's letters, such as "(A) h = 1, d_k = 64"."""
    letters = {
        "n_heads": "h", "d_k": "d_k", "n_encoder_layers": "N", "d_model": "d_model", "d_ff": "d_ff",
        "dropout": "dropout", "label_smoothing": "smoothing", "positions": "positions",
    }  # fmt: skip
    if row.group in ("base", "big"):
        return row.group
    changes = {key: value for key, value in {**row.model, **row.train}.items() if key in letters and value is not None}
    if changes.keys() == {"n_heads"}:
        changes["d_k"] = model.d_model // changes["n_heads"]
    words = (f"{letters[k]} = {value:g}" if k != "positions" else "learned positions" for k, value in changes.items())
    return f"({row.group}) {', '.join(words)}"


def _table(table: Sequence[Row], numbers: Mapping[str, Any]) -> Table:
    """Return the results row by row; the figure shows which may be chance."""
    model = ModelOptions(**numbers["base"])
    base = [Trial(**row) for row in numbers["base_seeds"]]
    loss, bleu = interval(losses(base)).mean, interval(bleus(base)).mean
    cells = [(f"base, mean of {len(base)}", f"{math.exp(loss):.2f}", f"{bleu:.1f}")]
    for row, entry in zip(table[1:], numbers["rows"][1:], strict=True):
        result = Trial(**entry["found"])
        cells.append((_title(row, model), f"{result.perplexity:.2f}", f"{result.bleu:.1f}"))
    return Table(("row", "perplexity", "BLEU"), cells)
