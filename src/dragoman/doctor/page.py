"""The doctor's report with figures as one HTML file, which has no script and loads nothing.

Figures are inline SVG by matplotlib (``dragoman[plot]``), in the first two colours of Okabe and Ito's palette, which
can be told apart with any kind of colour vision (https://jfly.uni-koeln.de/color/).
"""

from __future__ import annotations

import io
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from dragoman.doctor.facts import fact_rows
from dragoman.doctor.findings import Finding, shown_places
from dragoman.doctor.text_checks import Examination, log_ratio
from dragoman.errors import ConfigError
from dragoman.explanation.figures import Bar, Bars, Chart, Curve, bars, curves
from dragoman.explanation.style import BLUE, INK, ORANGE, drawing, fit, new_figure, no_figures
from dragoman.files import check_name, explained, refuse_twice, write_text
from dragoman.pages.render import refuse_other_page, render
from dragoman.training.record import Record

WIDTH, HEIGHT = 3.6, 2.4  # size of the axes in inches: narrow, so that letters are still large on a phone
MAX_POINTS = 2000  # points of a curve; longer ones are thinned
PAGE = "doctor.html"


def write_page(html: str, folder: Path) -> Path:
    """Write a page to ``folder/doctor.html`` and return the path.

    Raises:
        DragomanError: The folder cannot be written.
    """
    path = folder / PAGE
    with explained(path):
        folder.mkdir(parents=True, exist_ok=True)
    write_text(path, html)
    return path


def check_page_folder(folder: Path, *others: Path | None) -> None:
    """Check that a page can be written to a folder, before minutes are spent on the examination.

    Args:
        others: Other files that are written.

    Raises:
        ConfigError: The folder cannot be written, another output is the page, the folder or above it, or the file
            there is not a page of the doctor.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ConfigError(f"{folder}: cannot be written; choose another --out")
    for other in (other for other in others if other is not None):
        check_name(other)
        refuse_twice(folder / PAGE, other)
        if other.absolute() in (folder.absolute(), *folder.absolute().parents):
            raise ConfigError(f"{other}: the page is written to this folder or below it; choose another name")
    refuse_other_page(folder / PAGE, "the doctor", "<title>dragoman doctor: ")


def page(
    title: str,
    verdict: Sequence[str],
    facts: Mapping[str, Any],
    findings: Sequence[Finding],
    subject: Examination | Record | None,
) -> str:
    """Return the report as one HTML page, without figures where matplotlib is missing.

    Args:
        title: Name of the corpus or run.
        verdict: The verdict on a corpus, and the command that comes next; nothing for a run.
        facts: Its counts and lengths.
        findings: Findings, worst first.
        subject: The examined corpus or run, if figures are to show it.
    """
    counts = {level: sum(f.level == level for f in findings) for level in ("error", "warning", "note")}
    summary = ", ".join(f"{n} {level}{'s' * (n != 1)}" for level, n in counts.items() if n) or "no problems found"
    columns, rows = fact_rows(facts)
    missing = no_figures()
    figures = [] if missing else figures_of(subject)
    return render(
        "doctor.html", title=title, verdict=verdict, summary=summary, shown_places=shown_places, findings=findings,
        columns=columns, rows=rows, figures=figures, missing=missing,
    )  # fmt: skip


class Figure(NamedTuple):
    """A drawing with its title and caption."""

    title: str
    about: str
    svg: Markup


# --- figures ----------------------------------------------------------------------------------------------------------


def figures_of(subject: Examination | Record | None) -> list[Figure]:
    """Draw the figures of a corpus or of a run.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    if subject is None:
        return []
    return corpus_figures(subject) if isinstance(subject, Examination) else run_figures(subject)


def _as_svg(figure: Any, title: str, about: str) -> Figure:
    """Return a figure of matplotlib as SVG to be placed in a page, with its title and caption."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "dragoman"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<metadata>(?:(?!<metadata>).)*?</metadata>", "", svg, flags=re.DOTALL)
    # matplotlib numbers the parts of each drawing from the start; the title keeps those of one page apart.
    prefix = re.sub(r"\W+", "-", title.lower())
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{prefix}-", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
    return Figure(title, about, Markup(svg))


def _histogram(draw: Callable[..., None], values: Any, title: str, about: str) -> Figure:
    """Return a figure that ``draw(axes, values)`` draws."""
    with drawing():
        figure, axes = new_figure(1, 1)
        draw(axes[0, 0], values)
        fit(figure, axes, WIDTH, HEIGHT)
    return _as_svg(figure, title, about)


def corpus_figures(examination: Examination) -> list[Figure]:
    """Draw the lengths, length ratios, scores and repetitions of a corpus."""
    figures = [
        _histogram(_lengths, examination.words, "How long the sentences are",
                   "In words; Chinese and Japanese in characters. The longest 0.5% are not shown."),
        _histogram(_ratios, log_ratio(examination.characters), "Length of the target relative to its source",
                   "Characters of the target over characters of the source, 5 added to both. Pairs far from the middle "
                   "are rarely translations. The outermost bars include all values beyond them."),
    ]  # fmt: skip
    if len(examination.scores):
        about = (
            "Evidence in nats for a true pair, from words, length, numbers and last mark. Below 0 a random pair is "
            "likelier. The outermost bars include all values beyond them."
        )
        figures.append(_histogram(_scores, examination.scores, "Do the two sides translate each other?", about))
    names = {
        "duplicate": "the same pair", "near-duplicate": "the same pair except for case and punctuation",
        "source-repeated": "the same source, another target", "target-repeated": "the same target, another source",
    }  # fmt: skip
    counts = Counter[str]()  # of all texts
    for finding in examination.findings:
        counts[finding.name] += finding.n
    repeats = [
        Bar(label, counts[name], text=f"{counts[name]:,} ({counts[name] / examination.pairs:.1%})")
        for name, label in names.items()
        if counts[name]
    ]
    if repeats:
        about = f"Pairs that repeat an earlier line, of {examination.pairs:,}."
        figures.append(_as_svg(bars([Bars(repeats, "pairs")], width=2.4), "Repeated lines", about))
    return figures


def _lengths(axes: Any, words: NDArray[np.integer[Any]], unit: str = "words") -> None:
    """Draw how many pairs have sides of each length; ``words`` is ``(pairs, 2)``."""
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
    axes.set_ylim(0, tallest * 1.35)  # leaves room for the names of the curves
    axes.set_xlim(left=0, right=edges[-1])
    _whole_numbers(axes.xaxis, 7)
    axes.set_xlabel(f"{unit} in a line" if width == 1 else f"{unit} in a line, by {width}")
    axes.set_ylabel("pairs")
    _whole_numbers(axes.yaxis)


def _ratios(axes: Any, ratio: NDArray[np.float64]) -> None:
    """Draw how many pairs have each length ratio, whose logarithms are ``ratio``, ``(pairs,)``."""
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
    _whole_numbers(axes.yaxis)


def _scores(axes: Any, scores: NDArray[np.float32]) -> None:
    """Draw how many pairs have each score in nats, those below 0 in another colour."""
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
    _whole_numbers(axes.yaxis)


def run_figures(run: Record) -> list[Figure]:
    """Draw perplexity, quality, learning rate, gradient and speed of a run by step, and the lengths of its text."""
    figures = []

    def add(lines: list[Curve], title: str, about: str, y_label: str, **options: Any) -> None:
        chart = Chart(lines, "step", y_label, **options)
        figures.append(_as_svg(curves([chart], width=WIDTH, height=HEIGHT), title, about))

    if run.losses():
        lines = []
        for events, name, colour in ((run.reports, "training", BLUE), (run.validations, "validation", ORANGE)):
            steps, losses = _curve(events, "loss")
            perplexities = [math.exp(min(loss, 50.0)) for loss in losses]
            lines.append(Curve(name, steps, perplexities, colour=colour, points=name == "validation"))
        about = "Perplexity for each target subword; training is with dropout, validation without. Lower is better."
        add(lines, "Perplexity", about, "perplexity (log scale)", y_log=10)
    if len(run.validations) > 1:
        lines = []
        for field, name, colour in (("bleu", "BLEU", BLUE), ("chrf", "chrF", ORANGE), ("f1", "bracket F1", BLUE)):
            steps, values = _curve(run.validations, field)
            if steps:
                label = f"{name} {values[-1]:.1f}"
                lines.append(Curve(label, steps, values, colour=colour, dashed=field == "chrf", points=True))
        about = "BLEU and chrF of greedy translations of the validation set. Higher is better."
        add(lines, "Quality of translations", about, "points out of 100", y_range=(0, None))
    for field, title, about, unit in (
        ("lr", "Learning rate", "As each report gives it.", "learning rate"),
        ("grad_norm", "Gradient", "Norm over all parameters, before clipping.", "norm of the gradient"),
        ("tokens_per_s", "Speed", "As each report gives it, without saving and validating.", "target tokens/s"),
    ):
        steps, values = _curve(run.reports, field)
        if len(steps) > 1:
            add([Curve("", steps, values)], title, about, unit, y_range=(0, None))
    if lengths := run.lengths():
        figures.append(
            _histogram(partial(_lengths, unit="subwords"), np.stack(lengths, 1), "How long the sentences are",
                       "In subwords, after the training text was cleaned. The longest 0.5% are not shown.")
        )  # fmt: skip
    return figures


def _curve(events: Sequence[dict[str, Any]], field: str) -> tuple[list[int], list[float]]:
    """Return the steps and the finite values of one field of a log, thinned to ``MAX_POINTS``."""
    points = [(e["step"], e[field]) for e in events if field in e and math.isfinite(e[field])]
    points = points[:: max(1, len(points) // MAX_POINTS)]
    return [step for step, _ in points], [value for _, value in points]


def _whole_numbers(axis: Any, at_most: int | None = None) -> None:
    """Label an axis with whole numbers such as 1,000, with ``at_most`` ticks if that is given."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if at_most is not None:
        axis.set_major_locator(MaxNLocator(at_most, integer=True))
