"""Examine each head of a trained model: the keys it attends to, and the loss of the model without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.data import phrasebook
from dragoman.data.batching import Batch, all_batches
from dragoman.data.order import Indices
from dragoman.data.store import ABOUT, Entry, Origin, Store, build_store
from dragoman.errors import ConfigError
from dragoman.explanation import attention
from dragoman.explanation.explain import explain
from dragoman.explanation.figures import Chart, Curve, HeatMap, curves, heat_maps
from dragoman.explanation.trace import Trace
from dragoman.files import explained, sha256
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table, run_to_examine
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
from dragoman.lab.runs import Variant, run_of, transformer_config, trial
from dragoman.model.transformer import Transformer
from dragoman.options import either
from dragoman.progress import Ticker
from dragoman.training.validation import validator
from dragoman.translation.translator import Translator

TAKES = ("config", "run", "device")

SMALL_LOSS = 0.05
"""Rise of the loss in nats, about 5% of perplexity, below which a head counts as unimportant."""

SENTENCES = 300
"""Number of sentences of the embedded corpus on which a bundle is examined."""

N_ORDERS = 5
"""Number of random orders of pruning, with which the order by importance is compared."""


class Examined(NamedTuple):
    """A trained model and the validation text on which it is examined.

    Heads are chosen by the pairs of even numbers, and judged by those of odd ones: what is least important on a text is
    so partly by chance, and on that text alone.
    """

    translator: Translator
    model: Transformer
    store: Store
    to_choose: list[Batch]
    to_judge: list[Batch]

    @property
    def judging(self) -> Indices:
        """Numbers of the pairs that judge."""
        return np.arange(1, len(self.store), 2)


def run(lab: Lab) -> Findings:
    """Examine all heads; claims: they do different things, few of them matter, and attention to the source most."""
    examined = examine(lab)
    depends_on = _depends_on(lab, examined)
    numbers: dict[str, Any] = {
        "sentences": {"to_choose": len(examined.store) - len(examined.judging), "to_judge": len(examined.judging)},
        "habits": lab.done("habits", lambda: habits(examined.model, examined.to_judge), depends_on),
        "alone": lab.done("alone", lambda: prune_one(examined), depends_on),
        "attentions": lab.done("attentions", lambda: prune_attentions(examined), depends_on),
    }
    by_importance = sorted(numbers["alone"], key=lambda row: row["when_choosing"])
    order = [Head(row["attention"], row["head"]) for row in by_importance]
    numbers["together"] = lab.done("together", lambda: prune_more_and_more(examined, order, lab.quick), depends_on)
    example = explain(examined.translator, *_example(examined))
    numbers["example"] = {
        "source": example.source,
        "translation": example.translation,
        "attention": {kind: _weights_of(example, kind) for kind in HABITS if example.layers(kind)},
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


def _depends_on(lab: Lab, examined: Examined) -> Any:
    """Return the checksum of the weights; of a run with its validation text also that of the text, which may change."""
    weights = examined.translator.manifest["files"]["model.safetensors"]["sha256"]
    about = None if lab.run is None else Path(lab.run) / "store/valid" / ABOUT
    if about is None or not about.is_file():
        return weights
    with explained(about):
        return [weights, sha256(about)]


def examine(lab: Lab) -> Examined:
    """Load the run of ``--run``, or train a small model.

    Raises:
        ConfigError: The run is a parser or not a Transformer, there is no text for it, or a configuration is given too.
    """
    folder = run_to_examine(lab)
    if folder is None:
        variant = Variant("model", transformer_config(lab))
        trial(lab, variant, 1, keep=True)
        folder = run_of(lab, variant, 1)
    translator = Translator.load(folder, lab.device.type)
    if translator.is_parser:
        raise ConfigError(f"{folder}: this experiment examines translators, and the run is a parser")
    if not isinstance(translator.model, Transformer):
        raise ConfigError(f"{folder}: this experiment examines Transformers, and the run has another architecture")
    store = Store.open(_validation_text(lab, Path(folder), translator))
    if translator.languages.targets:
        raise ConfigError(
            f"{folder}: this experiment examines models with one target language, and the run has several"
        )
    longest = int(max(store.src_lengths().max(), store.tgt_lengths().max())) + 1
    if len(store) < 2:
        raise ConfigError(f"{folder}: the validation text must have 2 pairs or more, got {len(store)}")
    to_choose, to_judge = (
        [batch.to(lab.device) for batch in all_batches(store, max(longest, 2048), np.arange(first, len(store), 2))]
        for first in (0, 1)
    )
    return Examined(translator, translator.model, store, to_choose, to_judge)


def _validation_text(lab: Lab, folder: Path, translator: Translator) -> Path:
    """Return the store of a run's validation text; a bundle gets held-out sentences of the embedded corpus.

    Raises:
        ConfigError: It is a bundle, and the embedded corpus has no text in its languages.
    """
    if (folder / "store/valid").is_dir():
        return folder / "store/valid"
    data = translator.config.data
    if data.src_lang != "en" or data.tgt_lang not in phrasebook.LANGUAGES or translator.languages.targets:
        raise ConfigError(
            f"{folder}: must be a run with its validation text (store/valid), or a bundle from English into "
            f"{either(phrasebook.LANGUAGES)}; name another run with --run"
        )
    lab.say(f"{folder} has no validation text: examining it on {SENTENCES:,} sentences of the embedded corpus")
    store = lab.run_folder("embedded-text")
    pairs = phrasebook.pairs(SENTENCES, seed=2, tgt_lang=data.tgt_lang, split="held_out")
    with explained(store):
        store.parent.mkdir(parents=True, exist_ok=True)
        tokenizers = translator.src_tokenizer, translator.tgt_tokenizer
        build_store(store, [Entry(pairs)], tokenizers, data, Origin("the embedded corpus"), keep_text=True)
    return store


# --- measurements -----------------------------------------------------------------------------------------------------


def prune_one(examined: Examined) -> list[dict[str, Any]]:
    """Return the rise of the loss without each head, in nats per token: ``when_choosing`` and, judged, ``increase``.

    The interval of ``increase``, over sentences, allows for as many comparisons as there are heads.
    """
    chosen, judged = examined.to_choose, examined.to_judge
    whole_chosen, counts_chosen = sentence_losses(examined.model, chosen)
    whole, counts = sentence_losses(examined.model, judged)
    rows, heads = [], all_heads(examined.model)
    for head in heads:
        with without(examined.model, [head]):
            rises_chosen = sentence_losses(examined.model, chosen)[0] - whole_chosen
            rises = sentence_losses(examined.model, judged)[0] - whole
        low, high = bootstrapped(rises, counts, len(heads))
        rows.append({
            "attention": head.attention, "head": head.number, "increase": rises.sum() / counts.sum(), "low": low,
            "high": high, "when_choosing": rises_chosen.sum() / counts_chosen.sum(),
        })  # fmt: skip
    return rows


def prune_attentions(examined: Examined) -> list[dict[str, Any]]:
    """Return the rise of the loss without each whole attention, and with only the best of its heads.

    The best head is chosen on one half of the text; rises are judged on the other.
    """
    chosen, judged = examined.to_choose, examined.to_judge
    whole = {id(batches): sentence_losses(examined.model, batches) for batches in (chosen, judged)}

    def rise(heads: Sequence[Head], batches: list[Batch]) -> float:
        losses, counts = whole[id(batches)]
        with without(examined.model, heads):
            return float((sentence_losses(examined.model, batches)[0] - losses).sum() / counts.sum())

    rows = []
    for name, module in attentions(examined.model).items():
        heads = [Head(name, i) for i in range(module.n_heads)]
        others = [[other for other in heads if other != head] for head in heads]
        best = int(np.argmin([rise(pruned, chosen) for pruned in others]))
        rows.append({
            "attention": name, "without": rise(heads, judged), "best_head": best,
            "best_alone": rise(others[best], judged),
        })  # fmt: skip
    return rows


def prune_more_and_more(examined: Examined, order: Sequence[Head], quick: bool = False) -> dict[str, Any]:
    """Return loss and BLEU (greedy) for growing numbers of pruned heads, in ``order`` and in random orders.

    They are measured on the half of the text that did not choose the order.
    """
    translator = examined.translator
    measure = validator(
        translator.config, examined.store, translator.tgt_tokenizer, Ticker(quiet=True), examined.judging
    )
    n_points = 2 if quick else 8
    numbers = sorted({round(i * len(order) / n_points) for i in range(n_points + 1)})

    def curve(heads: Sequence[Head]) -> dict[str, list[float]]:
        loss, bleu = [], []
        for number in numbers:
            with without(examined.model, heads[:number]):
                validation = measure(examined.model)
            loss.append(validation.loss)
            bleu.append(validation.bleu)
        return {"loss": loss, "bleu": bleu}

    rng = np.random.default_rng(1)
    shuffled = [[order[i] for i in rng.permutation(len(order))] for _ in range(1 if quick else N_ORDERS)]
    return {
        "n_heads": len(order),
        "pruned": numbers,
        "by_importance": curve(order),
        "at_random": [curve(heads) for heads in shuffled],
    }


def _example(examined: Examined) -> tuple[str, str]:
    """Return the validation sentence whose length is nearest to nine subwords, and its reference."""
    index = int(np.abs(examined.store.src_lengths().astype(int) - 9).argmin())
    (source,), (reference,) = examined.store.texts([index])
    return source, reference


def _weights_of(example: Trace, kind: str) -> dict[str, Any]:
    """Return the weights of all heads of one kind on the example, to four decimals, with the tokens of both axes."""
    rows, columns = example.tokens(kind)
    return {"rows": rows, "columns": columns, "layers": [np.round(weights, 4) for weights in example.layers(kind)]}


# --- the report -------------------------------------------------------------------------------------------------------


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    alone, together = numbers["alone"], numbers["together"]
    n_heads = len(alone)
    small = [row for row in alone if row["high"] < SMALL_LOSS]
    worst = max(alone, key=lambda row: row["when_choosing"])
    focused = [
        (name, i, kind, float(share))
        for name, rows in numbers["habits"].items()
        for i, row in enumerate(rows)
        for kind, share in zip(HABITS[kind_of(name)][:-1], row[:-1], strict=True)
        if share > 0.5
    ]
    by_kind = {
        kind: sum(row["without"] for row in numbers["attentions"] if kind_of(row["attention"]) == kind)
        for kind in HABITS
        if any(kind_of(row["attention"]) == kind for row in numbers["attentions"])
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
            bool(focused),
            f"{len({(name, i) for name, i, _, _ in focused})} of {n_heads}"
            + "".join(
                f"; {_name({'attention': n, 'head': i})}: {share:.0%} to {kind}" for n, i, kind, share in focused[:3]
            )
            + ". Larger models have such heads: https://arxiv.org/abs/1905.09418 (Voita et al. 2019), "
            "https://arxiv.org/abs/1906.04341 (Clark et al. 2019)",
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
            f"{together['pruned'][middle]} of {n_heads} cut off: loss {chosen:.2f} by importance on other sentences, "
            f"{min(random):.2f} to {max(random):.2f} at random ({len(random)} orders); whole "
            f"{together['by_importance']['loss'][0]:.2f}",
        ),
    ]


def _name(row: Mapping[str, Any]) -> str:
    return f"{_place(row['attention'])}, head {row['head'] + 1}"


def _place(path: str) -> str:
    """Return the name in figures of an attention: ``cross 1`` for ``decoder.layers.0.cross_attn``."""
    stack, _, layer, _ = path.split(".")
    return f"{'cross' if kind_of(path) == 'cross' else stack} {int(layer) + 1}"


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    names = [row["attention"] for row in numbers["attentions"]]
    parts = []
    for kind, title in (
        ("encoder", "The encoder's heads"),
        ("decoder", "The decoder's heads"),
        ("cross", "Heads of cross-attention"),
    ):
        here = [name for name in names if kind_of(name) == kind]
        if here:
            parts.append(_heads_of(kind, title, here, numbers))
    return [*parts, _importance(numbers), _together(numbers["together"])]


def _heads_of(kind: str, title: str, names: Sequence[str], numbers: Mapping[str, Any]) -> Section:
    """Return the section on the heads of one kind: their maps on one sentence, and their habits on all the text."""
    example = numbers["example"]
    maps = example["attention"][kind]
    shares = {f"{_place(name)}, head {i + 1}": row for name in names for i, row in enumerate(numbers["habits"][name])}
    rows = []
    for place, habit in enumerate(HABITS[kind]):
        most = max(shares, key=lambda head: float(shares[head][place]))
        rows.append((habit, f"{float(shares[most][place]):.2f}: {most}"))
    return Section(
        title,
        f"One sentence of the validation text, `{example['source']}`, read with its reference, "
        f"`{example['translation']}`. The tables have the greatest weight of a head, a mean over all of the text."
        if kind == "encoder"
        else "",
        attention.head_maps(maps["layers"], maps["rows"], maps["columns"], kind),
        f"heads-{kind}",
        Table(("looks at", "greatest weight"), rows),
        "A diagonal looks at itself or a neighbour; a column is a key that all queries look at."
        if kind == "encoder"
        else "",
    )


def _importance(numbers: Mapping[str, Any]) -> Section:
    names = [row["attention"] for row in numbers["attentions"]]
    rise = {name: [row["increase"] for row in numbers["alone"] if row["attention"] == name] for name in names}
    width = max(map(len, rise.values()))
    values = np.array([[*row, *[np.nan] * (width - len(row))] for row in rise.values()])
    most = max(float(np.nanmax(values)), 1e-6)
    table = Table(
        ("attention", "without it", "with its best head alone"),
        [
            (_place(row["attention"]), row["without"], row["best_alone"])
            for row in numbers["attentions"]
        ],
    )  # fmt: skip
    return Section(
        "Which heads matter",
        "Heads are cut off (the columns of `w_o` that read them are set to zero) without retraining; for the table, "
        "whole attentions, or all their heads but the best. Half of the sentences choose, the other half judge.",
        heat_maps(
            [HeatMap(values, "", [_place(name) for name in names], [str(i + 1) for i in range(width)])],
            "attention", "head", "rise of the loss (nats a token)", limits=(0.0, most),
            cell=0.5, numbers=".2f",
        ),
        "importance",
        table,
        "Rise of the validation loss in nats a token; a cell without colour is 0 or a fall.",
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
        "",
        curves([chart("loss", "loss (nats a token)", "Loss"), chart("bleu", "BLEU, greedy", "Translations")]),
        "together",
        caption="Loss and BLEU over the share of heads cut off; band: the best to the worst of the random orders.",
    )
