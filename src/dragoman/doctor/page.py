"""What was found as one HTML file with figures: no script, nothing from elsewhere, all text of the corpus escaped.

Figures are inline SVG by matplotlib (``dragoman[plot]``), in the two first colours of Okabe and Ito's palette, which
people with any colour vision tell apart (https://jfly.uni-koeln.de/color/).
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from dragoman.doctor.diagnosis import Diagnosis, fact_rows
from dragoman.doctor.findings import Finding
from dragoman.doctor.text_checks import Examination, log_ratio
from dragoman.errors import ConfigError
from dragoman.explanation.figures import matplotlib_for
from dragoman.explanation.style import BLUE, INK, ORANGE, no_figures
from dragoman.files import explained, write_text
from dragoman.pages.render import render
from dragoman.training.record import Record

WIDTH, HEIGHT = 4.7, 3.0  # inches: narrow, so that the letters are still large on a phone
MAX_POINTS = 2000  # of a curve


def write_page(found: Diagnosis, folder: Path) -> Path:
    """Write ``folder/doctor.html`` and return its path.

    Raises:
        DragomanError: The folder cannot be written.
    """
    path, text = folder / "doctor.html", page(found)
    with explained(path):
        folder.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def check_page(folder: Path) -> None:
    """Refuse now what could only fail after the examination.

    Raises:
        ConfigError: The folder cannot be written.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ConfigError(f"{folder}: cannot be written; choose another --out")


def page(found: Diagnosis) -> str:
    """The whole HTML; where matplotlib is missing, without figures, which the page says."""
    counts = {level: sum(f.level == level for f in found.findings) for level in ("error", "warning", "note")}
    said = ", ".join(f"{n} {level}{'s' * (n != 1)}" for level, n in counts.items() if n) or "no problems found"
    columns, rows = fact_rows(found.facts)
    missing = no_figures()
    figures = [] if missing else figures_of(found)
    return render("doctor.html", title=found.title, summary=said, findings=found.findings, columns=columns, rows=rows,
                  figures=figures, missing=missing)  # fmt: skip


class Figure(NamedTuple):
    """A drawing with its title and caption."""

    title: str
    about: str
    svg: Markup


# --- figures ----------------------------------------------------------------------------------------------------------


def _look() -> dict[str, Any]:
    return {
        "font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#555555",
        "axes.labelcolor": INK, "text.color": INK, "xtick.color": "#444444", "ytick.color": "#444444",
        "axes.grid": True, "grid.color": "#ececec", "axes.axisbelow": True, "svg.fonttype": "path",
        "svg.hashsalt": "dragoman", "figure.facecolor": "white",
    }  # fmt: skip


def _figure(pyplot: Any, draw: Any, title: str, about: str) -> Figure:
    """One drawing as SVG that stands in a page."""
    figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    draw(axes)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    pyplot.close(figure)
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    ids = re.sub(
        r"\W+", "-", title.lower()
    )  # each drawing numbers its parts from the start: keep them apart in one page
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{ids}-", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
    return Figure(title, about, Markup(svg))


def figures_of(found: Diagnosis) -> list[Figure]:
    """All that can be drawn of what was found.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    pyplot = matplotlib_for([])
    with pyplot.rc_context(_look()):
        of_text = [] if found.text is None else corpus_figures(pyplot, found.text)
        return of_text + ([] if found.run is None else run_figures(pyplot, found.run))


def corpus_figures(pyplot: Any, found: Examination) -> list[Figure]:
    """Lengths, length ratios, scores."""
    figures = [_figure(pyplot, lambda axes: _lengths(axes, found.words), "How long the sentences are",
                       "Words; of Chinese and Japanese, characters. The longest 0.5% are not shown.")]  # fmt: skip
    ratio = log_ratio(found.characters)
    figures.append(_figure(pyplot, lambda axes: _ratios(axes, ratio), "How long the target is for its source",
                           "Characters of the target over characters of the source, 5 added to both. Pairs far "
                           "from the middle rarely belong together; the outermost bars hold all beyond."))  # fmt: skip
    if len(found.scores):
        figures.append(_figure(pyplot, lambda axes: _scores(axes, found.scores), "Do the two sides belong together?",
                               "How much likelier a pair's words, length, numbers and last mark are in a true pair "
                               "than by chance, in nats. Below 0 chance is likelier. The outermost bars hold all "
                               "beyond."))  # fmt: skip
    repeats = [
        f for f in found.findings if f.name in ("duplicate", "near-duplicate", "source-repeated", "target-repeated")
    ]
    if repeats:
        figures.append(_figure(pyplot, lambda axes: _repeats(axes, repeats), "What is repeated",
                               f"Pairs that repeat an earlier line, of {found.pairs:,}."))  # fmt: skip
    return figures


def _lengths(axes: Any, words: NDArray[np.integer[Any]], unit: str = "words") -> None:
    top = max(5, int(np.quantile(words.max(1), 0.995)))
    width = max(1, top // 60)
    edges = np.arange(0, top + 2 * width, width)
    peaks = []
    for side, (name, colour) in enumerate((("source", BLUE), ("target", ORANGE))):
        counts, _ = np.histogram(words[:, side], edges)
        axes.stairs(counts, edges - (0.5 if width == 1 else 0), color=colour, linewidth=1.8)
        peaks.append((float(np.median(words[:, side])), float(counts.max()), name, colour))
    tallest = max(peak[1] for peak in peaks)
    for i, (median, _, name, colour) in enumerate(peaks):
        axes.text(0.98, 0.95 - 0.11 * i, f"{name}: median {median:.0f}", color=colour, transform=axes.transAxes,
                  ha="right", va="top", fontweight="bold")  # fmt: skip
    axes.set_ylim(0, tallest * 1.08)
    axes.set_xlim(left=0, right=edges[-1])
    _thousands(axes.xaxis, 7)
    axes.set_xlabel(f"{unit} in a line" if width == 1 else f"{unit} in a line, by {width}")
    axes.set_ylabel("pairs")
    _thousands(axes.yaxis)


def _ratios(axes: Any, ratio: NDArray[np.float64]) -> None:
    low, middle, high = np.quantile(ratio, (0.16, 0.5, 0.84))
    reach = max(math.log(4), 6 * (high - low) / 2)
    edges = np.linspace(middle - reach, middle + reach, 81)
    counts, _ = np.histogram(np.clip(ratio, edges[0], edges[-1]), edges)
    axes.stairs(counts, edges, color=BLUE, fill=True, alpha=0.85)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(0, counts.max() * 3)
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10) if edges[0] <= math.log(t) <= edges[-1]]
    axes.set_xticks([math.log(t) for t in ticks], [f"{t:g}" for t in ticks])
    axes.axvline(middle, color=INK, linewidth=1)
    axes.annotate(f"median {math.exp(middle):.2f}", (middle, counts.max() * 1.5), xytext=(6, 0),
                  textcoords="offset points", va="center")  # fmt: skip
    axes.set_xlabel("target length / source length (log scale)")
    axes.set_ylabel("pairs (log scale)")
    _thousands(axes.yaxis)


def _scores(axes: Any, scores: NDArray[np.float32]) -> None:
    low, high = min(-15.0, float(np.quantile(scores, 0.0005))), float(np.quantile(scores, 0.995))
    edges = np.linspace(low, max(high, 5.0), 91)
    counts, _ = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)
    below = edges[:-1] < 0
    split = int(below.sum())
    axes.stairs(counts[:split], edges[: split + 1], color=ORANGE, fill=True, alpha=0.9)
    axes.stairs(counts[split:], edges[split:], color=BLUE, fill=True, alpha=0.85)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(0, counts.max() * 4)
    axes.axvline(0, color=INK, linewidth=1)
    n = int((scores < 0).sum())
    axes.text(0.02, 0.96, f"below 0:\n{n:,} pairs", color=ORANGE, transform=axes.transAxes, va="top", fontweight="bold")
    axes.set_xlabel("score of a pair (nats)")
    axes.set_ylabel("pairs (log scale)")
    _thousands(axes.yaxis)


def _repeats(axes: Any, repeats: Sequence[Finding]) -> None:
    names = {
        "duplicate": "the same pair", "near-duplicate": "the same pair but for\ncase and punctuation",
        "source-repeated": "the same source,\nanother target", "target-repeated": "the same target,\nanother source",
    }  # fmt: skip
    shown = [finding for name in reversed(names) for finding in repeats if finding.name == name]
    bars = axes.barh([names[f.name] for f in shown], [f.n for f in shown], color=BLUE, height=0.6)
    axes.bar_label(bars, [f"{f.n:,} ({f.share:.1%})" for f in shown], padding=5)
    axes.set_xlim(0, max(f.n for f in shown) * 1.75)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("pairs")
    _thousands(axes.xaxis, 4)


def run_figures(pyplot: Any, run: Record) -> list[Figure]:
    """Perplexity, BLEU, learning rate and speed over the steps; lengths."""
    figures = []
    if run.losses():
        about = "Perplexity for each target subword; training is with dropout, validation without. Lower is better."
        figures.append(_figure(pyplot, lambda axes: _perplexities(axes, run), "Perplexity", about))
    if len(run.validations) > 1:
        about = "BLEU and chrF of greedy translations of the validation set. Higher is better."
        figures.append(_figure(pyplot, lambda axes: _qualities(axes, run), "Quality of translations", about))
    for field, title, about, unit in (
        ("lr", "Learning rate", "Of each report.", "learning rate"),
        ("grad_norm", "Gradient", "Norm of all gradients together, before clipping.", "norm of the gradient"),
        ("tokens_per_s", "Speed", "Of each report; saving and validating not counted.", "target tokens/s"),
    ):
        steps, values = _curve(run.reports, field)
        if len(steps) > 1:
            figures.append(_figure(pyplot, _line(steps, values, unit), title, about))
    if lengths := run.lengths():
        figures.append(_figure(pyplot, lambda axes: _lengths(axes, np.stack(lengths, 1), "subwords"),
                               "How long the sentences are", "Subwords, of the training text after cleaning. The "
                               "longest 0.5% are not shown."))  # fmt: skip
    return figures


def _curve(events: Sequence[dict[str, Any]], field: str) -> tuple[list[int], list[float]]:
    """Steps and finite values, thinned to ``MAX_POINTS``."""
    points = [(e["step"], e[field]) for e in events if field in e and math.isfinite(e[field])]
    points = points[:: max(1, len(points) // MAX_POINTS)]
    return [step for step, _ in points], [value for _, value in points]


def _line(steps: list[int], values: list[float], unit: str) -> Any:
    def draw(axes: Any) -> None:
        axes.plot(steps, values, color=BLUE, linewidth=1.5)
        axes.set_xlabel("step")
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        if max(values) >= 1000:
            _thousands(axes.yaxis)
        elif max(values) < 0.1:
            axes.yaxis.set_major_formatter("{x:g}")
        _thousands(axes.xaxis, 6)

    return draw


def _perplexities(axes: Any, run: Record) -> None:
    ends = []
    for events, name, colour, marker in (
        (run.reports, "training", BLUE, ""),
        (run.validations, "validation", ORANGE, "o"),
    ):
        steps, losses = _curve(events, "loss")
        if steps:
            values = [math.exp(min(loss, 50.0)) for loss in losses]
            axes.plot(steps, values, color=colour, linewidth=1.8, marker=marker, markersize=4)
            ends.append((steps[-1], values[-1], name, colour))
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("perplexity (log scale)")
    _plain_log(axes.yaxis)
    _thousands(axes.xaxis, 6)
    _label_ends(axes, ends)


def _qualities(axes: Any, run: Record) -> None:
    ends = []
    fields = (("bleu", "BLEU", BLUE, "-"), ("chrf", "chrF", ORANGE, "--"), ("f1", "bracket F1", BLUE, "-"))
    for field, name, colour, style in fields:
        steps, values = _curve(run.validations, field)
        if steps:
            axes.plot(steps, values, style, color=colour, linewidth=1.8, marker="o", markersize=4)
            ends.append((steps[-1], values[-1], f"{name} {values[-1]:.1f}", colour))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step")
    axes.set_ylabel("points out of 100")
    _thousands(axes.xaxis, 6)
    _label_ends(axes, ends)


def _label_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each curve's name behind its end, kept apart where ends are close."""
    axes.margins(x=0.02)
    height = axes.transData.transform
    places = sorted(((float(height((x, y))[1]), x, y, name, colour) for x, y, name, colour in ends))
    below = -math.inf
    for pixel, x, y, name, colour in places:
        at = max(pixel, below + 20)
        below = at
        axes.annotate(name, (x, y), xytext=(8, (at - pixel) * 72 / axes.figure.dpi), textcoords="offset points",
                      color=colour, fontweight="bold", va="center", annotation_clip=False)  # fmt: skip


def _thousands(axis: Any, at_most: int | None = None) -> None:
    """Whole numbers with commas, and where ``at_most`` is given no more ticks than that."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if at_most is not None:
        axis.set_major_locator(MaxNLocator(at_most, integer=True))


def _plain_log(axis: Any) -> None:
    """1, 2, 5, 10, 20 ... instead of powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
