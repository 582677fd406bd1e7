"""Boxes, arrows and matrices in the colours of all figures; the paper's Figures 1 and 2 drawn with them.

``python -m benchmarks.diagrams`` writes these two. The drawings of the course (``benchmarks.course``) are made of the
same parts, and give each quantity the colour of ``ROLES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from benchmarks.harness.environments import ROOT
from dragoman.explanation.svg import FONTS

KINDS = {  # fill and edge on light pages, then on dark ones
    "attention": ("#dcebf7", "#0072b2", "#123247", "#5fb4ee"),
    "feed": ("#fbe6d9", "#b84a00", "#43230f", "#f2935c"),
    "norm": ("#e3f1ea", "#0f4d33", "#12362a", "#4fbf8f"),
    "embed": ("#ede4f5", "#6a2c91", "#321d42", "#c6a0ea"),
    "plain": ("#f2f2f2", "#6b6b6b", "#23272b", "#a3a3a0"),
}

ROLES = {  # likewise, for what the course draws; the edge is also the colour of a line or a shaded cell
    "x": ("#f2f2f2", "#6b6b6b", "#23272b", "#a3a3a0"),
    "q": ("#fbe6d9", "#b84a00", "#43230f", "#f2935c"),
    "k": ("#ede4f5", "#6a2c91", "#321d42", "#c6a0ea"),
    "v": ("#e3f1ea", "#0f4d33", "#12362a", "#4fbf8f"),
    "w": ("#dcebf7", "#0072b2", "#123247", "#5fb4ee"),
}
"""Colours of inputs ``x``, queries ``q``, keys ``k``, values ``v`` and attention weights ``w``, in every drawing."""


class Box(NamedTuple):
    """A box with its lines of text; a number in its corner where a table explains it."""

    x: float
    y: float
    width: float
    height: float
    lines: Sequence[str]
    kind: str = "plain"
    number: str = ""
    mark: str = ""  # of the page that shows it: where the box leads

    @property
    def middle(self) -> float:
        """Across."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


class Note(NamedTuple):
    """Text beside the boxes."""

    x: float
    y: float
    text: str
    anchor: str = "middle"


class Arrow(NamedTuple):
    """A line through points, with a head at its end."""

    points: Sequence[tuple[float, float]]
    head: bool = True
    quiet: bool = False  # a residual path
    kind: str = ""  # of the role whose colour it has


class Frame(NamedTuple):
    """A dashed frame around what is repeated."""

    x: float
    y: float
    width: float
    height: float


class Grid(NamedTuple):
    """A matrix drawn as cells of one role; a cell without text is hidden by a mask and drawn dashed."""

    x: float
    y: float
    cells: Sequence[Sequence[str]]
    kind: str = "plain"
    title: str = ""
    row_names: Sequence[str] = ()
    shades: Sequence[Sequence[float]] = ()  # of each cell, from 0 to 1; none: all cells alike
    size: tuple[float, float] = (34, 26)  # of a cell, across and down

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.size[0] * len(self.cells[0])

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.size[1] * len(self.cells)


Part = Box | Note | Arrow | Frame | Grid


def diagram(width: float, height: float, title: str, description: str, parts: Sequence[Part], marks: str = "") -> str:
    """The SVG, for light and dark pages; a box with a number leads to the mark of that number."""
    parts = [part._replace(mark=f"{marks}-{part.number}") if isinstance(part, Box) and part.number else part
             for part in parts]  # fmt: skip
    used = _kinds(parts)
    light = "".join(_rules(kind, fill, edge) for kind, (fill, edge, _, _) in used.items())
    dark = "".join(_rules(kind, fill, edge) for kind, (_, _, fill, edge) in used.items())
    style = (
        f"text{{font-family:{FONTS};font-size:13px;fill:#1a1a1a}}.note{{font-size:11.5px;fill:#6b6b6b}}"
        ".number{font-size:10px;fill:#6b6b6b}.line{fill:none;stroke:#1a1a1a;stroke-width:1.2}"
        ".quiet{fill:none;stroke:#6b6b6b;stroke-width:1.2}.frame{fill:none;stroke:#6b6b6b;stroke-dasharray:4 3}"
        f".head{{fill:#1a1a1a}}{light}@media (prefers-color-scheme:dark){{text,.head{{fill:#e8e8e6}}"
        ".note,.number{fill:#a3a3a0}.line{stroke:#e8e8e6}.quiet,.frame{stroke:#a3a3a0}"
        f"{dark}}}"
    )
    order = (Frame, Arrow, Box, Grid, Note)
    drawn = [_drawn(part) for kind in order for part in parts if type(part) is kind]
    return (
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">\n <title>{escape(title, quote=False)}</title>\n'
        f" <desc>{escape(description, quote=False)}</desc>\n"
        f' <style>{style}</style>\n <defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>\n '
        + "\n ".join(drawn)
        + "\n</svg>\n"
    )


def _kinds(parts: Sequence[Part]) -> dict[str, tuple[str, str, str, str]]:
    """Return the colours that a drawing needs: those of the paper's figures, or the roles of a course's."""
    names = {part.kind for part in parts if isinstance(part, Box | Grid | Arrow)}
    return {**KINDS, **{role: ROLES[role] for role in ROLES if role in names}} if names & set(ROLES) else KINDS


def _rules(kind: str, fill: str, edge: str) -> str:
    """Return the style of a kind, and for a role those of its shaded cells and its lines."""
    others = f".{kind}-shade{{fill:{edge}}}.{kind}-line{{fill:none;stroke:{edge};stroke-width:2}}"
    return f".{kind}{{fill:{fill};stroke:{edge}}}" + (others if kind in ROLES else "")


def _drawn(part: Part) -> str:
    if isinstance(part, Grid):
        return _grid(part)
    if isinstance(part, Frame):
        return (f'<rect class="frame" x="{part.x:g}" y="{part.y:g}" width="{part.width:g}" height="{part.height:g}" '
                'rx="10"/>')  # fmt: skip
    if isinstance(part, Note):
        return (
            f'<text class="note" x="{part.x:g}" y="{part.y:g}" text-anchor="{part.anchor}">{escape(part.text)}</text>'
        )
    if isinstance(part, Arrow):
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in part.points)
        head = ' marker-end="url(#head)"' if part.head else ""
        name = f"{part.kind}-line" if part.kind else "quiet" if part.quiet else "line"
        return f'<path class="{name}" d="{path}"{head}/>'
    first = part.y + part.height / 2 + 4.5 - 8 * (len(part.lines) - 1)
    texts = "".join(
        f'<text x="{part.middle:g}" y="{first + 16 * i:g}" text-anchor="middle">{escape(line)}</text>'
        for i, line in enumerate(part.lines)
    )
    mark = f'<text class="number" x="{part.x + 7:g}" y="{part.y + 13:g}">{part.number}</text>' if part.number else ""
    box = (f'<rect class="{part.kind}" x="{part.x:g}" y="{part.y:g}" width="{part.width:g}" height="{part.height:g}" '
           f'rx="6"/>{texts}{mark}')  # fmt: skip
    return f'<a href="#{part.mark}">{box}</a>' if part.mark else box


def _grid(grid: Grid) -> str:
    """Return a matrix: its cells, the numbers in them, its title above and the names of its rows on the left."""
    wide, tall = grid.size
    pieces = []
    for i, row in enumerate(grid.cells):
        for j, text in enumerate(row):
            x, y = grid.x + j * wide, grid.y + i * tall
            box = f'x="{x:g}" y="{y:g}" width="{wide:g}" height="{tall:g}"'
            if not text:
                pieces.append(f'<rect class="frame" {box}/>')
                continue
            empty = ' fill-opacity="0"' if grid.shades else ""
            pieces.append(f'<rect class="{grid.kind}" {box}{empty}/>')
            if grid.shades:
                opacity = 0.55 * grid.shades[i][j]  # never so dark that the number cannot be read
                pieces.append(f'<rect class="{grid.kind}-shade" {box} fill-opacity="{opacity:.2f}"/>')
            middle = f'x="{x + wide / 2:g}" y="{y + tall / 2 + 4.5:g}" text-anchor="middle"'
            pieces.append(f"<text {middle}>{escape(text)}</text>")
    if grid.title:
        middle = f'x="{(grid.x + grid.right) / 2:g}" y="{grid.y - 9:g}" text-anchor="middle"'
        pieces.append(f"<text {middle}>{escape(grid.title)}</text>")
    for i, name in enumerate(grid.row_names):
        place = f'x="{grid.x - 7:g}" y="{grid.y + (i + 0.5) * tall + 4:g}" text-anchor="end"'
        pieces.append(f'<text class="note" {place}>{escape(name)}</text>')
    return "".join(pieces)


# --- Figure 1 ---------------------------------------------------------------------------------------------------------

WIDE, TALL, GAP = 230, 36, 18


def transformer() -> str:
    """The whole model, from two sequences of ids to probabilities."""
    left, right = 60, 420
    encoder, bottom = _column(left, ["source ids (B, S)"], [("Self-attention", "attention", "3")])
    decoder, end = _column(
        right, ["target ids so far (B, T)", "shifted by one"],
        [("Self-attention, causal mask", "attention", "6"), ("Attention to the memory", "attention", "7")],
    )  # fmt: skip
    cross = next(part for part in decoder if isinstance(part, Box) and part.number == "7")
    memory = Note(left + WIDE / 2, bottom + 34, "memory (B, S, d_model)")
    way = Arrow([(left + WIDE / 2, bottom + 42), (left + WIDE / 2, bottom + 60), (362, bottom + 60),
                 (362, cross.y + TALL / 2), (cross.x - 1, cross.y + TALL / 2)])  # fmt: skip
    x, y = right + WIDE / 2, end
    generator = Box(right, y + 34, WIDE, TALL, ["Linear: tied to embedding"], "embed", "8")
    softmax = Box(right, generator.bottom + GAP, WIDE, TALL, ["Softmax"], "plain", "9")
    tail = [
        Arrow([(x, y), (x, generator.y - 1)]), generator, Arrow([(x, generator.bottom), (x, softmax.y - 1)]), softmax,
        Arrow([(x, softmax.bottom), (x, softmax.bottom + 22)]),
        Note(x, softmax.bottom + 38, "a probability for each subword (B, T, V)"),
    ]  # fmt: skip
    heads = [
        Note(left + WIDE / 2, 16, "ENCODER: reads the source at once"),
        Note(x, 16, "DECODER: writes, word by word"),
    ]
    return diagram(
        700, softmax.bottom + 50, "The Transformer",
        "Left the encoder: embedding, positions, then N layers of self-attention and feed-forward network, each "
        "followed by add and norm. Right the decoder, whose layers also attend to the encoder's output, the memory.",
        [*encoder, *decoder, memory, Arrow([(left + WIDE / 2, bottom), (left + WIDE / 2, bottom + 22)], False), way,
         *tail, *heads],
        "figure-1",
    )  # fmt: skip


def _column(x: float, names: Sequence[str], attentions: Sequence[tuple[str, str, str]]) -> tuple[list[Part], float]:
    """One stack, and where it ends."""
    middle = x + WIDE / 2
    parts: list[Part] = [Note(middle, 40 + 15 * i, name) for i, name in enumerate(names)]
    embed = Box(x, 80, WIDE, TALL, ["Embedding × √d_model"], "embed", "1")
    add = Box(x, embed.bottom + GAP, WIDE, TALL, ["+ positions: sines, cosines"], "embed", "2")
    parts += [
        Arrow([(middle, 62), (middle, embed.y - 1)]),
        embed,
        Arrow([(middle, embed.bottom), (middle, add.y - 1)]),
        add,
    ]
    y = add.bottom
    top = y + 22
    y += 40
    parts.append(Arrow([(middle, add.bottom), (middle, y - 1)]))
    subs = [*attentions, ("Feed-forward network", "feed", "5")]
    for i, (name, kind, number) in enumerate(subs):
        box = Box(x, y, WIDE, TALL, [name], kind, number)
        norm = Box(x, box.bottom + GAP, WIDE, 28, ["Add, then norm"], "norm", "4")
        side = x + WIDE + 16
        parts += [
            box, Arrow([(middle, box.bottom), (middle, norm.y - 1)]), norm,
            Arrow([(middle, y - 12), (side, y - 12), (side, norm.y + 14), (x + WIDE + 1, norm.y + 14)], quiet=True),
        ]  # fmt: skip
        y = norm.bottom + (28 if i < len(subs) - 1 else 0)
        if i < len(subs) - 1:
            parts.append(Arrow([(middle, norm.bottom), (middle, y - 1)]))
    parts += [Frame(x - 22, top, WIDE + 52, y + 12 - top), Note(x - 14, top + 15, "N ×", "start")]
    return parts, y


# --- Figure 2 ---------------------------------------------------------------------------------------------------------


def attention() -> str:
    """One attention step by step, and many heads side by side."""
    parts: list[Part] = [
        Note(150, 16, "ONE HEAD (Eq. 1)"), Note(520, 16, "h HEADS (section 3.2.2)"),
    ]  # fmt: skip
    steps = [("Q Kᵀ: queries with keys", "attention", "1"), ("÷ √d_k", "plain", "2"),
             ("mask: hidden scores to −∞", "plain", "3"), ("softmax of each row", "attention", "4"),
             ("× V: a mean of the values", "attention", "5")]  # fmt: skip
    y = 74.0
    for i, (name, kind, number) in enumerate(steps):
        box = Box(40, y, 220, 34, [name], kind, number)
        parts.append(box)
        y = box.bottom + 20
        parts.append(Arrow([(150, box.bottom), (150, y - 1)], head=i < len(steps) - 1 or True))
    parts += [
        Note(90, 46, "Q (Q, d_k)"), Note(210, 46, "K (K, d_k)"), Note(306, 46, "V (K, d_v)"),
        Arrow([(90, 52), (90, 73)]), Arrow([(210, 52), (210, 73)]),
        Arrow([(306, 52), (306, y - 37), (261, y - 37)]), Note(150, y + 16, "context (Q, d_v)"),
    ]  # fmt: skip
    for i in (2, 1, 0):  # one behind the other
        d = 7.0 * i
        for k, name in enumerate(("w_q", "w_k", "w_v")):
            parts.append(
                Box(400 + 88 * k + d, 96 - d, 66, 30, [name if i == 0 else ""], "embed", "6" if not i + k else "")
            )
        parts.append(Box(400 + d, 170 - d, 242, 40, ["one head each" if i == 0 else ""], "attention"))
    for k, name in enumerate(("x", "x or memory", "x or memory")):
        at = 433 + 88 * k
        parts += [Note(at, 46, name), Arrow([(at, 52), (at, 80)]), Arrow([(at, 126), (at, 155)])]
    concat = Box(400, 236, 242, 34, ["side by side (Q, h · d_v)"], "plain", "7")
    w_o = Box(400, 290, 242, 34, ["w_o"], "embed", "8")
    parts += [
        Arrow([(521, 210), (521, 235)]), concat, Arrow([(521, 270), (521, 289)]), w_o, Arrow([(521, 324), (521, 343)]),
        Note(521, 360, "output (Q, d_model)"),
    ]  # fmt: skip
    return diagram(
        690, y + 30, "Attention",
        "Left one head: products of queries and keys, divided by the root of d_k, masked, softmax, times the values. "
        "Right many heads: each projects the input by matrices of its own; their outputs are put side by side and "
        "projected once more.", parts, "figure-2",
    )  # fmt: skip


def main() -> None:
    """Write both."""
    for name, text in (("transformer", transformer()), ("attention-heads", attention())):
        (ROOT / f"docs/images/{name}.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
