"""``docs/understand/walk.md``: one sentence through a tiny model, every number computed by the NumPy reference.

``python -m benchmarks.walk --train`` trains the model (10 seconds) and keeps its weights; without, the page and its
pictures are made again from the weights that are there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.environments import ROOT
from benchmarks.harness.markdown import table
from dragoman import reference
from dragoman.explanation.figures import Bar, Bars, HeatMap, bars, heat_maps
from dragoman.explanation.style import save
from dragoman.reference import sinusoidal_positions

PAGE = ROOT / "docs/understand/walk.md"
FOLDER = ROOT / "docs/understand/walk"
WEIGHTS = FOLDER / "weights.json"

NOUNS = {"dog": ("der Hund", "den Hund"), "cat": ("die Katze", "die Katze"), "man": ("der Mann", "den Mann"),
         "child": ("das Kind", "das Kind")}  # fmt: skip
VERBS = {"sees": "sieht", "hears": "hört", "finds": "findet"}
SPECIAL = ["(pad)", "(unk)", "(bos)", "(eos)"]
SENTENCE = "the cat sees the dog"
SIZES: dict[str, Any] = dict(
    d_model=16, d_ff=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0, share_embeddings="decoder",
    norm="post", activation="relu", positions="sinusoidal",
)  # fmt: skip

Array = NDArray[np.float64]


def pairs() -> Iterator[tuple[str, str]]:
    """Every sentence of the toy grammar: 48 of them."""
    for subject, verb, thing in itertools.product(NOUNS, VERBS, NOUNS):
        yield f"the {subject} {verb} the {thing}", f"{NOUNS[subject][0]} {VERBS[verb]} {NOUNS[thing][1]}"


def vocabularies() -> tuple[list[str], list[str]]:
    """The words of each side, after the special tokens."""
    sides = zip(*pairs(), strict=True)
    src, tgt = (sorted({word for line in side for word in line.split()}) for side in sides)
    return SPECIAL + src, SPECIAL + tgt


def held_out() -> list[int]:
    """Every sixth sentence, which training does not see; the one of the walk is among them."""
    lines = [src for src, _ in pairs()]
    shift = lines.index(SENTENCE) % 6
    return [i for i in range(len(lines)) if i % 6 == shift]


def train(seed: int = 1, steps: int = 400) -> dict[str, Any]:
    """Train with torch, and return the weights with four decimals, and what they reach."""
    import torch

    from dragoman import ModelConfig, Transformer

    torch.manual_seed(seed)
    src_words, tgt_words = vocabularies()
    config = ModelConfig(**SIZES, src_vocab_size=len(src_words), tgt_vocab_size=len(tgt_words))
    model = Transformer(config)
    both = list(pairs())
    src = torch.tensor([[*(src_words.index(w) for w in s.split()), 3] for s, _ in both])
    tgt = torch.tensor([[2, *(tgt_words.index(w) for w in t.split()), 3] for _, t in both])
    seen = torch.tensor([i for i in range(len(both)) if i not in held_out()])
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98), eps=1e-9)
    for _ in range(steps):
        logits = model(src[seen], tgt[seen, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tgt[seen, 1:].flatten(), label_smoothing=0.1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    weights = {name: np.round(p.detach().numpy().astype(float), 4) for name, p in model.state_dict().items()}
    return {"config": config.model_dump(), "weights": {name: value.tolist() for name, value in weights.items()}}


class Walk:
    """All that the model computes on the way from one sentence to its translation."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.config: dict[str, Any] = stored["config"]
        self.params = {name: np.array(value) for name, value in stored["weights"].items()}
        self.src_words, self.tgt_words = vocabularies()
        self.words = [*SENTENCE.split(), "(eos)"]
        self.src = np.array([[self.src_words.index(word) for word in self.words]])
        self.said, self.probabilities = self.greedy(self.src)
        self.tgt_in = np.array([[2, *(self.tgt_words.index(word) for word in self.said[:-1])]])
        self.logits, cache = reference.forward(self.params, self.config, self.src, self.tgt_in)
        assert cache.encoder is not None
        self.encoder, self.decoder = cache.encoder.layers[0], cache.decoder.layers[0]
        self.memory, _ = reference.encode(self.params, self.config, self.src)
        attn = self.encoder.self_attn.sublayer
        prefix = "encoder.layers.0.self_attn.w_o"
        self.added = attn.heads[0] @ self.params[f"{prefix}.weight"].T + self.params[f"{prefix}.bias"]  # (S, d_model)

    def greedy(self, src: Any) -> tuple[list[str], list[Array]]:
        """The likeliest word at each step, and all probabilities of each step."""
        memory, _ = reference.encode(self.params, self.config, src)
        ids, steps = [2], []
        while ids[-1] != 3 and len(ids) < 10:
            logits, _ = reference.decode(self.params, self.config, np.array([ids]), memory)
            last = logits[0, -1]
            steps.append(np.exp(last - last.max()) / np.exp(last - last.max()).sum())
            ids.append(int(steps[-1].argmax()))
        return [self.tgt_words[i] for i in ids[1:]], steps

    def right(self) -> tuple[int, int]:
        """How many of the sentences that training did not see are translated rightly, and how many there are."""
        both, unseen = list(pairs()), held_out()
        good = 0
        for i in unseen:
            src = np.array([[*(self.src_words.index(word) for word in both[i][0].split()), 3]])
            good += " ".join(self.greedy(src)[0][:-1]) == both[i][1]
        return good, len(unseen)


# --- pictures ---------------------------------------------------------------------------------------------------------


def draw(walk: Walk, folder: Path) -> None:
    """The pictures of every step."""
    words, said = walk.words, walk.said
    table_, d = walk.params["src_embed.weight"], walk.config["d_model"]
    channels = [str(i) for i in range(d)]
    embedded = table_[walk.src[0]] * math.sqrt(d)
    places = sinusoidal_positions(len(words), d)
    reach = float(np.ceil(np.abs(embedded + places).max()))

    def vectors(maps: Sequence[tuple[str, Array]], limit: float, numbered: str = "") -> Any:
        numbers = [str(i) for i in range(len(words))]
        found = [HeatMap(values, title, numbers if title == numbered else words, channels) for title, values in maps]
        rows = "word or position" if numbered else "word"
        return heat_maps(found, rows, "channel", "value", limits=(-limit, limit), n_columns=1, cell=0.24)

    def keep(figure: Any, name: str, title: str) -> None:
        save(figure, folder / f"{name}.svg", title=title)

    keep(vectors([("embedding × √16", embedded), ("positions", places), ("their sum", embedded + places)], reach,
                 numbered="positions"), "input", "Embeddings, positions and their sum")  # fmt: skip
    attn = walk.encoder.self_attn.sublayer
    scores = attn.q[0] @ attn.k[0].swapaxes(-1, -2) / math.sqrt(attn.q.shape[-1])
    top = float(np.ceil(np.abs(scores).max()))
    keep(heat_maps([HeatMap(s, f"head {i + 1}", words, words) for i, s in enumerate(scores)], "query of", "key of",
                   "score: q · k / √8", limits=(-top, top), numbers=".1f", cell=0.4),
         "scores", "Scores of both heads")  # fmt: skip
    keep(heat_maps([HeatMap(w, f"head {i + 1}", words, words) for i, w in enumerate(attn.weights[0])], "query of",
                   "key of", "weight (each row sums to 1)", numbers=".2f", cell=0.4),
         "encoder", "Weights of both heads")  # fmt: skip
    normed = walk.encoder.self_attn.norm.normed[0]
    summed = normed / walk.encoder.self_attn.norm.inv_std[0]
    keep(vectors([("x + attention, less its mean", summed), ("after the norm", normed)],
                 float(np.ceil(np.abs(summed).max()))), "norm", "Before and after the layer norm")  # fmt: skip
    hidden = walk.encoder.feed_forward.sublayer.hidden[0]
    keep(heat_maps([HeatMap(hidden, "", words, [str(i) for i in range(hidden.shape[1])])], "word", "hidden unit",
                   "max(0, x W₁ + b₁)", limits=(0, float(np.ceil(hidden.max()))), cell=0.21),
         "hidden", "Hidden units of the feed-forward network")  # fmt: skip
    inputs = ["(bos)", *said[:-1]]
    keep(heat_maps([HeatMap(w, f"head {i + 1}", inputs, inputs) for i, w in
                    enumerate(walk.decoder.self_attn.sublayer.weights[0])], "query of", "key of",
                   "weight (each row sums to 1)", numbers=".2f", cell=0.4, framed=True),
         "decoder", "Masked self-attention of the decoder")  # fmt: skip
    cross = walk.decoder.cross_attn
    assert cross is not None
    keep(heat_maps([HeatMap(w, f"head {i + 1}", [f"{a} → {b}" for a, b in zip(inputs, said, strict=True)], words)
                    for i, w in enumerate(cross.sublayer.weights[0])], "input → next word", "source",
                   "weight (each row sums to 1)", numbers=".2f", cell=0.4),
         "cross", "Attention to the source")  # fmt: skip
    keep(bars([_best(walk, step) for step in (0, 3)]), "next", "Probabilities of the next word at two steps")


def _best(walk: Walk, step: int) -> Bars:
    found = walk.probabilities[step]
    best = np.argsort(-found)[:5]
    after = " ".join(["(bos)", *walk.said[:step]])
    return Bars([Bar(walk.tgt_words[i], 100 * found[i], text=f"{100 * found[i]:.1f}%") for i in best],
                "probability (%)", f"after {after}")  # fmt: skip


# --- the page ---------------------------------------------------------------------------------------------------------


def page(walk: Walk) -> str:
    """The text, with the numbers of this walk."""
    attn = walk.encoder.self_attn.sublayer
    q, k = attn.q[0, 1], attn.k[0, 1]  # head 2
    cat, dog = walk.words.index("cat"), walk.words.index("dog")
    score = float(q[dog] @ k[cat])
    weights = attn.weights[0, 1, dog]
    hidden = walk.encoder.feed_forward.sublayer.hidden[0]
    good, unseen = walk.right()
    chosen = [
        [str(step + 1), " ".join(["(bos)", *walk.said[:step]]), word, f"{100 * walk.probabilities[step].max():.1f}%"]
        for step, word in enumerate(walk.said)
    ]
    logit = np.sort(walk.logits[0, 0])[::-1]
    cross = walk.decoder.cross_attn
    assert cross is not None
    seen = cross.sublayer.weights[0, 0]  # head 1
    smoothed = 0.9 + 0.1 / len(walk.tgt_words)
    values = {
        # the output's matrix is that of the target embedding
        "n_params": f"{sum(p.size for name, p in walk.params.items() if name != 'generator.weight'):,}",
        "ids": table(["word", *walk.words], [["id", *(str(i) for i in walk.src[0])]]),
        "products": " + ".join(_product(a, b) for a, b in zip(q[dog], k[cat], strict=True)),
        "score": f"{score:.2f}", "scaled": f"{score / math.sqrt(8):.2f}",
        "weights": ", ".join(f"{w:.2f}" for w in weights),
        "zeros": f"{(hidden == 0).mean():.0%}", "n_hidden": str(hidden.size),
        "logits": f"{logit[0]:.2f} and {logit[1]:.2f}".replace("-", "−"),
        "ratio": f"{math.exp(logit[0] - logit[1]):.0f}", "to_the": f"{seen[3, 0]:.2f}", "to_dog": f"{seen[3, dog]:.2f}",
        "then_dog": f"{seen[4, dog]:.2f}", "smoothed": f"{smoothed:.1%}",
        "steps": "\n".join(["| step | the decoder reads | likeliest next word | its probability |", "|--:|---|---|--:|",
                            *(f"| {' | '.join(row)} |" for row in chosen)]),
        **_mixed(walk, dog), **CHANGED,
        "said": " ".join(walk.said[:-1]), "good": str(good), "unseen": str(unseen), "sentence": SENTENCE,
    }  # fmt: skip
    return TEXT.format(**values)


CHANGED = {
    "no_sink": "das Kind", "no_cross": "den Mann", "hidden_object": "den Hund", "hidden_subject": "die Katze",
    "no_positions": "der der das das das das Kind sieht", "patched": "den Mann",
}  # fmt: skip
"""Words that the changed model writes in the frame, for each change that the page suggests."""


def _mixed(walk: Walk, row: int) -> dict[str, str]:
    """The numbers of the sink, of a mixed value and of the norm of one row."""
    attn, norm = walk.encoder.self_attn.sublayer, walk.encoder.self_attn.norm
    shares = attn.weights[0].mean(axis=1)[:, -1]  # of (eos), (H)
    sink = int(shares.argmax())
    weights, values = attn.weights[0, 1, row], attn.v[0, 1, :, 0]
    spread = 1 / norm.inv_std[0, row, 0]
    summed = attn.x[0, row] + walk.added[row]
    written = {"mean": summed.mean(), "spread": spread, "before": summed[0], "after": norm.normed[0, row, 0]}
    return {
        "sink": str(sink + 1), "other": str(2 - sink), "share": f"{shares[sink]:.0%}",
        "mixed": " + ".join(_product(a, b) for a, b in zip(weights, values, strict=True))
        + f" = {attn.heads[0, row, 8]:.2f}".replace("-", "−"),
        **{name: f"{value:.2f}".replace("-", "−") for name, value in written.items()},
    }  # fmt: skip


def _product(a: float, b: float) -> str:
    return f"({a:.2f})({b:.2f})".replace("-", "−")


TEXT = """# One sentence through the model

This page follows one sentence, *{sentence}*, through a complete Transformer that is small enough to print: 16
channels, 2 heads of 8, one encoder layer, one decoder layer, {n_params} weights, words instead of subwords. It was
trained for some seconds on 40 sentences of a toy grammar (four nouns, three verbs, English to German). It is the
paper's model, but for a source embedding of its own and no dropout. In German *the dog* is *der Hund* as a
subject and *den Hund* as an object. Training left {unseen} more sentences out, this one among them; {good} of these are
translated correctly.

Every number is computed by the [NumPy reference](../../src/dragoman/reference/__init__.py) from the [stored
weights](walk/weights.json); `python -m benchmarks.walk` makes the page again. Rows are words, columns are channels.
At the end of the page the model itself can be [opened and changed](#change-it).

## 1. Words become numbers

Each word has a number, its id. The end of the sentence is a word, too.

{ids}

## 2. Numbers become vectors, and vectors get places

The id picks a row of the embedding matrix, 16 learned numbers, and the row is multiplied by √16 = 4. Then the row of
the [positional encoding](../course/05-positions.md) is added. Both *the* have the same embedding and differ after the
sum: from here on the model can tell the first from the second.

![Embeddings, positions and their sum: words down, channels across](walk/input.svg)

*Blue is below zero, orange above. On the right, at the high channels, positions hardly change.*

## 3. Every word asks every word

In each head a word makes a query, a key and a value: three products of its vector with learned matrices, 8 numbers
each. The score of *dog* for *cat* in head 2 is the product of the query of *dog* and the key of *cat*:

{products} = {score}

Divided by √8 it is {scaled}. [Why divide?](../course/03-attention.md)

![Scores of both heads, queries down, keys across](walk/scores.svg)

## 4. Scores become weights

The softmax makes each row positive with sum 1. For *dog* in head 2 the weights are {weights}; their exact sum is 1. The
encoder has no mask here, because the sentence has no padding.

![Weights of both heads of the encoder](walk/encoder.svg)

*The model learned which word looks at which; nobody assigned it. [Why several heads?](../course/04-heads.md)*

Head {sink} is an **attention sink**: {share} of all its weight goes to (eos), whatever the word. A softmax has to
give all its weight away, and a head that finds nothing learns to rest it on one place
([Xiao et al., 2023](https://arxiv.org/abs/2309.17453)). A sink need not be idle: this one adds
nearly the same vector to every word, and without it the model writes *das Kind* for *den Hund* ([try
it](#change-it)). Head {other} tells words apart.

## 5. A mean of values, added and normalised

The weights mix the values of all words. The first of the 8 numbers of *dog* in head 2:

{mixed}

Both heads' results, 8 numbers each, are put side by side and multiplied by `w_o`. The result is added to what came
in, and the [layer norm](../course/06-residuals-and-norms.md) gives every row mean 0 and standard deviation 1:
in the row of *dog* the mean is {mean} and the deviation {spread}, so the first number, {before}, becomes
({before} − ({mean})) / {spread} = {after}.

![The sum before the norm and after it](walk/norm.svg)

*The norm acts on each row by itself. A learned gain and bias for each channel follow, not shown.*

## 6. The same network for every word

The feed-forward network widens each row to 32 numbers, sets those below zero to zero, and narrows it to 16 again. Here
{zeros} of the {n_hidden} hidden numbers are zero. [Why a feed-forward network?](../course/07-the-block.md) Add and
norm follow again; the rows are now the encoder's output, the **memory**.

![Hidden units: words down, units across](walk/hidden.svg)

## 7. The decoder looks back

The decoder reads what has been written so far, beginning with (bos). Its self-attention is masked: above the diagonal
every weight is exactly 0. [Why masks?](../course/03-attention.md)

![Masked self-attention of the decoder](walk/decoder.svg)

## 8. The decoder looks at the source

Queries come from the decoder, keys and values from the memory. At the row *den → Hund* head 1 gives {then_dog} of its
weight to *dog*. The row before is more surprising: to write the article *den* the model must know the gender of
*dog*, but head 1 gives *dog* {to_dog} and the first *the* {to_the}. Since step 5 a row of the memory is no longer its
word alone: it has taken in what its word looked at. The word that a head looks at need not be the one
whose information it gets.

![Attention to the source: input and next word down, source words across](walk/cross.svg)

## 9. A word is chosen

After the feed-forward network the last row is multiplied by the embedding matrix of the target side: a **logit** for
each word. At the first step the two highest are {logits}; after the softmax the first is {ratio} times as likely.

![The five likeliest words at the first and at the fourth step](walk/next.svg)

## 10. And again

The chosen word is appended to the input, and steps 7 to 9 are repeated until (eos) is the likeliest. The memory stays
the same.

{steps}

The result: *{said}*. The model is sure of every word, and yet no probability is far above {smoothed}: that is what
[label smoothing](../course/09-training.md) asks for. Real systems keep several candidates: see
[decoding](../course/10-decoding.md).

## Change it

<details class="translator">
<summary>Open the model (0.3 MB)</summary>
<iframe src="walk-model.html#the%20cat%20sees%20the%20dog" loading="lazy"
 title="The model of this page, with its matrices and switches"></iframe>
</details>

The frame holds this model; its numbers are those of this page. GitHub shows no frame: there, open the built site.
*Inside one head*, below the translation, has the matrices of each step, and switches:

1. Choose *Source to itself*, head 1, and remove it. The sink is gone, and *den Hund* becomes *{no_sink}*.
2. Remove head 1 of *Translation to source* instead: now it is *{no_cross}*.
3. Hide *man* in *the dog finds the man*: no query sees it, and the model guesses *{hidden_object}*. Hide *dog*:
   *{hidden_subject}*.
4. Take away the positions: *{no_positions}*.
5. Put in the row of *man*, the fifth word of *the cat sees the man*, for that of *dog* after encoder layer 1. That
   row carried the object: *{patched}*.
6. Leave the mask out. The translation stays as it is, because nothing later has been written yet. Read at once, it
   is less probable: a position sees words that training never let it see.

**Limits.** A model of this size on 40 sentences shows how the parts fit together. Its heads say nothing
about the heads of larger models. To see the same of a model of your own: [`dragoman explain`](../how-to/explain.md)."""


def main() -> None:
    """Train if asked to; write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="train the model first")
    args = parser.parse_args()
    if args.train:
        FOLDER.mkdir(parents=True, exist_ok=True)
        WEIGHTS.write_text(json.dumps(train()) + "\n", encoding="utf-8")
    walk = Walk(json.loads(WEIGHTS.read_text(encoding="utf-8")))
    draw(walk, FOLDER)
    PAGE.write_text(page(walk), encoding="utf-8")


if __name__ == "__main__":
    main()
