"""The frame of the walk holds the walk's model, and each change that its page suggests does what the page says."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from typing import Any

import numpy as np
import pytest

from benchmarks import diagrams, walk
from docs.site import translator
from dragoman.toolkits.page.search import Page

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

SENTENCE, OTHER = walk.SENTENCE, "the dog finds the man"
SINK, CROSS = [["encoder.layers.0.self_attn", 0]], [["decoder.layers.0.cross_attn", 0]]
ROW = {"side": "encoder", "layer": 1, "at": 4, "from": 4, "text": "the cat sees the man"}


def test_quantities_have_the_colours_of_the_course() -> None:
    style = (resources.files("dragoman.pages") / "translator/inside.css").read_text(encoding="utf-8")
    light, *dark = (part.replace("\n", " ") for part in style.split(".in {")[0].split(":root")[1:])
    assert len(dark) == 2
    for role, (fill, edge, dark_fill, dark_edge) in diagrams.ROLES.items():
        assert f"--{role}: {fill}" in light
        assert f"--{role}-edge: {edge}" in light
        for part in dark:
            assert f"--{role}: {dark_fill}" in part
            assert f"--{role}-edge: {dark_edge}" in part


def hidden(place: int) -> dict[str, Any]:
    return {"hidden": {"src": [place], "tgt": []}}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    file = tmp_path_factory.mktemp("walk") / "walk-model.html"
    translator.write_walk(file)
    return Page(file)


def test_each_suggested_change_writes_what_the_page_says(page: Page) -> None:
    table = [
        (SENTENCE, {}, "die Katze sieht den Hund"),
        (SENTENCE, {"removed": SINK}, f"die Katze sieht {walk.CHANGED['no_sink']}"),
        (SENTENCE, {"removed": CROSS}, f"die Katze sieht {walk.CHANGED['no_cross']}"),
        (OTHER, hidden(4), f"der Hund findet {walk.CHANGED['hidden_object']}"),
        (OTHER, hidden(1), f"{walk.CHANGED['hidden_subject']} findet den Mann"),
        (SENTENCE, {"positions": False}, walk.CHANGED["no_positions"]),
        (SENTENCE, {"patch": ROW}, f"die Katze sieht {walk.CHANGED['patched']}"),
        (SENTENCE, {"mask": "none"}, "die Katze sieht den Hund"),
    ]
    answers = page.answers([{"task": "rewrite", "text": text, "changes": changes} for text, changes, _ in table])
    assert [answer["text"] for answer in answers] == [text for _, _, text in table]


def test_the_matrices_of_the_frame_are_those_of_the_walk(page: Page) -> None:
    walked = walk.Walk(json.loads(walk.WEIGHTS.read_text(encoding="utf-8")))
    attn = walked.encoder.self_attn.sublayer
    ids = [walked.tgt_words.index(word) for word in walked.said[:-1]]
    look = {"name": "encoder.layers.0.self_attn", "head": 1, "step": 0}
    question = {"task": "inside", "text": SENTENCE, "ids": ids, "changes": {}, "head": look}
    [answer] = page.answers([question])
    for part, values in {"q": attn.q, "k": attn.k, "v": attn.v, "weights": attn.weights}.items():
        np.testing.assert_allclose(answer["head"][part], values[0, 1], atol=1e-5)
    assert [step["after"] for step in answer["steps"]] == pytest.approx(
        [p.max() for p in walked.probabilities], abs=1e-5
    )
