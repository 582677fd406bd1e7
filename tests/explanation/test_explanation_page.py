"""The page holds all it needs, lets nothing in, and its numbers are those of the trace."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pytest

from dragoman.explanation.page import page
from dragoman.explanation.trace import Side, Step, Trace
from dragoman.explanation.words import END

NASTY = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def found() -> Trace:
    """A trace of three layers with four heads: "女孩" in two tokens, a source in three words of four tokens."""
    chance = np.random.default_rng(0)

    def layer(queries: int, keys: int) -> Any:
        return chance.dirichlet(np.full(keys, 0.3), (4, queries)).astype(np.float32)

    weights = {}
    for i in range(3):
        causal = np.tril(layer(3, 3)) + 1e-6 * np.tri(3, dtype=np.float32)
        weights[f"encoder.layers.{i}.self_attn"] = layer(5, 5)
        weights[f"decoder.layers.{i}.self_attn"] = causal / causal.sum(-1, keepdims=True)
        weights[f"decoder.layers.{i}.cross_attn"] = layer(3, 5)
    return Trace(
        NASTY, "女孩", weights=weights,
        src=Side(
            "en", ("·the", "·gi", "rl", NASTY, END), ((0, 1), (1, 3), (3, 4), (4, 5)), ("the", "girl", NASTY, END)
        ),
        tgt=Side("zh", ("女", "孩", END), ((0, 2), (2, 3)), ("女孩", END)),
        steps=tuple(Step(name, 0.5, 2, (("猫", 0.5001), (name, 0.5))) for name in ("女", "孩", END)),
    )  # fmt: skip


def content(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_nothing_is_fetched_and_no_other_script_may_run(found: Trace) -> None:
    text = page(found)
    assert not re.search(r"""(src|href)=|url\(|@import|fetch\(|XMLHttpRequest""", text)
    assert set(re.findall(r"https?://[\w./]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, no address
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    allowed = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert f"default-src 'none'; script-src 'sha256-{allowed[0]}' 'sha256-{allowed[1]}'; base-uri 'none'" in text


def test_texts_stand_in_it_as_text(found: Trace) -> None:
    text = page(found)
    assert NASTY not in text
    assert content(text)["trace"]["views"][0]["kinds"]["cross"]["columns"] == ["the", "girl", NASTY, END]


def test_it_holds_words_and_subwords_with_the_weights_of_the_trace(found: Trace) -> None:
    views = content(page(found))["trace"]["views"]
    assert [view["name"] for view in views] == ["words", "subwords"]
    for view, shown in zip(views, (found.by_words(), found), strict=True):
        for kind, one in view["kinds"].items():
            assert tuple(one["shape"]) == np.stack(shown.layers(kind)).shape
            assert (tuple(one["rows"]), tuple(one["columns"])) == shown.tokens(kind)
    for kind, one in views[1]["kinds"].items():
        packed = np.frombuffer(base64.b64decode(one["weights"]), "<u2").reshape(one["shape"]) / 65535
        np.testing.assert_allclose(packed, np.stack(found.layers(kind)), atol=1e-5)
    assert [view["steps"] for view in views] == [[0, 0, 1], [0, 1, 2]]
    assert views[0]["kinds"]["decoder"]["rows_lang"] == "zh"
    assert views[0]["kinds"]["cross"]["row_spans"] == [[0, 2], [2, 3]]
    assert views[0]["kinds"]["decoder"]["column_spans"] == [[0, 1], [1, 3]]  # behind the start


def test_where_words_are_subwords_one_view_is_enough(found: Trace) -> None:
    assert [view["name"] for view in content(page(found.by_words()))["trace"]["views"]] == ["words"]


def test_attention_that_a_model_has_not_is_left_out(found: Trace) -> None:
    cross = {name: weights for name, weights in found.weights.items() if "cross" in name}
    assert list(content(page(replace(found, weights=cross)))["trace"]["views"][0]["kinds"]) == ["cross"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_script_reads_the_numbers_as_they_are(found: Trace) -> None:
    program = """
        const page = require(process.argv[1]);
        const [words, subwords] = JSON.parse(require("fs").readFileSync(0, "utf8"));
        const one = subwords.cross;
        const weights = page.unpack(one.weights);
        console.log(JSON.stringify({
          words: Object.entries(words).map(([kind, word]) => [kind, [...page.betweenWords(
            page.unpack(subwords[kind].weights), subwords[kind].shape, word.row_spans, word.column_spans)]]),
          head: page.matrix(weights, one.shape, 1, 2), mean: page.matrix(weights, one.shape, 0, null),
          row: page.partners([[1, 2], [3, 4]], "queries", 1), column: page.partners([[1, 2], [3, 4]], "keys", 1),
          said: page.strongest([0.1, 0.6, 0.001, 0.299], ["a", "b", "c", "d"], 4),
          light: ["#ffffff", "#08306b", "#5fa8d8"].map(page.isLight),
          shares: [0.95, 0.042, 0.0001].map(page.percent),
          prefix: page.prefixOf([{ id: 7 }, { id: 8, best_ids: [8, 9] }], 1, 1),
          information: [[[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.9, 0.1]]].map(page.information),
          telling: page.mostTelling([1, 0, 1, 0, 0.5, 0.5, 0.5, 0.5, 0.9, 0.1, 0.2, 0.8, 0, 1, 0, 1], [2, 2, 2, 2]),
          sinks: [[[0.1, 0.9, 0], [0.2, 0.8, 0], [0.3, 0.7, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]].map(page.sinkOf),
          masked: [0, 1, 2].map((column) => page.isMasked(
            { row_spans: [[0, 1], [1, 2]], column_spans: [[0, 1], [1, 2], [2, 3]] }, "decoder", 1, column)),
        }));
    """
    kinds = [view["kinds"] for view in content(page(found))["trace"]["views"]]
    with resources.as_file(resources.files("dragoman.pages") / "explorer.js") as script:
        done = subprocess.run(
            ["node", "-e", program, str(script)], input=json.dumps(kinds), capture_output=True, text=True, timeout=30
        )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for kind, flat in said["words"]:
        np.testing.assert_allclose(flat, np.stack(found.by_words().layers(kind)).ravel(), atol=1e-4)
    assert len(said["words"]) == 3
    layers = found.layers("cross")
    np.testing.assert_allclose(said["head"], layers[1][2], atol=1e-4)
    np.testing.assert_allclose(said["mean"], layers[0].mean(0), atol=1e-4)
    assert (said["row"], said["column"]) == ([3, 4], [2, 4])
    assert said["said"] == "b 60%, d 30%, a 10%"
    assert said["light"] == [True, False, True]
    assert said["shares"] == ["95%", "4.2%", "<0.1%"]
    assert said["prefix"] == [7, 9]
    assert said["masked"] == [False, False, True]
    assert said["information"] == pytest.approx([np.log(2), 0, 0])  # each row its own column; even; a sink
    assert said["telling"] == {"layer": 1, "head": 0}
    assert said["sinks"] == [{"column": 1, "share": pytest.approx(0.8)}, None]


def test_the_explorer_says_the_same_in_both_languages() -> None:
    script = (resources.files("dragoman.pages") / "explorer.js").read_text(encoding="utf-8")
    english, chinese = re.search(r"\n  en: {(.*?)\n  },\n  zh: {(.*?)\n  },\n};", script, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    names = [re.findall(r"(?:^|, |\n)\s*(\w+): (?=[\"`(])", each) for each in (english, chinese)]
    assert names[0] == names[1]
    assert len(names[0]) > 50
