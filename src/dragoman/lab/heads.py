"""Each head of a trained model: what it looks at, and what the model loses when it is cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.data.batching import Batch, all_batches
from dragoman.data.store import Store
from dragoman.errors import ConfigError
from dragoman.explanation import attention
from dragoman.explanation.explain import explain
from dragoman.explanation.figures import Chart, Curve, HeatMap, curves, heat_maps
from dragoman.explanation.trace import Trace
from dragoman.lab.pruning import (
    HABITS,
    Head,
    all_heads,
    attentions,
    bootstrapped,
    habits,
    kind_of,
    sentence_losses,
    without,
)
from dragoman.lab.report import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import run_of, transformer_config, trial
from dragoman.model.transformer import Transformer
from dragoman.progress import Ticker
from dragoman.training.validation import validator
from dragoman.translation.translator import Translator

TAKES = ("config", "run", "device")

SMALL_LOSS = 0.05
"""Perplexity that grows by less than 5% (loss by 0.05 nats) is called a small loss."""

N_ORDERS = 3
"""Random orders of pruning, to compare the order by importance with."""


class Examined(NamedTuple):
    """A trained model and the text to examine it by."""

    translator: Translator
    model: Transformer
    store: Store
    batches: list[Batch]


def run(lab: Lab) -> Findings:
    """Claims: heads do different things, few of them matter, and those to the source matter most."""
    examined = _examined(lab)
    weights = examined.translator.manifest["files"]["model.safetensors"]["sha256"]
    found: dict[str, Any] = {
        "habits": lab.done("habits", lambda: habits(examined.model, examined.batches), weights),
        "alone": lab.done("alone", lambda: one_at_a_time(examined), weights),
        "attentions": lab.done("attentions", lambda: whole_attentions(examined), weights),
    }
    order = [Head(row["attention"], row["head"]) for row in sorted(found["alone"], key=lambda row: row["increase"])]
    found["together"] = lab.done("together", lambda: one_after_another(examined, order, lab.quick), weights)
    example = explain(examined.translator, *_example(examined))
    found["example"] = {
        "source": example.source,
        "translation": example.translation,
        "attention": {kind: _weights_of(example, kind) for kind in HABITS if example.layers(kind)},
    }
    return Findings(found, sections(found), verdict(found))


def _examined(lab: Lab) -> Examined:
    """The run that was named, or a small one that is trained now.

    Raises:
        ConfigError: A bundle without its run has no validation text.
    """
    folder = lab.run
    if folder is None:
        config = transformer_config(lab)
        trial(lab, "model", config, 1, keep=True)
        folder = run_of(lab, "model", config, 1)
    translator = Translator.load(folder, lab.device.type)
    if translator.is_parser:
        raise ConfigError(f"{folder}: heads are examined of a translator, and this run is a parser")
    if not isinstance(translator.model, Transformer):
        raise ConfigError(f"{folder}: heads are examined of a Transformer, and this run's model is another one")
    if not (Path(folder) / "store/valid").is_dir():
        raise ConfigError(f"{folder}: heads are judged by a run's validation text (store/valid), and there is none")
    store = Store.open(Path(folder) / "store/valid")
    longest = int(max(store.src_lengths().max(), store.tgt_lengths().max())) + 1
    batches = [batch.to(lab.device) for batch in all_batches(store, max(longest, 2048))]
    return Examined(translator, translator.model, store, batches)


# --- measurements -----------------------------------------------------------------------------------------------------


def one_at_a_time(examined: Examined) -> list[dict[str, Any]]:
    """What the loss rises by without each head, in nats a token, with its 95% interval over sentences."""
    whole, counts = sentence_losses(examined.model, examined.batches)
    rows = []
    for head in all_heads(examined.model):
        with without(examined.model, [head]):
            rises = sentence_losses(examined.model, examined.batches)[0] - whole
        low, high = bootstrapped(rises, counts)
        rows.append(
            {
                "attention": head.attention,
                "head": head.number,
                "increase": rises.sum() / counts.sum(),
                "low": low,
                "high": high,
            }
        )
    return rows


def whole_attentions(examined: Examined) -> list[dict[str, Any]]:
    """What the loss rises by without an attention, and with only the best of its heads."""
    whole, counts = sentence_losses(examined.model, examined.batches)

    def rise(heads: Sequence[Head]) -> float:
        with without(examined.model, heads):
            return float((sentence_losses(examined.model, examined.batches)[0] - whole).sum() / counts.sum())

    rows = []
    for name, module in attentions(examined.model).items():
        heads = [Head(name, i) for i in range(module.n_heads)]
        alone = [rise([other for other in heads if other != head]) for head in heads]
        best = int(np.argmin(alone))
        rows.append({"attention": name, "without": rise(heads), "best_head": best, "best_alone": alone[best]})
    return rows


def one_after_another(examined: Examined, order: Sequence[Head], quick: bool = False) -> dict[str, Any]:
    """Perplexity and BLEU (greedy) while more and more heads are cut off: in ``order``, and in random orders."""
    measure = validator(
        examined.translator.config, examined.store, examined.translator.tgt_tokenizer, Ticker(quiet=True)
    )
    n_points = 2 if quick else 8
    numbers = sorted({round(i * len(order) / n_points) for i in range(n_points + 1)})

    def curve(heads: Sequence[Head]) -> dict[str, list[float]]:
        loss, bleu = [], []
        for number in numbers:
            with without(examined.model, heads[:number]):
                found = measure(examined.model)
            loss.append(found.loss)
            bleu.append(found.bleu)
        return {"loss": loss, "bleu": bleu}

    chance = np.random.default_rng(1)
    shuffled = [[order[i] for i in chance.permutation(len(order))] for _ in range(1 if quick else N_ORDERS)]
    return {
        "n_heads": len(order),
        "pruned": numbers,
        "by_importance": curve(order),
        "at_random": [curve(heads) for heads in shuffled],
    }


def _example(examined: Examined) -> tuple[str, str]:
    """The validation sentence whose length is nearest to nine subwords, and its reference."""
    index = int(np.abs(examined.store.src_lengths().astype(int) - 9).argmin())
    (source,), (reference,) = examined.store.texts([index])
    return source, reference


def _weights_of(example: Trace, kind: str) -> dict[str, Any]:
    """All that the heads of one kind give on the example, to four decimals."""
    rows, columns = example.tokens(kind)
    return {"rows": rows, "columns": columns, "layers": [np.round(one, 4) for one in example.layers(kind)]}


# --- the account ------------------------------------------------------------------------------------------------------


def verdict(found: Mapping[str, Any]) -> list[Claim]:
    """What a full run decides, from the numbers that it keeps."""
    alone, together = found["alone"], found["together"]
    n_heads = len(alone)
    small = [row for row in alone if row["high"] < SMALL_LOSS]
    worst = max(alone, key=lambda row: row["increase"])
    sure = [
        (name, i, kind, float(share))
        for name, rows in found["habits"].items()
        for i, row in enumerate(rows)
        for kind, share in zip(HABITS[kind_of(name)][:-1], row[:-1], strict=True)
        if share > 0.5
    ]
    by_kind = {
        kind: sum(row["without"] for row in found["attentions"] if kind_of(row["attention"]) == kind)
        for kind in HABITS
        if any(kind_of(row["attention"]) == kind for row in found["attentions"])
    }
    middle = len(together["pruned"]) // 2
    chosen = together["by_importance"]["loss"][middle]
    random = [curve["loss"][middle] for curve in together["at_random"]]
    return [
        Claim(
            "Most heads of this model can be cut off one at a time for less than 5% of perplexity",
            len(small) > n_heads / 2,
            f"{len(small)} of {n_heads}, by the upper end of the interval; the dearest, {_name(worst)}, costs "
            f"{worst['increase']:.2f} nats [{worst['low']:.2f}, {worst['high']:.2f}]",
        ),
        Claim(
            "Some heads of this model give more than half of their weight to one place, such as the word before",
            bool(sure),
            f"{len({(name, i) for name, i, _, _ in sure})} of {n_heads}"
            + "".join(
                f"; {_name({'attention': n, 'head': i})}: {share:.0%} to {kind}" for n, i, kind, share in sure[:3]
            )
            + ". Larger models that were trained for longer have such heads: https://arxiv.org/abs/1905.09418 (Voita "
            "et "
            "al. 2019), https://arxiv.org/abs/1906.04341 (Clark et al. 2019)",
        ),
        Claim(
            "Of this model the attention to the source matters most",
            max(by_kind, key=by_kind.__getitem__) == "cross",
            "loss without each attention, summed over layers: "
            + ", ".join(f"{kind} +{rise:.2f}" for kind, rise in by_kind.items()),
        ),
        Claim(
            "It matters which half of this model's heads is cut off",
            all(chosen < loss for loss in random),
            f"{together['pruned'][middle]} of {n_heads} cut off: loss {chosen:.2f} by importance, "
            f"{min(random):.2f} to {max(random):.2f} at random; whole {together['by_importance']['loss'][0]:.2f}",
        ),
    ]


def _name(row: Mapping[str, Any]) -> str:
    return f"{_place(row['attention'])}, head {row['head'] + 1}"


def _place(path: str) -> str:
    """``decoder.layers.0.cross_attn`` as ``cross 1``."""
    stack, _, layer, _ = path.split(".")
    return f"{'cross' if kind_of(path) == 'cross' else stack} {int(layer) + 1}"


def sections(found: Mapping[str, Any]) -> list[Section]:
    """What a full run tells and draws, from the numbers that it keeps."""
    names = [row["attention"] for row in found["attentions"]]
    parts = []
    for kind, title in (
        ("encoder", "The encoder's heads"),
        ("decoder", "The decoder's heads, to what is written so far"),
        ("cross", "The decoder's heads, to the source"),
    ):
        here = [name for name in names if kind_of(name) == kind]
        if here:
            parts.append(_heads_of(kind, title, here, found))
    return [*parts, _importance(found), _together(found["together"])]


def _heads_of(kind: str, title: str, names: Sequence[str], found: Mapping[str, Any]) -> Section:
    """Every head of one kind, on one sentence, and what it gives its weight to on all."""
    example = found["example"]
    seen = example["attention"][kind]
    rows = [
        (f"{_place(name)}, head {i + 1}", *(float(share) for share in shares))
        for name in names
        for i, shares in enumerate(found["habits"][name])
    ]
    return Section(
        title,
        f"One sentence of the validation text, “{example['source']}”, read with its reference, "
        f"“{example['translation']}”. "
        "The table gives the mean share of each head's weight over all of the text.",
        attention.head_maps(seen["layers"], seen["rows"], seen["columns"], kind),
        f"heads-{kind}",
        Table(("head", *HABITS[kind]), rows),
        "Each row of a map sums to 1. A diagonal looks at itself or a neighbour; a column is a key that all queries "
        "look at.",
    )


def _importance(found: Mapping[str, Any]) -> Section:
    names = [row["attention"] for row in found["attentions"]]
    rise = {name: [row["increase"] for row in found["alone"] if row["attention"] == name] for name in names}
    width = max(map(len, rise.values()))
    values = np.array([[*each, *[np.nan] * (width - len(each))] for each in rise.values()])
    most = max(float(np.nanmax(values)), 1e-6)
    table = Table(
        ("attention", "without it", "with its best head alone", "best head"),
        [
            (_place(row["attention"]), row["without"], row["best_alone"], row["best_head"] + 1)
            for row in found["attentions"]
        ],
    )  # fmt: skip
    return Section(
        "Which heads matter",
        "One head at a time is cut off (the columns of `w_o` that read it are set to zero), without retraining. "
        "The table cuts off whole attentions, and leaves of each only its best head; all in nats a token.",
        heat_maps(
            [HeatMap(values, "", [_place(name) for name in names], [str(i + 1) for i in range(width)])],
            "attention", "head", "rise of the loss (nats a token)", limits=(0.0, most),
            cell=0.5, numbers=".2f",
        ),
        "importance",
        table,
        "What the validation loss rises by without each head; a cell without colour is 0 or a fall.",
    )  # fmt: skip


def _together(together: Mapping[str, Any]) -> Section:
    shares = [number / together["n_heads"] for number in together["pruned"]]

    def chart(key: str, label: str, title: str) -> Chart:
        orders = np.array([curve[key] for curve in together["at_random"]])
        return Chart(
            [
                Curve("least important first", shares, together["by_importance"][key], points=True),
                Curve("at random", shares, orders.mean(0), orders.min(0), orders.max(0), points=True),
            ],
            "share of heads cut off", label, title, y_range=(0, None),
        )  # fmt: skip

    return Section(
        "How many can go together",
        "Heads are cut off one after another, those first whose loss alone cost least; beside it random orders (mean, "
        "and the band from the best to the worst). Heads that seem idle one at a time may replace each other, so "
        "the sum of small losses is not small.",
        curves([chart("loss", "loss (nats a token)", "Loss"), chart("bleu", "BLEU, greedy", "Translations")]),
        "together",
        caption="Validation loss and BLEU over the share of heads cut off.",
    )
