"""Line charts of what runs logged: shapes without scripts, which fit any width and take their colours from the page.

    chart = draw(Quantity("bleu", "BLEU", "per cent"), [curves_of(run) for run in runs])

A chart is a square of 1,000 by 1,000 units, which the page stretches; labels lie above it as text of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dragoman.training.record import Record

SIDE = 1000.0
MOST_POINTS = 400
"""Largest number of points of a line; a longer one is thinned, the first and the last point stay."""
MOST_DOTS = 60
"""Largest number of points of a line that are marked with a dot."""
EARLY = 0.05
"""Share of a training whose losses do not stretch the axis: they fall so steeply that the rest would be flat."""

AXES = {"steps": "steps", "minutes": "minutes of training", "tokens": "million target tokens"}
"""Horizontal axes that the reader may choose among, and their names."""


@dataclass(frozen=True)
class Quantity:
    """A number that a log has at many steps."""

    key: str
    title: str
    unit: str
    about: str = ""
    clips: bool = False
    """True if the first steps may lie above the frame."""


QUANTITIES = (
    Quantity(
        "loss", "Loss", "nats per target token", "Thin: training text. Thick, with dots: validation text.", clips=True
    ),
    Quantity("bleu", "BLEU", "per cent", "Of the validation text; higher is better."),
    Quantity("chrf", "chrF", "per cent", "Of the validation text; higher is better."),
    Quantity("f1", "Bracket F1", "per cent", "Of the validation trees; higher is better."),
    Quantity("lr", "Learning rate", "", "As the schedule sets it."),
    Quantity("tokens_per_s", "Speed", "target tokens per second", "Validation is not counted."),
    Quantity("grad_norm", "Gradient norm", "before clipping", "A growing norm is the first sign of divergence."),
)
"""Charts of a page, in its order."""


@dataclass(frozen=True)
class Point:
    """A number at one moment of a training."""

    steps: float
    minutes: float
    tokens: float  # in millions
    value: float


@dataclass(frozen=True)
class Line:
    """A line of a chart: of run number ``run``, from its training or its validations."""

    run: int
    is_validation: bool
    paths: Mapping[str, str]  # the line by axis, as SVG path data
    dots: Mapping[str, Sequence[tuple[float, float, str]]]  # by axis: left and top in per cent, and a text
    last: str


@dataclass(frozen=True)
class Chart:
    """A chart, ready for the page."""

    quantity: Quantity
    lines: Sequence[Line]
    rows: Sequence[tuple[float, str]]  # labels of the vertical axis, with their place from the top in per cent
    columns: Mapping[str, Sequence[tuple[float, str]]]  # labels of each horizontal axis, from the left
    is_clipped: bool


def points_of(run: Record, key: str) -> tuple[list[Point], list[Point]]:
    """Return what the training reports and what the validations of a run logged under a name."""
    reports = [
        Point(event["step"], event.get("seconds", 0.0) / 60, event.get("tokens", 0.0) / 1e6, number)
        for event in run.reports
        if isinstance(number := event.get(key), float)
    ]
    times = [(event["step"], event.get("seconds", 0.0) / 60, event.get("tokens", 0.0) / 1e6) for event in run.reports]
    validations = [
        Point(event["step"], *_when(event["step"], times), number)
        for event in run.validations
        if isinstance(number := event.get(key), float)
    ]
    return reports, validations


def _when(step: int, times: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return minutes and tokens at a step, between those of the reports before and after it."""
    before, after = (0.0, 0.0, 0.0), None
    for moment in times:
        if moment[0] > step:
            after = moment
            break
        before = moment
    if after is None or after[0] == before[0]:
        return before[1], before[2]
    share = (step - before[0]) / (after[0] - before[0])
    return before[1] + share * (after[1] - before[1]), before[2] + share * (after[2] - before[2])


def charts(runs: Sequence[Record]) -> list[Chart]:
    """Return a chart of each quantity that at least one of the runs has."""
    made = (draw(quantity, [points_of(run, quantity.key) for run in runs]) for quantity in QUANTITIES)
    return [chart for chart in made if chart is not None]


def draw(quantity: Quantity, curves: Sequence[tuple[list[Point], list[Point]]]) -> Chart | None:
    """Return the chart of a quantity; None if no run has a finite number of it."""
    series = [
        (number, is_validation, points)
        for number, both in enumerate(curves)
        for is_validation, points in zip((False, True), both, strict=True)
        if any(math.isfinite(point.value) for point in points)
    ]
    values = [point for _, _, points in series for point in points if math.isfinite(point.value)]
    if not values:
        return None
    late = _late(series) if quantity.clips else values
    low, high = min(point.value for point in values), max(point.value for point in late)
    low, high, rows = _nice(low, high)
    spans = {axis: max(getattr(point, axis) for point in values) or 1.0 for axis in AXES}
    lines = [_line(quantity, of, (low, high), spans) for of in series]
    columns = {axis: [(100 * at / span, _short(at)) for at in _ticks(0.0, span)] for axis, span in spans.items()}
    return Chart(
        quantity, lines, [(100 * (high - at) / (high - low), _short(at)) for at in rows], columns,
        any(point.value > high for point in values),
    )  # fmt: skip


def _late(series: Sequence[tuple[int, bool, list[Point]]]) -> list[Point]:
    """Return the finite points after the first steps of each run."""
    late = []
    for _, is_validation, points in series:
        first = EARLY * points[-1].steps
        late += [point for point in points if math.isfinite(point.value) and (point.steps >= first or is_validation)]
    return late


def _line(
    quantity: Quantity,
    of: tuple[int, bool, list[Point]],
    frame: tuple[float, float],
    spans: Mapping[str, float],
) -> Line:
    """Return the line of one run: its number, whether it is of validations, and its points."""
    run, is_validation, points = of
    low, high = frame
    thin = _thinned(points, MOST_POINTS)
    paths, dots = {}, {}
    for axis, span in spans.items():
        path, pen_is_up = [], True
        for point in thin:
            if not math.isfinite(point.value):
                pen_is_up = True
                continue
            x, y = SIDE * getattr(point, axis) / span, SIDE * (high - point.value) / (high - low)
            path.append(f"{'M' if pen_is_up else 'L'}{x:.1f} {max(y, -SIDE):.1f}")
            pen_is_up = False
        paths[axis] = "".join(path)
        marked = [point for point in _thinned(points, MOST_DOTS) if low <= point.value <= high] if is_validation else []
        dots[axis] = [
            (
                100 * getattr(point, axis) / span,
                100 * (high - point.value) / (high - low),
                f"step {point.steps:,.0f}, {point.minutes:,.1f} minutes: {quantity.title} {_exact(point.value)}",
            )
            for point in marked
        ]
    finite = [point.value for point in points if math.isfinite(point.value)]
    return Line(run, is_validation, paths, dots, _exact(finite[-1]))


def _thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most about ``most`` points, evenly spaced; the first and the last are among them."""
    every = max(1, math.ceil(len(points) / most))
    return [point for i, point in enumerate(points) if i % every == 0 or i == len(points) - 1]


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two, at most about ``most``."""
    raw = (high - low) / most or 1.0
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _nice(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return the ends of an axis and its labels."""
    if high <= low:
        low, high = low - 0.5 * abs(low or 1), high + 0.5 * abs(high or 1)
    margin = 0.04 * (high - low)
    if low >= 0 and low < 0.35 * high:
        low, margin = 0.0, margin
    low, high = (low if low == 0 else low - margin), high + margin
    return low, high, _ticks(low, high)


def _short(value: float) -> str:
    """Format a label of an axis: 20k, 1.5, 5e-04."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:g}M"
    if size >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:.4g}" if size >= 1e-3 else f"{value:.1e}"


def _exact(value: float) -> str:
    """Format a number of a legend."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2e}"


CURVE_COLUMNS = ("run", "event", "step", "seconds", "tokens")
"""Names of the first columns of the table of curves; the others are quantities."""


def csv_rows(runs: Iterable[tuple[str, Record]]) -> list[tuple[str, ...]]:
    """Return all numbers of the curves as rows of a table, its head first."""
    keys = ("loss", "perplexity", *(quantity.key for quantity in QUANTITIES[1:]))
    rows: list[tuple[str, ...]] = [(*CURVE_COLUMNS, *keys)]
    for name, run in runs:
        for event in sorted([*run.reports, *run.validations], key=lambda event: event["step"]):
            numbers = (event.get(key) for key in ("seconds", "tokens", *keys))
            cells = ("" if number is None else f"{number:.10g}" for number in numbers)
            rows.append((name, event["event"], str(event["step"]), *cells))
    return rows
