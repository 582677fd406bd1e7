"""The drawings of the course: ``python -m benchmarks.course`` writes them into docs/course.

Each is made of the parts of ``benchmarks.diagrams``; a quantity has the colour of its role (``diagrams.ROLES``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.diagrams import ROLES, Arrow, Box, Grid, Note, Part, diagram
from benchmarks.harness.environments import ROOT

FOLDER = ROOT / "docs/course"
WORDS = ("she", "saw", "him", "(pad)")

Array = NDArray[np.float64]


def texts(values: Array, decimals: int = 0) -> list[list[str]]:
    """Return the numbers of a matrix as the cells of a drawing; NaN becomes a hidden cell."""
    return [["" if np.isnan(value) else f"{value:.{decimals}f}" for value in row] for row in values]


def grid(x: float, y: float, values: Array, kind: str, title: str, decimals: int = 0) -> Grid:
    """Return a matrix of the worked example, with the names of its rows."""
    return Grid(x, y, texts(values, decimals), kind, title, WORDS)


# --- the colours ------------------------------------------------------------------------------------------------------


def colours() -> str:
    """Draw one box for each role, as the index of the course shows them."""
    names = {"x": "x", "q": "queries q", "k": "keys k", "v": "values v", "w": "weights"}
    parts: list[Part] = [Box(4 + 112 * i, 4, 104, 32, [name], kind) for i, (kind, name) in enumerate(names.items())]
    return diagram(564, 40, "Colours of the course", "Five boxes: x, queries, keys, values, weights.", parts)


# --- attention --------------------------------------------------------------------------------------------------------


def worked() -> dict[str, Array]:
    """Compute attention for four words with the small whole numbers of the chapter on attention."""
    x = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
    w_q = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]])
    w_k = np.array([[0, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    q, k, v = x @ w_q, x @ w_k, x @ np.diag([1, 2, 3, 4])
    scores = q @ k.T / 2
    may_attend = np.tri(4, dtype=bool) & np.array([True, True, True, False])
    masked = np.where(may_attend, scores, np.nan)
    exps = np.where(may_attend, np.exp(scores), 0)
    weights = exps / exps.sum(axis=1, keepdims=True)
    return {"x": x, "q": q, "k": k, "v": v, "scores": scores, "masked": masked, "weights": weights, "out": weights @ v}


def attention() -> str:
    """Draw every matrix of the worked example, from the input to the output."""
    made = worked()
    left = [48 + 178 * i for i in range(4)]
    above = [(left[0], "x", "x", "X"), (left[1], "q", "q", "Q = X W_q"), (left[2], "k", "k", "K = X W_k"),
             (left[3], "v", "v", "V = X W_v")]  # fmt: skip
    parts: list[Part] = [grid(x, 30, made[name], kind, title) for x, name, kind, title in above]
    weights = made["weights"]
    parts += [
        grid(left[0], 186, made["scores"], "w", "Q Kᵀ / √d_k", 1),
        grid(left[1], 186, made["masked"], "w", "masked", 1),
        grid(left[2], 186, weights, "w", "softmax: weights", 2)._replace(shades=weights.tolist()),
        grid(left[3], 186, made["out"], "v", "weights · V", 1),
    ]
    return diagram(
        730,
        296,
        "Attention with four words",
        "Above: the inputs and their queries, keys and values, four by four whole numbers. Below: scores, the same "
        "with the later words and the padding hidden, the weights of each row, and the weighted means of the values.",
        parts,
    )


# --- sequences --------------------------------------------------------------------------------------------------------


def unrolled() -> str:
    """Draw a recurrent network for four words: the same three matrices at every step."""
    parts: list[Part] = []
    for i, word in enumerate(("I", "grew", "up", "there")):
        x = 40 + 150 * i
        parts += [
            Box(x, 20, 84, 32, [f"y{'₁₂₃₄'[i]}"], "plain"), Box(x, 86, 84, 32, [f"h{'₁₂₃₄'[i]}"], "plain"),
            Box(x, 152, 84, 32, [word], "x"),
            Arrow([(x + 42, 151), (x + 42, 119)]), Arrow([(x + 42, 85), (x + 42, 53)]),
            Note(x + 47, 139, "W_xh", "start"), Note(x + 47, 73, "W_hy", "start"),
        ]  # fmt: skip
        if i < 3:
            parts += [Arrow([(x + 84, 102), (x + 149, 102)]), Note(x + 115, 95, "W_hh")]
    return diagram(
        620,
        196,
        "A recurrent network, unrolled",
        "Each state depends on a word and on the state before; the same matrices stand at every step.",
        parts,
    )


def paths() -> str:
    """Draw how many steps the first of nine words is away from the last in four kinds of layers."""
    kinds = [
        ("recurrent: 8 steps", [(i, 0, i + 1, 0) for i in range(8)], 1),
        ("convolutions of width 3: 4 layers", [(2 * i, i, 2 * i + 2, i + 1) for i in range(4)], 5),
        ("dilated convolutions (1, 3): 2 layers", [(0, 0, 2, 1), (2, 1, 8, 2)], 3),
        ("self-attention: 1 layer", [(0, 0, 8, 1)], 2),
    ]  # fmt: skip
    parts: list[Part] = []
    for panel, (title, steps, n_rows) in enumerate(kinds):
        left, bottom = 16 + 340 * (panel % 2), (150 if panel < 2 else 310)
        on_the_way = {place for a, row, b, above in steps for place in ((a, row), (b, above))}
        parts.append(Note(left, bottom - 28 * n_rows + 2, title, "start"))
        for row in range(n_rows):
            for i in range(9):
                kind = "head" if (i, row) in on_the_way else "x"
                parts.append(Box(left + 34 * i, bottom - 28 * row - 10, 16, 12, [], kind))
        for a, row, b, above in steps:
            start = (left + 34 * a + (17 if above == row else 8), bottom - 28 * row - (4 if above == row else 10))
            end = (left + 34 * b - (1 if above == row else -8), bottom - 28 * above + (-4 if above == row else 3))
            parts.append(Arrow([start, end]))
    return diagram(
        664,
        330,
        "The way from the first word to the ninth",
        "Eight steps in a recurrent layer, four layers of convolutions, two of dilated ones, one of self-attention.",
        parts,
    )


# --- embeddings -------------------------------------------------------------------------------------------------------


def lookup() -> str:
    """Draw the rows that three ids pick, as a product with one-hot rows."""
    ids, table = (2, 0, 2), np.array([[0.3, -1.2], [1.1, 0.4], [-0.7, 0.9], [0.2, 0.8]])
    one_hot = np.eye(4)[list(ids)]
    words = ("she", "saw", "she")
    parts: list[Part] = [
        Grid(54, 44, texts(one_hot), "x", "one-hot rows", words)._replace(shades=(one_hot * 0.9).tolist()),
        Grid(300, 31, texts(table, 1), "plain", "embedding E", ("0", "1", "2", "3"), size=(44, 26)),
        Grid(500, 44, texts(one_hot @ table, 1), "x", "X", words, size=(44, 26)),
        Note(238, 88, "×"), Note(430, 88, "="),
    ]  # fmt: skip
    return diagram(
        600,
        142,
        "A look-up is a product",
        "Three rows, each with a single one, times a matrix of four rows give the rows 2, 0 and 2.",
        parts,
    )


# --- heads ------------------------------------------------------------------------------------------------------------


def split() -> str:
    """Draw how a view and a transpose split channels between two heads, and what a view alone makes of them."""
    names = np.array([[f"{word}{channel}" for channel in "1234"] for word in "abc"])
    right = names.reshape(3, 2, 2).swapaxes(0, 1)
    wrong = names.reshape(2, 3, 2)
    parts: list[Part] = [
        Grid(60, 96, names.tolist(), "q", "(n, H · d_k)", tuple("abc")),
        Arrow([(202, 122), (292, 66)]), Arrow([(202, 148), (292, 204)]),
        Note(240, 50, "view, transpose", "end"), Note(240, 236, "view alone", "end"),
    ]  # fmt: skip
    for top, heads, what in ((28, right, "right: a head has two channels of each word"),
                             (166, wrong, "wrong: rows are pieces of other words")):  # fmt: skip
        for i, cells in enumerate(heads):
            parts.append(Grid(310 + 120 * i, top, cells.tolist(), "q", f"head {i + 1}"))
        parts.append(Note(394, top + 98, what))
    return diagram(
        560,
        280,
        "Splitting channels between heads",
        "Three words with four channels each become two heads "
        "with two channels of every word; a view alone mixes words.",
        parts,
    )


# --- positions --------------------------------------------------------------------------------------------------------


def dial(x: float, y: float, pointers: dict[str, float]) -> list[Part]:
    """Return a circle around a point with pointers, each at its angle in radians from the right, anticlockwise."""
    radius = 62
    turns = np.linspace(0, 2 * np.pi, 73)
    circle = [(x + radius * float(np.cos(turn)), y - radius * float(np.sin(turn))) for turn in turns]
    parts: list[Part] = [Arrow(circle, head=False, quiet=True)]
    for name, angle in pointers.items():
        across, up = float(np.cos(angle)), float(np.sin(angle))
        parts.append(Arrow([(x, y), (x + 54 * across, y - 54 * up)], kind=name if name in ROLES else ""))
        parts.append(Note(x + (73 + 3 * len(name)) * across, y - 74 * up + 4, name))
    return parts


def clock() -> str:
    """Draw three pairs of channels of the positional encoding at positions 0 to 4 as hands of a clock."""
    parts: list[Part] = []
    for i, (name, speed) in enumerate((("fast pair", 1.0), ("middle pair", 0.3), ("slow pair", 0.03))):
        x = 110 + 210 * i
        pointers = {str(pos): speed * pos for pos in range(5)} if speed > 0.1 else {"0 … 4": 0.0, "": 4 * speed}
        parts += [*dial(x, 116, pointers), Note(x, 20, name)]
    return diagram(
        640,
        206,
        "Pairs of channels as hands of a clock",
        "The first pair turns by one radian a word, the second by 0.3, the third by 0.03.",
        parts,
    )


def rotary() -> str:
    """Draw a query and a key turned by their positions: the angle between them depends on the offset alone."""
    step, query, key = np.pi / 12, 0.1, 1.8  # 15 degrees a word
    parts: list[Part] = []
    for i, (of_query, of_key) in enumerate(((0, 0), (5, 2), (9, 6))):
        x = 110 + 210 * i
        parts += dial(x, 116, {"q": query + step * of_query, "k": key + step * of_key})
        parts.append(Note(x, 20, f"q at {of_query}, k at {of_key}"))
    return diagram(
        640,
        206,
        "Rotary positions",
        "Query and key turned by 15 degrees a word. At positions 5 and 2 and at 9 "
        "and 6 the angle between them is the same.",
        parts,
    )


# --- norms ------------------------------------------------------------------------------------------------------------


def axes() -> str:
    """Draw the numbers over which three norms take one mean: two sentences, three positions, four channels."""
    one = np.zeros((2, 3, 4))
    layer, batch, instance = one.copy(), one.copy(), one.copy()
    layer[0, 1], batch[:, :, 2], instance[0, :, 2] = 1, 1, 1
    parts: list[Part] = []
    for i, (name, shades) in enumerate((("layer norm", layer), ("batch norm", batch), ("instance norm", instance))):
        x = 96 + 200 * i
        parts.append(Note(x + 56, 216, "channels"))
        for sentence in range(2):
            title = name if not sentence else ""
            names = tuple(f"position {pos + 1}" for pos in range(3)) if not i else ()
            cells = [["·"] * 4] * 3
            parts.append(Grid(x, 30 + 92 * sentence, cells, "x", title, names, shades[sentence].tolist(), (28, 24)))
            if i == 2:
                parts.append(Note(x + 122, 70 + 92 * sentence, f"sentence {sentence + 1}", "start"))
    return diagram(
        696,
        222,
        "One mean, over dark cells",
        "Layer norm: the channels of one position. Batch norm: one channel "
        "over all positions and sentences. Instance norm: one channel over the positions of one sentence.",
        parts,
    )


def motorway() -> str:
    """Draw the residual path of pre-norm, on which nothing stands, and that of post-norm, which passes every norm."""
    parts: list[Part] = [Note(10, 20, "pre-norm: x + f(LayerNorm(x))", "start"),
                         Note(10, 140, "post-norm: LayerNorm(x + f(x))", "start")]  # fmt: skip
    for i in range(2):
        x = 60 + 280 * i
        parts += [  # above: norm and sub-layer beside the road
            Arrow([(x + 20, 90), (x + 20, 52), (x + 39, 52)], quiet=True), Box(x + 40, 38, 60, 28, ["norm"], "norm"),
            Arrow([(x + 100, 52), (x + 119, 52)], quiet=True), Box(x + 120, 38, 60, 28, ["f"], "attention"),
            Arrow([(x + 180, 52), (x + 212, 52), (x + 212, 78)], quiet=True), Note(x + 212, 94, "+"),
            # below: the sub-layer beside the road, the norm on it
            Arrow([(x + 20, 210), (x + 20, 172), (x + 59, 172)], quiet=True),
            Box(x + 60, 158, 60, 28, ["f"], "attention"),
            Arrow([(x + 120, 172), (x + 152, 172), (x + 152, 198)], quiet=True), Note(x + 152, 214, "+"),
            Box(x + 178, 196, 60, 28, ["norm"], "norm"), Arrow([(x + 160, 210), (x + 177, 210)], head=False),
        ]  # fmt: skip
    parts += [Arrow([(20, 90), (264, 90)], head=False), Arrow([(280, 90), (544, 90)], head=False),
              Arrow([(560, 90), (632, 90)]), Arrow([(20, 210), (204, 210)], head=False),
              Arrow([(298, 210), (484, 210)], head=False), Arrow([(578, 210), (632, 210)])]  # fmt: skip
    return diagram(
        650,
        236,
        "The residual path",
        "With pre-norm only additions stand on the path; with post-norm it "
        "passes through a norm after every sub-layer.",
        parts,
    )


# --- the block --------------------------------------------------------------------------------------------------------


def cross() -> str:
    """Draw cross-attention: queries of the decoder, keys and values of the encoder's output, and every shape."""
    parts: list[Part] = [
        Note(105, 16, "decoder"), Note(385, 16, "encoder's output"),
        Box(30, 24, 150, 32, ["b (B, T, d)"], "x"), Box(300, 24, 170, 32, ["m (B, S, d)"], "x"),
        Arrow([(105, 56), (105, 91)]), Arrow([(350, 56), (295, 91)]), Arrow([(420, 56), (475, 91)]),
        Box(30, 92, 150, 32, ["Q (B, H, T, d_k)"], "q"), Box(220, 92, 150, 32, ["K (B, H, S, d_k)"], "k"),
        Box(400, 92, 150, 32, ["V (B, H, S, d_k)"], "v"),
        Arrow([(105, 124), (160, 159)]), Arrow([(295, 124), (240, 159)]),
        Box(110, 160, 180, 32, ["weights (B, H, T, S)"], "w"),
        Arrow([(200, 192), (300, 227)]), Arrow([(475, 124), (400, 227)]),
        Box(240, 228, 220, 32, ["weights · V (B, H, T, d_k)"], "v"),
        Arrow([(350, 260), (350, 295)]), Box(230, 296, 240, 32, ["joined, W^O, + residual (B, T, d)"], "x"),
        Arrow([(29, 40), (12, 40), (12, 312), (229, 312)], quiet=True), Note(20, 304, "residual", "start"),
    ]  # fmt: skip
    return diagram(
        560, 336, "Cross-attention",
        "Queries come from the decoder, keys and values from the encoder's output. Weights have a row for each target "
        "place and a column for each source place.", parts,
    )  # fmt: skip


DRAWINGS: dict[str, Callable[[], str]] = {
    "colours": colours, "attention": attention, "unrolled": unrolled, "paths": paths, "lookup": lookup,
    "split": split, "clock": clock, "rotary": rotary,
    "axes": axes, "motorway": motorway, "cross": cross,
}  # fmt: skip
"""The function that draws each file of docs/course."""


def write(drawings: Sequence[str] = tuple(DRAWINGS)) -> None:
    """Write drawings into docs/course."""
    for name in drawings:
        (FOLDER / f"{name}.svg").write_text(DRAWINGS[name](), encoding="utf-8")


def main() -> None:
    """Write all drawings."""
    write()


if __name__ == "__main__":
    main()
