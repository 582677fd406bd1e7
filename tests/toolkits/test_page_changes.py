"""A page's model with a reader's changes computes what the NumPy reference computes with the same changes."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.bundle import Bundle
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.reference import attention as numpy_attention
from dragoman.reference import transformer as numpy_transformer
from dragoman.toolkits.page.search import Page
from dragoman.toolkits.page.write import write

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

SIZES = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=2, n_decoder_layers=2, max_len=60)
VARIANTS = {
    "the paper's": {},
    "pre-norm, learned positions, own widths": dict(norm="pre", positions="learned", d_k=5, d_v=7),
    "rotary, gated": dict(norm="pre", positions="rotary", activation="swiglu", attention_bias=False),
    "imported, without eos": dict(src_eos=False, generator_bias=True, activation="swish"),
}  # fmt: skip
TEXT, OTHER = "the dog sees a cat", "the man likes the house"
TGT = [31, 8, 100, 5, 44, 17]
NAMES = [
    "encoder.layers.0.self_attn", "encoder.layers.1.self_attn", "decoder.layers.0.self_attn",
    "decoder.layers.0.cross_attn", "decoder.layers.1.self_attn", "decoder.layers.1.cross_attn",
]  # fmt: skip
"""Attentions in the order in which they are computed."""
UNCHANGED = dict(
    scaled=True, temperature=1, mask="right", fill="infinity", padding=0, positions=True, removed=[],
    hidden=dict(src=[], tgt=[]), patch=None,
)  # fmt: skip
EVERYTHING = dict(
    scaled=False, temperature=3, mask="none", fill="billion", padding=1, positions=False,
    removed=[["encoder.layers.0.self_attn", 0], ["decoder.layers.1.cross_attn", 1]], hidden=dict(src=[0], tgt=[2]),
    patch=dict(side="encoder", layer=1, at=2, text=OTHER, **{"from": 3}),
)  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "not scaled": dict(scaled=False),
    "colder": dict(temperature=0.5),
    "warmer": dict(temperature=4),
    "mask inverted": dict(mask="inverted"),
    "mask inverted, finite": dict(mask="inverted", fill="billion"),
    "mask left out": dict(mask="none"),
    "finite": dict(fill="billion"),
    "padding": dict(padding=2),
    "padding, inverted": dict(padding=2, mask="inverted"),
    "padding, left out": dict(padding=2, mask="none"),
    "no positions": dict(positions=False),
    "a head of each kind": dict(removed=[[name, 1] for name in NAMES[1:4]]),
    "words hidden": dict(hidden=dict(src=[1, 3], tgt=[0])),
    "words hidden, finite": dict(hidden=dict(src=[1, 3], tgt=[0]), fill="billion"),
    **{
        f"{side} {layer} patched": dict(patch=dict(side=side, layer=layer, at=2, text=OTHER, **{"from": 1}))
        for side in ("encoder", "decoder") for layer in (0, 1, 2)
    },
    "everything": EVERYTHING,
}  # fmt: skip

Make = Callable[..., Bundle]
Rows = dict[tuple[str, int], np.ndarray]


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """The forward pass of the reference with changes to its functions: logits, attentions by name, rows by layer."""

    def forward(bundle: Bundle, src: list[int], tgt: list[int], changes: dict[str, Any], row: Any = None) -> Any:
        want = {**UNCHANGED, **changes}
        params = {name: tensor.double().numpy() for name, tensor in bundle.model.state_dict().items()}
        config, seen = bundle.model.config.model_dump(), {}
        states: Rows = {}
        with monkeypatch.context() as patch:
            change_attention(patch, want, seen)
            change_masks(patch, want)
            change_positions(patch, want)
            change_rows(patch, want, row, states)
            end = [EOS_ID] if config["src_eos"] else []  # sources without eos are sources that have none
            config["src_eos"] = True
            ids = np.array([[*src, *end, *[PAD_ID] * want["padding"]]])
            logits, _ = numpy_transformer.forward(params, config, ids, np.array([[BOS_ID, *tgt]]))
        return logits[0], seen, states

    return forward


def change_attention(patch: pytest.MonkeyPatch, want: dict[str, Any], seen: dict[str, Any]) -> None:
    """Scaling, temperature, what is hidden, and heads; ``seen`` gets what each attention computed."""

    def attend(q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
        name = NAMES[len(seen)]
        scores = q @ k.swapaxes(-1, -2) / (math.sqrt(q.shape[-1]) if want["scaled"] else 1) / want["temperature"]
        mask = np.broadcast_to(mask, scores.shape)
        if want["fill"] == "billion":
            scores = np.where(mask, scores, -1e9)
            mask = np.ones_like(mask)
        weights = numpy_attention.masked_softmax(scores, mask)
        for removed, head in want["removed"]:
            if removed == name:
                weights[:, head] = 0
        seen[name] = dict(q=q[0], k=k[0], v=v[0], scores=np.where(mask, scores, -np.inf)[0], weights=weights[0])
        seen[name]["out"] = (weights @ v)[0]
        return weights @ v, weights

    patch.setattr(numpy_attention, "attend", attend)


def change_masks(patch: pytest.MonkeyPatch, want: dict[str, Any]) -> None:
    """How masks are handed over, and positions that nothing looks at."""

    def handed(mask: Any, hidden: list[int]) -> Any:
        mask = {"right": mask, "inverted": ~mask, "none": np.ones_like(mask)}[want["mask"]].copy()
        mask[..., [place for place in hidden if place < mask.shape[-1]]] = False
        return mask

    source_mask, target_mask = numpy_transformer.source_mask, numpy_transformer.target_mask
    patch.setattr(
        numpy_transformer, "source_mask", lambda *of: handed(source_mask(*of), want["hidden"]["src"])
    )  # fmt: skip
    patch.setattr(
        numpy_transformer, "target_mask", lambda *of: handed(target_mask(*of), want["hidden"]["tgt"])
    )  # fmt: skip


def change_positions(patch: pytest.MonkeyPatch, want: dict[str, Any]) -> None:
    """Positions of all three kinds left out."""
    if not want["positions"]:
        for name in ("sinusoidal_positions", "learned_positions"):
            patch.setattr(numpy_transformer, name, lambda *of: 0)
        patch.setattr(numpy_attention, "rotate", lambda x: x)


def change_rows(patch: pytest.MonkeyPatch, want: dict[str, Any], row: Any, states: Rows) -> None:
    """The row of another sentence in place of one; ``states`` gets the rows after each layer."""
    embed = numpy_transformer.embed_sequence

    def after(side: str, layer: int, x: Any) -> Any:
        change = want["patch"]
        if change and (change["side"], change["layer"]) == (side, layer):
            x = x.copy()
            x[0, change["at"] : change["at"] + 1] = row  # none, where the text is not yet so long
        states[side, layer] = x[0]
        return x

    def embedded(params: Any, config: Any, side: str, ids: Any) -> Any:
        return after("encoder" if side == "src" else "decoder", 0, embed(params, config, side, ids))

    def layer_of(side: str, layer: Any) -> Any:
        def patched(*of: Any) -> Any:
            x, cache = layer(*of)
            return after(side, len([1 for known, _ in states if known == side]), x), cache

        return patched

    patch.setattr(numpy_transformer, "embed_sequence", embedded)
    for side in ("encoder", "decoder"):
        patch.setattr(numpy_transformer, f"{side}_layer", layer_of(side, getattr(numpy_transformer, f"{side}_layer")))


def paged(bundle: Bundle, folder: Path) -> Page:
    write(bundle, folder, "float32")
    return Page(folder / "translator.html")


def softmax(logits: np.ndarray) -> np.ndarray:
    exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exps / exps.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=list(VARIANTS))
def test_every_change_is_that_of_the_reference(
    make: Make, reference: Callable[..., Any], tmp_path: Path, fields: dict[str, Any]
) -> None:
    bundle = make(**fields)
    page = paged(bundle, tmp_path)
    src, other = bundle.src_tokenizer.encode([TEXT, OTHER])
    looks = [dict(name=NAMES[i % 6], head=i % 3, step=i % 7) for i in range(len(CHANGES))]
    questions = [
        {"task": "inside", "text": TEXT, "ids": TGT, "changes": changes, "head": look}
        for changes, look in zip(CHANGES.values(), looks, strict=True)
    ]
    found, *answers = page.answers([{"task": "other", "text": OTHER}, *questions])
    _, _, donor = reference(bundle, other, found["ids"], {})
    plain = softmax(reference(bundle, src, TGT, {})[0])
    unmoved = set()
    for name, look, answer in zip(CHANGES, looks, answers, strict=True):
        changes = CHANGES[name]
        patch = changes.get("patch")
        row = donor[patch["side"], patch["layer"]][patch["from"]] if patch else None
        logits, seen, _ = reference(bundle, src, TGT, changes, row)
        probabilities = softmax(logits)
        chosen = [*TGT, EOS_ID]
        steps, at = answer["steps"], range(len(chosen))
        np.testing.assert_allclose([step["before"] for step in steps], plain[at, chosen], atol=1e-5, err_msg=name)
        np.testing.assert_allclose(
            [step["after"] for step in steps], probabilities[at, chosen], atol=1e-5, err_msg=name
        )
        best = np.sort(probabilities[look["step"]])[::-1][:5]
        np.testing.assert_allclose([share for _, share in answer["best"]["after"]], best, atol=1e-5, err_msg=name)
        ours, head = {part: values[look["head"]] for part, values in seen[look["name"]].items()}, answer["head"]
        for part in ("q", "k", "v", "weights", "out"):
            np.testing.assert_allclose(head[part], ours[part], atol=1e-4, err_msg=f"{name}: {part} of {look['name']}")
        if np.abs(np.log(probabilities / plain)).max() < 1e-3:
            unmoved.add(name)
            assert all(step["before"] == step["after"] for step in steps), name
        scores = np.array(head["scores"], dtype=float)  # null, which is -inf, becomes NaN
        np.testing.assert_allclose(np.where(np.isnan(scores), -np.inf, scores), ours["scores"], rtol=1e-5, atol=1e-4)
    assert unmoved == {"nothing", "finite", "padding"}  # padding that is hidden


def test_the_laboratory_says_the_same_in_both_languages() -> None:
    program = """
        const texts = require("vm").runInThisContext(require("fs").readFileSync(0, "utf8") + ";INSIDE_SAYS");
        const names = (one) => (one && typeof one === "object"
            ? Object.entries(one).flatMap(([name, value]) => [name, ...names(value)]) : []);
        console.log(JSON.stringify([names(texts.en), names(texts.zh)]));
    """
    script = (resources.files("dragoman.pages") / "translator/inside_texts.js").read_text(encoding="utf-8")
    done = subprocess.run(["node", "-e", program], input=script, capture_output=True, text=True, check=True)
    english, chinese = json.loads(done.stdout)
    assert english == chinese
    assert len(english) > 50


SEARCHED = (
    "nothing",
    "colder",
    "mask left out",
    "no positions",
    "a head of each kind",
    "decoder 1 patched",
    "everything",
)


def test_a_changed_model_writes_what_the_reference_finds_likeliest(
    make: Make, reference: Callable[..., Any], tmp_path: Path
) -> None:
    """Token by token, whether the past is kept or, without a mask, read again."""
    bundle = make()
    decode = dataclasses.replace(bundle.config.decode, beam_size=1, max_extra_tokens=3)
    bundle = bundle._replace(config=bundle.config.model_copy(update={"decode": decode}))
    page = paged(bundle, tmp_path)
    src, other = bundle.src_tokenizer.encode([TEXT, OTHER])
    questions = [{"task": "rewrite", "text": TEXT, "changes": CHANGES[name]} for name in SEARCHED]
    found, *answers = page.answers([{"task": "other", "text": OTHER}, *questions])
    _, _, donor = reference(bundle, other, found["ids"], {})
    for name, written in zip(SEARCHED, answers, strict=True):
        patch = CHANGES[name].get("patch")
        row = donor[patch["side"], patch["layer"]][patch["from"]] if patch else None
        ids = written["ids"]
        assert len(ids) > 2
        assert written["text"] == bundle.tgt_tokenizer.decode([ids])[0]
        for n, token in enumerate(ids):
            last = reference(bundle, src, ids[:n], CHANGES[name], row)[0][-1]
            last[[PAD_ID, UNK_ID, BOS_ID]] = -np.inf
            assert token == last.argmax(), (name, n)
