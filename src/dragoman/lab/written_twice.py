"""The heads of a trained translator on sentences that are written twice, for the experiment induction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.lab.experiment import Claim, Lab, Section, Table
from dragoman.lab.heads import examine
from dragoman.lab.repeats import KINDS, doubled, head_name, head_scores, judged, repeat_losses, rises


def measured_run(lab: Lab) -> dict[str, Any]:
    """Return the same measures of a translator's decoder, on pairs of its validation text written twice."""
    examined = examine(lab)
    count = 4 if lab.quick else 40
    to_choose, to_judge = (list(doubled(batches, count)) for batches in (examined.to_choose, examined.to_judge))
    scores = {
        which: head_scores(examined.model, *text) for which, text in (("chosen", to_choose), ("judged", to_judge))
    }
    of_heads = {
        which: {(name, i): score for name, rows in of_text.items() for i, score in enumerate(rows)}
        for which, of_text in scores.items()
    }
    best = {kind: max(of_heads["chosen"], key=lambda head: of_heads["chosen"][head][kind]) for kind in KINDS}
    return {
        "sentences": [len(to_choose), len(to_judge)], "loss": repeat_losses(examined.model, *to_judge),
        "scores": scores["judged"], "chosen": {kind: {"attention": at, "number": i} for kind, (at, i) in best.items()},
        "rises": rises(examined.model, *to_judge),
    }  # fmt: skip


def real_claims(real: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about a trained translator."""
    best = {kind: judged(real, kind) for kind in KINDS}
    names = {kind: head_name(head) for kind, head in real["chosen"].items()}
    ranked = sorted(real["rises"], key=lambda row: -row["rise"])
    place = 1 + next(i for i, row in enumerate(ranked) if head_name(row) == names["induction"])
    return [
        Claim(
            "A head of its decoder looks at the word before",
            best["previous"] > 0.5,
            f"{names['previous']}: {best['previous']:.2f} of its weight",
        ),
        Claim(
            "A head of its decoder looks at what followed last time",
            best["induction"] > 0.5,
            f"{names['induction']}: {best['induction']:.2f} of its weight",
        ),
        Claim(
            "A sentence that is written again costs less the second time",
            real["loss"]["repeated"] < real["loss"]["new"],
            f"{real['loss']['repeated']:.2f} nats a word against {real['loss']['new']:.2f}",
        ),
        Claim(
            "No head of the decoder is missed more there than the one that looks most at what followed",
            place == 1,
            f"it is number {place} of {len(ranked)}: {ranked[place - 1]['rise']:+.3f} nats; the most is "
            f"{ranked[0]['rise']:+.3f}, without {head_name(ranked[0])}",
        ),
    ]


def real_section(real: Mapping[str, Any]) -> Section:
    """Return the section on a trained translator."""
    heads = {(name, i): score for name, rows in real["scores"].items() for i, score in enumerate(rows)}
    lost = {(row["attention"], row["number"]): row for row in real["rises"]}
    points = [
        Curve("", [score["induction"] for score in heads.values()], [lost[head]["rise"] for head in heads],
              points=True, line=False)
    ]  # fmt: skip
    most = [(head["attention"], head["number"]) for head in real["chosen"].values()]
    return Section(
        "Heads of a translator",
        f"The decoder's own attention, on {real['sentences'][1]} pairs of its validation text, each written twice. "
        f"Heads are chosen on {real['sentences'][0]} other pairs. A translator need not find what followed: "
        "it reads the source.",
        curves([Chart(points, "weight at what followed last time", "rise of the loss on repeats (nats)")], width=5.2),
        "real",
        Table(
            ("head", "at the word before", "at what followed", "repeats, without it", "first time, without it"),
            [
                (
                    head_name(lost[head]), *(f"{heads[head][kind]:.2f}" for kind in KINDS),
                    f"{lost[head]['rise']:+.3f}", f"{lost[head]['rise_new']:+.3f}",
                )
                for head in most
            ],
        ),
        "A point for each head of the decoder's own attention. The table has the two chosen heads.",
    )  # fmt: skip
