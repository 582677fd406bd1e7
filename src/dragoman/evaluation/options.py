"""Options of scoring a test set, for Python and the command line."""

from __future__ import annotations

from dragoman.options import DeviceOptions, option, option_group


@option_group
class ScoreOptions(DeviceOptions):
    """Settings of scoring translations."""

    metrics: tuple[str, ...] = option(
        (), "Scores", "Metric: bleu, chrf, ter or chrf++; may be repeated (default: bleu, chrf and ter).",
        flag="--metric",
    )  # fmt: skip
    old_style: bool = option(False, "Scores", "Also report lower-cased, Moses-tokenised BLEU, as older papers do.")
