"""Does Muon need fewer updates than Adam? Validation loss over updates, each at its best rate.

    python -m benchmarks.questions.muon DATA [--runs runs/muon] [--updates 800] [--size 128 256] [--seeds 1]

Muon (https://kellerjordan.github.io/posts/muon/, ``torch.optim.Muon``) makes the update of a matrix orthogonal. It
takes the matrices within the layers; Adam takes the rest (embeddings, biases, gains) in both cases. Muon's updates have
the size of Adam's (``match_rms_adamw``), times a factor that is swept like Adam's peak rate. Text, batches and schedule
are the same. After which share of the updates does Muon have the loss with which Adam ends? A
cosine falls to 0 at the last update, so Muon is also trained with a schedule of that length (``--shorter``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import dragoman
from benchmarks.harness.arguments import command
from benchmarks.harness.runs import events, last
from benchmarks.record import save
from dragoman.training import loop

RATES = (1.5e-3, 3e-3, 6e-3)
"""Peak rates of Adam, and of the part of the weights that Adam keeps beside Muon (there the best for Adam)."""
FACTORS = (1.0, 2.0, 4.0)
"""Size of Muon's updates, in Adam's."""
BATCH_TOKENS = 2048
VOCABULARY = 4000
EVERY = 100
"""Updates between two validations."""
SIZES = {
    128: {"d_model": 128, "d_ff": 512, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2},
    256: {"d_model": 256, "d_ff": 1024, "n_heads": 4, "n_encoder_layers": 3, "n_decoder_layers": 3},
}


class MuonAndAdam:
    """Both optimisers behind the interface that the training loop uses."""

    def __init__(self, factor: float, parameters: Iterable[torch.nn.Parameter], **adam: Any) -> None:
        matrices, others = list[torch.nn.Parameter](), list[torch.nn.Parameter]()
        for parameter in parameters:
            within = parameter.ndim == 2 and parameter.size(0) != VOCABULARY
            (matrices if within else others).append(parameter)
        self.factor = factor
        self.adam = torch.optim.Adam(others, **adam)
        self.muon = torch.optim.Muon(matrices, lr=0.0, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of both."""
        return [*self.adam.param_groups, *self.muon.param_groups]

    @property
    def state(self) -> Mapping[torch.nn.Parameter, Any]:
        """The moments of both, for the checkpoint."""
        return {**self.adam.state, **self.muon.state}

    def step(self) -> None:
        """Make an update with the rate that the loop has set, for Muon's part times the factor."""
        for group in self.muon.param_groups:
            group["lr"] *= self.factor
        self.adam.step()
        self.muon.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of both."""
        self.adam.zero_grad(set_to_none)
        self.muon.zero_grad(set_to_none)


@contextmanager
def optimiser(factor: float | None) -> Iterator[None]:
    """Let the training loop use Muon with this factor; None: Adam, as it does."""
    if factor is None:
        yield
        return
    adam = torch.optim.Adam

    def make(parameters: Iterable[torch.nn.Parameter], **settings: Any) -> MuonAndAdam:
        with patch.object(torch.optim, "Adam", adam):
            return MuonAndAdam(factor, parameters, **settings)

    with patch.object(loop.torch.optim, "Adam", make):
        yield


def trained(run: Path, data: Path, size: int, updates: int, seed: int, rate: float, factor: float | None) -> None:
    """Train a run that is not there yet."""
    if (run / "bundle").is_dir():
        return
    settings = {
        "model": {**SIZES[size], "norm": "pre", "dropout": 0.1},
        "data.tokenizer.vocab_size": VOCABULARY, "train.seed": seed, "train.max_steps": updates, "train.lr": rate,
        "train.warmup_steps": updates // 10, "train.schedule": "cosine", "train.batch_tokens": BATCH_TOKENS,
        "train.clip_norm": 1.0, "train.ema": 0.0, "train.average": 0, "train.validate_every": EVERY,
        "train.save_every": updates,
    }  # fmt: skip
    files = [[data / "multi30k" / f"{part}.{lang}" for lang in ("en", "de")] for part in ("train", "val")]
    with optimiser(factor):
        dragoman.train(files[0], valid=files[1], out=run, quiet=True, overrides=[
            f"{name}={str(value).replace(chr(39), '')}" for name, value in settings.items()
        ])  # fmt: skip


def row(run: Path) -> dict[str, Any]:
    """Return the losses of a run's validations, in nats per subword, and the seconds of an update without them."""
    log = events(run)
    losses = {str(event["step"]): round(event["loss"], 4) for event in log if event["event"] == "validation"}
    trained_log = [event for event in log if event["event"] == "train"]
    seconds = sorted(event["tokens_per_s"] for event in trained_log)[len(trained_log) // 2]
    end = last(log, "end")
    return {"losses": losses, "last": losses[str(end["step"])], "median_tokens_per_s": round(seconds)}


def first_at(row: dict[str, Any], loss: float) -> int | None:
    """Return the first validated update with at most this loss."""
    return next((int(step) for step, own in row["losses"].items() if own <= loss), None)


def main() -> None:
    """Train what is not there yet, compare, and save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions.muon", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with multi30k/")
    parser.add_argument("--runs", type=Path, default=Path("runs/muon"))
    parser.add_argument("--updates", type=int, default=800)
    parser.add_argument("--shorter", type=float, default=0.6, help="share of the updates of Muon's shorter schedule")
    parser.add_argument("--size", type=int, nargs="+", choices=tuple(SIZES), default=list(SIZES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="the first chooses the rates")
    args = parser.parse_args()
    figures: dict[str, Any] = {}

    def one(size: int, seed: int, rate: float, factor: float | None = None, share: float = 1.0) -> dict[str, Any]:
        updates = round(args.updates * share)
        name = f"{size}-{seed}-{rate:g}-{'adam' if factor is None else f'muon{factor:g}'}-{updates}"
        trained(args.runs / name, args.data, size, updates, seed, rate, factor)
        found = row(args.runs / name)
        print(name, found["last"], found["median_tokens_per_s"], file=sys.stderr, flush=True)
        return found

    for size in args.size:
        seed = args.seeds[0]
        adam = {rate: one(size, seed, rate) for rate in RATES}
        rate = min(adam, key=lambda rate: adam[rate]["last"])
        muon = {factor: one(size, seed, rate, factor) for factor in FACTORS}
        factor = min(muon, key=lambda factor: muon[factor]["last"])
        by_seed = {}
        for seed in args.seeds:
            best, full = one(size, seed, rate), one(size, seed, rate, factor)
            short = one(size, seed, rate, factor, args.shorter)
            by_seed[str(seed)] = {
                "Adam": best["last"], "Muon": full["last"], f"Muon, {args.shorter:g} of the updates": short["last"],
                "updates until Muon has Adam's last loss": first_at(full, best["last"]),
            }  # fmt: skip
        figures[f"width {size}"] = {
            "Adam, by peak rate": {f"{rate:g}": found for rate, found in adam.items()},
            f"Muon, by factor, with the rate {rate:g}": {f"{factor:g}": found for factor, found in muon.items()},
            "by seed": by_seed,
        }
    save("muon", figures, command("questions.muon", parser, args))


if __name__ == "__main__":
    main()
