"""What noise in training is worth: a run trained with it and the same one without, under stress.

python -m benchmarks.questions.stress --plain RUN --noisy RUN --src test.en --ref test.de
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness.runs import evaluation
from benchmarks.record import save
from dragoman.data.corpus import read_lines


def rounded(variant: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 2) if isinstance(value, float) else value for key, value in variant.items()}


def figures_of(plain: dict[str, Any], noisy: dict[str, Any], compared: dict[str, Any]) -> dict[str, Any]:
    """The two aims, and all that was measured.

    Args:
        plain, noisy: Of ``--stress``, without and with noise in training.
        compared: Of the two on the clean test set, the one without noise first.
    """
    losses = [
        next(one["chrf_loss"] for one in found["variants"] if one["name"] == "capitals") for found in (plain, noisy)
    ]
    bleu = next(one for one in compared["comparisons"] if one["metric"] == "BLEU")
    clean_difference = noisy["variants"][0]["bleu"] - plain["variants"][0]["bleu"]
    return {
        "capitals_chrf_loss": {"plain": round(losses[0], 2), "noisy": round(losses[1], 2)},
        "capitals_chrf_loss_at_least_halved": losses[1] <= losses[0] / 2,
        "clean_bleu_difference": round(clean_difference, 2),
        "clean_bleu_not_lower_by_more_than_0.3": clean_difference >= -0.3,
        "clean_bleu_interval": [round(bleu["low"], 2), round(bleu["high"], 2)],
        "clean_bleu_p": bleu["p_randomisation"],
        "verdict": bleu["verdict"],
        "plain": [rounded(variant) for variant in plain["variants"]],
        "noisy": [rounded(variant) for variant in noisy["variants"]],
    }


def settings(run: Path) -> dict[str, Any]:
    """What was asked for of a run, without its files."""
    config: dict[str, Any] = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    config["data"].pop("train"), config["data"].pop("valid")
    return config


def main() -> None:
    """Evaluate, compare, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("plain", "noisy"):
        parser.add_argument(f"--{name}", type=Path, required=True, help="a run")
    for name in ("src", "ref"):
        parser.add_argument(f"--{name}", type=Path, required=True, help="of the test set")
    parser.add_argument("--beam-size", type=int, help="instead of the runs'")
    args = parser.parse_args()
    beam = [] if args.beam_size is None else ["--beam-size", str(args.beam_size)]
    plain, noisy = (evaluation([run], args.src, args.ref, "--stress", *beam) for run in (args.plain, args.noisy))
    figures = figures_of(plain, noisy, evaluation([args.plain, args.noisy], args.src, args.ref, *beam))
    without, with_noise = settings(args.plain), settings(args.noisy)
    figures |= {
        "lines": sum(1 for _ in read_lines(args.src)),
        "beam_size": args.beam_size,
        "test_set": args.src.name,
        "noise": with_noise["data"].pop("noise"),
        "configuration": with_noise,
    }
    without["data"].pop("noise", None)
    figures["other_settings_are_the_same"] = without == with_noise
    command = " ".join(["python -m benchmarks.questions.stress --plain RUN --noisy RUN --src SRC --ref REF", *beam])
    save("stress", figures, command, ("torch", "numpy", "sentencepiece", "sacrebleu"))


if __name__ == "__main__":
    main()
